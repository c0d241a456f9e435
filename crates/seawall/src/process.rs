//! The life of the process: from the first line on the screen to the last, until a signal ends it.

use std::{net::TcpListener, process::ExitCode, time::Duration};

use admin::{ReloadDone, ReloadRefused};
use edge::{BindError, Socket};
use pipeline::Clock;
use tokio::{
    runtime::{Builder, LocalOptions, Runtime},
    sync::oneshot,
};

use crate::{
    automatic,
    banner::{self, Banner},
    config::{ConfigErrors, settings::Settings},
    passed::PassedSockets,
    server::Server,
    signals::{Signal, Signals},
    systemd::ServiceManager,
    try_next::Reach,
};

/// Serves until the process is told to stop. `reload` reads the configuration again.
///
/// Everything that can fail is done before the first visitor is let in: a start serves, or it fails.
pub(crate) fn serve_until_stopped(
    mut signals: Signals,
    mut passed: PassedSockets,
    mut settings: Settings,
    reach: &Reach,
    reload: impl Fn() -> Result<Settings, ConfigErrors>,
) -> anyhow::Result<ExitCode> {
    let manager = ServiceManager::from_env();
    let adopted = passed.adopt(&settings)?;
    adopted.add_to(&mut settings);
    let Some(origins) = look_at_origins(&settings, &mut signals)? else { return Ok(ExitCode::SUCCESS) };
    let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("admin").enable_all().build()?;
    let admin = Admin::open(&settings, &mut passed)?;
    let mut server = Server::start_with(settings.clone(), Clock::system(), passed)?;
    let (stop_admin, admin_stopped) = oneshot::channel();
    let admin = admin.serve(&runtime, &server, admin_stopped)?;
    banner::print(&Banner { settings: &settings, server: &server, origins: &origins, admin, reach });
    if let Some(instructions) = automatic::trust(&settings) {
        banner::add(&instructions);
    }
    manager.ready(&banner::status(&server));
    let commands = signals.commands();
    server.accept_reloads(move || commands.reload());
    while signals.next(&runtime) == Signal::Reload {
        manager.reloading();
        let askers = signals.askers();
        let mut status = banner::status(&server);
        let reloaded = match reload() {
            Err(errors) => {
                server.reopen_log();
                "the new configuration is wrong, and the old one in force".clone_into(&mut status);
                Err(ReloadRefused::Wrong(errors.to_string()))
            }
            Ok(mut new) => {
                adopted.add_to(&mut new);
                match server.reload(new.clone()) {
                    Err(error) => {
                        "the new configuration cannot be used, and the old one is in force".clone_into(&mut status);
                        Err(ReloadRefused::Failed(format!("{error:#}")))
                    }
                    Ok(fixed) => {
                        settings = new;
                        Ok(ReloadDone { needs_restart: fixed.into_iter().map(str::to_owned).collect() })
                    }
                }
            }
        };
        match &reloaded {
            Ok(ReloadDone { needs_restart }) => {
                tracing::info!("reloaded");
                if !needs_restart.is_empty() {
                    tracing::warn!("these changes need a restart: {}", needs_restart.join(", "));
                }
            }
            Err(refused) => tracing::error!("{refused}"),
        }
        for asker in askers {
            // Whoever asked may have lost patience.
            let _ = asker.try_send(reloaded.clone());
        }
        manager.ready(&status);
    }
    let grace = settings.server.shutdown_timeout;
    manager.stopping(grace);
    tracing::info!("stopping; requests under way may take {grace:?}");
    server.stop(grace);
    let _ = stop_admin.send(());
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(ExitCode::SUCCESS)
}

/// Asks the origins what they are. Returns `None` if the process was asked to stop meanwhile. It uses a runtime of its own, because the
/// connections of an origin stay on one thread.
fn look_at_origins(settings: &Settings, signals: &mut Signals) -> anyhow::Result<Option<Vec<String>>> {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
    Ok(runtime.block_on(async {
        tokio::select! {
            found = banner::look_at_origins(settings) => Some(found),
            () = signals.stopped() => None,
        }
    }))
}

/// The admin API before it serves.
enum Admin {
    Listening(TcpListener, admin::Token),
    /// The API is off. Purge requests may carry the token of the last start, or one that the operator has put there.
    Off(Option<admin::Token>),
}

impl Admin {
    /// Reads the token and listens.
    fn open(settings: &Settings, passed: &mut PassedSockets) -> anyhow::Result<Self> {
        let Some(address) = settings.server.admin else {
            return Ok(Self::Off(admin::Token::load(&settings.server.admin_token_file).ok()));
        };
        let token = admin::Token::load_or_create(&settings.server.admin_token_file)?;
        let listener = match passed.take_admin(address) {
            Some(listener) => listener,
            None => TcpListener::bind(address).map_err(|source| {
                let error = BindError { socket: Socket::Tcp(address), source };
                let remedy = "That is the address of the admin API: --admin names another one, --admin off does without.";
                let said = format!("{error}\n  {remedy}");
                anyhow::Error::new(error.source).context(said)
            })?,
        };
        listener.set_nonblocking(true)?;
        Ok(Self::Listening(listener, token))
    }

    /// Serves the API on `runtime`, and returns its address.
    fn serve(self, runtime: &Runtime, server: &Server, stopped: oneshot::Receiver<()>) -> anyhow::Result<Option<std::net::SocketAddr>> {
        let (listener, token) = match self {
            Self::Listening(listener, token) => (listener, token),
            Self::Off(token) => {
                if let Some(token) = token {
                    server.accept_purge_token(token);
                }
                return Ok(None);
            }
        };
        server.accept_purge_token(token.clone());
        let address = listener.local_addr()?;
        let listener = {
            let _context = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
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
}
