//! Killed at any instant: what had been stored is served by the next start, what had been purged is not, and nothing is ever damaged.
//!
//! The real binary, killed with SIGKILL in the middle of its work. `SEAWALL_CRASHES=200 cargo test -p seawall --test crash` does it more often.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

use std::{
    collections::BTreeSet,
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst},
    },
    thread,
};

/// Pages of the site. The last of them are edited.
const PAGES: usize = 40;
const EDITED: usize = 30;
/// Clients that load the server until it is killed.
const CLIENTS: u64 = 3;

#[test]
fn killed_at_any_instant_it_serves_what_was_stored_and_nothing_that_was_purged() {
    let rounds = std::env::var("SEAWALL_CRASHES").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(8);
    let folder = tempfile::tempdir().expect("a folder");
    let site = Site::start();
    let mut random = Random(0x5eed);
    let mut served = 0;
    for round in 0..rounds {
        let stored = pages_on_disk(folder.path());
        let server = Server::start(&site, folder.path());
        // The origin has nothing now, so only what is stored can be served.
        site.has_pages.store(false, SeqCst);
        for page in 0..PAGES {
            let answer = ask(server.address, "GET", page).expect("an answer");
            if answer.status == 200 {
                site.judge(page, &answer, "from the disk");
                served += 1;
            } else {
                assert_eq!(answer.status, 404, "round {round}, page {page}");
                assert!(page >= EDITED || !stored.contains(&page), "round {round}: page {page} was on the disk, and is lost");
            }
        }
        site.has_pages.store(true, SeqCst);
        load(&server, &site, &mut random);
        drop(server);
    }
    assert!(served > rounds, "the disk has served {served} pages: the test would prove nothing");
}

/// Readers and a writer, until the server is killed after a random number of answers.
fn load(server: &Server, site: &Arc<Site>, random: &mut Random) {
    let answers = Arc::new(AtomicUsize::new(0));
    let enough = usize::try_from(random.below(120)).unwrap() + 1;
    let stop = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (answers, stop, site, address) = (Arc::clone(&answers), Arc::clone(&stop), Arc::clone(site), server.address);
            let mut random = Random(random.next() ^ client);
            thread::spawn(move || {
                while !stop.load(SeqCst) {
                    let page = usize::try_from(random.below(PAGES as u64)).unwrap();
                    if page >= EDITED && random.below(3) == 0 {
                        // Acknowledged once its answer is here; before that, either version will do.
                        let version = site.versions[page].fetch_add(1, SeqCst) + 1;
                        if ask(address, "POST", page).is_some_and(|answer| answer.status == 200) {
                            site.acknowledged[page].fetch_max(version, SeqCst);
                        }
                    } else {
                        let least = site.acknowledged[page].load(SeqCst);
                        if let Some(answer) = ask(address, "GET", page).filter(|answer| answer.status == 200) {
                            assert!(site.version(page, &answer) >= least, "page {page} is older than its acknowledged edit");
                        }
                    }
                    answers.fetch_add(1, SeqCst);
                }
            })
        })
        .collect();
    while answers.load(SeqCst) < enough {
        thread::yield_now();
    }
    server.kill();
    stop.store(true, SeqCst);
    for client in clients {
        client.join().expect("a client");
    }
}

/// The site behind: pages that say which version they are.
struct Site {
    address: SocketAddr,
    has_pages: AtomicBool,
    versions: [AtomicU32; PAGES],
    acknowledged: [AtomicU32; PAGES],
}

impl Site {
    fn start() -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let zero = [const { AtomicU32::new(0) }; PAGES];
        let site = Arc::new(Self {
            address,
            has_pages: AtomicBool::new(true),
            versions: zero,
            acknowledged: [const { AtomicU32::new(0) }; PAGES],
        });
        let serving = Arc::clone(&site);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let site = Arc::clone(&serving);
                thread::spawn(move || site.serve(stream));
            }
        });
        site
    }

    /// Serves connections with one request each.
    fn serve(&self, mut stream: TcpStream) {
        let Some((method, page)) = read_head(&mut stream) else { return };
        if !self.has_pages.load(SeqCst) {
            let _ =
                stream.write_all(b"HTTP/1.1 404 Not Found\r\ncache-control: no-store\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            return;
        }
        let content = if method == "GET" { content(page, self.versions[page].load(SeqCst)) } else { Vec::new() };
        let head =
            format!("HTTP/1.1 200 OK\r\ncache-control: max-age=86400\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", content.len());
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&content));
    }

    /// Checks that a page is whole, and no older than its last acknowledged edit.
    fn judge(&self, page: usize, answer: &Answer, when: &str) {
        let version = self.version(page, answer);
        let least = self.acknowledged[page].load(SeqCst);
        assert!(version >= least, "page {page} {when}: version {version}, edited to {least}");
    }

    fn version(&self, page: usize, answer: &Answer) -> u32 {
        let text = String::from_utf8_lossy(&answer.content);
        let version = text.split(' ').nth(1).and_then(|version| version.parse().ok()).unwrap_or_else(|| panic!("page {page}: {text:.80}"));
        assert!(answer.content == content(page, version), "page {page} is damaged");
        version
    }
}

/// Returns the content of a page, whose length differs from page to page.
fn content(page: usize, version: u32) -> Vec<u8> {
    let line = format!("page{page} {version} ");
    line.bytes().cycle().take(100 + page * 700).collect()
}

fn read_head(stream: &mut TcpStream) -> Option<(String, usize)> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head);
    let mut words = head.split(' ');
    let method = words.next()?.to_owned();
    Some((method, words.next()?.strip_prefix("/p/")?.parse().ok()?))
}

/// The binary, with its cache in a folder. Dropping it kills it.
struct Server {
    child: std::sync::Mutex<Child>,
    address: SocketAddr,
}

impl Server {
    fn start(site: &Site, cache: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_seawall"))
            .args(["serve", &format!("http://{}", site.address), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--workers", "1"])
            .arg("--cache-dir")
            .arg(cache)
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("the server starts");
        let address = testkit::told_address(&mut child);
        Self { child: std::sync::Mutex::new(child), address }
    }

    fn kill(&self) {
        let mut child = self.child.lock().expect("the child");
        let _ = child.kill();
        child.wait().expect("it ends");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

struct Answer {
    status: u16,
    content: Vec<u8>,
}

/// Asks for a page. Returns `None` if the connection broke off.
fn ask(address: SocketAddr, method: &str, page: usize) -> Option<Answer> {
    let mut stream = TcpStream::connect(address).ok()?;
    let request = format!("{method} /p/{page} HTTP/1.1\r\nhost: site.example\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    let request = if method == "GET" { request.replace("content-length: 0\r\n", "") } else { request };
    stream.write_all(request.as_bytes()).ok()?;
    let mut whole = Vec::new();
    stream.read_to_end(&mut whole).ok()?;
    let end = whole.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&whole[..end]).to_ascii_lowercase();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    let content = whole.split_off(end);
    (length.is_none_or(|length| length == content.len())).then_some(Answer { status, content })
}

/// Returns the pages that had been written to their end: they carry their own address. One that was being written in a pack has a label and
/// no footer.
fn pages_on_disk(folder: &Path) -> BTreeSet<usize> {
    let mut pages = BTreeSet::new();
    let mut folders = vec![folder.join("objects")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
                continue;
            }
            let bytes = fs::read(entry.path()).unwrap_or_default();
            let labels = (0..bytes.len()).step_by(4096).filter(|at| bytes[*at..].starts_with(b"seapack\x1a"));
            let entries: Vec<&[u8]> = labels.filter_map(|at| whole_entry(&bytes[at..])).collect();
            let is_pack = folder.ends_with("packs");
            pages.extend(if is_pack { entries } else { vec![&bytes[..]] }.into_iter().filter_map(page_of));
        }
    }
    pages
}

/// Returns what stands behind a label of a pack, if it is there to its footer of 64 bytes.
fn whole_entry(bytes: &[u8]) -> Option<&[u8]> {
    let length = u32::from_le_bytes(bytes.get(8..12)?.try_into().ok()?) as usize;
    let entry = bytes.get(48..48 + length)?;
    entry.get(length.checked_sub(64)?..)?.starts_with(b"seawall\x1a").then_some(entry)
}

fn page_of(bytes: &[u8]) -> Option<usize> {
    let at = bytes.windows(3).position(|window| window == b"/p/")?;
    let digits: String = bytes[at + 3..].iter().map(|&b| char::from(b)).take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// A sequence that is the same every time (xorshift64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}
