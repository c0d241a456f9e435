//! Decides where a text goes: its address, and the file that has it.

use std::collections::HashSet;

use unicode_normalization::UnicodeNormalization as _;

use crate::{
    slug::{RESERVED, decoded, slugify},
    text::{Front, Kind},
};

/// The longest name that is made of a slug, in bytes.
const STEM_BYTES_MAX: usize = 120;

/// A text that gets a location, before it is converted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TextToPlace<'a> {
    pub(crate) kind: Kind,
    /// The slug that it had.
    pub(crate) slug: &'a str,
    /// The title of which a slug is made if that is not usable.
    pub(crate) title: &'a str,
    /// The path at which it was.
    pub(crate) old: Option<&'a str>,
    /// The day of its publication, as 2026-03-01.
    pub(crate) day: Option<&'a str>,
    /// Whether it gets a folder of its own, for the files that belong to it.
    pub(crate) is_folder: bool,
    /// Whether it is not for readers: then neither are the files that belong to it.
    pub(crate) is_draft: bool,
}

/// Says where a text is in the blog.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Location {
    /// The address, not percent-encoded.
    pub(crate) address: String,
    /// The file, in the blog's folder.
    pub(crate) file: String,
    /// The path at which it was, not percent-encoded.
    pub(crate) old: Option<String>,
    slug: Option<String>,
    permalink: Option<String>,
    /// The old address, if it leads here now.
    alias: Option<String>,
}

impl Location {
    /// Forgets the old address: nobody has ever seen it.
    pub(crate) fn forget_old(&mut self) {
        (self.old, self.alias) = (None, None);
    }

    /// Sets what the front matter has to say of the address.
    pub(crate) fn set(&self, front: &mut Front) {
        front.slug.clone_from(&self.slug);
        front.permalink.clone_from(&self.permalink);
        front.aliases.splice(0..0, self.alias.clone());
        let mut seen = HashSet::from([self.address.clone()]);
        front.aliases.retain(|alias| seen.insert(alias.clone()));
    }

    /// Returns the folder of the file.
    pub(crate) fn folder(&self) -> &str {
        self.file.rsplit_once('/').map_or("", |(folder, _)| folder)
    }
}

/// The locations that are taken.
#[derive(Debug, Default)]
pub(crate) struct TakenLocations {
    addresses: HashSet<String>,
    files: HashSet<String>,
}

impl TakenLocations {
    /// Finds a location for a text. The old address is kept where the blog can have it.
    pub(crate) fn place(&mut self, wish: &TextToPlace<'_>) -> Location {
        let old = wish.old.map(decoded);
        let wanted = [slugify(&decoded(wish.slug)), slugify(wish.title), wish.kind.name().to_owned()];
        let slug = wanted.into_iter().find(|slug| !slug.is_empty()).unwrap_or_default();
        let slug = if RESERVED.contains(&slug.as_str()) { format!("{slug}-{}", wish.kind.name()) } else { slug };
        let kept = old.as_deref().and_then(keepable).filter(|address| !self.addresses.contains(address));
        let (address, slug) = match kept {
            Some(address) => {
                let leaf = address.trim_matches('/').rsplit('/').next().unwrap_or_default();
                let own = slugify(if address.ends_with('/') { leaf } else { leaf.rsplit_once('.').map_or(leaf, |(stem, _)| stem) });
                (address, own)
            }
            None => {
                let free = numbered(&slug, |slug| !self.addresses.contains(&format!("/{slug}/")));
                (format!("/{free}/"), free)
            }
        };
        self.addresses.insert(address.clone());
        let alias = old.clone().filter(|old| is_alias(old, &address) && self.addresses.insert(old.clone()));

        let short = shortened(&slug);
        let short = match wish.day {
            Some(_) if wish.kind == Kind::Post && is_dated(&short) => short[11..].to_owned(),
            _ => short,
        };
        // The blog sends no file in a folder of this name.
        let drafts = if wish.is_folder && wish.is_draft { "drafts/" } else { "" };
        let prefix = match wish.kind {
            Kind::Page => format!("pages/{drafts}"),
            Kind::Post => wish.day.map_or_else(|| format!("posts/{drafts}"), |day| format!("posts/{drafts}{day}-")),
        };
        let suffix = if wish.is_folder { "/index.md" } else { ".md" };
        // `index.md` is named after its folder.
        let short = if short.is_empty() { wish.kind.name().to_owned() } else { short };
        let stem = if short == "index" || wish.is_folder && is_dated(&short) { format!("{short}-{}", wish.kind.name()) } else { short };
        let stem = numbered(&stem, |stem| !self.files.contains(&format!("{prefix}{stem}")));
        self.files.insert(format!("{prefix}{stem}"));
        // The file's name says the slug, without a date before it.
        let of_name = if wish.kind == Kind::Page && is_dated(&stem) { stem.get(11..).unwrap_or_default() } else { &stem };
        let is_plain = address == format!("/{slug}/");
        Location {
            file: format!("{prefix}{stem}{suffix}"),
            slug: (is_plain && of_name != slug).then(|| slug.clone()),
            permalink: (!is_plain).then(|| address.clone()),
            address,
            old,
            alias,
        }
    }
}

/// Returns an old address in the form in which the blog can keep it: that of a folder, or of a file with its extension.
fn keepable(old: &str) -> Option<String> {
    let path: String = old.nfc().collect();
    let inner = path.strip_prefix('/')?;
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    let is_name = |name: &str| {
        !matches!(name, "" | "." | "..") && !name.chars().any(|c| c.is_control() || c.is_whitespace() || "?#%\\:*".contains(c))
    };
    let first = inner.split('/').next().unwrap_or_default();
    // A folder with a dot in its name would be taken for a file.
    let has_dot = inner.rsplit('/').next().is_some_and(|leaf| leaf.contains('.'));
    if has_dot && path.ends_with('/') {
        return None;
    }
    let is_whole = path.ends_with('/') || inner.rsplit('/').next().is_some_and(|leaf| leaf.contains('.'));
    let is_ours = inner.split('/').all(is_name) && !RESERVED.contains(&first) && path.len() <= 512;
    is_ours.then(|| if is_whole { path } else { path + "/" })
}

/// Tells whether an old address can lead to a new one.
fn is_alias(old: &str, new: &str) -> bool {
    let is_same = old.trim_end_matches('/') == new.trim_end_matches('/');
    let inner = old.strip_prefix('/').unwrap_or(old);
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    let is_path = old.starts_with('/') && !old.contains(['?', '#', '\\', '%']) && !old.chars().any(char::is_control);
    let is_ours =
        inner.split('/').all(|name| !matches!(name, "" | "." | "..")) && !RESERVED.contains(&inner.split('/').next().unwrap_or_default());
    !is_same && is_path && is_ours
}

fn is_dated(stem: &str) -> bool {
    let bytes = stem.as_bytes();
    bytes.len() > 11
        && bytes[..11].iter().enumerate().all(|(at, byte)| if matches!(at, 4 | 7 | 10) { *byte == b'-' } else { byte.is_ascii_digit() })
}

fn shortened(slug: &str) -> String {
    let mut end = slug.len().min(STEM_BYTES_MAX);
    while !slug.is_char_boundary(end) {
        end -= 1;
    }
    slug[..end].trim_end_matches('-').to_owned()
}

/// Returns `name`, or `name-2`, `name-3`, … if that is taken.
fn numbered(name: &str, is_free: impl Fn(&str) -> bool) -> String {
    if is_free(name) {
        return name.to_owned();
    }
    (2_u64..).map(|number| format!("{name}-{number}")).find(|name| is_free(name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(slug: &str, old: &str) -> Location {
        TakenLocations::default().place(&TextToPlace { slug, old: Some(old), day: Some("2026-03-01"), ..TextToPlace::default() })
    }

    #[test]
    fn an_old_address_is_kept_where_the_blog_can_have_it() {
        let cases = [
            ("hello", "/hello/", "/hello/", None, None),
            ("hello", "/2019/05/hello/", "/2019/05/hello/", None, Some("/2019/05/hello/")),
            ("%e6%b9%96", "/%e6%b9%96/", "/湖/", None, None),
            ("hello", "/2019/05/hello.html", "/2019/05/hello.html", None, Some("/2019/05/hello.html")),
            ("My_Post", "/My_Post/", "/My_Post/", None, Some("/My_Post/")),
            ("about", "/about", "/about/", None, None),
            ("a b", "/a b/", "/a-b/", None, None),
            ("v3.0", "/v3.0/", "/v3-0/", None, None),
            ("index", "/", "/index/", Some("index"), None),
            ("tags", "/tags/", "/tags-post/", None, None),
            ("../../etc/passwd", "/etc/../passwd\\/", "/etc-passwd/", None, None),
        ];
        for (slug, old, address, own, permalink) in cases {
            let location = of(slug, old);
            assert_eq!(
                (location.address.as_str(), location.slug.as_deref(), location.permalink.as_deref()),
                (address, own, permalink),
                "{old}"
            );
            let mut front = Front::default();
            location.set(&mut front);
            assert_eq!(!front.aliases.is_empty(), matches!(old, "/a b/" | "/v3.0/"), "{old}: {:?}", front.aliases);
        }
    }

    #[test]
    fn two_texts_have_two_places() {
        let mut places = TakenLocations::default();
        let wish = TextToPlace { slug: "a", ..TextToPlace::default() };
        let all: Vec<_> = (0..3).map(|_| places.place(&wish)).collect();
        assert_eq!(all.iter().map(|location| location.address.as_str()).collect::<Vec<_>>(), ["/a/", "/a-2/", "/a-3/"]);
        assert_eq!(all.iter().map(|location| location.file.as_str()).collect::<Vec<_>>(), ["posts/a.md", "posts/a-2.md", "posts/a-3.md"]);
    }

    #[test]
    fn a_long_slug_has_a_short_file() {
        let long = "日".repeat(90);
        let location = of(&long, &format!("/{long}/"));
        assert_eq!((location.address, location.slug), (format!("/{long}/"), Some(long)));
        assert!(location.file.len() < 200, "{}", location.file);
    }

    #[test]
    fn a_page_whose_name_begins_like_a_date_keeps_it() {
        let location =
            TakenLocations::default().place(&TextToPlace { kind: Kind::Page, slug: "2020-01-01-party", ..TextToPlace::default() });
        assert_eq!((location.address.as_str(), location.slug.as_deref()), ("/2020-01-01-party/", Some("2020-01-01-party")));
    }
}
