//! The limits that machines share, between the room that knows the server and those that admit requests.

use std::sync::{Arc, Weak};

use cluster::limits::{Origin, Report};
use origins::server::Budget;
use parking_lot::Mutex;
use pipeline::{AddressRequests, RateReport, Shared};
use tokio::sync::Notify;

/// The places of a machine at an origin that it shares, before it has heard of the server.
const FIRST_PLACES: usize = 1;

/// The limits of this machine, as the cluster sees them. It does not keep what is stored from being closed.
#[derive(Debug)]
pub(crate) struct SharedLimits {
    shared: Weak<Shared>,
    budgets: Mutex<Vec<(String, Arc<Budget>)>>,
    wanted: Arc<Notify>,
}

impl SharedLimits {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::downgrade(shared), budgets: Mutex::default(), wanted: Arc::default() }
    }

    /// Replaces the origins. One that was there before, by its name, keeps the places that it has.
    pub(crate) fn replace(&self, budgets: Vec<(String, Arc<Budget>)>) {
        let mut before = self.budgets.lock();
        for (name, budget) in &budgets {
            let places = before.iter().find(|(old, _)| old == name).map_or(FIRST_PLACES, |(_, old)| old.concurrency());
            budget.set_concurrency(places);
            budget.tell_missed(Arc::clone(&self.wanted));
        }
        *before = budgets;
    }
}

impl cluster::limits::Shared for SharedLimits {
    fn tell(&self, addresses_max: usize) -> Report {
        let RateReport { requests, wrong } = self.shared.upgrade().map(|shared| shared.tell_others(addresses_max)).unwrap_or_default();
        let requests = requests.into_iter().map(|told| (told.address, told.admitted, told.asked)).collect();
        Report { requests, wrong }
    }

    fn hear(&self, reports: Vec<Report>, machines: u32) {
        let Some(shared) = self.shared.upgrade() else { return };
        let told = |report: Report| {
            let requests = report.requests.into_iter().map(|(address, admitted, asked)| AddressRequests { address, admitted, asked });
            RateReport { requests: requests.collect(), wrong: report.wrong }
        };
        let told: Vec<RateReport> = reports.into_iter().map(told).collect();
        shared.hear_others(&told, machines);
    }

    fn stand_apart(&self, machines: u32) {
        if let Some(shared) = self.shared.upgrade() {
            shared.stand_apart(machines);
        }
    }

    fn origins(&self) -> Vec<Origin> {
        let origin = |(name, budget): &(String, Arc<Budget>)| Origin {
            name: name.clone(),
            limit: budget.concurrency_max(),
            concurrency: budget.concurrency(),
            in_flight: budget.in_flight(),
            waiting: budget.waiting(),
        };
        self.budgets.lock().iter().map(origin).collect()
    }

    fn set_places(&self, name: &str, places: usize) {
        if let Some((_, budget)) = self.budgets.lock().iter().find(|(of, _)| of == name) {
            budget.set_concurrency(places);
        }
    }

    fn wanted(&self) -> Arc<Notify> {
        Arc::clone(&self.wanted)
    }
}
