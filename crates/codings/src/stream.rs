//! Content that is coded while it passes.

use std::{
    fmt,
    io::{self, Write},
};

use semantics::coding::Coding;

/// Compression levels that are fast enough for the loop of a worker: some hundred megabytes a second.
const GZIP_LEVEL: u32 = 3;
const BROTLI_QUALITY: u32 = 3;
const ZSTD_LEVEL: i32 = 3;
/// Window sizes, as powers of two: how much past content a stream keeps. A connection should not cost megabytes.
const BROTLI_WINDOW_LOG: u32 = 18;
const ZSTD_WINDOW_LOG: u32 = 18;
/// The number of bytes that the Brotli coder collects before it writes.
const BROTLI_BUFFER: usize = 4096;

/// A coder that content passes through piece by piece. It keeps at most about 1 MiB, whatever the length of the content.
pub struct Stream {
    coder: Coder,
    dirty: bool,
}

enum Coder {
    Gzip(flate2::write::GzEncoder<Vec<u8>>),
    Brotli(Box<brotli::CompressorWriter<Vec<u8>>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Stream {
    /// Creates a coder for one message.
    ///
    /// # Errors
    /// Fails if there is not enough memory for a coder.
    pub fn new(coding: Coding) -> io::Result<Self> {
        let coder = match coding {
            Coding::Gzip => Coder::Gzip(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(GZIP_LEVEL))),
            Coding::Brotli => {
                Coder::Brotli(Box::new(brotli::CompressorWriter::new(Vec::new(), BROTLI_BUFFER, BROTLI_QUALITY, BROTLI_WINDOW_LOG)))
            }
            Coding::Zstd => {
                let mut coder = zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)?;
                coder.window_log(ZSTD_WINDOW_LOG)?;
                Coder::Zstd(coder)
            }
        };
        Ok(Self { coder, dirty: false })
    }

    /// Encodes a piece. The output that is ready can be [taken](Self::take); the rest waits for more input, or for a [flush](Self::flush).
    ///
    /// # Errors
    /// Fails if the coder does, which happens for lack of memory only.
    pub fn push(&mut self, piece: &[u8]) -> io::Result<()> {
        self.dirty = true;
        match &mut self.coder {
            Coder::Gzip(coder) => coder.write_all(piece),
            Coder::Brotli(coder) => coder.write_all(piece),
            Coder::Zstd(coder) => coder.write_all(piece),
        }
    }

    /// Puts all input so far into the output, so that a decoder can read all of it. Does nothing if nothing was pushed since the last time.
    ///
    /// # Errors
    /// Fails as [`push`](Self::push) does.
    pub fn flush(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.dirty) {
            return Ok(());
        }
        match &mut self.coder {
            Coder::Gzip(coder) => coder.flush(),
            Coder::Brotli(coder) => coder.flush(),
            Coder::Zstd(coder) => coder.flush(),
        }
    }

    /// Returns what has been encoded since the last call; often nothing.
    pub fn take(&mut self) -> Vec<u8> {
        match &mut self.coder {
            Coder::Gzip(coder) => std::mem::take(coder.get_mut()),
            Coder::Brotli(coder) => std::mem::take(coder.get_mut()),
            Coder::Zstd(coder) => std::mem::take(coder.get_mut()),
        }
    }

    /// Ends the content and returns the rest of the output.
    ///
    /// # Errors
    /// Fails as [`push`](Self::push) does.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        match self.coder {
            Coder::Gzip(coder) => coder.finish(),
            Coder::Brotli(coder) => Ok(coder.into_inner()),
            Coder::Zstd(coder) => coder.finish(),
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let coding = match self.coder {
            Coder::Gzip(_) => Coding::Gzip,
            Coder::Brotli(_) => Coding::Brotli,
            Coder::Zstd(_) => Coding::Zstd,
        };
        f.debug_struct("Stream").field("coding", &coding).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use proptest::prelude::*;

    use super::*;

    /// Returns everything that can be decoded of the beginning of a message.
    fn decode(coding: Coding, coded: &[u8]) -> Vec<u8> {
        let mut decoder: Box<dyn Read> = match coding {
            Coding::Gzip => Box::new(flate2::read::GzDecoder::new(coded)),
            Coding::Brotli => Box::new(brotli::Decompressor::new(coded, 64)),
            Coding::Zstd => Box::new(zstd::stream::read::Decoder::new(coded).expect("a decoder")),
        };
        let mut decoded = Vec::new();
        let mut piece = [0; 64];
        while let Ok(length @ 1..) = decoder.read(&mut piece) {
            decoded.extend_from_slice(&piece[..length]);
        }
        decoded
    }

    proptest! {
        #[test]
        fn what_is_decoded_is_what_was_pushed(pieces in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..300), any::<bool>()), 0..20)) {
            for coding in Coding::ALL {
                let (mut stream, mut pushed, mut coded) = (Stream::new(coding).expect("a coder"), Vec::new(), Vec::new());
                for (piece, flush) in &pieces {
                    stream.push(piece).expect("coded");
                    pushed.extend_from_slice(piece);
                    if *flush {
                        stream.flush().expect("flushed");
                    }
                    coded.extend(stream.take());
                    if *flush {
                        prop_assert_eq!(&decode(coding, &coded), &pushed, "{:?}: what is flushed can be read", coding);
                    }
                }
                coded.extend(stream.finish().expect("finished"));
                prop_assert_eq!(decode(coding, &coded), pushed, "{:?}", coding);
            }
        }
    }

    #[test]
    fn long_content_shrinks() {
        let page: Vec<u8> = (0..20_000).flat_map(|n| format!("<li>entry {n}</li>\n").into_bytes()).collect();
        for coding in Coding::ALL {
            let mut stream = Stream::new(coding).expect("a coder");
            let mut coded = Vec::new();
            for piece in page.chunks(16 << 10) {
                stream.push(piece).expect("coded");
                coded.extend(stream.take());
            }
            coded.extend(stream.finish().expect("finished"));
            assert!(coded.len() < page.len() / 4, "{coding:?}: {}", coded.len());
            assert_eq!(decode(coding, &coded), page, "{coding:?}");
        }
    }
}
