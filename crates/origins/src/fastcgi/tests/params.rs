//! What PHP is told (RFC 3875 §4.1).

use super::*;

async fn heard(script: Script, request: Request<Body>, arrival: Arrival<'_>) -> testkit::FastCgiRequest {
    let server = Server::start();
    let client = client(&server);
    let hears = async {
        let mut peer = server.accept().await;
        let heard = peer.request().await;
        peer.answer("\r\n").await;
        heard
    };
    let (response, heard) = futures_util::future::join(client.run(&script, request, &arrival, None), hears).await;
    response.expect("a response");
    heard
}

#[test]
fn a_script_is_told_what_cgi_says() {
    on_a_worker(async {
        let mut asked = get("/index.php/2024/caf%C3%A9?a=1&b=%20");
        let fields = asked.headers_mut();
        for (name, value) in [
            ("host", "Blog.example:8443"),
            ("cookie", "a=1"),
            ("cookie", "b=2; c=3"),
            ("accept", "text/html"),
            ("accept", "*/*"),
            ("authorization", "Basic eDp5"),
            ("x_under_score", "no"),
            ("x.dotted", "no"),
            ("proxy", "http://evil.example"),
            ("content-type", "text/plain"),
        ] {
            fields.append(name, value.parse().expect("a value"));
        }
        let script =
            Script { document_root: "/srv/site".into(), name: "/index.php".into(), path_info: "/2024/café".into(), more: Arc::default() };
        let client = Some([192, 0, 2, 7].into());
        let arrival =
            Arrival { caller: Some(Caller { peer: client, client, way: &[] }), ..Arrival::of_our_own(Scheme::Https, "blog.example:8443") };
        let heard = heard(script, asked, arrival).await;
        let expected = [
            ("CONTENT_LENGTH", "0"),
            ("CONTENT_TYPE", "text/plain"),
            ("DOCUMENT_ROOT", "/srv/site"),
            ("GATEWAY_INTERFACE", "CGI/1.1"),
            ("HTTPS", "on"),
            ("HTTP_ACCEPT", "text/html, */*"),
            ("HTTP_AUTHORIZATION", "Basic eDp5"),
            ("HTTP_COOKIE", "a=1; b=2; c=3"),
            ("HTTP_HOST", "Blog.example:8443"),
            ("PATH_INFO", "/2024/café"),
            ("QUERY_STRING", "a=1&b=%20"),
            ("REDIRECT_STATUS", "200"),
            ("REMOTE_ADDR", "192.0.2.7"),
            ("REQUEST_METHOD", "GET"),
            ("REQUEST_URI", "/index.php/2024/caf%C3%A9?a=1&b=%20"),
            ("SCRIPT_FILENAME", "/srv/site/index.php"),
            ("SCRIPT_NAME", "/index.php"),
            ("SERVER_ADDR", "127.0.0.1"),
            ("SERVER_NAME", "blog.example"),
            ("SERVER_PORT", "8443"),
            ("SERVER_PROTOCOL", "HTTP/1.1"),
            ("SERVER_SOFTWARE", concat!("Seawall/", env!("CARGO_PKG_VERSION"), " (nginx)")),
        ];
        let told: Vec<_> = heard.params.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let (ids, told): (Vec<_>, Vec<_>) = told.into_iter().partition(|(name, _)| *name == "UNIQUE_ID");
        assert_eq!(told, expected);
        assert!(ids.len() == 1 && ids[0].1.len() == 16, "{ids:?}");
    });
}

/// wp-includes/vars.php and wp-admin/includes/misc.php of WordPress 5.0 to 6.8: addresses without `index.php` are offered where the name says nginx, and
/// an `.htaccess` is written where it says Apache or LiteSpeed.
#[test]
fn wordpress_takes_the_server_for_one_that_needs_no_htaccess() {
    on_a_worker(async {
        let heard = heard(script(), get("/"), arrival()).await;
        let name = heard.param("SERVER_SOFTWARE");
        assert!(name.starts_with("Seawall/") && name.contains("nginx"), "{name}");
        assert!(["Apache", "LiteSpeed", "Microsoft-IIS", "ExpressionDevServer"].iter().all(|other| !name.contains(other)), "{name}");
    });
}

#[test]
fn a_script_is_told_what_the_operator_adds_and_no_client_says_it_instead() {
    on_a_worker(async {
        let more = [("SEAWALL_SECRET", "s3cret"), ("HTTPS", "on"), ("HTTP_X_STAGE", "live"), ("CONTENT_LENGTH", "7")];
        let more = more.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let mut asked = get("/");
        for (name, value) in [("seawall_secret", "x"), ("seawall-secret", "x"), ("x-stage", "test")] {
            asked.headers_mut().append(name, value.parse().expect("a value"));
        }
        let heard = heard(Script { more, ..script() }, asked, arrival()).await;
        assert_eq!((heard.param("SEAWALL_SECRET"), heard.param("HTTPS"), heard.param("HTTP_X_STAGE")), ("s3cret", "on", "live"));
        assert_eq!((heard.param("HTTP_SEAWALL_SECRET"), heard.param("CONTENT_LENGTH")), ("x", "0"));
    });
}

#[test]
fn plain_http_has_no_https_and_a_prefix_that_was_taken_off_is_there_again() {
    on_a_worker(async {
        let arrival = Arrival { prefix: Some("/blog"), ..Arrival::of_our_own(Scheme::Http, "") };
        let heard = heard(script(), get("/a?b"), arrival).await;
        assert_eq!(heard.params.get("HTTPS"), None);
        assert_eq!(heard.param("REQUEST_URI"), "/blog/a?b");
        assert_eq!(heard.param("SCRIPT_NAME"), "/blog/index.php");
        assert_eq!(heard.param("SCRIPT_FILENAME"), "/srv/site/index.php");
        assert_eq!((heard.param("SERVER_NAME"), heard.param("SERVER_PORT")), ("localhost", "80"));
        assert_eq!(heard.param("REMOTE_ADDR"), "127.0.0.1");
    });
}

/// FACTS of php-fpm 8.2: a pair that straddles two records resets the connection, and one has 65,535 bytes at most.
#[test]
fn every_record_holds_whole_pairs_and_a_pair_that_none_can_hold_is_the_clients_fault() {
    on_a_worker(async {
        let with_fields = |sizes: &[usize]| {
            let mut request = get("/");
            for (number, size) in sizes.iter().enumerate() {
                let name = ::http::HeaderName::try_from(format!("x-{number}")).expect("a name");
                request.headers_mut().insert(name, "v".repeat(*size).parse().expect("a value"));
            }
            request
        };
        for sizes in [&[127, 128, 60_000][..], &[30_000; 8], &[65_520], &[40_000, 1, 40_000]] {
            let heard = heard(script(), with_fields(sizes), arrival()).await;
            for (number, size) in sizes.iter().enumerate() {
                assert_eq!(heard.param(&format!("HTTP_X_{number}")).len(), *size);
            }
        }
        // 1 byte for the length of `HTTP_X_0`, 4 for that of the value, and 8 for the name itself.
        let largest = heard(script(), with_fields(&[65_535 - 13]), arrival()).await;
        assert_eq!(largest.params_records.iter().max(), Some(&65_535));
        let server = Server::start();
        let error = ask(&client(&server), with_fields(&[65_535 - 12])).await.expect_err("too long");
        assert_eq!(error.fault.status(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
        assert!(server.is_idle().await, "nobody was asked");
    });
}
