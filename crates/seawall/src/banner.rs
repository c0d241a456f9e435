//! What is said at the start: what was found, where it is served, what to try next.

use std::{fmt::Write, net::SocketAddr, time::Duration};

use edge::Socket;
use origins::http::{Address, probe, tls_config};

use crate::{
    check::route_line,
    config::settings::{AccessLog, OriginHost, Settings, Site, Source},
};

/// An origin that takes longer to say what it is is not waited for.
const LOOK: Duration = Duration::from_secs(3);

/// Asks every site's origin what it is. One that does not answer is no reason not to start.
pub(crate) async fn look_at_origins(settings: &Settings) -> Vec<String> {
    let mut found = Vec::with_capacity(settings.sites.len());
    for site in &settings.sites {
        found.push(look(site).await);
    }
    found
}

async fn look(site: &Site) -> String {
    let Source::Http(addresses) = &site.source else {
        return String::new();
    };
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
            let what = probe.generator.or(probe.server).map(|what| format!("{what}, ")).unwrap_or_default();
            format!("{what}answers {}", probe.status.as_u16())
        }
        Ok(Err(error)) => format!("does not answer yet: {error}"),
        Err(_) => format!("does not answer within {} s yet", LOOK.as_secs()),
    }
}

/// Prints the start.
pub(crate) fn print(settings: &Settings, listening: &[Socket], admin: Option<SocketAddr>, origins: &[String]) {
    let mut text = format!("\nSeawall {}\n\n", env!("CARGO_PKG_VERSION"));
    for (site, found) in settings.sites.iter().zip(origins) {
        line(&mut text, "site", &site_line(site));
        for route in &site.routes {
            line(&mut text, "route", &route_line(route));
        }
        if !found.is_empty() {
            line(&mut text, "", found);
        }
    }
    for socket in listening {
        match socket {
            Socket::Tcp(address) => line(&mut text, "listening", &format!("http://{address}/")),
            Socket::Tls(address) => line(&mut text, "listening", &format!("https://{address}/")),
            Socket::Quic(address) => line(&mut text, "listening", &format!("https://{address}/ (HTTP/3, over UDP)")),
            Socket::Unix(path) => line(&mut text, "listening", &format!("unix:{}", path.display())),
        }
    }
    if let Some(admin) = admin {
        line(&mut text, "admin", &format!("http://{admin}/metrics"));
    }
    line(&mut text, "memory", &format!("{} MiB for stored pages", settings.cache_memory >> 20));
    if let Some((dir, size_max)) = settings.disk_tier() {
        line(&mut text, "disk", &format!("{} MiB in {}", size_max >> 20, dir.display()));
    }
    line(&mut text, "workers", &settings.server.workers.to_string());
    match &settings.log.access {
        AccessLog::Off => {}
        AccessLog::Stdout => line(&mut text, "log", "standard output"),
        AccessLog::File(path) => line(&mut text, "log", &path.display().to_string()),
    }
    if let Some(address) = listening.iter().find_map(|socket| match socket {
        Socket::Tcp(address) => Some(local(*address)),
        Socket::Tls(_) | Socket::Quic(_) | Socket::Unix(_) => None,
    }) {
        text.push_str("\nTry next:\n");
        let mut hint = |command: String, what: &str| {
            let _ = writeln!(text, "  {command:<54} {what}");
        };
        hint(format!("curl -sI http://{address}/ | grep -i cache"), "a hit, a miss or a bypass, and which rule said so");
        hint(format!("wrk -c 500 -d 5 http://{address}/"), "a crowd");
        if admin.is_some() {
            hint(format!("seawall explain http://{address}/"), "how it is judged, and what is stored");
            hint("seawall purge --all".to_owned(), "forget everything");
        }
    }
    eprintln!("{text}");
}

/// Something more to know, before the first line of the log.
pub(crate) fn add(text: &str) {
    eprintln!("{text}");
}

/// An address that one can type: the unspecified one is every address, so also this machine's own.
fn local(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => SocketAddr::from(([127, 0, 0, 1], address.port())),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], address.port())),
        _ => address,
    }
}

pub(crate) fn site_line(site: &Site) -> String {
    let source = &site.source;
    let hosts = if site.hosts.is_empty() { String::new() } else { format!("{} <- ", site.hosts.join(", ")) };
    format!("{hosts}{source} ({})", site.kind.as_str())
}

fn line(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "  {name:<10} {value}");
}
