use proptest::prelude::*;
use semantics::{FieldLines, request::INCIDENTAL_FIELDS};

use super::*;
use crate::{
    h1::head::{Parsed, field_table, parse},
    limits::Limits,
    worker::Shared,
};

const CURL: &str = "GET /a?b=1 HTTP/1.1\r\nHost: blog.example\r\nUser-Agent: curl/8\r\nReferer: https://news.example/\r\n\r\n";

fn front() -> Rc<Front> {
    Front::new(Shared::default())
}

/// Has a head parsed and remembered by its bytes, as a hit of it would that rests on all of it.
fn remember(recall: &mut Recall<u32>, front: &Rc<Front>, text: &str, known: u32) {
    remember_as(recall, front, text, Again::SameHead(known));
}

fn remember_as(recall: &mut Recall<u32>, front: &Rc<Front>, text: &str, known: Again<u32>) {
    let unrecognised = match recall.recognise(front, Scheme::Http, text.as_bytes()) {
        Ok(recognised) => recognised.forgone(),
        Err(unrecognised) => unrecognised,
    };
    let mut table = field_table();
    let Ok(Parsed::Complete(head, fields)) = parse(text.as_bytes(), &mut table, "", &Limits::default()) else { panic!("a head: {text}") };
    let said = Said::of(&head, &fields);
    recall.remember((front, Scheme::Http), (&text.as_bytes()[..head.len], unrecognised), &said, head.keep_alive, known);
}

fn known(recall: &Recall<u32>, front: &Rc<Front>, text: &str) -> Option<u32> {
    recall.recognise(front, Scheme::Http, text.as_bytes()).ok().map(|recognised| *recognised.known())
}

#[test]
fn a_head_is_remembered_when_it_comes_the_second_time() {
    let front = front();
    let mut recall = Recall::new(&front);
    remember(&mut recall, &front, CURL, 1);
    assert_eq!(known(&recall, &front, CURL), None);
    remember(&mut recall, &front, CURL, 2);
    assert_eq!(known(&recall, &front, CURL), Some(2));
    remember(&mut recall, &front, CURL, 3);
    assert_eq!(known(&recall, &front, CURL), Some(3), "what was found out last counts");
}

#[test]
fn what_the_log_wants_is_what_the_head_said() {
    let front = front();
    let mut recall = Recall::new(&front);
    let cases = [
        (CURL, "GET", "/a?b=1", 1, "blog.example", "https://news.example/", "curl/8", true),
        ("HEAD / HTTP/1.0\r\n\r\n", "HEAD", "/", 0, "", "", "", false),
        ("GET http://a.example/x HTTP/1.1\r\nhost: b\r\nConnection: close\r\n\r\n", "GET", "http://a.example/x", 1, "b", "", "", false),
        ("GET / HTTP/1.1\r\nHost: a\r\nUser-Agent:\r\n\r\n", "GET", "/", 1, "a", "", "", true),
    ];
    for (text, method, target, minor_version, host, referer, user_agent, keep_alive) in cases {
        for _ in 0..2 {
            remember(&mut recall, &front, text, 0);
        }
        let Ok(recognised) = recall.recognise(&front, Scheme::Http, text.as_bytes()) else { panic!("it is remembered: {text}") };
        let said = recognised.said();
        assert_eq!((said.method.as_str(), said.target, said.minor_version), (method, target, minor_version));
        assert_eq!((said.host, said.referer, said.user_agent), (host.as_bytes(), referer.as_bytes(), user_agent.as_bytes()));
        assert_eq!(recognised.keep_alive(), keep_alive, "{text}");
    }
}

#[test]
fn only_the_same_bytes_are_the_same_head() {
    let front = front();
    let mut recall = Recall::new(&front);
    for _ in 0..2 {
        remember(&mut recall, &front, CURL, 1);
    }
    assert_eq!(known(&recall, &front, CURL), Some(1));
    for at in 0..CURL.len() {
        let mut other = CURL.as_bytes().to_vec();
        other[at] ^= 1;
        assert!(recall.recognise(&front, Scheme::Http, &other).is_err(), "another byte at {at}");
        assert!(recall.recognise(&front, Scheme::Http, &CURL.as_bytes()[..at]).is_err(), "cut off at {at}");
    }
    for more in [" ", "\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", CURL] {
        assert_eq!(known(&recall, &front, &format!("{CURL}{more}")), None, "with something behind it");
    }
    assert!(recall.recognise(&front, Scheme::Https, CURL.as_bytes()).is_err(), "another scheme");
}

#[test]
fn other_limits_are_not_those_it_passed() {
    let (front, stricter) = (front(), front());
    let mut recall = Recall::new(&front);
    for _ in 0..3 {
        remember(&mut recall, &stricter, CURL, 1);
    }
    assert_eq!(known(&recall, &stricter, CURL), None);
    for _ in 0..2 {
        remember(&mut recall, &front, CURL, 1);
    }
    assert_eq!(known(&recall, &front, CURL), Some(1));
    assert_eq!(known(&recall, &stricter, CURL), None);
}

#[test]
fn its_bytes_are_bounded_and_counted() {
    let front = front();
    let mut recall = Recall::new(&front);
    let long = "x".repeat(700);
    for page in 0..4_000 {
        let text = format!("GET /{page} HTTP/1.1\r\nHost: a\r\nCookie: {long}\r\n\r\n");
        for _ in 0..3 {
            remember(&mut recall, &front, &text, page);
        }
        for _ in 0..9 {
            remember(&mut recall, &front, CURL, 1);
            known(&recall, &front, CURL);
        }
        assert!(recall.bytes <= BYTES_MAX);
    }
    let held = recall.sets.iter().flat_map(|set| set.places.iter().flatten());
    assert_eq!(recall.bytes, held.map(|repeated| repeated.cost()).sum::<usize>());
    assert!(recall.bytes > BYTES_MAX / 2, "{}", recall.bytes);
    assert_eq!(known(&recall, &front, CURL), Some(1), "what comes all the time stays");
    let too_long = format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: {}\r\n\r\n", "x".repeat(HEAD_MAX));
    for _ in 0..3 {
        remember(&mut recall, &front, &too_long, 1);
    }
    assert_eq!(known(&recall, &front, &too_long), None);
}

#[test]
fn heads_that_come_once_take_no_place() {
    let front = front();
    let mut recall = Recall::new(&front);
    for page in 0..10_000 {
        remember(&mut recall, &front, &format!("GET /{page} HTTP/1.1\r\nHost: a\r\n\r\n"), page);
    }
    assert_eq!(recall.bytes, 0);
}

/// What two browsers ask for the same page is one question, and the log still tells them apart.
#[test]
fn heads_that_differ_in_incidental_fields_alone_are_one() {
    let front = front();
    let mut recall = Recall::new(&front);
    let head = |agent: &str, language: &str, more: &str| {
        format!(
            "GET /a HTTP/1.1\r\nHost: blog.example\r\n{more}User-Agent: {agent}\r\nAccept: text/html\r\nAccept-Language: {language}\r\n\r\n"
        )
    };
    for version in 0..2 {
        remember_as(&mut recall, &front, &head(&format!("Browser/{version}"), "de", ""), Again::SameEssentials(7));
    }
    for more in ["", "Referer: https://news.example/\r\n", "sec-ch-ua: \"A\";v=\"1\"\r\nSec-Fetch-Site: none\r\nDNT: 1\r\n"] {
        let text = head("Other/9", "fr;q=0.9", more);
        let Ok(recognised) = recall.recognise(&front, Scheme::Http, text.as_bytes()) else { panic!("it is the same question: {text}") };
        assert_eq!((*recognised.known(), recognised.head_len()), (7, text.len()));
        let said = recognised.said();
        assert_eq!((said.target, said.host, said.user_agent), ("/a", &b"blog.example"[..], &b"Other/9"[..]));
        assert_eq!(said.referer, if more.contains("Referer") { &b"https://news.example/"[..] } else { b"" });
        // Another one behind it is not looked at yet.
        let two = format!("{text}{text}");
        assert_eq!(recall.recognise(&front, Scheme::Http, two.as_bytes()).ok().map(|recognised| recognised.head_len()), Some(text.len()));
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
        assert_eq!(known(&recall, &front, &head("Other/9", "fr", more)), None, "{more:?}");
    }
    let upper = head("Other/9", "fr", "").replace("/a", "/A");
    assert_eq!((known(&recall, &front, &upper), known(&recall, &front, &format!("\r\n{}", head("a", "b", "")))), (None, None));
    // Without them it is a head of its own: whoever sends none of them may be answered otherwise.
    assert_eq!(known(&recall, &front, "GET /a HTTP/1.1\r\nHost: blog.example\r\nAccept: text/html\r\n\r\n"), None);
}

#[test]
fn an_answer_that_rests_on_all_is_for_the_same_bytes() {
    let front = front();
    let mut recall = Recall::new(&front);
    for _ in 0..2 {
        remember(&mut recall, &front, CURL, 1);
    }
    assert_eq!(known(&recall, &front, CURL), Some(1));
    assert_eq!(known(&recall, &front, &CURL.replace("curl/8", "curl/9")), None);
}

/// As many lines as the limits allow, and no more, wherever they stand.
#[test]
fn lines_that_are_left_out_count() {
    let limits = Limits { header_fields: 5, ..Limits::default() };
    let front = Front::new(Shared { limits, ..Shared::default() });
    let mut out = Vec::new();
    let head = |fields: usize| format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "DNT: 1\r\n".repeat(fields - 1));
    assert!(essentials(head(5).as_bytes(), &front.limits, &mut out).is_some());
    assert!(essentials(head(6).as_bytes(), &front.limits, &mut out).is_none());
}

/// A list of the fields stands where decisions are made, the spellings here.
#[test]
fn every_incidental_field_is_known_here() {
    for name in INCIDENTAL_FIELDS {
        let (head, mut out) = (format!("GET / HTTP/1.1\r\nHost: a\r\n{name}: x\r\n\r\n"), Vec::new());
        assert!(essentials(head.as_bytes(), &Limits::default(), &mut out).is_some(), "{name}");
        assert_eq!(out, b"GET / HTTP/1.1\r\nHost: a\r\n", "{name}");
    }
}

proptest! {
    /// What is left out, the parser would have let through, and read as it is read here; and it reads the rest as if it were all.
    #[test]
    fn nothing_is_left_out_that_the_parser_refuses(
        lines in prop::collection::vec(
            prop_oneof![
                4 => (prop::sample::select(&INCIDENTAL_FIELDS[..]), "[ -~]{0,12}").prop_map(|(name, value)| format!("{name}:{value}\r\n")),
                3 => (prop::sample::select(vec!["Host", "Accept", "cookie", "Content-Length", "Transfer-Encoding", "X-A"]), "[ -~]{0,8}")
                    .prop_map(|(name, value)| format!("{name}: {value}\r\n")),
                1 => "[A-Za-z: \t\r\n\\x00-]{0,10}".prop_map(|text| text + "\r\n"),
                1 => ("[Uu]ser-[Aa]gent", "[ :]{1,2}", "[\\x00-\\xff]{0,6}").prop_map(|(name, colon, value)| format!("{name}{colon}{value}\r\n")),
            ],
            0..8,
        ),
        behind in "[A-Z /\r\n]{0,4}",
    ) {
        let limits = Limits::default();
        let text = format!("GET /a HTTP/1.1\r\nHost: a\r\n{}\r\n{behind}", lines.concat());
        let mut out = Vec::new();
        if let Some(incidentals) = essentials(text.as_bytes(), &limits, &mut out) {
            out.extend_from_slice(b"\r\n");
            let (mut table, mut rest_table) = (field_table(), field_table());
            let whole = parse(text.as_bytes(), &mut table, "", &limits);
            match parse(&out, &mut rest_table, "", &limits) {
                Ok(Parsed::Complete(rest, rest_fields)) => {
                    let Ok(Parsed::Complete(head, fields)) = whole else { panic!("refused: {text:?}: {whole:?}") };
                    prop_assert_eq!(head.len, incidentals.head_len);
                    prop_assert_eq!(rest.len, out.len());
                    prop_assert_eq!((head.method, head.target, head.authority, head.minor_version), (rest.method, rest.target, rest.authority, rest.minor_version));
                    prop_assert_eq!((head.framing, head.keep_alive, head.negotiates), (rest.framing, rest.keep_alive, rest.negotiates));
                    let value = |slot: Slot<'_>| slot.one().unwrap_or_default().to_vec();
                    prop_assert_eq!(value(fields.user_agent), incidentals.user_agent);
                    prop_assert_eq!(value(fields.referer), incidentals.referer);
                    let names = |fields: &RequestFields<'_>| match fields.lines {
                        FieldLines::Raw(lines) => lines.iter().map(|line| (line.name.to_owned(), line.value.to_vec())).collect::<Vec<_>>(),
                        FieldLines::Map(_) => Vec::new(),
                    };
                    let mut kept = names(&fields);
                    kept.retain(|(name, _)| !INCIDENTAL_FIELDS.contains(&&*name.to_ascii_lowercase()) );
                    let mut rest = names(&rest_fields);
                    rest.retain(|(name, _)| !INCIDENTAL_FIELDS.contains(&&*name.to_ascii_lowercase()) );
                    prop_assert_eq!(kept, rest);
                }
                Ok(Parsed::Partial) => prop_assert!(false, "half a head: {text:?}"),
                Err(_) => prop_assert!(whole.is_err(), "let through with the lines: {text:?}"),
            }
        }
    }
}
