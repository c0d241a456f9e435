//! The server as a place that one connects to: which of several servers is the primary, and what all connections have in common.

use std::{fmt, sync::Arc, time::Duration};

use redis::{Pipeline, cmd};
use rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs, pki_types::CertificateDer};
use rustls_pki_types::pem::PemObject as _;
use tokio::runtime::Handle;

use super::{
    Address, Link, LinkError, REPLY_BYTES_MAX, Seals, Secret, Values, Waiter,
    address::{Host, Kind},
    connection::{Bounds, Connection},
    reply,
    sentinels::Sentinels,
};
use crate::shelf::Shelf;

/// The number of times that one server of a cluster may send us on to another one.
const MOVES_MAX: usize = 3;
/// The oldest version that knows all commands of ours.
const VERSION_MIN: (u32, u32) = (6, 2);

/// Says how the server is reached, and what is said there.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// The address of the server.
    pub address: Address,
    /// The name of the cluster: letters, digits, `.`, `_` and `-`, at most 64.
    pub cluster: String,
    /// The secret that seals everything.
    pub secret: Secret,
    /// The number of replicas that must have an entry before it counts as written.
    pub replicas: u32,
    /// The time that one round trip may take, and connecting to one server.
    pub deadline: Duration,
    /// The certificates of authorities that are trusted in place of the system's, PEM.
    pub authorities: Option<Vec<u8>>,
}

/// The server as a place that one connects to. A clone is the same one.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    address: Address,
    keys: Keys,
    seals: Seals,
    replicas: u32,
    deadline: Duration,
    tls: Option<Arc<ClientConfig>>,
    sentinels: Option<Sentinels>,
}

/// The names of our keys. The part in braces alone says which server of a cluster has them.
pub(super) struct Keys {
    pub(super) purges: String,
    pub(super) machines: String,
    pub(super) confirmed: String,
    prefix: String,
}

impl Keys {
    fn new(cluster: &str) -> Self {
        let prefix = format!("seawall:{{{cluster}}}:");
        let key = |name: &str| format!("{prefix}{name}");
        Self { purges: key("purges"), machines: key("machines"), confirmed: key("confirmed"), prefix }
    }

    /// Returns the key of a value.
    pub(super) fn value(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}

/// The software that a link leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// The address of the server, without secrets, such as `redis://10.0.0.5:6379`.
    pub address: String,
    /// The software, such as `valkey` or `redis`.
    pub software: String,
    /// The version of the server.
    pub version: String,
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} {})", self.address, self.software, self.version)
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Engine({})", self.0.address)
    }
}

impl Engine {
    /// Prepares what all connections have in common. Nothing is sent.
    ///
    /// # Errors
    /// When the name of the cluster or the certificates cannot be used.
    pub fn new(options: EngineOptions) -> Result<Self, LinkError> {
        let EngineOptions { address, cluster, secret, replicas, deadline, authorities } = options;
        let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if cluster.is_empty() || cluster.len() > 64 || !cluster.bytes().all(fine) {
            return Err(LinkError::Options(
                "the cluster's name is to have 1 to 64 letters, digits, dots, hyphens and underscores".to_owned(),
            ));
        }
        let tls = if address.has_tls() { Some(trust(authorities.as_deref())?) } else { None };
        let seals = Seals::new(&cluster, &secret);
        let sentinels = match &address.kind {
            Kind::Sentinel(name) => Some(Sentinels::new(name, &address.hosts, &address.login, tls.as_ref(), deadline)),
            Kind::Plain | Kind::Cluster => None,
        };
        Ok(Self(Arc::new(Inner { address, keys: Keys::new(&cluster), seals, replicas, deadline, tls, sentinels })))
    }

    /// Returns the seals of this cluster.
    #[must_use]
    pub fn seals(&self) -> &Seals {
        &self.0.seals
    }

    /// Returns where the server is.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.0.address
    }

    /// Returns how long one round trip may take.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        self.0.deadline
    }

    pub(super) fn keys(&self) -> &Keys {
        &self.0.keys
    }

    pub(super) fn replicas(&self) -> u32 {
        self.0.replicas
    }

    /// Finds the primary and connects to it.
    ///
    /// It takes the deadline for each server that is asked at most. It is to be called in the runtime that the connection shall live in.
    ///
    /// # Errors
    /// When there is none.
    pub async fn connect(&self) -> Result<Link, LinkError> {
        let (connection, server) = self.primary(1, REPLY_BYTES_MAX).await?;
        Ok(Link::new(self.clone(), connection, server))
    }

    /// Connects once more, to wait there for entries and confirmations.
    ///
    /// # Errors
    /// When there is no primary.
    pub async fn waiter(&self) -> Result<Waiter, LinkError> {
        let (connection, _) = self.primary(1, REPLY_BYTES_MAX).await?;
        Waiter::begin(self.clone(), Arc::new(connection)).await
    }

    /// Returns the single values of this cluster, over one more connection that `runtime` drives. It is made when it is first needed, and anew
    /// when it is lost.
    #[must_use]
    pub fn values(&self, runtime: Handle) -> Values {
        Values::new(self.clone(), runtime)
    }

    /// Returns the shelf of this cluster, over such values.
    #[must_use]
    pub fn shelf(&self, runtime: Handle) -> Shelf {
        Shelf::new(self.seals().clone(), self.values(runtime), self.deadline())
    }

    /// Connects to the primary that has our keys, and says what it is.
    pub(super) async fn primary(&self, at_once: usize, reply_bytes_max: usize) -> Result<(Connection, Server), LinkError> {
        let bounds = Bounds { at_once, reply_bytes_max, deadline: self.0.deadline };
        if let Some(sentinels) = &self.0.sentinels {
            return self.open(&sentinels.primary().await?, bounds).await;
        }
        let mut last = None;
        // The first error is about the server that is named first, but a server that answers "I am a replica" knows more than one that is away.
        for host in &self.0.address.hosts {
            let found = match self.0.address.kind {
                Kind::Plain | Kind::Sentinel(_) => self.open(host, bounds).await,
                Kind::Cluster => self.by_cluster(host, bounds).await,
            };
            match found {
                Ok(found) => return Ok(found),
                Err(error) if last.is_none() || matches!(error, LinkError::NotPrimary { .. } | LinkError::Denied { .. }) => {
                    last = Some(error)
                }
                Err(_) => {}
            }
        }
        Err(last.unwrap_or_else(|| LinkError::Options("no server is named".to_owned())))
    }

    /// Asks the Sentinels, if there are any, whether a server is still the primary.
    ///
    /// # Errors
    /// When more than half of them do not say so.
    pub(super) async fn is_still_primary(&self, server: &str) -> Result<(), LinkError> {
        let Some(sentinels) = &self.0.sentinels else { return Ok(()) };
        let primary = sentinels.primary().await?;
        if server == format!("{}://{primary}", self.0.address.scheme()) {
            return Ok(());
        }
        Err(LinkError::NotPrimary { server: server.to_owned(), why: format!("the Sentinels say that {primary} is") })
    }

    /// Connects to a server that should be a primary.
    async fn open(&self, host: &Host, bounds: Bounds) -> Result<(Connection, Server), LinkError> {
        let connection = Connection::open(host, Some(&self.0.address.login), self.0.tls.as_ref(), bounds).await?;
        let mut commands = Pipeline::new();
        commands.cmd("INFO").arg("server").cmd("INFO").arg("replication");
        let replies = connection.step(&commands, bounds.deadline).await?;
        replies.iter().try_for_each(|reply| connection.fine(reply))?;
        let mut replies = replies.into_iter().map(reply::info);
        let (Some(Some(server)), Some(Some(replication))) = (replies.next(), replies.next()) else {
            return Err(connection.garbled("what INFO says"));
        };
        let field = |name: &str| replication.get(name).map_or("unknown", String::as_str);
        if field("role") != "master" {
            let why = format!("it is a replica of {}:{}", field("master_host"), field("master_port"));
            return Err(LinkError::NotPrimary { server: connection.server().to_owned(), why });
        }
        let field = |name: &str| server.get(name).cloned();
        // Valkey says its own version beside the one of Redis that it stands for.
        let software = field("server_name").unwrap_or_else(|| "redis".to_owned());
        let version = field(&format!("{software}_version")).or_else(|| field("redis_version")).unwrap_or_default();
        let mut numbers = version.split('.').map_while(|number| number.parse().ok());
        if (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) < VERSION_MIN {
            let (major, minor) = VERSION_MIN;
            let why = format!("it is {software} {version}, and {major}.{minor} or later is needed");
            return Err(LinkError::Refused { server: connection.server().to_owned(), why });
        }
        let server = Server { address: connection.server().to_owned(), software, version };
        Ok((connection, server))
    }

    /// Asks a server of a cluster for a key of ours: whoever does not have it names the one that has.
    async fn by_cluster(&self, host: &Host, bounds: Bounds) -> Result<(Connection, Server), LinkError> {
        let mut host = host.clone();
        for _ in 0..=MOVES_MAX {
            let connection = Connection::open(&host, Some(&self.0.address.login), self.0.tls.as_ref(), bounds).await?;
            let mut question = cmd("EXISTS");
            question.arg(&self.0.keys.machines);
            match connection.one(question, bounds.deadline).await {
                Ok(_) => {
                    drop(connection);
                    return self.open(&host, bounds).await;
                }
                Err(LinkError::NotPrimary { why, .. }) if why.starts_with("MOVED ") => {
                    host = moved(&why, &host).ok_or_else(|| connection.garbled("where our keys are"))?;
                }
                Err(error) => return Err(error),
            }
        }
        Err(LinkError::NotPrimary { server: self.0.address.to_string(), why: "each server names another one that has our keys".to_owned() })
    }
}

/// Returns where `MOVED slot host:port` leads. Without a host it is the same one, on another port.
fn moved(said: &str, from: &Host) -> Option<Host> {
    let place = said.split(' ').nth(2)?;
    let (name, port) = place.rsplit_once(':')?;
    let name = if name.is_empty() { &from.name } else { name.trim_start_matches('[').trim_end_matches(']') };
    Some(Host { name: name.to_owned(), port: port.parse().ok().filter(|port| *port > 0)? })
}

/// Makes the client side of TLS 1.2 and 1.3, which trusts these authorities, or else the system's.
pub(crate) fn trust(authorities: Option<&[u8]>) -> Result<Arc<ClientConfig>, LinkError> {
    let mut roots = RootCertStore::empty();
    match authorities {
        Some(pem) => {
            let bad = |what: String| LinkError::Options(format!("the certificates of authorities cannot be used: {what}"));
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate = certificate.map_err(|error| bad(error.to_string()))?;
                roots.add(certificate).map_err(|error| bad(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(bad("there is none in the file".to_owned()));
            }
        }
        // Systems carry old roots that do not parse; one of those must not take the others away.
        None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
    }
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| LinkError::Options(error.to_string()))?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_leads_to_another_server_or_to_another_port_of_this_one() {
        let here = Host { name: "10.0.0.1".to_owned(), port: 7000 };
        for (said, to) in [
            ("MOVED 1234 10.0.0.2:7001", Some(("10.0.0.2", 7001))),
            ("MOVED 1234 :7001", Some(("10.0.0.1", 7001))),
            ("MOVED 1234 ::1:7001", Some(("::1", 7001))),
            ("MOVED 1234", None),
            ("MOVED 1234 host", None),
            ("MOVED 1234 host:0", None),
        ] {
            assert_eq!(moved(said, &here), to.map(|(name, port)| Host { name: name.to_owned(), port }), "{said}");
        }
    }

    #[test]
    fn a_bad_name_and_bad_certificates_are_refused() {
        let options = || EngineOptions {
            address: Address::read(&["rediss://host"]).expect("an address"),
            cluster: "seawall".to_owned(),
            secret: Secret::new("0123456789abcdef").expect("a secret"),
            replicas: 0,
            deadline: Duration::from_secs(1),
            authorities: None,
        };
        for cluster in ["", "a b", "a{b}", "a:b", &"a".repeat(65)] {
            assert!(Engine::new(EngineOptions { cluster: cluster.to_owned(), ..options() }).is_err(), "{cluster}");
        }
        for pem in ["", "hello", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            assert!(Engine::new(EngineOptions { authorities: Some(pem.into()), ..options() }).is_err(), "{pem}");
        }
    }
}
