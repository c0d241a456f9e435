//! A request's verdict, and its cache key.

use std::borrow::Cow;

use http::Method;
use semantics::{
    request::{RequestFields, RequestHead, Slot},
    target::normal_path,
};

use crate::{
    AcceptClass, PassRule, Policy, key,
    preset::{Parameters, Rules, SentFields},
    purge,
    trace::{Silent, Trace},
};

/// The policy's answer to a request: what is to happen with it.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The cache is asked.
    Lookup(Carries),
    /// The origin is asked, and nothing is stored: this rule decided so.
    Pass(PassRule),
    /// Stored responses are to be purged. Such a request is answered here, and never by the origin. See [`Policy::purge_order`].
    Purge,
    /// The target cannot be understood: 400.
    Malformed,
}

/// The signs of who asks, which a lookup has to know beside the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Carries {
    /// Whether the request carries a cookie that may be somebody's.
    pub cookie: bool,
    /// Whether one of these cookies is by its name one of a Ghost. Its answer is a member's, whatever it says.
    pub ghost_cookie: bool,
    /// Whether the request carries `Authorization`.
    pub authorization: bool,
}

impl Carries {
    /// Returns whether the answer may be meant for one person. If so, only the origin's explicit word makes it shareable.
    #[must_use]
    pub const fn is_personal(self) -> bool {
        self.cookie || self.authorization
    }
}

impl Policy {
    /// Judges a request. On [`Verdict::Lookup`] its key stands in `key`, without what `Vary` adds;
    /// [`Key`](crate::Key) reads it. The host must have its one spelling already ([`canonical_authority`]), as the origin is asked for it by that.
    ///
    /// [`canonical_authority`]: semantics::target::canonical_authority
    pub fn verdict(&self, site: u16, head: &RequestHead<'_>, key: &mut Vec<u8>) -> Verdict {
        self.verdict_traced(site, head, key, &mut Silent)
    }

    /// Judges a request as [`Policy::verdict`] does, and tells `trace` what each rule said. A [`Silent`] trace is told nothing, and nothing is
    /// made for it.
    #[inline]
    pub fn verdict_traced(&self, site: u16, head: &RequestHead<'_>, key: &mut Vec<u8>, trace: &mut impl Trace) -> Verdict {
        key.clear();
        if trace.decides("method", *head.method != Method::GET && *head.method != Method::HEAD, || head.method.to_string()) {
            return if purge::is_purge(head) { Verdict::Purge } else { Verdict::Pass(PassRule::Method) };
        }
        if let Some(prefix) = &self.settings().purge_path
            && trace.decides("purge path", *head.method == Method::GET && purge::below(head.path, prefix).is_some(), || prefix.clone())
        {
            return Verdict::Purge;
        }
        if trace.decides("upgrade", head.fields.upgrade.is_present(), || present(head.fields.upgrade)) {
            return Verdict::Pass(PassRule::Upgrade);
        }
        // Some clients say the length of nothing with every request.
        let is_nothing = matches!(head.fields.content_length, Slot::Absent | Slot::One(b"0"));
        let content = !is_nothing || head.fields.transfer_encoding.is_present();
        if trace.decides("content", content, || if content { "the request has content" } else { "none" }.to_owned()) {
            return Verdict::Pass(PassRule::Content);
        }
        let path = normal_path(head.path);
        if trace.decides("path", path.is_err(), || path.as_deref().unwrap_or("not to be understood").to_owned()) {
            return Verdict::Malformed;
        }
        let Ok(path) = path else { return Verdict::Malformed };
        let rules = match self.rules(&path, trace) {
            Ok(rules) => rules,
            Err(rule) => return Verdict::Pass(rule),
        };
        if !rules.passes.is_none()
            && let Some(rule) = self.passes(rules, head, trace)
        {
            return Verdict::Pass(rule);
        }
        let class = self.class(head.fields);
        trace.notes("accept", || class.name().to_owned());
        key::write_page(key, site, head.scheme, class, head.authority, &path);
        trace.notes("query", || self.query.describe(&rules.parameters, head.query));
        if let Some(query) = head.query.and_then(|query| self.query.clean(&rules.parameters, query)) {
            key::write_query(key, &query);
        }
        if self.is_impersonal() {
            trace.notes("cookies", || "not looked at: the source is the same for everybody".to_owned());
            return Verdict::Lookup(Carries::default());
        }
        trace.notes("cookies", || self.cookies.describe(head.fields));
        trace.notes("authorization", || present(head.fields.authorization));
        let cookie = self.cookies.is_personal(head.fields);
        let ghost_cookie = cookie && self.cookies.has_of_ghost(head.fields);
        Verdict::Lookup(Carries { cookie, ghost_cookie, authorization: head.fields.authorization.is_present() })
    }

    /// Returns path and query as the origin is asked for them where the cache was asked: in the form that is in the key, so that both mean
    /// the same page. `None`: the path has no normal form.
    #[must_use]
    pub fn forwarded_target<'a>(&self, path: &'a str, query: Option<&'a str>) -> Option<Cow<'a, str>> {
        let path = normal_path(path).ok()?;
        let rules = self.rules_for(&path);
        Some(match query.and_then(|query| self.query.clean(&rules.parameters, query)) {
            None => path,
            Some(query) => Cow::Owned(format!("{path}?{query}")),
        })
    }

    /// Returns the query parameters that [`forwarded_target`](Self::forwarded_target) leaves out; `None` if it leaves out nothing. They are still
    /// the reader's: whoever is redirected takes them along.
    #[must_use]
    pub fn left_out(&self, path: &str, query: Option<&str>) -> Option<String> {
        let path = normal_path(path).ok()?;
        self.query.taken(&self.rules_for(&path).parameters, query?)
    }

    /// Returns path and query as the origin is asked for them where a request passes by this rule. What only trackers read is left out, unless
    /// the rule is one of the kind or the kind keeps a list of what its pages depend on. `None`: the path has no normal form.
    #[must_use]
    pub fn passed_target<'a>(&self, rule: PassRule, path: &'a str, query: Option<&'a str>) -> Option<Cow<'a, str>> {
        match self.preset.rules.parameters {
            Parameters::AllBut(_) if !rule.keeps_query() => self.forwarded_target(path, query),
            Parameters::AllBut(_) | Parameters::Only(_) => whole_target(path, query),
        }
    }
}

impl Policy {
    /// Returns the rules for the answer to a request for `path`, in its normal form. Where such requests pass, those of the whole kind.
    pub(crate) fn rules_for(&self, path: &str) -> &'static Rules {
        self.rules(path, &mut Silent).unwrap_or(&self.preset.rules)
    }

    /// Returns the class of what a client asks for. An origin that is asked in one form for each class ([`Policy::canonical_accept`]) answers
    /// what the client likes best; any other may go by whatever stands in the field.
    fn class(&self, fields: &RequestFields<'_>) -> AcceptClass {
        match self.preset.request_fields {
            SentFields::AllButMisleading => AcceptClass::of(fields),
            SentFields::Only(_) => AcceptClass::preferred_by(fields),
            SentFields::HtmlOr(other) => AcceptClass::html_or(other, fields),
        }
    }

    /// Returns the `Accept` with which the origin is asked for what others may get, if it is asked in one form for each class.
    #[must_use]
    pub const fn canonical_accept(&self, class: AcceptClass) -> Option<&'static str> {
        match self.preset.request_fields {
            SentFields::AllButMisleading => None,
            SentFields::Only(_) | SentFields::HtmlOr(_) => class.plain(),
        }
    }
}

/// Returns path and query for a server whose answers are never stored: the path in its normal form, by which the server was chosen, and the query as
/// it came. `None`: the path has no normal form.
#[must_use]
pub fn whole_target<'a>(path: &'a str, query: Option<&str>) -> Option<Cow<'a, str>> {
    let path = normal_path(path).ok()?;
    Some(match query {
        None => path,
        Some(query) => Cow::Owned(format!("{path}?{query}")),
    })
}

/// Says whether a field is there. Its value may be a secret, and is never shown.
fn present(slot: Slot<'_>) -> String {
    if slot.is_present() { "present" } else { "none" }.to_owned()
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use semantics::{
        request::{RequestFields, Scheme},
        target::canonical_authority,
    };

    use super::*;
    use crate::{Kind, Settings};

    fn verdict(policy: &Policy, method: &Method, authority: &str, target: &str, fields: &[(&'static str, &str)]) -> (Verdict, Vec<u8>) {
        let mut map = HeaderMap::new();
        for (name, value) in fields {
            map.append(*name, value.parse().expect("a field value"));
        }
        let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let authority = &canonical_authority(Scheme::Http, authority);
        let head = RequestHead { method, scheme: Scheme::Http, authority, path, query, fields: &RequestFields::from_map(&map) };
        let mut key = Vec::new();
        (policy.verdict(1, &head, &mut key), key)
    }

    #[test]
    fn the_same_page_has_one_key() {
        let policy = Policy::new(Settings::preset(Kind::Generic));
        let key = |authority, target| verdict(&policy, &Method::GET, authority, target, &[]).1;
        assert_eq!(key("Blog.Example", "/a"), key("blog.example:80", "/%61?fbclid=1"));
        assert_eq!(key("blog.example", "/a/../b"), key("blog.example", "/b"));
        assert_ne!(key("blog.example", "/a"), key("blog.example:8080", "/a"));
        assert_ne!(key("blog.example", "/a?x=1&y=2"), key("blog.example", "/a?y=2&x=1"));
        assert_ne!(key("blog.example", "/a?"), key("blog.example", "/a"));
        assert_ne!(key("ab", "/c"), key("a", "/bc"));
    }

    #[test]
    fn what_is_unusual_passes_with_the_name_of_its_rule() {
        let policy = Policy::new(Settings::preset(Kind::Generic));
        let unknown = Method::from_bytes(b"FOO").expect("a method");
        let cases = [
            (Method::POST, None, PassRule::Method),
            (unknown, None, PassRule::Method),
            (Method::GET, Some(("upgrade", "websocket")), PassRule::Upgrade),
            (Method::GET, Some(("content-length", "3")), PassRule::Content),
        ];
        for (method, field, rule) in cases {
            assert_eq!(verdict(&policy, &method, "a", "/", field.as_slice()).0, Verdict::Pass(rule));
        }
    }

    #[test]
    fn analytics_cookies_do_not_make_a_request_personal() {
        let policy = Policy::new(Settings { ignore_cookies: vec!["theme".into()], ..Settings::preset(Kind::Generic) });
        let personal = |cookie: &str| match verdict(&policy, &Method::GET, "a", "/", &[("cookie", cookie)]).0 {
            Verdict::Lookup(asked) => asked.cookie,
            other => panic!("{other:?}"),
        };
        assert!(!personal("_ga=GA1.2.3; _ga_ABC=1; theme=dark"));
        assert!(personal("_ga=1; session=abc"));
        assert!(personal("themes=dark"));
        assert!(personal("nonsense"));
        for consent in ["CookieConsent=yes", "OptanonConsent=a", "cookieyes-consent=yes", "euconsent-v2=x", "__hs_opt_out=no"] {
            assert!(personal(consent), "{consent}");
        }
    }

    #[test]
    fn a_folder_does_not_care_who_asks() {
        let policy = Policy::new(Settings::preset(Kind::Static));
        let asked = verdict(&policy, &Method::GET, "a", "/", &[("cookie", "session=1"), ("authorization", "Basic eA==")]).0;
        assert_eq!(asked, Verdict::Lookup(Carries::default()));
    }

    /// RFC 9110 §9.2: what changes something passes; and each rule is told as it was tried, up to the one that decided.
    #[test]
    fn every_rule_that_was_tried_is_told() {
        let policy = Policy::new(Settings { ignore_cookies: vec!["theme".into()], ..Settings::preset(Kind::Generic) });
        let told = |method: &Method, target: &str, fields: &[(&'static str, &str)]| {
            let map: HeaderMap =
                fields.iter().map(|(name, value)| (http::HeaderName::from_static(name), value.parse().expect("a value"))).collect();
            let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
            let fields = RequestFields::from_map(&map);
            let head = RequestHead { method, scheme: Scheme::Http, authority: "a", path, query, fields: &fields };
            let (mut steps, mut key, mut silent) = (crate::Steps::default(), Vec::new(), Vec::new());
            let traced = policy.verdict_traced(1, &head, &mut key, &mut steps);
            assert_eq!((&traced, &key), (&policy.verdict(1, &head, &mut silent), &silent));
            steps.0.iter().map(|step| format!("{}{}: {}", step.rule, if step.decided { "!" } else { "" }, step.detail)).collect::<Vec<_>>()
        };
        assert_eq!(told(&Method::POST, "/", &[]), ["method!: POST"]);
        assert_eq!(told(&Method::GET, "/", &[("upgrade", "websocket")]), ["method: GET", "upgrade!: present"]);
        assert_eq!(told(&Method::GET, "*", &[]).last().map(String::as_str), Some("path!: not to be understood"));
        let fields = [("cookie", "_ga=1; session=secret; theme=dark"), ("authorization", "Basic c2VjcmV0")];
        assert_eq!(
            told(&Method::GET, "/%61?page=2&fbclid=1&utm_source=x", &fields),
            [
                "method: GET",
                "upgrade: none",
                "content: none",
                "path: /a",
                "accept: html",
                "query: page=2; removed: fbclid, utm_source",
                "cookies: personal: session; ignored: _ga, theme",
                "authorization: present",
            ]
        );
    }
}
