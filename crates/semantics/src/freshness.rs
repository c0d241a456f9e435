//! How long a response may be reused without asking its origin, and how old it is (RFC 9111 §4.2).
//!
//! [`Freshness`] is worked out once, when a response arrives or is freshened, and kept with it: everything else is arithmetic on `now`.
//! What becomes of a response that is not fresh is decided in `reuse`.

use std::time::Duration;

use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{AGE, CACHE_CONTROL, DATE, EXPIRES, HeaderName, LAST_MODIFIED, PRAGMA},
};

use crate::{
    Timestamp,
    cache_control::{DeltaSeconds, Qualified, ResponseDirectives},
    date::parse_http_date_at,
    omitted::can_be_omitted,
};

/// The longest lifetime ever taken from `Last-Modified`. The RFC sets no limit but asks for attention beyond a day (§4.2.2): a page
/// untouched for ten years would otherwise be kept for one more, although nobody said so.
pub const HEURISTIC_MAX: Duration = Duration::from_hours(24);

/// Where a freshness lifetime comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifetimeSource {
    /// The lifetime comes from the origin: `s-maxage`, `max-age` or `Expires`.
    Explicit,
    /// The lifetime is a tenth of the time since `Last-Modified` (§4.2.2).
    Heuristic,
    /// The lifetime comes from the policy.
    Hold,
    /// Nobody gave a lifetime.
    None,
}

/// The freshness of one response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Freshness {
    /// When the request for the response was sent: what its origin changed before that is in it.
    pub request_time: Timestamp,
    /// When the response arrived.
    pub response_time: Timestamp,
    /// The age of the response when it arrived: `corrected_initial_age` of §4.2.3.
    pub initial_age: Duration,
    /// The freshness lifetime: the response is fresh as long as its age is less than this.
    pub lifetime: Duration,
    /// Where the lifetime comes from.
    pub source: LifetimeSource,
    /// How long after its lifetime the response may be served while it is validated in the background (RFC 5861 §3).
    pub stale_while_revalidate: Duration,
    /// How long after its lifetime the response may be served when the origin fails (RFC 5861 §4), if the origin said.
    pub stale_if_error: Option<Duration>,
    /// Whether the response may be served stale at all (§4.2.4): not with `must-revalidate`, `proxy-revalidate`, `s-maxage` or `no-cache`.
    pub stale_allowed: bool,
    /// Whether the response must always be validated before it is reused, fresh or not: `no-cache`. With field names it is enough to leave
    /// those out (§5.2.2.4) where [`crate::omitted`] says that this can be done.
    pub validate_always: bool,
}

impl Freshness {
    /// Returns the freshness of a response whose request was sent at `request_time` and whose head arrived at `response_time`.
    ///
    /// `s-maxage`, then `max-age`, then `Expires` minus `Date`, then the heuristic (§4.2.1); never fails.
    #[must_use]
    pub fn of(
        status: StatusCode,
        headers: &HeaderMap,
        directives: &ResponseDirectives,
        request_time: Timestamp,
        response_time: Timestamp,
    ) -> Self {
        let date = moment(headers, DATE, response_time);
        let (lifetime, source) = lifetime(status, headers, directives, date, response_time);
        let validate_always = match &directives.no_cache {
            Qualified::Absent => false,
            Qualified::Whole => true,
            Qualified::Fields(names) => !can_be_omitted(names, headers),
        };
        Self {
            request_time,
            response_time,
            initial_age: initial_age(headers, date, request_time, response_time),
            lifetime,
            source,
            stale_while_revalidate: directives.stale_while_revalidate.unwrap_or_default().as_duration(),
            stale_if_error: directives.stale_if_error.map(DeltaSeconds::as_duration),
            stale_allowed: !(directives.must_revalidate || directives.proxy_revalidate || directives.s_maxage.is_some() || validate_always),
            validate_always,
        }
    }

    /// Returns the `current_age` of §4.2.3: how long ago the origin generated or validated the response.
    #[must_use]
    pub fn age(&self, now: Timestamp) -> Duration {
        self.initial_age + now.since(self.response_time)
    }

    /// Returns whether the response may be reused without asking the origin, as far as the response goes.
    #[must_use]
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        !self.validate_always && self.lifetime > self.age(now)
    }

    /// Returns the whole seconds of the lifetime that are left, or have passed since as a negative number, as `Cache-Status` counts them (RFC 9211 §2.4).
    #[must_use]
    pub fn seconds_left(&self, now: Timestamp) -> i64 {
        self.lifetime.as_secs().cast_signed() - self.age(now).as_secs().cast_signed()
    }

    /// Returns how much longer the response is fresh; zero if it is not.
    #[must_use]
    pub fn remaining(&self, now: Timestamp) -> Duration {
        if self.validate_always { Duration::ZERO } else { self.lifetime.saturating_sub(self.age(now)) }
    }

    /// Returns how long ago the lifetime ended; zero if it has not.
    #[must_use]
    pub fn staleness(&self, now: Timestamp) -> Duration {
        self.age(now).saturating_sub(self.lifetime)
    }

    /// Returns the first moment at which the response is no longer fresh; if it never was, a moment not after its arrival.
    #[must_use]
    pub fn fresh_until(&self) -> Timestamp {
        let end = self.response_time + self.lifetime - self.initial_age;
        if self.validate_always { end.min(self.response_time) } else { end }
    }

    /// Makes the response fresh for `hold` from its arrival, whatever the origin said and however old it was then.
    ///
    /// The age does not change, because clients are told it; so the lifetime becomes `hold` on top of the age at arrival. `no-cache` is
    /// overruled too, or the hold would have no effect. Whether it may be served stale does not change.
    #[must_use]
    pub fn with_hold(self, hold: Duration) -> Self {
        let lifetime = self.initial_age + hold.min(DeltaSeconds::MAX.as_duration());
        Self { lifetime, source: LifetimeSource::Hold, validate_always: false, ..self }
    }
}

/// Returns whether the status is one that RFC 9110 §15.1 calls heuristically cacheable.
#[must_use]
pub fn heuristically_cacheable(status: StatusCode) -> bool {
    matches!(status.as_u16(), 200 | 203 | 204 | 206 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

fn lifetime(
    status: StatusCode,
    headers: &HeaderMap,
    directives: &ResponseDirectives,
    date: Option<Timestamp>,
    response_time: Timestamp,
) -> (Duration, LifetimeSource) {
    if let Some(seconds) = directives.s_maxage.or(directives.max_age) {
        return (seconds.as_duration(), LifetimeSource::Explicit);
    }
    // The lifetime is Expires minus Date, so that an origin clock that is slow or fast cancels out; without a Date, the arrival stands for
    // it.
    let generated = date.unwrap_or(response_time);
    if headers.contains_key(EXPIRES) && !directives.targeted {
        // A malformed or repeated Expires means expired (§5.3, §4.2.1).
        let expires = moment(headers, EXPIRES, response_time);
        let lifetime = expires.map_or(Duration::ZERO, |expires| expires.since(generated)).min(DeltaSeconds::MAX.as_duration());
        return (lifetime, LifetimeSource::Explicit);
    }
    let last_modified = moment(headers, LAST_MODIFIED, response_time);
    match last_modified {
        Some(modified)
            if (heuristically_cacheable(status) || directives.public) && !status.is_informational() && !pragma_no_cache(headers) =>
        {
            ((generated.since(modified) / 10).min(HEURISTIC_MAX), LifetimeSource::Heuristic)
        }
        _ => (Duration::ZERO, LifetimeSource::None),
    }
}

/// Returns whether the response has `Pragma: no-cache`. It means nothing in a response (§5.4), but an origin that sends it alone does not
/// want a heuristic lifetime.
fn pragma_no_cache(headers: &HeaderMap) -> bool {
    let says_so = |line: &HeaderValue| line.as_bytes().trim_ascii().eq_ignore_ascii_case(b"no-cache");
    !headers.contains_key(CACHE_CONTROL) && headers.get_all(PRAGMA).iter().any(says_so)
}

/// Returns the `corrected_initial_age` of §4.2.3.
fn initial_age(headers: &HeaderMap, date: Option<Timestamp>, request_time: Timestamp, response_time: Timestamp) -> Duration {
    // Date has whole seconds: a fraction is not age, or a response could lose nearly a second of its lifetime.
    let apparent_age = date.map_or(Duration::ZERO, |date| Duration::from_secs(response_time.since(date).as_secs()));
    let response_delay = response_time.since(request_time);
    let corrected_age_value = received_age(headers).as_duration() + response_delay;
    apparent_age.max(corrected_age_value)
}

/// Returns the first member of the first `Age` line, as §5.1 says for a field sent more than once; zero if that is not a whole number. A
/// huge one is 2^31 seconds, which no lifetime exceeds.
fn received_age(headers: &HeaderMap) -> DeltaSeconds {
    let line = headers.get(AGE).map_or(&b""[..], HeaderValue::as_bytes);
    let first = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).find(|member| !member.is_empty());
    first.and_then(DeltaSeconds::parse).unwrap_or_default()
}

/// Returns the date in a field that is there exactly once and is well-formed.
fn moment(headers: &HeaderMap, name: HeaderName, now: Timestamp) -> Option<Timestamp> {
    let mut lines = headers.get_all(name).iter();
    let only = lines.next().filter(|_| lines.next().is_none())?;
    parse_http_date_at(only.as_bytes(), now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::date::format_http_date;
    use proptest::prelude::*;

    const T: Timestamp = Timestamp::from_secs(1_700_000_000);
    const HOUR: u64 = 3600;
    const DAY: u64 = 24 * HOUR;

    /// Returns a map of lines `name: value`; `@N` stands for the date N seconds from the arrival.
    fn headers(lines: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            let (name, value) = line.split_once(": ").expect("a field line");
            let value = match value.strip_prefix('@') {
                Some(offset) => {
                    let offset: i64 = offset.parse().expect("seconds");
                    let at = Timestamp::from_secs(T.as_secs().checked_add_signed(offset).expect("a moment"));
                    HeaderValue::from_bytes(&format_http_date(at)).expect("a field value")
                }
                None => value.parse().expect("a field value"),
            };
            headers.append(name.parse::<HeaderName>().expect("a field name"), value);
        }
        headers
    }

    fn freshness(status: u16, lines: &[&str]) -> Freshness {
        let headers = headers(lines);
        Freshness::of(StatusCode::from_u16(status).expect("a status"), &headers, &ResponseDirectives::of(&headers), T, T)
    }

    #[test]
    fn explicit_lifetimes_in_the_order_of_the_rfc() {
        for (lines, secs) in [
            (&["cache-control: max-age=60"][..], 60),
            (&["cache-control: max-age=60, s-maxage=30"], 30),
            (&["cache-control: s-maxage=60, max-age=0"], 60),
            (&["cache-control: max-age=60", "expires: @-100", "date: @0"], 60),
            (&["cache-control: max-age=0", "expires: @100", "date: @0"], 0),
            (&["expires: @100", "date: @0"], 100),
            (&["expires: @100", "cache-control: x"], 100),
            // A wrong clock of the origin cancels out.
            (&["expires: @-1000", "date: @-1100"], 100),
            (&["expires: @1100", "date: @1000"], 100),
            (&["expires: @0", "date: @0"], 0),
            (&["expires: @-100", "date: @0"], 0),
            // Without a usable Date, the arrival.
            (&["expires: @100"], 100),
            (&["expires: @100", "date: foo"], 100),
            (&["expires: @100", "date: @-50", "date: @-50"], 100),
            // Malformed or repeated is expired, also with a heuristic at hand.
            (&["expires: 0", "date: @0", "last-modified: @-100000"], 0),
            (&["expires: Thu, 18 Aug 2050 02:01:18 UTC", "date: @0"], 0),
            (&["expires: @100", "expires: @100", "date: @0"], 0),
            (&["expires: Fri, 31 Dec 9999 23:59:59 GMT", "date: @0"], 1 << 31),
            (&["cache-control: max-age=99999999999"], 1 << 31),
        ] {
            let freshness = freshness(200, lines);
            assert_eq!((freshness.lifetime.as_secs(), freshness.source), (secs, LifetimeSource::Explicit), "{lines:?}");
        }
    }

    #[test]
    fn a_targeted_field_takes_the_place_of_expires() {
        let headers = headers(&["expires: @100", "date: @0"]);
        let targeted = ResponseDirectives { targeted: true, ..ResponseDirectives::default() };
        let freshness = Freshness::of(StatusCode::OK, &headers, &targeted, T, T);
        assert_eq!((freshness.lifetime, freshness.source), (Duration::ZERO, LifetimeSource::None));
    }

    #[test]
    fn the_heuristic_takes_a_tenth_and_at_most_a_day() {
        for (status, lines, expected) in [
            (200, &["last-modified: @-36000", "date: @0"][..], Some(HOUR)),
            (200, &["last-modified: @-36000"], Some(HOUR)),
            (200, &["last-modified: @-72000", "date: @-36000"], Some(HOUR)),
            (200, &["last-modified: @-864000", "date: @0"], Some(DAY)),
            (200, &["last-modified: @-315360000", "date: @0"], Some(DAY)),
            (200, &["last-modified: @10", "date: @0"], Some(0)),
            (200, &["last-modified: @-36000", "cache-control: private"], Some(HOUR)),
            (200, &["last-modified: yesterday"], None),
            (200, &["last-modified: @-36000", "last-modified: @-36000"], None),
            (200, &["etag: \"a\""], None),
            (200, &["last-modified: @-36000", "pragma: no-cache"], None),
            (200, &["last-modified: @-36000", "pragma: no-cache", "cache-control: public"], Some(HOUR)),
            (103, &["last-modified: @-36000", "cache-control: public"], None),
        ] {
            let freshness = freshness(status, lines);
            let expected = expected.map_or((0, LifetimeSource::None), |secs| (secs, LifetimeSource::Heuristic));
            assert_eq!((freshness.lifetime.as_secs(), freshness.source), expected, "{status} {lines:?}");
        }
    }

    #[test]
    fn the_heuristic_is_for_some_statuses_or_any_that_is_public() {
        // RFC 9110 §15.1.
        let cacheable = [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501];
        for status in 200..=599 {
            let source = if cacheable.contains(&status) { LifetimeSource::Heuristic } else { LifetimeSource::None };
            assert_eq!(freshness(status, &["last-modified: @-36000"]).source, source, "{status}");
            let public = freshness(status, &["last-modified: @-36000", "cache-control: public"]);
            assert_eq!(public.source, LifetimeSource::Heuristic, "{status}");
        }
    }

    #[test]
    fn age_at_arrival() {
        for (lines, delay, expected) in [
            (&["date: @0"][..], 0, 0),
            (&["date: @-30"], 0, 30_000),
            (&["date: @30"], 0, 0),
            (&["date: nonsense"], 0, 0),
            (&["age: 20", "date: @-30"], 0, 30_000),
            (&["age: 40", "date: @-30"], 0, 40_000),
            // The response delay counts on top of Age, and alone.
            (&["age: 40", "date: @-30"], 1500, 41_500),
            (&["date: @0"], 1500, 1500),
            // First member of the first line.
            (&["age: 7200, 0"], 0, 7_200_000),
            (&["age: 0, 7200"], 0, 0),
            (&["age: 7200", "age: 0"], 0, 7_200_000),
            (&["age: 0", "age: 7200"], 0, 0),
            (&["age: , 7200"], 0, 7_200_000),
            // Not a whole number: ignored.
            (&["age: 7200.0"], 0, 0),
            (&["age: abc"], 0, 0),
            (&["age: -1"], 0, 0),
            (&["age: abc, 7200"], 0, 0),
            (&["age: 99999999999999999999"], 0, (1 << 31) * 1000),
        ] {
            let request_time = T - Duration::from_millis(delay);
            let freshness = Freshness::of(StatusCode::OK, &headers(lines), &ResponseDirectives::default(), request_time, T);
            assert_eq!(freshness.initial_age, Duration::from_millis(expected), "{lines:?} {delay}");
        }
    }

    #[test]
    fn the_fraction_of_a_second_is_no_apparent_age() {
        let arrival = T + Duration::from_millis(999);
        let freshness = Freshness::of(StatusCode::OK, &headers(&["date: @0"]), &ResponseDirectives::default(), arrival, arrival);
        assert_eq!(freshness.initial_age, Duration::ZERO);
    }

    #[test]
    fn fresh_as_long_as_the_age_is_less_than_the_lifetime() {
        let freshness = freshness(200, &["cache-control: max-age=60", "age: 20"]);
        let at = |millis| T + Duration::from_millis(millis);
        assert_eq!(freshness.age(at(5000)), Duration::from_secs(25));
        assert_eq!(freshness.fresh_until(), at(40_000));
        for (millis, fresh, remaining, staleness) in
            [(0, true, 40_000, 0), (39_999, true, 1, 0), (40_000, false, 0, 0), (40_001, false, 0, 1), (100_000, false, 0, 60_000)]
        {
            assert_eq!(freshness.is_fresh(at(millis)), fresh, "{millis}");
            assert_eq!(freshness.remaining(at(millis)), Duration::from_millis(remaining), "{millis}");
            assert_eq!(freshness.staleness(at(millis)), Duration::from_millis(staleness), "{millis}");
        }
        assert!(freshness.is_fresh(T - Duration::from_secs(9)), "a clock set back makes nothing older");
    }

    #[test]
    fn stale_on_arrival() {
        for lines in [
            &["cache-control: max-age=10", "age: 10"][..],
            &["cache-control: max-age=10", "date: @-10"],
            &["cache-control: max-age=99999999999", "age: 99999999999"],
            &["expires: @0", "date: @0"],
            &[],
        ] {
            let freshness = freshness(200, lines);
            assert!(!freshness.is_fresh(T), "{lines:?}");
            assert!(freshness.fresh_until() <= T, "{lines:?}");
        }
    }

    #[test]
    fn who_may_be_served_stale_and_who_is_always_validated() {
        for (value, stale_allowed, validate_always) in [
            ("max-age=10", true, false),
            ("max-age=10, public, immutable", true, false),
            ("max-age=10, must-revalidate", false, false),
            ("max-age=10, proxy-revalidate", false, false),
            ("s-maxage=10", false, false),
            ("max-age=10, no-cache", false, true),
            ("max-age=10, no-cache=\"set-cookie\"", true, false),
            ("max-age=10, no-cache=\"x-misspelled\"", false, true),
        ] {
            let freshness = freshness(200, &[&format!("cache-control: {value}")]);
            assert_eq!((freshness.stale_allowed, freshness.validate_always), (stale_allowed, validate_always), "{value}");
            assert_eq!(freshness.is_fresh(T), !validate_always, "{value}");
            assert_eq!(freshness.remaining(T).is_zero(), validate_always, "{value}");
            assert_eq!(freshness.fresh_until() > T, !validate_always, "{value}");
        }
    }

    #[test]
    fn windows_of_rfc_5861() {
        let freshness = freshness(200, &["cache-control: max-age=600, stale-while-revalidate=30, stale-if-error=1200"]);
        assert_eq!(freshness.stale_while_revalidate, Duration::from_secs(30));
        assert_eq!(freshness.stale_if_error, Some(Duration::from_secs(1200)));
    }

    #[test]
    fn a_hold_counts_from_the_arrival_and_leaves_the_age_alone() {
        let held = freshness(200, &["cache-control: no-cache, max-age=0", "age: 500"]).with_hold(Duration::from_secs(60));
        assert_eq!(held.source, LifetimeSource::Hold);
        assert_eq!(held.age(T), Duration::from_secs(500));
        assert_eq!(held.remaining(T), Duration::from_secs(60));
        assert_eq!(held.fresh_until(), T + Duration::from_secs(60));
        assert!(held.is_fresh(T + Duration::from_millis(59_999)) && !held.is_fresh(T + Duration::from_secs(60)));
        assert!(!held.stale_allowed);
    }

    proptest! {
        #[test]
        fn nothing_panics_and_no_lifetime_exceeds_the_cap(
            lines in proptest::collection::vec(("(age|date|expires|last-modified|cache-control|pragma)", "[ -~]{0,40}"), 0..6),
            times in any::<[u64; 3]>(),
        ) {
            let lines: Vec<_> = lines.iter().map(|(name, value)| format!("{name}: {value}")).collect();
            let headers = headers(&lines.iter().map(String::as_str).filter(|line| !line.contains('@')).collect::<Vec<_>>());
            let [request, response, now] = times.map(Timestamp::from_millis);
            let freshness = Freshness::of(StatusCode::OK, &headers, &ResponseDirectives::of(&headers), request, response);
            prop_assert!(freshness.lifetime <= Duration::from_secs(1 << 31));
            prop_assert_eq!(freshness.is_fresh(now), !freshness.remaining(now).is_zero());
            let _ = (freshness.staleness(now), freshness.fresh_until(), freshness.with_hold(Duration::MAX).age(now));
        }
    }
}
