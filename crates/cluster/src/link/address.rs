//! The address of the server, as the operator wrote it.

use std::{fmt, net::IpAddr};

use semantics::percent;

/// The port of a server that names none.
const PORT: u16 = 6379;
/// The port of a Sentinel that names none.
const SENTINEL_PORT: u16 = 26379;
/// The most servers that an address names.
const HOSTS_MAX: usize = 32;

/// The address of the server: `redis://[user:password@]host[:port][/database]`, `rediss://` with TLS,
/// `redis+sentinel://host,host/NAME[/database]` or `redis+cluster://host,host`. `valkey` may stand for `redis`.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    pub(super) kind: Kind,
    pub(super) hosts: Vec<Host>,
    pub(super) login: Login,
    tls: bool,
}

/// Says how the primary is found.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// It is the one of the hosts that is a primary.
    Plain,
    /// Sentinels know it by this name.
    Sentinel(String),
    /// The servers of a cluster say which of them has our keys.
    Cluster,
}

/// A server's name or address, and its port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Host {
    pub(super) name: String,
    pub(super) port: u16,
}

/// A user's name and password, and the number of the database. There is no `Debug`, as it has the password.
#[derive(Clone, PartialEq, Eq, Default)]
pub(super) struct Login {
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) database: u32,
}

/// The reason why a text is not an address of a server, as a sentence without a full stop. It has no password in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadAddress(pub String);

impl Address {
    /// Reads one address, or several of the same kind.
    ///
    /// # Errors
    /// When one of them cannot be read, or they do not go together.
    pub fn read<S: AsRef<str>>(urls: &[S]) -> Result<Self, BadAddress> {
        let mut read = urls.iter().map(|url| Self::read_one(url.as_ref().trim()));
        let mut whole = read.next().ok_or_else(|| BadAddress("no address is given".to_owned()))??;
        for next in read {
            let next = next?;
            if (&next.kind, &next.login, next.tls) != (&whole.kind, &whole.login, whole.tls) {
                return Err(BadAddress("the addresses differ in more than their hosts".to_owned()));
            }
            whole.hosts.extend(next.hosts);
        }
        if whole.hosts.len() > HOSTS_MAX {
            return Err(BadAddress(format!("there are more than {HOSTS_MAX} hosts")));
        }
        Ok(whole)
    }

    fn read_one(url: &str) -> Result<Self, BadAddress> {
        // What is wrong is said without the address itself: it may have a password in it.
        let bad = |why: &str| Err(BadAddress(why.to_owned()));
        let Some((scheme, rest)) = url.split_once("://") else {
            return bad("it does not begin with redis://, rediss://, redis+sentinel:// or redis+cluster://");
        };
        let (software, kind) = scheme.split_once('+').map_or((scheme, None), |(software, kind)| (software, Some(kind)));
        let tls = match software {
            "redis" | "valkey" => false,
            "rediss" | "valkeys" => true,
            _ => return bad("it does not begin with redis://, rediss://, redis+sentinel:// or redis+cluster://"),
        };
        if rest.contains(['?', '#']) {
            return bad("it has a ? or #: write these characters of a password as %3F and %23");
        }
        // The last @ ends the password, which should have %40 in place of its own.
        let (login, rest) = rest.rsplit_once('@').map_or((None, rest), |(login, rest)| (Some(login), rest));
        let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
        let mut path = path.split('/').filter(|part| !part.is_empty());
        let (kind, port) = match kind {
            None => (Kind::Plain, PORT),
            Some("sentinel") => match path.next().and_then(decoded) {
                Some(name) => (Kind::Sentinel(name), SENTINEL_PORT),
                None => return bad("the name that the Sentinels know the primary by is missing: redis+sentinel://host,host/NAME"),
            },
            Some("cluster") => (Kind::Cluster, PORT),
            Some(_) => return bad("after the + there is neither sentinel nor cluster"),
        };
        let database = match path.next() {
            None => 0,
            Some(_) if kind == Kind::Cluster => return bad("a cluster has no databases: leave out what is after the hosts"),
            Some(number) => match number.parse() {
                Ok(number) => number,
                Err(_) => return bad("the database at its end is not a number"),
            },
        };
        if path.next().is_some() {
            return bad("there is something after the database");
        }
        let (user, password) = match login {
            None => (None, None),
            Some(login) => {
                let (user, password) = login.split_once(':').map_or((login, None), |(user, password)| (user, Some(password)));
                let (Some(user), Some(password)) = (decoded(user), password.map_or(Some(String::new()), decoded)) else {
                    return bad("the user or the password has a % without two hexadecimal digits after it: write % as %25");
                };
                (Some(user).filter(|user| !user.is_empty()), Some(password).filter(|password| !password.is_empty()))
            }
        };
        if user.is_some() && password.is_none() {
            return bad("there is a user without a password: write user:password@, or :password@ without a user");
        }
        let hosts = hosts.split(',').map(|host| Host::read(host.trim(), port)).collect::<Option<Vec<_>>>();
        match hosts {
            Some(hosts) => Ok(Self { kind, hosts, login: Login { user, password, database }, tls }),
            None => bad("a host is missing, or its port is not a number from 1 to 65535"),
        }
    }

    /// Returns whether every server that it names is this machine, by the loopback addresses.
    #[must_use]
    pub fn is_this_machine(&self) -> bool {
        let loops = |host: &Host| host.name == "localhost" || host.name.parse().is_ok_and(|address: IpAddr| address.is_loopback());
        self.hosts.iter().all(loops)
    }

    /// Returns whether connections are made with TLS.
    #[must_use]
    pub const fn has_tls(&self) -> bool {
        self.tls
    }

    /// Returns whether a password is given.
    #[must_use]
    pub const fn has_password(&self) -> bool {
        self.login.password.is_some()
    }

    /// Returns whether it names more than one server, or who knows of several: then there are replicas.
    #[must_use]
    pub fn has_replicas(&self) -> bool {
        self.kind != Kind::Plain || self.hosts.len() > 1
    }

    /// Returns whether Sentinels say which server is the primary.
    #[must_use]
    pub const fn has_sentinels(&self) -> bool {
        matches!(self.kind, Kind::Sentinel(_))
    }

    /// Returns the beginning of the URL of one server.
    pub(super) const fn scheme(&self) -> &'static str {
        if self.tls { "rediss" } else { "redis" }
    }
}

impl Host {
    /// Reads a host with or without a port; the address of IP version 6 is in brackets.
    pub(super) fn read(text: &str, port: u16) -> Option<Self> {
        let (name, rest) = match text.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?,
            None => text.split_at(text.find(':').unwrap_or(text.len())),
        };
        let port = match rest {
            "" => port,
            rest => rest.strip_prefix(':')?.parse().ok().filter(|port| *port > 0)?,
        };
        let fine = !name.is_empty() && name.len() <= 255 && !name.contains(|c: char| c.is_whitespace() || c.is_control());
        fine.then(|| Self { name: name.to_owned(), port })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.contains(':') { write!(f, "[{}]:{}", self.name, self.port) } else { write!(f, "{}:{}", self.name, self.port) }
    }
}

/// Writes the address without user and password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Plain => "",
            Kind::Sentinel(_) => "+sentinel",
            Kind::Cluster => "+cluster",
        };
        write!(f, "{}{kind}://", self.scheme())?;
        for (at, host) in self.hosts.iter().enumerate() {
            write!(f, "{}{host}", if at == 0 { "" } else { "," })?;
        }
        if let Kind::Sentinel(name) = &self.kind {
            write!(f, "/{name}")?;
        }
        if self.login.database == 0 { Ok(()) } else { write!(f, "/{}", self.login.database) }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Replaces `%` and two hexadecimal digits by the byte that they stand for (RFC 3986 §2.1). Returns `None` if they do not stand for UTF-8.
fn decoded(text: &str) -> Option<String> {
    String::from_utf8(percent::decoded_strictly(text.as_bytes())?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        for (given, shown) in [
            ("redis://10.0.0.5", "redis://10.0.0.5:6379"),
            ("valkey://10.0.0.5:7000/3", "redis://10.0.0.5:7000/3"),
            ("rediss://seawall:s3cret@cache.example", "rediss://cache.example:6379"),
            ("redis://:p%40ss%2Fword@[::1]:7000", "redis://[::1]:7000"),
            ("redis+sentinel://a,b:26380/main", "redis+sentinel://a:26379,b:26380/main"),
            ("rediss+sentinel://u:s3cret@a/main/2", "rediss+sentinel://a:26379/main/2"),
            ("redis+cluster://a:7000,b:7001", "redis+cluster://a:7000,b:7001"),
        ] {
            let address = Address::read(&[given]).expect(given);
            assert_eq!(address.to_string(), shown, "{given}");
            assert_eq!(format!("{address:?}"), shown, "{given}");
        }
    }

    #[test]
    fn a_user_and_a_password_are_decoded() {
        let address = Address::read(&["redis://sea%20wall:p%40ss%2Fw%25rd@host"]).expect("an address");
        assert_eq!(address.login.user.as_deref(), Some("sea wall"));
        assert_eq!(address.login.password.as_deref(), Some("p@ss/w%rd"));
        assert!(address.has_password());
        let address = Address::read(&["redis://:only@host"]).expect("an address");
        assert_eq!((address.login.user, address.login.password.as_deref()), (None, Some("only")));
    }

    #[test]
    fn several_addresses_are_one_if_they_differ_in_their_hosts_alone() {
        let address = Address::read(&["redis://:s@a", "redis://:s@b"]).expect("an address");
        assert_eq!(address.to_string(), "redis://a:6379,b:6379");
        assert!(address.has_replicas());
        for other in ["redis://:t@b", "rediss://:s@b", "redis://:s@b/1", "redis+cluster://:s@b"] {
            assert!(Address::read(&["redis://:s@a", other]).is_err(), "{other}");
        }
        assert!(Address::read::<&str>(&[]).is_err());
    }

    #[test]
    fn what_cannot_be_read_is_refused_without_showing_it() {
        for bad in [
            "s3cret",
            "http://:s3cret@host",
            "redis://",
            "redis://:s3cret@",
            "redis://:s3cret@host:0",
            "redis://:s3cret@host:70000",
            "redis://:s3cret@host/one",
            "redis://:s3cret@host/1/2",
            "redis://:s3cret%2@host",
            "redis://s3cret@host",
            "redis://:s3cret?x@host",
            "redis+sentinel://:s3cret@host",
            "redis+cluster://:s3cret@host/1",
            "redis+proxy://:s3cret@host",
            "redis://:s3cret@[::1",
        ] {
            let error = Address::read(&[bad]).expect_err(bad);
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn loopback_addresses_are_this_machine() {
        for (url, own) in [("redis://127.0.0.1", true), ("redis://localhost", true), ("redis://[::1]", true), ("redis://10.0.0.5", false)] {
            assert_eq!(Address::read(&[url]).expect(url).is_this_machine(), own, "{url}");
        }
        assert!(!Address::read(&["redis+cluster://127.0.0.1,10.0.0.5"]).expect("an address").is_this_machine());
    }
}
