//! WordPress's own schedule (`wp-cron.php`), run from here instead of by readers, and the look at what it has published.
//!
//! There is one schedule for each WordPress, however many workers, sites and reloads there are. It is called bare and never twice at once.
//!
//! The trap is WordPress's lock. A page that finds something due sets it for a minute and sends a request to itself, with the value of the lock. As
//! long as the lock is set, a bare call does nothing, and with enough pages it is set anew whenever it ends. Seawall answers such requests itself, so it
//! also hands on their value, which opens the lock. Whoever sends a wrong one costs a request every [`HANDED_ON_EVERY`] at most, and those who
//! may have sent a right one, from this machine or its networks, do not wait behind strangers.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{BuildHasher, RandomState},
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use parking_lot::Mutex;
use policy::purge::{Maker, Order, What};
use semantics::Timestamp;
use tokio::task::{JoinHandle, spawn_local};

use super::{
    Finding, Question,
    ask::Server,
    folder,
    keeper::{Change, GRACE, LOOK_EVERY, SharedFindings, Watch},
    software,
    totals::{self, Observation},
};
use crate::{
    config::settings::{Kind, Site, Source},
    plan::{Plan, SitePlan},
    server::State,
};

/// The `User-Agent` of a run.
const RUNNER: &str = concat!("seawall/", env!("CARGO_PKG_VERSION"), " (wp-cron)");

/// The longest time for which a run is waited for. WordPress goes on without us.
const RUN_PATIENCE: Duration = Duration::from_mins(1);

/// The most bytes of what a run answers that are read.
const RUN_BYTES_MAX: usize = 4 * 1024;

/// The time from a start to the first run, so that a start is quick.
const FIRST_RUN: Duration = Duration::from_secs(1);

/// The time between two values of a lock that are handed on.
const HANDED_ON_EVERY: Duration = Duration::from_secs(2);

/// The time for which WordPress's lock is set.
const LOCKED_FOR: Duration = Duration::from_secs(60);

/// The time after the end of a lock from which on a run is sure to find it open.
const LOCK_GRACE: Duration = Duration::from_millis(200);

/// The time after a run until its pages are looked at. php-fpm answers before the work begins.
const LOOK_AFTER_RUN: Duration = Duration::from_secs(1);

/// The time after a change until its pages are looked at again: what has begun may go on.
const LOOK_AFTER_CHANGE: Duration = Duration::from_secs(5);

/// The time after a run until its pages are looked at once more: where PHP is busy, the work takes its time.
const LOOK_AGAIN_AFTER_RUN: Duration = Duration::from_secs(5);

/// Holds what operators are told of a site's schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Noted {
    /// The time at which the last run ended.
    pub(crate) ran_at: Option<Timestamp>,
    pub(crate) runs: u64,
    pub(crate) failures: u64,
    /// The reason why the last run failed.
    pub(crate) trouble: Option<String>,
    /// The name and version that the plugin gives of itself.
    pub(crate) plugin: Option<String>,
}

/// The notes for operators on every site's schedule, by the name of the site.
pub(crate) type Notes = Mutex<BTreeMap<String, Noted>>;

/// The schedules of all WordPresses of a plan.
pub(super) struct Schedules {
    state: Arc<State>,
    known: SharedFindings,
    /// The schedules by the server and the path of its own files.
    all: BTreeMap<(Question, String), Schedule>,
    /// Makes the times of attempts after failures differ.
    random: RandomState,
}

/// Holds what was known when a look began. What is said meanwhile is newer than what it sees.
#[derive(Default)]
struct Before {
    /// The number of the last change that was announced.
    announced: u64,
    plugin: Option<String>,
    /// Whether a run may have published something that no look has seen yet.
    ran: bool,
}

/// The schedule of one WordPress.
struct Schedule {
    /// The settings from which `server` was made. Making it reads certificates.
    made_of: Site,
    server: Server,
    due: Timestamp,
    /// The time at which a lock ends of which a request told.
    lock_ends: Option<Timestamp>,
    handed_on: Option<Timestamp>,
    failed: u32,
    run: Option<JoinHandle<Result<(), String>>>,
    look: Option<JoinHandle<(Option<Observation>, Before)>>,
    /// The time at which the last run ended, until its second look has begun.
    unseen: Option<Timestamp>,
    watch: Watch,
    noted: Noted,
}

impl Schedules {
    pub(super) fn new(state: Arc<State>, known: SharedFindings) -> Self {
        Self { state, known, all: BTreeMap::new(), random: RandomState::new() }
    }

    /// Does what is due, without waiting for it. Returns whether something else is known than before.
    pub(super) async fn turn(&mut self) -> bool {
        let plan = self.state.plan.load_full();
        let now = self.state.shared.clock.now();
        let (mut is_new, mut met) = (false, BTreeSet::new());
        for site in plan.sites.iter().filter(|site| runs(site.settings())) {
            let settings = site.settings();
            let Some(question) = Question::of(settings) else { continue };
            let key = (question.clone(), core_path(settings));
            let is_first = met.insert(key.clone());
            if !self.all.get(&key).is_some_and(|schedule| !is_first || schedule.made_of == *settings) {
                let Some(server) = server(settings, &plan) else { continue };
                match self.all.get_mut(&key) {
                    Some(schedule) => (schedule.made_of, schedule.server) = (settings.clone(), server),
                    None => {
                        let seen = self.known.lock().seen_of(&question);
                        let announced = announced(&self.state, site.name());
                        self.all.insert(key.clone(), Schedule::new(now, settings.clone(), server, Watch::new(now, seen, announced)));
                    }
                }
            }
            let Some(schedule) = self.all.get_mut(&key) else { continue };
            if let Some(heard) = site.schedule() {
                schedule.hear(now, heard);
            }
            if is_first {
                is_new |= schedule.turn(now, site, &self.state, (&self.known, &question), &self.random).await;
            }
            self.state.schedules.lock().insert(site.name().to_owned(), schedule.noted.clone());
        }
        // One that is only away for a moment keeps what is known of it.
        let still: BTreeSet<_> =
            plan.sites.iter().filter_map(|site| Some((Question::of(site.settings())?, core_path(site.settings())))).collect();
        self.all.retain(|key, _| met.contains(key) || still.contains(key));
        self.state.schedules.lock().retain(|name, _| plan.sites.iter().any(|site| site.name() == name));
        is_new
    }
}

impl Schedule {
    fn new(now: Timestamp, made_of: Site, server: Server, watch: Watch) -> Self {
        Self {
            made_of,
            server,
            due: now + FIRST_RUN,
            lock_ends: None,
            handed_on: None,
            failed: 0,
            run: None,
            look: None,
            unseen: None,
            watch,
            noted: Noted::default(),
        }
    }

    /// Hears which requests came that would have run the schedule.
    fn hear(&mut self, now: Timestamp, heard: &pipeline::Schedule) {
        let is_open = self.handed_on.is_none_or(|at| now.since(at) >= HANDED_ON_EVERY);
        if self.run.is_some() || !is_open {
            return;
        }
        let Some(value) = heard.take(now) else { return };
        self.handed_on = Some(now);
        // If it was a wrong one, the lock ends by itself.
        self.lock_ends = self.lock_ends.or(Some(now + LOCKED_FOR + LOCK_GRACE));
        self.start_run(&format!("?doing_wp_cron={value}"));
    }

    fn start_run(&mut self, query: &str) {
        let (server, path) = (self.server.clone(), format!("{}/wp-cron.php{query}", core_path(&self.made_of)));
        self.run = Some(spawn_local(async move { run(&server, &path).await }));
    }

    async fn turn(
        &mut self,
        now: Timestamp,
        site: &SitePlan,
        state: &State,
        known: (&SharedFindings, &Question),
        random: &RandomState,
    ) -> bool {
        if let Some(run) = self.run.take_if(|run| run.is_finished()) {
            let ended = run.await.unwrap_or_else(|error| Err(error.to_string()));
            state.schedule_runs[usize::from(ended.is_err())].fetch_add(1, Relaxed);
            self.ran(now, site, ended, random);
        }
        if let Some(period) = self.made_of.wordpress.cron
            && self.run.is_none()
            && (self.due <= now || self.lock_ends.is_some_and(|ends| ends <= now))
        {
            self.lock_ends = self.lock_ends.filter(|ends| *ends > now);
            self.due = now + period;
            self.start_run("");
        }
        self.watch(now, site, state, known).await
    }

    /// Takes the outcome of a run.
    fn ran(&mut self, now: Timestamp, site: &SitePlan, ended: Result<(), String>, random: &RandomState) {
        self.watch.due = self.watch.due.min(now + LOOK_AFTER_RUN);
        self.unseen = Some(now);
        match ended {
            Ok(()) => {
                self.failed = 0;
                self.noted.runs += 1;
                self.noted.ran_at = Some(now);
                if self.noted.trouble.take().is_some() {
                    tracing::info!(site = site.name(), "WordPress's schedule (wp-cron.php) runs again");
                }
            }
            Err(why) => {
                self.failed = self.failed.saturating_add(1);
                self.noted.failures += 1;
                // Those who fail together do not come back together.
                let period = self.made_of.wordpress.cron.unwrap_or(LOOK_EVERY);
                let part = random.hash_one((now.as_millis(), self.failed)) % 512;
                self.due = now + period + period.mul_f64(part as f64 / 1024.0);
                if self.noted.trouble.as_ref() != Some(&why) {
                    tracing::warn!(site = site.name(), "WordPress's schedule (wp-cron.php) does not run: {why}");
                }
                self.noted.trouble = Some(why);
            }
        }
    }

    /// Looks at the pages when it is time. Returns whether something else is known than before.
    async fn watch(&mut self, now: Timestamp, site: &SitePlan, state: &State, (known, question): (&SharedFindings, &Question)) -> bool {
        let mut is_new = false;
        if let Some(look) = self.look.take_if(|look| look.is_finished()) {
            let (found, before) = look.await.unwrap_or_default();
            if let Some(found) = &found {
                self.noted.plugin.clone_from(&found.plugin);
                state.shared.signalled.plugin_was_seen(site.name(), before.plugin.as_deref(), found.plugin.as_deref());
            }
            // The plugin says what has changed; it needs a moment for that.
            let grace = if self.noted.plugin.is_some() { GRACE } else { Duration::ZERO };
            // Only the plugin says what a run has published. Without it, an announcement of the same moment was about something else.
            let ran = before.ran || self.run.is_some() || self.unseen.is_some();
            if ran && self.noted.plugin.is_none() {
                self.watch.excuse_nothing(before.announced);
            }
            let change = self.watch.step(now, found.map(|found| found.seen), before.announced, grace);
            if let Some(ran) = self.unseen {
                self.watch.due = self.watch.due.min(ran + LOOK_AGAIN_AFTER_RUN);
            }
            if let Some((seen, _)) = self.watch.learnt {
                is_new = known.lock().take_seen(question.clone(), seen);
            }
            if change != Change::None {
                self.watch.due = now + LOOK_AFTER_CHANGE;
                purge(state, site.name());
                tracing::info!(site = site.name(), "{}", in_words(change));
            }
        }
        let announced = announced(state, site.name());
        self.watch.heard(now, announced);
        if site.origin_up() != Some(false) && self.look.is_none() && self.watch.due <= now {
            self.watch.due = now + LOOK_EVERY;
            let ran = self.run.is_some() || self.unseen.is_some();
            // Its second look has begun: what comes later was not published by it.
            self.unseen = self.unseen.filter(|ran| now.since(*ran) < LOOK_AGAIN_AFTER_RUN);
            // Which changes were announced is from before the look: what is announced meanwhile belongs to what it sees.
            let before = Before { announced, plugin: state.shared.signalled.of(site.name()).plugin, ran };
            let (server, path, place) =
                (self.server.clone(), self.made_of.wordpress.path.clone().unwrap_or_default(), folder_of(&self.made_of));
            self.look = Some(spawn_local(async move {
                let beside = match place {
                    Some((folder, path)) => extensions(folder, path).await,
                    None => 0,
                };
                (totals::look(&server, &path, beside).await, before)
            }));
        }
        is_new
    }
}

/// Returns the folder of a site, and the path of the site in it.
fn folder_of(site: &Site) -> Option<(std::path::PathBuf, Option<String>)> {
    let Source::Php(folder) = &site.source else { return None };
    Some((folder.clone(), site.wordpress.path.clone()))
}

async fn extensions(folder: std::path::PathBuf, path: Option<String>) -> u64 {
    let look = move || folder::look(&folder, path.as_deref()).map_or(0, |found| found.extensions());
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

const fn in_words(change: Change) -> &'static str {
    match change {
        Change::None => "nothing was published",
        Change::WhileAway => "something was published while Seawall was away; all pages are marked stale, and asked for again",
        Change::PastSeawall => {
            "something was published by WordPress's schedule, or past Seawall; all pages are marked stale, and asked for again"
        }
    }
}

/// Returns a number that changes whenever somebody says that something has changed.
fn announced(state: &State, site: &str) -> u64 {
    let told = state.shared.signalled.of(site);
    let in_path = told.in_path.map_or(0, |publication| publication.at.as_millis());
    let beside = told.webhook_at.map_or(0, |at| at.as_millis());
    state.shared.purging.announced(site).wrapping_add(in_path).wrapping_add(beside)
}

fn purge(state: &State, site: &str) {
    let order = Order::for_site(site, vec![What::Everything], false, Maker::Watch);
    if let Err(why) = state.shared.purge(&order) {
        tracing::debug!(site, %why, "nothing was purged");
    }
}

/// Returns whether a site is a WordPress that can be asked now.
fn runs(site: &Site) -> bool {
    if site.kind != Kind::WordPress || !site.source.is_server() {
        return false;
    }
    match &site.finding {
        Finding::Recognised { remembered, .. } => !remembered,
        // Something in it may keep strangers from its API, and from nothing else.
        Finding::Other(_) => match folder_of(site) {
            Some((folder, path)) => folder::look(&folder, path.as_deref()).is_some_and(|found| found.is_set_up()),
            None => true,
        },
        Finding::Silent(_) | Finding::Unasked => false,
    }
}

/// Makes the server to which runs and looks go, as it calls itself.
fn server(site: &Site, plan: &Plan) -> Option<Server> {
    let server = Server::of(site, &plan.settings)?;
    Some(match software(site) {
        Some(software) => server.for_core_of(software),
        None => server,
    })
}

/// Returns the path of a WordPress's own files, without a slash at its end.
pub(crate) fn core_path(site: &Site) -> String {
    let said = software(site).and_then(|software| software.core_url().parse::<http::Uri>().ok());
    let of_folder = || folder_of(site).and_then(|(folder, path)| Some(folder::look(&folder, path.as_deref())?.core_path));
    let path = said.map(|core| core.path().trim_end_matches('/').to_owned()).or_else(of_folder);
    path.or_else(|| site.wordpress.path.clone()).unwrap_or_default()
}

/// Runs the schedule once. php-fpm answers at once, and other servers when the work is done.
async fn run(server: &Server, path: &str) -> Result<(), String> {
    let open = server.open()?;
    let Ok(answered) = tokio::time::timeout(RUN_PATIENCE, open.get_named(path, RUNNER, RUN_BYTES_MAX)).await else { return Ok(()) };
    let answer = answered?;
    if answer.status.is_success() {
        return Ok(());
    }
    let where_to = answer.fields.get(http::header::LOCATION).and_then(|there| there.to_str().ok());
    let where_to = where_to.map(|there| format!(", to {there}")).unwrap_or_default();
    Err(format!("it answers {}{where_to}", answer.status.as_u16()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduled_post_is_live_within_two_seconds_of_its_run() {
        assert!(LOOK_AFTER_RUN < Duration::from_secs(2));
    }
}
