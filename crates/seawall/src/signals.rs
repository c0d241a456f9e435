//! The signals of the process: SIGTERM and the first SIGINT drain, a second SIGINT stops at once, SIGHUP reloads.
//!
//! They are taken before anything else is done, so that none of them ends a start in the middle: what was asked for meanwhile is done
//! afterwards. They are a state and not a queue, so that no number of reloads keeps a stop away.

use std::{
    future::pending,
    io, process,
    sync::{
        Arc,
        mpsc::{SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use admin::{ReloadDone, ReloadRefused};
use parking_lot::Mutex;
use tokio::{
    runtime::{Builder, Runtime},
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use crate::stderr;

/// The exit code of a program that a second SIGINT ended, by the shells' convention.
const INTERRUPTED: u8 = 130;

/// The longest wait of a command for the reload that it asked for. The admin listener ends its connections after a minute.
const RELOAD_WAIT: Duration = Duration::from_secs(50);

/// The most commands that wait for a reload. Further ones are refused.
const ASKERS_MAX: usize = 64;

/// The result of a reload.
pub(crate) type Reloaded = Result<ReloadDone, ReloadRefused>;

/// Commands that wait for the result of the next reload.
type Askers = Arc<Mutex<Vec<SyncSender<Reloaded>>>>;

/// Counts of the requests to reload and to stop since the start.
#[derive(Clone, Copy, Debug, Default)]
struct SignalCounts {
    reloads: u64,
    /// The number of times that something became known that settings depend on.
    learnt: u64,
    stop: bool,
}

/// The next thing to do, as a signal asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    Reload,
    /// More is known of the servers than when the settings were made.
    Learnt,
    Stop,
}

/// Receives the signals that arrive after it was made.
#[derive(Debug)]
pub(crate) struct Signals {
    ask: watch::Sender<SignalCounts>,
    asked: watch::Receiver<SignalCounts>,
    askers: Askers,
    /// The numbers that were handed out.
    done: SignalCounts,
}

impl Signals {
    /// Takes the signals over from the system, which would otherwise end the process.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn take() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let context = runtime.enter();
        let mut hangup = signal(SignalKind::hangup())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        drop(context);
        let (ask, asked) = watch::channel(SignalCounts::default());
        let asking = ask.clone();
        let listen = async move {
            loop {
                tokio::select! {
                    _ = hangup.recv() => ask.send_modify(|asked| asked.reloads += 1),
                    _ = terminate.recv() => ask.send_modify(|asked| asked.stop = true),
                    _ = interrupt.recv() => {
                        if ask.borrow().stop {
                            stderr::settle();
                            process::exit(i32::from(INTERRUPTED));
                        }
                        ask.send_modify(|asked| asked.stop = true);
                    }
                }
            }
        };
        thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(listen))?;
        Ok(Self { ask: asking, asked, askers: Askers::default(), done: SignalCounts::default() })
    }

    /// Waits for the next signal on this thread. Several reloads that were asked for meanwhile count as one.
    pub(crate) fn next(&mut self, runtime: &Runtime) -> Signal {
        let done = self.done;
        let is_new = |asked: &SignalCounts| asked.stop || asked.reloads > done.reloads || asked.learnt > done.learnt;
        let asked = runtime.block_on(async { self.asked.wait_for(is_new).await.map(|asked| *asked) });
        match asked {
            Ok(asked) if !asked.stop => {
                // A reload takes over what became known, too.
                let next = if asked.reloads > done.reloads { Signal::Reload } else { Signal::Learnt };
                self.done = asked;
                next
            }
            // Without the thread that listens nobody could stop it.
            Ok(_) | Err(_) => Signal::Stop,
        }
    }

    /// Makes a handle with which a command asks for the same as SIGHUP.
    pub(crate) fn commands(&self) -> Commands {
        Commands { ask: self.ask.clone(), askers: Arc::clone(&self.askers) }
    }

    /// Returns those who asked for a reload that has not begun yet.
    pub(crate) fn askers(&self) -> Vec<SyncSender<Reloaded>> {
        std::mem::take(&mut *self.askers.lock())
    }

    /// Resolves when the process is asked to stop.
    pub(crate) async fn stopped(&mut self) {
        if self.asked.wait_for(|asked| asked.stop).await.is_err() {
            pending().await
        }
    }
}

/// Lets commands ask for the same as a signal, and wait for the result.
#[derive(Debug)]
pub(crate) struct Commands {
    ask: watch::Sender<SignalCounts>,
    askers: Askers,
}

impl Commands {
    /// Tells the process that more is known of the servers.
    pub(crate) fn learnt(&self) {
        self.ask.send_modify(|asked| asked.learnt += 1);
    }

    /// Asks for a reload, and blocks this thread until it is done.
    pub(crate) fn reload(&self) -> Reloaded {
        let (asker, answer) = sync_channel(1);
        {
            let mut askers = self.askers.lock();
            if askers.len() >= ASKERS_MAX {
                return Err(ReloadRefused::Busy);
            }
            askers.push(asker);
        }
        self.ask.send_modify(|asked| asked.reloads += 1);
        answer.recv_timeout(RELOAD_WAIT).unwrap_or(Err(ReloadRefused::Busy))
    }
}
