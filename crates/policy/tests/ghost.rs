//! The rules for a Ghost: which requests ask the cache, what of them is in the key, and what is kept of the answers.
//!
//! The headers are those that Ghost 6.65.0 sends.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use policy::{Carries, KeepFacts, Key, Kind, NotKept, Policy, Settings, Verdict};
use semantics::{
    Scheme, Timestamp,
    cache_control::RequestDirectives,
    request::{RequestFields, RequestHead},
};

const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

/// The word of Ghost on everything in `/members/api/`.
const PRIVATE: &str = "no-cache, private, no-store, must-revalidate, max-stale=0, post-check=0, pre-check=0";
/// The word of Ghost on a page that does not exist.
const NO_CACHE: &str = "no-cache, max-age=0, no-store, must-revalidate, max-stale=0, post-check=0, pre-check=0";

fn fields(fields: &[(&'static str, &str)]) -> HeaderMap {
    fields.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).expect("a value"))).collect()
}

fn at(base: &str) -> Policy {
    Policy::new(Settings { base_path: base.to_owned(), ..Settings::preset(Kind::Ghost) })
}

/// Returns the name of the rule by which a request passes, or the target in its key.
fn judged(policy: &Policy, target: &str, said: &[(&'static str, &str)]) -> Result<String, &'static str> {
    let map = fields(said);
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let fields = RequestFields::from_map(&map);
    let head = RequestHead { method: &Method::GET, scheme: Scheme::Https, authority: "blog.example", path, query, fields: &fields };
    let mut key = Vec::new();
    match policy.verdict(1, &head, &mut key) {
        Verdict::Lookup(carries) => {
            assert_eq!(carries, Carries::default(), "a shared answer rests on no cookie: {target} {said:?}");
            Ok(Key::read(&key).expect("a key").target.to_owned())
        }
        Verdict::Pass(rule) => Err(rule.name()),
        verdict @ (Verdict::Purge | Verdict::Malformed) => panic!("{target}: {verdict:?}"),
    }
}

const MEMBER: &str = "ghost-members-ssr=abc; ghost-members-ssr.sig=def";
const TOOLBAR: &str = "ghost-admin-toolbar=1:2:3";

#[test]
fn pages_are_the_same_for_all_who_are_nobody_in_particular() {
    let ghost = at("");
    for (target, key) in [
        ("/", "/"),
        ("/hello/", "/hello/"),
        ("/rss/", "/rss/"),
        ("/tag/news/rss/", "/tag/news/rss/"),
        ("/hello.md", "/hello.md"),
        ("/llms.txt", "/llms.txt"),
        ("/sitemap-posts.xml", "/sitemap-posts.xml"),
        // Names that begin like a rule.
        ("/ghosts-of-the-past/", "/ghosts-of-the-past/"),
        ("/members-only/", "/members-only/"),
        ("/pages/", "/pages/"),
        ("/rye-bread/", "/rye-bread/"),
        ("/private-thoughts/", "/private-thoughts/"),
    ] {
        assert_eq!(judged(&ghost, target, &[]).as_deref(), Ok(key), "{target}");
        // RFC 6265: cookies of analytics, of consent, of a theme.
        assert_eq!(judged(&ghost, target, &[("cookie", "_ga=1; cookieconsent=yes; theme=dark")]).as_deref(), Ok(key), "{target}");
    }
}

#[test]
fn what_changes_no_page_costs_nothing() {
    let ghost = at("");
    // The 22 of Ghost's list that change nothing on a page, and what nobody has listed.
    for name in [
        "v",
        "portal-action",
        "comments",
        "updatesandannouncements",
        "firstStart",
        "include",
        "fields",
        "limit",
        "order",
        "filter",
        "page",
        "ids",
        "via",
        "ref",
        "source",
        "utm_source",
        "utm_medium",
        "attribution_id",
        "attribution_type",
        "resource",
        "sr_id",
        "step",
        "fbclid",
        "force_params",
        "x",
    ] {
        assert_eq!(judged(&ghost, &format!("/hello/?{name}=1"), &[]).as_deref(), Ok("/hello/"), "{name}");
    }
}

#[test]
fn what_unlocks_something_passes() {
    let ghost = at("");
    for (query, rule) in [
        ("gift=abc", "ghost-gift"),
        ("gift=", "ghost-gift"),
        ("gift", "ghost-gift"),
        ("gift[]=x", "ghost-gift"),
        ("gift%5B%5D=x", "ghost-gift"),
        ("%67ift=x", "ghost-gift"),
        ("[gift]=x", "ghost-gift"),
        ("fbclid=1&gift=x", "ghost-gift"),
        ("token=abc&action=signin", "ghost-token"),
        ("otc_verification=1", "ghost-token"),
        ("uuid=1&key=2", "ghost-member-key"),
        ("m=1", "ghost-member-key"),
        ("admin=1", "ghost-staff"),
        ("admin_toolbar=0", "ghost-staff"),
        ("member_status=paid", "ghost-staff"),
        ("member_tier=1", "ghost-staff"),
        ("ssml=1", "ghost-sign-on"),
        ("ssts=1", "ghost-sign-on"),
        ("action=unsubscribe", "ghost-action"),
        ("newsletter=1", "ghost-action"),
        ("r=/", "ghost-action"),
    ] {
        assert_eq!(judged(&ghost, &format!("/hello/?{query}"), &[]), Err(rule), "{query}");
    }
    for (said, rule) in [
        (("x-ghost-preview", "c=ff0000"), "ghost-preview"),
        (("authorization", "Basic eA=="), "authorization"),
        (("cookie", MEMBER), "ghost-member-cookie"),
        (("cookie", "a=1; ghost-members-ssr=stale"), "ghost-member-cookie"),
        (("cookie", "ghost-access=free:1; ghost-access-hmac=0"), "ghost-member-cookie"),
        (("cookie", "members-ssr=1"), "ghost-member-cookie"),
        (("cookie", TOOLBAR), "ghost-staff-cookie"),
        (("cookie", "ghost-private=1"), "ghost-private-cookie"),
    ] {
        for target in ["/", "/hello/", "/rss/", "/robots.txt"] {
            assert_eq!(judged(&ghost, target, &[said]), Err(rule), "{target} {said:?}");
        }
    }
}

#[test]
fn paths_that_are_somebodys_pass_in_every_spelling() {
    let ghost = at("");
    for (target, rule) in [
        ("/ghost/", "ghost-admin"),
        ("/ghost", "ghost-admin"),
        ("/GHOST/", "ghost-admin"),
        // To Ghost several slashes are one.
        ("//ghost/api/admin/site/", "ghost-admin"),
        ("//p//0f8fad5b-d9cb-469f-a165-70867728950e/", "ghost-preview"),
        ("/members//api/session/", "ghost-members"),
        ("/%67host/", "ghost-admin"),
        ("/x/../ghost/", "ghost-admin"),
        ("/ghost/api/admin/posts/?limit=1", "ghost-admin"),
        ("/ghost/api/admin/content/", "ghost-admin"),
        ("/ghost/api/vx/content/posts/", "ghost-admin"),
        ("/members/?token=abc", "ghost-members"),
        ("/Members/?token=abc", "ghost-members"),
        ("/members/api/session/", "ghost-members"),
        ("/members/api/integrity-token/", "ghost-members"),
        ("/members/api/member/newsletters/?uuid=1&key=2", "ghost-members"),
        ("/p/0f8fad5b-d9cb-469f-a165-70867728950e/", "ghost-preview"),
        ("/email/0f8fad5b-d9cb-469f-a165-70867728950e/", "ghost-preview"),
        ("/unsubscribe/?uuid=1&key=2", "ghost-unsubscribe"),
        ("/private/?r=%2F", "ghost-private"),
        ("/gift/abc/", "ghost-gift"),
        ("/r/abc?m=1", "ghost-link"),
        ("/webmentions/receive/", "ghost-webmentions"),
        ("/.ghost/activitypub/inbox/index", "ghost-companions"),
        ("/.well-known/webfinger?resource=acct:a@b", "ghost-companions"),
        ("/3f2504e04f8911d39a0c0305e82c33/rss/", "ghost-private-feed"),
        ("/3F2504E04F8911D39A0C0305E82C33/rss", "ghost-private-feed"),
    ] {
        assert_eq!(judged(&ghost, target, &[]), Err(rule), "{target}");
    }
}

#[test]
fn a_file_is_everybodys_who_may_see_it() {
    let ghost = at("");
    for target in ["/content/images/size/w600/a.jpg", "/content/media/a.mp4", "/content/files/a.pdf"] {
        assert_eq!(judged(&ghost, &format!("{target}?v=1&gift=1"), &[("cookie", MEMBER)]).as_deref(), Ok(target));
        assert_eq!(judged(&ghost, target, &[("cookie", "ghost-private=1")]).as_deref(), Ok(target));
    }
    let stylesheet = "/assets/built/screen.css?v=xPGozQS2SFMZDlmQ";
    assert_eq!(judged(&ghost, &format!("{stylesheet}&utm_source=x"), &[("cookie", MEMBER)]).as_deref(), Ok(stylesheet));
    // A private blog answers with its password page to all who have not given the password.
    assert_eq!(judged(&ghost, stylesheet, &[("cookie", "ghost-private=1")]), Err("ghost-private-cookie"));
}

#[test]
fn the_apis_are_asked_once_for_all_who_are_not_signed_in() {
    let ghost = at("");
    for (target, key) in [
        ("/members/api/member/", "/members/api/member/"),
        ("/members/api/member?x=1", "/members/api/member"),
        ("/members/api/comments/counts/?ids=1,2&x=1", "/members/api/comments/counts/?ids=1,2"),
        ("/members/api/comments/post/1/?page=2&fbclid=1", "/members/api/comments/post/1/?page=2"),
        ("/members/.well-known/jwks.json", "/members/.well-known/jwks.json"),
        ("/ghost/auth-frame/", "/ghost/auth-frame/"),
        ("/ghost/api/content/posts/?key=1&limit=5&x=1", "/ghost/api/content/posts/?key=1&limit=5"),
        ("/ghost/api/v3/content/posts/?key=1", "/ghost/api/v3/content/posts/?key=1"),
        ("/ghost/api/canary/content/posts/?key=1", "/ghost/api/canary/content/posts/?key=1"),
    ] {
        assert_eq!(judged(&ghost, target, &[]).as_deref(), Ok(key), "{target}");
    }
    for target in ["/members/api/member/", "/members/api/comments/post/1/", "/members/api/comments/counts/"] {
        assert_eq!(judged(&ghost, target, &[("cookie", MEMBER)]), Err("ghost-member-cookie"), "{target}");
        assert_eq!(judged(&ghost, target, &[("authorization", "Bearer x")]), Err("authorization"), "{target}");
        assert_eq!(judged(&ghost, &format!("{target}?uuid=1"), &[]), Err("ghost-member-key"), "{target}");
    }
    assert_eq!(judged(&ghost, "/ghost/auth-frame/", &[("cookie", "ghost-admin-api-session=1")]), Err("ghost-staff-cookie"));
    assert_eq!(judged(&ghost, "/ghost/api/content/posts/", &[("authorization", "Ghost x")]), Err("authorization"));
}

#[test]
fn a_ghost_below_a_path_has_the_same_rules_there() {
    let ghost = at("/blog");
    assert_eq!(judged(&ghost, "/blog/ghost/", &[]), Err("ghost-admin"));
    assert_eq!(judged(&ghost, "/Blog/members/?token=1", &[]), Err("ghost-members"));
    assert_eq!(judged(&ghost, "/blog/members/api/member/", &[]).as_deref(), Ok("/blog/members/api/member/"));
    assert_eq!(judged(&ghost, "/blog/assets/a.css?v=1", &[]).as_deref(), Ok("/blog/assets/a.css?v=1"));
    assert_eq!(judged(&ghost, "/blog/hello/?ref=x", &[]).as_deref(), Ok("/blog/hello/"));
    assert_eq!(judged(&ghost, "/.well-known/webfinger?resource=a", &[]), Err("ghost-companions"));
}

/// Returns for how many seconds an answer is kept, or the rule by which it is not.
fn kept(target: &str, status: u16, said: &[(&'static str, &str)]) -> Result<u64, &'static str> {
    let headers = fields(said);
    let status = StatusCode::from_u16(status).expect("a status");
    let seen = KeepFacts {
        method: &Method::GET,
        authority: "blog.example",
        target,
        carries: Carries::default(),
        request: &RequestDirectives::NONE,
        status,
        headers: &headers,
        request_time: NOW,
        response_time: NOW,
        just_purged: false,
    };
    match at("").keep(&seen) {
        Ok(kept) => {
            assert_eq!(kept.freshness.stale_if_error, Some(Duration::from_hours(7 * 24)), "{target}");
            Ok(kept.freshness.lifetime.as_secs())
        }
        Err(why) => Err(NotKept::name(why)),
    }
}

#[test]
fn pages_are_kept_until_ghost_says_that_they_changed() {
    let public: &[(&str, &str)] = &[("cache-control", "public, max-age=0"), ("etag", "W/\"1\"")];
    assert_eq!(kept("/", 200, public), Ok(86_400));
    assert_eq!(kept("/rss/", 200, public), Ok(86_400));
    assert_eq!(kept("/robots.txt", 200, &[("cache-control", "public, max-age=3600")]), Ok(86_400));
    assert_eq!(kept("/ghost/api/content/posts/?key=1", 200, public), Ok(86_400));
    assert_eq!(kept("/content/images/a.jpg", 200, &[("cache-control", "public, max-age=31536000")]), Ok(31_536_000));
    // A redirect is good for a year, says Ghost: for a day.
    assert_eq!(kept("/hello", 301, &[("cache-control", "public, max-age=31536000"), ("location", "/hello/")]), Ok(86_400));
}

#[test]
fn what_is_for_one_reader_or_for_the_moment_is_not_kept() {
    let public: &[(&str, &str)] = &[("cache-control", "public, max-age=0")];
    for status in [302, 303, 307, 400, 401, 402, 403, 500, 503] {
        assert_eq!(kept("/", status, &[("cache-control", "public, max-age=3600"), ("location", "/x/")]), Err("status"), "{status}");
    }
    // A part of a picture and a confirmation are judged for what they are.
    assert_eq!(kept("/content/images/a.jpg", 206, public), Err("partial"));
    assert_eq!(kept("/", 304, public), Err("not-modified"));
    // A private blog's redirect says nothing at all.
    assert_eq!(kept("/", 302, &[("location", "/private/?r=%2F")]), Err("status"));
    assert_eq!(kept("/", 200, &[("cache-control", PRIVATE)]), Err("no-store"));
    // TryGhost/Ghost#27942: public, with a cookie that ends somebody's session.
    assert_eq!(
        kept("/", 200, &[("cache-control", "public, max-age=0"), ("set-cookie", "ghost-members-ssr=; expires=x")]),
        Err("set-cookie")
    );
    // Somebody is signed in after all.
    assert_eq!(kept("/members/api/member/", 200, &[("cache-control", PRIVATE)]), Err("status"));
    assert_eq!(kept("/ghost/api/content/posts/?key=wrong", 401, public), Err("status"));
}

#[test]
fn answers_to_nobody_in_particular_are_held_for_seconds() {
    let private: &[(&str, &str)] = &[("cache-control", PRIVATE)];
    assert_eq!(kept("/members/api/member/", 204, private), Ok(30));
    assert_eq!(kept("/members/api/comments/post/1/", 200, private), Ok(30));
    assert_eq!(kept("/members/api/comments/counts/?ids=1", 200, &[("cache-control", "public, max-age=0")]), Ok(30));
    assert_eq!(kept("/ghost/auth-frame/", 204, &[("cache-control", "public, max-age=0")]), Ok(30));
    // A broken link on the front page of the world.
    assert_eq!(kept("/wp-login.php", 404, &[("cache-control", NO_CACHE)]), Ok(10));
    assert_eq!(kept("/content/images/no.jpg", 404, &[("cache-control", NO_CACHE)]), Ok(10));
}
