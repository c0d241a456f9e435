//! The thread that sends spans.

use std::{
    fmt, io,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use http::{HeaderName, HeaderValue, Uri};
use tokio::{runtime::Builder, sync::watch, time::Instant};

use crate::{
    Counts, Spans,
    delivery::{Delivered, Stop, deliver},
    otlp,
    queue::{BATCH, Fate, INTERVAL},
    transport::Transport,
};

/// The time between two messages about the same trouble with the collector.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// Says where spans go, and as whose.
#[derive(Clone)]
pub struct Options {
    /// The whole address of the collector's OTLP/HTTP receiver, such as `http://127.0.0.1:4318/v1/traces`.
    pub endpoint: Uri,
    /// Fields that go with each request, such as credentials.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The name of the service whose spans they are.
    pub service_name: String,
    /// The version of the service.
    pub version: &'static str,
    /// The TLS configuration, which says whom to trust for `https`.
    pub tls: Arc<rustls::ClientConfig>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("endpoint", &self.endpoint).field("service_name", &self.service_name).finish_non_exhaustive()
    }
}

/// Sends spans from a thread of its own. Dropping it gives up what was not sent.
#[derive(Debug)]
pub struct Exporter {
    spans: Spans,
    stop: watch::Sender<Option<Instant>>,
    thread: Option<JoinHandle<()>>,
}

impl Exporter {
    /// Starts the thread. What becomes of the spans is added to `counts`.
    ///
    /// # Errors
    /// When there is no thread for it.
    pub fn start(options: Options, counts: Arc<Counts>) -> io::Result<Self> {
        let spans = Spans::new(counts);
        let (stop, stopping) = watch::channel(None);
        let taken = spans.clone();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let thread = thread::Builder::new().name("traces".to_owned()).spawn(move || {
            runtime.block_on(run(options, taken, stopping));
            // A name that is still being looked up must not hold up the end.
            runtime.shutdown_background();
        })?;
        Ok(Self { spans, stop, thread: Some(thread) })
    }

    /// Returns the queue, for those who have spans.
    #[must_use]
    pub const fn spans(&self) -> &Spans {
        &self.spans
    }

    /// Sends what still waits, within this time, and ends. Blocks until then.
    pub fn stop(mut self, within: Duration) {
        self.end(within);
    }

    fn end(&mut self, within: Duration) {
        let _ = self.stop.send(Some(Instant::now() + within));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.end(Duration::ZERO);
    }
}

async fn run(options: Options, spans: Spans, mut stop: Stop) {
    let transport = Transport::new(options.endpoint.clone(), options.headers.clone(), &options.tls);
    let mut trouble = Trouble { endpoint: options.endpoint.clone(), told: None };
    loop {
        let is_stopping = collect(&spans, &mut stop).await;
        loop {
            let batch = spans.next_batch();
            if batch.is_empty() {
                break;
            }
            let count = batch.len();
            if let Some(until) = *stop.borrow()
                && until <= Instant::now()
            {
                spans.gone(Fate { lost: count, ..Fate::default() });
                continue;
            }
            let content = transport.content(otlp::request(&options.service_name, options.version, batch));
            let Delivered { fate, trouble: words } = deliver(&transport, content, count, &mut stop).await;
            spans.gone(fate);
            trouble.tell(words, fate);
            // Few more have come meanwhile: they may wait for others.
            if !is_stopping && spans.len() < BATCH {
                break;
            }
        }
        if is_stopping && spans.close_if_empty() {
            return;
        }
    }
}

/// Waits until a batch is complete, or its first span has waited for long enough. Returns whether everything is to stop.
async fn collect(spans: &Spans, stop: &mut Stop) -> bool {
    while spans.len() == 0 {
        tokio::select! {
            () = spans.came() => {}
            _ = stop.wait_for(Option::is_some) => return true,
        }
    }
    let due = Instant::now() + INTERVAL;
    while spans.len() < BATCH {
        tokio::select! {
            () = spans.came() => {}
            () = tokio::time::sleep_until(due) => break,
            _ = stop.wait_for(Option::is_some) => return true,
        }
    }
    stop.borrow().is_some()
}

/// Holds what was told about the collector.
struct Trouble {
    endpoint: Uri,
    /// The time at which something was told last that still holds.
    told: Option<Instant>,
}

impl Trouble {
    /// Tells of trouble once a minute, and of its end.
    fn tell(&mut self, words: Option<String>, fate: Fate) {
        let endpoint = &self.endpoint;
        match (words, self.told) {
            (Some(_), Some(at)) if at.elapsed() < TELL_EVERY => {}
            (Some(words), _) => {
                self.told = Some(Instant::now());
                let gone = fate.refused + fate.lost;
                tracing::warn!(%endpoint, spans = gone, "spans did not reach the collector: {words}");
            }
            (None, Some(_)) => {
                self.told = None;
                tracing::info!(%endpoint, "spans reach the collector again");
            }
            (None, None) => {}
        }
    }
}
