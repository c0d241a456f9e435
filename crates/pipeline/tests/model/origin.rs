//! The site's own server: a few pages that change, and a record of everything it ever said.

use std::{
    cell::RefCell,
    collections::VecDeque,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body::{Frame, SizeHint};
use origins::{Arrival, Body, Fault, LocalFuture, OnInterim, Origin, OriginError};
use tokio::sync::oneshot;

/// Pages of the site: few, so that histories meet themselves.
pub(crate) const PAGES: usize = 3;

/// The word of the origin on storing a page, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    MaxAge(u64),
    MustRevalidate(u64),
    SharedMaxAge(u64),
    WhileRevalidating {
        max_age: u64,
        window: u64,
    },
    NoCache,
    NoStore,
    Private,
    /// Nothing but a validator.
    Silence,
}

/// The rules by which a page is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) word: Word,
    /// Whether it differs by `Accept-Language`, and says so.
    pub(crate) by_language: bool,
    /// Whether it greets the reader by the name in the cookie.
    pub(crate) greets: bool,
    /// Bytes of content.
    pub(crate) length: usize,
}

/// A representation; its entity tag spells it out, its content follows from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Representation {
    pub(crate) page: usize,
    pub(crate) version: u32,
    pub(crate) language: Option<u8>,
    pub(crate) greeted: Option<u8>,
    pub(crate) length: usize,
}

impl Representation {
    pub(crate) fn etag(&self) -> String {
        let or_none = |value: Option<u8>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
        format!("\"{}.{}.{}.{}.{}\"", self.page, self.version, or_none(self.language), or_none(self.greeted), self.length)
    }

    pub(crate) fn content(&self) -> Bytes {
        let line = format!("{} ", self.etag());
        line.bytes().cycle().take(self.length).collect()
    }
}

/// One thing the origin said: that a representation is the page's, whole (200) or by confirming it (304).
#[derive(Debug, Clone)]
pub(crate) struct Said {
    pub(crate) representation: Representation,
    pub(crate) rules: Rules,
    /// The time when the answer came, in milliseconds.
    pub(crate) at: u64,
    /// The number of purges that had been issued when the request for it came in.
    pub(crate) order: u64,
    /// Whether the content broke off.
    pub(crate) broken: bool,
}

/// The treatment of a request that waits at the origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Treatment {
    Answer,
    /// The head and half of the content; the rest waits.
    AnswerSlowly,
    /// The head and half of the content, then the connection ends.
    BreakOff,
    /// 500.
    Error,
    /// The connection ends.
    HangUp,
}

/// A request that the origin has not answered.
#[derive(Debug)]
struct Waiting {
    page: usize,
    method: Method,
    headers: HeaderMap,
    /// The page as it was when the request came in: an edit meanwhile comes too late for it.
    version: u32,
    rules: Rules,
    order: u64,
    reply: oneshot::Sender<Result<Response<Body>, OriginError>>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) pages: [(u32, Rules); PAGES],
    pub(crate) said: Vec<Said>,
    /// Purges issued so far.
    pub(crate) order: u64,
    waiting: VecDeque<Waiting>,
    /// Contents of which the second half is not sent yet.
    halves: VecDeque<oneshot::Sender<()>>,
}

/// The server. Clones are the same one.
#[derive(Debug, Clone)]
pub(crate) struct Server(pub(crate) Rc<RefCell<State>>);

impl Server {
    pub(crate) fn new() -> Self {
        let rules = Rules { word: Word::MaxAge(60), by_language: false, greets: false, length: 300 };
        let state = State { pages: [(0, rules); PAGES], said: Vec::new(), order: 0, waiting: VecDeque::new(), halves: VecDeque::new() };
        Self(Rc::new(RefCell::new(state)))
    }

    /// Answers the request that waits at `place`, counted round; whether any did.
    pub(crate) fn treat(&self, place: usize, treatment: Treatment, now: u64) -> bool {
        let mut state = self.0.borrow_mut();
        if state.waiting.is_empty() {
            return false;
        }
        let place = place % state.waiting.len();
        let Some(waiting) = state.waiting.remove(place) else { return false };
        let answer = state.answer(&waiting, treatment, now);
        drop(state);
        // Whoever asked may have gone.
        let _ = waiting.reply.send(answer);
        true
    }

    /// Sends the second half of the oldest content that waits for it; whether any did.
    pub(crate) fn finish_one(&self) -> bool {
        let half = self.0.borrow_mut().halves.pop_front();
        // Whoever read it may have gone.
        half.map(|half| half.send(())).is_some()
    }

    /// Nobody waits for an answer any more: whoever asked is gone.
    pub(crate) fn forget(&self) {
        let mut state = self.0.borrow_mut();
        state.waiting.clear();
        state.halves.clear();
    }

    pub(crate) fn is_quiet(&self) -> bool {
        let state = self.0.borrow();
        state.waiting.is_empty() && state.halves.is_empty()
    }
}

impl State {
    fn answer(&mut self, waiting: &Waiting, treatment: Treatment, now: u64) -> Result<Response<Body>, OriginError> {
        match treatment {
            Treatment::HangUp => return Err(OriginError::new(Fault::ConnectionTerminated, "the test's origin hung up")),
            Treatment::Error => {
                let mut response = Response::new(Body::from(Bytes::from_static(b"broken")));
                *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
                return Ok(response);
            }
            Treatment::Answer | Treatment::AnswerSlowly | Treatment::BreakOff => {}
        }
        if waiting.method == Method::POST {
            self.order += 1;
            return Ok(Response::new(Body::Empty));
        }
        let number = |name: header::HeaderName, prefix: &str| -> Option<u8> {
            waiting.headers.get(name)?.to_str().ok()?.strip_prefix(prefix)?.parse().ok()
        };
        let Rules { word, by_language, greets, length } = waiting.rules;
        let representation = Representation {
            page: waiting.page,
            version: waiting.version,
            language: number(header::ACCEPT_LANGUAGE, "l").filter(|_| by_language),
            greeted: number(header::COOKIE, "user=").filter(|_| greets),
            length,
        };
        let etag = representation.etag();
        let confirmed = waiting.headers.get(header::IF_NONE_MATCH).is_some_and(|tag| tag.as_bytes() == etag.as_bytes());
        let broken = treatment == Treatment::BreakOff && !confirmed && length > 1;
        self.said.push(Said { representation: representation.clone(), rules: waiting.rules, at: now, order: waiting.order, broken });
        let mut response = Response::new(Body::Empty);
        let headers = response.headers_mut();
        headers.insert(header::ETAG, etag.parse().expect("a field value"));
        if let Some(word) = word.spelled() {
            headers.insert(header::CACHE_CONTROL, word.parse().expect("a field value"));
        }
        if by_language {
            headers.insert(header::VARY, header::HeaderValue::from_static("Accept-Language"));
        }
        if confirmed {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return Ok(response);
        }
        if waiting.method == Method::HEAD {
            response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
            return Ok(response);
        }
        let content = representation.content();
        *response.body_mut() = match treatment {
            Treatment::AnswerSlowly if length > 1 => {
                let (send, gate) = oneshot::channel();
                self.halves.push_back(send);
                Body::stream(Halves::new(content, Some(gate), false))
            }
            Treatment::BreakOff if length > 1 => Body::stream(Halves::new(content, None, true)),
            _ => Body::from(content),
        };
        Ok(response)
    }
}

impl Word {
    fn spelled(self) -> Option<String> {
        Some(match self {
            Self::MaxAge(age) => format!("max-age={age}"),
            Self::MustRevalidate(age) => format!("max-age={age}, must-revalidate"),
            Self::SharedMaxAge(age) => format!("s-maxage={age}"),
            Self::WhileRevalidating { max_age, window } => format!("max-age={max_age}, stale-while-revalidate={window}"),
            Self::NoCache => "no-cache".to_owned(),
            Self::NoStore => "no-store".to_owned(),
            Self::Private => "private, max-age=60".to_owned(),
            Self::Silence => return None,
        })
    }
}

impl Origin for Server {
    fn fetch<'a>(
        &'a self,
        request: Request<Body>,
        _: &'a Arrival<'a>,
        _: Option<&'a OnInterim<'a>>,
    ) -> LocalFuture<'a, Result<Response<Body>, OriginError>> {
        let (reply, answer) = oneshot::channel();
        let mut state = self.0.borrow_mut();
        let page = request.uri().path().trim_start_matches('/').parse::<usize>().unwrap_or_default() % PAGES;
        let (version, rules) = state.pages[page];
        let order = state.order;
        let (method, headers) = (request.method().clone(), request.headers().clone());
        state.waiting.push_back(Waiting { page, method, headers, version, rules, order, reply });
        Box::pin(
            async move { answer.await.unwrap_or_else(|_| Err(OriginError::new(Fault::ConnectionTerminated, "the test's origin is gone"))) },
        )
    }
}

/// Content in two halves, the second when the gate opens, or never.
struct Halves {
    first: Option<Bytes>,
    second: Option<Bytes>,
    gate: Option<oneshot::Receiver<()>>,
    breaks: bool,
    length: u64,
}

impl Halves {
    fn new(content: Bytes, gate: Option<oneshot::Receiver<()>>, breaks: bool) -> Self {
        let middle = content.len() / 2;
        Self { first: Some(content.slice(..middle)), second: Some(content.slice(middle..)), gate, breaks, length: content.len() as u64 }
    }
}

impl http_body::Body for Halves {
    type Data = Bytes;
    type Error = OriginError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, OriginError>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        if self.breaks {
            self.second = None;
            return Poll::Ready(Some(Err(OriginError::new(Fault::ConnectionTerminated, "the test's origin broke off"))));
        }
        if let Some(gate) = &mut self.gate {
            std::task::ready!(Pin::new(gate).poll(cx)).ok();
            self.gate = None;
        }
        Poll::Ready(self.second.take().map(|second| Ok(Frame::data(second))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length)
    }
}
