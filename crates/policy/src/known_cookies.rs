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
    /// Whether a page that sets it is for its visitor alone by what it is for. Otherwise its plugin may give it to everybody for no good reason.
    pub is_somebodys: bool,
}

const fn known(name: &'static str, whose: &'static str) -> KnownCookie {
    KnownCookie { name, whose, is_somebodys: false }
}

const fn somebodys(name: &'static str, whose: &'static str) -> KnownCookie {
    KnownCookie { name, whose, is_somebodys: true }
}

const KNOWN: &[KnownCookie] = &[
    known("PHPSESSID", "a PHP session, which some plugin or theme begins"),
    known("JSESSIONID", "a session of a Java server"),
    known("SESS*", "a PHP session"),
    known("charitable_session*", "the plugin Charitable"),
    known("edd_wp_session*", "Easy Digital Downloads"),
    known("edd_*", "Easy Digital Downloads"),
    known("give_wp_session*", "GiveWP"),
    known("wp-give_session*", "GiveWP"),
    known("swpm_session*", "Simple Membership"),
    somebodys("wp_woocommerce_session_*", "WooCommerce: somebody's cart"),
    somebodys("woocommerce_*", "WooCommerce: somebody's cart"),
    known("mc_session_ids*", "a plugin that keeps sessions"),
    known("_wp_session*", "the library WP Session Manager, which some plugin uses"),
    somebodys("pmpro_*", "Paid Memberships Pro"),
    somebodys("wordpress_logged_in_*", "WordPress: somebody has signed in"),
    somebodys("wordpress_sec_*", "WordPress: somebody has signed in"),
    somebodys("wp-postpass_*", "WordPress: the password of a post"),
    somebodys("comment_author_*", "WordPress: somebody has commented"),
    known("yith_wcwl_session_*", "YITH WooCommerce Wishlist"),
    known("invite-anyone*", "Invite Anyone"),
    somebodys("bp-*", "BuddyPress"),
    known("laravel_session", "a Laravel application"),
    known("XSRF-TOKEN", "a Laravel application, or another framework"),
    known("wordpress_test_cookie", "the sign-in page of WordPress, which tries whether cookies work"),
    known("wfvt_*", "Wordfence: live traffic"),
    known("wordfence_verifiedHuman", "Wordfence"),
    known("wfwaf-*", "Wordfence's firewall"),
    known("hubspotutk", "HubSpot"),
    known("trwv.uid", "Marketo"),
    known("optimizely*", "Optimizely"),
    known("wordpress_apbct_*", "CleanTalk"),
    known("apbct_*", "CleanTalk"),
    known("ct_*", "CleanTalk"),
    known("pll_language", "Polylang: the language that was seen last"),
    known("wp-wpml_current_language", "WPML: the language that was seen last"),
    known("wpml_*", "WPML"),
    known("spu_*", "Popups"),
    known("tk_ai", "Jetpack"),
    known("_icl_*", "WPML"),
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
