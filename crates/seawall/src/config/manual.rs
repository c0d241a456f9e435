//! `doc/configuration.md`, made of the comments in `file.rs`; and the promise that what they say is so.

use super::{file::File, keys::SECTIONS};

/// A struct of `file.rs` with its comment and its keys.
pub(super) struct Section {
    pub(super) name: &'static str,
    text: Vec<&'static str>,
    pub(super) keys: Vec<Key>,
}

/// A field with a comment.
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) text: Vec<&'static str>,
}

impl Key {
    /// Returns the documented default as it would be written in the file, or `None`.
    pub(super) fn default(&self) -> Option<&'static str> {
        let (_, default) = self.text.iter().find_map(|line| line.split_once("Default: ")).expect("every key names its default");
        default.strip_prefix('`').map(|quoted| quoted.split('`').next().expect("a closing quote"))
    }
}

/// Returns the sections of `file.rs`, in its order.
pub(super) fn sections() -> Vec<Section> {
    const NAMES: [(&str, &str); 24] = [
        ("File", ""),
        ("Server", "server"),
        ("Tls", "tls"),
        ("Acme", "acme"),
        ("Limits", "limits"),
        ("Log", "log"),
        ("Traces", "traces"),
        ("Cache", "cache"),
        ("Origin", "origin"),
        ("Blog", "blog"),
        ("Ghost", "ghost"),
        ("WordPress", "wordpress"),
        ("Php", "php"),
        ("Static", "static"),
        ("Https", "https"),
        ("Headers", "headers"),
        ("Auth", "auth"),
        ("Compress", "compress"),
        ("Purge", "purge"),
        ("Refill", "refill"),
        ("Alerts", "alerts"),
        ("Cluster", "cluster"),
        ("Route", "route"),
        ("Site", "site"),
    ];
    let mut sections: Vec<Section> = Vec::new();
    let mut text = Vec::new();
    for line in include_str!("file.rs").lines().map(str::trim) {
        if let Some(comment) = line.strip_prefix("///") {
            text.push(comment.trim());
        } else if let Some(name) = line.strip_prefix("pub struct ") {
            let name = name.trim_end_matches(" {");
            let (_, name) = NAMES.iter().find(|(known, _)| *known == name).expect("a known section");
            sections.push(Section { name, text: std::mem::take(&mut text), keys: Vec::new() });
        } else if let Some((name, _)) = line.strip_prefix("pub ").and_then(|field| field.split_once(": ")) {
            if let Some(section) = sections.last_mut().filter(|_| !text.is_empty()) {
                section.keys.push(Key { name, text: std::mem::take(&mut text) });
            }
        } else if !line.starts_with('#') {
            text.clear();
        }
    }
    sections
}

const HEAD: &str = "\
# Configuration

`seawall serve SOURCE` needs no file. Write a `seawall.toml` when you want to change something. Start with one of the [examples](../examples), and check
your file with `seawall check`: it shows every error with its line and what to do about it.

| you want to | section |
|---|---|
| say what is served | [the top of the file](#the-top-of-the-file), [`[[site]]`](#site-one-of-several-sites), [`[[route]]`](#route-and-siteroute-a-part-of-a-site-for-which-another-server-answers) |
| choose addresses and ports | [`[server]`](#server-where-to-listen-and-the-process-itself) |
| use HTTPS | [`[tls]`](#tls-and-sitetls-https), [`[acme]`](#acme-certificates-that-seawall-gets-by-itself), [`[https]`](#https-and-sitehttps-sending-visitors-to-https) |
| decide what is stored, and for how long | [`[cache]`](#cache-and-sitecache-what-is-stored-and-for-how-long), [`[compress]`](#compress-and-sitecompress-gzip-brotli-and-zstandard) |
| let a plugin purge | [`[purge]`](#purge-purge-requests-on-the-sites-own-addresses), [`[refill]`](#refill-fetching-pages-again-after-a-soft-purge) |
| protect your server | [`[origin]`](#origin-and-siteorigin-how-the-server-behind-the-cache-is-treated), [`[limits]`](#limits-limits-for-one-client-and-for-all-of-them-together) |
| serve a Ghost | [`[ghost]`](#ghost-and-siteghost-for-a-server-that-is-a-ghost) |
| serve a WordPress | [`[wordpress]`](#wordpress-and-sitewordpress-for-a-wordpress) |
| run an application in PHP | [`[php]`](#php-and-sitephp-for-a-folder-with-an-application-in-php) |
| serve a folder or a blog | [`[static]`](#static-and-sitestatic-for-a-folder-of-finished-files), [`[blog]`](#blog-and-siteblog-for-a-folder-of-markdown) |
| ask for a password, add fields | [`[auth]`](#auth-and-siteauth-a-password-for-a-site-or-for-parts-of-it-http-basic-rfc-7617), [`[headers]`](#headers-and-siteheaders-fields-to-add-to-the-origins-responses-and-to-remove-from-them) |
| write an access log | [`[log]`](#log-the-access-log) |
| trace requests | [`[traces]`](#traces-spans-for-an-opentelemetry-collector) |
| be told when something is wrong | [`[alerts]`](#alerts-what-you-are-told-without-asking) |
| run several Seawalls as one | [`[cluster]`](#cluster-several-seawalls-that-act-as-one) |

Without `--config` and SOURCE, Seawall reads `./seawall.toml` if it exists. A flag overrides its environment variable, both override the file, and the file
overrides the default. An empty variable counts as absent. Relative paths in the file begin at the file's folder.

- Sizes are whole numbers with a unit: `\"64KiB\"`, `\"16MiB\"`, `\"1GiB\"` (powers of 1024), `\"10MB\"` (powers of 1000), or bare bytes: `1048576`.
- Durations are whole numbers with one unit: `\"250ms\"`, `\"30s\"`, `\"5m\"`, `\"2h\"`, `\"7d\"`.
- Unknown keys are errors. Nothing is guessed.

";

/// Writes the whole of `doc/configuration.md`.
fn manual() -> String {
    let mut page = HEAD.to_owned();
    for section in sections() {
        let mut lines = section.text.iter();
        let title = lines.next().expect("a section has a comment").trim_end_matches('.');
        page += &format!("## {title}\n");
        page += &paragraphs(lines.copied());
        for key in section.keys {
            page += &format!("\n### `{}`\n\n", key.name);
            page += &paragraphs(key.text.into_iter());
        }
        page.push('\n');
    }
    page.trim_end().to_owned() + "\n"
}

fn paragraphs(lines: impl Iterator<Item = &'static str>) -> String {
    lines.map(|line| format!("{line}\n")).collect()
}

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../doc/configuration.md");

/// After a change of the comments: `SEAWALL_WRITE_MANUAL=1 cargo test -p seawall manual` writes the page anew.
#[test]
fn the_page_in_doc_is_made_of_the_comments() {
    if std::env::var_os("SEAWALL_WRITE_MANUAL").is_some() {
        std::fs::write(PAGE, manual()).expect("the page can be written");
    }
    let page = std::fs::read_to_string(PAGE).expect("doc/configuration.md");
    assert!(
        page == manual(),
        "doc/configuration.md is not what the comments in config/file.rs say: run this test with SEAWALL_WRITE_MANUAL=1"
    );
}

/// Every key is in the manual with a default, and in the list that finds what an unknown key meant.
#[test]
fn the_manual_and_the_list_of_keys_are_complete() {
    let sections = sections();
    assert_eq!(sections.len(), SECTIONS.len());
    let subsections = [
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
    ];
    for (section, (name, keys)) in sections.iter().zip(SECTIONS) {
        assert_eq!(section.name, name);
        // In a route, `cache` is a key, in `[php]` and `[alerts]`, `server` is, and in `[traces]`, `headers`.
        let is_key = |key: &str| {
            !subsections.contains(&key) || matches!((name, key), ("route", "cache") | ("php" | "alerts", "server") | ("traces", "headers"))
        };
        let listed: Vec<&str> = keys.iter().copied().filter(|key| is_key(key)).collect();
        assert_eq!(section.keys.iter().map(|key| key.name).collect::<Vec<_>>(), listed, "[{name}]");
        for key in &section.keys {
            key.default();
        }
    }
}

/// The list of keys is the one that serde reads: a key in it is known, its neighbour is not.
#[test]
fn serde_knows_the_keys_of_the_list() {
    for (section, keys) in SECTIONS {
        let header = match section {
            "" => String::new(),
            "site" => "[[site]]\n".to_owned(),
            "route" => "[[route]]\n".to_owned(),
            section => format!("[{section}]\n"),
        };
        let message = toml::from_str::<File>(&format!("{header}no_such_key = 1")).expect_err("unknown").to_string();
        for key in keys {
            assert!(message.contains(&format!("`{key}`")), "{key} in {message}");
        }
        assert_eq!(message.matches('`').count(), 2 * keys.len() + 2, "{message}");
    }
}
