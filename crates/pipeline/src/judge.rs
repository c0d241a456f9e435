//! The judgement of a site's policy on a request: the question that it becomes, and who is to answer it.

use std::rc::Rc;

use http::{HeaderMap, Uri, header, request::Parts};
use ipnet::IpNet;
use policy::{PassRule, Trace, Verdict};
use semantics::{RequestFields, Timestamp, hop_by_hop::nominated_by_connection};

use crate::{
    Client, Shared, Site,
    admission::IncomingRequest,
    answer::OwnAnswer,
    question::{self, Question, Wants},
};

/// Bytes of a key beside the host and the target, at most: so it does not grow while it is written.
const KEY_OVERHEAD: usize = 8;

/// The judgement on a request.
pub(crate) enum Judgement {
    /// The cache is asked.
    Lookup(Rc<Question>),
    /// The origin is asked and nothing is stored; this rule decided.
    Pass(Rc<Question>, PassRule),
    /// Somebody wants stored responses purged: this server answers.
    Purge { site: Rc<Site>, client: Client, parts: Box<Parts>, authority: String },
    /// The site's origin tells of a change: this server answers.
    Webhook { site: Rc<Site>, client: Client, parts: Box<Parts>, authority: String },
    /// The target cannot be understood.
    Malformed(Rc<Site>),
}

/// Judges a request that was admitted to a site, by the rules of the part of the site that its path leads to. `now` is asked for only if the time
/// decides something.
pub(crate) fn judge(
    shared: &Shared,
    trusted_proxies: &[IpNet],
    site: &Rc<Site>,
    incoming: Box<IncomingRequest>,
    now: impl Fn() -> Timestamp,
    trace: &mut impl Trace,
) -> Judgement {
    // A source that has only a part of the site says it at the same place.
    let is_webhook = |part: &&Rc<Site>| part.policy.is_webhook(&incoming.parts.method, incoming.path());
    if let Some(teller) = site.with_parts().find(is_webhook).map(Rc::clone) {
        trace.decides(OwnAnswer::Webhook.name(), true, || format!("of the site's {}", teller.policy.settings().kind.name()));
        let IncomingRequest { client, authority, parts, .. } = *incoming;
        return Judgement::Webhook { site: teller, client, parts: Box::new(parts), authority };
    }
    let site = Rc::clone(site.part(incoming.path()));
    let IncomingRequest { client, authority, parts, .. } = &*incoming;
    let client = *client;
    let target_bytes = parts.uri.path_and_query().map_or(0, |target| target.as_str().len());
    let mut key = Vec::with_capacity(KEY_OVERHEAD + authority.len() + target_bytes);
    let fields = RequestFields::from_map(&parts.headers);
    let head = question::head(parts, &fields, authority, client.scheme);
    let (verdict, member) = question::verdict_with_member(&site, client.trusted, &head, &parts.headers, &mut key, &now, trace);
    let verdict = by_route(&site, verdict, trace);
    let verdict = shared.direct.pass(verdict, &fields, now, trace);
    let carries = match verdict {
        Verdict::Lookup(carries) => Some(carries),
        Verdict::Pass(_) => {
            key.clear();
            None
        }
        Verdict::Purge => {
            let IncomingRequest { parts, authority, .. } = *incoming;
            return Judgement::Purge { site, client, parts: Box::new(parts), authority };
        }
        Verdict::Malformed => return Judgement::Malformed(site),
    };
    let wants = Wants::of(&site, parts.uri.path(), &fields);
    let way = client.way(fields.lines, trusted_proxies);

    // It is taken out of its box here, and not sooner, so that no part of it is moved twice.
    let IncomingRequest { identity, authority, parts, interim, .. } = *incoming;
    let Parts { method, version, mut headers, uri, .. } = parts;
    let left_out = carries.and_then(|_| site.policy.left_out(uri.path(), uri.query()));
    let Some((target, uri)) = origins_target(&site, &verdict, uri) else { return Judgement::Malformed(site) };
    let takes_hints = interim.is_some() && site.policy.settings().early_hints.are_for(&method, version, &headers);
    question::remove_unsent_fields(&mut headers, &site, client.trusted, carries);
    if wants.names_hop_by_hop {
        remove_hop_by_hop(&site, &mut headers);
    }
    let question = Rc::new(Question {
        hash: shared.store.hash(&key),
        carries: carries.unwrap_or_default(),
        member: member.filter(|_| carries.is_some()).map(Rc::new),
        site,
        client,
        identity,
        way,
        method,
        headers,
        version,
        authority,
        target,
        left_out,
        uri,
        wants,
        key,
        interim,
        takes_hints,
    });
    match verdict {
        Verdict::Pass(rule) => Judgement::Pass(question, rule),
        Verdict::Lookup(_) | Verdict::Purge | Verdict::Malformed => Judgement::Lookup(question),
    }
}

/// Lets a request pass whose route asks no cache.
fn by_route(site: &Site, verdict: Verdict, trace: &mut impl Trace) -> Verdict {
    let (Some(route), Verdict::Lookup(_)) = (&site.route, &verdict) else { return verdict };
    let passes = trace.decides(PassRule::Route.name(), !route.cache, || {
        if route.cache { route.path.clone() } else { format!("{}: cache = false", route.path) }
    });
    if passes { Verdict::Pass(PassRule::Route) } else { verdict }
}

/// Returns the target that the origin is asked for, as text and as a URI. `None`: it cannot be understood.
fn origins_target(site: &Site, verdict: &Verdict, uri: Uri) -> Option<(String, Uri)> {
    if uri.path() == "*" {
        return Some(("*".to_owned(), uri));
    }
    let target = match verdict {
        _ if site.passes() => policy::whole_target(uri.path(), uri.query())?,
        Verdict::Pass(rule) => site.policy.passed_target(*rule, uri.path(), uri.query())?,
        Verdict::Lookup(_) | Verdict::Purge | Verdict::Malformed => site.policy.forwarded_target(uri.path(), uri.query())?,
    };
    // Nearly always what came is what goes on.
    let same = uri.path_and_query().is_some_and(|whole| whole.as_str() == target);
    let target = target.into_owned();
    let uri = if same { uri } else { target.parse().ok()? };
    Some((target, uri))
}

/// Removes the fields that the client's connection names. They never reach the origin, so they must not select a variant either; but a field
/// that is in the key does.
fn remove_hop_by_hop(site: &Site, headers: &mut HeaderMap) {
    for name in nominated_by_connection(headers) {
        if name != header::UPGRADE && !site.policy.is_trusted_field(name.as_str()) {
            headers.remove(name);
        }
    }
}
