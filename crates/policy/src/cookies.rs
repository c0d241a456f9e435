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
}

impl CookieFilter {
    /// Makes a filter that ignores the cookies of a kind, and those that `ignored` names.
    #[must_use]
    pub fn new(of_kind: Cookies, ignored: &[String]) -> Self {
        Self { of_kind, ignored: Pattern::all(ignored) }
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
        self.each_name(fields, |name| found |= MEMBER_COOKIE.of.have(name));
        found
    }

    /// Calls `found` with the name of every cookie that can be read.
    pub(crate) fn each_name(&self, fields: &RequestFields<'_>, mut found: impl FnMut(&str)) {
        each_pair(fields, |name| {
            if let Ok(name) = std::str::from_utf8(name) {
                found(name.trim());
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
        each_pair(fields, |name| found(name, !std::str::from_utf8(name).is_ok_and(|name| is_ignored(name.trim()))));
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

/// Calls `found` with the name of every cookie as it came.
fn each_pair(fields: &RequestFields<'_>, mut found: impl FnMut(&[u8])) {
    fields.lines.for_each("cookie", |line| {
        for pair in line.split(|&b| b == b';').map(<[u8]>::trim_ascii).filter(|pair| !pair.is_empty()) {
            found(pair.split(|&b| b == b'=').next().unwrap_or_default());
        }
    });
}
