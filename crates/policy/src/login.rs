//! The doors of a kind: the requests with which somebody may guess a password, and the answers by which one tells that it was wrong.
//!
//! How often somebody may be wrong, and what happens then, is the pipeline's.

use http::{HeaderMap, Method, header};
use semantics::target::normal_path;

use crate::{Policy, pass::single_slashes, preset::Paths};

/// A door: requests that carry a password of whoever sends them.
#[derive(Debug, Clone, Copy)]
pub struct Login {
    /// The paths of the door.
    pub paths: Paths,
    /// Where such a request has the password.
    pub password: PasswordIn,
    /// The answers to a wrong one.
    pub wrong: WrongIf,
}

/// Where a request has a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PasswordIn {
    /// In the form that is its content: it is a POST, and small.
    Form,
    /// In the content of a POST, which may be anything else as well.
    Content,
    /// In `Authorization`, whatever its method is.
    Authorization,
}

/// What tells that a password was wrong. A server error never does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrongIf {
    /// The answer sets no cookie whose name begins with one of these.
    NoCookie(&'static [&'static str]),
    /// The answer has one of these statuses.
    Status(&'static [u16]),
    /// The answer is a client error, or its content has an XML-RPC fault with this code; every one stands for a password.
    Fault(u16),
}

/// What an answer says of the password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tried {
    /// It was not wrong.
    Right,
    /// It was wrong.
    Wrong,
    /// The content will tell: by XML-RPC faults with this code.
    InContent(u16),
}

impl Policy {
    /// Returns the door that a request knocks at. A path that cannot be understood is no door: the request is refused.
    #[must_use]
    pub fn login(&self, method: &Method, path: &str, fields: &HeaderMap) -> Option<&'static Login> {
        let logins = self.preset.logins;
        let may_be = |login: &&Login| match login.password {
            PasswordIn::Form | PasswordIn::Content => *method == Method::POST,
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
    /// Returns what the head of an answer says of the password.
    #[must_use]
    pub fn tried(&self, status: u16, fields: &HeaderMap) -> Tried {
        if status >= 500 {
            return Tried::Right;
        }
        let is_wrong = match self.wrong {
            WrongIf::NoCookie(beginnings) => !fields.get_all(header::SET_COOKIE).iter().any(|line| sets(line.as_bytes(), beginnings)),
            WrongIf::Status(statuses) => statuses.contains(&status),
            WrongIf::Fault(code) if status < 400 => return Tried::InContent(code),
            WrongIf::Fault(_) => true,
        };
        if is_wrong { Tried::Wrong } else { Tried::Right }
    }
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

    fn door(kind: Kind, base: &str, method: &Method, path: &str, authorization: bool) -> Option<PasswordIn> {
        let policy = Policy::new(Settings { base_path: base.to_owned(), ..Settings::preset(kind) });
        let mut fields = HeaderMap::new();
        if authorization {
            fields.insert(header::AUTHORIZATION, header::HeaderValue::from_static("Basic eA=="));
        }
        policy.login(method, path, &fields).map(|login| login.password)
    }

    #[test]
    fn every_spelling_of_a_door_is_one() {
        let wordpress = |path| door(Kind::WordPress, "", &Method::POST, path, false);
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
            assert_eq!(wordpress(path), Some(PasswordIn::Content), "{path}");
        }
        for path in ["/", "/wp-comments-post.php", "/wp-login.php.bak", "/my-wp-login.phpx"] {
            assert_eq!(wordpress(path), None, "{path}");
        }
        assert_eq!(door(Kind::WordPress, "", &Method::GET, "/wp-login.php", false), None);
        assert_eq!(door(Kind::WordPress, "/blog", &Method::GET, "/blog/wp-json/wp/v2/posts", true), Some(PasswordIn::Authorization));
        assert_eq!(door(Kind::Ghost, "/blog", &Method::POST, "/blog/ghost/api/admin/session/", false), Some(PasswordIn::Content));
        assert_eq!(door(Kind::Generic, "", &Method::POST, "/wp-login.php", true), None);
    }

    #[test]
    fn an_answer_says_what_became_of_a_password() {
        let form = Login { paths: Paths::NONE, password: PasswordIn::Form, wrong: WrongIf::NoCookie(&["session_"]) };
        let cases: [(u16, Option<&'static str>, Tried); 9] = [
            (302, Some("session_1=abc; path=/"), Tried::Right),
            (200, Some("session_1=abc; path=/; Max-Age=1209600"), Tried::Right),
            (302, None, Tried::Wrong),
            (200, Some("other=1"), Tried::Wrong),
            (302, Some("session_1=%20; expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=0; path=/"), Tried::Wrong),
            (302, Some("session_1=abc; Max-Age=0"), Tried::Wrong),
            (302, Some("session_1"), Tried::Wrong),
            (403, None, Tried::Wrong),
            (503, None, Tried::Right),
        ];
        for (status, cookie, expected) in cases {
            let fields = cookie.into_iter().map(|cookie| (header::SET_COOKIE, header::HeaderValue::from_static(cookie))).collect();
            assert_eq!(form.tried(status, &fields), expected, "{status} {cookie:?}");
        }
        let rpc = Login { wrong: WrongIf::Fault(403), ..form };
        assert_eq!(rpc.tried(200, &HeaderMap::new()), Tried::InContent(403));
        assert_eq!(rpc.tried(405, &HeaderMap::new()), Tried::Wrong);
        let api = Login { wrong: WrongIf::Status(&[401]), ..form };
        assert_eq!(
            [200, 401, 403, 500].map(|status| api.tried(status, &HeaderMap::new())),
            [Tried::Right, Tried::Wrong, Tried::Right, Tried::Right]
        );
    }
}
