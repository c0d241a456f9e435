//! A bucket that is scripted answer by answer, while time is simulated.

use std::{
    collections::VecDeque,
    convert::Infallible,
    future::{Future, pending},
    pin::Pin,
    task::{Context, Poll},
};

use http::{
    HeaderValue, Response, StatusCode,
    header::{CONTENT_LENGTH, ETAG},
};
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use object_store::client::{HttpClient, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService};
use tokio::time::Instant as SimulatedInstant;

use super::*;

const READ: Duration = Duration::from_millis(50);

/// An answer of the bucket.
#[derive(Debug, Clone)]
enum Say {
    /// None, for ever.
    Nothing,
    /// The head of an object of this length, and nothing more.
    HeadAlone(usize),
    /// The head of an object of this length, whose content nobody must read.
    Untouched(usize),
    /// An object.
    Object(Vec<u8>),
    /// A refusal with a document.
    Refusal(u16, &'static str),
    /// No connection.
    Unreachable,
}

/// Answers in turn; the last answer is repeated. What was asked is noted.
#[derive(Debug, Clone)]
struct Script {
    answers: Arc<Mutex<VecDeque<Say>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Script {
    fn new(answers: &[Say]) -> Self {
        Self { answers: Arc::new(Mutex::new(answers.iter().cloned().collect())), asked: Arc::default() }
    }

    fn bucket(&self) -> Bucket {
        Bucket::over(&options(), self.clone(), &Handle::current()).expect("options")
    }

    fn asked(&self) -> usize {
        self.asked.lock().len()
    }
}

impl HttpConnector for Script {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

impl HttpService for Script {
    fn call<'a, 'f>(&'a self, request: HttpRequest) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'f>>
    where
        'a: 'f,
        Self: 'f,
    {
        self.asked.lock().push(format!("{} {}", request.method(), request.uri()));
        let mut answers = self.answers.lock();
        let say = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() }.expect("an answer");
        drop(answers);
        Box::pin(async move {
            let head = |length: usize, body: HttpResponseBody| {
                let mut response = Response::new(body);
                response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
                response.headers_mut().insert(ETAG, HeaderValue::from_static("\"tag\""));
                response
            };
            Ok(match say {
                Say::Nothing => pending().await,
                Say::HeadAlone(length) => head(length, HttpResponseBody::new(Never.map_err(|never| match never {}))),
                Say::Untouched(length) => head(length, HttpResponseBody::new(Unread.map_err(|never| match never {}))),
                Say::Object(content) => head(content.len(), Bytes::from(content).into()),
                Say::Refusal(status, document) => {
                    let mut response = head(document.len(), Bytes::from_static(document.as_bytes()).into());
                    *response.status_mut() = StatusCode::from_u16(status).expect("a status");
                    response
                }
                Say::Unreachable => return Err(HttpError::new(HttpErrorKind::Connect, std::io::Error::other("connection refused"))),
            })
        })
    }
}

/// Content that does not come.
struct Never;

impl Body for Never {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

/// Content that must not be read.
struct Unread;

impl Body for Unread {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        panic!("it is read")
    }
}

fn options() -> BucketOptions {
    BucketOptions {
        name: "pages".to_owned(),
        prefix: "seawall/a".to_owned(),
        endpoint: Some("http://10.0.0.9:9000".to_owned()),
        region: "us-east-1".to_owned(),
        key_id: "key".to_owned(),
        secret_key: "hush".to_owned(),
        token: None,
        authorities: None,
    }
}

/// Reads an object of six bytes with the deadline of a reader.
async fn get(bucket: &Bucket) -> Result<Got, BucketError> {
    bucket.get("id", 6, SimulatedInstant::now() + READ, READ).await
}

/// Whatever the bucket does not do, the origin is asked 50 ms later: never sooner by chance, never later, and the bucket is asked once.
#[tokio::test(start_paused = true)]
async fn a_read_ends_at_its_deadline() {
    for say in [Say::Nothing, Say::HeadAlone(6)] {
        let script = Script::new(std::slice::from_ref(&say));
        let (bucket, begun) = (script.bucket(), SimulatedInstant::now());
        assert_eq!(get(&bucket).await, Err(BucketError::TooLate { what: "read", after: READ }), "{say:?}");
        assert_eq!((begun.elapsed(), script.asked()), (READ, 1), "{say:?}");
    }
}

/// The library would try ten times in three minutes.
#[tokio::test(start_paused = true)]
async fn nothing_is_tried_again() {
    for say in [Say::Refusal(500, ""), Say::Refusal(503, "<Error><Code>SlowDown</Code></Error>"), Say::Unreachable] {
        let script = Script::new(std::slice::from_ref(&say));
        let (bucket, begun) = (script.bucket(), SimulatedInstant::now());
        assert!(get(&bucket).await.is_err(), "{say:?}");
        assert!(bucket.put("id", Bytes::from_static(b"sealed")).await.is_err(), "{say:?}");
        assert_eq!((begun.elapsed(), script.asked()), (Duration::ZERO, 2), "{say:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_is_read_if_it_has_the_length_that_it_should_have() {
    let gigabyte = 1 << 30;
    for (say, expected) in [
        (Say::Object(b"sealed".to_vec()), Got::Object(Bytes::from_static(b"sealed"))),
        (Say::Untouched(5), Got::Another),
        (Say::Untouched(7), Got::Another),
        (Say::Untouched(gigabyte), Got::Another),
        (Say::Refusal(404, "<Error><Code>NoSuchKey</Code></Error>"), Got::Nothing),
        (Say::Refusal(404, ""), Got::Nothing),
    ] {
        let script = Script::new(std::slice::from_ref(&say));
        assert_eq!(get(&script.bucket()).await, Ok(expected), "{say:?}");
        assert_eq!(*script.asked.lock(), ["GET http://10.0.0.9:9000/pages/seawall/a/id"]);
    }
}

/// 64 pages of up to 1 MiB, or fewer that are longer. Whoever finds no room asks the origin, and that says nothing about the bucket.
#[tokio::test(start_paused = true)]
async fn no_more_is_read_at_once_than_memory_is_meant_for() {
    let script = Script::new(&[Say::Nothing]);
    let bucket = Arc::new(script.bucket());
    bucket.breaker.answered();
    let until = SimulatedInstant::now() + Duration::from_secs(60);
    let mut reading = JoinSet::new();
    for length in std::iter::repeat_n(UNIT, 54).chain([5 * UNIT, 4 * UNIT + 1]) {
        let bucket = Arc::clone(&bucket);
        reading.spawn(async move { bucket.get("id", length, until, READ).await });
    }
    while script.asked() < 56 {
        tokio::task::yield_now().await;
    }
    let begun = SimulatedInstant::now();
    assert_eq!(get(&bucket).await, Ok(Got::Busy));
    assert_eq!((begun.elapsed(), script.asked(), bucket.is_away()), (READ, 56, false));
    // Whoever leaves makes room.
    reading.abort_all();
    while reading.join_next().await.is_some() {}
    assert!(matches!(get(&bucket).await, Err(BucketError::TooLate { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_bucket_is_used_from_its_first_good_trial_until_it_fails_three_times() {
    let ok = Say::Object(b"trial".to_vec());
    let script = Script::new(&[Say::Refusal(403, "<Error><Code>InvalidAccessKeyId</Code></Error>"), ok.clone(), ok, Say::Nothing]);
    let bucket = script.bucket();
    let trial = || bucket.try_out("trial", Bytes::from_static(b"trial"), READ);
    assert!(bucket.is_away() && bucket.is_to_be_tried() && bucket.why().is_none());
    trial().await;
    assert!(bucket.is_away() && !bucket.is_to_be_tried());
    assert_eq!(bucket.why(), Some(BucketError::NoKey.to_string()));
    trial().await;
    assert!(!bucket.is_away() && bucket.why().is_none());
    for is_away in [false, false, true] {
        assert!(get(&bucket).await.is_err());
        assert_eq!(bucket.is_away(), is_away);
    }
}

#[tokio::test(start_paused = true)]
async fn what_does_not_come_back_as_it_was_written_is_no_place_for_pages() {
    let written = Say::Object(Vec::new());
    for (back, expected) in [
        (Say::Object(b"trial".to_vec()), None),
        (Say::Object(b"trail".to_vec()), Some(BucketError::Lies)),
        (Say::Untouched(9), Some(BucketError::Lies)),
        (Say::Refusal(404, "<Code>NoSuchKey</Code>"), Some(BucketError::Lies)),
        (Say::HeadAlone(5), Some(BucketError::TooLate { what: "read", after: READ })),
        (Say::Refusal(403, "<Code>AccessDenied</Code>"), Some(BucketError::Denied("read"))),
    ] {
        let bucket = Script::new(&[written.clone(), back.clone()]).bucket();
        let tried = bucket.there_and_back("trial", Bytes::from_static(b"trial"), READ).await;
        assert_eq!(tried.err(), expected, "{back:?}");
    }
}

/// The codes are those of S3: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
#[tokio::test(start_paused = true)]
async fn what_is_wrong_is_said_with_its_remedy() {
    for (say, problem, remedy) in [
        (Say::Refusal(404, "<Error><Code>NoSuchBucket</Code></Error>"), "no bucket of this name", "correct `tier`"),
        (Say::Refusal(403, "<Error><Code>InvalidAccessKeyId</Code></Error>"), "does not know the access key", "`tier_key_id`"),
        (Say::Refusal(403, "<Error><Code>SignatureDoesNotMatch</Code></Error>"), "the secret", "`tier_secret_key`"),
        (Say::Refusal(403, "<Error><Code>AccessDenied</Code></Error>"), "may not write", "s3:PutObject"),
        (Say::Refusal(403, ""), "may not write", "s3:PutObject"),
        (Say::Refusal(400, "<Error><Code>ExpiredToken</Code></Error>"), "the session", "AWS_SESSION_TOKEN"),
        (
            Say::Refusal(400, "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region></Error>"),
            "the region eu-west-1",
            "`tier_region`",
        ),
        (Say::Refusal(400, "<Error><Code>PermanentRedirect</Code><Region></Region></Error>"), "another region", "`tier_region`"),
        (Say::Refusal(403, "<Error><Code>RequestTimeTooSkewed</Code></Error>"), "clock", "NTP"),
        (Say::Refusal(500, "<Error><Code>InternalError</Code></Error>"), "status 500, InternalError", ""),
        (Say::Refusal(503, "no document"), "status 503", ""),
        (Say::Unreachable, "cannot be reached (connection refused)", "`tier_endpoint`"),
        (Say::Nothing, "did not write an object within 2000 ms", "near enough"),
    ] {
        let bucket = Script::new(std::slice::from_ref(&say)).bucket();
        bucket.try_out("trial", Bytes::from_static(b"trial"), READ).await;
        let why = bucket.why().expect("a reason");
        assert!(why.contains(problem) && why.contains(remedy) && !why.contains("hush"), "{say:?}: {why}");
    }
}

#[test]
fn neither_the_secret_nor_the_session_is_shown() {
    let options = BucketOptions { token: Some("hush-hush".to_owned()), ..options() };
    assert!(!format!("{options:?} {options}").contains("hush"));
    assert_eq!(options.to_string(), "s3://pages/seawall/a at http://10.0.0.9:9000");
    assert_eq!(BucketOptions { prefix: String::new(), endpoint: None, ..options }.to_string(), "s3://pages");
}

#[test]
fn what_stands_for_a_page_is_its_mark_and_its_length() {
    let sealed = Bytes::from(vec![7; 300]);
    let stub = Stub::of(&sealed).expect("a stub");
    assert_eq!(Stub::read(stub.clone()), Some(Stub { mark: u128::from_be_bytes([7; 16]), length: 300 }));
    for length in (0..STUB).chain([STUB + 1, 4096]) {
        assert_eq!(Stub::read(Bytes::from(vec![0; length])), None, "{length} bytes");
    }
    let gigabyte: Bytes = [&stub[..MARK], &(1_u32 << 30).to_be_bytes()].concat().into();
    assert_eq!(Stub::read(gigabyte), None, "longer than a page may be");
}
