//! Pages that WP Super Cache has made: they are sent without PHP while they are there.
//!
//! Its published recipe for nginx has the rules, but never sends a page: the last of its files is a name for internal use, and the file before it is
//! passed over. Here they hold: who has no cookies, asks for a path with a slash at its end, and has no query, gets
//! `wp-content/cache/supercache/HOST/PATH/index.html`, over https `index-https.html`. A compressed sibling (`.gz`) is used as that of any file.

use std::{io, path::PathBuf};

use http::{Method, header, request::Parts};
use semantics::{Scheme, target::host_without_port};

use crate::files::{Entry, Root};

const PAGES: &str = "wp-content/cache/supercache";
/// The file that WordPress loads before anything else while a plugin caches its pages. A plugin that is switched off takes it away.
const DROP_IN: &str = "wp-content/advanced-cache.php";

/// Returns the page for a request, if there is one. Blocks.
pub(super) fn find(root: &Root, parts: &Parts, scheme: Scheme, authority: &str) -> io::Result<Option<Entry>> {
    let Some(name) = name(parts, scheme, authority) else { return Ok(None) };
    // Its folder belongs to the plugin, which makes no links.
    let page = root.find_file(&name)?.filter(|page| page.real == page.name && page.metadata.len() > 0);
    Ok(if page.is_some() && root.find_file(DROP_IN.as_ref())?.is_some() { page } else { None })
}

/// Returns the name of the page for a request, if it is one for everybody.
fn name(parts: &Parts, scheme: Scheme, authority: &str) -> Option<PathBuf> {
    let is_anonymous = !parts.headers.contains_key(header::COOKIE) && !parts.headers.contains_key(header::AUTHORIZATION);
    if !is_anonymous || !matches!(parts.method, Method::GET | Method::HEAD) || parts.uri.query().is_some() {
        return None;
    }
    // As the plugin does it: in lower case, what is encoded stays encoded.
    let (host, path) = (host_without_port(authority).to_ascii_lowercase(), parts.uri.path().to_ascii_lowercase());
    let is_name = |name: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%!$&*+,;=:@".contains(&byte);
        !name.is_empty() && !name.starts_with('.') && !name.contains("..") && name.bytes().all(is_plain)
    };
    let segments = path.strip_prefix('/')?;
    let mut name = PathBuf::from(PAGES);
    name.push(Some(host).filter(|host| is_name(host) && !host.contains(['%', ':']))?);
    if !segments.is_empty() {
        for segment in segments.strip_suffix('/')?.split('/') {
            name.push(Some(segment).filter(|segment| is_name(segment) && *segment != "index.php")?);
        }
    }
    name.push(match scheme {
        Scheme::Http => "index.html",
        Scheme::Https => "index-https.html",
    });
    Some(name)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn name_of(method: Method, target: &str, fields: &[(&str, &str)], scheme: Scheme, authority: &str) -> Option<String> {
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        Some(name(&parts, scheme, authority)?.strip_prefix(PAGES).expect("below it").to_str().expect("text").to_owned())
    }

    #[test]
    fn a_page_lies_where_the_plugin_puts_it() {
        for (target, authority, page) in [
            ("/", "blog.example", "blog.example/index.html"),
            ("/2024/Hello/", "Blog.Example:8080", "blog.example/2024/hello/index.html"),
            ("/%E6%B9%96/", "blog.example", "blog.example/%e6%b9%96/index.html"),
            ("/a.b/", "192.0.2.7:80", "192.0.2.7/a.b/index.html"),
        ] {
            assert_eq!(name_of(Method::GET, target, &[], Scheme::Http, authority).as_deref(), Some(page), "{target}");
        }
        assert_eq!(name_of(Method::HEAD, "/a/", &[], Scheme::Https, "a.example").as_deref(), Some("a.example/a/index-https.html"));
    }

    #[test]
    fn nobody_gets_one_who_may_see_another_page_and_no_path_leads_out() {
        for (method, target, fields, authority) in [
            (Method::POST, "/", &[][..], "a.example"),
            (Method::GET, "/", &[("cookie", "wordpress_logged_in_x=1")], "a.example"),
            (Method::GET, "/", &[("cookie", "comment_author_x=1")], "a.example"),
            (Method::GET, "/", &[("authorization", "Basic eDp5")], "a.example"),
            (Method::GET, "/?", &[], "a.example"),
            (Method::GET, "/?s=a", &[], "a.example"),
            (Method::GET, "/a", &[], "a.example"),
            (Method::GET, "/a//b/", &[], "a.example"),
            (Method::GET, "//", &[], "a.example"),
            (Method::GET, "/../b/", &[], "a.example"),
            (Method::GET, "/a/./b/", &[], "a.example"),
            (Method::GET, "/a..b/", &[], "a.example"),
            (Method::GET, "/index.php/a/", &[], "a.example"),
            (Method::GET, "/(a)/", &[], "a.example"),
            (Method::GET, "/", &[], ""),
            (Method::GET, "/", &[], "..:80"),
            (Method::GET, "/", &[], "a.example/../b"),
            (Method::GET, "/", &[], "[2001:db8::1]"),
        ] {
            assert_eq!(name_of(method, target, fields, Scheme::Http, authority), None, "{target} {authority}");
        }
    }
}
