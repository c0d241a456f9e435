//! Decides how long a browser may keep a file without asking.
//!
//! A file whose name carries a fingerprint of its content never changes: another content has another name. It is kept for a year. All
//! others are asked for again each time, which costs an answer of a few bytes, and what is published is seen at once.
//!
//! A name that only looks like a fingerprint would keep an old file in browsers for a year; so only types that build tools fingerprint
//! count, and a word, a date or a version is none.

use std::path::Path;

pub(super) const FOREVER: &str = "public, max-age=31536000, immutable";
pub(super) const REVALIDATED: &str = "public, max-age=0, must-revalidate";

/// The extensions of files whose names build tools fingerprint.
const FINGERPRINTED: [&str; 24] = [
    "js", "mjs", "css", "map", "wasm", "woff", "woff2", "ttf", "otf", "eot", "svg", "png", "jpg", "jpeg", "gif", "webp", "avif", "jxl",
    "ico", "mp4", "webm", "mp3", "ogg", "m4a",
];

/// The folders in which every name is fingerprinted by the tool that makes them: Astro, Next.js, SvelteKit.
const FOLDERS: [&str; 3] = ["_astro/", "_next/static/", "_app/immutable/"];

/// Returns the `Cache-Control` of the file at `below` the root.
pub(super) fn cache_control(below: &Path) -> &'static str {
    if is_fingerprinted(below) { FOREVER } else { REVALIDATED }
}

fn is_fingerprinted(below: &Path) -> bool {
    let (Some(path), Some(name)) = (below.to_str(), below.file_name().and_then(|name| name.to_str())) else { return false };
    let Some((stem, extension)) = name.rsplit_once('.') else { return false };
    if !FINGERPRINTED.contains(&extension.to_ascii_lowercase().as_str()) {
        return false;
    }
    // In `app.css.map` and `app.js.LICENSE`, the part before is still the name.
    FOLDERS.iter().any(|folder| path.starts_with(folder) || path.contains(&format!("/{folder}"))) || has_fingerprint(stem)
}

/// Returns whether one of the pieces of a name is a fingerprint: not the first, unless it is long.
fn has_fingerprint(stem: &str) -> bool {
    let by_dot_and_underscore = stem.split(['.', '_', '-']).enumerate().any(|(number, piece)| is_hex(piece, number > 0));
    // The letters of Vite's and esbuild's fingerprints include `-` and `_`, so only the last eight characters tell.
    let last = stem.char_indices().nth_back(7).and_then(|(at, _)| stem.split_at_checked(at));
    by_dot_and_underscore || last.is_some_and(|(before, last)| before.len() > 1 && before.ends_with(['-', '.']) && is_mixed(last))
}

/// Returns whether a piece is hexadecimal, with eight digits or more. A date (no letter), a word (no digit), and a word with a year are
/// not.
fn is_hex(piece: &str, has_name: bool) -> bool {
    let hex = piece.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    let enough = if has_name { 8 } else { 16 };
    hex && (enough..=128).contains(&piece.len()) && changes(piece) >= 2
}

/// Returns whether a text is eight random characters of base64url or base32: with digits, and with frequent changes of the kind of
/// character.
fn is_mixed(last: &str) -> bool {
    let known = last.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    let has = |kind: fn(&u8) -> bool| last.as_bytes().iter().any(kind);
    let cases = (has(u8::is_ascii_uppercase), has(u8::is_ascii_lowercase));
    known && last.len() == 8 && has(u8::is_ascii_digit) && cases.0 && if cases.1 { changes(last) >= 4 } else { changes(last) >= 3 }
}

/// Returns how often the kind of character changes from one to the next.
fn changes(text: &str) -> usize {
    let kind = |b: &u8| match b {
        b'0'..=b'9' => 0,
        b'a'..=b'z' => 1,
        b'A'..=b'Z' => 2,
        _ => 3,
    };
    text.as_bytes().windows(2).filter(|pair| kind(&pair[0]) != kind(&pair[1])).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_build_tools_name_is_kept() {
        for name in [
            // webpack, Create React App, Parcel, Angular
            "app.3f2a9c1b.js",
            "static/js/main.073c9b0a.chunk.js",
            "index.4b8d3f1a.css",
            "main.b56d35f2b23b7d1e.js",
            "app.3f2a9c1b.js.map",
            "3f2a9c1b4d5e6f708192a3b4.js",
            // Vite, Rollup
            "style-BfA3kQ9x.css",
            "assets/index-B2f9zK1q.js",
            "assets/logo-D7x_2Qe4.svg",
            // esbuild
            "chunk-5UBXS4CX.js",
            // Hugo
            "css/main.min.7c4ad3c5a9a1dbd2a0cba1e3b2b2e2a18d22db5d7d8bd0a1fd5ef4a2bd0cfd36.css",
            // Rails, Django
            "application-908e25f4bf641868d8683022a5b62f54.css",
            "base.27e20196a850.css",
            // By their folder
            "_astro/hoisted.css",
            "_next/static/chunks/pages/index.js",
            "docs/_app/immutable/start.mjs",
        ] {
            assert!(is_fingerprinted(name.as_ref()), "{name}");
        }
    }

    #[test]
    fn what_only_looks_like_it_is_not() {
        for name in [
            "index.html",
            "app.js",
            "jquery-3.7.1.min.js",
            "bootstrap.bundle.min.js",
            "photo-20240101.jpg",
            "IMG_20240101.jpg",
            "IMG-20240101-WA0001.jpg",
            "photo-Rome2024.jpg",
            "photo-iPhone15.jpg",
            "style-Overview.css",
            "music-decade80.mp3",
            "facade.css",
            "report-deadbeef.png",
            "fonts/inter-v12-latin-regular.woff2",
            "montserrat-latin-700.woff2",
            "logo-1920x1080.png",
            "report-3f2a9c1b.pdf",
            "page.3f2a9c1b.html",
            "feed-3f2a9c1b.xml",
            "data.3f2a9c1b.json",
            "3f2a9c1b.js",
            "a.3f2a9c1.js",
            "-BfA3kQ9x.css",
            "_nuxt/builds/latest.js",
            "sw.js",
        ] {
            assert!(!is_fingerprinted(name.as_ref()), "{name}");
        }
    }
}
