//! The answers to certificate authorities that look for a proof that a name is ours (RFC 8555 §8.3).
//!
//! They come first. An authority asks over plain http, for whatever name it was given, without a password, and some follow no redirect.

use bytes::Bytes;
use http::{Response, StatusCode};
use policy::Trace;

use crate::{
    Body, Shared,
    admission::{FirstStep, IncomingRequest},
    own_response::own_response,
};

/// The path below which authorities look for proofs.
pub(crate) const PATH: &str = "/.well-known/acme-challenge/";

/// Waits for the look-up of a proof that another machine may have.
pub(crate) async fn look_up(shared: &Shared, incoming: &IncomingRequest) {
    if incoming.path().starts_with(PATH) {
        shared.look_up_challenge(incoming.path()).await;
    }
}

/// Answers a request for a proof that this server has. A proof that it does not have may be the origin's affair.
pub(crate) fn answer(shared: &Shared, incoming: &IncomingRequest, trace: &mut impl Trace) -> Option<Response<Body>> {
    if !incoming.path().starts_with(PATH) {
        return None;
    }
    let proof = shared.challenge(incoming.path());
    trace.decides(FirstStep::Challenge.name(), proof.is_some(), || match proof {
        Some(_) => "a certificate authority gets the proof that this name is ours".to_owned(),
        None => "no certificate is being ordered with this token".to_owned(),
    });
    Some(own_response(StatusCode::OK, "application/octet-stream", Bytes::copy_from_slice(proof?.as_bytes())))
}
