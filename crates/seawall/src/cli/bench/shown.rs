//! The command line as a result shows it. Results are shared, so what is secret in it is left out.

use std::borrow::Cow;

use load::results::Run;

/// Fields whose values are shown. Any other field may hold a secret, whatever its name is.
const HARMLESS: [&str; 17] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "connection",
    "content-type",
    "host",
    "if-modified-since",
    "if-none-match",
    "origin",
    "pragma",
    "range",
    "sec-fetch-mode",
    "te",
    "upgrade-insecure-requests",
    "user-agent",
];

/// Parts of the names of query parameters whose values are not shown.
const SECRET: [&str; 12] = ["auth", "code", "cookie", "credential", "key", "pass", "pwd", "secret", "session", "sid", "sig", "token"];

/// Stands for what is not shown.
const HIDDEN: &str = "...";

/// Flags of one letter that stand alone, so that another one may follow in the same word.
const ALONE: &str = "qkvh";

/// Writes a command line as it could be typed, with everything that is secret left out.
pub(super) fn command(words: impl IntoIterator<Item = String>) -> String {
    let mut shown: Vec<String> = Vec::new();
    let mut before = String::new();
    for (at, word) in words.into_iter().enumerate() {
        let text = match (at, before.as_str()) {
            (0, _) => "seawall".to_owned(),
            (_, flag) if takes_field(flag) => field(&word),
            (_, "--body") => body(&word),
            (_, "--token") => HIDDEN.to_owned(),
            _ => one(&word),
        };
        shown.push(quoted(&text).into_owned());
        before = word;
    }
    shown.join(" ")
}

/// Has a result say how it was made, without what is secret.
pub(super) fn describe(run: &mut Run) {
    run.command = command(std::env::args());
    run.urls.iter_mut().for_each(|shown| *shown = url(shown));
}

/// Whether the word after this one is a field: `-H`, alone or behind flags that take no value.
fn takes_field(word: &str) -> bool {
    word == "--field" || combined(word).is_some_and(|(_, value)| value.is_empty())
}

/// Divides a word of short flags with `-H` behind others: what stands before its value, and the value.
fn combined(word: &str) -> Option<(&str, &str)> {
    let flags = word.strip_prefix('-').filter(|flags| !flags.starts_with('-'))?;
    let at = flags.find('H').filter(|at| flags[..*at].chars().all(|flag| ALONE.contains(flag)))?;
    Some(word.split_at(at + 2))
}

fn one(word: &str) -> String {
    if let Some(rest) = word.strip_prefix("--field=") {
        return format!("--field={}", field(rest));
    }
    if word.starts_with("--token=") {
        return format!("--token={HIDDEN}");
    }
    if word.starts_with("--leak-check=") {
        return format!("--leak-check={HIDDEN}");
    }
    if let Some(rest) = word.strip_prefix("--body=") {
        return format!("--body={}", body(rest));
    }
    if let Some((flags, value)) = combined(word).filter(|(_, value)| !value.is_empty()) {
        let (flags, value) = value.strip_prefix('=').map_or_else(|| (flags.to_owned(), value), |value| (format!("{flags}="), value));
        return format!("{flags}{}", field(value));
    }
    url(word)
}

fn field(line: &str) -> String {
    match line.split_once(':') {
        Some((name, _)) if HARMLESS.contains(&name.trim().to_ascii_lowercase().as_str()) => line.to_owned(),
        Some((name, _)) => format!("{name}: {HIDDEN}"),
        None => HIDDEN.to_owned(),
    }
}

/// Leaves out of a URL, or of a flag's value that is one, what is secret: user and password, and the values of query parameters whose names say so.
fn url(word: &str) -> String {
    without_parameters(&without_user(word))
}

fn without_parameters(word: &str) -> String {
    let Some((path, query)) = word.split_once('?') else { return word.to_owned() };
    let one = |parameter: &str| match parameter.split_once('=') {
        Some((name, _)) if SECRET.iter().any(|part| name.to_ascii_lowercase().contains(part)) => format!("{name}={HIDDEN}"),
        _ => parameter.to_owned(),
    };
    let shown: Vec<String> = query.split('&').map(one).collect();
    format!("{path}?{}", shown.join("&"))
}

/// A content may have a password in it; the name of a file has none.
fn body(text: &str) -> String {
    if text.starts_with('@') { text.to_owned() } else { HIDDEN.to_owned() }
}

/// Leaves user and password out of a URL.
fn without_user(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://{HIDDEN}@{host}{path}"),
        None => word.to_owned(),
    }
}

/// Quotes a word for a shell, if that is needed.
fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@,+%".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(format!("'{}'", word.replace('\'', "'\\''")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_shown_without_its_secrets() {
        let shown = |words: &[&str]| command(words.iter().map(ToString::to_string));
        for (words, expected) in [
            (&["/usr/bin/seawall", "bench", "http://a/?b=c", "-c", "5"][..], "seawall bench 'http://a/?b=c' -c 5"),
            (&["seawall", "-H", "Accept: text/html"], "seawall -H 'Accept: text/html'"),
            (&["seawall", "-H", "Authorization: Basic eA=="], "seawall -H 'Authorization: ...'"),
            (&["seawall", "--field=cookie: a=1"], "seawall '--field=cookie: ...'"),
            (&["seawall", "-HX-Api-Key: 1"], "seawall '-HX-Api-Key: ...'"),
            (&["seawall", "--body", "user=a&pwd=b"], "seawall --body ..."),
            (&["seawall", "--token", "0123456789abcdef"], "seawall --token ..."),
            (&["seawall", "--token=0123456789abcdef"], "seawall --token=..."),
            (&["seawall", "--body=@form.txt"], "seawall --body=@form.txt"),
            (&["seawall", "https://ann:secret@a.example/b@c"], "seawall https://...@a.example/b@c"),
            (&["seawall", "http://a/@b"], "seawall http://a/@b"),
            (&["seawall", "-qH", "Cookie: s=1"], "seawall -qH 'Cookie: ...'"),
            (&["seawall", "-qkHCookie: s=1"], "seawall '-qkHCookie: ...'"),
            (&["seawall", "-H=Cookie: s=1"], "seawall '-H=Cookie: ...'"),
            (&["seawall", "-H", "X-Session: 1"], "seawall -H 'X-Session: ...'"),
            (&["seawall", "-H", "X-Pw: 1"], "seawall -H 'X-Pw: ...'"),
            (&["seawall", "-H", "no field"], "seawall -H ..."),
            (&["seawall", "-H", "user-agent: x"], "seawall -H 'user-agent: x'"),
            (&["seawall", "--leak-check=sid=x"], "seawall --leak-check=..."),
            (&["seawall", "http://a/?page=1&access_token=S&sort=x"], "seawall 'http://a/?page=1&access_token=...&sort=x'"),
            (&["seawall", "--sitemap=http://a/?KEY=S"], "seawall '--sitemap=http://a/?KEY=...'"),
            (&["seawall", "--fail-if", "p99>200ms", "it's"], "seawall --fail-if 'p99>200ms' 'it'\\''s'"),
        ] {
            assert_eq!(shown(words), expected);
        }
    }
}
