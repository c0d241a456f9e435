//! The access log: one line for each exchange, with what the cache did.

use std::fs;

use testkit::{Req, get, not_modified, ok, secs};

use crate::site::{Site, site_with};

/// Stops the server, and reads what it has written.
fn lines(site: Site) -> Vec<String> {
    let folder = site.stop(secs(5));
    let text = fs::read_to_string(folder.path().join("access.log")).expect("a log");
    text.lines().map(ToOwned::to_owned).collect()
}

/// Returns a line without the two durations, which no test knows.
fn without_times(line: &str) -> String {
    line.split(' ')
        .filter(|word| !word.starts_with("rt="))
        .map(|word| if word.starts_with("ot=0") { "ot=…" } else { word })
        .collect::<Vec<_>>()
        .join(" ")
}

/// The combined form, with the time of the server's clock and the outcome at the end.
#[tokio::test]
async fn each_exchange_has_a_line() {
    let (origin, site) = site_with("[log]\naccess = \"./access.log\"").await;
    origin.on(get("/post?s=a")).reply(ok("text").field("cache-control", "max-age=10").field("etag", "\"a\""));
    origin.on(get("/post?s=a").field("if-none-match", "\"a\"")).reply(not_modified());
    origin.on(testkit::post("/form")).reply(ok("thanks"));
    let mut client = site.client().await;
    client.get("/post?s=a").await.status(200);
    client
        .request(Req::get("/post?s=a").field("user-agent", "reader/1.0 \"quoted\"").field("referer", "https://a.example/"))
        .await
        .status(200);
    client.request(Req::get("/post?s=a").field("if-none-match", "\"a\"")).await.status(304);
    client.head("/post?s=a").await.status(200);
    client.request(Req::get("/post?s=a").field("cache-control", "no-cache")).await.status(200);
    client.request(Req::post("/form").body("a=1")).await.status(200);
    drop(client);
    let begin = "127.0.0.1 - - [01/Jan/2026:00:00:00 +0000] ";
    let expected = [
        "\"GET /post?s=a HTTP/1.1\" 200 4 \"-\" \"-\" ot=… MISS",
        "\"GET /post?s=a HTTP/1.1\" 200 4 \"https://a.example/\" \"reader/1.0 \\x22quoted\\x22\" ot=- HIT",
        "\"GET /post?s=a HTTP/1.1\" 304 0 \"-\" \"-\" ot=- HIT",
        "\"HEAD /post?s=a HTTP/1.1\" 200 0 \"-\" \"-\" ot=- HIT",
        "\"GET /post?s=a HTTP/1.1\" 200 4 \"-\" \"-\" ot=… REVALIDATED",
        "\"POST /form HTTP/1.1\" 200 6 \"-\" \"-\" ot=… BYPASS",
    ]
    .map(|rest| format!("{begin}{rest}"));
    let lines: Vec<String> = lines(site).iter().map(|line| without_times(line)).collect();
    assert_eq!(lines, expected);
}

/// JSON, and the client whom a trusted proxy names.
#[tokio::test]
async fn json_lines_are_json() {
    let (origin, site) =
        site_with("[log]\naccess = \"./access.log\"\nformat = \"json\"\n[server]\ntrusted_proxies = [\"127.0.0.1/32\"]").await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "max-age=10"));
    for _ in 0..2 {
        site.request(Req::get("/post").field("x-forwarded-for", "203.0.113.9").field("user-agent", "\u{e9}\"")).await.status(200);
    }
    let lines: Vec<serde_json::Value> = lines(site).iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 2);
    for (line, cache) in lines.iter().zip(["MISS", "HIT"]) {
        for (key, value) in [("client", "203.0.113.9"), ("method", "GET"), ("target", "/post"), ("cache", cache), ("host", "blog.example")]
        {
            assert_eq!(line[key], value, "{line}");
        }
        assert_eq!((line["status"].as_u64(), line["body_bytes"].as_u64(), line["complete"].as_bool()), (Some(200), Some(4), Some(true)));
        assert_eq!(line["user_agent"], "\u{e9}\"");
    }
    assert!(lines[0]["origin_time"].is_number() && lines[1]["origin_time"].is_null());
}

/// The client whom a trusted proxy names is in every line, also where its request never got to the cache.
#[tokio::test]
async fn the_client_is_named_whoever_answers_it() {
    let log = "[log]\naccess = \"./access.log\"\nformat = \"json\"\n";
    let (origin, site) = site_with(&format!("{log}[server]\nhealth_path = \"/up\"\ntrusted_proxies = [\"127.0.0.1/32\"]")).await;
    origin.on(get("/post")).reply(ok("text"));
    let asks = [(Req::get("/up"), 200), (Req::new("PURGE", "/post"), 403), (Req::get("/post"), 200)];
    for (request, status) in asks {
        site.request(request.field("x-forwarded-for", "203.0.113.9")).await.status(status);
    }
    let lines: Vec<serde_json::Value> = lines(site).iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let clients: Vec<_> = lines.iter().map(|line| (&line["target"], &line["client"])).collect();
    assert_eq!(clients.len(), 3);
    assert!(lines.iter().all(|line| line["client"] == "203.0.113.9"), "{clients:?}");
}

/// A response that does not reach its end is said to be incomplete.
#[tokio::test]
async fn a_broken_response_is_logged_as_such() {
    let (origin, site) = site_with("[log]\naccess = \"./access.log\"\nformat = \"json\"").await;
    origin.on(get("/post")).reply(ok("0123456789").break_off_after(4));
    site.get("/post").await.status(200).truncated();
    let lines = lines(site);
    let line: serde_json::Value = serde_json::from_str(&lines[0]).expect("JSON");
    assert_eq!((line["complete"].as_bool(), line["body_bytes"].as_u64()), (Some(false), Some(4)), "{line}");
}

/// A rotated log is opened anew on reload.
#[tokio::test]
async fn a_moved_log_is_opened_again() {
    let settings = "[log]\naccess = \"./access.log\"";
    let (origin, mut site) = site_with(settings).await;
    origin.on(get("/*")).reply(ok("text"));
    site.get("/before").await.status(200);
    fs::rename(site.folder().join("access.log"), site.folder().join("access.log.1")).expect("moved");
    site.reload(&format!("source = \"{}\"\n{settings}", origin.url())).expect("reloaded");
    site.get("/after").await.status(200);
    let lines = lines(site);
    assert!(lines.last().is_some_and(|line| line.contains("GET /after")), "{lines:?}");
}
