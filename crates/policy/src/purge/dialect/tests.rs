use http::HeaderMap;
use proptest::prelude::*;
use semantics::{RequestFields, Scheme};

use super::*;
use crate::{Kind, PassRule, Settings, Verdict};

type Fields<'a> = &'a [(&'static str, &'a str)];

fn asked(policy: &Policy, line: &str, fields: Fields<'_>) -> (Verdict, Option<Result<Order, Misunderstood>>) {
    let (method, target) = line.split_once(' ').expect("a method and a target");
    let mut map = HeaderMap::new();
    for (name, value) in fields {
        map.append(*name, value.parse().expect("a value"));
    }
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let method = Method::from_bytes(method.as_bytes()).expect("a method");
    let fields = RequestFields::from_map(&map);
    let head = RequestHead { method: &method, scheme: Scheme::Http, authority: "blog.example", path, query, fields: &fields };
    let verdict = policy.verdict(0, &head, &mut Vec::new());
    let request = (verdict == Verdict::Purge).then(|| policy.purge_order("blog", &head));
    (verdict, request)
}

fn url(path: &str) -> What {
    What::Url(Address::over_either("blog.example", path))
}

fn prefix(path: &str) -> What {
    What::Prefix(Address::over_either("blog.example", path))
}

fn tags(tags: &[&str]) -> Vec<What> {
    tags.iter().map(|tag| What::Tag((*tag).to_owned())).collect()
}

#[test]
fn every_dialect_is_understood() {
    use Dialect::{Fastly, NginxHelper, ProxyCachePurge, Souin, Varnish, Xkey};
    const KEY: (&str, &str) = ("fastly-key", "secret");
    let other_host = |path: &str| What::Url(Address::over_either("my-blog.example", path));
    let cases: &[(&str, Fields<'_>, Dialect, Vec<What>, bool)] = &[
        ("PURGE /hello/?page=2", &[], Varnish, vec![url("/hello/")], false),
        ("PURGE /hello/", &[("x-purge-soft", "1")], Varnish, vec![url("/hello/")], true),
        ("PURGE /hello/", &[("x-purge-soft", "0")], Varnish, vec![url("/hello/")], false),
        ("PURGE /.*", &[], Varnish, vec![prefix("/")], false),
        // As the plugin sends them.
        ("PURGE /hello/", &[("x-purge-method", "default")], ProxyCachePurge, vec![url("/hello/")], false),
        ("PURGE /hello/", &[("x-purge-method", "exact")], ProxyCachePurge, vec![url("/hello/")], false),
        ("PURGE /.*", &[("x-purge-method", "regex")], ProxyCachePurge, vec![prefix("/")], false),
        ("PURGE /feed/atom.xml.*", &[("x-purge-method", "regex")], ProxyCachePurge, vec![prefix("/feed/atom.xml")], false),
        ("BAN ^/tag/.*$", &[], ProxyCachePurge, vec![prefix("/tag/")], false),
        ("BAN ^/about$", &[], ProxyCachePurge, vec![url("/about")], false),
        ("PURGE /", &[("x-purge-method", "tags"), ("x-cache-tags-pattern", "p-12|t-3")], ProxyCachePurge, tags(&["p-12", "t-3"]), false),
        ("GET /purge/hello/", &[], NginxHelper, vec![url("/hello/")], false),
        ("GET /purge/", &[], NginxHelper, vec![url("/")], false),
        ("GET /purge/2026/*", &[], NginxHelper, vec![prefix("/2026/")], false),
        ("PURGE /purgeall", &[], NginxHelper, vec![What::Everything], false),
        ("PURGE /", &[("surrogate-key", "front post-43")], Fastly, tags(&["front", "post-43"]), false),
        ("PURGE /hello/", &[("fastly-soft-purge", "1")], Fastly, vec![url("/hello/")], true),
        ("POST /service/abc/purge", &[KEY, ("surrogate-key", "a b"), ("fastly-soft-purge", "1")], Fastly, tags(&["a", "b"]), true),
        ("POST /service/abc/purge/post%2D43", &[KEY], Fastly, tags(&["post-43"]), false),
        ("PURGE /service/abc/purge_all", &[KEY, ("fastly-soft-purge", "1")], Fastly, vec![What::Everything], false),
        ("PURGE /souin-api/souin", &[("surrogate-key", "a, b")], Souin, tags(&["a", "b"]), false),
        ("PURGE /souin-api/souin/flush", &[], Souin, vec![What::Everything], false),
        ("PURGE /souin-api/souin/GET-https-my-blog.example-%2Fa", &[], Souin, vec![other_host("/a")], false),
        ("PURGE /souin-api/souin/GET-http-my-blog.example-/a%3Fb=1", &[], Souin, vec![other_host("/a")], false),
        (
            "PURGE /souin-api/souin/GET-http-my-blog.example-/a/.+",
            &[],
            Souin,
            vec![What::Prefix(Address::over_either("my-blog.example", "/a/"))],
            false,
        ),
        ("PURGE /", &[("xkey-purge", "a b")], Xkey, tags(&["a", "b"]), false),
        ("PURGE /", &[("xkey-softpurge", "a")], Xkey, tags(&["a"]), true),
        ("PURGE /", &[("xkey", "a"), ("xkey-softpurge", "b")], Xkey, tags(&["a", "b"]), false),
    ];
    let policy = Policy::new(Settings { purge_path: Some("/purge".to_owned()), ..Settings::preset(Kind::Generic) });
    for (line, fields, dialect, what, soft) in cases {
        let expected = Order::for_site("blog", what.clone(), !soft, Maker::Plugin(*dialect));
        assert_eq!(asked(&policy, line, fields).1, Some(Ok(expected)), "{line} {fields:?}");
    }
}

#[test]
fn what_is_not_understood_says_why() {
    let many = (0..=KEYS_MAX).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
    let cases: &[(&str, Fields<'_>, Misunderstood)] = &[
        ("PURGE /a(b|c)/.*", &[("x-purge-method", "regex")], NOT_A_PREFIX),
        ("PURGE /tag/", &[("x-purge-method", "regex")], NOT_A_PREFIX),
        ("BAN /tag/", &[], NOT_A_PREFIX),
        ("BAN .*/feed/.*", &[], NOT_A_PREFIX),
        ("BAN /a?b=.*", &[], NOT_A_PREFIX),
        ("PURGE /", &[("x-purge-method", "flushall")], METHODS),
        ("PURGE /", &[("x-purge-method", "tags"), ("x-cache-tags-pattern", "p-1.*|(a)")], TAG_PATTERN),
        ("PURGE /", &[("x-purge-method", "tags")], TAG_PATTERN),
        ("PURGE /", &[("surrogate-key", &many)], TOO_MANY_KEYS),
        ("PURGE /", &[("surrogate-key", " , ")], NO_KEYS),
        ("POST /service/abc/purge", &[("fastly-key", "x")], NO_KEYS),
        ("PURGE /souin-api/souin", &[], NO_KEYS),
        (
            "PURGE /souin-api/souin/surrogate_keys",
            &[],
            "Souin's API takes Surrogate-Key, /flush, or an ID such as GET-http-blog.example.org-/hello/",
        ),
    ];
    let policy = Policy::new(Settings::preset(Kind::Generic));
    for (line, fields, why) in cases {
        assert_eq!(asked(&policy, line, fields).1, Some(Err(*why)), "{line}");
    }
}

/// A blog may have a post about purging, and a shop a form for its services.
#[test]
fn what_only_looks_like_a_purge_goes_its_usual_way() {
    let policy = Policy::new(Settings::preset(Kind::Generic));
    let with_path = Policy::new(Settings { purge_path: Some("/purge".to_owned()), ..Settings::preset(Kind::Generic) });
    assert!(matches!(asked(&policy, "GET /purge/hello/", &[]).0, Verdict::Lookup(_)));
    assert_eq!(asked(&with_path, "GET /purge/hello/", &[]).0, Verdict::Purge);
    for line in ["GET /purges/hello/", "GET /purge", "HEAD /purge/hello/"] {
        assert!(matches!(asked(&with_path, line, &[]).0, Verdict::Lookup(_)), "{line}");
    }
    for line in ["POST /service/abc/purge", "POST /purge/hello/", "DELETE /hello/", "purge /hello/"] {
        assert_eq!(asked(&with_path, line, &[]).0, Verdict::Pass(PassRule::Method), "{line}");
    }
    for line in ["POST /service/abc/purges", "POST /service//purge", "POST /service/abc/purge/"] {
        assert_eq!(asked(&policy, line, &[("fastly-key", "x")]).0, Verdict::Pass(PassRule::Method), "{line}");
    }
}

proptest! {
    /// Whatever is sent: it is understood as something that begins as the request says, or refused.
    #[test]
    fn no_request_purges_what_it_does_not_name(
        method in "PURGE|BAN|GET|POST",
        path in "/(service/a/|purge/|souin-api/souin/?|)[a-z%.*^$(GET)http:/-]{0,24}",
        way in "default|exact|regex|tags|x",
        value in "[ -~]{0,16}",
    ) {
        let policy = Policy::new(Settings { purge_path: Some("/purge".to_owned()), ..Settings::preset(Kind::Generic) });
        let fields = [("x-purge-method", way.as_str()), ("x-cache-tags-pattern", value.as_str()), ("fastly-key", "k")];
        if let Some(Ok(request)) = asked(&policy, &format!("{method} {path}"), &fields).1 {
            prop_assert!(!request.what.is_empty());
            for what in request.what {
                match what {
                    What::Url(named) | What::Prefix(named) => {
                        prop_assert!(named.path().starts_with('/'));
                        let plain = path.replace('\\', "");
                        let elsewhere = path.starts_with("/souin-api/");
                        prop_assert!(elsewhere || named.authority() == "blog.example");
                        prop_assert!(elsewhere || plain.contains(named.path()), "{named} of {path}");
                    }
                    What::Host(host) => prop_assert!(false, "no dialect names a host alone: {host}"),
                    What::Tag(tag) => prop_assert!(!tag.is_empty()),
                    What::Everything => prop_assert!(path.ends_with("all") || path.contains("/souin-api/souin/")),
                }
            }
        }
    }
}
