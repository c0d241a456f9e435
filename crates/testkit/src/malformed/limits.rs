//! Well-formed requests that ask too much: longer than a server should take, or something it does not do.
//!
//! Limits are the server's own (RFC 9112 §3: at least 8,000 bytes of request line), so refusing is wise and never required. Far beyond any
//! sensible limit a server may stop reading and close, which can take its answer back.

use super::{HOST, Malformed, PATH, get_with, request_line, row};

pub(super) fn rows() -> Vec<Malformed> {
    let long = |name, rule, bytes: String| row(name, rule, bytes).wise().may_stay_open();
    let path = |n| format!("GET /{} HTTP/1.1", "a".repeat(n));
    let fields = |n, value: &str| (0..n).map(|n| format!("X-{n}: {value}")).collect::<Vec<_>>().join("\r\n");
    let post = |fields: &str| format!("POST {PATH} HTTP/1.1\r\nHost: {HOST}\r\n{fields}\r\n\r\n");
    vec![
        long("a target of twenty thousand bytes", "RFC 9112 §3", request_line(&path(20_000))).status(&[414]),
        long("a target of seventy thousand bytes", "RFC 9112 §3", request_line(&path(70_000))).status(&[414, 431]),
        long("a target of two megabytes", "RFC 9112 §3", request_line(&path(2 << 20))).status(&[414, 431]).or_closed(),
        long("a query of twenty thousand bytes", "RFC 9112 §3", request_line(&format!("GET {PATH}?{} HTTP/1.1", "q".repeat(20_000))))
            .status(&[414]),
        long("a field line of a hundred thousand bytes", "RFC 6585 §5", get_with(&fields(1, &"a".repeat(100_000)))).status(&[431]),
        long("a field name of a hundred thousand bytes", "RFC 6585 §5", get_with(&format!("{}: b", "a".repeat(100_000))))
            .status(&[400, 431]),
        long("a thousand short field lines", "RFC 6585 §5", get_with(&fields(1_000, "b"))).status(&[431]),
        long("a thousand cookies", "RFC 6585 §5", get_with(&vec!["Cookie: a=b"; 1_000].join("\r\n"))).status(&[431]),
        long("a head of two megabytes in long lines", "RFC 6585 §5", get_with(&fields(64, &"a".repeat(32 << 10))))
            .status(&[431])
            .or_closed(),
        long(
            "a head of two megabytes that never ends",
            "RFC 6585 §5",
            format!("GET {PATH} HTTP/1.1\r\n{}", fields(64, &"a".repeat(32 << 10))),
        )
        .status(&[400, 431])
        .or_closed()
        .half_close(),
        long("a content length of a petabyte", "RFC 9110 §15.5.14", post("Content-Length: 1000000000000000")).status(&[413]),
        long(
            "a content length of a petabyte, asking first",
            "RFC 9110 §10.1.1",
            post("Expect: 100-continue\r\nContent-Length: 1000000000000000"),
        )
        .status(&[413]),
        long("a chunk of a petabyte", "RFC 9112 §7.1", post("Transfer-Encoding: chunked") + "38d7ea4c68000\r\n")
            .status(&[400, 408, 413])
            .or_closed()
            .half_close(),
        long("an expectation that nobody knows", "RFC 9110 §10.1.1", get_with("Expect: 200-ok")).status(&[417]),
    ]
}
