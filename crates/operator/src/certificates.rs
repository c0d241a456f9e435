//! `seawall certificates`: what the running server shows, and a certificate that is replaced and revoked.

use std::time::Duration;

use crate::admin_client::{AdminClient, AdminError};
use admin_api::{CertificateState, OWN_ROOT, RevokeCommand};
use semantics::{Timestamp, date::format_http_date};

/// The time for an order at an authority. The server waits a little less.
const REVOKE_TIMEOUT: Duration = Duration::from_secs(60);

/// Lists all certificates, as text.
///
/// # Errors
/// When the server cannot be reached, is not Seawall, or refuses.
pub fn list(client: &AdminClient) -> Result<String, AdminError> {
    Ok(table(&client.get::<Vec<CertificateState>>("/certificates")?))
}

/// Gets another certificate for `name`, has the one that was there revoked, and says what is shown now.
///
/// # Errors
/// As [`list`]; also when there is no such certificate, or the authority refuses.
pub fn revoke(client: AdminClient, name: &str) -> Result<String, AdminError> {
    let command = RevokeCommand { name: name.to_owned() };
    let state: CertificateState = client.within(REVOKE_TIMEOUT).post("/certificates/revoke", &command.to_json())?;
    let said = match state.authority.as_str() {
        OWN_ROOT => "Replaced. The old one cannot be revoked: a root of this machine's own has no revocation list.",
        _ => "Replaced, and the old one is revoked.",
    };
    Ok(format!("{said}\n\n{}", table(&[state])))
}

fn table(certificates: &[CertificateState]) -> String {
    if certificates.is_empty() {
        return "There are no certificates: Seawall does not listen for HTTPS, or no site has a host name.\n".to_owned();
    }
    let rows = certificates.iter().map(|certificate| {
        let until = certificate.not_after.map_or_else(|| "none yet".to_owned(), date);
        let next = certificate.next.map_or_else(|| "by you (it is a file)".to_owned(), date);
        [certificate.name.clone(), until, next, certificate.authority.clone()]
    });
    let head = ["NAME", "VALID UNTIL", "NEXT ATTEMPT", "BY"].map(str::to_owned);
    let rows: Vec<[String; 4]> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths = [0, 1, 2].map(width);
    let mut text = String::new();
    for (at, [name, until, next, by]) in rows.iter().enumerate() {
        text.push_str(&format!("{name:<0$}  {until:<1$}  {next:<2$}  {by}\n", widths[0], widths[1], widths[2]));
        if let Some(error) = at.checked_sub(1).and_then(|at| certificates[at].last_error.as_ref()) {
            text.push_str(&format!("  {error}\n"));
        }
    }
    text
}

fn date(seconds: u64) -> String {
    String::from_utf8_lossy(&format_http_date(Timestamp::from_secs(seconds))).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_a_table_with_what_went_wrong_below() {
        let state = |name: &str, authority: &str, not_after, next, last_error: Option<&str>| CertificateState {
            name: name.to_owned(),
            authority: authority.to_owned(),
            not_after,
            next,
            last_error: last_error.map(str::to_owned),
        };
        let shown = table(&[
            state("blog.example.org", "https://a.example/dir", Some(784_111_777), Some(784_111_000), None),
            state("b.example.org", "https://a.example/dir", None, Some(784_111_777), Some("it does not lead here")),
            state("c.example.org", "/etc/cert.pem", Some(784_111_777), None, None),
        ]);
        let expected = "\
NAME              VALID UNTIL                    NEXT ATTEMPT                   BY
blog.example.org  Sun, 06 Nov 1994 08:49:37 GMT  Sun, 06 Nov 1994 08:36:40 GMT  https://a.example/dir
b.example.org     none yet                       Sun, 06 Nov 1994 08:49:37 GMT  https://a.example/dir
  it does not lead here
c.example.org     Sun, 06 Nov 1994 08:49:37 GMT  by you (it is a file)          /etc/cert.pem
";
        assert_eq!(shown, expected);
        assert!(table(&[]).contains("no certificates"));
    }
}
