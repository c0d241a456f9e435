//! The block at the head of a post: TOML between `+++` lines or YAML between `---` lines.
//!
//! Both become one list of [values], so that every rule and every message below is written once. Keys of other generators mean the same here, if
//! we have it, and are passed over if they are about how another generator works. A key that nobody knows is told; one that is nearly `draft`,
//! or says in other words that a post is not for everybody, is refused: `drfat: true` must not publish a draft.

mod keys;
mod values;

use std::{borrow::Cow, collections::HashSet, path::Path};

use jiff::{
    Timestamp,
    civil::{Date, DateTime},
    tz::TimeZone,
};
use unicode_normalization::UnicodeNormalization;

use self::{
    keys::{
        ALIASES, AUTHORS, BUILDING, COVER, COVER_ALT, DATE, DRAFT, EXPIRING, HIDING, LANG, MATH, NOINDEX, OURS, PAGE, PASSED_OVER,
        PERMALINK, SERIES, SLUG, SUMMARY, TAGS, TITLE, TOC, TRANSLATION, UPDATED,
    },
    values::{Value, Values},
};
use crate::{error::Problem, slug};

/// The largest front matter.
const BYTES_MAX: usize = 64 * 1024;

/// The largest number of unknown keys that are told.
const UNKNOWN_MAX: usize = 20;

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
    /// The problems that keep the text from being published. Then `front` says nothing but whether there are formulas.
    pub(crate) errors: Vec<Problem>,
}

/// The languages in which front matter can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    Toml,
    Yaml,
}

/// Tells whether a line opens front matter: returns the line that closes it, and the language between the two. The error names a language
/// that is not read.
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

    /// Reads `published`, with which Jekyll says that a post is not published yet, and others when it was.
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

    /// Reads `status`, with which Pelican, Ghost and WordPress say that a post is not published yet.
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
        return Err("has characters that are not part of a path");
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
mod tests;
