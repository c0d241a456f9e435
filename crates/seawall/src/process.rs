//! The life of the process: from the first line on the screen to the last, until a signal ends it.

use std::{net::TcpListener, process::ExitCode, time::Duration};

use admin::{ReloadDone, ReloadRefused};
use edge::{BindError, Socket};
use pipeline::Clock;
use policy::purge::{Maker, Order, What};
use store::DiskState;
use tokio::{
    runtime::{Builder, LocalOptions, Runtime},
    sync::oneshot,
};

use crate::{
    automatic,
    banner::{self, Banner},
    cli::{Serve, env},
    config::{
        self, ConfigErrors, ConfigFile,
        settings::{Settings, Site},
    },
    passed::{Adopted, PassedSockets},
    recognition::{Finding, Findings, Question, Software, ask, keeper::SharedFindings, memory, software},
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
    mut configuration: Configuration,
    reach: &Reach,
) -> anyhow::Result<ExitCode> {
    let mut settings = configuration.settings()?;
    let manager = ServiceManager::from_env();
    let adopted = passed.adopt(&settings)?;
    let remembered = configuration.remember(&settings);
    if ask_servers(&settings, &configuration, &mut signals)?.is_none() {
        return Ok(ExitCode::SUCCESS);
    }
    settings = configuration.settings()?;
    adopted.add_to(&mut settings);
    let Some(origins) = look_at_origins(&settings, &mut signals)? else { return Ok(ExitCode::SUCCESS) };
    let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("admin").enable_all().build()?;
    let admin = Admin::open(&settings, &mut passed)?;
    let mut server = Server::start_with(settings.clone(), Clock::system(), passed)?;
    purge_upgraded(&server, &settings, &remembered);
    configuration.write_down(&settings, &server);
    let (stop_admin, admin_stopped) = oneshot::channel();
    let admin = admin.serve(&runtime, &server, admin_stopped)?;
    banner::print(&Banner { settings: &settings, server: &server, origins: &origins, admin, reach });
    if let Some(instructions) = automatic::trust(&settings) {
        banner::add(&instructions);
    }
    manager.ready(&banner::status(&server));
    server.keep_watching()?;
    let commands = signals.commands();
    server.accept_reloads(move || commands.reload());
    if settings.sites.iter().any(Site::has_server) {
        let commands = signals.commands();
        server.keep_recognising(configuration.known(), move || commands.learnt())?;
    }
    loop {
        match signals.next(&runtime) {
            Signal::Stop => break,
            Signal::Reload => {}
            Signal::Learnt => {
                take_over(&configuration, &adopted, &mut server, &mut settings);
                continue;
            }
        }
        manager.reloading();
        let askers = signals.askers();
        let mut status = banner::status(&server);
        let reloaded = match configuration.read_again() {
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
                        configuration.write_down(&settings, &server);
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

/// Takes over what has become known of the servers: the file is not read again, as nobody has asked for that.
fn take_over(configuration: &Configuration, adopted: &Adopted, server: &mut Server, settings: &mut Settings) {
    configuration.write_down(settings, server);
    let mut new = match configuration.settings() {
        Ok(new) => new,
        Err(errors) => return tracing::error!("what is known of the servers now cannot be taken over: {errors}"),
    };
    adopted.add_to(&mut new);
    if new == *settings {
        return;
    }
    match server.reload(new.clone()) {
        Ok(_) => {
            *settings = new;
            for site in &settings.sites {
                let mut lines = banner::of_software(site, settings, server.listening()).into_iter();
                lines.next().into_iter().for_each(|line| tracing::info!(site = site.name, "{line}"));
                lines.for_each(|line| tracing::warn!(site = site.name, "{line}"));
            }
        }
        Err(error) => tracing::error!("what is known of the servers now cannot be taken over: {error:#}"),
    }
}

/// Purges what is stored of sites whose software was of another version when it was seen last: it may make other pages of the same posts.
fn purge_upgraded(server: &Server, settings: &Settings, remembered: &Findings) {
    for site in &settings.sites {
        let before = Question::of(site).map(|question| remembered.of(&question));
        let before = before.as_ref().and_then(|before| before.of_kind(site.kind)).and_then(Software::version);
        let now = software(site).and_then(Software::version);
        if before.is_some() && now.is_some() && before != now {
            let order = Order::for_site(&site.name, vec![What::Everything], false, Maker::Watch);
            if let Err(why) = server.purge(&order) {
                tracing::warn!(site = site.name, %why, "what was stored before the upgrade still counts as fresh");
            }
        }
    }
}

/// Asks the servers what they are, as far as settings depend on it. Returns `None` if the process was asked to stop meanwhile.
fn ask_servers(settings: &Settings, configuration: &Configuration, signals: &mut Signals) -> anyhow::Result<Option<()>> {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
    let known = configuration.known();
    Ok(runtime.block_on(async {
        tokio::select! {
            () = ask::ask_all(settings, &known, |_| true) => Some(()),
            () = signals.stopped() => None,
        }
    }))
}

/// Holds what settings are made of: flags, environment, the file as it was read, and what is known of the servers.
pub(crate) struct Configuration {
    serve: Serve,
    written: ConfigFile,
    known: SharedFindings,
}

impl Configuration {
    /// Reads the file.
    pub(crate) fn read(serve: Serve) -> Self {
        let written = config::read(&serve, env);
        Self { serve, written, known: SharedFindings::default() }
    }

    /// Makes settings of it.
    fn settings(&self) -> Result<Settings, ConfigErrors> {
        config::resolve(&self.written, &self.serve, env, &self.known.lock())
    }

    /// Reads the file again, and makes settings of it. Servers that are new are asked first. If anything is wrong, it stays as it was.
    fn read_again(&mut self) -> Result<Settings, ConfigErrors> {
        let written = config::read(&self.serve, env);
        let make = || config::resolve(&written, &self.serve, env, &self.known.lock());
        let first = make()?;
        // Without a runtime nothing can be asked, and nobody would be served either.
        if let Ok(runtime) = Builder::new_current_thread().enable_all().build_local(LocalOptions::default()) {
            runtime.block_on(ask::ask_all(&first, &self.known, |finding| *finding == Finding::Unasked));
        }
        let settings = make()?;
        self.written = written;
        Ok(settings)
    }

    fn known(&self) -> SharedFindings {
        SharedFindings::clone(&self.known)
    }

    /// Takes what is remembered of the servers, and returns it.
    fn remember(&self, settings: &Settings) -> Findings {
        let remembered = settings.disk_tier().map(|(dir, _)| memory::read(dir)).unwrap_or_default();
        self.known.lock().clone_from(&remembered);
        remembered
    }

    /// Writes down what is known of the servers, if there is a folder of stored responses that is ours.
    fn write_down(&self, settings: &Settings, server: &Server) {
        self.known.lock().keep_for(settings);
        let Some((dir, _)) = settings.disk_tier().filter(|_| server.usage().disk != DiskState::Off) else { return };
        if let Err(error) = memory::write(dir, &self.known.lock()) {
            tracing::warn!("what the servers are cannot be written down in {}: {error}", dir.display());
        }
    }
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
        server.warm_by(address, token.clone());
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
