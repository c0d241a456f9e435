//! A WordPress moves out, and its blog is Seawall's own: every post, page, tag, author, picture, comment and address is accounted for.

use std::fs;

use super::{blog::Blog, moved::Moved};

#[test]
fn what_a_wordpress_exports_is_all_in_the_blog_or_accounted_for() {
    let blog = Blog::new();
    let export = blog.owner().get("/wp-admin/export.php?download=true&content=all").status(200).text();
    let moved = Moved::new(&export, "export.xml", &blog.root().join("wp-content/uploads"));

    let editor = blog.editor();
    let mut count = 0;
    for kind in ["posts", "pages"] {
        let texts = editor.get(&format!("{kind}?per_page=100&context=edit&status=publish,future,draft,pending,private"));
        for text in texts.as_array().expect("a list") {
            count += 1;
            let entry = moved.text(&text["id"].to_string());
            let link = text["link"].as_str().expect("a link");
            let path = link.strip_prefix(&blog.url).expect("an address of the blog");
            let is_open = text["content"]["protected"] != true;
            if text["status"] == "publish" && is_open {
                assert_eq!(entry["outcome"], "written", "{entry}");
                blog.reader().get(path).status(200);
                let title = text["title"]["raw"].as_str().expect("a title");
                moved.get(path).status(200).has(&title.replace('&', "&amp;"));
            } else if text["status"] == "future" {
                assert_eq!(entry["outcome"], "written", "{entry}");
                moved.get(entry["new"].as_str().expect("an address")).status(404);
            } else {
                // What not everybody could read must not become public by moving.
                assert_eq!(entry["outcome"], "draft", "{entry}");
                moved.get(path.split('?').next().filter(|path| path.len() > 1).unwrap_or("/nothing/")).status(404);
            }
        }
    }
    assert_eq!(moved.texts().count(), count, "there is nothing else");

    for (kind, folder) in [("categories", "category"), ("tags", "tag")] {
        for term in editor.get(&format!("{kind}?per_page=100")).as_array().expect("a list") {
            let (name, slug) = (term["name"].as_str().expect("a name"), term["slug"].as_str().expect("a slug"));
            assert!(moved.written("tags").contains(name), "{term}");
            if term["count"].as_u64().is_some_and(|count| count > 0) {
                moved.get(&format!("/{folder}/{slug}/")).status(200).has(name);
            }
        }
    }
    for picture in editor.get("media?per_page=100").as_array().expect("a list") {
        let path = picture["source_url"].as_str().expect("an address").strip_prefix(&blog.url).expect("an address of the blog");
        assert!(moved.written("files").contains(path.trim_start_matches('/')), "{path}");
        // The blog sends pictures without what is in them about cameras and places: the file itself is WordPress's.
        moved.get(path).status(200);
        let file = fs::read(moved.blog().join(path.trim_start_matches('/'))).expect("a picture");
        assert!(file == blog.reader().get(path).status(200).content, "{path}");
    }
    moved.get("/feed/").status(200).has("<feed");
    moved.get("/wp-sitemap.xml").status(200).has("<urlset");

    let database: u64 = export.matches("<wp:comment>").count() as u64;
    assert!(database > 0);
    assert_eq!((moved.comments().len() as u64, moved.report["comments"]["count"].as_u64()), (database, Some(database)));
    let of_texts: u64 = moved.texts().filter_map(|text| text["comments"].as_u64()).sum();
    assert_eq!(of_texts, database);
    moved.get("/.import/comments.jsonl").status(404);
}
