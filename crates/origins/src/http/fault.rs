//! The faults that hyper reports, in the words of RFC 9209.

use std::{error::Error, io};

use crate::{Fault, OriginError, server::Address};

/// Makes an error of what hyper says when no response head came.
pub(super) fn of_head(error: hyper::Error, address: &Address) -> OriginError {
    if let Some(own) = request_body(&error) {
        return own;
    }
    let fault = if error.is_parse_too_large() {
        Fault::ResponseTooLarge
    } else if error.is_parse() {
        Fault::ProtocolError
    } else if error.is_user() {
        Fault::Internal
    } else {
        Fault::ConnectionTerminated
    };
    OriginError::new(fault, format!("response head from {address}")).because(error)
}

/// Makes an error of what hyper says when a response's content broke off.
pub(super) fn of_body(error: hyper::Error, address: &Address) -> OriginError {
    if let Some(own) = request_body(&error) {
        return own;
    }
    let fault = match io_kind(&error) {
        Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) => Fault::ProtocolError,
        _ if error.is_parse() => Fault::ProtocolError,
        _ => Fault::ConnectionTerminated,
    };
    OriginError::new(fault, format!("response body from {address}")).because(error)
}

/// Returns the error of the request's own content, if that is what ended the exchange.
fn request_body(error: &hyper::Error) -> Option<OriginError> {
    let own = causes(error).find_map(|cause| cause.downcast_ref::<OriginError>())?;
    Some(OriginError::new(own.fault, own.detail.clone()))
}

fn io_kind(error: &hyper::Error) -> Option<io::ErrorKind> {
    causes(error).find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind)
}

fn causes(error: &hyper::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    let mut next = error.source();
    std::iter::from_fn(move || {
        let cause = next?;
        next = cause.source();
        Some(cause)
    })
}
