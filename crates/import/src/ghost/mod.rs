//! Ghost's export: one JSON file with the tables of its database.

mod lexical;
mod mobiledoc;
mod tables;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};

use crate::{
    Options,
    error::ImportError,
    html::{Targets as _, markdown, shortened},
    job::{Author, Job},
    links::Links,
    location::{Location, TextToPlace},
    report::{Entry, Outcome, TextEntry},
    slug::tag_slug,
    text::{Front, Kind},
};

type Row = Map<String, Value>;

/// The export, before its texts are read.
#[derive(Debug, Default)]
struct Index {
    version: Option<String>,
    posts: Vec<Post>,
    tags: HashMap<String, Tag>,
    users: HashMap<String, (String, Author)>,
    /// Identities of tags and authors by that of the post, with their order.
    tags_of: HashMap<String, Vec<(i64, String)>>,
    authors_of: HashMap<String, Vec<(i64, String)>>,
    meta: HashMap<String, Row>,
    settings: HashMap<String, String>,
    comments: HashMap<String, usize>,
    has_comments: bool,
    others: BTreeMap<String, usize>,
}

#[derive(Debug, Clone)]
struct Post {
    id: String,
    slug: String,
    title: String,
    kind: Kind,
    status: String,
    visibility: String,
    published: Option<String>,
}

#[derive(Debug)]
struct Tag {
    name: String,
    slug: String,
    is_internal: bool,
}

/// Finds the export in a folder, such as an unpacked backup.
pub(crate) fn export_in(folder: &Path) -> Result<Option<PathBuf>, ImportError> {
    for folder in [folder.to_owned(), folder.join("data"), folder.join("content/data")] {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        let mut names: Vec<PathBuf> = entries.map_while(Result::ok).map(|entry| entry.path()).collect();
        names.sort();
        let is_export = |path: &PathBuf| {
            let is_json = path.extension().is_some_and(|extension| extension == "json");
            is_json && path.is_file() && looks_like_export(path)
        };
        if let Some(found) = names.into_iter().find(is_export) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn looks_like_export(path: &Path) -> bool {
    use std::io::Read as _;
    let mut head = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(4096).read_to_end(&mut head));
    let text = String::from_utf8_lossy(&head);
    read.is_ok() && (text.contains("\"db\"") || text.contains("\"exported_on\"") || text.contains("\"posts\""))
}

pub(crate) fn import(exports: &[PathBuf], options: &Options, job: &mut Job) -> Result<(), ImportError> {
    job.report.engine = "Ghost".to_owned();
    let [given] = exports else {
        return Err(ImportError::Folder { message: "a Ghost has one export: give one JSON file, or one folder".to_owned() });
    };
    let export = if given.is_dir() {
        let found = export_in(given)?;
        found.ok_or_else(|| ImportError::of_file(given, "has no export in it; write one in Ghost: Settings > Import/Export > Export"))?
    } else {
        given.clone()
    };
    let index = read_index(&export)?;
    job.report.version.clone_from(&index.version);

    let content = match &options.content {
        Some(folder) => Some(content_in(folder).ok_or_else(|| {
            ImportError::of_file(folder, "has no folder `images`; give Ghost's folder `content`, or the folder that has it")
        })?),
        None if given.is_dir() => content_in(given),
        None => export.parent().map(|parent| parent.join("content")).filter(|folder| folder.join("images").is_dir()),
    };
    if let Some(content) = content {
        copy_content(&content, job)?;
    }
    write_settings(&index, job);
    let places = place_all(&index, job);
    write_texts(&export, &index, &places, options, job)?;
    account(&index, job);
    Ok(())
}

/// Finds Ghost's folder `content`.
fn content_in(folder: &Path) -> Option<PathBuf> {
    [folder.to_owned(), folder.join("content")].into_iter().find(|folder| folder.join("images").is_dir())
}

fn copy_content(content: &Path, job: &mut Job) -> Result<(), ImportError> {
    let mut media = std::mem::take(&mut job.addresses.media);
    for kind in ["images", "media", "files"] {
        let folder = content.join(kind);
        if folder.is_dir() {
            media.copy_all(&folder, &format!("content/{kind}/"), refused, &mut job.folder, &mut job.report)?;
        }
    }
    job.addresses.media = media;
    Ok(())
}

fn refused(name: &str, names: &HashSet<&str>) -> Option<&'static str> {
    if name.starts_with("size/") {
        return Some("a reduced copy that Ghost made");
    }
    let (stem, extension) = name.rsplit_once('.')?;
    let is_original = stem.strip_suffix("_o").is_some_and(|stem| names.contains(format!("{stem}.{extension}").as_str()));
    is_original.then_some("the upload of which Ghost made the picture that it shows")
}

fn read_index(export: &Path) -> Result<Index, ImportError> {
    let mut index = Index::default();
    let meta = tables::read(export, &mut |table, row| {
        index.add(table, row);
        Ok(())
    })?;
    index.version = meta.as_ref().and_then(|meta| meta.get("version")).and_then(Value::as_str).map(str::to_owned);
    if index.posts.is_empty() && index.settings.is_empty() {
        return Err(ImportError::of_file(
            export,
            "has no posts and no settings; is it Ghost's export (Settings > Import/Export > Export)?",
        ));
    }
    Ok(index)
}

impl Index {
    fn add(&mut self, table: &str, row: Row) {
        match table {
            "posts" => self.posts.push(Post::new(&row)),
            "tags" => {
                let name = text(&row, "name");
                let is_internal = name.starts_with('#') || text(&row, "visibility") == "internal";
                self.tags.insert(text(&row, "id"), Tag { slug: text(&row, "slug"), name, is_internal });
            }
            "users" => {
                let author = Author {
                    name: text(&row, "name"),
                    bio: some(&row, "bio"),
                    url: some(&row, "website"),
                    picture: some(&row, "profile_image").or_else(|| some(&row, "image")),
                };
                self.users.insert(text(&row, "id"), (text(&row, "slug"), author));
            }
            "posts_tags" => self.tags_of.entry(text(&row, "post_id")).or_default().push((order(&row), text(&row, "tag_id"))),
            "posts_authors" => self.authors_of.entry(text(&row, "post_id")).or_default().push((order(&row), text(&row, "author_id"))),
            "posts_meta" => {
                self.meta.insert(text(&row, "post_id"), row);
            }
            "settings" => {
                self.settings.insert(text(&row, "key"), text(&row, "value"));
            }
            "comments" => {
                self.has_comments = true;
                *self.comments.entry(text(&row, "post_id")).or_default() += 1;
            }
            _ => *self.others.entry(table.to_owned()).or_default() += 1,
        }
    }

    fn setting(&self, key: &str) -> Option<String> {
        self.settings.get(key).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty() && value != "null")
    }

    /// Returns what belongs to a post, in its order.
    fn sorted<'i>(of: &'i HashMap<String, Vec<(i64, String)>>, post: &str) -> Vec<&'i str> {
        let mut all: Vec<&(i64, String)> = of.get(post).into_iter().flatten().collect();
        all.sort_by_key(|(order, _)| *order);
        all.into_iter().map(|(_, id)| id.as_str()).collect()
    }

    fn authors(&self, post: &Row) -> Vec<&(String, Author)> {
        let ids = Self::sorted(&self.authors_of, &text(post, "id"));
        let single = [some(post, "author_id").or_else(|| some(post, "author"))];
        let ids: Vec<String> =
            if ids.is_empty() { single.into_iter().flatten().collect() } else { ids.into_iter().map(str::to_owned).collect() };
        ids.iter().filter_map(|id| self.users.get(id)).collect()
    }
}

impl Post {
    fn new(row: &Row) -> Self {
        let is_page = row.get("page").is_some_and(|page| *page == Value::Bool(true) || page.as_i64() == Some(1));
        let published = date(row, "published_at").or_else(|| date(row, "created_at"));
        Self {
            id: text(row, "id"),
            slug: text(row, "slug"),
            title: text(row, "title"),
            kind: if is_page || text(row, "type") == "page" { Kind::Page } else { Kind::Post },
            status: text(row, "status"),
            visibility: some(row, "visibility").unwrap_or_else(|| "public".to_owned()),
            published,
        }
    }

    fn is_public(&self) -> bool {
        matches!(self.status.as_str(), "published" | "scheduled")
    }
}

/// Returns a value as text: also a number, as older exports have identities.
fn text(row: &Row, key: &str) -> String {
    match row.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::Bool(value)) => value.to_string(),
        Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => String::new(),
    }
}

fn some(row: &Row, key: &str) -> Option<String> {
    Some(text(row, key)).filter(|text| !text.trim().is_empty())
}

fn order(row: &Row) -> i64 {
    row.get("sort_order").and_then(Value::as_i64).unwrap_or_default()
}

/// Reads a date: a text with or without a zone, or milliseconds as old exports have them.
fn date(row: &Row, key: &str) -> Option<String> {
    let instant = match row.get(key)? {
        Value::Number(number) => jiff::Timestamp::from_millisecond(number.as_i64()?).ok()?,
        Value::String(text) => crate::front_matter::instant(text)?,
        _ => return None,
    };
    Some(crate::front_matter::written(instant))
}

fn write_settings(index: &Index, job: &mut Job) {
    job.settings.title = index.setting("title");
    job.settings.description = index.setting("description");
    job.settings.language = index.setting("locale").or_else(|| index.setting("lang")).or_else(|| index.setting("default_locale"));
    let used: HashSet<&str> = index.posts.iter().flat_map(|post| Index::sorted(&index.authors_of, &post.id)).collect();
    let has_authors = !index.authors_of.is_empty();
    let mut users: Vec<(&String, &(String, Author))> = index.users.iter().collect();
    users.sort_by_key(|(_, (slug, _))| slug.clone());
    for (id, (slug, author)) in users {
        let is_used = !has_authors || used.contains(id.as_str());
        let new = format!("/authors/{}/", crate::slug::slugify(slug));
        let why = (!is_used).then(|| "wrote nothing".to_owned());
        let outcome = if is_used { Outcome::Written } else { Outcome::LeftOut };
        job.report.authors.push(Entry { name: author.name.clone(), new: is_used.then(|| new.clone()), outcome, why });
        if is_used {
            job.addresses.insert(&format!("/author/{slug}/"), &new);
            let links = Links::new(&job.addresses, "", None);
            let picture = author.picture.as_deref().map(|picture| links.address(picture));
            job.settings.authors.insert(slug.clone(), Author { picture, ..author.clone() });
        }
    }
    let mut tags: Vec<&Tag> = index.tags.values().collect();
    tags.sort_by(|a, b| a.slug.cmp(&b.slug));
    for tag in tags {
        if tag.is_internal {
            let why = Some("an internal tag, which no reader sees".to_owned());
            job.report.tags.push(Entry { name: tag.name.clone(), new: None, outcome: Outcome::LeftOut, why });
            continue;
        }
        let Some(new) = job.tag(&tag.name) else { continue };
        if tag_slug(&tag.name) == tag.slug {
            job.addresses.insert(&format!("/tag/{}/", tag.slug), &new);
        } else {
            job.redirect(&format!("/tag/{}/", tag.slug), &new);
        }
    }
    for (from, to) in
        [("/rss/", "/feed.xml"), ("/feed/", "/feed.xml"), ("/sitemap-posts.xml", "/sitemap.xml"), ("/sitemap-pages.xml", "/sitemap.xml")]
    {
        job.redirect(from, to);
    }
    for (from, to) in [
        ("/tag/:tag/rss/", "/tags/:tag/feed.xml"),
        ("/tag/:tag/*", "/tags/:tag/"),
        ("/author/:author/rss/", "/feed.xml"),
        // One author alone has no page: it would be the front page again.
        ("/author/:author/*", if job.settings.authors.len() > 1 { "/authors/:author/" } else { "/" }),
        ("/content/images/size/:size/format/:format/*", "/content/images/:splat"),
        ("/content/images/size/:size/*", "/content/images/:splat"),
        ("/:slug/amp/", "/:slug/"),
    ] {
        job.redirect_pattern(from, to);
    }
}

fn write_navigation(index: &Index, job: &mut Job) {
    for key in ["navigation", "secondary_navigation"] {
        let Some(Ok(Value::Array(items))) = index.setting(key).map(|value| serde_json::from_str(&value)) else { continue };
        for item in items.iter().filter_map(Value::as_object) {
            let (label, url) = (text(item, "label"), text(item, "url"));
            if label.trim().is_empty() || url.trim().is_empty() {
                continue;
            }
            if url.contains("#/portal") {
                job.report.notes.push(format!("the navigation had {label:?}, which opened Ghost's form for members; it is left out"));
                continue;
            }
            let url = Links::new(&job.addresses, "", None).link(&url);
            if key == "navigation" || job.settings.navigation.len() < 12 {
                job.settings.navigation.push((label, url));
            }
        }
    }
}

fn place_all(index: &Index, job: &mut Job) -> HashMap<String, Location> {
    let mut places = HashMap::new();
    // Who is read already keeps the address; drafts come after.
    let mut order: Vec<&Post> = index.posts.iter().collect();
    order.sort_by_key(|post| !post.is_public());
    for post in order {
        let old = post.is_public().then(|| format!("/{}/", post.slug));
        let day = post.published.as_deref().and_then(|date| date.get(..10));
        let wish =
            TextToPlace { kind: post.kind, slug: &post.slug, title: &post.title, old: old.as_deref(), day, ..TextToPlace::default() };
        let location = job.places.place(&wish);
        job.addresses.insert(&format!("/{}/", post.slug), &location.address);
        places.insert(post.id.clone(), location);
    }
    write_navigation(index, job);
    places
}

fn write_texts(
    export: &Path,
    index: &Index,
    places: &HashMap<String, Location>,
    options: &Options,
    job: &mut Job,
) -> Result<(), ImportError> {
    let mut write = |table: &str, row: Row| match table {
        "posts" => places.get(&text(&row, "id")).map_or(Ok(()), |location| write_text(&row, index, location, options, job)),
        "comments" => job.keep_comment(&row),
        _ => Ok(()),
    };
    tables::read(export, &mut write).map(|_| ())
}

fn write_text(row: &Row, index: &Index, location: &Location, options: &Options, job: &mut Job) -> Result<(), ImportError> {
    let post = Post::new(row);
    let links = Links::new(&job.addresses, location.folder(), location.old.as_deref());
    let mut notes = Vec::new();
    let meta = index.meta.get(&post.id);
    let is_only_mail = meta.is_some_and(|meta| matches!(text(meta, "email_only").as_str(), "1" | "true")) || post.status == "sent";
    let is_gated = post.visibility != "public";
    let is_draft = if !post.is_public() && post.status != "sent" {
        true
    } else if post.status == "scheduled" && post.kind == Kind::Page {
        notes.push("waits for its time, and the blog shows pages at once".to_owned());
        true
    } else if is_only_mail {
        notes.push("was sent by mail alone, and never on the site".to_owned());
        true
    } else if is_gated && !options.include_paid {
        let who = if post.visibility == "members" { "members" } else { "paying members" };
        notes.push(format!("was for {who} only; --include-paid publishes such texts for everybody"));
        true
    } else {
        if is_gated {
            notes.push("was for members only, and is for everybody now, as --include-paid asks".to_owned());
        }
        false
    };
    let html = some(row, "html").or_else(|| of_editor(row, &links));
    let body = markdown(&html.unwrap_or_default(), &links);
    let feature = some(row, "feature_image").or_else(|| some(row, "image"));
    for (key, what) in [("codeinjection_head", "its head"), ("codeinjection_foot", "its foot")] {
        if some(row, key).is_some() {
            notes.push(format!("had code injected into {what}, which is left out"));
        }
    }
    if let Some(url) = some(row, "canonical_url") {
        notes.push(format!("named {} as its original (canonical_url), which is left out", shortened(&url)));
    }
    let of_meta = |key: &str| meta.and_then(|meta| some(meta, key)).or_else(|| some(row, key));
    if let Some(caption) = of_meta("feature_image_caption") {
        notes.push(format!("the caption of its cover is left out: {}", shortened(&caption)));
    }
    let tags = Index::sorted(&index.tags_of, &post.id);
    let tags: Vec<String> =
        tags.iter().filter_map(|id| index.tags.get(*id)).filter(|tag| !tag.is_internal).map(|tag| tag.name.clone()).collect();
    let published = post.published.clone();
    let updated = date(row, "updated_at").filter(|updated| published.as_ref().is_some_and(|published| updated > published) && !is_draft);
    let front = Front {
        title: post.title.clone(),
        date: published,
        updated,
        draft: is_draft,
        tags,
        authors: index.authors(row).into_iter().map(|(slug, _)| slug.clone()).collect(),
        summary: some(row, "custom_excerpt").or_else(|| of_meta("meta_description")),
        cover_alt: of_meta("feature_image_alt").filter(|_| feature.is_some()),
        cover: feature.map(|url| links.picture(&url)),
        lang: some(row, "locale"),
        // HTML has no formulas between dollars, but prices.
        math: body.contains('$').then_some(false),
        ..Front::default()
    };
    notes.extend(links.notes.take());
    let entry = TextEntry {
        kind: post.kind.name(),
        id: post.id.clone(),
        title: post.title,
        status: if is_gated { format!("{}, {}", post.status, post.visibility) } else { post.status },
        outcome: Outcome::Written,
        old: None,
        new: None,
        file: None,
        comments: index.comments.get(&post.id).copied().unwrap_or_default(),
        notes,
    };
    job.write(location, front, &body, entry)
}

/// Makes HTML of what an editor keeps, where Ghost has made none.
fn of_editor(row: &Row, links: &Links<'_>) -> Option<String> {
    if let Some(Ok(value)) = some(row, "lexical").map(|text| serde_json::from_str::<Value>(&text)) {
        return Some(lexical::html(&value, links));
    }
    if let Some(Ok(value)) = some(row, "mobiledoc").map(|text| serde_json::from_str::<Value>(&text)) {
        return Some(mobiledoc::html(&value, links));
    }
    if some(row, "lexical").is_some() || some(row, "mobiledoc").is_some() {
        links.note("its text cannot be read: it is not JSON".to_owned());
    }
    None
}

fn account(index: &Index, job: &mut Job) {
    const REASONS: [(&str, &str); 12] = [
        ("roles", "who may do what in Ghost"),
        ("roles_users", "who may do what in Ghost"),
        ("custom_theme_settings", "settings of Ghost's theme"),
        ("products", "tiers: the blog has no members"),
        ("posts_products", "tiers: the blog has no members"),
        ("newsletters", "the blog sends no mail"),
        ("benefits", "tiers: the blog has no members"),
        ("products_benefits", "tiers: the blog has no members"),
        ("members", "the blog has no members; export them in Ghost: Members > Export"),
        ("snippets", "pieces of text for Ghost's editor"),
        ("post_revisions", "earlier versions"),
        ("mobiledoc_revisions", "earlier versions"),
    ];
    for (table, count) in &index.others {
        let reason = REASONS.iter().find(|(known, _)| known == table).map_or("the blog has nothing of that kind", |(_, reason)| reason);
        job.report.left_out(format!("rows of {table}"), *count, reason);
    }
    let used = ["title", "description", "locale", "lang", "default_locale", "navigation", "secondary_navigation"];
    let unused = index.settings.keys().filter(|key| !used.contains(&key.as_str())).count();
    job.report.left_out("settings", unused, "they are for Ghost; title, description, language and navigation are in blog.toml");
    for (key, what) in [("codeinjection_head", "head"), ("codeinjection_foot", "foot")] {
        if index.setting(key).is_some() {
            job.report.notes.push(format!("Ghost injected code into the {what} of every page; it is left out"));
        }
    }
    if !index.has_comments {
        let note =
            "Ghost's export has no comments. `/ghost/api/admin/db/?include=comments` exports them, too; they are then kept beside the blog";
        job.report.notes.push(note.to_owned());
    }
}
