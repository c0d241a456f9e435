//! `[traces]`: spans for an OpenTelemetry collector. The variables that every program with OpenTelemetry reads count here, too.

use std::{fmt, path::PathBuf, str::FromStr};

use http::{HeaderName, HeaderValue, Uri, header};
use semantics::percent;
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use toml::Spanned;

use super::{
    error::{Mistake, Place},
    file,
    ghost::NOT_SHOWN,
    overrides::WithPlace,
    resolve::Resolver,
    settings::Traces,
};

/// The path of OTLP/HTTP for spans.
const PATH: &str = "/v1/traces";
/// The port at which collectors speak gRPC.
const GRPC_PORT: u16 = 4317;
/// The most fields that go with each request.
const HEADERS_MAX: usize = 32;
/// The longest name of a service.
const NAME_BYTES_MAX: usize = 255;
const SERVICE_NAME: &str = "seawall";

/// The fields that a request to a collector has by itself.
const FIXED: [HeaderName; 8] = [
    header::ACCEPT,
    header::CONNECTION,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::HOST,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// The address of a collector, whole, or `off`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector(pub Option<Uri>);

impl FromStr for Collector {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        if text == "off" {
            return Ok(Self(None));
        }
        let mut base = text.trim_end_matches('/').to_owned();
        if !base.ends_with(PATH) {
            base.push_str(PATH);
        }
        whole(text, &base).map(|uri| Self(Some(uri)))
    }
}

/// Reads an address to which nothing is added.
fn whole(text: &str, address: &str) -> Result<Uri, Mistake> {
    let mistake = || {
        let remedy = "write its address for OTLP over HTTP, such as \"http://127.0.0.1:4318\", or \"off\"";
        Mistake::new(format!("\"{text}\" is not the address of a collector"), remedy)
    };
    let guess = format!("http://{text}");
    if !text.contains("://") && text.contains(':') && guess.parse::<Uri>().is_ok_and(|uri| uri.port_u16().is_some()) {
        return Err(mistake().meant(guess));
    }
    let uri: Uri = address.parse().map_err(|_| mistake())?;
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return Err(mistake()) };
    if authority.as_str().contains('@') {
        return Err(Mistake::new(
            "the address of a collector has no user and password",
            "put them into headers, as \"Authorization: Basic ...\"",
        ));
    }
    if !matches!(scheme, "http" | "https") || authority.host().is_empty() || uri.query().is_some() || text.contains('#') {
        return Err(mistake());
    }
    if authority.port_u16() == Some(GRPC_PORT) {
        let problem = format!("\"{text}\" is where a collector speaks gRPC, and Seawall speaks OTLP over HTTP");
        return Err(Mistake::new(problem, "write the port of its HTTP receiver, which is 4318 unless somebody has changed it"));
    }
    Ok(uri)
}

/// A field that goes with each request to the collector. Its value is a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectorField(pub HeaderName, pub HeaderValue);

impl CollectorField {
    fn new(name: &str, value: &str) -> Result<Self, Mistake> {
        let mistake =
            || Mistake::new("this is not a field", "write its name, a colon and its value, such as \"Authorization: Bearer ...\"");
        let name: HeaderName = name.trim().parse().map_err(|_| mistake())?;
        if FIXED.contains(&name) {
            return Err(Mistake::new(format!("{name} is what Seawall says itself"), "leave it out"));
        }
        let mut value = HeaderValue::from_str(value.trim()).ok().filter(|value| !value.is_empty()).ok_or_else(mistake)?;
        value.set_sensitive(true);
        Ok(Self(name, value))
    }
}

impl FromStr for CollectorField {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let (name, value) = text.split_once(':').unwrap_or((text, ""));
        Self::new(name, value)
    }
}

/// A share of all, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Share(pub f64);

impl Share {
    fn of<E: Error>(share: f64) -> Result<Self, E> {
        if (0.0..=1.0).contains(&share) {
            return Ok(Self(share));
        }
        let mistake = Mistake::new(format!("{share} is not a share"), "write a number from 0 (none) to 1 (all), such as 0.1 for a tenth");
        Err(E::custom(if (0.0..=100.0).contains(&share) {
            Mistake { meant: Some(format!("did you mean {}?", share / 100.0)), ..mistake }
        } else {
            mistake
        }))
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Share;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number from 0 to 1 without quotation marks")
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Share, E> {
                Share::of(number)
            }

            #[expect(clippy::cast_precision_loss, reason = "what is too large to be exact is not a share")]
            fn visit_i64<E: Error>(self, number: i64) -> Result<Share, E> {
                Share::of(number as f64)
            }
        }
        deserializer.deserialize_any(Number)
    }
}

impl Resolver<'_> {
    /// Resolves `[traces]`. Returns `None` if no collector is named.
    ///
    /// The file goes before OpenTelemetry's variables: those are often set for all programs of a machine.
    pub(super) fn traces(&mut self, file: &file::Traces, env: &impl Fn(&str) -> Option<String>) -> Option<Traces> {
        let variable = |name: &'static str| {
            let value = env(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())?;
            Some(WithPlace { place: Place::Environment(name, value.clone()), value })
        };
        let ca_file = self.collectors_roots(file);
        let headers =
            self.collectors_fields(file, variable("OTEL_EXPORTER_OTLP_TRACES_HEADERS").or_else(|| variable("OTEL_EXPORTER_OTLP_HEADERS")));
        let service_name = self.service_name(file, variable("OTEL_SERVICE_NAME"));
        let endpoint = match self.said(&file.endpoint) {
            Some(said) => said.value.0,
            None if variable("OTEL_SDK_DISABLED").is_some_and(|said| said.value.eq_ignore_ascii_case("true")) => None,
            None => match (variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), variable("OTEL_EXPORTER_OTLP_ENDPOINT")) {
                (Some(WithPlace { value, place }), _) => self.or_wrong(whole(&value, &value), place),
                (None, Some(WithPlace { value, place })) => {
                    self.or_wrong(value.parse::<Collector>(), place).and_then(|collector| collector.0)
                }
                (None, None) => None,
            },
        }?;
        Some(Traces {
            endpoint,
            headers,
            ca_file,
            service_name,
            sample: file.sample.as_ref().map_or(1.0, |share| share.get_ref().0),
            hits: file.hits.as_ref().is_some_and(|hits| *hits.get_ref()),
        })
    }

    fn or_wrong<T>(&mut self, read: Result<T, Mistake>, place: Place) -> Option<T> {
        read.map_err(|mistake| self.wrong(mistake, place)).ok()
    }

    fn collectors_fields(&mut self, file: &file::Traces, variable: Option<WithPlace<String>>) -> Vec<(HeaderName, HeaderValue)> {
        let fields: Vec<CollectorField> = match (&file.headers, variable) {
            (Some(list), _) => {
                if list.get_ref().len() > HEADERS_MAX {
                    let problem = format!("{} fields are too many for headers", list.get_ref().len());
                    self.wrong_at(Mistake::new(problem, format!("at most {HEADERS_MAX}")), list.span());
                }
                list.get_ref().iter().map(Spanned::get_ref).cloned().collect()
            }
            (None, Some(WithPlace { value, place })) => {
                let Place::Environment(name, _) = place else { return Vec::new() };
                let each = value.split(',').map(str::trim).filter(|pair| !pair.is_empty()).take(HEADERS_MAX);
                let read = |pair: &str| {
                    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                    CollectorField::new(name, &percent_decoded(value))
                };
                let place = Place::Environment(name, NOT_SHOWN.to_owned());
                each.filter_map(|pair| self.or_wrong(read(pair), place.clone())).collect()
            }
            (None, None) => Vec::new(),
        };
        fields.into_iter().map(|CollectorField(name, value)| (name, value)).collect()
    }

    fn service_name(&mut self, file: &file::Traces, variable: Option<WithPlace<String>>) -> String {
        let Some(WithPlace { value, place }) = self.said(&file.service_name).or(variable) else { return SERVICE_NAME.to_owned() };
        if value.trim().is_empty() || value.len() > NAME_BYTES_MAX {
            self.wrong(Mistake::new("this is not the name of a service", "write a short name, such as \"blog\""), place);
        }
        value
    }

    fn collectors_roots(&mut self, file: &file::Traces) -> Option<PathBuf> {
        let WithPlace { value, place } = self.said(&file.ca_file)?;
        let path = self.folder_of(&place).join(value);
        if !path.is_file() {
            let problem = format!("there is no file \"{}\"", path.display());
            self.wrong(Mistake::new(problem, "write the path of a file with the certificates to trust (PEM)"), place);
        }
        Some(path)
    }
}

/// Replaces `%` and two digits by the byte that they stand for, as in W3C Baggage. What is not of that form stays as it is.
fn percent_decoded(text: &str) -> String {
    String::from_utf8_lossy(&percent::decoded(text.as_bytes())).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// <https://opentelemetry.io/docs/specs/otel/protocol/exporter/#endpoint-urls-for-otlphttp>
    #[test]
    fn the_address_of_a_collector_is_a_base_to_which_the_path_is_added() {
        for (text, uri) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://collector:4318/", "http://collector:4318/v1/traces"),
            ("https://otlp.example/otlp", "https://otlp.example/otlp/v1/traces"),
            ("https://otlp.example/otlp/v1/traces", "https://otlp.example/otlp/v1/traces"),
            ("http://[::1]:4318", "http://[::1]:4318/v1/traces"),
        ] {
            assert_eq!(text.parse::<Collector>().expect(text).0.expect(text), uri);
        }
        assert_eq!("off".parse(), Ok(Collector(None)));
        for (text, expected) in [
            ("", "4318"),
            ("127.0.0.1:4318", "4318"),
            ("ftp://a", "4318"),
            ("unix:/run/otlp.sock", "4318"),
            ("http://a?b", "4318"),
            ("http://", "4318"),
            ("http://user:secret@a", "headers"),
            ("http://127.0.0.1:4317", "HTTP receiver"),
        ] {
            let mistake = text.parse::<Collector>().expect_err(text);
            assert!(mistake.remedy.contains(expected) && !mistake.problem.contains("secret"), "{text}: {mistake:?}");
        }
        assert_eq!(
            "127.0.0.1:4318".parse::<Collector>().expect_err("no scheme").meant.as_deref(),
            Some("did you mean \"http://127.0.0.1:4318\"?")
        );
    }

    #[test]
    fn the_fields_for_a_collector_are_not_shown() {
        let CollectorField(name, value) = "Authorization: Bearer s3cret".parse().expect("a field");
        assert_eq!((name.as_str(), value.to_str().expect("text")), ("authorization", "Bearer s3cret"));
        assert!(!format!("{value:?}").contains("s3cret"));
        for text in ["s3cret", "s3 cret: x", "x:", "x: s3cret\ny: z", "Content-Type: s3cret"] {
            let mistake = text.parse::<CollectorField>().expect_err(text);
            assert!(!mistake.problem.contains("s3cret"), "{mistake:?}");
        }
    }

    #[test]
    fn values_of_the_variable_are_decoded() {
        for (text, decoded) in [("Basic%20YTpi%3D", "Basic YTpi="), ("100%", "100%"), ("%zz%41", "%zzA"), ("%", "%"), ("%e4", "\u{fffd}")] {
            assert_eq!(percent_decoded(text), decoded);
        }
    }
}
