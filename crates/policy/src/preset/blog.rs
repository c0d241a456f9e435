//! The embedded blog: it answers everybody the same, and says itself how long each answer holds and what it was made of.

use std::time::Duration;

use super::{
    Area, Cookies, Keeps, Parameters, Passes, Paths, Preset, Responses, Rules, SentFields, SourceForm, Way, generic::ANALYTICS_COOKIES,
};
use crate::{AcceptClass, EarlyHints, names::Names, purge::Signals};

pub(super) static PRESET: Preset = Preset {
    name: "blog",
    product: None,
    sources: &[SourceForm::Markdown],
    is_impersonal: true,
    areas: AREAS,
    // No page depends on a query. What scripts read of it is in the reader's address, and redirects take it along.
    rules: Rules { passes: Passes::NONE, parameters: Parameters::Only(Names::NONE), keeps: Keeps::AS_ALLOWED },
    cookies: Cookies { ignored: ANALYTICS_COOKIES, unknown_are_personal: true },
    // The rest of a request means nothing to it, so all browsers share what is stored.
    request_fields: SentFields::HtmlOr(AcceptClass::Markdown),
    hold: None,
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

const AREAS: &[Area] = &[
    // Whoever has the link sees a draft; nothing of it is ever stored.
    Area { name: "blog-preview", paths: Paths { beginnings: &["/preview/"], ..Paths::NONE }, way: Way::Pass },
    // Streams that tell an author's browser of changes.
    Area { name: "blog-reload", paths: Paths { beginnings: &["/.seawall/"], ..Paths::NONE }, way: Way::Pass },
];
