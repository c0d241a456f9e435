//! Machines that act as one, by the facade that the rest of the program uses, before a real server.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, TryRecvError, sync_channel},
    },
    time::{Duration, Instant},
};

use admin_api::Spread;
use cluster::{Cluster, Local, Options, link::Engine, stream::Position};
use policy::purge::{Maker, Order};
use testkit::{Software, Valkey};

use super::{options, order};

/// The longest that a test waits for something that should come within moments: a machine that compiles beside is not a failure.
const PATIENCE: Duration = Duration::from_secs(30);
const LEASE: Duration = Duration::from_secs(2);

/// Says what the cluster has had done on a machine.
#[derive(Debug, PartialEq)]
enum Done {
    Applied(Order),
    Doubted,
    Leased,
    GaveUp,
    Kept(Position),
}

/// The tag of the order that cannot be carried out without a panic.
const PANIC: u64 = 666;

struct DoneSender(SyncSender<Done>);

impl DoneSender {
    fn note(&self, done: Done) {
        // A test that has seen enough does not listen any more.
        let _ = self.0.try_send(done);
    }
}

impl Local for DoneSender {
    fn apply(&self, done: &Order) -> Result<(), String> {
        assert!(*done != order(PANIC), "the tests wanted it");
        self.note(Done::Applied(done.clone()));
        Ok(())
    }

    fn doubt(&self, _: &str) {
        self.note(Done::Doubted);
    }

    fn lease(&self, _: Instant) {
        self.note(Done::Leased);
    }

    fn give_up(&self) {
        self.note(Done::GaveUp);
    }

    fn keep(&self, position: &Position) {
        self.note(Done::Kept(position.clone()));
    }
}

struct Machine {
    cluster: Cluster,
    done: Receiver<Done>,
    last_kept: Option<Position>,
}

impl Machine {
    fn start(url: &str, name: &str, position: Option<Position>) -> Self {
        let (told, done) = sync_channel(4096);
        let engine = Engine::new(cluster::link::EngineOptions { deadline: LEASE / 2, ..options(url) }).expect("an engine");
        let options = Options {
            engine,
            cluster: "seawall".to_owned(),
            machine: name.to_owned(),
            version: "0.1.0".to_owned(),
            lease: LEASE,
            doubt_hold: Duration::from_secs(1),
            position,
        };
        Self { cluster: Cluster::start(options, Arc::new(DoneSender(told))), done, last_kept: None }
    }

    /// Waits until something was done here, and returns what was done before.
    fn until(&mut self, wanted: impl Fn(&Done) -> bool) -> Vec<Done> {
        let mut before = Vec::new();
        loop {
            let done = self.done.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{before:?} {:?}", self.cluster.state()));
            if let Done::Kept(position) = &done {
                self.last_kept = Some(position.clone());
            }
            if wanted(&done) {
                return before;
            }
            before.push(done);
        }
    }

    fn leased(url: &str, name: &str) -> Self {
        let mut machine = Self::start(url, name, None);
        machine.until(|done| *done == Done::Leased);
        machine
    }

    /// Forgets what was done.
    fn forget(&self) {
        loop {
            match self.done.try_recv() {
                Ok(_) => {}
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return,
            }
        }
    }
}

/// Waits until the machines know of each other for a lease, so that nobody else can have one.
async fn settled(machine: &Machine) {
    let spread = machine.cluster.purged(&order(0)).await;
    assert!(spread.everywhere, "{spread:?}");
}

#[tokio::test]
async fn a_purge_is_carried_out_by_all_machines_before_it_is_said_to_hold_everywhere() {
    for software in Software::installed() {
        let server = Valkey::start(software);
        let mut machines = ["a", "b", "c"].map(|name| Machine::leased(&server.url(), name));
        settled(&machines[0]).await;
        let spread = machines[1].cluster.purged(&order(1)).await;
        assert_eq!(
            Spread { took_ms: 0, ..spread },
            Spread { everywhere: true, confirmed: vec!["b".to_owned(), "a".to_owned(), "c".to_owned()], ..Spread::default() }
        );
        for number in [0, 2] {
            machines[number].until(|done| *done == Done::Applied(order(1)));
        }
        // Each says how far it is by its next round at the latest.
        let began = Instant::now();
        loop {
            let state = machines[2].cluster.state();
            assert!(state.machines.len() == 3 && began.elapsed() < PATIENCE, "{state:?}");
            if state.machines.iter().all(|machine| machine.behind == Some(0)) {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_hundred_purges_at_once_take_few_steps_and_each_is_carried_out_once() {
    let server = Valkey::start(Software::any());
    let mut machines = ["a", "b"].map(|name| Machine::leased(&server.url(), name));
    settled(&machines[0]).await;
    machines[1].until(|done| *done == Done::Applied(order(0)));
    let purges: Vec<_> = (1..=100).map(|number| machines[0].cluster.purged(&order(number))).collect();
    for purge in purges {
        let spread = purge.await;
        assert!(spread.everywhere, "{spread:?}");
    }
    machines[0].cluster.purged(&order(101)).await;
    let done = machines[1].until(|done| *done == Done::Applied(order(101)));
    let applied: Vec<_> = done.into_iter().filter_map(|done| if let Done::Applied(order) = done { Some(order) } else { None }).collect();
    assert_eq!(applied, (1..=100).map(order).collect::<Vec<_>>());
}

#[tokio::test]
async fn without_a_server_a_purge_is_not_said_to_hold_everywhere_and_is_told_when_the_server_is_back() {
    let mut server = Valkey::start(Software::any());
    let mut machines = ["a", "b"].map(|name| Machine::leased(&server.url(), name));
    settled(&machines[0]).await;
    server.ask(&["SAVE"]);
    server.kill();
    let began = Instant::now();
    let spread = machines[0].cluster.purged(&order(1)).await;
    assert!(!spread.everywhere && spread.why.is_some(), "{spread:?}");
    assert!(began.elapsed() < LEASE + Duration::from_secs(10), "it is bounded");
    machines[1].forget();
    server.start_again();
    machines[1].until(|done| *done == Done::Applied(order(1)));
    // The server's run is another one: what was stored before is in doubt.
    let state = machines[1].cluster.state();
    assert_eq!(state.breaks, 1, "{state:?}");
}

#[tokio::test]
async fn whoever_is_cut_off_is_waited_for_until_nothing_it_shows_can_be_old() {
    let server = Valkey::start(Software::any());
    let purger = Machine::leased(&server.url(), "a");
    settled(&purger).await;
    // A machine that registers by hand and is never heard of again.
    let other = Engine::new(options(&server.url())).expect("an engine");
    let link = other.connect().await.expect("a link");
    let gone = super::member("5e55", 1);
    link.round(cluster::link::Ask { field: "gone/5e55", member: &gone, position: None, entries_max: 1 }).await.expect("a round");

    let began = Instant::now();
    let by_a_write = Order { by: Maker::Write, ..order(1) };
    let write = purger.cluster.purged(&by_a_write).await;
    assert!(!write.everywhere && write.expired == ["gone"] && write.why.is_some(), "a reader does not wait longer: {write:?}");
    assert!(began.elapsed() >= LEASE, "it may have had a lease");
    // Its doubt_hold is 5 s.
    let thorough = purger.cluster.purged(&order(2)).await;
    assert!(thorough.everywhere && thorough.expired == ["gone"], "{thorough:?}");
    assert!(thorough.took_ms >= 5000, "{thorough:?}");
    let again = purger.cluster.purged(&by_a_write).await;
    assert!(again.took_ms < 1500, "it is known to have no lease: {again:?}");
}

#[tokio::test]
async fn a_machine_that_is_stopped_in_order_is_not_waited_for() {
    let server = Valkey::start(Software::any());
    let stays = Machine::leased(&server.url(), "a");
    let mut goes = Machine::leased(&server.url(), "b");
    settled(&stays).await;
    goes.cluster.stop();
    goes.until(|done| *done == Done::GaveUp);
    let spread = stays.cluster.purged(&order(1)).await;
    assert!(spread.everywhere && spread.confirmed == ["a"] && spread.expired.is_empty(), "{spread:?}");
    let told = goes.cluster.purged(&order(2)).await;
    assert!(!told.everywhere && told.why.is_some(), "{told:?}");
}

#[tokio::test]
async fn a_restarted_machine_goes_on_from_its_position_and_does_not_doubt_what_it_has() {
    let server = Valkey::start(Software::any());
    let stays = Machine::leased(&server.url(), "a");
    let mut goes = Machine::leased(&server.url(), "b");
    settled(&stays).await;
    goes.until(|done| *done == Done::Applied(order(0)));
    goes.until(|done| *done == Done::Leased);
    goes.cluster.stop();
    stays.cluster.purged(&order(1)).await;
    let mut back = Machine::start(&server.url(), "b", goes.last_kept.clone());
    let before = back.until(|done| *done == Done::Leased);
    assert!(before.contains(&Done::Applied(order(1))), "{before:?}");
    assert!(!before.contains(&Done::Doubted), "{before:?}");
}

/// Nobody knows what was carried out before the panic, so the fence closes and everything is doubted. Then this machine takes part as before.
#[tokio::test]
async fn a_panic_costs_a_doubt_and_no_more() {
    let server = Valkey::start(Software::any());
    let (whole, mut fails) = (Machine::leased(&server.url(), "a"), Machine::leased(&server.url(), "b"));
    settled(&whole).await;
    fails.until(|done| *done == Done::Applied(order(0)));
    for _ in 0..2 {
        fails.forget();
        let purged = whole.cluster.purged(&order(PANIC));
        let before = fails.until(|done| *done == Done::GaveUp);
        assert!(!before.iter().any(|done| matches!(done, Done::Kept(_))), "it was not carried out: {before:?}");
        let before = fails.until(|done| *done == Done::Leased);
        assert!(before.contains(&Done::Doubted), "{before:?}");
        purged.await;
    }
    let own = fails.cluster.purged(&order(1)).await;
    assert!(own.everywhere && own.confirmed == ["b", "a"], "{own:?}");
    let others = whole.cluster.purged(&order(2)).await;
    assert!(others.everywhere && others.confirmed == ["a", "b"], "{others:?}");
    fails.until(|done| *done == Done::Applied(order(2)));
}

#[tokio::test]
async fn two_machines_of_one_name_are_told_apart_and_the_second_has_no_lease() {
    let server = Valkey::start(Software::any());
    let _first = Machine::leased(&server.url(), "a");
    let second = Machine::start(&server.url(), "a", None);
    let began = Instant::now();
    while !second.cluster.state().name_is_taken {
        assert!(began.elapsed() < PATIENCE, "{:?}", second.cluster.state());
        tokio::task::yield_now().await;
    }
    assert!(!second.cluster.state().leased);
}
