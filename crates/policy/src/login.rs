//! The logins of a kind: the requests with which somebody may guess a password, and the answers by which one tells that it was wrong.
//!
//! How often somebody may be wrong, and what happens then, is the pipeline's.

use http::{HeaderMap, Method, header};
use semantics::target::normal_path;

use crate::{
    Policy,
    pass::{parameter_name, single_slashes},
    preset::Paths,
};

/// A login: requests that carry a password of whoever sends them.
#[derive(Debug, Clone, Copy)]
pub struct Login {
    /// The paths of the login.
    pub paths: Paths,
    /// The place where such a request has the password.
    pub password: PasswordIn,
    /// The answers to a wrong one.
    pub wrong: WrongIf,
    /// The parameter of the query with which the software answers 200 and puts the status into the content: as `"status":401` in JSON.
    pub envelope: Option<&'static str>,
}

/// The place where a request has a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PasswordIn {
    /// In the form that is its content: it is a POST, and small.
    Form,
    /// In the content of a POST, which may be anything else as well.
    Content,
    /// In a call of XML-RPC, except for these methods, which take none. A method that ends with a point stands for all that begin so.
    Rpc(&'static [&'static str]),
    /// In `Authorization`, whatever its method is.
    Authorization,
}

/// The sign that a password was wrong. A server error never is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrongIf {
    /// The answer sets no cookie whose name begins with one of these.
    NoCookie(&'static [&'static str]),
    /// The answer has one of these statuses.
    Status(&'static [u16]),
    /// The answer is a client error, or its content has an XML-RPC fault with this code; every one stands for a password.
    Fault(u16),
}

/// The word of an answer on the password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PasswordVerdict {
    /// It was not wrong.
    Right,
    /// It was wrong.
    Wrong,
    /// The content will tell: by XML-RPC faults with this code.
    InContent(u16),
    /// The content will tell: by this status in JSON.
    InEnvelope(u16),
}

impl Policy {
    /// Returns the login that a request is. `None`: it is none, or its path cannot be understood, and the request is refused.
    #[must_use]
    pub fn login(&self, method: &Method, path: &str, fields: &HeaderMap) -> Option<&'static Login> {
        let logins = self.preset.logins;
        let may_be = |login: &&Login| match login.password {
            PasswordIn::Form | PasswordIn::Content | PasswordIn::Rpc(_) => *method == Method::POST,
            PasswordIn::Authorization => fields.contains_key(header::AUTHORIZATION),
        };
        if !logins.iter().any(|login| may_be(&login)) {
            return None;
        }
        let path = normal_path(path).ok()?;
        let single = single_slashes(&path);
        let below = self.below_base(&single);
        logins.iter().find(|login| may_be(login) && login.paths.have(below))
    }
}

impl Login {
    /// Returns whether a request with this content has no password for certain: a call of XML-RPC whose only method takes none. Text that XML might
    /// read in another way does not count.
    #[must_use]
    pub fn has_no_password(&self, content: &[u8]) -> bool {
        let PasswordIn::Rpc(methods) = self.password else { return false };
        let Ok(text) = std::str::from_utf8(content) else { return false };
        let is_plain = !text.contains("<!") && text.matches("methodName").count() == 2;
        let called = text.split_once("<methodName>").and_then(|(_, rest)| rest.split_once("</methodName>")).map(|(name, _)| name.trim());
        let takes_none = |name: &str| methods.iter().any(|method| name == *method || method.ends_with('.') && name.starts_with(method));
        is_plain && called.is_some_and(takes_none)
    }

    /// Returns whether the status of an answer to this query may be in its content.
    #[must_use]
    pub fn is_enveloped(&self, query: Option<&str>) -> bool {
        let names = |envelope| query.into_iter().flat_map(|query| query.split('&')).any(|parameter| is_named(parameter, envelope));
        self.envelope.is_some_and(names)
    }

    /// Returns what the head of an answer says of the password. `is_enveloped`: as [`Login::is_enveloped`] says of the request.
    #[must_use]
    pub fn tried(&self, status: u16, fields: &HeaderMap, is_enveloped: bool) -> PasswordVerdict {
        if status >= 500 {
            return PasswordVerdict::Right;
        }
        if let WrongIf::Status([first, ..]) = self.wrong
            && is_enveloped
            && status < 400
        {
            return PasswordVerdict::InEnvelope(*first);
        }
        let is_wrong = match self.wrong {
            WrongIf::NoCookie(beginnings) => !fields.get_all(header::SET_COOKIE).iter().any(|line| sets(line.as_bytes(), beginnings)),
            WrongIf::Status(statuses) => statuses.contains(&status),
            WrongIf::Fault(code) if status < 400 => return PasswordVerdict::InContent(code),
            WrongIf::Fault(_) => true,
        };
        if is_wrong { PasswordVerdict::Wrong } else { PasswordVerdict::Right }
    }
}

/// Returns whether PHP reads a parameter under this name, or as an array of this name: it decodes names, leaves spaces before them out, and takes spaces
/// and points for underscores.
fn is_named(parameter: &str, name: &str) -> bool {
    let decoded = parameter_name(&parameter.replace('+', " "));
    let plain = decoded.trim_start_matches(' ').replace([' ', '.'], "_");
    plain.split('\0').next() == Some(name)
}

/// Returns whether a `Set-Cookie` gives its client a cookie whose name begins with one of these. One that takes a cookie away does not: it has
/// no value, as far as PHP can write that, or a lifetime of none.
fn sets(line: &[u8], beginnings: &[&str]) -> bool {
    let mut parts = line.split(|&b| b == b';').map(<[u8]>::trim_ascii);
    let pair = parts.next().unwrap_or_default();
    let Some(equals) = pair.iter().position(|&b| b == b'=') else { return false };
    let (name, value) = (&pair[..equals], pair[equals + 1..].trim_ascii());
    beginnings.iter().any(|beginning| name.starts_with(beginning.as_bytes()))
        && !matches!(value, b"" | b"%20" | b"+" | b"deleted")
        && !parts.any(|attribute| attribute.eq_ignore_ascii_case(b"max-age=0"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Settings};

    fn login(kind: Kind, base: &str, method: &Method, path: &str, authorization: bool) -> Option<PasswordIn> {
        let policy = Policy::new(Settings { base_path: base.to_owned(), ..Settings::preset(kind) });
        let mut fields = HeaderMap::new();
        if authorization {
            fields.insert(header::AUTHORIZATION, header::HeaderValue::from_static("Basic eA=="));
        }
        policy.login(method, path, &fields).map(|login| login.password)
    }

    #[test]
    fn every_spelling_of_a_login_is_one() {
        let wordpress = |path| login(Kind::WordPress, "", &Method::POST, path, false);
        for path in [
            "/wp-login.php",
            "//wp-login.php",
            "/%77p-login.php",
            "/wp-login.php/x",
            "/blog/wp-login.php",
            "/WP-LOGIN.PHP",
            "/x/../wp-login.php",
        ] {
            assert_eq!(wordpress(path), Some(PasswordIn::Form), "{path}");
        }
        for path in ["/xmlrpc.php", "/xmlrpc.php/", "/wp/xmlrpc.php"] {
            assert!(matches!(wordpress(path), Some(PasswordIn::Rpc(_))), "{path}");
        }
        for path in ["/", "/wp-comments-post.php", "/wp-login.php.bak", "/my-wp-login.phpx"] {
            assert_eq!(wordpress(path), None, "{path}");
        }
        assert_eq!(login(Kind::WordPress, "", &Method::GET, "/wp-login.php", false), None);
        assert_eq!(login(Kind::WordPress, "/blog", &Method::GET, "/blog/wp-json/wp/v2/posts", true), Some(PasswordIn::Authorization));
        assert_eq!(login(Kind::Ghost, "/blog", &Method::POST, "/blog/ghost/api/admin/session/", false), Some(PasswordIn::Content));
        assert_eq!(login(Kind::Generic, "", &Method::POST, "/wp-login.php", true), None);
    }

    #[test]
    fn an_answer_says_what_became_of_a_password() {
        let form = Login { paths: Paths::NONE, password: PasswordIn::Form, wrong: WrongIf::NoCookie(&["session_"]), envelope: None };
        let cases: [(u16, Option<&'static str>, PasswordVerdict); 9] = [
            (302, Some("session_1=abc; path=/"), PasswordVerdict::Right),
            (200, Some("session_1=abc; path=/; Max-Age=1209600"), PasswordVerdict::Right),
            (302, None, PasswordVerdict::Wrong),
            (200, Some("other=1"), PasswordVerdict::Wrong),
            (302, Some("session_1=%20; expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=0; path=/"), PasswordVerdict::Wrong),
            (302, Some("session_1=abc; Max-Age=0"), PasswordVerdict::Wrong),
            (302, Some("session_1"), PasswordVerdict::Wrong),
            (403, None, PasswordVerdict::Wrong),
            (503, None, PasswordVerdict::Right),
        ];
        for (status, cookie, expected) in cases {
            let fields = cookie.into_iter().map(|cookie| (header::SET_COOKIE, header::HeaderValue::from_static(cookie))).collect();
            assert_eq!(form.tried(status, &fields, false), expected, "{status} {cookie:?}");
        }
        let rpc = Login { wrong: WrongIf::Fault(403), ..form };
        assert_eq!(rpc.tried(200, &HeaderMap::new(), false), PasswordVerdict::InContent(403));
        assert_eq!(rpc.tried(405, &HeaderMap::new(), false), PasswordVerdict::Wrong);
        let api = Login { wrong: WrongIf::Status(&[401]), ..form };
        assert_eq!(
            [200, 401, 403, 500].map(|status| api.tried(status, &HeaderMap::new(), false)),
            [PasswordVerdict::Right, PasswordVerdict::Wrong, PasswordVerdict::Right, PasswordVerdict::Right]
        );
        let tried = [200, 401, 403, 500].map(|status| api.tried(status, &HeaderMap::new(), true));
        assert_eq!(tried, [PasswordVerdict::InEnvelope(401), PasswordVerdict::Wrong, PasswordVerdict::Right, PasswordVerdict::Right]);
    }

    #[test]
    fn only_a_call_that_certainly_takes_no_password_has_none() {
        let rpc = Login { paths: Paths::NONE, password: PasswordIn::Rpc(&["ping", "demo."]), wrong: WrongIf::Fault(403), envelope: None };
        let call = |name: &str| format!("<?xml version=\"1.0\"?>\n<methodCall><methodName>{name}</methodName><params/></methodCall>");
        for name in ["ping", " ping\n", "demo.hello"] {
            assert!(rpc.has_no_password(call(name).as_bytes()), "{name}");
        }
        for text in [
            call("wp.getUsersBlogs"),
            call("demo"),
            call("pings"),
            call("&#112;ing"),
            call("ping").repeat(2),
            call("wp.getUsersBlogs").replace("<params/>", "<methodName>ping</methodName>"),
            call("ping").replace("<params/>", "<!-- -->"),
            call("ping").replace("<methodCall>", "<!DOCTYPE x [<!ENTITY a 'b'>]><methodCall>"),
            String::new(),
        ] {
            assert!(!rpc.has_no_password(text.as_bytes()), "{text}");
        }
        assert!(!rpc.has_no_password(b"\xff<methodName>ping</methodName>"));
        assert!(!Login { password: PasswordIn::Content, ..rpc }.has_no_password(call("ping").as_bytes()));
    }

    #[test]
    fn an_envelope_is_one_under_every_name_that_php_reads_so() {
        let api =
            Login { paths: Paths::NONE, password: PasswordIn::Authorization, wrong: WrongIf::Status(&[401]), envelope: Some("_envelope") };
        for query in [
            "_envelope",
            "_envelope=1",
            "a=1&_envelope=",
            "%5Fenvelope=1",
            "_envelop%65",
            "_envelope[]=1",
            "_envelope%5Ba%5D=1",
            ".envelope",
            "+_envelope",
            "%20%2Eenvelope=0",
        ] {
            assert!(api.is_enveloped(Some(query)), "{query}");
        }
        for query in ["", "envelope=1", "a=_envelope", "_envelopes", "__envelope", "x[_envelope]"] {
            assert!(!api.is_enveloped(Some(query)), "{query}");
        }
        assert!(!api.is_enveloped(None));
        assert!(!Login { envelope: None, ..api }.is_enveloped(Some("_envelope")));
    }
}
