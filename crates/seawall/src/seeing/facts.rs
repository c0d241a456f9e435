//! The facts of one request, as `insight` is told them: of what the edge and the pipeline have noted, and of nothing else.

use std::{borrow::Cow, time::Duration};

use edge::{CLIENT_LEFT, Exchange};
use http::Version;
use insight::{CookiePart, EndedRequest, InVain, Insight, RESULTS, SampledHit};
use pipeline::{DecidingCookie, FetchedInVain, Note};
use semantics::{Timestamp, cache_status::Outcome, request_id::RequestIdText};

/// The rule of a request whose client left before there was a response.
const LEFT: &str = "client-left";

/// Returns whether a hit is plain: there is nothing to tell of it but that there was one. A stored error is worth a line.
pub(crate) fn is_plain_hit(status: u16, note: &Note) -> bool {
    note.outcome == Some(Outcome::Hit) && status < 400
}

/// Tells of a request that was not a plain hit, and took so long. Health checks, which come every second, are left out.
pub(crate) fn tell(insight: &Insight, exchange: &Exchange<'_>, took: Duration, note: &Note, at: Timestamp) {
    if note.is_health_check {
        return;
    }
    let reason = note.rule.unwrap_or_default();
    let rule = if exchange.status == CLIENT_LEFT { LEFT } else { reason };
    let cookie = note.cookie.map(|cookie| cookie.name().to_string());
    let (host, agent, referrer) = (text(exchange.host), text(exchange.user_agent), text(exchange.referer));
    let id = note.id.map(|id| id.written());
    let trace = note.trace.map(|ids| ids.trace.to_string()).unwrap_or_default();
    insight.ended(&EndedRequest {
        at: at.as_millis(),
        id: id.as_ref().map_or("", RequestIdText::as_str),
        trace: &trace,
        site: note.site,
        scheme: note.scheme.unwrap_or(exchange.peer.scheme).as_str(),
        host: &host,
        method: exchange.method,
        target: exchange.target,
        version: version(exchange.version),
        status: exchange.status,
        result: RESULTS[note.result().place()],
        rule,
        reason,
        detail: cookie.as_deref().unwrap_or_default(),
        cookie: note.cookie.map(part),
        class: note.class.name(),
        collapsed: note.collapsed,
        complete: exchange.complete,
        bytes: exchange.body_bytes,
        took,
        origin_time: note.origin_time,
        agent: &agent,
        referrer: &referrer,
    });
}

/// Tells of a fetch whose client was told of before, when it left.
pub(crate) fn tell_in_vain(insight: &Insight, fetched: &FetchedInVain<'_>) {
    let cookie = fetched.cookie.map(|cookie| cookie.name().to_string());
    insight.fetched_in_vain(&InVain {
        site: fetched.site,
        scheme: fetched.scheme.as_str(),
        host: fetched.host,
        target: fetched.target,
        rule: fetched.rule,
        detail: cookie.as_deref().unwrap_or_default(),
        cookie: fetched.cookie.map(part),
        origin_time: fetched.origin_time,
    });
}

fn part(cookie: DecidingCookie) -> CookiePart {
    match cookie {
        DecidingCookie::Carried(_) => CookiePart::Carried,
        DecidingCookie::Set(_) => CookiePart::Set,
    }
}

/// Tells of a hit that stands for so many.
#[cold]
pub(crate) fn tell_hit(insight: &Insight, exchange: &Exchange<'_>, note: &Note, stands_for: u32) {
    insight.sampled_hit(&SampledHit {
        site: note.site,
        scheme: note.scheme.unwrap_or(exchange.peer.scheme).as_str(),
        host: &text(exchange.host),
        target: exchange.target,
        // Nobody reads a redirect.
        class: if (300..400).contains(&exchange.status) && exchange.status != 304 { "other" } else { note.class.name() },
        bytes: exchange.body_bytes,
        agent: &text(exchange.user_agent),
        referrer: &text(exchange.referer),
        stands_for,
    });
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

fn version(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2.0",
        Version::HTTP_3 => "3.0",
        _ => "1.1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_rooms_count_by_the_same_results() {
        assert_eq!(RESULTS.map(insight::CacheResult::name), pipeline::OUTCOMES.map(pipeline::CacheOutcome::name));
    }
}
