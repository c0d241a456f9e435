//! The secret of the admin API: one file, readable by its owner alone.
//!
//! Whoever can read the file may purge, so its permissions are the access control. It is made at the first start; an operator may as
//! well put a secret of their own there.

use std::{
    fmt,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use semantics::hex;
use subtle::ConstantTimeEq as _;

/// The number of random bytes in a new token; as hexadecimal digits they are twice as many characters.
const RANDOM_BYTES: usize = 32;

/// Shorter secrets of an operator's own are refused: they could be guessed at the rate the listener answers.
const TOKEN_BYTES_MIN: usize = 32;
const TOKEN_BYTES_MAX: usize = 512;

/// The secret of the admin API.
#[derive(Clone)]
pub struct Token(String);

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// Nobody has made it yet.
    #[error("there is no token file {path}: `seawall serve` makes it when it starts; is it running, and as the same user?", path = .0.display())]
    Missing(PathBuf),
    /// Others can read it.
    #[error("the token file {path} has mode {mode:04o}, so others can read the token: `chmod 600 {path}`", path = .path.display())]
    TooOpen {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// It holds something else.
    #[error("the file {path} holds no token (32 to 512 letters, digits or -._~+/=): delete it, and the next start makes a new one", path = .0.display())]
    Malformed(PathBuf),
    /// It could not be read.
    #[error("the token file {path} cannot be read; set admin_token_file to one that can", path = .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason that the system gives.
        source: io::Error,
    },
    /// It could not be made.
    #[error("the token file {path} cannot be made; set admin_token_file to a place that can be written", path = .path.display())]
    NotMade {
        /// The file.
        path: PathBuf,
        /// The reason that the system gives.
        source: io::Error,
    },
    /// The system has no random bytes.
    #[error("the system gave no random bytes for a token")]
    NoRandomness(#[source] getrandom::Error),
}

impl Token {
    /// Makes a token of this text; returns `None` if it is too short, too long, or cannot stand in an `Authorization` field (RFC 6750 §2.1).
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let is_b68 = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
        let fits = (TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_b68);
        fits.then(|| Self(text.to_owned()))
    }

    /// Reads the token from its file.
    ///
    /// # Errors
    /// When the file is missing, open to others, or holds something else.
    pub fn load(path: &Path) -> Result<Self, TokenError> {
        let unreadable = |source| TokenError::Unreadable { path: path.to_owned(), source };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(TokenError::Missing(path.to_owned())),
            Err(error) => return Err(unreadable(error)),
        };
        // Of the open file, not of the path: nobody can put another file there in between.
        let mode = file.metadata().map_err(unreadable)?.permissions().mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(TokenError::TooOpen { path: path.to_owned(), mode });
        }
        let mut text = Vec::new();
        file.take(TOKEN_BYTES_MAX as u64 + 2).read_to_end(&mut text).map_err(unreadable)?;
        let text = std::str::from_utf8(&text).ok().map(str::trim_ascii);
        text.and_then(Self::new).ok_or_else(|| TokenError::Malformed(path.to_owned()))
    }

    /// Reads the token, or makes one where there is none. Of several that start at once, all get the same.
    ///
    /// # Errors
    /// As [`load`](Self::load), or when the file cannot be made.
    pub fn load_or_create(path: &Path) -> Result<Self, TokenError> {
        match Self::load(path) {
            Err(TokenError::Missing(_)) => {}
            outcome => return outcome,
        }
        let token = Self::random()?;
        match token.publish(path) {
            Ok(()) => Ok(token),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Self::load(path),
            Err(source) => Err(TokenError::NotMade { path: path.to_owned(), source }),
        }
    }

    /// Makes a new one.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub fn random() -> Result<Self, TokenError> {
        let mut bytes = [0; RANDOM_BYTES];
        getrandom::fill(&mut bytes).map_err(TokenError::NoRandomness)?;
        Ok(Self(hex::encoded(&bytes)))
    }

    /// Writes the file under another name and gives it its own only when it is whole, so that no reader meets half a token.
    fn publish(&self, path: &Path) -> io::Result<()> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut unique = [0; 8];
        getrandom::fill(&mut unique).map_err(io::Error::other)?;
        let temporary = folder.join(format!(".{}.{}", name.to_string_lossy(), hex::encoded(&unique)));

        // O_EXCL: never through a link that somebody laid there.
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        let written = file.write_all(format!("{}\n", self.0).as_bytes()).and_then(|()| file.sync_all());
        let published = written.and_then(|()| match fs::hard_link(&temporary, path) {
            // A rename would replace the token of another process that was quicker; a link does not. Some file systems have no links.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => fs::rename(&temporary, path),
            outcome => outcome,
        });
        // After a rename it is gone already; otherwise this takes away the second name, or what a failure left behind.
        let _ = fs::remove_file(&temporary);
        published
    }

    /// The text, to be sent as `Authorization: Bearer TEXT`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether `given` is this token, in a time that does not tell how much of it is right.
    #[must_use]
    pub fn matches(&self, given: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(given).into()
    }
}

/// Never shows the secret: tokens are part of what gets logged with `{:?}`.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, error::Error as _, sync::Barrier, thread};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("there").permissions().mode() & 0o7777
    }

    fn write(path: &Path, text: &str, mode: u32) {
        fs::write(path, text).expect("written");
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
    }

    #[test]
    fn the_first_start_makes_a_file_for_its_owner_alone() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("state/seawall/admin-token");
        assert!(matches!(Token::load(&path), Err(TokenError::Missing(missing)) if missing == path));

        let made = Token::load_or_create(&path).expect("made");
        assert_eq!(made.as_str().len(), 64);
        assert!(made.as_str().bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)));
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().expect("a folder")), 0o700);
        let left: Vec<_> = fs::read_dir(path.parent().expect("a folder")).expect("read").collect();
        assert_eq!(left.len(), 1, "no temporary file stays: {left:?}");

        assert_eq!(Token::load_or_create(&path).expect("read").as_str(), made.as_str());
        assert_eq!(Token::load(&path).expect("read").as_str(), made.as_str());
        let other = Token::load_or_create(&place.path().join("other")).expect("made");
        assert_ne!(other.as_str(), made.as_str());
    }

    #[test]
    fn whoever_starts_at_once_gets_the_same() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("token");
        let barrier = Barrier::new(8);
        let tokens: HashSet<String> = thread::scope(|scope| {
            let start = || {
                barrier.wait();
                Token::load_or_create(&path).expect("a token").0
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert_eq!(tokens.len(), 1);
    }

    #[test]
    fn a_file_that_others_can_read_is_refused_with_its_remedy() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("token");
        let secret = "f".repeat(64);
        for (mode, allowed) in
            [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o644, false), (0o620, false), (0o610, false)]
        {
            write(&path, &secret, mode);
            match Token::load_or_create(&path) {
                Ok(token) => assert!(allowed && token.as_str() == secret, "{mode:o}"),
                Err(error @ TokenError::TooOpen { .. }) => {
                    assert!(!allowed, "{mode:o}");
                    assert!(error.to_string().contains(&format!("`chmod 600 {}`", path.display())), "{error}");
                    assert!(error.to_string().contains(&format!("{mode:04o}")), "{error}");
                }
                Err(error) => panic!("{mode:o}: {error}"),
            }
        }
    }

    #[test]
    fn a_file_that_holds_no_token_is_not_replaced() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("token");
        let (shortest, longest) = ("a".repeat(32), "a".repeat(512));
        let cases = [
            (shortest.clone(), true),
            (format!("{shortest}\n"), true),
            (longest.clone(), true),
            (format!("{longest}\n"), true),
            (format!("{longest}a"), false),
            ("a".repeat(31), false),
            (String::new(), false),
            (format!("{shortest} {shortest}"), false),
            (format!("{shortest}\u{fc}"), false),
        ];
        for (text, allowed) in cases {
            write(&path, &text, 0o600);
            let outcome = Token::load_or_create(&path);
            assert_eq!(outcome.is_ok(), allowed, "{text:?}");
            assert!(allowed || matches!(outcome, Err(TokenError::Malformed(_))), "{text:?}");
            assert_eq!(fs::read_to_string(&path).expect("still there"), text);
        }
    }

    #[test]
    fn a_place_that_takes_no_file_is_named() {
        let place = tempfile::tempdir().expect("a folder");
        write(&place.path().join("file"), "", 0o600);
        let error = Token::load_or_create(&place.path().join("file/token")).expect_err("a file is not a folder");
        assert!(matches!(error, TokenError::Unreadable { .. } | TokenError::NotMade { .. }), "{error:?}");
        assert!(error.to_string().contains("admin_token_file") && error.source().is_some(), "{error}");
    }

    #[test]
    fn the_secret_is_compared_whole_and_never_shown() {
        let secret = "0123456789abcdef0123456789abcdef";
        let token = Token::new(secret).expect("long enough");
        for (given, expected) in [(secret, true), ("0123456789abcdef0123456789abcdeg", false), ("0123456789abcdef", false), ("", false)] {
            assert_eq!(token.matches(given.as_bytes()), expected, "{given}");
        }
        assert!(!format!("{token:?}").contains("0123"));
    }
}
