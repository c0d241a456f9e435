//! The cookies that keep a site from being cached: their names, and how often each of them did. Never their values.
//!
//! An answer that sets a cookie is not stored, and a request with one that the kind knows passes. Which cookie it was is what an operator has to
//! know: one plugin is enough to keep every page out. A name from a table is as the table has it. A name that an origin has made is shown without
//! what looks like a number of its own in it, so that a thousand visitors have one line. Nothing here comes from a client.
//!
//! At most [`NAMES_MAX`] names of [`NAME_BYTES_MAX`] bytes (19 KiB, for as long as the process lives) and [`COUNTED_MAX`] counts of 64 bytes. What is
//! beyond is counted as one.

use std::collections::{BTreeMap, HashMap};

use parking_lot::Mutex;
use policy::{CookieName, known_cookie};

/// Names of cookies that are remembered.
const NAMES_MAX: usize = 256;
/// Bytes of a name that are shown.
const NAME_BYTES_MAX: usize = 64;
/// Pairs of a site and a cookie that are counted apart.
const COUNTED_MAX: usize = 1_024;

/// A cookie for which answers that set it are not stored.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RefusedCookie {
    /// The name, as it is shown.
    pub(crate) name: CookieName,
    /// The rule and the name: `set-cookie PHPSESSID`.
    pub(crate) detail: &'static str,
}

/// What stands before the name in a detail.
const RULE: &str = "set-cookie ";
/// All cookies beyond the bound.
static ANOTHER: RefusedCookie = RefusedCookie { name: CookieName::whole("(another)"), detail: "set-cookie (another)" };

/// The cookies that were met, by their detail. They are few, and live as long as the process: so one is as easy to pass on as one from a table.
static MET: Mutex<BTreeMap<&'static str, &'static RefusedCookie>> = Mutex::new(BTreeMap::new());

/// Returns the cookie of this name.
pub(crate) fn refused_cookie(name: &str) -> &'static RefusedCookie {
    let detail = format!("{RULE}{}", family(name));
    let mut met = MET.lock();
    if let Some(cookie) = met.get(&*detail) {
        return cookie;
    }
    if met.len() >= NAMES_MAX {
        return &ANOTHER;
    }
    let detail: &'static str = Box::leak(detail.into_boxed_str());
    let cookie: &'static RefusedCookie = Box::leak(Box::new(RefusedCookie { name: CookieName::whole(&detail[RULE.len()..]), detail }));
    met.insert(detail, cookie);
    cookie
}

/// Returns a name as it is shown: as it is known, or without what only one visitor's has.
fn family(name: &str) -> String {
    if let Some(known) = known_cookie(name) {
        return known.name.to_owned();
    }
    let shown = |b: u8| if b.is_ascii_graphic() { char::from(b) } else { '?' };
    let is_number =
        |part: &str| part.len() >= 6 && part.bytes().any(|b| b.is_ascii_digit()) && part.bytes().all(|b| b.is_ascii_alphanumeric());
    let end = name.rfind(['_', '-', '.', ':']).map_or(0, |at| at + 1);
    let (stem, is_cut) = match name.get(end..) {
        Some(last) if is_number(last) => (&name[..end], true),
        Some(_) | None => (name, false),
    };
    let mut family: String = stem.bytes().take(NAME_BYTES_MAX - 1).map(shown).collect();
    if is_cut || stem.len() > NAME_BYTES_MAX - 1 {
        family.push('*');
    }
    family
}

/// The number of times that a cookie kept something from the cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CookieCount {
    /// Answers that were not stored, as they set it.
    pub answers: u64,
    /// Requests that passed, as they carried it.
    pub requests: u64,
}

/// The cookies of all sites that kept something from the cache.
#[derive(Debug, Default)]
pub(crate) struct Cookies(Mutex<HashMap<(u16, CookieName), CookieCount>>);

impl Cookies {
    /// Counts an answer of a site that was not stored for this cookie.
    pub(crate) fn refused(&self, site: u16, cookie: CookieName) {
        self.count(site, cookie, |count| count.answers += 1);
    }

    /// Counts a request to a site that passed by this cookie.
    pub(crate) fn passed(&self, site: u16, cookie: CookieName) {
        self.count(site, cookie, |count| count.requests += 1);
    }

    fn count(&self, site: u16, cookie: CookieName, add: impl FnOnce(&mut CookieCount)) {
        let mut counted = self.0.lock();
        let is_known = counted.len() < COUNTED_MAX || counted.contains_key(&(site, cookie));
        let cookie = if is_known { cookie } else { CookieName::whole("(another)") };
        add(counted.entry((site, cookie)).or_default());
    }

    /// Returns the cookies of all sites, by the site's number.
    pub(crate) fn all(&self) -> Vec<(u16, CookieName, CookieCount)> {
        self.0.lock().iter().map(|((site, name), count)| (*site, *name, *count)).collect()
    }

    /// Returns the cookies of a site, those that kept most from the cache first.
    pub(crate) fn of(&self, site: u16) -> Vec<(CookieName, CookieCount)> {
        let mut cookies: Vec<_> =
            self.0.lock().iter().filter(|((of, _), _)| *of == site).map(|((_, name), count)| (*name, *count)).collect();
        cookies.sort_by_key(|(name, count)| (std::cmp::Reverse(count.answers + count.requests), name.to_string()));
        cookies
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_shown_without_what_is_one_visitors() {
        for (name, shown) in [
            ("PHPSESSID", "PHPSESSID"),
            ("wfvt_3127453980", "wfvt_*"),
            ("edd_wp_session", "edd_wp_session*"),
            ("plugin_state", "plugin_state"),
            ("plugin_1a2b3c4d5e6f", "plugin_*"),
            ("plugin-12", "plugin-12"),
            ("a1b2c3d4e5f60718293a4b5c6d7e8f90", "*"),
            ("na\u{e9}me", "na??me"),
        ] {
            let cookie = refused_cookie(name);
            assert_eq!((cookie.detail.to_owned(), cookie.name.to_string()), (format!("set-cookie {shown}"), shown.to_owned()), "{name}");
        }
        assert!(refused_cookie(&"x".repeat(1_000)).detail.len() <= RULE.len() + NAME_BYTES_MAX);
    }

    #[test]
    fn an_origin_that_makes_names_costs_no_more_than_the_bound() {
        let cookies = Cookies::default();
        for n in 0..2 * COUNTED_MAX {
            let letters: String = n.to_string().bytes().map(|b| char::from(b - b'0' + b'a')).collect();
            cookies.refused(1, refused_cookie(&letters).name);
            cookies.passed(u16::try_from(n).expect("few"), CookieName::whole("a"));
        }
        assert!(MET.lock().len() <= NAMES_MAX && cookies.0.lock().len() <= COUNTED_MAX + 2 * COUNTED_MAX);
        let of_one = cookies.of(1);
        let total: u64 = of_one.iter().map(|(_, count)| count.answers).sum();
        assert_eq!(total, 2 * COUNTED_MAX as u64, "nothing is lost");
        assert!(of_one.len() <= NAMES_MAX + 2);
    }
}
