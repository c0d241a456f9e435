//! One request head, judged without a connection: what the front lets through, and what it takes it for.

use http::Method;

use crate::{
    h1::head::{Framing, Parsed, field_table, parse},
    limits::Limits,
};

/// What the bytes that a client sent first are taken for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inspected {
    /// The beginning of a head, nothing wrong with it so far.
    Partial,
    /// A whole head that is let through.
    Head(InspectedHead),
    /// Answered with this status, and the connection closed.
    Refused(u16),
}

/// A head that is let through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectedHead {
    /// Its length in bytes, with the empty line: where the content begins.
    pub len: usize,
    /// The method.
    pub method: Method,
    /// From the target in absolute-form, else from `Host`.
    pub authority: String,
    /// As sent; `*` for the whole server.
    pub path: String,
    /// As sent, without the `?`.
    pub query: Option<String>,
    /// `HTTP/1.` followed by this.
    pub minor_version: u8,
    /// Where the content ends.
    pub content: InspectedContent,
    /// Whether another request may follow.
    pub keep_alive: bool,
}

/// How the content of a request is framed (RFC 9112 §6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InspectedContent {
    /// There is none.
    None,
    /// So many bytes.
    Length(u64),
    /// Chunked.
    Chunked,
}

/// Judges the head at the start of `bytes` as a connection with these limits would. Copies, so not meant for serving.
#[must_use]
pub fn inspect(bytes: &[u8], limits: &Limits) -> Inspected {
    let mut table = field_table();
    match parse(bytes, &mut table, "", limits) {
        Ok(Parsed::Partial) => Inspected::Partial,
        Ok(Parsed::Complete(head, _)) => Inspected::Head(InspectedHead {
            len: head.len,
            method: head.method,
            authority: head.authority.to_owned(),
            path: head.path.to_owned(),
            query: head.query.map(str::to_owned),
            minor_version: head.minor_version,
            content: match head.framing {
                Framing::None => InspectedContent::None,
                Framing::Length(length) => InspectedContent::Length(length),
                Framing::Chunked => InspectedContent::Chunked,
            },
            keep_alive: head.keep_alive,
        }),
        Err(reject) => Inspected::Refused(reject.status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_partial_let_through_or_refused() {
        let limits = Limits::default();
        let whole = b"POST /a?b HTTP/1.1\r\nHost: blog.example\r\nContent-Length: 5\r\n\r\nhello";
        assert_eq!(inspect(&whole[..30], &limits), Inspected::Partial);
        let head = InspectedHead {
            len: whole.len() - 5,
            method: Method::POST,
            authority: "blog.example".to_owned(),
            path: "/a".to_owned(),
            query: Some("b".to_owned()),
            minor_version: 1,
            content: InspectedContent::Length(5),
            keep_alive: true,
        };
        assert_eq!(inspect(whole, &limits), Inspected::Head(head));
        assert_eq!(inspect(b"GET / HTTP/1.1\r\n\r\n", &limits), Inspected::Refused(400));
    }
}
