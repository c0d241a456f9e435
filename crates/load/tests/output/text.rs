//! The forms of text: the summary, what scripts read, tables.

use std::{ops::ControlFlow, time::Duration};

use load::{
    Results, Watch as _,
    find_limit::{Beyond, Bounds, Excess, SearchResult, StepResult, TriedRate},
    output::{Format, Ink, LineForm, Lines, hgrm},
    record::ErrorClass,
    results::Limit,
};
use serde_json::Value;

use crate::samples::{self, Like};

fn text(results: &Results, format: Format) -> String {
    format.write(results, Ink::Plain)
}

fn every_kind() -> Vec<Results> {
    vec![
        samples::results(&Like::default()),
        samples::results(&Like { open: true, failing: 7, class: ErrorClass::Status, warm_up: 2, seconds: 5, ..Like::default() }),
        samples::results(&Like { seconds: 1, rate: 1, clients: 1, missing: 0, ..Like::default() }),
        samples::results(&Like { seconds: 3, failing: 1, class: ErrorClass::Refused, ..Like::default() }),
        samples::nothing(),
        samples::hostile(),
    ]
}

#[test]
fn no_form_has_what_a_terminal_would_obey_or_a_number_that_is_none() {
    for results in every_kind() {
        for format in Format::ALL {
            let text = text(&results, format);
            assert!(!text.contains('\u{1b}'), "{}: {text:?}", format.name());
            // Base64 may say anything.
            if !matches!(format, Format::Json | Format::Ndjson) {
                assert!(!text.contains("NaN") && !text.contains("inf"), "{}: {text}", format.name());
            }
        }
        assert!(!hgrm(&results).expect("ours").contains("NaN"));
    }
}

#[test]
fn a_summary_says_what_was_asked_what_came_of_it_and_why() {
    let mut results = samples::results(&Like { failing: 10, class: ErrorClass::Status, ..Like::default() });
    results.verdict.hint = Some("Nothing needs to be done.".to_owned());
    let text = text(&results, Format::Text);
    for part in [
        "https://localhost:8443/2026/a-post-that-everybody-reads/\n",
        "HTTP/1.1 over TLS, 500 clients that stay, 30 s\n",
        "  1,800 good answers a second (2,000 answers a second; 10.0 % failed)\n",
        "Requests     60,000 in 30 s\n",
        "Failures     6,000 (10.0 %)\n  6,000 answers with an unexpected status\n",
        "Statuses     200: 54,000, 503: 6,000\n",
        "Connections  500, each made within: median",
        "125 of 500 resumed",
        "  50 %",
        "  99.9 %",
        "no correction applies",
        "  hit ",
        "of the answers reached the origin.",
        "Verdict      The server was the bottleneck",
        "             Nothing needs to be done.\n",
    ] {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
    assert!(text.lines().all(|line| !line.ends_with(' ')), "{text}");
}

#[test]
fn the_headline_counts_good_answers_and_a_refusal_is_none() {
    // 199 of 200 answers are refused.
    let like = Like { failing: 1, class: ErrorClass::Status, seconds: 3, ..Like::default() };
    let mut results = samples::results(&like);
    results.errors.insert(ErrorClass::Status, 5_970);
    results.verdict.limit = Limit::Generator;
    results.verdict.at_least = true;
    let plain = text(&results, Format::Text);
    assert!(plain.contains("\n  10.0 good answers a second (2,000 answers a second; 99.50 % failed)\n"), "{plain}");
    let coloured = Format::Text.write(&results, Ink::Coloured);
    assert!(coloured.contains("\u{1b}[31m\u{1b}[1m10.0 good answers"), "it is red: {coloured:?}");
    let page = load::output::html(&results);
    assert!(
        page.contains("<h1 class=\"bad\">10.0 good answers a second<small class=\"after\">2,000 answers a second; 99.50\u{a0}% failed")
    );
    assert!(text(&results, Format::Markdown).starts_with("**10.0 good answers a second (2,000 answers"));
    // Timeouts are not answers: both rates are the same.
    let timeouts = text(&samples::results(&Like { failing: 2, seconds: 3, ..Like::default() }), Format::Text);
    assert!(timeouts.contains("\n  1,000 good answers a second (50.0 % failed)\n"), "{timeouts}");
}

#[test]
fn a_search_says_the_limit_and_how_it_was_found_and_blames_nobody() {
    let seen = StepResult {
        requests: 195,
        seconds: 1.0,
        p99: Duration::from_millis(12),
        failed: 0.0,
        well: 195.0,
        generator: false,
        stalled: false,
    };
    let mut results = samples::results(&Like { open: true, seconds: 3, rate: 195, ..Like::default() });
    (results.verdict.limit, results.verdict.at_least) = (Limit::Generator, true);
    let tried = |rate, excess| TriedRate { rate, seconds: 1.0, seen: seen.clone(), excess };
    results.found = Some(SearchResult {
        rate: Some(195.2),
        held: Some(60.0),
        at_least: false,
        ended_early: false,
        bounds: Bounds::default(),
        beyond: Some(Beyond { rate: 210.0, excess: Excess::Errors(0.038) }),
        tried: vec![tried(195.2, None), tried(210.0, Some(Excess::Errors(0.038)))],
    });
    let plain = text(&results, Format::Text);
    for part in [
        "\n  the highest rate: 195 requests a second (at 210/s, 3.8 % of the requests failed)\n",
        "195/s",
        "kept up",
        "Verdict      The server keeps up with 195/s, held for 60 s",
    ] {
        assert!(plain.contains(part), "{part:?} is missing in\n{plain}");
    }
    assert!(!plain.contains("bottleneck") && !plain.contains("at least"), "{plain}");
    let page = load::output::html(&results);
    assert!(page.contains("<h1><small>the highest rate:</small>195 requests a second<small class=\"after\">at 210"));
    assert!(page.contains("The rates that were tried") && !page.contains("bottleneck"));
}

#[test]
fn a_run_that_somebody_ended_says_so() {
    let mut results = samples::results(&Like { seconds: 30, ..Like::default() });
    assert!(!text(&results, Format::Text).contains("Ended"));
    results.ended_early = Some(3.0);
    for format in [Format::Text, Format::Markdown] {
        assert!(text(&results, format).contains("by you, after 3 s of 30 s"), "{}", format.name());
    }
    assert!(load::output::html(&results).contains("by you, after 3\u{a0}s of 30\u{a0}s"));
}

#[test]
fn a_check_for_leaks_that_passed_says_so() {
    let mut results = samples::results(&Like { seconds: 3, ..Like::default() });
    assert!(!text(&results, Format::Text).contains("Leaks"));
    results.run.leak_check = true;
    assert!(text(&results, Format::Text).contains("\nLeaks        none: 6,000 answers were searched"));
    assert!(load::output::html(&results).contains("none: 6,000 answers were searched"));
    results.errors.insert(ErrorClass::Leak, 1);
    assert!(!text(&results, Format::Text).contains("none: 6,000"));
}

#[test]
fn a_shape_is_named_with_its_sources() {
    let mut results = samples::results(&Like { seconds: 3, ..Like::default() });
    results.run.shape = "hacker-news".to_owned();
    results.run.shape_sources = vec!["A post that was read, by its author".to_owned()];
    assert!(text(&results, Format::Text).contains("HTTP/1.1 over TLS, the shape hacker-news, "));
    let page = load::output::html(&results);
    assert!(page.contains("<dd>hacker-news</dd>") && page.contains("A post that was read, by its author"));
}

#[test]
fn misses_that_share_a_request_are_told() {
    let mut results = samples::results(&Like { seconds: 3, ..Like::default() });
    assert!(!text(&results, Format::Text).contains("shared"), "each miss has asked the origin");
    let misses = results.cache[&load::answer::Outcome::Miss].requests + results.cache[&load::answer::Outcome::Bypass].requests;
    results.origin_share = Some((misses - 10) as f64 / results.answered as f64);
    assert!(text(&results, Format::Text).contains("10 of 159 misses shared the answer"), "{}", text(&results, Format::Text));
}

#[test]
fn only_failures_that_occurred_are_listed() {
    let text = text(&samples::results(&Like::default()), Format::Text);
    assert!(text.contains("Failures     none\n"), "{text}");
    assert!(!text.contains("timeouts") && !text.contains("Statuses"), "{text}");
}

#[test]
fn a_percentile_that_no_request_is_beyond_is_not_shown() {
    let few = text(&samples::results(&Like { seconds: 1, rate: 30, ..Like::default() }), Format::Text);
    assert!(few.contains("\n  95 %") && !few.contains("\n  99 %"), "one of 30 is beyond 95 %, none beyond 99 %:\n{few}");
    let one = text(&samples::results(&Like { seconds: 1, rate: 1, clients: 1, ..Like::default() }), Format::Text);
    assert!(
        one.contains("  1 request a second\n") && one.contains("\n  50 %") && one.contains("\n  longest") && !one.contains("\n  75 %"),
        "{one}"
    );
}

#[test]
fn an_open_schedule_shows_the_uncorrected_latency_beside_the_corrected_one() {
    let open = text(&samples::results(&Like { open: true, seconds: 3, ..Like::default() }), Format::Text);
    assert!(open.contains("last byte  uncorrected  first byte"), "{open}");
    assert!(!open.contains("no correction applies"), "{open}");
}

#[test]
fn a_figure_that_the_generator_limited_reads_at_least() {
    let mut results = samples::results(&Like { seconds: 3, ..Like::default() });
    results.verdict.limit = Limit::Generator;
    results.verdict.at_least = true;
    assert!(text(&results, Format::Text).contains("at least 2,000 requests a second"));
    assert!(text(&results, Format::Markdown).contains("at least 2,000"));
}

#[test]
fn a_cache_that_says_nothing_has_no_table() {
    let text = text(&samples::results(&Like { missing: 0, seconds: 3, ..Like::default() }), Format::Text);
    assert!(!text.contains("Cache"), "{text}");
}

#[test]
fn colours_are_for_terminals_alone_and_change_no_word() {
    let results = samples::results(&Like { failing: 10, seconds: 3, ..Like::default() });
    let coloured = Format::Text.write(&results, Ink::Coloured);
    assert!(coloured.contains("\u{1b}[31m"), "failures are red");
    let mut plain = String::new();
    for (index, part) in coloured.split("\u{1b}[").enumerate() {
        plain += if index == 0 { part } else { part.split_once('m').expect("a colour").1 };
    }
    assert_eq!(plain.replace(" \n", "\n"), text(&results, Format::Text).replace(" \n", "\n"));
    assert!(!Format::Json.write(&results, Ink::Coloured).contains('\u{1b}'));
}

/// Returns the value after a name, as `grep | awk` finds it.
fn after<'a>(text: &'a str, name: &str) -> &'a str {
    let line = text.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_else(|| panic!("{name} is missing in\n{text}"));
    line.trim_start()[name.len()..].split_whitespace().next().expect("a value")
}

#[test]
fn scripts_for_apache_bench_find_their_lines() {
    let text = text(&samples::results(&Like { failing: 10, class: ErrorClass::Status, ..Like::default() }), Format::Ab);
    assert_eq!(after(&text, "Complete requests:"), "60000");
    assert_eq!(after(&text, "Failed requests:"), "0", "a status is not a failure there");
    assert_eq!(after(&text, "Non-2xx responses:"), "6000");
    assert_eq!(after(&text, "Requests per second:"), "2000.00");
    assert_eq!(after(&text, "Concurrency Level:"), "500");
    assert_eq!(after(&text, "Time taken for tests:"), "30.000");
    assert_eq!(after(&text, "Time per request:"), "250.000");
    assert!(text.contains("Time per request:       0.500 [ms] (mean, across all concurrent requests)\n"), "{text}");
    assert!(text.contains("Percentage of the requests served within a certain time (ms)\n  50%  "), "{text}");
    assert!(text.trim_end().ends_with("(longest request)"), "{text}");
    // 500 connections for 60,000 requests.
    assert!(text.contains("\nConnect:        0     0 "), "{text}");
    assert_eq!(after(&text, "Server Hostname:"), "localhost");
    assert_eq!(after(&text, "Document Path:"), "/2026/a-post-that-everybody-reads/");
}

#[test]
fn scripts_for_wrk_find_their_lines() {
    let text = text(&samples::results(&Like { failing: 100, ..Like::default() }), Format::Wrk);
    // It counts requests that have an answer: 600 of 60,000 have none.
    assert_eq!(after(&text, "Requests/sec:"), "1980.00");
    assert!(
        text.starts_with("Running 30s test @ https://localhost:8443/2026/a-post-that-everybody-reads/\n  2 threads and 500 connections\n"),
        "{text}"
    );
    assert!(text.contains("  59400 requests in 30.00s, "), "{text}");
    assert!(text.contains("  Socket errors: connect 0, read 0, write 0, timeout 600\n"), "{text}");
    assert!(text.contains("  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency "), "{text}");
    assert!(text.contains("  Latency Distribution\n     50%   "), "{text}");
}

#[test]
fn lines_come_second_by_second_and_the_result_is_the_last_one() {
    let results = samples::results(&Like { seconds: 4, ..Like::default() });
    let text = text(&results, Format::Ndjson);
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let types: Vec<_> = lines.iter().map(|line| line["type"].as_str().expect("a type")).collect();
    assert_eq!(types, ["second", "second", "second", "second", "second", "result"]);
    assert_eq!(lines[1]["second"], 1);
    assert_eq!(lines[5]["requests"], 8000);
    let csv = Format::Csv.write(&results, Ink::Plain);
    let widths: Vec<_> = csv.lines().map(|line| line.split(',').count()).collect();
    assert_eq!(widths.len(), 6, "names, and five seconds");
    assert!(widths.iter().all(|width| *width == widths[0]), "{csv}");
}

#[test]
fn a_run_ends_when_the_reader_of_its_lines_is_gone() {
    struct Gone;
    impl std::io::Write for Gone {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let results = samples::results(&Like { seconds: 1, ..Like::default() });
    let mut lines = Lines::new(LineForm::Json, Gone);
    assert_eq!(lines.second(&results.seconds[0]), ControlFlow::Break(()));
    lines.finish(&results).expect("whoever has seen enough is not a failure");
}

#[test]
fn a_percentile_file_is_what_plotters_of_hdr_histogram_read() {
    let results = samples::results(&Like { seconds: 5, ..Like::default() });
    let text = hgrm(&results).expect("ours");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("       Value     Percentile TotalCount 1/(1-Percentile)"));
    assert_eq!(lines.next(), Some(""));
    let rows: Vec<Vec<f64>> = lines
        .by_ref()
        .take_while(|line| !line.starts_with('#'))
        .map(|line| line.split_whitespace().map(|value| value.parse().expect("a number")).collect())
        .collect();
    assert!(rows.windows(2).all(|pair| pair[0][0] <= pair[1][0] && pair[0][1] <= pair[1][1] && pair[0][2] <= pair[1][2]), "{text}");
    let last = rows.last().expect("a row");
    assert_eq!((last[1], last[2], last.len()), (1.0, 10_000.0, 3));
    assert!((last[0] - results.latency.max).abs() < 0.001);
    assert!(text.contains("#[Max     ="), "{text}");
}

#[test]
fn text_of_strangers_does_not_break_a_markdown_table() {
    let text = text(&samples::hostile(), Format::Markdown);
    let rows: Vec<_> = text.lines().filter(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 5);
    assert!(!rows.iter().any(|row| row.contains("<img")), "{text}");
}
