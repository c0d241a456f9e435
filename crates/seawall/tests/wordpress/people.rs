//! People whom WordPress knows, or to whom it shows what others do not see: each gets their own page, and nobody gets another's.

use super::{
    blog::{Blog, FACTS, Form, Setup, path_of},
    client::{Answer, Client},
    editor::Editor,
};

/// Asserts that a page is the one for strangers.
fn is_anonymous(answer: &Answer) {
    for marker in ["wp-admin-bar", "admin-bar-css", "logged-in", "Olga Owner</span>", "Rita Reader", "_wpnonce", "edit-post-link"] {
        answer.clone().lacks(marker);
    }
    answer.clone().without("set-cookie");
}

fn a_reader_who_signed_in_shares_nothing(form: Form) {
    let blog = Setup::default().form(form).start();
    let path = path_of("post-01");
    // Cold: the one who signed in comes first.
    let reader = Editor::sign_in(&blog.reader(), "reader");
    for page in [path, "/", path_of("about")] {
        reader.get(page).status(200).has("wp-admin-bar");
        is_anonymous(&blog.reader().get(page).status(200));
        is_anonymous(&blog.stored(page));
        for _ in 0..2 {
            reader.get(page).status(200).has("wp-admin-bar");
            is_anonymous(&blog.reader().get(page).status(200).hit());
        }
    }
    let owner = blog.owner();
    owner.get(path).status(200).has("Olga Owner").lacks("Rita Reader");
    reader.get(path).status(200).has("Rita Reader").lacks("Olga Owner</span>");
}

#[test]
fn a_reader_who_signed_in_gets_their_own_page_and_leaves_nothing_for_others() {
    a_reader_who_signed_in_shares_nothing(Form::Folder);
}

#[test]
fn a_reader_who_signed_in_leaves_nothing_for_others_in_front_of_a_server() {
    a_reader_who_signed_in_shares_nothing(Form::Server);
}

#[test]
fn signing_in_and_out_is_nobody_elses() {
    let blog = Blog::new();
    for _ in 0..2 {
        blog.reader().get("/wp-login.php").status(200).field("set-cookie", "wordpress_test_cookie");
    }
    assert_eq!(blog.witness.count("/wp-login.php"), 2);
    let reader = Editor::sign_in(&blog.reader(), "reader");
    let profile = reader.get("/wp-admin/profile.php").status(200).has("Rita Reader");
    blog.reader().get("/wp-admin/profile.php").status(302).field("location", "wp-login.php").lacks("Rita");
    // The link to sign out is on the page, and has a nonce in it.
    let text = profile.text();
    let link =
        text.split(['"', '\'']).find(|part| part.contains("action=logout")).expect("a link").replace("&#038;", "&").replace("&amp;", "&");
    let out = reader.get(link.trim_start_matches(&blog.url)).status(302);
    let left = reader.after(&out);
    assert!(!left.cookie_names().iter().any(|name| name.starts_with("wordpress_logged_in_")), "{out}");
    is_anonymous(&left.get("/").status(200));
}

/// Comments, and returns the answer.
fn comment(client: &Client, slug: &str, name: &str, words: &str) -> Answer {
    let post = Editor::post(slug);
    let form = format!(
        "comment_post_ID={post}&author={name}&email={name}%40reader.example&comment={words}&submit=Post+Comment&comment_parent=0&wp-comment-cookies-consent=yes"
    );
    client.post("/wp-comments-post.php", &form).status(302)
}

#[test]
fn a_comment_that_waits_is_shown_to_its_author_only() {
    let blog = Blog::new();
    let path = path_of("post-02");
    blog.stored(path);
    let answer = comment(&blog.reader(), "post-02", "Nora", "WAITING-WORDS");
    let nora = blog.reader().after(&answer);
    assert!(nora.cookie_names().iter().any(|name| name.starts_with("comment_author_")), "{answer}");
    for _ in 0..2 {
        nora.get(path).status(200).has("WAITING-WORDS").has("Nora");
        blog.reader().get(path).status(200).lacks("WAITING-WORDS").lacks("Nora");
    }
    // Another commenter has cookies of the same names.
    let answer = comment(&blog.reader(), "post-02", "Otto", "OTHER-WORDS");
    let otto = blog.reader().after(&answer);
    for _ in 0..2 {
        otto.get(path).status(200).has("OTHER-WORDS").lacks("WAITING-WORDS").lacks("Nora");
        nora.get(path).status(200).has("WAITING-WORDS").lacks("OTHER-WORDS").lacks("Otto");
        blog.stored(path).lacks("WORDS").lacks("Otto").lacks("Nora");
    }
}

/// Who takes no cookies is sent to a link that shows the comment.
#[test]
fn the_link_that_shows_a_waiting_comment_is_never_stored() {
    let blog = Blog::new();
    let path = path_of("post-03");
    let form =
        format!("comment_post_ID={}&author=Pia&email=pia%40reader.example&comment=WAITING-WORDS&comment_parent=0", Editor::post("post-03"));
    let answer = blog.reader().post("/wp-comments-post.php", &form).status(302);
    let link = answer.value("location").expect("a link").trim_start_matches(&blog.url).split('#').next().unwrap().to_owned();
    assert!(link.contains("unapproved=") && link.contains("moderation-hash="), "{answer}");
    for _ in 0..2 {
        blog.reader().get(&link).status(200).has("WAITING-WORDS");
        blog.stored(path).lacks("WAITING-WORDS");
        blog.reader().get(&link.replace("moderation-hash=", "moderation-hash=0")).lacks("WAITING-WORDS");
        blog.reader().get(&format!("{path}?utm_source=x")).lacks("WAITING-WORDS");
    }
    assert_eq!(blog.witness.count(&link), 2);
}

/// Somebody who holds F5 down after a comment must not take the site down: the cookie counts where comments are.
#[test]
fn a_commenter_gets_everything_else_from_the_store() {
    let blog = Blog::new();
    let answer = comment(&blog.reader(), "post-05", "Rosa", "Words.");
    let rosa = blog.reader().after(&answer);
    for file in ["/wp-includes/js/jquery/jquery.min.js", "/wp-content/themes/seaside/style.css", FACTS["picture"]["path"].as_str().unwrap()]
    {
        let asked = blog.witness.total();
        rosa.get(file).status(200);
        assert_eq!(blog.witness.total(), asked, "{file}");
    }
}

fn password(blog: &Blog, reader: &Client, slug: &str, password: &str) -> Client {
    let form = format!("post_password={password}&Submit=Enter");
    let answer =
        reader.clone().with("Referer", &format!("{}{}", blog.url, path_of(slug))).post("/wp-login.php?action=postpass", &form).status(302);
    reader.clone().after(&answer)
}

#[test]
fn a_post_with_a_password_is_open_to_those_who_know_it_and_to_nobody_else() {
    let blog = Blog::new();
    let path = path_of("post-04");
    blog.reader().get(path).status(200).has("post-password-form").lacks("SECRET-BEHIND");
    let knows = password(&blog, &blog.reader(), "post-04", "opensesame");
    let guesses = password(&blog, &blog.reader(), "post-04", "wrong");
    for _ in 0..3 {
        knows.get(path).status(200).has("SECRET-BEHIND-A-PASSWORD in post-04");
        blog.reader().get(path).status(200).has("post-password-form").lacks("SECRET-BEHIND");
        guesses.get(path).status(200).has("post-password-form").lacks("SECRET-BEHIND");
    }
    for list in ["/", "/feed/", "/wp-json/wp/v2/posts", "/?s=SECRET", "/author/ada/"] {
        knows.get(list).status(200);
        blog.reader().get(list).status(200).lacks("SECRET-BEHIND");
    }
    let rest = format!("/wp-json/wp/v2/posts/{}", Editor::post("post-04"));
    blog.anybody().get(&format!("{rest}?password=opensesame")).status(200).has("SECRET-BEHIND");
    blog.anybody().get(&rest).status(200).lacks("SECRET-BEHIND");
}

#[test]
fn a_preview_is_shown_to_its_author_only() {
    let blog = Blog::new();
    let owner = blog.owner();
    let draft = Editor::post("draft");
    for target in [
        format!("/?p={draft}&preview=true"),
        format!("/?p={draft}"),
        format!("/?preview=true&p={draft}&preview_id={draft}&preview_nonce=x"),
    ] {
        for _ in 0..2 {
            if target.ends_with("preview=true") || target.ends_with(&draft.to_string()) {
                owner.get(&target).status(200).has("SECRET-OF-THE-DRAFT");
            }
            let stranger = blog.reader().get(&target).lacks("SECRET-OF-THE-DRAFT");
            assert!(stranger.status >= 300, "{stranger}");
        }
    }
}

/// The preview of a change of a published post has the post's own address, with parameters.
#[test]
fn a_preview_of_a_change_does_not_show_on_the_page() {
    let blog = Blog::new();
    let editor = blog.editor();
    let (path, post) = (path_of("post-09"), Editor::post("post-09"));
    blog.stored(path);
    let change = serde_json::json!({"title": "Title of the change", "content": "WORDS-OF-THE-CHANGE"});
    let saved = editor.send("POST", &format!("posts/{post}/autosaves"), &change);
    // What the editor's button opens.
    let link = saved["preview_link"].as_str().expect("a link").trim_start_matches(&blog.url).to_owned();
    assert!(link.starts_with(path) && link.contains("preview_nonce="), "{link}");
    for _ in 0..2 {
        blog.owner().get(&link).status(200).has("WORDS-OF-THE-CHANGE");
        blog.reader().get(&link).lacks("WORDS-OF-THE-CHANGE");
        blog.stored(path).has("Words of post-09").lacks("WORDS-OF-THE-CHANGE");
    }
}

#[test]
fn private_posts_and_posts_of_later_are_for_their_authors() {
    let blog = Blog::new();
    let owner = blog.owner();
    let path = path_of("private");
    let later = format!("/?p={}", Editor::post("later"));
    for _ in 0..2 {
        owner.get(path).status(200).has("SECRET-OF-THE-FAMILY");
        owner.get(&later).status(200).has("SECRET-OF-LATER");
        blog.reader().get(path).status(404).lacks("SECRET");
        blog.reader().get(&later).status(404).lacks("SECRET");
        for list in ["/", "/page/2/", "/feed/", "/wp-json/wp/v2/posts?per_page=100", "/?s=family", "/2023/05/"] {
            owner.get(list);
            blog.reader().get(list).lacks("SECRET").lacks("For the family").lacks("Much later");
        }
    }
    Editor::sign_in(&blog.reader(), "reader").get(path).status(404).lacks("SECRET");
}

/// What the REST API shows depends on who asks: with cookies and a nonce, or with a password of an application.
#[test]
fn the_rest_api_answers_each_for_themselves() {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let blog = Blog::new();
    let (editor, post) = (blog.editor(), Editor::post("draft"));
    let password = FACTS["application_password"].as_str().unwrap();
    let application = blog.anybody().with("Authorization", &format!("Basic {}", STANDARD.encode(format!("owner:{password}"))));
    for target in
        [format!("/wp-json/wp/v2/posts/{post}"), "/wp-json/wp/v2/posts?status=draft".to_owned(), "/wp-json/wp/v2/users/me".to_owned()]
    {
        for _ in 0..2 {
            editor.rest().get(&target).status(200);
            application.get(&target).status(200);
            let stranger = blog.anybody().get(&target).lacks("SECRET").lacks("Olga");
            assert!(matches!(stranger.status, 400 | 401 | 403), "{stranger}");
            // Cookies without a nonce are a stranger, too.
            let unproven = blog.owner().get(&target).lacks("SECRET");
            assert!(matches!(unproven.status, 400 | 401 | 403), "{unproven}");
        }
    }
    // The same address, for both.
    let list = "/wp-json/wp/v2/posts?per_page=3";
    let nobody = blog.anybody().get(list).status(200).content;
    editor.rest().get(&format!("{list}&context=edit")).status(200).has("\"raw\"");
    editor.rest().get(list).status(200);
    assert!(blog.anybody().get(list).status(200).content == nobody);
    blog.anybody().get(&format!("{list}&context=edit")).lacks("\"raw\"");
}

// --------------------------------------------------------------------------------------------------------------------------- a shop

fn shop() -> Blog {
    let blog = Setup::default().mu_plugin("cart").start();
    blog.php("wp_insert_post(['post_type' => 'page', 'post_status' => 'publish', 'post_title' => 'Warenkorb', 'post_name' => 'warenkorb', 'post_content' => 'cart', 'post_date' => '2023-01-01 12:00:00']);");
    blog
}

#[test]
fn two_carts_never_mix_and_strangers_see_none() {
    let blog = shop();
    let path = path_of("post-01");
    blog.stored(path);
    let buys = |what: &str| {
        let answer = blog.reader().get(&format!("/?add-to-cart={what}")).status(302);
        blog.reader().after(&answer)
    };
    let (ropes, sails) = (buys("ROPE"), buys("SAIL"));
    for _ in 0..3 {
        ropes.get("/warenkorb/").status(200).has("In the cart: ROPE.").lacks("SAIL");
        sails.get("/warenkorb/").status(200).has("In the cart: SAIL.").lacks("ROPE");
        ropes.get(path).status(200).has("1 of ROPE").lacks("SAIL");
        sails.get(path).status(200).has("1 of SAIL").lacks("ROPE");
        blog.reader().get(path).status(200).lacks("ROPE").lacks("SAIL");
        blog.reader().get("/warenkorb/").status(200).has("In the cart: .");
        ropes.get("/?wc-ajax=get_refreshed_fragments").status(200).has("ROPE").lacks("SAIL");
        blog.reader().get("/?wc-ajax=get_refreshed_fragments").status(200).lacks("ROPE");
    }
}

/// The cart has the name that its language gives it. Its fields say that it is not for caches.
#[test]
fn a_cart_with_a_translated_name_is_never_stored() {
    let blog = shop();
    for _ in 0..3 {
        blog.reader().get("/warenkorb/").status(200);
    }
    assert_eq!(blog.witness.count("/warenkorb/"), 3);
}

#[test]
fn putting_something_into_the_cart_is_done_every_time() {
    let blog = shop();
    let first = blog.reader().get("/?add-to-cart=ROPE").status(302);
    let reader = blog.reader().after(&first);
    reader.get("/?add-to-cart=ROPE").status(302);
    reader.get("/warenkorb/").has("ROPE, ROPE");
    let other = blog.reader().get("/?add-to-cart=ROPE").status(302);
    assert_ne!(first.value("set-cookie"), other.value("set-cookie"), "a session of another customer");
}

/// A customer who left an empty cart behind is a reader like others.
#[test]
fn an_empty_cart_is_no_reason_to_ask_php() {
    let blog = shop();
    let path = path_of("post-02");
    blog.stored(path);
    let asked = blog.witness.total();
    blog.reader().with_cookie("woocommerce_items_in_cart", "0").with_cookie("woocommerce_cart_hash", "").get(path).status(200).hit();
    assert_eq!(blog.witness.total(), asked);
    blog.reader().with_cookie("woocommerce_items_in_cart", "1").get(path).status(200);
    assert_eq!(blog.witness.total(), asked + 1);
}

/// The owner may write HTML into comments, and the form of a comment says so with a nonce.
#[test]
fn the_forms_that_strangers_see_have_no_nonce_of_another() {
    let blog = Blog::new();
    let (path, nonce) = (path_of("post-01"), "_wp_unfiltered_html_comment");
    blog.owner().get(path).status(200).has(nonce);
    blog.stored(path).lacks(nonce);
    blog.owner().get(path).status(200).has(nonce);
    blog.stored(path).lacks(nonce);
}
