//! Whatever an author does: what is said to have changed is what has changed, and the site is the one that a new start would build.

use blog::{BlogOptions, Severity, build};
use proptest::prelude::*;
use semantics::Timestamp;

use crate::folder::{Folder, NOW, answers, differing, drafts};

const TEXTS: usize = 6;
const TAGS: [&str; 4] = ["sea", "wall", "Salt & Sun", "c++"];

/// One thing that an author does.
#[derive(Debug, Clone)]
enum Edit {
    Write(usize, Text),
    Remove(usize),
    Picture(u8),
    NoPicture,
    Settings(usize),
    /// Time goes by, in days.
    Wait(u64),
}

#[derive(Debug, Clone)]
struct Text {
    title: u8,
    body: u8,
    /// The day of October 2026; the first is today.
    day: u8,
    tags: Vec<&'static str>,
    link: Option<usize>,
    has_picture: bool,
    is_draft: bool,
    is_page: bool,
    slug: Option<u8>,
    alias: bool,
    series: bool,
    author: Option<u8>,
    summary: Option<u8>,
}

const SETTINGS: [&str; 7] = [
    "",
    "title = \"Other\"",
    "posts_per_page = 2",
    "language = \"de\"",
    "footer = \"Line\"",
    "base_url = \"https://example.org\"",
    "author = \"Ann\"\ndescription = \"About\"",
];

fn name(index: usize) -> String {
    if index == 5 { "pages/p5.md".to_owned() } else { format!("posts/p{index}.md") }
}

fn written(text: &Text) -> String {
    let Text { title, body, day, tags, link, has_picture, is_draft, is_page, slug, alias, series, author, summary } = text;
    let mut lines = vec![format!("+++\ntitle = \"Title {title}\"\ndate = 2026-10-{:02}", day + 1), format!("tags = {tags:?}")];
    lines.extend(slug.map(|slug| format!("slug = \"s{slug}\"")));
    lines.extend(alias.then(|| "aliases = [\"/old/\"]".to_owned()));
    lines.extend(series.then(|| "series = \"Walls\"".to_owned()));
    lines.extend(author.map(|author| format!("authors = [\"Author {author}\"]")));
    lines.extend(summary.map(|summary| format!("summary = \"Summary {summary}\"")));
    lines.push(format!("draft = {is_draft}\npage = {is_page}\n+++\nFirst words.\n\nWords {body}."));
    lines.extend(link.map(|link| format!("[a link](../{})", name(link))));
    lines.extend(has_picture.then(|| "![a picture](../pic.png)".to_owned()));
    lines.join("\n")
}

prop_compose! {
    fn text()(
        (title, body, day) in (0..3_u8, 0..3_u8, 0..4_u8),
        tags in proptest::sample::subsequence(TAGS.to_vec(), 0..=TAGS.len()),
        link in proptest::option::weighted(0.4, 0..TEXTS),
        (has_picture, is_draft, is_page) in (proptest::bool::weighted(0.3), proptest::bool::weighted(0.15), proptest::bool::weighted(0.15)),
        slug in proptest::option::weighted(0.2, 0..3_u8),
        (alias, series) in (proptest::bool::weighted(0.2), proptest::bool::weighted(0.3)),
        author in proptest::option::weighted(0.3, 0..2_u8),
        summary in proptest::option::weighted(0.3, 0..2_u8),
    ) -> Text {
        Text { title, body, day, tags, link, has_picture, is_draft, is_page, slug, alias, series, author, summary }
    }
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        8 => (0..TEXTS, text()).prop_map(|(index, text)| Edit::Write(index, text)),
        2 => (0..TEXTS).prop_map(Edit::Remove),
        1 => (0..3_u8).prop_map(Edit::Picture),
        1 => Just(Edit::NoPicture),
        2 => (0..SETTINGS.len()).prop_map(Edit::Settings),
        1 => (0..3_u64).prop_map(Edit::Wait),
    ]
}

fn done(folder: &Folder, edit: &Edit) {
    let remove = |name: &str| {
        if folder.path().join(name).exists() {
            folder.remove(name);
        }
    };
    match edit {
        Edit::Write(index, text) => folder.write(&name(*index), written(text)),
        Edit::Remove(index) => remove(&name(*index)),
        Edit::Picture(content) => folder.write("pic.png", [b'x', *content]),
        Edit::NoPicture => remove("pic.png"),
        Edit::Settings(index) => folder.write("blog.toml", SETTINGS[*index]),
        Edit::Wait(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_said_to_have_changed_has_changed_and_nothing_else(
        start in proptest::collection::vec(text(), TEXTS),
        edits in proptest::collection::vec(proptest::collection::vec(edit(), 1..3), 1..6),
    ) {
        let folder = Folder::of(&[("pic.png", "a picture")]);
        for (index, text) in start.iter().enumerate() {
            folder.write(&name(index), written(text));
        }
        let options = BlogOptions::default();
        let blog = folder.blog();
        let mut now = NOW;
        for edits in edits {
            let before = blog.site();
            for edit in &edits {
                done(&folder, edit);
                if let Edit::Wait(days) = edit {
                    now = Timestamp::from_secs(now.as_secs() + days * 86_400);
                }
            }
            let rebuilt = blog.rebuild(now).expect("rebuilt");
            let after = blog.site();
            // The index of the search is not made to learn whether it differs: it leaves words out that are in most texts, and is purged
            // whenever a text has other words.
            let differing = differing(&answers(&before), &answers(&after));
            let is_index = |path: &String| path == "/search.json" && !differing.contains(path);
            let told: Vec<String> = rebuilt.paths.iter().filter(|path| !is_index(path)).cloned().collect();
            prop_assert_eq!(&told, &differing, "after {:?}", edits);
            let is_same = before.not_found("http://blog.test").body == after.not_found("http://blog.test").body;
            prop_assert_eq!(rebuilt.not_found, !is_same, "the page for addresses that do not exist, after {:?}", edits);

            // Where a last good version stays, a new start would have none.
            if after.problems().iter().all(|problem| problem.severity == Severity::Warning) {
                let new = build(folder.path(), &options, now).expect("builds");
                prop_assert_eq!(answers(&new), answers(&after), "after {:?}", edits);
                prop_assert_eq!(drafts(&new), drafts(&after));
                prop_assert_eq!(new.problems(), after.problems());
                prop_assert_eq!(new.next_due(), after.next_due());
            }
        }
    }
}
