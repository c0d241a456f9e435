//! The place where account, keys and certificates are kept: a folder for its owner alone, files replaced whole.
//!
//! One folder for each authority below it, so that a test against the staging authority takes nothing from the real one:
//!
//! ```text
//! acme/lock
//! acme/seed                                               what spreads this server's renewals
//! acme/acme-v02.api.letsencrypt.org-directory/account.json
//! acme/acme-v02.api.letsencrypt.org-directory/example.org.pem     key and chain in one file: never one without the other
//! acme/acme-v02.api.letsencrypt.org-directory/example.org.json    what was tried
//! acme/acme-v02.api.letsencrypt.org-directory/example.org.to-revoke    a certificate that was replaced and not revoked yet
//! ```

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use parking_lot::Mutex;

use crate::schedule::History;

/// The mode of folders: for the owner alone.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// The largest file that is read: a chain and a key have some 10 KiB.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The name of the file with a certificate whose key is compromised; it stays until the certificate is revoked.
const COMPROMISED: &str = "to-revoke";

/// The folder with what belongs to one authority.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    authority: PathBuf,
    lock: Mutex<Option<File>>,
}

/// A file or folder that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be {doing}; acme.dir names another folder", .path.display())]
pub struct FolderError {
    /// The path of the file or folder.
    pub path: PathBuf,
    doing: &'static str,
    /// The reason why it cannot be used.
    #[source]
    pub source: io::Error,
}

impl FolderError {
    fn of(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self { path, doing, source }
    }
}

impl Folder {
    /// Creates the folder if it is missing, and removes the permissions of other users.
    ///
    /// # Errors
    /// Fails when it cannot be created, or belongs to somebody else.
    pub fn open(root: &Path, directory: &str) -> Result<Self, FolderError> {
        let authority = root.join(slug(directory));
        DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(&authority).map_err(FolderError::of(&authority, "made"))?;
        for folder in [root, &authority] {
            let mode = fs::metadata(folder).map_err(FolderError::of(folder, "read"))?.permissions().mode() & 0o7777;
            if mode & 0o077 != 0 {
                fs::set_permissions(folder, Permissions::from_mode(FOLDER_MODE)).map_err(FolderError::of(folder, "closed to others"))?;
                tracing::warn!("{} was open to others (mode {mode:04o}); it is not any more", folder.display());
            }
        }
        Ok(Self { root: root.to_owned(), authority, lock: Mutex::default() })
    }

    /// Returns whether this process is the one that orders. Another process with the same folder uses what this one writes, until this one
    /// ends.
    pub(crate) fn is_ours(&self) -> bool {
        let mut held = self.lock.lock();
        if held.is_some() {
            return true;
        }
        let path = self.root.join("lock");
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(FILE_MODE).open(&path);
        match file.map(|file| file.try_lock().map(|()| file)) {
            Ok(Ok(file)) => *held = Some(file),
            Ok(Err(TryLockError::WouldBlock)) => {}
            // Some network file systems have no locks; processes can then not be told apart.
            Ok(Err(TryLockError::Error(_))) => return true,
            // A folder that cannot be written to is no place for an order either; the order reports that.
            Err(_) => return true,
        }
        held.is_some()
    }

    /// Returns a number that is this folder's own, created at the first call.
    pub(crate) fn seed(&self) -> u64 {
        let path = self.root.join("seed");
        let kept = read(&path).ok().flatten().and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
        kept.unwrap_or_else(|| {
            let mut bytes = [0; 8];
            let seed = if getrandom::fill(&mut bytes).is_ok() { u64::from_le_bytes(bytes) } else { u64::from(std::process::id()) };
            // If it cannot be written, the spread is a different one after a restart, which does no harm.
            let _ = write(&path, &format!("{seed:016x}\n"));
            seed
        })
    }

    /// Returns the account's credentials, JSON.
    pub(crate) fn account(&self) -> Result<Option<String>, FolderError> {
        let path = self.authority.join("account.json");
        read(&path).map_err(FolderError::of(&path, "read"))
    }

    pub(crate) fn write_account(&self, json: &str) -> Result<(), FolderError> {
        self.replace("account.json", json)
    }

    /// Moves away an account that its authority does not know. The file gets another name, as its key may still be of use.
    pub(crate) fn retire_account(&self) {
        let _ = fs::rename(self.authority.join("account.json"), self.authority.join("account.json.old"));
    }

    /// Returns the key and chain for `name`, PEM.
    pub(crate) fn certificate(&self, name: &str) -> Result<Option<String>, FolderError> {
        let path = self.path(name, "pem");
        read(&path).map_err(FolderError::of(&path, "read"))
    }

    pub(crate) fn write_certificate(&self, name: &str, pem: &str) -> Result<(), FolderError> {
        self.replace(&file_name(name, "pem"), pem)
    }

    /// Returns the certificate of `name` that has still to be revoked, DER.
    pub(crate) fn compromised(&self, name: &str) -> Option<Vec<u8>> {
        let text = read(&self.path(name, COMPROMISED)).ok().flatten()?;
        BASE64_STANDARD.decode(text.trim()).ok()
    }

    pub(crate) fn write_compromised(&self, name: &str, der: &[u8]) -> Result<(), FolderError> {
        self.replace(&file_name(name, COMPROMISED), &BASE64_STANDARD.encode(der))
    }

    /// Forgets the certificate to revoke: it is revoked, or it was not replaced and so must not be revoked.
    pub(crate) fn forget_compromised(&self, name: &str) {
        let _ = fs::remove_file(self.path(name, COMPROMISED));
    }

    /// Returns the attempts for `name`. A file that cannot be read counts as none.
    pub(crate) fn history(&self, name: &str) -> History {
        let text = read(&self.path(name, "json")).ok().flatten();
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    pub(crate) fn write_history(&self, name: &str, history: &History) -> Result<(), FolderError> {
        let json = serde_json::to_string(history).unwrap_or_default();
        self.replace(&file_name(name, "json"), &json)
    }

    /// Writes as an order would, to see whether that works.
    pub(crate) fn try_to_write(&self) -> Result<(), FolderError> {
        self.replace("check", "")?;
        let _ = fs::remove_file(self.authority.join("check"));
        Ok(())
    }

    /// Returns the path of one of the local root's own files.
    pub(crate) fn root_file(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn path(&self, name: &str, extension: &str) -> PathBuf {
        self.authority.join(file_name(name, extension))
    }

    fn replace(&self, name: &str, text: &str) -> Result<(), FolderError> {
        let path = self.authority.join(name);
        write(&path, text).map_err(FolderError::of(&path, "written"))
    }
}

/// Reads a file; returns `None` if it does not exist.
pub(crate) fn read(path: &Path) -> io::Result<Option<String>> {
    use io::Read as _;
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(Some(text))
}

/// Writes a file under another name first, and renames it. A reader, and a restart after a crash, finds the old file or the new one, whole.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    let temporary = PathBuf::from(temporary);
    // A crash may have left it behind; a link is never followed.
    let _ = fs::remove_file(&temporary);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(&temporary)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    } else if let Some(folder) = path.parent().and_then(|folder| File::open(folder).ok()) {
        // This puts the new name on the disk as well. Without it a crash might bring the old file back, which loses nothing that was
        // ordered.
        let _ = folder.sync_all();
    }
    written
}

fn file_name(name: &str, extension: &str) -> String {
    format!("{}.{extension}", plain(&name.replace('*', "_")))
}

/// Returns a directory's URL, such as `https://acme-v02.api.letsencrypt.org/directory`, as the name of a folder.
pub(crate) fn slug(directory: &str) -> String {
    let (_, rest) = directory.split_once("://").unwrap_or(("", directory));
    plain(rest)
}

/// Returns a name as a file name. Names come from configuration and, on demand, from strangers' handshakes: no part of them may lead out of
/// the folder.
fn plain(name: &str) -> String {
    let harmless = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let name: String = name.chars().map(|c| if harmless(c) { c.to_ascii_lowercase() } else { '-' }).collect();
    name.trim_matches(['-', '.']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIRECTORY: &str = "https://acme.example/directory";

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("there").permissions().mode() & 0o7777
    }

    #[test]
    fn keys_are_for_their_owner_alone() {
        let place = tempfile::tempdir().expect("a folder");
        let root = place.path().join("state/acme");
        let folder = Folder::open(&root, DIRECTORY).expect("made");
        folder.write_certificate("*.blog.example.org", "a key").expect("written");
        folder.write_account("{}").expect("written");
        let authority = root.join("acme.example-directory");
        assert_eq!((mode(&root), mode(&authority)), (0o700, 0o700));
        assert_eq!((mode(&authority.join("_.blog.example.org.pem")), mode(&authority.join("account.json"))), (0o600, 0o600));
        assert_eq!(folder.certificate("*.blog.example.org").expect("read").as_deref(), Some("a key"));
        assert_eq!(folder.certificate("blog.example.org").expect("read"), None);
    }

    /// Other servers refuse to start here, or go on with keys that everybody can read.
    #[test]
    fn a_folder_that_is_open_to_others_is_closed() {
        let place = tempfile::tempdir().expect("a folder");
        fs::set_permissions(place.path(), Permissions::from_mode(0o755)).expect("set");
        Folder::open(place.path(), DIRECTORY).expect("opened");
        assert_eq!(mode(place.path()), 0o700);
    }

    #[test]
    fn a_file_is_replaced_whole_and_nothing_stays_behind() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(place.path(), DIRECTORY).expect("made");
        let left_by_a_crash = place.path().join("acme.example-directory/a.example.org.pem.new");
        fs::write(&left_by_a_crash, "half").expect("written");
        folder.write_certificate("a.example.org", "one").expect("written");
        folder.write_certificate("a.example.org", "two").expect("written");
        assert_eq!(folder.certificate("a.example.org").expect("read").as_deref(), Some("two"));
        assert!(!left_by_a_crash.exists());
    }

    #[test]
    fn of_two_servers_one_orders() {
        let place = tempfile::tempdir().expect("a folder");
        let [one, other] = [(), ()].map(|()| Folder::open(place.path(), DIRECTORY).expect("made"));
        assert!(one.is_ours() && !other.is_ours() && one.is_ours());
        drop(one);
        assert!(other.is_ours());
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        for (name, expected) in
            [("../../etc/passwd", "etc-passwd.pem"), ("a/b", "a-b.pem"), ("::1", "1.pem"), ("A.Example", "a.example.pem")]
        {
            assert_eq!(file_name(name, "pem"), expected);
        }
        assert_eq!(slug("https://127.0.0.1:14000/dir"), "127.0.0.1-14000-dir");
    }

    #[test]
    fn the_spread_is_the_same_after_a_restart() {
        let place = tempfile::tempdir().expect("a folder");
        let seed = || Folder::open(place.path(), DIRECTORY).expect("made").seed();
        assert_eq!(seed(), seed());
    }
}
