//! The requests of a run, in no protocol's form, and what a visitor asks next.
//!
//! A [`RequestSet`] is shared by all workers and never changes during a run. A [`Visitor`] is one simulated client: it chooses from the set, keeps its
//! cookies, and learns from answers (`--page`: what else the page needs). Engines know visitors alone: they ask them what to send
//! ([`Visitor::next`]), send it, and give them the answer ([`Visitor::answered`]).

mod behaviour;
mod check;
mod choice;
mod content;
mod cookies;
mod date;
mod leak;
mod list;
mod options;
mod page;
mod sitemap;
mod template;
mod url;
mod visitor;

use std::fmt;

use bytes::Bytes;

#[cfg(test)]
pub(crate) use self::content::gzip;
pub use self::{
    behaviour::Behaviour,
    check::{CheckError, Checks},
    content::Unreadable,
    leak::{COOKIE as LEAK_COOKIE, Leaks},
    list::ListError,
    options::{Body, RequestOptions, RequestOptionsError},
    page::Library,
    sitemap::{BYTES_MAX as SITEMAP_MAX, Sitemap, SitemapError, read_sitemap},
    template::TemplateError,
    url::{Url, UrlError, read_origin},
    visitor::{FoundPart, Next, Visitor},
};
pub(crate) use self::{
    behaviour::{Class, Step, Templates},
    content::decoded,
    options::read_field,
};

#[cfg(test)]
mod tests;

/// The most bytes of an answer's content that an engine keeps for a visitor. A longer content is cut there.
pub const WANTED_MAX: usize = 4 << 20;

/// A server, as a URL names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    /// Whether it is asked over TLS.
    pub tls: bool,
    /// The name or address of the server, without brackets.
    pub host: String,
    /// The port of the server.
    pub port: u16,
}

impl Origin {
    /// Returns host and port as they stand in a URL and in `Host` (RFC 9110 §7.2): without the scheme's own port.
    #[must_use]
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == if self.tls { 443 } else { 80 } { host } else { format!("{host}:{}", self.port) }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.tls { "https" } else { "http" }, self.authority())
    }
}

/// A request that can be asked many times.
#[derive(Debug, Clone)]
pub struct Request {
    /// The origin that is asked: an index into [`RequestSet::origins`].
    pub origin: u16,
    /// The method.
    pub method: String,
    /// Path and query. Where there are placeholders, [`VisitorRequest::own`] has what they stand for.
    pub target: String,
    /// Fields beside those that every request needs (`Host`, `Content-Length`, ...). For placeholders as in the target.
    pub fields: Vec<(String, String)>,
    /// The content.
    pub body: Bytes,
    /// The weight with which it is chosen, beside the others.
    pub weight: u32,
}

/// Holds what a run asks. It is shared by all workers, and never changes.
///
/// [`RequestOptions`] makes a set of what people write. A set that is written as a literal asks its requests as they stand, each as often.
#[derive(Debug, Clone, Default)]
pub struct RequestSet {
    /// The servers that are asked.
    pub origins: Vec<Origin>,
    /// The requests of the set.
    pub requests: Vec<Request>,
    /// The behaviour of visitors beyond sending a request as it stands.
    pub behaviour: Behaviour,
}

/// A request that a visitor asks now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisitorRequest {
    /// The number of the set's request that it is, or by which it was found.
    pub request: u32,
    /// The server that is asked.
    pub origin: u16,
    /// The parts that differ from the set's request; none: it is sent as it stands there, and engines can keep its bytes.
    pub own: Option<Box<Own>>,
    /// Whether [`Visitor::answered`] needs the content of the answer.
    pub wants_body: bool,
}

/// A request of one visitor alone: with placeholders filled in, cookies, or found in a page. Without `Host` and `Content-Length`, as in [`Request`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Fields.
    pub fields: Vec<(String, String)>,
    /// The content.
    pub body: Bytes,
    /// The part of a page that is asked for; none: it is a request of the set.
    pub part: Option<FoundPart>,
}
