//! What any origin gets: a request that tells nothing of its client, and beside it the client as a value.
#![expect(clippy::expect_used, reason = "tests")]

use std::{cell::RefCell, net::IpAddr, rc::Rc, sync::Arc, time::Duration};

use http::{HeaderMap, Request, Response, Version};
use origins::{Arrival, Body, LocalFuture, OnInterim, Origin, OriginError};
use pipeline::{Clock, Collapse, Https, OriginState, Parts, Pipeline, Refill, ResponseFields, Route, Router, Shared, Site};
use policy::{Kind, Policy, Settings};
use semantics::Scheme;
use store::StoreOptions;

/// An origin that speaks no protocol, and writes down what it gets.
#[derive(Debug, Default)]
struct Notebook(RefCell<Vec<Noted>>);

#[derive(Debug)]
struct Noted {
    target: String,
    fields: HeaderMap,
    peer: Option<IpAddr>,
    client: Option<IpAddr>,
    way: Vec<IpAddr>,
    scheme: Scheme,
    authority: String,
    prefix: Option<String>,
    version: Version,
}

impl Origin for Notebook {
    fn fetch<'a>(
        &'a self,
        request: Request<Body>,
        arrival: &'a Arrival<'a>,
        _: Option<&'a OnInterim<'a>>,
    ) -> LocalFuture<'a, Result<Response<Body>, OriginError>> {
        let caller = arrival.caller.expect("a client asks");
        self.0.borrow_mut().push(Noted {
            target: request.uri().to_string(),
            fields: request.headers().clone(),
            peer: caller.peer,
            client: caller.client,
            way: caller.way.to_vec(),
            scheme: arrival.scheme,
            authority: arrival.authority.to_owned(),
            prefix: arrival.prefix.map(str::to_owned),
            version: arrival.version,
        });
        Box::pin(async { Ok(Response::new(Body::Empty)) })
    }
}

fn site(origin: &Rc<Notebook>, route: Option<Route>, parts: Parts) -> Site {
    Site {
        id: 0,
        name: "site".to_owned(),
        hosts: Vec::new(),
        policy: Policy::new(Settings { trusted_fields: vec!["x-country".to_owned()], ..Settings::preset(Kind::Generic) }),
        origin: Rc::clone(origin) as Rc<dyn Origin>,
        origin_host: None,
        object_max: 64 << 10,
        disk_object_max: 0,
        on_disk: false,
        is_shared: false,
        reader_wait_max: Duration::from_secs(60),
        origin_state: OriginState::default(),
        collapse: Collapse::new(Duration::from_secs(5), None),
        refill: Refill::default(),
        https: Https::default(),
        auth: None,
        logins: None,
        webhook_secret: None,
        schedule: None,
        fields: ResponseFields::default(),
        route,
        parts,
    }
}

/// RFC 3875 §4.1 has variables for what HTTP servers read in fields. So no origin has to parse what the front has written, and no field that
/// a client sends can pass for it.
#[test]
fn an_origin_is_told_of_the_client_by_a_value_and_by_no_field() {
    let notebook = Rc::new(Notebook::default());
    let api = Route { path: "/api".to_owned(), strip_prefix: true, cache: false, sends_cookies: true };
    let parts = Parts::new(vec![site(&notebook, Some(api), Parts::default())]);
    let shared = Arc::new(Shared::open(StoreOptions::with_memory(1 << 20), None, Clock::Simulated(Arc::default())));
    let trusted = vec!["10.0.0.0/8".parse().expect("a network")];
    let pipeline = Pipeline::new(shared, Arc::default(), Router::new(vec![site(&notebook, None, parts)]), trusted);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default()).expect("a runtime");
    let ip = |text: &str| Some(text.parse::<IpAddr>().expect("an address"));
    for (peer, method, target) in
        [(ip("192.0.2.7"), "GET", "/page"), (ip("10.0.0.1"), "GET", "/page?a"), (ip("10.0.0.1"), "POST", "/page"), (None, "GET", "/api/x")]
    {
        let is_trusted = peer != ip("192.0.2.7");
        let request = Request::builder()
            .method(method)
            .uri(target)
            .version(Version::HTTP_2)
            .header("host", "blog.example")
            .header("accept", "*/*")
            .header("connection", "x-hop")
            .header("x-hop", "1")
            .header("x-forwarded-for", "6.6.6.6, 198.51.100.9, 10.0.0.2")
            .header("x-forwarded-proto", "https")
            .header("x_forwarded_host", "evil.example")
            .header("x-forwarded-prefix", "/evil")
            .header("x-real-ip", "6.6.6.6")
            .header("x.original.url", "/evil")
            .header("x_country", "evil")
            .header("x-country", "SE")
            .header("proxy", "http://evil.example")
            .body(Body::Empty)
            .expect("a request");
        runtime.block_on(pipeline.respond(pipeline.receive(peer, Scheme::Http, request, None)));
        let noted = notebook.0.borrow_mut().pop().expect("it was asked");
        for name in noted.fields.keys().map(http::HeaderName::as_str) {
            let goes = ["accept", "accept-encoding", "host", "x-request-id"].contains(&name) || (is_trusted && name == "x-country");
            assert!(goes, "{name} to {target} from {peer:?}");
        }
        let (client, way, scheme) = if is_trusted {
            (ip("198.51.100.9"), vec![ip("198.51.100.9"), ip("10.0.0.2")], Scheme::Https)
        } else {
            (peer, Vec::new(), Scheme::Http)
        };
        assert_eq!((noted.peer, noted.client), (peer, client), "{target}");
        assert_eq!(noted.way.into_iter().map(Some).collect::<Vec<_>>(), way, "{target}");
        assert_eq!((noted.scheme, noted.authority.as_str(), noted.version), (scheme, "blog.example", Version::HTTP_2));
        let expected = target.strip_prefix("/api").map_or((target, None), |behind| (behind, Some("/api".to_owned())));
        assert_eq!((noted.target.as_str(), noted.prefix), expected);
    }
}
