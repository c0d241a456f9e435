//! A change of the folder reads, renders and purges what it concerns, and nothing else.

use crate::folder::{Folder, NOW, page, rebuilt};

fn three() -> Folder {
    Folder::of(&[
        ("posts/2026-01-01-a.md", "# Alpha\n\nFirst words.\n\nMore words."),
        ("posts/2026-01-02-b.md", "# Beta\n\n[alpha](2026-01-01-a.md)"),
        ("posts/2026-01-03-c.md", "# Gamma\n\n![cat](cat.png)"),
        ("posts/cat.png", "a cat"),
    ])
}

#[test]
fn a_word_in_a_text_reads_and_renders_that_text_and_purges_its_page_and_the_feed() {
    let folder = three();
    let blog = folder.blog();
    folder.write("posts/2026-01-01-a.md", "# Alpha\n\nFirst words.\n\nOther words.");
    let rebuilt = rebuilt(&blog);
    assert_eq!((rebuilt.read, rebuilt.rendered), (1, 1));
    assert!(rebuilt.paths.contains(&"/a/".to_owned()) && rebuilt.paths.contains(&"/feed.xml".to_owned()), "{rebuilt:?}");
    for path in ["/", "/b/", "/c/", "/tags/", "/sitemap.xml", "/posts/cat.png"] {
        assert!(!rebuilt.paths.contains(&path.to_owned()), "{rebuilt:?}");
    }
    assert!(page(&blog, "/a/").contains("Other words."));
}

#[test]
fn nothing_changed_is_nothing_done() {
    let folder = three();
    let blog = folder.blog();
    let rebuilt = rebuilt(&blog);
    assert!(rebuilt.is_empty() && (rebuilt.read, rebuilt.rendered) == (0, 0), "{rebuilt:?}");
}

/// A text that links to another is rendered again when that one has moved, and not when it has other words.
#[test]
fn texts_are_rendered_again_when_their_links_lead_elsewhere() {
    let folder = three();
    let blog = folder.blog();
    folder.write("posts/2026-01-01-a.md", "---\nslug: first\n---\n# Alpha\n\nFirst words.");
    let rebuilt = rebuilt(&blog);
    assert_eq!((rebuilt.read, rebuilt.rendered), (1, 2));
    assert!(page(&blog, "/b/").contains("href=\"/first/\""));
    assert!(rebuilt.paths.contains(&"/b/".to_owned()) && !rebuilt.paths.contains(&"/c/".to_owned()), "{rebuilt:?}");
    for path in ["/a", "/a/", "/first", "/first/"] {
        assert!(rebuilt.paths.contains(&path.to_owned()), "{path}: {rebuilt:?}");
    }
}

#[test]
fn a_picture_that_changes_is_purged_and_a_new_one_is_found() {
    let folder = three();
    let blog = folder.blog();
    folder.write("posts/cat.png", "another cat");
    let rebuilt_for_cat = rebuilt(&blog);
    assert_eq!((rebuilt_for_cat.paths.as_slice(), rebuilt_for_cat.read), (&["/posts/cat.png".to_owned()][..], 0));
    folder.write("posts/2026-01-04-d.md", "# Delta\n\n![dog](dog.png)");
    assert_eq!(rebuilt(&blog).problems.len(), 1);
    folder.write("posts/dog.png", "a dog");
    let rebuilt_for_dog = rebuilt(&blog);
    assert_eq!((rebuilt_for_dog.read, rebuilt_for_dog.rendered, rebuilt_for_dog.mended.len()), (0, 1, 1));
    assert!(page(&blog, "/d/").contains("src=\"/posts/dog.png\""));
}

/// Two writes within one tick of the file system's clock, as a program may make them: the second one counts.
#[test]
fn a_file_that_is_written_twice_at_the_same_moment_shows_its_last_content() {
    let folder = Folder::of(&[]);
    let path = folder.path().join("a.md");
    let write = |text: &str| {
        let old = std::fs::metadata(&path).and_then(|metadata| metadata.modified()).ok();
        std::fs::write(&path, text).expect("written");
        if let Some(old) = old {
            std::fs::File::options().write(true).open(&path).and_then(|file| file.set_modified(old)).expect("dated");
        }
    };
    write("# One");
    let blog = folder.blog();
    write("# Two");
    assert_eq!(rebuilt(&blog).read, 1);
    assert!(page(&blog, "/a/").contains("<h1>Two</h1>"));
}

#[test]
fn a_setting_that_no_text_sees_renders_none_again() {
    let folder = three();
    let blog = folder.blog();
    folder.write("blog.toml", "footer = \"Another line\"");
    let rebuilt_for_footer = rebuilt(&blog);
    assert_eq!((rebuilt_for_footer.read, rebuilt_for_footer.rendered), (0, 0));
    assert!(rebuilt_for_footer.paths.contains(&"/a/".to_owned()) && page(&blog, "/a/").contains("Another line"));
    folder.write("blog.toml", "language = \"de\"");
    assert_eq!(rebuilt(&blog).rendered, 3);
}

/// A reader who holds the site is never in the way of a build, nor the build in the reader's.
#[test]
fn readers_keep_the_site_that_they_have() {
    let folder = three();
    let blog = folder.blog();
    let before = blog.site();
    folder.remove("posts/2026-01-03-c.md");
    rebuilt(&blog);
    assert!(before.contains("/c/") && !blog.site().contains("/c/"));
    assert_eq!(before.next_due(), None);
    assert!(blog.rebuild(NOW).is_ok());
}
