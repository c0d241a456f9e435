//! Vary: RFC 9111 §4.1, RFC 9110 §12.5.5.

use testkit::{Req, get, ok, secs};

use crate::site::{site, site_with};

fn in_language(language: &str) -> Req {
    Req::get("/post").field("accept-language", language)
}

/// A stored response answers only requests with the same nominated fields.
#[tokio::test]
async fn each_language_has_its_own_variant() {
    let (origin, site) = site().await;
    for language in ["en", "de"] {
        let page = ok(language).field("vary", "accept-language").field("cache-control", "max-age=60");
        origin.on(get("/post").field("accept-language", language)).reply(page);
    }
    site.request(in_language("en")).await.body("en").cache_status("fwd=uri-miss; stored");
    site.request(in_language("de")).await.body("de").cache_status("fwd=vary-miss; stored");
    site.request(in_language("en")).await.body("en").cache_status("hit");
    site.request(in_language("de")).await.body("de").cache_status("hit");
    assert_eq!(origin.count("/post"), 2);
}

/// An absent field matches only its absence.
#[tokio::test]
async fn an_absent_field_is_a_value_of_its_own() {
    let (origin, site) = site().await;
    let page = |text: &'static str| ok(text).field("vary", "x-theme").field("cache-control", "max-age=60");
    origin.on(get("/post").without("x-theme")).reply(page("light"));
    origin.on(get("/post").field("x-theme", "dark")).reply(page("dark"));
    site.get("/post").await.body("light");
    site.request(Req::get("/post").field("x-theme", "dark")).await.body("dark").cache_status("fwd=vary-miss");
    site.get("/post").await.body("light").cache_status("hit");
}

/// Whitespace and case where they mean nothing make no difference (RFC 9111 §4.1); the rest does.
#[tokio::test]
async fn nominated_fields_are_compared_in_their_normal_form() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("text").field("vary", "Accept-Language").field("cache-control", "max-age=60"));
    site.request(in_language("en, de")).await.cache_status("fwd=uri-miss");
    site.request(in_language("EN,de")).await.cache_status("hit");
    site.request(in_language("en").field("accept-language", "de")).await.cache_status("hit");
    site.request(in_language("de, en")).await.cache_status("fwd=vary-miss");
}

/// All nominated fields must agree.
#[tokio::test]
async fn two_nominated_fields_make_a_table() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply_with(|seen| {
        let text = format!("{} {}", seen.field("accept-language").unwrap_or_default(), seen.field("x-theme").unwrap_or_default());
        ok(text).field("vary", "accept-language, x-theme").field("cache-control", "max-age=60")
    });
    for status in ["fwd", "hit"] {
        for (language, theme) in [("en", "dark"), ("en", "light"), ("de", "dark"), ("de", "light")] {
            let answer = site.request(in_language(language).field("x-theme", theme)).await;
            answer.body(format!("{language} {theme}")).cache_status(status);
        }
    }
    assert_eq!(origin.count("/post"), 4);
}

/// `Vary: *` fits no request.
#[tokio::test]
async fn vary_on_everything_is_never_reused() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("text").field("vary", "*").field("cache-control", "max-age=60"));
    for _ in 0..3 {
        site.get("/post").await.body("text").no_cache_status("hit");
    }
    assert_eq!(origin.count("/post"), 3);
}

/// Browsers name the same codings in different words; where codings are left to the origin, it is asked in one.
#[tokio::test]
async fn browsers_that_take_the_same_codings_share_a_variant() {
    let (origin, site) = site_with("[compress]\nenabled = false").await;
    origin.on(get("/post")).reply(ok("text").field("vary", "accept-encoding").field("cache-control", "max-age=60"));
    let coded = |codings: &str| Req::get("/post").field("accept-encoding", codings);
    site.request(coded("gzip, deflate, br")).await.cache_status("fwd=uri-miss");
    site.request(coded("br, gzip")).await.cache_status("hit");
    site.request(coded("identity")).await.cache_status("fwd=vary-miss");
}

/// Where we code ourselves, the origin is asked for the page without a coding, and that is for everybody, whatever its `Vary` says.
#[tokio::test]
async fn what_has_no_coding_is_one_variant() {
    let (origin, site) = site().await;
    origin
        .on(get("/post").field("accept-encoding", "identity"))
        .reply(ok("text").field("vary", "accept-encoding").field("cache-control", "max-age=60"));
    let coded = |codings: &str| Req::get("/post").field("accept-encoding", codings);
    site.request(coded("gzip, deflate, br")).await.cache_status("fwd=uri-miss");
    for codings in ["br, gzip", "identity", "gzip"] {
        site.request(coded(codings)).await.body("text").cache_status("hit").field("vary", "accept-encoding");
    }
}

/// §4.1: each variant is validated with its own validator.
#[tokio::test]
async fn a_variant_is_validated_by_its_own_tag() {
    let (origin, site) = site().await;
    for (language, tag) in [("en", "\"e\""), ("de", "\"d\"")] {
        let page = ok(language).field("vary", "accept-language").field("etag", tag).field("cache-control", "max-age=10");
        origin.on(get("/post").field("accept-language", language)).reply(page);
        site.request(in_language(language)).await.body(language);
    }
    site.clock.advance(secs(10));
    for (language, tag) in [("en", "\"e\""), ("de", "\"d\"")] {
        let confirmed = testkit::not_modified().field("etag", tag);
        origin.on(get("/post").field("accept-language", language).field("if-none-match", tag)).reply(confirmed);
        site.request(in_language(language)).await.body(language).x_cache("REVALIDATED");
    }
}

/// RFC 9110 §7.6.1: what `Connection` names stops here. The origin does not see it, so it selects no variant: else a client could store
/// the answer to those without the field under a value of its choice.
#[tokio::test]
async fn what_connection_names_selects_no_variant() {
    let (origin, site) = site().await;
    origin.on(get("/post").without("x-edition")).reply(ok("usual").field("cache-control", "max-age=60").field("vary", "X-Edition"));
    origin
        .on(get("/post").field("x-edition", "evening"))
        .reply(ok("evening").field("cache-control", "max-age=60").field("vary", "X-Edition"));
    let trick = Req::get("/post").field("x-edition", "evening").field("connection", "x-edition");
    site.request(trick).await.status(200).body("usual");
    site.request(Req::get("/post").field("x-edition", "evening")).await.status(200).body("evening");
    site.get("/post").await.status(200).body("usual").cache_status("hit");
}

/// A response that varies on what we write ourselves for each client is nobody else's.
#[tokio::test]
async fn what_varies_on_the_clients_address_is_not_stored() {
    let (origin, site) = site().await;
    for (at, name) in ["X-Forwarded-For", "accept, via", "Forwarded", "X-Real-IP"].into_iter().enumerate() {
        let target: &'static str = ["/a", "/b", "/c", "/d"][at];
        origin.on(get(target)).reply(ok("yours").field("cache-control", "public, max-age=60").field("vary", name));
        for _ in 0..2 {
            site.get(target).await.status(200).cache_status("detail=vary-star");
        }
        assert_eq!(origin.count(target), 2, "{name}");
    }
}

/// RFC 9110 §12.5.3: what is stored for one client must be readable for the next, also when the origin forgets `Vary`, and also when the
/// first one asked for itself alone.
#[tokio::test]
async fn a_coding_is_given_only_to_those_who_take_it() {
    let (origin, site) = site_with("[compress]\nenabled = false").await;
    origin
        .on(get("/coded").field("accept-encoding", "br, gzip"))
        .reply(ok("gzipped").field("content-encoding", "gzip").field("cache-control", "max-age=60"));
    origin.on(get("/coded").without("accept-encoding")).reply(ok("plain").field("cache-control", "max-age=60"));
    let browser = || Req::get("/coded").field("accept-encoding", "gzip, deflate, br, zstd");
    site.request(browser().field("cookie", "theme=dark")).await.status(200).body("gzipped");
    site.get("/coded").await.status(200).body("plain");
    // What is not coded anybody can read.
    site.request(browser()).await.status(200).cache_status("hit");
    site.get("/coded").await.status(200).body("plain").cache_status("hit");
}
