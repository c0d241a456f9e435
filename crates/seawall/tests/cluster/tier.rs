//! The shared tier in a bucket: a page that one machine has fetched is fetched by no other, and no reader pays for a bucket that fails.

use std::{
    fs,
    io::{Result, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicU64, AtomicUsize,
            Ordering::{Relaxed, SeqCst},
        },
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use serde_json::json;
use tempfile::TempDir;
use testkit::{BUCKET, BUCKET_KEY, BUCKET_SECRET, Mood, MoodyBucket, weed, weed_arguments};

use crate::{
    engine::Engine,
    http::{Client, read_head},
    long,
    machine::{Door, Machine, ORIGIN_PORT, PORT, Setup, url_of},
    network::{Network, NetworkHost},
    process::{PATIENCE, Process, rest, until},
    scene::{ENGINE, MACHINES, lease_and_hold, tell},
};

/// The pages that a new machine is asked for; in a test that takes seconds, fewer.
const PAGES: usize = 5_000;
const FEW_PAGES: usize = 50;
/// The pages that are asked for before the bucket has them. 1,024 may wait.
const AT_ONCE: usize = 500;
/// The number of the storage, and of the machine that comes later, in the network.
const STORAGE: u8 = 31;
const LATE: (&str, u8) = ("d", 14);
/// The ports of the storage: S3 and its gRPC, the filer, the master, the volumes.
const PORTS: [u16; 8] = [8333, 18333, 8888, 18888, 9333, 19333, 8080, 18080];
/// The most time that a bucket may add to what the origin takes.
const ADDED_MAX: Duration = Duration::from_millis(60);

/// A SeaweedFS at a place of its own.
struct Storage {
    place: NetworkHost,
    _process: Process,
    _folder: TempDir,
}

impl Storage {
    fn start(place: NetworkHost) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let output = fs::File::create(folder.path().join("output")).expect("a file");
        let mut command = place.command(weed());
        command.args(weed_arguments(place.back(), PORTS, folder.path())).current_dir(folder.path()).env("HOME", folder.path());
        let process = Process::start(command.stdout(output.try_clone().expect("a file")).stderr(output));
        let storage = Self { place, _process: process, _folder: folder };
        let asked = |port: u16, line: &str| {
            let request = format!("{line} HTTP/1.1\r\nhost: {}\r\ncontent-length: 0\r\n\r\n", storage.place.back());
            Client::of(storage.place.back(), port, PATIENCE).ask(&request).map_or(0, |answer| answer.status)
        };
        // The bucket is a folder of the filer. Whoever comes without a signature is refused, and that is an answer.
        until("SeaweedFS answers", || {
            asked(PORTS[0], "GET /") == 403 && matches!(asked(PORTS[2], &format!("POST /buckets/{BUCKET}/")), 201 | 409)
        });
        storage
    }

    fn endpoint(&self) -> String {
        format!("http://{}:{}", self.place.back(), PORTS[0])
    }
}

/// An origin with as many pages as anybody asks for: each says which version it is.
struct Publisher {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    asked: AtomicU64,
    version: AtomicUsize,
    delay_ms: AtomicU64,
    ends: AtomicBool,
}

impl Publisher {
    fn start() -> Self {
        let state = Arc::new(State::default());
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

    fn takes(&self, time: Duration) {
        self.state.delay_ms.store(u64::try_from(time.as_millis()).expect("short"), Relaxed);
    }

    fn asked(&self) -> u64 {
        self.state.asked.load(Relaxed)
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.state.ends.store(true, SeqCst);
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
            let path = head.split(' ').nth(1).unwrap_or_default();
            // At its start, a machine looks whether its sites answer, and what their blogs are called.
            if path != "/" && !path.contains("/ghost/") {
                self.asked.fetch_add(1, Relaxed);
            }
            rest(Duration::from_millis(self.delay_ms.load(Relaxed)));
            let content = content_of(path, self.version.load(Relaxed));
            let fields = "cache-control: max-age=86400\r\ncontent-type: text/html";
            write!(stream, "HTTP/1.1 200 OK\r\n{fields}\r\ncontent-length: {}\r\n\r\n{content}", content.len())?;
        }
        Ok(())
    }
}

fn content_of(path: &str, version: usize) -> String {
    format!("{path} version {version}\n{}", "The same words again and again.\n".repeat(100))
}

/// Reads a page, which must be this version of it. Returns how long that took, and whether it came from the tier.
fn read(client: &mut Client, path: &str, version: usize) -> (Duration, bool) {
    let begun = Instant::now();
    let answer = client.ask(&request(path)).expect("an answer");
    let took = begun.elapsed();
    assert_eq!((answer.status, answer.text()), (200, content_of(path, version)), "{path}");
    (took, answer.field("cache-status").is_some_and(|status| status.contains("detail=tier")))
}

/// Has so many clients at each machine ask for a page, all at once. Returns the time until the last one has it.
fn crowd(doors: &[Door], clients: usize, path: &str) -> Duration {
    // One at each, then the next one at each; all have their connection before anybody asks.
    let mut crowd: Vec<Client> = (0..clients).flat_map(|_| doors.iter().map(client)).collect();
    for client in &mut crowd {
        client.connect().expect("a connection");
    }
    let begun = Instant::now();
    for client in &mut crowd {
        client.say(&request(path)).expect("said");
    }
    for client in &mut crowd {
        let answer = client.hear().expect("an answer");
        assert_eq!((answer.status, answer.text()), (200, content_of(path, 0)), "{path}");
    }
    begun.elapsed()
}

fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: blog.example\r\n\r\n")
}

fn client(door: &Door) -> Client {
    Client::of(door.address, PORT, PATIENCE)
}

fn count_of(door: &Door, name: &str) -> u64 {
    door.cluster().and_then(|state| state["tier"][name].as_u64()).unwrap_or_default()
}

/// Waits until a machine uses the tier.
fn is_in_use(door: &Door) {
    until(&format!("{} uses the tier", door.name), || {
        door.cluster().is_some_and(|state| state["leased"] == true && state["tier"]["open"] == false)
    });
}

fn setup(engine: &Engine, endpoint: &str) -> Setup {
    let (lease, hold) = lease_and_hold();
    let mut setup = Setup::joined(&url_of(&engine.place), lease, hold);
    let tier = format!(
        "tier = \"s3://{BUCKET}/seawall\"\ntier_endpoint = \"{endpoint}\"\ntier_key_id = \"{BUCKET_KEY}\"\ntier_secret_key = \"{BUCKET_SECRET}\"\n"
    );
    setup.cluster = setup.cluster.map(|cluster| cluster + &tier);
    // All clients come from one address.
    setup.own = "[limits]\nconnections_per_address = 2000\n".to_owned();
    setup
}

/// Returns the tier in the server itself.
fn in_the_server(engine: &Engine) -> Setup {
    let (lease, hold) = lease_and_hold();
    let mut setup = Setup::joined(&url_of(&engine.place), lease, hold);
    setup.cluster = setup.cluster.map(|cluster| cluster + "tier = \"valkey\"\n");
    setup
}

/// The machine that fetches a page for all is killed while it does: another one takes over when its lock has ended.
#[test]
fn the_death_of_the_machine_that_fetches_costs_one_more_request() {
    if !crate::network::is_possible() {
        return;
    }
    let mut network = Network::new();
    let engine = Engine::start(network.engine("valkey", ENGINE));
    let publisher = Publisher::start();
    let setup = in_the_server(&engine);
    let places: Vec<_> = MACHINES.iter().map(|(name, number)| (network.machine(name, *number), setup.clone())).collect();
    let mut machines = Machine::start_all(places.into_iter());
    let doors: Vec<Door> = machines.iter().map(Machine::door).collect();
    doors.iter().for_each(is_in_use);
    for round in 0..if long() { 5 } else { 1 } {
        publisher.takes(Duration::from_millis(1_500));
        let (path, before) = (format!("/slow/{round}"), publisher.asked());
        let mut lost = client(&doors[0]);
        lost.connect().expect("a connection");
        lost.say(&request(&path)).expect("said");
        until("the origin is asked", || publisher.asked() > before);
        let mut crowd: Vec<Client> = (0..10).flat_map(|_| doors[1..].iter().map(client)).collect();
        for client in &mut crowd {
            client.connect().expect("a connection");
            client.say(&request(&path)).expect("said");
        }
        let begun = Instant::now();
        machines[0].kill();
        for client in &mut crowd {
            let answer = client.hear().expect("an answer");
            assert_eq!((answer.status, answer.text()), (200, content_of(&path, 0)));
        }
        let asked = publisher.asked() - before;
        tell(&format!(
            "The machine that fetches is killed: {asked} requests at the origin; all others have the page after {:?}",
            begun.elapsed()
        ));
        assert!(asked <= 3, "{asked} requests");
        assert!(lost.hear().is_err(), "it was killed");
        publisher.takes(Duration::ZERO);
        machines[0].start_again();
        machines[0].is_leased();
    }
}

/// A crowd at three machines asks for one cold page: the origin is asked once. A machine that comes later, with nothing, takes at least 95 % of the pages
/// from the bucket.
#[test]
fn what_one_machine_has_fetched_a_new_one_takes_from_the_bucket() {
    if !crate::network::is_possible() {
        return;
    }
    let mut network = Network::new();
    let engine = Engine::start(network.engine("valkey", ENGINE));
    let storage = Storage::start(network.engine("storage", STORAGE));
    let publisher = Publisher::start();
    let setup = setup(&engine, &storage.endpoint());
    let places: Vec<_> = MACHINES.iter().map(|(name, number)| (network.machine(name, *number), setup.clone())).collect();
    let machines = Machine::start_all(places.into_iter());
    let doors: Vec<Door> = machines.iter().map(Machine::door).collect();
    doors.iter().for_each(is_in_use);

    publisher.takes(Duration::from_millis(300));
    // A machine waits 50 ms for an answer of the tier at most, and then asks the origin itself: on a busy machine, one round proves nothing.
    let mut rounds_of_one_request = 0;
    for round in 0..5 {
        let (clients, path, before) = (if long() { 1_000 } else { 10 }, format!("/cold/{round}"), publisher.asked());
        let took = crowd(&doors, clients, &path);
        let asked = publisher.asked() - before;
        tell(&format!(
            "A cold page, {clients} clients at each of {} machines: {asked} requests at the origin; slowest {took:?}",
            doors.len()
        ));
        assert!((1..=doors.len() as u64).contains(&asked), "{asked} requests: a machine asks once at most");
        rounds_of_one_request += usize::from(asked == 1);
        if rounds_of_one_request == if long() { 3 } else { 1 } {
            break;
        }
    }
    assert!(rounds_of_one_request > 0, "each machine asked the origin itself, every time");

    publisher.takes(Duration::ZERO);
    let pages = if long() { PAGES } else { FEW_PAGES };
    let mut first = client(&doors[0]);
    let written = || doors.iter().map(|door| count_of(door, "written")).sum::<u64>();
    let before = written();
    for page in 0..pages {
        // Not more at once than may wait to be written: a machine asks faster than a bucket takes.
        if page % AT_ONCE == 0 {
            until("the pages before are in the bucket", || written() >= before + page as u64);
        }
        read(&mut first, &format!("/{page}"), 0);
    }
    until("all pages are in the bucket", || written() >= before + pages as u64);
    let late = Machine::start(network.machine(LATE.0, LATE.1), &setup);
    let door = late.door();
    is_in_use(&door);
    let before = publisher.asked();
    let begun = Instant::now();
    let mut late = client(&door);
    let from_tier = (0..pages).filter(|page| read(&mut late, &format!("/{page}"), 0).1).count();
    let asked = publisher.asked() - before;
    tell(&format!(
        "A new machine: {pages} pages, {from_tier} from the bucket, {asked} from the origin, {:.1} s",
        begun.elapsed().as_secs_f64()
    ));
    assert!(asked * 20 <= pages as u64 && from_tier * 20 >= pages * 19, "{asked} of {pages} pages came from the origin");
}

/// Whatever the bucket does, each reader gets what the origin says now.
#[test]
fn a_bucket_that_is_slow_refuses_or_lies_costs_a_request_to_the_origin() {
    if !crate::network::is_possible() {
        return;
    }
    let mut network = Network::new();
    let engine = Engine::start(network.engine("valkey", ENGINE));
    let bucket = MoodyBucket::start_at([10, 78, 0, 1].into());
    let publisher = Publisher::start();
    let setup = setup(&engine, &bucket.endpoint());
    let places: Vec<_> = MACHINES[..2].iter().map(|(name, number)| (network.machine(name, *number), setup.clone())).collect();
    let machines = Machine::start_all(places.into_iter());
    let doors: Vec<Door> = machines.iter().map(Machine::door).collect();
    let pages = if long() { 100 } else { 5 };
    let origins = Duration::from_millis(if long() { 100 } else { 0 });
    for mood in [
        Mood::Silent,
        Mood::Refusing(403),
        Mood::Refusing(500),
        Mood::Refusing(503),
        Mood::Garbling,
        Mood::Confusing,
        Mood::Cutting,
        Mood::Breaking,
        Mood::Endless,
        Mood::Remembering,
    ] {
        bucket.becomes(Mood::Honest);
        doors.iter().for_each(is_in_use);
        publisher.takes(Duration::ZERO);
        let paths: Vec<String> = (0..pages).map(|page| format!("/{mood:?}/{page}").replace(['(', ')'], "")).collect();
        let mut first = client(&doors[0]);
        // Each page is written twice, so that there is an older one; a purge has covered that.
        for _ in 0..2 {
            let version = publisher.state.version.fetch_add(1, Relaxed) + 1;
            let written = count_of(&doors[0], "written");
            for path in &paths {
                let purge = json!({"url": format!("http://blog.example{path}")}).to_string();
                assert!(matches!(doors[0].admin("POST /purge", &purge), Some((200, _))), "{path}");
                read(&mut first, path, version);
            }
            until("the pages are in the bucket", || count_of(&doors[0], "written") >= written + pages as u64);
        }
        let version = publisher.state.version.load(Relaxed);
        let refused = count_of(&doors[1], "refused");
        bucket.becomes(mood);
        publisher.takes(origins);
        let mut second = client(&doors[1]);
        let mut took: Vec<Duration> = paths
            .iter()
            .map(|path| {
                let (took, from_tier) = read(&mut second, path, version);
                assert!(!from_tier, "{mood:?}: {path}");
                took
            })
            .collect();
        took.sort_unstable();
        let slowest = took[took.len() - 1];
        let refused = count_of(&doors[1], "refused") - refused;
        tell(&format!(
            "{mood:?}: {pages} pages, {refused} refused; p50 {:?}, slowest {slowest:?}, the origin takes {origins:?}",
            took[took.len() / 2]
        ));
        let lies = matches!(mood, Mood::Garbling | Mood::Confusing | Mood::Cutting | Mood::Endless | Mood::Remembering);
        assert!(!lies || refused > 0, "{mood:?}: nothing was refused");
        if long() {
            assert!(slowest <= origins + ADDED_MAX, "{mood:?}: {slowest:?}");
        }
    }
}
