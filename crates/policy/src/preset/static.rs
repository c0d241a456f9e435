//! A folder of finished files: it answers everybody the same, and says itself how long each answer holds.

use std::time::Duration;

use super::{
    Cookies, Keeps, Parameters, Passes, Preset, Responses, Rules, SentFields, SourceForm,
    generic::{ANALYTICS_COOKIES, TRACKERS},
};
use crate::{EarlyHints, purge::Signals};

pub(super) static PRESET: Preset = Preset {
    name: "static",
    product: None,
    sources: &[SourceForm::Files],
    is_impersonal: true,
    areas: &[],
    rules: Rules { passes: Passes::NONE, parameters: Parameters::AllBut(&[TRACKERS]), keeps: Keeps::AS_ALLOWED },
    cookies: Cookies { ignored: ANALYTICS_COOKIES, unknown_are_personal: true },
    request_fields: SentFields::AllButMisleading,
    hold: None,
    not_found_hold_max: None,
    stale_if_error: Some(Duration::from_secs(7 * 86_400)),
    stale_while_revalidate: None,
    // A folder has no newer answer than the one that is stored until the folder changes.
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
