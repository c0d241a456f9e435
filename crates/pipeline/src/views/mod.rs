//! What operators are shown: nothing here changes what a request is answered.

pub(crate) mod counters;
mod explain;
pub(crate) mod inventory;
