//! The request that goes to the origin.

use http::{HeaderMap, HeaderValue, Request, header};
use origins::{
    Body,
    http::{Forwarding, Peer, keep_upgrade, rebuild},
};
use semantics::validation::add_validators;

use crate::{Stored, question::Question};

/// Fields by which a client asks for less than the whole, or for nothing if it has it already.
const CONDITIONS: [header::HeaderName; 6] =
    [header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE, header::IF_MATCH, header::IF_UNMODIFIED_SINCE, header::IF_RANGE, header::RANGE];

/// For a response that all who ask the same will get: whole, unconditional, without a coding where we have our own, else in one for all
/// browsers; with the validators of what is stored, if that may be confirmed.
pub(crate) fn shared(question: &Question, candidate: Option<&Stored>) -> Request<Body> {
    let mut request = request(question, Body::Empty);
    let fields = request.headers_mut();
    for name in &CONDITIONS {
        fields.remove(name);
    }
    ask_as_keyed(question, fields);
    if let Some(stored) = candidate {
        add_validators(&stored.record.headers(), fields);
    }
    request
}

/// What may be stored must be the answer to what key and `Vary` say was asked: the codings in their canonical form. Fields that are in
/// neither went before (`question::reduce`).
fn ask_as_keyed(question: &Question, fields: &mut HeaderMap) {
    let codings = question.codings();
    if codings.is_empty() {
        fields.remove(header::ACCEPT_ENCODING);
    } else {
        fields.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(codings));
    }
}

/// For this one client, with its own conditions unless what is stored is to be validated.
pub(crate) fn alone(question: &Question, candidate: Option<&Stored>) -> Request<Body> {
    let mut request = request(question, Body::Empty);
    ask_as_keyed(question, request.headers_mut());
    if let Some(stored) = candidate {
        add_validators(&stored.record.headers(), request.headers_mut());
    }
    request
}

/// As it came.
pub(crate) fn passed(question: &Question, body: Body) -> Request<Body> {
    let mut request = request(question, body);
    // h2c would switch this connection to a protocol that is only meant for the client's.
    let h2c = |to: &[u8]| to.split(|&b| b == b',').any(|protocol| protocol.trim_ascii().to_ascii_lowercase().starts_with(b"h2c"));
    let upgrades = question.headers.get(header::UPGRADE).is_some_and(|to| !h2c(to.as_bytes()));
    if upgrades {
        keep_upgrade(&question.headers, request.headers_mut());
    }
    request
}

fn request(question: &Question, body: Body) -> Request<Body> {
    let client = &question.client;
    let peer = |address: Option<std::net::IpAddr>| address.map_or(Peer::Unix, Peer::Ip);
    let mut fields = rebuild(
        &question.headers,
        &Forwarding {
            peer: peer(client.peer),
            client: peer(client.address),
            way: &question.way,
            trusted_fields: if client.trusted { &question.site.policy.settings().trusted_fields } else { &[] },
            scheme: client.scheme,
            authority: &question.authority,
            version: question.version,
        },
    );
    if question.authority.is_empty() {
        // An HTTP/1.0 client named no host: the origin is asked by its own name.
        fields.remove(header::HOST);
    }
    if let Some(host) = question.site.origin_host.as_deref().and_then(|host| HeaderValue::from_str(host).ok()) {
        fields.insert(header::HOST, host);
    }
    if question.site.policy.is_impersonal() {
        fields.remove(header::COOKIE);
        fields.remove(header::AUTHORIZATION);
    }
    let mut request = Request::new(body);
    *request.method_mut() = question.method.clone();
    *request.uri_mut() = question.uri.clone();
    let route = question.site.route.as_ref();
    if let Some((route, target)) = route.and_then(|route| Some((route, route.stripped(&question.target)?)))
        && let (Ok(uri), Ok(prefix)) = (target.parse(), HeaderValue::from_str(&route.path))
    {
        *request.uri_mut() = uri;
        // So that the origin can write links that lead back here.
        fields.insert("x-forwarded-prefix", prefix);
    }
    *request.headers_mut() = fields;
    request
}
