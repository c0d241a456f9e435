//! Answers that were begun before an edit and arrive after it: they are nobody's, and nobody waits for them.

use std::{sync::mpsc::sync_channel, thread, time::Duration};

use serde_json::json;

use super::{
    blog::{Blog, Setup, path_of},
    editor::Editor,
};

/// The time in which a reader who does not wait for the old answer has theirs.
const SOON: Duration = Duration::from_secs(15);

fn a_slow_page_is_not_stored(setup: Setup) {
    let blog = setup.start();
    let editor = blog.editor();
    for path in [path_of("post-01"), "/", "/feed/"] {
        let title = format!("After {}.", path.len());
        let held = blog.witness.hold(path);
        thread::scope(|readers| {
            let early = readers.spawn(|| blog.reader().get(path));
            held.is_answered();
            editor.edit("post-01", &json!({"title": title}));
            held.release();
            early.join().unwrap().status(200);
        });
        for _ in 0..3 {
            blog.reader().get(path).status(200).has(&title).lacks("Title of post-01");
        }
    }
}

#[test]
fn a_slow_page_begun_before_an_edit_is_not_stored_after_it() {
    a_slow_page_is_not_stored(Setup::default());
}

#[test]
fn a_slow_page_begun_before_an_edit_is_not_stored_after_it_with_the_plugin() {
    a_slow_page_is_not_stored(Setup::default().plugin());
}

#[test]
fn a_reader_who_comes_after_the_edit_waits_for_no_older_page() {
    let blog = Blog::new();
    let (editor, path) = (blog.editor(), path_of("post-01"));
    let held = blog.witness.hold(path);
    thread::scope(|readers| {
        let early = readers.spawn(|| blog.reader().get(path));
        held.is_answered();
        editor.edit("post-01", &json!({"content": "<p>Other words.</p>"}));
        let (answered, late) = sync_channel(1);
        let blog = &blog;
        readers.spawn(move || answered.send(blog.reader().get(path)));
        let late = late.recv_timeout(SOON);
        held.release();
        early.join().unwrap().status(200);
        late.expect("the late reader does not wait for the early page").status(200).has("Other words.");
    });
    blog.reader().get(path).has("Other words.");
}

/// The 404 of before must not hide the post.
#[test]
fn a_slow_404_begun_before_the_post_was_published_does_not_hide_it() {
    let blog = Blog::new();
    let editor = blog.editor();
    let held = blog.witness.hold("/2024/12/soon/");
    thread::scope(|readers| {
        let early = readers.spawn(|| blog.reader().get("/2024/12/soon/"));
        held.is_answered();
        editor.send(
            "POST",
            "posts",
            &json!({"title": "Soon", "slug": "soon", "content": "Words of soon.", "status": "publish", "date": "2024-12-30T12:00:00"}),
        );
        held.release();
        early.join().unwrap();
    });
    for _ in 0..3 {
        blog.reader().get("/2024/12/soon/").status(200).has("Words of soon.");
    }
}

/// An editor's slow page does not hold readers up, nor the other way round.
#[test]
fn who_signed_in_waits_for_nobody() {
    let blog = Blog::new();
    let owner = Editor::new(blog.owner());
    let path = path_of("post-13");
    let held = blog.witness.hold(path);
    thread::scope(|readers| {
        let slow = readers.spawn(|| blog.reader().get(path));
        held.is_answered();
        owner.client().get(path).status(200).has("wp-admin-bar");
        held.release();
        slow.join().unwrap().status(200).lacks("wp-admin-bar");
    });
}
