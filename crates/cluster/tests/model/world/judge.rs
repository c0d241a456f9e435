//! The judge: what must never be shown, and what must be so when nothing is broken any more.

use std::time::Duration;

use cluster::machine::passed;

use super::{Broken, MS, World, micros};

impl World {
    fn violation(&mut self, what: String) {
        let when = self.now;
        self.note(|| what.clone());
        self.outcome.violation.get_or_insert_with(|| format!("at {} ms: {what}", when / MS));
    }

    /// Looks at all that would be shown right now.
    pub(super) fn judge(&mut self) {
        for site in 0..self.sites.len() {
            let it = &self.sites[site];
            if it.machine.is_none() || it.frozen_until > self.now {
                continue;
            }
            let now = self.local(site);
            let is_leased = it.is_leased(now) || self.broken == Broken::Leases;
            for page in 0..self.origin.len() {
                let it = &self.sites[site];
                let Some(version) = it.shows(page, is_leased, now) else { continue };
                if version < self.everywhere[page] {
                    if !is_leased && version >= self.everywhere_known[site][page] {
                        self.outcome.unknown += 1;
                        continue;
                    }
                    let wanted = self.everywhere[page];
                    return self.violation(format!(
                        "web {site} shows version {version} of page {page} ({}), although {wanted} was said to hold everywhere",
                        if is_leased { "leased" } else { "in doubt" }
                    ));
                }
                let longest = micros(passed(it.lease) + passed(it.hold));
                let late = self.taken[page].iter().find(|taken| taken.version > version && self.now > taken.at + longest);
                if let Some(late) = late {
                    let what = format!(
                        "web {site} shows version {version} of page {page}, although the server took {} {} ms ago",
                        late.version,
                        (self.now - late.at) / MS
                    );
                    return self.violation(what);
                }
            }
        }
    }

    /// Checks that after all faults have ended, whoever may has a lease, and nothing is pending.
    pub(super) fn judge_the_end(&mut self) {
        let names: Vec<String> = self.sites.iter().map(|site| site.name.clone()).collect();
        for site in 0..self.sites.len() {
            let now = self.local(site);
            let has_twin = names.iter().filter(|name| **name == self.sites[site].name).count() > 1;
            let it = &self.sites[site];
            let Some(machine) = &it.machine else { continue };
            // A round may be on its way for as long as the deadline, so a lease may just have ended.
            let was_leased = it.fence.is_some_and(|until| now < until + Duration::from_secs(3));
            if !was_leased && !has_twin {
                let why = machine.why().to_owned();
                return self.violation(format!("web {site} has no lease although nothing is broken any more: {why}"));
            }
            if machine.pending() > 0 {
                let pending = machine.pending();
                return self.violation(format!("web {site} still has {pending} purges that are not known to hold everywhere"));
            }
        }
        let leased: Vec<&str> = (0..self.sites.len())
            .filter(|site| self.sites[*site].is_leased(self.local(*site)))
            .map(|site| self.sites[site].name.as_str())
            .collect();
        let mut once = leased.clone();
        once.sort_unstable();
        once.dedup();
        if once.len() < leased.len() {
            self.violation("two machines of one name have a lease at the end".to_owned());
        }
    }
}
