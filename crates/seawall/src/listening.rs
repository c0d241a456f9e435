//! The sockets that a server listens on. What they are for is said by the settings; who accepts on them is a worker's affair.

use std::{io, net::SocketAddr, path::PathBuf};

use edge::{BindError, Listener, Socket};

use crate::{
    config::settings::{Listen, Settings},
    passed::PassedSockets,
};

/// The sockets to which visitors connect.
pub(crate) struct Bound {
    /// The listeners of each address, one for each worker.
    pub(crate) listeners: Vec<Vec<Listener>>,
    /// The addresses, with the ports that the system chose.
    pub(crate) listening: Vec<Socket>,
    pub(crate) own_paths: OwnPaths,
}

/// Unix sockets that this process has made. They are removed when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct OwnPaths(Vec<PathBuf>);

impl Drop for OwnPaths {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Bound {
    /// Binds all addresses that the settings name, each once for each worker. A socket that another process has passed on is taken instead.
    ///
    /// # Errors
    /// When an address cannot be listened on.
    pub(crate) fn to(settings: &Settings, workers: usize, passed: &mut PassedSockets) -> anyhow::Result<Self> {
        let mut all = Self { listeners: Vec::new(), listening: Vec::new(), own_paths: OwnPaths::default() };
        let plain = settings.server.listen.iter().map(|listen| match listen {
            Listen::Tcp(address) => Socket::Tcp(*address),
            Listen::Unix(path) => Socket::Unix(path.clone()),
        });
        for socket in plain.chain(settings.tls_listen().iter().copied().map(Socket::Tls)) {
            let listeners = match all.bind(&socket, workers, passed) {
                Err(error) if error.lacks_family() && beside_ipv4(&socket, settings) => {
                    tracing::warn!("IPv6 is off on this machine, so Seawall does not listen on {socket}: visitors reach it over IPv4 only");
                    continue;
                }
                listeners => listeners.map_err(with_remedy)?,
            };
            let bound = listeners.first().and_then(Listener::socket).unwrap_or(socket);
            all.listeners.push(listeners);
            all.listening.push(bound.clone());
            // At the same port, also where the system chose that.
            if let (Socket::Tls(address), Some(_)) = (bound, settings.http3()) {
                let socket = Socket::Quic(address);
                let listeners = all.bind(&socket, workers, passed).map_err(with_remedy)?;
                all.listeners.push(listeners);
                all.listening.push(socket);
            }
        }
        Ok(all)
    }

    fn bind(&mut self, socket: &Socket, workers: usize, passed: &mut PassedSockets) -> Result<Vec<Listener>, BindError> {
        if let Some(passed) = passed.take(socket) {
            return passed.share(socket, workers);
        }
        let listeners = edge::bind(socket, workers)?;
        if let Socket::Unix(path) = socket {
            self.own_paths.0.push(path.clone());
        }
        Ok(listeners)
    }
}

/// Adds to an error what can be done about it.
fn with_remedy(error: BindError) -> anyhow::Error {
    let flag = if matches!(error.socket, Socket::Tls(_) | Socket::Quic(_)) { "--tls-listen" } else { "--listen" };
    let remedy = match error.source.kind() {
        io::ErrorKind::AddrInUse => {
            format!("If that is a Seawall, `seawall status` says which; end the other program, or name another address with {flag}.")
        }
        io::ErrorKind::PermissionDenied => format!(
            "`sudo setcap cap_net_bind_service=+ep $(command -v seawall)` permits it to this program; or name another address with {flag}."
        ),
        _ => return error.into(),
    };
    let said = format!("{error}\n  {remedy}");
    anyhow::Error::new(error.source).context(said)
}

/// Tells whether the settings also listen on every IPv4 address at the same port.
fn beside_ipv4(socket: &Socket, settings: &Settings) -> bool {
    let is_beside = |other: &SocketAddr, port: u16| other.is_ipv4() && other.ip().is_unspecified() && other.port() == port;
    match socket {
        Socket::Tcp(address) => {
            settings.server.listen.iter().any(|other| matches!(other, Listen::Tcp(other) if is_beside(other, address.port())))
        }
        Socket::Tls(address) => settings.tls_listen().iter().any(|other| is_beside(other, address.port())),
        Socket::Quic(_) | Socket::Unix(_) => false,
    }
}
