//! No verdict rests on what a browser is called, where it comes from, or which language it likes best.
//!
//! What was found out about a head is taken to hold for all heads that differ from it in [`INCIDENTAL_FIELDS`] alone, without asking the policy
//! again. So a rule that looks at one of them would be passed over.

use http::{HeaderMap, HeaderName, Method};
use policy::{Kind, Policy, Settings};
use proptest::prelude::*;
use semantics::{
    Scheme,
    request::{INCIDENTAL_FIELDS, RequestFields, RequestHead},
};

proptest! {
    #[test]
    fn a_verdict_is_the_same_with_and_without_them(
        kind in prop::sample::select(Kind::ALL.to_vec()),
        method in prop::sample::select(vec![Method::GET, Method::HEAD]),
        path in prop::sample::select(vec!["/", "/a", "/wp-admin/", "/ghost/", "/feed/", "/a.css", "/purge/a"]),
        query in prop::option::of("[a-z]{1,3}=[a-z0-9]{0,3}(&utm_source=x)?"),
        fields in prop::collection::vec(
            (prop::sample::select(vec!["accept", "cookie", "accept-encoding", "x-requested-with", "x-a"]), "[a-z=;/*+ ]{0,12}"), 0..4),
        incidental in prop::collection::vec((prop::sample::select(&INCIDENTAL_FIELDS[..]), "[ -~]{0,20}"), 1..6),
    ) {
        let policy = Policy::new(Settings { purge_path: Some("/purge".to_owned()), ..Settings::preset(kind) });
        let judged = |map: &HeaderMap| {
            let fields = RequestFields::from_map(map);
            let head = RequestHead { method: &method, scheme: Scheme::Http, authority: "a", path, query: query.as_deref(), fields: &fields };
            let mut key = Vec::new();
            let verdict = policy.verdict(1, &head, &mut key);
            (format!("{verdict:?}"), key)
        };
        let mut map = HeaderMap::new();
        let add = |map: &mut HeaderMap, name: &'static str, value: &str| {
            map.append(HeaderName::from_static(name), value.parse().expect("a field value"));
        };
        for (name, value) in &fields {
            add(&mut map, name, value);
        }
        let without = judged(&map);
        for (name, value) in &incidental {
            add(&mut map, name, value);
        }
        prop_assert_eq!(without, judged(&map));
    }
}
