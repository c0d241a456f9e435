//! Ctrl-C: the run ends, and what it has found so far is shown. A second one ends the process at once.

use std::{
    io,
    ops::ControlFlow,
    process,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use load::{Watch, results::Second};

/// The exit code of a process that Ctrl-C has ended, as shells have it.
const INTERRUPTED: i32 = 130;

/// Ends a run when somebody types Ctrl-C.
#[derive(Debug, Clone, Default)]
pub(super) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens from now on. Without it, Ctrl-C ends the process at once.
    ///
    /// # Errors
    /// When the system has no thread for it.
    pub(super) fn listen() -> io::Result<Self> {
        let interrupt = Self::default();
        let typed = Arc::clone(&interrupt.0);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        thread::Builder::new().name("ctrl-c".to_owned()).spawn(move || {
            runtime.block_on(async {
                while tokio::signal::ctrl_c().await.is_ok() {
                    if typed.swap(true, Ordering::Relaxed) {
                        load::output::restore_terminal();
                        process::exit(INTERRUPTED);
                    }
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
