//! Reads what an application says to its server in an `.htaccess`, as far as it leaves no doubt.
//!
//! A folder may be closed: applications do so with protected downloads, backups and logs, and behind a server that does not read it all of that is public.
//! A file that denies everything to everybody counts; one that allows something to somebody is passed over, as every server but Apache does. And a folder
//! may have a script for all that names no file.

use std::{io, io::Read as _, path::Path};

use crate::files::{Entry, Root};

const HTACCESS: &str = ".htaccess";
/// The longest such file that is read. Those that close a folder have a few lines, that of Drupal has 8 KB.
const BYTES_MAX: u64 = 32 * 1024;

/// Returns whether a folder above a file is closed, by the name it was asked for or by the one without links. Blocks.
pub(super) fn is_closed(root: &Root, entry: &Entry) -> io::Result<bool> {
    for path in [&entry.name, &entry.real] {
        // The root itself is open, or there would be no site.
        for folder in path.ancestors().skip(1).take_while(|folder| !folder.as_os_str().is_empty()) {
            if path.is_relative() && rules(root, folder)?.is_some_and(|rules| denies_all(&rules)) {
                return Ok(true);
            }
        }
        if entry.name == entry.real {
            break;
        }
    }
    Ok(false)
}

/// Returns whether the rules of a folder have `script` in it answer for what names no file. Blocks.
pub(super) fn leads_to(root: &Root, folder: &Path, script: &str) -> io::Result<bool> {
    let leads = |line: &str| {
        let mut words = line.split_whitespace();
        let is_rule =
            words.next().is_some_and(|word| ["rewriterule", "fallbackresource"].iter().any(|rule| word.eq_ignore_ascii_case(rule)));
        is_rule && words.any(|word| word.split(['/', '?', '"']).any(|name| name == script))
    };
    Ok(rules(root, folder)?.is_some_and(|rules| rules.lines().any(leads)))
}

/// Returns the rules of a folder.
fn rules(root: &Root, folder: &Path) -> io::Result<Option<String>> {
    let rules = match root.find_file(&folder.join(HTACCESS)) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(None),
        found => found?.filter(|rules| rules.metadata.len() <= BYTES_MAX),
    };
    let Some(rules) = rules else { return Ok(None) };
    if !root.may_wait() {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    let mut text = Vec::new();
    rules.file.take(BYTES_MAX).read_to_end(&mut text)?;
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}

/// Returns whether rules deny everything to everybody: in the words of Apache 2.2, of 2.4, or of both, each for its version.
fn denies_all(rules: &str) -> bool {
    let mut denies = false;
    for line in rules.lines() {
        let line = line.trim().to_ascii_lowercase();
        let words: Vec<_> = line.split_whitespace().map(|word| word.trim_matches(['"', '>'])).collect();
        match words[..] {
            [] => {}
            [first, ..] if first.starts_with('#') => {}
            ["deny", "from", "all"] | ["require", "all", "denied"] => denies = true,
            // What changes nothing about it.
            ["order" | "options" | "indexignore", ..] => {}
            ["<ifmodule" | "<ifversion", ..] | ["</ifmodule" | "</ifversion" | "</files" | "</filesmatch"] => {}
            ["<files", "*"] | ["<filesmatch" | "<files", ".*" | "."] | ["<files", "~", ".*"] => {}
            // Anything else may be an exception.
            _ => return false,
        }
    }
    denies
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_denies_everything_to_everybody_closes_a_folder() {
        for rules in [
            "deny from all",
            "Deny From All\n",
            "# Protected\r\nOrder deny,allow\r\nDeny from all\r\n",
            "Require all denied",
            "<IfModule mod_authz_core.c>\n\tRequire all denied\n</IfModule>\n<IfModule !mod_authz_core.c>\n\tDeny from all\n</IfModule>",
            "Options -Indexes\ndeny from all",
            "<Files *>\ndeny from all\n</Files>",
            "<FilesMatch \".*\">\nOrder Allow,Deny\nDeny from all\n</FilesMatch>",
        ] {
            assert!(denies_all(rules), "{rules}");
        }
        for rules in [
            "",
            "# deny from all",
            "Options -Indexes",
            "Deny from all\nAllow from 192.0.2.7",
            "<Files wp-config.php>\ndeny from all\n</Files>",
            "<Files *.php>\ndeny from all\n</Files>",
            "<FilesMatch \"\\.(?i:php)$\">\nRequire all denied\n</FilesMatch>",
            // Akismet's, as it comes with WordPress.
            "<IfModule mod_authz_core.c>\nRequire all denied\n</IfModule>\n<FilesMatch \"^(form\\.js|akismet\\.js)$\">\nRequire all granted\n</FilesMatch>",
            "RewriteEngine On\nRewriteRule . /index.php [L]",
            "Require valid-user",
            "Deny from all\nRequire ip 192.0.2.0/24",
        ] {
            assert!(!denies_all(rules), "{rules}");
        }
    }
}
