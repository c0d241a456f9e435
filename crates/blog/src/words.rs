//! The words that the theme and the texts need, in the language of the blog.
//!
//! Each language is a file in `words/`: a constant with every word, so a language that lacks one does not compile. Plural forms, dates and the
//! names of months are those of CLDR.

mod cs;
mod da;
mod de;
mod en;
mod es;
mod fi;
mod fr;
mod it;
mod ja;
mod ko;
mod nb;
mod nl;
mod pl;
mod plural;
mod pt;
mod ru;
mod sv;
mod tag;
mod tr;
mod uk;
mod zh;

use jiff::civil::Date;
use serde::Serialize;

use self::plural::Rule;
pub(crate) use self::{plural::Plurals, tag::is_language_tag};

/// The words of one language. Templates see them as `words`.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Words {
    /// The language tag of these words. It identifies them: no two languages have the same.
    pub(crate) language: &'static str,
    /// The name of the language in the language itself.
    pub(crate) name: &'static str,
    /// The direction of the script: `ltr` or `rtl`.
    pub(crate) dir: &'static str,
    /// The language and territory that Open Graph expects if the blog's tag names no territory, such as `de_DE`.
    #[serde(skip)]
    pub(crate) locale: &'static str,
    /// The months as they stand in a date.
    #[serde(skip)]
    pub(crate) months: [&'static str; 12],
    /// A date, with `{d}`, `{month}` and `{y}` in place of its parts.
    #[serde(skip)]
    pub(crate) date: &'static str,
    #[serde(skip)]
    pub(crate) plural: Rule,

    // Parts of every page.
    pub(crate) skip: &'static str,
    pub(crate) menu: &'static str,
    pub(crate) home: &'static str,
    pub(crate) pages: &'static str,
    pub(crate) posts: &'static str,
    pub(crate) tags: &'static str,
    pub(crate) archive: &'static str,
    pub(crate) author: &'static str,
    pub(crate) authors: &'static str,
    pub(crate) feed: &'static str,
    /// The word for the languages into which a text is translated.
    pub(crate) languages: &'static str,
    pub(crate) all_posts: &'static str,
    pub(crate) top: &'static str,

    // Lists.
    pub(crate) newer: &'static str,
    pub(crate) older: &'static str,
    /// The name of the links to further pages of a list.
    pub(crate) index_pages: &'static str,
    pub(crate) read_more: &'static str,
    pub(crate) empty: &'static str,
    pub(crate) untagged: &'static str,
    /// `Page {n} of {count}`.
    pub(crate) page_of: &'static str,
    /// `{n} posts`.
    pub(crate) posts_count: Plurals,

    // Posts.
    pub(crate) published: &'static str,
    pub(crate) updated: &'static str,
    /// `{n} min read`.
    pub(crate) minutes: Plurals,
    pub(crate) before: &'static str,
    pub(crate) after: &'static str,
    /// The name of the links to the posts before and after.
    pub(crate) neighbours: &'static str,
    pub(crate) related: &'static str,
    pub(crate) series: &'static str,
    /// `Part {n} of {count}`.
    pub(crate) part_of: &'static str,
    pub(crate) contents: &'static str,
    pub(crate) draft: &'static str,
    pub(crate) scheduled: &'static str,
    /// The text on a page that only the author sees.
    pub(crate) preview: &'static str,

    // Texts.
    pub(crate) footnote: &'static str,
    pub(crate) footnotes: &'static str,
    pub(crate) back: &'static str,
    pub(crate) section: &'static str,
    pub(crate) table: &'static str,
    pub(crate) code: &'static str,
    /// The state of a ticked box in a list of tasks.
    pub(crate) done: &'static str,
    pub(crate) to_do: &'static str,
    pub(crate) note: &'static str,
    pub(crate) tip: &'static str,
    pub(crate) important: &'static str,
    pub(crate) warning: &'static str,
    pub(crate) caution: &'static str,
    /// The kinds of cards that lead to a video and to a message on a social network.
    pub(crate) video: &'static str,
    pub(crate) message: &'static str,
    /// `Watch on {site}`.
    pub(crate) watch_on: &'static str,
    /// `Open on {site}`.
    pub(crate) open_on: &'static str,

    // The page of the search.
    pub(crate) search: &'static str,
    pub(crate) search_label: &'static str,
    pub(crate) searching: &'static str,
    /// `{n} results`.
    pub(crate) results: Plurals,
    pub(crate) nothing_found: &'static str,
    pub(crate) search_failed: &'static str,
    /// The text where the index is too large to hold everything.
    pub(crate) search_partial: &'static str,
    /// The advice how one finds a post where the search does not work.
    pub(crate) search_without_script: &'static str,

    // The page for addresses that do not exist.
    pub(crate) not_found: &'static str,
    pub(crate) not_found_text: &'static str,
}

/// Every language, English first.
const LANGUAGES: [&Words; 19] = [
    &en::WORDS,
    &cs::WORDS,
    &da::WORDS,
    &de::WORDS,
    &es::WORDS,
    &fi::WORDS,
    &fr::WORDS,
    &it::WORDS,
    &ja::WORDS,
    &ko::WORDS,
    &nb::WORDS,
    &nl::WORDS,
    &pl::WORDS,
    &pt::WORDS,
    &ru::WORDS,
    &sv::WORDS,
    &tr::WORDS,
    &uk::WORDS,
    &zh::SIMPLIFIED,
];

/// The words of a language are told apart by its tag alone: they are constants, and hashing them all for every page would cost more than the
/// rest of the page.
impl std::hash::Hash for Words {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.language.hash(state);
    }
}

impl PartialEq for Words {
    fn eq(&self, other: &Self) -> bool {
        self.language == other.language
    }
}

impl Eq for Words {}

impl Words {
    /// Returns the words of the language with this tag (BCP 47), or English ones.
    pub(crate) fn of(language: &str) -> &'static Self {
        Self::find(language).unwrap_or(&en::WORDS)
    }

    /// Returns the words of a text in the language `own`, in a blog in the language `of_blog`: where there are none in its own language, it
    /// has those of the blog.
    pub(crate) fn of_text(own: &str, of_blog: &str) -> &'static Self {
        Self::find(own).unwrap_or_else(|| Self::of(of_blog))
    }

    /// Returns the words of the language with this tag, or `None` if there are none: the "lookup" of RFC 4647 §3.4, which drops subtags from
    /// the end until a language matches. `de-AT` has the words of `de`.
    pub(crate) fn find(language: &str) -> Option<&'static Self> {
        let mut tag = tag::canonical(language);
        loop {
            let special = match tag.as_str() {
                // CLDR has their dates by other patterns than `en-001`, or another name of a month.
                "en-us" | "en-ca" | "en-ph" | "en-jp" => Some(&en::AMERICAN),
                "de-at" => Some(&de::AUSTRIAN),
                "zh-hant" => Some(&zh::TRADITIONAL),
                _ => None,
            };
            let known = special.or_else(|| LANGUAGES.into_iter().find(|words| words.language.eq_ignore_ascii_case(&tag)));
            if known.is_some() {
                return known;
            }
            tag.truncate(tag.rfind('-')?);
        }
    }

    /// Returns the tags of all languages, for messages.
    pub(crate) fn languages() -> impl Iterator<Item = &'static str> {
        LANGUAGES.into_iter().map(|words| words.language)
    }

    /// Writes a date as one writes it in a sentence: `1 March 2026`.
    pub(crate) fn long_date(&self, day: Date) -> String {
        let month = usize::try_from(day.month()).ok().and_then(|month| self.months.get(month - 1)).copied().unwrap_or_default();
        self.date.replace("{d}", &day.day().to_string()).replace("{month}", month).replace("{y}", &day.year().to_string())
    }

    /// Says how long a text takes to read.
    pub(crate) fn minutes(&self, minutes: usize) -> String {
        self.count(&self.minutes, minutes)
    }

    /// Says how many posts there are.
    pub(crate) fn posts_count(&self, count: usize) -> String {
        self.count(&self.posts_count, count)
    }

    /// Says which page of how many this is.
    pub(crate) fn page_of(&self, number: usize, count: usize) -> String {
        of(self.page_of, number, count)
    }

    /// Says which part of a series this is.
    pub(crate) fn part_of(&self, number: usize, count: usize) -> String {
        of(self.part_of, number, count)
    }

    fn count(&self, forms: &Plurals, count: usize) -> String {
        forms.form(self.plural.category(count)).replace("{n}", &count.to_string())
    }
}

fn of(pattern: &str, number: usize, count: usize) -> String {
    pattern.replace("{n}", &number.to_string()).replace("{count}", &count.to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use semantics::Timestamp;
    use serde_json::Value;

    use super::*;
    use crate::{BlogOptions, SiteResource, build_texts};

    const NOW: Timestamp = Timestamp::from_secs(1_790_812_800);

    /// Returns all texts of a language by their keys, plural forms apart.
    fn all(words: &Words) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for (key, value) in serde_json::to_value(words).expect("a value").as_object().expect("fields") {
            match value {
                Value::Object(forms) => {
                    all.extend(forms.iter().map(|(form, text)| (format!("{key}.{form}"), text.as_str().expect("a text").to_owned())));
                }
                text => drop(all.insert(key.clone(), text.as_str().expect("a text").to_owned())),
            }
        }
        all.retain(|key, _| !["language", "name", "dir"].contains(&key.as_str()));
        all
    }

    /// Returns every page of a blog that has everything: several authors, a series, notes, tasks, code, enough posts for several pages, and
    /// none.
    fn pages(language: &str) -> Vec<(String, String)> {
        let mut texts: Vec<(String, String)> = (1..=23)
            .map(|day| {
                (format!("2026-03-{day:02}-{day}.md"), format!("---\ntitle: Q{day}\ntags: [q]\nseries: Q\nauthor: Q{}\n---\nq", day % 2))
            })
            .collect();
        let whole = "---\ntitle: Q\ndate: 2026-04-01\nupdated: 2026-05-21\ntags: [q]\ntoc: true\n---\n## Q1\n\nq[^1]\n\n[^1]: q\n\n## Q2\n\n## Q3\n\n\
                     > [!NOTE]\n> q\n\n> [!TIP]\n> q\n\n> [!IMPORTANT]\n> q\n\n> [!WARNING]\n> q\n\n> [!CAUTION]\n> q\n\n\
                     |q|q|\n|-|-|\n|q|q|\n\n- [ ] q\n- [x] q\n\n```\nq\n```\n\nhttps://www.youtube.com/watch?v=aaaaaaaaaaa\n";
        texts.push(("whole.md".to_owned(), whole.to_owned()));
        texts.push(("whole.eo.md".to_owned(), "---\ntitle: Q\ndate: 2026-04-01\n---\nq".to_owned()));
        texts.push(("pages/p.md".to_owned(), "---\ntitle: Q\n---\nq".to_owned()));
        let texts: Vec<_> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let options = BlogOptions { title: Some("Q".to_owned()), language: Some(language.to_owned()), ..BlogOptions::default() };
        let mut pages = Vec::new();
        for texts in [&texts[..], &[]] {
            let site = build_texts(texts, &options, NOW).expect("builds");
            for (path, _) in site.addresses() {
                if let Some(SiteResource::Page(page)) = site.find(path, "http://blog.test").filter(|_| !path.starts_with("/theme/"))
                    && page.content_type.starts_with("text/html")
                {
                    pages.push((path.to_owned(), String::from_utf8(page.body.to_vec()).expect("text")));
                }
            }
            pages.push(("404".to_owned(), String::from_utf8(site.not_found("http://blog.test").body.to_vec()).expect("text")));
        }
        pages
    }

    /// Returns the texts and the attributes that people hear or read, with a space around each.
    fn read_by_people(page: &str) -> String {
        let mut read = crate::markup::text(page);
        let attributes = [
            "aria-label=\"",
            "title=\"",
            "alt=\"",
            "placeholder=\"",
            "content=\"",
            "\"name\":\"",
            "data-searching=\"",
            "data-nothing=\"",
            "data-failed=\"",
            "data-partial=\"",
            "data-one=\"",
            "data-few=\"",
            "data-many=\"",
            "data-other=\"",
        ];
        for mark in attributes {
            for rest in page.split(mark).skip(1) {
                read.push_str(" | ");
                read.push_str(rest.split('"').next().unwrap_or_default());
            }
        }
        read
    }

    fn has_words(text: &str, words: &str) -> bool {
        text.match_indices(words).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + words.len()..].chars().next();
            ![before, after].into_iter().flatten().any(char::is_alphanumeric)
        })
    }

    #[test]
    fn a_blog_in_another_language_has_no_english_word() {
        let english = all(&en::WORDS);
        for words in LANGUAGES.into_iter().skip(1).chain([&zh::TRADITIONAL]) {
            let own = all(words);
            let foreign: BTreeMap<_, _> = english.iter().filter(|(_, text)| !own.values().any(|own| has_words(own, text))).collect();
            for (path, page) in pages(words.language) {
                let read = read_by_people(&page);
                for (key, text) in &foreign {
                    for part in text.split(['{', '}']).map(str::trim).filter(|part| part.len() > 3 && !["count", "site"].contains(part)) {
                        // A part such as `Page` can be of this language as well.
                        if own.values().any(|own| has_words(own, part)) {
                            continue;
                        }
                        assert!(!has_words(&read, part), "{}: {path} has the English {key}, {part:?}: {read}", words.language);
                    }
                }
            }
        }
    }

    /// Words that are the same as in English are the exception, and deliberate.
    #[test]
    fn every_language_has_words_of_its_own() {
        let english = all(&en::WORDS);
        for words in LANGUAGES.into_iter().skip(1).chain([&zh::TRADITIONAL]) {
            let own = all(words);
            let same: Vec<_> = english.iter().filter(|(key, text)| own[*key] == **text).map(|(key, _)| key.as_str()).collect();
            assert!(same.len() <= 10, "{}: {same:?}", words.language);
            for (key, text) in &own {
                assert!(!text.trim().is_empty() && text.trim() == text, "{}: {key}", words.language);
                for place in ["{n}", "{count}", "{site}"] {
                    assert_eq!(text.contains(place), english[key].contains(place), "{}: {key}: {text}", words.language);
                }
            }
        }
    }

    /// CLDR, `dateFormats-long`, for every month, as ICU writes it. `en` without a territory is that of `en-001`.
    #[test]
    fn dates_are_those_of_cldr() {
        for line in include_str!("words/cldr_dates.txt").lines().filter(|line| !line.starts_with('#')) {
            let (tag, dates) = line.split_once('\t').expect("a language and its dates");
            let words = Words::find(tag).expect("known");
            for (month, expected) in (1..).zip(dates.split('|')) {
                let day = Date::new(2026, month, 21).expect("a date");
                assert_eq!(words.long_date(day), expected, "{tag}");
            }
        }
    }

    /// RFC 4647 §3.4: subtags are dropped from the end until something matches.
    #[test]
    fn languages_are_found_by_the_lookup_of_bcp_47() {
        let cases = [
            ("de", Some("de")),
            ("DE-ch", Some("de")),
            ("de-AT-1996", Some("de-AT")),
            ("de-CH-1901-x-mine", Some("de")),
            ("en-GB", Some("en")),
            ("en-US", Some("en-US")),
            ("en-us-u-ca-gregory", Some("en-US")),
            ("pt-BR", Some("pt")),
            ("no", Some("nb")),
            ("nn-NO", Some("nb")),
            ("zh", Some("zh")),
            ("zh-Hans-TW", Some("zh")),
            ("zh-TW", Some("zh-Hant")),
            ("zh-Hant-HK", Some("zh-Hant")),
            // CLDR, "Likely Subtags": Cantonese is written in traditional characters.
            ("yue", Some("zh-Hant")),
            ("tlh", None),
            ("d", None),
            ("", None),
        ];
        for (tag, expected) in cases {
            assert_eq!(Words::find(tag).map(|words| words.language), expected, "{tag}");
        }
        assert_eq!(Words::of("tlh").language, "en");
    }

    #[test]
    fn numbers_stand_with_the_form_that_they_need() {
        let cases = [
            ("en", 1, "1 post"),
            ("de", 2, "2 Beiträge"),
            ("fr", 0, "0 article"),
            ("cs", 3, "3 příspěvky"),
            ("pl", 22, "22 wpisy"),
            ("pl", 25, "25 wpisów"),
            ("ru", 21, "21 запись"),
            ("uk", 12, "12 дописів"),
            ("ja", 5, "5件の記事"),
        ];
        for (tag, count, expected) in cases {
            assert_eq!(Words::of(tag).posts_count(count), expected, "{tag}");
        }
        assert_eq!(Words::of("ja").page_of(2, 7), "7ページ中2ページ目");
    }
}
