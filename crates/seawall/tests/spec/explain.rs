//! `seawall explain`: what it says is what then happens, and asking changes nothing.

use std::time::Duration;

use ::operator::{AdminClient, explain};
use admin::{
    Explanation,
    explanation::{ExplainedVerdict, FreshnessSource, PurgeHardness, PurgeTargetKind, PurgedHow},
};
use store::{Hardness, PurgeTarget, Usage};
use testkit::{Gate, Origin, Req, get, ok, post, secs};

use crate::{
    operator::{Operator, TOKEN},
    site::{HOST, Site, site, site_with},
    tls::Authority,
};

fn ask(operator: &Operator, method: &str, target: &str, fields: &[(&str, &str)]) -> Explanation {
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    let command = explain::command(&format!("http://{HOST}{target}"), method, &fields).expect("a command");
    explain::run(&operator.client(), &command).expect("an explanation")
}

/// Prepares a site; then the same request is explained and sent.
type Before = for<'a> fn(&'a Origin, &'a Site) -> std::pin::Pin<Box<dyn Future<Output = ()> + 'a>>;

struct Case {
    name: &'static str,
    before: Before,
    method: &'static str,
    target: &'static str,
    fields: &'static [(&'static str, &'static str)],
    /// `X-Cache`, and what `Cache-Status` holds.
    expected: (&'static str, &'static str),
}

const NOTHING: Before = |_, _| Box::pin(async {});

/// `/post` is stored and some seconds old.
const STORED: Before = |_, site| {
    Box::pin(async {
        site.get("/post").await.status(200);
        site.clock.advance(secs(10));
    })
};

const EXPIRED: Before = |_, site| {
    Box::pin(async {
        site.get("/post").await.status(200);
        site.clock.advance(secs(70));
    })
};

fn table() -> Vec<Case> {
    let case = |name, before, target, expected| Case { name, before, method: "GET", target, fields: &[], expected };
    let with = |name, fields, expected| Case { fields, ..case(name, STORED, "/post", expected) };
    vec![
        case("nothing is stored", NOTHING, "/post", ("MISS", "fwd=uri-miss")),
        case("it is stored", STORED, "/post", ("HIT", "hit; ttl=50")),
        case("a tracker is not part of the key", STORED, "/post?utm_source=x", ("HIT", "hit; ttl=50")),
        case("its lifetime is over", EXPIRED, "/post", ("EXPIRED", "fwd=stale")),
        case(
            "RFC 5861 §3",
            |_, site| {
                Box::pin(async {
                    site.get("/swr").await.status(200);
                    site.clock.advance(secs(70));
                })
            },
            "/swr",
            ("UPDATING", "hit; ttl=-10"),
        ),
        case(
            "purged softly",
            |_, site| {
                Box::pin(async {
                    site.get("/short").await.status(200);
                    site.clock.advance(secs(70));
                    site.purge(&PurgeTarget::All, Hardness::Soft);
                })
            },
            "/short",
            ("EXPIRED", "fwd=stale"),
        ),
        case(
            "purged hard",
            |_, site| {
                Box::pin(async {
                    site.get("/post").await.status(200);
                    site.purge(&PurgeTarget::All, Hardness::Hard);
                })
            },
            "/post",
            ("MISS", "fwd=uri-miss"),
        ),
        case(
            "another variant is stored",
            |_, site| {
                Box::pin(async {
                    site.request(Req::get("/vary").field("x-tier", "gold")).await.status(200);
                })
            },
            "/vary",
            ("MISS", "fwd=vary-miss"),
        ),
        case(
            "the last answer could not be shared",
            |_, site| {
                Box::pin(async {
                    site.get("/private").await.status(200);
                })
            },
            "/private",
            ("MISS", "fwd=uri-miss"),
        ),
        case(
            "the origin is down, and a stale copy stands in",
            |origin, site| {
                Box::pin(async {
                    site.get("/post").await.status(200);
                    site.clock.advance(secs(70));
                    origin.kill();
                    site.get("/post").await.status(200).x_cache("STALE");
                })
            },
            "/post",
            ("STALE", "hit; ttl=-10"),
        ),
        with("RFC 9111 §5.2.1.4", &[("cache-control", "no-cache")], ("BYPASS", "fwd=request")),
        with("RFC 9111 §5.2.1.7, stored", &[("cache-control", "only-if-cached")], ("HIT", "hit")),
        Case {
            fields: &[("cache-control", "only-if-cached")],
            ..case("RFC 9111 §5.2.1.7", NOTHING, "/post", ("MISS", "detail=only-if-cached"))
        },
        with("RFC 9111 §3.5: the origin shared it with max-age alone", &[("authorization", "Basic c2VjcmV0")], ("BYPASS", "fwd=bypass")),
        with("the origin's own word is for cookies too", &[("cookie", "session=secret")], ("HIT", "hit")),
        Case {
            fields: &[("cookie", "session=secret")],
            ..case(
                "a guess is not",
                |_, site| {
                    Box::pin(async {
                        site.get("/guess").await.status(200);
                    })
                },
                "/guess",
                ("BYPASS", "fwd=bypass"),
            )
        },
        Case { method: "POST", ..case("an unsafe method", STORED, "/post", ("BYPASS", "fwd=method")) },
        Case { method: "HEAD", ..case("HEAD is answered from the same", STORED, "/post", ("HIT", "hit")) },
    ]
}

/// For every way in which a request can go: the explanation names it, asks the origin nothing, and then the request goes that way.
#[tokio::test]
async fn what_is_explained_is_what_then_happens() {
    for Case { name, before, method, target, fields, expected: (x_cache, cache_status) } in table() {
        let (origin, site) = site().await;
        let operator = Operator::of(&site);
        let page = |control: &str| ok("text").field("cache-control", control).field("surrogate-key", "post-7 all");
        origin.on(get("/post").any_query()).reply(page("max-age=60"));
        origin.on(post("/post")).reply(ok("done"));
        origin.on(get("/short")).reply(page("max-age=60"));
        origin.on(get("/swr")).reply(page("max-age=60, stale-while-revalidate=60"));
        origin.on(get("/vary")).reply(page("max-age=60").field("vary", "x-tier"));
        origin.on(get("/private")).reply(page("private"));
        let modified = site.clock.http_date_ago(secs(86_400));
        origin.on(get("/guess")).reply(ok("text").field("last-modified", modified));
        before(&origin, &site).await;

        // Beside what a response that was just sent still holds.
        let held = || Usage { growing_bytes: 0, flights: 0, followers: 0, ..site.server.usage() };
        let before = (origin.requests().len(), held());
        let explained = ask(&operator, method, target, fields);
        assert_eq!((origin.requests().len(), held()), before, "{name}");
        assert_eq!(explained.now.x_cache, x_cache, "{name}: {explained:?}");
        assert!(explained.now.cache_status.contains(cache_status), "{name}: {explained:?}");
        assert_eq!(ask(&operator, method, target, fields), explained, "{name}: asking twice");

        let text = explain::text(&explained, false);
        assert!(
            text.contains(x_cache) && !text.contains("secret") && !text.contains("c2VjcmV0") && !text.contains('\x1b'),
            "{name}: {text}"
        );
        assert!(explain::text(&explained, true).contains('\x1b'), "{name}");

        let mut request = match method {
            "POST" => Req::post(target),
            "HEAD" => Req::head(target),
            _ => Req::get(target),
        };
        for (name, value) in fields {
            request = request.field(name, *value);
        }
        site.request(request).await.x_cache(x_cache).cache_status(cache_status);
        site.has_read_all().await;
    }
}

/// What is stored is shown as it was stored: its lifetime and who said so, its tags, variants, and what purged it.
#[tokio::test]
async fn what_is_stored_is_shown() {
    let (origin, site) = site_with("").await;
    let operator = Operator::of(&site);
    let page = |text: &'static str| {
        let page = ok(text).field("cache-control", "s-maxage=300, max-age=10").field("etag", "\"v1\"");
        page.field("vary", "x-tier").field("surrogate-key", "post-7 all").field("content-type", "text/html")
    };
    origin.on(get("/post")).reply(page("hello"));
    origin.on(get("/post").field("x-tier", "gold")).reply(page("hello, member"));
    site.get("/post").await.status(200);
    site.clock.advance(secs(100));
    site.request(Req::get("/post").field("x-tier", "gold")).await.status(200);
    site.clock.advance(secs(20));
    site.purge(&PurgeTarget::Tag { site: 0, tag: "post-7".to_owned() }, Hardness::Soft);

    let explained = ask(&operator, "GET", "/post", &[]);
    let [gold, plain] = explained.stored.as_slice() else { panic!("{explained:?}") };
    assert_eq!((gold.selected, plain.selected), (false, true));
    assert_eq!(plain.vary, [("x-tier".to_owned(), None)]);
    assert_eq!(gold.vary, [("x-tier".to_owned(), Some("gold".to_owned()))]);
    assert_eq!((plain.age_seconds, plain.lifetime_seconds, plain.fresh_seconds), (120, 300, 180));
    assert_eq!((gold.age_seconds, gold.fresh_seconds, gold.body_bytes), (20, 280, 13));
    assert_eq!((plain.freshness_source, plain.status, plain.etag.as_deref()), (FreshnessSource::Explicit, 200, Some("\"v1\"")));
    assert_eq!((plain.tags.as_slice(), plain.tiers.as_slice()), (&["post-7".to_owned(), "all".to_owned()][..], &["memory".to_owned()][..]));
    // RFC 9111 §3.5 and §4.2.4: s-maxage permits sharing with everybody, and forbids serving it stale.
    assert!(plain.for_cookies && plain.for_authorization);
    assert_eq!((plain.stale_while_revalidate_seconds, plain.stale_if_error_seconds), (0, 0));
    assert_eq!((plain.purged, plain.purges.len()), (PurgedHow::Soft, 1));
    assert_eq!((plain.purges[0].target, plain.purges[0].hardness), (PurgeTargetKind::Tag, PurgeHardness::Soft));
    let text = explain::text(&explained, false);
    for line in [
        "purged             soft, by tag (soft)",
        "tags               post-7, all",
        "fresh for another 3 min of 5 min (the origin said so)",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

/// Why something is not stored is remembered from the origin's last answer, and for how long its key goes uncollapsed.
#[tokio::test]
async fn why_the_last_answer_was_not_stored_is_remembered() {
    let (origin, site) = site().await;
    let operator = Operator::of(&site);
    for (target, name, value, reason) in [
        ("/private", "cache-control", "private", "private"),
        ("/no-store", "cache-control", "no-store", "no-store"),
        ("/cookie", "set-cookie", "a=1", "set-cookie"),
        ("/nothing", "x-none", "1", "unfresh"),
    ] {
        origin.on(get(target)).reply(ok("text").field(name, value));
        assert_eq!(ask(&operator, "GET", target, &[]).not_kept, None);
        site.get(target).await.status(200);
        site.clock.advance(secs(5));
        let explained = ask(&operator, "GET", target, &[]);
        let not_kept = explained.not_kept.as_ref().expect("a reason");
        assert_eq!((not_kept.reason.as_str(), not_kept.status, not_kept.seconds_ago), (reason, Some(200), 5), "{target}");
        assert_eq!(explained.uncacheable_seconds, Some(55), "{target}");
        assert!(explain::text(&explained, false).contains(&format!("not stored   the origin's last answer, 200, 5 s ago: {reason}")));
    }
    // Once it can be stored, there is nothing to explain any more.
    origin.on(get("/private")).reply(ok("text").field("cache-control", "max-age=60"));
    site.get("/private").await.status(200);
    assert_eq!(ask(&operator, "GET", "/private", &[]).not_kept, None);
    origin.kill();
    site.get("/other").await.status(502);
    let explained = ask(&operator, "GET", "/other", &[]);
    assert_eq!(explained.not_kept.as_ref().map(|it| it.status), Some(None), "{explained:?}");
    assert_eq!(explained.origin_down_seconds, Some(1), "{explained:?}");
    assert!(explain::text(&explained, false).contains("if it still fails, the client gets an error"), "{explained:?}");
}

/// A fetch under way is named, with who waits for it.
#[tokio::test]
async fn a_fetch_under_way_is_shown() {
    let (origin, site) = site().await;
    let operator = Operator::of(&site);
    let gate = Gate::new();
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=60").gate(&gate));
    let mut reader = site.client().await;
    reader.send(Req::get("/post")).await;
    gate.arrived().await;
    let mut second = site.client().await;
    second.send(Req::get("/post")).await;
    site.has_read_all().await;
    let flight = ask(&operator, "GET", "/post", &[]).flight.expect("a flight");
    assert_eq!((flight.followers, flight.arriving), (1, false));
    gate.open();
    reader.read_answer().await.body("text");
    second.read_answer().await.body("text");
    site.has_read_all().await;
    assert_eq!(ask(&operator, "GET", "/post", &[]).flight, None);
}

/// Each rule is told, with the names of cookies and parameters and never their values.
#[tokio::test]
async fn the_rules_are_told_in_order() {
    let (_origin, site) = site_with("[cache]\nignore_cookies = [\"theme\"]").await;
    let operator = Operator::of(&site);
    let fields = [("cookie", "theme=dark; session=s3cr3t"), ("accept", "application/activity+json")];
    let explained = ask(&operator, "GET", "/a/../post?fbclid=1&page=2", &fields);
    let told: Vec<String> = explained.rules.iter().map(|rule| format!("{}: {}", rule.rule, rule.detail)).collect();
    let expected = [
        "path: /post",
        "accept: activitypub",
        "query: page=2; removed: fbclid",
        "cookies: personal: session; ignored: theme",
        "authorization: none",
    ];
    assert_eq!(told[told.len() - 5..], expected);
    assert_eq!((explained.verdict, explained.url.as_str()), (ExplainedVerdict::Lookup, "http://blog.example/post?page=2"));
    assert_eq!(explained.key.as_ref().map(|key| key.accept.as_str()), Some("activitypub"));
    let json = serde_json::to_string(&explained).expect("JSON");
    assert!(!json.contains("s3cr3t") && !json.contains("dark"), "{json}");
}

/// Without further words a question is about what browsers get: the variant for the codings that they accept.
#[tokio::test]
async fn a_question_is_a_browsers_unless_it_says_otherwise() {
    let (origin, site) = site_with("[compress]\nenabled = false").await;
    let operator = Operator::of(&site);
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=60").field("vary", "accept-encoding"));
    site.request(Req::get("/post").field("accept-encoding", "gzip, deflate, br, zstd")).await.status(200);
    assert_eq!(ask(&operator, "GET", "/post", &[]).now.x_cache, "HIT");
    let identity = ask(&operator, "GET", "/post", &[("Accept-Encoding", "identity")]);
    assert_eq!(identity.now.cache_status, "seawall; fwd=vary-miss");
    let last = identity.lookup.last().expect("a step");
    assert_eq!((last.rule.as_str(), last.detail.as_str()), ("vary", "none for what this request says in accept-encoding"));
}

/// Behind a proxy that does TLS but is not trusted, everything is stored as http; who asks with https is told.
#[tokio::test]
async fn a_page_stored_under_the_other_scheme_is_noticed() {
    let (origin, site) = site().await;
    let operator = Operator::of(&site);
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=60"));
    site.get("/post").await.status(200);
    let command = explain::command(&format!("https://{HOST}/post"), "GET", &[]).expect("a command");
    let explained = explain::run(&operator.client(), &command).expect("an explanation");
    assert!(explained.stored_under_other_scheme && explained.stored.is_empty());
    assert!(!ask(&operator, "GET", "/post", &[]).stored_under_other_scheme);
}

/// What cannot be explained says what to do: no such site (with those that there are), no address, another token, no server.
#[tokio::test]
async fn what_cannot_be_explained_says_why() {
    let origin = Origin::start();
    let toml = format!("[[site]]\nhosts = [\"one.example\", \"*.two.example\"]\nsource = \"{}\"\n", origin.url());
    let site = Site::start(&toml);
    let operator = Operator::of(&site);
    let error = |client: &AdminClient, url: &str| {
        let command = explain::command(url, "GET", &[]).expect("a command");
        explain::run(client, &command).expect_err(url).to_string()
    };
    for (url, expected) in [
        ("http://three.example/", "no site is served under three.example\n  served are: one.example, *.two.example"),
        ("/hello/", "does not begin with http:// or https://"),
        ("one.example/hello/", "is not an address"),
        ("mailto:a@one.example", "does not begin with http:// or https://"),
        ("http://a@one.example/", "names no host"),
    ] {
        assert!(error(&operator.client(), url).contains(expected), "{url}: {}", error(&operator.client(), url));
    }
    let stranger = AdminClient::new(operator.address, &TOKEN.replace('0', "1")).expect("a token");
    assert!(error(&stranger, "http://one.example/").contains("does not accept this token"));
    assert!(explain::command("http://one.example/", "GET", &["nonsense".to_owned()]).expect_err("no field").contains("is not a field"));
    let (address, client) = (operator.address, operator.client());
    drop(operator);
    assert!(error(&client, "http://one.example/").contains(&format!("nothing listens at {address}")));
    site.stop(Duration::ZERO);
}

/// What a visitor meets before the request is judged is told, and what follows is for those who come in: a password of ours is nobody's cookie.
#[tokio::test]
async fn a_password_is_told_of() {
    let (origin, mut site) = site().await;
    std::fs::write(site.folder().join("users"), "ada:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n").expect("written");
    let settings =
        "[auth]\nfile = \"users\"\npaths = [\"/drafts\"]\n[https]\nredirect = true\n[server]\ntrusted_proxies = [\"192.0.2.1/32\"]";
    site.reload(&format!("source = \"{}\"\n{settings}", origin.url())).expect("reloaded");
    let operator = Operator::of(&site);
    let detail = |target: &str, rule: &str| {
        let explained = ask(&operator, "GET", target, &[("authorization", "Basic YWRhOnNlY3JldA==")]);
        let rule = explained.rules.iter().find(|told| told.rule == rule).unwrap_or_else(|| panic!("{explained:?}"));
        rule.detail.clone()
    };
    assert!(detail("/Drafts/one", "password").starts_with("asked for") && detail("/post", "password").starts_with("not asked"));
    assert_eq!((detail("/drafts/one", "authorization"), detail("/post", "authorization")), ("none".to_owned(), "present".to_owned()));
    assert!(detail("/post", "https").contains("over http"));
}

/// The first steps of a request are explained in their order, by the same judgement that answers it: the step that answers is named, and no
/// later one is tried.
#[tokio::test]
async fn the_step_that_answers_before_the_cache_is_asked_is_named() {
    let (origin, authority) = (Origin::start(), Authority::new());
    origin.on(get("/post")).reply(ok("text"));
    let toml = |redirect: bool| {
        format!(
            "{tls}[server]\nhealth_path = \"/up\"\n[https]\nredirect = {redirect}\n[auth]\nfile = \"FOLDER/users\"\npaths = [\"/drafts\"]\n\
             [[site]]\nhosts = [\"{HOST}\"]\nredirect_from = [\"www.{HOST}\"]\nsource = \"{origin}\"\n",
            tls = authority.section(),
            origin = origin.url(),
        )
    };
    let mut site = Site::start_with(|folder| {
        std::fs::write(folder.join("users"), "ada:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n").expect("written");
        toml(true)
    });
    let operator = Operator::of(&site);
    let proof = "/.well-known/acme-challenge/seawall";
    let twin = format!("www.{HOST}");
    let check = async |site: &Site, host: &str, target: &str, (status, step, words): (u16, &str, &str)| {
        let command = explain::command(&format!("http://{host}{target}"), "GET", &[]).expect("a command");
        let explained = explain::run(&operator.client(), &command).expect("an explanation");
        let decisive = explained.rules.last().expect("a rule");
        assert_eq!((decisive.rule.as_str(), decisive.decided), (step, true), "{host}{target}: {explained:?}");
        assert!(explained.now.words[0].contains(words), "{host}{target}: {explained:?}");
        assert!(explain::text(&explained, false).contains(words), "{host}{target}");
        site.client().await.with_host(host).get(target).await.status(status);
    };
    // Each step comes before the next one: the first request concerns them all.
    check(&site, &twin, proof, (200, "challenge", "a certificate authority's challenge")).await;
    check(&site, "other.example", proof, (200, "challenge", "a certificate authority's challenge")).await;
    check(&site, &twin, "/up", (200, "health", "the health check")).await;
    check(&site, "10.0.0.5", "/up", (200, "health", "the health check")).await;
    check(&site, &twin, "/drafts%2", (301, "twin host", "a host that only leads to another")).await;
    check(&site, HOST, "/drafts%2", (301, "https", "the https redirect: 301 to https://")).await;
    site.reload(&toml(false)).expect("reloaded");
    check(&site, HOST, "/drafts%2", (400, "password", "the password step: 400")).await;
    assert_eq!(origin.requests().len(), 0);
    // A proof that this server does not have may be the origin's, and a host that nobody has is nobody's.
    let explained = ask(&operator, "GET", "/.well-known/acme-challenge/other", &[]);
    let first = &explained.rules[0];
    assert_eq!((first.rule.as_str(), first.decided, explained.verdict), ("challenge", false, ExplainedVerdict::Lookup));
    let command = explain::command("http://other.example/post", "GET", &[]).expect("a command");
    explain::run(&operator.client(), &command).expect_err("no site has this host");
}

/// RFC 8297: who waits for the page is told what it needed last time.
#[tokio::test]
async fn hints_are_told_where_the_origin_is_asked() {
    let (origin, site) = site().await;
    let operator = Operator::of(&site);
    let page = "<link rel=stylesheet href=/a.css>";
    origin.on(get("/post")).reply(ok(page).field("content-type", "text/html").field("cache-control", "max-age=60"));
    site.get("/post").await.status(200);
    let words = || ask(&operator, "GET", "/post", &[]).now.words.join(" ");
    assert!(!words().contains("/a.css"), "{}", words());
    site.clock.advance(secs(61));
    assert!(words().contains("</a.css>; rel=preload; as=style"), "{}", words());
}

/// Settings, what the origin says, what was stored before, and who asks, in every combination: the explanation names the way that the request
/// then goes, shows a stored response as this request's exactly if that is used, and afterwards says of the answer what `Cache-Status` said.
#[tokio::test]
async fn an_explanation_never_contradicts_what_happens() {
    type Fields = &'static [(&'static str, &'static str)];
    const MEMBER: Fields = &[("cookie", "session=1")];
    let asking: [Fields; 5] =
        [&[], MEMBER, &[("cookie", "theme=dark")], &[("authorization", "Basic c2VjcmV0")], &[("cache-control", "no-cache")]];
    let words = ["", "max-age=60", "max-age=0", "no-cache", "private", "no-store", "public, max-age=60", "s-maxage=60"];
    for settings in ["ignore_cookies = [\"theme\"]\n", "ignore_cookies = [\"theme\"]\nhold = \"5m\"\n"] {
        let (origin, site) = site_with(&format!("[cache]\n{settings}")).await;
        let operator = Operator::of(&site);
        let mut number = 0;
        for control in words {
            for etag in [false, true] {
                for before in [None, Some((&[][..], 0)), Some((&[][..], 70)), Some((MEMBER, 0))] {
                    for fields in asking {
                        number += 1;
                        let target = format!("/p{number}");
                        let mut page = ok("text");
                        page = if control.is_empty() { page } else { page.field("cache-control", control) };
                        page = if etag { page.field("etag", "\"a\"") } else { page };
                        origin.on(get(&target)).reply(page);
                        let request = |fields: Fields| fields.iter().fold(Req::get(&target), |req, (name, value)| req.field(name, *value));
                        if let Some((fields, seconds)) = before {
                            site.request(request(fields)).await.status(200);
                            site.clock.advance(secs(seconds));
                        }
                        let case = format!("{settings}{control:?}, etag {etag}, before {before:?}, asks {fields:?}");
                        let told = ask(&operator, "GET", &target, fields);
                        let answer = site.request(request(fields)).await.status(200);
                        let (x_cache, status) = (answer.value("x-cache").expect("said"), answer.value("cache-status").expect("said"));
                        assert_eq!(told.now.x_cache, x_cache, "{case}: {told:?}");
                        assert!(status.starts_with(&told.now.cache_status), "{case}: {} and then {status}", told.now.cache_status);
                        // Of a request that must be validated, the stored response is the candidate.
                        let used = told.stored.iter().any(|stored| stored.selected);
                        let refused = told.stored.iter().any(|stored| stored.refused.is_some());
                        let from_store = matches!(x_cache.as_str(), "HIT" | "EXPIRED" | "STALE" | "UPDATING" | "REVALIDATED");
                        assert!(used == from_store || (used && status.contains("fwd=request")), "{case}: {told:?}, and then {status}");
                        assert!(!(used && refused), "{case}: {told:?}");
                        site.has_read_all().await;

                        let afterwards = ask(&operator, "GET", &target, fields);
                        let detail = status.split("; ").find_map(|part| part.strip_prefix("detail="));
                        let reason = afterwards.not_kept.as_ref().map(|not_kept| not_kept.reason.as_str());
                        if status.contains("stored") {
                            assert!(!afterwards.stored.is_empty() && reason.is_none(), "{case}: {status}, and then {afterwards:?}");
                        }
                        if let Some(detail) = detail {
                            assert_eq!(reason, Some(detail), "{case}: {afterwards:?}");
                        }
                    }
                }
            }
        }
    }
}

/// A hold is our promise about what is the same for all; a request with a cookie gets none of it, and is told so and not something else.
#[tokio::test]
async fn a_hold_is_not_for_cookies_and_says_so() {
    let (origin, site) = site_with("[cache]\nhold = \"5m\"").await;
    let operator = Operator::of(&site);
    let cookie = [("cookie", "session=1")];
    origin.on(get("/none")).reply(ok("text"));
    origin.on(get("/short")).reply(ok("text").field("cache-control", "max-age=60"));
    site.request(Req::get("/none").field("cookie", "session=1")).await.cache_status("detail=cookie");
    let explained = ask(&operator, "GET", "/none", &cookie);
    assert_eq!(explained.not_kept.as_ref().map(|not_kept| not_kept.reason.as_str()), Some("cookie"), "{explained:?}");
    for target in ["/none", "/short"] {
        site.get(target).await.cache_status("stored");
        let explained = ask(&operator, "GET", target, &cookie);
        let [stored] = explained.stored.as_slice() else { panic!("{explained:?}") };
        assert_eq!((stored.selected, stored.refused.as_deref()), (false, Some("for cookies")));
        assert_eq!(stored.freshness_source, FreshnessSource::Hold);
        let last = explained.lookup.last().expect("a rule");
        assert!(last.decided && last.detail.contains("hold"), "{last:?}");
        let text = explain::text(&explained, false);
        assert!(text.contains("<- fits, and is refused: for cookies") && !text.contains("<- for this request"), "{text}");
        assert!(text.contains("stored only if the origin itself gives it a lifetime"), "{text}");
        if target == "/none" {
            site.request(Req::get(target).field("cookie", "session=1")).await.cache_status("fwd=bypass");
            let text = explain::text(&ask(&operator, "GET", target, &cookie), false);
            // One answer is stored, another one was not: nothing is said to be both.
            assert!(text.contains("last answer  200, 0 s ago, was not stored: cookie") && !text.contains("not stored   "), "{text}");
        }
    }
}
