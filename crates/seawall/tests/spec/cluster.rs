//! One machine of a cluster, as its clients, its origin and its operator see it. The others are played by the test: they are told of purges and
//! answer, or do not; they purge; and they end the lease under which this machine shows what it has stored.

use std::{sync::Arc, time::Duration};

use admin::{PurgeDone, explanation::PurgedHow};
use parking_lot::Mutex;
use pipeline::{Acknowledgement, Machines, Spread};
use policy::purge::{Address, Dialect, Maker, Order, What};
use store::Hardness;
use testkit::{Answer, Client, Gate, Origin, Reply, Req, get, head, millis, not_modified, ok, patiently, post, put, secs, status};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use crate::{
    operator::Operator,
    site::{HOST, Site, site_with},
};

/// The time for which a page is fresh in doubt.
const DOUBT_HOLD: Duration = secs(5);
const LEASE: Duration = secs(2);
/// Nothing is asked for but by readers.
const QUIET: &str = "[refill]\nconcurrency = 0\n";

/// The other machines.
struct Others {
    told: mpsc::Receiver<PendingOrder>,
    all: Arc<Mutex<Vec<Order>>>,
}

/// An order that the other machines were told of. As long as it is not answered, nobody knows how far the purge went.
struct PendingOrder {
    order: Order,
    answer: oneshot::Sender<Spread>,
}

impl PendingOrder {
    fn everywhere(self) {
        self.say(Spread { everywhere: true, confirmed: vec!["a".to_owned(), "b".to_owned()], ..Spread::default() });
    }

    fn not_everywhere(self) {
        let why = Some("10.0.0.5 does not answer".to_owned());
        self.say(Spread { confirmed: vec!["a".to_owned()], missing: vec!["b".to_owned()], why, ..Spread::default() });
    }

    fn say(self, spread: Spread) {
        self.answer.send(spread).expect("somebody waits for it");
    }
}

struct Line {
    told: mpsc::Sender<PendingOrder>,
    all: Arc<Mutex<Vec<Order>>>,
}

impl Machines for Line {
    fn purged(&self, order: &Order) -> Acknowledgement {
        let (answer, answered) = oneshot::channel();
        self.all.lock().push(order.clone());
        // A test that does not look at them is not waited for.
        let _ = self.told.try_send(PendingOrder { order: order.clone(), answer });
        Box::pin(async { answered.await.unwrap_or_default() })
    }
}

impl Others {
    /// Lets a site join a cluster, without a lease.
    fn of(site: &Site) -> Self {
        let (telling, told) = mpsc::channel(64);
        let all = Arc::<Mutex<Vec<Order>>>::default();
        site.server.shared().fence.join(Box::new(Line { told: telling, all: Arc::clone(&all) }), DOUBT_HOLD);
        Self { told, all }
    }

    /// Waits for the next order that they are told of.
    async fn told(&mut self) -> PendingOrder {
        patiently("an order for the other machines", self.told.recv()).await.expect("the site runs")
    }

    fn all(&self) -> Vec<Order> {
        self.all.lock().clone()
    }
}

impl Site {
    /// Gives it a lease from now on.
    fn lease(&self) {
        let shared = self.server.shared();
        shared.fence.lease(shared.clock.now() + LEASE);
    }

    /// Carries out an order of another machine.
    fn apply(&self, what: What, hardness: Hardness) {
        let order = Order::by_operator(what, hardness == Hardness::Hard);
        self.server.shared().apply(&order).expect("an order");
    }

    fn doubt(&self) {
        self.server.shared().doubt("the server was started anew");
    }

    /// Sends a request, and returns its answer when that is here.
    #[expect(clippy::disallowed_methods, reason = "its test waits for it")]
    async fn asks(&self, request: Req) -> JoinHandle<Answer> {
        let mut client = self.client().await;
        tokio::spawn(async move { client.request(request).await })
    }
}

/// Returns when the worker has read everything that was sent before, like [`Site::has_read_all`], where clients have no say.
async fn has_read_all(origin: &Origin, site: &Site) {
    origin.on(get("/turn")).reply(ok("turn"));
    for _ in 0..2 {
        site.get("/turn").await.status(200);
    }
}

async fn answered(answer: JoinHandle<Answer>) -> Answer {
    answer.await.expect("an answer")
}

fn page(text: &'static str) -> Reply {
    ok(text).field("cache-control", "max-age=600").field("etag", format!("\"{text}\""))
}

fn url(path: &str) -> What {
    What::url(&format!("http://{HOST}{path}")).expect("an address")
}

/// Returns a machine of a cluster, with a lease, that has stored `/post`. The origin can confirm it, and nothing else was said of it.
async fn stored() -> (Origin, Site, Others) {
    stored_with("", page("v1")).await
}

async fn stored_with(toml: &str, reply: Reply) -> (Origin, Site, Others) {
    let (origin, site) = site_with(&format!("{QUIET}{toml}")).await;
    let others = Others::of(&site);
    site.lease();
    origin.on(get("/post")).reply(reply);
    site.get("/post").await.status(200).body("v1").cache_status("stored");
    origin.on(get("/post").field("if-none-match", "\"v1\"")).reply(not_modified());
    (origin, site, others)
}

/// Lets so much time pass that no lease holds, and nothing was asked for a moment ago.
fn until_in_doubt(site: &Site) {
    site.clock.advance(DOUBT_HOLD);
}

// The lease.

#[tokio::test]
async fn with_a_lease_a_stored_page_is_shown_and_without_one_it_is_validated_first() {
    let (origin, site, _others) = stored().await;
    // Until the last millisecond, however long ago it was fetched.
    for _ in 0..10 {
        site.lease();
        site.clock.advance(LEASE - millis(1));
        site.get("/post").await.body("v1").cache_status("hit");
    }
    assert_eq!(origin.count("/post"), 1);
    site.clock.advance(millis(1));
    site.get("/post").await.status(200).body("v1").cache_status("fwd=stale; fwd-status=304").x_cache("REVALIDATED");
    assert_eq!(origin.count("/post"), 2);
    // A new lease, and it is as it was.
    site.clock.advance(DOUBT_HOLD);
    site.lease();
    site.get("/post").await.body("v1").cache_status("hit");
}

/// Nobody shows what was purged elsewhere, however short the way from a known head to its answer is.
#[tokio::test]
async fn a_page_that_is_hit_again_and_again_is_validated_when_the_lease_has_ended() {
    for given_up in [false, true] {
        let (origin, site, _others) = stored().await;
        let mut client = site.client().await;
        for _ in 0..8 {
            client.get("/post").await.body("v1").cache_status("hit");
        }
        site.clock.advance(DOUBT_HOLD);
        site.lease();
        client.get("/post").await.body("v1").cache_status("hit");
        if given_up {
            site.server.shared().fence.give_up();
        } else {
            site.clock.advance(DOUBT_HOLD);
        }
        origin.on(get("/post").field("if-none-match", "\"v1\"")).reply(page("v2"));
        client.get("/post").await.body("v2").cache_status("fwd=stale; fwd-status=200");
    }
}

/// Once for all who wait; and then it is fresh for the hold, from when the origin was asked.
#[tokio::test]
async fn in_doubt_a_page_is_validated_once_for_a_crowd_and_is_fresh_for_a_moment() {
    let (origin, site, _others) = stored().await;
    until_in_doubt(&site);
    let gate = Gate::new();
    origin.on(get("/post").field("if-none-match", "\"v1\"")).reply(not_modified().gate(&gate));
    let mut crowd = Vec::new();
    for _ in 0..50 {
        let mut client = site.client().await;
        client.send(Req::get("/post")).await;
        crowd.push(client);
    }
    site.has_read_all().await;
    gate.open();
    for mut client in crowd {
        client.read_answer().await.status(200).body("v1").cache_status("fwd=stale; fwd-status=304");
    }
    assert_eq!(origin.count("/post"), 2);
    site.clock.advance(DOUBT_HOLD - millis(1));
    site.get("/post").await.body("v1").cache_status("hit");
    site.clock.advance(millis(1));
    site.get("/post").await.body("v1").cache_status("fwd=stale; fwd-status=304");
    assert_eq!(origin.count("/post"), 3);
}

/// A slow answer shows what was there when it was asked for.
#[tokio::test]
async fn in_doubt_nobody_waits_for_an_answer_that_was_asked_for_long_ago() {
    let (origin, site) = site_with(QUIET).await;
    let _others = Others::of(&site);
    let slow = Gate::new();
    origin.on(get("/post")).once().reply(page("v1").gate(&slow));
    let mut early = site.client().await;
    early.send(Req::get("/post")).await;
    slow.arrived().await;
    site.clock.advance(DOUBT_HOLD - millis(1));
    let mut in_time = site.client().await;
    in_time.send(Req::get("/post")).await;
    site.has_read_all().await;
    assert_eq!(origin.count("/post"), 1, "the crowd is one");
    site.clock.advance(millis(1));
    origin.on(get("/post")).reply(page("v2"));
    site.get("/post").await.body("v2").cache_status("fwd=uri-miss");
    slow.open();
    for mut client in [early, in_time] {
        client.read_answer().await.body("v1");
    }
    assert_eq!(origin.count("/post"), 2);
}

/// What may be shown for a while after its lifetime, or after a soft purge, may be shown only by a machine that knows of all purges.
#[tokio::test]
async fn in_doubt_nothing_stale_is_shown_while_it_is_refreshed() {
    for expires in [true, false] {
        let window = ok("v1").field("cache-control", "max-age=60, stale-while-revalidate=600").field("etag", "\"v1\"");
        let (origin, site, _others) = stored_with("", window).await;
        if expires {
            site.clock.advance(secs(61));
        } else {
            site.purge(&store::PurgeTarget::All, Hardness::Soft);
        }
        until_in_doubt(&site);
        origin.on(get("/post").field("if-none-match", "\"v1\"")).reply(page("v2"));
        site.get("/post").await.body("v2").cache_status("fwd=stale; fwd-status=200");
    }
}

/// Among the purges that a machine has missed may have been a hard one. A soft purge since then says nothing about that.
#[tokio::test]
async fn what_is_in_doubt_is_not_shown_because_it_is_purged_softly_too() {
    for everything in [true, false] {
        let (origin, site, _others) = stored().await;
        site.doubt();
        site.apply(if everything { What::Everything } else { url("/post") }, Hardness::Soft);
        site.lease();
        origin.on(get("/post").field("if-none-match", "\"v1\"")).reply(page("v2"));
        site.get("/post").await.status(200).body("v2").cache_status("fwd=stale; fwd-status=200");
        // A soft purge alone shows it once more.
        site.apply(What::Everything, Hardness::Soft);
        site.get("/post").await.body("v2").x_cache("UPDATING");
    }
}

/// Every way to what is stored goes through the same door.
#[tokio::test]
async fn in_doubt_no_form_of_a_page_is_shown_before_it_is_validated() {
    let asking: [fn() -> Req; 6] = [
        || Req::get("/post"),
        || Req::new("HEAD", "/post"),
        || Req::get("/post").field("range", "bytes=0-0"),
        || Req::get("/post").field("if-none-match", "\"v1\""),
        || Req::get("/post").field("if-modified-since", "Thu, 01 Jan 2026 00:00:00 GMT"),
        || Req::get("/post").field("accept-encoding", "gzip"),
    ];
    for request in asking {
        let (origin, site, _others) = stored().await;
        origin.on(head("/post")).reply(page("v2"));
        origin.on(get("/post")).reply(page("v2"));
        origin.on(get("/post").field("if-none-match", "\"v1\"")).reply(page("v2"));
        site.lease();
        site.request(request()).await.cache_status("hit");
        until_in_doubt(&site);
        let answer = site.request(request()).await;
        assert!(answer.value("cache-status").is_some_and(|status| status.contains("; fwd=")), "{answer}");
        assert!(answer.text().is_empty() || answer.text().starts_with('v') && answer.text() != "v1", "{answer}");
        assert!(origin.requests().len() >= 2, "{:?}", request());
    }
}

#[tokio::test]
async fn in_doubt_a_stored_part_is_asked_for_again() {
    let (origin, site) = site_with(QUIET).await;
    let _others = Others::of(&site);
    site.lease();
    let part = |text: &'static str| status(206).body(text).field("content-range", "bytes 0-1/10").field("cache-control", "max-age=600");
    let request = || Req::get("/file").field("range", "bytes=0-1");
    origin.on(get("/file")).reply(part("v1"));
    site.request(request()).await.status(206).body("v1").cache_status("stored");
    site.request(request()).await.status(206).body("v1").cache_status("hit");
    until_in_doubt(&site);
    origin.on(get("/file")).reply(part("v2"));
    site.request(request()).await.status(206).body("v2").cache_status("fwd=uri-miss");
    // That was a moment ago.
    site.request(request()).await.status(206).body("v2").cache_status("hit");
}

/// RFC 9111 §5.2.1.7: whoever wants nothing from the origin gets nothing that would have to be validated.
#[tokio::test]
async fn in_doubt_only_if_cached_is_504() {
    let (_origin, site, _others) = stored().await;
    let request = || Req::get("/post").field("cache-control", "only-if-cached");
    site.request(request()).await.status(200).body("v1");
    until_in_doubt(&site);
    site.request(request()).await.status(504);
    site.lease();
    site.request(request()).await.status(200).body("v1");
}

/// A page that was fetched a moment ago by another process was not fetched a moment ago by this one, whose clock may be another.
#[tokio::test]
async fn in_doubt_what_comes_from_the_disk_is_validated() {
    let place = tempfile::tempdir().expect("a folder");
    let origin = Origin::start();
    let toml =
        format!("source = \"{}\"\n{QUIET}[cache]\ndir = \"{}\"\ndisk = \"64MiB\"\n", origin.url(), place.path().join("cache").display());
    origin.on(get("/post").without("if-none-match")).reply(page("v1"));
    origin.on(get("/post").field("if-none-match", "\"v1\"")).reply(not_modified());
    let stop = |site: Site| std::thread::spawn(move || site.stop(secs(5))).join().expect("stopped");
    let site = Site::start(&toml);
    site.get("/post").await.body("v1");
    stop(site);

    let site = Site::start(&toml);
    let _others = Others::of(&site);
    site.get("/post").await.body("v1").cache_status("fwd=stale; fwd-status=304");
    site.get("/post").await.body("v1").cache_status("hit");
    stop(site);
    // With a lease, it is as good as what is in memory.
    let site = Site::start(&toml);
    let _others = Others::of(&site);
    site.lease();
    site.get("/post").await.body("v1").cache_status("hit");
    assert_eq!(origin.count("/post"), 2);
}

// Standing in.

/// Readers see no error because a machine is in doubt: what is stored has not expired, so what its origin said of stale responses does not matter.
#[tokio::test]
async fn in_doubt_a_page_stands_in_where_the_origin_fails() {
    for fields in ["max-age=600", "max-age=600, must-revalidate", "s-maxage=600", "max-age=600, stale-if-error=0"] {
        let reply = || ok("v1").field("cache-control", fields).field("etag", "\"v1\"");
        let (origin, site, _others) = stored_with("", reply()).await;
        until_in_doubt(&site);
        origin.on(get("/post")).reply(status(503));
        origin.on(get("/post").field("if-none-match", "\"v1\"")).reply(status(503));
        site.get("/post").await.status(200).body("v1").x_cache("STALE");
        assert_eq!(origin.count("/post"), 2, "it was tried: {fields}");

        let (origin, site, _others) = stored_with("", reply()).await;
        until_in_doubt(&site);
        origin.kill();
        for _ in 0..3 {
            site.get("/post").await.status(200).body("v1").x_cache("STALE");
        }
    }
}

#[tokio::test]
async fn in_doubt_a_page_stands_in_where_the_origins_queue_is_full() {
    let (origin, site, _others) = stored_with("[origin]\nconcurrency = 1\nqueue = 0\n", page("v1")).await;
    until_in_doubt(&site);
    let gate = Gate::new();
    origin.on(get("/slow")).reply(ok("slow").gate(&gate));
    let mut slow = site.client().await;
    slow.send(Req::get("/slow")).await;
    gate.arrived().await;
    site.get("/post").await.status(200).body("v1").x_cache("STALE");
    gate.open();
    slow.read_answer().await.status(200).body("slow");
    // What has failed a moment ago is not waited for; later it is.
    site.clock.advance(secs(60));
    site.get("/post").await.body("v1").cache_status("fwd=stale; fwd-status=304");
}

/// A doubt allows nothing that would not be allowed without it.
#[tokio::test]
async fn in_doubt_nothing_stands_in_that_has_expired_or_was_purged() {
    for (fields, age, purge) in [
        ("max-age=60, must-revalidate", 60, None),
        ("s-maxage=60", 60, None),
        ("max-age=600, must-revalidate", 0, Some(Hardness::Soft)),
        ("max-age=600", 0, Some(Hardness::Hard)),
        ("max-age=600, no-cache", 0, None),
    ] {
        let reply = ok("v1").field("cache-control", fields).field("etag", "\"v1\"");
        let (origin, site, _others) = stored_with("", reply).await;
        site.clock.advance(secs(age));
        if let Some(hardness) = purge {
            site.apply(What::Everything, hardness);
        }
        until_in_doubt(&site);
        origin.kill();
        site.get("/post").await.status(502);
    }
}

/// The answer begins after the purge, so it must not show what that covered.
#[tokio::test]
async fn what_is_purged_hard_while_the_origin_is_asked_does_not_stand_in() {
    let (origin, site, _others) = stored().await;
    until_in_doubt(&site);
    let gate = Gate::new();
    origin.on(get("/post").field("if-none-match", "\"v1\"")).reply(status(503).gate(&gate));
    let answer = site.asks(Req::get("/post")).await;
    gate.arrived().await;
    site.apply(url("/post"), Hardness::Hard);
    gate.open();
    answered(answer).await.status(503);
}

// Purges of other machines.

#[tokio::test]
async fn what_another_machine_has_purged_is_not_shown_here() {
    let everything = [
        url("/post"),
        What::prefix(&format!("http://{HOST}/po")).expect("an address"),
        What::host(HOST).expect("a host"),
        What::tag("post-1").expect("a tag"),
        What::Everything,
    ];
    for what in everything {
        for hardness in [Hardness::Hard, Hardness::Soft] {
            let (origin, site, others) = stored_with("", page("v1").field("surrogate-key", "post-1")).await;
            let mut client = site.client().await;
            for _ in 0..8 {
                client.get("/post").await.cache_status("hit");
            }
            let gate = Gate::new();
            origin.on(get("/post")).reply(page("v2").gate(&gate));
            origin.on(get("/post").field("if-none-match", "\"v1\"")).reply(page("v2").gate(&gate));
            site.apply(what.clone(), hardness);
            if hardness == Hardness::Soft {
                client.get("/post").await.body("v1").x_cache("UPDATING");
            }
            gate.open();
            if hardness == Hardness::Hard {
                client.get("/post").await.body("v2").cache_status("fwd=uri-miss");
            }
            assert!(others.all().is_empty(), "nobody is told of it again");
        }
    }
}

/// What another machine purges while a page is on its way concerns that page too.
#[tokio::test]
async fn a_fetch_under_way_does_not_bring_back_what_another_machine_has_purged() {
    let (origin, site) = site_with(QUIET).await;
    let _others = Others::of(&site);
    site.lease();
    let gate = Gate::new();
    origin.on(get("/post")).once().reply(page("v1").gate(&gate));
    let mut early = site.client().await;
    early.send(Req::get("/post")).await;
    gate.arrived().await;
    site.apply(url("/post"), Hardness::Hard);
    origin.on(get("/post")).reply(page("v2"));
    site.get("/post").await.body("v2");
    gate.open();
    early.read_answer().await.body("v1");
    site.get("/post").await.body("v2").cache_status("hit");
}

/// The pages that are read most come back before anybody asks for them, as after a purge of this machine.
#[tokio::test]
async fn a_soft_purge_of_another_machine_and_a_doubt_are_followed_by_a_refill() {
    for doubts in [false, true] {
        let (origin, site) = site_with("[refill]\nconcurrency = 1\n").await;
        let _others = Others::of(&site);
        site.lease();
        origin.on(get("/post")).reply(page("v1"));
        for _ in 0..3 {
            site.request(Req::get("/post").field("cache-control", "max-age=600")).await.body("v1");
        }
        let gate = Gate::new();
        origin.on(get("/post").field("if-none-match", "\"v1\"")).reply(page("v2").gate(&gate));
        if doubts {
            site.doubt();
        } else {
            site.apply(What::Everything, Hardness::Soft);
        }
        site.clock.advance(secs(1));
        gate.arrived().await;
        gate.open();
    }
}

// Doubts.

/// A lease says that this machine knows of all purges from now on. What it has missed before that, nobody can tell it.
#[tokio::test]
async fn what_was_stored_before_a_doubt_is_validated_even_with_a_lease() {
    let (origin, site, _others) = stored().await;
    origin.on(get("/other")).reply(page("other"));
    site.doubt();
    site.lease();
    site.get("/post").await.body("v1").cache_status("fwd=stale; fwd-status=304");
    site.get("/post").await.body("v1").cache_status("hit");
    // What was fetched since is not concerned.
    site.get("/other").await.cache_status("fwd=uri-miss; stored");
    site.clock.advance(DOUBT_HOLD * 2);
    site.lease();
    for target in ["/post", "/other"] {
        site.get(target).await.cache_status("hit");
    }
    assert_eq!((origin.count("/post"), origin.count("/other")), (2, 1));
}

#[tokio::test]
async fn a_doubted_page_stands_in_where_the_origin_fails() {
    for fields in ["max-age=600", "s-maxage=600"] {
        let (origin, site, _others) = stored_with("", ok("v1").field("cache-control", fields)).await;
        site.doubt();
        site.lease();
        origin.kill();
        site.get("/post").await.status(200).body("v1").x_cache("STALE");
    }
}

/// A fetch that began before the doubt may bring what a lost purge covered.
#[tokio::test]
async fn nobody_follows_a_fetch_that_began_before_a_doubt() {
    let (origin, site) = site_with(QUIET).await;
    let _others = Others::of(&site);
    site.lease();
    let gate = Gate::new();
    origin.on(get("/post")).once().reply(page("v1").gate(&gate));
    let mut early = site.client().await;
    early.send(Req::get("/post")).await;
    gate.arrived().await;
    site.doubt();
    site.lease();
    origin.on(get("/post")).reply(page("v2"));
    site.get("/post").await.body("v2");
    gate.open();
    early.read_answer().await.body("v1");
    site.get("/post").await.body("v2").cache_status("hit");
}

#[tokio::test]
async fn a_doubt_outlives_a_restart_for_what_is_on_the_disk() {
    let place = tempfile::tempdir().expect("a folder");
    let origin = Origin::start();
    let toml =
        format!("source = \"{}\"\n{QUIET}[cache]\ndir = \"{}\"\ndisk = \"64MiB\"\n", origin.url(), place.path().join("cache").display());
    origin.on(get("/post").without("if-none-match")).reply(page("v1"));
    origin.on(get("/post").field("if-none-match", "\"v1\"")).reply(not_modified());
    let stop = |site: Site| std::thread::spawn(move || site.stop(secs(5))).join().expect("stopped");
    let site = Site::start(&toml);
    site.get("/post").await.body("v1");
    site.doubt();
    stop(site);

    let site = Site::start(&toml);
    let _others = Others::of(&site);
    site.lease();
    site.get("/post").await.body("v1").cache_status("fwd=stale; fwd-status=304");
    stop(site);
    let site = Site::start(&toml);
    let _others = Others::of(&site);
    site.lease();
    site.get("/post").await.body("v1").cache_status("hit");
}

#[tokio::test]
async fn the_operator_is_told_why_a_page_is_validated() {
    let explained = |site: &Site| {
        let operator = Operator::of(site);
        let command = ::operator::explain::command(&format!("http://{HOST}/post"), "GET", &[]).expect("a command");
        ::operator::explain::run(&operator.client(), &command).expect("an explanation")
    };
    let detail = |site: &Site| {
        let lookup = explained(site).lookup;
        lookup.into_iter().find(|rule| rule.rule == "in doubt").map(|rule| rule.detail).unwrap_or_default()
    };
    let (_origin, site, _others) = stored().await;
    assert_eq!(detail(&site), "no: this machine has a lease of its cluster");
    site.clock.advance(LEASE);
    assert_eq!(detail(&site), "this machine has no lease of its cluster, but the origin was asked a moment ago");
    until_in_doubt(&site);
    assert_eq!(detail(&site), "this machine has no lease of its cluster: another one may have purged it");
    assert!(explained(&site).now.cache_status.contains("fwd=stale"));
    site.lease();
    site.doubt();
    assert!(detail(&site).starts_with("it was stored before this machine had missed purges"), "{}", detail(&site));
    assert_eq!(explained(&site).stored[0].purged, PurgedHow::InDoubt);
}

// How far a purge goes.

/// `PURGE` of a plugin: the head of the answer waits until it is known, and says so.
#[tokio::test]
async fn a_purge_request_is_answered_when_it_is_known_how_far_it_went() {
    let (_origin, site, mut others) = stored().await;
    let answer = site.asks(Req::new("PURGE", "/post")).await;
    let told = others.told().await;
    let own = What::Url(Address::over_either(HOST, "/post"));
    assert_eq!((told.order.by, &told.order.what[..]), (Maker::Plugin(Dialect::Varnish), &[own][..]));
    // It is carried out here already, and everything else that came meanwhile was answered.
    site.get("/post").await.cache_status("fwd=uri-miss");
    site.has_read_all().await;
    assert!(!answer.is_finished());
    told.everywhere();
    answered(answer).await.status(200).body_contains("purged: ").body_contains("everywhere: a, b\n");

    let answer = site.asks(Req::new("PURGE", "/post")).await;
    others.told().await.not_everywhere();
    let answer = answered(answer).await.status(202);
    answer.body_contains("not known to hold on every machine (b): 10.0.0.5 does not answer\n");

    let answer = site.asks(Req::new("PURGE", "/post").field("accept", "application/json")).await;
    others.told().await.not_everywhere();
    let answer = answered(answer).await.status(202);
    let said: serde_json::Value = serde_json::from_str(&answer.text()).expect("JSON");
    assert_eq!((&said["spread"]["everywhere"], &said["spread"]["missing"][0]), (&false.into(), &"b".into()), "{said}");
}

/// `POST /purge` of the admin API, and what it says to programs.
#[tokio::test]
async fn the_operator_is_told_how_far_a_purge_went() {
    let (_origin, site, mut others) = stored().await;
    let operator = Operator::of(&site);
    for everywhere in [true, false] {
        let client = operator.client();
        let purging = tokio::task::spawn_blocking(move || client.post::<PurgeDone>("/purge", r#"{"url": "http://blog.example/post"}"#));
        let told = others.told().await;
        if everywhere {
            told.everywhere()
        } else {
            told.not_everywhere()
        }
        let done = purging.await.expect("no panic").expect("purged");
        assert_eq!(done.spread.map(|spread| spread.everywhere), Some(everywhere));
    }
}

/// RFC 9111 §4.4: whoever has written looks next, and perhaps at another machine.
#[tokio::test]
async fn the_answer_to_an_unsafe_method_waits_for_the_other_machines() {
    let (origin, site, mut others) = stored().await;
    origin.on(post("/post")).reply(status(303).field("location", "/other"));
    for everywhere in [true, false] {
        let answer = site.asks(Req::post("/post").body("comment=1")).await;
        let told = others.told().await;
        assert_eq!(told.order.by, Maker::UnsafeMethod);
        assert!(told.order.what.contains(&url("/post")) && told.order.hard, "{:?}", told.order);
        site.has_read_all().await;
        assert!(!answer.is_finished());
        if everywhere {
            told.everywhere()
        } else {
            told.not_everywhere()
        }
        // What the origin has said is not changed by it.
        answered(answer).await.status(303).field("location", "/other");
    }
    // An answer that has changed nothing waits for nobody.
    origin.on(post("/post")).reply(status(400));
    site.request(Req::post("/post")).await.status(400);
    assert_eq!(others.all().len(), 2);
}

/// A Ghost's word in its answer to an editor.
#[tokio::test]
async fn an_editors_answer_waits_for_the_other_machines() {
    let (origin, site) = site_with(&format!("kind = \"ghost\"\n[cache]\ntwo_visitor_proof = false\n{QUIET}")).await;
    let mut others = Others::of(&site);
    site.lease();
    origin.on(put("/ghost/api/admin/posts/1/")).reply(ok("{}").field("x-cache-invalidate", "/*"));
    let answer = site.asks(Req::new("PUT", "/ghost/api/admin/posts/1/").body("{}")).await;
    let told = others.told().await;
    assert_eq!((told.order.by, &told.order.what[..]), (Maker::Origin, &[What::Everything][..]));
    has_read_all(&origin, &site).await;
    assert!(!answer.is_finished());
    told.not_everywhere();
    answered(answer).await.status(200).body("{}");
}

/// A WordPress that accepts a write, and one whose plugin says in any answer what has changed.
#[tokio::test]
async fn what_an_answer_of_a_wordpress_purges_is_purged_everywhere_before_it_goes_out() {
    let (origin, site) = site_with(&format!("kind = \"wordpress\"\n{QUIET}")).await;
    let mut others = Others::of(&site);
    site.lease();
    origin.on(post("/wp-json/wp/v2/posts/12")).reply(ok("{}"));
    origin.on(get("/cron")).reply(ok("").field("seawall-plugin", "wordpress/1.0").field("seawall-purge", "post-12"));
    let write = Req::post("/wp-json/wp/v2/posts/12").field("authorization", "Basic bWlyYTp4").body("{}");
    // A write is a request of an unsafe method, too. Its answer waits for both at once.
    for (request, makers) in [(write, &[Maker::Write, Maker::UnsafeMethod][..]), (Req::get("/cron"), &[Maker::Origin])] {
        let answer = site.asks(request).await;
        let mut told = Vec::new();
        for by in makers {
            told.push(others.told().await);
            assert_eq!(told.last().map(|told| told.order.by), Some(*by));
        }
        for told in told {
            has_read_all(&origin, &site).await;
            assert!(!answer.is_finished(), "{makers:?}");
            told.everywhere();
        }
        answered(answer).await.status(200);
    }
}

/// A client that has left is not waited for, and the others are told all the same.
#[tokio::test]
async fn the_other_machines_are_told_although_the_client_has_left() {
    let (origin, site, mut others) = stored().await;
    origin.on(post("/post")).reply(ok("thanks"));
    let mut client = site.client().await;
    client.send(Req::post("/post").body("comment=1")).await;
    let told = others.told().await;
    drop::<Client>(client);
    drop(told);
    site.get("/post").await.status(200);
}

/// Who is never answered is told in words that it is not known; here the other machines have gone without a word.
#[tokio::test]
async fn a_purge_of_which_nothing_is_heard_is_never_said_to_hold_everywhere() {
    let (_origin, site, mut others) = stored().await;
    let answer = site.asks(Req::new("PURGE", "/post")).await;
    drop(others.told().await);
    answered(answer).await.status(202).body_contains("not known to hold on every machine");
}

/// A folder's changes are seen by each machine, and a machine that stands alone tells nobody.
#[tokio::test]
async fn the_other_machines_are_not_told_of_what_they_see_by_themselves() {
    let (_origin, site, others) = stored().await;
    for by in [Maker::Folder, Maker::Reload, Maker::Watch] {
        let name = site.server.console().health().sites[0].name.clone();
        site.server.purge(&Order::for_site(&name, vec![What::Everything], true, by)).expect("the site is served");
    }
    assert!(others.all().is_empty());
}
