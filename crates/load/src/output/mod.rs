//! Shows results: to people, to programs, and as pictures.

mod summary;

pub use self::summary::summary;
