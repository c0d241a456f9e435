//! Shows results: to people, to programs, and as pictures.

pub mod quantity;
mod summary;

pub use self::summary::summary;
