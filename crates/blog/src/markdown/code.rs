//! Code in colours: classes around the words of a block, which a theme colours for light and dark. No script, no inline style.
//!
//! `syntect` with the grammars of `two-face` finds the words. Of the scopes of Sublime's grammars, a hundred names deep, a dozen classes of
//! one letter remain ([`classes`](super::classes)): a page is read more often than it is highlighted.

use std::{cell::RefCell, collections::HashMap, fmt::Write as _, sync::LazyLock};

use syntect::{
    parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet},
    util::LinesWithEndings,
};

use super::{
    classes::{ATTRIBUTE, COMMENT, DELETED, ESCAPE, FUNCTION, HEADING, INSERTED, KEYWORD, LINE, MACRO, MARKED, NUMBER, STRING, TYPE},
    fence::Fence,
};
use crate::escape::{escape, push_text};

/// The largest block that is highlighted. Larger ones are data, and plain.
const BLOCK_BYTES_MAX: usize = 64 * 1024;

/// The code of one text that is highlighted, together. Further blocks are plain.
pub(super) const TEXT_BYTES_MAX: usize = 256 * 1024;

/// The longest line that is highlighted. A longer one, and what follows it in its block, is plain: expressions of grammars look at a line
/// again and again.
const LINE_BYTES_MAX: usize = 1_000;

/// The scopes of a word that are looked at, innermost first.
const SCOPES_MAX: usize = 12;

static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(two_face::syntax::extra_newlines);

/// Names of languages that authors write and the grammars do not know.
const ALIASES: [(&str, &str); 47] = [
    ("bash-session", "sh"),
    ("c#", "cs"),
    ("c++", "cpp"),
    ("caddy", "nginx"),
    ("caddyfile", "nginx"),
    ("cjs", "js"),
    ("conf", "ini"),
    ("console", "sh"),
    ("cplusplus", "cpp"),
    ("csharp", "cs"),
    ("docker", "dockerfile"),
    ("dosbatch", "bat"),
    ("elisp", "lisp"),
    ("emacs-lisp", "lisp"),
    ("env", "dotenv"),
    ("f#", "fs"),
    ("fsharp", "fs"),
    ("go-html-template", "html"),
    ("golang", "go"),
    ("hbs", "html"),
    ("handlebars", "html"),
    ("hcl", "tf"),
    ("http", "http request and response"),
    ("ipynb", "json"),
    ("javascriptreact", "js"),
    ("json5", "json"),
    ("jsonc", "json"),
    ("jsx", "tsx"),
    ("latex", "tex"),
    ("make", "makefile"),
    ("mdx", "md"),
    ("mjs", "js"),
    ("mysql", "sql"),
    ("node", "js"),
    ("objc", "objective-c"),
    ("patch", "diff"),
    ("php", "php"),
    ("postgresql", "sql"),
    ("py3", "py"),
    ("rustlang", "rs"),
    ("sass", "scss"),
    ("shell", "sh"),
    ("shell-session", "sh"),
    ("systemd", "ini"),
    ("vim", "viml"),
    ("vimscript", "viml"),
    ("xhtml", "html"),
];

/// The scopes that have a class, or explicitly none. The longest name that fits counts; where no name fits, the scope around decides.
const SCOPES: [(&str, &str); 58] = [
    ("comment", COMMENT),
    ("punctuation.definition.comment", COMMENT),
    ("string", STRING),
    ("punctuation.definition.string", STRING),
    ("meta.mapping.key", ATTRIBUTE),
    ("meta.structure.dictionary.key", ATTRIBUTE),
    ("source", ""),
    ("text", ""),
    ("meta.interpolation", ""),
    ("meta.template.expression", ""),
    ("punctuation.section.interpolation", ESCAPE),
    ("punctuation.definition.template-expression", ESCAPE),
    ("constant", NUMBER),
    ("constant.character.escape", ESCAPE),
    ("constant.other.placeholder", ESCAPE),
    ("constant.other.date", NUMBER),
    ("keyword", KEYWORD),
    ("keyword.operator", ""),
    ("keyword.operator.word", KEYWORD),
    ("keyword.other.unit", NUMBER),
    ("storage", KEYWORD),
    ("variable.language", KEYWORD),
    ("variable.function", FUNCTION),
    ("variable.annotation", MACRO),
    ("meta.annotation", MACRO),
    ("entity.name.function", FUNCTION),
    ("entity.name.command", FUNCTION),
    ("support.function", FUNCTION),
    ("entity.name.macro", MACRO),
    ("support.macro", MACRO),
    ("meta.preprocessor", MACRO),
    ("keyword.control.import.include", MACRO),
    ("entity.name.type", TYPE),
    ("entity.name.class", TYPE),
    ("entity.name.struct", TYPE),
    ("entity.name.enum", TYPE),
    ("entity.name.union", TYPE),
    ("entity.name.trait", TYPE),
    ("entity.name.interface", TYPE),
    ("entity.name.impl", TYPE),
    ("entity.other.inherited-class", TYPE),
    ("support.type", TYPE),
    ("support.class", TYPE),
    ("support.constant", NUMBER),
    ("support.type.property-name", ATTRIBUTE),
    ("entity.name.tag", TYPE),
    ("entity.name.tag.yaml", ATTRIBUTE),
    ("entity.name.tag.toml", ATTRIBUTE),
    ("variable.other.key", ATTRIBUTE),
    ("support.other.keyword.toml", ATTRIBUTE),
    ("entity.other.attribute-name", ATTRIBUTE),
    ("entity.name.section", HEADING),
    ("entity.name.table", HEADING),
    ("markup.heading", HEADING),
    ("meta.diff", COMMENT),
    ("markup.inserted", INSERTED),
    ("markup.deleted", DELETED),
    ("markup.raw", STRING),
];

static CLASSES: LazyLock<Vec<(Scope, &'static str)>> = LazyLock::new(|| {
    let mut list: Vec<_> = SCOPES.iter().filter_map(|&(name, class)| Some((Scope::new(name).ok()?, class))).collect();
    list.sort_by_key(|(scope, _)| std::cmp::Reverse(scope.len()));
    list
});

thread_local! {
    /// The classes of scopes that were met. There are some thousand scopes in all grammars together.
    static MET: RefCell<HashMap<Scope, Option<&'static str>>> = RefCell::default();
}

/// Tells whether blocks of this language are formulas, and not code.
pub(super) fn is_formula(language: &str) -> bool {
    language.eq_ignore_ascii_case("math")
}

/// Writes a block of code for a page. `left` is the number of bytes of the text that may still be highlighted.
pub(super) fn page_html(fence: &Fence, code: &str, left: &mut usize) -> String {
    let is_large = code.len() > BLOCK_BYTES_MAX || code.len() > *left;
    let syntax = if is_large { None } else { syntax(&fence.language) };
    if syntax.is_some() {
        *left -= code.len();
    }
    let wraps_lines = !is_large && (fence.first_line.is_some() || !fence.marks.is_empty());
    let mut out = String::with_capacity(code.len() * 2 + 160);
    out.push_str("<figure class=\"code\">");
    caption(&mut out, fence);
    out.push_str("<pre tabindex=\"0\"");
    if wraps_lines && let Some(first) = fence.first_line {
        out.push_str(" class=\"numbered\"");
        if first != 1 {
            let _ = write!(out, " style=\"counter-reset:line {}\"", first.saturating_sub(1));
        }
    }
    out.push_str("><code");
    language_class(&mut out, &fence.language);
    out.push('>');
    let mut painter = Painter { out, open: "", space: String::new() };
    let mut highlighter = syntax.map(|syntax| (ParseState::new(syntax), ScopeStack::new()));
    for (index, line) in LinesWithEndings::from(code).enumerate() {
        if wraps_lines {
            let marked = if fence.is_marked(index + 1) { format!(" {MARKED}") } else { String::new() };
            let _ = write!(painter.out, "<span class=\"{LINE}{marked}\">");
        }
        highlighter = highlighter.filter(|_| line.len() <= LINE_BYTES_MAX);
        match &mut highlighter {
            None => push_text(&mut painter.out, line),
            Some((state, stack)) => {
                if !painter.line(line, state, stack) {
                    highlighter = None;
                }
            }
        }
        painter.close();
        if wraps_lines {
            painter.out.push_str("</span>");
        }
    }
    painter.out.push_str("</code></pre></figure>\n");
    painter.out
}

/// Writes a block of code for a feed: plain, as feeds have no style of ours.
pub(super) fn feed_html(fence: &Fence, code: &str) -> String {
    let mut out = String::with_capacity(code.len() + 64);
    if let Some(title) = &fence.title {
        let _ = writeln!(out, "<p>{}</p>", escape(title));
    }
    out.push_str("<pre><code");
    language_class(&mut out, &fence.language);
    out.push('>');
    push_text(&mut out, code);
    out.push_str("</code></pre>\n");
    out
}

fn caption(out: &mut String, fence: &Fence) {
    if let Some(title) = &fence.title {
        let _ = write!(out, "<figcaption>{}</figcaption>", escape(title));
    } else if !is_plain(&fence.language) {
        let _ = write!(out, "<figcaption class=\"language\">{}</figcaption>", escape(&fence.language));
    }
}

fn language_class(out: &mut String, language: &str) {
    if !language.is_empty() {
        let _ = write!(out, " class=\"language-{}\"", escape(language));
    }
}

/// Tells whether a word names no language: nothing is highlighted, and no caption says so.
fn is_plain(language: &str) -> bool {
    ["", "text", "txt", "plain", "plaintext", "none", "raw"].iter().any(|plain| language.eq_ignore_ascii_case(plain))
}

/// Returns the grammar of a language. Without one, the block is plain: authors name languages that nobody has written a grammar for.
fn syntax(language: &str) -> Option<&'static SyntaxReference> {
    if is_plain(language) {
        return None;
    }
    let language = language.to_ascii_lowercase();
    let known = ALIASES.iter().find(|(alias, _)| *alias == language).map_or(language.as_str(), |(_, known)| known);
    SYNTAXES.find_syntax_by_token(known)
}

/// Writes words with their classes. Neighbours with one class share an element, with the space between them. No element goes beyond its line.
struct Painter {
    out: String,
    open: &'static str,
    /// The white space behind the last word.
    space: String,
}

impl Painter {
    /// Writes a line. Returns whether the grammar got through it; if not, the line is plain.
    fn line(&mut self, line: &str, state: &mut ParseState, stack: &mut ScopeStack) -> bool {
        let Ok(changes) = state.parse_line(line, &SYNTAXES) else {
            push_text(&mut self.out, line);
            return false;
        };
        let mut at = 0;
        let mut is_whole = true;
        for (until, change) in &changes {
            if let Some(word) = line.get(at..*until).filter(|word| !word.is_empty()) {
                self.word(word, class(stack, word));
                at = *until;
            }
            is_whole &= stack.apply(change).is_ok();
        }
        let rest = line.get(at..).unwrap_or_default();
        self.word(rest, class(stack, rest));
        is_whole
    }

    fn word(&mut self, word: &str, class: &'static str) {
        let text = word.trim_end_matches(['\n', '\r']);
        let core = text.trim();
        let (before, after) = text.split_once(core).filter(|_| !core.is_empty()).unwrap_or((text, ""));
        self.space.push_str(before);
        if !core.is_empty() {
            if class != self.open {
                self.close();
                if !class.is_empty() {
                    let _ = write!(self.out, "<span class=\"{class}\">");
                }
                self.open = class;
            }
            push_text(&mut self.out, &std::mem::take(&mut self.space));
            push_text(&mut self.out, core);
            after.clone_into(&mut self.space);
        }
        if text.len() < word.len() {
            self.close();
            self.out.push('\n');
        }
    }

    /// Ends the element, and writes the space behind its last word.
    fn close(&mut self) {
        if !self.open.is_empty() {
            self.out.push_str("</span>");
            self.open = "";
        }
        push_text(&mut self.out, &std::mem::take(&mut self.space));
    }
}

/// Returns the class of a word in these scopes; empty if it has none.
fn class(stack: &ScopeStack, word: &str) -> &'static str {
    let mut innermost = stack.as_slice().iter().rev().take(SCOPES_MAX).copied();
    let Some((scope, class)) = innermost.find_map(|scope| Some((scope, class_of(scope)?))) else { return "" };
    // `and`, `or` and `not` are operators to grammars, and words to readers.
    if class.is_empty() && word.starts_with(|c: char| c.is_ascii_alphabetic()) && OPERATOR.is_some_and(|known| known.is_prefix_of(scope)) {
        return KEYWORD;
    }
    // The keys of JSON are strings, too.
    let is_key = || stack.as_slice().iter().rev().take(4).any(|&scope| class_of(scope) == Some(ATTRIBUTE));
    if class == STRING && is_key() { ATTRIBUTE } else { class }
}

static OPERATOR: LazyLock<Option<Scope>> = LazyLock::new(|| Scope::new("keyword.operator").ok());

fn class_of(scope: Scope) -> Option<&'static str> {
    let known = || CLASSES.iter().find(|(known, _)| known.is_prefix_of(scope)).map(|&(_, class)| class);
    MET.with_borrow_mut(|met| *met.entry(scope).or_insert_with(known))
}
