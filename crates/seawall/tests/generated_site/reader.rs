//! A reader: one connection that stays open, and strict about what comes over it.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use flate2::read::GzDecoder;

/// The time that a reader waits for the next byte before it calls that a failure.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Reader {
    stream: BufReader<TcpStream>,
}

/// An answer whose content came whole.
pub(crate) struct Answer {
    pub(crate) status: u16,
    fields: Vec<(String, String)>,
    pub(crate) content: Vec<u8>,
}

impl Answer {
    /// Returns the value of a field, by its name in lower case.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the answer with its content as it was before it was coded, if it was: with gzip, or this panics.
    pub(crate) fn decoded(mut self) -> Self {
        if let Some(coding) = self.value("content-encoding") {
            assert_eq!(coding, "gzip");
            let mut content = Vec::new();
            GzDecoder::new(&self.content[..]).read_to_end(&mut content).expect("gzip");
            self.content = content;
        }
        self
    }
}

impl Reader {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
        stream.set_nodelay(true).expect("no delay");
        Self { stream: BufReader::with_capacity(64 << 10, stream) }
    }

    /// Sends a GET of a path, with further field lines that each end with CRLF.
    ///
    /// # Panics
    /// If no whole answer comes.
    pub(crate) fn get(&mut self, path: &str, fields: &str) -> Answer {
        self.send(path, fields);
        let mut answer = self.head(path);
        if answer.value("transfer-encoding") == Some("chunked") {
            answer.content = self.chunks(path);
        } else {
            let length = self.length(&answer, path);
            answer.content = self.take(length, path);
        }
        answer
    }

    pub(crate) fn send(&mut self, path: &str, fields: &str) {
        let request = format!("GET {path} HTTP/1.1\r\nHost: site.example\r\n{fields}\r\n");
        self.stream.get_mut().write_all(request.as_bytes()).unwrap_or_else(|error| panic!("GET {path}: {error}"));
    }

    pub(crate) fn head(&mut self, path: &str) -> Answer {
        let first = self.line(path);
        let status = first.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        let status = status.unwrap_or_else(|| panic!("GET {path} is answered {first:?}"));
        let mut fields = Vec::new();
        loop {
            let line = self.line(path);
            if line.is_empty() {
                return Answer { status, fields, content: Vec::new() };
            }
            let (name, value) = line.split_once(':').unwrap_or_else(|| panic!("GET {path}: the line {line:?}"));
            fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    /// Returns how long the content is, of what is not coded on its way.
    pub(crate) fn length(&self, answer: &Answer, path: &str) -> usize {
        if answer.status == 304 {
            return 0;
        }
        let length = answer.value("content-length").and_then(|value| value.parse().ok());
        length.unwrap_or_else(|| panic!("GET {path}: an answer without a length: {:?}", answer.fields))
    }

    pub(crate) fn take(&mut self, length: usize, path: &str) -> Vec<u8> {
        let mut content = vec![0; length];
        self.stream.read_exact(&mut content).unwrap_or_else(|error| panic!("GET {path}: cut short: {error}"));
        content
    }

    fn chunks(&mut self, path: &str) -> Vec<u8> {
        let mut content = Vec::new();
        loop {
            let size = self.line(path);
            let size = usize::from_str_radix(&size, 16).unwrap_or_else(|_| panic!("GET {path}: the chunk size {size:?}"));
            content.extend(self.take(size, path));
            assert_eq!(self.line(path), "", "GET {path}: behind a chunk");
            if size == 0 {
                return content;
            }
        }
    }

    fn line(&mut self, path: &str) -> String {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line).unwrap_or_else(|error| panic!("GET {path}: {error}"));
        let line = String::from_utf8(line).expect("a head in ASCII");
        line.strip_suffix("\r\n").unwrap_or_else(|| panic!("GET {path}: the connection ended in a head: {line:?}")).to_owned()
    }
}
