//! Whether a folder or a server is a WordPress: Seawall finds out by itself, and says so.

use serde_json::json;

use super::{
    blog::{Blog, Setup, path_of},
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
