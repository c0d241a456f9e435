//! Files too large to hold: read in pieces, off the worker's loop.

use std::{
    fs::File,
    io::{self, Read as _},
    path::PathBuf,
};

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http_body::Frame;
use http_body_util::StreamBody;
use origins::{Body, Fault, OriginError};
use semantics::Timestamp;

/// Read at once, and so held per response under way.
const PIECE_BYTES: usize = 64 * 1024;

/// A file that is sent from disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LargeFile {
    /// Where it lies.
    pub path: PathBuf,
    /// Its media type.
    pub content_type: &'static str,
    /// Its length when the site was built.
    pub bytes: u64,
    /// An entity tag with its quotes, made from length and modification time.
    pub etag: String,
    /// When it last changed.
    pub last_modified: Timestamp,
}

impl LargeFile {
    /// Opens the file. `None` if it has gone or changed its length since the site was built: its entity tag is no longer true.
    pub(crate) async fn open(&self) -> Result<Option<File>, OriginError> {
        let (path, bytes) = (self.path.clone(), self.bytes);
        let open = move || -> io::Result<Option<File>> {
            let file = File::open(path)?;
            Ok((file.metadata()?.len() == bytes).then_some(file))
        };
        match blocking(open).await? {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            result => result.map_err(|error| self.fault(error)),
        }
    }

    /// The content of the opened file, exactly as long as announced or an error.
    pub(crate) fn body(&self, file: File) -> Body {
        let described = self.clone();
        let pieces = stream::try_unfold((file, self.bytes, described), |(mut file, left, described)| async move {
            if left == 0 {
                return Ok(None);
            }
            let (file, piece) = blocking(move || {
                let size = usize::try_from(left).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
                let mut piece = BytesMut::zeroed(size);
                let result = file.read(&mut piece).map(|count| {
                    piece.truncate(count);
                    piece.freeze()
                });
                (file, result)
            })
            .await?;
            let piece: Bytes = piece.map_err(|error| described.fault(error))?;
            if piece.is_empty() {
                return Err(described.fault(io::ErrorKind::UnexpectedEof.into()));
            }
            let left = left - piece.len() as u64;
            Ok(Some((Frame::data(piece), (file, left, described))))
        });
        Body::stream(StreamBody::new(pieces))
    }

    fn fault(&self, error: io::Error) -> OriginError {
        OriginError::new(Fault::Internal, format!("reading {}", self.path.display())).because(error)
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, OriginError> {
    let gone = |error| OriginError::new(Fault::Internal, "reading a file").because(error);
    tokio::task::spawn_blocking(work).await.map_err(gone)
}
