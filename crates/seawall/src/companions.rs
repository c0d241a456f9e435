//! Companions: routes that follow from a site's kind, beside those that the operator has written.

use std::time::Duration;

use policy::CompanionServer;

use crate::config::settings::{Headers, OriginHost, OriginSettings, Route, Site};

/// The requests that a companion gets at the same time, and those that wait for their turn.
const CONCURRENCY: usize = 64;

/// The time that connecting to a companion may take. A companion is not the site, and nobody should wait for it as for one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// The time that a companion may take for everything else.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Returns the routes of the companions of a site: at the root of its host, and below the path at which its software is. A route that the
/// operator has written for the same path goes before.
pub(crate) fn routes(site: &Site) -> Vec<Route> {
    let base_path = site.base_path().unwrap_or_default();
    let mut routes: Vec<Route> = Vec::new();
    for companion in site.kind.preset().companions {
        let server = match companion.server {
            CompanionServer::Social => &site.ghost.activitypub,
            CompanionServer::Analytics => &site.ghost.analytics,
        };
        let Some(address) = server else { continue };
        for path in [companion.path.to_owned(), format!("{base_path}{}", companion.path)] {
            if site.routes.iter().chain(&routes).any(|route| route.path == path) {
                continue;
            }
            routes.push(Route {
                path,
                addresses: vec![address.clone()],
                strip_prefix: companion.strip_prefix,
                // They go by Authorization and signatures.
                sends_cookies: false,
                is_cached: false,
                origin: OriginSettings {
                    concurrency: CONCURRENCY,
                    queue: CONCURRENCY,
                    connect_timeout: CONNECT_TIMEOUT,
                    first_byte_timeout: ANSWER_TIMEOUT,
                    between_bytes_timeout: ANSWER_TIMEOUT,
                    host: OriginHost::Client,
                    ca_file: None,
                    ..site.origin.clone()
                },
                cache: site.cache.clone(),
                headers: Headers::default(),
            });
        }
    }
    routes
}
