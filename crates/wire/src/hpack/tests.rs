//! Another implementation as judge: it reads what we write, and we read what it writes.

use std::ops::ControlFlow;

use httlib_hpack as judge;
use proptest::prelude::*;

use super::{Decoder, Encoder};

type Line = (Vec<u8>, Vec<u8>);

/// Generates names and values that repeat, that are in the static table, and any others.
fn line() -> impl Strategy<Value = Line> {
    let names = prop::sample::select(vec!["x-cache", "server", "set-cookie", ":path", "content-type", "a", "", "x-long-name-of-a-field"]);
    let name = prop_oneof![8 => names.prop_map(|name| name.as_bytes().to_vec()), 1 => "[a-z0-9-]{1,40}".prop_map(String::into_bytes)];
    let values = prop::sample::select(vec!["HIT", "MISS", "/", "text/html", "", "a", "Mon, 21 Oct 2013 20:13:21 GMT"]);
    let any = prop::collection::vec(any::<u8>(), 0..400);
    let value =
        prop_oneof![8 => values.prop_map(|value| value.as_bytes().to_vec()), 1 => any, 1 => "[ -~]{0,1500}".prop_map(String::into_bytes)];
    (name, value)
}

fn blocks() -> impl Strategy<Value = Vec<Vec<Line>>> {
    prop::collection::vec(prop::collection::vec(line(), 0..12), 1..20)
}

fn decode(decoder: &mut Decoder, block: &[u8]) -> Vec<Line> {
    let mut lines = Vec::new();
    let decoded = decoder.decode(block, |field| {
        lines.push((field.name.to_vec(), field.value.to_vec()));
        ControlFlow::Continue(())
    });
    assert_eq!(decoded, Ok(()));
    lines
}

proptest! {
    #[test]
    fn the_judge_reads_what_we_write(blocks in blocks(), sizes in prop::collection::vec(0_usize..6000, 20)) {
        let (mut encoder, mut decoder, mut ours) = (Encoder::new(), judge::Decoder::default(), Decoder::new(4096));
        for (number, lines) in blocks.iter().enumerate() {
            // Every third block has a size of its own.
            if number % 3 == 2 {
                encoder.set_max_size(sizes[number]);
            }
            let mut block = Vec::new();
            encoder.begin(&mut block);
            for (name, value) in lines {
                encoder.field(&name.to_ascii_uppercase(), value, &mut block);
            }
            prop_assert_eq!(&decode(&mut ours, &block), lines);
            let mut read = Vec::new();
            prop_assert!(decoder.decode(&mut block, &mut read).is_ok());
            let read: Vec<Line> = read.into_iter().map(|(name, value, _)| (name, value)).collect();
            prop_assert_eq!(&read, lines);
        }
    }

    #[test]
    fn we_read_what_the_judge_writes(blocks in blocks(), flags in prop::collection::vec(0_u8..32, 12), size in 0_u32..=4096) {
        let (mut encoder, mut decoder) = (judge::Encoder::with_dynamic_size(4096), Decoder::new(4096));
        for (number, lines) in blocks.iter().enumerate() {
            let mut block = Vec::new();
            if number == 3 {
                prop_assert!(encoder.update_max_dynamic_size(size, &mut block).is_ok());
            }
            for ((name, value), flags) in lines.iter().zip(&flags) {
                prop_assert!(encoder.encode((name.clone(), value.clone(), *flags), &mut block).is_ok());
            }
            prop_assert_eq!(&decode(&mut decoder, &block), lines);
        }
    }

    /// RFC 7541 §5.2: only bytes that the encoder would make are accepted, so that a string has one coding.
    #[test]
    fn what_is_taken_for_huffman_coding_is_what_would_be_written(coded in prop::collection::vec(any::<u8>(), 0..24)) {
        let (mut string, mut again) = (Vec::new(), Vec::new());
        if super::huffman::decode(&coded, &mut string).is_ok() {
            super::huffman::encode(&string, &mut again);
            prop_assert_eq!(again, coded);
        }
    }
}
