//! What flags and environment say, flags first: the values that go before the file's.

use std::str::FromStr;

use super::{
    addresses::{AdminAddress, TrustedProxy},
    error::{ConfigError, Mistake, Place},
    routes::RouteWord,
    settings::{AccessLog, Listen, LogFormat},
    units::{ByteSize, Count, Period},
    words::{HostPattern, KindWord},
};
use crate::cli::Serve;

/// A value and the place where it was written.
#[derive(Clone, Debug)]
pub(super) struct Said<T> {
    pub(super) value: T,
    pub(super) place: Place,
}

/// The settings that flags and variables can set.
#[derive(Clone, Debug, Default)]
pub(super) struct Overrides {
    pub(super) source: Option<Said<String>>,
    pub(super) kind: Option<Said<KindWord>>,
    pub(super) listen: Vec<Said<Listen>>,
    pub(super) domain: Vec<Said<HostPattern>>,
    pub(super) redirect_from: Vec<Said<HostPattern>>,
    pub(super) route: Vec<Said<RouteWord>>,
    pub(super) tls_listen: Vec<Said<Listen>>,
    pub(super) tls_cert: Option<Said<String>>,
    pub(super) tls_key: Option<Said<String>>,
    pub(super) admin: Option<Said<AdminAddress>>,
    pub(super) memory: Option<Said<ByteSize>>,
    pub(super) cache_dir: Option<Said<String>>,
    pub(super) workers: Option<Said<Count>>,
    pub(super) access_log: Option<Said<AccessLog>>,
    pub(super) log_format: Option<Said<LogFormat>>,
    pub(super) hold: Option<Said<Period>>,
    pub(super) trusted_proxies: Vec<Said<TrustedProxy>>,
    pub(super) https_redirect: Option<bool>,
    pub(super) http3: Option<Said<bool>>,
}

/// Reads them all, noting every error.
pub(super) fn gather(flags: &Serve, env: impl Fn(&str) -> Option<String>, errors: &mut Vec<ConfigError>) -> Overrides {
    let mut sayings = Sayings { env, errors };
    Overrides {
        source: sayings.text("", flags.source.as_deref(), "SEAWALL_SOURCE"),
        kind: sayings.one("--kind", flags.kind.as_deref(), "SEAWALL_KIND"),
        listen: sayings.listen(&flags.listen),
        domain: sayings.list("--domain", &flags.domain, "SEAWALL_DOMAIN"),
        redirect_from: sayings.list("--redirect-from", &flags.redirect_from, "SEAWALL_REDIRECT_FROM"),
        route: sayings.list("--route", &flags.route, "SEAWALL_ROUTE"),
        tls_listen: sayings.list("--tls-listen", &flags.tls_listen, "SEAWALL_TLS_LISTEN"),
        tls_cert: sayings.text("--tls-cert", flags.tls_cert.as_deref(), "SEAWALL_TLS_CERT"),
        tls_key: sayings.text("--tls-key", flags.tls_key.as_deref(), "SEAWALL_TLS_KEY"),
        admin: sayings.one("--admin", flags.admin.as_deref(), "SEAWALL_ADMIN"),
        memory: sayings.one("--memory", flags.memory.as_deref(), "SEAWALL_MEMORY"),
        cache_dir: sayings.text("--cache-dir", flags.cache_dir.as_deref(), "SEAWALL_CACHE_DIR"),
        workers: sayings.one("--workers", flags.workers.as_deref(), "SEAWALL_WORKERS"),
        access_log: sayings.one("--access-log", flags.access_log.as_deref(), "SEAWALL_ACCESS_LOG"),
        log_format: sayings.one("--log-format", flags.log_format.as_deref(), "SEAWALL_LOG_FORMAT"),
        hold: sayings.one("--hold", flags.hold.as_deref(), "SEAWALL_HOLD"),
        trusted_proxies: sayings.list("--trusted-proxies", &flags.trusted_proxies, "SEAWALL_TRUSTED_PROXIES"),
        https_redirect: sayings.flag("--https-redirect", flags.https_redirect, "SEAWALL_HTTPS_REDIRECT").map(|said| said.value),
        http3: sayings.flag("--http3", flags.http3, "SEAWALL_HTTP3"),
    }
}

struct Sayings<'a, E> {
    env: E,
    errors: &'a mut Vec<ConfigError>,
}

impl<E: Fn(&str) -> Option<String>> Sayings<'_, E> {
    fn text(&self, flag: &'static str, value: Option<&str>, variable: &'static str) -> Option<Said<String>> {
        if let Some(value) = value {
            return Some(Said { value: value.to_owned(), place: Place::Flag(flag, value.to_owned()) });
        }
        let value = self.variable(variable)?;
        Some(Said { value: value.clone(), place: Place::Environment(variable, value) })
    }

    /// Reads a variable. An empty variable counts as absent, because Compose files and unit files cannot leave one out conditionally.
    fn variable(&self, name: &str) -> Option<String> {
        (self.env)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    fn one<T: FromStr<Err = Mistake>>(&mut self, flag: &'static str, value: Option<&str>, variable: &'static str) -> Option<Said<T>> {
        let Said { value, place } = self.text(flag, value, variable)?;
        self.parse(&value, place)
    }

    fn parse<T: FromStr<Err = Mistake>>(&mut self, text: &str, place: Place) -> Option<Said<T>> {
        match text.parse() {
            Ok(value) => Some(Said { value, place }),
            Err(mistake) => {
                self.errors.push(mistake.at(place));
                None
            }
        }
    }

    /// A flag that needs no value; the variable does.
    fn flag(&mut self, name: &'static str, flag: bool, variable: &'static str) -> Option<Said<bool>> {
        if flag {
            return Some(Said { value: true, place: Place::Flag(name, String::new()) });
        }
        let said = |value, text: &str| Some(Said { value, place: Place::Environment(variable, text.to_owned()) });
        match self.variable(variable)?.as_str() {
            text @ ("true" | "1" | "yes" | "on") => said(true, text),
            text @ ("false" | "0" | "no" | "off") => said(false, text),
            other => {
                let mistake = Mistake::new(format!("\"{other}\" is neither true nor false"), "write true or false");
                self.errors.push(mistake.at(Place::Environment(variable, other.to_owned())));
                None
            }
        }
    }

    /// What may be said several times; in a variable, separated by commas.
    fn list<T: FromStr<Err = Mistake>>(&mut self, flag: &'static str, flags: &[String], variable: &'static str) -> Vec<Said<T>> {
        if !flags.is_empty() {
            return flags.iter().filter_map(|text| self.parse(text, Place::Flag(flag, text.clone()))).collect();
        }
        let list = self.variable(variable).unwrap_or_default();
        let each = list.split(',').map(str::trim).filter(|text| !text.is_empty());
        each.filter_map(|text| self.parse(text, Place::Environment(variable, text.to_owned()))).collect()
    }

    fn listen(&mut self, flags: &[String]) -> Vec<Said<Listen>> {
        if !flags.is_empty() || self.variable("SEAWALL_LISTEN").is_some() {
            return self.list("--listen", flags, "SEAWALL_LISTEN");
        }
        let Some(port) = self.variable("PORT") else { return Vec::new() };
        let place = Place::Environment("PORT", port.clone());
        // Platforms that set PORT route to any address of the container, so loopback alone would not be reached.
        match port.parse::<u16>() {
            Ok(port) if port > 0 => vec![Said { value: Listen::Tcp(([0, 0, 0, 0], port).into()), place }],
            _ => {
                self.errors.push(Mistake::new(format!("\"{port}\" is not a port"), "a port is a number from 1 to 65535").at(place));
                Vec::new()
            }
        }
    }
}
