//! An explanation as text: aligned, plain enough to be pasted, with colour only where there is a terminal.

use std::fmt::Write as _;

use admin_api::explanation::{ExplainedVerdict, Explanation, FreshnessSource, NotKept, PurgedHow, Rule, Variant};

use crate::{
    foreign::visible_answer,
    terminal::{Style, styled},
    units::{bytes, span},
};

/// The columns before the text of a line.
const LABEL: usize = 13;
/// The columns before the text of a line that belongs to another line, without those of [`LABEL`].
const INNER: usize = 19;
/// The most tags of a response that are named: a list of a WordPress has dozens.
const TAGS_SHOWN: usize = 10;
/// What stands for a word that this command does not know.
const UNKNOWN_WORD: &str = "unknown: the server is newer than this command";

/// Writes an explanation for a person.
#[must_use]
pub fn text(explanation: &Explanation, colour: bool) -> String {
    let explanation = &visible_answer(explanation);
    let mut page = Page { out: String::new(), colour, kind: explanation.site.kind.clone() };
    let _ = writeln!(page.out, "{} {}\n", explanation.method, styled(&explanation.url, Style::Bold, colour));
    let site = &explanation.site;
    let hosts = if site.hosts.is_empty() { "every host".to_owned() } else { site.hosts.join(", ") };
    let known = site.kind_known.as_ref().map(|known| format!(" ({known})")).unwrap_or_default();
    page.line("site", &format!("{}, {}{known}, serves {hosts}", site.name, site.kind));
    if let Some(route) = &site.route {
        page.line("route", &format!("{route}: another server answers for it"));
    }
    page.rules("rules", &explanation.rules);
    page.line("verdict", verdict(explanation));
    if let Some(key) = &explanation.key {
        page.line("key", &format!("{} {} {} accept={}", key.scheme, key.host, key.target, key.accept));
        page.gap();
        page.rules("lookup", &explanation.lookup);
    }
    for variant in &explanation.stored {
        page.gap();
        page.variant(variant);
    }
    if explanation.stored_under_other_scheme {
        page.gap();
        page.line("other scheme", "The same address is stored under the other of http and https. Behind a proxy that does TLS,");
        page.line("", "readers' requests count as https only if the proxy is among trusted_proxies.");
    }
    page.gap();
    if let Some(not_kept) = &explanation.not_kept {
        page.not_kept(not_kept, !explanation.stored.is_empty());
    }
    if let Some(seconds) = explanation.uncacheable_seconds {
        page.line("uncacheable", &format!("for another {}: each request goes to the origin by itself", span(seconds)));
    }
    if let Some(flight) = &explanation.flight {
        let phase = if flight.arriving { "its content is arriving" } else { "the origin has not answered yet" };
        page.line("under way", &format!("a fetch with {} waiting or reading along; {phase}", flight.followers));
    }
    if let Some(seconds) = explanation.origin_down_seconds {
        page.line("origin", &format!("counts as down for another {}", span(seconds)));
    }
    let now = &explanation.now;
    let style = match now.x_cache.as_str() {
        "HIT" => Style::Green,
        "" => Style::Red,
        _ => Style::Yellow,
    };
    let status =
        if now.x_cache.is_empty() { String::new() } else { format!("{}   {}", styled(&now.x_cache, style, colour), now.cache_status) };
    let mut label = "now";
    if !status.is_empty() {
        page.line(label, &status);
        label = "";
    }
    for words in &now.words {
        page.line(label, words);
        label = "";
    }
    page.out
}

struct Page {
    out: String,
    colour: bool,
    /// Whether Seawall makes the site's pages itself, and purges those that a change touches.
    kind: String,
}

/// The longest hold that there is, in seconds. Pages of a blog have it unless the configuration names another one: it stands for "until the blog
/// changes".
const HOLD_SECONDS_MAX: u64 = 365 * 86_400;

impl Page {
    fn line(&mut self, label: &str, text: &str) {
        // Padded before it is styled: codes have no width.
        let label = styled(format_args!("{label:LABEL$}"), Style::Bold, self.colour && !label.is_empty());
        let _ = writeln!(self.out, "{label}{text}");
    }

    fn inner(&mut self, label: &str, text: &str) {
        let label = styled(format_args!("{label:INNER$}"), Style::Dim, self.colour);
        let _ = writeln!(self.out, "{:LABEL$}{label}{text}", "");
    }

    fn gap(&mut self) {
        self.out.push('\n');
    }

    fn rules(&mut self, label: &str, rules: &[Rule]) {
        let mut label = label;
        for Rule { rule, decided, detail } in rules {
            let detail = if *decided { styled(format_args!("{detail}  <- decides"), Style::Yellow, self.colour) } else { detail.clone() };
            self.line(label, &format!("{rule:INNER$}{detail}"));
            label = "";
        }
    }

    fn variant(&mut self, variant: &Variant) {
        let kind = variant.content_type.as_deref().unwrap_or("without a media type");
        let coding = variant.content_coding.as_deref().map(|coding| format!(", {coding}")).unwrap_or_default();
        let selected = match &variant.refused {
            Some(rule) => format!("  <- fits, and is refused: {rule}"),
            None if variant.selected => "  <- for this request".to_owned(),
            None => String::new(),
        };
        self.line("stored", &format!("{}, {kind}{coding}{selected}", variant.status));
        self.inner("size", &format!("content {}, head {}", bytes(variant.body_bytes), bytes(variant.head_bytes)));
        if let Some(forms) = &variant.forms {
            let shown: Vec<_> = forms.iter().map(|(coding, length)| format!("{coding} {}", bytes(*length))).collect();
            self.inner(
                "also as",
                &if shown.is_empty() { "(nothing yet: forms are made as they are asked for)".to_owned() } else { shown.join(", ") },
            );
        }
        self.inner("in", &format!("{} ({} with everything)", variant.tiers.join(", "), bytes(variant.weight_bytes)));
        self.inner("age", &span(variant.age_seconds));
        self.inner("freshness", &freshness(variant, &self.kind));
        self.inner("when stale", &when_stale(variant));
        if !variant.vary.is_empty() {
            let field = |(name, value): &(String, Option<String>)| format!("{name}: {}", value.as_deref().unwrap_or("(absent)"));
            self.inner("vary", &variant.vary.iter().map(field).collect::<Vec<_>>().join("; "));
        }
        self.inner("purged", &purged(variant));
        if !variant.tags.is_empty() {
            self.inner("tags", &tags(&variant.tags));
        }
        let yes = |allowed| if allowed { "yes" } else { "no" };
        self.inner("with cookies", yes(variant.for_cookies));
        self.inner("with Authorization", yes(variant.for_authorization));
        if let Some(etag) = &variant.etag {
            self.inner("etag", etag);
        }
    }

    /// Says why the last answer was not stored. If `is_stored`, another one is stored, and this must not be taken for it.
    fn not_kept(&mut self, not_kept: &NotKept, is_stored: bool) {
        let NotKept { reason, words, status, seconds_ago, cookie, cookie_of, difference } = not_kept;
        let ago = format!("{} ago", span(*seconds_ago));
        match status {
            Some(status) => {
                if is_stored {
                    self.line("last answer", &format!("{status}, {ago}, was not stored: {reason}"));
                } else {
                    self.line("not stored", &format!("the origin's last answer, {status}, {ago}: {reason}"));
                }
                if let Some(words) = words {
                    self.line("", words);
                }
                if let Some(cookie) = cookie {
                    self.line("cookie", &whose(cookie, cookie_of.as_deref()));
                    self.line("", &remedy(cookie));
                }
                if let Some(difference) = difference {
                    self.line("difference", difference);
                }
            }
            None if is_stored => self.line("last answer", &format!("there was none, {ago}: {reason}")),
            None => self.line("not stored", &format!("the origin did not answer, {ago}: {reason}")),
        }
    }
}

fn whose(cookie: &str, of: Option<&str>) -> String {
    of.map_or_else(|| cookie.to_owned(), |of| format!("{cookie}: {of}"))
}

/// Says what an operator can do about a cookie that keeps pages from being stored.
fn remedy(cookie: &str) -> String {
    if policy::known_cookie(cookie).is_some_and(|known| known.is_somebodys) {
        return "Such a page is for its reader alone.".to_owned();
    }
    format!("If readers of the page do not need it, turn it off where it is set, or set drop_set_cookies = [\"{cookie}\"] in [cache].")
}

fn verdict(explanation: &Explanation) -> &'static str {
    match explanation.verdict {
        ExplainedVerdict::Lookup => "the cache is asked",
        ExplainedVerdict::Pass => "it passes: the cache is not asked",
        ExplainedVerdict::Purge => "it is a purge request",
        ExplainedVerdict::Webhook => "it is a webhook of the site's origin",
        ExplainedVerdict::Redirect => "it is redirected: the cache is not asked",
        ExplainedVerdict::Answered => "Seawall answers it before the cache is asked",
        ExplainedVerdict::Malformed => "it is malformed",
        ExplainedVerdict::Unknown => UNKNOWN_WORD,
    }
}

fn purged(variant: &Variant) -> String {
    let purges = variant.purges.iter().map(|purge| format!("{} ({})", purge.target.name(), purge.hardness.name())).collect::<Vec<_>>();
    match variant.purged {
        PurgedHow::No => "no".to_owned(),
        PurgedHow::InDoubt => "in doubt: another machine may have purged it".to_owned(),
        PurgedHow::Soft => format!("soft, by {}", purges.join(", ")),
        PurgedHow::Hard => format!("hard, by {}", purges.join(", ")),
        PurgedHow::Unknown => UNKNOWN_WORD.to_owned(),
    }
}

fn freshness(variant: &Variant, kind: &str) -> String {
    let is_blog = kind == "blog";
    let is_held = variant.freshness_source == FreshnessSource::Hold && variant.fresh && !variant.validate_always;
    if is_blog && is_held && variant.lifetime_seconds == HOLD_SECONDS_MAX {
        return "kept until the blog changes".to_owned();
    }
    let or_changed = match kind {
        "blog" if is_held => ", unless the blog changes before",
        "ghost" if is_held => ", unless Ghost says before that something has changed",
        _ => "",
    };
    let said = match variant.freshness_source {
        FreshnessSource::Explicit => "the origin said so",
        FreshnessSource::Heuristic => "a tenth of the time since Last-Modified",
        FreshnessSource::Hold => "the site's hold",
        FreshnessSource::None => "nobody said how long",
        FreshnessSource::Unknown => UNKNOWN_WORD,
    };
    let lifetime = span(variant.lifetime_seconds);
    if variant.validate_always {
        "none: the origin wants to be asked each time (no-cache)".to_owned()
    } else if variant.fresh {
        format!("fresh for another {} of {lifetime} ({said}){or_changed}", span(variant.fresh_seconds.unsigned_abs()))
    } else {
        format!("stale for {} after a lifetime of {lifetime} ({said})", span(variant.fresh_seconds.unsigned_abs()))
    }
}

fn when_stale(variant: &Variant) -> String {
    let windows =
        [(variant.stale_while_revalidate_seconds, "while it is validated"), (variant.stale_if_error_seconds, "if the origin fails")];
    let windows: Vec<String> =
        windows.iter().filter(|(seconds, _)| *seconds > 0).map(|(seconds, when)| format!("{} {when}", span(*seconds))).collect();
    if windows.is_empty() { "never served".to_owned() } else { format!("served for {}", windows.join(", ")) }
}

/// Writes tags in a line: the first of them, and how many there are if there are more.
fn tags(all: &[String]) -> String {
    let named = all.iter().take(TAGS_SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if all.len() > TAGS_SHOWN { format!("{named}, ... ({} in all)", all.len()) } else { named }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The line about freshness, of a page that is stored for a site of this kind.
    fn shown(kind: &str, source: &str, lifetime_seconds: u64) -> String {
        line(&explained(kind, "lookup", source, "no", lifetime_seconds), "freshness")
    }

    /// Returns what follows the label in the only line that has it.
    fn line(explanation: &Explanation, label: &str) -> String {
        let page = text(explanation, false);
        let line = page.lines().find_map(|line| line.trim().strip_prefix(label));
        line.expect("a line with this label").trim().to_owned()
    }

    /// Returns the explanation of a page that is stored for a site of this kind, with these words.
    fn explained(kind: &str, verdict: &str, source: &str, purged: &str, lifetime_seconds: u64) -> Explanation {
        let explanation = json!({
            "method": "GET", "url": "http://blog.example/", "site": {"name": "blog", "kind": kind, "hosts": []}, "rules": [],
            "verdict": verdict, "key": null, "lookup": [],
            "stored": [{
                "selected": true, "status": 200, "vary": [], "age_seconds": 10, "lifetime_seconds": lifetime_seconds, "fresh": true,
                "fresh_seconds": lifetime_seconds - 10, "freshness_source": source, "validate_always": false,
                "stale_while_revalidate_seconds": 0, "stale_if_error_seconds": 0, "purged": purged, "purges": [], "tags": [],
                "head_bytes": 1, "body_bytes": 2, "weight_bytes": 3, "content_type": "text/html", "content_coding": null, "forms": null,
                "etag": null, "for_cookies": true, "for_authorization": true, "tiers": ["memory"],
            }],
            "stored_under_other_scheme": false, "uncacheable_seconds": null, "not_kept": null, "flight": null,
            "origin_down_seconds": null, "now": {"cache_status": "", "x_cache": "", "words": []},
        });
        serde_json::from_value(explanation).expect("an explanation")
    }

    /// A newer server may say what this command does not know: the rest is still shown, and nothing is claimed that was not said.
    #[test]
    fn a_word_of_a_newer_server_is_shown_as_unknown() {
        let explanation = explained("generic", "questioned", "guessed", "gently", 60);
        assert_eq!(line(&explanation, "verdict"), UNKNOWN_WORD);
        assert_eq!(line(&explanation, "purged"), UNKNOWN_WORD);
        assert_eq!(line(&explanation, "freshness"), format!("fresh for another 50 s of 1 min ({UNKNOWN_WORD})"));
        assert_eq!(line(&explained("generic", "malformed", "none", "in doubt", 60), "verdict"), "it is malformed");
    }

    /// A year is not an answer to "when do my readers see what I wrote?": a change of the blog purges what it touches.
    #[test]
    fn the_page_of_a_blog_is_kept_until_the_blog_changes() {
        let year = 365 * 86_400;
        assert_eq!(shown("blog", "hold", year), "kept until the blog changes");
        assert_eq!(shown("blog", "hold", 3_600), "fresh for another 59 min 50 s of 1 h (the site's hold), unless the blog changes before");
        let held = "fresh for another 23 h 59 min of 1 d (the site's hold), unless Ghost says before that something has changed";
        assert_eq!(shown("ghost", "hold", 86_400), held);
        assert_eq!(shown("generic", "hold", year), "fresh for another 364 d 23 h of 365 d (the site's hold)");
        assert_eq!(shown("generic", "explicit", 60), "fresh for another 50 s of 1 min (the origin said so)");
    }

    #[test]
    fn many_tags_are_the_first_ten_and_their_number() {
        let numbered = |count: usize| (1..=count).map(|number| format!("post-{number}")).collect::<Vec<_>>();
        let ten = "post-1, post-2, post-3, post-4, post-5, post-6, post-7, post-8, post-9, post-10";
        assert_eq!(tags(&numbered(2)), "post-1, post-2");
        assert_eq!(tags(&numbered(10)), ten);
        assert_eq!(tags(&numbered(70)), format!("{ten}, ... (70 in all)"));
    }
}
