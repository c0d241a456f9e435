//! Traces of requests to an OpenTelemetry collector, over OTLP/HTTP with protobuf, from a thread of its own.
//!
//! Whoever has a span offers it to [`Spans`] and goes on: a full queue drops it, and the drop is counted. The thread of the [`Exporter`] takes what
//! waits, in batches, and sends it until the collector has taken it, has refused it, or has had its time.
//!
//! Absent from this room: the request path, and the wall clock. A span brings its times along. OpenTelemetry's own SDK is not used, as its exporters
//! want threads and runtimes of a kind that workers do not have.
//!
//! | what is bounded | by |
//! |---|---|
//! | spans that wait or are on their way | `SPANS_MAX`: 2,048, with texts of at most 4 KiB each, so 8 MiB |
//! | spans in one request; how long the first of them waits | `BATCH`: 512; `INTERVAL`: 1 s |
//! | one attempt to send; all attempts for one batch | `ATTEMPT`: 10 s; `RETRY_FOR`: 30 s, `ATTEMPTS_MAX`: 5 |
//! | what is read of a collector's answer | `ANSWER_BYTES_MAX`: 64 KiB |

mod delivery;
mod exporter;
mod otlp;
mod queue;
mod retry;
mod span;
mod transport;

pub use exporter::{Exporter, Options};
pub use queue::{Counts, CountsSnapshot, Spans};
pub use span::{Kind, Span, Value, shortened};
