//! The plan of a run: values that know nothing of each other, and are put together by [`run`](crate::run).

use std::{net::IpAddr, path::PathBuf, sync::Arc, time::Duration};

use crate::{permission::Cap, requests::RequestSet, schedule::Schedule};

/// The time that a client waits for an answer, unless the plan says otherwise.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// Everything that decides a run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The requests to make.
    pub requests: Arc<RequestSet>,
    /// The times at which it is asked.
    pub schedule: Schedule,
    /// The protocol in which it is asked.
    pub protocol: Protocol,
    /// The end of the run.
    pub stop: Stop,
    /// Says how connections are made and used.
    pub connections: Connections,
    /// The longest time that a client waits for its connection, and for each answer. A request that took longer is an error, and counts
    /// with this time.
    pub timeout: Duration,
    /// Time at the beginning whose requests are made, and counted apart.
    pub warm_up: Duration,
    /// The number of threads that make requests.
    pub workers: usize,
    /// The beginning of all random choices: the same seed makes the same choices.
    pub seed: u64,
    /// The most load, whatever the schedule wants; none: any.
    pub cap: Option<Cap>,
}

/// The version of HTTP, and how many requests may be under way on one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1, over TLS if the URL says so.
    Http1 {
        /// The requests that are sent before the answer to the first has come; 1 is none but that.
        pipeline: u16,
    },
    /// HTTP/2: by ALPN over TLS, with prior knowledge without (RFC 9113 §3.3).
    Http2 {
        /// Requests at a time on a connection.
        streams: u16,
    },
    /// HTTP/3, a preview.
    Http3 {
        /// Requests at a time on a connection.
        streams: u16,
    },
}

/// The end of a run: whichever comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stop {
    /// The number of requests after which the run ends, exactly; those of the warm-up come before them.
    pub requests: Option<u64>,
    /// The time after which the run ends, warm-up apart.
    pub after: Option<Duration>,
}

/// Says how connections are made and used.
#[derive(Debug, Clone)]
pub struct Connections {
    /// Use a connection for one request only.
    pub no_keepalive: bool,
    /// The share of TLS handshakes that try to resume an earlier session: 0 is none, 1 is all.
    pub resumed: f64,
    /// Accept any certificate.
    pub insecure: bool,
    /// Trust the certificates in this PEM file, beside those of the system.
    pub ca: Option<PathBuf>,
    /// Connect to this socket of the system instead of host and port.
    pub unix: Option<PathBuf>,
    /// Connect to this address instead of what the host's name leads to.
    pub connect_to: Option<std::net::SocketAddr>,
    /// The addresses of each origin of the set, in its order, as they were when the targets were permitted: nothing else is connected to. Empty: names
    /// are resolved when the run begins.
    pub addresses: Vec<Vec<std::net::SocketAddr>>,
    /// Connect from these addresses in turns: each has some 28,000 ports.
    pub sources: Vec<IpAddr>,
}

impl Default for Connections {
    fn default() -> Self {
        Self {
            no_keepalive: false,
            resumed: 1.0,
            insecure: false,
            ca: None,
            unix: None,
            connect_to: None,
            addresses: Vec::new(),
            sources: Vec::new(),
        }
    }
}
