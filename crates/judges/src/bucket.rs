//! A server that can do so much a second and no more.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use tokio::io::AsyncWriteExt as _;

use crate::{
    http1::{Requests, answer, closes},
    serve::{Serving, listener},
};

/// What the server does with a request for which there is no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenEmpty {
    /// It answers with this status at once.
    Refuse(u16),
    /// It answers when its turn has come.
    Delay,
}

/// A token bucket: so many requests a second, and a few at once.
#[derive(Debug)]
pub struct Bucket {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    _serving: Serving,
}

#[derive(Debug)]
struct State {
    /// The moment at which the next token is there; long ago when many are.
    next: Instant,
    each: Duration,
    burst: Duration,
    served: u64,
    refused: u64,
}

impl State {
    /// Takes a token. Returns the moment from which it is valid; none: there is none, and the server does not wait.
    fn take(&mut self, now: Instant, when_empty: WhenEmpty) -> Option<Instant> {
        let filled = now.checked_sub(self.burst).unwrap_or(now);
        let token = self.next.max(filled);
        if token > now && when_empty != WhenEmpty::Delay {
            self.refused += 1;
            return None;
        }
        self.next = token + self.each;
        self.served += 1;
        Some(token)
    }
}

impl Bucket {
    /// Starts a server that answers `rate` requests a second, and at once up to those of 20 ms, at least one.
    #[must_use]
    pub fn start(rate: f64, when_empty: WhenEmpty) -> Self {
        Self::start_on(0, rate, when_empty)
    }

    /// Starts it on this port, 0 for any.
    #[must_use]
    pub fn start_on(port: u16, rate: f64, when_empty: WhenEmpty) -> Self {
        let each = Duration::from_secs_f64(1.0 / rate);
        let state =
            Arc::new(Mutex::new(State { next: Instant::now(), each, burst: Duration::from_millis(20).max(each), served: 0, refused: 0 }));
        let (listener, address) = listener(port);
        let keeping = Arc::clone(&state);
        let serving = Serving::connections(listener, move |stream, alarm| {
            let state = Arc::clone(&keeping);
            async move {
                let mut requests = Requests::new(stream);
                while let Some(head) = requests.next().await {
                    let token = state.lock().expect("nobody panics with it").take(Instant::now(), when_empty);
                    let said = match (token, when_empty) {
                        (Some(token), _) => {
                            if token > Instant::now() {
                                alarm.until(token).await;
                            }
                            answer(200, "", b"served")
                        }
                        (None, WhenEmpty::Refuse(status)) => answer(status, "Retry-After: 1\r\n", b"refused"),
                        (None, WhenEmpty::Delay) => break,
                    };
                    if requests.stream.write_all(&said).await.is_err() || closes(&head) {
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

    /// Returns how many requests were served, and how many refused.
    ///
    /// # Panics
    /// When the server has panicked.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        let state = self.state.lock().expect("nobody panics with it");
        (state.served, state.refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_of_200_a_second_gives_200_tokens_in_a_second_and_a_burst() {
        let begin = Instant::now();
        let mut state = State { next: begin, each: Duration::from_millis(5), burst: Duration::from_millis(20), served: 0, refused: 0 };
        for ms in 0..1000 {
            state.take(begin + Duration::from_millis(ms), WhenEmpty::Refuse(503));
        }
        assert_eq!((state.served, state.refused), (200, 800));
        assert!(state.take(begin + Duration::from_secs(5), WhenEmpty::Refuse(503)).is_some());
    }
}
