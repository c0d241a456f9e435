//! `_headers`: fields for paths.
//!
//! ```text
//! /assets/*
//!   Cache-Control: public, max-age=31536000, immutable
//! /*
//!   X-Frame-Options: DENY
//!   ! Last-Modified
//! ```
//!
//! Every rule that matches counts. A field replaces ours; from two rules both lines are sent. `! Name` takes a field away again.

use http::{HeaderMap, HeaderName, HeaderValue};

use super::{
    pattern::{Captures, Pattern},
    rules::{Complain, RULES_MAX, lines},
};

/// The fields that rules may not set: they describe the message, its framing or what the cache did.
const OURS: [&str; 20] = [
    "accept-ranges",
    "age",
    "cache-status",
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "date",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "proxy-status",
    "server-timing",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    "x-cache",
    "etag",
];

/// The rules for fields, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FieldRules(Vec<Rule>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    path: Pattern,
    lines: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Line {
    Set(HeaderName, String),
    Remove(HeaderName),
}

impl FieldRules {
    pub(super) fn parse(text: &str, complain: &mut Complain<'_>) -> Self {
        let mut rules: Vec<Rule> = Vec::new();
        // Fields below a path that could not be read belong to no rule.
        let mut below_a_mistake = false;
        let mut count = 0;
        for (number, line) in lines(text, complain) {
            count += 1;
            if count > RULES_MAX {
                complain.of(number, format!("from here on left out: more than {RULES_MAX} lines"));
                break;
            }
            if line.starts_with('/') {
                match Pattern::parse(line) {
                    Ok(path) => {
                        rules.push(Rule { path, lines: Vec::new() });
                        below_a_mistake = false;
                    }
                    Err(problem) => {
                        complain.of(number, problem);
                        below_a_mistake = true;
                    }
                }
                continue;
            }
            if line.starts_with("http://") || line.starts_with("https://") {
                complain.of(number, "rules for other hosts are not supported: give each host a [[site]]");
                below_a_mistake = true;
                continue;
            }
            match (field(line), rules.last_mut()) {
                (Err(problem), _) => complain.of(number, problem),
                (Ok(_), _) if below_a_mistake => {}
                (Ok(_), None) => complain.of(number, "stands above the first path: begin with a line such as /*"),
                (Ok(line), Some(rule)) => rule.lines.push(line),
            }
        }
        Self(rules)
    }

    /// Sets the fields that the rules name for a [canonical](super::pattern::canonical) path.
    pub(super) fn apply(&self, path: &str, fields: &mut HeaderMap) {
        let mut set: Vec<&HeaderName> = Vec::new();
        for rule in &self.0 {
            let Some(captures) = rule.path.matches(path) else { continue };
            for line in &rule.lines {
                match line {
                    Line::Remove(name) => drop(fields.remove(name)),
                    Line::Set(name, value) => {
                        let Some(value) = filled(&captures, value) else { continue };
                        if set.contains(&name) {
                            fields.append(name, value);
                        } else {
                            fields.insert(name, value);
                            set.push(name);
                        }
                    }
                }
            }
        }
    }
}

fn filled(captures: &Captures<'_>, value: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(&captures.fill(value)).ok()
}

fn field(line: &str) -> Result<Line, String> {
    if let Some(name) = line.strip_prefix('!') {
        return Ok(Line::Remove(name_of(name.trim())?));
    }
    let (name, value) =
        line.split_once(':').ok_or_else(|| format!("\"{line}\" is neither a path nor a field such as \"X-Frame-Options: DENY\""))?;
    let (name, value) = (name.trim(), value.trim());
    if name.eq_ignore_ascii_case("basic-auth") {
        return Err("passwords are not set here, and this line is not sent to anybody: see [auth] in the manual".to_owned());
    }
    if HeaderValue::from_str(value).is_err() || value.is_empty() {
        return Err(format!("\"{value}\" cannot be the value of a field"));
    }
    Ok(Line::Set(name_of(name)?, value.to_owned()))
}

fn name_of(name: &str) -> Result<HeaderName, String> {
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("\"{name}\" cannot be the name of a field"))?;
    if OURS.contains(&name.as_str()) {
        return Err(format!("{name} is not set here: it describes how the response is sent"));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::rules::Mistake;

    fn parse(text: &str) -> (FieldRules, Vec<Mistake>) {
        let mut mistakes = Vec::new();
        let rules = FieldRules::parse(text, &mut Complain::new("_headers", &mut mistakes));
        (rules, mistakes)
    }

    fn applied(text: &str, path: &str) -> HeaderMap {
        let (rules, mistakes) = parse(text);
        assert_eq!(mistakes, []);
        let mut fields = HeaderMap::new();
        fields.insert("cache-control", HeaderValue::from_static("ours"));
        rules.apply(path, &mut fields);
        fields
    }

    #[test]
    fn every_rule_that_matches_counts() {
        let text = "# all\n/*\n  X-Frame-Options: DENY\n  Link: </a.css>; rel=preload\n\n/blog/:slug\n  Cache-Control: no-cache\n  Link: </b.css>; rel=preload\n  X-Slug: :slug!\n";
        let page = applied(text, "/blog/hello");
        assert_eq!(page["x-frame-options"], "DENY");
        assert_eq!(page["cache-control"], "no-cache");
        assert_eq!(page["x-slug"], "hello!");
        assert_eq!(page.get_all("link").iter().collect::<Vec<_>>(), ["</a.css>; rel=preload", "</b.css>; rel=preload"]);
        assert_eq!(applied(text, "/")["cache-control"], "ours");
        assert!(!applied(text, "/").contains_key("x-slug"));
    }

    #[test]
    fn a_field_is_taken_away_by_its_name() {
        let fields = applied("/*\n  Cache-Control: no-cache\n/a\n  ! Cache-Control", "/a");
        assert!(!fields.contains_key("cache-control"));
    }

    #[test]
    fn a_bad_line_is_named_and_the_others_hold() {
        let text = "X-Early: 1\n/*\n  X-A: 1\n  nonsense\n  Content-Length: 5\n  X B: 1\n  X-C:\n  Basic-Auth: me:secret\nhttps://a.example/*\n  X-D: 1\n/b\n  X-E: 1\n";
        let (rules, mistakes) = parse(text);
        assert_eq!(mistakes.iter().map(|mistake| mistake.line).collect::<Vec<_>>(), [1, 4, 5, 6, 7, 8, 9]);
        assert!(!mistakes.iter().any(|mistake| mistake.problem.contains("secret")), "a password is not for the log");
        let mut fields = HeaderMap::new();
        rules.apply("/b", &mut fields);
        assert_eq!(fields.len(), 2, "{fields:?}");
    }
}
