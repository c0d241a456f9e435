//! Values that are words, names and patterns: kinds, log targets, host names, cookie patterns.
//!
//! Each type has one reader, [`FromStr`], used for the file, the flags and the environment alike.

use std::{fmt, marker::PhantomData, path::PathBuf, str::FromStr};

use http::HeaderName;
use semantics::hop_by_hop::is_hop_by_hop;
use serde::de::{Deserialize, Deserializer, Error, Visitor};

use super::{
    error::Mistake,
    settings::{AccessLog, Kind, Listen, LogFormat, OriginAddress, OriginHost},
    suggest::closest,
    units::Period,
};

/// Returns the value that belongs to a word.
pub(super) fn choose<T: Copy>(text: &str, what: &str, choices: &[(&str, T)]) -> Result<T, Mistake> {
    if let Some((_, value)) = choices.iter().find(|(word, _)| *word == text) {
        return Ok(*value);
    }
    let words: Vec<String> = choices.iter().map(|(word, _)| format!("\"{word}\"")).collect();
    let mistake = Mistake::new(format!("\"{text}\" is not a {what}"), format!("possible values: {}", words.join(", ")));
    Err(match closest(text, choices.iter().map(|(word, _)| *word)) {
        Some(word) => mistake.meant(word),
        None => mistake,
    })
}

/// The kind of a site: `generic`, `ghost`, `wordpress`, `blog`, `static` or `php`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindWord(pub Kind);

impl FromStr for KindWord {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        choose(text, "kind", &Kind::ALL.map(|kind| (kind.name(), kind))).map(Self)
    }
}

/// The time between two runs of WordPress's own schedule, or `off`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronPeriod(pub Option<Period>);

impl FromStr for CronPeriod {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        if text == "off" { Ok(Self(None)) } else { text.parse().map(|period| Self(Some(period))) }
    }
}

/// The number of wrong passwords that an address may send, or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LoginAttempts(pub Option<u32>);

impl FromStr for LoginAttempts {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let mistake = || Mistake::new(format!("\"{text}\" is not a number of attempts"), "possible: 1 to 1000, or \"off\"; default: 10");
        match text {
            "off" => Ok(Self(None)),
            number => number.parse().ok().filter(|number| (1..=1000).contains(number)).map(|number| Self(Some(number))).ok_or_else(mistake),
        }
    }
}

impl<'de> Deserialize<'de> for LoginAttempts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrOff;
        impl Visitor<'_> for NumberOrOff {
            type Value = LoginAttempts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number without quotation marks, or \"off\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<LoginAttempts, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<LoginAttempts, E> {
                number.to_string().parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(NumberOrOff)
    }
}

/// The number of requests that an address may send in a second, or `off`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct RequestsPerSecond(pub Option<f64>);

impl RequestsPerSecond {
    /// The fewest: one in a hundred seconds.
    pub const MIN: f64 = 0.01;
    /// The most.
    pub const MAX: f64 = 1_000_000.0;
}

impl FromStr for RequestsPerSecond {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let mistake =
            || Mistake::new(format!("\"{text}\" is not a number of requests"), "possible: 0.01 to 1000000, or \"off\"; default: \"off\"");
        match text {
            "off" => Ok(Self(None)),
            number => {
                let number = number.parse::<f64>().ok().filter(|number| (Self::MIN..=Self::MAX).contains(number));
                number.map(|number| Self(Some(number))).ok_or_else(mistake)
            }
        }
    }
}

impl<'de> Deserialize<'de> for RequestsPerSecond {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrOff;
        impl Visitor<'_> for NumberOrOff {
            type Value = RequestsPerSecond;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number without quotation marks, or \"off\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<RequestsPerSecond, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<RequestsPerSecond, E> {
                number.to_string().parse().map_err(E::custom)
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<RequestsPerSecond, E> {
                number.to_string().parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(NumberOrOff)
    }
}

/// A server that answers for some paths of a Ghost: its address, or `off`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompanionServer(pub Option<OriginAddress>);

impl FromStr for CompanionServer {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        if text == "off" { Ok(Self(None)) } else { text.parse().map(|address| Self(Some(address))) }
    }
}

impl FromStr for LogFormat {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        choose(text, "log format", &[("combined", Self::Combined), ("json", Self::Json)])
    }
}

impl FromStr for AccessLog {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        match text {
            "off" => Ok(Self::Off),
            "stdout" => Ok(Self::Stdout),
            // A bare word is far more often a slip of "stdout" than a file in the current folder.
            text if text.contains('/') && !text.ends_with('/') => Ok(Self::File(PathBuf::from(text))),
            text => {
                let mistake = Mistake::new(
                    format!("\"{text}\" is not a place for the access log"),
                    "possible values: \"stdout\", \"off\", or a file with its folder, such as \"/var/log/seawall/access.log\" or \"./access.log\"",
                );
                Err(match closest(text, ["stdout", "off"]) {
                    Some(word) => mistake.meant(word),
                    None if text.ends_with(".log") => mistake.meant(format!("./{text}")),
                    None => mistake,
                })
            }
        }
    }
}

impl FromStr for OriginHost {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        match text {
            "client" => Ok(Self::Client),
            "origin" => Ok(Self::Origin),
            name => {
                if let Some(word) = closest(name, ["client", "origin"]) {
                    return Err(Mistake::new(
                        format!("\"{name}\" is neither \"client\" nor \"origin\""),
                        "possible values: \"client\", \"origin\", or a host name such as \"blog.example.org\"",
                    )
                    .meant(word));
                }
                if name.starts_with("*.") {
                    return Err(Mistake::new(
                        format!("\"{name}\" stands for many names, but a request to the origin needs one"),
                        "write one host name",
                    ));
                }
                Ok(Self::Name(host_name(name)?))
            }
        }
    }
}

/// A host name of a site, in lower case and without a port. `*.example.org` stands for every name below example.org.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern(pub String);

impl FromStr for HostPattern {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        if text == "*" {
            return Err(Mistake::new(
                "\"*\" is not a host name",
                "a single site answers for every host when it has no hosts at all: leave the key out",
            ));
        }
        match text.strip_prefix("*.") {
            Some(parent) => Ok(Self(format!("*.{}", host_name(parent)?))),
            None => Ok(Self(host_name(text)?)),
        }
    }
}

const HOST_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// Returns the name in lower case, without the dot of the root (RFC 1034 §3.1, RFC 9110 §4.2.3).
pub(super) fn host_name(text: &str) -> Result<String, Mistake> {
    const REMEDY: &str = "a host name is the name alone, without scheme, port and path, such as \"blog.example.org\"";
    let mistake = || Mistake::new(format!("\"{text}\" is not a host name"), REMEDY);
    // IPv6 addresses stand in brackets wherever a Host field names them, so they do here.
    if let Some(address) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return address.parse::<std::net::Ipv6Addr>().map(|address| format!("[{address}]")).map_err(|_| mistake());
    }
    if text.parse::<std::net::Ipv6Addr>().is_ok() {
        return Err(mistake().meant(format!("[{text}]")));
    }
    if !text.is_ascii() {
        return Err(Mistake::new(
            format!("\"{text}\" has letters that are not ASCII"),
            "write the name in its \"xn--\" form, as browsers send it in the Host field",
        ));
    }
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let label = |label: &str| {
        let inner = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        !label.is_empty() && label.len() <= LABEL_BYTES_MAX && label.bytes().all(inner) && !label.starts_with('-') && !label.ends_with('-')
    };
    if name.len() <= HOST_BYTES_MAX && name.split('.').all(label) {
        return Ok(name);
    }
    // "https://Blog.example.org:443/path" holds the name that was meant.
    let bare = text.split_once("://").map_or(text, |(_, rest)| rest);
    let bare = bare.split(['/', ':', '?']).next().unwrap_or_default();
    if bare != text && !bare.is_empty() && host_name(bare).is_ok() {
        return Err(mistake().meant(bare.to_ascii_lowercase()));
    }
    Err(mistake())
}

/// The name of a cookie or a query parameter. A trailing `*` stands for anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern(pub String);

impl FromStr for NamePattern {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let remedy = "write a name such as \"ref\", or the beginning of names and a star, such as \"utm_*\"";
        let name = text.strip_suffix('*').unwrap_or(text);
        if name.contains('*') {
            return Err(Mistake::new(format!("\"{text}\": a star may only stand at the end"), remedy));
        }
        let strange = |c: char| c.is_control() || c.is_whitespace() || "=;,&?#\"".contains(c);
        if text.is_empty() || name.contains(strange) {
            return Err(Mistake::new(format!("\"{text}\" is not a name"), remedy));
        }
        Ok(Self(text.to_owned()))
    }
}

/// A name pattern for cookies, where a lone star is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CookiePattern(pub String);

impl FromStr for CookiePattern {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        if text == "*" {
            // Ignoring every cookie would store one signed-in reader's page for all the others.
            return Err(Mistake::new(
                "ignoring every cookie would show one reader's personal page to all the others",
                "name the cookies that do not change the page, such as \"_ga*\"",
            ));
        }
        Ok(Self(text.parse::<NamePattern>()?.0))
    }
}

/// A name pattern for cookies that are taken off answers, where a lone star is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedCookie(pub String);

impl FromStr for DroppedCookie {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        if text == "*" {
            return Err(Mistake::new(
                "without any cookie, nobody could begin a session on a page that is stored, and forms on it would fail",
                "name the cookies that readers of pages do not need, such as \"PHPSESSID\"",
            ));
        }
        Ok(Self(text.parse::<NamePattern>()?.0))
    }
}

/// A field that trusted proxies may send, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedField(pub String);

impl FromStr for TrustedField {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        // What is told of each request in words of our own, and what has its own rules in the cache or on a connection.
        const OURS: [&str; 5] = ["forwarded", "via", "x-forwarded-for", "x-forwarded-proto", "x-real-ip"];
        const WITH_RULES: [&str; 17] = [
            "accept",
            "accept-encoding",
            "authorization",
            "cache-control",
            "cookie",
            "expect",
            "host",
            "if-match",
            "if-modified-since",
            "if-none-match",
            "if-range",
            "if-unmodified-since",
            "pragma",
            "range",
            "te",
            "trailer",
            "upgrade",
        ];
        let remedy = "name a field that your proxy sets on every request, such as \"X-Forwarded-Prefix\"";
        let Ok(name) = HeaderName::from_bytes(text.as_bytes()) else {
            return Err(Mistake::new(format!("\"{text}\" is not a field name"), remedy));
        };
        let as_cgi = name.as_str().replace('_', "-");
        if OURS.contains(&&*as_cgi) {
            let problem = format!("{text} is what Seawall tells the origin itself, by what a trusted proxy says about the client");
            return Err(Mistake::new(problem, "leave it out"));
        }
        if WITH_RULES.contains(&&*as_cgi) || as_cgi.starts_with("content-") || is_hop_by_hop(&name) {
            return Err(Mistake::new(format!("{text} already has a meaning in HTTP, so a trusted proxy cannot define it"), remedy));
        }
        Ok(Self(name.as_str().to_owned()))
    }
}

/// The public address of a blog, without a trailing slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl(pub String);

impl FromStr for BaseUrl {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let mistake = || {
            Mistake::new(
                format!("\"{text}\" is not the address of a site"),
                "write the whole address, such as \"https://blog.example.org\"",
            )
        };
        let Some((scheme @ ("http" | "https"), rest)) = text.split_once("://") else {
            return Err(if host_name(text).is_ok() { mistake().meant(format!("https://{text}")) } else { mistake() });
        };
        let rest = rest.trim_end_matches('/');
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (name, port) = match authority.rsplit_once(':') {
            Some((name, port)) if !authority.ends_with(']') => (name, Some(port)),
            _ => (authority, None),
        };
        let port_is_good = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
        if host_name(name).is_err() || !port_is_good || rest.contains(|c: char| c.is_whitespace() || c.is_control() || "?#\"<>".contains(c))
        {
            return Err(mistake());
        }
        if !path.is_empty() {
            return Err(Mistake::new(
                format!("a blog lives at the root of its host, so \"/{path}\" has no place in its address"),
                "leave the path out",
            )
            .meant(format!("{scheme}://{authority}")));
        }
        Ok(Self(format!("{scheme}://{authority}")))
    }
}

/// Reads a value with its [`FromStr`] and keeps the parts of the mistake.
struct ByText<T>(&'static str, PhantomData<T>);

impl<T: FromStr<Err = Mistake>> Visitor<'_> for ByText<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

macro_rules! read_by_text {
    ($($type:ty: $expecting:literal,)*) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(ByText($expecting, PhantomData))
            }
        }
    )*};
}

read_by_text! {
    KindWord: "\"generic\", \"ghost\", \"wordpress\", \"blog\", \"static\" or \"php\"",
    super::ghost::SecretText: "a text in quotation marks",
    super::ghost::MemberSecret: "a text in quotation marks",
    super::php::LinksWord: "\"beneath\" or \"owner\"",
    super::php::SendFiles: "a folder such as \"/srv/private\", or a prefix and a folder such as \"/private=/srv/private\"",
    super::php::PhpServer: "a socket such as \"unix:/run/php/php8.2-fpm.sock\", or \"127.0.0.1:9000\"",
    CompanionServer: "an address such as \"http://127.0.0.1:8080\", or \"off\"",
    CronPeriod: "a time such as \"60s\", or \"off\"",
    super::alerts::AlertWord: "a name such as \"disk\"",
    super::alerts::WebhookField: "a field such as \"Authorization: Bearer tk_1234\"",
    super::alerts::WebhookUrl: "an address such as \"https://hooks.example.org/seawall\"",
    LogFormat: "\"combined\" or \"json\"",
    AccessLog: "\"stdout\", \"off\" or a file's path",
    OriginHost: "\"client\", \"origin\" or a host name",
    HostPattern: "a host name such as \"blog.example.org\"",
    NamePattern: "a name such as \"utm_*\"",
    CookiePattern: "a name such as \"_ga*\"",
    DroppedCookie: "a name such as \"PHPSESSID\"",
    TrustedField: "a field name such as \"X-Forwarded-Prefix\"",
    BaseUrl: "an address such as \"https://blog.example.org\"",
    Listen: "an address such as \"127.0.0.1:8080\"",
    super::addresses::AdminAddress: "an address such as \"127.0.0.1:9180\", or \"off\"",
    super::addresses::TrustedProxy: "a network such as \"10.0.0.0/8\"",
    super::purge::PurgeSource: "a network such as \"192.0.2.0/24\"",
    super::purge::PurgePath: "a path such as \"/purge\"",
    super::routes::RoutePath: "a path such as \"/api\"",
    super::auth::ProtectedPath: "a path such as \"/drafts\"",
    super::auth::Realm: "a name such as \"Drafts\"",
    super::headers::FieldLine: "a field such as \"Permissions-Policy: camera=()\"",
    super::compress::TypePattern: "a media type such as \"text/*\"",
    super::compress::PathPattern: "a path such as \"/account/*\"",
    super::compress::PassedWord: "\"safe\", \"all\" or \"off\"",
    super::headers::FieldName: "a field's name such as \"X-Powered-By\"",
    super::cluster::ClusterName: "a name such as \"web1\"",
    super::bucket::TierWord: "\"none\", \"valkey\" or a bucket such as \"s3://my-bucket/seawall\"",
    super::bucket::StorageAddress: "an address such as \"https://s3.example.org\"",
    super::bucket::StorageWord: "a name such as \"eu-central-1\"",
    super::traces::Collector: "an address such as \"http://127.0.0.1:4318\", or \"off\"",
    super::traces::CollectorField: "a field such as \"Authorization: Bearer ...\"",
    OriginAddress: "an address such as \"http://127.0.0.1:2368\"",
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant<T: FromStr<Err = Mistake> + fmt::Debug>(text: &str) -> String {
        text.parse::<T>().expect_err(text).meant.unwrap_or_default()
    }

    #[test]
    fn words_and_their_slips() {
        assert_eq!("blog".parse(), Ok(KindWord(Kind::Blog)));
        assert!(meant::<KindWord>("genric").contains("\"generic\""));
        assert!(meant::<KindWord>("Static").contains("\"static\""));
        assert!(meant::<LogFormat>("jsno").contains("\"json\""));
        assert!(meant::<AccessLog>("sdtout").contains("\"stdout\""));
        assert!(meant::<AccessLog>("access.log").contains("\"./access.log\""));
        assert!(meant::<OriginHost>("clinet").contains("\"client\""));
        assert_eq!("/var/log/a.log".parse(), Ok(AccessLog::File("/var/log/a.log".into())));
        assert_eq!("ghost".parse(), Ok(OriginHost::Name("ghost".to_owned())));
    }

    #[test]
    fn host_names() {
        let good = [
            ("Blog.Example.org", "blog.example.org"),
            ("example.org.", "example.org"),
            ("localhost", "localhost"),
            ("*.Example.org", "*.example.org"),
            ("192.0.2.1", "192.0.2.1"),
            ("[2001:DB8::1]", "[2001:db8::1]"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ];
        for (text, name) in good {
            assert_eq!(text.parse(), Ok(HostPattern(name.to_owned())), "{text}");
        }
        let bad = [
            ("https://blog.example.org/", "\"blog.example.org\""),
            ("example.org:8080", "\"example.org\""),
            ("example.org/blog", "\"example.org\""),
            ("2001:db8::1", "\"[2001:db8::1]\""),
            ("*", ""),
            ("", ""),
            ("a..b", ""),
            ("-a.org", ""),
            ("bücher.example", ""),
            ("a b", ""),
            ("foo.*.org", ""),
        ];
        for (text, expected) in bad {
            assert!(meant::<HostPattern>(text).contains(expected), "{text}");
        }
    }

    #[test]
    fn patterns() {
        for text in ["ref", "utm_*", "*", "S+ESS*", "x[]"] {
            assert_eq!(text.parse(), Ok(NamePattern(text.to_owned())));
        }
        for text in ["", "a*b", "**", "a b", "a=1", "a;b"] {
            assert!(text.parse::<NamePattern>().is_err(), "{text}");
        }
        assert!("*".parse::<CookiePattern>().expect_err("a lone star").problem.contains("personal"));
    }

    #[test]
    fn base_urls() {
        assert_eq!("https://a.example/".parse(), Ok(BaseUrl("https://a.example".to_owned())));
        assert_eq!("http://localhost:8080".parse(), Ok(BaseUrl("http://localhost:8080".to_owned())));
        assert!(meant::<BaseUrl>("http://localhost:8080/blog").contains("http://localhost:8080\""));
        assert!(meant::<BaseUrl>("a.example").contains("https://a.example"));
        for text in ["", "ftp://a", "https://", "https://a b", "https://a?x", "https://a:x"] {
            assert!(text.parse::<BaseUrl>().is_err(), "{text}");
        }
    }
}
