//! Why a request passes, and the rules of a kind by which it does.

use std::borrow::Cow;

use semantics::{percent, request::RequestHead};

use crate::{
    Policy,
    names::Names,
    preset::{Area, CookieName, CookieRule, Passes, Rule, Rules, Way},
    trace::Trace,
};

/// The rule by which a request passes: the origin is asked, and nothing is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassRule {
    /// The method is neither GET nor HEAD.
    Method,
    /// The client wants to change to another protocol.
    Upgrade,
    /// The request has content.
    Content,
    /// The route that the request is for is not cached.
    Route,
    /// The operator's load tester has had the request signed, so that it goes past the cache.
    Direct,
    /// The kind has a rule of this name about the path.
    Path(&'static str),
    /// The kind has a rule of this name about a query parameter.
    Parameter(&'static str),
    /// The kind has a rule of this name about a field.
    Field(&'static str),
    /// The kind has a rule of this name about a cookie.
    Cookie {
        /// The name of the rule.
        rule: &'static str,
        /// The name of the cookie, as the table has it.
        cookie: CookieName,
    },
}

impl PassRule {
    /// Returns the name for `Cache-Status` details, `seawall explain` and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Upgrade => "upgrade",
            Self::Content => "content",
            Self::Route => "route",
            Self::Direct => "direct",
            Self::Path(name) | Self::Parameter(name) | Self::Field(name) | Self::Cookie { rule: name, .. } => name,
        }
    }

    /// Returns whether the origin is asked for the query as it came: what unlocks something there is not for this cache to judge.
    pub(crate) const fn keeps_query(self) -> bool {
        match self {
            Self::Method | Self::Upgrade | Self::Content => false,
            Self::Route | Self::Direct | Self::Path(_) | Self::Parameter(_) | Self::Field(_) | Self::Cookie { .. } => true,
        }
    }

    /// Returns the cookie by which the request passes.
    #[must_use]
    pub const fn cookie(self) -> Option<CookieName> {
        match self {
            Self::Cookie { cookie, .. } => Some(cookie),
            Self::Method
            | Self::Upgrade
            | Self::Content
            | Self::Route
            | Self::Direct
            | Self::Path(_)
            | Self::Parameter(_)
            | Self::Field(_) => None,
        }
    }
}

impl Policy {
    /// Finds the rules for a path in its normal form, or the rule by which its requests pass.
    ///
    /// # Errors
    /// When requests for the path pass.
    pub(crate) fn rules(&self, path: &str, trace: &mut impl Trace) -> Result<&'static Rules, PassRule> {
        if self.preset.areas.is_empty() {
            return Ok(&self.preset.rules);
        }
        let area = self.area(path);
        match area.map(|area| (area, &area.way)) {
            None => {
                trace.notes("area", || "none".to_owned());
                Ok(&self.preset.rules)
            }
            Some((area, Way::Lookup(rules))) => {
                trace.notes("area", || area.name.to_owned());
                Ok(rules)
            }
            Some((area, Way::Pass)) => {
                trace.decides("area", true, || area.name.to_owned());
                Err(PassRule::Path(area.name))
            }
        }
    }

    /// Finds the area of the kind that a path is in.
    #[inline(never)]
    pub(crate) fn area(&self, path: &str) -> Option<&'static Area> {
        // Some software takes several slashes for one.
        let single = single_slashes(path);
        let below = self.below_base(&single);
        self.preset.areas.iter().find(|area| area.paths.have(below))
    }

    /// Returns a path as the site's software sees it that is not at the top of its host. What is not below its place stays as it is.
    pub(crate) fn below_base<'a>(&self, path: &'a str) -> &'a str {
        let base = self.settings().base_path.as_str();
        match path.get(..base.len()).filter(|start| start.eq_ignore_ascii_case(base)).map(|_| &path[base.len()..]) {
            Some(rest) if rest.starts_with('/') => rest,
            Some(_) | None => path,
        }
    }

    /// Returns the rule of these rules by which a request passes.
    ///
    /// Most kinds have no such rule, and this is not called for them.
    #[inline(never)]
    pub(crate) fn passes(&self, rules: &Rules, head: &RequestHead<'_>, trace: &mut impl Trace) -> Option<PassRule> {
        let Passes { parameters, fields, cookies } = &rules.passes;
        let by_parameter = parameters.iter().find(|rule| has_parameter(head.query, &rule.of));
        if trace.decides("passing parameters", by_parameter.is_some(), || name_or_none(by_parameter)) {
            return by_parameter.map(|rule| PassRule::Parameter(rule.name));
        }
        let has_field = |name: &str| {
            let mut has = false;
            head.fields.lines.for_each(name, |_| has = true);
            has
        };
        let by_field = fields.iter().find(|rule| rule.of.whole.iter().any(|name| has_field(name)));
        if trace.decides("passing fields", by_field.is_some(), || name_or_none(by_field)) {
            return by_field.map(|rule| PassRule::Field(rule.name));
        }
        let by_cookie = self.passing_cookie(cookies, head);
        let seen = || by_cookie.map_or_else(|| "none".to_owned(), |(rule, cookie)| format!("{rule} ({cookie})"));
        if trace.decides("passing cookies", by_cookie.is_some(), seen) {
            return by_cookie.map(|(rule, cookie)| PassRule::Cookie { rule, cookie });
        }
        None
    }

    /// Finds the first rule about a cookie of the request, and the name of that cookie in the table.
    fn passing_cookie(&self, rules: &[CookieRule], head: &RequestHead<'_>) -> Option<(&'static str, CookieName)> {
        let mut found: Option<(usize, &'static str, CookieName)> = None;
        self.cookies.each_pair(head.fields, |name, value| {
            let by_rule = rules.iter().enumerate().find_map(|(at, rule)| Some((at, rule.name, rule.matched(name, value)?)));
            let by_settings = || self.cookies.is_dropped(name).then_some((rules.len(), SESSION_COOKIE, CookieName::OF_THE_SETTINGS));
            let new = by_rule.or_else(by_settings);
            // The rules are tried in their order, whatever that of the cookies.
            if let Some(new) = new.filter(|(at, ..)| found.is_none_or(|(before, ..)| *at < before)) {
                found = Some(new);
            }
        });
        found.map(|(_, rule, cookie)| (rule, cookie))
    }
}

/// Returns a path with one slash where it has several.
#[must_use]
pub fn single_slashes(path: &str) -> Cow<'_, str> {
    if !path.contains("//") {
        return Cow::Borrowed(path);
    }
    let mut single = String::with_capacity(path.len());
    for character in path.chars() {
        if character != '/' || !single.ends_with('/') {
            single.push(character);
        }
    }
    Cow::Owned(single)
}

/// The name of the rule about cookies that the settings take off the answers to others.
const SESSION_COOKIE: &str = "session-cookie";

/// Returns whether a query has a parameter with one of these names.
pub(crate) fn has_parameter(query: Option<&str>, names: &Names) -> bool {
    // In doubt it has: software differs in how it reads names.
    query.into_iter().flat_map(|query| query.split('&')).any(|pair| names.have(&parameter_name(pair)) || names.have(&php_name(pair)))
}

/// Returns the name of a rule for a trace, or `none`.
fn name_or_none(rule: Option<&Rule>) -> String {
    rule.map_or("none", |rule| rule.name).to_owned()
}

/// Returns the name of a parameter as most software reads it: `g%69ft[]=1` is `gift`, and to some of it `[gift]=1` is, too.
pub(crate) fn parameter_name(parameter: &str) -> String {
    let decoded = decoded_name(parameter);
    let bare = decoded.strip_prefix(b"[").unwrap_or(&decoded);
    let end = bare.iter().position(|&b| b == b'[' || b == b']').unwrap_or(bare.len());
    String::from_utf8_lossy(&bare[..end]).into_owned()
}

/// Returns the name of a parameter as PHP reads it: it makes underscores of what cannot be in the name of a variable, and of a bracket that is not
/// closed.
pub(crate) fn php_name(parameter: &str) -> String {
    let decoded = decoded_name(parameter);
    let start = decoded.iter().position(|byte| !b" +".contains(byte)).unwrap_or(decoded.len());
    let name = &decoded[start..];
    let bracket = name.iter().position(|&b| b == b'[').filter(|&at| name[at..].contains(&b']'));
    let name = String::from_utf8_lossy(&name[..bracket.unwrap_or(name.len())]);
    name.replace(['.', ' ', '+', '['], "_")
}

/// Returns the name of a parameter, decoded, as far as software in C reads it: to the first NUL.
fn decoded_name(parameter: &str) -> Vec<u8> {
    let name = parameter.split_once('=').map_or(parameter, |(name, _)| name).as_bytes();
    let mut decoded = percent::decoded(name);
    let end = decoded.iter().position(|&byte| byte == 0).unwrap_or(decoded.len());
    decoded.truncate(end);
    decoded
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::{HeaderMap, HeaderName, Method};
    use semantics::{RequestFields as Fields, request::Scheme};

    use super::*;
    use crate::{
        Carries, EarlyHints, Key, Settings, Steps, Verdict,
        preset::{CookieValue, Cookies, Keeps, Kind, Parameters, Paths, Preset, Responses, SentFields, SourceForm},
    };

    const LOGGED_IN: CookieRule = CookieRule::any("logged-in", &[], &["logged_in_"]);
    const MEMBER: Names = Names { whole: &["member"], beginnings: &[] };
    const CART: Names = Names { whole: &["cart"], beginnings: &[] };
    const BASKET: Names = Names { whole: &["basket"], beginnings: &[] };

    /// The rules of a publishing system that does not exist.
    static INVENTED: Preset = Preset {
        name: "invented",
        product: None,
        sources: &[SourceForm::Server],
        is_impersonal: false,
        areas: &[
            Area {
                name: "editor",
                paths: Paths { whole: &["/login"], beginnings: &["/editor/"], endings: &[".cgi"], also: Some(|path| path == "/x1") },
                way: Way::Pass,
            },
            Area {
                name: "assets",
                paths: Paths { beginnings: &["/assets/"], ..Paths::NONE },
                way: Way::Lookup(Rules {
                    passes: Passes { cookies: &[LOGGED_IN], ..Passes::NONE },
                    parameters: Parameters::Only(Names { whole: &["v"], beginnings: &[] }),
                    keeps: Keeps::AS_ALLOWED,
                }),
            },
        ],
        rules: Rules {
            passes: Passes {
                parameters: &[
                    Rule { name: "preview", of: Names { whole: &["preview"], beginnings: &["draft_"] } },
                    Rule { name: "gift", of: Names { whole: &["gift"], beginnings: &[] } },
                ],
                fields: &[Rule { name: "nonce", of: Names { whole: &["x-nonce"], beginnings: &[] } }],
                cookies: &[
                    CookieRule { name: "member", of: MEMBER, also: None, counts: CookieValue::Any },
                    LOGGED_IN,
                    CookieRule { name: "cart", of: CART, also: None, counts: CookieValue::NotZero },
                    CookieRule { name: "basket", of: BASKET, also: Some(("x(1)", |name| name == "x1")), counts: CookieValue::Filled },
                ],
            },
            parameters: Parameters::Only(Names { whole: &["page", "s"], beginnings: &["filter_"] }),
            keeps: Keeps::AS_ALLOWED,
        },
        cookies: Cookies { ignored: Names { whole: &["theme"], beginnings: &[] }, unknown_are_personal: false },
        request_fields: SentFields::Only(&["accept", "host"]),
        hold: Some(Duration::from_secs(60)),
        not_found_hold_max: Some(Duration::from_secs(5)),
        stale_if_error: None,
        stale_while_revalidate: None,
        honours_request_directives: false,
        shows_what_was_purged: true,
        signals: crate::purge::Signals::None,
        obeys_purge_fields: false,
        two_visitor_proof: false,
        early_hints: EarlyHints::Off,
        companions: &[],
        logins: &[],
        responses: Responses::PLAIN,
    };

    fn by_cookie(rule: &'static str, of: &Names, name: &str) -> Option<PassRule> {
        Some(PassRule::Cookie { rule, cookie: CookieName::of(of, name).expect("it is of these") })
    }

    fn invented(settings: Settings) -> Policy {
        Policy::by(&INVENTED, settings)
    }

    fn judged(policy: &Policy, target: &str, fields: &[(&'static str, &str)]) -> (Verdict, Vec<u8>, Vec<String>) {
        let map: HeaderMap = fields.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().expect("a value"))).collect();
        let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let fields = Fields::from_map(&map);
        let head = RequestHead { method: &Method::GET, scheme: Scheme::Http, authority: "a", path, query, fields: &fields };
        let (mut key, mut steps) = (Vec::new(), Steps::default());
        let verdict = policy.verdict_traced(1, &head, &mut key, &mut steps);
        (verdict, key, steps.0.into_iter().filter(|step| step.decided).map(|step| format!("{}: {}", step.rule, step.detail)).collect())
    }

    fn verdict(target: &str, fields: &[(&'static str, &str)]) -> Verdict {
        judged(&invented(Settings::preset(Kind::Generic)), target, fields).0
    }

    const FOR_ALL: Verdict = Verdict::Lookup(Carries { cookie: false, ghost_cookie: false, authorization: false });

    #[test]
    fn a_request_passes_by_the_rules_of_its_kind() {
        for (target, fields, expected) in [
            ("/login", &[][..], Some(PassRule::Path("editor"))),
            ("/editor/posts", &[], Some(PassRule::Path("editor"))),
            // RFC 3986 §6.2.2: another spelling of the same path.
            ("/a/../%65ditor/posts", &[], Some(PassRule::Path("editor"))),
            // To some software this is the same path.
            ("/LOGIN", &[], Some(PassRule::Path("editor"))),
            ("/Editor/posts", &[], Some(PassRule::Path("editor"))),
            ("/a/b.cgi", &[], Some(PassRule::Path("editor"))),
            ("/x1", &[], Some(PassRule::Path("editor"))),
            ("/editor", &[], None),
            ("/login/", &[], None),
            ("/?preview", &[], Some(PassRule::Parameter("preview"))),
            ("/?page=2&draft_id=7", &[], Some(PassRule::Parameter("preview"))),
            ("/?%67ift=1", &[], Some(PassRule::Parameter("gift"))),
            ("/?gift%5B%5D=1", &[], Some(PassRule::Parameter("gift"))),
            ("/?gift[a]=1", &[], Some(PassRule::Parameter("gift"))),
            ("/?[gift]=1", &[], Some(PassRule::Parameter("gift"))),
            ("/?%5Bgift%5D[]=1", &[], Some(PassRule::Parameter("gift"))),
            ("/?gifts=1&x=gift", &[], None),
            ("/?%6=1&%zz&%", &[], None),
            ("/", &[("x-nonce", "1")], Some(PassRule::Field("nonce"))),
            ("/", &[("cookie", "theme=dark; member=1")], by_cookie("member", &MEMBER, "member")),
            ("/", &[("cookie", "logged_in_ab=1")], by_cookie("logged-in", &LOGGED_IN.of, "logged_in_ab")),
            ("/", &[("cookie", "members=1; other=2")], None),
            // By value, whatever else is there.
            ("/", &[("cookie", "cart=1")], by_cookie("cart", &CART, "cart")),
            ("/", &[("cookie", "cart=0; cart=20")], by_cookie("cart", &CART, "cart")),
            ("/", &[("cookie", "cart=\"3\"")], by_cookie("cart", &CART, "cart")),
            ("/", &[("cookie", "cart=; cart=0; cart=00; cart=\"0\"; cart=\"\"; cart")], None),
            ("/", &[("cookie", "basket=0")], by_cookie("basket", &BASKET, "basket")),
            ("/", &[("cookie", "basket=; basket; basket=\"\"; x1=")], None),
            ("/", &[("cookie", "basket=a=b"), ("cookie", "member=")], by_cookie("member", &MEMBER, "member")),
            // PHP makes underscores of these.
            ("/?draft.id=1", &[], Some(PassRule::Parameter("preview"))),
            ("/?+draft+id=1", &[], Some(PassRule::Parameter("preview"))),
            ("/?draft[id=1", &[], Some(PassRule::Parameter("preview"))),
            ("/?draft%5bid=1", &[], Some(PassRule::Parameter("preview"))),
            // It reads a name to its first NUL.
            ("/?gift%00=1", &[], Some(PassRule::Parameter("gift"))),
            ("/?a=1&g%69ft%00x[]=1", &[], Some(PassRule::Parameter("gift"))),
            ("/?draft[id%00x]=1", &[], Some(PassRule::Parameter("preview"))),
            ("/?%00gift=1", &[], None),
            ("/assets/a.css", &[("cookie", "member=1")], None),
            ("/assets/a.css", &[("cookie", "logged_in_ab=1")], by_cookie("logged-in", &LOGGED_IN.of, "logged_in_ab")),
            ("/Assets/a.css?gift=1", &[("cookie", "member=1")], None),
        ] {
            assert_eq!(verdict(target, fields), expected.map_or(FOR_ALL, Verdict::Pass), "{target} {fields:?}");
        }
    }

    #[test]
    fn an_operator_is_told_which_rule_lets_a_request_pass() {
        let policy = invented(Settings::preset(Kind::Generic));
        let told = |target, fields| judged(&policy, target, fields).2;
        assert_eq!(told("/login", &[]), ["area: editor"]);
        assert_eq!(told("/?gift", &[]), ["passing parameters: gift"]);
        assert_eq!(told("/", &[("x-nonce", "1")]), ["passing fields: nonce"]);
        assert_eq!(told("/", &[("cookie", "member=secret")]), ["passing cookies: member (member)"]);
        assert_eq!(told("/", &[("cookie", "logged_in_secret=1")]), ["passing cookies: logged-in (logged_in_*)"]);
        let rule = by_cookie("member", &MEMBER, "member").expect("a rule");
        assert_eq!((rule.name(), rule.cookie().map(|cookie| cookie.to_string())), ("member", Some("member".to_owned())));
    }

    #[test]
    fn who_has_a_cookie_that_others_are_not_given_is_somebody() {
        let policy = invented(Settings { drop_set_cookies: vec!["PHPSESSID".into(), "sess_*".into()], ..Settings::preset(Kind::Generic) });
        let rule = PassRule::Cookie { rule: "session-cookie", cookie: CookieName::OF_THE_SETTINGS };
        for (cookie, expected) in [
            ("PHPSESSID=1", Verdict::Pass(rule)),
            ("a=1; sess_a=1", Verdict::Pass(rule)),
            ("PHPSESSID2=1; theme=1", FOR_ALL),
            ("PHPSESSID=1; member=1", Verdict::Pass(by_cookie("member", &MEMBER, "member").expect("a rule"))),
        ] {
            assert_eq!(judged(&policy, "/", &[("cookie", cookie)]).0, expected, "{cookie}");
        }
    }

    #[test]
    fn of_an_allow_list_only_what_is_on_it_is_in_the_key_and_goes_to_the_origin() {
        let settings = Settings { ignore_query: vec!["s".into()], keep_query: vec!["lang".into()], ..Settings::preset(Kind::Generic) };
        let policy = invented(settings);
        let (_, key, _) = judged(&policy, "/?x=1&page=2&s=a&filter_tag=b&lang=nl&fbclid=c", &[]);
        assert_eq!(Key::read(&key).expect("a key").target, "/?page=2&filter_tag=b&lang=nl");
        assert_eq!(policy.forwarded_target("/", Some("x=1")).as_deref(), Some("/"));
        assert_eq!(policy.passed_target(PassRule::Path("editor"), "/login", Some("x=1&fbclid=c")).as_deref(), Some("/login?x=1&fbclid=c"));
        // An area has parameters of its own, and what is not of the path is not in its key.
        let (_, key, _) = judged(&policy, "/assets/a.css?v=1&page=2", &[]);
        assert_eq!(Key::read(&key).expect("a key").target, "/assets/a.css?v=1");
        assert_eq!(policy.forwarded_target("/assets/a.css", Some("v=1&page=2")).as_deref(), Some("/assets/a.css?v=1"));
        // Whoever posts a form says more than a page depends on.
        assert_eq!(policy.passed_target(PassRule::Method, "/", Some("x=1")).as_deref(), Some("/?x=1"));
        let generic = Policy::new(Settings::preset(Kind::Generic));
        assert_eq!(generic.passed_target(PassRule::Method, "/", Some("x=1&fbclid=c")).as_deref(), Some("/?x=1"));
    }

    #[test]
    fn the_rules_are_for_paths_below_the_place_of_the_software() {
        let policy = invented(Settings { base_path: "/blog".to_owned(), ..Settings::preset(Kind::Generic) });
        for (target, expected) in [
            ("/blog/login", Some(PassRule::Path("editor"))),
            ("/BLOG/editor/x", Some(PassRule::Path("editor"))),
            // Not the software's, but nothing is lost by asking.
            ("/login", Some(PassRule::Path("editor"))),
            ("/blogs/login", None),
            ("/blog", None),
        ] {
            assert_eq!(judged(&policy, target, &[]).0, expected.map_or(FOR_ALL, Verdict::Pass), "{target}");
        }
    }

    #[test]
    fn a_kind_can_say_which_fields_its_origin_sees() {
        let policy = invented(Settings::preset(Kind::Generic));
        let seen = ["accept", "host", "origin", "x-http-method-override"].map(|name| policy.shares_field(name));
        assert_eq!(seen, [true, true, false, false]);
    }
}
