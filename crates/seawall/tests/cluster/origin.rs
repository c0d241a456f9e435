//! The origin: pages that say which version they are, tags on each, writes that change them, and a Ghost's signals.

use std::{
    io::{Result, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{
            AtomicBool, AtomicU64, AtomicUsize,
            Ordering::{Relaxed, SeqCst},
        },
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use crate::{
    http::{field, read_exactly, read_head},
    ledger::{Change, GHOST, GROUPS, Ledger, page_at},
    machine::ORIGIN_PORT,
    network::NetworkHost,
    process::rest,
};

/// The longest time that a page is held back for a test.
const HELD_AT_MOST: Duration = Duration::from_secs(60);

/// The time that it takes for a page below `/slow/`.
const SLOW: Duration = Duration::from_millis(200);

/// An origin in the city of a network. When it is dropped, its port refuses.
#[derive(Debug)]
pub(crate) struct Origin {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct State {
    ledger: Arc<Ledger>,
    ends: AtomicBool,
    fails: AtomicBool,
    delay_ms: AtomicU64,
    asked: AtomicU64,
    confirmed: AtomicU64,
    held: Mutex<Option<usize>>,
    let_go: Condvar,
    waiting: AtomicUsize,
    /// The requests that are answered slowly right now, and the most at once.
    slow: AtomicUsize,
    slow_max: AtomicUsize,
}

impl Origin {
    /// Starts it for a ledger, in the network of this thread.
    pub(crate) fn start(ledger: &Arc<Ledger>) -> Self {
        let state = Arc::new(State {
            ledger: Arc::clone(ledger),
            ends: AtomicBool::new(false),
            fails: AtomicBool::new(false),
            delay_ms: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            confirmed: AtomicU64::new(0),
            held: Mutex::new(None),
            let_go: Condvar::new(),
            waiting: AtomicUsize::new(0),
            slow: AtomicUsize::new(0),
            slow_max: AtomicUsize::new(0),
        });
        let listener = TcpListener::bind((NetworkHost::CITY, ORIGIN_PORT)).expect("a namespace of its own");
        let serving = Arc::clone(&state);
        let thread = thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                if serving.ends.load(SeqCst) {
                    return;
                }
                let state = Arc::clone(&serving);
                thread::spawn(move || drop(state.serve(connection)));
            }
        });
        Self { state, thread: Some(thread) }
    }

    /// Takes so long for each page, after it has looked what version it is.
    pub(crate) fn takes(&self, time: Duration) {
        self.state.delay_ms.store(u64::try_from(time.as_millis()).expect("short"), Relaxed);
    }

    /// Answers every request with 503, or no longer.
    pub(crate) fn fails(&self, it_does: bool) {
        self.state.fails.store(it_does, SeqCst);
    }

    /// Holds answers with a page back, after it has looked what version it is.
    pub(crate) fn hold(&self, page: usize) {
        *self.state.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(page);
    }

    /// Lets them go.
    pub(crate) fn let_go(&self) {
        *self.state.held.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.state.let_go.notify_all();
    }

    /// Returns how many answers are held back.
    pub(crate) fn waiting(&self) -> usize {
        self.state.waiting.load(SeqCst)
    }

    /// Returns the most requests below `/slow/` that it had at once since the last call.
    pub(crate) fn most_at_once(&self) -> usize {
        self.state.slow_max.swap(0, SeqCst)
    }

    /// Returns how often it was asked for a page.
    pub(crate) fn asked(&self) -> u64 {
        self.state.asked.load(Relaxed)
    }

    /// Returns how often of that it only had to confirm a version.
    pub(crate) fn confirmed(&self) -> u64 {
        self.state.confirmed.load(Relaxed)
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.state.ends.store(true, SeqCst);
        self.let_go();
        // It looks at the order when somebody comes.
        drop(TcpStream::connect((NetworkHost::CITY, ORIGIN_PORT)));
        drop(self.thread.take().map(JoinHandle::join));
    }
}

impl State {
    fn serve(&self, mut stream: TcpStream) -> Result<()> {
        stream.set_nodelay(true)?;
        let mut bytes = Vec::new();
        while let Some(head) = read_head(&mut stream, &mut bytes)? {
            if self.ends.load(SeqCst) {
                return Ok(());
            }
            let length = field(&head, "content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
            read_exactly(&mut stream, &mut bytes, length)?;
            let mut words = head.split(' ');
            let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let answer = if self.fails.load(SeqCst) {
                "HTTP/1.1 503 Service Unavailable\r\ncache-control: no-store\r\ncontent-length: 0\r\n\r\n".to_owned()
            } else {
                match (method, page_at(path)) {
                    ("GET", _) if path.starts_with("/slow/") => self.slow(),
                    ("GET" | "HEAD", Some(page)) => self.page(page, &head),
                    ("POST", Some(page)) => written(&self.ledger.change([page]), ""),
                    ("PUT", _) if path.starts_with("/ghost/api/admin/posts/") => self.edited(path),
                    _ => "HTTP/1.1 404 Not Found\r\ncache-control: no-store\r\ncontent-length: 0\r\n\r\n".to_owned(),
                }
            };
            let end = if method == "HEAD" { answer.find("\r\n\r\n").map_or(answer.len(), |end| end + 4) } else { answer.len() };
            stream.write_all(&answer.as_bytes()[..end])?;
        }
        Ok(())
    }

    /// Takes its time for a page that is nobody's to keep.
    fn slow(&self) -> String {
        let now = self.slow.fetch_add(1, SeqCst) + 1;
        self.slow_max.fetch_max(now, SeqCst);
        rest(SLOW);
        self.slow.fetch_sub(1, SeqCst);
        "HTTP/1.1 200 OK\r\ncache-control: no-store\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n\r\nslow".to_owned()
    }

    fn page(&self, page: usize, head: &str) -> String {
        self.asked.fetch_add(1, Relaxed);
        let version = self.ledger.version(page);
        // Old content on its way while a purge overtakes it.
        let delay = self.delay_ms.load(Relaxed);
        if delay > 0 {
            rest(Duration::from_millis(delay));
        }
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if *held == Some(page) {
            self.waiting.fetch_add(1, SeqCst);
            while *held == Some(page) {
                let (back, waited) = self.let_go.wait_timeout(held, HELD_AT_MOST).unwrap_or_else(PoisonError::into_inner);
                held = back;
                assert!(!waited.timed_out(), "page {page} is held for good");
            }
            self.waiting.fetch_sub(1, SeqCst);
        }
        drop(held);
        // No Date: the clocks of the machines differ on purpose.
        let tag = format!("\"{page}-{version}\"");
        let fields = format!(
            "cache-control: max-age=86400\r\netag: {tag}\r\nsurrogate-key: page-{page} group-{}\r\ncontent-type: text/html\r\n",
            page % GROUPS
        );
        if field(head, "if-none-match").is_some_and(|tags| tags.contains(&tag)) {
            self.confirmed.fetch_add(1, Relaxed);
            return format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n");
        }
        let content = format!("page {page} version {version}\n{}", "The same words again and again.\n".repeat(20));
        format!("HTTP/1.1 200 OK\r\n{fields}content-length: {}\r\n\r\n{content}", content.len())
    }

    /// Answers an editor of the Ghost: `/ghost/api/admin/posts/NUMBER/` changes that page, `.../all/` all.
    fn edited(&self, path: &str) -> String {
        let post = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        match post.parse().ok().filter(|page| GHOST.contains(page)) {
            Some(page) => written(&self.ledger.change([page]), &format!("x-cache-invalidate: {}\r\n", crate::ledger::path_of(page))),
            None => written(&self.ledger.change(GHOST), "x-cache-invalidate: /*\r\n"),
        }
    }
}

/// Returns the answer to a write, which names what it has changed.
fn written(change: &Change, fields: &str) -> String {
    let changed: Vec<String> = change.iter().map(|(page, version)| format!("{page}={version}")).collect();
    let changed = changed.join(" ");
    format!("HTTP/1.1 200 OK\r\nx-changed: {changed}\r\n{fields}content-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}")
}

/// Reads what [`written`] has said.
pub(crate) fn changed(answer: &crate::http::Answer) -> Change {
    let named = answer.field("x-changed").unwrap_or_default();
    named
        .split(' ')
        .filter_map(|one| one.split_once('='))
        .filter_map(|(page, version)| Some((page.parse().ok()?, version.parse().ok()?)))
        .collect()
}
