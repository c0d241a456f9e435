//! A Ghost: pages are the same for all who are not signed in, and it says when something has changed.
//!
//! Checked against Ghost 6.65.0; `doc/ghost.md` says what was seen. The names of parameters are those of the policy that Ghost ships for its
//! own edge (`core/server/web/query-parameter-policy/policy.json`).

use std::time::Duration;

use super::{
    Area, CookieRule, Cookies, Keeps, Parameters, Passes, Paths, Preset, Responses, Rule, Rules, SentFields, SourceForm, Way, companions,
    generic::ANALYTICS_COOKIES,
};
use crate::{
    EarlyHints,
    login::{Login, PasswordIn, WrongIf},
    names::Names,
    purge::Signals,
};

/// The time for which answers of the members' API to nobody in particular are held. Comments purge them; this is for what purges nothing, such
/// as a moderator who works past Seawall.
const API_HOLD: Duration = Duration::from_secs(30);

/// The time for which a "not found" is held, so that a broken link on the front page of the world does not reach the Ghost.
const NOT_FOUND_HOLD: Duration = Duration::from_secs(10);

pub(super) static PRESET: Preset = Preset {
    name: "ghost",
    product: Some("Ghost"),
    sources: &[SourceForm::Server],
    is_impersonal: false,
    areas: AREAS,
    rules: Rules {
        passes: Passes { parameters: UNLOCKING, fields: FIELDS, cookies: KNOWN_VISITORS },
        parameters: Parameters::Only(Names::NONE),
        keeps: PAGES,
    },
    cookies: Cookies { ignored: ANALYTICS_COOKIES, unknown_are_personal: false },
    request_fields: SentFields::Only(&["accept", "host"]),
    // Until it says that something has changed; a day in case that is missed.
    hold: Some(Duration::from_hours(24)),
    not_found_hold_max: Some(NOT_FOUND_HOLD),
    stale_if_error: Some(Duration::from_hours(7 * 24)),
    stale_while_revalidate: Some(Duration::from_hours(24)),
    honours_request_directives: false,
    shows_what_was_purged: false,
    signals: Signals::Ghost,
    obeys_purge_fields: false,
    two_visitor_proof: true,
    early_hints: EarlyHints::On,
    companions: companions::OF_GHOST,
    logins: LOGINS,
    responses: Responses::PLAIN,
};

const PAGES: Keeps =
    Keeps { statuses: Some(&[200, 301, 308, 404, 410]), hold_max: None, held_anyway: &[(404, NOT_FOUND_HOLD)], ..Keeps::AS_ALLOWED };

/// A request with one of these unlocks something, or is a visit of one person: a sign-in link, a gift, a preview, a private blog's visitor.
const UNLOCKING: &[Rule] = &[
    Rule { name: "ghost-gift", of: Names { whole: &["gift"], beginnings: &[] } },
    Rule { name: "ghost-token", of: Names { whole: &["token", "otc_verification"], beginnings: &[] } },
    Rule { name: "ghost-member-key", of: Names { whole: &["uuid", "key", "m"], beginnings: &[] } },
    Rule { name: "ghost-staff", of: Names { whole: &["admin", "admin_toolbar", "member_status", "member_tier"], beginnings: &[] } },
    Rule { name: "ghost-sign-on", of: Names { whole: &["ssml", "ssts"], beginnings: &[] } },
    Rule { name: "ghost-action", of: Names { whole: &["action", "newsletter", "r"], beginnings: &[] } },
];

const FIELDS: &[Rule] = &[
    Rule { name: "ghost-preview", of: Names { whole: &["x-ghost-preview"], beginnings: &[] } },
    Rule { name: "authorization", of: Names { whole: &["authorization"], beginnings: &[] } },
];

const STAFF_COOKIE: CookieRule = CookieRule::any("ghost-staff-cookie", &[], &["ghost-admin"]);
const PRIVATE_COOKIE: CookieRule = CookieRule::any("ghost-private-cookie", &["ghost-private"], &[]);
/// Cookies of members: every other cookie that a Ghost sets. `members-ssr` is what its library calls the cookie by default.
pub(crate) const MEMBER_COOKIE: CookieRule = CookieRule::any("ghost-member-cookie", &[], &["ghost-", "members-ssr"]);
const KNOWN_VISITORS: &[CookieRule] = &[STAFF_COOKIE, PRIVATE_COOKIE, MEMBER_COOKIE];

/// The parameters of the content API.
const CONTENT_API: Names = Names {
    whole: &["absolute_urls", "collection", "debug", "fields", "filter", "formats", "include", "key", "limit", "order", "page"],
    beginnings: &[],
};

/// The parameters of the comments API.
const COMMENTS_API: Names = Names { whole: &["fields", "filter", "ids", "include", "limit", "order", "page"], beginnings: &[] };

/// Rules for an answer of an API to nobody in particular, which the Ghost itself calls private.
const fn api(parameters: Names, statuses: &'static [u16], held_anyway: &'static [(u16, Duration)]) -> Way {
    Way::Lookup(Rules {
        passes: Passes { parameters: UNLOCKING, fields: FIELDS, cookies: KNOWN_VISITORS },
        parameters: Parameters::Only(parameters),
        keeps: Keeps { statuses: Some(statuses), hold_max: Some(API_HOLD), held_anyway, ..Keeps::AS_ALLOWED },
    })
}

/// Rules for files: they are the same for everybody who may see them.
const fn files(parameters: Names, cookies: &'static [CookieRule]) -> Way {
    Way::Lookup(Rules { passes: Passes { parameters: &[], fields: &[], cookies }, parameters: Parameters::Only(parameters), keeps: PAGES })
}

const fn below(beginnings: &'static [&'static str]) -> Paths {
    Paths { beginnings, ..Paths::NONE }
}

const fn at(whole: &'static [&'static str], beginnings: &'static [&'static str]) -> Paths {
    Paths { whole, beginnings, ..Paths::NONE }
}

const fn pass(name: &'static str, whole: &'static [&'static str], beginnings: &'static [&'static str]) -> Area {
    Area { name, paths: at(whole, beginnings), way: Way::Pass }
}

const AREAS: &[Area] = &[
    // Pictures are public in a private blog, too.
    Area { name: "ghost-files", paths: below(&["/content/images/", "/content/media/", "/content/files/"]), way: files(Names::NONE, &[]) },
    // The stylesheet has one address with each content (`?v=`). In a private blog these lead to its password.
    Area {
        name: "ghost-assets",
        paths: at(&["/favicon.ico", "/favicon.png"], &["/assets/", "/public/"]),
        way: files(Names { whole: &["v"], beginnings: &[] }, &[PRIVATE_COOKIE]),
    },
    Area {
        name: "ghost-content-api",
        paths: Paths { also: Some(is_content_api), ..Paths::NONE },
        way: Way::Lookup(Rules {
            passes: Passes { parameters: &[], fields: FIELDS, cookies: &[] },
            parameters: Parameters::Only(CONTENT_API),
            keeps: Keeps { statuses: Some(&[200]), ..Keeps::AS_ALLOWED },
        }),
    },
    // Without a member of the staff it is empty.
    Area {
        name: "ghost-auth-frame",
        paths: at(&["/ghost/auth-frame", "/ghost/auth-frame/"], &[]),
        way: api(Names::NONE, &[204], &[(204, API_HOLD)]),
    },
    pass("ghost-admin", &["/ghost"], &["/ghost/"]),
    Area { name: "ghost-keys", paths: below(&["/members/.well-known/"]), way: files(Names::NONE, &[]) },
    // Nobody is signed in: 204.
    Area {
        name: "ghost-member-api",
        paths: at(&["/members/api/member", "/members/api/member/"], &[]),
        way: api(Names::NONE, &[204], &[(204, API_HOLD)]),
    },
    Area {
        name: "ghost-comments-api",
        paths: at(&["/members/api/comments"], &["/members/api/comments/"]),
        way: api(COMMENTS_API, &[200], &[(200, API_HOLD)]),
    },
    Area {
        name: "ghost-site-api",
        paths: at(&["/members/api/site", "/members/api/site/", "/members/api/announcement", "/members/api/announcement/"], &[]),
        way: api(Names::NONE, &[200], &[(200, API_HOLD)]),
    },
    pass("ghost-members", &["/members"], &["/members/"]),
    pass("ghost-preview", &["/p"], &["/p/", "/email/"]),
    pass("ghost-unsubscribe", &["/unsubscribe"], &["/unsubscribe/"]),
    pass("ghost-private", &["/private"], &["/private/"]),
    pass("ghost-gift", &[], &["/gift"]),
    pass("ghost-link", &["/r"], &["/r/"]),
    pass("ghost-webmentions", &["/webmentions"], &["/webmentions/"]),
    pass(
        "ghost-companions",
        &["/.well-known/webfinger", "/.well-known/webfinger/", "/.well-known/nodeinfo"],
        &["/.ghost/", "/.well-known/nodeinfo/"],
    ),
    Area { name: "ghost-private-feed", paths: Paths { also: Some(is_private_feed), ..Paths::NONE }, way: Way::Pass },
];

/// Returns whether a path is one of the content API: `/ghost/api/content/`, or with a version as older themes write it.
fn is_content_api(path: &str) -> bool {
    const API: &str = "/ghost/api/";
    let Some(rest) = path.get(..API.len()).filter(|start| start.eq_ignore_ascii_case(API)).map(|_| &path[API.len()..]) else {
        return false;
    };
    let is = |segment: &str, word: &str| segment.eq_ignore_ascii_case(word);
    let mut segments = rest.splitn(3, '/');
    match (segments.next(), segments.next()) {
        (Some(first), Some(_)) if is(first, "content") => true,
        (Some(first), Some(second)) if is(second, "content") => {
            is(first, "canary")
                || (first.len() <= 4 && first.starts_with(['v', 'V']) && first[1..].bytes().all(|b| b.is_ascii_digit() || b == b'.'))
        }
        _ => false,
    }
}

/// Returns whether a path is that of a private blog's feed: `/<hash>/rss/`, where the hash is thirty hexadecimal digits. Anything as long
/// counts, also below another path.
fn is_private_feed(path: &str) -> bool {
    let mut segments = path.trim_end_matches('/').rsplit('/');
    segments.next().is_some_and(|last| last.eq_ignore_ascii_case("rss"))
        && segments.next().is_some_and(|hash| hash.len() >= 30 && hash.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// The staff's sign-in: 422 for a wrong password, 404 for an unknown name. A 403 asks for the code that was mailed: the password was right.
const LOGINS: &[Login] = &[Login {
    paths: Paths { whole: &["/ghost/api/admin/session", "/ghost/api/admin/session/"], ..Paths::NONE },
    password: PasswordIn::Content,
    wrong: WrongIf::Status(&[401, 404, 422]),
    envelope: None,
}];
