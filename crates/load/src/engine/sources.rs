//! The addresses and ports that connections come from.
//!
//! The system gives a port when a connection is made, but not to a socket that was bound to an address before: then it must be a port that no other
//! socket of this address has, even if that one leads elsewhere or is only remembered (`TIME_WAIT`). So the ports are named here, one after the other,
//! with the permission to use one again; the system still refuses one whose connection to the same target is alive.

use std::{
    fs,
    net::{IpAddr, SocketAddr},
    ops::RangeInclusive,
    os::fd::OwnedFd,
};

use rustix::{
    io::Errno,
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, socket_with, sockopt},
};

use super::target::Target;
use crate::schedule::Share;

/// The ports of a system that does not tell its own.
const USUAL_PORTS: RangeInclusive<u16> = 32_768..=60_999;

/// The number of ports that are tried for one connection, if others have them.
const TRIES: u32 = 64;

/// Addresses in turns, and the ports of each one after the other. Each worker has ports of its own.
#[derive(Debug)]
pub(super) struct Sources {
    addresses: Vec<IpAddr>,
    ports: RangeInclusive<u16>,
    /// The connections that were begun.
    count: u64,
}

impl Sources {
    pub(super) fn new(addresses: &[IpAddr], share: Share) -> Self {
        let told = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok();
        let ports = told.as_deref().and_then(ports).unwrap_or(USUAL_PORTS);
        Self { addresses: addresses.to_vec(), ports: part(&ports, share), count: 0 }
    }

    /// Begins a connection: the socket can be written to when it is made, or has failed.
    pub(super) fn connect(&mut self, target: &Target) -> Result<OwnedFd, Errno> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = |family| socket_with(family, SocketType::STREAM, flags, None);
        let (socket, begun) = match target {
            Target::Address(address) => {
                let mut tries = self.tries();
                loop {
                    let socket = socket(if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 })?;
                    let begun = self.bind(&socket, address).and_then(|()| connect(&socket, address));
                    tries -= 1;
                    if tries == 0 || !matches!(begun, Err(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE)) {
                        break (socket, begun);
                    }
                }
            }
            Target::Unix(path) => {
                let socket = socket(AddressFamily::UNIX)?;
                let begun = connect(&socket, &SocketAddrUnix::new(path.as_path())?);
                (socket, begun)
            }
        };
        match begun {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
            Err(error) => Err(error),
        }
    }

    /// Returns how often a connection is tried, if ports are taken.
    const fn tries(&self) -> u32 {
        if self.addresses.is_empty() { 1 } else { TRIES }
    }

    /// Binds a socket that is to lead to `target`, unless any source will do.
    fn bind(&mut self, socket: &OwnedFd, target: &SocketAddr) -> Result<(), Errno> {
        if self.addresses.is_empty() {
            return Ok(());
        }
        let source = self.next();
        if source.is_ipv4() != target.is_ipv4() {
            return Err(Errno::AFNOSUPPORT);
        }
        sockopt::set_socket_reuseaddr(socket, true)?;
        bind(socket, &source)
    }

    /// Returns the address and port of the next connection.
    fn next(&mut self) -> SocketAddr {
        let addresses = self.addresses.len() as u64;
        let address = self.addresses[usize::try_from(self.count % addresses).expect("less than the number of addresses")];
        let ports = u64::from(self.ports.end() - self.ports.start()) + 1;
        let port = u64::from(*self.ports.start()) + (self.count / addresses) % ports;
        self.count += 1;
        SocketAddr::new(address, u16::try_from(port).expect("within the range of ports"))
    }
}

/// Reads the range of ports, as the system tells it.
fn ports(told: &str) -> Option<RangeInclusive<u16>> {
    let mut ends = told.split_ascii_whitespace().map(str::parse);
    let range = ends.next()?.ok()?..=ends.next()?.ok()?;
    (!range.is_empty()).then_some(range)
}

/// Returns a worker's part of a range of ports.
fn part(ports: &RangeInclusive<u16>, share: Share) -> RangeInclusive<u16> {
    let (first, length) = (u32::from(*ports.start()), u32::from(ports.end() - ports.start()) + 1);
    let at = |worker: u32| {
        first + u32::try_from(u64::from(length) * u64::from(worker) / u64::from(share.of)).expect("a part of a range of ports")
    };
    let (begin, end) = (at(share.worker), at(share.worker + 1));
    if begin >= end {
        return ports.clone();
    }
    let port = |port: u32| u16::try_from(port).expect("within the range of ports");
    port(begin)..=port(end - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_range_of_ports_is_read() {
        assert_eq!(ports("32768\t60999\n"), Some(32_768..=60_999));
        assert_eq!(ports("1024"), None);
        assert_eq!(ports("9 8"), None);
    }

    #[test]
    fn workers_share_the_ports_without_a_gap() {
        let parts: Vec<_> = (0..3).map(|worker| part(&(100..=109), Share { worker, of: 3 })).collect();
        assert_eq!(parts, [100..=102, 103..=105, 106..=109]);
        assert_eq!(part(&(7..=7), Share { worker: 0, of: 2 }), 7..=7, "there is always one");
    }

    #[test]
    fn addresses_take_turns_and_ports_begin_again() {
        let address = |last| IpAddr::from([127, 0, 1, last]);
        let mut sources = Sources { addresses: vec![address(1), address(2)], ports: 50_000..=50_001, count: 0 };
        let found: Vec<_> = (0..5).map(|_| sources.next()).collect();
        let expected = [(1, 50_000), (2, 50_000), (1, 50_001), (2, 50_001), (1, 50_000)];
        assert_eq!(found, expected.map(|(last, port)| SocketAddr::new(address(last), port)));
    }
}
