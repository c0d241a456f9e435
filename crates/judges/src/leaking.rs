//! A cache gone wrong: now and then it returns what belongs to another client.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::io::AsyncWriteExt as _;

use crate::{
    http1::{Requests, answer, closes},
    serve::{Serving, listener},
};

/// A server that returns each request's own head as the content, and one time in so many the one that came on another connection before.
#[derive(Debug)]
pub struct Leaking {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    _serving: Serving,
}

#[derive(Debug, Default)]
struct State {
    connections: u64,
    requests: u64,
    leaked: u64,
    /// The last two heads of different connections.
    heads: [(u64, Vec<u8>); 2],
}

impl State {
    fn content(&mut self, connection: u64, head: Vec<u8>, every: u64) -> Vec<u8> {
        self.requests += 1;
        if self.heads[0].0 != connection {
            self.heads.swap(0, 1);
        }
        self.heads[0] = (connection, head.clone());
        let (other, theirs) = &self.heads[1];
        if every > 0 && self.requests.is_multiple_of(every) && *other != 0 && *other != connection {
            self.leaked += 1;
            return theirs.clone();
        }
        head
    }
}

impl Leaking {
    /// Starts a server that leaks in one answer of `every`; 0 is never.
    #[must_use]
    pub fn start(every: u64) -> Self {
        Self::start_on(0, every)
    }

    /// Starts it on this port, 0 for any.
    #[must_use]
    pub fn start_on(port: u16, every: u64) -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let (listener, address) = listener(port);
        let keeping = Arc::clone(&state);
        let serving = Serving::connections(listener, move |stream, _| {
            let state = Arc::clone(&keeping);
            async move {
                let mut requests = Requests::new(stream);
                let connection = {
                    let mut state = state.lock().expect("nobody panics with it");
                    state.connections += 1;
                    state.connections
                };
                while let Some(head) = requests.next().await {
                    let last = closes(&head);
                    let content = state.lock().expect("nobody panics with it").content(connection, head, every);
                    if requests.stream.write_all(&answer(200, "X-Cache: HIT\r\n", &content)).await.is_err() || last {
                        break;
                    }
                }
                let _ = requests.stream.shutdown().await;
            }
        });
        Self { address, state, _serving: serving }
    }

    /// Returns the URL of its only page.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Returns the address that it listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns how many requests have come, and how many answers were another client's.
    ///
    /// # Panics
    /// When the server has panicked.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        let state = self.state.lock().expect("nobody panics with it");
        (state.requests, state.leaked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_answer_in_three_is_the_other_clients() {
        let mut state = State::default();
        let mut content = |connection, head: &str| String::from_utf8(state.content(connection, head.as_bytes().to_vec(), 3)).expect("text");
        assert_eq!([content(1, "a1"), content(2, "b1"), content(1, "a2"), content(1, "a3")], ["a1", "b1", "b1", "a3"]);
    }
}
