//! Sets and visitors, as engines see them.

use std::{sync::Arc, time::Duration};

use super::*;
use crate::{
    answer::{Answer, JudgedAnswer},
    record::ErrorClass,
    shape::Shape,
};

const URL: &str = "http://blog.example/";

fn asking(urls: &[&str]) -> RequestOptions {
    RequestOptions {
        urls: urls.iter().map(|url| (*url).to_owned()).collect(),
        run: 7,
        began: 1_700_000_000_000,
        ..RequestOptions::default()
    }
}

fn set(asking: &RequestOptions) -> Arc<RequestSet> {
    Arc::new(asking.set().expect("a valid set"))
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn ask(visitor: &mut Visitor, now: Duration) -> VisitorRequest {
    match visitor.next(None, now) {
        Next::Ask(asked) => asked,
        other => panic!("{other:?}"),
    }
}

fn answer(visitor: &mut Visitor, asked: &VisitorRequest, now: Duration, status: u16, fields: &[(&str, &str)], body: &str) -> JudgedAnswer {
    let fields: Vec<_> = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
    visitor.answered(asked, &Answer { status, fields: &fields, body: asked.wants_body.then_some(body.as_bytes()) }, now)
}

fn target<'a>(set: &'a RequestSet, asked: &'a VisitorRequest) -> &'a str {
    asked.own.as_ref().map_or(&set.requests[asked.request as usize].target, |own| &own.target)
}

fn field<'a>(asked: &'a VisitorRequest, name: &str) -> Option<&'a str> {
    let own = asked.own.as_ref()?;
    own.fields.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
}

/// A site: what it answers to each target.
type Site<'a> = &'a dyn Fn(&str) -> (&'static [(&'static str, &'static str)], &'static str);

/// Makes a visit to its end, one request after another, each of a second. Returns what was asked, with the validators that went with it, and how long the
/// page took.
fn visit(set: &RequestSet, visitor: &mut Visitor, mut now: Duration, site: Site<'_>) -> (Vec<String>, Option<Duration>) {
    let (mut log, mut page) = (Vec::new(), None);
    while let Next::Ask(asked) = visitor.next(None, now) {
        now += at(1);
        let target = target(set, &asked).to_owned();
        let (fields, body) = site(&target);
        let etag = field(&asked, "If-None-Match");
        let matches = etag.is_some_and(|etag| fields.contains(&("ETag", etag)));
        log.push(format!("{target}{}{}", if etag.is_some() { " ?" } else { "" }, if asked.wants_body { " +" } else { "" }));
        let took = answer(visitor, &asked, now, if matches { 304 } else { 200 }, fields, body).page;
        page = page.or(took);
    }
    (log, page)
}

#[test]
fn a_request_without_anything_special_is_sent_as_it_stands() {
    let set = set(&asking(&[URL]));
    let mut visitor = Visitor::new(Arc::clone(&set), 0, 1);
    for _ in 0..3 {
        let asked = ask(&mut visitor, at(0));
        assert_eq!((asked.request, asked.origin, &asked.own, asked.wants_body), (0, 0, &None, false));
        assert_eq!(visitor.next(None, at(0)), Next::Wait);
        assert_eq!(answer(&mut visitor, &asked, at(0), 200, &[], "").error, None);
        assert_eq!(visitor.next(None, at(0)), Next::Over);
    }
    assert_eq!(visitor.connections_max(), 1);
    let fields: Vec<_> =
        set.requests[0].fields.iter().map(|(name, value)| (name.as_str(), value.split('/').next().unwrap_or_default())).collect();
    assert_eq!(fields, [("User-Agent", "seawall-bench"), ("Accept", "*")]);
}

#[test]
fn a_schedule_can_name_the_request() {
    let set = set(&asking(&["http://h/a", "http://h/b"]));
    let mut visitor = Visitor::new(set, 0, 1);
    for request in [1, 0, 1] {
        let Next::Ask(asked) = visitor.next(Some(request), at(0)) else { panic!("nothing is asked") };
        assert_eq!(asked.request, request);
        visitor.failed(&asked, at(0));
        assert_eq!(visitor.next(Some(request), at(0)), Next::Over);
    }
}

#[test]
fn requests_are_chosen_by_weight_and_a_seed_makes_the_same_choices() {
    let mut set = asking(&["http://h/a", "http://h/b"]).set().expect("valid");
    set.requests[1].weight = 3;
    let all: Vec<u32> = (0..2).collect();
    set.behaviour.classes[0].steps[0] = Step::of(all, &set.requests);
    let set = Arc::new(set);
    let choices =
        |seed| (0..10_000).map(|number| ask(&mut Visitor::new(Arc::clone(&set), number, seed), at(0)).request).collect::<Vec<_>>();
    let first = choices(1);
    let share = first.iter().sum::<u32>();
    // Four standard deviations of a binomial with n = 10,000 and p = 3/4.
    assert!(share.abs_diff(7500) < 174, "{share}");
    assert!(first == choices(1) && first != choices(2));
}

#[test]
fn a_url_without_weight_is_never_asked_and_there_must_be_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let list = |text: &str| {
        let path = folder.path().join("urls.txt");
        std::fs::write(&path, text).expect("written");
        RequestOptions { lists: vec![path], ..asking(&[]) }.set()
    };
    let set = Arc::new(list("http://h/a weight=0\n/b\n").expect("one has a weight"));
    assert!((0..100).all(|number| ask(&mut Visitor::new(Arc::clone(&set), number, 1), at(0)).request == 1));
    let error = list("http://h/a weight=0\n/b 0\n").expect_err("nothing is to be asked").to_string();
    assert!(error.contains("every URL has the weight 0") && error.contains("weight=1"), "{error}");
}

#[test]
fn in_order_means_the_order_of_all_visitors_together() {
    let set = set(&RequestOptions { in_order: true, ..asking(&["http://h/a", "http://h/b", "http://h/c"]) });
    let order: Vec<_> = (0..5).map(|number| ask(&mut Visitor::new(Arc::clone(&set), number, 1), at(0)).request).collect();
    assert_eq!(order, [0, 1, 2, 0, 1]);
}

#[test]
fn placeholders_are_filled_in_target_field_and_content() {
    let asking = RequestOptions {
        fields: vec!["X-Client: {client}".to_owned()],
        body: Some(Body::Literal("{\"n\": {n}}".to_owned())),
        body_placeholders: true,
        ..asking(&["http://h/?fbclid={unique}&t={time}"])
    };
    let set = set(&asking);
    let mut visitor = Visitor::new(Arc::clone(&set), 10, 1);
    for (n, unique) in [(1, "00000007ax1"), (2, "00000007ax2")] {
        let asked = ask(&mut visitor, at(5));
        let own = asked.own.as_ref().expect("filled");
        assert_eq!(own.method, "POST");
        assert_eq!(own.target, format!("/?fbclid={unique}&t=1700000005000"));
        assert_eq!(field(&asked, "X-Client"), Some("10"));
        assert_eq!(own.body, format!("{{\"n\": {n}}}"));
        visitor.failed(&asked, at(5));
        assert_eq!(visitor.next(None, at(5)), Next::Over);
    }
}

#[test]
fn cookies_come_back_beside_those_that_were_given() {
    let asking = RequestOptions { cookies: true, fields: vec!["Cookie: given=1".to_owned()], ..asking(&[URL]) };
    let set = set(&asking);
    let mut visitor = Visitor::new(Arc::clone(&set), 0, 1);
    let asked = ask(&mut visitor, at(0));
    assert_eq!(asked.own, None);
    answer(&mut visitor, &asked, at(0), 200, &[("Set-Cookie", "a=1; Max-Age=10"), ("set-cookie", "b=2")], "");
    assert_eq!(visitor.next(None, at(1)), Next::Over);
    for (now, expected) in [(1, "given=1; a=1; b=2"), (10, "given=1; b=2")] {
        let asked = ask(&mut visitor, at(now));
        assert_eq!(field(&asked, "Cookie"), Some(expected));
        visitor.failed(&asked, at(now));
        visitor.next(None, at(now));
    }
    let mut other = Visitor::new(set, 1, 1);
    assert_eq!(ask(&mut other, at(1)).own, None, "cookies are each visitor's own");
}

#[test]
fn what_fails_a_check_is_an_error_of_its_class() {
    let mut checks = Checks::default();
    checks.expect_status("2xx").expect("valid");
    checks.expect_body("hello").expect("valid");
    checks.expect_field("X-Cache").expect("valid");
    let set = set(&RequestOptions { checks, ..asking(&[URL]) });
    let mut visitor = Visitor::new(set, 0, 1);
    for (status, fields, body, error) in [
        (200, &[("X-Cache", "HIT")][..], "say hello", None),
        (301, &[("X-Cache", "HIT")], "say hello", Some(ErrorClass::Status)),
        (200, &[], "say hello", Some(ErrorClass::Field)),
        (200, &[("X-Cache", "HIT")], "say nothing", Some(ErrorClass::Body)),
    ] {
        let asked = ask(&mut visitor, at(0));
        assert!(asked.wants_body);
        assert_eq!(answer(&mut visitor, &asked, at(0), status, fields, body).error, error);
        visitor.next(None, at(0));
    }
}

#[test]
fn an_answer_with_another_clients_marker_is_a_leak() {
    let set = set(&RequestOptions { leak_cookie: Some(LEAK_COOKIE.to_owned()), ..asking(&["http://h/page?x"]) });
    let mut visitors = [5, 6].map(|number| Visitor::new(Arc::clone(&set), number, 1));
    let asked = visitors.each_mut().map(|visitor| ask(visitor, at(0)));
    let cookies = asked.each_ref().map(|asked| field(asked, "Cookie").expect("a marker").to_owned());
    assert!(cookies[0].starts_with("seawall-bench=") && cookies[0] != cookies[1] && asked[0].wants_body);
    // A cache gives the page of 6 to both.
    let page = format!("<p>Logged in as {}</p>", cookies[1]);
    let errors: Vec<_> =
        visitors.iter_mut().zip(&asked).map(|(visitor, asked)| answer(visitor, asked, at(0), 200, &[], &page).error).collect();
    assert_eq!(errors, [Some(ErrorClass::Leak), None]);
    let leaks = set.behaviour.leaks();
    assert_eq!(leaks.count(), 1);
    let leak = &leaks.shown()[0];
    assert_eq!((leak.url.as_str(), leak.client, leak.owner, leak.place.as_str()), ("http://h/page?x", 5, Some(6), "body"));
}

/// Answers as a blog does: a page with a sheet, which needs a font, a picture of another site, and the script that a blog puts into pages for their author.
fn blog(target: &str) -> (&'static [(&'static str, &'static str)], &'static str) {
    match target {
        "/" => (
            &[("ETag", "\"p\""), ("Cache-Control", "no-cache")],
            "<link rel=canonical href=https://www.blog.example/><link rel=stylesheet href=/s.css><link rel=icon href=i.png>
             <img src=https://www.blog.example/a.png><img src=https://cdn.example/x.png><img src=/a.png><script src=\"/.seawall/reload.js\" data-page=\"1\" async></script>",
        ),
        "/s.css" => (&[("ETag", "\"s\""), ("Cache-Control", "max-age=60")], "@font-face{src:url(f.woff2)}"),
        "/f.woff2" => (&[("Cache-Control", "max-age=3600")], ""),
        _ => (&[("ETag", "\"a\"")], ""),
    }
}

#[test]
fn a_page_is_asked_with_all_that_belongs_to_it_and_has_a_time_of_its_own() {
    let set = set(&RequestOptions { page: true, ..asking(&[URL]) });
    let mut visitor = Visitor::new(Arc::clone(&set), 0, 1);
    let (log, page) = visit(&set, &mut visitor, at(100), &blog);
    // Contents are wanted where they may name more.
    assert_eq!(log, ["/ +", "/s.css +", "/a.png", "/i.png", "/f.woff2"]);
    assert_eq!(page, Some(at(5)), "from the page's request to the last answer");
    assert_eq!(set.behaviour.left_out(), 1);
    assert_eq!(visitor.connections_max(), 6);
    // What belongs to it is known now: nobody reads it again.
    let (log, page) = visit(&set, &mut Visitor::new(Arc::clone(&set), 1, 1), at(200), &blog);
    assert_eq!(log, ["/", "/s.css", "/a.png", "/i.png", "/f.woff2"]);
    assert_eq!(page, Some(at(5)));
}

#[test]
fn a_visitor_who_returns_validates_what_is_stale_and_does_not_ask_what_is_fresh() {
    let set = set(&RequestOptions { page: true, ..asking(&[URL]) });
    let mut visitor = Visitor::new(Arc::clone(&set), 0, 1);
    visit(&set, &mut visitor, at(0), &blog);
    let (log, page) = visit(&set, &mut visitor, at(10), &blog);
    assert_eq!(log, ["/ ?", "/a.png ?", "/i.png ?"]);
    assert_eq!(page, Some(at(3)));
    let (log, _) = visit(&set, &mut visitor, at(100), &blog);
    assert_eq!(log, ["/ ?", "/s.css ?", "/a.png ?", "/i.png ?"]);
}

#[test]
fn an_answer_that_is_still_good_passes_for_the_answer_itself() {
    let mut checks = Checks::default();
    checks.expect_status("200").expect("valid");
    checks.expect_body("hello").expect("valid");
    let errors = |fields: &[&str]| {
        let fields = fields.iter().map(|field| (*field).to_owned()).collect();
        let set = set(&RequestOptions { page: true, checks: checks.clone(), fields, ..asking(&[URL]) });
        let mut visitor = Visitor::new(set, 0, 1);
        [200, 304].map(|status| {
            let asked = ask(&mut visitor, at(0));
            let judged = answer(&mut visitor, &asked, at(0), status, &[("ETag", "\"a\"")], "hello");
            while let Next::Ask(part) = visitor.next(None, at(0)) {
                visitor.failed(&part, at(0));
            }
            judged.error
        })
    };
    assert_eq!(errors(&[]), [None, None]);
    assert_eq!(errors(&["If-None-Match: \"b\""]), [None, Some(ErrorClass::Status)], "who asks for it by hand wants to see it");
}

#[test]
fn a_page_that_changed_is_read_again_by_the_next() {
    let set = set(&RequestOptions { page: true, ..asking(&[URL]) });
    let changed = |target: &str| match target {
        "/" => (&[("ETag", "\"new\"")][..], "<img src=new.png>"),
        _ => (&[][..], ""),
    };
    let logs = [0, 1, 2, 3].map(|number| {
        let site: Site<'_> = if number == 0 { &blog } else { &changed };
        visit(&set, &mut Visitor::new(Arc::clone(&set), number, 1), at(0), site).0
    });
    assert_eq!(logs[1], ["/", "/s.css", "/a.png", "/i.png", "/f.woff2"], "still the old list");
    assert_eq!(logs[2], ["/ +", "/new.png", "/favicon.ico"]);
    assert_eq!(logs[3], ["/", "/new.png", "/favicon.ico"]);
}

/// Nobody has named it: that there is none is not a failure, and a visitor learns it once.
#[test]
fn a_site_without_an_icon_is_asked_for_it_once_by_each_visitor() {
    let set = set(&RequestOptions { page: true, ..asking(&[URL]) });
    let mut visitor = Visitor::new(Arc::clone(&set), 0, 1);
    let icons = [0, 1].map(|number| {
        let page = match visitor.next(None, at(number)) {
            Next::Over => ask(&mut visitor, at(number)),
            Next::Ask(page) => page,
            Next::Wait => panic!("nothing is under way"),
        };
        assert_eq!(answer(&mut visitor, &page, at(number), 200, &[("Cache-Control", "no-store")], "<p>text</p>").error, None);
        let Next::Ask(icon) = visitor.next(None, at(number)) else { return None };
        assert_eq!(target(&set, &icon), "/favicon.ico");
        Some(answer(&mut visitor, &icon, at(number), 404, &[], "").error)
    });
    assert_eq!(icons, [Some(None), None]);
}

#[test]
fn parts_of_a_page_are_under_way_together_and_one_that_fails_ends_the_page_too() {
    let set = set(&RequestOptions {
        page: true,
        page_origins: vec!["https://cdn.example".to_owned()],
        fields: vec!["Authorization: secret".to_owned()],
        ..asking(&[URL])
    });
    let mut visitor = Visitor::new(Arc::clone(&set), 0, 1);
    let page = ask(&mut visitor, at(0));
    let (fields, body) = blog("/");
    assert_eq!(answer(&mut visitor, &page, at(1), 200, fields, body).page, None);
    let parts: Vec<_> = std::iter::from_fn(|| match visitor.next(None, at(1)) {
        Next::Ask(asked) => Some(asked),
        Next::Wait | Next::Over => None,
    })
    .collect();
    let asked: Vec<_> = parts.iter().map(|part| (part.origin, target(&set, part))).collect();
    assert_eq!(asked, [(0, "/s.css"), (0, "/a.png"), (1, "/x.png"), (0, "/i.png")]);
    assert_eq!(field(&parts[0], "Accept"), Some("text/css,*/*;q=0.1"));
    assert_eq!(field(&parts[0], "Referer"), Some("http://blog.example/"));
    assert_eq!(field(&parts[0], "Accept-Encoding"), Some("gzip"));
    let secrets: Vec<_> = parts.iter().map(|part| field(part, "Authorization")).collect();
    assert_eq!(secrets, [Some("secret"), Some("secret"), None, Some("secret")], "another server gets no secret");
    assert_eq!(visitor.next(None, at(1)), Next::Wait);
    assert_eq!(answer(&mut visitor, &parts[0], at(2), 404, &[], "").error, Some(ErrorClass::Status));
    assert_eq!(visitor.failed(&parts[1], at(3)), None);
    answer(&mut visitor, &parts[2], at(4), 200, &[], "");
    assert_eq!(visitor.failed(&parts[3], at(9)), Some(at(9)));
    assert_eq!(visitor.next(None, at(9)), Next::Over);
}

#[test]
fn an_error_is_no_page() {
    let set = set(&RequestOptions { page: true, ..asking(&[URL]) });
    let mut visitor = Visitor::new(Arc::clone(&set), 0, 1);
    let asked = ask(&mut visitor, at(0));
    let judged = answer(&mut visitor, &asked, at(1), 503, &[], "<img src=a.png>");
    assert_eq!((judged.error, judged.page), (Some(ErrorClass::Status), None));
    assert_eq!(visitor.next(None, at(1)), Next::Over);
    let asked = ask(&mut visitor, at(2));
    assert_eq!(visitor.failed(&asked, at(3)), None);
    assert_eq!(visitor.next(None, at(3)), Next::Over);
}

#[test]
fn feed_readers_send_what_the_last_answer_said() {
    let shape = Shape::load("feed-readers").expect("built in");
    let set = set(&RequestOptions { shape: Some(shape), ..asking(&["http://h/rss/"]) });
    let mut sent = std::collections::BTreeMap::<(bool, bool), u32>::new();
    for number in 0..200 {
        let mut visitor = Visitor::new(Arc::clone(&set), number, 1);
        let asked = ask(&mut visitor, at(0));
        let is_fresh_rss = field(&asked, "If-None-Match") == Some("\"a\"");
        let base = &set.requests[asked.request as usize].fields;
        let is_conditional = base.iter().any(|(_, value)| value.starts_with("FreshRSS"));
        *sent.entry((is_conditional, is_fresh_rss)).or_default() += 1;
        answer(&mut visitor, &asked, at(0), if is_fresh_rss { 304 } else { 200 }, &[("ETag", "\"a\"")], "");
        assert_eq!(visitor.next(None, at(0)), Next::Over);
    }
    assert_eq!(sent.get(&(true, false)), Some(&1), "the first alone has nothing to compare with: {sent:?}");
    assert!(sent[&(true, true)] > 100 && sent[&(false, false)] > 30 && !sent.contains_key(&(false, true)), "{sent:?}");
}

#[test]
fn classes_of_a_shape_come_when_it_says() {
    let shape = Shape::load("newsletter").expect("built in");
    let set = set(&RequestOptions { shape: Some(shape), over: Some(at(100)), ..asking(&["http://h/post"]) });
    let readers = |seconds| {
        let came = (0..1000).filter(|number| {
            let asked = ask(&mut Visitor::new(Arc::clone(&set), *number, 1), at(seconds));
            let fields = asked.own.expect("unique parameters").fields;
            fields.iter().any(|(_, value)| value.contains("iPhone"))
        });
        came.count()
    };
    // At the beginning nearly all are scanners: 8 to 0.9 by the areas under the courses; after a fifth of the time there is none.
    assert!(readers(0) < 150, "{}", readers(0));
    // Two in three, for the rest are members.
    assert!((600..740).contains(&readers(50)), "{}", readers(50));
    let asked = ask(&mut Visitor::new(Arc::clone(&set), 3, 1), at(50));
    assert!(target(&set, &asked).starts_with("/post?utm_source=newsletter&utm_medium=email&utm_id=000000073x"), "{}", target(&set, &asked));
}

#[test]
fn parts_of_a_page_are_asked_by_whoever_asked_for_the_page() {
    let shape = Shape::load("newsletter").expect("built in");
    let set = set(&RequestOptions { shape: Some(shape), ..asking(&["http://h/post"]) });
    let is_member = |number: &u64| {
        let asked = ask(&mut Visitor::new(Arc::clone(&set), *number, 1), at(300));
        field(&asked, "Cookie").is_some()
    };
    let member = (0..1000).find(is_member).expect("some are");
    let mut visitor = Visitor::new(Arc::clone(&set), member, 1);
    let page = ask(&mut visitor, at(300));
    answer(&mut visitor, &page, at(300), 200, &[("Set-Cookie", "seen=1; Path=/")], "<img src=a.png>");
    let part = ask(&mut visitor, at(300));
    let sent = format!("ghost-members-ssr=reader{member}%40example.org; ghost-members-ssr.sig=bench{member}; seen=1");
    assert_eq!(field(&part, "Cookie"), Some(sent.as_str()));
}

#[test]
fn fields_replace_the_defaults_or_leave_them_out() {
    let fields = ["user-agent: mine", "Accept:", "X-A: b"].map(str::to_owned).to_vec();
    let set = set(&RequestOptions { fields, ..asking(&[URL]) });
    assert_eq!(set.requests[0].fields, [("user-agent", "mine"), ("X-A", "b")].map(|(name, value)| (name.to_owned(), value.to_owned())));
}

#[test]
fn braces_of_a_url_that_was_found_are_no_placeholders() {
    let found = vec![Url::read("http://h/{n}?a={unique}").expect("valid")];
    let set = set(&RequestOptions { found, fields: vec!["X-N: {n}".to_owned()], ..asking(&[]) });
    let asked = ask(&mut Visitor::new(Arc::clone(&set), 0, 1), at(0));
    assert_eq!((target(&set, &asked), field(&asked, "X-N")), ("/%7Bn%7D?a=%7Bunique%7D", Some("1")));
}

#[test]
fn what_cannot_be_asked_is_an_error_that_says_why() {
    let text = |text: &str| vec![text.to_owned()];
    for (asking, part) in [
        (asking(&[]), "there is no URL"),
        (asking(&["h"]), "write http://h"),
        (asking(&["http://h/{uniqe}"]), "{uniqe} is not a placeholder"),
        (asking(&["http://{client}/"]), "path and query alone"),
        (RequestOptions { method: Some("G T".to_owned()), ..asking(&[URL]) }, "is not a method"),
        (RequestOptions { method: Some("CONNECT".to_owned()), ..asking(&[URL]) }, "CONNECT"),
        (RequestOptions { fields: text("X"), ..asking(&[URL]) }, "write 'Name: value'"),
        (RequestOptions { fields: text("X y: z"), ..asking(&[URL]) }, "write 'Name: value'"),
        (RequestOptions { fields: text("X: a\nb"), ..asking(&[URL]) }, "write 'Name: value'"),
        (RequestOptions { fields: text("Host: a"), ..asking(&[URL]) }, "--connect-to"),
        (RequestOptions { fields: text("Connection: close"), ..asking(&[URL]) }, "--no-keepalive"),
        (RequestOptions { fields: text("X: {x}"), ..asking(&[URL]) }, "{x} is not a placeholder"),
        (RequestOptions { body: Some(Body::read("@/nowhere")), ..asking(&[URL]) }, "/nowhere: cannot be read"),
        (RequestOptions { body_placeholders: true, ..asking(&[URL]) }, "no content"),
        (RequestOptions { page: true, method: Some("POST".to_owned()), ..asking(&[URL]) }, "--page"),
        (RequestOptions { page_origins: text("http://h"), ..asking(&[URL]) }, "--page-origin belongs"),
        (RequestOptions { leak_cookie: Some("a=b".to_owned()), ..asking(&[URL]) }, "{marker}"),
        (RequestOptions { page: true, fields: text("Accept-Encoding: br"), ..asking(&[URL]) }, "gzip"),
        (RequestOptions { lists: vec!["/nowhere.txt".into()], ..asking(&[]) }, "/nowhere.txt: cannot be read"),
    ] {
        let error = asking.set().expect_err(part).to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_log_that_is_replayed_takes_fields_and_checks_too() {
    let asked = asking(&["http://h/a"]).set().expect("valid");
    let log = RequestSet { requests: vec![Request { target: "/{x}".to_owned(), ..asked.requests[0].clone() }], ..asked };
    let asking = RequestOptions { fields: vec!["X-A: b".to_owned()], cookies: true, ..asking(&[]) };
    let set = asking.behave(log).expect("valid");
    assert_eq!(set.requests[0].target, "/{x}");
    assert!(set.requests[0].fields.contains(&("X-A".to_owned(), "b".to_owned())));
    assert!(matches!(Visitor::new(Arc::new(set), 0, 1).next(Some(0), at(0)), Next::Ask(VisitorRequest { request: 0, .. })));
}

#[test]
fn a_log_that_is_replayed_is_asked_as_it_stands_beside_fields_that_differ() {
    let fields = [("referer", "http://h/{n}"), ("user-agent", "{bot}")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let asked = asking(&["http://h/a"]).set().expect("valid");
    let request =
        Request { target: "/br{a}ce?x={b}".to_owned(), method: "HEAD".to_owned(), fields: fields.to_vec(), ..asked.requests[0].clone() };
    let log = RequestSet { requests: vec![request], ..asked };
    for (given, agent) in [(vec!["X-N: {n}".to_owned()], "{bot}"), (vec!["X-N: {n}".to_owned(), "User-Agent: mine".to_owned()], "mine")] {
        let set = Arc::new(RequestOptions { fields: given, ..asking(&[]) }.behave(log.clone()).expect("valid"));
        let Next::Ask(asked) = Visitor::new(Arc::clone(&set), 0, 1).next(Some(0), at(0)) else { panic!("a request") };
        assert_eq!((set.requests[0].method.as_str(), target(&set, &asked)), ("HEAD", "/br{a}ce?x={b}"));
        assert_eq!(field(&asked, "X-N"), Some("1"));
        assert_eq!(field(&asked, "Referer").or_else(|| field(&asked, "referer")), Some("http://h/{n}"));
        assert_eq!(field(&asked, "User-Agent").or_else(|| field(&asked, "user-agent")), Some(agent));
    }
}

#[test]
fn a_log_that_is_replayed_is_judged_by_every_check() {
    let asked = asking(&["http://h/a"]).set().expect("valid");
    let mut checks = Checks::default();
    checks.expect_status("200").expect("valid");
    let asking = RequestOptions { checks, cookies: true, leak_cookie: Some("sid={marker}".to_owned()), ..asking(&[]) };
    let set = Arc::new(asking.behave(asked).expect("valid"));
    let mut visitor = Visitor::new(Arc::clone(&set), 0, 1);
    let Next::Ask(asked) = visitor.next(Some(0), at(0)) else { panic!("a request") };
    assert!(asked.wants_body, "the leak check reads contents");
    assert!(field(&asked, "Cookie").is_some_and(|cookie| cookie.starts_with("sid=")));
    let judged = visitor.answered(&asked, &Answer { status: 404, fields: &[], body: Some(b"") }, at(1));
    assert_eq!(judged.error, Some(ErrorClass::Status));
}
