//! A network of namespaces: a city with the readers and the origin, and a place for each machine and each Valkey, all joined by two bridges.
//!
//! | bridge | addresses | who |
//! |---|---|---|
//! | `front` | 10.77.0.N | readers, origin, machines |
//! | `back` | 10.78.0.N | machines, Valkey; the city too, which looks and meddles |
//!
//! A place is cut off by taking its end of `back` down: whoever sends gets no answer, not even a refusal. It is cut off one way by a neighbour
//! that does not exist: what it sends goes nowhere, what is sent to it arrives.

use std::{
    fs::{self, File},
    io::Write as _,
    net::Ipv4Addr,
    os::fd::AsFd as _,
    path::PathBuf,
    process::{Command, Stdio},
    sync::{
        Condvar, Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::process::bare;

/// The number of networks at a time. Leases of a second need some of the processor.
const AT_A_TIME: usize = 2;

static RUNNING: Mutex<usize> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// A hardware address that nobody has.
const NOBODY: &str = "02:de:ad:00:00:01";

/// A network. The thread that makes it, and whatever that starts, are in its city.
#[derive(Debug)]
pub(crate) struct Network {
    prefix: String,
    spaces: Vec<String>,
    outside: File,
}

/// Returns whether this machine lets networks be made, which needs root (CAP_SYS_ADMIN, CAP_NET_ADMIN). Where it does not, nothing is judged by a test that
/// takes seconds, and it says so; `make spec-cluster` fails there.
#[expect(clippy::disallowed_macros, reason = "it is for whoever reads what the tests print")]
pub(crate) fn is_possible() -> bool {
    static POSSIBLE: OnceLock<bool> = OnceLock::new();
    *POSSIBLE.get_or_init(|| {
        let space = format!("seawall-try-{}", std::process::id());
        let works = |args: &[&str]| bare("ip").args(args).output().is_ok_and(|done| done.status.success());
        let possible = works(&["netns", "add", &space])
            && works(&["-netns", &space, "link", "add", "name", "one", "type", "veth", "peer", "name", "two"]);
        works(&["netns", "delete", &space]);
        assert!(possible || !crate::long(), "this machine lets no networks be made: run the tests as root, with iproute2");
        if !possible {
            eprintln!("NOT JUDGED: this machine lets no networks be made (root and iproute2 are needed)");
        }
        possible
    })
}

impl Network {
    /// Makes a network, and moves this thread to its city. Waits while too many others are there.
    pub(crate) fn new() -> Self {
        {
            let mut running = RUNNING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            while *running >= AT_A_TIME {
                running = ENDED.wait(running).unwrap_or_else(std::sync::PoisonError::into_inner);
            }
            *running += 1;
        }
        remove_abandoned();
        let outside = File::open("/proc/thread-self/ns/net").expect("this thread's network");
        let prefix = format!("seawall-{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
        let mut network = Self { prefix, spaces: Vec::new(), outside };
        let city = network.add_space("city");
        network.ip(
            &city,
            "link set lo up\n\
             link add front type bridge forward_delay 0\nlink set front up\naddress add 10.77.0.1/24 dev front\n\
             link add back type bridge forward_delay 0\nlink set back up\naddress add 10.78.0.1/24 dev back\n",
        );
        let space = File::open(file_of(&city)).expect("a namespace has a file");
        move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network)).expect("this thread moves to the city");
        network
    }

    /// Adds a place for a machine: it has both bridges.
    pub(crate) fn machine(&mut self, name: &str, number: u8) -> NetworkHost {
        self.place(name, number, true)
    }

    /// Adds a place for a Valkey: readers and origin cannot be reached from there.
    pub(crate) fn engine(&mut self, name: &str, number: u8) -> NetworkHost {
        self.place(name, number, false)
    }

    fn place(&mut self, name: &str, number: u8, in_front: bool) -> NetworkHost {
        let space = self.add_space(name);
        let city = format!("{}-city", self.prefix);
        self.ip(&space, "link set lo up\n");
        for (bridge, net) in [("front", 77), ("back", 78)].into_iter().filter(|(bridge, _)| in_front || *bridge == "back") {
            let link = format!("{name}-{}", &bridge[..1]);
            self.ip(
                &city,
                &format!(
                    "link add {link} type veth peer name {bridge} netns {space}\nlink set {link} master {bridge}\nlink set {link} up\n"
                ),
            );
            self.ip(&space, &format!("address add 10.{net}.0.{number}/24 dev {bridge}\nlink set {bridge} up\n"));
        }
        NetworkHost { city, space, name: name.to_owned(), number }
    }

    fn add_space(&mut self, name: &str) -> String {
        let space = format!("{}-{name}", self.prefix);
        let made = bare("ip").args(["netns", "add", &space]).output().expect("ip, of iproute2");
        let said = String::from_utf8_lossy(&made.stderr).into_owned();
        assert!(made.status.success(), "no network namespace can be made, which needs root (CAP_SYS_ADMIN, CAP_NET_ADMIN): {said}");
        self.spaces.push(space.clone());
        space
    }

    #[expect(clippy::unused_self, reason = "it is the network that is changed")]
    fn ip(&self, space: &str, lines: &str) {
        ip(space, lines);
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = move_into_link_name_space(self.outside.as_fd(), Some(LinkNameSpaceType::Network));
        for space in &self.spaces {
            let _ = bare("ip").args(["netns", "delete", space]).output();
        }
        let mut running = RUNNING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *running -= 1;
        ENDED.notify_one();
    }
}

/// A place in the network: a namespace with an address.
#[derive(Debug, Clone)]
pub(crate) struct NetworkHost {
    city: String,
    space: String,
    pub(crate) name: String,
    number: u8,
}

impl NetworkHost {
    /// The address at which readers and the origin are.
    pub(crate) const CITY: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

    /// Returns the address for readers.
    pub(crate) const fn front(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, 0, self.number)
    }

    /// Returns the address between machines and Valkey.
    pub(crate) const fn back(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 78, 0, self.number)
    }

    /// Makes a command that runs here.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = bare("nsenter");
        command.arg(format!("--net={}", file_of(&self.space).display())).arg("--").arg(program);
        command
    }

    /// Cuts this place off from Valkey, both ways.
    pub(crate) fn cut(&self) {
        ip(&self.city, &format!("link set {}-b down\n", self.name));
    }

    /// Joins it again.
    pub(crate) fn join(&self) {
        ip(&self.city, &format!("link set {}-b up\n", self.name));
    }

    /// Lets nothing arrive at `other` any more that is sent here. What `other` sends arrives.
    pub(crate) fn mute_towards(&self, other: &Self) {
        ip(&self.space, &format!("neighbour replace {} lladdr {NOBODY} dev back nud permanent\n", other.back()));
    }

    /// Ends that.
    pub(crate) fn unmute_towards(&self, other: &Self) {
        ip(&self.space, &format!("neighbour delete {} dev back\n", other.back()));
    }
}

fn file_of(space: &str) -> PathBuf {
    PathBuf::from("/run/netns").join(space)
}

fn ip(space: &str, lines: &str) {
    let mut command = bare("ip");
    command.args(["-netns", space, "-batch", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("ip, of iproute2");
    child.stdin.take().expect("piped").write_all(lines.as_bytes()).expect("ip reads");
    let output = child.wait_with_output().expect("ip ends");
    assert!(output.status.success(), "in {space}: {lines}{}", String::from_utf8_lossy(&output.stderr));
}

/// Removes the namespaces of tests that were killed.
fn remove_abandoned() {
    let Ok(spaces) = fs::read_dir("/run/netns") else { return };
    for space in spaces.flatten() {
        let name = space.file_name().to_string_lossy().into_owned();
        let Some(pid) = name.strip_prefix("seawall-").and_then(|rest| rest.split('-').next()) else { continue };
        if !PathBuf::from("/proc").join(pid).exists() {
            let _ = bare("ip").args(["netns", "delete", &name]).output();
        }
    }
}
