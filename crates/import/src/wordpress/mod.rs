//! WordPress's export: one or more files of WXR (Tools > Export > All content).

mod content;
mod shortcodes;
mod wxr;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fs,
    path::{Path, PathBuf},
};

use serde::Serialize;

use self::{
    shortcodes::Attachments,
    wxr::{Fields, Item, Part},
};
use crate::{
    Options,
    error::ImportError,
    front_matter::{instant, written},
    html::{Targets as _, markdown},
    job::{Author, Job},
    limit::PIECE_BYTES_MAX,
    links::Links,
    location::{Location, TextToPlace},
    media::without_wordpress_size,
    report::{Entry, Outcome, TextEntry},
    slug::{decoded, tag_slug},
    text::{Front, Kind},
};

/// The largest number of items in an export.
const ITEMS_MAX: usize = 1_000_000;

/// The types of what WordPress keeps beside texts, and why it is not in the blog.
const INTERNAL: [(&str, &str); 20] = [
    ("revision", "earlier versions"),
    ("nav_menu_item", "lines of menus; those of the first menu are in blog.toml"),
    ("custom_css", "the blog has a look of its own"),
    ("customize_changeset", "changes to WordPress's theme"),
    ("oembed_cache", "what WordPress had fetched of other sites"),
    ("user_request", "requests for personal data"),
    ("wp_block", "blocks that several texts share; they are in those texts"),
    ("wp_template", "parts of WordPress's theme"),
    ("wp_template_part", "parts of WordPress's theme"),
    ("wp_global_styles", "parts of WordPress's theme"),
    ("wp_navigation", "menus of WordPress's theme"),
    ("wp_font_family", "fonts of WordPress's theme"),
    ("wp_font_face", "fonts of WordPress's theme"),
    ("acf-field", "definitions of a plugin"),
    ("acf-field-group", "definitions of a plugin"),
    ("wpcf7_contact_form", "forms of a plugin: the blog receives nothing"),
    ("feedback", "messages that a form has received"),
    ("shop_order", "orders"),
    ("shop_coupon", "coupons"),
    ("scheduled-action", "tasks of a plugin"),
];

/// An item, before texts are read.
#[derive(Debug, Clone, Default)]
struct UnreadItem {
    id: String,
    kind: String,
    status: String,
    title: String,
    link: String,
    slug: String,
    parent: String,
    day: Option<String>,
    /// The address of an attachment's file; the words for people who do not see it follow.
    url: String,
    alt: String,
    caption: String,
    has_password: bool,
}

#[derive(Debug, Default)]
struct Index {
    channel: HashMap<String, String>,
    items: Vec<UnreadItem>,
    by_id: HashMap<String, usize>,
    authors: BTreeMap<String, String>,
    /// Taxonomy, slug, name, and the slug of the parent.
    terms: Vec<(String, String, String, String)>,
    reusable: HashMap<String, String>,
    reusable_bytes: usize,
    menus: Vec<MenuItem>,
    used_authors: BTreeSet<String>,
    months: BTreeSet<(String, String)>,
    /// The path of the old site, without a slash at its end.
    base: String,
}

#[derive(Debug)]
struct MenuItem {
    menu: String,
    order: i64,
    title: String,
    kind: String,
    object: String,
    object_id: String,
    url: String,
    parent: String,
}

/// Finds the exports in a folder.
pub(crate) fn exports_in(folder: &Path) -> Result<Vec<PathBuf>, ImportError> {
    use std::io::Read as _;
    let entries = fs::read_dir(folder).map_err(ImportError::read(folder))?;
    let mut found = Vec::new();
    for path in entries.map_while(Result::ok).map(|entry| entry.path()) {
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("xml")) && path.is_file() {
            let mut head = Vec::new();
            fs::File::open(&path).and_then(|file| file.take(64 * 1024).read_to_end(&mut head)).map_err(ImportError::read(&path))?;
            if String::from_utf8_lossy(&head).contains("wordpress.org/export") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

pub(crate) fn import(exports: &[PathBuf], options: &Options, job: &mut Job) -> Result<(), ImportError> {
    job.report.engine = "WordPress".to_owned();
    let mut files = Vec::new();
    for export in exports {
        if export.is_dir() { files.extend(exports_in(export)?) } else { files.push(export.clone()) }
    }
    let mut index = Index::default();
    for file in &files {
        wxr::read(file, &mut |part| index.add(part, file))?;
    }
    if index.items.is_empty() && index.channel.is_empty() {
        let place = exports.first().map(|path| path.display().to_string()).unwrap_or_default();
        let message = "has no items; export in WordPress: Tools > Export > All content".to_owned();
        return Err(ImportError::Source { place, message });
    }
    job.report.version = index.channel.get("generator").and_then(|url| url.split("v=").nth(1)).map(str::to_owned);
    for key in ["wp:base_site_url", "link", "wp:base_blog_url"] {
        if let Some(url) = index.channel.get(key) {
            index.base = job.addresses.add_site(url.trim());
        }
    }
    copy_uploads(exports, &index, options, job)?;
    write_settings(&index, job);
    let places = place_all(&index, job);
    write_menu(&index, job);
    for file in &files {
        wxr::read(file, &mut |part| match part {
            Part::Item(item) => write_item(&item, &index, &places, job),
            Part::Channel(..) | Part::Term(..) => Ok(()),
        })?;
    }
    account(&index, job);
    Ok(())
}

impl Index {
    fn add(&mut self, part: Part, file: &Path) -> Result<(), ImportError> {
        match part {
            Part::Channel(key, text) => {
                self.channel.entry(key).or_insert(text);
            }
            Part::Term(kind, fields) => self.add_term(&kind, &fields),
            Part::Item(item) => {
                if self.items.len() == ITEMS_MAX {
                    return Err(ImportError::of_file(file, format!("has more than {ITEMS_MAX} items; export and import it in parts")));
                }
                self.add_item(&item);
            }
        }
        Ok(())
    }

    fn add_term(&mut self, kind: &str, fields: &Fields) {
        let of = |keys: &[&str]| keys.iter().find_map(|key| fields.get(*key)).cloned().unwrap_or_default();
        match kind {
            "wp:author" => {
                let login = of(&["wp:author_login"]);
                let name = Some(of(&["wp:author_display_name"])).filter(|name| !name.trim().is_empty()).unwrap_or_else(|| login.clone());
                self.authors.insert(login, name);
            }
            "wp:category" => {
                let parent = of(&["wp:category_parent"]);
                self.terms.push(("category".to_owned(), of(&["wp:category_nicename"]), of(&["wp:cat_name"]), parent));
            }
            "wp:tag" => self.terms.push(("post_tag".to_owned(), of(&["wp:tag_slug"]), of(&["wp:tag_name"]), String::new())),
            _ => self.terms.push((of(&["wp:term_taxonomy"]), of(&["wp:term_slug"]), of(&["wp:term_name"]), of(&["wp:term_parent"]))),
        }
    }

    fn add_item(&mut self, item: &Item) {
        let known = UnreadItem {
            id: item.get("wp:post_id").trim().to_owned(),
            kind: item.get("wp:post_type").trim().to_owned(),
            status: item.get("wp:status").trim().to_owned(),
            title: item.get("title").to_owned(),
            link: item.get("link").trim().to_owned(),
            slug: item.get("wp:post_name").trim().to_owned(),
            parent: item.get("wp:post_parent").trim().to_owned(),
            day: date_of(item).and_then(|date| date.get(..10).map(str::to_owned)),
            url: item.get("wp:attachment_url").trim().to_owned(),
            alt: item.meta("_wp_attachment_image_alt").unwrap_or_default().to_owned(),
            caption: if item.get("wp:post_type") == "attachment" { item.get("excerpt:encoded").to_owned() } else { String::new() },
            has_password: !item.get("wp:post_password").is_empty(),
        };
        match known.kind.as_str() {
            "wp_block" => {
                let content = item.get("content:encoded");
                self.reusable_bytes += content.len();
                if self.reusable_bytes <= PIECE_BYTES_MAX {
                    self.reusable.insert(known.id.clone(), content.to_owned());
                }
            }
            "nav_menu_item" => self.menus.push(MenuItem {
                menu: item.terms.iter().find(|(domain, _, _)| domain == "nav_menu").map(|(_, slug, _)| slug.clone()).unwrap_or_default(),
                order: item.get("wp:menu_order").trim().parse().unwrap_or_default(),
                title: known.title.clone(),
                kind: item.meta("_menu_item_type").unwrap_or_default().to_owned(),
                object: item.meta("_menu_item_object").unwrap_or_default().to_owned(),
                object_id: item.meta("_menu_item_object_id").unwrap_or_default().to_owned(),
                url: item.meta("_menu_item_url").unwrap_or_default().to_owned(),
                parent: item.meta("_menu_item_menu_item_parent").unwrap_or_default().to_owned(),
            }),
            _ => {}
        }
        if known.is_text() {
            self.used_authors.insert(item.get("dc:creator").to_owned());
            if known.kind == "post"
                && known.is_public()
                && let Some(day) = &known.day
            {
                self.months.insert((day[..4].to_owned(), day[5..7].to_owned()));
            }
        }
        self.by_id.insert(known.id.clone(), self.items.len());
        self.items.push(known);
    }

    fn get(&self, id: &str) -> Option<&UnreadItem> {
        self.by_id.get(id).map(|&at| &self.items[at])
    }
}

impl UnreadItem {
    fn is_text(&self) -> bool {
        self.kind != "attachment" && !INTERNAL.iter().any(|(kind, _)| *kind == self.kind) && !self.kind.is_empty()
    }

    fn text_kind(&self) -> Kind {
        if self.kind == "post" { Kind::Post } else { Kind::Page }
    }

    /// Tells whether readers see it, now or when its time comes.
    fn is_public(&self) -> bool {
        matches!(self.status.as_str(), "publish" | "future") && !self.has_password
    }

    fn is_left_out(&self) -> bool {
        matches!(self.status.as_str(), "trash" | "auto-draft" | "inherit")
    }
}

fn date_of(item: &Item) -> Option<String> {
    let found =
        ["wp:post_date_gmt", "pubDate", "wp:post_date"].iter().find_map(|key| instant(item.get(key)).filter(|date| date.as_second() > 0));
    found.map(written)
}

fn copy_uploads(exports: &[PathBuf], index: &Index, options: &Options, job: &mut Job) -> Result<(), ImportError> {
    let uploads = match &options.content {
        Some(folder) => {
            let candidates = [folder.join("wp-content/uploads"), folder.join("uploads"), folder.clone()];
            let found = candidates.into_iter().find(|folder| folder.is_dir());
            Some(found.ok_or_else(|| ImportError::of_file(folder, "is not a folder; give wp-content/uploads, or the folder that has it"))?)
        }
        None => exports
            .iter()
            .filter_map(|export| if export.is_dir() { Some(export.as_path()) } else { export.parent() })
            .map(|folder| folder.join("wp-content/uploads"))
            .find(|folder| folder.is_dir()),
    };
    let Some(uploads) = uploads else { return Ok(()) };
    // Where the attachments were: not every site has its uploads in the usual folder.
    let paths = index.items.iter().filter(|item| item.kind == "attachment").filter_map(|item| job.addresses.path_of(&item.url));
    let prefix = paths.filter_map(|path| path.find("/uploads/").map(|at| path[1..at + "/uploads/".len()].to_owned())).next();
    let prefix = prefix.unwrap_or_else(|| {
        format!("{}wp-content/uploads/", index.base.trim_start_matches('/').to_owned() + if index.base.is_empty() { "" } else { "/" })
    });
    let mut media = std::mem::take(&mut job.addresses.media);
    let copied = media.copy_all(&uploads, &prefix, refused, &mut job.folder, &mut job.report);
    job.addresses.media = media;
    copied
}

fn refused(name: &str, names: &HashSet<&str>) -> Option<&'static str> {
    let (stem, extension) = name.rsplit_once('.')?;
    let whole = without_wordpress_size(stem);
    let has = |stem: &str| names.contains(format!("{stem}.{extension}").as_str());
    if whole.is_some_and(|whole| has(whole) || has(&format!("{whole}-scaled"))) {
        return Some("a reduced copy that WordPress made");
    }
    has(&format!("{stem}-scaled")).then_some("the upload of which WordPress made the picture that it shows")
}

fn write_settings(index: &Index, job: &mut Job) {
    let of = |key: &str| index.channel.get(key).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    (job.settings.title, job.settings.description, job.settings.language) = (of("title"), of("description"), of("language"));
    let base = &index.base;
    for (login, name) in &index.authors {
        let is_used = index.used_authors.contains(login);
        let key = author_key(login);
        let new = format!("/authors/{key}/");
        let why = (!is_used).then(|| "wrote nothing that is in the export".to_owned());
        let outcome = if is_used { Outcome::Written } else { Outcome::LeftOut };
        job.report.authors.push(Entry { name: name.clone(), new: is_used.then(|| new.clone()), outcome, why });
        if is_used {
            job.addresses.insert(&format!("{base}/author/{key}/"), &new);
            // The name in addresses is not in the export; it is the login or the name as a rule.
            let of_name = crate::slug::slugify(&crate::slug::without_accents(name));
            if of_name != key && !of_name.is_empty() && index.used_authors.len() > 1 {
                job.redirect(&format!("{base}/author/{of_name}/"), &new);
            }
            job.settings.authors.insert(key, Author { name: name.clone(), ..Author::default() });
        }
    }
    let parents: HashMap<&str, &str> =
        index.terms.iter().filter(|(kind, ..)| kind == "category").map(|(_, slug, _, parent)| (slug.as_str(), parent.as_str())).collect();
    for (kind, slug, name, _) in &index.terms {
        let folder = match kind.as_str() {
            "category" => "category",
            "post_tag" => "tag",
            _ => continue,
        };
        let Some(new) = job.tag(name) else { continue };
        let mut path = slug.clone();
        let mut above = parents.get(slug.as_str()).copied().unwrap_or_default();
        for _ in 0..8 {
            if kind != "category" || above.is_empty() {
                break;
            }
            path = format!("{above}/{path}");
            above = parents.get(above).copied().unwrap_or_default();
        }
        let old = decoded(&format!("{base}/{folder}/{path}/"));
        if path == *slug && tag_slug(name) == decoded(slug) { job.addresses.insert(&old, &new) } else { job.redirect(&old, &new) }
    }
    for (year, month) in &index.months {
        job.redirect(&format!("{base}/{year}/"), &format!("/archive/{year}/"));
        job.redirect(&format!("{base}/{year}/{month}/"), &format!("/archive/{year}/"));
    }
    for (from, to) in [
        ("/feed/", "/feed.xml"),
        ("/feed/atom/", "/feed.xml"),
        ("/feed/rss2/", "/rss.xml"),
        ("/comments/feed/", "/feed.xml"),
        ("/wp-sitemap.xml", "/sitemap.xml"),
        ("/sitemap_index.xml", "/sitemap.xml"),
    ] {
        job.redirect(&format!("{base}{from}"), to);
    }
    for (from, to) in [
        ("/category/:tag/feed/", "/tags/:tag/feed.xml"),
        ("/tag/:tag/feed/", "/tags/:tag/feed.xml"),
        ("/category/:tag/*", "/tags/:tag/"),
        ("/tag/:tag/*", "/tags/:tag/"),
        // One author alone has no page: it would be the front page again.
        ("/author/:author/*", if job.settings.authors.len() > 1 { "/authors/:author/" } else { "/" }),
    ] {
        job.redirect_pattern(&format!("{base}{from}"), to);
    }
}

fn author_key(login: &str) -> String {
    let key = crate::slug::slugify(login);
    if key.is_empty() { "author".to_owned() } else { key }
}

fn place_all(index: &Index, job: &mut Job) -> HashMap<String, Location> {
    let mut places = HashMap::new();
    let form = permalinks(index, job);
    let mut order: Vec<&UnreadItem> = index.items.iter().filter(|item| item.is_text() && !item.is_left_out()).collect();
    order.sort_by_key(|item| (!item.is_public(), item.kind != "page"));
    for item in order {
        let old = job.addresses.path_of(&item.link).filter(|_| !item.link.contains('?') && !item.link.is_empty());
        // Nobody has read it yet, so that it gets the address that WordPress would give it.
        let to_come = form.as_deref().filter(|_| old.is_none() && item.kind == "post").and_then(|form| filled(form, item));
        let known = old.as_deref().or(to_come.as_deref());
        let wish = TextToPlace {
            kind: item.text_kind(),
            slug: &item.slug,
            title: &item.title,
            old: known,
            day: item.day.as_deref(),
            ..TextToPlace::default()
        };
        let mut location = job.places.place(&wish);
        if old.is_none() {
            location.forget_old();
        }
        if let Some(old) = old.as_deref().filter(|old| *old != "/") {
            job.addresses.insert(old, &location.address);
        }
        for key in ["p", "page_id", "post_type=page&p"] {
            job.addresses.insert(&format!("{}/?{key}={}", index.base, item.id), &location.address);
        }
        places.insert(item.id.clone(), location);
    }
    for item in index.items.iter().filter(|item| item.kind == "attachment") {
        let file = job.addresses.path_of(&item.url).and_then(|path| job.addresses.media.find(&path).map(|name| format!("/{name}")));
        if let Some(file) = file {
            if let Some(page) = job.addresses.path_of(&item.link).filter(|path| path.len() > 1 && !item.link.contains('?')) {
                job.redirect(&page, &crate::slug::encoded(&file));
            }
        } else if !item.url.is_empty() {
            let why = Some("is not in the folder of uploads: `--content FOLDER` copies such files".to_owned());
            job.report.files.push(Entry { name: item.url.clone(), new: None, outcome: Outcome::LeftOut, why });
        }
    }
    places
}

/// Returns the form that the addresses of most posts have, such as `/:year/:month/:slug/`.
fn permalinks(index: &Index, job: &Job) -> Option<String> {
    let mut forms: BTreeMap<String, usize> = BTreeMap::new();
    for item in index.items.iter().filter(|item| item.kind == "post" && item.status == "publish" && !item.link.contains('?')) {
        let (Some(path), Some(day)) = (job.addresses.path_of(&item.link), item.day.as_deref()) else { continue };
        let slug = decoded(&item.slug);
        let name = |part: &str| match part {
            part if part == slug => ":slug".to_owned(),
            part if part == &day[..4] => ":year".to_owned(),
            part if part == &day[5..7] => ":month".to_owned(),
            part if part == &day[8..10] => ":day".to_owned(),
            part => part.to_owned(),
        };
        *forms.entry(path.split('/').map(name).collect::<Vec<_>>().join("/")).or_default() += 1;
    }
    let (form, count) = forms.into_iter().max_by_key(|(_, count)| *count)?;
    (count > 1 && form.contains(":slug")).then_some(form)
}

fn filled(form: &str, item: &UnreadItem) -> Option<String> {
    let day = item.day.as_deref()?;
    let slug = Some(crate::slug::slugify(&decoded(&item.slug)))
        .filter(|slug| !slug.is_empty())
        .or_else(|| Some(crate::slug::slugify(&item.title)))?;
    let form = form.replace(":slug", &slug).replace(":year", &day[..4]).replace(":month", &day[5..7]).replace(":day", &day[8..10]);
    (!slug.is_empty()).then_some(form)
}

/// Writes the first menu as the blog's navigation.
fn write_menu(index: &Index, job: &mut Job) {
    let mut names: Vec<&str> = index.menus.iter().map(|item| item.menu.as_str()).collect();
    names.dedup();
    let Some(name) = names.first().copied() else { return };
    let mut items: Vec<&MenuItem> =
        index.menus.iter().filter(|item| item.menu == name && matches!(item.parent.as_str(), "" | "0")).collect();
    items.sort_by_key(|item| item.order);
    for item in items {
        let object = index.get(&item.object_id);
        let term = || index.terms.iter().find(|(kind, ..)| *kind == item.object);
        let title =
            Some(item.title.as_str()).filter(|title| !title.trim().is_empty()).or_else(|| object.map(|object| object.title.as_str()));
        let url = match item.kind.as_str() {
            "post_type" => object.map(|object| object.link.clone()),
            "custom" => Some(item.url.clone()),
            _ => term().map(|_| String::new()),
        };
        match (title, url.filter(|url| !url.is_empty())) {
            (Some(title), Some(url)) => {
                let url = Links::new(&job.addresses, "", None).link(&url);
                job.settings.navigation.push((title.to_owned(), url));
            }
            (title, _) => {
                job.report.notes.push(format!("a line of the menu has no address in the export: {}", title.unwrap_or(&item.object_id)))
            }
        }
    }
    names.sort_unstable();
    names.dedup();
    job.report.left_out("menus", names.len() - 1, "the blog has one navigation");
}

struct Pictures<'a> {
    index: &'a Index,
    post: &'a str,
}

impl Attachments for Pictures<'_> {
    fn picture(&self, id: &str) -> Option<(String, String, String)> {
        let item = self.index.get(id).filter(|item| item.kind == "attachment")?;
        Some((item.url.clone(), item.alt.clone(), item.caption.clone()))
    }

    fn uploaded(&self) -> Vec<String> {
        self.index.items.iter().filter(|item| item.kind == "attachment" && item.parent == self.post).map(|item| item.id.clone()).collect()
    }
}

/// A comment as it is kept.
#[derive(Serialize)]
struct Comment<'a> {
    post: &'a str,
    title: &'a str,
    #[serde(flatten)]
    fields: BTreeMap<&'a str, &'a str>,
}

fn write_item(item: &Item, index: &Index, places: &HashMap<String, Location>, job: &mut Job) -> Result<(), ImportError> {
    let id = item.get("wp:post_id").trim();
    let Some(known) = index.get(id) else { return Ok(()) };
    if !known.is_text() {
        return keep_comments(item, &known.link, job);
    }
    let mut entry = TextEntry {
        kind: known.text_kind().name(),
        id: id.to_owned(),
        title: known.title.clone(),
        status: known.status.clone(),
        outcome: Outcome::LeftOut,
        old: None,
        new: None,
        file: None,
        comments: item.comments.len(),
        notes: Vec::new(),
    };
    if known.kind != "post" && known.kind != "page" {
        entry.notes.push(format!("is of a plugin's kind, {}; it is a page now", known.kind));
    }
    let Some(location) = places.get(id) else {
        let why = match known.status.as_str() {
            "trash" => "was in the trash",
            "auto-draft" => "was opened in the editor and never saved",
            _ => "is an earlier version",
        };
        entry.notes.insert(0, why.to_owned());
        job.report.texts.push(entry);
        return keep_comments(item, "", job);
    };
    let links = Links::new(&job.addresses, location.folder(), location.old.as_deref());
    let content = item.get("content:encoded");
    let pictures = Pictures { index, post: id };
    let html = content::html(content, &pictures, &|id| index.reusable.get(id).cloned(), &links);
    let body = markdown(&html, &links);
    if content.contains("<!--nextpage-->") || content.contains("<!-- wp:nextpage") {
        links.note("had several pages, and has one now".to_owned());
    }
    let thumbnail = item.meta("_thumbnail_id").map(|id| (id, index.get(id)));
    let cover = match thumbnail {
        Some((_, Some(picture))) if !picture.url.is_empty() => Some(links.picture(&picture.url)),
        Some((id, _)) => {
            links.note(format!("had a cover that is not in the export: attachment {id}"));
            None
        }
        None => None,
    };
    let hidden = if known.has_password {
        Some("was behind a password; it would be open to everybody")
    } else if known.status == "private" {
        Some("was private; it would be open to everybody")
    } else if known.status == "future" && known.text_kind() == Kind::Page {
        Some("waits for its time, and the blog shows pages at once")
    } else {
        None
    };
    let is_draft = !known.is_public() || hidden.is_some();
    entry.notes.splice(0..0, hidden.map(str::to_owned));
    if known.has_password {
        entry.status = format!("{}, password", known.status);
    }
    let date = date_of(item);
    let updated = instant(item.get("wp:post_modified_gmt")).filter(|date| date.as_second() > 0).map(written);
    let (mut tags, mut series, mut others): (Vec<String>, Option<String>, Vec<String>) = (Vec::new(), None, Vec::new());
    for (domain, _, name) in &item.terms {
        match domain.as_str() {
            "category" | "post_tag" => tags.push(name.clone()),
            "series" => series = Some(name.clone()),
            other => others.push(format!("{other}: {name}")),
        }
    }
    let mut seen = HashSet::new();
    tags.retain(|tag| seen.insert(tag_slug(tag)));
    if !others.is_empty() {
        entry.notes.push(format!("belongs to groups that the blog does not have ({})", others.join(", ")));
    }
    let excerpt = Some(item.get("excerpt:encoded").trim()).filter(|text| !text.is_empty()).map(plain);
    let mut front = Front {
        title: known.title.clone(),
        updated: updated.filter(|updated| date.as_ref().is_some_and(|date| updated > date) && !is_draft),
        date,
        draft: is_draft,
        tags,
        series,
        authors: Some(item.get("dc:creator")).filter(|login| !login.is_empty()).map(author_key).into_iter().collect(),
        summary: excerpt.or_else(|| content::before_more(content)).or_else(|| item.meta("_yoast_wpseo_metadesc").map(str::to_owned)),
        cover_alt: thumbnail
            .and_then(|(_, picture)| picture)
            .map(|picture| picture.alt.clone())
            .filter(|alt| !alt.is_empty() && cover.is_some()),
        cover,
        noindex: item.meta("_yoast_wpseo_meta-robots-noindex") == Some("1"),
        // HTML has no formulas between dollars, but prices.
        math: body.contains('$').then_some(false),
        ..Front::default()
    };
    if known.is_public()
        && let Some(old) = &location.old
    {
        let folder = old.trim_end_matches('/').rsplit_once('/').map_or("", |(folder, _)| folder);
        let slugs = item.meta.iter().filter(|(key, value)| key == "_wp_old_slug" && !value.is_empty());
        front.aliases.extend(slugs.map(|(_, slug)| format!("{folder}/{}/", decoded(slug))));
    }
    if location.old.as_deref() == Some("/") {
        links.note("was the front page; the blog's front page lists its posts".to_owned());
    }
    entry.notes.extend(links.notes.take());
    job.write(location, front, &body, entry)?;
    keep_comments(item, &location.address, job)
}

/// Makes plain text of an excerpt.
fn plain(text: &str) -> String {
    content::before_more(&format!("{text}<!--more-->")).unwrap_or_default()
}

fn keep_comments(item: &Item, address: &str, job: &mut Job) -> Result<(), ImportError> {
    for fields in &item.comments {
        let fields = fields.iter().map(|(key, value)| (key.strip_prefix("wp:comment_").unwrap_or(key), value.as_str())).collect();
        job.keep_comment(&Comment { post: address, title: item.get("title"), fields })?;
    }
    Ok(())
}

fn account(index: &Index, job: &mut Job) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for item in &index.items {
        *counts.entry(item.kind.as_str()).or_default() += 1;
    }
    for (kind, why) in INTERNAL {
        job.report.left_out(format!("items of kind {kind}"), counts.get(kind).copied().unwrap_or_default(), why);
    }
    job.report.left_out("items without a kind", counts.get("").copied().unwrap_or_default(), "they are not part of WordPress's export");
    let mut taxonomies: BTreeMap<&str, usize> = BTreeMap::new();
    for (kind, ..) in index.terms.iter().filter(|(kind, ..)| !matches!(kind.as_str(), "category" | "post_tag" | "nav_menu")) {
        *taxonomies.entry(kind).or_default() += 1;
    }
    for (kind, count) in taxonomies {
        job.report.left_out(format!("terms of {kind}"), count, "the blog groups posts by tags and series alone");
    }
    let short = job.report.texts.iter().filter(|text| text.outcome == Outcome::Written && text.old.is_none()).count();
    if short > 0 {
        let note = format!(
            "texts whose address had a question mark (?p=1): {short}; a redirect cannot see what follows it, so such addresses lead to the front page"
        );
        job.report.notes.push(note);
    }
}
