//! The command line as a result shows it. Results are shared, so what is secret in it is left out.

use std::borrow::Cow;

/// Parts of the names of fields whose values are secret.
const SECRET: [&str; 7] = ["auth", "cookie", "token", "key", "secret", "password", "signature"];

/// Stands for what is not shown.
const HIDDEN: &str = "...";

/// Writes a command line as it could be typed, with everything that is secret left out.
pub(super) fn command(words: impl IntoIterator<Item = String>) -> String {
    let mut shown: Vec<String> = Vec::new();
    let mut before = String::new();
    for (at, word) in words.into_iter().enumerate() {
        let text = match (at, before.as_str()) {
            (0, _) => "seawall".to_owned(),
            (_, "-H" | "--field") => field(&word),
            (_, "--body") => body(&word),
            (_, "--token") => HIDDEN.to_owned(),
            _ => one(&word),
        };
        shown.push(quoted(&text).into_owned());
        before = word;
    }
    shown.join(" ")
}

fn one(word: &str) -> String {
    if let Some(rest) = word.strip_prefix("--field=") {
        return format!("--field={}", field(rest));
    }
    if word.starts_with("--token=") {
        return format!("--token={HIDDEN}");
    }
    if let Some(rest) = word.strip_prefix("--body=") {
        return format!("--body={}", body(rest));
    }
    if let Some(rest) = word.strip_prefix("-H").filter(|rest| !rest.is_empty()) {
        return format!("-H{}", field(rest));
    }
    without_user(word)
}

fn field(line: &str) -> String {
    let name = line.split(':').next().unwrap_or_default();
    let is_secret = SECRET.iter().any(|part| name.to_ascii_lowercase().contains(part));
    if is_secret && line.contains(':') { format!("{name}: {HIDDEN}") } else { line.to_owned() }
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
            (&["seawall", "--fail-if", "p99>200ms", "it's"], "seawall --fail-if 'p99>200ms' 'it'\\''s'"),
        ] {
            assert_eq!(shown(words), expected);
        }
    }
}
