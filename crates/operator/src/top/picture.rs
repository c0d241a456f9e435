//! All that is shown: the last answers of the server, and what was kept of those before.

use std::collections::VecDeque;

use admin_api::{Moment, Recent, RequestLine, Seen, Series};

use super::history::History;
use crate::admin_client::{AdminClient, AdminError};

/// The requests that the list shows at most.
const REQUESTS_MAX: usize = 500;

/// The answers to one round of questions.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    /// The site that was asked about.
    pub(super) site: Option<String>,
    pub(super) seen: Seen,
    pub(super) moment: Moment,
    pub(super) recent: Recent,
    /// The last hour, where it was asked for: at the beginning, and after a gap.
    pub(super) series: Option<Series>,
}

/// Asks the server, round by round.
#[derive(Debug)]
pub(super) struct Questions {
    client: AdminClient,
    site: Option<String>,
    /// The number of the newest request that is known.
    after: u64,
    /// The end of the newest second that is known.
    last: u64,
}

impl Questions {
    pub(super) const fn new(client: AdminClient, site: Option<String>) -> Self {
        Self { client, site, after: 0, last: 0 }
    }

    /// Returns where the server's admin listener is.
    pub(super) fn address(&self) -> String {
        self.client.address().to_string()
    }

    /// Asks about another site from the next round.
    pub(super) fn about(&mut self, site: Option<String>) {
        (self.site, self.last) = (site, 0);
    }

    /// Asks once for everything.
    pub(super) fn ask(&mut self) -> Result<Answer, AdminError> {
        let of_site = self.site.as_ref().map(|site| format!("?site={}", query_value(site))).unwrap_or_default();
        let seen = self.client.get(&format!("/seen{of_site}"))?;
        let moment: Moment = self.client.get("/moment")?;
        let recent: Recent = self.client.get(&format!("/recent?after={}&limit={REQUESTS_MAX}", self.after))?;
        // Whoever missed a second asks for all of them: no curve has a hole because the network had one.
        let series = (moment.at > self.last + 1).then(|| self.client.get(&format!("/series{of_site}"))).transpose()?;
        (self.after, self.last) = (recent.next, moment.at);
        Ok(Answer { site: self.site.clone(), seen, moment, recent, series })
    }
}

/// Writes text as the value of a query parameter (RFC 3986 §2.1).
fn query_value(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// Holds all that is shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Picture {
    /// The address of the server's admin listener.
    pub(super) address: String,
    /// The site that is shown. `None`: all together.
    pub(super) site: Option<String>,
    pub(super) seen: Seen,
    pub(super) moment: Moment,
    pub(super) history: History,
    /// The last requests that were not plain hits, the newest first, of all sites.
    pub(super) requests: VecDeque<RequestLine>,
    /// The reason why the server gave no answer the last time, in a sentence.
    pub(super) trouble: Option<String>,
}

impl Picture {
    pub(super) fn new(address: String, answer: Answer) -> Self {
        let mut picture = Self { address, ..Self::default() };
        picture.take(answer);
        picture
    }

    /// Shows what an answer says.
    pub(super) fn take(&mut self, answer: Answer) {
        let Answer { site, seen, moment, recent, series } = answer;
        if let Some(series) = series {
            self.history = History::of(&series);
        }
        self.history.add(&moment, site.as_deref());
        for request in recent.requests {
            // A server that was started anew counts from the beginning.
            if self.requests.front().is_some_and(|newest| request.number <= newest.number) {
                self.requests.clear();
            }
            self.requests.push_front(request);
        }
        self.requests.truncate(REQUESTS_MAX);
        (self.site, self.seen, self.moment, self.trouble) = (site, seen, moment, None);
    }

    /// Returns the last requests of the site that is shown, the newest first.
    pub(super) fn requests_shown(&self) -> impl Iterator<Item = &RequestLine> {
        self.requests.iter().filter(|request| self.site.as_deref().is_none_or(|site| request.site == site))
    }

    /// Returns the time of the last answer, in milliseconds since the epoch.
    pub(super) fn now(&self) -> u64 {
        self.seen.at.max(self.moment.at.saturating_mul(1_000))
    }

    /// Tells whether hosts and sites have to be named: several are shown.
    pub(super) const fn shows_several(&self) -> bool {
        self.site.is_none() && self.seen.sites.len() > 1
    }

    /// Returns the site after the one that is shown, or before it; `None`, all together, has its turn, too.
    pub(super) fn next_site(&self, step: isize) -> Option<String> {
        let sites = &self.seen.sites;
        let here = self.site.as_ref().and_then(|site| sites.iter().position(|name| name == site)).map_or(0, |place| place + 1);
        let next = (here + sites.len() + 1).saturating_add_signed(step) % (sites.len() + 1);
        next.checked_sub(1).map(|place| sites[place].clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(numbers: &[u64]) -> Answer {
        let requests = numbers.iter().map(|number| RequestLine {
            number: *number,
            site: if number % 2 == 0 { "even" } else { "odd" }.to_owned(),
            ..RequestLine::default()
        });
        Answer { recent: Recent { requests: requests.collect(), ..Recent::default() }, ..Answer::default() }
    }

    fn numbers(picture: &Picture) -> Vec<u64> {
        picture.requests_shown().map(|request| request.number).collect()
    }

    #[test]
    fn the_newest_request_is_first_and_a_restart_begins_anew() {
        let mut picture = Picture::new(String::new(), answer(&[1, 2]));
        picture.take(answer(&[3, 4]));
        assert_eq!(numbers(&picture), [4, 3, 2, 1]);
        picture.site = Some("odd".to_owned());
        assert_eq!(numbers(&picture), [3, 1]);
        picture.take(answer(&[1]));
        assert_eq!(numbers(&picture), [1]);
        picture.take(answer(&(2..5_000).collect::<Vec<_>>()));
        assert_eq!(numbers(&picture).len(), REQUESTS_MAX);
    }

    #[test]
    fn every_site_has_its_turn_and_then_all_together() {
        let mut picture = Picture { seen: Seen { sites: vec!["a".to_owned(), "b".to_owned()], ..Seen::default() }, ..Picture::default() };
        let mut turns = Vec::new();
        for _ in 0..4 {
            picture.site = picture.next_site(1);
            turns.push(picture.site.clone().unwrap_or_default());
        }
        assert_eq!(turns, ["a", "b", "", "a"]);
        picture.site = None;
        assert_eq!(picture.next_site(-1).as_deref(), Some("b"));
        picture.site = Some("gone after a reload".to_owned());
        assert_eq!(picture.next_site(1).as_deref(), Some("a"));
        picture.seen.sites.clear();
        assert_eq!(picture.next_site(1), None);
    }

    #[test]
    fn a_name_of_any_kind_is_one_value_of_the_query() {
        assert_eq!(query_value("blog.example:8080/é&a=b"), "blog.example%3A8080%2F%C3%A9%26a%3Db");
    }
}
