//! Whose request it is, and what that site's policy says to it.

use std::{net::IpAddr, rc::Rc};

use http::{header, request::Parts};
use policy::{Trace, Verdict};
use semantics::{RequestFields, hop_by_hop::nominated_by_connection};

use crate::{
    Client, Interim, Pipeline, Site,
    pipeline::{Config, authority},
    question::{self, Question},
};

/// Bytes of a key beside the host and the target, at most: so it does not grow while it is written.
const KEY_OVERHEAD: usize = 8;

/// Why a request could not be judged.
pub(crate) enum Unjudged {
    /// No site has its host.
    NoSite,
    /// Its target cannot be understood.
    Target(Rc<Site>),
    /// It is for us: a purge request.
    Purge { site: Rc<Site>, parts: Box<Parts>, authority: String },
}

impl Pipeline {
    /// Whose request it is, and what that site's policy says to it.
    pub(crate) fn judged(
        &self,
        config: &Config,
        client: Client,
        parts: Parts,
        interim: Option<Interim>,
        trace: &mut impl Trace,
    ) -> Result<(Question, Verdict), Unjudged> {
        let authority = authority(&parts.headers).to_owned();
        let site = config.router.site(&authority).ok_or(Unjudged::NoSite)?.part(parts.uri.path());
        let target_bytes = parts.uri.path_and_query().map_or(0, |target| target.as_str().len());
        let mut key = Vec::with_capacity(KEY_OVERHEAD + authority.len() + target_bytes);
        let fields = RequestFields::from_map(&parts.headers);
        let asks = question::Asks::of(site, parts.uri.path(), &fields);
        let head = question::head(&parts, &fields, &authority, client.scheme);
        let mut verdict = question::verdict(site, client.trusted, &head, &mut key, trace);
        if let (Some(route), Verdict::Lookup(_)) = (&site.route, &verdict) {
            trace.decides(
                "route",
                !route.cache,
                || if route.cache { route.path.clone() } else { format!("{}: cache = false", route.path) },
            );
            if !route.cache {
                verdict = Verdict::Pass("route");
                key.clear();
            }
        }
        if verdict == Verdict::Purge {
            return Err(Unjudged::Purge { site: Rc::clone(site), parts: Box::new(parts), authority });
        }
        let way = client.way(fields.lines, &config.trusted_proxies);
        let question = self.question(Rc::clone(site), (client, way), parts, authority, (&verdict, key), (asks, interim));
        question.map(|question| (question, verdict)).ok_or_else(|| Unjudged::Target(Rc::clone(site)))
    }

    pub(crate) fn question(
        &self,
        site: Rc<Site>,
        (client, way): (Client, Vec<IpAddr>),
        parts: Parts,
        authority: String,
        (verdict, key): (&Verdict, Vec<u8>),
        (asks, interim): (question::Asks, Option<Interim>),
    ) -> Option<Question> {
        let (method, version, mut headers, uri) = (parts.method, parts.version, parts.headers, parts.uri);
        let (target, uri) = if uri.path() == "*" {
            ("*".to_owned(), uri)
        } else {
            let target = if site.passes() {
                policy::whole_target(uri.path(), uri.query())?
            } else {
                site.policy.forwarded_target(uri.path(), uri.query())?
            };
            // Nearly always what came is what goes on.
            let same = uri.path_and_query().is_some_and(|whole| whole.as_str() == target);
            let target = target.into_owned();
            let uri = if same { uri } else { target.parse().ok()? };
            (target, uri)
        };
        let asks_cache = match verdict {
            Verdict::Lookup(asked) => Some(*asked),
            Verdict::Pass(_) | Verdict::Purge | Verdict::Malformed => None,
        };
        let asked = asks_cache.unwrap_or_default();
        let hash = self.shared.store.hash(&key);
        let takes_hints = interim.is_some() && site.policy.settings().early_hints.are_for(&method, version, &headers);
        question::reduce(&mut headers, &site, client.trusted, asks_cache);
        // What the client's connection names never reaches the origin, so it must not select a variant either; but what is in the key does.
        if asks.names_hop_by_hop {
            for name in nominated_by_connection(&headers) {
                if name != header::UPGRADE && !site.policy.is_trusted_field(name.as_str()) {
                    headers.remove(name);
                }
            }
        }
        Some(Question { site, client, way, method, headers, version, authority, target, uri, asked, asks, key, hash, interim, takes_hints })
    }
}
