//! The life of a request.
//!
//! [`Pipeline::respond`] is that life, top to bottom; everything it calls is a room of its own. [`Pipeline::hit`] is its beginning cut
//! short: the same judgement and the same lookup, for the case in which nothing has to wait.
//!
//! Absent from this room: parsing, and sockets.

mod admission;
mod alone;
mod answer;
mod anybody;
mod ask;
mod body;
mod clock;
mod coded;
mod collapse;
mod deliver;
mod direct;
mod failure;
mod fence;
mod fetch;
mod find;
mod forward;
mod hit;
mod hosts;
mod identity;
mod in_vain;
mod interim;
mod judge;
mod keep;
mod learnt;
mod login;
mod lookup;
mod next;
mod note;
mod own_response;
mod packed;
mod parts;
mod pass;
mod pipeline;
mod proof;
mod purge;
mod question;
mod rate;
mod record;
mod redirect;
mod response_fields;
mod shared;
mod site;
mod stale;
mod tier;
mod views;

pub use admin_api::Spread;
pub use admission::https::{Https, Redirect};
pub use admission::password::Auth;
pub use admission::schedule::Schedule;
pub use body::{Body, BodyError};
pub use clock::Clock;
pub use collapse::Collapse;
pub use direct::{DIRECT_FIELD, Direct};
pub use failure::{Failure, ONLY_IF_CACHED};
pub use fence::{Acknowledgement, Elsewhere, Fence, Machines};
pub use hit::{Hit, HitContent, HitFacts};
pub use hosts::is_among;
pub use identity::{OriginAsked, Tracing};
pub use in_vain::{FetchedInVain, InVain};
pub use interim::Interim;
pub use learnt::cookies::CookieCount;
pub use learnt::refill::{Refill, Refilling};
pub use login::{LOGIN_REFUSALS, LoginLimits};
pub use note::{CLASSES, Class, DecidingCookie, Note};
pub use packed::Packing;
pub use pipeline::{IncomingCall, Pipeline};
pub use proof::PROOF_RESULTS;
pub use purge::{Covered, Purge, Purging, Receipt, SignalLog, SignalledPurge, SiteSignals, TokenCheck, Unresolved, WebhookSecret};
pub use question::Client;
pub use rate::{AddressRequests, LimitSharing, Rate, RateReport, Rates, RequestLimit};
pub use record::Record;
pub use response_fields::ResponseFields;
pub use shared::Shared;
pub use site::{OriginState, Parts, Route, Router, SharedOriginState, Site};
pub use tier::{FetchTurn, Later, TIER_HEAD_MAX, Tier, TierLookup, TierPage};
pub use views::counters::{BUCKET_MICROS, CacheOutcome, Counters, Durations, OUTCOMES, RuleCount, Sent, SiteSnapshot, Snapshot, Tally};

/// The store, as this room fills it.
pub type Store = store::Store<Record, Failure>;

/// One stored response, as this room fills it.
pub type Stored = store::Stored<Record>;
/// All that is stored under one key.
pub type Resource = store::Resource<Record>;
