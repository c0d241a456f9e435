//! Purges as an operator reads of them: who ordered them, in words, what they covered, and how much.

use admin::PurgeLine;
use insight::Insight;
use pipeline::Purge;
use policy::purge::{Maker, Sites};

/// Tells of a purge. Those that strangers can cause, by a form or a comment, do not come here: they would fill the list.
pub(crate) fn tell(insight: &Insight, purge: &Purge<'_>) {
    let Purge { at, order, receipt } = *purge;
    insight.purged(&PurgeLine {
        at: at.as_millis(),
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

fn by(maker: Maker) -> String {
    match maker {
        Maker::Operator => "whoever has the admin token (dashboard, seawall purge, a program)",
        Maker::Plugin(dialect) => return format!("a purge request on the site's address ({})", dialect.name()),
        Maker::Origin => "the origin, in an answer",
        Maker::Webhook => "the origin, by a webhook",
        Maker::UnsafeMethod => "the answer to a POST or the like",
        Maker::Folder => "the site's folder: files in it changed",
        Maker::Reload => "a reload of the configuration",
        Maker::Watch => "a look at the origin: it was upgraded, was away and is back, or published past Seawall",
        Maker::Write => "a write that the origin accepted",
    }
    .to_owned()
}
