//! `seawall alerts`: what is wrong, how that is sent, and a test of it.

use std::{fmt::Write as _, time::Duration};

use admin_api::{AlertLine, AlertTried, AlertWay, AlertsState, AlertsTested};
use semantics::{Timestamp, date::format_http_date};

use crate::{
    admin_client::{AdminClient, AdminError},
    terminal::{Style, styled},
    units::{count, span},
};

/// The time for a test. The server waits a little less.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Lists the alerts that stand and those that ended last, and says how they are sent, as text.
///
/// # Errors
/// When the server cannot be reached, is not Seawall, or refuses.
pub fn list(client: &AdminClient, colour: bool) -> Result<String, AdminError> {
    Ok(page(&client.get::<AlertsState>("/alerts")?, colour))
}

/// Has a test sent by each way. Returns what came of it, and whether it arrived everywhere.
///
/// # Errors
/// As [`list`]; also when nobody is told of alerts.
pub fn test(client: AdminClient, colour: bool) -> Result<(String, bool), AdminError> {
    let tested: AlertsTested = client.within(TEST_TIMEOUT).post("/alerts/test", "")?;
    Ok((outcome(&tested, colour), tested.ways.iter().all(|way| way.error.is_none())))
}

fn outcome(tested: &AlertsTested, colour: bool) -> String {
    let mut out = String::new();
    for AlertTried { way, to, error } in &tested.ways {
        let said = match error {
            None => styled("arrived, as an alert that begins and ends", Style::Green, colour),
            Some(error) => styled(format_args!("failed: {error}"), Style::Red, colour),
        };
        let _ = writeln!(out, "{way} {to}: {said}");
    }
    out
}

fn page(state: &AlertsState, colour: bool) -> String {
    let mut out = String::new();
    if state.standing.is_empty() {
        let _ = writeln!(out, "{}", styled("No alert stands.", Style::Green, colour));
    }
    for AlertLine { name, text, from, right_since, .. } in &state.standing {
        let _ = writeln!(
            out,
            "{}  {text}\n  since {}",
            styled(name, if right_since.is_some() { Style::Green } else { Style::Red }, colour),
            date(*from)
        );
        if let Some(right_since) = right_since {
            let _ = writeln!(out, "  right again since {}; it is over if that lasts", date(*right_since));
        }
    }
    if !state.ended.is_empty() {
        let _ = writeln!(out, "\nOver:");
    }
    for AlertLine { name, text, from, until, .. } in &state.ended {
        let lasted = span(until.unwrap_or(*from).saturating_sub(*from) / 1000);
        let _ = writeln!(out, "{name}  {text}\n  from {}, for {lasted}", date(*from));
    }
    out.push('\n');
    if state.ways.is_empty() {
        out.push_str("Nobody is told: there is neither webhook nor command in [alerts].\n");
    }
    for AlertWay { way, to, sent, failed, lost, waiting, last_error } in &state.ways {
        let mut said = count(*sent, "notice sent", "notices sent");
        for (number, what) in [(failed, "failed"), (lost, "lost"), (waiting, "waiting")] {
            if *number > 0 {
                let _ = write!(said, ", {number} {what}");
            }
        }
        let _ = writeln!(out, "Sent to the {way} {to}: {said}");
        if let Some(error) = last_error {
            let _ = writeln!(out, "  {}", styled(format_args!("the last attempt failed: {error}"), Style::Red, colour));
        }
    }
    out
}

fn date(millis: u64) -> String {
    String::from_utf8_lossy(&format_http_date(Timestamp::from_millis(millis))).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alert(until: Option<u64>) -> AlertLine {
        AlertLine {
            name: "origin-down".to_owned(),
            about: "blog.example".to_owned(),
            text: "The origin of blog.example at http://127.0.0.1:2368 cannot be connected to.".to_owned(),
            from: 784_111_777_000,
            until,
            right_since: None,
        }
    }

    #[test]
    fn a_person_sees_what_is_wrong_what_is_over_and_who_is_told() {
        let state = AlertsState {
            standing: vec![alert(None)],
            ended: vec![alert(Some(784_112_527_000))],
            ways: vec![AlertWay {
                way: "webhook".to_owned(),
                to: "https://hooks.example.org/…".to_owned(),
                sent: 1,
                failed: 2,
                last_error: Some("the receiver answers 404".to_owned()),
                ..AlertWay::default()
            }],
        };
        let expected = "\
origin-down  The origin of blog.example at http://127.0.0.1:2368 cannot be connected to.
  since Sun, 06 Nov 1994 08:49:37 GMT

Over:
origin-down  The origin of blog.example at http://127.0.0.1:2368 cannot be connected to.
  from Sun, 06 Nov 1994 08:49:37 GMT, for 12 min 30 s

Sent to the webhook https://hooks.example.org/…: 1 notice sent, 2 failed
  the last attempt failed: the receiver answers 404
";
        assert_eq!(page(&state, false), expected);
        let calm =
            AlertsState { standing: vec![AlertLine { right_since: Some(784_111_837_000), ..alert(None) }], ..AlertsState::default() };
        let said = "since Sun, 06 Nov 1994 08:49:37 GMT\n  right again since Sun, 06 Nov 1994 08:50:37 GMT; it is over if that lasts\n";
        assert!(page(&calm, false).contains(said), "{}", page(&calm, false));
        let nobody = "No alert stands.\n\nNobody is told: there is neither webhook nor command in [alerts].\n";
        assert_eq!(page(&AlertsState::default(), false), nobody);
    }

    #[test]
    fn a_test_says_where_it_arrived() {
        let tried =
            |way: &str, error: Option<&str>| AlertTried { way: way.to_owned(), to: "there".to_owned(), error: error.map(str::to_owned) };
        let tested = AlertsTested { ways: vec![tried("webhook", None), tried("command", Some("it was killed"))] };
        let expected = "webhook there: arrived, as an alert that begins and ends\ncommand there: failed: it was killed\n";
        assert_eq!(outcome(&tested, false), expected);
    }
}
