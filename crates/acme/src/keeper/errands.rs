//! Tasks for a running keeper: certificates for names on demand, and certificates to be replaced.

use semantics::Timestamp;
use tokio::sync::oneshot;

use super::Keeper;
use crate::{
    failure::Failure,
    name::{Issuer, is_host_name, issuer},
};

/// The most names on demand, and certificates to be replaced, that may wait for the keeper. One more is refused.
pub(super) const ERRANDS: usize = 64;

/// A task that others give to a running keeper.
#[derive(Debug)]
pub(super) enum Errand {
    /// Somebody connects to this name.
    Demand(String),
    /// The certificate for this name is to be replaced and revoked.
    Replace(String, oneshot::Sender<Result<(), Failure>>),
}

impl Keeper {
    /// Notes that somebody connects to a name that has no certificate. It is called from a handshake, and returns at once. If there may be
    /// a certificate soon, the receiver says when that is decided, one way or the other. There is no receiver where the name was refused or
    /// the order has failed.
    pub fn missed(&self, name: &str) -> Option<oneshot::Receiver<()>> {
        let entries = self.entries.lock();
        match entries.get(name) {
            // The client joins while the lock is held: the end of an order takes the lock first, and then tells those who wait.
            Some(entry) => (entry.busy && entry.certificate.is_none()).then(|| self.waiting.join(name))?.map(|(told, _)| told),
            None if self.demand.is_some() && is_host_name(name) && issuer(name) == Issuer::Acme => {
                let (told, is_first) = self.waiting.join(name)?;
                if is_first && self.errands.0.try_send(Errand::Demand(name.to_owned())).is_err() {
                    self.waiting.decided(name);
                    return None;
                }
                Some(told)
            }
            None => None,
        }
    }

    /// Asks a running keeper to do [`Keeper::revoke_and_replace`].
    ///
    /// # Errors
    /// Fails as that does; and when too many errands wait, or the keeper has ended.
    pub async fn replace(&self, name: &str) -> Result<(), Failure> {
        let (done, is_done) = oneshot::channel();
        let busy = |_| Failure::ours("too many certificates are being ordered").hint("try again in a minute");
        self.errands.0.try_send(Errand::Replace(name.to_owned(), done)).map_err(busy)?;
        is_done.await.unwrap_or_else(|_| Err(Failure::ours("nothing is ordered any more: Seawall is stopping")))
    }

    pub(super) async fn run_errand(&self, errand: Errand, now: Timestamp) {
        match errand {
            Errand::Demand(name) => {
                if let Err(refused) = self.demand(&name, now).await {
                    tracing::debug!("no certificate for {name} on demand: {refused}");
                }
                self.waiting.decided(&name);
            }
            Errand::Replace(name, done) => {
                let outcome = self.revoke_and_replace(&name, now).await;
                match &outcome {
                    Ok(()) if issuer(&name) == Issuer::Local => tracing::info!("the certificate for {name} was replaced"),
                    Ok(()) => tracing::info!("the certificate for {name} was replaced, and the one before it revoked"),
                    Err(failure) => tracing::error!("could not replace and revoke the certificate for {name}: {failure}"),
                }
                // The caller may have gone.
                let _ = done.send(outcome);
            }
        }
    }
}
