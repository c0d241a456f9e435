//! A mistake concerns the file that it is in, is told with file and line, and is told to be gone when it is.

use std::os::unix::fs::symlink;

use blog::{Blog, BlogOptions, Severity};

use crate::folder::{Folder, NOW, lines, page, rebuilt};

const GOOD: &str = "---\ndate: 2026-01-01\n---\n# Good\n\nFirst version.";

/// Every mistake that a text can have, and the beginning of what is told.
const WRONG: [(&str, &[u8], &str); 7] = [
    ("bad.md", b"---\ndate: soon\n---\n# Bad", "bad.md:2: `date` is \"soon\""),
    ("bad.md", b"---\ndrfat: true\n---\n# Bad", "bad.md:2: `drfat` is not a key"),
    ("bad.md", b"---\ntitle: Bad\n", "bad.md:1: the front matter is never closed"),
    ("bad.md", b"", "bad.md:1: has no title"),
    ("bad.md", b"# Bad\n\n[x](gone.md)", "bad.md:3: link to \"gone.md\""),
    ("bad.md", b"# Bad\n\n![x](gone.png)", "bad.md:3: link to \"gone.png\""),
    ("bad.md", b"# Bad\n\n\xff", "bad.md:3: not UTF-8"),
];

#[test]
fn at_the_start_a_wrong_text_is_left_out_and_the_rest_lives() {
    for (name, content, told) in WRONG {
        let folder = Folder::of(&[("good.md", GOOD)]);
        folder.write(name, content);
        let blog = folder.blog();
        assert!(blog.site().contains("/good/") && !blog.site().contains("/bad/"), "{told}");
        let problems = lines(blog.site().problems());
        assert!(problems.len() == 1 && problems[0].starts_with(told), "{problems:?}");
        folder.write(name, "# Bad");
        let mended = rebuilt(&blog);
        assert_eq!((lines(&mended.mended), mended.problems.len()), (problems, 0));
        assert!(blog.site().contains("/bad/"));
    }
}

#[test]
fn at_an_edit_the_last_good_version_stays_until_the_mistake_is_gone() {
    for (name, content, told) in WRONG {
        let folder = Folder::of(&[("good.md", GOOD), (name, "---\ndate: 2026-01-02\n---\n# Bad\n\nFirst version.")]);
        let blog = folder.blog();
        folder.write(name, content);
        let broken = rebuilt(&blog);
        assert_eq!(broken.paths, Vec::<String>::new(), "{told}: readers see no difference");
        let problems = lines(&broken.problems);
        assert!(problems.len() == 1 && problems[0].starts_with(told), "{problems:?}");
        assert!(problems[0].ends_with(". Readers still see the version before"), "{problems:?}");
        assert!(page(&blog, "/bad/").contains("First version."), "{told}");
        // An edit elsewhere changes nothing about it, and tells nothing twice.
        folder.write("good.md", "---\ndate: 2026-01-01\n---\n# Good\n\nSecond version.");
        let elsewhere = rebuilt(&blog);
        assert!(elsewhere.problems.is_empty() && elsewhere.mended.is_empty(), "{elsewhere:?}");
        assert!(elsewhere.paths.contains(&"/good/".to_owned()) && page(&blog, "/bad/").contains("First version."));
        folder.write(name, "---\ndate: 2026-01-02\n---\n# Bad\n\nSecond version.");
        let mended = rebuilt(&blog);
        assert_eq!((lines(&mended.mended), mended.problems.len()), (problems, 0));
        assert!(page(&blog, "/bad/").contains("Second version."));
    }
}

#[test]
fn a_wrong_text_that_is_removed_is_gone() {
    let folder = Folder::of(&[("bad.md", GOOD)]);
    let blog = folder.blog();
    folder.write("bad.md", "no title");
    rebuilt(&blog);
    folder.remove("bad.md");
    let removed = rebuilt(&blog);
    assert!(removed.paths.contains(&"/bad/".to_owned()) && removed.mended.len() == 1, "{removed:?}");
}

/// One mistake must not become as many as there are links to its file.
#[test]
fn links_to_a_text_that_is_left_out_are_not_wrong() {
    let folder = Folder::of(&[
        ("a.md", "---\ndate: 2026-01-01\n---\n# A\n\n[bad](bad.md)"),
        ("b.md", "---\ndate: 2026-01-01\n---\n# B\n\n[a](a.md)"),
    ]);
    for (name, content, told) in WRONG {
        folder.write(name, content);
        let blog = folder.blog();
        let problems = lines(blog.site().problems());
        assert!(problems.len() == 1 && problems[0].starts_with(told), "{problems:?}");
        assert!(page(&blog, "/a/").contains("href=\"/bad/\""), "{told}");
    }
}

/// Readers see the version before, and its author looks at the file.
#[test]
fn an_anchor_in_a_text_that_is_left_out_is_no_mistake_of_another() {
    let folder = Folder::of(&[("a.md", "# A\n\n[x](b.md#part) [y](/b/#part)"), ("b.md", "# B\n\n## Part\n")]);
    let blog = folder.blog();
    assert_eq!(lines(blog.site().problems()), [""; 0]);
    folder.write("a.md", "# A\n\n[x](b.md#new) [y](/b/#new)");
    folder.write("b.md", "---\ndate: soon\n---\n# B\n\n## New\n");
    rebuilt(&blog);
    let told = lines(blog.site().problems());
    assert!(told.len() == 1 && told[0].starts_with("b.md:2: `date` is \"soon\""), "{told:?}");
}

/// A price in dollars does not become a formula because something else is wrong.
#[test]
fn a_text_without_formulas_has_none_when_its_front_matter_is_wrong() {
    for front in ["+++\nmath = false # prices\ndate = \"soon\"\n+++", "---\nkatex: false\ndate: [\n---"] {
        let folder = Folder::of(&[]);
        folder.write("a.md", format!("{front}\n# A\n\nFor $\\nosuch$ and more"));
        let told = lines(folder.blog().site().problems());
        assert_eq!(told.len(), 1, "{told:?}");
    }
}

/// A line, and the beginning of what is told of it.
type ExpectedMistake<'a> = (usize, &'a str);

/// Whoever mends the first mistake should not find the second one behind it.
#[test]
fn all_that_is_wrong_with_a_text_is_told_at_once() {
    let body = "\n[g](gone.md) [a](/gone/) [b](good.md#part) [c](#here) $\\nosuch$ x[^1]\n\n![p](gone.png)\n";
    let of_body = |line: usize| {
        [
            (line, "link to \"gone.md\": no published post"),
            (line, "link to \"/gone/\": there is nothing at /gone/"),
            (line, "link to \"/good/\": no section there has the anchor \"#part\""),
            (line, "link to \"#here\": no section of this text"),
            (line, "the formula is shown as it is written"),
            (line, "footnote \"[^1]\": nothing says what it is"),
            (line + 2, "link to \"gone.png\": there is no such file"),
        ]
    };
    // Front matter, what is wrong with it, and the line of the links below it.
    let cases: [(&str, &[ExpectedMistake<'_>], usize); 6] = [
        ("---\ndate: soon\nfoo: 1\n---\n", &[(2, "`date` is \"soon\""), (3, "`foo` is not known here")], 6),
        ("---\ndate: [\n---\n", &[(2, "not YAML")], 5),
        ("+++\nslug = \"tags\"\nfoo = 1\ntitle = \"Bad\"\n+++\n", &[(1, "the address /tags/ is taken"), (3, "`foo` is not known here")], 7),
        ("+++\ncover = \"gone.jpg\"\n+++\n", &[(1, "cover \"gone.jpg\""), (1, "has no title")], 5),
        ("", &[(1, "has no title")], 2),
        ("+++\nslug = \"good\"\ntitle = \"Bad\"\ndate = 2026-02-01\n+++\n", &[(1, "has the same address /good/ as good.md")], 7),
    ];
    for (front, wrong, line) in cases {
        let folder = Folder::of(&[("good.md", GOOD)]);
        folder.write("bad.md", format!("{front}{body}"));
        let told = lines(folder.blog().site().problems());
        for (line, expected) in wrong.iter().copied().chain(of_body(line)) {
            let expected = format!("bad.md:{line}: {expected}");
            assert_eq!(told.iter().filter(|told| told.starts_with(&expected)).count(), 1, "{expected}\n{told:#?}");
        }
        assert_eq!(told.len(), wrong.len() + of_body(line).len(), "{told:#?}");
    }
}

/// What does not keep a text back is not news because something else does.
#[test]
fn a_warning_is_not_told_again_when_a_mistake_comes() {
    let folder = Folder::of(&[("a.md", "# A\n\n[x](/gone/)\n"), ("b.md", "# B\n\n[a](a.md#part)\n")]);
    let blog = folder.blog();
    assert_eq!(lines(blog.site().problems()).len(), 2);
    folder.write("a.md", "# A\n\n[x](/gone/)\n[y](gone.md)\n");
    let broken = rebuilt(&blog);
    assert_eq!((broken.problems.len(), broken.mended.len()), (1, 0), "{broken:?}");
    // The text is left out, so a link to one of its sections is not called wrong.
    let told = lines(folder.blog().site().problems());
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("a.md:3: link to \"/gone/\"") && told[1].starts_with("a.md:4: link to \"gone.md\""), "{told:?}");
}

/// An author who writes above a mistake has not made a new one.
#[test]
fn a_mistake_that_moves_down_is_not_told_again() {
    let folder = Folder::of(&[("a.md", "# A\n\n[x](gone.md)")]);
    let blog = folder.blog();
    folder.write("a.md", "# A\n\nA line above.\n\n[x](gone.md)");
    let moved = rebuilt(&blog);
    assert!(moved.problems.is_empty() && moved.mended.is_empty(), "{moved:?}");
    assert_eq!(blog.site().problems()[0].line, Some(5));
}

#[test]
fn wrong_settings_are_an_error_at_the_start_and_change_nothing_at_an_edit() {
    let folder = Folder::of(&[("a.md", GOOD), ("blog.toml", "footer = \"One\"")]);
    let blog = folder.blog();
    for wrong in ["footer = ", "fotter = \"Two\"", "posts_per_page = 0"] {
        folder.write("blog.toml", wrong);
        let broken = rebuilt(&blog);
        assert_eq!((broken.paths.len(), broken.problems.len()), (0, 1), "{broken:?}");
        let told = broken.problems[0].to_string();
        assert!(told.starts_with("blog.toml:1: ") && told.ends_with(". The settings before stay"), "{told}");
        assert!(page(&blog, "/").contains("One"));
        let error = Blog::open(folder.path(), BlogOptions::default(), NOW).expect_err("no settings before");
        assert!(error.to_string().contains("blog.toml:1: "), "{error}");
        folder.write("blog.toml", "footer = \"One\"");
        assert_eq!(rebuilt(&blog).mended.len(), 1);
    }
    folder.write("blog.toml", "footer = \"Two\"");
    assert!(rebuilt(&blog).problems.is_empty() && page(&blog, "/").contains("Two"));
}

#[test]
fn two_texts_with_one_address_are_told_and_the_first_is_published() {
    let folder = Folder::of(&[("a/one.md", "# First"), ("b/one.md", "# Second"), ("c.md", "---\nslug: one\n---\n# Third")]);
    let blog = folder.blog();
    assert!(page(&blog, "/one/").contains("First"));
    let told = lines(blog.site().problems());
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("b/one.md:1: has the same address /one/ as a/one.md"), "{told:?}");
    folder.remove("a/one.md");
    rebuilt(&blog);
    assert!(page(&blog, "/one/").contains("Second"));
}

#[test]
fn names_that_are_nearly_dates_are_told_and_published() {
    let folder =
        Folder::of(&[("2026-3-1-x.md", "# X"), ("26-03-01-y.md", "# Y"), ("2026-13-01-z.md", "# Z"), ("2026-03-01-ok.md", "# Ok")]);
    let blog = folder.blog();
    let told: Vec<_> = blog.site().problems().iter().map(|problem| (problem.severity, problem.file.display().to_string())).collect();
    let expected = ["2026-13-01-z.md", "2026-3-1-x.md", "26-03-01-y.md"].map(|name| (Severity::Warning, name.to_owned()));
    assert_eq!(told, expected);
    for path in ["/2026-3-1-x/", "/26-03-01-y/", "/2026-13-01-z/", "/ok/"] {
        assert!(blog.site().contains(path), "{path}");
    }
}

/// A link to itself, what cannot be text, and what is too long or too deep: each is told, and the rest lives.
#[test]
fn what_cannot_be_read_is_told_and_the_rest_lives() {
    let folder = Folder::of(&[("good.md", GOOD)]);
    symlink("loop.md", folder.path().join("loop.md")).expect("linked");
    folder.write("long.md", vec![b'x'; 5 * 1024 * 1024]);
    folder.write(&format!("{}deep.md", "d/".repeat(20)), "# Deep");
    folder.write("posts/Ein Gedicht – für dich.md", "# Names with spaces");
    let blog = folder.blog();
    let told = lines(blog.site().problems());
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0].contains("more than 16 folders inside each other"), "{told:?}");
    assert!(told[1].starts_with("long.md: larger than 4 MiB; split it"), "{told:?}");
    assert!(told[2].starts_with("loop.md: cannot be read"), "{told:?}");
    assert!(blog.site().contains("/good/") && blog.site().contains("/ein-gedicht-für-dich/"));
}

#[test]
fn a_link_out_of_the_folder_publishes_nothing() {
    let outside = Folder::of(&[("secret.md", "# Secret"), ("secret.txt", "secret")]);
    let folder = Folder::of(&[("good.md", "# Good\n\n[x](../../../../etc/passwd.md)")]);
    for name in ["secret.md", "secret.txt"] {
        symlink(outside.path().join(name), folder.path().join(name)).expect("linked");
    }
    let blog = folder.blog_with(BlogOptions::default());
    assert!(!blog.site().contains("/secret/") && !blog.site().contains("/secret.txt"));
    let told = lines(blog.site().problems());
    assert_eq!(told.len(), 3, "the link in the text, and both files: {told:?}");
    assert!(told.iter().any(|line| line.starts_with("secret.md: is a symbolic link out of the blog")), "{told:?}");
}

/// A warning that is gone because its file cannot be read any more is not mended.
#[test]
fn nothing_is_called_mended_in_a_file_with_a_new_mistake() {
    let folder = Folder::of(&[("a.md", "# A\n\n[x](javascript:y)")]);
    let blog = folder.blog();
    assert_eq!(blog.site().problems().len(), 1);
    folder.write("a.md", "---\ndraft: true\n# A\n\n[x](javascript:y)");
    let rebuilding = rebuilt(&blog);
    assert_eq!((rebuilding.problems.len(), rebuilding.mended.len()), (1, 0), "{rebuilding:?}");
    folder.write("a.md", "# A");
    assert_eq!(rebuilt(&blog).mended.len(), 1);
}

/// Links lead to the text that was there first, whatever the file of the other one is called.
#[test]
fn a_new_text_takes_no_other_ones_address() {
    let folder = Folder::of(&[("posts/other.md", "---\ndate: 2026-01-01\n---\n# Other")]);
    let blog = folder.blog();
    folder.write("posts/aaa.md", "---\ndate: 2026-02-01\nslug: other\n---\n# New");
    rebuilt(&blog);
    for blog in [blog, folder.blog()] {
        assert!(page(&blog, "/other/").contains("<h1>Other</h1>"));
        let told = lines(blog.site().problems());
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("posts/aaa.md:1: has the same address /other/ as posts/other.md"), "{told:?}");
    }
}

/// Hugo writes `/old/one/index.html` for an alias `/old/one`.
#[test]
fn an_old_address_without_a_slash_leads_to_the_text_with_one_too() {
    let folder = Folder::of(&[("a.md", "---\naliases: [/old/one, /old.html, two]\n---\n# A")]);
    let blog = folder.blog();
    for path in ["/old/one", "/old/one/", "/old.html", "/two", "/two/"] {
        assert_eq!(page(&blog, path), "moved to /a/", "{path}");
    }
    assert!(!blog.site().contains("/old.html/"));
}

#[test]
fn an_old_address_leads_to_the_text_and_never_hides_another() {
    let folder = Folder::of(&[
        ("a.md", "---\ndate: 2026-01-01\naliases: [/old/, /b/, /feed.xml]\n---\n# A"),
        ("b.md", "---\ndate: 2026-01-01\naliases: [/old/]\n---\n# B"),
    ]);
    let blog = folder.blog();
    assert_eq!(page(&blog, "/old/"), "moved to /a/");
    assert!(page(&blog, "/b/").contains("<h1>B</h1>"));
    let told: Vec<_> = lines(blog.site().problems());
    assert_eq!(told.len(), 3, "{told:?}");
    folder.write("a.md", "---\ndate: 2026-01-01\n---\n# A");
    let changed = rebuilt(&blog);
    assert!(changed.paths.contains(&"/old/".to_owned()), "{changed:?}");
    assert_eq!(page(&blog, "/old/"), "moved to /b/");
}
