//! Certificates that are files: loaded, and taken over again when they change.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
    time::Duration,
};

use edge::tls::{Bundle, CertificateError, Certificates, names_of, read_pair};

use crate::config::settings::CertificateFiles;

/// The interval in which the files are looked at. Each look costs two `stat` calls.
const LOOK: Duration = Duration::from_secs(5);

/// Watches the files of certificates.
#[derive(Debug)]
pub(crate) struct Files {
    certificates: Arc<Certificates>,
    watched: Mutex<Vec<WatchedCertificate>>,
}

#[derive(Debug)]
struct WatchedCertificate {
    files: CertificateFiles,
    /// The stamps of both files at the last reading, whether it succeeded or not.
    seen: [Option<Stamp>; 2],
}

/// Properties of a file that change when it changes, also when it is a link that leads elsewhere.
type Stamp = (u64, u64, u64, i64, i64);

impl Files {
    pub(crate) fn new(certificates: Arc<Certificates>) -> Self {
        Self { certificates, watched: Mutex::default() }
    }

    /// Replaces the watched files, and reads them. If one cannot be read, all stay as they are.
    pub(crate) fn watch(&self, files: &[CertificateFiles]) -> Result<(), CertificateError> {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bundles = Vec::with_capacity(files.len());
        let mut new = Vec::with_capacity(files.len());
        for files in files {
            // Before it is read: what changes meanwhile is seen next time.
            let seen = stamps(files);
            bundles.push((id(files), bundle(files)?));
            new.push(WatchedCertificate { files: files.clone(), seen });
        }
        for old in watched.iter().filter(|old| !new.iter().any(|new| id(&new.files) == id(&old.files))) {
            self.certificates.remove(&id(&old.files));
        }
        for (id, bundle) in bundles {
            self.certificates.put(&id, bundle);
        }
        *watched = new;
        Ok(())
    }

    /// Puts a changed pair into use, if certificate and key fit together. Otherwise the old pair stays until they do.
    pub(crate) fn look(&self) {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        for watched in watched.iter_mut() {
            let now = stamps(&watched.files);
            if now == watched.seen {
                continue;
            }
            watched.seen = now;
            let shown = watched.files.certificate.display();
            match bundle(&watched.files) {
                Ok(bundle) => {
                    tracing::info!(names = bundle.names.join(", "), "the certificate in {shown} is now in use");
                    self.certificates.put(&id(&watched.files), bundle);
                }
                // Files are replaced one after the other: the other one may be on its way.
                Err(error) => tracing::warn!("{shown} has changed, but the old certificate stays in use: {error}"),
            }
        }
    }

    /// Starts a thread that looks every few seconds, until the sender is dropped.
    pub(crate) fn keep_looking(self: Arc<Self>) -> io::Result<mpsc::SyncSender<()>> {
        let (stop, stopped) = mpsc::sync_channel(0);
        thread::Builder::new().name("certificates".to_owned()).spawn(move || {
            while stopped.recv_timeout(LOOK) == Err(mpsc::RecvTimeoutError::Timeout) {
                self.look();
            }
        })?;
        Ok(stop)
    }
}

fn id(files: &CertificateFiles) -> String {
    format!("file:{}", files.certificate.display())
}

fn bundle(files: &CertificateFiles) -> Result<Bundle, CertificateError> {
    let key = read_pair(&files.certificate, &files.key)?;
    let names = key.cert.first().map(names_of).unwrap_or_default();
    Ok(Bundle { names, key, is_default: files.is_default })
}

fn stamps(files: &CertificateFiles) -> [Option<Stamp>; 2] {
    let stamp = |path: &Path| {
        let metadata = fs::metadata(path).ok()?;
        Some((metadata.dev(), metadata.ino(), metadata.len(), metadata.mtime(), metadata.mtime_nsec()))
    };
    [stamp(&files.certificate), stamp(&files.key)]
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn write(folder: &Path, name: &str) -> rcgen::KeyPair {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).expect("a certificate");
        put(&folder.join("cert.pem"), &made.cert.pem());
        made.signing_key
    }

    /// Puts a new file in the place of the old one, as tools that renew certificates do.
    fn put(path: &PathBuf, text: &str) {
        let new = path.with_extension("new");
        fs::write(&new, text).expect("written");
        fs::rename(&new, path).expect("renamed");
    }

    #[test]
    fn a_changed_pair_is_taken_over_when_it_fits_and_not_before() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = CertificateFiles { certificate: folder.path().join("cert.pem"), key: folder.path().join("key.pem"), is_default: false };
        put(&files.key, &write(folder.path(), "old.example").serialize_pem());
        let certificates = Certificates::new();
        let watching = Files::new(Arc::clone(&certificates));
        watching.watch(std::slice::from_ref(&files)).expect("they fit");
        let covered = || ["old.example", "new.example"].map(|name| certificates.covers(name));
        assert_eq!(covered(), [true, false]);
        let key = write(folder.path(), "new.example");
        watching.look();
        assert_eq!(covered(), [true, false], "the new certificate does not fit the old key");
        put(&files.key, &key.serialize_pem());
        watching.look();
        assert_eq!(covered(), [false, true]);
        fs::remove_file(&files.certificate).expect("removed");
        watching.look();
        assert_eq!(covered(), [false, true], "what is gone is kept");
        watching.watch(&[]).expect("nothing to read");
        assert_eq!(covered(), [false, false], "what is named no more is shown no more");
    }
}
