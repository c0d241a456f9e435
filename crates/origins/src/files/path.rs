//! Turns a request's path into the names below the root: nothing but plain names gets through.

use std::path::PathBuf;

use semantics::percent;

use super::root::is_hidden;

/// The path of a request, split into its parts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The path below the root; empty for `/`.
    pub(crate) below: PathBuf,
    /// Whether the path ended with `/`.
    pub(crate) slash: bool,
}

/// Splits the path of a URI. Returns `None` for names that no file of a site may have:
///
/// - `.`, `..`, and every other name that begins with a dot: dotfiles are private (`.git`, `.env`). `.well-known` alone is public
///   (RFC 8615).
/// - Empty segments: `//host` sent back in a `Location` would be another host.
/// - NUL, control characters, `\`, an encoded `/`, broken or non-UTF-8 percent-encoding: names that other software reads otherwise.
pub(crate) fn target(path: &str) -> Option<Target> {
    let inner = path.strip_prefix('/')?;
    let mut below = PathBuf::new();
    if inner.is_empty() {
        return Some(Target { below, slash: true });
    }
    let (inner, slash) = inner.strip_suffix('/').map_or((inner, false), |inner| (inner, true));
    for segment in inner.split('/') {
        let name = decode(segment)?;
        if name.is_empty() || is_hidden(name.as_ref()) || name.contains(['/', '\\']) || name.chars().any(char::is_control) {
            return None;
        }
        below.push(name);
    }
    Some(Target { below, slash })
}

/// Percent-decodes a segment once (RFC 3986 §2.1).
pub(super) fn decode(segment: &str) -> Option<String> {
    String::from_utf8(percent::decoded_strictly(segment.as_bytes())?).ok()
}

/// Percent-encodes a name for use in a path (RFC 3986 §3.3: what `pchar` allows stays).
pub(super) fn encode_segment(name: &[u8], out: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in name {
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_get_through() {
        for (path, below, slash) in [
            ("/", "", true),
            ("/a", "a", false),
            ("/a/", "a", true),
            ("/a/b.html", "a/b.html", false),
            ("/a%20b/%C3%A9.txt", "a b/é.txt", false),
            ("/100%25", "100%", false),
            ("/a..b/c.", "a..b/c.", false),
            ("/.well-known/security.txt", ".well-known/security.txt", false),
            ("/%252e%252e/a", "%2e%2e/a", false),
        ] {
            assert_eq!(target(path), Some(Target { below: below.into(), slash }), "{path}");
        }
    }

    #[test]
    fn nothing_else_does() {
        for path in [
            "",
            "a",
            "*",
            "//",
            "//evil.example",
            "/a//b",
            "/a//",
            "/..",
            "/../etc/passwd",
            "/a/../../b",
            "/.",
            "/./a",
            "/%2e%2e/a",
            "/.%2E/a",
            "/%2E",
            "/a%2fb",
            "/a%2Fb",
            "/..%2f..%2fetc",
            "/a%5cb",
            "/a\\b",
            "/\\evil.example",
            "/a%00.html",
            "/a%0d%0ab",
            "/a%7f",
            "/.env",
            "/.git/config",
            "/a/.htaccess",
            "/%2egit/config",
            "/%",
            "/%2",
            "/%zz",
            "/%+1",
            "/%ff",
            "/%c0%ae%c0%ae/a",
        ] {
            assert_eq!(target(path), None, "{path}");
        }
    }
}
