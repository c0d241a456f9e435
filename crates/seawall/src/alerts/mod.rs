//! Alerts: one thread looks for what is wrong, and sends what `insight::alerts` says has begun or ended.
//!
//! It is far from any request, and decides by Seawall's own clock. What it sends waits in two outboxes, one for the webhook and one for the command, so
//! that a receiver that is away holds up neither the other one nor the looking.

mod command;
mod facts;
mod kept;
mod outbox;
mod webhook;

use std::{
    io,
    path::PathBuf,
    pin::pin,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use acme::{Https, Transport};
use admin::{AlertLine, AlertTestRefused, AlertTried, AlertWay, AlertsState, AlertsTested};
use insight::alerts::{Alerts, Notice, State as Firing};
use parking_lot::Mutex;
use semantics::Timestamp;
use tokio::{
    runtime::{Builder, LocalOptions},
    sync::{oneshot, watch},
    time::{MissedTickBehavior, interval, timeout},
};

use self::{
    facts::Watching,
    outbox::{Failure, Outbox, WAYS, Way},
};
use crate::{
    config::settings,
    server::{State, seen_folder},
};

/// The interval at which it is looked at what is due.
const TICK: Duration = Duration::from_millis(250);

/// The interval at which the hit ratios of the week are written down, if nothing else is.
const KEEP_EVERY: Duration = Duration::from_mins(10);

/// The longest wait at the end of the process for what is still to be sent.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// The longest time that a test of the alerts may take; the admin listener ends its connections after a minute.
const TEST_WITHIN: Duration = Duration::from_secs(45);

/// Holds what is watched, what stands, and what waits to be sent.
#[derive(Debug, Default)]
pub(crate) struct Board {
    watching: Mutex<Watching>,
    outboxes: [Outbox; WAYS.len()],
}

impl Board {
    /// Looks for what is wrong now, as far as that is due, and puts what has begun or ended into the outboxes.
    pub(crate) fn look(&self, state: &State) {
        let plan = state.plan.load_full();
        let settings = &plan.settings.alerts;
        // One after the other: two looks at once would tell twice.
        let mut watching = self.watching.lock();
        for notice in watching.look(state, &plan, &settings.rules) {
            let AlertLine { name, about, text, .. } = &notice.alert;
            match notice.state {
                Firing::Firing => tracing::warn!(alert = name, about, "{text}"),
                Firing::Resolved => tracing::info!(alert = name, about, "over: {text}"),
            }
            for way in WAYS.into_iter().filter(|way| way.is_open(settings)) {
                self.outbox(way).put(notice.clone(), way);
            }
        }
    }

    const fn outbox(&self, way: Way) -> &Outbox {
        &self.outboxes[way as usize]
    }

    /// Lists the alerts that stand, the oldest first.
    pub(crate) fn standing(&self) -> Vec<AlertLine> {
        self.watching.lock().alerts.standing()
    }

    /// Lists the alerts that stand, and then those that ended last.
    pub(crate) fn lines(&self) -> Vec<AlertLine> {
        let watching = self.watching.lock();
        let mut lines = watching.alerts.standing();
        lines.extend(watching.alerts.ended());
        lines
    }

    /// Returns what was sent by each way: its name, then how many notices arrived, failed, and were lost.
    pub(crate) fn sent(&self) -> impl Iterator<Item = (&'static str, [(&'static str, u64); 3])> {
        WAYS.into_iter().map(|way| (way.name(), self.outbox(way).counts()))
    }

    /// Says what stands, and how it is sent.
    pub(crate) fn state(&self, settings: &settings::Alerts) -> AlertsState {
        let watching = self.watching.lock();
        let ways = WAYS.into_iter().filter_map(|way| {
            let [(_, sent), (_, failed), (_, lost)] = self.outbox(way).counts();
            let waiting = self.outbox(way).waiting();
            Some(AlertWay {
                way: way.name().to_owned(),
                to: way.shown(settings)?,
                sent,
                failed,
                lost,
                waiting,
                last_error: self.outbox(way).last_error(),
            })
        });
        AlertsState { standing: watching.alerts.standing(), ended: watching.alerts.ended(), ways: ways.collect() }
    }
}

/// Sends a test by each way, past the outboxes, once. It blocks, for some seconds.
pub(crate) fn test(state: &State) -> Result<AlertsTested, AlertTestRefused> {
    let plan = state.plan.load_full();
    let settings = &plan.settings.alerts;
    let now = state.shared.clock.now();
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| AlertTestRefused::Failed(error.to_string()))?;
    let transport = transport(settings);
    let try_way = async |way: Way| -> Option<AlertTried> {
        let to = way.shown(settings)?;
        let both = async {
            for firing in [Firing::Firing, Firing::Resolved] {
                send(way, settings, transport.as_deref(), &Notice::trial(firing, now), now).await?;
            }
            Ok::<(), Failure>(())
        };
        let outcome = timeout(TEST_WITHIN, both).await;
        let error = match outcome {
            Ok(Ok(())) => None,
            Ok(Err(failure)) => Some(failure.why),
            Err(_) => Some(format!("it took longer than {} s", TEST_WITHIN.as_secs())),
        };
        Some(AlertTried { way: way.name().to_owned(), to, error })
    };
    let (webhook, command) = runtime.block_on(async { tokio::join!(try_way(Way::Webhook), try_way(Way::Command)) });
    let ways: Vec<AlertTried> = webhook.into_iter().chain(command).collect();
    if ways.is_empty() { Err(AlertTestRefused::NoWay) } else { Ok(AlertsTested { ways }) }
}

/// Sends a notice once.
async fn send(
    way: Way,
    settings: &settings::Alerts,
    transport: Option<&dyn Transport>,
    notice: &Notice,
    now: Timestamp,
) -> Result<(), Failure> {
    match (way, &settings.webhook, &settings.command, transport) {
        (Way::Webhook, Some(webhook), _, Some(transport)) => webhook::send(transport, webhook, notice, &settings.server, now).await,
        (Way::Webhook, Some(_), _, None) => Err(Failure::last("no certificate authority is trusted on this machine".to_owned())),
        (Way::Command, _, Some(command), _) => command::run(command, &notice.json(&settings.server)).await,
        // It was taken out of the configuration meanwhile.
        (Way::Webhook, None, ..) | (Way::Command, _, None, _) => Ok(()),
    }
}

/// Makes what sends webhooks, if there is one.
fn transport(settings: &settings::Alerts) -> Option<Arc<dyn Transport>> {
    settings.webhook.as_ref()?;
    Some(Arc::new(Https::new(&*origins::server::tls_config(None).ok()?)))
}

/// The thread that looks and sends. Dropping it ends it, when what waits has been sent or [`LAST_WORDS`] are over.
#[derive(Debug)]
pub(crate) struct Keeper {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Reads what stood before the start, and begins to look.
    ///
    /// # Errors
    /// When there is no thread for it.
    pub(crate) fn start(state: Arc<State>) -> io::Result<Self> {
        // Before anybody looks: what stood would be told anew otherwise.
        read(&state);
        let (stop, stopped) = oneshot::channel();
        let work = move || match Builder::new_current_thread().enable_all().build_local(LocalOptions::default()) {
            Ok(runtime) => runtime.block_on(keep(&state, stopped)),
            Err(error) => tracing::error!("nobody is told of alerts: {error}"),
        };
        let thread = thread::Builder::new().name("alerts".to_owned()).spawn(work)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Takes up the alerts that were written down before the start.
fn read(state: &State) {
    let folder = seen_folder(&state.plan.load().settings, &state.shared);
    let Some(text) = folder.as_deref().and_then(kept::read) else { return };
    match Alerts::read(&text, state.shared.clock.now()) {
        Ok(alerts) => state.alerts.watching.lock().alerts = alerts,
        Err(error) => tracing::warn!("what is known of alerts begins anew, as the file is damaged: {error}"),
    }
}

async fn keep(state: &State, stopped: oneshot::Receiver<()>) {
    let folder = seen_folder(&state.plan.load().settings, &state.shared);
    let mut keeping = Keeping { state, folder, written: None, trouble: false };
    let (end, ends) = watch::channel(false);
    let mut sending = pin!(async { tokio::join!(send_all(state, Way::Webhook, ends.clone()), send_all(state, Way::Command, ends)) });
    tokio::select! {
        _ = stopped => {}
        () = keeping.look() => {}
        () = facts::probe(state) => {}
        _ = &mut sending => {}
    }
    // What is on its way is not sent a second time: it goes on.
    let _ = end.send(true);
    let _ = timeout(LAST_WORDS, sending).await;
    for way in WAYS {
        let left = state.alerts.outbox(way).waiting();
        if left > 0 {
            tracing::warn!("{left} alerts were not sent by the {} before the end", way.name());
        }
    }
    keeping.write(true);
}

/// Sends what comes into an outbox, until the end. The settings are looked at for each notice: a reload may have changed them.
async fn send_all(state: &State, way: Way, mut ends: watch::Receiver<bool>) {
    let once = async |notice: &Notice| {
        let plan = state.plan.load_full();
        let settings = &plan.settings.alerts;
        let transport = if way == Way::Webhook { transport(settings) } else { None };
        send(way, settings, transport.as_deref(), notice, state.shared.clock.now()).await
    };
    state.alerts.outbox(way).deliver(way, once, &mut ends).await;
}

/// The looking, and what is written down of it.
struct Keeping<'a> {
    state: &'a State,
    /// The folder in which alerts are written down, if there is one.
    folder: Option<PathBuf>,
    /// The last writing: the number of alerts that had changed, and the time.
    written: Option<(u64, Timestamp)>,
    /// Whether it was said that nothing can be written.
    trouble: bool,
}

impl Keeping<'_> {
    async fn look(&mut self) {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            self.state.alerts.look(self.state);
            self.write(false);
        }
    }

    /// Writes alerts down when one has begun or ended, and the week now and then.
    fn write(&mut self, is_last: bool) {
        let now = self.state.shared.clock.now();
        let watching = self.state.alerts.watching.lock();
        let changes = watching.alerts.changes();
        let (before, at) = *self.written.get_or_insert((changes, now));
        if before == changes && now.since(at) < KEEP_EVERY && !is_last {
            return;
        }
        let text = watching.alerts.kept();
        drop(watching);
        self.written = Some((changes, now));
        let Some(folder) = &self.folder else { return };
        match kept::write(folder, &text) {
            Ok(()) => self.trouble = false,
            Err(error) if !self.trouble => {
                self.trouble = true;
                tracing::warn!("alerts cannot be written down in {}, and a restart may send them again: {error}", folder.display());
            }
            Err(_) => {}
        }
    }
}
