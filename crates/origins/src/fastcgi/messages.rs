//! The messages that PHP writes to its standard error, on its way into the log.
//!
//! It comes from a program that strangers feed: it is shown without its control bytes, and neither a request nor a crowd of them can fill a disk with it.

use std::{fmt::Write as _, net::IpAddr, sync::Arc, time::Duration};

use http::Method;
use parking_lot::Mutex;
use tokio::time::Instant;

/// The most of a request's messages that is written; what follows is only counted.
pub const BYTES_MAX: usize = 4096;
/// The most requests whose messages are written within [`PERIOD`], on a worker; those of others are only counted.
pub const REQUESTS_MAX: u32 = 50;
/// The time to which [`REQUESTS_MAX`] applies.
pub const PERIOD: Duration = Duration::from_secs(1);

/// Counts what has been written lately, on a worker.
#[derive(Debug, Default)]
pub(super) struct Flow {
    since: Option<Instant>,
    written: u32,
    left_out: u64,
}

impl Flow {
    /// Returns whether a request's messages may be written now, and of how many requests they were left out before.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        if self.since.is_none_or(|since| now >= since + PERIOD) {
            (self.since, self.written) = (Some(now), 0);
        }
        if self.written >= REQUESTS_MAX {
            self.left_out += 1;
            return None;
        }
        self.written += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

/// The request to which messages belong.
#[derive(Debug)]
pub(super) struct About {
    /// The name under which PHP knows it: `UNIQUE_ID`.
    pub(super) id: Box<str>,
    pub(super) client: Option<IpAddr>,
    pub(super) method: Method,
    pub(super) target: Box<str>,
}

/// The messages of a request. They are written when it ends, however that is, and when they are too many.
#[derive(Debug)]
pub(super) struct Messages {
    about: About,
    text: Vec<u8>,
    /// The number of bytes that came, those included that were not kept.
    bytes: u64,
    flow: Arc<Mutex<Flow>>,
}

impl Messages {
    pub(super) const fn new(about: About, flow: Arc<Mutex<Flow>>) -> Self {
        Self { about, text: Vec::new(), bytes: 0, flow }
    }

    pub(super) fn add(&mut self, message: &[u8]) {
        self.bytes += message.len() as u64;
        let room = BYTES_MAX - self.text.len();
        self.text.extend_from_slice(&message[..message.len().min(room)]);
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let Some(left_out) = self.flow.lock().admit(Instant::now()) else { return };
        if left_out > 0 {
            tracing::warn!(requests = left_out, "some messages of PHP were not written: there were too many");
        }
        let bytes_more = self.bytes - self.text.len() as u64;
        let About { id, client, method, target } = &self.about;
        let text = escaped(&self.text);
        let client = client.map_or_else(|| "-".to_owned(), |client| client.to_string());
        if bytes_more > 0 {
            tracing::warn!(request = %id, %client, %method, %target, bytes_more, "PHP: {text}");
        } else {
            tracing::warn!(request = %id, %client, %method, %target, "PHP: {text}");
        }
    }
}

/// Returns text on one line, in which nothing steers a terminal: control bytes, and what is not UTF-8, are shown as numbers.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.trim_ascii_end().utf8_chunks() {
        for letter in chunk.valid().chars() {
            // Beyond the control characters: marks that turn the direction of a line around.
            if letter.is_control() || matches!(letter, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}') {
                text.extend(letter.escape_default());
            } else {
                text.push(letter);
            }
        }
        for byte in chunk.invalid() {
            write!(text, "\\x{byte:02x}").expect("a string takes all");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_message_steers_a_terminal_or_begins_a_line() {
        for (bytes, shown) in [
            (&b"PHP Warning:  x in /a.php on line 3\n"[..], "PHP Warning:  x in /a.php on line 3"),
            (b"one\ntwo\r\nthree", "one\\ntwo\\r\\nthree"),
            (b"\x1b[31mred\x07\0\x7f", "\\u{1b}[31mred\\u{7}\\u{0}\\u{7f}"),
            ("é \u{9b}31m \u{202e}".as_bytes(), "é \\u{9b}31m \\u{202e}"),
            (b"\xff\xc3(", "\\xff\\xc3("),
        ] {
            assert_eq!(escaped(bytes), shown);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_counted_and_not_written() {
        let mut flow = Flow::default();
        let start = Instant::now();
        for _ in 0..REQUESTS_MAX {
            assert_eq!(flow.admit(start), Some(0));
        }
        for _ in 0..7 {
            assert_eq!(flow.admit(start), None);
        }
        assert_eq!(flow.admit(start + PERIOD), Some(7));
        assert_eq!(flow.admit(start + PERIOD), Some(0));

        let mut messages = Messages::new(About { id: "1".into(), client: None, method: Method::GET, target: "/".into() }, Arc::default());
        for _ in 0..1000 {
            messages.add(&[b'x'; 1000]);
        }
        assert_eq!((messages.text.len(), messages.bytes), (BYTES_MAX, 1_000_000));
    }
}
