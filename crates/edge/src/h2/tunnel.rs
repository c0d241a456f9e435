//! WebSocket over HTTP/2 (RFC 8441): a stream is joined to a connection that the origin has upgraded.

use std::{
    cell::Cell,
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
    time::Instant,
};

use bytes::{Buf as _, Bytes};
use http::{HeaderValue, Request, StatusCode, header};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use wire::{
    h2::{Code, Content},
    head::Reject,
};

use super::{
    Connection,
    respond::{self, Handle},
};
use crate::{
    limits::TUNNEL_IDLE,
    request::{content::RequestBody, log_line::KeptLogLine},
    service::Service,
};

/// The key that an origin wants that speaks HTTP/1: it makes a proof of it that it understood. No client sees the proof: its own handshake has
/// neither (§5.1). So the key need not be secret, nor differ.
const KEY: &str = "c2Vhd2FsbCBodHRwLzIhIQ==";

/// Asks the origin for the upgrade, and carries bytes both ways if it agrees. Anything else that it says is the answer.
pub(super) async fn open<S: Service>(handle: Handle<S>, mut request: Request<RequestBody>, content: Content, started: Instant) {
    let line = KeptLogLine::of(&request);
    let _place = TunnelPlace::new(&handle.shared);
    let fields = request.headers_mut();
    fields.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    fields.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    fields.insert(header::SEC_WEBSOCKET_KEY, HeaderValue::from_static(KEY));
    let interim = respond::interim_for(&handle);
    let Some(answer) = respond::ask(&handle, request, &line, started, interim).await else { return };
    let (mut response, note) = *answer;
    let upgrade = response.extensions_mut().remove::<OnUpgrade>();
    let Some(upgrade) = upgrade.filter(|_| response.status() == StatusCode::SWITCHING_PROTOCOLS) else {
        drop(content);
        if response.status().is_success() || response.status() == StatusCode::SWITCHING_PROTOCOLS {
            // To a client this would be the tunnel (§5), and the page what comes out of it.
            handle.refuse(Reject { status: 502, reason: "the server has not opened a tunnel" });
            return handle.done(&line, 502, started, true, note);
        }
        return respond::respond(handle, response, note, &line, started).await;
    };
    response.headers_mut().remove(header::SEC_WEBSOCKET_ACCEPT);
    response.headers_mut().remove(header::CONTENT_LENGTH);
    handle.head(StatusCode::OK, response.headers(), false);
    let mut ends = ClientEnd { handle, content, rest: Bytes::new(), moved: Rc::new(Cell::new(true)) };
    let moved = Rc::clone(&ends.moved);
    let carried = match upgrade.await {
        Ok(origin) => {
            let mut origin = TokioIo::new(origin);
            tokio::select! {
                carried = tokio::io::copy_bidirectional(&mut ends, &mut origin) => carried,
                () = silence(&moved) => Err(io::ErrorKind::TimedOut.into()),
            }
        }
        Err(error) => Err(io::Error::other(error)),
    };
    if let Err(error) = &carried {
        tracing::debug!(%error, "tunnel ended");
        ends.handle.reset(Code::CONNECT_ERROR);
    }
    ends.handle.done(&line, 200, started, carried.is_ok(), note);
}

/// Resolves when nothing has come or gone for as long as a tunnel may be silent.
async fn silence(moved: &Cell<bool>) {
    while moved.replace(false) {
        tokio::time::sleep(TUNNEL_IDLE).await;
    }
}

/// A tunnel's place among those of its connection.
struct TunnelPlace<S: Service>(Rc<Connection<S>>);

impl<S: Service> TunnelPlace<S> {
    fn new(shared: &Rc<Connection<S>>) -> Self {
        shared.tunnels.set(shared.tunnels.get() + 1);
        Self(Rc::clone(shared))
    }
}

impl<S: Service> Drop for TunnelPlace<S> {
    fn drop(&mut self) {
        self.0.tunnels.set(self.0.tunnels.get() - 1);
    }
}

/// The client's side of a tunnel as a byte stream.
struct ClientEnd<S: Service> {
    handle: Handle<S>,
    content: Content,
    /// The rest of a piece that did not fit into what the reader offered.
    rest: Bytes,
    /// Whether something has come or gone since this was last looked at.
    moved: Rc<Cell<bool>>,
}

impl<S: Service> Unpin for ClientEnd<S> {}

impl<S: Service> AsyncRead for ClientEnd<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.rest.is_empty() {
            match ready!(self.content.poll_data(cx)) {
                None => return Poll::Ready(Ok(())),
                Some(Ok(data)) => self.rest = data,
                Some(Err(error)) => return Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionReset, error))),
            }
        }
        self.moved.set(true);
        let here = self.rest.len().min(buf.remaining());
        buf.put_slice(&self.rest[..here]);
        self.rest.advance(here);
        Poll::Ready(Ok(()))
    }
}

impl<S: Service> AsyncWrite for ClientEnd<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let Some(room) = ready!(self.handle.poll_room(cx)) else { return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())) };
        let here = room.min(data.len());
        self.moved.set(true);
        self.handle.send(Bytes::copy_from_slice(&data[..here]));
        Poll::Ready(Ok(here))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.handle.end();
        Poll::Ready(Ok(()))
    }
}
