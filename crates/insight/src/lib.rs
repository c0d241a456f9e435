//! What happened, counted in bounded memory: sketches of what leads, series of seconds and minutes, the last requests that were not plain hits, and
//! alerts.
//!
//! Absent from this room: sockets, tasks, the clock (`now` is an argument), the cache. It knows requests as values, and keeps no client's address, no
//! value of a cookie and no value of a query parameter.

pub mod alerts;
