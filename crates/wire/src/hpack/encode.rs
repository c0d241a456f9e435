//! Fields to header blocks (RFC 7541 §6), for responses.
//!
//! What all responses of a connection say alike (`server`, `content-type`, ...) becomes an entry of the table at once, and one byte from then
//! on. Anything else is spelled out the first time and becomes an entry the second time it is said: an `etag` or a `content-length` seldom
//! is, and would only drive out what is. What may be a secret is never an entry (§7.1). An entry is found by a hash of name and value, then
//! compared: no scan, and nothing is believed of a hash.
//!
//! Measured (`examples/hpack.rs`, instructions): a response of twelve fields costs 2,100 when all of them repeat, in 13 bytes; 3,500 when five
//! have values of their own. Strings are Huffman coded where they become entries: 2,500 for 27 bytes less, once. What is spelled out goes as
//! it is: it would be coded anew in each response.

use super::{
    Field, huffman, integer, statics,
    table::{OVERHEAD, Table},
};

/// The size of the peer's table until it announces another (RFC 9113 §6.5.2), and the most that is used of it.
const SIZE_MAX: usize = 4096;

/// The largest share of the table that one entry may take, as a divisor.
const ENTRY_SHARE: usize = 4;

/// The number of places that remember fields. With an index below 64 an entry is one byte.
const PLACES: usize = 64;
/// The number of places that are searched for one field.
const PROBES: usize = 4;

/// The number of places that remember lines that were found to be entries.
const LINES: usize = 64;

/// The encoder for one direction of one connection: its table, which the peer's decoder mirrors.
///
/// In memory, it takes that of the table (at most 8 KiB, and 2 KiB), and a kilobyte.
#[derive(Debug)]
pub struct Encoder {
    /// The names as they came, in whatever case, and the values.
    table: Table,
    places: [SentField; PLACES],
    /// The lines that are entries.
    lines: [SentField; LINES],
    /// The number of entries ever made, modulo 2^32.
    made: u32,
    /// The table size that the peer was told.
    told: usize,
    /// The smallest size since then: the peer is told that as well (§4.2).
    least: usize,
}

/// A field that was sent, and the entry that was made of it.
#[derive(Debug, Clone, Copy, Default)]
struct SentField {
    hash: u32,
    /// The count of entries when the entry was made; 0: the field was sent as a literal.
    made: u32,
}

/// Says what is known about a field.
enum FieldHistory {
    /// It is an entry. The number says how many entries were made since.
    Entry(usize),
    /// It was sent as a literal before.
    Said,
    New,
}

/// The way in which a field is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// It becomes an entry when it is sent the first time.
    AtOnce,
    /// It becomes an entry when it is sent the second time.
    Again,
    /// It is always sent as a literal.
    Plain,
    /// It is sent as a literal, and every proxy that passes it on must do the same (§6.2.3).
    Secret,
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Encoder {
    /// Creates the encoder of a connection that begins.
    #[must_use]
    pub const fn new() -> Self {
        let places = [SentField { hash: 0, made: 0 }; PLACES];
        Self {
            table: Table::new(SIZE_MAX),
            places,
            lines: [SentField { hash: 0, made: 0 }; LINES],
            made: 0,
            told: SIZE_MAX,
            least: SIZE_MAX,
        }
    }

    /// Sets the peer's SETTINGS_HEADER_TABLE_SIZE, as soon as it is acknowledged.
    pub fn set_max_size(&mut self, size: usize) {
        let size = size.min(SIZE_MAX);
        self.least = self.least.min(size);
        self.table.set_size_max(size);
    }

    /// Begins a block: writes the table's size, if it has changed (§4.2).
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        let size = self.table.size_max();
        if self.least < self.told || size != self.told {
            if self.least < size {
                integer::write(0x20, 5, self.least, out);
            }
            integer::write(0x20, 5, size, out);
        }
        (self.told, self.least) = (size, size);
    }

    /// Writes the status, 100 to 999, which comes before all fields.
    pub fn status(&mut self, status: u16, out: &mut Vec<u8>) {
        let index = match status {
            200 => 8,
            204 => 9,
            206 => 10,
            304 => 11,
            400 => 12,
            404 => 13,
            500 => 14,
            _ => {
                let digit = |unit: u16| b'0' + (status / unit % 10) as u8;
                out.extend_from_slice(&[statics::STATUS, 3, digit(100), digit(10), digit(1)]);
                return;
            }
        };
        out.push(0x80 | index);
    }

    /// Writes a field given as in HTTP/1, without the line's end, if `wanted` accepts its name. A line that was an entry the last time, as
    /// most lines of a response were, is not parsed.
    #[inline]
    pub fn line(&mut self, line: &[u8], wanted: impl FnOnce(&[u8]) -> bool, out: &mut Vec<u8>) {
        let (begin, end) = ends(line);
        #[expect(clippy::cast_possible_truncation, reason = "some of its bits")]
        let hash = mix(begin ^ line.len() as u64, end) as u32;
        let at = hash as usize % LINES;
        let place = self.lines[at];
        if place.hash == hash {
            let age = self.made.wrapping_sub(place.made) as usize;
            if let Some(entry) = self.table.get(age)
                && let Some(value) = line.strip_prefix(entry.name)
                && value.strip_prefix(b": ") == Some(entry.value)
            {
                integer::write(0x80, 7, statics::LEN + 1 + age, out);
                return;
            }
        }
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { return };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if wanted(name)
            && let Some(made) = self.say(name, value, out)
        {
            self.lines[at] = SentField { hash, made };
        }
    }

    /// Writes one field. The name is written in lower case, the value as it is.
    pub fn field(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        self.say(name, value, out);
    }

    /// Writes a field. If it is an entry, or has become one, returns the count of entries when that was made.
    fn say(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) -> Option<u32> {
        let hash = hash(name, value);
        let known = self.look_up(hash, name, value);
        if let FieldHistory::Entry(age) = known {
            integer::write(0x80, 7, statics::LEN + 1 + age, out);
            #[expect(clippy::cast_possible_truncation, reason = "there are far fewer entries")]
            return Some(self.made.wrapping_sub(age as u32));
        }
        let index = statics::index_of_any_case(name);
        let manner = match manner(index) {
            manner if manner == Manner::Secret => manner,
            _ if (name.len() + value.len() + OVERHEAD) * ENTRY_SHARE > self.table.size_max() => Manner::Plain,
            manner => manner,
        };
        let name_index = usize::from(index.unwrap_or(0));
        match (manner, known) {
            (Manner::AtOnce, _) | (Manner::Again, FieldHistory::Said) => {
                integer::write(0x40, 6, name_index, out);
                if index.is_none() {
                    spell_name(name, out);
                }
                code(value, out);
                self.made = self.made.wrapping_add(1);
                self.table.insert(Field { name, value, index });
                self.remember(hash, self.made);
                return Some(self.made);
            }
            (manner, _) => {
                if manner == Manner::Again {
                    self.remember(hash, 0);
                }
                integer::write(if manner == Manner::Secret { 0x10 } else { 0 }, 4, name_index, out);
                if index.is_none() {
                    spell_name(name, out);
                }
                integer::write(0, 7, value.len(), out);
                out.extend_from_slice(value);
            }
        }
        None
    }

    #[inline]
    fn look_up(&self, hash: u32, name: &[u8], value: &[u8]) -> FieldHistory {
        let mut known = FieldHistory::New;
        for probe in 0..PROBES {
            let place = self.places[(hash as usize + probe) % PLACES];
            if place.hash == hash {
                let age = self.made.wrapping_sub(place.made) as usize;
                match self.table.get(age) {
                    Some(entry) if entry.name == name && entry.value == value => {
                        return FieldHistory::Entry(age);
                    }
                    _ => known = FieldHistory::Said,
                }
            }
        }
        known
    }

    /// Remembers a field, in the place that it has already, else in one that has no entry any more, else in that of the oldest entry. A
    /// field that was only sent as a literal does not replace an entry.
    fn remember(&mut self, hash: u32, made: u32) {
        let live = self.table.len();
        let mut best = None;
        for probe in 0..PROBES {
            let at = (hash as usize + probe) % PLACES;
            let place = self.places[at];
            let age = self.made.wrapping_sub(place.made) as usize;
            let worth = if place.hash == hash { usize::MAX } else { age };
            if (worth >= live || made != 0) && best.is_none_or(|(_, most)| worth > most) {
                best = Some((at, worth));
            }
        }
        if let Some((at, _)) = best {
            self.places[at] = SentField { hash, made };
        }
    }
}

/// Returns the manner for a static index of a name. Fields that are not listed belong to one page, or are unknown: they have to come twice.
const fn manner(index: Option<u8>) -> Manner {
    match index {
        // These are accept-ranges, access-control-allow-origin, cache-control, content-encoding, content-language, content-type, date (the
        // same for a second), server, strict-transport-security, vary, via.
        Some(18 | 20 | 24 | 26 | 27 | 31 | 33 | 54 | 56 | 59 | 60) => Manner::AtOnce,
        // These are authorization, cookie, proxy-authorization, set-cookie.
        Some(23 | 32 | 49 | 55) => Manner::Secret,
        // This is location, which may carry a secret in its query.
        Some(46) => Manner::Plain,
        _ => Manner::Again,
    }
}

/// Writes a name that is not in the static table.
fn spell_name(name: &[u8], out: &mut Vec<u8>) {
    integer::write(0, 7, name.len(), out);
    let start = out.len();
    out.extend_from_slice(name);
    out[start..].make_ascii_lowercase();
}

/// Writes a string in the shorter form: Huffman-coded or as it is.
fn code(string: &[u8], out: &mut Vec<u8>) {
    let len = huffman::encoded_len(string);
    if len < string.len() {
        integer::write(0x80, 7, len, out);
        huffman::encode(string, out);
    } else {
        integer::write(0, 7, string.len(), out);
        out.extend_from_slice(string);
    }
}

/// Returns a hash of both lengths, the name's end, and the value's two ends. That tells apart what occurs in practice, and two fields that
/// share a hash are compared.
#[inline]
fn hash(name: &[u8], value: &[u8]) -> u32 {
    let (_, name_end) = ends(name);
    let (value_begin, value_end) = ends(value);
    let lens = (name.len() as u64) << 32 | value.len() as u64;
    (mix(mix(lens ^ name_end.rotate_left(17), value_begin), value_end) >> 32) as u32
}

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the first and the last eight bytes, which overlap where there are fewer than sixteen.
#[inline]
fn ends(bytes: &[u8]) -> (u64, u64) {
    if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (u64::from_le_bytes(*first), u64::from_le_bytes(*last))
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (u64::from(u32::from_le_bytes(*first)), u64::from(u32::from_le_bytes(*last)))
    } else {
        let [first, middle, last] = [0, bytes.len() / 2, bytes.len().wrapping_sub(1)].map(|at| bytes.get(at).copied().map_or(0, u64::from));
        (first << 8 | middle, last)
    }
}

/// Returns both halves of a product, combined by exclusive or.
#[inline]
fn mix(state: u64, word: u64) -> u64 {
    let product = u128::from(state ^ word) * u128::from(SEED);
    #[expect(clippy::cast_possible_truncation, reason = "its low half, and its high half")]
    let folded = product as u64 ^ (product >> 64) as u64;
    folded
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::{super::Decoder, *};

    /// The head of a response as it is stored.
    const HEAD: [(&str, &str); 12] = [
        ("Server", "seawall"),
        ("Date", "Mon, 21 Oct 2013 20:13:21 GMT"),
        ("Content-Type", "text/html; charset=utf-8"),
        ("Content-Length", "12345"),
        ("Cache-Control", "public, max-age=600"),
        ("ETag", "\"5f3c-1a2b3c4d\""),
        ("Last-Modified", "Mon, 21 Oct 2013 19:00:00 GMT"),
        ("Vary", "accept-encoding"),
        ("Age", "17"),
        ("Cache-Status", "seawall; hit; ttl=583"),
        ("X-Cache", "HIT"),
        ("Via", "1.1 seawall"),
    ];

    /// A line and its fields give the same block: once taken apart, once whole.
    #[test]
    fn a_line_is_its_field() {
        let (mut of_lines, mut of_fields) = (Encoder::new(), Encoder::new());
        let mut decoder = Decoder::new(4096);
        for round in 0..40 {
            // Every other one has less room, so that entries are evicted.
            for encoder in [&mut of_lines, &mut of_fields] {
                encoder.set_max_size(if round % 5 == 4 { 200 } else { 4096 });
            }
            let (mut lines, mut fields) = (Vec::new(), Vec::new());
            of_lines.begin(&mut lines);
            of_fields.begin(&mut fields);
            for (name, value) in HEAD {
                let value = if name == "Age" { round.to_string() } else { value.to_owned() };
                of_lines.line(format!("{name}: {value}").as_bytes(), |name| name != b"X-Cache", &mut lines);
                if name != "X-Cache" {
                    of_fields.field(name.as_bytes(), value.as_bytes(), &mut fields);
                }
            }
            assert_eq!(lines, fields, "round {round}");
            let expected: Vec<String> = HEAD.iter().map(|(name, _)| name.to_ascii_lowercase()).filter(|name| name != "x-cache").collect();
            let seen: Vec<String> = decoded(&mut decoder, &lines).into_iter().map(|(name, _)| name).collect();
            assert_eq!(seen, expected, "round {round}");
        }
    }

    fn response(encoder: &mut Encoder, lines: &[(&str, &str)]) -> Vec<u8> {
        let mut out = Vec::new();
        encoder.begin(&mut out);
        encoder.status(200, &mut out);
        for (name, value) in lines {
            encoder.field(name.as_bytes(), value.as_bytes(), &mut out);
        }
        out
    }

    fn decoded(decoder: &mut Decoder, block: &[u8]) -> Vec<(String, String)> {
        let mut lines = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        let result = decoder.decode(block, |field| {
            lines.push((text(field.name), text(field.value)));
            ControlFlow::Continue(())
        });
        assert_eq!(result, Ok(()));
        lines
    }

    fn expected(lines: &[(&str, &str)]) -> Vec<(String, String)> {
        let status = (":status".to_owned(), "200".to_owned());
        std::iter::once(status).chain(lines.iter().map(|(name, value)| (name.to_ascii_lowercase(), (*value).to_owned()))).collect()
    }

    #[test]
    fn what_is_said_twice_is_one_byte_from_the_third_time_on() {
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(4096));
        let lens = [(); 4].map(|()| {
            let block = response(&mut encoder, &HEAD);
            assert_eq!(decoded(&mut decoder, &block), expected(&HEAD));
            block.len()
        });
        assert!(lens[0] < 250 && lens[1] < lens[0] / 2, "{lens:?}");
        assert_eq!(lens[2..], [1 + HEAD.len(); 2]);
    }

    #[test]
    fn what_differs_each_time_drives_out_nothing() {
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(4096));
        for number in 0..1_000 {
            let [age, tag, length] = [format!("{number}"), format!("\"{number}-x\""), format!("{}", 100_000 + number)];
            let mut lines = HEAD;
            (lines[3].1, lines[5].1, lines[8].1) = (&length, &tag, &age);
            let block = response(&mut encoder, &lines);
            assert_eq!(decoded(&mut decoder, &block), expected(&lines));
            if number > 1 {
                // Nine entries and the status; two bytes before each of the other values, an ETag's index being too large for one.
                assert!(block.len() <= 10 + 3 * 3 + age.len() + tag.len() + length.len(), "{number}: {}", block.len());
            }
        }
    }

    #[test]
    fn entries_that_were_evicted_are_made_again() {
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(4096));
        for number in 0..5_000 {
            let date = format!("Mon, 21 Oct 2013 20:13:{number:05} GMT");
            let mut lines = HEAD;
            lines[1].1 = &date;
            let block = response(&mut encoder, &lines);
            assert_eq!(decoded(&mut decoder, &block), expected(&lines));
        }
    }

    /// RFC 7541 §6.2.3, §7.1.
    #[test]
    fn secrets_are_never_entries() {
        let mut encoder = Encoder::new();
        let lines = [("Set-Cookie", "id=1"), ("Location", "/?token=1"), ("Authorization", "Basic x")];
        let spelled = b"\x88\x1f\x28\x04id=1\x0f\x1f\x09/?token=1\x1f\x08\x07Basic x";
        for _ in 0..3 {
            assert_eq!(response(&mut encoder, &lines), spelled);
        }
    }

    #[test]
    fn a_large_field_is_spelled_out() {
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(4096));
        let large = "x".repeat(1_000);
        let lines = [("Content-Type", &large[..]), ("X-Large", &large), ("", ""), ("X-Empty", "")];
        for _ in 0..3 {
            let block = response(&mut encoder, &lines);
            assert!(block.len() > 2_000);
            assert_eq!(decoded(&mut decoder, &block), expected(&lines));
        }
    }

    #[test]
    fn statuses_are_three_digits() {
        let mut decoder = Decoder::new(4096);
        let mut encoder = Encoder::new();
        for status in 100..=999 {
            let mut out = Vec::new();
            encoder.status(status, &mut out);
            assert_eq!(decoded(&mut decoder, &out), [(":status".to_owned(), status.to_string())]);
            assert!(out.len() <= 5);
        }
        let mut out = Vec::new();
        for status in [200, 204, 206, 304, 400, 404, 500] {
            encoder.status(status, &mut out);
        }
        assert_eq!(out, [0x88, 0x89, 0x8a, 0x8b, 0x8c, 0x8d, 0x8e]);
    }

    /// RFC 7541 §4.2.
    #[test]
    fn sizes_are_told_at_the_next_block_the_smallest_of_them_too() {
        let begun = |encoder: &mut Encoder| {
            let mut out = Vec::new();
            encoder.begin(&mut out);
            out
        };
        let mut encoder = Encoder::new();
        assert_eq!(begun(&mut encoder), []);
        // This is more than what is used of it.
        encoder.set_max_size(65_536);
        assert_eq!(begun(&mut encoder), []);
        encoder.set_max_size(10);
        assert_eq!(begun(&mut encoder), [0x2a]);
        assert_eq!(begun(&mut encoder), []);
        encoder.set_max_size(0);
        encoder.set_max_size(4096);
        assert_eq!(begun(&mut encoder), [0x20, 0x3f, 0xe1, 0x1f]);
        encoder.set_max_size(30);
        encoder.set_max_size(4096);
        assert_eq!(begun(&mut encoder), [0x3e, 0x3f, 0xe1, 0x1f]);
        encoder.set_max_size(5);
        encoder.set_max_size(4);
        assert_eq!(begun(&mut encoder), [0x24]);
    }

    #[test]
    fn a_peer_with_a_small_table_or_none_understands() {
        for size in [0, 40, 100, 400, 4096] {
            let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(4096));
            for turn in 0..5 {
                if turn == 2 {
                    encoder.set_max_size(size);
                }
                let block = response(&mut encoder, &HEAD);
                assert_eq!(decoded(&mut decoder, &block), expected(&HEAD), "{size}");
                assert!(turn < 2 || decoder.table_size() <= size);
            }
        }
    }
}
