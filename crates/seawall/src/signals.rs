//! From the first line on the screen to the last: the server runs until a signal ends it.
//!
//! SIGTERM and the first SIGINT drain, a second SIGINT stops at once, SIGHUP reloads.

use std::{
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    time::Duration,
};

use admin::{ReloadDone, ReloadRefused};
use anyhow::Context;
use pipeline::Clock;
use tokio::{
    runtime::{Builder, LocalOptions},
    signal::unix::{SignalKind, signal},
    sync::oneshot,
};

use crate::{
    automatic, banner,
    config::{ConfigErrors, settings::Settings},
    server::Server,
};

/// The exit code of a program that a second SIGINT ended, by the shells' convention.
const INTERRUPTED: u8 = 130;

/// Serves until told to stop. `reload` reads the configuration again.
pub(crate) fn serve_until_stopped(settings: Settings, reload: impl Fn() -> Result<Settings, ConfigErrors>) -> anyhow::Result<ExitCode> {
    let origins = look_at_origins(&settings)?;
    let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("admin").enable_all().build()?;
    let mut server = Server::start(settings.clone(), Clock::system())?;
    let (stop_admin, admin_stopped) = oneshot::channel();
    let admin = start_admin(&runtime, &settings, &server, admin_stopped)?;
    banner::print(&settings, server.listening(), admin, &origins);
    if let Some(instructions) = automatic::trust(&settings) {
        banner::add(&instructions);
    }
    let mut settings = settings;
    let signals = Signals::listen(&runtime)?;
    let commands = signals.commands();
    server.accept_reloads(move || commands.reload());
    while let Signal::Reload(asker) = signals.next() {
        let outcome = match reload() {
            Err(errors) => Err(ReloadRefused::Wrong(errors.to_string())),
            Ok(new) => server.reload(new.clone()).map(|fixed| (new, fixed)).map_err(|error| ReloadRefused::Failed(format!("{error:#}"))),
        };
        let told = match outcome {
            Ok((new, fixed)) => {
                settings = new;
                tracing::info!("reloaded");
                if !fixed.is_empty() {
                    tracing::warn!("needs a restart to take effect: {}", fixed.join(", "));
                }
                Ok(ReloadDone { needs_restart: fixed.into_iter().map(str::to_owned).collect() })
            }
            Err(refused) => {
                tracing::error!("{refused}");
                Err(refused)
            }
        };
        if let Some(asker) = asker {
            // Whoever asked may have lost patience.
            let _ = asker.try_send(told);
        }
    }
    let grace = settings.server.shutdown_timeout;
    tracing::info!("stopping; requests under way have {grace:?}");
    signals.stop_at_once_on_the_next();
    server.stop(grace);
    let _ = stop_admin.send(());
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(ExitCode::SUCCESS)
}

/// On a runtime of its own: an origin's connections stay on one thread.
fn look_at_origins(settings: &Settings) -> anyhow::Result<Vec<String>> {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
    Ok(runtime.block_on(banner::look_at_origins(settings)))
}

fn start_admin(
    runtime: &tokio::runtime::Runtime,
    settings: &Settings,
    server: &Server,
    stopped: oneshot::Receiver<()>,
) -> anyhow::Result<Option<std::net::SocketAddr>> {
    let Some(address) = settings.server.admin else {
        // Purge requests may bring the token of the last start, or one that the operator has put there.
        if let Ok(token) = admin::Token::load(&settings.server.admin_token_file) {
            server.accept_purge_token(token);
        }
        return Ok(None);
    };
    let token = admin::Token::load_or_create(&settings.server.admin_token_file)?;
    server.accept_purge_token(token.clone());
    let listener = runtime.block_on(tokio::net::TcpListener::bind(address)).with_context(|| {
        format!("cannot listen on {address} for the admin API; --admin names another address, --admin off does without")
    })?;
    let address = listener.local_addr()?;
    let console = server.console();
    runtime.spawn(async move {
        let stop = async {
            let _ = stopped.await;
        };
        if let Err(error) = admin::serve(listener, console, token, stop).await {
            tracing::error!(%error, "the admin API has ended");
        }
    });
    Ok(Some(address))
}

/// A reload that was asked for is waited for this long; the admin listener ends its connections after a minute.
const RELOAD_WAIT: Duration = Duration::from_secs(50);

enum Signal {
    /// The configuration is read again, and whoever asked for it is told what came of it.
    Reload(Option<SyncSender<Result<ReloadDone, ReloadRefused>>>),
    Stop,
}

/// Sends what a signal would send.
struct Commands(SyncSender<Signal>);

impl Commands {
    fn reload(&self) -> Result<ReloadDone, ReloadRefused> {
        let (asker, answer) = sync_channel(1);
        self.0.try_send(Signal::Reload(Some(asker))).map_err(|_| ReloadRefused::Busy)?;
        answer.recv_timeout(RELOAD_WAIT).unwrap_or(Err(ReloadRefused::Busy))
    }
}

/// Signals, one after the other.
struct Signals {
    sender: SyncSender<Signal>,
    received: Receiver<Signal>,
    stopping: Arc<AtomicBool>,
}

impl Signals {
    fn listen(runtime: &tokio::runtime::Runtime) -> anyhow::Result<Self> {
        let (sender, received) = sync_channel(8);
        let own = sender.clone();
        let stopping = Arc::new(AtomicBool::new(false));
        let _context = runtime.enter();
        let mut hangup = signal(SignalKind::hangup())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let is_stopping = Arc::clone(&stopping);
        runtime.spawn(async move {
            loop {
                let signal = tokio::select! {
                    _ = hangup.recv() => Signal::Reload(None),
                    _ = terminate.recv() => Signal::Stop,
                    _ = interrupt.recv() => {
                        if is_stopping.load(Ordering::Relaxed) {
                            std::process::exit(i32::from(INTERRUPTED));
                        }
                        Signal::Stop
                    }
                };
                // A queue full of reloads needs no further one.
                let _ = sender.try_send(signal);
            }
        });
        Ok(Self { sender: own, received, stopping })
    }

    /// Makes a handle that sends what a signal would send.
    fn commands(&self) -> Commands {
        Commands(self.sender.clone())
    }

    fn next(&self) -> Signal {
        self.received.recv().unwrap_or(Signal::Stop)
    }

    fn stop_at_once_on_the_next(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }
}
