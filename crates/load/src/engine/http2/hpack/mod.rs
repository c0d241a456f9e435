//! HPACK (RFC 7541) as a client of the load tester needs it: requests are written once, and the fields of responses are handed out as slices.
//!
//! A [`Decoder`] has the dynamic table that browsers announce, 4,096 bytes, because a server's work depends on it. Requests are written as literals
//! that enter no table, so their bytes are the same on each connection and can be made before a run.

mod huffman;
mod statics;

use std::collections::VecDeque;

/// The size of the dynamic table, which is what both sides begin with (RFC 9113 §6.5.2).
const TABLE_MAX: usize = 4096;

/// The number of bytes that RFC 7541 §4.1 adds to the length of an entry.
const ENTRY_OVERHEAD: usize = 32;

/// The largest list of fields that a block may stand for, with what is added for each: as much as a head of HTTP/1 may have. A few bytes can stand
/// for a field of 4 KB.
const LIST_MAX: usize = 64 << 10;

/// A block that is not HPACK, or stands for too much. It is an error of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// Decodes the blocks of one connection, in their order.
#[derive(Debug)]
pub(super) struct Decoder {
    /// Names and values of the entries, one behind the other, the oldest first. What was evicted stays in front until it is as long as the rest.
    bytes: Vec<u8>,
    /// The place where the first entry begins.
    begins: usize,
    /// The length of name and value of each entry, the newest first.
    entries: VecDeque<(u32, u32)>,
    size: usize,
    size_max: usize,
}

impl Decoder {
    pub(super) const fn new() -> Self {
        Self { bytes: Vec::new(), begins: 0, entries: VecDeque::new(), size: 0, size_max: TABLE_MAX }
    }

    /// Decodes a whole block, and hands each field to `field`. `scratch` is room for strings, and is the caller's so that not every connection has it.
    pub(super) fn decode(&mut self, block: &[u8], scratch: &mut Vec<u8>, mut each: impl FnMut(&[u8], &[u8])) -> Result<(), Malformed> {
        let mut left = LIST_MAX;
        let mut field = |name: &[u8], value: &[u8]| {
            left = left.checked_sub(name.len() + value.len() + ENTRY_OVERHEAD).ok_or(Malformed)?;
            each(name, value);
            Ok(())
        };
        let mut rest = block;
        while let Some(&first) = rest.first() {
            if first & 0x80 != 0 {
                let index = integer(&mut rest, 7)?;
                let (name, value) = self.get(index)?;
                field(name, value)?;
            } else if first & 0xe0 == 0x20 {
                let size = integer(&mut rest, 5)?;
                if size > TABLE_MAX {
                    return Err(Malformed);
                }
                self.size_max = size;
                self.evict(0);
            } else {
                let enters = first & 0x40 != 0;
                let index = integer(&mut rest, if enters { 6 } else { 4 })?;
                scratch.clear();
                // Names are copied: the entry that has one may be evicted by the entry that is made of it (§4.4).
                if index == 0 {
                    string(&mut rest, scratch)?
                } else {
                    scratch.extend_from_slice(self.get(index)?.0)
                }
                let name = scratch.len();
                string(&mut rest, scratch)?;
                let (name, value) = scratch.split_at(name);
                field(name, value)?;
                if enters {
                    self.insert(name, value);
                }
            }
        }
        Ok(())
    }

    fn get(&self, index: usize) -> Result<(&[u8], &[u8]), Malformed> {
        let Some(age) = index.checked_sub(statics::ENTRIES.len() + 1) else {
            return index.checked_sub(1).map(|index| statics::ENTRIES[index]).ok_or(Malformed);
        };
        let (name, value) = *self.entries.get(age).ok_or(Malformed)?;
        let newer: usize = self.entries.range(..age).map(|entry| (entry.0 + entry.1) as usize).sum();
        let end = self.bytes.len() - newer;
        let begin = end - (name + value) as usize;
        Ok(self.bytes[begin..end].split_at(name as usize))
    }

    fn insert(&mut self, name: &[u8], value: &[u8]) {
        let size = name.len() + value.len() + ENTRY_OVERHEAD;
        self.evict(size);
        if size > self.size_max {
            return;
        }
        if self.begins > self.bytes.len() / 2 {
            self.bytes.drain(..self.begins);
            self.begins = 0;
        }
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        let length = |text: &[u8]| u32::try_from(text.len()).expect("an entry is smaller than the table");
        self.entries.push_front((length(name), length(value)));
        self.size += size;
    }

    /// Makes room for an entry of so many bytes (§4.4).
    fn evict(&mut self, size: usize) {
        while self.size + size > self.size_max
            && let Some((name, value)) = self.entries.pop_back()
        {
            let length = (name + value) as usize;
            self.begins += length;
            self.size -= length + ENTRY_OVERHEAD;
        }
    }
}

/// Reads an integer with a prefix of so many bits (§5.1). More than 28 bits beyond it are no length of anything here.
fn integer(rest: &mut &[u8], prefix: u32) -> Result<usize, Malformed> {
    let (&first, mut behind) = rest.split_first().ok_or(Malformed)?;
    let most = (1 << prefix) - 1;
    let mut value = usize::from(first) & most;
    if value == most {
        for shift in [0, 7, 14, 21] {
            let (&byte, next) = behind.split_first().ok_or(Malformed)?;
            behind = next;
            value += usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                *rest = behind;
                return Ok(value);
            }
        }
        return Err(Malformed);
    }
    *rest = behind;
    Ok(value)
}

/// Reads a string (§5.2), and appends it.
fn string(rest: &mut &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    let is_coded = rest.first().is_some_and(|first| first & 0x80 != 0);
    let length = integer(rest, 7)?;
    let (string, behind) = rest.split_at_checked(length).ok_or(Malformed)?;
    *rest = behind;
    if is_coded {
        return huffman::decode(string, out);
    }
    out.extend_from_slice(string);
    Ok(())
}

/// Writes a field that enters no table (§6.2.2).
pub(super) fn write(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    if let Some(index) = statics::ENTRIES.iter().position(|entry| *entry == (name, value)) {
        return write_integer(out, index + 1, 7, 0x80);
    }
    match statics::ENTRIES.iter().position(|entry| entry.0 == name) {
        Some(index) => write_integer(out, index + 1, 4, 0),
        None => {
            out.push(0);
            write_integer(out, name.len(), 7, 0);
            out.extend_from_slice(name);
        }
    }
    write_integer(out, value.len(), 7, 0);
    out.extend_from_slice(value);
}

#[expect(clippy::cast_possible_truncation, reason = "each byte has the part of the number that fits in it")]
fn write_integer(out: &mut Vec<u8>, value: usize, prefix: u32, pattern: u8) {
    let most = (1 << prefix) - 1;
    if value < most {
        return out.push(pattern | value as u8);
    }
    out.push(pattern | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("digits"), 16).expect("two digits")).collect()
    }

    fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<(String, String)>, Malformed> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        let mut fields = Vec::new();
        decoder.decode(block, &mut Vec::new(), |name, value| fields.push((text(name), text(value))))?;
        Ok(fields)
    }

    fn lines(lines: &[(&str, &str)]) -> Vec<(String, String)> {
        lines.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// RFC 7541 §C.5 (plain) and §C.6 (Huffman), whose table of 256 bytes evicts.
    #[test]
    fn three_responses_are_as_in_the_rfc() {
        let plain = [
            "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d 546e 1768
             7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            "4803 3330 37c1 c0bf",
            "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f 6f3d 4153
             444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e
             3d31",
        ];
        let coded = [
            "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8
             e9ae 82ae 43d3",
            "4883 640e ffc1 c0bf",
            "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b
             3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
        ];
        for [first, second, third] in [plain, coded] {
            let mut decoder = Decoder { size_max: 256, ..Decoder::new() };
            let [found, temporary] = ["302", "307"].map(|status| (":status", status));
            let private = ("cache-control", "private");
            let [date, later] = ["Mon, 21 Oct 2013 20:13:21 GMT", "Mon, 21 Oct 2013 20:13:22 GMT"].map(|date| ("date", date));
            let location = ("location", "https://www.example.com");
            assert_eq!(decode(&mut decoder, &bytes(first)), Ok(lines(&[found, private, date, location])));
            assert_eq!(decoder.size, 222);
            assert_eq!(decode(&mut decoder, &bytes(second)), Ok(lines(&[temporary, private, date, location])));
            assert_eq!(decoder.size, 222);
            let coding = ("content-encoding", "gzip");
            let cookie = ("set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1");
            assert_eq!(decode(&mut decoder, &bytes(third)), Ok(lines(&[(":status", "200"), private, later, location, coding, cookie])));
            assert_eq!(decoder.size, 215);
        }
    }

    #[test]
    fn what_is_no_block_is_an_error() {
        for (block, what) in [
            ("80", "index 0"),
            ("be", "an entry of an empty table"),
            ("7e 01 61", "the name of an entry that is not there"),
            ("ff 80 80 80 80 01", "an index of more than 28 bits"),
            ("ff", "an index cut short"),
            ("40 01 61", "no value"),
            ("04 ff ff ff 7f 61", "a value that is longer than the block"),
            ("40 81 ff 01 61", "padding of eight bits in a name"),
            ("04 84 ff ff ff ff", "an end of string in a value"),
            ("3f e2 1f", "a table of 4,097 bytes"),
        ] {
            assert_eq!(decode(&mut Decoder::new(), &bytes(block)), Err(Malformed), "{what}");
        }
    }

    #[test]
    fn a_table_that_turns_over_many_times_keeps_its_entries_and_no_more() {
        let mut decoder = Decoder::new();
        for turn in 0..1000 {
            let mut block = vec![0x40, 4, b'n', b'a', b'm', b'e'];
            let value = format!("{turn:0>60}");
            write_integer(&mut block, value.len(), 7, 0);
            block.extend_from_slice(value.as_bytes());
            // The entry itself, and the one that is 40 entries older.
            block.push(0x80 | 62);
            if turn >= 40 {
                block.push(0x80 | 102);
            }
            let fields = decode(&mut decoder, &block).expect("it is a block");
            assert_eq!(fields[1].1, value);
            if turn >= 40 {
                assert_eq!(fields[2].1, format!("{:0>60}", turn - 40));
            }
        }
        assert!(decoder.size <= TABLE_MAX && decoder.bytes.len() <= 2 * TABLE_MAX, "{} bytes", decoder.bytes.len());
    }

    #[test]
    fn what_is_written_is_read_and_enters_no_table() {
        let mut block = Vec::new();
        let long = "x".repeat(5000);
        let fields = [(":method", "GET"), (":path", "/a?b"), (":authority", "blog.example"), ("x-of-ours", long.as_str()), ("cookie", "")];
        for (name, value) in fields {
            write(&mut block, name.as_bytes(), value.as_bytes());
        }
        let mut decoder = Decoder::new();
        assert_eq!(decode(&mut decoder, &block), Ok(lines(&fields)));
        assert_eq!(decoder.size, 0);
        assert_eq!(block[0], 0x82);
    }
}
