//! What is not meant for readers is not published, is shown to its author, and appears by itself when its time comes.

use blog::BlogOptions;
use semantics::Timestamp;

use crate::folder::{Folder, NOW, answers, drafts, lines, page, rebuilt, rebuilt_at};

/// 3 October 2026, 18:00 in Berlin.
const FRIDAY: &str = "---\ndate: 2026-10-03T18:00:00+02:00\n---\n# On Friday\n\nSecret.";
const DUE: Timestamp = Timestamp::from_secs(1_791_043_200);

fn hidden() -> Folder {
    Folder::of(&[
        ("a.md", "---\ndate: 2026-01-01\n---\n# Alpha"),
        ("later.md", FRIDAY),
        ("unfinished.md", "---\ndraft: true\n---\n# Unfinished\n\nSecret."),
        ("drafts/idea/index.md", "# An idea\n\nSecret. ![cat](cat.svg) [alpha](../../a.md) [unfinished](../../unfinished.md)"),
        ("drafts/idea/cat.svg", "<svg><title>a secret cat</title></svg>"),
        ("_drafts/jekyll.md", "# From Jekyll\n\nSecret."),
        ("_notes.md", "# Notes\n\nSecret."),
        ("_old/b.md", "# Old\n\nSecret."),
        (".obsidian/c.md", "# Vault\n\nSecret."),
        ("theme/readme.md", "# Theme\n\nSecret."),
    ])
}

#[test]
fn nothing_of_what_is_hidden_reaches_readers() {
    let folder = hidden();
    let blog = folder.blog();
    for (path, answer) in answers(&blog.site()) {
        let told = answer.to_lowercase();
        assert!(!told.contains("secret") && !told.contains("on friday") && !told.contains("unfinished"), "{path}: {answer}");
    }
    assert_eq!(lines(blog.site().problems()), Vec::<String>::new());
}

#[test]
fn authors_see_drafts_and_what_is_to_come_apart_from_the_site() {
    let folder = hidden();
    let blog = folder.blog();
    let site = blog.site();
    let mut shown = drafts(&site);
    shown.sort_unstable();
    let titles: Vec<_> = shown.iter().map(|(path, title, _)| (*path, *title)).collect();
    let expected = [("/idea/", "An idea"), ("/jekyll/", "From Jekyll"), ("/later/", "On Friday"), ("/unfinished/", "Unfinished")];
    assert_eq!(titles, expected);
    assert!(shown.iter().all(|(.., text)| text.contains("Secret.")));
    // What is seen under a private address stays below it, and what all readers see is at its own.
    let (.., idea) = &shown[0];
    assert!(
        idea.contains("src=\"../drafts/idea/cat.svg\"") && idea.contains("href=\"../unfinished/\"") && idea.contains("href=\"/a/\""),
        "{idea}"
    );
    assert!(site.draft("/drafts/idea/cat.svg", "").is_some() && site.find("/drafts/idea/cat.svg", "").is_none());
    assert!(site.draft("/a/", "").is_none());
    let dues: Vec<_> = site.drafts().filter_map(|draft| draft.due.map(|due| (draft.file.to_owned(), due.as_second()))).collect();
    assert_eq!(dues, [("later.md".to_owned(), i64::try_from(DUE.as_secs()).expect("fits"))]);
}

#[test]
fn a_post_appears_at_its_time_and_not_before() {
    let folder = hidden();
    let blog = folder.blog();
    let due = blog.site().next_due().expect("one to come");
    assert_eq!(u64::try_from(due.as_millisecond()).expect("after 1970"), DUE.as_millis());
    assert!(rebuilt_at(&blog, Timestamp::from_millis(DUE.as_millis() - 1)).is_empty());
    let at_last = rebuilt_at(&blog, DUE);
    for path in ["/", "/later", "/later/", "/feed.xml", "/sitemap.xml"] {
        assert!(at_last.paths.contains(&path.to_owned()), "{path}: {at_last:?}");
    }
    assert_eq!((at_last.read, at_last.drafts.as_slice()), (0, &["/later".to_owned(), "/later/".to_owned()][..]));
    assert!(page(&blog, "/").contains("On Friday") && page(&blog, "/later/").contains("Secret."));
    assert_eq!(blog.site().next_due(), None);
    // A clock that is set back takes it back: nobody knows better than the clock.
    assert!(rebuilt(&blog).paths.contains(&"/later/".to_owned()) && !blog.site().contains("/later/"));
}

#[test]
fn with_drafts_everything_is_published_and_marked() {
    let folder = hidden();
    let blog = folder.blog_with(BlogOptions { drafts: true, ..BlogOptions::default() });
    for path in ["/a/", "/later/", "/unfinished/", "/idea/", "/jekyll/", "/drafts/idea/cat.svg"] {
        assert!(blog.site().contains(path), "{path}");
    }
    assert_eq!(blog.site().drafts().count(), 0);
    assert!(page(&blog, "/idea/").contains("src=\"/drafts/idea/cat.svg\""));
    for path in ["/notes/", "/old/", "/c/", "/readme/"] {
        assert!(!blog.site().contains(path), "{path}");
    }
}

#[test]
fn a_link_to_what_is_not_published_yet_is_told_and_leads_there_in_time() {
    let folder = Folder::of(&[("a.md", "---\ndate: 2026-01-01\n---\n# Alpha\n\n[soon](later.md)"), ("later.md", FRIDAY)]);
    let blog = folder.blog();
    assert_eq!(lines(blog.site().problems()).len(), 1);
    assert!(lines(blog.site().problems())[0].starts_with("a.md:6: link to \"later.md\": it is not published yet"));
    let at_last = rebuilt_at(&blog, DUE);
    assert_eq!((at_last.mended.len(), at_last.problems.len()), (1, 0));
    assert!(page(&blog, "/a/").contains("href=\"/later/\""));
}

/// An unfinished text has mistakes. They keep nothing from readers.
#[test]
fn mistakes_in_a_draft_are_warnings() {
    let folder = Folder::of(&[("a.md", "---\ndraft: true\n---\nNo title yet, and [no target](gone.md)")]);
    let blog = folder.blog();
    let severities: Vec<_> = blog.site().problems().iter().map(|problem| problem.severity).collect();
    assert_eq!(severities, [blog::Severity::Warning; 2]);
}

#[test]
fn a_text_that_its_author_withdraws_is_gone_even_if_it_is_wrong_too() {
    let folder = Folder::of(&[("a.md", "---\ndate: 2026-01-01\n---\n# Alpha")]);
    let blog = folder.blog();
    folder.write("a.md", "---\ndraft: true\n---\n# Alpha\n\n![gone](gone.png)");
    assert!(rebuilt(&blog).paths.contains(&"/a/".to_owned()));
    assert!(!blog.site().contains("/a/"));
    let _ = NOW;
}
