//! The theme as files, for those who want to change it, with a guide to what templates are given.

use std::fmt::Write as _;

use super::{LOOKS, LookName, STYLE, embedded_templates};

/// A kind of thing: its name here, its title in the guide, and its fields, each with what it is.
type Kind = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// The list of what templates are given. A test compares it with what they are really given.
const GUIDE: [Kind; 19] = [
    (
        "page",
        "Every page",
        &[
            ("site", "the blog, see below"),
            ("words", "the words of the theme in the language of the blog, see below"),
            (
                "kind",
                "`index`, `post`, `page`, `draft`, `archive`, `year`, `tags`, `tag`, `authors`, `author`, `series`, `search` or `404`",
            ),
            ("title", "the title of the page; none on the first page of the index"),
            ("path", "the address of the page; none for `404`"),
            ("summary", "one or two sentences, or none"),
            ("language", "the language of the page: that of the post, or that of the blog"),
            ("noindex", "whether search engines are asked to leave the page out"),
            ("head", "what programs read in the head of the page: `head.html` shows all of it"),
        ],
    ),
    (
        "site",
        "`site`",
        &[
            ("title", "the title of the blog"),
            ("description", "its description, or none"),
            ("author", "its author"),
            ("base", "scheme and host, such as `https://example.org`, for addresses that must be absolute"),
            ("language", "its language"),
            ("dir", "`ltr` or `rtl`"),
            ("footer", "the line at the foot, or none"),
            ("style", "the address of the style"),
            ("fonts", "the addresses of fonts that every page needs"),
            ("icon", "the address of the icon"),
            ("logo", "the address of the logo, or none"),
            ("logo_webp", "its address as WebP, or none"),
            ("logo_width", "its width where it is 36 pixels high, or none"),
            ("nav", "the links at the top: a list of links"),
            ("has_tags", "whether a post has a tag"),
            ("has_authors", "whether the blog has several authors"),
        ],
    ),
    ("index", "`index.html`, besides", &[("entries", "the posts, see below"), ("pages", "where the page stands among the others")]),
    (
        "post page",
        "`post.html`, besides",
        &[
            ("post", "the post"),
            ("is_page", "whether it is a page, which has no date"),
            ("newer", "the next post in time: a link, or none"),
            ("older", "the one before: a link, or none"),
            ("related", "posts with the same tags, each as in lists of titles, with `cover`"),
            ("series", "the series of the post, or none"),
            ("translations", "the same text in other languages"),
        ],
    ),
    ("archive", "`archive.html`, besides", &[("years", "the years, newest first")]),
    ("tags page", "`tags.html`, besides", &[("tags", "the tags"), ("pages", "as above")]),
    ("authors page", "`authors.html`, besides", &[("authors", "the authors"), ("pages", "as above")]),
    (
        "list",
        "`list.html` (a year, a tag, an author, a series), besides",
        &[
            ("entries", "the posts, as in lists of titles"),
            ("pages", "as above"),
            ("count", "the number of posts on all pages"),
            ("posts", "that number in words: 12 posts"),
            ("first", "the number of the first post on this page"),
            ("author", "the author, on the page of one"),
            ("feed", "the address of the feed of the tag, or none"),
        ],
    ),
    ("404", "`404.html`, besides", &[("recent", "the newest posts: a list of links")]),
    (
        "item",
        "A post on the index",
        &[
            ("title", "its title"),
            ("url", "its address"),
            ("date", "when it was published: a date"),
            ("updated", "when it was changed: a date, or none"),
            ("year", "the year of `date`"),
            ("reading", "how long it takes to read, in words"),
            ("summary", "its summary"),
            ("cover", "its picture, or none: `{% with picture = post.cover %}{% include \"picture.html\" %}{% endwith %}` shows it"),
            ("tags", "its tags"),
            ("authors", "its authors with `name` and `url`, if the blog has several"),
            ("language", "its language, if it is another than that of the blog"),
            ("is_draft", "whether it is not published yet"),
        ],
    ),
    (
        "entry",
        "`post`: a post on its own page has all that, and",
        &[
            ("html", "the text: write `{{ post.html|safe }}`"),
            ("words", "the words of the theme in the language of the post"),
            ("toc", "its headings"),
            ("people", "its authors, with what is known of them"),
        ],
    ),
    (
        "line",
        "A post in lists of titles",
        &[("title", "as above"), ("url", "as above"), ("date", "as above"), ("language", "as above"), ("is_draft", "as above")],
    ),
    ("date", "A date", &[("text", "for people: 1 March 2026"), ("iso", "for machines: 2026-03-01")]),
    (
        "pages",
        "`pages`",
        &[
            ("number", "the number of this page, from 1"),
            ("count", "the number of pages"),
            ("before", "the address of the page before, or none"),
            ("after", "the address of the page after, or none"),
        ],
    ),
    (
        "person",
        "An author",
        &[
            ("name", "the name"),
            ("url", "the address of the author's page"),
            ("bio", "one or two sentences, or none"),
            ("website", "the author's own site, or none"),
            ("picture", "the address of a picture of 72 pixels on a side and more, or none"),
            ("picture_webp", "its address as WebP, or none"),
            ("count", "the number of posts, in the list of authors"),
        ],
    ),
    (
        "tag",
        "A tag",
        &[
            ("title", "the tag"),
            ("url", "the address of its page"),
            ("count", "the number of its posts, in the list of tags"),
            ("weight", "1 to 4: how many that is among the others"),
        ],
    ),
    (
        "series",
        "`series`",
        &[
            ("title", "the title of the series"),
            ("url", "the address of its page"),
            ("number", "which part the post is"),
            ("count", "the number of parts"),
            ("part", "both in words: Part 2 of 5"),
            ("parts", "the parts around this one, each with `number`, `title`, `url` and `is_this`"),
        ],
    ),
    (
        "year",
        "A year",
        &[
            ("year", "the year"),
            ("url", "the address of its page"),
            ("count", "the number of its posts"),
            ("entries", "its newest posts, as in lists of titles; fewer than `count` if one page cannot hold them"),
        ],
    ),
    (
        "others",
        "Links, headings and translations",
        &[
            ("link", "`title` and `url`"),
            ("heading", "`level` (2 to 6), `id` and `text`"),
            ("translation", "`language`, `name` (of the language), `title` and `url`"),
        ],
    ),
];

/// Returns the names of the looks, the default first.
pub fn looks() -> impl Iterator<Item = &'static str> {
    LOOKS.iter().map(|look| look.name)
}

/// Returns the files of the look of this name, or `None` if there is none: each with its name in the folder `theme`. They are the templates, the
/// style, and a `README.md` with what templates are given.
#[must_use]
pub fn theme_files(look: &str) -> Option<Vec<(&'static str, String)>> {
    let look = LookName::find(look)?;
    let mut files: Vec<_> = embedded_templates(look).map(|(name, source)| (name, source.to_owned())).collect();
    files.push(("style.css", [STYLE, look.get().style].join("\n").trim_end().to_owned() + "\n"));
    files.push(("README.md", guide(look)));
    Some(files)
}

fn guide(look: LookName) -> String {
    let mut text = format!("# The look `{}` as files\n", look.get().name);
    text += "\n\
        Each file here replaces the built-in one with the same name. Keep those that you change and delete the others: they are then renewed with\n\
        Seawall. A saved file shows at once. If a template has a mistake, its file and line are told, and the last good one stays.\n\n\
        - To change colours and sizes, delete `style.css` and write a `custom.css`: it follows the style of the look.\n\
        - Other files (styles, scripts, fonts, pictures) are served under addresses that change with their content. `{{ asset('name') }}` is the\n\
        \x20 address in a template; in a style, `url(name)` becomes it.\n\
        - Files whose names end in `.html` are templates. One can include and extend all others, with their names alone.\n\n\
        The language of templates is [MiniJinja](https://docs.rs/minijinja/latest/minijinja/syntax/index.html). Values are escaped unless marked with\n\
        `|safe`. A name that does not exist is a mistake.\n";
    for (_, title, fields) in GUIDE {
        let _ = write!(text, "\n## {title}\n\n| name | what it is |\n|---|---|\n");
        for (name, meaning) in fields {
            let _ = writeln!(text, "| `{name}` | {meaning} |");
        }
    }
    text + "\n## `words`\n\nSee the templates: every word that they write is one of these. A text in another place can simply be written there.\n"
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use crate::{BlogOptions, build_texts, view::View};

    /// Returns the kind of thing that has its fields under a name.
    fn kind_of(key: &str, of: &str) -> Option<&'static str> {
        Some(match key {
            "site" => "site",
            "entries" if of == "index" => "item",
            "entries" => "line",
            "post" => "entry",
            "date" | "updated" => "date",
            "pages" => "pages",
            "people" | "author" => "person",
            "tags" => "tag",
            "series" => "series",
            "years" => "year",
            _ => return None,
        })
    }

    fn seen(value: &Value, kind: &str, all: &mut BTreeSet<(String, String)>) {
        match value {
            Value::Array(list) => list.iter().for_each(|value| seen(value, kind, all)),
            Value::Object(fields) => {
                for (key, value) in fields {
                    all.insert((kind.to_owned(), key.clone()));
                    let is_own_person = key == "author" && kind == "site";
                    if let Some(inner) = kind_of(key, kind).filter(|_| !is_own_person && key != "words") {
                        seen(value, inner, all);
                    } else if key == "authors" && kind == "authors page" {
                        seen(value, "person", all);
                    }
                }
            }
            _ => {}
        }
    }

    #[test]
    fn the_guide_names_what_templates_are_given_and_nothing_else() {
        let texts = [
            (
                "a.md",
                "+++\ntitle = \"A\"\ndate = \"2026-01-01\"\nupdated = \"2026-02-01\"\ntags = [\"x\"]\nauthor = \"Ann\"\nseries = \"S\"\n+++\n## H\n\ntext",
            ),
            ("b.md", "+++\ntitle = \"B\"\ndate = \"2026-01-02\"\ntags = [\"x\"]\nauthor = \"Bob\"\nseries = \"S\"\n+++\ntext"),
            ("pages/about.md", "# About"),
        ];
        let now = semantics::Timestamp::from_secs(1_790_812_800);
        let site = build_texts(&texts, &BlogOptions::default(), now).expect("builds");
        let model = site.model();
        let mut all = BTreeSet::new();
        let views = [
            ("index", View::Index(1)),
            ("post page", View::Post(0)),
            ("post page", View::Post(1)),
            ("archive", View::Archive),
            ("list", View::Year(2026, 1)),
            ("tags page", View::Tags(1)),
            ("list", View::Tag("/tags/x/".to_owned(), 1)),
            ("authors page", View::Authors(1)),
            ("list", View::Author("/authors/ann/".to_owned(), 1)),
            ("404", View::NotFound),
        ];
        let of = |wanted: &str| GUIDE.iter().find(|(kind, ..)| *kind == wanted).map(|(_, _, fields)| *fields).expect("a kind");
        let is_on_every_page = |key: &str| of("page").iter().any(|(name, _)| *name == key);
        for (kind, view) in views {
            let context = serde_json::to_value(&view.drawable(model).context).expect("a value");
            let mut here = BTreeSet::new();
            seen(&context, kind, &mut here);
            all.extend(
                here.into_iter().map(|(at, key)| if at == kind && is_on_every_page(&key) { ("page".to_owned(), key) } else { (at, key) }),
            );
        }
        // A post on its own page has what a list shows as well.
        let is_of_item = |key: &str| of("item").iter().any(|(name, _)| *name == key);
        let given: BTreeSet<_> = all
            .into_iter()
            .map(|(kind, key)| if kind == "entry" && is_of_item(&key) { ("item".to_owned(), key) } else { (kind, key) })
            .collect();
        let told: BTreeSet<_> = GUIDE
            .iter()
            .filter(|(kind, ..)| *kind != "others")
            .flat_map(|(kind, _, fields)| fields.iter().map(|(name, _)| ((*kind).to_owned(), (*name).to_owned())))
            .collect();
        let missing: Vec<_> = given.difference(&told).collect();
        let invented: Vec<_> = told.difference(&given).collect();
        assert!(missing.is_empty() && invented.is_empty(), "not told: {missing:?}; not given: {invented:?}");
    }

    #[test]
    fn every_look_can_be_written_out() {
        for look in looks() {
            let files = theme_files(look).expect("a look");
            assert!(files.iter().any(|(name, _)| *name == "base.html") && files.iter().all(|(_, text)| !text.is_empty()), "{look}");
        }
        assert!(theme_files("unknown").is_none());
    }
}
