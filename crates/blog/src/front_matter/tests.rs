use super::*;

fn read(text: &str) -> Result<Split<'_>, String> {
    let split = split(Path::new("p.md"), text);
    let split = split.and_then(|split| if split.errors.is_empty() { Ok(split) } else { Err(split.errors) });
    split.map_err(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

#[test]
fn toml_and_yaml_say_the_same() {
    let toml =
        "+++\ntitle = \"Hi\"\ndate = 2026-03-01\ndraft = true\ntags = [\"a\", \"B c\", \"A\"]\nlayout = \"x\"\n[extra]\nk = 1\n+++\nText\n";
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

/// Other generators have other names for the same keys.
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
        ("taxonomies: {tags: [x], categories: [y]}", FrontMatter { tags: vec!["x".to_owned(), "y".to_owned()], ..FrontMatter::default() }),
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
