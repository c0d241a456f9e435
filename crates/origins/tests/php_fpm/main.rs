//! PHP as it is: what a real php-fpm is told, what comes of it, and what it does to whoever does not know it.

mod fpm;

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_util::future::{join, join_all};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use origins::{Arrival, Body, Caller, Fault, Origin, OriginError, php::Php};
use semantics::Scheme;
use tokio::sync::{Notify, Semaphore};

use fpm::Fpm;

/// A script that waits until a mark is made beside it.
const WAIT: &str = "function wait_for($mark) { while (!file_exists(__DIR__ . '/' . $mark)) { usleep(2000); clearstatcache(); } }";

/// Runs a test as a worker runs: one thread, tasks that stay on it.
fn on_a_worker<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default()).expect("a runtime").block_on(test)
}

fn request(method: Method, target: &str, body: Body) -> Request<Body> {
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = target.parse().expect("a target");
    request
}

async fn ask(site: &Php, request: Request<Body>) -> Result<Response<Body>, OriginError> {
    let client = Some(IpAddr::from([192, 0, 2, 7]));
    let arrival = Arrival { caller: Some(Caller { peer: client, client, way: &[] }), ..Arrival::of_our_own(Scheme::Https, "blog.example") };
    testkit::patiently("a response", site.fetch(request, &arrival, None)).await
}

async fn get(site: &Php, target: &str) -> Response<Body> {
    ask(site, request(Method::GET, target, Body::Empty)).await.expect("a response")
}

async fn content(response: Response<Body>) -> Result<String, OriginError> {
    let bytes = testkit::patiently("content", response.into_body().collect()).await?.to_bytes();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

async fn text(site: &Php, target: &str) -> String {
    content(get(site, target).await).await.expect("whole")
}

/// Returns content that streams: so many pieces of 64 KiB.
fn upload(pieces: usize) -> Body {
    let piece = Bytes::from(vec![b'x'; 64 * 1024]);
    let pieces = std::iter::repeat_n(piece, pieces).map(|piece| Ok::<_, OriginError>(http_body::Frame::data(piece)));
    Body::stream(StreamBody::new(futures_util::stream::iter(pieces)))
}

#[test]
fn php_sees_the_request_as_it_was_made() {
    on_a_worker(async {
        let show = "foreach (explode(',', $_GET['names']) as $name) { echo $name, '=', $_SERVER[$name] ?? '-', ';'; } \
                    echo $_COOKIE['b'] ?? '-', ';', getenv('HTTP_PROXY') ?: '-';";
        let fpm = Fpm::start(1, &[("index.php", show)]).await;
        let names =
            "REQUEST_METHOD,SCRIPT_NAME,PATH_INFO,PHP_SELF,HTTPS,SERVER_NAME,SERVER_PORT,REMOTE_ADDR,HTTP_COOKIE,HTTP_PROXY,PHP_AUTH_USER";
        let mut asked = request(Method::GET, &format!("/index.php/a%20b?names={names}"), Body::Empty);
        for (name, value) in [("cookie", "a=1"), ("cookie", "b=2"), ("proxy", "x"), ("http_proxy", "x"), ("authorization", "Basic eDp5")] {
            asked.headers_mut().append(name, value.parse().expect("a value"));
        }
        let seen = content(ask(&fpm.site(), asked).await.expect("a response")).await.expect("whole");
        assert_eq!(
            seen,
            "REQUEST_METHOD=GET;SCRIPT_NAME=/index.php;PATH_INFO=/a b;PHP_SELF=/index.php/a b;HTTPS=on;SERVER_NAME=blog.example;\
             SERVER_PORT=443;REMOTE_ADDR=192.0.2.7;HTTP_COOKIE=a=1; b=2;HTTP_PROXY=-;PHP_AUTH_USER=x;2;-"
        );
    });
}

#[test]
fn a_status_is_what_the_script_said() {
    on_a_worker(async {
        let script = "switch ($_SERVER['REQUEST_URI']) {
            case '/missing': http_response_code(404); echo 'gone'; break;
            case '/line': header('HTTP/1.1 410 Gone'); break;
            case '/field': header('Status: 503 Busy'); break;
            case '/away': header('Location: /there'); break;
            case '/fatal': throw new Exception('no'); 
            case '/same': http_response_code(304); break;
            default: echo 'hello'; }";
        let fpm = Fpm::start(2, &[("index.php", script)]).await;
        let site = fpm.site();
        for (target, status) in
            [("/", 200), ("/missing", 404), ("/line", 410), ("/field", 503), ("/away", 302), ("/fatal", 500), ("/same", 304)]
        {
            assert_eq!(get(&site, target).await.status(), status, "{target}");
        }
        let head = ask(&site, request(Method::HEAD, "/", Body::Empty)).await.expect("a response");
        assert_eq!((head.status().as_u16(), content(head).await.expect("nothing")), (200, String::new()));
    });
}

#[test]
fn a_script_that_is_too_slow_is_a_timeout() {
    on_a_worker(async {
        let fpm = Fpm::start(1, &[("index.php", "sleep(20);")]).await;
        let server = fpm.server(|options| options.first_byte_timeout = Duration::from_millis(200));
        let error = ask(&fpm.worker(&server), request(Method::GET, "/", Body::Empty)).await.expect_err("too slow");
        assert_eq!((error.fault, error.fault.status()), (Fault::ReadTimeout, StatusCode::GATEWAY_TIMEOUT));
    });
}

/// One child, and a queue for two: `connect` says EAGAIN to all others.
#[test]
fn a_crowd_waits_for_the_only_child_and_everybody_is_answered() {
    on_a_worker(async {
        let fpm = Fpm::start(1, &[("index.php", "usleep(10000); echo $_SERVER['REQUEST_URI'];")]).await;
        let server = fpm.server(|_| {});
        let workers = [fpm.worker(&server), fpm.worker(&server)];
        let crowd = (0..40).map(|number| {
            let site = &workers[number % 2];
            async move { assert_eq!(text(site, &format!("/{number}")).await, format!("/{number}")) }
        });
        let began = Instant::now();
        join_all(crowd).await;
        // Nobody waited for a connection to grow old: that would be most of a second for each.
        assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    });
}

/// Nobody else's request is harmed, and what was given up is not carried out later.
#[test]
fn whoever_gets_no_child_in_time_is_turned_away_and_nothing_is_run_for_it() {
    on_a_worker(async {
        let script = format!(
            "{WAIT} file_put_contents(__DIR__ . '/runs', $_SERVER['REQUEST_URI'] . ' ', FILE_APPEND); \
             if ($_SERVER['REQUEST_URI'] === '/long') {{ wait_for('go'); }} echo 'done';"
        );
        let fpm = Fpm::start(1, &[("index.php", &script)]).await;
        let server = fpm.server(|_| {});
        let (patient, impatient) = (fpm.worker(&server), fpm.impatient(&server, Duration::from_millis(100)));
        let others = async {
            assert_eq!(fpm.written("runs").await, "/long ");
            for method in [Method::GET, Method::POST] {
                let error = ask(&impatient, request(method, "/given-up", Body::Empty)).await.expect_err("no child");
                assert_eq!((error.fault, error.fault.status()), (Fault::Overloaded, StatusCode::SERVICE_UNAVAILABLE));
            }
            fpm.mark("go");
        };
        assert_eq!(join(text(&patient, "/long"), others).await.0, "done");
        assert_eq!(text(&patient, "/next").await, "done");
        assert_eq!(fpm.written("runs").await, "/long /next ");
    });
}

/// A child that is killed at its work is a 502, or a page that ends early; whatever waits for a child is answered by the next one.
#[test]
fn a_reload_under_load_costs_no_more_than_what_was_at_work() {
    on_a_worker(async {
        const CHILDREN: usize = 2;
        const RELOADS: usize = 3;
        /// Requests that have ended between two reloads.
        const BETWEEN: usize = 60;
        let fpm = Fpm::start(CHILDREN, &[("index.php", "usleep(3000); echo 'page';")]).await;
        let server = fpm.server(|_| {});
        let site = fpm.worker(&server);
        let ended = Semaphore::new(0);
        let crowd = (0..6).map(|_| async {
            let mut lost = 0;
            for _ in 0..BETWEEN {
                match ask(&site, request(Method::POST, "/", Body::Empty)).await {
                    Ok(response) => lost += usize::from(content(response).await.is_err()),
                    Err(error) => {
                        assert_eq!(error.fault.status(), StatusCode::BAD_GATEWAY, "{error}");
                        lost += 1;
                    }
                }
                ended.add_permits(1);
            }
            lost
        });
        let reloads = async {
            for _ in 0..RELOADS {
                for _ in 0..BETWEEN {
                    ended.acquire().await.expect("nobody closes it").forget();
                }
                fpm.reload();
            }
        };
        let (lost, ()) = join(join_all(crowd), reloads).await;
        assert!(lost.iter().sum::<usize>() <= CHILDREN * RELOADS, "{lost:?}");
    });
}

/// Returns how much to send where that is a matter of time: a gigabyte up and two down with `SEAWALL_PHP_LONG`.
fn large(long: usize, short: usize) -> usize {
    if std::env::var_os("SEAWALL_PHP_LONG").is_some() { long } else { short }
}

/// Asserts that this process has never held more memory than a few uploads and downloads may take.
fn assert_little_memory() {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return };
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the most memory");
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    assert!(kilobytes < 160 * 1024, "{kilobytes} KB");
}

#[test]
fn an_idle_connection_of_another_worker_does_not_hold_the_only_child() {
    on_a_worker(async {
        let fpm = Fpm::start(1, &[("index.php", "echo getmypid();")]).await;
        let server = fpm.server(|_| {});
        let (one, other) = (fpm.worker(&server), fpm.worker(&server));
        let began = Instant::now();
        for _ in 0..20 {
            assert_eq!(text(&one, "/").await, text(&other, "/").await);
        }
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    });
}

/// Seawall does not know of one another's requests there: both have a server of their own, as two processes would have.
#[test]
fn a_busy_site_does_not_keep_another_one_from_the_only_child_that_they_share() {
    on_a_worker(async {
        let fpm = Fpm::start(1, &[("index.php", "echo 'here';")]).await;
        for readers in [1, 4] {
            let (busy, other, begun) = (fpm.site(), fpm.site(), Notify::new());
            let crowd = join_all((0..readers).map(|_| async {
                loop {
                    assert_eq!(text(&busy, "/").await, "here");
                    begun.notify_one();
                    tokio::task::yield_now().await;
                }
            }));
            let asks = async {
                begun.notified().await;
                let began = Instant::now();
                for _ in 0..3 {
                    assert_eq!(testkit::patiently("the only child", text(&other, "/")).await, "here");
                }
                began.elapsed()
            };
            let took = tokio::select! {
                took = asks => took,
                _ = crowd => unreachable!("it goes on and on"),
            };
            assert!(took < Duration::from_secs(6), "{readers} readers: {took:?}");
        }
    });
}

#[test]
fn a_connection_serves_one_request_after_the_other() {
    on_a_worker(async {
        let fpm = Fpm::start(4, &[("index.php", "echo getmypid();")]).await;
        let site = fpm.site();
        let mut pids = Vec::new();
        for _ in 0..20 {
            pids.push(text(&site, "/").await);
            // The child says that it is free, and the next request would not wait for that: it would take another child.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        pids.dedup();
        // Another one only if this machine was very busy.
        assert!(pids.len() <= 3, "{pids:?}");
    });
}

/// php-fpm leaves Nagle's algorithm on: it sends the rest of a page when the part before it was acknowledged, which a kernel that expects to send something
/// soon puts off for 40 ms.
#[test]
fn over_tcp_no_page_waits_for_its_acknowledgement() {
    on_a_worker(async {
        const PAGES: u32 = 50;
        let fpm = Fpm::start_on_a_port(2, &[("index.php", "echo str_repeat('12345678', 1024);")]).await;
        let site = fpm.site();
        let began = Instant::now();
        for _ in 0..PAGES {
            assert_eq!(text(&site, "/").await.len(), 8192);
        }
        assert!(began.elapsed() < Duration::from_millis(40) * PAGES / 2, "{:?}", began.elapsed());
    });
}

/// php-src issue 10335: over the same connection the second request would wait for the first script.
#[test]
fn a_script_that_goes_on_behind_its_response_makes_nobody_wait() {
    on_a_worker(async {
        let work = format!(
            "{WAIT} if ($_SERVER['REQUEST_URI'] === '/work') {{ echo 'sent'; fastcgi_finish_request(); wait_for('go'); \
             file_put_contents(__DIR__ . '/done', 'done'); }} else {{ echo 'here'; }}"
        );
        let fpm = Fpm::start(2, &[("index.php", &work)]).await;
        let site = fpm.site();
        assert_eq!(text(&site, "/work").await, "sent");
        for _ in 0..5 {
            assert_eq!(text(&site, "/").await, "here");
        }
        fpm.mark("go");
        assert_eq!(fpm.written("done").await, "done");
    });
}

#[test]
fn a_child_that_dies_amid_its_response_leaves_no_whole_page() {
    on_a_worker(async {
        let script = format!("{WAIT} echo 'half '; flush(); wait_for('go'); posix_kill(getmypid(), 9);");
        let fpm = Fpm::start(1, &[("index.php", &script)]).await;
        let response = get(&fpm.site(), "/").await;
        fpm.mark("go");
        assert_eq!(content(response).await.expect_err("half a page").fault, Fault::ConnectionTerminated);
    });
}

#[test]
fn a_restart_is_not_seen() {
    on_a_worker(async {
        let mut fpm = Fpm::start(1, &[("index.php", "echo $_SERVER['REQUEST_METHOD'];")]).await;
        let site = fpm.site();
        assert_eq!(text(&site, "/").await, "GET");
        fpm.restart().await;
        assert_eq!(text(&site, "/").await, "GET");
        fpm.restart().await;
        let posted = ask(&site, request(Method::POST, "/", Body::from(Bytes::from_static(b"a=1")))).await.expect("a response");
        assert_eq!(content(posted).await.expect("whole"), "POST");
        fpm.stop();
        let error = ask(&site, request(Method::GET, "/", Body::Empty)).await.expect_err("nobody is there");
        assert_eq!(error.fault.status(), StatusCode::BAD_GATEWAY);
    });
}

#[test]
fn seventy_kilobytes_of_fields_get_through() {
    on_a_worker(async {
        let script = "for ($i = 0; $i < 700; $i++) header(\"Set-Cookie: c$i=\" . str_repeat('v', 85), false); echo 'hello';";
        let fpm = Fpm::start(1, &[("index.php", script)]).await;
        let response = get(&fpm.site(), "/").await;
        assert_eq!(response.headers().get_all("set-cookie").iter().count(), 700);
        assert_eq!(content(response).await.expect("whole"), "hello");
    });
}

#[test]
fn large_fields_of_a_request_get_through_or_are_refused_and_never_break_the_connection() {
    on_a_worker(async {
        let fpm = Fpm::start(1, &[("index.php", "echo strlen($_SERVER['HTTP_X_LONG']), strlen($_SERVER['HTTP_X_OTHER']);")]).await;
        let site = fpm.site();
        // With its name and the two lengths, 16 bytes, a pair has 65,535 at most.
        for (length, answer) in [(20_000, Ok("2000040000")), (65_519, Ok("6551940000")), (65_520, Err(431))] {
            let mut asked = request(Method::GET, "/", Body::Empty);
            for (name, length) in [("x-other", 40_000), ("x-long", length)] {
                asked.headers_mut().insert(name, "v".repeat(length).parse().expect("a value"));
            }
            match (ask(&site, asked).await, answer) {
                (Ok(response), Ok(lengths)) => assert_eq!(content(response).await.expect("whole"), lengths),
                (Err(error), Err(status)) => assert_eq!(error.fault.status(), status),
                (answered, _) => panic!("{length}: {answered:?}"),
            }
        }
    });
}

/// The upload comes without a length of its own: in chunks, or over HTTP/2.
#[test]
fn a_large_upload_comes_whole() {
    on_a_worker(async {
        let script = "$in = fopen('php://input', 'rb'); $n = 0; while (!feof($in)) { $n += strlen(fread($in, 1 << 16)); } \
                      echo $_SERVER['CONTENT_LENGTH'], ' ', $n;";
        let fpm = Fpm::start(1, &[("index.php", script)]).await;
        let site = fpm.site();
        for pieces in [0, 1, 2, large(16 * 1024, 3_200)] {
            let mut asked = request(Method::POST, "/", upload(pieces));
            asked.headers_mut().insert("content-type", "application/octet-stream".parse().expect("a value"));
            let length = pieces * 64 * 1024;
            let answered = ask(&site, asked).await.expect("a response");
            assert_eq!(content(answered).await.expect("whole"), format!("{length} {length}"));
        }
        assert_little_memory();
    });
}

#[test]
fn a_form_is_read() {
    on_a_worker(async {
        let fpm = Fpm::start(1, &[("index.php", "echo $_POST['a'], $_POST['b'];")]).await;
        let mut asked = request(Method::POST, "/", Body::from(Bytes::from_static(b"a=1&b=%C3%A9")));
        asked.headers_mut().insert("content-type", "application/x-www-form-urlencoded".parse().expect("a value"));
        assert_eq!(content(ask(&fpm.site(), asked).await.expect("a response")).await.expect("whole"), "1é");
    });
}

#[test]
fn a_large_download_comes_whole_and_is_never_held() {
    on_a_worker(async {
        let megabytes = large(2048, 300);
        let script = format!("$piece = str_repeat('x', 1 << 20); for ($i = 0; $i < {megabytes}; $i++) {{ echo $piece; }}");
        let fpm = Fpm::start(1, &[("index.php", &script)]).await;
        let (mut body, mut bytes) = (get(&fpm.site(), "/").await.into_body(), 0);
        while let Some(frame) = body.frame().await {
            bytes += frame.expect("good").into_data().expect("data").len();
        }
        assert_eq!(bytes, megabytes << 20);
        assert_little_memory();
    });
}

#[test]
fn a_flood_of_messages_does_not_touch_the_page() {
    on_a_worker(async {
        let script = "for ($i = 0; $i < 5000; $i++) { error_log(\"\\x1b[31m message $i \\n\" . str_repeat('m', 500)); } echo 'page';";
        let fpm = Fpm::start(1, &[("index.php", script)]).await;
        assert_eq!(text(&fpm.site(), "/").await, "page");
    });
}

#[test]
fn a_client_that_leaves_ends_the_script() {
    on_a_worker(async {
        let script = "register_shutdown_function(function () { file_put_contents(__DIR__ . '/ended', connection_aborted() ? 'left' : 'stayed'); }); \
                      for ($i = 0; $i < 100000; $i++) { echo str_repeat('x', 4096); flush(); usleep(1000); }";
        let fpm = Fpm::start(1, &[("index.php", script)]).await;
        let mut body = get(&fpm.site(), "/").await.into_body();
        assert!(body.frame().await.expect("some").is_ok());
        drop(body);
        assert_eq!(fpm.written("ended").await, "left");
    });
}

#[test]
fn a_client_that_reads_slowly_does_not_hold_the_only_child() {
    on_a_worker(async {
        let script = "echo 'page'; flush(); if ($_SERVER['REQUEST_URI'] === '/long') { usleep(20000); echo str_repeat('x', 200000); }";
        let fpm = Fpm::start(1, &[("index.php", script)]).await;
        let site = fpm.site();
        let long = get(&site, "/long").await;
        assert_eq!(text(&site, "/").await, "page");
        assert_eq!(content(long).await.expect("whole").len(), 200_004);
    });
}

/// The part that it has not taken lies in a file meanwhile.
#[test]
fn a_client_that_takes_a_long_page_slowly_does_not_hold_the_only_child_either() {
    on_a_worker(async {
        let script =
            "echo str_repeat($_SERVER['REQUEST_URI'] === '/long' ? 'x' : 'y', $_SERVER['REQUEST_URI'] === '/long' ? 30000000 : 4);";
        let fpm = Fpm::start(1, &[("index.php", script)]).await;
        let site = fpm.site();
        let long = get(&site, "/long").await;
        assert_eq!(text(&site, "/").await, "yyyy");
        let long = content(long).await.expect("whole");
        assert!(long.len() == 30_000_000 && long.bytes().all(|byte| byte == b'x'));
    });
}

#[test]
fn an_event_is_handed_on_when_it_is_sent() {
    on_a_worker(async {
        let script = format!(
            "{WAIT} header('Content-Type: text/event-stream'); header('X-Accel-Buffering: no'); flush(); \
             foreach ([1, 2, 3] as $i) {{ wait_for(\"go-$i\"); echo \"data: $i\\n\\n\"; flush(); }}"
        );
        let fpm = Fpm::start(1, &[("index.php", &script)]).await;
        // PHP sends no head before it has something to say.
        fpm.mark("go-1");
        let response = get(&fpm.site(), "/").await;
        assert_eq!(response.headers()["content-type"], "text/event-stream;charset=UTF-8");
        let mut body = response.into_body();
        for number in 1..=3 {
            fpm.mark(&format!("go-{number}"));
            let event = testkit::patiently("an event", body.frame()).await.expect("some").expect("good").into_data().expect("data");
            assert_eq!(event, format!("data: {number}\n\n"));
        }
        assert!(body.frame().await.is_none());
    });
}

#[test]
fn two_slow_scripts_run_at_once() {
    on_a_worker(async {
        let script = format!(
            "{WAIT} if ($_SERVER['REQUEST_URI'] === '/one') {{ file_put_contents(__DIR__ . '/a', 'x'); wait_for('b'); }} \
             else {{ wait_for('a'); file_put_contents(__DIR__ . '/b', 'x'); }} echo 'met';"
        );
        let fpm = Fpm::start(2, &[("index.php", &script)]).await;
        let site = Arc::new(fpm.site());
        assert_eq!(join(text(&site, "/one"), text(&site, "/two")).await, ("met".to_owned(), "met".to_owned()));
    });
}
