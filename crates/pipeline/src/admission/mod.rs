//! The first steps of a request, before anybody asks what is stored.

pub(crate) mod https;
pub(crate) mod password;
mod twin_host;
