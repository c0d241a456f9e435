//! The rule for shared limits, in simulated time: machines that tell each other what they admit, ten times a second and with delays.
//!
//! What is judged comes from the limit alone: in so many seconds, all machines together admit `burst` and `per_second` times so many, within five per
//! cent below and ten above, if they are asked for more.

use std::net::IpAddr;

use semantics::Timestamp;

use super::{AddressRequests, LimitSharing, Rate, Rates, RequestLimit};

/// The interval of exchanges, in milliseconds.
const INTERVAL: u64 = 100;
/// The limit that most are judged by: the burst is that of the default.
const HUNDRED: Rate = Rate { per_second: 100.0, burst: 100.0 };

/// A way in which requests come: how many in a second to a machine, at a millisecond.
type Load<'a> = &'a dyn Fn(usize, u64) -> f64;

/// Draws the delay of an exchange, in milliseconds.
type Delay = fn(&mut fastrand::Rng) -> u64;

struct World {
    rate: Rate,
    machines: Vec<Machine>,
    /// The reports, and their machines.
    said: Vec<(usize, AddressRequests)>,
    /// The delays of an exchange, there and back together, in milliseconds.
    delay: Delay,
    random: fastrand::Rng,
    now: u64,
    admitted: Vec<u64>,
}

struct Machine {
    rates: Rates,
    is_up: bool,
    next: u64,
    exchange: Option<Exchange>,
    read: usize,
    owed: f64,
}

/// An exchange that is under way.
enum Exchange {
    There { at: u64, back: u64, told: Vec<AddressRequests> },
    Back { at: u64, heard: Vec<AddressRequests> },
}

impl World {
    fn new(rate: Rate, machines: usize, delay: Delay, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let machines = (0..machines)
            .map(|_| {
                let machine =
                    Machine { rates: Rates::default(), is_up: true, next: random.u64(..INTERVAL), exchange: None, read: 0, owed: 0.0 };
                machine.rates.join([1; 16]);
                machine.rates.set(Some(rate));
                machine
            })
            .collect();
        let mut world = Self { rate, machines, said: Vec::new(), delay, random, now: 1_000_000, admitted: Vec::new() };
        world.count_machines();
        world
    }

    fn count_machines(&mut self) {
        let up = u32::try_from(self.machines.iter().filter(|machine| machine.is_up).count()).expect("few");
        self.machines.iter().for_each(|machine| machine.rates.stand(LimitSharing::With { machines: up }));
    }

    /// Stops a machine, with what it has not told.
    fn dies(&mut self, number: usize) {
        self.machines[number].is_up = false;
        self.count_machines();
    }

    /// Starts a machine that knows of nothing.
    fn joins(&mut self, number: usize) {
        let machine = &mut self.machines[number];
        (machine.rates, machine.is_up, machine.exchange, machine.read) = (Rates::default(), true, None, self.said.len());
        machine.rates.join([1; 16]);
        machine.rates.set(Some(self.rate));
        machine.next = self.now + self.random.u64(..INTERVAL);
        self.count_machines();
    }

    /// Lets requests of one address come for so many milliseconds, and returns how many were admitted.
    fn lives(&mut self, millis: u64, load: Load<'_>) -> usize {
        let (begun, before) = (self.now, self.admitted.len());
        let limit = RequestLimit { rate: self.rate, exempt: [].into() };
        let address: Option<IpAddr> = Some("192.0.2.1".parse().expect("an address"));
        for _ in 0..millis {
            for number in 0..self.machines.len() {
                if !self.machines[number].is_up {
                    continue;
                }
                self.exchanges(number);
                self.machines[number].owed += load(number, self.now - begun) / 1_000.0;
                while self.machines[number].owed >= 1.0 {
                    self.machines[number].owed -= 1.0;
                    if self.machines[number].rates.ask(&limit, address, Timestamp::from_millis(self.now)).is_ok() {
                        self.admitted.push(self.now - begun);
                    }
                }
            }
            self.now += 1;
        }
        self.admitted.len() - before
    }

    fn exchanges(&mut self, number: usize) {
        let now = self.now;
        let machine = &mut self.machines[number];
        if machine.exchange.is_none() && now >= machine.next {
            let delay = (self.delay)(&mut self.random);
            machine.exchange = Some(Exchange::There { at: now + delay / 2, back: now + delay, told: machine.rates.tell(1_000) });
            machine.next = now + INTERVAL;
        }
        if let Some(Exchange::There { at, back, told }) = &mut machine.exchange
            && now >= *at
        {
            self.said.extend(told.drain(..).map(|told| (number, told)));
            let heard = self.said[machine.read..].iter().filter(|(by, _)| *by != number).map(|(_, told)| *told).collect();
            machine.read = self.said.len();
            machine.exchange = Some(Exchange::Back { at: *back, heard });
        }
        if let Some(Exchange::Back { at, heard }) = &machine.exchange
            && now >= *at
        {
            let together = machine.rates.together();
            machine.rates.hear(heard.iter(), together, now);
            machine.exchange = None;
        }
    }
}

const DELAYS: [(&str, Delay); 4] =
    [("none", |_| 0), ("up to 10 ms", |random| random.u64(..=10)), ("up to 100 ms", |random| random.u64(..=100)), ("100 ms", |_| 100)];

/// Judges what was admitted in a time by the limit alone.
fn is_within(what: &str, rate: Rate, millis: u64, admitted: usize) {
    let right = rate.per_second * millis as f64 / 1_000.0 + rate.burst;
    let part = admitted as f64 / right;
    assert!((0.95..=1.10).contains(&part), "{what}: {admitted} were admitted in {millis} ms, and {right} are right");
}

#[test]
fn three_machines_together_admit_what_the_limit_says() {
    let loads: [(&str, Load<'_>); 6] = [
        ("spread evenly", &|_, _| 100.0),
        ("far too many, spread evenly", &|_, _| 1_000.0),
        ("all at one machine", &|machine, _| if machine == 0 { 300.0 } else { 0.0 }),
        ("most at one machine", &|machine, _| [240.0, 60.0, 0.0][machine]),
        ("a little more than the limit", &|_, _| 40.0),
        ("moving every second", &|machine, at| if at / 1_000 % 3 == machine as u64 { 300.0 } else { 0.0 }),
    ];
    for (delay_name, delay) in DELAYS {
        for (name, load) in loads {
            for seed in 0..4 {
                let what = format!("{name}, delays {delay_name}, seed {seed}");
                let mut world = World::new(HUNDRED, 3, delay, seed);
                let admitted = world.lives(10_000, load);
                is_within(&what, HUNDRED, 10_000, admitted);
                // The burst is used up: each later time by itself has what flows in.
                let admitted = world.lives(5_000, load);
                is_within(&format!("{what}, later"), Rate { burst: 0.0, ..HUNDRED }, 5_000, admitted);
            }
        }
    }
}

#[test]
fn a_second_of_a_steady_load_has_what_the_limit_says() {
    for (delay_name, delay) in DELAYS {
        for (name, load) in [("evenly", &(|_, _| 100.0) as Load<'_>), ("at one", &|machine, _| if machine == 0 { 300.0 } else { 0.0 })] {
            let mut world = World::new(HUNDRED, 3, delay, 9);
            world.lives(3_000, load);
            for second in 3..10 {
                let admitted = world.lives(1_000, load);
                assert!((95..=110).contains(&admitted), "{name}, delays {delay_name}: {admitted} in second {second}");
            }
        }
    }
}

#[test]
fn a_load_that_moves_thrice_a_second_is_limited_too() {
    for seed in 0..4 {
        let mut world = World::new(HUNDRED, 3, DELAYS[2].1, seed);
        let admitted = world.lives(20_000, &|machine, at| if at / 333 % 3 == machine as u64 { 300.0 } else { 0.0 });
        is_within("moving thrice a second", HUNDRED, 20_000, admitted);
    }
}

#[test]
fn a_burst_that_is_small_loses_nothing_and_one_that_is_large_is_one_for_all() {
    for (burst, seconds) in [(5.0, 10), (1_000.0, 20)] {
        let rate = Rate { burst, ..HUNDRED };
        for (_, delay) in DELAYS {
            for load in [&(|_, _| 100.0) as Load<'_>, &|machine, _| if machine == 0 { 300.0 } else { 0.0 }] {
                let admitted = World::new(rate, 3, delay, 3).lives(seconds * 1_000, load);
                is_within("a burst", rate, seconds * 1_000, admitted);
            }
        }
    }
}

/// At no time have many more been admitted than the limit gives, also not when a crowd comes out of nothing to all machines at once: before anybody has
/// heard of it, each uses its part.
#[test]
fn a_crowd_out_of_nothing_gets_one_burst_and_not_one_of_each_machine() {
    for (name, delay) in DELAYS {
        let mut world = World::new(HUNDRED, 3, delay, 5);
        world.lives(5_000, &|_, _| 10_000.0);
        let first = world.admitted.iter().filter(|at| **at < INTERVAL).count();
        assert!(first <= 140, "delays {name}: {first} in the first tenth of a second, and 110 are right");
        let second = world.admitted.iter().filter(|at| **at < 1_000).count();
        assert!(second <= 230, "delays {name}: {second} in the first second, and 200 are right");
    }
}

#[test]
fn machines_that_die_and_join_change_little() {
    for (name, delay) in DELAYS {
        let load: Load<'_> = &|_, _| 150.0;
        let mut world = World::new(HUNDRED, 3, delay, 11);
        let mut admitted = world.lives(4_000, load);
        world.dies(2);
        admitted += world.lives(4_000, load);
        world.joins(2);
        admitted += world.lives(4_000, load);
        is_within(&format!("delays {name}"), HUNDRED, 12_000, admitted);
    }
}

/// Whoever stays below the limit is refused nothing, wherever the requests go.
#[test]
fn whoever_keeps_to_the_limit_is_admitted() {
    for (name, delay) in DELAYS {
        for load in [&(|_, _| 25.0) as Load<'_>, &|machine, _| if machine == 0 { 75.0 } else { 0.0 }, &|machine, at| {
            if at / 1_000 % 3 == machine as u64 { 75.0 } else { 0.0 }
        }] {
            let admitted = World::new(HUNDRED, 3, delay, 7).lives(10_000, load);
            assert!((745..=750).contains(&admitted), "delays {name}: {admitted} of 750");
        }
    }
}

/// A machine that hears nothing of the others takes its part: one that is shared by three a third.
#[test]
fn whoever_is_apart_takes_one_part() {
    for machines in [1, 3, 4] {
        let rates = Rates::default();
        rates.join([1; 16]);
        rates.stand(LimitSharing::Apart { machines });
        let limit = RequestLimit { rate: HUNDRED, exempt: [].into() };
        let address: Option<IpAddr> = Some("192.0.2.1".parse().expect("an address"));
        let admitted = |from: u64, to: u64| (from..to).filter(|at| rates.ask(&limit, address, Timestamp::from_millis(*at)).is_ok()).count();
        let burst_and_second = admitted(0, 1_000);
        let expected = 200 / machines as usize;
        assert!(burst_and_second.abs_diff(expected) <= 1, "{burst_and_second} of {expected}");
        assert!(admitted(1_000, 11_000).abs_diff(1_000 / machines as usize) <= 1);
    }
}
