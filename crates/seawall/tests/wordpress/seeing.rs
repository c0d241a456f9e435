//! What the owner of a WordPress is shown of a plugin that keeps readers out of the cache.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    blog::{Blog, Setup, path_of},
    crowd::until,
};

/// The time within which it has to be shown.
const SOON: Duration = Duration::from_secs(60);

/// Waits until so many requests are counted, and returns what is shown then.
fn seen_after(blog: &Blog, requests: usize) -> Value {
    let began = Instant::now();
    let mut seen = Value::Null;
    until("all requests are counted", || {
        seen = blog.seen();
        seen["totals"]["requests"].as_u64() == Some(requests as u64)
    });
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    seen
}

/// A plugin that begins a session for everybody, as too many do. Its readers are anonymous: nobody signs in, nobody fills in a form.
#[test]
fn within_a_minute_the_cookie_is_named_with_the_page_that_sets_it_its_share_and_what_it_is() {
    let blog = Setup::default().mu_plugin("session").start();
    let path = path_of("post-01");
    for _ in 0..12 {
        blog.reader().get(path).status(200).field("set-cookie", "PHPSESSID=");
    }
    let seen = seen_after(&blog, 12);
    let cookie = &seen["cookies"][0];
    assert_eq!((&cookie["name"], &cookie["answers"], &cookie["requests"]), (&json!("PHPSESSID"), &json!(12), &json!(0)), "{seen:#}");
    assert_eq!((&cookie["set_by"], &cookie["share"]), (&json!(format!("{}{path}", blog.url)), &json!(1.0)), "{seen:#}");
    assert!(cookie["known_for"].as_str().is_some_and(|known| known.contains("PHP")), "{cookie:#}");
    assert!(cookie["remedy"].as_str().is_some_and(|remedy| remedy.contains("drop_set_cookies")), "{cookie:#}");
    assert!(cookie["origin_micros"].as_u64() > Some(0), "{cookie:#}");
    // It is also the reason that costs the origin most, and the page the one that misses most.
    let reason = &seen["reasons"][0];
    assert_eq!(
        (&reason["rule"], &reason["detail"], &reason["requests"]),
        (&json!("set-cookie"), &json!("PHPSESSID"), &json!(12)),
        "{seen:#}"
    );
    assert_eq!(seen["missed"][0]["url"], cookie["set_by"], "{seen:#}");
    // Nothing of a session itself is there.
    let session = blog.reader().get(path).value("set-cookie").expect("a cookie").to_owned();
    let id = session.trim_start_matches("PHPSESSID=").split(';').next().expect("a value").to_owned();
    assert!(id.len() > 20 && !blog.seen().to_string().contains(&id), "{id}");
}

/// The form is on one page. Whoever was there carries the cookie everywhere.
#[test]
fn readers_who_carry_the_cookie_are_counted_and_the_page_with_the_form_is_named() {
    let blog = Setup::default().mu_plugin("session-on-contact").start();
    let (post, contact) = (path_of("post-01"), path_of("contact"));
    let mut sent = 0;
    for _ in 0..30 {
        blog.reader().get(post).status(200).without("set-cookie");
        sent += 1;
    }
    for _ in 0..5 {
        let form = blog.reader().get(contact).status(200).field("set-cookie", "PHPSESSID=");
        let reader = blog.reader().after(&form);
        for path in [post, "/"] {
            reader.get(path).status(200);
        }
        sent += 3;
    }
    let seen = seen_after(&blog, sent);
    let cookie = &seen["cookies"][0];
    assert_eq!((&cookie["name"], &cookie["answers"], &cookie["requests"]), (&json!("PHPSESSID"), &json!(5), &json!(10)), "{seen:#}");
    assert_eq!(cookie["set_by"], format!("{}{contact}", blog.url), "{seen:#}");
    let share = cookie["share"].as_f64().expect("a share");
    assert!((share - 15.0 / 45.0).abs() < 0.001, "{share}");
}

/// What the manual says about it mends it, and the list says so: from then on nothing more is counted.
#[test]
fn a_session_that_is_dropped_keeps_nobody_out() {
    let blog = Setup::default().mu_plugin("session").seawall("[cache]\ndrop_set_cookies = [\"PHPSESSID\"]").start();
    let path = path_of("post-01");
    blog.stored(path).status(200);
    let before = blog.seen()["cookies"].clone();
    for _ in 0..5 {
        blog.reader().get(path).status(200).hit();
    }
    assert_eq!((blog.seen()["cookies"].clone(), &before), (json!([]), &json!([])));
}
