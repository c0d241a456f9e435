//! The streams of HTTP/3 (RFC 9114), and their field sections (RFC 9204).

use edge::{Inspected, InspectedStream, Limits, inspect, inspect_section, write_section};

/// However the transport cuts a stream, it means the same, and what has come of it is the beginning of what comes of the whole. A request that is
/// let through is one head with nothing behind it, by the rules of HTTP/1, and its content is no more than was sent. A section that can be
/// read can be written and is read the same again.
///
/// An input is a kind, and a stream or a section: 0 a request's stream, 1 one in a single direction, else a section.
pub fn h3_streams(data: &[u8]) {
    let Some((kind, bytes)) = data.split_first() else { return };
    match kind {
        0 => request(bytes),
        1 => unidirectional(bytes),
        _ => section(bytes),
    }
}

fn request(bytes: &[u8]) {
    let limits = Limits::default();
    let whole = InspectedStream::request(bytes, usize::MAX, true, &limits);
    for cut in [1, 2, 7, 1_200] {
        assert_eq!(InspectedStream::request(bytes, cut, true, &limits), whole, "cut every {cut}");
    }
    assert!(whole.content.len() <= bytes.len());
    if let Some(text) = &whole.text {
        match inspect(text, &limits) {
            Inspected::Head(head) => assert_eq!(head.len, text.len(), "something is behind the head"),
            Inspected::Refused(_) => {}
            Inspected::Partial => panic!("half a head was let through"),
        }
    }
    // What has not ended yet has come to nothing else.
    let begun = InspectedStream::request(bytes, usize::MAX, false, &limits);
    assert_eq!(begun.text, whole.text);
    assert!(whole.content.starts_with(&begun.content));
    assert!(begun.closed.is_none() || begun.closed == whole.closed);
    assert!(begun.reset.is_none() || begun.reset == whole.reset);
}

fn unidirectional(bytes: &[u8]) {
    for ends in [false, true] {
        let whole = InspectedStream::unidirectional(bytes, usize::MAX, ends);
        for cut in [1, 3, 1_200] {
            assert_eq!(InspectedStream::unidirectional(bytes, cut, ends), whole, "cut every {cut}");
        }
    }
}

fn section(bytes: &[u8]) {
    let Some(mut fields) = inspect_section(bytes) else { return };
    // Five bits are the shortest code of a byte, and one byte the shortest way to say the longest field of the table.
    assert!(fields.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>() <= bytes.len() * 80);
    for (name, _) in &mut fields {
        name.make_ascii_lowercase();
    }
    let written = write_section(200, fields.iter().map(|(name, value)| (&name[..], &value[..])));
    let read = inspect_section(&written).expect("what we write can be read");
    assert_eq!(read[0], (b":status".to_vec(), b"200".to_vec()));
    assert_eq!(read[1..], fields);
}
