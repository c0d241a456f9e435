//! Addresses of pages, as people type them.

use http::Uri;
use semantics::shown;

/// Tells what is wrong with a text that should be the address of a page, before anybody is asked for it.
///
/// # Errors
/// When it has no scheme, another one than those of the web, no host, or a user; or when something in it is hidden, as in the lists that it was copied
/// from. The words say what an address looks like.
pub fn check(text: &str) -> Result<(), String> {
    const REMEDY: &str = "an address begins with http:// or https:// and names a host, such as https://blog.example.org/hello";
    let wrong = || REMEDY.to_owned();
    check_whole(text)?;
    if !text.contains("://") {
        let with_scheme = format!("https://{text}");
        let looks_like_a_host = text.split('/').next().is_some_and(|host| host.contains('.') || host.starts_with("localhost"));
        let meant = if looks_like_a_host && check(&with_scheme).is_ok() { format!("; did you mean {with_scheme}?") } else { String::new() };
        return Err(wrong() + &meant);
    }
    let uri: Uri = text.parse().map_err(|_| wrong())?;
    let is_of_the_web = matches!(uri.scheme_str(), Some("http" | "https"));
    let has_host = uri.authority().is_some_and(|authority| !authority.host().is_empty() && !authority.as_str().contains('@'));
    if is_of_the_web && has_host { Ok(()) } else { Err(wrong()) }
}

/// Tells whether all of an address is there: one that was copied from a list has `…` in place of what may be somebody's own.
///
/// # Errors
/// When something is hidden, with what to do about it.
pub fn check_whole(text: &str) -> Result<(), String> {
    if text.contains(shown::HIDDEN) {
        return Err("a list has … where it hides what may be somebody's own: put in what you mean".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_scheme_and_a_host() {
        for good in ["http://a", "https://Blog.Example:8443/a?b=c", "http://[::1]:8080/", "https://a.example/h%C3%A9"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in ["", "/hello", "hello", "a b", "http://", "http:///a", "https://me@a/", "ftp://a/", "//a/b", "a:80/b"] {
            let said = check(bad).expect_err(bad);
            assert!(said.ends_with("such as https://blog.example.org/hello"), "{bad}: {said}");
        }
        for hidden in ["https://blog.example/orders/…/", "https://blog.example/?p=…", "blog.example/orders/…/", "/orders/…/"] {
            assert!(check(hidden).expect_err(hidden).ends_with("put in what you mean"), "{hidden}");
        }
        for (bad, meant) in [("blog.example/hello/", "https://blog.example/hello/"), ("localhost:8080/a", "https://localhost:8080/a")] {
            assert!(check(bad).expect_err(bad).ends_with(&format!("did you mean {meant}?")), "{bad}");
        }
    }
}
