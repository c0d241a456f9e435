//! The style that is served: that of the theme, of the look, of the settings and of the blog, in this order, without what browsers do not need.

use std::collections::BTreeMap;

/// Returns `css` without comments and without space that means nothing. Texts in quotes stay as they are.
pub(super) fn minified(css: &str) -> String {
    let mut out = String::with_capacity(css.len());
    let mut rest = css;
    let mut space = false;
    while let Some(c) = rest.chars().next() {
        if rest.starts_with("/*") {
            rest = rest.split_once("*/").map_or("", |(_, rest)| rest);
            space = true;
            continue;
        }
        if c.is_whitespace() {
            space = true;
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let before = out.chars().next_back();
        if space && !before.is_none_or(|before| "{};,".contains(before)) && !"{};,".contains(c) && !ends_a_name(&out) {
            out.push(' ');
        }
        space = false;
        if c == '}' && before == Some(';') {
            out.pop();
        }
        let end = if c == '"' || c == '\'' { end_of_text(rest, c) } else { c.len_utf8() };
        out.push_str(&rest[..end]);
        rest = &rest[end..];
    }
    out
}

/// Tells whether `out` ends with the colon between a property and its value, after which space means nothing. A colon of a selector is
/// never followed by space.
fn ends_a_name(out: &str) -> bool {
    out.ends_with(':')
}

fn end_of_text(css: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in css.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    css.len()
}

/// Replaces names of files of the theme in `url(…)` by their addresses, which change with their content.
pub(super) fn with_addresses(css: &str, assets: &BTreeMap<String, String>) -> String {
    let mut parts = css.split("url(");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("url(");
        let end = part.find(')').unwrap_or(part.len());
        let name = part[..end].trim().trim_matches(['"', '\'']);
        match assets.get(name.strip_prefix("./").unwrap_or(name)) {
            Some(address) => {
                out.push_str(&format!("\"{address}\""));
                out.push_str(&part[end..]);
            }
            None => out.push_str(part),
        }
    }
    out
}

/// Returns the line of the first brace without its other half, and what is wrong with it. Browsers would drop all rules after it in silence.
pub(super) fn unbalanced(css: &str) -> Option<(usize, &'static str)> {
    let (mut open, mut line, mut rest) = (Vec::new(), 1, css);
    while let Some(c) = rest.chars().next() {
        let end = match c {
            '/' if rest.starts_with("/*") => match rest.find("*/") {
                Some(at) => at + 2,
                None => return Some((line, "a comment is never closed; end it with `*/`")),
            },
            '"' | '\'' => end_of_text(rest, c),
            '{' => {
                open.push(line);
                1
            }
            '}' if open.pop().is_none() => return Some((line, "a `}` that closes nothing")),
            _ => c.len_utf8(),
        };
        line += rest[..end].matches('\n').count();
        rest = &rest[end..];
    }
    open.pop().map(|line| (line, "a `{` that is never closed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_browsers_do_not_need_is_left_away() {
        let cases = [
            ("a { color: red; }\n\nb , c { margin: 0 1px; }\n", "a{color:red}b,c{margin:0 1px}"),
            ("/* x */ a{}", "a{}"),
            ("a /* x */ b { }", "a b{}"),
            (".a :is(b, c) > d { width: calc(1px + 2px); }", ".a :is(b,c) > d{width:calc(1px + 2px)}"),
            ("a::before { content: \"a ; } b\"; }", "a::before{content:\"a ; } b\"}"),
            ("a { content: 'it\\'s  x'; }", "a{content:'it\\'s  x'}"),
            ("@media (min-width: 1px) { a { b: c } }", "@media (min-width:1px){a{b:c}}"),
        ];
        for (css, expected) in cases {
            assert_eq!(minified(css), expected, "{css}");
        }
    }

    #[test]
    fn files_of_the_theme_are_found_by_their_names() {
        let assets = BTreeMap::from([("sea.woff2".to_owned(), "/theme/sea-1.woff2".to_owned())]);
        let css = "a{src:url(sea.woff2)}b{src:url(\"./sea.woff2\") format(\"woff2\")}c{x:url(other.png)}d{x:url(";
        let expected = "a{src:url(\"/theme/sea-1.woff2\")}b{src:url(\"/theme/sea-1.woff2\") format(\"woff2\")}c{x:url(other.png)}d{x:url(";
        assert_eq!(with_addresses(css, &assets), expected);
    }

    #[test]
    fn a_brace_without_its_other_half_has_a_line() {
        let cases = [
            ("a { b: c }\n", None),
            ("a {\n b {\n c: d\n}\n", Some(1)),
            ("a {}\n}\n", Some(2)),
            ("a { content: \"}\" }", None),
            ("/* { */", None),
            ("\n/* {", Some(2)),
        ];
        for (css, expected) in cases {
            assert_eq!(unbalanced(css).map(|(line, _)| line), expected, "{css}");
        }
    }
}
