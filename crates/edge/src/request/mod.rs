//! What all protocols share about a request, from its head to the line in the log.

pub(crate) mod log_line;
pub(crate) mod recall;
