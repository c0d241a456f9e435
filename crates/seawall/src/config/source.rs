//! Tells what a SOURCE is: a server's address, a folder of finished files, of Markdown, or of PHP; or something else that deserves a plain
//! word.
//!
//! Looks at names, and opens no file but those by which a WordPress is known; no connection is made. A folder is looked through no deeper and no
//! longer than needed to find one Markdown file.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

use policy::SourceForm;

use super::{
    addresses::{bare_authority, likely_scheme},
    error::Mistake,
    routes::RoutePath,
    settings::{Kind, OriginAddress, Source},
};
use crate::recognition::{
    Finding, Software,
    folder::{below, look, whole_of},
};

/// The depth to which Markdown files are looked for: `posts/2026/hello.md` is at depth three.
const MARKDOWN_DEPTH_MAX: u32 = 3;

/// The number of names after which the search ends: somebody will serve `/`.
const NAMES_MAX: u32 = 20_000;

/// The result of a look at a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedSource {
    /// A server's address, and the path behind it if there is one.
    Server(OriginAddress, Option<String>),
    /// A folder that is not empty.
    Folder {
        /// The path of the folder.
        path: PathBuf,
        /// The form of source that it looks like. None: nothing speaks for either.
        looks: Option<SourceForm>,
        /// Whether Markdown is in it, whatever it looks like first.
        markdown: bool,
        /// The kind for the product that is in it, if there is one.
        product: Option<Kind>,
    },
}

const FORMS: &str = "a source is a server (\"http://127.0.0.1:2368\"), a folder with an index.html, a folder with Markdown files (*.md), or one with an index.php";

/// Finds out what `text` names. Relative paths begin at `base`.
///
/// # Errors
/// When it is none of them, with what to do instead.
pub fn find(text: &str, base: &Path) -> Result<NamedSource, Mistake> {
    if text.trim().is_empty() {
        return Err(Mistake::new("the source is empty", FORMS));
    }
    let path = base.join(text);
    if text.contains("://") || text.starts_with("unix:") {
        return server(text);
    }
    match fs::metadata(&path) {
        Ok(metadata) if metadata.is_dir() => folder(text, path),
        Ok(_) => Err(not_a_folder(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(missing(text)),
        Err(error) => Err(Mistake::new(format!("cannot look at \"{text}\": {error}"), FORMS)),
    }
}

/// Reads a server's address. A path behind it means something for some kinds only.
fn server(text: &str) -> Result<NamedSource, Mistake> {
    let mistake = match text.parse() {
        Ok(address) => return Ok(NamedSource::Server(address, None)),
        Err(mistake) => mistake,
    };
    let bare = text.split_once("://").and_then(|(scheme, rest)| {
        let (authority, path) = rest.split_at(rest.find('/')?);
        let RoutePath(path) = path.trim_end_matches('/').parse().ok()?;
        Some((format!("{scheme}://{authority}").parse().ok()?, path))
    });
    bare.map(|(address, path)| NamedSource::Server(address, Some(path))).ok_or(mistake)
}

/// Returns the reason why this kind of server cannot have a path behind its address.
fn with_path(text: &str, finding: &Finding) -> Mistake {
    let mistake = text.parse::<OriginAddress>().err().unwrap_or_else(|| Mistake::new(format!("\"{text}\" has a path"), "leave it out"));
    match finding {
        Finding::Silent(why) => Mistake::new(
            format!("{}, unless a Ghost or a WordPress is there, and it does not answer yet: {why}", mistake.problem),
            "write ‹kind ghost› or ‹kind wordpress›, or start it first",
        ),
        _ => mistake,
    }
}

fn missing(text: &str) -> Mistake {
    if let Some(authority) = bare_authority(text) {
        return Mistake::new(
            format!("\"{text}\" is neither a folder nor the address of a server"),
            "the address of a server begins with http:// or https://",
        )
        .meant(format!("{}://{authority}", likely_scheme(authority)));
    }
    if text.starts_with('~') {
        return Mistake::new(
            format!("there is no folder \"{text}\""),
            "only a shell knows what ~ means: write the whole path, such as /home/you/blog",
        );
    }
    Mistake::new(format!("there is no folder \"{text}\""), FORMS)
}

fn not_a_folder(text: &str) -> Mistake {
    let parent = Path::new(text)
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .map_or_else(|| ".".to_owned(), |parent| parent.display().to_string());
    let mistake = Mistake::new(format!("\"{text}\" is a file, not a folder"), "give the folder that it is in");
    if Path::new(text).file_name().is_some_and(|name| name == "blog.toml") {
        return Mistake::new(
            format!("\"{text}\" belongs to the folder of Markdown that it is in"),
            format!("serve the folder: seawall serve {parent}"),
        );
    }
    match Path::new(text).extension().and_then(|extension| extension.to_str()) {
        Some("toml") => Mistake::new(
            format!("\"{text}\" is a file, not a folder"),
            format!("if it is a configuration file, name it with --config: --config {text}"),
        ),
        _ => mistake.meant(parent),
    }
}

fn folder(text: &str, path: PathBuf) -> Result<NamedSource, Mistake> {
    if path.join("config.production.json").exists() || path.join(".ghost-cli").exists() {
        return Err(Mistake::new(
            format!("\"{text}\" is a Ghost installation"),
            "give the address on which Ghost listens (\"server\" in its config.production.json), such as \"http://127.0.0.1:2368\"",
        ));
    }
    let unreadable =
        |error: io::Error| Mistake::new(format!("cannot read the folder \"{text}\": {error}"), "give Seawall's user the right to read it");
    if fs::read_dir(&path).map_err(unreadable)?.next().is_none() {
        return Err(Mistake::new(
            format!("the folder \"{text}\" is empty"),
            "put an index.html or a Markdown file into it; `seawall new DIR` writes an example blog to start from",
        ));
    }
    let described = path.join("blog.toml").is_file();
    let markdown = described || has_markdown(&path, MARKDOWN_DEPTH_MAX, &mut NAMES_MAX.clone());
    let has = |name: &str| path.join(name).is_file();
    let product = look(&path, None).map(|_| Kind::WordPress);
    let looks = match () {
        () if product.is_some() => Some(SourceForm::Php),
        () if described => Some(SourceForm::Markdown),
        () if path.join("index.html").is_file() => Some(SourceForm::Files),
        // An application brings its README, and more, as Markdown.
        () if has("index.php") => Some(SourceForm::Php),
        () if markdown => Some(SourceForm::Markdown),
        () => None,
    };
    Ok(NamedSource::Folder { path, looks, markdown, product })
}

/// Tells whether `folder`, or a folder up to `depth - 1` levels below it, contains a Markdown file. Skips hidden folders, links and
/// `node_modules`.
fn has_markdown(folder: &Path, depth: u32, names_left: &mut u32) -> bool {
    let mut below = Vec::new();
    // A folder that cannot be read has no Markdown for us: the blog would not see it either.
    for item in fs::read_dir(folder).into_iter().flatten().flatten() {
        *names_left = names_left.saturating_sub(1);
        if *names_left == 0 {
            return false;
        }
        let (name, Ok(file_type)) = (item.file_name(), item.file_type()) else { continue };
        // The blog does not publish the README at its top: it speaks of the folder.
        let is_readme = |name: &OsStr| depth == MARKDOWN_DEPTH_MAX && name.eq_ignore_ascii_case("README.md");
        let hidden = name.as_encoded_bytes().starts_with(b".");
        if file_type.is_dir() && !hidden && name != "node_modules" {
            below.push(item.path());
        } else if !hidden && !is_readme(&name) && Path::new(&name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md"))
        {
            return true;
        }
    }
    depth > 1 && below.iter().any(|folder| has_markdown(folder, depth - 1, names_left))
}

/// Reason why a source and a kind do not fit together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// The source cannot be served as it is.
    Source(Mistake),
    /// The source is right, but the kind is not for it.
    Kind(Mistake),
}

/// Returns the source and its kind: the one that is `wanted`, or else what is known of the server, or else the usual one for what the source
/// looks like. `text` is the source as it was written.
///
/// # Errors
/// When the kind is not for such a source, or none was given and nothing speaks for one.
pub fn fit(text: &str, found: NamedSource, wanted: Option<Kind>, finding: &Finding) -> Result<(Source, Kind), Misfit> {
    match found {
        NamedSource::Server(address, path) => {
            let recognised = finding.software().map(Software::kind);
            let kind = wanted.or(recognised).unwrap_or_else(|| SourceForm::Server.usual_kind());
            // As long as nobody has asked, it may be what can have one.
            let may_have_path = kind.product().is_some() || wanted.is_none() && *finding == Finding::Unasked;
            if path.is_some() && !may_have_path {
                return Err(Misfit::Source(with_path(text, finding)));
            }
            if kind.is_for(SourceForm::Server) {
                return Ok((Source::Http(vec![address]), kind));
            }
            Err(Misfit::Kind(Mistake::new(
                format!("‹kind {}› is for a folder, and \"{text}\" is the address of a server", kind.name()),
                "write ‹kind generic›, ‹kind ghost› or ‹kind wordpress›, or leave ‹kind› out",
            )))
        }
        NamedSource::Folder { path, looks, markdown, product } => {
            let Some(form) = wanted.map(Kind::folder_form).or(looks) else {
                return Err(Misfit::Source(nothing_in(text, &path)));
            };
            let kind = wanted.or(product).unwrap_or_else(|| form.usual_kind());
            match form {
                SourceForm::Files => Ok((Source::Files(path), kind)),
                SourceForm::Php => Ok((Source::Php(path), kind)),
                SourceForm::Markdown if markdown => Ok((Source::Blog(path), kind)),
                SourceForm::Markdown => Err(Misfit::Kind(Mistake::new(
                    format!(
                        "‹kind {}› needs Markdown, and there is no *.md in \"{text}\" (looked {MARKDOWN_DEPTH_MAX} folders deep)",
                        kind.name()
                    ),
                    "give the folder with the posts, or write ‹kind static› for finished files",
                ))),
                SourceForm::Server => Err(Misfit::Kind(Mistake::new(
                    format!("‹kind {}› is for the address of a server, and \"{text}\" is a folder", kind.name()),
                    "write ‹kind static› for finished files, ‹kind blog› for Markdown, ‹kind php› for an application in PHP or ‹kind wordpress› for a WordPress, or leave ‹kind› out",
                ))),
            }
        }
    }
}

/// Returns why a folder in which nothing was found cannot be served. Often it is one level too high.
fn nothing_in(text: &str, path: &Path) -> Mistake {
    let remedy = if let Some(name) = below(path, |folder| look(folder, None).is_some()) {
        format!("there is a WordPress in \"{name}\": serve that folder")
    } else if let Some(name) = below(path, |folder| folder.join("index.php").is_file()) {
        format!("there is an index.php in \"{name}\": serve that folder")
    } else if let Some(name) = below(path, |folder| folder.join("index.html").is_file()) {
        format!("there is an index.html in \"{name}\": serve that folder, or write ‹kind static› to serve this one as it is")
    } else {
        "give the folder that has them (site generators often write to \"public\", \"_site\" or \"dist\"), or write ‹kind static› to serve it as it is"
            .to_owned()
    };
    Mistake::new(format!("the folder \"{text}\" has neither an index.html, nor an index.php, nor Markdown (*.md)"), remedy)
}

/// Returns what speaks against serving this source as this kind, though it is possible: PHP that is not run, and a WordPress that is taken for less.
pub(super) fn doubt(source: &Source, kind: Kind) -> Option<String> {
    let path = match source {
        Source::Files(path) | Source::Blog(path) | Source::Php(path) => path,
        Source::Http(_) => return None,
    };
    let place = path.display();
    let has_wordpress = look(path, None).is_some();
    match source {
        Source::Files(_) | Source::Blog(_) if has_wordpress => Some(format!(
            "{place} is a WordPress, and ‹kind {}› runs no PHP: no page of it answers. Leave ‹kind› out, or write ‹kind wordpress›",
            kind.name()
        )),
        Source::Files(_) if path.join("index.php").is_file() && !path.join("index.html").is_file() => Some(format!(
            "{place} has an index.php, and ‹kind static› runs no PHP: scripts are answered with 404. Leave ‹kind› out, or write ‹kind php›"
        )),
        Source::Files(_) => below(path, |folder| look(folder, None).is_some())
            .map(|name| format!("there is a WordPress in {place}/{name}, and ‹kind static› runs no PHP: serve that folder")),
        Source::Php(_) if has_wordpress && kind != Kind::WordPress => Some(format!(
            "{place} is a WordPress: ‹kind wordpress› keeps its pages, and sees when they change. ‹kind {}› does not",
            kind.name()
        )),
        Source::Php(_) => {
            whole_of(path).map(|whole| format!("{place} is a part of the WordPress in {}: serve that folder", whole.display()))
        }
        Source::Blog(_) | Source::Http(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a folder with these files, each empty.
    fn folder_with(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            fs::write(path, "").expect("a file");
        }
        folder
    }

    fn served(files: &[&str], kind: Option<Kind>) -> Result<(Source, Kind), Misfit> {
        let folder = folder_with(files);
        fit(".", find(".", folder.path()).map_err(Misfit::Source)?, kind, &Finding::Unasked).map(|(source, kind)| match source {
            Source::Files(_) => (Source::Files("here".into()), kind),
            Source::Blog(_) => (Source::Blog("here".into()), kind),
            Source::Php(_) => (Source::Php("here".into()), kind),
            Source::Http(addresses) => (Source::Http(addresses), kind),
        })
    }

    #[test]
    fn folders_are_what_they_look_like() {
        let files = || Ok((Source::Files("here".into()), Kind::Static));
        let blog = || Ok((Source::Blog("here".into()), Kind::Blog));
        assert_eq!(served(&["index.html"], None), files());
        assert_eq!(served(&["index.html", "README.md"], None), files());
        assert_eq!(served(&["index.html", "a.md"], Some(Kind::Blog)), blog());
        assert_eq!(served(&["hello.md"], None), blog());
        assert_eq!(served(&["posts/2026/hello.MD"], None), blog());
        assert_eq!(served(&["blog.toml"], None), blog());
        assert_eq!(served(&["blog.toml", "index.html"], None), blog());
        assert_eq!(served(&["hello.md"], Some(Kind::Static)), files());
        assert_eq!(served(&["song.ogg"], Some(Kind::Static)), files());
        let php = || Ok((Source::Php("here".into()), Kind::Php));
        assert_eq!(served(&["index.php", "README.md", "docs/a.md"], None), php());
        assert_eq!(served(&["wp-includes/version.php", "wp-load.php", "index.html"], None), files(), "an export of one");
        assert_eq!(served(&["index.html"], Some(Kind::Php)), php());
        assert_eq!(served(&["index.html", "contact.php"], None), files());
    }

    #[test]
    fn folders_that_cannot_be_served_say_why() {
        let cases: [(&[&str], Option<Kind>, &str, &str); 12] = [
            (&[], None, "is empty", "seawall new"),
            (&["song.ogg"], None, "neither an index.html, nor an index.php, nor Markdown", "‹kind static›"),
            (&["a/b/c/too-deep.md"], None, "neither an index.html, nor an index.php, nor Markdown", "public"),
            (&["html/index.php"], None, "neither", "there is an index.php in \"html\": serve that folder"),
            (&["out/index.html", "src.c"], None, "neither", "there is an index.html in \"out\""),
            (&["index.php"], Some(Kind::Ghost), "is for the address of a server", "‹kind wordpress›"),
            (&["README.md", "main.c"], None, "neither", "public"),
            (&[".git/x.md", "node_modules/x.md"], None, "neither", "public"),
            (&["config.production.json"], None, "Ghost", "http://127.0.0.1:2368"),
            (&["index.html"], Some(Kind::Blog), "needs Markdown", "posts"),
            (&["index.html"], Some(Kind::Generic), "is for the address of a server", "‹kind static›"),
            (&["hello.md"], Some(Kind::Generic), "is for the address of a server", "‹kind blog›"),
        ];
        for (files, kind, problem, remedy) in cases {
            let (Misfit::Source(mistake) | Misfit::Kind(mistake)) = served(files, kind).expect_err("refused");
            assert!(mistake.problem.contains(problem) && mistake.remedy.contains(remedy), "{files:?}: {mistake:?}");
        }
    }

    /// A beginner serves the folder above, is told to, and must not be led to send PHP as text.
    #[test]
    fn a_wordpress_that_is_not_served_as_one_is_named() {
        let folder = folder_with(&["html/index.php", "html/wp-load.php", "html/wp-admin/css/a.css", "html/wp-admin/index.php"]);
        let at = |path: &str| folder.path().join(path);
        fs::create_dir_all(at("html/wp-includes")).expect("a folder");
        fs::write(at("html/wp-includes/version.php"), "<?php\n$wp_version = '6.8.7';\n").expect("a file");

        let above = find(".", folder.path()).expect("a folder");
        let Err(Misfit::Source(mistake)) = fit(".", above, None, &Finding::Unasked) else { panic!("refused") };
        assert_eq!(mistake.remedy, "there is a WordPress in \"html\": serve that folder");

        let doubt = |path: &str, source: fn(PathBuf) -> Source, kind| doubt(&source(at(path)), kind).unwrap_or_default();
        for (path, source, kind, said) in [
            ("html", Source::Files as fn(PathBuf) -> Source, Kind::Static, "is a WordPress, and ‹kind static› runs no PHP"),
            ("", Source::Files, Kind::Static, "html, and ‹kind static› runs no PHP: serve that folder"),
            ("html/wp-admin", Source::Files, Kind::Static, "has an index.php"),
            ("html", Source::Blog, Kind::Blog, "‹kind blog› runs no PHP"),
            ("html", Source::Php, Kind::Php, "‹kind wordpress› keeps its pages"),
            ("html/wp-admin", Source::Php, Kind::Php, "is a part of the WordPress in"),
            ("html/wp-admin/css", Source::Php, Kind::WordPress, "html: serve that folder"),
        ] {
            assert!(doubt(path, source, kind).contains(said), "{path} {kind:?}: {}", doubt(path, source, kind));
        }
        assert_eq!(doubt("html", Source::Php, Kind::WordPress), "");
        let export = folder_with(&["index.html", "wp-includes/version.php", "wp-content/a.css"]);
        assert_eq!(super::doubt(&Source::Files(export.path().to_owned()), Kind::Static), None);
    }

    #[test]
    fn whatever_is_no_folder_says_what_it_is() {
        let folder = folder_with(&["index.html", "posts/a.md", "seawall.toml"]);
        let cases = [
            ("localhost:2368", "neither a folder nor", "http://localhost:2368"),
            ("127.0.0.1:2368", "neither a folder nor", "http://127.0.0.1:2368"),
            ("blog.example.org", "neither a folder nor", "https://blog.example.org"),
            ("htp://127.0.0.1", "not the address", "http://127.0.0.1"),
            ("http://127.0.0.1:2368/blog?x", "path", "http://127.0.0.1:2368"),
            ("http://127.0.0.1:2368/b/../log", "path", "http://127.0.0.1:2368"),
            ("index.html", "is a file", "\".\""),
            ("posts/a.md", "is a file", "\"posts\""),
            ("seawall.toml", "is a file", "--config seawall.toml"),
            ("nowhere", "there is no folder", "a source is"),
            ("~/blog", "there is no folder", "shell"),
            ("", "empty", "a source is"),
            ("index.html/x", "cannot look at", "a source is"),
        ];
        for (text, problem, help) in cases {
            let mistake = find(text, folder.path()).expect_err(text);
            let helped = format!("{} {}", mistake.meant.clone().unwrap_or_default(), mistake.remedy);
            assert!(mistake.problem.contains(problem) && helped.contains(help), "{text}: {mistake:?}");
        }
    }

    #[test]
    fn a_server_is_what_was_found_there_unless_somebody_says_its_kind() {
        let ghost = || Finding::Recognised { software: Software::ghost("6.65", "http://a/").expect("a Ghost"), remembered: false };
        let other = || Finding::Other("404".to_owned());
        let silent = || Finding::Silent("refused".to_owned());
        let kind = |text: &str, kind: Option<Kind>, finding: &Finding| {
            let found = find(text, Path::new("")).expect("an address");
            fit(text, found, kind, finding).map(|(_, kind)| kind).map_err(|misfit| match misfit {
                Misfit::Kind(mistake) => format!("kind {mistake:?}"),
                Misfit::Source(mistake) => format!("source {mistake:?}"),
            })
        };
        let plain = "http://127.0.0.1:2368";
        for (given, finding, expected) in [
            (None, Finding::Unasked, Kind::Generic),
            (None, silent(), Kind::Generic),
            (None, other(), Kind::Generic),
            (None, ghost(), Kind::Ghost),
            (Some(Kind::Generic), ghost(), Kind::Generic),
            (Some(Kind::Ghost), other(), Kind::Ghost),
        ] {
            assert_eq!(kind(plain, given, &finding), Ok(expected), "{given:?} {finding:?}");
        }
        assert!(kind(plain, Some(Kind::Blog), &ghost()).is_err_and(|error| error.starts_with("kind")));
        // A path behind the address is a Ghost's, or nobody's.
        let below = "http://127.0.0.1:2368/blog/";
        for (given, finding, expected) in [
            (None, Finding::Unasked, Ok(Kind::Generic)),
            (None, ghost(), Ok(Kind::Ghost)),
            (Some(Kind::Ghost), silent(), Ok(Kind::Ghost)),
            (None, silent(), Err("does not answer yet")),
            (None, other(), Err("http://127.0.0.1:2368\\\"")),
            (Some(Kind::Generic), ghost(), Err("http://127.0.0.1:2368\\\"")),
        ] {
            match (kind(below, given, &finding), expected) {
                (Ok(kind), Ok(expected)) => assert_eq!(kind, expected, "{given:?} {finding:?}"),
                (Err(error), Err(part)) => assert!(error.contains(part), "{given:?} {finding:?}: {error}"),
                (kind, _) => panic!("{given:?} {finding:?}: {kind:?}"),
            }
        }
        let found = find(below, Path::new("")).expect("an address");
        assert!(matches!(found, NamedSource::Server(_, Some(path)) if path == "/blog"));
        assert!(matches!(find("unix:/run/ghost.sock", Path::new("")), Ok(NamedSource::Server(OriginAddress::Unix(_), None))));
    }
}
