//! Streams in one direction (RFC 9114 §6.2): settings, and what a client says of the connection as a whole.

use std::{
    cell::Cell,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Instant,
};

use bytes::{Buf, Bytes};

use super::{
    code::{Code, Fault},
    frame::{self, FrameHead},
    message::{Frames, Source},
    purse::{self, Purse},
};

/// The types of streams (RFC 9114 §6.2.1 and §6.2.2, RFC 9204 §4.2).
const CONTROL: u64 = 0x0;
const PUSH: u64 = 0x1;
const ENCODER: u64 = 0x2;
const DECODER: u64 = 0x3;

/// The identifier of `SETTINGS_MAX_FIELD_SECTION_SIZE` (RFC 9114 §7.2.4.1). The settings of QPACK are zero unless they are sent: no dynamic
/// table, nothing that waits.
const MAX_FIELD_SECTION_SIZE: u64 = 0x6;

/// The most bytes of a frame on the control stream: a longer one says more than anybody has to say there.
const FRAME_MAX: u64 = 4 * 1024;

/// Returns what our control stream begins with: its type and our settings.
#[must_use]
pub fn opening(field_section_max: usize) -> Vec<u8> {
    let mut settings = Vec::new();
    frame::write_integer(MAX_FIELD_SECTION_SIZE, &mut settings);
    frame::write_integer(field_section_max as u64, &mut settings);
    let mut out = Vec::new();
    frame::write_integer(CONTROL, &mut out);
    frame::write_head(frame::SETTINGS, settings.len(), &mut out);
    out.extend_from_slice(&settings);
    out
}

/// Returns the frame that says goodbye: requests on streams from `next` on are not answered (RFC 9114 §5.2).
#[must_use]
pub fn goaway(next: u64) -> Vec<u8> {
    let mut id = Vec::new();
    frame::write_integer(next, &mut id);
    let mut out = Vec::new();
    frame::write_head(frame::GOAWAY, id.len(), &mut out);
    out.extend_from_slice(&id);
    out
}

/// Remembers which streams the client has opened of those that exist once (RFC 9114 §6.2).
#[derive(Debug, Default)]
pub struct UniqueStreams(Cell<u8>);

impl UniqueStreams {
    fn first(&self, kind: u64) -> Result<(), Fault> {
        let bit = 1_u8 << kind;
        let before = self.0.replace(self.0.get() | bit);
        if before & bit == 0 { Ok(()) } else { Err(Fault::Connection(Code::StreamCreationError)) }
    }
}

/// Listens to one stream in one direction, to its end, which for most is the connection's.
#[derive(Debug)]
pub struct Listener<R> {
    frames: Frames<TypedStream<R>>,
    opened: Rc<UniqueStreams>,
    purse: Arc<Purse>,
    /// The type of the stream, once it has come.
    kind: Option<u64>,
    control: Control,
    /// Whether a QPACK instruction's integer goes on.
    in_integer: bool,
}

impl<R: Source> Listener<R> {
    /// Begins to listen. `opened` is the connection's, and so is `purse`, from which frames that say nothing are paid.
    pub fn new(source: R, opened: Rc<UniqueStreams>, purse: Arc<Purse>) -> Self {
        let frames = Frames::new(TypedStream { source, bytes: Bytes::new(), held: Vec::new() });
        Self { frames, opened, purse, kind: None, control: Control::default(), in_integer: false }
    }

    /// Returns the stream itself.
    pub const fn source(&mut self) -> &mut R {
        &mut self.frames.source().source
    }

    /// Takes what has come. It is ready with `Ok` when nobody needs the stream (any more).
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        let kind = match self.kind {
            Some(kind) => kind,
            None => {
                // A stream may end before it says what it is (RFC 9114 §6.2).
                let Some(kind) = ready!(self.frames.source().poll_integer(cx))? else { return Poll::Ready(Ok(())) };
                match kind {
                    CONTROL | ENCODER | DECODER => self.opened.first(kind)?,
                    // Servers push, clients do not.
                    PUSH => return Poll::Ready(Err(Fault::Connection(Code::StreamCreationError))),
                    _ => {}
                }
                *self.kind.insert(kind)
            }
        };
        match kind {
            CONTROL => self.poll_control(cx).map(Err),
            ENCODER | DECODER => self.poll_instructions(cx, kind).map(Err),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Reads the control stream until something is wrong with it: it has no other end.
    fn poll_control(&mut self, cx: &mut Context<'_>) -> Poll<Fault> {
        loop {
            let head = match self.control.frame {
                Some(head) => head,
                None => {
                    let head = match ready!(self.frames.poll_head(cx)) {
                        Ok(Some(head)) => head,
                        Ok(None) => return Poll::Ready(Fault::Connection(Code::ClosedCriticalStream)),
                        Err(fault) => return Poll::Ready(left(fault)),
                    };
                    if let Err(code) = self.control.admit(head, &self.purse) {
                        return Poll::Ready(Fault::Connection(code));
                    }
                    *self.control.frame.insert(head)
                }
            };
            let read = match is_said_here(head.kind) {
                true => self.frames.poll_whole(cx, &mut self.control.payload),
                false => self.frames.poll_skip(cx),
            };
            if let Err(fault) = ready!(read) {
                return Poll::Ready(left(fault));
            }
            if let Err(code) = self.control.take_frame(head.kind) {
                return Poll::Ready(Fault::Connection(code));
            }
        }
    }

    /// Reads QPACK's streams, on which there is next to nothing to say without a dynamic table (RFC 9204 §4.3 and §4.4).
    fn poll_instructions(&mut self, cx: &mut Context<'_>, kind: u64) -> Poll<Fault> {
        loop {
            let bytes = match ready!(self.frames.source().poll_bytes(cx)) {
                Ok(Some(bytes)) => bytes,
                Ok(None) => return Poll::Ready(Fault::Connection(Code::ClosedCriticalStream)),
                Err(fault) => return Poll::Ready(left(fault)),
            };
            for byte in bytes {
                let is_allowed = match kind {
                    // A capacity of zero.
                    ENCODER => byte == 0x20,
                    // The rest of a cancelled stream's number, or the beginning of one.
                    _ if self.in_integer => {
                        self.in_integer = byte & 0x80 != 0;
                        true
                    }
                    _ => {
                        self.in_integer = byte & 0x3f == 0x3f;
                        byte & 0xc0 == 0x40
                    }
                };
                if !is_allowed {
                    let code = if kind == ENCODER { Code::EncoderStreamError } else { Code::DecoderStreamError };
                    return Poll::Ready(Fault::Connection(code));
                }
            }
        }
    }
}

/// A stream whose first bytes are its type.
#[derive(Debug)]
struct TypedStream<R> {
    source: R,
    bytes: Bytes,
    /// An integer that has come in part.
    held: Vec<u8>,
}

impl<R: Source> TypedStream<R> {
    fn poll_integer(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<u64>, Fault>> {
        loop {
            while self.bytes.has_remaining() {
                self.held.push(self.bytes.get_u8());
                if let Some((value, _)) = frame::integer(&self.held) {
                    return Poll::Ready(Ok(Some(value)));
                }
            }
            match ready!(self.source.poll_bytes(cx))? {
                Some(bytes) => self.bytes = bytes,
                None => return Poll::Ready(Ok(None)),
            }
        }
    }
}

impl<R: Source> Source for TypedStream<R> {
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Fault>> {
        if self.bytes.is_empty() {
            return self.source.poll_bytes(cx);
        }
        Poll::Ready(Ok(Some(std::mem::take(&mut self.bytes))))
    }
}

/// Says what has been said on a control stream.
#[derive(Debug)]
struct Control {
    has_settings: bool,
    push_id_max: u64,
    /// The number in the client's last goodbye.
    goodbye: u64,
    /// The frame at hand, and its payload as far as it has come.
    frame: Option<FrameHead>,
    payload: Vec<u8>,
}

impl Default for Control {
    fn default() -> Self {
        Self { has_settings: false, push_id_max: 0, goodbye: u64::MAX, frame: None, payload: Vec::new() }
    }
}

/// Returns whether a frame of this kind is looked at on a control stream.
const fn is_said_here(kind: u64) -> bool {
    matches!(kind, frame::SETTINGS | frame::GOAWAY | frame::MAX_PUSH_ID | frame::CANCEL_PUSH)
}

impl Control {
    /// Judges the head of a frame: settings come first, and neither a frame nor their number is boundless.
    fn admit(&self, head: FrameHead, purse: &Purse) -> Result<(), Code> {
        if !self.has_settings && head.kind != frame::SETTINGS {
            return Err(Code::MissingSettings);
        }
        let is_long = is_said_here(head.kind) && head.length > FRAME_MAX;
        if is_long || self.has_settings && !purse.pay(purse::EMPTY_FRAME, Instant::now()) {
            return Err(Code::ExcessiveLoad);
        }
        Ok(())
    }

    /// Takes a frame that has come whole.
    fn take_frame(&mut self, kind: u64) -> Result<(), Code> {
        self.frame = None;
        let payload = std::mem::take(&mut self.payload);
        match kind {
            frame::SETTINGS if self.has_settings => Err(Code::FrameUnexpected),
            frame::SETTINGS => {
                self.has_settings = true;
                settings(&payload)
            }
            // A goodbye that takes the one before back (RFC 9114 §5.2).
            frame::GOAWAY => only_integer(&payload).and_then(|id| {
                let before = std::mem::replace(&mut self.goodbye, id);
                if id > before { Err(Code::IdError) } else { Ok(()) }
            }),
            // A maximum that shrinks (§7.2.7).
            frame::MAX_PUSH_ID => only_integer(&payload).and_then(|id| {
                let before = std::mem::replace(&mut self.push_id_max, id);
                if id < before { Err(Code::IdError) } else { Ok(()) }
            }),
            // Nothing was pushed (§7.2.3).
            frame::CANCEL_PUSH => Err(Code::IdError),
            frame::DATA | frame::HEADERS | frame::PUSH_PROMISE => Err(Code::FrameUnexpected),
            kind if frame::is_of_http2(kind) => Err(Code::FrameUnexpected),
            // Among them priorities (RFC 9218), which are not looked at.
            _ => Ok(()),
        }
    }
}

/// Turns the end of a critical stream into the end of the connection (RFC 9114 §6.2.1). Where that is gone, nobody hears of it.
const fn left(fault: Fault) -> Fault {
    match fault {
        Fault::Gone | Fault::Stream(_) => Fault::Connection(Code::ClosedCriticalStream),
        Fault::Connection(_) => fault,
    }
}

/// Judges settings (RFC 9114 §7.2.4 and §7.2.4.1): they are pairs of integers, none twice, none of HTTP/2. Their values are of no use to us:
/// what we send is short and uses no table.
fn settings(payload: &[u8]) -> Result<(), Code> {
    let mut rest = payload;
    let mut seen = Vec::new();
    let mut next = || match frame::integer(rest) {
        Some((value, width)) => {
            rest = &rest[width..];
            Ok(Some(value))
        }
        None if rest.is_empty() => Ok(None),
        None => Err(Code::FrameError),
    };
    while let Some(id) = next()? {
        next()?.ok_or(Code::FrameError)?;
        if matches!(id, 0x0 | 0x2..=0x5) || seen.contains(&id) {
            return Err(Code::SettingsError);
        }
        // Of at most 2,048: enough for honest ones, which have ten.
        if seen.len() >= 64 {
            return Err(Code::ExcessiveLoad);
        }
        seen.push(id);
    }
    Ok(())
}

fn only_integer(payload: &[u8]) -> Result<u64, Code> {
    match frame::integer(payload) {
        Some((value, width)) if width == payload.len() => Ok(value),
        _ => Err(Code::FrameError),
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// A stream of which this much has come: and then its end, or nothing yet.
    struct Written(Vec<u8>, bool);

    impl Source for Written {
        fn poll_bytes(&mut self, _: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Fault>> {
            match self.0.is_empty() {
                true if self.1 => Poll::Ready(Ok(None)),
                true => Poll::Pending,
                // A byte at a time: the hardest way.
                false => Poll::Ready(Ok(Some(Bytes::copy_from_slice(&[self.0.remove(0)])))),
            }
        }
    }

    type Heard = Option<Result<(), Fault>>;

    /// Returns what becomes of a stream; `None` means that it is listened to further.
    fn heard(bytes: &[u8], ends: bool) -> Heard {
        let purse = Arc::new(Purse::new(Instant::now()));
        let mut listener = Listener::new(Written(bytes.to_vec(), ends), Rc::default(), purse);
        match listener.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(heard) => Some(heard),
            Poll::Pending => None,
        }
    }

    /// RFC 9114 §6.2, §7.2.3 to §7.2.8; RFC 9204 §4.2 to §4.4.
    #[test]
    fn control_streams_say_what_they_may_and_no_more() {
        let fails = |code| Some(Err(Fault::Connection(code)));
        // Type 0, empty settings.
        let begun = [0x00, 0x04, 0x00];
        let after = |more: &[u8]| [&begun[..], more].concat();
        let many: Vec<u8> = (0_u8..20).flat_map(|id| [0x40 | 0x21, id, 0]).collect();
        let many = [&[0x00, 0x04, 60][..], &many].concat();
        let rows: Vec<(&str, Vec<u8>, bool, Heard)> = vec![
            ("nothing yet", vec![], false, None),
            ("nothing at all", vec![], true, Some(Ok(()))),
            ("half a type", vec![0x40], true, Some(Ok(()))),
            ("a type that nobody knows", vec![0x21, 1, 2, 3], false, Some(Ok(()))),
            ("a push", vec![0x01], false, fails(Code::StreamCreationError)),
            ("settings", begun.to_vec(), false, None),
            ("settings of all kinds", vec![0x00, 0x04, 0x06, 0x01, 0x00, 0x06, 0x40, 0xff, 0x33], false, fails(Code::FrameError)),
            ("settings that are said", vec![0x00, 0x04, 0x05, 0x01, 0x00, 0x06, 0x40, 0xff], false, None),
            ("many settings", many, false, None),
            ("settings twice", after(&[0x04, 0x00]), false, fails(Code::FrameUnexpected)),
            ("one setting twice", vec![0x00, 0x04, 0x04, 0x06, 0x01, 0x06, 0x01], false, fails(Code::SettingsError)),
            ("a setting of HTTP/2", vec![0x00, 0x04, 0x02, 0x03, 0x01], false, fails(Code::SettingsError)),
            ("settings of a megabyte", vec![0x00, 0x04, 0x80, 0x10, 0x00, 0x00], false, fails(Code::ExcessiveLoad)),
            ("no settings", vec![0x00, 0x07, 0x01, 0x00], false, fails(Code::MissingSettings)),
            ("an end", begun.to_vec(), true, fails(Code::ClosedCriticalStream)),
            ("an end within a frame", after(&[0x07, 0x02, 0x00]), true, fails(Code::FrameError)),
            ("a goodbye", after(&[0x07, 0x01, 0x00]), false, None),
            ("a goodbye without a number", after(&[0x07, 0x00]), false, fails(Code::FrameError)),
            ("a goodbye with two", after(&[0x07, 0x02, 0x00, 0x00]), false, fails(Code::FrameError)),
            ("a maximum of pushes", after(&[0x0d, 0x01, 0x08, 0x0d, 0x01, 0x08]), false, None),
            ("one that shrinks", after(&[0x0d, 0x01, 0x08, 0x0d, 0x01, 0x07]), false, fails(Code::IdError)),
            ("a push that is cancelled", after(&[0x03, 0x01, 0x00]), false, fails(Code::IdError)),
            ("content", after(&[0x00, 0x00]), false, fails(Code::FrameUnexpected)),
            ("a head", after(&[0x01, 0x00]), false, fails(Code::FrameUnexpected)),
            ("a push promise", after(&[0x05, 0x00]), false, fails(Code::FrameUnexpected)),
            ("a ping of HTTP/2", after(&[0x06, 0x00]), false, fails(Code::FrameUnexpected)),
            ("a frame that nobody knows", after(&[0x21, 0x02, 0xff, 0xff]), false, None),
            ("a flood of them", after(&[0x21, 0x00].repeat(2_001)), false, fails(Code::ExcessiveLoad)),
            ("a table of no size", vec![0x02, 0x20], false, None),
            ("a table", vec![0x02, 0x3f, 0x01], false, fails(Code::EncoderStreamError)),
            ("an entry", vec![0x02, 0xc0, 0x00], false, fails(Code::EncoderStreamError)),
            ("the end of the encoder", vec![0x02], true, fails(Code::ClosedCriticalStream)),
            ("a stream cancelled", vec![0x03, 0x44, 0x7f, 0x80, 0x01, 0x40], false, None),
            ("an acknowledgement", vec![0x03, 0x84], false, fails(Code::DecoderStreamError)),
            ("an increment", vec![0x03, 0x01], false, fails(Code::DecoderStreamError)),
        ];
        for (name, bytes, ends, expected) in rows {
            assert_eq!(heard(&bytes, ends), expected, "{name}");
        }
    }

    #[test]
    fn there_is_one_of_each() {
        let opened = UniqueStreams::default();
        for kind in [CONTROL, ENCODER, DECODER] {
            assert_eq!(opened.first(kind), Ok(()));
            assert_eq!(opened.first(kind), Err(Fault::Connection(Code::StreamCreationError)));
        }
    }

    /// RFC 9114 §7.2.4.1 and §7.2.6.
    #[test]
    fn what_we_say_ourselves() {
        assert_eq!(opening(32 * 1024), [0x00, 0x04, 0x05, 0x06, 0x80, 0x00, 0x80, 0x00]);
        assert_eq!(goaway(8), [0x07, 0x01, 0x08]);
    }
}
