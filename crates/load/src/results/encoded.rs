//! Distributions in HdrHistogram's own format, so that results of several machines can be added exactly.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

use crate::record::Distribution;

/// A distribution in the compressed V2 format of HdrHistogram, in base64. It begins with `HISTFAAAA`, and every library of that name reads it. The
/// unit is the nanosecond. A distribution without a value is the empty string.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Encoded(String);

/// A text that is no distribution.
#[derive(Debug, thiserror::Error)]
#[error("this is not a histogram in the compressed V2 format of HdrHistogram, in base64")]
pub struct NotEncoded;

impl Encoded {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether nothing was counted.
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
        let read = Deserializer::new().deserialize::<u64, _>(&mut bytes.as_slice()).map_err(|_| NotEncoded)?;
        to.add_histogram(&read).map_err(|_| NotEncoded)
    }
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
    fn an_empty_distribution_is_an_empty_text_and_other_texts_are_refused() {
        let mut times = Tally::new().latency;
        assert!(Encoded::from(&times).is_empty());
        Encoded::default().add_to(&mut times).expect("nothing is added");
        for text in ["HISTFAAAA", "not base64!", "aGVsbG8="] {
            assert!(Encoded(text.to_owned()).add_to(&mut times).is_err(), "{text}");
        }
    }
}
