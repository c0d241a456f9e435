//! Where the origins of a plan are.

use std::net::{SocketAddr, ToSocketAddrs as _};

use crate::{plan::Plan, requests::Origin};

/// Returns the addresses of each origin, in the plan's order. None: the name leads nowhere.
///
/// The plan's own addresses come first, so that a name cannot lead elsewhere than to what was permitted. Asking for a name may take seconds, so this is
/// called before the run begins.
pub(super) fn addresses(plan: &Plan) -> Vec<Vec<SocketAddr>> {
    let one = |(number, origin): (usize, &Origin)| {
        if let Some(address) = plan.connections.connect_to {
            return vec![address];
        }
        match plan.connections.addresses.get(number) {
            Some(addresses) => addresses.clone(),
            None => (origin.host.as_str(), origin.port).to_socket_addrs().map_or_else(|_| Vec::new(), Iterator::collect),
        }
    };
    plan.requests.origins.iter().enumerate().map(one).collect()
}
