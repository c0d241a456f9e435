//! The commands, each one a short story.

use std::{
    fs,
    io::{self, Write},
    panic,
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, bail};
use clap::{CommandFactory, Parser};
use tracing::Level;

use crate::{
    admin_client::{AdminClient, AdminError},
    automatic, certificate_list,
    check::Checked,
    cli::{
        Access, CertificateAction, Certificates, Check, Cli, Command, Completions, Explain, Health, Help, New, Purge, Reload, Serve,
        Status, Warm,
    },
    config::{self, ConfigErrors},
    explain, manual,
    passed::PassedSockets,
    process, purge,
    signals::Signals,
    status,
    terminal::has_colour,
    told,
    try_next::Reach,
    warm,
};

/// One that takes longer is not well. Shorter than what Docker and systemd wait.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(3);

/// A large blog takes a while to be read again; the server waits a little less.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs what was typed. Exit code 0: done; 1: it could not be done, and the reason is on standard error; 2: it was mistyped.
#[must_use]
pub fn run() -> ExitCode {
    // Before anything else: until then a signal would end the process. Other commands are ended by signals, as is usual.
    let taken = std::env::args_os().nth(1).is_some_and(|command| command == "serve").then(Taken::take);
    let cli = Cli::of_the_process();
    start_diagnostics();
    panic::set_hook(Box::new(told::panicked));
    let done = match cli.command {
        Command::Serve(serve) => self::serve(&serve, taken.unwrap_or_else(Taken::take)),
        Command::Check(check) => self::check(&check),
        Command::New(new) => self::new(&new),
        Command::Purge(purge) => self::purge(&purge),
        Command::Explain(explain) => self::explain(&explain),
        Command::Warm(warm) => self::warm(&warm),
        Command::Certificates(certificates) => self::certificates(&certificates),
        Command::Status(status) => self::status(&status),
        Command::Reload(reload) => self::reload(&reload),
        Command::Health(health) => self::health(&health),
        Command::Manual => say(&manual::page()).map(|()| ExitCode::SUCCESS).map_err(Into::into),
        Command::Completions(completions) => self::completions(&completions),
        Command::Help(help) => self::help(&help),
    };
    let code = done.unwrap_or_else(|error| {
        complain(&error);
        ExitCode::FAILURE
    });
    told::settle();
    code
}

/// The sockets and signals that a server takes over from whoever started it.
struct Taken {
    passed: anyhow::Result<PassedSockets>,
    signals: io::Result<Signals>,
}

impl Taken {
    /// Takes the sockets first: that changes the environment, which no other thread may read meanwhile.
    fn take() -> Self {
        let passed = PassedSockets::from_env();
        Self { passed, signals: Signals::take() }
    }
}

fn serve(serve: &Serve, taken: Taken) -> anyhow::Result<ExitCode> {
    let (passed, signals) = (taken.passed?, taken.signals?);
    let settings = match config::load(serve, env) {
        Ok(settings) => settings,
        Err(errors) => return Ok(show(&errors)),
    };
    let reach = Reach::new(serve, env);
    process::serve_until_stopped(signals, passed, settings, &reach, || config::load(serve, env))
}

/// What certificates depend on; in the environment of `seawall serve`, which decides where they are kept.
fn check_acme(check: &Check) -> anyhow::Result<ExitCode> {
    let mut serve = check.serve.clone();
    if serve.config.is_none() && serve.source.is_none() && !serve.domain.is_empty() {
        // What is served is of no matter here.
        serve.source = Some("http://127.0.0.1".to_owned());
    }
    let settings = match config::load(&serve, env) {
        Ok(settings) => settings,
        Err(errors) => return Ok(show(&errors)),
    };
    let (text, is_well) = automatic::check(&settings)?;
    say(&text)?;
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn check(check: &Check) -> anyhow::Result<ExitCode> {
    if check.acme {
        return check_acme(check);
    }
    let settings = match config::load(&check.serve, env) {
        Ok(settings) => settings,
        Err(errors) => return Ok(show(&errors)),
    };
    let Checked { text, faults } = crate::check::check(&name_of(&check.serve), &settings);
    for fault in &faults {
        told::tell(Level::ERROR, &format!("error: {fault}\n"));
    }
    say(&text)?;
    Ok(if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Names what was read: the source, or else the file.
fn name_of(serve: &Serve) -> String {
    let said = |value: Option<String>, variable: &str| value.or_else(|| env(variable).filter(|value| !value.is_empty()));
    said(serve.source.clone(), "SEAWALL_SOURCE")
        .or_else(|| said(serve.config.as_ref().map(|path| path.display().to_string()), "SEAWALL_CONFIG"))
        .unwrap_or_else(|| config::DEFAULT_FILE.to_owned())
}

fn status(status: &Status) -> anyhow::Result<ExitCode> {
    let client = match admin_client(&status.access)? {
        Ok(client) => client,
        Err(errors) => return Ok(show(&errors)),
    };
    if status.json {
        say(&format!("{}\n", serde_json::to_string_pretty(&status::json(&client)?)?))?;
    } else {
        say(&status::text(&client, has_colour(&io::stdout()))?)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn reload(reload: &Reload) -> anyhow::Result<ExitCode> {
    let client = match admin_client(&reload.access)? {
        Ok(client) => client.within(RELOAD_TIMEOUT),
        Err(errors) => return Ok(show(&errors)),
    };
    match client.post::<admin::ReloadDone>("/reload", "") {
        Ok(done) if done.needs_restart.is_empty() => say("Reloaded.\n")?,
        Ok(done) => say(&format!("Reloaded. Needs a restart to take effect: {}.\n", done.needs_restart.join(", ")))?,
        // What is wrong has lines of its own.
        Err(AdminError::Refused { error, remedy, .. }) => {
            told::tell(Level::ERROR, &format!("error: {}\n  {remedy}\n", error.trim_end()));
            return Ok(ExitCode::FAILURE);
        }
        Err(error) => return Err(error.into()),
    }
    Ok(ExitCode::SUCCESS)
}

fn completions(completions: &Completions) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(completions.shell, &mut Cli::command(), "seawall", &mut script);
    io::stdout().lock().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// The help of a command, or of a command's command.
fn help(help: &Help) -> anyhow::Result<ExitCode> {
    let mut command = Cli::command();
    command.build();
    let mut found = &mut command;
    for name in &help.command {
        if found.find_subcommand(name).is_none() {
            // With a guess at what was meant.
            Cli::parse_from(["seawall"].into_iter().map(str::to_owned).chain(help.command.iter().cloned()));
            bail!("there is no command \"{}\"\n  `seawall help` lists them.", help.command.join(" "));
        }
        found = found.find_subcommand_mut(name).expect("it was found a moment ago");
    }
    // As `seawall` alone and `seawall COMMAND --help` have it.
    let text = if help.command.is_empty() { found.render_help() } else { found.render_long_help() };
    if has_colour(&io::stdout()) {
        say(&text.ansi().to_string())?
    } else {
        say(&text.to_string())?
    }
    Ok(ExitCode::SUCCESS)
}

fn new(new: &New) -> anyhow::Result<ExitCode> {
    let folder = &new.folder;
    if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        bail!("{} is not empty\n  Nothing was written. Name a folder that does not exist yet.", folder.display());
    }
    for (name, content) in blog::starter() {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        }
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let folder = folder.display();
    confirm(&format!(
        "Wrote a blog to {folder}.\n\n  seawall serve {folder}    serve it: http://127.0.0.1:8080\n\nEdit a post while it runs: the next request shows it.\n"
    ));
    Ok(ExitCode::SUCCESS)
}

fn purge(purge: &Purge) -> anyhow::Result<ExitCode> {
    let access = match config::admin_access(&purge.access, env) {
        Ok(access) => access,
        Err(errors) => return Ok(show(&errors)),
    };
    let token = admin::Token::load(&access.token_file)?;
    let said = purge::run(access.address, token.as_str(), &purge.what(), purge.is_hard())?;
    confirm(&format!("{said}\n"));
    Ok(ExitCode::SUCCESS)
}

fn explain(explain: &Explain) -> anyhow::Result<ExitCode> {
    let client = match admin_client(&explain.access)? {
        Ok(client) => client,
        Err(errors) => return Ok(show(&errors)),
    };
    let command = explain::command(&explain.url, &explain.method, &explain.fields).map_err(anyhow::Error::msg)?;
    let explanation = explain::run(&client, &command)?;
    if explain.json {
        say(&format!("{}\n", serde_json::to_string_pretty(&explanation)?))?;
    } else {
        say(&explain::text(&explanation, has_colour(&io::stdout())))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn warm(warm: &Warm) -> anyhow::Result<ExitCode> {
    let client = match admin_client(&warm.access)? {
        Ok(client) => client,
        Err(errors) => return Ok(show(&errors)),
    };
    let options = warm::Options {
        urls: warm.urls.clone(),
        sitemaps: warm.sitemap.clone(),
        stored: warm.stored,
        host: warm.host.clone(),
        concurrency: usize::from(warm.concurrency),
        rate: warm.rate,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut progress = warm::Screen::new();
    let summary = runtime.block_on(warm::warm(&client, &options, &mut progress, async {
        // Without the signal, Ctrl-C ends the process at once: nothing is lost but the summary.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }))?;
    progress.end();
    say(&format!("\n{}", summary.table(has_colour(&io::stdout()))))?;
    Ok(if summary.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn certificates(certificates: &Certificates) -> anyhow::Result<ExitCode> {
    let access = match &certificates.action {
        Some(CertificateAction::Revoke { access, .. }) => access,
        None => &certificates.access,
    };
    let client = match admin_client(access)? {
        Ok(client) => client,
        Err(errors) => return Ok(show(&errors)),
    };
    match &certificates.action {
        Some(CertificateAction::Revoke { name, .. }) => confirm(&certificate_list::revoke(client, name)?),
        None if certificates.json => {
            let all: serde_json::Value = client.get("/certificates")?;
            say(&format!("{}\n", serde_json::to_string_pretty(&all)?))?;
        }
        None => say(&certificate_list::list(&client)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// For containers and monitors: they look at the exit code.
fn health(health: &Health) -> anyhow::Result<ExitCode> {
    let client = match admin_client(&health.access)? {
        Ok(client) => client.within(HEALTH_TIMEOUT),
        Err(errors) => return Ok(show(&errors)),
    };
    let ready = client.is_ready()?;
    confirm(if ready { "ok\n" } else { "draining\n" });
    Ok(if ready { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The admin API of the running server; or what is wrong with the configuration that should say where it is.
fn admin_client(access: &Access) -> anyhow::Result<Result<AdminClient, ConfigErrors>> {
    let access = match config::admin_access(access, env) {
        Ok(access) => access,
        Err(errors) => return Ok(Err(errors)),
    };
    let token = admin::Token::load(&access.token_file)?;
    Ok(Ok(AdminClient::new(access.address, token.as_str())?))
}

fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// What is written unless told otherwise. The library that speaks HTTP/2 warns of what any stranger may send.
const DIAGNOSTICS: &str = "info,h2=error";

/// Diagnostics go to standard error, so that the access log may have standard output. `SEAWALL_LOG` chooses how much.
fn start_diagnostics() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("SEAWALL_LOG").unwrap_or_else(|_| DIAGNOSTICS.into());
    let messages = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(told::Told)
        .with_ansi(told::is_terminal())
        .with_target(false)
        // It would tell its own troubles on standard error, and panic where that is gone.
        .log_internal_errors(false);
    if told::is_journal() {
        messages.without_time().init();
    } else {
        messages.init();
    }
}

/// Writes what was asked for. A reader that has seen enough (`| head`) is no failure.
fn say(text: &str) -> io::Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Confirms what was done. It is done, whether or not anybody reads this.
fn confirm(text: &str) {
    let _ = io::stdout().lock().write_all(text.as_bytes());
}

fn show(errors: &ConfigErrors) -> ExitCode {
    told::tell(Level::ERROR, &errors.render(told::is_terminal()));
    ExitCode::FAILURE
}

/// Every layer of an error on a line of its own.
fn complain(error: &anyhow::Error) {
    let mut text = format!("error: {error}\n");
    for cause in error.chain().skip(1) {
        text.push_str(&format!("  because: {cause}\n"));
    }
    told::tell(Level::ERROR, &text);
}
