//! The block at the head of a post: TOML between `+++` lines or YAML between `---` lines.
//!
//! Both become one list of [values], so that every rule and every message below is written once. Keys of other generators mean the same here, if
//! we have it, and are passed over if they are about how another generator works. A key that nobody knows is told; one that is nearly `draft`,
//! or says in other words that a post is not for everybody, is refused: `drfat: true` must not publish a draft.

mod values;

use std::{borrow::Cow, collections::HashSet, path::Path};

use jiff::{
    Timestamp,
    civil::{Date, DateTime},
    tz::TimeZone,
};
use unicode_normalization::UnicodeNormalization;

use self::values::{Value, Values};
use crate::{error::Problem, slug};

/// The largest front matter.
const BYTES_MAX: usize = 64 * 1024;

/// The largest number of unknown keys that are told.
const UNKNOWN_MAX: usize = 20;

// The names of each key. The first is ours, the others are those of Jekyll, Hugo, Zola, Ghost, Eleventy, Pelican and Hexo.
const TITLE: &[&str] = &["title"];
const DATE: &[&str] = &["date", "published_at", "publishDate", "publish_date", "pubDate", "created", "created_at"];
const UPDATED: &[&str] =
    &["updated", "lastmod", "last_modified_at", "modified", "updated_at", "last_updated", "lastUpdated", "updatedDate"];
const DRAFT: &[&str] = &["draft"];
const TAGS: &[&str] = &["tags", "tag", "categories", "category"];
const SLUG: &[&str] = &["slug"];
const SUMMARY: &[&str] = &["summary", "description", "excerpt", "custom_excerpt", "meta_description"];
const PAGE: &[&str] = &["page"];
const AUTHORS: &[&str] = &["authors", "author"];
const SERIES: &[&str] = &["series"];
const COVER: &[&str] = &[
    "cover",
    "image",
    "feature_image",
    "featured_image",
    "featuredImage",
    "cover_image",
    "coverImage",
    "images",
    "heroImage",
    "banner",
    "thumbnail",
];
const COVER_ALT: &[&str] = &["cover_alt", "feature_image_alt", "image_alt", "featured_image_alt"];
const ALIASES: &[&str] = &["aliases", "redirect_from", "alias"];
const PERMALINK: &[&str] = &["permalink", "url", "path"];
const NOINDEX: &[&str] = &["noindex"];
const LANG: &[&str] = &["lang", "language", "locale"];
const TRANSLATION: &[&str] = &["translation", "translationKey", "translation_key"];
const MATH: &[&str] = &["math", "katex", "mathjax", "use_math"];
const TOC: &[&str] = &["toc", "showToc", "ShowToc"];

/// Keys whose misspelling is an error.
const OURS: [&[&str]; 20] = [
    TITLE,
    DATE,
    UPDATED,
    DRAFT,
    TAGS,
    SLUG,
    SUMMARY,
    PAGE,
    AUTHORS,
    SERIES,
    COVER,
    COVER_ALT,
    ALIASES,
    PERMALINK,
    NOINDEX,
    LANG,
    TRANSLATION,
    MATH,
    TOC,
    &["published", "status", "robots", "taxonomies"],
];

/// Keys that say in other generators that a post is not for everybody.
const HIDING: [&str; 8] =
    ["private", "hidden", "unlisted", "visibility", "password", "headless", "email_only", "eleventyExcludeFromCollections"];

/// Keys whose values say in Hugo and Zola whether there is a page, and whether it is listed.
const BUILDING: [&str; 3] = ["build", "_build", "render"];

/// Keys that say in other generators when a post goes away.
const EXPIRING: [&str; 4] = ["expiryDate", "expires", "expiry_date", "unpublishDate"];

/// Keys about how other generators work, or what only their themes show. They have no effect.
const PASSED_OVER: [&str; 66] = [
    "cascade",
    "class",
    "classes",
    "comment",
    "comments",
    "comment_id",
    "commentable",
    "css",
    "eleventyComputed",
    "eleventyNavigation",
    "excerpt_separator",
    "extra",
    "featured",
    "guid",
    "hasCJKLanguage",
    "header",
    "id",
    "in_search_index",
    "insert_anchor_links",
    "isCJKLanguage",
    "js",
    "keywords",
    "last_modified",
    "layout",
    "license",
    "linkTitle",
    "link_title",
    "markup",
    "menu",
    "menus",
    "meta",
    "meta_title",
    "nav_order",
    "og_description",
    "og_image",
    "og_title",
    "outputs",
    "page_template",
    "paginate_by",
    "params",
    "parent",
    "pin",
    "pinned",
    "post_id",
    "reading_time",
    "readtime",
    "render_with_liquid",
    "resources",
    "share",
    "show_reading_time",
    "sidebar",
    "sitemap",
    "sort_by",
    "source",
    "sticky",
    "subtitle",
    "tagline",
    "template",
    "theme",
    "toc_label",
    "toc_sticky",
    "transparent",
    "type",
    "uuid",
    "weight",
    "wordpress_id",
];

/// The author's settings for one post.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct FrontMatter {
    pub(crate) title: Option<String>,
    pub(crate) date: Option<Moment>,
    pub(crate) updated: Option<Moment>,
    pub(crate) draft: bool,
    pub(crate) tags: Vec<String>,
    pub(crate) slug: Option<String>,
    pub(crate) summary: Option<String>,
    pub(crate) page: bool,
    /// The authors, if they are others than the blog's.
    pub(crate) authors: Vec<String>,
    /// The series to which the post belongs.
    pub(crate) series: Option<String>,
    /// The picture at the head of the post: a path relative to the file, or an address.
    pub(crate) cover: Option<String>,
    /// The words for those who do not see the cover.
    pub(crate) cover_alt: Option<String>,
    /// Addresses that lead here: where the post was before.
    pub(crate) aliases: Vec<String>,
    /// Whether search engines are asked to leave the post out.
    pub(crate) noindex: bool,
    /// BCP 47 language tag of the post, if it is another than the blog's.
    pub(crate) lang: Option<String>,
    /// The key that joins translations of one text.
    pub(crate) translation: Option<String>,
    /// The whole address, if the author chose it. It begins with a slash and is not percent-encoded.
    pub(crate) permalink: Option<String>,
    /// Whether `$…$` may be a formula. Default: yes.
    pub(crate) math: Option<bool>,
    /// Whether the text begins with a table of its contents.
    pub(crate) toc: bool,
}

/// A date as the author wrote it, and the instant that it means: midnight if it has no time, UTC if it has no offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Moment {
    pub(crate) day: Date,
    pub(crate) instant: Timestamp,
}

impl Moment {
    /// Reads `2026-03-01`, `2026-03-01 18:30`, `2026-03-01T18:30:00+02:00` or `2026/03/01 18:30:00 +0200`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = plain_date(text);
        if let Ok(instant) = text.parse::<Timestamp>() {
            let day = text.get(..10)?.parse().ok()?;
            return Some(Self { day, instant });
        }
        let civil: DateTime = text.parse().ok().or_else(|| text.parse::<Date>().ok().map(|day| day.at(0, 0, 0, 0)))?;
        Some(Self { day: civil.date(), instant: civil.to_zoned(TimeZone::UTC).ok()?.timestamp() })
    }

    pub(crate) fn of_instant(instant: Timestamp) -> Self {
        Self { day: instant.to_zoned(TimeZone::UTC).date(), instant }
    }
}

/// Writes a date as RFC 3339 has it: with hyphens, and its offset right behind the time, with a colon.
fn plain_date(text: &str) -> String {
    let text = text.trim();
    let (day, rest) = text.split_at_checked(10).unwrap_or((text, ""));
    let mut date = day.replace('/', "-");
    match rest.trim_end().rsplit_once(' ') {
        Some((time, "Z" | "UTC" | "GMT")) if time.contains(':') => {
            date.push_str(time);
            date.push('Z');
        }
        Some((time, zone)) if time.contains(':') && zone.starts_with(['+', '-']) => {
            date.push_str(time);
            match zone.split_at_checked(3) {
                Some((hours, minutes)) if minutes.len() == 2 => date.push_str(&format!("{hours}:{minutes}")),
                Some((hours, "")) => date.push_str(&format!("{hours}:00")),
                _ => date.push_str(zone),
            }
        }
        _ => date.push_str(rest),
    }
    date
}

/// The front matter and the rest of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Split<'a> {
    pub(crate) front: FrontMatter,
    pub(crate) body: &'a str,
    /// The line of the file on which `body` begins.
    pub(crate) body_line: usize,
    /// Problems that do not keep the text from being published, such as keys that nobody knows.
    pub(crate) warnings: Vec<Problem>,
    /// What keeps the text from being published. Then `front` says nothing but whether there are formulas.
    pub(crate) errors: Vec<Problem>,
}

/// The languages in which front matter can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    Toml,
    Yaml,
}

/// A line that opens front matter, without its end: the line that closes it, and the language between the two.
fn opening(line: &str) -> Result<Option<(&'static str, Language)>, &'static str> {
    match line {
        "+++" => Ok(Some(("+++", Language::Toml))),
        "---" => Ok(Some(("---", Language::Yaml))),
        _ => match line.strip_prefix("---").map(str::trim) {
            Some("toml") => Ok(Some(("---", Language::Toml))),
            Some("yaml" | "yml") => Ok(Some(("---", Language::Yaml))),
            Some("json" | "json5" | "js" | "javascript" | "coffee") => Err("JSON or a script"),
            _ => Ok(None),
        },
    }
}

/// Returns whether a text begins as an object of JSON does, as Hugo takes it for front matter.
fn begins_with_json(text: &str) -> bool {
    text.strip_prefix('{').is_some_and(|rest| rest.trim_start().starts_with('"') && rest.contains("\":"))
}

/// Returns whether a line of a block sets a key.
fn sets_a_key(line: &str) -> bool {
    let name = line.trim_start_matches(['"', '\'']);
    let end = name.find(|letter: char| !letter.is_alphanumeric() && !matches!(letter, '_' | '-')).unwrap_or(name.len());
    end > 0 && name[end..].trim_start_matches(['"', '\'']).trim_start().starts_with(['=', ':'])
}

/// Parts front matter from Markdown. A file whose first line with text opens none is Markdown from its first line.
///
/// Returns the problems alone if nobody knows where the front matter ends.
pub(crate) fn split<'a>(file: &Path, text: &'a str) -> Result<Split<'a>, Vec<Problem>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let whole = || Ok(Split { front: FrontMatter::default(), body: text, body_line: 1, warnings: Vec::new(), errors: Vec::new() });
    // Hugo passes over empty lines, and nobody should publish a draft because of one.
    let (before, mut start) =
        lines(text).take_while(|line| line.trim().is_empty()).fold((0, 0), |(n, bytes), line| (n + 1, bytes + line.len()));
    let first_line = before + 1;
    let mut lines = lines(&text[start..]);
    let first = lines.next().unwrap_or_default();
    let unread = |what: &str| {
        let message = format!(
            "the front matter is {what}, which is not read here; write it in TOML between lines `+++`, or in YAML between lines `---`"
        );
        Err(vec![Problem::new(file, first_line, message)])
    };
    if begins_with_json(&text[start..]) {
        return unread("JSON");
    }
    start += first.len();
    let (close, language) = match opening(first.trim_end()) {
        Ok(Some(opening)) => opening,
        Ok(None) => return whole(),
        Err(what) => return unread(what),
    };
    let mut at = start;
    for line in lines {
        let mark = line.trim_end();
        if mark == close || (mark == "..." && close == "---") {
            let (block, body) = (&text[start..at], &text[at + line.len()..]);
            // Below an empty line, it may as well be text between two rules.
            if before > 0 && !block.lines().any(sets_a_key) {
                return whole();
            }
            let body_line = slug::line_at(text, at + line.len());
            return Ok(match read(file, first_line, block, language) {
                Ok((front, warnings)) => Split { front, body, body_line, warnings, errors: Vec::new() },
                Err(errors) => {
                    let front = FrontMatter { math: math_of_unread(block), ..FrontMatter::default() };
                    Split { front, body, body_line, warnings: Vec::new(), errors }
                }
            });
        }
        at += line.len();
    }
    // A rule of three hyphens on the first line is Markdown; an unclosed `+++` can only be a slip.
    if close == "---" && !text[start..].contains(": ") {
        return whole();
    }
    Err(vec![Problem::new(file, first_line, format!("the front matter is never closed; end it with a line `{close}`"))])
}

/// Reads the block that the line `first_line` of the file opens. Returns warnings beside it.
fn read(file: &Path, first_line: usize, block: &str, language: Language) -> Result<(FrontMatter, Vec<Problem>), Vec<Problem>> {
    if block.len() > BYTES_MAX {
        let message = format!("the front matter is larger than {} KiB; what is long belongs below it", BYTES_MAX / 1024);
        return Err(vec![Problem::new(file, first_line, message)]);
    }
    let block = &*with_line_feeds(block);
    let values = match language {
        Language::Toml => values::of_toml(block),
        Language::Yaml => values::of_yaml(block),
    };
    let values = values.map_err(|(line, message)| vec![Problem::new(file, line.map(|line| line + first_line), message)])?;
    Reader { file, first_line, block, values, problems: Vec::new(), warnings: Vec::new() }.read()
}

/// Returns what a block that is wrong says of formulas, as far as a line of it tells: the text is checked for more mistakes, and a price in
/// dollars is none.
fn math_of_unread(block: &str) -> Option<bool> {
    let is_off = |line: &str| {
        line.split_once(['=', ':']).is_some_and(|(key, value)| {
            let value = value.trim_start().split(|c: char| !c.is_alphanumeric()).next();
            MATH.contains(&key.trim()) && value == Some("false")
        })
    };
    lines(block).any(is_off).then_some(false)
}

/// Splits a text into lines, with their ends. A carriage return alone ends a line, too, as in Markdown.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = match rest.find(['\n', '\r']) {
            Some(at) if rest[at..].starts_with("\r\n") => at + 2,
            Some(at) => at + 1,
            None => rest.len(),
        };
        let (line, after) = rest.split_at(end);
        rest = after;
        Some(line).filter(|line| !line.is_empty())
    })
}

/// Returns a block with the line ends that TOML knows.
fn with_line_feeds(block: &str) -> Cow<'_, str> {
    if !block.contains('\r') {
        return Cow::Borrowed(block);
    }
    let block = block.replace("\r\n", "\n");
    // Carriage returns among line feeds are a mistake, and the author should hear of it.
    Cow::Owned(if block.contains('\n') { block } else { block.replace('\r', "\n") })
}

/// Reads values one by one, and takes note of what is wrong with them.
struct Reader<'b> {
    file: &'b Path,
    /// The line of the file that opens the front matter.
    first_line: usize,
    block: &'b str,
    values: Values,
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl Reader<'_> {
    fn read(mut self) -> Result<(FrontMatter, Vec<Problem>), Vec<Problem>> {
        let tags = self.tags();
        let cover = self.cover();
        let (published, published_at) = self.published();
        let mut front = FrontMatter {
            title: self.text(TITLE),
            date: self.moment(DATE).map_or(published_at, Some),
            updated: self.moment(UPDATED),
            draft: self.switch(DRAFT).unwrap_or(false) || !published || self.is_unfinished(),
            tags,
            // Whoever writes it with marks of their own sees no difference.
            slug: self.text(SLUG).map(|slug| slug.nfc().collect::<String>()),
            summary: self.text(SUMMARY),
            page: self.switch(PAGE).unwrap_or(false),
            authors: self.names(AUTHORS),
            series: self.names(SERIES).into_iter().next(),
            cover_alt: self.text(COVER_ALT).or(cover.alt),
            cover: cover.src,
            aliases: self.aliases(),
            permalink: self.permalink(),
            noindex: self.switch(NOINDEX).unwrap_or(false),
            lang: self.lang(),
            translation: self.text(TRANSLATION),
            math: self.math(),
            toc: self.switch(TOC).unwrap_or(false),
        };
        if let Some(robots) = self.text(&["robots"]) {
            front.noindex |= robots.to_ascii_lowercase().contains("noindex");
        }
        self.slug(front.slug.as_deref());
        self.unknown();
        if self.problems.is_empty() {
            return Ok((front, self.warnings));
        }
        self.problems.extend(self.warnings);
        self.problems.sort_by_key(|problem| problem.line);
        Err(self.problems)
    }

    fn line(&self, key: &str) -> usize {
        self.first_line + slug::line_of_key(self.block, key).unwrap_or(1)
    }

    fn wrong(&mut self, key: &str, message: String) {
        self.problems.push(Problem::new(self.file, self.line(key), message));
    }

    fn warn(&mut self, key: &str, message: String) {
        self.warnings.push(Problem::warning(self.file, self.line(key), message));
    }

    /// Takes the value of a key out, under whichever of its names it is there. The first name counts.
    fn take(&mut self, names: &[&'static str]) -> Option<(&'static str, Value)> {
        let mut found = None;
        for &name in names {
            let value = self.values.remove(name).filter(|value| *value != Value::Nothing);
            found = found.or_else(|| Some((name, value?)));
        }
        found
    }

    fn text(&mut self, names: &[&'static str]) -> Option<String> {
        let (key, value) = self.take(names)?;
        match value {
            Value::Text(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
            Value::Bool(value) => Some(value.to_string()),
            Value::Nothing | Value::List(_) | Value::Table(_) => {
                self.wrong(key, format!("`{key}` must be a text; put it in quotes"));
                None
            }
        }
    }

    fn moment(&mut self, names: &[&'static str]) -> Option<Moment> {
        let (key, value) = self.take(names)?;
        let Value::Text(text) = value else {
            self.wrong(key, format!("`{key}` must be a date such as 2026-03-01"));
            return None;
        };
        let moment = Moment::parse(&text);
        if moment.is_none() && !text.trim().is_empty() {
            self.wrong(key, format!("`{key}` is {text:?}; write a date such as 2026-03-01 or 2026-03-01T18:30:00+02:00"));
        }
        moment
    }

    fn switch(&mut self, names: &[&'static str]) -> Option<bool> {
        let (key, value) = self.take(names)?;
        match &value {
            Value::Bool(value) => return Some(*value),
            // As YAML 1.1 has it. Elsewhere, these are words.
            Value::Text(word) if ["yes", "on"].iter().any(|yes| word.eq_ignore_ascii_case(yes)) => return Some(true),
            Value::Text(word) if ["no", "off"].iter().any(|no| word.eq_ignore_ascii_case(no)) => return Some(false),
            _ => {}
        }
        self.wrong(key, format!("`{key}` must be true or false, without quotes"));
        None
    }

    /// Reads one name or a list of names; a name may stand in a table of its own.
    fn names(&mut self, names: &[&'static str]) -> Vec<String> {
        let Some((key, value)) = self.take(names) else { return Vec::new() };
        let list = match value {
            Value::List(list) => list,
            one => vec![one],
        };
        let mut found: Vec<String> = Vec::new();
        for value in list {
            match name(value) {
                Some(name) if name.is_empty() || found.contains(&name) => {}
                Some(name) => found.push(name),
                None => {
                    self.wrong(key, format!("`{key}` must be a text or a list of texts; put them in quotes"));
                    break;
                }
            }
        }
        found
    }

    /// Reads tags from `["a", "b"]` or `"a, b"`, under all their names and as Zola has them. Keeps their order and drops repetitions.
    fn tags(&mut self) -> Vec<String> {
        let mut lists: Vec<(&'static str, Value)> = Vec::new();
        for &key in TAGS {
            lists.extend(self.take(&[key]));
        }
        if let Some((_, Value::Table(mut table))) = self.take(&["taxonomies"]) {
            lists.extend(["tags", "categories"].into_iter().filter_map(|key| Some((key, table.remove(key)?))));
        }
        let (mut kept, mut seen) = (Vec::new(), HashSet::new());
        for (key, value) in lists {
            let tags = match value {
                Value::Text(text) => text.split(',').map(|tag| Some(tag.trim().to_owned())).collect(),
                Value::List(list) => list.into_iter().map(name).collect(),
                Value::Nothing => Vec::new(),
                Value::Bool(_) | Value::Table(_) => {
                    self.wrong(key, format!("`{key}` must be a list such as [\"rust\", \"http\"]"));
                    continue;
                }
            };
            for tag in tags {
                let Some(tag) = tag else {
                    self.wrong(key, format!("every one of the `{key}` must be a text; put it in quotes"));
                    break;
                };
                let slug = slug::tag_slug(&tag);
                if slug.is_empty() && !tag.is_empty() {
                    self.wrong(key, format!("the tag {tag:?} has neither letter nor digit to make an address of"));
                    break;
                }
                if !slug.is_empty() && seen.insert(slug) {
                    kept.push(tag);
                }
            }
        }
        kept
    }

    /// Reads `published`, with which Jekyll says that a post is none yet, and others when it became one.
    fn published(&mut self) -> (bool, Option<Moment>) {
        match self.take(&["published"]) {
            None => (true, None),
            Some((_, Value::Bool(published))) => (published, None),
            Some((_, Value::Text(no))) if ["no", "off"].contains(&&*no.to_ascii_lowercase()) => (false, None),
            Some((_, Value::Text(text))) if Moment::parse(&text).is_some() => (true, Moment::parse(&text)),
            Some((key, _)) => {
                self.wrong(key, "`published` must be true or false, without quotes, or a date".to_owned());
                (false, None)
            }
        }
    }

    /// Reads `status`, with which Pelican, Ghost and WordPress say that a post is none yet.
    fn is_unfinished(&mut self) -> bool {
        let Some(status) = self.text(&["status"]) else { return false };
        match status.to_ascii_lowercase().as_str() {
            "published" | "publish" | "scheduled" | "future" => false,
            "draft" | "pending" => true,
            _ => {
                self.wrong("status", format!("`status` is {status:?}, which is not known here; write `draft = true` or leave it away"));
                true
            }
        }
    }

    fn cover(&mut self) -> Cover {
        let Some((key, value)) = self.take(COVER) else { return Cover::default() };
        let value = match value {
            Value::List(list) => list.into_iter().next().unwrap_or(Value::Nothing),
            value => value,
        };
        match value {
            Value::Nothing => Cover::default(),
            Value::Text(src) => Cover { src: Some(src.trim().to_owned()).filter(|src| !src.is_empty()), alt: None },
            Value::Table(mut table) => {
                let mut text = |names: &[&str]| {
                    let value = names.iter().find_map(|name| table.remove(*name).filter(|value| *value != Value::Nothing))?;
                    if let Value::Text(text) = value { Some(text.trim().to_owned()).filter(|text| !text.is_empty()) } else { None }
                };
                Cover {
                    src: text(&["src", "image", "url", "path", "file", "filename", "feature", "teaser"]),
                    alt: text(&["alt", "caption", "title"]),
                }
            }
            Value::Bool(_) | Value::List(_) => {
                self.wrong(key, format!("`{key}` must be the path of a picture, or a table with `src` and `alt`"));
                Cover::default()
            }
        }
    }

    fn aliases(&mut self) -> Vec<String> {
        let given = self.names(ALIASES);
        let mut aliases = Vec::with_capacity(given.len());
        for alias in given {
            match site_path(&alias) {
                Ok(path) => aliases.push(path),
                Err(why) => self.wrong("aliases", format!("the alias {alias:?} {why}; write a path of this blog such as /old/")),
            }
        }
        aliases
    }

    fn permalink(&mut self) -> Option<String> {
        let (key, value) = self.take(PERMALINK)?;
        let given = match value {
            Value::Text(given) => given.trim().to_owned(),
            // In Eleventy, a page that is not written.
            Value::Bool(_) | Value::Nothing | Value::List(_) | Value::Table(_) => {
                self.wrong(key, format!("`{key}` must be a path such as /notes/hello/, in quotes"));
                return None;
            }
        };
        if given.is_empty() {
            return None;
        }
        let path = if given.split('/').any(|part| part.starts_with(':')) {
            Err("has placeholders, which are not known here")
        } else {
            site_path(&given).and_then(|path| if path == "/" { Err("is that of the index") } else { Ok(path) })
        };
        match path {
            // A name with a dot is that of a file, as in /2014/hello.html.
            Ok(path) if path.ends_with('/') || path.rsplit('/').next().is_some_and(|name| name.contains('.')) => Some(path),
            Ok(path) => Some(path + "/"),
            Err(why) => {
                self.wrong(key, format!("`{key}` is {given:?}, which {why}; write a whole path such as /notes/hello/"));
                None
            }
        }
    }

    fn lang(&mut self) -> Option<String> {
        let lang = self.text(LANG)?.replace('_', "-");
        let is_tag = |part: &str| (1..=8).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphanumeric());
        if lang.split('-').all(is_tag) && lang.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Some(lang);
        }
        self.wrong("lang", format!("`lang` is {lang:?}; write a language tag such as \"en\" or \"de-AT\""));
        None
    }

    fn math(&mut self) -> Option<bool> {
        match self.take(MATH)? {
            (_, Value::Bool(math)) => Some(math),
            // The name of a script that draws formulas.
            (_, Value::Text(_) | Value::Table(_)) => Some(true),
            (key, _) => {
                self.wrong(key, format!("`{key}` must be true or false, without quotes"));
                None
            }
        }
    }

    fn slug(&mut self, given: Option<&str>) {
        let Some(given) = given else { return };
        let valid = slug::slugify(given);
        if valid != given {
            let remedy = if valid.is_empty() { "letters and digits".to_owned() } else { format!("`{valid}`") };
            self.wrong("slug", format!("`slug` is {given:?}, which cannot stand in an address; write {remedy}"));
        }
    }

    /// Looks at the keys that are left over.
    fn unknown(&mut self) {
        let mut untold = 0;
        for (key, value) in std::mem::take(&mut self.values) {
            if OURS.iter().any(|names| names.contains(&key.as_str())) || PASSED_OVER.contains(&key.as_str()) {
                continue;
            }
            if HIDING.contains(&key.as_str()) {
                let is_open =
                    matches!(&value, Value::Nothing | Value::Bool(false)) || matches!(&value, Value::Text(text) if text == "public");
                if !is_open {
                    self.wrong(&key, format!("`{key}` is not known here; write `draft = true` if the post is not for everybody"));
                }
            } else if BUILDING.contains(&key.as_str()) {
                if builds_none(&value) {
                    self.wrong(
                        &key,
                        format!("`{key}` keeps no post from readers here; write `draft = true` if the post is not for everybody"),
                    );
                }
            } else if EXPIRING.contains(&key.as_str()) {
                self.warn(&key, format!("`{key}` has no effect: the post stays"));
            } else if let Some(known) = near(&key) {
                self.wrong(&key, format!("`{key}` is not a key of the front matter; did you mean `{known}`?"));
            } else if self.warnings.len() < UNKNOWN_MAX {
                self.warn(&key, format!("`{key}` is not known here, so it has no effect"));
            } else {
                untold += 1;
            }
        }
        if untold > 0 {
            self.warnings.push(Problem::warning(self.file, 1, format!("{untold} further keys are not known here")));
        }
    }
}

#[derive(Debug, Default)]
struct Cover {
    src: Option<String>,
    alt: Option<String>,
}

/// Returns whether a value of [`BUILDING`] says that there is no page, or that nothing lists it.
fn builds_none(value: &Value) -> bool {
    let is_never = |value: &Value| match value {
        Value::Bool(is_built) => !is_built,
        Value::Text(when) => matches!(when.as_str(), "never" | "local" | "false"),
        Value::Nothing | Value::List(_) | Value::Table(_) => false,
    };
    match value {
        Value::Table(table) => ["render", "list"].into_iter().any(|key| table.get(key).is_some_and(is_never)),
        one => is_never(one),
    }
}

/// Returns the key that an author probably meant.
fn near(key: &str) -> Option<&'static str> {
    let lower = key.to_ascii_lowercase();
    let is_near = |known: &str| {
        let slips = match known.len() {
            0..=3 => 0,
            4..=5 if known != "draft" => 1,
            _ => 2,
        };
        lower.len().abs_diff(known.len()) <= slips && strsim::osa_distance(known, &lower) <= slips
    };
    OURS.iter().filter_map(|names| names.first()).copied().find(|known| is_near(known))
}

/// Reads a name, which may stand in a table of its own.
fn name(value: Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text.trim().to_owned()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Table(mut table) => ["name", "title", "label"].iter().find_map(|key| table.remove(*key)).and_then(|value| match value {
            Value::Text(text) => Some(text.trim().to_owned()),
            _ => None,
        }),
        Value::Nothing | Value::List(_) => None,
    }
}

/// Reads a path of the site. It begins with a slash, and is not percent-encoded.
fn site_path(given: &str) -> Result<String, &'static str> {
    let given = given.trim();
    if given.contains("://") || given.starts_with("//") {
        return Err("names a host");
    }
    if given.contains(['?', '#', '\\']) {
        return Err("has characters that are no part of a path");
    }
    let path = slug::decode_path(given).ok_or("is not a path")?;
    let path: String = path.nfc().collect();
    let path = if path.starts_with('/') { path } else { format!("/{path}") };
    let inner = path.trim_start_matches('/').trim_end_matches('/');
    if path.chars().any(char::is_control) || path.contains("//") || inner.split('/').any(|part| matches!(part, "." | "..")) {
        return Err("is not a path");
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Split<'_>, String> {
        let split = split(Path::new("p.md"), text);
        let split = split.and_then(|split| if split.errors.is_empty() { Ok(split) } else { Err(split.errors) });
        split.map_err(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    }

    #[test]
    fn toml_and_yaml_say_the_same() {
        let toml = "+++\ntitle = \"Hi\"\ndate = 2026-03-01\ndraft = true\ntags = [\"a\", \"B c\", \"A\"]\nlayout = \"x\"\n[extra]\nk = 1\n+++\nText\n";
        let yaml = "---\ntitle: Hi\ndate: 2026-03-01\ndraft: true\ntags: a, B c\nlayout: x\nextra:\n  k: 1\n---\nText\n";
        let (toml, yaml) = (read(toml).expect("toml"), read(yaml).expect("yaml"));
        assert_eq!(toml.front, yaml.front);
        assert_eq!((toml.front.title.as_deref(), toml.front.draft, toml.body), (Some("Hi"), true, "Text\n"));
        assert_eq!(toml.front.tags, ["a", "B c"]);
        assert_eq!((toml.body_line, yaml.body_line), (10, 10));
        assert!(toml.warnings.is_empty() && yaml.warnings.is_empty(), "{:?}", yaml.warnings);
    }

    #[test]
    fn a_file_without_front_matter_is_all_markdown() {
        for text in ["", "Hello", "# Hi\n+++\n", "---\n\nA rule comes first.\n", "--- x\n"] {
            let split = read(text).expect(text);
            assert_eq!((split.body, split.body_line), (text, 1));
        }
    }

    /// Hugo passes over empty lines, gray-matter knows names of languages behind the fence.
    #[test]
    fn empty_lines_and_the_name_of_a_language_hide_no_front_matter() {
        for text in [
            "\n---\ntitle: Secret\ndraft: true\n---\nText\n",
            "\u{feff} \n\r\n---\r\ntitle: Secret\r\ndraft: true\r\n---\r\nText\n",
            "\n\n+++\ntitle = \"Secret\"\ndraft = true\n+++\nText\n",
            "---toml\ntitle = \"Secret\"\ndraft = true\n---\nText\n",
            "--- yaml\ntitle: Secret\ndraft: true\n---\nText\n",
        ] {
            let split = read(text).expect(text);
            assert_eq!((split.front.title.as_deref(), split.front.draft, split.body), (Some("Secret"), true, "Text\n"), "{text}");
        }
        assert_eq!(read("\n\n---\ndraft: perhaps\n---\n").expect_err("a mistake"), "p.md:4: `draft` must be true or false, without quotes");
        for text in ["\n---\nWords between two rules.\n---\n", "\n---\n\nA rule.\n", "---later\n"] {
            assert_eq!(read(text).expect(text).body, text);
        }
    }

    #[test]
    fn front_matter_in_other_languages_is_told() {
        for text in ["{\"title\": \"a\", \"draft\": true}\n# a\n", "\n{\n  \"draft\": true\n}\n", "---json\n{\"draft\": true}\n---\n"] {
            let told = read(text).expect_err("a mistake");
            assert!(told.contains("is not read here") && told.contains("+++"), "{told}");
        }
        for text in ["{braces}\n", "{\"quoted\"}\n"] {
            assert_eq!(read(text).expect(text).body, text);
        }
    }

    /// Hugo, Zola, Eleventy and Ghost show such a post to nobody, or list it nowhere.
    #[test]
    fn what_hides_a_post_elsewhere_publishes_none_here() {
        for key in [
            "headless: true",
            "email_only: true",
            "eleventyExcludeFromCollections: true",
            "render: false",
            "build:\n  list: never",
            "_build: {render: false}",
            "build: {list: local}",
        ] {
            let told = read(&format!("---\n{key}\n---\nText\n")).expect_err("a mistake");
            assert!(told.starts_with("p.md:2: ") && told.contains("draft = true"), "{key}: {told}");
        }
        for key in ["headless: false", "render: true", "build:\n  list: always\n  publishResources: true", "email_only: false"] {
            assert!(read(&format!("---\n{key}\n---\nText\n")).is_ok(), "{key}");
        }
    }

    #[test]
    fn windows_line_ends_and_a_byte_order_mark_are_fine() {
        let split = read("\u{feff}---\r\ntitle: Hi\r\n---\r\nText\r\n").expect("read");
        assert_eq!((split.front.title.as_deref(), split.body), (Some("Hi"), "Text\r\n"));
    }

    #[test]
    fn a_slug_may_be_typed_with_marks_of_their_own() {
        let split = read("---\nslug: u\u{308}ber-न\u{94d}य\n---\n").expect("read");
        assert_eq!(split.front.slug.as_deref(), Some("über-न्य"));
    }

    #[test]
    fn dates() {
        let cases = [
            ("2026-03-01", Some(("2026-03-01", "2026-03-01T00:00:00Z"))),
            ("2026-03-01 18:30", Some(("2026-03-01", "2026-03-01T18:30:00Z"))),
            ("2026-03-01T18:30:00", Some(("2026-03-01", "2026-03-01T18:30:00Z"))),
            ("2026-03-01T00:30:00+02:00", Some(("2026-03-01", "2026-02-28T22:30:00Z"))),
            ("2026-03-01T18:30:00Z", Some(("2026-03-01", "2026-03-01T18:30:00Z"))),
            ("2026-03-01T18:30+02:00", Some(("2026-03-01", "2026-03-01T16:30:00Z"))),
            // Jekyll, Hexo and git write these.
            ("2026-03-01 18:30:00 +0200", Some(("2026-03-01", "2026-03-01T16:30:00Z"))),
            ("2026-03-01 18:30:00 -07", Some(("2026-03-01", "2026-03-02T01:30:00Z"))),
            ("2026/03/01 18:30:00 UTC", Some(("2026-03-01", "2026-03-01T18:30:00Z"))),
            ("2026/03/01", Some(("2026-03-01", "2026-03-01T00:00:00Z"))),
            ("2026-03-01 18:30:00 +0200 x", None),
            ("2026-13-01", None),
            ("yesterday", None),
            ("", None),
        ];
        for (text, expected) in cases {
            let got = Moment::parse(text).map(|m| (m.day.to_string(), m.instant.to_string()));
            assert_eq!(got, expected.map(|(day, instant)| (day.to_owned(), instant.to_owned())), "{text}");
        }
    }

    #[test]
    fn problems_name_line_and_remedy() {
        let cases = [
            ("+++\ntitle = \n+++\n", "p.md:2: not TOML"),
            ("+++\ntitle = \"a\"\ndate = \"soon\"\n+++\n", "p.md:3: `date` is \"soon\"; write a date such as"),
            ("---\ntitle: a\n\ndrfat: true\n---\n", "p.md:4: `drfat` is not a key of the front matter; did you mean `draft`?"),
            ("---\nTitle: a\n---\n", "did you mean `title`?"),
            ("---\ntitle: a: b\n---\n", "needs quotes"),
            // The place is told once, and as an editor counts: YAML ends a line at a carriage return, too.
            ("---\ntitle: a\nslug: [b\n---\n", "p.md:3: not YAML"),
            ("---\ntitle: a\r\rslug: \u{0}\n---\n", "p.md:2: not YAML: unexpected character: `\\u{0}'. A value"),
            ("---\ntitle: a\ndraft: maybe\n---\n", "p.md:3: `draft` must be true or false"),
            ("---\nslug: a/b\n---\n", "p.md:2: `slug` is \"a/b\", which cannot stand in an address; write `a-b`"),
            ("---\ntags: [a, '!']\n---\n", "p.md:2: the tag \"!\""),
            ("---\ntitle: [a]\n---\n", "p.md:2: `title` must be a text"),
            ("---\ndraft: \"true\"\n---\n", "p.md:2: `draft` must be true or false"),
            ("---\npublished: no idea\n---\n", "p.md:2: `published` must be true or false"),
            ("---\nstatus: hmm\n---\n", "p.md:2: `status` is \"hmm\""),
            ("---\nprivate: true\n---\n", "p.md:2: `private` is not known here; write `draft = true`"),
            ("---\naliases: [https://x.test/a]\n---\n", "p.md:2: the alias \"https://x.test/a\" names a host"),
            ("---\naliases: [/a/../b]\n---\n", "p.md:2: the alias \"/a/../b\" is not a path"),
            ("---\npermalink: /:year/x/\n---\n", "p.md:2: `permalink` is \"/:year/x/\", which has placeholders"),
            ("---\npermalink: /\n---\n", "which is that of the index"),
            ("---\nurl: /a?b\n---\n", "p.md:2: `url` is \"/a?b\""),
            ("---\nlang: \"<b>\"\n---\n", "p.md:2: `lang` is \"<b>\""),
            ("---\ncover: true\n---\n", "p.md:2: `cover` must be the path of a picture"),
            ("---\nauthors: {a: b}\n---\n", "p.md:2: `authors` must be a text"),
            ("---\n- a\n---\n", "p.md:2: not YAML of the form"),
            ("+++\ntitle = \"a\"\n", "p.md:1: the front matter is never closed; end it with a line `+++`"),
        ];
        for (text, expected) in cases {
            let message = read(text).expect_err(text);
            assert!(message.contains(expected), "{text:?}: {message}");
        }
    }

    #[test]
    fn several_problems_are_all_named() {
        let message = read("---\ndate: x\nupdated: y\ndraft: z\n---\n").expect_err("three");
        assert_eq!(message.lines().count(), 3, "{message}");
    }

    fn front(text: &str) -> FrontMatter {
        let split = read(text).unwrap_or_else(|message| panic!("{text}: {message}"));
        assert!(split.warnings.is_empty(), "{text}: {:?}", split.warnings);
        split.front
    }

    /// What other generators call the same.
    #[test]
    fn keys_have_the_names_of_other_generators() {
        let text = |text: &str| Some(text.to_owned());
        let cases = [
            ("description: S", FrontMatter { summary: text("S"), ..FrontMatter::default() }),
            ("excerpt: S", FrontMatter { summary: text("S"), ..FrontMatter::default() }),
            ("lastmod: 2026-03-01", FrontMatter { updated: Moment::parse("2026-03-01"), ..FrontMatter::default() }),
            ("last_modified_at: 2026-03-01", FrontMatter { updated: Moment::parse("2026-03-01"), ..FrontMatter::default() }),
            ("published_at: 2026-03-01", FrontMatter { date: Moment::parse("2026-03-01"), ..FrontMatter::default() }),
            ("published: 2026-03-01", FrontMatter { date: Moment::parse("2026-03-01"), ..FrontMatter::default() }),
            ("published: false", FrontMatter { draft: true, ..FrontMatter::default() }),
            ("published: true", FrontMatter::default()),
            (
                "draft: yes\ntags: [y, on, No]",
                FrontMatter { draft: true, tags: ["y", "on", "No"].map(str::to_owned).into(), ..FrontMatter::default() },
            ),
            ("status: draft", FrontMatter { draft: true, ..FrontMatter::default() }),
            ("status: published", FrontMatter::default()),
            ("image: a.jpg", FrontMatter { cover: text("a.jpg"), ..FrontMatter::default() }),
            (
                "feature_image: a.jpg\nfeature_image_alt: A",
                FrontMatter { cover: text("a.jpg"), cover_alt: text("A"), ..FrontMatter::default() },
            ),
            ("cover:\n  image: a.jpg\n  alt: A", FrontMatter { cover: text("a.jpg"), cover_alt: text("A"), ..FrontMatter::default() }),
            ("image: {path: a.jpg, alt: A}", FrontMatter { cover: text("a.jpg"), cover_alt: text("A"), ..FrontMatter::default() }),
            ("images: [a.jpg, b.jpg]", FrontMatter { cover: text("a.jpg"), ..FrontMatter::default() }),
            ("author: Smith, Ann", FrontMatter { authors: vec!["Smith, Ann".to_owned()], ..FrontMatter::default() }),
            ("authors: [Ann, {name: Bo}, Ann]", FrontMatter { authors: vec!["Ann".to_owned(), "Bo".to_owned()], ..FrontMatter::default() }),
            ("categories: [x]\ntags: [y, X]", FrontMatter { tags: vec!["y".to_owned(), "X".to_owned()], ..FrontMatter::default() }),
            (
                "taxonomies: {tags: [x], categories: [y]}",
                FrontMatter { tags: vec!["x".to_owned(), "y".to_owned()], ..FrontMatter::default() },
            ),
            ("redirect_from: /old", FrontMatter { aliases: vec!["/old".to_owned()], ..FrontMatter::default() }),
            ("aliases: [old/, /%C3%BC/]", FrontMatter { aliases: vec!["/old/".to_owned(), "/ü/".to_owned()], ..FrontMatter::default() }),
            ("permalink: /a/b", FrontMatter { permalink: text("/a/b/"), ..FrontMatter::default() }),
            ("url: a/b.html", FrontMatter { permalink: text("/a/b.html"), ..FrontMatter::default() }),
            ("path: a/b", FrontMatter { permalink: text("/a/b/"), ..FrontMatter::default() }),
            ("robots: noindex, nofollow", FrontMatter { noindex: true, ..FrontMatter::default() }),
            ("noindex: true", FrontMatter { noindex: true, ..FrontMatter::default() }),
            ("language: pt_BR", FrontMatter { lang: text("pt-BR"), ..FrontMatter::default() }),
            ("translationKey: hello", FrontMatter { translation: text("hello"), ..FrontMatter::default() }),
            ("series: [S]", FrontMatter { series: text("S"), ..FrontMatter::default() }),
            ("math: false\ntoc: true", FrontMatter { math: Some(false), toc: true, ..FrontMatter::default() }),
            ("katex: true", FrontMatter { math: Some(true), ..FrontMatter::default() }),
            ("title: 1.10\nslug: 007", FrontMatter { title: text("1.10"), slug: text("007"), ..FrontMatter::default() }),
            ("layout: post\nweight: 3\ntype: x\nextra: {a: b}\nmenu: {main: {weight: 1}}\ncomments: true", FrontMatter::default()),
            ("title:\ndate:\ntags:\ncover:", FrontMatter::default()),
        ];
        for (block, expected) in cases {
            assert_eq!(front(&format!("---\n{block}\n---\n")), expected, "{block}");
        }
    }

    #[test]
    fn toml_has_tables_too() {
        let front = front("+++\ntitle = 3\ncover = {src = \"a.jpg\", alt = \"A\"}\n[taxonomies]\ntags = [\"x\"]\n[extra]\nk = 1\n+++\n");
        assert_eq!((front.title.as_deref(), front.cover.as_deref(), front.cover_alt.as_deref()), (Some("3"), Some("a.jpg"), Some("A")));
        assert_eq!(front.tags, ["x"]);
    }

    #[test]
    fn unknown_keys_are_told_and_the_post_is_published() {
        let split = read("---\ntitle: a\nmood: good\nexpiryDate: 2027-01-01\nlayout: x\n---\n").expect("published");
        let told: Vec<_> = split.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(split.warnings.iter().all(Problem::is_warning));
        assert_eq!(split.warnings.iter().map(|warning| warning.line).collect::<Vec<_>>(), [Some(4), Some(3)]);
        assert!(told[1].contains("`mood` is not known here"), "{told:?}");
        let many: String = (0..1000).map(|n| format!("unheard{n}: 1\n")).collect();
        let split = read(&format!("---\n{many}---\n")).map(|split| split.warnings.len()).expect("published");
        assert_eq!(split, UNKNOWN_MAX + 1);
    }

    #[test]
    fn a_misspelt_key_that_hides_a_post_is_an_error() {
        for key in ["drfat", "darft", "Draft", "drafts", "daft", "publised", "noindx"] {
            assert!(read(&format!("---\n{key}: true\n---\n")).is_err(), "{key}");
        }
    }

    #[test]
    fn large_front_matter_is_refused() {
        let message = read(&format!("---\ntitle: {}\n---\n", "x".repeat(BYTES_MAX))).map(|_| ()).expect_err("too large");
        assert!(message.contains("larger than 64 KiB"), "{message}");
    }

    #[test]
    fn old_line_ends_are_line_ends() {
        let split = read("---\rtitle: Hi\rtags: a\r---\rText\r").expect("read");
        assert_eq!((split.front.title.as_deref(), split.body), (Some("Hi"), "Text\r"));
        assert_eq!(read("+++\rtitle = \"Hi\"\r+++\rText").expect("read").body, "Text");
        assert_eq!(read("---\ntitle: Hi\n...\nText").expect("read").body, "Text");
    }
}
