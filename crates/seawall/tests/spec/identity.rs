//! What a stored page depends on: the origin is told nothing that is neither in the key nor in the decision to share its answer. RFC 9110
//! §4.2.3 (one name for a host), §8.6 (one length), RFC 9111 §4.1, §7.1 (cache poisoning).

use std::fs;

use http::HeaderValue;
use policy::purge::{Order, What};
use store::{Hardness, PurgeTarget};
use testkit::{Origin, Req, SeenRequest, get, ok, post, raw, secs, status};

use crate::{
    h2,
    site::{HOST, Site, site, site_with},
    tls::{self, Authority},
};

const TRUSTING: &str = "[server]\ntrusted_proxies = [\"127.0.0.0/8\"]\n";

/// Spellings of [`HOST`] over http: case, the default port however it is written, an empty port, the root's dot.
const SPELLINGS: [&str; 9] = [
    "bLoG.eXaMpLe",
    "blog.example:80",
    "blog.example:080",
    "blog.example:0080",
    "blog.example:",
    "blog.example.",
    "blog.example.:",
    "BLOG.example.:0080",
    "blog.example.:80",
];

/// Returns everything that came, as a page: an origin that prints what it is told.
fn mirror(seen: &SeenRequest) -> String {
    let mut text = seen.target.clone();
    for (name, value) in seen.fields.iter() {
        text += &format!("\n{}: {}", name.to_ascii_lowercase(), value);
    }
    text
}

async fn mirroring(toml: &str) -> (Origin, Site) {
    let (origin, site) = site_with(toml).await;
    origin.on(get("/*")).reply_with(|seen| ok(mirror(seen)).field("cache-control", "max-age=60"));
    (origin, site)
}

/// However a stranger spells the host: the origin, and whoever asks later, see its one name.
#[tokio::test]
async fn the_origin_hears_one_name_of_a_host() {
    for spelling in SPELLINGS {
        let (origin, site) = mirroring("").await;
        site.client().await.with_host(spelling).get("/post").await.status(200);
        let seen = origin.last("/post");
        for (name, value) in [("host", HOST), ("x-forwarded-host", HOST), ("forwarded", "for=127.0.0.1;host=blog.example;proto=http")] {
            assert_eq!(seen.field(name).as_deref(), Some(value), "{name} of {spelling}");
        }
        site.get("/post").await.status(200).cache_status("hit");
        // What passes is told the same.
        origin.on(post("/form")).reply(ok("thanks"));
        site.client().await.with_host(spelling).request(Req::post("/form").body("a")).await.status(200);
        assert_eq!(origin.last("/form").field("host").as_deref(), Some(HOST), "{spelling}");
    }
}

/// Another port is another host, and an address has one spelling too (RFC 5952).
#[tokio::test]
async fn ports_and_addresses_have_one_spelling() {
    for (spelling, name) in [
        ("blog.example:8080", "blog.example:8080"),
        ("Blog.Example.:08080", "blog.example:8080"),
        ("blog.example:443", "blog.example:443"),
        ("[2001:DB8:0:0::1]", "[2001:db8::1]"),
        ("[2001:db8:0:0:0:0:0:1]:0080", "[2001:db8::1]"),
        ("[::1]:08080", "[::1]:8080"),
        ("192.0.2.7:80", "192.0.2.7"),
    ] {
        let (origin, site) = mirroring("").await;
        site.client().await.with_host(spelling).get("/post").await.status(200);
        assert_eq!(origin.last("/post").field("host").as_deref(), Some(name), "{spelling}");
        site.client().await.with_host(name).get("/post").await.status(200).cache_status("hit");
    }
}

/// Over https the default port is 443; which scheme it was, a trusted proxy says.
#[tokio::test]
async fn the_default_port_is_that_of_the_scheme_that_the_client_used() {
    let (origin, site) = mirroring(TRUSTING).await;
    for spelling in ["blog.example:443", "blog.example:0443", "Blog.example.:0443"] {
        let mut client = site.client().await.with_host(spelling);
        client.request(Req::get("/post").field("x-forwarded-proto", "https")).await.status(200);
        assert_eq!(origin.last("/post").field("host").as_deref(), Some(HOST), "{spelling}");
    }
    assert_eq!(origin.count("/post"), 1);
    let mut client = site.client().await.with_host("blog.example:443");
    client.request(Req::get("/post").field("x-forwarded-proto", "http")).await.status(200).cache_status("fwd=uri-miss");
    assert_eq!(origin.last("/post").field("host").as_deref(), Some("blog.example:443"));
}

/// An origin that sends everybody to its canonical name would send whoever asks for that name to the page itself.
#[tokio::test]
async fn a_redirect_to_the_canonical_host_does_not_lock_anybody_out() {
    for spelling in SPELLINGS {
        let (origin, site) = site().await;
        origin.on(get("/post")).reply_with(|seen| match seen.field("host").as_deref() {
            Some(HOST) => ok("text").field("cache-control", "max-age=60"),
            _ => status(301).field("location", format!("http://{HOST}/post")).field("cache-control", "max-age=60"),
        });
        site.client().await.with_host(spelling).get("/post").await.status(200).body("text");
        site.get("/post").await.status(200).body("text").cache_status("hit");
    }
}

/// A redirect that leads back to its own key is never stored, however the origin writes it: whoever follows it meets it again.
#[tokio::test]
async fn a_redirect_to_the_page_itself_is_known_by_what_it_means() {
    for (target, location) in [
        ("/caf%C3%A9", "/caf%c3%a9"),
        ("/a~b", "/a%7Eb"),
        ("/post", "http://blog.example.:0080/x/../post#top"),
        ("/post", "//BLOG.EXAMPLE./%70ost"),
        ("/post", "http://blog.example:/post?utm_source=feed"),
        ("/post?page=2", "/post?fbclid=1&page=2"),
        ("/post", "https://blog.example:0443/post"),
    ] {
        let (origin, site) = site().await;
        origin.on(get("/*")).reply(status(301).field("location", location).field("cache-control", "max-age=60"));
        site.get(target).await.status(301).cache_status("detail=redirect-loop");
    }
    let (origin, site) = site().await;
    origin.on(get("/*")).reply(status(301).field("location", "/post/").field("cache-control", "max-age=60"));
    site.get("/post").await.status(301).cache_status("stored");
}

/// What the server itself writes has the one name too: the blog's feed, and the way to https.
#[tokio::test]
async fn our_own_addresses_have_one_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let post = folder.path().join("blog/posts/2026-01-10-hello.md");
    fs::create_dir_all(post.parent().expect("a file is in a folder")).expect("made");
    fs::write(&post, "---\ntitle: Hello\n---\ntext\n").expect("written");
    for spelling in SPELLINGS {
        let site = Site::start(&format!("source = \"{}\"", folder.path().join("blog").display()));
        let feed = site.client().await.with_host(spelling).get("/feed.xml").await.status(200).text();
        assert!(feed.contains("http://blog.example/hello/"), "{spelling}: {feed}");
        site.get("/feed.xml").await.body(feed).cache_status("hit");
    }
    let (_origin, site) = site_with(&format!("{TRUSTING}[https]\nredirect = true")).await;
    let mut client = site.client().await.with_host("Blog.Example.:0080");
    let answer = client.request(Req::get("/post").field("x-forwarded-proto", "http")).await;
    answer.status(301).field("location", "https://blog.example/post");
}

/// The fields that origins take for the word of a proxy.
const INVENTED: [(&str, &str); 16] = [
    ("x-original-url", "/evil"),
    ("x-rewrite-url", "/evil"),
    ("x-forwarded-prefix", "/evil"),
    ("x-forwarded-path", "/evil"),
    ("x-forwarded-host", "evil.example"),
    ("x-forwarded-server", "evil.example"),
    ("x-forwarded-port", "6666"),
    ("x-forwarded-scheme", "evil"),
    ("x-forwarded-ssl", "evil"),
    ("x-host", "evil.example"),
    ("x-original-host", "evil.example"),
    ("forwarded", "host=evil.example"),
    ("x-real-ip", "evil"),
    ("client-ip", "evil"),
    ("x_forwarded_host", "evil.example"),
    ("front-end-https", "evil"),
];

/// A trusted proxy's word counts for the client's address and scheme. Most proxies pass on whatever else their clients invent.
#[tokio::test]
async fn a_trusted_proxy_does_not_vouch_for_what_its_clients_invent() {
    let (origin, site) = mirroring(TRUSTING).await;
    for (name, value) in INVENTED {
        let target = format!("/{name}");
        let request = Req::get(&target).field("x-forwarded-for", "198.51.100.9").field("x-forwarded-proto", "https");
        site.request(request.field(name, value)).await.status(200);
        let seen = mirror(&origin.last(&target));
        assert!(!seen.contains("evil") && !seen.contains("6666"), "{name}: {seen}");
        assert!(seen.contains("x-forwarded-for: 198.51.100.9, 127.0.0.1") && seen.contains("x-forwarded-host: blog.example"), "{seen}");
    }
}

/// A peer on a Unix socket is trusted as a proxy is, and no further.
#[tokio::test]
async fn nor_does_a_peer_on_a_unix_socket() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("socket");
    let origin = Origin::start();
    origin.on(get("/*")).reply_with(|seen| ok(mirror(seen)).field("cache-control", "max-age=60"));
    let listen = format!("[server]\nlisten = [\"127.0.0.1:0\", \"unix:{}\"]", socket.display());
    let _site = Site::start(&format!("source = \"{}\"\n{listen}", origin.url()));
    for (name, value) in INVENTED {
        let target = format!("/{name}");
        let mut client = testkit::Client::connect_unix(&socket).await.with_host(HOST);
        client.request(Req::get(&target).field("x-forwarded-for", "198.51.100.9").field(name, value)).await.status(200);
        let seen = mirror(&origin.last(&target));
        assert!(!seen.contains("evil") && !seen.contains("6666"), "{name}: {seen}");
        assert!(seen.contains("x-forwarded-for: 198.51.100.9\n") && seen.contains("x-real-ip: 198.51.100.9"), "{seen}");
    }
}

/// Left of the first address that is not a trusted proxy's stands what anybody may have written; the origin is told what can be relied on.
#[tokio::test]
async fn the_chain_begins_with_the_client() {
    for (lines, chain, client) in [
        (&["6.6.6.6, 198.51.100.9"][..], "198.51.100.9, 127.0.0.1", "198.51.100.9"),
        (&["6.6.6.6", "198.51.100.9, 127.0.0.5"], "198.51.100.9, 127.0.0.5, 127.0.0.1", "198.51.100.9"),
        (&["6.6.6.6, unknown"], "127.0.0.1", "127.0.0.1"),
        (&["6.6.6.6, <script>, 127.0.0.5"], "127.0.0.5, 127.0.0.1", "127.0.0.5"),
        (&[], "127.0.0.1", "127.0.0.1"),
    ] {
        let (origin, site) = mirroring(TRUSTING).await;
        let request = lines.iter().fold(Req::get("/post"), |request, line| request.field("x-forwarded-for", *line));
        site.request(request).await.status(200);
        let seen = origin.last("/post");
        assert_eq!(seen.field("x-forwarded-for").as_deref(), Some(chain), "{lines:?}");
        assert_eq!(seen.field("x-real-ip").as_deref(), Some(client), "{lines:?}");
        let elements: Vec<String> = chain.split(", ").map(|address| format!("for={address}")).collect();
        assert_eq!(seen.field("forwarded"), Some(format!("{};host=blog.example;proto=http", elements.join(", "))), "{lines:?}");
    }
}

/// RFC 7239: a proxy that writes `Forwarded` and passes on the `X-Forwarded-For` that its client wrote names two clients. What an address
/// permits, neither of them may do.
#[tokio::test]
async fn of_two_clients_neither_may_purge() {
    let (_origin, site) = site_with(TRUSTING).await;
    for (forwarded, code) in
        [(None, 200), (Some("for=127.0.0.1"), 200), (Some("for=203.0.113.5"), 403), (Some("for=127.0.0.1, for=x"), 403)]
    {
        let request = Req::new("PURGE", "/post").field("x-forwarded-for", "127.0.0.1");
        let request = forwarded.into_iter().fold(request, |request, forwarded| request.field("forwarded", forwarded));
        site.request(request).await.status(code);
    }
}

/// What a proxy of one's own says beyond that can be let through by name: then it is part of the key, and from strangers it is removed.
#[tokio::test]
async fn a_trusted_field_is_part_of_the_key() {
    let (origin, mut site) = mirroring(&format!("{TRUSTING}trusted_fields = [\"X-Forwarded-Prefix\", \"cf-ipcountry\"]")).await;
    for outcome in ["fwd=uri-miss; stored", "hit"] {
        for prefix in ["/a", "/b"] {
            let request = Req::get("/post").field("x-forwarded-prefix", prefix);
            site.request(request).await.status(200).cache_status(outcome).body_contains(&format!("x-forwarded-prefix: {prefix}"));
        }
        let both = Req::get("/post").field("cf-ipcountry", "NL").field("x-forwarded-prefix", "/a");
        site.request(both).await.status(200).cache_status(outcome).body_contains("cf-ipcountry: NL");
        site.get("/post").await.status(200).cache_status(outcome);
    }
    assert_eq!(origin.count("/post"), 4);
    // What is in the key is told, whatever `Connection` says.
    let unsaid = Req::get("/unsaid").field("x-forwarded-prefix", "/a").field("connection", "x-forwarded-prefix");
    site.request(unsaid).await.status(200).body_contains("x-forwarded-prefix: /a");
    // One address is purged in all its forms.
    let order = Order::by_operator(What::url(&format!("http://{HOST}/post")).expect("an address"), true);
    site.server.console().purge(&order).expect("a URL");
    site.request(Req::get("/post").field("x-forwarded-prefix", "/b")).await.status(200).no_cache_status("hit");
    let stranger = "[server]\ntrusted_proxies = [\"192.0.2.0/24\"]\ntrusted_fields = [\"x-forwarded-prefix\", \"cf-ipcountry\"]";
    site.reload(&format!("source = \"{}\"\n{stranger}", origin.url())).expect("reloaded");
    site.request(Req::get("/other").field("cf-ipcountry", "evil").field("x-forwarded-prefix", "/evil")).await.status(200);
    assert!(!mirror(&origin.last("/other")).contains("evil"));
    site.get("/other").await.status(200).cache_status("hit");
}

/// After a soft purge such a page comes back as itself: with what its key says.
#[tokio::test]
async fn a_page_of_a_trusted_field_is_refilled_with_it() {
    let (origin, site) = site_with(&format!("{TRUSTING}trusted_fields = [\"x-forwarded-prefix\"]\n[refill]\nconcurrency = 1")).await;
    origin.on(get("/home")).reply_with(|seen| ok(mirror(seen)).field("cache-control", "max-age=86400"));
    for _ in 0..3 {
        let request = Req::get("/home").field("x-forwarded-prefix", "/a").field("cache-control", "max-age=86400");
        site.request(request).await.status(200);
    }
    let before = origin.count("/home");
    site.purge(&PurgeTarget::All, Hardness::Soft);
    site.clock.advance(secs(1));
    origin.until_count("/home", before + 1).await;
    assert_eq!(origin.last("/home").field("x-forwarded-prefix").as_deref(), Some("/a"));
    assert_eq!(origin.last("/home").field("host").as_deref(), Some(HOST));
}

/// Cookies that do not change the page do not reach the origin with a request whose answer everybody gets.
#[tokio::test]
async fn an_ignored_cookie_is_not_in_a_shared_fetch() {
    for (toml, cookie) in [("", "_ga=<script>; _gid=1"), ("[cache]\nignore_cookies = [\"theme\"]", "theme=<script>; _ga=<script>")] {
        let (origin, site) = mirroring(toml).await;
        site.request(Req::get("/post").field("cookie", cookie)).await.status(200).cache_status("stored");
        assert_eq!(origin.last("/post").field("cookie"), None, "{cookie}");
        site.get("/post").await.status(200).cache_status("hit");
    }
    // A HEAD fetches for all, too; and what passes keeps what it brought.
    let (origin, site) = mirroring("").await;
    site.request(Req::head("/post").field("cookie", "_ga=<script>")).await.status(200);
    assert_eq!(origin.last("/post").field("cookie"), None);
    origin.on(post("/form")).reply(ok("thanks"));
    site.request(Req::post("/form").body("a").field("cookie", "_ga=1")).await.status(200);
    assert_eq!(origin.last("/form").field("cookie").as_deref(), Some("_ga=1"));
    // Somebody's own page is asked for with all that they sent.
    site.request(Req::get("/account").field("cookie", "session=1; _ga=1")).await.status(200);
    assert_eq!(origin.last("/account").field("cookie").as_deref(), Some("session=1; _ga=1"));
}

/// RFC 9111 §4.1: what the origin never saw selects nothing.
#[tokio::test]
async fn ignored_cookies_are_one_variant() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=60").field("vary", "cookie"));
    site.request(Req::get("/post").field("cookie", "_ga=1")).await.cache_status("stored");
    site.request(Req::get("/post").field("cookie", "_ga=2")).await.cache_status("hit");
    site.get("/post").await.cache_status("hit");
    assert_eq!(origin.count("/post"), 1);
}

/// Whose scripts a page has is a visitor's own decision: no other gets them by it.
#[tokio::test]
async fn a_visitors_consent_is_their_own() {
    for cookie in ["CookieConsent=yes", "OptanonConsent=groups%3A1", "OptanonAlertBoxClosed=1", "cookieyes-consent=yes", "euconsent-v2=x"] {
        let (origin, site) = site_with("[cache]\nhold = \"60s\"").await;
        origin.on(get("/post")).reply_with(|seen| ok(if seen.field("cookie").is_some() { "scripts" } else { "none" }));
        site.request(Req::get("/post").field("cookie", cookie)).await.body("scripts").no_cache_status("stored");
        site.get("/post").await.body("none").cache_status("stored");
        site.request(Req::get("/post").field("cookie", cookie)).await.body("scripts");
    }
    // Who says that it changes nothing shares the page, and the origin does not see the cookie.
    let (origin, site) = site_with("[cache]\nhold = \"60s\"\nignore_cookies = [\"CookieConsent\"]").await;
    origin.on(get("/post")).reply_with(|seen| ok(if seen.field("cookie").is_some() { "scripts" } else { "none" }));
    site.request(Req::get("/post").field("cookie", "CookieConsent=yes")).await.body("none").cache_status("stored");
    site.get("/post").await.body("none").cache_status("hit");
}

/// Fields that change what is asked for behind the back of the key.
#[tokio::test]
async fn what_overrides_the_request_is_not_in_a_shared_fetch() {
    let (origin, site) = mirroring("").await;
    for name in [
        "x-http-method-override",
        "x-method-override",
        "x-http-method",
        "x_http_method_override",
        "x-http-path-override",
        "x-http-host-override",
        "x-override-url",
        "x-original-uri",
        "x-original-path",
        "x-rewrite-uri",
        "x-forward-for",
        "x-http-destinationurl",
        "x-backend-host",
        "x-wap-profile",
        "x-host-override",
        "request-uri",
        "base-url",
        "destination",
        "content-encoding",
        "content-language",
        "content_type",
        "purpose",
        "sec-purpose",
        "x-moz",
        "a-im",
        "expect",
    ] {
        let target = format!("/{name}");
        let value = if name == "expect" { "100-continue" } else { "evil" };
        site.request(Req::get(&target).field(name, value)).await.status(200).cache_status("stored");
        assert_eq!(origin.last(&target).field(name), None, "{name}");
        site.get(&target).await.status(200).cache_status("hit");
    }
    // What passes is the client's own affair: frameworks take PUT from a POST.
    origin.on(post("/form")).reply(ok("thanks"));
    site.request(Req::post("/form").body("a").field("x-http-method-override", "PUT").field("content-type", "text/plain")).await.status(200);
    let seen = origin.last("/form");
    assert_eq!(seen.field("x-http-method-override").as_deref(), Some("PUT"));
    assert_eq!(seen.field("content-type").as_deref(), Some("text/plain"));
}

/// A GET has no content of any type, and still some servers look: what they answer then is for those who send the same.
#[tokio::test]
async fn a_refusal_for_the_sake_of_a_content_type_is_nobody_elses() {
    let (origin, site) = site().await;
    origin.on(get("/*")).reply_with(|seen| match seen.field("content-type").as_deref() {
        None | Some("application/json") => ok("text").field("cache-control", "max-age=60"),
        Some(_) => status(404).body("no such thing").field("cache-control", "max-age=60"),
    });
    for text in ["text/plain", "TEXT/plain; charset=x"] {
        site.request(Req::get("/post").field("content-type", text)).await.status(404);
    }
    site.get("/post").await.status(200).body("text").cache_status("stored");
    // Nobody makes variants without end: what is unusual is not sent.
    for number in 0..20 {
        site.request(Req::get("/post").field("content-type", format!("evil/{number}"))).await.status(200).cache_status("hit");
    }
    site.request(Req::get("/other").field("content-type", "evil/x")).await.status(200).cache_status("stored");
    assert_eq!(origin.last("/other").field("content-type"), None);
    // Who sends one gets what there is for all.
    for _ in 0..2 {
        site.request(Req::get("/post").field("content-type", "application/json")).await.status(200).body("text").cache_status("hit");
        site.get("/post").await.status(200).body("text").cache_status("hit");
    }
}

/// Frameworks answer a script with a fragment or with JSON, and many do not say so in `Vary`: that is not the page of those who come after it.
#[tokio::test]
async fn a_fragment_for_a_script_is_not_the_page() {
    for (name, value) in [("x-requested-with", "XMLHttpRequest"), ("x-pjax", "true"), ("hx-request", "true"), ("x-inertia", "true")] {
        let (origin, site) = site().await;
        origin.on(get("/*")).reply_with(move |seen| {
            let body = seen.field(name).map_or_else(|| "page".to_owned(), |said| format!("fragment for {said}"));
            ok(body).field("cache-control", "max-age=60")
        });
        let fragment = format!("fragment for {value}");
        for outcome in ["stored", "hit"] {
            site.request(Req::get("/post").field(name, value)).await.body(&fragment).cache_status(outcome);
        }
        for outcome in ["stored", "hit"] {
            site.get("/post").await.body("page").cache_status(outcome);
        }
        // A value that no script sends does not reach the origin: nobody makes variants without end.
        site.request(Req::get("/other").field(name, "<script>")).await.body("page").cache_status("stored");
        site.get("/other").await.body("page").cache_status("hit");
    }
}

/// RFC 9111 §4.1: any other field may be nominated by `Vary`, so it is sent.
#[tokio::test]
async fn other_fields_reach_the_origin_and_vary_works_with_them() {
    let (origin, site) = site().await;
    origin
        .on(get("/post"))
        .reply_with(|seen| ok(seen.field("foo").unwrap_or_default()).field("cache-control", "max-age=60").field("vary", "foo"));
    for outcome in ["stored", "hit"] {
        for foo in ["1", "2"] {
            site.request(Req::get("/post").field("foo", foo)).await.body(foo).cache_status(outcome);
        }
    }
    let fields =
        [("accept-language", "de"), ("user-agent", "x"), ("referer", "http://a/"), ("dnt", "1"), ("save-data", "on"), ("test-id", "7")];
    let request = fields.iter().fold(Req::get("/other"), |request, (name, value)| request.field(name, *value));
    origin.on(get("/other")).reply(ok("text"));
    site.request(request).await.status(200);
    for (name, value) in fields {
        assert_eq!(origin.last("/other").field(name).as_deref(), Some(value), "{name}");
    }
}

/// Fetch §3.2.1: an origin that allows whoever asks, and forgets to say that it looked, is not repeated to others.
#[tokio::test]
async fn an_allowed_origin_is_not_everybodys() {
    let (origin, site) = site().await;
    origin.on(get("/font")).reply_with(|seen| {
        let reply = ok("font").field("cache-control", "max-age=60");
        seen.field("origin").into_iter().fold(reply, |reply, origin| reply.field("access-control-allow-origin", origin))
    });
    for asks in ["https://evil.example", "https://blog.example", "https://evil.example"] {
        let answer = site.request(Req::get("/font").field("origin", asks)).await;
        answer.status(200).field("access-control-allow-origin", asks);
    }
    assert_eq!(origin.count("/font"), 2);
}

/// RFC 9110 §9.3.3: what is stored of the answer to a POST is what a GET of anybody would have got.
#[tokio::test]
async fn the_answer_to_a_post_becomes_the_page_only_if_nothing_but_the_key_decided() {
    for field in [("cookie", "_ga=<script>"), ("x-http-method-override", "PUT")] {
        let (origin, site) = site().await;
        let reply = |text: &str| ok(text.to_owned()).field("cache-control", "max-age=60").field("content-location", "/post");
        origin.on(post("/post")).reply(reply("of the post"));
        origin.on(get("/post")).reply(reply("of the page"));
        site.request(Req::post("/post").body("a").field(field.0, field.1)).await.status(200).body("of the post");
        site.get("/post").await.body("of the page").no_cache_status("hit");
    }
}

/// RFC 9110 §8.6: a length is one number. The same one several times, or with zeros before it, goes on as it should have been.
#[tokio::test]
async fn a_length_goes_on_in_its_one_form() {
    let authority = Authority::new();
    for lines in ["5, 5", "5,5", "005", "  5 ", "5\r\nContent-Length: 5", "05, 5\r\nContent-Length: 5 ,\t005", "00000000000000000000005"] {
        let (origin, site) = tls::site(&authority, "");
        let head = format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\nContent-Length: {lines}\r\n\r\n");
        origin.on(get("/*")).reply(raw(format!("{head}hello")));
        origin.on(testkit::head("/alone")).reply(raw(head.clone()));
        let no_store = head.replace("max-age=60", "no-store");
        origin.on(get("/alone")).reply(raw(format!("{no_store}hello")));
        for target in ["/post", "/post", "/alone"] {
            let answer = site.get(target).await.status(200).body("hello");
            assert_eq!(answer.value("content-length").as_deref(), Some("5"), "{lines:?}");
        }
        let (mut send, _connection) = h2::client(&authority, &site, 65_535).await;
        for (method, target, body) in
            [("GET", "/post", "hello"), ("GET", "/h2", "hello"), ("GET", "/alone", "hello"), ("HEAD", "/alone", ""), ("HEAD", "/head", "")]
        {
            let (response, content) = h2::answer(&mut send, h2::request(method, target, &[]), "").await;
            let lengths: Vec<_> = response.headers().get_all("content-length").iter().map(HeaderValue::as_bytes).collect();
            assert_eq!(
                (response.status().as_u16(), content.as_str(), lengths),
                (200, body, vec![&b"5"[..]]),
                "{lines:?} {method} {target}"
            );
        }
    }
}

/// Lengths that differ, or that are not a number: nobody can say where the content ends.
#[tokio::test]
async fn a_length_that_is_none_is_refused() {
    for lines in ["5, 6", "5\r\nContent-Length: 6", "+5", "-5", "5,", ",5", "5,,5", "", "0x5", "5 5", "5;5", "99999999999999999999", "5.0"]
    {
        for (method, code) in [("GET", 200), ("HEAD", 200), ("GET", 304), ("GET", 404), ("HEAD", 404)] {
            let (origin, site) = site().await;
            let head = format!("HTTP/1.1 {code} X\r\nCache-Control: no-store\r\nETag: \"a\"\r\nContent-Length: {lines}\r\n\r\n");
            let body = if method == "GET" && code != 304 { "hello" } else { "" };
            let matcher = testkit::method(method, "/post");
            origin.on(matcher).reply(raw(format!("{head}{body}")));
            let request = Req::new(method, "/post").field("cookie", "session=1").field("if-none-match", "\"a\"");
            let answer = site.request(request).await;
            assert_eq!(answer.code, 502, "{method} {code} {lines:?}");
        }
    }
}

/// A request's length as well: what is not a single number is refused, and zeros before it go no further.
#[tokio::test]
async fn a_requests_length_is_one_number() {
    let (origin, site) = site().await;
    origin.on(post("/form")).reply_with(|seen| ok(seen.text()));
    for lines in ["5, 5", "5,5", "+5", "5\r\nContent-Length: 5", "5\r\nContent-Length: 6", "", "5,", "99999999999999999999"] {
        let mut client = site.client().await;
        client.send_raw(format!("POST /form HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {lines}\r\n\r\nhello")).await;
        assert!([400, 413].contains(&client.read_answer().await.code), "{lines:?}");
    }
    assert_eq!(origin.count("/form"), 0);
    let mut client = site.client().await;
    client.send_raw(format!("POST /form HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 0005\r\n\r\nhello")).await;
    client.read_answer().await.status(200).body("hello");
    assert_eq!(origin.last("/form").field("content-length").as_deref(), Some("5"));
}

/// The root's dot makes no other host: a purge by host covers what was asked for with it, and may be written with it.
#[tokio::test]
async fn a_purge_by_host_covers_every_spelling() {
    for spelling in SPELLINGS {
        for purged in [HOST, "Blog.Example.", "blog.example:80", "blog.example.:0080"] {
            let (_origin, site) = mirroring("").await;
            site.client().await.with_host(spelling).get("/post").await.cache_status("stored");
            let order = Order::by_operator(What::host(purged).expect("a host"), true);
            site.server.console().purge(&order).expect("a host");
            site.client().await.with_host(spelling).get("/post").await.no_cache_status("hit");
        }
    }
}
