//! Distributions in HdrHistogram's own format, so that results of several machines can be added exactly.

use std::io::Read as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use flate2::read::ZlibDecoder;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

use crate::record::Distribution;

/// The first bytes of a distribution, packed and unpacked.
const COMPRESSED: [u8; 4] = [0x1c, 0x84, 0x93, 0x14];
const UNCOMPRESSED: [u8; 4] = [0x1c, 0x84, 0x93, 0x13];

/// The bytes before the counts.
const HEAD: usize = 40;

/// The largest distribution, unpacked: 64 bits to three digits have 56,000 places of nine bytes at most.
const UNPACKED_MAX: u64 = 1 << 20;

/// The most digits to which times are told apart.
const DIGITS_MAX: u32 = 3;

/// The most places for counts.
const PLACES_MAX: u64 = 1 << 16;

/// The most times of a distribution. Sums of a thousand such numbers fit into 64 bits.
const COUNT_MAX: u64 = 1 << 53;

/// A distribution in the compressed V2 format of HdrHistogram, in base64. It begins with `HISTFAAAA`, and every library of that name reads it. The
/// unit is the nanosecond. A distribution without a value is the empty string.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Encoded(String);

/// A text that is not a distribution.
#[derive(Debug, thiserror::Error)]
#[error("this is not a histogram in the compressed V2 format of HdrHistogram, in base64")]
pub struct NotEncoded;

impl Encoded {
    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether nothing was counted.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds what the text holds to a distribution.
    ///
    /// # Errors
    /// When it does not hold one. `to` may then have some of it.
    pub fn add_to(&self, to: &mut Distribution) -> Result<(), NotEncoded> {
        if self.is_empty() {
            return Ok(());
        }
        let bytes = STANDARD.decode(&self.0).map_err(|_| NotEncoded)?;
        let bytes = unpacked(&bytes).ok_or(NotEncoded)?;
        let read = Deserializer::new().deserialize::<u64, _>(&mut bytes.as_slice()).map_err(|_| NotEncoded)?;
        to.add_histogram(&read).map_err(|_| NotEncoded)
    }
}

/// Unpacks a distribution, and looks whether it is one: the library that reads it takes memory of any length that a head names, and ends the program at
/// a count that is not valid.
fn unpacked(bytes: &[u8]) -> Option<Vec<u8>> {
    let (head, packed) = bytes.split_at_checked(8)?;
    let length = u32::from_be_bytes(head[4..].try_into().ok()?);
    if head[..4] != COMPRESSED || usize::try_from(length) != Ok(packed.len()) {
        return None;
    }
    let mut bytes = Vec::new();
    ZlibDecoder::new(packed).take(UNPACKED_MAX + 1).read_to_end(&mut bytes).ok()?;
    let (head, counts) = bytes.split_at_checked(HEAD)?;
    let number = |at: usize| head[at..at + 4].try_into().ok().map(u32::from_be_bytes);
    let is_possible = bytes.len() as u64 <= UNPACKED_MAX
        && head[..4] == UNCOMPRESSED
        && usize::try_from(number(4)?) == Ok(counts.len())
        && number(8)? == 0
        && number(12)? <= DIGITS_MAX;
    (is_possible && are_counts(counts)).then_some(bytes)
}

/// Returns whether bytes are counts and lengths of gaps, none of them larger than a run can have.
fn are_counts(mut bytes: &[u8]) -> bool {
    let (mut sum, mut places) = (0_u64, 0_u64);
    while !bytes.is_empty() {
        let mut value = 0_u64;
        let mut used = 0;
        loop {
            let Some(byte) = bytes.get(used) else { return false };
            // The ninth byte has eight bits of the number, each before it has seven.
            let bits = if used == 8 { *byte } else { *byte & 0x7f };
            value |= u64::from(bits) << (7 * used);
            used += 1;
            if used == 9 || *byte < 0x80 {
                break;
            }
        }
        bytes = &bytes[used..];
        let number = (value >> 1) + (value & 1);
        if number > COUNT_MAX {
            return false;
        }
        if value & 1 == 1 {
            places += number;
        } else {
            (sum, places) = (sum + number, places + 1);
        }
        if sum > COUNT_MAX || places > PLACES_MAX {
            return false;
        }
    }
    true
}

impl From<&Distribution> for Encoded {
    fn from(times: &Distribution) -> Self {
        let times = times.nanoseconds();
        if times.is_empty() {
            return Self::default();
        }
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(times, &mut bytes).expect("a vector takes everything, and counts fit");
        Self(STANDARD.encode(bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::record::Tally;

    #[test]
    fn a_distribution_survives_the_text_exactly() {
        let mut times = Tally::new().latency;
        for n in 0..10_000_u64 {
            times.record(Duration::from_nanos(n * n * 37));
        }
        let text = Encoded::from(&times);
        assert!(text.as_str().starts_with("HISTFAAAA"), "{text:?}");
        let mut back = Tally::new().latency;
        text.add_to(&mut back).expect("it is ours");
        assert_eq!(back.nanoseconds(), times.nanoseconds());
    }

    #[test]
    fn what_is_forged_is_refused_before_memory_is_taken_for_it() {
        use std::io::Write as _;

        let packed = |bytes: &[u8], length: Option<i32>| {
            let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            zlib.write_all(bytes).expect("a vector");
            let packed = zlib.finish().expect("a vector");
            let length = length.unwrap_or_else(|| i32::try_from(packed.len()).expect("short"));
            Encoded(STANDARD.encode([&COMPRESSED[..], &length.to_be_bytes(), &packed].concat()))
        };
        let inner = |length: i32, digits: u32, counts: &[u8]| {
            let high = (3_600_000_000_000_u64).to_be_bytes();
            let head = [&UNCOMPRESSED[..], &length.to_be_bytes(), &[0; 4], &digits.to_be_bytes(), &1_u64.to_be_bytes(), &high];
            [&head.concat()[..], &1.0_f64.to_be_bytes(), counts].concat()
        };
        let add = |text: Encoded| text.add_to(&mut Tally::new().latency).is_ok();
        assert!(add(packed(&inner(1, 3, &[2]), None)), "one value");
        assert!(!add(packed(&inner(1, 3, &[2]), Some(-5))));
        assert!(!add(packed(&inner(-5, 3, &[2]), None)));
        assert!(!add(packed(&inner(9, 3, &[0xff; 9]), None)));
        assert!(!add(packed(&inner(9, 3, &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), None)));
        assert!(!add(packed(&inner(2, 3, &[2, 0x80]), None)), "half a number");
        assert!(!add(packed(&inner(1, 5, &[2]), None)));
        assert!(!add(packed(&inner(64 << 20, 3, &vec![2; 64 << 20]), None)), "a bomb");
    }

    #[test]
    fn an_empty_distribution_is_an_empty_text_and_other_texts_are_refused() {
        let mut times = Tally::new().latency;
        assert!(Encoded::from(&times).is_empty());
        Encoded::default().add_to(&mut times).expect("nothing is added");
        for text in ["HISTFAAAA", "not base64!", "aGVsbG8="] {
            assert!(Encoded(text.to_owned()).add_to(&mut times).is_err(), "{text}");
        }
    }
}
