//! Requests that no careful server serves, and responses that no careful proxy passes on, as tables: one row per way to go wrong.
//!
//! A row says what may be answered, never how the server found out. Rows whose framing two recipients could read differently hide a second
//! request in the part that is read differently ([`Malformed::smuggled`]); if an origin ever sees that one, requests can be smuggled.
//!
//! Left out is what the RFCs let a server serve without any harm: leading empty lines, unknown minor versions, `Host` that differs from
//! an absolute-form target (RFC 9112 §3.2.2), an `Upgrade` that is ignored.

mod chunks;
mod framing;
mod limits;
mod lines;
mod responses;
mod targets;

pub use responses::{MalformedResponse, responses};

use std::sync::LazyLock;

use crate::{Answer, Client};

/// The host that every request of the table names, as far as it names one; the site under test should have it.
pub const HOST: &str = "blog.example";

/// The path that every request of the table asks for, as far as it can be told.
pub const PATH: &str = "/malformed";

/// The target of the hidden request before its row has a number.
const UNNUMBERED: &str = "smuggled-000";

/// A request that a careful server refuses.
#[derive(Clone, Debug)]
pub struct Malformed {
    /// What is wrong with it, as a sentence.
    pub name: &'static str,
    /// The section that forbids it.
    pub rule: &'static str,
    /// Whether a server has a choice.
    pub refusal: Refusal,
    /// Everything the client sends.
    pub bytes: Vec<u8>,
    /// Whether the client closes its sending side afterwards, because the request is an unfinished one.
    pub half_close: bool,
    /// What the server does.
    pub expect: Expect,
    /// Whether the server must close the connection after its answer, because it cannot know where the next request begins.
    pub closes: bool,
    /// The target of the request hidden within, which no origin may ever see.
    pub smuggled: Option<String>,
}

/// Whether a server may choose to refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The grammar or a MUST requires it.
    Required,
    /// An RFC lets a server repair or serve it (MAY, SHOULD); a server in front of others should refuse.
    Wise,
}

/// The expected reaction to a malformed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// It answers with one of these status codes.
    Status(&'static [u16]),
    /// It closes the connection without an answer.
    Closed,
    /// It answers with one of these status codes, or closes the connection without an answer.
    StatusOrClosed(&'static [u16]),
}

/// Returns all malformed requests.
#[must_use]
pub fn table() -> &'static [Malformed] {
    static TABLE: LazyLock<Vec<Malformed>> = LazyLock::new(|| {
        let rows = [framing::rows(), chunks::rows(), lines::rows(), targets::rows(), limits::rows()].into_iter().flatten();
        rows.enumerate().map(|(number, row)| row.numbered(number)).collect()
    });
    &TABLE
}

/// Returns a whole request for `/marker`, to be hidden within another one.
#[must_use]
pub fn smuggled(marker: &str) -> String {
    format!("GET /{marker} HTTP/1.1\r\nHost: {HOST}\r\n\r\n")
}

impl Malformed {
    /// Sends this request over a new connection and checks [`expect`](Self::expect) and [`closes`](Self::closes). The caller checks that
    /// nothing reached an origin.
    ///
    /// # Errors
    /// Returns the row's name and what happened, if the server does something else, or nothing within [`PATIENCE`](crate::PATIENCE).
    #[expect(clippy::disallowed_methods, reason = "awaited at once")]
    pub async fn put_to(&self, client: Client) -> Result<(), String> {
        let row = self.clone();
        // It runs in a task of its own, so that a client whose patience ends fails this row by name and not the whole table.
        match tokio::spawn(async move { row.try_on(client).await }).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(what)) => Err(format!("{} ({}): {what}", self.name, self.rule)),
            Err(error) => {
                let panic = error.try_into_panic().map_or_else(|error| error.to_string(), |panic| message(&*panic));
                Err(format!("{} ({}): {panic}", self.name, self.rule))
            }
        }
    }

    async fn try_on(&self, mut client: Client) -> Result<(), String> {
        client.send_raw(&self.bytes).await;
        if self.half_close {
            client.half_close().await;
        }
        let answer = client.try_read_answer().await;
        if !self.expect.allows(answer.as_ref()) {
            let got = answer.map_or_else(|| "a close".to_owned(), |answer| answer.to_string());
            return Err(format!("expected {:?}, got {got}", self.expect));
        }
        if self.closes && answer.is_some() {
            let after = client.read_to_close().await;
            if !after.is_empty() {
                return Err(format!("answered more than once: {}", String::from_utf8_lossy(&after)));
            }
        }
        Ok(())
    }

    /// Gives the hidden request, if there is one, a target of this row's own.
    fn numbered(mut self, number: usize) -> Self {
        if let Some(at) = self.bytes.windows(UNNUMBERED.len()).position(|window| window == UNNUMBERED.as_bytes()) {
            // It is as long as the one it replaces: lengths around it were counted already.
            let marker = format!("smuggled-{number:03}");
            self.bytes[at..at + marker.len()].copy_from_slice(marker.as_bytes());
            self.smuggled = Some(format!("/{marker}"));
        }
        self
    }

    const fn wise(mut self) -> Self {
        self.refusal = Refusal::Wise;
        self
    }

    const fn status(mut self, any_of: &'static [u16]) -> Self {
        self.expect = Expect::Status(any_of);
        self
    }

    const fn or_closed(mut self) -> Self {
        if let Expect::Status(any_of) = self.expect {
            self.expect = Expect::StatusOrClosed(any_of);
        }
        self
    }

    const fn half_close(mut self) -> Self {
        self.half_close = true;
        self
    }

    const fn may_stay_open(mut self) -> Self {
        self.closes = false;
        self
    }
}

impl Expect {
    /// Returns whether `answer`, or a close without one, is expected.
    #[must_use]
    pub fn allows(&self, answer: Option<&Answer>) -> bool {
        match (self, answer) {
            (Self::Status(any_of) | Self::StatusOrClosed(any_of), Some(answer)) => any_of.contains(&answer.code),
            (Self::Closed | Self::StatusOrClosed(_), None) => true,
            (Self::Status(_), None) | (Self::Closed, Some(_)) => false,
        }
    }
}

/// Returns a row that must be refused with 400 and a close, which is what most of them are.
fn row(name: &'static str, rule: &'static str, bytes: impl Into<Vec<u8>>) -> Malformed {
    Malformed {
        name,
        rule,
        refusal: Refusal::Required,
        bytes: bytes.into(),
        half_close: false,
        expect: Expect::Status(&[400]),
        closes: true,
        smuggled: None,
    }
}

/// Returns a GET with these field lines after its `Host`; lines are separated, not ended, by CRLF.
fn get_with(fields: &str) -> String {
    format!("GET {PATH} HTTP/1.1\r\nHost: {HOST}\r\n{fields}\r\n\r\n")
}

/// Returns a GET with these lines instead of `Host`.
fn get_without_host(fields: &str) -> String {
    format!("GET {PATH} HTTP/1.1\r\n{fields}\r\n\r\n")
}

/// Returns an otherwise complete request with this request line.
fn request_line(line: &str) -> String {
    format!("{line}\r\nHost: {HOST}\r\n\r\n")
}

/// Returns a POST with these field lines and this content, followed by a hidden request. `{all}` in the field lines stands for the length
/// of both, `{content}` for the length of the content.
fn smuggling(fields: &str, content: &str) -> String {
    let hidden = smuggled(UNNUMBERED);
    let all = (content.len() + hidden.len()).to_string();
    let fields = fields.replace("{all}", &all).replace("{content}", &content.len().to_string());
    format!("POST {PATH} HTTP/1.1\r\nHost: {HOST}\r\n{fields}\r\n\r\n{content}{hidden}")
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_else(|| "a panic".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Origin;
    use std::collections::HashSet;

    #[test]
    fn every_row_has_its_own_name_and_its_own_bytes() {
        let (mut names, mut bytes) = (HashSet::new(), HashSet::new());
        for row in table() {
            assert!(names.insert(row.name), "twice: {}", row.name);
            assert!(bytes.insert(&row.bytes), "the same bytes again: {}", row.name);
            assert!(!row.rule.is_empty(), "{}", row.name);
        }
        assert!(names.len() >= 90, "{}", names.len());
    }

    #[test]
    fn hidden_requests_have_numbers_of_their_own() {
        let hidden: Vec<_> = table().iter().filter_map(|row| row.smuggled.as_ref().map(|target| (target, row))).collect();
        for (target, row) in &hidden {
            let request = smuggled(&target[1..]);
            assert!(row.bytes.ends_with(request.as_bytes()), "{}", row.name);
            assert!(row.closes, "what follows an ambiguous request must not be read: {}", row.name);
        }
        let targets: HashSet<_> = hidden.iter().map(|(target, _)| target).collect();
        assert_eq!(targets.len(), hidden.len());
        assert!(targets.len() >= 30, "{}", targets.len());
    }

    /// The scripted origin reads more strictly than any server, so a row that it serves is not malformed at all. Requests that are only
    /// too long or ask too much are well-formed; it answers those 500, as unexpected.
    #[tokio::test]
    async fn a_strict_server_refuses_every_row_and_sees_nothing_hidden() {
        let origin = Origin::start();
        let well_formed: HashSet<_> = limits::rows().iter().map(|row| row.name).chain(targets::well_formed()).collect();
        let mut failures = Vec::new();
        for row in table().iter().filter(|row| !well_formed.contains(row.name)) {
            let strict = Malformed { expect: Expect::StatusOrClosed(&[400]), ..row.clone() };
            failures.extend(strict.put_to(Client::connect(origin.addr()).await).await.err());
        }
        assert!(failures.is_empty(), "{}", failures.join("\n"));
        let seen: Vec<_> = origin.requests().iter().map(ToString::to_string).collect();
        assert!(seen.is_empty(), "{seen:#?}");
        assert!(!origin.take_unexpected().is_empty());
    }

    #[tokio::test]
    async fn a_server_that_serves_a_malformed_request_fails_the_row_by_name() {
        let origin = Origin::start();
        let served = row("a request with nothing wrong", "none", get_with("Accept: */*"));
        let failure = served.put_to(Client::connect(origin.addr()).await).await.expect_err("500 is not 400");
        assert!(failure.starts_with("a request with nothing wrong (none): expected Status([400]), got HTTP/1.1 500"), "{failure}");
        assert_eq!(origin.take_unexpected().len(), 1);
    }
}
