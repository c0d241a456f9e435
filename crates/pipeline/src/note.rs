//! The facts about a request that its log line and the counters need.

use std::{net::IpAddr, time::Duration};

use policy::CookieName;
use semantics::{cache_status::Outcome, coding::Coding};

/// The account of how a response came about.
#[derive(Debug, Clone, Copy, Default)]
pub struct Note {
    /// The number of the site that the request is for; `None` if there is none, or it was answered before that was known.
    pub site: Option<u16>,
    /// The outcome, which is what the cache did; `None` if the request never got to it.
    pub outcome: Option<Outcome>,
    /// Whether it shared another request's way to the origin.
    pub collapsed: bool,
    /// The time from the request to the origin until its response head; `None` if the origin was not asked for this request.
    pub origin_time: Option<Duration>,
    /// The client, if a trusted proxy named it.
    pub client: Option<IpAddr>,
    /// The content coding that the response has, if it is one of those we know.
    pub coding: Option<Coding>,
    /// The cookie by which the request passed, or for which the response is not stored.
    pub cookie: Option<CookieName>,
}

impl Note {
    /// Makes the note of a request that never got to the cache.
    pub(crate) fn for_site(site: Option<u16>) -> Self {
        Self { site, ..Self::default() }
    }

    /// Makes the note of a request for which the cache did this.
    pub(crate) fn of(outcome: Outcome) -> Self {
        Self { outcome: Some(outcome), ..Self::default() }
    }
}
