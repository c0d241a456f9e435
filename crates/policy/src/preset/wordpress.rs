//! A WordPress: pages are the same for all who have signed in nowhere, bought nothing and written nothing. Its pages carry no lifetimes.
//!
//! Checked against WordPress 6.8.7; `doc/wordpress.md` says what was seen. The cookies and parameters are those that the caching plugins for
//! WordPress, Cloudflare and the hosters publish as reasons to pass.
//!
//! A cookie that nobody knows is no reason, as with them: nearly all are marks of analytics and consent, and each plugin's would keep its visitors
//! from the cache for good. That is safe as an anonymous request reaches WordPress without any cookie. So a page that a plugin makes for a cookie is
//! never stored; whoever has that cookie sees the page of those who do not, and never another's.

use std::time::Duration;

use super::{
    Area, CacheField, CookieRule, CookieValue, Cookies, Keeps, Parameters, Passes, Paths, Preset, Responses, Rule, Rules, SentFields,
    SourceForm, Way, generic,
};
use crate::{
    EarlyHints,
    login::{Login, PasswordIn, WrongIf},
    names::Names,
    purge::Signals,
};

/// The time for which a "not found" is held, so that a broken link on the front page of the world does not reach PHP. WordPress says `no-store` with
/// it, as the address may be a page the next moment.
const NOT_FOUND_HOLD: Duration = Duration::from_secs(10);

/// The time for which the results of a search are held: long enough for a crowd, too short for anybody to notice.
const SEARCH_HOLD: Duration = Duration::from_secs(30);

/// The time for which an answer of the REST API is held: programs compare it with what they have just written.
const REST_HOLD: Duration = Duration::from_mins(10);

pub(super) static PRESET: Preset = Preset {
    name: "wordpress",
    product: Some("WordPress"),
    sources: &[SourceForm::Php, SourceForm::Server],
    is_impersonal: false,
    areas: AREAS,
    rules: Rules {
        passes: Passes { parameters: UNLOCKING, fields: FIELDS, cookies: KNOWN_VISITORS },
        parameters: PARAMETERS,
        keeps: PAGES,
    },
    cookies: Cookies { ignored: generic::ANALYTICS_COOKIES, unknown_are_personal: false },
    request_fields: SentFields::Only(&["accept", "host"]),
    // Its own writes purge; an hour for what is changed past Seawall. Seawall's plugin sees every change, and says itself how long a page may stay.
    hold: Some(Duration::from_hours(1)),
    not_found_hold_max: Some(NOT_FOUND_HOLD),
    // Readers never notice that PHP or the database is away.
    stale_if_error: Some(Duration::from_hours(7 * 24)),
    // A page that was not asked for since yesterday is shown at once, and made anew behind its reader. What was purged is never shown so.
    stale_while_revalidate: Some(Duration::from_hours(24)),
    honours_request_directives: false,
    shows_what_was_purged: false,
    signals: Signals::WordPress,
    obeys_purge_fields: true,
    // Two visits differ where nothing is anybody's: `/embed/` has a secret of its own each time, Akismet prints a random number into each form
    // for comments, themes shuffle what they recommend. A proof would keep these pages out for good, and cost a second run of PHP for all others.
    two_visitor_proof: false,
    early_hints: EarlyHints::On,
    companions: &[],
    logins: LOGINS,
    responses: Responses {
        cache_fields: &[CacheField::CfEdgeCache, CacheField::LiteSpeed, CacheField::AccelExpires],
        hold_is_for_silence: true,
        // Half of `nonce_life`.
        nonce_tick: Some(Duration::from_hours(12)),
        mistaken_validators: MADE_BY_SCRIPTS,
    },
};

/// The media types of what WordPress makes. Its feeds have validators, and they are those of the newest post or comment alone, to the second: they
/// stay the same when a post goes, when it changes twice in one second, and when the site gets another name (`WP::send_headers`). Plugins that give
/// pages a date take that of the post, whatever else the page shows.
const MADE_BY_SCRIPTS: &[&str] = &[
    "text/html",
    "application/xhtml+xml",
    "application/rss+xml",
    "application/atom+xml",
    "application/rdf+xml",
    "application/xml",
    "text/xml",
    "application/json",
    "application/feed+json",
];

/// Pages say nothing to browsers, which would then keep a redirect for good and a feed for a tenth of its age. They are to ask each time: what is
/// purged here must not stay there. (Pages have no validators, so this costs no browser a confirmation that it could have had.)
const FOR_BROWSERS: Option<&str> = Some("no-cache");

const PAGES: Keeps = Keeps {
    statuses: Some(&[200, 301, 308, 404, 410]),
    hold_max: None,
    held_anyway: &[(404, NOT_FOUND_HOLD)],
    briefly: &[(Names { whole: &["s"], beginnings: &[] }, SEARCH_HOLD)],
    for_browsers: FOR_BROWSERS,
};

/// Parameters of trackers, and what changes nothing on a page.
const PARAMETERS: Parameters = Parameters::AllBut(&[
    generic::TRACKERS,
    // `replytocom` moves the form for comments to where a script puts it anyhow, for each comment under another address.
    Names { whole: &["replytocom", "ref", "age-verified", "ao_noptimize"], beginnings: &[] },
]);

/// A request with one of these shows or does something for one person.
const UNLOCKING: &[Rule] = &[
    Rule { name: "wordpress-preview", of: Names { whole: &[], beginnings: &["preview", "customize_", "wp_customize"] } },
    Rule { name: "wordpress-nonce", of: Names { whole: &["_wpnonce", "_ajax_nonce"], beginnings: &[] } },
    // The REST API shows a post behind a password to whoever adds the password.
    Rule { name: "wordpress-post-password", of: Names { whole: &["password"], beginnings: &[] } },
    // The link that a commenter is sent back to: it shows what is not approved yet.
    Rule { name: "wordpress-pending-comment", of: Names { whole: &["unapproved", "moderation-hash"], beginnings: &[] } },
    Rule { name: "wordpress-cron", of: Names { whole: &["doing_wp_cron"], beginnings: &[] } },
    // The API by a parameter, for sites without readable addresses; and a GET that is meant as another method.
    Rule { name: "wordpress-rest-route", of: Names { whole: &["rest_route", "_method"], beginnings: &[] } },
    Rule {
        name: "woocommerce-action",
        of: Names {
            whole: &[
                "wc-ajax",
                "wc-api",
                "add-to-cart",
                "remove_item",
                "undo_item",
                "apply_coupon",
                "order_again",
                "pay_for_order",
                "cancel_order",
                "download_file",
                "key",
            ],
            beginnings: &[],
        },
    },
    Rule { name: "edd-action", of: Names { whole: &["edd_action", "eddfile"], beginnings: &[] } },
    Rule {
        name: "builder-preview",
        of: Names {
            whole: &[
                "elementor-preview",
                "elementor_library",
                "et_fb",
                "et_pb_preview",
                "fl_builder",
                "vc_editable",
                "vc_action",
                "ct_builder",
                "ct_inner",
                "oxygen_iframe",
                "brizy-edit",
                "brizy-edit-iframe",
                "bricks",
                "tve",
                "siteorigin_panels_live_editor",
                "breakdance",
                "breakdance_iframe",
            ],
            beginnings: &[],
        },
    },
    // Links in letters, which confirm or end a subscription.
    Rule {
        name: "newsletter-link",
        of: Names { whole: &["na", "nk", "mailpoet_router", "mailpoet_page", "wysija-page"], beginnings: &[] },
    },
];

const FIELDS: &[Rule] = &[
    Rule { name: "authorization", of: Names { whole: &["authorization"], beginnings: &[] } },
    Rule { name: "wordpress-nonce-field", of: Names { whole: &["x-wp-nonce"], beginnings: &[] } },
    METHOD_OVERRIDE,
];

/// To a WordPress a GET with one of these is another method: it answers with nothing, or with what it says to OPTIONS.
const METHOD_OVERRIDE: Rule = Rule {
    name: "method-override",
    of: Names { whole: &["x-http-method-override", "x-http-method", "x-method-override"], beginnings: &[] },
};

const SIGNED_IN: CookieRule = CookieRule {
    name: "wordpress-user-cookie",
    of: Names { whole: &[], beginnings: &["wordpress_logged_in_", "wordpress_sec_"] },
    also: Some(("wordpress_(hash)", is_of_user)),
    counts: CookieValue::Any,
};

/// The cookies of those who are somebody. A cart that is empty is nobody's: WooCommerce leaves its cookies behind.
const KNOWN_VISITORS: &[CookieRule] = &[
    SIGNED_IN,
    CookieRule::any("wordpress-post-password", &[], &["wp-postpass_"]),
    CookieRule::any("wordpress-commenter", &[], &["comment_author_"]),
    CookieRule::any("wordpress-reset-password", &[], &["wp-resetpass-"]),
    CookieRule::any("no-cache-cookie", &["wordpress_no_cache", "NO_CACHE"], &[]),
    CookieRule::any("woocommerce-session", &[], &["wp_woocommerce_session_"]),
    CookieRule {
        name: "woocommerce-cart",
        of: Names { whole: &["woocommerce_items_in_cart"], beginnings: &[] },
        also: None,
        counts: CookieValue::NotZero,
    },
    CookieRule {
        name: "woocommerce-cart",
        of: Names { whole: &["woocommerce_cart_hash"], beginnings: &[] },
        also: None,
        counts: CookieValue::Filled,
    },
    CookieRule::any("shop-cookie", &[], &["edd_", "ecwid", "ec_", "bookly", "yith_wcwl_session_", "yith_wrvp_"]),
    CookieRule::any("jetpack-cookie", &[], &["jetpack"]),
    CookieRule::any("supercache-cookie", &[], &["wpsc_"]),
    CookieRule::any("community-cookie", &[], &["bp_", "bp-", "xf_", "invite-anyone"]),
    CookieRule {
        name: "sign-on-cookie",
        of: Names { whole: &[], beginnings: &["SimpleSAML"] },
        also: Some(("duo_*wordpress_auth_cookie", is_of_duo)),
        counts: CookieValue::Any,
    },
    // A script keeps something of its visitor. Where it does so for everybody, an operator can say so (`drop_set_cookies`).
    CookieRule::any(
        "php-session",
        &["PHPSESSID", "JSESSIONID"],
        &["SESS", "SSESS", "_wp_session", "charitable_session", "give_wp_session", "wp-give_session", "swpm_session", "mc_session_ids"],
    ),
];

/// Returns whether a cookie is the one by which WordPress knows who writes: its name ends with the hash of the site's address.
fn is_of_user(name: &str) -> bool {
    name.strip_prefix("wordpress_").is_some_and(|hash| hash.len() == 32 && hash.bytes().all(|b| b.is_ascii_hexdigit()))
}

fn is_of_duo(name: &str) -> bool {
    name.starts_with("duo_") && name.ends_with("wordpress_auth_cookie")
}

const fn pass(name: &'static str, whole: &'static [&'static str], beginnings: &'static [&'static str]) -> Area {
    Area { name, paths: Paths { whole, beginnings, ..Paths::NONE }, way: Way::Pass }
}

const fn also(is: fn(&str) -> bool) -> Paths {
    Paths { also: Some(is), ..Paths::NONE }
}

const FILES: Keeps = Keeps { briefly: &[], for_browsers: None, ..PAGES };

const AREAS: &[Area] = &[
    Area { name: "wordpress-admin", paths: also(is_admin), way: Way::Pass },
    pass(
        "wordpress-login",
        &["/wp-login.php", "/wp-signup.php", "/wp-activate.php"],
        &["/wp-login.php/", "/wp-signup.php/", "/wp-activate.php/"],
    ),
    pass("wordpress-write", &["/wp-comments-post.php", "/wp-trackback.php", "/xmlrpc.php", "/wp-cron.php"], &["/xmlrpc.php/"]),
    // Scripts that are asked by their own names do what they like.
    Area { name: "wordpress-script", paths: also(is_script), way: Way::Pass },
    // What is uploaded may be for members alone: some plugins let WordPress answer for it.
    Area {
        name: "wordpress-uploads",
        paths: Paths { beginnings: &["/wp-content/uploads/", "/wp-content/blogs.dir/"], ..Paths::NONE },
        way: Way::Lookup(Rules {
            passes: Passes { parameters: &[], fields: &[FIELDS[0]], cookies: KNOWN_VISITORS },
            parameters: PARAMETERS,
            keeps: FILES,
        }),
    },
    // Files of WordPress, its themes and plugins are everybody's; each version has an address of its own (`?ver=`).
    Area {
        name: "wordpress-assets",
        paths: Paths { beginnings: &["/wp-content/", "/wp-includes/"], ..Paths::NONE },
        way: Way::Lookup(Rules { passes: Passes::NONE, parameters: PARAMETERS, keeps: FILES }),
    },
    // Every browser asks for it, and WordPress starts to redirect to a picture.
    Area {
        name: "wordpress-icon",
        paths: Paths { whole: &["/favicon.ico"], ..Paths::NONE },
        way: Way::Lookup(Rules {
            passes: Passes { parameters: &[], fields: FIELDS, cookies: &[] },
            parameters: PARAMETERS,
            keeps: Keeps { statuses: Some(&[200, 301, 302, 404]), held_anyway: &[(302, REST_HOLD), (404, NOT_FOUND_HOLD)], ..PAGES },
        }),
    },
    Area { name: "wordpress-editor-api", paths: also(is_api_for_editors), way: Way::Pass },
    Area {
        name: "wordpress-api",
        paths: also(is_api_for_readers),
        way: Way::Lookup(Rules {
            passes: Passes { parameters: UNLOCKING, fields: API_FIELDS, cookies: KNOWN_VISITORS },
            parameters: PARAMETERS,
            keeps: Keeps {
                statuses: Some(&[200, 404]),
                hold_max: Some(REST_HOLD),
                held_anyway: &[(404, NOT_FOUND_HOLD)],
                briefly: &[(Names { whole: &["search"], beginnings: &[] }, SEARCH_HOLD)],
                for_browsers: FOR_BROWSERS,
            },
        }),
    },
    // What plugins answer there changes without a word: carts, counters, captchas.
    Area { name: "wordpress-plugin-api", paths: also(is_api), way: Way::Pass },
    pass("woocommerce-api", &["/wc-api"], &["/wc-api/", "/wc-auth/"]),
    // By the names that WooCommerce and Easy Digital Downloads give them. In other languages they have others, and say themselves that they are
    // nobody else's.
    pass("shop-page", &["/cart", "/checkout", "/my-account"], &["/cart/", "/checkout/", "/my-account/"]),
    Area {
        name: "wordpress-search",
        paths: Paths { beginnings: &["/search/"], ..Paths::NONE },
        way: Way::Lookup(Rules {
            passes: Passes { parameters: UNLOCKING, fields: FIELDS, cookies: KNOWN_VISITORS },
            parameters: PARAMETERS,
            keeps: Keeps { hold_max: Some(SEARCH_HOLD), ..PAGES },
        }),
    },
];

/// Returns the rule for scripts: they answer wherever WordPress is, whatever follows their name, and for each site of a network.
const fn script(endings: &'static [&'static str], also: fn(&str) -> bool) -> Paths {
    Paths { endings, also: Some(also), ..Paths::NONE }
}

fn has(path: &str, script: &str) -> bool {
    path.as_bytes().windows(script.len()).any(|part| part.eq_ignore_ascii_case(script.as_bytes()))
}

/// The methods of XML-RPC that anybody may call. A ping has WordPress fetch a page of somebody else.
const RPC_WITHOUT_PASSWORD: &[&str] = &[
    "pingback.ping",
    "pingback.extensions.getPingbacks",
    "demo.",
    "system.listMethods",
    "system.getCapabilities",
    "mt.getTrackbackPings",
    "mt.supportedMethods",
    "mt.supportedTextFilters",
];

const LOGINS: &[Login] = &[
    // It also mails links to whoever asks for a new password, which counts as well. The password of a post is looked at when the post is asked for.
    Login {
        paths: script(&["/wp-login.php"], |path| has(path, "/wp-login.php/")),
        password: PasswordIn::Form,
        wrong: WrongIf::NoCookie(&["wordpress_logged_in_", "wp-postpass_"]),
        envelope: None,
    },
    // `system.multicall` carries as many passwords as there is room for.
    Login {
        paths: script(&["/xmlrpc.php"], |path| has(path, "/xmlrpc.php/")),
        password: PasswordIn::Rpc(RPC_WITHOUT_PASSWORD),
        wrong: WrongIf::Fault(403),
        envelope: None,
    },
    // Application passwords, which the REST API takes at any address.
    Login {
        paths: Paths { beginnings: &["/"], ..Paths::NONE },
        password: PasswordIn::Authorization,
        wrong: WrongIf::Status(&[401]),
        envelope: Some("_envelope"),
    },
];
/// The fields by which a request to the API passes. An answer to a script of another site (`Origin`) is for that site: WordPress writes its name
/// into it.
const API_FIELDS: &[Rule] =
    &[FIELDS[0], FIELDS[1], METHOD_OVERRIDE, Rule { name: "wordpress-cross-origin", of: Names { whole: &["origin"], beginnings: &[] } }];

fn begins_with(path: &str, beginning: &str) -> bool {
    path.get(..beginning.len()).is_some_and(|start| start.eq_ignore_ascii_case(beginning))
}

/// Returns whether a path is that of a script other than the `index.php` that answers for all pages, with or without something behind it.
fn is_script(path: &str) -> bool {
    let ends =
        |segment: &[u8], name: &[u8]| segment.len() >= name.len() && segment[segment.len() - name.len()..].eq_ignore_ascii_case(name);
    let is_of_a_part = ["wp-content", "wp-includes"].iter().any(|part| path.split('/').any(|segment| segment.eq_ignore_ascii_case(part)));
    path.split('/').any(|segment| ends(segment.as_bytes(), b".php") && (is_of_a_part || !segment.eq_ignore_ascii_case("index.php")))
}

/// Returns whether a path is of the administration of any site of a network: `/site/wp-admin/`.
fn is_admin(path: &str) -> bool {
    path.split('/').take(3).any(|segment| segment.eq_ignore_ascii_case("wp-admin"))
}

/// Returns what follows `/wp-json`, wherever WordPress has it: at the top, behind `index.php`, or below a site of a network.
fn below_api(path: &str) -> Option<&str> {
    let mut rest = path;
    for _ in 0..3 {
        rest = rest.strip_prefix('/')?;
        let (segment, behind) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if segment.eq_ignore_ascii_case("wp-json") {
            return Some(behind);
        }
        rest = behind;
    }
    None
}

fn is_api(path: &str) -> bool {
    below_api(path).is_some()
}

/// Returns whether a path is of WordPress's own API, and what it answers is on the site's pages, too.
fn is_api_for_readers(path: &str) -> bool {
    below_api(path).is_some_and(|rest| matches!(rest, "" | "/") || ["/wp/v2/", "/oembed/1.0/"].iter().any(|start| begins_with(rest, start)))
}

/// Returns whether a path is of what the editor of blocks and of sites asks: it compares the answers with what it has just written.
fn is_api_for_editors(path: &str) -> bool {
    const FOR_EDITORS: [&str; 13] = [
        "/wp/v2/templates",
        "/wp/v2/template-parts",
        "/wp/v2/global-styles",
        "/wp/v2/navigation",
        "/wp/v2/blocks",
        "/wp/v2/block-",
        "/wp/v2/settings",
        "/wp/v2/sidebars",
        "/wp/v2/widget",
        "/wp/v2/plugins",
        "/wp/v2/themes",
        "/wp/v2/font-",
        "/wp/v2/users/me",
    ];
    below_api(path).is_some_and(|rest| FOR_EDITORS.iter().any(|start| begins_with(rest, start)))
}
