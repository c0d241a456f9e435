//! Files too large to hold: read in pieces, off the worker's loop.

use std::{
    fmt,
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::PathBuf,
    time::SystemTime,
};

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http_body::Frame;
use http_body_util::StreamBody;
use origins::{Body, Fault, OriginError};
use semantics::Timestamp;

/// The number of bytes that are read at once. A response under way holds as many.
const PIECE_BYTES: usize = 64 * 1024;

/// A file that is sent from disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LargeFile {
    /// The path of the file.
    pub path: PathBuf,
    /// The media type of the file.
    pub content_type: &'static str,
    /// The length of the file when the site was built.
    pub bytes: u64,
    /// An entity tag with its quotes, made from length and modification time.
    pub etag: String,
    /// The time of the file's last change.
    pub last_modified: Timestamp,
    /// Whether it is a picture that is sent without its metadata.
    pub is_cleaned: bool,
}

/// A file that was opened to be sent.
pub(crate) struct OpenFile {
    content: Box<dyn Read + Send>,
    /// The length of what is sent.
    pub(crate) bytes: u64,
}

impl fmt::Debug for OpenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenFile").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Read for OpenFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.content.read(buffer)
    }
}

impl LargeFile {
    /// Opens the file. Returns `None` if it is gone or its length has changed since the site was built: its entity tag is then wrong.
    pub(crate) async fn open(&self) -> Result<Option<OpenFile>, OriginError> {
        let file = self.clone();
        match blocking(move || file.open_now()).await? {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            result => result.map_err(|error| self.fault(error)),
        }
    }

    /// Opens the file as [`open`](Self::open) does, on the calling thread. Of a picture, all is read once to find what is left out.
    pub(crate) fn open_now(&self) -> io::Result<Option<OpenFile>> {
        let file = File::open(&self.path)?;
        if file.metadata()?.len() != self.bytes {
            return Ok(None);
        }
        if !self.is_cleaned {
            return Ok(Some(OpenFile { content: Box::new(file), bytes: self.bytes }));
        }
        let mut file = Unchanged::of(file)?;
        let plan = pictures::clean(&mut file).map_err(io::Error::other)?;
        let bytes = plan.bytes();
        Ok(Some(OpenFile { content: Box::new(plan.read(file)), bytes }))
    }

    /// Makes a body of the opened file. It has exactly the announced length, or ends with an error.
    pub(crate) fn body(&self, opened: OpenFile) -> Body {
        let described = self.clone();
        let OpenFile { content, bytes } = opened;
        let pieces = stream::try_unfold((content, bytes, described), |(mut file, left, described)| async move {
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

/// A file of which nothing is read once it has changed: what was found out about it need not be true of what stands in it now.
struct Unchanged {
    file: File,
    length: u64,
    modified: SystemTime,
}

impl Unchanged {
    fn of(file: File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self { length: metadata.len(), modified: metadata.modified()?, file })
    }
}

impl Read for Unchanged {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        // A write changes the time of a file before its content.
        let now = self.file.metadata()?;
        if (now.len(), now.modified()?) != (self.length, self.modified) {
            return Err(io::Error::other("it was changed while it was read"));
        }
        Ok(count)
    }
}

impl Seek for Unchanged {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, OriginError> {
    let gone = |error| OriginError::new(Fault::Internal, "reading a file").because(error);
    tokio::task::spawn_blocking(work).await.map_err(gone)
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Duration};

    use super::*;

    /// A picture is copied over while a slow reader fetches it: where metadata stands in the new one, pixels stood in the old one.
    #[test]
    fn nothing_is_read_of_a_picture_that_was_changed_meanwhile() {
        let root = tempfile::tempdir().expect("a folder");
        let path = root.path().join("a.jxl");
        // A bare JPEG XL is copied as it is.
        let content = [b"\xff\x0a".as_slice(), &[1; 300_000]].concat();
        fs::write(&path, &content).expect("written");
        let file = LargeFile {
            path: path.clone(),
            content_type: "image/jxl",
            bytes: content.len() as u64,
            etag: String::new(),
            last_modified: Timestamp::default(),
            is_cleaned: true,
        };
        let mut opened = file.open_now().expect("there").expect("unchanged");
        let mut piece = vec![0; 1000];
        opened.read_exact(&mut piece).expect("read");
        assert_eq!(piece, content[..1000]);
        let file = File::options().write(true).open(&path).expect("there");
        let later = file.metadata().and_then(|metadata| metadata.modified()).expect("a time") + Duration::from_secs(1);
        file.set_modified(later).expect("dated");
        assert!(opened.read(&mut piece).is_err());
    }
}
