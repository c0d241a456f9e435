//! Whether a folder or a server is a WordPress: Seawall finds out by itself, and says so.

use serde_json::json;

use super::{
    blog::{Blog, Setup, WITHOUT_SEAWALL, path_of},
    crowd::until,
};

fn treats_it_as_wordpress(blog: &Blog) {
    let path = path_of("post-01");
    until("a page is stored as a WordPress's is", || blog.reader().get(path).is_hit());
    blog.editor().edit("post-01", &json!({"title": "Another title"}));
    blog.reader().get(path).status(200).has("Another title");
    blog.owner().get(path).status(200).has("wp-admin-bar");
    blog.reader().get(path).lacks("wp-admin-bar");
}

#[test]
fn a_folder_with_a_wordpress_is_recognised_and_the_banner_says_what_it_is() {
    let blog = Setup::default().guessed().start();
    until("it is said", || blog.told().contains("WordPress"));
    treats_it_as_wordpress(&blog);
}

#[test]
fn a_server_that_is_a_wordpress_is_recognised_and_the_banner_says_what_it_is() {
    let blog = Setup::default().server().guessed().start();
    until("it is said", || blog.told().contains("WordPress"));
    treats_it_as_wordpress(&blog);
}

/// After a power cut, Seawall is there before php-fpm is.
#[test]
fn a_wordpress_that_comes_up_later_is_recognised_then() {
    let mut blog = Setup::default().server().guessed().without_seawall_yet().start();
    blog.stop_php();
    blog.start_seawall();
    let away = blog.reader().get(path_of("post-01"));
    assert!(matches!(away.status, 502..=504), "{away}");
    blog.start_php();
    treats_it_as_wordpress(&blog);
}

/// Whoever does what the banner says has opened the front page before: the redirect to the address that it had is stored, and would lead in a circle.
#[test]
fn another_address_is_noticed_and_ends_redirects_to_the_one_before() {
    if *WITHOUT_SEAWALL {
        return;
    }
    let mut blog = Setup::default().server().guessed().without_seawall_yet().start();
    blog.tell_address(&blog.own_address());
    blog.start_seawall();
    until("it is said", || blog.told().contains("which leads past Seawall"));
    blog.reader().get("/").status(301);
    until("the redirect is stored", || blog.reader().get("/").is_hit());
    blog.tell_address(&blog.url);
    until("the front page", || blog.reader().get("/").status == 200);
    until("nothing is wrong", || !blog.command(&["status"]).contains("leads past Seawall"));
}
