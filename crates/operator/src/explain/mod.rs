//! `seawall explain`: why a request would be answered as it would.
//!
//! [`run`] asks the admin API; behind that, a worker of the server explains what its own pipeline would do. [`text`] makes of the answer what a
//! person reads.

mod show;

use admin_api::{ExplainCommand, Explanation};

pub use self::show::text;
use crate::admin_client::{AdminClient, AdminError};

/// Asks the running server how it would answer.
///
/// # Errors
/// When the server cannot be reached, or has no site for the host.
pub fn run(client: &AdminClient, command: &ExplainCommand) -> Result<Explanation, AdminError> {
    client.post("/explain", &command.to_json())
}

/// The codings that browsers accept. Without the field, nearly every question would be about a variant that no reader gets.
const BROWSER_CODINGS: &str = "gzip, deflate, br, zstd";

/// Makes a command of what was typed: `fields` are `Field: value`. Without an `Accept-Encoding`, that of a browser is added.
///
/// # Errors
/// When one of them is not a field, in words for the operator.
pub fn command(url: &str, method: &str, fields: &[String]) -> Result<ExplainCommand, String> {
    let field = |line: &String| match line.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
        // What follows may be a secret.
        _ => Err(format!(
            "\"{} ...\" is not a field\n  Write its name, a colon and its value: -H 'Accept: text/html'",
            line.split([' ', ':', '=']).next().unwrap_or_default()
        )),
    };
    let mut fields: Vec<(String, String)> = fields.iter().map(field).collect::<Result<_, _>>()?;
    if !fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("accept-encoding")) {
        fields.push(("accept-encoding".to_owned(), BROWSER_CODINGS.to_owned()));
    }
    Ok(ExplainCommand { url: url.to_owned(), method: method.to_owned(), fields })
}
