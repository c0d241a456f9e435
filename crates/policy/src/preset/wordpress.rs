//! A WordPress: pages are the same for all who have signed in nowhere, bought nothing and written nothing. Its pages carry no lifetimes.
//!
//! Checked against WordPress 6.8.7; `doc/wordpress.md` says what was seen. The cookies and parameters are those that the caching plugins for
//! WordPress publish as reasons to pass.

use std::time::Duration;

use super::{Area, Cookies, Keeps, Parameters, Passes, Paths, Preset, Rule, Rules, SentFields, SourceForm, Way, generic};
use crate::{
    EarlyHints,
    login::{Login, PasswordIn, WrongIf},
    names::Names,
    purge::Signals,
};

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
    logins: LOGINS,
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

/// The scripts answer wherever WordPress is, whatever follows their name, and for each site of a network.
const fn script(endings: &'static [&'static str], also: fn(&str) -> bool) -> Paths {
    Paths { endings, also: Some(also), ..Paths::NONE }
}

fn has(path: &str, script: &str) -> bool {
    path.as_bytes().windows(script.len()).any(|part| part.eq_ignore_ascii_case(script.as_bytes()))
}

const LOGINS: &[Login] = &[
    // It also mails links to whoever asks for a new password, which counts as well. The password of a post is looked at when the post is asked for.
    Login {
        paths: script(&["/wp-login.php"], |path| has(path, "/wp-login.php/")),
        password: PasswordIn::Form,
        wrong: WrongIf::NoCookie(&["wordpress_logged_in_", "wp-postpass_"]),
    },
    // `system.multicall` carries as many passwords as there is room for.
    Login { paths: script(&["/xmlrpc.php"], |path| has(path, "/xmlrpc.php/")), password: PasswordIn::Content, wrong: WrongIf::Fault(403) },
    // Application passwords, which the REST API takes at any address.
    Login { paths: Paths { beginnings: &["/"], ..Paths::NONE }, password: PasswordIn::Authorization, wrong: WrongIf::Status(&[401]) },
];
