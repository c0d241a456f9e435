//! Metrics, purge and health on a listener of their own
