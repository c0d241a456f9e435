//! Whether a site still shows its pages to everybody. An origin that sends everybody to a password page says so once, and loses all that was public.

use std::{future::Future, pin::Pin, rc::Rc, time::Duration};

use http::{HeaderMap, StatusCode};
use policy::{AcceptClass, purge::Maker};
use semantics::Scheme;
use store::Generation;
use tokio::time::timeout;

use crate::{
    Pipeline, Site,
    anybody::{AsReader, anybodys},
    fence::PendingPurges,
    forward,
    question::Question,
};

/// The time within which an origin has to show that it is still public after a change of its settings.
const PUBLIC_WITHIN: Duration = Duration::from_secs(2);

impl Pipeline {
    /// Asks the origin as anybody would whether it still shows its front page.
    /// Without any reader yet, it is asked under this scheme and host.
    pub(super) async fn is_public(&self, site: &Rc<Site>, scheme: Scheme, host: &str) -> bool {
        let front_page = site.policy.front_page();
        // Where editors have a host of their own, readers are not there.
        let reader = || AsReader { scheme, host: host.to_owned(), accept: AcceptClass::Html.plain() };
        let reader = self.most_readers(site, &front_page).unwrap_or_else(reader);
        let Some(question) = anybodys(&self.shared, site, &reader, &front_page) else { return false };
        let asked = self.ask(&question, forward::shared(&question, None), None);
        matches!(timeout(PUBLIC_WITHIN, asked).await, Ok(Ok(fetched)) if fetched.response.status().is_success())
    }

    /// Looks at an answer to a request that anybody could have sent: a site that has become private loses what was stored of it, once.
    ///
    /// That the front page is behind the password says so. Another page may be redirected to anywhere: then the front page is asked for, and the
    /// answer to that is looked at as well. Returns what has to be waited for until that is so.
    pub(super) fn look_for_privacy<'a>(
        &'a self,
        question: &'a Question,
        status: StatusCode,
        headers: &HeaderMap,
        begun: Generation,
        caused: &PendingPurges,
    ) -> Option<Pin<Box<dyn Future<Output = bool> + 'a>>> {
        let (site, policy) = (&question.site, &question.site.policy);
        if question.key.is_empty() || question.carries.is_personal() {
            return None;
        }
        let now = self.shared.store.generation();
        if policy.says_private(&question.authority, &question.target, status, headers) {
            if question.target != policy.front_page() {
                let asks = self.shared.signalled.should_ask_front_page(&site.name, begun, self.shared.clock.now());
                return asks.then(|| Box::pin(self.is_public(site, question.client.scheme, &question.authority)) as Pin<Box<_>>);
            }
            if self.shared.signalled.note_privacy(&site.name, true, begun, now) {
                tracing::info!(site = %site.name, "the site has become private: nothing of what was public comes back");
                self.shared.publish_everything(site, true, Maker::Origin, caused);
            }
        } else if policy.says_public(&question.target, status, headers) {
            self.shared.signalled.note_privacy(&site.name, false, begun, now);
        }
        None
    }
}
