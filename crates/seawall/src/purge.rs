//! The client of the admin API that `seawall purge` is: one request, one answer.
//!
//! Whatever else answers at that address is told apart and named, since a port that another program took is the likeliest mistake here.

use std::{error::Error, fmt, io, net::SocketAddr, time::Duration};

use admin::PurgeCommand;
use serde::Deserialize;

use crate::admin_client::{exchange, reachable, take_apart};

/// For the whole exchange.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Longest response that is read, in bytes; a real one has some hundred.
const RESPONSE_MAX: u64 = 64 << 10;

/// Why nothing was purged, or why that is unknown.
#[derive(Debug)]
pub enum PurgeError {
    /// The address takes no connections.
    NothingListens(SocketAddr),
    /// The address cannot be reached, or the connection broke.
    Failed(SocketAddr, io::Error),
    /// No whole answer within five seconds.
    TimedOut(SocketAddr),
    /// The token is of another server.
    WrongToken(SocketAddr),
    /// The text of the token cannot be one.
    NotAToken,
    /// The server understood and refused.
    Refused {
        /// What is wrong.
        error: String,
        /// What to do.
        remedy: String,
    },
    /// Something else listens there.
    NotSeawall(SocketAddr),
}

impl fmt::Display for PurgeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingListens(address) => write!(
                f,
                "nothing listens at {address}\n  Is Seawall running? Its admin listener is expected there; --admin names another address."
            ),
            Self::Failed(address, _) => write!(f, "the connection to {address} failed, so it is unknown whether anything was purged"),
            Self::TimedOut(address) => write!(
                f,
                "{address} did not answer within {} seconds, so it is unknown whether anything was purged\n  Purging twice does no harm: try again.",
                TIMEOUT.as_secs()
            ),
            Self::WrongToken(address) => write!(
                f,
                "the Seawall at {address} does not accept this token\n  The token file belongs to another server; --token-file names the right one."
            ),
            Self::NotAToken => {
                f.write_str("the token file holds no token\n  --token-file names another one; `seawall serve` makes it when it starts.")
            }
            Self::Refused { error, remedy } => write!(f, "nothing was purged: {error}\n  {remedy}"),
            Self::NotSeawall(address) => write!(
                f,
                "what listens at {address} is not Seawall's admin listener\n  --admin names its address: `admin` in seawall.toml, 127.0.0.1:9180 by default."
            ),
        }
    }
}

impl Error for PurgeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed(_, error) => Some(error),
            Self::NothingListens(_)
            | Self::TimedOut(_)
            | Self::WrongToken(_)
            | Self::NotAToken
            | Self::Refused { .. }
            | Self::NotSeawall(_) => None,
        }
    }
}

/// Sends `command` to the admin listener at `address`, and says what it covered. Takes at most five seconds.
///
/// # Errors
/// When the server cannot be reached, is not Seawall, or refuses.
pub fn run(address: SocketAddr, token: &str, command: &PurgeCommand) -> Result<String, PurgeError> {
    run_within(TIMEOUT, address, token, command)
}

fn run_within(timeout: Duration, address: SocketAddr, token: &str, command: &PurgeCommand) -> Result<String, PurgeError> {
    // What stands between the fields of a request must not come from a file.
    let token = admin::Token::new(token.trim()).ok_or(PurgeError::NotAToken)?;
    let address = reachable(address);
    let response = exchange(timeout, address, &request(address, &token, command), RESPONSE_MAX).map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused => PurgeError::NothingListens(address),
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => PurgeError::TimedOut(address),
        _ => PurgeError::Failed(address, error),
    })?;
    understand(address, &response)
}

fn request(address: SocketAddr, token: &admin::Token, command: &PurgeCommand) -> String {
    let body = command.to_json();
    format!(
        "POST /purge HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}",
        // A zone ("%eth0") means something on this machine alone and has no place in a Host field.
        host = SocketAddr::new(address.ip(), address.port()),
        token = token.as_str(),
        length = body.len(),
    )
}

/// The bodies of Seawall's answers, all of which are JSON objects.
#[derive(Deserialize)]
struct Done {
    covered: String,
    variants: Option<usize>,
}

#[derive(Deserialize)]
struct Wrong {
    error: String,
    remedy: String,
}

fn understand(address: SocketAddr, response: &[u8]) -> Result<String, PurgeError> {
    let not_seawall = || PurgeError::NotSeawall(address);
    let (status, body) = take_apart(response).ok_or_else(not_seawall)?;
    if status == 200 {
        let done: Done = serde_json::from_slice(body).map_err(|_| not_seawall())?;
        return Ok(match done.variants {
            None => done.covered,
            Some(0) => format!("{} (nothing was stored)", done.covered),
            Some(1) => format!("{} (1 stored response)", done.covered),
            Some(variants) => format!("{} ({variants} stored responses)", done.covered),
        });
    }
    let Wrong { error, remedy } = serde_json::from_slice(body).map_err(|_| not_seawall())?;
    // Another server's 401 has no such body.
    if status == 401 { Err(PurgeError::WrongToken(address)) } else { Err(PurgeError::Refused { error, remedy }) }
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
        assert!(matches!(error, PurgeError::TimedOut(at) if at == address), "{error:?}");
        drop(listener);
        let error = run(address, TOKEN, &everything()).expect_err("gone");
        assert!(matches!(error, PurgeError::NothingListens(at) if at == address), "{error:?}");
        assert!(error.to_string().contains("Is Seawall running?"), "{error}");
    }

    #[test]
    fn a_file_without_a_token_sends_nothing() {
        for text in ["", "short", "0123456789abcdef0123456789abcdef\r\nX: y"] {
            let error = run(([127, 0, 0, 1], 1).into(), text, &everything()).expect_err(text);
            assert!(matches!(error, PurgeError::NotAToken), "{text}: {error:?}");
        }
    }
}
