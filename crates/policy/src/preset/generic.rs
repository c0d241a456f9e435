//! Any server: it is taken at its word, and the RFCs fill in.

use std::time::Duration;

use super::{Cookies, Keeps, Parameters, Passes, Preset, Responses, Rules, SentFields, SourceForm};
use crate::{EarlyHints, names::Names, purge::Signals};

pub(super) static PRESET: Preset = Preset {
    name: "generic",
    product: None,
    sources: &[SourceForm::Server],
    is_impersonal: false,
    areas: &[],
    rules: Rules { passes: Passes::NONE, parameters: Parameters::AllBut(&[TRACKERS]), keeps: Keeps::AS_ALLOWED },
    cookies: Cookies { ignored: ANALYTICS_COOKIES, unknown_are_personal: true },
    request_fields: SentFields::AllButMisleading,
    hold: None,
    // The page may be published any moment.
    not_found_hold_max: Some(Duration::from_secs(10)),
    stale_if_error: None,
    stale_while_revalidate: None,
    honours_request_directives: true,
    shows_what_was_purged: true,
    signals: Signals::None,
    obeys_purge_fields: false,
    two_visitor_proof: false,
    early_hints: EarlyHints::On,
    companions: &[],
    logins: &[],
    responses: Responses::PLAIN,
};

/// Cookies that analytics scripts set, and nothing else: no page depends on them, and where they are a request's only ones they do not reach
/// the origin. Cookies of consent are not among them: where the server goes by them, they decide whose scripts a page has.
pub(super) const ANALYTICS_COOKIES: Names = Names {
    whole: &[
        "_gid",
        "_fbp",
        "_fbc",
        "_clck",
        "_clsk",
        "__hstc",
        "__hssc",
        "__hssrc",
        "hubspotutk",
        "_ttp",
        "_pin_unauth",
        "_derived_epik",
        "__cf_bm",
        "_cfuvid",
        "_mkto_trk",
        "_dd_s",
        "wordpress_test_cookie",
    ],
    beginnings: &["_ga", "_gcl_", "__utm", "_hj", "_pk_", "_uet", "_scid", "ajs_", "amplitude_", "mp_"],
};

/// Query parameters that only trackers read.
///
/// On the day of the crowd every link carries its own `fbclid`; each would be a page of its own (hestiacp/hestiacp#5514). They leave the key *and*
/// the request to the origin, since WordPress prints them into its links. The reader's address bar keeps them. The names are from the lists
/// that APO and LSCache publish, and what was seen since.
pub(super) const TRACKERS: Names = Names {
    whole: &[
        "_ga",
        "_gl",
        "_ke",
        "_kx",
        "adgroupid",
        "campaignid",
        "ck_subscriber_id",
        "cn-reloaded",
        "dclid",
        "epik",
        "fb_action_ids",
        "fb_action_types",
        "fb_source",
        "fbclid",
        "gbraid",
        "gclid",
        "gclsrc",
        "igsh",
        "igshid",
        "li_fat_id",
        "mc_cid",
        "mc_eid",
        "mkt_tok",
        "msclkid",
        "s_kwcid",
        "srsltid",
        "ttclid",
        "twclid",
        "usqp",
        "vero_id",
        "wbraid",
        "wickedid",
        "yclid",
        "ysclid",
    ],
    beginnings: &["utm_", "gad_", "_hs", "hsa_", "mtm_", "pk_", "piwik_", "matomo_"],
};
