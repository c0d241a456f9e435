//! What the log wants to know about a request: its line, and three of its fields.
//!
//! A [`LogLine`] lies in the buffer that the head was read from; a [`KeptLogLine`] is for requests that are answered when that is gone. Either
//! makes the [`Exchange`] that the service is told of in the end.

use std::{borrow::Cow, time::Instant};

use http::{HeaderValue, Method, Request, Version, header};
use semantics::{RequestFields, request::Slot};
use wire::head::Head;

use super::head::http1_version;
use crate::service::{Exchange, Peer};

/// The facts about a request that the log wants, where they lie in the head.
#[derive(Debug)]
pub(crate) struct LogLine<'a> {
    pub(crate) method: &'a Method,
    /// Path and query: what a target in absolute form names beside them stands in `host`.
    pub(crate) target: Cow<'a, str>,
    pub(crate) version: Version,
    pub(crate) host: &'a [u8],
    pub(crate) referer: &'a [u8],
    pub(crate) user_agent: &'a [u8],
}

impl<'a> LogLine<'a> {
    /// Takes what is wanted from a head of HTTP/1, or one that was made of fields: then [`LogLine::over`] says where they came from.
    pub(crate) fn of(head: &'a Head<'_>, fields: &RequestFields<'a>) -> Self {
        let value = |slot: Slot<'a>| slot.one().unwrap_or_default();
        let absolute = in_origin_form(head.target);
        Self {
            method: &head.method,
            // RFC 9112 §3.2.2: the authority of such a target replaces `Host`.
            host: if absolute.is_some() { head.authority.as_bytes() } else { value(fields.host) },
            target: absolute.unwrap_or(Cow::Borrowed(head.target)),
            version: http1_version(head.minor_version),
            referer: value(fields.referer),
            user_agent: value(fields.user_agent),
        }
    }

    /// Replaces the version, for a request that did not come over HTTP/1.
    pub(crate) const fn over(mut self, version: Version) -> Self {
        self.version = version;
        self
    }

    /// Copies the line, for when the buffer is gone.
    pub(crate) fn keep(&self) -> KeptLogLine {
        KeptLogLine::new(self.method.clone(), self.version, &self.target, [self.host, self.referer, self.user_agent])
    }

    /// Says what became of the request, now that it has ended.
    pub(crate) fn exchange(&self, peer: Peer, status: u16, body_bytes: u64, started: Instant, complete: bool) -> Exchange<'_> {
        Exchange {
            peer,
            method: self.method.as_str(),
            target: &self.target,
            version: self.version,
            host: self.host,
            referer: self.referer,
            user_agent: self.user_agent,
            status,
            body_bytes,
            started,
            ended: Instant::now(),
            complete,
        }
    }
}

/// The facts about a request that the log wants, in one allocation of their own.
#[derive(Debug)]
pub(crate) struct KeptLogLine {
    pub(crate) method: Method,
    version: Version,
    /// The number behind `HTTP/1.`, for a request of HTTP/1.
    pub(crate) minor_version: u8,
    /// Target, host, referer and user agent, one after the other.
    text: Vec<u8>,
    /// The end of each but the last.
    ends: [usize; 3],
}

impl KeptLogLine {
    /// Copies what is wanted from a request.
    pub(crate) fn of<B>(request: &Request<B>) -> Self {
        let logged = [header::HOST, header::REFERER, header::USER_AGENT];
        let [mut host, referer, user_agent] = logged.map(|name| request.headers().get(name).map(HeaderValue::as_bytes).unwrap_or_default());
        let mut target = Cow::Owned(request.uri().to_string());
        if let (Some(authority), Some(path_and_query)) = (request.uri().authority(), request.uri().path_and_query()) {
            (host, target) = (authority.as_str().as_bytes(), Cow::Owned(path_and_query.to_string()));
        }
        Self::new(request.method().clone(), request.version(), &target, [host, referer, user_agent])
    }

    fn new(method: Method, version: Version, target: &str, fields: [&[u8]; 3]) -> Self {
        let [host, referer, user_agent] = fields;
        let mut text = Vec::with_capacity(target.len() + host.len() + referer.len() + user_agent.len());
        let mut ends = [0; 3];
        for (end, part) in ends.iter_mut().zip([target.as_bytes(), host, referer]) {
            text.extend_from_slice(part);
            *end = text.len();
        }
        text.extend_from_slice(user_agent);
        let minor_version = u8::from(version != Version::HTTP_10);
        Self { method, version, minor_version, text, ends }
    }

    /// Says what became of the request, now that it has ended.
    pub(crate) fn exchange(&self, peer: Peer, status: u16, body_bytes: u64, started: Instant, complete: bool) -> Exchange<'_> {
        let [target, host, referer] = self.ends;
        let part = |from: usize, to: usize| self.text.get(from..to).unwrap_or_default();
        Exchange {
            peer,
            method: self.method.as_str(),
            // It was text when it was kept.
            target: std::str::from_utf8(part(0, target)).unwrap_or_default(),
            version: self.version,
            host: part(target, host),
            referer: part(host, referer),
            user_agent: part(referer, self.text.len()),
            status,
            body_bytes,
            started,
            ended: Instant::now(),
            complete,
        }
    }
}

/// Returns path and query of a target in absolute form (RFC 9112 §3.2.2), as a request for the same in origin form has them. `None`: it is in another form.
#[inline]
fn in_origin_form(target: &str) -> Option<Cow<'_, str>> {
    if target.starts_with('/') {
        return None;
    }
    let (_, rest) = target.split_once("://")?;
    let (_, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    Some(if rest.starts_with('/') { Cow::Borrowed(rest) } else { Cow::Owned(format!("/{rest}")) })
}

#[cfg(test)]
mod tests {
    use wire::{
        HeadLimits,
        head::{Parsed, field_table, parse},
    };

    use super::*;

    /// RFC 9112 §3.2.2: the authority of a target in absolute form is the host, whatever `Host` says. The log shows what it shows of other requests.
    #[test]
    fn a_target_in_absolute_form_is_a_path_at_a_host() {
        for (target, path_and_query, host) in [
            ("/a?b=c", "/a?b=c", "field.example"),
            ("/a?b=http://c/d", "/a?b=http://c/d", "field.example"),
            ("http://blog.example/a?b=c", "/a?b=c", "blog.example"),
            ("http://blog.example:8080/", "/", "blog.example:8080"),
            ("http://blog.example", "/", "blog.example"),
            ("http://blog.example?b=c", "/?b=c", "blog.example"),
        ] {
            let text = format!("GET {target} HTTP/1.1\r\nHost: field.example\r\n\r\n");
            let mut table = field_table();
            let Ok(Parsed::Complete(head, fields)) = parse(text.as_bytes(), &mut table, "", &HeadLimits::default()) else {
                panic!("a head: {text}")
            };
            let line = LogLine::of(&head, &fields);
            assert_eq!((&*line.target, line.host), (path_and_query, host.as_bytes()), "{target}");
            let request = Request::builder().uri(target).header("host", "field.example").body(()).expect("a request");
            let kept = KeptLogLine::of(&request);
            let exchange = kept.exchange(Peer { address: None, scheme: semantics::Scheme::Http }, 200, 0, Instant::now(), true);
            assert_eq!((exchange.target, exchange.host), (path_and_query, host.as_bytes()), "{target}");
        }
    }

    #[test]
    fn every_part_comes_back_also_where_others_are_empty() {
        for parts in [["/a?b", "h", "r", "u"], ["/", "", "r", ""], ["*", "h", "", "u"], ["/", "", "", ""]] {
            let [target, host, referer, user_agent] = parts;
            let line = KeptLogLine::new(Method::GET, Version::HTTP_11, target, [host, referer, user_agent].map(str::as_bytes));
            let exchange = line.exchange(Peer { address: None, scheme: semantics::Scheme::Http }, 200, 0, Instant::now(), true);
            let texts = [exchange.host, exchange.referer, exchange.user_agent].map(|part| std::str::from_utf8(part).unwrap_or("not text"));
            assert_eq!((exchange.target, texts), (target, [host, referer, user_agent]));
        }
    }
}
