//! The cookies of one visitor (RFC 6265).
//!
//! A jar does what decides which cookies a server gets back: name, value, domain, path, lifetime and `Secure`. There is no list of public suffixes: a
//! run asks servers that the user named, so a site that sets a cookie for `.co.uk` reaches nobody else. `SameSite` and `HttpOnly` concern scripts and
//! other sites, and there are none here.

use super::{Origin, date::read_date};

/// The most cookies of a host, as browsers keep at least (RFC 6265 §6.1). One more pushes the oldest out.
const COOKIES_MAX: usize = 50;

/// The longest cookie: name, value and attributes.
const COOKIE_BYTES_MAX: usize = 4 << 10;

/// The cookies of one visitor: 200 KB at most for each host.
#[derive(Debug, Default)]
pub(crate) struct Jar {
    cookies: Vec<Cookie>,
}

#[derive(Debug)]
struct Cookie {
    /// The host that set it, or the domain it is for.
    domain: String,
    /// Whether that host alone gets it.
    host_only: bool,
    path: String,
    name: String,
    value: String,
    secure: bool,
    /// Seconds since 1970.
    expires: Option<i64>,
}

impl Jar {
    /// Takes the value of a `Set-Cookie` that came from `origin` for `target`. `now` is in seconds since 1970.
    pub(crate) fn set(&mut self, origin: &Origin, target: &str, value: &[u8], now: i64) {
        let Some(cookie) = read(origin, target, value, now) else { return };
        let same = |other: &Cookie| (&other.name, &other.domain, &other.path) == (&cookie.name, &cookie.domain, &cookie.path);
        let at = self.cookies.iter().position(same);
        if cookie.expires.is_some_and(|expires| expires <= now) {
            if let Some(at) = at {
                self.cookies.remove(at);
            }
            return;
        }
        if let Some(at) = at {
            self.cookies[at] = cookie;
            return;
        }
        if self.cookies.iter().filter(|other| other.domain == cookie.domain).count() >= COOKIES_MAX
            && let Some(oldest) = self.cookies.iter().position(|other| other.domain == cookie.domain)
        {
            self.cookies.remove(oldest);
        }
        self.cookies.push(cookie);
    }

    /// Returns the value of `Cookie` for a request, if there is any cookie for it: longer paths first (§5.4).
    #[must_use]
    pub(crate) fn get(&self, origin: &Origin, target: &str, now: i64) -> Option<String> {
        if self.cookies.is_empty() {
            return None;
        }
        let path = target.split('?').next().unwrap_or_default();
        let fits = |cookie: &&Cookie| {
            (cookie.domain == origin.host || !cookie.host_only && domain_matches(&origin.host, &cookie.domain))
                && path_matches(path, &cookie.path)
                && (!cookie.secure || origin.tls)
                && cookie.expires.is_none_or(|expires| expires > now)
        };
        let mut cookies: Vec<&Cookie> = self.cookies.iter().filter(fits).collect();
        cookies.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        let mut value = String::new();
        for Cookie { name, value: its, .. } in cookies {
            if !value.is_empty() {
                value.push_str("; ");
            }
            value.push_str(name);
            value.push('=');
            value.push_str(its);
        }
        (!value.is_empty()).then_some(value)
    }
}

fn read(origin: &Origin, target: &str, value: &[u8], now: i64) -> Option<Cookie> {
    if value.len() > COOKIE_BYTES_MAX {
        return None;
    }
    let text = std::str::from_utf8(value).ok()?;
    let mut parts = text.split(';');
    let (name, value) = parts.next()?.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    if name.is_empty() || text.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
        return None;
    }
    let mut cookie = Cookie {
        domain: origin.host.clone(),
        host_only: true,
        path: default_path(target),
        name: name.to_owned(),
        value: value.to_owned(),
        secure: false,
        expires: None,
    };
    let mut max_age = None;
    for part in parts {
        let (attribute, value) = part.split_once('=').map_or((part, ""), |(attribute, value)| (attribute, value));
        let (attribute, value) = (attribute.trim(), value.trim());
        if attribute.eq_ignore_ascii_case("domain") && !value.is_empty() {
            let domain = value.trim_start_matches('.').to_ascii_lowercase();
            // A name without a dot is that of nobody's site alone: `com`, `localhost`.
            let fits = domain == origin.host || domain.contains('.') && domain_matches(&origin.host, &domain);
            if !fits {
                return None;
            }
            (cookie.domain, cookie.host_only) = (domain, false);
        } else if attribute.eq_ignore_ascii_case("path") && value.starts_with('/') {
            value.clone_into(&mut cookie.path);
        } else if attribute.eq_ignore_ascii_case("max-age") {
            let seconds = value.strip_prefix('-').unwrap_or(value);
            if !seconds.is_empty() && seconds.bytes().all(|byte| byte.is_ascii_digit()) {
                max_age = Some(if value.starts_with('-') { 0 } else { seconds.parse().unwrap_or(i64::MAX) });
            }
        } else if attribute.eq_ignore_ascii_case("expires") {
            cookie.expires = read_date(value).or(cookie.expires);
        } else if attribute.eq_ignore_ascii_case("secure") {
            cookie.secure = true;
        }
    }
    if let Some(seconds) = max_age {
        cookie.expires = Some(now.saturating_add(seconds));
    }
    (!cookie.secure || origin.tls).then_some(cookie)
}

/// Returns the folder of the target (§5.1.4).
fn default_path(target: &str) -> String {
    let path = target.split('?').next().unwrap_or_default();
    match path.rsplit_once('/') {
        None | Some(("", _)) => "/".to_owned(),
        Some((folder, _)) => folder.to_owned(),
    }
}

fn path_matches(path: &str, of_cookie: &str) -> bool {
    path.strip_prefix(of_cookie).is_some_and(|rest| rest.is_empty() || of_cookie.ends_with('/') || rest.starts_with('/'))
}

/// Returns whether the host is below the domain (§5.1.3). Addresses are below nothing.
fn domain_matches(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.')) && host.parse::<std::net::IpAddr>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(tls: bool, host: &str) -> Origin {
        Origin { tls, host: host.to_owned(), port: 80 }
    }

    /// Returns what a jar sends for a URL after `Set-Cookie`s came from `www.example.org/blog/post`.
    fn sent(set: &[&str], host: &str, target: &str, now: i64) -> String {
        let mut jar = Jar::default();
        for value in set {
            jar.set(&origin(true, "www.example.org"), "/blog/post", value.as_bytes(), 1000);
        }
        jar.get(&origin(true, host), target, now).unwrap_or_default()
    }

    #[test]
    fn a_cookie_goes_back_to_whom_it_is_for() {
        for (set, host, target, expected) in [
            ("a=1", "www.example.org", "/blog/other", "a=1"),
            ("a=1", "www.example.org", "/", ""),
            ("a=1; Path=/", "www.example.org", "/", "a=1"),
            ("a=1; Path=/", "example.org", "/", ""),
            ("a=1; Path=/", "sub.www.example.org", "/", ""),
            ("a=1; path=/; domain=www.example.org", "sub.www.example.org", "/", "a=1"),
            ("a=1; path=/; domain=example.org", "example.org", "/", "a=1"),
            ("a=1; path=/; domain=.example.org", "other.example.org", "/x?y", "a=1"),
            ("a=1; path=/; domain=example.org", "badexample.org", "/", ""),
            ("a=1; path=/; domain=org", "www.example.org", "/", ""),
            ("a=1; path=/; domain=other.org", "other.org", "/", ""),
            ("a=1; path=/blog", "www.example.org", "/blogger", ""),
            ("a=1; path=/blog", "www.example.org", "/blog?x", "a=1"),
            ("a=1; path=/; HttpOnly; SameSite=Lax", "www.example.org", "/", "a=1"),
            ("a = b=c ; path=/", "www.example.org", "/", "a=b=c"),
            ("=1; path=/", "www.example.org", "/", ""),
            ("a; path=/", "www.example.org", "/", ""),
        ] {
            assert_eq!(sent(&[set], host, target, 1000), expected, "{set} for {host}{target}");
        }
    }

    #[test]
    fn cookies_end_and_are_taken_back() {
        assert_eq!(sent(&["a=1; path=/; max-age=10"], "www.example.org", "/", 1009), "a=1");
        assert_eq!(sent(&["a=1; path=/; max-age=10"], "www.example.org", "/", 1010), "");
        assert_eq!(sent(&["a=1; path=/; expires=Thu, 01 Jan 1970 00:30:00 GMT"], "www.example.org", "/", 1799), "a=1");
        assert_eq!(sent(&["a=1; path=/; expires=Thu, 01 Jan 1970 00:30:00 GMT"], "www.example.org", "/", 1800), "");
        assert_eq!(sent(&["a=1; path=/; max-age=9; expires=Thu, 01 Jan 1970 00:00:00 GMT"], "www.example.org", "/", 1000), "a=1");
        assert_eq!(sent(&["a=1; path=/", "a=2; path=/"], "www.example.org", "/", 1000), "a=2");
        assert_eq!(sent(&["a=1; path=/", "a=; path=/; max-age=0"], "www.example.org", "/", 1000), "");
        assert_eq!(sent(&["a=1; path=/", "b=2; path=/blog"], "www.example.org", "/blog/x", 1000), "b=2; a=1");
    }

    #[test]
    fn what_needs_tls_is_not_sent_without() {
        let mut jar = Jar::default();
        jar.set(&origin(true, "h"), "/", b"a=1; Secure", 0);
        jar.set(&origin(false, "h"), "/", b"b=1; Secure", 0);
        assert_eq!(jar.get(&origin(true, "h"), "/", 0).as_deref(), Some("a=1"));
        assert_eq!(jar.get(&origin(false, "h"), "/", 0), None);
    }

    #[test]
    fn a_jar_is_bounded() {
        let mut jar = Jar::default();
        for n in 0..60 {
            jar.set(&origin(false, "h"), "/", format!("c{n}=1").as_bytes(), 0);
        }
        jar.set(&origin(false, "h"), "/", format!("big={}", "x".repeat(5000)).as_bytes(), 0);
        let sent = jar.get(&origin(false, "h"), "/", 0).expect("cookies");
        assert_eq!(sent.split("; ").count(), 50);
        assert!(sent.starts_with("c10=1; "));
    }
}
