//! The steps that the server does for the tier, each as one step: scripts.
//!
//! | key | what |
//! |---|---|
//! | `tier:<id>` | a page, or the mark and the length of one in a bucket |
//! | `lock:tier:<id>` | the word of the machine that fetches it, or `-`: what was fetched is not for everybody |
//! | `tier-pages` | a sorted set of all pages with their lengths, by the time when they expire |
//! | `tier-bytes` | the bytes of all of them |
//!
//! Each of them expires. The last two are the account by which the tier is bounded: should they be lost, the pages are lost with them or expire
//! within a day.

use std::time::Duration;

use bytes::Bytes;

use super::{Inner, LOCK, PAGE_BYTES_MAX, REFUSED, STUB, Token, WRITE_DEADLINE, seal};
use crate::link::{LinkError, Reply};

/// The account of all pages: which there are, and how many bytes they have.
const PAGES: &str = "tier-pages";
const BYTES: &str = "tier-bytes";
/// The bytes that the server takes for each page beside its content: its key, its expiry, and its line in the account.
const OVERHEAD: usize = 300;
/// The word in a lock of which the page is not for everybody.
const NOT_FOR_ALL: &str = "-";
/// The most locks that one step renews.
const RENEWED_MAX: usize = 128;

/// Says what a look came to.
pub(super) enum Answer {
    /// There is something, and it expires after so long.
    Page { bytes: Bytes, expires: Option<Duration> },
    /// There is nothing, and the lock is this machine's now; `displaced`: something that is not a lock was in its place.
    Locked { displaced: bool },
    /// There is nothing, and no lock was wanted.
    Nothing,
    /// There is nothing, and another machine has the lock.
    Held,
    /// There is nothing, and what was fetched a moment ago is not for everybody.
    Refused,
}

/// Reads a page, but for one that begins in the known way; without one, takes the lock.
///
/// No value is read further than a page may be long, whatever somebody has put there. What lies in a lock's place and does not end as soon as locks do
/// is not one: nobody waits for it.
const LOOK: &str = r"
local beginning = redis.pcall('GETRANGE', KEYS[1], 0, 15)
if type(beginning) == 'string' and #beginning > 0 and beginning ~= ARGV[4] then
  return {1, redis.call('GETRANGE', KEYS[1], 0, ARGV[1]), redis.call('PTTL', KEYS[1])}
end
local held = redis.pcall('GETRANGE', KEYS[2], 0, 15)
local lives = redis.call('PTTL', KEYS[2])
local displaced = 0
if lives ~= -2 then
  if type(held) ~= 'string' or lives == -1 or lives > tonumber(ARGV[5]) then
    displaced = 1
  elseif held == '-' then
    return {4}
  else
    return {3}
  end
end
if ARGV[2] == '' then return {0} end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
return {2, displaced}
";

/// Writes a page, keeps the account, and makes room. Gives back the lock.
const PUT: &str = r"
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local over, max, day = tonumber(ARGV[5]), tonumber(ARGV[4]), 90000000
local prefix = string.sub(KEYS[1], 1, -#ARGV[6] - 1)
local old = redis.pcall('STRLEN', KEYS[1])
if type(old) == 'number' and old > 0 and redis.call('ZREM', KEYS[3], ARGV[6] .. ':' .. old) == 1 then
  redis.call('DECRBY', KEYS[4], old + over)
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
local total = redis.call('INCRBY', KEYS[4], #ARGV[1] + over)
redis.call('ZADD', KEYS[3], now + ARGV[2], ARGV[6] .. ':' .. #ARGV[1])
for _, line in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now, 'LIMIT', 0, 64)) do
  redis.call('ZREM', KEYS[3], line)
  total = redis.call('DECRBY', KEYS[4], tonumber(string.match(line, ':(%d+)$')) + over)
end
local most = 64
while total > max and most > 0 do
  local first = redis.call('ZPOPMIN', KEYS[3])
  if #first == 0 then
    redis.call('SET', KEYS[4], 0)
    break
  end
  local id, length = string.match(first[1], '^(.*):(%d+)$')
  redis.call('DEL', prefix .. id)
  total = redis.call('DECRBY', KEYS[4], tonumber(length) + over)
  most = most - 1
end
redis.call('PEXPIRE', KEYS[3], day)
redis.call('PEXPIRE', KEYS[4], day)
local held = redis.pcall('GETRANGE', KEYS[2], 0, 15)
if type(held) == 'string' and (held == '-' or held == ARGV[3]) then redis.call('DEL', KEYS[2]) end
return {1}
";

/// Gives back a lock, or leaves a word in it.
const RELEASE: &str = r"
if redis.pcall('GETRANGE', KEYS[1], 0, 15) == ARGV[1] then
  if ARGV[2] == '' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], '-', 'PX', ARGV[2]) end
end
return {1}
";

/// Holds locks for longer.
const RENEW: &str = r"
for at, key in ipairs(KEYS) do
  if redis.pcall('GETRANGE', key, 0, 15) == ARGV[at + 1] then redis.call('PEXPIRE', key, ARGV[1]) end
end
return {1}
";

/// Removes a page. Its line in the account goes when it would have expired.
const REMOVE: &str = r"
local old = redis.pcall('STRLEN', KEYS[1])
if type(old) == 'number' and old > 0 and redis.call('ZREM', KEYS[2], ARGV[2] .. ':' .. old) == 1 then
  redis.call('DECRBY', KEYS[3], old + tonumber(ARGV[1]))
end
redis.call('DEL', KEYS[1])
return {1}
";

pub(super) async fn look(
    tier: &Inner,
    id: &str,
    known: Option<&Bytes>,
    token: Option<Token>,
    deadline: Duration,
) -> Result<Answer, LinkError> {
    let arguments = vec![
        // One byte more tells that it is longer.
        number(if tier.bucket.is_some() { STUB } else { PAGE_BYTES_MAX + seal::FRAME }),
        token.map_or_else(Bytes::new, |token| Bytes::copy_from_slice(&token)),
        millis(LOCK),
        known.cloned().unwrap_or_default(),
        millis(LOCK.max(REFUSED)),
    ];
    let replies = tier.values.script(LOOK, &[page(id), lock(id)], &arguments, deadline).await?;
    let mut replies = replies.into_iter();
    Ok(match (replies.next(), replies.next(), replies.next()) {
        (Some(Reply::Number(1)), Some(Reply::Text(bytes)), Some(Reply::Number(expires))) => {
            Answer::Page { bytes, expires: u64::try_from(expires).ok().map(Duration::from_millis) }
        }
        (Some(Reply::Number(0)), ..) => Answer::Nothing,
        (Some(Reply::Number(2)), displaced, _) => Answer::Locked { displaced: displaced == Some(Reply::Number(1)) },
        (Some(Reply::Number(3)), ..) => Answer::Held,
        (Some(Reply::Number(4)), ..) => Answer::Refused,
        // No script of ours returns this.
        _ => Answer::Nothing,
    })
}

pub(super) async fn put(tier: &Inner, id: &str, sealed: Bytes, lasts: Duration, token: Option<Token>) -> Result<(), LinkError> {
    let names = [page(id), lock(id), PAGES.to_owned(), BYTES.to_owned()];
    let arguments = vec![
        sealed,
        millis(lasts.max(Duration::from_millis(1))),
        token.map_or_else(|| Bytes::from_static(NOT_FOR_ALL.as_bytes()), |token| Bytes::copy_from_slice(&token)),
        Bytes::from(tier.options.memory.to_string()),
        number(OVERHEAD),
        Bytes::copy_from_slice(id.as_bytes()),
    ];
    tier.values.script(PUT, &names, &arguments, WRITE_DEADLINE).await.map(|_| ())
}

pub(super) async fn release(tier: &Inner, id: &str, token: Token, refused: Option<Duration>) -> Result<(), LinkError> {
    let arguments = vec![Bytes::copy_from_slice(&token), refused.map_or_else(Bytes::new, millis)];
    tier.values.script(RELEASE, &[lock(id)], &arguments, WRITE_DEADLINE).await.map(|_| ())
}

pub(super) async fn renew(tier: &Inner, held: &[(String, Token)]) -> Result<(), LinkError> {
    for held in held.chunks(RENEWED_MAX) {
        let names: Vec<String> = held.iter().map(|(id, _)| lock(id)).collect();
        let tokens = held.iter().map(|(_, token)| Bytes::copy_from_slice(token));
        let arguments: Vec<Bytes> = std::iter::once(millis(LOCK)).chain(tokens).collect();
        tier.values.script(RENEW, &names, &arguments, LOCK / 2).await?;
    }
    Ok(())
}

pub(super) async fn remove(tier: &Inner, id: &str) -> Result<(), LinkError> {
    let names = [page(id), PAGES.to_owned(), BYTES.to_owned()];
    let arguments = vec![number(OVERHEAD), Bytes::copy_from_slice(id.as_bytes())];
    tier.values.script(REMOVE, &names, &arguments, WRITE_DEADLINE).await.map(|_| ())
}

fn number(number: usize) -> Bytes {
    Bytes::from(number.to_string())
}

fn millis(duration: Duration) -> Bytes {
    Bytes::from(duration.as_millis().to_string())
}

/// Returns the name of a page.
pub(super) fn page(id: &str) -> String {
    format!("tier:{id}")
}

/// Returns the name of the lock of a page.
pub(super) fn lock(id: &str) -> String {
    format!("lock:tier:{id}")
}
