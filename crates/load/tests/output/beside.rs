//! Before and after.

use load::{
    Results,
    compare::{Ratio, Ratios, differences},
    output::{Beside, Ink},
    record::ErrorClass,
};

use crate::{
    report::{elements, keep},
    samples::{self, Like},
};

fn pair() -> [Results; 2] {
    let before = samples::results(&Like {
        rate: 53,
        median: std::time::Duration::from_millis(900),
        failing: 3,
        class: ErrorClass::Status,
        missing: 1,
        seconds: 20,
        ..Like::default()
    });
    [before, samples::results(&Like { rate: 6500, seconds: 20, ..Like::default() })]
}

fn beside<'a>(results: &'a [Results; 2], rate: Option<[f64; 3]>) -> Beside<'a> {
    let interval = |[ratio, low, high]: [f64; 3]| Ratio { ratio, low, high };
    Beside {
        names: ["before", "after"],
        results: [&results[0], &results[1]],
        ratios: Ratios { rate: rate.map(interval), p50: Some(interval([0.013, 0.012, 0.014])), ..Ratios::default() },
        rounds: vec![[35.3, 6400.0], [34.0, 6600.0], [36.7, 6500.0]],
        said: "After is 123 times as fast as before (118 to 127).".to_owned(),
        remarks: vec!["33.3 % of the requests before failed.".to_owned()],
    }
}

#[test]
fn two_results_stand_beside_each_other_with_their_ratio_and_its_interval() {
    let results = pair();
    let beside = beside(&results, Some([123.0, 118.0, 127.0]));
    let text = beside.summary(Ink::Plain);
    for part in [
        "After: 6,500 requests a second, 123 times as many as before",
        "HTTP/1.1 over TLS, 500 clients that stay, 3 rounds of 20 s each, alternately\n",
        "Rate: the middle one of all rounds. Ratio: the middle one of the pairs of rounds",
        "Before was overloaded: repeat with fewer clients",
        "Latencies are those of all answers and timeouts",
        "After: The server was the bottleneck",
        "before",
        "after",
        "123 (118 to 127)",
        "0.013 (0.012 to 0.014)",
        "33.3 % of the requests",
    ] {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
    let markdown = beside.markdown();
    assert!(markdown.contains("| good answers a second | 35.3 | 6,500 | 123 (118 to 127) |"), "{markdown}");
}

#[test]
fn words_claim_no_more_than_the_interval_does() {
    let results = pair();
    for (rate, words) in [
        (Some([300.4, 290.0, 310.0]), "300 times as many as before"),
        (Some([10.9, 8.6, 12.7]), "11 times as many as before"),
        (Some([2.4, 2.1, 2.7]), "2.40 times as many as before"),
        (Some([1.1, 1.05, 1.15]), "10.0 % more than before"),
        (Some([0.9, 0.85, 0.95]), "10.0 % fewer than before"),
        (Some([1.02, 0.97, 1.06]), "no difference from before was found"),
    ] {
        assert_eq!(beside(&results, rate).in_words().as_deref(), Some(words));
    }
    // Rounds that are too few, as of a comparison that somebody ended.
    let ended = beside(&results, None);
    assert_eq!(ended.in_words(), None);
    assert!(!ended.summary(Ink::Plain).contains("times as many") && !ended.html().contains("times as many as"));
    // 35.3 good answers of 53 a second: failed ones do not count.
    let kept = Beside { rounds: Vec::new(), ..ended };
    assert_eq!(kept.in_words().as_deref(), Some("184 times as many as before"));
    let nothing = [samples::nothing(), samples::nothing()];
    assert_eq!(beside(&nothing, None).in_words(), None);
}

#[test]
fn a_page_of_two_results_begins_with_what_changed_and_is_whole() {
    let results = pair();
    let page = beside(&results, Some([123.0, 118.0, 127.0])).html();
    keep("beside.html", &page);
    assert!(page.contains("times as fast") && page.contains("The thin line on a bar"));
    assert!(page.contains("After: 6,500 requests a second<small class=\"after\">123 times as many as before</small></h1>"));
    let elements = elements(&page);
    assert!(elements.iter().filter(|name| *name == "svg").count() >= 4);
    assert!(!elements.iter().any(|name| name == "script"));
    assert!(page.len() < 300_000);
    let mut ids: Vec<_> = page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "names are unique");
    for (name, text) in beside(&results, Some([123.0, 118.0, 127.0])).svg() {
        keep(&format!("beside/{name}.svg"), &text);
        roxmltree::Document::parse(&text).expect("well-formed");
    }
}

#[test]
fn rounds_are_shown_one_by_one_and_not_as_seconds() {
    let results = pair();
    let names = |beside: &Beside<'_>| beside.svg().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    let mut beside = beside(&results, None);
    assert_eq!(names(&beside), ["comparison", "percentiles", "rounds"]);
    assert!(!beside.html().contains("Latency over time"));
    beside.rounds.clear();
    assert_eq!(names(&beside), ["comparison", "percentiles"]);
    assert!(beside.html().contains("Latency over time"));
}

#[test]
fn two_results_that_were_kept_stand_beside_each_other_with_what_is_not_known() {
    let [old, new] = pair();
    let differences = differences(&old, &new);
    let text = Beside::old_and_new(&old, &new, &differences).summary(Ink::Plain);
    assert!(text.contains("old") && text.contains("new") && text.contains(&differences.unknown), "{text}");
    let text = Beside::old_and_new(&old, &new, &differences).named("before", "after").summary(Ink::Plain);
    assert!(text.contains("times as many as before"), "{text}");
}

#[test]
fn two_results_of_nothing_have_a_page_too() {
    let nothing = [samples::nothing(), samples::nothing()];
    let mut beside = beside(&nothing, None);
    beside.ratios = Ratios::default();
    elements(&beside.html());
    assert!(!beside.summary(Ink::Plain).contains("NaN"));
}
