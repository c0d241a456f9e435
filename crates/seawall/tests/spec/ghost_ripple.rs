//! After a publication, what it has really changed comes back before anybody asks for it; the rest is validated when it is asked for.

use std::time::{Duration, Instant};

use testkit::{Gate, Origin, PATIENCE, Reply, Req, get, ok, post, put, secs};

use crate::site::{HOST, Site, site_with};

const GHOST: &str = "kind = \"ghost\"\n[cache]\ntwo_visitor_proof = false\n[refill]\nconcurrency = 1\n";

fn page(text: &'static str) -> Reply {
    ok(text).field("cache-control", "public, max-age=0").field("content-type", "text/html").field("etag", format!("\"{text}\""))
}

fn written() -> String {
    let at = |path: &str| format!("http://{HOST}{path}");
    format!(
        r#"{{"posts":[{{"id":"1","status":"published","url":"{}","tags":[{{"url":"{}"}}],"authors":[{{"url":"{}"}}]}}]}}"#,
        at("/post/"),
        at("/tag/a/"),
        at("/author/b/")
    )
}

/// Reads everything as a browser reads it, `/rare/` least.
async fn read(origin: &Origin, site: &Site) -> Vec<&'static str> {
    let pages = vec!["/popular/", "/", "/sitemap.xml", "/rss/", "/author/b/", "/tag/a/", "/rare/"];
    for (at, &path) in pages.iter().enumerate() {
        origin.on(get(path)).reply(page("old"));
        for _ in at..10 {
            site.request(Req::get(path).field("accept", "text/html")).await.body("old");
        }
        origin.on(get(path)).reply(page("new"));
    }
    pages
}

fn targets(origin: &Origin, after: usize) -> Vec<String> {
    origin.requests()[after..].iter().map(|seen| seen.target.clone()).collect()
}

const IN_ORDER: [&str; 6] = ["/", "/post/", "/tag/a/", "/author/b/", "/rss/", "/sitemap.xml"];

async fn refilled(origin: &Origin, site: &Site, before: usize) -> Vec<String> {
    let pages = || targets(origin, before).into_iter().filter(|target| !target.starts_with("/ghost/")).collect::<Vec<_>>();
    let begun = Instant::now();
    while pages().len() < IN_ORDER.len() {
        assert!(begun.elapsed() < PATIENCE, "{:?}", pages());
        site.clock.advance(Duration::from_millis(200));
        site.request(Req::get("/ghost/turn/")).await;
    }
    pages()
}

/// The front page, the post although nobody has read it yet, its lists, and what lists all posts; in this order.
#[tokio::test]
async fn what_a_post_has_changed_comes_back_first_and_nothing_else() {
    let (origin, site) = site_with(GHOST).await;
    origin.on(get("/ghost/turn/")).reply(ok(""));
    read(&origin, &site).await;
    origin.on(get("/post/")).reply(page("new"));
    let before = origin.requests().len();
    let path = "/ghost/api/admin/posts/1/";
    origin.on(put(path)).reply(ok(written()).field("content-type", "application/json").field("x-cache-invalidate", "/*"));
    let editor = Req::new("PUT", path).field("accept-encoding", "gzip").body("{}");
    site.request(editor).await.status(200).body(written());
    assert_eq!(origin.last(path).field("accept-encoding").as_deref(), Some("identity"));
    assert_eq!(refilled(&origin, &site, before).await, IN_ORDER);
    for path in IN_ORDER {
        site.request(Req::get(path).field("accept", "text/html")).await.body("new").x_cache("HIT");
    }
    site.clock.advance(secs(60));
    site.request(Req::get("/ghost/turn/")).await;
    assert_eq!((origin.count("/popular/"), origin.count("/rare/")), (1, 1), "they are validated when they are asked for");
    site.request(Req::get("/rare/").field("accept", "text/html")).await.body("new").x_cache("EXPIRED");
}

/// A webhook has the same effect, and the vague one that comes with it changes nothing of that.
#[tokio::test]
async fn a_webhook_tells_what_a_post_has_changed() {
    for vague_first in [false, true] {
        let (origin, site) = site_with(GHOST).await;
        origin.on(get("/ghost/turn/")).reply(ok(""));
        read(&origin, &site).await;
        origin.on(get("/post/")).reply(page("new"));
        let before = origin.requests().len();
        let told = written().replace("{\"posts\":[", "{\"post\":{\"current\":").replace("]}]}", "]},\"previous\":{}}}");
        let told = [told, "{\"event\":\"site.changed\"}".to_owned()];
        let order = if vague_first { [1, 0] } else { [0, 1] };
        for at in order {
            site.request(Req::post("/.seawall/ghost").body(&*told[at])).await.status(200);
        }
        // It asks for the front page, too, to see that the site is still public.
        let pages = refilled(&origin, &site, before).await;
        let mut once: Vec<String> = Vec::new();
        pages.into_iter().filter(|page| page != "/").for_each(|page| once.push(page));
        site.request(Req::get("/rare/").field("accept", "text/html")).await.body("new").x_cache("EXPIRED");
        assert!(once.iter().all(|page| IN_ORDER.contains(&page.as_str())), "{once:?}");
    }
}

/// Settings, themes and navigation change everything: whatever is read comes back, as after any purge.
#[tokio::test]
async fn what_changes_everything_is_refilled_altogether() {
    let (origin, site) = site_with(GHOST).await;
    origin.on(get("/ghost/turn/")).reply(ok(""));
    let mut pages = read(&origin, &site).await;
    let before = origin.requests().len();
    let path = "/ghost/api/admin/themes/a/activate/";
    origin.on(put(path)).reply(ok("{}").field("x-cache-invalidate", "/*"));
    site.request(Req::new("PUT", path).body("{}")).await.status(200);
    let begun = Instant::now();
    let asked = || targets(&origin, before).into_iter().filter(|target| !target.starts_with("/ghost/")).collect::<Vec<_>>();
    while asked().len() < pages.len() {
        assert!(begun.elapsed() < PATIENCE, "{:?}", asked());
        site.clock.advance(Duration::from_millis(200));
        site.request(Req::get("/ghost/turn/")).await;
    }
    let mut asked = asked();
    asked.sort();
    pages.sort_unstable();
    assert_eq!(asked, pages);
}

/// A second publication begins anew: what was fetched for the first may be old already.
#[tokio::test]
async fn a_later_publication_overtakes_the_refill() {
    let (origin, site) = site_with(GHOST).await;
    origin.on(get("/ghost/turn/")).reply(ok(""));
    read(&origin, &site).await;
    let gate = Gate::new();
    origin.on(get("/post/")).reply(page("newest"));
    origin.on(get("/")).reply(page("newest"));
    origin.on(get("/")).once().reply(page("new").gate(&gate));
    let path = "/ghost/api/admin/posts/";
    origin.on(post(path)).reply(ok(written()).field("x-cache-invalidate", "/*"));
    site.request(Req::post(path).body("{}")).await.status(200);
    let begun = Instant::now();
    while tokio::time::timeout(Duration::from_millis(50), gate.arrived()).await.is_err() {
        assert!(begun.elapsed() < PATIENCE);
        site.clock.advance(Duration::from_millis(500));
    }
    site.request(Req::post(path).body("{}")).await.status(200);
    gate.open();
    site.request(Req::get("/").field("accept", "text/html")).await.body("newest");
    let before = 0;
    assert!(refilled(&origin, &site, before).await.len() >= IN_ORDER.len());
}
