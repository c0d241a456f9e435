//! Requests with which somebody may guess a password of the site's own (`policy::Login`).
//!
//! Wrong passwords are counted by the address of the client, and whoever has sent too many waits, without the origin being asked. Right ones cost
//! nobody anything: a school has one address. And all such requests together get a few places at the origin, so that guesses from ten thousand
//! addresses, each of which has its first one free, do not take its power from the readers. That they wait for a place is bounded.
//!
//! Nobody waits for the guesses of somebody else but in that queue, of which one address gets a small part, and in which nobody is whose content is
//! still on its way.

mod places;

use std::{
    collections::{BTreeMap, VecDeque},
    future::{Future, poll_fn},
    hash::BuildHasher,
    net::IpAddr,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use access::{Attempts, group};
use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Body as HttpBody, Frame, SizeHint};
use origins::{Fault, OriginError, server::Budget};
use parking_lot::Mutex;
use policy::{Login, PassRule, PasswordIn, PasswordVerdict};
use semantics::Timestamp;

use self::places::{LoginPermit, NoPlace, Places};
use crate::{
    Body, Pipeline, Shared,
    answer::{self, Answer, OwnAnswer},
    failure::{self, ErrorReason},
    question::Question,
    rate::LimitSharing,
};

/// The largest form with a password. Other content with one is at hand up to this size before it takes a place.
const FORM_BYTES_MAX: usize = 64 << 10;
/// The requests with passwords that may wait for a place, for each site.
const WAITING_MAX: usize = 32;
/// The longest wait for a place.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// The requests at the origin at once that could have a password and certainly have none, for each site.
const WITHOUT_PASSWORD: usize = 1;
/// The requests of one address that have a place or wait for one.
const OF_ONE_MAX: usize = 4;
/// The most wrong passwords that are counted of one answer: those of a budget.
const FAULTS_MAX: u32 = 10;
/// The credentials that are remembered as right: 8 KiB.
const KNOWN_MAX: usize = 1024;
/// The addresses of which is remembered when they were last reported; beyond that, all are forgotten, and reported once more. Some 200 KiB.
const TOLD_MAX: usize = 4096;
/// The addresses of which other machines are still to be told. Those beyond that are counted here alone. 16 KiB.
const UNTOLD_MAX: usize = 1024;
/// The most wrong passwords of one address that another machine is believed at once: a whole budget.
const HEARD_MAX: u32 = 1_000;
/// The time in which an address is reported once.
const TOLD_EVERY: Duration = Duration::from_mins(1);
/// The time after which it is worth trying again where there was no place.
const RETRY_BUSY: Duration = Duration::from_secs(4);

/// The reasons why a request with a password is refused, as metrics name them.
pub const LOGIN_REFUSALS: [&str; 2] = ["address", "busy"];

#[derive(Debug, Clone, Copy)]
pub(crate) enum LoginRefusal {
    Address,
    Busy,
}

/// A site's limits for requests with passwords.
#[derive(Debug, Clone)]
pub struct LoginLimits {
    /// The number of wrong passwords that one address may send before it has to wait.
    attempts: u32,
    /// The places at the origin.
    places: Arc<Places>,
    /// The places for what could have a password and certainly has none. Such a request may have the origin wait for another server.
    without_password: Arc<Places>,
}

impl LoginLimits {
    /// Makes the limits: `attempts` wrong passwords for each address, and `concurrency` requests at the origin at once, but no more than a quarter of what
    /// its budget allows, and at least one. All workers share them.
    #[must_use]
    pub fn new(attempts: u32, concurrency: usize, budget: Option<Arc<Budget>>) -> Self {
        let places = |concurrency| Arc::new(Places::new(concurrency, WAITING_MAX, WAIT_MAX).within(budget.clone()));
        Self { attempts, places: places(concurrency), without_password: places(WITHOUT_PASSWORD) }
    }
}

/// The knowledge of those who send passwords. All workers and sites share it.
#[derive(Debug, Default)]
pub(crate) struct Logins(Mutex<LoginTables>);

#[derive(Debug, Default)]
struct LoginTables {
    /// Wrong passwords by the numbers of the addresses.
    attempts: Attempts<u64>,
    /// The wrong passwords of which the other machines are still to be told.
    untold: BTreeMap<u64, u32>,
    /// Numbers of credentials that the origin did not refuse, the latest last: no guesses.
    right: VecDeque<u64>,
    /// The requests of an address that have a place or wait for one. As many entries as there are places and waiters.
    busy: BTreeMap<IpAddr, usize>,
    told: BTreeMap<(u16, Option<IpAddr>), Timestamp>,
}

impl LoginTables {
    fn is_right(&self, credentials: u64) -> bool {
        self.right.contains(&credentials)
    }

    fn set_right(&mut self, credentials: u64, is_right: bool) {
        self.right.retain(|known| *known != credentials);
        if is_right {
            if self.right.len() >= KNOWN_MAX {
                self.right.pop_front();
            }
            self.right.push_back(credentials);
        }
    }

    /// Returns whether this refusal is to be reported: once a minute.
    fn is_news(&mut self, of: (u16, Option<IpAddr>), now: Timestamp) -> bool {
        if self.told.get(&of).is_some_and(|told| now.since(*told) < TOLD_EVERY) {
            return false;
        }
        if self.told.len() >= TOLD_MAX {
            self.told.clear();
        }
        self.told.insert(of, now);
        true
    }
}

/// The part of one address in the places and their queue.
struct AddressQueue<'a> {
    logins: &'a Logins,
    who: IpAddr,
}

impl Logins {
    /// Counts a wrong password that came here. A machine that hears nothing of the others has a part of each budget, so that each counts for many.
    fn was_wrong(&self, who: u64, together: LimitSharing, now: Timestamp) {
        let mut known = self.0.lock();
        let times = if let LimitSharing::Apart { machines } = together { machines.clamp(1, HEARD_MAX) } else { 1 };
        known.attempts.was_wrong(who, times, now);
        if together != LimitSharing::Alone && (known.untold.len() < UNTOLD_MAX || known.untold.contains_key(&who)) {
            *known.untold.entry(who).or_default() += 1;
        }
    }

    /// Takes the wrong passwords of which the other machines have not been told yet.
    pub(crate) fn tell(&self, addresses_max: usize) -> Vec<(u64, u32)> {
        let mut known = self.0.lock();
        std::iter::from_fn(|| known.untold.pop_first()).take(addresses_max).collect()
    }

    /// Counts wrong passwords that came to another machine.
    pub(crate) fn hear(&self, who: u64, count: u32, now: Timestamp) {
        self.0.lock().attempts.was_wrong(who, count.min(HEARD_MAX), now);
    }

    /// Takes a part for an address, if it has not too many. One that is not counted by its address needs none.
    fn part(&self, who: Option<IpAddr>) -> Result<Option<AddressQueue<'_>>, ()> {
        let Some(who) = who else { return Ok(None) };
        let mut known = self.0.lock();
        let of_one = known.busy.entry(who).or_default();
        if *of_one >= OF_ONE_MAX {
            return Err(());
        }
        *of_one += 1;
        Ok(Some(AddressQueue { logins: self, who }))
    }
}

impl Drop for AddressQueue<'_> {
    fn drop(&mut self) {
        let mut known = self.logins.0.lock();
        if let Some(of_one) = known.busy.get_mut(&self.who) {
            *of_one -= 1;
            if *of_one == 0 {
                known.busy.remove(&self.who);
            }
        }
    }
}

/// A request with a password on its way.
struct Attempt<'a> {
    shared: &'a Arc<Shared>,
    limits: &'a LoginLimits,
    /// The address by which wrong passwords are counted. `None`: many people are behind it, and only the places count.
    who: Option<IpAddr>,
}

impl Attempt<'_> {
    fn may_try(&self) -> Result<(), Duration> {
        let now = self.shared.clock.now();
        let Some(who) = self.who else { return Ok(()) };
        let who = self.shared.rates.tags().of_passwords(who);
        self.shared.logins.0.lock().attempts.may_try(who, self.limits.attempts, now)
    }

    fn was_wrong(&self) {
        count(self.shared, self.who);
    }
}

fn count(shared: &Shared, who: Option<IpAddr>) {
    if let Some(who) = who {
        shared.logins.was_wrong(shared.rates.tags().of_passwords(who), shared.rates.together(), shared.clock.now());
    }
}

impl Pipeline {
    /// Passes a request on that may carry a password, as [`pass`](Self::pass) does, within the limits for passwords.
    pub(crate) async fn pass_or_guess(self: &Rc<Self>, question: Rc<Question>, body: origins::Body, rule: PassRule) -> Answer {
        let site = Rc::clone(&question.site);
        let login = site.policy.login(&question.method, question.uri.path(), &question.headers);
        match login.zip(site.logins.as_ref()) {
            None => self.pass(question, body, rule).await,
            Some((login, limits)) => Box::pin(self.try_password(Rc::unwrap_or_clone(question), login, limits, body, rule)).await,
        }
    }

    async fn try_password(
        self: &Rc<Self>,
        mut question: Question,
        login: &Login,
        limits: &LoginLimits,
        body: origins::Body,
        rule: PassRule,
    ) -> Answer {
        let shared = &self.shared;
        let (site, address) = (Rc::clone(&question.site), question.client.address);
        let credentials = match login.password {
            PasswordIn::Authorization => question.headers.get(header::AUTHORIZATION).map(|value| shared.secret.hash_one((site.id, value))),
            PasswordIn::Form | PasswordIn::Content | PasswordIn::Rpc(_) => None,
        };
        // Whoever is here already is not a stranger, and behind a proxy that nobody named all have one address.
        let who = group(address).filter(|who| !who.is_loopback());
        let attempt = Attempt { shared, limits, who };
        let is_enveloped = login.is_enveloped(question.uri.query());
        if is_enveloped || matches!(login.wrong, policy::WrongIf::Fault(_)) {
            // The content is read in passing.
            question.headers.remove(header::ACCEPT_ENCODING);
        }
        let refused = |refusal, wait| self.refuse_password(&question, refusal, wait);
        if let Some(credentials) = credentials.filter(|credentials| shared.logins.0.lock().is_right(*credentials)) {
            let mut answer = self.pass(Rc::new(question), body, rule).await;
            let (response, _) = &mut *answer;
            match login.tried(response.status().as_u16(), response.headers(), is_enveloped) {
                PasswordVerdict::Right => {}
                PasswordVerdict::Wrong => {
                    attempt.was_wrong();
                    shared.logins.0.lock().set_right(credentials, false);
                }
                in_content => look_into(response, in_content, shared, who),
            }
            return answer;
        }
        if let Err(wait) = attempt.may_try() {
            return refused(LoginRefusal::Address, wait);
        }
        let (at_hand, rest) = match read_ahead(body).await {
            Ok(read) => read,
            Err(error) => return self.failed_password(&question, &error),
        };
        if rest.is_some() && login.password == PasswordIn::Form {
            return self.failed_password(&question, &OriginError::new(Fault::RequestTooLarge, "a form with a password that is too large"));
        }
        let Ok(_part) = shared.logins.part(who) else { return refused(LoginRefusal::Busy, RETRY_BUSY) };
        let has_none = rest.is_none() && login.has_no_password(&at_hand);
        let places = Arc::clone(if has_none { &limits.without_password } else { &limits.places });
        let slot = Arc::new(Mutex::new(None));
        let body = match rest {
            None => match places.acquire(who).await {
                Ok(place) => {
                    *slot.lock() = Some(place);
                    origins::Body::from(at_hand)
                }
                Err(NoPlace) => return refused(LoginRefusal::Busy, RETRY_BUSY),
            },
            Some(rest) => origins::Body::stream(TakingPlace::new(at_hand, rest, places, who, Arc::clone(&slot))),
        };
        // Meanwhile others may have been wrong at the same address.
        if let Err(wait) = attempt.may_try() {
            return refused(LoginRefusal::Address, wait);
        }
        let mut answer = self.pass(Rc::new(question), body, rule).await;
        let (response, _) = &mut *answer;
        // The place is for the work. A client that reads slowly has none.
        drop(slot.lock().take());
        match login.tried(response.status().as_u16(), response.headers(), is_enveloped) {
            PasswordVerdict::Wrong => attempt.was_wrong(),
            PasswordVerdict::Right => {
                if let Some(credentials) = credentials.filter(|_| response.status().is_success()) {
                    shared.logins.0.lock().set_right(credentials, true);
                }
            }
            in_content => look_into(response, in_content, shared, who),
        }
        answer
    }

    fn refuse_password(&self, question: &Question, refusal: LoginRefusal, wait: Duration) -> Answer {
        let (site, client) = (&question.site, question.client.address);
        self.counters.login_refused(site.id, refusal);
        let reason = match refusal {
            LoginRefusal::Address => ErrorReason::TooManyLogins,
            LoginRefusal::Busy => ErrorReason::TooManyLoginsAtOnce,
        };
        let of = match refusal {
            LoginRefusal::Address => group(client),
            LoginRefusal::Busy => None,
        };
        if self.shared.logins.0.lock().is_news((site.id, of), self.shared.clock.now()) {
            match (refusal, client) {
                (LoginRefusal::Address, Some(client)) => {
                    tracing::warn!(site = %site.name, %client, target = &*question.path_to_log(), "too many wrong passwords came from this address: it has to wait");
                }
                _ => {
                    tracing::warn!(site = %site.name, target = &*question.path_to_log(), "too many people, or machines, sign in at once: some have to try again")
                }
            }
        }
        let mut response = failure::page(StatusCode::TOO_MANY_REQUESTS, reason);
        let fields = response.headers_mut();
        let seconds = u64::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u64::MAX).max(1);
        fields.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        site.fields.apply(StatusCode::TOO_MANY_REQUESTS, fields, question.client.scheme);
        answer::without_cache(response, OwnAnswer::Error(reason), Some(site.id))
    }

    fn failed_password(&self, question: &Question, error: &OriginError) -> Answer {
        let failure = crate::Failure::from(error);
        answer::without_cache(failure.page(), OwnAnswer::Error(failure.reason()), Some(question.site.id))
    }
}

/// Has the content of a response say whether a password was right.
fn look_into(response: &mut Response<Body>, in_content: PasswordVerdict, shared: &Arc<Shared>, who: Option<IpAddr>) {
    let body = std::mem::replace(response.body_mut(), Body::empty());
    *response.body_mut() = InContent::look_for(in_content, body, shared, who);
}

/// Reads content up to the size of a form. What comes after that is returned as it is.
async fn read_ahead(mut body: origins::Body) -> Result<(Bytes, Option<origins::Body>), OriginError> {
    match body {
        origins::Body::Empty => return Ok((Bytes::new(), None)),
        origins::Body::Full(bytes) => return Ok((bytes, None)),
        origins::Body::File(_) | origins::Body::Stream(_) => {}
    }
    let mut read = BytesMut::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        if let Ok(data) = frame?.into_data() {
            read.extend_from_slice(&data);
            if read.len() > FORM_BYTES_MAX {
                return Ok((read.freeze(), Some(body)));
            }
        }
    }
    Ok((read.freeze(), None))
}

/// The wait for a place.
type PlaceWait = Pin<Box<dyn Future<Output = Result<LoginPermit, NoPlace>> + Send>>;

/// Content that takes a place when it has arrived, and ends only then: no origin begins before it has all of it.
struct TakingPlace {
    rest: origins::Body,
    places: Arc<Places>,
    who: Option<IpAddr>,
    slot: Arc<Mutex<Option<LoginPermit>>>,
    waiting: Option<PlaceWait>,
    /// The last piece, which is held back.
    last: Option<Frame<Bytes>>,
    is_over: bool,
}

impl TakingPlace {
    fn new(first: Bytes, rest: origins::Body, places: Arc<Places>, who: Option<IpAddr>, slot: Arc<Mutex<Option<LoginPermit>>>) -> Self {
        Self { rest, places, who, slot, waiting: None, last: Some(Frame::data(first)), is_over: false }
    }
}

impl HttpBody for TakingPlace {
    type Data = Bytes;
    type Error = OriginError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, OriginError>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        if self.waiting.is_none() {
            // One piece is held back: whoever knows the length may take the last one for the end.
            match ready!(Pin::new(&mut self.rest).poll_frame(cx)) {
                Some(Ok(frame)) => return Poll::Ready(self.last.replace(frame).map(Ok)),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => {
                    let places = Arc::clone(&self.places);
                    let who = self.who;
                    self.waiting = Some(Box::pin(places.acquire(who)));
                }
            }
        }
        if let Some(waiting) = &mut self.waiting {
            match ready!(waiting.as_mut().poll(cx)) {
                Ok(place) => *self.slot.lock() = Some(place),
                Err(NoPlace) => {
                    let error = OriginError::new(Fault::Overloaded, "waited for one of the places for requests with passwords");
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
        self.is_over = true;
        Poll::Ready(self.last.take().map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.is_over
    }

    fn size_hint(&self) -> SizeHint {
        let held = self.last.as_ref().and_then(Frame::data_ref).map_or(0, Bytes::len) as u64;
        let rest = self.rest.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + held);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + held);
        }
        hint
    }
}

/// An answer on its way in whose content wrong passwords are counted: the XML-RPC faults of one code, or a status.
struct InContent {
    body: origins::Body,
    text: String,
    /// The amount of the text that was seen last. White space does not count.
    seen: usize,
    left: u32,
    shared: Arc<Shared>,
    who: Option<IpAddr>,
}

impl InContent {
    /// Counts in `body` what the head of the answer has left to it.
    fn look_for(tried: PasswordVerdict, body: Body, shared: &Arc<Shared>, who: Option<IpAddr>) -> Body {
        let (text, left) = match tried {
            PasswordVerdict::InContent(code) => (format!("faultCode</name><value><int>{code}</int>"), FAULTS_MAX),
            // The error inside repeats its status. In a text, quotes are escaped.
            PasswordVerdict::InEnvelope(status) => (format!("\"status\":{status}"), 1),
            PasswordVerdict::Right | PasswordVerdict::Wrong => return body,
        };
        match body {
            Body::Origin(body) => Body::Origin(origins::Body::stream(Self { body, text, seen: 0, left, shared: Arc::clone(shared), who })),
            other => other,
        }
    }

    fn look(&mut self, data: &[u8]) {
        for &byte in data.iter().filter(|byte| !byte.is_ascii_whitespace()) {
            // No part of the text repeats its beginning but a quote behind which JSON has no letter, so that a mismatch begins anew.
            let text = self.text.as_bytes();
            self.seen = if byte == text[self.seen] { self.seen + 1 } else { usize::from(byte == text[0]) };
            if self.seen == text.len() {
                self.seen = 0;
                if self.left > 0 {
                    self.left -= 1;
                    count(&self.shared, self.who);
                }
            }
        }
    }
}

impl HttpBody for InContent {
    type Data = Bytes;
    type Error = OriginError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, OriginError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            let this = &mut *self;
            this.look(data);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    #[test]
    fn an_address_is_reported_once_a_minute() {
        let (mut known, who) = (LoginTables::default(), "192.0.2.1".parse().ok());
        assert!(known.is_news((0, who), at(1_000)));
        assert!(!known.is_news((0, who), at(1_059)));
        assert!(known.is_news((1, who), at(1_059)) && known.is_news((0, None), at(1_059)));
        assert!(known.is_news((0, who), at(1_060)));
        for number in 0..10_000 {
            known.is_news((0, Some(IpAddr::from(std::net::Ipv4Addr::from_bits(number)))), at(2_000));
        }
        assert!(known.told.len() <= TOLD_MAX);
    }

    /// Machines that tell each other have one budget. One that hears nothing of the others has a third of it, of three.
    #[test]
    fn the_wrong_passwords_of_several_machines_are_one_budget() {
        let machine = || Shared::new(store::StoreOptions::with_memory(1 << 20), crate::Clock::Simulated(Arc::default()));
        let machines = [machine(), machine(), machine()];
        let who: IpAddr = "192.0.2.1".parse().expect("an address");
        for shared in &machines {
            shared.rates.join([7; 16]);
        }
        let exchange = || {
            let told: Vec<_> = machines.iter().map(|shared| shared.tell_others(100)).collect();
            for (own, shared) in machines.iter().enumerate() {
                let others: Vec<_> = told.iter().enumerate().filter(|(of, _)| *of != own).map(|(_, told)| told.clone()).collect();
                shared.hear_others(&others, 3);
            }
        };
        let may_try = |shared: &Shared| {
            let tag = shared.rates.tags().of_passwords(who);
            shared.logins.0.lock().attempts.may_try(tag, 10, shared.clock.now()).is_ok()
        };
        exchange();
        for of in [0, 1, 2, 0, 1, 2, 0, 1, 2] {
            assert!(may_try(&machines[of]));
            count(&machines[of], Some(who));
        }
        exchange();
        assert!(machines.iter().all(may_try), "nine of ten");
        count(&machines[2], Some(who));
        exchange();
        assert!(!machines.iter().any(may_try), "ten of ten");
        assert!(machines[0].tell_others(100).wrong.is_empty(), "each is told once");

        let apart = machine();
        apart.stand_apart(3);
        let tried = (0..10)
            .filter(|_| {
                may_try(&apart) && {
                    count(&apart, Some(who));
                    true
                }
            })
            .count();
        // A third of ten, rounded up.
        assert_eq!(tried, 4);
        // What was wrong meanwhile was within its part: nobody else is charged for it.
        assert_eq!(apart.tell_others(100), crate::RateReport::default());
        apart.hear_others(&[], 3);
        assert_eq!(apart.tell_others(100), crate::RateReport::default());
    }

    #[test]
    fn credentials_are_right_until_they_are_refused_or_many_others_were() {
        let mut known = LoginTables::default();
        known.set_right(1, true);
        known.set_right(2, true);
        known.set_right(2, false);
        assert!(known.is_right(1) && !known.is_right(2));
        (10..10 + KNOWN_MAX as u64).for_each(|credentials| known.set_right(credentials, true));
        assert!(!known.is_right(1) && known.is_right(10));
        assert_eq!(known.right.len(), KNOWN_MAX);
    }

    /// However an answer is cut into pieces, and however it is indented, a fault is one.
    #[test]
    fn faults_are_counted_across_pieces() {
        let fault = "<member>\n <name>faultCode</name>\r\n\t<value><int>403</int></value></member>";
        let shared = Arc::new(Shared::new(store::StoreOptions::with_memory(1 << 20), crate::Clock::system()));
        let left = |text: &str, piece: usize| {
            let text = text.to_owned();
            let wanted = "faultCode</name><value><int>403</int>".to_owned();
            let body = origins::Body::Empty;
            let mut faults = InContent { body, text: wanted, seen: 0, left: FAULTS_MAX, shared: Arc::clone(&shared), who: None };
            text.as_bytes().chunks(piece).for_each(|piece| faults.look(piece));
            FAULTS_MAX - faults.left
        };
        for piece in [1, 2, 3, 7, 1000] {
            assert_eq!(left(&fault.repeat(3), piece), 3, "{piece}");
            assert_eq!(left(&fault.repeat(300), piece), FAULTS_MAX);
            assert_eq!(left("faultCode</name><value><int>405</int>", piece), 0);
            assert_eq!(left(&format!("faultCode{fault}"), piece), 1);
            // In a text, the signs are escaped.
            assert_eq!(left("faultCode&lt;/name&gt;&lt;value&gt;&lt;int&gt;403", piece), 0);
        }
    }
}
