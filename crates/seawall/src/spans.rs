//! Spans of requests, by the names of OpenTelemetry's semantic conventions for HTTP, and the exporter that they go to.
//!
//! A request is a span of the server's side, and what it asked of its origin is one below it, of the client's side. As elsewhere, no client's address, no
//! value of a cookie or of a query parameter and nothing of a path that may be a secret is told.

use std::{borrow::Cow, collections::HashMap, rc::Rc, sync::Arc, time::Duration};

use anyhow::Context;
use edge::Exchange;
use origins::server::{Address, tls_config};
use pipeline::{Clock, Note, OriginAsked, Tracing};
use semantics::{
    Scheme, TraceIds,
    shown::{self, Parameter},
    target::canonical_authority,
};
use traces::{Counts, Exporter, Kind, Options, Span, Spans, Value, shortened};

use crate::{
    config::settings::{Settings, Traces},
    plan::Plan,
};

/// The time in which the last spans may be sent when Seawall stops.
pub(crate) const FLUSH_WAIT: Duration = Duration::from_secs(2);

/// The longest texts of strangers in a span, in bytes: paths and queries, and whatever else they send.
const TARGET_BYTES_MAX: usize = 1024;
const TEXT_BYTES_MAX: usize = 256;

/// The text that stands for the value of a query parameter, by the conventions.
const REDACTED: &str = "REDACTED";

/// The exporter of a running server, with the settings that it has.
#[derive(Debug)]
pub(crate) struct Export {
    settings: Traces,
    exporter: Exporter,
}

impl Export {
    /// Starts one, if the settings name a collector.
    pub(crate) fn start(settings: &Settings, counts: &Arc<Counts>) -> anyhow::Result<Option<Self>> {
        let Some(settings) = &settings.traces else { return Ok(None) };
        let options = Options {
            endpoint: settings.endpoint.clone(),
            headers: settings.headers.clone(),
            service_name: settings.service_name.clone(),
            version: env!("CARGO_PKG_VERSION"),
            tls: tls_config(settings.ca_file.as_deref()).context("[traces] ca_file")?,
        };
        let exporter = Exporter::start(options, Arc::clone(counts)).context("there is no thread for traces")?;
        Ok(Some(Self { settings: settings.clone(), exporter }))
    }

    /// Returns whether it does what these settings want of an exporter.
    pub(crate) fn is_for(&self, settings: &Settings) -> bool {
        let of = |traces: &Traces| (traces.endpoint.clone(), traces.headers.clone(), traces.service_name.clone(), traces.ca_file.clone());
        settings.traces.as_ref().map(of) == Some(of(&self.settings))
    }

    /// Returns the queue for spans.
    pub(crate) const fn spans(&self) -> &Spans {
        self.exporter.spans()
    }

    /// Sends what waits, and ends.
    pub(crate) fn stop(self) {
        self.exporter.stop(FLUSH_WAIT);
    }
}

/// Makes spans of one worker's requests, and hands them over.
#[derive(Debug)]
pub(crate) struct Recorder {
    spans: Spans,
    clock: Clock,
    /// The names of the sites.
    sites: HashMap<u16, String>,
}

impl Recorder {
    /// Makes the recorder of a worker, and the rules by which its pipeline traces. `None`: nothing is traced.
    pub(crate) fn of(plan: &Plan, clock: &Clock) -> Option<(Self, Tracing)> {
        let (settings, spans) = (plan.settings.traces.as_ref()?, plan.spans.as_ref()?);
        let servers = Rc::new(servers(plan));
        let (to, at) = (spans.clone(), clock.clone());
        let tracing = Tracing::new(settings.sample, settings.hits, move |asked| {
            if let Some(server) = servers.get(&(asked.site, asked.route.map(str::to_owned))) {
                to.offer(of_origin(asked, server, &at));
            }
        });
        let sites = plan.sites.iter().map(|site| (site.id, site.name().to_owned())).collect();
        Some((Self { spans: spans.clone(), clock: clock.clone(), sites }, tracing))
    }

    /// Hands over the span of a request that has ended, if its trace is recorded.
    pub(crate) fn ended(&self, exchange: &Exchange<'_>, note: &Note) {
        if let Some(ids) = note.trace.filter(|ids| ids.flags.sampled) {
            let site = note.site.and_then(|site| self.sites.get(&site));
            self.spans.offer(of_request(exchange, note, ids, site, &self.clock));
        }
    }
}

/// A server behind a site, as spans name it.
#[derive(Debug)]
struct Server {
    /// The beginning of `url.full`; empty for a server that has no URL.
    base: String,
    address: String,
    port: Option<u16>,
    /// Whether it is php-fpm, which speaks FastCGI.
    is_php: bool,
}

impl Server {
    /// Names it by its first address: which of several has answered is not known here.
    fn of(address: &str, is_php: bool) -> Option<Self> {
        match address.parse().ok()? {
            Address::Unix(path) => Some(Self { base: String::new(), address: path.display().to_string(), port: None, is_php }),
            Address::Tcp { host, port, .. } => {
                let base = if is_php { String::new() } else { address.to_owned() };
                Some(Self { base, address: host, port: Some(port), is_php })
            }
        }
    }
}

/// Returns the servers of all sites, by the number of the site and the path of its part.
fn servers(plan: &Plan) -> HashMap<(u16, Option<String>), Server> {
    let of_site = |site: &crate::plan::SitePlan| {
        let (id, has_php) = (site.id, site.settings().php.is_some());
        let named = site.servers().filter_map(move |server| {
            let is_php = has_php && server.route.is_none();
            let (address, _) = server.addresses.first()?;
            Some(((id, server.route), Server::of(address, is_php)?))
        });
        named.collect::<Vec<_>>()
    };
    plan.sites.iter().flat_map(of_site).collect()
}

/// Makes the span of a request.
fn of_request(exchange: &Exchange<'_>, note: &Note, ids: TraceIds, site: Option<&String>, clock: &Clock) -> Span {
    let (method, original) = method(exchange.method);
    let (path, query) = exchange.target.split_once('?').map_or((exchange.target, None), |(path, query)| (path, Some(query)));
    let mut attributes: Vec<(&'static str, Value)> = Vec::with_capacity(20);
    attributes.push(("http.request.method", method.into()));
    let mut add = |key, value: Option<Value>| attributes.extend(value.map(|value| (key, value)));
    add("http.request.method_original", original);
    let scheme = note.scheme.unwrap_or(exchange.peer.scheme);
    add("url.scheme", Some(scheme.as_str().into()));
    add("url.path", Some(shown_path(path).into()));
    add("url.query", query.map(|query| redacted(query).into()));
    let authority = canonical_authority(scheme, std::str::from_utf8(exchange.host).unwrap_or_default());
    let (host, port) = host_and_port(&authority);
    add("server.address", (!host.is_empty()).then(|| text(host.as_bytes()).into()));
    let own_port = if scheme == Scheme::Https { 443 } else { 80 };
    add("server.port", (!host.is_empty()).then(|| port.unwrap_or(own_port).into()));
    add("network.protocol.version", Some(version(exchange.version).into()));
    add("user_agent.original", (!exchange.user_agent.is_empty()).then(|| text(exchange.user_agent).into()));
    add("http.response.status_code", Some(exchange.status.into()));
    add("http.response.body.size", Some(exchange.body_bytes.into()));
    let failure = match exchange.status {
        500.. => Some(exchange.status.to_string().into()),
        // The client left, or the origin broke off.
        _ if !exchange.complete => Some("incomplete".into()),
        _ => None,
    };
    let failed = failure.is_some();
    add("error.type", failure);
    add("seawall.site", site.map(|site| site.clone().into()));
    add("seawall.cache", note.outcome.map(|_| note.result().name().into()));
    add("seawall.rule", note.rule.map(Value::from));
    add("seawall.cookie", note.cookie.map(|cookie| cookie.name().to_string().into()));
    add("seawall.collapsed", note.collapsed.then(|| true.into()));
    add("seawall.request_id", note.id.map(|id| id.to_string().into()));
    let took = u64::try_from(exchange.ended.saturating_duration_since(exchange.started).as_nanos()).unwrap_or(u64::MAX);
    let ended = clock.nanos_at(exchange.ended);
    Span {
        trace: ids.trace,
        span: ids.span,
        parent: ids.parent,
        parent_is_remote: ids.parent.is_some(),
        flags: ids.flags,
        state: String::new(),
        name: span_name(method),
        kind: Kind::Server,
        began: ended.saturating_sub(took),
        ended,
        attributes,
        failed,
    }
}

/// Makes the span of a request to an origin.
fn of_origin(asked: &OriginAsked<'_>, server: &Server, clock: &Clock) -> Span {
    let (method, original) = method(asked.method.as_str());
    let mut attributes: Vec<(&'static str, Value)> = Vec::with_capacity(12);
    attributes.push(("http.request.method", method.into()));
    let mut add = |key, value: Option<Value>| attributes.extend(value.map(|value| (key, value)));
    add("http.request.method_original", original);
    let (path, query) = asked.target.split_once('?').map_or((asked.target, None), |(path, query)| (path, Some(query)));
    let target = || match query {
        Some(query) => format!("{}?{}", shown_path(path), redacted(query)),
        None => shown_path(path),
    };
    add("url.full", (!server.base.is_empty()).then(|| format!("{}{}", server.base, target()).into()));
    add("url.path", server.base.is_empty().then(|| shown_path(path).into()));
    add("server.address", Some(shortened(server.address.as_bytes(), TEXT_BYTES_MAX).into()));
    add("server.port", server.port.map(Value::from));
    add("network.protocol.name", server.is_php.then(|| "fastcgi".into()));
    let (status, failure) = match asked.outcome {
        Ok(status) => (Some(status), (status >= 400).then(|| status.to_string().into())),
        Err(name) => (None, Some(Value::from(name))),
    };
    add("http.response.status_code", status.map(Value::from));
    let failed = failure.is_some();
    add("error.type", failure);
    add("seawall.site", Some(asked.site_name.to_owned().into()));
    add("seawall.request_id", Some(asked.id.to_string().into()));
    add("seawall.own", asked.is_own.then(|| true.into()));
    let (began, ended) = asked.times;
    let took = u64::try_from(ended.saturating_duration_since(began).as_nanos()).unwrap_or(u64::MAX);
    let ended = clock.nanos_at(ended);
    Span {
        trace: asked.ids.trace,
        span: asked.span,
        parent: (!asked.is_own).then_some(asked.ids.span),
        parent_is_remote: false,
        flags: asked.ids.flags,
        state: asked.state.to_owned(),
        name: span_name(method),
        kind: Kind::Client,
        began: ended.saturating_sub(took),
        ended,
        attributes,
        failed,
    }
}

/// The methods that the conventions know. Others could be invented without end.
const METHODS: [&str; 10] = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE", "QUERY"];

/// Returns a method as the conventions name it, and what the client has called it if that is something else.
fn method(method: &str) -> (&'static str, Option<Value>) {
    match METHODS.iter().find(|known| **known == method) {
        Some(known) => (known, None),
        None => ("_OTHER", Some(text(method.as_bytes()).into())),
    }
}

/// Returns the name of a span: the method, as no span has a route that is the same for many paths.
fn span_name(method: &'static str) -> Cow<'static, str> {
    Cow::Borrowed(if method == "_OTHER" { "HTTP" } else { method })
}

/// Returns what a client sent as text that gives whoever shows it no orders.
fn text(bytes: &[u8]) -> String {
    shortened(bytes, TEXT_BYTES_MAX).replace(shown::is_order, "\u{fffd}")
}

/// Returns a path without what may be a secret in it.
fn shown_path(path: &str) -> String {
    shortened(shown::path(path).as_bytes(), TARGET_BYTES_MAX)
}

/// Returns a query without its values.
fn redacted(query: &str) -> String {
    let mut out = String::with_capacity(query.len().min(TARGET_BYTES_MAX));
    for (at, pair) in query.split('&').enumerate() {
        if at > 0 {
            out.push('&');
        }
        match Parameter::of(pair) {
            Parameter::Named(name) => {
                out.push_str(name);
                out.push('=');
                out.push_str(REDACTED);
            }
            Parameter::Word("") => {}
            // A parameter without a name is a value, for the conventions.
            Parameter::Word(_) | Parameter::Hidden => out.push_str(REDACTED),
        }
        if out.len() > TARGET_BYTES_MAX {
            break;
        }
    }
    shortened(out.as_bytes(), TARGET_BYTES_MAX)
}

fn host_and_port(authority: &str) -> (&str, Option<u16>) {
    let host = semantics::target::host_without_port(authority);
    let port = authority[host.len()..].strip_prefix(':').and_then(|port| port.parse().ok());
    (host.trim_start_matches('[').trim_end_matches(']'), port)
}

const fn version(version: http::Version) -> &'static str {
    match version {
        http::Version::HTTP_10 => "1.0",
        http::Version::HTTP_2 => "2",
        http::Version::HTTP_3 => "3",
        _ => "1.1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_of_a_query_is_told() {
        for (query, expected) in [
            ("s=secret&page=2", "s=REDACTED&page=REDACTED"),
            ("secret", "REDACTED"),
            ("a=b=c", "a=REDACTED"),
            ("&a=1&", "&a=REDACTED&"),
            ("", ""),
            ("=secret", "=REDACTED"),
            ("0123456789abcdef0123456789abcdef=1&a=2", "REDACTED&a=REDACTED"),
        ] {
            assert_eq!(redacted(query), expected);
        }
        let long = redacted(&"name=value&".repeat(1_000));
        assert!(long.len() <= TARGET_BYTES_MAX && !long.contains("value"));
    }

    #[test]
    fn a_text_turns_no_writing_round() {
        assert_eq!(text("reader \u{202e}x\u{1b}[2J <b>é".as_bytes()), "reader \u{fffd}x\u{fffd}[2J <b>é");
    }

    #[test]
    fn methods_are_those_of_the_conventions() {
        assert_eq!(method("GET"), ("GET", None));
        for invented in ["get", "BREW", "GET2"] {
            assert_eq!(method(invented), ("_OTHER", Some(Value::from(invented.to_owned()))));
        }
        assert_eq!(span_name(method("BREW").0), "HTTP");
    }

    #[test]
    fn a_host_and_its_port_are_told_apart() {
        for (authority, expected) in [
            ("a.example", ("a.example", None)),
            ("a.example:8080", ("a.example", Some(8080))),
            ("[::1]:81", ("::1", Some(81))),
            ("", ("", None)),
        ] {
            assert_eq!(host_and_port(authority), expected);
        }
    }
}
