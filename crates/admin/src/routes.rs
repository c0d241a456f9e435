//! The routes, and what each answers.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use admin_api::{
    AlertTestRefused, AlertsState, AlertsTested, CertificateState, ClusterState, DirectCommand, DirectField, ExplainCommand,
    ExplainRefused, Explanation, Inventory, Moment, PurgeDone, PurgeRefused, Readiness, Ready, Recent, ReloadDone, ReloadRefused,
    RevokeCommand, RevokeRefused, Seen, Series, Status, StoredCommand, WarmCommand, Warming,
};
use axum::{
    Extension, Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, FromRequest as _, Query, Request, State, rejection::QueryRejection},
    http::{
        HeaderMap, HeaderValue, StatusCode, Uri,
        header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, SET_COOKIE, VARY, X_CONTENT_TYPE_OPTIONS},
    },
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{MethodRouter, get, post},
};

use crate::{
    console::{Console, Health},
    dashboard,
    events::{Events, Viewing},
    exposition,
    guard::{Guard, PageRights, wants_page},
    refusal::{self, Refusal},
};

/// The longest body of a request, in bytes.
pub(crate) const BODY_MAX: usize = 16 << 10;

/// The requests in one answer of `/recent`, unless it is asked for another number.
const RECENT_DEFAULT: usize = 500;

const ROUTES: &str = "\
Seawall's admin API. In a browser, this address is the dashboard.

GET  /healthz   is it ready? 200 or 503
GET  /metrics   for Prometheus
GET  /status    what runs: sites, their servers, the cache, the metrics; as JSON
GET  /seen      sums of what happened, and what leads them: ?site=NAME
GET  /series    what happened when: ?site=NAME&span=hour, day or week
GET  /alerts    what is wrong, and how that is sent
GET  /cluster   the machines of the cluster, and whether this one has a lease; null: it stands alone
POST /alerts/test          sends a test to whoever is told of alerts
GET  /recent    the last requests that were not plain hits: ?after=NUMBER&where=EXPRESSION&limit=N
GET  /events    what happens, second by second: server-sent events
GET  /moment    what happened in the last second
POST /explain   {\"url\": \"…\", \"fields\": [[\"name\", \"value\"]]}: how a request is judged, what is stored for it
POST /stored    {}: what is stored and no longer fresh
POST /purge     {\"url\": \"…\"}, {\"prefix\": \"…\"}, {\"host\": \"…\"}, {\"tag\": \"…\"} or {\"all\": true};
                \"hard\": false marks stale
POST /warm      {\"host\": \"…\"}: fetches the pages of the host's sitemap; GET says how far it is
POST /reload    reads the configuration again
POST /direct    {\"seconds\": 600}: a field that lets requests of `seawall bench --direct` go past the cache for so long
GET  /certificates         names, who certifies them, until when, when they are renewed
POST /certificates/revoke  {\"name\": \"…\"}: gets another one, and has this one revoked
POST needs Authorization: Bearer TOKEN
";

type Shared = State<Arc<dyn Console>>;

/// The query behind the `?`, or why it cannot be read: a refusal is JSON like all others.
type QueryResult<T> = Result<Query<T>, QueryRejection>;

/// Puts all routes behind `guard`. A body has `body_timeout` to arrive.
pub(crate) fn router(console: Arc<dyn Console>, viewers: Arc<Events>, guard: Guard, body_timeout: Duration) -> Router {
    let guard = Arc::new(guard);
    let routes = Router::new()
        .route("/", get(root))
        .route("/assets/{name}", get(asset))
        .route(dashboard::SESSION, session(&guard, body_timeout))
        .route("/healthz", get(healthz))
        .route("/metrics", get(metrics))
        .route("/status", get(status))
        .route("/seen", get(seen))
        .route("/series", get(series))
        .route("/recent", get(recent))
        .route("/events", get(move |viewing, fields| events(viewers, viewing, fields)))
        .route("/moment", get(moment))
        .route("/explain", post(move |console: Shared, request: Request| explain(console, request, body_timeout)))
        .route("/stored", post(move |console: Shared, request: Request| stored(console, request, body_timeout)))
        .route("/reload", post(reload))
        .route("/direct", post(move |console: Shared, request: Request| direct(console, request, body_timeout)))
        .route("/purge", post(move |console: Shared, request: Request| purge(console, request, body_timeout)))
        .route("/cluster", get(cluster))
        .route("/alerts", get(alerts))
        .route("/alerts/test", post(test_alerts))
        .route("/warm", get(warming).post(move |console: Shared, request: Request| warm(console, request, body_timeout)))
        .route("/certificates", get(certificates))
        .route("/certificates/revoke", post(move |console: Shared, request: Request| revoke(console, request, body_timeout)))
        .method_not_allowed_fallback(async || Refusal::method())
        .fallback(async || Refusal::no_such_route())
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .with_state(console);
    // A router of its own for the guard: around the routes themselves, a refusal would still get their `Allow`.
    Router::new().fallback_service(routes).layer(middleware::from_fn_with_state(guard, admit))
}

/// Judges a request before every route, the missing ones too: whoever may not ask does not learn which paths there are.
async fn admit(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let mut response = match guard.admit(&parts, Instant::now()) {
        Ok(()) => next.run(Request::from_parts(parts, body)).await,
        Err(refusal) => refusal.into_response(),
    };
    let fields = response.headers_mut();
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // No page may load an answer as a script or an image and learn from what it does.
    fields.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    fields.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    fields.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    fields.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    fields.entry(CONTENT_SECURITY_POLICY).or_insert(NOTHING);
    response
}

/// The policy of answers that are not a page: a browser that shows one all the same runs nothing of it, and in no frame.
const NOTHING: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");

/// Answers a browser with the dashboard, and everybody else with the list of routes.
async fn root(fields: HeaderMap) -> Response {
    let mut response = if wants_page(&fields) { dashboard::page() } else { ROUTES.into_response() };
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    response
}

async fn asset(uri: Uri) -> Result<Response, Refusal> {
    dashboard::part(uri.path()).ok_or_else(Refusal::no_such_route)
}

/// Asks for the token in exchange for a session.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct SignIn {
    token: String,
}

/// Answers whoever signed in: the key, and after how many seconds the session ends.
#[derive(serde::Serialize)]
struct Signed {
    key: String,
    seconds: u64,
}

/// Makes the route of sessions: `GET` says what the page may do, `POST` takes the token, `DELETE` ends the session.
fn session(guard: &Arc<Guard>, body_timeout: Duration) -> MethodRouter<Arc<dyn Console>> {
    let (asked, shown, ended) = (Arc::clone(guard), Arc::clone(guard), Arc::clone(guard));
    get(move |request: Request| async move {
        let (parts, _) = request.into_parts();
        Json::<PageRights>(asked.standing(&parts, Instant::now()))
    })
    .post(move |request: Request| async move {
        let (parts, content) = request.into_parts();
        let content = body(Request::new(content), body_timeout).await?;
        let SignIn { token } = serde_json::from_slice(&content).map_err(|error| Refusal::bad_sign_in(&error))?;
        let signed = shown.sign_in(&parts, &token, Instant::now())?;
        Ok::<_, Refusal>(([(SET_COOKIE, signed.cookie)], Json(Signed { key: signed.key, seconds: signed.seconds })))
    })
    .delete(move |request: Request| async move {
        let (parts, _) = request.into_parts();
        let forgotten = ended.sign_out(&parts, Instant::now());
        ([(SET_COOKIE, forgotten)], Json(ended.standing(&parts, Instant::now())))
    })
}

async fn healthz(State(console): Shared) -> Response {
    let status = readiness(&console.health());
    let body = Json(Ready { status });
    match status {
        Readiness::Ok => body.into_response(),
        Readiness::Draining => refusal::draining(body),
    }
}

const fn readiness(health: &Health) -> Readiness {
    if health.ready { Readiness::Ok } else { Readiness::Draining }
}

async fn metrics(State(console): Shared) -> impl IntoResponse {
    ([(CONTENT_TYPE, exposition::CONTENT_TYPE)], exposition::text(&console.metrics()))
}

async fn status(State(console): Shared) -> Json<Status> {
    let health = console.health();
    let status = readiness(&health);
    let metrics = exposition::families(&console.metrics());
    let alerts = console.alerts().standing;
    let cluster = console.cluster();
    // Workers are asked.
    let origins = tokio::task::spawn_blocking(move || console.origins()).await.unwrap_or_default();
    let Health { version, uptime, workers, listening, listeners, trusts_loopback, sites, cache, .. } = health;
    Json(Status {
        status,
        version,
        uptime_seconds: uptime.as_secs_f64(),
        workers,
        listening,
        trusts_loopback,
        listeners,
        sites,
        origins,
        cache,
        cluster,
        alerts,
        metrics,
    })
}

/// The site that is asked about; none: all together.
#[derive(serde::Deserialize)]
struct SiteQuery {
    site: Option<String>,
}

async fn seen(State(console): Shared, asked: QueryResult<SiteQuery>) -> Result<Json<Seen>, Refusal> {
    let Query(SiteQuery { site }) = asked?;
    let seen = tokio::task::spawn_blocking(move || console.seen(site.as_deref())).await;
    Ok(Json(seen.map_err(|_| ExplainRefused::Busy)?.ok_or_else(Refusal::no_such_site)?))
}

#[derive(serde::Deserialize)]
struct OfSpan {
    site: Option<String>,
    #[serde(default)]
    span: Span,
}

/// Says how far back a series goes.
#[derive(Clone, Copy, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Span {
    #[default]
    Hour,
    Day,
    Week,
}

impl Span {
    /// Returns the seconds from one row to the next.
    const fn step(self) -> u64 {
        match self {
            Self::Hour => 1,
            Self::Day => 60,
            Self::Week => 600,
        }
    }
}

async fn series(State(console): Shared, asked: QueryResult<OfSpan>) -> Result<Json<Series>, Refusal> {
    let Query(OfSpan { site, span }) = asked?;
    let series = tokio::task::spawn_blocking(move || console.series(site.as_deref(), span.step())).await;
    Ok(Json(series.map_err(|_| ExplainRefused::Busy)?.ok_or_else(Refusal::no_such_site)?))
}

#[derive(serde::Deserialize)]
struct RecentQuery {
    #[serde(default)]
    after: u64,
    #[serde(rename = "where")]
    expression: Option<String>,
    #[serde(default = "recent_default")]
    limit: usize,
}

const fn recent_default() -> usize {
    RECENT_DEFAULT
}

async fn recent(State(console): Shared, asked: QueryResult<RecentQuery>) -> Result<Json<Recent>, Refusal> {
    let Query(RecentQuery { after, expression, limit }) = asked?;
    // Each of some thousand requests is looked at.
    let recent = tokio::task::spawn_blocking(move || console.recent(after, expression.as_deref(), limit)).await;
    Ok(Json(recent.unwrap_or_else(|_| Ok(Recent::default()))?))
}

/// Answers with a stream that lasts as long as its client reads it.
///
/// A page of somebody else in a browser on this machine could not read the stream, but it could take all the places.
async fn events(viewers: Arc<Events>, Extension(viewing): Extension<Viewing>, fields: HeaderMap) -> Result<Response, Refusal> {
    if fields.get("sec-fetch-site").is_some_and(|site| site == "cross-site" || site == "same-site") {
        return Err(Refusal::cross_site());
    }
    viewers.view(viewing).ok_or_else(Refusal::too_many_viewers)
}

async fn moment(State(console): Shared) -> Json<Moment> {
    Json(console.moment())
}

/// Takes JSON whatever `Content-Type` says: that field is what keeps forms of web pages out elsewhere, and here the token does.
async fn body(request: Request, body_timeout: Duration) -> Result<Bytes, Refusal> {
    let body = tokio::time::timeout(body_timeout, Bytes::from_request(request, &()));
    Ok(body.await.map_err(|_| Refusal::slow_body())??)
}

/// Carries out the purge in the body of the request. The status is 202 where that is not known to hold on every machine of a cluster.
async fn purge(State(console): Shared, request: Request, body_timeout: Duration) -> Result<(StatusCode, Json<PurgeDone>), Refusal> {
    let order = admin_api::purge::order(&body(request, body_timeout).await?)?;
    // What is covered is counted.
    let purged = tokio::task::spawn_blocking(move || console.purge(&order)).await;
    let done = purged.unwrap_or_else(|_| Err(PurgeRefused::new("the purge did not come to its end")))?;
    let is_everywhere = done.spread.as_ref().is_none_or(|spread| spread.everywhere);
    Ok((if is_everywhere { StatusCode::OK } else { StatusCode::ACCEPTED }, Json(done)))
}

async fn reload(State(console): Shared) -> Result<Json<ReloadDone>, Refusal> {
    let reloaded = tokio::task::spawn_blocking(move || console.reload()).await;
    Ok(Json(reloaded.unwrap_or(Err(ReloadRefused::Busy))?))
}

async fn explain(State(console): Shared, request: Request, body_timeout: Duration) -> Result<Json<Explanation>, Refusal> {
    let command = ExplainCommand::from_json(&body(request, body_timeout).await?)?;
    // A worker is asked, and waiting for it must not hold up the other routes.
    let explained = tokio::task::spawn_blocking(move || console.explain(&command)).await;
    Ok(Json(explained.unwrap_or(Err(ExplainRefused::Busy))?))
}

async fn stored(State(console): Shared, request: Request, body_timeout: Duration) -> Result<Json<Inventory>, Refusal> {
    let command = StoredCommand::from_json(&body(request, body_timeout).await?)?;
    // A walk through everything that is stored.
    let listed = tokio::task::spawn_blocking(move || console.stored(&command)).await;
    Ok(Json(listed.map_err(|_| ExplainRefused::Busy)?))
}

async fn warming(State(console): Shared) -> Json<Warming> {
    Json(console.warming())
}

async fn warm(State(console): Shared, request: Request, body_timeout: Duration) -> Result<Json<Warming>, Refusal> {
    let command = WarmCommand::from_json(&body(request, body_timeout).await?)?;
    console.warm(&command)?;
    Ok(Json(console.warming()))
}

async fn direct(State(console): Shared, request: Request, body_timeout: Duration) -> Result<Json<DirectField>, Refusal> {
    let DirectCommand { seconds } = DirectCommand::from_json(&body(request, body_timeout).await?)?;
    Ok(Json(console.direct(Duration::from_secs(seconds.into()))?))
}

async fn cluster(State(console): Shared) -> Json<Option<ClusterState>> {
    Json(console.cluster())
}

async fn alerts(State(console): Shared) -> Json<AlertsState> {
    Json(console.alerts())
}

async fn test_alerts(State(console): Shared) -> Result<Json<AlertsTested>, Refusal> {
    let tested = tokio::task::spawn_blocking(move || console.test_alerts()).await;
    Ok(Json(tested.unwrap_or_else(|_| Err(AlertTestRefused::Failed("it did not come to its end".to_owned())))?))
}

async fn certificates(State(console): Shared) -> Json<Vec<CertificateState>> {
    Json(console.certificates())
}

async fn revoke(State(console): Shared, request: Request, body_timeout: Duration) -> Result<Json<CertificateState>, Refusal> {
    let command = RevokeCommand::from_json(&body(request, body_timeout).await?)?;
    let revoked = tokio::task::spawn_blocking(move || console.revoke(&command.name)).await;
    Ok(Json(revoked.unwrap_or(Err(RevokeRefused::Slow))?))
}
