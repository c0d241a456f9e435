//! A Ghost moves out, and its blog is Seawall's own: every post, page, tag, author, picture, comment and address is accounted for.

use std::fs;

use super::{blog::Blog, moved::Moved};

#[test]
fn what_a_ghost_exports_is_all_in_the_blog_or_accounted_for() {
    let blog = Blog::new();
    let editor = blog.editor();
    let export = editor.get("db/?include=comments");
    let content = blog.folder().join("ghost/content");
    let moved = Moved::new(&export.to_string(), "export.json", &content);

    let mut count = 0;
    for kind in ["posts", "pages"] {
        let texts = editor.get(&format!("{kind}/?limit=100&fields=id,slug,title,status,visibility"));
        for text in texts[kind].as_array().expect("a list") {
            count += 1;
            let of = |key: &str| text[key].as_str().expect("a text");
            let entry = moved.text(of("id"));
            let path = format!("/{}/", of("slug"));
            if of("status") == "published" && of("visibility") == "public" {
                assert_eq!((entry["outcome"].as_str(), entry["old"].as_str()), (Some("written"), Some(path.as_str())), "{entry}");
                blog.reader().get(&path).status(200).has(of("title"));
                moved.get(&path).status(200).has(of("title"));
            } else {
                // What not everybody could read must not become public by moving.
                assert_eq!(entry["outcome"], "draft", "{entry}");
                moved.get(&path).status(404).lacks("SECRET");
            }
        }
    }
    assert_eq!(moved.texts().count(), count, "there is nothing else");
    assert!(!moved.get("/feed.xml").status(200).contains("SECRET"));

    let tags = editor.get("tags/?limit=100&include=count.posts");
    for tag in tags["tags"].as_array().expect("a list") {
        assert!(moved.written("tags").contains(tag["name"].as_str().expect("a name")), "{tag}");
        let slug = tag["slug"].as_str().expect("a slug");
        if tag["count"]["posts"] == 0 {
            // Ghost shows no page of a tag without posts, and the blog has none either.
            continue;
        }
        blog.reader().get(&format!("/tag/{slug}/")).status(200);
        moved.get(&format!("/tag/{slug}/")).status(200).has(tag["name"].as_str().expect("a name"));
        moved.get(&format!("/tag/{slug}/rss/")).status(200).has("<feed");
    }
    for author in editor.get("users/?limit=100")["users"].as_array().expect("a list") {
        let slug = author["slug"].as_str().expect("a slug");
        moved.get(&format!("/author/{slug}/")).status(200).has(author["name"].as_str().expect("a name"));
    }
    moved.get("/rss/").status(200).has("<feed");

    let images = content.join("images");
    let mut open = vec![images.clone()];
    let mut pictures = 0;
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            if entry.is_dir() {
                open.push(entry);
                continue;
            }
            let name = format!("content/images/{}", entry.strip_prefix(&images).expect("inside").display());
            let accounted = moved.report["files"].as_array().expect("a list").iter().find(|file| file["name"] == name.as_str());
            let accounted = accounted.unwrap_or_else(|| panic!("{name} is not accounted for"));
            if accounted["outcome"] == "written" {
                pictures += 1;
                // The blog sends pictures without what is in them about cameras and places: the file itself is Ghost's.
                moved.get(&format!("/{name}")).status(200);
                assert!(fs::read(moved.blog().join(&name)).expect("a picture") == fs::read(&entry).expect("a picture"), "{name}");
                moved.get(&format!("/{}", name.replace("images/", "images/size/w600/"))).status(200);
            } else {
                assert!(accounted["why"].is_string(), "{accounted}");
            }
        }
    }
    assert!(pictures >= 2, "{pictures}");

    let database = export["db"][0]["data"]["comments"].as_array().expect("a list").len();
    assert_eq!((moved.comments().len(), moved.report["comments"]["count"].as_u64()), (database, Some(database as u64)));
    let of_texts: u64 = moved.texts().filter_map(|text| text["comments"].as_u64()).sum();
    assert_eq!(of_texts, database as u64);
    moved.get("/.import/comments.jsonl").status(404);
}
