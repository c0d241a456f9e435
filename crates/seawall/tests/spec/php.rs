//! A folder with an application in PHP: what the server that runs it is told, what of its answers is stored, and what never leaves the folder.
//! RFC 3875; FastCGI specification 1.0.

use std::fs;

use testkit::{Client, FastCgiPeer, FastCgiRequest, FastCgiServer, Req, secs};

use crate::site::Site;

/// Returns a site like WordPress, and the server that runs it.
fn site_with(toml: &str) -> (FastCgiServer, Site) {
    let server = FastCgiServer::start();
    let site = Site::start_with(|folder| {
        for (path, text) in [
            ("www/index.php", "<?php"),
            ("www/style.css", "body {}"),
            ("www/wp-content/uploads/evil.php", "<?php evil"),
            ("www/wp-config.php~", "secret"),
            ("www/shop/index.php", "<?php"),
        ] {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        format!("source = \"www\"\n[php]\nserver = \"unix:{}\"\n{toml}", server.socket().display())
    });
    (server, site)
}

fn site() -> (FastCgiServer, Site) {
    site_with("")
}

/// Plays the server's part: it hears a request over a new connection, and says this.
async fn answers(server: &FastCgiServer, says: &str) -> (FastCgiRequest, FastCgiPeer) {
    let mut peer = server.accept().await;
    let heard = peer.request().await;
    peer.answer(says).await;
    (heard, peer)
}

async fn sent(site: &Site, request: Req) -> Client {
    let mut client = site.client().await;
    client.send(request).await;
    client
}

#[tokio::test]
async fn a_page_of_php_is_stored_as_any_other() {
    let (server, site) = site();
    let mut client = sent(&site, Req::get("/2024/hello/?utm_source=x&a=b")).await;
    let (heard, _peer) = answers(&server, "Cache-Control: max-age=10\r\nContent-Type: text/html\r\n\r\nhello").await;
    assert_eq!(heard.param("SCRIPT_NAME"), "/index.php");
    assert_eq!(heard.param("REQUEST_URI"), "/2024/hello/?a=b");
    assert_eq!(
        (heard.param("SERVER_NAME"), heard.param("HTTP_HOST"), heard.param("REMOTE_ADDR")),
        ("blog.example", "blog.example", "127.0.0.1")
    );
    client.read_answer().await.status(200).body("hello").cache_status("fwd=uri-miss; stored");
    site.get("/2024/hello/?a=b").await.body("hello").cache_status("hit");
}

#[tokio::test]
async fn an_answer_that_ends_early_is_not_whole_and_not_stored() {
    let (server, site) = site();
    for _ in 0..2 {
        let mut client = sent(&site, Req::get("/")).await;
        let mut peer = server.accept().await;
        peer.request().await;
        peer.stdout("Cache-Control: max-age=10\r\n\r\nhalf").await;
        client.read_head().await.status(200);
        drop(peer);
        while client.read_body_chunk().await.is_some() {}
        assert!(client.is_cut_short());
    }
    let mut client = sent(&site, Req::get("/")).await;
    let _peer = answers(&server, "Cache-Control: max-age=10\r\n\r\nwhole").await;
    client.read_answer().await.status(200).body("whole");
    site.get("/").await.body("whole").cache_status("hit");
}

#[tokio::test]
async fn a_stored_page_stands_in_for_php_that_is_gone_and_everything_else_is_a_502() {
    let (server, site) = site();
    let mut client = sent(&site, Req::get("/")).await;
    let _peer = answers(&server, "Cache-Control: max-age=10, stale-if-error=60\r\n\r\nstored").await;
    client.read_answer().await.body("stored");
    drop(server);
    site.clock.advance(secs(20));
    site.get("/").await.status(200).body("stored");
    site.get("/other").await.status(502);
    site.get("/style.css").await.status(200).body("body {}");
}

/// A style sheet that the folder itself answers is no sign that PHP is back.
#[tokio::test]
async fn a_file_of_the_folder_says_nothing_of_php() {
    let (server, site) = site();
    drop(server);
    site.get("/").await.status(502);
    let down = || {
        site.server.settle_seeing();
        site.server.console().moment().down
    };
    assert_eq!(down().len(), 1, "PHP cannot be reached");
    for (path, status) in [("/style.css", 200), ("/wp-content/uploads/evil.php", 404), ("/wp-config.php~", 404)] {
        site.get(path).await.status(status);
        assert_eq!(down().len(), 1, "{path}");
    }
}

#[tokio::test]
async fn php_that_takes_too_long_is_a_504() {
    let (server, site) = site_with("[origin]\nfirst_byte_timeout = \"100ms\"");
    let mut client = sent(&site, Req::get("/")).await;
    let mut peer = server.accept().await;
    peer.request().await;
    client.read_answer().await.status(504);
    peer.closed().await;
}

#[tokio::test]
async fn a_stranger_cannot_speak_as_a_proxy_or_set_the_variables_of_php() {
    let (server, site) = site();
    let mut request = Req::get("/");
    for (name, value) in [
        ("x-forwarded-for", "1.2.3.4"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "evil.example"),
        ("forwarded", "for=1.2.3.4"),
        ("x-real-ip", "1.2.3.4"),
        ("x_real_ip", "1.2.3.4"),
        ("proxy", "http://evil.example"),
        ("content_length", "5"),
        ("x.forwarded.for", "1.2.3.4"),
    ] {
        request = request.field(name, value);
    }
    let mut client = sent(&site, request).await;
    let (heard, _peer) = answers(&server, "\r\n").await;
    let told: Vec<_> = heard.params.keys().filter(|name| name.starts_with("HTTP_") && *name != "HTTP_HOST").collect();
    let unsuspicious = ["HTTP_ACCEPT_ENCODING", "HTTP_X_REQUEST_ID"];
    assert!(told.iter().all(|name| unsuspicious.contains(&name.as_str())), "{told:?}");
    assert_eq!((heard.param("REMOTE_ADDR"), heard.param("HTTPS"), heard.param("CONTENT_LENGTH")), ("127.0.0.1", "", "0"));
    client.read_answer().await.status(200);
}

/// A trusted proxy says who the client is, and that it came over https.
#[tokio::test]
async fn a_trusted_proxy_says_who_the_client_is() {
    let (server, site) = site_with("[server]\ntrusted_proxies = [\"127.0.0.1\"]");
    let request = Req::get("/").field("x-forwarded-for", "192.0.2.7").field("x-forwarded-proto", "https");
    let mut client = sent(&site, request).await;
    let (heard, _peer) = answers(&server, "\r\n").await;
    assert_eq!((heard.param("REMOTE_ADDR"), heard.param("HTTPS"), heard.param("SERVER_PORT")), ("192.0.2.7", "on", "443"));
    client.read_answer().await.status(200);
}

#[tokio::test]
async fn content_in_chunks_gets_its_length() {
    let (server, site) = site();
    let mut client = site.client().await;
    client.send_raw("POST / HTTP/1.1\r\nHost: blog.example\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n").await;
    assert!(server.is_idle().await, "a child is not held by a client that sends");
    client.send_raw("6\r\n world\r\n0\r\n\r\n").await;
    let (heard, _peer) = answers(&server, "\r\nread").await;
    assert_eq!((heard.param("CONTENT_LENGTH"), &heard.stdin[..]), ("11", &b"hello world"[..]));
    assert_eq!(heard.params.get("HTTP_TRANSFER_ENCODING"), None);
    client.read_answer().await.status(200).body("read");
}

#[tokio::test]
async fn seventy_kilobytes_of_fields_reach_the_client() {
    let (server, site) = site();
    let mut client = sent(&site, Req::get("/")).await;
    let fields: String = (0..700).map(|number| format!("Set-Cookie: c{number}={}\r\n", "v".repeat(85))).collect();
    let _peer = answers(&server, &format!("{fields}\r\nhello")).await;
    client.read_answer().await.status(200).body("hello").has_field("set-cookie");
}

#[tokio::test]
async fn files_are_sent_and_source_is_not_and_php_is_asked_for_neither() {
    let (server, site) = site();
    site.get("/style.css").await.status(200).body("body {}").field("content-type", "text/css; charset=utf-8").has_field("etag");
    site.request(Req::get("/style.css").field("range", "bytes=0-3")).await.status(206).body("body");
    site.request(Req::post("/style.css").body("a=1")).await.status(405);
    for target in ["/wp-config.php~", "/wp-content/uploads/evil.php", "/wp-content/uploads/evil.php/a.jpg", "/.env", "/index.php%0a"] {
        site.get(target).await.status(404);
    }
    site.get("/shop?a=b").await.status(301).field("location", "/shop/?a=b");
    assert!(server.is_idle().await);
}

#[tokio::test]
async fn a_client_that_leaves_ends_what_nobody_waits_for() {
    let (server, site) = site();
    let client = sent(&site, Req::post("/").body("a=1")).await;
    let mut peer = server.accept().await;
    peer.request().await;
    client.reset();
    peer.closed().await;
}

/// Debian's package of WordPress is full of links that lead out of its folder.
#[tokio::test]
async fn the_settings_of_php_say_which_links_are_followed_and_what_is_run_and_handed_over() {
    let server = FastCgiServer::start();
    let site = Site::start_with(|folder| {
        for (path, text) in
            [("www/index.php", "<?php"), ("www/files/a.php", "<?php"), ("lib/jquery.js", "jquery"), ("private/report.pdf", "report")]
        {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        std::os::unix::fs::symlink("../lib/jquery.js", folder.join("www/jquery.js")).expect("a link");
        format!(
            "source = \"www\"\n[php]\nserver = \"unix:{}\"\ndocument_root = \"/var/www/html\"\nlinks = \"owner\"\nnever_run = [\"files\"]\n\
             send_files = [\"/private={}\"]",
            server.socket().display(),
            folder.join("private").display()
        )
    });
    site.get("/jquery.js").await.status(200).body("jquery");
    site.get("/files/a.php").await.status(404);
    let mut client = sent(&site, Req::get("/download")).await;
    let (heard, _peer) = answers(&server, "X-Accel-Redirect: /private/report.pdf\r\nContent-Type: application/pdf\r\n\r\n").await;
    assert_eq!(heard.param("SCRIPT_FILENAME"), "/var/www/html/index.php");
    client.read_answer().await.status(200).body("report").field("content-type", "application/pdf").no_field("x-accel-redirect");
}

/// All children are busy: whoever gets none in time is told to come back, nothing is run for it, and what is stored is served.
#[tokio::test]
async fn a_pool_that_is_full_is_503_and_what_is_stored_is_served() {
    let (server, site) = site_with("[origin]\nqueue_timeout = \"100ms\"");
    let mut client = sent(&site, Req::get("/stored")).await;
    let (_, peer) = answers(&server, "Cache-Control: max-age=10\r\n\r\nstored").await;
    client.read_answer().await.body("stored");
    drop(peer);

    for request in [Req::get("/other"), Req::post("/form").body("a=1")] {
        let answer = site.request(request).await.status(503).field("retry-after", "5").body_contains("very busy");
        answer.field("proxy-status", "seawall; error=connection_limit_reached");
        // A child gets to it later.
        let mut late = server.accept().await;
        late.question().await;
        assert!(late.is_at_end().await, "nothing was sent");
    }
    site.get("/stored").await.status(200).cache_status("hit");
}

/// The rewrite rules that WP Super Cache publishes, which never served a page with nginx.
#[tokio::test]
async fn a_page_of_wp_super_cache_is_served_while_it_is_there_and_looked_at_once_a_second() {
    for kind in ["php", "wordpress"] {
        serves_pages_of_wp_super_cache(kind).await;
    }
}

async fn serves_pages_of_wp_super_cache(kind: &str) {
    let server = FastCgiServer::start();
    let pages = "www/wp-content/cache/supercache/blog.example/hello";
    let site = Site::start_with(|folder| {
        for (path, text) in [("www/index.php", "<?php"), ("www/wp-content/advanced-cache.php", "<?php")] {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        fs::create_dir_all(folder.join(pages)).expect("a folder");
        fs::write(folder.join(pages).join("index.html"), "a page of the plugin, long enough for a shorter form").expect("a file");
        fs::write(folder.join(pages).join("index.html.gz"), "its gzip form").expect("a file");
        format!("source = \"www\"\nkind = \"{kind}\"\n[php]\nserver = \"unix:{}\"\n[refill]\nconcurrency = 0\n", server.socket().display())
    });
    let page = site.folder().join(pages).join("index.html");
    site.get("/hello/").await.status(200).body_contains("a page of the plugin").field("content-type", "text/html; charset=utf-8");
    let coded = site.request(Req::get("/hello/").field("accept-encoding", "gzip")).await.status(200);
    coded.field("content-encoding", "gzip").body("its gzip form").cache_status("hit");
    site.get("/hello/?utm_source=x").await.status(200).cache_status("hit");
    assert!(server.is_idle().await, "PHP was not asked");

    fs::write(&page, "a newer page of the plugin, long enough for a shorter form").expect("a file");
    site.clock.advance(secs(2));
    site.get("/hello/").await.status(200).body_contains("a newer page");
    // Whoever has a cookie may see another page.
    let mut client = sent(&site, Req::get("/hello/").field("cookie", "PHPSESSID=1")).await;
    let _peer = answers(&server, "Cache-Control: no-store\r\n\r\nfor one").await;
    client.read_answer().await.body("for one");

    fs::remove_file(&page).expect("removed");
    site.clock.advance(secs(2));
    let mut client = sent(&site, Req::get("/hello/")).await;
    let _peer = answers(&server, "Cache-Control: max-age=10\r\n\r\nfrom PHP").await;
    client.read_answer().await.status(200).body("from PHP");
}

/// RFC 9113 §8.2.3: cookies come in several lines. What PHP is told does not depend on the version of HTTP.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "it ends with its connection")]
async fn a_request_over_http2_looks_like_any_other_to_php() {
    let (server, site) = site_with("[server]\nh2c = true\n");
    let stream = tokio::net::TcpStream::connect(site.address()).await.expect("connected");
    let (send, connection) = h2::client::handshake(stream).await.expect("a preface");
    tokio::spawn(connection);
    let mut request = http::Request::builder().method("POST").uri("http://blog.example/form?a=b").header("x_real_ip", "1.2.3.4");
    for cookie in ["a=1", "b=2"] {
        request = request.header("cookie", cookie);
    }
    let mut ready = send.ready().await.expect("room");
    let (response, mut content) = ready.send_request(request.body(()).expect("a request"), false).expect("sent");
    content.send_data("hel".into(), false).expect("sent");
    content.send_data("lo".into(), true).expect("sent");
    let (heard, _peer) = answers(&server, "Status: 201\r\n\r\nmade").await;
    assert_eq!(
        (heard.param("SERVER_PROTOCOL"), heard.param("REQUEST_METHOD"), heard.param("REQUEST_URI")),
        ("HTTP/1.1", "POST", "/form?a=b")
    );
    assert_eq!(
        (heard.param("HTTP_COOKIE"), heard.param("HTTP_HOST"), heard.param("SERVER_NAME")),
        ("a=1; b=2", "blog.example", "blog.example")
    );
    assert_eq!((heard.param("CONTENT_LENGTH"), &heard.stdin[..]), ("5", &b"hello"[..]));
    assert!(heard.params.keys().all(|name| !name.contains("REAL_IP")), "{:?}", heard.params);
    assert_eq!(testkit::patiently("a response", response).await.expect("a response").status(), 201);
}

/// What is said to the server about sending is not for clients.
#[tokio::test]
async fn orders_to_the_server_reach_no_client() {
    let (server, site) = site();
    let mut client = sent(&site, Req::get("/")).await;
    let _peer = answers(&server, "X-Accel-Buffering: no\r\nX-Accel-Limit-Rate: 1000\r\nX-Accel-Charset: utf-8\r\n\r\nhello").await;
    let answer = client.read_answer().await.status(200).body("hello");
    answer.no_field("x-accel-buffering").no_field("x-accel-limit-rate").no_field("x-accel-charset");
    // No folder is configured from which files may be sent.
    for field in ["X-Accel-Redirect: /style.css", "X-Sendfile: /etc/passwd", "X-Sendfile: style.css"] {
        let mut client = sent(&site, Req::post("/")).await;
        let mut peer = server.accept().await;
        peer.request().await;
        peer.stdout(format!("{field}\r\n\r\n")).await;
        client.read_answer().await.status(404).no_field("x-accel-redirect").no_field("x-sendfile");
        peer.closed().await;
    }
}
