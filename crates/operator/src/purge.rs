//! `seawall purge`: one command to the admin API, and what it covered.

use std::{error::Error, fmt, net::SocketAddr, time::Duration};

use admin_api::PurgeDone;
use policy::purge::What;

use crate::{
    admin_client::{AdminClient, AdminError},
    cluster::spread_in_words,
    foreign::visible_answer,
    units::count,
};

/// The time for the whole exchange. On one machine, a purge is a number that is raised; in a cluster it may wait for the longest lease there can be.
const TIMEOUT: Duration = Duration::from_secs(40);

/// A purge that was carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purged {
    /// The result, in sentences.
    pub said: String,
    /// Whether it is known to hold on every machine. A server that stands alone is all of them.
    pub everywhere: bool,
}

/// Says why nothing was purged, or why that is unknown.
#[derive(Debug)]
pub struct PurgeError(AdminError);

impl fmt::Display for PurgeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (problem, remedy) = (self.0.problem(), self.0.remedy());
        match &self.0 {
            AdminError::Failed(..) | AdminError::TimedOut(..) => {
                write!(f, "{problem}, so it is unknown whether anything was purged\n  Purging twice does no harm: try again.\n  {remedy}")
            }
            AdminError::Refused { .. } => write!(f, "nothing was purged: {problem}\n  {remedy}"),
            error => error.fmt(f),
        }
    }
}

impl Error for PurgeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

/// Has `what` purged, hard or softly, by the server whose admin listener is at `address`, and says what came of it, and how far it went. It takes at
/// most 40 seconds, and nearly always milliseconds.
///
/// # Errors
/// When the server cannot be reached, is not Seawall, or refuses.
pub fn run(address: SocketAddr, token: &str, what: &What, hard: bool) -> Result<Purged, PurgeError> {
    run_within(TIMEOUT, address, token, what, hard).map_err(PurgeError)
}

fn run_within(timeout: Duration, address: SocketAddr, token: &str, what: &What, hard: bool) -> Result<Purged, AdminError> {
    let done: PurgeDone = AdminClient::new(address, token)?.within(timeout).post("/purge", &admin_api::purge::json(what, hard))?;
    let here = in_words(&done, what, hard);
    Ok(match &done.spread {
        None => Purged { said: here, everywhere: true },
        Some(spread) => Purged { said: format!("{here}\n{}", spread_in_words(&visible_answer(spread))), everywhere: spread.everywhere },
    })
}

/// Says what was purged on the machine that was asked.
fn in_words(done: &PurgeDone, what: &What, hard: bool) -> String {
    let how = if hard { "Purged" } else { "Marked stale" };
    let count = match done.variants {
        None => return format!("{how}: {}.", done.covered),
        Some(0) if done.complete && done.spread.is_some() => return format!("Nothing to purge on this machine: {}.", absent(what)),
        Some(0) if done.complete => return format!("Nothing to purge: {}.", absent(what)),
        Some(0) => "none of it is in memory",
        Some(variants) => &count(variants as u64, "stored response", "stored responses"),
    };
    let disk = if done.complete { "" } else { " in memory, and others that may be on disk only" };
    let disk = if done.variants == Some(0) { "; copies on disk are purged, too" } else { disk };
    format!("{how}: {} ({count}{disk}).", done.covered)
}

/// Says that there is nothing of what was named.
fn absent(what: &What) -> String {
    match what {
        What::Url(url) => format!("nothing is stored for {url}"),
        What::Prefix(prefix) => format!("nothing is stored below {prefix}"),
        What::Host(host) => format!("nothing is stored for the host {host}"),
        What::Tag(tag) => format!("nothing stored carries the tag {tag}"),
        What::Everything => "nothing is stored".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::TcpListener,
        thread,
    };

    use policy::purge::Order;

    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    /// Returns what the client makes of a server that reads the whole request and says `response`, and the request.
    fn answered_with(response: &str) -> (Result<Purged, PurgeError>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let address = listener.local_addr().expect("bound");
        thread::scope(|scope| {
            let server = scope.spawn(|| {
                let (mut stream, _) = listener.accept().expect("a client");
                let mut request = Vec::new();
                let mut byte = [0];
                while !request.ends_with(b"}") {
                    stream.read_exact(&mut byte).expect("a request");
                    request.push(byte[0]);
                }
                // The client hangs up on what is too long.
                let _ = stream.write_all(response.as_bytes());
                String::from_utf8(request).expect("text")
            });
            let outcome = run(address, &format!("{TOKEN}\n"), &What::Everything, true);
            (outcome, server.join().expect("no panic").replace(&address.to_string(), "ADDRESS"))
        })
    }

    #[test]
    fn the_request_is_one_that_the_server_takes() {
        let (outcome, request) =
            answered_with("HTTP/1.1 200 OK\r\n\r\n{\"generation\":1,\"variants\":null,\"complete\":true,\"covered\":\"everything\"}");
        assert_eq!(outcome.expect("done"), Purged { said: "Purged: everything.".to_owned(), everywhere: true });
        let body = r#"{"all":true,"hard":true}"#;
        assert_eq!(
            request,
            format!(
                "POST /purge HTTP/1.1\r\nHost: ADDRESS\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n\
                 Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            )
        );
        assert_eq!(admin_api::purge::order(body.as_bytes()).expect("an order"), Order::by_operator(What::Everything, true));
    }

    #[test]
    fn every_answer_is_understood() {
        let wrong =
            |status: &str| format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n\r\n{{\"error\":\"E\",\"remedy\":\"R\"}}");
        let done = |variants: &str, complete: bool| {
            format!("HTTP/1.1 200 OK\r\n\r\n{{\"generation\":7,\"variants\":{variants},\"complete\":{complete},\"covered\":\"that\"}}")
        };
        let cases = [
            (done("null", true), "Purged: that."),
            (done("0", true), "Nothing to purge: nothing is stored."),
            (done("0", false), "Purged: that (none of it is in memory; copies on disk are purged, too)."),
            (done("1", true), "Purged: that (1 stored response)."),
            (done("3", true), "Purged: that (3 stored responses)."),
            (done("3", false), "Purged: that (3 stored responses in memory, and others that may be on disk only)."),
            (wrong("400 Bad Request"), "nothing was purged: E\n  R"),
            (wrong("413 Content Too Large"), "nothing was purged: E\n  R"),
            (wrong("401 Unauthorized"), "does not accept this token"),
            ("HTTP/1.1 401 Unauthorized\r\n\r\n<html>".to_owned(), "another program listens at"),
            ("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(), "another program listens at"),
            ("HTTP/1.1 200 OK\r\n\r\n<html>".to_owned(), "another program listens at"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"covered\":\"that\"}".to_owned(), "another program listens at"),
            ("SSH-2.0-OpenSSH_9.2\r\n".to_owned(), "another program listens at"),
            (String::new(), "another program listens at"),
            ("x".repeat(100_000), "another program listens at"),
        ];
        for (response, expected) in cases {
            let shown = &response[..response.len().min(80)];
            match answered_with(&response).0 {
                Ok(purged) => assert_eq!(purged, Purged { said: expected.to_owned(), everywhere: true }, "{shown}"),
                Err(error) => assert!(error.to_string().contains(expected), "{shown}: {error}"),
            }
        }
    }

    /// A script must not take a purge for done that is not: 202 has the same form as 200.
    #[test]
    fn a_purge_of_a_cluster_says_how_far_it_went() {
        let done = |status: &str, variants: &str, spread: &str| {
            let done = format!("{{\"generation\":7,\"variants\":{variants},\"complete\":true,\"covered\":\"that\",\"spread\":{spread}}}");
            answered_with(&format!("HTTP/1.1 {status}\r\n\r\n{done}")).0.expect("done")
        };
        let everywhere = done("200 OK", "1", r#"{"everywhere":true,"confirmed":["web1","web2"],"took_ms":3}"#);
        assert_eq!(
            (everywhere.said.as_str(), everywhere.everywhere),
            ("Purged: that (1 stored response).\nIt holds everywhere, after 3.0 ms. web1 and web2 have confirmed it.", true)
        );
        let unknown = done("202 Accepted", "0", r#"{"everywhere":false,"confirmed":["web1"],"why":"the server did not answer"}"#);
        assert_eq!(
            (unknown.said.as_str(), unknown.everywhere),
            (
                "Nothing to purge on this machine: nothing is stored.\nIt is not known to hold everywhere: the server did not answer. \
                 web1 has confirmed it.",
                false
            )
        );
    }

    /// What is not there is said in the words of the question.
    #[test]
    fn what_is_not_stored_is_named() {
        for (what, expected) in [
            (What::url("http://a/b?c"), "nothing is stored for http://a/b?c"),
            (What::prefix("http://a/"), "nothing is stored below http://a/"),
            (What::host("a"), "nothing is stored for the host a"),
            (What::tag("t"), "nothing stored carries the tag t"),
        ] {
            assert_eq!(absent(&what.expect("a target")), expected);
        }
    }

    #[test]
    fn a_server_that_is_not_there_or_silent_is_named() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let address = listener.local_addr().expect("bound");
        // The system accepts for a listener that never does.
        let error = run_within(Duration::from_millis(50), address, TOKEN, &What::Everything, true).expect_err("silent");
        assert!(matches!(error, AdminError::TimedOut(at, _) if at == address), "{error:?}");
        drop(listener);
        let error = run(address, TOKEN, &What::Everything, true).expect_err("gone");
        assert!(matches!(error.0, AdminError::NothingListens(at) if at == address), "{error:?}");
        assert!(error.to_string().contains("Is Seawall running?"), "{error}");
    }

    #[test]
    fn a_file_without_a_token_sends_nothing() {
        for text in ["", "short", "0123456789abcdef0123456789abcdef\r\nX: y"] {
            let error = run(([127, 0, 0, 1], 1).into(), text, &What::Everything, true).expect_err(text);
            assert!(matches!(error.0, AdminError::NotAToken), "{text}: {error:?}");
        }
    }
}
