//! The content of a request, for whoever answers it.

use std::task::{Context, Poll};

use bytes::Bytes;

use wire::h3::{Code, Fault, Message};

use super::transport::{Receiving, varint};

/// The content of a request, which is read as it is wanted: the client sends no more than its windows allow.
#[derive(Debug)]
pub(crate) struct Content {
    message: Message<Receiving>,
    connection: quinn::Connection,
}

impl Content {
    pub(super) const fn new(message: Message<Receiving>, connection: quinn::Connection) -> Self {
        Self { message, connection }
    }

    pub(crate) fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Fault>>> {
        let data = self.message.poll_data(cx);
        if let Poll::Ready(Err(Fault::Connection(code))) = data {
            self.connection.close(varint(code), b"");
        }
        data.map(Result::transpose)
    }

    pub(crate) const fn is_end_stream(&self) -> bool {
        self.message.has_ended()
    }
}

impl Drop for Content {
    /// Stops content that nobody wants. This does not say that anything is wrong (RFC 9114 §4.1).
    fn drop(&mut self) {
        if !self.message.has_ended() {
            self.message.source().stop(Code::NoError);
        }
    }
}
