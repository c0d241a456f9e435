//! Cookies that keep sites from being cached, and whose they are: for an operator who asks why.
//!
//! The names are those that caching plugins for WordPress publish. Nothing is decided by this table.

/// A cookie of which it is known who sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownCookie {
    /// Its name; with a `*` at the end, the beginning of its name.
    pub name: &'static str,
    /// Who sets it, in words.
    pub whose: &'static str,
    /// Whether a script keeps a visitor's data by it. Otherwise it is a mark that no page depends on.
    pub is_session: bool,
}

const fn session(name: &'static str, whose: &'static str) -> KnownCookie {
    KnownCookie { name, whose, is_session: true }
}

const fn mark(name: &'static str, whose: &'static str) -> KnownCookie {
    KnownCookie { name, whose, is_session: false }
}

const KNOWN: &[KnownCookie] = &[
    session("PHPSESSID", "a PHP session, which some plugin or theme begins"),
    session("JSESSIONID", "a session of a Java server"),
    session("SESS*", "a PHP session"),
    session("charitable_session*", "the plugin Charitable"),
    session("edd_wp_session*", "Easy Digital Downloads"),
    session("edd_*", "Easy Digital Downloads"),
    session("give_wp_session*", "GiveWP"),
    session("wp-give_session*", "GiveWP"),
    session("swpm_session*", "Simple Membership"),
    session("wp_woocommerce_session_*", "WooCommerce: somebody's cart"),
    session("woocommerce_*", "WooCommerce: somebody's cart"),
    session("mc_session_ids*", "a plugin that keeps sessions"),
    session("_wp_session*", "the library WP Session Manager, which some plugin uses"),
    session("pmpro_*", "Paid Memberships Pro"),
    session("wordpress_logged_in_*", "WordPress: somebody has signed in"),
    session("wordpress_sec_*", "WordPress: somebody has signed in"),
    session("wp-postpass_*", "WordPress: the password of a post"),
    session("comment_author_*", "WordPress: somebody has commented"),
    session("yith_wcwl_session_*", "YITH WooCommerce Wishlist"),
    session("invite-anyone*", "Invite Anyone"),
    session("bp-*", "BuddyPress"),
    session("laravel_session", "a Laravel application"),
    session("XSRF-TOKEN", "a Laravel application, or another framework"),
    mark("wordpress_test_cookie", "the sign-in page of WordPress, which tries whether cookies work"),
    mark("wfvt_*", "Wordfence: live traffic"),
    mark("wordfence_verifiedHuman", "Wordfence"),
    mark("wfwaf-*", "Wordfence's firewall"),
    mark("hubspotutk", "HubSpot"),
    mark("trwv.uid", "Marketo"),
    mark("optimizely*", "Optimizely"),
    mark("wordpress_apbct_*", "CleanTalk"),
    mark("apbct_*", "CleanTalk"),
    mark("ct_*", "CleanTalk"),
    mark("pll_language", "Polylang: the language that was seen last"),
    mark("wp-wpml_current_language", "WPML: the language that was seen last"),
    mark("wpml_*", "WPML"),
    mark("spu_*", "Popups"),
    mark("tk_ai", "Jetpack"),
    mark("_icl_*", "WPML"),
];

/// Returns what is known of a cookie by its name.
#[must_use]
pub fn known_cookie(name: &str) -> Option<KnownCookie> {
    let is = |known: &&KnownCookie| match known.name.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == known.name,
    };
    KNOWN.iter().find(is).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_known_by_its_name_or_its_beginning() {
        let whose = |name| known_cookie(name).map(|known| (known.name, known.whose));
        assert_eq!(whose("PHPSESSID"), Some(("PHPSESSID", "a PHP session, which some plugin or theme begins")));
        assert_eq!(whose("wfvt_3127453980"), Some(("wfvt_*", "Wordfence: live traffic")));
        assert_eq!(whose("edd_wp_session"), Some(("edd_wp_session*", "Easy Digital Downloads")));
        assert_eq!(whose("xPHPSESSID"), None);
    }
}
