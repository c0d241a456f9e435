//! Results to show: of runs that happened nowhere, from samples that a formula makes.

use std::{sync::Arc, time::Duration};

use load::{
    Plan, Protocol, Results, Schedule, Stop,
    answer::Outcome,
    plan::{Connections, TIMEOUT},
    record::{ErrorClass, Handshake, Recorder, Sample, Tally},
    requests::{Origin, Request, RequestSet},
    results::{Generator, Leak, Limit, Machine, Run, Second, Verdict},
    schedule::{Profile, Spacing},
};

/// Says what a run was like.
#[derive(Clone)]
pub(crate) struct Like {
    pub(crate) seconds: u64,
    pub(crate) rate: u64,
    pub(crate) clients: u32,
    pub(crate) median: Duration,
    /// One answer of so many is a failure; 0: none is.
    pub(crate) failing: u64,
    pub(crate) class: ErrorClass,
    /// One answer of so many is a miss; 0: answers do not say what the cache did.
    pub(crate) missing: u64,
    pub(crate) open: bool,
    pub(crate) warm_up: u64,
    pub(crate) target: &'static str,
}

impl Default for Like {
    fn default() -> Self {
        Self {
            seconds: 30,
            rate: 2000,
            clients: 500,
            median: Duration::from_millis(12),
            failing: 0,
            class: ErrorClass::Timeout,
            missing: 50,
            open: false,
            warm_up: 0,
            target: "/2026/a-post-that-everybody-reads/",
        }
    }
}

pub(crate) fn plan(like: &Like) -> Plan {
    let request = Request {
        origin: 0,
        method: "GET".to_owned(),
        target: like.target.to_owned(),
        fields: vec![],
        body: bytes::Bytes::new(),
        weight: 1,
    };
    let origin = Origin { tls: true, host: "localhost".to_owned(), port: 8443 };
    let time = Duration::from_secs(like.seconds);
    let schedule = if like.open {
        Schedule::Rate { rate: Profile::constant(like.rate as f64, Some(time)), spacing: Spacing::Poisson, clients: like.clients }
    } else {
        Schedule::Closed { clients: Profile::constant(f64::from(like.clients), None) }
    };
    Plan {
        requests: Arc::new(RequestSet { origins: vec![origin], requests: vec![request], ..RequestSet::default() }),
        schedule,
        protocol: Protocol::Http1 { pipeline: 1 },
        stop: Stop { requests: None, after: Some(time) },
        connections: Connections::default(),
        timeout: TIMEOUT,
        warm_up: Duration::from_secs(like.warm_up),
        workers: 2,
        seed: 7,
        cap: None,
    }
}

/// Numbers from 0 to 1 that look random, and are always the same.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

pub(crate) fn results(like: &Like) -> Results {
    let plan = plan(like);
    let (sender, receiver) = std::sync::mpsc::sync_channel(8192);
    let mut recorder = Recorder::new(0, plan.warm_up, sender);
    let mut dice = Dice(like.seconds ^ like.rate);
    recorder.clients(like.clients);
    for client in 0..u64::from(like.clients) {
        let took = like.median.mul_f64(0.2 + dice.roll());
        let handshake = Handshake { took: took.mul_f64(0.6), resumed: client % 4 == 0 };
        recorder.connected(Duration::from_micros(client * 10), took, Some(handshake));
    }
    let end = Duration::from_secs(like.warm_up + like.seconds);
    let mut ended_requests = Vec::new();
    for n in 0..(like.warm_up + like.seconds) * like.rate {
        // A wave every minute, a stall now and then, and a tail as servers have it.
        let second = n / like.rate;
        let wave = 1.0 + 0.3 * (second as f64 / 9.5).sin();
        let tail = -dice.roll().max(1e-9).ln();
        let stall = if second % 17 == 11 { 6.0 } else { 1.0 };
        let missed = like.missing > 0 && (n % like.missing == 0 || n < 40);
        let failed = like.failing > 0 && n % like.failing == 0;
        let error = failed.then_some(like.class);
        let latency = like.median.mul_f64(wave * stall * (0.5 + 0.7 * tail) * if missed { 8.0 } else { 1.0 });
        let latency = if error == Some(ErrorClass::Timeout) { TIMEOUT } else { latency };
        let intended = Duration::from_secs_f64(n as f64 / like.rate as f64);
        let sent = intended + if like.open { like.median.mul_f64(0.05 * tail * stall) } else { Duration::ZERO };
        recorder.sent(intended, intended + Duration::from_micros(20));
        let no_answer = matches!(error, Some(ErrorClass::Timeout | ErrorClass::Refused | ErrorClass::Reset));
        // What would take longer than the run ends some time before.
        let ended = if sent + latency > end { sent + end.saturating_sub(sent).mul_f64(dice.roll()) } else { sent + latency };
        ended_requests.push(Sample {
            intended,
            sent,
            first_byte: (!no_answer).then(|| (sent + latency.mul_f64(0.8)).min(ended)),
            ended,
            status: match error {
                None => 200,
                Some(ErrorClass::Status) => 503,
                Some(_) => 0,
            },
            bytes: if no_answer { 0 } else { 8400 },
            outcome: match like.missing {
                0 => Outcome::Unknown,
                _ if missed => Outcome::Miss,
                _ if n % 23 == 0 => Outcome::Stale,
                _ if n % 97 == 0 => Outcome::Bypass,
                _ => Outcome::Hit,
            },
            origin_reached: (like.missing > 0).then_some(missed || n % 97 == 0),
            page: None,
            error,
        });
    }
    ended_requests.sort_by_key(|sample| sample.ended);
    ended_requests.iter().for_each(|sample| recorder.ended(sample));
    let whole = recorder.finish(end);
    let seconds: Vec<_> = receiver.try_iter().map(|interval| Second::new(interval.second, interval.length, &interval.tally)).collect();
    let verdict = Verdict {
        limit: Limit::Server,
        at_least: false,
        reason: "The load tester used 31 % of a core at most and sent on time; all 500 clients waited for the server.".to_owned(),
        hint: None,
    };
    let mut results = Results::new(Run::new(&plan), Duration::from_secs(like.seconds), &whole, seconds, verdict);
    results.run.command = format!("seawall bench -c {} -d {}s https://localhost:8443{}", like.clients, like.seconds, like.target);
    results.run.began = "2026-11-23T07:02:46Z".to_owned();
    results.machine = Machine { cpu: "AMD EPYC 7B13".to_owned(), cores: 2, memory: 8 << 30, kernel: "Linux 6.18.1".to_owned() };
    results.generator = Generator {
        cpu_seconds: 3.21,
        cpu_us_per_request: 9.3,
        busiest_worker: 0.31,
        memory_max: 41 << 20,
        steal: 0.0,
        clock_jump: 0.0,
        descriptors_max: 65_536,
        ..Generator::default()
    };
    results
}

/// Makes a run that was stopped before anything was asked.
pub(crate) fn nothing() -> Results {
    let verdict = Verdict { limit: Limit::Schedule, at_least: false, reason: String::new(), hint: None };
    Results::new(Run::new(&plan(&Like::default())), Duration::ZERO, &Tally::new(), vec![], verdict)
}

/// Makes a run whose server, and whose user, wrote what hurts a page that trusts them.
pub(crate) fn hostile() -> Results {
    let bad = "</script><img src=x onerror=alert(1)>\"'&<![CDATA[ ]]> \u{1b}[31m | `code`";
    let mut results = results(&Like { seconds: 3, rate: 100, failing: 10, class: ErrorClass::Leak, ..Like::default() });
    results.run.command = bad.to_owned();
    results.run.urls = vec![format!("http://localhost/{bad}")];
    results.run.schedule = bad.to_owned();
    results.machine.cpu = bad.to_owned();
    results.verdict.reason = bad.to_owned();
    results.verdict.hint = Some(bad.to_owned());
    results.leaks = vec![Leak { url: bad.to_owned(), client: 1, owner: Some(2), place: bad.to_owned() }];
    results
}
