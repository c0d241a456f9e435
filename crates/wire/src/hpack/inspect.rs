//! Both directions without a connection: what blocks are taken for, and what is made of fields.

use std::ops::ControlFlow;

use super::{Decoder, Encoder};

/// A copy of a connection's decoder and encoder for checks and measurements. It is not used for serving.
#[derive(Debug)]
pub struct InspectedHpack {
    decoder: Decoder,
    encoder: Encoder,
}

impl InspectedHpack {
    /// Creates a connection for which we announced this size of the table.
    #[must_use]
    pub fn new(table_size_max: usize) -> Self {
        Self { decoder: Decoder::new(table_size_max), encoder: Encoder::new() }
    }

    /// Returns the fields of the next block, names and values. `None` means that the connection would be closed.
    pub fn decode(&mut self, block: &[u8]) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut fields = Vec::new();
        let decoded = self.decoder.decode(block, |field| {
            fields.push((field.name.to_vec(), field.value.to_vec()));
            ControlFlow::Continue(())
        });
        decoded.is_ok().then_some(fields)
    }

    /// Decodes the next block only to update the table, and passes on no field after the first. Returns whether the block was valid.
    pub fn skip(&mut self, block: &[u8]) -> bool {
        self.decoder.decode(block, |_| ControlFlow::Break(())).is_ok()
    }

    /// Returns the size of the decoder's table (RFC 7541 §4.1).
    #[must_use]
    pub const fn table_size(&self) -> usize {
        self.decoder.table_size()
    }

    /// Sets the client's SETTINGS_HEADER_TABLE_SIZE.
    pub fn set_max_size(&mut self, size: usize) {
        self.encoder.set_max_size(size);
    }

    /// Returns the block of a response.
    pub fn encode<'a>(&mut self, status: u16, fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Vec<u8> {
        let mut block = Vec::new();
        self.encoder.begin(&mut block);
        self.encoder.status(status, &mut block);
        for (name, value) in fields {
            self.encoder.field(name, value, &mut block);
        }
        block
    }
}
