//! Removes what others wrote into our keys and what is too long to be read: the server itself removes it, and nobody reads it.

use redis::cmd;

use super::{ENTRY_BYTES_MAX, LinkError, engine::Engine, reply};

/// The most bytes of a field of the hash of machines, and of its name.
const FIELD_BYTES_MAX: usize = 4096;
/// The most fields of the hash of machines.
const FIELDS_MAX: usize = 1024;
/// The most bytes of all fields of that hash together, with their names: with the longest entries that one round reads, they fit into one reply.
const FIELDS_BYTES_MAX: usize = 1024 * 1024;

/// Returns what a step came to. If a reply to it was too long, it removes from the server what is longer than anything of ours, for the next
/// connection. The error stays: this connection is of no use any more.
pub(super) async fn mended<T>(engine: &Engine, step: impl Future<Output = Result<T, LinkError>>) -> Result<T, LinkError> {
    let result = step.await;
    if let Err(LinkError::TooLong { .. }) = result {
        remove_what_is_too_long(engine).await;
    }
    result
}

/// Removes from the three keys that are read whole what is longer than anything that Seawall writes: entries and confirmations one by one, the hash of
/// machines as a whole. Machines that are forgotten by that are written again within a round, and the word of whoever made the hash changes.
///
/// It takes a connection of its own and says in the log what it did.
async fn remove_what_is_too_long(engine: &Engine) {
    match remove(engine).await {
        Ok(removed) if removed.is_empty() => {
            tracing::warn!(server = %engine.address(), "a reply was too long, and nothing in the cluster's keys is")
        }
        Ok(removed) => {
            let removed = removed.join(", ");
            tracing::warn!(server = %engine.address(), removed, "removed from the cluster's keys what is too long to be from Seawall");
        }
        Err(error) => tracing::warn!(%error, "something in the cluster's keys is too long to be read, and cannot be removed"),
    }
}

/// Returns the names of what was removed: the hash, or the key and the id of an entry.
async fn remove(engine: &Engine) -> Result<Vec<String>, LinkError> {
    let (connection, _) = engine.primary(1, super::REPLY_BYTES_MAX).await?;
    let keys = engine.keys();
    let mut command = cmd("EVAL");
    command.arg(SCRIPT).arg(3).arg(&keys.machines).arg(&keys.purges).arg(&keys.confirmed);
    command.arg(FIELD_BYTES_MAX).arg(FIELDS_MAX).arg(ENTRY_BYTES_MAX).arg(FIELDS_BYTES_MAX);
    let names = reply::list(connection.one(command, engine.deadline()).await?);
    let names = names.and_then(|names| names.into_iter().map(reply::text).collect::<Option<_>>());
    names.ok_or_else(|| connection.garbled("a list of names"))
}

/// Keys of other types are left alone: they are named by the errors of the commands that meet them.
const SCRIPT: &str = r"
local removed = {}
local field_max, fields_max, entry_max, total_max = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
if redis.call('TYPE', KEYS[1]).ok == 'hash' then
  local bad = redis.call('HLEN', KEYS[1]) > fields_max
  if not bad then
    local total = 0
    for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
      local length = redis.call('HSTRLEN', KEYS[1], field)
      total = total + string.len(field) + length
      bad = bad or string.len(field) > field_max or length > field_max or total > total_max
    end
  end
  if bad then
    redis.call('DEL', KEYS[1])
    table.insert(removed, KEYS[1])
  end
end
for at = 2, 3 do
  if redis.call('TYPE', KEYS[at]).ok == 'stream' then
    local from = '-'
    while true do
      local entry = redis.call('XRANGE', KEYS[at], from, '+', 'COUNT', 1)[1]
      if not entry then break end
      local length = 0
      for _, part in ipairs(entry[2]) do length = length + string.len(part) end
      if length > entry_max + 64 then
        redis.call('XDEL', KEYS[at], entry[1])
        if #removed < 20 then table.insert(removed, KEYS[at] .. ' ' .. entry[1]) end
      end
      from = '(' .. entry[1]
    end
  end
end
return removed
";
