//! A refusal as HTTP/1 writes it: the connection ends with it.

use http::{HeaderName, header};
use wire::head::Reject;

use crate::request::refusal::Refusal;

/// Writes the whole answer.
pub(super) fn refusal(reject: Reject) -> Vec<u8> {
    let Refusal { status, fields, content } = reject.into();
    let mut out = format!("HTTP/1.1 {} {}\r\n", status.as_str(), status.canonical_reason().unwrap_or_default()).into_bytes();
    for (name, value) in &fields {
        let line = [spelled(name).as_bytes(), b": ", value.as_bytes(), b"\r\n"];
        line.into_iter().for_each(|part| out.extend_from_slice(part));
    }
    out.extend_from_slice(b"Connection: close\r\n\r\n");
    out.extend_from_slice(&content);
    out
}

/// Returns a field's name as people write it.
fn spelled(name: &HeaderName) -> &str {
    match *name {
        header::CONTENT_TYPE => "Content-Type",
        header::CONTENT_LENGTH => "Content-Length",
        header::ALLOW => "Allow",
        _ => name.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_a_whole_answer_and_the_last_one() {
        let expected = "HTTP/1.1 405 Method Not Allowed\r\n\
                        Content-Type: text/plain; charset=utf-8\r\n\
                        Allow: GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS\r\n\
                        Content-Length: 45\r\n\
                        Connection: close\r\n\r\n\
                        405 Method Not Allowed: this is not a tunnel\n";
        assert_eq!(String::from_utf8_lossy(&refusal(Reject { status: 405, reason: "this is not a tunnel" })), expected);
    }
}
