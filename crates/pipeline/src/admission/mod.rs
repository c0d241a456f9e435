//! The first steps of a request, in the order in which it takes them. Each step answers the request or lets it go on to the next one.
//!
//! [`admit`] is the only list of these steps. [`Pipeline::respond`](crate::Pipeline::respond) does what it returns, and
//! [`Pipeline::explain`](crate::Pipeline::explain) tells it. [`Pipeline::hit`](crate::Pipeline::hit) leaves every request to it that a step
//! could answer ([`concerns`]).

pub(crate) mod challenge;
mod health;
pub(crate) mod https;
pub(crate) mod max_forwards;
pub(crate) mod password;
mod requests;
pub(crate) mod schedule;
mod twin_host;

use std::rc::Rc;

use http::{Response, request::Parts};
use policy::Trace;
use semantics::RequestHead;

use crate::{Body, Client, Interim, Router, Shared, Site, admission::password::Locked, failure::ErrorReason, identity::Identity};

/// A request that has arrived and that nobody has judged yet. Its `Host` has its one spelling.
#[derive(Debug)]
pub(crate) struct IncomingRequest {
    pub(crate) client: Client,
    pub(crate) identity: Identity,
    /// The client's `Host` in its one spelling.
    pub(crate) authority: String,
    pub(crate) parts: Parts,
    /// Takes the interim responses of the origin.
    pub(crate) interim: Option<Interim>,
}

impl IncomingRequest {
    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    pub(crate) fn path(&self) -> &str {
        self.parts.uri.path()
    }
}

/// A step that can answer a request before its site judges it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstStep {
    /// A certificate authority looks for a proof.
    Challenge,
    /// Somebody asks whether this server is there.
    Health,
    /// The address of the client has sent too many requests.
    Requests,
    /// The host only leads to another one.
    TwinHost,
    /// Seawall runs the schedule of the site's software by itself.
    Schedule,
    /// The site wants its visitors to use https.
    Https,
    /// The request may not go on to another server.
    MaxForwards,
    /// The site asks for a password.
    Password,
}

impl FirstStep {
    /// Returns the step's name, as explanations show it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Challenge => "challenge",
            Self::Health => "health",
            Self::Requests => ErrorReason::TooManyRequests.name(),
            Self::TwinHost => "twin host",
            Self::Schedule => "schedule",
            Self::Https => "https",
            Self::MaxForwards => "max-forwards",
            Self::Password => ErrorReason::Password.name(),
        }
    }
}

/// The result of the first steps.
pub(crate) enum Admission {
    /// A step answers the request.
    Answered {
        step: FirstStep,
        /// The site that answers, if the request got as far as one.
        site: Option<Rc<Site>>,
        response: Box<Response<Body>>,
    },
    /// No site has the host of the request.
    NoSite,
    /// The request goes on to this site. A lock has to be opened first if there is one.
    Admitted { site: Rc<Site>, lock: Option<Locked> },
}

/// Takes a request through the first steps. It is counted, if its address is, and nothing else is done yet: a password is verified by whoever opens the
/// lock that this returns.
pub(crate) fn admit(shared: &Shared, router: &Router, incoming: &IncomingRequest, trace: &mut impl Trace) -> Admission {
    let answered =
        |step, site: Option<&Rc<Site>>, response| Admission::Answered { step, site: site.cloned(), response: Box::new(response) };

    if let Some(response) = challenge::answer(shared, incoming, trace) {
        return answered(FirstStep::Challenge, None, response);
    }
    if let Some(response) = health::answer(router, incoming, trace) {
        return answered(FirstStep::Health, None, response);
    }
    // Whoever comes from here on is counted: also who asks for no site, or has no password.
    if let Some(response) = requests::answer(shared, router, incoming, trace) {
        return answered(FirstStep::Requests, router.site(incoming.authority()), response);
    }
    if let Some(response) = twin_host::redirect(shared, router, incoming, trace) {
        return answered(FirstStep::TwinHost, None, response);
    }
    let Some(site) = router.site(incoming.authority()) else { return Admission::NoSite };
    // What software on this machine says of its site is signed, and it knows no password.
    if incoming.client.address.is_none_or(|address| address.is_loopback())
        && site.policy.is_webhook(&incoming.parts.method, incoming.path())
    {
        return Admission::Admitted { site: Rc::clone(site), lock: None };
    }
    // WordPress follows no redirect to itself, and knows no password.
    if let Some(response) = schedule::answer(site, incoming, || shared.clock.now(), trace) {
        return answered(FirstStep::Schedule, Some(site), response);
    }
    if let Some(response) = https::redirect(shared, site, incoming, trace) {
        return answered(FirstStep::Https, Some(site), response);
    }
    if let Some(response) = max_forwards::answer(incoming, trace) {
        return answered(FirstStep::MaxForwards, Some(site), response);
    }
    match password::lock(site, incoming, trace) {
        Ok(lock) => Admission::Admitted { site: Rc::clone(site), lock },
        Err(response) => answered(FirstStep::Password, Some(site), *response),
    }
}

/// Returns whether a step could answer a request for a stored page of this site, or change it: then [`admit`] has to be asked.
///
/// Five steps are not looked at. The answer to a challenge is never stored, and a twin host has no site. The preset lets the path of the schedule pass, and no
/// stored response answers OPTIONS or TRACE. Where there is a limit for the requests of one address, `hit` counts the request itself.
pub(crate) fn concerns(router: &Router, site: &Site, client: Option<&Client>, head: &RequestHead<'_>) -> bool {
    router.is_health(head.path) || site.https.concerns(client, head.scheme) || site.auth.as_ref().is_some_and(|auth| !auth.is_open(head))
}
