//! The first reader of everything that strangers send (RFC 9112 §2, §3, §5, §6).

use wire::{
    HeadLimits,
    head::{Framing, Head, Parsed, Reject, field_table, parse},
};

/// Whatever is let through has one reading: the same alone, with bytes behind it and piece by piece; and a second reader, which knows no
/// more than the grammar, agrees on where head and content end. What is refused is refused with a status that says so.
pub fn request_head(data: &[u8]) {
    let tight = HeadLimits { header_bytes: 256, header_fields: 8, target_bytes: 64, body_bytes: 1_000 };
    for limits in [HeadLimits::default(), tight] {
        judged(data, &limits, |parsed| match parsed {
            Ok(Parsed::Partial) => assert!(data.len() < limits.header_bytes, "waits for more than it may hold"),
            Err(Reject { status, .. }) => {
                assert!(matches!(status, 400 | 405 | 413 | 414 | 417 | 431 | 501 | 505), "refused with {status}");
            }
            Ok(Parsed::Complete(head, _)) => let_through(data, &head, &limits),
        });
    }
}

/// Has a head judged as a connection that knows no host yet would.
pub(crate) fn judged<T>(bytes: &[u8], limits: &HeadLimits, look: impl FnOnce(Result<Parsed<'_>, Reject>) -> T) -> T {
    let mut table = field_table();
    look(parse(bytes, &mut table, "", limits))
}

fn let_through(data: &[u8], head: &Head<'_>, limits: &HeadLimits) {
    assert!(head.len <= data.len() && head.len <= limits.header_bytes);
    let bytes = &data[..head.len];
    let reads_the_same = |bytes: &[u8]| judged(bytes, limits, |parsed| matches!(parsed, Ok(Parsed::Complete(again, _)) if again == *head));
    assert!(reads_the_same(bytes), "read otherwise without what follows");
    assert!(reads_the_same(&[bytes, b"GET / HTTP/1.1\r\n\r\n\0"].concat()), "read otherwise with a request behind it");
    // All cuts of a short head, some of a long one: quadratic.
    for cut in (0..head.len).step_by(head.len / 512 + 1) {
        let is_partial = judged(&bytes[..cut], limits, |parsed| matches!(parsed, Ok(Parsed::Partial)));
        assert!(is_partial, "the first {cut} bytes");
    }
    second_reader(bytes, head, limits);
}

/// Reads the head by lines, as a simple recipient would.
fn second_reader(bytes: &[u8], head: &Head<'_>, limits: &HeadLimits) {
    let text = bytes.strip_suffix(b"\r\n\r\n").expect("a head ends with an empty line");
    let mut lines = Vec::new();
    for line in text.split(|&byte| byte == b'\n') {
        // All but the last line have lost their LF here, and must have their CR.
        lines.push(line.strip_suffix(b"\r").unwrap_or(line));
    }
    assert_eq!(text.iter().filter(|&&byte| byte == b'\n').count(), text.windows(2).filter(|pair| pair == b"\r\n").count(), "a bare LF");
    let mut lines = lines.into_iter().skip_while(|line| line.is_empty());
    let request_line = lines.next().expect("a request line");
    assert!(!request_line.iter().any(|&byte| byte < b' ' || byte == 0x7f), "a control character in the request line");

    let (mut lengths, mut codings, mut hosts, mut count) = (Vec::new(), Vec::new(), 0, 0);
    for line in lines {
        count += 1;
        let colon = line.iter().position(|&byte| byte == b':').expect("a field line has a colon");
        let (name, value) = (line[..colon].to_ascii_lowercase(), line[colon + 1..].trim_ascii());
        assert!(!name.is_empty() && name.iter().all(|&byte| byte.is_ascii_graphic()), "a field name with a blank or a control character");
        assert!(!value.iter().any(|&byte| matches!(byte, 0..=8 | 10..=31 | 0x7f)), "a control character in a field value");
        match &name[..] {
            b"content-length" => lengths.push(value),
            b"transfer-encoding" => codings.push(value),
            b"host" => hosts += 1,
            _ => {}
        }
    }
    assert!(count <= limits.header_fields, "{count} fields");
    assert!(hosts == 1 || (hosts == 0 && head.minor_version == 0), "{hosts} Host fields");
    let content = match (&lengths[..], &codings[..]) {
        ([], []) => Framing::None,
        ([length], []) => {
            assert!(!length.is_empty() && length.iter().all(u8::is_ascii_digit), "a Content-Length of other than digits");
            match length.iter().fold(0_u64, |number, digit| number.saturating_mul(10).saturating_add(u64::from(digit - b'0'))) {
                0 => Framing::None,
                length => Framing::Length(length),
            }
        }
        ([], [coding]) if coding.eq_ignore_ascii_case(b"chunked") && head.minor_version == 1 => Framing::Chunked,
        _ => panic!("let through although two recipients could read it in two ways: {lengths:?} {codings:?}"),
    };
    assert_eq!(head.framing, content);
    if let Framing::Length(length) = content {
        assert!(length <= limits.body_bytes);
    }

    assert!(head.minor_version <= 1);
    assert!(head.path.starts_with('/') || (head.path == "*" && head.method == http::Method::OPTIONS), "the path {:?}", head.path);
    let target = head.path.len() + head.query.map_or(0, str::len);
    assert!(target <= limits.target_bytes, "a target of {target} bytes");
    let graphic = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
    assert!(graphic(head.path) && head.query.is_none_or(graphic) && graphic(head.authority));
    assert!(!head.path.contains('?') && !head.authority.contains(['@', '/', '?', '\\']), "the authority {:?}", head.authority);
    assert!(!head.authority.is_empty() || head.minor_version == 0);
}
