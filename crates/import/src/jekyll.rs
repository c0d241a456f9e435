//! The source of a Jekyll site.

mod kramdown;
mod liquid;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use serde_json::Value;

use self::{
    kramdown::Plain,
    liquid::{Liquid, Names},
};
use crate::{
    error::ImportError,
    front_matter::{Start, Table, config, flag, instant, list, split, text, written},
    html::Targets as _,
    job::{Author, Job},
    links::Links,
    location::{Location, TextToPlace},
    media::{self, FoundFile, refusal},
    report::{Entry, Outcome},
    site_source::{ReadSource, Source, converted, leave_out, note_authors, read},
    text::Kind,
};

/// Folders of a site's own machinery.
const MACHINERY: [(&str, &str); 7] = [
    ("_layouts/", "templates: the blog has a look of its own"),
    ("_includes/", "templates: the blog has a look of its own"),
    ("_sass/", "styles: the blog has a look of its own"),
    ("_data/", "data for templates"),
    ("_plugins/", "plugins of Jekyll"),
    ("_site/", "what Jekyll has generated"),
    ("vendor/", "libraries"),
];

struct Site {
    config: Table,
    base: String,
    permalink: String,
    /// The collections whose texts have pages, with the form of their addresses.
    collections: BTreeMap<String, Option<String>>,
    now: Timestamp,
}

pub(crate) fn import(exports: &[PathBuf], now: Timestamp, job: &mut Job) -> Result<(), ImportError> {
    job.report.engine = "Jekyll".to_owned();
    let [root] = exports else {
        return Err(ImportError::Folder { message: "a Jekyll site has one folder: give that alone".to_owned() });
    };
    let site = read_config(root, now, job)?;
    let listing = media::list(root)?;
    for (name, why) in listing.skipped {
        job.report.left_out(name, 1, why);
    }
    let (mut texts, mut machinery): (Vec<(Source, FoundFile)>, BTreeMap<&str, usize>) = (Vec::new(), BTreeMap::new());
    let mut files = Vec::new();
    for file in listing.files {
        if let Some((folder, _)) = MACHINERY.iter().find(|(folder, _)| file.name.starts_with(folder)) {
            *machinery.entry(folder).or_default() += 1;
        } else if let Some(source) = text_of(&file, &site, job)? {
            texts.push((source, file));
        } else if !job.report.texts.iter().any(|text| text.id == file.name) {
            files.push(file);
        }
    }
    for (folder, why) in MACHINERY {
        job.report.left_out(format!("files in {folder}"), machinery.get(folder).copied().unwrap_or_default(), why);
    }
    copy_files(&files, &site.base, job)?;
    let places = place_all(&texts, &site, job);
    let mut attributes = 0;
    for (at, (source, file)) in texts.iter().enumerate() {
        attributes += write_text(source, file, &places[at], &site, job)?;
    }
    job.report.left_out("attributes of kramdown, such as {: .lead}", attributes, "the blog has no classes; ids of headings stay");
    if job.settings.authors.is_empty()
        && let Some(name) = text(&site.config, &["author"])
    {
        job.settings.authors.insert(crate::slug::slugify(&name), Author { name, ..Author::default() });
    }
    Ok(())
}

fn read_config(root: &Path, now: Timestamp, job: &mut Job) -> Result<Site, ImportError> {
    let file = ["_config.yml", "_config.yaml", "_config.toml"].iter().map(|name| root.join(name)).find(|path| path.is_file());
    let table = file.map_or_else(|| Ok(Table::new()), |file| config(&file))?;
    job.settings.title = text(&table, &["title", "name"]);
    job.settings.description = text(&table, &["description", "subtitle", "tagline"]);
    job.settings.language = text(&table, &["lang", "language", "locale"]);
    let base = text(&table, &["baseurl"]).map(|base| base.trim_matches('/').to_owned()).filter(|base| !base.is_empty());
    let base = base.map(|base| format!("/{base}")).unwrap_or_default();
    if let Some(url) = text(&table, &["url"]) {
        job.addresses.add_site(&url);
    }
    if let Some(Value::Object(author)) = table.get("author") {
        add_author(author, None, job);
    }
    let people = ["_data/authors.yml", "_data/authors.yaml"].iter().map(|name| root.join(name)).find(|path| path.is_file());
    if let Some(Ok(people)) = people.map(|path| config(&path)) {
        for (key, author) in &people {
            if let Value::Object(author) = author {
                add_author(author, Some(key), job);
            }
        }
    }
    let mut collections = BTreeMap::new();
    if let Some(Value::Object(all)) = table.get("collections") {
        for (name, settings) in all {
            let settings = settings.as_object().cloned().unwrap_or_default();
            if flag(&settings, "output") == Some(true) && name != "posts" && name != "drafts" {
                collections.insert(name.clone(), text(&settings, &["permalink"]));
            }
        }
    }
    let of_posts = table.get("collections").and_then(|all| all.get("posts")).and_then(Value::as_object);
    let of_posts = of_posts.and_then(|posts| text(posts, &["permalink"]));
    let permalink = of_posts.or_else(|| text(&table, &["permalink"])).unwrap_or_else(|| "date".to_owned());
    Ok(Site { config: table, base, permalink, collections, now })
}

fn add_author(author: &Table, key: Option<&str>, job: &mut Job) {
    let Some(name) = text(author, &["name", "display_name"]).or_else(|| key.map(str::to_owned)) else { return };
    let key = crate::slug::slugify(key.unwrap_or(&name));
    if key.is_empty() {
        return;
    }
    let url = text(author, &["url", "web", "website", "uri", "home"]).filter(|url| url.starts_with("http"));
    job.report.authors.push(Entry { name: name.clone(), new: Some(format!("/authors/{key}/")), outcome: Outcome::Written, why: None });
    job.settings.authors.insert(key, Author { name, bio: text(author, &["bio", "description"]), url, picture: None });
}

fn is_markdown(name: &str) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    extension.is_some_and(|extension| ["md", "markdown", "mkd", "mkdn", "mkdown"].contains(&extension.as_str()))
}

fn is_html(name: &str) -> bool {
    name.ends_with(".html") || name.ends_with(".htm")
}

/// Reads a file as a text. `None` if it is not a text, or is left out.
fn text_of(file: &FoundFile, site: &Site, job: &mut Job) -> Result<Option<Source>, ImportError> {
    let name = file.name.as_str();
    let parts: Vec<&str> = name.split('/').collect();
    let is_in = |folder: &str| parts[..parts.len() - 1].contains(&folder);
    let (is_post, is_draft) = (is_in("_posts"), is_in("_drafts"));
    let collection = parts[0].strip_prefix('_').filter(|_| parts.len() > 1 && !is_post && !is_draft);
    let kind = if is_post || is_draft { Kind::Post } else { Kind::Page };
    if !is_markdown(name) && !is_html(name) {
        if is_post && name.ends_with(".textile") {
            leave_out(name, kind, "is Textile, which the blog does not read; convert it to Markdown", job);
        }
        return Ok(None);
    }
    if let Some(collection) = collection {
        if !site.collections.contains_key(collection) {
            leave_out(name, kind, "is in a collection without pages (output: true)", job);
            return Ok(None);
        }
    } else if parts.iter().any(|part| part.starts_with('.') || part.starts_with('_') && *part != "_posts" && *part != "_drafts") {
        return Ok(None);
    }
    let mut hidden = None;
    let mut front = match read(&file.path, name, Start::AtOnce)? {
        ReadSource::Text { front, .. } => front,
        ReadSource::Plain(_) if is_html(name) => return Ok(None),
        ReadSource::Plain(body) if is_post || is_draft => {
            if let Ok(Some(below)) = split(&body, Start::BelowSpace)
                && is_unpublished(&below.front)
            {
                hidden = Some("says that it is not published, but below an empty line, where Jekyll does not see it".to_owned());
            }
            Table::new()
        }
        ReadSource::Plain(_) => {
            leave_out(name, kind, "has no front matter: Jekyll copies it as it is", job);
            return Ok(None);
        }
        ReadSource::Broken(why) => {
            leave_out(name, kind, &why, job);
            return Ok(None);
        }
    };
    apply_defaults(&mut front, name, if kind == Kind::Post { "posts" } else { collection.unwrap_or("pages") }, site);
    if text(&front, &["redirect_to"]).is_some() {
        return Ok(redirect_of(name, kind, &front, job));
    }
    let stem = parts.last().and_then(|leaf| leaf.rsplit_once('.')).map_or(name, |(stem, _)| stem);
    let (day, stem) = dated(stem);
    let date = text(&front, &["date"]).and_then(|date| instant(&date)).or_else(|| instant(&day?)).map(written);
    if is_post && date.is_none() {
        leave_out(name, kind, "its name has no date (2026-03-01-title.md), so Jekyll does not publish it", job);
        return Ok(None);
    }
    let title = text(&front, &["title"]).unwrap_or_else(|| titled(stem));
    let mut tags = list(&front, &["categories", "category"], &[' ']);
    tags.extend(
        parts[..parts.len() - 1].iter().take_while(|part| !part.starts_with('_')).filter(|_| is_post).map(|part| (*part).to_owned()),
    );
    tags.extend(list(&front, &["tags", "tag"], &[' ', ',']));
    let is_draft = is_draft || is_unpublished(&front);
    hidden = hidden.or_else(|| too_early(collection, date.as_deref(), site)).filter(|_| !is_draft);
    Ok(Some(Source {
        name: name.to_owned(),
        date,
        title,
        kind,
        tags,
        is_draft: is_draft || hidden.is_some(),
        status: if is_draft { "draft" } else { "published" },
        hidden,
        lang: text(&front, &["lang", "language"]),
        aliases: list(&front, &["redirect_from"], &[]).into_iter().filter(|alias| alias.starts_with('/')).collect(),
        front,
        ..Source::default()
    }))
}

fn is_unpublished(front: &Table) -> bool {
    flag(front, "published") == Some(false) || flag(front, "draft") == Some(true)
}

/// Tells whether the time of a collection's text has not come. A post waits in the blog, too, and a page does not in Jekyll.
fn too_early(collection: Option<&str>, date: Option<&str>, site: &Site) -> Option<String> {
    let shows_future = flag(&site.config, "future") == Some(true);
    let at = date.and_then(instant).filter(|at| collection.is_some() && *at > site.now && !shows_future)?;
    Some(format!("appears on {}, and the blog shows pages at once", written(at)))
}

/// Notes a text that only redirects.
fn redirect_of(name: &str, kind: Kind, front: &Table, job: &mut Job) -> Option<Source> {
    let to = list(front, &["redirect_to"], &[]).into_iter().next().unwrap_or_default();
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let from = text(front, &["permalink"]).unwrap_or_else(|| format!("/{}", stem.strip_suffix("index").unwrap_or(stem)));
    let to = job.addresses.path_of(&to).unwrap_or(to);
    job.redirect(&from, &to);
    leave_out(name, kind, "was only a redirect; it is in _redirects", job);
    None
}

fn apply_defaults(front: &mut Table, name: &str, kind: &str, site: &Site) {
    for rule in site.config.get("defaults").and_then(Value::as_array).into_iter().flatten() {
        let scope = rule.get("scope").and_then(Value::as_object).cloned().unwrap_or_default();
        let path = text(&scope, &["path"]).unwrap_or_default();
        let is_of_kind = text(&scope, &["type"]).is_none_or(|wanted| wanted == kind);
        let path = path.trim_end_matches('*').trim_start_matches('/');
        if is_of_kind && (path.is_empty() || name.starts_with(path)) {
            for (key, value) in rule.get("values").and_then(Value::as_object).into_iter().flatten() {
                front.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
    }
}

/// Splits a date off a name.
fn dated(stem: &str) -> (Option<String>, &str) {
    let mut parts = stem.splitn(4, '-');
    let numbers: Vec<&str> = parts.by_ref().take(3).collect();
    let is_date = numbers.len() == 3
        && numbers[0].len() == 4
        && numbers.iter().all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    match parts.next() {
        Some(rest) if is_date && !rest.is_empty() => (Some(format!("{}-{:0>2}-{:0>2}", numbers[0], numbers[1], numbers[2])), rest),
        _ => (None, stem),
    }
}

pub(crate) fn titled(stem: &str) -> String {
    let words = stem.replace(['-', '_'], " ");
    let mut chars = words.trim().chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

fn copy_files(files: &[FoundFile], base: &str, job: &mut Job) -> Result<(), ImportError> {
    let mut media = std::mem::take(&mut job.addresses.media);
    for file in files {
        let is_own = ["_config.yml", "_config.yaml", "_config.toml", "Gemfile", "Gemfile.lock", "Rakefile", "LICENSE", "README.md"]
            .contains(&file.name.as_str());
        let is_template =
            is_html(&file.name) || [".xml", ".css", ".js", ".json", ".txt", ".svg"].iter().any(|extension| file.name.ends_with(extension));
        let has_front = is_template && matches!(read(&file.path, &file.name, Start::AtOnce)?, ReadSource::Text { .. });
        let why = if is_own {
            Some("belongs to Jekyll, not to the site")
        } else if has_front {
            Some("is made by a template, which only Jekyll can fill")
        } else {
            refusal(&file.name)
        };
        match why {
            Some(why) => {
                let why = Some(why.to_owned());
                job.report.files.push(Entry { name: file.name.clone(), new: None, outcome: Outcome::LeftOut, why });
            }
            None => {
                let name = format!("{base}/{}", file.name).trim_start_matches('/').to_owned();
                media.copy(&file.path, &name, &name, &mut job.folder, &mut job.report)?;
                media.insert(&file.name, &name);
                media.insert_source(&file.name, &name);
            }
        }
    }
    job.addresses.media = media;
    Ok(())
}

fn place_all(texts: &[(Source, FoundFile)], site: &Site, job: &mut Job) -> Vec<Location> {
    let mut order: Vec<usize> = (0..texts.len()).collect();
    order.sort_by_key(|&at| (texts[at].0.is_draft, texts[at].0.kind == Kind::Post));
    let mut places = vec![Location::default(); texts.len()];
    for at in order {
        let source = &texts[at].0;
        let old = (!source.is_draft).then(|| format!("{}{}", site.base, address(source, site)));
        let day = source.date.as_deref().and_then(|date| date.get(..10)).filter(|_| source.kind == Kind::Post);
        let slug = slug_of(source);
        let wish = TextToPlace { kind: source.kind, slug: &slug, title: &source.title, old: old.as_deref(), day, ..TextToPlace::default() };
        let location = job.places.place(&wish);
        if let Some(old) = old.filter(|old| old != "/") {
            job.addresses.insert(&old, &location.address);
            if let Some(stem) = old.strip_suffix(".html") {
                job.addresses.insert(stem, &location.address);
            }
            if let Some(below) = old.strip_prefix(&site.base).filter(|_| !site.base.is_empty()) {
                job.addresses.insert(below, &location.address);
            }
        }
        for alias in &source.aliases {
            job.addresses.insert(alias, &location.address);
        }
        job.addresses.insert_source(&source.name, &location.address);
        for tag in &source.tags {
            let _ = job.tag(tag);
        }
        places[at] = location;
    }
    for (from, to) in [("/feed/", "/feed.xml"), ("/atom.xml", "/feed.xml"), ("/rss/", "/feed.xml")] {
        job.redirect(&format!("{}{from}", site.base), to);
    }
    places
}

fn stem_of(source: &Source) -> (&str, &str) {
    let (folder, leaf) = source.name.rsplit_once('/').unwrap_or(("", &source.name));
    (folder, leaf.rsplit_once('.').map_or(leaf, |(stem, _)| stem))
}

fn slug_of(source: &Source) -> String {
    let (folder, stem) = stem_of(source);
    let stem = dated(stem).1;
    let stem = if stem == "index" && !folder.is_empty() { folder.rsplit('/').next().unwrap_or(stem) } else { stem };
    text(&source.front, &["slug"]).unwrap_or_else(|| stem.to_owned())
}

/// Returns the path at which Jekyll shows a text.
fn address(source: &Source, site: &Site) -> String {
    let own = text(&source.front, &["permalink"]);
    let (folder, stem) = stem_of(source);
    if source.kind == Kind::Page {
        let folder = folder.strip_prefix('_').map_or(folder, |folder| folder);
        let is_pretty = site.permalink == "pretty" || site.permalink.ends_with('/');
        let path = if folder.is_empty() { String::new() } else { format!("/{folder}") };
        let collection = source.name.strip_prefix('_').and_then(|name| name.split('/').next());
        let pattern = own.or_else(|| collection.and_then(|name| site.collections.get(name).cloned().flatten()));
        return match pattern {
            Some(pattern) => filled(&pattern, source, folder, stem),
            None if stem == "index" => format!("{path}/"),
            None if is_pretty => format!("{path}/{stem}/"),
            None => format!("{path}/{stem}.html"),
        };
    }
    let pattern = own.unwrap_or_else(|| {
        match site.permalink.as_str() {
            "pretty" => "/:categories/:year/:month/:day/:title/",
            "date" => "/:categories/:year/:month/:day/:title.html",
            "ordinal" => "/:categories/:year/:y_day/:title.html",
            "none" => "/:categories/:title.html",
            other => other,
        }
        .to_owned()
    });
    filled(&pattern, source, folder, dated(stem).1)
}

/// Fills the names in a pattern of addresses.
fn filled(pattern: &str, source: &Source, folder: &str, stem: &str) -> String {
    let date = source.date.as_deref().unwrap_or("1970-01-01T00:00:00Z");
    let part = |from: usize, to: usize| date.get(from..to).unwrap_or_default().to_owned();
    let unpadded = |text: String| text.trim_start_matches('0').to_owned();
    let slug = text(&source.front, &["slug"]).unwrap_or_else(|| stem.to_owned());
    let mut categories = list(&source.front, &["categories", "category"], &[' ']);
    categories
        .extend(source.name.split('/').take_while(|part| !part.starts_with('_')).filter(|part| !part.contains('.')).map(str::to_owned));
    let joined = categories.iter().map(|name| name.to_lowercase().replace(' ', "%20")).collect::<Vec<_>>().join("/");
    let day_of_year = date.get(..10).and_then(|day| day.parse::<jiff::civil::Date>().ok()).map_or(0, jiff::civil::Date::day_of_year);
    let collection = source.name.strip_prefix('_').and_then(|name| name.split('/').next()).unwrap_or_default();
    let path = format!("{}/{stem}", folder.split_once('/').map_or("", |(_, below)| below));
    let values: [(&str, String); 22] = [
        (":output_ext", ".html".to_owned()),
        (":slugified_categories", categories.iter().map(|name| crate::slug::slugify(name)).collect::<Vec<_>>().join("/")),
        (":categories", joined),
        (":collection", collection.to_owned()),
        (":short_year", part(2, 4)),
        (":short_month", part(5, 7)),
        (":long_month", part(5, 7)),
        (":i_month", unpadded(part(5, 7))),
        (":i_day", unpadded(part(8, 10))),
        (":y_day", format!("{day_of_year:03}")),
        (":year", part(0, 4)),
        (":month", part(5, 7)),
        (":minute", part(14, 16)),
        (":hour", part(11, 13)),
        (":second", part(17, 19)),
        (":day", part(8, 10)),
        (":basename", stem.to_owned()),
        (":title", slug.clone()),
        (":slug", slug.to_lowercase()),
        (":name", stem.to_owned()),
        (":path", path),
        (":num", String::new()),
    ];
    let mut address = pattern.to_owned();
    for (key, value) in values {
        address = address.replace(key, &value);
    }
    while address.contains("//") {
        address = address.replace("//", "/");
    }
    if address.starts_with('/') { address } else { format!("/{address}") }
}

struct SiteNames<'a> {
    site: &'a Site,
    job: &'a Job,
    source: &'a Source,
}

impl Names for SiteNames<'_> {
    fn of_post(&self, name: &str) -> Option<String> {
        let leaf = name.trim_matches(['"', '\'']).trim_start_matches('/');
        ["md", "markdown", "html"].iter().find_map(|extension| {
            let (folder, stem) = leaf.rsplit_once('/').unwrap_or(("", leaf));
            let places = [format!("_posts/{leaf}.{extension}"), format!("{folder}/_posts/{stem}.{extension}")];
            places.iter().find_map(|place| self.job.addresses.find_source(place)).map(str::to_owned)
        })
    }

    fn of_path(&self, path: &str) -> Option<String> {
        let path = path.trim_matches(['"', '\'']).trim_start_matches('/');
        let text = self.job.addresses.find_source(path).map(str::to_owned);
        text.or_else(|| self.job.addresses.media.find_source(path).map(|name| format!("/{name}")))
    }

    fn value(&self, name: &str) -> Option<String> {
        match name {
            "site.baseurl" => Some(self.site.base.clone()),
            "site.url" => Some(self.job.addresses.origin().unwrap_or_default().to_owned()),
            "page.title" => Some(self.source.title.clone()),
            _ => {
                let (table, key) = match name.split_once('.')? {
                    ("site", key) => (&self.site.config, key),
                    ("page", key) => (&self.source.front, key),
                    _ => return None,
                };
                text(table, &[key])
            }
        }
    }
}

/// Writes a text. Returns how many attributes of kramdown it had.
fn write_text(source: &Source, file: &FoundFile, location: &Location, site: &Site, job: &mut Job) -> Result<usize, ImportError> {
    let (body, line) = match read(&file.path, &source.name, Start::AtOnce)? {
        ReadSource::Text { body, line, .. } => (body, line),
        ReadSource::Plain(body) => (body, 1),
        ReadSource::Broken(_) => return Ok(0),
    };
    let html = is_html(&source.name);
    let names = SiteNames { site, job, source };
    let Liquid { text: body, notes, is_template } = liquid::replace(&body, &source.name, line, &names);
    if html && is_template {
        leave_out(&source.name, source.kind, "is made of a template, which only Jekyll can fill", job);
        return Ok(0);
    }
    let Plain { text: body, attributes } = if html { Plain { text: body, attributes: 0 } } else { kramdown::without_marks(&body) };
    let folder = source.name.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut links = Links::new(&job.addresses, location.folder(), location.old.as_deref());
    links.source = Some(folder);
    // The reason comes before the other notes.
    source.hidden.iter().cloned().chain(notes).for_each(|note| links.note(note));
    let (mut front, body, entry) = converted(source, location, &body, html, &links);
    // kramdown has formulas between two dollars alone.
    if front.math.is_none() && body.contains('$') {
        front.math = Some(body.contains("$$"));
    }
    note_authors(&source.front, job);
    job.write(location, front, &body, entry)?;
    Ok(attributes)
}
