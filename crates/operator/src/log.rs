//! `seawall log`: the last requests that were not plain hits, with the rule that decided and what each took.
//!
//! The server keeps a list of them. This asks for what is new in it, and leaves out what is not wanted; it reads no file, and the access log is
//! something else.

use std::{io, time::Duration};

use admin_api::{Recent, RequestLine};
use semantics::{Timestamp, date::format_rfc3339};

use crate::{
    admin_client::{AdminClient, AdminError},
    foreign::{fit, visible, visible_json},
    terminal::{Style, styled},
    units::{bytes, micros},
};

/// The time from one question to the next, for whoever follows.
const EACH: Duration = Duration::from_millis(500);

/// The requests that the server keeps.
pub const KEPT: u16 = 4_096;

/// The requests in an answer from which there may be so many that the next question does not wait.
const CROWD: usize = 1_000;

/// The columns that an address or a name takes at most in a line of text. JSON has all of it.
const TEXT_MAX: usize = 400;

/// Says which requests are shown, and how.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The most of the last lines that are shown.
    pub lines: usize,
    /// Whether those that come later are shown as well, until somebody ends it.
    pub follow: bool,
    /// Whether each is a JSON object on a line.
    pub json: bool,
    /// Whether the columns of text have titles.
    pub titles: bool,
    /// Whether there is colour.
    pub colour: bool,
}

/// Takes the lines, and says when it is over.
pub trait Reader {
    /// Takes a line, with its end.
    ///
    /// # Errors
    /// When nobody reads any more: then it is over.
    fn line(&mut self, line: &str) -> io::Result<()>;

    /// Hears something that is not a request, in a sentence.
    fn tell(&mut self, words: &str);

    /// Waits so long, and tells whether it is over.
    fn is_over_after(&mut self, time: Duration) -> bool;
}

/// Says why the requests could not be shown.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The admin API gave no answer.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// The lines could not be written.
    #[error("the lines could not be written")]
    Write(#[from] io::Error),
}

/// Shows the last requests that `wanted` lets through to `reader`.
///
/// # Errors
/// When the server cannot be asked the first time, or nobody reads any more. Whoever follows hears of a server that is away, and goes on when it is back.
pub fn run(
    client: &AdminClient,
    options: &Options,
    wanted: impl Fn(&RequestLine) -> bool,
    reader: &mut impl Reader,
) -> Result<(), LogError> {
    shown(|after| client.get(&format!("/recent?after={after}&limit={KEPT}")), options, wanted, reader)
}

fn shown(
    mut ask: impl FnMut(u64) -> Result<Recent, AdminError>,
    options: &Options,
    wanted: impl Fn(&RequestLine) -> bool,
    reader: &mut impl Reader,
) -> Result<(), LogError> {
    let write = |line: &RequestLine, reader: &mut _| write(reader, &if options.json { json(line) } else { text(line, options.colour) });
    // What left the list before the first question is no loss.
    let Recent { mut next, requests, .. } = ask(0)?;
    let kept = requests.len();
    let wanted_ones: Vec<&RequestLine> = requests.iter().filter(|request| wanted(request)).collect();
    if wanted_ones.is_empty() && !options.follow {
        reader.tell(&match kept {
            0 => "There was no request yet that was not a plain hit.".to_owned(),
            1 => "One request is kept, and it is not of that kind.".to_owned(),
            _ => format!("{kept} requests are kept, and none of them is of that kind."),
        });
    }
    if options.titles && !options.json {
        reader.line(&titles(options.colour))?;
    }
    for request in &wanted_ones[wanted_ones.len().saturating_sub(options.lines)..] {
        write(request, reader)?;
    }
    let (mut is_away, mut pause) = (false, EACH);
    while options.follow && !reader.is_over_after(pause) {
        pause = EACH;
        let recent = match ask(next) {
            // It was started anew, and counts from the beginning.
            Ok(recent) if recent.next < next => ask(0).map(|recent| Recent { lost: 0, ..recent }),
            answer => answer,
        };
        match recent {
            Ok(recent) => {
                if is_away {
                    reader.tell("It answers again.");
                }
                is_away = false;
                if recent.lost > 0 {
                    let (were, they) = if recent.lost == 1 { ("request is", "it") } else { ("requests are", "they") };
                    reader.tell(&format!("{} {were} missing here: {they} had left the list before {they} could be read.", recent.lost));
                }
                for request in recent.requests.iter().filter(|request| wanted(request)) {
                    write(request, reader)?;
                }
                if recent.requests.len() >= CROWD {
                    pause = Duration::ZERO;
                }
                next = recent.next;
            }
            Err(error) => {
                if !is_away {
                    reader.tell(&format!("{}; it is asked again and again.", error.problem()));
                }
                is_away = true;
            }
        }
    }
    Ok(())
}

fn write(reader: &mut impl Reader, line: &str) -> Result<(), LogError> {
    Ok(reader.line(line)?)
}

/// Writes a request as a JSON object on a line.
fn json(line: &RequestLine) -> String {
    visible_json(&serde_json::to_string(line).expect("its keys are text")) + "\n"
}

/// Returns the titles of the columns of a line.
fn titles(colour: bool) -> String {
    let titles = format!(
        "{:<20} {:>6} {:<11} {:<24} {:>8} {:>8} {:>10} {}",
        "time (UTC)", "status", "result", "rule", "took", "origin", "sent", "request"
    );
    styled(titles, Style::Dim, colour) + "\n"
}

/// Writes a request as a line of text.
fn text(line: &RequestLine, colour: bool) -> String {
    let time = format_rfc3339(Timestamp::from_millis(line.at));
    let status = format!("{:>6}", line.status);
    let status = match line.status {
        500.. => styled(status, Style::Red, colour),
        400..500 => styled(status, Style::Yellow, colour),
        _ => status,
    };
    let result = format!("{:<11}", visible(&line.result));
    let result = match &*line.result {
        "stale" | "updating" | "hit" => styled(result, Style::Green, colour),
        "miss" | "expired" | "revalidated" | "bypass" => styled(result, Style::Yellow, colour),
        _ => result,
    };
    let rule = if line.detail.is_empty() { line.rule.clone() } else { format!("{} {}", line.rule, line.detail) };
    let rule = if rule.is_empty() { "-".to_owned() } else { short(&rule) };
    let origin = line.origin_micros.map_or_else(|| "-".to_owned(), micros);
    let mut marks = Vec::new();
    marks.extend(line.collapsed.then_some("shared"));
    marks.extend((!line.complete).then_some("broken off"));
    let marks = if marks.is_empty() { String::new() } else { format!(" ({})", marks.join(", ")) };
    let agent = if line.agent.is_empty() { String::new() } else { format!(" by {}", short(&line.agent)) };
    let from = if line.referrer.is_empty() { String::new() } else { format!(" from {}", short(&line.referrer)) };
    let who = styled(format!("{agent}{from}{marks}"), Style::Dim, colour && !(agent.is_empty() && from.is_empty() && marks.is_empty()));
    format!(
        "{} {status} {result} {rule:<24} {:>8} {origin:>8} {:>10} {} {}://{}{}{who}\n",
        String::from_utf8_lossy(&time),
        micros(line.micros),
        bytes(line.bytes),
        short(&line.method),
        short(&line.scheme),
        short(&line.host),
        short(&line.path),
    )
}

/// Writes what a stranger wrote, shortened if it is very long.
fn short(text: &str) -> String {
    fit(&visible(text), TEXT_MAX).into_owned()
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::foreign::columns;

    const ONCE: Options = Options { lines: 20, follow: false, json: false, titles: false, colour: false };

    /// Somebody who reads so many rounds, and notes all that comes.
    #[derive(Default)]
    struct Noted {
        rounds: usize,
        lines: Vec<String>,
        told: Vec<String>,
        waits: Vec<Duration>,
    }

    impl Reader for Noted {
        fn line(&mut self, line: &str) -> io::Result<()> {
            self.lines.push(line.to_owned());
            Ok(())
        }

        fn tell(&mut self, words: &str) {
            self.told.push(words.to_owned());
        }

        fn is_over_after(&mut self, time: Duration) -> bool {
            self.waits.push(time);
            self.waits.len() > self.rounds
        }
    }

    fn request(number: u64) -> RequestLine {
        RequestLine {
            number,
            at: 784_111_777_123,
            site: "blog".to_owned(),
            scheme: "https".to_owned(),
            host: "blog.example".to_owned(),
            method: "GET".to_owned(),
            path: format!("/{number}?page=…"),
            version: "2.0".to_owned(),
            status: 200,
            result: "miss".to_owned(),
            rule: "cold".to_owned(),
            complete: true,
            bytes: 7_390,
            micros: 31_402,
            origin_micros: Some(30_911),
            agent: "curl".to_owned(),
            ..RequestLine::default()
        }
    }

    fn recent(next: u64, lost: u64, numbers: impl IntoIterator<Item = u64>) -> Result<Recent, AdminError> {
        Ok(Recent { next, lost, requests: numbers.into_iter().map(request).collect() })
    }

    fn away() -> Result<Recent, AdminError> {
        Err(AdminError::NothingListens(SocketAddr::from(([127, 0, 0, 1], 9180))))
    }

    /// Returns what somebody reads of a server that gives these answers, and after which number it was asked each time.
    fn read(answers: Vec<Result<Recent, AdminError>>, options: Options, rounds: usize) -> (Noted, Vec<u64>) {
        let (mut noted, mut asked, mut answers) = (Noted { rounds, ..Noted::default() }, Vec::new(), answers.into_iter());
        let ask = |after| {
            asked.push(after);
            answers.next().expect("it is not asked more often")
        };
        shown(ask, &options, |request| request.number != 4, &mut noted).expect("an answer");
        (noted, asked)
    }

    fn numbers(noted: &Noted) -> Vec<u64> {
        let number = |line: &String| line.split("blog.example/").nth(1)?.split('?').next()?.parse().ok();
        noted.lines.iter().map(|line| number(line).expect("an address")).collect()
    }

    #[test]
    fn a_line_says_what_was_decided_and_what_it_took() {
        let (noted, _) = read(vec![recent(8, 900, [7])], ONCE, 0);
        let expected = "1994-11-06T08:49:37Z    200 miss        cold                        31 ms    31 ms    7.2 KiB GET https://blog.example/7?page=… by curl\n";
        assert_eq!(noted.lines, [expected]);
        assert!(noted.told.is_empty(), "what left the list before anybody asked is no loss: {:?}", noted.told);
        let shared =
            RequestLine { collapsed: true, complete: false, rule: "cookie".to_owned(), detail: "PHPSESSID".to_owned(), ..request(1) };
        let line = text(&shared, false);
        assert!(line.contains(" cookie PHPSESSID ") && line.ends_with(" by curl (shared, broken off)\n"), "{line}");
        // The titles stand above their columns.
        let (titles, line) = (titles(false), text(&request(7), false));
        for (title, value) in [("result", "miss"), ("rule", "cold"), ("request", "GET https")] {
            assert_eq!(titles.find(title), line.find(value), "{title}");
        }
    }

    #[test]
    fn the_last_ones_that_are_wanted_are_shown_and_it_ends() {
        let (noted, asked) = read(vec![recent(6, 0, 1..=5)], Options { lines: 2, ..ONCE }, 0);
        assert_eq!((numbers(&noted), asked), (vec![3, 5], vec![0]));
        let (noted, _) = read(vec![recent(5, 0, [4])], ONCE, 0);
        assert_eq!(noted.told, ["One request is kept, and it is not of that kind."]);
        let (noted, _) = read(vec![recent(0, 0, [])], ONCE, 0);
        assert_eq!(noted.told, ["There was no request yet that was not a plain hit."]);
    }

    #[test]
    fn whoever_follows_sees_each_request_once_and_hears_what_is_missing() {
        let answers = vec![recent(3, 0, 1..3), recent(5, 0, 3..5), recent(5, 0, []), recent(9, 2, 7..9)];
        let (noted, asked) = read(answers, Options { follow: true, ..ONCE }, 3);
        assert_eq!((numbers(&noted), asked), (vec![1, 2, 3, 7, 8], vec![0, 3, 5, 5]));
        assert_eq!(noted.told, ["2 requests are missing here: they had left the list before they could be read."]);
    }

    #[test]
    fn whoever_follows_outlives_a_server_that_is_started_anew() {
        let answers = vec![recent(900, 0, [899]), away(), away(), recent(3, 0, []), recent(3, 0, 1..3), recent(5, 0, [3])];
        let (noted, asked) = read(answers, Options { follow: true, ..ONCE }, 4);
        assert_eq!(asked, [0, 900, 900, 900, 0, 3]);
        assert_eq!(numbers(&noted), [899, 1, 2, 3]);
        assert_eq!(noted.told, ["nothing listens at 127.0.0.1:9180; it is asked again and again.", "It answers again."]);
    }

    #[test]
    fn in_a_crowd_the_next_question_does_not_wait() {
        let answers = vec![recent(1, 0, []), recent(2_001, 0, 1..2_001), recent(2_001, 0, [])];
        let (noted, _) = read(answers, Options { follow: true, ..ONCE }, 2);
        assert_eq!(noted.waits, [EACH, Duration::ZERO, EACH]);
    }

    #[test]
    fn a_reader_that_is_gone_ends_it() {
        struct Gone;
        impl Reader for Gone {
            fn line(&mut self, _: &str) -> io::Result<()> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn tell(&mut self, _: &str) {}
            fn is_over_after(&mut self, _: Duration) -> bool {
                false
            }
        }
        let outcome = shown(|_| recent(2, 0, [1]), &Options { follow: true, ..ONCE }, |_| true, &mut Gone);
        assert!(matches!(outcome, Err(LogError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe));
    }

    #[test]
    fn what_strangers_wrote_is_text_on_one_line() {
        let hostile = "\u{1b}[31m\u{9b}2J\r\nGET /admin\u{202e}<b>\u{7f}";
        let long = "x".repeat(8 << 10);
        let line = RequestLine {
            path: format!("/{hostile}{long}"),
            agent: hostile.to_owned(),
            referrer: long,
            detail: hostile.to_owned(),
            host: hostile.to_owned(),
            method: hostile.to_owned(),
            ..request(1)
        };
        let acts = |letter: char| letter.is_control() || letter == '\u{202e}';
        let shown = text(&line, false);
        assert!(!shown.trim_end_matches('\n').contains(acts), "{shown}");
        assert_eq!(shown.matches('\n').count(), 1);
        assert!(columns(&shown) < 7 * TEXT_MAX + 120, "{}", shown.len());
        let shown = json(&line);
        assert!(!shown.trim_end_matches('\n').contains(acts), "{shown}");
        assert_eq!(serde_json::from_str::<RequestLine>(&shown).expect("JSON"), line, "nothing is lost");
    }
}
