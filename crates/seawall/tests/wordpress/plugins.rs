//! What plugins of a WordPress do to caches, and how its owner learns of it.

use super::blog::{Blog, Setup, path_of};

/// A plugin that begins a session for everybody: each answer has a cookie, and so none may be shared.
#[test]
fn the_cookie_that_keeps_the_site_from_being_stored_is_named() {
    let blog = Setup::default().mu_plugin("session").start();
    let path = path_of("post-01");
    for _ in 0..3 {
        blog.reader().get(path).status(200).field("set-cookie", "PHPSESSID=").field("cache-status", "PHPSESSID");
    }
    assert_eq!(blog.witness.count(path), 3);
    let text = blog.command(&["explain", &format!("{}{path}", blog.url)]);
    assert!(text.contains("PHPSESSID"), "{text}");
}

/// Two readers with a session each never get each other's.
#[test]
fn sessions_are_not_shared() {
    let blog = Setup::default().mu_plugin("session").start();
    let path = path_of("post-01");
    let first = blog.reader().get(path).status(200);
    let second = blog.reader().get(path).status(200);
    assert_ne!(first.value("set-cookie"), second.value("set-cookie"));
    let reader = blog.reader().after(&first);
    for _ in 0..2 {
        reader.get(path).status(200);
        blog.reader().get(path).status(200).field("set-cookie", "PHPSESSID=");
    }
}

#[test]
fn the_pages_are_stored_once_the_owner_says_that_the_session_changes_no_page() {
    let blog = Setup::default().mu_plugin("session").seawall("[cache]\ndrop_set_cookies = [\"PHPSESSID\"]").start();
    let path = path_of("post-01");
    blog.stored(path).status(200).without("set-cookie");
    let asked = blog.witness.total();
    blog.reader().get(path).status(200).hit().without("set-cookie");
    assert_eq!(blog.witness.total(), asked);
}

/// The constant is how plugins tell each other. Only a plugin of Seawall's can pass it on.
#[test]
fn a_page_that_a_plugin_marks_as_not_for_caches_is_not_stored() {
    let blog = Setup::default().mu_plugin("do-not-cache").plugin().start();
    let path = path_of("contact");
    let pages: Vec<_> = (0..3).map(|_| blog.reader().get(path).status(200).content).collect();
    assert!(pages[0] != pages[1] && pages[1] != pages[2]);
    blog.stored(path_of("about")).status(200);
}

#[test]
fn the_plugin_works_without_being_told_anything() {
    let blog = Setup::default().plugin().start();
    let seen = blog.wordpress().get("/");
    // The nginx beside tells what Seawall's readers never see.
    seen.status(200).field("seawall-plugin", "wordpress/").field("cache-tag", "post-");
}

#[test]
fn the_plugin_leaves_nothing_behind() {
    let blog = Setup::default().plugin().start();
    let editor = blog.editor();
    editor.send("POST", "plugins/seawall/seawall", &serde_json::json!({"status": "inactive"}));
    blog.reader().get("/").status(200);
    editor.send("DELETE", "plugins/seawall/seawall", &serde_json::json!({}));
    assert!(!blog.root().join("wp-content/plugins/seawall").exists());
    let left = blog.database.run("SELECT option_name FROM wp_options WHERE option_name LIKE '%seawall%'");
    assert_eq!(left.trim(), "");
    blog.reader().get("/").status(200);
}

#[test]
fn explain_names_the_rule_that_decided() {
    let blog = Blog::new();
    for (path, more, word) in [
        ("/wp-admin/", None, "wordpress-admin"),
        ("/wp-login.php", None, "wordpress-login"),
        ("/?p=1&preview=true", None, "preview"),
        ("/", Some("Cookie: wordpress_logged_in_x=1"), "wordpress_logged_in_"),
    ] {
        let url = format!("{}{path}", blog.url);
        let mut arguments = vec!["explain", &url];
        if let Some(more) = more {
            arguments.extend(["-H", more]);
        }
        let text = blog.command(&arguments);
        assert!(text.contains(word), "{path}: {text}");
    }
}
