//! Keeps what happened when: a row of columns for each second of an hour, each minute of a week and each ten minutes of a week, for each
//! site.
//!
//! A row is written as the set of its columns that are not zero and their values, seven bits a byte: some twenty bytes. Rows in which nothing
//! happened are not written. All tracks together have a bound; if it is exceeded, the track that holds most gives up what is oldest and finest. So one
//! busy site takes nothing from another that holds less than its share.

use std::collections::VecDeque;

use admin_api::COLUMNS;

use crate::{
    disk::{Broken, Reader, put},
    facts::{BUCKETS, Row},
    totals::percentile,
};

/// Bytes that the rows of all tracks take at most, with what each site takes for itself.
pub(crate) const SERIES_BYTES_MAX: usize = 3 << 20;
/// Bytes by which each site lowers that: for its sums, and for its part of the lists.
const SITE_BYTES: usize = 5 << 10;

/// Returns the bytes that the rows of all tracks take at most, with so many sites.
pub(crate) const fn bytes_max(sites: usize) -> usize {
    SERIES_BYTES_MAX.saturating_sub(sites * SITE_BYTES)
}

/// Bytes at which a chunk is full. The oldest chunk is what is given up at once.
const CHUNK_BYTES: usize = 1_024;
/// Bytes by which the last chunk grows.
const CHUNK_GROWTH: usize = 128;

/// The number of columns that are sums. Two percentiles follow.
const SUMS: usize = COLUMNS.len() - 2;

/// The columns of a row.
pub(crate) type Columns = [u64; COLUMNS.len()];

/// The steps of the tiers, in seconds, and the number of rows that each keeps. A week has two hours more: so that what happened in the same hour a
/// week ago is there.
const TIERS: [(u64, u64); 3] = [(1, 3_600), (60, 10_080), (600, 1_020)];

/// Holds what happened at one site, or at all together.
#[derive(Clone, Debug)]
pub(crate) struct Track {
    tiers: [Tier; 3],
}

/// Rows of one step.
#[derive(Clone, Debug)]
struct Tier {
    /// The row that is still being added to.
    open: Option<OpenRow>,
    chunks: VecDeque<Chunk>,
    /// Rows before this one are not known any more.
    since: u64,
    bytes: usize,
}

/// A row that is being added to.
#[derive(Clone, Debug)]
struct OpenRow {
    index: u64,
    sums: [u64; SUMS],
    latencies: [u32; BUCKETS],
    /// The time that the slowest response took, in microseconds; zero: that is not known.
    slowest: u64,
}

/// Rows one after the other.
#[derive(Clone, Debug)]
struct Chunk {
    /// The first and the last row, counted in steps since the epoch.
    first: u64,
    last: u64,
    bytes: Vec<u8>,
}

/// Returns the columns of a row, but for percentiles, how long its responses took, and how long the slowest did.
fn summed(row: &Row) -> ([u64; SUMS], [u32; BUCKETS], u64) {
    let of = |results: &[usize], what: fn(&crate::Sum) -> u64| results.iter().flat_map(|at| &row.sums[*at]).map(what).sum::<u64>();
    let requests = |results: &[usize]| of(results, |sum| sum.requests);
    // All but what was refused before it was a request.
    let (all, hits) = ([0, 1, 2, 3, 4, 5, 6, 8], [0, 1, 2]);
    let sums = [
        requests(&all),
        requests(&hits),
        requests(&[1, 2]),
        requests(&[3, 4, 5]),
        requests(&[6]),
        row.server_errors,
        row.client_errors,
        of(&all, |sum| sum.bytes),
        of(&hits, |sum| sum.bytes),
        row.origin_requests,
        row.origin_failures,
        row.origin_micros,
    ];
    let mut latencies = [0_u32; BUCKETS];
    for at in all {
        for (sum, new) in latencies.iter_mut().zip(&row.latencies[at]) {
            *sum = sum.saturating_add(u32::try_from(*new).unwrap_or(u32::MAX));
        }
    }
    (sums, latencies, all.iter().map(|at| row.slowest[*at]).max().unwrap_or_default())
}

/// Returns the columns of a row.
pub(crate) fn columns(row: &Row) -> Columns {
    let (sums, latencies, slowest) = summed(row);
    OpenRow { index: 0, sums, latencies, slowest }.columns()
}

impl OpenRow {
    fn columns(&self) -> Columns {
        let mut columns = [0; COLUMNS.len()];
        columns[..SUMS].copy_from_slice(&self.sums);
        let buckets = self.latencies.map(u64::from);
        columns[SUMS] = of_byte(to_byte(percentile(&buckets, 50, self.slowest)));
        columns[SUMS + 1] = of_byte(to_byte(percentile(&buckets, 99, self.slowest)));
        columns
    }

    fn add(&mut self, (sums, latencies, slowest): (&[u64; SUMS], &[u32; BUCKETS], u64)) {
        self.slowest = self.slowest.max(slowest);
        for (sum, new) in self.sums.iter_mut().zip(sums) {
            *sum = sum.saturating_add(*new);
        }
        for (sum, new) in self.latencies.iter_mut().zip(latencies) {
            *sum = sum.saturating_add(*new);
        }
    }
}

/// Returns the byte of a percentile: its three highest bits, and how many follow. A percentile of a few buckets is no better, and one byte is enough.
fn to_byte(value: u64) -> u64 {
    let bits = u64::from(u64::BITS - value.leading_zeros());
    let dropped = bits.saturating_sub(4);
    if dropped == 0 { value } else { ((value >> dropped) & 7) + 8 * dropped + 8 }
}

/// Returns the percentile that such a byte stands for.
fn of_byte(byte: u64) -> u64 {
    if byte < 16 { byte } else { (8 + byte % 8) << ((byte - 8) / 8).min(60) }
}

impl Default for Track {
    fn default() -> Self {
        Self { tiers: std::array::from_fn(|_| Tier { open: None, chunks: VecDeque::new(), since: 0, bytes: 0 }) }
    }
}

impl Track {
    /// Adds what happened in a second, counted since the epoch.
    pub(crate) fn second(&mut self, second: u64, row: &Row) {
        let (sums, latencies, slowest) = summed(row);
        for (tier, (step, keep)) in self.tiers.iter_mut().zip(TIERS) {
            tier.add(second / step, keep, (&sums, &latencies, slowest));
        }
    }

    /// Returns the bytes that its rows take.
    pub(crate) fn bytes(&self) -> usize {
        self.tiers.iter().map(|tier| tier.bytes).sum()
    }

    /// Gives up what is oldest and finest: minutes that are older than a day, seconds that are older than ten minutes, minutes that are older than
    /// three hours, seconds older than one minute, minutes older than an hour; after these whatever is most. Returns whether there was anything.
    pub(crate) fn give_up(&mut self, second: u64) -> bool {
        let is_older = |tier: &Tier, (step, age): (u64, u64)| {
            tier.chunks.len() > 1 && tier.chunks.front().is_some_and(|chunk| (chunk.last + 1) * step + age <= second)
        };
        let order = [(1, (60, 86_400)), (0, (1, 600)), (1, (60, 10_800)), (0, (1, 60)), (1, (60, 3_600))];
        let found = order.iter().find(|(tier, age)| is_older(&self.tiers[*tier], *age)).map(|(tier, _)| *tier);
        let most = || (0..self.tiers.len()).max_by_key(|at| self.tiers[*at].bytes).filter(|at| !self.tiers[*at].chunks.is_empty());
        let Some(at) = found.or_else(most) else { return false };
        self.tiers[at].forget_oldest();
        true
    }

    /// Returns the rows of a tier from one step to another, which is not among them. `ran` is the track in which each second has a row in which
    /// Seawall ran. The last row may still be added to.
    fn rows(&self, ran: &Self, at: usize, from: u64, until: u64) -> Vec<Option<Columns>> {
        let length = usize::try_from(until.saturating_sub(from)).unwrap_or(0);
        let mut rows = vec![None; length];
        let place = |index: u64| index.checked_sub(from).filter(|at| *at < length as u64).and_then(|at| usize::try_from(at).ok());
        let (own, all) = (&self.tiers[at], &ran.tiers[at]);
        let since = own.since;
        all.each_from(from, |index, _| {
            if let Some(at) = place(index).filter(|_| index >= since) {
                rows[at] = Some([0; COLUMNS.len()]);
            }
        });
        own.each_from(from, |index, columns| {
            if let Some(row) = place(index).and_then(|at| rows[at].as_mut()) {
                *row = columns;
            }
        });
        rows
    }

    /// Returns the rows of the last so many steps up to this second: the step, the time of the first row in seconds, and the rows. `tier`: 0 for
    /// seconds, 1 for minutes, 2 for ten minutes. The last step is among them although it is not over: a day that leaves out what is now would show
    /// less than an hour.
    pub(crate) fn last(&self, ran: &Self, tier: usize, count: u64, second: u64) -> (u64, u64, Vec<Option<Columns>>) {
        let (step, _) = TIERS[tier];
        let until = second.div_ceil(step);
        let from = until.saturating_sub(count);
        (step, from * step, self.rows(ran, tier, from, until))
    }

    /// Returns the sums of a stretch of time in seconds, from the finest tier that reaches back so far. `None`: Seawall did not run then.
    pub(crate) fn sum(&self, ran: &Self, from: u64, until: u64) -> Option<Columns> {
        let newest = ran.newest()?;
        let reaches = |at: usize| {
            let ((step, keep), own) = (TIERS[at], &self.tiers[at]);
            let first = from.div_ceil(step);
            first + keep > newest / step && first >= own.since.max(ran.tiers[at].since) && from + step <= until
        };
        let at = (0..TIERS.len()).find(|at| reaches(*at)).unwrap_or(TIERS.len() - 1);
        let step = TIERS[at].0;
        let rows = self.rows(ran, at, from.div_ceil(step), until.div_ceil(step));
        rows.into_iter()
            .flatten()
            .reduce(|mut sum, row| {
                for (sum, value) in sum.iter_mut().zip(row).take(SUMS) {
                    *sum = sum.saturating_add(value);
                }
                sum
            })
            .map(|mut sum| {
                sum[SUMS..].fill(0);
                sum
            })
    }

    /// Returns the last second that it has.
    pub(crate) fn newest(&self) -> Option<u64> {
        self.tiers[0].open.as_ref().map(|open| open.index)
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        for tier in &self.tiers {
            put(out, tier.since);
            put(out, u64::from(tier.open.is_some()));
            if let Some(open) = &tier.open {
                put(out, open.index);
                open.sums.iter().for_each(|sum| put(out, *sum));
                open.latencies.iter().for_each(|count| put(out, u64::from(*count)));
                put(out, open.slowest);
            }
            put(out, tier.chunks.len() as u64);
            for chunk in &tier.chunks {
                put(out, chunk.first);
                put(out, chunk.last);
                put(out, chunk.bytes.len() as u64);
                out.extend_from_slice(&chunk.bytes);
            }
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Broken> {
        let mut track = Self::default();
        for tier in &mut track.tiers {
            tier.since = reader.number()?;
            if reader.number()? == 1 {
                let index = reader.number()?;
                let (mut sums, mut latencies) = ([0; SUMS], [0; BUCKETS]);
                for sum in &mut sums {
                    *sum = reader.number()?;
                }
                for count in &mut latencies {
                    *count = reader.number_of()?;
                }
                tier.open = Some(OpenRow { index, sums, latencies, slowest: reader.slowest()? });
            }
            for _ in 0..reader.number()? {
                let (first, last) = (reader.number()?, reader.number()?);
                let length = reader.number_of()?;
                let bytes = reader.bytes(length)?.to_vec();
                let after = tier.chunks.back().is_none_or(|before| before.last < first);
                if first > last || !after || !Chunk::is_sound(first, last, &bytes) {
                    return Err(Broken);
                }
                tier.bytes += Chunk::overhead() + bytes.capacity();
                tier.chunks.push_back(Chunk { first, last, bytes });
            }
        }
        Ok(track)
    }
}

impl Tier {
    fn add(&mut self, index: u64, keep: u64, row: (&[u64; SUMS], &[u32; BUCKETS], u64)) {
        match &mut self.open {
            // A clock that was put back a little: what happened then is added to what is there.
            Some(open) if index <= open.index && open.index - index <= keep / 60 => {
                open.add(row);
                return;
            }
            Some(open) if index < open.index => self.put_back(index),
            Some(_) => self.close(keep),
            None => {}
        }
        let (sums, latencies, slowest) = row;
        self.open = Some(OpenRow { index, sums: *sums, latencies: *latencies, slowest });
    }

    /// Writes the open row down.
    fn close(&mut self, keep: u64) {
        let Some(open) = self.open.take() else { return };
        let (index, columns) = (open.index, open.columns());
        while self.chunks.front().is_some_and(|chunk| chunk.last + keep <= index) {
            self.forget_oldest();
        }
        if self.chunks.back().is_none_or(|chunk| chunk.bytes.len() >= CHUNK_BYTES) {
            if let Some(full) = self.chunks.back_mut() {
                self.bytes -= full.bytes.capacity();
                full.bytes.shrink_to_fit();
                self.bytes += full.bytes.capacity();
            }
            self.chunks.push_back(Chunk { first: index, last: index, bytes: Vec::new() });
            self.bytes += Chunk::overhead();
        }
        let chunk = self.chunks.back_mut().expect("one was added if there was none");
        self.bytes -= chunk.bytes.capacity();
        chunk.write(index, &columns);
        self.bytes += chunk.bytes.capacity();
    }

    /// Forgets what is later than a row: the clock was put back.
    fn put_back(&mut self, index: u64) {
        self.open = None;
        while let Some(chunk) = self.chunks.pop_back_if(|chunk| chunk.last >= index) {
            self.bytes -= Chunk::overhead() + chunk.bytes.capacity();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(chunk) = self.chunks.pop_front() {
            self.bytes -= Chunk::overhead() + chunk.bytes.capacity();
            self.since = chunk.last + 1;
        }
    }

    fn each_from(&self, from: u64, mut each: impl FnMut(u64, Columns)) {
        for chunk in self.chunks.iter().filter(|chunk| chunk.last >= from) {
            let mut reader = Reader::new(&chunk.bytes);
            let mut index = chunk.first;
            while let Ok((skipped, columns)) = read_row(&mut reader) {
                index += skipped;
                each(index, columns);
            }
        }
        if let Some(open) = &self.open {
            each(open.index, open.columns());
        }
    }
}

/// The bit of a row's set of columns that says that steps were skipped since the row before.
const SKIPS: u16 = 1 << COLUMNS.len();

impl Chunk {
    const fn overhead() -> usize {
        size_of::<Self>() + 16
    }

    fn write(&mut self, index: u64, columns: &Columns) {
        let skipped = index - self.last;
        let usual = u64::from(!self.bytes.is_empty());
        let mut row = Vec::with_capacity(64);
        let set = columns.iter().enumerate().filter(|(_, value)| **value != 0).fold(0_u16, |set, (at, _)| set | 1 << at);
        let skips = skipped != usual;
        row.extend_from_slice(&(if skips { set | SKIPS } else { set }).to_le_bytes());
        if skips {
            put(&mut row, skipped);
        }
        for (at, value) in columns.iter().enumerate().filter(|(_, value)| **value != 0) {
            put(&mut row, if at < SUMS { *value } else { to_byte(*value) });
        }
        if self.bytes.capacity() - self.bytes.len() < row.len() {
            self.bytes.reserve_exact(CHUNK_GROWTH.max(row.len()));
        }
        self.bytes.extend_from_slice(&row);
        self.last = index;
    }

    /// Returns whether rows from disk can be read, and end where they should.
    fn is_sound(first: u64, last: u64, bytes: &[u8]) -> bool {
        let (mut reader, mut index, mut any) = (Reader::new(bytes), first, false);
        while !reader.is_at_end() {
            let Ok((skipped, _)) = read_row_after(&mut reader, any) else { return false };
            index = index.saturating_add(skipped);
            any = true;
        }
        any && index == last
    }
}

/// Reads a row: how many steps it is after the one before, and its columns.
fn read_row_after(reader: &mut Reader<'_>, any_before: bool) -> Result<(u64, Columns), Broken> {
    let set = u16::from_le_bytes(*reader.bytes(2)?.first_chunk().ok_or(Broken)?);
    let skipped = if set & SKIPS != 0 { reader.number()? } else { u64::from(any_before) };
    let mut columns = [0; COLUMNS.len()];
    for (at, column) in columns.iter_mut().enumerate() {
        if set & (1 << at) != 0 {
            let value = reader.number()?;
            *column = if at < SUMS { value } else { of_byte(value) };
        }
    }
    Ok((skipped, columns))
}

fn read_row(reader: &mut Reader<'_>) -> Result<(u64, Columns), Broken> {
    let any_before = !reader.is_at_start();
    read_row_after(reader, any_before)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn busy(requests: u64) -> Row {
        let mut row = Row { origin_requests: 3, origin_micros: 120_000, ..Row::default() };
        row.sums[0][0] = crate::Sum { requests, bytes: requests * 30_000, origin_micros: 0 };
        row.sums[5][0] = crate::Sum { requests: 3, bytes: 90_000, origin_micros: 120_000 };
        (row.latencies[0][2], row.latencies[5][11]) = (requests, 3);
        row
    }

    #[test]
    fn a_percentile_in_one_byte_is_within_an_eighth() {
        for value in (0..100).chain((0..33).flat_map(|shift| [1 << shift, (1_u64 << shift) * 5 / 4 + 1, (2_u64 << shift) - 1])) {
            let (byte, shown) = (to_byte(value), of_byte(to_byte(value)));
            assert!(byte < 256 && shown <= value && value - shown <= value / 8, "{value}: {byte}, {shown}");
            assert_eq!(to_byte(shown), byte);
        }
    }

    /// Both take between 1 s and 2.5 s, which is one bucket, so it is the slowest that says how long: 2 s, of which a byte may take an eighth.
    #[test]
    fn the_row_of_a_minute_is_as_slow_as_the_slowest_of_its_seconds_whenever_it_came() {
        let bucket = crate::BUCKET_MICROS.iter().position(|bound| *bound == 2_500_000).expect("a bound");
        for of_seconds in [[1_100_000, 2_000_000], [2_000_000, 1_100_000]] {
            let (mut track, minute) = (Track::default(), 2_000_000_040);
            for (second, slowest) in (minute..).zip(of_seconds) {
                let mut row = Row::default();
                (row.sums[5][0].requests, row.latencies[5][bucket], row.slowest[5]) = (1, 1, slowest);
                track.second(second, &row);
            }
            let rows = track.last(&track, 1, 60, minute + 60).2;
            let p99: Vec<u64> = rows.iter().flatten().map(|row| row[SUMS + 1]).collect();
            assert!(matches!(p99[..], [1_750_000..=2_000_000]), "{of_seconds:?}: {p99:?}");
        }
    }

    #[test]
    fn twenty_sites_that_are_busy_each_second_have_an_hour_a_day_and_a_week() {
        let mut track = Track::default();
        let mut random = fastrand::Rng::with_seed(1);
        let now = 2_000_000_000;
        // A week in minutes, then the last hour in seconds.
        for minute in 0..10_080 - 60 {
            track.second(now - 604_800 + minute * 60, &busy(random.u64(600..6_000)));
        }
        for second in now - 3_600..now {
            track.second(second, &busy(random.u64(10..100)));
        }
        let all = track.bytes();
        let minutes_of_a_day = track.tiers[1].bytes / 7;
        let of_site = track.tiers[0].bytes + minutes_of_a_day + track.tiers[2].bytes;
        assert!(all + 20 * of_site <= bytes_max(20), "{all} and 20 of {of_site}");
    }

    #[test]
    fn the_track_that_holds_most_gives_up_its_finest_and_oldest() {
        let mut track = Track::default();
        let now = 2_000_000_000;
        for minute in 0..2 * 1_440 {
            track.second(now - 2 * 86_400 + minute * 60, &busy(1));
        }
        for second in now - 1_800..now {
            track.second(second, &busy(1));
        }
        let count = |track: &Track, tier: usize, count: u64| track.last(track, tier, count, now).2.iter().flatten().count();
        let seconds = count(&track, 0, 3_600);
        // Minutes older than a day go first.
        while track.tiers[1].since == 0 {
            assert!(track.give_up(now));
        }
        assert_eq!((count(&track, 0, 3_600), count(&track, 2, 1_008) > 280), (seconds, true));
        let mut before = track.bytes();
        while track.give_up(now) {
            assert!(track.bytes() < before);
            before = track.bytes();
        }
        assert_eq!(before, 0);
    }

    proptest! {
        #[test]
        fn a_track_is_the_rows_that_it_was_told(told in prop::collection::btree_map(0_u64..5_000, 0_u64..1_000_000, 1..200)) {
            let (mut track, start) = (Track::default(), 2_000_000_000);
            for (second, requests) in &told {
                let mut row = Row::default();
                row.sums[0][0].requests = *requests;
                track.second(start + second, &row);
            }
            let last = told.keys().last().expect("one at least");
            let now = start + last + 1;
            let (_, from, rows) = track.last(&track, 0, 3_600, now);
            for (at, row) in (from..).zip(rows) {
                let expected = at.checked_sub(start).and_then(|at| told.get(&at));
                prop_assert_eq!(row.map(|row| row[0]), expected.copied(), "second {}", at);
            }
            let mut bytes = Vec::new();
            track.write(&mut bytes);
            let mut reader = Reader::new(&bytes);
            let again = Track::read(&mut reader);
            prop_assert!(reader.end().is_ok());
            prop_assert_eq!(again.expect("what was written").last(&track, 0, 3_600, now), track.last(&track, 0, 3_600, now));
        }
    }
}
