//! The blog as an origin: a look-up in the current site.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock},
};

use arc_swap::ArcSwap;
use http::{Request, Response};
use origins::{
    Arrival, Body, LocalFuture, OnInterim, Origin, OriginError,
    files::{REDIRECTS, Rules},
};
use pictures::Workshop;
use semantics::Timestamp;

use crate::{
    answer::answer,
    card::Studio,
    config::BlogOptions,
    error::{BuildError, Problem},
    gallery::Gallery,
    memory::{Memory, Work},
    parallel,
    preview::Previews,
    reload::Reload,
    site::{Draft, Site, not_among},
    slug,
};

/// A folder of Markdown, built and ready. Clones share the current site.
#[derive(Debug, Clone)]
pub struct Blog {
    shared: Arc<Shared>,
}

/// The state of a blog.
#[derive(Debug)]
pub(crate) struct Shared {
    folder: PathBuf,
    site: ArcSwap<Site>,
    /// The rules of `_redirects` and `_headers`.
    rules: ArcSwap<Rules>,
    /// The memory of earlier builds, held by whoever builds. Readers never wait for it.
    memory: Mutex<Memory>,
    gallery: Arc<Gallery>,
    previews: OnceLock<Previews>,
    pub(crate) reload: Reload,
    pub(crate) studio: Studio,
}

impl Shared {
    pub(crate) fn site(&self) -> Arc<Site> {
        self.site.load_full()
    }

    pub(crate) fn rules(&self) -> Arc<Rules> {
        self.rules.load_full()
    }

    pub(crate) fn previews(&self) -> Option<&Previews> {
        self.previews.get()
    }

    /// Returns a number that differs if a reload of the page at `path` would show something else.
    pub(crate) fn version(&self, site: &Site, path: &str) -> u128 {
        let draft = self.previews().and_then(|previews| previews.find(site, path));
        match draft {
            Some((_, below)) => site.draft_version(below),
            None => site.version(path),
        }
    }

    /// Returns a function that finds the [version](Self::version) of a page as long as the blog is there.
    pub(crate) fn versions(self: &Arc<Self>) -> impl Fn(&str) -> Option<u128> + Send + 'static {
        let shared = Arc::downgrade(self);
        move |path| {
            let shared = shared.upgrade()?;
            Some(shared.version(&shared.site(), path))
        }
    }
}

/// Says what a rebuild changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rebuilt {
    /// The paths whose answers changed, new and removed ones included, percent-decoded and in order.
    pub paths: Vec<String>,
    /// The paths of texts for their authors alone that changed ([`Site::draft`]), new and removed ones included.
    pub drafts: Vec<String>,
    /// Whether the answer for addresses that do not exist changed.
    pub not_found: bool,
    /// Whether `_redirects` or `_headers` changed, so that any answer may be another one.
    pub rules: bool,
    /// The number of texts that were read from disk.
    pub read: usize,
    /// The number of texts that were rendered: those that changed, and those whose links lead elsewhere now.
    pub rendered: usize,
    /// The problems that were not there before.
    pub problems: Vec<Problem>,
    /// The problems that are gone.
    pub mended: Vec<Problem>,
}

impl Rebuilt {
    /// Tells whether nothing changed that anybody could see.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { paths, drafts, not_found, rules, read: _, rendered: _, problems, mended } = self;
        paths.is_empty() && drafts.is_empty() && !not_found && !rules && problems.is_empty() && mended.is_empty()
    }
}

impl Blog {
    /// Builds the site from `folder`, as of `now`. It reads files, so do not call it on a worker's loop.
    ///
    /// # Errors
    /// When the folder cannot be listed, or `blog.toml` is wrong.
    pub fn open(folder: impl Into<PathBuf>, options: BlogOptions, now: Timestamp) -> Result<Self, BuildError> {
        Self::open_with(folder, options, Gallery::default(), now)
    }

    /// Builds the site as [`open`](Self::open) does, and has its pictures made by this workshop. All blogs of a process share one.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_in(folder: impl Into<PathBuf>, options: BlogOptions, workshop: &Arc<Workshop>, now: Timestamp) -> Result<Self, BuildError> {
        Self::open_with(folder, options, Gallery::new(workshop), now)
    }

    fn open_with(folder: impl Into<PathBuf>, options: BlogOptions, gallery: Gallery, now: Timestamp) -> Result<Self, BuildError> {
        let (folder, gallery) = (folder.into(), Arc::new(gallery));
        let mut memory = Memory::new(folder.clone(), options).with_gallery(Arc::clone(&gallery));
        let (site, Work { read, rendered }) = memory.build(now)?;
        tracing::debug!(read, rendered, "the blog was built");
        let shared = Shared {
            rules: ArcSwap::from_pointee(Rules::of_folder(&folder).unwrap_or_default()),
            folder,
            site: ArcSwap::from_pointee(site),
            memory: Mutex::new(memory),
            gallery,
            previews: OnceLock::new(),
            reload: Reload::default(),
            studio: Studio::default(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Gives each text that readers do not see yet a private link, which is made with this secret. Only the first call counts.
    pub fn keep_previews(&self, secret: &[u8]) {
        let _ = self.shared.previews.set(Previews::new(secret));
    }

    /// Returns the texts that readers do not see yet, with the paths of their private links if there are any.
    #[must_use]
    pub fn drafts(&self) -> Vec<PrivateText> {
        let link = |draft: &Draft<'_>| self.shared.previews().map(|previews| previews.link(draft));
        let text =
            |draft: Draft<'_>| PrivateText { file: draft.file.to_owned(), path: draft.path.to_owned(), due: draft.due, link: link(&draft) };
        self.site().drafts().map(text).collect()
    }

    /// Has pages that are asked for by a name of loopback load themselves again when they have changed. Call it only if the site listens on nothing
    /// but addresses of loopback.
    pub fn allow_live_reload(&self) {
        self.shared.reload.allow();
    }

    /// Tells the pages that wait for it that there is a new site. Call it when nothing of the old one is stored any more.
    pub fn announce(&self) {
        self.shared.reload.announce();
    }

    /// Ends what never ends by itself, as the server stops.
    pub fn end(&self) {
        self.shared.reload.end();
    }

    /// Returns every problem that there is: those of the folder, and lines of `_redirects` and `_headers` that are ignored.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        let site = self.site();
        site.problems().iter().cloned().chain(mistakes(&self.shared.rules(), &site)).collect()
    }

    /// Makes every variant of every picture that texts show, as far as they are not kept already, and returns how many pictures there are. It takes
    /// as long as it takes: do not call it on a worker's loop. A [rebuild](Self::rebuild) then knows what the pictures look like, and tells which cannot be made:
    /// pages show the author's own files in their place.
    pub fn make_pictures(&self) -> usize {
        let site = self.site();
        let made = parallel::map(site.pictures(), |shown| shown.make_all());
        let failed = site.pictures().iter().zip(&made).filter_map(|(shown, made)| Some((shown, made.as_ref().err()?)));
        for (shown, fault) in failed.filter(|(shown, _)| !shown.is_known_to_fail()) {
            tracing::warn!("{} {fault}; {}", shown.path().display(), fault.remedy());
        }
        made.len()
    }

    /// Sets what is called when something became known of pictures that pages should show.
    pub(crate) fn on_pictures(&self, call: impl Fn() + Send + Sync + 'static) {
        self.shared.gallery.on_news(call);
    }

    /// Returns the current site.
    #[must_use]
    pub fn site(&self) -> Arc<Site> {
        self.shared.site.load_full()
    }

    /// Returns the folder from which the site is built.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.shared.folder
    }

    /// Builds the site again, as of `now`, puts it in place and tells what changed. Only what has changed in the folder is read and rendered;
    /// a mistake leaves the last good version of its file in place. It reads files, so do not call it on a worker's loop.
    ///
    /// # Errors
    /// When the folder cannot be listed; the old site stays.
    pub fn rebuild(&self, now: Timestamp) -> Result<Rebuilt, BuildError> {
        let mut memory = self.shared.memory.lock().unwrap_or_else(|poisoned| {
            // A bug broke the build before this one off. What it had read may be half of it.
            let mut memory = poisoned.into_inner();
            memory.clear();
            self.shared.memory.clear_poison();
            memory
        });
        let (new, Work { read, rendered }) = memory.build(now)?;
        let mut rebuilt = Rebuilt { read, rendered, ..self.site().difference(&new) };
        let (old_rules, rules) = (self.shared.rules(), Rules::of_folder(&self.shared.folder).unwrap_or_default());
        let (before, after) = (mistakes(&old_rules, &self.site()), mistakes(&rules, &new));
        rebuilt.problems.extend(not_among(&after, &before));
        rebuilt.mended.extend(not_among(&before, &after));
        if rules != *old_rules {
            rebuilt.rules = true;
            self.shared.rules.store(Arc::new(rules));
        }
        let new = Arc::new(new);
        self.shared.site.store(Arc::clone(&new));
        self.shared.gallery.make_ahead(new.pictures());
        Ok(rebuilt)
    }
}

/// A text that readers do not see yet, and the way to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateText {
    /// The path of the file in the folder.
    pub file: String,
    /// The address that it will have, not percent-encoded.
    pub path: String,
    /// The time at which it is published by itself, if its date lies ahead.
    pub due: Option<jiff::Timestamp>,
    /// The path of its private link, percent-encoded.
    pub link: Option<String>,
}

/// Returns the lines of `_redirects` and `_headers` that have no effect, as problems.
fn mistakes(rules: &Rules, site: &Site) -> Vec<Problem> {
    let ignored = rules.mistakes().iter().map(|mistake| Problem::warning(Path::new(mistake.file), mistake.line, mistake.problem.clone()));
    let is_taken = |path: &str| slug::decode_path(path).is_some_and(|path| site.contains(&path) || site.contains(&format!("{path}/")));
    let taken = rules.giving_way().filter(|(_, path)| is_taken(path)).map(|(line, path)| {
        let message =
            format!("{path} is an address of the blog, which goes first: write the status with a ! (301!) to have the rule go first");
        Problem::warning(Path::new(REDIRECTS), line, message)
    });
    ignored.chain(taken).collect()
}

impl Origin for Blog {
    fn fetch<'a>(
        &'a self,
        request: Request<Body>,
        arrival: &'a Arrival<'a>,
        _: Option<&'a OnInterim<'a>>,
    ) -> LocalFuture<'a, Result<Response<Body>, OriginError>> {
        Box::pin(async move {
            let (head, _) = request.into_parts();
            answer(&self.shared, &head, arrival).await
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use futures_util::FutureExt as _;
    use http::{
        HeaderMap, StatusCode,
        header::{ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HOST, LOCATION},
    };
    use http_body_util::BodyExt as _;
    use semantics::Scheme;

    use super::*;
    use crate::HELD_FILE_BYTES_MAX;

    const NOW: Timestamp = Timestamp::from_secs(1_790_812_800);

    struct Fixture {
        blog: Blog,
        folder: tempfile::TempDir,
    }

    fn fixture() -> Fixture {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("posts")).expect("made");
        fs::write(folder.path().join("posts/Über uns.md"), "# Über\n\n![c](cat.svg)").expect("written");
        fs::write(folder.path().join("posts/cat.svg"), "<svg/>").expect("written");
        let large: Vec<u8> = (0..=HELD_FILE_BYTES_MAX).map(|n| (n % 251) as u8).collect();
        fs::write(folder.path().join("film.mp4"), large).expect("written");
        let blog = Blog::open(folder.path(), BlogOptions::default(), NOW).expect("builds");
        Fixture { blog, folder }
    }

    fn ask(blog: &Blog, method: &str, path: &str, fields: &[(&str, &str)]) -> (StatusCode, HeaderMap, Vec<u8>) {
        ask_by(Scheme::Http, blog, method, path, fields)
    }

    fn ask_by(scheme: Scheme, blog: &Blog, method: &str, path: &str, fields: &[(&str, &str)]) -> (StatusCode, HeaderMap, Vec<u8>) {
        let mut request = Request::builder().method(method).uri(path);
        if !fields.iter().any(|(name, _)| *name == "host") {
            request = request.header(HOST, "blog.test");
        }
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::Empty).expect("a request");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let (head, body) = blog.fetch(request, &Arrival::of_our_own(scheme, ""), None).await.expect("answers").into_parts();
            let body = body.collect().await.expect("a whole body").to_bytes();
            (head.status, head.headers, body.to_vec())
        })
    }

    #[test]
    fn pages_are_validated_each_time_by_a_tag_of_their_own() {
        let Fixture { blog, folder: _folder } = fixture();
        let (status, fields, body) = ask(&blog, "GET", "/%C3%BCber-uns/", &[]);
        assert_eq!((status, fields[CONTENT_TYPE].as_bytes()), (StatusCode::OK, &b"text/html; charset=utf-8"[..]));
        assert_eq!(fields[CONTENT_LENGTH], body.len().to_string().as_str());
        assert!(!fields.contains_key("last-modified"));
        assert_eq!(fields[CACHE_CONTROL], "public, max-age=0, must-revalidate");
        let etag = fields[ETAG].to_str().expect("ascii");
        assert!(etag.starts_with('"') && etag.ends_with('"'));
    }

    #[test]
    fn head_is_get_without_content() {
        let Fixture { blog, folder: _folder } = fixture();
        for path in ["/", "/film.mp4", "/gone", "/feed.xml", "/posts/cat.svg"] {
            let host = [("host", "a.test")];
            let (get, head) = (ask(&blog, "GET", path, &host), ask(&blog, "HEAD", path, &host));
            assert_eq!((get.0, &get.1), (head.0, &head.1), "{path}");
            assert!(head.2.is_empty() && !get.2.is_empty(), "{path}");
        }
    }

    #[test]
    fn other_methods_are_told_what_is_allowed() {
        let Fixture { blog, folder: _folder } = fixture();
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "PURGE", "get"] {
            let (status, fields, _) = ask(&blog, method, "/", &[]);
            assert_eq!((status, fields[ALLOW].as_bytes()), (StatusCode::METHOD_NOT_ALLOWED, &b"GET, HEAD"[..]), "{method}");
        }
    }

    #[test]
    fn a_missing_slash_is_a_relative_redirect() {
        let Fixture { blog, folder: _folder } = fixture();
        let cases = [
            ("/%C3%BCber-uns", "/%C3%BCber-uns/"),
            ("/%c3%bcber-uns?a=b&c", "/%C3%BCber-uns/?a=b&c"),
            ("/tags", "/tags/"),
            ("/page/1/", "/"),
            ("/page/1?x", "/?x"),
        ];
        for (path, target) in cases {
            let (status, fields, _) = ask(&blog, "GET", path, &[]);
            assert_eq!((status, fields[LOCATION].to_str().ok()), (StatusCode::MOVED_PERMANENTLY, Some(target)), "{path}");
        }
    }

    #[test]
    fn odd_paths_are_not_found() {
        let Fixture { blog, folder: _folder } = fixture();
        let paths = [
            "/gone",
            "//",
            "/..",
            "/../",
            "/posts/../../etc/passwd",
            "/%2e%2e/film.mp4",
            "/posts%2Fcat.svg",
            "/posts/cat.svg/",
            "/%00",
            "/%ff",
            "/%",
            "//evil.test/",
            "/page/0/",
            "/page/2/",
            "/posts/",
            "/posts/%C3%9Cber%20uns.md",
            "/blog.toml",
            "/tags//",
            "/FEED.XML",
            "/index.html",
            "/.",
        ];
        for path in paths {
            let (status, fields, body) = ask(&blog, "GET", path, &[]);
            assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
            assert!(!fields.contains_key(ETAG) && body.starts_with(b"<!doctype html>"), "{path}");
        }
    }

    #[test]
    fn validators_are_honoured() {
        let Fixture { blog, folder: _folder } = fixture();
        for path in ["/", "/posts/cat.svg", "/film.mp4", "/feed.xml"] {
            let host = ("host", "a.test");
            let (status, fields, _) = ask(&blog, "GET", path, &[host]);
            assert_eq!(status, StatusCode::OK, "{path}");
            let etag = fields[ETAG].to_str().expect("ascii");
            let weak = format!("\"x\", W/{etag}");
            let cases = [
                (vec![("if-none-match", etag)], 304),
                (vec![("if-none-match", weak.as_str())], 304),
                (vec![("if-none-match", "*")], 304),
                (vec![("if-none-match", "\"x\"")], 200),
                (vec![("if-match", etag)], 200),
                (vec![("if-match", "\"x\"")], 412),
            ];
            for (mut sent, expected) in cases {
                sent.push(host);
                let (status, fields, body) = ask(&blog, "GET", path, &sent);
                assert_eq!(status.as_u16(), expected, "{path} {sent:?}");
                assert!(status != StatusCode::NOT_MODIFIED || body.is_empty() && fields[ETAG] == etag, "{path} {sent:?}");
            }
        }
    }

    #[test]
    fn the_feed_takes_scheme_and_host_from_the_request() {
        let Fixture { blog, folder: _folder } = fixture();
        let (_, http, body) = ask(&blog, "GET", "/feed.xml", &[("host", "a.test:8080")]);
        let text = String::from_utf8(body).expect("text");
        assert!(text.contains("<id>http://a.test:8080/</id>") && !text.contains('\u{1}'), "{text}");
        let (_, https, body) = ask_by(Scheme::Https, &blog, "GET", "/feed.xml", &[("host", "a.test:8080")]);
        assert!(String::from_utf8(body).expect("text").contains("<id>https://a.test:8080/</id>"));
        assert_ne!(http[ETAG], https[ETAG]);
        for host in ["", "a b", "a\"><x", "a/b"] {
            assert_eq!(ask(&blog, "GET", "/sitemap.xml", &[("host", host)]).0, StatusCode::BAD_REQUEST, "{host}");
        }
    }

    #[test]
    fn theme_assets_are_immutable() {
        let Fixture { blog, folder: _folder } = fixture();
        let site = blog.site();
        let (path, _) = site.addresses().find(|(_, kind)| *kind == crate::PageKind::Asset).expect("one");
        assert_eq!(ask(&blog, "GET", path, &[]).1[CACHE_CONTROL], "public, max-age=31536000, immutable");
    }

    #[test]
    fn large_files_stream_whole_and_never_lie_about_their_length() {
        let Fixture { blog, folder } = fixture();
        let path = folder.path().join("film.mp4");
        let (status, fields, body) = ask(&blog, "GET", "/film.mp4", &[]);
        assert_eq!((status, fields[CONTENT_TYPE].as_bytes()), (StatusCode::OK, &b"video/mp4"[..]));
        assert!(body == fs::read(&path).expect("read"));
        fs::write(&path, "shorter").expect("written");
        assert_eq!(ask(&blog, "GET", "/film.mp4", &[]).0, StatusCode::NOT_FOUND);
        fs::remove_file(&path).expect("removed");
        assert_eq!(ask(&blog, "GET", "/film.mp4", &[]).0, StatusCode::NOT_FOUND);
    }

    #[test]
    fn a_bad_post_is_left_out_until_it_is_mended() {
        let Fixture { blog, folder } = fixture();
        fs::write(folder.path().join("bad.md"), "---\ndate: soon\n---\n# Bad").expect("written");
        let rebuilt = blog.rebuild(NOW).expect("the rest lives");
        assert!(rebuilt.paths.is_empty() && !blog.site().contains("/bad/"));
        assert_eq!((rebuilt.problems.as_slice(), blog.site().problems().len()), (blog.site().problems(), 1));
        fs::write(folder.path().join("bad.md"), "# Good").expect("written");
        let again = blog.rebuild(NOW).expect("builds");
        assert!(again.paths.contains(&"/bad/".to_owned()) && again.paths.contains(&"/".to_owned()), "{again:?}");
        assert_eq!((again.problems, again.mended), (Vec::new(), rebuilt.problems));
        let request = Request::get("/bad/").header(HOST, "blog.test").body(Body::Empty).expect("a request");
        let arrival = Arrival::of_our_own(Scheme::Http, "");
        let response = blog.fetch(request, &arrival, None).now_or_never().expect("held pages need no wait").expect("answers");
        assert_eq!(response.status(), StatusCode::OK);
    }

    /// The link of one draft must not show files that lie beside another.
    #[test]
    fn a_private_link_opens_a_text_and_what_lies_beside_it_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let draft = "---\ntitle: T\ndraft: true\n---\nx";
        for (name, text) in [
            ("posts/plans.md", draft),
            ("posts/drafts/near.md", draft),
            ("posts/drafts/near.txt", "beside near"),
            ("posts/drafts/idea/index.md", draft),
            ("posts/drafts/idea/deep/x.txt", "below idea"),
        ] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("inside")).expect("made");
            fs::write(path, text).expect("written");
        }
        let blog = Blog::open(folder.path(), BlogOptions::default(), NOW).expect("builds");
        blog.keep_previews(b"a secret");
        let below = |file: &str, path: &str| {
            let text = blog.drafts().into_iter().find(|text| text.file == file).expect("a draft");
            let link = text.link.expect("a link");
            let token = link.strip_suffix(&text.path).expect("the token goes before the address");
            ask(&blog, "GET", &format!("{token}{path}"), &[]).0.as_u16()
        };
        let (near, deep) = ("/posts/drafts/near.txt", "/posts/drafts/idea/deep/x.txt");
        for (file, path, expected) in [
            ("posts/plans.md", "/plans/", 200),
            ("posts/plans.md", near, 404),
            ("posts/plans.md", deep, 404),
            ("posts/drafts/near.md", near, 200),
            ("posts/drafts/near.md", deep, 404),
            ("posts/drafts/idea/index.md", deep, 200),
            ("posts/drafts/idea/index.md", near, 404),
        ] {
            assert_eq!(below(file, path), expected, "{file} {path}");
        }
    }
}
