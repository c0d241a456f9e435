//! The signals of the process: SIGTERM and the first SIGINT drain, a second SIGINT stops at once, SIGHUP reloads.
//!
//! They are taken before anything else is done, so that none of them ends a start in the middle: what was asked for meanwhile is done
//! afterwards. They are a state and not a queue, so that no number of reloads keeps a stop away.

use std::{future::pending, io, process, thread};

use tokio::{
    runtime::{Builder, Runtime},
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use crate::told;

/// The exit code of a program that a second SIGINT ended, by the shells' convention.
const INTERRUPTED: u8 = 130;

/// Counts what was asked for since the start.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    reloads: u64,
    stop: bool,
}

/// The next thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    Reload,
    Stop,
}

/// The signals that come after this was made.
#[derive(Debug)]
pub(crate) struct Signals {
    asked: watch::Receiver<Asked>,
    /// Reloads that were handed out.
    reloads: u64,
}

impl Signals {
    /// Takes the signals over from the system, which would end the process.
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
        let (ask, asked) = watch::channel(Asked::default());
        let listen = async move {
            loop {
                tokio::select! {
                    _ = hangup.recv() => ask.send_modify(|asked| asked.reloads += 1),
                    _ = terminate.recv() => ask.send_modify(|asked| asked.stop = true),
                    _ = interrupt.recv() => {
                        if ask.borrow().stop {
                            told::settle();
                            process::exit(i32::from(INTERRUPTED));
                        }
                        ask.send_modify(|asked| asked.stop = true);
                    }
                }
            }
        };
        thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(listen))?;
        Ok(Self { asked, reloads: 0 })
    }

    /// Waits for the next one on this thread. Several reloads that were asked for meanwhile are one.
    pub(crate) fn next(&mut self, runtime: &Runtime) -> Signal {
        let done = self.reloads;
        let asked = runtime.block_on(async { self.asked.wait_for(|asked| asked.stop || asked.reloads > done).await.map(|asked| *asked) });
        match asked {
            Ok(asked) if !asked.stop => {
                self.reloads = asked.reloads;
                Signal::Reload
            }
            // Without the thread that listens nobody could stop it.
            Ok(_) | Err(_) => Signal::Stop,
        }
    }

    /// Resolves when the process is asked to stop.
    pub(crate) async fn stopped(&mut self) {
        if self.asked.wait_for(|asked| asked.stop).await.is_err() {
            pending().await
        }
    }
}
