//! What the fields of an origin's answer say of changes, whatever was asked: obeyed before anybody gets the answer.

use http::{HeaderValue, Response};
use origins::Body;
use policy::purge::{Maker, Order, What};
use semantics::invalidation::is_safe;
use store::Generation;

use crate::{Pipeline, Site, fence::PendingPurges, question::Question};

/// The lines of the field in which an origin says what has changed, taken off its answer to a write.
#[derive(Debug, Clone)]
pub(super) struct SignalLines(pub(super) Vec<HeaderValue>);

/// Marks the answer of an origin whose plugin says by itself what has changed.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpeaksForItself;

impl Pipeline {
    /// Obeys what the fields of an answer say, whose request began at the generation `begun`, and takes off what is for us alone.
    pub(crate) async fn obey_fields(&self, question: &Question, response: &mut Response<Body>, begun: Generation) {
        let caused = PendingPurges::default();
        if question.site.policy.signal_field().is_some() {
            take_signal(question, response);
            if let Some(asking) = self.look_for_privacy(question, response.status(), response.headers(), begun, &caused) {
                asking.await;
            }
        }
        if question.site.policy.obeys_purge_fields() {
            self.obey_plugin(question, response, &caused);
        }
        caused.known().await;
    }

    /// Purges what the plugin in an origin asks for by fields, and notes whether it is there and says by itself what has changed.
    fn obey_plugin(&self, question: &Question, response: &mut Response<Body>, caused: &PendingPurges) {
        let (site, policy) = (&question.site, &question.site.policy);
        if policy.speaks_for_itself(response.headers()) {
            response.extensions_mut().insert(SpeaksForItself);
        }
        if let Some(plugin) = policy.plugin_of(response.headers()) {
            self.shared.signalled.plugin_said(&site.name, plugin);
        }
        for asked in policy.asked_purges(response.headers(), &|host| site.has_host(host, &question.authority)) {
            self.publish_asked(site, asked.what, asked.hard, Maker::Origin, caused);
        }
    }

    /// Purges what a plugin asks for. Returns `false` if that was not possible.
    pub(super) fn publish_asked(&self, site: &Site, what: Vec<What>, hard: bool, by: Maker, caused: &PendingPurges) -> bool {
        let is_done = self.shared.purge_for_signal(&Order::for_site(&site.name, what, hard, by), caused);
        if !hard {
            self.ripple_of_write(site, false);
        }
        is_done
    }
}

/// Takes the field off an answer in which an origin says what has changed. It is kept for the [write](super::write), if it may count.
fn take_signal(question: &Question, response: &mut Response<Body>) {
    let Some(name) = question.site.policy.signal_field() else { return };
    let lines: Vec<HeaderValue> = response.headers().get_all(&name).iter().cloned().collect();
    if lines.is_empty() {
        return;
    }
    response.headers_mut().remove(&name);
    if !is_safe(&question.method) && response.status().is_success() {
        response.extensions_mut().insert(SignalLines(lines));
    }
}
