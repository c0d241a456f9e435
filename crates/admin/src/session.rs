//! Sessions of browsers: who has shown the token once need not show it again for a while.
//!
//! A session has two secrets of 256 bits. The first is a cookie, which scripts cannot read. But browsers send a cookie to every port of a host, so a
//! server of another user of this machine may come to see it. Hence the second: the key. It is given to the page alone, which keeps it where only its own
//! origin can read it, and sends it in a field. The cookie lets read; what changes something needs both.
//!
//! Worst case: [`SESSIONS_MAX`] sessions and [`ADDRESSES_MAX`] addresses that sent wrong tokens: 16 KiB. Nothing is kept over a restart.

use std::{
    collections::HashMap,
    fmt,
    net::{IpAddr, Ipv6Addr},
    sync::{Mutex, MutexGuard},
    time::{Duration, Instant},
};

use semantics::hex;
use subtle::{Choice, ConstantTimeEq as _};

/// The most sessions at once. One more ends the one that was used the longest time ago.
pub(crate) const SESSIONS_MAX: usize = 16;

/// The time after which a session ends that is not used.
pub(crate) const IDLE_MAX: Duration = Duration::from_secs(2 * 3600);

/// The time after which every session ends.
pub(crate) const AGE_MAX: Duration = Duration::from_secs(12 * 3600);

/// The longest origin, in bytes: a scheme, a host and a port.
const ORIGIN_MAX: usize = 300;

/// The wrong tokens that an address may send at once,
const WRONG_AT_ONCE: u32 = 5;
/// and the time after which it may send one more.
const WRONG_EVERY: Duration = Duration::from_secs(10);

/// The most addresses whose wrong tokens are counted. One more makes the table forget the one that sent none for the longest time: a guesser with so many
/// addresses gains nothing against 256 bits.
const ADDRESSES_MAX: usize = 256;

/// Random bytes of a secret.
const SECRET_BYTES: usize = 32;

/// The secrets of a new session, as text: hexadecimal digits.
pub(crate) struct NewSession {
    /// The value of the cookie.
    pub(crate) cookie: String,
    /// The key, which the page keeps.
    pub(crate) key: String,
}

/// Holds the sessions of one listener.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    open: Mutex<Vec<Session>>,
    wrong: Mutex<HashMap<IpAddr, Wrong>>,
}

struct Session {
    cookie: String,
    key: String,
    /// The origin of the page that it was opened from.
    origin: String,
    since: Instant,
    used: Instant,
}

/// Never shows the secrets.
impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// Counts the wrong tokens of an address.
#[derive(Debug, Clone, Copy)]
struct Wrong {
    count: u32,
    /// The time at which `count` was right.
    at: Instant,
}

impl Wrong {
    /// Returns how many count at this time: one is forgotten after each [`WRONG_EVERY`].
    fn at(self, now: Instant) -> Self {
        let forgotten = u32::try_from(now.saturating_duration_since(self.at).as_secs() / WRONG_EVERY.as_secs()).unwrap_or(u32::MAX);
        let count = self.count.saturating_sub(forgotten);
        let at = if count == 0 { now } else { self.at + WRONG_EVERY * forgotten };
        Self { count, at }
    }
}

impl Sessions {
    /// Opens a session for the page of this origin.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub(crate) fn begin(&self, origin: &str, now: Instant) -> Result<NewSession, getrandom::Error> {
        let (cookie, key) = (secret()?, secret()?);
        let mut open = self.open(now);
        if open.len() >= SESSIONS_MAX {
            let idlest = open.iter().enumerate().min_by_key(|(_, session)| session.used).map(|(at, _)| at);
            open.swap_remove(idlest.expect("there are sessions"));
        }
        let origin = origin.get(..ORIGIN_MAX).unwrap_or(origin).to_owned();
        open.push(Session { cookie: cookie.clone(), key: key.clone(), origin, since: now, used: now });
        Ok(NewSession { cookie, key })
    }

    /// Returns whether a cookie of this value is one of a session. That session counts as used.
    pub(crate) fn knows(&self, cookie: &[u8], now: Instant) -> bool {
        let mut open = self.open(now);
        // All are compared, each in a time that does not tell how much of it is right.
        let found: Vec<usize> = (0..open.len()).filter(|&at| open[at].cookie.as_bytes().ct_eq(cookie).into()).collect();
        found.iter().for_each(|&at| open[at].used = now);
        !found.is_empty()
    }

    /// Returns whether cookie and key belong together, and the session was opened from a page of this origin.
    pub(crate) fn commands(&self, cookie: &[u8], key: &[u8], origin: &str, now: Instant) -> bool {
        let open = self.open(now);
        let fits = |session: &Session| -> Choice {
            session.cookie.as_bytes().ct_eq(cookie) & session.key.as_bytes().ct_eq(key) & session.origin.as_bytes().ct_eq(origin.as_bytes())
        };
        open.iter().fold(Choice::from(0), |found, session| found | fits(session)).into()
    }

    /// Ends the session with this cookie, if there is one.
    pub(crate) fn close(&self, cookie: &[u8], now: Instant) {
        self.open(now).retain(|session| !bool::from(session.cookie.as_bytes().ct_eq(cookie)));
    }

    /// Returns how long an address must wait until it may try a token again; `None` if it need not.
    pub(crate) fn must_wait(&self, address: IpAddr, now: Instant) -> Option<Duration> {
        let wrong = self.wrong.lock().expect("nobody panics with it").get(&network(address))?.at(now);
        (wrong.count >= WRONG_AT_ONCE).then(|| WRONG_EVERY.saturating_sub(now.saturating_duration_since(wrong.at)))
    }

    /// Remembers that an address sent a wrong token.
    pub(crate) fn was_wrong(&self, address: IpAddr, now: Instant) {
        let mut all = self.wrong.lock().expect("nobody panics with it");
        let address = network(address);
        if all.len() >= ADDRESSES_MAX && !all.contains_key(&address) {
            let quietest = all.iter().min_by_key(|(_, wrong)| wrong.at).map(|(address, _)| *address);
            all.remove(&quietest.expect("there are addresses"));
        }
        let wrong = all.get(&address).map_or(Wrong { count: 0, at: now }, |wrong| wrong.at(now));
        all.insert(address, Wrong { count: wrong.count + 1, ..wrong });
    }

    /// Forgets the wrong tokens of an address: it has sent the right one.
    pub(crate) fn was_right(&self, address: IpAddr) {
        self.wrong.lock().expect("nobody panics with it").remove(&network(address));
    }

    /// Returns the sessions that have not ended.
    fn open(&self, now: Instant) -> MutexGuard<'_, Vec<Session>> {
        let mut open = self.open.lock().expect("nobody panics with it");
        let lasts = |since: Instant, time| now.saturating_duration_since(since) < time;
        open.retain(|session| lasts(session.since, AGE_MAX) && lasts(session.used, IDLE_MAX));
        open
    }
}

/// Returns what of an address is one client: of IPv6, the network of 64 bits.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        address @ IpAddr::V4(_) => address,
    }
}

fn secret() -> Result<String, getrandom::Error> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(hex::encoded(&bytes))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const PAGE: &str = "http://127.0.0.1:9180";

    #[test]
    fn a_session_is_two_secrets_of_256_bits_that_belong_together() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let (one, other) = (sessions.begin(PAGE, now).expect("random"), sessions.begin(PAGE, now).expect("random"));
        let secrets = [&one.cookie, &one.key, &other.cookie, &other.key];
        assert!(secrets.iter().all(|secret| secret.len() == 64 && secret.bytes().all(|byte| byte.is_ascii_hexdigit())), "{secrets:?}");
        assert!((1..4).all(|at| !secrets[..at].contains(&secrets[at])));
        let commands = |cookie: &str, key: &str, origin| sessions.commands(cookie.as_bytes(), key.as_bytes(), origin, now);
        assert!(commands(&one.cookie, &one.key, PAGE) && commands(&other.cookie, &other.key, PAGE));
        for (cookie, key, origin) in [
            (&one.cookie, &other.key, PAGE),
            (&one.cookie, &one.cookie, PAGE),
            (&one.cookie, &String::new(), PAGE),
            (&one.key, &one.key, PAGE),
            (&one.cookie, &one.key, "https://127.0.0.1:9180"),
            (&one.cookie, &one.key, "http://127.0.0.1:3000"),
            (&one.cookie, &one.key, ""),
        ] {
            assert!(!commands(cookie, key, origin), "{cookie} {key} {origin}");
        }
        assert!(!format!("{sessions:?}").contains(&one.cookie));
    }

    #[test]
    fn a_session_ends_when_nobody_uses_it_and_after_twelve_hours_whoever_uses_it() {
        let (sessions, begun) = (Sessions::default(), Instant::now());
        let knows = |session: &NewSession, after: Duration| sessions.knows(session.cookie.as_bytes(), begun + after);
        let second = Duration::from_secs(1);
        let idle = sessions.begin(PAGE, begun).expect("random");
        assert!(knows(&idle, IDLE_MAX - second));
        assert!(!knows(&idle, IDLE_MAX - second + IDLE_MAX));
        let used = sessions.begin(PAGE, begun).expect("random");
        for hour in 1..12 {
            assert!(knows(&used, Duration::from_secs(hour * 3600)), "{hour}");
        }
        assert!(!knows(&used, AGE_MAX));
        assert!(!sessions.commands(used.cookie.as_bytes(), used.key.as_bytes(), PAGE, begun + AGE_MAX));
    }

    #[test]
    fn one_session_too_many_ends_the_one_that_was_not_used_for_the_longest_time() {
        let (sessions, begun) = (Sessions::default(), Instant::now());
        let at = |second: usize| begun + Duration::from_secs(second as u64);
        let all: Vec<NewSession> = (0..SESSIONS_MAX).map(|n| sessions.begin(PAGE, at(n)).expect("random")).collect();
        assert!(sessions.knows(all[0].cookie.as_bytes(), at(100)));
        let further = sessions.begin(PAGE, at(101)).expect("random");
        let known: Vec<bool> = all.iter().chain([&further]).map(|session| sessions.knows(session.cookie.as_bytes(), at(102))).collect();
        assert_eq!(known.iter().filter(|known| **known).count(), SESSIONS_MAX);
        assert!(known[0] && !known[1] && known[SESSIONS_MAX]);
        sessions.close(further.cookie.as_bytes(), at(103));
        assert!(!sessions.knows(further.cookie.as_bytes(), at(103)) && sessions.knows(all[0].cookie.as_bytes(), at(103)));
    }

    #[test]
    fn wrong_tokens_of_one_address_hold_up_that_address_alone() {
        let (sessions, begun) = (Sessions::default(), Instant::now());
        let (guesser, operator) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        for guess in 0..WRONG_AT_ONCE {
            assert_eq!(sessions.must_wait(guesser, begun), None, "{guess}");
            sessions.was_wrong(guesser, begun);
        }
        assert_eq!(sessions.must_wait(guesser, begun), Some(WRONG_EVERY));
        assert_eq!(sessions.must_wait("::ffff:192.0.2.1".parse().expect("an address"), begun), Some(WRONG_EVERY));
        assert_eq!(sessions.must_wait(operator, begun), None);
        // One more after a while, not all of them again.
        let later = begun + WRONG_EVERY;
        assert_eq!(sessions.must_wait(guesser, later), None);
        sessions.was_wrong(guesser, later);
        assert_eq!(sessions.must_wait(guesser, later), Some(WRONG_EVERY));
        assert_eq!(sessions.must_wait(guesser, later + Duration::from_secs(3600)), None);
        sessions.was_right(guesser);
        assert_eq!(sessions.must_wait(guesser, later), None);
        // A client of IPv6 has a whole network.
        for host in (0..).take(WRONG_AT_ONCE as usize) {
            sessions.was_wrong(IpAddr::from([0x2001, 0xdb8, 0, 7, 0, 0, 0, host]), begun);
        }
        assert!(sessions.must_wait("2001:db8:0:7:ffff::1".parse().expect("an address"), begun).is_some());
        assert!(sessions.must_wait("2001:db8:0:8::1".parse().expect("an address"), begun).is_none());
    }

    #[test]
    fn however_many_addresses_guess_few_are_remembered() {
        let (sessions, begun) = (Sessions::default(), Instant::now());
        for number in 0..10_000_u32 {
            sessions.was_wrong(Ipv4Addr::from_bits(number).into(), begun + Duration::from_millis(number.into()));
        }
        assert!(sessions.wrong.lock().expect("no panic").len() <= ADDRESSES_MAX);
    }
}
