//! Says what would end a reason: a sentence for an operator, with the words of the configuration.
//!
//! A rule that has an empty remedy is right as it is: what it keeps from the cache is somebody's, or is asked for once. A rule that is not in the table is
//! one that was forgotten; a test compares the table with those of all kinds.

use policy::known_cookie;

use crate::CookiePart;

/// Says what is done about a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Remedy {
    /// Nothing is to be done: it is right as it is.
    Right,
    /// It is a failure, and this would end it.
    Failure(&'static str),
    /// This would end it.
    Is(&'static str),
    /// A cookie that had this part is to blame, and the sentence depends on which it is.
    Cookie(CookiePart),
}

use CookiePart::{Carried, Set};
use Remedy::{Cookie, Failure, Is, Right};

const DOWN: &str = "The origin cannot be reached: see that it runs, and that its address and port are those of the configuration.";
const SLOW: &str = "The origin took too long: look for slow queries in its log, or give it more workers. Set stale_if_error, so that readers get a stored page.";
const BROKEN: &str = "The origin answered with something that is not HTTP, or broke off: its log should say why.";
const CLIENTS: &str = "It is the client's: nothing is wrong at the origin.";
const TIERS: &str =
    "Members share only pages that Ghost calls public for their tier; set member_secret as doc/ghost.md says, so that it can.";
const PROVES: &str = "It is asked for twice before it is stored for the first time. If no page of this site is made for one reader, set two_visitor_proof = false.";
const BY_CLIENT: &str =
    "The client asked for a new response. Set honour_request_directives = false if clients should not get past the cache.";
const BY_THE_RFC: &str = "HTTP forbids to store it; only the origin can answer otherwise.";

/// The remedies by the names of rules, as `Cache-Status` and `seawall explain` have them.
const REMEDIES: &[(&str, Remedy)] = &[
    // These are not rules: nothing was stored, or not any more.
    ("cold", Is("Nothing was stored yet. `seawall warm` asks for pages before readers do; a longer hold keeps them longer.")),
    (
        "expired",
        Is("What was stored is too old, and the origin sent another. A longer hold, or stale_while_revalidate, spares readers the wait."),
    ),
    ("revalidated", Is("The origin confirmed what was stored. A longer hold, or stale_while_revalidate, spares readers the wait.")),
    (
        "purged",
        Is(
            "It was purged, so the origin was asked anew. If purges come too often, see under purges who makes them, and let them name pages.",
        ),
    ),
    ("in-doubt", Is("Another machine of the cluster may have purged it, so the origin was asked first: `seawall cluster` says why.")),
    ("damaged", Is("What was stored cannot be read: see the disk, and Seawall's log.")),
    ("vary", Is("A response is stored for other requests, as the origin sends Vary. Have it name only fields that change the page.")),
    (
        "no-cache",
        Is(
            "The origin says no-cache, so it is asked each time whether the page has changed. Set hold in [cache], or have it send a lifetime.",
        ),
    ),
    ("for cookies", Cookie(Carried)),
    (
        "for authorization",
        Is("The request carries a password or a token. If the response is the same for all, have the origin send Cache-Control: public."),
    ),
    ("client-left", Right),
    ("request", Is(BY_CLIENT)),
    ("request-no-cache", Is(BY_CLIENT)),
    ("request-max-age", Is(BY_CLIENT)),
    ("request-min-fresh", Is(BY_CLIENT)),
    // Requests that pass at any site.
    ("method", Right),
    ("upgrade", Right),
    ("content", Right),
    ("route", Is("This route is not cached, as its configuration says.")),
    ("direct", Right),
    (
        "session-cookie",
        Is(
            "It is named in drop_set_cookies, so whoever carries it is somebody. It ends with the session; if the cookie changes no page, name it in ignore_cookies.",
        ),
    ),
    (
        "authorization",
        Is("The request carries a password or a token. If the response is the same for all, have the origin send Cache-Control: public."),
    ),
    ("target", Is("The address cannot be understood: a broken link, or a probe.")),
    ("only-if-cached", Right),
    // WordPress.
    ("wordpress-admin", Right),
    ("wordpress-login", Right),
    (
        "wordpress-write",
        Is(
            "Comments, pingbacks and wp-cron ask WordPress itself. If xmlrpc.php is asked by strangers, switch XML-RPC off; Seawall starts wp-cron by itself.",
        ),
    ),
    (
        "wordpress-script",
        Is("A script is asked for by its own name and does what it likes. See which plugin it belongs to, and whether readers need it."),
    ),
    ("wordpress-editor-api", Right),
    (
        "wordpress-plugin-api",
        Is("A plugin asks WordPress from each page. See which one it is by its path, and switch off what readers do not need."),
    ),
    ("woocommerce-api", Right),
    ("shop-page", Right),
    ("wordpress-preview", Right),
    (
        "wordpress-nonce",
        Is("Links with a nonce are made for one reader. Let the plugin make links without one, or with a form that posts."),
    ),
    ("wordpress-pending-comment", Right),
    ("wordpress-cron", Is("Seawall starts wp-cron by itself; set DISABLE_WP_CRON to true in wp-config.php.")),
    ("wordpress-rest-route", Is("Ask for the API by its path (/wp-json/) instead of ?rest_route=: choose permalinks other than plain.")),
    (
        "woocommerce-action",
        Is("Links such as ?add-to-cart= change a cart. Keep robots from them (robots.txt, nofollow), or use the buttons that post."),
    ),
    ("edd-action", Right),
    ("builder-preview", Right),
    ("newsletter-link", Right),
    ("wordpress-nonce-field", Right),
    ("method-override", Right),
    (
        "wordpress-cross-origin",
        Is("A page of another site asks the API. If it is yours, let it ask for what is public without Origin, or through your server."),
    ),
    ("wordpress-user-cookie", Right),
    ("wordpress-post-password", Right),
    (
        "wordpress-commenter",
        Is("Whoever has commented is somebody for a year. Switch off the cookie for commenters in Settings, Discussion."),
    ),
    ("wordpress-reset-password", Right),
    ("no-cache-cookie", Is("A plugin sets a cookie that says \"no cache\". Find which one, and whether it has to for everybody.")),
    ("woocommerce-session", Right),
    ("woocommerce-cart", Right),
    ("shop-cookie", Is("A shop plugin gives its cookie to more than those who buy. See its settings for when it begins a session.")),
    ("jetpack-cookie", Right),
    ("supercache-cookie", Is("WP Super Cache sets it. Switch that plugin off: Seawall does its work.")),
    ("community-cookie", Right),
    ("sign-on-cookie", Right),
    ("php-session", Cookie(Carried)),
    // Ghost.
    ("ghost-admin", Right),
    ("ghost-members", Right),
    ("ghost-preview", Right),
    ("ghost-unsubscribe", Right),
    ("ghost-private", Right),
    ("ghost-gift", Right),
    ("ghost-link", Right),
    ("ghost-webmentions", Right),
    ("ghost-companions", Right),
    ("ghost-private-feed", Right),
    ("ghost-token", Right),
    ("ghost-member-key", Right),
    ("ghost-staff", Right),
    ("ghost-sign-on", Right),
    ("ghost-action", Right),
    ("ghost-staff-cookie", Right),
    ("ghost-private-cookie", Is("The site is private: each reader has the cookie of its password. Make it public, or leave it so.")),
    ("ghost-member-cookie", Is("A member is signed in. With member_secret, members of one tier share pages.")),
    // The blog.
    ("blog-preview", Right),
    ("blog-reload", Right),
    // Responses that are not stored.
    ("set-cookie", Cookie(Set)),
    ("cookie", Cookie(Carried)),
    (
        "no-store",
        Is(
            "The origin says no-store. Have it send that only for pages that are somebody's; its caching or security plugin may add it to all.",
        ),
    ),
    ("private", Is("The origin says private. Have it send that only for pages that are somebody's.")),
    ("private-fields", Is("The origin calls fields of the response private. Have it name only those that are one reader's.")),
    ("unfresh", Is("The response has no lifetime. Set hold in [cache] of seawall.toml, or have the origin send Cache-Control: s-maxage.")),
    ("vary-star", Is("The origin sends Vary: *. Have it name the fields that change the page.")),
    ("status", Is("Responses with this status are not stored here. If it is an error, mend what answers so.")),
    ("must-understand", Is(BY_THE_RFC)),
    ("partial", Is(BY_THE_RFC)),
    ("not-modified", Right),
    ("ranged", Right),
    ("of-request", Right),
    ("request-no-store", Is("The client says no-store. Set honour_request_directives = false if clients should not get past the cache.")),
    (
        "redirect-loop",
        Is(
            "The page redirects to itself: its address is not the one that readers use, or the origin does not know that they came over HTTPS.",
        ),
    ),
    ("just-purged", Right),
    (
        "too-large",
        Is("It is larger than object_max, or a page of more than 2 MiB that cannot be proven. Raise object_max if there is memory."),
    ),
    ("x-litespeed-vary", Is("A plugin for LiteSpeed asks for variants by a cookie. Switch them off in its settings.")),
    ("cf-edge-cache", Is("A plugin for Cloudflare forbids it for this page. See its settings.")),
    ("x-litespeed-cache-control", Is("A plugin for LiteSpeed forbids it for this page. See its settings.")),
    ("x-accel-expires", Is("The origin sends X-Accel-Expires: 0. Have it send that only for pages that are somebody's.")),
    ("two-visitor-proof", Is(PROVES)),
    (
        "two-visitors-differ",
        Is(
            "Two visitors were given different pages. `seawall explain` shows the difference; if it does not matter, set two_visitor_proof = false.",
        ),
    ),
    // Members' pages.
    ("member-tier", Is("Ghost made it for members, and the site is not known to be a Ghost: set kind = \"ghost\".")),
    ("member-cookie", Is("The request has a cookie of a Ghost, and the site is not known to be one: set kind = \"ghost\".")),
    ("tier-proof", Right),
    (
        "tier-personal",
        Is(
            "Two members of the tier got different pages, or the page names its reader. A theme that shows the reader's name in a script lets members share.",
        ),
    ),
    ("tier-differs", Right),
    ("tier-status", Is(TIERS)),
    ("tier-not-public", Is(TIERS)),
    ("tier-coded", Is("Ghost compresses members' pages. Switch that off (compress: false), so that two can be compared.")),
    ("tier-vary", Is(TIERS)),
    ("tier-fields", Is(TIERS)),
    // Failures of the origin, by the names of RFC 9209.
    ("dns_error", Failure("The name of the origin has no address: see the configuration, and the machine's resolver.")),
    ("dns_timeout", Failure("The machine's resolver does not answer.")),
    ("connection_refused", Failure(DOWN)),
    ("connection_timeout", Failure(DOWN)),
    ("connection_terminated", Failure(BROKEN)),
    ("connection_read_timeout", Failure(SLOW)),
    ("connection_write_timeout", Failure(SLOW)),
    (
        "connection_limit_reached",
        Failure(
            "More requests wait for the origin than it can answer. Find what misses most, or raise concurrency in [origin] if the origin can bear it.",
        ),
    ),
    ("destination_unavailable", Failure(DOWN)),
    ("destination_ip_unroutable", Failure(DOWN)),
    ("tls_protocol_error", Failure("The origin's certificate or TLS is not accepted: see ca_file in [origin].")),
    ("tls_certificate_error", Failure("The origin's certificate is not accepted: see ca_file in [origin].")),
    ("http_response_timeout", Failure(SLOW)),
    ("http_protocol_error", Failure(BROKEN)),
    ("http_response_incomplete", Failure(BROKEN)),
    ("http_response_header_section_size", Failure("The head of the response is larger than is accepted: most often too many cookies.")),
    ("http_response_status", Failure("The origin answered with an error of its own: its log should say why.")),
    ("http_request_error", Failure(CLIENTS)),
    ("http_request_timeout", Failure(CLIENTS)),
    ("http_request_too_large", Failure("A client sent more than is accepted: raise body_bytes in [limits] if it is wanted.")),
    ("proxy_internal_error", Failure("It is a fault of Seawall: please report it with the lines of its log.")),
    ("late", Failure(SLOW)),
    ("busy", Failure("Seawall has too much to do. Find what misses most.")),
    ("no-such-site", Failure("No site has this host: add it to hosts if it is yours.")),
    // Requests that were answered before the cache was asked.
    ("challenge", Right),
    ("health", Right),
    ("too-many-requests", Right),
    ("twin host", Right),
    ("max-forwards", Right),
    ("schedule", Right),
    ("https", Right),
    ("password", Right),
    ("purge", Right),
    ("webhook", Right),
    ("too-many-logins", Right),
    ("too-many-logins-at-once", Right),
];

fn find(rule: &str) -> Option<Remedy> {
    REMEDIES.iter().find(|(name, _)| *name == rule).map(|(_, remedy)| *remedy)
}

/// Returns whether a rule is the name of a failure: then it belongs among the errors, too.
pub(crate) fn is_failure(rule: &str) -> bool {
    matches!(find(rule), Some(Failure(_)))
}

/// Returns what would end a reason, in a sentence; empty if nothing should.
pub(crate) fn remedy(rule: &str, detail: &str) -> String {
    match find(rule) {
        None | Some(Right) => String::new(),
        Some(Is(text) | Failure(text)) => text.to_owned(),
        Some(Cookie(part)) => {
            let text = cookie(detail, part);
            if text.is_empty() && detail.is_empty() {
                "Requests carry a cookie that may be somebody's. If it changes no page, name it in ignore_cookies.".to_owned()
            } else {
                text
            }
        }
    }
}

/// Returns what to do about a cookie, in a sentence; empty if it is right as it is.
pub(crate) fn cookie(name: &str, part: CookiePart) -> String {
    if name.is_empty() {
        return String::new();
    }
    match known_cookie(name) {
        Some(known) if known.is_somebodys => String::new(),
        Some(known) => format!(
            "It is known for {}. If readers of pages do not need it, switch off there what sets it, or set drop_set_cookies = [\"{name}\"].",
            known.software
        ),
        None if part == Set => {
            format!("Find which plugin or script sets {name}, and switch it off for readers, or set drop_set_cookies = [\"{name}\"].")
        }
        None => format!("If {name} changes no page, set ignore_cookies = [\"{name}\"]."),
    }
}

/// Returns the software that a cookie is known for; empty if none is.
pub(crate) fn known_for(name: &str) -> &'static str {
    known_cookie(name).map_or("", |known| known.software)
}

#[cfg(test)]
mod tests {
    use policy::{Kind, Rules, Way};

    use super::*;

    /// Returns the names of all rules by which requests pass at a site of some kind.
    fn passing() -> Vec<&'static str> {
        let of = |rules: &'static Rules| {
            let passes = &rules.passes;
            let named = passes.parameters.iter().chain(passes.fields).map(|rule| rule.name);
            named.chain(passes.cookies.iter().map(|rule| rule.name)).collect::<Vec<_>>()
        };
        let kinds = Kind::ALL.iter().map(|kind| kind.preset());
        let mut names: Vec<&str> = kinds
            .flat_map(|preset| {
                let areas = preset.areas.iter().flat_map(|area| match &area.way {
                    Way::Pass => vec![area.name],
                    Way::Lookup(rules) => of(rules),
                });
                of(&preset.rules).into_iter().chain(areas).collect::<Vec<_>>()
            })
            .collect();
        names.extend(["method", "upgrade", "content", "route", "direct", "session-cookie"]);
        names
    }

    #[test]
    fn every_rule_by_which_a_request_passes_has_a_word() {
        let forgotten: Vec<_> = passing().into_iter().filter(|name| find(name).is_none()).collect();
        assert!(forgotten.is_empty(), "{forgotten:?}");
    }

    #[test]
    fn every_rule_by_which_a_response_is_not_stored_has_a_word() {
        // As `doc/x-cache.md` has them, with those that `policy` says.
        let named = "unfresh no-store private private-fields set-cookie cookie authorization vary-star status must-understand partial ranged direct too-large \
                     two-visitor-proof two-visitors-differ redirect-loop just-purged tier-proof member-tier member-cookie tier-personal tier-differs \
                     tier-status tier-not-public tier-coded tier-vary tier-fields of-request request-no-store not-modified method x-litespeed-vary \
                     cf-edge-cache x-litespeed-cache-control x-accel-expires";
        let forgotten: Vec<_> = named.split_whitespace().filter(|name| find(name).is_none()).collect();
        assert!(forgotten.is_empty(), "{forgotten:?}");
    }

    /// The names are those that a lookup gives when it finds nothing it may use (`semantics::reuse::Stale`, and where the pipeline looks
    /// for variants).
    #[test]
    fn every_reason_why_nothing_that_is_stored_will_do_has_a_word() {
        let named = [
            "cold",
            "vary",
            "for cookies",
            "for authorization",
            "damaged",
            "expired",
            "purged",
            "in-doubt",
            "no-cache",
            "request-no-cache",
        ];
        for name in named.into_iter().chain(["request-max-age", "request-min-fresh", "revalidated", "two-visitor-proof"]) {
            assert!(!remedy(name, "").is_empty(), "{name}");
        }
    }

    #[test]
    fn no_rule_has_two_words_and_each_fits_its_place() {
        for (at, (name, remedy)) in REMEDIES.iter().enumerate() {
            assert!(!REMEDIES[at + 1..].iter().any(|(other, _)| other == name), "{name}");
            assert!(name.len() <= crate::names::NAME_BYTES_MAX, "{name}");
            if let Is(text) | Failure(text) = remedy {
                assert!(text.ends_with('.') && text.len() < 200, "{name}: {text}");
            }
        }
    }

    #[test]
    fn a_cookie_has_the_software_it_is_known_for_and_a_word() {
        assert_eq!(known_for("PHPSESSID"), "PHP sessions");
        assert_eq!(
            remedy("set-cookie", "PHPSESSID"),
            "It is known for PHP sessions. If readers of pages do not need it, switch off there what sets it, or set drop_set_cookies = [\"PHPSESSID\"]."
        );
        assert_eq!(remedy("wordpress-user-cookie", "wordpress_logged_in_*"), "", "whoever is signed in is somebody");
        assert_eq!(cookie("wp_woocommerce_session_*", Set), "");
        assert_eq!(remedy("cookie", "unknown"), "If unknown changes no page, set ignore_cookies = [\"unknown\"].");
        assert!(remedy("cookie", "").contains("ignore_cookies"));
        assert_eq!(remedy("no such rule", ""), "");
    }
}
