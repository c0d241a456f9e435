//! Between the pipeline, which counts, and `insight`, which remembers: the facts of each request, and one thread that takes what was counted in each
//! second.
//!
//! Plain hits are counted by their worker alone and cost nothing more here; of some of them more is told ([`sample`]). All other requests are
//! told one by one ([`facts`]). What is remembered outlives the process in the folder of the cache ([`keep`]).

pub(crate) mod facts;
mod keep;
pub(crate) mod sample;
mod take;
pub(crate) mod watch;

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{RecvTimeoutError, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use admin::Moment;
use insight::{Filter, Insight, Span};
use parking_lot::Mutex;

use crate::{config::settings::Settings, plan::Plan, server::State};
use take::LastReading;

/// The time between two times that the account is written to the disk.
const KEEP_EVERY: Duration = Duration::from_mins(1);

/// The most requests in one event.
const RECENT_IN_MOMENT: usize = 20;

/// The most requests in one answer.
const RECENT_MAX: usize = 4_096;

/// Holds what is known of the traffic.
#[derive(Debug)]
pub(crate) struct Seeing {
    pub(crate) insight: Arc<Insight>,
    taken: Mutex<LastReading>,
    moment: Mutex<Moment>,
    /// The folder in which the account is kept, if there is one.
    folder: Option<PathBuf>,
    /// The source that the account is of, where no host says that.
    source: Option<String>,
}

impl Seeing {
    /// Takes up the account that is kept in `folder`, or begins one. `now` is in milliseconds since the epoch.
    pub(crate) fn open(folder: Option<PathBuf>, settings: &Settings, now: u64) -> Self {
        let source = keep::source_of(settings);
        let kept = folder.as_deref().and_then(|folder| keep::read(folder, source.as_deref()));
        let insight = Arc::new(kept.unwrap_or_else(|| Insight::new(now)));
        Self { insight, taken: Mutex::default(), moment: Mutex::default(), folder, source }
    }

    /// Makes the sites of a plan those that are counted apart. `now` is in milliseconds since the epoch.
    pub(crate) fn know_sites(&self, plan: &Plan, now: u64) {
        let sites: Vec<(u16, &str)> = plan.sites.iter().map(|site| (site.id, site.name())).collect();
        self.insight.set_sites(&sites, now);
    }

    /// Takes what was counted since this was called last, as the second that ends now.
    pub(crate) fn take(&self, state: &State) {
        let now = state.shared.clock.now();
        let mut taken = self.taken.lock();
        // Before the counters are read: a bound that comes a second late would be of the wrong second.
        let slowest = state.take_slowest();
        let rows = taken.rows(&state.snapshot(), &slowest);
        self.insight.second(now.as_secs(), &rows);
        taken.look_at_origins(&state.plan.load(), &self.insight, now.as_millis());
        let mut moment = self.insight.moment(taken.told);
        taken.told = moment.recent.last().map_or(taken.told, |last| last.number);
        drop(taken);
        let old = moment.recent.len().saturating_sub(RECENT_IN_MOMENT);
        moment.recent.drain(..old);
        *self.moment.lock() = moment;
    }

    /// Returns what happened in the last second.
    pub(crate) fn moment(&self, state: &State) -> Moment {
        let plan = state.plan.load();
        let waiting = plan.sites.iter().filter_map(|site| site.origin_load()).map(|(_, waiting)| waiting as u64).sum();
        Moment {
            connections: state.gauges.open() as u64,
            waiting,
            memory: (state.shared.store.usage().bytes, state.store_max.0),
            ..self.moment.lock().clone()
        }
    }

    /// Returns the last requests that were not plain hits.
    ///
    /// # Errors
    /// When the expression cannot be understood.
    pub(crate) fn recent(&self, after: u64, expression: Option<&str>, limit: usize) -> Result<admin::Recent, admin::BadExpression> {
        let parse = |text| Filter::parse(text).map_err(|error| admin::BadExpression::new(error.shown(text)));
        let filter = expression.map(parse).transpose()?;
        Ok(self.insight.recent(after, filter.as_ref(), limit.min(RECENT_MAX)))
    }

    /// Writes the account to the disk.
    fn keep(&self) {
        if let Some(folder) = &self.folder
            && let Err(error) = keep::write(folder, self.source.as_deref(), &self.insight)
        {
            tracing::warn!("what was seen of the traffic cannot be kept in {}: {error}", folder.display());
        }
    }
}

/// Returns the span whose rows are so many seconds apart.
pub(crate) const fn span(step: u64) -> Span {
    match step {
        ..60 => Span::Hour,
        60..600 => Span::Day,
        600.. => Span::Week,
    }
}

/// The thread that takes each second. When this is dropped, it takes the last one, writes the account, and ends.
#[derive(Debug)]
pub(crate) struct SecondHand {
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl SecondHand {
    /// Starts it.
    ///
    /// # Errors
    /// When there is no thread for it.
    pub(crate) fn start(state: Arc<State>) -> io::Result<Self> {
        let (stop, stopped) = sync_channel::<()>(1);
        let work = move || {
            let clock = state.shared.clock.clone();
            let (mut taken, mut kept) = (clock.now().as_secs(), clock.now());
            loop {
                // Until the second is over, by the server's clock.
                let rest = Duration::from_millis(1_000 - clock.now().as_millis() % 1_000);
                let is_over = !matches!(stopped.recv_timeout(rest), Err(RecvTimeoutError::Timeout));
                let now = clock.now();
                // A clock that stands still has no seconds.
                if is_over || now.as_secs() > taken {
                    taken = now.as_secs();
                    state.seeing.take(&state);
                }
                if is_over || now.since(kept) >= KEEP_EVERY {
                    kept = now;
                    state.seeing.keep();
                }
                if is_over {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("seconds".to_owned()).spawn(work)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for SecondHand {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
