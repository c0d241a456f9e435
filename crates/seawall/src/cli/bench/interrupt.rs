//! Signals that end a run: Ctrl-C, SIGTERM, SIGHUP. The run ends, and what it has found so far is shown. A second signal ends the process at once.

use std::{
    fs,
    future::pending,
    io,
    ops::ControlFlow,
    process,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use load::{Watch, results::Second};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::sleep,
};

/// What the exit code of a process that a signal has ended is above the number of the signal, as shells have it.
const BY_SIGNAL: i32 = 128;

/// How long after the first signal another one still belongs to it: `timeout` sends its signal to the process, and again to the whole group.
const SAME: Duration = Duration::from_millis(250);

/// Ends a run when somebody types Ctrl-C, or a signal asks the process to end.
#[derive(Debug, Clone, Default)]
pub(super) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens from now on. Without it, a signal ends the process at once.
    ///
    /// # Errors
    /// When the system has no thread for it, or takes no handler.
    pub(super) fn listen() -> io::Result<Self> {
        let interrupt = Self::default();
        let typed = Arc::clone(&interrupt.0);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        // `nohup` has the process ignore SIGHUP: that stays.
        let hears_hangup = !is_ignored(&fs::read_to_string("/proc/self/status").unwrap_or_default(), SignalKind::hangup());
        // A signal may come as soon as this returns: the first handlers are there before.
        let mut first = Some({
            let _context = runtime.enter();
            Signals::listen(hears_hangup)?
        });
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            runtime.block_on(async {
                loop {
                    // New ones have not seen a signal that came twice.
                    let Some(mut signals) = first.take().or_else(|| Signals::listen(hears_hangup).ok()) else { return };
                    let Some(kind) = signals.next().await else { return };
                    if typed.swap(true, Ordering::Relaxed) {
                        load::output::restore_terminal();
                        process::exit(BY_SIGNAL + kind.as_raw_value());
                    }
                    sleep(SAME).await;
                }
            });
        })?;
        Ok(interrupt)
    }

    /// Whether somebody has typed it.
    pub(super) fn was_typed(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Watch for Interrupt {
    fn second(&mut self, _: &Second) -> ControlFlow<()> {
        if self.was_typed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn stops(&mut self) -> bool {
        self.was_typed()
    }
}

/// The signals that end a run.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
}

impl Signals {
    fn listen(hears_hangup: bool) -> io::Result<Self> {
        let hangup = if hears_hangup { Some(signal(SignalKind::hangup())?) } else { None };
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())?, hangup })
    }

    /// Waits for the next one. None: none can come any more.
    async fn next(&mut self) -> Option<SignalKind> {
        let Self { interrupt, terminate, hangup } = self;
        let hung_up = async {
            match hangup {
                Some(hangup) => hangup.recv().await,
                None => pending().await,
            }
        };
        tokio::select! {
            come = interrupt.recv() => come.map(|()| SignalKind::interrupt()),
            come = terminate.recv() => come.map(|()| SignalKind::terminate()),
            come = hung_up => come.map(|()| SignalKind::hangup()),
        }
    }
}

/// Whether a process ignores a signal, by what the system says of the process.
fn is_ignored(status: &str, kind: SignalKind) -> bool {
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok()).unwrap_or_default();
    mask >> (kind.as_raw_value() - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_under_nohup_ignores_that_its_terminal_hangs_up() {
        // Bit 0 is signal 1, SIGHUP (proc_pid_status(5)); bit 12 is SIGPIPE.
        let status = "Name:\tseawall\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000002\n";
        assert!(is_ignored(status, SignalKind::hangup()));
        assert!(!is_ignored(status, SignalKind::terminate()) && !is_ignored("", SignalKind::hangup()));
    }
}
