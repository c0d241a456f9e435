//! What happens to the world: purges, and everything that breaks.

use std::collections::BTreeMap;

use policy::purge::{Maker, Order, What};

use super::{Event, Link, MS, Op, Page, World};
use crate::server::{Server, ServerDump};

impl World {
    /// Changes something at the origin, and tells a machine to purge it.
    pub(super) fn purge(&mut self) {
        let site = self.rng.usize(..self.sites.len());
        let now = self.local(site);
        if self.sites[site].machine.is_none() || self.sites[site].frozen_until > self.now {
            return;
        }
        let pages: Vec<Page> = match self.rng.u8(..5) {
            0 => (0..self.origin.len()).collect(),
            _ => vec![self.rng.usize(..self.origin.len())],
        };
        let mut what = Vec::new();
        let mut wanted = BTreeMap::new();
        for page in pages {
            self.origin[page] += 1;
            wanted.insert(page, self.origin[page]);
            what.extend([What::Tag(format!("page-{page}")), What::Tag(format!("version-{page}-{}", self.origin[page]))]);
        }
        let by = if self.rng.bool() { Maker::Operator } else { Maker::Write };
        let order = Order::for_site("blog", what, self.rng.bool(), by);
        self.outcome.purges += 1;
        self.note(|| format!("web {site}: is told to purge {wanted:?} by {by:?}"));
        let count = self.origin.len();
        let it = &mut self.sites[site];
        it.apply(&order, count);
        let Some(machine) = &mut it.machine else { return };
        let (ticket, acts) = machine.purge(order, now);
        it.tickets.insert(ticket, wanted);
        self.perform(site, acts);
        self.turn(site);
    }

    pub(super) fn fault(&mut self) {
        let is_over = self.now >= self.faults_end;
        let pause = if self.rng.u8(..4) == 0 { self.rng.u64(1..20) } else { self.rng.u64(20..1200) } * MS;
        if is_over {
            self.note(|| "everything is mended".to_owned());
            return self.mend();
        }
        self.after(pause, Event::Fault);
        if self.rng.u8(..5) < 3 {
            return self.purge();
        }
        self.outcome.faults += 1;
        let site = self.rng.usize(..self.sites.len());
        let newest = self.servers.len() - 1;
        let kind = self.rng.u8(..24);
        self.note(|| format!("fault {kind} at web {site}"));
        let it = &mut self.sites[site];
        match kind {
            0 | 1 if it.machine.is_some() => {
                let keeps_disk = self.rng.u8(..3) > 0;
                it.crash(keeps_disk);
            }
            2 if it.machine.is_some() => self.stop(site),
            0..=4 if it.machine.is_none() => self.start(site),
            3 | 4 => {
                // A restart within moments.
                let keeps_disk = self.rng.bool();
                it.crash(keeps_disk);
                self.start(site);
            }
            5 => it.requests_cut = true,
            6 => it.replies_cut = true,
            7 => (it.requests_cut, it.replies_cut) = (true, true),
            8..=11 => self.sites.iter_mut().for_each(|it| (it.requests_cut, it.replies_cut) = (false, false)),
            12 => it.origin_cut = !it.origin_cut,
            13 | 14 => it.frozen_until = self.now + self.rng.u64(10..8000) * MS,
            15 => self.servers[newest].flush(),
            16 => {
                let dump = self.dumps[self.rng.usize(..self.dumps.len())].clone();
                self.restart(newest, dump);
            }
            17 => {
                let kept = self.servers[newest].kept.clone();
                self.restart(newest, kept);
            }
            18 => self.servers[newest].is_up = false,
            19 => self.servers[newest].is_up = true,
            20 => self.dumps.push(self.servers[newest].kept.clone()),
            21 => self.servers[newest].wall = self.rng.i64(-3_600_000..3_600_000),
            22 => self.fail_over(),
            _ => self.servers[newest].has_replica = self.rng.bool(),
        }
    }

    /// Starts the server anew with what is kept. Whoever is connected hears nothing more of it.
    fn restart(&mut self, server: usize, kept: ServerDump) {
        self.servers[server].restart(kept, &mut self.rng);
        self.members_may_be_lost(server);
        for site in 0..self.sites.len() {
            if self.sites[site].server == server
                && self.sites[site].machine.is_some()
                && matches!(self.sites[site].link, Link::Up { .. })
                && self.sites[site].frozen_until <= self.now
            {
                self.lose(site, "the server has gone");
            }
        }
    }

    /// Makes the replica the primary. The old one may go on for a while, for those who have not heard of it.
    fn fail_over(&mut self) {
        let newest = self.servers.len() - 1;
        let goes_on = self.replicas == 1 && self.rng.bool();
        let old = &mut self.servers[newest];
        old.has_replica = false;
        old.is_up &= goes_on;
        let mut server = Server::new(&mut self.rng);
        server.kept = self.servers[newest].replica.clone();
        server.replica = server.kept.clone();
        server.has_replica = self.rng.u8(..4) > 0;
        self.servers.push(server);
        self.members_may_be_lost(newest + 1);
    }

    /// Machines that the list lacks now are unknown to whoever starts later.
    fn members_may_be_lost(&mut self, server: usize) {
        let kept = &self.servers[server].kept;
        for it in &mut self.sites {
            it.is_known &= it.machine.as_ref().is_some_and(|machine| kept.members.contains_key(machine.field()));
        }
    }

    fn stop(&mut self, site: usize) {
        let now = self.local(site);
        let it = &mut self.sites[site];
        let Some(machine) = &mut it.machine else { return };
        let field = machine.field().to_owned();
        let acts = machine.stop(now);
        let (server, connection) = (it.server, it.connection);
        self.perform(site, acts);
        self.number += 1;
        let number = self.number;
        let delay = self.delay();
        if !self.sites[site].requests_cut {
            self.after(delay, Event::Arrives { site, server, connection, number, op: Op::Remove(field, None) });
        }
        self.sites[site].crash(true);
    }

    /// Ends all faults: after a while, everything must be as at the beginning.
    fn mend(&mut self) {
        let newest = self.servers.len() - 1;
        self.servers[newest].is_up = true;
        self.servers[newest].has_replica = true;
        for site in 0..self.sites.len() {
            let it = &mut self.sites[site];
            (it.requests_cut, it.replies_cut, it.origin_cut) = (false, false, false);
            it.frozen_until = it.frozen_until.min(self.now);
            if it.machine.is_none() {
                self.start(site);
            }
        }
        // Those on an old server hear at last that there is another one.
        for server in 0..newest {
            self.servers[server].is_up = false;
        }
    }
}
