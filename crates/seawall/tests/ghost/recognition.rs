//! Whether a server is a Ghost: Seawall finds out by itself, and says so.

use super::blog::{Blog, Setup, until};

fn treats_it_as_ghost(blog: &Blog) {
    blog.stored("/post-01/");
    blog.editor().edit(super::editor::Editor::post("post-01"), &serde_json::json!({"html": "<p>Other words.</p>"}));
    blog.reader().get("/post-01/").status(200).has("Other words.");
    let member = blog.member("free");
    member.get("/members/api/member/").status(200).has("Freda");
    blog.reader().get("/members/api/member/").status(204);
}

#[test]
fn a_ghost_is_recognised_and_the_banner_says_what_it_is() {
    let blog = Setup::default().guessed().start();
    until("it is said", || blog.told().contains("Ghost"));
    let told = blog.told();
    assert!(told.contains("6.65") || told.contains("Ghost 6"), "{told}");
    treats_it_as_ghost(&blog);
}

/// In the morning after a power cut, the proxy is faster than Ghost.
#[test]
fn a_ghost_that_comes_up_later_is_recognised_then() {
    let mut blog = Setup::default().guessed().without_seawall_yet().start();
    blog.stop_ghost();
    blog.start_seawall();
    let away = blog.reader().get("/post-01/");
    assert!(matches!(away.status, 502..=504), "{away}");
    blog.start_ghost();
    until("a page is stored as a Ghost's is", || blog.reader().get("/post-01/").is_hit());
    treats_it_as_ghost(&blog);
}

#[test]
fn the_path_of_a_blog_that_is_not_at_the_root_is_found() {
    let blog = Setup::default().guessed().below("/blog").start();
    until("a page is stored", || blog.reader().get("/blog/post-01/").is_hit());
    blog.editor().publish("found", "Words below.");
    blog.reader().get("/blog/").status(200).has("Title of found");
}

#[test]
fn status_says_when_the_last_publish_came_and_how() {
    let blog = Blog::new();
    blog.stored("/");
    blog.editor().publish("told", "Words.");
    blog.reader().get("/");
    let status = blog.command(&["status"]);
    assert!(status.contains("Ghost") || status.contains("ghost"), "{status}");
    assert!(status.contains("publish"), "{status}");
}

/// A Ghost whose edits go straight to its own port shows old pages for a day, unless somebody says so.
#[test]
fn edits_past_seawall_are_noticed_and_told() {
    let blog = Blog::new();
    blog.stored("/");
    blog.editor_past_seawall().publish("past", "Words past it.");
    until("it is told or seen", || {
        blog.reader().get("/");
        let told = blog.told() + &blog.command(&["status"]);
        told.contains("past") && told.contains("webhook")
    });
}

#[test]
fn explain_names_the_rule_that_decided() {
    let blog = Blog::new();
    blog.reader().get("/");
    for (path, word) in [("/ghost/", "ghost"), ("/post-01/?gift=x", "gift"), ("/p/abc/", "preview")] {
        let text = blog.command(&["explain", &format!("{}{path}", blog.url)]);
        assert!(text.to_ascii_lowercase().contains(word), "{path}: {text}");
    }
}
