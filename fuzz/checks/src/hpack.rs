//! The header compression of HTTP/2 (RFC 7541).

use std::ops::ControlFlow;

use wire::hpack::{Decoder, Encoder};

use crate::input::Reader;

pub(crate) type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// What we announce as SETTINGS_HEADER_TABLE_SIZE.
const TABLE_SIZE: usize = 4096;

/// Any blocks are decoded or refused; what is remembered of them stays within the table, and what is told within what was sent. Whoever is
/// told nothing remembers the same; cut between two fields, a block means the same; and what was read can be written, for a client with a
/// table of any size, and is read the same again.
///
/// An input is a list of blocks: the size of the client's table in 32 bytes (0: as it was), the block's length, the block.
pub fn hpack(data: &[u8]) {
    let mut reader = Reader::new(data);
    let (mut ours, mut silent) = (Decoder::new(TABLE_SIZE), Decoder::new(TABLE_SIZE));
    let mut writer = Encoder::new();
    let mut client = Decoder::new(TABLE_SIZE);
    let mut client_size = TABLE_SIZE;
    let mut before: Vec<Vec<u8>> = Vec::new();
    while !reader.is_empty() {
        let size = usize::from(reader.byte()) * 32;
        let len = usize::from(reader.byte());
        let block = reader.bytes(len).to_vec();
        let fields = decoded(&mut ours, &block);
        assert_eq!(skipped(&mut silent, &block), fields.is_some(), "read by one, refused by the other");
        assert_eq!(silent.table_size(), ours.table_size());
        assert!(ours.table_size() <= TABLE_SIZE);
        if data.len() <= 512 {
            cut(&before, &block, fields.as_ref());
        }
        let Some(fields) = fields else { return };
        assert!(fields.len() <= block.len());
        for (name, value) in &fields {
            assert!(name.len() + value.len() <= TABLE_SIZE + block.len() * 8 / 5, "more than was ever sent");
        }
        before.push(block);

        if size != 0 {
            client_size = size.min(TABLE_SIZE);
            writer.set_max_size(size);
        }
        written(&fields, &mut writer, &mut client, client_size);
    }
}

/// Returns the fields of the next block. `None` means that the connection would be closed.
pub(crate) fn decoded(decoder: &mut Decoder, block: &[u8]) -> Option<Fields> {
    let mut fields = Fields::new();
    let decoded = decoder.decode(block, |field| {
        fields.push((field.name.to_vec(), field.value.to_vec()));
        ControlFlow::Continue(())
    });
    decoded.is_ok().then_some(fields)
}

/// Decodes the next block only to update the table, without being told any field after the first. Returns whether the block was valid.
fn skipped(decoder: &mut Decoder, block: &[u8]) -> bool {
    decoder.decode(block, |_| ControlFlow::Break(())).is_ok()
}

/// Fields are written in lower case, so that they are read.
fn written(fields: &Fields, writer: &mut Encoder, client: &mut Decoder, client_size: usize) {
    let mut response = Vec::new();
    writer.begin(&mut response);
    writer.status(200, &mut response);
    for (name, value) in fields {
        writer.field(name, value, &mut response);
    }
    let read = decoded(client, &response).expect("what we write can be read");
    assert!(client.table_size() <= client_size, "a client with a small table has to remember more");
    assert_eq!(read[0], (b":status".to_vec(), b"200".to_vec()));
    let expected: Fields = fields.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect();
    assert_eq!(read[1..], expected);
}

/// Wherever a beginning is a block of its own, the rest is one, too, and both together say what the whole says.
fn cut(before: &[Vec<u8>], block: &[u8], whole: Option<&Fields>) {
    for at in 1..block.len() {
        let (begin, end) = block.split_at(at);
        if end[0] >> 5 == 1 {
            // Updates are allowed at the beginning alone.
            continue;
        }
        let mut other = Decoder::new(TABLE_SIZE);
        assert!(before.iter().all(|block| skipped(&mut other, block)));
        let Some(mut fields) = decoded(&mut other, begin) else { continue };
        let both = decoded(&mut other, end).map(|rest| {
            fields.extend(rest);
            fields
        });
        assert_eq!(both.as_ref(), whole, "cut at {at}");
    }
}
