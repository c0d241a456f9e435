//! Comments: members write them through Seawall, and the next reader sees them, and how many there are.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{
    blog::{Blog, pause},
    client::Client,
    editor::Editor,
};

fn comments_of(post: &str) -> String {
    format!("/members/api/comments/post/{}/", Editor::post(post))
}

fn counts_of(post: &str) -> String {
    format!("/members/api/comments/counts/?ids={}", Editor::post(post))
}

#[track_caller]
fn counted(client: &Client, post: &str) -> u64 {
    let answer = client.get(&counts_of(post)).status(200);
    answer.json()[Editor::post(post)].as_u64().unwrap_or_else(|| panic!("{answer}"))
}

#[track_caller]
fn comment(member: &Client, post: &str, words: &str) -> String {
    let comment = json!({"comments": [{"post_id": Editor::post(post), "html": format!("<p>{words}</p>")}]});
    let made = member.send_json("POST", "/members/api/comments/", &comment).status(201);
    made.clone().without_signal();
    made.json()["comments"][0]["id"].as_str().expect("an identity").to_owned()
}

#[test]
fn a_members_comment_and_the_count_are_seen_by_the_next_reader() {
    let blog = Blog::new();
    let (member, reader) = (blog.member("free"), blog.reader());
    for n in 1..=5 {
        for _ in 0..3 {
            reader.get(&comments_of("post-01")).status(200);
            assert_eq!(counted(&reader, "post-01"), n);
        }
        comment(&member, "post-01", &format!("Comment {n} of a member"));
        reader.get(&comments_of("post-01")).status(200).has(&format!("Comment {n} of a member"));
        assert_eq!(counted(&reader, "post-01"), n + 1);
    }
}

/// It is edited, liked, answered, hidden and deleted: each is seen.
#[test]
fn whatever_happens_to_a_comment_is_seen_by_the_next_reader() {
    let blog = Blog::new();
    let (member, other, reader) = (blog.member("free"), blog.member("gold"), blog.reader());
    let list = comments_of("post-02");
    let see = || reader.get(&list).status(200);
    see();
    let id = comment(&member, "post-02", "First words");
    see().has("First words");
    let path = format!("/members/api/comments/{id}/");
    let edited = member.send_json("PUT", &path, &json!({"comments": [{"html": "<p>Second words</p>"}]}));
    assert_eq!(edited.status, 200, "{edited}");
    see().has("Second words").lacks("First words");

    let likes = || {
        see().json()["comments"].as_array().unwrap().iter().find(|one| one["id"] == *id).expect("the comment")["count"]["likes"].as_u64()
    };
    assert_eq!(likes(), Some(0));
    other.send("POST", &format!("{path}like/"), &[]);
    assert_eq!(likes(), Some(1));

    let reply = json!({"comments": [{"post_id": Editor::post("post-02"), "parent_id": id, "html": "<p>A reply</p>"}]});
    let replies = format!("{path}replies/");
    reader.get(&replies).status(200).lacks("A reply");
    other.send_json("POST", "/members/api/comments/", &reply).status(201);
    reader.get(&replies).status(200).has("A reply");
    see().has("A reply");

    blog.editor().send("PUT", &format!("comments/{id}/"), &json!({"comments": [{"id": id, "status": "hidden"}]}));
    see().lacks("Second words");
    blog.editor().send("PUT", &format!("comments/{id}/"), &json!({"comments": [{"id": id, "status": "published"}]}));
    see().has("Second words");
    // One that has a reply stays as "deleted"; its words go.
    let deleted = member.send_json("PUT", &path, &json!({"comments": [{"status": "deleted"}]}));
    assert_eq!(deleted.status, 200, "{deleted}");
    see().lacks("Second words");
}

/// A comment is not a change of the page: Ghost would render everything anew for each "like".
#[test]
fn a_comment_purges_no_page() {
    let blog = Blog::new();
    let member = blog.member("free");
    for path in ["/", "/post-01/", "/rss/"] {
        blog.stored(path);
    }
    comment(&member, "post-01", "Some words");
    for path in ["/", "/post-01/", "/rss/"] {
        blog.reader().get(path).status(200).hit();
    }
}

/// A member sees who they are in the list of comments: what they liked, and may edit. That list is theirs.
#[test]
fn a_members_view_of_the_comments_is_nobody_elses() {
    let blog = Blog::new();
    let member = blog.member("free");
    let id = comment(&member, "post-03", "Words that I like");
    member.send("POST", &format!("/members/api/comments/{id}/like/"), &[]);
    let list = comments_of("post-03");
    for _ in 0..2 {
        member.get(&list).status(200).has("\"liked\":true");
        blog.reader().get(&list).status(200).lacks("\"liked\":true").lacks("@member.example").has("Words that I like");
    }
    assert!(!member.get(&list).is_hit());
}

/// What keeps a blog alive when a crowd reads it: each page makes its readers' browsers ask for these, and pages that are stored do not help with that.
#[test]
fn questions_about_comments_from_a_crowd_without_cookies_are_few_at_ghost() {
    let blog = Blog::new();
    let started = Instant::now();
    let mut asked = 0;
    while started.elapsed() < Duration::from_secs(2) {
        for post in ["post-01", "post-02"] {
            counted(&blog.reader(), post);
            blog.reader().get(&comments_of(post)).status(200);
            asked += 2;
        }
        pause();
    }
    let reached = blog.tap.all().iter().filter(|seen| seen.target.starts_with("/members/api/comments/")).count();
    assert!(reached * 5 < asked, "{reached} of {asked} questions reached Ghost");
}
