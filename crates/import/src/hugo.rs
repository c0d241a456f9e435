//! The source of a Hugo site.

mod address;
mod cascade;
mod glob;
mod hidden;
mod shortcodes;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use serde_json::Value;

use self::{
    address::{address, alias_addresses},
    cascade::{Cascades, Page, with_params},
    hidden::{Expiry, Hidden, hidden},
    shortcodes::Names,
};
use crate::{
    error::ImportError,
    front_matter::{Start, Table, config, flag, instant, list, text, written},
    html::Targets as _,
    jekyll::titled,
    job::{Author, Job},
    links::Links,
    location::{Location, TextToPlace},
    media::{self, FoundFile, refusal},
    report::{Entry, Outcome},
    site_source::{ReadSource, Source, converted, leave_out, note_authors, read},
    slug::encoded,
    text::Kind,
};

/// Sections whose texts are posts, where a site does not say so.
const POSTS: [&str; 11] = ["post", "posts", "blog", "blogs", "articles", "article", "news", "entries", "writing", "notes", "journal"];

struct Site {
    config: Table,
    /// The language without a prefix in addresses.
    language: String,
    /// Languages, and the folders of their texts.
    languages: BTreeMap<String, Option<String>>,
    permalinks: BTreeMap<String, String>,
    posts: BTreeSet<String>,
    is_ugly: bool,
    /// Whether texts have formulas unless they say otherwise.
    has_math: bool,
    base: String,
    cascades: Cascades,
    expiry: Expiry,
    /// Whether the site shows texts before their time.
    shows_future: bool,
    now: Timestamp,
}

/// A text, and where it is in the folder of texts.
struct Text {
    source: Source,
    file: FoundFile,
    /// The path below the folder of texts, without the language in its name.
    path: String,
    /// The files that belong to it.
    resources: Vec<FoundFile>,
    is_bundle: bool,
}

pub(crate) fn import(exports: &[PathBuf], now: Timestamp, job: &mut Job) -> Result<(), ImportError> {
    job.report.engine = "Hugo".to_owned();
    let [root] = exports else {
        return Err(ImportError::Folder { message: "a Hugo site has one folder: give that alone".to_owned() });
    };
    let mut site = read_config(root, now, job)?;
    let mut folders: BTreeMap<String, String> = BTreeMap::new();
    for (language, folder) in &site.languages {
        if let Some(folder) = folder {
            folders.insert(folder.clone(), language.clone());
        }
    }
    for mount in site.config.get("module").and_then(|module| module.get("mounts")).and_then(Value::as_array).into_iter().flatten() {
        let Some(mount) = mount.as_object() else { continue };
        if text(mount, &["target"]).is_some_and(|target| target == "content")
            && let Some(source) = text(mount, &["source"])
        {
            folders.insert(source, text(mount, &["lang"]).unwrap_or_else(|| site.language.clone()));
        }
    }
    if folders.is_empty() {
        folders.insert(text(&site.config, &["contentDir", "contentdir"]).unwrap_or_else(|| "content".to_owned()), site.language.clone());
    }
    let mut texts = Vec::new();
    for (folder, language) in &folders {
        let path = root.join(folder);
        if !path.is_dir() {
            // A language may have no texts yet.
            if *language != site.language {
                continue;
            }
            return Err(ImportError::of_file(root, format!("has no folder {folder}, where its texts should be")));
        }
        texts.extend(read_texts(&path, language, &mut site, job)?);
    }
    let statics = list(&site.config, &["staticDir", "staticdir"], &[]);
    for name in if statics.is_empty() { vec!["static".to_owned()] } else { statics } {
        let folder = root.join(&name);
        if folder.is_dir() {
            let mut media = std::mem::take(&mut job.addresses.media);
            let prefix = site.base.trim_start_matches('/').to_owned() + if site.base.is_empty() { "" } else { "/" };
            let own = |name: &str, _: &std::collections::HashSet<&str>| {
                ["_redirects", "_headers"].contains(&name).then_some("rules of the old host; look whether they still apply")
            };
            let copied = media.copy_all(&folder, &prefix, own, &mut job.folder, &mut job.report);
            job.addresses.media = media;
            copied?;
        }
    }
    for (folder, why) in [
        ("layouts", "templates: the blog has a look of its own"),
        ("themes", "themes of Hugo"),
        ("assets", "what Hugo's templates use; copy pictures that texts should show"),
        ("data", "data for templates"),
        ("archetypes", "patterns for new texts"),
        ("i18n", "words of templates"),
    ] {
        let path = root.join(folder);
        if path.is_dir() {
            job.report.left_out(format!("files in {folder}/"), media::list(&path)?.files.len(), why);
        }
    }
    let places = place_all(&mut texts, &site, job)?;
    write_menu(&site, job);
    for (at, text) in texts.iter().enumerate() {
        write_text(text, &places[at], &site, job)?;
    }
    if job.settings.authors.is_empty() {
        let params = site.config.get("params").and_then(Value::as_object).cloned().unwrap_or_default();
        let of_table = params.get("author").and_then(Value::as_object).and_then(|author| text(author, &["name"]));
        if let Some(name) = of_table.or_else(|| text(&params, &["author"])).or_else(|| text(&site.config, &["author"])) {
            job.settings.authors.insert(crate::slug::slugify(&name), Author { name, ..Author::default() });
        }
    }
    Ok(())
}

fn config_in(folder: &Path, names: &[&str]) -> Option<PathBuf> {
    names
        .iter()
        .flat_map(|name| ["toml", "yaml", "yml", "json"].map(|extension| folder.join(format!("{name}.{extension}"))))
        .find(|path| path.is_file())
}

fn read_config(root: &Path, now: Timestamp, job: &mut Job) -> Result<Site, ImportError> {
    let mut table = config_in(root, &["hugo", "config"]).map_or_else(|| Ok(Table::new()), |path| config(&path))?;
    let folder = root.join("config/_default");
    if let Ok(entries) = fs::read_dir(&folder) {
        let mut paths: Vec<PathBuf> = entries.map_while(Result::ok).map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
            let is_known =
                path.extension().is_some_and(|extension| ["toml", "yaml", "yml", "json"].iter().any(|known| extension == *known));
            if !is_known {
                continue;
            }
            let part = config(&path)?;
            if stem == "hugo" || stem == "config" {
                table.extend(part);
            } else if let Some(language) = stem.strip_prefix("languages.") {
                let all = table.entry("languages").or_insert_with(|| Value::Object(Table::new()));
                if let Value::Object(all) = all {
                    all.insert(language.to_owned(), Value::Object(part));
                }
            } else {
                // `cascade.toml` may hold its list under its own name, for a list alone is not a file.
                let own = part.get(&stem).filter(|_| part.len() == 1).cloned();
                table.insert(stem, own.unwrap_or(Value::Object(part)));
            }
        }
    }
    let mut table = in_any_case(table);
    job.settings.title = text(&table, &["title"]);
    let params = table.get("params").and_then(Value::as_object).cloned().unwrap_or_default();
    job.settings.description = text(&params, &["description", "subtitle"]).or_else(|| text(&table, &["description"]));
    let language = text(&table, &["defaultcontentlanguage"]).unwrap_or_else(|| "en".to_owned());
    for name in ["menus", "menu"] {
        if let Some(menu) = table.get(&format!("{name}.{language}")).cloned().filter(|_| !table.contains_key(name)) {
            table.insert(name.to_owned(), menu);
        }
    }
    job.settings.language = text(&table, &["languagecode", "locale"]).or_else(|| Some(language.clone()));
    let base = text(&table, &["baseurl"]).map(|url| job.addresses.add_site(&url)).unwrap_or_default();
    let (mut languages, mut cascades) = (BTreeMap::new(), Cascades::default());
    for (name, settings) in table.get("languages").and_then(Value::as_object).into_iter().flatten() {
        let settings = settings.as_object().cloned().unwrap_or_default();
        let of_texts = settings.get("params").and_then(Value::as_object);
        if *name == language && job.settings.title.is_none() {
            job.settings.title = text(&settings, &["title"]);
        }
        if *name == language && job.settings.description.is_none() {
            job.settings.description = of_texts.and_then(|params| text(params, &["description", "subtitle"]));
        }
        if let Some(cascade) = settings.get("cascade") {
            hand_down(cascade, &format!("languages.{name}"), None, Some(name), &mut cascades, job);
        }
        languages.insert(name.clone(), text(&settings, &["contentDir", "contentdir"]));
    }
    if let Some(cascade) = table.get("cascade") {
        hand_down(cascade, "the configuration", None, None, &mut cascades, job);
    }
    languages.entry(language.clone()).or_default();
    let mut permalinks = BTreeMap::new();
    let forms = table.get("permalinks").and_then(Value::as_object).cloned().unwrap_or_default();
    let of_pages = forms.get("page").and_then(Value::as_object).cloned().unwrap_or_default();
    for (section, form) in forms.iter().chain(&of_pages) {
        if let Value::String(form) = form {
            permalinks.insert(section.clone(), form.clone());
        }
    }
    let posts = list(&params, &["mainSections", "mainsections"], &[]);
    let posts = if posts.is_empty() { list(&table, &["mainsections"], &[]) } else { posts };
    let is_ugly = flag(&table, "uglyurls") == Some(true);
    let has_math = ["math", "katex", "mathjax"].iter().any(|key| flag(&params, key) == Some(true));
    let (expiry, shows_future) = (Expiry::new(&table), flag(&table, "buildfuture") == Some(true));
    let posts = posts.into_iter().collect();
    Ok(Site { config: table, language, languages, permalinks, posts, is_ugly, has_math, base, cascades, expiry, shows_future, now })
}

/// Returns a table with its keys in lower case, too: they mean the same to Hugo.
fn in_any_case(table: Table) -> Table {
    table.into_iter().flat_map(|(key, value)| [(key.to_lowercase(), value.clone()), (key, value)]).collect()
}

/// Notes the values that a section in `folder`, or a part of the configuration, hands down, and tells what in them is not understood.
fn hand_down(cascade: &Value, place: &str, folder: Option<&str>, language: Option<&str>, cascades: &mut Cascades, job: &mut Job) {
    for unknown in cascades.add(folder, language, cascade) {
        job.report.notes.push(format!("{place}: `cascade`: {unknown}"));
    }
}

/// Reads what the sections hand down to the texts below them.
fn read_cascades(files: &[FoundFile], language: &str, site: &mut Site, job: &mut Job) -> Result<(), ImportError> {
    for file in files {
        let (path, language) = path_and_language(&file.name, language, site);
        let Some(folder) = path.strip_suffix("_index").filter(|folder| folder.is_empty() || folder.ends_with('/')) else { continue };
        if let ReadSource::Text { front, .. } = read(&file.path, &file.name, Start::BelowSpace)?
            && let Some((_, cascade)) = front.iter().find(|(key, _)| key.eq_ignore_ascii_case("cascade"))
        {
            hand_down(cascade, &file.name, Some(folder.trim_end_matches('/')), Some(&language), &mut site.cascades, job);
        }
    }
    Ok(())
}

/// Returns the path of a text without extension and language, and the language: `about.de.md` is German.
fn path_and_language(name: &str, language: &str, site: &Site) -> (String, String) {
    let (stem, _) = name.rsplit_once('.').unwrap_or((name, ""));
    let suffix = stem.rsplit_once('.').filter(|(_, suffix)| site.languages.contains_key(*suffix));
    let (path, language) = suffix.unwrap_or((stem, language));
    (path.to_owned(), language.to_owned())
}

fn is_text(name: &str) -> bool {
    [".md", ".markdown", ".html", ".htm"].iter().any(|extension| name.ends_with(extension))
}

fn read_texts(content: &Path, language: &str, site: &mut Site, job: &mut Job) -> Result<Vec<Text>, ImportError> {
    let listing = media::list(content)?;
    for (name, why) in listing.skipped {
        job.report.left_out(name, 1, why);
    }
    read_cascades(&listing.files, language, site, job)?;
    let folder_of = |name: &str| name.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned());
    let bundles: BTreeSet<String> = listing
        .files
        .iter()
        .filter(|file| is_text(&file.name) && file.name.rsplit('/').next().is_some_and(|leaf| leaf.starts_with("index.")))
        .map(|file| folder_of(&file.name))
        .filter(|folder| !folder.is_empty())
        .collect();
    let bundle_of = |name: &str| {
        let mut folder = folder_of(name);
        loop {
            if bundles.contains(&folder) {
                return Some(folder);
            }
            folder = folder.rsplit_once('/')?.0.to_owned();
        }
    };
    if site.posts.is_empty() {
        let sections: BTreeSet<&str> =
            listing.files.iter().filter_map(|file| file.name.split_once('/').map(|(section, _)| section)).collect();
        site.posts = POSTS.iter().filter(|name| sections.contains(**name)).map(|name| (*name).to_owned()).collect();
    }
    let mut resources: BTreeMap<String, Vec<FoundFile>> = BTreeMap::new();
    let mut texts = Vec::new();
    let mut others = Vec::new();
    for file in listing.files {
        let bundle = bundle_of(&file.name);
        let is_own =
            bundle.as_ref().is_none_or(|folder| folder_of(&file.name) == *folder && file.name[folder.len() + 1..].starts_with("index."));
        if is_text(&file.name) && is_own {
            if let Some(text) = text_of(file, language, bundle.is_some(), site, job)? {
                texts.push(text);
            }
        } else if let Some(bundle) = bundle {
            resources.entry(bundle).or_default().push(file);
        } else {
            others.push(file);
        }
    }
    for text in &mut texts {
        if text.is_bundle {
            text.resources = resources.remove(&folder_of(&text.file.name)).unwrap_or_default();
        }
    }
    let mut media = std::mem::take(&mut job.addresses.media);
    for file in others.into_iter().chain(resources.into_values().flatten()) {
        let name = format!("{}/{}", site.base, file.name);
        let name = name.trim_start_matches('/');
        let why = if [".adoc", ".org", ".rst", ".pandoc", ".pdc"].iter().any(|extension| file.name.ends_with(extension)) {
            Some("is not Markdown; convert it")
        } else {
            refusal(name)
        };
        match why {
            Some(why) => {
                let why = Some(why.to_owned());
                job.report.files.push(Entry { name: file.name, new: None, outcome: Outcome::LeftOut, why });
            }
            None => {
                media.copy(&file.path, name, name, &mut job.folder, &mut job.report)?;
                media.insert_source(&file.name, name);
            }
        }
    }
    job.addresses.media = media;
    Ok(texts)
}

fn text_of(file: FoundFile, language: &str, is_bundle: bool, site: &Site, job: &mut Job) -> Result<Option<Text>, ImportError> {
    let (path, own_language) = path_and_language(&file.name, language, site);
    let section = path.split_once('/').map_or("", |(section, _)| section).to_owned();
    let is_section = path == "_index" || path.ends_with("/_index");
    let (front, body) = match read(&file.path, &file.name, Start::BelowSpace)? {
        ReadSource::Text { front, body, .. } => (front, body),
        ReadSource::Plain(body) => (Table::new(), body),
        ReadSource::Broken(why) => {
            leave_out(&file.name, Kind::Page, &why, job);
            return Ok(None);
        }
    };
    let mut front = in_any_case(with_params(front));
    site.cascades.hand_down(Page { path: &path, file: &file.name, language: &own_language }, &mut front);
    let is_listed = site.posts.contains(&section);
    // `published` may also be a switch.
    let dates = ["publishdate", "pubdate", "published", "date"];
    let date = dates.iter().find_map(|key| instant(&text(&front, &[key])?)).filter(|date| date.as_second() > 0);
    let leaf = path.rsplit('/').next().unwrap_or(&path);
    let date = date.or_else(|| leaf.get(..10).filter(|day| leaf.len() > 11 && day.as_bytes()[4] == b'-').and_then(instant)).map(written);
    let is_post = !is_section && (is_listed || site.posts.is_empty() && date.is_some() && !section.is_empty());
    let kind = if is_post { Kind::Post } else { Kind::Page };
    if is_section && body.trim().is_empty() {
        leave_out(&file.name, kind, "only heads a list, which the blog makes itself", job);
        return Ok(None);
    }
    let name = if leaf == "index" || leaf == "_index" { path.rsplit('/').nth(1).unwrap_or("home") } else { leaf };
    let title = text(&front, &["title", "linktitle"]).unwrap_or_else(|| titled(name));
    let is_draft = flag(&front, "draft").unwrap_or_else(|| flag(&front, "published") == Some(false));
    let hidden = hidden(&front, &site.expiry, site.now).or_else(|| too_early(kind, date.as_deref(), site)).filter(|_| !is_draft);
    let mut tags = list(&front, &["categories", "category"], &[',']);
    tags.extend(list(&front, &["tags", "tag"], &[',']));
    let has_languages = site.languages.len() > 1;
    let translation = text(&front, &["translationkey"]).or_else(|| has_languages.then(|| path.clone()));
    let aliases: Vec<String> = list(&front, &["aliases"], &[]);
    let source = Source {
        name: file.name.clone(),
        date,
        title,
        kind,
        tags,
        is_draft: is_draft || hidden.is_some(),
        status: hidden.as_ref().map_or(if is_draft { "draft" } else { "published" }, |hidden| hidden.status),
        hidden: hidden.map(|hidden| hidden.why),
        lang: (own_language != site.language).then(|| own_language.clone()),
        translation: translation.filter(|_| has_languages),
        aliases,
        front,
    };
    Ok(Some(Text { source, file, path, resources: Vec::new(), is_bundle }))
}

/// Tells whether a page's time has not come: the blog would show it at once, other than a post.
fn too_early(kind: Kind, date: Option<&str>, site: &Site) -> Option<Hidden> {
    let at = date.and_then(instant).filter(|at| kind == Kind::Page && *at > site.now && !site.shows_future)?;
    Some(Hidden { status: "scheduled", why: format!("appears on {}, and the blog shows pages at once", written(at)) })
}

fn place_all(texts: &mut [Text], site: &Site, job: &mut Job) -> Result<Vec<Location>, ImportError> {
    let mut order: Vec<usize> = (0..texts.len()).collect();
    order.sort_by_key(|&at| (texts[at].source.is_draft, texts[at].source.kind == Kind::Post));
    let mut places = vec![Location::default(); texts.len()];
    let mut media = std::mem::take(&mut job.addresses.media);
    for at in order {
        let own = address(&texts[at], site);
        let old = format!("{}{own}", site.base);
        let text = &mut texts[at];
        let leaf = text.path.rsplit('/').find(|name| !matches!(*name, "index" | "_index")).unwrap_or("home").to_owned();
        let slug = front_slug(&text.source).unwrap_or(leaf);
        let day = text.source.date.as_deref().and_then(|date| date.get(..10)).filter(|_| text.source.kind == Kind::Post).map(str::to_owned);
        let is_folder = !text.resources.is_empty();
        // Readers may know the address of what has expired or is in no list.
        let known = (!text.source.is_draft || text.source.hidden.is_some()).then_some(old.as_str());
        let Source { kind, title, is_draft, .. } = &text.source;
        let (kind, is_draft) = (*kind, *is_draft);
        let wish = TextToPlace { kind, slug: strip_day(&slug), title, old: known, day: day.as_deref(), is_folder, is_draft };
        let location = job.places.place(&wish);
        if old != "/" {
            job.addresses.insert(&old, &location.address);
        }
        text.source.aliases = text.source.aliases.iter().flat_map(|alias| alias_addresses(alias, &own, site)).collect();
        for alias in &text.source.aliases {
            job.addresses.insert(alias, &location.address);
        }
        job.addresses.insert_source(&text.source.name, &location.address);
        job.addresses.insert_source(&format!("{}.md", text.path), &location.address);
        for tag in &text.source.tags {
            let _ = job.tag(tag);
        }
        let own_folder = location.folder().to_owned();
        let source_folder = text.file.name.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        for file in std::mem::take(&mut text.resources) {
            let below = file.name[source_folder.len()..].trim_start_matches('/').to_owned();
            let (was, name) = (format!("{}/{below}", old.trim_matches('/')), format!("{own_folder}/{below}"));
            match refusal(&name) {
                Some(why) => {
                    let why = Some(why.to_owned());
                    job.report.files.push(Entry { name: file.name, new: None, outcome: Outcome::LeftOut, why });
                }
                None => {
                    media.copy(&file.path, &was, &name, &mut job.folder, &mut job.report)?;
                    media.insert_source(&file.name, &name);
                    if was != name && !is_draft {
                        job.redirect_pattern(&encoded(&format!("/{was}")), &encoded(&format!("/{name}")));
                    }
                }
            }
        }
        places[at] = location;
    }
    job.addresses.media = media;
    for (from, to) in
        [("/index.xml", "/feed.xml"), ("/posts/index.xml", "/feed.xml"), ("/post/index.xml", "/feed.xml"), ("/categories/", "/tags/")]
    {
        job.redirect(&format!("{}{from}", site.base), to);
    }
    job.redirect_pattern(&format!("{}/categories/:tag/", site.base), "/tags/:tag/");
    job.redirect_pattern(&format!("{}/tags/:tag/index.xml", site.base), "/tags/:tag/feed.xml");
    Ok(places)
}

fn front_slug(source: &Source) -> Option<String> {
    text(&source.front, &["slug"])
}

/// Removes a date from the beginning of a name: the file gets one anyway.
fn strip_day(slug: &str) -> &str {
    let bytes = slug.as_bytes();
    let is_dated = bytes.len() > 11
        && bytes[..10].iter().enumerate().all(|(at, byte)| if at == 4 || at == 7 { *byte == b'-' } else { byte.is_ascii_digit() });
    if is_dated { slug[10..].trim_start_matches(['-', '_']) } else { slug }
}

fn write_menu(site: &Site, job: &mut Job) {
    let menus = site.config.get("menus").or_else(|| site.config.get("menu")).and_then(Value::as_object);
    let mut items: Vec<(i64, String, String)> = Vec::new();
    for item in menus.and_then(|menus| menus.get("main")).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object) {
        let name = text(item, &["name", "title", "identifier"]);
        let url = text(item, &["url", "URL", "pageRef", "pageref"]);
        let weight = item.get("weight").and_then(Value::as_i64).unwrap_or(i64::MAX);
        if let (Some(name), Some(url), None) = (name, url, text(item, &["parent"])) {
            let url = if url.starts_with('/') || url.contains("://") { url } else { format!("/{url}") };
            items.push((weight, name, Links::new(&job.addresses, "", None).link(&url)));
        }
    }
    items.sort_by_key(|(weight, _, _)| *weight);
    job.settings.navigation = items.into_iter().map(|(_, name, url)| (name, url)).collect();
}

struct SiteNames<'a> {
    site: &'a Site,
    job: &'a Job,
    source: &'a Source,
    folder: &'a str,
}

impl Names for SiteNames<'_> {
    fn address(&self, path: &str) -> Option<String> {
        let (path, fragment) = path.find('#').map_or((path, ""), |at| path.split_at(at));
        if path.is_empty() {
            return Some(fragment.to_owned());
        }
        let clean = path.trim_matches('/').trim_end_matches(".md");
        let here = crate::folder::join(self.folder, clean).filter(|_| !path.starts_with('/'));
        for base in here.into_iter().chain([clean.to_owned()]) {
            let found = [format!("{base}.md"), format!("{base}/index.md"), format!("{base}/_index.md"), base.clone()];
            if let Some(address) = found.iter().find_map(|name| self.job.addresses.find_source(name)) {
                return Some(format!("{}{fragment}", encoded(address)));
            }
        }
        // A name alone may be anywhere.
        let of_path = self.job.addresses.find(&format!("{}/{clean}", self.site.base));
        of_path.or_else(|| self.job.addresses.find_named(clean)).map(|address| format!("{}{fragment}", encoded(address)))
    }

    fn value(&self, name: &str) -> Option<String> {
        let params = self.site.config.get("params").and_then(Value::as_object);
        text(&self.source.front, &[name]).or_else(|| params.and_then(|params| text(params, &[name])))
    }
}

fn write_text(text: &Text, location: &Location, site: &Site, job: &mut Job) -> Result<(), ImportError> {
    let source = &text.source;
    let (body, line) = match read(&text.file.path, &source.name, Start::BelowSpace)? {
        ReadSource::Text { body, line, .. } => (body, line),
        ReadSource::Plain(body) => (body, 1),
        ReadSource::Broken(_) => return Ok(()),
    };
    let folder = source.name.rsplit_once('/').map_or("", |(folder, _)| folder);
    let names = SiteNames { site, job, source, folder };
    let (body, notes) = shortcodes::replace(&body, &source.name, line, &names);
    let is_html = source.name.ends_with(".html") || source.name.ends_with(".htm");
    let mut links = Links::new(&job.addresses, location.folder(), location.old.as_deref());
    links.source = Some(folder);
    // The reason comes before the other notes.
    source.hidden.iter().cloned().chain(notes).for_each(|note| links.note(note));
    if source.status != "expired" && site.expiry.date(&source.front).is_some() {
        links.note("has a date on which it expires, which the blog does not know".to_owned());
    }
    let body = body.replace("<!--more-->", "");
    let (mut front, body, entry) = converted(source, location, &body, is_html, &links);
    if front.math.is_none() && body.contains('$') && !site.has_math {
        front.math = Some(false);
    }
    note_authors(&source.front, job);
    job.write(location, front, &body, entry)
}
