//! Formulas in LaTeX's notation become MathML when the text is rendered. Browsers draw it themselves: no script, no fonts, no pictures.

use pulldown_latex::{Event, Parser, RenderConfig, Storage, config::DisplayMode, event::Content, push_mathml};

use crate::escape::is_xml_char;

/// The longest formula. Groups within groups are read once for each level, so a longer one could take long.
const FORMULA_BYTES_MAX: usize = 8 * 1024;

/// The largest number of symbols in a formula. Macros can make many of few.
const EVENTS_MAX: usize = 20_000;

/// Returns `formula` as MathML, or what is wrong with it.
pub(super) fn mathml(formula: &str, is_block: bool) -> Result<String, String> {
    if formula.len() > FORMULA_BYTES_MAX {
        return Err(format!("a formula of more than {FORMULA_BYTES_MAX} bytes"));
    }
    let formula: String = formula.chars().filter(|&c| is_xml_char(c)).collect();
    let storage = Storage::new();
    let mut events: Vec<Event<'_>> = Vec::new();
    for event in Parser::new(&formula, &storage) {
        let event = event.map_err(|error| reason(&error))?;
        if let Event::Content(Content::Function(name) | Content::Number(name)) = event
            && name.contains(['<', '>', '&'])
        {
            return Err("a name with signs in it".to_owned());
        }
        events.push(event);
        if events.len() > EVENTS_MAX {
            return Err(format!("a formula of more than {EVENTS_MAX} symbols"));
        }
    }
    let display_mode = if is_block { DisplayMode::Block } else { DisplayMode::Inline };
    let mut out = String::new();
    let events = events.into_iter().map(Ok::<_, std::convert::Infallible>);
    push_mathml(&mut out, events, RenderConfig { display_mode, ..RenderConfig::default() }).map_err(|error| error.to_string())?;
    let out = escaped(&out);
    if is_balanced(&out) { Ok(out) } else { Err("its groups do not fit together".to_owned()) }
}

/// Escapes what the renderer leaves as it is: single signs in elements (`<mo><</mo>`). A sign is followed by the end of its element, so what
/// looks like a tag or an entity is one.
fn escaped(out: &str) -> String {
    let mut html = String::with_capacity(out.len() + 16);
    let mut is_tag = false;
    for (at, c) in out.char_indices() {
        let rest = &out[at + c.len_utf8()..];
        match c {
            '<' if rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/') => {
                is_tag = true;
                html.push('<');
            }
            '<' => html.push_str("&lt;"),
            '>' if is_tag => {
                is_tag = false;
                html.push('>');
            }
            '>' => html.push_str("&gt;"),
            '&' if ["amp;", "lt;", "gt;", "nbsp;"].iter().any(|entity| rest.starts_with(entity)) => html.push('&'),
            '&' => html.push_str("&amp;"),
            c => html.push(c),
        }
    }
    // XML does not know this entity, and wants a space between attributes. The form within lines is that of every formula that says nothing.
    html.replace("&nbsp;", "\u{a0}").replace("\"minsize=", "\" minsize=").replacen(" display=\"inline\"", "", 1)
}

/// Returns the parser's words for what is wrong, without the picture of the place that it draws over several lines.
fn reason(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

/// Tells whether `out` is one element whose parts are all closed in order. What an author writes in a formula must not end the post.
fn is_balanced(out: &str) -> bool {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = out;
    while let Some(at) = rest.find('<') {
        let Some(end) = rest[at..].find('>') else { return false };
        let tag = &rest[at + 1..at + end];
        rest = &rest[at + end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) || (open.is_empty() && !rest.trim().is_empty()) {
                return false;
            }
        } else if !tag.ends_with('/') {
            open.push(tag.split([' ', '\n']).next().unwrap_or_default());
        }
    }
    open.is_empty() && out.starts_with("<math")
}

/// Tells whether `$…$` between these characters may be a formula. In a text about prices or variables (`$5/$6`, `a$b$c`) it is not: a dollar
/// sign within a word or before a digit ends nothing.
pub(super) fn is_inline_formula(before: Option<char>, formula: &str, after: Option<char>) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '$' | '\\');
    !before.is_some_and(is_word) && !after.is_some_and(is_word) && !formula.trim().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MathML Core, 3.3: fractions, roots and scripts have elements of their own, and every symbol is in `mi`, `mn` or `mo`.
    #[test]
    fn formulas_become_elements() {
        let cases = [
            ("x", "<mi>x</mi>"),
            ("12", "<mn>12</mn>"),
            ("a + b", "<mo>+</mo>"),
            ("\\frac{1}{2}", "<mfrac>"),
            ("\\sqrt{2}", "<msqrt>"),
            ("x^2", "<msup><mi>x</mi><mn>2</mn></msup>"),
            ("x_i", "<msub><mi>x</mi><mi>i</mi></msub>"),
            ("\\alpha", "<mi>α</mi>"),
            ("a < b > c", "<mo>&lt;</mo>"),
            ("a \\not< b", "<mo>&lt;\u{338}</mo>"),
            ("a \\And b", "&amp;"),
            ("\\text{a b}", "<mtext>a b</mtext>"),
            ("\\bigl( x", "stretchy=\"true\" minsize="),
        ];
        for (formula, expected) in cases {
            let inline = mathml(formula, false).expect(formula);
            assert!(inline.contains(expected), "{formula}: {inline}");
            let block = mathml(formula, true).expect(formula);
            assert!(block.contains("display=\"block\""), "{formula}: {block}");
        }
    }

    #[test]
    fn wrong_formulas_have_a_reason() {
        for formula in ["\\frac{1}", "{", "}", "\\nosuch", "x^1^2", "\\begin{matrix}", "a & b", "\\left("] {
            let reason = mathml(formula, false).expect_err(formula);
            assert!(!reason.is_empty() && !reason.contains('\n'), "{formula}: {reason:?}");
        }
    }

    /// Text in a formula is text.
    #[test]
    fn no_formula_is_markup() {
        for formula in [
            "\\text{<script>alert(1)</script>}",
            "<b>",
            "\\text{a & b}",
            "\\mathrm{</math>}",
            "\\operatorname{<script>}",
            "\\gt\\lt",
            "\\mathbf{<b>}",
            "<script>alert(1)</script>",
            "\\text{\"><img src=x onerror=alert(1)>}",
        ] {
            if let Ok(html) = mathml(formula, false) {
                assert!(!html.contains("<script") && !html.contains("<b>") && !html.contains("<img"), "{html}");
                assert!(roxmltree::Document::parse(&html).is_ok(), "{html}");
            }
        }
    }

    #[test]
    fn the_work_for_a_formula_is_bounded() {
        let doubling: String = ('a'..='y').map(|c| format!("\\def\\x{c}{{\\x{0}\\x{0}}}", char::from(c as u8 + 1))).collect();
        let deep = "{".repeat(4000) + "x" + &"}".repeat(4000);
        let long = "x+".repeat(5000);
        for formula in [format!("{doubling}\\def\\xz{{z}}\\xa"), "\\def\\a{\\a\\a}\\a".to_owned(), long] {
            assert!(mathml(&formula, false).is_err());
        }
        let _ = mathml(&deep, true);
    }

    #[test]
    fn prices_and_variables_are_no_formulas() {
        let cases = [
            (None, "x", None, true),
            (Some(' '), "x", Some('.'), true),
            (Some('('), "x", Some(')'), true),
            (Some(' '), "5/", Some('6'), false),
            (Some('S'), "5 and CA", Some('7'), false),
            (Some(' '), "PATH:", Some('H'), false),
            (Some('a'), "b", Some('c'), false),
            (Some(' '), " ", Some(' '), false),
        ];
        for (before, formula, after, expected) in cases {
            assert_eq!(is_inline_formula(before, formula, after), expected, "{before:?} {formula} {after:?}");
        }
    }
}
