use wire::{
    HeadLimits,
    head::{Parsed, field_table, parse},
};

use super::*;
use crate::worker::Config;

const CURL: &str = "GET /a?b=1 HTTP/1.1\r\nHost: blog.example\r\nUser-Agent: curl/8\r\nReferer: https://news.example/\r\n\r\n";

fn terms() -> Rc<Terms> {
    Terms::new(Config::default())
}

/// Has a head parsed and remembered by its bytes, as a hit of it would that rests on all of it.
fn remember(recall: &mut Recall<u32>, terms: &Rc<Terms>, text: &str, known: u32) {
    remember_as(recall, terms, text, Again::SameHead(known));
}

fn remember_as(recall: &mut Recall<u32>, terms: &Rc<Terms>, text: &str, known: Again<u32>) {
    let unrecognised = match recall.recognise(terms, Scheme::Http, text.as_bytes()) {
        Ok(recognised) => recognised.as_miss(),
        Err(unrecognised) => unrecognised,
    };
    let mut table = field_table();
    let Ok(Parsed::Complete(head, fields)) = parse(text.as_bytes(), &mut table, "", &HeadLimits::default()) else {
        panic!("a head: {text}")
    };
    let line = LogLine::of(&head, &fields);
    let text = HeadText { bytes: &text.as_bytes()[..head.len], unrecognised };
    recall.remember(terms, Scheme::Http, text, &line, head.keep_alive, known);
}

fn known(recall: &Recall<u32>, terms: &Rc<Terms>, text: &str) -> Option<u32> {
    recall.recognise(terms, Scheme::Http, text.as_bytes()).ok().map(|recognised| *recognised.known())
}

#[test]
fn a_head_is_remembered_when_it_comes_the_second_time() {
    let terms = terms();
    let mut recall = Recall::new(&terms);
    remember(&mut recall, &terms, CURL, 1);
    assert_eq!(known(&recall, &terms, CURL), None);
    remember(&mut recall, &terms, CURL, 2);
    assert_eq!(known(&recall, &terms, CURL), Some(2));
    remember(&mut recall, &terms, CURL, 3);
    assert_eq!(known(&recall, &terms, CURL), Some(3), "what was found out last counts");
}

#[test]
fn what_the_log_wants_is_what_the_head_said() {
    let terms = terms();
    let mut recall = Recall::new(&terms);
    let cases = [
        (CURL, "GET", "/a?b=1", 1, "blog.example", "https://news.example/", "curl/8", true),
        ("HEAD / HTTP/1.0\r\n\r\n", "HEAD", "/", 0, "", "", "", false),
        ("GET http://a.example/x HTTP/1.1\r\nhost: b\r\nConnection: close\r\n\r\n", "GET", "/x", 1, "a.example", "", "", false),
        ("GET / HTTP/1.1\r\nHost: a\r\nUser-Agent:\r\n\r\n", "GET", "/", 1, "a", "", "", true),
    ];
    for (text, method, target, minor_version, host, referer, user_agent, keep_alive) in cases {
        for _ in 0..2 {
            remember(&mut recall, &terms, text, 0);
        }
        let Ok(recognised) = recall.recognise(&terms, Scheme::Http, text.as_bytes()) else { panic!("it is remembered: {text}") };
        let line = recognised.log_line();
        assert_eq!((line.method.as_str(), &*line.target, line.version), (method, target, http1_version(minor_version)));
        assert_eq!((line.host, line.referer, line.user_agent), (host.as_bytes(), referer.as_bytes(), user_agent.as_bytes()));
        assert_eq!(recognised.keep_alive(), keep_alive, "{text}");
    }
}

#[test]
fn only_the_same_bytes_are_the_same_head() {
    let terms = terms();
    let mut recall = Recall::new(&terms);
    for _ in 0..2 {
        remember(&mut recall, &terms, CURL, 1);
    }
    assert_eq!(known(&recall, &terms, CURL), Some(1));
    for at in 0..CURL.len() {
        let mut other = CURL.as_bytes().to_vec();
        other[at] ^= 1;
        assert!(recall.recognise(&terms, Scheme::Http, &other).is_err(), "another byte at {at}");
        assert!(recall.recognise(&terms, Scheme::Http, &CURL.as_bytes()[..at]).is_err(), "cut off at {at}");
    }
    for more in [" ", "\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", CURL] {
        assert_eq!(known(&recall, &terms, &format!("{CURL}{more}")), None, "with something behind it");
    }
    assert!(recall.recognise(&terms, Scheme::Https, CURL.as_bytes()).is_err(), "another scheme");
}

#[test]
fn other_limits_are_not_those_it_passed() {
    let (terms, stricter) = (terms(), terms());
    let mut recall = Recall::new(&terms);
    for _ in 0..3 {
        remember(&mut recall, &stricter, CURL, 1);
    }
    assert_eq!(known(&recall, &stricter, CURL), None);
    for _ in 0..2 {
        remember(&mut recall, &terms, CURL, 1);
    }
    assert_eq!(known(&recall, &terms, CURL), Some(1));
    assert_eq!(known(&recall, &stricter, CURL), None);
}

#[test]
fn its_bytes_are_bounded_and_counted() {
    let terms = terms();
    let mut recall = Recall::new(&terms);
    let long = "x".repeat(700);
    for page in 0..4_000 {
        let text = format!("GET /{page} HTTP/1.1\r\nHost: a\r\nCookie: {long}\r\n\r\n");
        for _ in 0..3 {
            remember(&mut recall, &terms, &text, page);
        }
        for _ in 0..9 {
            remember(&mut recall, &terms, CURL, 1);
            known(&recall, &terms, CURL);
        }
        assert!(recall.bytes <= BYTES_MAX);
    }
    let held = recall.sets.iter().flat_map(|set| set.places.iter().flatten());
    assert_eq!(recall.bytes, held.map(|repeated| repeated.cost()).sum::<usize>());
    assert!(recall.bytes > BYTES_MAX / 2, "{}", recall.bytes);
    assert_eq!(known(&recall, &terms, CURL), Some(1), "what comes all the time stays");
    let too_long = format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: {}\r\n\r\n", "x".repeat(HEAD_MAX));
    for _ in 0..3 {
        remember(&mut recall, &terms, &too_long, 1);
    }
    assert_eq!(known(&recall, &terms, &too_long), None);
}

#[test]
fn heads_that_come_once_take_no_place() {
    let terms = terms();
    let mut recall = Recall::new(&terms);
    for page in 0..10_000 {
        remember(&mut recall, &terms, &format!("GET /{page} HTTP/1.1\r\nHost: a\r\n\r\n"), page);
    }
    assert_eq!(recall.bytes, 0);
}

/// What two browsers ask for the same page is one question, and the log still tells them apart.
#[test]
fn heads_that_differ_in_incidental_fields_alone_are_one() {
    let terms = terms();
    let mut recall = Recall::new(&terms);
    let head = |agent: &str, language: &str, more: &str| {
        format!(
            "GET /a HTTP/1.1\r\nHost: blog.example\r\n{more}User-Agent: {agent}\r\nAccept: text/html\r\nAccept-Language: {language}\r\n\r\n"
        )
    };
    for version in 0..2 {
        remember_as(&mut recall, &terms, &head(&format!("Browser/{version}"), "de", ""), Again::SameEssentials(7));
    }
    for more in ["", "Referer: https://news.example/\r\n", "sec-ch-ua: \"A\";v=\"1\"\r\nSec-Fetch-Site: none\r\nDNT: 1\r\n"] {
        let text = head("Other/9", "fr;q=0.9", more);
        let Ok(recognised) = recall.recognise(&terms, Scheme::Http, text.as_bytes()) else { panic!("it is the same question: {text}") };
        assert_eq!((*recognised.known(), recognised.head_len()), (7, text.len()));
        let line = recognised.log_line();
        assert_eq!((&*line.target, line.host, line.user_agent), ("/a", &b"blog.example"[..], &b"Other/9"[..]));
        assert_eq!(line.referer, if more.contains("Referer") { &b"https://news.example/"[..] } else { b"" });
        // Another one behind it is not looked at yet.
        let two = format!("{text}{text}");
        assert_eq!(recall.recognise(&terms, Scheme::Http, two.as_bytes()).ok().map(|recognised| recognised.head_len()), Some(text.len()));
    }
    for more in [
        "Cookie: a=1\r\n",
        "Range: bytes=0-1\r\n",
        "Authorization: Basic eA==\r\n",
        "Content-Length: 1\r\n",
        "X-Any: 1\r\n",
        "Referer : https://news.example/\r\n",
        "Referer: a\tb\r\n",
        "Referer: a\0b\r\n",
        "Referer: a\x7fb\r\n",
        "Referer: a\rb\r\n",
        "Referer: a\n",
        "Referer: a\r\n b\r\n",
        "Referer: a\r\nReferer: b\r\n",
        "REFERER: a\r\n",
        "Refere: a\r\n",
        "Refererr: a\r\n",
    ] {
        assert_eq!(known(&recall, &terms, &head("Other/9", "fr", more)), None, "{more:?}");
    }
    let upper = head("Other/9", "fr", "").replace("/a", "/A");
    assert_eq!((known(&recall, &terms, &upper), known(&recall, &terms, &format!("\r\n{}", head("a", "b", "")))), (None, None));
    // Without them it is a head of its own: whoever sends none of them may be answered otherwise.
    assert_eq!(known(&recall, &terms, "GET /a HTTP/1.1\r\nHost: blog.example\r\nAccept: text/html\r\n\r\n"), None);
}

#[test]
fn an_answer_that_rests_on_all_is_for_the_same_bytes() {
    let terms = terms();
    let mut recall = Recall::new(&terms);
    for _ in 0..2 {
        remember(&mut recall, &terms, CURL, 1);
    }
    assert_eq!(known(&recall, &terms, CURL), Some(1));
    assert_eq!(known(&recall, &terms, &CURL.replace("curl/8", "curl/9")), None);
}

/// Half a head is not a head, even if it consists of the very lines by which a whole one is remembered: the rest of it is still to come, and may say
/// anything.
#[test]
fn essentials_that_come_alone_are_half_a_head() {
    let terms = terms();
    let mut recall = Recall::new(&terms);
    let begin = "GET /a HTTP/1.1\r\nHost: blog.example\r\n";
    for version in 0..3 {
        remember_as(&mut recall, &terms, &format!("{begin}User-Agent: {version}\r\n\r\n"), Again::SameEssentials(7));
    }
    assert_eq!(known(&recall, &terms, &format!("{begin}User-Agent: 9\r\n\r\n")), Some(7));
    assert_eq!(known(&recall, &terms, begin), None);
    for rest in ["User-Agent: 9\r\n", "POST / HTTP/1.1\r\n", "\r"] {
        assert_eq!(known(&recall, &terms, &format!("{begin}{rest}")), None, "{rest:?}");
    }
}
