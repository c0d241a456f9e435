//! When an alert begins and ends, told second by second.

use super::*;

/// The beginning of every story here.
const BEGIN: u64 = 1_767_225_600;

fn rules() -> Rules {
    Rules { after: Duration::from_secs(60), clear_after: Duration::from_secs(300), ..Rules::default() }
}

fn origin(about: &str, up: Option<bool>) -> OriginFact {
    OriginFact { about: about.to_owned(), address: "http://127.0.0.1:2368".to_owned(), up }
}

/// Steps through seconds in which the origin of a site is as `up` says, and returns what is told: the second, the state.
fn told(alerts: &mut Alerts, rules: &Rules, seconds: std::ops::Range<u64>, up: impl Fn(u64) -> Option<bool>) -> Vec<(u64, State)> {
    let mut told = Vec::new();
    for second in seconds {
        let origins = [origin("blog.example", up(second))];
        let facts = Facts { origins: Some(&origins), ..Facts::default() };
        let notices = alerts.step(Timestamp::from_secs(BEGIN + second), rules, &facts);
        told.extend(notices.into_iter().map(|notice| (second, notice.state)));
    }
    told
}

#[test]
fn an_alert_begins_when_something_has_been_wrong_for_the_whole_time() {
    let mut alerts = Alerts::default();
    assert_eq!(told(&mut alerts, &rules(), 0..200, |second| Some(second < 10)), [(70, State::Firing)]);
    let standing = alerts.standing();
    assert_eq!((standing.len(), standing[0].name.as_str(), standing[0].about.as_str()), (1, "origin-down", "blog.example"));
    // It began when the trouble began.
    assert_eq!((standing[0].from, standing[0].until), ((BEGIN + 10) * 1000, None));
    assert!(standing[0].text.contains("http://127.0.0.1:2368"), "{standing:?}");
}

#[test]
fn what_is_wrong_now_and_then_is_no_alert() {
    let mut alerts = Alerts::default();
    assert_eq!(told(&mut alerts, &rules(), 0..10_000, |second| Some(second.is_multiple_of(60))), []);
    assert_eq!(told(&mut alerts, &rules(), 10_000..20_000, |second| if second.is_multiple_of(60) { None } else { Some(false) }), []);
}

#[test]
fn an_alert_ends_when_all_has_been_right_for_the_whole_time() {
    let mut alerts = Alerts::default();
    // Down from 0 to 100; up and down until 1,000; then up.
    let up = |second: u64| Some(second >= 1_000 || (second >= 100 && !second.is_multiple_of(200)));
    assert_eq!(told(&mut alerts, &rules(), 0..2_000, up), [(60, State::Firing), (1_101, State::Resolved)]);
    assert_eq!(alerts.standing(), []);
    let ended = &alerts.ended()[0];
    // It ended when all was right, not when that was believed. The last time that it was wrong was 800.
    assert_eq!((ended.from, ended.until), (BEGIN * 1000, Some((BEGIN + 801) * 1000)));
}

/// An alert that ends is over since all was right: what stands says so meanwhile, so that both tell the same time.
#[test]
fn an_alert_that_stands_says_since_when_all_has_been_right() {
    let mut alerts = Alerts::default();
    let up = |second: u64| Some((100..150).contains(&second) || second >= 200);
    let right_since = |alerts: &Alerts| alerts.standing()[0].right_since;
    told(&mut alerts, &rules(), 0..100, up);
    assert_eq!(right_since(&alerts), None);
    told(&mut alerts, &rules(), 100..150, up);
    assert_eq!(right_since(&alerts), Some((BEGIN + 100) * 1000));
    told(&mut alerts, &rules(), 150..200, up);
    assert_eq!(right_since(&alerts), None);
    told(&mut alerts, &rules(), 200..500, up);
    assert_eq!(right_since(&alerts), Some((BEGIN + 200) * 1000));
    assert_eq!(told(&mut alerts, &rules(), 500..501, up), [(500, State::Resolved)]);
    let ended = &alerts.ended()[0];
    assert_eq!((ended.until, ended.right_since), (Some((BEGIN + 200) * 1000), None));
}

#[test]
fn what_cannot_be_told_neither_ends_an_alert_nor_begins_one() {
    let mut alerts = Alerts::default();
    assert_eq!(told(&mut alerts, &rules(), 0..5_000, |_| None), []);
    assert_eq!(told(&mut alerts, &rules(), 5_000..5_100, |_| Some(false)), [(5_060, State::Firing)]);
    assert_eq!(told(&mut alerts, &rules(), 5_100..9_000, |_| None), []);
    assert_eq!(alerts.standing().len(), 1);
    assert_eq!(told(&mut alerts, &rules(), 9_000..9_400, |_| Some(true)), [(9_300, State::Resolved)]);
}

#[test]
fn with_no_time_to_wait_an_alert_begins_and_ends_at_once() {
    let rules = Rules { after: Duration::ZERO, clear_after: Duration::ZERO, ..rules() };
    let mut alerts = Alerts::default();
    assert_eq!(told(&mut alerts, &rules, 0..10, |second| Some(second != 5)), [(5, State::Firing), (6, State::Resolved)]);
}

/// Whatever happens: for one subject, begin and end take turns, and the times between are as the rules say.
#[test]
fn an_alert_is_told_once_when_it_begins_and_once_when_it_ends() {
    let mut seed = 1_u64;
    for _ in 0..200 {
        let mut random = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            seed >> 33
        };
        let mut story: Vec<Option<bool>> = Vec::new();
        while story.len() < 3_000 {
            let state = [Some(true), Some(false), Some(false), None][usize::try_from(random() % 4).expect("small")];
            let lasts = usize::try_from(1 + random() % 400).expect("small");
            story.extend(vec![state; lasts]);
        }
        let at = |second: u64| story[usize::try_from(second).expect("small")];
        let all = told(&mut Alerts::default(), &rules(), 0..3_000, at);
        for (n, (second, state)) in all.iter().enumerate() {
            assert_eq!(*state, if n % 2 == 0 { State::Firing } else { State::Resolved }, "{all:?}");
            let (is, long) = if n % 2 == 0 { (Some(false), 60) } else { (Some(true), 300) };
            assert!((second - long..=*second).all(|before| at(before) == is), "{all:?}");
        }
    }
}

#[test]
fn a_restart_tells_nothing_again() {
    let mut alerts = Alerts::default();
    told(&mut alerts, &rules(), 0..100, |_| Some(false));
    let changes = alerts.changes();
    assert_eq!(changes, 1);
    let mut after = Alerts::read(&alerts.kept(), Timestamp::from_secs(BEGIN + 200)).expect("readable");
    assert_eq!((after.standing(), after.changes()), (alerts.standing(), 0));
    // At first the origin was not asked; then it is still down; then it is up.
    let up = |second: u64| if second < 250 { None } else { Some(second >= 1_000) };
    assert_eq!(told(&mut after, &rules(), 200..2_000, up), [(1_300, State::Resolved)]);
    let again = Alerts::read(&after.kept(), Timestamp::from_secs(BEGIN + 2_000)).expect("readable");
    assert_eq!((again.standing(), again.ended()), (vec![], after.ended()));
}

#[test]
fn a_file_that_is_not_ours_is_told() {
    let kept = Alerts::default().kept();
    for (text, piece) in [
        ("", "cannot be read"),
        ("[]", "cannot be read"),
        (&kept[..kept.len() - 1], "cannot be read"),
        (&kept.replace("\"version\":1", "\"version\":2"), "form 2"),
    ] {
        let error = Alerts::read(text, Timestamp::from_secs(BEGIN)).expect_err(text);
        assert!(error.to_string().contains(piece), "{error}");
    }
}

#[test]
fn an_alert_about_what_is_no_longer_there_ends() {
    let mut alerts = Alerts::default();
    told(&mut alerts, &rules(), 0..100, |_| Some(false));
    // Nobody looked.
    assert_eq!(alerts.step(Timestamp::from_secs(BEGIN + 100), &rules(), &Facts::default()), []);
    // The site was removed.
    let gone = alerts.step(Timestamp::from_secs(BEGIN + 101), &rules(), &Facts { origins: Some(&[]), ..Facts::default() });
    assert_eq!(
        gone.iter().map(|notice| (notice.state, notice.alert.until)).collect::<Vec<_>>(),
        [(State::Resolved, Some((BEGIN + 101) * 1000))]
    );
}

#[test]
fn a_kind_that_is_off_is_not_watched() {
    let mut alerts = Alerts::default();
    told(&mut alerts, &rules(), 0..100, |_| Some(false));
    let off = Rules { off: vec![Kind::OriginDown], ..rules() };
    assert_eq!(told(&mut alerts, &off, 100..300, |_| Some(false)), [(100, State::Resolved)]);
    assert_eq!(told(&mut alerts, &rules(), 300..400, |_| Some(false)), [(360, State::Firing)]);
}

#[test]
fn many_sites_with_one_origin_take_bounded_room() {
    let mut alerts = Alerts::default();
    let origins: Vec<_> = (0..5_000).map(|n| origin(&format!("{n}.{}", "x".repeat(2_000)), Some(false))).collect();
    let traffic: Vec<_> = (0..5_000)
        .map(|n| TrafficFact { site: format!("{n}.example"), requests: 10, server_errors: 10, ..TrafficFact::default() })
        .collect();
    let mut told = 0;
    for second in 0..100 {
        let facts = Facts { origins: Some(&origins), traffic: Some(&traffic), ..Facts::default() };
        told += alerts.step(Timestamp::from_secs(BEGIN + second), &rules(), &facts).len();
    }
    assert_eq!((told, alerts.standing().len()), (ALERTS_MAX, ALERTS_MAX));
    assert!(alerts.bytes() < 1 << 20, "{}", alerts.bytes());
}

/// A week of traffic by the minute: 90 % of the lookups hit. Then a plugin sets a cookie.
#[test]
fn a_hit_ratio_that_falls_is_told_and_one_that_is_always_low_is_not() {
    let mut alerts = Alerts::default();
    let minutes_a_week = 7 * 24 * 60;
    let mut told = Vec::new();
    for minute in 0..minutes_a_week + 400 {
        let now = Timestamp::from_secs(BEGIN + minute * 60);
        let is_broken = (minutes_a_week + 120..minutes_a_week + 240).contains(&minute);
        let site = |site: &str, hits| TrafficFact { site: site.to_owned(), requests: 10, lookups: 10, hits, server_errors: 0 };
        let traffic = [site("falls.example", if is_broken { 3 } else { 9 }), site("low.example", 1)];
        let facts = Facts { traffic: Some(&traffic), ..Facts::default() };
        for notice in alerts.step(now, &rules(), &facts) {
            told.push((notice.alert.name, notice.alert.about, notice.state, minute - minutes_a_week));
        }
        if minute == minutes_a_week + 60 {
            // The week survives a restart.
            alerts = Alerts::read(&alerts.kept(), now).expect("readable");
        }
    }
    assert_eq!(told.len(), 2, "{told:?}");
    for ((name, about, state, minute), (expected, range)) in told.iter().zip([(State::Firing, 130..180), (State::Resolved, 270..330)]) {
        assert_eq!((name.as_str(), about.as_str(), *state), ("hit-ratio", "falls.example", expected));
        assert!(range.contains(minute), "{told:?}");
    }
}

#[test]
fn server_errors_are_told_and_end_when_they_stop() {
    let mut alerts = Alerts::default();
    let mut told = Vec::new();
    for second in 0..2_000 {
        let errors = u64::from((100..400).contains(&second));
        let traffic = [TrafficFact { site: "a.example".to_owned(), requests: 2, lookups: 2, hits: 1, server_errors: errors }];
        let facts = Facts { traffic: Some(&traffic), ..Facts::default() };
        let notices = alerts.step(Timestamp::from_secs(BEGIN + second), &rules(), &facts);
        told.extend(notices.into_iter().map(|notice| (notice.state, second)));
    }
    let [(State::Firing, begun), (State::Resolved, ended)] = told[..] else { panic!("{told:?}") };
    // Ten errors are not enough of 200 requests; 15 of 230 are. Then a minute.
    assert!((160..200).contains(&begun), "{told:?}");
    // Five minutes until they are no longer counted, and five in which all is right.
    assert!((900..1_010).contains(&ended), "{told:?}");
}

#[test]
fn every_kind_is_found_by_its_name() {
    for kind in Kind::ALL {
        assert_eq!(Kind::named(kind.name()), Some(kind));
    }
    assert_eq!(Kind::named("origin"), None);
}
