//! The answers of this server on its plain port to prove that a name is its own (HTTP-01).
//!
//! Written here while an order is under way, read by whoever serves: most of the time there is nothing, and that costs one load. Where several
//! machines are one site, an authority may ask one that did not order. That one looks up what the others have posted ([`Lookups`]) before it
//! answers.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::Arc,
};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;

use crate::{
    board::Posted,
    check::PROBE_ANSWER,
    lookups::{Lookup, Lookups},
};

/// The path below which an authority looks for the answer to a challenge (RFC 8555 §8.3).
const CHALLENGE_PATH: &str = "/.well-known/acme-challenge/";

/// A path that every Seawall answers, so that `seawall check --acme` can tell which server a name leads to.
pub(crate) const PROBE_PATH: &str = "/.well-known/acme-challenge/seawall";

/// The length of a token (RFC 8555 §8.3: at least 128 bits in base64url). Let's Encrypt's has 43 characters.
const TOKEN_LEN: std::ops::RangeInclusive<usize> = 22..=128;

/// The answers to the current challenges, by token. Clones share the same value.
#[derive(Clone, Default)]
pub struct Challenges(Arc<State>);

#[derive(Default)]
struct State {
    own: Answers,
    /// The answers of other machines, as they were when they were last looked up.
    others: Answers,
    /// The names whose challenges are answered here in handshakes.
    handshakes: Mutex<HashSet<String>>,
    lookups: Lookups,
}

type Answers = ArcSwapOption<HashMap<String, Arc<str>>>;

impl Challenges {
    /// Returns the content to answer a GET of `path` with, as `application/octet-stream` (RFC 8555 §8.3); `None` if the path is not a
    /// current challenge.
    #[must_use]
    pub fn content(&self, path: &str) -> Option<Arc<str>> {
        let token = path.strip_prefix(CHALLENGE_PATH)?;
        if path == PROBE_PATH {
            return Some(PROBE_ANSWER.into());
        }
        let found = |answers: &Answers| answers.load().as_ref()?.get(token).cloned();
        found(&self.0.own).or_else(|| found(&self.0.others))
    }

    /// Returns what to wait for before [`Challenges::content`] is asked, if another machine may have the answer to a GET of `path`. It ends by
    /// itself, however the look-up ends. Strangers may ask for whatever they like: there is one look-up at a time for all of them together.
    #[must_use]
    pub fn look_up(&self, path: &str) -> Option<Lookup> {
        let token = path.strip_prefix(CHALLENGE_PATH)?;
        let is_token = TOKEN_LEN.contains(&token.len()) && token.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
        let is_own = || self.0.own.load().as_ref().is_some_and(|own| own.contains_key(token));
        if is_token && !is_own() { self.0.lookups.look_up() } else { None }
    }

    /// Returns what to wait for before a handshake of an authority that asks for `name` goes on, if another machine may have the answer.
    #[must_use]
    pub fn look_up_name(&self, name: &str) -> Option<Lookup> {
        if self.0.handshakes.lock().contains(name) { None } else { self.0.lookups.look_up() }
    }

    pub(crate) fn lookups(&self) -> &Lookups {
        &self.0.lookups
    }

    /// Replaces what other machines answer.
    pub(crate) fn others_answer(&self, posted: &[Posted]) {
        let answers: HashMap<String, Arc<str>> = posted.iter().filter_map(Posted::http).collect();
        self.0.others.store((!answers.is_empty()).then(|| Arc::new(answers)));
    }

    /// Notes that a handshake's challenge is answered here for as long as the guard lives.
    pub(crate) fn answer_handshakes(&self, name: &str) -> OwnName {
        self.0.handshakes.lock().insert(name.to_owned());
        OwnName { challenges: self.clone(), name: name.to_owned() }
    }

    pub(crate) fn is_own_name(&self, name: &str) -> bool {
        self.0.handshakes.lock().contains(name)
    }

    /// Answers a challenge for as long as the guard lives.
    pub(crate) fn answer(&self, token: String, content: &str) -> Guard {
        let content: Arc<str> = content.into();
        self.change(|answers| drop(answers.insert(token.clone(), Arc::clone(&content))));
        Guard { challenges: self.clone(), token }
    }

    fn change(&self, change: impl Fn(&mut HashMap<String, Arc<str>>)) {
        self.0.own.rcu(|old| {
            let mut new = old.as_deref().cloned().unwrap_or_default();
            change(&mut new);
            (!new.is_empty()).then(|| Arc::new(new))
        });
    }
}

impl fmt::Debug for Challenges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Challenges").finish_non_exhaustive()
    }
}

/// Removes an answer when it is dropped, however its order ended.
#[derive(Debug)]
pub(crate) struct Guard {
    challenges: Challenges,
    token: String,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.challenges.change(|answers| drop(answers.remove(&self.token)));
    }
}

/// Ends the note of a name that is answered here.
#[derive(Debug)]
pub(crate) struct OwnName {
    challenges: Challenges,
    name: String,
}

impl Drop for OwnName {
    fn drop(&mut self) {
        self.challenges.0.handshakes.lock().remove(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_lives_as_long_as_its_order() {
        let challenges = Challenges::default();
        let one = challenges.answer("one".to_owned(), "one.key");
        let two = challenges.answer("two".to_owned(), "two.key");
        let http = |path: &str| challenges.content(path);
        assert_eq!(http("/.well-known/acme-challenge/one").as_deref(), Some("one.key"));
        for path in ["/.well-known/acme-challenge/", "/.well-known/acme-challenge/three", "/one", "/.well-known/acme-challenge/one/", "one"]
        {
            assert_eq!(http(path), None, "{path}");
        }
        drop(one);
        assert_eq!(http("/.well-known/acme-challenge/one"), None);
        assert_eq!(http("/.well-known/acme-challenge/two").as_deref(), Some("two.key"));
        drop(two);
        assert!(challenges.0.own.load().is_none(), "nothing is left to look through");
    }
}
