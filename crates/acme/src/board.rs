//! The answers to challenges, posted for the other machines: whichever of them an authority asks, it gets the answer.
//!
//! They are one value, so that one look finds all of them. They are no secrets: the authority's questions come over plain http.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};

use crate::shelf::{Shelf, ShelfError, Shelved};

/// The most answers that are posted. The oldest goes first: whoever posted it may have died before it could take it away.
const POSTED_MAX: usize = 512;
/// The longest time that answers stay after the last change: longer than any order lasts.
const KEEP: Duration = Duration::from_secs(15 * 60);
/// The number of times that a change is tried when other machines change the board at the same moment.
const TRIES: usize = 16;
/// The longest random pause before the next try.
const PAUSE_MAX_MS: u64 = 40;

/// The answer to a challenge, for other machines to give.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Posted {
    /// The content for a token (HTTP-01).
    Http {
        /// The token.
        token: String,
        /// The content: the token and the print of the account's key.
        content: String,
    },
    /// The digest that a handshake for a name shows (TLS-ALPN-01).
    Handshake {
        /// The name.
        name: String,
        /// The digest, base64.
        digest: String,
    },
}

impl Posted {
    /// Creates the answer that a handshake for `name` shows.
    pub(crate) fn handshake(name: &str, digest: &[u8]) -> Self {
        Self::Handshake { name: name.to_owned(), digest: BASE64_STANDARD.encode(digest) }
    }

    /// Returns token and content of an answer over http.
    pub(crate) fn http(&self) -> Option<(String, Arc<str>)> {
        match self {
            Self::Http { token, content } => Some((token.clone(), content.as_str().into())),
            Self::Handshake { .. } => None,
        }
    }

    /// Returns the name and the digest of an answer in a handshake.
    pub(crate) fn digest(&self) -> Option<(&str, Vec<u8>)> {
        match self {
            Self::Handshake { name, digest } => Some((name, BASE64_STANDARD.decode(digest).ok()?)),
            Self::Http { .. } => None,
        }
    }

    /// Returns whether both answer the same question: then the later one counts.
    fn is_about_the_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Http { token: a, .. }, Self::Http { token: b, .. })
            | (Self::Handshake { name: a, .. }, Self::Handshake { name: b, .. }) => a == b,
            _ => false,
        }
    }
}

/// The board on the shelf.
#[derive(Clone)]
pub(crate) struct Board {
    pub(crate) shelf: Arc<dyn Shelf>,
    /// The name of the board on the shelf.
    pub(crate) name: String,
}

impl Board {
    /// Returns what is posted, oldest first.
    pub(crate) async fn read(&self) -> Result<Vec<Posted>, ShelfError> {
        Ok(self.shelf.get(&self.name).await?.map(|shelved| parse(&shelved)).unwrap_or_default())
    }

    /// Posts an answer. When this returns, every machine that looks finds it.
    pub(crate) async fn post(&self, answer: &Posted) -> Result<(), ShelfError> {
        self.change(|posted| {
            posted.retain(|other| !other.is_about_the_same(answer));
            posted.push(answer.clone());
            let too_many = posted.len().saturating_sub(POSTED_MAX);
            posted.drain(..too_many);
        })
        .await
    }

    /// Takes an answer away, if it is this one that is posted.
    pub(crate) async fn take_away(&self, answer: &Posted) -> Result<(), ShelfError> {
        self.change(|posted| posted.retain(|other| other != answer)).await
    }

    async fn change(&self, change: impl Fn(&mut Vec<Posted>)) -> Result<(), ShelfError> {
        for _ in 0..TRIES {
            let before = match self.shelf.get(&self.name).await {
                Err(ShelfError::Foreign(_)) => {
                    // Answers live for minutes, so nothing is lost with what nobody can read.
                    let mut posted = Vec::new();
                    change(&mut posted);
                    return self.shelf.put(&self.name, json(&posted), KEEP).await;
                }
                before => before?,
            };
            let mut posted = before.as_ref().map(parse).unwrap_or_default();
            let is_new = before.is_none();
            let count = posted.len();
            change(&mut posted);
            if is_new && posted.is_empty() && count == 0 {
                return Ok(());
            }
            if self.shelf.swap(&self.name, before.as_ref().map(|before| &before.version), json(&posted), KEEP).await? {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(random() % PAUSE_MAX_MS)).await;
        }
        Err(ShelfError::Unreachable("other machines change the posted challenges all the time".to_owned()))
    }
}

/// Returns what a value says. What another version wrote counts as nothing.
fn parse(shelved: &Shelved) -> Vec<Posted> {
    serde_json::from_slice(&shelved.value).unwrap_or_default()
}

fn json(posted: &[Posted]) -> Vec<u8> {
    serde_json::to_vec(posted).unwrap_or_default()
}

fn random() -> u64 {
    let mut bytes = [0; 8];
    // Without randomness it is tried again at once.
    getrandom::fill(&mut bytes).map_or(0, |()| u64::from_le_bytes(bytes))
}
