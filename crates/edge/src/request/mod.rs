//! What HTTP/1.1, 2 and 3 share about a request, from its head to the line in the log.
//!
//! In the order of a request's life: [`head`] reads it, [`hit`] answers it from the store where that is possible, with the help of [`recall`];
//! else it gets [`content`] and goes to the service, and [`interim`] and [`response`] lead back. [`refusal`] is the answer to what is not
//! a request, and [`log_line`] is what is left of each in the end.
//!
//! Not here: anything about bytes on their way. Each protocol writes its own, and none of them uses another.

pub(crate) mod content;
pub(crate) mod head;
mod hit;
pub(crate) mod interim;
pub(crate) mod log_line;
pub(crate) mod recall;
pub(crate) mod refusal;
pub(crate) mod response;
