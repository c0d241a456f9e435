//! The account on the disk: one file in the folder of the cache.
//!
//! A file that is damaged, too long or of another version is told of, and counting begins anew: it is not worth a start that fails.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

use insight::{Insight, MEMORY_MAX};

const FILE: &str = "seen";
const TEMPORARY: &str = "seen.new";

/// The largest file that is read: more than the account takes in memory.
const FILE_BYTES_MAX: u64 = 2 * MEMORY_MAX;

/// Reads the account in the folder `folder`, if there is one.
pub(super) fn read(folder: &Path) -> Option<Insight> {
    let path = folder.join(FILE);
    let mut bytes = Vec::new();
    match File::open(&path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            tracing::warn!("what was seen of the traffic before cannot be read from {}, so counting begins anew: {error}", path.display());
            return None;
        }
    }
    match Insight::from_bytes(&bytes) {
        Ok(insight) => Some(insight),
        Err(error) => {
            tracing::warn!("{} is not used, and counting begins anew: {error}", path.display());
            None
        }
    }
}

/// Writes the account into the folder `folder`.
pub(super) fn write(folder: &Path, insight: &Insight) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let temporary = folder.join(TEMPORARY);
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    file.write_all(&insight.to_bytes())?;
    file.sync_all()?;
    fs::rename(temporary, folder.join(FILE))
}
