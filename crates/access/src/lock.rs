//! A file of users, and what makes asking it safe.

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use parking_lot::Mutex;
use semantics::Timestamp;

use crate::{
    BadLine, Credentials, FileError,
    attempts::{Attempts, SPARE, group},
    htpasswd::{Mark, Users},
    memo::Memo,
};

/// How often the file is checked for changes, while anybody asks.
const LOOK_EVERY_MS: u64 = 1_000;

/// A file of users that is read again when it changes. All workers share it.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    read: Mutex<(Option<Mark>, Arc<Users>)>,
    /// When the file was checked last, in milliseconds; 0: not yet.
    looked: AtomicU64,
    memo: Mutex<Memo>,
    attempts: Mutex<Attempts>,
}

impl Lock {
    /// Reads the file, and returns the lines that let nobody in.
    ///
    /// # Errors
    /// Fails when the file cannot be read, or is not a file of users.
    pub fn open(path: &Path) -> Result<(Self, Vec<BadLine>), FileError> {
        // The mark is taken before the file is read: a change in between is then noticed the next time.
        let mark = Mark::of(path);
        let (users, bad) = Users::read(path)?;
        let memo = Memo::new().ok_or(FileError::NoRandomness)?;
        let lock = Self {
            path: path.to_owned(),
            read: Mutex::new((mark, Arc::new(users))),
            looked: AtomicU64::new(0),
            memo: Mutex::new(memo),
            attempts: Mutex::default(),
        };
        Ok((lock, bad))
    }

    /// Returns whether it is time to [look](Self::look) at the file: true for one caller a second.
    pub fn is_due(&self, now: Timestamp) -> bool {
        let (now, before) = (now.as_millis(), self.looked.load(Relaxed));
        now.saturating_sub(before) >= LOOK_EVERY_MS && self.looked.compare_exchange(before, now, Relaxed, Relaxed).is_ok()
    }

    /// Reads the file again if it has changed. It blocks. While the file cannot be read, nobody gets in: the operator may have removed it
    /// for that purpose.
    pub fn look(&self) {
        let mark = Mark::of(&self.path);
        if self.read.lock().0 == mark {
            return;
        }
        let users = match Users::read(&self.path) {
            Ok((users, bad)) => {
                tracing::info!(file = %self.path.display(), users = users.len(), "the file of users has changed");
                for BadLine { line, problem } in bad {
                    tracing::warn!(file = %self.path.display(), line, "lets nobody in: {problem}");
                }
                users
            }
            Err(error) => {
                tracing::error!("all logins are refused until the file is back: {error}");
                Users::default()
            }
        };
        *self.read.lock() = (mark, Arc::new(users));
    }

    /// Returns whether there is a user of that name.
    #[must_use]
    pub fn has_user(&self, name: &str) -> bool {
        self.users().get(name).is_some()
    }

    /// Returns whether these credentials are known to be right. Takes microseconds.
    #[must_use]
    pub fn knows(&self, credentials: &Credentials) -> bool {
        self.users().get(credentials.user()).is_some_and(|hash| self.memo.lock().has(credentials, hash))
    }

    /// Returns whether these credentials are right. Blocks for as long as the hash takes: up to a second.
    #[must_use]
    pub fn verify(&self, credentials: &Credentials) -> bool {
        let users = self.users();
        let Some(hash) = users.get(credentials.user()) else {
            if let Some(decoy) = users.decoy() {
                let _ = decoy.verify(credentials.password());
            }
            return false;
        };
        let right = hash.verify(credentials.password());
        if right {
            self.memo.lock().remember(credentials, hash);
        }
        right
    }

    /// Returns whether this client may have its credentials verified.
    ///
    /// # Errors
    /// Returns how long the client has to wait, after too many wrong credentials.
    pub fn may_try(&self, client: Option<IpAddr>, now: Timestamp) -> Result<(), Duration> {
        self.attempts.lock().may_try(group(client), SPARE, now)
    }

    /// Notes that this client's credentials were wrong.
    pub fn was_wrong(&self, client: Option<IpAddr>, now: Timestamp) {
        self.attempts.lock().was_wrong(group(client), 1, now);
    }

    fn users(&self) -> Arc<Users> {
        Arc::clone(&self.read.lock().1)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use base64::{Engine as _, engine::general_purpose::STANDARD};

    use super::*;

    /// The hash of "secret"; `OTHER` is that of "other".
    const SECRET: &str = "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=";
    const OTHER: &str = "{SHA}0JQeaNqPOBUf+Gph/Fn3xc+fyqI=";

    fn said(user: &str, password: &str) -> Credentials {
        Credentials::basic(format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))).as_bytes()).expect("credentials")
    }

    fn lock(text: &str) -> (tempfile::TempDir, PathBuf, Lock) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("users");
        fs::write(&path, text).expect("written");
        let (lock, bad) = Lock::open(&path).expect("users");
        assert_eq!(bad, []);
        (folder, path, lock)
    }

    #[test]
    fn what_was_right_once_is_known() {
        let (_folder, _, lock) = lock(&format!("ada:{SECRET}\n"));
        let ada = said("ada", "secret");
        assert!(!lock.knows(&ada) && lock.verify(&ada) && lock.knows(&ada));
        for (user, password) in [("ada", "Secret"), ("bob", "secret"), ("", "secret"), ("ada", "")] {
            let wrong = said(user, password);
            assert!(!lock.verify(&wrong) && !lock.knows(&wrong), "{user}:{password}");
        }
    }

    #[test]
    fn a_changed_file_counts_at_the_next_look() {
        let (_folder, path, lock) = lock(&format!("ada:{SECRET}\n"));
        assert!(lock.verify(&said("ada", "secret")));
        fs::write(&path, format!("ada:{OTHER}\n")).expect("written");
        lock.look();
        assert!(!lock.knows(&said("ada", "secret")) && !lock.verify(&said("ada", "secret")));
        assert!(lock.verify(&said("ada", "other")));
        // While the file is away, nobody gets in; when it is back, it is as before.
        let away = path.with_extension("away");
        fs::rename(&path, &away).expect("renamed");
        lock.look();
        assert!(!lock.knows(&said("ada", "other")) && !lock.verify(&said("ada", "other")));
        fs::rename(&away, &path).expect("renamed");
        lock.look();
        assert!(lock.knows(&said("ada", "other")));
    }

    #[test]
    fn one_caller_a_second_looks() {
        let (_folder, _, lock) = lock("");
        let start = Timestamp::from_secs(1_000);
        assert!(lock.is_due(start) && !lock.is_due(start) && !lock.is_due(start + Duration::from_millis(999)));
        assert!(lock.is_due(start + Duration::from_secs(1)));
    }
}
