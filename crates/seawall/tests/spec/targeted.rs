//! Fields for caches of one kind: RFC 9213 (targeted fields), Surrogate-Control, and the dialects of purge plugins.

use store::{Hardness, PurgeTarget};
use testkit::{Reply, Req, get, not_modified, ok, post, secs, status};

use crate::site::{site, site_with};

fn page(fields: &[(&str, &str)]) -> Reply {
    fields.iter().fold(ok("text"), |page, (name, value)| page.field(name, *value))
}

/// RFC 9213 §2.2: the targeted field takes the place of Cache-Control and of Expires; §2.1: it is passed on.
#[tokio::test]
async fn the_narrowest_field_decides() {
    let past = ("expires", "Thu, 01 Jan 2015 00:00:00 GMT");
    for (fields, stored_for) in [
        (&[("cdn-cache-control", "max-age=60")][..], Some(60)),
        (&[("cdn-cache-control", "max-age=60"), past], Some(60)),
        (&[("cdn-cache-control", "max-age=60"), ("cache-control", "no-store")], Some(60)),
        (&[("cdn-cache-control", "max-age=60"), ("cache-control", "max-age=600")], Some(60)),
        (&[("cdn-cache-control", "max-age=60"), ("seawall-cache-control", "max-age=30")], Some(30)),
        (&[("cdn-cache-control", "no-store"), ("cache-control", "max-age=600")], None),
        (&[("cdn-cache-control", "private"), ("cache-control", "max-age=600")], None),
        (&[("cdn-cache-control", "max-age=60, &&&"), ("cache-control", "no-store")], None),
        (&[("cdn-cache-control", "max-age=\"60\""), ("cache-control", "max-age=600")], None),
        (&[("surrogate-control", "max-age=60, content=\"ESI/1.0\""), ("cache-control", "no-store")], Some(60)),
        (&[("surrogate-control", "max-age=60"), ("cache-control", "private")], None),
    ] {
        let (origin, site) = site().await;
        origin.on(get("/post")).reply(page(fields));
        let answer = site.get("/post").await.status(200);
        for (name, value) in fields {
            match *name {
                "cdn-cache-control" | "cache-control" => assert_eq!(answer.value(name).as_deref(), Some(*value), "{fields:?}"),
                "seawall-cache-control" | "surrogate-control" => assert_eq!(answer.value(name), None, "{fields:?}"),
                _ => {}
            }
        }
        let Some(stored_for) = stored_for else {
            site.get("/post").await.no_cache_status("hit");
            continue;
        };
        site.clock.advance(secs(stored_for - 1));
        site.get("/post").await.cache_status("hit; ttl=1").no_field("seawall-cache-control").no_field("surrogate-control");
        site.clock.advance(secs(1));
        site.get("/post").await.no_cache_status("hit");
    }
}

const DIALECT: [(&str, &str); 6] = [
    ("surrogate-key", "front post-1"),
    ("cache-tag", "a,b"),
    ("xkey", "c"),
    ("x-litespeed-tag", "p_Po.1,p_H"),
    ("x-litespeed-cache-control", "public,max-age=60"),
    ("surrogate-control", "max-age=60"),
];

/// What plugins write for a cache tells visitors how the site is built: on a miss, a hit, a 304, and what passes.
#[tokio::test]
async fn nobody_sees_what_was_written_for_the_cache() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page(&DIALECT).field("etag", "\"a\"").field("cache-groups", "\"g\""));
    origin.on(post("/post")).reply(page(&DIALECT));
    origin.on(get("/mine")).reply(page(&DIALECT).field("seawall-cache-control", "no-store"));
    let head = Req::head("/post");
    for request in [
        Req::get("/post"),
        Req::get("/post"),
        head,
        Req::get("/post").field("if-none-match", "\"a\""),
        Req::post("/post"),
        Req::get("/mine"),
    ] {
        let answer = site.request(request).await;
        for (name, _) in DIALECT {
            assert_eq!(answer.value(name), None, "{name}: {answer}");
        }
    }
    site.get("/post").await.field("cache-groups", "\"g\"");
}

/// A 304 says nothing of tags and lifetimes that the stored response has: they hold on.
#[tokio::test]
async fn what_is_not_shown_survives_a_304() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(page(&[("surrogate-key", "post-1"), ("surrogate-control", "max-age=60"), ("etag", "\"a\"")]));
    site.get("/post").await.status(200);
    site.clock.advance(secs(60));
    origin.on(get("/post").field("if-none-match", "\"a\"")).reply(not_modified().field("etag", "\"a\""));
    site.get("/post").await.x_cache("REVALIDATED").no_field("surrogate-key");
    site.clock.advance(secs(59));
    site.get("/post").await.cache_status("hit; ttl=1");
    site.purge(&PurgeTarget::Tag { site: 0, tag: "post-1".to_owned() }, Hardness::Hard);
    site.get("/post").await.cache_status("fwd=uri-miss");
}

/// RFC 9111 §5.2.2.4, §5.2.2.7: the fields named are for the client whose request was fetched; the rest is for all.
#[tokio::test]
async fn fields_that_are_held_back_reach_their_own_client_alone() {
    for directive in ["private", "no-cache"] {
        let (origin, site) = site().await;
        let cache_control = format!("max-age=60, {directive}=\"x-user, set-cookie\"");
        let own = ok("text").field("x-user", "alice").field("set-cookie", "a=1").field("x-for", "all").field("etag", "\"a\"");
        origin.on(get("/post")).reply(own.field("cache-control", cache_control.as_str()));
        site.get("/post").await.field("x-user", "alice").field("set-cookie", "a=1").cache_status("stored");
        site.get("/post").await.no_field("x-user").no_field("set-cookie").field("x-for", "all").cache_status("hit");
        site.clock.advance(secs(60));
        origin.on(get("/post").field("if-none-match", "\"a\"")).reply(not_modified().field("x-user", "bob"));
        for outcome in ["fwd=stale; fwd-status=304", "hit"] {
            site.get("/post").await.no_field("x-user").no_field("set-cookie").field("x-for", "all").cache_status(outcome);
        }
    }
}

/// RFC 9111 §7.3, and why it is a setting.
#[tokio::test]
async fn a_cookie_is_stored_only_where_the_operator_says_so() {
    for (toml, second) in [("", "fwd=uri-miss"), ("[cache]\nstore_set_cookie = true", "hit")] {
        let (origin, site) = site_with(toml).await;
        origin.on(get("/post")).reply(page(&[("cache-control", "max-age=60"), ("set-cookie", "a=1")]));
        site.get("/post").await.field("set-cookie", "a=1");
        site.get("/post").await.field("set-cookie", "a=1").cache_status(second);
    }
}

/// RFC 9875 §2, §3: a group is a tag, and the answer to an unsafe method may invalidate it.
#[tokio::test]
async fn cache_groups_are_invalidated_together() {
    let (origin, site) = site().await;
    for (target, groups) in [("/a", "\"scripts\", \"x\""), ("/b", "\"scripts\""), ("/c", "\"styles\""), ("/d", "scripts")] {
        origin.on(get(target)).reply(page(&[("cache-control", "max-age=60"), ("cache-groups", groups)]));
        site.get(target).await.status(200);
    }
    // Not by a safe method.
    origin.on(get("/e")).reply(page(&[("cache-group-invalidation", "\"scripts\"")]));
    site.get("/e").await;
    site.get("/a").await.cache_status("hit");
    origin.on(post("/e")).reply(status(204).field("cache-group-invalidation", "\"scripts\", \"other\""));
    site.request(Req::post("/e")).await.status(204);
    for (target, outcome) in [("/a", "fwd=uri-miss"), ("/b", "fwd=uri-miss"), ("/c", "hit"), ("/d", "hit")] {
        site.get(target).await.cache_status(outcome);
    }
}
