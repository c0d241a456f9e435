//! The look into a folder: whether a WordPress is in it, and which one.

use std::{
    fs::{self, File},
    hash::{DefaultHasher, Hash, Hasher},
    io::Read,
    path::{Path, PathBuf},
};

use crate::config::settings::{Product, Site, Source};

/// The most bytes of a script that are looked at.
const SCRIPT_BYTES_MAX: u64 = 64 << 10;

/// The most extensions, and files of them, that are looked at.
const EXTENSIONS_MAX: usize = 4_096;

/// The most folders of a folder in which something is looked for.
const BELOW_MAX: usize = 1_000;

/// The folders of WordPress's own files.
const PARTS: [&str; 3] = ["wp-admin", "wp-content", "wp-includes"];

/// A WordPress in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WordPressFolder {
    /// The folder of its own files.
    pub(crate) core: PathBuf,
    /// The path of that folder below the one that is served, empty if it is the same.
    pub(crate) core_path: String,
    /// The version of the software: `6.8.7`.
    pub(crate) version: String,
}

impl WordPressFolder {
    /// Returns whether it was set up: there is a `wp-config.php`, which may also be one folder higher.
    pub(crate) fn is_set_up(&self) -> bool {
        let above = self.core.parent().filter(|above| !above.join("wp-settings.php").exists());
        // Debian's reads one of /etc for each host.
        self.core.join("wp-config.php").exists() || above.is_some_and(|above| above.join("wp-config.php").exists())
    }

    /// Returns whether the plugin of this name is there.
    pub(crate) fn has_plugin(&self, name: &str) -> bool {
        self.core.join("wp-content/plugins").join(name).is_dir()
    }

    /// Returns a number for the themes and plugins that are there: another one stands for others, or for other versions of them.
    pub(crate) fn extensions(&self) -> u64 {
        let mut seen = DefaultHasher::new();
        self.version.hash(&mut seen);
        for kind in ["themes", "plugins", "mu-plugins"] {
            let items = fs::read_dir(self.core.join("wp-content").join(kind)).into_iter().flatten().flatten().take(EXTENSIONS_MAX);
            let mut found: Vec<_> = items.map(|item| (item.file_name(), changed(&item.path()))).collect();
            found.sort();
            found.hash(&mut seen);
        }
        seen.finish()
    }
}

/// Returns when a file, or the list of a folder's files, was changed.
fn changed(path: &Path) -> Option<std::time::SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

/// Looks for the WordPress in the folder of a site that is kept as one.
pub(crate) fn of(site: &Site) -> Option<WordPressFolder> {
    match (&site.source, site.product()) {
        (Source::Php(folder), Product::WordPress(wordpress)) => look(folder, wordpress.path.as_deref()),
        _ => None,
    }
}

/// Looks for a WordPress in `folder`, below `path` if the site is there. Its own files may be in a folder of their own, which `index.php` names.
pub(crate) fn look(folder: &Path, path: Option<&str>) -> Option<WordPressFolder> {
    let path = path.unwrap_or_default();
    let site = folder.join(path.trim_start_matches('/'));
    found_in(&site, path.to_owned()).or_else(|| {
        let own = core_of(&script(&site.join("index.php"))?)?;
        found_in(&site.join(&own), format!("{path}/{own}"))
    })
}

/// Returns the folder of the WordPress that `folder` is a part of: its `wp-admin`, say.
pub(crate) fn whole_of(folder: &Path) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    let part = folder.ancestors().find(|above| above.file_name().is_some_and(|name| PARTS.iter().any(|part| name == *part)))?;
    let whole = part.parent()?;
    look(whole, None).map(|_| whole.to_owned())
}

/// Returns the name of the first folder in `folder` of which `is_it` holds. Hidden folders are passed over.
pub(crate) fn below(folder: &Path, is_it: impl Fn(&Path) -> bool) -> Option<String> {
    let items = fs::read_dir(folder).into_iter().flatten().flatten().take(BELOW_MAX);
    let mut names: Vec<_> = items.filter_map(|item| item.file_name().into_string().ok()).filter(|name| !name.starts_with('.')).collect();
    names.sort();
    names.into_iter().find(|name| is_it(&folder.join(name)))
}

fn found_in(core: &Path, core_path: String) -> Option<WordPressFolder> {
    let version = version_of(&script(&core.join("wp-includes/version.php"))?)?;
    core.join("wp-load.php").is_file().then(|| WordPressFolder { core: core.to_owned(), core_path, version })
}

fn script(path: &Path) -> Option<String> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(SCRIPT_BYTES_MAX).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Returns the version that `version.php` sets.
fn version_of(script: &str) -> Option<String> {
    let line = script.lines().find_map(|line| line.trim_start().strip_prefix("$wp_version")?.trim_start().strip_prefix('='))?;
    let quoted = line.trim().trim_end_matches(';').trim();
    let version = quoted.trim_matches(['\'', '"']);
    (version != quoted && !version.is_empty() && version.len() <= 60 && version.bytes().all(|b| b.is_ascii_graphic()))
        .then(|| version.to_owned())
}

/// Returns the folder of WordPress's own files that an `index.php` names: `wp` for `require __DIR__ . '/wp/wp-blog-header.php';`.
fn core_of(script: &str) -> Option<String> {
    let before = script.split("/wp-blog-header.php").next().filter(|before| before.len() < script.len())?;
    let own = before.rsplit(['\'', '"']).next()?.trim_start_matches("./").trim_matches('/');
    let is_plain = |name: &str| !name.is_empty() && !name.starts_with('.') && name.bytes().all(|b| b.is_ascii_graphic());
    own.split('/').all(is_plain).then(|| own.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, files: &[(&str, &str)]) {
        for (file, text) in files {
            let path = folder.join(file);
            fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            fs::write(path, text).expect("a file");
        }
    }

    const VERSION: &str = "<?php\n/**\n * @global string $wp_version\n */\n$wp_version = '6.8.7';\n\n$wp_db_version = 60421;\n";

    #[test]
    fn a_wordpress_is_found_by_its_own_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path();
        assert_eq!(look(at, None), None);
        write(at, &[("wp-includes/version.php", VERSION)]);
        assert_eq!(look(at, None), None, "an export may have the first file");
        write(at, &[("wp-load.php", "<?php")]);
        let found = look(at, None).expect("a WordPress");
        assert_eq!((found.version.as_str(), found.core_path.as_str(), found.is_set_up()), ("6.8.7", "", false));
        write(at, &[("wp-config.php", "<?php")]);
        assert!(found.is_set_up());
        write(at, &[("wp-includes/version.php", "<?php echo 1;")]);
        assert_eq!(look(at, None), None);
    }

    #[test]
    fn its_own_files_may_be_in_a_folder_of_their_own_or_below_a_path() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path();
        write(at, &[("wp/wp-includes/version.php", VERSION), ("wp/wp-load.php", ""), ("wp-config.php", "")]);
        assert_eq!(look(at, None), None);
        write(at, &[("index.php", "<?php\ndefine( 'WP_USE_THEMES', true );\nrequire __DIR__ . '/wp/wp-blog-header.php';\n")]);
        let found = look(at, None).expect("a WordPress");
        assert_eq!((found.core_path.as_str(), found.is_set_up()), ("/wp", true));
        assert_eq!(look(at, Some("/wp")).expect("the same").core_path, "/wp");
        for elsewhere in ["'/../other/wp-blog-header.php'", "'/wp-blog-header.php'", "no such line"] {
            write(at, &[("index.php", elsewhere)]);
            assert_eq!(look(at, None), None, "{elsewhere}");
        }
    }

    #[test]
    fn an_updated_theme_is_seen() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path();
        write(at, &[("wp-includes/version.php", VERSION), ("wp-load.php", ""), ("wp-content/themes/one/style.css", "")]);
        let found = look(at, None).expect("a WordPress");
        let before = found.extensions();
        assert_eq!(found.extensions(), before);
        write(at, &[("wp-content/themes/two/style.css", "")]);
        assert_ne!(found.extensions(), before);
    }
}
