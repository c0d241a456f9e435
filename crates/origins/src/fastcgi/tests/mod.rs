//! A scripted FastCGI server: what it hears and says, record by record.

mod connections;
mod exchange;
mod params;

use std::{cell::RefCell, sync::Arc, time::Duration};

use ::http::{HeaderMap, Method, Request, Response, StatusCode};
use bytes::Bytes;
use http_body_util::BodyExt;
use semantics::Scheme;
use testkit::{FastCgiPeer, FastCgiServer as Server};

use super::*;
use crate::{
    Caller,
    server::{Address, ServerOptions, with_roots},
};

/// Runs a test as a worker runs: one thread, tasks that stay on it.
fn on_a_worker<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default()).expect("a runtime").block_on(test)
}

fn options(server: &Server) -> ServerOptions {
    let tls = with_roots(rustls::RootCertStore::empty()).expect("a configuration");
    ServerOptions::new(vec![Address::Unix(server.socket())], tls)
}

fn shared(options: ServerOptions) -> Arc<FastCgiServer> {
    Arc::new(FastCgiServer::new(Arc::new(options)))
}

fn client(server: &Server) -> FastCgi {
    FastCgi::new(shared(options(server)), None)
}

fn script() -> Script {
    Script { document_root: "/srv/site".into(), name: "/index.php".into(), path_info: String::new(), more: Arc::default() }
}

fn request(method: &Method, target: &str, body: impl Into<Body>) -> Request<Body> {
    let mut request = Request::new(body.into());
    *request.method_mut() = method.clone();
    *request.uri_mut() = target.parse().expect("a target");
    request
}

fn get(target: &str) -> Request<Body> {
    request(&Method::GET, target, Body::Empty)
}

fn arrival() -> Arrival<'static> {
    let client = Some([192, 0, 2, 7].into());
    Arrival { caller: Some(Caller { peer: client, client, way: &[] }), ..Arrival::of_our_own(Scheme::Http, "blog.example") }
}

async fn ask(client: &FastCgi, request: Request<Body>) -> Result<Response<Body>, OriginError> {
    client.run(&script(), request, &arrival(), None).await
}

async fn content(response: Response<Body>) -> Result<Bytes, OriginError> {
    Ok(response.into_body().collect().await?.to_bytes())
}

/// Asks, and has the server's end of a new connection do `says` meanwhile.
async fn exchange(
    client: &FastCgi,
    server: &Server,
    request: Request<Body>,
    says: impl AsyncFnOnce(&mut FastCgiPeer),
) -> Result<Response<Body>, OriginError> {
    let says = async {
        let mut peer = server.accept().await;
        peer.request().await;
        says(&mut peer).await;
    };
    let (response, ()) = futures_util::future::join(ask(client, request), says).await;
    response
}
