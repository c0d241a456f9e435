//! Certificates for names that somebody connects to. [`Demand`] decides which names are approved, and counts them.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use semantics::Timestamp;

use super::{Keeper, together::OrderReason};
use crate::{
    demand::{Demand, Refused},
    name::{Issuer, is_host_name, issuer},
};

impl Keeper {
    /// Orders a certificate for a name that somebody connects to, if the operator's rules approve of it.
    ///
    /// # Errors
    /// Fails when they do not approve, a limit is reached, or the order fails.
    pub async fn demand(&self, name: &str, now: Timestamp) -> Result<(), Refused> {
        let demand = self.demand.as_ref().ok_or(Refused::NotApproved)?;
        if let Some(entry) = self.entries.lock().get(name) {
            return match (&entry.certificate, &entry.schedule.history.last_error) {
                (Some(_), _) => Ok(()),
                (None, Some(error)) => Err(Refused::Failed(error.clone())),
                (None, None) => Err(Refused::Busy),
            };
        }
        if !is_host_name(name) || issuer(name) == Issuer::Local {
            return Err(Refused::NoName);
        }
        if demand.is_refused(name, now) {
            return Err(Refused::NotApproved);
        }
        let _place = demand.permit()?;
        if !demand.matches(name) && !self.ask(demand, name).await? {
            demand.refuse(name, now);
            return Err(Refused::NotApproved);
        }
        let known = self.entries.lock().len();
        // A name on the disk was counted when it was ordered.
        let mut entry = self.load(name);
        entry.on_demand = true;
        let is_there = entry.certificate.as_ref().is_some_and(|certificate| certificate.left(now) > Duration::ZERO);
        if !is_there {
            demand.begin(known, now)?;
        }
        self.entries.lock().insert(name.to_owned(), entry);
        if is_there {
            Ok(())
        } else {
            self.obtain(name, OrderReason::Demand, now).await.map_err(|failure| Refused::Failed(failure.to_string()))
        }
    }

    async fn ask(&self, demand: &Demand, name: &str) -> Result<bool, Refused> {
        let Some(url) = demand.ask() else { return Ok(false) };
        let separator = if url.contains('?') { '&' } else { '?' };
        let unasked = |why: String| Refused::Unasked(format!("{url} ({why})"));
        let request =
            Request::get(format!("{url}{separator}domain={name}")).body(Bytes::new()).map_err(|error| unasked(error.to_string()))?;
        let answer = self.transport.send(request).await.map_err(|error| unasked(error.to_string()))?;
        Ok(answer.status() == StatusCode::OK)
    }
}
