//! Purges as an operator reads of them: who ordered them, in words, what they covered, and how much.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use admin::PurgeLine;
use insight::Insight;
use pipeline::Purge;
use policy::purge::{Maker, Sites};

/// The milliseconds between two purges by answers to strangers that are told of. Everybody can send such requests, and must not push the others out
/// of the list; metrics count all of them.
const STRANGERS_EVERY: u64 = 10_000;

/// What is told of purges.
#[derive(Debug, Default)]
pub(crate) struct Purges {
    /// When a purge by an answer to a stranger was told last.
    strangers: AtomicU64,
}

impl Purges {
    /// Tells of a purge.
    pub(crate) fn tell(&self, insight: &Insight, purge: &Purge<'_>) {
        let Purge { at, order, receipt } = *purge;
        let at = at.as_millis();
        if order.by == Maker::UnsafeMethod {
            let last = self.strangers.load(Relaxed);
            if at.saturating_sub(last) < STRANGERS_EVERY && last != 0 {
                return;
            }
            self.strangers.store(at, Relaxed);
        }
        insight.purged(PurgeLine {
            at,
            site: match &order.sites {
                Sites::All => String::new(),
                Sites::Named(name) => name.clone(),
            },
            by: by(order.by),
            covered: receipt.in_words(),
            count: receipt.variants.map(|variants| variants as u64),
            hard: order.hard,
        });
    }
}

fn by(maker: Maker) -> String {
    match maker {
        Maker::Operator => "the admin API",
        Maker::Plugin(dialect) => return format!("a purge request on the site's address ({})", dialect.name()),
        Maker::Origin => "the origin, in an answer",
        Maker::Webhook => "the origin, by a webhook",
        Maker::UnsafeMethod => "the answer to a POST or the like",
        Maker::Folder => "the site's folder: files in it changed",
        Maker::Reload => "a reload of the configuration",
        Maker::Watch => "a look at the origin: it was upgraded, or something was published past Seawall",
        Maker::Write => "a write that the origin accepted",
    }
    .to_owned()
}
