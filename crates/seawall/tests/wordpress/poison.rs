//! Requests that strangers make up: they decide nothing for others, and purge nothing.

use super::{
    blog::{Blog, Setup, path_of},
    editor::Editor,
};

/// WordPress's REST API answers a GET with this field as if it had another method: its answer is nobody else's.
#[test]
fn a_method_that_a_field_names_is_never_what_others_get() {
    let blog = Blog::new();
    let target = "/wp-json/wp/v2/posts?per_page=2";
    for method in ["OPTIONS", "HEAD", "DELETE", "POST"] {
        for field in ["X-HTTP-Method-Override", "x-http-method-override"] {
            blog.anybody().with(field, method).get(target);
            let posts = blog.anybody().get(target).status(200).json();
            assert_eq!(posts.as_array().map(Vec::len), Some(2), "{method}: {posts}");
        }
    }
    // The same with the parameter of that meaning.
    blog.anybody().get(&format!("{target}&_method=OPTIONS"));
    assert_eq!(blog.anybody().get(target).status(200).json().as_array().map(Vec::len), Some(2));
}

#[test]
fn fields_of_a_stranger_are_on_no_page() {
    let blog = Blog::new();
    let path = path_of("post-11");
    for (n, field) in [
        "X-Forwarded-Host",
        "X-Host",
        "Forwarded",
        "X-Original-URL",
        "X-Rewrite-URL",
        "X-Forwarded-Proto",
        "X-Forwarded-For",
        "X-LSCACHE",
        "X-Real-IP",
        "Proxy",
        "Front-End-Https",
    ]
    .iter()
    .enumerate()
    {
        let value = match *field {
            "X-Forwarded-Proto" => "https",
            "Forwarded" => "host=evil.example;proto=https",
            "X-Original-URL" | "X-Rewrite-URL" => "/wp-admin/?evil.example",
            _ => "evil.example",
        };
        let target = format!("{path}?cold={n}");
        let answer = blog.reader().with(field, value).get(&target);
        assert!(!answer.contains("evil.example"), "{field}: {answer}");
        blog.reader().get(&target).status(200).has("Words of post-11").lacks("evil.example").lacks("https://127.0.0.1");
    }
}

#[test]
fn what_a_stranger_sends_purges_nothing() {
    let blog = Setup::default().plugin().start();
    let pages = ["/", path_of("post-01"), path_of("about"), "/feed/"];
    for page in pages {
        blog.stored(page);
    }
    let stranger = || {
        let mut client = blog.reader();
        for field in ["Seawall-Purge", "X-LiteSpeed-Purge", "X-Cache-Invalidate", "Cache-Group-Invalidation"] {
            client = client.with(field, "*");
        }
        client.with("Seawall-Plugin", "wordpress/1")
    };
    let asked = blog.witness.total();
    stranger().get("/");
    stranger().post("/wp-login.php", "log=owner&pwd=wrong");
    stranger().post("/wp-comments-post.php", "comment_post_ID=1&comment=");
    stranger().post("/xmlrpc.php", "<methodCall><methodName>demo.sayHello</methodName></methodCall>");
    stranger().send_json("POST", "/wp-json/wp/v2/posts", &serde_json::json!({"title": "x", "status": "publish"}));
    stranger().send("DELETE", &format!("/wp-json/wp/v2/posts/{}", Editor::post("post-01")), &[]);
    stranger().post("/wp-admin/admin-ajax.php", "action=heartbeat");
    stranger().get(&format!("/wp-admin/post.php?post={}&action=trash&_wpnonce=0000000000", Editor::post("post-01")));
    stranger().post("/.seawall/wordpress", "{\"purge\":[\"*\"]}").lacks("\"purged\":4");
    let after = blog.witness.total();
    assert!(after > asked);
    for page in pages {
        blog.reader().get(page).status(200).hit();
    }
    assert_eq!(blog.witness.total(), after, "nothing was fetched again");
}

#[test]
fn a_strangers_post_to_a_page_is_answered_and_stored_for_nobody() {
    let blog = Blog::new();
    let path = path_of("post-01");
    let page = blog.stored(path).content;
    for _ in 0..3 {
        blog.reader().post(path, "x=1");
        assert!(blog.reader().get(path).status(200).content == page);
    }
}

/// What WordPress and its plugin say to caches ends at the cache.
#[test]
fn readers_see_nothing_of_what_is_said_to_caches() {
    let blog = Setup::default().plugin().start();
    for client in [blog.reader(), blog.owner()] {
        for page in ["/", path_of("post-01"), "/no-such-page/", "/feed/"] {
            for _ in 0..2 {
                let answer = client.get(page);
                for field in ["seawall-plugin", "seawall-purge", "seawall-cache-control", "x-litespeed-purge"] {
                    assert!(answer.value(field).is_none(), "{field}: {answer}");
                }
            }
        }
    }
}

#[test]
fn php_that_was_uploaded_is_neither_run_nor_sent() {
    let blog = Blog::new();
    let uploads = blog.root().join("wp-content/uploads");
    std::fs::write(uploads.join("evil.php"), "<?php echo 'RUN'; ?> SOURCE").unwrap();
    std::fs::write(uploads.join("evil.jpg"), "<?php echo 'RUN'; ?> SOURCE").unwrap();
    for path in [
        "/wp-content/uploads/evil.php",
        "/wp-content/uploads/evil.php/x",
        "/wp-content/uploads/evil.jpg/x.php",
        "/wp-config.php.bak",
        "/.htaccess",
        "/wp-config.php~",
    ] {
        blog.reader().get(path).lacks("RUN").lacks("SOURCE");
    }
    for path in ["/wp-config.php", "/wp-config-more.php", "/wp-includes/version.php"] {
        blog.reader().get(path).lacks("define(").lacks("DB_");
    }
}
