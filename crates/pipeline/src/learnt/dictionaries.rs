//! The next version of a page for readers who have the one before: little more than what has changed (RFC 9842).
//!
//! The last version of each page is kept beside the store, since a purge takes it out of there. When another one comes, it is coded with the
//! old one as its dictionary, in the background. Both are bounded, oldest first: what is missing only costs its reader the saving.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{Arc, Weak},
};

use bytes::Bytes;
use codings::{DictionaryHash, dictionary_hash, encode_with_dictionary};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use parking_lot::Mutex;
use semantics::{Timestamp, cache_status::CacheStatus, conditional::Precondition, dictionary};
use store::KeyHash;

use crate::{Body, Shared, Stored, coded::weaken, deliver, question::Question};

/// Bytes of last versions, which are the stored ones, unless those are packed.
const VERSIONS_BYTES_MAX: usize = 32 << 20;
/// Bytes of differences, and how many.
const UPDATES_BYTES_MAX: usize = 8 << 20;
const UPDATES_MAX: usize = 4_096;

pub(crate) const AVAILABLE_DICTIONARY: HeaderName = HeaderName::from_static("available-dictionary");
const USE_AS_DICTIONARY: HeaderName = HeaderName::from_static("use-as-dictionary");
const DCZ: HeaderValue = HeaderValue::from_static("dcz");

/// Last versions of pages, and what has changed since.
#[derive(Default)]
pub(crate) struct Dictionaries(Mutex<Versions>);

/// Last versions and differences, oldest first.
#[derive(Default)]
struct Versions {
    versions: HashMap<KeyHash, Bytes>,
    oldest: VecDeque<KeyHash>,
    version_bytes: usize,
    updates: VecDeque<Update>,
    update_bytes: usize,
}

struct Update {
    from: DictionaryHash,
    to: Weak<Stored>,
    content: Bytes,
}

impl Dictionaries {
    /// Notes the version of a page that is stored now. Returns the one before, if it was another.
    fn replace(&self, hash: KeyHash, version: Bytes) -> Option<Bytes> {
        let mut kept = self.0.lock();
        let kept = &mut *kept;
        kept.version_bytes += version.len();
        let before = kept.versions.insert(hash, version.clone());
        match &before {
            Some(before) => kept.version_bytes -= before.len(),
            None => kept.oldest.push_back(hash),
        }
        while kept.version_bytes > VERSIONS_BYTES_MAX
            && let Some(oldest) = kept.oldest.pop_front()
        {
            kept.version_bytes -= kept.versions.remove(&oldest).map_or(0, |version| version.len());
        }
        before.filter(|before| *before != version)
    }

    fn add(&self, update: Update) {
        let mut kept = self.0.lock();
        kept.update_bytes += update.content.len();
        kept.updates.push_back(update);
        while kept.update_bytes > UPDATES_BYTES_MAX || kept.updates.len() > UPDATES_MAX {
            let Some(oldest) = kept.updates.pop_front() else { break };
            kept.update_bytes -= oldest.content.len();
        }
    }

    /// Notes that a stored response has another shape now.
    pub(crate) fn moved(&self, before: &Arc<Stored>, now: &Arc<Stored>) {
        let mut kept = self.0.lock();
        for update in kept.updates.iter_mut().filter(|update| std::ptr::eq(update.to.as_ptr(), Arc::as_ptr(before))) {
            update.to = Arc::downgrade(now);
        }
    }

    fn find(&self, from: &DictionaryHash, to: &Arc<Stored>) -> Option<Bytes> {
        let kept = self.0.lock();
        let found = kept.updates.iter().rev().find(|update| update.from == *from && std::ptr::eq(update.to.as_ptr(), Arc::as_ptr(to)));
        found.map(|update| update.content.clone())
    }
}

impl Shared {
    /// Notes that a page was stored: it is the dictionary for the next version, and the one before is its own.
    pub(crate) fn next_version(self: &Arc<Self>, hash: KeyHash, stored: &Arc<Stored>) {
        let Some(content) = stored.body.memory().cloned() else { return };
        let Some(before) = self.dictionaries.replace(hash, content.clone()) else { return };
        let (shared, to) = (Arc::downgrade(self), Arc::downgrade(stored));
        let job = move || {
            if to.strong_count() == 0 {
                return;
            }
            let coded = encode_with_dictionary(&content, &before);
            if let (Some(shared), Some(coded)) = (shared.upgrade(), coded) {
                shared.dictionaries.add(Update { from: dictionary_hash(&before), to, content: Bytes::from(coded) });
            }
        };
        // When too much waits, this page is sent whole.
        let _ = self.workshop.submit(true, job);
    }
}

/// Answers a reader who has the version before this one.
pub(crate) fn update(
    shared: &Shared,
    question: &Question,
    stored: &Arc<Stored>,
    status: &CacheStatus<'static>,
    now: Timestamp,
) -> Option<Response<Body>> {
    let record = &stored.record;
    let fields = question.fields();
    let wanted = question.site.policy.settings().compress.dictionaries && record.codable && record.status == StatusCode::OK;
    if !wanted || fields.range.is_present() {
        return None;
    }
    let content = shared.dictionaries.find(&dictionary::available(&fields)?, stored)?;
    if deliver::precondition(record, &question.method, &fields, None).0 != Precondition::Proceed {
        return None;
    }
    let mut headers = record.headers();
    headers.insert(header::CONTENT_ENCODING, DCZ);
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(content.len() as u64));
    // There is one for each dictionary, and none of them is for anybody but who has that.
    weaken(&mut headers);
    let mut response = Response::new(if question.method == Method::HEAD { Body::empty() } else { Body::Full(content) });
    *response.headers_mut() = headers;
    deliver::with_status(&mut response, record, status, now);
    Some(response)
}

/// Says that a page is to be the dictionary of its next version, and that it varies on what a client has.
pub(crate) fn offer(path: &str, headers: &mut HeaderMap) {
    if headers.contains_key(USE_AS_DICTIONARY) {
        return;
    }
    if let Some(value) = dictionary::use_for_itself(path).and_then(|value| HeaderValue::from_str(&value).ok()) {
        headers.insert(USE_AS_DICTIONARY, value);
        headers.append(header::VARY, HeaderValue::from_static("available-dictionary"));
    }
}

impl fmt::Debug for Dictionaries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = self.0.lock();
        f.debug_struct("Dictionaries").field("versions", &kept.versions.len()).field("updates", &kept.updates.len()).finish()
    }
}
