//! What an origin answers: built by the test as a response, compiled into steps of writing, waiting and breaking off.
//!
//! A reply is well-formed unless told otherwise: it has a `content-length` (or is chunked), none where a response has no content, and
//! nothing else that the test does not name: no `Date`, no `Server`. Positions are counted in bytes of content, so a test need not know how
//! long the head is.

use bytes::{Bytes, BytesMut};
use http::StatusCode;

use crate::Gate;

/// A scripted response.
#[derive(Clone, Debug)]
#[must_use = "a reply does nothing until it is given to Expecting::reply"]
pub struct Reply {
    interim: Vec<Bytes>,
    status: u16,
    fields: Vec<(String, Vec<u8>)>,
    content: Content,
    trailers: Vec<(String, String)>,
    content_length: Option<u64>,
    close: bool,
    byte_by_byte: bool,
    gate: Option<Gate>,
    /// The marks: what happens before the byte of content at this position is sent.
    marks: Vec<(usize, Mark)>,
    echo: bool,
}

#[derive(Clone, Debug)]
enum Content {
    Sized(Bytes),
    Chunks(Vec<Bytes>),
    UntilClose(Bytes),
    /// The whole response, head included, exactly as it is.
    Raw(Bytes),
}

#[derive(Clone, Debug)]
enum Mark {
    Wait(Gate),
    BreakOff,
    Reset,
}

/// One step of sending a reply.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Send(Bytes),
    Wait(Gate),
    /// Closes the connection in an orderly way (FIN).
    Close,
    /// Closes the connection with a reset (RST).
    Reset,
    /// Sends back everything that comes in until the peer closes.
    Echo,
}

/// Returns a 200 OK with that content.
pub fn ok(body: impl Into<Bytes>) -> Reply {
    status(200).body(body)
}

/// Returns a response with that status code and no content.
pub fn status(code: u16) -> Reply {
    Reply {
        interim: Vec::new(),
        status: code,
        fields: Vec::new(),
        content: Content::Sized(Bytes::new()),
        trailers: Vec::new(),
        content_length: None,
        close: false,
        byte_by_byte: false,
        gate: None,
        marks: Vec::new(),
        echo: false,
    }
}

/// Returns a 304 Not Modified.
pub fn not_modified() -> Reply {
    status(304)
}

/// Returns a reply that sends exactly these bytes instead of a response. The connection is then closed unless [`Reply::keep_open`] is
/// called. Positions are counted from the first of these bytes.
pub fn raw(bytes: impl Into<Bytes>) -> Reply {
    Reply { content: Content::Raw(bytes.into()), close: true, ..status(200) }
}

pub(super) fn upgrade_echo(protocol: &str) -> Reply {
    Reply { echo: true, ..status(101).field("connection", "upgrade").field("upgrade", protocol) }
}

impl Reply {
    /// Adds a field line; the value may be any bytes. `content-length` and `transfer-encoding` given here replace the right ones.
    pub fn field(mut self, name: &str, value: impl Into<Vec<u8>>) -> Self {
        self.fields.push((name.to_owned(), value.into()));
        self
    }

    /// Adds content, with a `content-length`.
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.content = Content::Sized(body.into());
        self
    }

    /// Adds chunked content, one chunk for each of these (empty ones, which would end the content, are left out).
    pub fn chunks<B: Into<Bytes>>(mut self, chunks: impl IntoIterator<Item = B>) -> Self {
        self.content = Content::Chunks(chunks.into_iter().map(Into::into).filter(|chunk: &Bytes| !chunk.is_empty()).collect());
        self
    }

    /// Adds content that ends where the connection does.
    pub fn until_close(mut self, body: impl Into<Bytes>) -> Self {
        self.content = Content::UntilClose(body.into());
        self.close = true;
        self
    }

    /// Adds a trailer field; only chunked content can have any.
    pub fn trailer(mut self, name: &str, value: &str) -> Self {
        self.trailers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Announces `n` bytes of content, whatever its length is. If the content is shorter, the connection is closed after it.
    pub const fn content_length(mut self, n: u64) -> Self {
        self.content_length = Some(n);
        self
    }

    /// Replaces everything by exactly these bytes: see [`raw`](fn@raw).
    pub fn raw(mut self, bytes: impl Into<Bytes>) -> Self {
        self.content = Content::Raw(bytes.into());
        self.close = true;
        self
    }

    /// Sends an interim response (1xx) before this one.
    pub fn interim(mut self, code: u16, fields: &[(&str, &str)]) -> Self {
        let mut bytes = start_line(code);
        for (name, value) in fields {
            bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        self.interim.push(bytes.freeze());
        self
    }

    /// Closes the connection after the reply, without announcing it.
    pub const fn close(mut self) -> Self {
        self.close = true;
        self
    }

    /// Leaves the connection open after a reply that would close it.
    pub const fn keep_open(mut self) -> Self {
        self.close = false;
        self
    }

    /// Waits at `gate` before anything is sent, except interim responses.
    pub fn gate(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    /// Waits at `gate` when the head and `n` bytes of content have been sent.
    pub fn gate_after(self, n: usize, gate: &Gate) -> Self {
        self.mark(n, Mark::Wait(gate.clone()))
    }

    /// Closes the connection when the head and `n` bytes of content have been sent.
    pub fn break_off_after(self, n: usize) -> Self {
        self.mark(n, Mark::BreakOff)
    }

    /// Resets the connection when the head and `n` bytes of content have been sent. The peer may lose bytes that it has not read by then:
    /// only a gate before the reset makes sure that they arrive.
    pub fn reset_after(self, n: usize) -> Self {
        self.mark(n, Mark::Reset)
    }

    /// Writes every byte by itself.
    pub const fn byte_by_byte(mut self) -> Self {
        self.byte_by_byte = true;
        self
    }

    fn mark(mut self, at: usize, mark: Mark) -> Self {
        self.marks.push((at, mark));
        // The sort is stable: marks at the same position happen in the order in which the test names them.
        self.marks.sort_by_key(|(at, _)| *at);
        self
    }

    /// Returns the steps, in order, that send this as the response to a request with `method`.
    pub(super) fn steps(self, method: &str) -> Vec<Step> {
        let mut steps: Vec<Step> = self.interim.iter().cloned().map(Step::Send).collect();
        steps.extend(self.gate.clone().map(Step::Wait));
        if !matches!(self.content, Content::Raw(_)) {
            steps.push(Step::Send(self.head(method)));
        }
        let mut close = self.close;
        let mut writing = Writing { steps, marks: &self.marks, position: 0 };
        match &self.content {
            Content::Raw(bytes) => writing.content(bytes),
            _ if self.has_no_content(method) => {}
            Content::Sized(bytes) => {
                writing.content(bytes);
                close |= self.content_length.is_some_and(|said| said != bytes.len() as u64);
            }
            Content::UntilClose(bytes) => writing.content(bytes),
            Content::Chunks(chunks) => writing.chunks(chunks, &self.trailers),
        }
        writing.marks_up_to(usize::MAX);
        let mut steps = writing.steps;
        if self.byte_by_byte {
            steps = steps.into_iter().flat_map(one_by_one).collect();
        }
        steps.extend(self.echo.then_some(Step::Echo));
        steps.extend(close.then_some(Step::Close));
        steps
    }

    fn head(&self, method: &str) -> Bytes {
        let mut head = start_line(self.status);
        for (name, value) in &self.fields {
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value);
            head.extend_from_slice(b"\r\n");
        }
        let said =
            self.fields.iter().any(|(name, _)| ["content-length", "transfer-encoding"].iter().any(|own| name.eq_ignore_ascii_case(own)));
        // A 304 may name the length that a 200 would have had, but has no length of its own (RFC 9110 §8.6).
        let without = self.has_no_content(method) && method != "HEAD";
        let line = match (&self.content, self.content_length) {
            (_, Some(n)) => format!("content-length: {n}\r\n"),
            _ if said || without => String::new(),
            (Content::Sized(bytes), None) => format!("content-length: {}\r\n", bytes.len()),
            (Content::Chunks(_), None) => "transfer-encoding: chunked\r\n".to_owned(),
            (Content::UntilClose(_) | Content::Raw(_), None) => String::new(),
        };
        head.extend_from_slice(line.as_bytes());
        head.extend_from_slice(b"\r\n");
        head.freeze()
    }

    /// Returns whether the response has no content (RFC 9110 §6.4.1).
    fn has_no_content(&self, method: &str) -> bool {
        method == "HEAD" || matches!(self.status, 100..=199 | 204 | 304)
    }
}

/// The steps written so far, with the marks that are still to come.
struct Writing<'a> {
    steps: Vec<Step>,
    marks: &'a [(usize, Mark)],
    position: usize,
}

impl Writing<'_> {
    /// Adds content as it is, interrupted where there is a mark.
    fn content(&mut self, bytes: &Bytes) {
        let end = self.position + bytes.len();
        let mut rest = bytes.clone();
        while let Some(&(at, _)) = self.marks.first().filter(|(at, _)| *at < end) {
            self.send(rest.split_to(at.saturating_sub(self.position)));
            self.marks_up_to(at);
        }
        self.send(rest);
    }

    fn chunks(&mut self, chunks: &[Bytes], trailers: &[(String, String)]) {
        for chunk in chunks {
            // The marks come before the size line: a mark between two chunks leaves the reader between them too.
            self.marks_up_to(self.position);
            self.steps.push(Step::Send(Bytes::from(format!("{:x}\r\n", chunk.len()))));
            self.content(chunk);
            self.steps.push(Step::Send(Bytes::from_static(b"\r\n")));
        }
        self.marks_up_to(usize::MAX);
        let trailers: String = trailers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        self.steps.push(Step::Send(Bytes::from(format!("0\r\n{trailers}\r\n"))));
    }

    fn send(&mut self, bytes: Bytes) {
        self.position += bytes.len();
        if !bytes.is_empty() {
            self.steps.push(Step::Send(bytes));
        }
    }

    fn marks_up_to(&mut self, position: usize) {
        while let Some(((at, mark), later)) = self.marks.split_first() {
            if *at > position {
                return;
            }
            self.steps.push(match mark {
                Mark::Wait(gate) => Step::Wait(gate.clone()),
                Mark::BreakOff => Step::Close,
                Mark::Reset => Step::Reset,
            });
            self.marks = later;
        }
    }
}

fn start_line(code: u16) -> BytesMut {
    let reason = StatusCode::from_u16(code).ok().and_then(|status| status.canonical_reason()).unwrap_or_default();
    BytesMut::from(format!("HTTP/1.1 {code} {reason}\r\n").as_bytes())
}

fn one_by_one(step: Step) -> Vec<Step> {
    match step {
        Step::Send(bytes) => (0..bytes.len()).map(|at| Step::Send(bytes.slice(at..=at))).collect(),
        other => vec![other],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bytes sent, with `|` for a wait, `!` for a close, `~` for a reset.
    fn written(reply: Reply, method: &str) -> String {
        let text = |step: Step| match step {
            Step::Send(bytes) => String::from_utf8(bytes.to_vec()).expect("these tests send text"),
            Step::Wait(_) => "|".to_owned(),
            Step::Close => "!".to_owned(),
            Step::Reset => "~".to_owned(),
            Step::Echo => "@".to_owned(),
        };
        reply.steps(method).into_iter().map(text).collect()
    }

    #[test]
    fn a_reply_is_well_formed_unless_told_otherwise() {
        for (reply, method, expected) in [
            (ok("v1").field("a", "b"), "GET", "HTTP/1.1 200 OK\r\na: b\r\ncontent-length: 2\r\n\r\nv1"),
            (ok("v1"), "HEAD", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"),
            (
                ok("").chunks(["v1", "", "0123456789"]),
                "GET",
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nv1\r\na\r\n0123456789\r\n0\r\n\r\n",
            ),
            (
                ok("").chunks(["a"]).trailer("t", "1"),
                "GET",
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nt: 1\r\n\r\n",
            ),
            (ok("").until_close("v1"), "GET", "HTTP/1.1 200 OK\r\n\r\nv1!"),
            (not_modified().field("etag", "\"a\""), "GET", "HTTP/1.1 304 Not Modified\r\netag: \"a\"\r\n\r\n"),
            (status(204), "DELETE", "HTTP/1.1 204 No Content\r\n\r\n"),
            (status(404), "GET", "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"),
            (
                ok("v1").interim(103, &[("link", "</a>")]),
                "GET",
                "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nv1",
            ),
            (ok("v1").byte_by_byte(), "GET", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nv1"),
        ] {
            assert_eq!(written(reply, method), expected);
        }
    }

    #[test]
    fn a_reply_lies_waits_and_breaks_off_where_told() {
        let gate = Gate::new();
        for (reply, expected) in [
            (ok("v1").content_length(9), "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nv1!"),
            (ok("v1").field("Content-Length", "x"), "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nv1"),
            (ok("v1").gate(&gate), "|HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nv1"),
            (ok("v1").gate_after(0, &gate), "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n|v1"),
            (ok("v1").gate_after(1, &gate).break_off_after(1), "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nv|!1"),
            (ok("v1").reset_after(2), "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nv1~"),
            (
                ok("").chunks(["ab", "cd"]).gate_after(2, &gate).break_off_after(3).gate_after(4, &gate),
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n|2\r\nc!d\r\n|0\r\n\r\n",
            ),
            (raw("HTTP/1.1 2"), "HTTP/1.1 2!"),
            (raw("abc").gate_after(1, &gate).keep_open(), "a|bc"),
        ] {
            assert_eq!(written(reply, "GET"), expected);
        }
    }
}
