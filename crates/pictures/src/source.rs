//! A picture of an author, as it lies on disk.

use std::{
    fs::File,
    io::{BufReader, Cursor},
    path::{Path, PathBuf},
    sync::OnceLock,
};

use crate::{FILE_BYTES_MAX, Facts, Fault, Format, Variant, digest::digest, variants, variants::is_too_large, whole::is_whole};

/// A file with a picture: what its head says, and what can be made of it.
#[derive(Debug)]
pub struct Source {
    path: PathBuf,
    bytes: u64,
    facts: Facts,
    digest: String,
    variants: Vec<Variant>,
    /// The reason why nothing can be made of it, once that is known.
    fault: OnceLock<Fault>,
}

impl Source {
    /// Reads the head of a file, what its digest needs, and whether it ends where it should: half a megabyte at most, except of bitmaps and of
    /// files that end unusually.
    ///
    /// # Errors
    /// When the file is not a picture that can be shown.
    pub fn read(path: impl Into<PathBuf>) -> Result<Self, Fault> {
        let path = path.into();
        let file = File::open(&path)?;
        let bytes = file.metadata()?.len();
        if bytes > FILE_BYTES_MAX {
            return Err(Fault::TooLong);
        }
        let facts = Facts::read(&file)?;
        let digest = digest(&mut BufReader::new(&file), bytes, facts.format == Format::Bmp)?;
        let fault = OnceLock::new();
        if !is_whole(&file, bytes, facts.format)? {
            let _ = fault.set(Fault::Truncated);
        }
        Ok(Self { path, bytes, facts, digest, variants: variants(&facts), fault })
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what the head of the file says.
    #[must_use]
    pub const fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Returns the length of the file.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns 16 hexadecimal digits that change with the picture.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Lists the variants, by form and then by width.
    #[must_use]
    pub fn variants(&self) -> &[Variant] {
        &self.variants
    }

    /// Returns why nothing can be made of the picture, if that is known.
    #[must_use]
    pub fn fault(&self) -> Option<Fault> {
        let Facts { width, height, .. } = self.facts;
        if is_too_large(&self.facts) && self.facts.format != Format::Svg {
            return Some(Fault::TooLarge { width, height });
        }
        self.fault.get().cloned()
    }

    /// Remembers that nothing can be made of the picture, so that nobody tries again. Returns whether that is news.
    pub(crate) fn fail(&self, fault: &Fault) -> bool {
        self.fault.set(fault.clone()).is_ok()
    }

    /// Reads the whole file, if it still is the one whose head was read.
    pub(crate) fn content(&self) -> Result<Vec<u8>, Fault> {
        let file = File::open(&self.path)?;
        if file.metadata()?.len() != self.bytes {
            return Err(Fault::Changed);
        }
        let mut content = Vec::with_capacity(usize::try_from(self.bytes).map_err(|_| Fault::TooLong)?);
        // One more than expected: a file that grew is another file.
        std::io::Read::read_to_end(&mut std::io::Read::take(file, self.bytes + 1), &mut content)?;
        if content.len() as u64 != self.bytes
            || digest(&mut Cursor::new(&content), self.bytes, self.facts.format == Format::Bmp)? != self.digest
        {
            return Err(Fault::Changed);
        }
        Ok(content)
    }
}
