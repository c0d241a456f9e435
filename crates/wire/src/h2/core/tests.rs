use http::StatusCode;

use super::*;
use crate::h2::frame::{PREFACE, flag, kind};

type Frames = Vec<Vec<u8>>;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    Head { length: payload.len(), kind, flags, stream }.write(&mut frame);
    frame.extend_from_slice(payload);
    frame
}

/// Returns the block of `GET / https a`, without compression or a table.
fn block() -> Vec<u8> {
    b"\x82\x87\x84\x01\x01a".to_vec()
}

fn get(stream: u32) -> Vec<u8> {
    frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, &block())
}

/// Returns the head of `POST / https a`, whose content is yet to come.
fn post(stream: u32) -> Vec<u8> {
    frame(kind::HEADERS, flag::END_HEADERS, stream, b"\x83\x87\x84\x01\x01a")
}

fn data(stream: u32, length: usize, flags: u8) -> Vec<u8> {
    frame(kind::DATA, flags, stream, &vec![b'x'; length])
}

fn begun() -> Core<Vec<u8>> {
    let mut core = Core::new(HeadLimits::default(), Instant::now());
    say(&mut core, PREFACE).expect("a preface");
    say(&mut core, &frame(kind::SETTINGS, 0, 0, &[])).expect("settings");
    sent(&mut core);
    core
}

/// Passes all of `bytes` to the connection, and returns the events.
fn say(core: &mut Core<Vec<u8>>, mut bytes: &[u8]) -> Result<Vec<Event>, Fault> {
    let mut events = Vec::new();
    loop {
        let (taken, event) = core.next(bytes)?;
        events.extend(event);
        bytes = &bytes[taken..];
        if taken == 0 {
            return Ok(events);
        }
    }
}

/// Returns the frames that are ready to leave, and removes them.
fn sent(core: &mut Core<Vec<u8>>) -> Vec<(Head, Vec<u8>)> {
    core.pump();
    let mut bytes = Vec::new();
    while !core.output.is_empty() {
        let mut slices = [std::io::IoSlice::new(&[]); crate::h2::output::SLICES];
        let filled = core.output.slices(&mut slices);
        let piece: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect();
        core.left(piece.len());
        bytes.extend(piece);
        core.pump();
    }
    let mut frames = Vec::new();
    let mut rest = &bytes[..];
    while let Some(head) = Head::read(rest) {
        frames.push((head, rest[frame::HEAD..frame::HEAD + head.length].to_vec()));
        rest = &rest[frame::HEAD + head.length..];
    }
    assert!(rest.is_empty(), "half a frame");
    frames
}

fn resets(core: &mut Core<Vec<u8>>) -> Vec<(u32, Code)> {
    let is_reset = |(head, payload): (Head, Vec<u8>)| (head.kind == kind::RST_STREAM).then_some((head.stream, payload));
    sent(core)
        .into_iter()
        .filter_map(is_reset)
        .map(|(stream, payload)| (stream, Code(frame::u32_of(&payload).unwrap_or_default())))
        .collect()
}

/// RFC 9113 §5.4.1: these errors end the connection, with this code.
#[test]
fn errors_of_connections() {
    let own = |kind: u8, payload: &[u8]| vec![frame(kind, 0, 0, payload)];
    let setting = |name: u16, value: u32| {
        let payload = [&name.to_be_bytes()[..], &value.to_be_bytes()].concat();
        vec![frame(kind::SETTINGS, 0, 0, &payload)]
    };
    let rows: Vec<(&str, Frames, Code)> = vec![
        ("§4.2 a frame beyond the size that was announced", vec![frame(kind::DATA, 0, 1, &[0; 16_385])], Code::FRAME_SIZE_ERROR),
        ("§4.3 a head that cannot be decoded", vec![frame(kind::HEADERS, 5, 1, &[0xff; 4])], Code::COMPRESSION_ERROR),
        ("§5.1 content on a stream that has not begun", vec![data(1, 1, 0)], Code::PROTOCOL_ERROR),
        ("§5.1 a reset of one", vec![frame(kind::RST_STREAM, 0, 1, &[0; 4])], Code::PROTOCOL_ERROR),
        ("§5.1 a window of one", vec![frame(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1])], Code::PROTOCOL_ERROR),
        (
            "§5.1 content after a reset by the client",
            vec![post(1), frame(kind::RST_STREAM, 0, 1, &[0; 4]), data(1, 1, 0)],
            Code::STREAM_CLOSED,
        ),
        ("§5.1 a head after a reset by the client", vec![post(1), frame(kind::RST_STREAM, 0, 1, &[0; 4]), get(1)], Code::STREAM_CLOSED),
        ("§5.1.1 a stream of the server's", vec![get(2)], Code::PROTOCOL_ERROR),
        ("§5.1.1 a lower number", vec![get(5), get(3)], Code::PROTOCOL_ERROR),
        ("§6.1 content without a stream", vec![data(0, 1, 0)], Code::PROTOCOL_ERROR),
        ("§6.1 more padding than frame", vec![post(1), frame(kind::DATA, flag::PADDED, 1, &[9, 0])], Code::PROTOCOL_ERROR),
        ("§6.2 a head without a stream", vec![get(0)], Code::PROTOCOL_ERROR),
        ("§6.2 a head with too much padding", vec![frame(kind::HEADERS, 5 | flag::PADDED, 1, &[9, 0])], Code::PROTOCOL_ERROR),
        ("§6.3 a priority without a stream", own(kind::PRIORITY, &[0; 5]), Code::PROTOCOL_ERROR),
        ("§6.4 a reset without a stream", own(kind::RST_STREAM, &[0; 4]), Code::PROTOCOL_ERROR),
        ("§6.4 a short reset", vec![post(1), frame(kind::RST_STREAM, 0, 1, &[0; 3])], Code::FRAME_SIZE_ERROR),
        ("§6.5 settings of a stream", vec![frame(kind::SETTINGS, 0, 1, &[])], Code::PROTOCOL_ERROR),
        ("§6.5 an acknowledgement that says something", vec![frame(kind::SETTINGS, flag::ACK, 0, &[0; 6])], Code::FRAME_SIZE_ERROR),
        ("§6.5 a part of a setting", own(kind::SETTINGS, &[0; 5]), Code::FRAME_SIZE_ERROR),
        ("§6.5.2 neither push nor not", setting(setting::ENABLE_PUSH, 2), Code::PROTOCOL_ERROR),
        ("§6.5.2 too large a window", setting(setting::INITIAL_WINDOW_SIZE, 1 << 31), Code::FLOW_CONTROL_ERROR),
        ("§6.5.2 too small a frame", setting(setting::MAX_FRAME_SIZE, 16_383), Code::PROTOCOL_ERROR),
        ("§6.5.2 too large a frame", setting(setting::MAX_FRAME_SIZE, 1 << 24), Code::PROTOCOL_ERROR),
        ("§6.6 a push", vec![frame(kind::PUSH_PROMISE, 4, 1, &[0; 4])], Code::PROTOCOL_ERROR),
        ("§6.7 a ping on a stream", vec![frame(kind::PING, 0, 1, &[0; 8])], Code::PROTOCOL_ERROR),
        ("§6.7 a short ping", own(kind::PING, &[0; 7]), Code::FRAME_SIZE_ERROR),
        ("§6.8 a goodbye on a stream", vec![frame(kind::GOAWAY, 0, 1, &[0; 8])], Code::PROTOCOL_ERROR),
        ("§6.9 a window of nothing", own(kind::WINDOW_UPDATE, &[0; 4]), Code::PROTOCOL_ERROR),
        ("§6.9 a short window", own(kind::WINDOW_UPDATE, &[0; 3]), Code::FRAME_SIZE_ERROR),
        ("§6.9.1 a window beyond all bounds", own(kind::WINDOW_UPDATE, &[0x7f, 0xff, 0xff, 0xff]), Code::FLOW_CONTROL_ERROR),
        ("§6.10 the rest of no head", vec![frame(kind::CONTINUATION, 4, 1, &block())], Code::PROTOCOL_ERROR),
        (
            "§6.10 another frame within a head",
            vec![frame(kind::HEADERS, 1, 1, &block()), own(kind::PING, &[0; 8])[0].clone()],
            Code::PROTOCOL_ERROR,
        ),
        (
            "§6.10 another stream within a head",
            vec![frame(kind::HEADERS, 1, 1, &block()), frame(kind::CONTINUATION, 4, 3, &[])],
            Code::PROTOCOL_ERROR,
        ),
        ("RFC 9218 §7.1 an update on a stream", vec![frame(kind::PRIORITY_UPDATE, 0, 1, &[0, 0, 0, 1])], Code::PROTOCOL_ERROR),
        ("RFC 9218 §7.1 an update of no stream", own(kind::PRIORITY_UPDATE, &[0; 4]), Code::PROTOCOL_ERROR),
    ];
    for (name, frames, code) in rows {
        let fault = say(&mut begun(), &frames.concat()).expect_err(name);
        assert_eq!((fault.code, fault.is_flood), (code, false), "{name}");
    }
    let mut core: Core<Vec<u8>> = Core::new(HeadLimits::default(), Instant::now());
    assert_eq!(say(&mut core, b"GET / HTTP/1.1\r\n\r\n").expect_err("no preface").code, Code::PROTOCOL_ERROR);
    let mut core: Core<Vec<u8>> = Core::new(HeadLimits::default(), Instant::now());
    let early = [&PREFACE[..], &frame(kind::PING, 0, 0, &[0; 8])].concat();
    assert_eq!(say(&mut core, &early).expect_err("§3.4: settings come first").code, Code::PROTOCOL_ERROR);
}

/// RFC 9113 §5.4.2: these errors end a stream alone; the next one is served.
#[test]
fn errors_of_streams() {
    let priority = |length: usize, on: u8| frame(kind::PRIORITY, 0, 1, &[0, 0, 0, on, 0, 0][..length]);
    let rows: Vec<(&str, Frames, Code)> = vec![
        ("§5.1 content after the end", vec![get(1), data(1, 1, 0)], Code::STREAM_CLOSED),
        ("§5.1 a second head after the end", vec![get(1), get(1)], Code::STREAM_CLOSED),
        (
            "§5.3.1 a head that depends on itself",
            vec![frame(kind::HEADERS, 0x25, 1, &[&[0, 0, 0, 1, 0][..], &block()].concat())],
            Code::PROTOCOL_ERROR,
        ),
        ("§5.3.1 a priority that depends on itself", vec![post(1), priority(5, 1)], Code::PROTOCOL_ERROR),
        ("§6.3 a short priority", vec![post(1), priority(4, 0)], Code::FRAME_SIZE_ERROR),
        ("§6.9 a window of nothing", vec![post(1), frame(kind::WINDOW_UPDATE, 0, 1, &[0; 4])], Code::PROTOCOL_ERROR),
        (
            "§6.9.1 a window beyond all bounds",
            vec![post(1), frame(kind::WINDOW_UPDATE, 0, 1, &[0x7f, 0xff, 0xff, 0xff])],
            Code::FLOW_CONTROL_ERROR,
        ),
        ("§6.9.1 more content than window", [vec![post(1)], vec![data(1, 16_384, 0); 5]].concat(), Code::FLOW_CONTROL_ERROR),
        ("§8.1 trailers that end nothing", vec![post(1), frame(kind::HEADERS, 4, 1, b"\x00\x01x\x01y")], Code::PROTOCOL_ERROR),
        ("§8.1 trailers with a pseudo-field", vec![post(1), frame(kind::HEADERS, 5, 1, b"\x82")], Code::PROTOCOL_ERROR),
    ];
    for (name, frames, code) in rows {
        let mut core = begun();
        // The content has a reader, who does not read.
        let mut content = None;
        for frame in frames {
            for event in say(&mut core, &frame).expect(name) {
                if let Event::Request { stream, ends: false, .. } = event {
                    let (feed, end) = crate::h2::content::content(Waker::noop().clone());
                    content = Some(end);
                    core.receive(stream, feed, None);
                }
            }
        }
        assert_eq!(resets(&mut core), [(1, code)], "{name}");
        assert!(matches!(say(&mut core, &get(3)).expect(name)[..], [Event::Request { stream: 3, ends: true, .. }]), "{name}");
        drop(content);
    }
}

/// §6.9: content that is read makes room again, for the stream and for the connection; content that nobody reads is released.
#[test]
fn windows_open_as_content_is_read() {
    let mut core = begun();
    say(&mut core, &post(1)).expect("a request");
    let (feed, mut content) = crate::h2::content::content(Waker::noop().clone());
    core.receive(1, feed, None);
    core.hold(1);
    let mut cx = std::task::Context::from_waker(Waker::noop());
    for _ in 0..100 {
        say(&mut core, &data(1, 16_000, 0)).expect("within the window");
        assert!(matches!(content.poll_data(&mut cx), std::task::Poll::Ready(Some(Ok(data))) if data.len() == 16_000));
        core.collect();
        assert!(sent(&mut core).iter().all(|(head, _)| head.kind == kind::WINDOW_UPDATE));
    }
    drop(content);
    core.collect();
    for _ in 0..16 {
        say(&mut core, &data(1, 16_000, 0)).expect("within the window");
    }
    assert_eq!(resets(&mut core), []);
    say(&mut core, &data(1, 16_000, 0)).expect("within the window");
    assert_eq!(resets(&mut core), [(1, Code::NO_ERROR)], "§8.1: enough of what nobody wants");
}

/// §6.9: content that nobody had read when its stream ended makes room for the next, too; one case is a form for which an answer waits.
#[test]
fn windows_do_not_leak() {
    let mut core = begun();
    let mut contents = Vec::new();
    for request in 0..200_u32 {
        let id = 2 * request + 1;
        say(&mut core, &post(id)).expect("a request");
        let (feed, content) = crate::h2::content::content(Waker::noop().clone());
        core.receive(id, feed, None);
        core.hold(id);
        let (ends, is_reset) = (request % 2 == 0, request % 2 == 1);
        say(&mut core, &data(id, 16_000, u8::from(ends))).expect("there is room");
        if is_reset {
            say(&mut core, &frame(kind::RST_STREAM, 0, id, &[0; 4])).expect("a reset");
        } else {
            core.send_head(id, StatusCode::OK, &http::HeaderMap::new(), true);
        }
        core.release(id);
        contents.push(content);
        sent(&mut core);
    }
    assert!(core.is_idle());
}

/// §6.9.2: a setting changes the windows of open streams, even to less than zero.
#[test]
fn a_setting_changes_windows_under_way() {
    let mut core = begun();
    let window = |bytes: u32| frame(kind::SETTINGS, 0, 0, &[&[0, 4][..], &bytes.to_be_bytes()].concat());
    let contents = |core: &mut Core<Vec<u8>>| -> usize {
        sent(core).iter().filter(|(head, _)| head.kind == kind::DATA).map(|(head, _)| head.length).sum()
    };
    say(&mut core, &[window(10), get(1)].concat()).expect("a request");
    core.hold(1);
    assert!(!core.send_stored(1, vec![b'x'; 100]));
    assert_eq!(contents(&mut core), 10);
    say(&mut core, &window(0)).expect("a setting");
    say(&mut core, &frame(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 10])).expect("a window");
    assert_eq!(contents(&mut core), 0, "10 owed, 10 given");
    say(&mut core, &window(5)).expect("a setting");
    assert_eq!(contents(&mut core), 5);
    say(&mut core, &window(1_000)).expect("a setting");
    assert_eq!((contents(&mut core), core.state(1)), (85, (Some(Over::Complete), 100)));
    core.release(1);
    assert!(core.is_idle());
}
