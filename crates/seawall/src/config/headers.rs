//! `[https]` and `[headers]`: what responses carry beside what the origin sends.

use std::str::FromStr;

use http::{HeaderName, HeaderValue, header};
use policy::SourceForm;
use toml::Spanned;

use super::{
    error::Mistake,
    file,
    resolve::{Resolver, seconds},
    settings::Headers,
    sites::first,
    units::Period,
};

/// The largest number of fields in `set` or `remove`. Whoever needs more writes them in the origin.
const FIELDS_MAX: usize = 32;
const HSTS_MAX: Period = seconds(730 * 86_400);
/// The shortest `hsts` that the list of the browser makers accepts.
const PRELOAD_MIN: Period = seconds(365 * 86_400);

/// Fields that can be neither set nor removed: those that say where a message ends or what a cache may do with it, and those that Seawall
/// writes. Otherwise, stored responses would not be what the origin said.
const FIXED: [&str; 29] = [
    "accept-ranges",
    "age",
    "alt-svc",
    "cache-control",
    "cache-status",
    "cdn-cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-location",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expires",
    "keep-alive",
    "last-modified",
    "location",
    "pragma",
    "proxy-status",
    "seawall-cache-control",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "vary",
    "www-authenticate",
    "x-cache",
];

/// A field to add: its name, a colon and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldLine(pub HeaderName, pub HeaderValue);

impl FromStr for FieldLine {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let mistake = || {
            Mistake::new(
                format!("\"{text}\" is not a field"),
                "write its name, a colon and its value, such as \"Permissions-Policy: camera=()\"",
            )
        };
        let (name, value) = text.split_once(':').ok_or_else(mistake)?;
        let FieldName(name) = name.trim().parse()?;
        if name == header::STRICT_TRANSPORT_SECURITY {
            return Err(Mistake::new("Strict-Transport-Security is sent over https only", "write hsts = \"365d\" in [https] instead"));
        }
        let value = value.trim();
        let value = HeaderValue::from_str(value).ok().filter(|_| !value.is_empty() && value.is_ascii()).ok_or_else(mistake)?;
        Ok(Self(name, value))
    }
}

/// The name of a field that may be set or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldName(pub HeaderName);

impl FromStr for FieldName {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let name = text.parse::<HeaderName>().map_err(|_| {
            let mistake = Mistake::new(format!("\"{text}\" is not the name of a field"), "write a name such as \"X-Powered-By\"");
            match text.split_once(':') {
                Some((name, _)) if name.trim().parse::<HeaderName>().is_ok() => mistake.meant(name.trim()),
                _ => mistake,
            }
        })?;
        if FIXED.contains(&name.as_str()) {
            let remedy = match name.as_str() {
                "cache-control" | "expires" | "pragma" => "let the origin say it; how long Seawall itself keeps a page is hold in [cache]",
                _ => "leave it out: only the origin, or Seawall itself, sets this field",
            };
            return Err(Mistake::new(format!("{text} cannot be changed here, because caching depends on it"), remedy));
        }
        Ok(Self(name))
    }
}

impl Resolver<'_> {
    /// Reads what responses of a site carry beside what its origin sends. Pages that are made from a folder get what protects them without a
    /// setting; a server is expected to know what it does.
    pub(super) fn headers(&mut self, https: [&file::Https; 2], headers: [&file::Headers; 2], form: SourceForm) -> Headers {
        let security = first(headers.map(|headers| &headers.security)).map(|said| *said.get_ref());
        let mut set = self.fields("set", first(headers.map(|headers| &headers.set)), |line: &FieldLine| line.0.clone());
        let remove = self.fields("remove", first(headers.map(|headers| &headers.remove)), |name: &FieldName| name.0.clone());
        let remove: Vec<HeaderName> = remove.into_iter().map(|FieldName(name)| name).collect();
        // What is only removed is not wanted, whoever would add it.
        let unwanted = |name: &HeaderName| remove.contains(name) || set.iter().any(|FieldLine(other, _)| other == name);
        let wanted = |fields: &[(HeaderName, &'static str)]| -> Vec<(HeaderName, HeaderValue)> {
            let fields = fields.iter().filter(|(name, _)| !unwanted(name));
            fields.map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
        };
        let (by_form, framing_by_form) = match form {
            SourceForm::Server | SourceForm::Php => (false, false),
            SourceForm::Files => (true, false),
            SourceForm::Markdown => (true, true),
        };
        let framing = security.unwrap_or(framing_by_form);
        let security = security.unwrap_or(by_form);
        let everywhere = wanted(if security { &[(header::X_CONTENT_TYPE_OPTIONS, "nosniff")] } else { &[] });
        let mut set_on_documents = wanted(if security { &[(header::REFERRER_POLICY, "strict-origin-when-cross-origin")] } else { &[] });
        set_on_documents.extend(wanted(if framing { &[(header::X_FRAME_OPTIONS, "SAMEORIGIN")] } else { &[] }));
        let hsts = self.hsts(https);
        let set = set.drain(..).map(|FieldLine(name, value)| (name, value)).chain(everywhere).collect();
        Headers { remove, set, set_on_documents, hsts }
    }

    /// Returns a list in which no name occurs twice.
    fn fields<T: Clone>(&mut self, key: &str, list: Option<&Spanned<Vec<Spanned<T>>>>, name: impl Fn(&T) -> HeaderName) -> Vec<T> {
        let Some(list) = list else { return Vec::new() };
        if list.get_ref().len() > FIELDS_MAX {
            let mistake = Mistake::new(format!("{} fields are too many for {key}", list.get_ref().len()), format!("at most {FIELDS_MAX}"));
            self.wrong_at(mistake, list.span());
        }
        for (at, item) in list.get_ref().iter().enumerate() {
            let this = name(item.get_ref());
            if list.get_ref()[..at].iter().any(|before| name(before.get_ref()) == this) {
                self.wrong_at(Mistake::new(format!("{this} is in {key} twice"), "write it once, with all its values"), item.span());
            }
        }
        list.get_ref().iter().map(|item| item.get_ref().clone()).collect()
    }

    fn hsts(&mut self, https: [&file::Https; 2]) -> Option<HeaderValue> {
        let period = self.layered(https.map(|https| &https.hsts));
        let is_set = |layers| first(layers).filter(|said: &&Spanned<bool>| *said.get_ref()).map(Spanned::span);
        let subdomains = is_set(https.map(|https| &https.hsts_subdomains));
        let preload = is_set(https.map(|https| &https.hsts_preload));
        let Some(period) = period else {
            for (key, span) in [("hsts_subdomains", &subdomains), ("hsts_preload", &preload)] {
                if let Some(span) = span {
                    self.wrong_at(Mistake::new(format!("{key} has no effect without hsts"), "write hsts = \"365d\" too"), span.clone());
                }
            }
            return None;
        };
        let period = self.within("hsts", Some(period), seconds(0), seconds(0)..=HSTS_MAX);
        if let Some(span) = preload.clone().filter(|_| period < PRELOAD_MIN || subdomains.is_none()) {
            let remedy = "write hsts = \"365d\" or more and hsts_subdomains = true, or leave hsts_preload out";
            self.wrong_at(Mistake::new("browser makers do not accept a site into their list with these settings", remedy), span);
        }
        let mut value = format!("max-age={}", period.0.as_secs());
        for (said, directive) in [(subdomains, "; includeSubDomains"), (preload, "; preload")] {
            if said.is_some() {
                value.push_str(directive);
            }
        }
        HeaderValue::from_str(&value).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_to_add() {
        let line = "X-Robots-Tag:  noindex, nofollow ".parse::<FieldLine>().expect("a field");
        assert_eq!((line.0.as_str(), line.1.to_str().expect("text")), ("x-robots-tag", "noindex, nofollow"));
        for (text, expected) in [
            ("X-Robots-Tag", "name, a colon and its value"),
            ("X-Robots-Tag:", "name, a colon and its value"),
            ("X-A: b\nX-C: d", "name, a colon and its value"),
            ("X A: b", "a name such as"),
            ("Cache-Control: no-store", "hold in [cache]"),
            ("Content-Length: 0", "leave it out"),
            ("Strict-Transport-Security: max-age=1", "hsts = "),
        ] {
            let mistake = text.parse::<FieldLine>().expect_err(text);
            assert!(mistake.remedy.contains(expected), "{text}: {mistake:?}");
        }
    }

    #[test]
    fn fields_to_remove() {
        assert_eq!("X-Powered-By".parse(), Ok(FieldName(HeaderName::from_static("x-powered-by"))));
        assert!("Server: nginx".parse::<FieldName>().expect_err("a line").meant.unwrap_or_default().contains("\"Server\""));
        assert!("ETag".parse::<FieldName>().expect_err("a validator").problem.contains("cannot be changed"));
    }
}
