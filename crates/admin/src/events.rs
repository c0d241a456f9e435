//! `GET /events`: what happens, second by second, as server-sent events (HTML Living Standard §9.2).
//!
//! The listener asks the console while anybody listens, and writes each second once for all of them. Each viewer has a queue of its own. A viewer whose
//! queue is full reads too slowly: its stream ends, and its connection with it. The page that shows the events then connects anew.
//!
//! Worst case: [`VIEWERS_MAX`] viewers with [`WAITING_MAX`] events of [`EVENT_BYTES_MAX`] bytes. All share one copy of an event: 128 KiB, and what the system
//! keeps for each connection.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use admin_api::Moment;
use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use futures_util::Stream;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, watch};

use crate::console::Console;

/// The most viewers at once.
pub(crate) const VIEWERS_MAX: usize = 16;

/// The longest event, in bytes. A moment that is longer loses the sites in which least happened, and the requests that are oldest.
const EVENT_BYTES_MAX: usize = 16 << 10;

/// The events that wait for a viewer that reads slowly, beside what the system keeps for its connection.
const WAITING_MAX: usize = 8;

/// The viewers of one listener.
pub(crate) struct Events {
    console: Arc<dyn Console>,
    viewers: Mutex<Vec<Viewer>>,
    /// Tells that there is a viewer again.
    viewed: Notify,
}

struct Viewer {
    queue: mpsc::Sender<Bytes>,
    viewing: Viewing,
    /// The second that it was told last.
    last: u64,
}

/// Says what a connection and the stream of events that it carries know of each other.
#[derive(Clone, Debug)]
pub(crate) struct Viewing(Arc<watch::Sender<Phase>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It carries no events.
    Ordinary,
    Viewing,
    /// Its client reads too slowly, and the connection is to end.
    CutOff,
}

impl Default for Viewing {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Phase::Ordinary)))
    }
}

impl Viewing {
    /// Waits until the connection carries no events. Cancel-safe.
    pub(crate) async fn over(&self) {
        // The sender lives as long as this.
        let _ = self.0.subscribe().wait_for(|phase| *phase != Phase::Viewing).await;
    }

    /// Returns whether the connection carries events.
    pub(crate) fn goes_on(&self) -> bool {
        *self.0.borrow() == Phase::Viewing
    }

    /// Waits until the client was found to read too slowly. Cancel-safe.
    pub(crate) async fn cut_off(&self) {
        let _ = self.0.subscribe().wait_for(|phase| *phase == Phase::CutOff).await;
    }
}

impl Events {
    pub(crate) fn new(console: Arc<dyn Console>) -> Self {
        Self { console, viewers: Mutex::default(), viewed: Notify::new() }
    }

    /// Answers with the stream of events, which begins with the last second. `None`: there are enough viewers.
    pub(crate) fn view(&self, viewing: Viewing) -> Option<Response> {
        let moment = self.console.moment();
        let (queue, waiting) = mpsc::channel(WAITING_MAX);
        let mut viewers = self.viewers.lock();
        viewers.retain(|viewer| !viewer.queue.is_closed());
        if viewers.len() >= VIEWERS_MAX {
            return None;
        }
        // An empty queue takes it.
        let _ = queue.try_send(event(&moment));
        viewing.0.send_replace(Phase::Viewing);
        viewers.push(Viewer { queue, viewing: viewing.clone(), last: moment.at });
        drop(viewers);
        self.viewed.notify_one();
        let mut response = Body::from_stream(EventBody { waiting, viewing }).into_response();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        Some(response)
    }

    /// Tells each second to all viewers, and looks in this interval whether one is over. It asks nobody as long as there is none.
    pub(crate) async fn tell(&self, look: Duration) -> Infallible {
        loop {
            if self.viewers.lock().is_empty() {
                self.viewed.notified().await;
            }
            tokio::time::sleep(look).await;
            self.tell_once();
        }
    }

    fn tell_once(&self) {
        let moment = self.console.moment();
        let mut written = None;
        self.viewers.lock().retain_mut(|viewer| {
            if viewer.last == moment.at {
                return !viewer.queue.is_closed();
            }
            viewer.last = moment.at;
            let event: &Bytes = written.get_or_insert_with(|| event(&moment));
            let told = viewer.queue.try_send(event.clone());
            if matches!(told, Err(mpsc::error::TrySendError::Full(_))) {
                viewer.viewing.0.send_replace(Phase::CutOff);
            }
            told.is_ok()
        });
    }

    /// Ends all streams.
    pub(crate) fn close(&self) {
        self.viewers.lock().clear();
    }
}

/// The content of a response to a viewer.
struct EventBody {
    waiting: mpsc::Receiver<Bytes>,
    viewing: Viewing,
}

impl Stream for EventBody {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.waiting.poll_recv(cx).map(|event| event.map(Ok))
    }
}

impl Drop for EventBody {
    fn drop(&mut self) {
        self.viewing.0.send_if_modified(|phase| std::mem::replace(phase, Phase::Ordinary) == Phase::Viewing);
    }
}

/// Writes a moment as an event. JSON has no line end in it, so it is one line of data.
fn event(moment: &Moment) -> Bytes {
    let mut text = written(moment);
    if text.len() > EVENT_BYTES_MAX {
        let mut shorter = moment.clone();
        // The first column is the number of requests.
        shorter.sites.sort_by_key(|(_, row)| std::cmp::Reverse(row.first().copied()));
        while text.len() > EVENT_BYTES_MAX {
            let most = [shorter.sites.len(), shorter.recent.len(), shorter.alerts.len(), shorter.down.len()].into_iter().max();
            let Some(most) = most.filter(|most| *most > 0) else { break };
            shorter.sites.truncate(most / 2);
            let old = shorter.recent.len().saturating_sub(most / 2);
            shorter.recent.drain(..old);
            shorter.alerts.truncate(most / 2);
            shorter.down.truncate(most / 2);
            text = written(&shorter);
        }
    }
    Bytes::from(text)
}

fn written(moment: &Moment) -> Vec<u8> {
    let mut text = b"event: second\ndata: ".to_vec();
    // It has neither maps whose keys are not text nor numbers that are none.
    serde_json::to_writer(&mut text, moment).expect("a moment is JSON");
    text.extend_from_slice(b"\n\n");
    text
}

#[cfg(test)]
mod tests {
    use admin_api::RequestLine;

    use super::*;

    #[test]
    fn an_event_is_one_line_of_data_whatever_strangers_sent() {
        let line = RequestLine { path: "/\r\n\r\nevent: evil\ndata: x\u{2028}<script>".to_owned(), ..RequestLine::default() };
        let moment = Moment { at: 7, recent: vec![line], ..Moment::default() };
        let text = String::from_utf8(event(&moment).to_vec()).expect("text");
        let data = text.strip_prefix("event: second\ndata: ").and_then(|rest| rest.strip_suffix("\n\n")).expect("an event");
        assert!(!data.contains(['\r', '\n']), "{data}");
        assert_eq!(serde_json::from_str::<Moment>(data).expect("JSON"), moment);
    }

    #[test]
    fn an_event_is_bounded_and_keeps_the_busiest_sites_and_the_newest_requests() {
        let long = |number| RequestLine { number, path: "/".repeat(8 << 10), ..RequestLine::default() };
        let sites = (0..5_000).map(|n| (format!("site-{n}.example"), vec![n; 14])).collect();
        let moment = Moment { sites, recent: (0..20).map(long).collect(), ..Moment::default() };
        let event = event(&moment);
        assert!(event.len() <= EVENT_BYTES_MAX, "{}", event.len());
        let data = &event["event: second\ndata: ".len()..];
        let shorter: Moment = serde_json::from_slice(data).expect("JSON");
        assert_eq!(shorter.sites.first().map(|(name, _)| name.as_str()), Some("site-4999.example"));
        assert_eq!(shorter.recent.last().map(|line| line.number), Some(19));
    }
}
