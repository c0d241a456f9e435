//! The service manager may bind sockets and pass them (systemd.socket(5), sd_listen_fds(3)). It keeps them open over a restart, so that visitors
//! who come meanwhile wait instead of being refused.
//!
//! A socket takes the place of the listener that is configured for its address. One whose address nobody configured has to have a name
//! (`FileDescriptorName=`) that says what it is for.

use std::net::{SocketAddr, TcpListener};

use anyhow::{Context, bail};
use edge::{PassedSocket, Socket};
use listenfd::ListenFd;

use crate::config::settings::{Listen, Settings};

/// The variable with the names of the sockets, separated by colons.
const NAMES: &str = "LISTEN_FDNAMES";
/// The variable with the id of the process for which the sockets are.
const PID: &str = "LISTEN_PID";

/// Sockets from the service manager that have not been taken yet.
#[derive(Debug, Default)]
pub(crate) struct PassedSockets(Vec<Passed>);

#[derive(Debug)]
struct Passed {
    name: String,
    socket: PassedSocket,
}

impl PassedSockets {
    /// Takes over the sockets that this process was given. There are none if it was started otherwise. Call it before there are threads,
    /// because it changes the environment: children do not get these sockets.
    ///
    /// # Errors
    /// When one of them is not a socket that could be listened on.
    pub(crate) fn from_env() -> anyhow::Result<Self> {
        // Variables that a parent left behind are about its own sockets (sd_listen_fds(3)).
        if std::env::var(PID).ok().and_then(|pid| pid.parse().ok()) != Some(std::process::id()) {
            return Ok(Self::default());
        }
        let names = std::env::var(NAMES).unwrap_or_default();
        let mut names = names.split(':');
        let mut given = ListenFd::from_env();
        let mut sockets = Vec::with_capacity(given.len());
        for number in 0..given.len() {
            let name = names.next().unwrap_or_default().to_owned();
            let socket =
                take(&mut given, number).with_context(|| format!("socket {number} that the service manager passed (\"{name}\")"))?;
            if socket.mixes_families() {
                let place = socket.place().unwrap_or_default();
                bail!(
                    "the socket that the service manager passed for {place} is for IPv6 and IPv4 together, so that visitors over IPv4 would have wrong addresses\n  Write BindIPv6Only=ipv6-only and one ListenStream= for each family into the socket unit."
                );
            }
            sockets.push(Passed { name, socket });
        }
        Ok(Self(sockets))
    }

    /// Returns the listeners to add for sockets whose name says what they are for, if none is configured for their address.
    ///
    /// # Errors
    /// When there is one that nobody would take: visitors would wait there for ever.
    pub(crate) fn adopt(&self, settings: &Settings) -> anyhow::Result<Adopted> {
        let mut adopted = Adopted::default();
        for Passed { name, socket } in self.0.iter().filter(|passed| !is_configured(&passed.socket, settings)) {
            let place = || socket.place().unwrap_or_else(|| "no address".to_owned());
            match (name.as_str(), socket) {
                ("http", PassedSocket::Tcp(listener)) => adopted.plain.push(Listen::Tcp(listener.local_addr()?)),
                ("http", PassedSocket::Unix(listener)) if let Some(path) = listener.local_addr()?.as_pathname() => {
                    adopted.plain.push(Listen::Unix(path.to_owned()));
                }
                ("https", PassedSocket::Tcp(listener)) if settings.tls.is_some() => adopted.tls.push(listener.local_addr()?),
                ("https", PassedSocket::Tcp(_)) => bail!(
                    "the service manager passed {} for https, but there is no certificate\n  Name the site's domain or a certificate's files: [tls] in the manual.",
                    place()
                ),
                ("admin", PassedSocket::Tcp(listener)) => adopted.admin = Some(listener.local_addr()?),
                _ => bail!(
                    "the service manager passed a socket for {}, where nothing is configured to listen\n  Name that address in listen of [server] or [tls], or write FileDescriptorName=http, https or admin into the socket unit.",
                    place()
                ),
            }
        }
        Ok(adopted)
    }

    /// Takes the socket that was passed for this listener, if there is one.
    pub(crate) fn take(&mut self, socket: &Socket) -> Option<PassedSocket> {
        let at = self.0.iter().position(|passed| passed.socket.is_for(socket))?;
        Some(self.0.swap_remove(at).socket)
    }

    /// Takes the socket that was passed for the admin API, if there is one.
    pub(crate) fn take_admin(&mut self, address: SocketAddr) -> Option<TcpListener> {
        match self.take(&Socket::Tcp(address)) {
            Some(PassedSocket::Tcp(listener)) => Some(listener),
            _ => None,
        }
    }
}

/// Listeners that the configuration does not name.
#[derive(Debug, Default)]
pub(crate) struct Adopted {
    plain: Vec<Listen>,
    tls: Vec<SocketAddr>,
    admin: Option<SocketAddr>,
}

impl Adopted {
    /// Adds these listeners to a configuration, at the start and at each reload.
    pub(crate) fn add_to(&self, settings: &mut Settings) {
        settings.server.listen.extend(self.plain.iter().cloned());
        if let Some(tls) = &mut settings.tls {
            tls.listen.extend(&self.tls);
        }
        settings.server.admin = self.admin.or(settings.server.admin);
    }
}

fn take(given: &mut ListenFd, number: usize) -> anyhow::Result<PassedSocket> {
    // A socket that is of another kind stays where it is, for the next attempt.
    if let Ok(Some(listener)) = given.take_tcp_listener(number) {
        return Ok(PassedSocket::Tcp(listener));
    }
    if let Ok(Some(socket)) = given.take_udp_socket(number) {
        return Ok(PassedSocket::Udp(socket));
    }
    match given.take_unix_listener(number) {
        Ok(Some(listener)) => Ok(PassedSocket::Unix(listener)),
        Ok(None) => bail!("it does not exist"),
        Err(_) => bail!("it is not a TCP, UDP or Unix socket to listen on"),
    }
}

fn is_configured(socket: &PassedSocket, settings: &Settings) -> bool {
    let plain = settings.server.listen.iter().map(|listen| match listen {
        Listen::Tcp(address) => Socket::Tcp(*address),
        Listen::Unix(path) => Socket::Unix(path.clone()),
    });
    let tls = settings.tls.iter().flat_map(|tls| {
        tls.listen.iter().flat_map(|address| {
            let quic = tls.http3.as_ref().map(|_| Socket::Quic(*address));
            [Socket::Tls(*address)].into_iter().chain(quic)
        })
    });
    let admin = settings.server.admin.map(Socket::Tcp);
    plain.chain(tls).chain(admin).any(|configured| socket.is_for(&configured))
}
