//! The file in which alerts outlive the process. It lies in the folder of stored responses, and holds nothing secret.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
};

const FILE: &str = "alerts.json";
const TEMPORARY: &str = "alerts.json.new";

/// The largest file that is read: 256 sites with a week each.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Reads the file in the folder `dir`, if there is one.
pub(super) fn read(dir: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(dir.join(FILE)).ok()?.take(FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Writes the file into the folder `dir`: whole, or not at all.
///
/// # Errors
/// When it cannot be written.
pub(super) fn write(dir: &Path, text: &str) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let temporary = dir.join(TEMPORARY);
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(temporary, dir.join(FILE))
}
