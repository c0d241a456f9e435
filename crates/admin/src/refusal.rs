//! Every answer that is not what was asked for: a status, what is wrong, and what to do.

use std::{borrow::Cow, time::Duration};

use crate::{
    AlertTestRefused, BadCommand, BadDirect, BadExpression, BadQuestion, BadRevocation, BadWarm, DirectRefused, ExplainRefused,
    PurgeRefused, ReloadRefused, RevokeRefused, WarmRefused, events::VIEWERS_MAX,
};
use axum::{
    Json,
    extract::rejection::{BytesRejection, QueryRejection},
    http::{
        HeaderValue, StatusCode,
        header::{CONNECTION, RETRY_AFTER, WWW_AUTHENTICATE},
    },
    response::{IntoResponse, Response},
};

/// Says why a request is refused.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    error: Cow<'static, str>,
    remedy: Cow<'static, str>,
    /// The challenge of a 401.
    challenge: Option<&'static str>,
    /// The time after which it makes sense to try again.
    wait: Option<Duration>,
}

const AUTHORIZE: &str = "send `Authorization: Bearer TOKEN`; the token is in the file admin_token_file, which only its owner can read";

impl Refusal {
    fn new(status: StatusCode, error: impl Into<Cow<'static, str>>, remedy: impl Into<Cow<'static, str>>) -> Self {
        Self { status, error: error.into(), remedy: remedy.into(), challenge: None, wait: None }
    }

    /// Refuses a request without the right token. Its challenges are those of RFC 6750 §3.1: a request without a token is not told that its
    /// token is wrong.
    pub(crate) fn unauthorized(had_token: bool) -> Self {
        let (error, challenge) = if had_token {
            ("the token is not the one of this server", "Bearer realm=\"seawall\", error=\"invalid_token\"")
        } else {
            ("this needs the admin token", "Bearer realm=\"seawall\"")
        };
        Self { challenge: Some(challenge), ..Self::new(StatusCode::UNAUTHORIZED, error, AUTHORIZE) }
    }

    pub(crate) fn misdirected() -> Self {
        let remedy = "use http://127.0.0.1 or http://localhost with the port of the admin listener, or send the token";
        Self::new(StatusCode::MISDIRECTED_REQUEST, "without a token, the admin API answers to addresses of this machine alone", remedy)
    }

    /// Refuses a request with a session that does not come from a page of this listener.
    pub(crate) fn other_origin() -> Self {
        let remedy = "use the page of this very address; a proxy in front must pass Host and Origin on as they are";
        Self::new(StatusCode::FORBIDDEN, "the request does not come from a page of this address", remedy)
    }

    /// Refuses a request whose session is right to read and not to change anything.
    pub(crate) fn no_key() -> Self {
        Self {
            challenge: Some("Bearer realm=\"seawall\""),
            ..Self::new(StatusCode::UNAUTHORIZED, "this needs the key of the session", "sign in again")
        }
    }

    /// Refuses to look at one more token of an address that has sent wrong ones.
    pub(crate) fn too_many_tokens(wait: Duration) -> Self {
        let remedy = "wait a little, then copy the token from its file";
        Self { wait: Some(wait), ..Self::new(StatusCode::TOO_MANY_REQUESTS, "too many wrong tokens came from your address", remedy) }
    }

    /// Refuses to sign in with something else than a token. The reason does not quote what was sent.
    pub(crate) fn bad_sign_in(error: &serde_json::Error) -> Self {
        let at = format!("the body is not valid: see column {}", error.column());
        Self::new(StatusCode::BAD_REQUEST, at, "send {\"token\": \"…\"}")
    }

    pub(crate) fn no_randomness() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "the system gave no random bytes for a session", "try again")
    }

    pub(crate) fn bad_host() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "a request needs exactly one valid Host field", "send one, such as Host: 127.0.0.1:9180")
    }

    pub(crate) fn no_such_route() -> Self {
        Self::new(StatusCode::NOT_FOUND, "there is nothing at this path", "GET / lists what there is")
    }

    pub(crate) fn no_such_site() -> Self {
        Self::new(StatusCode::NOT_FOUND, "there is no site of this name", "`seawall status` and GET /status list the sites")
    }

    pub(crate) fn too_many_viewers() -> Self {
        let error = format!("{VIEWERS_MAX} viewers are shown events, and there is room for no more");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, error, "close one of the pages that show them, or ask /seen and /recent")
    }

    pub(crate) fn cross_site() -> Self {
        Self::new(StatusCode::FORBIDDEN, "a page of another site asks for this", "open the dashboard at the address of the admin listener")
    }

    pub(crate) fn method() -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "this path does not take this method", "GET / lists what there is")
    }

    pub(crate) fn slow_body() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time", "send it at once; a command is a line of JSON")
    }
}

impl From<BadCommand> for Refusal {
    fn from(error: BadCommand) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error.to_string(), error.remedy())
    }
}

impl From<PurgeRefused> for Refusal {
    fn from(error: PurgeRefused) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error.to_string(), error.remedy())
    }
}

impl From<BadQuestion> for Refusal {
    fn from(error: BadQuestion) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error.to_string(), error.remedy())
    }
}

impl From<BadExpression> for Refusal {
    fn from(error: BadExpression) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error.to_string(), error.remedy())
    }
}

impl From<ExplainRefused> for Refusal {
    fn from(error: ExplainRefused) -> Self {
        let status = match error {
            ExplainRefused::Address(_) | ExplainRefused::Method(_) | ExplainRefused::Field(_) | ExplainRefused::Host => {
                StatusCode::BAD_REQUEST
            }
            ExplainRefused::NoSite { .. } => StatusCode::MISDIRECTED_REQUEST,
            ExplainRefused::Busy => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, error.to_string(), error.remedy())
    }
}

impl From<ReloadRefused> for Refusal {
    fn from(error: ReloadRefused) -> Self {
        let status = match error {
            ReloadRefused::Wrong(_) | ReloadRefused::Failed(_) => StatusCode::CONFLICT,
            ReloadRefused::Busy => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, error.to_string(), error.remedy())
    }
}

impl From<BadDirect> for Refusal {
    fn from(error: BadDirect) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error.to_string(), error.remedy())
    }
}

impl From<DirectRefused> for Refusal {
    fn from(error: DirectRefused) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string(), error.remedy())
    }
}

impl From<AlertTestRefused> for Refusal {
    fn from(error: AlertTestRefused) -> Self {
        let status = match error {
            AlertTestRefused::NoWay => StatusCode::CONFLICT,
            AlertTestRefused::Failed(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, error.to_string(), error.remedy())
    }
}

impl From<BadRevocation> for Refusal {
    fn from(error: BadRevocation) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error.to_string(), error.remedy())
    }
}

impl From<RevokeRefused> for Refusal {
    fn from(error: RevokeRefused) -> Self {
        let status = match error {
            RevokeRefused::Unknown(_) => StatusCode::NOT_FOUND,
            RevokeRefused::Failed(_) => StatusCode::BAD_GATEWAY,
            RevokeRefused::Slow => StatusCode::GATEWAY_TIMEOUT,
        };
        Self::new(status, error.to_string(), error.remedy())
    }
}

impl From<BadWarm> for Refusal {
    fn from(error: BadWarm) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error.to_string(), error.remedy())
    }
}

impl From<WarmRefused> for Refusal {
    fn from(error: WarmRefused) -> Self {
        let status = match error {
            WarmRefused::NoSite(_) => StatusCode::MISDIRECTED_REQUEST,
            WarmRefused::Busy(_) => StatusCode::CONFLICT,
            WarmRefused::Unable => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, error.to_string(), error.remedy())
    }
}

impl From<QueryRejection> for Refusal {
    fn from(error: QueryRejection) -> Self {
        let text = error.body_text();
        // The parser's text begins with words about Rust; the fault stands behind the colon.
        let what = text.split_once(": ").map_or(&*text, |(_, what)| what);
        Self::new(StatusCode::BAD_REQUEST, format!("the query is not valid: {what}"), "GET / lists the parameters of each path")
    }
}

impl From<BytesRejection> for Refusal {
    fn from(error: BytesRejection) -> Self {
        match error.status() {
            StatusCode::PAYLOAD_TOO_LARGE => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is longer than 16 KiB", "name less: purge a prefix, a tag or everything")
            }
            _ => Self::new(StatusCode::BAD_REQUEST, "the body could not be read", "send it whole, as Content-Length says"),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(admin_api::Refusal { error: self.error, remedy: self.remedy })).into_response();
        if let Some(challenge) = self.challenge {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        if let Some(wait) = self.wait {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait.as_secs() + 1));
        }
        // What is left of a body that nobody will read must not be taken for the next request.
        if matches!(self.status, StatusCode::REQUEST_TIMEOUT | StatusCode::PAYLOAD_TOO_LARGE) {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// Answers `/healthz` once a shutdown has begun: nothing is wrong, but a balancer should go elsewhere.
pub(crate) fn draining(body: impl IntoResponse) -> Response {
    let mut response = (StatusCode::SERVICE_UNAVAILABLE, body).into_response();
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
    response
}
