//! The head of a request, from its field section to the text that is judged.

use super::{Code, Fault};
use crate::{
    HeadLimits,
    head::{Built, HeadBuilder, HeadText, Reject},
    qpack,
};

/// Writes the request in a field section to `text`, as HTTP/1 would write it. `Some` means that it is to be answered with a refusal.
///
/// # Errors
/// Fails when the section cannot be read, or when what it says is not a request.
pub fn head_of_section(section: &[u8], text: &mut HeadText, limits: &HeadLimits) -> Result<Option<Reject>, Fault> {
    let mut builder = HeadBuilder::new(text, limits, false);
    let readable = qpack::decode(section, |name, value, is_known| builder.take(name, value, is_known));
    let built = builder.end();
    readable.map_err(|_| Fault::Connection(Code::DecompressionFailed))?;
    match built {
        Built::Request { is_websocket: false } => Ok(None),
        Built::Refused(reject) => Ok(Some(reject)),
        // Tunnels are not offered (RFC 9220).
        Built::Request { is_websocket: true } | Built::Trailers | Built::Malformed(_) => Err(Fault::Stream(Code::MessageError)),
    }
}
