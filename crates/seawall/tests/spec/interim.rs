//! Interim responses (RFC 9110 §15.2) are relayed to the client that waits, and are neither stored nor shared (RFC 9111 §3).

use testkit::{Gate, Req, get, ok, post};

use crate::site::site;

const HINTS: &[(&str, &str)] = &[("link", "</style.css>; rel=preload; as=style"), ("x-hint", "1")];

/// The hints are of use before the page is there, whatever becomes of the page.
#[tokio::test]
async fn interim_responses_arrive_before_the_final_one() {
    for control in ["max-age=60", "no-store"] {
        let (origin, site) = site().await;
        let gate = Gate::new();
        origin.on(get("/post")).reply(ok("text").field("cache-control", control).interim(102, &[]).interim(103, HINTS).gate(&gate));
        let mut client = site.client().await;
        client.send(Req::get("/post")).await;
        let early =
            "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </style.css>; rel=preload; as=style\r\nx-hint: 1\r\n\r\n";
        assert_eq!(client.read_raw(early.len()).await, early, "{control}");
        gate.open();
        client.read_answer().await.status(200).body("text").no_field("x-hint").no_field("link");
    }
}

/// What they say stays with them: a hit has the fields of the final response alone, and no hints.
#[tokio::test]
async fn only_the_final_response_is_stored() {
    let (origin, site) = site().await;
    origin.on(get("/post")).once().reply(ok("text").field("cache-control", "max-age=60").interim(103, HINTS));
    let first = site.get("/post").await.status(200).no_field("x-hint");
    assert_eq!(first.interim.iter().map(|interim| interim.code).collect::<Vec<_>>(), [103]);
    let second = site.get("/post").await.body("text").cache_status("hit").no_field("x-hint");
    assert!(second.interim.is_empty());
}

/// RFC 9110 §7.6.1, §8.6: what concerns the origin's connection stops here, and an interim response has no length.
#[tokio::test]
async fn hop_by_hop_fields_of_interim_responses_stop_here() {
    let (origin, site) = site().await;
    let fields = [("connection", "x-hop"), ("x-hop", "1"), ("keep-alive", "timeout=5"), ("content-length", "7"), ("link", "</a>")];
    origin.on(get("/post")).reply(ok("text").field("cache-control", "no-store").interim(103, &fields));
    let answer = site.get("/post").await.status(200).body("text");
    let [interim] = &answer.interim[..] else { panic!("{:?}", answer.interim) };
    for name in ["connection", "x-hop", "keep-alive", "content-length"] {
        assert_eq!(interim.fields.combined(name), None, "{name}");
    }
    assert_eq!(interim.fields.combined("link").as_deref(), Some("</a>"));
}

/// RFC 9110 §15.2: a client of HTTP/1.0 is sent none; it would take one for the answer.
#[tokio::test]
async fn a_client_of_http_1_0_gets_none() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("text").field("cache-control", "no-store").interim(103, HINTS));
    let answer = site.request(Req::get("/post").version("HTTP/1.0")).await.status(200).body("text");
    assert!(answer.interim.is_empty());
}

/// RFC 9110 §10.1.1: a 100 is an answer to whoever is asked for content. It concerns us, not our client.
#[tokio::test]
async fn a_100_is_not_relayed() {
    let (origin, site) = site().await;
    origin.on(get("/post")).reply(ok("text").interim(100, &[]));
    assert!(site.get("/post").await.status(200).interim.is_empty());
    origin.on(post("/post")).reply(ok("taken").interim(100, &[]));
    assert!(site.request(Req::post("/post").body("abc")).await.status(200).body("taken").interim.is_empty());
}

/// An origin cannot fill a client's memory, or ours, with hints.
#[tokio::test]
async fn their_number_is_bounded() {
    let (origin, site) = site().await;
    let reply = (0..40).fold(ok("text").field("cache-control", "no-store"), |reply, _| reply.interim(103, HINTS));
    origin.on(get("/post")).reply(reply);
    assert_eq!(site.get("/post").await.status(200).body("text").interim.len(), 16);
}
