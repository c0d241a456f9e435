//! A small site that remembers what it was asked.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use flate2::{Compression, write::GzEncoder};

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) connection: usize,
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) accept: String,
    pub(crate) cookie: Option<String>,
    pub(crate) is_conditional: bool,
}

/// The server. Its threads end with the test.
#[derive(Debug)]
pub(crate) struct Site {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

const PAGE: &str = "<!doctype html><html><head><link rel=canonical href='https://blog.example/post'><link rel=stylesheet href=/style.css>
    <link rel=icon href=icon.png><script src=/script.js></script></head><body><img src='https://blog.example/header.png'>
    <img src=small.png srcset='small.png 300w, /large.png 1200w' sizes=1000px><img src=lazy.png loading=lazy>
    <img src='https://elsewhere.example/x.png'></body></html>";

impl Site {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let of_server = Arc::clone(&seen);
        thread::spawn(move || {
            for (connection, socket) in listener.incoming().enumerate() {
                let (socket, seen) = (socket.expect("a connection"), Arc::clone(&of_server));
                thread::spawn(move || serve(&socket, connection, &seen));
            }
        });
        Self { address, seen }
    }

    pub(crate) fn url(&self, target: &str) -> String {
        format!("http://{}{target}", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn serve(socket: &TcpStream, connection: usize, all: &Mutex<Vec<Seen>>) {
    let mut lines = BufReader::new(socket).lines();
    while let Some(Ok(first)) = lines.next() {
        let mut words = first.split(' ').map(str::to_owned);
        let mut seen = Seen {
            connection,
            method: words.next().unwrap_or_default(),
            target: words.next().unwrap_or_default(),
            accept: String::new(),
            cookie: None,
            is_conditional: false,
        };
        let (mut takes_gzip, mut closes) = (false, false);
        while let Some(Ok(line)) = lines.next()
            && !line.is_empty()
        {
            let (name, value) = line.split_once(": ").unwrap_or((&line, ""));
            match name.to_ascii_lowercase().as_str() {
                "accept" => value.clone_into(&mut seen.accept),
                "cookie" => seen.cookie = Some(value.to_owned()),
                "if-none-match" => seen.is_conditional = true,
                "accept-encoding" => takes_gzip = value.contains("gzip"),
                "connection" => closes = value == "close",
                _ => {}
            }
        }
        let answer = answer(&seen, takes_gzip);
        all.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
        if (&*socket).write_all(&answer).is_err() || closes {
            return;
        }
    }
}

/// Returns an answer. The page comes in chunks, and compressed to who takes that.
fn answer(seen: &Seen, takes_gzip: bool) -> Vec<u8> {
    let zip = |text: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).and_then(|()| encoder.finish()).expect("a vector takes all")
    };
    let cookie = format!("Set-Cookie: visitor={}; Path=/\r\n", seen.connection);
    let map = |urls: &str| format!("<urlset>{urls}</urlset>").into_bytes();
    let (fields, content): (&str, Vec<u8>) = match seen.target.as_str() {
        "/post" => ("Cache-Control: no-cache\r\nETag: \"post\"\r\n", PAGE.as_bytes().to_vec()),
        "/style.css" => ("Cache-Control: max-age=3600\r\n", b"@font-face{src:url(font.woff2) format('woff2')}".to_vec()),
        "/script.js" | "/font.woff2" => ("Cache-Control: max-age=3600, immutable\r\n", b"x".to_vec()),
        "/cookie" => (&cookie, b"hello".to_vec()),
        "/sitemap.xml" => ("", b"<sitemapindex><sitemap><loc>https://blog.example/posts.xml.gz</loc></sitemap></sitemapindex>".to_vec()),
        "/posts.xml.gz" => {
            ("", zip(&map("<url><loc>https://blog.example/post</loc></url><url><loc>https://blog.example/other?a=1&amp;b=2</loc></url>")))
        }
        _ => ("ETag: \"x\"\r\n", b"x".to_vec()),
    };
    if seen.is_conditional {
        return format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n").into_bytes();
    }
    let (coding, content) =
        if takes_gzip && seen.target == "/post" { ("Content-Encoding: gzip\r\n", zip(&content)) } else { ("", content) };
    if seen.method == "HEAD" {
        return format!("HTTP/1.1 200 OK\r\n{fields}{coding}Content-Length: {}\r\n\r\n", content.len()).into_bytes();
    }
    let mut answer = format!("HTTP/1.1 200 OK\r\n{fields}{coding}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
    for chunk in content.chunks(100) {
        answer.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        answer.extend_from_slice(chunk);
        answer.extend_from_slice(b"\r\n");
    }
    answer.extend_from_slice(b"0\r\n\r\n");
    answer
}
