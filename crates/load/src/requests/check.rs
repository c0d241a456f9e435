//! The checks that answers must pass.

use memchr::memmem::Finder;

use super::content::decoded;
use crate::{answer::Answer, record::ErrorClass, requests::WANTED_MAX};

/// Says what answers must be. Without any check, a status of 400 or more is an error.
#[derive(Debug, Clone, Default)]
pub struct Checks {
    statuses: Vec<(u16, u16)>,
    contains: Vec<Finder<'static>>,
    lacks: Vec<Finder<'static>>,
    fields: Vec<FieldCheck>,
}

/// Says what a field must be.
#[derive(Debug, Clone)]
struct FieldCheck {
    name: String,
    is: FieldIs,
}

#[derive(Debug, Clone)]
enum FieldIs {
    There,
    Missing,
    Equal(String),
    Other(String),
}

/// The reason why a text is not a check.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// It is not a list of statuses.
    #[error("{0:?} is not a status: write 200, 2xx, 200-299, or several with commas")]
    Status(String),
    /// There is nothing to look for.
    #[error("there is no text to look for")]
    Empty,
    /// It is not a check of a field.
    #[error("{0:?} is not a check of a field: write 'Name' (it is there), '!Name' (it is not), 'Name: value' or 'Name!: value'")]
    Field(String),
}

impl Checks {
    /// Expects one of the statuses of a list: `200,301`, `2xx`, `200-299`.
    ///
    /// # Errors
    /// When the text is no such list.
    pub fn expect_status(&mut self, text: &str) -> Result<(), CheckError> {
        for item in text.split(',').map(str::trim) {
            let error = || CheckError::Status(item.to_owned());
            let status = |text: &str| text.parse::<u16>().ok().filter(|status| text.len() == 3 && (100..1000).contains(status));
            let range = if let Some(class) = item.strip_suffix("xx").or_else(|| item.strip_suffix("XX")) {
                let class: u16 = class.parse().ok().filter(|class| (1..=9).contains(class)).ok_or_else(error)?;
                (class * 100, class * 100 + 99)
            } else if let Some((first, last)) = item.split_once('-') {
                (status(first).ok_or_else(error)?, status(last).ok_or_else(error)?)
            } else {
                let status = status(item).ok_or_else(error)?;
                (status, status)
            };
            if range.0 > range.1 {
                return Err(error());
            }
            self.statuses.push(range);
        }
        Ok(())
    }

    /// Expects that contents have a text in them; with `!` before it, that they have it not.
    ///
    /// # Errors
    /// When there is no text.
    pub fn expect_body(&mut self, text: &str) -> Result<(), CheckError> {
        let (list, text) = text.strip_prefix('!').map_or((&mut self.contains, text), |text| (&mut self.lacks, text));
        if text.is_empty() {
            return Err(CheckError::Empty);
        }
        list.push(Finder::new(text).into_owned());
        Ok(())
    }

    /// Expects something of a field: `Name`, `!Name`, `Name: value` or `Name!: value`.
    ///
    /// # Errors
    /// When the text is not a check.
    pub fn expect_field(&mut self, text: &str) -> Result<(), CheckError> {
        let (name, is) = match (text.split_once(':'), text.strip_prefix('!')) {
            (Some((name, value)), _) => match name.strip_suffix('!') {
                Some(name) => (name, FieldIs::Other(value.trim().to_owned())),
                None => (name, FieldIs::Equal(value.trim().to_owned())),
            },
            (None, Some(name)) => (name, FieldIs::Missing),
            (None, None) => (text, FieldIs::There),
        };
        let name = name.trim();
        if !is_field_name(name) {
            return Err(CheckError::Field(text.to_owned()));
        }
        self.fields.push(FieldCheck { name: name.to_owned(), is });
        Ok(())
    }

    /// Returns whether contents are looked at.
    #[must_use]
    pub const fn want_body(&self) -> bool {
        !self.contains.is_empty() || !self.lacks.is_empty()
    }

    /// Says what is wrong with an answer of this status. A content that cannot be read fails its checks; where none is due (`HEAD`, 204, 304), nothing
    /// is looked at.
    pub(super) fn fail(&self, answer: &Answer<'_>, status: u16, has_none: bool) -> Option<ErrorClass> {
        let expected = if self.statuses.is_empty() {
            (100..400).contains(&status)
        } else {
            self.statuses.iter().any(|(first, last)| (*first..=*last).contains(&status))
        };
        if !expected {
            return Some(ErrorClass::Status);
        }
        if self.fields.iter().any(|check| !check.holds(answer)) {
            return Some(ErrorClass::Field);
        }
        if self.want_body() && !has_none && !matches!(status, 204 | 304) {
            let Ok(content) = decoded(answer.fields, answer.body.unwrap_or_default(), WANTED_MAX) else { return Some(ErrorClass::Body) };
            let has = |finder: &Finder<'_>| finder.find(&content).is_some();
            if !self.contains.iter().all(has) || self.lacks.iter().any(has) {
                return Some(ErrorClass::Body);
            }
        }
        None
    }
}

impl FieldCheck {
    fn holds(&self, answer: &Answer<'_>) -> bool {
        let mut values =
            answer.fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case(self.name.as_bytes())).map(|(_, value)| value.trim_ascii());
        match &self.is {
            FieldIs::There => values.next().is_some(),
            FieldIs::Missing => values.next().is_none(),
            FieldIs::Equal(expected) => values.any(|value| value == expected.as_bytes()),
            FieldIs::Other(refused) => !values.any(|value| value == refused.as_bytes()),
        }
    }
}

/// Returns whether a text is the name of a field (RFC 9110 §5.6.2).
pub(super) fn is_field_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::content::gzip;

    fn checks(status: &str, body: &[&str], fields: &[&str]) -> Checks {
        let mut checks = Checks::default();
        if !status.is_empty() {
            checks.expect_status(status).expect("valid");
        }
        for text in body {
            checks.expect_body(text).expect("valid");
        }
        for text in fields {
            checks.expect_field(text).expect("valid");
        }
        checks
    }

    fn answer<'a>(status: u16, fields: &'a [crate::answer::Field<'a>], body: &'a [u8]) -> Answer<'a> {
        Answer { status, fields, body: Some(body) }
    }

    #[test]
    fn statuses_are_those_of_the_list_or_below_400() {
        for (list, status, error) in [
            ("", 0, Some(ErrorClass::Status)),
            ("", 99, Some(ErrorClass::Status)),
            ("", 200, None),
            ("", 304, None),
            ("", 400, Some(ErrorClass::Status)),
            ("", 503, Some(ErrorClass::Status)),
            ("200", 200, None),
            ("200", 301, Some(ErrorClass::Status)),
            ("200,404", 404, None),
            ("2xx, 5XX", 503, None),
            ("2xx", 304, Some(ErrorClass::Status)),
            ("200-399", 304, None),
        ] {
            assert_eq!(checks(list, &[], &[]).fail(&answer(status, &[], b""), status, false), error, "{list} {status}");
        }
        for wrong in ["", "20", "2x", "abc", "299-200", "200,", "0xx", "1000"] {
            assert!(Checks::default().expect_status(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn contents_have_what_they_must_and_lack_what_they_must_not() {
        let check = checks("", &["</html>", "!database error"], &[]);
        let zipped = gzip(b"<html></html>");
        let coding = [(b"content-encoding".as_slice(), b"gzip".as_slice())];
        let br = [(b"content-encoding".as_slice(), b"br".as_slice())];
        assert!(check.want_body());
        assert_eq!(check.fail(&answer(200, &[], b"<html></html>"), 200, false), None);
        assert_eq!(check.fail(&answer(200, &coding, &zipped), 200, false), None);
        assert_eq!(check.fail(&answer(200, &br, b"</html>"), 200, false), Some(ErrorClass::Body));
        assert_eq!(check.fail(&answer(200, &[], b"<html>"), 200, false), Some(ErrorClass::Body));
        assert_eq!(check.fail(&answer(200, &[], b"database error</html>"), 200, false), Some(ErrorClass::Body));
        assert_eq!(check.fail(&answer(200, &[], b""), 200, true), None);
        assert_eq!(check.fail(&answer(304, &[], b""), 304, false), None);
        assert_eq!(check.fail(&answer(500, &[], b""), 500, false), Some(ErrorClass::Status));
    }

    #[test]
    fn fields_are_there_missing_equal_or_not() {
        let fields = [(b"X-Cache".as_slice(), b"HIT".as_slice()), (b"vary", b" Accept ")];
        for (check, holds) in [
            ("x-cache", true),
            ("!x-cache", false),
            ("x-other", false),
            ("!x-other", true),
            ("X-Cache: HIT", true),
            ("X-Cache: hit", false),
            ("X-Cache!: MISS", true),
            ("X-Cache!:HIT", false),
            ("x-other!: a", true),
            ("Vary: Accept", true),
        ] {
            let error = checks("", &[], &[check]).fail(&answer(200, &fields, b""), 200, false);
            assert_eq!(error, (!holds).then_some(ErrorClass::Field), "{check}");
        }
        for wrong in ["", "!", "a b", ": x", "a b: c"] {
            assert!(Checks::default().expect_field(wrong).is_err(), "{wrong}");
        }
    }
}
