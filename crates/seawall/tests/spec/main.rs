//! What Seawall promises, as its clients and its origins see it: the whole server, from socket to socket.
//!
//! One file per subject. A test reads as what the origin says and what the client sees, side by side; time is a clock that moves when it
//! is told, and events are ordered by gates.

mod acme;
mod again;
mod auth;
mod codings;
mod collapse;
mod conditional;
mod directives;
mod disk;
mod early_hints;
mod errors;
mod escapes;
mod explain;
mod failures;
mod forwarding;
mod freshness;
mod ghost;
mod ghost_signals;
mod h1;
mod h2;
mod http3;
mod https;
mod identity;
mod interim;
mod invalidation;
mod keys;
mod limits;
mod log;
mod malformed;
mod members;
mod metrics;
mod operator;
mod parts;
mod purge;
mod purge_dialects;
mod query;
mod ranges;
mod refill;
mod reload;
mod routes;
mod shutdown;
mod site;
mod sites;
mod sources;
mod spool;
mod stale;
mod static_files;
mod superseded;
mod targeted;
mod tls;
mod two_visitors;
mod validation;
mod vary;
mod warm;
