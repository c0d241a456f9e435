//! Streams in one direction (RFC 9114 §6.2): settings, and what a client says of the connection as a whole.

use std::{
    cell::Cell,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Instant,
};

use bytes::Buf;

use super::{
    code::{Code, Fault},
    frame,
    message::{Frames, Source},
    purse::{self, Purse},
};

/// Types of streams (RFC 9114 §6.2.1 and §6.2.2, RFC 9204 §4.2).
const CONTROL: u64 = 0x0;
const PUSH: u64 = 0x1;
const ENCODER: u64 = 0x2;
const DECODER: u64 = 0x3;

/// `SETTINGS_MAX_FIELD_SECTION_SIZE` (RFC 9114 §7.2.4.1). Those of QPACK are zero unless they are said: no dynamic table, nothing that waits.
const MAX_FIELD_SECTION_SIZE: u64 = 0x6;

/// A frame on the control stream that is longer says more than anybody has to say there.
const FRAME_MAX: u64 = 4 * 1024;

/// What our control stream begins with: its type and our settings.
pub(super) fn opening(field_section_max: usize) -> Vec<u8> {
    let mut settings = Vec::new();
    frame::write_integer(MAX_FIELD_SECTION_SIZE, &mut settings);
    frame::write_integer(field_section_max as u64, &mut settings);
    let mut out = Vec::new();
    frame::write_integer(CONTROL, &mut out);
    frame::write_head(frame::SETTINGS, settings.len(), &mut out);
    out.extend_from_slice(&settings);
    out
}

/// Says goodbye: requests on streams from `next` on are not answered (RFC 9114 §5.2).
pub(super) fn goaway(next: u64) -> Vec<u8> {
    let mut id = Vec::new();
    frame::write_integer(next, &mut id);
    let mut out = Vec::new();
    frame::write_head(frame::GOAWAY, id.len(), &mut out);
    out.extend_from_slice(&id);
    out
}

/// Which of the streams that there is one of each the client has opened.
#[derive(Debug, Default)]
pub(super) struct Opened(Cell<u8>);

impl Opened {
    fn first(&self, kind: u64) -> Result<(), Fault> {
        let bit = 1_u8 << kind;
        let before = self.0.replace(self.0.get() | bit);
        if before & bit == 0 { Ok(()) } else { Err(Fault::Connection(Code::StreamCreationError)) }
    }
}

/// Listens to a stream to its end, which for most is the connection's. `Ok`: nobody needs the stream (any more).
pub(super) async fn listen<R: Source>(mut source: R, opened: &Opened, purse: Arc<Purse>) -> (R, Result<(), Fault>) {
    let listened = listen_to(&mut source, opened, &purse).await;
    (source, listened)
}

async fn listen_to<R: Source>(source: &mut R, opened: &Opened, purse: &Purse) -> Result<(), Fault> {
    let mut begun = Begun { source, bytes: bytes::Bytes::new(), held: Vec::new() };
    // A stream may end before it says what it is (RFC 9114 §6.2).
    let Some(kind) = poll_fn(|cx| begun.poll_integer(cx)).await? else { return Ok(()) };
    match kind {
        CONTROL => {
            opened.first(kind)?;
            let mut frames = Frames::new(begun);
            Err(control(&mut frames, purse).await)
        }
        ENCODER | DECODER => {
            opened.first(kind)?;
            Err(instructions(&mut begun, kind).await)
        }
        // Servers push, clients do not.
        PUSH => Err(Fault::Connection(Code::StreamCreationError)),
        _ => Ok(()),
    }
}

/// A stream whose first bytes have been read.
struct Begun<'a, R> {
    source: &'a mut R,
    bytes: bytes::Bytes,
    /// An integer that has come in part.
    held: Vec<u8>,
}

impl<R: Source> Begun<'_, R> {
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

impl<R: Source> Source for Begun<'_, R> {
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<bytes::Bytes>, Fault>> {
        if self.bytes.is_empty() {
            return self.source.poll_bytes(cx);
        }
        Poll::Ready(Ok(Some(std::mem::take(&mut self.bytes))))
    }
}

/// Reads the control stream until something is wrong with it: it has no other end.
async fn control<R: Source>(frames: &mut Frames<R>, purse: &Purse) -> Fault {
    let mut has_settings = false;
    let mut push_id_max = 0;
    let mut goodbye = u64::MAX;
    loop {
        let head = match poll_fn(|cx| frames.poll_head(cx)).await {
            Ok(Some(head)) => head,
            Ok(None) => return Fault::Connection(Code::ClosedCriticalStream),
            Err(fault) => return left(fault),
        };
        if !has_settings && head.kind != frame::SETTINGS {
            return Fault::Connection(Code::MissingSettings);
        }
        let is_known = matches!(head.kind, frame::SETTINGS | frame::GOAWAY | frame::MAX_PUSH_ID | frame::CANCEL_PUSH);
        if is_known && head.length > FRAME_MAX || has_settings && !purse.pay(purse::EMPTY_FRAME, Instant::now()) {
            return Fault::Connection(Code::ExcessiveLoad);
        }
        let mut payload = Vec::new();
        let read = match is_known {
            true => poll_fn(|cx| frames.poll_whole(cx, &mut payload)).await,
            false => poll_fn(|cx| frames.poll_skip(cx)).await,
        };
        if let Err(fault) = read {
            return left(fault);
        }
        let said = match head.kind {
            frame::SETTINGS if has_settings => Err(Code::FrameUnexpected),
            frame::SETTINGS => {
                has_settings = true;
                settings(&payload)
            }
            // A goodbye that takes the one before back (RFC 9114 §5.2).
            frame::GOAWAY => only_integer(&payload).and_then(|id| {
                let before = std::mem::replace(&mut goodbye, id);
                if id > before { Err(Code::IdError) } else { Ok(()) }
            }),
            // A maximum that shrinks (§7.2.7).
            frame::MAX_PUSH_ID => only_integer(&payload).and_then(|id| {
                let before = std::mem::replace(&mut push_id_max, id);
                if id < before { Err(Code::IdError) } else { Ok(()) }
            }),
            // Nothing was pushed (§7.2.3).
            frame::CANCEL_PUSH => Err(Code::IdError),
            frame::DATA | frame::HEADERS | frame::PUSH_PROMISE => Err(Code::FrameUnexpected),
            kind if frame::is_of_http2(kind) => Err(Code::FrameUnexpected),
            // Among them priorities (RFC 9218), which are not looked at.
            _ => Ok(()),
        };
        if let Err(code) = said {
            return Fault::Connection(code);
        }
    }
}

/// A critical stream that is reset is one that is closed (RFC 9114 §6.2.1); where the connection is gone, nobody hears of it.
const fn left(fault: Fault) -> Fault {
    match fault {
        Fault::Gone | Fault::Stream(_) => Fault::Connection(Code::ClosedCriticalStream),
        Fault::Connection(_) => fault,
    }
}

/// RFC 9114 §7.2.4 and §7.2.4.1: pairs of integers, none twice, none of HTTP/2. What they say is of no use to us: what we send is short and
/// uses no table.
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

/// QPACK's streams, on which there is next to nothing to say without a dynamic table (RFC 9204 §4.3 and §4.4).
async fn instructions<R: Source>(source: &mut R, kind: u64) -> Fault {
    let mut in_integer = false;
    loop {
        let bytes = match poll_fn(|cx| source.poll_bytes(cx)).await {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Fault::Connection(Code::ClosedCriticalStream),
            Err(fault) => return left(fault),
        };
        for byte in bytes {
            let is_allowed = match kind {
                // A capacity of zero.
                ENCODER => byte == 0x20,
                // The rest of a cancelled stream's number, or the beginning of one.
                _ if in_integer => {
                    in_integer = byte & 0x80 != 0;
                    true
                }
                _ => {
                    in_integer = byte & 0x3f == 0x3f;
                    byte & 0xc0 == 0x40
                }
            };
            if !is_allowed {
                return Fault::Connection(if kind == ENCODER { Code::EncoderStreamError } else { Code::DecoderStreamError });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{future::Future, pin::pin, task::Waker};

    use bytes::Bytes;

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

    /// What becomes of it; `None`: it is listened to further.
    fn heard(bytes: &[u8], ends: bool) -> Heard {
        let purse = Arc::new(Purse::new(Instant::now()));
        let opened = Opened::default();
        let mut listening = pin!(listen(Written(bytes.to_vec(), ends), &opened, purse));
        match listening.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready((_, heard)) => Some(heard),
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
        let opened = Opened::default();
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
