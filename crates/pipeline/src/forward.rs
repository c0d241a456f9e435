//! The request that goes to the origin.

use http::{HeaderMap, HeaderValue, Request, Uri, header};
use origins::{Arrival, Body, Caller, end_to_end, keep_upgrade};
use policy::Key;
use semantics::{request::has_any, validation::add_validators};

use crate::{Stored, admission::max_forwards, question::Question};

/// Fields by which a client asks for less than the whole, or for nothing if it has it already.
const CONDITIONS: [header::HeaderName; 6] =
    [header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE, header::IF_MATCH, header::IF_UNMODIFIED_SINCE, header::IF_RANGE, header::RANGE];

/// The `User-Agent` of a request that is made in one form for all who get its response.
const USER_AGENT: HeaderValue = HeaderValue::from_static(concat!("Seawall/", env!("CARGO_PKG_VERSION")));

const IDENTITY: HeaderValue = HeaderValue::from_static("identity");

/// Makes the request for a response that everybody who asks the same will get. It asks for the whole, without the client's conditions, and
/// without a coding where we code ourselves, else in one for all browsers. It has the validators of `candidate`, if that may be confirmed.
pub(crate) fn shared(question: &Question, candidate: Option<&Stored>) -> Box<Request<Body>> {
    let mut request = request(question, Body::Empty);
    let fields = request.headers_mut();
    if question.has_condition_or_range() {
        for name in &CONDITIONS {
            fields.remove(name);
        }
    }
    ask_as_keyed(question, fields);
    if let Some(stored) = candidate {
        ask_whether_current(question, stored, fields);
    }
    request
}

/// Puts the codings into their canonical form, and `Accept` where one of its forms stands for a class: a stored response must answer what key
/// and `Vary` say was asked. Fields that are in neither went before (`question::remove_unsent_fields`).
fn ask_as_keyed(question: &Question, fields: &mut HeaderMap) {
    let class = Key::class_of(&question.key);
    if let Some(accept) = class.and_then(|class| question.site.policy.canonical_accept(class)) {
        fields.insert(header::ACCEPT, HeaderValue::from_static(accept));
        fields.insert(header::USER_AGENT, USER_AGENT);
    }
    let codings = question.codings();
    if !codings.is_empty() {
        // What nearly every request is asked in is a constant: making a value looks at each of its letters.
        let value = if codings == "identity" { IDENTITY } else { HeaderValue::from_static(codings) };
        fields.insert(header::ACCEPT_ENCODING, value);
    } else if has_any(fields, &[header::ACCEPT_ENCODING]) {
        fields.remove(header::ACCEPT_ENCODING);
    }
}

/// Makes the request for this client alone, with its own conditions unless what is stored is to be validated.
pub(crate) fn alone(question: &Question, candidate: Option<&Stored>) -> Box<Request<Body>> {
    let mut request = request(question, Body::Empty);
    ask_as_keyed(question, request.headers_mut());
    if let Some(stored) = candidate {
        ask_whether_current(question, stored, request.headers_mut());
    }
    request
}

/// Makes a request ask whether `stored` is still current. Where the origin does not know that by its validators, the request asks for the whole.
fn ask_whether_current(question: &Question, stored: &Stored, fields: &mut HeaderMap) {
    let mut headers = stored.record.headers();
    if question.site.policy.mistakes_validators(&headers) {
        headers.clear();
    }
    add_validators(&headers, fields);
}

/// Makes the request that passes as it came.
pub(crate) fn passed(question: &Question, body: Body) -> Box<Request<Body>> {
    let mut request = request(question, body);
    // h2c would switch this connection to a protocol that is only meant for the client's.
    let h2c = |to: &[u8]| to.split(|&b| b == b',').any(|protocol| protocol.trim_ascii().to_ascii_lowercase().starts_with(b"h2c"));
    let upgrades = question.headers.get(header::UPGRADE).is_some_and(|to| !h2c(to.as_bytes()));
    if upgrades {
        keep_upgrade(&question.headers, request.headers_mut());
    }
    request
}

/// Makes the request with the fields that go to any origin. What is told about its client is beside it: see [`arrival`].
///
/// It is boxed, as it is handed on through several futures before its origin takes it.
fn request(question: &Question, body: Body) -> Box<Request<Body>> {
    let trusted_fields: &[String] = if question.client.trusted { &question.site.policy.settings().trusted_fields } else { &[] };
    let mut fields = end_to_end(&question.headers, trusted_fields);
    if question.authority.is_empty() {
        // An HTTP/1.0 client named no host: the origin is asked by its own name.
        fields.remove(header::HOST);
    }
    if let Some(host) = question.site.origin_host.as_deref().and_then(|host| HeaderValue::from_str(host).ok()) {
        fields.insert(header::HOST, host);
    }
    max_forwards::count_down(&question.method, &mut fields);
    if question.site.route.as_ref().is_some_and(|route| !route.sends_cookies) {
        fields.remove(header::COOKIE);
    }
    if question.site.policy.is_impersonal() {
        fields.remove(header::COOKIE);
        fields.remove(header::AUTHORIZATION);
    }
    if let Some(member) = &question.member {
        fields.insert(header::COOKIE, member.cookies().clone());
    }
    let mut request = Box::write(Box::new_uninit(), Request::new(body));
    *request.method_mut() = question.method.clone();
    *request.uri_mut() = question.uri.clone();
    let behind_prefix = question.site.route.as_ref().and_then(|route| route.stripped(&question.target)?.parse::<Uri>().ok());
    if let Some(uri) = behind_prefix {
        *request.uri_mut() = uri;
        // It is said anew, so that no proxy in front of us says another one.
        fields.remove("x-forwarded-prefix");
    }
    *request.headers_mut() = fields;
    request
}

/// Returns what the origin is told about the client, whatever the request for it says.
pub(crate) fn arrival(question: &Question) -> Arrival<'_> {
    let client = &question.client;
    Arrival {
        caller: Some(Caller { peer: client.peer, client: client.address, way: &question.way }),
        scheme: client.scheme,
        authority: &question.authority,
        // So that the origin can write links that lead back here.
        prefix: stripped_prefix(question),
        version: question.version,
    }
}

/// Returns the prefix of the question's route, where the origin is asked for what follows it. That is a target, as the whole is one.
fn stripped_prefix(question: &Question) -> Option<&str> {
    let route = question.site.route.as_ref().filter(|route| route.strip_prefix)?;
    question.target.starts_with(route.path.as_str()).then_some(route.path.as_str())
}
