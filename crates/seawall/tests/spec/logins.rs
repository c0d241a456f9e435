//! Guessing passwords: whoever is wrong too often waits (RFC 6585 §4, 429), and all who sign in together never take PHP away from the readers.

use testkit::{Answer, Gate, Origin, Req, get, ok, post, secs, status};

use crate::site::{Site, site_with};

const LOGIN: &str = "/wp-login.php";
const SESSION: &str = "wordpress_logged_in_5c3=ada%7C1700000000%7Cx; path=/; HttpOnly";
/// WordPress's answer to `wp.getUsersBlogs` with a wrong password (IXR_Error).
const FAULT: &str = "<?xml version=\"1.0\"?>\n<methodResponse>\n  <fault>\n    <value>\n      <struct>\n        <member>\n          <name>faultCode</name>\n          <value><int>403</int></value>\n        </member>\n        <member>\n          <name>faultString</name>\n          <value><string>Incorrect username or password.</string></value>\n        </member>\n      </struct>\n    </value>\n  </fault>\n</methodResponse>";
const BLOGS: &str =
    "<?xml version=\"1.0\"?><methodResponse><params><param><value><array><data></data></array></value></param></params></methodResponse>";

async fn wordpress(toml: &str) -> (Origin, Site) {
    site_with(&format!("kind = \"wordpress\"\n[server]\ntrusted_proxies = [\"127.0.0.1\"]\n{toml}")).await
}

/// Returns a request of the client that the proxy in front names.
fn from(client: &str, request: Req) -> Req {
    request.field("x-forwarded-for", client)
}

async fn sign_in(site: &Site, client: &str, password: &str) -> Answer {
    site.request(from(client, Req::post(LOGIN).body(format!("log=ada&pwd={password}")))).await
}

/// Scripts a WordPress that shows the form again after a wrong password, and sends who has the right one on, with a cookie.
fn answers_logins(origin: &Origin) {
    origin.on(post(LOGIN)).reply_with(|seen| {
        if seen.text().ends_with("pwd=right") {
            status(302).field("location", "/wp-admin/").field("set-cookie", SESSION)
        } else {
            ok("<form>The password is incorrect.")
        }
    });
}

/// Returns when Seawall's only worker has read everything that was sent before: a WordPress keeps no request from its origin by a directive.
async fn has_read_all(origin: &Origin, site: &Site) {
    origin.on(get("/turn")).reply(ok("turn"));
    for _ in 0..2 {
        site.get("/turn").await.status(200);
    }
}

/// Ten wrong passwords, and then one in six seconds: PHP is not asked, whatever the eleventh is. Everybody else signs in as always.
#[tokio::test]
async fn whoever_is_wrong_ten_times_has_to_wait() {
    let (origin, site) = wordpress("").await;
    answers_logins(&origin);
    for _ in 0..10 {
        sign_in(&site, "192.0.2.1", "wrong").await.status(200);
    }
    for password in ["wrong", "right"] {
        sign_in(&site, "192.0.2.1", password).await.status(429).field("retry-after", "6").field("cache-control", "no-store");
    }
    assert_eq!(origin.count(LOGIN), 10);
    sign_in(&site, "192.0.2.2", "right").await.status(302).has_field("set-cookie");

    // The form is still shown, and so are the pages.
    origin.on(get(LOGIN)).reply(ok("<form>"));
    site.request(from("192.0.2.1", Req::get(LOGIN))).await.status(200);

    site.clock.advance(secs(6));
    sign_in(&site, "192.0.2.1", "wrong").await.status(200);
    sign_in(&site, "192.0.2.1", "right").await.status(429);
    site.clock.advance(secs(6));
    sign_in(&site, "192.0.2.1", "right").await.status(302);
}

/// However the form is written, PHP reads it: in parts, cut into chunks, or under a type that nobody knows.
#[tokio::test]
async fn a_password_counts_in_whatever_form_it_is_sent() {
    let (origin, site) = wordpress("").await;
    answers_logins(&origin);
    let part = |name: &str, value: &str| format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
    let parts = format!("{}{}--x--\r\n", part("log", "ada"), part("pwd", "wrong"));
    for n in 0..10 {
        let request = Req::post(LOGIN).field("content-type", "multipart/form-data; boundary=x");
        let request = if n % 2 == 0 { request.body(parts.clone()) } else { request.chunks([&parts[..50], &parts[50..]]) };
        site.request(from("192.0.2.1", request)).await.status(200);
    }
    for content_type in ["multipart/form-data; boundary=x", "Multipart/Form-Data; boundary=\"x\"", "text/plain"] {
        let request = Req::post(LOGIN).field("content-type", content_type).body(parts.clone());
        site.request(from("192.0.2.1", request)).await.status(429);
    }
    assert_eq!(origin.count(LOGIN), 10);
}

/// A school has one address: whoever knows the password costs nobody anything.
#[tokio::test]
async fn right_passwords_are_not_counted() {
    let (origin, site) = wordpress("").await;
    answers_logins(&origin);
    for _ in 0..40 {
        sign_in(&site, "192.0.2.1", "right").await.status(302);
    }
    assert_eq!(origin.count(LOGIN), 40);
}

/// Nor is the password of a post, which WordPress does not look at before the page is asked for. It shows the form anew to whoever comes for a new session.
#[tokio::test]
async fn what_counts_is_the_cookie_of_a_session() {
    let (origin, site) = wordpress("").await;
    origin.on(post("/wp-login.php?action=postpass")).reply(status(302).field("set-cookie", "wp-postpass_5c3=%24P%24B; path=/"));
    for _ in 0..20 {
        site.request(from("192.0.2.1", Req::post("/wp-login.php?action=postpass").body("post_password=x"))).await.status(302);
    }
    // `interim-login` answers 200 to the right password, `lostpassword` 302 to whoever asks for mails.
    let popup = "/wp-login.php?interim-login=1";
    origin.on(post(popup)).reply(ok("<p>signed in").field("set-cookie", SESSION));
    let mails = "/wp-login.php?action=lostpassword";
    origin.on(post(mails)).reply(status(302).field("location", "/wp-login.php?checkemail=confirm"));
    for _ in 0..20 {
        site.request(from("192.0.2.1", Req::post(popup).body("a"))).await.status(200);
    }
    for _ in 0..10 {
        site.request(from("192.0.2.1", Req::post(mails).body("user_login=ada"))).await.status(302);
    }
    site.request(from("192.0.2.1", Req::post(mails).body("user_login=ada"))).await.status(429);

    // A cookie that is taken away is none: `reauth` clears the session whatever the password was.
    let reauth = "/wp-login.php?reauth=1";
    origin.on(post(reauth)).reply(ok("<form>").field("set-cookie", "wordpress_logged_in_5c3=%20; Max-Age=0; path=/"));
    for _ in 0..10 {
        site.request(from("192.0.2.9", Req::post(reauth).body("a"))).await.status(200);
    }
    site.request(from("192.0.2.9", Req::post(reauth).body("a"))).await.status(429);
}

/// One request can carry hundreds of passwords: each of them counts.
#[tokio::test]
async fn xmlrpc_is_no_way_round() {
    let (origin, site) = wordpress("").await;
    let rpc = "/xmlrpc.php";
    origin.on(post(rpc)).reply_with(|seen| match seen.text().as_str() {
        "right" => ok(BLOGS).field("content-type", "text/xml"),
        "multicall" => ok(FAULT.repeat(300)).field("content-type", "text/xml"),
        _ => ok(FAULT).field("content-type", "text/xml"),
    });
    let call = async |client: &str, body: &'static str| {
        site.request(from(client, Req::post(rpc).body(body)).field("accept-encoding", "gzip, br")).await
    };
    for _ in 0..20 {
        call("192.0.2.1", "right").await.status(200).body(BLOGS);
    }
    for _ in 0..10 {
        call("192.0.2.1", "wrong").await.status(200).body(FAULT);
    }
    call("192.0.2.1", "wrong").await.status(429);
    // The budget is that of the address, not of the door.
    answers_logins(&origin);
    sign_in(&site, "192.0.2.1", "right").await.status(429);

    call("192.0.2.2", "multicall").await.status(200);
    call("192.0.2.2", "right").await.status(429);
    site.clock.advance(secs(6 * 10));
    call("192.0.2.2", "right").await.status(200);
}

/// Application passwords are guessed at any address of the REST API. Those that were right before are not guesses, however many requests carry them.
#[tokio::test]
async fn application_passwords_are_guessed_no_faster() {
    let (origin, site) = wordpress("").await;
    let (api, right) = ("/wp-json/wp/v2/users/me", "Basic YWRhOnJpZ2h0");
    origin.on(get(api)).reply_with(move |seen| if seen.field("authorization").as_deref() == Some(right) { ok("{}") } else { status(401) });
    let ask =
        async |client: &str, authorization: &str| site.request(from(client, Req::get(api).field("authorization", authorization))).await;
    ask("192.0.2.1", right).await.status(200);
    for number in 0..10 {
        ask("192.0.2.1", &format!("Basic {number}")).await.status(401);
    }
    ask("192.0.2.1", "Basic new").await.status(429);
    ask("192.0.2.1", right).await.status(200);
    ask("192.0.2.2", "Basic new").await.status(401);
}

/// With `_envelope`, WordPress answers 200 whatever happened, and puts the status into the content (rest-api/class-wp-rest-server.php).
#[tokio::test]
async fn an_envelope_hides_no_wrong_password() {
    let (origin, site) = wordpress("").await;
    let wrong = "{\"body\":{\"code\":\"incorrect_password\",\"message\":\"x\",\"data\":{\"status\":401}},\"status\":401,\"headers\":[]}";
    let right = "{\"body\":{\"name\":\"says \\\"status\\\":401\"},\"status\":200,\"headers\":[]}";
    let api = "/wp-json/wp/v2/users/me";
    for (number, query) in ["_envelope=1", "_envelope", "%5fenvelope[]=1", "a=1&.envelope=&_pretty"].into_iter().enumerate() {
        let target = format!("{api}?{query}");
        origin
            .on(get(&target))
            .reply_with(move |seen| ok(if seen.field("authorization").as_deref() == Some("Basic right") { right } else { wrong }));
        let client = format!("192.0.2.{number}");
        let ask = async |authorization: &str| site.request(from(&client, Req::get(&target).field("authorization", authorization))).await;
        for _ in 0..20 {
            ask("Basic right").await.status(200).body(right);
        }
        for number in 0..10 {
            ask(&format!("Basic {number}")).await.status(200).body(wrong);
        }
        ask("Basic new").await.status(429);
    }
}

/// A ping has no password, and PHP fetches a page for it, for as long as the other side likes: who sends four keeps nobody from signing in.
#[tokio::test]
async fn calls_without_a_password_take_no_place_of_those_with_one() {
    let (origin, site) = wordpress("").await;
    let gate = Gate::new();
    answers_logins(&origin);
    origin.on(post("/xmlrpc.php")).reply(ok(BLOGS).gate(&gate));
    let mut pings = Vec::new();
    for number in 0..4 {
        let mut client = site.client().await;
        let ping = "<?xml version=\"1.0\"?><methodCall><methodName>pingback.ping</methodName><params></params></methodCall>";
        client.send(from(&format!("198.51.100.{number}"), Req::post("/xmlrpc.php").body(ping))).await;
        pings.push(client);
    }
    gate.arrived_count(1).await;
    has_read_all(&origin, &site).await;
    assert_eq!(origin.count("/xmlrpc.php"), 1);
    sign_in(&site, "192.0.2.1", "right").await.status(302);
    sign_in(&site, "198.51.100.0", "right").await.status(302);
    gate.open();
    for mut client in pings {
        client.read_answer().await.status(200);
    }
}

/// Twelve addresses with four requests each fill places and queue. Whoever comes then with one request is not sent away, and goes first.
#[tokio::test]
async fn whoever_signs_in_once_goes_before_those_who_send_many() {
    let (origin, site) = wordpress("").await;
    let gate = Gate::new();
    origin.on(post(LOGIN)).reply(ok("<form>").gate(&gate));
    let mut guessing = Vec::new();
    for number in 0..48 {
        let mut client = site.client().await;
        client.send(from(&format!("198.51.100.{}", number / 4), Req::post(LOGIN).body("pwd=x"))).await;
        guessing.push(client);
    }
    gate.arrived_count(2).await;
    has_read_all(&origin, &site).await;
    let mut person = site.client().await;
    person.send(from("192.0.2.1", Req::post(LOGIN).body("pwd=x"))).await;
    has_read_all(&origin, &site).await;
    gate.open();
    person.read_answer().await.status(200);
}

/// Whoever has one address of an IPv6 network has them all.
#[tokio::test]
async fn an_ipv6_network_is_one_client() {
    let (origin, site) = wordpress("").await;
    answers_logins(&origin);
    for host in 1..=10 {
        sign_in(&site, &format!("2001:db8:0:1::{host:x}"), "wrong").await.status(200);
    }
    sign_in(&site, "2001:db8:0:1:ffff::1", "wrong").await.status(429);
    sign_in(&site, "2001:db8:0:2::1", "wrong").await.status(200);
}

/// Behind a proxy that nobody named, all are one address: waiting would be everybody's.
#[tokio::test]
async fn this_machine_is_not_held_to_it() {
    let (origin, site) = site_with("kind = \"wordpress\"").await;
    answers_logins(&origin);
    for _ in 0..20 {
        site.request(Req::post(LOGIN).body("pwd=wrong")).await.status(200);
    }
}

/// No spelling of the address is another door, nor is WordPress in a folder, nor the path behind the script.
#[tokio::test]
async fn no_spelling_is_another_door() {
    let (origin, site) = wordpress("").await;
    for (number, target) in
        ["/wp-login.php/x", "//wp-login.php", "/%77p-login.php", "/wp/wp-login.php", "/WP-Login.php", "/a/../wp-login.php?x"]
            .into_iter()
            .enumerate()
    {
        origin.on(post("/*")).reply(ok("<form>"));
        let client = format!("192.0.2.{number}");
        for _ in 0..10 {
            site.request(from(&client, Req::post(target).body("a"))).await.status(200);
        }
        site.request(from(&client, Req::post(target).body("a"))).await.status(429);
    }
}

/// However many addresses guess, two of them hold a child of PHP; the others wait, and one more than may wait is turned away. Readers have the rest.
#[tokio::test]
async fn guesses_from_everywhere_do_not_take_the_site_away() {
    let (origin, site) = wordpress("").await;
    let gate = Gate::new();
    origin.on(post(LOGIN)).reply(ok("<form>").gate(&gate));
    origin.on(get("/post")).reply(ok("page").field("cache-control", "max-age=60"));
    let mut guessing = Vec::new();
    for number in 1..=34 {
        let mut client = site.client().await;
        client.send(from(&format!("198.51.100.{number}"), Req::post(LOGIN).body("pwd=x"))).await;
        guessing.push(client);
    }
    gate.arrived_count(2).await;
    has_read_all(&origin, &site).await;
    sign_in(&site, "192.0.2.1", "x").await.status(429).has_field("retry-after");
    site.get("/post").await.status(200);
    assert_eq!(origin.count(LOGIN), 2);
    gate.open();
    for mut client in guessing {
        client.read_answer().await.status(200);
    }
    sign_in(&site, "192.0.2.1", "x").await.status(200);
}

/// One address cannot fill the queue: it has four places in it.
#[tokio::test]
async fn one_address_does_not_fill_the_queue() {
    let (origin, site) = wordpress("").await;
    let gate = Gate::new();
    origin.on(post(LOGIN)).reply(ok("<form>").gate(&gate));
    let mut waiting = Vec::new();
    for _ in 0..4 {
        let mut client = site.client().await;
        client.send(from("192.0.2.1", Req::post(LOGIN).body("pwd=x"))).await;
        waiting.push(client);
    }
    gate.arrived_count(1).await;
    has_read_all(&origin, &site).await;
    sign_in(&site, "192.0.2.1", "x").await.status(429);
    // One of the two places is left for others, at once.
    let mut other = site.client().await;
    other.send(from("192.0.2.2", Req::post(LOGIN).body("pwd=x"))).await;
    gate.arrived_count(2).await;
    gate.open();
    other.read_answer().await.status(200);
    for mut client in waiting {
        client.read_answer().await.status(200);
    }
}

/// A form that arrives slowly holds no place: who trickles two of them keeps nobody from signing in.
#[tokio::test]
async fn a_form_takes_a_place_when_all_of_it_is_here() {
    let (origin, site) = wordpress("").await;
    answers_logins(&origin);
    let mut slow = Vec::new();
    for (number, framing) in ["content-length: 9", "content-length: 100000", "transfer-encoding: chunked"].into_iter().enumerate() {
        let mut client = site.client().await;
        let head = format!("POST {LOGIN} HTTP/1.1\r\nhost: blog.example\r\nx-forwarded-for: 198.51.100.{number}\r\n{framing}\r\n\r\n");
        client.send_raw(head).await;
        slow.push(client);
    }
    has_read_all(&origin, &site).await;
    for _ in 0..3 {
        sign_in(&site, "192.0.2.1", "right").await.status(302);
    }
    slow[0].send_raw("pwd=right").await;
    slow[0].read_answer().await.status(302);
}

/// No form for signing in is larger than 64 KiB.
#[tokio::test]
async fn a_form_of_any_size_is_no_form() {
    let (origin, site) = wordpress("").await;
    answers_logins(&origin);
    site.request(from("192.0.2.1", Req::post(LOGIN).body("x".repeat(65_537)))).await.status(413);
    site.request(from("192.0.2.1", Req::post(LOGIN).chunks(["x".repeat(65_537)]))).await.status(413);
    assert_eq!(origin.count(LOGIN), 0);
}

/// Uploads through the API go on as they come, whole.
#[tokio::test]
async fn an_upload_with_credentials_arrives_whole() {
    let (origin, site) = wordpress("").await;
    let media = "/wp-json/wp/v2/media";
    origin.on(post(media)).reply_with(|seen| ok(seen.text().len().to_string()));
    for length in [10, 65_536, 65_537, 3_000_000] {
        let upload = Req::post(media).field("authorization", format!("Basic {length}")).body("x".repeat(length));
        site.request(from("192.0.2.1", upload)).await.status(200).body(length.to_string());
    }
}

/// `[limits]` says how many, or that nobody counts.
#[tokio::test]
async fn an_operator_sets_the_limit() {
    let (origin, site) = wordpress("[limits]\nlogin_attempts = 2").await;
    answers_logins(&origin);
    for _ in 0..2 {
        sign_in(&site, "192.0.2.1", "wrong").await.status(200);
    }
    sign_in(&site, "192.0.2.1", "wrong").await.status(429);

    let (origin, site) = wordpress("[limits]\nlogin_attempts = \"off\"").await;
    answers_logins(&origin);
    for _ in 0..50 {
        sign_in(&site, "192.0.2.1", "wrong").await.status(200);
    }
}

/// Only a kind that says where its doors are has any.
#[tokio::test]
async fn a_server_of_any_kind_is_left_alone() {
    let (origin, site) = site_with("[server]\ntrusted_proxies = [\"127.0.0.1\"]").await;
    answers_logins(&origin);
    for _ in 0..20 {
        sign_in(&site, "192.0.2.1", "wrong").await.status(200);
    }
}

/// A Ghost answers 422 to a wrong password, 404 to an unknown name, and 201 to the right one.
#[tokio::test]
async fn a_ghost_has_such_a_door_too() {
    let (origin, site) =
        site_with("kind = \"ghost\"\n[server]\ntrusted_proxies = [\"127.0.0.1\"]\n[cache]\ntwo_visitor_proof = false").await;
    let session = "/ghost/api/admin/session";
    origin.on(post(session)).reply_with(|seen| match seen.text().as_str() {
        "right" => status(201),
        "nobody" => status(404),
        _ => status(422),
    });
    let sign_in = async |body: &'static str| site.request(from("192.0.2.1", Req::post(session).body(body))).await;
    for _ in 0..20 {
        sign_in("right").await.status(201);
    }
    for _ in 0..5 {
        sign_in("wrong").await.status(422);
        sign_in("nobody").await.status(404);
    }
    sign_in("right").await.status(429);
}
