//! WordPress's own schedule: Seawall starts it, and no reader has to.

use serde_json::json;

use super::{
    blog::{Blog, Setup},
    crowd::until,
};

/// Schedules a post for a moment that has come: nobody waits a minute here.
fn schedule(blog: &Blog, slug: &str) {
    let post = json!({"title": format!("Title of {slug}"), "slug": slug, "content": "<p>Words.</p>", "status": "future", "date_gmt": "2097-01-01T12:00:00"});
    let id = blog.editor().send("POST", "posts", &post)["id"].clone();
    blog.php(&format!(
        "global $wpdb; $now = gmdate('Y-m-d H:i:s', time() - 1); \
         $wpdb->update($wpdb->posts, ['post_date' => $now, 'post_date_gmt' => $now], ['ID' => {id}]); \
         wp_clear_scheduled_hook('publish_future_post', [{id}]); wp_schedule_single_event(time() - 1, 'publish_future_post', [{id}]);"
    ));
}

fn is_live(setup: Setup) {
    let blog = setup.cron("10s").start();
    for page in ["/", "/feed/"] {
        blog.stored(page).lacks("Title of soon");
    }
    schedule(&blog, "soon");
    for page in ["/", "/feed/"] {
        until("the post is live", || blog.reader().get(page).contains("Title of soon"));
    }
}

#[test]
fn a_scheduled_post_is_live_when_its_time_comes() {
    is_live(Setup::default());
}

#[test]
fn a_scheduled_post_is_live_when_its_time_comes_with_the_plugin() {
    is_live(Setup::default().plugin());
}

#[test]
fn a_scheduled_post_is_live_when_its_time_comes_in_front_of_a_server() {
    is_live(Setup::default().server());
}

/// Readers' page views start it in a stock WordPress: each such reader waits, and two at a time wait for each other.
#[test]
fn the_schedule_is_started_by_seawall_alone() {
    let blog = Setup::default().cron("10s").start();
    until("it is asked for", || blog.witness.count_of_path("/wp-cron.php") >= 2);
    for n in 0..5 {
        blog.reader().get(&format!("/?p=1&cold={n}"));
        blog.reader().get("/wp-cron.php");
        blog.reader().get("/wp-cron.php?doing_wp_cron=1");
        blog.reader().post("/wp-cron.php", "x=1");
    }
    for seen in blog.witness.all().iter().filter(|seen| seen.target.starts_with("/wp-cron.php")) {
        let by = seen.sent("HTTP_USER_AGENT").unwrap_or_default();
        assert!(by.starts_with("seawall/"), "{} {} by {by}", seen.method, seen.target);
    }
    // The plugin has page views start nothing, then.
    assert!(blog.witness.all().iter().filter(|seen| seen.target.starts_with("/?p=1")).all(|seen| seen.sent("SEAWALL_CRON") == Some("1")));
}

#[test]
fn nobody_asks_for_the_schedule_if_it_is_off() {
    let blog = Setup::default().start();
    for _ in 0..3 {
        blog.stored("/");
    }
    assert_eq!(blog.witness.count_of_path("/wp-cron.php"), 0);
}
