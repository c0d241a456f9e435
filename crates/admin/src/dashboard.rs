//! The dashboard: a page and its parts, which are in the binary. They are the same for everybody; what they show, they ask the other routes for.
//!
//! All of it is written by hand, but for uPlot, which draws the charts. The page loads nothing from elsewhere, and the policy it is sent with allows nothing else.

use axum::{
    http::{
        HeaderValue,
        header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE},
    },
    response::{IntoResponse, Response},
};

/// The route of sessions.
pub(crate) const SESSION: &str = "/session";

/// The folder of the parts.
const FOLDER: &str = "/assets/";

/// The policy of what the page may do: load its own parts, ask its own listener, and nothing else. No text becomes markup or a script, not
/// even by mistake (Trusted Types).
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
);

const PAGE: &str = include_str!("../assets/dashboard.html");

/// The parts: name, media type, content.
const PARTS: [(&str, &str, &str); 12] = [
    ("dashboard.css", CSS, include_str!("../assets/dashboard.css")),
    ("dashboard.js", SCRIPT, include_str!("../assets/dashboard.js")),
    ("charts.js", SCRIPT, include_str!("../assets/charts.js")),
    ("commands.js", SCRIPT, include_str!("../assets/commands.js")),
    ("dom.js", SCRIPT, include_str!("../assets/dom.js")),
    ("panels.js", SCRIPT, include_str!("../assets/panels.js")),
    ("server.js", SCRIPT, include_str!("../assets/server.js")),
    ("words.js", SCRIPT, include_str!("../assets/words.js")),
    ("icon.svg", "image/svg+xml", include_str!("../assets/icon.svg")),
    ("uplot-licence.txt", "text/plain; charset=utf-8", include_str!("../assets/uplot/LICENSE")),
    ("uplot.css", CSS, include_str!("../assets/uplot/uPlot.min.css")),
    ("uplot.js", SCRIPT, include_str!("../assets/uplot/uPlot.iife.min.js")),
];

const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Answers with the page.
pub(crate) fn page() -> Response {
    let fields = [(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")), (CONTENT_SECURITY_POLICY, POLICY)];
    (fields, PAGE).into_response()
}

/// Finds the part that has this path.
pub(crate) fn part(path: &str) -> Option<Response> {
    let name = path.strip_prefix(FOLDER)?;
    let (_, kind, content) = PARTS.into_iter().find(|(known, ..)| *known == name)?;
    Some(([(CONTENT_TYPE, kind)], content).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bound for everything that a browser loads, in bytes.
    const BYTES_MAX: usize = 250_000;

    #[test]
    fn the_page_and_all_its_parts_stay_below_250_kb() {
        let bytes = PAGE.len() + PARTS.iter().map(|(.., content)| content.len()).sum::<usize>();
        assert!(bytes < BYTES_MAX, "{bytes} bytes");
    }

    /// What the policy forbids anyway must not be written either: it would not work.
    #[test]
    fn no_part_names_another_server_or_makes_markup_of_text() {
        let own = |(name, ..): &&(&str, &str, &str)| !name.starts_with("uplot");
        for (name, _, content) in PARTS.iter().filter(own).chain(&[("dashboard.html", "", PAGE)]) {
            for (at, _) in content.match_indices("://") {
                let around = &content[content[..at].rfind(['\'', '"', ' ', '`', '(']).map_or(0, |at| at + 1)..];
                let known = ["${scheme}", "http://www.w3.org/", "https://shop.example", "https://…", "http://127.0.0.1"];
                assert!(known.iter().any(|known| around.starts_with(known)), "{name}: {}", &around[..around.len().min(60)]);
            }
            for forbidden in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "new Function",
                " style=\"",
                " onclick=",
                "javascript:",
            ] {
                assert!(!content.contains(forbidden), "{name}: {forbidden}");
            }
        }
    }
}
