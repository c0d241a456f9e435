//! Members, and what must stay between them and Ghost: pages, cookies, answers of the API, keyed feeds, gifts.

use serde_json::json;

use super::{
    blog::{Blog, FACTS, Setup},
    client::{Answer, Client},
};

/// The texts that are in nobody's answer but a member's own.
const MARKERS: [&str; 9] = [
    "Freda",
    "Sylvia",
    "Gordon",
    "@member.example",
    "SECRET-OF-MEMBERS-POSTS",
    "SECRET-OF-PAID-POSTS",
    "SECRET-OF-TIERS-POSTS",
    "ghost-members-ssr",
    "data-portal=\"account\"",
];

/// The pages that differ for members, and what their browsers ask besides.
const PLACES: [&str; 8] = ["/", "/post-01/", "/post-04/", "/post-05/", "/post-06/", "/about/", "/members/api/member/", "/tag/tides/"];

#[track_caller]
fn is_anonymous(answer: Answer) -> Answer {
    MARKERS.iter().fold(answer.without("set-cookie"), |answer, marker| answer.lacks(marker))
}

#[test]
fn a_member_reads_as_a_member_and_everybody_else_as_before() {
    let blog = Blog::new();
    let anonymous: Vec<_> = PLACES.map(|path| blog.reader().get(path).status).into();
    let member = blog.member("free");
    for _ in 0..3 {
        member.get("/post-04/").status(200).has("SECRET-OF-MEMBERS-POSTS");
        member.get("/members/api/member/").status(200).has("Freda");
        for (path, status) in PLACES.iter().zip(&anonymous) {
            let seen = member.get(path).status(200);
            assert!(!seen.is_hit(), "{seen}");
            is_anonymous(blog.reader().get(path)).status(*status);
        }
    }
}

/// The first to ask is a member: what Ghost renders for them is stored for nobody.
#[test]
fn pages_that_a_member_asked_for_first_are_stored_for_nobody() {
    let blog = Blog::new();
    let member = blog.member("gold");
    for path in PLACES {
        for _ in 0..2 {
            member.get(path).status(200);
        }
        is_anonymous(blog.reader().get(path));
    }
}

#[test]
fn a_paying_member_never_sees_the_anonymous_copy() {
    let blog = Blog::new();
    for path in ["/post-05/", "/post-06/"] {
        blog.stored(path).lacks("SECRET");
    }
    let member = blog.member("gold");
    for _ in 0..3 {
        member.get("/post-05/").has("SECRET-OF-PAID-POSTS");
        member.get("/post-06/").has("SECRET-OF-TIERS-POSTS");
    }
}

#[test]
fn two_members_of_different_tiers_each_see_their_own() {
    let blog = Blog::new();
    let (free, silver, gold) = (blog.member("free"), blog.member("silver"), blog.member("gold"));
    for _ in 0..3 {
        free.get("/post-05/").lacks("SECRET");
        silver.get("/post-05/").has("SECRET-OF-PAID-POSTS");
        silver.get("/post-06/").lacks("SECRET");
        gold.get("/post-06/").has("SECRET-OF-TIERS-POSTS");
        for (member, name) in [(&free, "Freda"), (&silver, "Sylvia"), (&gold, "Gordon")] {
            let me = member.get("/members/api/member/").status(200).has(name);
            for other in ["Freda", "Sylvia", "Gordon"].iter().filter(|other| **other != name) {
                assert!(!me.contains(other), "{me}");
            }
        }
    }
}

#[test]
fn a_member_who_logs_out_is_anonymous_again() {
    let blog = Blog::new();
    let member = blog.member("free");
    member.get("/post-04/").has("SECRET-OF-MEMBERS-POSTS");
    let answer = member.send("DELETE", "/members/api/session/", &[]);
    assert!(matches!(answer.status, 200..=204), "{answer}");
    let after = member.after(&answer);
    assert!(!after.cookie_names().contains(&"ghost-members-ssr"), "{answer}");
    after.get("/post-04/").status(200).lacks("SECRET");
    after.get("/members/api/member/").status(204);
}

/// Ghost answers a badly signed cookie with a public page that deletes the cookie: whoever got that page from a store would be logged out.
#[test]
fn the_answer_to_a_spoilt_cookie_logs_nobody_else_out() {
    let blog = Blog::new();
    let spoilt = blog.reader().with_cookie("ghost-members-ssr", "someone@member.example").with_cookie("ghost-members-ssr.sig", "forged");
    let member = blog.member("free");
    for path in ["/", "/post-01/", "/post-08/"] {
        spoilt.get(path).status(200);
        is_anonymous(blog.reader().get(path)).status(200);
        let seen = member.get(path).status(200);
        assert!(!seen.values("set-cookie").any(|line| line.starts_with("ghost-members-ssr=;")), "{seen}");
    }
    member.get("/members/api/member/").status(200).has("Freda");
}

/// The link that signs a member in works for the one who has it, each time, and is never stored.
#[test]
fn a_link_that_signs_in_reaches_ghost_each_time() {
    let blog = Blog::new();
    let id = FACTS["members"]["free"]["id"].as_str().unwrap();
    let link = blog.editor().get(&format!("members/{id}/signin_urls/"))["member_signin_urls"][0]["url"].as_str().unwrap().to_owned();
    let target = link.strip_prefix(&blog.url).expect("an address of the blog").to_owned();
    for n in 1..=3 {
        blog.reader().get(&target).status(302).field("set-cookie", "ghost-members-ssr=");
        assert_eq!(blog.tap.count(&target), n);
    }
}

#[test]
fn the_toolbar_of_staff_is_on_nobody_elses_page() {
    let blog = Blog::new();
    blog.stored("/");
    let editor = blog.editor().client().clone().with("Accept", "text/html");
    for path in ["/?admin=1", "/post-01/?admin=1"] {
        let answer = editor.get(path).status(302).field("set-cookie", "ghost-admin-toolbar=");
        let with_toolbar = editor.clone().after(&answer);
        let clean = path.trim_end_matches("?admin=1");
        for _ in 0..2 {
            let seen = with_toolbar.get(clean).status(200);
            assert!(seen.contains("admin-toolbar") && !seen.is_hit(), "{seen}");
            is_anonymous(blog.reader().get(clean)).status(200).lacks("admin-toolbar");
        }
    }
    // Anybody may ask for the cookie, each time.
    for _ in 0..2 {
        blog.reader().get("/?admin=1").status(302).field("set-cookie", "ghost-admin-toolbar=");
        blog.reader().get("/?admin=0").status(302);
    }
}

/// A gift opens a post to whoever has the link, in each way in which it can be written, and to nobody else.
#[test]
fn a_gift_is_read_by_who_has_it_in_all_spellings() {
    let blog = Blog::new();
    blog.stored("/post-05/").lacks("SECRET");
    for query in
        ["gift=", "gift", "gift=wrong", "gift[]=x", "gift%5B%5D=x", "%67ift=x", "gif%74=x", "a=1&gift=x", "gift=x&a=1", "gift[a]=x"]
    {
        let path = format!("/post-05/?{query}");
        let before = blog.tap.total();
        for n in 1..=2 {
            let seen = blog.reader().get(&path);
            let ghost = blog.ghost().get(&path);
            assert_eq!(seen.status, ghost.status, "{seen}");
            assert!(!seen.is_hit() && blog.tap.total() >= before + n, "{seen}");
        }
        is_anonymous(blog.reader().get("/post-05/")).status(200);
    }
}

#[test]
fn feeds_with_a_key_and_links_of_one_reader_reach_ghost_each_time() {
    let blog = Blog::new();
    let uuid = FACTS["members"]["gold"]["uuid"].as_str().unwrap();
    blog.stored("/rss/");
    for path in [
        format!("/rss/?uuid={uuid}&key=anything"),
        format!("/unsubscribe/?uuid={uuid}&key=anything"),
        format!("/r/abcdef12?m={uuid}"),
        "/unsubscribe/".to_owned(),
        "/gift/anything/".to_owned(),
        format!("/email/{uuid}/"),
        "/members/?token=anything&action=signin".to_owned(),
        "/?action=signin&success=true".to_owned(),
        format!("/post-01/?uuid={uuid}&key=anything&newsletter=x"),
    ] {
        for n in 1..=3 {
            let seen = blog.reader().get(&path);
            assert!(!seen.is_hit(), "{seen}");
            let asked = blog.tap.all().iter().filter(|seen| seen.target == path).count();
            assert!(asked >= n, "{path} is asked {asked} times of {n}");
        }
    }
}

/// Ghost can let caches keep members' pages. Without Seawall being told so, it shares none.
#[test]
fn member_caching_that_only_ghost_knows_of_shares_nothing() {
    let blog = Setup::default().ghost(tiers_in_ghost()).start();
    members_apart(&blog);
}

const SECRET: &str = "c2VhLXdhbGwtc2VhLXdhbGwtc2VhLXdhbGwtc2VhLXdhbGw=";

fn tiers_in_ghost() -> serde_json::Value {
    json!({"cacheMembersContent": {"enabled": true, "hmacSecret": SECRET}, "caching": {"frontend": {"maxAge": 600}}})
}

fn members_apart(blog: &Blog) {
    let with_access = |name: &str| -> Client {
        let member = blog.member(name);
        let answer = member.get("/members/api/member/").status(200);
        member.after(&answer)
    };
    let (free, silver, gold) = (with_access("free"), with_access("silver"), with_access("gold"));
    for _ in 0..3 {
        free.get("/post-04/").has("SECRET-OF-MEMBERS-POSTS");
        free.get("/post-05/").lacks("SECRET");
        silver.get("/post-05/").has("SECRET-OF-PAID-POSTS");
        silver.get("/post-06/").lacks("SECRET");
        gold.get("/post-06/").has("SECRET-OF-TIERS-POSTS");
        for path in ["/post-04/", "/post-05/", "/post-06/"] {
            let seen = blog.reader().get(path).status(200);
            assert!(!seen.contains("SECRET"), "{seen}");
            // A tier that somebody claims is not theirs.
            let forged = blog.reader().with_cookie("ghost-access", &format!("{}:9999999999", FACTS["tiers"]["gold"].as_str().unwrap()));
            forged.with_cookie("ghost-access-hmac", &"0".repeat(64)).get(path).status(200).lacks("SECRET");
        }
        for (member, name) in [(&free, "Freda"), (&silver, "Sylvia"), (&gold, "Gordon")] {
            member.get("/members/api/member/").status(200).has(name);
        }
    }
}

/// With the secret, members of a tier share what that tier may read, and nothing with others.
#[test]
fn members_of_different_tiers_are_kept_apart_when_seawall_stores_their_pages() {
    let blog = Setup::default().ghost(tiers_in_ghost()).seawall(&format!("[ghost]\nmember_secret = \"{SECRET}\"")).start();
    members_apart(&blog);
    // And an edit is seen by each of them.
    blog.editor().edit(super::editor::Editor::post("post-04"), &json!({"html": "<p>Edited for members.</p>"}));
    let member = blog.member("free");
    let member = member.clone().after(&member.get("/members/api/member/"));
    for _ in 0..2 {
        member.get("/post-04/").status(200).has("Edited for members.");
    }
    blog.reader().get("/post-04/").lacks("Edited for members.");
}
