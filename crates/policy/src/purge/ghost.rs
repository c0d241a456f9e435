//! What a Ghost says by itself about what has changed: `X-Cache-Invalidate` in its answers to writes, a redirect to its password page, and webhooks.
//!
//! The Ghost is believed, its clients are not: a field of this name in a request is removed before the Ghost sees it. What is not understood means
//! that everything has changed.

use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use semantics::{
    invalidation::is_safe,
    reference::resolve,
    target::{normal_path, valid_authority},
};
use serde::Deserialize;

use super::{
    Address, What,
    fields::path_tag,
    signals::{Addresses, Signal, Signals, Withdrawal, WriteSubject},
    webhook::{Signed, Webhook, WebhookFormat, WebhookRefusal},
};
use crate::Policy;

/// The webhooks of a Ghost. One that is answered with 410 is deleted by it, so none is.
pub(super) static WEBHOOKS: WebhookFormat = WebhookFormat {
    path: "/.seawall/ghost",
    signature_field: "x-ghost-signature",
    scheme: "X-Ghost-Signature",
    // Older versions sign the content alone.
    signed: Signed::ContentThenTime,
    time_unit: 1,
    // A post with all its forms is some 100 KiB.
    bytes_max: 16 << 20,
    // "Site changed" has the same content in every Ghost.
    counts_for_each_site: true,
    is_answered_in_json: false,
    too_large: WebhookRefusal(StatusCode::PAYLOAD_TOO_LARGE, "a webhook has 16 MiB at most"),
    unsigned: WebhookRefusal(
        StatusCode::UNAUTHORIZED,
        "this webhook is not signed: give it the secret in Ghost's settings that is set as webhook_secret in [ghost]",
    ),
    wrongly_signed: WebhookRefusal(
        StatusCode::FORBIDDEN,
        "the signature of this webhook is wrong: its secret in Ghost's settings must be the same as webhook_secret in [ghost]",
    ),
    not_understood: WebhookRefusal(StatusCode::BAD_REQUEST, "this is not a webhook of a Ghost: its content is not understood"),
    // Whoever has sent it twice has nothing to mend.
    again: WebhookRefusal(StatusCode::OK, "nothing to purge: this webhook came before, and has counted"),
    without_secret: "Or set webhook_secret in [ghost], and the same secret in Ghost's settings.",
};

/// The tag of everything that a Ghost answers below `/members/`: purged when somebody writes a comment.
const MEMBERS_TAG: &str = "ghost-members";

/// The tag of everything that a Ghost answers by its API for content: purged when a key of an API changes.
const CONTENT_API_TAG: &str = "ghost-content-api";

/// The cookie of an editor's session.
const EDITORS_COOKIE: &str = "ghost-admin-api-session=";

/// The most pages of which a signal can say that they have changed. More of them are everything.
const PAGES_MAX: usize = 256;

/// The most addresses that are taken from what a source says about a post.
const RELATED_MAX: usize = 32;

impl Policy {
    /// Reads the lines of the [field](Self::signal_field) in an answer of the source. A path in it is a page of each of these `hosts`.
    #[must_use]
    pub fn signalled<'a>(&self, hosts: &[&str], lines: impl IntoIterator<Item = &'a HeaderValue>) -> Signal {
        let mut signal = Signal::default();
        for line in lines {
            let Ok(line) = line.to_str() else {
                signal.everything = true;
                continue;
            };
            for item in line.split(',').map(str::trim).filter(|item| !item.is_empty()) {
                match self.item(item, hosts) {
                    Some(changed) => {
                        signal.changed.extend(changed.into_iter().filter(|what| !signal.changed.contains(what)).collect::<Vec<_>>())
                    }
                    None => signal.everything = true,
                }
            }
        }
        if signal.changed.len() > PAGES_MAX {
            signal.everything = true;
            signal.changed.truncate(PAGES_MAX);
        }
        signal
    }

    /// Reads one item of the field. `None`: everything, or not understood.
    fn item(&self, item: &str, hosts: &[&str]) -> Option<Vec<What>> {
        let (own, target) = if item.starts_with('/') && !item.starts_with("//") {
            (None, item)
        } else {
            let rest = ["http://", "https://", "//"].iter().find_map(|scheme| item.strip_prefix(scheme))?;
            let (host, target) = rest.split_at(rest.find('/')?);
            (Some(host).filter(|host| valid_authority(host)).map(Some)?, target)
        };
        let path = target.split(['?', '#']).next().unwrap_or_default();
        if path.contains('*') || path.bytes().any(|b| b <= b' ' || b == b'\\') {
            return None;
        }
        let path = normal_path(path).ok()?;
        let within = self.within_base(&path).unwrap_or(&path);
        // Previews are never stored.
        if within.starts_with("/p/") {
            return Some(Vec::new());
        }
        // The source names comments by a path at which nobody asks for them.
        if within.starts_with("/members/") || path.contains("/api/members/comments/") || path.contains("/members/api/comments/") {
            return Some(vec![What::Tag(MEMBERS_TAG.to_owned())]);
        }
        let hosts = own.as_ref().map_or(hosts, std::slice::from_ref);
        let base = self.settings().base_path.as_str();
        let both = [Some(path.to_string()), self.within_base(&path).is_none().then(|| format!("{base}{path}"))];
        let page = |path: String| hosts.iter().map(move |host| What::Url(Address::over_either(host, &path))).collect::<Vec<_>>();
        Some(both.into_iter().flatten().flat_map(page).collect())
    }

    /// Returns a path as it is below the path at which the source's software is. `None`: it is elsewhere.
    fn within_base<'a>(&self, path: &'a str) -> Option<&'a str> {
        path.strip_prefix(self.settings().base_path.as_str()).filter(|rest| rest.starts_with('/'))
    }

    /// Returns the tag of what is stored for this path, by which a signal purges it without the rest of the site.
    pub(crate) fn signal_tag(&self, path: &str) -> Option<Box<str>> {
        if self.preset.obeys_purge_fields {
            return path_tag(path).map(Into::into);
        }
        let within = self.within_base(path).filter(|_| self.preset.signals == Signals::Ghost)?;
        let is_of_content_api = |rest: &str| rest.split('/').any(|segment| segment == "content");
        if within.starts_with("/members/") {
            Some(MEMBERS_TAG.into())
        } else {
            within.strip_prefix("/ghost/api/").is_some_and(is_of_content_api).then(|| CONTENT_API_TAG.into())
        }
    }

    /// Returns what a change of the keys of the source's APIs ends.
    #[must_use]
    pub fn ended_by_keys(&self) -> What {
        What::Tag(CONTENT_API_TAG.to_owned())
    }

    /// Returns what a request to the source's API for editors writes; `None` if it is a read, or something else.
    #[must_use]
    pub fn written(&self, method: &Method, path: &str) -> Option<WriteSubject> {
        if self.preset.signals != Signals::Ghost || is_safe(method) {
            return None;
        }
        // `/ghost/api/admin/posts/`, and `/ghost/api/v4/admin/posts/` before Ghost 5.
        let rest = self.within_base(path)?.strip_prefix("/ghost/api/")?;
        let mut segments = rest.split('/').skip_while(|segment| *segment != "admin");
        segments.next()?;
        Some(match segments.next()? {
            "posts" | "pages" => WriteSubject::Post,
            "settings" => WriteSubject::Settings,
            "schedules" => WriteSubject::Schedule,
            "integrations" | "api_keys" => WriteSubject::Keys,
            _ => WriteSubject::Other,
        })
    }

    /// Tells whether an editor may have sent a write of this kind. The source refuses those that carry nothing by which it knows an editor.
    #[must_use]
    pub fn may_be_of_editor(&self, written: WriteSubject, headers: &HeaderMap) -> bool {
        let has_session = |line: &HeaderValue| line.to_str().is_ok_and(|line| line.contains(EDITORS_COOKIE));
        // A scheduler shows its token in the query.
        written == WriteSubject::Schedule
            || headers.contains_key(header::AUTHORIZATION)
            || headers.get_all(header::COOKIE).iter().any(has_session)
    }

    /// Returns whether an accepted write may have taken posts from readers, of which its answer says nothing: a deletion of posts, of an author with his
    /// posts, or of everything, or an action on many posts.
    #[must_use]
    pub fn may_withdraw_unsaid(&self, method: &Method, path: &str, written: WriteSubject) -> bool {
        let deletes = *method == Method::DELETE;
        match written {
            WriteSubject::Post => deletes || path.trim_end_matches('/').ends_with("/bulk"),
            WriteSubject::Other => deletes && ["/db/", "/users/"].iter().any(|resource| path.contains(resource)),
            WriteSubject::Settings | WriteSubject::Schedule | WriteSubject::Keys => false,
        }
    }

    /// Returns the path of the front page.
    #[must_use]
    pub fn front_page(&self) -> String {
        format!("{}/", self.settings().base_path)
    }

    /// Returns the paths of what lists all posts: feeds, and maps for search engines.
    #[must_use]
    pub fn lists_of_all(&self) -> [String; 4] {
        ["/rss/", "/sitemap.xml", "/sitemap-posts.xml", "/sitemap-pages.xml"].map(|path| format!("{}{path}", self.settings().base_path))
    }

    /// Returns whether an answer to a request of nobody's for this target says that the whole site is behind a password.
    #[must_use]
    pub fn says_private(&self, authority: &str, target: &str, status: StatusCode, headers: &HeaderMap) -> bool {
        // A permanent one only adds the slash at the end of a path that a client chose.
        if self.preset.signals != Signals::Ghost
            || !matches!(status, StatusCode::FOUND | StatusCode::SEE_OTHER | StatusCode::TEMPORARY_REDIRECT)
        {
            return false;
        }
        let within = |target: &str| self.within_base(target.split('?').next().unwrap_or_default()).map(str::to_owned);
        // The source's routes and redirects may lead to pages below it. It alone says to where its visitor wanted.
        let leads_to_password = |target: &str| {
            let wanted = target.split_once('?').is_some_and(|(_, query)| query.split('&').any(|parameter| parameter.starts_with("r=")));
            wanted && within(target).is_some_and(|path| path == "/private/")
        };
        let location = headers.get(header::LOCATION);
        let location = location.and_then(|location| resolve(authority, target, location.as_bytes()));
        let is_of_password = within(target).is_some_and(|path| path == "/private" || path.starts_with("/private/"));
        !is_of_password && location.is_some_and(|location| leads_to_password(&location))
    }

    /// Returns whether an answer to a request of nobody's for this target is a page that only a public site shows.
    #[must_use]
    pub fn says_public(&self, target: &str, status: StatusCode, headers: &HeaderMap) -> bool {
        const SHOWN_BY_ALL: [&str; 4] = ["/ghost/", "/members/", "/content/", "/private/"];
        let path = target.split('?').next().unwrap_or_default();
        let is_html = headers.get(header::CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"text/html"));
        status == StatusCode::OK
            && is_html
            && self.within_base(path).is_some_and(|path| !SHOWN_BY_ALL.iter().any(|shown| path.starts_with(shown)))
    }

    /// Returns whether a purge of this is one of comments or of keys, and nothing that was published.
    #[must_use]
    pub fn is_aside(what: &What) -> bool {
        matches!(what, What::Tag(tag) if tag == MEMBERS_TAG || tag == CONTENT_API_TAG)
    }
}

/// Reads a webhook. `None`: it is none.
pub(super) fn webhook(content: &[u8]) -> Option<Webhook> {
    let said: GhostEvent = serde_json::from_slice(content).ok()?;
    let about = [&said.post, &said.page].into_iter().flatten().next();
    Some(match about {
        Some(change) if change.is_public() => {
            let now = change.current.as_ref().or(change.previous.as_ref());
            let mut addresses = now.map(Post::addresses).unwrap_or_default();
            // A deleted post has only its past, and the past of a draft may say where it was.
            let is_published = now.is_some_and(|now| now.status.as_deref() == Some("published"));
            if let Some(before) = change.previous.as_ref().filter(|_| !is_published) {
                let path = before.url.as_deref().and_then(public_path);
                addresses.withdrawn = Some(path.map_or(Withdrawal::Unknown, Withdrawal::At));
                addresses.host = addresses.host.or_else(|| before.addresses().host);
            }
            Webhook::Changed(Some(addresses))
        }
        Some(_) => Webhook::Nothing,
        None if said.tag.is_some() => Webhook::Changed(None),
        None if said.event.as_deref().is_none_or(|event| event == "site.changed") && said.others.is_empty() => Webhook::Changed(None),
        None => Webhook::Nothing,
    })
}

/// Returns what may still show a post that is not for everybody any more: its page in all forms, what the source's API for content says, and what has
/// the texts of posts in it: feeds of the site, and of these lists. The source's software is at `base_path`.
#[must_use]
pub fn shown_of(path: &str, lists: &[String], base_path: &str, hosts: &[String]) -> Vec<What> {
    let page = path.trim_end_matches('/');
    // The front page is below nothing, and everything is below it.
    if page.is_empty() {
        return vec![What::Everything];
    }
    let feeds = lists.iter().map(|list| format!("{list}rss/"));
    let pages: Vec<String> = [path.to_owned(), format!("{page}.md"), format!("{base_path}/llms-full.txt"), format!("{base_path}/rss/")]
        .into_iter()
        .chain(feeds)
        .collect();
    let below = format!("{page}/");
    let of_host = |host: &String| {
        let address = |path: &String| Address::over_either(host, path);
        pages.iter().map(address).map(What::Url).chain([What::Prefix(address(&below))]).collect::<Vec<_>>()
    };
    hosts.iter().flat_map(of_host).chain([What::Tag(CONTENT_API_TAG.to_owned())]).collect()
}

/// Reads which addresses have changed from the answer to a write of a post or a page; there are none if it is about neither.
///
/// # Errors
/// When it cannot be read.
pub fn written_addresses(content: &[u8]) -> Result<Addresses, serde_json::Error> {
    let said: Answer = serde_json::from_slice(content)?;
    Ok([said.posts, said.pages].into_iter().flatten().flatten().next().map(|post| post.addresses()).unwrap_or_default())
}

/// A webhook of a Ghost, as far as it matters here.
#[derive(Deserialize)]
struct GhostEvent {
    event: Option<String>,
    post: Option<Change>,
    page: Option<Change>,
    tag: Option<serde::de::IgnoredAny>,
    #[serde(flatten)]
    others: std::collections::BTreeMap<String, serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Change {
    current: Option<Post>,
    previous: Option<Post>,
}

impl Change {
    fn is_public(&self) -> bool {
        [&self.current, &self.previous].into_iter().flatten().any(|post| post.status.as_deref() == Some("published"))
    }
}

#[derive(Deserialize)]
struct Answer {
    posts: Option<Vec<Post>>,
    pages: Option<Vec<Post>>,
}

#[derive(Deserialize)]
struct Post {
    status: Option<String>,
    visibility: Option<String>,
    url: Option<String>,
    primary_tag: Option<WithUrl>,
    #[serde(default)]
    tags: Option<Vec<WithUrl>>,
    #[serde(default)]
    authors: Option<Vec<WithUrl>>,
}

#[derive(Deserialize)]
struct WithUrl {
    url: Option<String>,
}

impl Post {
    fn addresses(&self) -> Addresses {
        let named = self.primary_tag.iter().chain(self.tags.iter().flatten()).chain(self.authors.iter().flatten());
        let mut lists: Vec<String> = Vec::new();
        for path in named.filter_map(|named| public_path(named.url.as_deref()?)) {
            if lists.len() < RELATED_MAX && !lists.contains(&path) {
                lists.push(path);
            }
        }
        let host = self.url.as_deref().and_then(|url| Some(url.parse::<Uri>().ok()?.authority()?.as_str().to_owned()));
        Addresses { post: self.url.as_deref().and_then(public_path), lists, withdrawn: self.withdrawn(), host }
    }

    /// Returns where everybody could read the post, if it is not for everybody any more.
    fn withdrawn(&self) -> Option<Withdrawal> {
        if self.status.as_deref()? != "published" {
            return Some(Withdrawal::Unknown);
        }
        let is_for_all = self.visibility.as_deref().is_none_or(|to| to == "public");
        if is_for_all { None } else { self.url.as_deref().and_then(public_path).map(Withdrawal::At) }
    }
}

/// Returns the path of an address at which readers find something. A Ghost gives internal tags the address of its "not found".
fn public_path(url: &str) -> Option<String> {
    let uri: Uri = url.parse().ok()?;
    let path = normal_path(uri.path()).ok()?;
    // A preview has the post's UUID behind it; the page of a tag may be called `/tag/p/`.
    let is_preview = path.split_once("/p/").is_some_and(|(_, uuid)| uuid.trim_end_matches('/').len() == 36);
    (!path.ends_with("/404/") && !is_preview).then(|| path.into_owned())
}

#[cfg(test)]
mod tests;
