//! The floor of HTTP/3: what QUIC itself costs, and no server on it can avoid.
//!
//! It has the library, the settings, the socket, the memory allocator and the one thread that Seawall's HTTP/3 has. What a request says it does not look at:
//! each stream is answered with the same bytes, made once. No fields are read, no page is looked up, nothing is logged, no time is kept.
//!
//! `bench/http3` builds and starts it.
//!
//!     http3_floor PORT CERTIFICATE KEY FILE

#![expect(clippy::disallowed_methods, reason = "it runs until it is ended from outside, and nobody waits for its tasks")]

use std::{
    env, fs,
    future::{Future, poll_fn},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::Path,
    sync::Arc,
    task::Poll,
};

use bytes::Bytes;
use edge::{
    Limits, quic_settings, quic_socket,
    tls::{Bundle, Certificates, Tls, read_pair},
};
use quinn::{Endpoint, EndpointConfig, Incoming, RecvStream, SendStream, TokioRuntime};
use wire::qpack;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The control stream's type, and settings that say nothing (RFC 9114 §6.2.1 and §7.2.4).
const CONTROL: &[u8] = &[0x0, 0x4, 0x0];

const HEADERS: u8 = 0x1;
const DATA: u8 = 0x0;

/// Appends a frame's type and its length, in four bytes (RFC 9114 §7.1).
fn frame_head(kind: u8, length: usize, out: &mut Vec<u8>) -> Result<()> {
    out.push(kind);
    out.extend_from_slice(&(u32::try_from(length)? | 0x8000_0000).to_be_bytes());
    Ok(())
}

/// Makes what every stream is answered with: a head and a content, each with its frame.
fn answer_of(content: Vec<u8>) -> Result<[Bytes; 2]> {
    let length = content.len().to_string();
    let fields: [(&[u8], &[u8]); 4] = [
        (b"content-type", b"text/html; charset=utf-8"),
        (b"content-length", length.as_bytes()),
        (b"cache-control", b"max-age=3600"),
        (b"etag", b"\"bench-0\""),
    ];
    let mut section = Vec::new();
    qpack::begin(&mut section);
    qpack::status(200, &mut section);
    for (name, value) in fields {
        qpack::field(name, value, &mut section);
    }
    let mut head = Vec::new();
    frame_head(HEADERS, section.len(), &mut head)?;
    head.extend_from_slice(&section);
    frame_head(DATA, content.len(), &mut head)?;
    Ok([head.into(), content.into()])
}

async fn answer(mut send: SendStream, mut receive: RecvStream, mut answer: [Bytes; 2]) {
    // What has come of the request, and is not looked at.
    if receive.read_chunk(usize::MAX, true).await.is_ok() && send.write_all_chunks(&mut answer).await.is_ok() {
        let _ = send.finish();
    }
}

async fn serve(incoming: Incoming, bytes: Arc<[Bytes; 2]>) {
    let Ok(connection) = incoming.await else { return };
    // It stays open for as long as the connection.
    let Ok(mut control) = connection.open_uni().await else { return };
    if control.write_all(CONTROL).await.is_err() {
        return;
    }
    while let Ok((send, receive)) = connection.accept_bi().await {
        let mut answering = Box::pin(answer(send, receive, (*bytes).clone()));
        // Mostly the transport takes all of it at once.
        if poll_fn(|cx| Poll::Ready(answering.as_mut().poll(cx))).await.is_pending() {
            tokio::spawn(answering);
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let given: Vec<String> = env::args().skip(1).collect();
    let [port, certificate, key, file] = &given[..] else { return Err("http3_floor PORT CERTIFICATE KEY FILE".into()) };
    let bytes = Arc::new(answer_of(fs::read(file)?)?);
    let certificates = Certificates::new();
    let key = read_pair(Path::new(certificate), Path::new(key))?;
    certificates.put("floor", Bundle { names: Vec::new(), key, is_default: true });
    let settings = quic_settings(&Tls::new(certificates)?, &Limits::default());
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse()?));
    let endpoint = Endpoint::new(EndpointConfig::default(), Some(settings), quic_socket(address)?, Arc::new(TokioRuntime))?;
    // Whoever started it sees that it is there by a connection over TCP.
    let _seen = TcpListener::bind(address)?;
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(serve(incoming, Arc::clone(&bytes)));
    }
    Ok(())
}
