//! Names of files that are never sent, whatever asks for them: source, and what lies beside it.

use std::{ffi::OsStr, path::Path};

/// Endings of files whose text is source, or that have passwords, private keys and people's data in them.
const SECRET: [&str; 25] = [
    ".inc", ".phtml", ".pht", ".phar", ".sql", ".mysql", ".dump", ".sqlite", ".sqlite3", ".db", ".db3", ".mdb", ".ini", ".bak", ".orig",
    ".swp", ".swo", ".save", ".old", ".wpress", ".pem", ".ppk", ".p12", ".pfx", ".kdbx",
];
/// The endings of the files that an open database has beside its own.
const OF_DATABASE: [&str; 3] = ["-wal", "-shm", "-journal"];
/// Endings under which such files are packed.
const PACKED: [&str; 10] = [".gz", ".bz2", ".xz", ".zst", ".br", ".zip", ".7z", ".rar", ".tgz", ".tar"];
/// The files that PHP and WordPress log into, if they are told to.
const LOGS: [&str; 5] = ["debug.log", "error_log", "php_errorlog", "php_error.log", "php_errors.log"];
/// Keys and passwords of a server that somebody has put into the folder.
const KEYS: [&str; 5] = ["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "htpasswd"];
/// The ending of private keys, and of presentations, which are larger than this.
const KEY: (&str, u64) = (".key", 64 << 10);
/// The passwords of WordPress, under whatever name somebody has put them aside: `wp-config.txt`, `wp-config copy`.
const CONFIGURATION: &str = "wp-config";

/// Returns whether a file of this name and length is never sent. `.php` counts wherever it stands in the name: `a.php`, `a.php~`, `a.php.gz`, `a.phps`,
/// `a.php5`; but `a.php.html` is a page that somebody has saved.
#[must_use]
pub fn is_secret(name: &OsStr, bytes: u64) -> bool {
    let name = name.to_string_lossy().to_ascii_lowercase();
    let mut plain = name.as_str();
    // `dump.sql.tar.gz`, `debug.log.2.gz`, `debug.log-20260101`.
    while let Some(inner) = PACKED.iter().find_map(|ending| plain.strip_suffix(ending)).or_else(|| without_number(plain)) {
        plain = inner;
    }
    let database = OF_DATABASE.iter().find_map(|ending| plain.strip_suffix(ending)).unwrap_or(plain);
    name.contains(".php") && !name.ends_with(".html") && !name.ends_with(".htm")
        || name.starts_with(CONFIGURATION)
        || name.ends_with('~')
        || SECRET.iter().any(|ending| database.ends_with(ending))
        || LOGS.contains(&plain)
        || KEYS.contains(&plain)
        || plain.ends_with(KEY.0) && bytes <= KEY.1
}

/// Returns a name without the number or date that old logs and copies have at the end.
fn without_number(name: &str) -> Option<&str> {
    let inner = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (inner.len() < name.len()).then_some(inner)?.strip_suffix(['.', '-'])
}

/// Returns whether a script of this name has the passwords of a WordPress, or is a copy of one that has: nobody asks for it but other scripts.
pub(crate) fn is_configuration(name: &OsStr) -> bool {
    name.as_encoded_bytes().get(..CONFIGURATION.len()).is_some_and(|start| start.eq_ignore_ascii_case(CONFIGURATION.as_bytes()))
}

/// Returns whether `folders`, which are names one below the other, stand somewhere in `path`. Upper and lower case are the same: they are so on some disks.
pub(crate) fn lies_below(path: &Path, folders: &Path) -> bool {
    let (path, folders): (Vec<_>, Vec<_>) = (path.iter().collect(), folders.iter().collect());
    !folders.is_empty()
        && path.windows(folders.len()).any(|names| names.iter().zip(&folders).all(|(one, other)| one.eq_ignore_ascii_case(other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_is_never_sent_by_whatever_name() {
        for name in [
            "a.php",
            "a.PHP",
            "a.php~",
            "a.php.bak",
            "a.php.gz",
            "a.php5",
            "a.phps",
            "a.php.jpg",
            "wp-config.php.save",
            "a.phtml",
            "a.phar",
            "a.inc",
            "a.INC",
            "a.inc.gz",
            "a.txt~",
            "dump.sql",
            "dump.sql.gz",
            "dump.sql.zip",
            "dump.sql.tar.gz",
            "site.wpress",
            "wp-config.txt",
            "wp-config copy",
            "index.old",
            "php_errors.log",
            "php.ini",
            "debug.log",
            "error_log",
            "a.pht",
            "debug.log.1",
            "debug.log.gz",
            "debug.log.2.gz",
            "debug.log-20260101",
            "error_log-20260101.gz",
            "dump.sql.1",
            "site.sqlite3",
            "site.sqlite-wal",
            "site.db",
            "db.mysql",
            "dump.dump",
            "server.key",
            "privkey.pem",
            "id_rsa",
            "id_ed25519",
            "htpasswd",
            "wp-config.php.html",
        ] {
            assert!(is_secret(name.as_ref(), 1_700), "{name}");
        }
        for name in [
            "a.txt",
            "photo.jpg",
            "style.css",
            "php.html",
            "index.html",
            "increment.js",
            "a.log",
            "pharmacy.png",
            "a.zip",
            "sitemap.xml.gz",
            "site.tar.gz",
            "readme.html",
            "license.txt",
            "my-wp-config.html",
            "about.php.html",
            "id_rsa.pub",
            "ca.crt",
            "photo-2024.jpg",
            "release-1.2.3.zip",
            "access.log.1",
            "dumpling.jpg",
        ] {
            assert!(!is_secret(name.as_ref(), 1_700), "{name}");
        }
        // A presentation, which WordPress takes as an upload.
        assert!(!is_secret("talk.key".as_ref(), 3_000_000));
    }

    #[test]
    fn a_folder_is_found_wherever_it_stands() {
        let uploads = Path::new("wp-content/uploads");
        for path in [
            "wp-content/uploads/a.php",
            "blog/wp-content/uploads/2024/a.php",
            "/var/lib/x/wp-content/uploads/a",
            "WP-Content/Uploads/a.php",
        ] {
            assert!(lies_below(Path::new(path), uploads), "{path}");
        }
        for path in ["wp-content/a.php", "uploads/a.php", "wp-content/x/uploads/a.php", "xwp-content/uploads/a.php"] {
            assert!(!lies_below(Path::new(path), uploads), "{path}");
        }
        assert!(!lies_below(uploads, Path::new("")));
    }
}
