//! What is said at the start: what was found, where it is served, what to try next.

use std::{fmt::Write, net::SocketAddr, time::Duration};

use edge::Socket;
use futures_util::future::join_all;
use origins::{
    http::probe,
    server::{Address, tls_config},
};
use store::DiskState;
use tracing::Level;

use crate::{
    cli::route_line,
    config::settings::{AccessLog, Kind, OriginAddress, OriginHost, PhpSettings, Settings, Site, Source},
    recognition::{Finding, keeper::remedy, leads_past, sends_to_https},
    server::Server,
    told,
    try_next::{self, Reach, local},
};

/// The longest wait at the start for an origin to say what it is.
const LOOK: Duration = Duration::from_secs(3);

/// How the line begins about a server whose pages say that it is a Ghost, while it does not answer as one.
const CALLS_ITSELF: &str = "calls itself ";

/// Asks every site's origin what it is. The start goes on without those that do not answer.
pub(crate) async fn look_at_origins(settings: &Settings) -> Vec<String> {
    join_all(settings.sites.iter().map(look)).await
}

/// Says what follows from a site's being a Ghost, a line each: how it is kept, and what is to be set if its url leads past Seawall.
pub(crate) fn of_ghost(site: &Site, settings: &Settings, listening: &[Socket]) -> Vec<String> {
    if site.kind != Kind::Ghost {
        return Vec::new();
    }
    let what = match &site.finding {
        Finding::Ghost { site: ghost, remembered: false } => ghost.to_string(),
        Finding::Ghost { site: ghost, remembered: true } => format!("does not answer yet; when it did, it was {ghost}"),
        Finding::Silent(why) => format!("does not answer yet: {why}; taken for a Ghost, as you say"),
        Finding::Other(what) => format!("taken for a Ghost, as you say, but it does not answer as one: {what}"),
        Finding::Unasked => "a Ghost, as you say".to_owned(),
    };
    let kept = match &site.finding {
        Finding::Other(_) => "pages are kept for a day at most, and nothing will say that they changed",
        _ => "pages are kept until Ghost says that they changed",
    };
    let mut lines = vec![format!("{what}: {kept}; members and staff go to Ghost")];
    lines.extend(sends_to_https(site, settings).map(str::to_owned));
    if let Some(why) = leads_past(site, listening) {
        lines.push(format!("{why}: the admin, the scheduler and links then bypass Seawall, which cannot see when something changes"));
        lines.push(remedy(site, settings, listening));
    }
    lines
}

/// Says why a server is not kept as a Ghost, and how to change that. A Ghost that is away must not be taken for any server in silence, nor an
/// export that says "Ghost" for a Ghost.
fn not_ghost(site: &Site, found: &str) -> Option<String> {
    let is_decided = site.kind_is_given || site.kind != Kind::Generic;
    match &site.finding {
        // It was said with what it calls itself.
        Finding::Other(_) if found.starts_with(CALLS_ITSELF) => None,
        Finding::Other(what) if !is_decided => Some(format!("not a Ghost, as {what} (--kind ghost if it is one)")),
        Finding::Silent(_) if !is_decided => Some("if it is a Ghost, Seawall will see it as soon as it answers".to_owned()),
        _ => None,
    }
}

async fn look(site: &Site) -> String {
    if let Some(php) = &site.php {
        return php_line(php);
    }
    let Source::Http(addresses) = &site.source else {
        return String::new();
    };
    match &site.finding {
        // It was asked already, and what it says is more than its pages do.
        _ if site.kind == Kind::Ghost => return String::new(),
        Finding::Silent(why) => return format!("does not answer yet: {why}"),
        _ => {}
    }
    let Some(first) = addresses.first() else { return String::new() };
    let (Ok(address), Ok(tls)) = (first.to_string().parse::<Address>(), tls_config(site.origin.ca_file.as_deref())) else {
        return String::new();
    };
    let host = match &site.origin.host {
        OriginHost::Name(name) => Some(name.as_str()),
        OriginHost::Client => site.hosts.first().map(String::as_str).filter(|host| !host.starts_with('*')),
        OriginHost::Origin => None,
    };
    match tokio::time::timeout(LOOK, probe(&address, host, &tls)).await {
        Ok(Ok(probe)) => {
            if let (Some(generator), Finding::Other(what)) =
                (probe.generator.as_ref().filter(|generator| generator.starts_with("Ghost")), &site.finding)
            {
                return format!("{CALLS_ITSELF}\"{generator}\", but {what}: not taken for a Ghost (--kind ghost if it is one)");
            }
            let what = probe.generator.or(probe.server).map(|what| format!("{what}, ")).unwrap_or_default();
            format!("{what}answers {}", probe.status.as_u16())
        }
        Ok(Err(error)) => format!("does not answer yet: {error}"),
        Err(_) => format!("does not answer within {} s yet", LOOK.as_secs()),
    }
}

/// Says where PHP runs, and whether there is something.
fn php_line(php: &PhpSettings) -> String {
    let found = if php.is_found { ", found there" } else { "" };
    let missing = matches!(&php.server, OriginAddress::Unix(socket) if !socket.exists());
    let missing = if missing { ", which is not there yet" } else { "" };
    format!("PHP runs at {}{found}{missing}", php.address())
}

/// The outcome of a start, to be printed.
#[derive(Debug)]
pub(crate) struct Banner<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) server: &'a Server,
    /// A description of the origin of each site.
    pub(crate) origins: &'a [String],
    /// The address of the admin API.
    pub(crate) admin: Option<SocketAddr>,
    pub(crate) reach: &'a Reach,
}

/// Prints the banner of a start.
pub(crate) fn print(banner: &Banner<'_>) {
    let Banner { settings, server, origins, admin, reach } = banner;
    let listening = server.listening();
    let mut text = format!("\nSeawall {}\n\n", env!("CARGO_PKG_VERSION"));
    for (site, found) in settings.sites.iter().zip(*origins) {
        line(&mut text, "site", &site_line(site));
        let more = of_ghost(site, settings, listening).into_iter().chain(not_ghost(site, found));
        for found in Some((*found).clone()).filter(|found| !found.is_empty()).into_iter().chain(more) {
            line(&mut text, "", &found);
        }
        for route in &site.routes {
            line(&mut text, "route", &route_line(route));
        }
        if let Some(there) = site.redirect_to().filter(|_| !site.redirect_from.is_empty()) {
            line(&mut text, "redirect", &format!("{} -> {there}", site.redirect_from.join(", ")));
        }
    }
    for socket in listening {
        line(&mut text, "listening", &place(socket));
    }
    if let Some(admin) = admin {
        line(&mut text, "admin", &format!("http://{}/metrics", local(*admin)));
    }
    line(&mut text, "memory", &format!("{} MiB for stored pages", settings.cache_memory >> 20));
    if let Some(disk) = disk(settings, server.usage().disk) {
        line(&mut text, "disk", &disk);
    }
    line(&mut text, "workers", &settings.server.workers.to_string());
    match &settings.log.access {
        AccessLog::Off => {}
        AccessLog::Stdout => line(&mut text, "log", "standard output"),
        AccessLog::File(path) => line(&mut text, "log", &path.display().to_string()),
    }
    let suggestions = try_next::suggestions(settings, listening, *admin, reach, &|name| server.is_certified(name));
    if !suggestions.is_empty() {
        text.push_str("\nTry next:\n");
    }
    for (why, command) in suggestions {
        let _ = writeln!(text, "  {why}:\n    {command}");
    }
    told::tell(Level::INFO, &format!("{text}\n"));
}

/// Returns one line that says where Seawall serves.
pub(crate) fn status(server: &Server) -> String {
    let places: Vec<String> = server.listening().iter().map(place).collect();
    format!("serves {}", places.join(", "))
}

/// Prints one more fact after the banner, before the first line of the log.
pub(crate) fn add(text: &str) {
    told::tell(Level::INFO, &format!("{text}\n"));
}

fn place(socket: &Socket) -> String {
    match socket {
        Socket::Tcp(address) => format!("http://{address}/"),
        Socket::Tls(address) => format!("https://{address}/"),
        Socket::Quic(address) => format!("https://{address}/ (HTTP/3, over UDP)"),
        Socket::Unix(path) => format!("unix:{}", path.display()),
    }
}

/// Describes the disk tier. Returns `None` if there is no server whose pages would be kept.
fn disk(settings: &Settings, state: DiskState) -> Option<String> {
    let has_server = settings.sites.iter().any(Site::has_server);
    let forgets = "a restart forgets what is stored";
    let Some((dir, size_max)) = settings.disk_tier() else {
        return has_server.then(|| format!("none: {forgets}"));
    };
    let dir = dir.display();
    Some(match state {
        DiskState::Working => format!("{} MiB in {dir}", size_max >> 20),
        DiskState::Off => format!("none, as {dir} cannot be used (see the warning above): {forgets}"),
        DiskState::Full | DiskState::ReadOnly | DiskState::Failing => {
            format!("{dir} takes no stored pages at the moment (see the warning above)")
        }
    })
}

pub(crate) fn site_line(site: &Site) -> String {
    let source = &site.source;
    let hosts = if site.hosts.is_empty() { String::new() } else { format!("{} <- ", site.hosts.join(", ")) };
    format!("{hosts}{source} ({})", site.kind.name())
}

fn line(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "  {name:<10} {value}");
}
