//! Certificates that come by themselves, from a real ACME server (Pebble) to a real handshake. RFC 8555, RFC 8737.

use std::{net::TcpListener, path::Path, sync::Arc, time::Duration};

use edge::Socket;
use pipeline::Clock;
use rcgen::{CertificateParams, KeyPair};
use rustls_pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use seawall::server::Server;
use testkit::{Client, Origin, Pebble, PebbleOptions, get, ok};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{ClientConfig, RootCertStore},
};

use crate::site::settings;

const HOST: &str = "blog.example.org";

/// What the authority has to know before the server listens.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port()
}

/// A Pebble that looks for proof at these ports; the file with its own certificate is put into the folder.
async fn authority(folder: &Path, http_port: u16, tls_port: u16) -> Pebble {
    let key = KeyPair::generate().expect("a key");
    let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()]).and_then(|params| params.self_signed(&key)).expect("made");
    std::fs::write(folder.join("authority.pem"), certificate.pem()).expect("written");
    let identity = (certificate.pem(), key.serialize_pem());
    let lifetime = Duration::from_secs(90 * 24 * 3600);
    let options = PebbleOptions { identity, http_port, tls_port, lifetime, refused_nonces: 5, external: None, port: None };
    tokio::task::spawn_blocking(move || Pebble::start(&options)).await.expect("started")
}

fn start(folder: &Path, toml: &str) -> Server {
    Server::start(settings(folder, toml).expect("valid settings"), Clock::system()).expect("a server")
}

fn tls_address(server: &Server) -> std::net::SocketAddr {
    let tls = server.listening().iter().find_map(|socket| match socket {
        Socket::Tls(address) => Some(*address),
        Socket::Tcp(_) | Socket::Quic(_) | Socket::Unix(_) => None,
    });
    tls.expect("a TLS listener")
}

/// Tries handshakes until one succeeds: nobody says when a certificate has come.
async fn when_certified(server: &Server, name: &str, roots: RootCertStore) -> String {
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));
    let fetch = async {
        loop {
            let stream = TcpStream::connect(tls_address(server)).await.expect("a connection");
            let server_name = ServerName::try_from(name.to_owned()).expect("a name");
            let Ok(mut stream) = connector.connect(server_name, stream).await else {
                tokio::task::yield_now().await;
                continue;
            };
            let request = format!("GET /post HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await.expect("sent");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.expect("an answer");
            return answer;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), fetch).await.expect("a certificate")
}

fn root(pem: &[u8]) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(pem).expect("PEM")).expect("a root");
    roots
}

/// The root of a Pebble is another one each time, and it tells it to those who ask.
async fn root_of(pebble: &Pebble, folder: &Path) -> RootCertStore {
    let config = ClientConfig::builder().with_root_certificates(root(&std::fs::read(folder.join("authority.pem")).expect("there")));
    let connector = TlsConnector::from(Arc::new(config.with_no_client_auth()));
    let management = pebble.management();
    let address = management.strip_prefix("https://").expect("https");
    let stream = TcpStream::connect(address).await.expect("a connection");
    let mut stream = connector.connect(ServerName::try_from("127.0.0.1").expect("a name"), stream).await.expect("a handshake");
    stream.write_all(b"GET /roots/0 HTTP/1.0\r\n\r\n").await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    root(answer.split_once("\r\n\r\n").expect("a body").1.as_bytes())
}

#[tokio::test]
async fn a_name_gets_its_certificate_and_is_served_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = Origin::start();
    origin.on(get("/post")).reply(ok("v1").field("cache-control", "max-age=60"));
    let (http_port, tls_port) = (free_port(), free_port());
    let pebble = authority(folder.path(), http_port, tls_port).await;
    let toml = format!(
        "[server]\nlisten = [\"127.0.0.1:{http_port}\"]\n[tls]\nlisten = [\"127.0.0.1:{tls_port}\"]\n\
         [acme]\ndirectory = \"{}\"\nca_file = \"authority.pem\"\ndir = \"acme\"\n\
         [[site]]\nhosts = [\"{HOST}\"]\nsource = \"{}\"\n",
        pebble.directory(),
        origin.url(),
    );
    let server = start(folder.path(), &toml);
    // Until it has come, and afterwards, the plain port serves.
    Client::connect(("127.0.0.1", http_port)).await.with_host(HOST).get("/post").await.status(200).body("v1");
    let roots = root_of(&pebble, folder.path()).await;
    let answer = when_certified(&server, HOST, roots.clone()).await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("v1"), "{answer}");
    let metrics = server.console().metrics();
    let end = metrics.iter().find(|metric| metric.name == "seawall_certificate_end_seconds").expect("a metric");
    assert_eq!(end.samples[0].labels, [("name", HOST.to_owned())]);
    drop(server);
    // A restart shows what is there at once, also when the authority is gone.
    drop(pebble);
    let server = start(folder.path(), &toml);
    when_certified(&server, HOST, roots).await;
}

/// Readers type both.
#[tokio::test]
async fn the_other_form_of_a_name_leads_to_the_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = Origin::start();
    origin.on(get("/post")).reply(ok("v1"));
    let toml = format!(
        "[tls]\nlisten = [\"127.0.0.1:0\"]\n[acme]\ndirectory = \"https://127.0.0.1:1/nobody\"\ndir = \"acme\"\n\
         [[site]]\nhosts = [\"example.org\"]\nsource = \"{}\"\n",
        origin.url()
    );
    let server = start(folder.path(), &toml);
    let Socket::Tcp(address) = server.listening()[0] else { panic!("a plain listener first") };
    let client = |host: &str| {
        let host = host.to_owned();
        async move { Client::connect(address).await.with_host(&host) }
    };
    let answer = client("www.example.org").await.get("/post?a=1").await;
    answer.status(301).field("location", "http://example.org/post?a=1");
    client("WWW.example.org:8080").await.get("/").await.status(301).field("location", "http://example.org:8080/");
    client("example.org").await.get("/post").await.status(200).body("v1");
    client("ww.example.org").await.get("/post").await.status(421);
}

/// A local name: nobody has to be asked.
#[tokio::test]
async fn localhost_gets_a_certificate_from_a_root_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = Origin::start();
    origin.on(get("/post")).reply(ok("v1"));
    let toml = format!(
        "[tls]\nlisten = [\"127.0.0.1:0\"]\n[acme]\ndirectory = \"https://127.0.0.1:1/nobody\"\ndir = \"acme\"\n\
         [[site]]\nhosts = [\"localhost\"]\nsource = \"{}\"\n",
        origin.url()
    );
    let server = start(folder.path(), &toml);
    let file = folder.path().join("acme/local-root.pem");
    let made = async {
        while !file.exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), made).await.expect("a root");
    let answer = when_certified(&server, "localhost", root(&std::fs::read(file).expect("there"))).await;
    assert!(answer.ends_with("v1"), "{answer}");
}
