//! Runs a plan: a thread for each worker, and one that adds up what they record.
//!
//! The clock of a run begins when all workers are ready. Each protocol is a file or room here, with one function that a worker thread runs
//! (`fn work(worker: Worker) -> Tally`). It follows the worker's [`dues`](Worker::dues), asks [`Visitor`](crate::requests::Visitor)s what to send,
//! takes permission for each request from the [`Budget`], tells the [`Recorder`] what happened, and ends when [`Worker::ends`] says so.

mod budget;
mod descriptors;
mod driver;
pub(crate) mod http1;
mod http2;
mod http3;
mod observe;
mod sources;
mod target;
mod throttle;
pub(crate) mod tls;

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    sync::{
        Arc, Barrier, OnceLock,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use self::observe::{Moment, Usage};
pub use self::{
    budget::Budget,
    descriptors::raise_limit,
    http3::{NotMet, look as look_over_http3},
    observe::{Observations, WorkerSeen},
    target::Target,
    throttle::Throttle,
    tls::{Tls, TlsError, untrusted},
};
use crate::{
    plan::{Plan, Protocol, Stop},
    record::{Interval, Recorder, Tally},
    results::{Limit, Results, Run, Second, Verdict},
    schedule::{Dues, Share},
    verdict,
};

/// Intervals that may wait for the thread that adds them up, for each worker.
const INTERVALS_WAITING: usize = 4;

/// The interval at which the watch is asked whether the run is to end.
const ASK_WATCH: Duration = Duration::from_millis(50);

/// The reason why a run could not be made. Failures of requests are no such reason: they are results.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system has no thread left.
    #[error("no thread for a worker")]
    Thread(#[source] std::io::Error),
    /// TLS cannot be spoken as the plan says.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A name leads nowhere.
    #[error("{host} leads nowhere")]
    Resolve {
        /// The name.
        host: String,
        /// The reason that the system gives.
        source: std::io::Error,
    },
    /// Connections cannot come from an address.
    #[error("{address} is not an address of this machine, so connections cannot come from it")]
    Source {
        /// The address.
        address: std::net::IpAddr,
        /// The error of the system.
        source: std::io::Error,
    },
    /// Clients need more descriptors than the system allows.
    #[error(
        "{clients} clients need {needed} open files, and this system allows {limit}: allow more with `ulimit -n {needed}` (as root, or with \
         LimitNOFILE= of a service), or take fewer clients"
    )]
    Descriptors {
        /// The clients.
        clients: u32,
        /// The descriptors that they need.
        needed: u64,
        /// The descriptors that the load tester may have open.
        limit: u64,
    },
    /// A worker cannot work.
    #[error("{0}")]
    Worker(String),
}

/// Looks on while a run goes on.
pub trait Watch {
    /// Tells that a second is over. Returns whether the run goes on.
    fn second(&mut self, second: &Second) -> ControlFlow<()>;

    /// Returns whether the run is to end now. It is asked about every 50 ms.
    fn stops(&mut self) -> bool {
        false
    }
}

/// Looks on and does nothing.
impl Watch for () {
    fn second(&mut self, _: &Second) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// The time from the beginning of a run.
#[derive(Debug, Clone)]
pub struct Clock(Arc<OnceLock<Instant>>);

impl Clock {
    /// Returns the time since the beginning; zero before it.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.0.get().map_or(Duration::ZERO, Instant::elapsed)
    }
}

/// Holds what a worker's thread works with.
#[derive(Debug)]
pub struct Worker {
    /// The plan of the run.
    pub plan: Arc<Plan>,
    /// The worker's part of the schedule.
    pub share: Share,
    /// The run's clock. It runs when [`Worker::begin`] has returned.
    pub clock: Clock,
    /// The targets of the connections to each origin of the request set.
    pub targets: Arc<[Target]>,
    /// Takes what happened.
    pub recorder: Recorder,
    /// The number of requests that may still be made, by all workers.
    pub budget: Arc<Budget>,
    /// The permitted load, if there is a limit.
    pub throttle: Option<Arc<Throttle>>,
    /// The client side of TLS, if an origin is asked over it.
    pub tls: Option<Arc<Tls>>,
    begins: Arc<Barrier>,
    begun: Arc<OnceLock<Usage>>,
    stopped: Arc<AtomicBool>,
    trouble: Arc<OnceLock<String>>,
}

impl Worker {
    /// Waits until all workers are ready. What must be prepared is prepared before.
    pub fn begin(&self) {
        self.begins.wait();
        self.clock.0.get_or_init(Instant::now);
        self.begun.get_or_init(Usage::now);
    }

    /// Returns where the workers wait for each other. One that cannot work waits there, too, so that the others begin.
    #[must_use]
    pub fn starting_line(&self) -> Arc<Barrier> {
        Arc::clone(&self.begins)
    }

    /// Returns what is due for this worker.
    #[must_use]
    pub fn dues(&self) -> Dues {
        self.plan.schedule.dues(self.share, self.plan.seed)
    }

    /// Returns the moment at which no more requests are made. What is under way gets [a while](Recorder::grace) to end. Clients that stay would stay
    /// forever if neither the plan nor their schedule had an end; an open schedule without another end is over when its last request is.
    #[must_use]
    pub fn ends(&self) -> Option<Duration> {
        let Plan { stop, schedule, warm_up, .. } = &*self.plan;
        match stop {
            Stop { after: Some(after), .. } => Some(*warm_up + *after),
            Stop { after: None, requests: None } if !schedule.is_open() => schedule.end(),
            Stop { .. } => None,
        }
    }

    /// Returns whether somebody has stopped the run.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Ends the run with an error. What a worker says first is what is told.
    pub fn give_up(&self, why: String) {
        let _ = self.trouble.set(why);
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Ends the run with an error before it has begun.
    #[must_use]
    pub fn unable(self, why: String) -> Tally {
        self.give_up(why);
        self.begin();
        self.recorder.finish(self.clock.now())
    }
}

/// Runs a plan to its end, and sums it up.
///
/// # Errors
/// When it cannot be run at all.
pub fn run(plan: &Plan, watch: &mut dyn Watch) -> Result<Results, Error> {
    let plan = Arc::new(plan.clone());
    let tls = Tls::new(&plan)?.map(Arc::new);
    let targets: Arc<[Target]> = target::targets(&plan)?.into();
    // A worker without a client of its own could send nothing.
    let workers = u32::try_from(plan.workers).unwrap_or(1).min(plan.schedule.clients_max().unwrap_or(u32::MAX)).max(1);
    let workers = plan.cap.map_or(workers, |cap| workers.min(cap.clients.max(1)));
    let throttle = plan.cap.map(|cap| Arc::new(Throttle::new(cap)));
    target::sources(&plan)?;
    let descriptors = raise_limit();
    descriptors::suffice(&plan, descriptors)?;
    let clock = Clock(Arc::new(OnceLock::new()));
    let budgets = Budget::of_workers(&plan.schedule, plan.stop.requests, plan.warm_up, workers);
    let begins = Arc::new(Barrier::new(workers as usize));
    let stopped = Arc::new(AtomicBool::new(false));
    let trouble = Arc::new(OnceLock::new());
    let (sender, receiver) = mpsc::sync_channel(INTERVALS_WAITING * workers as usize);
    let threads = (0..workers)
        .zip(budgets)
        .map(|(number, budget)| {
            let begun = Arc::new(OnceLock::new());
            let mut worker = Worker {
                plan: Arc::clone(&plan),
                share: Share { worker: number, of: workers },
                clock: clock.clone(),
                targets: Arc::clone(&targets),
                recorder: Recorder::new(number, plan.warm_up, sender.clone()).counting(plan.stop.requests.is_some()),
                budget,
                throttle: throttle.clone(),
                tls: tls.clone(),
                begins: Arc::clone(&begins),
                begun: Arc::clone(&begun),
                stopped: Arc::clone(&stopped),
                trouble: Arc::clone(&trouble),
            };
            worker.recorder.will_end(worker.ends());
            let work = move |worker: Worker| match worker.plan.protocol {
                Protocol::Http1 { .. } => http1::work(worker),
                Protocol::Http2 { streams } => Ok(http2::work(worker, streams)),
                Protocol::Http3 { streams } => Ok(http3::work(worker, streams)),
            };
            let run = move || {
                let tally = work(worker)?;
                let seen = begun.get().map(|begun: &Usage| begun.until(&Usage::now())).unwrap_or_default();
                Ok::<_, Error>((tally, seen))
            };
            thread::Builder::new().name(format!("load-{number}")).spawn(run).map_err(Error::Thread)
        })
        .collect::<Result<Vec<_>, _>>()?;
    drop(sender);
    let what = Run::new(&plan);
    let before = Moment::now();
    let seconds = look_on(&receiver, workers as usize, &stopped, watch);
    let after = Moment::now();
    let mut whole = Tally::new();
    let mut seen = Vec::new();
    for thread in threads {
        let (tally, of_worker) = thread.join().map_err(|_| Error::Worker("a worker has panicked".to_owned()))??;
        whole.add(&tally);
        seen.push(of_worker);
    }
    if let Some(why) = trouble.get() {
        return Err(Error::Worker(why.clone()));
    }
    let observations = Observations {
        resent: whole.resent,
        ports_exhausted: whole.ports_exhausted,
        descriptors_exhausted: whole.descriptors_exhausted,
        descriptors_max: descriptors,
        targets: targets.iter().map(ToString::to_string).collect(),
        ..before.until(&after, seen, whole.requests + whole.warm_up)
    };
    let stopped = stopped.load(Ordering::Relaxed);
    let duration = measured(&plan, whole.ended_at, stopped).saturating_sub(plan.warm_up);
    let verdict = Verdict { limit: Limit::Server, at_least: false, reason: String::new(), hint: None };
    let behaviour = &plan.requests.behaviour;
    let results = Results {
        generator: (&observations).into(),
        leaks: behaviour.leaks().shown(),
        left_out: behaviour.left_out(),
        ended_early: stopped.then_some(duration.as_secs_f64()),
        ..Results::new(what, duration, &whole, seconds, verdict)
    };
    let verdict = verdict::judge(&results, &observations);
    Ok(Results { verdict, ..results })
}

/// Returns when a run was over whose last request ended at `ended`. An open schedule lasts as long as it says, also if its last request is due before its end.
fn measured(plan: &Plan, ended: Duration, stopped: bool) -> Duration {
    let is_whole = !stopped && plan.schedule.is_open() && plan.stop == Stop::default();
    plan.schedule.end().filter(|_| is_whole).map_or(ended, |end| end.max(ended))
}

/// Adds up what the workers hand over, until the last of them has ended.
fn look_on(intervals: &mpsc::Receiver<Interval>, workers: usize, stopped: &AtomicBool, watch: &mut dyn Watch) -> Vec<Second> {
    let mut open = BTreeMap::<u64, (Duration, Tally)>::new();
    // The first second of which each worker may still tell something.
    let mut tells = vec![0_u64; workers];
    let mut seconds = Vec::new();
    let mut asked = Instant::now();
    loop {
        let received = intervals.recv_timeout(ASK_WATCH);
        if asked.elapsed() >= ASK_WATCH {
            asked = Instant::now();
            if watch.stops() {
                stopped.store(true, Ordering::Relaxed);
            }
        }
        let Interval { worker, second, length, tally, last } = match received {
            Ok(interval) => interval,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        if !length.is_zero() || tally.requests > 0 {
            let (longest, sum) = open.entry(second).or_insert_with(|| (length, Tally::of_a_second()));
            *longest = length.max(*longest);
            sum.add(&tally);
        }
        if let Some(tells) = tells.get_mut(worker as usize) {
            *tells = if last { u64::MAX } else { second + 1 };
        }
        let complete = tells.iter().copied().min().unwrap_or(u64::MAX);
        while let Some(first) = open.first_entry()
            && *first.key() < complete
        {
            let (second, (length, tally)) = first.remove_entry();
            let second = Second::new(second, length, &tally);
            if watch.second(&second).is_break() {
                stopped.store(true, Ordering::Relaxed);
            }
            seconds.push(second);
        }
    }
    seconds.extend(open.into_iter().map(|(second, (length, tally))| Second::new(second, length, &tally)));
    seconds
}
