mod authority;
mod invalidation;

pub use authority::{Purging, TokenCheck};
