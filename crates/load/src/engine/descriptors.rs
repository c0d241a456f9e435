//! The number of files that may be open: a connection is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::Error;
use crate::{
    plan::{Plan, Protocol},
    requests::Visitor,
    schedule::Schedule,
};

/// Descriptors that a run needs beside its connections: those that were open before, and two for each of a few workers.
const OTHERS: u64 = 64;

/// Raises the limit of descriptors as far as the system allows it. Returns the limit; it is `u64::MAX` if there is none. A run does so itself.
#[must_use]
pub fn raise_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    match setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }) {
        Ok(()) => most,
        Err(_) => limit.current.unwrap_or(u64::MAX),
    }
}

/// Looks whether `limit` allows what a plan needs for certain.
///
/// An open schedule does not say how many connections it needs: as many as the server leaves waiting. If there are too few, results count it.
///
/// # Errors
/// When clients that stay need more.
pub(super) fn suffice(plan: &Plan, limit: u64) -> Result<(), Error> {
    let Schedule::Closed { .. } = plan.schedule else { return Ok(()) };
    let each = match plan.protocol {
        Protocol::Http1 { .. } => Visitor::new(std::sync::Arc::clone(&plan.requests), 0, plan.seed).connections_max().max(1) as u64,
        // All parts of a page come over one connection.
        Protocol::Http2 { .. } | Protocol::Http3 { .. } => 1,
    };
    let clients = plan.schedule.clients_max().unwrap_or_default();
    let needed = u64::from(clients) * each + OTHERS;
    if needed > limit { Err(Error::Descriptors { clients, needed, limit }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        plan::{Connections, Protocol, Stop, TIMEOUT},
        requests::{Origin, RequestSet},
        schedule::{Profile, Spacing},
    };

    fn plan(schedule: Schedule) -> Plan {
        let origin = Origin { tls: false, host: "127.0.0.1".to_owned(), port: 80 };
        Plan {
            requests: Arc::new(RequestSet { origins: vec![origin], ..RequestSet::default() }),
            schedule,
            protocol: Protocol::Http1 { pipeline: 1 },
            stop: Stop::default(),
            connections: Connections::default(),
            timeout: TIMEOUT,
            warm_up: std::time::Duration::ZERO,
            workers: 1,
            seed: 0,
            cap: None,
        }
    }

    #[test]
    fn clients_that_stay_need_a_descriptor_each_and_the_error_says_how_to_allow_more() {
        let plan = plan(Schedule::Closed { clients: Profile::constant(5000.0, None) });
        assert!(suffice(&plan, 5064).is_ok());
        let error = suffice(&plan, 1024).expect_err("1,024 are too few").to_string();
        assert!(error.contains("5000 clients") && error.contains("1024") && error.contains("ulimit -n 5064"), "{error}");
    }

    #[test]
    fn an_open_schedule_begins_with_what_there_is() {
        let rate = Profile::constant(5000.0, None);
        assert!(suffice(&plan(Schedule::Arrivals { rate, spacing: Spacing::Even }), 100).is_ok());
    }
}
