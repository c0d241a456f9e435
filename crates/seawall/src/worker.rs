//! A worker of a running server: a thread that serves until it is told to stop, and takes a new plan on its way. What workers share is
//! [`State`].

use std::{
    sync::{Arc, mpsc::SyncSender},
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::Context;
use edge::{Listener, Listeners, Socket, Worker};
use http::HeaderValue;
use pipeline::Pipeline;
use tokio::{
    runtime::{Builder, LocalOptions},
    sync::{mpsc, watch},
};

use crate::{
    access_log::AccessLog, config::settings::Settings, plan::Plan, server::State, service::SiteService, spans::Recorder,
    worker_questions::WorkerQuestion,
};

/// The number of times in a second that a worker hands on log lines that do not fill a piece.
const FLUSHES: u32 = 5;

/// The number of reloads that may wait for a worker. It takes each within microseconds.
const RELOADS: usize = 4;

/// A plan on its way to a worker, which says when it has taken it.
struct Reconfiguration {
    plan: Arc<Plan>,
    taken: SyncSender<()>,
}

/// Holds what a worker begins with.
pub(crate) struct Start {
    /// The number of the worker, from 0. The first one has tasks that are done once for all.
    pub(crate) number: usize,
    pub(crate) listeners: Vec<Listener>,
    /// Questions of the admin API.
    pub(crate) questions: mpsc::Receiver<WorkerQuestion>,
    pub(crate) plan: Arc<Plan>,
    /// Becomes the time that requests get to end.
    pub(crate) stop: watch::Receiver<Option<Duration>>,
}

/// The server's hold on a worker.
#[derive(Debug)]
pub(crate) struct WorkerHandle {
    reload: mpsc::Sender<Reconfiguration>,
    thread: JoinHandle<()>,
}

impl WorkerHandle {
    /// Starts a worker, and returns when it serves.
    ///
    /// # Errors
    /// When there can be no thread, or the worker cannot wait for connections.
    pub(crate) fn start(state: &Arc<State>, start: Start) -> anyhow::Result<Self> {
        let (reload, reloads) = mpsc::channel(RELOADS);
        let (ready, is_ready) = std::sync::mpsc::sync_channel(1);
        let state = Arc::clone(state);
        let thread = thread::Builder::new().name(format!("worker-{}", start.number)).spawn(move || {
            match Builder::new_current_thread().enable_all().build_local(LocalOptions::default()) {
                Ok(runtime) => runtime.block_on(work(state, start, reloads, ready)),
                Err(error) => drop(ready.send(Err(error.into()))),
            }
        })?;
        is_ready.recv().context("a worker ended before it began")??;
        Ok(Self { reload, thread })
    }

    /// Hands a new plan to the worker, which says by `taken` when it answers by it.
    ///
    /// # Errors
    /// When the worker has ended.
    pub(crate) fn reconfigure(&self, plan: Arc<Plan>, taken: SyncSender<()>) -> anyhow::Result<()> {
        self.reload.blocking_send(Reconfiguration { plan, taken }).context("a worker has ended")
    }

    /// Waits until the worker has ended.
    pub(crate) fn join(self) {
        let _ = self.thread.join();
    }
}

/// Lives the life of a worker, from its first listener to its last fetch.
async fn work(state: Arc<State>, start: Start, mut reloads: mpsc::Receiver<Reconfiguration>, ready: SyncSender<anyhow::Result<()>>) {
    let Start { number, listeners, mut questions, plan, stop } = start;
    let router = match plan.router() {
        Ok(router) => router,
        Err(error) => return drop(ready.send(Err(error))),
    };
    let trusted = plan.settings.server.trusted_proxies.clone();
    let pipeline = Pipeline::new(Arc::clone(&state.shared), Arc::clone(&state.counters[number]), router, trusted);
    // One worker refills for all.
    let is_first = number == 0;
    let refilling = std::rc::Rc::clone(&pipeline);
    let mut refilling = std::pin::pin!(async move { if is_first { refilling.refill().await } else { std::future::pending().await } });
    let log = state.log.clone().map(|sink| AccessLog::new(plan.settings.log.format, sink));
    let service = SiteService::new(pipeline, log, Arc::clone(&state.seeing.insight));
    service.tell_of(alt_svc(&plan.settings, &state.listening));
    service.record(Recorder::of(&plan, &state.shared.clock));
    let worker = Worker::new(service, edge_config(&plan, &state));
    let listeners = match Listeners::open(listeners) {
        Ok(listeners) => listeners,
        Err(error) => return drop(ready.send(Err(anyhow::Error::new(error).context("a worker cannot wait for connections")))),
    };
    // The plan that is in force is the state's, or a worker's copy would keep a removed site's folder watched.
    drop(plan);
    let _ = ready.send(Ok(()));

    let mut flush = tokio::time::interval(Duration::from_secs(1) / FLUSHES);
    flush.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let grace = stop.clone();
    let mut running = std::pin::pin!(std::rc::Rc::clone(&worker).run(listeners, stop));
    loop {
        tokio::select! {
            () = &mut running => break,
            _ = flush.tick() => worker.service().tidy(FLUSHES),
            Some(question) = questions.recv() => question.answer(worker.service().pipeline()),
            never = &mut refilling => match never {},
            Some(Reconfiguration { plan, taken }) = reloads.recv() => {
                match plan.router() {
                    Ok(router) => {
                        worker.service().pipeline().reconfigure(router, plan.settings.server.trusted_proxies.clone());
                        worker.service().tell_of(alt_svc(&plan.settings, &state.listening));
                        worker.service().record(Recorder::of(&plan, &state.shared.clock));
                        worker.reconfigure(edge_config(&plan, &state));
                    }
                    Err(error) => tracing::error!("a worker keeps its old configuration: {error:#}"),
                }
                let _ = taken.send(());
            },
        }
    }
    let tasks = worker.service().pipeline().tasks();
    tasks.close();
    let grace = grace.borrow().unwrap_or_default();
    if tokio::time::timeout(grace, tasks.wait()).await.is_err() {
        tracing::debug!("gave up fetches that nobody waited for");
    }
    worker.service().tidy(FLUSHES);
}

fn edge_config(plan: &Plan, state: &State) -> edge::Config {
    edge::Config {
        limits: plan.settings.limits.clone(),
        gauges: Arc::clone(&state.gauges),
        trusted_proxies: plan.settings.server.trusted_proxies.clone(),
        tls: Some(state.tls.clone()),
        h2c: plan.settings.server.h2c,
    }
}

/// Returns the value of `Alt-Svc` (RFC 7838 §3), if HTTP/3 is on.
fn alt_svc(settings: &Settings, listening: &[Socket]) -> Option<HeaderValue> {
    let http3 = settings.http3()?;
    let own = listening.iter().find_map(|socket| if let Socket::Quic(address) = socket { Some(address.port()) } else { None })?;
    HeaderValue::from_str(&format!("h3=\":{}\"; ma=86400", http3.port.unwrap_or(own))).ok()
}
