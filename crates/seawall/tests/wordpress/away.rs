//! php-fpm is gone, or comes back; Seawall is killed, or starts again.

use serde_json::json;

use super::{
    blog::{Blog, Setup, path_of},
    crowd::until,
};

#[test]
fn while_php_is_away_what_is_stored_is_read_and_writers_are_told_to_come_again() {
    let mut blog = Blog::new();
    let pages = ["/", path_of("post-01"), "/feed/", "/category/tides/"];
    for page in pages {
        blog.stored(page).status(200);
    }
    let owner = blog.owner();
    blog.stop_php();
    for page in pages {
        blog.reader().get(page).status(200);
        blog.reader().get(&format!("{page}?utm_source=x")).status(200);
    }
    blog.reader().get("/wp-includes/js/jquery/jquery.min.js").status(200);
    let form = "comment_post_ID=1&author=Nora&email=n%40reader.example&comment=x";
    let comment = blog.reader().post("/wp-comments-post.php", form);
    assert!(comment.status == 503 && comment.value("retry-after").is_some(), "{comment}");
    // Nobody else's page instead of one's own.
    let admin = owner.get("/wp-admin/").lacks("Title of post");
    assert!(matches!(admin.status, 502..=504), "{admin}");
    let never = blog.reader().get(path_of("post-30"));
    assert!(matches!(never.status, 502..=504), "{never}");
    blog.start_php();
    until("the page that was never stored is there", || blog.reader().get(path_of("post-30")).status == 200);
    owner.get("/wp-admin/").status(200);
}

/// A soft purge keeps pages for the time in which nobody can make them anew.
#[test]
fn a_page_that_was_purged_and_cannot_be_made_anew_is_read_until_php_is_back() {
    let mut blog = Blog::new();
    let pages = ["/", path_of("post-01")];
    for page in pages {
        blog.stored(page).status(200);
    }
    blog.editor().edit("post-20", &json!({"title": "Another title"}));
    blog.stop_php();
    for page in pages {
        blog.reader().get(page).status(200).has("Title of post-01");
    }
    blog.start_php();
    until("it is made anew", || blog.reader().get(path_of("post-20")).contains("Another title"));
}

#[test]
fn after_a_restart_the_pages_are_there_without_php() {
    let mut blog = Blog::new();
    let pages = ["/", path_of("post-01"), path_of("lake"), "/feed/"];
    let before: Vec<_> = pages.iter().map(|page| blog.stored(page).status(200).content).collect();
    blog.wait_for_the_disk();
    blog.kill_seawall();
    blog.stop_php();
    blog.start_seawall();
    for (page, before) in pages.iter().zip(before) {
        assert!(blog.reader().get(page).status(200).content == before, "{page}");
    }
}

#[test]
fn what_an_edit_purged_stays_purged_over_a_kill() {
    for setup in [Setup::default(), Setup::default().plugin()] {
        let mut blog = setup.start();
        let editor = blog.editor();
        let path = path_of("post-01");
        for page in [path, "/"] {
            blog.stored(page);
        }
        blog.wait_for_the_disk();
        editor.edit("post-01", &json!({"title": "Another title"}));
        blog.kill_seawall();
        blog.start_seawall();
        for page in [path, "/"] {
            blog.reader().get(page).status(200).has("Another title").lacks("Title of post-01");
        }
    }
}
