//! The bucket of one address: what its requests may still use, and how machines share it.
//!
//! # The rule
//!
//! A bucket holds `burst` requests at most and fills by `per_second`. Each request that is admitted takes one out. A machine that stands alone admits a
//! request if there is one left.
//!
//! Machines that share a limit each have a copy of the bucket. Ten times a second they tell each other how many requests they admitted
//! ([`charge`](Bucket::charge)) and were asked for. A copy may fall below nothing by that: what was admitted too much is saved later, so that all
//! machines together never admit more than the bucket gives, but for what nobody has heard of yet.
//!
//! So that this is little, a machine uses no more between two exchanges than its *own part*: a share of what is left, and the same share of what
//! flows in meanwhile. The share is this machine's part in the requests of the last exchanges ([`MEMORY`]); of an address that nobody has
//! heard of before it is at most one part of as many as there are machines, for as long as others may have been asked unheard ([`YOUNG`]). No share is
//! less than half of that. When an address moves to another machine, its share moves with it within some exchanges, and what nobody used
//! meanwhile is still left.
//!
//! - While others have asked for the address a moment ago, what they have admitted since is not known. So a machine takes but a part of its share of what
//!   is left ([`CAUTION`]). Otherwise all of them would take the same rest, then nothing, and so on.
//! - What others admitted is charged later than it was admitted. A bucket that was full in between has lost what flowed in. So while others ask, it may
//!   hold a little more than `burst` ([`LATE`]), of which nothing is given out.
//! - Who was silent for a minute ([`FORGOTTEN`]) counts as one of whom nobody has heard, wherever it was before.
//! - A share of less than one request would admit nobody. So each machine admits one request between two exchanges as long as the whole bucket has one.
//!   A small limit is exceeded by that for a moment, by one request of each other machine.
//! - A machine that hears nothing of the others ([`LimitSharing::Apart`]) has a bucket of its own, which is as large a part as there are machines.

use std::time::Duration;

use super::{LimitSharing, Rate};

/// The least that counts as a whole request, as sums of parts are not exact.
const ONE: f64 = 1.0 - 1e-6;
/// The part of what was asked before that still counts when a share is found, from one exchange in which the address was active to the next.
const MEMORY: f32 = 0.5;
/// The requests that every machine counts as having been asked for, so that one that hears of an address first does not take all of it.
const EQUAL: f32 = 0.5;
/// The least share, as a part of an equal one.
const LEAST: f32 = 0.5;
/// The part of its share that a machine takes of what is left while others are active, too.
const CAUTION: f64 = 0.7;
/// The milliseconds by which a charge of another machine may be late.
const LATE: u64 = 300;
/// The milliseconds for which another machine counts as active.
const ACTIVE: u64 = 1_000;
/// The milliseconds for which an address counts as one of whom the others have not been heard.
const YOUNG: u64 = 300;
/// The milliseconds of silence after which it is forgotten which machine was asked.
const FORGOTTEN: u64 = 60_000;

/// The bucket of one address.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    /// The number that stands for the address.
    pub(super) tag: u64,
    /// The time when it was filled last, in milliseconds.
    at: u64,
    /// The time when it was first asked for after a long silence.
    since: u64,
    /// The requests that are left, of all machines. Below zero: so many were too much.
    left: f64,
    /// The part of them that this machine may use before the next exchange.
    own: f64,
    /// This machine's share.
    share: f32,
    /// The requests that this machine was asked for in the last exchanges, and those of the others.
    weights: [f32; 2],
    /// The requests that the others were asked for since the last [`settle`](Self::settle).
    others: f32,
    /// The time when another machine was active last.
    others_at: Option<u64>,
    /// The requests that this machine admitted and was asked for, and has not told the others.
    untold: UntoldCounts,
    /// Whether it stands among those that the others are to be told of.
    pub(super) is_listed: bool,
    /// The requests that it was asked for, as it has told the others since the last [`settle`](Self::settle).
    told: u32,
}

/// The numbers of requests that a machine has admitted for an address, and was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct UntoldCounts {
    pub(super) admitted: u32,
    pub(super) asked: u32,
}

impl Bucket {
    /// Makes a full bucket for an address of which nothing is known.
    pub(super) fn new(tag: u64, rate: Rate, together: LimitSharing, now: u64) -> Self {
        let share = equal(together);
        let left = limit(rate, together).burst;
        Self {
            tag,
            at: now,
            since: now,
            left,
            own: left * f64::from(share),
            share,
            weights: [0.0; 2],
            others: 0.0,
            others_at: None,
            untold: UntoldCounts::default(),
            is_listed: false,
            told: 0,
        }
    }

    /// Asks for one request.
    ///
    /// # Errors
    /// Returns the milliseconds until there is one again, if nobody else asks.
    pub(super) fn ask(&mut self, rate: Rate, together: LimitSharing, now: u64) -> Result<(), u64> {
        self.fill(rate, together, now);
        let is_admitted = match together {
            LimitSharing::Alone | LimitSharing::Apart { .. } => self.left >= ONE,
            LimitSharing::With { .. } => self.own >= ONE || self.untold.admitted == 0 && self.left >= ONE,
        };
        // Nobody tells of it where there is nobody else.
        if !matches!(together, LimitSharing::Alone) {
            self.untold.asked = self.untold.asked.saturating_add(1);
        }
        if !is_admitted {
            return Err(millis((1.0 - self.left).max(0.0) / limit(rate, together).per_second));
        }
        self.left -= 1.0;
        self.own -= 1.0;
        if !matches!(together, LimitSharing::Alone) {
            self.untold.admitted = self.untold.admitted.saturating_add(1);
        }
        Ok(())
    }

    /// Charges what another machine has admitted.
    pub(super) fn charge(&mut self, admitted: u32, asked: u32, rate: Rate, together: LimitSharing, now: u64) {
        self.others_at = Some(now);
        self.fill(rate, together, now);
        let debt_max = rate.burst * f64::from(together.machines()) + rate.per_second;
        self.left = (self.left - f64::from(admitted)).max(-debt_max);
        self.others += asked as f32;
    }

    /// Takes what the others are to be told.
    pub(super) fn tell(&mut self) -> UntoldCounts {
        let untold = std::mem::take(&mut self.untold);
        self.told = self.told.saturating_add(untold.asked);
        untold
    }

    /// Returns what the others are to be told.
    pub(super) const fn untold(&self) -> UntoldCounts {
        self.untold
    }

    /// Finds this machine's share, and its own part until the next exchange: when this one is over.
    pub(super) fn settle(&mut self, rate: Rate, together: LimitSharing, now: u64) {
        self.fill(rate, together, now);
        let asked = [std::mem::take(&mut self.told) as f32, std::mem::take(&mut self.others)];
        if asked.iter().any(|asked| *asked > 0.0) {
            for (weight, asked) in self.weights.iter_mut().zip(asked) {
                *weight = *weight * MEMORY + asked;
            }
        }
        let [own, others] = self.weights;
        let equal = equal(together);
        let share = (own + EQUAL) / (own + others + EQUAL / equal);
        let is_young = now.saturating_sub(self.since) < YOUNG;
        self.share = share.max(LEAST * equal).min(if is_young { equal } else { 1.0 });
        let rest = self.left.min(limit(rate, together).burst);
        let caution = if self.others_are_active(now) && rest > 0.0 { CAUTION } else { 1.0 };
        self.own = rest * f64::from(self.share) * caution;
    }

    /// Returns what is left of the bucket, as a part of it: who has the most owes the least.
    pub(super) fn fullness(&self, rate: Rate, now: u64) -> f64 {
        let since = now.saturating_sub(self.at) as f64 / 1_000.0;
        ((self.left + since * rate.per_second) / rate.burst).min(1.0)
    }

    fn others_are_active(&self, now: u64) -> bool {
        self.others_at.is_some_and(|at| now.saturating_sub(at) < ACTIVE)
    }

    fn fill(&mut self, rate: Rate, together: LimitSharing, now: u64) {
        let passed = now.saturating_sub(self.at);
        let since = passed as f64 / 1_000.0;
        self.at = self.at.max(now);
        let limit = limit(rate, together);
        let spare = if matches!(together, LimitSharing::With { .. }) && self.others_are_active(now) { LATE as f64 / 1_000.0 } else { 0.0 };
        self.left = (self.left + since * limit.per_second).min(limit.burst + spare * limit.per_second);
        if passed > FORGOTTEN {
            (self.weights, self.share, self.since) = ([0.0; 2], equal(together), now);
        }
        let share = f64::from(self.share);
        self.own = (self.own + since * limit.per_second * share).min((limit.burst * share).max(1.0));
    }
}

/// Returns the limit by which a bucket is filled: a machine that is apart has its part of it, and room for one request at least.
fn limit(rate: Rate, together: LimitSharing) -> Rate {
    match together {
        LimitSharing::Alone | LimitSharing::With { .. } => rate,
        LimitSharing::Apart { machines } => {
            let machines = f64::from(machines.max(1));
            Rate { per_second: rate.per_second / machines, burst: (rate.burst / machines).max(1.0) }
        }
    }
}

/// Returns a share of which each machine has the same.
fn equal(together: LimitSharing) -> f32 {
    1.0 / together.machines() as f32
}

/// Returns the milliseconds of a time, the last one counted as a whole.
fn millis(seconds: f64) -> u64 {
    let wait = Duration::try_from_secs_f64(seconds - 1e-6).unwrap_or(if seconds > 1.0 { Duration::MAX } else { Duration::ZERO });
    u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).saturating_add(1)
}
