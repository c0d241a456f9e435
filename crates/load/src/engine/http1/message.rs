//! Requests as bytes.

use crate::requests::{Own, RequestSet};

/// A request as it is sent.
#[derive(Debug)]
pub(super) struct Message {
    /// Head and content.
    pub(super) bytes: Vec<u8>,
    /// Whether the method is `HEAD`.
    pub(super) head: bool,
    /// Whether it may be sent again when nothing of an answer has come (RFC 9110 §9.2.2).
    pub(super) idempotent: bool,
}

/// The requests of a set as bytes, made once.
#[derive(Debug)]
pub(super) struct Messages {
    made: Vec<Message>,
    authorities: Vec<String>,
    close: bool,
}

impl Messages {
    /// Makes the messages of a set. `close` means that each connection is used once, and says so.
    pub(super) fn new(set: &RequestSet, close: bool) -> Self {
        let authorities: Vec<_> = set.origins.iter().map(crate::requests::Origin::authority).collect();
        let made = set.requests.iter().map(|request| {
            let mut bytes = Vec::new();
            let authority = authorities.get(usize::from(request.origin)).map_or("", String::as_str);
            write(&mut bytes, &request.method, &request.target, authority, &request.fields, &request.body, close);
            Message { bytes, head: request.method == "HEAD", idempotent: is_idempotent(&request.method) }
        });
        Self { made: made.collect(), authorities, close }
    }

    /// Returns a request that is sent as it stands in the set.
    pub(super) fn made(&self, request: u32) -> &Message {
        &self.made[request as usize]
    }

    /// Writes a request of one visitor alone.
    pub(super) fn write_own(&self, bytes: &mut Vec<u8>, origin: u16, own: &Own) {
        write(bytes, &own.method, &own.target, &self.authorities[usize::from(origin)], &own.fields, &own.body, self.close);
    }
}

fn write(bytes: &mut Vec<u8>, method: &str, target: &str, authority: &str, fields: &[(String, String)], body: &[u8], close: bool) {
    let mut put = |parts: &[&str]| parts.iter().for_each(|part| bytes.extend_from_slice(part.as_bytes()));
    put(&[method, " ", target, " HTTP/1.1\r\n"]);
    let has = |name: &str| fields.iter().any(|field| field.0.eq_ignore_ascii_case(name));
    if !has("host") {
        put(&["Host: ", authority, "\r\n"]);
    }
    for (name, value) in fields {
        put(&[name, ": ", value, "\r\n"]);
    }
    if close && !has("connection") {
        put(&["Connection: close\r\n"]);
    }
    let announces = !body.is_empty() || matches!(method, "POST" | "PUT" | "PATCH");
    if announces && !has("content-length") && !has("transfer-encoding") {
        put(&["Content-Length: ", &body.len().to_string(), "\r\n"]);
    }
    put(&["\r\n"]);
    bytes.extend_from_slice(body);
}

/// Returns whether a request of this method may be repeated (RFC 9110 §9.2.2).
pub(super) fn is_idempotent(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PUT" | "DELETE")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::{Origin, Request};

    fn sent(method: &str, fields: &[(&str, &str)], body: &'static str, close: bool) -> String {
        let origins = vec![Origin { tls: false, host: "blog.example".to_owned(), port: 8080 }];
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let request = Request { origin: 0, method: method.to_owned(), target: "/a?b".to_owned(), fields, body: body.into(), weight: 1 };
        let messages = Messages::new(&RequestSet { origins, requests: vec![request], ..RequestSet::default() }, close);
        String::from_utf8(messages.made(0).bytes.clone()).expect("text")
    }

    #[test]
    fn a_request_has_what_every_request_needs_unless_it_says_so_itself() {
        let head = "GET /a?b HTTP/1.1\r\nHost: blog.example:8080\r\n";
        assert_eq!(sent("GET", &[], "", false), format!("{head}\r\n"));
        assert_eq!(sent("GET", &[("Accept", "*/*")], "", true), format!("{head}Accept: */*\r\nConnection: close\r\n\r\n"));
        assert_eq!(sent("GET", &[("host", "x")], "", false), "GET /a?b HTTP/1.1\r\nhost: x\r\n\r\n");
    }

    #[test]
    fn a_content_is_announced_and_where_one_is_expected_its_absence_is() {
        let head = "POST /a?b HTTP/1.1\r\nHost: blog.example:8080\r\n";
        assert_eq!(sent("POST", &[], "hello", false), format!("{head}Content-Length: 5\r\n\r\nhello"));
        assert_eq!(sent("POST", &[], "", false), format!("{head}Content-Length: 0\r\n\r\n"));
        assert_eq!(
            sent("POST", &[("Transfer-Encoding", "chunked")], "0\r\n\r\n", false),
            format!("{head}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        );
    }
}
