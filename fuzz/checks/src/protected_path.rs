//! Paths behind a password, as servers of other habits read them.

use access::{Credentials, Protected};
use semantics::target::normal_path;

/// Whatever a server does with a path before it looks it up (decoding it again, folding case, taking several slashes for one, reading
/// backslashes, cutting parameters off), where it ends up below a protected path, the path was protected. And credentials never panic.
pub fn protected_path(data: &[u8]) {
    let _ = Credentials::basic(data);
    let Ok(text) = std::str::from_utf8(data) else { return };
    let protected = Protected::new(["/secret", "/x/secret"]).expect("a path");
    let Ok(path) = normal_path(text) else { return };
    let covered = protected.covers(&path);
    for habits in 0..1 << 6_u8 {
        let has = |habit: u8| habits >> habit & 1 == 1;
        let mut read = path.clone().into_owned();
        for _ in 0..habits & 3 {
            read = decoded(&read);
        }
        if has(2) {
            read = read.replace('\\', "/");
        }
        if has(3) {
            read = read.to_lowercase();
        }
        let read = looked_up(&read, has(4), has(5));
        let rest = read.strip_prefix("/secret").or_else(|| read.strip_prefix("/x/secret"));
        let below = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        assert!(covered || !below, "{text:?} is {read:?} to a server with habits {habits:06b}");
    }
}

/// Octets that are not ASCII stay encoded: then the text stays text.
fn decoded(path: &str) -> String {
    let mut out = String::new();
    let mut rest = path;
    while let Some(at) = rest.find('%') {
        out += &rest[..at];
        let octet = rest.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match octet.filter(|octet| octet.is_ascii() && !rest[at + 1..].starts_with('+')) {
            Some(octet) => {
                out.push(char::from(octet));
                rest = &rest[at + 3..];
            }
            None => {
                out.push('%');
                rest = &rest[at + 1..];
            }
        }
    }
    out + rest
}

/// The path without dot segments (RFC 3986 §5.2.4), and, to some, without parameters or empty segments.
fn looked_up(path: &str, cuts_parameters: bool, merges_slashes: bool) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/').skip(1) {
        let segment = if cuts_parameters { segment.split(';').next().unwrap_or_default() } else { segment };
        match segment {
            "." => {}
            ".." => drop(segments.pop()),
            "" if merges_slashes => {}
            segment => segments.push(segment),
        }
    }
    format!("/{}", segments.join("/"))
}
