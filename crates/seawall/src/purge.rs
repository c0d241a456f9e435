//! `seawall purge`: one command to the admin API, and what it covered.

use std::{error::Error, fmt, net::SocketAddr, time::Duration};

use admin::PurgeCommand;
use serde::Deserialize;

use crate::admin_client::{AdminClient, AdminError};

/// For the whole exchange: a purge is a number that is raised, and nobody waits longer for that.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Why nothing was purged, or why that is unknown.
#[derive(Debug)]
pub struct PurgeError(AdminError);

impl fmt::Display for PurgeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            error @ AdminError::Failed(..) => write!(f, "{error}, so it is unknown whether anything was purged"),
            error @ AdminError::TimedOut(..) => {
                write!(f, "{error}, so it is unknown whether anything was purged\n  Purging twice does no harm: try again.")
            }
            error @ AdminError::Refused { .. } => write!(f, "nothing was purged: {error}"),
            error => error.fmt(f),
        }
    }
}

impl Error for PurgeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

/// Sends `command` to the admin listener at `address`, and says what it covered. Takes at most five seconds.
///
/// # Errors
/// When the server cannot be reached, is not Seawall, or refuses.
pub fn run(address: SocketAddr, token: &str, command: &PurgeCommand) -> Result<String, PurgeError> {
    run_within(TIMEOUT, address, token, command).map_err(PurgeError)
}

fn run_within(timeout: Duration, address: SocketAddr, token: &str, command: &PurgeCommand) -> Result<String, AdminError> {
    let done: Done = AdminClient::new(address, token)?.within(timeout).post("/purge", &command.to_json())?;
    Ok(match done.variants {
        None => done.covered,
        Some(0) => format!("{} (nothing was stored)", done.covered),
        Some(1) => format!("{} (1 stored response)", done.covered),
        Some(variants) => format!("{} ({variants} stored responses)", done.covered),
    })
}

/// What the server says when it has purged.
#[derive(Deserialize)]
struct Done {
    covered: String,
    variants: Option<usize>,
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::TcpListener,
        thread,
    };

    use admin::PurgeTarget;

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
        let (outcome, request) = answered_with("HTTP/1.1 200 OK\r\n\r\n{\"generation\":1,\"variants\":null,\"covered\":\"everything\"}");
        assert_eq!(outcome.expect("done"), "everything");
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
        let done = |variants: &str| format!("HTTP/1.1 200 OK\r\n\r\n{{\"generation\":7,\"variants\":{variants},\"covered\":\"that\"}}");
        let cases = [
            (done("null"), "that"),
            (done("0"), "that (nothing was stored)"),
            (done("1"), "that (1 stored response)"),
            (done("3"), "that (3 stored responses)"),
            (wrong("400 Bad Request"), "nothing was purged: E\n  R"),
            (wrong("413 Content Too Large"), "nothing was purged: E\n  R"),
            (wrong("401 Unauthorized"), "does not accept this token"),
            ("HTTP/1.1 401 Unauthorized\r\n\r\n<html>".to_owned(), "is not Seawall's admin listener"),
            ("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(), "is not Seawall's admin listener"),
            ("HTTP/1.1 200 OK\r\n\r\n<html>".to_owned(), "is not Seawall's admin listener"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"covered\":\"that\"}".to_owned(), "is not Seawall's admin listener"),
            ("SSH-2.0-OpenSSH_9.2\r\n".to_owned(), "is not Seawall's admin listener"),
            (String::new(), "is not Seawall's admin listener"),
            ("x".repeat(100_000), "is not Seawall's admin listener"),
        ];
        for (response, expected) in cases {
            let shown = &response[..response.len().min(80)];
            match answered_with(&response).0 {
                Ok(covered) => assert_eq!(covered, expected, "{shown}"),
                Err(error) => assert!(error.to_string().contains(expected), "{shown}: {error}"),
            }
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
