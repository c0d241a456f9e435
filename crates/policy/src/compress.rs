//! Which responses get a content coding.
//!
//! A shared page is the same for everybody, so its length tells nobody anything. A page made for one person may hold a secret (a token of
//! a form) beside what somebody else chose (a search term), and then the length of the compressed page gives the secret away, letter by
//! letter (BREACH). So what passes is coded without asking only where nobody is known: see [`CodePassed`].

/// The responses that are compressed although they are not shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CodePassed {
    /// Compress if the request carries no cookie and no credentials, or if the content is of a kind that is never personal: styles,
    /// scripts, fonts, pictures.
    #[default]
    Safe,
    /// Compress them like all others.
    All,
    /// Pass them on as the origin sends them.
    Off,
}

/// The settings of `[compress]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compress {
    /// Whether content is compressed here. If not, the origin is asked for what its clients accept, and compressed content is stored as it
    /// came.
    pub enabled: bool,
    /// The media types to compress, in lower case, without parameters; a `*` at one end stands for anything.
    pub types: Vec<String>,
    /// The least length in bytes: shorter content stays as it is.
    pub min_size: u64,
    /// The paths that are not compressed; a `*` at the end stands for anything.
    pub exclude: Vec<String>,
    /// The responses that are compressed although they are not shared.
    pub passed: CodePassed,
    /// Whether a page is the dictionary of its next version (RFC 9842).
    pub dictionaries: bool,
}

/// The media types that are compressed by default.
const COMPRESS_TYPES: [&str; 22] = [
    "text/*",
    "*+json",
    "*+xml",
    "*+text",
    "application/json",
    "application/xml",
    "application/javascript",
    "application/x-javascript",
    "application/ecmascript",
    "application/x-ndjson",
    "application/yaml",
    "application/toml",
    "application/wasm",
    "application/rtf",
    "application/vnd.ms-fontobject",
    "application/x-font-ttf",
    "font/ttf",
    "font/otf",
    "font/collection",
    "image/bmp",
    "image/x-icon",
    "image/vnd.microsoft.icon",
];

/// The default least length: less than this fits into the packet with the head.
pub const COMPRESS_MIN_SIZE: u64 = 512;
/// The greatest length of content that is compressed as a whole: longer content would hold a thread, and a hundred megabytes, for too long.
pub const COMPRESS_MAX_SIZE: u64 = 8 << 20;

impl Default for Compress {
    fn default() -> Self {
        let types = COMPRESS_TYPES.iter().map(ToString::to_string).collect();
        Self { enabled: true, types, min_size: COMPRESS_MIN_SIZE, exclude: Vec::new(), passed: CodePassed::default(), dictionaries: false }
    }
}

impl Compress {
    /// Returns settings that compress nothing.
    #[must_use]
    pub fn off() -> Self {
        Self { enabled: false, ..Self::default() }
    }

    /// Returns whether content under this path may be compressed at all.
    #[must_use]
    pub fn is_for(&self, path: &str) -> bool {
        self.enabled && !self.exclude.iter().any(|pattern| matches(pattern, path))
    }

    /// Returns whether content of this type, and of this length if it is known, is worth compressing. An event stream never is: each event
    /// has to be sent at once, and is short.
    #[must_use]
    pub fn pays_for(&self, media_type: &str, length: Option<u64>) -> bool {
        length.is_none_or(|length| length >= self.min_size)
            && media_type != "text/event-stream"
            && self.types.iter().any(|pattern| matches(pattern, media_type))
    }

    /// Returns whether a response that is not shared may be compressed. `personal` says that its request shows who asks.
    #[must_use]
    pub fn may_code_passed(&self, media_type: &str, personal: bool) -> bool {
        match self.passed {
            CodePassed::All => true,
            CodePassed::Off => false,
            CodePassed::Safe => !personal || is_for_nobody(media_type),
        }
    }
}

/// Returns whether content of this type is never personal.
fn is_for_nobody(media_type: &str) -> bool {
    let is = |pattern: &&str| matches(pattern, media_type);
    ["text/css", "text/javascript", "application/javascript", "application/x-javascript", "application/wasm", "font/*", "image/*"]
        .iter()
        .any(is)
}

fn matches(pattern: &str, value: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(end), _) => value.ends_with(end),
        (None, Some(beginning)) => value.starts_with(beginning),
        (None, None) => pattern == value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pays() {
        let rules = Compress::default();
        let cases = [
            ("text/html", Some(512), true),
            ("text/html", Some(511), false),
            ("text/html", None, true),
            ("text/event-stream", None, false),
            ("application/activity+json", Some(4_000), true),
            ("application/rss+xml", Some(4_000), true),
            ("image/svg+xml", Some(4_000), true),
            ("application/wasm", Some(4_000), true),
            ("font/ttf", Some(4_000), true),
            ("font/woff2", Some(4_000), false),
            ("image/png", Some(4_000), false),
            ("application/octet-stream", Some(4_000), false),
            ("", Some(4_000), false),
        ];
        for (media_type, length, pays) in cases {
            assert_eq!(rules.pays_for(media_type, length), pays, "{media_type} {length:?}");
        }
    }

    #[test]
    fn paths_are_left_alone() {
        let rules = Compress { exclude: vec!["/account/*".to_owned(), "/search".to_owned()], ..Compress::default() };
        let cases = [("/", true), ("/account/", false), ("/account/a", false), ("/account", true), ("/search", false), ("/search/", true)];
        for (path, expected) in cases {
            assert_eq!(rules.is_for(path), expected, "{path}");
        }
        assert!(!Compress::off().is_for("/"));
    }

    #[test]
    fn a_page_for_one_person_is_not_coded_without_asking() {
        let of = |passed| Compress { passed, ..Compress::default() };
        let cases = [
            (CodePassed::Safe, "text/html", true, false),
            (CodePassed::Safe, "application/json", true, false),
            (CodePassed::Safe, "text/html", false, true),
            (CodePassed::Safe, "text/css", true, true),
            (CodePassed::Safe, "image/svg+xml", true, true),
            (CodePassed::All, "text/html", true, true),
            (CodePassed::Off, "text/css", false, false),
        ];
        for (passed, media_type, personal, expected) in cases {
            assert_eq!(of(passed).may_code_passed(media_type, personal), expected, "{passed:?} {media_type} {personal}");
        }
    }
}
