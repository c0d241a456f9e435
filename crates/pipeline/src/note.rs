//! The facts about a request that its log line and the counters need.

use std::{net::IpAddr, time::Duration};

use http::{HeaderMap, header};
use policy::CookieName;
use semantics::{RequestId, Scheme, TraceIds, cache_status::Outcome, coding::Coding};

use crate::{admission::FirstStep, answer::OwnAnswer};

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
    /// The scheme that the client asked for; `None`: that of its connection.
    pub scheme: Option<Scheme>,
    /// The content coding that the response has, if it is one of those we know.
    pub coding: Option<Coding>,
    /// The name of the rule or the failure that decided, as `Cache-Status` has it in `detail`, but without a cookie; where that says nothing, as the
    /// outcome says enough, the reason why the origin was asked. `None` for a hit.
    pub rule: Option<&'static str>,
    /// The class of the response's content.
    pub class: Class,
    /// The cookie by which the request passed, or for which the response is not stored.
    pub cookie: Option<DecidingCookie>,
    /// Whether the request was a health check, which says nothing of the traffic.
    pub is_health_check: bool,
    /// The id of the request; `None` for a plain hit, of which nobody but its client has heard.
    pub id: Option<RequestId>,
    /// The ids of the request in its trace; `None` if it is not traced.
    pub trace: Option<TraceIds>,
}

/// A cookie that decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecidingCookie {
    /// The request carried it, and passed.
    Carried(CookieName),
    /// The response sets it, and is not stored.
    Set(CookieName),
}

impl DecidingCookie {
    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> CookieName {
        match self {
            Self::Carried(name) | Self::Set(name) => name,
        }
    }
}

/// The class of a response's content, by its media type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Class {
    /// HTML, and other text for people.
    Document,
    /// RSS, Atom and JSON Feed, sitemaps.
    Feed,
    /// JavaScript and WebAssembly.
    Script,
    /// CSS and fonts.
    Style,
    /// Pictures.
    Picture,
    /// Sound and video.
    Media,
    /// JSON and other data for programs.
    Api,
    /// Anything else, and what has no content.
    #[default]
    Other,
}

/// The names of the classes, in the order of [`Class`].
pub const CLASSES: [&str; 8] = ["document", "feed", "script", "style", "picture", "media", "api", "other"];

impl Class {
    /// Finds the class of a response's content by its `Content-Type`.
    pub(crate) fn of_response(headers: &HeaderMap) -> Self {
        headers.get(header::CONTENT_TYPE).map(|value| Self::of_media_type(value.as_bytes())).unwrap_or_default()
    }

    /// Finds the class of a media type (RFC 9110 §8.3.1), whose parameters are ignored.
    pub(crate) fn of_media_type(value: &[u8]) -> Self {
        let end = value.iter().position(|&b| b == b';').unwrap_or(value.len());
        let name = value[..end].trim_ascii();
        let is = |names: &[&str]| names.iter().any(|other| name.eq_ignore_ascii_case(other.as_bytes()));
        let begins = |with: &str| name.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with.as_bytes()));
        if is(&["application/rss+xml", "application/atom+xml", "application/feed+json", "application/xml", "text/xml"]) {
            Self::Feed
        } else if is(&["text/javascript", "application/javascript", "application/x-javascript", "application/wasm"]) {
            Self::Script
        } else if is(&["text/css"]) || begins("font/") || begins("application/font") {
            Self::Style
        } else if begins("image/") {
            Self::Picture
        } else if begins("audio/") || begins("video/") {
            Self::Media
        } else if begins("application/") && (is(&["application/json"]) || name.ends_with(b"+json")) {
            Self::Api
        } else if begins("text/") || is(&["application/xhtml+xml"]) {
            Self::Document
        } else {
            Self::Other
        }
    }

    /// Returns its name, as in [`CLASSES`].
    #[must_use]
    pub const fn name(self) -> &'static str {
        CLASSES[self as usize]
    }
}

impl Note {
    /// Makes the note of a request that was answered by this rule and never got to the cache.
    pub(crate) fn ruled(rule: OwnAnswer) -> Self {
        Self { rule: Some(rule.name()), is_health_check: rule == OwnAnswer::Step(FirstStep::Health), ..Self::default() }
    }

    /// Makes the note of a request for which the cache did this.
    pub(crate) fn of(outcome: Outcome) -> Self {
        Self { outcome: Some(outcome), ..Self::default() }
    }
}
