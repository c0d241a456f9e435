//! A bucket of S3's kind, in which the pages of the tier lie.
//!
//! The server of the cluster knows which pages there are: under the name of each it has the page's mark and its length, with its expiry. So a page that
//! is not there is not asked for, a lock is given in the same step, and whatever else the bucket gives back is refused. All that the bucket has to do
//! is to give back what was written last under a name.
//!
//! Whether it can be used is found out by writing and reading a small object: at the start, and while it is left alone. No reader waits for that.
//!
//! Memory: what is being read has [`READING_MAX`] together, what is to be written is a part of `WAITING_BYTES_MAX`.

mod transport;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use object_store::{
    ClientOptions, ObjectStoreExt as _, PutPayload, RetryConfig,
    aws::{AmazonS3, AmazonS3Builder},
    client::HttpConnector,
    path::Path,
};
use parking_lot::Mutex;
use semantics::hex;
use tokio::{
    runtime::Handle,
    sync::Semaphore,
    task::JoinSet,
    time::{timeout, timeout_at},
};

use self::transport::Connector;
use super::{
    HEAD_BYTES_MAX, WRITE_DEADLINE,
    breaker::Breaker,
    seal::{FRAME, MARK},
};
use crate::link::trust;

/// The most bytes of a page in a bucket: what comes within [`READ_DEADLINE`](super::READ_DEADLINE) at 1 Gbit/s.
pub const BUCKET_PAGE_BYTES_MAX: usize = (4 << 20) + HEAD_BYTES_MAX;
/// The most bytes that are read of an object.
const OBJECT_BYTES_MAX: usize = BUCKET_PAGE_BYTES_MAX + FRAME;
/// The amount that may be read at once, in units of [`UNIT`]: 64 pages of up to 1 MiB, or fewer that are longer.
const READING_MAX: usize = 64;
const UNIT: usize = 1 << 20;
/// The bytes that the server has of a page in a bucket.
pub(super) const STUB: usize = MARK + 4;
/// The intervals at which a bucket that is left alone is tried: the first one, and the longest.
const TRIALS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// The interval at which it is told in the log that a bucket fails that can be used.
const TELL: Duration = Duration::from_secs(60);

/// A bucket, and whose it is.
#[derive(Clone, PartialEq, Eq)]
pub struct BucketOptions {
    /// The name of the bucket.
    pub name: String,
    /// The prefix of the names of all objects, without a slash at either end; it may be empty.
    pub prefix: String,
    /// The address of the storage, such as `http://10.0.0.9:9000`; `None`: Amazon's, in the region.
    pub endpoint: Option<String>,
    /// The region.
    pub region: String,
    /// The name of the access key.
    pub key_id: String,
    /// The secret of the access key.
    pub secret_key: String,
    /// The token that a session has beside them.
    pub token: Option<String>,
    /// The certificates of authorities that are trusted in place of the system's, PEM.
    pub authorities: Option<Vec<u8>>,
}

/// Shows no secret.
impl fmt::Debug for BucketOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, prefix, endpoint, region, key_id, secret_key: _, token: _, authorities: _ } = self;
        let mut shown = f.debug_struct("BucketOptions");
        shown.field("name", name).field("prefix", prefix).field("endpoint", endpoint).field("region", region).field("key_id", key_id);
        shown.finish_non_exhaustive()
    }
}

impl fmt::Display for BucketOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}", self.name)?;
        if !self.prefix.is_empty() {
            write!(f, "/{}", self.prefix)?;
        }
        self.endpoint.as_ref().map_or(Ok(()), |endpoint| write!(f, " at {endpoint}"))
    }
}

/// The reason why a bucket cannot be used, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BucketError {
    /// There was no answer in time.
    #[error("it did not {what} an object within {} ms; is it near enough?", after.as_millis())]
    TooLate {
        /// The operation that was asked for.
        what: &'static str,
        /// The deadline.
        after: Duration,
    },
    /// There is no connection.
    #[error("it cannot be reached ({0}): correct `tier_endpoint`, or start it")]
    Unreachable(String),
    /// There is no such bucket.
    #[error("there is no bucket of this name: make it, or correct `tier`")]
    NoBucket,
    /// It does not know the access key.
    #[error("it does not know the access key: correct `tier_key_id` or AWS_ACCESS_KEY_ID")]
    NoKey,
    /// The secret is another one.
    #[error("the secret is not that of the access key: correct `tier_secret_key` or AWS_SECRET_ACCESS_KEY")]
    Secret,
    /// The session has ended, or never was.
    #[error("it does not accept the session: set AWS_SESSION_TOKEN anew, or use a key that needs none")]
    Session,
    /// The key is not allowed to do this.
    #[error("the access key may not {0} there: allow it s3:GetObject, s3:PutObject and s3:DeleteObject on the prefix, and s3:ListBucket")]
    Denied(&'static str),
    /// It is elsewhere.
    #[error("it is in {0}: correct `tier_region`")]
    Region(String),
    /// The clocks differ by more than it accepts.
    #[error("its clock and that of this machine differ too much: set this machine's (NTP)")]
    Clock,
    /// It says something else.
    #[error("it could not {what} an object: {said}")]
    Said {
        /// The operation that was asked for.
        what: &'static str,
        /// The words of the bucket.
        said: String,
    },
    /// It forgets or alters what it is given.
    #[error("what was written there does not come back: look at what else writes there, or removes")]
    Lies,
    /// The options are wrong.
    #[error("{0}")]
    Options(String),
}

/// Holds what a look at a bucket found.
#[derive(Debug, Clone)]
pub struct BucketExamination {
    /// The time that it took to read a small object.
    pub read: Duration,
    /// The things to mend, each as a sentence with its remedy.
    pub warnings: Vec<String>,
}

/// Holds what the server knows of a page in a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stub {
    pub(super) mark: u128,
    pub(super) length: usize,
}

impl Stub {
    /// Returns what stands for a sealed page.
    pub(super) fn of(sealed: &Bytes) -> Option<Bytes> {
        let mut stub = BytesMut::with_capacity(STUB);
        stub.put_slice(sealed.get(..MARK)?);
        stub.put_u32(u32::try_from(sealed.len()).ok()?);
        Some(stub.freeze())
    }

    /// Reads one. `None`: there is something else, or something longer than a page may be.
    pub(super) fn read(mut stub: Bytes) -> Option<Self> {
        if stub.len() != STUB {
            return None;
        }
        let (mark, length) = (stub.get_u128(), usize::try_from(stub.get_u32()).ok()?);
        (length <= OBJECT_BYTES_MAX).then_some(Self { mark, length })
    }
}

/// Says what was found in a bucket.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Got {
    /// An object of the length that was asked for.
    Object(Bytes),
    /// An object of another length. It was not read.
    Another,
    /// There is no object.
    Nothing,
    /// Too much is being read.
    Busy,
}

/// The bucket of a tier.
pub(super) struct Bucket {
    place: String,
    prefix: String,
    store: AmazonS3,
    /// The runtime that drives its connections.
    runtime: Handle,
    reading: Arc<Semaphore>,
    breaker: Breaker,
    trial: Mutex<Trial>,
}

/// Says when it is tried next, and what was said of it.
#[derive(Debug)]
struct Trial {
    due: Instant,
    pause: Duration,
    /// The reason why it cannot be used, as it was told in the log.
    told: Option<BucketError>,
    quiet_until: Instant,
    /// Whether a trial has ever succeeded.
    was_used: bool,
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Bucket {
    /// Prepares to use a bucket. It is left alone until a trial has succeeded.
    pub(super) fn new(options: &BucketOptions, runtime: &Handle) -> Result<Self, BucketError> {
        // Roots are read for nothing where there is no TLS.
        let is_plain = options.endpoint.as_ref().is_some_and(|endpoint| endpoint.starts_with("http://"));
        let tls = (!is_plain).then(|| trust(options.authorities.as_deref())).transpose();
        let tls = tls.map_err(|error| BucketError::Options(error.to_string()))?;
        Self::over(options, Connector { tls }, runtime)
    }

    fn over(options: &BucketOptions, connector: impl HttpConnector, runtime: &Handle) -> Result<Self, BucketError> {
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(&options.name)
            .with_region(&options.region)
            .with_access_key_id(&options.key_id)
            .with_secret_access_key(&options.secret_key)
            // What is written bears the cluster's seal, which is checked when it is read.
            .with_unsigned_payload(true)
            .with_disable_tagging(true)
            // The library would try ten times in three minutes, for 30 s each.
            .with_retry(RetryConfig { max_retries: 0, retry_timeout: Duration::ZERO, ..RetryConfig::default() })
            .with_client_options(ClientOptions::new().with_timeout(WRITE_DEADLINE).with_allow_http(true))
            .with_http_connector(connector);
        match &options.endpoint {
            Some(endpoint) => builder = builder.with_endpoint(endpoint.trim_end_matches('/')),
            // A certificate for all names below the region has no names with dots.
            None => builder = builder.with_virtual_hosted_style_request(!options.name.contains('.')),
        }
        if let Some(token) = &options.token {
            builder = builder.with_token(token);
        }
        let store = builder.build().map_err(|error| BucketError::Options(error.to_string()))?;
        let now = Instant::now();
        Ok(Self {
            place: options.to_string(),
            prefix: options.prefix.clone(),
            store,
            runtime: runtime.clone(),
            reading: Arc::new(Semaphore::new(READING_MAX)),
            breaker: Breaker::open(now),
            trial: Mutex::new(Trial { due: now, pause: TRIALS.0, told: None, quiet_until: now, was_used: false }),
        })
    }

    /// Returns where it is.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Returns whether it is left alone.
    pub(super) fn is_away(&self) -> bool {
        self.breaker.is_open()
    }

    /// Returns why it cannot be used, if a trial has said so.
    pub(super) fn why(&self) -> Option<String> {
        self.trial.lock().told.as_ref().map(ToString::to_string)
    }

    /// Reads an object of this length. Whoever leaves ends the request.
    ///
    /// # Errors
    /// When it does not answer in time, which includes connecting, or fails.
    pub(super) async fn get(&self, id: &str, length: usize, until: tokio::time::Instant, after: Duration) -> Result<Got, BucketError> {
        let units = u32::try_from(length.div_ceil(UNIT).clamp(1, READING_MAX)).unwrap_or(1);
        let Ok(Ok(place)) = timeout_at(until, Arc::clone(&self.reading).acquire_many_owned(units)).await else { return Ok(Got::Busy) };
        let (store, path) = (self.store.clone(), self.path(id));
        // Connections live where the tier does, whoever asks.
        let mut reading = JoinSet::new();
        reading.spawn_on(
            async move {
                let _place = place;
                read(&store, &path, length).await
            },
            &self.runtime,
        );
        let late = || BucketError::TooLate { what: "read", after };
        let got = match timeout_at(until, reading.join_next()).await {
            Ok(Some(Ok(got))) => got,
            // The runtime ended the task.
            Ok(_) => Err(BucketError::Unreachable("the cluster is stopping".to_owned())),
            Err(_) => Err(late()),
        };
        self.note(got.as_ref().err());
        got
    }

    /// Writes an object.
    ///
    /// # Errors
    /// When it does not answer in time, or refuses. It may have been written.
    pub(super) async fn put(&self, id: &str, sealed: Bytes) -> Result<(), BucketError> {
        let put = self.write(id, sealed).await;
        self.note(put.as_ref().err());
        put
    }

    /// Removes an object. What cannot be removed is removed by the rule of the bucket for old objects.
    pub(super) async fn remove(&self, id: &str) {
        if !self.is_away() {
            let _ = timeout(WRITE_DEADLINE, self.store.delete(&self.path(id))).await;
        }
    }

    /// Returns whether it is time to try a bucket that is left alone.
    pub(super) fn is_to_be_tried(&self) -> bool {
        self.is_away() && self.trial.lock().due <= Instant::now()
    }

    /// Tries whether it can be used, and says so in the log if that has changed. `id` and `content` are those of an object for this purpose alone.
    pub(super) async fn try_out(&self, id: &str, content: Bytes, read_deadline: Duration) {
        // Nobody else tries it meanwhile.
        self.trial.lock().due = Instant::now() + 2 * WRITE_DEADLINE;
        let tried = self.there_and_back(id, content, read_deadline).await;
        let mut trial = self.trial.lock();
        match tried {
            Ok(_) => {
                self.breaker.answered();
                trial.pause = TRIALS.0;
                // A bucket that is too slow now and then would fill the log.
                let is_news = trial.told.take().is_some() || !trial.was_used;
                trial.was_used = true;
                if is_news {
                    tracing::info!(bucket = %self.place, "the shared tier is in use");
                }
            }
            Err(why) => {
                trial.due = Instant::now() + trial.pause;
                trial.pause = (trial.pause * 2).min(TRIALS.1);
                if trial.told.as_ref() != Some(&why) {
                    tracing::warn!(bucket = %self.place, "the shared tier is off until its bucket can be used: {why}");
                    trial.told = Some(why);
                }
            }
        }
    }

    /// Writes an object and reads it. Returns how long reading took.
    async fn there_and_back(&self, id: &str, content: Bytes, read_deadline: Duration) -> Result<Duration, BucketError> {
        self.write(id, content.clone()).await?;
        let begun = Instant::now();
        let got = timeout(read_deadline, read(&self.store, &self.path(id), content.len())).await;
        match got.map_err(|_| BucketError::TooLate { what: "read", after: read_deadline })?? {
            Got::Object(object) if object == content => Ok(begun.elapsed()),
            Got::Object(_) | Got::Another | Got::Nothing | Got::Busy => Err(BucketError::Lies),
        }
    }

    async fn write(&self, id: &str, content: Bytes) -> Result<(), BucketError> {
        let put = timeout(WRITE_DEADLINE, self.store.put(&self.path(id), PutPayload::from(content))).await;
        let put = put.map_err(|_| BucketError::TooLate { what: "write", after: WRITE_DEADLINE })?;
        put.map(drop).map_err(|error| why(&error, "write"))
    }

    /// Notes how a request ended.
    fn note(&self, error: Option<&BucketError>) {
        let Some(why) = error else { return self.breaker.answered() };
        let now = Instant::now();
        if self.breaker.failed(now) {
            let mut trial = self.trial.lock();
            trial.due = now + trial.pause;
            if now >= trial.quiet_until {
                trial.quiet_until = now + TELL;
                tracing::warn!(bucket = %self.place, %why, "the bucket of the shared tier fails: it is left alone until it answers in time");
            }
        }
    }

    fn path(&self, id: &str) -> Path {
        if self.prefix.is_empty() { Path::from(id) } else { Path::from(format!("{}/{id}", self.prefix)) }
    }
}

/// Looks at a bucket: whether a small object can be written, read and removed there. Takes some seconds at most.
///
/// # Errors
/// When it cannot be used, with the remedy.
pub async fn examine(options: &BucketOptions) -> Result<BucketExamination, BucketError> {
    let bucket = Bucket::new(options, &Handle::current())?;
    let mut random = [0; 32];
    aws_lc_rs::rand::fill(&mut random).map_err(|_| BucketError::Options("there is no randomness".to_owned()))?;
    let id = format!("check-{}", hex::encoded(&random[..8]));
    let read = bucket.there_and_back(&id, Bytes::copy_from_slice(&random), WRITE_DEADLINE).await?;
    let mut warnings = Vec::new();
    let removed = timeout(WRITE_DEADLINE, bucket.store.delete(&bucket.path(&id))).await;
    let why_not = match removed {
        Ok(removed) => removed.err().map(|error| why(&error, "remove")),
        Err(_) => Some(BucketError::TooLate { what: "remove", after: WRITE_DEADLINE }),
    };
    if let Some(why_not) = why_not {
        warnings.push(format!("The object {id} remains there: {why_not}."));
    }
    if read > super::READ_DEADLINE {
        warnings.push(format!(
            "A read takes {} ms, and Seawall waits for {} ms: most pages will come from the origin. Use a bucket that is nearer.",
            read.as_millis(),
            super::READ_DEADLINE.as_millis()
        ));
    }
    Ok(BucketExamination { read, warnings })
}

async fn read(store: &AmazonS3, path: &Path, length: usize) -> Result<Got, BucketError> {
    let object = match store.get(path).await {
        Ok(object) => object,
        Err(error) => {
            return match why(&error, "read") {
                BucketError::Said { .. } if matches!(error, object_store::Error::NotFound { .. }) => Ok(Got::Nothing),
                why => Err(why),
            };
        }
    };
    if usize::try_from(object.meta.size) != Ok(length) {
        return Ok(Got::Another);
    }
    let object = object.bytes().await.map_err(|error| why(&error, "read"))?;
    Ok(if object.len() == length { Got::Object(object) } else { Got::Another })
}

/// Returns what a refusal means. S3 says it by a code in a document, of which the library passes on the text.
fn why(error: &object_store::Error, what: &'static str) -> BucketError {
    let text = error.to_string();
    let part = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        rest.split_once("</").map(|(value, _)| value.trim())
    };
    let status = text.split_once("status code: ").and_then(|(_, rest)| rest.get(..3)).unwrap_or_default();
    match part("Code").unwrap_or_default() {
        "NoSuchBucket" => BucketError::NoBucket,
        "InvalidAccessKeyId" => BucketError::NoKey,
        "SignatureDoesNotMatch" => BucketError::Secret,
        "InvalidToken" | "ExpiredToken" => BucketError::Session,
        "RequestTimeTooSkewed" => BucketError::Clock,
        "PermanentRedirect" | "TemporaryRedirect" | "AuthorizationHeaderMalformed" | "IllegalLocationConstraintException" => {
            let region = part("Region").filter(|region| !region.is_empty());
            BucketError::Region(region.map_or_else(|| "another region".to_owned(), |region| format!("the region {region}")))
        }
        "AccessDenied" | "AllAccessDisabled" => BucketError::Denied(what),
        "" if matches!(status, "401" | "403") => BucketError::Denied(what),
        "" if status.is_empty() => unanswered(error, what),
        "" => BucketError::Said { what, said: format!("status {status}") },
        code => BucketError::Said { what, said: format!("status {status}, {code}") },
    }
}

/// Returns what it means that there is no answer, or none that can be read.
fn unanswered(error: &object_store::Error, what: &'static str) -> BucketError {
    use object_store::client::{HttpError, HttpErrorKind};

    let mut beneath: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let mut last = error.to_string();
    while let Some(error) = beneath {
        if let Some(http) = error.downcast_ref::<HttpError>() {
            let said = std::error::Error::source(http).map_or_else(|| http.to_string(), ToString::to_string);
            return match http.kind() {
                HttpErrorKind::Connect => BucketError::Unreachable(said),
                _ => BucketError::Said { what, said },
            };
        }
        last = error.to_string();
        beneath = error.source();
    }
    BucketError::Said { what, said: last }
}

#[cfg(test)]
mod tests;
