//! Why a request would be answered as it would: the same judgement, lookup and decision as [`Pipeline::respond`], with nothing done.
//!
//! Nothing is fetched, and what is looked at is not kept any longer for it. Values of cookies and credentials never appear here.

use std::{rc::Rc, time::Duration};

use admin_api::explanation::{
    ExplainedVerdict, Explanation, Flight, FreshnessSource, Key, NotKept, Now, Purge, PurgeHardness, PurgeTargetKind, PurgedHow, Rule,
    SiteRules, Variant,
};
use http::{Method, Request, Response, header};
use policy::{PassRule, Steps, known_cookie};
use semantics::{
    Scheme, Timestamp,
    cache_status::{CacheStatus, Outcome},
    coding::Coding,
    freshness::LifetimeSource,
    target::canonical_authority,
    vary::Vary,
};
use store::{Hardness, Purged, PurgedBy};

use crate::{
    Body, Client, Pipeline, Site, Stored,
    admission::{Admission, FirstStep, IncomingRequest, admit},
    answer::Ending,
    collapse::flight_of,
    deliver,
    failure::ONLY_IF_CACHED,
    find::{found_in, is_for},
    identity::Identity,
    judge::{Judgement, judge},
    keep::NotStored,
    learnt::{
        early_hints,
        not_kept::{Cause, Reason},
        trouble::Trouble,
    },
    next::{Next, next},
    pass::passed_because,
    proof,
    question::{self, Question},
    record::Form,
    stale::{may_stand_in, stale_if_error},
};

/// Says whether a stored response would answer, and the rule against it if it fits otherwise.
struct Choice {
    selected: bool,
    refused: Option<String>,
}

/// A request that is being explained, and what was found out about it so far.
struct ExplanationDraft {
    method: String,
    url: String,
    steps: Steps,
    now: Timestamp,
}

impl ExplanationDraft {
    /// Ends the explanation of a request, without what only a lookup finds. Without a site, the server answers for every host.
    fn end(self, site: Option<&Site>, verdict: ExplainedVerdict, now: Now) -> Explanation {
        let rules_of = |site: &Site| SiteRules {
            name: site.name.clone(),
            kind: site.policy.settings().kind.name().to_owned(),
            // The pipeline does not know; `seawall` fills it in.
            kind_known: None,
            hosts: site.hosts.clone(),
            route: site.route.as_ref().map(|route| route.path.clone()),
        };
        let every_site =
            || SiteRules { name: "every site".to_owned(), kind: "any".to_owned(), kind_known: None, hosts: Vec::new(), route: None };
        Explanation {
            method: self.method,
            url: self.url,
            site: site.map_or_else(every_site, rules_of),
            rules: rules(self.steps),
            verdict,
            key: None,
            lookup: Vec::new(),
            stored: Vec::new(),
            stored_under_other_scheme: false,
            uncacheable_seconds: None,
            not_kept: None,
            flight: None,
            origin_down_seconds: site.and_then(|site| left(site.origin_state.until(), self.now)),
            now,
        }
    }
}

impl Pipeline {
    /// Explains what would become of `request`, sent by somebody who asks over `scheme`. `None`: no site has its host.
    pub fn explain(&self, scheme: Scheme, request: Request<()>) -> Option<Explanation> {
        let config = Rc::clone(&self.config.borrow());
        let now = self.shared.clock.now();
        let client = Client { peer: None, trusted: false, address: None, scheme, said_http: false };
        let (mut parts, ()) = request.into_parts();
        let authority = question::settle_host(scheme, &mut parts.headers);
        let identity = Identity::of_our_own(&self.shared);
        let mut incoming = Box::new(IncomingRequest { client, identity, authority, parts, interim: None });
        let host = incoming.authority().to_owned();
        let url = format!("{}://{host}{}", scheme.as_str(), incoming.parts.uri);
        let mut draft = ExplanationDraft { method: incoming.parts.method.to_string(), url, steps: Steps::default(), now };
        let admission = admit(&self.shared, &config.router, &incoming, &mut draft.steps);
        let (site, lock) = match admission {
            Admission::Admitted { site, lock } => (site, lock),
            Admission::NoSite => return None,
            Admission::Answered { step, response, .. } => {
                let site = config.router.site(config.router.moved_to(&host).unwrap_or(&host));
                let verdict = if response.status().is_redirection() { ExplainedVerdict::Redirect } else { ExplainedVerdict::Answered };
                return Some(draft.end(site.map(|site| &**site), verdict, answered_by(step, &response)));
            }
        };
        if let Some(lock) = lock {
            lock.presume_right(&mut incoming.parts.headers);
        }
        match judge(&self.shared, &config.trusted_proxies, &site, incoming, || now, &mut draft.steps) {
            Judgement::Purge { site, .. } => Some(draft.end(Some(&site), ExplainedVerdict::Purge, purging())),
            Judgement::Webhook { site, .. } => Some(draft.end(Some(&site), ExplainedVerdict::Webhook, webhook())),
            Judgement::Malformed(site) => Some(draft.end(Some(&site), ExplainedVerdict::Malformed, malformed())),
            Judgement::Pass(question, rule) => Some(draft.end(Some(&question.site), ExplainedVerdict::Pass, passed(rule))),
            Judgement::Lookup(question) => Some(self.explain_lookup(&question, draft)),
        }
    }

    /// Ends the explanation of a request for which the cache is asked.
    fn explain_lookup(&self, question: &Rc<Question>, draft: ExplanationDraft) -> Explanation {
        let (store, now) = (&self.shared.store, draft.now);
        let key = policy::Key::read(&question.key);
        let resource = store.peek(question.hash, &question.key);
        let mut steps = Steps::default();
        let found = found_in(&self.shared, resource.as_deref(), question, now, &mut steps);
        let next = next(&self.shared, question, found, now);
        let flight_key = flight_of(store, question);
        let flight = store.flight(store.hash(&flight_key), &flight_key, question.url(), self.shared.fence.moment(now));
        let flight = flight.map(|flight| Flight { followers: flight.followers, arriving: flight.arriving });
        let variants = resource.as_deref().map_or(&[][..], |resource| resource.variants());
        let fits = variants.iter().position(|stored| is_for(&self.shared, question, &stored.record));
        let refusal = steps.0.iter().rev().find(|step| step.decided).map(|step| step.rule.to_owned());
        let choice = |at: usize| match fits {
            Some(fitting) if fitting == at => Choice { selected: refusal.is_none(), refused: refusal.clone() },
            Some(_) | None => Choice { selected: false, refused: None },
        };
        let stored = variants.iter().enumerate();
        let tiers = store.tiers(question.hash, &question.key);
        let names = |held: bool, name: &str| held.then(|| name.to_owned());
        let in_tiers: Vec<_> = names(true, "memory").into_iter().chain(names(tiers.disk, "disk")).collect();
        let mut outlook = self.outlook(question, &next, flight.as_ref(), now);
        if resource.is_none() && tiers.disk_bytes > 0 {
            outlook.words.insert(0, "The disk has something under this key: that is read first, and may answer instead.".to_owned());
        }
        let ended = draft.end(Some(&question.site), ExplainedVerdict::Lookup, outlook);
        Explanation {
            url: key.as_ref().map_or(ended.url, policy::Key::url),
            lookup: rules(steps),
            stored: stored.map(|(at, stored)| self.variant(question, stored, choice(at), in_tiers.clone(), now)).collect(),
            stored_under_other_scheme: resource.is_none() && self.is_stored_under_other_scheme(question),
            uncacheable_seconds: store.uncacheable_until(question.hash).and_then(|until| left(Timestamp::from_millis(until), now)),
            not_kept: self.shared.not_kept.get(question.hash).map(|Reason { cause, status, at }| NotKept {
                reason: cause.name().to_owned(),
                words: cause.words().map(str::to_owned),
                cookie: cause.cookie().map(|cookie| cookie.to_string()),
                cookie_of: cause.cookie().and_then(|cookie| Some(known_cookie(&cookie.to_string())?.whose.to_owned())),
                status,
                seconds_ago: now.since(at).as_secs(),
                difference: if cause == Cause::NotStored(NotStored::Differs) {
                    self.shared.proofs.difference(question.hash).map(|it| it.to_string())
                } else {
                    None
                },
            }),
            flight,
            key: key.map(|key| Key {
                scheme: key.scheme.as_str().to_owned(),
                accept: key.class.name().to_owned(),
                host: key.host.to_owned(),
                target: key.target.to_owned(),
            }),
            ..ended
        }
    }

    /// Returns whether the page is stored under the other scheme. A proxy in front that ends TLS and is not trusted makes everything `http`.
    fn is_stored_under_other_scheme(&self, question: &Question) -> bool {
        if question.member.is_some() {
            return false;
        }
        let scheme = match question.client.scheme {
            Scheme::Http => Scheme::Https,
            Scheme::Https => Scheme::Http,
        };
        let (path, query) = question.target.split_once('?').map_or((question.target.as_str(), None), |(path, query)| (path, Some(query)));
        let fields = question.fields();
        let authority = &canonical_authority(scheme, &question.authority);
        let head = semantics::RequestHead { method: &Method::GET, scheme, authority, path, query, fields: &fields };
        let mut key = Vec::new();
        question.site.policy.verdict(question.site.id, &head, &mut key);
        self.shared.store.peek(self.shared.store.hash(&key), &key).is_some()
    }

    fn variant(
        &self,
        question: &Question,
        stored: &Stored,
        Choice { selected, refused }: Choice,
        tiers: Vec<String>,
        now: Timestamp,
    ) -> Variant {
        let record = &stored.record;
        let freshness = &record.freshness;
        let headers = record.headers();
        let text = |name| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let may_be_stale = freshness.stale_allowed && !freshness.validate_always;
        let on_error = if may_be_stale { freshness.stale_if_error.unwrap_or_else(|| stale_if_error(question)) } else { Duration::ZERO };
        let purges = self.shared.store.purged_by(stored).into_iter();
        Variant {
            selected,
            refused,
            status: record.status.as_u16(),
            vary: nominated(&record.vary),
            age_seconds: freshness.age(now).as_secs(),
            lifetime_seconds: freshness.lifetime.as_secs(),
            fresh: freshness.is_fresh(now),
            fresh_seconds: freshness.seconds_left(now),
            freshness_source: match freshness.source {
                LifetimeSource::Explicit => FreshnessSource::Explicit,
                LifetimeSource::Heuristic => FreshnessSource::Heuristic,
                LifetimeSource::Hold => FreshnessSource::Hold,
                LifetimeSource::None => FreshnessSource::None,
            },
            validate_always: freshness.validate_always,
            stale_while_revalidate_seconds: if freshness.stale_allowed { freshness.stale_while_revalidate.as_secs() } else { 0 },
            stale_if_error_seconds: on_error.as_secs(),
            purged: purged_how(self.shared.store.verdict(stored)),
            purges: purges.map(|(target, hardness)| Purge { target: target_kind(target), hardness: purge_hardness(hardness) }).collect(),
            tags: stored.scope().tags.iter().map(ToString::to_string).collect(),
            head_bytes: record.head().len() as u64,
            body_bytes: stored.body.len(),
            weight_bytes: stored.weight(),
            content_type: text(header::CONTENT_TYPE),
            content_coding: text(header::CONTENT_ENCODING),
            forms: record.codable.then(|| forms(stored)),
            etag: text(header::ETAG),
            for_cookies: record.for_cookies,
            for_authorization: record.for_authorization,
            tiers,
        }
    }

    /// Says in words what would be done next.
    fn outlook(&self, question: &Rc<Question>, next: &Next, flight: Option<&Flight>, now: Timestamp) -> Now {
        match next {
            Next::Deliver(stored, Outcome::Updating) => {
                let refresh = match question.unshareable() {
                    _ if question.site.origin_state.is_down(now) => {
                        "It is not refreshed in the background yet: the origin is down.".to_owned()
                    }
                    None if flight.is_some() => "It is already being refreshed in the background.".to_owned(),
                    None => "It is refreshed in the background.".to_owned(),
                    Some(why) => format!("This request does not refresh it in the background: {why}."),
                };
                let words = vec!["It is answered from the store, although stale.".to_owned(), refresh];
                now_in_words(delivered(Outcome::Updating, stored, now), words)
            }
            Next::Deliver(stored, outcome) => {
                let word = match outcome {
                    Outcome::Stale { .. } if question.site.origin_state.at(now) != Trouble::None => {
                        "It is answered from the store, although stale: the origin is down.".to_owned()
                    }
                    Outcome::Stale { .. } => "It is answered from the store, although stale: its last refresh failed.".to_owned(),
                    _ => "It is answered from the store.".to_owned(),
                };
                now_in_words(delivered(*outcome, stored, now), vec![word])
            }
            Next::OnlyIfCached => {
                let status = CacheStatus {
                    detail: Some(ONLY_IF_CACHED),
                    ..CacheStatus::new(Outcome::Forwarded(semantics::cache_status::Forwarded::Miss))
                };
                now_in_words(
                    status,
                    vec![
                        "It is answered with 504: the request accepts only a stored response, and there is none that it may have."
                            .to_owned(),
                    ],
                )
            }
            Next::Ask { candidate, forwarded, together, .. } => {
                let mut words = vec![match candidate {
                    Some(_) => "The origin is asked whether the stored response is still valid.".to_owned(),
                    None => "The origin is asked for it.".to_owned(),
                }];
                words.push(match together {
                    Some(_) => match flight {
                        Some(flight) => {
                            format!("A fetch of it is already under way; this request joins the {} that share it.", flight.followers)
                        }
                        None => "Other requests for the same page share the response if they come before it is complete.".to_owned(),
                    },
                    None => match if candidate.is_some() { Rc::clone(question) } else { question.to_fetch() }.unshareable() {
                        Some(why) if question.carries.cookie => {
                            format!(
                                "For this request alone: {why}. What comes back is stored only if the origin itself gives it a lifetime."
                            )
                        }
                        Some(why) => format!("For this request alone: {why}."),
                        None => "For this request alone: the last answer could not be shared.".to_owned(),
                    },
                });
                if together.is_some() && proof::is_wanted(question) && !self.shared.proofs.is_proven(question.hash) {
                    let proof =
                        "If it is a page, it is fetched a second time before it is stored, to see that another visitor is given the same.";
                    words.push(proof.to_owned());
                }
                let stands_in = candidate.as_deref().is_some_and(|stored| may_stand_in(&self.shared, question, stored, now));
                let is_down = question.site.origin_state.at(now) != Trouble::None;
                words.extend(
                    match (is_down, stands_in) {
                        (true, true) => {
                            Some("The origin could not be connected to a moment ago: if it still fails, the stored response is served.")
                        }
                        (true, false) => {
                            Some("The origin could not be connected to a moment ago: if it still fails, the client gets an error.")
                        }
                        (false, true) => Some("If the origin fails, the stored response is served."),
                        (false, false) => None,
                    }
                    .map(str::to_owned),
                );
                if let Some(link) = early_hints::hints_for(&self.shared, question) {
                    let links = String::from_utf8_lossy(link.as_bytes());
                    words.push(format!("A browser that opens the page over HTTP/2 or 3 is told meanwhile what it will need: {links}."));
                }
                now_in_words(Ending::of(Outcome::Forwarded(*forwarded)).status, words)
            }
        }
    }
}

fn forms(stored: &Stored) -> Vec<(String, u64)> {
    let forms = Coding::ALL.into_iter().filter_map(|coding| Form::of(stored, Some(coding)));
    forms.map(|form| (form.coding.token().to_owned(), form.length)).collect()
}

fn delivered(outcome: Outcome, stored: &Stored, now: Timestamp) -> CacheStatus<'static> {
    CacheStatus { ttl: deliver::ttl(&stored.record.freshness, outcome, now), ..CacheStatus::new(outcome) }
}

/// Puts in words what would be done now.
fn now_in_words(status: CacheStatus<'_>, words: Vec<String>) -> Now {
    let mut text = Vec::new();
    status.write(&mut text);
    Now { cache_status: String::from_utf8_lossy(&text).into_owned(), x_cache: status.x_cache().to_owned(), words }
}

fn malformed() -> Now {
    let words = vec!["It is answered with 400: its target cannot be understood.".to_owned()];
    Now { cache_status: String::new(), x_cache: String::new(), words }
}

/// Tells what the step that answers a request answers.
fn answered_by(step: FirstStep, response: &Response<Body>) -> Now {
    let by = match step {
        FirstStep::Challenge => "the proof for a certificate authority's challenge",
        FirstStep::Health => "the health check",
        FirstStep::Requests => "the limit for requests of one address",
        FirstStep::MaxForwards => "Seawall in place of the site: Max-Forwards lets the request go no farther",
        FirstStep::TwinHost => "the redirect of a host that only leads to another one",
        FirstStep::Schedule => "Seawall, which runs WordPress's schedule by itself",
        FirstStep::Https => "the https redirect",
        FirstStep::Password => "the password step",
    };
    let location = response.headers().get(header::LOCATION).map(|location| String::from_utf8_lossy(location.as_bytes()));
    let there = location.map(|location| format!(" to {location}")).unwrap_or_default();
    let words = vec![format!("It is answered by {by}: {}{there}.", response.status().as_u16())];
    Now { cache_status: String::new(), x_cache: String::new(), words }
}

fn purging() -> Now {
    let words = vec!["It is a purge request: answered here, and never forwarded.".to_owned()];
    Now { cache_status: String::new(), x_cache: String::new(), words }
}

fn webhook() -> Now {
    let words = vec!["It is a webhook of the site's origin: answered here, and never forwarded.".to_owned()];
    Now { cache_status: String::new(), x_cache: String::new(), words }
}

fn passed(rule: PassRule) -> Now {
    let ending = Ending::of(Outcome::Forwarded(passed_because(rule))).because(rule.name());
    let mut words = vec!["It goes to the origin as it came, and nothing is stored.".to_owned()];
    if let Some(cookie) = rule.cookie().map(|cookie| cookie.to_string()) {
        let whose = known_cookie(&cookie).map(|known| format!(" ({})", known.whose)).unwrap_or_default();
        words.push(format!("The cookie is {cookie}{whose}."));
    }
    now_in_words(ending.status, words)
}

fn rules(steps: Steps) -> Vec<Rule> {
    steps.0.into_iter().map(|policy::TracedRule { rule, decided, detail }| Rule { rule: rule.to_owned(), decided, detail }).collect()
}

/// Seconds left, rounded up: what is not over yet has at least one.
fn left(until: Timestamp, now: Timestamp) -> Option<u64> {
    (until > now).then(|| (until.as_millis() - now.as_millis()).div_ceil(1000))
}

const fn purged_how(purged: Purged) -> PurgedHow {
    match purged {
        Purged::No => PurgedHow::No,
        Purged::Doubted => PurgedHow::InDoubt,
        Purged::Soft => PurgedHow::Soft,
        Purged::Hard => PurgedHow::Hard,
    }
}

const fn purge_hardness(hardness: Hardness) -> PurgeHardness {
    match hardness {
        Hardness::Soft => PurgeHardness::Soft,
        Hardness::Hard => PurgeHardness::Hard,
    }
}

/// Returns the admin API's word for the target of a purge.
const fn target_kind(target: PurgedBy) -> PurgeTargetKind {
    match target {
        PurgedBy::All => PurgeTargetKind::All,
        PurgedBy::Site => PurgeTargetKind::Site,
        PurgedBy::Invalidation => PurgeTargetKind::Invalidation,
        PurgedBy::Url => PurgeTargetKind::Url,
        PurgedBy::Tag => PurgeTargetKind::Tag,
        PurgedBy::Prefix => PurgeTargetKind::Prefix,
    }
}

/// Returns the fields that a request must agree with, without anybody's secrets.
fn nominated(vary: &Vary) -> Vec<(String, Option<String>)> {
    match vary {
        Vary::Star => vec![("*".to_owned(), None)],
        Vary::Nominated(fields) => {
            let shown = |name: &header::HeaderName, value: &Vec<u8>| {
                let secret = [header::COOKIE, header::AUTHORIZATION].contains(name);
                if secret { "(not shown)".to_owned() } else { String::from_utf8_lossy(value).into_owned() }
            };
            fields.iter().map(|(name, value)| (name.to_string(), value.as_ref().map(|value| shown(name, value)))).collect()
        }
    }
}
