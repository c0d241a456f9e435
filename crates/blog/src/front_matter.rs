//! The block at the head of a post: TOML between `+++` lines or YAML between `---` lines.
//!
//! Both become one list of values, so that every rule and every message below is written once. Keys of other generators (`layout`,
//! `author`, …) are ignored, but a key that is nearly one of ours is refused: `drfat: true` must not publish a draft.

use std::{collections::BTreeMap, fmt, path::Path};

use jiff::{
    Timestamp,
    civil::{Date, DateTime},
    tz::TimeZone,
};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use unicode_normalization::UnicodeNormalization;

use crate::{config::one_line, error::Problem, slug};

const KEYS: [&str; 8] = ["title", "date", "updated", "draft", "tags", "slug", "summary", "page"];

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
    /// Reads `2026-03-01`, `2026-03-01 18:30` or `2026-03-01T18:30:00+02:00`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        // RFC 3339 writes `+02:00`, many people `+0200` or a space before it; jiff wants neither space.
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

/// The front matter and the rest of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Split<'a> {
    pub(crate) front: FrontMatter,
    pub(crate) body: &'a str,
    /// The line of the file on which `body` begins.
    pub(crate) body_line: usize,
    /// Problems that do not keep the text from being published, such as keys that nobody knows.
    pub(crate) warnings: Vec<Problem>,
}

/// Parts front matter from Markdown. A file that begins with neither fence is Markdown from its first line.
pub(crate) fn split<'a>(file: &Path, text: &'a str) -> Result<Split<'a>, Vec<Problem>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let first = text.lines().next().unwrap_or_default().trim_end();
    if first != "+++" && first != "---" {
        return Ok(Split { front: FrontMatter::default(), body: text, body_line: 1, warnings: Vec::new() });
    }
    let start = text.find('\n').map_or(text.len(), |at| at + 1);
    let mut at = start;
    for line in text[start..].split_inclusive('\n') {
        if line.trim_end() == first {
            let (block, body) = (&text[start..at], &text[at + line.len()..]);
            let values = if first == "+++" { parse_toml(block) } else { parse_yaml(block) };
            let front = values
                .map_err(|(line, message)| vec![Problem::new(file, line.map(|line| line + 1), message)])
                .and_then(|values| understand(file, block, values))?;
            return Ok(Split { front, body, body_line: slug::line_at(text, at + line.len()), warnings: Vec::new() });
        }
        at += line.len();
    }
    // A rule of three hyphens on the first line is Markdown; an unclosed `+++` can only be a slip.
    if first == "---" && !text[start..].contains(": ") {
        return Ok(Split { front: FrontMatter::default(), body: text, body_line: 1, warnings: Vec::new() });
    }
    Err(vec![Problem::new(file, 1, format!("the front matter is never closed; end it with a line `{first}`"))])
}

type Values = BTreeMap<String, Value>;
type ParseFault = (Option<usize>, String);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Nothing,
    Text(String),
    Bool(bool),
    List(Vec<Self>),
    Other,
}

fn parse_toml(block: &str) -> Result<Values, ParseFault> {
    fn convert(value: toml::Value) -> Value {
        match value {
            toml::Value::String(text) => Value::Text(text),
            toml::Value::Boolean(value) => Value::Bool(value),
            toml::Value::Datetime(date) => Value::Text(date.to_string()),
            toml::Value::Integer(number) => Value::Text(number.to_string()),
            toml::Value::Float(number) => Value::Text(number.to_string()),
            toml::Value::Array(list) => Value::List(list.into_iter().map(convert).collect()),
            toml::Value::Table(_) => Value::Other,
        }
    }
    let table: toml::Table = toml::from_str(block)
        .map_err(|error| (error.span().map(|span| slug::line_at(block, span.start)), format!("not TOML: {}", one_line(error.message()))))?;
    Ok(table.into_iter().map(|(key, value)| (key, convert(value))).collect())
}

fn parse_yaml(block: &str) -> Result<Values, ParseFault> {
    if block.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(Values::new());
    }
    serde_saphyr::from_str(block).map_err(|error| {
        // By its offset: to YAML a carriage return alone ends a line, to an editor it does not.
        let start = error.location().filter(|at| at.line() > 0).map(|at| at.span().offset());
        let line = start.map(|start| 1 + block.chars().take(usize::try_from(start).unwrap_or(usize::MAX)).filter(|&c| c == '\n').count());
        let message = one_line(&error.without_snippet().to_string());
        (line, format!("not YAML: {}. A value with `: ` or `#` in it needs quotes", without_place(&message).trim_end_matches('.')))
    })
}

/// Removes the ` at line 8, column 3` of a YAML message. It counts from the fence, and the place is shown separately.
fn without_place(message: &str) -> &str {
    let place = |at: &usize| {
        let rest = &message[at + " at line ".len()..];
        rest.split_once(", column ")
            .is_some_and(|(line, column)| [line, column].iter().all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit())))
    };
    message.rfind(" at line ").filter(place).map_or(message, |at| &message[..at])
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Value;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }
            fn visit_unit<E>(self) -> Result<Value, E> {
                Ok(Value::Nothing)
            }
            fn visit_none<E>(self) -> Result<Value, E> {
                Ok(Value::Nothing)
            }
            fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
                Value::deserialize(deserializer)
            }
            fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
                Ok(Value::Bool(value))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
                Ok(Value::Text(value.to_string()))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
                Ok(Value::Text(value.to_string()))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
                Ok(Value::Text(value.to_string()))
            }
            fn visit_str<E>(self, value: &str) -> Result<Value, E> {
                Ok(Value::Text(value.to_owned()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
                let mut list = Vec::new();
                while let Some(value) = seq.next_element()? {
                    list.push(value);
                }
                Ok(Value::List(list))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Value::Other)
            }
        }
        deserializer.deserialize_any(Any)
    }
}

fn understand(file: &Path, block: &str, mut values: Values) -> Result<FrontMatter, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut wrong = |key: &str, message: String| {
        // The block begins on the file's second line.
        problems.push(Problem::new(file, slug::line_of_key(block, key).map_or(2, |line| line + 1), message));
    };
    for key in values.keys().filter(|key| !KEYS.contains(&key.as_str())) {
        let near = KEYS.iter().find(|known| strsim::osa_distance(known, &key.to_ascii_lowercase()) <= if known.len() > 4 { 2 } else { 1 });
        if let Some(known) = near {
            wrong(key, format!("`{key}` is not a key of the front matter; did you mean `{known}`?"));
        }
    }
    let mut take = |key: &str| values.remove(key).filter(|value| *value != Value::Nothing);

    let mut text = |key: &str, value: Option<Value>| match value? {
        Value::Text(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Nothing | Value::List(_) | Value::Other => {
            wrong(key, format!("`{key}` must be a text; put it in quotes"));
            None
        }
    };
    let title = text("title", take("title"));
    let summary = text("summary", take("summary"));
    // Whoever writes it with marks of their own sees no difference.
    let slug = text("slug", take("slug")).map(|slug| slug.nfc().collect::<String>());
    let date = text("date", take("date"));
    let updated = text("updated", take("updated"));

    if let Some(given) = &slug {
        let valid = slug::slugify(given);
        if valid != *given {
            let remedy = if valid.is_empty() { "letters and digits".to_owned() } else { format!("`{valid}`") };
            wrong("slug", format!("`slug` is {given:?}, which cannot stand in an address; write {remedy}"));
        }
    }
    let mut moment = |key: &str, given: Option<String>| {
        let given = given?;
        let moment = Moment::parse(&given);
        if moment.is_none() {
            wrong(key, format!("`{key}` is {given:?}; write a date such as 2026-03-01 or 2026-03-01T18:30:00+02:00"));
        }
        moment
    };
    let (date, updated) = (moment("date", date), moment("updated", updated));

    let mut switch = |key: &str, value: Option<Value>| match value {
        None => false,
        Some(Value::Bool(value)) => value,
        Some(_) => {
            wrong(key, format!("`{key}` must be true or false, without quotes"));
            false
        }
    };
    let (draft, page) = (switch("draft", take("draft")), switch("page", take("page")));
    let tags = tags(take("tags")).unwrap_or_else(|message| {
        wrong("tags", message);
        Vec::new()
    });
    if problems.is_empty() {
        Ok(FrontMatter { title, date, updated, draft, tags, slug, summary, page, ..FrontMatter::default() })
    } else {
        Err(problems)
    }
}

/// Reads tags from `["a", "b"]` or `"a, b"`. Keeps their order and drops repetitions.
fn tags(value: Option<Value>) -> Result<Vec<String>, String> {
    let list: Vec<String> = match value {
        None => return Ok(Vec::new()),
        Some(Value::Text(text)) => text.split(',').map(|tag| tag.trim().to_owned()).filter(|tag| !tag.is_empty()).collect(),
        Some(Value::List(list)) => list
            .into_iter()
            .map(|tag| match tag {
                Value::Text(text) => Ok(text.trim().to_owned()),
                _ => Err("every tag must be a text; put it in quotes".to_owned()),
            })
            .collect::<Result<_, _>>()?,
        Some(_) => return Err("`tags` must be a list such as [\"rust\", \"http\"]".to_owned()),
    };
    let mut kept: Vec<String> = Vec::new();
    for tag in list {
        let slug = slug::tag_slug(&tag);
        if slug.is_empty() {
            return Err(format!("the tag {tag:?} has neither letter nor digit to make an address of"));
        }
        if !kept.iter().any(|other| slug::tag_slug(other) == slug) {
            kept.push(tag);
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Split<'_>, String> {
        split(Path::new("p.md"), text).map_err(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
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
    }

    #[test]
    fn a_file_without_front_matter_is_all_markdown() {
        for text in ["", "Hello", "# Hi\n+++\n", "---\n\nA rule comes first.\n", "--- x\n"] {
            let split = read(text).expect(text);
            assert_eq!((split.body, split.body_line), (text, 1));
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
}
