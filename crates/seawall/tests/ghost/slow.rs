//! Answers that were begun before an edit and arrive after it: they are nobody's, and nobody waits for them.

use std::{sync::mpsc::sync_channel, thread, time::Duration};

use serde_json::json;

use super::{
    blog::{Blog, Setup, while_a_crowd_reads},
    editor::Editor,
};

/// The time in which a reader who does not wait for the old answer has theirs, with a render of a busy Ghost in it.
const SOON: Duration = Duration::from_secs(15);

#[test]
fn a_slow_render_begun_before_an_edit_is_not_stored_after_it() {
    let blog = Blog::new();
    blog.reader().get("/post-02/");
    for path in ["/post-01/", "/", "/rss/"] {
        let held = blog.tap.hold(path);
        thread::scope(|readers| {
            let early = readers.spawn(|| blog.reader().get(path));
            held.is_answered();
            blog.editor().edit(Editor::post("post-01"), &json!({"title": format!("After {path}"), "html": format!("<p>After {path}</p>")}));
            held.release();
            early.join().unwrap().status(200);
        });
        for _ in 0..3 {
            blog.reader().get(path).status(200).has(&format!("After {path}")).lacks("Title of post-01");
        }
    }
}

#[test]
fn a_reader_who_comes_after_the_edit_waits_for_no_older_render() {
    let blog = Blog::new();
    let held = blog.tap.hold("/post-01/");
    thread::scope(|readers| {
        let early = readers.spawn(|| blog.reader().get("/post-01/"));
        held.is_answered();
        blog.editor().edit(Editor::post("post-01"), &json!({"html": "<p>Other words.</p>"}));
        let (answered, late) = sync_channel(1);
        let blog = &blog;
        readers.spawn(move || answered.send(blog.reader().get("/post-01/")));
        let late = late.recv_timeout(SOON);
        held.release();
        early.join().unwrap().status(200);
        late.expect("the late reader does not wait for the early render").status(200).has("Other words.");
    });
    blog.reader().get("/post-01/").has("Other words.");
}

/// A stored page is validated, and Ghost says that it is still the same; then it is edited, and only then the 304 arrives.
#[test]
fn a_late_304_does_not_revive_the_old_page() {
    let blog = Setup::default().seawall("[cache]\nhold = \"1s\"").start();
    blog.stored("/post-01/");
    let held = blog.tap.hold("/post-01/");
    while_a_crowd_reads(
        &blog.reader(),
        2,
        &["/post-01/"],
        |_| {},
        || {
            held.is_answered();
            blog.editor().edit(Editor::post("post-01"), &json!({"html": "<p>Other words.</p>"}));
            held.release();
            for _ in 0..20 {
                blog.reader().get("/post-01/").status(200).has("Other words.").lacks("Words of post-01");
            }
        },
    );
}

/// The 404 of before must not hide the post.
#[test]
fn a_slow_404_begun_before_the_post_was_published_does_not_hide_it() {
    let blog = Blog::new();
    let held = blog.tap.hold("/soon/");
    thread::scope(|readers| {
        let early = readers.spawn(|| blog.reader().get("/soon/"));
        held.is_answered();
        blog.editor().publish("soon", "Words of soon.");
        held.release();
        early.join().unwrap();
    });
    for _ in 0..3 {
        blog.reader().get("/soon/").status(200).has("Words of soon.");
    }
}
