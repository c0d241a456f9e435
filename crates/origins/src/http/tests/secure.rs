//! TLS, Unix sockets, and the look at start.

use rustls::{RootCertStore, ServerConfig, crypto::aws_lc_rs};
use tokio::net::UnixListener;
use tokio_rustls::TlsAcceptor;

use super::*;

/// Returns a server's side of TLS for these names, and a client that trusts it.
fn certified(names: &[&str]) -> (TlsAcceptor, Arc<rustls::ClientConfig>) {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("a root");
    let key = rustls_pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let server = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("a certificate and its key");
    (TlsAcceptor::from(Arc::new(server)), crate::server::with_roots(roots).expect("a configuration"))
}

#[test]
fn https_is_spoken_with_whom_the_certificate_names_and_a_root_vouches_for() {
    for (names, trusted, fine) in [
        (&["localhost"][..], true, true),
        (&["127.0.0.1", "localhost"], true, true),
        (&["other.example"], true, false),
        (&["localhost"], false, false),
    ] {
        on_a_worker(async {
            let (acceptor, client) = certified(names);
            let script = Script::new().await;
            let port = script.listener.local_addr().expect("bound").port();
            let address: Address = format!("https://localhost:{port}").parse().expect("an address");
            let origin = with(&[address], None, |o| {
                if trusted {
                    o.tls = client;
                }
            });
            let asked = ask(&origin, get("/"));
            let socket = script.accept().await.0;
            // Held open to the end of the test, so that the connection can be kept.
            let mut accepted = acceptor.accept(socket).await.map(Wire);
            if fine {
                let wire = accepted.as_mut().expect("a handshake");
                assert_eq!(wire.0.get_ref().1.server_name(), Some("localhost"), "SNI");
                assert!(wire.answer(OK).await.starts_with("GET / HTTP/1.1\r\n"));
            }
            match asked.await.expect("no panic") {
                Ok(response) => {
                    assert!(fine);
                    assert_eq!(content(response).await.expect("a body"), "ok");
                    assert_eq!(idle(&origin), 1);
                }
                Err(error) => {
                    assert!(!fine, "{error}");
                    assert_eq!(error.fault, Fault::TlsError);
                }
            }
        });
    }
}

#[test]
fn a_server_that_does_not_speak_tls_is_a_tls_error() {
    on_a_worker(async {
        let script = Script::new().await;
        let port = script.listener.local_addr().expect("bound").port();
        let asked = ask(&origin(&[format!("https://127.0.0.1:{port}").parse().expect("an address")]), get("/"));
        let mut wire = script.accept().await;
        wire.say("HTTP/1.1 400 Bad Request\r\n\r\n").await;
        assert_eq!(asked.await.expect("no panic").expect_err("no TLS").fault, Fault::TlsError);
    });
}

#[test]
fn a_unix_socket_is_an_address_like_any_other() {
    on_a_worker(async {
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("site.sock");
        let address: Address = format!("unix:{}", path.display()).parse().expect("an address");
        let origin = origin(&[address]);
        assert_eq!(fetch(&origin, get("/")).await.expect_err("nobody there").fault, Fault::ConnectionRefused);
        let listener = UnixListener::bind(&path).expect("bound");
        let asked = ask(&origin, get("/"));
        let mut wire = Wire(listener.accept().await.expect("a connection").0);
        wire.answer(OK).await;
        assert_eq!(content(asked.await.expect("no panic").expect("a response")).await.expect("a body"), "ok");
        assert_eq!(idle(&origin), 1);
    });
}

#[test]
fn a_name_without_an_address_is_a_dns_error() {
    on_a_worker(async {
        // RFC 6761 §6.4: never resolves.
        let origin = origin(&["http://blog.invalid".parse().expect("an address")]);
        assert_eq!(fetch(&origin, get("/")).await.expect_err("no such name").fault, Fault::DnsError);
    });
}

#[test]
fn a_look_at_an_origin_says_what_it_is_and_follows_its_wish_for_https() {
    on_a_worker(async {
        let script = Script::new().await;
        let address = script.address();
        let looked = tokio::task::spawn_local(async move { probe(&address, Some("blog.example"), &no_tls()).await });
        let mut wire = script.accept().await;
        let to_https = "HTTP/1.1 301 Moved Permanently\r\nlocation: https://blog.example/\r\ncontent-length: 0\r\n\r\n";
        assert!(wire.answer(to_https).await.contains("host: blog.example\r\n"));
        let page = "<html><head><meta name=\"generator\" content=\"Ghost 6.65\">";
        let heard = wire.answer(format!("HTTP/1.1 200 OK\r\nserver: x\r\ncontent-length: {}\r\n\r\n{page}", page.len())).await;
        assert!(heard.contains("x-forwarded-proto: https\r\n"), "{heard}");
        let looked = looked.await.expect("no panic").expect("an answer");
        assert_eq!((looked.status, looked.software), (StatusCode::OK, Software::Ghost));
        assert_eq!((looked.generator.as_deref(), looked.server.as_deref()), (Some("Ghost 6.65"), Some("x")));
    });
}
