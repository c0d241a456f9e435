use std::time::Duration;

use super::*;
use crate::{
    answer::Outcome,
    record::{ErrorClass, Interval, Recorder, Sample, Tally},
    results::{Kind, Run, Second, Verdict},
};

const fn verdict(limit: Limit) -> Verdict {
    Verdict { limit, at_least: matches!(limit, Limit::Generator), reason: String::new(), hint: None }
}

fn sample(n: u64, took: Duration) -> Sample {
    let at = Duration::from_millis(n * 5);
    Sample {
        intended: at,
        sent: at,
        first_byte: Some(at + took / 2),
        ended: at + took,
        status: if n.is_multiple_of(50) { 503 } else { 200 },
        bytes: 100,
        outcome: if n.is_multiple_of(3) { Outcome::Miss } else { Outcome::Hit },
        origin_reached: Some(n.is_multiple_of(3)),
        page: None,
        error: n.is_multiple_of(50).then_some(ErrorClass::Status),
    }
}

/// Returns the results of a run that recorded samples.
fn results(samples: impl IntoIterator<Item = Sample>) -> Results {
    let (sender, receiver) = std::sync::mpsc::sync_channel(100);
    let mut recorder = Recorder::new(0, Duration::ZERO, sender);
    let mut end = Duration::ZERO;
    for sample in samples {
        recorder.ended(&sample);
        end = sample.ended;
    }
    let tally = recorder.finish(end);
    let second = |row: Interval| Second::new(row.second, row.length, &row.tally);
    let run = Run { urls: vec!["http://127.0.0.1/".to_owned()], urls_count: 1, began: "2026-11-23T12:00:00Z".to_owned(), ..Run::default() };
    let seconds = receiver.try_iter().map(second).collect();
    Results::new(run, end, &tally, seconds, verdict(Limit::Server))
}

/// Returns the results as they come back from a file: what is not in the JSON is not there.
fn kept(results: &Results) -> Results {
    serde_json::from_str(&serde_json::to_string(results).expect("JSON")).expect("results")
}

/// Returns a time that differs for each request, between some µs and a second.
fn took(n: u64) -> Duration {
    Duration::from_micros(30 + (n * 7_919) % 1_000 * ((n * 104_729) % 1_000))
}

#[test]
fn results_of_machines_add_up_to_what_one_would_have_found() {
    // A recorder is told of requests in the order in which they end.
    let mut all: Vec<Sample> = (0..2_000).map(|n| sample(n, took(n))).collect();
    all.sort_by_key(|sample| sample.ended);
    let whole = results(all.iter().copied());
    let parts: Vec<Results> = (0..3).map(|machine| kept(&results(all.iter().copied().skip(machine).step_by(3)))).collect();
    let sum = merge(&parts).expect("parts of one");
    assert_eq!(
        (sum.requests, sum.answered, sum.bytes, &sum.errors, &sum.statuses),
        (whole.requests, whole.answered, whole.bytes, &whole.errors, &whole.statuses)
    );
    assert_eq!((sum.latency, sum.first_byte, &sum.cache), (whole.latency, whole.first_byte, &whole.cache));
    assert_eq!(sum.histograms.latency, whole.histograms.latency, "bit by bit");
    assert_eq!(sum.origin_share, whole.origin_share);
    let requests = |results: &Results| results.seconds.iter().map(|row| row.requests).sum::<u64>();
    assert_eq!(requests(&sum), 2_000);
}

#[test]
fn results_of_different_things_or_times_are_not_added() {
    let one = results((0..100).map(|n| sample(n, took(1))));
    let other = |change: fn(&mut Results)| {
        let mut other = one.clone();
        change(&mut other);
        merge(&[one.clone(), other]).expect_err("different").to_string()
    };
    for (error, start) in [
        (other(|other| other.run.urls = vec!["http://127.0.0.1/b".to_owned()]), "result 2 is of something else than the first: the URL is"),
        (
            other(|other| other.run.protocol = "HTTP/2".to_owned()),
            "result 2 is of something else than the first: the protocol is \"HTTP/2\"",
        ),
        (other(|other| other.run.kind = Kind::Rate), "result 2 is of something else than the first: the kind of schedule is \"rate\""),
        (
            other(|other| other.run.began = "2026-11-23T12:00:35Z".to_owned()),
            "these runs did not overlap: result 2 began 35 s from the first",
        ),
        // One after the other, on one machine.
        (
            other(|other| other.run.began = "2026-11-23T12:00:02Z".to_owned()),
            "these runs did not overlap: result 2 began 2 s from the first",
        ),
        (other(|_| {}), "result 2 is the same as result 1"),
        (
            other(|other| other.histograms.latency = crate::results::Encoded::default()),
            "result 2 cannot be added, because its distributions",
        ),
    ] {
        assert!(error.starts_with(start), "{error}");
    }
    assert!(matches!(merge(&[]), Err(MergeError::Nothing)));
    // Two machines that begin at once note a beginning in one second, or in the next; and a long run may begin a little later.
    let mut long = [one.clone(), one.clone()];
    long[1].run.began = "2026-11-23T12:00:01Z".to_owned();
    assert!(merge(&long).is_ok());
    long.iter_mut().for_each(|run| run.duration = 60.0);
    long[1].run.began = "2026-11-23T12:00:04Z".to_owned();
    assert!(merge(&long).is_ok());
    long[1].run.began = "2026-11-23T12:00:06Z".to_owned();
    assert!(merge(&long).is_err_and(|error| error.to_string().starts_with("result 2 began 6")));
}

#[test]
fn the_verdict_of_machines_is_what_spoils_the_sum_most() {
    let mut parts = vec![results((0..10).map(|n| sample(n, took(1)))); 3];
    for (part, seed) in parts.iter_mut().zip(0..) {
        part.run.seed = seed;
    }
    parts[1].verdict = Verdict { reason: "The busiest worker used 98 %.".to_owned(), ..verdict(Limit::Generator) };
    let sum = merge(&parts).expect("the same");
    assert_eq!(sum.verdict, Verdict { reason: "Machine 2 of 3: The busiest worker used 98 %.".to_owned(), ..parts[1].verdict.clone() });
}

/// The rate and the median latency of a round.
type Values = (f64, f64);

/// Makes a comparison of pairs of rounds.
fn comparison(open: bool, pairs: &[(Values, Values)]) -> Comparison {
    let of = |rate: f64, p50: f64| Measured { rate, p50, p90: p50 * 2.0, p99: p50 * 3.0 };
    let rounds: Vec<Round> = pairs.iter().map(|(a, b)| Round { a_first: true, a: of(a.0, a.1), b: of(b.0, b.1) }).collect();
    let mut one = results((0..1_000).filter(|n| n % 50 != 0).map(|n| sample(n, took(1))));
    one.run.open = open;
    Comparison::new(&vec![one.clone(); pairs.len()], &vec![one; pairs.len()], rounds, 1).expect("readable")
}

#[test]
fn a_difference_is_said_with_its_interval() {
    let pairs: Vec<_> = (0..20).map(|n| ((1000.0 + f64::from(n % 5) * 10.0, 10.0), (1420.0 + f64::from(n % 3) * 10.0, 7.0))).collect();
    let found = comparison(false, &pairs);
    assert_eq!((found.verdict.differs, found.verdict.by, found.verdict.better), (true, By::Rate, Some(Side::B)));
    assert!(found.verdict.said.starts_with("B is 1.40 times as fast as A (1.39 to 1.4"), "{}", found.verdict.said);
    assert!(found.verdict.warnings.is_empty(), "{:?}", found.verdict.warnings);
    let ratio = found.ratio.p50.expect("enough rounds");
    assert!((ratio.ratio - 0.7).abs() < 1e-9 && ratio.differs());
    let json = serde_json::to_value(&found).expect("JSON");
    assert!(json["ratio"]["rate"]["low"].is_number() && json["ratio"]["p99"]["high"].is_number(), "{}", json["ratio"]);
}

#[test]
fn no_difference_is_claimed_where_the_interval_has_one_in_it() {
    let pairs: Vec<_> = (0..20).map(|n| ((1000.0 + f64::from(n % 5) * 50.0, 10.0), (1000.0 + f64::from(n % 4) * 60.0, 10.0))).collect();
    let found = comparison(false, &pairs);
    assert_eq!((found.verdict.differs, found.verdict.better), (false, None));
    assert!(found.verdict.said.starts_with("No difference was found in the rate: B to A is 0.9"), "{}", found.verdict.said);
}

#[test]
fn what_differs_beside_the_compared_value_is_named() {
    let pairs: Vec<_> =
        (0..20).map(|n| ((1000.0 + f64::from(n % 5) * 50.0, 10.0), (1000.0 + f64::from(n % 4) * 60.0, 15.0 + f64::from(n % 2)))).collect();
    let said = comparison(false, &pairs).verdict.said;
    assert!(said.contains("But it was found in the median latency: 1.5") && said.contains(", and in the p90 of the latency: "), "{said}");
}

#[test]
fn where_the_schedule_sets_the_rate_the_median_is_compared() {
    let pairs: Vec<_> = (0..20).map(|n| ((1000.0, 10.0 + f64::from(n % 3)), (1000.0, 12.0 + f64::from(n % 3)))).collect();
    let found = comparison(true, &pairs);
    assert_eq!((found.verdict.by, found.verdict.better), (By::P50, Some(Side::A)));
    assert!(found.verdict.said.starts_with("B takes 1.18 times as long as A"), "{}", found.verdict.said);
}

/// Makes a round of `clients` that all began at zero, were each answered after `took`, and asked again at once. The first third is not measured.
fn in_step(clients: u64, took: Duration, length: Duration, jitter: u64) -> Results {
    let (sender, _receiver) = std::sync::mpsc::sync_channel(100);
    let mut recorder = Recorder::new(0, length / 3, sender);
    recorder.clients(u32::try_from(clients).expect("few"));
    let mut random = fastrand::Rng::with_seed(jitter);
    let mut at = Duration::ZERO;
    loop {
        // Timers of servers are late by some tens of µs.
        let took = took + Duration::from_micros(random.u64(..100));
        let ended = at + took;
        if ended > length {
            break;
        }
        for _ in 0..clients {
            recorder.ended(&Sample { intended: at, sent: at, first_byte: Some(ended), ended, status: 200, error: None, ..sample(1, took) });
        }
        at = ended;
    }
    let run = Run { urls: vec!["http://127.0.0.1/".to_owned()], urls_count: 1, ..Run::default() };
    Results::new(run, length - length / 3, &recorder.finish(length), Vec::new(), verdict(Limit::Server))
}

fn compared_in_step(a: u64, b: u64) -> Comparison {
    let side = |took: u64, seed: u64| -> Vec<Results> {
        (0..PAIRS as u64).map(|n| in_step(10, Duration::from_millis(took), Duration::from_millis(500), n * 2 + seed)).collect()
    };
    let (a, b) = (side(a, 0), side(b, 1));
    let rounds = a.iter().zip(&b).map(|(a, b)| Round::new(true, a, b)).collect();
    Comparison::new(&a, &b, rounds, 1).expect("readable")
}

#[test]
fn a_tenth_is_found_where_a_round_has_room_for_a_few_answers_of_each_client_only() {
    for (a, b) in [(100, 110), (50, 55)] {
        let found = compared_in_step(a, b);
        let ratio = found.ratio.rate.expect("thirty pairs");
        let expected = a as f64 / b as f64;
        assert!((ratio.ratio - expected).abs() < 0.005 && ratio.high < 1.0, "{a} ms and {b} ms: {ratio:?}");
        assert_eq!((found.verdict.differs, found.verdict.better), (true, Some(Side::A)), "{a} ms and {b} ms: {}", found.verdict.said);
        // The rate is that of the clients: ten, each of which waits for one answer.
        let rate = found.rounds[0].a.rate;
        assert!((rate / (10.0 / (a as f64 / 1e3)) - 1.0).abs() < 0.02, "{a} ms: {rate}/s");
    }
}

#[test]
fn nothing_is_claimed_of_two_alike_whose_rounds_have_few_answers() {
    let claimed = [5, 50, 100].into_iter().filter(|took| compared_in_step(*took, *took).verdict.differs).count();
    assert!(claimed <= 1, "{claimed} of 3");
}

#[test]
fn sides_of_which_one_does_not_answer_are_not_compared() {
    let pairs: Vec<_> = (0..20).map(|n| ((1000.0, 10.0), if n % 4 == 0 { (0.0, 0.0) } else { (900.0, 10.0) })).collect();
    let found = comparison(false, &pairs);
    assert!(found.ratio.rate.is_none() && !found.verdict.differs);
    assert!(found.verdict.said.starts_with("The two cannot be compared"), "{}", found.verdict.said);
}

#[test]
fn a_side_that_fails_or_is_limited_by_the_load_tester_is_warned_of() {
    let mut one = results((0..1_000).map(|n| sample(n, took(1))));
    one.verdict = verdict(Limit::Generator);
    let ratios = Ratios { rate: None, p50: None, p90: None, p99: None };
    let claim = Claim::new(&one, &results([]), &ratios);
    assert_eq!(
        claim.warnings,
        [
            "2.0 % of A's requests failed; they do not count in its rate.",
            "In most rounds of A the load tester was at its limit: the difference may be larger than it looks.",
            "A's answers (p99 670 ms) take long for rounds of 944 ms: compare for a longer time (-d 5m).",
            "B has answered nothing."
        ]
    );
}

#[test]
fn rounds_become_rows_of_one_result() {
    let rounds = [results((0..100).map(|n| sample(n, took(1)))), results((0..300).map(|n| sample(n, took(2))))];
    let sum = merge::one_after_another(&rounds).expect("readable");
    assert_eq!(sum.seconds.iter().map(|row| row.requests).collect::<Vec<_>>(), [100, 300]);
    assert!((sum.duration - rounds[0].duration - rounds[1].duration).abs() < 1e-9);
    assert_eq!(sum.latency.count, 400);
}

#[test]
fn two_results_are_compared_with_what_cannot_be_known_from_them() {
    // 30 s each; the new run answers in half of the time.
    let old = results((0..6_000).map(|n| sample(n, Duration::from_micros(4_000 + (n * 7_919) % 500))));
    let new = results((0..6_000).map(|n| sample(n, Duration::from_micros(2_000 + (n * 7_919) % 250))));
    let found = differences(&old, &new);
    let ratio = found.p50.ratio.expect("thirty seconds");
    assert!((ratio.ratio - 0.5).abs() < 0.01 && ratio.differs(), "{ratio:?}");
    assert!(!found.rate.ratio.expect("thirty seconds").differs());
    assert!(found.not_the_same.is_empty(), "{:?}", found.not_the_same);
    assert!(found.unknown.contains("one run"));
    let short = results((0..600).map(|n| sample(n, took(1))));
    let found = differences(&old, &short);
    assert_eq!(found.p50.ratio, None);
    assert!(found.unknown.ends_with("measure for 30 s or more."), "{}", found.unknown);
}

#[test]
fn what_differed_between_two_runs_is_named() {
    let old = results((0..600).map(|n| sample(n, took(1))));
    let mut new = old.clone();
    new.run.protocol = "HTTP/2".to_owned();
    new.machine.cores += 2;
    let found = differences(&old, &new);
    assert_eq!(found.not_the_same.len(), 2, "{:?}", found.not_the_same);
    assert!(found.to_string().contains("The protocol:  then, HTTP/2 now.\n"), "{found}");
    new.run.open = true;
    let found = differences(&old, &new).to_string();
    assert!(found.contains("The two cannot be compared") && found.contains("rate") && found.contains("1.00, no interval"), "{found}");
}

#[test]
fn an_empty_tally_is_no_result_to_compare() {
    assert_eq!(merge::one_after_another(&[]).expect("nothing").requests, Tally::new().requests);
}

#[test]
fn a_comparison_that_somebody_ended_says_so_and_how_sure_it_is() {
    let quick = (1000.0, 1.0);
    let mut few = comparison(false, &[(quick, quick); 3]);
    few.end_early();
    assert!(few.ended_early && !few.verdict.differs);
    assert_eq!(few.verdict.said, "You ended the comparison after 3 of 30 pairs of rounds, and 5 are needed to compare the two.");
    // Nothing was measured yet, so nothing is known of who answers.
    let mut none = comparison(false, &[]);
    none.end_early();
    assert_eq!(none.verdict.said, "You ended the comparison after 0 of 30 pairs of rounds, and 5 are needed to compare the two.");
    assert_eq!(none.verdict.warnings, Vec::<String>::new());
    let mut some = comparison(false, &[(quick, quick); 12]);
    some.end_early();
    let said = "You ended the comparison after 12 of 30 pairs of rounds: the intervals are wider than after all of them, and a small difference is \
                easily missed.";
    assert_eq!(some.verdict.warnings.first().map(String::as_str), Some(said));
}

#[test]
fn a_comparison_is_read_as_it_was_written_and_is_no_result() {
    let quick = (1000.0, 1.0);
    let written = comparison(false, &[(quick, quick); 6]);
    let text = serde_json::to_string(&written).expect("JSON");
    assert_eq!(Comparison::read(&text).expect("a comparison"), written);
    assert!(matches!(Results::read(&text), Err(Unreadable::Comparison)));
    let result = serde_json::to_string(&written.a).expect("JSON");
    assert!(matches!(Comparison::read(&result), Err(Unreadable::Form(_))));
}
