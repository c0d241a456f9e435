//! Servers that delay, fail, refuse and leak exactly as agreed, so that what a load tester says about them can be checked.
//!
//! | server | does | knows |
//! |---|---|---|
//! | [`Truth`] | answers after a delay, over HTTP/1.1, 2 or 3 | each percentile, computed ([`Delay::percentiles`]), and how late it was itself |
//! | [`Misbehaving`] | fails in the ways of a [`Fault`] list | how often it did which |
//! | [`Bucket`] | answers so many requests a second, and refuses or delays the others | how many |
//! | [`Proxy`] | hands bytes on, later | connections |
//! | [`Leaking`] | returns the request that it got, and now and then another client's | how many it leaked |
//!
//! Each listens on a free port of the loopback address, on a thread of its own, and ends when it is dropped.
//!
//! Absent on purpose: any client, the load tester, and Seawall. They must not share code with what judges them. Nothing here is for production.

mod alarm;
mod bucket;
mod delay;
mod fault;
mod http1;
mod leaking;
mod proxy;
mod secure;
mod serve;
mod truth;

pub use self::{
    bucket::{Bucket, WhenEmpty},
    delay::{Delay, Percentiles},
    fault::{Fault, Misbehaving, closed_port},
    leaking::Leaking,
    proxy::Proxy,
    truth::{Speaks, Truth},
};
