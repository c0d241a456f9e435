//! A Ghost: pages are the same for all who are not signed in, and it says when something has changed.

use std::time::Duration;

use super::{Cookies, Parameters, Passes, Preset, Rule, SentFields, SourceForm, generic::ANALYTICS_COOKIES};
use crate::{EarlyHints, names::Names};

pub(super) static PRESET: Preset = Preset {
    name: "ghost",
    source: SourceForm::Server,
    is_impersonal: false,
    passes: Passes {
        paths: &[Rule { name: "ghost-admin", of: Names { whole: &["/ghost"], beginnings: &["/ghost/"] } }],
        parameters: &[Rule { name: "ghost-gift", of: Names { whole: &["gift"], beginnings: &[] } }],
        fields: &[Rule { name: "ghost-preview", of: Names { whole: &["x-ghost-preview"], beginnings: &[] } }],
        cookies: &[Rule { name: "ghost-member", of: Names { whole: &[], beginnings: &["ghost-", "members-ssr"] } }],
    },
    cookies: Cookies { ignored: ANALYTICS_COOKIES, ignored_on: &[], unknown_are_personal: false },
    parameters: Parameters::Only(Names { whole: &["v"], beginnings: &[] }),
    request_fields: SentFields::Only(&["accept", "accept-version", "host"]),
    // Until it says that something has changed; a day in case that is missed.
    hold: Some(Duration::from_hours(24)),
    not_found_hold_max: Some(Duration::from_secs(10)),
    stale_if_error: Some(Duration::from_hours(7 * 24)),
    stale_while_revalidate: Some(Duration::from_hours(24)),
    honours_request_directives: false,
    shows_what_was_purged: false,
    two_visitor_proof: true,
    early_hints: EarlyHints::On,
};
