use policy::purge::{Dialect, Maker};

use super::*;

const MAKERS: [Maker; 7] =
    [Maker::Operator, Maker::Plugin(Dialect::Varnish), Maker::Origin, Maker::UnsafeMethod, Maker::Folder, Maker::Reload, Maker::Watch];

/// The meaning of an order, or the refusal of it.
type Meaning = Result<Vec<PurgeTarget>, Unresolved>;

fn known(sites: &[(&str, u16, &[&str])], moved: &[&str]) -> Arc<KnownSites> {
    let mut known = KnownSites::default();
    for (name, number, hosts) in sites {
        known.numbers.insert((*name).to_owned(), *number);
        hosts.iter().for_each(|host| known.hosts.insert(host, *number));
        if hosts.is_empty() {
            known.hosts.insert_for_any(*number);
        }
    }
    moved.iter().for_each(|host| known.hosts.take_out(host));
    Arc::new(known)
}

/// Three sites, of which the last has every host that is left.
fn directory() -> Directory {
    let sites: [(&str, u16, &[&str]); 3] =
        [("blog", 1, &["blog.example", "*.blog.example"]), ("shop", 2, &["shop.blog.example", "[2001:db8::1]"]), ("rest", 3, &[])];
    Directory { now: known(&sites, &["www.blog.example"]), before: Arc::default() }
}

fn url(site: u16, url: &str) -> PurgeTarget {
    PurgeTarget::Url { site, url: url.into() }
}

fn prefix(site: u16, url: &str) -> PurgeTarget {
    PurgeTarget::Prefix { site, url: url.into() }
}

fn tag(site: u16) -> PurgeTarget {
    PurgeTarget::Tag { site, tag: "post-1".to_owned() }
}

fn over(scheme: Scheme, authority: &str, target: &str) -> What {
    What::Url(Address::over(scheme, authority, target))
}

fn either(authority: &str, target: &str) -> What {
    What::Url(Address::over_either(authority, target))
}

fn host(host: &str) -> What {
    What::host(host).expect("a host")
}

/// Who orders it changes nothing about what an order means: the sites that it is for decide.
#[test]
fn every_makers_order_means_the_same() {
    let blog = || Sites::Named("blog".to_owned());
    let not_of_the_site = |host: &str| Err(Unresolved::NotOfTheSite(host.to_owned()));
    let cases: Vec<(What, Meaning, Meaning)> = vec![
        // What, for all sites, and for the blog alone.
        (What::Everything, Ok(vec![PurgeTarget::All]), Ok(vec![PurgeTarget::Site(1)])),
        (What::Tag("post-1".to_owned()), Ok(vec![tag(1), tag(2), tag(3)]), Ok(vec![tag(1)])),
        // Whoever has the name may have answered for it once.
        (
            over(Scheme::Http, "blog.example", "/a?b=c"),
            Ok(vec![url(1, "blog.example/a"), url(3, "blog.example/a")]),
            Ok(vec![url(1, "blog.example/a")]),
        ),
        (
            What::prefix("https://Blog.Example.:443/%61/").expect("an address"),
            Ok(vec![prefix(1, "blog.example/a/"), prefix(3, "blog.example/a/")]),
            Ok(vec![prefix(1, "blog.example/a/")]),
        ),
        (
            host("Blog.Example."),
            Ok(vec![prefix(1, "blog.example/"), prefix(1, "blog.example:"), prefix(3, "blog.example/"), prefix(3, "blog.example:")]),
            Ok(vec![prefix(1, "blog.example/"), prefix(1, "blog.example:")]),
        ),
        // The shop answers for this host, so it is not the blog's, although the blog has it among its names.
        (
            either("shop.blog.example", "/a"),
            Ok(vec![url(1, "shop.blog.example/a"), url(2, "shop.blog.example/a"), url(3, "shop.blog.example/a")]),
            not_of_the_site("shop.blog.example"),
        ),
        (
            What::Prefix(Address::over_either("Shop.Blog.example:80", "/")),
            Ok([1, 2, 3].iter().flat_map(|&site| [prefix(site, "shop.blog.example/"), prefix(site, "shop.blog.example:80/")]).collect()),
            not_of_the_site("shop.blog.example"),
        ),
        (
            host("[2001:DB8:0::1]:443"),
            Ok([2, 3].iter().flat_map(|&site| [prefix(site, "[2001:db8::1]/"), prefix(site, "[2001:db8::1]:443/")]).collect()),
            not_of_the_site("[2001:db8::1]:443"),
        ),
        // It only leads elsewhere: it is nobody's, whoever has the name among others.
        (
            over(Scheme::Https, "www.blog.example", "/"),
            Ok(vec![url(1, "www.blog.example/"), url(3, "www.blog.example/")]),
            not_of_the_site("www.blog.example"),
        ),
        (either("other.example", "/"), Ok(vec![url(3, "other.example/")]), not_of_the_site("other.example")),
        (
            either("blog.example", "*"),
            Err(Unresolved::NoPath(Address::over_either("blog.example", "*"))),
            Err(Unresolved::NoPath(Address::over_either("blog.example", "*"))),
        ),
    ];
    for by in MAKERS {
        for (what, for_all, for_blog) in &cases {
            for (sites, expected) in [(Sites::All, for_all), (blog(), for_blog)] {
                for hard in [false, true] {
                    let order = Order { sites: sites.clone(), what: vec![what.clone()], hard, by };
                    assert_eq!(directory().resolve(&order).map(|resolved| resolved.targets).as_ref(), expected.as_ref(), "{order:?}");
                }
            }
        }
    }
}

/// RFC 9110 §4.2.3: a scheme's own port may be written or not. What is purged over one scheme is purged over both, where no scheme was
/// written.
#[test]
fn an_address_is_found_in_every_spelling() {
    let urls = |what: What| {
        let resolved = directory().resolve(&Order::for_site("rest", vec![what], true, Maker::Operator)).expect("it is served");
        let words: Vec<String> = resolved.covered.iter().map(ToString::to_string).collect();
        let keys: Vec<String> = resolved
            .targets
            .into_iter()
            .map(|target| match target {
                PurgeTarget::Url { site: 3, url } => String::from_utf8(url).expect("text"),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(keys, words);
        keys
    };
    for (authority, over_http, over_https, over_either) in [
        ("a.example", &["a.example/x"][..], &["a.example/x"][..], &["a.example/x"][..]),
        ("a.example:80", &["a.example/x"], &["a.example:80/x"], &["a.example/x", "a.example:80/x"]),
        ("a.example:0443", &["a.example:443/x"], &["a.example/x"], &["a.example/x", "a.example:443/x"]),
        ("A.Example.:8080", &["a.example:8080/x"], &["a.example:8080/x"], &["a.example:8080/x"]),
        ("a.example:", &["a.example/x"], &["a.example/x"], &["a.example/x"]),
        ("[0::1]", &["[::1]/x"], &["[::1]/x"], &["[::1]/x"]),
        ("[::1]:80", &["[::1]/x"], &["[::1]:80/x"], &["[::1]/x", "[::1]:80/x"]),
    ] {
        assert_eq!(urls(over(Scheme::Http, authority, "/./x?y")), over_http, "{authority}");
        assert_eq!(urls(over(Scheme::Https, authority, "/%78")), over_https, "{authority}");
        assert_eq!(urls(either(authority, "/x")), over_either, "{authority}");
    }
}

#[test]
fn a_host_is_everything_under_its_name() {
    for (host, expected) in [
        ("Blog.example", &["blog.example/", "blog.example:"][..]),
        ("blog.example:8080", &["blog.example:8080/"]),
        // Under http the key of port 80 has no port; under https it has.
        ("blog.example:80", &["blog.example/", "blog.example:80/"]),
        ("blog.example.:0443", &["blog.example/", "blog.example:443/"]),
        ("Blog.example.", &["blog.example/", "blog.example:"]),
        ("blog.example:", &["blog.example/", "blog.example:"]),
        ("[2001:DB8::1]", &["[2001:db8::1]/", "[2001:db8::1]:"]),
    ] {
        let found = beginnings(&host.parse().expect("a host")).1;
        assert_eq!(found.into_iter().collect::<Vec<_>>(), expected.iter().map(|url| url.as_bytes().to_vec()).collect::<Vec<_>>(), "{host}");
    }
}

/// All of it or nothing: half a purge would leave pages in place that its sender believes gone.
#[test]
fn an_order_is_understood_whole_or_refused() {
    let directory = Directory { now: known(&[("blog", 1, &["blog.example"])], &[]), before: Arc::default() };
    let (good, bad) = (either("blog.example", "/a"), either("other.example", "/a"));
    let for_blog = |what: &[&What]| Order::for_site("blog", what.iter().copied().cloned().collect(), true, Maker::Plugin(Dialect::Souin));
    assert!(directory.resolve(&for_blog(&[&good])).is_ok());
    assert_eq!(directory.resolve(&for_blog(&[&good, &bad])), Err(Unresolved::NotOfTheSite("other.example".to_owned())));
    assert_eq!(directory.resolve(&for_blog(&[])), Err(Unresolved::Nothing));
    for what in [good, What::Everything, What::Tag("a".to_owned()), host("blog.example")] {
        let order = Order::for_site("shop", vec![what], true, Maker::Origin);
        assert_eq!(directory.resolve(&order), Err(Unresolved::NoSuchSite("shop".to_owned())));
    }
    let nowhere =
        [over(Scheme::Http, "Other.example:8080", "/"), What::prefix("http://other.example/").expect("an address"), host("other.example")];
    for (what, named) in nowhere.into_iter().zip(["Other.example:8080", "other.example", "other.example"]) {
        assert_eq!(directory.resolve(&Order::by_operator(what, true)), Err(Unresolved::NotServed(named.to_owned())));
    }
    for (error, words) in [
        (Unresolved::NoPath(Address::over_either("a", "*")), "* is not a valid path"),
        (Unresolved::NoPath(Address::over(Scheme::Http, "a", "/\u{e9}")), "http://a/\u{e9} has no valid path"),
        (Unresolved::NotServed("a".to_owned()), "no site is served under a"),
        (Unresolved::NotOfTheSite("a".to_owned()), "a does not belong to the site that got the purge request"),
    ] {
        assert_eq!(error.to_string(), words);
    }
}

/// While workers take over a new configuration, pages are stored under the numbers of both.
#[test]
fn a_site_that_got_another_number_is_purged_under_both() {
    let before = known(&[("blog", 1, &["blog.example", "old.example"]), ("gone", 2, &["gone.example"])], &[]);
    let now = known(&[("blog", 5, &["blog.example"]), ("new", 6, &["old.example"])], &[]);
    let directory = Directory { now, before };
    let meaning = |order: Order| directory.resolve(&order).map(|resolved| resolved.targets);
    let for_site = |name: &str, what: What| Order::for_site(name, vec![what], true, Maker::UnsafeMethod);
    assert_eq!(meaning(for_site("blog", What::Everything)), Ok(vec![PurgeTarget::Site(1), PurgeTarget::Site(5)]));
    let page = || over(Scheme::Http, "blog.example", "/");
    assert_eq!(meaning(for_site("blog", page())), Ok(vec![url(1, "blog.example/"), url(5, "blog.example/")]));
    assert_eq!(meaning(Order::by_operator(page(), true)), Ok(vec![url(1, "blog.example/"), url(5, "blog.example/")]));
    // A request that is still under way on the configuration before.
    let moved = || over(Scheme::Http, "old.example", "/");
    assert_eq!(meaning(for_site("blog", moved())), Ok(vec![url(1, "old.example/"), url(5, "old.example/")]));
    assert_eq!(meaning(for_site("new", moved())), Ok(vec![url(6, "old.example/")]));
    assert_eq!(meaning(for_site("gone", What::Everything)), Ok(vec![PurgeTarget::Site(2)]));
    // Nobody is told that a site is served which no longer is.
    assert_eq!(meaning(Order::by_operator(host("gone.example"), true)), Err(Unresolved::NotServed("gone.example".to_owned())));
}
