//! Questions of the admin API that workers alone can answer. To explain, a command becomes a request, and every worker is asked what it would do
//! with it.
//!
//! A worker answers between two events of its own, so what it says is what its pipeline would do: its own rules, its own view of the origin.

use std::{
    rc::Rc,
    sync::mpsc::{SyncSender, sync_channel},
    time::{Duration, Instant},
};

use admin::{ExplainCommand, ExplainRefused, Explanation};
use http::{HeaderName, HeaderValue, Method, Request, Uri, header};
use pipeline::Pipeline;
use semantics::Scheme;

use crate::{
    plan::SitePlan,
    recognition::{how_known, schedule::Noted},
    server::State,
};

/// The time that workers have to answer. They need microseconds, unless the machine is out of breath.
const PATIENCE: Duration = Duration::from_secs(3);

/// Asks a worker for something. Each reply has room for every worker's answer, so that none waits.
#[derive(Debug)]
pub(crate) enum WorkerQuestion {
    /// It is asked how it would answer a request.
    Explain { scheme: Scheme, request: Box<Request<()>>, reply: SyncSender<Option<Box<Explanation>>> },
}

impl WorkerQuestion {
    /// Answers the question on the worker's own thread.
    pub(crate) fn answer(self, pipeline: &Rc<Pipeline>) {
        // Whoever asked may have lost patience.
        match self {
            Self::Explain { scheme, request, reply } => drop(reply.try_send(pipeline.explain(scheme, *request).map(Box::new))),
        }
    }
}

/// Asks every worker, and gathers what they say in time.
/// Says whether the plugin was seen, and when the schedule ran, of a site whose schedule is run from here.
fn schedule_in_words(state: &State, site: &SitePlan) -> Option<String> {
    site.schedule()?;
    let Noted { ran_at, trouble, .. } = state.schedules.lock().get(site.name()).cloned()?;
    let plugin = state.shared.signalled.of(site.name()).plugin;
    let plugin = plugin.map_or_else(|| "no plugin seen".to_owned(), |plugin| format!("with the plugin {plugin}"));
    let ran = ran_at.map_or_else(|| "not run yet".to_owned(), |at| format!("ran {} s ago", state.shared.clock.now().since(at).as_secs()));
    let trouble = trouble.map(|trouble| format!(", and fails: {trouble}")).unwrap_or_default();
    Some(format!("{plugin}; cron {ran}{trouble}"))
}

fn ask_all<T>(state: &State, question: impl Fn(SyncSender<T>) -> WorkerQuestion) -> Vec<T> {
    let deadline = Instant::now() + PATIENCE;
    let (reply, replies) = sync_channel(state.questions.len());
    for worker in &state.questions {
        // A worker whose queue is full is left out.
        let _ = worker.try_send(question(reply.clone()));
    }
    drop(reply);
    let mut answers = Vec::new();
    while let Ok(answer) = replies.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        answers.push(answer);
    }
    answers
}

/// Answers with the explanation of one worker. Workers agree in everything but whether the origin counts as down: the answer is that of the
/// worker which holds it to be down for longest.
pub(crate) fn explain(state: &State, command: &ExplainCommand) -> Result<Explanation, ExplainRefused> {
    let (scheme, request) = request(command)?;
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default().to_owned();
    let explanations = ask_all(state, |reply| WorkerQuestion::Explain { scheme, request: Box::new(request.clone()), reply });
    let explanation = explanations.into_iter().max_by_key(|explanation| explanation.as_ref().and_then(|it| it.origin_down_seconds));
    match explanation {
        None => Err(ExplainRefused::Busy),
        Some(None) => {
            let plan = state.plan.load();
            let hosts = plan.sites.iter().flat_map(|site| site.hosts().iter().cloned()).collect();
            Err(ExplainRefused::NoSite { host, hosts })
        }
        Some(Some(mut explanation)) => {
            let plan = state.plan.load();
            let site = plan.sites.iter().find(|site| site.name() == explanation.site.name);
            if explanation.site.route.is_none() {
                let known = site.and_then(|site| how_known(site.settings()));
                let beside = site.and_then(|site| schedule_in_words(state, site));
                let words = [known, beside].into_iter().flatten().collect::<Vec<_>>().join("; ");
                explanation.site.kind_known = Some(words).filter(|words| !words.is_empty());
            }
            Ok(*explanation)
        }
    }
}

/// Makes the request that the command means.
fn request(command: &ExplainCommand) -> Result<(Scheme, Request<()>), ExplainRefused> {
    let bad = |what: String| ExplainRefused::Address(what);
    let url = &command.url;
    let uri: Uri = url.parse().map_err(|_| bad(format!("\"{url}\" is not an address")))?;
    let scheme = match uri.scheme_str() {
        Some("http") => Scheme::Http,
        Some("https") => Scheme::Https,
        _ => return Err(bad(format!("\"{url}\" does not begin with http:// or https://"))),
    };
    let authority = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
    if authority.is_empty() || authority.contains('@') {
        return Err(bad(format!("\"{url}\" names no host")));
    }
    let method = Method::from_bytes(command.method.as_bytes()).map_err(|_| ExplainRefused::Method(command.method.clone()))?;
    let mut request = Request::new(());
    *request.method_mut() = method;
    *request.uri_mut() = uri.path_and_query().map_or_else(Uri::default, |target| Uri::from(target.clone()));
    let host = HeaderValue::from_str(authority).map_err(|_| bad(format!("\"{url}\" names no host")))?;
    request.headers_mut().insert(header::HOST, host);
    for (name, value) in &command.fields {
        let parsed = HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_str(value).ok());
        // Its value may be a secret, and the message is pasted somewhere.
        let (name, value) = parsed.ok_or_else(|| ExplainRefused::Field(name.clone()))?;
        if name == header::HOST {
            return Err(ExplainRefused::Host);
        }
        request.headers_mut().append(name, value);
    }
    Ok((scheme, request))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_and_fields_become_a_request() {
        let command = |url: &str, method: &str, fields: &[(&str, &str)]| ExplainCommand {
            url: url.to_owned(),
            method: method.to_owned(),
            fields: fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        };
        let (scheme, made) =
            request(&command("https://Blog.Example:8443/a?b=c", "HEAD", &[("Accept", "text/html"), ("accept", "*/*")])).expect("one");
        assert_eq!((scheme, made.method(), made.uri().to_string().as_str()), (Scheme::Https, &Method::HEAD, "/a?b=c"));
        assert_eq!(made.headers()["host"], "Blog.Example:8443");
        assert_eq!(made.headers().get_all("accept").iter().count(), 2);
        assert_eq!(request(&command("http://a", "GET", &[])).expect("one").1.uri(), "/");
        for (wrong, expected) in [
            (command("/hello/", "GET", &[]), "does not begin with http"),
            (command("blog.example/hello/", "GET", &[]), "is not an address"),
            (command("ftp://a/", "GET", &[]), "does not begin with http"),
            (command("http:///a", "GET", &[]), "is not an address"),
            (command("http://u@a/", "GET", &[]), "names no host"),
            (command("http://a/", "G T", &[]), "is not a method"),
            (command("http://a/", "GET", &[("a b", "c")]), "is not a field"),
            (command("http://a/", "GET", &[("a", "b\r\nc: d")]), "is not a field"),
            (command("http://a/", "GET", &[("Host", "b")]), "part of the address"),
        ] {
            let error = request(&wrong).expect_err(&wrong.url).to_string();
            assert!(error.contains(expected), "{wrong:?}: {error}");
            assert!(!error.contains("c: d") && !error.contains(": c"), "a value is not repeated: {error}");
        }
    }
}
