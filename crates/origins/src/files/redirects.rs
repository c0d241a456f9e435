//! `_redirects`: one rule a line, the first that matches counts.
//!
//! ```text
//! /old            /new                301
//! /blog/:year/*   /archive/:year/:splat
//! /app/*          /app/index.html     200
//! /private/*      /404.html           404!
//! ```
//!
//! What a path names goes before a rule, unless that ends in `!`.

use http::StatusCode;

use super::{
    path::decode,
    pattern::{Captures, Pattern, is_name},
    rules::{Complain, RULES_MAX, lines},
};

/// The status of a rule without one, as in the original format. Browsers are told to ask again, so a mistake can be corrected.
const STATUS: StatusCode = StatusCode::MOVED_PERMANENTLY;

/// The rules for redirects, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Redirects(Vec<Rule>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    /// The number of the line, counted from 1.
    line: usize,
    from: Pattern,
    to: String,
    pub(super) status: StatusCode,
    /// Whether the rule also applies where a file exists.
    pub(super) forced: bool,
}

/// The result of a rule for a path.
#[derive(Debug, PartialEq, Eq)]
pub enum Leads {
    /// A redirect to another address, absolute or on this host.
    Away(StatusCode, String),
    /// The file under this path of the folder, to be answered with this status; for an empty path, the status alone.
    Within(StatusCode, String),
}

impl Redirects {
    pub(super) fn parse(text: &str, complain: &mut Complain<'_>) -> Self {
        let mut rules = Vec::new();
        for (number, line) in lines(text, complain) {
            if rules.len() == RULES_MAX {
                complain.of(number, format!("from here on left out: more than {RULES_MAX} rules"));
                break;
            }
            match rule(number, line) {
                Ok(rule) => rules.push(rule),
                Err(problem) => complain.of(number, problem),
            }
        }
        Self(rules)
    }

    /// Returns the rules for one path alone that give way to what is there: the number of the line and the path in its one spelling.
    pub(super) fn giving_way(&self) -> impl Iterator<Item = (usize, &str)> {
        self.0.iter().filter(|rule| !rule.forced).filter_map(|rule| Some((rule.line, rule.from.only_path()?)))
    }

    /// Returns the first rule for a [canonical](super::pattern::canonical) path, and its captures.
    pub(super) fn find<'a>(&'a self, path: &'a str) -> Option<(&'a Rule, Captures<'a>)> {
        self.0.iter().find_map(|rule| rule.from.matches(path).map(|captures| (rule, captures)))
    }
}

impl Rule {
    /// Returns where the rule leads. `None` if it leads in a circle, or to another host that the client's text chose.
    pub(super) fn leads(&self, captures: &Captures<'_>, path: &str, query: Option<&str>) -> Option<Leads> {
        let mut to = captures.fill(&self.to);
        if !self.status.is_redirection() {
            return Some(Leads::Within(self.status, to));
        }
        if to.starts_with("//") || to.starts_with("/\\") {
            return None;
        }
        if to.split(['?', '#']).next().is_some_and(|to| to == path || to.strip_suffix('/') == Some(path)) {
            return None;
        }
        if let Some(query) = query.filter(|_| !to.contains('?')) {
            let fragment = to.find('#').map(|at| to.split_off(at)).unwrap_or_default();
            to.push('?');
            to.push_str(query);
            to.push_str(&fragment);
        }
        Some(Leads::Away(self.status, to))
    }
}

fn rule(number: usize, line: &str) -> Result<Rule, String> {
    let line = line.split_once(" #").map_or(line, |(line, _)| line);
    let mut words = line.split_whitespace();
    let from = words.next().unwrap_or_default();
    if from.contains("://") {
        return Err("rules for other hosts are not supported: give each host a [[site]]".to_owned());
    }
    let from = Pattern::parse(from)?;
    let mut to = None;
    let mut status = None;
    for word in words {
        if status.is_some() {
            return Err(format!("conditions such as \"{word}\" are not supported"));
        }
        if let Some(read) = read_status(word) {
            status = Some(read?);
        } else if to.is_some() {
            return Err(format!(
                "\"{word}\" is not a status: 200, 301, 302, 303, 307, 308, 404 or 410, with a ! to go before what is there"
            ));
        } else if word.starts_with('/') || word.starts_with("http://") || word.starts_with("https://") {
            to = Some(word);
        } else if word.contains('=') {
            return Err(format!("query parameters such as \"{word}\" are not matched"));
        } else {
            return Err(format!("\"{word}\" is not a target: write a path that begins with a slash, or a whole http(s) address"));
        }
    }
    let (status, forced) = status.unwrap_or((STATUS, false));
    let to = match to {
        Some(to) => to,
        None if matches!(status, StatusCode::NOT_FOUND | StatusCode::GONE) => "",
        None => return Err("names no target: write the old path, the new one, and a status".to_owned()),
    };
    check(to, status, &from)?;
    Ok(Rule { line: number, from, to: to.to_owned(), status, forced })
}

/// Reads a status and its `!`; returns `None` if the word is not a status.
fn read_status(word: &str) -> Option<Result<(StatusCode, bool), String>> {
    let (digits, forced) = word.strip_suffix('!').map_or((word, false), |digits| (digits, true));
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let status = StatusCode::from_bytes(digits.as_bytes())
        .ok()
        .filter(|status| matches!(status.as_u16(), 200 | 301 | 302 | 303 | 307 | 308 | 404 | 410));
    Some(
        status
            .map(|status| (status, forced))
            .ok_or_else(|| format!("the status {digits} is not one of 200, 301, 302, 303, 307, 308, 404, 410")),
    )
}

fn check(to: &str, status: StatusCode, from: &Pattern) -> Result<(), String> {
    if to.starts_with("//") {
        return Err(format!("\"{to}\" is ambiguous: another host begins with https://"));
    }
    if !status.is_redirection() && !to.is_empty() && !to.starts_with('/') {
        return Err(format!(
            "\"{to}\" is another server, and status {status} answers from this folder: proxying is not supported here",
            status = status.as_u16()
        ));
    }
    if to.bytes().any(|b| !b.is_ascii_graphic()) {
        return Err(format!("\"{to}\" has characters that must be percent-encoded"));
    }
    if !status.is_redirection() && decode(to).is_none() {
        return Err(format!("\"{to}\" is not percent-encoded as it should be"));
    }
    // These characters end an authority for browsers too (RFC 3986 §3.2, and a backslash).
    let host = to.split_once("://").map(|(_, rest)| rest.split(['/', '?', '#', '\\']).next().unwrap_or_default());
    let captured = |piece: &str| from.captures(piece.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default());
    if host.is_some_and(|host| host.is_empty() || host.starts_with(':') || host.contains('@') || host.split(':').skip(1).any(captured)) {
        return Err(format!("\"{to}\" takes its host from the request, or has none"));
    }
    for name in to.split("/:").skip(1) {
        let name = name.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
        if is_name(name) && !from.captures(name) {
            return Err(format!("\":{name}\" in the target is nowhere in the path"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::rules::Mistake;

    fn parse(text: &str) -> (Redirects, Vec<Mistake>) {
        let mut mistakes = Vec::new();
        let redirects = Redirects::parse(text, &mut Complain::new("_redirects", &mut mistakes));
        (redirects, mistakes)
    }

    fn led(rules: &str, path: &str, query: Option<&str>) -> Option<Leads> {
        let (redirects, mistakes) = parse(rules);
        assert_eq!(mistakes, [], "{rules}");
        redirects.find(path).and_then(|(rule, captures)| rule.leads(&captures, path, query))
    }

    /// The cases are those of the static hosts' documentation.
    #[test]
    fn rules_lead_as_they_do_on_static_hosts() {
        let away = |status: u16, to: &str| Some(Leads::Away(StatusCode::from_u16(status).expect("a status"), to.to_owned()));
        let within = |status: u16, to: &str| Some(Leads::Within(StatusCode::from_u16(status).expect("a status"), to.to_owned()));
        for (rules, path, query, expected) in [
            ("/home /", "/home", None, away(301, "/")),
            ("/my-redirect / 302", "/my-redirect", None, away(302, "/")),
            ("/news /blog 308!", "/news", None, away(308, "/blog")),
            ("/news/ /blog", "/news", None, away(301, "/blog")),
            ("/ecommerce /store-closed 404", "/ecommerce", None, within(404, "/store-closed")),
            ("/gone 410", "/gone", None, within(410, "")),
            ("/news/* /blog/:splat", "/news/2004/01/my-story", None, away(301, "/blog/2004/01/my-story")),
            (
                "/news/:month/:date/:year/* /blog/:year/:month/:date/:splat",
                "/news/02/12/2004/my-story",
                None,
                away(301, "/blog/2004/02/12/my-story"),
            ),
            ("/* /index.html 200", "/any/where", Some("q=1"), within(200, "/index.html")),
            ("/a https://example.org/b 302 # moved", "/a", None, away(302, "https://example.org/b")),
            ("/a /b", "/a", Some("x=1&y"), away(301, "/b?x=1&y")),
            ("/a /b?z=2", "/a", Some("x=1"), away(301, "/b?z=2")),
            ("/a /b#c", "/a", Some("x=1"), away(301, "/b?x=1#c")),
            ("/a /b\n/a /c", "/a", None, away(301, "/b")),
            ("/a /b", "/c", None, None),
        ] {
            assert_eq!(led(rules, path, query), expected, "{rules}");
        }
    }

    #[test]
    fn no_rule_leads_in_a_circle_or_to_a_host_of_the_clients_choice() {
        assert_eq!(led("/a/ /a", "/a", None), None);
        assert_eq!(led("/a /a/", "/a", None), None);
        assert_eq!(led("/* /:splat", "/a/b", None), None);
        assert_eq!(led("/go/* /:splat", "/go//evil.example", None), None);
    }

    #[test]
    fn a_bad_line_is_named_and_the_others_hold() {
        let text = "# comment\n\n/a /b\nb /c\n/c\n/d /e 999\n/d /e 999x\n/f /g 301 Country=au\n/g id=:id /h/:id\nhttps://a.example/* /x\n/p/* https://api.example/:splat 200\n/q/* https://:splat/\n/r /s/:nothing\n/t //evil.example\n/u/:v https://example.org:v/\n/z /y\n";
        let (redirects, mistakes) = parse(text);
        assert_eq!(redirects.0.len(), 2);
        assert_eq!(mistakes.iter().map(|mistake| mistake.line).collect::<Vec<_>>(), [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
        assert_eq!(mistakes[0].to_string(), "_redirects:4: \"b\" does not begin with a slash");
        assert_eq!(mistakes[2].problem, "the status 999 is not one of 200, 301, 302, 303, 307, 308, 404, 410");
        assert_eq!(mistakes[4].problem, "conditions such as \"Country=au\" are not supported");
    }

    #[test]
    fn a_target_without_a_host_leads_nowhere() {
        for to in ["https://", "https:///x", "https://#a", "https://?a=b", "https://\\x", "http://#t:splat"] {
            let (redirects, mistakes) = parse(&format!("/a {to} 302\n"));
            assert_eq!((redirects.0.len(), mistakes.len()), (0, 1), "{to}");
        }
    }

    #[test]
    fn rules_and_mistakes_are_bounded() {
        let (redirects, mistakes) = parse(&"/a /b\n".repeat(RULES_MAX + 2));
        assert_eq!((redirects.0.len(), mistakes.len()), (RULES_MAX, 1));
        let (_, mistakes) = parse(&"nothing\n".repeat(1000));
        assert_eq!(mistakes.len(), 21);
        let (_, mistakes) = parse(&format!("/a /{}", "b".repeat(2000)));
        assert_eq!(mistakes[0].problem, "longer than 2000 bytes");
    }
}
