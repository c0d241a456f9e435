//! The index that the search loads. The script is tested in Node (`tests/search.test.mjs`).

use std::collections::BTreeMap;

use serde_json::Value;

use crate::folder::{Folder, page};

fn index(folder: &Folder) -> Value {
    serde_json::from_str(&page(&folder.blog(), "/search.json")).expect("JSON")
}

/// Returns the words of the texts, with the titles of the posts in which they are, read as the documentation of the index says.
fn words(index: &Value) -> BTreeMap<String, Vec<String>> {
    let title = |place: usize| index["posts"][place][0].as_str().expect("a title").to_owned();
    let titles = |places: &str| {
        let mut place = 0;
        let places = places.split(',').map(|distance| usize::from_str_radix(distance, 36).expect("base 36"));
        places
            .map(|distance| {
                place += distance;
                title(place)
            })
            .collect()
    };
    let words = index["words"].as_str().expect("words").split(' ');
    words.map(str::to_owned).zip(index["places"].as_str().expect("places").split(';').map(titles)).collect()
}

#[test]
fn the_index_has_titles_dates_tags_and_the_words_of_the_texts() {
    let folder = Folder::of(&[
        (
            "2026-03-01-sea.md",
            "---\ntags: [Meer & Küste]\nsummary: Short.\n---\n# The sea\n\nStraße über **Wellen**.\n\n```rust\nlet tide = 1;\n```",
        ),
        ("2026-02-01-wall.md", "# A wall\n\nWellen brechen."),
        ("pages/about.md", "# About\n\nWho."),
        ("draft.md", "---\ndraft: true\n---\n# Draft\n\nSecret."),
    ]);
    let index = index(&folder);
    let expected = serde_json::json!(["The sea", "/sea/", "2026-03-01", "1 March 2026", "Short.", ["Meer & Küste"]]);
    assert_eq!(index["posts"][0], expected);
    assert_eq!((&index["posts"][1][0], &index["posts"][2][0], &index["posts"][2][2]), (&"A wall".into(), &"About".into(), &"".into()));
    let words = words(&index);
    assert_eq!(words["wellen"], ["The sea", "A wall"]);
    assert_eq!(
        (words["strasse"].clone(), words["tide"].clone(), words["who"].clone()),
        (vec!["The sea".to_owned()], vec!["The sea".to_owned()], vec!["About".to_owned()])
    );
    assert!(!words.contains_key("secret"));
    assert_eq!((&index["left_out"], &index["unsearched"]), (&0.into(), &0.into()));
}

#[test]
fn the_search_page_loads_a_script_of_the_site() {
    let folder = Folder::of(&[("a.md", "# A")]);
    let blog = folder.blog();
    let html = page(&blog, "/search/");
    assert!(
        html.contains("data-search=\"/search.json\"") && html.contains("data-search-status") && html.contains("data-search-results"),
        "{html}"
    );
    let script = html.split("<script src=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a script");
    assert!(blog.site().contains(script), "{script}");
    // Without the script, the page says what else there is.
    let without = html.split("<noscript>").nth(1).and_then(|rest| rest.split("</noscript>").next()).expect("for browsers without scripts");
    assert!(without.contains("/archive/"), "{without}");
}

/// However large the blog, the index is something that a browser loads: a few MiB, before compression.
#[test]
fn the_index_is_bounded_and_says_what_it_leaves_out() {
    let texts: Vec<_> = (0..3_000)
        .map(|n| {
            let words: Vec<_> = (0..300).map(|word| format!("w{:x}", (n * 7919 + word * 104_729) % 400_000)).collect();
            (
                format!("2020-01-01-p{n}.md"),
                format!("---\ndate: {}-{:02}-{:02}\n---\n# Post {n}\n\n{}", 2000 + n / 336, n / 28 % 12 + 1, n % 28 + 1, words.join(" ")),
            )
        })
        .collect();
    let files: Vec<_> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let site = blog::build_texts(&files, &blog::BlogOptions::default(), crate::folder::NOW).expect("builds");
    let Some(blog::SiteResource::Page(found)) = site.find("/search.json", "") else { panic!("no index") };
    assert!(found.body.len() < 4 * 1024 * 1024, "{} bytes", found.body.len());
    let index: Value = serde_json::from_slice(&found.body).expect("JSON");
    let posts = index["posts"].as_array().expect("posts").len();
    assert_eq!(posts as u64 + index["left_out"].as_u64().expect("a number"), 3_000);
    assert!(index["unsearched"].as_u64().expect("a number") > 0);
    // What is left out is the oldest.
    assert_eq!(index["posts"][0][0], "Post 2999");
}
