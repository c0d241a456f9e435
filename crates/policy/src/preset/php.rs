//! A folder with an application in PHP, of which nothing else is known: what it says is taken as the word of any server.

use std::time::Duration;

use super::{CacheField, Cookies, Keeps, Parameters, Passes, Preset, Responses, Rules, SentFields, SourceForm, generic};
use crate::{EarlyHints, purge::Signals};

pub(super) static PRESET: Preset = Preset {
    name: "php",
    product: None,
    sources: &[SourceForm::Php],
    is_impersonal: false,
    areas: &[],
    rules: Rules { passes: Passes::NONE, parameters: Parameters::AllBut(&[generic::TRACKERS]), keeps: Keeps::AS_ALLOWED },
    cookies: Cookies { ignored: generic::ANALYTICS_COOKIES, unknown_are_personal: true },
    request_fields: SentFields::AllButMisleading,
    hold: None,
    // The page may be published any moment.
    not_found_hold_max: Some(Duration::from_secs(10)),
    stale_if_error: None,
    stale_while_revalidate: None,
    honours_request_directives: true,
    shows_what_was_purged: true,
    two_visitor_proof: false,
    companions: &[],
    logins: &[],
    responses: Responses { cache_fields: &[CacheField::AccelExpires], ..Responses::PLAIN },
    signals: Signals::None,
    obeys_purge_fields: true,
    early_hints: EarlyHints::On,
};
