//! Interim responses (RFC 9110 §15.2) on their way to an HTTP/1.1 client: collected while the service works on the final one, written in
//! between its steps. What does not fit into the socket leaves with the final head.

use std::{
    cell::RefCell,
    rc::Rc,
    task::{Context, Waker},
};

use http::{HeaderMap, StatusCode};

use super::respond::{write_fields, write_status_line};
use crate::{request::interim::INTERIMS_MAX, service::Interim};

/// The bytes of interim responses that may wait for their client's socket. What is beyond is left out: they are hints.
const BYTES_MAX: usize = 16 * 1024;

/// A connection's interim responses.
pub(super) struct Interims {
    waiting: Rc<RefCell<UnwrittenInterim>>,
    /// The function that the service is given: the other end of `waiting`.
    pub(super) interim: Interim,
}

/// The interim responses that have not been written yet.
#[derive(Debug, Default)]
struct UnwrittenInterim {
    /// Whether a request is being answered: what comes late must not get between later responses.
    open: bool,
    count: usize,
    bytes: Vec<u8>,
    waker: Option<Waker>,
}

impl Interims {
    pub(super) fn new() -> Self {
        let waiting = Rc::<RefCell<UnwrittenInterim>>::default();
        let tell = {
            let waiting = Rc::clone(&waiting);
            move |status: StatusCode, fields: &HeaderMap| waiting.borrow_mut().add(status, fields)
        };
        Self { waiting, interim: Rc::new(tell) }
    }

    /// Notes that a request is about to be answered, and returns the function that is told what comes before its answer.
    pub(super) fn open(&self) -> Interim {
        *self.waiting.borrow_mut() = UnwrittenInterim { open: true, ..UnwrittenInterim::default() };
        Rc::clone(&self.interim)
    }

    /// Notes that the request is answered, and returns what could not be written: it goes before the answer.
    pub(super) fn close(&self) -> Vec<u8> {
        let mut waiting = self.waiting.borrow_mut();
        waiting.open = false;
        waiting.waker = None;
        std::mem::take(&mut waiting.bytes)
    }

    /// Lets `write` take what is there; `cx` is woken when there is more.
    pub(super) fn write<E>(&self, cx: &mut Context<'_>, write: impl FnOnce(&mut Context<'_>, &[u8]) -> Result<usize, E>) -> Result<(), E> {
        let mut waiting = self.waiting.borrow_mut();
        if !waiting.bytes.is_empty() {
            let written = write(cx, &waiting.bytes)?;
            waiting.bytes.drain(..written);
        }
        match &waiting.waker {
            Some(waker) if waker.will_wake(cx.waker()) => {}
            _ => waiting.waker = Some(cx.waker().clone()),
        }
        Ok(())
    }
}

impl UnwrittenInterim {
    fn add(&mut self, status: StatusCode, fields: &HeaderMap) {
        if !self.open || self.count == INTERIMS_MAX {
            return;
        }
        let before = self.bytes.len();
        write_status_line(&mut self.bytes, status);
        write_fields(&mut self.bytes, fields);
        self.bytes.extend_from_slice(b"\r\n");
        if self.bytes.len() > BYTES_MAX {
            self.bytes.truncate(before);
            return;
        }
        self.count += 1;
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::HeaderValue;

    use super::*;

    fn hint(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(http::header::LINK, HeaderValue::from_str(value).expect("a value"))])
    }

    #[test]
    fn interim_responses_are_written_while_a_request_is_answered_and_not_afterwards() {
        let interims = Interims::new();
        let tell = |status: u16, value: &str| (interims.interim)(StatusCode::from_u16(status).expect("a status"), &hint(value));
        let mut cx = Context::from_waker(Waker::noop());
        tell(103, "</early>");
        interims.open();
        tell(103, "</a>");
        let mut written = Vec::new();
        let taken = interims.write(&mut cx, |_, bytes| {
            written.extend_from_slice(&bytes[..10]);
            Ok::<_, Infallible>(10)
        });
        assert_eq!(taken, Ok(()));
        tell(102, "</b>");
        written.extend_from_slice(&interims.close());
        tell(103, "</late>");
        assert_eq!(interims.close(), b"");
        let expected = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\nlink: </b>\r\n\r\n";
        assert_eq!(String::from_utf8_lossy(&written), expected);
    }

    #[test]
    fn their_number_and_their_bytes_are_bounded() {
        let interims = Interims::new();
        interims.open();
        for _ in 0..2 * INTERIMS_MAX {
            (interims.interim)(StatusCode::EARLY_HINTS, &hint("</a>"));
        }
        assert_eq!(interims.close().windows(5).filter(|bytes| bytes == b"HTTP/").count(), INTERIMS_MAX);
        interims.open();
        for _ in 0..3 {
            (interims.interim)(StatusCode::EARLY_HINTS, &hint(&"x".repeat(BYTES_MAX / 2)));
        }
        let bytes = interims.close();
        assert!(bytes.len() > BYTES_MAX / 2 && bytes.len() <= BYTES_MAX);
    }
}
