//! Themes: another one brings other pages, and another stylesheet at the same address.

use serde_json::json;

use super::blog::Blog;

const STYLESHEET: &str = "/assets/built/screen.css";

#[test]
fn another_theme_brings_its_pages_and_its_stylesheet_at_the_same_address() {
    let blog = Blog::new();
    let (editor, reader) = (blog.editor(), blog.reader());
    let versioned = reader
        .get("/")
        .text()
        .split(['"', '\''])
        .find(|part| part.contains("/assets/built/screen.css?v="))
        .expect("a stylesheet")
        .to_owned();
    let versioned = versioned.trim_start_matches(&blog.url).to_owned();
    let names: Vec<_> = editor.get("themes/")["themes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["name"].as_str().unwrap().to_owned(), one["active"] == true))
        .collect();
    let other = &names.iter().find(|(_, is_active)| !is_active).expect("a second theme").0;
    let before = [STYLESHEET, &versioned, "/"].map(|path| blog.stored(path).status(200).content);
    editor.send("PUT", &format!("themes/{other}/activate/"), &json!({}));
    for (path, before) in [STYLESHEET, &versioned, "/"].into_iter().zip(before) {
        let after = reader.get(path).status(200);
        assert!(after.content != before, "{path} is the old theme's");
        assert!(path == "/" || after.content == blog.ghost().get(path).content, "{path} is not what Ghost has");
    }
}

/// A theme that is uploaded is a zip of some megabytes, and goes through as it is.
#[test]
fn a_theme_is_downloaded_uploaded_and_activated_through_seawall() {
    let blog = Blog::new();
    let (editor, reader) = (blog.editor(), blog.reader());
    for path in ["/", STYLESHEET] {
        blog.stored(path);
    }
    let zip = editor.client().get(&editor.target("themes/source/download/")).status(200);
    assert!(zip.content.starts_with(b"PK") && !zip.is_hit());
    editor.upload("themes/upload/", "file", "uploaded.zip", "application/zip", &zip.content);
    editor.send("PUT", "themes/uploaded/activate/", &json!({}));
    reader.get("/").status(200).has("Title of post-01");
    let active = editor.get("themes/active/");
    assert_eq!(active["themes"][0]["name"], "uploaded");
    // And again, over itself.
    editor.upload("themes/upload/", "file", "uploaded.zip", "application/zip", &zip.content);
    reader.get("/").status(200).has("Title of post-01");
    assert!(reader.get(STYLESHEET).status(200).content == blog.ghost().get(STYLESHEET).content);
}
