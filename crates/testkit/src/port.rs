//! Ports for programs that cannot be told to take port 0.

use std::{
    hash::{BuildHasher as _, RandomState},
    net::{Ipv4Addr, TcpListener, UdpSocket},
    ops::Range,
    sync::atomic::{AtomicU16, Ordering},
};

/// Ports below those that Linux gives to clients and to port 0 (`net.ipv4.ip_local_port_range` begins with 32768).
///
/// A port of that range is taken by any connection on the machine while a program starts, and is in use for a minute after one has ended.
const NOT_FOR_CLIENTS: Range<u16> = 20_000..32_000;

/// Returns a port on which nothing listens, neither by TCP nor by UDP, and which no other caller in this process has got. A test of another
/// process begins to look at another place.
#[must_use]
pub fn free_port() -> u16 {
    static GIVEN: AtomicU16 = AtomicU16::new(0);
    static FIRST: std::sync::LazyLock<u16> = std::sync::LazyLock::new(|| {
        let length = u64::from(NOT_FOR_CLIENTS.end - NOT_FOR_CLIENTS.start);
        u16::try_from(RandomState::new().hash_one(std::process::id()) % length).expect("below the length")
    });
    loop {
        let length = NOT_FOR_CLIENTS.end - NOT_FOR_CLIENTS.start;
        let port = NOT_FOR_CLIENTS.start + (*FIRST + GIVEN.fetch_add(1, Ordering::Relaxed) % length) % length;
        let address = (Ipv4Addr::LOCALHOST, port);
        if TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok() {
            return port;
        }
    }
}
