//! The look at a WordPress: whether its pages list what they listed before.
//!
//! Two questions are asked, for which WordPress renders nothing. The feed of comments says when a post of a public type, or a comment, was changed
//! last. The search counts what is published: a scheduled post keeps the date of its last edit, and what is deleted leaves no date.
//! Absent: what has no date, such as menus, widgets and options. Whoever changes these through Seawall is seen doing so.

use std::{
    collections::hash_map::DefaultHasher,
    hash::{Hash, Hasher},
    time::Duration,
};

use http::header::LAST_MODIFIED;

use super::{ask::Server, sitemap::ListingDigest};

/// The longest time that one look may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The questions. With the last parameter, WordPress does not begin its own schedule because of them.
const QUESTIONS: [&str; 2] = ["/?feed=comments-rss2&doing_wp_cron", "/?rest_route=/wp/v2/search&per_page=1&doing_wp_cron"];

/// The field with the number of what was found.
const TOTAL: &str = "x-wp-total";

/// The field by which our plugin says that it is there.
const PLUGIN: &str = "seawall-plugin";

/// Holds what a look has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Observation {
    pub(super) seen: ListingDigest,
    /// The name and version that the plugin gives of itself, if it is there: `wordpress/1.0`.
    pub(super) plugin: Option<String>,
}

/// Looks at a WordPress. `beside` is what else counts. Returns `None` if it cannot tell: then the next look may.
pub(super) async fn look(server: &Server, base_path: &str, beside: u64) -> Option<Observation> {
    tokio::time::timeout(PATIENCE, read(server, base_path, beside)).await.ok()?
}

async fn read(server: &Server, base_path: &str, beside: u64) -> Option<Observation> {
    let open = server.open().ok()?;
    let (mut seen, mut plugin) = (DefaultHasher::new(), None);
    beside.hash(&mut seen);
    for question in QUESTIONS {
        let answer = open.head(&format!("{base_path}{question}")).await.ok()?;
        if answer.status.is_server_error() {
            return None;
        }
        answer.status.as_u16().hash(&mut seen);
        for name in [LAST_MODIFIED.as_str(), TOTAL] {
            answer.fields.get(name).map(http::HeaderValue::as_bytes).hash(&mut seen);
        }
        let said = answer.fields.get(PLUGIN).and_then(|value| value.to_str().ok());
        plugin = plugin.or_else(|| said.map(str::to_owned));
    }
    Some(Observation { seen: seen.finish(), plugin })
}
