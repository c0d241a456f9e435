//! The source of a Hugo site.

mod shortcodes;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use self::shortcodes::Names;
use crate::{
    error::ImportError,
    front_matter::{Table, config, flag, instant, list, text, written},
    html::Targets as _,
    jekyll::titled,
    job::{Author, Job},
    links::Links,
    media::{self, Found, refusal},
    place::{Place, Wish},
    report::{Entry, Outcome},
    site_source::{Read, Source, converted, leave_out, note_authors, read},
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
}

/// A text, and where it is in the folder of texts.
struct Text {
    source: Source,
    file: Found,
    /// The path below the folder of texts, without the language in its name.
    path: String,
    /// The files that belong to it.
    resources: Vec<Found>,
    is_bundle: bool,
}

pub(crate) fn import(exports: &[PathBuf], job: &mut Job) -> Result<(), ImportError> {
    job.report.engine = "Hugo".to_owned();
    let [root] = exports else {
        return Err(ImportError::Folder { message: "a Hugo site has one folder: give that alone".to_owned() });
    };
    let mut site = read_config(root, job)?;
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

fn read_config(root: &Path, job: &mut Job) -> Result<Site, ImportError> {
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
                table.insert(stem, Value::Object(part));
            }
        }
    }
    // Keys are the same in any case of their letters.
    let mut table: Table = table.into_iter().flat_map(|(key, value)| [(key.to_lowercase(), value.clone()), (key, value)]).collect();
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
    let mut languages = BTreeMap::new();
    for (name, settings) in table.get("languages").and_then(Value::as_object).into_iter().flatten() {
        let settings = settings.as_object().cloned().unwrap_or_default();
        let of_texts = settings.get("params").and_then(Value::as_object);
        if *name == language && job.settings.title.is_none() {
            job.settings.title = text(&settings, &["title"]);
        }
        if *name == language && job.settings.description.is_none() {
            job.settings.description = of_texts.and_then(|params| text(params, &["description", "subtitle"]));
        }
        languages.insert(name.clone(), text(&settings, &["contentDir", "contentdir"]));
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
    Ok(Site { config: table, language, languages, permalinks, posts: posts.into_iter().collect(), is_ugly, has_math, base })
}

fn read_texts(content: &Path, language: &str, site: &mut Site, job: &mut Job) -> Result<Vec<Text>, ImportError> {
    let listing = media::list(content)?;
    for (name, why) in listing.skipped {
        job.report.left_out(name, 1, why);
    }
    let is_text = |name: &str| [".md", ".markdown", ".html", ".htm"].iter().any(|extension| name.ends_with(extension));
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
    let mut resources: BTreeMap<String, Vec<Found>> = BTreeMap::new();
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
            Some("is no Markdown; convert it")
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

fn text_of(file: Found, language: &str, is_bundle: bool, site: &Site, job: &mut Job) -> Result<Option<Text>, ImportError> {
    let (stem, _) = file.name.rsplit_once('.').unwrap_or((&file.name, ""));
    // `about.de.md` is German.
    let suffix = stem.rsplit_once('.').filter(|(_, suffix)| site.languages.contains_key(*suffix));
    let (stem, own_language) = suffix.map_or((stem, language), |(stem, suffix)| (stem, suffix));
    let (path, own_language) = (stem.to_owned(), own_language.to_owned());
    let section = path.split_once('/').map_or("", |(section, _)| section).to_owned();
    let is_section = path == "_index" || path.ends_with("/_index");
    let (front, body) = match read(&file.path, &file.name)? {
        Read::Text { front, body, .. } => (front, body),
        Read::Plain(body) => (Table::new(), body),
        Read::Broken(why) => {
            leave_out(&file.name, Kind::Page, &why, job);
            return Ok(None);
        }
    };
    let is_listed = site.posts.contains(&section);
    let date = text(&front, &["publishDate", "publishdate", "pubdate", "published", "date"])
        .and_then(|text| instant(&text))
        .filter(|date| date.as_second() > 0);
    let leaf = path.rsplit('/').next().unwrap_or(&path);
    let date = date.or_else(|| leaf.get(..10).filter(|day| leaf.len() > 11 && day.as_bytes()[4] == b'-').and_then(instant)).map(written);
    let is_post = !is_section && (is_listed || site.posts.is_empty() && date.is_some() && !section.is_empty());
    let kind = if is_post { Kind::Post } else { Kind::Page };
    let build = front.get("build").or_else(|| front.get("_build")).and_then(Value::as_object).cloned().unwrap_or_default();
    if flag(&front, "headless") == Some(true)
        || text(&build, &["render"]).is_some_and(|render| matches!(render.as_str(), "never" | "false" | "link"))
    {
        leave_out(&file.name, kind, "has no page of its own (headless)", job);
        return Ok(None);
    }
    if is_section && body.trim().is_empty() {
        leave_out(&file.name, kind, "only heads a list, which the blog makes itself", job);
        return Ok(None);
    }
    let name = if leaf == "index" || leaf == "_index" { path.rsplit('/').nth(1).unwrap_or("home") } else { leaf };
    let title = text(&front, &["title", "linkTitle"]).unwrap_or_else(|| titled(name));
    let is_draft = flag(&front, "draft") == Some(true);
    let mut tags = list(&front, &["categories", "category"], &[',']);
    tags.extend(list(&front, &["tags", "tag"], &[',']));
    let has_languages = site.languages.len() > 1;
    let translation = text(&front, &["translationKey", "translationkey"]).or_else(|| has_languages.then(|| path.clone()));
    let aliases: Vec<String> = list(&front, &["aliases"], &[]);
    let source = Source {
        name: file.name.clone(),
        date,
        title,
        kind,
        tags,
        is_draft,
        status: if is_draft { "draft" } else { "published" },
        lang: (own_language != site.language).then(|| own_language.clone()),
        translation: translation.filter(|_| has_languages),
        aliases,
        front,
    };
    Ok(Some(Text { source, file, path, resources: Vec::new(), is_bundle }))
}

/// Returns the path at which Hugo shows a text.
fn address(text_of: &Text, site: &Site) -> String {
    let Text { source, path, .. } = text_of;
    let prefix = source.lang.as_ref().map(|lang| format!("/{lang}")).unwrap_or_default();
    if let Some(url) = text(&source.front, &["url"]) {
        let url = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest.find('/').map_or("/", |at| &rest[at..])).to_owned();
        return if url.starts_with('/') { url } else { format!("{prefix}/{url}") };
    }
    let (folder, leaf) = path.rsplit_once('/').unwrap_or(("", path));
    let clean = |path: &str| path.to_lowercase().replace(' ', "-");
    if leaf == "_index" {
        return if folder.is_empty() { format!("{prefix}/") } else { format!("{prefix}/{}/", clean(folder)) };
    }
    let (folder, leaf) = if leaf == "index" { folder.rsplit_once('/').unwrap_or(("", folder)) } else { (folder, leaf) };
    let section = path.split_once('/').map_or("", |(section, _)| section);
    let slug = text(&source.front, &["slug"]);
    if let Some(form) = site.permalinks.get(section).or_else(|| site.permalinks.get("/").filter(|_| section.is_empty())) {
        let date = source.date.as_deref().unwrap_or("0001-01-01T00:00:00Z");
        let part = |from: usize, to: usize| date.get(from..to).unwrap_or_default().to_owned();
        let own = slug.clone().unwrap_or_else(|| leaf.to_owned());
        let of_title = crate::slug::slugify(&source.title);
        let sections = folder.to_owned();
        let contents: [(&str, String); 14] = [
            (":slugorcontentbasename", own.clone()),
            (":slugorfilename", own),
            (":contentbasename", leaf.to_owned()),
            (":filename", leaf.to_owned()),
            (":sections", sections),
            (":section", section.to_owned()),
            (":slug", slug.unwrap_or_else(|| of_title.clone())),
            (":title", of_title),
            (":year", part(0, 4)),
            (":monthname", String::new()),
            (":month", part(5, 7)),
            (":day", part(8, 10)),
            (":weekday", String::new()),
            (":yearday", String::new()),
        ];
        let filled = contents.iter().fold(form.clone(), |form, (key, value)| form.replace(key, value));
        let filled = filled.trim_matches('/').to_owned();
        return format!("{prefix}/{}/", clean(&filled));
    }
    let leaf = slug.unwrap_or_else(|| leaf.to_owned());
    let whole = if folder.is_empty() { clean(&leaf) } else { format!("{}/{}", clean(folder), clean(&leaf)) };
    if site.is_ugly { format!("{prefix}/{whole}.html") } else { format!("{prefix}/{whole}/") }
}

fn place_all(texts: &mut [Text], site: &Site, job: &mut Job) -> Result<Vec<Place>, ImportError> {
    let mut order: Vec<usize> = (0..texts.len()).collect();
    order.sort_by_key(|&at| (texts[at].source.is_draft, texts[at].source.kind == Kind::Post));
    let mut places = vec![Place::default(); texts.len()];
    let mut media = std::mem::take(&mut job.addresses.media);
    for at in order {
        let old = format!("{}{}", site.base, address(&texts[at], site));
        let text = &mut texts[at];
        let leaf = text.path.rsplit('/').find(|name| !matches!(*name, "index" | "_index")).unwrap_or("home").to_owned();
        let slug = front_slug(&text.source).unwrap_or(leaf);
        let day = text.source.date.as_deref().and_then(|date| date.get(..10)).filter(|_| text.source.kind == Kind::Post).map(str::to_owned);
        let is_folder = !text.resources.is_empty();
        let known = (!text.source.is_draft).then_some(old.as_str());
        let wish =
            Wish { kind: text.source.kind, slug: strip_day(&slug), title: &text.source.title, old: known, day: day.as_deref(), is_folder };
        let place = job.places.place(&wish);
        if old != "/" {
            job.addresses.insert(&old, &place.address);
        }
        // An alias is relative to where the text was.
        let folder = old.trim_end_matches('/').rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        for alias in &mut text.source.aliases {
            if !alias.starts_with('/') {
                *alias = format!("{folder}/{alias}");
            }
            job.addresses.insert(alias, &place.address);
        }
        text.source.aliases.retain(|alias| alias.len() > 1);
        job.addresses.insert_source(&text.source.name, &place.address);
        job.addresses.insert_source(&format!("{}.md", text.path), &place.address);
        for tag in &text.source.tags {
            let _ = job.tag(tag);
        }
        let own_folder = place.folder().to_owned();
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
                    if was != name {
                        job.redirect_pattern(&encoded(&format!("/{was}")), &encoded(&format!("/{name}")));
                    }
                }
            }
        }
        places[at] = place;
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

fn write_text(text: &Text, place: &Place, site: &Site, job: &mut Job) -> Result<(), ImportError> {
    let source = &text.source;
    let (body, line) = match read(&text.file.path, &source.name)? {
        Read::Text { body, line, .. } => (body, line),
        Read::Plain(body) => (body, 1),
        Read::Broken(_) => return Ok(()),
    };
    let folder = source.name.rsplit_once('/').map_or("", |(folder, _)| folder);
    let names = SiteNames { site, job, source, folder };
    let (body, notes) = shortcodes::replace(&body, &source.name, line, &names);
    let is_html = source.name.ends_with(".html") || source.name.ends_with(".htm");
    let mut links = Links::new(&job.addresses, place.folder(), place.old.as_deref());
    links.source = Some(folder);
    notes.into_iter().for_each(|note| links.note(note));
    if crate::front_matter::text(&source.front, &["expiryDate", "expirydate"]).is_some() {
        links.note("has a date on which it expires, which the blog does not know".to_owned());
    }
    let body = body.replace("<!--more-->", "");
    let (mut front, body, entry) = converted(source, place, &body, is_html, &links);
    if front.math.is_none() && body.contains('$') && !site.has_math {
        front.math = Some(false);
    }
    note_authors(&source.front, job);
    job.write(place, front, &body, entry)
}
