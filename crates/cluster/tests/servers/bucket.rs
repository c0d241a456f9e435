//! The tier in a bucket: what it has is found by all machines, and nothing that it makes of that is believed.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use cluster::tier::{
    LookOutcome,
    bucket::{BUCKET_PAGE_BYTES_MAX, BucketOptions, examine},
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use testkit::{BUCKET, BUCKET_KEY, BUCKET_SECRET, Mood, MoodyBucket, SeaweedFs, Software, Valkey};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

use super::tier::{HOUR, Machine, NOW, key, until};

fn options(endpoint: &str) -> BucketOptions {
    BucketOptions {
        name: BUCKET.to_owned(),
        prefix: "seawall/blog".to_owned(),
        endpoint: Some(endpoint.to_owned()),
        region: "us-east-1".to_owned(),
        key_id: BUCKET_KEY.to_owned(),
        secret_key: BUCKET_SECRET.to_owned(),
        token: None,
        authorities: None,
    }
}

/// Returns a machine whose first trial of the bucket has succeeded.
async fn machine(server: &Valkey, endpoint: &str) -> Machine {
    let machine = Machine::with_bucket(server, options(endpoint));
    until(|| !machine.tier.state().open).await;
    machine
}

/// Returns the name in the bucket of the only page that there is.
fn name(server: &Valkey) -> String {
    let key = key(server, "*:tier:*");
    format!("seawall/blog/{}", key.rsplit(':').next().expect("an id"))
}

#[tokio::test]
async fn what_one_machine_has_put_into_a_real_bucket_is_found_by_the_others() {
    let (server, bucket) = (Valkey::start(Software::any()), SeaweedFs::start());
    let (one, other) = (machine(&server, &bucket.endpoint()).await, machine(&server, &bucket.endpoint()).await);
    let turn = one.turn("page").await;
    assert!(matches!(other.look("page").await, LookOutcome::Wait(_)), "locks are the server's");
    one.put("page", b"a page", HOUR).await;
    drop(turn);
    let page = other.found("page").await;
    assert_eq!((&page.page[..], page.since), (&b"a page"[..], NOW));
    assert!(server.ask(&["KEYS", "*:lock:*"]).is_empty());
    // The server has the mark and the length alone: 20 bytes.
    assert_eq!(server.ask(&["STRLEN", &key(&server, "*:tier:*")]), "20");
    // Its clock tells the age of what lies in the bucket.
    server.ask(&["PEXPIRE", &key(&server, "*:tier:*"), "600000"]);
    let rested = other.found("page").await.rested;
    assert!(rested >= Duration::from_secs(3000) && rested < Duration::from_secs(3100), "{rested:?}");

    // What somebody else writes there, and what is not there any more.
    bucket.overwrite(&name(&server), b"garbage");
    drop(other.turn("page").await);
    assert_eq!(other.tier.state().refused, 1);
    until(|| server.ask(&["KEYS", "*:lock:*"]).is_empty()).await;
    other.put("page", b"a page", HOUR).await;
    bucket.remove(&name(&server));
    drop(one.turn("page").await);
    assert_eq!((one.tier.state().refused, one.tier.state().open), (0, false), "an object that was removed is not a lie");

    // Longer than a page in the server may be.
    let long = vec![b'x'; BUCKET_PAGE_BYTES_MAX];
    one.put("a long page", &long, HOUR).await;
    assert_eq!(other.found("a long page").await.page, long);
    let written = one.tier.state().written;
    one.tier.put(b"too long", &[long, vec![b'x']].concat(), NOW, HOUR);
    assert!(matches!(other.look("too long").await, LookOutcome::Turn(_)));
    assert_eq!(one.tier.state().written, written);
    one.tier.remove(b"a long page");
    until(|| !server.ask(&["KEYS", "*:tier:*"]).contains('\n')).await;
    assert_eq!(one.tier.state().place, format!("s3://pages/seawall/blog at {}", bucket.endpoint()));
}

/// Each position is judged as in the server: the bucket says nothing about that.
#[tokio::test]
async fn a_page_in_a_bucket_is_judged_by_its_position_alone() {
    let (server, bucket) = (Valkey::start(Software::any()), MoodyBucket::start());
    let (one, other) = (machine(&server, &bucket.endpoint()).await, machine(&server, &bucket.endpoint()).await);
    one.put("page", b"a page", HOUR).await;
    other.applied(2, NOW + 5);
    assert_eq!(other.found("page").await.since, NOW, "what was purged since then is judged here");
    other.ring.clear();
    other.applied(2, NOW + 5);
    drop(other.turn("page").await);
    one.applied(3, NOW);
    one.put("page", b"a newer one", HOUR).await;
    assert!(matches!(other.look("page").await, LookOutcome::Wait(_)), "this machine has not come so far");
    other.applied(3, NOW + 6);
    assert_eq!(other.found("page").await.since, NOW + 6);
}

#[tokio::test]
async fn names_are_hashed_and_contents_sealed() {
    let (server, bucket) = (Valkey::start(Software::any()), MoodyBucket::start());
    let one = machine(&server, &bucket.endpoint()).await;
    one.put("site/page", b"a page", HOUR).await;
    let mut names: Vec<String> = bucket.objects().into_iter().map(|(name, _)| name).collect();
    names.sort();
    // The page, and the object by which the bucket was tried.
    assert_eq!(names.len(), 2, "{names:?}");
    for name in names {
        let id = name.strip_prefix("/pages/seawall/blog/").expect("below the prefix");
        assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
    }
}

/// Whatever the bucket gives back that is not what was written last: the page is fetched, and that is counted.
#[tokio::test]
async fn a_bucket_that_lies_is_refused() {
    let (server, bucket) = (Valkey::start(Software::any()), MoodyBucket::start());
    let (one, other) = (machine(&server, &bucket.endpoint()).await, machine(&server, &bucket.endpoint()).await);
    for mood in [Mood::Garbling, Mood::Confusing, Mood::Cutting, Mood::Endless, Mood::Remembering] {
        // Two versions of the same length, both with the seal; and another page.
        one.put("page", b"version 1", HOUR).await;
        one.put("page", b"version 2", HOUR).await;
        one.put("another page", b"version 2", HOUR).await;
        let before = other.tier.state();
        bucket.becomes(mood);
        drop(other.turn("page").await);
        let after = other.tier.state();
        assert_eq!((after.refused, after.open, after.hits), (before.refused + 1, false, before.hits), "{mood:?}");
        bucket.becomes(Mood::Honest);
        until(|| server.ask(&["KEYS", "*:lock:*"]).is_empty()).await;
        assert_eq!(&other.found("page").await.page[..], b"version 2", "{mood:?}");
    }
}

/// A bucket that does not do its work is left alone after three failures, whatever it says, until an object went there and back.
#[tokio::test]
async fn a_bucket_that_fails_is_left_alone_until_it_works() {
    let (server, bucket) = (Valkey::start(Software::any()), MoodyBucket::start());
    for mood in [Mood::Refusing(403), Mood::Refusing(500), Mood::Refusing(503), Mood::Breaking, Mood::Silent] {
        let one = machine(&server, &bucket.endpoint()).await;
        one.put("page", b"a page", HOUR).await;
        let other = Machine::with_bucket_and_deadline(&server, options(&bucket.endpoint()), Duration::from_millis(500));
        until(|| !other.tier.state().open).await;
        bucket.becomes(mood);
        for _ in 0..3 {
            assert!(matches!(other.look("page").await, LookOutcome::Away), "{mood:?}");
        }
        assert!(other.tier.state().open, "{mood:?}");
        let reads = bucket.reads();
        for _ in 0..100 {
            assert!(matches!(other.look("page").await, LookOutcome::Away), "{mood:?}");
        }
        // Nobody waits for it: but for a trial by the other machine, nothing is asked.
        assert!(bucket.reads() <= reads + 1, "{mood:?}");
        bucket.becomes(Mood::Honest);
        until(|| !other.tier.state().open).await;
        assert_eq!(&other.found("page").await.page[..], b"a page", "{mood:?}");
        one.tier.remove(b"page");
        until(|| server.ask(&["KEYS", "*:tier:*"]).is_empty()).await;
    }
}

/// What cannot be written cannot be waited for: the others ask the origin at once.
#[tokio::test]
async fn nobody_waits_for_a_page_that_the_bucket_does_not_take() {
    let (server, bucket) = (Valkey::start(Software::any()), MoodyBucket::start());
    let (one, other) = (machine(&server, &bucket.endpoint()).await, machine(&server, &bucket.endpoint()).await);
    for mood in [Mood::Refusing(507), Mood::Silent] {
        let turn = one.turn(&format!("{mood:?}")).await;
        assert!(matches!(other.look(&format!("{mood:?}")).await, LookOutcome::Wait(_)));
        bucket.becomes(mood);
        one.tier.put(format!("{mood:?}").as_bytes(), b"a page", NOW, HOUR);
        drop(turn);
        until(|| server.ask(&["GET", &key(&server, "*:lock:*")]) == "-").await;
        assert!(matches!(other.look(&format!("{mood:?}")).await, LookOutcome::Away));
        server.ask(&["DEL", &key(&server, "*:lock:*")]);
        bucket.becomes(Mood::Honest);
    }
}

#[tokio::test]
async fn what_keeps_a_bucket_from_being_used_is_said() {
    let (server, bucket) = (Valkey::start(Software::any()), SeaweedFs::start());
    let good = options(&bucket.endpoint());
    let found = examine(&good).await.expect("it can be used");
    assert!(found.read < Duration::from_secs(2));
    assert!(found.warnings.iter().all(|warning| warning.contains("A read takes")), "{:?}", found.warnings);
    for (bad, problem) in [
        (BucketOptions { key_id: "AKIAOTHER".to_owned(), ..good.clone() }, "does not know the access key"),
        (BucketOptions { secret_key: "wrong".to_owned(), ..good.clone() }, "the secret is not that of the access key"),
        (BucketOptions { name: "nothing-here".to_owned(), ..good.clone() }, "`tier`"),
        (options("http://127.0.0.1:9"), "cannot be reached"),
        (options(&format!("{}/", bucket.endpoint().replace("http", "https"))), "cannot be reached"),
    ] {
        let why = examine(&bad).await.expect_err(problem).to_string();
        assert!(why.contains(problem) && !why.contains(BUCKET_SECRET), "{problem}: {why}");
        let machine = Machine::with_bucket(&server, bad);
        until(|| machine.tier.state().why.is_some()).await;
        let state = machine.tier.state();
        assert!(state.open && state.why.is_some_and(|why| why.contains(problem)), "{problem}");
        assert!(matches!(machine.look("page").await, LookOutcome::Away), "{problem}: readers are served");
    }
}

/// Puts TLS in front of a bucket, as a proxy in front of MinIO has it. Returns its address, and what serves it until it is dropped.
async fn tls_in_front_of(bucket: &MoodyBucket, (certificate, key): (&str, &str)) -> (String, JoinSet<()>) {
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
    let config = config.with_no_client_auth().with_single_cert(vec![certificate], key).expect("a certificate and its key");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = format!("https://{}", listener.local_addr().expect("its address"));
    let behind = bucket.endpoint().trim_start_matches("http://").to_owned();
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, behind) = (acceptor.clone(), behind.clone());
            connections.spawn(async move {
                let Ok(mut outer) = acceptor.accept(stream).await else { return };
                let mut inner = TcpStream::connect(&behind).await.expect("the bucket listens");
                // It ends as either side likes.
                let _ = copy_bidirectional(&mut outer, &mut inner).await;
            });
        }
    });
    (address, serving)
}

#[tokio::test]
async fn tls_to_a_bucket_trusts_whom_it_is_told_to_and_checks_the_name() {
    let key = || KeyPair::generate().expect("a key");
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, key()).expect("an authority");
    let identity = |name: &str| {
        let key = key();
        let params = CertificateParams::new([name.to_owned()]).expect("a name");
        (params.signed_by(&key, &authority).expect("a certificate").pem(), key.serialize_pem())
    };
    let (server, bucket) = (Valkey::start(Software::any()), MoodyBucket::start());
    let (certificate, own) = identity("127.0.0.1");
    let (endpoint, _serving) = tls_in_front_of(&bucket, (&certificate, &own)).await;
    let trusting = |endpoint: &str| BucketOptions { authorities: Some(authority.pem().into_bytes()), ..options(endpoint) };
    examine(&trusting(&endpoint)).await.expect("it can be used");
    let (one, other) = (Machine::with_bucket(&server, trusting(&endpoint)), Machine::with_bucket(&server, trusting(&endpoint)));
    until(|| !one.tier.state().open && !other.tier.state().open).await;
    one.put("page", b"a page", HOUR).await;
    assert_eq!(&other.found("page").await.page[..], b"a page");

    let (certificate, own) = identity("other.example");
    let (of_another_name, _serving) = tls_in_front_of(&bucket, (&certificate, &own)).await;
    for (bad, problem) in [(options(&endpoint), "nobody knows this authority"), (trusting(&of_another_name), "another name")] {
        let why = examine(&bad).await.expect_err(problem).to_string();
        assert!(why.contains("cannot be reached") && why.contains("certificate"), "{problem}: {why}");
    }
}

/// A bucket is on no reader's way when the page is not there: the server knows that.
#[tokio::test]
async fn a_page_that_is_not_there_is_not_asked_for() {
    let (server, bucket) = (Valkey::start(Software::any()), MoodyBucket::start());
    let one = machine(&server, &bucket.endpoint()).await;
    let reads = bucket.reads();
    for page in 0..100 {
        drop(one.turn(&page.to_string()).await);
    }
    assert_eq!(bucket.reads(), reads);
}
