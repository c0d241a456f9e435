//! HTTP/3.

use super::Worker;
use crate::record::Tally;

pub(super) fn work(worker: Worker, _: u16) -> Tally {
    worker.unable("HTTP/3 is not there yet".to_owned())
}
