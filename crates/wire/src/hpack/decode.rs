//! Header blocks to fields (RFC 7541 §3, §6).

use std::ops::ControlFlow;

use super::{Field, HpackError, huffman, integer, statics, table::Table};

/// The table size that both sides begin with, until an update changes it (RFC 9113 §6.5.2).
const SIZE_AT_FIRST: usize = 4096;

/// The number of bytes that the scratch buffer may keep between blocks.
const SCRATCH_KEPT: usize = 1024;

/// The decoder for one direction of one connection, with the table that its blocks build up.
///
/// In memory, it takes that of the table (twice its size and half of it, when full), and while it decodes at most 8/5 of the block and an
/// entry of the table.
#[derive(Debug)]
pub struct Decoder {
    table: Table,
    /// The size that was announced: updates may set at most that.
    size_max: usize,
    /// Strings that are not in the block or the table as they are, but had to be decoded or copied.
    scratch: Vec<u8>,
}

impl Decoder {
    /// Creates a decoder. `size_max` is what we announce as SETTINGS_HEADER_TABLE_SIZE. Less than 4,096 would be valid from the
    /// acknowledgement on only, which is not checked here.
    pub fn new(size_max: usize) -> Self {
        Self { table: Table::new(size_max.min(SIZE_AT_FIRST)), size_max, scratch: Vec::new() }
    }

    /// Decodes one whole block (joined from HEADERS and CONTINUATION), whose length the caller bounds. Calls `field` for each field, until
    /// that breaks. The rest is decoded even then, without calls, so that the table stays right.
    ///
    /// # Errors
    /// Fails if the block is malformed, which is an error of the connection.
    pub fn decode(&mut self, block: &[u8], mut field: impl FnMut(Field<'_>) -> ControlFlow<()>) -> Result<(), HpackError> {
        let mut rest = block;
        let mut is_wanted = true;
        let mut report = |said: Field<'_>| {
            if is_wanted {
                is_wanted = field(said).is_continue();
            }
        };
        self.size_updates(&mut rest)?;
        while let Some(&first) = rest.first() {
            match first.leading_zeros() {
                // 1xxxxxxx is an entry (RFC 7541 §6.1).
                0 => {
                    let index = integer::read(&mut rest, 7)?;
                    match statics::get(index) {
                        Some(entry) => report(entry),
                        None => report(dynamic(&self.table, index)?),
                    }
                }
                // 01xxxxxx is a new entry (§6.2.1).
                1 => {
                    let literal = Literal::read(&mut rest, 6, &self.table, &mut self.scratch)?;
                    let said = literal.field(&self.scratch);
                    report(said);
                    self.table.insert(said);
                }
                // 001xxxxx is an update, which comes too late (§4.2).
                2 => return Err(HpackError::SizeUpdate),
                // 000xxxxx is a field that is not, or must never be, an entry (§6.2.2, §6.2.3).
                _ => {
                    let literal = Literal::read(&mut rest, 4, &self.table, &mut self.scratch)?;
                    report(literal.field(&self.scratch));
                }
            }
        }
        if self.scratch.capacity() > SCRATCH_KEPT {
            self.scratch = Vec::new();
        }
        Ok(())
    }

    /// Returns the table's size as RFC 7541 §4.1 counts it: the memory that the client makes us use.
    pub const fn table_size(&self) -> usize {
        self.table.size()
    }

    /// Reads size updates, which are allowed at the beginning of a block alone (§4.2).
    fn size_updates(&mut self, rest: &mut &[u8]) -> Result<(), HpackError> {
        while rest.first().is_some_and(|first| first.leading_zeros() == 2) {
            let size = integer::read(rest, 5)?;
            if size > self.size_max {
                return Err(HpackError::SizeUpdate);
            }
            self.table.set_size_max(size);
        }
        Ok(())
    }
}

/// Returns the entry at an index beyond the static table; index 0 has no entry (§2.3.3, §6.1).
#[inline]
fn dynamic(table: &Table, index: usize) -> Result<Field<'_>, HpackError> {
    index.checked_sub(statics::LEN + 1).and_then(|age| table.get(age)).ok_or(HpackError::Index)
}

/// A field with a literal value, and maybe a literal name.
struct Literal<'a> {
    name: Text<'a>,
    value: Text<'a>,
    index: Option<u8>,
}

/// A string: a slice of the block or the table, or else the length of the next part of the scratch buffer.
#[derive(Clone, Copy)]
enum Text<'a> {
    There(&'a [u8]),
    Scratch(usize),
}

impl<'a> Literal<'a> {
    #[inline]
    fn read(rest: &mut &'a [u8], prefix: u32, table: &Table, scratch: &mut Vec<u8>) -> Result<Self, HpackError> {
        scratch.clear();
        let (name, index) = match integer::read(rest, prefix)? {
            0 => {
                let name = Text::read(rest, scratch)?;
                let spelled = match name {
                    Text::There(name) => name,
                    Text::Scratch(len) => &scratch[..len],
                };
                (name, statics::index_of(spelled))
            }
            index => match statics::get(index) {
                Some(entry) => (Text::There(entry.name), entry.index),
                None => {
                    // The name is copied, as the entry may be evicted by the one that is made of its name (§4.4).
                    let entry = dynamic(table, index)?;
                    scratch.extend_from_slice(entry.name);
                    (Text::Scratch(entry.name.len()), entry.index)
                }
            },
        };
        let value = Text::read(rest, scratch)?;
        Ok(Self { name, value, index })
    }

    #[inline]
    fn field<'b>(&self, scratch: &'b [u8]) -> Field<'b>
    where
        'a: 'b,
    {
        let (name, scratch) = self.name.get(scratch);
        Field { name, value: self.value.get(scratch).0, index: self.index }
    }
}

impl<'a> Text<'a> {
    /// Reads a string literal (RFC 7541 §5.2).
    #[inline]
    fn read(rest: &mut &'a [u8], scratch: &mut Vec<u8>) -> Result<Self, HpackError> {
        let is_coded = rest.first().is_some_and(|first| first & 0x80 != 0);
        let len = integer::read(rest, 7)?;
        let (string, behind) = rest.split_at_checked(len).ok_or(HpackError::Truncated)?;
        *rest = behind;
        if !is_coded {
            return Ok(Self::There(string));
        }
        let before = scratch.len();
        huffman::decode(string, scratch)?;
        Ok(Self::Scratch(scratch.len() - before))
    }

    /// Returns the string, and the scratch buffer after it.
    #[inline]
    fn get<'b>(self, scratch: &'b [u8]) -> (&'b [u8], &'b [u8])
    where
        'a: 'b,
    {
        match self {
            Self::There(string) => (string, scratch),
            Self::Scratch(len) => scratch.split_at(len),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Line = (String, String);

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("digits"), 16).expect("two digits")).collect()
    }

    fn text(bytes: &[u8]) -> String {
        String::from_utf8(bytes.to_vec()).expect("text")
    }

    fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<Line>, HpackError> {
        let mut lines = Vec::new();
        decoder.decode(block, |field| {
            assert_eq!(field.index, statics::index_of(field.name), "of {}", text(field.name));
            lines.push((text(field.name), text(field.value)));
            ControlFlow::Continue(())
        })?;
        Ok(lines)
    }

    fn lines(lines: &[(&str, &str)]) -> Vec<Line> {
        lines.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    fn table(decoder: &Decoder) -> Vec<Line> {
        (0..decoder.table.len())
            .map(|age| decoder.table.get(age).expect("an entry"))
            .map(|entry| (text(entry.name), text(entry.value)))
            .collect()
    }

    /// RFC 7541 §C.2: block, field, table, and its size.
    #[test]
    fn each_representation_is_as_in_the_rfc() {
        type Lines = [(&'static str, &'static str)];
        let rows: [(&str, &Lines, &Lines, usize); 4] = [
            (
                "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
                &[("custom-key", "custom-header")],
                &[("custom-key", "custom-header")],
                55,
            ),
            ("040c 2f73 616d 706c 652f 7061 7468", &[(":path", "/sample/path")], &[], 0),
            ("1008 7061 7373 776f 7264 0673 6563 7265 74", &[("password", "secret")], &[], 0),
            ("82", &[(":method", "GET")], &[], 0),
        ];
        for (block, fields, entries, size) in rows {
            let mut decoder = Decoder::new(4096);
            assert_eq!(decode(&mut decoder, &bytes(block)), Ok(lines(fields)));
            assert_eq!(table(&decoder), lines(entries));
            assert_eq!(decoder.table_size(), size);
        }
    }

    /// RFC 7541 §C.3 (plain) and §C.4 (Huffman).
    #[test]
    fn three_requests_are_as_in_the_rfc() {
        let plain = [
            "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            "8286 84be 5808 6e6f 2d63 6163 6865",
            "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
        ];
        let coded = [
            "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
            "8286 84be 5886 a8eb 1064 9cbf",
            "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
        ];
        for [first, second, third] in [plain, coded] {
            let mut decoder = Decoder::new(4096);
            let authority = (":authority", "www.example.com");
            let request = [(":method", "GET"), (":scheme", "http"), (":path", "/"), authority];
            assert_eq!(decode(&mut decoder, &bytes(first)), Ok(lines(&request)));
            assert_eq!((table(&decoder), decoder.table_size()), (lines(&[authority]), 57));

            let no_cache = ("cache-control", "no-cache");
            let request = [(":method", "GET"), (":scheme", "http"), (":path", "/"), authority, no_cache];
            assert_eq!(decode(&mut decoder, &bytes(second)), Ok(lines(&request)));
            assert_eq!((table(&decoder), decoder.table_size()), (lines(&[no_cache, authority]), 110));

            let custom = ("custom-key", "custom-value");
            let request = [(":method", "GET"), (":scheme", "https"), (":path", "/index.html"), authority, custom];
            assert_eq!(decode(&mut decoder, &bytes(third)), Ok(lines(&request)));
            assert_eq!((table(&decoder), decoder.table_size()), (lines(&[custom, no_cache, authority]), 164));
        }
    }

    /// RFC 7541 §C.5 (plain) and §C.6 (Huffman): a table of 256 bytes, which evicts.
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
            let mut decoder = Decoder::new(256);
            let [found, temporary] = ["302", "307"].map(|status| (":status", status));
            let private = ("cache-control", "private");
            let [date, later] = ["Mon, 21 Oct 2013 20:13:21 GMT", "Mon, 21 Oct 2013 20:13:22 GMT"].map(|date| ("date", date));
            let location = ("location", "https://www.example.com");
            assert_eq!(decode(&mut decoder, &bytes(first)), Ok(lines(&[found, private, date, location])));
            assert_eq!((table(&decoder), decoder.table_size()), (lines(&[location, date, private, found]), 222));

            assert_eq!(decode(&mut decoder, &bytes(second)), Ok(lines(&[temporary, private, date, location])));
            assert_eq!((table(&decoder), decoder.table_size()), (lines(&[temporary, location, date, private]), 222));

            let coding = ("content-encoding", "gzip");
            let cookie = ("set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1");
            let expected = [(":status", "200"), private, later, location, coding, cookie];
            assert_eq!(decode(&mut decoder, &bytes(third)), Ok(lines(&expected)));
            assert_eq!((table(&decoder), decoder.table_size()), (lines(&[cookie, coding, later]), 215));
        }
    }

    #[test]
    fn what_is_no_block_is_an_error() {
        for (block, error, what) in [
            ("80", HpackError::Index, "index 0"),
            ("be", HpackError::Index, "an entry of an empty table"),
            ("7e 01 61", HpackError::Index, "the name of an entry that is not there"),
            ("ff 80 ff ff 7f", HpackError::Index, "a large index"),
            ("ff 80 80 80 80 01", HpackError::Integer, "an index of more than 28 bits"),
            ("ff", HpackError::Truncated, "an index cut short"),
            ("40", HpackError::Truncated, "no name"),
            ("40 01", HpackError::Truncated, "half a name"),
            ("40 01 61", HpackError::Truncated, "no value"),
            ("40 01 61 02 62", HpackError::Truncated, "half a value"),
            ("04 ff ff ff 7f 61", HpackError::Truncated, "a value that is longer than the block"),
            ("40 81 ff 01 61", HpackError::Huffman, "padding of eight bits in a name"),
            ("04 84 ff ff ff ff", HpackError::Huffman, "an end of string in a value"),
            ("82 20", HpackError::SizeUpdate, "an update behind a field"),
            ("3f e2 1f", HpackError::SizeUpdate, "an update to 4,097"),
        ] {
            assert_eq!(decode(&mut Decoder::new(4096), &bytes(block)), Err(error), "{what}");
        }
    }

    #[test]
    fn updates_empty_the_table_and_are_obeyed() {
        let mut decoder = Decoder::new(4096);
        decode(&mut decoder, &bytes("40 01 61 01 62")).expect("it is fine");
        // To 0 and back to 4,096: two updates at once (RFC 7541 §4.2).
        assert_eq!(decode(&mut decoder, &bytes("20 3f e1 1f 82")), Ok(lines(&[(":method", "GET")])));
        assert_eq!(decode(&mut decoder, &bytes("be")), Err(HpackError::Index));
        let mut decoder = Decoder::new(4096);
        decode(&mut decoder, &bytes("20 40 01 61 01 62")).expect("what does not fit is not an error");
        assert_eq!((decoder.table.len(), decoder.table_size()), (0, 0));
        // The size that was announced beyond 4,096 is used once the client says so.
        let mut decoder = Decoder::new(8192);
        let block = [&[0x40, 1, b'a', 0x7f, 0x89, 0x26][..], &[b'x'; 5000]].concat();
        decode(&mut decoder, &block).expect("it is fine");
        assert_eq!(decoder.table_size(), 0);
        decode(&mut decoder, &[&bytes("3f e1 3f")[..], &block].concat()).expect("it is fine");
        assert_eq!(decoder.table_size(), 5033);
    }

    #[test]
    fn the_name_of_an_entry_outlives_the_entry() {
        let mut decoder = Decoder::new(64);
        decode(&mut decoder, &bytes("40 04 6e 61 6d 65 01 31")).expect("it is fine");
        // A new entry by the name of the old one, which leaves no room for the old one (RFC 7541 §4.4).
        let expected = lines(&[("name", "12345678")]);
        assert_eq!(decode(&mut decoder, &bytes("7e 08 31 32 33 34 35 36 37 38")), Ok(expected.clone()));
        assert_eq!(table(&decoder), expected);
    }

    #[test]
    fn a_break_ends_the_report_and_not_the_decoding() {
        let mut decoder = Decoder::new(4096);
        let mut calls = 0;
        let block = bytes("82 40 01 61 01 62 40 01 63 01 64");
        let decoded = decoder.decode(&block, |_| {
            calls += 1;
            ControlFlow::Break(())
        });
        assert_eq!((decoded, calls), (Ok(()), 1));
        assert_eq!(table(&decoder), lines(&[("c", "d"), ("a", "b")]));
    }

    #[test]
    fn an_index_says_that_a_name_is_known_and_in_lower_case() {
        let mut decoder = Decoder::new(4096);
        let mut indices = Vec::new();
        // :path twice by its index, host spelled out, then by its entry, Host, and x.
        let block = bytes("84 04 01 2f 40 04 68 6f 73 74 01 61 be 40 04 48 6f 73 74 01 61 00 01 78 00");
        let decoded = decoder.decode(&block, |field| {
            indices.push(field.index);
            ControlFlow::Continue(())
        });
        assert_eq!(decoded, Ok(()));
        assert_eq!(indices, [Some(4), Some(4), Some(38), Some(38), None, None]);
    }

    /// A block has a large entry, and nothing else but references to it: nothing is copied, and nothing stays.
    #[test]
    fn a_bomb_of_references_takes_no_memory() {
        let mut decoder = Decoder::new(4096);
        let mut block = vec![0x40, 1, b'a', 0x7f, 0x80, 0x1e];
        block.extend_from_slice(&[b'x'; 3967]);
        block.extend_from_slice(&[0xbe; 10_000]);
        let mut reported = 0;
        let decoded = decoder.decode(&block, |field| {
            reported += field.value.len();
            ControlFlow::Continue(())
        });
        assert_eq!((decoded, reported), (Ok(()), 3967 * 10_001));
        assert_eq!(decoder.table_size(), 4000);
        assert!(decoder.scratch.capacity() <= SCRATCH_KEPT);
    }
}
