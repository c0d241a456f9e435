//! A server with a delay that is known for each request, over each version of HTTP.

use std::{
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    rc::Rc,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use bytes::Bytes;
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

use crate::{
    Delay, Percentiles,
    alarm::Alarm,
    http1::{Requests, answer, closes},
    secure,
    serve::{Serving, listener},
};

/// Streams that a client may have open at once on a connection.
const STREAMS: u32 = 10_000;

/// What a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    /// HTTP/1.1.
    Http1,
    /// HTTP/1.1 over TLS.
    Http1Tls,
    /// HTTP/2 with prior knowledge (RFC 9113 §3.3).
    Http2,
    /// HTTP/2 over TLS.
    Http2Tls,
    /// HTTP/3.
    Http3,
}

impl Speaks {
    const fn tls(self) -> bool {
        matches!(self, Self::Http1Tls | Self::Http2Tls | Self::Http3)
    }
}

/// The bytes that the socket of HTTP/3 may buffer in either direction.
const SOCKET_BUFFER: usize = 8 << 20;

/// A server whose answers come after a delay.
#[derive(Debug)]
pub struct Truth {
    address: SocketAddr,
    speaks: Speaks,
    kept: Arc<ServerState>,
    _serving: Serving,
}

#[derive(Debug)]
struct ServerState {
    delay: Delay,
    /// The first so many requests are answered at once, and the delay does not count them.
    unjudged: u64,
    content: Bytes,
    record: Mutex<Record>,
}

#[derive(Debug, Default)]
struct Record {
    first: Option<Instant>,
    requests: u64,
    late: Vec<Duration>,
}

impl ServerState {
    /// Takes the next number. Returns the moment at which the request is to be answered.
    fn arrives(&self) -> Instant {
        let now = Instant::now();
        let mut record = self.record.lock().expect("nobody panics with it");
        record.requests += 1;
        let Some(number) = (record.requests - 1).checked_sub(self.unjudged) else { return now };
        let first = *record.first.get_or_insert(now);
        now + self.delay.of(number, now - first)
    }

    fn answered(&self, due: Instant) {
        self.record.lock().expect("nobody panics with it").late.push(due.elapsed());
    }
}

impl Truth {
    /// Starts a server that answers 200 with 1 KB.
    #[must_use]
    pub fn start(speaks: Speaks, delay: Delay) -> Self {
        Self::start_on(0, speaks, delay, 1024)
    }

    /// Starts a server that answers the first `unjudged` requests at once: they open the connections, and the delay begins with the next one.
    #[must_use]
    pub fn start_warmed(speaks: Speaks, delay: Delay, unjudged: u64) -> Self {
        Self::start_as(0, speaks, delay, 1024, unjudged)
    }

    /// Starts a server on this port, 0 for any, that answers with so many bytes.
    #[must_use]
    pub fn start_on(port: u16, speaks: Speaks, delay: Delay, bytes: usize) -> Self {
        Self::start_as(port, speaks, delay, bytes, 0)
    }

    fn start_as(port: u16, speaks: Speaks, delay: Delay, bytes: usize, unjudged: u64) -> Self {
        let kept = Arc::new(ServerState { delay, unjudged, content: vec![b'.'; bytes].into(), record: Mutex::default() });
        let (address, serving) = match speaks {
            Speaks::Http3 => over_quic(port, Arc::clone(&kept)),
            _ => over_tcp(port, speaks, Arc::clone(&kept)),
        };
        Self { address, speaks, kept, _serving: serving }
    }

    /// Returns the address that it listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of its only page.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}://{}/", if self.speaks.tls() { "https" } else { "http" }, self.address)
    }

    /// Returns how many requests have come, with those that the delay does not count.
    ///
    /// # Panics
    /// When the server has panicked.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.kept.record.lock().expect("nobody panics with it").requests
    }

    /// Returns how late the server itself was with its answers, because the machine was busy. Who measures more than this cannot blame the measurement.
    ///
    /// # Panics
    /// When the server has panicked.
    #[must_use]
    pub fn lateness(&self) -> Percentiles {
        Percentiles::of(self.kept.record.lock().expect("nobody panics with it").late.clone())
    }
}

fn over_tcp(port: u16, speaks: Speaks, kept: Arc<ServerState>) -> (SocketAddr, Serving) {
    let (listener, address) = listener(port);
    let tls = match speaks {
        Speaks::Http1Tls => Some(TlsAcceptor::from(secure::config(&[b"http/1.1"]))),
        Speaks::Http2Tls => Some(TlsAcceptor::from(secure::config(&[b"h2"]))),
        _ => None,
    };
    let serving = Serving::connections(listener, move |stream: TcpStream, alarm| {
        let (kept, tls) = (Arc::clone(&kept), tls.clone());
        async move {
            let two = matches!(speaks, Speaks::Http2 | Speaks::Http2Tls);
            match tls {
                Some(tls) => {
                    let Ok(stream) = tls.accept(stream).await else { return };
                    if two { http2(stream, kept, alarm).await } else { http1(stream, kept, alarm).await }
                }
                None if two => http2(stream, kept, alarm).await,
                None => http1(stream, kept, alarm).await,
            }
        }
    });
    (address, serving)
}

async fn http1<S: AsyncRead + AsyncWrite + Unpin>(stream: S, kept: Arc<ServerState>, alarm: Rc<Alarm>) {
    let whole = answer(200, "", &kept.content);
    let mut requests = Requests::new(stream);
    while let Some(head) = requests.next().await {
        let due = kept.arrives();
        alarm.until(due).await;
        kept.answered(due);
        if requests.stream.write_all(&whole).await.is_err() || closes(&head) {
            break;
        }
    }
    let _ = requests.stream.shutdown().await;
}

async fn http2<S: AsyncRead + AsyncWrite + Unpin>(stream: S, kept: Arc<ServerState>, alarm: Rc<Alarm>) {
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(STREAMS).initial_connection_window_size(1 << 24);
    let Ok(mut connection) = builder.handshake::<_, Bytes>(stream).await else { return };
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            accepted = connection.accept() => {
                let Some(Ok((_, mut respond))) = accepted else { break };
                let due = kept.arrives();
                let (kept, alarm) = (Arc::clone(&kept), Rc::clone(&alarm));
                tasks.spawn_local(async move {
                    alarm.until(due).await;
                    kept.answered(due);
                    let head = http::Response::builder().header("content-length", kept.content.len()).body(()).expect("the fields are valid");
                    if let Ok(mut body) = respond.send_response(head, false) {
                        let _ = body.send_data(kept.content.clone(), true);
                    }
                });
            }
            Some(_) = tasks.join_next() => {}
        }
    }
}

fn over_quic(port: u16, kept: Arc<ServerState>) -> (SocketAddr, Serving) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).expect("the port is free");
    // All who were held up send and acknowledge in one moment. The system cuts what is more than it allows.
    let buffering = socket2::SockRef::from(&socket);
    let _ = buffering.set_recv_buffer_size(SOCKET_BUFFER);
    let _ = buffering.set_send_buffer_size(SOCKET_BUFFER);
    let address = socket.local_addr().expect("a bound socket has an address");
    let serving = Serving::start(move |alarm| async move {
        let tls = quinn::crypto::rustls::QuicServerConfig::try_from(secure::config(&[b"h3"])).expect("TLS 1.3 is on");
        let mut config = quinn::ServerConfig::with_crypto(Arc::new(tls));
        let mut transport = quinn::TransportConfig::default();
        transport.max_concurrent_bidi_streams(STREAMS.into());
        config.transport_config(Arc::new(transport));
        let endpoint = quinn::Endpoint::new(quinn::EndpointConfig::default(), Some(config), socket, Arc::new(quinn::TokioRuntime))
            .expect("the runtime has its I/O on");
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                incoming = endpoint.accept() => {
                    let Some(incoming) = incoming else { break };
                    let (kept, alarm) = (Arc::clone(&kept), Rc::clone(&alarm));
                    tasks.spawn_local(async move { http3(incoming, kept, alarm).await });
                }
                Some(_) = tasks.join_next() => {}
            }
        }
    });
    (address, serving)
}

async fn http3(incoming: quinn::Incoming, kept: Arc<ServerState>, alarm: Rc<Alarm>) {
    let Ok(connection) = incoming.await else { return };
    let Ok(mut connection) = h3::server::Connection::<_, Bytes>::new(h3_quinn::Connection::new(connection)).await else { return };
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            accepted = connection.accept() => {
                let Ok(Some(resolver)) = accepted else { break };
                let (kept, alarm) = (Arc::clone(&kept), Rc::clone(&alarm));
                tasks.spawn_local(async move {
                    let Ok((_, mut stream)) = resolver.resolve_request().await else { return };
                    let due = kept.arrives();
                    alarm.until(due).await;
                    kept.answered(due);
                    let head = http::Response::builder().header("content-length", kept.content.len()).body(()).expect("the fields are valid");
                    if stream.send_response(head).await.is_ok() && stream.send_data(kept.content.clone()).await.is_ok() {
                        let _ = stream.finish().await;
                    }
                });
            }
            Some(_) = tasks.join_next() => {}
        }
    }
}
