//! Requests that go past the cache because the operator's load tester has had them signed, so that one Seawall can be measured with its cache and
//! without.
//!
//! `Seawall-Direct: until=SECONDS, sha256=HEX` lets a request that would ask the cache go to the origin instead, as it came: nothing is looked up,
//! stored or shared. It gets past nothing else. A field that is not valid means nothing, and the origin sees neither. The key is made when the first
//! field is signed, and lives as long as the process.

use std::{sync::OnceLock, time::Duration};

use aws_lc_rs::{hmac, rand::SystemRandom};
use policy::{PassRule, Trace, Verdict};
use semantics::{RequestFields, Timestamp, field_name::is_same_variable, hex};

/// The field, as it is sent.
pub const DIRECT_FIELD: &str = "Seawall-Direct";

/// The longest time for which a field is signed.
const DIRECT_MAX: Duration = Duration::from_hours(1);

/// Separates what is signed here from what other keys of the same form could sign.
const PURPOSE: &str = "Seawall-Direct until=";
const UNTIL: &[u8] = b"until=";
const SIGNATURE: &[u8] = b", sha256=";
/// The most digits of a time in seconds. The year 5138 has as many.
const DIGITS_MAX: usize = 11;

/// Signs fields and verifies them.
#[derive(Debug, Default)]
pub struct Direct(OnceLock<hmac::Key>);

impl Direct {
    /// Returns a value of the field that counts from `now` for `time`, at most for `DIRECT_MAX`, and the second at which it counts no longer.
    /// `None`: the system has no random bytes for a key.
    #[must_use]
    pub fn sign(&self, now: Timestamp, time: Duration) -> Option<(String, u64)> {
        let until = now.as_secs() + time.min(DIRECT_MAX).as_secs();
        let key = match self.0.get() {
            Some(key) => key,
            None => {
                let made = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).ok()?;
                self.0.get_or_init(|| made)
            }
        };
        let tag = hmac::sign(key, format!("{PURPOSE}{until}").as_bytes());
        Some((format!("until={until}, sha256={}", hex::encoded(tag.as_ref())), until))
    }

    /// Returns whether a request has a field that was signed here and counts `now`. All the time that this takes depends on nothing but the form of
    /// the field.
    fn allows(&self, fields: &RequestFields<'_>, now: Timestamp) -> bool {
        let (Some(key), Some(value)) = (self.0.get(), fields.seawall_direct.one()) else { return false };
        let Some((until, tag)) = parsed(value) else { return false };
        hmac::verify(key, format!("{PURPOSE}{until}").as_bytes(), &tag).is_ok() && now.as_secs() < until
    }

    /// Lets a request pass that would ask the cache, if its field allows that.
    pub(crate) fn pass(
        &self,
        verdict: Verdict,
        fields: &RequestFields<'_>,
        now: impl FnOnce() -> Timestamp,
        trace: &mut impl Trace,
    ) -> Verdict {
        if !fields.seawall_direct.is_present() || !matches!(verdict, Verdict::Lookup(_)) {
            return verdict;
        }
        let allowed = self.allows(fields, now());
        let passes = trace.decides(PassRule::Direct.name(), allowed, || {
            if allowed { "signed by this Seawall" } else { "not signed by this Seawall, or no longer valid: it means nothing" }.to_owned()
        });
        if passes { Verdict::Pass(PassRule::Direct) } else { verdict }
    }
}

/// Returns whether a field name, in lower case, is that of the field in a spelling that software behind a gateway could read.
pub(crate) fn is_direct_field(name: &str) -> bool {
    is_same_variable(name, "seawall-direct")
}

/// Reads a value as it is signed, and in no other spelling.
fn parsed(value: &[u8]) -> Option<(u64, [u8; 32])> {
    let value = value.strip_prefix(UNTIL)?;
    let digits = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (until, signature) = value.split_at(digits);
    if until.len() > DIGITS_MAX || until.starts_with(b"0") {
        return None;
    }
    let tag = hex::decoded_exactly(signature.strip_prefix(SIGNATURE)?)?;
    Some((std::str::from_utf8(until).ok()?.parse().ok()?, tag))
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_767_225_600);

    fn allows(direct: &Direct, value: &str, now: Timestamp) -> bool {
        let map = HeaderMap::from_iter([(http::HeaderName::from_static("seawall-direct"), value.parse().expect("a value"))]);
        direct.allows(&RequestFields::from_map(&map), now)
    }

    #[test]
    fn a_field_counts_until_its_second_and_for_an_hour_at_most() {
        let direct = Direct::default();
        let later = |seconds| NOW + Duration::from_secs(seconds);
        assert!(!allows(&direct, &format!("until=1767225660, sha256={}", "0".repeat(64)), NOW), "nothing was signed yet");
        let (value, until) = direct.sign(NOW, Duration::from_mins(1)).expect("a key");
        assert_eq!(until, 1_767_225_660);
        for (seconds, expected) in [(0, true), (59, true), (60, false), (3_600, false)] {
            assert_eq!(allows(&direct, &value, later(seconds)), expected, "{seconds}");
        }
        assert_eq!(direct.sign(NOW, Duration::from_hours(24)).expect("a key").1, NOW.as_secs() + 3_600);
        assert!(allows(&direct, &value, NOW), "the key stays");
        assert!(!allows(&Direct::default(), &value, NOW));
    }
}
