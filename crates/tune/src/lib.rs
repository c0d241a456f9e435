//! Settings for the machine that a site shares with its PHP and its database: what `seawall tune` finds, says, and writes.
//!
//! Three steps. [`Machine`] and [`Stack`] are read ([`read`]); [`advise`] makes an [`Advice`] of them, and is a pure function; [`Changes`] turns that
//! into files, shows the differences, and writes them if it is told to. Everything is read below a [`Root`], so that a test has a machine of its own.
//!
//! Absent from this room: Seawall itself. What it takes of the memory is an argument.

mod advise;
mod change;
mod conf;
mod diff;
mod facts;
mod find;
mod machine;
mod size;

pub use advise::{Advice, Share, advise};
pub use change::{Changes, Outcome, TuneError};
pub use conf::Style;
pub use facts::{
    Children, Database, DatabaseSize, Facts, Flavour, FoundValue, Machine, Php, Pool, Redis, Seawall, Setting, SettingLocation, Site, Stack,
};
pub use find::{Root, read};
pub use size::{GIB, KIB, MIB, in_words};
