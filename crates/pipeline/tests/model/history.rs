//! A history: what happens, step by step, and the world it happens in.

use std::{
    cell::RefCell,
    path::Path,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use http::Method;
use pipeline::{Clock, Collapse, Https, OriginState, Parts, Pipeline, Refill, ResponseFields, Router, Shared, Site};
use policy::{
    Compress, Kind, Policy, Settings, Verdict,
    purge::{Address, Maker, Order, What},
};
use proptest::prelude::*;
use semantics::{RequestFields, RequestHead, Scheme};
use store::{DiskOptions, DiskState, StoreOptions};
use tokio::task::{JoinHandle, LocalSet};

use crate::{
    judge::{Purge, judge},
    origin::{PAGES, Rules, Server, Treatment, Word},
    reader::{self, Got, ReaderRequest, Wish},
};

/// Something that happens.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// A reader asks one of the workers; `repeat` of them at once.
    Ask {
        worker: usize,
        asked: ReaderRequest,
        repeat: usize,
    },
    /// A reader presents the entity tag that it was given last.
    AskAgain {
        worker: usize,
    },
    /// The origin deals with one of the requests that wait.
    Treat {
        place: usize,
        treatment: Treatment,
    },
    /// The rest of a slow answer arrives.
    Finish,
    /// A page changes.
    Edit {
        page: usize,
        rules: Rules,
    },
    /// Somebody writes to a page through the cache.
    Post {
        worker: usize,
        page: usize,
    },
    Purge {
        page: Option<usize>,
        hard: bool,
    },
    /// What nobody reads as it is is packed, if it was looked at before.
    Look,
    /// Milliseconds pass.
    Wait(u64),
    /// The process ends, and another begins with what is on the disk, if there is one; readers who wait get nothing.
    End,
}

pub(crate) fn steps(max: usize) -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec(step(), 1..max)
}

fn step() -> impl Strategy<Value = Step> {
    let page = 0..PAGES;
    prop_oneof![
        8 => (0..2_usize, asked(), prop_oneof![4 => Just(1_usize), 1 => Just(3)]).prop_map(|(worker, asked, repeat)| Step::Ask { worker, asked, repeat }),
        1 => (0..2_usize).prop_map(|worker| Step::AskAgain { worker }),
        8 => (0..4_usize, treatment()).prop_map(|(place, treatment)| Step::Treat { place, treatment }),
        2 => Just(Step::Finish),
        2 => (page.clone(), rules()).prop_map(|(page, rules)| Step::Edit { page, rules }),
        1 => (0..2_usize, page.clone()).prop_map(|(worker, page)| Step::Post { worker, page }),
        2 => (prop::option::of(page), any::<bool>()).prop_map(|(page, hard)| Step::Purge { page, hard }),
        3 => prop_oneof![0..2_000_u64, 9_000..11_000_u64, Just(61_000)].prop_map(Step::Wait),
        3 => Just(Step::Look),
        1 => Just(Step::End),
    ]
}

fn asked() -> impl Strategy<Value = ReaderRequest> {
    let method = prop_oneof![9 => Just(Method::GET), 1 => Just(Method::HEAD)];
    let wish = prop_oneof![
        12 => Just(Wish::None),
        1 => Just(Wish::NoCache),
        1 => Just(Wish::OnlyIfCached),
        1 => (0..20_u64).prop_map(Wish::MaxAge),
        1 => Just(Wish::MaxStale),
    ];
    let range = prop_oneof![9 => Just(None), 1 => (0..200_usize, 0..400_usize).prop_map(|(from, more)| Some((from, from + more)))];
    let user = prop_oneof![4 => Just(None), 1 => (0..2_u8).prop_map(Some)];
    (0..PAGES, method, prop::option::of(0..2_u8), user, wish, range).prop_map(|(page, method, language, user, wish, range)| ReaderRequest {
        page,
        method,
        language,
        user,
        wish,
        range,
        if_none_match: None,
    })
}

fn rules() -> impl Strategy<Value = Rules> {
    let word = prop_oneof![
        5 => Just(Word::MaxAge(10)),
        2 => Just(Word::MustRevalidate(10)),
        2 => Just(Word::SharedMaxAge(10)),
        3 => Just(Word::WhileRevalidating { max_age: 10, window: 10 }),
        2 => Just(Word::NoCache),
        2 => Just(Word::NoStore),
        2 => Just(Word::Private),
        1 => Just(Word::Silence),
        1 => Just(Word::MaxAge(0)),
    ];
    // The longest is longer than what is stored of one body when memory is short.
    let length = prop_oneof![6 => 0..600_usize, 2 => Just(9_000), 1 => Just(70_000)];
    (word, any::<bool>(), any::<bool>(), length).prop_map(|(word, by_language, greets, length)| Rules { word, by_language, greets, length })
}

fn treatment() -> impl Strategy<Value = Treatment> {
    prop_oneof![
        8 => Just(Treatment::Answer),
        3 => Just(Treatment::AnswerSlowly),
        1 => Just(Treatment::BreakOff),
        1 => Just(Treatment::Error),
        1 => Just(Treatment::HangUp),
    ]
}

struct World<'a> {
    disk: Option<&'a Path>,
    memory: u64,
    server: Server,
    shared: Arc<Shared>,
    workers: Vec<Rc<Pipeline>>,
    readers: Vec<JoinHandle<()>>,
    now: Arc<AtomicU64>,
    purges: Vec<Purge>,
    got: Rc<RefCell<Vec<Got>>>,
    judged: usize,
    asked: usize,
}

/// Plays a history and judges every answer in it.
pub(crate) fn play(memory: u64, disk: Option<&Path>, steps: &[Step]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, async {
        let mut world = World::new(memory, disk);
        for step in steps {
            if matches!(step, Step::End) {
                world = world.reborn().await;
            } else {
                world.happen(step);
            }
            world.settle().await;
        }
        world.end().await;
    });
}

impl<'a> World<'a> {
    fn new(memory: u64, disk: Option<&'a Path>) -> Self {
        let (server, now) = (Server::new(), Arc::new(AtomicU64::new(1_700_000_000_000)));
        let (shared, workers) = process(memory, disk, &server, &now);
        let (purges, readers, got) = (Vec::new(), Vec::new(), Rc::default());
        Self { disk, memory, server, shared, workers, readers, now, purges, got, judged: 0, asked: 0 }
    }

    /// Everything that was in memory is gone.
    async fn reborn(mut self) -> Self {
        self.readers.drain(..).for_each(|reader| reader.abort());
        self.server.forget();
        self.settle().await;
        self.asked = self.got.borrow().len();
        // The old process's hold on the folder ends with its last user.
        self.workers.clear();
        drop(std::mem::replace(&mut self.shared, Arc::new(Shared::new(StoreOptions::with_memory(self.memory), Clock::system()))));
        (self.shared, self.workers) = process(self.memory, self.disk, &self.server, &self.now);
        let state = self.shared.store.usage().disk;
        assert_eq!(state, if self.disk.is_some() { DiskState::Working } else { DiskState::Off }, "the folder is there again");
        self
    }

    fn happen(&mut self, step: &Step) {
        match step {
            Step::Ask { worker, asked, repeat } => (0..*repeat).for_each(|_| self.ask(*worker, asked.clone())),
            Step::AskAgain { worker } => {
                let last = self.got.borrow().last().and_then(|got| {
                    let tag =
                        got.headers.get(reader::TAG_AS_SENT).or_else(|| got.headers.get(http::header::ETAG))?.to_str().ok()?.to_owned();
                    Some(ReaderRequest { if_none_match: Some(tag), range: None, ..got.asked.clone() })
                });
                if let Some(asked) = last {
                    self.ask(*worker, asked);
                }
            }
            Step::Treat { place, treatment } => drop(self.server.treat(*place, *treatment, self.now())),
            Step::Finish => drop(self.server.finish_one()),
            Step::Edit { page, rules } => {
                let mut state = self.server.0.borrow_mut();
                state.pages[*page] = (state.pages[*page].0 + 1, *rules);
            }
            Step::Post { worker, page } => {
                let (language, user, wish, range, if_none_match) = (None, None, Wish::None, None, None);
                self.ask(*worker, ReaderRequest { page: *page, method: Method::POST, language, user, wish, range, if_none_match });
            }
            Step::Purge { page, hard } => {
                let order = {
                    let mut state = self.server.0.borrow_mut();
                    state.order += 1;
                    state.order
                };
                let url = |page| What::Url(Address::over(Scheme::Http, "site.example", &format!("/{page}")));
                let what = page.map_or(What::Everything, url);
                self.shared.purge(&Order::for_site("site", vec![what], *hard, Maker::Operator)).expect("the site's own");
                self.purges.push(Purge { page: *page, hard: *hard, order });
            }
            Step::Look => assert!(self.shared.look(), "nobody is busy"),
            Step::End => {}
            Step::Wait(millis) => drop(self.now.fetch_add(*millis, Ordering::Relaxed)),
        }
    }

    fn ask(&mut self, worker: usize, asked: ReaderRequest) {
        self.asked += 1;
        let order = self.server.0.borrow().order;
        let reader = reader::ask(Rc::clone(&self.workers[worker]), asked, (self.now(), order), Rc::clone(&self.got));
        self.readers.push(tokio::task::spawn_local(reader));
    }

    /// Lets everything happen that can without the origin, then judges what came of it.
    async fn settle(&mut self) {
        // With a disk, what its threads have done has to be taken up, and may bring them more to do: a few turns.
        for _ in 0..if self.disk.is_some() { 12 } else { 1 } {
            for _ in 0..200 {
                tokio::task::yield_now().await;
            }
            self.shared.store.settle_disk();
        }
        let got = self.got.borrow();
        for got in &got[self.judged..] {
            judge(got, &self.server.0.borrow().said, &self.purges, self.now());
            if got.asked.method == Method::POST && got.status.is_success() {
                // Its order is not known from outside; the purge of whoever writes to a page counts from its answer on.
                self.purges.push(Purge { page: Some(got.asked.page), hard: true, order: self.server.0.borrow().order });
            }
        }
        self.judged = got.len();
        // Forms are added by other threads.
        self.shared.workshop.wait_until_idle();
        let usage = self.shared.store.usage();
        let held: u64 =
            self.keys().filter_map(|key| self.shared.store.get(self.shared.store.hash(&key), &key)).map(|held| held.weight()).sum();
        assert_eq!(usage.bytes, held, "bytes accounted are bytes held: {usage:?}");
    }

    /// The origin answers everybody: then nobody waits any more, and nothing is left over.
    async fn end(mut self) {
        while !self.server.is_quiet() {
            while self.server.finish_one() || self.server.treat(0, Treatment::Answer, self.now()) {
                self.settle().await;
            }
        }
        self.settle().await;
        assert_eq!(self.got.borrow().len(), self.asked, "somebody still waits");
        let usage = self.shared.store.usage();
        assert_eq!((usage.growing_bytes, usage.flights, usage.followers), (0, 0, 0), "{usage:?}");
    }

    /// Every key that the readers' requests have.
    fn keys(&self) -> impl Iterator<Item = Vec<u8>> {
        let policy = Policy::new(Settings::preset(Kind::Generic));
        (0..PAGES).filter_map(move |page| {
            let (headers, path) = (http::HeaderMap::new(), format!("/{page}"));
            let fields = RequestFields::from_map(&headers);
            let authority = "site.example";
            let head = RequestHead { method: &Method::GET, scheme: Scheme::Http, authority, path: &path, query: None, fields: &fields };
            let mut key = Vec::new();
            matches!(policy.verdict(0, &head, &mut key), Verdict::Lookup(_)).then_some(key)
        })
    }

    fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }
}

/// A process: what its workers share, and the workers.
fn process(memory: u64, disk: Option<&Path>, server: &Server, now: &Arc<AtomicU64>) -> (Arc<Shared>, Vec<Rc<Pipeline>>) {
    let disk = disk.map(|folder| DiskOptions::new(folder.to_owned(), 1 << 30));
    let shared = Arc::new(Shared::open(StoreOptions::with_memory(memory), disk, Clock::Simulated(Arc::clone(now))));
    let worker = |_| Pipeline::new(Arc::clone(&shared), Arc::default(), Router::new(vec![site(server)]), Vec::new());
    let workers = (0..2).map(worker).collect();
    (shared, workers)
}

/// The pages of this site are short, and of no type.
fn everything() -> Compress {
    Compress { types: vec!["*".to_owned()], min_size: 0, ..Compress::default() }
}

fn site(server: &Server) -> Site {
    Site {
        id: 0,
        name: "site".to_owned(),
        hosts: Vec::new(),
        policy: Policy::new(Settings { compress: everything(), ..Settings::preset(Kind::Generic) }),
        origin: Rc::new(server.clone()),
        origin_host: None,
        object_max: 64 << 10,
        disk_object_max: 1 << 20,
        on_disk: true,
        is_shared: false,
        reader_wait_max: Duration::from_secs(60),
        origin_state: OriginState::default(),
        collapse: Collapse::new(Duration::from_secs(5), None),
        refill: Refill::default(),
        https: Https::default(),
        auth: None,
        logins: None,
        webhook_secret: None,
        schedule: None,
        fields: ResponseFields::default(),
        route: None,
        parts: Parts::default(),
    }
}
