//! Commands that somebody may copy from the screen after a start, and that work as they stand there: in the same folder, by the same user,
//! with no variable set.

use std::{
    fmt::Write as _,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use acme::{Issuer, issuer};
use edge::Socket;
use pipeline::{Redirect, is_among};

use crate::{
    cli::{Access, Serve},
    config::{
        self,
        settings::{Kind, Settings, Site},
    },
    recognition::{Software, software},
};

/// Tells commands on this machine how to find the server's admin API.
#[derive(Debug)]
pub(crate) struct Reach {
    config: Option<PathBuf>,
    /// The place where a command would look by itself, with `--config` if there is one.
    found: Option<config::AdminAccess>,
}

impl Reach {
    /// Makes it for a server that was started with these flags and variables.
    pub(crate) fn new(serve: &Serve, env: impl Fn(&str) -> Option<String>) -> Self {
        let named = env(config::flags::CONFIG.variable).filter(|path| !path.is_empty()).map(PathBuf::from);
        let config = serve.config.clone().or(named);
        // Another terminal has the same home, and none of our variables.
        let home = |name: &str| env(name).filter(|_| !name.starts_with("SEAWALL_"));
        let found = config::admin_access(&Access { config: config.clone(), ..Access::default() }, home).ok();
        Self { config, found }
    }

    /// Writes the flags that commands need, each with a space before it.
    fn flags(&self, address: SocketAddr, token_file: &Path) -> String {
        let mut flags = String::new();
        if let Some(config) = &self.config {
            let _ = write!(flags, " --config {}", quoted(&config.display().to_string()));
        }
        if self.found.as_ref().is_none_or(|found| found.address != address) {
            let _ = write!(flags, " --admin {}", quoted(&address.to_string()));
        }
        if self.found.as_ref().is_none_or(|found| found.token_file != token_file) {
            let _ = write!(flags, " --token-file {}", quoted(&token_file.display().to_string()));
        }
        flags
    }
}

/// Holds a suggestion: why, and the command.
pub(crate) type Suggestion = (&'static str, String);

/// Suggests commands for a server that serves there.
pub(crate) fn suggestions(
    settings: &Settings,
    listening: &[Socket],
    admin: Option<SocketAddr>,
    reach: &Reach,
    certified: &dyn Fn(&str) -> bool,
) -> Vec<Suggestion> {
    let Some(site) = settings.sites.first() else { return Vec::new() };
    let Some(mut page) = Page::of(settings, site, listening, certified) else { return Vec::new() };
    let mut address = page.url.clone();
    // Behind a proxy that ends TLS, a Ghost sends everybody to https who does not say that it came that way.
    let believed = settings.server.trusted_proxies.iter().any(|net| net.contains(&IpAddr::from(Ipv4Addr::LOCALHOST)));
    if let Some(ghost) = software(site).filter(|software| believed && software.is_https() && settings.tls.is_none()) {
        let _ = write!(page.curl, " -H {} -H 'X-Forwarded-Proto: https'", quoted(&format!("Host: {}", ghost.host())));
        ghost.url().clone_into(&mut address);
    } else if let Some((wordpress, path)) = redirects_from(site, &page.url) {
        let _ = write!(page.curl, " -H {}", quoted(&format!("Host: {}", wordpress.authority())));
        address = format!("http://{}/{path}", wordpress.authority());
    }
    let mut all = vec![(
        "See what the cache does with a page, and by which rule (twice: a miss, then a hit)",
        format!("curl -sD- -o /dev/null{} {} | grep -i cache", page.curl, quoted(&page.url)),
    )];
    if let Some(admin) = admin {
        let flags = reach.flags(local(admin), &settings.server.admin_token_file);
        all.push(("See which rules apply to that page, and what is stored for it", format!("seawall explain {}{flags}", quoted(&address))));
        if site.source.is_server() {
            all.push((
                "Purge all stored pages, so that the next visitor gets what the server has now",
                format!("seawall purge --all{flags}"),
            ));
        }
    }
    all
}

/// Returns a WordPress that redirects whoever asks for `url`, as its own address has another host or port, and the path of `url`. Returns `None` where that
/// would not be answered here under its own address either.
fn redirects_from<'s, 'u>(site: &'s Site, url: &'u str) -> Option<(&'s Software, &'u str)> {
    let wordpress = software(site).filter(|software| software.kind() == Kind::WordPress)?;
    let (authority, path) = url.strip_prefix("http://")?.split_once('/')?;
    let is_served = is_among(wordpress.host(), &site.hosts);
    (is_served && wordpress.authority() != authority).then_some((wordpress, path))
}

/// Says where a WordPress redirects readers who come to Seawall under the address that is known here. Returns `None` if it does not.
pub(crate) fn redirected_to<'a>(settings: &Settings, site: &'a Site, listening: &[Socket]) -> Option<&'a str> {
    let here = format!("{}/", address_of(settings, site, listening)?);
    // What stands before Seawall has addresses that are not known here.
    let is_known = settings.server.trusted_proxies.is_empty();
    redirects_from(site, &here).filter(|_| is_known).map(|(wordpress, _)| wordpress.url())
}

/// Returns an address under which visitors reach a site here, without a slash at its end.
pub(crate) fn address_of(settings: &Settings, site: &Site, listening: &[Socket]) -> Option<String> {
    let certified = |_: &str| settings.tls.is_some();
    Some(Page::of(settings, site, listening, &certified)?.url.trim_end_matches('/').to_owned())
}

/// Returns an address that one can type: the unspecified one is every address, so also this machine's own.
pub(crate) fn local(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => SocketAddr::from(([127, 0, 0, 1], address.port())),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], address.port())),
        _ => address,
    }
}

/// Describes a page that is there, as a visitor on this machine reaches it.
struct Page {
    url: String,
    /// The flags that curl needs to get there, each with a space before it.
    curl: String,
}

impl Page {
    fn of(settings: &Settings, site: &Site, listening: &[Socket], certified: &dyn Fn(&str) -> bool) -> Option<Self> {
        let mut page = Self::front(settings, site, listening, certified)?;
        if let Some(base_path) = site.base_path() {
            page.url = format!("{}{base_path}/", page.url.trim_end_matches('/'));
        }
        Some(page)
    }

    /// Describes the front page of the host.
    fn front(settings: &Settings, site: &Site, listening: &[Socket], certified: &dyn Fn(&str) -> bool) -> Option<Self> {
        let name = host(settings, site);
        let plain = listening.iter().find_map(|socket| if let Socket::Tcp(address) = socket { Some(local(*address)) } else { None });
        let tls = listening.iter().find_map(|socket| if let Socket::Tls(address) = socket { Some(local(*address)) } else { None });
        let unix = listening.iter().find_map(|socket| if let Socket::Unix(path) = socket { Some(path) } else { None });
        let has_files = settings.tls.as_ref().is_some_and(|tls| !tls.certificates.is_empty());
        // Those of local names are made at once, others take until their authority has come.
        let is_certified = has_files || name.as_deref().is_some_and(|name| issuer(name) == Issuer::Local || certified(name));
        match (plain, tls, unix) {
            (_, Some(tls), _) if is_certified || plain.is_none() => {
                Some(Self { url: url("https", 443, name.as_deref(), tls), curl: format!(" -k{}", resolve(name.as_deref(), tls)) })
            }
            (Some(plain), tls, _) => {
                let mut curl = resolve(name.as_deref(), plain);
                if let Some(tls) = tls.filter(|_| site.https_redirect != Redirect::Never) {
                    let _ = write!(curl, " -Lk{}", resolve(name.as_deref(), tls));
                }
                Some(Self { url: url("http", 80, name.as_deref(), plain), curl })
            }
            (None, _, Some(path)) => {
                let url = format!("http://{}/", name.as_deref().unwrap_or("localhost"));
                Some(Self { url, curl: format!(" --unix-socket {}", quoted(&path.display().to_string())) })
            }
            _ => None,
        }
    }
}

/// Finds a name under which the site is served; none, if it is served under every one and has no certificate for one either.
fn host(settings: &Settings, site: &Site) -> Option<String> {
    let certified = || settings.tls.as_ref()?.acme.as_ref()?.names.first();
    let name = site.hosts.first().or_else(certified)?;
    Some(name.strip_prefix('*').map_or_else(|| name.clone(), |rest| format!("www{rest}")))
}

fn url(scheme: &str, default_port: u16, name: Option<&str>, address: SocketAddr) -> String {
    let host = match (name, address.ip()) {
        (Some(name), _) => name.to_owned(),
        (None, IpAddr::V4(address)) => address.to_string(),
        (None, IpAddr::V6(address)) => format!("[{address}]"),
    };
    let port = if address.port() == default_port { String::new() } else { format!(":{}", address.port()) };
    format!("{scheme}://{host}{port}/")
}

/// Leads a name to where it is served, whatever the DNS says.
fn resolve(name: Option<&str>, address: SocketAddr) -> String {
    match (name, address.ip()) {
        (None, _) => String::new(),
        (Some("localhost"), ip) if ip.is_loopback() => String::new(),
        (Some(name), IpAddr::V4(ip)) => format!(" --resolve {name}:{}:{ip}", address.port()),
        (Some(name), IpAddr::V6(ip)) => format!(" --resolve '{name}:{}:[{ip}]'", address.port()),
    }
}

/// Writes a word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_a_word_as_it_was() {
        let cases = [
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/"),
            ("http://[::1]/", "'http://[::1]/'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ];
        for (word, expected) in cases {
            assert_eq!(quoted(word), expected);
        }
    }

    #[test]
    fn flags_are_named_only_where_a_command_would_look_elsewhere() {
        let home = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("my site.toml");
        std::fs::write(&file, "source = \"http://127.0.0.1:1\"\n[server]\nadmin = \"127.0.0.1:9999\"\nadmin_token_file = \"/t\"")
            .expect("written");
        let serve = |config: Option<&Path>| Serve {
            source: Some("http://127.0.0.1:1".to_owned()),
            config: config.map(Path::to_owned),
            ..Serve::default()
        };
        let own = Path::new("/home/ada/.local/state/seawall/admin-token");
        let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let plain = Reach::new(&serve(None), home);
        assert_eq!(plain.flags(address("127.0.0.1:9180"), own), "");
        assert_eq!(plain.flags(address("127.0.0.1:9181"), own), " --admin 127.0.0.1:9181");
        let variable =
            Reach::new(&serve(None), |name| if name == "SEAWALL_ADMIN" { Some("127.0.0.1:9181".to_owned()) } else { home(name) });
        assert_eq!(variable.flags(address("127.0.0.1:9181"), own), " --admin 127.0.0.1:9181", "another terminal has no such variable");
        let of_file = Reach::new(&serve(Some(&file)), home);
        let config = format!(" --config '{}'", file.display());
        assert_eq!(of_file.flags(address("127.0.0.1:9999"), Path::new("/t")), config);
        assert_eq!(of_file.flags(address("[::1]:1"), Path::new("/t")), format!("{config} --admin '[::1]:1'"));
        assert_eq!(of_file.flags(address("127.0.0.1:9999"), own), format!("{config} --token-file {}", own.display()));
    }
}
