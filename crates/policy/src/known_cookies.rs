//! Cookies that keep sites from being cached, and whose they are: for an operator who asks why.
//!
//! The names are those that caching plugins for WordPress publish, and those of widespread software besides. Nothing is decided by this table.

/// A cookie of which it is known who sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownCookie {
    /// Its name; with a `*` at the end, the beginning of its name.
    pub name: &'static str,
    /// The software that it is known for, by its name.
    pub software: &'static str,
    /// The software that sets it, in words.
    pub whose: &'static str,
    /// Whether a page that sets it is for its visitor alone by what it is for. Otherwise its plugin may give it to everybody for no good reason.
    pub is_somebodys: bool,
}

const fn known(name: &'static str, software: &'static str, whose: &'static str) -> KnownCookie {
    KnownCookie { name, software, whose, is_somebodys: false }
}

const fn somebodys(name: &'static str, software: &'static str, whose: &'static str) -> KnownCookie {
    KnownCookie { name, software, whose, is_somebodys: true }
}

/// Makes a line of a cookie of which no more can be said than whose it is.
const fn of(name: &'static str, software: &'static str) -> KnownCookie {
    known(name, software, software)
}

const KNOWN: &[KnownCookie] = &[
    // Sessions, whatever begins them.
    known("PHPSESSID", "PHP sessions", "a PHP session, which some plugin or theme begins"),
    known("JSESSIONID", "Java sessions", "a session of a Java server"),
    known("SESS*", "PHP sessions", "a PHP session"),
    known("SSESS*", "PHP sessions", "a PHP session"),
    known("ASP.NET_SessionId", "ASP.NET sessions", "a session of an ASP.NET application"),
    known("ASPSESSIONID*", "ASP sessions", "a session of an ASP application"),
    known(".AspNetCore.*", "ASP.NET Core", "an ASP.NET Core application"),
    known("connect.sid", "Express sessions", "a session of an Express application"),
    known("sessionid", "Django sessions", "a session of a Django application"),
    known("csrftoken", "Django", "the protection of forms of a Django application"),
    known("laravel_session", "Laravel", "a Laravel application"),
    known("XSRF-TOKEN", "Laravel", "a Laravel application, or another framework"),
    known("ci_session*", "CodeIgniter", "a session of a CodeIgniter application"),
    known("CAKEPHP", "CakePHP", "a session of a CakePHP application"),
    known("_wp_session*", "WP Session Manager", "the library WP Session Manager, which some plugin uses"),
    known("mc_session_ids*", "plugins with sessions", "a plugin that keeps sessions"),
    // WordPress itself.
    somebodys("wordpress_logged_in_*", "WordPress", "WordPress: somebody has signed in"),
    somebodys("wordpress_sec_*", "WordPress", "WordPress: somebody has signed in"),
    somebodys("wordpress_(hash)", "WordPress", "WordPress: somebody has signed in"),
    somebodys("wp-settings-*", "WordPress", "WordPress: how somebody likes the admin pages"),
    somebodys("wp-postpass_*", "WordPress", "WordPress: the password of a post"),
    somebodys("wp-resetpass-*", "WordPress", "WordPress: somebody gets a new password"),
    somebodys("comment_author_*", "WordPress", "WordPress: somebody has commented"),
    known("wordpress_test_cookie", "WordPress", "the sign-in page of WordPress, which tries whether cookies work"),
    // Shops.
    somebodys("wp_woocommerce_session_*", "WooCommerce", "WooCommerce: somebody's cart"),
    known("woocommerce_recently_viewed", "WooCommerce", "WooCommerce: the products that were seen last"),
    somebodys("woocommerce_*", "WooCommerce", "WooCommerce: somebody's cart"),
    known("sbjs_*", "WooCommerce", "WooCommerce: where a reader came from (order attribution)"),
    known("store_notice*", "WooCommerce", "WooCommerce: a notice that was closed"),
    of("edd_wp_session*", "Easy Digital Downloads"),
    somebodys("edd_items_in_cart", "Easy Digital Downloads", "Easy Digital Downloads: somebody's cart"),
    of("edd_*", "Easy Digital Downloads"),
    known("yith_wcwl_session_*", "YITH Wishlist", "YITH WooCommerce Wishlist"),
    known("yith_wrvp_*", "YITH Recently Viewed", "YITH WooCommerce Recently Viewed Products"),
    of("ecwid*", "Ecwid"),
    known("bookly*", "Bookly", "the plugin Bookly"),
    known("wcml_*", "WooCommerce Multilingual", "WooCommerce Multilingual: the currency and language that were chosen"),
    known("wmc_*", "CURCY", "CURCY: the currency that was chosen"),
    known("woocs_*", "FOX Currency Switcher", "FOX Currency Switcher: the currency that was chosen"),
    known("aelia_*", "Aelia Currency Switcher", "Aelia Currency Switcher: the currency and country that were chosen"),
    known("frontend_*", "Magento", "a Magento shop"),
    somebodys("PrestaShop-*", "PrestaShop", "a PrestaShop: somebody's cart"),
    known("OCSESSID", "OpenCart", "a session of an OpenCart shop"),
    // Gifts and members.
    known("charitable_session*", "Charitable", "the plugin Charitable"),
    of("give_wp_session*", "GiveWP"),
    of("wp-give_session*", "GiveWP"),
    known("swpm_session*", "Simple Membership", "Simple Membership"),
    somebodys("pmpro_*", "Paid Memberships Pro", "Paid Memberships Pro"),
    of("mepr_*", "MemberPress"),
    known("learndash_*", "LearnDash", "LearnDash: how far somebody has come"),
    known("tutor_*", "Tutor LMS", "Tutor LMS"),
    known("affwp_*", "AffiliateWP", "AffiliateWP: who sent a reader"),
    known("wpam_id", "Affiliates Manager", "Affiliates Manager: who sent a reader"),
    // Communities.
    of("invite-anyone*", "Invite Anyone"),
    somebodys("bp-*", "BuddyPress", "BuddyPress"),
    somebodys("bp_*", "BuddyPress", "BuddyPress"),
    somebodys("bbp_*", "bbPress", "bbPress"),
    known("asgarosforum_*", "Asgaros Forum", "Asgaros Forum: what somebody has read"),
    known("wpdiscuz_*", "wpDiscuz", "wpDiscuz: comments"),
    known("xf_*", "XenForo", "a XenForo forum"),
    known("phpbb3_*", "phpBB", "a phpBB forum"),
    known("_t", "Discourse", "a Discourse forum"),
    known("_forum_session", "Discourse", "a session of a Discourse forum"),
    // Languages.
    known("pll_language", "Polylang", "Polylang: the language that was seen last"),
    known("wp-wpml_current_language", "WPML", "WPML: the language that was seen last"),
    known("wp-wpml_current_admin_language*", "WPML", "WPML: the language of the admin pages"),
    of("wpml_*", "WPML"),
    of("_icl_*", "WPML"),
    known("trp_language", "TranslatePress", "TranslatePress: the language that was seen last"),
    known("qtrans_*", "qTranslate", "qTranslate: the language that was seen last"),
    known("googtrans", "GTranslate", "Google's translation of the page, as by GTranslate"),
    // Protection.
    known("wfvt_*", "Wordfence", "Wordfence: live traffic"),
    of("wordfence_verifiedHuman", "Wordfence"),
    of("wf_loginalerted_*", "Wordfence"),
    known("wfwaf-*", "Wordfence", "Wordfence's firewall"),
    of("itsec-*", "Solid Security"),
    of("sucuri_cloudproxy_*", "Sucuri"),
    of("wpSGCacheBypass", "SiteGround Optimizer"),
    of("wordpress_apbct_*", "CleanTalk"),
    of("apbct_*", "CleanTalk"),
    of("ct_*", "CleanTalk"),
    known("__cf_bm", "Cloudflare", "Cloudflare: whether a reader is a robot"),
    known("cf_clearance", "Cloudflare", "Cloudflare: a challenge that was passed"),
    known("_cfuvid", "Cloudflare", "Cloudflare: limits for each reader"),
    known("__cflb", "Cloudflare", "Cloudflare: which server a reader is sent to"),
    known("__cfruid", "Cloudflare", "Cloudflare"),
    known("__cfduid", "Cloudflare", "Cloudflare, in former times"),
    known("AWSALB*", "AWS load balancer", "the load balancer of AWS: which server a reader is sent to"),
    known("AWSELB*", "AWS load balancer", "the load balancer of AWS: which server a reader is sent to"),
    known("BIGipServer*", "F5 BIG-IP", "an F5 load balancer: which server a reader is sent to"),
    known("SERVERID", "HAProxy", "a load balancer: which server a reader is sent to"),
    known("incap_ses_*", "Imperva", "Imperva"),
    known("visid_incap_*", "Imperva", "Imperva"),
    known("datadome", "DataDome", "DataDome: whether a reader is a robot"),
    known("ak_bmsc", "Akamai", "Akamai: whether a reader is a robot"),
    known("_abck", "Akamai", "Akamai: whether a reader is a robot"),
    // Page builders, pop-ups, forms.
    known("elementor*", "Elementor", "Elementor: pop-ups and what they remember"),
    known("et_pb_*", "Divi", "Divi: tests of variants and pop-ups"),
    known("et-editor-*", "Divi", "Divi: the editor of posts"),
    known("spu_*", "Popups", "the plugin Popups"),
    known("popup_maker*", "Popup Maker", "Popup Maker"),
    known("pum-*", "Popup Maker", "Popup Maker: pop-ups that were closed"),
    known("om-*", "OptinMonster", "OptinMonster"),
    known("omSeen*", "OptinMonster", "OptinMonster"),
    known("wpforms_*", "WPForms", "WPForms"),
    known("_wpfuuid", "WPForms", "WPForms: one number for each reader"),
    known("gf_*", "Gravity Forms", "Gravity Forms"),
    known("nf_wp_session*", "Ninja Forms", "Ninja Forms"),
    known("cookielawinfo-*", "CookieYes", "CookieYes: what a reader has agreed to"),
    known("cookieyes-consent", "CookieYes", "CookieYes: what a reader has agreed to"),
    known("viewed_cookie_policy", "CookieYes", "CookieYes: a notice that was closed"),
    known("cmplz_*", "Complianz", "Complianz: what a reader has agreed to"),
    known("borlabs-cookie", "Borlabs Cookie", "Borlabs Cookie: what a reader has agreed to"),
    known("real_cookie_banner*", "Real Cookie Banner", "Real Cookie Banner: what a reader has agreed to"),
    known("moove_gdpr_*", "GDPR Cookie Compliance", "GDPR Cookie Compliance: what a reader has agreed to"),
    known("cookie_notice_accepted", "Cookie Notice", "Cookie Notice: a notice that was closed"),
    known("CookieConsent", "Cookiebot", "Cookiebot: what a reader has agreed to"),
    known("OptanonConsent", "OneTrust", "OneTrust: what a reader has agreed to"),
    known("OptanonAlertBoxClosed", "OneTrust", "OneTrust: a notice that was closed"),
    known("euconsent-v2", "consent banners", "a consent banner: what a reader has agreed to"),
    known("didomi_token", "Didomi", "Didomi: what a reader has agreed to"),
    // Views, ratings, counters.
    known("pvc_*", "Post Views Counter", "Post Views Counter"),
    known("wppb_*", "Profile Builder", "Profile Builder"),
    known("wp_postratings_*", "WP-PostRatings", "WP-PostRatings: what was rated"),
    known("slimstat_*", "SlimStat", "SlimStat Analytics"),
    known("wp_statistics_*", "WP Statistics", "WP Statistics"),
    known("nelioab_*", "Nelio A/B Testing", "Nelio A/B Testing"),
    known("wpsc_*", "WP Super Cache", "WP Super Cache"),
    known("wpfc_*", "WP Fastest Cache", "WP Fastest Cache"),
    known("_lscache_vary", "LiteSpeed Cache", "LiteSpeed Cache: which variant a reader gets"),
    known("wordpress_no_cache", "plugins that forbid caching", "a plugin that wants no cache"),
    known("NO_CACHE", "plugins that forbid caching", "a plugin that wants no cache"),
    known("tk_*", "Jetpack", "Jetpack"),
    known("jetpack*", "Jetpack", "Jetpack"),
    // Statistics and advertising.
    known("_pk_*", "Matomo", "Matomo: statistics"),
    known("MATOMO_SESSID", "Matomo", "Matomo: a session"),
    known("mtm_*", "Matomo", "Matomo: what a reader has agreed to"),
    known("_ga*", "Google Analytics", "Google Analytics"),
    known("_gid", "Google Analytics", "Google Analytics"),
    known("_gcl_*", "Google Ads", "Google Ads"),
    known("_fbp", "Meta Pixel", "Meta Pixel"),
    known("_fbc", "Meta Pixel", "Meta Pixel"),
    known("_hj*", "Hotjar", "Hotjar"),
    known("_clck", "Microsoft Clarity", "Microsoft Clarity"),
    known("_clsk", "Microsoft Clarity", "Microsoft Clarity"),
    known("_uet*", "Microsoft Advertising", "Microsoft Advertising"),
    known("ph_*", "PostHog", "PostHog"),
    known("mp_*", "Mixpanel", "Mixpanel"),
    known("ajs_*", "Segment", "Segment"),
    known("amplitude_*", "Amplitude", "Amplitude"),
    known("_vwo_*", "VWO", "VWO: tests of variants"),
    known("optimizely*", "Optimizely", "Optimizely"),
    known("hubspotutk", "HubSpot", "HubSpot"),
    known("__hs*", "HubSpot", "HubSpot"),
    known("trwv.uid", "Marketo", "Marketo"),
    known("_mkto_trk", "Marketo", "Marketo"),
    known("mailchimp_*", "Mailchimp", "Mailchimp"),
    known("mailpoet_*", "MailPoet", "MailPoet"),
    known("intercom-*", "Intercom", "Intercom"),
    known("crisp-client*", "Crisp", "Crisp: a chat"),
    known("TawkConnectionTime", "tawk.to", "tawk.to: a chat"),
    known("__stripe_*", "Stripe", "Stripe: whether a reader is a robot"),
    // Other publishing systems.
    somebodys("ghost-members-ssr*", "Ghost", "Ghost: a member has signed in"),
    somebodys("ghost-admin-*", "Ghost", "Ghost: one of its staff has signed in"),
    somebodys("ghost-private", "Ghost", "Ghost: the password of a private site"),
    somebodys("ghost-*", "Ghost", "Ghost: a member has signed in"),
    somebodys("fe_typo_user", "TYPO3", "TYPO3: somebody has signed in"),
    known("Drupal.*", "Drupal", "Drupal"),
    known("CraftSessionId", "Craft CMS", "a session of Craft CMS"),
    known("CRAFT_CSRF_TOKEN", "Craft CMS", "the protection of forms of Craft CMS"),
    known("october_session", "October CMS", "a session of October CMS"),
    somebodys("duo_*", "Duo", "Duo: a sign-in in two steps"),
    known("SimpleSAML*", "SimpleSAMLphp", "SimpleSAMLphp: a sign-in with another account"),
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

    #[test]
    fn the_software_that_sets_a_cookie_is_named() {
        let software = |name| known_cookie(name).map_or("", |known| known.software);
        for (name, expected) in [
            ("PHPSESSID", "PHP sessions"),
            ("wp_woocommerce_session_0a1b", "WooCommerce"),
            ("wfvt_3127453980", "Wordfence"),
            ("elementor", "Elementor"),
            ("wp-wpml_current_language", "WPML"),
            ("pll_language", "Polylang"),
            ("__cf_bm", "Cloudflare"),
            ("_pk_id.1.1fff", "Matomo"),
            ("edd_items_in_cart", "Easy Digital Downloads"),
            ("bbp_0a1b", "bbPress"),
            ("wordpress_logged_in_*", "WordPress"),
            ("nobody_knows", ""),
        ] {
            assert_eq!(software(name), expected, "{name}");
        }
    }

    #[test]
    fn no_line_is_hidden_by_one_before_it() {
        for line in KNOWN {
            let found = known_cookie(line.name).expect("a line finds itself");
            assert_eq!(found.name, line.name, "an earlier line takes the name of this one");
        }
    }
}
