//! Ghost goes away, hangs, and comes back; Seawall is killed and starts again.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{
    blog::{Blog, Setup, pause, until, while_a_crowd_reads},
    client::Answer,
    editor::Editor,
};

const READ: [&str; 5] = ["/", "/post-01/", "/rss/", "/about/", "/post-01.md"];

/// Pages stay fresh for a second here, so that what is read of them while Ghost is away is stale many times over.
fn with_short_hold() -> Blog {
    Setup::default().seawall("[cache]\nhold = \"1s\"").start()
}

#[test]
fn readers_do_not_notice_that_ghost_is_away_and_its_admin_pages_say_so() {
    let mut blog = with_short_hold();
    for path in READ {
        blog.stored(path);
    }
    blog.stop_ghost();
    let gone = Instant::now();
    while gone.elapsed() < Duration::from_secs(4) {
        for path in READ {
            let asked = Instant::now();
            blog.reader().get(path).status(200);
            assert!(asked.elapsed() < Duration::from_secs(2), "{path} took {:?}", asked.elapsed());
        }
        pause();
    }
    for path in ["/ghost/", "/ghost/api/admin/site/", "/members/api/integrity-token/"] {
        let away = blog.reader().get(path);
        assert!(matches!(away.status, 502..=504), "{away}");
    }
    let missed = blog.reader().get("/post-17/");
    assert!(matches!(missed.status, 502..=504), "{missed}");

    blog.start_ghost();
    blog.reader().get("/ghost/").status(200);
    blog.reader().get("/post-17/").status(200);
    blog.editor().edit(Editor::post("post-01"), &json!({"html": "<p>After it came back.</p>"}));
    blog.reader().get("/post-01/").status(200).has("After it came back.");
}

/// Ghost's own scheduler publishes by a PUT to the blog's address, and tries again after a 503 only.
#[test]
fn whoever_wants_to_write_while_ghost_is_away_is_told_to_come_again() {
    let mut blog = Blog::new();
    blog.stored("/");
    blog.stop_ghost();
    for (method, path) in
        [("POST", "/members/api/comments/"), ("PUT", "/ghost/api/admin/schedules/posts/0123456789abcdef01234567/?token=x")]
    {
        blog.reader().send_json(method, path, &json!({})).status(503);
    }
}

/// Ghost says 503 for a second or two while it starts. That is nobody's page.
#[test]
fn a_restart_of_ghost_is_seen_by_nobody() {
    let mut blog = with_short_hold();
    for path in READ {
        blog.stored(path);
    }
    let is_page = |answer: &Answer| assert_eq!(answer.status, 200, "{answer}");
    let read = while_a_crowd_reads(&blog.reader(), 2, &READ, is_page, || {
        blog.stop_ghost();
        blog.start_ghost();
    });
    assert!(read > 20, "{read} times");
}

#[test]
fn a_ghost_that_hangs_does_not_hold_readers_of_stored_pages_up() {
    let blog = with_short_hold();
    for path in READ {
        blog.stored(path);
    }
    blog.tap.hang();
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(3) {
        for path in READ {
            let asked = Instant::now();
            blog.reader().get(path).status(200);
            assert!(asked.elapsed() < Duration::from_secs(1), "{path} took {:?}", asked.elapsed());
        }
        pause();
    }
    blog.tap.open();
}

/// After a publish, everything has to be asked for again; if Ghost dies at that moment, what nobody has read since can still be read.
#[test]
fn pages_stay_readable_when_ghost_dies_right_after_a_publish() {
    let mut blog = Blog::new();
    for path in READ {
        blog.stored(path);
    }
    let editor = blog.editor();
    editor.publish("last-words", "Last words.");
    blog.stop_ghost();
    for path in ["/about/", "/post-01/"] {
        blog.reader().get(path).status(200);
    }
}

/// A post that was seen to be gone stays gone while Ghost is away.
#[test]
fn a_deleted_post_does_not_come_back_while_ghost_is_away() {
    let mut blog = Blog::new();
    blog.stored("/post-08/");
    blog.editor().delete(Editor::post("post-08"));
    blog.reader().get("/post-08/").status(404);
    blog.stop_ghost();
    for _ in 0..3 {
        let seen = blog.reader().get("/post-08/");
        assert!(seen.status != 200, "{seen}");
        seen.lacks("Words of post-08");
    }
}

#[test]
fn a_restarted_seawall_is_warm_at_once() {
    let mut blog = Blog::new();
    for path in READ {
        blog.stored(path);
    }
    // What is stored is written a moment later.
    until("the pages are on the disk", || std::fs::read_dir(blog.folder().join("cache")).is_ok_and(|folder| folder.count() > 0));
    std::thread::park_timeout(Duration::from_secs(2));
    blog.kill_seawall();
    blog.stop_ghost();
    let started = Instant::now();
    blog.start_seawall();
    for path in READ {
        blog.reader().get(path).status(200);
    }
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

/// The old words must not come back with the pages from the disk.
#[test]
fn an_edit_is_not_forgotten_when_seawall_is_killed() {
    let mut blog = Blog::new();
    for path in READ {
        blog.stored(path);
    }
    std::thread::park_timeout(Duration::from_secs(2));
    let other = blog.editor();
    other.edit(Editor::post("post-01"), &json!({"title": "Another title", "html": "<p>Other words.</p>"}));
    blog.kill_seawall();
    blog.start_seawall();
    blog.reader().get("/post-01/").status(200).has("Other words.").lacks("Words of post-01");
    blog.reader().get("/").status(200).has("Another title").lacks("Title of post-01");
    blog.reader().get("/rss/").status(200).has("Another title").lacks("Words of post-01");
}
