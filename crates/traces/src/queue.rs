//! Spans that wait to be sent, and the counts of what became of all of them.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::Span;

/// The most spans that wait, those on their way to the collector included.
pub(crate) const SPANS_MAX: usize = 2_048;
/// The most spans in one request to the collector.
pub(crate) const BATCH: usize = 512;
/// The longest wait of a span before a request to the collector begins, where no other request is under way.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);

/// The counts of what became of spans. They outlive an exporter, as a reload may replace it.
#[derive(Debug, Default)]
pub struct Counts {
    pub(crate) sent: AtomicU64,
    pub(crate) full: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) lost: AtomicU64,
    waiting: AtomicU64,
}

/// The values of [`Counts`] at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CountsSnapshot {
    /// Spans that the collector has taken.
    pub sent: u64,
    /// Spans that were dropped because the queue was full.
    pub full: u64,
    /// Spans that the collector has refused.
    pub refused: u64,
    /// Spans that were given up because the collector could not be reached in time.
    pub lost: u64,
    /// Spans that wait or are on their way.
    pub waiting: u64,
}

impl Counts {
    /// Returns their values.
    #[must_use]
    pub fn read(&self) -> CountsSnapshot {
        let value = |count: &AtomicU64| count.load(Relaxed);
        CountsSnapshot {
            sent: value(&self.sent),
            full: value(&self.full),
            refused: value(&self.refused),
            lost: value(&self.lost),
            waiting: value(&self.waiting),
        }
    }
}

/// The queue of spans, for those who offer them.
#[derive(Debug, Clone)]
pub struct Spans(Arc<Queue>);

#[derive(Debug)]
struct Queue {
    state: Mutex<State>,
    /// Tells the exporter that the first span of a batch has come, or the last.
    came: Notify,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Span>,
    on_their_way: usize,
    /// Whether nobody takes any more.
    is_closed: bool,
}

impl Spans {
    pub(crate) fn new(counts: Arc<Counts>) -> Self {
        Self(Arc::new(Queue { state: Mutex::default(), came: Notify::new(), counts }))
    }

    /// Takes a span, or drops it if there is no room. Waits for nothing but for others who do the same.
    pub fn offer(&self, span: Span) {
        let queue = &*self.0;
        let mut state = queue.state.lock();
        if state.is_closed {
            drop(state);
            queue.counts.lost.fetch_add(1, Relaxed);
            return;
        }
        if state.waiting.len() + state.on_their_way >= SPANS_MAX {
            drop(state);
            queue.counts.full.fetch_add(1, Relaxed);
            return;
        }
        queue.counts.waiting.fetch_add(1, Relaxed);
        state.waiting.push_back(span);
        let length = state.waiting.len();
        drop(state);
        if length == 1 || length == BATCH {
            queue.came.notify_one();
        }
    }

    /// Returns how many spans wait.
    pub(crate) fn len(&self) -> usize {
        self.0.state.lock().waiting.len()
    }

    /// Waits until [`offer`](Self::offer) has the first or the last span of a batch. It may also end for no reason.
    pub(crate) async fn came(&self) {
        self.0.came.notified().await;
    }

    /// Takes out the next batch. They stay among those that wait until [`gone`](Self::gone) is told what became of them.
    pub(crate) fn next_batch(&self) -> Vec<Span> {
        let mut state = self.0.state.lock();
        let count = state.waiting.len().min(BATCH);
        state.on_their_way += count;
        state.waiting.drain(..count).collect()
    }

    /// Takes no more, if nothing waits. Returns whether that is so: what is offered then is lost, and counted.
    pub(crate) fn close_if_empty(&self) -> bool {
        let mut state = self.0.state.lock();
        state.is_closed = state.waiting.is_empty();
        state.is_closed
    }

    /// Counts what became of a batch.
    pub(crate) fn gone(&self, fate: Fate) {
        let counts = &self.0.counts;
        let count = fate.taken + fate.refused + fate.lost;
        {
            let mut state = self.0.state.lock();
            state.on_their_way = state.on_their_way.saturating_sub(count);
        }
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        counts.waiting.fetch_sub(number(count), Relaxed);
        counts.sent.fetch_add(number(fate.taken), Relaxed);
        counts.refused.fetch_add(number(fate.refused), Relaxed);
        counts.lost.fetch_add(number(fate.lost), Relaxed);
    }
}

/// Says what became of the spans of a batch, by number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Fate {
    pub(crate) taken: usize,
    pub(crate) refused: usize,
    pub(crate) lost: usize,
}

#[cfg(test)]
pub(crate) mod tests {
    use semantics::trace_context::{SpanId, TraceFlags, TraceId};

    use super::*;
    use crate::Kind;

    pub(crate) fn span(number: u64) -> Span {
        let mut trace = [7; 16];
        trace[8..].copy_from_slice(&number.to_be_bytes());
        Span {
            trace: TraceId::new(trace).expect("not zero"),
            span: SpanId::new(number + 1).expect("not zero"),
            parent: None,
            parent_is_remote: false,
            flags: TraceFlags { sampled: true, random: false },
            state: String::new(),
            name: "GET".into(),
            kind: Kind::Server,
            began: number,
            ended: number + 1,
            attributes: Vec::new(),
            failed: false,
        }
    }

    #[test]
    fn what_is_too_much_is_dropped_and_counted() {
        let counts = Arc::new(Counts::default());
        let spans = Spans::new(Arc::clone(&counts));
        for number in 0..SPANS_MAX as u64 + 3 {
            spans.offer(span(number));
        }
        assert_eq!(counts.read(), CountsSnapshot { full: 3, waiting: SPANS_MAX as u64, ..CountsSnapshot::default() });
        // Those on their way still take their place.
        let batch = spans.next_batch();
        assert_eq!((batch.len(), batch[0].began), (BATCH, 0));
        spans.offer(span(0));
        assert_eq!(counts.read().full, 4);
        spans.gone(Fate { taken: 500, refused: 10, lost: 2 });
        assert_eq!(counts.read(), CountsSnapshot { sent: 500, full: 4, refused: 10, lost: 2, waiting: SPANS_MAX as u64 - 512 });
        spans.offer(span(0));
        assert_eq!(counts.read().waiting, SPANS_MAX as u64 - 511);
    }

    /// A worker may still have the queue of a collector that was taken out of the settings.
    #[test]
    fn what_comes_after_the_end_is_lost_and_counted() {
        let counts = Arc::new(Counts::default());
        let spans = Spans::new(Arc::clone(&counts));
        spans.offer(span(0));
        assert!(!spans.close_if_empty());
        spans.gone(Fate { taken: spans.next_batch().len(), ..Fate::default() });
        assert!(spans.close_if_empty());
        spans.offer(span(1));
        assert_eq!(counts.read(), CountsSnapshot { sent: 1, lost: 1, ..CountsSnapshot::default() });
    }
}
