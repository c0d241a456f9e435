//! What requests and responses taught: bounded tables that all workers share. Losing any of them costs speed alone.

pub(crate) mod cookies;
pub(crate) mod dictionaries;
pub(crate) mod early_hints;
pub(crate) mod not_kept;
pub(crate) mod popularity;
pub(crate) mod proofs;
pub(crate) mod refill;
pub(crate) mod tier_proof;
pub(crate) mod trouble;
