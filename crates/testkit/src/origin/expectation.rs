//! Which requests an origin expects: a matcher, how often it may be used, and the reply.

use std::fmt;
use std::sync::Arc;

use super::record::{Record, SeenRequest};
use super::reply::{self, Reply};

/// The conditions under which an expectation answers a request.
#[derive(Clone, Debug)]
#[must_use = "a matcher does nothing until it is given to Origin::on"]
pub struct Matcher {
    /// The method; `None` for any.
    method: Option<String>,
    path: String,
    query: Query,
    fields: Vec<(String, String)>,
    without: Vec<String>,
    body: Option<Vec<u8>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Query {
    Absent,
    Exactly(String),
    Any,
}

/// Matches a GET for `path`. A query is part of it if written (`"/post?page=2"`), else there must be none; `*` at the end stands for any
/// rest, query included.
pub fn get(path: &str) -> Matcher {
    method("GET", path)
}

/// Matches a HEAD for `path`, which is written as for [`get`].
pub fn head(path: &str) -> Matcher {
    method("HEAD", path)
}

/// Matches a POST to `path`, which is written as for [`get`].
pub fn post(path: &str) -> Matcher {
    method("POST", path)
}

/// Matches a PUT to `path`, which is written as for [`get`].
pub fn put(path: &str) -> Matcher {
    method("PUT", path)
}

/// Matches a DELETE of `path`, which is written as for [`get`].
pub fn delete(path: &str) -> Matcher {
    method("DELETE", path)
}

/// Matches an OPTIONS for `path`, which is written as for [`get`].
pub fn options(path: &str) -> Matcher {
    method("OPTIONS", path)
}

/// Matches the PURGE of `path` that caches use among themselves; `path` is written as for [`get`].
pub fn purge(path: &str) -> Matcher {
    method("PURGE", path)
}

/// Matches a request with that method, case included, for `path`, which is written as for [`get`].
pub fn method(method: &str, path: &str) -> Matcher {
    Matcher { method: Some(method.to_owned()), ..any(path) }
}

/// Matches a request with any method for `path`, which is written as for [`get`].
pub fn any(path: &str) -> Matcher {
    let (path, query) = match path.split_once('?') {
        Some((path, query)) => (path, Query::Exactly(query.to_owned())),
        None if path.ends_with('*') => (path, Query::Any),
        None => (path, Query::Absent),
    };
    Matcher { method: None, path: path.to_owned(), query, fields: Vec::new(), without: Vec::new(), body: None }
}

impl Matcher {
    /// Matches only if the combined value of that field is exactly `value`.
    pub fn field(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Matches only if there is no field of that name.
    pub fn without(mut self, name: &str) -> Self {
        self.without.push(name.to_owned());
        self
    }

    /// Matches only with exactly that query, without its question mark.
    pub fn query(mut self, query: &str) -> Self {
        self.query = Query::Exactly(query.to_owned());
        self
    }

    /// Matches with any query or none.
    pub fn any_query(mut self) -> Self {
        self.query = Query::Any;
        self
    }

    /// Matches only with exactly that content.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    fn matches(&self, seen: &SeenRequest) -> bool {
        let (path, query) = seen.target.split_once('?').map_or((seen.target.as_str(), None), |(path, query)| (path, Some(query)));
        let path_matches = match self.path.strip_suffix('*') {
            Some(start) => path.starts_with(start),
            None => path == self.path,
        };
        let query_matches = match &self.query {
            Query::Absent => query.is_none(),
            Query::Exactly(wanted) => query == Some(wanted),
            Query::Any => true,
        };
        path_matches
            && query_matches
            && self.method.as_ref().is_none_or(|method| *method == seen.method)
            && self.fields.iter().all(|(name, value)| seen.fields.combined(name).as_ref() == Some(value))
            && !self.without.iter().any(|name| seen.fields.has(name))
            && self.body.as_ref().is_none_or(|body| seen.body == *body)
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method.as_deref().unwrap_or("any method"), self.path)?;
        match &self.query {
            Query::Absent => {}
            Query::Exactly(query) => write!(f, "?{query}")?,
            Query::Any => write!(f, " with any query")?,
        }
        self.fields.iter().try_for_each(|(name, value)| write!(f, ", {name}: {value}"))?;
        self.without.iter().try_for_each(|name| write!(f, ", without {name}"))?;
        self.body.as_ref().map_or(Ok(()), |body| write!(f, ", with {} given bytes of content", body.len()))
    }
}

/// An expectation that has no reply yet.
#[derive(Debug)]
#[must_use = "an expectation counts once it is given a reply"]
pub struct Expecting<'a> {
    record: &'a Record,
    matcher: Matcher,
    times_max: Option<usize>,
    before_content: bool,
}

impl<'a> Expecting<'a> {
    pub(super) const fn new(record: &'a Record, matcher: Matcher) -> Self {
        Self { record, matcher, times_max: None, before_content: false }
    }

    /// Answers at most `n` requests; after that, older expectations that match answer again.
    pub const fn times(mut self, n: usize) -> Self {
        self.times_max = Some(n);
        self
    }

    /// Answers one request.
    pub const fn once(self) -> Self {
        self.times(1)
    }

    /// Answers as soon as the head has arrived, does not read the content, sends no `100 Continue`, and closes afterwards.
    pub const fn before_content(mut self) -> Self {
        self.before_content = true;
        self
    }

    /// Answers with `reply`.
    pub fn reply(self, reply: Reply) {
        self.reply_with(move |_| reply.clone());
    }

    /// Answers each request with the reply that `reply` makes of it.
    pub fn reply_with(self, reply: impl Fn(&SeenRequest) -> Reply + Send + Sync + 'static) {
        let Self { record, matcher, times_max, before_content } = self;
        record.expect(Expectation { matcher, times_max, before_content, used: 0, reply: MakeReply(Arc::new(reply)) });
    }

    /// Answers 101 Switching Protocols to `protocol` (RFC 9110 §7.8), then sends back everything it receives.
    pub fn upgrade_echo(self, protocol: &str) {
        self.reply(reply::upgrade_echo(protocol));
    }
}

/// A matcher with its reply and how often it has been used.
#[derive(Debug)]
pub(super) struct Expectation {
    matcher: Matcher,
    times_max: Option<usize>,
    before_content: bool,
    used: usize,
    reply: MakeReply,
}

/// The function that makes the reply to a request.
#[derive(Clone)]
pub(super) struct MakeReply(Arc<dyn Fn(&SeenRequest) -> Reply + Send + Sync>);

impl MakeReply {
    pub(super) fn reply(&self, request: &SeenRequest) -> Reply {
        (self.0)(request)
    }
}

impl Expectation {
    pub(super) fn takes(&self, request: &SeenRequest) -> bool {
        self.times_max.is_none_or(|max| self.used < max) && self.matcher.matches(request)
    }

    pub(super) fn use_up(&mut self) -> MakeReply {
        self.used += 1;
        self.reply.clone()
    }

    pub(super) const fn is_before_content(&self) -> bool {
        self.before_content
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (used {} times", self.matcher, self.used)?;
        self.times_max.map_or(Ok(()), |max| write!(f, " of {max}"))?;
        write!(f, ")")
    }
}

impl fmt::Debug for MakeReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MakeReply")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fields;
    use bytes::Bytes;

    fn request(method: &str, target: &str) -> SeenRequest {
        let mut fields = Fields::default();
        fields.push("If-None-Match", "\"a\"");
        fields.push("Accept", "text/html");
        fields.push("accept", "*/*");
        let version = "HTTP/1.1".to_owned();
        SeenRequest {
            method: method.to_owned(),
            target: target.to_owned(),
            version,
            fields,
            body: Bytes::from_static(b"v1"),
            connection: 1,
        }
    }

    #[test]
    fn a_matcher_asks_for_everything_it_names() {
        let request = request("GET", "/post?page=2");
        for (matcher, matches) in [
            (get("/post?page=2"), true),
            (get("/post").query("page=2"), true),
            (get("/post").any_query(), true),
            (get("/po*"), true),
            (get("*"), true),
            (any("/post?page=2"), true),
            (get("/post"), false),
            (get("/post?page=3"), false),
            (post("/post?page=2"), false),
            (method("get", "/post?page=2"), false),
            (get("*").field("if-none-match", "\"a\""), true),
            (get("*").field("if-none-match", "\"b\""), false),
            (get("*").field("accept", "text/html, */*"), true),
            (get("*").field("cookie", ""), false),
            (get("*").without("cookie"), true),
            (get("*").without("ACCEPT"), false),
            (get("*").body("v1"), true),
            (get("*").body("v2"), false),
        ] {
            assert_eq!(matcher.matches(&request), matches, "{matcher}");
        }
    }
}
