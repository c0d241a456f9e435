//! The rules for a WordPress: which requests ask the cache, what of them is in the key, and what is kept of the answers.
//!
//! The fields are those that WordPress 6.8.7 sends.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use policy::{Carries, KeepFacts, Key, Kind, NotKept, Policy, Settings, Verdict};
use semantics::{
    Scheme, Timestamp,
    cache_control::RequestDirectives,
    request::{RequestFields, RequestHead},
};

const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

/// The word of WordPress on what is somebody's, of a "not found" and of a post with a password (`wp_get_nocache_headers`).
const NOBODY_ELSES: &[(&str, &str)] =
    &[("cache-control", "no-cache, must-revalidate, max-age=0, no-store, private"), ("expires", "Wed, 11 Jan 1984 05:00:00 GMT")];

/// The fields that PHP sends when a script begins a session.
const SESSION: &[(&str, &str)] = &[
    ("cache-control", "no-store, no-cache, must-revalidate"),
    ("expires", "Thu, 19 Nov 1981 08:52:00 GMT"),
    ("pragma", "no-cache"),
    ("set-cookie", "PHPSESSID=abcdef; path=/"),
];

fn fields(fields: &[(&'static str, &str)]) -> HeaderMap {
    fields.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).expect("a value"))).collect()
}

fn at(base: &str) -> Policy {
    Policy::new(Settings { base_path: base.to_owned(), ..Settings::preset(Kind::WordPress) })
}

/// Returns the name of the rule by which a request passes, or the target in its key.
fn judged(policy: &Policy, target: &str, said: &[(&'static str, &str)]) -> Result<String, &'static str> {
    let map = fields(said);
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let fields = RequestFields::from_map(&map);
    let head = RequestHead { method: &Method::GET, scheme: Scheme::Https, authority: "blog.example", path, query, fields: &fields };
    let mut key = Vec::new();
    match policy.verdict(1, &head, &mut key) {
        Verdict::Lookup(carries) => {
            assert!(!carries.cookie, "a shared answer rests on no cookie: {target} {said:?}");
            Ok(Key::read(&key).expect("a key").target.to_owned())
        }
        Verdict::Pass(rule) => Err(rule.name()),
        verdict @ (Verdict::Purge | Verdict::Malformed) => panic!("{target}: {verdict:?}"),
    }
}

#[test]
fn pages_are_the_same_for_all_who_are_nobody_in_particular() {
    let wordpress = at("");
    let nobody = "_ga=1; CookieConsent=yes; wordpress_test_cookie=WP%20Cookie%20check; wp-settings-1=editor; wp-settings-time-1=2; \
                  _lscache_vary=a; wfvt_1=b; wordfence_verifiedHuman=c; wordpress_apbct_antibot=d; wp-wpml_current_language=de; theme=dark";
    for (target, key) in [
        ("/", "/"),
        ("/2025/06/rye-bread/", "/2025/06/rye-bread/"),
        ("/index.php/2025/06/rye-bread/", "/index.php/2025/06/rye-bread/"),
        ("/page/2/", "/page/2/"),
        ("/feed/", "/feed/"),
        ("/comments/feed/", "/comments/feed/"),
        ("/2025/06/rye-bread/feed/", "/2025/06/rye-bread/feed/"),
        ("/2025/06/rye-bread/embed/", "/2025/06/rye-bread/embed/"),
        ("/wp-sitemap.xml", "/wp-sitemap.xml"),
        ("/wp-sitemap-posts-post-1.xml", "/wp-sitemap-posts-post-1.xml"),
        ("/robots.txt", "/robots.txt"),
        ("/favicon.ico", "/favicon.ico"),
        ("/?s=bread", "/?s=bread"),
        ("/?p=28", "/?p=28"),
        ("/?feed=rss2", "/?feed=rss2"),
        // Names that begin like a rule.
        ("/wp-admins-of-the-world/", "/wp-admins-of-the-world/"),
        ("/carts-and-horses/", "/carts-and-horses/"),
        ("/wp-json-explained/", "/wp-json-explained/"),
        ("/php-and-me/", "/php-and-me/"),
    ] {
        assert_eq!(judged(&wordpress, target, &[]).as_deref(), Ok(key), "{target}");
        assert_eq!(judged(&wordpress, target, &[("cookie", nobody)]).as_deref(), Ok(key), "{target}");
    }
}

#[test]
fn who_is_somebody_passes() {
    let wordpress = at("");
    let hash = "0123456789abcdef0123456789abcdef";
    for (cookie, rule) in [
        (format!("wordpress_logged_in_{hash}=mira%7C1"), "wordpress-user-cookie"),
        (format!("wordpress_sec_{hash}=mira%7C1"), "wordpress-user-cookie"),
        (format!("wordpress_{hash}=mira%7C1"), "wordpress-user-cookie"),
        (format!("_ga=1; wp-postpass_{hash}=a"), "wordpress-post-password"),
        (format!("comment_author_{hash}=Ada"), "wordpress-commenter"),
        (format!("comment_author_email_{hash}=a%40b"), "wordpress-commenter"),
        (format!("wp-resetpass-{hash}=a"), "wordpress-reset-password"),
        ("wordpress_no_cache=1".to_owned(), "no-cache-cookie"),
        ("NO_CACHE=1".to_owned(), "no-cache-cookie"),
        (format!("wp_woocommerce_session_{hash}=1"), "woocommerce-session"),
        ("woocommerce_items_in_cart=1".to_owned(), "woocommerce-cart"),
        ("woocommerce_items_in_cart=2".to_owned(), "woocommerce-cart"),
        ("woocommerce_items_in_cart=0; woocommerce_cart_hash=abc".to_owned(), "woocommerce-cart"),
        ("edd_wp_session=1".to_owned(), "shop-cookie"),
        ("edd_items_in_cart=1".to_owned(), "shop-cookie"),
        ("yith_wcwl_session_1=a".to_owned(), "shop-cookie"),
        ("ecwid_session=a".to_owned(), "shop-cookie"),
        ("bookly=1".to_owned(), "shop-cookie"),
        ("jetpackState=a".to_owned(), "jetpack-cookie"),
        ("wpsc_visitor=1".to_owned(), "supercache-cookie"),
        ("bp-message=a".to_owned(), "community-cookie"),
        ("xf_user=1".to_owned(), "community-cookie"),
        ("SimpleSAMLSessionID=1".to_owned(), "sign-on-cookie"),
        ("duo_secure_wordpress_auth_cookie=1".to_owned(), "sign-on-cookie"),
        ("PHPSESSID=1".to_owned(), "php-session"),
        ("SESSabc=1".to_owned(), "php-session"),
        ("SSESSabc=1".to_owned(), "php-session"),
        ("swpm_session=1".to_owned(), "php-session"),
    ] {
        for target in
            ["/", "/2025/06/rye-bread/", "/?s=bread", "/search/bread/", "/feed/", "/wp-json/wp/v2/posts", "/wp-content/uploads/a.pdf"]
        {
            assert_eq!(judged(&wordpress, target, &[("cookie", &cookie)]), Err(rule), "{target} {cookie}");
        }
        // What is everybody's is everybody's.
        for target in ["/wp-includes/css/style.min.css?ver=6.8.7", "/wp-content/themes/a/style.css?ver=1"] {
            assert_eq!(judged(&wordpress, target, &[("cookie", &cookie)]).as_deref(), Ok(target), "{cookie}");
        }
    }
    for field in ["x-wp-nonce", "authorization", "x-http-method-override", "x-http-method", "x-method-override"] {
        let rule = match field {
            "x-wp-nonce" => "wordpress-nonce-field",
            "authorization" => "authorization",
            _ => "method-override",
        };
        for target in ["/", "/feed/", "/wp-json/wp/v2/posts", "/search/a"] {
            assert_eq!(judged(&wordpress, target, &[(field, "x")]), Err(rule), "{target} {field}");
        }
    }
}

/// woocommerce#30329: an empty cart leaves its cookies behind.
#[test]
fn an_empty_cart_is_nobodys() {
    let wordpress = at("");
    for cookie in [
        "woocommerce_items_in_cart=0",
        "woocommerce_items_in_cart=",
        "woocommerce_cart_hash=",
        "woocommerce_items_in_cart=0; woocommerce_cart_hash=",
    ] {
        assert_eq!(judged(&wordpress, "/shop/", &[("cookie", cookie)]).as_deref(), Ok("/shop/"), "{cookie}");
    }
}

#[test]
fn paths_that_are_somebodys_pass_in_every_spelling() {
    let wordpress = at("");
    for (target, rule) in [
        ("/wp-admin/", "wordpress-admin"),
        ("/wp-admin", "wordpress-admin"),
        ("/WP-Admin/admin-ajax.php?action=x", "wordpress-admin"),
        ("//wp-admin//admin-ajax.php", "wordpress-admin"),
        ("/x/../wp-admin/", "wordpress-admin"),
        ("/%77p-admin/", "wordpress-admin"),
        // A network of sites.
        ("/second/wp-admin/", "wordpress-admin"),
        ("/wp-login.php", "wordpress-login"),
        ("/wp-login.php?action=logout", "wordpress-login"),
        ("/WP-LOGIN.PHP", "wordpress-login"),
        ("//wp-login.php/x", "wordpress-login"),
        ("/wp-signup.php", "wordpress-login"),
        ("/second/wp-login.php", "wordpress-script"),
        ("/wp-cron.php", "wordpress-write"),
        ("/wp-cron.php?doing_wp_cron=1", "wordpress-write"),
        ("/xmlrpc.php", "wordpress-write"),
        ("/wp-comments-post.php", "wordpress-write"),
        ("/wp-trackback.php", "wordpress-write"),
        ("/wp-content/plugins/a/ajax.php", "wordpress-script"),
        ("/wp-content/plugins/a/index.php", "wordpress-script"),
        ("/wp-content/plugins/a/ajax.PHP/b.css", "wordpress-script"),
        ("/wp-links-opml.php", "wordpress-script"),
        ("/wp-json/wc/store/v1/cart", "wordpress-plugin-api"),
        ("/wp-json/contact-form-7/v1/contact-forms/5/refill", "wordpress-plugin-api"),
        ("/wp-json/elementor/v1/globals", "wordpress-plugin-api"),
        ("/index.php/wp-json/wc/store/v1/cart", "wordpress-plugin-api"),
        ("/second/wp-json/wc/store/v1/cart", "wordpress-plugin-api"),
        ("/wp-json/wp/v2/templates?context=edit", "wordpress-editor-api"),
        ("/WP-JSON/wp/v2/global-styles/5", "wordpress-editor-api"),
        ("/wp-json/wp-block-editor/v1/settings", "wordpress-plugin-api"),
        ("/wc-api/WC_Gateway_Paypal/", "woocommerce-api"),
        ("/cart/", "shop-page"),
        ("/checkout/order-received/12/?key=wc_order_1", "shop-page"),
        ("/my-account/orders/", "shop-page"),
    ] {
        assert_eq!(judged(&wordpress, target, &[]), Err(rule), "{target}");
    }
    // Two slashes are one to WordPress.
    assert_eq!(judged(&wordpress, "//2025//06/", &[]).as_deref(), Ok("//2025//06/"));
}

#[test]
fn what_unlocks_something_passes() {
    let wordpress = at("");
    for (query, rule) in [
        ("p=89&preview=true", "wordpress-preview"),
        ("preview_id=1&preview_nonce=2", "wordpress-preview"),
        ("pre%76iew=true", "wordpress-preview"),
        ("preview[]=1", "wordpress-preview"),
        ("customize_changeset_uuid=1", "wordpress-preview"),
        ("customize.theme=1", "wordpress-preview"),
        ("wp_customize=on", "wordpress-preview"),
        ("_wpnonce=1234567890", "wordpress-nonce"),
        ("password=opensesame", "wordpress-post-password"),
        ("unapproved=7&moderation-hash=abc", "wordpress-pending-comment"),
        ("moderation-hash=abc", "wordpress-pending-comment"),
        ("doing_wp_cron=1.2", "wordpress-cron"),
        ("rest_route=/wp/v2/posts", "wordpress-rest-route"),
        ("rest%5Froute=/wp/v2/posts", "wordpress-rest-route"),
        ("_method=DELETE", "wordpress-rest-route"),
        ("wc-ajax=get_refreshed_fragments", "woocommerce-action"),
        ("add-to-cart=12", "woocommerce-action"),
        ("remove_item=abc", "woocommerce-action"),
        ("key=wc_order_1", "woocommerce-action"),
        ("edd_action=add_to_cart", "edd-action"),
        ("elementor-preview=1", "builder-preview"),
        ("et_fb=1", "builder-preview"),
        ("fl_builder", "builder-preview"),
        ("vc_editable=true", "builder-preview"),
        ("na=c&nk=1-2", "newsletter-link"),
    ] {
        assert_eq!(judged(&wordpress, &format!("/shop/?fbclid=1&{query}"), &[]), Err(rule), "{query}");
    }
    for query in ["_method=DELETE", "_wpnonce=1"] {
        assert!(judged(&wordpress, &format!("/wp-json/wp/v2/posts/1?{query}"), &[]).is_err(), "{query}");
    }
}

/// woocommerce, pfefferle/wordpress-activitypub and others: what nobody has listed may change a page.
#[test]
fn trackers_cost_nothing_and_what_may_change_a_page_is_in_the_key() {
    let wordpress = at("");
    for name in [
        "fbclid",
        "gclid",
        "utm_source",
        "utm_expid",
        "mc_cid",
        "_ga",
        "_gl",
        "msclkid",
        "mtm_campaign",
        "replytocom",
        "ref",
        "cn-reloaded",
        "age-verified",
    ] {
        assert_eq!(judged(&wordpress, &format!("/a/?{name}=1"), &[]).as_deref(), Ok("/a/"), "{name}");
    }
    for query in ["orderby=price", "s=bread", "paged=2", "currency=EUR", "ver=6.8.7"] {
        assert_eq!(judged(&wordpress, &format!("/a/?utm_source=x&{query}"), &[]).as_deref(), Ok(&*format!("/a/?{query}")), "{query}");
    }
}

#[test]
fn the_api_is_asked_once_for_all_who_are_not_signed_in() {
    let wordpress = at("");
    for target in [
        "/wp-json",
        "/wp-json/",
        "/wp-json/wp/v2/posts?per_page=5",
        "/wp-json/wp/v2/users/1",
        "/index.php/wp-json/wp/v2/posts",
        "/second/wp-json/wp/v2/posts",
        "/wp-json/oembed/1.0/embed?url=https%3A%2F%2Fblog.example%2Fa%2F",
    ] {
        assert_eq!(judged(&wordpress, target, &[]).as_deref(), Ok(target));
        assert_eq!(judged(&wordpress, target, &[("x-wp-nonce", "1")]), Err("wordpress-nonce-field"), "{target}");
        // WordPress answers a script of another site with that site's name.
        assert_eq!(judged(&wordpress, target, &[("origin", "https://elsewhere.example")]), Err("wordpress-cross-origin"), "{target}");
    }
}

#[test]
fn a_wordpress_below_a_path_has_the_same_rules_there() {
    let wordpress = at("/blog");
    assert_eq!(judged(&wordpress, "/blog/wp-admin/", &[]), Err("wordpress-admin"));
    assert_eq!(judged(&wordpress, "/Blog/WP-login.php", &[]), Err("wordpress-login"));
    assert_eq!(judged(&wordpress, "/blog//wp-cron.php", &[]), Err("wordpress-write"));
    assert_eq!(judged(&wordpress, "/blog/wp-json/wp/v2/posts", &[]).as_deref(), Ok("/blog/wp-json/wp/v2/posts"));
    assert_eq!(judged(&wordpress, "/blog/wp-json/wc/store/v1/cart", &[]), Err("wordpress-plugin-api"));
    assert_eq!(
        judged(&wordpress, "/blog/wp-includes/a.js?ver=1", &[("cookie", "PHPSESSID=1")]).as_deref(),
        Ok("/blog/wp-includes/a.js?ver=1")
    );
    assert_eq!(judged(&wordpress, "/blog/cart/", &[]), Err("shop-page"));
}

/// Returns for how many seconds an answer is kept, and for how many more it is shown while it is refreshed; or the rule by which it is not kept.
fn kept_by(settings: Settings, target: &str, status: u16, said: &[(&'static str, &str)]) -> Result<(u64, u64), &'static str> {
    let headers = fields(said);
    let seen = KeepFacts {
        method: &Method::GET,
        authority: "blog.example",
        target,
        carries: Carries::default(),
        request: &RequestDirectives::NONE,
        status: StatusCode::from_u16(status).expect("a status"),
        headers: &headers,
        request_time: NOW,
        response_time: NOW,
        just_purged: false,
    };
    match Policy::new(settings).keep(&seen) {
        Ok(kept) => {
            assert_eq!(kept.freshness.stale_if_error, Some(Duration::from_hours(7 * 24)), "{target}");
            Ok((kept.freshness.lifetime.as_secs(), kept.freshness.stale_while_revalidate.as_secs()))
        }
        Err(why) => Err(NotKept::name(why)),
    }
}

fn kept(target: &str, status: u16, said: &[(&'static str, &str)]) -> Result<u64, &'static str> {
    kept_by(Settings::preset(Kind::WordPress), target, status, said).map(|(lifetime, _)| lifetime)
}

#[test]
fn a_page_that_says_nothing_is_held() {
    for target in ["/", "/2025/06/rye-bread/", "/robots.txt", "/wp-sitemap.xml", "/search-engines/"] {
        assert_eq!(kept(target, 200, &[]), Ok(3_600), "{target}");
    }
    // A feed was last changed a year ago: a tenth of that is nobody's word.
    assert_eq!(kept("/feed/", 200, &[("last-modified", "Sun, 29 Jun 2025 16:30:00 GMT"), ("etag", "\"a\"")]), Ok(3_600));
    assert_eq!(kept("/2025/06/rye-bread", 301, &[("location", "/2025/06/rye-bread/")]), Ok(3_600));
    // What nginx says of a file is meant for all.
    assert_eq!(kept("/wp-content/themes/a.css?ver=1", 200, &[("cache-control", "max-age=31536000")]), Ok(31_536_000));
    assert_eq!(kept("/", 200, &[("cache-control", "max-age=600")]), Ok(3_600));
}

#[test]
fn a_lifetime_for_caches_counts_as_it_stands() {
    for (field, value, lifetime) in [
        ("seawall-cache-control", "max-age=86400", 86_400),
        ("seawall-cache-control", "max-age=60", 60),
        ("x-litespeed-cache-control", "public,max-age=60", 60),
        ("x-litespeed-cache-control", "public,max-age=604800", 604_800),
        ("x-accel-expires", "60", 60),
        ("cdn-cache-control", "max-age=60", 60),
        ("cf-edge-cache", "cache,platform=wordpress", 3_600),
    ] {
        assert_eq!(kept("/", 200, &[(field, value)]), Ok(lifetime), "{field}: {value}");
    }
    // A file in a folder is looked at again after a second: it is not shown for a day after that.
    let both = |lifetime| kept_by(Settings::preset(Kind::WordPress), "/wp-includes/a.css", 200, &[("seawall-cache-control", lifetime)]);
    assert_eq!(both("max-age=1"), Ok((1, 1)));
    assert_eq!(both("max-age=604800"), Ok((604_800, 86_400)));
    // What an operator sets is the time for pages that say nothing, too.
    let settings = Settings { hold: Some(Duration::from_mins(5)), ..Settings::preset(Kind::WordPress) };
    assert_eq!(kept_by(settings, "/", 200, &[("x-accel-expires", "60")]).map(|(lifetime, _)| lifetime), Ok(60));
}

#[test]
fn what_is_for_one_reader_or_for_the_moment_is_not_kept() {
    assert_eq!(kept("/2025/02/metering-snow/", 200, NOBODY_ELSES), Err("no-store"));
    assert_eq!(kept("/", 200, SESSION), Err("set-cookie"));
    assert_eq!(kept("/", 200, &[("set-cookie", "a=1")]), Err("set-cookie"));
    for (field, value, rule) in [
        ("seawall-cache-control", "no-store", "no-store"),
        ("cf-edge-cache", "no-cache", "cf-edge-cache"),
        ("x-litespeed-cache-control", "no-cache", "x-litespeed-cache-control"),
        ("x-litespeed-cache-control", "private,max-age=1800", "x-litespeed-cache-control"),
        ("x-litespeed-vary", "cookie=currency", "x-litespeed-vary"),
        ("x-accel-expires", "0", "x-accel-expires"),
        ("x-accel-expires", "off", "x-accel-expires"),
    ] {
        for status in [200, 404] {
            assert_eq!(kept("/", status, &[(field, value)]), Err(rule), "{status} {field}: {value}");
        }
    }
    for status in [302, 303, 307, 400, 401, 402, 403, 429, 500, 503] {
        assert_eq!(kept("/", status, &[("location", "/x/")]), Err("status"), "{status}");
    }
    assert_eq!(kept("/wp-json/wp/v2/posts?context=edit", 401, &[]), Err("status"));
    // A redirect of the moment, but for the one that every browser asks for.
    assert_eq!(kept("/favicon.ico", 302, &[("location", "/wp-includes/images/w-logo-blue-white-bg.png")]), Ok(600));
}

#[test]
fn what_changes_without_a_word_is_held_for_moments() {
    let kept = |target, status, said| kept_by(Settings::preset(Kind::WordPress), target, status, said);
    for target in [
        "/?s=bread",
        "/?paged=2&s=bread",
        "/?%73=bread",
        "/?s=",
        "/search/bread/",
        "/search/bread/feed/rss2/",
        "/wp-json/wp/v2/search?search=a",
    ] {
        assert_eq!(kept(target, 200, &[]), Ok((30, 30)), "{target}");
    }
    // Whatever browsers are told.
    assert_eq!(kept("/?s=bread", 200, &[("cache-control", "max-age=3600")]), Ok((30, 30)));
    assert_eq!(kept("/wp-json/wp/v2/posts", 200, &[]), Ok((600, 600)));
    assert_eq!(kept("/no-such-page/", 404, NOBODY_ELSES), Ok((10, 0)));
    assert_eq!(kept("/wp-content/uploads/no.jpg", 404, NOBODY_ELSES), Ok((10, 0)));
    assert_eq!(kept("/wp-json/wp/v2/posts/999", 404, &[]), Ok((10, 0)));
}

/// Returns what is left of the fields of an answer where an operator has named the cookie.
fn without(settings: Settings, target: &str, carries: Carries, status: u16, said: &[(&'static str, &str)]) -> Option<Vec<String>> {
    let headers = fields(said);
    let seen = KeepFacts {
        method: &Method::GET,
        authority: "blog.example",
        target,
        carries,
        request: &RequestDirectives::NONE,
        status: StatusCode::from_u16(status).expect("a status"),
        headers: &headers,
        request_time: NOW,
        response_time: NOW,
        just_purged: false,
    };
    let left = Policy::new(settings).without_dropped_cookies(&seen)?;
    let mut names: Vec<String> = left.keys().map(ToString::to_string).collect();
    names.sort_unstable();
    Some(names)
}

#[test]
fn a_session_that_an_operator_calls_nobodys_is_taken_off_what_is_stored() {
    let named = |names: &[&str]| Settings {
        drop_set_cookies: names.iter().map(|name| (*name).to_owned()).collect(),
        ..Settings::preset(Kind::WordPress)
    };
    let (nobody, php) = (Carries::default(), named(&["PHPSESSID"]));
    assert_eq!(without(Settings::preset(Kind::WordPress), "/", nobody, 200, SESSION), None);
    assert_eq!(without(php.clone(), "/", nobody, 200, SESSION), Some(vec![]));
    assert_eq!(without(named(&["PHP*"]), "/", nobody, 200, SESSION), Some(vec![]));
    assert_eq!(without(named(&["other"]), "/", nobody, 200, SESSION), None);
    // A second cookie is somebody's, or the application itself forbids to store.
    let two = [SESSION, &[("x-a", "1")]].concat();
    assert_eq!(without(php.clone(), "/", nobody, 200, &two), Some(vec!["x-a".to_owned()]));
    let mut forbidden = NOBODY_ELSES.to_vec();
    forbidden.push(("set-cookie", "PHPSESSID=1"));
    assert_eq!(without(php.clone(), "/", nobody, 200, &forbidden), None);
    // What keeps it out is not the cookie.
    assert_eq!(kept_by(php.clone(), "/", 200, &forbidden), Err("no-store"));
    assert_eq!(kept_by(Settings::preset(Kind::WordPress), "/", 200, &forbidden), Err("set-cookie"));
    // An answer to somebody, or one that is not stored anyhow.
    assert_eq!(without(php.clone(), "/", Carries { authorization: true, ..nobody }, 200, SESSION), None);
    assert_eq!(without(php, "/", nobody, 302, SESSION), None);
    // Any server: its own word counts where PHP's is gone.
    let any = Settings { drop_set_cookies: vec!["PHPSESSID".to_owned()], ..Settings::preset(Kind::Php) };
    assert_eq!(without(any.clone(), "/", nobody, 200, SESSION), None);
    let page = [("cache-control", "max-age=60"), ("set-cookie", "PHPSESSID=1")];
    assert_eq!(without(any.clone(), "/", nobody, 200, &page), Some(vec!["cache-control".to_owned()]));
    assert_eq!(without(Settings { hold: Some(Duration::from_mins(5)), ..any }, "/", nobody, 200, SESSION), Some(vec![]));
}

#[test]
fn browsers_ask_each_time_where_wordpress_tells_them_nothing() {
    let told = |target: &str, said: &[(&'static str, &str)]| {
        let mut headers = fields(said);
        at("").tell_browsers(target, &mut headers);
        let told = headers.get("cache-control").map(|told| told.to_str().expect("text").to_owned());
        (told, headers)
    };
    for target in ["/", "/feed/", "/?s=a", "/wp-json/wp/v2/posts", "/favicon.ico"] {
        assert_eq!(told(target, &[]).0.as_deref(), Some("no-cache"), "{target}");
    }
    // What is said is said, and files have addresses for each version.
    assert_eq!(told("/", &[("cache-control", "max-age=60")]).0.as_deref(), Some("max-age=60"));
    assert_eq!(told("/", &[("expires", "Thu, 19 Nov 1981 08:52:00 GMT")]).0, None);
    assert_eq!(told("/wp-includes/a.js", &[]).0, None);
    // It changes nothing for what is kept here.
    for said in [&[][..], &[("seawall-cache-control", "max-age=60")], &[("x-accel-expires", "60")], &[("cdn-cache-control", "max-age=60")]]
    {
        let (_, headers) = told("/", said);
        let seen = |headers: &HeaderMap| {
            let seen = KeepFacts {
                method: &Method::GET,
                authority: "blog.example",
                target: "/",
                carries: Carries::default(),
                request: &RequestDirectives::NONE,
                status: StatusCode::OK,
                headers,
                request_time: NOW,
                response_time: NOW,
                just_purged: false,
            };
            at("").keep(&seen).expect("kept").freshness
        };
        assert_eq!(seen(&headers), seen(&fields(said)), "{said:?}");
    }
}
