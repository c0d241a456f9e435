//! What an origin expects and what it has seen, shared between its thread and the test.

use bytes::Bytes;
use tokio::sync::watch;

use std::fmt::{self, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::expectation::Expectation;
use super::reply::Reply;
use crate::Fields;
use crate::fields::text;

/// A request as the origin read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenRequest {
    /// The method, in the sender's case.
    pub method: String,
    /// The request target, byte for byte.
    pub target: String,
    /// `HTTP/1.1` or `HTTP/1.0`.
    pub version: String,
    /// The field lines.
    pub fields: Fields,
    /// The content, without its chunked coding.
    pub body: Bytes,
    /// The number of the connection that it came on, counted from 1.
    pub connection: usize,
}

impl SeenRequest {
    /// Returns the combined value of the field lines of that name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<String> {
        self.fields.combined(name)
    }

    /// Returns the content as text.
    #[must_use]
    pub fn text(&self) -> String {
        text(&self.body)
    }
}

impl fmt::Display for SeenRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}\n{}", self.method, self.target, self.version, self.fields)?;
        if self.body.is_empty() { Ok(()) } else { writeln!(f, "({} bytes of content)", self.body.len()) }
    }
}

/// Whether requests are answered at present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    #[default]
    Answering,
    Silent,
}

/// The numbers of past and open connections.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Connections {
    pub(super) opened: usize,
    pub(super) open: usize,
}

/// The data that the test and the origin's thread share. The lock is held for lookups and pushes only, never across an await.
#[derive(Debug)]
pub(super) struct Record {
    inner: Mutex<Inner>,
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Inner {
    expectations: Vec<Expectation>,
    seen: Vec<SeenRequest>,
    unexpected: Vec<String>,
    connections: Connections,
    mode: Mode,
}

impl Record {
    pub(super) fn expect(&self, expectation: Expectation) {
        self.lock().expectations.push(expectation);
    }

    pub(super) fn forget_expectations(&self) {
        self.lock().expectations.clear();
    }

    /// Returns the reply to `request`, from the most recent expectation that matches and is not used up. It notes the request in any case.
    /// `None` if there is no such expectation, or if no request is answered at present.
    pub(super) fn answer(&self, request: SeenRequest) -> Option<Reply> {
        let mut inner = self.lock();
        inner.seen.push(request.clone());
        let mut reply = None;
        if inner.mode == Mode::Answering {
            reply = inner.expectations.iter_mut().rev().find(|expectation| expectation.takes(&request)).map(Expectation::use_up);
            if reply.is_none() {
                inner.unexpected.push(format!("a request that no expectation matches:\n{request}"));
            }
        }
        drop(inner);
        self.changed.send_replace(());
        // This runs without the lock: the test's closure may ask how many requests there have been.
        reply.map(|make| make.reply(&request))
    }

    /// Returns whether the expectation that answers a request with this head does so without reading its content.
    pub(super) fn answers_before_content(&self, head: &SeenRequest) -> bool {
        let inner = self.lock();
        inner.expectations.iter().rev().find(|expectation| expectation.takes(head)).is_some_and(Expectation::is_before_content)
    }

    pub(super) fn seen(&self, wanted: impl Fn(&SeenRequest) -> bool) -> Vec<SeenRequest> {
        self.lock().seen.iter().filter(|seen| wanted(seen)).cloned().collect()
    }

    pub(super) fn listing(&self) -> String {
        self.lock().seen.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    pub(super) fn connections(&self) -> Connections {
        self.lock().connections
    }

    /// Counts a connection. It is open until the guard is dropped, also when its task is aborted.
    pub(super) fn connect(&self) -> OpenConnection<'_> {
        let number = {
            let connections = &mut self.lock().connections;
            connections.opened += 1;
            connections.open += 1;
            connections.opened
        };
        self.changed.send_replace(());
        OpenConnection { record: self, number }
    }

    pub(super) fn mode(&self) -> Mode {
        self.lock().mode
    }

    pub(super) fn set_mode(&self, mode: Mode) {
        self.lock().mode = mode;
    }

    pub(super) fn complain(&self, what: String) {
        self.lock().unexpected.push(what);
    }

    pub(super) fn take_unexpected(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().unexpected)
    }

    /// Returns the message that the test must fail with, if anything unexpected happened.
    pub(super) fn complaint(&self) -> Option<String> {
        let inner = self.lock();
        let first = inner.unexpected.first()?;
        let mut text = format!("the origin saw {first}");
        if inner.unexpected.len() > 1 {
            let _ = writeln!(text, "(and {} more it did not expect)", inner.unexpected.len() - 1);
        }
        text.push_str("\nexpected, most recent first:\n");
        for expectation in inner.expectations.iter().rev() {
            let _ = writeln!(text, "  {expectation}");
        }
        text.push_str("\nseen, in order:\n");
        for seen in &inner.seen {
            let _ = writeln!(text, "  {} {}", seen.method, seen.target);
        }
        Some(text)
    }

    /// Waits until `condition` holds.
    pub(super) async fn until(&self, condition: impl Fn() -> bool) {
        let mut changed = self.changed.subscribe();
        while !condition() {
            changed.changed().await.expect("the sender lives in self");
        }
    }

    /// Locks the record. A test that failed with the lock held must fail with its own message, not with one about poison.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Record {
    fn default() -> Self {
        Self { inner: Mutex::default(), changed: watch::Sender::new(()) }
    }
}

/// A connection that counts as open.
#[derive(Debug)]
pub(super) struct OpenConnection<'a> {
    record: &'a Record,
    pub(super) number: usize,
}

impl Drop for OpenConnection<'_> {
    fn drop(&mut self) {
        self.record.lock().connections.open -= 1;
        self.record.changed.send_replace(());
    }
}
