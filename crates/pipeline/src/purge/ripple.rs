//! The pages that a publication really changes, of the many that are purged for it: they are fetched again before anybody asks for them.
//!
//! A Ghost says "everything has changed" for each post, and for most pages that is not so. What it says about the post itself, in its answer
//! to the editor or in a webhook, tells which pages have certainly changed; the others are validated when they are asked for.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use parking_lot::Mutex;
use policy::purge::{Addresses, Maker, Order, What, Withdrawal, shown_of, written_addresses};
use semantics::Timestamp;

use crate::{Pipeline, Shared, Site, question::Question};

/// The most pages that are fetched again for publications in quick succession.
const PATHS_MAX: usize = 64;
/// The time within which several signals are about the same publication.
const SAME_PUBLICATION: Duration = Duration::from_secs(10);

/// The pages that are to be refilled, by the numbers of their sites. A site that is not in it is refilled by popularity.
#[derive(Debug, Default)]
pub(crate) struct Ripples(Mutex<BTreeMap<u16, Ripple>>);

#[derive(Debug, Clone)]
struct Ripple {
    at: Timestamp,
    paths: Vec<String>,
}

impl Ripples {
    /// Returns the paths that are to be refilled of a site, in their order. `None`: whatever is read most.
    pub(crate) fn of(&self, site: u16) -> Option<Vec<String>> {
        self.0.lock().get(&site).map(|ripple| ripple.paths.clone())
    }

    /// Forgets all ripples: something else was purged.
    pub(super) fn forget(&self) {
        self.0.lock().clear();
    }

    /// Notes that everything of a site may have changed. What a signal of a moment ago said about it stays true if this one `is_vague`.
    fn everything(&self, site: u16, now: Timestamp, is_vague: bool) {
        self.0.lock().retain(|of, ripple| *of != site || (is_vague && now.since(ripple.at) < SAME_PUBLICATION));
    }

    /// Adds pages that certainly have changed.
    fn add(&self, site: u16, paths: Vec<String>, now: Timestamp) {
        let mut ripples = self.0.lock();
        let before = ripples.remove(&site).filter(|ripple| now.since(ripple.at) < SAME_PUBLICATION);
        let mut all = paths;
        for path in before.into_iter().flat_map(|ripple| ripple.paths) {
            if !all.contains(&path) {
                all.push(path);
            }
        }
        all.truncate(PATHS_MAX);
        ripples.insert(site, Ripple { at: now, paths: all });
    }
}

/// The pages of a site that every publication changes.
#[derive(Debug, Clone)]
struct Lists {
    site: u16,
    front_page: String,
    of_all: [String; 4],
}

/// The site of a publication, which may be at work elsewhere when the publication is known.
#[derive(Clone)]
struct PublishingSite {
    name: String,
    /// The path at which its software is, without a slash at its end.
    base_path: String,
    /// The hosts of which it is known that readers use them.
    hosts: Vec<String>,
}

impl PublishingSite {
    fn of(shared: &Shared, site: &Site, authority: &str) -> Self {
        let mut hosts: BTreeSet<String> = site.named_hosts(authority).into_iter().map(str::to_owned).collect();
        if hosts.len() != site.hosts.len() {
            // A site may have hosts that no setting names: its readers do.
            let keys = shared.popularity.most();
            let used = keys.iter().filter_map(|(_, key)| policy::Key::read(key)).filter(|key| key.site == site.id);
            hosts.extend(used.map(|key| key.host.to_owned()));
        }
        let base_path = site.policy.settings().base_path.clone();
        Self { name: site.name.clone(), base_path, hosts: hosts.into_iter().collect() }
    }
}

impl Lists {
    fn of(site: &Site) -> Self {
        Self { site: site.id, front_page: site.policy.front_page(), of_all: site.policy.lists_of_all() }
    }

    /// Returns the paths that a publication changes, in the order in which readers miss them.
    fn with(&self, addresses: Addresses) -> Vec<String> {
        let mut paths = vec![self.front_page.clone()];
        for path in addresses.post.into_iter().chain(addresses.lists).chain(self.of_all.iter().cloned()) {
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        paths
    }
}

impl Shared {
    /// Ends what is stored of a post that is not for everybody any more: nobody is to see it again, not even while the origin is away.
    ///
    /// Where nothing says at which address it was, that is everything of the site.
    fn withdraw(&self, site: &PublishingSite, addresses: &Addresses) {
        let what = match &addresses.withdrawn {
            None => return,
            Some(Withdrawal::Unknown) => vec![What::Everything],
            Some(Withdrawal::At(path)) => {
                let hosts: BTreeSet<String> = site.hosts.iter().chain(&addresses.host).cloned().collect();
                shown_of(path, &addresses.lists, &site.base_path, &hosts.into_iter().collect::<Vec<_>>())
            }
        };
        let order = Order::for_site(&site.name, what, true, Maker::Origin);
        if let Err(why) = self.purge(&order) {
            tracing::warn!(site = site.name, %why, "a post that was withdrawn could not be purged");
        }
    }

    /// Notes that everything of a site may have changed.
    pub(super) fn ripple_of_everything(&self, site: u16) {
        self.refilling.ripples.everything(site, self.clock.now(), false);
    }

    /// Notes that a post of a site was written, and these addresses have changed with it.
    fn ripple(&self, lists: &Lists, addresses: Addresses) {
        self.refilling.ripples.add(lists.site, lists.with(addresses), self.clock.now());
        self.refilling.begin_anew();
    }
}

impl Pipeline {
    /// Notes what an answer to a write says has changed: with a post, its site's lists; else everything.
    pub(super) fn ripple_of_write(&self, site: &Site, is_of_post: bool) {
        if is_of_post {
            self.shared.ripple(&Lists::of(site), Addresses::default());
        } else {
            self.shared.ripple_of_everything(site.id);
        }
    }

    /// Notes what a webhook says has changed.
    pub(super) fn ripple_of_webhook(&self, site: &Site, authority: &str, about: Option<Addresses>) {
        match about {
            Some(addresses) => {
                self.shared.withdraw(&PublishingSite::of(&self.shared, site, authority), &addresses);
                self.shared.ripple(&Lists::of(site), addresses);
            }
            None => self.shared.refilling.ripples.everything(site.id, self.shared.clock.now(), true),
        }
    }

    /// Learns from the answer to an editor which pages the write has changed, and ends what was withdrawn by it. An answer that cannot be read may say
    /// anything: then nothing of the site is shown again.
    pub(super) fn learn_from_answer(&self, question: &Question, answer: Option<&[u8]>) {
        let site = &question.site;
        let unread = || Addresses { withdrawn: Some(Withdrawal::Unknown), ..Addresses::default() };
        let addresses = answer.and_then(|answer| written_addresses(answer).ok()).unwrap_or_else(unread);
        self.shared.withdraw(&PublishingSite::of(&self.shared, site, &question.authority), &addresses);
        self.shared.ripple(&Lists::of(site), addresses);
    }
}
