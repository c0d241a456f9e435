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

use crate::config::settings::{Settings, Source};

const FILE: &str = "seen";
const TEMPORARY: &str = "seen.new";
/// The file that says which source the account is of.
const OF: &str = "seen.of";

/// The largest file that is read: more than the account takes in memory.
const FILE_BYTES_MAX: u64 = 2 * MEMORY_MAX;

/// Names the source that an account is of, where no host does: whoever tries one source after another has them all in one folder.
pub(super) fn source_of(settings: &Settings) -> Option<String> {
    match &settings.sites[..] {
        [site] if site.hosts.is_empty() => Some(match &site.source {
            Source::Http(_) => site.source.to_string(),
            Source::Files(folder) | Source::Blog(folder) | Source::Php(folder) => {
                fs::canonicalize(folder).unwrap_or_else(|_| folder.clone()).display().to_string()
            }
        }),
        _ => None,
    }
}

/// Reads the account in the folder `folder`, if there is one, and it is not of another source than `of`.
pub(super) fn read(folder: &Path, of: Option<&str>) -> Option<Insight> {
    let path = folder.join(FILE);
    if let (Some(of), Ok(before)) = (of, fs::read_to_string(folder.join(OF)))
        && of != before
    {
        tracing::info!("what was seen of the traffic before was that of {before}, so counting begins anew");
        return None;
    }
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

/// Writes the account into the folder `folder`, and which source it is of.
pub(super) fn write(folder: &Path, of: Option<&str>, insight: &Insight) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let temporary = folder.join(TEMPORARY);
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    file.write_all(&insight.to_bytes())?;
    file.sync_all()?;
    fs::rename(temporary, folder.join(FILE))?;
    match of {
        Some(of) => fs::write(folder.join(OF), of),
        None => fs::remove_file(folder.join(OF)).or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }),
    }
}
