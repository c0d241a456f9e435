//! Names of files that are never sent, whatever asks for them: source, and what lies beside it.

use std::{ffi::OsStr, path::Path};

/// Endings of files whose text is source, or that have passwords and people's data in them.
const SECRET: [&str; 14] =
    [".inc", ".phtml", ".pht", ".phar", ".sql", ".sqlite", ".ini", ".bak", ".orig", ".swp", ".swo", ".save", ".old", ".wpress"];
/// Endings under which such files are packed.
const PACKED: [&str; 10] = [".gz", ".bz2", ".xz", ".zst", ".br", ".zip", ".7z", ".rar", ".tgz", ".tar"];
/// What PHP and WordPress log into, if they are told to.
const LOGS: [&str; 5] = ["debug.log", "error_log", "php_errorlog", "php_error.log", "php_errors.log"];
/// The passwords of WordPress, under whatever name somebody has put them aside: `wp-config.txt`, `wp-config copy`.
const CONFIGURATION: &str = "wp-config";

/// Returns whether a file of this name is never sent. `.php` counts wherever it stands in the name: `a.php`, `a.php~`, `a.php.gz`, `a.phps`, `a.php5`.
pub(super) fn is_secret(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_lowercase();
    let mut unpacked = name.as_str();
    // `dump.sql.tar.gz`.
    while let Some(inner) = PACKED.iter().find_map(|ending| unpacked.strip_suffix(ending)) {
        unpacked = inner;
    }
    name.contains(".php")
        || name.starts_with(CONFIGURATION)
        || name.ends_with('~')
        || SECRET.iter().any(|ending| unpacked.ends_with(ending))
        || LOGS.contains(&name.as_str())
}

/// Returns whether `folders`, which are names one below the other, stand somewhere in `path`. Upper and lower case are the same: they are so on some disks.
pub(super) fn lies_below(path: &Path, folders: &Path) -> bool {
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
        ] {
            assert!(is_secret(name.as_ref()), "{name}");
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
        ] {
            assert!(!is_secret(name.as_ref()), "{name}");
        }
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
