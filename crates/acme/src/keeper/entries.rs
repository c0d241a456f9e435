//! The names that are wanted, and what is known of each of them.

use std::sync::Arc;

use semantics::Timestamp;

use super::Keeper;
use crate::{
    certificate::Certificate,
    name::{Issuer, issuer},
    schedule::Schedule,
};

/// The state of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The name.
    pub name: String,
    /// The time until which its certificate is valid; `None` if it has none.
    pub not_after: Option<Timestamp>,
    /// The error of the last attempt; `None` after a success.
    pub last_error: Option<String>,
    /// The number of failures in a row since the process began.
    pub failures: u32,
    /// The time at which the next attempt is due.
    pub next: Timestamp,
    /// The issuer of its certificate.
    pub issuer: Issuer,
}

/// A wanted name: its schedule, its certificate, and how it is treated.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) schedule: Schedule,
    pub(super) certificate: Option<Certificate>,
    /// Whether it is being ordered now.
    pub(super) busy: bool,
    /// The configured name, if this one is not configured itself but is the other form of it.
    pub(super) twin_of: Option<String>,
    pub(super) on_demand: bool,
    /// The time at which renewal information is to be asked for.
    pub(super) ask_at: Timestamp,
    /// The time before which a twin that does not lead here is not tried.
    pub(super) not_before: Timestamp,
}

impl Entry {
    pub(super) fn due(&self, now: Timestamp) -> Timestamp {
        self.schedule.due(now).max(self.not_before)
    }
}

/// A name to have a certificate for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct WantedName<'a> {
    name: &'a str,
    twin_of: Option<String>,
}

impl Keeper {
    /// Replaces the wanted names. Of the names on demand, those that have a certificate stay wanted. Certificates that are on the disk are
    /// shown at once, even those that have ended: a browser's warning is better than no answer.
    ///
    /// `twins` are the other forms of names (`www.`). They are ordered if they lead to the same place, and skipped without an error if they
    /// do not.
    pub fn want(&self, names: &[String], twins: &[(String, String)]) {
        let configured = names.iter().map(|name| WantedName { name, twin_of: None });
        let twins =
            twins.iter().filter(|(twin, _)| !names.contains(twin)).map(|(twin, of)| WantedName { name: twin, twin_of: Some(of.clone()) });
        let wanted: Vec<WantedName<'_>> = configured.chain(twins).collect();
        let mut entries = self.entries.lock();
        entries.retain(|name, entry| {
            let stays = entry.on_demand || wanted.iter().any(|wanted| wanted.name == name);
            if !stays {
                self.sink.withdraw(name);
            }
            stays
        });
        for WantedName { name, twin_of } in wanted {
            let entry = entries.entry(name.to_owned()).or_insert_with(|| self.load(name));
            entry.twin_of = twin_of;
            entry.on_demand = false;
        }
        drop(entries);
        self.changed.notify_one();
    }

    /// Loads what the disk has for a name, and shows its certificate if there is one.
    pub(super) fn load(&self, name: &str) -> Entry {
        let mut schedule = Schedule::new(name, self.seed);
        schedule.history = self.folder.history(name);
        let mut entry = Entry {
            schedule,
            certificate: None,
            busy: false,
            twin_of: None,
            on_demand: false,
            ask_at: Timestamp::default(),
            not_before: Timestamp::default(),
        };
        self.load_certificate(name, &mut entry);
        entry
    }

    pub(super) fn load_certificate(&self, name: &str, entry: &mut Entry) {
        let pem = match self.folder.certificate(name) {
            Ok(Some(pem)) => pem,
            Ok(None) => return,
            Err(error) => {
                return tracing::warn!(
                    "the stored certificate for {name} cannot be read; a new one is ordered: {}",
                    crate::failure::chain(&error)
                );
            }
        };
        if entry.certificate.as_ref().is_some_and(|certificate| certificate.pem() == pem) {
            return;
        }
        match Certificate::from_pem(pem) {
            Ok(certificate) if certificate.covers(name) => {
                entry.schedule.validity = Some(certificate.validity);
                entry.schedule.window = None;
                entry.ask_at = Timestamp::default();
                self.show(name, &certificate);
                entry.certificate = Some(certificate);
            }
            Ok(_) => tracing::warn!("the stored certificate for {name} is for other names; a new one is ordered"),
            Err(error) => tracing::warn!("the stored certificate for {name} is damaged; a new one is ordered: {error}"),
        }
    }

    pub(super) fn show(&self, name: &str, certificate: &Certificate) {
        self.sink.show(name, certificate.names.clone(), Arc::clone(&certificate.key));
    }

    /// Returns the state of each name.
    #[must_use]
    pub fn status(&self, now: Timestamp) -> Vec<Status> {
        let entries = self.entries.lock();
        let status = |(name, entry): (&String, &Entry)| Status {
            name: name.clone(),
            not_after: entry.certificate.as_ref().map(|certificate| certificate.validity.not_after),
            last_error: entry.schedule.history.last_error.clone(),
            failures: entry.schedule.failures(),
            next: entry.due(now),
            issuer: issuer(name),
        };
        // A twin that leads elsewhere concerns nobody.
        entries.iter().filter(|(_, entry)| entry.twin_of.is_none() || entry.certificate.is_some()).map(status).collect()
    }
}
