//! Which responses get a content coding.
//!
//! A shared page is the same for everybody, so its length tells nobody anything. A page made for one person may hold a secret (a token of
//! a form) beside what somebody else chose (a search term), and then the length of the compressed page gives the secret away, letter by
//! letter (BREACH). So what passes is coded without asking only where nobody is known: see [`Passed`].

/// What is done about responses that are not shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Passed {
    /// Coded if the request carries no cookie and no credentials, or if the content is of a kind that is made for nobody: styles, scripts,
    /// fonts, pictures.
    #[default]
    Safe,
    /// Coded like all others.
    All,
    /// As the origin sends them.
    Off,
}

/// The settings of `[compress]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compress {
    /// Whether anything is coded here. If not, the origin is asked for what its clients accept, and what it codes is stored coded.
    pub enabled: bool,
    /// Media types, in lower case, without parameters; a `*` at one end stands for anything.
    pub types: Vec<String>,
    /// Shorter content stays as it is, in bytes.
    pub min_size: u64,
    /// Paths that are left alone; a `*` at the end stands for anything.
    pub exclude: Vec<String>,
    /// What is done about responses that are not shared.
    pub passed: Passed,
    /// Whether a page is the dictionary of its next version (RFC 9842).
    pub dictionaries: bool,
}

/// The types that shrink, as they are known by default.
pub const COMPRESS_TYPES: [&str; 22] = [
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

/// Less than this fits into the packet that the head goes in.
pub const COMPRESS_MIN_SIZE: u64 = 512;
/// Longer content is never coded as a whole: it would hold a thread, and a hundred megabytes, for too long.
pub const COMPRESS_MAX_SIZE: u64 = 8 << 20;

impl Default for Compress {
    fn default() -> Self {
        let types = COMPRESS_TYPES.iter().map(ToString::to_string).collect();
        Self { enabled: true, types, min_size: COMPRESS_MIN_SIZE, exclude: Vec::new(), passed: Passed::default(), dictionaries: false }
    }
}

impl Compress {
    /// Nothing is coded.
    #[must_use]
    pub fn off() -> Self {
        Self { enabled: false, ..Self::default() }
    }

    /// Whether what lies under this path may be coded at all.
    #[must_use]
    pub fn is_for(&self, path: &str) -> bool {
        self.enabled && !self.exclude.iter().any(|pattern| matches(pattern, path))
    }

    /// Whether content of this type, and of this length if it is known, is worth it. An event stream never is: each event has to go out at
    /// once, and is short.
    #[must_use]
    pub fn pays_for(&self, media_type: &str, length: Option<u64>) -> bool {
        length.is_none_or(|length| length >= self.min_size)
            && media_type != "text/event-stream"
            && self.types.iter().any(|pattern| matches(pattern, media_type))
    }

    /// Whether a response that is not shared may be coded. `personal`: its request says who asks.
    #[must_use]
    pub fn may_code_passed(&self, media_type: &str, personal: bool) -> bool {
        match self.passed {
            Passed::All => true,
            Passed::Off => false,
            Passed::Safe => !personal || is_for_nobody(media_type),
        }
    }
}

/// Content that is not written for a reader.
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
            (Passed::Safe, "text/html", true, false),
            (Passed::Safe, "application/json", true, false),
            (Passed::Safe, "text/html", false, true),
            (Passed::Safe, "text/css", true, true),
            (Passed::Safe, "image/svg+xml", true, true),
            (Passed::All, "text/html", true, true),
            (Passed::Off, "text/css", false, false),
        ];
        for (passed, media_type, personal, expected) in cases {
            assert_eq!(of(passed).may_code_passed(media_type, personal), expected, "{passed:?} {media_type} {personal}");
        }
    }
}
