//! Connections of both sorts that wait for a request, in one pool.

use std::task::Context;

use super::{hyper_connection::HyperConnection, wire::Wire};
use crate::server::Connection;

/// A connection that waits for a request.
#[derive(Debug)]
pub(super) enum Idle {
    /// One of our own, for a request whose content is at hand.
    Wire(Box<Wire>),
    /// One that hyper serves.
    Hyper(HyperConnection),
}

impl Connection for Idle {
    fn is_ready(&mut self, cx: &mut Context<'_>) -> bool {
        match self {
            Self::Wire(wire) => wire.poll_is_good(cx),
            Self::Hyper(connection) => connection.is_ready(),
        }
    }

    fn has_ended(&mut self, cx: &mut Context<'_>) -> bool {
        match self {
            Self::Wire(wire) => !wire.poll_is_good(cx),
            Self::Hyper(connection) => connection.is_closed(),
        }
    }
}

impl From<Box<Wire>> for Idle {
    fn from(wire: Box<Wire>) -> Self {
        Self::Wire(wire)
    }
}

impl From<HyperConnection> for Idle {
    fn from(connection: HyperConnection) -> Self {
        Self::Hyper(connection)
    }
}
