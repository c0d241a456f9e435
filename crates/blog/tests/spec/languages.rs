//! A blog in another language has no English word, and dates as one writes them there.

use blog::BlogOptions;

use crate::folder::{Folder, lines, page};

fn folder(language: &str) -> Folder {
    Folder::of(&[
        ("blog.toml", &format!("title = \"Q\"\nauthor = \"Q\"\nlanguage = \"{language}\"\n")),
        (
            "2026-03-01-a.md",
            "---\ntags: [q]\nseries: Q\ntoc: true\nupdated: 2026-05-21\n---\n# Q1\n\n## Q2\n\nq[^1]\n\n[^1]: q\n\n> [!NOTE]\n> q\n\n> [!TIP]\n> q\n\n> [!WARNING]\n> q\n\n|q|q|\n|-|-|\n|q|q|\n\n- [ ] q\n- [x] q\n\n```\nq\n```",
        ),
        ("2026-02-01-b.md", "---\ntags: [q]\nseries: Q\nauthor: R\n---\n# Q3"),
        ("pages/p.md", "# Q4"),
    ])
}

/// The dates are those of CLDR, `dateFormats-long`; `en` without a territory is that of `en-001`.
const DATES: [(&str, &str); 22] = [
    ("en", "1 March 2026"),
    ("en-US", "March 1, 2026"),
    ("en-GB", "1 March 2026"),
    ("cs", "1. března 2026"),
    ("da", "1. marts 2026"),
    ("de", "1. März 2026"),
    ("de-AT", "1. März 2026"),
    ("es", "1 de marzo de 2026"),
    ("fi", "1. maaliskuuta 2026"),
    ("fr", "1 mars 2026"),
    ("it", "1 marzo 2026"),
    ("ja", "2026年3月1日"),
    ("ko", "2026년 3월 1일"),
    ("nb", "1. mars 2026"),
    ("nl", "1 maart 2026"),
    ("pl", "1 marca 2026"),
    ("pt", "1 de março de 2026"),
    ("ru", "1 марта 2026 г."),
    ("sv", "1 mars 2026"),
    ("tr", "1 Mart 2026"),
    ("uk", "1 березня 2026 р."),
    ("zh-Hant-TW", "2026年3月1日"),
];

#[test]
fn dates_are_written_as_people_write_them() {
    for (language, expected) in DATES {
        let html = page(&folder(language).blog(), "/a/");
        assert!(html.contains(&format!("<time datetime=\"2026-03-01\">{expected}</time>")), "{language}: {html}");
    }
}

#[test]
fn a_language_that_is_not_known_has_english_words_and_a_warning() {
    let folder = folder("tlh");
    let blog = folder.blog();
    let told = lines(blog.site().problems());
    assert!(told.iter().any(|line| line.starts_with("blog.toml:3:") && line.contains("tlh")), "{told:?}");
    assert!(page(&blog, "/").contains("<html lang=\"tlh\""));
    for known in ["de-AT", "pt-BR", "no", "zh-Hant-HK", "en"] {
        let folder = self::folder(known);
        assert_eq!(lines(folder.blog().site().problems()), Vec::<String>::new(), "{known}");
    }
}

#[test]
fn what_is_no_language_tag_is_told() {
    for wrong in ["german", "de_AT!", "", "d", "<b>", "en-"] {
        let folder = Folder::of(&[]);
        let options = BlogOptions { language: Some(wrong.to_owned()), ..BlogOptions::default() };
        let refused = blog::build(folder.path(), &options, crate::folder::NOW);
        // `german` is well-formed, if no language: it has English words and a warning.
        match refused {
            Ok(site) => assert!(wrong == "german" && !site.problems().is_empty(), "{wrong}"),
            Err(error) => assert!(error.to_string().contains("language"), "{error}"),
        }
    }
}

/// A text in its own language has the words of that language, in whatever blog.
#[test]
fn a_text_in_another_language_has_its_words() {
    let folder = Folder::of(&[("2026-03-01-a.md", "---\nlang: de\n---\n# Meer\n\n> [!NOTE]\n> Ein Hinweis.")]);
    let html = page(&folder.blog(), "/a/");
    assert!(html.contains("1. März 2026") && html.contains("1 Minute Lesezeit") && html.contains(">Hinweis<"), "{html}");
}
