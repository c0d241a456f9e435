//! The signals that arrived of each site, for the operator and for those that judge the next one.

use std::{collections::BTreeMap, time::Duration};

use parking_lot::Mutex;
use policy::purge::{Maker, Order, What};
use semantics::Timestamp;
use store::Generation;

use super::{
    Receipt,
    once::UsedSignatures,
    webhook::Reading,
    write::{Editors, Writer},
};
use crate::{Shared, Site, fence::PendingPurges};

/// The time after which an origin may be asked again whether it is public because a page of it looks as if it were not.
const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// The most sites of which signals are remembered. There are as many as the configuration has; only those that it had before count beyond.
const SITES_MAX: usize = 4_096;

/// The signals that arrived, by site.
#[derive(Debug, Default)]
pub struct SignalLog {
    sites: Mutex<BTreeMap<String, SiteSignals>>,
    pub(super) reading: Reading,
    pub(super) once: UsedSignatures,
    pub(super) editors: Editors,
}

/// The signals of a site.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SiteSignals {
    /// The last purge by a field of an answer.
    pub in_path: Option<SignalledPurge>,
    /// The last purge by a webhook.
    pub webhook: Option<SignalledPurge>,
    /// The time of the last webhook, whatever it said.
    pub webhook_at: Option<Timestamp>,
    /// The number of pages that were fetched again since the last of these purges, before anybody asked for them.
    pub refilled: u64,
    /// The word of the last page of the origin on its plugin, such as `wordpress/1.0.0`. `None`: the plugin is not there, or nothing was seen.
    pub plugin: Option<String>,
    privacy: Privacy,
    unanswered: UncertainWrites,
}

/// The time of the last purge of a site whose reason was a write with an unknown outcome. If that is in the future, it is on its way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct UncertainWrites {
    by_known: Option<Timestamp>,
    by_others: Option<Timestamp>,
}

/// A purge that a signal caused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalledPurge {
    /// The time at which it was carried out.
    pub at: Timestamp,
    /// A description of what it covered, in words.
    pub covered: String,
    /// Whether what it covered is never served again.
    pub hard: bool,
}

/// Whether a site shows its pages to everybody, as far as was seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Privacy {
    is_private: bool,
    /// The generation at which that was seen: what was asked for before does not count.
    since: Option<Generation>,
    /// The time when the front page was asked for because another page was behind the password.
    asked: Option<Timestamp>,
}

impl SiteSignals {
    /// Returns the last purge of which the origin told, and how it did.
    pub(crate) fn last(&self) -> Option<(Maker, &SignalledPurge)> {
        let both = [(Maker::Origin, &self.in_path), (Maker::Webhook, &self.webhook)];
        both.into_iter().filter_map(|(by, publication)| Some((by, publication.as_ref()?))).max_by_key(|(_, publication)| publication.at)
    }
}

impl SignalLog {
    /// Returns the signals of a site.
    #[must_use]
    pub fn of(&self, site: &str) -> SiteSignals {
        self.sites.lock().get(site).cloned().unwrap_or_default()
    }

    fn change<T>(&self, site: &str, change: impl FnOnce(&mut SiteSignals) -> T) -> T {
        let mut sites = self.sites.lock();
        if sites.len() >= SITES_MAX && !sites.contains_key(site) {
            sites.clear();
        }
        change(sites.entry(site.to_owned()).or_default())
    }

    /// Notes that a page of a site was fetched again before anybody asked for it.
    pub(crate) fn refilled(&self, site: &str) {
        if let Some(of_site) = self.sites.lock().get_mut(site) {
            of_site.refilled += 1;
        }
    }

    /// Notes what an answer of a site's origin said of its plugin.
    pub(crate) fn plugin_said(&self, site: &str, plugin: Option<&str>) {
        if self.sites.lock().get(site).and_then(|of_site| of_site.plugin.as_deref()) != plugin {
            self.change(site, |of_site| of_site.plugin = plugin.map(str::to_owned));
        }
    }

    /// Notes what a look has found of a site's plugin that began when `before` was known. A page that said otherwise meanwhile is newer.
    pub fn plugin_was_seen(&self, site: &str, before: Option<&str>, plugin: Option<&str>) {
        self.change(site, |of_site| {
            if of_site.plugin.as_deref() == before {
                of_site.plugin = plugin.map(str::to_owned);
            }
        });
    }

    /// Notes that a webhook of a site came, whatever it said.
    pub(super) fn webhook_came(&self, site: &str, now: Timestamp) {
        self.change(site, |of_site| of_site.webhook_at = Some(now));
    }

    /// Notes what an answer to a request of nobody's showed that began at `begun`. Returns whether the site has just become private.
    pub(super) fn note_privacy(&self, site: &str, is_private: bool, begun: Generation, now: Generation) -> bool {
        self.change(site, |of_site| {
            let known = of_site.privacy;
            if known.is_private == is_private || known.since.is_some_and(|since| begun < since) {
                return false;
            }
            of_site.privacy = Privacy { is_private, since: Some(now), asked: None };
            is_private
        })
    }

    /// Returns whether the front page is to be asked for, as an answer to a request that began at `begun` looks as if the site were private.
    pub(super) fn should_ask_front_page(&self, site: &str, begun: Generation, now: Timestamp) -> bool {
        self.change(site, |of_site| {
            let known = &mut of_site.privacy;
            let is_news = !known.is_private && known.since.is_none_or(|since| begun >= since);
            let asks = is_news && known.asked.is_none_or(|asked| now.since(asked) >= ASKED_AGAIN_AFTER);
            if asks {
                known.asked = Some(now);
            }
            asks
        })
    }

    /// Returns after what time a site is to be purged for a write that was not answered. `None`: a purge that is on its way covers it.
    pub(super) fn unanswered(&self, site: &str, writer: Writer, now: Timestamp) -> Option<Duration> {
        self.change(site, |of_site| {
            let last = match writer {
                Writer::Known => &mut of_site.unanswered.by_known,
                Writer::Other => &mut of_site.unanswered.by_others,
            };
            let wait = match *last {
                Some(at) if at > now => return None,
                Some(at) => writer.every().saturating_sub(now.since(at)),
                None => Duration::ZERO,
            };
            *last = Some(now + wait);
            Some(wait)
        })
    }
}

impl Shared {
    /// Purges for a signal, and remembers it for the operator. Returns `false` if the order was not understood.
    pub(crate) fn purge_for_signal(&self, order: &Order, caused: &PendingPurges) -> bool {
        match self.purge_with_acknowledgement(order) {
            Ok((receipt, elsewhere)) => {
                caused.add(elsewhere);
                self.remember_publication(order, &receipt);
                true
            }
            Err(why) => {
                tracing::warn!(by = order.by.name(), %why, "a signal could not be obeyed as it was written");
                false
            }
        }
    }

    /// Remembers for the operator what a signal purged; other purges are not publications.
    pub(super) fn remember_publication(&self, order: &Order, receipt: &Receipt) {
        let policy::purge::Sites::Named(site) = &order.sites else { return };
        // A comment is not a publication.
        if !order.by.is_signal() || order.what.iter().all(policy::Policy::is_aside) {
            return;
        }
        let publication = SignalledPurge { at: self.clock.now(), covered: receipt.in_words(), hard: order.hard };
        self.signalled.change(site, |of_site| {
            of_site.refilled = 0;
            match order.by {
                Maker::Webhook => of_site.webhook = Some(publication),
                _ => of_site.in_path = Some(publication),
            }
        });
    }

    pub(super) fn publish_everything(&self, site: &Site, hard: bool, by: Maker, caused: &PendingPurges) {
        self.purge_for_signal(&Order::for_site(&site.name, vec![What::Everything], hard, by), caused);
    }
}
