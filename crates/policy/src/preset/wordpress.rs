//! A WordPress: pages are the same for all who have signed in nowhere, bought nothing and written nothing. Its pages carry no lifetimes.
//!
//! Checked against WordPress 6.8.7; `doc/wordpress.md` says what was seen. The cookies and parameters are those that the caching plugins for
//! WordPress publish as reasons to pass.

use std::time::Duration;

use super::{Area, Cookies, Keeps, Parameters, Passes, Paths, Preset, Rule, Rules, SentFields, SourceForm, Way, generic};
use crate::{EarlyHints, names::Names, purge::Signals};

/// The time for which a "not found" is held, so that a broken link on the front page of the world does not reach PHP.
const NOT_FOUND_HOLD: Duration = Duration::from_secs(10);

pub(super) static PRESET: Preset = Preset {
    name: "wordpress",
    sources: &[SourceForm::Php, SourceForm::Server],
    is_impersonal: false,
    areas: AREAS,
    rules: Rules {
        passes: Passes { parameters: UNLOCKING, fields: FIELDS, cookies: KNOWN_VISITORS },
        parameters: Parameters::AllBut(generic::TRACKERS),
        keeps: Keeps { statuses: Some(&[200, 301, 308, 404, 410]), hold_max: None, held_anyway: &[(404, NOT_FOUND_HOLD)] },
    },
    cookies: Cookies { ignored: generic::ANALYTICS_COOKIES, unknown_are_personal: false },
    request_fields: SentFields::Only(&["accept", "host"]),
    // Its own writes purge; an hour for what is changed past Seawall.
    hold: Some(Duration::from_hours(1)),
    not_found_hold_max: Some(NOT_FOUND_HOLD),
    stale_if_error: Some(Duration::from_hours(7 * 24)),
    stale_while_revalidate: Some(Duration::from_hours(24)),
    honours_request_directives: false,
    shows_what_was_purged: false,
    signals: Signals::WordPress,
    two_visitor_proof: false,
    early_hints: EarlyHints::On,
    companions: &[],
};

/// A request with one of these shows or does something for one person.
const UNLOCKING: &[Rule] = &[
    Rule { name: "wordpress-preview", of: Names { whole: &["preview", "preview_id", "preview_nonce"], beginnings: &["customize_"] } },
    Rule { name: "wordpress-nonce", of: Names { whole: &["_wpnonce"], beginnings: &[] } },
];

const FIELDS: &[Rule] = &[
    Rule { name: "authorization", of: Names { whole: &["authorization"], beginnings: &[] } },
    Rule { name: "wordpress-nonce-field", of: Names { whole: &["x-wp-nonce"], beginnings: &[] } },
    Rule { name: "method-override", of: Names { whole: &["x-http-method-override"], beginnings: &[] } },
];

const KNOWN_VISITORS: &[Rule] = &[
    Rule { name: "wordpress-user-cookie", of: Names { whole: &[], beginnings: &["wordpress_logged_in_", "wordpress_sec_"] } },
    Rule { name: "wordpress-post-password", of: Names { whole: &[], beginnings: &["wp-postpass_"] } },
    Rule { name: "wordpress-commenter", of: Names { whole: &[], beginnings: &["comment_author_"] } },
];

const fn pass(name: &'static str, whole: &'static [&'static str], beginnings: &'static [&'static str]) -> Area {
    Area { name, paths: Paths { whole, beginnings, ..Paths::NONE }, way: Way::Pass }
}

const AREAS: &[Area] = &[
    pass("wordpress-admin", &["/wp-admin"], &["/wp-admin/"]),
    pass("wordpress-login", &["/wp-login.php", "/wp-signup.php", "/wp-activate.php"], &["/wp-login.php/"]),
    pass("wordpress-write", &["/wp-comments-post.php", "/wp-trackback.php", "/xmlrpc.php", "/wp-cron.php"], &[]),
];
