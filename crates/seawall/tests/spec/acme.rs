//! Certificates that come by themselves, from a real ACME server (Pebble) to a real handshake. RFC 8555, RFC 8737.

use std::{path::Path, sync::Arc, time::Duration};

use edge::Socket;
use pipeline::Clock;
use rcgen::{CertificateParams, KeyPair};
use rustls_pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use seawall::{
    cli::Serve,
    config::{self, settings::Settings},
    server::Server,
};
use testkit::{Client, Gate, Origin, Pebble, PebbleOptions, Req, free_port, get, ok, patiently, status};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{ClientConfig, RootCertStore},
};

use crate::{
    site::{Site, settings},
    tls::Authority,
};

const HOST: &str = "blog.example.org";

/// Returns a Pebble that looks for proof at these ports; the file with its own certificate is put into the folder.
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

/// Asks a Pebble for its root, which is another one each time, and it tells it to those who ask.
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

/// Returns a server for a name that asks an authority that is not there.
fn without_authority(folder: &Path, host: &str, origin: &Origin) -> Server {
    let toml = format!(
        "[tls]\nlisten = [\"127.0.0.1:0\"]\n[acme]\ndirectory = \"https://127.0.0.1:1/nobody\"\ndir = \"acme\"\n\
         [[site]]\nhosts = [\"{host}\"]\nsource = \"{}\"\n",
        origin.url()
    );
    start(folder, &toml)
}

/// Readers type both.
#[tokio::test]
async fn the_other_form_of_a_name_leads_to_the_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = Origin::start();
    origin.on(get("/post")).reply(ok("v1"));
    let server = without_authority(folder.path(), "example.org", &origin);
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
    let server = without_authority(folder.path(), "localhost", &origin);
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

/// Returns what `--domain` with this file and this source means.
fn with_domain(folder: &Path, toml: &str, source: &str) -> Settings {
    let file = folder.join("seawall.toml");
    std::fs::write(&file, format!("{toml}[log]\naccess = \"off\"\n")).expect("written");
    let serve = Serve { config: Some(file), source: Some(source.to_owned()), domain: vec![HOST.to_owned()], ..Serve::default() };
    config::load(&serve, |_| None).expect("valid settings")
}

/// A redirect to a browser's warning would be worse than none. Explicitly off is off.
#[tokio::test]
async fn a_domain_is_sent_to_https_once_it_has_a_certificate() {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = Origin::start();
    origin.on(get("/post")).reply(ok("v1").field("cache-control", "max-age=60"));
    let (http_port, tls_port) = (free_port(), free_port());
    let listen = format!("[server]\nlisten = [\"127.0.0.1:{http_port}\"]\n[tls]\nlisten = [\"127.0.0.1:{tls_port}\"]\n");
    let plain = || async { Client::connect(("127.0.0.1", http_port)).await.with_host(HOST) };

    let nobody = format!("{listen}[acme]\ndirectory = \"https://127.0.0.1:1/nobody\"\ndir = \"nobody\"\n");
    let server = Server::start(with_domain(folder.path(), &nobody, &origin.url()), Clock::system()).expect("a server");
    for _ in 0..2 {
        plain().await.get("/post").await.status(200).body("v1");
    }
    drop(server);

    let pebble = authority(folder.path(), http_port, tls_port).await;
    let acme = format!("{listen}[acme]\ndirectory = \"{}\"\nca_file = \"authority.pem\"\ndir = \"acme\"\n", pebble.directory());
    let server = Server::start(with_domain(folder.path(), &acme, &origin.url()), Clock::system()).expect("a server");
    let answer = when_certified(&server, HOST, root_of(&pebble, folder.path()).await).await;
    assert!(answer.ends_with("v1"), "{answer}");
    let location = format!("https://{HOST}:{tls_port}/post");
    for _ in 0..2 {
        plain().await.get("/post").await.status(301).field("location", &location);
    }
    plain().await.request(Req::post("/post").body("x")).await.status(308).field("location", &location);
    plain().await.get("/.well-known/acme-challenge/seawall").await.status(200).body("seawall");
    drop(server);

    let off = format!("{acme}[https]\nredirect = false\n");
    let server = Server::start(with_domain(folder.path(), &off, &origin.url()), Clock::system()).expect("a server");
    plain().await.get("/post").await.status(200).body("v1");
    drop(server);
}

/// Nobody who connects first sees an error, and nobody else waits with them.
#[tokio::test]
async fn the_first_to_connect_to_a_name_on_demand_waits_for_its_certificate() {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = Origin::start();
    let gate = Gate::new();
    origin.on(get("/post")).reply(ok("v1"));
    origin.on(get("/ask?domain=friend.example.net")).reply(ok("yes").gate(&gate));
    origin.on(get("/ask?domain=stranger.example.net")).reply(status(404));
    let (http_port, tls_port) = (free_port(), free_port());
    let pebble = authority(folder.path(), http_port, tls_port).await;
    let toml = format!(
        "[server]\nlisten = [\"127.0.0.1:{http_port}\"]\n[tls]\nlisten = [\"127.0.0.1:{tls_port}\"]\n\
         [acme]\ndirectory = \"{}\"\nca_file = \"authority.pem\"\ndir = \"acme\"\non_demand = true\nask = \"{}/ask\"\n\
         [[site]]\nhosts = [\"localhost\"]\nsource = \"{}\"\n",
        pebble.directory(),
        origin.url(),
        origin.url(),
    );
    let server = start(folder.path(), &toml);
    let roots = root_of(&pebble, folder.path()).await;
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));
    let connect = async |name: &'static str| {
        let stream = TcpStream::connect(tls_address(&server)).await.expect("a connection");
        connector.connect(ServerName::try_from(name).expect("a name"), stream).await
    };
    let waits = connect("friend.example.net");
    let meanwhile = async {
        // It was asked about, so its client waits.
        gate.arrived().await;
        let file = folder.path().join("acme/local-root.pem");
        while !file.exists() {
            tokio::task::yield_now().await;
        }
        when_certified(&server, "localhost", root(&std::fs::read(file).expect("there"))).await;
        gate.open();
    };
    let (friend, ()) = tokio::join!(waits, meanwhile);
    friend.expect("a handshake at the first try");
    connect("stranger.example.net").await.map(|_| ()).expect_err("neither a host pattern nor `ask` allows it");
}

/// `seawall certificates`, and `seawall certificates revoke NAME`.
#[tokio::test]
async fn certificates_are_listed_and_revoked_while_it_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = Origin::start();
    origin.on(get("/post")).reply(ok("v1"));
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
    let roots = root_of(&pebble, folder.path()).await;
    when_certified(&server, HOST, roots.clone()).await;
    let console = server.console();
    let listed = console.certificates();
    assert_eq!(listed.iter().map(|state| (&*state.name, &*state.authority)).collect::<Vec<_>>(), [(HOST, &*pebble.directory())]);
    let kept = || std::fs::read_dir(folder.path().join("acme")).expect("a folder").filter_map(Result::ok);
    let kept = || kept().find_map(|entry| std::fs::read(entry.path().join(format!("{HOST}.pem"))).ok()).expect("a certificate");
    let before = kept();
    let revoked =
        tokio::task::spawn_blocking(move || (console.revoke("nobody.example.org"), console.revoke(HOST))).await.expect("no panic");
    assert_eq!(revoked.0, Err(admin::RevokeRefused::Unknown("nobody.example.org".to_owned())));
    assert!(revoked.1.expect("revoked").not_after.is_some());
    assert_ne!(kept(), before);
    assert!(when_certified(&server, HOST, roots).await.ends_with("v1"));
}

/// What cannot change while it runs stays as it was, and nobody is sent to where nobody listens.
#[tokio::test]
async fn https_that_a_reload_brings_needs_a_restart_and_says_so() {
    let origin = Origin::start();
    origin.on(get("/post")).reply(ok("v1"));
    let mut site = Site::start(&format!("source = \"{}\"", origin.url()));
    let toml = format!(
        "[tls]\nlisten = [\"127.0.0.1:8443\"]\n[acme]\ndirectory = \"https://127.0.0.1:1/nobody\"\ndir = \"acme\"\n[https]\nredirect = true\n\
         [[site]]\nhosts = [\"localhost\"]\nsource = \"{}\"\n",
        origin.url()
    );
    assert_eq!(site.reload(&toml).expect("reloaded"), ["tls.listen", "acme"]);
    Client::connect(site.address()).await.with_host("localhost").get("/post").await.status(200).body("v1");
    assert_eq!(site.server.console().certificates(), []);
}

/// Where TLS is spoken already, `[acme]` comes, changes and goes with a reload.
#[tokio::test]
async fn acme_is_taken_over_by_a_reload() {
    let authority = Authority::new();
    let origin = Origin::start();
    let tls = authority.section();
    let source = origin.url();
    let sites = |hosts: &str| format!("[[site]]\nhosts = [{hosts}]\nsource = \"{source}\"\n");
    let mut site = Site::start(&format!("{tls}{}", sites("\"localhost\"")));
    let names =
        |site: &Site| site.server.console().certificates().into_iter().map(|state| (state.name, state.authority)).collect::<Vec<_>>();
    let file = authority.certificate_file();
    let of_file = (crate::site::HOST.to_owned(), file);
    assert_eq!(names(&site), std::slice::from_ref(&of_file));
    for dir in ["one", "two"] {
        let acme = format!("{tls}[acme]\nenabled = true\ndirectory = \"https://127.0.0.1:1/nobody\"\ndir = \"{dir}\"\n");
        assert_eq!(site.reload(&format!("{acme}{}", sites("\"localhost\""))).expect("reloaded"), [""; 0]);
        assert_eq!(names(&site), [of_file.clone(), ("localhost".to_owned(), "this machine's own root".to_owned())]);
        let got = async {
            while site.server.console().certificates()[1].not_after.is_none() {
                tokio::task::yield_now().await;
            }
        };
        patiently("for a certificate", got).await;
        assert!(site.folder().join(dir).join("local-root.pem").exists());
    }
    assert_eq!(site.reload(&format!("{tls}{}", sites("\"localhost\""))).expect("reloaded"), [""; 0]);
    assert_eq!(names(&site), [of_file]);
}
