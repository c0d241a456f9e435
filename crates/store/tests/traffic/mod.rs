//! Traffic as a blog sees it, and a plain LRU to compare with. Seeded: the same seed is the same traffic, request for request.
//!
//! Readers ask for old posts by a Zipf distribution and for new ones because they are new, and every post grows older as others appear.
//! Now and then a crawler walks through the whole site, one page after another, among the readers. Sizes are log-normal, as the sizes of
//! files on web servers are (Crovella and Bestavros 1997, for all but their tail).

#![expect(clippy::cast_possible_truncation, reason = "sizes and ranks are far below what an f64 counts exactly")]

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use store::{Record, Scope, Store, StoreOptions, Stored};

/// The way in which a blog is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Traffic {
    /// The seed of all random numbers.
    pub(crate) seed: u64,
    /// The number of posts at the end; three quarters of them are there at the beginning.
    pub(crate) pages: usize,
    /// The number of readers' requests.
    pub(crate) requests: usize,
    /// The exponent of the Zipf distribution.
    pub(crate) zipf: f64,
    /// The number of times that the crawler comes.
    pub(crate) crawls: usize,
}

/// A request: who asks for which page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    /// The page's number: posts are numbered as they appear.
    pub(crate) page: usize,
    /// Whether it is the crawler. Its requests are made, but do not count.
    pub(crate) crawler: bool,
}

impl Traffic {
    /// Returns the bytes of every page.
    pub(crate) fn sizes(&self) -> Vec<usize> {
        let mut random = Random(self.seed ^ 0x517e);
        // Median 12 KiB, mean about 20 KiB: posts of a blog with its pictures kept elsewhere.
        (0..self.pages).map(|_| ((9.4 + random.normal()).exp() as usize).clamp(512, 512 << 10)).collect()
    }

    /// Returns the requests, in order.
    pub(crate) fn requests(&self) -> Vec<Request> {
        let mut random = Random(self.seed);
        let first = self.pages * 3 / 4;
        let evergreen = Zipf::new(self.pages, self.zipf);
        let news = Zipf::new(64.min(first), 1.0);
        // Which posts are the lasting ones is independent of their age.
        let mut order: Vec<usize> = (0..self.pages).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, random.below(at + 1));
        }
        let mut requests = Vec::new();
        let between = self.requests / (self.crawls + 1);
        let mut crawler = 0..0;
        for n in 0..self.requests {
            let published = first + (self.pages - first) * n / self.requests;
            if n > 0 && n % between == 0 {
                crawler = 0..published;
            }
            let page = if random.unit() < 0.3 { published - 1 - news.draw(&mut random) } else { order[evergreen.draw(&mut random)] };
            // A page that is not there yet is not asked for.
            requests.push(Request { page: page % published, crawler: false });
            requests.extend(crawler.next().map(|page| Request { page, crawler: true }));
        }
        requests
    }
}

/// The readers' share of hits, and the share of their bytes that came from hits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ratio {
    /// The hits per request.
    pub(crate) requests: f64,
    /// The bytes of hits per byte.
    pub(crate) bytes: f64,
}

/// The data of a page beside its body: about as much as the server keeps.
#[derive(Debug)]
struct Head;

impl Record for Head {
    fn weight(&self) -> usize {
        400
    }

    fn encode(&self, _: &mut Vec<u8>) {}

    fn decode(_: &[u8]) -> Option<Self> {
        Some(Self)
    }
}

static BODY: [u8; 512 << 10] = [b'x'; 512 << 10];

/// Returns the hit ratio of the memory tier, with `memory` bytes.
pub(crate) fn memory_tier(requests: &[Request], sizes: &[usize], memory: u64) -> Ratio {
    let store: Store<Head, ()> = Store::new(StoreOptions::with_memory(memory));
    ratio(requests, sizes, |page| {
        let key = format!("0\0blog.example/posts/{page}/");
        let hash = store.hash(key.as_bytes());
        let hit = store.get(hash, key.as_bytes()).is_some();
        if !hit {
            let stored = Stored::new(Head, Bytes::from_static(&BODY[..sizes[page]]), store.generation(), Scope::default());
            store.insert(hash, key.as_bytes(), stored, |_| true);
        }
        hit
    })
}

/// Returns the weight of a stored page in the memory tier beside its body: the comparison is between two ways of choosing, not of weighing.
fn overhead() -> usize {
    let store: Store<Head, ()> = Store::new(StoreOptions::with_memory(1 << 20));
    let key = b"0\0blog.example/posts/1000/";
    store.insert(store.hash(key), key, Stored::new(Head, Bytes::new(), store.generation(), Scope::default()), |_| true);
    usize::try_from(store.usage().bytes).expect("a few hundred bytes")
}

/// Returns the hit ratio of a plain LRU, with as many bytes.
pub(crate) fn lru(requests: &[Request], sizes: &[usize], memory: u64) -> Ratio {
    let overhead = overhead();
    let (mut used, mut last_use, mut by_use) = (0, HashMap::new(), BTreeMap::new());
    let mut now = 0_u64;
    ratio(requests, sizes, |page| {
        now += 1;
        let before = last_use.insert(page, now);
        by_use.insert(now, page);
        if let Some(before) = before {
            by_use.remove(&before);
            return true;
        }
        used += sizes[page] + overhead;
        while used as u64 > memory {
            let Some((_, oldest)) = by_use.pop_first() else { break };
            last_use.remove(&oldest);
            used -= sizes[oldest] + overhead;
        }
        false
    })
}

fn ratio(requests: &[Request], sizes: &[usize], mut is_hit: impl FnMut(usize) -> bool) -> Ratio {
    let (mut asked, mut hits, mut bytes, mut hit_bytes) = (0, 0, 0, 0);
    for (n, request) in requests.iter().enumerate() {
        let hit = is_hit(request.page);
        // The first tenth fills the cache.
        if request.crawler || n < requests.len() / 10 {
            continue;
        }
        asked += 1;
        bytes += sizes[request.page];
        if hit {
            hits += 1;
            hit_bytes += sizes[request.page];
        }
    }
    Ratio { requests: f64::from(hits) / f64::from(asked), bytes: hit_bytes as f64 / bytes as f64 }
}

/// A random number generator: SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// Returns a number between 0 and 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, end: usize) -> usize {
        ((self.unit() * end as f64) as usize).min(end - 1)
    }

    /// Returns a normally distributed number, by Box and Muller.
    fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.unit()).ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// A Zipf distribution of ranks, the first one the most likely.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(count: usize, exponent: f64) -> Self {
        let mut sum = 0.0;
        let sums = (1..=count).map(|rank| {
            sum += (rank as f64).powf(-exponent);
            sum
        });
        Self(sums.collect())
    }

    fn draw(&self, random: &mut Random) -> usize {
        let at = random.unit() * self.0.last().copied().unwrap_or_default();
        self.0.partition_point(|sum| *sum < at).min(self.0.len() - 1)
    }
}
