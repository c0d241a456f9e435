//! The parameters that a WordPress gets that Seawall runs itself: where it says what has changed, with which secret, and who runs its
//! schedule.

use std::{collections::BTreeMap, fmt};

use admin::Token;
use edge::Socket;
use pipeline::Shared;
use store::DiskState;

use crate::{
    config::settings::{Kind, Settings, Site, Source},
    recognition::folder,
};

/// The path at which Seawall takes what a WordPress says.
const PURGE_PATH: &str = "/.seawall/wordpress";

/// The beginning of the name of a file with a secret; the name of its site follows.
const SECRET_FILE: &str = "wordpress-secret-";

/// The plugin that speaks only where it finds the server that it was made for.
const LITESPEED: &str = "litespeed-cache";

/// The secrets that were made here, by the name of the site.
#[derive(Default)]
pub(crate) struct Secrets(BTreeMap<String, String>);

impl Secrets {
    /// Returns the secret of a site.
    pub(crate) fn of(&self, site: &str) -> Option<&str> {
        self.0.get(site).map(String::as_str)
    }
}

/// Shows no secret.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Makes a secret for each WordPress that needs one and is told by nobody else: what there was `before`, what is kept beside the stored pages, or a new
/// one.
///
/// # Errors
/// When the system has no random bytes.
pub(crate) fn secrets(settings: &Settings, shared: &Shared, before: Option<&Secrets>) -> anyhow::Result<Secrets> {
    let wants = |site: &&Site| site.kind == Kind::WordPress && matches!(site.source, Source::Php(_)) && site.wordpress.secret.is_none();
    let mut secrets = Secrets::default();
    for site in settings.sites.iter().filter(wants) {
        let secret = match before.and_then(|before| before.of(&site.name)) {
            Some(secret) => secret.to_owned(),
            None => kept(settings, shared, site).map_or_else(Token::random, Ok)?.as_str().to_owned(),
        };
        secrets.0.insert(site.name.clone(), secret);
    }
    Ok(secrets)
}

/// Reads the secret that is kept beside the stored pages, or keeps a new one there. Returns `None` if nothing can be kept.
fn kept(settings: &Settings, shared: &Shared, site: &Site) -> Option<Token> {
    // Another Seawall may have the folder.
    let (dir, _) = settings.disk_tier().filter(|_| shared.store.usage().disk != DiskState::Off)?;
    let is_plain = site.name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'*'));
    let path = dir.join(format!("{SECRET_FILE}{}", site.name));
    let kept = Token::load_or_create(&path).map_err(|error| {
        tracing::warn!(site = site.name, "the secret of WordPress is a new one at each start: {error}");
    });
    if is_plain { kept.ok() } else { None }
}

/// Returns the parameters by which PHP is told how to reach Seawall, which listens on `listening`.
pub(crate) fn params(site: &Site, secret: Option<&str>, listening: &[Socket]) -> Vec<(String, String)> {
    let Source::Php(_) = &site.source else { return Vec::new() };
    let mut params = Vec::new();
    if site.kind != Kind::WordPress {
        return params;
    }
    let mut add = |name: &str, value: &str| params.push((name.to_owned(), value.to_owned()));
    add("SEAWALL", env!("CARGO_PKG_VERSION"));
    if let Some(url) = purge_url(site, listening) {
        add("SEAWALL_PURGE_URL", &url);
    }
    if let Some(secret) = secret {
        add("SEAWALL_SECRET", secret);
    }
    if site.wordpress.cron.is_some() {
        // Then the plugin has page views start no run.
        add("SEAWALL_CRON", "1");
    }
    if folder::of(site).is_some_and(|found| found.has_plugin(LITESPEED)) {
        // It asks for these two, and is silent without them.
        add("X-LSCACHE", "on");
        add("LSWS_EDITION", "Openlitespeed (Seawall)");
    }
    params
}

/// Returns the address at which PHP on this machine reaches Seawall: without TLS if possible, on this machine's own address if possible.
fn purge_url(site: &Site, listening: &[Socket]) -> Option<String> {
    let plain =
        listening.iter().filter_map(|socket| if let Socket::Tcp(address) = socket { Some(crate::try_next::local(*address)) } else { None });
    let plain = plain.max_by_key(|address| address.ip().is_loopback());
    let tls = || {
        listening.iter().find_map(|socket| if let Socket::Tls(address) = socket { Some(crate::try_next::local(*address)) } else { None })
    };
    // The certificate is for a name.
    let name = site.hosts.iter().find(|host| !host.starts_with('*'));
    plain.map(|address| format!("http://{address}{PURGE_PATH}")).or_else(|| {
        let address = tls()?;
        Some(match name {
            Some(name) => format!("https://{name}:{}{PURGE_PATH}", address.port()),
            None => format!("https://{address}{PURGE_PATH}"),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cli::typed, config};

    #[test]
    fn php_is_told_where_and_how_it_says_what_changes() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |file: &str, text: &str| {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            std::fs::write(path, text).expect("a file");
        };
        write("wp-includes/version.php", "<?php\n$wp_version = '6.8.7';\n");
        write("wp-load.php", "");
        let serve = typed(&format!("seawall serve {} --php 127.0.0.1:9000", folder.path().display())).expect("serve");
        let site = config::load(&serve, |_| None).expect("settings").sites.remove(0);
        let listening = [Socket::Tcp("127.0.0.1:8080".parse().expect("an address"))];
        let told =
            |name: &str| params(&site, Some("hush"), &listening).into_iter().find_map(|(known, value)| (known == name).then_some(value));
        assert_eq!(told("SEAWALL").as_deref(), Some(env!("CARGO_PKG_VERSION")));
        assert_eq!(told("SEAWALL_PURGE_URL").as_deref(), Some("http://127.0.0.1:8080/.seawall/wordpress"));
        assert_eq!(told("SEAWALL_SECRET").as_deref(), Some("hush"));
        assert_eq!(told("SEAWALL_CRON").as_deref(), Some("1"), "once a minute is the default");
        assert_eq!(told("X-LSCACHE"), None);
        write("wp-content/plugins/litespeed-cache/litespeed-cache.php", "");
        assert_eq!(told("X-LSCACHE").as_deref(), Some("on"));
        assert!(told("LSWS_EDITION").is_some_and(|edition| edition.starts_with("Openlitespeed")));
        // Where Seawall does not run the schedule, page views are to.
        let mut off = site.clone();
        off.wordpress.cron = None;
        assert!(params(&off, Some("hush"), &listening).iter().all(|(name, _)| name != "SEAWALL_CRON"));
        // Another application is told nothing.
        let other = Site { kind: Kind::Php, ..site.clone() };
        assert!(params(&other, Some("hush"), &listening).is_empty());
    }

    #[test]
    fn php_reaches_seawall_without_tls_where_it_can() {
        let site = |serve: &str| config::load(&typed(serve).expect("serve"), |_| None).expect("settings").sites.remove(0);
        let (any, named) = (site("seawall serve http://127.0.0.1:1"), site("seawall serve http://127.0.0.1:1 --domain a.example"));
        let tcp = |text: &str| Socket::Tcp(text.parse().expect("an address"));
        let tls = |text: &str| Socket::Tls(text.parse().expect("an address"));
        for (site, listening, url) in [
            (&any, vec![tcp("127.0.0.1:8080")], Some("http://127.0.0.1:8080/.seawall/wordpress")),
            (&any, vec![tcp("192.0.2.1:80"), tcp("0.0.0.0:8080")], Some("http://127.0.0.1:8080/.seawall/wordpress")),
            (&any, vec![tls("0.0.0.0:443"), tcp("[::]:80")], Some("http://[::1]:80/.seawall/wordpress")),
            (&named, vec![tls("0.0.0.0:443")], Some("https://a.example:443/.seawall/wordpress")),
            (&any, vec![Socket::Unix("/run/x.sock".into())], None),
        ] {
            assert_eq!(purge_url(site, &listening).as_deref(), url, "{listening:?}");
        }
    }
}
