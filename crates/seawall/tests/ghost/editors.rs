//! Staff at `/ghost/`: Ghost's admin works through Seawall as it does without.

use std::fmt::Write as _;

use serde_json::json;

use testkit::{Origin, get as request, ok, post};

use super::blog::{Blog, FACTS, Setup, until};

/// Returns something that compresses badly and differs everywhere.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut noise = Vec::with_capacity(bytes + 8);
    while noise.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        noise.extend_from_slice(&state.to_le_bytes());
    }
    noise.truncate(bytes);
    noise
}

#[test]
fn the_owner_signs_in_reads_the_admin_pages_and_signs_out() {
    let blog = Blog::new();
    let login = json!({"username": FACTS["owner"]["email"], "password": FACTS["owner"]["password"]});
    let browser = blog.anybody().with("Origin", &blog.url);
    browser.get("/ghost/").status(200).has("ghost");
    browser.get("/ghost/api/admin/users/me/").status(403);
    let answer = browser.send_json("POST", "/ghost/api/admin/session/", &login).status(201);
    let owner = browser.clone().after(&answer);
    for _ in 0..2 {
        owner.get("/ghost/api/admin/users/me/").status(200).has("Olga Owner");
        browser.get("/ghost/api/admin/users/me/").status(403).lacks("Olga");
    }
    let out = owner.send("DELETE", "/ghost/api/admin/session/", &[]);
    assert_eq!(out.status, 204, "{out}");
    owner.get("/ghost/api/admin/users/me/").status(403);
}

/// What staff do is never answered from a store, and what the cache reads in the answers stays here.
#[test]
fn nothing_of_the_admin_is_stored_and_no_answer_shows_the_signal() {
    let blog = Blog::new();
    let editor = blog.editor();
    for path in ["/ghost/", "/ghost/api/admin/site/", "/ghost/api/admin/posts/?limit=1", "/ghost/api/admin/config/"] {
        let before = blog.tap.count(path);
        for n in 1..=3 {
            let seen = editor.client().get(path).status(200);
            assert!(!seen.is_hit(), "{seen}");
            assert_eq!(blog.tap.count(path), before + n, "{path}");
        }
    }
    let write = json!({"posts": [{"title": "Signals", "slug": "signals", "html": "<p>x</p>", "status": "published"}]});
    editor.send("POST", "posts/?source=html", &write).without_signal();
}

#[test]
fn a_picture_that_is_uploaded_is_read_at_once_whole_and_in_parts() {
    let blog = Blog::new();
    let picture = blog.ghost().get(FACTS["picture"].as_str().unwrap()).status(200).content;
    let made = blog.editor().upload("images/upload/", "file", "new-picture.jpg", "image/jpeg", &picture).json();
    let url = made["images"][0]["url"].as_str().unwrap().to_owned();
    let path = url.strip_prefix(&blog.url).expect("an address of the blog");
    let whole = blog.stored(path).status(200).field("content-type", "image/jpeg");
    assert_eq!(whole.content, blog.ghost().get(path).content);
    let part = blog.reader().with("Range", "bytes=100-299").get(path).status(206);
    assert_eq!(part.content, whole.content[100..300]);
    let small = path.replace("/images/", "/images/size/w600/");
    blog.reader().get(&small).status(200).field("content-type", "image/jpeg");
}

#[test]
fn a_file_of_a_hundred_megabytes_goes_up_and_comes_down() {
    let blog = Blog::new();
    let file = noise(100 << 20);
    let made = blog.editor().upload("files/upload/", "file", "hundred.zip", "application/zip", &file).json();
    let url = made["files"][0]["url"].as_str().unwrap().to_owned();
    let path = url.strip_prefix(&blog.url).expect("an address of the blog");
    assert!(blog.reader().get(path).status(200).content == file, "the file comes back as it was sent");
    let part = blog.reader().with("Range", "bytes=104857500-").get(path).status(206);
    assert!(part.content == file[104_857_500..]);
}

#[test]
fn members_are_imported_from_a_file() {
    let blog = Blog::new();
    let mut csv = "email,name,note\n".to_owned();
    for n in 0..50 {
        writeln!(csv, "imported-{n}@member.example,Imported {n},\"a, note\"").unwrap();
    }
    blog.editor().upload("members/upload/", "membersfile", "members.csv", "text/csv", csv.as_bytes());
    let found = || blog.editor().get("members/?limit=1&search=imported-49")["members"][0]["name"] == "Imported 49";
    until("the last one is there", found);
}

/// A signature is over bytes: one that is changed on its way, and no payment is booked.
#[test]
fn the_body_of_a_payment_event_reaches_ghost_byte_for_byte() {
    let blog = Blog::new();
    let odd = b"{ \"id\" : \"evt_1\",\r\n\t\"n\":1.0, \"u\":\"\\u00e9 \xc3\xa9\", \"z\":\"\x00\" }  \n".as_slice();
    for (n, body) in [odd.to_vec(), noise(200_000), Vec::new()].into_iter().enumerate() {
        let target = format!("/members/webhooks/stripe/?n={n}");
        let sender = blog.anybody().with("Content-Type", "application/json; charset=utf-8").with("Stripe-Signature", "t=1,v1=ab");
        sender.send("POST", &target, &body);
        let seen = blog.tap.last(&target);
        assert!(seen.content == body, "{} of {} bytes, or others", seen.content.len(), body.len());
        assert!(seen.head.to_ascii_lowercase().contains("stripe-signature: t=1,v1=ab\r\n"), "{}", seen.head);
    }
}

/// What the editor saves while writing: the draft is nobody's page, and does not make everybody's cold.
#[test]
fn saving_a_draft_again_and_again_leaves_all_pages_stored() {
    let blog = Blog::new();
    let id = FACTS["draft"]["id"].as_str().unwrap();
    for path in ["/", "/post-01/", "/rss/"] {
        blog.stored(path);
    }
    for n in 0..10 {
        blog.editor().edit(id, &json!({"html": format!("<p>Version {n}</p>")}));
    }
    blog.editor().write(&json!({"title": "Another draft", "status": "draft"}));
    for path in ["/", "/post-01/", "/rss/"] {
        blog.reader().get(path).status(200).hit();
    }
}

/// Ghost itself answers these with a redirect for a year: they are for other servers, whose answers are passed on as they are.
#[test]
fn the_social_web_and_the_statistics_go_to_servers_of_their_own() {
    let (social, statistics) = (Origin::start(), Origin::start());
    social.on(request("/.ghost/activitypub/users/index")).reply(ok("an actor").field("content-type", "application/activity+json"));
    social.on(request("/.well-known/webfinger").query("resource=acct:index@blog.example")).reply(ok("a finger"));
    social.on(request("/.well-known/nodeinfo")).reply(ok("a node"));
    statistics.on(post("/api/v1/page_hit").any_query()).reply(ok("counted"));
    let blog =
        Setup::default().seawall(&format!("[ghost]\nactivitypub = \"{}\"\nanalytics = \"{}\"", social.url(), statistics.url())).start();
    for _ in 0..2 {
        blog.reader().get("/.ghost/activitypub/users/index").status(200).has("an actor");
        blog.reader().get("/.well-known/webfinger?resource=acct:index@blog.example").status(200).has("a finger");
        blog.reader().get("/.well-known/nodeinfo").status(200).has("a node");
        let hit = blog.reader().send("POST", "/.ghost/analytics/api/v1/page_hit?name=analytics_events", b"{}");
        assert_eq!((hit.status, hit.text().as_str()), (200, "counted"), "{hit}");
    }
    assert_eq!(social.count("/.ghost/activitypub/users/index"), 2, "nothing of it is stored");
    let strays: Vec<_> = blog.tap.all().into_iter().filter(|seen| seen.target.starts_with("/.")).map(|seen| seen.target).collect();
    assert!(strays.is_empty(), "Ghost was asked for {strays:?}");
}
