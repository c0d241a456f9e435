//! Fetching the pages of a sitemap at the wish of an operator in a browser: what `seawall warm --host` does, by the server itself.
//!
//! The pages are asked for through the server's own listeners, as a reader would, on a thread of its own and two at a time. One host at a time; what became
//! of the pages is counted under at most [`RESULTS_MAX`] names.

use std::{
    net::SocketAddr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use admin::{NamedCount, Token, WarmCommand, WarmRefused, Warming};
use operator::{
    AdminClient,
    warm::{Options, Outcome, Progress, warm},
};
use parking_lot::Mutex;
use tokio::runtime::Builder;

use crate::server::State;

/// The requests at the same time: what `seawall warm` has unless it is told otherwise.
const CONCURRENCY: usize = 2;

/// The names of results; further ones are counted together.
const RESULTS_MAX: usize = 12;

/// The name under which further results are counted.
const FURTHER: &str = "something else";

/// The interval at which a thread that fetches looks whether the server stops.
const LOOK: Duration = Duration::from_millis(250);

/// Holds what is being fetched, and by which way.
#[derive(Debug, Default)]
pub(crate) struct Warmer {
    /// The server's own admin listener, and the token for it.
    admin: OnceLock<(SocketAddr, Token)>,
    now: Mutex<Warming>,
}

impl Warmer {
    /// Asks the admin listener at this address for what has to be known. Only the first call counts.
    pub(crate) fn ask_at(&self, admin: SocketAddr, token: Token) {
        let _ = self.admin.set((admin, token));
    }

    pub(crate) fn now(&self) -> Warming {
        self.now.lock().clone()
    }
}

/// Begins to fetch the pages of a host's sitemap, and returns at once.
///
/// # Errors
/// When no site has the host, or others are being fetched.
pub(crate) fn begin(state: &Arc<State>, command: &WarmCommand) -> Result<(), WarmRefused> {
    let host = command.host.trim().to_ascii_lowercase();
    if !state.plan.load().sites.iter().any(|site| site.hosts().contains(&host)) {
        return Err(WarmRefused::NoSite(command.host.clone()));
    }
    let (address, token) = state.warmer.admin.get().ok_or(WarmRefused::Unable)?;
    let client = AdminClient::new(*address, token.as_str()).map_err(|_| WarmRefused::Unable)?;
    let mut now = state.warmer.now.lock();
    if now.running {
        return Err(WarmRefused::Busy(now.host.clone()));
    }
    let thread = {
        let (state, host) = (Arc::clone(state), host.clone());
        // Nobody waits for it at the end: it holds nothing that would be lost.
        thread::Builder::new().name("warm".to_owned()).spawn(move || fetch(&state, &client, host))
    };
    thread.map_err(|_| WarmRefused::Unable)?;
    *now = Warming { host, running: true, ..Warming::default() };
    Ok(())
}

fn fetch(state: &State, client: &AdminClient, host: String) {
    let options = Options { urls: Vec::new(), sitemaps: Vec::new(), stored: false, host: Some(host), concurrency: CONCURRENCY, rate: None };
    let mut shown = WarmingProgress(&state.warmer.now);
    let ended = Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string()).and_then(|runtime| {
        runtime.block_on(warm(client, &options, &mut shown, stopped(&state.draining))).map_err(|error| error.to_string())
    });
    let mut now = state.warmer.now.lock();
    now.running = false;
    match ended {
        Ok(summary) => {
            if let Some((left, why)) = summary.stopped {
                now.told = format!("{left} pages were not asked for: {why}");
            }
        }
        Err(error) => now.told = error,
    }
}

async fn stopped(draining: &AtomicBool) {
    while !draining.load(Relaxed) {
        tokio::time::sleep(LOOK).await;
    }
}

/// Shows how far it is.
struct WarmingProgress<'a>(&'a Mutex<Warming>);

impl Progress for WarmingProgress<'_> {
    fn begin(&mut self, pages: usize) {
        self.0.lock().pages = pages as u64;
    }

    fn done(&mut self, _: &str, outcome: &Outcome) {
        let mut now = self.0.lock();
        now.done += 1;
        let name = outcome.words();
        let is_known = now.results.iter().any(|known| known.name == name);
        let name = if is_known || now.results.len() < RESULTS_MAX { name } else { FURTHER.to_owned() };
        match now.results.iter_mut().find(|known| known.name == name) {
            Some(known) => known.requests += 1,
            None => now.results.push(NamedCount { name, requests: 1, error: 0 }),
        }
        now.results.sort_by_key(|known| std::cmp::Reverse(known.requests));
    }

    fn say(&mut self, words: &str) {
        self.0.lock().told = words.to_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An origin could give each page a reason of its own.
    #[test]
    fn results_are_counted_under_few_names() {
        let now = Mutex::new(Warming::default());
        let mut shown = WarmingProgress(&now);
        shown.begin(1_000);
        for page in 0..1_000 {
            let outcome = if page % 2 == 0 { Outcome::Stored } else { Outcome::Failed(format!("status {page}")) };
            shown.done("http://a/", &outcome);
        }
        let now = now.into_inner();
        assert_eq!((now.pages, now.done), (1_000, 1_000));
        assert!(now.results.len() <= RESULTS_MAX + 1, "{:?}", now.results);
        assert_eq!((now.results[0].name.as_str(), now.results[0].requests), ("stored", 500));
        assert_eq!(now.results.iter().map(|result| result.requests).sum::<u64>(), 1_000);
    }
}
