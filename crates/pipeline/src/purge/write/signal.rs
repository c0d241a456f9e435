//! Writes to an origin that says in its answer what has changed: a Ghost, in `X-Cache-Invalidate`.

use std::{rc::Rc, time::Duration};

use http::StatusCode;
use policy::purge::{Maker, Order, Signal, What, WriteSubject};

use super::unanswered::Writer;
use crate::{
    Failure, Pipeline, ask::Fetched, body::passing::read_and_put_back, fence::PendingPurges, purge::fields::SignalLines, question::Question,
};

/// The most bytes of an answer to an editor that are read to see what was written. A post with all its forms has some 100 KiB.
const ANSWER_BYTES_MAX: usize = 2 << 20;
/// The time within which such an answer has to be whole. It comes with its head.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Returns whether a proxy between here and the origin says that the origin failed, or gave no answer: Cloudflare has statuses of its own for that.
pub(super) const fn is_of_a_gateway(status: StatusCode) -> bool {
    matches!(status.as_u16(), 502 | 504 | 520..=524)
}

impl Pipeline {
    /// Purges what the answer to a write says has changed, or what may have changed if no answer says so.
    pub(super) async fn purge_for_answer(
        self: &Rc<Self>,
        question: &Question,
        subject: Option<WriteSubject>,
        answered: &mut Result<Box<Fetched>, Failure>,
        caused: &PendingPurges,
    ) {
        match answered {
            Ok(fetched) if is_of_a_gateway(fetched.response.status()) => self.may_have_written(question, subject, caused),
            Ok(fetched) => self.obey_signal(question, subject, fetched, caused).await,
            Err(failure) if failure.was_perhaps_sent() => self.may_have_written(question, subject, caused),
            Err(_) => {}
        }
    }

    /// Purges for a write that the origin may have carried out, although no answer says so: everything may have changed.
    ///
    /// Anybody can send such a write. Those that carry nothing by which an editor is known are refused by the origin, and count for nothing;
    /// others purge now and then at most, and the last one is never lost.
    fn may_have_written(self: &Rc<Self>, question: &Question, subject: Option<WriteSubject>, caused: &PendingPurges) {
        let site = &question.site;
        if subject.is_some_and(|subject| site.policy.may_be_of_editor(subject, &question.headers)) {
            self.unanswered(site).purge(Writer::Known, Maker::Origin, caused);
        }
    }

    /// Purges what the origin's answer to a write says.
    async fn obey_signal(
        self: &Rc<Self>,
        question: &Question,
        subject: Option<WriteSubject>,
        fetched: &mut Fetched,
        caused: &PendingPurges,
    ) {
        let site = &question.site;
        if subject == Some(WriteSubject::Keys) && fetched.response.status().is_success() {
            // The origin says nothing of keys that have ended.
            self.shared.purge_for_signal(&Order::for_site(&site.name, vec![site.policy.ended_by_keys()], true, Maker::Origin), caused);
        }
        let Some(SignalLines(lines)) = fetched.response.extensions_mut().remove::<SignalLines>() else { return };
        let hosts: Vec<&str> = site.named_hosts(&question.authority).into_iter().collect();
        let Signal { mut everything, changed } = site.policy.signalled(&hosts, &lines);
        // A site without hosts has every host, and nobody knows under which its readers are.
        everything |= site.hosts.is_empty() && changed.iter().any(|what| matches!(what, What::Url(_)));
        if !changed.is_empty() {
            // A host that is not the site's: then nobody can tell which page is meant.
            everything |= !self.shared.purge_for_signal(&Order::for_site(&site.name, changed, true, Maker::Origin), caused);
        }
        if !everything {
            return;
        }
        let is_unsaid = subject.is_some_and(|subject| site.policy.may_withdraw_unsaid(&question.method, question.uri.path(), subject));
        self.shared.publish_everything(site, is_unsaid, Maker::Origin, caused);
        if matches!(subject, Some(WriteSubject::Post | WriteSubject::Schedule)) {
            self.ripple_of_write(site, true);
            if !is_unsaid {
                let answer = read_and_put_back(fetched.response.body_mut(), ANSWER_BYTES_MAX, ANSWER_WITHIN).await;
                self.learn_from_answer(question, answer.as_deref());
            }
        } else {
            self.ripple_of_write(site, false);
        }
        if subject == Some(WriteSubject::Settings) && !self.is_public(site, question.client.scheme, &question.authority).await {
            self.shared.publish_everything(site, true, Maker::Origin, caused);
        }
    }
}
