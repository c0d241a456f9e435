//! The embedded blog: it answers everybody the same, and says when it changes.

use std::time::Duration;

use super::{
    Cookies, Keeps, Parameters, Passes, Preset, Responses, Rules, SentFields, SourceForm,
    generic::{ANALYTICS_COOKIES, TRACKERS},
};
use crate::{EarlyHints, purge::Signals};

pub(super) static PRESET: Preset = Preset {
    name: "blog",
    sources: &[SourceForm::Markdown],
    is_impersonal: true,
    areas: &[],
    rules: Rules { passes: Passes::NONE, parameters: Parameters::AllBut(&[TRACKERS]), keeps: Keeps::AS_ALLOWED },
    cookies: Cookies { ignored: ANALYTICS_COOKIES, unknown_are_personal: true },
    request_fields: SentFields::AllButMisleading,
    // It purges what it changes; a year stands for "until then".
    hold: Some(Duration::from_secs(365 * 86_400)),
    not_found_hold_max: None,
    stale_if_error: Some(Duration::from_secs(7 * 86_400)),
    stale_while_revalidate: None,
    // It has no newer page than the one that is stored until it says so.
    honours_request_directives: false,
    shows_what_was_purged: true,
    signals: Signals::None,
    obeys_purge_fields: false,
    two_visitor_proof: false,
    // For what lies on a disk nobody waits.
    early_hints: EarlyHints::Off,
    companions: &[],
    logins: &[],
    responses: Responses::PLAIN,
};
