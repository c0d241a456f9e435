//! A small client for what is asked before a run: sitemaps, and tokens that permit one.
//!
//! It speaks HTTP/1.1 over one connection for each request, blocks, and follows no redirect. It is given addresses and resolves no name, so that nothing
//! is connected to that was not permitted before.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    os::unix::net::UnixStream,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use rustls::{ClientConfig, ClientConnection, StreamOwned};
use rustls_pki_types::ServerName;

use crate::{
    engine::{http1::chunked::Chunks, tls},
    plan::Connections,
    requests::Origin,
};

/// The time that a request may take, with its connection.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The longest head of an answer.
const HEAD_MAX: usize = 64 << 10;

/// The most fields of an answer.
const FIELDS_MAX: usize = 128;

/// Asks servers for what a run needs before it begins.
#[derive(Debug)]
pub struct Fetcher {
    unix: Option<PathBuf>,
    connections: Connections,
    tls: std::sync::OnceLock<Arc<ClientConfig>>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The status.
    pub status: u16,
    /// The fields, names in lower case.
    pub fields: Vec<(String, Vec<u8>)>,
    /// The content, with its content coding.
    pub body: Vec<u8>,
}

impl Fetched {
    /// Returns the first value of a field whose name is given in lower case.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        self.fields.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_slice())
    }
}

/// The reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// There is no address.
    #[error("the server has no address")]
    NoAddress,
    /// No address could be connected to.
    #[error("cannot connect")]
    Connect(#[source] io::Error),
    /// TLS failed.
    #[error("no TLS")]
    Tls(#[source] io::Error),
    /// TLS cannot be spoken at all.
    #[error(transparent)]
    NoTls(#[from] tls::TlsError),
    /// The connection broke or took too long.
    #[error("no whole answer")]
    Broken(#[source] io::Error),
    /// What came is not HTTP.
    #[error("the answer is not HTTP/1.1")]
    Protocol,
    /// The answer is larger than it may be.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
}

impl Fetcher {
    /// Makes a client that connects as a run does.
    #[must_use]
    pub fn new(connections: &Connections) -> Self {
        Self { unix: connections.unix.clone(), connections: connections.clone(), tls: std::sync::OnceLock::new() }
    }

    /// Asks for a target with GET, at the first of the addresses that can be connected to.
    ///
    /// # Errors
    /// When no whole answer of at most `most` bytes comes within 30 seconds.
    pub fn get(&self, origin: &Origin, addresses: &[SocketAddr], target: &str, most: usize) -> Result<Fetched, FetchError> {
        let deadline = Instant::now() + TIMEOUT;
        let socket = match &self.unix {
            Some(path) => Socket::Unix(UnixStream::connect(path).map_err(FetchError::Connect)?),
            None => Socket::Tcp(connect(addresses)?),
        };
        if !origin.tls {
            return exchange(Timed { socket, deadline }, origin, target, most);
        }
        let config = match self.tls.get() {
            Some(config) => Arc::clone(config),
            None => Arc::clone(self.tls.get_or_init({
                let config = Arc::new(tls::config(&self.connections, false)?);
                || config
            })),
        };
        let name = ServerName::try_from(origin.host.clone()).map_err(|_| tls::TlsError::Host(origin.host.clone()))?;
        let tls_error = |error: rustls::Error| FetchError::Tls(io::Error::other(error));
        let connection = ClientConnection::new(config, name).map_err(tls_error)?;
        let mut stream = StreamOwned::new(connection, Timed { socket, deadline });
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock).map_err(FetchError::Tls)?;
        }
        exchange(stream, origin, target, most)
    }
}

/// Connects to the first address that can be connected to.
fn connect(addresses: &[SocketAddr]) -> Result<TcpStream, FetchError> {
    let mut failed = None;
    for address in addresses {
        match TcpStream::connect_timeout(address, TIMEOUT / 3) {
            Ok(socket) => return Ok(socket),
            Err(error) => failed = Some(error),
        }
    }
    Err(failed.map_or(FetchError::NoAddress, FetchError::Connect))
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A socket whose every wait ends at a moment.
#[derive(Debug)]
struct Timed {
    socket: Socket,
    deadline: Instant,
}

impl Timed {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(too_late()) } else { Ok(Some(left)) }
    }
}

fn too_late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("it took longer than {} s", TIMEOUT.as_secs()))
}

/// Says that a wait has ended, which the system calls by another name.
fn in_time<T>(result: io::Result<T>) -> io::Result<T> {
    result.map_err(|error| if error.kind() == io::ErrorKind::WouldBlock { too_late() } else { error })
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left()?;
        in_time(match &mut self.socket {
            Socket::Tcp(socket) => socket.set_read_timeout(left).and_then(|()| socket.read(buffer)),
            Socket::Unix(socket) => socket.set_read_timeout(left).and_then(|()| socket.read(buffer)),
        })
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.left()?;
        in_time(match &mut self.socket {
            Socket::Tcp(socket) => socket.set_write_timeout(left).and_then(|()| socket.write(bytes)),
            Socket::Unix(socket) => socket.set_write_timeout(left).and_then(|()| socket.write(bytes)),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn exchange(mut stream: impl Read + Write, origin: &Origin, target: &str, most: usize) -> Result<Fetched, FetchError> {
    let version = env!("CARGO_PKG_VERSION");
    let request = format!(
        "GET {target} HTTP/1.1\r\nHost: {}\r\nUser-Agent: seawall-bench/{version}\r\nAccept: */*\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n",
        origin.authority()
    );
    stream.write_all(request.as_bytes()).and_then(|()| stream.flush()).map_err(FetchError::Broken)?;
    let (mut scratch, mut buffer) = (vec![0; 16 << 10], Vec::new());
    let (mut interim, mut is_line) = (0, false);
    let (status, fields, begin) = loop {
        // A head has few lines, and is looked at once for each.
        match if is_line { head(&buffer)? } else { None } {
            // What comes before the answer is passed over (RFC 9110 §15.2).
            Some((status, _, length)) if (100..200).contains(&status) && status != 101 => {
                buffer.drain(..length);
                interim += length;
                if interim > HEAD_MAX {
                    return Err(FetchError::Protocol);
                }
                continue;
            }
            Some(answer) => break answer,
            None => {}
        }
        if buffer.len() > HEAD_MAX {
            return Err(FetchError::Protocol);
        }
        let before = buffer.len();
        if more(&mut stream, &mut scratch, &mut buffer)? == 0 {
            return Err(FetchError::Broken(io::ErrorKind::UnexpectedEof.into()));
        }
        // An answer that is not HTTP is known by how it begins.
        is_line = before == 0 || buffer[before..].contains(&b'\n');
    };
    let mut body = buffer.split_off(begin);
    let fetched = Fetched { status, fields, body: Vec::new() };
    let is = |name: &str, value: &[u8]| fetched.field(name).is_some_and(|said| said.trim_ascii().eq_ignore_ascii_case(value));
    let chunked = is("transfer-encoding", b"chunked");
    let length = fetched
        .field("content-length")
        .map(|length| std::str::from_utf8(length).ok().and_then(|length| length.trim().parse::<usize>().ok()));
    let length = match (chunked, length) {
        _ if matches!(status, 204 | 304) => Some(0),
        (true, _) => None,
        (false, Some(None)) => return Err(FetchError::Protocol),
        (false, length) => length.flatten(),
    };
    if length.is_some_and(|length| length > most) {
        return Err(FetchError::TooLarge(most));
    }
    if chunked {
        return Ok(Fetched { body: content_of_chunks(&mut stream, &mut scratch, body, most)?, ..fetched });
    }
    loop {
        if let Some(length) = length.filter(|length| body.len() >= *length) {
            body.truncate(length);
            break;
        }
        if body.len() > most {
            return Err(FetchError::TooLarge(most));
        }
        if more(&mut stream, &mut scratch, &mut body)? == 0 {
            match length {
                None => break,
                Some(_) => return Err(FetchError::Broken(io::ErrorKind::UnexpectedEof.into())),
            }
        }
    }
    if body.len() > most {
        return Err(FetchError::TooLarge(most));
    }
    Ok(Fetched { body, ..fetched })
}

/// Reads a content in chunks, of which `piece` is the beginning. Each byte is looked at once.
fn content_of_chunks(stream: &mut impl Read, scratch: &mut [u8], mut piece: Vec<u8>, most: usize) -> Result<Vec<u8>, FetchError> {
    let (mut chunks, mut content) = (Chunks::new(), Vec::new());
    loop {
        let (_, ended) = chunks.read(&piece, |data| content.extend_from_slice(data)).map_err(|_| FetchError::Protocol)?;
        if content.len() > most {
            return Err(FetchError::TooLarge(most));
        }
        if ended {
            return Ok(content);
        }
        piece.clear();
        if more(stream, scratch, &mut piece)? == 0 {
            return Err(FetchError::Broken(io::ErrorKind::UnexpectedEof.into()));
        }
    }
}

/// Reads what is there, by way of `scratch`, and adds it to `buffer`.
fn more(stream: &mut impl Read, scratch: &mut [u8], buffer: &mut Vec<u8>) -> Result<usize, FetchError> {
    loop {
        match stream.read(scratch) {
            Ok(count) => {
                buffer.extend_from_slice(&scratch[..count]);
                return Ok(count);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(FetchError::Broken(error)),
        }
    }
}

type Head = (u16, Vec<(String, Vec<u8>)>, usize);

fn head(bytes: &[u8]) -> Result<Option<Head>, FetchError> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut head = httparse::Response::new(&mut fields);
    match head.parse(bytes) {
        Ok(httparse::Status::Partial) => Ok(None),
        Ok(httparse::Status::Complete(length)) => {
            let fields = head.headers.iter().map(|field| (field.name.to_ascii_lowercase(), field.value.to_vec())).collect();
            let status = head.code.filter(|status| *status >= 100).ok_or(FetchError::Protocol)?;
            Ok(Some((status, fields, length)))
        }
        Err(_) => Err(FetchError::Protocol),
    }
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, thread};

    use super::*;

    /// Returns what the client makes of an answer.
    fn fetch(answer: &'static [u8], most: usize) -> Result<(u16, String), String> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let server = thread::spawn(move || {
            let (mut socket, _) = listener.accept().expect("a client");
            let mut request = [0; 1024];
            let read = socket.read(&mut request).expect("a request");
            let _ = socket.write_all(answer);
            String::from_utf8_lossy(&request[..read]).into_owned()
        });
        let origin = Origin { tls: false, host: "blog.example".to_owned(), port: 80 };
        let fetched = Fetcher::new(&Connections::default()).get(&origin, &[address], "/x", most);
        let request = server.join().expect("no panic");
        assert!(request.starts_with("GET /x HTTP/1.1\r\nHost: blog.example\r\n"), "{request}");
        fetched.map(|fetched| (fetched.status, String::from_utf8_lossy(&fetched.body).into_owned())).map_err(|error| error.to_string())
    }

    #[test]
    fn contents_come_with_a_length_in_chunks_or_until_the_end() {
        let hello = Ok((200, "hello".to_owned()));
        assert_eq!(fetch(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello!", 9), hello);
        assert_eq!(fetch(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n", 9), hello);
        assert_eq!(fetch(b"HTTP/1.1 200 OK\r\n\r\nhello", 9), hello);
        assert_eq!(fetch(b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 9), hello);
        assert_eq!(fetch(b"HTTP/1.1 301 Moved\r\nLocation: /y\r\nContent-Length: 0\r\n\r\n", 9), Ok((301, String::new())));
    }

    #[test]
    fn what_is_too_large_cut_or_no_http_is_an_error() {
        let error = |answer, most| fetch(answer, most).expect_err("an error");
        assert_eq!(error(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 4), "the answer is larger than 4 bytes");
        assert_eq!(error(b"HTTP/1.1 200 OK\r\n\r\nhello", 4), "the answer is larger than 4 bytes");
        assert_eq!(error(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", 9), "no whole answer");
        assert_eq!(error(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n", 9), "no whole answer");
        assert_eq!(error(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", 9), "the answer is not HTTP/1.1");
        assert_eq!(error(b"SSH-2.0-OpenSSH\r\n\r\n", 9), "the answer is not HTTP/1.1");
        assert_eq!(error(b"", 9), "no whole answer");
    }

    /// A server whose answer comes in pieces of a size, and who counts what is read.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(buffer.len());
            self.0.take(length as u64).read(buffer).inspect(|read| self.0 = &self.0[*read..])
        }
    }

    impl Write for Pieces<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn in_pieces(answer: &[u8], size: usize, most: usize) -> Result<(u16, usize), String> {
        let origin = Origin { tls: false, host: "h".to_owned(), port: 80 };
        exchange(Pieces(answer, size), &origin, "/", most).map(|got| (got.status, got.body.len())).map_err(|error| error.to_string())
    }

    /// In quadratic time, this takes minutes.
    #[test]
    fn the_time_for_an_answer_grows_with_its_length_however_it_is_cut() {
        const MOST: usize = 1 << 18;
        let chunks = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n", "1\r\nx\r\n".repeat(MOST));
        assert_eq!(in_pieces(chunks.as_bytes(), 6, MOST), Ok((200, MOST)));
        assert_eq!(in_pieces(chunks.as_bytes(), 1, MOST - 1), Err(format!("the answer is larger than {} bytes", MOST - 1)));
        let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\nContent-Length: 1\r\n\r\nx", "x".repeat(60_000));
        assert_eq!(in_pieces(long.as_bytes(), 1, 9), Ok((200, 1)));
        let hints = format!("{}HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", "HTTP/1.1 103 E\r\n\r\n".repeat(1000));
        assert_eq!(in_pieces(hints.as_bytes(), 16 << 10, 9), Ok((200, 1)));
        let endless = "HTTP/1.1 103 E\r\n\r\n".repeat(1 << 16);
        assert_eq!(in_pieces(endless.as_bytes(), 16 << 10, 9), Err("the answer is not HTTP/1.1".to_owned()));
    }

    #[test]
    fn a_status_below_100_is_no_http() {
        for status in ["000", "001", "099"] {
            let answer = format!("HTTP/1.1 {status} OK\r\nContent-Length: 0\r\n\r\n");
            assert_eq!(in_pieces(answer.as_bytes(), 999, 9), Err("the answer is not HTTP/1.1".to_owned()), "{status}");
        }
    }

    #[test]
    fn a_wait_that_ends_says_so() {
        let (socket, _peer) = UnixStream::pair().expect("two sockets");
        let mut timed = Timed { socket: Socket::Unix(socket), deadline: Instant::now() + Duration::from_millis(5) };
        let mut buffer = [0; 8];
        for _ in 0..2 {
            assert_eq!(timed.read(&mut buffer).expect_err("nobody writes").to_string(), "it took longer than 30 s");
        }
    }
}
