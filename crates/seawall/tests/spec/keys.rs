//! The cache key: RFC 9111 §2 (target URI), RFC 3986 §6.2.2 (normal form), and the class of Accept.

use testkit::{Req, get, ok};

use crate::site::{HOST, site};

/// Origins put the host into links: each host has its own pages.
#[tokio::test]
async fn each_host_has_its_own_pages() {
    let (origin, site) = site().await;
    origin.on(get("/")).reply_with(|seen| ok(seen.field("host").unwrap_or_default()).field("cache-control", "max-age=60"));
    for status in ["fwd=uri-miss", "hit"] {
        for host in [HOST, "www.blog.example", "blog.example:8080"] {
            site.client().await.with_host(host).get("/").await.body(host).cache_status(status);
        }
    }
    // RFC 9110 §4.2.3: case and the default port make no difference.
    for host in ["BLOG.example", "blog.example:80"] {
        site.client().await.with_host(host).get("/").await.cache_status("hit");
    }
}

/// RFC 3986 §6.2.2: spellings of one path are one page, and the origin is asked in the normal form.
#[tokio::test]
async fn spellings_of_a_path_are_one_page() {
    let (origin, site) = site().await;
    origin.on(get("/a/post")).reply(ok("text").field("cache-control", "max-age=60"));
    site.get("/a/x/../%70ost").await.status(200).cache_status("fwd=uri-miss; stored");
    for spelling in ["/a/post", "/a/./post", "/a/%70%6fst", "/../a/post"] {
        site.get(spelling).await.status(200).cache_status("hit");
    }
    assert_eq!(origin.count("/a/post"), 1);
}

/// What RFC 3986 tells apart stays apart.
#[tokio::test]
async fn different_paths_stay_different() {
    let (origin, site) = site().await;
    origin.on(get("/*")).reply_with(|seen| ok(seen.target.clone()).field("cache-control", "max-age=60"));
    for target in ["/post", "/post/", "/Post", "/p%2Fost", "/po+st", "/po%20st", "//post"] {
        site.get(target).await.body(target).cache_status("fwd=uri-miss");
    }
}

/// pfefferle/wordpress-activitypub#783: the fediverse, language models and browsers ask for different things at one address, in any order,
/// and many origins do not say `Vary: Accept`.
#[tokio::test]
async fn the_class_of_accept_is_part_of_the_key() {
    let forms = [
        ("text/html,application/xhtml+xml,*/*;q=0.8", "html"),
        ("application/activity+json", "activity"),
        ("text/markdown", "markdown"),
        ("application/rss+xml", "feed"),
        ("application/json", "other"),
    ];
    for first in 0..forms.len() {
        let (origin, site) = site().await;
        for (accept, form) in forms {
            origin.on(get("/post").field("accept", accept)).reply(ok(form).field("cache-control", "max-age=60"));
        }
        for status in ["fwd=uri-miss", "hit"] {
            for at in 0..forms.len() {
                let (accept, form) = forms[(first + at) % forms.len()];
                site.request(Req::get("/post").field("accept", accept)).await.body(form).cache_status(status);
            }
        }
    }
}

/// Browsers that name their images and types differently read the same page.
#[tokio::test]
async fn browsers_share_a_page() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=60"));
    site.get("/post").await;
    for accept in ["*/*", "text/html", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", "image/webp,*/*"] {
        site.request(Req::get("/post").field("accept", accept)).await.cache_status("hit");
    }
    assert_eq!(origin.count("/post"), 1);
}

/// RFC 9112 §3.2.2: an absolute target names the same page, and its host goes before `Host`.
#[tokio::test]
async fn an_absolute_target_is_the_same_page() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply_with(|seen| ok(seen.field("host").unwrap_or_default()).field("cache-control", "max-age=60"));
    site.get("/post").await.body(HOST);
    site.client().await.with_host("other.example").get("http://blog.example/post").await.body(HOST).cache_status("hit");
    site.client().await.with_host(HOST).get("http://other.example/post").await.body("other.example").cache_status("fwd=uri-miss");
}

/// Origins that look for a form anywhere in `Accept` answer a mixture with it; the page of browsers must not become that.
#[tokio::test]
async fn a_mixture_of_forms_is_a_page_of_its_own() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply_with(|seen| {
        let json = seen.field("accept").is_some_and(|accept| accept.contains("activity+json"));
        ok(if json { "{}" } else { "<html>" }).field("cache-control", "max-age=60")
    });
    for accept in ["text/html, application/activity+json", "application/activity+json;q=0", "x/y;a=\"application/activity+json\""] {
        site.request(Req::get("/post").field("accept", accept)).await.status(200).body("{}");
    }
    site.request(Req::get("/post").field("accept", "text/html,*/*;q=0.8")).await.status(200).body("<html>");
    site.get("/post").await.status(200).body("<html>").cache_status("hit");
}

/// RFC 9110 §12.5.1: of two mixtures an origin may answer one with this form and the other with that, and it need not say `Vary` to be believed
/// here.
#[tokio::test]
async fn one_mixture_of_forms_is_not_another() {
    let mixtures = [
        ("text/html, application/activity+json;q=0.5", "<html>"),
        ("application/activity+json, text/html;q=0.5", "{}"),
        ("text/html;q=0.5, application/activity+json", "{}"),
    ];
    for first in 0..mixtures.len() {
        let (origin, site) = site().await;
        for (accept, form) in mixtures {
            origin.on(get("/post").field("accept", accept)).reply(ok(form).field("cache-control", "max-age=60"));
        }
        for status in ["fwd", "hit"] {
            for at in 0..mixtures.len() {
                let (accept, form) = mixtures[(first + at) % mixtures.len()];
                site.request(Req::get("/post").field("accept", accept)).await.body(form).cache_status(status);
            }
        }
    }
}
