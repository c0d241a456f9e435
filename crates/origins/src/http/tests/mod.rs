//! A scripted origin: what it hears and says, byte by byte.

mod exchange;
mod faults;
mod secure;
mod timeouts;

use std::{cell::RefCell, pin::pin, rc::Rc, time::Duration};

use ::http::Version;
use http_body_util::BodyExt;
use semantics::Scheme;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::Instant,
};

use super::*;
use crate::server::Address;

/// Runs a test as a worker runs: one thread, tasks that stay on it.
fn on_a_worker<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default()).expect("a runtime").block_on(test)
}

fn no_tls() -> Arc<rustls::ClientConfig> {
    crate::server::with_roots(rustls::RootCertStore::empty()).expect("a configuration")
}

/// A listener on a free port.
struct Script {
    listener: TcpListener,
}

impl Script {
    async fn new() -> Self {
        Self { listener: TcpListener::bind("127.0.0.1:0").await.expect("a port") }
    }

    fn address(&self) -> Address {
        format!("http://{}", self.listener.local_addr().expect("bound")).parse().expect("an address")
    }

    async fn accept(&self) -> Wire<TcpStream> {
        Wire(self.listener.accept().await.expect("a connection").0)
    }

    /// Tells whether nobody is waiting to be accepted.
    async fn idle(&self) -> bool {
        tokio::task::yield_now().await;
        futures_util::FutureExt::now_or_never(self.listener.accept()).is_none()
    }
}

/// The origin's end of a connection.
struct Wire<S>(S);

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    /// Reads the head of a request, and as much content as its `Content-Length` says.
    async fn request(&mut self) -> String {
        let mut text = String::new();
        let mut wanted = usize::MAX;
        while text.len() < wanted {
            text.push(char::from(self.0.read_u8().await.expect("a request")));
            if wanted == usize::MAX && text.ends_with("\r\n\r\n") {
                let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
                wanted = text.len() + length.parse::<usize>().expect("a number");
            }
        }
        text
    }

    async fn say(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.expect("written");
        self.0.flush().await.expect("written");
    }

    /// Waits until we close the connection; what comes before does not matter.
    async fn closed(mut self) {
        let mut rest = Vec::new();
        // A reset is a close as well.
        let _ = self.0.read_to_end(&mut rest).await;
    }

    /// Hears a request, answers it.
    async fn answer(&mut self, response: impl AsRef<[u8]>) -> String {
        let request = self.request().await;
        self.say(response).await;
        request
    }
}

/// Returns an origin of these addresses.
fn origin(addresses: &[Address]) -> Rc<HttpOrigin> {
    with(addresses, None, |_| {})
}

fn with(addresses: &[Address], budget: Option<Arc<Budget>>, change: impl FnOnce(&mut ServerOptions)) -> Rc<HttpOrigin> {
    let mut options = ServerOptions::new(addresses.to_vec(), no_tls());
    change(&mut options);
    Rc::new(HttpOrigin::new(Arc::new(options), budget).expect("an address"))
}

fn get(path: &str) -> Request<Body> {
    request(Method::GET, path, Body::Empty)
}

fn request(method: Method, path: &str, body: Body) -> Request<Body> {
    Request::builder().method(method).uri(path).header("host", "blog.example").body(body).expect("a request")
}

/// Sends a request of our own, which comes from no client.
async fn fetch(origin: &HttpOrigin, request: Request<Body>) -> Result<Response<Body>, OriginError> {
    origin.fetch(request, &ARRIVAL, None).await
}

const ARRIVAL: Arrival<'static> = Arrival::of_our_own(Scheme::Http, "blog.example");

/// Asks from a task of its own, so that the script can be written in the order of events.
fn ask(origin: &Rc<HttpOrigin>, request: Request<Body>) -> tokio::task::JoinHandle<Result<Response<Body>, OriginError>> {
    let origin = Rc::clone(origin);
    tokio::task::spawn_local(async move { fetch(&origin, request).await })
}

async fn content(response: Response<Body>) -> Result<String, OriginError> {
    Ok(String::from_utf8(response.into_body().collect().await?.to_bytes().to_vec()).expect("text"))
}

type Piece = Result<bytes::Bytes, OriginError>;

/// Returns a body that is fed by the test.
fn upload() -> (tokio::sync::mpsc::Sender<Piece>, Body) {
    let (feed, mut fed) = tokio::sync::mpsc::channel::<Piece>(8);
    let frames = futures_util::stream::poll_fn(move |cx| fed.poll_recv(cx).map(|next| next.map(|r| r.map(http_body::Frame::data))));
    (feed, Body::stream(http_body_util::StreamBody::new(frames)))
}

fn idle(origin: &HttpOrigin) -> usize {
    origin.addresses().map(|status| status.idle).sum()
}

/// Shared log of what the script did.
type Log = Rc<RefCell<Vec<String>>>;

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
