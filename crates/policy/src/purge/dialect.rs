//! Purge requests in the dialects that plugins speak: what a request on a site's own address asks to be purged.
//!
//! Plugins were written for Varnish, nginx, Fastly or Souin, and send what those take. Each dialect is understood where its meaning is
//! plain; where it is not (a pattern that is not a prefix), the request is refused with the reason, since a purge that understood half would
//! leave pages in place that its sender believes gone. What comes out is an [`Order`] for the site that was asked. Who may ask is not
//! decided here.
//!
//! | dialect | request |
//! |---|---|
//! | `varnish` | `PURGE /path` |
//! | `proxy-cache-purge` | `PURGE` or `BAN` with `X-Purge-Method: default`, `exact`, `regex` (path and `.*`) or `tags` |
//! | `nginx-helper` | `GET /purge/path` below the path that is set for it; `PURGE /purgeall` |
//! | `fastly` | `PURGE` with `Surrogate-Key`; with `Fastly-Key`: `POST /service/ID/purge`, `.../purge/KEY`, `.../purge_all` |
//! | `souin` | `PURGE /souin-api/souin` with `Surrogate-Key`, `.../flush`, `.../ID` |
//! | `xkey` | `PURGE` with `xkey-purge`, `xkey-softpurge` or `xkey` |

use http::Method;
use semantics::{percent, request::RequestHead};
use serde::{Deserialize, Serialize};

use super::{Address, Maker, Order, What};
use crate::Policy;

/// The most keys one purge request may name, as Fastly has it.
pub const KEYS_MAX: usize = 256;

/// A way of asking for a purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// `PURGE` and a URL.
    Varnish,
    /// The WordPress plugin of that name, once Varnish HTTP Purge.
    ProxyCachePurge,
    /// The WordPress plugin of that name, and `ngx_cache_purge`.
    NginxHelper,
    /// Fastly's API and its plugins.
    Fastly,
    /// Souin's API and its plugins.
    Souin,
    /// Varnish with `vmod_xkey`.
    Xkey,
}

impl Dialect {
    /// All dialects, in the order of their numbers.
    pub const ALL: [Self; 6] = [Self::Varnish, Self::ProxyCachePurge, Self::NginxHelper, Self::Fastly, Self::Souin, Self::Xkey];

    /// Returns the name of this dialect in metrics and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Varnish => "varnish",
            Self::ProxyCachePurge => "proxy-cache-purge",
            Self::NginxHelper => "nginx-helper",
            Self::Fastly => "fastly",
            Self::Souin => "souin",
            Self::Xkey => "xkey",
        }
    }
}

/// The reason why a purge request is not understood, in words for its sender.
pub type Misunderstood = &'static str;

const NOT_A_PREFIX: Misunderstood = "of the patterns only a path with .* at its end is understood, such as /tag/rust/.*";
const NO_KEYS: Misunderstood = "no keys: they belong in the field Surrogate-Key";
const TOO_MANY_KEYS: Misunderstood = "too many keys: at most 256 in one request";
const METHODS: Misunderstood = "X-Purge-Method is one of default, exact, regex and tags";
const TAG_PATTERN: Misunderstood = "X-Cache-Tags-Pattern is understood as tags with | between them, such as post-1|term-2";

/// The path of Souin's API.
const SOUIN: &str = "/souin-api/souin";

/// Tells whether a request whose method is neither GET nor HEAD asks for a purge. It takes only what no origin of a blog would take for its
/// own: `PURGE` and `BAN` are in no RFC, and Fastly's API is known by the field that carries its key.
pub(crate) fn is_purge(head: &RequestHead<'_>) -> bool {
    is_purge_method(head.method) || (*head.method == Method::POST && service(head.path).is_some() && value(head, "fastly-key").is_some())
}

fn is_purge_method(method: &Method) -> bool {
    matches!(method.as_str(), "PURGE" | "BAN")
}

/// Returns the path behind `prefix`, from its slash on.
pub(crate) fn below<'a>(path: &'a str, prefix: &str) -> Option<&'a str> {
    path.strip_prefix(prefix).filter(|rest| rest.starts_with('/'))
}

impl Policy {
    /// Reads the order in a request for which the verdict was [`Verdict::Purge`](crate::Verdict::Purge). It is an order for the site named
    /// `site`, to which the request was sent; hosts and paths in it are as they were written.
    ///
    /// # Errors
    /// When it cannot be told what is meant.
    pub fn purge_order(&self, site: &str, head: &RequestHead<'_>) -> Result<Order, Misunderstood> {
        let soft = is_set(head, "x-purge-soft") || is_set(head, "fastly-soft-purge");
        let Understood { dialect, what, soft } = self.understood(head, soft)?;
        Ok(Order::for_site(site, what, !soft, Maker::Plugin(dialect)))
    }

    fn understood(&self, head: &RequestHead<'_>, soft: bool) -> Result<Understood, Misunderstood> {
        let (dialect, what) = match (head.method, self.settings().purge_path.as_deref()) {
            (&Method::GET, Some(prefix)) => (Dialect::NginxHelper, vec![by_path(head, below(head.path, prefix).unwrap_or_default())]),
            (&Method::POST, _) => return by_service(head, soft),
            _ => {
                if let Some(rest) = head.path.strip_prefix(SOUIN) {
                    (Dialect::Souin, by_souin(head, rest)?)
                } else if head.path == "/purgeall" {
                    (Dialect::NginxHelper, vec![What::Everything])
                } else if service(head.path).is_some() && value(head, "fastly-key").is_some() {
                    return by_service(head, soft);
                } else if let Some(by_xkey) = by_xkey(head, soft)? {
                    return Ok(by_xkey);
                } else if value(head, "surrogate-key").is_some() {
                    (Dialect::Fastly, keys(head, &["surrogate-key"])?)
                } else {
                    by_method(head)?
                }
            }
        };
        Ok(Understood { dialect, what, soft })
    }
}

/// A request as its dialect has it.
struct Understood {
    dialect: Dialect,
    what: Vec<What>,
    soft: bool,
}

/// Names a path of the host that was asked. A plugin purges over http or https, whichever it likes, and means both.
fn here(head: &RequestHead<'_>, path: &str) -> Address {
    Address::over_either(head.authority, path)
}

/// Reads a path as `ngx_cache_purge` does, which takes a `*` at the end for whatever may follow.
fn by_path(head: &RequestHead<'_>, path: &str) -> What {
    match path.strip_suffix('*') {
        Some(prefix) => What::Prefix(here(head, prefix)),
        None => What::Url(here(head, path)),
    }
}

/// Reads a plain `PURGE`, or what `X-Purge-Method` makes of it.
fn by_method(head: &RequestHead<'_>) -> Result<(Dialect, Vec<What>), Misunderstood> {
    let url = || vec![What::Url(here(head, head.path))];
    let method = value(head, "x-purge-method").map(str::to_ascii_lowercase);
    let is_ban = head.method.as_str() == "BAN";
    let what = match method.as_deref() {
        Some("default" | "exact") => url(),
        Some("regex") => vec![by_pattern(head)?],
        Some("tags") => by_tag_pattern(value(head, "x-cache-tags-pattern").unwrap_or_default())?,
        Some(_) => return Err(METHODS),
        None if is_ban => vec![by_pattern(head)?],
        None if head.path.ends_with(".*") => return Ok((Dialect::Varnish, vec![by_pattern(head)?])),
        None if value(head, "fastly-key").is_some() || value(head, "fastly-soft-purge").is_some() => return Ok((Dialect::Fastly, url())),
        None => return Ok((Dialect::Varnish, url())),
    };
    Ok((Dialect::ProxyCachePurge, what))
}

/// Reads a pattern of paths as plugins write them: `/a/.*`, perhaps with `^` before it and `$` behind it; or `^/a$`, which is one path. What a dot
/// within the path may stand for is not looked at: plugins write paths there as they are.
fn by_pattern(head: &RequestHead<'_>) -> Result<What, Misunderstood> {
    let pattern = head.path;
    if head.query.is_some() {
        return Err(NOT_A_PREFIX);
    }
    let literal = |text: &str| {
        let text = text.replace("\\.", ".").replace("\\/", "/").replace("\\-", "-");
        if text.starts_with('/') && !text.contains(['^', '$', '*', '+', '?', '(', ')', '[', ']', '{', '}', '|', '\\']) {
            Ok(text)
        } else {
            Err(NOT_A_PREFIX)
        }
    };
    let open = pattern.strip_suffix('$').unwrap_or(pattern).strip_suffix(".*");
    if let Some(prefix) = open {
        return Ok(What::Prefix(here(head, &literal(prefix.strip_prefix('^').unwrap_or(prefix))?)));
    }
    let exact = pattern.strip_prefix('^').and_then(|rest| rest.strip_suffix('$')).ok_or(NOT_A_PREFIX)?;
    Ok(What::Url(here(head, &literal(exact)?)))
}

fn by_tag_pattern(pattern: &str) -> Result<Vec<What>, Misunderstood> {
    let is_plain = |tag: &str| !tag.is_empty() && tag.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:/".contains(&b));
    let tags: Vec<&str> = pattern.split('|').map(str::trim).collect();
    if tags.len() > KEYS_MAX {
        return Err(TOO_MANY_KEYS);
    }
    if !tags.iter().copied().all(is_plain) {
        return Err(TAG_PATTERN);
    }
    Ok(tags.into_iter().map(|tag| What::Tag(tag.to_owned())).collect())
}

/// Returns what follows Fastly's `/service/ID`.
fn service(path: &str) -> Option<&str> {
    let (id, _) = path.strip_prefix("/service/")?.split_once('/')?;
    let rest = path.get("/service/".len() + id.len()..)?;
    let known = matches!(rest, "/purge" | "/purge_all") || rest.strip_prefix("/purge/").is_some_and(|key| !key.is_empty());
    (known && !id.is_empty()).then_some(rest)
}

fn by_service(head: &RequestHead<'_>, soft: bool) -> Result<Understood, Misunderstood> {
    let dialect = Dialect::Fastly;
    match service(head.path).unwrap_or_default() {
        // There, too, a purge of everything cannot be soft.
        "/purge_all" => Ok(Understood { dialect, what: vec![What::Everything], soft: false }),
        "/purge" => Ok(Understood { dialect, what: keys(head, &["surrogate-key"])?, soft }),
        rest => {
            let key = decoded(rest.strip_prefix("/purge/").unwrap_or_default()).ok_or(NO_KEYS)?;
            Ok(Understood { dialect, what: vec![What::Tag(key)], soft })
        }
    }
}

fn by_souin(head: &RequestHead<'_>, rest: &str) -> Result<Vec<What>, Misunderstood> {
    const UNKNOWN: Misunderstood = "Souin's API takes Surrogate-Key, /flush, or an ID such as GET-http-blog.example.org-/hello/";
    let id = match rest {
        "" | "/" => return keys(head, &["surrogate-key"]),
        "/flush" => return Ok(vec![What::Everything]),
        rest => decoded(rest.strip_prefix('/').ok_or(UNKNOWN)?).ok_or(UNKNOWN)?,
    };
    if matches!(id.as_str(), ".*" | ".+") {
        return Ok(vec![What::Everything]);
    }
    let id = id.strip_prefix('^').unwrap_or(&id);
    let id = id.strip_suffix('$').unwrap_or(id);
    let url = ["GET-http-", "GET-https-", "HEAD-http-", "HEAD-https-"].iter().find_map(|start| id.strip_prefix(start)).ok_or(UNKNOWN)?;
    // A host may have hyphens of its own; a path has its slash.
    let at = url.find("-/").ok_or(UNKNOWN)?;
    let (host, path) = (&url[..at], &url[at + 1..]);
    let prefix = path.strip_suffix(".*").or_else(|| path.strip_suffix(".+"));
    let path = prefix.unwrap_or(path).split('?').next().unwrap_or_default().to_owned();
    if host.is_empty() || path.contains(['*', '+', '(', '[', '|', '\\']) {
        return Err(UNKNOWN);
    }
    let address = Address::over_either(host, &path);
    Ok(vec![if prefix.is_some() { What::Prefix(address) } else { What::Url(address) }])
}

/// Reads the fields of xkey; `None` if the request has none of them. With both kinds in one request, everything goes hard: never less than was asked.
fn by_xkey(head: &RequestHead<'_>, soft: bool) -> Result<Option<Understood>, Misunderstood> {
    let hard_fields = ["xkey-purge", "xkey"];
    let is_hard = hard_fields.iter().any(|name| value(head, name).is_some());
    let is_soft = value(head, "xkey-softpurge").is_some();
    if !is_hard && !is_soft {
        return Ok(None);
    }
    let what = keys(head, &["xkey-purge", "xkey", "xkey-softpurge"])?;
    Ok(Some(Understood { dialect: Dialect::Xkey, what, soft: soft || !is_hard }))
}

/// Returns the keys in these fields, each once, with spaces or commas between them.
fn keys(head: &RequestHead<'_>, names: &[&str]) -> Result<Vec<What>, Misunderstood> {
    let mut keys: Vec<&str> = Vec::new();
    for name in names {
        head.fields.lines.for_each(name, |line| {
            let line = std::str::from_utf8(line).unwrap_or_default();
            for key in line.split([' ', ',', '\t']).filter(|key| !key.is_empty()) {
                if keys.len() <= KEYS_MAX && !keys.contains(&key) {
                    keys.push(key);
                }
            }
        });
    }
    match keys.len() {
        0 => Err(NO_KEYS),
        n if n > KEYS_MAX => Err(TOO_MANY_KEYS),
        _ => Ok(keys.into_iter().map(|key| What::Tag(key.to_owned())).collect()),
    }
}

/// Returns the last line of a field.
fn value<'a>(head: &RequestHead<'a>, name: &str) -> Option<&'a str> {
    let mut value = None;
    head.fields.lines.for_each(name, |line| value = std::str::from_utf8(line).ok().map(str::trim));
    value
}

/// Tells whether a field says yes: it is there, and not empty, `0`, `false`, `no` or `off`.
fn is_set(head: &RequestHead<'_>, name: &str) -> bool {
    let no = ["", "0", "false", "no", "off"];
    value(head, name).is_some_and(|value| !no.iter().any(|no| value.eq_ignore_ascii_case(no)))
}

/// Decodes percent-encoded text, if what comes out is visible ASCII: tags and addresses have nothing else.
fn decoded(text: &str) -> Option<String> {
    let bytes = percent::decoded_strictly(text.as_bytes())?;
    String::from_utf8(bytes).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_graphic()))
}

#[cfg(test)]
mod tests;
