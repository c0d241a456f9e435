//! The streams of HTTP/3 (RFC 9114), and their field sections (RFC 9204).

use std::{
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Instant,
};

use bytes::Bytes;
use wire::{
    HeadLimits,
    h3::{Code, Fault, Message, Purse, Source, control::Listener, head_of_section},
    head::{HeadText, Parsed},
    qpack,
};

use crate::{hpack::Fields, request_head::judged};

/// However the transport cuts a stream, it means the same, and what has come of it is the beginning of what comes of the whole. A request that is
/// let through is one head with nothing behind it, by the rules of HTTP/1, and its content is no more than was sent. A section that can be
/// read can be written and is read the same again.
///
/// An input is a kind, and a stream or a section: 0 a request's stream, 1 one in a single direction, else a section.
pub fn h3_streams(data: &[u8]) {
    let Some((kind, bytes)) = data.split_first() else { return };
    match kind {
        0 => request(bytes),
        1 => unidirectional(bytes),
        _ => section(bytes),
    }
}

fn request(bytes: &[u8]) {
    let whole = Outcome::of_request(bytes, usize::MAX, true);
    for cut in [1, 2, 7, 1_200] {
        assert_eq!(Outcome::of_request(bytes, cut, true), whole, "cut every {cut}");
    }
    assert!(whole.content.len() <= bytes.len());
    if let Some(text) = &whole.text {
        judged(text, &HeadLimits::default(), |parsed| match parsed {
            Ok(Parsed::Complete(head, _)) => assert_eq!(head.len, text.len(), "something is behind the head"),
            Ok(Parsed::Partial) => panic!("half a head was let through"),
            Err(_) => {}
        });
    }
    // What has not ended yet has come to nothing else.
    let begun = Outcome::of_request(bytes, usize::MAX, false);
    assert_eq!(begun.text, whole.text);
    assert!(whole.content.starts_with(&begun.content));
    assert!(begun.closed.is_none() || begun.closed == whole.closed);
    assert!(begun.reset.is_none() || begun.reset == whole.reset);
}

fn unidirectional(bytes: &[u8]) {
    for ends in [false, true] {
        let whole = Outcome::of_unidirectional(bytes, usize::MAX, ends);
        for cut in [1, 3, 1_200] {
            assert_eq!(Outcome::of_unidirectional(bytes, cut, ends), whole, "cut every {cut}");
        }
    }
}

fn section(bytes: &[u8]) {
    let Some(mut fields) = decoded(bytes) else { return };
    // Five bits are the shortest code of a byte, and one byte the shortest way to say the longest field of the table.
    assert!(fields.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>() <= bytes.len() * 80);
    for (name, _) in &mut fields {
        name.make_ascii_lowercase();
    }
    let mut written = Vec::new();
    qpack::begin(&mut written);
    qpack::status(200, &mut written);
    for (name, value) in &fields {
        qpack::field(name, value, &mut written);
    }
    let read = decoded(&written).expect("what we write can be read");
    assert_eq!(read[0], (b":status".to_vec(), b"200".to_vec()));
    assert_eq!(read[1..], fields);
}

/// Returns the fields of a section. `None` means that the connection would be closed.
fn decoded(section: &[u8]) -> Option<Fields> {
    let mut fields = Fields::new();
    let read = qpack::decode(section, |name, value, _| fields.push((name.to_vec(), value.to_vec())));
    read.is_ok().then_some(fields)
}

/// What a stream, or as much of it as there is, comes to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    /// The head of the request that is let through, as HTTP/1 writes it.
    text: Option<Vec<u8>>,
    /// The status with which the request is refused.
    refused: Option<u16>,
    /// The request's content, as far as it was read.
    content: Vec<u8>,
    /// The code with which the stream is reset, and nothing else.
    reset: Option<Code>,
    /// The code with which the connection is closed.
    closed: Option<Code>,
}

impl Outcome {
    /// Reads a request's stream that has come in pieces of `cut` bytes, and that has ended if it `ends`.
    fn of_request(bytes: &[u8], cut: usize, ends: bool) -> Self {
        let mut outcome = Self::default();
        if let Err(fault) = outcome.read(Pieces::new(bytes, cut, ends)) {
            outcome.fail(fault);
        }
        outcome
    }

    fn read(&mut self, source: Pieces<'_>) -> Result<(), Fault> {
        let limits = HeadLimits::default();
        let mut message = Message::new(source, Arc::new(Purse::new(Instant::now())), limits.header_bytes);
        let cx = &mut Context::from_waker(Waker::noop());
        let Poll::Ready(section) = message.poll_head(cx)? else { return Ok(()) };
        let Some(section) = section else {
            self.refused = Some(431);
            return Ok(());
        };
        let mut text = HeadText::default();
        if let Some(reject) = head_of_section(&section, &mut text, &limits)? {
            self.refused = Some(reject.status);
            return Ok(());
        }
        self.text = Some(text.bytes().to_vec());
        while let Poll::Ready(Some(data)) = message.poll_data(cx)? {
            self.content.extend_from_slice(&data);
        }
        Ok(())
    }

    /// Reads a client's stream in one direction.
    fn of_unidirectional(bytes: &[u8], cut: usize, ends: bool) -> Self {
        let mut outcome = Self::default();
        let purse = Arc::new(Purse::new(Instant::now()));
        let mut listener = Listener::new(Pieces::new(bytes, cut, ends), Rc::default(), purse);
        if let Poll::Ready(Err(fault)) = listener.poll(&mut Context::from_waker(Waker::noop())) {
            outcome.fail(fault);
        }
        outcome
    }

    fn fail(&mut self, fault: Fault) {
        match fault {
            // There is nobody who could go.
            Fault::Gone => self.reset = Some(Code::RequestCancelled),
            Fault::Stream(code) => self.reset = Some(code),
            Fault::Connection(code) => self.closed = Some(code),
        }
    }
}

/// A stream that comes in pieces of `cut` bytes, and then ends or not.
struct Pieces<'a> {
    rest: &'a [u8],
    cut: usize,
    ends: bool,
}

impl<'a> Pieces<'a> {
    fn new(rest: &'a [u8], cut: usize, ends: bool) -> Self {
        Self { rest, cut, ends }
    }
}

impl Source for Pieces<'_> {
    fn poll_bytes(&mut self, _: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Fault>> {
        let (piece, rest) = self.rest.split_at(self.cut.min(self.rest.len()));
        self.rest = rest;
        match piece.is_empty() {
            true if self.ends => Poll::Ready(Ok(None)),
            true => Poll::Pending,
            false => Poll::Ready(Ok(Some(Bytes::copy_from_slice(piece)))),
        }
    }
}
