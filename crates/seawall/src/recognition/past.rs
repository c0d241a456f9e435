//! Tells whether the address that a site's software tells its readers leads past Seawall.
//!
//! Only what is certain is said: what stands in front of Seawall is not known here, so a name that Seawall was not told may well lead to it.

use std::net::{IpAddr, SocketAddr};

use edge::Socket;

use super::Software;
use crate::config::settings::{OriginAddress, Product, Settings, Site, Source};

/// Says why the address of the software behind `site` leads past Seawall, which listens on `listening`. Returns `None` if nothing says that it does.
pub(crate) fn leads_past(site: &Site, listening: &[Socket]) -> Option<String> {
    let software = super::software(site)?;
    let url = software.url();
    if !pipeline::is_among(software.host(), &site.hosts) {
        return Some(format!("its url is {url}, and Seawall serves this site as {}", site.hosts.join(", ")));
    }
    let leads_to_origin = match &site.source {
        Source::Http(addresses) => addresses.iter().any(|address| is_address_of(software, address)),
        // Nobody but Seawall serves the folder as far as is known here: another port of this machine is certainly somebody else's.
        Source::Php(_) => is_local(software.host().trim_start_matches('[').trim_end_matches(']')),
        Source::Files(_) | Source::Blog(_) => false,
    };
    (leads_to_origin && !is_listened_on(software, listening)).then(|| format!("its url is {url}, which leads past Seawall"))
}

/// Says that the software behind `site` leads every reader to https, where Seawall has none and trusts nobody who does. Returns `None` if it does not.
pub(crate) fn sends_to_https(site: &Site, settings: &Settings) -> Option<String> {
    let is_so = super::software(site)?.is_https() && settings.tls.is_none() && settings.server.trusted_proxies.is_empty();
    // Ghost looks whether a reader has come over https; WordPress does not.
    let leads = if matches!(site.product(), Product::Ghost(_)) {
        "Ghost redirects every reader there"
    } else {
        "its links and pictures lead there"
    };
    is_so.then(|| {
        format!(
            "its url begins with https, and Seawall has no https here: {leads}. Use --domain NAME, or name the proxy that ends TLS in \
             --trusted-proxies"
        )
    })
}

/// Returns whether the url of software leads to this address of it. Inside containers and networks a server has other names than outside, so its
/// port counts, unless it is one that everybody uses.
fn is_address_of(software: &Software, address: &OriginAddress) -> bool {
    let (OriginAddress::Http { host, port } | OriginAddress::Https { host, port }) = address else { return false };
    let own = software.host().trim_start_matches('[').trim_end_matches(']');
    let is_same_host = own.eq_ignore_ascii_case(host) || is_local(own) && is_local(host);
    software.port() == *port && (is_same_host || is_local(own) || software.explicit_port().is_some())
}

fn is_local(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn is_listened_on(software: &Software, listening: &[Socket]) -> bool {
    let host = software.host().trim_start_matches('[').trim_end_matches(']');
    let is_it = |address: &SocketAddr| {
        let is_same = match host.parse::<IpAddr>() {
            Ok(ip) => address.ip() == ip || address.ip().is_unspecified(),
            Err(_) if is_local(host) => address.ip().is_loopback() || address.ip().is_unspecified(),
            // A name: who knows where it leads.
            Err(_) => true,
        };
        address.port() == software.port() && is_same
    };
    listening.iter().any(|socket| match socket {
        Socket::Tcp(address) | Socket::Tls(address) => is_it(address),
        Socket::Quic(_) | Socket::Unix(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cli::typed,
        config,
        recognition::{Finding, Findings, Question},
    };

    /// Returns the first site of what `serve` means, with a Ghost behind it whose url is `url`.
    fn site(serve: &str, url: &str) -> Site {
        settings(serve, url).sites.remove(0)
    }

    fn settings(serve: &str, url: &str) -> Settings {
        let serve = typed(&format!("seawall serve {serve} --kind ghost")).expect("serve");
        let plain: Settings = config::load(&serve, |_| None).expect("settings");
        let mut known = Findings::default();
        let software = Software::ghost("6.65", url).expect("a Ghost");
        known.take(Question::of(&plain.sites[0]).expect("asked"), Finding::Recognised { software, remembered: false });
        let written = config::read(&serve, |_| None);
        config::resolve(&written, &serve, |_| None, &known).expect("settings")
    }

    #[test]
    fn a_ghost_with_https_behind_a_seawall_without_sends_everybody_there() {
        for (serve, url, is_so) in [
            ("http://127.0.0.1:2368", "https://blog.example/", true),
            ("http://127.0.0.1:2368", "http://blog.example/", false),
            ("http://127.0.0.1:2368 --domain blog.example", "https://blog.example/", false),
            ("http://127.0.0.1:2368 --trusted-proxies 10.0.0.1", "https://blog.example/", false),
        ] {
            let settings = settings(serve, url);
            assert_eq!(sends_to_https(&settings.sites[0], &settings).is_some(), is_so, "{serve} {url}");
        }
    }

    #[test]
    fn an_address_leads_past_seawall_only_if_that_is_certain() {
        let tcp = |text: &str| [Socket::Tcp(text.parse().expect("an address"))];
        for (serve, listening, url, past) in [
            // The address of the Ghost itself.
            ("http://127.0.0.1:2368", "127.0.0.1:8080", "http://127.0.0.1:2368/", true),
            ("http://127.0.0.1:2368", "127.0.0.1:8080", "http://localhost:2368/", true),
            ("http://ghost:2368", "0.0.0.0:80", "http://localhost:2368/", true),
            ("http://127.0.0.1:2368", "0.0.0.0:80", "http://blog.example:2368/", true),
            // The address of Seawall, or one that may lead there.
            ("http://127.0.0.1:2368", "127.0.0.1:8080", "http://127.0.0.1:8080/", false),
            ("http://127.0.0.1:2368", "0.0.0.0:2368", "http://localhost:2368/", false),
            ("http://127.0.0.1:2368", "127.0.0.1:8080", "https://blog.example/", false),
            ("http://ghost:2368", "0.0.0.0:80", "http://localhost:8080/", false),
            ("unix:/run/ghost.sock", "127.0.0.1:8080", "http://127.0.0.1:2368/", false),
            // Names that Seawall was told.
            ("http://127.0.0.1:2368 --domain blog.example", "0.0.0.0:80", "https://blog.example/", false),
            ("http://127.0.0.1:2368 --domain blog.example", "0.0.0.0:80", "https://www.blog.example/", true),
            ("http://127.0.0.1:2368 --domain *.example", "0.0.0.0:80", "https://www.example/", false),
            ("http://127.0.0.1:2368 --domain *.example", "0.0.0.0:80", "https://example/", true),
            ("http://127.0.0.1:2368 --domain blog.example", "0.0.0.0:80", "http://127.0.0.1:2368/", true),
        ] {
            assert_eq!(leads_past(&site(serve, url), &tcp(listening)).is_some(), past, "{serve} {listening} {url}");
        }
    }

    #[test]
    fn a_wordpress_in_a_folder_leads_past_seawall_at_any_other_port_of_this_machine() {
        let folder = tempfile::tempdir().expect("a folder");
        for (file, text) in [("wp-includes/version.php", "<?php\n$wp_version = '6.8.7';\n"), ("wp-load.php", "")] {
            std::fs::create_dir_all(folder.path().join("wp-includes")).expect("a folder");
            std::fs::write(folder.path().join(file), text).expect("a file");
        }
        let serve = typed(&format!("seawall serve {} --php 127.0.0.1:9000", folder.path().display())).expect("serve");
        let written = config::read(&serve, |_| None);
        for (url, past) in [
            ("http://127.0.0.1:8080", false),
            ("http://localhost:8080", false),
            ("http://127.0.0.1:8180", true),
            ("http://localhost", true),
            ("https://blog.example", false),
        ] {
            let mut known = Findings::default();
            let software = Software::wordpress(None, url).expect("a WordPress");
            known.take(Question::of_folder(folder.path(), &[]), Finding::Recognised { software, remembered: false });
            let settings = config::resolve(&written, &serve, |_| None, &known).expect("settings");
            let listening = [Socket::Tcp("127.0.0.1:8080".parse().expect("an address"))];
            assert_eq!(leads_past(&settings.sites[0], &listening).is_some(), past, "{url}");
        }
    }
}
