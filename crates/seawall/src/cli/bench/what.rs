//! What is asked: the flags about URLs as the load tester takes them.

use bytes::Bytes;
use load::requests::{Origin, Request, RequestSet};

use super::flags::Flags;

/// Makes the requests of the flags, with `further` fields.
pub(super) fn set(flags: &Flags, further: &[String]) -> Result<RequestSet, String> {
    let mut set = RequestSet::default();
    for text in &flags.urls {
        let url: http::Uri = text.parse().map_err(|_| format!("{text:?} is not a URL"))?;
        let host = url.host().ok_or_else(|| format!("{text:?}: a URL begins with http:// or https://"))?;
        let tls = url.scheme_str() == Some("https");
        let origin = Origin { tls, host: host.to_owned(), port: url.port_u16().unwrap_or(if tls { 443 } else { 80 }) };
        let at = set.origins.iter().position(|other| *other == origin).unwrap_or_else(|| {
            set.origins.push(origin);
            set.origins.len() - 1
        });
        let fields = flags
            .fields
            .iter()
            .chain(further)
            .filter_map(|line| line.split_once(':'))
            .map(|(n, v)| (n.trim().to_owned(), v.trim().to_owned()));
        set.requests.push(Request {
            origin: u16::try_from(at).unwrap_or_default(),
            method: flags.method.clone().unwrap_or_else(|| "GET".to_owned()),
            target: url.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string),
            fields: fields.collect(),
            body: Bytes::new(),
            weight: 1,
        });
    }
    Ok(set)
}
