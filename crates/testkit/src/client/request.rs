//! A request to send, well-formed unless the test says otherwise.

/// A request for [`Client::request`](super::Client::request). Nothing is checked: a method may have a space, a value a line end.
#[derive(Clone, Debug)]
#[must_use = "a request does nothing until a client sends it"]
pub struct Req {
    method: String,
    target: String,
    version: String,
    fields: Vec<(String, Vec<u8>)>,
    host: bool,
    body: Body,
}

#[derive(Clone, Debug)]
enum Body {
    None,
    Sized(Vec<u8>),
    Chunks(Vec<Vec<u8>>),
}

impl Req {
    /// Creates a GET.
    pub fn get(target: &str) -> Self {
        Self::new("GET", target)
    }

    /// Creates a HEAD.
    pub fn head(target: &str) -> Self {
        Self::new("HEAD", target)
    }

    /// Creates a POST, without content until [`body`](Self::body) or [`chunks`](Self::chunks) gives it some.
    pub fn post(target: &str) -> Self {
        Self::new("POST", target)
    }

    /// Creates a request with any method.
    pub fn new(method: &str, target: &str) -> Self {
        let (method, target, version) = (method.to_owned(), target.to_owned(), "HTTP/1.1".to_owned());
        Self { method, target, version, fields: Vec::new(), host: true, body: Body::None }
    }

    /// Adds a field line; the value may be any bytes. A `Host` given here replaces the client's.
    pub fn field(mut self, name: &str, value: impl Into<Vec<u8>>) -> Self {
        self.host &= !name.eq_ignore_ascii_case("host");
        self.fields.push((name.to_owned(), value.into()));
        self
    }

    /// Leaves `Host` out.
    pub const fn no_host(mut self) -> Self {
        self.host = false;
        self
    }

    /// Sends another version than `HTTP/1.1`.
    pub fn version(mut self, version: &str) -> Self {
        version.clone_into(&mut self.version);
        self
    }

    /// Adds content, with a `Content-Length`.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Body::Sized(body.into());
        self
    }

    /// Adds chunked content, one chunk for each of these.
    pub fn chunks<B: Into<Vec<u8>>>(mut self, chunks: impl IntoIterator<Item = B>) -> Self {
        self.body = Body::Chunks(chunks.into_iter().map(Into::into).collect());
        self
    }

    /// Returns the request as bytes, for tests that send it in parts or several at once.
    #[must_use]
    pub fn to_bytes(&self, host: &str) -> Vec<u8> {
        let mut bytes = format!("{} {} {}\r\n", self.method, self.target, self.version).into_bytes();
        if self.host {
            bytes.extend_from_slice(format!("Host: {host}\r\n").as_bytes());
        }
        for (name, value) in &self.fields {
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value);
            bytes.extend_from_slice(b"\r\n");
        }
        match &self.body {
            Body::None => bytes.extend_from_slice(b"\r\n"),
            Body::Sized(body) => {
                bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
                bytes.extend_from_slice(body);
            }
            Body::Chunks(chunks) => {
                bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
                for chunk in chunks {
                    bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                    bytes.extend_from_slice(chunk);
                    bytes.extend_from_slice(b"\r\n");
                }
                bytes.extend_from_slice(b"0\r\n\r\n");
            }
        }
        bytes
    }

    pub(super) fn into_method(self) -> String {
        self.method
    }
}
