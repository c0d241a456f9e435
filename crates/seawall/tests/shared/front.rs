//! The load balancer in front of the machines, for an authority that looks for proofs over plain http.

use std::{
    collections::BTreeMap,
    io::{Read as _, Write as _},
    net::{Ipv4Addr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex},
    thread,
    time::{Duration, Instant},
};

use crate::scene::PATIENCE;

/// The answer of each machine to a path: status and content; `None` if there was no answer.
pub(crate) type Answers = Vec<Option<(u16, String)>>;

/// A load balancer that asks every machine for each proof, and gives the authority the answer of the first one that has it.
#[derive(Debug, Clone)]
pub(crate) struct Front(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    ports: Vec<u16>,
    asked: BTreeMap<String, Answers>,
    is_closed: bool,
    has_arrived: bool,
}

impl Front {
    /// Listens on a port, and asks the machines on these. Closed, it keeps whoever asks waiting.
    pub(crate) fn listen(port: u16, ports: Vec<u16>, is_closed: bool) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("a free port");
        let state = State { ports, is_closed, ..State::default() };
        let front = Self(Arc::new(Inner { state: Mutex::new(state), changed: Condvar::new() }));
        let serving = front.clone();
        // It ends with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let serving = serving.clone();
                thread::spawn(move || serving.serve(stream));
            }
        });
        front
    }

    /// Waits until somebody asks.
    pub(crate) fn arrived(&self) {
        let state = self.0.state.lock().unwrap();
        let (state, _) = self.0.changed.wait_timeout_while(state, PATIENCE, |state| !state.has_arrived).unwrap();
        assert!(state.has_arrived, "nobody looked for a proof");
    }

    /// Lets all pass.
    pub(crate) fn open(&self) {
        self.0.state.lock().unwrap().is_closed = false;
        self.0.changed.notify_all();
    }

    /// Leads nobody to a machine any more.
    pub(crate) fn leave(&self, port: u16) {
        self.0.state.lock().unwrap().ports.retain(|own| *own != port);
    }

    /// Returns what was asked, and what each machine answered.
    pub(crate) fn asked(&self) -> BTreeMap<String, Answers> {
        self.0.state.lock().unwrap().asked.clone()
    }

    fn serve(&self, mut stream: TcpStream) {
        let mut head = vec![0; 4096];
        let Ok(n) = stream.read(&mut head) else { return };
        let head = String::from_utf8_lossy(&head[..n]).into_owned();
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let host = head.lines().find_map(|line| line.strip_prefix("Host: ")).unwrap_or_default().to_owned();
        let ports = {
            let mut state = self.0.state.lock().unwrap();
            state.has_arrived = true;
            self.0.changed.notify_all();
            let (state, _) = self.0.changed.wait_timeout_while(state, PATIENCE, |state| state.is_closed).unwrap();
            state.ports.clone()
        };
        let answers: Answers = ports.iter().map(|port| ask(*port, &host, &path)).collect();
        let best = answers.iter().flatten().find(|(status, _)| *status == 200).or_else(|| answers.iter().flatten().next()).cloned();
        self.0.state.lock().unwrap().asked.insert(path, answers);
        let (status, content) = best.unwrap_or((502, String::new()));
        let answer = format!("HTTP/1.1 {status} -\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{content}", content.len());
        let _ = stream.write_all(answer.as_bytes());
    }
}

/// Asks a machine, as soon as it listens; `None` if it does not answer.
fn ask(port: u16, host: &str, path: &str) -> Option<(u16, String)> {
    let begun = Instant::now();
    let mut stream = loop {
        match TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
            Ok(stream) => break stream,
            Err(_) if begun.elapsed() < PATIENCE => thread::yield_now(),
            Err(_) => return None,
        }
    };
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let status = answer.split(' ').nth(1)?.parse().ok()?;
    Some((status, answer.split_once("\r\n\r\n")?.1.to_owned()))
}
