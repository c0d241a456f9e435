//! The one table of media types by file name, for every source that lies in a folder.
//!
//! Not here: which files are published at all, which each source decides, and which responses are compressed, which the policy decides.

use std::path::Path;

/// The `Content-Type` of a file whose type is unknown: bytes, which a browser saves rather than guesses at.
pub const UNKNOWN: &str = "application/octet-stream";

/// Returns the `Content-Type` of a file by its name; [`UNKNOWN`] if nothing is known of such names.
#[must_use]
pub fn of_file(path: &Path) -> &'static str {
    path.extension().and_then(|extension| extension.to_str()).and_then(of_extension).unwrap_or(UNKNOWN)
}

/// Returns the `Content-Type` of files with this extension, which stands without its dot and in either case.
#[must_use]
pub fn of_extension(extension: &str) -> Option<&'static str> {
    Some(match extension.to_ascii_lowercase().as_str() {
        "html" | "htm" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "json" | "map" => "application/json",
        "jsonld" => "application/ld+json",
        "webmanifest" => "application/manifest+json",
        "xml" => "application/xml; charset=utf-8",
        "xsl" | "xslt" => "application/xslt+xml; charset=utf-8",
        "rss" => "application/rss+xml; charset=utf-8",
        "atom" => "application/atom+xml; charset=utf-8",
        "xhtml" => "application/xhtml+xml; charset=utf-8",
        "txt" | "text" | "log" => "text/plain; charset=utf-8",
        "md" | "markdown" => "text/markdown; charset=utf-8",
        "csv" => "text/csv; charset=utf-8",
        "ics" => "text/calendar; charset=utf-8",
        "vcf" => "text/vcard; charset=utf-8",
        "vtt" => "text/vtt; charset=utf-8",
        "svg" => "image/svg+xml; charset=utf-8",
        "png" => "image/png",
        "apng" => "image/apng",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "avif" => "image/avif",
        "jxl" => "image/jxl",
        "heic" => "image/heic",
        "bmp" => "image/bmp",
        "tif" | "tiff" => "image/tiff",
        "ico" => "image/vnd.microsoft.icon",
        "woff2" => "font/woff2",
        "woff" => "font/woff",
        "ttf" => "font/ttf",
        "otf" => "font/otf",
        "eot" => "application/vnd.ms-fontobject",
        "mp4" | "m4v" => "video/mp4",
        "webm" => "video/webm",
        "ogv" => "video/ogg",
        "mov" => "video/quicktime",
        "mp3" => "audio/mpeg",
        "m4a" => "audio/mp4",
        "aac" => "audio/aac",
        "ogg" | "oga" | "opus" => "audio/ogg",
        "flac" => "audio/flac",
        "wav" => "audio/wav",
        "pdf" => "application/pdf",
        "epub" => "application/epub+zip",
        "zip" => "application/zip",
        "gz" | "tgz" => "application/gzip",
        "zst" => "application/zstd",
        "wasm" => "application/wasm",
        "rtf" => "application/rtf",
        "geojson" => "application/geo+json",
        "gpx" => "application/gpx+xml",
        "kml" => "application/vnd.google-earth.kml+xml",
        "opml" => "text/x-opml; charset=utf-8",
        "yaml" | "yml" => "application/yaml",
        "toml" => "application/toml",
        "srt" => "application/x-subrip; charset=utf-8",
        "m3u8" => "application/vnd.apple.mpegurl",
        "mpd" => "application/dash+xml",
        "ts" => "video/mp2t",
        "mpg" | "mpeg" => "video/mpeg",
        "mkv" => "video/matroska",
        "weba" => "audio/webm",
        "mid" | "midi" => "audio/midi",
        "cur" => "image/vnd.microsoft.icon",
        "glb" => "model/gltf-binary",
        "gltf" => "model/gltf+json",
        "doc" => "application/msword",
        "docx" => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "xls" => "application/vnd.ms-excel",
        "xlsx" => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "ppt" => "application/vnd.ms-powerpoint",
        "pptx" => "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "odt" => "application/vnd.oasis.opendocument.text",
        "ods" => "application/vnd.oasis.opendocument.spreadsheet",
        "odp" => "application/vnd.oasis.opendocument.presentation",
        "7z" => "application/x-7z-compressed",
        "tar" => "application/x-tar",
        "asc" | "sig" => "application/pgp-signature",
        _ => return None,
    })
}

/// Returns whether content of this type usually becomes smaller by compression.
pub(crate) fn is_compressible(media_type: &str) -> bool {
    const OTHERS: [&str; 7] = [
        "application/wasm",
        "application/rtf",
        "font/ttf",
        "font/otf",
        "application/vnd.ms-fontobject",
        "image/vnd.microsoft.icon",
        "image/bmp",
    ];
    let essence = media_type.split(';').next().unwrap_or_default();
    let ends = |suffixes: &[&str]| suffixes.iter().any(|suffix| essence.ends_with(suffix));
    essence.starts_with("text/") || ends(&["json", "xml", "yaml", "toml"]) || OTHERS.contains(&essence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_what_is_made_of_it_can_be_coded() {
        for (name, expected) in [
            ("a.html", true),
            ("a.svg", true),
            ("a.json", true),
            ("a.wasm", true),
            ("a.ttf", true),
            ("a.png", false),
            ("a.woff2", false),
            ("a.gz", false),
            ("a", false),
        ] {
            assert_eq!(is_compressible(of_file(Path::new(name))), expected, "{name}");
        }
    }

    #[test]
    fn the_last_extension_decides_in_any_case() {
        for (name, expected) in [
            ("index.html", "text/html; charset=utf-8"),
            ("A.JPG", "image/jpeg"),
            ("app.min.js", "text/javascript; charset=utf-8"),
            ("backup.tar.gz", "application/gzip"),
            ("LICENSE", "application/octet-stream"),
            ("x.unheard-of", "application/octet-stream"),
        ] {
            assert_eq!(of_file(Path::new(name)), expected, "{name}");
        }
    }
}
