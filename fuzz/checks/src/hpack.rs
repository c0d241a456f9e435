//! The header compression of HTTP/2 (RFC 7541).

use edge::InspectedHpack;

use crate::input::Reader;

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// What we announce as SETTINGS_HEADER_TABLE_SIZE.
const TABLE_SIZE: usize = 4096;

/// Any blocks are decoded or refused; what is remembered of them stays within the table, and what is told within what was sent. Whoever is
/// told nothing remembers the same; cut between two fields, a block means the same; and what was read can be written, for a client with a
/// table of any size, and is read the same again.
///
/// An input is a list of blocks: the size of the client's table in 32 bytes (0: as it was), the block's length, the block.
pub fn hpack(data: &[u8]) {
    let mut reader = Reader::new(data);
    let (mut ours, mut silent) = (InspectedHpack::new(TABLE_SIZE), InspectedHpack::new(TABLE_SIZE));
    let mut client = InspectedHpack::new(TABLE_SIZE);
    let mut client_size = TABLE_SIZE;
    let mut before: Vec<Vec<u8>> = Vec::new();
    while !reader.is_empty() {
        let size = usize::from(reader.byte()) * 32;
        let len = usize::from(reader.byte());
        let block = reader.bytes(len).to_vec();
        let fields = ours.decode(&block);
        assert_eq!(silent.skip(&block), fields.is_some(), "read by one, refused by the other");
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
            ours.set_max_size(size);
        }
        written(&fields, &mut ours, &mut client, client_size);
    }
}

/// Fields are written in lower case, so that they are read.
fn written(fields: &Fields, ours: &mut InspectedHpack, client: &mut InspectedHpack, client_size: usize) {
    let response = ours.encode(200, fields.iter().map(|(name, value)| (&name[..], &value[..])));
    let read = client.decode(&response).expect("what we write can be read");
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
        let mut other = InspectedHpack::new(TABLE_SIZE);
        assert!(before.iter().all(|block| other.skip(block)));
        let Some(mut fields) = other.decode(begin) else { continue };
        let both = other.decode(end).map(|rest| {
            fields.extend(rest);
            fields
        });
        assert_eq!(both.as_ref(), whole, "cut at {at}");
    }
}
