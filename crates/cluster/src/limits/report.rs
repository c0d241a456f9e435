//! The report in which a machine tells the others of its clients, as bytes under a seal.
//!
//! A report says who made it and which one of theirs it is, so that one that is found twice counts once. Addresses are numbers that a secret of the
//! cluster makes of them: who reads the server learns how many there are, and no more.

use std::collections::HashMap;

use aws_lc_rs::hmac;
use bytes::Bytes;

/// The most addresses of each kind in a report; those beyond that wait for the next one.
pub const REPORT_ADDRESSES_MAX: usize = 500;
/// The most bytes of a report.
pub(super) const REPORT_BYTES_MAX: usize = BEGINNING + REPORT_ADDRESSES_MAX * (REQUESTS + WRONG) + SEAL;
/// The bytes of the word that says who made a report.
pub(super) const SESSION_BYTES: usize = 32;
/// The bytes before the addresses: the session, the number, the version, and how many addresses of each kind there are.
const BEGINNING: usize = SESSION_BYTES + 8 + 1 + 2 + 2;
const REQUESTS: usize = 8 + 4 + 4;
const WRONG: usize = 8 + 4;
const SEAL: usize = 32;
const VERSION: u8 = 1;
/// The machines of which is remembered which report was the last. Beyond that, the one that is longest silent is forgotten.
const MACHINES_MAX: usize = 256;

/// Holds what a machine tells of its clients.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Requests by the numbers of addresses: how many were admitted, and how many were asked for.
    pub requests: Vec<(u64, u32, u32)>,
    /// Wrong passwords by the numbers of addresses.
    pub wrong: Vec<(u64, u32)>,
}

/// The reason why a report is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error("it is not a report of Seawall")]
    NoReport,
    #[error("it is not signed with this cluster's secret: it has another secret, or another name")]
    NoSeal,
    #[error("another version of Seawall wrote it")]
    Version,
    #[error("it was there before")]
    Again,
}

impl Report {
    /// Returns whether there is nothing to tell.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.wrong.is_empty()
    }

    /// Writes it, as the report with this number of this session. What is beyond [`REPORT_ADDRESSES_MAX`] is left out.
    pub(super) fn seal(&self, session: &str, number: u64, key: &hmac::Key) -> Bytes {
        debug_assert_eq!(session.len(), SESSION_BYTES);
        let (requests, wrong) = (self.requests.iter().take(REPORT_ADDRESSES_MAX), self.wrong.iter().take(REPORT_ADDRESSES_MAX));
        let mut bytes = Vec::with_capacity(BEGINNING + requests.len() * REQUESTS + wrong.len() * WRONG + SEAL);
        bytes.extend_from_slice(session.as_bytes());
        bytes.extend_from_slice(&number.to_be_bytes());
        bytes.push(VERSION);
        for count in [requests.len(), wrong.len()] {
            bytes.extend_from_slice(&u16::try_from(count).unwrap_or(0).to_be_bytes());
        }
        for (address, admitted, asked) in requests {
            bytes.extend_from_slice(&address.to_be_bytes());
            bytes.extend_from_slice(&admitted.to_be_bytes());
            bytes.extend_from_slice(&asked.to_be_bytes());
        }
        for (address, count) in wrong {
            bytes.extend_from_slice(&address.to_be_bytes());
            bytes.extend_from_slice(&count.to_be_bytes());
        }
        let seal = hmac::sign(key, &bytes);
        bytes.extend_from_slice(seal.as_ref());
        bytes.into()
    }
}

/// Opens reports, each once.
#[derive(Debug)]
pub(super) struct Reader {
    key: hmac::Key,
    /// The last report of each session, and when that was read: counted in reports.
    last: HashMap<[u8; SESSION_BYTES], (u64, u64)>,
    read: u64,
}

impl Reader {
    pub(super) fn new(key: hmac::Key) -> Self {
        Self { key, last: HashMap::new(), read: 0 }
    }

    pub(super) fn open(&mut self, bytes: &[u8]) -> Result<Report, Refused> {
        if bytes.len() > REPORT_BYTES_MAX || bytes.len() < BEGINNING + SEAL {
            return Err(Refused::NoReport);
        }
        let (said, seal) = bytes.split_at(bytes.len() - SEAL);
        hmac::verify(&self.key, said, seal).map_err(|_| Refused::NoSeal)?;
        let mut rest = said;
        let session = take::<SESSION_BYTES>(&mut rest)?;
        let number = u64::from_be_bytes(take(&mut rest)?);
        if take::<1>(&mut rest)? != [VERSION] {
            return Err(Refused::Version);
        }
        let counts = [u16::from_be_bytes(take(&mut rest)?), u16::from_be_bytes(take(&mut rest)?)].map(usize::from);
        if rest.len() != counts[0] * REQUESTS + counts[1] * WRONG {
            return Err(Refused::NoReport);
        }
        let mut report = Report::default();
        for _ in 0..counts[0] {
            let address = u64::from_be_bytes(take(&mut rest)?);
            let (admitted, asked) = (u32::from_be_bytes(take(&mut rest)?), u32::from_be_bytes(take(&mut rest)?));
            report.requests.push((address, admitted, asked));
        }
        for _ in 0..counts[1] {
            report.wrong.push((u64::from_be_bytes(take(&mut rest)?), u32::from_be_bytes(take(&mut rest)?)));
        }
        self.is_new(session, number).then_some(report).ok_or(Refused::Again)
    }

    fn is_new(&mut self, session: [u8; SESSION_BYTES], number: u64) -> bool {
        self.read += 1;
        if self.last.get(&session).is_some_and(|(last, _)| number <= *last) {
            return false;
        }
        if self.last.len() >= MACHINES_MAX
            && !self.last.contains_key(&session)
            && let Some(silent) = self.last.iter().min_by_key(|(_, (_, read))| *read).map(|(session, _)| *session)
        {
            self.last.remove(&silent);
        }
        self.last.insert(session, (number, self.read));
        true
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Refused> {
    let (taken, after) = rest.split_first_chunk().ok_or(Refused::NoReport)?;
    *rest = after;
    Ok(*taken)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::link::{Seals, Secret};

    const SESSION: &str = "0123456789abcdef0123456789abcdef";

    fn key(secret: &str) -> hmac::Key {
        Seals::new("seawall", &Secret::new(secret).expect("a secret")).limits().clone()
    }

    fn report() -> Report {
        Report { requests: vec![(1, 2, 3), (u64::MAX, 0, u32::MAX)], wrong: vec![(7, 1)] }
    }

    #[test]
    fn a_report_is_read_once_by_whoever_has_the_secret() {
        let (ours, theirs) = (key("a secret of this cluster"), key("a secret of another one!"));
        let sealed = report().seal(SESSION, 5, &ours);
        let mut reader = Reader::new(ours.clone());
        assert_eq!(reader.open(&sealed), Ok(report()));
        assert_eq!(reader.open(&sealed), Err(Refused::Again));
        assert_eq!(reader.open(&report().seal(SESSION, 4, &ours)), Err(Refused::Again), "an older one");
        assert_eq!(reader.open(&Report::default().seal(SESSION, 6, &ours)), Ok(Report::default()));
        assert_eq!(Reader::new(theirs).open(&sealed), Err(Refused::NoSeal));
        for cut in 0..sealed.len() {
            assert!(Reader::new(ours.clone()).open(&sealed[..cut]).is_err(), "{cut}");
        }
        for at in 0..sealed.len() {
            let mut changed = sealed.to_vec();
            changed[at] ^= 1;
            assert_eq!(Reader::new(ours.clone()).open(&changed), Err(Refused::NoSeal), "{at}");
        }
    }

    #[test]
    fn a_report_has_room_for_so_many_addresses_and_a_longer_text_is_none() {
        let ours = key("a secret of this cluster");
        let many = Report { requests: vec![(1, 1, 1); REPORT_ADDRESSES_MAX + 1], wrong: vec![(1, 1); REPORT_ADDRESSES_MAX + 1] };
        let sealed = many.seal(SESSION, 1, &ours);
        assert_eq!(sealed.len(), REPORT_BYTES_MAX);
        let read = Reader::new(ours.clone()).open(&sealed).expect("a report");
        assert_eq!((read.requests.len(), read.wrong.len()), (REPORT_ADDRESSES_MAX, REPORT_ADDRESSES_MAX));
        assert_eq!(Reader::new(ours).open(&[&sealed[..], b"x"].concat()), Err(Refused::NoReport));
    }

    #[test]
    fn so_many_machines_are_remembered() {
        let ours = key("a secret of this cluster");
        let mut reader = Reader::new(ours.clone());
        for machine in 0..MACHINES_MAX + 10 {
            let session = format!("{machine:032}");
            assert!(reader.open(&report().seal(&session, 1, &ours)).is_ok());
        }
        assert_eq!(reader.last.len(), MACHINES_MAX);
    }

    proptest! {
        #[test]
        fn no_bytes_are_taken_for_a_report(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(Reader::new(key("a secret of this cluster")).open(&bytes).is_err());
        }
    }
}
