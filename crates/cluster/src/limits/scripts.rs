//! The steps that the server does for limits, each as one step: scripts.
//!
//! | key | what |
//! |---|---|
//! | `limits` | a stream of reports: the last [`REPORTS_MAX`], for [`REPORTS_LAST`] |
//! | `origin:<hash>` | a hash of the places at an origin: the machines' sessions, each with the places that it holds, those that it needs, and when that ends by the server's clock; and `born`, when the hash was made |
//!
//! Each of them expires. Nothing that lies there is believed: what is neither a report nor a line of places is passed over, removed and counted.

use std::time::Duration;

use bytes::Bytes;

use super::{PlaceDemand, report::REPORT_BYTES_MAX};
use crate::link::{LinkError, Reply, Values};

/// The key of the reports.
pub(super) const REPORTS: &str = "limits";
/// The most reports that the server keeps: 256 of 14 KiB are 3.5 MiB at most.
const REPORTS_MAX: usize = 256;
/// The time that the server keeps the reports when no machine writes any more.
const REPORTS_LAST: Duration = Duration::from_secs(10);
/// The most reports that are read at once; the others are read at the next exchange.
const READ_MAX: usize = 128;
/// The time for which places that were granted last, from when they were asked for.
pub(super) const GRANT_LASTS: Duration = Duration::from_secs(2);
/// The time after an account of places was made during which a machine gets no more places than it says it holds: others may have held some
/// before.
const SETTLING: Duration = Duration::from_millis(300);
/// The most machines that share an origin. An account with more lines is not ours, and is made anew.
const MACHINES_MAX: usize = 256;
/// The most origins in one step.
pub(super) const ORIGINS_AT_ONCE_MAX: usize = 64;

/// Writes a report, and reads those of the others.
///
/// Nothing is asked to be longer than a report can be, whatever somebody has put there.
const EXCHANGE: &str = r"
local refused = 0
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'stream' and kind ~= 'none' then
  redis.call('DEL', KEYS[1])
  refused = 1
end
if ARGV[3] ~= '' then
  local added = redis.pcall('XADD', KEYS[1], 'MAXLEN', ARGV[6], '*', 'r', ARGV[3])
  if type(added) == 'table' and added.err then
    redis.call('DEL', KEYS[1])
    refused = refused + 1
    redis.call('XADD', KEYS[1], '*', 'r', ARGV[3])
  end
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
end
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
local out = {0, last[1] and last[1][1] or ''}
if ARGV[1] ~= '' then
  for _, entry in ipairs(redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', ARGV[7])) do
    local fields = entry[2]
    out[2] = entry[1]
    if #fields ~= 2 or fields[1] ~= 'r' or #fields[2] > tonumber(ARGV[4]) then
      refused = refused + 1
    elseif string.sub(fields[2], 1, #ARGV[2]) ~= ARGV[2] then
      out[#out + 1] = fields[2]
    end
  end
end
out[1] = refused
return out
";

/// Grants places at origins. For each of them: the limit, how many this machine needs, and how many it holds.
///
/// A machine that needs fewer than an equal share gets them; the others share what is left. Places that nobody needs are shared equally, too, so that nobody has to
/// ask before the first request. A remainder goes round from second to second. A machine with more than its share holds what it has until it says
/// that it holds less; so the sum of what machines hold never exceeds the limit.
const GRANT: &str = r"
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local me, lasts, settling, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local out = {0}
for at, key in ipairs(KEYS) do
  local limit, need, held = tonumber(ARGV[3 * at + 2]), tonumber(ARGV[3 * at + 3]), tonumber(ARGV[3 * at + 4])
  local kind = redis.call('TYPE', key).ok
  if (kind ~= 'hash' and kind ~= 'none') or (kind == 'hash' and redis.call('HLEN', key) > most) then
    redis.call('DEL', key)
    out[1] = out[1] + 1
  end
  local born, taken, machines = nil, 0, {{me, math.min(need, limit)}}
  local lines = redis.call('HGETALL', key)
  for line = 1, #lines, 2 do
    local field, value = lines[line], lines[line + 1]
    if field == 'born' then
      born = #value < 20 and tonumber(value) or nil
    elseif field ~= me then
      local holds, needs, ends = nil, nil, nil
      if #field == 32 and #value < 64 then holds, needs, ends = string.match(value, '^(%d+) (%d+) (%d+)$') end
      holds, needs, ends = tonumber(holds), tonumber(needs), tonumber(ends)
      if not ends or ends > now + 60000 or holds > 65535 then
        redis.call('HDEL', key, field)
        out[1] = out[1] + 1
      elseif ends <= now then
        redis.call('HDEL', key, field)
      else
        taken = taken + holds
        machines[#machines + 1] = {field, math.min(needs, limit)}
      end
    end
  end
  if not born or born > now then
    born = now
    redis.call('HSET', key, 'born', now)
  end
  local n = #machines
  local needs = {}
  for i, machine in ipairs(machines) do needs[i] = machine[2] end
  table.sort(needs)
  table.sort(machines, function(a, b) return a[1] < b[1] end)
  local left, level = limit, nil
  for i, some in ipairs(needs) do
    local share = math.floor(left / (n - i + 1))
    if some > share then
      level = share
      left = left - share * (n - i + 1)
      break
    end
    left = left - some
  end
  local target
  if level then
    target = math.min(need, level)
    local turn, round = 0, {}
    for i = 0, n - 1 do
      local machine = machines[(i + math.floor(now / 1000)) % n + 1]
      if machine[2] > level then
        turn = turn + 1
        if machine[1] == me and turn <= left then target = target + 1 end
      end
    end
  else
    target = need + math.floor(left / n)
    for i = 1, left % n do
      if machines[i][1] == me then target = target + 1 end
    end
  end
  target = math.min(target, limit)
  local granted, holds = target, held
  if target > held then
    granted = held
    if now - born >= settling then granted = held + math.max(0, math.min(limit - taken - held, target - held)) end
    holds = granted
  end
  redis.call('HSET', key, me, string.format('%d %d %d', holds, need, now + lasts))
  redis.call('PEXPIRE', key, lasts * 2)
  out[#out + 1] = granted
end
return out
";

/// Holds what was found among the reports.
#[derive(Debug, Default)]
pub(super) struct ReportsRead {
    /// The number that was refused there.
    pub(super) refused: u64,
    /// The last report that was read, or the last that there is if none was to be read.
    pub(super) last: Bytes,
    /// The reports of others.
    pub(super) reports: Vec<Bytes>,
}

/// Writes a report, and reads those after `after`.
pub(super) async fn exchange(
    values: &Values,
    session: &str,
    after: Option<&Bytes>,
    report: Option<&Bytes>,
    deadline: Duration,
) -> Result<ReportsRead, LinkError> {
    let arguments = [
        after.cloned().unwrap_or_default(),
        Bytes::copy_from_slice(session.as_bytes()),
        report.cloned().unwrap_or_default(),
        number(REPORT_BYTES_MAX),
        millis(REPORTS_LAST),
        number(REPORTS_MAX),
        number(READ_MAX),
    ];
    let mut found = ReportsRead::default();
    for (at, reply) in values.script(EXCHANGE, &[REPORTS.to_owned()], &arguments, deadline).await?.into_iter().enumerate() {
        match (at, reply) {
            (0, Reply::Number(refused)) => found.refused = u64::try_from(refused).unwrap_or(0),
            (1, Reply::Text(last)) => found.last = last,
            (_, Reply::Text(report)) => found.reports.push(report),
            // No script of ours returns this.
            (_, Reply::Number(_)) => {}
        }
    }
    Ok(found)
}

/// Asks for places at origins, at most [`ORIGINS_AT_ONCE_MAX`]. Returns what was refused there, and the places that this machine may use.
pub(super) async fn grant(
    values: &Values,
    session: &str,
    asked: &[(String, PlaceDemand)],
    deadline: Duration,
) -> Result<(u64, Vec<usize>), LinkError> {
    let names: Vec<String> = asked.iter().map(|(hash, _)| format!("origin:{hash}")).collect();
    let mut arguments = vec![Bytes::copy_from_slice(session.as_bytes()), millis(GRANT_LASTS), millis(SETTLING), number(MACHINES_MAX)];
    for (_, places) in asked {
        arguments.extend([places.limit, places.need, places.held].map(number));
    }
    let mut replies = values.script(GRANT, &names, &arguments, deadline).await?.into_iter().map(|reply| match reply {
        Reply::Number(number) => usize::try_from(number).unwrap_or(0),
        Reply::Text(_) => 0,
    });
    let refused = replies.next().unwrap_or(0);
    Ok((u64::try_from(refused).unwrap_or(0), replies.collect()))
}

fn number(number: usize) -> Bytes {
    Bytes::from(number.to_string())
}

fn millis(duration: Duration) -> Bytes {
    Bytes::from(duration.as_millis().to_string())
}
