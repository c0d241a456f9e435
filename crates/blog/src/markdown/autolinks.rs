//! Addresses of pages and of mailboxes that stand in a text without any marks become links, as GitHub Flavored Markdown has it ("Autolinks
//! (extension)").

use std::ops::Range;

const PREFIXES: [&str; 3] = ["https://", "http://", "www."];

const MAIL: &str = "mailto:";

/// Returns the place of the first address in `text` at or behind `from`. `before` stands in front of `text`.
pub(super) fn find(text: &str, from: usize, before: Option<char>) -> Option<Range<usize>> {
    let mut at = from;
    // All kinds in one pass: looking for each of them from here would read a long text once for every link.
    while let Some(offset) = text[at..].find(['h', 'w', 'H', 'W', '@']) {
        let start = at + offset;
        if text.as_bytes()[start] == b'@' {
            if let Some(mail) = mail(text, from, start).filter(|mail| may_begin(text, mail.start, before)) {
                return Some(mail);
            }
        } else if may_begin(text, start, before)
            && let Some(length) = length(&text[start..])
        {
            return Some(start..start + length);
        }
        at = start + 1;
    }
    None
}

/// Tells whether an address that was [found](find) is that of a mailbox.
pub(super) fn is_mail(address: &str) -> bool {
    length(address).is_none()
}

/// Tells whether an address may begin at `start`: not within a word.
fn may_begin(text: &str, start: usize, before: Option<char>) -> bool {
    let previous = text[..start].chars().next_back().or(before);
    previous.is_none_or(|c| c.is_whitespace() || matches!(c, '*' | '_' | '~' | '('))
}

/// Returns the place of the mail address around the sign `@` at `at`, which begins at or behind `from`.
fn mail(text: &str, from: usize, at: usize) -> Option<Range<usize>> {
    let (before, after) = (&text.as_bytes()[from..at], &text.as_bytes()[at + 1..]);
    let is_local = |byte: &&u8| byte.is_ascii_alphanumeric() || b".-_+".contains(byte);
    let local = before.iter().rev().take_while(is_local).count();
    let domain = after.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(byte)).count();
    let mut domain = &text[at + 1..at + 1 + domain];
    // A full stop that no name follows ends the sentence.
    if let Some(end) = domain.find("..").or_else(|| domain.strip_suffix('.').map(str::len)) {
        domain = &domain[..end];
    }
    // `react@18.2.0` is a version: a domain ends with a letter, as cmark-gfm has it.
    let is_domain = domain.contains('.') && !domain.starts_with('.') && domain.ends_with(|end: char| end.is_ascii_alphabetic());
    let end = at + 1 + domain.len();
    // `git@example.org:name.git` and `a@b.org@c` are addresses of something else.
    let mut following = text[end..].chars();
    let goes_on = match following.next() {
        Some('@') => true,
        Some(':') => following.next().is_some_and(|c| !c.is_whitespace()),
        _ => false,
    };
    if local == 0 || !is_domain || goes_on {
        return None;
    }
    let start = at - local;
    let is_said = start - from >= MAIL.len() && text.get(start - MAIL.len()..start).is_some_and(|scheme| scheme.eq_ignore_ascii_case(MAIL));
    Some(if is_said { start - MAIL.len()..end } else { start..end })
}

/// Returns the length of the address with which `text` begins.
fn length(text: &str) -> Option<usize> {
    let prefix = PREFIXES.iter().find(|prefix| text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix)))?;
    let is_www = *prefix == "www.";
    let domain = if is_www { text } else { &text[prefix.len()..] };
    let end = domain.find(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.'))).unwrap_or(domain.len());
    if !is_domain(&domain[..end]) {
        return None;
    }
    let whole = &text[..text.find(|c: char| c.is_whitespace() || c == '<').unwrap_or(text.len())];
    let length = without_punctuation(whole).len();
    (length > prefix.len()).then_some(length)
}

fn is_domain(domain: &str) -> bool {
    let mut parts = domain.trim_end_matches(['.', '-', '_']).rsplit('.');
    let (Some(last), Some(second)) = (parts.next(), parts.next()) else { return false };
    let is_name = |part: &str| !part.is_empty() && !part.contains('_');
    is_name(last) && is_name(second) && parts.all(|part| !part.is_empty())
}

/// Cuts off what belongs to the sentence and not to the address.
fn without_punctuation(address: &str) -> &str {
    // Counted once: a row of a thousand brackets is cut off one by one.
    let mut unmatched = address.matches(')').count().saturating_sub(address.matches('(').count());
    let mut rest = address;
    loop {
        if rest.ends_with(['?', '!', '.', ',', ':', '*', '_', '~', '"', '\'']) {
            rest = &rest[..rest.len() - 1];
        } else if rest.ends_with(')') && unmatched > 0 {
            unmatched -= 1;
            rest = &rest[..rest.len() - 1];
        } else if let Some(start) = entity(rest) {
            rest = &rest[..start];
        } else {
            return rest;
        }
    }
}

/// Returns where the text begins that looks like an entity (`&amp;`) at the end of `text`.
fn entity(text: &str) -> Option<usize> {
    let name = text.strip_suffix(';')?;
    let start = name.trim_end_matches(|c: char| c.is_ascii_alphanumeric()).strip_suffix('&')?.len();
    (start + 1 < name.len()).then_some(start)
}

/// Returns the target of an address that was found.
pub(super) fn target(address: &str) -> String {
    let begins = |with: &str| address.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with));
    if begins("www.") {
        format!("http://{address}")
    } else if begins(MAIL) || PREFIXES.iter().any(|prefix| begins(prefix)) {
        address.to_owned()
    } else {
        format!("{MAIL}{address}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// GitHub Flavored Markdown 0.29, section 6.9.
    #[test]
    fn addresses_end_where_the_sentence_goes_on() {
        let cases = [
            ("www.example.org", Some("www.example.org")),
            ("Visit www.example.org/help for more.", Some("www.example.org/help")),
            ("Visit www.example.org.", Some("www.example.org")),
            ("Visit www.example.org/a.b.", Some("www.example.org/a.b")),
            ("www.example.org/find?q=wall+(sea)", Some("www.example.org/find?q=wall+(sea)")),
            ("www.example.org/find?q=wall+(sea)))", Some("www.example.org/find?q=wall+(sea)")),
            ("(www.example.org/find?q=wall+(sea))", Some("www.example.org/find?q=wall+(sea)")),
            ("(www.example.org/find?q=wall+(sea)", Some("www.example.org/find?q=wall+(sea)")),
            ("www.example.org/find?q=(sea))+wall", Some("www.example.org/find?q=(sea))+wall")),
            ("www.example.org/find?q=sea&hl=en", Some("www.example.org/find?q=sea&hl=en")),
            ("www.example.org/find?q=sea&hl;", Some("www.example.org/find?q=sea")),
            ("www.example.org/a<b", Some("www.example.org/a")),
            ("http://example.org", Some("http://example.org")),
            ("(Visit https://find.example.org/?q=wall+(sea))", Some("https://find.example.org/?q=wall+(sea)")),
            ("see HTTPS://Example.org!", Some("HTTPS://Example.org")),
            ("https://example.org:8443/x", Some("https://example.org:8443/x")),
            ("*https://example.org*", Some("https://example.org")),
            ("xhttps://example.org", None),
            ("https://localhost/", None),
            ("https://a_b.c_d/", None),
            ("https://", None),
            ("www.", None),
            ("what where", None),
            ("“https://日本.example/é”", None),
            ("https://日本.example/é", Some("https://日本.example/é")),
        ];
        for (text, expected) in cases {
            assert_eq!(find(text, 0, None).map(|range| &text[range]), expected, "{text}");
        }
        assert_eq!(find("https://example.org", 0, Some('a')), None);
        assert_eq!(target("www.a.org"), "http://www.a.org");
    }

    /// GitHub Flavored Markdown 0.29, section 6.9: examples 629 to 631, and what is like them.
    #[test]
    fn mail_addresses_are_found() {
        let cases = [
            ("sea@wall.example", Some("sea@wall.example")),
            ("hello@mail+xyz.example isn't valid, but hello+xyz@mail.example is.", Some("hello+xyz@mail.example")),
            ("a.b-c_d@a.b", Some("a.b-c_d@a.b")),
            ("a.b-c_d@a.b.", Some("a.b-c_d@a.b")),
            ("a.b-c_d@a.b-", None),
            ("a.b-c_d@a.b_", None),
            ("(write to me@example.org)", Some("me@example.org")),
            ("me@example.org: thanks", Some("me@example.org")),
            ("mailto:me@example.org", Some("mailto:me@example.org")),
            ("react@18.2.0", None),
            ("me@localhost", None),
            ("me@.org", None),
            ("me@a..org", None),
            ("@me.org", None),
            // A name in the fediverse is not a mail address, and neither is that of a repository.
            ("@ann@social.example", None),
            ("git@example.org:ann/blog.git", None),
            ("a@b.org@c.org", None),
            ("https://ann@example.org/", None),
            ("ü@example.org", None),
            ("x@", None),
        ];
        for (text, expected) in cases {
            assert_eq!(find(text, 0, None).map(|range| &text[range]), expected, "{text}");
        }
        assert_eq!(find("me@example.org", 0, Some('<')), None);
        assert_eq!(target("me@example.org"), "mailto:me@example.org");
        assert_eq!(target("mailto:me@example.org"), "mailto:me@example.org");
    }
}
