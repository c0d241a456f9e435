//! `seawall purge`: one command to the admin API, and what it covered.

use std::{error::Error, fmt, net::SocketAddr, time::Duration};

use admin_api::{PurgeCommand, PurgeDone, PurgeTarget};

use crate::{
    admin_client::{AdminClient, AdminError},
    units::count,
};

/// The time for the whole exchange: a purge is a number that is raised, and nobody waits longer for that.
const TIMEOUT: Duration = Duration::from_secs(5);

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

/// Sends `command` to the admin listener at `address`, and says what came of it, in a sentence. Takes at most five seconds.
///
/// # Errors
/// When the server cannot be reached, is not Seawall, or refuses.
pub fn run(address: SocketAddr, token: &str, command: &PurgeCommand) -> Result<String, PurgeError> {
    run_within(TIMEOUT, address, token, command).map_err(PurgeError)
}

fn run_within(timeout: Duration, address: SocketAddr, token: &str, command: &PurgeCommand) -> Result<String, AdminError> {
    let done: PurgeDone = AdminClient::new(address, token)?.within(timeout).post("/purge", &command.to_json())?;
    let how = if command.hard { "Purged" } else { "Marked stale" };
    let count = match done.variants {
        None => return Ok(format!("{how}: {}.", done.covered)),
        Some(0) if done.complete => return Ok(format!("Nothing was to be purged: {}.", absent(&command.target))),
        Some(0) => "none of it is in memory",
        Some(variants) => &count(variants as u64, "stored response", "stored responses"),
    };
    let disk = if done.complete { "" } else { " in memory, and what the disk has of it" };
    let disk = if done.variants == Some(0) { "; what the disk has of it is purged" } else { disk };
    Ok(format!("{how}: {} ({count}{disk}).", done.covered))
}

/// Says that there is nothing of what was named.
fn absent(target: &PurgeTarget) -> String {
    match target {
        PurgeTarget::Url(url) => format!("nothing is stored for {url}"),
        PurgeTarget::Prefix(prefix) => format!("nothing is stored below {prefix}"),
        PurgeTarget::Host(host) => format!("nothing is stored for the host {host}"),
        PurgeTarget::Tag(tag) => format!("nothing stored carries the tag {tag}"),
        PurgeTarget::All => "nothing is stored".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::TcpListener,
        thread,
    };

    use admin_api::PurgeTarget;

    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn everything() -> PurgeCommand {
        PurgeCommand { target: PurgeTarget::All, hard: true }
    }

    /// What the client makes of a server that reads the whole request and says `response`; and the request.
    fn answered_with(response: &str) -> (Result<String, PurgeError>, String) {
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
            let outcome = run(address, &format!("{TOKEN}\n"), &everything());
            (outcome, server.join().expect("no panic").replace(&address.to_string(), "ADDRESS"))
        })
    }

    #[test]
    fn the_request_is_one_that_the_server_takes() {
        let (outcome, request) =
            answered_with("HTTP/1.1 200 OK\r\n\r\n{\"generation\":1,\"variants\":null,\"complete\":true,\"covered\":\"everything\"}");
        assert_eq!(outcome.expect("done"), "Purged: everything.");
        let body = r#"{"all":true,"hard":true}"#;
        assert_eq!(
            request,
            format!(
                "POST /purge HTTP/1.1\r\nHost: ADDRESS\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n\
                 Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            )
        );
        assert_eq!(PurgeCommand::from_json(body.as_bytes()).expect("a command"), everything());
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
            (done("0", true), "Nothing was to be purged: nothing is stored."),
            (done("0", false), "Purged: that (none of it is in memory; what the disk has of it is purged)."),
            (done("1", true), "Purged: that (1 stored response)."),
            (done("3", true), "Purged: that (3 stored responses)."),
            (done("3", false), "Purged: that (3 stored responses in memory, and what the disk has of it)."),
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
                Ok(covered) => assert_eq!(covered, expected, "{shown}"),
                Err(error) => assert!(error.to_string().contains(expected), "{shown}: {error}"),
            }
        }
    }

    /// What is not there is said in the words of the question.
    #[test]
    fn what_is_not_stored_is_named() {
        let of = |text: &str| text.to_owned();
        for (target, expected) in [
            (PurgeTarget::Url(of("http://a/b")), "nothing is stored for http://a/b"),
            (PurgeTarget::Prefix(of("http://a/")), "nothing is stored below http://a/"),
            (PurgeTarget::Host(of("a")), "nothing is stored for the host a"),
            (PurgeTarget::Tag(of("t")), "nothing stored carries the tag t"),
        ] {
            assert_eq!(absent(&target), expected);
        }
    }

    #[test]
    fn a_server_that_is_not_there_or_silent_is_named() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let address = listener.local_addr().expect("bound");
        // The system accepts for a listener that never does.
        let error = run_within(Duration::from_millis(50), address, TOKEN, &everything()).expect_err("silent");
        assert!(matches!(error, AdminError::TimedOut(at, _) if at == address), "{error:?}");
        drop(listener);
        let error = run(address, TOKEN, &everything()).expect_err("gone");
        assert!(matches!(error.0, AdminError::NothingListens(at) if at == address), "{error:?}");
        assert!(error.to_string().contains("Is Seawall running?"), "{error}");
    }

    #[test]
    fn a_file_without_a_token_sends_nothing() {
        for text in ["", "short", "0123456789abcdef0123456789abcdef\r\nX: y"] {
            let error = run(([127, 0, 0, 1], 1).into(), text, &everything()).expect_err(text);
            assert!(matches!(error.0, AdminError::NotAToken), "{text}: {error:?}");
        }
    }
}
