//! The look: templates and style, embedded in the binary, and what a blog's folder `theme` puts in their place.
//!
//! A blog's own template is used if it can be read and if the pages of the blog can be drawn with it. Otherwise the last good one stays, or
//! the embedded one. Should a page fail later all the same, it is drawn with the embedded templates: a template never costs a reader a page.
//!
//! The steps of a blog's own templates are bounded, and so is the page that comes of them, but not their memory: minijinja has no hook in the
//! operators and filters that make text (`~`, `+`, `replace`, `join`), and thirty of them that double a text take all there is. Templates are
//! files of the operator, so they are trusted with that, as the manual says.

mod colour;
mod guide;
mod looks;
mod style;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs, io,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use minijinja::{Environment, ErrorKind, UndefinedBehavior};
use serde::Serialize;

pub use self::guide::{looks, theme_files};
pub(crate) use self::{
    colour::Colour,
    looks::{LOOKS, LookName},
};
use crate::{
    config::LookSettings,
    digest::{digest, fingerprint},
    error::Problem,
    escape::escape,
    feed::BASE,
    folder::{Listed, content_type},
    gallery::is_picture,
    slug::{encode_path, tag_slug},
    static_file::{cleaned, unread},
    view::Drawable,
};

/// The folder in a blog's folder whose files replace and add to the theme.
pub(crate) const FOLDER: &str = "theme";

/// The number of steps that drawing one page with a blog's own templates may take. A page of our own takes some thousands.
const STEPS_MAX: u64 = 2_000_000;

/// The depth to which a blog's own templates and macros may include and call each other.
const DEPTH_MAX: usize = 64;

/// The size of a page that is drawn with a blog's own templates.
const PAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The largest size of a file in the folder `theme`, and of all of them together. They are held in memory.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
const FILES_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// The number of failures that are told. Pages can fail in more ways than anybody wants to read.
const TOLD_MAX: usize = 100;

const STYLE: &str = include_str!("../theme/style.css");
const MARK: &str = include_str!("../theme/mark.svg");

macro_rules! templates {
    ($($name:literal),+ $(,)?) => { [$(($name, include_str!(concat!("../theme/", $name)))),+] };
}

const TEMPLATES: [(&str, &str); 21] = templates![
    "404.html",
    "archive.html",
    "authors.html",
    "base.html",
    "brand.html",
    "card.html",
    "chips.html",
    "contents.html",
    "find.html",
    "head.html",
    "index.html",
    "line.html",
    "list.html",
    "meta.html",
    "pages.html",
    "person.html",
    "picture.html",
    "post.html",
    "search.html",
    "series.html",
    "tags.html",
];

/// A link with its text and its percent-encoded address.
#[derive(Debug, Clone, Hash, Serialize)]
pub(crate) struct Link {
    title: String,
    url: String,
}

impl Link {
    pub(crate) fn new(title: &str, path: &str) -> Self {
        Self { title: title.to_owned(), url: encode_path(path) }
    }

    /// Makes a link to an address that an author wrote.
    pub(crate) fn to(title: &str, url: &str) -> Self {
        Self { title: title.to_owned(), url: url.to_owned() }
    }
}

/// A tag and the number of its posts.
#[derive(Debug, Clone, Hash, Serialize)]
pub(crate) struct Tag {
    pub(crate) title: String,
    pub(crate) url: String,
    pub(crate) count: usize,
    /// The size in which the tag is drawn among the others, 1 to 4.
    pub(crate) weight: usize,
}

impl Tag {
    /// Makes a tag whose page is at `path`.
    pub(crate) fn new(title: &str, path: &str) -> Self {
        Self { title: title.to_owned(), url: encode_path(path), count: 0, weight: 1 }
    }
}

/// Returns the address of a tag's page.
pub(crate) fn tag_path(tag: &str) -> String {
    format!("/tags/{}/", tag_slug(tag))
}

/// The files in a blog's folder `theme`, by their paths in it.
pub(crate) type ThemeFiles = BTreeMap<String, Bytes>;

/// Reads the files of the folder `theme`. One that cannot be read is told, and is as if it were not there. If it `cleans`, pictures are read without their
/// metadata: readers get them whole, but need not learn where they were taken.
pub(crate) fn read(listed: &[Listed], cleans: bool, problems: &mut Vec<Problem>) -> ThemeFiles {
    let mut files = ThemeFiles::new();
    let mut bytes = 0;
    for file in listed {
        let Some(name) = file.name.strip_prefix(FOLDER).and_then(|name| name.strip_prefix('/')) else { continue };
        bytes += file.stamp.bytes;
        if file.stamp.bytes > FILE_BYTES_MAX || bytes > FILES_BYTES_MAX {
            let (one, all) = (FILE_BYTES_MAX / (1024 * 1024), FILES_BYTES_MAX / (1024 * 1024));
            let message = format!("left out: files of a theme have up to {one} MiB each and {all} MiB in all");
            problems.push(Problem::new(Path::new(&file.name), None, message));
            continue;
        }
        let is_cleaned = cleans && content_type(name).is_some_and(is_picture);
        match fs::read(&file.path).and_then(|content| if is_cleaned { cleaned(content) } else { Ok(content) }) {
            Ok(content) => {
                files.insert(name.to_owned(), content.into());
            }
            // Gone between listing and reading: an editor saved by renaming.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => problems.push(unread(&file.name, &error)),
        }
    }
    files
}

/// The templates and the assets of one look, ready to draw pages.
pub(crate) struct Theme {
    /// The templates in the binary.
    embedded: Environment<'static>,
    /// The templates in the binary, some replaced by the blog's own; `None` if the blog has none.
    own: Option<Environment<'static>>,
    /// The blog's own templates that are used: those in its folder, or their last good versions.
    sources: BTreeMap<String, String>,
    /// The templates that stand in for those of the blog that are wrong.
    last_good: BTreeMap<String, String>,
    assets: Assets,
    look: LookSettings,
    fingerprint: u128,
    told: Mutex<BTreeSet<(String, usize)>>,
}

/// The files of a theme that are served.
#[derive(Debug, Clone, Default)]
struct Assets {
    files: Vec<(String, &'static str, Bytes)>,
    /// The addresses of the blog's own files, by their names. Templates ask for them.
    by_name: Arc<BTreeMap<String, String>>,
    /// The addresses of the style and of the mark, which change with their content.
    style: String,
    mark: String,
}

impl fmt::Debug for Theme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Theme").field("look", &self.look).field("own", &self.sources.keys()).finish_non_exhaustive()
    }
}

impl Theme {
    /// Makes the theme of a blog from its settings and the files in its folder `theme`. `last` is the theme that was used before: its version
    /// of a template stays where the new one cannot be read.
    pub(crate) fn new(look: &LookSettings, files: &ThemeFiles, last: Option<&Self>) -> (Self, Vec<Problem>) {
        let mut problems = Vec::new();
        let assets = Assets::new(look, files, &mut problems);
        let mut theme = Self {
            embedded: environment(&assets.by_name),
            own: None,
            sources: BTreeMap::new(),
            last_good: last.map(|last| last.sources.clone()).unwrap_or_default(),
            assets,
            look: look.clone(),
            fingerprint: 0,
            told: Mutex::default(),
        };
        for (name, source) in embedded_templates(look.look) {
            theme.embedded.add_template(name, source).expect("embedded templates are well-formed: every test draws them");
        }
        for (name, bytes) in files.iter().filter(|(name, _)| is_template(name)) {
            let file = Path::new(FOLDER).join(name);
            let source = match std::str::from_utf8(bytes) {
                Ok(source) => source,
                Err(error) => {
                    let line = 1 + bytes[..error.valid_up_to()].iter().filter(|&&b| b == b'\n').count();
                    problems.push(Problem::new(&file, line, "not UTF-8; save the file with that encoding"));
                    theme.fall_back(name);
                    continue;
                }
            };
            // Alone, because an environment keeps no template that is wrong, and names them by their order.
            let parsed = environment(&theme.assets.by_name).add_template_owned(name.clone(), source.to_owned());
            match parsed {
                Ok(()) => {
                    theme.sources.insert(name.clone(), source.to_owned());
                }
                Err(error) => {
                    problems.push(Problem::new(&file, error.line(), message(&error, "")));
                    theme.fall_back(name);
                }
            }
        }
        theme.settle();
        (theme, problems)
    }

    /// Tells whether the blog has templates of its own.
    pub(crate) const fn has_own_templates(&self) -> bool {
        self.own.is_some()
    }

    /// Draws a page with the blog's own templates. Returns the mistake if that fails.
    pub(crate) fn try_page(&self, page: &Drawable<'_>) -> Result<(), Mistake> {
        match &self.own {
            Some(own) => draw(own, page).map(drop).map_err(|error| self.mistake(&error, page.template)),
            None => Ok(()),
        }
    }

    /// Finds the template of the blog in which a page failed: where one includes another, the innermost.
    fn mistake(&self, error: &minijinja::Error, drawn: &str) -> Mistake {
        let first: &(dyn std::error::Error + 'static) = error;
        let chain = std::iter::successors(Some(first), |error| error.source()).filter_map(|error| error.downcast_ref::<minijinja::Error>());
        let all: Vec<_> = chain.collect();
        let is_own = |error: &&&minijinja::Error| error.name().is_some_and(|name| self.sources.contains_key(name));
        let place = all.iter().rev().find(is_own).or_else(|| all.last()).copied().unwrap_or(error);
        let cause = all.last().copied().unwrap_or(error);
        let source = cause.name().and_then(|name| self.sources.get(name));
        Mistake {
            template: place.name().unwrap_or(drawn).to_owned(),
            line: place.line(),
            message: message(cause, source.map_or("", |source| source)),
        }
    }

    /// Puts the last good version, or the embedded one, in the place of the template that is wrong. If the template is not one of the blog's, what the
    /// blog's give it is wrong, and all of them go.
    pub(crate) fn withdraw(&mut self, mistake: &Mistake) {
        let mut names = vec![mistake.template.clone()];
        if !self.sources.contains_key(&mistake.template) {
            names = self.sources.keys().cloned().collect();
        }
        for name in names {
            let wrong = self.sources.remove(&name);
            if self.last_good.get(&name) == wrong.as_ref() {
                self.last_good.remove(&name);
            }
            self.fall_back(&name);
        }
        self.settle();
    }

    fn fall_back(&mut self, name: &str) {
        if let Some(good) = self.last_good.remove(name) {
            self.sources.insert(name.to_owned(), good);
        }
    }

    /// Makes the environment of the templates that are used, and the number that tells whether they draw differently.
    fn settle(&mut self) {
        self.own = (!self.sources.is_empty()).then(|| {
            let mut own = self.embedded.clone();
            own.set_fuel(Some(STEPS_MAX));
            own.set_recursion_limit(DEPTH_MAX);
            for (name, source) in &self.sources {
                own.add_template_owned(name.clone(), source.clone()).expect("it was parsed before");
            }
            own
        });
        let embedded: Vec<_> = embedded_templates(self.look.look).collect();
        self.fingerprint = fingerprint(&(embedded, &self.sources, &self.assets.by_name, &self.assets.style, &self.assets.mark));
    }

    /// Returns a number that differs for themes that draw pages differently.
    pub(crate) const fn fingerprint(&self) -> u128 {
        self.fingerprint
    }

    /// Returns the address of the style.
    pub(crate) fn style(&self) -> &str {
        &self.assets.style
    }

    /// Returns the address of the mark of Seawall, the icon of a blog that has none of its own.
    pub(crate) fn mark(&self) -> &str {
        &self.assets.mark
    }

    /// Returns the addresses of fonts that every page needs.
    pub(crate) fn fonts(&self) -> Vec<String> {
        self.look.font_file.iter().map(|name| self.address(name)).collect()
    }

    /// Returns the address of a file in the blog's folder. Those in the folder `theme` have addresses that change with their content.
    pub(crate) fn address(&self, name: &str) -> String {
        self.assets.address(name)
    }

    /// Returns the assets of the theme: address, media type, content. The addresses change with the content.
    pub(crate) fn assets(&self) -> impl Iterator<Item = (String, &'static str, Bytes)> {
        self.assets.files.iter().cloned()
    }

    /// Draws a page.
    pub(crate) fn draw(&self, page: &Drawable<'_>) -> String {
        if let Some(own) = &self.own {
            match draw(own, page) {
                Ok(html) => return html,
                Err(error) => self.tell(&self.mistake(&error, page.template)),
            }
        }
        draw(&self.embedded, page).expect("embedded templates use what they are given: every test draws them")
    }

    /// Tells of a page that could not be drawn, once for each place in a template.
    fn tell(&self, Mistake { template, line, message }: &Mistake) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let line = line.unwrap_or_default();
        if told.len() < TOLD_MAX && told.insert((template.clone(), line)) {
            tracing::warn!("{FOLDER}/{template}:{line}: {message}; pages that need it are drawn with the built-in templates");
        }
    }
}

/// The reason why a page could not be drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mistake {
    /// The template in which it is.
    pub(crate) template: String,
    line: Option<usize>,
    message: String,
}

impl Mistake {
    /// Returns the mistake as its author should see it.
    pub(crate) fn problem(&self) -> Problem {
        Problem::new(&Path::new(FOLDER).join(&self.template), self.line, self.message.clone())
    }
}

/// Returns the part of a template's source that an error is about, if it is short and known.
fn expression(error: &minijinja::Error, source: &str) -> Option<String> {
    let text = source.get(error.range()?)?;
    (text.len() <= 80 && !text.contains(char::is_control)).then(|| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Says what is wrong in a template, and what to do.
fn message(error: &minijinja::Error, source: &str) -> String {
    let what = match error.kind() {
        ErrorKind::OutOfFuel => return format!("takes more than {STEPS_MAX} steps; does it loop forever?"),
        ErrorKind::WriteFailure => return format!("makes a page of more than {} MiB", PAGE_BYTES_MAX / (1024 * 1024)),
        ErrorKind::UndefinedError => match expression(error, source) {
            Some(expression) => format!("`{expression}`: nothing has this name here"),
            None => "nothing has this name here".to_owned(),
        },
        ErrorKind::TemplateNotFound => "there is no such template".to_owned(),
        kind => kind.to_string(),
    };
    let detail =
        error.detail().map_or_else(String::new, |detail| format!(" ({})", detail.split_whitespace().collect::<Vec<_>>().join(" ")));
    format!("{what}{detail}. The last good version is used")
}

impl Assets {
    fn new(look: &LookSettings, files: &ThemeFiles, problems: &mut Vec<Problem>) -> Self {
        let mut assets = Self { mark: fingerprinted("mark.svg", MARK.as_bytes()), ..Self::default() };
        assets.files.push((assets.mark.clone(), "image/svg+xml", Bytes::from_static(MARK.as_bytes())));
        let is_style = |name: &str| name.ends_with(".css");
        let mut by_name = BTreeMap::new();
        for (name, bytes) in files.iter().filter(|(name, _)| !is_template(name) && !is_style(name)) {
            // Notes and sources beside a theme are nobody's business.
            let Some(content_type) = content_type(name) else { continue };
            let address = fingerprinted(name, bytes);
            by_name.insert(name.clone(), address.clone());
            assets.files.push((address, content_type, bytes.clone()));
        }
        let mut own_style = |name: &str| {
            let file = Path::new(FOLDER).join(name);
            let text = String::from_utf8_lossy(files.get(name)?);
            if let Some((line, what)) = style::unbalanced(&text) {
                problems.push(Problem::warning(&file, line, format!("{what}; browsers skip what follows")));
            }
            Some(text.into_owned())
        };
        // Styles come after all files that they may name.
        let mut styles: Vec<(String, String)> = Vec::new();
        for name in files.keys().filter(|name| is_style(name) && !matches!(name.as_str(), "style.css" | "custom.css")) {
            styles.extend(own_style(name).map(|text| (name.clone(), text)));
        }
        let embedded = || format!("{STYLE}\n{}", look.look.get().style);
        let whole = own_style("style.css").unwrap_or_else(embedded);
        let custom = own_style("custom.css").unwrap_or_default();
        for (name, text) in styles {
            let text = Bytes::from(style::minified(&style::with_addresses(&text, &by_name)));
            let address = fingerprinted(&name, &text);
            by_name.insert(name, address.clone());
            assets.files.push((address, "text/css; charset=utf-8", text));
        }
        assets.by_name = Arc::new(by_name);
        let custom = style::with_addresses(&custom, &assets.by_name);
        let whole = style::with_addresses(&whole, &assets.by_name);
        let text = Bytes::from(style::minified(&format!("{whole}\n{}\n{custom}", assets.settings(look))));
        assets.style = fingerprinted("style.css", &text);
        assets.files.push((assets.style.clone(), "text/css; charset=utf-8", text));
        assets
    }

    fn address(&self, name: &str) -> String {
        let own = name.strip_prefix(FOLDER).and_then(|name| name.strip_prefix('/')).and_then(|name| self.by_name.get(name));
        own.cloned().unwrap_or_else(|| encode_path(&format!("/{name}")))
    }

    /// Writes the settings of `blog.toml` as CSS.
    fn settings(&self, look: &LookSettings) -> String {
        let mut css = String::new();
        let mut root = String::new();
        let face = |family: &str, file: &str| {
            format!("@font-face{{font-family:\"{family}\";src:url(\"{}\");font-display:swap;font-weight:100 900}}", self.address(file))
        };
        let fallback = look.font.as_deref().unwrap_or("serif");
        if let Some(file) = &look.font_file {
            css += &face("blog", file);
            root += &format!("--text:\"blog\",{fallback};--head:var(--text);");
        } else if look.font.is_some() {
            root += &format!("--text:{fallback};--head:var(--text);");
        }
        if let Some(file) = &look.code_font_file {
            css += &face("blog-code", file);
            root += "--mono:\"blog-code\",ui-monospace,Menlo,Consolas,\"DejaVu Sans Mono\",monospace;";
        }
        if let Some(width) = &look.width {
            root += &format!("--measure:{width};");
        }
        if let Some(accent) = look.accent {
            let [light, dark] = look.look.get().papers.map(|papers| accent.readable_on(&papers).css());
            root += &format!("--accent:{light};");
            css += &format!("@media (prefers-color-scheme: dark){{:root{{--accent:{dark}}}}}");
        }
        // The dark scheme comes last: it wins where it applies.
        if root.is_empty() { css } else { format!(":root{{{root}}}{css}") }
    }
}

/// Returns the address of a file of the theme, which changes with its content.
fn fingerprinted(name: &str, content: &[u8]) -> String {
    let digest = &digest(content)[..12];
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    encode_path(&format!("/{FOLDER}/{stem}-{digest}.{extension}"))
}

fn is_template(name: &str) -> bool {
    name.ends_with(".html")
}

/// Lists the templates of a look: those of the theme, and in their places those of the look.
fn embedded_templates(look: LookName) -> impl Iterator<Item = (&'static str, &'static str)> {
    let of_look = look.get().templates;
    TEMPLATES
        .into_iter()
        .map(|(name, source)| (name, of_look.iter().find(|(other, _)| *other == name).map_or(source, |(_, source)| *source)))
}

/// Makes an environment without templates. It has no loader: a template can use those that were added and no other file.
fn environment(assets: &Arc<BTreeMap<String, String>>) -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    // Ours, because minijinja's escapes every slash of an address as well.
    environment.set_formatter(|out, state, value| match value.as_str() {
        // Escaping would drop it; nobody else can write it.
        Some(BASE) => out.write_str(BASE).map_err(minijinja::Error::from),
        Some(text) if !value.is_safe() => out.write_str(&escape(text)).map_err(minijinja::Error::from),
        _ => minijinja::escape_formatter(out, state, value),
    });
    let assets = Arc::clone(assets);
    environment.add_function("asset", move |name: String| {
        assets.get(&name).cloned().ok_or_else(|| {
            minijinja::Error::new(ErrorKind::InvalidOperation, format!("there is no file {FOLDER}/{name} that can be served"))
        })
    });
    environment
}

/// Draws a page. Returns an error if a template is wrong, takes too long, or makes too much.
fn draw(environment: &Environment<'static>, page: &Drawable<'_>) -> Result<String, minijinja::Error> {
    struct Limited(Vec<u8>);
    impl io::Write for Limited {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0.len() + bytes.len() > PAGE_BYTES_MAX {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            self.0.extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut html = Limited(Vec::with_capacity(16 * 1024));
    environment.get_template(page.template)?.render_captured_to(&page.context, &mut html)?;
    String::from_utf8(html.0).map_err(|_| minijinja::Error::new(ErrorKind::BadSerialization, "not UTF-8"))
}
