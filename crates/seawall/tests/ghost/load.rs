//! A crowd on many pages: what reaches Ghost of it.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use super::{
    blog::{Blog, FACTS, Setup, long_tests_run, while_a_crowd_reads},
    client::{Answer, Connection},
};

/// Makes one visit, as a browser makes it: the page, its files, who am I, the comments and their count, the index of the search.
fn visit(blog: &Blog, number: usize, files: &[String]) -> usize {
    let slug = format!("post-{:02}", [1, 2, 3, 7, 8, 9, 10, 11][number % 8]);
    let id = super::editor::Editor::post(&slug);
    let key = FACTS["content_key"].as_str().unwrap();
    let mut reader = Connection::of(&blog.reader());
    let mut targets = vec![format!("/{slug}/?fbclid=IwAR{number}"), "/".to_owned()];
    targets.extend_from_slice(files);
    targets.extend([
        "/members/api/member/".to_owned(),
        "/ghost/auth-frame/".to_owned(),
        format!("/members/api/comments/counts/?ids={id}"),
        format!("/members/api/comments/post/{id}/"),
        format!("/ghost/api/content/search-index/posts/?key={key}"),
    ]);
    for target in &targets {
        let answer = reader.exchange("GET", target, &[]);
        assert!(matches!(answer.status, 200 | 204), "{answer}");
    }
    targets.len()
}

/// Makes so many visits by so many readers at once, and asserts that of their requests at most one in a hundred reaches Ghost.
fn visits(visits: usize, readers: usize) {
    let blog = Blog::new();
    let front = blog.reader().get("/").text();
    let mut files: Vec<_> = front
        .split(['"', '\''])
        .filter(|part| part.contains("/assets/built/") || part.contains("/public/") || part.contains("/content/images/"))
        .map(|part| part.split([' ', ',']).next().unwrap_or(part).replace("&amp;", "&").trim_start_matches(&blog.url).to_owned())
        .filter(|path| path.starts_with('/'))
        .collect();
    files.sort();
    files.dedup();
    let (next, sent) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let before = blog.tap.total();
    thread::scope(|crowd| {
        for _ in 0..readers {
            crowd.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= visits {
                        return;
                    }
                    sent.fetch_add(visit(&blog, number, &files), Ordering::Relaxed);
                }
            });
        }
    });
    let (sent, reached) = (sent.into_inner(), blog.tap.total() - before);
    assert!(reached * 100 < sent, "{reached} of {sent} requests reached Ghost");
}

#[test]
fn of_the_requests_of_five_hundred_visits_less_than_one_in_a_hundred_reaches_ghost() {
    visits(500, 8);
}

#[test]
fn of_the_requests_of_two_thousand_visits_less_than_one_in_a_hundred_reaches_ghost() {
    if long_tests_run() {
        visits(2000, 64);
    }
}

/// After "everything has changed", everything is asked for at once: by readers, and by Seawall itself. Ghost gets no more at a time than it is meant to.
#[test]
fn a_publish_on_a_busy_blog_raises_no_storm_at_ghost() {
    let blog = Setup::default().seawall("[origin]\nconcurrency = 3").start();
    // From now on each turn is counted to its end: what was asked for at the start is not still counted later.
    blog.tap.most_at_once();
    let pages: Vec<_> =
        (1..=20).flat_map(|n| [format!("/post-{n:02}/"), format!("/post-{n:02}.md")]).chain(["/".to_owned(), "/rss/".to_owned()]).collect();
    for path in &pages {
        blog.reader().get(path).status(200);
    }
    blog.tap.most_at_once();
    let is_page = |answer: &Answer| assert_eq!(answer.status, 200, "{answer}");
    let paths: Vec<_> = pages.iter().map(String::as_str).collect();
    while_a_crowd_reads(&blog.reader(), 32, &paths, is_page, || {
        for n in 0..5 {
            blog.editor().set("description", &format!("Changed {n}").into());
        }
    });
    let most = blog.tap.most_at_once();
    assert!(most <= 3, "Ghost had {most} requests at once");
}
