//! The places of connections at the listener, and who makes way when all of them are taken.
//!
//! Everybody on this machine has one address, and anybody may open connections and say nothing on them. So a place is nobody's for good: when all are
//! taken, a connection that waits for the rest of a head, or for its next request, is closed for one that has just come. From the address that has most
//! places, it is the one that has waited longest. Whoever sends a request at once is answered, however many say nothing. If all have sent one, a
//! stranger's answer that has not ended within [`Places::patience`] makes way, as its client may not be reading it. Viewers and whoever has shown the token stay.

use std::{
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use tokio::{sync::Notify, time::timeout};

use crate::events::Viewing;

/// The interval at which whoever waits for a place looks whether somebody's patience is over.
const LOOK: Duration = Duration::from_millis(100);

/// The places of one listener.
#[derive(Debug)]
pub(crate) struct Places {
    max: usize,
    patience: Duration,
    taken: Mutex<Vec<Arc<Seated>>>,
    changed: Notify,
}

/// The permit of one connection to be open: it has one of the places, which is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    places: Arc<Places>,
    seat: Seat,
}

/// Holds what a connection and the requests on it know of their place.
#[derive(Clone, Debug)]
pub(crate) struct Seat(Arc<Seated>);

/// A connection that has a place, and what it has done lately.
#[derive(Debug)]
struct Seated {
    peer: IpAddr,
    doing: Mutex<Doing>,
    viewing: Viewing,
    goes: Notify,
}

/// Says what happens on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    /// It waits for a head, or the rest of one, since then.
    Waits(Instant),
    /// It answers a stranger since then.
    Answers(Instant),
    /// It answers somebody who has shown the token.
    Obeys,
}

impl Places {
    /// Makes so many places. A stranger's answer makes way after `patience`.
    pub(crate) fn new(max: usize, patience: Duration) -> Arc<Self> {
        Arc::new(Self { max, patience, taken: Mutex::default(), changed: Notify::new() })
    }

    /// Takes a place for a connection, and waits until there is one. Cancel-safe.
    pub(crate) async fn take(self: &Arc<Self>, peer: IpAddr) -> ConnectionPermit {
        loop {
            if let Some(permit) = self.try_take(peer, Instant::now()) {
                return permit;
            }
            let _ = timeout(LOOK, self.changed.notified()).await;
        }
    }

    fn try_take(self: &Arc<Self>, peer: IpAddr, now: Instant) -> Option<ConnectionPermit> {
        let mut taken = self.taken.lock();
        if taken.len() >= self.max {
            let leaving = self.leaving(&taken, now)?;
            taken.swap_remove(leaving).goes.notify_one();
        }
        let seat = Seat::new(peer, now);
        taken.push(Arc::clone(&seat.0));
        Some(ConnectionPermit { places: Arc::clone(self), seat })
    }

    /// Finds who makes way.
    fn leaving(&self, taken: &[Arc<Seated>], now: Instant) -> Option<usize> {
        let places_of = |peer: IpAddr| taken.iter().filter(|seated| seated.peer == peer).count();
        let longest = |since: &dyn Fn(&Seated) -> Option<Instant>| {
            let can_leave = taken.iter().enumerate().filter_map(|(at, seated)| Some((at, seated.peer, since(seated)?)));
            can_leave.min_by_key(|(_, peer, since)| (std::cmp::Reverse(places_of(*peer)), *since)).map(|(at, ..)| at)
        };
        longest(&|seated| match *seated.doing.lock() {
            Doing::Waits(since) => Some(since),
            Doing::Answers(_) | Doing::Obeys => None,
        })
        .or_else(|| {
            longest(&|seated| match *seated.doing.lock() {
                Doing::Answers(since) if now.saturating_duration_since(since) >= self.patience && !seated.viewing.goes_on() => Some(since),
                Doing::Waits(_) | Doing::Answers(_) | Doing::Obeys => None,
            })
        })
    }
}

impl ConnectionPermit {
    pub(crate) const fn seat(&self) -> &Seat {
        &self.seat
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.places.taken.lock().retain(|seated| !Arc::ptr_eq(seated, &self.seat.0));
        self.places.changed.notify_one();
    }
}

impl Seat {
    fn new(peer: IpAddr, now: Instant) -> Self {
        Self(Arc::new(Seated { peer, doing: Mutex::new(Doing::Waits(now)), viewing: Viewing::default(), goes: Notify::new() }))
    }

    pub(crate) fn peer(&self) -> IpAddr {
        self.0.peer
    }

    pub(crate) fn viewing(&self) -> &Viewing {
        &self.0.viewing
    }

    /// Waits until the connection has to make way. Cancel-safe.
    pub(crate) async fn has_to_go(&self) {
        self.0.goes.notified().await;
    }

    /// Begins to answer a request.
    pub(crate) fn answers(&self) -> Answering {
        *self.0.doing.lock() = Doing::Answers(Instant::now());
        Answering(self.clone())
    }

    /// Notes that the token was shown for the request that is being answered.
    pub(crate) fn obeys(&self) {
        *self.0.doing.lock() = Doing::Obeys;
    }
}

/// An answer under way. When this is dropped, the connection waits for the next head.
#[derive(Debug)]
pub(crate) struct Answering(Seat);

impl Drop for Answering {
    fn drop(&mut self) {
        *self.0.0.doing.lock() = Doing::Waits(Instant::now());
    }
}

impl Answering {
    /// Makes an answer's content end this.
    pub(crate) fn until_sent(self, content: Body) -> Body {
        Body::new(AnsweringBody { content, _answering: self })
    }
}

/// Content that is sent.
struct AnsweringBody {
    content: Body,
    _answering: Answering,
}

impl HttpBody for AnsweringBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.content).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.content.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    /// Tells whether a connection still has its place.
    fn is_seated(places: &Places, permit: &ConnectionPermit) -> bool {
        places.taken.lock().iter().any(|seated| Arc::ptr_eq(seated, &permit.seat.0))
    }

    #[test]
    fn whoever_has_said_nothing_for_longest_makes_way() {
        let (places, now) = (Places::new(2, PATIENCE), Instant::now());
        let later = |seconds| now + Duration::from_secs(seconds);
        let first = places.try_take(address(1), now).expect("free");
        let second = places.try_take(address(2), later(1)).expect("free");
        let third = places.try_take(address(3), later(2)).expect("the first makes way");
        assert_eq!([&first, &second, &third].map(|permit| is_seated(&places, permit)), [false, true, true]);
        drop(first);
        assert_eq!(places.taken.lock().len(), 2, "one that was told to go frees no second place");
        drop(second);
        assert!(places.try_take(address(1), later(3)).is_some() && is_seated(&places, &third), "a place was free");
    }

    #[test]
    fn the_address_that_has_most_places_makes_way_first() {
        let (places, now) = (Places::new(4, PATIENCE), Instant::now());
        let of_operator = places.try_take(address(1), now).expect("free");
        let crowd: Vec<ConnectionPermit> =
            (1..100).map(|n| places.try_take(address(2), now + Duration::from_secs(n)).expect("room")).collect();
        assert!(is_seated(&places, &of_operator), "it has waited longest, and is alone");
        assert!(crowd[96..].iter().all(|permit| is_seated(&places, permit)) && !is_seated(&places, &crowd[95]));
    }

    #[test]
    fn what_is_answered_stays_unless_a_stranger_does_not_read() {
        let (places, now) = (Places::new(2, PATIENCE), Instant::now());
        let stranger = places.try_take(address(1), now).expect("free");
        let operator = places.try_take(address(1), now).expect("free");
        let answering = [stranger.seat().answers(), operator.seat().answers()];
        operator.seat().obeys();
        assert!(places.try_take(address(2), Instant::now()).is_none());
        let late = places.try_take(address(2), Instant::now() + PATIENCE).expect("the stranger makes way");
        assert_eq!([&stranger, &operator].map(|permit| is_seated(&places, permit)), [false, true]);
        let _late = late.seat().answers();
        drop(answering);
        assert!(places.try_take(address(3), Instant::now()).is_some(), "what was answered waits for its next head");
    }
}
