//! What the log wants to know of a request after its buffer is gone.

use std::time::Instant;

use http::{Method, Version};

use crate::service::{Exchange, Peer};

/// Of HTTP/1.
pub(crate) const fn version(minor: u8) -> Version {
    if minor == 0 { Version::HTTP_10 } else { Version::HTTP_11 }
}

/// A request's line and the fields that are logged, in one allocation.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) method: Method,
    pub(crate) version: Version,
    /// Of HTTP/1.
    pub(crate) minor_version: u8,
    /// Target, host, referer and user agent, one after the other.
    text: Vec<u8>,
    /// Where each but the last ends.
    ends: [usize; 3],
}

impl Line {
    pub(crate) fn new(method: Method, version: Version, target: &str, fields: [&[u8]; 3]) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_comes_back_also_where_others_are_empty() {
        for parts in [["/a?b", "h", "r", "u"], ["/", "", "r", ""], ["*", "h", "", "u"], ["/", "", "", ""]] {
            let [target, host, referer, user_agent] = parts;
            let line = Line::new(Method::GET, Version::HTTP_11, target, [host, referer, user_agent].map(str::as_bytes));
            let exchange = line.exchange(Peer { address: None, scheme: semantics::Scheme::Http }, 200, 0, Instant::now(), true);
            let texts = [exchange.host, exchange.referer, exchange.user_agent].map(|part| std::str::from_utf8(part).unwrap_or("not text"));
            assert_eq!((exchange.target, texts), (target, [host, referer, user_agent]));
        }
    }
}
