//! The errors of a configuration, said so that it can be put right without the manual.
//!
//! Every error names its place (a line of the file, a flag, an environment variable), shows the text, says what is wrong and what to
//! do. Errors are collected, not thrown one by one: who fixes a file wants the whole list.

use std::{fmt, ops::Range, path::PathBuf};

use super::flags;

/// The longest piece of a line that is shown: a minified file must not flood a terminal.
const SHOWN_CHARS_MAX: usize = 160;

/// One wrong value, before its place is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The problem, as one sentence without a full stop.
    pub problem: String,
    /// The value that was probably meant, shown beside the caret.
    pub meant: Option<String>,
    /// The remedy, on one line or several.
    pub remedy: String,
}

impl Mistake {
    /// Makes a mistake without a suggested value.
    pub fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { problem: problem.into(), meant: None, remedy: remedy.into() }
    }

    /// Adds the value that was probably meant. It is shown in quotation marks, ready to be copied.
    #[must_use]
    pub fn meant(mut self, value: impl fmt::Display) -> Self {
        self.meant = Some(format!("did you mean \"{value}\"?"));
        self
    }

    /// Parses the text that [`Display`](fmt::Display) wrote, because serde passes errors on as text only.
    pub(super) fn from_message(message: &str) -> Option<Self> {
        let mut parts = message.splitn(3, PARTS);
        let (problem, meant, remedy) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Self { problem: problem.to_owned(), meant: (!meant.is_empty()).then(|| meant.to_owned()), remedy: remedy.to_owned() })
    }

    /// Makes an error of the mistake by adding its place.
    #[must_use]
    pub fn at(self, place: Place) -> ConfigError {
        let (problem, remedy) = (in_words_of(&place, &self.problem), in_words_of(&place, &self.remedy));
        ConfigError { problem, place, meant: self.meant, remedy }
    }
}

/// Says what stands in ‹angle quotes› with the words of the interface that the value came from: `‹kind›` is `kind` in the file, `--kind` on the
/// command line; `‹kind static›` is `kind = \"static\"` and `--kind static`.
pub(super) fn in_words_of(place: &Place, text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('‹') {
        let Some((token, behind)) = after.split_once('›') else { break };
        out.push_str(before);
        let (key, value) = token.split_once(' ').map_or((token, None), |(key, value)| (key, Some(value)));
        let flag = flags::by_key(key);
        match (place, flag, value) {
            (Place::Flag(..), Some(flag), None) => out.push_str(flag.name),
            (Place::Flag(..), Some(flag), Some(value)) => out.push_str(&format!("{} {value}", flag.name)),
            (Place::Environment(..), Some(flag), None) => out.push_str(flag.variable),
            (Place::Environment(..), Some(flag), Some(value)) => out.push_str(&format!("{}={value}", flag.variable)),
            (_, _, None) => out.push_str(key),
            (_, _, Some(value)) => out.push_str(&format!("{key} = \"{value}\"")),
        }
        rest = behind;
    }
    out.push_str(rest);
    out
}

/// Separates the parts of a mistake on their way through serde. No configuration text contains it unescaped.
const PARTS: char = '\u{1f}';

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{PARTS}{}{PARTS}{}", self.problem, self.meant.as_deref().unwrap_or_default(), self.remedy)
    }
}

/// The place where a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A piece of the file.
    Line {
        /// The path of the file, as it was typed.
        path: PathBuf,
        /// The line number, counted from one.
        line: usize,
        /// The column in characters, counted from one.
        column: usize,
        /// The text of the whole line.
        text: String,
        /// The width in characters; at least one.
        width: usize,
    },
    /// The file as a whole.
    File(PathBuf),
    /// The command line: the flag and its value.
    Flag(&'static str, String),
    /// The environment: the variable and its value.
    Environment(&'static str, String),
    /// The default.
    Default,
}

/// One error in the configuration: the problem, its place, what was probably meant, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The problem.
    pub problem: String,
    /// The place of the value.
    pub place: Place,
    /// The value that was probably meant.
    pub meant: Option<String>,
    /// The remedy.
    pub remedy: String,
}

/// Every error that was found; never empty when returned as an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl ConfigErrors {
    /// Renders the whole report. `colour` is for terminals only.
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        let paint = if colour { Paint::TERMINAL } else { Paint::NONE };
        let reports: Vec<String> = self.0.iter().map(|error| error.render(&paint)).collect();
        reports.join("\n")
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for ConfigErrors {}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(&Paint::NONE))
    }
}

impl std::error::Error for ConfigError {}

impl ConfigError {
    fn render(&self, paint: &Paint) -> String {
        let Paint { error, frame, end } = paint;
        let gutter = match &self.place {
            Place::Line { line, .. } => line.to_string().len(),
            _ => 1,
        };
        let pad = " ".repeat(gutter);
        let mut out = format!("{error}error{end}: {}\n", printable(&self.problem));
        let meant = self.meant.as_deref().map(printable).unwrap_or_default();
        match &self.place {
            Place::Line { path, line, column, text, width } => {
                let (text, indent, width) = excerpt(text, *column, *width);
                out += &format!("{pad}{frame}-->{end} {}:{line}:{column}\n", path.display());
                out += &format!("{pad} {frame}|{end}\n");
                out += &format!("{frame}{line} |{end} {text}\n");
                out += format!("{pad} {frame}|{end} {}{error}{}{end} {meant}", " ".repeat(indent), "^".repeat(width)).trim_end();
                out += &format!("\n{pad} {frame}|{end}\n");
            }
            Place::File(path) => out += &format!("{pad}{frame}-->{end} {}\n", path.display()),
            Place::Flag(name, value) => out += &assignment(paint, "the command line", name, ' ', value, &meant),
            Place::Environment(name, value) => out += &assignment(paint, "the environment", name, '=', value, &meant),
            Place::Default => {}
        }
        for (n, line) in self.remedy.lines().enumerate() {
            let mark = if n == 0 { '=' } else { ' ' };
            out += &format!("{pad} {frame}{mark}{end} {}\n", printable(line));
        }
        out
    }
}

/// Shows a flag or a variable, with a caret under its value.
fn assignment(paint: &Paint, whence: &str, name: &str, between: char, value: &str, meant: &str) -> String {
    let Paint { error, frame, end } = paint;
    let value = printable(value);
    let (shown, indent) = if name.is_empty() { (value.clone(), 0) } else { (format!("{name}{between}{value}"), name.chars().count() + 1) };
    let carets = "^".repeat(value.chars().count().max(1));
    let under = format!("  {frame}|{end} {}{error}{carets}{end} {meant}", " ".repeat(indent));
    format!(" {frame}-->{end} {whence}\n  {frame}|{end}\n  {frame}|{end} {shown}\n{}\n  {frame}|{end}\n", under.trim_end())
}

/// Returns the part of a line that is shown, how far its caret is indented, and how wide the caret is.
fn excerpt(line: &str, column: usize, width: usize) -> (String, usize, usize) {
    // A tab is shown as one blank, so that the caret stands where it should at any tab width.
    let from = if column > SHOWN_CHARS_MAX { column - SHOWN_CHARS_MAX / 2 } else { 0 };
    let shown: String = printable(line).chars().skip(from).take(SHOWN_CHARS_MAX).collect();
    let indent = (column - 1).saturating_sub(from);
    let width = width.clamp(1, shown.chars().count().saturating_sub(indent).max(1));
    (shown.trim_end().to_owned(), indent, width)
}

/// Returns the text without control characters: a configuration file must not control the terminal on which it is shown.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c == '\t' { ' ' } else { c }).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

struct Paint {
    error: &'static str,
    frame: &'static str,
    end: &'static str,
}

impl Paint {
    const NONE: Self = Self { error: "", frame: "", end: "" };
    const TERMINAL: Self = Self { error: "\x1b[1;31m", frame: "\x1b[1;34m", end: "\x1b[0m" };
}

/// The name and the text of a configuration file. It turns byte ranges into places.
#[derive(Clone)]
pub struct Document {
    /// The path of the file, as it was typed.
    pub path: PathBuf,
    /// The whole text.
    pub text: String,
}

/// Shows the path alone: there may be secrets in the text.
impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Replaces what stands behind the key of a secret, and what an address has before its host. Each character stays one, so that a caret stays
/// where it was.
fn without_secret(line: &str) -> String {
    let value = line.find("secret").and_then(|key| Some(key + line[key..].find('=')? + 1));
    if let Some(value) = value {
        let hidden = line[value..].chars().map(|c| if c.is_whitespace() { c } else { '*' });
        return line[..value].chars().chain(hidden).collect();
    }
    let user = line.find("://").map(|scheme| scheme + 3);
    let Some((from, to)) = user.and_then(|from| Some((from, from + line[from..].rfind('@')?))) else { return line.to_owned() };
    let hidden = line[from..to].chars().map(|_| '*');
    line[..from].chars().chain(hidden).chain(line[to..].chars()).collect()
}

impl Document {
    /// Returns the place of `span` (bytes). A span over several lines is shown by its first line.
    #[must_use]
    pub fn place(&self, span: Range<usize>) -> Place {
        let bytes = self.text.as_bytes();
        let start = span.start.min(bytes.len());
        let line_start = bytes[..start].iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        let line_end = bytes[start..].iter().position(|&b| b == b'\n').map_or(bytes.len(), |at| start + at);
        let chars = |from: usize, to: usize| String::from_utf8_lossy(&bytes[from..to]).chars().count();
        let text = without_secret(String::from_utf8_lossy(&bytes[line_start..line_end]).trim_end_matches('\r'));
        Place::Line {
            path: self.path.clone(),
            line: bytes[..start].iter().filter(|&&b| b == b'\n').count() + 1,
            // At the end of a line that ends in CR LF, the caret stands behind its text, as it does where lines end in LF.
            column: chars(line_start, start).min(text.chars().count()) + 1,
            text,
            width: chars(start, span.end.clamp(start, line_end)).max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Document {
        Document { path: "seawall.toml".into(), text: text.to_owned() }
    }

    #[test]
    fn an_error_shows_its_line_with_a_caret_under_the_text() {
        let document = document("[server]\n\nlisten = [\"8080\"]\n");
        let error =
            Mistake::new("\"8080\" is not an address", "write an address and a port").meant("127.0.0.1:8080").at(document.place(20..26));
        assert_eq!(
            error.to_string(),
            "error: \"8080\" is not an address
 --> seawall.toml:3:11
  |
3 | listen = [\"8080\"]
  |           ^^^^^^ did you mean \"127.0.0.1:8080\"?
  |
  = write an address and a port
"
        );
    }

    #[test]
    fn a_key_is_called_what_it_is_called_where_it_was_written() {
        let said = |place| Mistake::new("‹kind blog› is nothing", "leave ‹kind› out, or ‹object_max›").at(place).to_string();
        let shown = said(Place::Flag("--kind", "blog".to_owned()));
        assert!(shown.contains("--kind blog is nothing") && shown.contains("leave --kind out, or object_max"), "{shown}");
        let shown = said(Place::Environment("SEAWALL_KIND", "blog".to_owned()));
        assert!(shown.contains("SEAWALL_KIND=blog is nothing") && shown.contains("leave SEAWALL_KIND out"), "{shown}");
        let shown = said(document("kind = 1").place(0..4));
        assert!(shown.contains("kind = \"blog\" is nothing") && shown.contains("leave kind out"), "{shown}");
        assert_eq!(in_words_of(&Place::Default, "a ‹ b"), "a ‹ b");
    }

    #[test]
    fn a_flag_and_a_variable_show_their_value() {
        let mistake = Mistake::new("\"12QB\" is not a size", "write a size such as \"64MiB\"");
        assert_eq!(
            mistake.clone().at(Place::Flag("--memory", "12QB".to_owned())).to_string(),
            "error: \"12QB\" is not a size
 --> the command line
  |
  | --memory 12QB
  |          ^^^^
  |
  = write a size such as \"64MiB\"
"
        );
        assert!(mistake.at(Place::Environment("SEAWALL_MEMORY", "12QB".to_owned())).to_string().contains("  | SEAWALL_MEMORY=12QB\n"));
    }

    #[test]
    fn a_line_end_has_one_column_however_it_is_written() {
        for (text, at) in [("\"ab\nx", 3), ("\"ab\r\nx", 3), ("\"ab\r\nx", 4)] {
            let Place::Line { column, width, text, .. } = document(text).place(at..at + 1) else { panic!("a line") };
            assert_eq!((column, width, text.as_str()), (4, 1, "\"ab"), "{at}");
        }
    }

    #[test]
    fn columns_count_characters_and_control_characters_are_not_printed() {
        let document = document("title = \"Grüße\", x = \"\u{1b}[2J\"\r\nlast");
        let Place::Line { line, column, width, ref text, .. } = document.place(19..20) else { panic!("a line") };
        assert_eq!((line, column, width, text.as_str()), (1, 18, 1, "title = \"Grüße\", x = \"\u{1b}[2J\""));
        let shown = Mistake::new("p", "r").at(document.place(19..20)).to_string();
        assert!(!shown.contains('\u{1b}') && !shown.contains('\r'), "{shown:?}");
    }

    #[test]
    fn places_at_the_edges_do_not_panic() {
        for text in ["", "\n", "a", "a\n", "ä"] {
            for start in 0..4 {
                for end in 0..5 {
                    let _ = Mistake::new("p", "r").at(document(text).place(start..end)).to_string();
                }
            }
        }
        let long = "x".repeat(10_000);
        let shown = Mistake::new("p", "r").at(document(&long).place(9_000..9_900)).to_string();
        assert!(shown.len() < 600, "{}", shown.len());
    }

    #[test]
    fn a_mistake_survives_its_way_through_serde() {
        for mistake in [Mistake::new("a", "b"), Mistake::new("a", "b\nc").meant("d")] {
            assert_eq!(Mistake::from_message(&mistake.to_string()), Some(mistake));
        }
        assert_eq!(Mistake::from_message("invalid type: boolean"), None);
    }

    #[test]
    fn colour_changes_nothing_but_colour() {
        let errors = ConfigErrors(vec![Mistake::new("a", "b").at(document("c = 1").place(0..1))]);
        let mut painted = errors.render(true);
        for code in [Paint::TERMINAL.error, Paint::TERMINAL.frame, Paint::TERMINAL.end] {
            painted = painted.replace(code, "");
        }
        assert_eq!(painted, errors.render(false));
    }
}
