//! One simulated client.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;

use super::{
    Own, RequestSet, VisitorRequest,
    behaviour::Step,
    cookies::Jar,
    page::{FAVICON, Page, PagePart, Validators, VisitorCache, key},
    template::Values,
    url::Url,
};
use crate::{
    answer::{Answer, JudgedAnswer, judge},
    record::ErrorClass,
    results::Leak,
};

/// The number of connections that browsers open to one server over HTTP/1.1.
const BROWSER_CONNECTIONS: usize = 6;

/// Says what a visitor does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// It asks. There may be more to ask at the same time: ask again, while a connection is free.
    Ask(VisitorRequest),
    /// It waits for the answers that are under way.
    Wait,
    /// Its visit is over. A client that stays begins another one.
    Over,
}

/// One simulated client: what it asks, its cookies, what it has learnt.
#[derive(Debug)]
pub struct Visitor {
    /// Borrowed for each request and never cloned: workers would fight for its count.
    set: Arc<RequestSet>,
    client: Client,
}

/// Holds what a visitor has beside what all of them share.
#[derive(Debug)]
struct Client {
    number: u64,
    random: fastrand::Rng,
    /// The requests it has made.
    n: u64,
    class: Option<u16>,
    /// The place in its visit: the step, and the number of times that it is still to be done. None: it has not begun.
    at: Option<(u16, u32)>,
    under_way: u32,
    state: Option<Box<State>>,
}

/// Holds what some visitors keep between requests.
#[derive(Debug, Default)]
struct State {
    jar: Jar,
    marker: String,
    page: Option<Page>,
    kept: VisitorCache,
}

impl Visitor {
    /// Makes a visitor who has done nothing yet. `number` differs for each visitor of a run.
    #[must_use]
    pub fn new(set: Arc<RequestSet>, number: u64, seed: u64) -> Self {
        // A seed beside the other's makes a stream beside the other's in wyrand, so they are spread.
        let random = fastrand::Rng::with_seed(seed ^ number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let behaviour = &set.behaviour;
        let state = behaviour.has_state().then(|| {
            let marker = behaviour.leak.as_ref().map(|leak| leak.marker(number)).unwrap_or_default();
            Box::new(State { marker, ..State::default() })
        });
        Self { set, client: Client { number, random, n: 0, class: None, at: None, under_way: 0, state } }
    }

    /// Says what the visitor asks. `only` is a request that the schedule names. `now` is the moment for which the request is meant: in an open
    /// schedule the intended one, which may be a little in the past.
    pub fn next(&mut self, only: Option<u32>, now: Duration) -> Next {
        self.client.next(&self.set, only, now)
    }

    /// Takes an answer whose last byte came `now`, and judges it.
    pub fn answered(&mut self, asked: &VisitorRequest, answer: &Answer<'_>, now: Duration) -> JudgedAnswer {
        self.client.answered(&self.set, asked, answer, now)
    }

    /// Learns that there will be no answer to a request. Returns how long the page took that is over with it, if it was the last that the page
    /// needed.
    pub fn failed(&mut self, asked: &VisitorRequest, now: Duration) -> Option<Duration> {
        let _ = asked;
        self.client.under_way = self.client.under_way.saturating_sub(1);
        self.client.page_done(now)
    }

    /// Returns how many connections the visitor uses at most, as a browser does, to one server over HTTP/1.1.
    #[must_use]
    pub fn connections_max(&self) -> usize {
        let pages = self.set.behaviour.classes.iter().flat_map(|class| &class.steps).any(|step| step.page);
        if pages { BROWSER_CONNECTIONS } else { 1 }
    }
}

impl Client {
    fn next(&mut self, set: &RequestSet, only: Option<u32>, now: Duration) -> Next {
        if let Some(part) = self.state.as_mut().and_then(|state| state.page.as_mut()).and_then(Page::next) {
            return Next::Ask(self.ask_part(set, &part, now));
        }
        if self.under_way > 0 {
            return Next::Wait;
        }
        let behaviour = &set.behaviour;
        let class = *self.class.get_or_insert_with(|| u16::try_from(behaviour.class(now, &mut self.random)).unwrap_or_default());
        let steps = behaviour.classes.get(usize::from(class)).map_or(&[][..], |class| &class.steps);
        let Some(step) = self.advance(steps, only) else { return Next::Over };
        let step = steps.get(step);
        let request = only
            .or_else(|| behaviour.next_in_order(set.requests.len()))
            .or_else(|| step.and_then(|step| step.choice.choose(&mut self.random).map(|chosen| step.requests[chosen])))
            .unwrap_or_else(|| self.random.u32(..u32::try_from(set.requests.len()).unwrap_or(u32::MAX).max(1)));
        Next::Ask(self.ask(set, request, step, now))
    }

    /// Goes on in the visit, and returns the step that is to do; nothing when the visit is over.
    fn advance(&mut self, steps: &[Step], only: Option<u32>) -> Option<usize> {
        if only.is_some() || steps.is_empty() {
            // A visit is one request.
            self.at = if self.at.is_none() { Some((0, 0)) } else { None };
            return self.at.map(|_| 0);
        }
        loop {
            let (step, left) = match self.at {
                None => (0, None),
                Some((step, 0)) => (step + 1, None),
                Some((step, left)) => (step, Some(left)),
            };
            let Some(doing) = steps.get(usize::from(step)) else {
                self.at = None;
                return None;
            };
            let left = left.unwrap_or_else(|| self.random.u32(doing.times.0..=doing.times.1.max(doing.times.0)));
            self.at = Some((step, left.saturating_sub(1)));
            if left > 0 {
                return Some(usize::from(step));
            }
        }
    }

    fn ask(&mut self, set: &RequestSet, request: u32, step: Option<&Step>, now: Duration) -> VisitorRequest {
        self.n += 1;
        self.under_way += 1;
        let behaviour = &set.behaviour;
        let base = &set.requests[request as usize];
        let origin = &set.origins[usize::from(base.origin)];
        let is_get = base.method == "GET";
        let mut wants_body = base.method != "HEAD" && (behaviour.checks.want_body() || behaviour.leak.is_some());
        let filled = behaviour.templates.get(request as usize).and_then(Option::as_deref).map(|templates| {
            let values = self.values(&set.behaviour, now);
            let mut fill = |template: &super::template::Template| template.fill(&values, "", &mut self.random);
            Own {
                method: base.method.clone(),
                target: fill(&templates.target),
                fields: templates.fields.iter().map(|(name, value)| (name.clone(), fill(value))).collect(),
                body: templates.body.as_ref().map_or_else(|| base.body.clone(), |body| Bytes::from(fill(body))),
                part: None,
            }
        });
        let target = filled.as_ref().map_or(base.target.as_str(), |own| own.target.as_str());
        let earlier: Option<Arc<Validators>> = step.filter(|step| step.conditional && is_get).and_then(|_| behaviour.validators(request));
        let values = self.values(&set.behaviour, now);
        let (mut cookie, mut validators, mut unread) = (None, None, false);
        if let Some(state) = self.state.as_mut() {
            cookie = cookies(state, behaviour, origin, target, now, &values, &mut self.random);
            if step.is_some_and(|step| step.page) && is_get {
                let url = Url { origin: origin.clone(), target: target.to_owned() };
                let key = key(base.origin, target);
                validators = state.kept.validators(key).cloned();
                state.page = Some(Page::new(now, request, filled.as_ref().map(|own| own.fields.clone()), url, key));
                unread = behaviour.library.wants_page(request);
                wants_body |= unread;
            }
        }
        let own = if filled.is_none() && cookie.is_none() && validators.is_none() && earlier.is_none() {
            None
        } else {
            let mut own = filled.unwrap_or_else(|| Own {
                method: base.method.clone(),
                target: base.target.clone(),
                fields: base.fields.clone(),
                body: base.body.clone(),
                part: None,
            });
            if let Some(cookie) = cookie {
                put_cookie(&mut own.fields, cookie);
            }
            // A page that was not read yet is asked for as a whole.
            if let Some(validators) = validators.as_ref().or(earlier.as_deref()).filter(|_| !unread) {
                validators.put(&mut own.fields);
            }
            Some(Box::new(own))
        };
        VisitorRequest { request, origin: base.origin, own, wants_body }
    }

    fn ask_part(&mut self, set: &RequestSet, part: &Arc<PagePart>, now: Duration) -> VisitorRequest {
        self.n += 1;
        self.under_way += 1;
        let behaviour = &set.behaviour;
        let values = self.values(&set.behaviour, now);
        let state = self.state.as_mut().expect("a visitor with a page has a state");
        let page = state.page.as_ref().expect("a part is taken from a page");
        let request = page.request;
        let document = &set.requests[request as usize];
        let mut fields: Vec<(String, String)> = Vec::with_capacity(8);
        // The page's server gets what it got with the page; others learn who asks, and no secret.
        let anybody = ["user-agent", "accept-language", "accept-encoding"];
        let is = |name: &str, other: &str| name.eq_ignore_ascii_case(other);
        let goes = |name: &str| {
            if part.origin == document.origin {
                !is(name, "accept") && !is(name, "referer")
            } else {
                anybody.iter().any(|other| is(name, other))
            }
        };
        fields.extend(page.fields.as_ref().unwrap_or(&document.fields).iter().filter(|(name, _)| goes(name)).cloned());
        fields.push(("Accept".to_owned(), part.kind.accept().to_owned()));
        fields.push(("Referer".to_owned(), page.url.to_string()));
        let origin = &set.origins[usize::from(part.origin)];
        if let Some(cookie) = cookies(state, behaviour, origin, &part.target, now, &values, &mut self.random) {
            put_cookie(&mut fields, cookie);
        }
        let wants_body = behaviour.leak.is_some() || behaviour.library.wants_part(part);
        if let Some(validators) = state.kept.validators(part.key).filter(|_| !behaviour.library.wants_part(part)) {
            validators.put(&mut fields);
        }
        let own = Own {
            method: "GET".to_owned(),
            target: part.target.clone(),
            fields,
            body: Bytes::new(),
            part: Some(FoundPart(Arc::clone(part))),
        };
        VisitorRequest { request, origin: part.origin, own: Some(Box::new(own)), wants_body }
    }

    fn values(&self, behaviour: &super::Behaviour, now: Duration) -> Values {
        let passed = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        Values { run: behaviour.run, client: self.number, n: self.n, time: behaviour.began.saturating_add(passed) }
    }

    fn answered(&mut self, set: &RequestSet, asked: &VisitorRequest, answer: &Answer<'_>, now: Duration) -> JudgedAnswer {
        self.under_way = self.under_way.saturating_sub(1);
        let behaviour = &set.behaviour;
        let mut judged = judge(answer);
        let base = &set.requests[asked.request as usize];
        let own = asked.own.as_deref();
        let part = own.and_then(|own| own.part.as_ref()).map(|part| &part.0);
        let (method, target) = own.map_or((&*base.method, &*base.target), |own| (&*own.method, &*own.target));
        if part.is_none() {
            let is_conditional = |fields: &[(String, String)]| {
                let names = ["if-none-match", "if-modified-since"];
                fields.iter().any(|(name, _)| names.iter().any(|other| name.eq_ignore_ascii_case(other)))
            };
            // A visitor that has an answer already is told that it is still good: as good as the answer itself.
            let is_validated = answer.status == 304 && own.is_some_and(|own| is_conditional(&own.fields)) && !is_conditional(&base.fields);
            let status = if is_validated { 200 } else { answer.status };
            judged.error = behaviour.checks.fail(answer, status, method == "HEAD" || is_validated);
        }
        let origin = &set.origins[usize::from(asked.origin)];
        if let Some(leak) = &behaviour.leak {
            match leak.find(answer, self.number) {
                Ok(None) => {}
                Ok(Some(found)) => {
                    judged.error = Some(ErrorClass::Leak);
                    let (url, client) = (|| format!("{origin}{target}"), self.number);
                    behaviour.leaks.add(|| Leak { url: url(), client, owner: found.owner, place: found.place });
                }
                Err(_) => judged.error = judged.error.or(Some(ErrorClass::Body)),
            }
        }
        if self.is_conditional(set, asked) {
            behaviour.learn(asked.request, Validators::of(answer).filter(|_| answer.status == 200));
        }
        let Some(state) = self.state.as_mut() else { return judged };
        if behaviour.cookies {
            let seconds = seconds(behaviour.began, now);
            for (_, value) in answer.fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case(b"set-cookie")) {
                state.jar.set(origin, target, value, seconds);
            }
        }
        let State { page: Some(page), kept, .. } = &mut **state else { return judged };
        match part {
            // Browsers look for it whether or not a page names one, and show another picture if there is none.
            Some(part) if part.target == FAVICON && matches!(answer.status, 404 | 410) => {
                judged.error = None;
                kept.miss(part.key, now);
                page.part(&behaviour.library, &set.origins, part, answer, kept, now);
            }
            Some(part) => {
                kept.take(part.key, answer, now);
                page.part(&behaviour.library, &set.origins, part, answer, kept, now);
            }
            None => {
                kept.take(key(asked.origin, target), answer, now);
                page.document(&behaviour.library, (&set.origins, asked.origin, asked.request), answer, kept, now);
            }
        }
        judged.page = self.page_done(now);
        judged
    }

    /// Returns whether a request was one of those whose answers are remembered for others.
    fn is_conditional(&self, set: &RequestSet, asked: &VisitorRequest) -> bool {
        let step = self
            .class
            .zip(self.at)
            .and_then(|(class, (step, _))| set.behaviour.classes.get(usize::from(class))?.steps.get(usize::from(step)));
        step.is_some_and(|step| step.conditional && step.requests.contains(&asked.request))
    }

    /// Ends the page if nothing of it is left to ask or under way.
    fn page_done(&mut self, now: Duration) -> Option<Duration> {
        let state = self.state.as_mut()?;
        let page = state.page.take_if(|page| self.under_way == 0 && page.is_done())?;
        page.took(now)
    }
}

/// Holds the part of a page to which an answer must be given, beside the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPart(Arc<PagePart>);

fn seconds(began: u64, now: Duration) -> i64 {
    i64::try_from(began / 1000 + now.as_secs()).unwrap_or(i64::MAX)
}

fn cookies(
    state: &State,
    behaviour: &super::Behaviour,
    origin: &super::Origin,
    target: &str,
    now: Duration,
    values: &Values,
    random: &mut fastrand::Rng,
) -> Option<String> {
    let jar = if behaviour.cookies { state.jar.get(origin, target, seconds(behaviour.began, now)) } else { None };
    let marker = behaviour.leak.as_ref().map(|leak| leak.cookie.fill(values, &state.marker, random));
    match (marker, jar) {
        (Some(marker), Some(jar)) => Some(format!("{marker}; {jar}")),
        (marker, jar) => marker.or(jar),
    }
}

/// Adds cookies to those that the user gave.
fn put_cookie(fields: &mut Vec<(String, String)>, cookie: String) {
    match fields.iter_mut().find(|(name, _)| name.eq_ignore_ascii_case("cookie")) {
        Some((_, value)) => {
            value.push_str("; ");
            value.push_str(&cookie);
        }
        None => fields.push(("Cookie".to_owned(), cookie)),
    }
}
