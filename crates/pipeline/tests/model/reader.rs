//! Those who read the site, and what they got.

use std::{cell::RefCell, io::Read, net::Ipv4Addr, rc::Rc, time::Instant};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use pipeline::Pipeline;
use semantics::{RequestFields, RequestHead, Scheme};

/// The field in which the tag is kept that a coded response came with.
pub(crate) const TAG_AS_SENT: &str = "tag-as-sent";

/// The wish of a request to caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    None,
    NoCache,
    OnlyIfCached,
    MaxAge(u64),
    MaxStale,
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReaderRequest {
    pub(crate) page: usize,
    pub(crate) method: Method,
    pub(crate) language: Option<u8>,
    pub(crate) user: Option<u8>,
    pub(crate) wish: Wish,
    pub(crate) range: Option<(usize, usize)>,
    /// Presents this entity tag.
    pub(crate) if_none_match: Option<String>,
}

/// The answer that it got.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) asked: ReaderRequest,
    /// Time and number of purges when it was asked.
    pub(crate) at: u64,
    pub(crate) order: u64,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) content: Bytes,
    pub(crate) broken: bool,
}

/// Asks as the edge does: for a hit first, then the long way.
pub(crate) async fn ask(pipeline: Rc<Pipeline>, asked: ReaderRequest, (at, order): (u64, u64), got: Rc<RefCell<Vec<Got>>>) {
    let headers = asked.fields();
    let uri = format!("/{}", asked.page);
    let peer = Some(Ipv4Addr::LOCALHOST.into());
    if let Some((status, mut headers, content)) = hit(&pipeline, &asked, &headers, &uri) {
        let content = decoded(&mut headers, content);
        got.borrow_mut().push(Got { asked, at, order, status, headers, content, broken: false });
        return;
    }
    let mut request = Request::new(origins::Body::Empty);
    *request.method_mut() = asked.method.clone();
    *request.uri_mut() = uri.parse().expect("a path");
    *request.headers_mut() = headers;
    let (response, _) = *pipeline.respond(pipeline.receive(peer, Scheme::Http, request, None)).await;
    let (parts, mut body) = response.into_parts();
    let mut content = BytesMut::new();
    let mut broken = false;
    while let Some(frame) = body.frame().await {
        match frame.map(http_body::Frame::into_data) {
            Ok(Ok(data)) => content.extend_from_slice(&data),
            Ok(Err(_)) => {}
            Err(_) => {
                broken = true;
                break;
            }
        }
    }
    let (status, mut headers) = (parts.status, parts.headers);
    let content = decoded(&mut headers, content.freeze());
    got.borrow_mut().push(Got { asked, at, order, status, headers, content, broken });
}

/// Returns what the judge is shown: the representation itself, whatever form of it was sent. Of content that broke off, as much as came.
fn decoded(headers: &mut HeaderMap, content: Bytes) -> Bytes {
    let tag = headers.get(header::ETAG).and_then(|tag| tag.to_str().ok()).unwrap_or_default().to_owned();
    let identity = ["-gzip\"", "-zstd\""].iter().find_map(|end| tag.strip_suffix(end)).map(|bare| format!("{bare}\""));
    let identity = identity.unwrap_or_else(|| tag.clone());
    let identity = identity.trim_start_matches("W/");
    if identity != tag {
        headers.insert(TAG_AS_SENT, tag.parse().expect("a field value"));
        headers.insert(header::ETAG, identity.parse().expect("a field value"));
    }
    let Some(coding) = headers.remove(header::CONTENT_ENCODING) else { return content };
    headers.remove(header::CONTENT_LENGTH);
    let mut decoder: Box<dyn Read + '_> = match coding.as_bytes() {
        b"gzip" => Box::new(flate2::read::GzDecoder::new(&content[..])),
        b"zstd" => Box::new(zstd::stream::read::Decoder::new(&content[..]).expect("a decoder")),
        other => panic!("a coding that was not asked for: {}", String::from_utf8_lossy(other)),
    };
    let (mut decoded, mut piece) = (BytesMut::new(), [0; 512]);
    while let Ok(length @ 1..) = decoder.read(&mut piece) {
        decoded.extend_from_slice(&piece[..length]);
    }
    decoded.freeze()
}

fn hit(pipeline: &Pipeline, asked: &ReaderRequest, headers: &HeaderMap, path: &str) -> Option<(StatusCode, HeaderMap, Bytes)> {
    if asked.method != Method::GET && asked.method != Method::HEAD {
        return None;
    }
    let fields = RequestFields::from_map(headers);
    let head = RequestHead { method: &asked.method, scheme: Scheme::Http, authority: "site.example", path, query: None, fields: &fields };
    let mut out = Vec::new();
    let hit = pipeline.hit(Some(Ipv4Addr::LOCALHOST.into()), &head, Instant::now(), &mut out)?;
    let text = String::from_utf8(out).expect("a head");
    let headers = text
        .lines()
        .skip(1)
        .map(|line| {
            let (name, value) = line.split_once(": ").expect("a field line");
            (name.parse::<header::HeaderName>().expect("a name"), value.parse().expect("a value"))
        })
        .collect();
    let content = hit.content.map(|content| Bytes::copy_from_slice(content.as_ref())).unwrap_or_default();
    Some((hit.status, headers, content))
}

impl ReaderRequest {
    fn fields(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let mut add = |name: header::HeaderName, value: String| headers.append(name, value.parse().expect("a field value"));
        add(header::HOST, "site.example".to_owned());
        if let Some(language) = self.language {
            add(header::ACCEPT_LANGUAGE, format!("l{language}"));
        }
        if let Some(user) = self.user {
            add(header::COOKIE, format!("user={user}"));
        }
        match self.wish {
            Wish::None => {}
            Wish::NoCache => drop(add(header::CACHE_CONTROL, "no-cache".to_owned())),
            Wish::OnlyIfCached => drop(add(header::CACHE_CONTROL, "only-if-cached".to_owned())),
            Wish::MaxAge(age) => drop(add(header::CACHE_CONTROL, format!("max-age={age}"))),
            Wish::MaxStale => drop(add(header::CACHE_CONTROL, "max-stale".to_owned())),
        }
        // Half of the pages are read by those who take codings.
        if self.page.is_multiple_of(2) {
            add(header::ACCEPT_ENCODING, "gzip, zstd".to_owned());
        }
        if let Some((first, last)) = self.range {
            add(header::RANGE, format!("bytes={first}-{last}"));
        }
        if let Some(tag) = &self.if_none_match {
            add(header::IF_NONE_MATCH, tag.clone());
        }
        headers
    }
}
