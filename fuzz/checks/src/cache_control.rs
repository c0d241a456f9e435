//! `Cache-Control` and `Pragma` (RFC 9111 §5.2, §5.4).

use http::HeaderValue;
use semantics::{
    RequestFields,
    cache_control::{DeltaSeconds, MaxStale, Qualified, RequestDirectives, ResponseDirectives},
};

use crate::input::{field, values};

/// One line of a field per line of input. The order of lines means nothing, a further line never makes a response more cacheable, a clean
/// directive is seen whatever stands beside it, and no lifetime is beyond 2^31 seconds.
pub fn cache_control(data: &[u8]) {
    let lines = values(data);
    let all = response(&lines);
    bounded(&all);

    let mut reversed = lines.clone();
    reversed.reverse();
    assert_eq!(comparable(response(&reversed)), comparable(all.clone()), "the order of lines counts");
    for at in 0..lines.len().min(8) {
        let mut fewer = lines.clone();
        fewer.remove(at);
        no_more_cacheable(&response(&fewer), &all);
    }

    let with = |line: &'static str| response(&[&lines[..], &[HeaderValue::from_static(line)]].concat());
    assert!(with("no-store").no_store);
    assert!(with("private").private.is_present());
    assert!(with("no-cache").no_cache.is_present());
    assert!(with("max-age=0").max_age == Some(DeltaSeconds::ZERO));
    assert!(with("s-maxage=7").s_maxage.is_some_and(|lifetime| lifetime.as_secs() <= 7));

    // Without quotes, a comma is a comma: several lines mean what one means (RFC 9110 §5.3).
    if !lines.iter().any(|line| line.as_bytes().contains(&b'"')) {
        let joined = lines.iter().map(HeaderValue::as_bytes).collect::<Vec<_>>().join(&b","[..]);
        let joined = HeaderValue::from_bytes(&joined).expect("made of field values");
        assert_eq!(comparable(response(&[joined])), comparable(all.clone()), "lines mean something else than a list");
        let named = |name: &str| {
            let members = lines.iter().flat_map(|line| line.as_bytes().split(|&byte| byte == b','));
            members.map(<[u8]>::trim_ascii).any(|member| member.eq_ignore_ascii_case(name.as_bytes()))
        };
        assert!(!named("no-store") || all.no_store);
        assert!(!named("private") || all.private == Qualified::Whole);
        assert!(!named("no-cache") || all.no_cache == Qualified::Whole);
        assert!(!named("must-revalidate") || all.must_revalidate);
        assert_eq!(named("public"), all.public, "`public` permits, so it counts only as written");
    }
    request(&lines);
}

fn response(lines: &[HeaderValue]) -> ResponseDirectives {
    ResponseDirectives::of(&field("cache-control", lines))
}

fn bounded(directives: &ResponseDirectives) {
    let ResponseDirectives { max_age, s_maxage, stale_while_revalidate, stale_if_error, .. } = *directives;
    for lifetime in [max_age, s_maxage, stale_while_revalidate, stale_if_error].into_iter().flatten() {
        assert!(lifetime <= DeltaSeconds::MAX && lifetime.as_secs() <= 1 << 31);
    }
}

/// Field lists compared as sets.
fn comparable(mut directives: ResponseDirectives) -> ResponseDirectives {
    for qualified in [&mut directives.no_cache, &mut directives.private] {
        if let Qualified::Fields(names) = qualified {
            names.sort_by(|a, b| a.as_str().cmp(b.as_str()));
            names.dedup();
        }
    }
    directives
}

fn no_more_cacheable(before: &ResponseDirectives, after: &ResponseDirectives) {
    assert!(after.no_store >= before.no_store);
    assert!(after.must_revalidate >= before.must_revalidate);
    assert!(after.proxy_revalidate >= before.proxy_revalidate);
    assert!(after.no_transform >= before.no_transform);
    for (before, after) in [(&before.no_cache, &after.no_cache), (&before.private, &after.private)] {
        assert!(after.is_present() >= before.is_present());
        assert!(*before != Qualified::Whole || *after == Qualified::Whole);
    }
    let lifetimes = [
        (before.max_age, after.max_age),
        (before.s_maxage, after.s_maxage),
        (before.stale_while_revalidate, after.stale_while_revalidate),
        (before.stale_if_error, after.stale_if_error),
    ];
    for (before, after) in lifetimes {
        assert!(before.is_none_or(|before| after.is_some_and(|after| after <= before)), "a lifetime grew");
    }
}

fn request(lines: &[HeaderValue]) {
    let of = |lines: &[HeaderValue]| RequestDirectives::of(&RequestFields::from_map(&field("cache-control", lines)));
    let all = of(lines);
    let mut reversed = lines.to_vec();
    reversed.reverse();
    assert_eq!(of(&reversed), all, "the order of lines counts");
    for lifetime in [all.max_age, all.min_fresh, all.stale_if_error].into_iter().flatten() {
        assert!(lifetime <= DeltaSeconds::MAX);
    }
    if let Some(MaxStale::Seconds(limit)) = all.max_stale {
        assert!(limit <= DeltaSeconds::MAX);
    }
    let with = of(&[lines, &[HeaderValue::from_static("no-store, no-cache, max-age=0")]].concat());
    assert!(with.no_store && with.no_cache && with.max_age == Some(DeltaSeconds::ZERO));
    assert!(lines.is_empty() || !all.no_store || !all.is_empty());

    let pragma = RequestDirectives::of(&RequestFields::from_map(&field("pragma", lines)));
    assert_eq!(pragma, RequestDirectives { no_cache: pragma.no_cache, ..RequestDirectives::NONE }, "Pragma says no-cache or nothing");
}
