//! Fields as HTTP/3 writes them (RFC 9204), bytes in and fields out. Only the static table: a dynamic one would have streams wait for each
//! other, and memory in the hands of clients, to save some hundred bytes of a request. So our settings allow none, and a client that uses
//! one breaks the protocol.

mod table;

use crate::hpack::{huffman, integer};

/// The error for a section that cannot be read, or that refers to something we never agreed to (`QPACK_DECOMPRESSION_FAILED`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// Reads a string whose length begins with `prefix` bits; the bit before them says whether it is Huffman-coded. Five coded bytes become at
/// most eight, and the caller limits the section.
fn string<'s, 'a: 's>(rest: &mut &'a [u8], prefix: u32, scratch: &'s mut Vec<u8>) -> Result<&'s [u8], Malformed> {
    let is_packed = rest.first().is_some_and(|first| first & 1 << prefix != 0);
    let length = integer::read(rest, prefix).map_err(|_| Malformed)?;
    let (string, behind) = rest.split_at_checked(length).ok_or(Malformed)?;
    *rest = behind;
    if !is_packed {
        return Ok(string);
    }
    scratch.clear();
    huffman::decode(string, scratch).map_err(|_| Malformed)?;
    Ok(scratch)
}

/// Reads a field section (RFC 9204 §4.5). Passes each field to `field`, in order, with whether its name is in the static table. The slices
/// are valid during the call only.
pub fn decode(mut section: &[u8], mut field: impl FnMut(&[u8], &[u8], bool)) -> Result<(), Malformed> {
    let rest = &mut section;
    let number = |rest: &mut &[u8], prefix| integer::read(rest, prefix).map_err(|_| Malformed);
    let known = |index: usize| table::FIELDS.get(index).ok_or(Malformed);
    // The section begins with the Required Insert Count, and a base that only a dynamic table would need.
    if number(rest, 8)? != 0 {
        return Err(Malformed);
    }
    number(rest, 7)?;
    let (mut name_scratch, mut value_scratch) = (Vec::new(), Vec::new());
    while let Some(&first) = rest.first() {
        match first {
            // This is an indexed field line, static (§4.5.2).
            0xc0.. => {
                let (name, value) = known(number(rest, 6)?)?;
                field(name.as_bytes(), value.as_bytes(), true);
            }
            // This is a literal value with a name of the static table (§4.5.4).
            0x50..0x60 | 0x70..0x80 => {
                let (name, _) = known(number(rest, 4)?)?;
                field(name.as_bytes(), string(rest, 7, &mut value_scratch)?, true);
            }
            // Both name and value are literal (§4.5.6).
            0x20..0x40 => {
                let name = string(rest, 3, &mut name_scratch)?;
                field(name, string(rest, 7, &mut value_scratch)?, false);
            }
            // All others refer to a dynamic table.
            _ => return Err(Malformed),
        }
    }
    Ok(())
}

/// Writes a string without Huffman coding: the longer text costs bytes, coding costs time, and one datagram holds most heads either way.
fn write_string(text: &[u8], prefix: u32, mark: u8, out: &mut Vec<u8>) {
    integer::write(mark, prefix, text.len(), out);
    out.extend_from_slice(text);
}

/// Begins a field section that needs no dynamic table.
pub fn begin(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0, 0]);
}

/// Writes `:status`.
pub fn status(status: u16, out: &mut Vec<u8>) {
    match table::status(status) {
        Some(index) => integer::write(0xc0, 6, index, out),
        None => {
            const ANY_STATUS: usize = 24;
            integer::write(0x50, 4, ANY_STATUS, out);
            let digits = [status / 100 % 10, status / 10 % 10, status % 10].map(|digit| b'0' + digit.to_le_bytes()[0]);
            write_string(&digits, 7, 0, out);
        }
    }
}

/// Writes a field of a response. Its name is in lower case.
pub fn field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    /// The bit that forbids proxies to put the field into a dynamic table (RFC 9204 §7.1).
    const NEVER_INDEXED: u8 = 0x20;
    match table::named(name) {
        None => {
            write_string(name, 3, 0x20, out);
            write_string(value, 7, 0, out);
        }
        Some(first) => {
            let same_name = table::FIELDS[first..].iter().take_while(|(other, _)| other.as_bytes() == name);
            if let Some((at, _)) = same_name.enumerate().find(|(_, (_, known))| known.as_bytes() == value) {
                return integer::write(0xc0, 6, first + at, out);
            }
            let never = if name == b"set-cookie" { NEVER_INDEXED } else { 0 };
            integer::write(0x50 | never, 4, first, out);
            write_string(value, 7, 0, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Fields = Vec<(String, String)>;

    fn decoded(section: &[u8]) -> Result<Fields, Malformed> {
        let mut fields = Fields::new();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        decode(section, |name, value, _| fields.push((text(name), text(value)))).map(|()| fields)
    }

    fn of(fields: &[(&str, &str)]) -> Fields {
        fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// RFC 9204 appendix B.1, and one of each other form without a dynamic table. "www.example.com" in Huffman code is from RFC 7541,
    /// appendix C.4.1.
    #[test]
    fn sections_of_literals_and_static_references() {
        let path = b"\x00\x00\x51\x0b/index.html";
        assert_eq!(decoded(path), Ok(of(&[(":path", "/index.html")])));
        let packed = b"\x00\x00\x50\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff";
        assert_eq!(decoded(packed), Ok(of(&[(":authority", "www.example.com")])));
        let mixed = b"\x00\x00\xd1\xd7\xff\x23\x5f\x50\x01x\x23abc\x02de\x73\x00";
        let expected = [
            (":method", "GET"),
            (":scheme", "https"),
            ("x-frame-options", "sameorigin"),
            ("user-agent", "x"),
            ("abc", "de"),
            ("content-disposition", ""),
        ];
        assert_eq!(decoded(mixed), Ok(of(&expected)));
        assert_eq!(decoded(b"\x00\x00"), Ok(Vec::new()));
    }

    /// RFC 9204 §2.2, §4.5.1: a section cannot refer to a table that is not there; and a section must be complete.
    #[test]
    fn what_needs_a_dynamic_table_or_more_bytes_is_refused() {
        let refused: [&[u8]; 14] = [
            b"",
            b"\x00",
            b"\x01\x00\xd1",
            b"\x00\x00\x80",
            b"\x00\x00\x40\x00",
            b"\x00\x00\x10",
            b"\x00\x00\x00\x00",
            // There is no 99.
            b"\x00\x00\xff\x24",
            b"\x00\x00\xff",
            b"\x00\x00\x51\x0b/index",
            b"\x00\x00\x23ab",
            b"\x00\x00\x23abc",
            // An integer without an end.
            b"\x00\x00\xff\xff\xff\xff\xff\xff\xff\x01",
            // Packed text that ends in nothing of the code.
            b"\x00\x00\x50\x81\x00",
        ];
        for section in refused {
            assert_eq!(decoded(section), Err(Malformed), "{section:x?}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let long = "v".repeat(5_000);
        let fields = [
            ("content-type", "text/html; charset=utf-8"),
            ("content-type", "text/html"),
            ("vary", "origin"),
            ("age", "12"),
            ("x-cache", "HIT"),
            ("set-cookie", "a=1"),
            ("link", long.as_str()),
            (long.as_str(), ""),
        ];
        for code in [200, 103, 404, 418, 599] {
            let mut section = Vec::new();
            begin(&mut section);
            status(code, &mut section);
            for (name, value) in fields {
                field(name.as_bytes(), value.as_bytes(), &mut section);
            }
            let code = code.to_string();
            assert_eq!(decoded(&section), Ok(of(&[&[(":status", code.as_str())][..], &fields].concat())));
        }
    }

    #[test]
    fn what_the_table_has_is_one_byte_and_cookies_are_marked() {
        let written = |name: &str, value: &str| {
            let mut out = Vec::new();
            field(name.as_bytes(), value.as_bytes(), &mut out);
            out
        };
        assert_eq!(written("content-type", "text/html; charset=utf-8"), [0xf4]);
        assert_eq!(written("x-frame-options", "sameorigin"), [0xff, 35]);
        assert_eq!(written("set-cookie", "a")[0], 0x7e);
        assert_eq!(written("age", "7"), [0x52, 1, b'7']);
    }
}
