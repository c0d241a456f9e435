//! A server that fails in each way that a load tester tells apart.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use crate::{
    http1::{Requests, answer, closes},
    secure,
    serve::{Serving, listener},
};

/// What the server does with one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// It answers 200, `right`.
    None,
    /// It resets the connection when the request has come.
    Reset,
    /// It closes the connection when the request has come, as it should not.
    Close,
    /// It sends the head and a part of the content, then resets.
    ResetWithin,
    /// It sends the head and a part of the content, then closes.
    CloseWithin,
    /// It sends a part of the head, then closes.
    CloseInHead,
    /// It sends a chunk and a part of the next, then closes.
    CloseInChunk,
    /// It never answers.
    Silence,
    /// It sends the head and a part of the content, and then nothing more.
    SilenceWithin,
    /// It sends what is not HTTP.
    Garbage,
    /// It says two different lengths (RFC 9112 §6.3).
    TwoLengths,
    /// It sends a chunk whose length is not a number.
    BadChunk,
    /// It answers with this status.
    Status(u16),
    /// It answers 200 with another content than `right`.
    WrongBody,
    /// It answers 200, `right`, with `X-Judge: wrong` instead of `X-Judge: right`.
    WrongField,
}

/// A server that follows a list of faults, request by request, and begins anew at its end.
#[derive(Debug)]
pub struct Misbehaving {
    address: SocketAddr,
    tls: bool,
    counts: Arc<Mutex<BTreeMap<Fault, u64>>>,
    _serving: Serving,
}

impl Misbehaving {
    /// Starts a server with this list.
    #[must_use]
    pub fn start(plan: &[Fault]) -> Self {
        Self::start_on(0, plan)
    }

    /// Starts a server with this list on this port, 0 for any.
    #[must_use]
    pub fn start_on(port: u16, plan: &[Fault]) -> Self {
        let plan: Arc<[Fault]> = plan.into();
        let (at, counts) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(BTreeMap::new())));
        let (listener, address) = listener(port);
        let counting = Arc::clone(&counts);
        let serving = Serving::connections(listener, move |stream, _| {
            let (plan, at, counts) = (Arc::clone(&plan), Arc::clone(&at), Arc::clone(&counting));
            async move {
                let mut requests = Requests::new(stream);
                while let Some(head) = requests.next().await {
                    let fault = plan[at.fetch_add(1, Ordering::Relaxed) % plan.len()];
                    *counts.lock().expect("nobody panics with it").entry(fault).or_default() += 1;
                    if !commit(&mut requests.stream, fault).await || closes(&head) {
                        break;
                    }
                }
                let _ = requests.stream.shutdown().await;
            }
        });
        Self { address, tls: false, counts, _serving: serving }
    }

    /// Starts a server that spoils each TLS handshake: by what is not TLS, by hanging up, or with a certificate that nobody trusts, in turns. The
    /// counts have them as `Garbage`, `Close` and `None`.
    #[must_use]
    pub fn start_bad_tls() -> Self {
        let counts = Arc::new(Mutex::new(BTreeMap::new()));
        let (listener, address) = listener(0);
        let (counting, at) = (Arc::clone(&counts), Arc::new(AtomicUsize::new(0)));
        let tls = tokio_rustls::TlsAcceptor::from(secure::config(&[]));
        let serving = Serving::connections(listener, move |mut stream, _| {
            let (tls, at, counts) = (tls.clone(), Arc::clone(&at), Arc::clone(&counting));
            async move {
                let fault = [Fault::Garbage, Fault::Close, Fault::None][at.fetch_add(1, Ordering::Relaxed) % 3];
                *counts.lock().expect("nobody panics with it").entry(fault).or_default() += 1;
                // The client speaks first; who closes with bytes unread resets.
                let _ = stream.peek(&mut [0; 1]).await;
                match fault {
                    Fault::None => drop(tls.accept(stream).await),
                    Fault::Garbage => {
                        let mut unread = [0; 4096];
                        let _ = tokio::io::AsyncReadExt::read(&mut stream, &mut unread).await;
                        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n").await;
                        let _ = stream.shutdown().await;
                    }
                    _ => {
                        let mut unread = [0; 4096];
                        let _ = tokio::io::AsyncReadExt::read(&mut stream, &mut unread).await;
                        let _ = stream.shutdown().await;
                    }
                }
            }
        });
        Self { address, tls: true, counts, _serving: serving }
    }

    /// Returns the address that it listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of its only page.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}://{}/", if self.tls { "https" } else { "http" }, self.address)
    }

    /// Returns how often it did what.
    ///
    /// # Panics
    /// When the server has panicked.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<Fault, u64> {
        self.counts.lock().expect("nobody panics with it").clone()
    }
}

/// Commits the fault. Returns whether the connection can be used again.
async fn commit(stream: &mut TcpStream, fault: Fault) -> bool {
    let part = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf";
    let say: &[u8] = match fault {
        Fault::None => return stream.write_all(&answer(200, "X-Judge: right\r\n", b"right")).await.is_ok(),
        Fault::Status(status) => return stream.write_all(&answer(status, "X-Judge: right\r\n", b"right")).await.is_ok(),
        Fault::WrongBody => return stream.write_all(&answer(200, "X-Judge: right\r\n", b"other")).await.is_ok(),
        Fault::WrongField => return stream.write_all(&answer(200, "X-Judge: wrong\r\n", b"right")).await.is_ok(),
        Fault::Reset | Fault::Close | Fault::Silence => b"",
        Fault::ResetWithin | Fault::CloseWithin | Fault::SilenceWithin => part,
        Fault::CloseInHead => b"HTTP/1.1 200 OK\r\nContent-Le",
        Fault::CloseInChunk => b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n100\r\nhalf",
        Fault::Garbage => b"SSH-2.0-OpenSSH_9.9\r\n\r\n",
        Fault::TwoLengths => b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nhalf!",
        Fault::BadChunk => b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhalf\r\nwhole\r\n0\r\n\r\n",
    };
    let _ = stream.write_all(say).await;
    match fault {
        Fault::Reset => reset(stream),
        Fault::ResetWithin => {
            // A reset overtakes what the client has not read yet, and would make another fault of this one.
            sent(stream).await;
            reset(stream);
        }
        Fault::Silence | Fault::SilenceWithin => {
            // Until the client gives up.
            let mut rest = [0; 1];
            let _ = tokio::io::AsyncReadExt::read(stream, &mut rest).await;
        }
        _ => {}
    }
    false
}

/// Gives the client time to read what was sent.
async fn sent(_: &TcpStream) {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

/// Makes the close that follows a reset.
fn reset(stream: &TcpStream) {
    let _ = socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

/// Returns a port at which connections are refused for as long as the socket lives, which nobody else can take meanwhile.
#[must_use]
pub fn closed_port() -> (socket2::Socket, SocketAddr) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket can be made");
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("there is a free port");
    let address = socket.local_addr().ok().and_then(|address| address.as_socket()).expect("a bound socket has an address");
    (socket, address)
}
