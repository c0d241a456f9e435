//! The settings that can be given outside the file, too: each with its flag, its variable, and its key in the file.
//!
//! This is the one list of these names. The help, the reading of flags and environment, and what is said about a wrong value take them from
//! here; tests hold that the flags that can be typed, the keys of the file and the comments in `file.rs` agree with it.

/// One setting, by each of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flag {
    /// The flag on the command line of `seawall serve`; `SOURCE` stands there by itself.
    pub(crate) name: &'static str,
    /// The variable of the environment.
    pub(crate) variable: &'static str,
    /// The section and the key in the file, such as `server.listen`. A key at the top of the file has no section; empty: the file cannot say it.
    pub(crate) key: &'static str,
}

impl Flag {
    const fn new(name: &'static str, variable: &'static str, key: &'static str) -> Self {
        Self { name, variable, key }
    }

    /// Returns what is typed before the value; nothing before SOURCE.
    pub(super) fn typed(&self) -> &'static str {
        if self.name.starts_with('-') { self.name } else { "" }
    }
}

pub(crate) const SOURCE: Flag = Flag::new("SOURCE", "SEAWALL_SOURCE", "source");
pub(crate) const LISTEN: Flag = Flag::new("--listen", "SEAWALL_LISTEN", "server.listen");
pub(crate) const DOMAIN: Flag = Flag::new("--domain", "SEAWALL_DOMAIN", "site.hosts");
pub(crate) const REDIRECT_FROM: Flag = Flag::new("--redirect-from", "SEAWALL_REDIRECT_FROM", "redirect_from");
pub(crate) const ROUTE: Flag = Flag::new("--route", "SEAWALL_ROUTE", "route.path");
pub(crate) const TLS_LISTEN: Flag = Flag::new("--tls-listen", "SEAWALL_TLS_LISTEN", "tls.listen");
pub(crate) const TLS_CERT: Flag = Flag::new("--tls-cert", "SEAWALL_TLS_CERT", "tls.cert");
pub(crate) const TLS_KEY: Flag = Flag::new("--tls-key", "SEAWALL_TLS_KEY", "tls.key");
pub(crate) const HTTP3: Flag = Flag::new("--http3", "SEAWALL_HTTP3", "server.http3");
pub(crate) const CONFIG: Flag = Flag::new("--config", "SEAWALL_CONFIG", "");
pub(crate) const KIND: Flag = Flag::new("--kind", "SEAWALL_KIND", "kind");
pub(crate) const PHP: Flag = Flag::new("--php", "SEAWALL_PHP", "php.server");
pub(crate) const ADMIN: Flag = Flag::new("--admin", "SEAWALL_ADMIN", "server.admin");
pub(crate) const MEMORY: Flag = Flag::new("--memory", "SEAWALL_MEMORY", "cache.memory");
pub(crate) const CACHE_DIR: Flag = Flag::new("--cache-dir", "SEAWALL_CACHE_DIR", "cache.dir");
pub(crate) const WORKERS: Flag = Flag::new("--workers", "SEAWALL_WORKERS", "server.workers");
pub(crate) const ACCESS_LOG: Flag = Flag::new("--access-log", "SEAWALL_ACCESS_LOG", "log.access");
pub(crate) const LOG_FORMAT: Flag = Flag::new("--log-format", "SEAWALL_LOG_FORMAT", "log.format");
pub(crate) const TRUSTED_PROXIES: Flag = Flag::new("--trusted-proxies", "SEAWALL_TRUSTED_PROXIES", "server.trusted_proxies");
pub(crate) const HTTPS_REDIRECT: Flag = Flag::new("--https-redirect", "SEAWALL_HTTPS_REDIRECT", "https.redirect");
pub(crate) const HOLD: Flag = Flag::new("--hold", "SEAWALL_HOLD", "cache.hold");
pub(crate) const DRAFTS: Flag = Flag::new("--drafts", "SEAWALL_DRAFTS", "blog.drafts");

/// Secrets have a variable and no flag.
pub(crate) const GHOST_WEBHOOK_SECRET: Flag = Flag::new("", "SEAWALL_GHOST_WEBHOOK_SECRET", "ghost.webhook_secret");
pub(crate) const GHOST_MEMBER_SECRET: Flag = Flag::new("", "SEAWALL_GHOST_MEMBER_SECRET", "ghost.member_secret");
pub(crate) const WORDPRESS_SECRET: Flag = Flag::new("", "SEAWALL_WORDPRESS_SECRET", "wordpress.secret");

/// The machines of a cluster share one file; what differs between them is in their environment.
pub(crate) const CLUSTER_URL: Flag = Flag::new("", "SEAWALL_CLUSTER_URL", "cluster.url");
pub(crate) const CLUSTER_NAME: Flag = Flag::new("", "SEAWALL_CLUSTER_NAME", "cluster.name");
pub(crate) const CLUSTER_MACHINE: Flag = Flag::new("", "SEAWALL_CLUSTER_MACHINE", "cluster.machine");
pub(crate) const CLUSTER_SECRET: Flag = Flag::new("", "SEAWALL_CLUSTER_SECRET", "cluster.secret");
pub(crate) const CLUSTER_SECRET_FILE: Flag = Flag::new("", "SEAWALL_CLUSTER_SECRET_FILE", "cluster.secret_file");

/// Every setting that can be given outside the file by a variable alone.
pub(crate) const VARIABLES: [Flag; 8] = [
    GHOST_WEBHOOK_SECRET,
    GHOST_MEMBER_SECRET,
    WORDPRESS_SECRET,
    CLUSTER_URL,
    CLUSTER_NAME,
    CLUSTER_MACHINE,
    CLUSTER_SECRET,
    CLUSTER_SECRET_FILE,
];

/// Every setting that can be given outside the file by a flag, in the order of the help.
pub(crate) const ALL: [Flag; 22] = [
    SOURCE,
    LISTEN,
    DOMAIN,
    REDIRECT_FROM,
    ROUTE,
    TLS_LISTEN,
    TLS_CERT,
    TLS_KEY,
    HTTP3,
    CONFIG,
    KIND,
    PHP,
    ADMIN,
    MEMORY,
    CACHE_DIR,
    WORKERS,
    ACCESS_LOG,
    LOG_FORMAT,
    TRUSTED_PROXIES,
    HTTPS_REDIRECT,
    HOLD,
    DRAFTS,
];

/// Finds the setting whose key in the file, without its section, is `key`.
pub(super) fn by_key(key: &str) -> Option<&'static Flag> {
    ALL.iter().find(|flag| flag.key.rsplit('.').next() == Some(key))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::config::{keys::SECTIONS, manual::sections};

    #[test]
    fn a_variable_is_called_as_its_flag() {
        for flag in ALL {
            let expected = format!("SEAWALL_{}", flag.name.trim_start_matches('-').replace('-', "_").to_uppercase());
            assert_eq!(flag.variable, expected);
        }
    }

    #[test]
    fn a_setting_has_a_key_of_the_file() {
        for flag in ALL.iter().chain(&VARIABLES).filter(|flag| !flag.key.is_empty()) {
            let (section, key) = flag.key.split_once('.').unwrap_or(("", flag.key));
            let (_, keys) = SECTIONS.iter().find(|(name, _)| *name == section).expect(section);
            assert!(keys.contains(&key), "{}", flag.key);
        }
    }

    /// Whoever reads about a key learns how to say the same without a file.
    #[test]
    fn the_manual_of_the_file_names_flag_and_variable_of_a_key() {
        let mut told = BTreeSet::new();
        for section in sections() {
            for key in &section.keys {
                let text = key.text.join(" ");
                let path = [section.name, key.name].join(".");
                let path = path.trim_start_matches('.');
                let flags: Vec<&Flag> = ALL.iter().chain(&VARIABLES).filter(|flag| flag.key == path).collect();
                for flag in &flags {
                    assert!(text.contains(&format!("`{}`", flag.variable)), "{path} names {}: {text}", flag.variable);
                    assert!(flag.typed().is_empty() || text.contains(&format!("`{}`", flag.name)), "{path} names {}: {text}", flag.name);
                }
                let named = text.split('`').filter(|word| word.starts_with("SEAWALL_")).map(str::to_owned);
                told.extend(named.inspect(|name| assert!(flags.iter().any(|flag| flag.variable == name), "{path} names {name}")));
            }
        }
        assert!(told.len() > 15, "{told:?}: are the comments where they were?");
    }
}
