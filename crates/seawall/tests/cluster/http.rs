//! A client of its own, which shares nothing with what it judges: HTTP/1.1, one request at a time, connections kept.

use std::{
    io::{Error, ErrorKind, Read as _, Result, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::Duration,
};

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) content: Vec<u8>,
}

impl Answer {
    /// Returns the value of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        field(&self.head, name)
    }

    /// Returns the content as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.content).into_owned()
    }
}

/// Returns the value of a field of a head.
pub(crate) fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (own, value) = line.split_once(':')?;
        own.eq_ignore_ascii_case(name).then_some(value.trim())
    })
}

/// Whoever asks one server, again and again.
#[derive(Debug)]
pub(crate) struct Client {
    address: SocketAddr,
    patience: Duration,
    connection: Option<(TcpStream, Vec<u8>)>,
}

impl Client {
    /// Comes to a server, at the first request.
    pub(crate) fn of(address: Ipv4Addr, port: u16, patience: Duration) -> Self {
        Self { address: (address, port).into(), patience, connection: None }
    }

    /// Sends a request. One that may be sent twice is sent again if the connection, kept since the last one, is gone.
    pub(crate) fn ask(&mut self, request: &str) -> Result<Answer> {
        let kept = self.connection.is_some();
        match self.try_to_ask(request) {
            Err(error) if kept && may_come_twice(request) && is_gone(&error) => self.try_to_ask(request),
            done => done,
        }
    }

    /// Comes to the server, and asks nothing yet.
    pub(crate) fn connect(&mut self) -> Result<()> {
        let stream = TcpStream::connect_timeout(&self.address, self.patience)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(self.patience))?;
        stream.set_write_timeout(Some(self.patience))?;
        self.connection = Some((stream, Vec::new()));
        Ok(())
    }

    /// Sends a request whose answer is read later, on the connection that there is.
    pub(crate) fn say(&mut self, request: &str) -> Result<()> {
        let (stream, _) = self.connection.as_mut().ok_or(ErrorKind::NotConnected)?;
        stream.write_all(request.as_bytes())
    }

    /// Reads the answer to what was said.
    pub(crate) fn hear(&mut self) -> Result<Answer> {
        let (stream, bytes) = self.connection.as_mut().ok_or(ErrorKind::NotConnected)?;
        read_answer(stream, bytes, false)
    }

    fn try_to_ask(&mut self, request: &str) -> Result<Answer> {
        if self.connection.is_none() {
            self.connect()?;
        }
        let (mut stream, mut bytes) = self.connection.take().ok_or(ErrorKind::NotConnected)?;
        stream.write_all(request.as_bytes())?;
        let answer = read_answer(&mut stream, &mut bytes, request.starts_with("HEAD "))?;
        if !answer.field("connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
            self.connection = Some((stream, bytes));
        }
        Ok(answer)
    }
}

/// Returns whether a request changes nothing if it is sent again: a page is read, or purged.
fn may_come_twice(request: &str) -> bool {
    ["GET ", "PURGE ", "POST /purge "].iter().any(|start| request.starts_with(start))
}

/// Returns whether the server closed a connection on which nothing was asked yet.
fn is_gone(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

/// Reads a head, up to its empty line; `None` at the end of the connection.
pub(crate) fn read_head(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Result<Option<String>> {
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end + 2]).into_owned();
            bytes.drain(..end + 4);
            return Ok(Some(head));
        }
        if more(stream, bytes)? == 0 {
            return if bytes.is_empty() { Ok(None) } else { Err(ErrorKind::UnexpectedEof.into()) };
        }
    }
}

/// Reads exactly so many bytes of content.
pub(crate) fn read_exactly(stream: &mut TcpStream, bytes: &mut Vec<u8>, length: usize) -> Result<Vec<u8>> {
    while bytes.len() < length {
        if more(stream, bytes)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(bytes.drain(..length).collect())
}

fn more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Result<usize> {
    let mut read = [0; 16 << 10];
    let n = stream.read(&mut read)?;
    bytes.extend_from_slice(&read[..n]);
    Ok(n)
}

fn read_answer(stream: &mut TcpStream, bytes: &mut Vec<u8>, is_head: bool) -> Result<Answer> {
    loop {
        let head = read_head(stream, bytes)?.ok_or(ErrorKind::UnexpectedEof)?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or(ErrorKind::InvalidData)?;
        if (100..200).contains(&status) {
            continue;
        }
        let content = if is_head || status == 204 || status == 304 {
            Vec::new()
        } else if field(&head, "transfer-encoding").is_some() {
            read_chunks(stream, bytes)?
        } else if let Some(length) = field(&head, "content-length") {
            read_exactly(stream, bytes, length.parse().map_err(|_| ErrorKind::InvalidData)?)?
        } else {
            while more(stream, bytes)? > 0 {}
            std::mem::take(bytes)
        };
        return Ok(Answer { status, head, content });
    }
}

fn read_chunks(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    loop {
        let end = loop {
            match bytes.windows(2).position(|two| two == b"\r\n") {
                Some(end) => break end,
                None if more(stream, bytes)? == 0 => return Err(ErrorKind::UnexpectedEof.into()),
                None => {}
            }
        };
        let line: Vec<u8> = bytes.drain(..end + 2).collect();
        let size = usize::from_str_radix(String::from_utf8_lossy(&line).trim(), 16).map_err(|_| ErrorKind::InvalidData)?;
        content.extend(read_exactly(stream, bytes, size)?);
        read_exactly(stream, bytes, 2)?;
        if size == 0 {
            return Ok(content);
        }
    }
}
