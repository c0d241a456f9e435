//! What is asked: the flags about requests as the load tester takes them, and the permission to ask it.

use std::{
    fs::File,
    hash::{BuildHasher as _, RandomState},
    net::SocketAddr,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::Context as _;
use load::{
    Schedule,
    fetch::{Fetched, Fetcher},
    permission::{Cap, Permission},
    plan::Connections,
    prepare::{PrepareError, Prepared, prepare},
    requests::{Body, Checks, LEAK_COOKIE, Origin, RequestOptions, RequestSet},
    schedule::replay::{Options, Reader},
    shape::Shape,
};

use super::{
    flags::Flags,
    go::{Failed, mistyped, undone},
};

/// What is asked, and of whom.
pub(super) struct BenchTarget {
    /// How requests are made of it, once all fields are known.
    asking: RequestOptions,
    /// The requests: of a log, or as they were typed.
    requests: RequestSet,
    /// Whether they are of a log.
    is_replayed: bool,
    /// When, where the requests say it themselves: those of a log, and of a shape.
    pub(super) schedule: Option<Schedule>,
    /// The addresses of the servers, as they were when they were permitted.
    pub(super) addresses: Vec<Vec<SocketAddr>>,
    /// The most load that is permitted.
    pub(super) cap: Option<Cap>,
    /// Remarks about what was found, for people.
    pub(super) remarks: Vec<String>,
}

impl BenchTarget {
    /// Finds out what is asked. Servers that are not permitted are not sent anything.
    pub(super) fn find(flags: &Flags, connections: &Connections) -> Result<Self, Failed> {
        let mut asking = asking(flags)?;
        if flags.replay.is_some() && flags.urls.len() != 1 {
            let words = "--replay asks one server\n  Name its address, such as http://127.0.0.1:8080, and nothing else.";
            return Err(Failed::Mistyped(words.to_owned()));
        }
        let permission = Permission { token: flags.token.clone(), own_this: flags.i_own_this };
        let sitemap = flags.sitemap.as_deref().map(with_scheme);
        let prepared = prepare(&asking, sitemap.as_deref(), connections, &permission).map_err(|error| match error {
            PrepareError::Asking(_) | PrepareError::Url(_) => mistyped(error),
            PrepareError::Refused(_) | PrepareError::Sitemap(_) => undone(error),
        })?;
        let Prepared { requests, addresses, cap, sitemap: found } = prepared;
        let mut remarks = Vec::new();
        if let (Some(found), Some(sitemap)) = (found, sitemap) {
            remarks.push(format!("{sitemap}: {} pages", found.urls.len()));
            if found.elsewhere > 0 {
                remarks.push(format!("{} of them have another host there, and are asked of the host of the sitemap", found.elsewhere));
            }
            if found.is_cut {
                remarks.push("the sitemap has more than is read".to_owned());
            }
            if let Some(failure) = found.failure {
                remarks.push(format!("{} of {} files of the sitemap cannot be read, the first: {failure}", found.failed, found.files));
            }
            asking.found = found.urls;
        }
        // A shape asks for paths of its own, too, such as /robots.txt: they are not pages.
        if let (Some(shape), [only], None) = (&asking.shape, flags.urls.as_slice(), &flags.sitemap)
            && shape.walks()
        {
            let name = &shape.name;
            remarks.push(format!(
                "note: visitors of the shape {name} ask for any page of the site, and only {only} is known: add --sitemap URL, or more URLs"
            ));
        }
        #[expect(clippy::cast_precision_loss, reason = "a number of visitors a second is far below 2^53")]
        let peak = flags.peak.map(|peak| peak as f64);
        let schedule = asking.shape.as_ref().map(|shape| shape.schedule(peak, flags.over));
        let what = Self { asking, requests, is_replayed: false, schedule, addresses, cap, remarks };
        match &flags.replay {
            None => Ok(what),
            Some(log) => what.with_log(flags, log),
        }
    }

    /// Asks what a log says instead.
    fn with_log(mut self, flags: &Flags, log: &Path) -> Result<Self, Failed> {
        let origin = self.requests.origins.first().cloned().expect("there is one URL");
        let options = Options { origin, speed: flags.speed.unwrap_or(1.0), unsafe_methods: flags.writes };
        let mut reader = Reader::new(options).map_err(mistyped)?;
        let file = File::open(log).with_context(|| format!("{} cannot be read", log.display()))?;
        let replay = reader.log(file).and_then(|()| reader.finish()).with_context(|| log.display().to_string())?;
        self.remarks.push(format!("{}: {}", log.display(), replay.summary));
        Ok(Self { requests: replay.requests, schedule: Some(replay.schedule), is_replayed: true, ..self })
    }

    /// The servers that are asked.
    pub(super) fn origins(&self) -> &[Origin] {
        &self.requests.origins
    }

    /// Makes the requests, with `further` fields beside those that were typed.
    pub(super) fn set(&self, further: &[String]) -> Result<RequestSet, Failed> {
        let fields = self.asking.fields.iter().chain(further).cloned().collect();
        let asking = RequestOptions { fields, ..self.asking.clone() };
        match self.is_replayed {
            true => asking.behave(self.requests.clone()).map_err(mistyped),
            false if further.is_empty() => Ok(self.requests.clone()),
            false => asking.set().map_err(mistyped),
        }
    }

    /// Looks whether a schedule loads no more than is permitted.
    pub(super) fn allows(&self, schedule: &Schedule) -> Result<(), Failed> {
        let pages = self.asking.page || self.asking.shape.as_ref().is_some_and(Shape::has_pages);
        self.cap.map_or(Ok(()), |cap| cap.check(schedule, pages)).map_err(mistyped)
    }

    /// Asks for a page once, as a look at what the run has found.
    pub(super) fn look(&self, connections: &Connections, set: &RequestSet) -> Option<Fetched> {
        let request = set.requests.first()?;
        let origin = set.origins.get(usize::from(request.origin))?;
        let addresses = self.addresses.get(usize::from(request.origin)).cloned().unwrap_or_default();
        Fetcher::new(connections).get(origin, &addresses, &request.target, LOOK_MAX).ok()
    }
}

/// The most bytes of a page that is looked at.
const LOOK_MAX: usize = 1 << 20;

#[expect(clippy::disallowed_methods, reason = "placeholders stand for the time of the run; nothing is decided by it")]
fn now_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or_default()
}

fn asking(flags: &Flags) -> Result<RequestOptions, Failed> {
    let mut checks = Checks::default();
    for text in flags.expect_status.iter() {
        checks.expect_status(text).map_err(mistyped)?;
    }
    for text in &flags.expect_body {
        checks.expect_body(text).map_err(mistyped)?;
    }
    for text in &flags.expect_field {
        checks.expect_field(text).map_err(mistyped)?;
    }
    let shape = flags.shape.as_deref().map(Shape::load).transpose().map_err(mistyped)?;
    let leak_cookie = flags.leak_check.as_ref().map(|cookie| if cookie.is_empty() { LEAK_COOKIE.to_owned() } else { cookie.clone() });
    Ok(RequestOptions {
        urls: flags.urls.iter().map(|url| with_scheme(url)).collect(),
        lists: flags.urls_from.clone(),
        found: Vec::new(),
        method: flags.method.clone(),
        fields: flags.fields.clone(),
        body: flags.body.as_deref().map(Body::read),
        body_placeholders: flags.body_placeholders,
        in_order: flags.in_order,
        cookies: flags.cookies,
        checks,
        page: flags.page,
        page_origins: flags.page_origin.clone(),
        leak_cookie,
        shape,
        over: flags.over,
        run: u32::try_from(RandomState::new().hash_one(1) >> 32).unwrap_or_default(),
        began: now_millis(),
    })
}

/// Adds `http://` to an address of this machine that was typed without: `localhost:8080/`, `127.0.0.1`. What is not on this machine has to say which it is.
fn with_scheme(url: &str) -> String {
    let host = url.split(['/', '?']).next().unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let is_here = name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback()) || name == "[::1]";
    if !url.contains("://") && is_here { format!("http://{url}") } else { url.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_this_machine_needs_no_scheme() {
        for (typed, expected) in [
            ("127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("localhost/hello?a", "http://localhost/hello?a"),
            ("[::1]:8080/", "http://[::1]:8080/"),
            ("https://localhost/", "https://localhost/"),
            ("blog.example.org", "blog.example.org"),
            ("localhost.example.org", "localhost.example.org"),
        ] {
            assert_eq!(with_scheme(typed), expected);
        }
    }
}
