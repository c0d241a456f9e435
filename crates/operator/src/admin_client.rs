//! The client's side of the admin API: one request, one answer, plain blocking sockets.
//!
//! It speaks just enough HTTP/1.1 for its own server. Whatever else answers at that address is told apart and named, since a port that
//! another program took is the likeliest mistake here.

use std::{
    error::Error,
    fmt,
    io::{self, Read as _, Write as _},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use admin_api::{Readiness, Ready, Refusal, Token};
use serde::de::DeserializeOwned;

use crate::units::span;

/// The time for a whole exchange, unless the client was told otherwise.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Longest response that is read, in bytes: a list of 50,000 stored responses with long addresses.
const RESPONSE_MAX: u64 = 64 << 20;

/// Says why the admin API gave no answer.
#[derive(Debug)]
pub enum AdminError {
    /// The address takes no connections.
    NothingListens(SocketAddr),
    /// The address cannot be reached, or the connection broke.
    Failed(SocketAddr, io::Error),
    /// There was no whole answer within this time.
    TimedOut(SocketAddr, Duration),
    /// The token belongs to another server.
    WrongToken(SocketAddr),
    /// The text of the token cannot be one.
    NotAToken,
    /// The server understood and refused.
    Refused {
        /// The status of the answer.
        status: u16,
        /// The words for what is wrong.
        error: String,
        /// The words for what to do.
        remedy: String,
    },
    /// Another program listens there.
    NotSeawall(SocketAddr),
    /// Seawall serves its visitors there.
    Visitors(SocketAddr),
}

/// Says what to do where another program may have the port.
const ANOTHER_PROGRAM: &str =
    "If that is another program, --admin names the right address: `admin` in seawall.toml, 127.0.0.1:9180 by default.";

impl AdminError {
    /// Says what happened, in a sentence without a full stop.
    #[must_use]
    pub fn problem(&self) -> String {
        match self {
            Self::NothingListens(address) => format!("nothing listens at {address}"),
            Self::Failed(address, _) => format!("the connection to {address} failed"),
            Self::TimedOut(address, timeout) => format!("{address} did not answer within {}", span(timeout.as_secs())),
            Self::WrongToken(address) => format!("the Seawall at {address} does not accept this token"),
            Self::NotAToken => "the token file holds no token".to_owned(),
            Self::Refused { error, .. } => error.clone(),
            Self::NotSeawall(address) => format!("another program listens at {address}: it does not answer as Seawall's admin API does"),
            Self::Visitors(address) => format!("Seawall serves visitors at {address}, and its admin API listens elsewhere"),
        }
    }

    /// Says what to do about it.
    #[must_use]
    pub fn remedy(&self) -> &str {
        match self {
            Self::NothingListens(_) => "Is Seawall running? Its admin listener is expected there; --admin names another address.",
            Self::Failed(..) | Self::TimedOut(..) => ANOTHER_PROGRAM,
            Self::WrongToken(_) => "The token file belongs to another server; --token-file names the right one.",
            Self::NotAToken => "--token-file names another one; `seawall serve` makes it when it starts.",
            Self::Refused { remedy, .. } => remedy,
            Self::NotSeawall(_) | Self::Visitors(_) => {
                "--admin names the right address: `admin` in seawall.toml, 127.0.0.1:9180 by default."
            }
        }
    }
}

impl fmt::Display for AdminError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  {}", self.problem(), self.remedy())
    }
}

impl Error for AdminError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed(_, error) => Some(error),
            Self::NothingListens(_)
            | Self::TimedOut(..)
            | Self::WrongToken(_)
            | Self::NotAToken
            | Self::Refused { .. }
            | Self::NotSeawall(_)
            | Self::Visitors(_) => None,
        }
    }
}

/// Speaks to the admin API of one server.
#[derive(Debug)]
pub struct AdminClient {
    address: SocketAddr,
    token: Token,
    timeout: Duration,
}

impl AdminClient {
    /// Makes a client of the server whose admin listener is at `address`.
    ///
    /// # Errors
    /// When the text is not a token: what stands between the fields of a request must not come from a file.
    pub fn new(address: SocketAddr, token: &str) -> Result<Self, AdminError> {
        let token = Token::new(token.trim()).ok_or(AdminError::NotAToken)?;
        Ok(Self { address: reachable(address), token, timeout: TIMEOUT })
    }

    /// Gives each exchange at most `timeout`.
    #[must_use]
    pub fn within(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Returns the address of the admin listener.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Reads `path`.
    ///
    /// # Errors
    /// When the server cannot be reached, is not Seawall, or refuses.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, AdminError> {
        self.ask("GET", path, "")
    }

    /// Asks whether the server takes new requests. It takes none while it lets the last ones end.
    ///
    /// # Errors
    /// When the server cannot be reached, is not Seawall, or refuses.
    pub fn is_ready(&self) -> Result<bool, AdminError> {
        let Response { status, body, is_cached } = self.send("GET", "/healthz", "")?;
        match serde_json::from_slice::<Ready>(&body) {
            Ok(Ready { status: Readiness::Ok }) if status == 200 => Ok(true),
            Ok(Ready { status: Readiness::Draining }) if status == 503 => Ok(false),
            _ if status == 401 => Err(AdminError::WrongToken(self.address)),
            _ => Err(self.not_the_admin_api(is_cached)),
        }
    }

    /// Sends a command to `path`.
    ///
    /// # Errors
    /// When the server cannot be reached, is not Seawall, or refuses.
    pub fn post<T: DeserializeOwned>(&self, path: &str, json: &str) -> Result<T, AdminError> {
        self.ask("POST", path, json)
    }

    /// Says who else listens there. Seawall says in `Cache-Status` what its cache did for a visitor.
    const fn not_the_admin_api(&self, is_cached: bool) -> AdminError {
        if is_cached { AdminError::Visitors(self.address) } else { AdminError::NotSeawall(self.address) }
    }

    fn send(&self, method: &str, path: &str, json: &str) -> Result<Response, AdminError> {
        let address = self.address;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{json}",
            // A zone ("%eth0") means something on this machine alone and has no place in a Host field.
            host = SocketAddr::new(address.ip(), address.port()),
            token = self.token.as_str(),
            length = json.len(),
        );
        let response = exchange(self.timeout, address, &request).map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionRefused => AdminError::NothingListens(address),
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => AdminError::TimedOut(address, self.timeout),
            _ => AdminError::Failed(address, error),
        })?;
        take_apart(&response).ok_or(AdminError::NotSeawall(address))
    }

    fn ask<T: DeserializeOwned>(&self, method: &str, path: &str, json: &str) -> Result<T, AdminError> {
        let address = self.address;
        let Response { status, body, is_cached } = self.send(method, path, json)?;
        let not_seawall = || self.not_the_admin_api(is_cached);
        // 202: it is done here, and not known to be done on every machine. The answer says so.
        if matches!(status, 200 | 202) {
            return serde_json::from_slice(&body).map_err(|_| not_seawall());
        }
        let Refusal { error, remedy } = serde_json::from_slice(&body).map_err(|_| not_seawall())?;
        // Another server's 401 has no such body.
        Err(if status == 401 {
            AdminError::WrongToken(address)
        } else {
            AdminError::Refused { status, error: error.trim_end().to_owned(), remedy: remedy.into_owned() }
        })
    }
}

/// Returns the address at which a listener is reached: one that listens on every address is reached on this machine's own.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        IpAddr::V4(_) | IpAddr::V6(_) => {}
    }
    address
}

/// Sends `request`, which must ask to close the connection, and reads what comes back until it is closed: at most [`RESPONSE_MAX`] bytes
/// and a piece, within `timeout` for all of it.
fn exchange(timeout: Duration, address: SocketAddr, request: &str) -> io::Result<Vec<u8>> {
    let deadline = Instant::now() + timeout;
    let mut stream = TcpStream::connect_timeout(&address, timeout)?;
    stream.set_write_timeout(Some(left(deadline)?))?;
    stream.write_all(request.as_bytes())?;
    let mut response = Vec::new();
    let mut piece = [0; 4096];
    // The time left is set anew before each read: a server that sends a byte a second must not keep us.
    while response.len() as u64 <= RESPONSE_MAX {
        stream.set_read_timeout(Some(left(deadline)?))?;
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => response.extend_from_slice(&piece[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(response)
}

fn left(deadline: Instant) -> io::Result<Duration> {
    deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()).ok_or_else(|| io::ErrorKind::TimedOut.into())
}

/// Holds a response.
struct Response {
    status: u16,
    body: Vec<u8>,
    /// Whether the cache of a Seawall has looked at the request (RFC 9211).
    is_cached: bool,
}

/// Takes a response apart. The connection was to be closed after it, so whatever follows the head is the content; `Content-Length`, if there, tells
/// whether all of it came.
fn take_apart(response: &[u8]) -> Option<Response> {
    let end = response.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    let (head, body) = (std::str::from_utf8(&response[..end]).ok()?, &response[end + 4..]);
    let mut lines = head.split("\r\n");
    let status = lines.next()?.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let fields: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(':')).collect();
    let of = |wanted: &'static str| fields.iter().filter(move |(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim());
    let is_whole = of("content-length").next().is_none_or(|length| length.parse() == Ok(body.len()));
    let is_cached = of("cache-status").any(|value| value.contains("seawall;"));
    is_whole.then(|| Response { status, body: body.to_vec(), is_cached })
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, thread};

    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    /// Returns what the client makes of a server that reads the whole request and says `response`, and the request.
    fn answered_with(response: &str) -> (Result<serde_json::Value, AdminError>, String) {
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
                stream.write_all(response.as_bytes()).expect("sent");
                String::from_utf8(request).expect("text")
            });
            let client = AdminClient::new(address, &format!("{TOKEN}\n")).expect("a token");
            let outcome = client.post("/explain", "{}");
            (outcome, server.join().expect("no panic").replace(&address.to_string(), "ADDRESS"))
        })
    }

    #[test]
    fn every_answer_is_understood() {
        let (outcome, request) = answered_with("HTTP/1.1 200 OK\r\n\r\n{\"a\":1}");
        assert_eq!(outcome.expect("an answer")["a"], 1);
        assert!(request.starts_with(&format!("POST /explain HTTP/1.1\r\nHost: ADDRESS\r\nAuthorization: Bearer {TOKEN}\r\n")), "{request}");
        let wrong = |status: &str| format!("HTTP/1.1 {status}\r\n\r\n{{\"error\":\"E\",\"remedy\":\"R\"}}");
        for (response, expected) in [
            (wrong("421 Misdirected Request"), "E\n  R"),
            (wrong("401 Unauthorized"), "does not accept this token"),
            ("HTTP/1.1 401 Unauthorized\r\n\r\n<html>".to_owned(), "another program listens at"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}".to_owned(), "another program listens at"),
            ("SSH-2.0-OpenSSH_9.2\r\n".to_owned(), "another program listens at"),
            ("HTTP/1.1 404 Not Found\r\nCache-Status: seawall; fwd=method\r\n\r\n".to_owned(), "Seawall serves visitors at"),
        ] {
            let error = answered_with(&response).0.expect_err(&response);
            assert!(error.to_string().contains(expected), "{response}: {error}");
        }
    }

    /// A server is healthy while it takes requests; one that drains is not.
    #[test]
    fn health_is_what_the_server_says() {
        let ask = |response: &str| {
            let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
            let client = AdminClient::new(listener.local_addr().expect("bound"), TOKEN).expect("a token");
            thread::scope(|scope| {
                scope.spawn(|| {
                    let (mut stream, _) = listener.accept().expect("a client");
                    let (mut request, mut byte) = (Vec::new(), [0]);
                    while !request.ends_with(b"\r\n\r\n") {
                        stream.read_exact(&mut byte).expect("a request");
                        request.push(byte[0]);
                    }
                    assert!(request.starts_with(b"GET /healthz HTTP/1.1\r\n"));
                    stream.write_all(response.as_bytes()).expect("sent");
                });
                client.is_ready()
            })
        };
        assert!(ask("HTTP/1.1 200 OK\r\n\r\n{\"status\":\"ok\"}").expect("an answer"));
        assert!(!ask("HTTP/1.1 503 Service Unavailable\r\n\r\n{\"status\":\"draining\"}").expect("an answer"));
        for stranger in ["HTTP/1.1 200 OK\r\n\r\nhello", "HTTP/1.1 503 Service Unavailable\r\n\r\n{\"status\":\"ok\"}"] {
            assert!(matches!(ask(stranger), Err(AdminError::NotSeawall(_))), "{stranger}");
        }
    }

    #[test]
    fn a_server_that_is_not_there_is_named_and_a_wrong_token_is_not_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let address = listener.local_addr().expect("bound");
        drop(listener);
        let client = AdminClient::new(address, TOKEN).expect("a token");
        let error = client.get::<serde_json::Value>("/status").expect_err("gone");
        assert!(error.to_string().contains("Is Seawall running?"), "{error}");
        assert!(matches!(AdminClient::new(address, "short"), Err(AdminError::NotAToken)));
    }

    #[test]
    fn a_listener_on_every_address_is_asked_on_this_machine() {
        for (address, expected) in [
            ("0.0.0.0:9180", "127.0.0.1:9180"),
            ("[::]:9180", "[::1]:9180"),
            ("192.0.2.1:1", "192.0.2.1:1"),
            ("[2001:db8::1]:1", "[2001:db8::1]:1"),
        ] {
            assert_eq!(reachable(address.parse().expect(address)).to_string(), expected);
        }
    }
}
