//! Writes to a WordPress that has no plugin to say what they change: which requests may be one, and whether WordPress has accepted it.
//!
//! Everybody can send a request that looks like an editor's, and WordPress answers many of them with 200 or a redirect although it refuses them.
//! So what counts is what only an accepted write is answered with: a redirect back into `wp-admin`, a success of an interface that is for
//! editors alone, an answer of XML-RPC without a fault. Where strangers can get the same answer (forms of plugins, by `admin-ajax.php`,
//! `admin-post.php` or REST), the request counts only from somebody who was seen to be an editor: WordPress has shown the same cookie or
//! credentials a page that is for editors.
//!
//! What editors' browsers send by themselves changes no page: autosaves, heartbeats, locks, preferences. A published comment changes its page.

mod form;
mod tables;
mod xml_rpc;

use http::{HeaderMap, Method, StatusCode, Uri, header};
use memchr::memmem;
use semantics::{invalidation::is_safe, percent, reference::resolve, target::normal_path};
use serde::Deserialize;

use self::tables::{HARMLESS_ACTIONS, HARMLESS_SCRIPTS, SCRIPTS_OF_EDITORS, UPDATING_ACTIONS, WRITING_ACTIONS, WRITING_SCRIPTS};
use super::{
    IsOwnHost, fields,
    signals::Signals,
    webhook::{Signed, Webhook, WebhookFormat, WebhookRefusal},
};
use crate::{
    Policy,
    pass::{has_parameter, php_name, single_slashes},
};

/// The messages of the plugin, which are purges.
pub(super) static WEBHOOKS: WebhookFormat = WebhookFormat {
    path: "/.seawall/wordpress",
    signature_field: "seawall-signature",
    scheme: "Seawall-Signature",
    signed: Signed::TimeThenContent,
    time_unit: 1_000,
    bytes_max: 64 << 10,
    counts_for_each_site: false,
    // The plugin tells a refusal by its JSON from the refusal of another server.
    is_answered_in_json: true,
    too_large: WebhookRefusal(StatusCode::PAYLOAD_TOO_LARGE, "a purge has 64 KiB at most: purge everything instead"),
    unsigned: WebhookRefusal(
        StatusCode::UNAUTHORIZED,
        "this purge is not signed (Seawall-Signature: t=SECONDS, sha256=HEX): give the plugin the secret that is set as secret in [wordpress]",
    ),
    wrongly_signed: WebhookRefusal(
        StatusCode::FORBIDDEN,
        "the signature of this purge is wrong: SEAWALL_SECRET in WordPress must be the same as secret in [wordpress]",
    ),
    not_understood: WebhookRefusal(
        StatusCode::BAD_REQUEST,
        "this is not a purge: it must be JSON such as {\"purge\": [\"post-12\", \"url=/feed/\", \"*\"], \"soft\": false}",
    ),
    again: WebhookRefusal(
        StatusCode::FORBIDDEN,
        "this purge came before, and a signature counts once: sign it again, with another time or another id in its content",
    ),
    without_secret: "Or set secret in [wordpress], and the same as SEAWALL_SECRET in WordPress.",
};

/// A request that may change what readers see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteAttempt {
    /// A script of `wp-admin`, which lets through only who is signed in.
    Admin {
        /// Whether every user of the site can use it, or everybody: what it answers says nothing.
        of_anybody: bool,
    },
    /// `admin-ajax.php`: its content says what is done.
    Ajax,
    /// The REST interface.
    Rest(RestResource),
    /// XML-RPC: its content says what is done.
    XmlRpc,
    /// A comment by the form below a post.
    Comment,
}

/// A part of the REST interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestResource {
    /// Only editors can write it.
    Editors,
    /// Only editors can write it, and the answer says so within its content alone: several writes in one, or an answer in an envelope.
    WithinAnswer,
    /// Readers can write a new one if the site lets them.
    Comments,
    /// A user, who can write it as editors can. Editors' browsers keep their preferences there.
    User,
    /// A plugin's: it may be the form of a shop or of a survey.
    Unknown,
}

/// The beginning of the content of a request.
#[derive(Debug, Clone, Copy)]
pub struct WriteContent<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// Whether that is all of it.
    pub is_whole: bool,
}

/// An answer to an attempt, with what is known of who made it.
#[derive(Debug, Clone, Copy)]
pub struct WriteAnswer<'a> {
    /// The request's host.
    pub authority: &'a str,
    /// The request's path and query.
    pub target: &'a str,
    /// The request's fields.
    pub request: &'a HeaderMap,
    /// The request's content, where [`WriteAttempt::is_told_by_content`].
    pub content: Option<WriteContent<'a>>,
    /// Whether the request is from somebody who was seen to be an editor.
    pub is_editors: bool,
    /// The status.
    pub status: StatusCode,
    /// The fields.
    pub headers: &'a HeaderMap,
    /// The content, where [`Policy::is_told_by_answer`]; `None` if it is too long, or did not come in time.
    pub answer_content: AnswerContent<'a>,
}

/// The content of an answer that is looked at.
#[derive(Debug, Clone, Copy)]
pub enum AnswerContent<'a> {
    /// It was not looked at.
    Unread,
    /// It is too long to be looked at, broke off, or did not come in time.
    TooLong,
    /// All of it.
    Whole(&'a [u8]),
}

/// The outcome of an attempt to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteEffect {
    /// Readers see no change.
    Nothing,
    /// A comment is public: these paths may show it.
    Pages(Vec<String>),
    /// Every page may have changed, and every user of the site can do that: it is to purge now and then at most.
    Perhaps,
    /// Every page may have changed.
    Everything,
}

impl WriteAttempt {
    /// Returns whether the content of the request says what is done.
    #[must_use]
    pub const fn is_told_by_content(self) -> bool {
        matches!(self, Self::Ajax | Self::XmlRpc | Self::Rest(_))
    }

    /// Returns whether the content of the answer may say whether it was accepted.
    #[must_use]
    pub const fn may_be_told_by_answer(self) -> bool {
        matches!(self, Self::Ajax | Self::XmlRpc | Self::Rest(RestResource::Comments | RestResource::WithinAnswer))
    }

    /// Returns whether only an editor makes such an attempt.
    #[must_use]
    pub const fn is_of_editors(self) -> bool {
        matches!(self, Self::Admin { of_anybody: false } | Self::Rest(RestResource::Editors | RestResource::WithinAnswer))
    }
}

impl Policy {
    /// Finds out whether a request may change what readers of a WordPress see. `target` is path and query as the source is asked for them.
    #[must_use]
    pub fn attempted(&self, method: &Method, target: &str, headers: &HeaderMap) -> Option<WriteAttempt> {
        if self.preset.signals != Signals::WordPress {
            return None;
        }
        let (path, query) = target.split_once('?').map_or((target, ""), |(path, query)| (path, query));
        let path = normal_path(path).ok()?;
        let path = single_slashes(&path).to_ascii_lowercase();
        let script = script(&path);
        // No other script serves the interface, whatever else is in the path or the query.
        let is_of_pages = script.is_none_or(|script| script.ends_with("/index.php")) && !path.contains("/wp-admin/");
        if let Some(route) = is_of_pages.then(|| rest_route(&path, query)).flatten() {
            return rest(method, &route, query, headers);
        }
        if let Some(script) = script_of_admin(&path) {
            return admin(method, script, query);
        }
        let script = script.filter(|_| !is_safe(method))?;
        if script.ends_with(COMMENTS_POST) {
            Some(WriteAttempt::Comment)
        } else {
            script.ends_with("/xmlrpc.php").then_some(WriteAttempt::XmlRpc)
        }
    }

    /// Returns whether an answer is one of the interface that its request was for. Where scripts lie elsewhere than at the site's own place, as those
    /// of blogs of a network do and those of a WordPress in a folder of its own, any path may lead to a page that WordPress shows for whatever it
    /// does not know: so the answer must have what only the interface says.
    fn is_of_interface(&self, attempt: WriteAttempt, target: &str, status: StatusCode, headers: &HeaderMap) -> bool {
        let path = target.split('?').next().unwrap_or_default();
        let below = self.below_base(path);
        let says =
            |name: header::HeaderName, beginning: &[u8]| headers.get(name).is_some_and(|value| value.as_bytes().starts_with(beginning));
        // A day on which WordPress was not there yet.
        let is_past = says(header::EXPIRES, b"Wed, 11 Jan 1984");
        let is_of_admin = is_past && headers.contains_key(header::X_FRAME_OPTIONS);
        match attempt {
            WriteAttempt::Admin { .. } if below.starts_with("/wp-admin/") => {
                let controls = || headers.get_all(header::CACHE_CONTROL).iter().filter_map(|line| line.to_str().ok());
                status.is_redirection() || is_past || controls().any(|line| line.contains("no-cache") || line.contains("no-store"))
            }
            WriteAttempt::Ajax if below.starts_with("/wp-admin/") => true,
            WriteAttempt::Admin { .. } | WriteAttempt::Ajax => is_of_admin,
            WriteAttempt::Rest(_) if below.starts_with("/wp-json") || status == StatusCode::NO_CONTENT => true,
            WriteAttempt::Rest(_) => says(header::CONTENT_TYPE, b"application/json"),
            WriteAttempt::XmlRpc | WriteAttempt::Comment => true,
        }
    }

    /// Returns whether the content of the answer says whether this attempt was accepted.
    #[must_use]
    pub fn is_told_by_answer(&self, attempt: WriteAttempt, answer: &WriteAnswer<'_>) -> bool {
        if !answer.status.is_success() {
            return false;
        }
        match attempt {
            WriteAttempt::Ajax => {
                !answer.is_editors && certain_action(answer).is_some_and(|action| WRITING_ACTIONS.contains(&action.as_str()))
            }
            WriteAttempt::XmlRpc => answer.content.is_some_and(|content| xml_rpc::Calls::of(content.bytes).write()),
            WriteAttempt::Rest(RestResource::Comments | RestResource::WithinAnswer) => !answer.is_editors,
            WriteAttempt::Admin { .. } | WriteAttempt::Rest(_) | WriteAttempt::Comment => false,
        }
    }

    /// Finds out what an attempt came to.
    #[must_use]
    pub fn accepted(&self, attempt: WriteAttempt, answer: &WriteAnswer<'_>) -> WriteEffect {
        if !self.is_of_interface(attempt, answer.target, answer.status, answer.headers) {
            return WriteEffect::Nothing;
        }
        let (status, is_editors) = (answer.status, answer.is_editors);
        let everything_if = |accepted: bool| if accepted { WriteEffect::Everything } else { WriteEffect::Nothing };
        match attempt {
            WriteAttempt::Admin { of_anybody } if status.is_success() => everything_if(!of_anybody || is_editors),
            WriteAttempt::Admin { of_anybody } if status.is_redirection() => everything_if(match leads_to(answer.headers) {
                Leads::ToLogin => false,
                Leads::ToAdmin if of_anybody && !is_editors => return said_of_a_user(answer),
                Leads::ToAdmin => is_editors || !leads_away(answer),
                Leads::Elsewhere => is_editors,
            }),
            WriteAttempt::Ajax if status.is_success() => everything_if(match action(answer) {
                Some(action) if HARMLESS_ACTIONS.contains(&action.as_str()) => false,
                Some(action) if action == "customize_save" && !publishes_changeset(answer) => false,
                Some(action) if WRITING_ACTIONS.contains(&action.as_str()) && certain_action(answer).is_some() => {
                    is_editors || !says_refused(answer.answer_content)
                }
                _ => is_editors,
            }),
            WriteAttempt::Rest(_) if !status.is_success() => WriteEffect::Nothing,
            // The route within a form goes before the others.
            WriteAttempt::Rest(_) if !is_editors && may_be_for_another_route(answer) => WriteEffect::Nothing,
            WriteAttempt::Rest(RestResource::Editors) => WriteEffect::Everything,
            WriteAttempt::Rest(RestResource::WithinAnswer) if is_editors => WriteEffect::Everything,
            // What a stranger's is refused with is short.
            WriteAttempt::Rest(_) | WriteAttempt::XmlRpc if matches!(answer.answer_content, AnswerContent::TooLong) => WriteEffect::Perhaps,
            WriteAttempt::Rest(RestResource::WithinAnswer) => everything_if(says_accepted(answer.answer_content)),
            WriteAttempt::Rest(RestResource::User) if is_of_preferences(answer.content) => WriteEffect::Nothing,
            WriteAttempt::Rest(RestResource::User) => {
                if is_editors {
                    WriteEffect::Everything
                } else {
                    WriteEffect::Perhaps
                }
            }
            WriteAttempt::Rest(RestResource::Comments) if !is_editors => self.commented_by_rest(answer),
            WriteAttempt::Rest(RestResource::Comments | RestResource::Unknown) => everything_if(is_editors),
            WriteAttempt::XmlRpc if status.is_success() => {
                // It is read where something is written.
                let AnswerContent::Whole(answer_content) = answer.answer_content else { return WriteEffect::Nothing };
                answer.content.map_or(WriteEffect::Nothing, |content| xml_rpc::Calls::of(content.bytes).accepted(answer_content))
            }
            WriteAttempt::Comment if status.is_redirection() => self.commented(answer),
            WriteAttempt::Admin { .. } | WriteAttempt::Ajax | WriteAttempt::XmlRpc | WriteAttempt::Comment => WriteEffect::Nothing,
        }
    }

    /// Returns whether an attempt may have changed pages of which no answer says what came of it. Anybody can send such a request, but only with
    /// what looks like an editor's credentials, and never by what a browser sends by itself.
    #[must_use]
    pub fn may_have_been_accepted(&self, attempt: WriteAttempt, answer: &WriteAnswer<'_>) -> bool {
        let says_who = || !Self::credentials(answer.request).is_empty();
        match attempt {
            WriteAttempt::Comment => false,
            // It has its credentials within its content.
            WriteAttempt::XmlRpc => answer.content.is_some_and(|content| xml_rpc::Calls::of(content.bytes).write()),
            WriteAttempt::Ajax => says_who() && !action(answer).is_some_and(|action| HARMLESS_ACTIONS.contains(&action.as_str())),
            WriteAttempt::Rest(RestResource::User) => says_who() && !is_of_preferences(answer.content),
            WriteAttempt::Admin { .. } | WriteAttempt::Rest(_) => says_who(),
        }
    }

    /// Returns whether WordPress has shown a page to a request that it shows only to editors.
    #[must_use]
    pub fn shows_an_editor(&self, method: &Method, target: &str, status: StatusCode, headers: &HeaderMap) -> bool {
        if self.preset.signals != Signals::WordPress || *method != Method::GET || status != StatusCode::OK {
            return false;
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let Ok(path) = normal_path(path) else { return false };
        let Some(script) = script_of_admin(&path) else { return false };
        // Plugins show pages of theirs to whom they like.
        parameter(query, "page").is_none()
            && SCRIPTS_OF_EDITORS.contains(&script.strip_prefix("network/").unwrap_or(script))
            && self.is_of_interface(WriteAttempt::Admin { of_anybody: false }, target, status, headers)
    }

    /// Names the pages of a comment that WordPress has taken by its form. Spam is answered as a comment is: it costs the page that it names.
    fn commented(&self, answer: &WriteAnswer<'_>) -> WriteEffect {
        let Some(location) = answer.headers.get(header::LOCATION) else { return WriteEffect::Nothing };
        let Some(there) = resolve(answer.authority, answer.target, location.as_bytes()) else { return WriteEffect::Nothing };
        let (page, query) = there.split_once('?').map_or((there.as_str(), ""), |(page, query)| (page, query));
        // It is held, and shown to its author alone.
        if parameters(query).any(|(name, _)| name == "unapproved") {
            return WriteEffect::Nothing;
        }
        // A blog of a network is where its scripts are; a WordPress in a folder of its own is not.
        let of_script = answer.target.split(COMMENTS_POST).next().unwrap_or_default();
        let base = if page.starts_with(&format!("{of_script}/")) { of_script } else { &self.settings().base_path };
        normal_path(page).map_or(WriteEffect::Nothing, |page| WriteEffect::Pages(shown_with_comments(&page, base)))
    }

    fn commented_by_rest(&self, answer: &WriteAnswer<'_>) -> WriteEffect {
        #[derive(Deserialize)]
        struct Comment {
            status: String,
            link: String,
        }
        let AnswerContent::Whole(content) = answer.answer_content else { return WriteEffect::Nothing };
        let Ok(comment) = serde_json::from_slice::<Comment>(content) else { return WriteEffect::Nothing };
        let page = comment.link.parse::<Uri>().ok().filter(|_| comment.status == "approved");
        let page = page.and_then(|page| normal_path(page.path()).ok().map(std::borrow::Cow::into_owned));
        let base = answer.target.split("/wp-json").next().filter(|base| base.len() < answer.target.len());
        page.map_or(WriteEffect::Nothing, |page| WriteEffect::Pages(shown_with_comments(&page, base.unwrap_or(&self.settings().base_path))))
    }

    /// Returns what in a request says who made it: the cookies of users who are signed in, and credentials.
    #[must_use]
    pub fn credentials(headers: &HeaderMap) -> Vec<&[u8]> {
        let is_of_user = |pair: &&[u8]| pair.starts_with(b"wordpress_logged_in_");
        let cookies = headers.get_all(header::COOKIE).into_iter();
        let cookies = cookies.flat_map(|line| line.as_bytes().split(|&b| b == b';').map(<[u8]>::trim_ascii)).filter(is_of_user);
        cookies.chain(headers.get_all(header::AUTHORIZATION).into_iter().map(|value| value.as_bytes())).take(CREDENTIALS_MAX).collect()
    }

    /// Returns whether an unsafe request for this path may be followed by invalidating what is stored for it (RFC 9111 §4.4). A WordPress has
    /// scripts that answer strangers with a success or a redirect and change no page.
    #[must_use]
    pub fn invalidates_by_method(&self, target: &str) -> bool {
        match self.preset.signals {
            Signals::None => true,
            Signals::Ghost => false,
            Signals::WordPress => {
                let (path, query) = target.split_once('?').map_or((target, ""), |(path, query)| (path, query));
                let names = || parameters(query).map(|(name, _)| name);
                let is_of_page = self.rules(path, &mut crate::Silent).is_ok();
                // Nothing is stored under these: shops take orders there, and the REST interface has rules of its own.
                let is_elsewhere = names().any(|name| name == "wc-ajax" || name == "rest_route");
                let unlocks = self.preset.rules.passes.parameters.iter().any(|rule| has_parameter(Some(query), &rule.of));
                is_of_page && !is_elsewhere && !unlocks
            }
        }
    }
}

/// Returns the paths that show the comments of a page, and of those that list all comments of the blog at `base`.
fn shown_with_comments(page: &str, base: &str) -> Vec<String> {
    let mut paths = vec![page.to_owned()];
    // The pages of a long discussion are below the post, and one more comment moves all of them.
    let post = page.find("/comment-page-").map_or(page, |at| &page[..=at]);
    for path in [post.to_owned(), format!("{}/feed/", post.trim_end_matches('/'))] {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths.extend(["/", "/comments/feed/", "/wp-json/wp/v2/comments"].map(|path| format!("{base}{path}")));
    paths
}

/// The script that takes comments.
const COMMENTS_POST: &str = "/wp-comments-post.php";

/// The most signs of who asks that are looked at in one request.
const CREDENTIALS_MAX: usize = 8;

/// Reads a purge that the plugin sends beside the path. `None`: it is none.
pub(super) fn webhook(content: &[u8], is_own_host: IsOwnHost<'_>) -> Option<Webhook> {
    #[derive(Deserialize)]
    struct Message {
        purge: Vec<String>,
        #[serde(default)]
        soft: bool,
    }
    let message: Message = serde_json::from_slice(content).ok()?;
    let what = fields::items(message.purge.iter().map(String::as_str), is_own_host).unwrap_or_default();
    Some(Webhook::Purge { what, soft: message.soft })
}

/// Returns the parameters of a query or a form, names as PHP reads them and values decoded.
fn parameters(form: &str) -> impl Iterator<Item = (String, String)> {
    form.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (_, value) = pair.split_once('=').unwrap_or((pair, ""));
        (php_name(pair), decoded(value))
    })
}

/// Decodes a value of a form, in which `+` is a space.
fn decoded(value: &str) -> String {
    let spaced: Vec<u8> = value.bytes().map(|byte| if byte == b'+' { b' ' } else { byte }).collect();
    String::from_utf8_lossy(&percent::decoded(&spaced)).into_owned()
}

/// Returns the last value of a parameter: PHP takes that one.
fn parameter(form: &str, name: &str) -> Option<String> {
    parameters(form).filter(|(parameter, _)| parameter == name).map(|(_, value)| value).last()
}

/// Returns the route of the REST interface that a request is for.
fn rest_route(path: &str, query: &str) -> Option<String> {
    if let Some(route) = parameter(query, "rest_route").filter(|route| !route.is_empty()) {
        return Some(route.to_ascii_lowercase());
    }
    let (_, rest) = path.split_once("/wp-json").filter(|(_, rest)| rest.is_empty() || rest.starts_with('/'))?;
    Some(rest.to_owned())
}

/// Returns the script that runs for a path: PHP gives it all that follows as a parameter. `None`: there is none in it.
fn script(path: &str) -> Option<&str> {
    let ends = path.match_indices(".php").map(|(at, end)| at + end.len());
    ends.filter(|&end| path[end..].is_empty() || path[end..].starts_with('/')).map(|end| &path[..end]).next()
}

/// Returns the script below `wp-admin` that runs for a path, as seen from there; a folder stands for its index. `None`: another one runs, or a part
/// of others.
fn script_of_admin(path: &str) -> Option<&str> {
    let (_, script) = script(path).unwrap_or(path).rsplit_once("/wp-admin/")?;
    let name = script.strip_prefix("network/").or_else(|| script.strip_prefix("user/")).unwrap_or(script);
    let is_whole = name.is_empty() || name.ends_with(".php");
    (is_whole && !name.contains('/') && !HARMLESS_SCRIPTS.contains(&name)).then_some(script)
}

fn rest(method: &Method, route: &str, query: &str, headers: &HeaderMap) -> Option<WriteAttempt> {
    // The interface takes another method than that of the request, of a GET too.
    let said = headers.get("x-http-method-override").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let taken = parameter(query, "_method").or(said).unwrap_or_else(|| method.as_str().to_owned()).trim().to_ascii_uppercase();
    if matches!(taken.as_str(), "GET" | "HEAD" | "OPTIONS") {
        return None;
    }
    let route = route.trim_matches('/');
    let segments: Vec<&str> = route.split('/').collect();
    let resource = match segments.as_slice() {
        [.., "autosaves"] | [.., "autosaves" | "revisions", _] => return None,
        ["wp", "v2", "users", .., "application-passwords"] | ["wp", "v2", "users", _, "application-passwords", _] => return None,
        ["wp", "v2", "block-renderer" | "search" | "pattern-directory", ..] => return None,
        ["oembed" | "wp-site-health" | "wp-block-editor", ..] => return None,
        // Users can write themselves, and nobody but editors can write others, or make or delete any.
        ["wp", "v2", "users", _] if taken != "DELETE" => RestResource::User,
        // Whoever changes a comment that is there may do so: WordPress refuses all others.
        ["wp", "v2", "comments"] => RestResource::Comments,
        ["batch", "v1"] => RestResource::WithinAnswer,
        ["wp", "v2", _, ..] | ["wc", "v1" | "v2" | "v3", ..] => RestResource::Editors,
        _ => RestResource::Unknown,
    };
    let is_enveloped = parameters(query).any(|(name, _)| name == "_envelope");
    Some(WriteAttempt::Rest(match resource {
        RestResource::Editors if is_enveloped => RestResource::WithinAnswer,
        _ if is_enveloped => RestResource::Unknown,
        resource => resource,
    }))
}

fn admin(method: &Method, script: &str, query: &str) -> Option<WriteAttempt> {
    if is_safe(method) && (*method != Method::GET || !is_link_that_acts(query)) {
        return None;
    }
    if script == "admin-ajax.php" {
        return Some(WriteAttempt::Ajax);
    }
    let updates = || parameter(query, "action").is_some_and(|action| UPDATING_ACTIONS.contains(&action.as_str()));
    let is_update = matches!(script, "update.php" | "network/update.php") && updates();
    Some(WriteAttempt::Admin { of_anybody: !is_update && !WRITING_SCRIPTS.contains(&script) })
}

/// Returns whether a link in `wp-admin` does something: it carries a proof that a page of `wp-admin` gave it, and an action. A list that is
/// searched carries such a proof as well, and no action.
fn is_link_that_acts(query: &str) -> bool {
    let acts = |name: &str| parameter(query, name).is_some_and(|action| !action.is_empty() && action != "-1");
    parameter(query, "_wpnonce").is_some()
        && (acts("action")
            || acts("action2")
            || acts("delete_all")
            || acts("delete_all2")
            || parameter(query, "_wp_http_referer").is_none())
}

/// The place to which a script of `wp-admin` leads.
enum Leads {
    ToLogin,
    ToAdmin,
    Elsewhere,
}

fn leads_to(headers: &HeaderMap) -> Leads {
    let location = headers.get(header::LOCATION).and_then(|location| location.to_str().ok()).unwrap_or_default();
    let path = location.split(['?', '#']).next().unwrap_or_default();
    // Without its host: WordPress may have another one for its editors than the readers' one.
    let path = path.split_once("://").map_or(path, |(_, rest)| rest.find('/').map_or("/", |at| &rest[at..]));
    if path.ends_with("/wp-login.php") || path == "wp-login.php" {
        Leads::ToLogin
    } else if path.contains("/wp-admin/") || (!path.starts_with('/') && path.ends_with(".php")) {
        Leads::ToAdmin
    } else {
        Leads::Elsewhere
    }
}

/// Returns whether a script of `wp-admin` leads to a plain list or form: so it does with whoever asks for nothing that it knows.
fn leads_away(answer: &WriteAnswer<'_>) -> bool {
    let location = answer.headers.get(header::LOCATION).and_then(|location| location.to_str().ok()).unwrap_or_default();
    let asks = answer.target.split('?').next().unwrap_or_default().to_ascii_lowercase();
    let is_of_posts = ["post.php", "revision.php"].iter().any(|script| script_of_admin(&asks) == Some(script));
    is_of_posts && ["edit.php", "post.php"].iter().any(|script| location.rsplit('/').next() == Some(script))
}

/// Returns what the answer of a script that every user of the site can use came to: users can change the names that they are shown by.
fn said_of_a_user(answer: &WriteAnswer<'_>) -> WriteEffect {
    let location = answer.headers.get(header::LOCATION).and_then(|location| location.to_str().ok()).unwrap_or_default();
    let (page, query) = location.split_once('?').unwrap_or((location, ""));
    let is_of_user = page.ends_with("/profile.php") || page.ends_with("/user-edit.php");
    if is_of_user && parameter(query, "updated").is_some() { WriteEffect::Perhaps } else { WriteEffect::Nothing }
}

/// Returns the action of a request to `admin-ajax.php`, as far as it can be seen. `None`: it is not known.
fn action(answer: &WriteAnswer<'_>) -> Option<String> {
    certain_action(answer).or_else(|| value_in_sight(answer, "action"))
}

/// Returns the action of a request to `admin-ajax.php` if PHP can have no other.
fn certain_action(answer: &WriteAnswer<'_>) -> Option<String> {
    let query = answer.target.split_once('?').map_or("", |(_, query)| query);
    let fields = form::fields(answer)?;
    let in_form = fields.into_iter().rev().find(|(name, _)| name == "action").map(|(_, value)| value);
    in_form.or_else(|| parameter(query, "action"))
}

/// Returns the value that a form in a request's content seems to have for a name. A stranger can have it seem so; who is an editor does not.
fn value_in_sight(answer: &WriteAnswer<'_>, name: &str) -> Option<String> {
    let text = String::from_utf8_lossy(answer.content?.bytes);
    if let Some((_, rest)) = text.split_once(&format!("; name=\"{name}\"")) {
        let (_, value) = rest.split_once("\r\n\r\n")?;
        return value.split_once("\r\n").map(|(value, _)| value.to_owned());
    }
    parameter(&text, name)
}

/// Returns whether the customizer publishes: it saves drafts by itself.
fn publishes_changeset(answer: &WriteAnswer<'_>) -> bool {
    const STATUS: &str = "customize_changeset_status";
    let said = match form::fields(answer) {
        Some(fields) => return fields.iter().rev().find(|(name, _)| name == STATUS).is_some_and(|(_, status)| status == "publish"),
        None => value_in_sight(answer, STATUS),
    };
    said.is_none_or(|status| status == "publish")
}

/// The digits of the time, in seconds since 1970, at least. What was written has fewer of them: a number, or `1`.
const TIME_DIGITS: usize = 10;

/// Returns whether the content of an answer of `admin-ajax.php` says that WordPress has refused.
fn says_refused(answer_content: AnswerContent<'_>) -> bool {
    match answer_content {
        AnswerContent::Whole(content) => {
            let content = content.trim_ascii();
            let is_failure = || serde_json::from_slice::<serde_json::Value>(content).is_ok_and(|said| said["success"] == false);
            // A comment that is not there: WordPress tells the time, before it has looked who asks.
            let is_time = content.len() >= TIME_DIGITS && content.iter().all(u8::is_ascii_digit);
            let is_error = content.starts_with(b"<?xml") && memmem::find(content, b"<wp_error").is_some();
            matches!(content, b"" | b"0" | b"-1") || is_time || is_error || is_failure()
        }
        AnswerContent::TooLong => false,
        AnswerContent::Unread => true,
    }
}

/// Returns whether the content of a request to the REST interface may say that it is for another route.
fn may_be_for_another_route(answer: &WriteAnswer<'_>) -> bool {
    form::fields(answer).is_none_or(|fields| fields.iter().any(|(name, _)| name == "rest_route"))
}

/// Returns whether the content of an answer of the REST interface says that a write was accepted.
fn says_accepted(answer_content: AnswerContent<'_>) -> bool {
    let AnswerContent::Whole(content) = answer_content else { return false };
    let Ok(said) = serde_json::from_slice::<serde_json::Value>(content) else { return false };
    let is_success = |said: &serde_json::Value| said["status"].as_u64().is_some_and(|status| (200..300).contains(&status));
    let of_several = |said: &serde_json::Value| said["responses"].as_array().map(|each| each.iter().any(is_success));
    // An envelope may hold several.
    of_several(&said).or_else(|| of_several(&said["body"])).unwrap_or_else(|| is_success(&said))
}

/// Returns whether a user's write to himself is about nothing but preferences.
fn is_of_preferences(content: Option<WriteContent<'_>>) -> bool {
    let Some(WriteContent { bytes, is_whole: true }) = content else { return false };
    let said: Option<serde_json::Map<String, serde_json::Value>> = serde_json::from_slice(bytes).ok();
    said.is_some_and(|said| said.keys().all(|key| matches!(key.as_str(), "id" | "meta")))
}

#[cfg(test)]
mod tests;
