//! The Sentinels of a primary, and what most of them say.
//!
//! One of them alone may be cut off with a primary that was replaced. So a primary counts only while more than half of those that are named say that
//! it is one. Whoever finds the next primary has heard so from more than half, too: one Sentinel has told both, and it never goes back to what it
//! said before. Therefore nobody has a lease of the old primary for longer than a lease after somebody purges at the next one.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use redis::{Value, cmd};
use rustls::ClientConfig;
use tokio::task::JoinSet;

use super::{
    LinkError,
    address::{Host, Login},
    connection::{Bounds, Connection},
    reply,
};

/// The most bytes of a reply of a Sentinel: it names a host and a port.
const REPLY_BYTES_MAX: usize = 4096;

/// All Sentinels that the operator named. Each is asked over a connection that is kept.
pub(super) struct Sentinels {
    /// The name that they have for the primary.
    name: String,
    all: Vec<Arc<Sentinel>>,
}

struct Sentinel {
    host: Host,
    /// The login at those Sentinels that want a password: most have none, though their servers have one.
    login: Login,
    tls: Option<Arc<ClientConfig>>,
    bounds: Bounds,
    connection: Mutex<Option<Arc<Connection>>>,
}

impl fmt::Debug for Sentinels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} Sentinels of {}", self.all.len(), self.name)
    }
}

impl Sentinels {
    pub(super) fn new(name: &str, hosts: &[Host], login: &Login, tls: Option<&Arc<ClientConfig>>, deadline: Duration) -> Self {
        let bounds = Bounds { at_once: 4, reply_bytes_max: REPLY_BYTES_MAX, deadline };
        let sentinel = |host: &Host| Sentinel {
            host: host.clone(),
            login: Login { database: 0, ..login.clone() },
            tls: tls.cloned(),
            bounds,
            connection: Mutex::new(None),
        };
        Self { name: name.to_owned(), all: hosts.iter().map(|host| Arc::new(sentinel(host))).collect() }
    }

    /// Returns what more than half of the Sentinels say the primary is. All are asked at once, and nobody is waited for when that is known.
    ///
    /// # Errors
    /// When they do not agree, or too few answer within the deadline.
    pub(super) async fn primary(&self) -> Result<Host, LinkError> {
        let most = self.all.len() / 2 + 1;
        let mut asked = JoinSet::new();
        for sentinel in &self.all {
            let (sentinel, name) = (Arc::clone(sentinel), self.name.clone());
            asked.spawn(async move { sentinel.ask(&name).await });
        }
        let mut said: BTreeMap<(String, u16), usize> = BTreeMap::new();
        let mut last = None;
        while let Some(answer) = asked.join_next().await {
            match answer {
                Ok(Ok(Host { name, port })) => {
                    let count = said.entry((name.clone(), port)).or_default();
                    *count += 1;
                    if *count >= most {
                        return Ok(Host { name, port });
                    }
                }
                Ok(Err(error)) => last = Some(error),
                Err(_) => {}
            }
        }
        let server = format!("{} of {} Sentinels", self.all.len() - said.values().sum::<usize>(), self.all.len());
        match last {
            Some(error) if self.all.len() == 1 => Err(error),
            Some(error) => {
                Err(LinkError::Unreachable { server, why: format!("more than half of them must say what the primary is; {error}") })
            }
            None => Err(LinkError::NotPrimary { server: "no server".to_owned(), why: "the Sentinels do not agree".to_owned() }),
        }
    }
}

impl Sentinel {
    async fn ask(&self, name: &str) -> Result<Host, LinkError> {
        let kept = self.connection.lock().as_ref().filter(|connection| !connection.is_closed()).cloned();
        if let Some(connection) = kept {
            let answer = self.ask_over(&connection, name).await;
            if answer.as_ref().is_err_and(LinkError::ends_link) {
                *self.connection.lock() = None;
            }
            return answer;
        }
        let connection = Arc::new(self.open(None).await?);
        let (connection, answer) = match self.ask_over(&connection, name).await {
            Err(LinkError::Denied { .. }) if self.login.password.is_some() => {
                let connection = Arc::new(self.open(Some(&self.login)).await?);
                let answer = self.ask_over(&connection, name).await;
                (connection, answer)
            }
            answer => (connection, answer),
        };
        if answer.is_ok() {
            *self.connection.lock() = Some(connection);
        }
        answer
    }

    async fn open(&self, login: Option<&Login>) -> Result<Connection, LinkError> {
        Connection::open(&self.host, login, self.tls.as_ref(), self.bounds).await
    }

    async fn ask_over(&self, connection: &Connection, name: &str) -> Result<Host, LinkError> {
        let mut question = cmd("SENTINEL");
        question.arg("GET-MASTER-ADDR-BY-NAME").arg(name);
        let reply = connection.one(question, self.bounds.deadline).await?;
        if reply == Value::Nil {
            let why = format!("this Sentinel knows no primary named {name}");
            return Err(LinkError::Refused { server: connection.server().to_owned(), why });
        }
        let found = reply::list(reply).and_then(|parts| {
            let [name, port] = <[Value; 2]>::try_from(parts).ok()?;
            Some(Host { name: reply::text(name)?, port: reply::text(port)?.parse().ok()? })
        });
        found.ok_or_else(|| connection.garbled("the address of a primary"))
    }
}
