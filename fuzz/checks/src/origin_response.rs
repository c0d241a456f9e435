//! What an origin sends, or somebody in its place (RFC 9112 §4, §6; RFC 9110 §7.6.1).

use std::{sync::Arc, time::Duration};

use http::{Method, Request, StatusCode, header::CONTENT_LENGTH};
use http_body_util::BodyExt;
use origins::{
    Arrival, Body, Origin,
    http::HttpOrigin,
    server::{Address, ServerOptions},
};
use rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs};
use semantics::Scheme;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixListener,
    runtime::Runtime,
    task::LocalSet,
};

/// An origin that says whatever it is told, over a Unix socket.
struct Stage {
    runtime: Runtime,
    place: TempDir,
    tls: Arc<ClientConfig>,
}

impl Stage {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let tls = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider has TLS 1.3")
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        Self { runtime, place: TempDir::new().expect("a temporary folder"), tls: Arc::new(tls) }
    }
}

thread_local!(static STAGE: Stage = Stage::new());

/// The input is everything an origin sends before it closes. A response comes out of it or an error does; a response's content is as
/// long as it was announced, and what concerned the connection is gone.
pub fn origin_response(data: &[u8]) {
    STAGE.with(|stage| {
        for method in [Method::GET, Method::HEAD] {
            LocalSet::new().block_on(&stage.runtime, exchange(stage, &method, data));
        }
    });
}

async fn exchange(stage: &Stage, method: &Method, data: &[u8]) {
    let socket = stage.place.path().join("socket");
    let _ = std::fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket).expect("a fresh socket");
    let sent = data.to_vec();
    let origin_side = tokio::task::spawn_local(async move {
        // A request that is not idempotent is asked once; a GET may be asked again over a second connection.
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 4096];
            let _ = stream.read(&mut head).await;
            let _ = stream.write_all(&sent).await;
            let _ = stream.shutdown().await;
        }
    });
    let mut options = ServerOptions::new(vec![Address::Unix(socket)], Arc::clone(&stage.tls));
    options.first_byte_timeout = Duration::from_secs(5);
    options.between_bytes_timeout = Duration::from_secs(5);
    let origin = HttpOrigin::new(Arc::new(options), None).expect("an address");
    let mut request = Request::new(Body::Empty);
    *request.method_mut() = method.clone();
    if let Ok(response) = origin.fetch(request, &Arrival::of_our_own(Scheme::Http, ""), None).await {
        answered(method, response, data).await;
    }
    origin_side.abort();
}

async fn answered(method: &Method, response: http::Response<Body>, data: &[u8]) {
    let (head, mut body) = response.into_parts();
    assert!(head.status != StatusCode::SWITCHING_PROTOCOLS, "101 that nobody asked for");
    assert!(head.status.as_u16() >= 200 && head.status.as_u16() <= 999);
    for name in ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"] {
        assert!(!head.headers.contains_key(name), "{name} came through");
    }
    for value in head.headers.values() {
        assert!(!value.as_bytes().iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
    }
    let (mut received, mut failed) = (0_u64, false);
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => received += frame.data_ref().map_or(0, |data| data.len() as u64),
            Err(_) => {
                failed = true;
                break;
            }
        }
    }
    assert!(received <= data.len() as u64, "more content than was sent");
    let bodiless = *method == Method::HEAD || matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    if bodiless {
        assert!(received == 0 && !failed);
    }
    let lengths: Vec<_> = head.headers.get_all(CONTENT_LENGTH).iter().collect();
    let announced = lengths.first().and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if let Some(announced) = announced.filter(|_| !bodiless) {
        assert!(received <= announced, "{received} bytes where {announced} were announced");
        assert!(failed || received == announced, "cut short without anybody being told");
    }
}
