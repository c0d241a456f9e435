//! What of a client's request goes into a request whose answer others may get.
//!
//! The cache answers others by key and `Vary`. Whatever else the origin looks at, one client decides for all. So a field goes with a request
//! that asks the cache if it is in the key, if it decided that the answer may be shared, or if it is the origin's to nominate: RFC 9111 §4.1
//! lets a cache send any field and rely on `Vary`, and servers vary on names that nobody can list. What is left out is what no honest `Vary`
//! goes with: fields by which some frameworks take another method, path or host than the request has, fields about a content that a GET does
//! not have, and what says that a request is not meant as one. A stricter kind can keep a list of what is sent instead.
//!
//! Not here: what only proxies may say (`origins::is_for_proxies_only`) and what concerns a connection alone are removed from every request;
//! conditions and ranges are the pipeline's.

use http::{HeaderMap, HeaderValue};
use semantics::{
    RequestFields,
    field_name::{is_same_variable, with_hyphens},
    request::has_any,
    vary::FORMS_FOR_SCRIPTS,
};

use crate::{Policy, key, preset::SentFields};

/// The fields from which some software takes a part of the request that is in the key: method, path, host.
const OVERRIDES: &[&str] = &[
    "base-url",
    "destination",
    "http-url",
    "request-uri",
    "uri",
    "url",
    "x-base-url",
    "x-host",
    "x-http-destinationurl",
    "x-http-host",
    "x-http-method",
    "x-http-path",
    "x-http-uri",
    "x-http-url",
    "x-matched-path",
    "x-method",
    "x-path",
    "x-proxy-host",
    "x-proxy-url",
    "x-request-uri",
    "x-request-url",
    "x-script-name",
    "x-server-name",
    "x-service-url",
    "x-uri",
    "x-url",
];

/// The beginnings of names of the same sort. Fields about content are among them, as a request that asks the cache has no content. `Content-Type` goes
/// all the same in its usual forms ([`settle_forms_for_scripts`]), as some servers answer no GET of a script without it; what comes back is then for
/// those who send the same ([`semantics::vary::Vary::of`]).
const OVERRIDE_PREFIXES: &[&str] = &[
    "content-",
    "x-backend-",
    "x-forward-",
    "x-forwarded-",
    "x-invoke-",
    "x-middleware-",
    "x-original-",
    "x-override-",
    "x-rewrite-",
    "x-wap-",
];

/// The end of names of the same sort.
const OVERRIDE_SUFFIX: &str = "-override";

/// The fields that say how the answer will be used, or ask for less than the page: a page that is fetched on suspicion (`Sec-Purpose`), a
/// difference to a former version (RFC 3229), a confirmation before content is sent.
const ABOUT_THE_REQUEST: &[&str] = &["a-im", "expect", "purpose", "sec-purpose", "x-moz", "x-purpose"];

/// The fields by which the answer to the client is made here.
const FOR_THE_CLIENT: &[&str] = &[
    "accept-encoding",
    "available-dictionary",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "range",
];

/// The values that scripts give to each of [`FORMS_FOR_SCRIPTS`]. Others are not sent, or a stranger could make variants without end, and the
/// oldest variant goes first.
const USUAL_VALUES: [&[&str]; 5] = [
    &["application/json", "application/graphql", "application/x-www-form-urlencoded", "text/plain"],
    &["XMLHttpRequest"],
    &["true"],
    &["true"],
    &["true"],
];

/// Gives each of [`FORMS_FOR_SCRIPTS`] in a request that asks the cache one of its usual values, or removes the field.
pub fn settle_forms_for_scripts(fields: &mut HeaderMap) {
    if !has_any(fields, &FORMS_FOR_SCRIPTS) {
        return;
    }
    for (name, usual) in FORMS_FOR_SCRIPTS.iter().zip(USUAL_VALUES) {
        let Some(said) = fields.get(name) else { continue };
        let said = said.as_bytes().split(|&b| b == b';').next().unwrap_or_default().trim_ascii();
        match usual.iter().find(|usual| said.eq_ignore_ascii_case(usual.as_bytes())) {
            Some(usual) => drop(fields.insert(name, HeaderValue::from_static(usual))),
            None => drop(fields.remove(name)),
        }
    }
}

impl Policy {
    /// Returns whether the field of this name, in lower case, goes to the origin with a request whose answer others may get.
    ///
    /// What the answer to the client itself goes by is among them: its conditions, ranges and codings do not go to the origin with such a
    /// request.
    #[must_use]
    pub fn shares_field(&self, name: &str) -> bool {
        if let Some(name) = with_hyphens(name) {
            return !FORMS_FOR_SCRIPTS.iter().any(|form| form.as_str() == name) && self.shares_field(&name);
        }
        let overrides = OVERRIDES.contains(&name)
            || (OVERRIDE_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) && name != "content-type")
            || name.ends_with(OVERRIDE_SUFFIX);
        let is_sent = match self.preset.request_fields {
            SentFields::AllButMisleading => true,
            SentFields::Only(names) => names.contains(&name) || FOR_THE_CLIENT.contains(&name),
            SentFields::HtmlOr(_) => matches!(name, "accept" | "host") || FOR_THE_CLIENT.contains(&name),
        };
        is_sent && !overrides && !ABOUT_THE_REQUEST.contains(&name)
    }

    /// Returns whether the settings let a trusted proxy speak in this field. If so, the field goes to the origin, and is part of the key.
    #[must_use]
    pub fn is_trusted_field(&self, name: &str) -> bool {
        self.settings().trusted_fields.iter().any(|trusted| trusted == name)
    }

    /// Returns whether CGI takes the name for that of a trusted field: it makes one variable of `X-Country` and `X_Country`.
    #[must_use]
    pub fn is_spelling_of_trusted_field(&self, name: &str) -> bool {
        self.settings().trusted_fields.iter().any(|trusted| is_same_variable(trusted, name))
    }

    /// Completes a key of [`Policy::verdict`] for a request from a trusted proxy. Each line of the fields that the settings name is added.
    pub fn key_trusted_fields(&self, fields: &RequestFields<'_>, key: &mut Vec<u8>) {
        for name in &self.settings().trusted_fields {
            fields.lines.for_each(name, |value| key::write_trusted_field(key, name, value));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Kind, Policy, Settings};

    #[test]
    fn what_no_vary_goes_with_is_not_sent() {
        let policy = Policy::new(Settings::preset(Kind::Generic));
        for name in [
            "x-http-method-override",
            "x-method-override",
            "x_http_method",
            "x-original-url",
            "x-rewrite-url",
            "x-forwarded-host",
            "x_forwarded_proto",
            "x-host",
            "x-wap-profile",
            "content-encoding",
            "content_type",
            "x.original.url",
            "x_requested_with",
            "x-host-override",
            "sec-purpose",
            "a-im",
        ] {
            assert!(!policy.shares_field(name), "{name}");
        }
        for name in [
            "accept",
            "accept-language",
            "user-agent",
            "referer",
            "origin",
            "cookie",
            "authorization",
            "content-type",
            "dnt",
            "save-data",
            "sec-ch-ua",
            "prefer",
            "priority",
            "traceparent",
            "x-requested-with",
            "foo",
            "test-id",
            "host",
        ] {
            assert!(policy.shares_field(name), "{name}");
        }
        let trusting = Policy::new(Settings { trusted_fields: vec!["x-country".into()], ..Settings::preset(Kind::Generic) });
        assert!(trusting.is_trusted_field("x-country") && !trusting.is_trusted_field("x_country"));
        assert!(trusting.is_spelling_of_trusted_field("x_country") && !trusting.is_spelling_of_trusted_field("x-countr"));
    }
}
