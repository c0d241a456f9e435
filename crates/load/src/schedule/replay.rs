//! Reads a log.
