use semantics::Scheme;

use super::*;
use crate::{Kind, Settings};

fn ghost_at(base_path: &str) -> Policy {
    Policy::new(Settings { base_path: base_path.to_owned(), ..Settings::preset(Kind::Ghost) })
}

fn page(host: &str, path: &str) -> What {
    What::Url(Address::over_either(host, path))
}

fn members() -> What {
    What::Tag(MEMBERS_TAG.to_owned())
}

#[test]
fn a_signal_names_everything_pages_comments_or_nothing() {
    let host = "blog.example";
    let everything = || Signal { everything: true, changed: vec![] };
    let changed = |changed: Vec<What>| Signal { everything: false, changed };
    for (base, value, expected) in [
        ("", "/*", everything()),
        ("", "", changed(vec![])),
        ("", " , ", changed(vec![])),
        ("", "/post/", changed(vec![page(host, "/post/")])),
        ("", "/post/?page=2, /post/", changed(vec![page(host, "/post/")])),
        ("", "/a/, /b/", changed(vec![page(host, "/a/"), page(host, "/b/")])),
        ("", "https://blog.example/a/", changed(vec![page(host, "/a/")])),
        ("", "//other.example:8080/a/?x", changed(vec![page("other.example:8080", "/a/")])),
        ("", "/p/1234/, /p/1234/?member_status=anonymous, /p/1234/?member_status=free", changed(vec![])),
        ("", "/api/members/comments/post/1/, /api/members/comments/2/replies/", changed(vec![members()])),
        ("", "/members/api/comments/counts/", changed(vec![members()])),
        ("", "/a/, /*", Signal { everything: true, changed: vec![page(host, "/a/")] }),
        // Nobody knows what these mean.
        ("", "/tag/*", everything()),
        ("", "post/", everything()),
        ("", "*", everything()),
        ("", "https://blog.example", everything()),
        ("", "https://blog example/a/", everything()),
        ("", "mailto:a@blog.example", everything()),
        ("", "/a/../../b/", changed(vec![page(host, "/b/")])),
        ("", "/%zz/", changed(vec![page(host, "/%zz/")])),
        ("", "/a b/", everything()),
        // A Ghost in a folder names its pages with the folder, and its comments without.
        ("/blog", "/blog/post/", changed(vec![page(host, "/blog/post/")])),
        ("/blog", "/post/", changed(vec![page(host, "/post/"), page(host, "/blog/post/")])),
        ("/blog", "/blog/p/1234/, /p/1234/", changed(vec![])),
        ("/blog", "/api/members/comments/post/1/", changed(vec![members()])),
        ("/blog", "/blog/members/api/comments/2/", changed(vec![members()])),
    ] {
        let line = HeaderValue::from_str(value).expect("a field value");
        assert_eq!(ghost_at(base).signalled(&[host], [&line]), expected, "{base} {value}");
    }
    let line = HeaderValue::from_bytes(b"/\xff/").expect("a field value");
    assert_eq!(ghost_at("").signalled(&[host], [&line]), everything());
    let many = HeaderValue::from_str(&(0..300).map(|n| format!("/{n}/")).collect::<Vec<_>>().join(", ")).expect("a field value");
    let signal = ghost_at("").signalled(&[host], [&many]);
    assert_eq!((signal.everything, signal.changed.len()), (true, PAGES_MAX));
}

#[test]
fn a_path_is_a_page_of_every_host() {
    let line = HeaderValue::from_static("/a/");
    let signal = ghost_at("").signalled(&["admin.example", "blog.example"], [&line]);
    assert_eq!(signal.changed, [page("admin.example", "/a/"), page("blog.example", "/a/")]);
}

#[test]
fn what_is_written_is_told_by_the_path() {
    for (base, method, path, expected) in [
        ("", "PUT", "/ghost/api/admin/posts/1/", Some(WriteSubject::Post)),
        ("", "POST", "/ghost/api/admin/pages/", Some(WriteSubject::Post)),
        ("", "DELETE", "/ghost/api/v4/admin/posts/1/", Some(WriteSubject::Post)),
        ("", "PUT", "/ghost/api/admin/settings/", Some(WriteSubject::Settings)),
        ("", "PUT", "/ghost/api/admin/schedules/posts/1/", Some(WriteSubject::Schedule)),
        ("", "DELETE", "/ghost/api/admin/integrations/1/", Some(WriteSubject::Keys)),
        ("", "PUT", "/ghost/api/v4/admin/api_keys/1/", Some(WriteSubject::Keys)),
        ("", "POST", "/ghost/api/admin/themes/upload/", Some(WriteSubject::Other)),
        ("", "GET", "/ghost/api/admin/posts/1/", None),
        ("", "POST", "/ghost/api/content/posts/", None),
        ("", "POST", "/", None),
        ("/blog", "PUT", "/blog/ghost/api/admin/settings/", Some(WriteSubject::Settings)),
        ("/blog", "PUT", "/ghost/api/admin/settings/", None),
    ] {
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        assert_eq!(ghost_at(base).written(&method, path), expected, "{base} {method} {path}");
    }
    assert_eq!(Policy::new(Settings::preset(Kind::Generic)).written(&Method::PUT, "/ghost/api/admin/posts/1/"), None);
}

#[test]
fn a_redirect_to_the_password_page_says_private() {
    for (base, target, status, location, expected) in [
        ("", "/post/", 302, "/private/?r=%2Fpost%2F", true),
        ("", "/post/", 302, "https://blog.example/private/?r=%2Fpost%2F", true),
        ("/blog", "/blog/post/", 302, "/blog/private/?r=%2Fpost%2F", true),
        // What a client can bring about on a public blog: the slash that is added, and where the password page leads.
        ("", "/private?r=x", 301, "/private/?r=x", false),
        ("", "/private/?r=%2Fprivate%2F", 302, "/private/", false),
        ("", "/private/", 302, "/", false),
        ("", "/post/", 302, "/elsewhere/", false),
        // Pages below it are not the password page.
        ("", "/club", 302, "/private/club/", false),
        ("", "/club", 302, "/private/club/?r=x", false),
        ("", "/club", 302, "/private?r=x", false),
        ("", "/club", 302, "/private/", false),
        ("", "/club", 302, "/private/?for=x", false),
        ("", "/post/", 302, "https://evil.example/private/?r=x", false),
        ("/blog", "/blog/post/", 302, "/private/?r=x", false),
        ("", "/post/", 200, "/private/?r=x", false),
    ] {
        let headers = HeaderMap::from_iter([(header::LOCATION, HeaderValue::from_static(location))]);
        let status = StatusCode::from_u16(status).expect("a status");
        assert_eq!(ghost_at(base).says_private("blog.example", target, status, &headers), expected, "{base} {target} {location}");
    }
}

#[test]
fn a_webhook_says_whether_readers_see_a_change() {
    let nothing = || Some(Webhook::Nothing);
    let site = || Some(Webhook::Changed(None));
    let host = || Some("blog.example".to_owned());
    let withdrawn = |from| Some(Webhook::Changed(Some(Addresses { withdrawn: Some(from), host: host(), ..Addresses::default() })));
    let post = |post: Option<&str>, lists: &[&str]| {
        let lists = lists.iter().map(|&path| path.to_owned()).collect();
        Some(Webhook::Changed(Some(Addresses { post: post.map(str::to_owned), lists, withdrawn: None, host: host() })))
    };
    for (content, expected) in [
        ("{}", site()),
        (r#"{"event":"site.changed"}"#, site()),
        (
            r#"{"event":"post.published","post":{"current":{"status":"published","url":"https://blog.example/a/","title":"A",
                "tags":[{"url":"https://blog.example/tag/b/"},{"url":"https://blog.example/tag/p/"},{"url":"https://blog.example/404/"}],
                "primary_tag":{"url":"https://blog.example/tag/b/"},"authors":[{"url":"https://blog.example/author/c/"}]},
                "previous":{"status":"draft"}}}"#,
            post(Some("/a/"), &["/tag/b/", "/tag/p/", "/author/c/"]),
        ),
        (
            r#"{"post":{"current":{"status":"draft","url":"https://blog.example/p/0f4ca3a5-6d5b-4e4c-9a53-2a3b1c0d9e8f/"},"previous":{"status":"published"}}}"#,
            withdrawn(Withdrawal::Unknown),
        ),
        // Deleted.
        (
            r#"{"post":{"current":{},"previous":{"status":"published","url":"https://blog.example/a/"}}}"#,
            withdrawn(Withdrawal::At("/a/".to_owned())),
        ),
        (r#"{"page":{"current":{"status":"published","url":"https://blog.example/about/"},"previous":{}}}"#, post(Some("/about/"), &[])),
        (r#"{"post":{"current":{"status":"draft"},"previous":{}}}"#, nothing()),
        (r#"{"post":{"current":{"status":"scheduled"},"previous":{"status":"draft"}}}"#, nothing()),
        (r#"{"tag":{"current":{"name":"a"},"previous":{}}}"#, site()),
        (r#"{"event":"member.added","member":{"current":{"status":"free"},"previous":{}}}"#, nothing()),
        (r#"{"member":{"current":{},"previous":{}}}"#, nothing()),
        (r#"{"event":"subscriber.added"}"#, nothing()),
        ("", None),
        ("[]", None),
        ("post=1", None),
    ] {
        assert_eq!(ghost_at("").webhook(Some(content.as_bytes()), &|_| false), expected, "{content}");
    }
}

#[test]
fn the_answer_to_a_write_says_which_addresses_have_changed() {
    let content = br#"{"posts":[{"id":"1","status":"published","url":"http://blog.example/a/","html":null,
        "tags":[{"url":"http://blog.example/tag/b/"}],"authors":[{"url":"http://blog.example/author/c/"}],"primary_tag":null}]}"#;
    let expected = Addresses {
        post: Some("/a/".to_owned()),
        lists: vec!["/tag/b/".to_owned(), "/author/c/".to_owned()],
        withdrawn: None,
        host: Some("blog.example".to_owned()),
    };
    assert_eq!(written_addresses(content).expect("an answer"), expected);
    for nothing in [&b"{}"[..], br#"{"posts":[]}"#] {
        assert_eq!(written_addresses(nothing).expect("an answer"), Addresses::default());
    }
    for unreadable in [&b""[..], b"\x1f\x8b\x08", br#"{"posts":[{"url":""#] {
        assert!(written_addresses(unreadable).is_err());
    }
}

/// Ghost gives a draft the address of its preview, and nothing says where it was.
#[test]
fn a_post_that_is_not_for_everybody_any_more_is_withdrawn() {
    let preview = "https://blog.example/p/0f4ca3a5-6d5b-4e4c-9a53-2a3b1c0d9e8f/";
    let at = |path: &str| Some(Withdrawal::At(path.to_owned()));
    for (status, visibility, url, expected) in [
        ("draft", "public", preview, Some(Withdrawal::Unknown)),
        ("published", "public", "https://blog.example/a/", None),
        ("published", "paid", "https://blog.example/a/", at("/a/")),
        ("published", "members", "https://blog.example/blog/a/", at("/blog/a/")),
    ] {
        let content = format!(r#"{{"posts":[{{"status":"{status}","visibility":"{visibility}","url":"{url}"}}]}}"#);
        let addresses = written_addresses(content.as_bytes()).expect("addresses");
        assert_eq!((addresses.withdrawn, addresses.host.as_deref()), (expected, Some("blog.example")), "{content}");
    }
    for (method, path, expected) in [
        (Method::DELETE, "/ghost/api/admin/posts/1/", true),
        (Method::DELETE, "/ghost/api/admin/posts/", true),
        (Method::PUT, "/ghost/api/admin/posts/bulk/", true),
        (Method::PUT, "/ghost/api/admin/posts/1/", false),
        (Method::DELETE, "/ghost/api/admin/tags/1/", false),
        // An author is deleted with all posts, and all content at once.
        (Method::DELETE, "/ghost/api/admin/users/5/", true),
        (Method::DELETE, "/ghost/api/admin/db/", true),
        (Method::POST, "/ghost/api/admin/db/", false),
    ] {
        let written = ghost_at("").written(&method, path).expect("a write");
        assert_eq!(ghost_at("").may_withdraw_unsaid(&method, path, written), expected, "{method} {path}");
    }
}

/// An address is over both schemes: a page is purged over http and https alike.
#[test]
fn a_page_is_named_over_both_schemes() {
    let signal = ghost_at("").signalled(&["blog.example"], [&HeaderValue::from_static("https://blog.example/a/")]);
    let [What::Url(address)] = &*signal.changed else { panic!("{signal:?}") };
    assert_eq!(address.scheme(), None::<Scheme>);
}

/// It is signed, so it may say anything: also that a post was taken back.
#[test]
fn a_webhook_that_was_not_kept_ends_everything_whatever_the_kind() {
    let ends = Webhook::Purge { what: vec![What::Everything], soft: false };
    for kind in [Kind::Ghost, Kind::WordPress] {
        assert_eq!(Policy::new(Settings::preset(kind)).webhook(None, &|_| true).as_ref(), Some(&ends), "{kind:?}");
    }
}
