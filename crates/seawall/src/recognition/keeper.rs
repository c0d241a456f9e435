//! Recognition that goes on: servers are asked again, and those that were recognised are watched, as long as Seawall runs.
//!
//! One thread does it, far from any request. What it finds is taken over as a reload is, by whoever started it. It decides by Seawall's own
//! clock when something is due, and looks at that clock every [`TICK`].

use std::{collections::BTreeMap, io, sync::Arc, thread, time::Duration};

use futures_util::future::join_all;
use parking_lot::Mutex;
use policy::purge::{Maker, Order, What};
use semantics::Timestamp;
use tokio::{
    runtime::{Builder, LocalOptions},
    sync::oneshot,
};

use super::{
    Finding, Findings, Question,
    ask::{self, Inquiry, Server, askings},
    leads_past, name_of,
    product::to_have_address,
    schedule::Schedules,
    sends_to_https,
    sitemap::{self, ListingDigest},
};
use crate::{
    config::settings::{Kind, Settings, Site},
    plan::{Plan, SitePlan},
    server::State,
};

/// The interval at which the clock is looked at.
const TICK: Duration = Duration::from_millis(250);

/// The time after an answer until a server is asked again, as it may have been upgraded.
const ASK_AGAIN: Duration = Duration::from_mins(5);

/// The time after an answer until software is asked again whose address leads its readers past Seawall, or away from it: somebody may be about to
/// change that. The longer it stays so, the longer is the time: this part of it, up to [`ASK_AGAIN`].
const ASTRAY_AGAIN: Duration = Duration::from_secs(5);
const ASTRAY_PART: u32 = 10;

/// The time after an answer until software in a folder is asked again, as it may have been set up meanwhile.
const FOLDER_AGAIN: Duration = Duration::from_secs(30);

/// The time for which a server that does not answer is left alone at first, and at most.
const RETRY: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(10);

/// The number of times, and the shortest time, that a server that was a Ghost has to answer otherwise until that is believed.
const OTHERWISE_TIMES: u32 = 3;
const OTHERWISE_FOR: Duration = Duration::from_mins(1);

/// The number of times that a server has to be asked in vain, one time after the other, until it counts as away. Once may be a busy moment.
const IN_VAIN: u32 = 2;

/// The interval at which a Ghost's sitemap is looked at. With [`GRACE`] it is less than a minute until what was published past Seawall is
/// live.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(50);

/// The time that a changed sitemap waits for the signal that belongs to it: Ghost writes the one before it sends the other.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// The time for which a Ghost that was away is left alone: while it starts, its sitemap is not whole.
const BACK: Duration = Duration::from_secs(15);

/// Holds what operators are told of a site's Ghost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PublishedPastSeawall {
    /// The number of times that something was published past Seawall.
    pub(crate) past: u64,
    /// The time at which that was noticed last.
    pub(crate) past_at: Option<Timestamp>,
}

/// The notes for operators on every site's Ghost, by the name of the site.
pub(crate) type Notes = Mutex<BTreeMap<String, PublishedPastSeawall>>;

/// The findings, shared with whoever makes settings of it.
pub(crate) type SharedFindings = Arc<Mutex<Findings>>;

/// The thread that asks and watches. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Keeper {
    _stop: oneshot::Sender<()>,
}

impl Keeper {
    /// Starts it. It calls `changed` when something else is known than before.
    ///
    /// # Errors
    /// When there is no thread for it.
    pub(crate) fn start(state: Arc<State>, known: SharedFindings, changed: impl Fn() + Send + 'static) -> io::Result<Self> {
        let (stop, stopped) = oneshot::channel::<()>();
        let work = move || match Builder::new_current_thread().enable_all().build_local(LocalOptions::default()) {
            Ok(runtime) => runtime.block_on(keep(state, known, changed, stopped)),
            Err(error) => tracing::error!("servers are not asked again what they are: {error}"),
        };
        thread::Builder::new().name("recognition".to_owned()).spawn(work)?;
        Ok(Self { _stop: stop })
    }
}

async fn keep(state: Arc<State>, known: SharedFindings, changed: impl Fn(), mut stopped: oneshot::Receiver<()>) {
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut schedules = Schedules::new(Arc::clone(&state), SharedFindings::clone(&known));
    let mut keeping = Keeping { state, known, askings: None, asked: BTreeMap::new(), watches: BTreeMap::new() };
    // A server that makes one wait holds up no schedule of another.
    let run_schedules = async {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            if schedules.turn().await {
                changed();
            }
        }
    };
    let ask_and_watch = async {
        loop {
            tick.tick().await;
            if keeping.turn().await {
                changed();
            }
        }
    };
    tokio::select! {
        _ = &mut stopped => {}
        () = run_schedules => {}
        () = ask_and_watch => {}
    }
}

struct Keeping {
    state: Arc<State>,
    known: SharedFindings,
    /// The questions of a plan. Making them reads certificates.
    askings: Option<(Arc<Plan>, Vec<Inquiry>)>,
    asked: BTreeMap<Question, InquiryState>,
    /// The watches by the names of their sites.
    watches: BTreeMap<String, Watch>,
}

/// Says when a server is asked next, and how it has answered so far.
#[derive(Debug)]
struct InquiryState {
    due: Timestamp,
    /// The time at which it was asked last.
    asked_at: Timestamp,
    /// The time since which its address has led readers astray.
    astray_since: Option<Timestamp>,
    retry: Duration,
    /// Whether it could be connected to when Seawall last looked.
    was_up: bool,
    /// The number of times that nobody listened there any more, as of then.
    falls: u64,
    /// The number of times that it was asked in vain since it answered last.
    in_vain: u32,
    /// Whether it was away, and has not been seen as a Ghost since.
    was_away: bool,
    /// The number of times that it has answered otherwise than a Ghost since it was one, and since when.
    otherwise: Option<(u32, Timestamp)>,
    /// The text that was told of it, so that it is told once.
    told: Option<String>,
}

impl Keeping {
    /// Does what is due. Returns whether something else is known than before.
    async fn turn(&mut self) -> bool {
        let plan = self.state.plan.load_full();
        let is_new = self.ask_again(&plan).await;
        self.look_again(&plan).await | is_new
    }

    async fn ask_again(&mut self, plan: &Arc<Plan>) -> bool {
        let now = self.state.shared.clock.now();
        let all = match self.askings.take() {
            Some((before, askings)) if Arc::ptr_eq(&before, plan) => askings,
            _ => askings(&plan.settings),
        };
        self.asked.retain(|question, _| all.iter().any(|asking| asking.question == *question));
        let mut due: Vec<Inquiry> = Vec::new();
        for asking in &all {
            let (is_up, falls) = contact(plan, &asking.question);
            let finding = self.known.lock().of(&asking.question);
            let leads_astray = self.leads_astray(plan, &asking.question);
            let asked = self.asked.entry(asking.question.clone()).or_insert_with(|| InquiryState::new(now, &finding));
            asked.look(now, is_up, falls);
            asked.look_astray(now, leads_astray);
            if asked.due <= now {
                due.push(asking.clone());
            }
        }
        self.askings = Some((Arc::clone(plan), all));
        let findings = join_all(due.iter().map(ask::ask)).await;
        let mut is_new = false;
        for (Inquiry { question, server, .. }, finding) in due.into_iter().zip(findings) {
            let Some(asked) = self.asked.get_mut(&question) else { continue };
            let before = self.known.lock().of(&question);
            asked.asked_at = now;
            let heard = asked.hear(now, &before, &finding);
            if server.is_folder() && finding.software().is_none() {
                asked.due = asked.due.min(now + FOLDER_AGAIN);
            }
            asked.tell(&question, &before, &finding, heard);
            if heard == AnswerMeaning::Back {
                self.is_back(plan, &question);
            } else if before.software().zip(finding.software()).is_some_and(|(before, now)| before != now) {
                self.is_another(plan, &question);
            }
            let mut known = self.known.lock();
            is_new |= if heard == AnswerMeaning::Settled { known.take_settled(question, finding) } else { known.take(question, finding) };
        }
        is_new
    }

    /// Returns whether software tells its readers an address that leads past Seawall, or to an https that is not here.
    fn leads_astray(&self, plan: &Plan, question: &Question) -> bool {
        let leads_astray =
            |site: &Site| leads_past(site, &self.state.listening).is_some() || sends_to_https(site, &plan.settings).is_some();
        sites_of(plan, question).any(|site| leads_astray(site.settings()))
    }

    /// Makes live what an upgrade or another address has changed. A redirect that is stored may lead to the address before.
    fn is_another(&self, plan: &Plan, question: &Question) {
        for site in sites_of(plan, question) {
            self.purge(site.name());
            tracing::info!(site = site.name(), "all pages are marked stale, and asked for again");
        }
    }

    /// Makes live what may have changed while software was away: it has a theme in files, and comes back as another version.
    fn is_back(&self, plan: &Plan, question: &Question) {
        for site in sites_of(plan, question) {
            self.purge(site.name());
            let name = name_of(site.settings().kind);
            tracing::info!(site = site.name(), "the {name} was away, and is back; all pages are marked stale, and asked for again");
        }
    }

    /// Looks at the sitemaps of the Ghosts for which it is time. Returns whether one of them is not as it was.
    async fn look_again(&mut self, plan: &Plan) -> bool {
        let now = self.state.shared.clock.now();
        let mut is_new = false;
        let mut known_names = Vec::new();
        for site in &plan.sites {
            let settings = site.settings();
            // One that is only remembered does not answer.
            let Finding::Recognised { software: ghost, remembered: false } = &settings.finding else { continue };
            let is_ghost = settings.kind == Kind::Ghost && ghost.kind() == Kind::Ghost;
            let Some(question) = Question::of(settings).filter(|_| is_ghost) else { continue };
            known_names.push(site.name());
            let announced = self.state.shared.purging.announced(site.name());
            let watch = self
                .watches
                .entry(site.name().to_owned())
                .or_insert_with(|| Watch::new(now, self.known.lock().seen.get(&question).copied(), announced));
            if site.origin_up() == Some(false) {
                watch.due = now + BACK;
                continue;
            }
            watch.heard(now, announced);
            if watch.due > now {
                continue;
            }
            let Some(server) = Server::of(settings, &plan.settings) else { continue };
            // How often it was announced is from before the look: a signal that comes meanwhile belongs to what it sees.
            let seen = sitemap::look(&server.for_readers_of(ghost), ghost.base_path()).await;
            let change = watch.step(now, seen, announced, GRACE);
            if let Some((seen, _)) = watch.learnt {
                is_new |= self.known.lock().take_seen(question, seen);
            }
            match change {
                Change::None => {}
                Change::WhileAway => {
                    self.purge(site.name());
                    tracing::info!(
                        site = site.name(),
                        "something was published while Seawall was away; all pages are marked stale, and asked for again"
                    );
                }
                Change::PastSeawall => {
                    // Whoever sees the new page finds it noted.
                    self.note_past(site.name());
                    self.purge(site.name());
                    self.tell_past(site, &plan.settings);
                }
            }
        }
        self.watches.retain(|name, _| known_names.contains(&name.as_str()));
        is_new
    }

    /// Makes what was published live.
    fn purge(&self, site: &str) {
        let order = Order::for_site(site, vec![What::Everything], false, Maker::Watch);
        if let Err(why) = self.state.shared.purge(&order) {
            tracing::debug!(site, %why, "nothing was purged");
        }
    }

    /// Counts that something was published past Seawall.
    fn note_past(&self, site: &str) {
        let mut notes = self.state.watched.lock();
        let note = notes.entry(site.to_owned()).or_default();
        note.past += 1;
        note.past_at = Some(self.state.shared.clock.now());
    }

    /// Says that something was published past Seawall, and what to do about it.
    fn tell_past(&self, site: &SitePlan, settings: &Settings) {
        let remedy = match leads_past(site.settings(), &self.state.listening) {
            Some(why) => format!("{} (now {why})", remedy(site.settings(), settings, &self.state.listening)),
            None => "let editors use the address of Seawall, or have Ghost send it a webhook".to_owned(),
        };
        tracing::warn!(
            site = site.name(),
            "something was published past Seawall; it is live now, but it took up to a minute. To have it live at once: {remedy}"
        );
    }
}

/// Says what an answer means beside what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerMeaning {
    /// It means nothing more.
    Answer,
    /// A Ghost was away, and is back.
    Back,
    /// What was a Ghost has answered otherwise for so long that it is believed.
    Settled,
}

impl InquiryState {
    fn new(now: Timestamp, finding: &Finding) -> Self {
        let due = match finding {
            Finding::Recognised { remembered: false, .. } | Finding::Other(_) => now + ASK_AGAIN,
            _ => now + RETRY,
        };
        // One that is only remembered did not answer at the start.
        let was_away = matches!(finding, Finding::Recognised { remembered: true, .. });
        Self {
            due,
            asked_at: now,
            astray_since: None,
            retry: RETRY,
            was_up: true,
            falls: 0,
            in_vain: 0,
            was_away,
            otherwise: None,
            told: None,
        }
    }

    /// Takes what connecting to a server has come to since the last look. When it has come back it may be another one, and while it is away nothing else asks
    /// for it. It may have been away between two looks.
    fn look(&mut self, now: Timestamp, is_up: bool, falls: u64) {
        let has_fallen = falls > self.falls;
        self.falls = falls;
        if is_up != self.was_up || has_fallen {
            self.was_up = is_up;
            self.retry = RETRY;
            self.was_away |= has_fallen || !is_up;
            self.due = self.due.min(if is_up { now } else { now + RETRY });
        }
    }

    /// Takes whether the address of the software leads its readers astray, and asks it sooner if it does.
    fn look_astray(&mut self, now: Timestamp, leads_astray: bool) {
        if !leads_astray {
            self.astray_since = None;
            return;
        }
        let since = *self.astray_since.get_or_insert(now);
        let interval = (now.since(since) / ASTRAY_PART).clamp(ASTRAY_AGAIN, ASK_AGAIN);
        self.due = self.due.min(self.asked_at + interval);
    }

    /// Takes what a server has answered, of which `before` was known, and decides when it is asked again.
    fn hear(&mut self, now: Timestamp, before: &Finding, finding: &Finding) -> AnswerMeaning {
        let was_known = before.software().is_some();
        match finding {
            Finding::Silent(_) | Finding::Unasked => {
                self.in_vain += 1;
                self.was_away |= self.in_vain >= IN_VAIN;
                self.otherwise = None;
                self.ask_soon(now);
                AnswerMeaning::Answer
            }
            Finding::Other(_) if was_known => {
                self.in_vain = 0;
                let (times, since) = self.otherwise.filter(|_| self.was_up).map_or((1, now), |(times, since)| (times + 1, since));
                self.otherwise = Some((times, since));
                if times < OTHERWISE_TIMES || now.since(since) < OTHERWISE_FOR {
                    self.ask_soon(now);
                    return AnswerMeaning::Answer;
                }
                self.due = now + ASK_AGAIN;
                AnswerMeaning::Settled
            }
            Finding::Other(_) | Finding::Recognised { .. } => {
                (self.in_vain, self.otherwise, self.retry) = (0, None, RETRY);
                self.due = now + if self.was_up { ASK_AGAIN } else { RETRY_MAX };
                let is_back = std::mem::take(&mut self.was_away) && was_known && finding.software().is_some();
                if is_back { AnswerMeaning::Back } else { AnswerMeaning::Answer }
            }
        }
    }

    fn ask_soon(&mut self, now: Timestamp) {
        self.due = now + self.retry;
        self.retry = (self.retry * 2).min(RETRY_MAX);
    }

    /// Says once what is new about a server.
    fn tell(&mut self, question: &Question, before: &Finding, now: &Finding, heard: AnswerMeaning) {
        let server = &question.source;
        let text = match (before, now) {
            (Finding::Recognised { software: before, .. }, Finding::Recognised { software, .. }) if before != software => {
                format!("{server} is now {software}; before, it was {before}")
            }
            (Finding::Recognised { remembered: true, .. }, Finding::Recognised { software, .. }) => {
                format!("{server} answers, and is still {software}")
            }
            (Finding::Recognised { .. }, Finding::Recognised { .. }) => {
                self.told = None;
                return;
            }
            (_, Finding::Recognised { software, .. }) => format!("{server} is recognised: {software}"),
            (Finding::Recognised { software, remembered: false }, Finding::Other(what)) => {
                format!(
                    "{server} was {software}, and no longer answers as one ({what}); it is still treated as one, until Seawall is restarted"
                )
            }
            (Finding::Recognised { software, remembered: true }, Finding::Other(what)) if heard != AnswerMeaning::Settled => {
                format!("{server} was {software}, and answers otherwise ({what}); it is treated as one unless it stays so for a minute")
            }
            (Finding::Recognised { .. } | Finding::Silent(_), Finding::Other(what)) => {
                format!("{server} is neither a Ghost nor a WordPress: {what}")
            }
            _ => return,
        };
        if self.told.as_ref() != Some(&text) {
            if matches!((before, now), (Finding::Recognised { .. }, Finding::Other(_))) {
                tracing::warn!("{text}");
            } else {
                tracing::info!("{text}");
            }
            self.told = Some(text);
        }
    }
}

/// Returns the sites that a question is about.
fn sites_of<'a>(plan: &'a Plan, question: &'a Question) -> impl Iterator<Item = &'a SitePlan> {
    plan.sites.iter().filter(move |site| Question::of(site.settings()).as_ref() == Some(question))
}

/// Returns whether the server of a question could be connected to when that was tried last, and how often nobody listened there any more.
fn contact(plan: &Plan, question: &Question) -> (bool, u64) {
    sites_of(plan, question).fold((true, 0), |(is_up, falls), site| (is_up && site.origin_up() != Some(false), falls + site.origin_falls()))
}

/// Says how a site's software gets the address that leads through Seawall.
pub(crate) fn remedy(site: &Site, settings: &Settings, listening: &[edge::Socket]) -> String {
    let url = crate::try_next::address_of(settings, site, listening);
    let url = url.unwrap_or_else(|| "the address at which Seawall is reached".to_owned());
    to_have_address(site.product(), &url)
}

/// The watch over the pages of one site.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) due: Timestamp,
    /// The digest that the last look has seen, and the number of announcements of the site at that time. `None`: the next look only learns.
    pub(super) learnt: Option<(ListingDigest, u64)>,
    /// Whether that was seen by another process.
    is_remembered: bool,
    /// Whether a change waits for its signal.
    waits: bool,
    /// The number of announcements of the site when that was looked at last.
    announced: u64,
}

/// Says what a look has found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing was published, or it was announced.
    None,
    /// Something was published before Seawall was started.
    WhileAway,
    /// Something was published, and nobody has said so.
    PastSeawall,
}

impl Watch {
    pub(super) fn new(now: Timestamp, remembered: Option<ListingDigest>, announced: u64) -> Self {
        let learnt = remembered.map(|seen| (seen, announced));
        Self { due: now, is_remembered: learnt.is_some(), learnt, waits: false, announced }
    }

    /// Hears how often the site has been announced. Soon after a signal there is a look, which learns what belongs to it, so that a signal excuses
    /// nothing that comes after it.
    pub(super) fn heard(&mut self, now: Timestamp, announced: u64) {
        if announced != self.announced {
            self.announced = announced;
            self.due = self.due.min(now + GRACE);
        }
    }

    /// Has the next change count as unannounced, though the site has been announced this often.
    pub(super) fn excuse_nothing(&mut self, announced: u64) {
        self.learnt = self.learnt.map(|(seen, _)| (seen, announced));
    }

    /// Takes what a look has seen, and how often the site had been announced before it. A change waits for its signal for as long as `grace`.
    pub(super) fn step(&mut self, now: Timestamp, seen: Option<ListingDigest>, announced: u64, grace: Duration) -> Change {
        self.due = now + LOOK_EVERY;
        let Some(seen) = seen else { return Change::None };
        let waited = std::mem::take(&mut self.waits);
        let is_unannounced = self.learnt.is_some_and(|(before, then)| before != seen && then == announced);
        if is_unannounced && !waited && !grace.is_zero() {
            self.waits = true;
            self.due = now + grace;
            return Change::None;
        }
        self.learnt = Some((seen, announced));
        match (is_unannounced, std::mem::take(&mut self.is_remembered)) {
            (false, _) => Change::None,
            (true, true) => Change::WhileAway,
            (true, false) => Change::PastSeawall,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_without_a_signal_was_published_past_seawall() {
        let now = Timestamp::from_secs(1_000_000);
        // What each look sees, how often the site was announced before, and whether that was published past Seawall.
        for (looks, why) in [
            (&[(Some(1), 0, false), (Some(1), 0, false)][..], "nothing has changed"),
            (&[(Some(1), 0, false), (Some(2), 1, false), (Some(2), 1, false)], "it was announced"),
            (&[(Some(1), 0, false), (Some(2), 0, false), (Some(2), 1, false)], "it is announced a moment later"),
            (&[(Some(1), 0, false), (Some(2), 0, false), (Some(2), 0, true), (Some(2), 0, false)], "it is not announced"),
            (&[(Some(1), 0, false), (Some(2), 0, false), (None, 0, false), (Some(2), 0, true)], "the Ghost was away meanwhile"),
            (&[(Some(1), 0, false), (Some(2), 0, false), (Some(1), 0, false), (Some(1), 0, false)], "it was taken back"),
            (&[(None, 0, false), (Some(2), 0, false)], "the first look only learns"),
            (
                &[(Some(1), 5, false), (Some(2), 6, false), (Some(3), 6, false), (Some(3), 6, true)],
                "one was announced, the next one was not",
            ),
        ] {
            let mut watch = Watch::new(now, None, looks[0].1);
            for (seen, announced, past) in looks {
                let expected = if *past { Change::PastSeawall } else { Change::None };
                assert_eq!(watch.step(now, *seen, *announced, GRACE), expected, "{why}: {looks:?}");
            }
        }
    }

    #[test]
    fn a_signal_excuses_nothing_that_comes_after_it() {
        let now = Timestamp::from_secs(1_000_000);
        let mut watch = Watch::new(now, None, 0);
        assert_eq!(watch.step(now, Some(1), 0, GRACE), Change::None);
        // A signal, and the look that follows it.
        watch.heard(now + Duration::from_secs(10), 1);
        let later = now + Duration::from_secs(10) + GRACE;
        assert_eq!(watch.due, later);
        assert_eq!(watch.step(later, Some(2), 1, GRACE), Change::None);
        // Something else, without one.
        watch.heard(later, 1);
        let at = watch.due;
        assert_eq!(watch.step(at, Some(3), 1, GRACE), Change::None, "it waits for its signal");
        assert_eq!(watch.step(at + GRACE, Some(3), 1, GRACE), Change::PastSeawall);
    }

    #[test]
    fn what_was_published_while_seawall_was_away_is_found_by_the_first_looks() {
        let now = Timestamp::from_secs(1_000_000);
        let mut watch = Watch::new(now, Some(1), 0);
        assert_eq!(watch.step(now, Some(1), 0, GRACE), Change::None, "nothing was");
        let mut watch = Watch::new(now, Some(1), 0);
        assert_eq!(watch.step(now, Some(2), 0, GRACE), Change::None, "it waits for a signal that may come");
        assert_eq!(watch.step(now + GRACE, Some(2), 0, GRACE), Change::WhileAway);
        assert_eq!(watch.step(now + GRACE, Some(3), 0, GRACE), Change::None);
        assert_eq!(watch.step(now + GRACE, Some(3), 0, GRACE), Change::PastSeawall);
    }

    fn ghost(remembered: bool) -> Finding {
        let software = super::super::Software::ghost("6.65", "https://blog.example/").expect("a Ghost");
        Finding::Recognised { software, remembered }
    }

    /// A page for maintenance, a 404 of a proxy while Ghost starts: a site that turns generic for it would share the pages of members.
    #[test]
    fn a_ghost_is_believed_to_be_none_only_when_it_has_answered_otherwise_for_a_while() {
        let (other, silent) = (|| Finding::Other("404".to_owned()), || Finding::Silent("it answers 503".to_owned()));
        let begin = Timestamp::from_secs(1_000_000);
        // After how many seconds it answers what, and whether that is believed.
        for looks in [
            &[(0, other(), false), (1, other(), false), (59, other(), false), (60, other(), true)][..],
            &[(0, other(), false), (61, other(), false), (62, other(), true)],
            &[(0, other(), false), (30, silent(), false), (61, other(), false), (62, other(), false), (121, other(), true)],
            &[(0, other(), false), (30, ghost(false), false), (61, other(), false), (62, other(), false)],
        ] {
            let mut asked = InquiryState::new(begin, &ghost(true));
            for (at, finding, is_believed) in looks {
                let now = begin + Duration::from_secs(*at);
                let heard = asked.hear(now, &ghost(true), finding);
                assert_eq!(heard == AnswerMeaning::Settled, *is_believed, "{at} of {looks:?}");
                if !is_believed && finding.software().is_none() {
                    assert!(asked.due > now && asked.due <= now + RETRY_MAX, "it is asked again soon");
                }
            }
        }
        // What cannot be connected to meanwhile is not healthy.
        let mut asked = InquiryState::new(begin, &ghost(true));
        asked.was_up = false;
        for at in [0, 30, 61, 90, 120] {
            assert_eq!(asked.hear(begin + Duration::from_secs(at), &ghost(true), &other()), AnswerMeaning::Answer);
        }
    }

    #[test]
    fn a_ghost_is_back_once_after_it_was_away() {
        let silent = || Finding::Silent("refused".to_owned());
        let now = Timestamp::from_secs(1_000_000);
        let hear = |asked: &mut InquiryState, finding: Finding| asked.hear(now, &ghost(false), &finding);
        let mut asked = InquiryState::new(now, &ghost(false));
        assert_eq!(hear(&mut asked, ghost(false)), AnswerMeaning::Answer, "it was never away");
        assert_eq!(hear(&mut asked, silent()), AnswerMeaning::Answer);
        assert_eq!(hear(&mut asked, ghost(false)), AnswerMeaning::Answer, "it was busy for a moment");
        for _ in 0..2 {
            assert_eq!(hear(&mut asked, silent()), AnswerMeaning::Answer);
            assert_eq!(hear(&mut asked, silent()), AnswerMeaning::Answer);
            assert_eq!(hear(&mut asked, Finding::Other("404".to_owned())), AnswerMeaning::Answer, "it is not itself yet");
            assert_eq!(hear(&mut asked, ghost(false)), AnswerMeaning::Back);
            assert_eq!(hear(&mut asked, ghost(false)), AnswerMeaning::Answer, "once");
        }
        // One that did not answer at the start.
        let mut asked = InquiryState::new(now, &ghost(true));
        assert_eq!(asked.hear(now, &ghost(true), &ghost(false)), AnswerMeaning::Back);
    }

    #[test]
    fn a_ghost_that_was_away_between_two_looks_is_back_too() {
        let now = Timestamp::from_secs(1_000_000);
        let mut asked = InquiryState::new(now, &ghost(false));
        asked.look(now, true, 0);
        assert!(asked.due > now);
        asked.look(now, true, 1);
        assert_eq!((asked.due, asked.hear(now, &ghost(false), &ghost(false))), (now, AnswerMeaning::Back));
        // After a reload, the counting begins anew.
        for falls in [1, 0, 0] {
            asked.look(now, true, falls);
            assert_eq!((asked.due > now, asked.hear(now, &ghost(false), &ghost(false))), (true, AnswerMeaning::Answer));
        }
    }

    #[test]
    fn what_was_published_past_seawall_is_live_within_a_minute() {
        assert!(LOOK_EVERY + GRACE < Duration::from_mins(1));
    }
}
