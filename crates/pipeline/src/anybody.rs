//! Requests that nobody sent: made as any reader would make them, to see what readers would be shown.

use std::{
    net::{IpAddr, Ipv4Addr},
    rc::Rc,
};

use http::{HeaderMap, HeaderValue, Method, header};
use policy::{Silent, Verdict};
use semantics::{RequestFields, RequestHead, Scheme};

use crate::{
    Client, Pipeline, Shared, Site,
    identity::Identity,
    question::{self, Question, Wants},
};

/// The part of a request by which one reader's page is another one's.
#[derive(Debug, Clone)]
pub(crate) struct AsReader {
    pub(crate) scheme: Scheme,
    pub(crate) host: String,
    pub(crate) accept: Option<&'static str>,
}

/// Makes a request of nobody's for an address. `None` if no such request asks the cache.
pub(crate) fn anybodys(shared: &Shared, site: &Rc<Site>, reader: &AsReader, target: &str) -> Option<Question> {
    let AsReader { scheme, host, accept } = reader;
    let scheme = *scheme;
    let mut headers = HeaderMap::new();
    headers.insert(header::HOST, HeaderValue::from_str(host).ok()?);
    headers.insert(header::USER_AGENT, crate::learnt::refill::USER_AGENT);
    if let Some(accept) = accept {
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
    }
    let uri: http::Uri = target.parse().ok()?;
    let fields = RequestFields::from_map(&headers);
    let head = RequestHead { method: &Method::GET, scheme, authority: host, path: uri.path(), query: uri.query(), fields: &fields };
    let mut key = Vec::new();
    let Verdict::Lookup(carries) = question::verdict(site, false, &head, &mut key, &mut Silent) else { return None };
    let wants = Wants::of(site, uri.path(), &fields);
    let ourselves = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
    Some(Question {
        site: Rc::clone(site),
        client: Client { peer: ourselves, trusted: false, address: ourselves, scheme, said_http: false },
        identity: Identity::of_our_own(shared),
        way: Vec::new(),
        method: Method::GET,
        version: http::Version::HTTP_11,
        authority: host.clone(),
        target: target.to_owned(),
        left_out: None,
        member: None,
        uri,
        carries,
        wants,
        interim: None,
        takes_hints: false,
        hash: shared.store.hash(&key),
        key,
        headers,
    })
}

impl Pipeline {
    /// Finds out as whom readers ask for a page most.
    pub(crate) fn most_readers(&self, site: &Site, path: &str) -> Option<AsReader> {
        self.shared.popularity.most().into_iter().find_map(|(_, key)| {
            let key = policy::Key::read(&key).filter(|key| key.site == site.id && key.target == path)?;
            Some(AsReader { scheme: key.scheme, host: key.host.to_owned(), accept: key.class.plain() })
        })
    }
}
