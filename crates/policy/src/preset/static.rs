//! A folder of finished files: it answers everybody the same, and says itself how long each answer holds.

use std::time::Duration;

use super::{
    Cookies, Parameters, Passes, Preset, SentFields, SourceForm,
    generic::{ANALYTICS_COOKIES, TRACKERS},
};
use crate::EarlyHints;

pub(super) static PRESET: Preset = Preset {
    name: "static",
    source: SourceForm::Files,
    is_impersonal: true,
    passes: Passes::NONE,
    cookies: Cookies { ignored: ANALYTICS_COOKIES, ignored_on: &[], unknown_are_personal: true },
    parameters: Parameters::AllBut(TRACKERS),
    request_fields: SentFields::AllButMisleading,
    hold: None,
    not_found_hold_max: None,
    stale_if_error: Some(Duration::from_secs(7 * 86_400)),
    stale_while_revalidate: None,
    // A folder has no newer answer than the one that is stored until the folder changes.
    honours_request_directives: false,
    shows_what_was_purged: true,
    two_visitor_proof: false,
    // For what lies on a disk nobody waits.
    early_hints: EarlyHints::Off,
};
