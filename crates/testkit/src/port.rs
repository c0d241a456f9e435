//! Ports for programs that cannot be told to take port 0.

use std::{
    fs,
    hash::{BuildHasher as _, RandomState},
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
        if !is_in_use(port) {
            return port;
        }
    }
}

/// Tells whether a socket of this machine has the port, in any table of Linux (`proc_net_tcp(5)`).
///
/// The tables are read because a look by a socket of our own would take the port: a program that starts at this moment has that socket
/// until it has become another program, and whoever got the port cannot have it.
fn is_in_use(port: u16) -> bool {
    let end_of_address = format!(":{port:04X}");
    ["tcp", "tcp6", "udp", "udp6"].iter().any(|table| {
        let sockets = fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
        sockets.lines().filter_map(|socket| socket.split_whitespace().nth(1)).any(|local| local.ends_with(&end_of_address))
    })
}

#[cfg(test)]
mod tests {
    use std::{
        net::{Ipv4Addr, TcpListener, UdpSocket},
        process::Command,
        sync::atomic::{AtomicBool, Ordering},
        thread,
    };

    use super::{free_port, is_in_use};

    /// A child has its parent's sockets until it has become another program: a port that was only looked at must not be one of them.
    #[test]
    fn a_free_port_can_be_listened_on_at_once_while_programs_start() {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        Command::new("true").status().expect("a program");
                    }
                });
            }
            let taken = (0..200).map(|_| free_port()).find_map(|port| {
                let address = (Ipv4Addr::LOCALHOST, port);
                TcpListener::bind(address).err().or_else(|| UdpSocket::bind(address).err()).map(|error| (port, error))
            });
            is_over.store(true, Ordering::Relaxed);
            assert!(taken.is_none(), "{taken:?}");
        });
    }

    #[test]
    fn a_port_is_in_use_while_somebody_listens_on_it_by_any_protocol_and_address() {
        let streams = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let everywhere = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a port");
        let datagrams = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        for address in [streams.local_addr(), everywhere.local_addr(), datagrams.local_addr()] {
            assert!(is_in_use(address.expect("bound").port()));
        }
        assert!(!is_in_use(free_port()));
    }
}
