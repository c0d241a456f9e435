//! Readers, editors and whoever else asks: requests as they write them, and answers with what tests say about them.

use std::{
    fmt,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use super::blog::WITHOUT_SEAWALL;

/// The time that a client waits for the next byte before it calls that a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Somebody who sends the same fields and cookies with each request.
#[derive(Clone)]
pub(crate) struct Client {
    address: SocketAddr,
    host: String,
    fields: Vec<(String, String)>,
    cookies: Vec<(String, String)>,
}

impl Client {
    pub(crate) fn new(address: SocketAddr, host: &str) -> Self {
        Self { address, host: host.to_owned(), fields: Vec::new(), cookies: Vec::new() }
    }

    /// Returns the same client with one more field in each request.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Returns the same client with one more cookie in each request.
    pub(crate) fn with_cookie(mut self, name: &str, value: &str) -> Self {
        self.cookies.retain(|(known, _)| known != name);
        self.cookies.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Returns the same client after it took the cookies of an answer, as a browser does: an empty or expired one is deleted.
    pub(crate) fn after(mut self, answer: &Answer) -> Self {
        for line in answer.values("set-cookie") {
            let (pair, attributes) = line.split_once(';').unwrap_or((line, ""));
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            self.cookies.retain(|(known, _)| known != name);
            if !value.is_empty() && !attributes.contains("1970") && !attributes.to_ascii_lowercase().contains("max-age=0") {
                self.cookies.push((name.to_owned(), value.to_owned()));
            }
        }
        self
    }

    pub(crate) fn cookie_names(&self) -> Vec<&str> {
        self.cookies.iter().map(|(name, _)| name.as_str()).collect()
    }

    pub(crate) fn get(&self, target: &str) -> Answer {
        self.send("GET", target, &[])
    }

    pub(crate) fn send(&self, method: &str, target: &str, content: &[u8]) -> Answer {
        Connection::of(self).exchange(method, target, content)
    }

    pub(crate) fn send_json(&self, method: &str, target: &str, content: &serde_json::Value) -> Answer {
        self.clone().with("Content-Type", "application/json").send(method, target, content.to_string().as_bytes())
    }

    /// Sends a file in a form, as a browser does.
    pub(crate) fn upload(&self, target: &str, field: &str, file: &str, kind: &str, content: &[u8]) -> Answer {
        let boundary = "a-line-that-is-in-no-file";
        let mut form = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{field}\"; filename=\"{file}\"\r\nContent-Type: {kind}\r\n\r\n"
        )
        .into_bytes();
        form.extend_from_slice(content);
        form.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
        self.clone().with("Content-Type", &format!("multipart/form-data; boundary={boundary}")).send("POST", target, &form)
    }
}

/// One connection that stays open.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    head: String,
}

impl Connection {
    pub(crate) fn of(client: &Client) -> Self {
        let stream = TcpStream::connect(client.address).unwrap_or_else(|error| panic!("connecting to {}: {error}", client.address));
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
        stream.set_nodelay(true).expect("no delay");
        let mut head = format!("Host: {}\r\n", client.host);
        for (name, value) in &client.fields {
            head += &format!("{name}: {value}\r\n");
        }
        if !client.cookies.is_empty() {
            let cookies: Vec<_> = client.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
            head += &format!("Cookie: {}\r\n", cookies.join("; "));
        }
        Self { stream: BufReader::with_capacity(64 << 10, stream), head }
    }

    /// Sends a request and reads its whole answer.
    ///
    /// # Panics
    /// If no whole answer comes.
    pub(crate) fn exchange(&mut self, method: &str, target: &str, content: &[u8]) -> Answer {
        let length = match (method, content.len()) {
            ("GET" | "HEAD", 0) => String::new(),
            (_, length) => format!("Content-Length: {length}\r\n"),
        };
        let head = format!("{method} {target} HTTP/1.1\r\n{}{length}\r\n", self.head);
        let what = format!("{method} {target}");
        let stream = self.stream.get_mut();
        stream.write_all(head.as_bytes()).unwrap_or_else(|error| panic!("{what}: {error}"));
        // A server may answer before it has read everything, and close.
        let _ = stream.write_all(content);
        self.read(what, method == "HEAD")
    }

    fn read(&mut self, what: String, is_without_content: bool) -> Answer {
        let mut answer = loop {
            let first = self.line(&what);
            let status = first.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
            let status = status.unwrap_or_else(|| panic!("{what} is answered {first:?}"));
            let mut fields = Vec::new();
            loop {
                let line = self.line(&what);
                if line.is_empty() {
                    break;
                }
                let (name, value) = line.split_once(':').unwrap_or_else(|| panic!("{what}: the line {line:?}"));
                fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
            }
            if status >= 200 {
                break Answer { what, status, fields, content: Vec::new() };
            }
        };
        if is_without_content || matches!(answer.status, 204 | 304) {
            return answer;
        }
        if answer.value("transfer-encoding") == Some("chunked") {
            loop {
                let line = self.line(&answer.what);
                let size = usize::from_str_radix(&line, 16).unwrap_or_else(|_| panic!("{}: the chunk size {line:?}", answer.what));
                let chunk = self.take(size, &answer.what);
                answer.content.extend(chunk);
                assert_eq!(self.line(&answer.what), "", "{}: behind a chunk", answer.what);
                if size == 0 {
                    return answer;
                }
            }
        }
        match answer.value("content-length") {
            Some(length) => answer.content = self.take(length.parse().expect("a length"), &answer.what),
            None => {
                self.stream.read_to_end(&mut answer.content).unwrap_or_else(|error| panic!("{}: {error}", answer.what));
            }
        }
        answer
    }

    fn take(&mut self, length: usize, what: &str) -> Vec<u8> {
        let mut content = vec![0; length];
        self.stream.read_exact(&mut content).unwrap_or_else(|error| panic!("{what}: cut short: {error}"));
        content
    }

    fn line(&mut self, what: &str) -> String {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line).unwrap_or_else(|error| panic!("{what}: {error}"));
        let line = String::from_utf8_lossy(&line).into_owned();
        line.strip_suffix("\r\n").unwrap_or_else(|| panic!("{what}: the connection ended in a head: {line:?}")).to_owned()
    }
}

/// An answer whose content came whole. Every assertion returns the answer, so that one line says all that the client must see.
#[derive(Clone)]
pub(crate) struct Answer {
    what: String,
    pub(crate) status: u16,
    fields: Vec<(String, String)>,
    pub(crate) content: Vec<u8>,
}

impl Answer {
    /// Returns the value of a field, by its name in lower case.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.fields.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.content).into_owned()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.content).unwrap_or_else(|error| panic!("{error}\n{self}"))
    }

    pub(crate) fn contains(&self, part: &str) -> bool {
        self.text().contains(part)
    }

    /// Tells whether Seawall says that it had this stored and asked nobody.
    pub(crate) fn is_hit(&self) -> bool {
        self.value("cache-status").is_some_and(|value| value.contains("hit"))
    }

    #[track_caller]
    pub(crate) fn status(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self}");
        self
    }

    #[track_caller]
    pub(crate) fn has(self, part: &str) -> Self {
        assert!(self.contains(part), "expected {part:?} in the content of\n{self}");
        self
    }

    /// Asserts that neither the content nor any field has `part` in it.
    #[track_caller]
    pub(crate) fn lacks(self, part: &str) -> Self {
        let is_in_field = self.fields.iter().any(|(_, value)| value.contains(part));
        assert!(!self.contains(part) && !is_in_field, "expected no {part:?} in\n{self}");
        self
    }

    #[track_caller]
    pub(crate) fn without(self, name: &str) -> Self {
        assert!(self.value(name).is_none(), "expected no {name} in\n{self}");
        self
    }

    #[track_caller]
    pub(crate) fn field(self, name: &str, part: &str) -> Self {
        assert!(self.values(name).any(|value| value.contains(part)), "expected {part:?} in {name} of\n{self}");
        self
    }

    /// Asserts that Seawall had this stored and asked nobody.
    #[track_caller]
    pub(crate) fn hit(self) -> Self {
        assert!(self.is_hit() || *WITHOUT_SEAWALL, "expected a hit\n{self}");
        self
    }

    /// Asserts that what Ghost says to a cache has ended at the cache.
    #[track_caller]
    pub(crate) fn without_signal(self) -> Self {
        if *WITHOUT_SEAWALL { self } else { self.without("x-cache-invalidate") }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.what, self.status)?;
        for (name, value) in &self.fields {
            writeln!(f, "{name}: {value}")?;
        }
        let text = self.text();
        let end = text.char_indices().nth(1500).map_or(text.len(), |(at, _)| at);
        write!(f, "\n{}", &text[..end])
    }
}
