//! A Ghost that is edited past Seawall, and says so with a webhook.

use serde_json::json;

use super::{
    blog::{Blog, FACTS, Setup, until},
    editor::Editor,
};

const SECRET: &str = "a-secret-for-webhooks";

/// Sets up Ghost's own webhook, with a secret or without, to the blog's address.
fn tell(blog: &Blog, event: &str, secret: Option<&str>) {
    let mut webhook = json!({
        "event": event, "name": event, "target_url": format!("{}/.seawall/ghost", blog.url), "integration_id": FACTS["integration"],
    });
    if let Some(secret) = secret {
        webhook["secret"] = secret.into();
    }
    blog.editor_past_seawall().send("POST", "webhooks/", &json!({"webhooks": [webhook]}));
}

fn with_secret() -> Blog {
    Setup::default().seawall(&format!("[ghost]\nwebhook_secret = \"{SECRET}\"")).start()
}

#[test]
fn an_edit_past_seawall_is_seen_when_ghosts_webhook_has_come() {
    let blog = with_secret();
    tell(&blog, "site.changed", Some(SECRET));
    for path in ["/post-01/", "/"] {
        blog.stored(path);
    }
    blog.editor_past_seawall().edit(Editor::post("post-01"), &json!({"title": "Edited past it", "html": "<p>Other words.</p>"}));
    until("the edit is seen", || blog.reader().get("/post-01/").contains("Other words."));
    blog.reader().get("/").status(200).has("Edited past it");
}

#[test]
fn a_webhook_about_one_post_shows_it_everywhere() {
    let blog = with_secret();
    tell(&blog, "post.published.edited", Some(SECRET));
    for path in ["/post-01/", "/", "/tag/stones/"] {
        blog.stored(path);
    }
    blog.editor_past_seawall().edit(Editor::post("post-01"), &json!({"title": "Edited past it", "slug": "moved-past-it"}));
    until("the new address is there", || blog.reader().get("/").contains("Edited past it"));
    blog.reader().get("/moved-past-it/").status(200);
    let old = blog.reader().get("/post-01/");
    assert!(matches!(old.status, 301 | 404), "{old}");
    blog.reader().get("/tag/stones/").has("Edited past it");
}

/// Whoever knows no secret has nothing to say.
#[test]
fn a_webhook_without_the_right_signature_purges_nothing() {
    let blog = with_secret();
    blog.stored("/post-01/");
    let asked = blog.tap.count("/post-01/");
    let sender = blog.anybody().with("Content-Type", "application/json");
    for signature in [None, Some("sha256=00, t=1"), Some("sha256=, t="), Some(""), Some("t=1")] {
        let sender = signature.map_or_else(|| sender.clone(), |value| sender.clone().with("X-Ghost-Signature", value));
        let answer = sender.send("POST", "/.seawall/ghost", br#"{"event":"site.changed"}"#);
        assert!(matches!(answer.status, 400..=404) && answer.status != 410, "{answer}");
    }
    blog.reader().get("/post-01/").status(200).hit();
    assert_eq!(blog.tap.count("/post-01/"), asked);
    assert_eq!(blog.tap.count("/.seawall/ghost"), 0, "it is not for Ghost");
}

/// Ghost deletes a webhook that is answered with 410, and sends each once: it must never get one, and soon get an answer.
#[test]
fn ghosts_webhook_is_answered_so_that_ghost_keeps_it() {
    let blog = with_secret();
    tell(&blog, "site.changed", Some(SECRET));
    blog.stored("/");
    for n in 0..3 {
        blog.editor_past_seawall().set("title", &format!("Title number {n}").into());
        until("the title is seen", || blog.reader().get("/").contains(&format!("Title number {n}")));
    }
    let integration = FACTS["integration"].as_str().unwrap();
    let found = blog.editor().get(&format!("integrations/{integration}/?include=webhooks"));
    assert_eq!(found["integrations"][0]["webhooks"].as_array().map(Vec::len), Some(1), "{found}");
}
