//! A scene: three machines, a Valkey, an origin, readers and purgers; something goes wrong, and is mended.

use std::{
    fs::OpenOptions,
    io::{Write as _, stdout},
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    engine::Engine,
    ledger::{Ledger, PAGES, Tally},
    load::{Crowd, read},
    long,
    machine::{Door, Machine, PORT, Setup, url_of},
    network::{Network, NetworkHost},
    origin::Origin,
    process::{PATIENCE, rest, until},
};

/// The lease and the hold in doubt that are the default.
const LEASE: Duration = Duration::from_secs(2);
const DOUBT_HOLD: Duration = Duration::from_secs(5);
/// The lease and the hold of a short test.
const SHORT_LEASE: Duration = Duration::from_secs(1);
const SHORT_DOUBT_HOLD: Duration = Duration::from_secs(2);

/// Returns the lease and the hold in doubt of a test: the default, where there is time.
pub(crate) fn lease_and_hold() -> (Duration, Duration) {
    if long() { (LEASE, DOUBT_HOLD) } else { (SHORT_LEASE, SHORT_DOUBT_HOLD) }
}
/// The requests that readers send to each machine in a second, while there is a fault.
const READS_PER_SECOND: u32 = if cfg!(debug_assertions) { 100 } else { 300 };
/// The pause of each purger while there is a fault.
const PURGERS_PAUSE: Duration = Duration::from_millis(40);

/// Writes a line for whoever runs the tests, also if they pass.
pub(crate) fn tell(line: &str) {
    let mut out = stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Three machines around a Valkey.
#[derive(Debug)]
pub(crate) struct Scene {
    name: &'static str,
    // In the order in which they are to end.
    crowd: Option<Crowd>,
    pub(crate) machines: Vec<Machine>,
    pub(crate) engines: Vec<Engine>,
    pub(crate) origin: Origin,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) network: Network,
    pub(crate) lease: Duration,
    pub(crate) doubt_hold: Duration,
    faulty: Option<(Instant, Tally)>,
    mended: Option<Instant>,
}

/// Says what a scene is to keep.
#[derive(Debug, Clone, Default)]
pub(crate) struct Promise {
    /// The longest time after the answer to a purge, whatever that said, for which a reader may be shown what it covered.
    pub(crate) stale_max: Option<Duration>,
    /// Machines of which readers may get errors, such as one that is killed.
    pub(crate) may_fail: Vec<&'static str>,
    /// Whether purges may be lost that nobody said to hold everywhere: their machine was killed.
    pub(crate) forgets: bool,
}

/// The names of the machines, and their numbers in the network.
pub(crate) const MACHINES: [(&str, u8); 3] = [("a", 11), ("b", 12), ("c", 13)];
/// The number of the first Valkey in the network.
pub(crate) const ENGINE: u8 = 21;

impl Scene {
    /// Sets up three machines, and waits until each has a lease: a short one where time is short.
    pub(crate) fn start(name: &'static str) -> Self {
        let (lease, doubt_hold) = lease_and_hold();
        Self::with(name, lease, doubt_hold, |_, setup| setup)
    }

    /// Sets up three machines with the lease and the hold that are the default.
    pub(crate) fn start_as_by_default(name: &'static str) -> Self {
        Self::with(name, LEASE, DOUBT_HOLD, |_, setup| setup)
    }

    /// Sets up three machines, each in its own way.
    pub(crate) fn with(name: &'static str, lease: Duration, doubt_hold: Duration, own: impl Fn(usize, Setup) -> Setup) -> Self {
        let mut network = Network::new();
        let engine = Engine::start(network.engine("valkey", ENGINE));
        let url = url_of(&engine.place);
        Self::around(name, network, vec![engine], lease, doubt_hold, |number| own(number, Setup::joined(&url, lease, doubt_hold)))
    }

    /// Sets up three machines around servers that run already.
    pub(crate) fn around(
        name: &'static str,
        mut network: Network,
        engines: Vec<Engine>,
        lease: Duration,
        doubt_hold: Duration,
        setup: impl Fn(usize) -> Setup,
    ) -> Self {
        let ledger = Arc::new(Ledger::new());
        let origin = Origin::start(&ledger);
        let places: Vec<NetworkHost> = MACHINES.iter().map(|(machine, number)| network.machine(machine, *number)).collect();
        let machines = Machine::start_all(places.into_iter().enumerate().map(|(number, place)| (place, setup(number))));
        let scene = Self { name, crowd: None, machines, engines, origin, ledger, network, lease, doubt_hold, faulty: None, mended: None };
        for machine in scene.machines.iter().filter(|machine| machine.setup.cluster.is_some()) {
            machine.is_leased();
        }
        scene
    }

    /// Returns the doors of all machines.
    pub(crate) fn doors(&self) -> Vec<Door> {
        self.machines.iter().map(Machine::door).collect()
    }

    /// Lets readers and purgers come to all machines: each purger to one of its own.
    pub(crate) fn is_loaded(&mut self) {
        let purged_at: Vec<usize> = (0..self.machines.len()).collect();
        self.is_loaded_and_purged_at(&purged_at);
    }

    /// Lets readers come to all machines, and purgers to some.
    pub(crate) fn is_loaded_and_purged_at(&mut self, purged_at: &[usize]) {
        let mut crowd = Crowd::default();
        for (number, door) in (0_u64..).zip(self.doors()) {
            crowd.reads(&door, &self.ledger, READS_PER_SECOND, 1_000 + 10 * number);
        }
        for machine in purged_at {
            crowd.purges(&[self.machines[*machine].door()], &self.ledger, PURGERS_PAUSE, 7 + *machine as u64);
        }
        self.crowd = Some(crowd);
        rest(Duration::from_millis(700));
    }

    /// Notes that the fault begins now.
    pub(crate) fn breaks(&mut self) {
        self.faulty = Some((Instant::now(), self.ledger.tally()));
    }

    /// Lets the fault last for a while, during which readers must be served, however many machines they come to.
    pub(crate) fn goes_on_for(&self, time: Duration) {
        let before = self.ledger.served();
        rest(time);
        assert!(self.ledger.served() > before, "{}: nobody was served for {time:?}", self.name);
    }

    /// Notes that the fault is mended now.
    pub(crate) fn is_mended(&mut self) {
        self.mended = Some(Instant::now());
    }

    /// Waits until a purge at each machine is confirmed by all, and returns how long that took.
    pub(crate) fn is_normal(&self) -> Duration {
        let begun = self.mended.unwrap_or_else(Instant::now);
        for door in self.doors() {
            until(&format!("{}: a purge at {} is confirmed by all", self.name, door.name), || {
                let purge = json!({"url": "http://blog.example/nothing-is-here"}).to_string();
                let Some((200, done)) = door.admin("POST /purge", &purge) else { return false };
                done["spread"]["everywhere"] == true
                    && done["spread"]["confirmed"].as_array().is_some_and(|names| names.len() == self.machines.len())
            });
        }
        begun.elapsed()
    }

    /// Waits until all is normal, ends the load, prints what happened, and judges it.
    pub(crate) fn ends(mut self, promise: &Promise) {
        let normal = self.is_normal();
        rest(Duration::from_millis(500));
        if let Some(crowd) = self.crowd.take() {
            crowd.end();
        }
        let tally = self.ledger.tally();
        self.shows(&tally, normal);
        if !promise.forgets {
            // What was answered at all has been told to everybody by now.
            self.is_normal();
            self.ledger.all_that_was_answered_holds();
        }
        for door in self.doors() {
            let mut client = crate::http::Client::of(door.address, PORT, PATIENCE);
            for page in 0..PAGES {
                read(&mut client, &door, &self.ledger, page);
            }
        }
        let judged = self.ledger.tally();
        let name = self.name;
        assert!(judged.wrong == 0, "{name}: {} wrong answers, such as:\n  {}", judged.wrong, judged.wrong_in_words.join("\n  "));
        let errors: Vec<_> = judged.errors.iter().filter(|((machine, _), _)| !promise.may_fail.contains(&machine.as_str())).collect();
        assert!(errors.is_empty(), "{name}: readers met errors: {errors:?}");
        if let Some(bound) = promise.stale_max {
            assert!(tally.stale_max <= bound, "{name}: an answer was {:?} behind a purge, {bound:?} is promised", tally.stale_max);
        }
        assert!(tally.everywhere > 0, "{name}: no purge was said to hold everywhere, so nothing was judged");
    }

    fn shows(&self, tally: &Tally, normal: Duration) {
        let errors: u64 = tally.errors.values().sum();
        let (begun, before) = self.faulty.as_ref().map_or_else(|| (None, Tally::default()), |(at, tally)| (Some(*at), tally.clone()));
        let lasted = begun.map(|begun| self.mended.unwrap_or_else(Instant::now).duration_since(begun).as_secs_f64()).unwrap_or_default();
        let after: Vec<String> = tally.stale_after.iter().map(|(kind, count)| format!("{count} after {kind}")).collect();
        let after = if after.is_empty() { String::new() } else { format!(" ({})", after.join(", ")) };
        let line = format!(
            "| {} | {lasted:.1} s | {} | {errors} | {} | {}, {:.2} s at most{after} | {} everywhere, {} not known, {} refused | {:.2} s |",
            self.name,
            tally.served - before.served,
            tally.wrong,
            tally.stale - before.stale,
            tally.stale_max.as_secs_f64(),
            tally.everywhere - before.everywhere,
            tally.not_known - before.not_known,
            tally.refused - before.refused,
            normal.as_secs_f64(),
        );
        tell(&line);
        if let Some(file) = std::env::var_os("SEAWALL_CLUSTER_TABLE") {
            let mut file = OpenOptions::new().create(true).append(true).open(file).expect("the table can be written");
            writeln!(file, "{line}").expect("written");
        }
    }

    /// Lets the fault last for longer than a lease and a hold in doubt.
    pub(crate) fn goes_on_for_a_while(&self) {
        self.goes_on_for(self.lease + self.doubt_hold + Duration::from_millis(200));
    }

    /// Returns the longest time for which a page may be stale while its origin answers, whatever happens to Valkey.
    pub(crate) fn promised(&self) -> Promise {
        Promise { stale_max: Some(self.lease + self.doubt_hold), ..Promise::default() }
    }
}
