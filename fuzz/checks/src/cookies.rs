//! Which cookies make a request somebody's own.

use http::HeaderValue;
use policy::{CookieFilter, Kind};
use semantics::RequestFields;

use crate::input::{field, values};

/// Cookies that no origin looks at.
const KNOWN: [&str; 6] = ["_ga=1", "_gid=2", "_fbp=fb.1", "__utma=3", "_pk_id.1=4", "wordpress_test_cookie=WP"];

/// One line of `Cookie` per line of input. An unknown cookie makes a request personal wherever it stands; what is known changes nothing;
/// so a stranger's cookie cannot hide another one.
pub fn cookies(data: &[u8]) {
    let lines = values(data);
    let personal = is_personal(&lines);
    let each: Vec<bool> = lines.iter().map(|line| is_personal(std::slice::from_ref(line))).collect();
    assert_eq!(personal, each.contains(&true));

    let joined = lines.iter().map(HeaderValue::as_bytes).collect::<Vec<_>>().join(&b"; "[..]);
    let around = |before: &str, after: &str| {
        let line = [before.as_bytes(), &joined, after.as_bytes()].concat();
        is_personal(&[HeaderValue::from_bytes(&line).expect("made of field values")])
    };
    assert_eq!(around("", ""), personal);
    for known in KNOWN {
        assert_eq!(around(&format!("{known}; "), &format!(";{known}")), personal, "{known}");
    }
    for unknown in ["session=1", "wordpress_logged_in_a=b", "ghost-members-ssr=c", "x"] {
        assert!(around(&format!("{unknown}; "), "") && around("", &format!(";{unknown}")), "{unknown}");
    }
}

fn is_personal(lines: &[HeaderValue]) -> bool {
    CookieFilter::new(Kind::Generic.preset().cookies, &[], &[]).is_personal(&RequestFields::from_map(&field("cookie", lines)))
}
