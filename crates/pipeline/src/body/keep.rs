//! An answer to one client that is stored while it streams by.

use std::{rc::Rc, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use policy::Kept;

use crate::{Body, Pipeline, Stored, body::storing::StoreBody, question::Question};

impl Pipeline {
    /// `body` as it goes to the client; when it has come to its end, it is stored as the answer to `question`, with these fields.
    ///
    /// `begun` is the generation at which the answer was asked for: what was purged since then is not stored as if it were new. `fetching` ends when it is.
    pub(crate) fn kept_body(
        self: &Rc<Self>,
        question: Rc<Question>,
        (status, headers): (StatusCode, HeaderMap),
        body: origins::Body,
        kept: Kept,
        begun: store::Generation,
        fetching: store::Fetching,
    ) -> Body {
        let pipeline = Rc::clone(self);
        let object_max = question.site.object_max;
        let keep = move |whole: Bytes| {
            let (record, scope) = pipeline.record(&question, (status, &headers), (Some(whole.len() as u64), false), kept);
            pipeline.insert(&question, Stored::new(record, whole, begun, scope));
            drop(fetching);
        };
        Body::Kept(Box::new(StoreBody::new(body, object_max, Arc::clone(&self.shared.copying), keep)))
    }
}
