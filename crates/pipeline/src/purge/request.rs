//! Purge requests on a site's own address, as plugins send them: taken or refused, and answered.
//!
//! What is refused never reaches the origin.

use std::rc::Rc;

use admin_api::Spread;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header, request::Parts};
use policy::purge::{Dialect, Maker, Order};
use semantics::{RequestFields, shown};

use super::{Receipt, permission::vouched_address, receipt::spread_in_words};
use crate::{
    Body, Client, Pipeline, Site,
    own_response::{JSON, TEXT, own_response},
    pipeline::Config,
    question,
};

impl Pipeline {
    /// Answers a purge request: carries it out, if its sender may purge. Where there are other machines, the answer says how far it went.
    pub(crate) async fn purge_request(
        &self,
        config: &Config,
        site: &Rc<Site>,
        client: &Client,
        parts: &Parts,
        authority: &str,
    ) -> Response<Body> {
        let reply = Reply::to(&parts.headers);
        let address = vouched_address(client, &parts.headers, &config.trusted_proxies);
        if let Err(why) = self.shared.purging.admit(&parts.headers, address) {
            // Counted, and no line at the usual level: strangers would write the log.
            tracing::debug!(site = %site.name, ?address, target = %shown::path(parts.uri.path()), "refused to purge");
            return reply.failed(StatusCode::FORBIDDEN, &why);
        }
        let fields = RequestFields::from_map(&parts.headers);
        let head = question::head(parts, &fields, authority, client.scheme);
        let order = match site.policy.purge_order(&site.name, &head) {
            Ok(order) => order,
            Err(why) => return reply.failed(StatusCode::BAD_REQUEST, &format!("nothing was purged: {why}")),
        };
        match self.shared.purge_with_acknowledgement(&order) {
            Ok((receipt, elsewhere)) => reply.done(&order, &receipt, elsewhere.known().await.as_ref()),
            Err(why) => reply.failed(StatusCode::BAD_REQUEST, &format!("nothing was purged: {why}")),
        }
    }
}

/// The form of a reply: JSON for who asks for it, a line of text for everybody else. Most plugins only look at the status.
struct Reply {
    json: bool,
}

impl Reply {
    fn to(headers: &HeaderMap) -> Self {
        let wants_json =
            |value: &HeaderValue| value.as_bytes().to_ascii_lowercase().windows(16).any(|window| window == b"application/json");
        // Fastly's clients read the reply, whatever they say they accept.
        Self { json: headers.contains_key("fastly-key") || headers.get_all(header::ACCEPT).iter().any(wants_json) }
    }

    fn done(&self, order: &Order, receipt: &Receipt, spread: Option<&Spread>) -> Response<Body> {
        // The plugin, and `ngx_cache_purge` before it, tell a page that was not cached from one that was. What others had is not known.
        let missed = order.by == Maker::Plugin(Dialect::NginxHelper) && receipt.variants == Some(0) && spread.is_none();
        let covered: Vec<String> = receipt.covered.iter().map(ToString::to_string).collect();
        let generation = receipt.generation.number();
        let status = match spread {
            Some(Spread { everywhere: false, .. }) => StatusCode::ACCEPTED,
            _ if missed => StatusCode::NOT_FOUND,
            _ => StatusCode::OK,
        };
        if self.json {
            let mut said = serde_json::json!({
                "status": "ok",
                "generation": generation,
                "covered": covered,
                "variants": receipt.variants,
                "hard": order.hard,
            });
            if let Some(spread) = spread {
                said["spread"] = serde_json::json!(spread);
            }
            return self.with(status, said.to_string());
        }
        let how = if order.hard { "purged" } else { "marked stale" };
        let count = receipt.variants.map(|variants| format!("; {variants} stored")).unwrap_or_default();
        let elsewhere = spread.map(|spread| format!("{}\n", spread_in_words(spread))).unwrap_or_default();
        self.with(status, format!("{how}: {} (generation {generation}{count})\n{elsewhere}", covered.join(", ")))
    }

    fn failed(&self, status: StatusCode, why: &str) -> Response<Body> {
        if self.json {
            return self.with(status, serde_json::json!({ "status": "error", "error": why }).to_string());
        }
        self.with(status, format!("{why}\n"))
    }

    fn with(&self, status: StatusCode, text: String) -> Response<Body> {
        let mut response = own_response(status, if self.json { JSON } else { TEXT }, text);
        response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    }
}
