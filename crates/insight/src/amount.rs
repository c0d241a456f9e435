//! The cost of something: the origin's time, requests, bytes; and sums of it for this period and the one before.

/// A cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) micros: u64,
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
}

impl Amount {
    /// Returns the number by which costs are ranked: the microseconds that it costs the origin, and a microsecond for each request, so that
    /// what costs no time has a rank.
    pub(crate) const fn weight(self) -> u64 {
        self.micros.saturating_add(self.requests)
    }

    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            micros: self.micros.saturating_add(other.micros),
            requests: self.requests.saturating_add(other.requests),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    pub(crate) const fn minus(self, other: Self) -> Self {
        Self {
            micros: self.micros.saturating_sub(other.micros),
            requests: self.requests.saturating_sub(other.requests),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

/// A sum over this period and the one before: what is older is forgotten, so that what was mended is not blamed for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lately<T> {
    pub(crate) now: T,
    pub(crate) before: T,
}

impl<T: Default> Lately<T> {
    /// Begins another period.
    pub(crate) fn turn(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }
}

impl Lately<Amount> {
    pub(crate) const fn of(now: Amount) -> Self {
        Self { now, before: Amount { micros: 0, requests: 0, bytes: 0 } }
    }

    pub(crate) const fn sum(&self) -> Amount {
        self.now.plus(self.before)
    }

    pub(crate) fn add(&mut self, amount: Amount) {
        self.now = self.now.plus(amount);
    }
}

impl Lately<u64> {
    pub(crate) const fn total(&self) -> u64 {
        self.now.saturating_add(self.before)
    }
}
