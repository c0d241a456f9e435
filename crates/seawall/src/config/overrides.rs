//! Reads what flags and environment say, flags first: the values that go before the file's.

use std::str::FromStr;

use super::{
    addresses::{AdminAddress, TrustedProxy},
    cluster,
    error::{ConfigError, Mistake, Place},
    flags::{self, Flag},
    ghost::{NOT_SHOWN, SecretText, Secrets},
    php::PhpServer,
    routes::RouteWord,
    settings::{AccessLog, Listen, LogFormat},
    units::{ByteSize, Count, Period},
    words::{HostPattern, KindWord},
};
use crate::cli::Serve;

/// A value and the place where it was written.
#[derive(Clone, Debug)]
pub(super) struct WithPlace<T> {
    pub(super) value: T,
    pub(super) place: Place,
}

/// The settings that flags and variables can set.
#[derive(Clone, Debug, Default)]
pub(super) struct Overrides {
    pub(super) source: Option<WithPlace<String>>,
    pub(super) kind: Option<WithPlace<KindWord>>,
    pub(super) php: Option<WithPlace<PhpServer>>,
    pub(super) listen: Vec<WithPlace<Listen>>,
    pub(super) domain: Vec<WithPlace<HostPattern>>,
    pub(super) redirect_from: Vec<WithPlace<HostPattern>>,
    pub(super) route: Vec<WithPlace<RouteWord>>,
    pub(super) tls_listen: Vec<WithPlace<Listen>>,
    pub(super) tls_cert: Option<WithPlace<String>>,
    pub(super) tls_key: Option<WithPlace<String>>,
    pub(super) admin: Option<WithPlace<AdminAddress>>,
    pub(super) memory: Option<WithPlace<ByteSize>>,
    pub(super) cache_dir: Option<WithPlace<String>>,
    pub(super) workers: Option<WithPlace<Count>>,
    pub(super) access_log: Option<WithPlace<AccessLog>>,
    pub(super) log_format: Option<WithPlace<LogFormat>>,
    pub(super) hold: Option<WithPlace<Period>>,
    pub(super) trusted_proxies: Vec<WithPlace<TrustedProxy>>,
    pub(super) https_redirect: Option<bool>,
    pub(super) http3: Option<WithPlace<bool>>,
    pub(super) drafts: Option<WithPlace<bool>>,
    pub(super) ghost: Secrets,
    pub(super) wordpress_secret: Option<WithPlace<SecretText>>,
    pub(super) cluster: cluster::Variables,
}

/// Reads them all, noting every error.
pub(super) fn gather(typed: &Serve, env: impl Fn(&str) -> Option<String>, errors: &mut Vec<ConfigError>) -> Overrides {
    let mut sayings = Sayings { env, errors };
    Overrides {
        source: sayings.text(&flags::SOURCE, typed.source.as_deref()),
        kind: sayings.one(&flags::KIND, typed.kind.as_deref()),
        php: sayings.one(&flags::PHP, typed.php.as_deref()),
        listen: sayings.listen(&typed.listen),
        domain: sayings.list(&flags::DOMAIN, &typed.domain),
        redirect_from: sayings.list(&flags::REDIRECT_FROM, &typed.redirect_from),
        route: sayings.list(&flags::ROUTE, &typed.route),
        tls_listen: sayings.list(&flags::TLS_LISTEN, &typed.tls_listen),
        tls_cert: sayings.text(&flags::TLS_CERT, typed.tls_cert.as_deref()),
        tls_key: sayings.text(&flags::TLS_KEY, typed.tls_key.as_deref()),
        admin: sayings.one(&flags::ADMIN, typed.admin.as_deref()),
        memory: sayings.one(&flags::MEMORY, typed.memory.as_deref()),
        cache_dir: sayings.text(&flags::CACHE_DIR, typed.cache_dir.as_deref()),
        workers: sayings.one(&flags::WORKERS, typed.workers.as_deref()),
        access_log: sayings.one(&flags::ACCESS_LOG, typed.access_log.as_deref()),
        log_format: sayings.one(&flags::LOG_FORMAT, typed.log_format.as_deref()),
        hold: sayings.one(&flags::HOLD, typed.hold.as_deref()),
        trusted_proxies: sayings.list(&flags::TRUSTED_PROXIES, &typed.trusted_proxies),
        https_redirect: sayings.flag(&flags::HTTPS_REDIRECT, typed.https_redirect).map(|said| said.value),
        http3: sayings.flag(&flags::HTTP3, typed.http3),
        drafts: sayings.flag(&flags::DRAFTS, typed.drafts),
        ghost: Secrets { webhook: sayings.secret(&flags::GHOST_WEBHOOK_SECRET), member: sayings.secret(&flags::GHOST_MEMBER_SECRET) },
        wordpress_secret: sayings.secret(&flags::WORDPRESS_SECRET),
        cluster: cluster::Variables {
            url: sayings.secret(&flags::CLUSTER_URL),
            name: sayings.one(&flags::CLUSTER_NAME, None),
            machine: sayings.one(&flags::CLUSTER_MACHINE, None),
            secret: sayings.secret(&flags::CLUSTER_SECRET),
            secret_file: sayings.text(&flags::CLUSTER_SECRET_FILE, None),
        },
    }
}

struct Sayings<'a, E> {
    env: E,
    errors: &'a mut Vec<ConfigError>,
}

impl<E: Fn(&str) -> Option<String>> Sayings<'_, E> {
    fn text(&self, flag: &Flag, value: Option<&str>) -> Option<WithPlace<String>> {
        if let Some(value) = value {
            return Some(WithPlace { value: value.to_owned(), place: Place::Flag(flag.typed(), value.to_owned()) });
        }
        let value = self.variable(flag.variable)?;
        Some(WithPlace { value: value.clone(), place: Place::Environment(flag.variable, value) })
    }

    /// Reads a variable. An empty variable counts as absent, because Compose files and unit files cannot leave one out conditionally.
    fn variable(&self, name: &str) -> Option<String> {
        (self.env)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    fn one<T: FromStr<Err = Mistake>>(&mut self, flag: &Flag, value: Option<&str>) -> Option<WithPlace<T>> {
        let WithPlace { value, place } = self.text(flag, value)?;
        self.parse(&value, place)
    }

    /// Reads a secret from its variable. It has no flag, as everybody on the machine sees what a process was started with.
    fn secret<T: FromStr<Err = Mistake>>(&mut self, flag: &Flag) -> Option<WithPlace<T>> {
        let value = self.variable(flag.variable)?;
        self.parse(&value, Place::Environment(flag.variable, NOT_SHOWN.to_owned()))
    }

    fn parse<T: FromStr<Err = Mistake>>(&mut self, text: &str, place: Place) -> Option<WithPlace<T>> {
        match text.parse() {
            Ok(value) => Some(WithPlace { value, place }),
            Err(mistake) => {
                self.errors.push(mistake.at(place));
                None
            }
        }
    }

    /// Reads a flag that has no value; its variable has one.
    fn flag(&mut self, flag: &Flag, is_typed: bool) -> Option<WithPlace<bool>> {
        let variable = flag.variable;
        if is_typed {
            return Some(WithPlace { value: true, place: Place::Flag(flag.name, String::new()) });
        }
        let said = |value, text: &str| Some(WithPlace { value, place: Place::Environment(variable, text.to_owned()) });
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

    /// Reads a flag that can be given several times; its variable separates the values by commas.
    fn list<T: FromStr<Err = Mistake>>(&mut self, flag: &Flag, typed: &[String]) -> Vec<WithPlace<T>> {
        if !typed.is_empty() {
            return typed.iter().filter_map(|text| self.parse(text, Place::Flag(flag.name, text.clone()))).collect();
        }
        let list = self.variable(flag.variable).unwrap_or_default();
        let each = list.split(',').map(str::trim).filter(|text| !text.is_empty());
        each.filter_map(|text| self.parse(text, Place::Environment(flag.variable, text.to_owned()))).collect()
    }

    fn listen(&mut self, typed: &[String]) -> Vec<WithPlace<Listen>> {
        if !typed.is_empty() || self.variable(flags::LISTEN.variable).is_some() {
            return self.list(&flags::LISTEN, typed);
        }
        let Some(port) = self.variable("PORT") else { return Vec::new() };
        let place = Place::Environment("PORT", port.clone());
        // Platforms that set PORT route to any address of the container, so loopback alone would not be reached.
        match port.parse::<u16>() {
            Ok(port) if port > 0 => vec![WithPlace { value: Listen::Tcp(([0, 0, 0, 0], port).into()), place }],
            _ => {
                self.errors.push(Mistake::new(format!("\"{port}\" is not a port"), "a port is a number from 1 to 65535").at(place));
                Vec::new()
            }
        }
    }
}
