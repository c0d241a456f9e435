//! The families of programs that ask, by the name that they give themselves in `User-Agent`.

use crate::text::shortened;

/// Bytes of the longest name.
pub(crate) const AGENT_BYTES_MAX: usize = 24;

/// The name of a program that gives none.
const NAMELESS: &str = "(none)";

/// Programs that say what they are somewhere in the field, in small letters. The first that is found counts: those that name others beside
/// themselves go before these.
const KNOWN: &[(&str, &str)] = &[
    // Searchers.
    ("googlebot", "Googlebot"),
    ("google-inspectiontool", "Google Inspection"),
    ("adsbot-google", "Google AdsBot"),
    ("mediapartners-google", "Google AdSense"),
    ("feedfetcher-google", "Google Feedfetcher"),
    ("googleother", "GoogleOther"),
    ("bingbot", "Bingbot"),
    ("bingpreview", "Bing Preview"),
    ("duckduckbot", "DuckDuckBot"),
    ("duckassistbot", "DuckAssistBot"),
    ("yandexbot", "YandexBot"),
    ("baiduspider", "Baiduspider"),
    ("applebot", "Applebot"),
    ("petalbot", "PetalBot"),
    ("qwantbot", "Qwantbot"),
    ("seznambot", "SeznamBot"),
    ("sogou", "Sogou"),
    ("yeti/", "Naver Yeti"),
    // Collectors of texts.
    ("gptbot", "GPTBot"),
    ("oai-searchbot", "OAI-SearchBot"),
    ("chatgpt-user", "ChatGPT-User"),
    ("claudebot", "ClaudeBot"),
    ("claude-", "Claude"),
    ("anthropic-ai", "Anthropic"),
    ("perplexitybot", "PerplexityBot"),
    ("perplexity-user", "Perplexity-User"),
    ("bytespider", "Bytespider"),
    ("ccbot", "CCBot"),
    ("amazonbot", "Amazonbot"),
    ("meta-externalagent", "Meta-ExternalAgent"),
    ("cohere-ai", "Cohere"),
    ("diffbot", "Diffbot"),
    // Sellers of links and rankings.
    ("ahrefsbot", "AhrefsBot"),
    ("semrushbot", "SemrushBot"),
    ("mj12bot", "MJ12bot"),
    ("dotbot", "DotBot"),
    ("dataforseobot", "DataForSeoBot"),
    ("blexbot", "BLEXBot"),
    ("serpstatbot", "SerpstatBot"),
    ("barkrowler", "Barkrowler"),
    ("screaming frog", "Screaming Frog"),
    ("ia_archiver", "Internet Archive"),
    ("archive.org_bot", "Internet Archive"),
    // Previews of links.
    ("facebookexternalhit", "Facebook preview"),
    ("facebookcatalog", "Facebook catalog"),
    ("twitterbot", "Twitterbot"),
    ("linkedinbot", "LinkedInBot"),
    ("slackbot", "Slackbot"),
    ("discordbot", "Discordbot"),
    ("telegrambot", "TelegramBot"),
    ("whatsapp", "WhatsApp"),
    ("pinterestbot", "Pinterestbot"),
    ("redditbot", "Redditbot"),
    ("mastodon/", "Mastodon"),
    ("bluesky", "Bluesky"),
    ("embedly", "Embedly"),
    // Watchers.
    ("uptimerobot", "UptimeRobot"),
    ("pingdom", "Pingdom"),
    ("statuscake", "StatusCake"),
    ("better uptime", "Better Uptime"),
    ("uptime-kuma", "Uptime Kuma"),
    ("site24x7", "Site24x7"),
    ("gtmetrix", "GTmetrix"),
    ("lighthouse", "Lighthouse"),
    ("ptst/", "WebPageTest"),
    ("headlesschrome", "Headless Chrome"),
    ("nagios", "Nagios"),
    ("zabbix", "Zabbix"),
    ("kube-probe", "Kubernetes probe"),
    ("blackbox exporter", "Prometheus"),
    ("prometheus", "Prometheus"),
    ("let's encrypt", "Let's Encrypt"),
    // Readers of feeds.
    ("feedly", "Feedly"),
    ("feedbin", "Feedbin"),
    ("newsblur", "NewsBlur"),
    ("inoreader", "Inoreader"),
    ("freshrss", "FreshRSS"),
    ("tiny tiny rss", "Tiny Tiny RSS"),
    ("miniflux", "Miniflux"),
    ("netnewswire", "NetNewsWire"),
    ("the old reader", "The Old Reader"),
    // Software of sites.
    ("wordpress/", "WordPress"),
    ("wp fastest cache", "WP Fastest Cache preload"),
    ("wp-rocket", "WP Rocket preload"),
    ("wp rocket/preload", "WP Rocket preload"),
    ("lscache_runner", "LiteSpeed preload"),
    ("woocommerce", "WooCommerce"),
    ("ghost(", "Ghost"),
    ("ghost/", "Ghost"),
    ("jetpack", "Jetpack"),
    ("wpscan", "WPScan"),
    ("nikto", "Nikto"),
    ("sqlmap", "sqlmap"),
    ("zgrab", "zgrab"),
    ("masscan", "masscan"),
    ("censysinspect", "Censys"),
    ("expanse", "Palo Alto Expanse"),
    ("nuclei", "Nuclei"),
    // Load testers and this project.
    ("seawall", "Seawall"),
    ("apachebench", "ApacheBench"),
    ("k6/", "k6"),
    ("wrk/", "wrk"),
    ("vegeta", "Vegeta"),
    ("oha/", "oha"),
    // Libraries and tools.
    ("curl/", "curl"),
    ("wget/", "Wget"),
    ("httpie", "HTTPie"),
    ("postmanruntime", "Postman"),
    ("python-requests", "Python Requests"),
    ("aiohttp", "Python aiohttp"),
    ("python-httpx", "Python HTTPX"),
    ("python-urllib", "Python urllib"),
    ("scrapy", "Scrapy"),
    ("go-http-client", "Go"),
    ("okhttp", "OkHttp"),
    ("apache-httpclient", "Apache HttpClient"),
    ("java/", "Java"),
    ("node-fetch", "Node.js"),
    ("undici", "Node.js"),
    ("axios/", "axios"),
    ("guzzlehttp", "Guzzle"),
    ("libwww-perl", "Perl LWP"),
    ("ruby", "Ruby"),
    ("reqwest", "reqwest"),
];

/// Browsers. Nearly all call themselves by the names of their forebears too, so these go last, and the forebears at the end.
const BROWSERS: &[(&str, &str)] = &[
    ("edg/", "Edge"),
    ("edga/", "Edge"),
    ("edgios/", "Edge"),
    ("opr/", "Opera"),
    ("opera", "Opera"),
    ("vivaldi/", "Vivaldi"),
    ("samsungbrowser/", "Samsung Internet"),
    ("yabrowser/", "Yandex Browser"),
    ("duckduckgo/", "DuckDuckGo"),
    ("fban/", "Facebook app"),
    ("instagram", "Instagram app"),
    ("fxios/", "Firefox"),
    ("firefox/", "Firefox"),
    ("crios/", "Chrome"),
    ("chromium/", "Chromium"),
    ("chrome/", "Chrome"),
    ("safari/", "Safari"),
    ("trident/", "Internet Explorer"),
    ("msie ", "Internet Explorer"),
    ("lynx/", "Lynx"),
    ("w3m/", "w3m"),
];

/// Bytes of the field that are looked at.
const LOOKED_AT: usize = 512;

/// Returns the family of a program: a name that we know, or the first word of what it says without its version.
pub(crate) fn family(agent: &str) -> String {
    let agent = agent.trim();
    if agent.is_empty() {
        return NAMELESS.to_owned();
    }
    let end = agent.floor_char_boundary(LOOKED_AT.min(agent.len()));
    let small = agent[..end].to_ascii_lowercase();
    let known = |table: &[(&str, &'static str)]| table.iter().find(|(sign, _)| small.contains(sign)).map(|(_, name)| *name);
    if let Some(name) = known(KNOWN) {
        return name.to_owned();
    }
    // One that calls itself a robot, and a browser beside it.
    let robot = |word: &&str| ["bot", "crawl", "spider"].iter().any(|sign| word.to_ascii_lowercase().contains(sign));
    let words = || agent[..end].split([' ', ';', '(', ')', ',', '+']).filter(|word| !word.is_empty() && !word.contains("://"));
    if let Some(word) = words().find(robot) {
        return name_of(word);
    }
    if let Some(name) = known(BROWSERS) {
        return name.to_owned();
    }
    // Behind "compatible" stands who it is, and before it whom it takes after.
    let own = words().skip_while(|word| !word.eq_ignore_ascii_case("compatible")).nth(1);
    own.or_else(|| words().next()).map_or_else(|| NAMELESS.to_owned(), name_of)
}

/// Returns a product's name without its version (RFC 9110 §10.1.5).
fn name_of(product: &str) -> String {
    let name = product.split('/').next().unwrap_or_default();
    if name.is_empty() { NAMELESS.to_owned() } else { shortened(name, AGENT_BYTES_MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_known_by_the_name_it_gives_itself() {
        const CHROME: &str =
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36";
        for (agent, family_of) in [
            (CHROME, "Chrome"),
            (&format!("{CHROME} Edg/131.0.0.0"), "Edge"),
            (
                "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.1 Safari/605.1.15",
                "Safari",
            ),
            ("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0", "Firefox"),
            ("Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "Googlebot"),
            ("Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot) Chrome/1", "GPTBot"),
            ("Mozilla/5.0 (compatible; Nosuchbot/3.1; +https://nosuch.example/)", "Nosuchbot"),
            ("Mozilla/5.0 (compatible; link-checker/1.0)", "link-checker"),
            ("Mozilla/5.0 (compatible)", "Mozilla"),
            ("curl/8.5.0", "curl"),
            ("WordPress/6.7; https://a.example", "WordPress"),
            ("MyOwnThing/1.2 (x)", "MyOwnThing"),
            ("", "(none)"),
            ("   ", "(none)"),
            ("/", "(none)"),
            ("<script>alert(1)</script>", "<script>alert"),
        ] {
            assert_eq!(family(agent), family_of, "{agent}");
        }
        assert!(family(&"x".repeat(8_192)).len() <= AGENT_BYTES_MAX);
        assert!(family(&"日".repeat(8_192)).len() <= AGENT_BYTES_MAX);
    }

    #[test]
    fn every_name_fits() {
        for (sign, name) in KNOWN.iter().chain(BROWSERS) {
            assert!(name.len() <= AGENT_BYTES_MAX && *sign == sign.to_ascii_lowercase(), "{sign}");
        }
    }
}
