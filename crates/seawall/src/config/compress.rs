//! `[compress]`: which responses get a content coding.

use std::str::FromStr;

use policy::{COMPRESS_MAX_SIZE, COMPRESS_MIN_SIZE, CodePassed, Compress};
use toml::Spanned;

use super::{
    error::Mistake,
    file::{self, Listed},
    resolve::Resolver,
    sites::first,
    units::ByteSize,
    words::choose,
};

/// The largest number of types or paths in one list. Each is compared with every response that is stored or passed.
const PATTERNS_MAX: usize = 64;

/// A media type or a pattern: `text/html`, `text/*`, `*+json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypePattern(pub String);

impl FromStr for TypePattern {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let name = text.to_ascii_lowercase();
        let inner = name.strip_prefix('*').or_else(|| name.strip_suffix('*')).unwrap_or(&name);
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+/".contains(&byte);
        let slashes = inner.matches('/').count();
        let sound = !inner.is_empty() && inner.bytes().all(is_token) && (slashes == 1 || slashes == 0 && name.starts_with("*+"));
        if sound {
            return Ok(Self(name));
        }
        Err(Mistake::new(
            format!("\"{text}\" is not a media type"),
            "write it without parameters: \"text/html\", \"text/*\" for all that begin so, \"*+json\" for all that end so",
        ))
    }
}

/// A path, or a pattern for all paths that begin so: `/search`, `/account/*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern(pub String);

impl FromStr for PathPattern {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let path = text.strip_suffix('*').unwrap_or(text);
        if path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic() && !b"*?#".contains(&byte)) {
            return Ok(Self(text.to_owned()));
        }
        Err(Mistake::new(
            format!("\"{text}\" is not a path"),
            "write it as in the request, without a query: \"/search\", or \"/account/*\" for all that begin so",
        ))
    }
}

impl FromStr for PassedWord {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        choose(text, "rule for passed responses", &[("safe", CodePassed::Safe), ("all", CodePassed::All), ("off", CodePassed::Off)])
            .map(Self)
    }
}

/// The value of `passed`: `safe`, `all` or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassedWord(pub CodePassed);

impl Resolver<'_> {
    /// Resolves the settings of one site, from its own section and the common one.
    pub(super) fn compress(&mut self, layers: [&file::Compress; 2]) -> Compress {
        let min_size = self.layered(layers.map(|layer| &layer.min_size));
        let ByteSize(min_size) = self.within("min_size", min_size, ByteSize(COMPRESS_MIN_SIZE), ByteSize(0)..=ByteSize(COMPRESS_MAX_SIZE));
        let (types, exclude) = (layers.map(|layer| &layer.types), layers.map(|layer| &layer.exclude));
        self.at_most_patterns(types);
        self.at_most_patterns(exclude);
        let texts = |list: Option<&Spanned<Vec<Spanned<PathPattern>>>>| {
            list.into_iter().flat_map(Spanned::get_ref).map(|path| path.get_ref().0.clone()).collect()
        };
        let preset = Compress::default();
        Compress {
            enabled: first(layers.map(|layer| &layer.enabled)).is_none_or(|enabled| *enabled.get_ref()),
            types: first(types).map_or(preset.types, |list| list.get_ref().iter().map(|name| name.get_ref().0.clone()).collect()),
            min_size,
            exclude: texts(first(exclude)),
            passed: first(layers.map(|layer| &layer.passed)).map_or(preset.passed, |passed| passed.get_ref().0),
            dictionaries: first(layers.map(|layer| &layer.dictionaries)).is_some_and(|dictionaries| *dictionaries.get_ref()),
        }
    }

    fn at_most_patterns<T>(&mut self, layers: [&Listed<T>; 2]) {
        if let Some(list) = first(layers).filter(|list| list.get_ref().len() > PATTERNS_MAX) {
            let problem = format!("{} patterns are too many", list.get_ref().len());
            self.wrong_at(Mistake::new(problem, format!("possible: up to {PATTERNS_MAX}; a * stands for many")), list.span());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_paths() {
        for good in ["text/html", "text/*", "*+json", "Application/XML", "application/vnd.api+json"] {
            assert_eq!(good.parse(), Ok(TypePattern(good.to_ascii_lowercase())));
        }
        for bad in ["", "*", "html", "text/html; charset=utf-8", "*/*", "*json", "text/html/x"] {
            assert!(bad.parse::<TypePattern>().is_err(), "{bad}");
        }
        for good in ["/", "/search", "/account/*"] {
            assert_eq!(good.parse(), Ok(PathPattern(good.to_owned())));
        }
        for bad in ["", "search", "/a?b", "/a b", "/*/b", "*"] {
            assert!(bad.parse::<PathPattern>().is_err(), "{bad}");
        }
    }
}
