//! The editors of sites whose origin does not say who they are, as far as they were seen.

use std::collections::BTreeSet;

use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use policy::Policy;
use store::KeyHash;

use crate::{Pipeline, Shared, question::Question};

/// The most editors of all sites that are remembered. Nobody but an editor makes one more.
const EDITORS_MAX: usize = 4_096;

/// The editors of all sites: a hash of the cookie or the credentials to which an origin showed what it shows editors alone.
#[derive(Debug, Default)]
pub(in crate::purge) struct Editors(Mutex<BTreeSet<KeyHash>>);

impl Shared {
    /// Returns whether a request is an editor's who was seen before.
    pub(super) fn is_known_editors(&self, question: &Question) -> bool {
        let known = self.signalled.editors.0.lock();
        signs(self, question).any(|sign| known.contains(&sign))
    }

    /// Remembers whoever sent a request as an editor.
    pub(super) fn remember_editor(&self, question: &Question) {
        let mut known = self.signalled.editors.0.lock();
        for sign in signs(self, question) {
            if known.len() >= EDITORS_MAX {
                // They are seen again with the next page of theirs.
                known.clear();
            }
            known.insert(sign);
        }
    }
}

impl Pipeline {
    /// Remembers who sent a request if its answer is a page for editors.
    pub(super) fn look_for_editor(&self, question: &Question, status: StatusCode, headers: &HeaderMap) {
        if question.site.policy.shows_an_editor(&question.method, &question.target, status, headers) {
            self.shared.remember_editor(question);
        }
    }
}

/// Returns a hash for each sign of who sent a request.
fn signs<'a>(shared: &'a Shared, question: &'a Question) -> impl Iterator<Item = KeyHash> + 'a {
    let of_site = |sign: &[u8]| [b"editor ", question.site.name.as_bytes(), b"\0", sign].concat();
    Policy::credentials(&question.headers).into_iter().map(move |sign| shared.store.hash(&of_site(sign)))
}
