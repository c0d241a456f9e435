//! A web accelerator for publishing sites
