//! Whether a stored response may answer a request (RFC 9111 §4), and whether it may when its origin has failed (§4.2.4, RFC 5861 §4).
//!
//! That the response was selected, by key and `Vary`, is the caller's business; so is whether clients have a say at all: where they have
//! not, pass [`RequestDirectives::NONE`].

use std::time::Duration;

use crate::{
    Timestamp,
    cache_control::{DeltaSeconds, MaxStale, RequestDirectives},
    freshness::Freshness,
};

/// How a stored response may be used for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// Serve the stored response.
    Fresh,
    /// Serve the stored response although it is stale, and validate it in the background.
    WhileRevalidating,
    /// Ask the origin first.
    AfterValidation(Stale),
    /// The origin would have to be asked, and the client said `only-if-cached`: answer 504 (§5.2.1.7).
    Forbidden(Stale),
}

impl Reuse {
    /// Returns how a stored response may be used if it may have been purged without this cache's knowledge: not before the origin was asked.
    #[must_use]
    pub const fn in_doubt(self, request: &RequestDirectives) -> Self {
        match self {
            Self::Fresh | Self::WhileRevalidating if request.only_if_cached => Self::Forbidden(Stale::InDoubt),
            Self::Fresh | Self::WhileRevalidating => Self::AfterValidation(Stale::InDoubt),
            Self::AfterValidation(_) | Self::Forbidden(_) => self,
        }
    }
}

/// The effect of a soft purge on a stored response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SoftPurge {
    /// It was not purged softly.
    None,
    /// It was, and may still be shown while it is refreshed.
    Shown,
    /// It was, and nobody sees it before the origin has validated it or has failed.
    Withheld,
}

/// The reason to ask the origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stale {
    /// The freshness lifetime of the response is over.
    Expired,
    /// An operator or the site purged the response softly.
    Purged,
    /// The response may have been purged without this cache's knowledge.
    InDoubt,
    /// The response said `no-cache`.
    NoCache,
    /// The response is fresh, but the request said `no-cache`.
    RequestNoCache,
    /// The response is fresh, but older than the request's `max-age`.
    RequestMaxAge,
    /// The response is fresh, but not for as long as the request's `min-fresh`.
    RequestMinFresh,
}

impl Stale {
    /// Returns the name for logs and `Cache-Status` details.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Purged => "purged",
            Self::InDoubt => "in-doubt",
            Self::NoCache => "no-cache",
            Self::RequestNoCache => "request-no-cache",
            Self::RequestMaxAge => "request-max-age",
            Self::RequestMinFresh => "request-min-fresh",
        }
    }

    /// Returns whether the response is fresh and only the request's directives are against it: `fwd=request` in RFC 9211 §2.2, else
    /// `fwd=stale`.
    #[must_use]
    pub const fn is_by_request(self) -> bool {
        matches!(self, Self::RequestNoCache | Self::RequestMaxAge | Self::RequestMinFresh)
    }
}

/// Returns whether `stored` may answer a request with these directives now.
///
/// A soft purge makes it stale whatever its lifetime. Where what was purged is [shown](SoftPurge::Shown), the purge gives no limit of its
/// own, so the response may be served while it is revalidated until its lifetime and its `stale-while-revalidate` are over.
#[must_use]
pub fn reuse(request: &RequestDirectives, stored: &Freshness, purge: SoftPurge, now: Timestamp) -> Reuse {
    let soft_purged = purge != SoftPurge::None;
    let why = if stored.validate_always {
        Stale::NoCache
    } else if soft_purged || !stored.is_fresh(now) {
        if purge != SoftPurge::Withheld && served_stale(request, stored, soft_purged, now) {
            return Reuse::WhileRevalidating;
        }
        if soft_purged { Stale::Purged } else { Stale::Expired }
    } else if let Some(why) = refused_fresh(request, stored, now) {
        why
    } else {
        return Reuse::Fresh;
    };
    if request.only_if_cached { Reuse::Forbidden(why) } else { Reuse::AfterValidation(why) }
}

/// Returns whether the stale `stored` may be served because its origin failed: unreachable, or a 5xx (§4.2.4, §4.3.3).
///
/// The limit is `stale-if-error` of the response or of the request, the lower if both have one, else `default`. Directives of the request
/// about freshness do not count then (RFC 5861 §4).
#[must_use]
pub fn allowed_on_error(request: &RequestDirectives, stored: &Freshness, now: Timestamp, default: Duration) -> bool {
    let asked = request.stale_if_error.map(DeltaSeconds::as_duration);
    let limit = [stored.stale_if_error, asked].into_iter().flatten().min().unwrap_or(default);
    stored.stale_allowed && !stored.validate_always && stored.staleness(now) < limit
}

/// Returns the directive of the request that forbids a fresh response, as a reason.
fn refused_fresh(request: &RequestDirectives, stored: &Freshness, now: Timestamp) -> Option<Stale> {
    if request.no_cache {
        Some(Stale::RequestNoCache)
    } else if too_old(request, stored, now) {
        Some(Stale::RequestMaxAge)
    } else if request.min_fresh.is_some_and(|least| stored.remaining(now) < least.as_duration()) {
        Some(Stale::RequestMinFresh)
    } else {
        None
    }
}

/// Returns whether a stale response may be served without waiting for the origin.
///
/// `max-stale` is the client's own limit and takes the place of the response's window. A client that sends `max-age` or `min-fresh` without
/// it wants nothing stale (§5.2.1.1, §5.2.1.3).
fn served_stale(request: &RequestDirectives, stored: &Freshness, soft_purged: bool, now: Timestamp) -> bool {
    if !stored.stale_allowed || request.no_cache || request.min_fresh.is_some() || too_old(request, stored, now) {
        return false;
    }
    let staleness = stored.staleness(now);
    match request.max_stale {
        Some(MaxStale::Any) => true,
        Some(MaxStale::Seconds(limit)) => staleness <= limit.as_duration(),
        None if request.max_age.is_some() => false,
        None => staleness < stored.stale_while_revalidate || (soft_purged && stored.is_fresh(now)),
    }
}

fn too_old(request: &RequestDirectives, stored: &Freshness, now: Timestamp) -> bool {
    request.max_age.is_some_and(|most| stored.age(now) > most.as_duration())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cache_control::ResponseDirectives, request::RequestFields};
    use http::{HeaderMap, StatusCode, header::CACHE_CONTROL};

    const T: Timestamp = Timestamp::from_secs(1_700_000_000);

    fn stored(cache_control: &str) -> Freshness {
        let headers = HeaderMap::from_iter([(CACHE_CONTROL, cache_control.parse().expect("a field value"))]);
        Freshness::of(StatusCode::OK, &headers, &ResponseDirectives::of(&headers), T, T)
    }

    fn asking(cache_control: &str) -> RequestDirectives {
        RequestDirectives::of(&RequestFields::from_raw(&[httparse::Header { name: "cache-control", value: cache_control.as_bytes() }]))
    }

    fn at(secs: u64) -> Timestamp {
        T + Duration::from_secs(secs)
    }

    #[test]
    fn without_directives_in_the_request() {
        use Reuse::{AfterValidation, Fresh, WhileRevalidating};
        for (response, soft_purged, secs, expected) in [
            ("max-age=60", false, 0, Fresh),
            ("max-age=60", false, 59, Fresh),
            ("max-age=60", false, 60, AfterValidation(Stale::Expired)),
            ("max-age=0", false, 0, AfterValidation(Stale::Expired)),
            ("x", false, 0, AfterValidation(Stale::Expired)),
            ("max-age=60, no-cache", false, 0, AfterValidation(Stale::NoCache)),
            ("max-age=60, no-cache=\"a\"", false, 0, AfterValidation(Stale::NoCache)),
            // RFC 5861 §3.
            ("max-age=600, stale-while-revalidate=30", false, 599, Fresh),
            ("max-age=600, stale-while-revalidate=30", false, 600, WhileRevalidating),
            ("max-age=600, stale-while-revalidate=30", false, 629, WhileRevalidating),
            ("max-age=600, stale-while-revalidate=30", false, 630, AfterValidation(Stale::Expired)),
            ("max-age=0, stale-while-revalidate=30", false, 0, WhileRevalidating),
            // RFC 9111 §4.2.4: never stale.
            ("max-age=60, stale-while-revalidate=30, must-revalidate", false, 60, AfterValidation(Stale::Expired)),
            ("max-age=60, stale-while-revalidate=30, proxy-revalidate", false, 60, AfterValidation(Stale::Expired)),
            ("s-maxage=60, stale-while-revalidate=30", false, 60, AfterValidation(Stale::Expired)),
            ("max-age=60, stale-while-revalidate=30, no-cache", false, 60, AfterValidation(Stale::NoCache)),
            // Soft purge.
            ("max-age=60", true, 0, WhileRevalidating),
            ("max-age=60", true, 60, AfterValidation(Stale::Purged)),
            ("max-age=60, stale-while-revalidate=30", true, 89, WhileRevalidating),
            ("max-age=60, stale-while-revalidate=30", true, 90, AfterValidation(Stale::Purged)),
            ("max-age=60, must-revalidate", true, 0, AfterValidation(Stale::Purged)),
            ("max-age=60, no-cache", true, 0, AfterValidation(Stale::NoCache)),
        ] {
            let purge = if soft_purged { SoftPurge::Shown } else { SoftPurge::None };
            assert_eq!(reuse(&RequestDirectives::NONE, &stored(response), purge, at(secs)), expected, "{response} {secs}");
            if soft_purged {
                let withheld = reuse(&RequestDirectives::NONE, &stored(response), SoftPurge::Withheld, at(secs));
                assert!(matches!(withheld, AfterValidation(Stale::Purged | Stale::NoCache)), "{response} {secs}");
            }
        }
    }

    #[test]
    fn with_directives_in_the_request() {
        use Reuse::{AfterValidation, Forbidden, Fresh, WhileRevalidating};
        for (request, response, secs, expected) in [
            ("no-cache", "max-age=60", 0, AfterValidation(Stale::RequestNoCache)),
            ("no-store", "max-age=60", 0, Fresh),
            ("max-age=10", "max-age=60", 10, Fresh),
            ("max-age=10", "max-age=60", 11, AfterValidation(Stale::RequestMaxAge)),
            ("max-age=0", "max-age=60", 0, Fresh),
            ("max-age=0", "max-age=60", 1, AfterValidation(Stale::RequestMaxAge)),
            ("min-fresh=20", "max-age=60", 40, Fresh),
            ("min-fresh=20", "max-age=60", 41, AfterValidation(Stale::RequestMinFresh)),
            ("min-fresh=61", "max-age=60", 0, AfterValidation(Stale::RequestMinFresh)),
            // max-stale.
            ("max-stale", "max-age=60", 59, Fresh),
            ("max-stale", "max-age=60", 100_000, WhileRevalidating),
            ("max-stale=10", "max-age=60", 70, WhileRevalidating),
            ("max-stale=10", "max-age=60", 71, AfterValidation(Stale::Expired)),
            ("max-stale=10", "max-age=60, stale-while-revalidate=100", 71, AfterValidation(Stale::Expired)),
            ("max-stale", "max-age=60, must-revalidate", 60, AfterValidation(Stale::Expired)),
            ("max-stale", "s-maxage=60", 60, AfterValidation(Stale::Expired)),
            ("max-stale", "max-age=60, no-cache", 0, AfterValidation(Stale::NoCache)),
            ("max-stale, no-cache", "max-age=60", 60, AfterValidation(Stale::Expired)),
            ("max-stale=50, max-age=100", "max-age=60", 100, WhileRevalidating),
            ("max-stale=50, max-age=100", "max-age=60", 101, AfterValidation(Stale::Expired)),
            // Without max-stale, a limit of the client's means nothing stale.
            ("max-age=100", "max-age=60, stale-while-revalidate=100", 60, AfterValidation(Stale::Expired)),
            ("min-fresh=1", "max-age=60, stale-while-revalidate=100", 60, AfterValidation(Stale::Expired)),
            ("no-cache", "max-age=60, stale-while-revalidate=100", 60, AfterValidation(Stale::Expired)),
            // only-if-cached.
            ("only-if-cached", "max-age=60", 0, Fresh),
            ("only-if-cached", "max-age=60", 60, Forbidden(Stale::Expired)),
            ("only-if-cached, max-age=10", "max-age=60", 11, Forbidden(Stale::RequestMaxAge)),
            ("only-if-cached, max-stale", "max-age=60", 60, WhileRevalidating),
            ("only-if-cached", "max-age=60, no-cache", 0, Forbidden(Stale::NoCache)),
        ] {
            assert_eq!(reuse(&asking(request), &stored(response), SoftPurge::None, at(secs)), expected, "{request} / {response} {secs}");
        }
        let purged = |request, purge| reuse(&asking(request), &stored("max-age=60"), purge, at(0));
        assert_eq!(purged("max-age=100", SoftPurge::Shown), AfterValidation(Stale::Purged));
        assert_eq!(purged("max-stale", SoftPurge::Shown), WhileRevalidating);
        assert_eq!(purged("max-stale", SoftPurge::Withheld), AfterValidation(Stale::Purged));
        assert_eq!(purged("only-if-cached", SoftPurge::Withheld), Forbidden(Stale::Purged));
    }

    #[test]
    fn what_is_in_doubt_is_validated_first() {
        use Reuse::{AfterValidation, Forbidden};
        for (request, response, secs, expected) in [
            ("x", "max-age=60", 0, AfterValidation(Stale::InDoubt)),
            ("x", "max-age=60, stale-while-revalidate=30", 60, AfterValidation(Stale::InDoubt)),
            ("max-stale", "max-age=60", 100, AfterValidation(Stale::InDoubt)),
            // What is asked of the origin anyway keeps its reason.
            ("x", "max-age=60", 60, AfterValidation(Stale::Expired)),
            ("x", "max-age=60, no-cache", 0, AfterValidation(Stale::NoCache)),
            ("no-cache", "max-age=60", 0, AfterValidation(Stale::RequestNoCache)),
            ("only-if-cached", "max-age=60", 0, Forbidden(Stale::InDoubt)),
            ("only-if-cached, max-stale", "max-age=60", 60, Forbidden(Stale::InDoubt)),
            ("only-if-cached", "max-age=60", 60, Forbidden(Stale::Expired)),
        ] {
            let asked = asking(request);
            let reuse = reuse(&asked, &stored(response), SoftPurge::None, at(secs));
            assert_eq!(reuse.in_doubt(&asked), expected, "{request} / {response} {secs}");
        }
        assert!(!Stale::InDoubt.is_by_request());
    }

    #[test]
    fn when_the_origin_failed() {
        let hour = Duration::from_hours(1);
        for (request, response, default, staleness, expected) in [
            ("x", "max-age=60", Duration::ZERO, 0, false),
            ("x", "max-age=60", hour, 3599, true),
            ("x", "max-age=60", hour, 3600, false),
            ("x", "max-age=60, stale-if-error=1200", Duration::ZERO, 1199, true),
            ("x", "max-age=60, stale-if-error=1200", hour, 1200, false),
            ("x", "max-age=60, stale-if-error=0", hour, 0, false),
            ("stale-if-error=100", "max-age=60", Duration::ZERO, 99, true),
            ("stale-if-error=100", "max-age=60", hour, 100, false),
            ("stale-if-error=100", "max-age=60, stale-if-error=50", hour, 50, false),
            ("stale-if-error=50", "max-age=60, stale-if-error=100", hour, 50, false),
            ("stale-if-error=100", "max-age=60, stale-if-error=100", hour, 99, true),
            ("max-age=0, no-cache", "max-age=60, stale-if-error=100", hour, 99, true),
            ("x", "max-age=60, must-revalidate, stale-if-error=100", hour, 1, false),
            ("x", "max-age=60, proxy-revalidate", hour, 1, false),
            ("x", "s-maxage=60, stale-if-error=100", hour, 1, false),
            ("stale-if-error=100", "max-age=60, no-cache", hour, 1, false),
        ] {
            let allowed = allowed_on_error(&asking(request), &stored(response), at(60 + staleness), default);
            assert_eq!(allowed, expected, "{request} / {response} {staleness}");
        }
    }
}
