//! The disk tier.

mod io;
