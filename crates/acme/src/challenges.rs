//! What this server answers on its plain port to prove that a name is its own (HTTP-01).
//!
//! Written here while an order is under way, read by whoever serves: most of the time there is nothing, and that costs one load.

use std::{collections::HashMap, fmt, sync::Arc};

use arc_swap::ArcSwapOption;

use crate::check::PROBE_ANSWER;

/// The path below which an authority looks for the answer to a challenge (RFC 8555 §8.3).
pub const CHALLENGE_PATH: &str = "/.well-known/acme-challenge/";

/// A path that every Seawall answers, so that `seawall check --acme` can tell which server a name leads to.
pub(crate) const PROBE_PATH: &str = "/.well-known/acme-challenge/seawall";

/// The answers to the current challenges, by token. Clones share the same value.
#[derive(Clone, Default)]
pub struct Challenges(Arc<ArcSwapOption<HashMap<String, Arc<str>>>>);

impl Challenges {
    /// Returns the content to answer a GET of `path` with, as `application/octet-stream` (RFC 8555 §8.3); `None` if the path is not a
    /// current challenge.
    #[must_use]
    pub fn content(&self, path: &str) -> Option<Arc<str>> {
        let token = path.strip_prefix(CHALLENGE_PATH)?;
        if path == PROBE_PATH {
            return Some(PROBE_ANSWER.into());
        }
        self.0.load().as_ref()?.get(token).cloned()
    }

    /// Answers a challenge for as long as the guard lives.
    pub(crate) fn answer(&self, token: String, content: &str) -> Guard {
        let content: Arc<str> = content.into();
        self.change(|answers| drop(answers.insert(token.clone(), Arc::clone(&content))));
        Guard { challenges: self.clone(), token }
    }

    fn change(&self, change: impl Fn(&mut HashMap<String, Arc<str>>)) {
        self.0.rcu(|old| {
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
        assert!(challenges.0.load().is_none(), "nothing is left to look through");
    }
}
