//! Traces of requests to an OpenTelemetry collector, from a thread of its own.
//!
//! Absent from this room: the request path. Whoever has a span hands it over and goes on; a full queue drops it, and the drop is counted.
