//! A tap between Seawall and Ghost: it counts what reaches Ghost, holds answers back, and lets nothing through when told so.
//!
//! It relays bytes. The only thing that it changes is `Connection: close`, so that one connection is one request.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use super::client::PATIENCE;

/// A head longer than this is a fault of the test.
const HEAD_BYTES_MAX: usize = 256 << 10;

/// The number of bytes of a request's content that are kept for tests to look at.
const KEPT_CONTENT_BYTES_MAX: usize = 1 << 20;

pub(crate) struct Tap {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    listening: Option<(JoinHandle<()>, Arc<AtomicBool>)>,
}

struct Shared {
    ghost: SocketAddr,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    seen: Vec<Seen>,
    held: Vec<Held>,
    way: Way,
    is_counting_at_once: bool,
    at_once: usize,
    most_at_once: usize,
}

/// Says what happens to the next request.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Way {
    #[default]
    Open,
    /// The request is taken and never answered.
    Hangs,
}

/// A request that came from Seawall.
#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) head: String,
    pub(crate) content: Vec<u8>,
}

struct Held {
    target: String,
    state: Hold,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Hold {
    Waits,
    Asked,
    Answered,
    Released,
}

/// The answer to the next request for a target, which Ghost gives at once and Seawall gets when it is released.
pub(crate) struct HeldAnswer<'a> {
    tap: &'a Tap,
    number: usize,
}

impl Tap {
    pub(crate) fn start(address: SocketAddr, ghost: SocketAddr) -> Self {
        let shared = Arc::new(Shared { ghost, state: Mutex::default(), changed: Condvar::new() });
        let mut tap = Self { address, shared, listening: None };
        tap.listen();
        tap
    }

    /// Takes connections again.
    pub(crate) fn listen(&mut self) {
        if self.listening.is_some() {
            return;
        }
        let listener = TcpListener::bind(self.address).expect("the port is the tap's");
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, shared) = (Arc::clone(&is_over), Arc::clone(&self.shared));
        let thread = thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let _ = shared.relay(connection);
                });
            }
        });
        self.listening = Some((thread, is_over));
    }

    /// Refuses connections, as the port of a server that does not run.
    pub(crate) fn refuse(&mut self) {
        if let Some((thread, is_over)) = self.listening.take() {
            is_over.store(true, Ordering::Relaxed);
            let _ = TcpStream::connect(self.address);
            let _ = thread.join();
        }
    }

    /// Returns how many requests for exactly this target have reached Ghost.
    pub(crate) fn count(&self, target: &str) -> usize {
        self.shared.state().seen.iter().filter(|seen| seen.target == target).count()
    }

    /// Returns how many requests for this path, with whatever query, have reached Ghost.
    pub(crate) fn count_of_path(&self, path: &str) -> usize {
        self.shared.state().seen.iter().filter(|seen| seen.target.split('?').next() == Some(path)).count()
    }

    /// Returns how many requests Ghost had at the same time at most, since this was asked last.
    pub(crate) fn most_at_once(&self) -> usize {
        let mut state = self.shared.state();
        state.is_counting_at_once = true;
        let most = state.most_at_once;
        state.most_at_once = state.at_once;
        most
    }

    pub(crate) fn total(&self) -> usize {
        self.shared.state().seen.len()
    }

    /// Returns the last request for this target.
    pub(crate) fn last(&self, target: &str) -> Seen {
        self.shared
            .state()
            .seen
            .iter()
            .rfind(|seen| seen.target == target)
            .cloned()
            .unwrap_or_else(|| panic!("nothing has asked Ghost for {target}"))
    }

    pub(crate) fn all(&self) -> Vec<Seen> {
        self.shared.state().seen.clone()
    }

    /// Takes each request and answers none.
    pub(crate) fn hang(&self) {
        self.set(Way::Hangs);
    }

    pub(crate) fn open(&self) {
        self.set(Way::Open);
    }

    fn set(&self, way: Way) {
        self.shared.state().way = way;
        self.shared.changed.notify_all();
    }

    /// Holds the answer to the next request for this target back, and no other.
    pub(crate) fn hold(&self, target: &str) -> HeldAnswer<'_> {
        let mut state = self.shared.state();
        state.held.push(Held { target: target.to_owned(), state: Hold::Waits });
        HeldAnswer { tap: self, number: state.held.len() - 1 }
    }
}

impl HeldAnswer<'_> {
    /// Waits until Ghost has answered, with what is true at that time.
    ///
    /// # Panics
    /// If nobody asks, or Ghost does not answer.
    pub(crate) fn is_answered(&self) {
        let is_so = self.tap.shared.until(|state| state.held[self.number].state == Hold::Answered);
        assert!(is_so, "no answer for {} to hold back", self.tap.shared.state().held[self.number].target);
    }

    pub(crate) fn release(self) {
        drop(self);
    }
}

impl Drop for HeldAnswer<'_> {
    fn drop(&mut self) {
        self.tap.shared.state().held[self.number].state = Hold::Released;
        self.tap.shared.changed.notify_all();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something is so, and returns whether it came to that.
    fn until(&self, is_so: impl Fn(&State) -> bool) -> bool {
        let (state, timeout) =
            self.changed.wait_timeout_while(self.state(), PATIENCE, |state| !is_so(state)).unwrap_or_else(PoisonError::into_inner);
        drop(state);
        !timeout.timed_out()
    }

    fn relay(self: &Arc<Self>, mut client: TcpStream) -> io::Result<()> {
        client.set_nodelay(true)?;
        let mut head = Vec::new();
        let end = loop {
            let mut buffer = [0; 16 << 10];
            let n = client.read(&mut buffer)?;
            if n == 0 {
                return Ok(());
            }
            head.extend_from_slice(&buffer[..n]);
            if let Some(at) = head.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            assert!(head.len() < HEAD_BYTES_MAX, "a head that does not end");
        };
        let content = head.split_off(end);
        let text = String::from_utf8_lossy(&head).into_owned();
        let mut words = text.split(' ');
        let (method, target) = (words.next().unwrap_or_default().to_owned(), words.next().unwrap_or_default().to_owned());

        let way = self.state().way;
        match way {
            Way::Open => {}
            Way::Hangs => {
                self.until(|state| state.way != Way::Hangs);
                return Ok(());
            }
        }
        let mut ghost = TcpStream::connect(self.ghost)?;
        ghost.set_nodelay(true)?;
        let turn = Turn::of(self);
        let (number, held, is_whole) = {
            let mut state = self.state();
            state.seen.push(Seen { method, target: target.clone(), head: text.clone(), content: Vec::new() });
            let held = state.held.iter().position(|held| held.state == Hold::Waits && held.target == target);
            if let Some(held) = held {
                state.held[held].state = Hold::Asked;
            }
            (state.seen.len() - 1, held, state.is_counting_at_once)
        };
        ghost.write_all(closing(&text).as_bytes())?;

        // The content, for as long as the connection lives.
        let (shared, mut from, mut to) = (Arc::clone(self), client.try_clone()?, ghost.try_clone()?);
        let forward = thread::spawn(move || {
            let mut content = content;
            let mut buffer = vec![0; 64 << 10];
            loop {
                if to.write_all(&content).is_err() {
                    return;
                }
                if let Some(seen) = shared.state().seen.get_mut(number)
                    && seen.content.len() < KEPT_CONTENT_BYTES_MAX
                {
                    seen.content.extend_from_slice(&content);
                }
                content.clear();
                match from.read(&mut buffer) {
                    Ok(0) | Err(_) => return,
                    Ok(n) => content.extend_from_slice(&buffer[..n]),
                }
            }
        });
        if let Some(held) = held {
            let mut answer = Vec::new();
            ghost.read_to_end(&mut answer)?;
            self.state().held[held].state = Hold::Answered;
            self.changed.notify_all();
            self.until(|state| state.held[held].state == Hold::Released);
            client.write_all(&answer)?;
        } else if is_whole {
            // Whoever has all of an answer may ask the next question before this connection ends: Ghost's turn is over first.
            let mut answer = Vec::new();
            ghost.read_to_end(&mut answer)?;
            drop(turn);
            client.write_all(&answer)?;
        } else {
            io::copy(&mut ghost, &mut client)?;
        }
        let _ = client.shutdown(Shutdown::Both);
        let _ = ghost.shutdown(Shutdown::Both);
        let _ = forward.join();
        Ok(())
    }
}

/// A request that Ghost has.
struct Turn<'a>(&'a Shared);

impl<'a> Turn<'a> {
    fn of(shared: &'a Shared) -> Self {
        let mut state = shared.state();
        state.at_once += 1;
        state.most_at_once = state.most_at_once.max(state.at_once);
        Self(shared)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.state().at_once -= 1;
    }
}

/// Returns the same head with `Connection: close`.
fn closing(head: &str) -> String {
    let mut lines = head.split("\r\n").filter(|line| !line.to_ascii_lowercase().starts_with("connection:"));
    let first = lines.next().unwrap_or_default();
    let rest: Vec<_> = lines.collect();
    format!("{first}\r\nConnection: close\r\n{}", rest.join("\r\n"))
}
