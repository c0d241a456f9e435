//! The text that is written at the start: what was found, where it is served, what to try next.

use std::{fmt::Write, net::SocketAddr, path::Path, time::Duration};

use edge::Socket;
use futures_util::future::join_all;
use origins::{
    http::probe,
    server::{Address, tls_config},
};
use policy::SourceForm;
use store::DiskState;
use tracing::Level;

use crate::{
    cli::route_line,
    config::settings::{AccessLog, Kind, OriginHost, PhpSettings, Settings, Site, Source},
    php_server,
    recognition::{Finding, folder, keeper::remedy, kept as kept_as_usual, kept_a_while, leads_past, name_of, sends_to_https, software},
    server::Server,
    stderr,
    try_next::{self, Reach, local},
};

/// The longest wait at the start for an origin to say what it is.
const LOOK: Duration = Duration::from_secs(3);

/// The advice for a kind that is not what the server says.
const LOOK_AGAIN: &str = "Leave --kind out, or look at the address";

/// The beginning of the line about a server whose pages say which software it is, while it does not answer as that.
const CALLS_ITSELF: &str = "calls itself ";

/// Asks every site's origin what it is. The start goes on without those that do not answer.
pub(crate) async fn look_at_origins(settings: &Settings) -> Vec<String> {
    join_all(settings.sites.iter().map(look)).await
}

/// Says what follows from the software that a site has, a line each: how it is kept, and what is to be set if something hinders.
pub(crate) fn of_software(site: &Site, settings: &Settings, listening: &[Socket]) -> Vec<String> {
    let Some(name) = site.kind.product() else { return Vec::new() };
    let (what, kept) = match (&site.source, &site.php) {
        (Source::Php(path), Some(php)) => (in_folder(site, path, php), None),
        _ => as_it_says(site, name),
    };
    let kept = kept.unwrap_or_else(|| kept_as_usual(site.kind));
    let mut lines = vec![format!("{what}: {kept}")];
    lines.extend(hindrances(site));
    lines.extend(sends_to_https(site, settings));
    if let Some(why) = leads_past(site, listening) {
        let bypass = match &site.source {
            Source::Php(_) => "readers and editors are sent there",
            _ => "the admin, the scheduler and links then bypass Seawall, which cannot see when something changes",
        };
        lines.push(format!("{why}: {bypass}"));
        lines.push(remedy(site, settings, listening));
    } else if let (None, Some(there)) = (sends_to_https(site, settings), try_next::redirected_to(settings, site, listening)) {
        lines.push(format!("readers are redirected to {there}: if that does not lead to Seawall, {}", remedy(site, settings, listening)));
    }
    lines
}

/// Describes software behind a server, and how its pages are kept if that is not as usual.
fn as_it_says(site: &Site, name: &str) -> (String, Option<String>) {
    let kept_a_while = || Some(kept_a_while(site.kind));
    match &site.finding {
        Finding::Recognised { software, .. } if software.kind() != site.kind => {
            (format!("You say that this is a {name}, but it answers as {software}. {LOOK_AGAIN}"), kept_a_while())
        }
        Finding::Recognised { software, remembered: false } => (software.to_string(), None),
        Finding::Recognised { software, remembered: true } => (format!("does not answer yet; when it did, it was {software}"), None),
        Finding::Silent(why) => (format!("does not answer yet: {why}; taken for a {name}, as you say"), None),
        Finding::Other(what) => {
            (format!("You say that this is a {name}, but it does not answer as one ({what}). {LOOK_AGAIN}"), kept_a_while())
        }
        Finding::Unasked => (format!("a {name}, as you say"), None),
    }
}

/// Describes a WordPress in a folder.
fn in_folder(site: &Site, path: &Path, php: &PhpSettings) -> String {
    let version = folder::of(site).map(|found| format!(" {}", found.version)).unwrap_or_default();
    let at = software(site).map(|software| format!(", {}", software.url())).unwrap_or_default();
    let found = found(php);
    format!("WordPress{version} in {}{at}, PHP by {}{found}", path.display(), php.address())
}

/// Says what hinders a WordPress in a folder, and what to do about it, a line each.
fn hindrances(site: &Site) -> Vec<String> {
    let (Source::Php(_), Some(php)) = (&site.source, &site.php) else { return Vec::new() };
    let mut lines = Vec::new();
    if !php.also_found.is_empty() {
        let others = php.also_found.iter().map(|socket| socket.display().to_string()).collect::<Vec<_>>().join(", ");
        lines.push(format!("there is also {others}: --php names another one"));
    }
    lines.extend(php_server::trouble(php).map(|trouble| trouble.text));
    match folder::of(site) {
        Some(found) if !found.is_set_up() => {
            lines.push("it is not installed yet (there is no wp-config.php): open an address below with a browser".to_owned());
        }
        Some(_) => {
            if let Finding::Other(what) = &site.finding {
                lines.push(format!("it does not say where its readers find it: {what}"));
            }
        }
        None => lines.push("as you say, though no WordPress is there (wp-includes/version.php and wp-load.php)".to_owned()),
    }
    lines
}

/// Says why a server is kept as any other, and how to change that. A Ghost that is away must not be taken for any server in silence, nor an
/// export that says "Ghost" for a Ghost.
fn not_recognised(site: &Site, found: &str) -> Option<String> {
    let is_decided = site.kind_is_given || site.kind != SourceForm::Server.usual_kind();
    match &site.finding {
        // It was said with what it calls itself.
        Finding::Other(_) if found.starts_with(CALLS_ITSELF) => None,
        Finding::Other(what) if !is_decided => {
            Some(format!("neither a Ghost nor a WordPress, as {what} (--kind ghost or --kind wordpress if it is one)"))
        }
        Finding::Silent(_) if !is_decided => Some("if it is a Ghost or a WordPress, Seawall will see it as soon as it answers".to_owned()),
        _ => None,
    }
}

async fn look(site: &Site) -> String {
    if let Some(php) = &site.php {
        return if site.kind.product().is_some() { String::new() } else { php_line(php) };
    }
    let Source::Http(addresses) = &site.source else {
        return String::new();
    };
    match &site.finding {
        // It was asked already, and what it says is more than its pages do.
        _ if site.kind.product().is_some() => return String::new(),
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
            let called = probe.generator.as_ref().and_then(|generator| {
                let kind = Kind::of_products().find(|kind| generator.starts_with(name_of(*kind)))?;
                Some((generator, kind))
            });
            if let (Some((generator, kind)), Finding::Other(what)) = (called, &site.finding) {
                let (name, kind) = (name_of(kind), kind.name());
                return format!("{CALLS_ITSELF}\"{generator}\", but {what}: not taken for a {name} (--kind {kind} if it is one)");
            }
            let known =
                probe.generator.as_ref().and_then(|generator| Kind::of_products().find(|kind| generator.starts_with(name_of(*kind))));
            if let (Some(kind), Some(generator)) = (known.filter(|_| site.kind_is_given), &probe.generator) {
                let (name, kind, given) = (name_of(kind), kind.name(), site.kind.name());
                return format!(
                    "calls itself \"{generator}\": --kind {kind} keeps its pages until {name} changes them, --kind {given} does not"
                );
            }
            let what = probe.generator.or(probe.server).map(|what| format!("{what}, ")).unwrap_or_default();
            format!("{what}answers {}", probe.status.as_u16())
        }
        Ok(Err(error)) => format!("does not answer yet: {error}"),
        Err(_) => format!("does not answer within {} s yet", LOOK.as_secs()),
    }
}

/// Says where PHP runs, and what hinders there.
fn php_line(php: &PhpSettings) -> String {
    let trouble = php_server::trouble(php).map(|trouble| format!(". {}", trouble.text)).unwrap_or_default();
    format!("PHP by {}{}{trouble}", php.address(), found(php))
}

/// Says how the address of php-fpm is known, if nobody gave it.
pub(crate) fn found(php: &PhpSettings) -> &'static str {
    match (php.is_found, php_server::trouble(php)) {
        (false, _) => "",
        (true, None) => " (found)",
        (true, Some(_)) => " (the usual place)",
    }
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
        let more = of_software(site, settings, listening).into_iter().chain(not_recognised(site, found));
        for found in Some((*found).clone()).filter(|found| !found.is_empty()).into_iter().chain(more) {
            line(&mut text, "", &found);
        }
        let base = try_next::address_of(settings, site, listening).unwrap_or_default();
        for draft in server.drafts(&site.name, &base) {
            line(&mut text, "", &draft);
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
        line(&mut text, "admin", &format!("http://{}/ (the dashboard; /metrics for Prometheus)", local(*admin)));
    }
    line(&mut text, "memory", &format!("{} MiB for stored pages", settings.cache_memory >> 20));
    if let Some(disk) = disk(settings, server.usage().disk) {
        line(&mut text, "disk", &disk);
    }
    if let Some(cluster) = &settings.cluster {
        line(&mut text, "cluster", &format!("{} of {}, by {}", cluster.machine, cluster.name, cluster.address));
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
    stderr::tell(Level::INFO, &format!("{text}\n"));
}

/// Returns one line that says where Seawall serves.
pub(crate) fn status(server: &Server) -> String {
    let places: Vec<String> = server.listening().iter().map(place).collect();
    format!("serves {}", places.join(", "))
}

/// Prints one more fact after the banner, before the first line of the log.
pub(crate) fn add(text: &str) {
    stderr::tell(Level::INFO, &format!("{text}\n"));
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
