//! What header compression costs, in instructions a block.
//!
//! `cargo build --release -p wire --example hpack`, then two runs under `valgrind --tool=callgrind` with different counts: their difference,
//! divided by that of the counts.
//!
//!     hpack request-first | request-path | request-again | response-first | response-values | response-again   COUNT

use std::{
    env, hint,
    io::{self, Write},
    ops::ControlFlow,
};

use wire::hpack::{Decoder, Encoder};

/// A browser's first request, as the Python package `hpack` writes it; one for another picture; and that one again.
const FIRST: &str = "8241898e83ccb97c8e9ae82f87448c60684152861339692ae4423f40874148b1275ad1ffb8fe6f4f61e935b4ff3f7de0fe42c83f9fa53f9c473\
cd4154bd3d87a4bfcfdf783f90b20fe7e94fe749d3fe4315db07549fcfdf783f97dffe7408b4148b1275ad1ad49e3350582ff01408d4148b1275ad1ad5d034ca7b29f87fe\
739aab7cff3f7aced07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb521aeba0bc8b1e632586d975765c53facd8f7e8cff4a506ea5531149d4ffda97a7b0f495\
80b205c0b817029b8728ec330db2eaecb9f53b1352398ac0fb9a5fa352398ac782c75fd1a91cc56075d537d1a91cc5611de6ff7e69a3e8d48e62b1f3f5f2c7cfdf6800bbd\
408a4148b4a549275906497f8840e92ac7b0d31aaf408a4148b4a549275a93c85f85a8eb10f623408a4148b4a549275a42a13f84352398bf739f9d29ad1718623a0f32e5f\
23a6ba0ac5674250c0d6ed698a95a71d919edb18f50929bd9abfa5242cb40d25fa523b3e94f684c9f518b2d4b62bbf45abefb4005df4086aec31ec327d785b6017d286f";
const PATH: &str = "82cb87449860d48e62a189c76467b6c58695a41f8a96088005fc163affcac9c8c7c6c5c4c3c2c1c0bf";
const AGAIN: &str = "82cc87becac9c8c7c6c5c4c3c2c1c0bf";

/// A stored response's fields, as they are served.
const RESPONSE: [(&str, &str); 12] = [
    ("Server", "seawall"),
    ("Date", "Mon, 21 Oct 2013 20:13:21 GMT"),
    ("Content-Type", "text/html; charset=utf-8"),
    ("Content-Length", "12345"),
    ("Cache-Control", "public, max-age=600"),
    ("ETag", "\"5f3c-1a2b3c4d\""),
    ("Last-Modified", "Mon, 21 Oct 2013 19:00:00 GMT"),
    ("Vary", "accept-encoding"),
    ("Age", "17"),
    ("Cache-Status", "seawall; hit; ttl=583"),
    ("X-Cache", "HIT"),
    ("Via", "1.1 seawall"),
];
/// The fields that have other values on another page: here, values that never come again.
const OWN: [usize; 5] = [3, 5, 6, 8, 9];

fn main() -> io::Result<()> {
    let mut arguments = env::args().skip(1);
    let scenario = arguments.next().unwrap_or_default();
    let count: u64 = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(1);
    let size = match &scenario[..] {
        "request-first" => requests(&[], FIRST, count),
        "request-path" => requests(&[FIRST], PATH, count),
        "request-again" => requests(&[FIRST, PATH], AGAIN, count),
        "response-first" => responses(true, false, count),
        "response-values" => responses(false, true, count),
        "response-again" => responses(false, false, count),
        _ => return Err(io::Error::other("which scenario? See the source")),
    };
    writeln!(io::stdout(), "{scenario}: {size} bytes")
}

/// Decodes a block over and over, on a new connection where it is the first.
fn requests(before: &[&str], block: &str, count: u64) -> usize {
    let block = bytes(block);
    let mut decoder = Decoder::new(4096);
    for block in before {
        read(&mut decoder, &bytes(block));
    }
    for _ in 0..count {
        if before.is_empty() {
            decoder = Decoder::new(4096);
        }
        read(&mut decoder, &block);
    }
    block.len()
}

fn read(decoder: &mut Decoder, block: &[u8]) {
    let decoded = decoder.decode(block, |field| {
        hint::black_box(field);
        ControlFlow::Continue(())
    });
    assert!(decoded.is_ok());
}

/// Encodes a response over and over, on a new connection if `is_first`, with values of its own if `differs`.
fn responses(is_first: bool, differs: bool, count: u64) -> usize {
    let mut encoder = Encoder::new();
    let mut lines = RESPONSE.map(|(name, value)| (name.as_bytes(), value.as_bytes().to_vec()));
    let mut out = Vec::new();
    for number in 0..count {
        if is_first {
            encoder = Encoder::new();
        }
        if differs {
            for own in OWN {
                let value = &mut lines[own].1;
                let bytes = value.len().min(2);
                value[..bytes].copy_from_slice(&number.to_le_bytes()[..bytes]);
            }
        }
        out.clear();
        encoder.begin(&mut out);
        encoder.status(200, &mut out);
        for (name, value) in &lines {
            encoder.field(hint::black_box(name), hint::black_box(value), &mut out);
        }
    }
    out.len()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).filter_map(|at| u8::from_str_radix(&hex[at..at + 2], 16).ok()).collect()
}
