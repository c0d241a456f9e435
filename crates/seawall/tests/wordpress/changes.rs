//! What an editor changes: everybody sees it with the next request after WordPress's answer, with Seawall's plugin and without it.

use std::collections::BTreeSet;

use serde_json::json;

use super::{
    blog::{Blog, FACTS, Form, Setup, path_of},
    client::Answer,
    crowd::while_a_crowd_reads,
    editor::Editor,
};

/// Makes the tests of the same changes for each way in which Seawall hears of them.
macro_rules! changes {
    ($($name:ident)*) => {
        mod without_the_plugin {
            $(#[test] fn $name() { super::$name(&|| super::Setup::default()); })*
        }
        mod with_the_plugin {
            $(#[test] fn $name() { super::$name(&|| super::Setup::default().plugin()); })*
        }
    };
}

changes! {
    a_published_post_is_everywhere_with_the_next_request
    an_edit_is_seen_and_the_old_words_are_gone
    an_edited_old_post_is_seen
    a_trashed_post_leaves_nothing
    a_post_trashed_with_a_link_leaves_nothing
    a_post_that_moves_leaves_a_redirect
    a_post_that_gets_a_password_or_becomes_private_is_closed_at_once
    an_approved_comment_is_seen
    a_comment_approved_with_a_link_is_seen_and_one_that_is_binned_is_gone
    a_changed_menu_is_on_every_page
    a_changed_menu_and_widget_of_a_classic_theme_are_on_every_page
    another_theme_is_on_every_page
    a_changed_title_of_the_site_is_on_every_page
    a_renamed_category_and_author_are_on_their_pages
    a_changed_template_is_on_every_page
    what_an_app_writes_over_xmlrpc_is_seen
    readers_never_see_an_old_page_after_the_editor_has_the_answer
}

type Setups<'a> = &'a dyn Fn() -> Setup;

/// The pages that show the newest posts.
const LISTS: [&str; 4] = ["/", "/feed/", "/category/tides/", "/author/owner/"];

fn tides() -> &'static serde_json::Value {
    &FACTS["categories"]["tides"]
}

fn a_published_post_is_everywhere_with_the_next_request(setup: Setups<'_>) {
    let blog = setup().start();
    for path in LISTS.into_iter().chain(["/wp-sitemap-posts-post-1.xml", "/2024/12/"]) {
        blog.stored(path).status(200).lacks("news");
    }
    let rest = "/wp-json/wp/v2/posts?per_page=3";
    blog.anybody().get(rest).lacks("news");
    blog.reader().get("/2024/12/news/").status(404);
    let post = json!({"title": "Title of news", "slug": "news", "content": "<p>Words of news.</p>", "status": "publish",
        "date": "2024-12-30T12:00:00", "categories": [tides()]});
    blog.editor().send("POST", "posts", &post);
    blog.reader().get("/2024/12/news/").status(200).has("Words of news.");
    for path in LISTS.into_iter().chain(["/wp-sitemap-posts-post-1.xml", "/2024/12/"]) {
        blog.reader().get(path).status(200).has("news");
    }
    blog.anybody().get(rest).has("news");
}

fn an_edit_is_seen_and_the_old_words_are_gone(setup: Setups<'_>) {
    let blog = setup().start();
    let path = path_of("post-01");
    let editor = blog.editor();
    for path in [path, "/", "/feed/"] {
        blog.stored(path).has("Title of post-01");
    }
    for n in 0..3 {
        editor.edit("post-01", &json!({"title": format!("Another title {n}"), "content": format!("<p>Other words {n}.</p>")}));
        let seen = format!("Another title {n}");
        blog.reader()
            .get(path)
            .status(200)
            .has(&seen)
            .has(&format!("Other words {n}."))
            .lacks("Words of post-01")
            .lacks("Title of post-01");
        blog.reader().get("/").has(&seen).lacks("Title of post-01");
        blog.reader().get("/feed/").has(&seen).lacks("Title of post-01");
    }
}

fn an_edited_old_post_is_seen(setup: Setups<'_>) {
    let blog = setup().start();
    let path = path_of("post-58");
    let lists = ["/page/6/", "/2023/11/"];
    blog.stored(path);
    for list in lists {
        blog.stored(list).has("Title of post-58");
    }
    blog.editor().edit("post-58", &json!({"title": "Another title"}));
    blog.reader().get(path).status(200).has("Another title").lacks("Title of post-58");
    for list in lists {
        blog.reader().get(list).status(200).has("Another title").lacks("Title of post-58");
    }
}

fn a_trashed_post_leaves_nothing(setup: Setups<'_>) {
    let blog = setup().start();
    is_gone_after(&blog, "post-01", || {
        blog.editor().send("DELETE", &format!("posts/{}", Editor::post("post-01")), &json!({}));
    });
}

fn a_post_trashed_with_a_link_leaves_nothing(setup: Setups<'_>) {
    let blog = setup().start();
    is_gone_after(&blog, "post-02", || {
        let post = format!("post={}&", Editor::post("post-02"));
        blog.editor().follow("/wp-admin/edit.php", &["post.php", &post, "action=trash"]).status(302);
    });
}

fn is_gone_after(blog: &Blog, slug: &str, act: impl FnOnce()) {
    let (path, title) = (path_of(slug), format!("Title of {slug}"));
    blog.stored(path).status(200);
    for list in ["/", "/feed/"] {
        blog.stored(list).has(&title);
    }
    act();
    blog.reader().get(path).status(404).lacks(&format!("Words of {slug}"));
    for list in ["/", "/feed/"] {
        blog.reader().get(list).status(200).lacks(&title);
    }
}

fn a_post_that_moves_leaves_a_redirect(setup: Setups<'_>) {
    let blog = setup().start();
    let path = path_of("post-03");
    for page in [path, "/", "/feed/"] {
        blog.stored(page).has("post-03");
    }
    blog.editor().edit("post-03", &json!({"slug": "moved"}));
    let there = path.replace("post-03", "moved");
    blog.reader().get(path).status(301).field("location", &there);
    blog.reader().get(&there).status(200).has("Words of post-03");
    blog.reader().get("/").has(&there).lacks(path);
    // The old address stays in the feed as the post's identity, which is for ever.
    blog.reader().get("/feed/").has(&format!("<link>{}{there}</link>", blog.url));
}

fn a_post_that_gets_a_password_or_becomes_private_is_closed_at_once(setup: Setups<'_>) {
    let blog = setup().start();
    let editor = blog.editor();
    let (locked, private) = (path_of("post-05"), path_of("post-06"));
    blog.stored(locked).has("Words of post-05");
    blog.stored(private).has("Words of post-06");
    blog.stored("/").has("Title of post-06");
    editor.edit("post-05", &json!({"password": "hush"}));
    blog.reader().get(locked).status(200).lacks("Words of post-05");
    editor.edit("post-06", &json!({"status": "private"}));
    blog.reader().get(private).status(404).lacks("Words of post-06");
    blog.reader().get("/").lacks("Title of post-06");
    editor.edit("post-05", &json!({"password": ""}));
    blog.reader().get(locked).status(200).has("Words of post-05");
    editor.edit("post-06", &json!({"status": "publish"}));
    blog.reader().get(private).status(200).has("Words of post-06");
}

/// Comments as somebody whose comment has to wait. Returns the comment's number.
fn waiting_comment(blog: &Blog, slug: &str, words: &str) -> u64 {
    let post = Editor::post(slug);
    let form = format!("comment_post_ID={post}&author=Nora&email=nora%40reader.example&comment={words}&comment_parent=0");
    blog.reader().post("/wp-comments-post.php", &form).status(302);
    let waiting = blog.editor().get("comments?status=hold&per_page=1&order=desc");
    waiting[0]["id"].as_u64().expect("it waits")
}

fn an_approved_comment_is_seen(setup: Setups<'_>) {
    let blog = setup().start();
    let path = path_of("post-08");
    let comment = waiting_comment(&blog, "post-08", "WORDS-OF-NORA");
    blog.stored(path).lacks("WORDS-OF-NORA");
    blog.stored("/comments/feed/").lacks("WORDS-OF-NORA");
    blog.editor().send("POST", &format!("comments/{comment}"), &json!({"status": "approved"}));
    blog.reader().get(path).status(200).has("WORDS-OF-NORA");
    blog.reader().get("/comments/feed/").has("WORDS-OF-NORA");
    blog.editor().send("POST", &format!("comments/{comment}"), &json!({"status": "spam"}));
    blog.reader().get(path).status(200).lacks("WORDS-OF-NORA");
}

fn a_comment_approved_with_a_link_is_seen_and_one_that_is_binned_is_gone(setup: Setups<'_>) {
    let blog = setup().start();
    let path = path_of("post-09");
    let comment = waiting_comment(&blog, "post-09", "WORDS-OF-NORA");
    let editor = blog.editor();
    blog.stored(path).lacks("WORDS-OF-NORA");
    let number = format!("c={comment}");
    editor.follow("/wp-admin/edit-comments.php?comment_status=moderated", &["comment.php", "action=approvecomment", &number]).status(302);
    blog.reader().get(path).status(200).has("WORDS-OF-NORA");
    editor.follow("/wp-admin/edit-comments.php", &["comment.php", "action=trashcomment", &number]).status(302);
    blog.reader().get(path).status(200).lacks("WORDS-OF-NORA");
}

fn a_changed_menu_is_on_every_page(setup: Setups<'_>) {
    let blog = setup().start();
    let pages = ["/", path_of("post-01"), path_of("post-60"), path_of("about"), "/category/birds/"];
    for page in pages {
        blog.stored(page).lacks("Lighthouse");
    }
    let link = "<!-- wp:navigation-link {\"label\":\"Lighthouse\",\"url\":\"/about/\",\"kind\":\"custom\"} /-->";
    blog.editor().send("POST", &format!("navigation/{}", FACTS["navigation"]), &json!({"content": link}));
    for page in pages {
        blog.reader().get(page).status(200).has("Lighthouse");
    }
}

fn a_changed_menu_and_widget_of_a_classic_theme_are_on_every_page(setup: Setups<'_>) {
    let blog = setup().theme("seaside").start();
    let editor = blog.editor();
    let pages = ["/", path_of("post-01"), path_of("post-60"), path_of("about")];
    for page in pages {
        blog.stored(page).has("Item to About").has("Words of the widget.");
    }
    editor.send("POST", &format!("menu-items/{}", FACTS["menu"]["item"]), &json!({"title": "Item to the crew"}));
    for page in pages {
        blog.reader().get(page).status(200).has("Item to the crew").lacks("Item to About");
    }
    for page in pages {
        blog.stored(page);
    }
    let text = json!({"id_base": "text", "sidebar": "beside", "instance": {"raw": {"title": "Beside", "text": "Other words of it."}}});
    editor.send("PUT", "widgets/text-2", &text);
    for page in pages {
        blog.reader().get(page).status(200).has("Other words of it.").lacks("Words of the widget.");
    }
}

fn another_theme_is_on_every_page(setup: Setups<'_>) {
    let blog = setup().start();
    let pages = ["/", path_of("post-01"), path_of("post-60"), path_of("about"), "/category/birds/"];
    for page in pages {
        blog.stored(page).lacks("class=\"seaside");
    }
    blog.editor().follow("/wp-admin/themes.php", &["action=activate", "stylesheet=seaside"]).status(302);
    for page in pages {
        blog.reader().get(page).status(200).has(" seaside");
    }
}

fn a_changed_title_of_the_site_is_on_every_page(setup: Setups<'_>) {
    let blog = setup().start();
    let editor = blog.editor();
    let pages = ["/", path_of("post-01"), path_of("post-60"), path_of("about"), "/feed/", "/wp-json/"];
    for page in pages {
        blog.stored(page).has("The Sea Wall");
    }
    editor.send("POST", "settings", &json!({"title": "The Other Wall"}));
    for page in pages {
        blog.reader().get(page).status(200).has("The Other Wall").lacks("The Sea Wall");
    }
    // The same with the form of the settings, and another setting.
    blog.stored("/").has("Title of post-10");
    let form = "option_page=reading&action=update&posts_per_page=5&posts_per_rss=10&rss_use_excerpt=0&show_on_front=posts&page_on_front=0&page_for_posts=0&blog_public=1";
    editor.submit("/wp-admin/options-reading.php", "/wp-admin/options.php", &["_wpnonce"], form).status(302);
    blog.reader().get("/").status(200).has("Title of post-05").lacks("Title of post-10<");
}

fn a_renamed_category_and_author_are_on_their_pages(setup: Setups<'_>) {
    let blog = setup().start();
    let editor = blog.editor();
    // Of the category `tides` are the posts whose number three divides.
    let pages = ["/category/tides/", path_of("post-03"), path_of("post-60")];
    for page in pages {
        blog.stored(page).has(">Tides<");
    }
    editor.send("POST", &format!("categories/{}", tides()), &json!({"name": "High tides"}));
    for page in pages {
        blog.reader().get(page).status(200).has(">High tides<").lacks(">Tides<");
    }
    let pages = ["/author/ada/", path_of("post-01"), path_of("post-58")];
    for page in pages {
        blog.stored(page).has("Ada Author");
    }
    let ada = editor.get("users?slug=ada")[0]["id"].clone();
    editor.send("POST", &format!("users/{ada}"), &json!({"name": "Ada Renamed"}));
    for page in pages {
        blog.reader().get(page).status(200).has("Ada Renamed").lacks("Ada Author");
    }
}

fn a_changed_template_is_on_every_page(setup: Setups<'_>) {
    let blog = setup().start();
    let pages = ["/", path_of("post-01"), path_of("post-60"), path_of("about")];
    for page in pages {
        blog.stored(page).lacks("WORDS-OF-THE-FOOTER");
    }
    let part = format!("template-parts/{}//footer", FACTS["theme"].as_str().unwrap());
    blog.editor().send("POST", &part, &json!({"content": "<!-- wp:paragraph --><p>WORDS-OF-THE-FOOTER</p><!-- /wp:paragraph -->"}));
    for page in pages {
        blog.reader().get(page).status(200).has("WORDS-OF-THE-FOOTER");
    }
}

fn what_an_app_writes_over_xmlrpc_is_seen(setup: Setups<'_>) {
    let blog = setup().start();
    for page in ["/", "/feed/"] {
        blog.stored(page).lacks("Out of an app");
    }
    let password = FACTS["people"]["owner"]["password"].as_str().unwrap();
    let member = |name: &str, value: &str| format!("<member><name>{name}</name><value><string>{value}</string></value></member>");
    let call = format!(
        "<?xml version=\"1.0\"?><methodCall><methodName>wp.newPost</methodName><params><param><value><int>1</int></value></param>\
         <param><value><string>owner</string></value></param><param><value><string>{password}</string></value></param>\
         <param><value><struct>{}{}{}</struct></value></param></params></methodCall>",
        member("post_title", "Out of an app"),
        member("post_content", "Words."),
        member("post_status", "publish"),
    );
    blog.anybody().with("Content-Type", "text/xml").send("POST", "/xmlrpc.php", call.as_bytes()).status(200).lacks("fault");
    for page in ["/", "/feed/"] {
        blog.reader().get(page).status(200).has("Out of an app");
    }
}

fn readers_never_see_an_old_page_after_the_editor_has_the_answer(setup: Setups<'_>) {
    let blog = setup().start();
    let (editor, path) = (blog.editor(), path_of("post-01"));
    let is_page = |answer: &Answer| {
        assert_eq!(answer.status, 200, "{answer}");
        answer.clone().lacks("wp-admin-bar").without("set-cookie");
    };
    while_a_crowd_reads(&blog.reader(), 4, &["/", path, "/feed/", path_of("post-02")], is_page, || {
        for n in 0..8 {
            let title = format!("Title number {n}.");
            editor.edit("post-01", &json!({"title": title}));
            for page in [path, "/", "/feed/", "/"] {
                blog.reader().get(page).status(200).has(&title);
            }
        }
    });
}

// --------------------------------------------------------------------------------------------------------------- only what changed

/// Returns eighty-one pages: all posts and pages that may be stored, and lists of all kinds.
fn site() -> Vec<String> {
    let mut pages: Vec<_> = FACTS["posts"]
        .as_object()
        .unwrap()
        .iter()
        .filter(|(slug, _)| !matches!(slug.as_str(), "private" | "draft" | "later" | "post-04" | "post-44"))
        .map(|(_, post)| post["path"].as_str().unwrap().to_owned())
        .collect();
    pages.extend(FACTS["pages"].as_object().unwrap().values().map(|page| page["path"].as_str().unwrap().to_owned()));
    pages.extend((2..=6).map(|n| format!("/page/{n}/")));
    let lists =
        ["/", "/feed/", "/category/tides/", "/category/stones/", "/category/birds/", "/category/boats/", "/tag/how-to/", "/author/ada/"];
    pages.extend(
        lists
            .into_iter()
            .chain(["/author/ben/", "/author/owner/", "/2024/12/", "/2023/11/", "/comments/feed/", "/category/tides/feed/"])
            .map(str::to_owned),
    );
    assert_eq!(pages.len(), 81, "{pages:?}");
    pages
}

/// Reads the whole site, changes something, reads it again, and returns the pages for which PHP was asked again.
fn asked_again(blog: &Blog, act: impl FnOnce(&Editor)) -> BTreeSet<String> {
    let site = site();
    for page in &site {
        blog.stored(page).status(200);
    }
    let editor = blog.editor();
    let before = blog.witness.total();
    act(&editor);
    for page in &site {
        blog.reader().get(page).status(200);
    }
    let seen = blog.witness.all();
    seen[before..].iter().filter(|seen| site.contains(&seen.target)).map(|seen| seen.target.clone()).collect()
}

/// One blog for all: to read the whole site once is most of the time that each takes.
#[test]
fn with_the_plugin_only_what_shows_a_change_is_fetched_again() {
    let blog = Setup::default().plugin().start();
    a_draft_and_a_picture_fetch_nothing_again(&blog);
    an_edit_of_an_old_post_fetches_five_of_eighty_one_pages_again_at_most(&blog);
    an_approved_comment_fetches_five_of_eighty_one_pages_again_at_most(&blog);
    a_publish_fetches_what_lists_posts_again_and_no_more(&blog);
}

fn an_edit_of_an_old_post_fetches_five_of_eighty_one_pages_again_at_most(blog: &Blog) {
    let again = asked_again(blog, |editor| {
        editor.edit("post-57", &json!({"content": "<p>Other words.</p>"}));
    });
    assert!(again.contains(path_of("post-57")), "{again:?}");
    assert!(again.len() <= 5, "{} pages: {again:?}", again.len());
}

fn an_approved_comment_fetches_five_of_eighty_one_pages_again_at_most(blog: &Blog) {
    let comment = waiting_comment(blog, "post-50", "WORDS-OF-NORA");
    let again = asked_again(blog, |editor| {
        editor.send("POST", &format!("comments/{comment}"), &json!({"status": "approved"}));
    });
    assert!(again.contains(path_of("post-50")) && again.contains("/comments/feed/"), "{again:?}");
    assert!(again.len() <= 5, "{} pages: {again:?}", again.len());
}

/// The theme lists the newest posts below each post, so a new one changes all of them.
fn a_publish_fetches_what_lists_posts_again_and_no_more(blog: &Blog) {
    let post = json!({"title": "Title of news", "content": "<p>Words.</p>", "status": "publish", "categories": [tides()]});
    let again = asked_again(blog, |editor| {
        editor.send("POST", "posts", &post);
    });
    for page in ["/", "/feed/", "/category/tides/", path_of("post-01")] {
        assert!(again.contains(page), "{page} is not in {again:?}");
    }
    // Pages list no posts. The feed of comments lists none either, but the time when it was made is that of the newest post.
    for page in [path_of("about"), path_of("crew")] {
        assert!(!again.contains(page), "{page} is in {again:?}");
    }
    assert!(again.len() <= 76, "{} pages", again.len());
}

fn a_draft_and_a_picture_fetch_nothing_again(blog: &Blog) {
    let sitemaps = ["/wp-sitemap.xml", "/wp-sitemap-posts-post-1.xml"];
    for sitemap in sitemaps {
        blog.stored(sitemap).status(200);
    }
    let asked = || sitemaps.map(|sitemap| blog.witness.count_of_path(sitemap));
    let before = asked();
    let again = asked_again(blog, |editor| {
        let draft = editor.send("POST", "posts", &json!({"title": "Not yet", "content": "<p>Words.</p>", "status": "draft"}));
        editor.send("POST", &format!("posts/{}/autosaves", draft["id"]), &json!({"content": "<p>More.</p>"}));
        let picture = std::fs::read(blog.root().join(FACTS["picture"]["path"].as_str().unwrap().trim_start_matches('/'))).unwrap();
        let upload = editor.rest().with("Content-Disposition", "attachment; filename=new.jpg").with("Content-Type", "image/jpeg");
        upload.send("POST", "/wp-json/wp/v2/media", &picture).status(201);
    });
    assert!(again.is_empty(), "{again:?}");
    for sitemap in sitemaps {
        blog.reader().get(sitemap).status(200);
    }
    assert_eq!(asked(), before, "the list of what there is stays, too");
}

/// Jobs, imports and WP-CLI change pages, too, and come by no server.
#[test]
fn with_the_plugin_what_the_command_line_changes_is_seen() {
    let blog = Setup::default().plugin().start();
    let path = path_of("post-12");
    blog.stored(path).has("Words of post-12");
    blog.php(&format!("wp_update_post(['ID' => {}, 'post_content' => 'Out of the command line.']);", Editor::post("post-12")));
    super::crowd::until("it is seen", || blog.reader().get(path).contains("Out of the command line."));
}

#[test]
fn in_front_of_a_server_changes_are_seen_as_well() {
    let setups: [Setups<'_>; 2] = [&|| Setup::default().form(Form::Server), &|| Setup::default().form(Form::Server).plugin()];
    for setup in setups {
        an_edit_is_seen_and_the_old_words_are_gone(setup);
        an_approved_comment_is_seen(setup);
        a_post_trashed_with_a_link_leaves_nothing(setup);
    }
}
