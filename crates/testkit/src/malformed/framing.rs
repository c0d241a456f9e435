//! Requests whose content two recipients could end at different places: `Content-Length` and `Transfer-Encoding` (RFC 9112 §6).

use super::{Malformed, row, smuggling};

/// Content that is complete as chunks and that, by a length of `{all}`, includes the next request.
const NO_CHUNKS: &str = "0\r\n\r\n";

pub(super) fn rows() -> Vec<Malformed> {
    let mut rows = both();
    rows.extend(transfer_encoding());
    rows.extend(content_length());
    rows
}

/// Returns the rows with both fields. RFC 9112 §6.1 lets a server follow Transfer-Encoding alone if it closes afterwards; a proxy cannot
/// know what its client meant.
fn both() -> Vec<Malformed> {
    let both = |name, fields| row(name, "RFC 9112 §6.1, §6.3", smuggling(fields, NO_CHUNKS));
    vec![
        both("Content-Length, then Transfer-Encoding", "Content-Length: {all}\r\nTransfer-Encoding: chunked").wise(),
        both("Transfer-Encoding, then Content-Length", "Transfer-Encoding: chunked\r\nContent-Length: {all}").wise(),
        both("both, with the length of the chunks", "Content-Length: {content}\r\nTransfer-Encoding: chunked").wise(),
        both("both, with a length of zero", "Content-Length: 0\r\nTransfer-Encoding: chunked").wise(),
        both("both, with other fields in between", "Content-Length: {all}\r\nAccept: */*\r\nTransfer-Encoding: chunked").wise(),
        both("both, in another case", "content-length: {all}\r\ntRANSFER-eNCODING: CHUNKED").wise(),
        both("both, the length malformed", "Content-Length: +{all}\r\nTransfer-Encoding: chunked").wise(),
        both("both, and the final coding is not chunked", "Content-Length: {all}\r\nTransfer-Encoding: xchunked").status(&[400, 501]),
        both("both, with a space before the colon", "Content-Length: {all}\r\nTransfer-Encoding : chunked"),
        both("both, with a tab before the colon", "Content-Length: {all}\r\nTransfer-Encoding\t: chunked"),
        both("both, with a vertical tab before the coding", "Content-Length: {all}\r\nTransfer-Encoding:\x0bchunked").status(&[400, 501]),
        both("both, with a form feed after the coding", "Content-Length: {all}\r\nTransfer-Encoding: chunked\x0c").status(&[400, 501]),
        both("both, with a NUL after the coding", "Content-Length: {all}\r\nTransfer-Encoding: chunked\0").status(&[400, 501]).wise(),
        both("both, with a no-break space before the coding", "Content-Length: {all}\r\nTransfer-Encoding: \u{a0}chunked")
            .status(&[400, 501]),
        both("both, with the coding on a continued line", "Content-Length: {all}\r\nTransfer-Encoding:\r\n chunked").wise(),
        both("Transfer-Encoding behind a bare CR", "Content-Length: {all}\r\nX-A: b\rTransfer-Encoding: chunked").wise(),
        both("Transfer-Encoding behind a bare LF", "Content-Length: {all}\r\nX-A: b\nTransfer-Encoding: chunked").wise(),
        both(
            "Transfer-Encoding with a leading space, as if it continued a line",
            "Content-Length: {all}\r\nX-A: b\r\n Transfer-Encoding: chunked",
        )
        .wise(),
        both("Transfer-Encoding with a NUL in its name", "Content-Length: {all}\r\nTransfer\0-Encoding: chunked"),
        both(
            "Transfer-Encoding that Connection claims for itself, and Content-Length",
            "Connection: Transfer-Encoding\r\nContent-Length: {all}\r\nTransfer-Encoding: chunked",
        )
        .wise(),
    ]
}

/// Returns the rows with a coding that is not understood, or not chunked at the end, so that the end of a request's content is unknown.
fn transfer_encoding() -> Vec<Malformed> {
    let coded = |name, fields| row(name, "RFC 9112 §6.1, §6.3", smuggling(fields, NO_CHUNKS)).status(&[400, 501]);
    vec![
        coded("an unknown transfer coding", "Transfer-Encoding: xchunked"),
        coded("a transfer coding cut short", "Transfer-Encoding: chunke"),
        coded("the identity coding, which is no more", "Transfer-Encoding: identity"),
        coded("chunked, then identity", "Transfer-Encoding: chunked, identity"),
        coded("chunked, then identity, on two lines", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity"),
        coded("identity, then chunked", "Transfer-Encoding: identity, chunked").wise(),
        coded("chunked, then gzip", "Transfer-Encoding: chunked, gzip"),
        coded("gzip alone", "Transfer-Encoding: gzip"),
        coded("chunked twice in a list", "Transfer-Encoding: chunked, chunked").wise(),
        coded("chunked twice on two lines", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked").wise(),
        coded("chunked with a parameter", "Transfer-Encoding: chunked;q=1").wise(),
        coded("chunked in quotes", "Transfer-Encoding: \"chunked\""),
        coded("chunked in single quotes", "Transfer-Encoding: 'chunked'"),
        coded("two codings without a comma", "Transfer-Encoding: gzip chunked"),
        coded("chunked behind a colon of its own", "Transfer-Encoding: :chunked"),
        coded("an empty Transfer-Encoding", "Transfer-Encoding:").wise(),
        row(
            "Transfer-Encoding in an HTTP/1.0 request",
            "RFC 9112 §6.1",
            smuggling("Transfer-Encoding: chunked", NO_CHUNKS).replacen("HTTP/1.1", "HTTP/1.0", 1),
        )
        .wise(),
        row(
            "Transfer-Encoding and Content-Length in an HTTP/1.0 request that keeps the connection",
            "RFC 9112 §6.1",
            smuggling("Connection: keep-alive\r\nContent-Length: {all}\r\nTransfer-Encoding: chunked", NO_CHUNKS)
                .replacen("HTTP/1.1", "HTTP/1.0", 1),
        )
        .wise(),
    ]
}

/// Returns the rows with a wrong length. RFC 9110 §8.6 allows decimal digits and one value. The same value again may count as one (RFC 9112
/// §6.3).
fn content_length() -> Vec<Malformed> {
    let length = |name, fields| row(name, "RFC 9110 §8.6, RFC 9112 §6.3", smuggling(fields, "hello"));
    vec![
        length("two lengths that differ", "Content-Length: 5\r\nContent-Length: {all}"),
        length("two lengths that differ, the long one first", "Content-Length: {all}\r\nContent-Length: 5"),
        length("the same length twice", "Content-Length: {all}\r\nContent-Length: {all}").wise(),
        length("a list of the same length", "Content-Length: {all}, {all}").wise(),
        length("a list of two lengths", "Content-Length: 5, {all}"),
        length("a list of a length and nothing", "Content-Length: {all},").wise(),
        length("a negative length", "Content-Length: -1"),
        length("a negative zero", "Content-Length: -0"),
        length("a length with a plus sign", "Content-Length: +5"),
        length("a hexadecimal length", "Content-Length: 0x5"),
        length("a length in hexadecimal digits", "Content-Length: 5a"),
        length("a length with a space within", "Content-Length: 5 5"),
        length("a length with a decimal point", "Content-Length: 5.0"),
        length("a length with an exponent", "Content-Length: 5e0"),
        length("a length with a separator for thousands", "Content-Length: 1_0"),
        length("a length with a semicolon", "Content-Length: 5;"),
        length("a length in quotes", "Content-Length: \"5\""),
        length("a length in full-width digits", "Content-Length: \u{ff15}"),
        length("an empty length", "Content-Length:"),
        length("a length that is a word", "Content-Length: five"),
        length("a length of 2^64", "Content-Length: 18446744073709551616").status(&[400, 413]),
        length("a length of 2^64 + 5, which is 5 once it wraps", "Content-Length: 18446744073709551621").status(&[400, 413]),
        length("a length of thirty digits", "Content-Length: 999999999999999999999999999999").status(&[400, 413]),
        length("a length with a space before the colon", "Content-Length : 5"),
        length("a length with a vertical tab before it", "Content-Length: \x0b5"),
        row("a length and an empty length", "RFC 9110 §8.6", smuggling("Content-Length: {all}\r\nContent-Length:", "hello")).wise(),
        row("content shorter than its length, then a close", "RFC 9112 §8", smuggling("Content-Length: 100000", "hello"))
            .status(&[400, 408])
            .or_closed()
            .half_close(),
    ]
}
