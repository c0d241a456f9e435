//! Readers who ask all the time, and purgers of every kind.

use std::{
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicUsize,
            Ordering::{Relaxed, SeqCst},
        },
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    http::{Answer, Client},
    ledger::{BLOG, Change, GHOST, GROUPS, Ledger, PAGES, host_of, path_of},
    machine::{ADMIN_PORT, Door, PORT},
    origin::changed,
    process::rest,
    random::Random,
};

/// The time that a reader waits. A machine may be frozen for less than that, and then answers.
const READERS_PATIENCE: Duration = Duration::from_secs(40);
/// The time that a purger waits: a purge answers within its lease and 1.5 s.
const PURGERS_PATIENCE: Duration = Duration::from_secs(40);
/// The readers of a machine. Each has one connection.
const READERS: usize = 2;

/// Asks a machine for a page, and has the answer judged.
pub(crate) fn read(client: &mut Client, door: &Door, ledger: &Ledger, page: usize) {
    let request = format!("GET {} HTTP/1.1\r\nhost: {}\r\n\r\n", path_of(page), host_of(page));
    let expected = ledger.expected(page);
    match client.ask(&request) {
        Ok(answer) if answer.status == 200 => {
            let cache = answer.field("cache-status").unwrap_or_default().to_owned();
            ledger.judge(expected, &answer.text(), &door.name, &cache);
        }
        Ok(answer) => ledger.error(&door.name, answer.status.to_string()),
        Err(error) => {
            ledger.error(&door.name, error.kind().to_string());
            rest(Duration::from_millis(20));
        }
    }
}

/// Threads that go on until they are told to end.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Crowd {
    /// Has a machine asked so many times a second.
    pub(crate) fn reads(&mut self, door: &Door, ledger: &Arc<Ledger>, per_second: u32, seed: u64) {
        for reader in 0..READERS {
            let (door, ledger, ends) = (door.clone(), Arc::clone(ledger), Arc::clone(&self.ends));
            let mut random = Random::new(seed + reader as u64);
            let pause = Duration::from_secs(1) * u32::try_from(READERS).expect("few") / per_second;
            self.threads.push(thread::spawn(move || {
                let mut client = Client::of(door.address, PORT, READERS_PATIENCE);
                let mut next = Instant::now();
                while !ends.load(SeqCst) {
                    read(&mut client, &door, &ledger, random.below(PAGES));
                    // Whoever was held up does not make up for it.
                    next = (next + pause).max(Instant::now() - pause * 10);
                    rest(next.saturating_duration_since(Instant::now()));
                }
            }));
        }
    }

    /// Has somebody purge at one of these machines, again and again, with a pause after each.
    pub(crate) fn purges(&mut self, doors: &[Door], ledger: &Arc<Ledger>, pause: Duration, seed: u64) {
        let (doors, ledger, ends) = (doors.to_vec(), Arc::clone(ledger), Arc::clone(&self.ends));
        self.threads.push(thread::spawn(move || {
            let mut purger = Purger::new(doors, ledger, Belief::Said, seed);
            while !ends.load(SeqCst) {
                purger.purges();
                rest(pause);
            }
        }));
    }

    /// Ends all, and waits for them.
    pub(crate) fn end(mut self) {
        self.ends.store(true, SeqCst);
        for thread in std::mem::take(&mut self.threads) {
            assert!(thread.join().is_ok(), "a reader or purger panicked");
        }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.ends.store(true, SeqCst);
    }
}

/// Says whose answers count as "this purge holds everywhere".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Belief {
    /// Only of those that say so.
    Said,
    /// Every good answer, also to a write: nothing is wrong with the machines, so there is no reason for less.
    EveryAnswer,
}

/// Says what came of a purge.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Whether it was said to hold everywhere; `None`: a write, of which nothing is said.
    pub(crate) everywhere: Option<bool>,
    /// The change that it covered.
    pub(crate) change: Change,
}

/// A kind of purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    ApiUrl,
    ApiTag,
    ApiPrefix,
    ApiHost,
    ApiEverything,
    PurgeRequest,
    Xkey,
    Post,
    GhostPage,
    GhostSite,
    GhostWebhook,
}

impl Kind {
    /// Every kind; those that cover one page come oftener.
    pub(crate) const OFTEN: [Self; 20] = [
        Self::ApiUrl,
        Self::ApiUrl,
        Self::ApiUrl,
        Self::ApiTag,
        Self::ApiTag,
        Self::ApiPrefix,
        Self::ApiPrefix,
        Self::PurgeRequest,
        Self::PurgeRequest,
        Self::PurgeRequest,
        Self::Xkey,
        Self::Post,
        Self::Post,
        Self::Post,
        Self::GhostPage,
        Self::GhostPage,
        Self::GhostSite,
        Self::GhostWebhook,
        Self::ApiHost,
        Self::ApiEverything,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::ApiUrl => "API, url",
            Self::ApiTag => "API, tag",
            Self::ApiPrefix => "API, prefix",
            Self::ApiHost => "API, host",
            Self::ApiEverything => "API, all",
            Self::PurgeRequest => "PURGE",
            Self::Xkey => "PURGE, xkey",
            Self::Post => "POST",
            Self::GhostPage => "signal, page",
            Self::GhostSite => "signal, site",
            Self::GhostWebhook => "webhook",
        }
    }
}

/// Somebody who changes pages and has them purged.
#[derive(Debug)]
pub(crate) struct Purger {
    doors: Vec<Door>,
    ledger: Arc<Ledger>,
    belief: Belief,
    random: Random,
    /// Connections for a look at each machine right after an acknowledgement.
    looks: Vec<Client>,
    kept: Vec<(Client, Client)>,
}

impl Purger {
    /// Comes to these machines.
    pub(crate) fn new(doors: Vec<Door>, ledger: Arc<Ledger>, belief: Belief, seed: u64) -> Self {
        let client = |door: &Door, port| Client::of(door.address, port, PURGERS_PATIENCE);
        let looks = doors.iter().map(|door| client(door, PORT)).collect();
        let kept = doors.iter().map(|door| (client(door, PORT), client(door, ADMIN_PORT))).collect();
        Self { doors, ledger, belief, random: Random::new(seed), looks, kept }
    }

    /// Purges something of some kind at one of the machines, and looks at once whether the other machines know of it.
    pub(crate) fn purges(&mut self) {
        let kind = *self.random.one_of(&Kind::OFTEN);
        let machine = self.random.below(self.doors.len());
        let begun = Instant::now();
        let outcome = match self.carries_out(kind, machine) {
            Ok(outcome) => outcome,
            Err(why) => {
                let name = self.doors[machine].name.to_string();
                self.ledger.count(|tally| {
                    tally.refused += 1;
                    *tally.refused_why.entry((name, kind.name(), why)).or_default() += 1;
                });
                return;
            }
        };
        self.ledger.is_answered(&outcome.change, kind.name());
        let holds = match outcome.everywhere {
            Some(everywhere) => everywhere,
            None => self.belief == Belief::EveryAnswer,
        };
        if holds {
            self.ledger.holds_everywhere(&outcome.change);
        }
        self.ledger.took(kind.name(), begun.elapsed());
        self.ledger.count(|tally| match outcome.everywhere {
            Some(true) => tally.everywhere += 1,
            Some(false) => tally.not_known += 1,
            None => tally.writes += 1,
        });
        if holds {
            let (page, _) = *self.random.one_of(&outcome.change);
            let other = self.random.below(self.doors.len());
            read(&mut self.looks[other], &self.doors[other], &self.ledger, page);
        }
    }

    /// Changes something and has it purged; or says why there is no good answer.
    fn carries_out(&mut self, kind: Kind, machine: usize) -> Result<Outcome, String> {
        let page = BLOG.start + self.random.below(BLOG.len());
        let post = GHOST.start + self.random.below(GHOST.len());
        let group = self.random.below(GROUPS);
        let host = host_of(page);
        let of_group = || BLOG.filter(move |page| page % GROUPS == group);
        let ledger = Arc::clone(&self.ledger);
        match kind {
            Kind::ApiUrl => self.by_api(machine, ledger.change([page]), &json!({"url": format!("http://{host}{}", path_of(page))})),
            // The tag's pages of the Ghost, too: an operator purges all sites.
            Kind::ApiTag => {
                let pages = (0..PAGES).filter(|page| page % GROUPS == group);
                self.by_api(machine, ledger.change(pages), &json!({"tag": format!("group-{group}")}))
            }
            Kind::ApiPrefix => self.by_api(machine, ledger.change(of_group()), &json!({"prefix": format!("http://{host}/g{group}/")})),
            Kind::ApiHost => self.by_api(machine, ledger.change(BLOG), &json!({"host": host})),
            Kind::ApiEverything => self.by_api(machine, ledger.change(0..PAGES), &json!({"all": true})),
            Kind::PurgeRequest => {
                let change = ledger.change([page]);
                let answer = self.ask(machine, &format!("PURGE {} HTTP/1.1\r\nhost: {host}\r\n\r\n", path_of(page)))?;
                by_request(&answer, change)
            }
            Kind::Xkey => {
                let change = ledger.change(of_group());
                let answer = self.ask(machine, &format!("PURGE / HTTP/1.1\r\nhost: {host}\r\nxkey-purge: group-{group}\r\n\r\n"))?;
                by_request(&answer, change)
            }
            Kind::Post => {
                let request = format!("POST {} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 2\r\n\r\n{{}}", path_of(page));
                by_write(&self.ask(machine, &request)?)
            }
            Kind::GhostPage | Kind::GhostSite => {
                let what = if kind == Kind::GhostPage { post.to_string() } else { "all".to_owned() };
                let request = format!(
                    "PUT /ghost/api/admin/posts/{what}/ HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}",
                    host_of(post)
                );
                by_write(&self.ask(machine, &request)?)
            }
            Kind::GhostWebhook => {
                let change = ledger.change(GHOST);
                let request = format!(
                    "POST /.seawall/ghost HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}",
                    host_of(post)
                );
                let answer = self.ask(machine, &request)?;
                is_good(&answer).map(|()| Outcome { everywhere: None, change })
            }
        }
    }

    fn ask(&mut self, machine: usize, request: &str) -> Result<Answer, String> {
        self.kept[machine].0.ask(request).map_err(|error| error.to_string())
    }

    fn by_api(&mut self, machine: usize, change: Change, what: &Value) -> Result<Outcome, String> {
        let request = self.doors[machine].admin_request("POST /purge", &what.to_string());
        let answer = self.kept[machine].1.ask(&request).map_err(|error| error.to_string())?;
        let done: Value = serde_json::from_slice(&answer.content).map_err(|_| answer.text())?;
        let spread = &done["spread"];
        let everywhere = if spread.is_null() { answer.status == 200 } else { spread["everywhere"] == true };
        match answer.status {
            200 | 202 if everywhere == (answer.status == 200) => Ok(Outcome { everywhere: Some(everywhere), change }),
            200 | 202 => {
                self.ledger.must_not_be(format!("status {} and {spread} contradict each other", answer.status));
                Err("it contradicts itself".to_owned())
            }
            status => Err(format!("{status} {done}")),
        }
    }
}

fn is_good(answer: &Answer) -> Result<(), String> {
    if (200..300).contains(&answer.status) { Ok(()) } else { Err(format!("{} {}", answer.status, answer.text())) }
}

fn by_request(answer: &Answer, change: Change) -> Result<Outcome, String> {
    is_good(answer).map(|()| Outcome { everywhere: Some(answer.status == 200), change })
}

fn by_write(answer: &Answer) -> Result<Outcome, String> {
    is_good(answer).map(|()| Outcome { everywhere: None, change: changed(answer) })
}

/// Has so many purges made by some purgers at once, of all kinds and at all machines.
pub(crate) fn purge_many(doors: &[Door], ledger: &Arc<Ledger>, belief: Belief, count: usize, purgers: usize, seed: u64) {
    let begun = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..purgers)
        .map(|number| {
            let (doors, ledger, begun) = (doors.to_vec(), Arc::clone(ledger), Arc::clone(&begun));
            thread::spawn(move || {
                let mut purger = Purger::new(doors, ledger, belief, seed + 100 * number as u64);
                while begun.fetch_add(1, Relaxed) < count {
                    purger.purges();
                }
            })
        })
        .collect();
    for thread in threads {
        assert!(thread.join().is_ok(), "a purger panicked");
    }
}
