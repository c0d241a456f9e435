//! Which paths are protected, however they are spelt.
//!
//! What guards a path has to read it at least as generously as whatever answers behind: one that takes `/Admin`, `//admin`, `/admin;x` or
//! `/%61dmin` for `/admin` would else be asked past the guard. Nobody knows what is behind, so a path is protected as soon as *any* of its
//! readings leads through a protected one. That is too much for some odd path now and then, which then asks for a password that it need
//! not; the other way round a secret would be out.

use std::{borrow::Cow, fmt};

use unicode_normalization::UnicodeNormalization as _;

/// How often a path is decoded. What is still encoded then is protected: no page's address is.
const ROUNDS: usize = 4;

/// The scripts that a path may have on its way. A path with more is protected: no page's address is one.
const SCRIPTS_MAX: usize = 2;

/// The segments that a path may have. One with more is protected for the same reason: to read it in all ways takes its time.
const SEGMENTS_MAX: usize = 256;

/// Behind one of these, some servers see no path any more: parameters, queries, fragments, streams of a file, the end of a C string.
const ENDS: [char; 5] = [';', '?', '#', ':', '\0'];

/// The paths for which a password is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Protected(Vec<Vec<String>>);

/// A path that cannot be protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadPath {
    /// It does not begin with `/`.
    Relative,
    /// It has a `*`, `?` or `#`.
    Pattern,
    /// It has a `.` or `..` in it.
    Dots,
}

impl fmt::Display for BadPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Relative => "a path begins with /",
            Self::Pattern => "a path here has no *, ? or #: everything below it is meant anyway",
            Self::Dots => "a path here has no . or .. in it",
        })
    }
}

impl std::error::Error for BadPath {}

impl Protected {
    /// Selects each of these paths and everything below it; `/` is the whole site. `/drafts` covers `/drafts.html` too, and the other way round,
    /// as one may be served for the other; for the same reason `/drafts/index.html` stands for `/drafts`.
    ///
    /// # Errors
    /// [`BadPath`], for the first that is one.
    pub fn new<'a>(paths: impl IntoIterator<Item = &'a str>) -> Result<Self, BadPath> {
        paths.into_iter().map(root).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the segments of each path that is protected with everything below it, in the form in which requests are compared with them.
    pub fn roots(&self) -> impl Iterator<Item = &[String]> {
        self.0.iter().map(Vec::as_slice)
    }

    /// Returns whether no path is protected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a path is protected. It should be in the form in which the origin gets it (RFC 3986 §6.2.2).
    #[must_use]
    pub fn covers(&self, path: &str) -> bool {
        if self.0.is_empty() {
            return false;
        }
        if self.0.iter().any(Vec::is_empty) {
            return true;
        }
        let mut text = Cow::Borrowed(path.as_bytes());
        for _ in 0..=ROUNDS {
            if is_overlong(&text) {
                return true;
            }
            let folded = folded(&text);
            let is_long = folded.bytes().filter(|b| matches!(b, b'/' | b'\\')).count() > SEGMENTS_MAX;
            if is_long || self.is_on_the_way(&folded) {
                return true;
            }
            match decoded(&text) {
                Some(decoded) => text = Cow::Owned(decoded),
                None => return false,
            }
        }
        true
    }

    /// Returns whether it is uncertain what the path means to the server behind: it has a `%` that begins no escape (RFC 3986 §2.1), which one
    /// server takes for itself, another one skips, and a third one reads as the `%u0061` of IIS. Where a part of the site is protected, such a
    /// path is to be refused; no honest client sends one.
    #[must_use]
    pub fn is_in_doubt(&self, path: &str) -> bool {
        let is_a_part = !self.0.is_empty() && !self.0.iter().any(Vec::is_empty);
        let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
        let begins_none = |rest: &[u8]| !is_digit(rest.first()) || !is_digit(rest.get(1));
        is_a_part && path.as_bytes().iter().enumerate().any(|(at, &b)| b == b'%' && begins_none(&path.as_bytes()[at + 1..]))
    }

    /// Returns whether a walk along the path passes through a protected one, wherever it ends: one server takes `..` for a way back, the next one
    /// for a name.
    fn is_on_the_way(&self, path: &str) -> bool {
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'-' | b'_' | b'.');
        if path.bytes().all(is_plain) && !path.contains("//") && !path.contains("./") && !path.contains("/.") && !path.ends_with('.') {
            return self.is_walked_through(path, Habits::default());
        }
        let readings = [Some(path), behind_host(path)];
        readings.into_iter().flatten().any(|path| Habits::all().any(|habits| self.is_walked_through(path, habits)))
    }

    fn is_walked_through(&self, path: &str, habits: Habits) -> bool {
        let mut walks = vec![Walk { roots: self.0.iter().map(Vec::as_slice).collect(), stack: Vec::new() }];
        let separates = |c| c == '/' || (habits.backslashes && c == '\\');
        for segment in path.strip_prefix(separates).unwrap_or(path).split(separates) {
            match habits.read(segment) {
                Segment::None => {}
                Segment::Back => {
                    for walk in &mut walks {
                        walk.stack.pop();
                    }
                }
                Segment::Name(name) => {
                    let behind = is_script(name).then(|| Walk::behind_script(&walks));
                    for walk in &mut walks {
                        walk.stack.push(name);
                    }
                    if walks.iter().any(Walk::has_arrived) {
                        return true;
                    }
                    if behind.is_some() && walks.len() > SCRIPTS_MAX {
                        return true;
                    }
                    walks.extend(behind);
                }
            }
        }
        false
    }
}

/// A way along a path, from the top of the site or from behind a script on it.
struct Walk<'a> {
    /// The paths at which it must not arrive.
    roots: Vec<&'a [String]>,
    /// Where it is.
    stack: Vec<&'a str>,
}

impl<'a> Walk<'a> {
    /// Begins behind a script, to which what follows is a path (RFC 3875 §4.1.5): `/drafts` in `/index.php/drafts`. It may mean the path from the top, or
    /// from any folder that the script is in: software in `/blog/wp` may have its pages below `/blog`.
    fn behind_script(walks: &[Self]) -> Self {
        let mut roots: Vec<&[String]> = Vec::new();
        for walk in walks {
            for &root in &walk.roots {
                let common = root.iter().zip(&walk.stack).take_while(|(one, other)| one == *other).count();
                let left = (0..=common).map(|above| &root[above..]).filter(|left| !left.is_empty());
                roots.extend(left.filter(|left| !roots.contains(left)).collect::<Vec<_>>());
            }
        }
        Self { roots, stack: Vec::new() }
    }

    fn has_arrived(&self) -> bool {
        self.roots.iter().any(|root| leads_to(&self.stack, root))
    }
}

/// Describes how a server reads a path. Together they matter: `/a//../b` is `/b` to one that skips empty segments, and `/a/b` to one that does
/// not.
#[derive(Debug, Clone, Copy, Default)]
struct Habits {
    /// Whether backslashes separate segments.
    backslashes: bool,
    /// Whether a segment ends at one of [`ENDS`].
    ends: bool,
    /// Whether dots and spaces around a name are left out, as on Windows.
    trims: bool,
    /// Whether empty segments are skipped.
    merges: bool,
}

enum Segment<'a> {
    None,
    Back,
    Name(&'a str),
}

impl Habits {
    fn all() -> impl Iterator<Item = Self> {
        (0..1 << 4_u8).map(|bits| Self { backslashes: bits & 1 != 0, ends: bits & 2 != 0, trims: bits & 4 != 0, merges: bits & 8 != 0 })
    }

    fn read(self, segment: &str) -> Segment<'_> {
        let end = if self.ends { segment.find(ENDS).unwrap_or(segment.len()) } else { segment.len() };
        let name = if self.trims { segment[..end].trim_matches(' ') } else { &segment[..end] };
        match name {
            ".." => return Segment::Back,
            "." => return Segment::None,
            _ => {}
        }
        match if self.trims { name.trim_end_matches(['.', ' ']) } else { name } {
            "" if self.merges => Segment::None,
            name => Segment::Name(name),
        }
    }
}

/// Returns whether a name is that of a program that a server may run, and hand what stands behind it in the path.
fn is_script(name: &str) -> bool {
    let Some((_, extension)) = name.rsplit_once('.') else { return false };
    let is_php = extension.strip_prefix("php").is_some_and(|version| version.len() <= 1 && version.bytes().all(|b| b.is_ascii_digit()));
    is_php
        || matches!(
            extension,
            "phtml"
                | "pht"
                | "phar"
                | "shtml"
                | "cgi"
                | "fcgi"
                | "pl"
                | "psgi"
                | "py"
                | "rb"
                | "sh"
                | "asp"
                | "aspx"
                | "ashx"
                | "jsp"
                | "cfm"
                | "cfml"
        )
}

/// Returns the path that a server sees if it reads the whole as a reference: behind two slashes they see a host (RFC 3986 §4.2), and as browsers
/// do, behind more of them and behind backslashes, too. `new URL(request.url, base)` is how many applications find their path.
fn behind_host(path: &str) -> Option<&str> {
    let separates = |c| matches!(c, '/' | '\\');
    let rest = path.trim_start_matches(separates);
    (path.len() - rest.len() >= 2).then(|| rest.find(separates).map_or("/", |at| &rest[at..]))
}

/// Returns whether the last step came to `root`, or to a file of its name.
fn leads_to(stack: &[&str], root: &[String]) -> bool {
    let (Some((last, above)), Some((root_last, root_above))) = (stack.split_last(), root.split_last()) else { return false };
    let is_same = |rest: &str| rest.is_empty() || rest.starts_with('.');
    above.len() == root_above.len()
        && above.iter().zip(root_above).all(|(one, other)| one == other)
        && last.strip_prefix(root_last.as_str()).is_some_and(is_same)
}

fn root(path: &str) -> Result<Vec<String>, BadPath> {
    if !path.starts_with('/') {
        return Err(BadPath::Relative);
    }
    if path.contains(['*', '?', '#']) {
        return Err(BadPath::Pattern);
    }
    let mut text = Cow::Borrowed(path.as_bytes());
    while let Some(decoded) = decoded(&text) {
        text = Cow::Owned(decoded);
    }
    let mut root = Vec::new();
    for segment in folded(&text).split(['/', '\\']) {
        match (Habits { backslashes: true, ends: true, trims: true, merges: true }).read(segment) {
            Segment::None if segment.is_empty() => {}
            Segment::None | Segment::Back => return Err(BadPath::Dots),
            Segment::Name(name) => root.push(name.to_owned()),
        }
    }
    let name = root.last().and_then(|last| last.strip_suffix(".html").or_else(|| last.strip_suffix(".htm")));
    if let Some(name) = name.filter(|name| !name.is_empty()).map(str::to_owned) {
        root.pop();
        if name != "index" {
            root.push(name);
        }
    }
    Ok(root)
}

/// Decodes percent-escapes once, IIS's `%u0061` included; returns `None` if there is nothing to decode.
fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    let number = |digits: &[u8]| digits.iter().try_fold(0, |number, &digit| Some(number * 16 + char::from(digit).to_digit(16)?));
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let escape = || {
            if *first != b'%' {
                return None;
            }
            if let Some((digits, behind)) = after.split_at_checked(2)
                && let Some(octet) = number(digits).and_then(|octet| u8::try_from(octet).ok())
            {
                return Some((Escaped::Octet(octet), behind));
            }
            let (digits, behind) = after.strip_prefix(b"u").or_else(|| after.strip_prefix(b"U"))?.split_at_checked(4)?;
            Some((Escaped::Char(char::from_u32(number(digits)?).unwrap_or(char::REPLACEMENT_CHARACTER)), behind))
        };
        match escape() {
            Some((escaped, behind)) => {
                match escaped {
                    Escaped::Octet(octet) => out.push(octet),
                    Escaped::Char(char) => out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
                }
                rest = behind;
            }
            None => {
                out.push(*first);
                rest = after;
            }
        }
    }
    (out.len() != text.len()).then_some(out)
}

/// The octet or the character that an escape stands for.
enum Escaped {
    Octet(u8),
    Char(char),
}

/// Returns whether a lenient decoder of UTF-8 finds ASCII where a strict one finds none: `%C0%AF` for a slash, or `%C1%24`, from one that does
/// not look whether a byte continues anything; and the longer forms of old, of five and six bytes.
fn is_overlong(text: &[u8]) -> bool {
    text.windows(2).any(|pair| {
        matches!(pair, [0xC0 | 0xC1, _] | [0xE0, 0x80..=0x9F] | [0xF0, 0x80..=0x8F] | [0xF8, 0x80..=0x87] | [0xFC, 0x80..=0x83])
    })
}

/// Folds text to one case and one form of Unicode (full-width letters and the like become plain ones), and removes control characters.
fn folded(text: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(text);
    let is_plain = |b: u8| b.is_ascii() && !b.is_ascii_uppercase() && !b.is_ascii_control();
    if text.bytes().all(is_plain) {
        return text;
    }
    // First up, then down: some letters have one of the two alone.
    let cased = text.nfkc().flat_map(char::to_uppercase).flat_map(char::to_lowercase);
    Cow::Owned(cased.nfkc().filter(|&c| c == '\0' || !(c.is_control() || is_ignorable(c))).collect())
}

/// Returns whether some file systems and comparisons of text skip this character (Unicode's `Default_Ignorable_Code_Point`): soft hyphens,
/// joiners, marks of direction, variation selectors, tags.
const fn is_ignorable(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, prop_assert, proptest};

    use super::*;

    fn protected(paths: &[&str]) -> Protected {
        Protected::new(paths.iter().copied()).expect("paths")
    }

    /// A WordPress in a folder of the site has its pages below that folder.
    #[test]
    fn what_a_script_in_a_folder_shows_is_below_the_folder() {
        let protected = protected(&["/blog/drafts"]);
        for path in ["/blog/index.php/drafts/x", "/blog/index.php/blog/drafts", "/blog/wp/index.php/drafts", "/blog/a/b/c/index.php/drafts"]
        {
            assert!(protected.covers(path), "{path}");
        }
        assert!(!protected.covers("/index.php/drafts") && !protected.covers("/blog/index.php/other"));
    }

    /// Nobody's page has such an address, and to read it in all ways would take the time of others.
    #[test]
    fn a_path_of_very_many_segments_is_protected() {
        let protected = protected(&["/admin"]);
        assert!(!protected.covers(&"/a".repeat(SEGMENTS_MAX)));
        assert!(protected.covers(&"/a".repeat(SEGMENTS_MAX + 1)) && protected.covers(&"%2fa".repeat(SEGMENTS_MAX + 1)));
        assert!(protected.covers("/a.php/b.php/c.php/d") && !protected.covers("/a.php/b.php/d"));
    }

    /// Each of these means `/admin`, or something below it, to some server.
    #[test]
    fn no_spelling_leads_past() {
        let protected = protected(&["/admin"]);
        let spellings = [
            "/admin",
            "/admin/",
            "/admin/secret",
            "/admin/secret.html?x",
            // Case.
            "/Admin",
            "/ADMIN/x",
            "/aDmIn",
            // Empty segments.
            "//admin",
            "///admin//x",
            "/./admin",
            "/x/../admin",
            // Percent-encoding, once and more often.
            "/%61dmin",
            "/%41DMIN",
            "/adm%69n/x",
            "/%2561dmin",
            "/%252561dmin",
            "/%25252561dmin",
            "/%2525252525252561dmin",
            "/admin%2Fsecret",
            "/admin%5Csecret",
            "/%2Fadmin",
            "/%2F%2Fadmin",
            "/x%2F..%2Fadmin",
            "/x/..%2fadmin",
            "/x/%2e%2e/admin",
            "/x/%2e%2e%2fadmin",
            "/x/.%2e/admin",
            "/x/%252e%252e/admin",
            "/%2e/admin",
            "/admin/..%2f..%2fpublic",
            "/admin/..%2fpublic",
            "/admin%2f..%2fpublic",
            // Backslashes.
            "\\admin",
            "/\\admin",
            "/x\\..\\admin",
            "/x/..\\admin",
            "/admin\\secret",
            // Parameters, as Java's servers have them.
            "/admin;x=1",
            "/admin;x=1/secret",
            "/;/admin",
            "/;x/admin",
            "/x/..;/admin",
            "/x/..;a=b/admin",
            "/x/%2e%2e;/admin",
            "/admin%3Bx",
            // What ends a path elsewhere.
            "/admin%00",
            "/admin%00.html",
            "/admin%3Fx",
            "/admin%23x",
            "/admin::$DATA",
            "/admin:x",
            // Dots, spaces and control characters.
            "/admin.",
            "/admin..",
            "/admin%20",
            "/admin%20.",
            "/%20admin",
            "/.../admin",
            "/adm%09in",
            "/admin%0a",
            "/admin%0d%0a",
            "/%7Fadmin",
            "/x/..%20/admin",
            // What is a way back to one may be a name to the next.
            "//;\\x/admin",
            // The same file under other names.
            "/admin.html",
            "/admin.htm",
            "/admin.HTML",
            "/admin.html.gz",
            "/admin.br",
            "/admin.php",
            "/admin/index.html",
            // Unicode: full width, other forms of letters, what has one case alone.
            "/%EF%BD%81dmin",
            "/%EF%BC%A1DMIN",
            "/adm%C4%B1n",
            "/%E2%93%90dmin",
            "/%EF%BC%8Fadmin",
            "/x/%EF%BC%8E%EF%BC%8E/admin",
            "/x/%E2%80%A4%E2%80%A4/admin",
            // Overlong UTF-8: a slash, a dot, an "a".
            "/%C0%AFadmin",
            "/x/%C0%AE%C0%AE/admin",
            "/%C1%A1dmin",
            "/%E0%80%AFadmin",
            "/%F0%80%80%AFadmin",
            "/%25C0%25AFadmin",
            "/%F8%80%80%80%AFadmin",
            "/%FC%80%80%80%80%AFadmin",
            // A byte that continues nothing, read as if it did: an "a".
            "/%C1%21dmin",
            // IIS's escapes, and those behind others.
            "/%u0061dmin",
            "/%U0061dmin",
            "/%25u0061dmin",
            "/x%u002f..%u002Fadmin",
            "/%uff41dmin",
            // A host, to those who read a reference.
            "//x/admin",
            "//x:80@y/admin/secret",
            "///x/admin",
            "/\\x/admin",
            "\\\\x\\admin",
            // Behind a script, to which it is the path.
            "/index.php/admin",
            "/INDEX.PHP/Admin/x",
            "/x/../index.php/admin",
            "/index.php//admin",
            "/index.php;x/admin",
            "/index%2Ephp%2Fadmin",
            "/a/index.php/admin",
            "/a/index.php/../admin",
            "/index.php/index.php/admin",
            "/cgi-bin/blog.cgi/admin",
            // What is not seen.
            "/ad%C2%ADmin",
            "/ad%E2%80%8Bmin",
            "/%EF%BB%BFadmin",
            "/ad%F3%A0%80%A1min",
        ];
        for path in spellings {
            assert!(protected.covers(path), "{path}");
        }
    }

    /// `..` takes back what this server counts as a segment: an empty one, or one of dots.
    #[test]
    fn ways_back_are_counted_in_every_way() {
        let protected = protected(&["/a/b"]);
        for path in ["/a//..%2fb", "/a/...%2f..%2fb", "/a/;x%2f..%2fb", "/a/%20%2f..%2fb", "/a\\x%2f..%2f..%2fa%2fb", "/a/x;%5c..%2f..%2fb"]
        {
            assert!(protected.covers(path), "{path}");
        }
    }

    #[test]
    fn a_broken_escape_leaves_a_path_in_doubt() {
        let protected = protected(&["/admin"]);
        for path in ["/%", "/%4", "/%u0061dmin", "/%zz", "/a%/b", "/%%61", "/100%25%", "/%+1"] {
            assert!(protected.is_in_doubt(path), "{path}");
            assert!(!Protected::default().is_in_doubt(path) && !self::protected(&["/"]).is_in_doubt(path), "{path}");
        }
        for path in ["/", "/100%25", "/%2561dmin", "/%25u0061", "/%ff", "*"] {
            assert!(!protected.is_in_doubt(path), "{path}");
        }
    }

    #[test]
    fn other_paths_are_open() {
        let protected = protected(&["/admin", "/a/b"]);
        for path in [
            "/",
            "/adminx",
            "/admi",
            "/administrator",
            "/admin-old",
            "/x/admin",
            "/a",
            "/a/",
            "/a/bc",
            "/b",
            "/b/a",
            "/%",
            "/100%25",
            "/%zz",
            "/caf%C3%A9",
            "/caf%E9",
            "/a;b/c",
            "/x?/admin",
            "/%E4%BD%A0/admin",
            "/a/x/../c",
            "//x/y",
            "//x",
            "/y//admin",
            "/%u00e4dmin",
            "/index.php",
            "/index.php/x/admin",
            "/index.phpx/admin",
            "/a/index.php/c",
            "/x.php/y.php/z",
            "/v1.2/x/admin",
        ] {
            assert!(!protected.covers(path), "{path}");
        }
    }

    #[test]
    fn what_is_protected_may_be_written_in_many_ways() {
        for (written, covered) in [
            ("/", "/anything"),
            ("/index.html", "/anything"),
            ("//", "/"),
            ("/Drafts/", "/drafts"),
            ("/drafts.html", "/drafts"),
            ("/drafts.html", "/drafts/"),
            ("/drafts/index.html", "/drafts/x"),
            ("/%C3%84rger", "/%C3%A4rger/x"),
            ("/\u{c4}rger", "/A%CC%88rger"),
            ("/a b", "/a%20b"),
            ("/.git", "/.git/config"),
            ("/.well-known/x", "/.well-known/x"),
        ] {
            assert!(protected(&[written]).covers(covered), "{written} {covered}");
        }
        assert!(protected(&["/"]).covers("*"));
        assert!(!protected(&["/.git"]).covers("/git"));
        assert!(!Protected::default().covers("/"));
        for (written, why) in [
            ("", BadPath::Relative),
            ("drafts", BadPath::Relative),
            ("/drafts/*", BadPath::Pattern),
            ("/a?b", BadPath::Pattern),
            ("/a/../b", BadPath::Dots),
            ("/a/./b", BadPath::Dots),
        ] {
            assert_eq!(Protected::new([written]), Err(why), "{written}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// However any of the letters is encoded, how often, and in which case: what is below a protected path stays protected.
        #[test]
        fn encoding_leads_nowhere_else(choices in proptest::collection::vec(0_u8..4, 8), tail in "[a-z/%;.2fFeE]{0,12}") {
            let mut path = String::from("/");
            for (letter, choice) in "secret-x".chars().zip(choices) {
                path += &match choice {
                    0 => letter.to_string(),
                    1 => letter.to_uppercase().to_string(),
                    2 => format!("%{:02x}", u32::from(letter)),
                    _ => format!("%25{:02X}", u32::from(letter)),
                };
            }
            path = path + "/" + &tail;
            prop_assert!(protected(&["/secret-x"]).covers(&path), "{}", path);
        }
    }
}
