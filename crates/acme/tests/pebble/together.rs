//! Several machines that are one site: each certificate is ordered once, and any of them answers the challenge.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use acme::{Answer, Challenges, Keeper, Method, Transport};
use bytes::Bytes;
use http::Request;
use semantics::Timestamp;
use testkit::Gate;

use crate::{
    HOUR, MINUTE, NAME,
    shelf::Memory,
    stage::{Between, DAY, Shown, Stage, now, only, serial},
};

const SECOND: Duration = Duration::from_secs(1);

/// One of the machines: it has a disk, a memory and challenges of its own.
struct Machine {
    keeper: Keeper,
    challenges: Challenges,
    shown: Arc<Shown>,
    _disk: tempfile::TempDir,
}

impl Machine {
    fn of(stage: &Stage, shelf: &Memory, names: &[&str]) -> Self {
        Self::with(stage, shelf, names, Arc::new(stage.between.clone()))
    }

    fn with(stage: &Stage, shelf: &Memory, names: &[&str], transport: Arc<dyn Transport>) -> Self {
        let disk = tempfile::tempdir().expect("a folder");
        let (challenges, shown) = (Challenges::default(), Arc::new(Shown::default()));
        let options = acme::Options { folder: disk.path().join("acme"), ..stage.options.clone() };
        let keeper = Keeper::open(options, transport, challenges.clone(), Arc::clone(&shown) as _).expect("a folder");
        let keeper = keeper.together(Arc::new(shelf.clone()));
        keeper.want(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>(), &[]);
        Self { keeper, challenges, shown, _disk: disk }
    }

    fn serial(&self, name: &str) -> Option<String> {
        Some(serial(&*self.shown.of(name)?))
    }
}

fn three(stage: &Stage, shelf: &Memory, names: &[&str]) -> [Machine; 3] {
    [(); 3].map(|()| Machine::of(stage, shelf, names))
}

/// Leads the authority to a machine.
fn lead_to(stage: &Stage, machine: &Machine) {
    stage.front.lead_to(&machine.challenges, &machine.shown);
}

/// Lets a machine answer whoever asks it, while others do something.
async fn meanwhile<T>(machine: &Machine, at: Timestamp, others: impl Future<Output = T>) -> T {
    let mut outcome = None;
    machine.keeper.run(|| at, async { outcome = Some(others.await) }).await;
    outcome.expect("it ran until then")
}

/// Holds back the first request to a path with this part.
struct Holding {
    between: Between,
    part: &'static str,
    gate: Gate,
    has_held: AtomicBool,
}

impl Holding {
    fn new(stage: &Stage, part: &'static str, gate: &Gate) -> Arc<Self> {
        Arc::new(Self { between: stage.between.clone(), part, gate: gate.clone(), has_held: AtomicBool::new(false) })
    }
}

impl Transport for Holding {
    fn send(&self, request: Request<Bytes>) -> Answer {
        let is_held = request.uri().path().contains(self.part) && !self.has_held.swap(true, Ordering::Relaxed);
        let (between, gate) = (self.between.clone(), self.gate.clone());
        Box::pin(async move {
            if is_held {
                gate.pass().await;
            }
            between.send(request).await
        })
    }
}

/// All three are started at once, with nothing on their disks, and the load balancer leads the authority to the last one.
#[tokio::test]
async fn of_three_machines_that_start_at_once_one_orders_each_name() {
    let stage = Stage::new().await;
    let shelf = Memory::default();
    let names = ["a.example.org", "b.example.org", "c.example.org"];
    let [one, two, three] = three(&stage, &shelf, &names);
    lead_to(&stage, &three);
    let machines = [&one, &two, &three];
    let have = || machines.map(|machine| names.map(|name| machine.serial(name)));
    let until_all_have = || async {
        while have().iter().flatten().any(Option::is_none) {
            tokio::task::yield_now().await;
        }
    };
    let [one, two, three] = machines.map(|machine| machine.keeper.run(now, until_all_have()));
    tokio::time::timeout(MINUTE, async { tokio::join!(one, two, three) }).await.expect("all of them have all certificates");
    let [first, second, third] = have();
    assert!(first == second && second == third, "{first:?} {second:?} {third:?}");
    assert_eq!(stage.between.asked("/order-plz").len(), names.len());
    assert_eq!(stage.between.asked("/sign-me-up").len(), 1, "one account");
}

/// RFC 8555 §8.3, RFC 8737 §3: the authority asks a machine that did not order.
#[tokio::test]
async fn any_machine_answers_the_challenge() {
    for method in [Method::Http01, Method::TlsAlpn01] {
        let mut stage = Stage::new().await;
        stage.options.methods = vec![method];
        let shelf = Memory::default();
        let (orderer, asked) = (Machine::of(&stage, &shelf, &[NAME]), Machine::of(&stage, &shelf, &[]));
        lead_to(&stage, &asked);
        meanwhile(&asked, now(), orderer.keeper.step(now())).await;
        assert_eq!(only(&orderer.keeper, now()).last_error, None, "{method:?}");
        assert!(orderer.serial(NAME).is_some());
        let posted = shelf.all().into_iter().find(|(name, _)| name.ends_with("/challenges")).expect("posted once").1;
        assert_eq!(posted, b"[]", "the order is over");
        // Whoever asks for something else finds nothing, and is not kept waiting.
        let stranger = "/.well-known/acme-challenge/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        let look = async {
            let looking = loop {
                match asked.challenges.look_up(stranger) {
                    Some(looking) => break looking,
                    None => tokio::task::yield_now().await,
                }
            };
            looking.await;
        };
        meanwhile(&asked, now(), look).await;
        assert_eq!(asked.challenges.content(stranger), None);
        assert!(asked.challenges.look_up(stranger).is_none(), "nobody looks up when the keeper has ended");
    }
}

/// A new machine comes with an empty disk, when the authority cannot be reached.
#[tokio::test]
async fn a_machine_that_finds_a_certificate_takes_it_instead_of_ordering() {
    let mut stage = Stage::new().await;
    let shelf = Memory::default();
    let old = Machine::of(&stage, &shelf, &[NAME]);
    lead_to(&stage, &old);
    old.keeper.step(now()).await;
    stage.pebble.stop();
    let new = Machine::of(&stage, &shelf, &[NAME]);
    new.keeper.step(now()).await;
    assert_eq!(new.serial(NAME), old.serial(NAME));
    assert!(new.serial(NAME).is_some());
    let kept = fs::read_dir(new._disk.path().join("acme")).expect("a folder").filter_map(Result::ok).find(|entry| entry.path().is_dir());
    let kept = kept.expect("the authority's").path().join(format!("{NAME}.pem"));
    assert!(fs::read_to_string(kept).expect("kept on its own disk").contains("PRIVATE KEY"));
    assert_eq!(stage.between.asked("/order-plz").len(), 1);
}

#[tokio::test]
async fn a_renewal_is_one_order_for_all() {
    let stage = Stage::new().await;
    let shelf = Memory::default();
    let machines = three(&stage, &shelf, &[NAME]);
    lead_to(&stage, &machines[0]);
    let begun = now();
    for machine in &machines {
        machine.keeper.step(begun).await;
    }
    let first = machines[0].serial(NAME);
    // All of them find it due: their own spread is over.
    let later = begun + 62 * DAY;
    for machine in &machines {
        lead_to(&stage, machine);
        machine.keeper.step(later).await;
    }
    let serials = machines.each_ref().map(|machine| machine.serial(NAME));
    assert!(serials.iter().all(|serial| *serial == serials[0] && *serial != first), "{serials:?} after {first:?}");
    assert_eq!(stage.between.asked("/order-plz").len(), 2);
}

/// The orderer is killed between the proof and the certificate.
#[tokio::test]
async fn when_the_orderer_dies_another_machine_orders_once_its_lock_has_ended() {
    let stage = Stage::new().await;
    let shelf = Memory::default();
    let gate = Gate::new();
    let dying = Machine::with(&stage, &shelf, &[NAME], Holding::new(&stage, "/finalize-order/", &gate));
    let heir = Machine::of(&stage, &shelf, &[NAME]);
    lead_to(&stage, &dying);
    let begun = now();
    tokio::select! {
        _ = dying.keeper.step(begun) => panic!("it is held back"),
        () = gate.arrived() => {}
    }
    drop(dying);
    lead_to(&stage, &heir);
    heir.keeper.step(begun).await;
    assert_eq!((heir.serial(NAME), stage.between.asked("/order-plz").len()), (None, 1));
    assert_eq!(only(&heir.keeper, begun).last_error, None, "to wait for another machine is not a failure");
    shelf.end_locks();
    heir.keeper.step(begun + 5 * SECOND).await;
    assert!(heir.serial(NAME).is_some());
    assert_eq!(stage.between.asked("/order-plz").len(), 2);
}

/// The orderer slept for longer than its lock lasts, and wakes with a certificate in its hands.
#[tokio::test]
async fn the_certificate_of_an_orderer_that_comes_late_is_refused() {
    let stage = Stage::new().await;
    let shelf = Memory::default();
    let gate = Gate::new();
    let sleeper = Machine::with(&stage, &shelf, &[NAME], Holding::new(&stage, "/finalize-order/", &gate));
    let other = Machine::of(&stage, &shelf, &[NAME]);
    lead_to(&stage, &sleeper);
    let begun = now();
    let meanwhile = async {
        gate.arrived().await;
        shelf.end_locks();
        lead_to(&stage, &other);
        other.keeper.step(begun + 5 * SECOND).await;
        let ordered = other.serial(NAME);
        gate.open();
        ordered.expect("ordered")
    };
    let (_, ordered) = tokio::join!(sleeper.keeper.step(begun), meanwhile);
    assert_eq!(sleeper.serial(NAME), None, "its own one is not shown");
    sleeper.keeper.step(begun + MINUTE).await;
    assert_eq!(sleeper.serial(NAME).as_ref(), Some(&ordered));
    other.keeper.look(begun + MINUTE).await;
    assert_eq!(other.serial(NAME).as_ref(), Some(&ordered));
    assert_eq!(stage.between.asked("/order-plz").len(), 2);
}

/// Let's Encrypt counts five failures an hour, whichever machine caused them.
#[tokio::test]
async fn machines_that_fail_together_try_four_times_an_hour() {
    let stage = Stage::new().await;
    let shelf = Memory::default();
    stage.between.refuse("/order-plz", 1000, 403, &[], "unauthorized", "no");
    let machines = three(&stage, &shelf, &[NAME]);
    let begun = now();
    for minute in 0..60 {
        for machine in &machines {
            machine.keeper.step(begun + MINUTE * minute).await;
        }
    }
    let tried = stage.between.asked("/order-plz").len();
    assert!((2..=4).contains(&tried), "{tried} attempts");
    // Restarts change nothing.
    let restarted = three(&stage, &shelf, &[NAME]);
    for machine in &restarted {
        machine.keeper.step(begun + 59 * MINUTE).await;
    }
    assert!(stage.between.asked("/order-plz").len() <= 4);
}

#[tokio::test]
async fn without_the_shelf_a_certificate_that_is_there_is_served_and_nothing_is_ordered_in_haste() {
    let stage = Stage::new().await;
    let shelf = Memory::default();
    let machine = Machine::of(&stage, &shelf, &[NAME]);
    lead_to(&stage, &machine);
    let begun = now();
    machine.keeper.step(begun).await;
    let first = machine.serial(NAME);
    shelf.cut(true);
    // It is due, and good for a month.
    for hour in 0..48 {
        machine.keeper.step(begun + 62 * DAY + HOUR * hour).await;
    }
    assert_eq!((machine.serial(NAME), stage.between.asked("/order-plz").len()), (first.clone(), 1));
    assert_eq!(only(&machine.keeper, begun).last_error, None);
    // Two weeks before its end it cannot wait any longer.
    machine.keeper.step(begun + 76 * DAY).await;
    assert_ne!(machine.serial(NAME), first);
    assert_eq!(stage.between.asked("/order-plz").len(), 2);
}

#[tokio::test]
async fn without_the_shelf_a_name_without_a_certificate_gets_one_after_a_minute_and_the_others_get_it_later() {
    let stage = Stage::new().await;
    let shelf = Memory::default();
    shelf.cut(true);
    let (one, other) = (Machine::of(&stage, &shelf, &[NAME]), Machine::of(&stage, &shelf, &[NAME]));
    lead_to(&stage, &one);
    let begun = now();
    for second in [0, 10, 50] {
        one.keeper.step(begun + SECOND * second).await;
        assert_eq!(stage.between.asked("/order-plz").len(), 0);
    }
    one.keeper.step(begun + 61 * SECOND).await;
    assert!(one.serial(NAME).is_some());
    other.keeper.step(begun + 61 * SECOND).await;
    shelf.cut(false);
    one.keeper.look(begun + 2 * MINUTE).await;
    other.keeper.look(begun + 2 * MINUTE).await;
    assert_eq!(other.serial(NAME), one.serial(NAME));
    assert_eq!(stage.between.asked("/order-plz").len(), 1);
}

/// A single machine becomes one of several; the server loses everything; a disk comes back from a backup.
#[tokio::test]
async fn what_only_one_machine_has_is_put_on_the_shelf() {
    let stage = Stage::new().await;
    let shelf = Memory::default();
    let (one, other) = (Machine::of(&stage, &shelf, &[NAME]), Machine::of(&stage, &shelf, &[NAME]));
    lead_to(&stage, &one);
    let begun = now();
    one.keeper.step(begun).await;
    for wipe in [Memory::flush, Memory::spoil] {
        wipe(&shelf);
        one.keeper.look(begun + MINUTE).await;
        let new = Machine::of(&stage, &shelf, &[NAME]);
        new.keeper.step(begun + MINUTE).await;
        assert_eq!(new.serial(NAME), one.serial(NAME));
    }
    other.keeper.step(begun + 2 * MINUTE).await;
    assert_eq!(other.serial(NAME), one.serial(NAME));
    assert_eq!((stage.between.asked("/order-plz").len(), stage.between.asked("/sign-me-up").len()), (1, 1));
}

/// Somebody has copied the key.
#[tokio::test]
async fn a_replaced_certificate_is_replaced_at_every_machine() {
    let stage = Stage::new().await;
    let shelf = Memory::default();
    let (one, other) = (Machine::of(&stage, &shelf, &[NAME]), Machine::of(&stage, &shelf, &[NAME]));
    lead_to(&stage, &one);
    let begun = now();
    one.keeper.step(begun).await;
    other.keeper.step(begun).await;
    other.keeper.look(begun).await;
    let old = one.shown.of(NAME).expect("shown");
    assert_eq!(other.serial(NAME), Some(serial(&old)));
    one.keeper.revoke_and_replace(NAME, begun).await.expect("done");
    other.keeper.look(begun + 6 * SECOND).await;
    assert_eq!(other.serial(NAME), one.serial(NAME));
    assert_ne!(other.serial(NAME), Some(serial(&old)));
    assert_eq!(stage.status_at_authority(&old).await, "Revoked");
    // And the machine that did not order it can revoke the next one, as the account is the same.
    let old = other.shown.of(NAME).expect("shown");
    lead_to(&stage, &other);
    other.keeper.revoke_and_replace(NAME, begun).await.expect("done");
    assert_eq!(stage.status_at_authority(&old).await, "Revoked");
    assert_eq!(stage.between.asked("/sign-me-up").len(), 1);
}

/// The authority has forgotten the account that all of them use.
#[tokio::test]
async fn an_account_that_is_lost_is_made_anew_once() {
    let mut stage = Stage::new().await;
    let shelf = Memory::default();
    let (one, other) = (Machine::of(&stage, &shelf, &["a.example.org"]), Machine::of(&stage, &shelf, &["b.example.org"]));
    lead_to(&stage, &one);
    one.keeper.step(now()).await;
    lead_to(&stage, &other);
    other.keeper.step(now()).await;
    stage.restart_authority().await;
    for (machine, name) in [(&one, "a.example.org"), (&other, "b.example.org")] {
        lead_to(&stage, machine);
        let first = machine.serial(name).expect("ordered");
        machine.keeper.step(now() + 62 * DAY).await;
        assert_ne!(machine.serial(name), Some(first));
    }
    assert_eq!(stage.between.asked("/sign-me-up").len(), 2);
}
