//! What a FastCGI server sends, or a script through it (FastCGI specification 3.3; RFC 3875 §6).

use bytes::{Bytes, BytesMut};
use origins::fastcgi::{
    head::{FIELDS_MAX, length, read},
    record::{Piece, Records},
};

/// What was said, streams joined: how a connection was cut into reads does not count.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    output: Vec<u8>,
    messages: Vec<u8>,
    others: Vec<Piece>,
    failed: Option<&'static str>,
}

/// The input is everything a server sends. It is understood alike in whatever pieces it comes, no byte is made up, and a head that is accepted
/// has nothing in it that could end a line or concerns the connection.
pub fn fastcgi_response(data: &[u8]) {
    let whole = said(data, data.len().max(1));
    for step in [1, 7, 8, 9] {
        assert_eq!(said(data, step), whole, "by {step}");
    }
    assert!(whole.output.len() + whole.messages.len() <= data.len());
    // A script says its head through records, but the reader of heads should see what it likes as well.
    for bytes in [&whole.output, data] {
        head(bytes);
    }
}

fn said(data: &[u8], step: usize) -> Said {
    let (mut records, mut buffer, mut said) = (Records::default(), BytesMut::new(), Said::default());
    for piece in data.chunks(step) {
        buffer.extend_from_slice(piece);
        loop {
            match records.take(&mut buffer) {
                Ok(Some(Piece::Output(bytes))) => said.output.extend(bytes),
                Ok(Some(Piece::Messages(bytes))) => said.messages.extend(bytes),
                Ok(Some(other)) => said.others.push(other),
                Ok(None) => break,
                Err(why) => {
                    said.failed = Some(why);
                    return said;
                }
            }
        }
    }
    said
}

fn head(bytes: &[u8]) {
    let Some(end) = length(bytes, 0) else { return };
    assert!(end <= bytes.len());
    for cut in 0..end.min(64) {
        assert_eq!(length(&bytes[..end], cut), Some(end), "looked at from {cut}");
        assert_eq!(length(&bytes[..end - 1], 0), None, "a head that has not come");
    }
    let Ok(head) = read(&Bytes::copy_from_slice(&bytes[..end])) else { return };
    assert!((100..=599).contains(&head.status.as_u16()) && head.fields.len() <= FIELDS_MAX);
    for (name, value) in &head.fields {
        assert!(!value.as_bytes().iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
        assert!(!matches!(name.as_str(), "connection" | "keep-alive" | "transfer-encoding" | "upgrade" | "status"), "{name} came through");
    }
    let lengths: Vec<_> = head.fields.get_all("content-length").iter().collect();
    assert!(lengths.len() <= 1 && lengths.iter().all(|length| length.as_bytes().iter().all(u8::is_ascii_digit)));
}
