//! One attempt to get a certificate. It is written down before it begins, and its outcome after it.

use std::{collections::BTreeSet, net::IpAddr, time::Duration};

use semantics::Timestamp;

use super::{
    Keeper,
    entries::Entry,
    together::{OrderReason, Turn},
};
use crate::{
    certificate::Certificate,
    failure::{Failure, Fault},
    name::{Issuer, issuer},
    options::Method,
    order::Ordering,
    transport::{RetryFieldsHeard, system_time},
};

/// The time that a rate limit is taken to last when the authority does not say.
const RATE_LIMIT: Duration = Duration::from_secs(60 * 60);
/// The time after which a twin whose name does not lead here is checked again.
const TWIN_LATER: Duration = Duration::from_secs(60 * 60);
const HOUR: Duration = Duration::from_secs(60 * 60);
/// The time between two looks at what another machine orders, when somebody waits for it.
const IMPATIENCE: Duration = Duration::from_millis(500);
/// The number of such looks that are made.
const LOOKS: usize = 180;
/// A wait that ends so soon is worth waiting for.
const AGAIN_SOON: Duration = Duration::from_secs(5);

impl Keeper {
    /// Orders, stores and shows a certificate for `name`, and records the outcome. Where several machines share certificates, it may come from
    /// another one.
    pub(super) async fn obtain(&self, name: &str, why: OrderReason, now: Timestamp) -> Result<(), Failure> {
        let (mut schedule, old, twin_of) = {
            let mut entries = self.entries.lock();
            let Some(entry) = entries.get_mut(name).filter(|entry| !entry.busy) else { return Err(Failure::ours("it is being ordered")) };
            entry.busy = true;
            (entry.schedule.clone(), entry.certificate.clone(), entry.twin_of.clone())
        };
        let _busy = Busy { keeper: self, name };
        if let Some(main) = twin_of
            && !leads_to_the_same_place(name, &main).await
        {
            if let Some(entry) = self.entries.lock().get_mut(name) {
                entry.not_before = now + TWIN_LATER;
            }
            return Err(Failure::new(Fault::Validation, format!("{name} does not lead where {main} does")));
        }
        let together = self.together.as_ref().filter(|_| issuer(name) == Issuer::Acme);
        let mut looks = 0;
        let claim = loop {
            let turn = match together {
                Some(together) => self.turn(together, name, old.as_ref(), why, &mut schedule, now).await,
                None => Turn::OrderAlone,
            };
            match turn {
                Turn::Order(claim) => break Some(claim),
                Turn::OrderAlone => {
                    schedule.attempt(now);
                    break None;
                }
                Turn::Take(certificate) => {
                    if let Some(entry) = self.entries.lock().get_mut(name) {
                        self.take(name, *certificate, entry, now);
                    }
                    return Ok(());
                }
                Turn::Wait(_, until) if why != OrderReason::Due && until <= now + AGAIN_SOON && looks < LOOKS => {
                    looks += 1;
                    tokio::time::sleep(IMPATIENCE).await;
                }
                Turn::Wait(failure, until) => {
                    if let Some(entry) = self.entries.lock().get_mut(name) {
                        entry.schedule = schedule;
                        entry.not_before = until;
                    }
                    return Err(failure);
                }
            }
        };
        let outcome = match self.folder.write_history(name, &schedule.history) {
            // A certificate that cannot be stored would be ordered again at each start, until a rate limit is used up.
            Err(error) => {
                Err(Failure::ours(format!("nothing is ordered, because it could not be kept: {}", crate::failure::chain(&error))))
            }
            Ok(()) => match issuer(name) {
                Issuer::Local => self.root.issue(name, now),
                Issuer::Acme => {
                    tracing::info!("ordering a certificate for {name}");
                    let ordered = self.order(name, old.as_ref(), schedule.failures(), now);
                    match &claim {
                        Some(claim) => tokio::select! {
                            outcome = ordered => outcome,
                            () = claim.lost() => Err(Failure::new(Fault::Elsewhere, "another machine has taken over the order")),
                        },
                        None => ordered.await,
                    }
                }
            },
        };
        let outcome = match (outcome, together, &claim) {
            (Ok(certificate), Some(together), Some(claim)) => self.settle(together, claim, &certificate, now).await.map(|()| certificate),
            (outcome, ..) => outcome,
        };
        let outcome = outcome.and_then(|certificate| {
            let kept = self.folder.write_certificate(name, certificate.pem());
            kept.map(|()| certificate).map_err(|error| Failure::ours(crate::failure::chain(&error)))
        });
        let outcome = match outcome {
            Ok(certificate) => {
                schedule.succeeded(certificate.validity);
                self.show(name, &certificate);
                tracing::info!("certificate for {name}: valid until {}", date(certificate.validity.not_after));
                // Attempts that stay in the file could at worst delay the next one.
                let _ = self.folder.write_history(name, &schedule.history);
                if let Some(entry) = self.entries.lock().get_mut(name) {
                    *entry = Entry {
                        schedule,
                        certificate: Some(certificate),
                        ask_at: now,
                        busy: true,
                        twin_of: entry.twin_of.clone(),
                        ..*entry
                    };
                }
                Ok(())
            }
            // It has neither failed nor succeeded: the next look shows what came of it.
            Err(failure) if failure.fault == Fault::Elsewhere => {
                tracing::info!("no certificate for {name} yet: {failure}");
                if let Some(entry) = self.entries.lock().get_mut(name) {
                    entry.schedule = schedule;
                }
                Err(failure)
            }
            Err(failure) => {
                let wait = if failure.fault == Fault::RateLimit { failure.wait.or(Some(RATE_LIMIT)) } else { failure.wait };
                schedule.failed(now, failure.to_string(), wait);
                let _ = self.folder.write_history(name, &schedule.history);
                complain(name, &failure, old.as_ref(), schedule.due(now), now);
                if let (Some(together), Some(claim)) = (together, &claim) {
                    self.settle_failure(together, claim, &schedule).await;
                }
                if let Some(entry) = self.entries.lock().get_mut(name) {
                    entry.schedule = schedule;
                }
                Err(failure)
            }
        };
        if let Some(claim) = claim {
            self.give_back(claim).await;
        }
        outcome
    }

    async fn order(&self, name: &str, old: Option<&Certificate>, failures: u32, now: Timestamp) -> Result<Certificate, Failure> {
        let method = self.method(name, failures)?;
        let mut replaces = old.filter(|old| old.left(now) > Duration::ZERO).and_then(Certificate::identifier);
        let mut tries_left = 3;
        let pem = loop {
            tries_left -= 1;
            let heard = RetryFieldsHeard::default();
            let account = match self.account(&heard).await {
                Err(failure) if failure.is_nonce() && tries_left > 0 => continue,
                account => account?,
            };
            // An authority without renewal information knows no such field (RFC 9773 §5).
            let knows_windows = self.entries.lock().get(name).is_some_and(|entry| entry.schedule.window.is_some());
            let ordering = Ordering {
                account: &account,
                heard: &heard,
                name,
                profile: self.options.profile.as_deref(),
                replaces: replaces.clone().filter(|_| knows_windows),
                method,
                challenges: &self.challenges,
                board: self.together.as_ref().map(|together| &together.board),
                sink: &self.sink,
                hook: self.options.hook.as_ref(),
            };
            match ordering.certificate().await {
                Ok(pem) => break pem,
                Err(failure) if tries_left == 0 => return Err(failure),
                // The authority lost its accounts, or another one has taken its address.
                Err(failure) if failure.fault == Fault::Account => {
                    tracing::warn!("the authority does not know our account; another one is made");
                    self.retire_account().await;
                }
                Err(failure) if failure.fault == Fault::Replaces => replaces = None,
                Err(failure) if failure.is_nonce() => {}
                Err(failure) => return Err(failure),
            }
        };
        let certificate = Certificate::from_pem(pem)
            .map_err(|error| Failure::new(Fault::Server, format!("the authority sent something that cannot be used: {error}")))?;
        if !certificate.covers(name) {
            return Err(Failure::new(Fault::Server, format!("the authority certified other names: {}", certificate.names.join(", "))));
        }
        if certificate.validity.not_after <= now || certificate.validity.not_before > now + HOUR {
            let from = date(certificate.validity.not_before);
            return Err(Failure::ours(format!("the certificate is valid from {from}, and by our clock it is {}", date(now)))
                .hint("is the clock of this machine right?"));
        }
        Ok(certificate)
    }

    /// Returns the method for the next attempt. A wildcard can be proven by DNS alone (RFC 8555 §7.1.3, and what authorities offer).
    fn method(&self, name: &str, failures: u32) -> Result<Method, Failure> {
        let is_wildcard = name.starts_with("*.");
        let usable: Vec<Method> = self.options.methods.iter().copied().filter(|method| !is_wildcard || *method == Method::Dns01).collect();
        let turn = usize::try_from(failures).unwrap_or_default();
        usable.get(turn % usable.len().max(1)).copied().ok_or_else(|| {
            let what = if is_wildcard { "a certificate for a wildcard needs dns-01" } else { "there is no way to prove the name" };
            Failure::ours(what).hint("set acme.dns_hook to a program that writes TXT records")
        })
    }
}

/// Marks an order as running. However the order ends, dropping this lets the next one begin.
struct Busy<'a> {
    keeper: &'a Keeper,
    name: &'a str,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        if let Some(entry) = self.keeper.entries.lock().get_mut(self.name) {
            entry.busy = false;
        }
        self.keeper.waiting.decided(self.name);
    }
}

/// Logs a failure, more urgently the nearer the end of the old certificate is.
fn complain(name: &str, failure: &Failure, old: Option<&Certificate>, next: Timestamp, now: Timestamp) {
    let next = date(next.max(now));
    match old {
        None => {
            tracing::error!("no certificate for {name}: {failure}. Until there is one, https://{name}/ does not work. Next attempt: {next}")
        }
        Some(old) if old.left(now) == Duration::ZERO => {
            tracing::error!("the certificate for {name} has expired, and browsers warn about it: {failure}. Next attempt: {next}");
        }
        Some(old) => {
            let days = old.left(now).as_secs() / (24 * 3600);
            let message = format!(
                "the certificate for {name} could not be renewed: {failure}. It is valid for {days} more days. Next attempt: {next}"
            );
            let lifetime = old.validity.not_after.since(old.validity.not_before);
            if old.left(now) < lifetime / 6 { tracing::error!("{message}") } else { tracing::warn!("{message}") }
        }
    }
}

pub(super) fn date(at: Timestamp) -> String {
    httpdate::fmt_http_date(system_time(at))
}

/// Returns whether an order for the twin can succeed: one that cannot costs a failed validation.
async fn leads_to_the_same_place(twin: &str, main: &str) -> bool {
    let addresses = async |name: &str| -> BTreeSet<IpAddr> {
        let found = tokio::net::lookup_host((name, 443)).await;
        found.map(|found| found.map(|address| address.ip()).collect()).unwrap_or_default()
    };
    !addresses(twin).await.is_disjoint(&addresses(main).await)
}
