//! Against a real ACME server: Pebble, by Let's Encrypt. Time is an argument; only Pebble has a clock of its own.
//!
//! RFC 8555 (ACME), RFC 8737 (TLS-ALPN-01), RFC 9773 (renewal information). Pebble knows no renewal information and no rate limits: somebody
//! between us and it, `stage::Between`, answers for it there.

mod check;
mod shelf;
mod stage;
mod together;

use std::{fs, time::Duration};

use acme::{DemandOptions, Method, Refused};
use bytes::Bytes;
use http::Response;
use stage::{DAY, Stage, mode, now, only, serial};

const NAME: &str = "blog.example.org";
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// RFC 8555 §8.3.
#[tokio::test]
async fn a_certificate_is_had_by_http_01_kept_and_shown() {
    let stage = Stage::new().await;
    let keeper = stage.keeper(&[NAME]);
    let now = now();
    keeper.step(now).await;

    let status = only(&keeper, now);
    assert_eq!(status.last_error, None);
    let valid = status.not_after.expect("a certificate").since(now);
    assert!(valid > 89 * DAY && valid <= 90 * DAY, "{valid:?}");
    let shown = stage.shown.of(NAME).expect("shown");
    assert!(shown.cert.len() >= 2, "with its chain");
    assert_eq!(stage.challenges.content("/.well-known/acme-challenge/x"), None);
    for (file, expected) in [("blog.example.org.pem", 0o600), ("account.json", 0o600), ("", 0o700)] {
        assert_eq!(mode(&stage.kept().join(file)), expected, "{file}");
    }
    // Nothing is due, and nothing is ordered.
    keeper.step(now + DAY).await;
    assert_eq!(stage.between.asked("/order-plz").len(), 1);
    assert_eq!(stage.between.asked("/sign-me-up").len(), 1);
}

/// RFC 8737 §3.
#[tokio::test]
async fn a_certificate_is_had_by_tls_alpn_01() {
    let mut stage = Stage::new().await;
    stage.options.methods = vec![Method::TlsAlpn01];
    let keeper = stage.keeper(&[NAME]);
    keeper.step(now()).await;
    assert_eq!(only(&keeper, now()).last_error, None);
    assert!(stage.shown.of(NAME).is_some());
    assert_eq!(stage.shown.challenges(), 0, "the challenge is over");
}

/// RFC 8555 §8.4: this is the only way to a wildcard.
#[tokio::test]
async fn a_wildcard_is_had_by_a_program_that_writes_dns_records() {
    let mut stage = Stage::new().await;
    let dns = stage.pebble.dns_management();
    let log = stage.options.folder.with_file_name("log");
    stage.options.hook = Some(stage.hook(&format!(
        r#"echo "$1" >> {log}
           case $1 in present) path=/set-txt json="{{\"host\": \"$2.\", \"value\": \"$3\"}}";; *) path=/clear-txt json="{{\"host\": \"$2.\"}}";; esac
           exec 3<>/dev/tcp/{host}/{port}
           printf 'POST %s HTTP/1.1\r\nHost: dns\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s' "$path" "${{#json}}" "$json" >&3
           read -r line <&3; [[ $line == *" 200 "* ]]"#,
        log = log.display(),
        host = dns.ip(),
        port = dns.port(),
    )));
    stage.options.methods = vec![Method::Dns01];
    let keeper = stage.keeper(&["*.example.org"]);
    keeper.step(now()).await;
    assert_eq!(only(&keeper, now()).last_error, None);
    assert!(stage.shown.of("*.example.org").is_some());
    assert_eq!(fs::read_to_string(log).expect("called"), "present\ncleanup\n");
}

#[tokio::test]
async fn a_wildcard_without_such_a_program_is_an_error_with_its_remedy() {
    let stage = Stage::new().await;
    let keeper = stage.keeper(&["*.example.org"]);
    keeper.step(now()).await;
    let error = only(&keeper, now()).last_error.expect("an error");
    assert!(error.contains("needs dns-01") && error.contains("acme.dns_hook"), "{error}");
    assert_eq!(stage.between.asked("/order-plz").len(), 0);
}

/// It is renewed with thirty days left of ninety, and three of six.
#[tokio::test]
async fn it_is_renewed_by_age_with_a_new_key() {
    for (lifetime, at_latest) in [(90 * DAY, 60 * DAY), (6 * DAY, 3 * DAY)] {
        let stage = Stage::with(|pebble| pebble.lifetime = lifetime).await;
        let keeper = stage.keeper(&[NAME]);
        let now = now();
        keeper.step(now).await;
        let first = stage.shown.of(NAME).expect("shown");
        let due = only(&keeper, now).next;
        assert!(due.since(now) <= at_latest && due.since(now) >= at_latest - lifetime / 30, "{:?}", due.since(now));
        keeper.step(due - MINUTE).await;
        assert_eq!(serial(&stage.shown.of(NAME).expect("shown")), serial(&first));
        keeper.step(due).await;
        let second = stage.shown.of(NAME).expect("shown");
        assert_ne!(serial(&second), serial(&first));
        assert_ne!(second.end_entity_cert().expect("one"), first.end_entity_cert().expect("one"));
    }
}

/// RFC 9773 §4.2 and §5: it is renewed within the suggested window, and the order names the replaced certificate.
#[tokio::test]
async fn it_is_renewed_when_the_authority_suggests() {
    let stage = Stage::new().await;
    let keeper = stage.keeper(&[NAME]);
    let now = now();
    stage.between.suggest(now + 10 * DAY, now + 11 * DAY);
    keeper.step(now).await;
    let first = serial(&stage.shown.of(NAME).expect("shown"));
    keeper.step(now + MINUTE).await;
    let due = only(&keeper, now).next;
    assert!(due >= now + 10 * DAY && due <= now + 11 * DAY, "{:?}", due.since(now));
    keeper.step(due).await;
    assert_ne!(serial(&stage.shown.of(NAME).expect("shown")), first);
    let orders = stage.between.asked("/order-plz");
    assert_eq!(orders.len(), 2);
    assert_eq!(orders[0].payload.get("replaces"), None);
    let replaces = orders[1].payload["replaces"].as_str().expect("a certificate's id");
    assert!(stage.between.asked(replaces).iter().all(|asked| asked.path.contains("/renewal-info/")), "the id that was asked about");
}

/// RFC 9773 §4.2: by a window in the past an authority says that it has revoked the certificate, or will.
#[tokio::test]
async fn what_was_revoked_elsewhere_is_replaced_at_once() {
    let stage = Stage::new().await;
    let keeper = stage.keeper(&[NAME]);
    let now = now();
    stage.between.suggest(now + 50 * DAY, now + 51 * DAY);
    keeper.step(now).await;
    let next = keeper.step(now + MINUTE).await;
    let first = serial(&stage.shown.of(NAME).expect("shown"));
    assert!(next <= now + MINUTE + 6 * HOUR, "it asks again when the authority said: {:?}", next.since(now));
    stage.between.suggest(now - 2 * DAY, now - DAY);
    keeper.step(next).await;
    assert_ne!(serial(&stage.shown.of(NAME).expect("shown")), first);
}

/// Users of other servers were stuck here forever: an order was made, its answer was lost, and each further one names the same certificate.
#[tokio::test]
async fn a_certificate_that_has_a_replacement_already_is_renewed_all_the_same() {
    let stage = Stage::new().await;
    let keeper = stage.keeper(&[NAME]);
    let now = now();
    stage.between.suggest(now + 10 * DAY, now + 11 * DAY);
    keeper.step(now).await;
    keeper.step(now + MINUTE).await;
    let first = serial(&stage.shown.of(NAME).expect("shown"));
    stage.between.refuse("/order-plz", 1, 409, &[], "alreadyReplaced", "it has a replacement order");
    keeper.step(now + 11 * DAY).await;
    assert_ne!(serial(&stage.shown.of(NAME).expect("shown")), first);
    let orders = stage.between.asked("/order-plz");
    let named: Vec<bool> = orders.iter().map(|order| order.payload.get("replaces").is_some()).collect();
    assert_eq!(named, [false, true, false]);
}

/// RFC 8555 §7.6: the key is no longer to be trusted. The new certificate comes before the revocation: the site is never without one.
#[tokio::test]
async fn it_is_revoked_and_replaced() {
    let stage = Stage::new().await;
    let keeper = stage.keeper(&[NAME]);
    keeper.step(now()).await;
    let old = stage.shown.of(NAME).expect("shown");
    assert_eq!(stage.status_at_authority(&old).await, "Valid");
    keeper.revoke_and_replace(NAME, now()).await.expect("done");
    let new = stage.shown.of(NAME).expect("shown");
    assert_ne!(serial(&new), serial(&old));
    assert_eq!((stage.status_at_authority(&old).await, stage.status_at_authority(&new).await), ("Revoked".to_owned(), "Valid".to_owned()));
}

/// The authority fails between the order and the revocation. A second try must revoke the old certificate, not the new one.
#[tokio::test]
async fn what_was_not_revoked_is_revoked_the_next_time_and_nothing_else() {
    let stage = Stage::new().await;
    let keeper = stage.keeper(&[NAME]);
    keeper.step(now()).await;
    let old = stage.shown.of(NAME).expect("shown");
    stage.between.refuse("/revoke-cert", 1, 500, &[], "serverInternal", "not now");
    keeper.revoke_and_replace(NAME, now()).await.expect_err("it was refused");
    let new = stage.shown.of(NAME).expect("shown");
    assert_ne!(serial(&new), serial(&old));
    assert_eq!(stage.status_at_authority(&old).await, "Valid");
    // This is like a restart: only the folder is left.
    drop(keeper);
    let keeper = stage.keeper(&[NAME]);
    keeper.revoke_and_replace(NAME, now()).await.expect("done");
    assert_eq!(serial(&stage.shown.of(NAME).expect("shown")), serial(&new), "one order is enough");
    assert_eq!((stage.status_at_authority(&old).await, stage.status_at_authority(&new).await), ("Revoked".to_owned(), "Valid".to_owned()));
}

/// RFC 8555 §6.5. Pebble refuses a good nonce every now and then so that clients learn it.
#[tokio::test]
async fn refused_nonces_are_no_failures() {
    let stage = Stage::with(|pebble| pebble.refused_nonces = 15).await;
    let names = ["a.example.org", "b.example.org", "c.example.org"];
    let keeper = stage.keeper(&names);
    keeper.step(now()).await;
    for status in keeper.status(now()) {
        assert_eq!(status.last_error, None, "{}", status.name);
    }
}

#[tokio::test]
async fn an_authority_that_is_down_changes_nothing_and_is_tried_again_later_and_later() {
    let mut stage = Stage::new().await;
    let keeper = stage.keeper(&[NAME]);
    keeper.step(now()).await;
    let old = serial(&stage.shown.of(NAME).expect("shown"));
    stage.pebble.stop();

    let mut at = only(&keeper, now()).next;
    let mut waits = Vec::new();
    for _ in 0..4 {
        keeper.step(at).await;
        let status = only(&keeper, at);
        assert!(status.last_error.expect("an error").contains("127.0.0.1"), "it names who could not be reached");
        assert!(status.not_after.is_some());
        waits.push(status.next.since(at).as_secs() / 60);
        at = status.next;
    }
    assert_eq!(serial(&stage.shown.of(NAME).expect("still shown")), old);
    for (wait, least) in waits.iter().zip([2, 10, 30, 60]) {
        assert!((least..=least * 11 / 10).contains(wait), "{waits:?} minutes");
    }
    // The authority comes back, and has forgotten our account.
    stage.restart_authority().await;
    keeper.step(at).await;
    assert_ne!(serial(&stage.shown.of(NAME).expect("shown")), old);
    assert_eq!(only(&keeper, at).last_error, None);
    assert!(stage.kept().join("account.json.old").exists());
}

/// A name that leads to somebody else: a CDN, the old server, a typing error.
#[tokio::test]
async fn a_wrong_answer_is_told_with_a_remedy_and_the_other_way_is_tried_next() {
    let stage = Stage::with(|pebble| pebble.http_port = pebble.tls_port).await;
    let keeper = stage.keeper(&[NAME]);
    let now = now();
    keeper.step(now).await;
    let status = only(&keeper, now);
    let error = status.last_error.expect("an error");
    assert!(error.contains("could not verify it by http-01"), "{error}");
    assert!(stage.shown.of(NAME).is_none() && status.not_after.is_none());
    keeper.step(status.next).await;
    assert_eq!(only(&keeper, status.next).last_error, None, "by tls-alpn-01");
}

/// Let's Encrypt answers 429, `rateLimited`, `Retry-After`.
#[tokio::test]
async fn a_rate_limit_is_kept_over_a_restart_too() {
    let stage = Stage::new().await;
    let keeper = stage.keeper(&[NAME]);
    let begun = now();
    stage.between.refuse("/order-plz", 1, 429, &[("retry-after", "90000")], "rateLimited", "too many certificates for this set of names");
    keeper.step(begun).await;
    let status = only(&keeper, begun);
    assert!(status.last_error.expect("an error").contains("too many certificates"));
    assert_eq!(status.next.as_secs(), (begun + 25 * HOUR).as_secs());
    drop(keeper);

    let restarted = stage.keeper(&[NAME]);
    let seen = stage.between.asked("").len();
    for hour in 0..25 {
        restarted.step(begun + HOUR * hour).await;
    }
    assert_eq!(stage.between.asked("").len(), seen, "nobody was asked anything");
    restarted.step(begun + 25 * HOUR).await;
    assert!(stage.shown.of(NAME).is_some());
}

/// This is the most common way to be locked out for a week: something crashes, is restarted, orders, crashes.
#[tokio::test]
async fn a_restart_loop_orders_four_times_an_hour() {
    let stage = Stage::new().await;
    stage.between.refuse("/order-plz", 100, 403, &[], "unauthorized", "no");
    let begun = now();
    for second in 0..40 {
        stage.keeper(&[NAME]).step(begun + Duration::from_secs(second)).await;
    }
    assert_eq!(stage.between.asked("/order-plz").len(), 4);
}

#[tokio::test]
async fn a_restart_orders_nothing_that_is_there() {
    let stage = Stage::new().await;
    stage.keeper(&[NAME]).step(now()).await;
    let kept = stage.shown.of(NAME).expect("shown");
    acme::Sink::withdraw(&*stage.shown, NAME);
    let restarted = stage.keeper(&[NAME]);
    assert_eq!(serial(&stage.shown.of(NAME).expect("shown at once")), serial(&kept));
    restarted.step(now()).await;
    assert_eq!(stage.between.asked("/order-plz").len(), 1);
}

#[tokio::test]
async fn one_name_that_fails_spoils_no_other() {
    let stage = Stage::new().await;
    stage.pebble.tell_dns("/set-default-ipv4", r#"{"ip": ""}"#);
    stage.pebble.tell_dns("/add-a", r#"{"host": "found.example.org.", "addresses": ["127.0.0.1"]}"#);
    let keeper = stage.keeper(&["found.example.org", "lost.example.org"]);
    keeper.step(now()).await;
    let errors: Vec<bool> = keeper.status(now()).iter().map(|status| status.last_error.is_some()).collect();
    assert_eq!(errors, [false, true]);
    assert!(stage.shown.of("found.example.org").is_some() && stage.shown.of("lost.example.org").is_none());
}

/// RFC 8555 §7.3.4.
#[tokio::test]
async fn an_account_is_bound_to_one_that_exists_elsewhere() {
    let key = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";
    let mut stage = Stage::with(|pebble| pebble.external = Some(("kid-1".to_owned(), key.to_owned()))).await;
    let without = stage.keeper(&[NAME]);
    without.step(now()).await;
    let error = only(&without, now()).last_error.expect("an error");
    assert!(error.contains("acme.eab_key_id"), "{error}");
    drop(without);
    let decoded = base64::Engine::decode(&base64::prelude::BASE64_URL_SAFE_NO_PAD, key).expect("base64url");
    stage.options.account.external = Some(("kid-1".to_owned(), decoded));
    stage.options.account.email = Some("me@example.org".to_owned());
    let with = stage.keeper(&[NAME]);
    with.step(now() + MINUTE).await;
    assert_eq!(only(&with, now()).last_error, None);
    let account = &stage.between.asked("/sign-me-up")[1].payload;
    assert_eq!(account["contact"][0], "mailto:me@example.org");
}

/// draft-aaron-acme-profiles; Let's Encrypt's `shortlived` lasts six days.
#[tokio::test]
async fn the_profile_is_part_of_the_order() {
    let mut stage = Stage::new().await;
    stage.options.profile = Some("shortlived".to_owned());
    stage.keeper(&[NAME]).step(now()).await;
    assert_eq!(stage.between.asked("/order-plz")[0].payload["profile"], "shortlived");
}

/// Other servers ordered, could not write, and ordered again until the week's certificates were used up.
#[tokio::test]
async fn what_could_not_be_kept_is_not_ordered() {
    let stage = Stage::new().await;
    let keeper = stage.keeper(&[NAME]);
    fs::create_dir(stage.kept().join("blog.example.org.json.new")).expect("made");
    keeper.step(now()).await;
    let error = only(&keeper, now()).last_error.expect("an error");
    assert!(error.contains("nothing is ordered") && error.contains("acme.dir"), "{error}");
    assert_eq!(stage.between.asked("").len(), 0);
}

#[tokio::test]
async fn a_clock_that_is_wrong_by_years_is_named() {
    let stage = Stage::new().await;
    let keeper = stage.keeper(&[NAME]);
    keeper.step(now() - 1000 * DAY).await;
    let error = only(&keeper, now()).last_error.expect("an error");
    assert!(error.contains("is the clock of this machine right?"), "{error}");
}

#[tokio::test]
async fn local_names_are_certified_by_our_own_root_and_nobody_is_asked() {
    let stage = Stage::new().await;
    let keeper = stage.keeper(&["localhost"]);
    let now = now();
    keeper.step(now).await;
    assert_eq!(stage.between.asked("").len(), 0);
    let shown = stage.shown.of("localhost").expect("shown");
    let mut roots = rustls::RootCertStore::empty();
    let pem = fs::read(keeper.root().certificate_file()).expect("made");
    roots.add(rustls_pki_types::pem::PemObject::from_pem_slice(&pem).expect("PEM")).expect("a root");
    let verifier = rustls::client::WebPkiServerVerifier::builder(roots.into()).build().expect("a verifier");
    let verify = |name: &str| {
        let name = rustls_pki_types::ServerName::try_from(name.to_owned()).expect("a name");
        rustls::client::danger::ServerCertVerifier::verify_server_cert(
            &*verifier,
            &shown.cert[0],
            &shown.cert[1..],
            &name,
            &[],
            rustls_pki_types::UnixTime::since_unix_epoch(Duration::from_secs(now.as_secs())),
        )
    };
    verify("localhost").expect("trusted by whoever trusts the root");
    assert!(verify("example.org").is_err());
    assert_eq!(mode(&keeper.root().certificate_file().with_extension("key")), 0o600);
    // It is renewed like any other.
    let due = only(&keeper, now).next;
    keeper.step(due).await;
    assert_ne!(serial(&stage.shown.of("localhost").expect("shown")), serial(&shown));
}

#[tokio::test]
async fn on_demand_names_need_somebody_who_approves() {
    let mut stage = Stage::new().await;
    let ask = Some("http://127.0.0.1:9999/ask".to_owned());
    stage.options.demand = Some(DemandOptions { patterns: vec!["*.example.org".to_owned()], ask, names_max: 10, names_an_hour: 10 });
    stage.between.elsewhere(|request| {
        let status = match request.uri().to_string().as_str() {
            "http://127.0.0.1:9999/ask?domain=friend.example.net" => 200,
            uri if uri.starts_with("http://127.0.0.1:9999/") => 404,
            _ => return None,
        };
        Some(Response::builder().status(status).body(Bytes::new()).expect("a response"))
    });
    let keeper = stage.keeper(&[]);
    let now = now();
    for (name, expected) in [
        ("a.example.org", Ok(())),
        ("friend.example.net", Ok(())),
        ("stranger.example.net", Err(Refused::NotApproved)),
        ("localhost", Err(Refused::NoName)),
        ("192.0.2.1", Err(Refused::NoName)),
    ] {
        assert_eq!(keeper.demand(name, now).await, expected, "{name}");
        assert_eq!(stage.shown.of(name).is_some(), expected.is_ok(), "{name}");
    }
    assert_eq!(keeper.demand("stranger.example.net", now).await, Err(Refused::NotApproved));
    assert_eq!(stage.between.asked("/ask").len(), 2, "a refusal is remembered");
}

#[tokio::test]
async fn on_demand_names_are_limited() {
    let mut stage = Stage::new().await;
    let patterns = vec!["*.example.org".to_owned()];
    stage.options.demand = Some(DemandOptions { patterns, ask: None, names_max: 10, names_an_hour: 2 });
    let keeper = stage.keeper(&[]);
    let now = now();
    let mut outcomes = Vec::new();
    for name in ["a.example.org", "b.example.org", "c.example.org"] {
        outcomes.push(keeper.demand(name, now).await);
    }
    assert_eq!(outcomes, [Ok(()), Ok(()), Err(Refused::TooMany)]);
    assert_eq!(stage.between.asked("/order-plz").len(), 2);
}

/// RFC 8446 has no "come back later": a client that is refused shows an error page. All who wait are told, and there is one order for them.
#[tokio::test]
async fn who_connects_to_a_new_name_waits_for_its_certificate() {
    let mut stage = Stage::new().await;
    let patterns = vec!["*.example.org".to_owned()];
    let ask = Some("http://127.0.0.1:9999/ask".to_owned());
    stage.options.demand = Some(DemandOptions { patterns, ask, names_max: 10, names_an_hour: 10 });
    stage.between.elsewhere(|request| {
        let asks = request.uri().host() == Some("127.0.0.1") && request.uri().path() == "/ask";
        asks.then(|| Response::builder().status(404).body(Bytes::new()).expect("a response"))
    });
    let keeper = stage.keeper(&["blog.example.org"]);
    let now = now();
    let clients = async {
        // A stranger's name is decided as well.
        let names = ["a.example.org", "a.example.org", "stranger.example.net"];
        let told = names.map(|name| keeper.missed(name).expect("a place among those who wait"));
        for told in told {
            told.await.expect("decided");
        }
        assert!(stage.shown.of("a.example.org").is_some() && stage.shown.of("stranger.example.net").is_none());
        for nobody in ["192.0.2.1", "*.example.org", "example"] {
            assert!(keeper.missed(nobody).is_none(), "{nobody}");
        }
    };
    tokio::time::timeout(Duration::from_secs(60), keeper.run(|| now, clients)).await.expect("in time");
    assert_eq!(stage.between.asked("/ask").len(), 1);
    let of_a = keeper.status(now).into_iter().find(|status| status.name == "a.example.org").expect("known");
    assert_eq!((of_a.failures, of_a.last_error), (0, None));
}

/// Somebody has copied the key.
#[tokio::test]
async fn a_running_keeper_replaces_and_revokes() {
    let stage = Stage::new().await;
    let keeper = stage.keeper(&["blog.example.org"]);
    let now = now();
    keeper.step(now).await;
    let old = stage.shown.of("blog.example.org").expect("shown");
    let commands = async {
        keeper.replace("blog.example.org").await.expect("replaced");
        let nothing = keeper.replace("other.example.org").await.expect_err("there is none");
        assert!(nothing.to_string().contains("no certificate for other.example.org"), "{nothing}");
    };
    tokio::time::timeout(Duration::from_secs(60), keeper.run(|| now, commands)).await.expect("in time");
    let new = stage.shown.of("blog.example.org").expect("shown");
    assert_ne!(serial(&old), serial(&new));
    assert_eq!((stage.status_at_authority(&old).await, stage.status_at_authority(&new).await), ("Revoked".to_owned(), "Valid".to_owned()));
}
