//! Which cookies make a request personal.

use semantics::request::{RequestFields, Slot};

use crate::{
    names::Pattern,
    preset::{Cookies, MEMBER_COOKIE},
};

/// The cookies that do not make a request personal: those of its kind, and what the settings of the site say.
#[derive(Debug, Clone)]
pub struct CookieFilter {
    of_kind: Cookies,
    ignored: Vec<Pattern>,
    dropped: Vec<Pattern>,
}

impl CookieFilter {
    /// Makes a filter that ignores the cookies of a kind, and those that `ignored` names. Those that `dropped` names are taken off the answers to
    /// requests without them; a request that has one is its owner's.
    #[must_use]
    pub fn new(of_kind: Cookies, ignored: &[String], dropped: &[String]) -> Self {
        Self { of_kind, ignored: Pattern::all(ignored), dropped: Pattern::all(dropped) }
    }

    /// Returns whether the settings take a cookie of this name off the answers to others.
    pub(crate) fn is_dropped(&self, name: &str) -> bool {
        self.dropped.iter().any(|pattern| pattern.matches(name))
    }

    /// Returns whether any cookie in a request may be somebody's. A name that cannot be read counts.
    #[must_use]
    pub fn is_personal(&self, fields: &RequestFields<'_>) -> bool {
        // Most readers have none.
        if fields.cookie == Slot::Absent {
            return false;
        }
        let mut personal = false;
        self.each(fields, |_, is_personal| personal |= is_personal);
        personal
    }

    /// Returns whether any cookie in a request is by its name one of a Ghost, whichever kind the site is of.
    #[must_use]
    pub fn has_of_ghost(&self, fields: &RequestFields<'_>) -> bool {
        let mut found = false;
        self.each_pair(fields, |name, _| found |= MEMBER_COOKIE.of.have(name));
        found
    }

    /// Calls `found` with the name of every cookie that can be read, and with its value as it came.
    pub(crate) fn each_pair(&self, fields: &RequestFields<'_>, mut found: impl FnMut(&str, &[u8])) {
        // Most readers have none.
        if fields.cookie == Slot::Absent {
            return;
        }
        each_pair(fields, |name, value| {
            if let Ok(name) = std::str::from_utf8(name) {
                found(name.trim(), value);
            }
        });
    }

    /// Calls `found` with the name of every cookie, and with whether it may be somebody's.
    fn each(&self, fields: &RequestFields<'_>, mut found: impl FnMut(&[u8], bool)) {
        let is_ignored = |name: &str| {
            !self.of_kind.unknown_are_personal
                || self.of_kind.ignored.have(name)
                || self.ignored.iter().any(|pattern| pattern.matches(name))
        };
        each_pair(fields, |name, _| found(name, !std::str::from_utf8(name).is_ok_and(|name| is_ignored(name.trim()))));
    }

    /// Returns what [`is_personal`](Self::is_personal) goes by, in words.
    pub(crate) fn describe(&self, fields: &RequestFields<'_>) -> String {
        let (mut personal, mut ignored) = (Vec::new(), Vec::new());
        self.each(fields, |name, is_personal| {
            let names = if is_personal { &mut personal } else { &mut ignored };
            names.push(String::from_utf8_lossy(name).trim().to_owned());
        });
        match (personal.is_empty(), ignored.is_empty()) {
            (true, true) => "none".to_owned(),
            (true, false) => format!("ignored: {}", ignored.join(", ")),
            (false, true) => format!("personal: {}", personal.join(", ")),
            (false, false) => format!("personal: {}; ignored: {}", personal.join(", "), ignored.join(", ")),
        }
    }
}

/// Calls `found` with the name and the value of every cookie as they came.
fn each_pair(fields: &RequestFields<'_>, mut found: impl FnMut(&[u8], &[u8])) {
    fields.lines.for_each("cookie", |line| {
        for pair in line.split(|&b| b == b';').map(<[u8]>::trim_ascii).filter(|pair| !pair.is_empty()) {
            let end = pair.iter().position(|&b| b == b'=').unwrap_or(pair.len());
            found(&pair[..end], pair.get(end + 1..).unwrap_or_default());
        }
    });
}
