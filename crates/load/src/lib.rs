//! A load tester whose numbers can be trusted: it says how late it was itself, who was the bottleneck, and what the cache did.
//!
//! A run is a [`Plan`]: *what* is asked ([`requests`]), *when* ([`Schedule`], a pure function of time), *how* ([`Protocol`]), and *until when*
//! ([`Stop`]). These are four values that know nothing of each other. [`run`] puts them together: each worker thread ([`engine`]) follows its share
//! of the schedule and records each request ([`record`]); the records become [`Results`], which [`output`] shows.
//!
//! Absent from this crate: any code of Seawall that it measures.

pub mod answer;
pub mod compare;
pub mod engine;
pub mod fetch;
pub mod find_limit;
pub mod output;
pub mod permission;
pub mod plan;
pub mod prepare;
pub mod record;
pub mod requests;
pub mod results;
pub mod schedule;
pub mod shape;
pub mod verdict;

pub use self::{
    engine::{Error, Watch, run},
    plan::{Plan, Protocol, Stop},
    results::Results,
    schedule::Schedule,
};
