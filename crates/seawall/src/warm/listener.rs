//! Asking the running server through its own listener, as a browser would: the same keys come of it.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    pin::pin,
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, Uri, header};
use http_body_util::{BodyExt as _, Empty};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
};

/// For one page, from the first byte to the last.
const TIMEOUT: Duration = Duration::from_secs(120);

const USER_AGENT: &str = concat!("Mozilla/5.0 (compatible; Seawall/", env!("CARGO_PKG_VERSION"), "; warm)");

/// Where the running server serves visitors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Listener {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// An answer. `content` is what was kept of it.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) content: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    #[error("the server takes no connection")]
    Connect(#[source] io::Error),
    #[error("the connection broke")]
    Broken(#[from] hyper::Error),
    #[error("it is no request that can be sent")]
    Request(#[from] http::Error),
    #[error("no whole answer within {} seconds", TIMEOUT.as_secs())]
    TimedOut,
    #[error("it is longer than {0} bytes")]
    TooLong(u64),
}

impl Listener {
    /// As the server names it. One that listens on every address is reached on this machine's own.
    pub(super) fn parse(name: &str) -> Option<Self> {
        if let Some(path) = name.strip_prefix("unix:") {
            return Some(Self::Unix(path.into()));
        }
        let mut address: SocketAddr = name.parse().ok()?;
        if address.ip().is_unspecified() {
            address.set_ip(if address.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
        }
        Some(Self::Tcp(address))
    }

    /// Asks for `uri` with GET. At most `content_max` bytes of content are kept; none: it is read and dropped. Cancel-safe.
    pub(super) async fn get(&self, uri: &Uri, fields: &[(String, String)], content_max: Option<u64>) -> Result<Answer, NoAnswer> {
        let asked = async {
            match self {
                Self::Tcp(address) => {
                    exchange(TcpStream::connect(address).await.map_err(NoAnswer::Connect)?, request(uri, fields)?, content_max).await
                }
                Self::Unix(path) => {
                    exchange(UnixStream::connect(path).await.map_err(NoAnswer::Connect)?, request(uri, fields)?, content_max).await
                }
            }
        };
        tokio::time::timeout(TIMEOUT, asked).await.unwrap_or(Err(NoAnswer::TimedOut))
    }
}

/// The public host in `Host`, whoever is asked. The scheme is told as a proxy in front would tell it: who is not trusted is not believed.
fn request(uri: &Uri, fields: &[(String, String)]) -> Result<Request<Empty<Bytes>>, http::Error> {
    let mut request = Request::get(uri.path_and_query().map_or("/", |target| target.as_str()))
        .header(header::HOST, uri.authority().map(|authority| authority.as_str()).unwrap_or_default())
        .header(header::USER_AGENT, USER_AGENT)
        .header(header::CONNECTION, "close")
        .header("x-forwarded-proto", uri.scheme_str().unwrap_or("http"));
    for (name, value) in fields {
        request = request.header(name, value);
    }
    request.body(Empty::new())
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    request: Request<Empty<Bytes>>,
    content_max: Option<u64>,
) -> Result<Answer, NoAnswer> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let mut connection = pin!(connection);
    let mut exchange = pin!(async { read(sender.send_request(request).await?, content_max).await });
    let mut ended = false;
    loop {
        tokio::select! {
            answer = &mut exchange => return answer,
            // What it brought may still be on its way to the exchange.
            done = &mut connection, if !ended => {
                done?;
                ended = true;
            }
        }
    }
}

async fn read(response: Response<Incoming>, content_max: Option<u64>) -> Result<Answer, NoAnswer> {
    let (parts, mut body) = response.into_parts();
    let mut content = Vec::new();
    while let Some(frame) = body.frame().await {
        let (Ok(data), Some(max)) = (frame?.into_data(), content_max) else { continue };
        if (content.len() + data.len()) as u64 > max {
            return Err(NoAnswer::TooLong(max));
        }
        content.extend_from_slice(&data);
    }
    Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, content })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_reached_from_this_machine() {
        let tcp = |text: &str| Some(Listener::Tcp(text.parse().expect(text)));
        for (name, expected) in [
            ("127.0.0.1:8080", tcp("127.0.0.1:8080")),
            ("0.0.0.0:80", tcp("127.0.0.1:80")),
            ("[::]:80", tcp("[::1]:80")),
            ("unix:/run/s", Some(Listener::Unix("/run/s".into()))),
            ("nonsense", None),
        ] {
            assert_eq!(Listener::parse(name), expected, "{name}");
        }
    }

    #[test]
    fn a_request_is_a_browsers_but_for_its_name() {
        let uri: Uri = "https://blog.example:8443/a?b=c".parse().expect("a uri");
        let made = request(&uri, &[("accept".to_owned(), "text/html".to_owned())]).expect("a request");
        assert_eq!(
            (made.uri().to_string().as_str(), &made.headers()["host"]),
            ("/a?b=c", &"blog.example:8443".parse::<http::HeaderValue>().expect("a value"))
        );
        assert_eq!(made.headers()["x-forwarded-proto"], "https");
        assert_eq!(made.headers()["accept"], "text/html");
    }
}
