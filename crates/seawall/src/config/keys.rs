//! Every key of the file by section: what an unknown key may have meant.
//!
//! serde knows the keys of the one section that it reads; a key in the wrong section, or one that another program calls by another
//! name, needs them all. A test in `manual.rs` keeps this list equal to [`File`](super::file::File).

use super::{error::Mistake, suggest::closest};

/// The sections in the order of the manual. The first one is the top of the file.
pub(super) const SECTIONS: [(&str, &[&str]); 24] = [
    (
        "",
        &[
            "source",
            "kind",
            "redirect_from",
            "server",
            "tls",
            "acme",
            "limits",
            "log",
            "traces",
            "cache",
            "origin",
            "blog",
            "ghost",
            "wordpress",
            "php",
            "static",
            "https",
            "headers",
            "auth",
            "compress",
            "purge",
            "refill",
            "alerts",
            "cluster",
            "route",
            "site",
        ],
    ),
    (
        "server",
        &[
            "listen",
            "admin",
            "admin_token_file",
            "workers",
            "h2c",
            "http3",
            "http3_port",
            "trusted_proxies",
            "trusted_fields",
            "health_path",
            "shutdown_timeout",
        ],
    ),
    ("tls", &["listen", "cert", "key"]),
    (
        "acme",
        &[
            "enabled",
            "directory",
            "email",
            "profile",
            "dir",
            "ca_file",
            "www",
            "dns_hook",
            "dns_hook_timeout",
            "eab_key_id",
            "eab_key_file",
            "on_demand",
            "ask",
        ],
    ),
    (
        "limits",
        &[
            "connections",
            "connections_per_address",
            "header_bytes",
            "header_fields",
            "target_bytes",
            "body_bytes",
            "header_timeout",
            "body_timeout",
            "write_timeout",
            "idle_timeout",
            "requests_per_second",
            "requests_burst",
            "login_attempts",
            "login_concurrency",
        ],
    ),
    ("log", &["access", "format"]),
    ("traces", &["endpoint", "sample", "hits", "service_name", "headers", "ca_file"]),
    (
        "cache",
        &[
            "memory",
            "dir",
            "disk",
            "object_max",
            "disk_object_max",
            "hold",
            "stale_if_error",
            "stale_while_revalidate",
            "ignore_cookies",
            "ignore_query",
            "keep_query",
            "honour_request_directives",
            "store_set_cookie",
            "drop_set_cookies",
            "two_visitor_proof",
            "early_hints",
            "early_hints_http1",
        ],
    ),
    (
        "origin",
        &[
            "concurrency",
            "queue",
            "queue_timeout",
            "collapse_wait",
            "connect_timeout",
            "first_byte_timeout",
            "between_bytes_timeout",
            "host",
            "ca_file",
            "addresses",
        ],
    ),
    ("blog", &["title", "base_url", "drafts"]),
    ("ghost", &["path", "activitypub", "analytics", "webhook_secret", "member_secret"]),
    ("wordpress", &["path", "secret", "cron"]),
    ("php", &["server", "document_root", "never_run", "links", "send_files", "temporary_folder"]),
    ("static", &["listing", "fallback"]),
    ("https", &["redirect", "hsts", "hsts_subdomains", "hsts_preload"]),
    ("headers", &["security", "set", "remove"]),
    ("auth", &["file", "paths", "realm", "forward"]),
    ("compress", &["enabled", "types", "min_size", "exclude", "passed", "dictionaries"]),
    ("purge", &["allow", "path"]),
    ("refill", &["concurrency"]),
    (
        "alerts",
        &[
            "webhook",
            "webhook_resolved",
            "webhook_secret",
            "webhook_fields",
            "command",
            "command_timeout",
            "server",
            "off",
            "after",
            "clear_after",
            "server_errors",
            "hit_ratio_fall",
            "certificate_left",
            "disk_free",
        ],
    ),
    (
        "cluster",
        &[
            "url",
            "name",
            "machine",
            "secret",
            "secret_file",
            "lease",
            "doubt_hold",
            "replicas",
            "tier",
            "tier_memory",
            "tier_endpoint",
            "tier_region",
            "tier_key_id",
            "tier_secret_key",
            "tier_secret_key_file",
            "tier_ca_file",
            "ca_file",
        ],
    ),
    ("route", &["path", "source", "strip_prefix", "cache", "origin"]),
    (
        "site",
        &[
            "hosts",
            "source",
            "kind",
            "redirect_from",
            "route",
            "tls",
            "cache",
            "origin",
            "blog",
            "ghost",
            "wordpress",
            "php",
            "static",
            "https",
            "headers",
            "auth",
            "compress",
        ],
    ),
];

/// Names of keys in other programs and other spellings, each with the key of ours.
const OTHER_NAMES: [(&str, &str, &str); 70] = [
    ("autoindex", "static", "listing"),
    ("browse", "static", "listing"),
    ("try_files", "static", "fallback"),
    ("spa", "static", "fallback"),
    ("single", "static", "fallback"),
    ("port", "server", "listen"),
    ("bind", "server", "listen"),
    ("address", "server", "listen"),
    ("certificate", "tls", "cert"),
    ("cert_file", "tls", "cert"),
    ("ssl_certificate", "tls", "cert"),
    ("key_file", "tls", "key"),
    ("private_key", "tls", "key"),
    ("ssl_certificate_key", "tls", "key"),
    ("threads", "server", "workers"),
    ("worker_processes", "server", "workers"),
    ("set_real_ip_from", "server", "trusted_proxies"),
    ("upstream", "", "source"),
    ("upstreams", "origin", "addresses"),
    ("backend", "", "source"),
    ("backends", "origin", "addresses"),
    ("proxy_pass", "", "source"),
    ("root", "", "source"),
    ("url", "", "source"),
    ("path", "", "source"),
    ("folder", "", "source"),
    ("type", "", "kind"),
    ("domain", "site", "hosts"),
    ("domains", "site", "hosts"),
    ("server_name", "site", "hosts"),
    ("sites", "", "site"),
    ("routes", "site", "route"),
    ("location", "site", "route"),
    ("aliases", "site", "redirect_from"),
    ("redirect_hosts", "site", "redirect_from"),
    ("www", "site", "redirect_from"),
    ("ttl", "cache", "hold"),
    ("max_age", "cache", "hold"),
    ("ignore_params", "cache", "ignore_query"),
    ("size", "cache", "memory"),
    ("max_size", "cache", "memory"),
    ("cache_dir", "cache", "dir"),
    ("proxy_cache_path", "cache", "dir"),
    ("disk_size", "cache", "disk"),
    ("max_object_size", "cache", "object_max"),
    ("client_max_body_size", "limits", "body_bytes"),
    ("max_connections", "limits", "connections"),
    ("access_log", "log", "access"),
    ("otel_exporter", "traces", "endpoint"),
    ("otlp_endpoint", "traces", "endpoint"),
    ("sample_ratio", "traces", "sample"),
    ("otel_service_name", "traces", "service_name"),
    ("force_https", "https", "redirect"),
    ("strict_transport_security", "https", "hsts"),
    ("gzip", "compress", "enabled"),
    ("brotli", "compress", "enabled"),
    ("encode", "compress", "enabled"),
    ("gzip_types", "compress", "types"),
    ("gzip_min_length", "compress", "min_size"),
    ("add_header", "headers", "set"),
    ("proxy_hide_header", "headers", "remove"),
    ("htpasswd", "auth", "file"),
    ("auth_basic", "auth", "realm"),
    ("auth_basic_user_file", "auth", "file"),
    ("redis", "cluster", "url"),
    ("redis_url", "cluster", "url"),
    ("valkey", "cluster", "url"),
    ("node", "cluster", "machine"),
    ("node_name", "cluster", "machine"),
    ("honor_request_directives", "cache", "honour_request_directives"),
];

/// Describes the mistake of an unknown `key` in the section at `path` (empty: the top of the file).
pub(super) fn unknown_key(key: &str, path: &[&str]) -> Mistake {
    let section = path.last().copied().unwrap_or_default();
    let here = match path {
        [] => "is not a key at the top of the file".to_owned(),
        ["site"] => "is not a key of [[site]]".to_owned(),
        ["route"] => "is not a key of [[route]]".to_owned(),
        ["site", "route"] => "is not a key of [[site.route]]".to_owned(),
        path => format!("is not a key of [{}]", path.join(".")),
    };
    let own = SECTIONS.iter().find(|(name, _)| *name == section).map_or(&[] as &[&str], |(_, keys)| keys);
    let remedy = match section {
        "" => format!("keys and sections here: {}", own.join(", ")),
        _ => format!("keys here: {}", own.join(", ")),
    };
    Mistake { problem: format!("`{key}` {here}"), meant: guess(key, path, own), remedy }
}

fn guess(key: &str, path: &[&str], own: &[&str]) -> Option<String> {
    let section = path.last().copied().unwrap_or_default();
    let near = closest(key, own.iter().copied());
    // One slip away from a key of this very section is the likeliest; the same word in another section comes next.
    if let Some(near) = near.filter(|near| strsim::damerau_levenshtein(key, near) <= 1) {
        return Some(format!("did you mean `{near}`?"));
    }
    let is_in_site = path.first() == Some(&"site");
    let mut elsewhere: Vec<_> = SECTIONS.iter().filter(|(name, _)| *name != section).collect();
    if is_in_site {
        // What a site can say itself is not said at the top of the file.
        elsewhere.rotate_right(1);
    }
    if let Some((name, _)) = elsewhere.iter().find(|(_, keys)| keys.contains(&key)) {
        return Some(format!("`{key}` belongs {}", place_of(name, is_in_site)));
    }
    if let Some((_, heir_section, heir)) = OTHER_NAMES.iter().find(|(name, ..)| *name == key.to_lowercase().replace('-', "_")) {
        return Some(in_section(heir, heir_section, path, own));
    }
    if let Some(near) = near {
        return Some(format!("did you mean `{near}`?"));
    }
    elsewhere.retain(|(name, _)| *name != "site");
    elsewhere.into_iter().find_map(|(name, keys)| Some(in_section(closest(key, keys.iter().copied())?, name, path, own)))
}

fn in_section(key: &str, section: &str, path: &[&str], own: &[&str]) -> String {
    if path.last().copied().unwrap_or_default() == section || own.contains(&key) {
        return format!("did you mean `{key}`?");
    }
    format!("did you mean `{key}`, {}?", place_of(section, path.first() == Some(&"site")))
}

/// Says where the keys of a section stand. A site has sections of its own.
fn place_of(section: &str, is_in_site: bool) -> String {
    let is_of_site = SECTIONS.iter().any(|(name, keys)| *name == "site" && keys.contains(&section));
    match section {
        "" => "at the top of the file".to_owned(),
        "site" => "in [[site]]".to_owned(),
        "route" if is_in_site => "in [[site.route]]".to_owned(),
        "route" => "in [[route]]".to_owned(),
        section if is_in_site && is_of_site => format!("in [site.{section}]"),
        section => format!("in [{section}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_and_what_was_meant() {
        let cases: [(&str, &[&str], &str); 24] = [
            ("lisen", &["server"], "did you mean `listen`?"),
            ("header-bytes", &["limits"], "did you mean `header_bytes`?"),
            ("host", &["site"], "did you mean `hosts`?"),
            ("memroy", &["cache"], "did you mean `memory`?"),
            ("connections", &["server"], "`connections` belongs in [limits]"),
            ("source", &["server"], "`source` belongs at the top of the file"),
            ("listen", &[], "`listen` belongs in [server]"),
            ("port", &["server"], "did you mean `listen`?"),
            ("port", &[], "did you mean `listen`, in [server]?"),
            ("ttl", &["site", "cache"], "did you mean `hold`?"),
            ("upstream", &["site"], "did you mean `source`?"),
            ("server_name", &[], "did you mean `hosts`, in [[site]]?"),
            ("concurency", &["limits"], "did you mean `concurrency`, in [origin]?"),
            ("sever", &[], "did you mean `server`?"),
            // Inside a site, what a site can say itself belongs there; the top of the file is about another site, or none.
            ("kind", &["site", "route"], "`kind` belongs in [[site]]"),
            ("source", &["site", "cache"], "`source` belongs in [[site]]"),
            ("listing", &["site", "cache"], "`listing` belongs in [site.static]"),
            ("strip_prefix", &["site", "origin"], "`strip_prefix` belongs in [[site.route]]"),
            ("workers", &["site"], "`workers` belongs in [server]"),
            ("autoindex", &["site", "cache"], "did you mean `listing`, in [site.static]?"),
            ("kind", &["route"], "`kind` belongs at the top of the file"),
            // A section that can be there several times has two brackets.
            ("strip_prefix", &["server"], "`strip_prefix` belongs in [[route]]"),
            ("hosts", &[], "`hosts` belongs in [[site]]"),
            ("hosts", &["server"], "`hosts` belongs in [[site]]"),
        ];
        for (key, path, expected) in cases {
            assert_eq!(unknown_key(key, path).meant.as_deref(), Some(expected), "{key} in {path:?}");
        }
        let stranger = unknown_key("banana", &["log"]);
        assert_eq!((stranger.meant, stranger.remedy.as_str()), (None, "keys here: access, format"));
    }

    #[test]
    fn other_names_lead_to_keys_that_exist() {
        for (name, section, key) in OTHER_NAMES {
            let (_, keys) = SECTIONS.iter().find(|(known, _)| *known == section).expect(section);
            assert!(keys.contains(&key), "{name} leads to {key}");
            assert!(!keys.contains(&name), "{name} is a key of ours");
        }
    }
}
