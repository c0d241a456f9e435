//! Asking the running server through its own listener, as a browser would: the same keys come of it.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    pin::pin,
    sync::Arc,
    time::Duration,
};

use admin_api::ListenerHealth;
use bytes::Bytes;
use http::{HeaderMap, Request, Response, Uri, header};
use http_body_util::{BodyExt as _, Empty};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use semantics::target::host_without_port;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
};
use tokio_rustls::TlsConnector;

use super::WarmError;

/// The time for one page, from the first byte to the last.
const TIMEOUT: Duration = Duration::from_secs(120);

const USER_AGENT: &str = concat!("Mozilla/5.0 (compatible; Seawall/", env!("CARGO_PKG_VERSION"), "; warm)");

/// Says where the running server serves visitors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Listener {
    Tcp(SocketAddr),
    Tls(SocketAddr),
    Unix(PathBuf),
}

/// Holds the listeners of the running server, with and without TLS.
#[derive(Debug, Clone)]
pub(super) struct Listeners {
    pub(super) plain: Listener,
    pub(super) tls: Option<Listener>,
    client: Arc<ClientConfig>,
}

/// Holds an answer. Its `content` is what was kept of it.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) content: Vec<u8>,
}

/// Says why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    /// The listener takes no connection.
    #[error("the server takes no connection")]
    Connect(#[source] io::Error),
    /// TLS failed.
    #[error("no TLS for this name: there is no certificate for it yet, or another one is needed")]
    Handshake(#[source] io::Error),
    /// HTTP failed.
    #[error("the connection broke")]
    Broken(#[from] hyper::Error),
    /// The address makes no request.
    #[error("it is not a request that can be sent")]
    Request(#[from] http::Error),
    /// It took too long.
    #[error("no whole answer within {} seconds", TIMEOUT.as_secs())]
    TimedOut,
    /// It has more content than is taken.
    #[error("it is longer than {0} bytes")]
    TooLong(u64),
}

impl Listener {
    /// Reads a listener as the server names it. One that listens on every address is reached on that of the admin API, or on this machine's own.
    fn parse(listener: &ListenerHealth, admin: IpAddr) -> Option<Self> {
        if let Some(path) = listener.address.strip_prefix("unix:") {
            return Some(Self::Unix(path.into()));
        }
        let mut address: SocketAddr = listener.address.parse().ok()?;
        if address.ip().is_unspecified() {
            let here = if address.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
            address.set_ip(if admin.is_loopback() || admin.is_unspecified() { here } else { admin });
        }
        match listener.protocol.as_str() {
            "http" => Some(Self::Tcp(address)),
            "https" => Some(Self::Tls(address)),
            _ => None,
        }
    }
}

impl Listeners {
    /// Chooses among the listeners that the server names, whose admin API is at `admin`.
    ///
    /// # Errors
    /// When it names none that can be asked.
    pub(super) fn of(listeners: &[ListenerHealth], admin: IpAddr) -> Result<Self, WarmError> {
        let mut all = listeners.iter().filter_map(|listener| Listener::parse(listener, admin));
        let tls = all.clone().find(|listener| matches!(listener, Listener::Tls(_)));
        let plain = all.find(|listener| !matches!(listener, Listener::Tls(_))).ok_or(WarmError::NoListener)?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let client = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
        let verifier = Arc::new(AnyCertificate(provider));
        let mut client = client.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
        client.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { plain, tls, client: Arc::new(client) })
    }

    /// Asks for `uri` with GET: over TLS if it is https and TLS is spoken. At most `content_max` bytes of content are kept; none: it is read
    /// and dropped. Cancel-safe.
    pub(super) async fn get(&self, uri: &Uri, fields: &[(String, String)], content_max: Option<u64>) -> Result<Answer, NoAnswer> {
        let listener = self.tls.as_ref().filter(|_| uri.scheme_str() == Some("https")).unwrap_or(&self.plain);
        let asked = async {
            let request = request(uri, fields)?;
            match listener {
                Listener::Tcp(address) => exchange(connect(address).await?, request, content_max).await,
                Listener::Tls(address) => {
                    let host = host_without_port(uri.authority().map(|authority| authority.as_str()).unwrap_or_default());
                    let name = ServerName::try_from(host.trim_start_matches('[').trim_end_matches(']').to_owned());
                    let name = name.map_err(|error| NoAnswer::Handshake(io::Error::other(error)))?;
                    let connector = TlsConnector::from(Arc::clone(&self.client));
                    let stream = connector.connect(name, connect(address).await?).await.map_err(NoAnswer::Handshake)?;
                    exchange(stream, request, content_max).await
                }
                Listener::Unix(path) => exchange(UnixStream::connect(path).await.map_err(NoAnswer::Connect)?, request, content_max).await,
            }
        };
        tokio::time::timeout(TIMEOUT, asked).await.unwrap_or(Err(NoAnswer::TimedOut))
    }

    /// Asks for a page as [`get`](Self::get) does, and keeps nothing of it. Where the site sends its visitors on to https at the same address,
    /// it is asked
    /// for there: that is where readers find it.
    pub(super) async fn page(&self, uri: &Uri, fields: &[(String, String)]) -> Result<Answer, NoAnswer> {
        let answer = self.get(uri, fields, None).await?;
        match upgraded(uri, &answer) {
            Some(uri) if self.tls.is_some() => self.get(&uri, fields, None).await,
            _ => Ok(answer),
        }
    }
}

/// Gives the same address with https, if that is where this answer leads.
fn upgraded(uri: &Uri, answer: &Answer) -> Option<Uri> {
    let there: Uri = answer.location()?.parse().ok()?;
    let host = |uri: &Uri| uri.authority().map(|authority| host_without_port(authority.as_str()).to_ascii_lowercase());
    let same = host(uri) == host(&there) && uri.path_and_query() == there.path_and_query();
    (same && uri.scheme_str() == Some("http") && there.scheme_str() == Some("https")).then_some(there)
}

impl Answer {
    /// Tells where it leads, if it is a redirect.
    pub(super) fn location(&self) -> Option<&str> {
        let is_redirect = matches!(self.status, 301 | 302 | 303 | 307 | 308);
        self.headers.get(header::LOCATION).filter(|_| is_redirect)?.to_str().ok()
    }
}

async fn connect(address: &SocketAddr) -> Result<TcpStream, NoAnswer> {
    TcpStream::connect(address).await.map_err(NoAnswer::Connect)
}

/// Takes every certificate: that of a root of this machine's own, one that is not valid yet, or has ended. Who is asked is not in doubt, as the
/// address is what the server's own admin API says, and nothing secret is sent.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Makes the request. `Host` has the public host, whoever is asked. The scheme is told as a proxy in front would tell it; the server believes it
/// if it trusts this machine.
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
        let here = IpAddr::from(Ipv4Addr::LOCALHOST);
        let there = IpAddr::from([192, 0, 2, 7]);
        for (name, protocol, admin, expected) in [
            ("127.0.0.1:8080", "http", here, tcp("127.0.0.1:8080")),
            ("0.0.0.0:80", "http", here, tcp("127.0.0.1:80")),
            ("[::]:80", "http", here, tcp("[::1]:80")),
            ("0.0.0.0:80", "http", there, tcp("192.0.2.7:80")),
            ("192.0.2.8:80", "http", there, tcp("192.0.2.8:80")),
            ("0.0.0.0:443", "https", here, Some(Listener::Tls("127.0.0.1:443".parse().expect("an address")))),
            ("0.0.0.0:443", "http3", here, None),
            ("unix:/run/s", "http", there, Some(Listener::Unix("/run/s".into()))),
            ("nonsense", "http", here, None),
        ] {
            let listener = ListenerHealth { address: name.to_owned(), protocol: protocol.to_owned() };
            assert_eq!(Listener::parse(&listener, admin), expected, "{name}");
        }
    }

    #[test]
    fn only_the_same_address_with_https_is_an_upgrade() {
        let uri: Uri = "http://blog.example:8080/a?b".parse().expect("a uri");
        for (status, location, expected) in [
            (301, "https://blog.example:8443/a?b", true),
            (308, "https://Blog.Example/a?b", true),
            (200, "https://blog.example/a?b", false),
            (301, "https://blog.example/other", false),
            (301, "https://other.example/a?b", false),
            (301, "http://blog.example/a?b", false),
            (301, "/a?b", false),
        ] {
            let headers = HeaderMap::from_iter([(header::LOCATION, location.parse().expect("a value"))]);
            let answer = Answer { status, headers, content: Vec::new() };
            assert_eq!(upgraded(&uri, &answer).is_some(), expected, "{location}");
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
