//! The service manager is told what happens (sd_notify(3)), as text in a datagram to `$NOTIFY_SOCKET`. Without that variable nobody is told.

use std::{
    os::unix::net::{SocketAddr, UnixDatagram},
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};

/// The longest wait for the service manager to accept a datagram. After it, the message is dropped.
const PATIENCE: Duration = Duration::from_secs(1);

/// The time that the end may take beyond the requests under way.
const END: Duration = Duration::from_secs(15);

/// A connection to the service manager, if there is one that wants to know.
#[derive(Debug)]
pub(crate) struct ServiceManager(Option<(UnixDatagram, SocketAddr)>);

impl ServiceManager {
    /// Connects to the service manager that started this process.
    pub(crate) fn from_env() -> Self {
        Self(std::env::var("NOTIFY_SOCKET").ok().and_then(|name| connect(&name)))
    }

    /// Tells it that the process serves, or serves again after a reload.
    pub(crate) fn ready(&self, status: &str) {
        self.tell(&format!("READY=1\nSTATUS={}", first_line(status)));
    }

    /// Tells it that the process reads its configuration again, until [`ready`](Self::ready).
    pub(crate) fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let micros = i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1_000;
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
    }

    /// Tells it that the process ends as soon as the requests under way have ended. They may take as long as the configuration says,
    /// whatever `TimeoutStopSec=` is.
    pub(crate) fn stopping(&self, grace: Duration) {
        let wait = grace.saturating_add(END).as_micros();
        self.tell(&format!("STOPPING=1\nSTATUS=ends the requests under way\nEXTEND_TIMEOUT_USEC={wait}"));
    }

    fn tell(&self, text: &str) {
        if let Some((socket, address)) = &self.0 {
            let _ = socket.send_to_addr(text.as_bytes(), address);
        }
    }
}

fn first_line(text: &str) -> &str {
    text.trim_start().lines().next().unwrap_or_default()
}

fn connect(name: &str) -> Option<(UnixDatagram, SocketAddr)> {
    let address = match name.strip_prefix('@') {
        Some(name) => abstract_name(name)?,
        None if name.starts_with('/') => SocketAddr::from_pathname(name).ok()?,
        None => return None,
    };
    let socket = UnixDatagram::unbound().ok()?;
    socket.set_write_timeout(Some(PATIENCE)).ok()?;
    Some((socket, address))
}

#[cfg(target_os = "linux")]
fn abstract_name(name: &str) -> Option<SocketAddr> {
    use std::os::linux::net::SocketAddrExt as _;
    SocketAddr::from_abstract_name(name).ok()
}

#[cfg(not(target_os = "linux"))]
fn abstract_name(_: &str) -> Option<SocketAddr> {
    None
}
