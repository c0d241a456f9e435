//! Judges whether something is wrong at this moment, as pure functions; and what is then said of it.

use std::borrow::Cow;

use admin_api::CertificateState;
use semantics::{Timestamp, date::format_http_date};

use super::{DiskFact, OriginFact, Rules, notice::lasted};

/// The fewest errors of the server in five minutes that are more than an accident.
const SERVER_ERRORS_MIN: u64 = 10;

/// The time before its end at which a certificate is wrong in any case: whoever renews it by hand, or thought to have a day left, has none.
const LAST_DAY: std::time::Duration = std::time::Duration::from_secs(86_400);

/// The most bytes of another one's words that stand in a text.
const WORDS_BYTES_MAX: usize = 300;

/// A judgement of one thing at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is wrong, and this says how.
    Wrong(String),
    /// It is right.
    Right,
    /// It cannot be told.
    Unknown,
}

/// Returns a site, or a part of one, as it is called in a sentence. The only site may have no name of its own: its configuration says no host.
fn named(about: &str) -> Cow<'_, str> {
    match about.strip_prefix("default") {
        Some("") => "this site".into(),
        Some(route) if route.starts_with('/') => format!("{route} of this site").into(),
        Some(_) | None => about.into(),
    }
}

/// Judges a server by the last attempt to connect to it.
pub(super) fn origin(fact: &OriginFact) -> (String, Verdict) {
    let OriginFact { about, address, up } = fact;
    let verdict = match up {
        Some(false) => Verdict::Wrong(format!("The origin of {} at {address} cannot be connected to.", named(about))),
        Some(true) => Verdict::Right,
        None => Verdict::Unknown,
    };
    (about.clone(), verdict)
}

/// Judges a site by how many of its responses in five minutes were errors of the server: so many of so many.
pub(super) fn errors(site: &str, (errors, responses): (u64, u64), rules: &Rules) -> (String, Verdict) {
    let is_wrong = errors >= SERVER_ERRORS_MIN && errors * 100 >= responses * u64::from(rules.server_errors);
    let verdict = if is_wrong {
        let share = errors * 100 / responses.max(1);
        Verdict::Wrong(format!(
            "{share} % of the responses of {} in the last five minutes were server errors: {errors} of {responses}. Each error counts for five minutes.",
            named(site)
        ))
    } else {
        Verdict::Right
    };
    (site.to_owned(), verdict)
}

/// Judges a site by its hit ratio in the last hour, and in the same hour of the week before.
pub(super) fn ratio(site: &str, (present, before): (Option<f64>, Option<f64>), rules: &Rules) -> (String, Verdict) {
    let verdict = match (present, before) {
        (Some(present), Some(before)) if (before - present) * 100.0 >= f64::from(rules.hit_ratio_fall) => Verdict::Wrong(format!(
            "The hit ratio of {} was {:.0} % in the last hour; a week ago, at the same time, it was {:.0} %.",
            named(site),
            present * 100.0,
            before * 100.0
        )),
        (Some(_), Some(_)) => Verdict::Right,
        _ => Verdict::Unknown,
    };
    (site.to_owned(), verdict)
}

/// Judges a certificate by its end, and, if Seawall renews it, by whether that fails.
///
/// A certificate that lives for six days is always near its end: where Seawall renews it, only a renewal that fails makes it wrong before the last day.
pub(super) fn certificate(state: &CertificateState, now: Timestamp, rules: &Rules) -> (String, Verdict) {
    let CertificateState { name, not_after, next, last_error, .. } = state;
    let why = last_error.as_deref().map(|error| format!(" The last attempt failed: {}.", words(error).trim_end_matches('.')));
    let why = why.as_deref().unwrap_or_default();
    let verdict = match not_after {
        None if last_error.is_none() => Verdict::Unknown,
        None => Verdict::Wrong(format!("There is no certificate for {name}.{why}")),
        Some(end) => {
            let end = Timestamp::from_secs(*end);
            let date = String::from_utf8_lossy(&format_http_date(end)).into_owned();
            let left = end.since(now);
            let is_renewed = next.is_some() && last_error.is_none();
            if now >= end {
                Verdict::Wrong(format!("The certificate for {name} ended on {date}.{why}"))
            } else if left < LAST_DAY || (left < rules.certificate && !is_renewed) {
                Verdict::Wrong(format!("The certificate for {name} ends in {}, on {date}.{why}", lasted(left.as_secs())))
            } else {
                Verdict::Right
            }
        }
    };
    (name.clone(), verdict)
}

/// Judges a disk by what is free on it, and by what Seawall has met there.
pub(super) fn disk(fact: &DiskFact, rules: &Rules) -> (String, Verdict) {
    let DiskFact { folder, free, trouble } = fact;
    let verdict = match (trouble, free) {
        (Some(trouble), _) => Verdict::Wrong(format!("The disk of {folder} {trouble}: nothing new is written there.")),
        (None, Some(free)) if *free < rules.disk_free => Verdict::Wrong(format!("The disk of {folder} has {} left.", mebibytes(*free))),
        (None, _) => Verdict::Right,
    };
    (folder.clone(), verdict)
}

fn mebibytes(bytes: u64) -> String {
    match bytes >> 20 {
        mebibytes @ 0..10_240 => format!("{mebibytes} MiB"),
        mebibytes => format!("{} GiB", mebibytes >> 10),
    }
}

/// Takes another one's words into a text: an authority may quote a stranger's page. They go to chats, which have marks of their own.
fn words(text: &str) -> String {
    let plain = |c: char| match c {
        '<' => Some('‹'),
        '>' => Some('›'),
        c if c.is_control() => Some(' '),
        '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => None,
        c => Some(c),
    };
    let mut text: String = text.chars().filter_map(plain).collect();
    shortened(&mut text, WORDS_BYTES_MAX);
    text
}

/// Shortens a text to so many bytes, whole characters.
pub(super) fn shortened(text: &mut String, bytes_max: usize) {
    if text.len() > bytes_max {
        let end = (0..=bytes_max - '…'.len_utf8()).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        text.truncate(end);
        text.push('…');
        text.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_767_225_600);
    const DAY: u64 = 86_400;

    fn is_wrong((_, verdict): (String, Verdict)) -> Option<bool> {
        match verdict {
            Verdict::Wrong(_) => Some(true),
            Verdict::Right => Some(false),
            Verdict::Unknown => None,
        }
    }

    #[test]
    fn a_site_without_a_name_is_called_this_site() {
        for (about, said) in [
            ("default", "this site"),
            ("default/api", "/api of this site"),
            ("default.example", "default.example"),
            ("blog.example", "blog.example"),
        ] {
            assert_eq!(named(about), said);
        }
    }

    #[test]
    fn an_origin_that_was_not_asked_is_neither_up_nor_down() {
        for (up, wrong) in [(Some(false), Some(true)), (Some(true), Some(false)), (None, None)] {
            let fact = OriginFact { about: "a.example".to_owned(), address: "http://127.0.0.1:1".to_owned(), up };
            assert_eq!(is_wrong(origin(&fact)), wrong, "{up:?}");
        }
    }

    #[test]
    fn a_share_of_errors_is_wrong_unless_they_are_few() {
        let rules = Rules::default();
        for (of, wrong) in
            [((0, 0), false), ((9, 9), false), ((10, 10), true), ((10, 200), true), ((10, 201), false), ((1_000, 20_001), false)]
        {
            assert_eq!(is_wrong(errors("a.example", of, &rules)), Some(wrong), "{of:?}");
        }
    }

    #[test]
    fn a_hit_ratio_is_judged_by_the_week_before_alone() {
        let rules = Rules::default();
        for (of, wrong) in [
            ((Some(0.60), Some(0.80)), Some(true)),
            ((Some(0.61), Some(0.80)), Some(false)),
            ((Some(0.95), Some(0.80)), Some(false)),
            ((Some(0.05), Some(0.10)), Some(false)),
            ((None, Some(0.80)), None),
            ((Some(0.10), None), None),
        ] {
            assert_eq!(is_wrong(ratio("a.example", of, &rules)), wrong, "{of:?}");
        }
    }

    /// What Let's Encrypt's short-lived certificates (six days) and a file that somebody renews by hand have in common is that their end is near.
    #[test]
    fn a_certificate_is_wrong_when_nobody_renews_it_in_time() {
        let rules = Rules::default();
        let state = |left: Option<u64>, renews: bool, error: Option<&str>| CertificateState {
            name: "a.example".to_owned(),
            authority: "https://a/dir".to_owned(),
            not_after: left.map(|left| NOW.as_secs() + left),
            next: renews.then_some(NOW.as_secs() + 60),
            last_error: error.map(str::to_owned),
        };
        for (left, renews, error, wrong) in [
            (Some(30 * DAY), true, None, Some(false)),
            (Some(20 * DAY), true, Some("no address"), Some(false)),
            (Some(6 * DAY), true, None, Some(false)),
            (Some(6 * DAY), true, Some("no address"), Some(true)),
            (Some(6 * DAY), false, None, Some(true)),
            (Some(8 * DAY), false, None, Some(false)),
            (Some(DAY - 1), true, None, Some(true)),
            (Some(0), true, None, Some(true)),
            (None, true, None, None),
            (None, true, Some("no address"), Some(true)),
        ] {
            assert_eq!(is_wrong(certificate(&state(left, renews, error), NOW, &rules)), wrong, "{left:?} {renews} {error:?}");
        }
        let (_, verdict) = certificate(&state(Some(2 * DAY), true, Some("no address")), NOW, &rules);
        let expected =
            "The certificate for a.example ends in 2 days, on Sat, 03 Jan 2026 00:00:00 GMT. The last attempt failed: no address.";
        assert_eq!(verdict, Verdict::Wrong(expected.to_owned()));
    }

    /// An authority quotes what it found at the name: a page of somebody else.
    #[test]
    fn what_an_authority_quotes_stays_text() {
        let error = format!("Invalid response: <!channel> \u{202e}\r\n{}", "x".repeat(8_000));
        let state = CertificateState {
            name: "a.example".to_owned(),
            authority: String::new(),
            not_after: None,
            next: None,
            last_error: Some(error),
        };
        let (_, verdict) = certificate(&state, NOW, &Rules::default());
        let Verdict::Wrong(text) = verdict else { panic!("{verdict:?}") };
        assert!(text.contains("‹!channel›") && text.len() < 500, "{text}");
        assert!(!text.contains(['<', '\n', '\u{202e}']), "{text}");
    }

    #[test]
    fn a_disk_is_wrong_when_it_is_nearly_full_or_takes_nothing() {
        let rules = Rules { disk_free: 1 << 30, ..Rules::default() };
        let fact = |free, trouble| DiskFact { folder: "/var/cache/seawall".to_owned(), free, trouble };
        for (free, trouble, wrong) in [
            (Some(1 << 30), None, false),
            (Some((1 << 30) - 1), None, true),
            (None, None, false),
            (Some(1 << 40), Some("is read-only"), true),
        ] {
            assert_eq!(is_wrong(disk(&fact(free, trouble), &rules)), Some(wrong), "{free:?} {trouble:?}");
        }
        let none = Rules { disk_free: 0, certificate: Duration::ZERO, ..rules };
        assert_eq!(is_wrong(disk(&fact(Some(0), None), &none)), Some(false));
    }
}
