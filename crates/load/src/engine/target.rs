//! The targets of connections.

use std::{
    fmt,
    net::{SocketAddr, TcpStream, ToSocketAddrs as _, UdpSocket},
    path::PathBuf,
};

use super::Error;
use crate::plan::Plan;

/// Says where the connections to an origin lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The connections lead to an address.
    Address(SocketAddr),
    /// The connections lead to a socket of the system.
    Unix(PathBuf),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

/// Finds out where each origin of a plan is: once, so that no answer of a name server is measured.
///
/// If a name has several addresses, the first that accepts a connection is taken; if there is only one, nobody is asked.
///
/// # Errors
/// If a name leads nowhere.
pub(super) fn targets(plan: &Plan) -> Result<Vec<Target>, Error> {
    let connections = &plan.connections;
    let target = |(at, origin): (usize, &crate::requests::Origin)| {
        if let Some(path) = &connections.unix {
            return Ok(Target::Unix(path.clone()));
        }
        if let Some(address) = connections.connect_to {
            return Ok(Target::Address(address));
        }
        let nowhere = |source| Error::Resolve { host: origin.host.clone(), source };
        let addresses = match connections.addresses.get(at) {
            Some(permitted) => permitted.clone(),
            None => (origin.host.as_str(), origin.port).to_socket_addrs().map_err(nowhere)?.collect(),
        };
        let first = *addresses.first().ok_or_else(|| nowhere(std::io::Error::other("it has no address")))?;
        let accepts = |address: &&SocketAddr| TcpStream::connect_timeout(address, plan.timeout).is_ok();
        let taken = if addresses.len() > 1 { addresses.iter().find(accepts).copied() } else { None };
        Ok(Target::Address(taken.unwrap_or(first)))
    };
    plan.requests.origins.iter().enumerate().map(target).collect()
}

/// Looks whether connections can come from each of the addresses that a plan names.
///
/// # Errors
/// If one is not an address of this machine.
pub(super) fn sources(plan: &Plan) -> Result<(), Error> {
    for address in &plan.connections.sources {
        // A socket of UDP sends nothing, and waits for nobody.
        UdpSocket::bind((*address, 0)).map_err(|source| Error::Source { address: *address, source })?;
    }
    Ok(())
}
