//! The notice that is sent of an alert: when it begins, and when it ends.

use admin_api::AlertLine;
use serde_json::json;

/// Tells whether an alert has begun or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has begun, and stands.
    Firing,
    /// It has ended.
    Resolved,
}

impl State {
    /// Returns the word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Firing => "firing",
            Self::Resolved => "resolved",
        }
    }
}

/// An alert that has begun or ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The state: whether the alert begins or ends.
    pub state: State,
    /// The alert.
    pub alert: AlertLine,
}

impl Notice {
    /// Makes the notice by which an operator tries whether notices arrive.
    #[must_use]
    pub fn trial(state: State, now: semantics::Timestamp) -> Self {
        let now = now.as_millis();
        let text = "This is a test of the alerts. Nothing is wrong.".to_owned();
        let until = (state == State::Resolved).then_some(now);
        Self { state, alert: AlertLine { name: "test".to_owned(), about: String::new(), text, from: now, until, right_since: None } }
    }

    /// Returns what tells the alert from every other one. It is the same when the alert begins and when it ends.
    #[must_use]
    pub fn id(&self) -> String {
        let AlertLine { name, about, from, .. } = &self.alert;
        format!("{name}/{about}/{from}")
    }

    /// Says in one sentence what has happened at `server`, for a chat.
    #[must_use]
    pub fn sentence(&self, server: &str) -> String {
        let AlertLine { text, from, until, .. } = &self.alert;
        match until {
            None => format!("{server}: {text}"),
            Some(until) => format!("{server}: over after {}: {text}", lasted(until.saturating_sub(*from) / 1000)),
        }
    }

    /// Writes what is sent, as JSON. `text` is what Slack, Mattermost and others like them show.
    #[must_use]
    pub fn json(&self, server: &str) -> String {
        let AlertLine { name, about, from, until, .. } = &self.alert;
        let body = json!({
            "text": self.sentence(server),
            "id": self.id(),
            "name": name,
            "about": about,
            "state": self.state.name(),
            "from": from,
            "until": until,
            "server": server,
        });
        body.to_string()
    }
}

/// Says a time in its two largest units.
pub(super) fn lasted(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    let two = |one: u64, unit: &str, other: u64, smaller: &str| match other {
        0 => format!("{one} {unit}"),
        other => format!("{one} {unit} {other} {smaller}"),
    };
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => two(minutes, "min", seconds % 60, "s"),
        3_600..86_400 => two(hours, "h", minutes, "min"),
        _ => two(days, if days == 1 { "day" } else { "days" }, hours, "h"),
    }
}

#[cfg(test)]
mod tests {
    use semantics::Timestamp;

    use super::*;

    #[test]
    fn a_notice_says_all_that_a_program_and_a_person_need() {
        let alert = AlertLine {
            name: "origin-down".to_owned(),
            about: "blog.example".to_owned(),
            text: "The origin of blog.example at http://127.0.0.1:2368 cannot be connected to.".to_owned(),
            from: 1_767_225_600_000,
            until: None,
            right_since: None,
        };
        let begun = Notice { state: State::Firing, alert: alert.clone() };
        let said: serde_json::Value = serde_json::from_str(&begun.json("web1")).expect("JSON");
        assert_eq!(
            said,
            json!({
                "text": "web1: The origin of blog.example at http://127.0.0.1:2368 cannot be connected to.",
                "id": "origin-down/blog.example/1767225600000",
                "name": "origin-down",
                "about": "blog.example",
                "state": "firing",
                "from": 1_767_225_600_000_u64,
                "until": null,
                "server": "web1",
            })
        );
        let over = Notice { state: State::Resolved, alert: AlertLine { until: Some(alert.from + 750_000), ..alert } };
        let said: serde_json::Value = serde_json::from_str(&over.json("web1")).expect("JSON");
        assert_eq!((&said["state"], &said["until"], &said["id"]), (&json!("resolved"), &json!(1_767_226_350_000_u64), &json!(begun.id())));
        let text = said["text"].as_str().expect("a text");
        assert!(text.starts_with("web1: over after 12 min 30 s: The origin of blog.example"), "{text}");
    }

    #[test]
    fn a_trial_says_that_it_is_one() {
        for state in [State::Firing, State::Resolved] {
            let trial = Notice::trial(state, Timestamp::from_secs(1));
            assert!(trial.sentence("web1").contains("test of the alerts"), "{trial:?}");
            assert_eq!((trial.alert.name.as_str(), trial.alert.until.is_some()), ("test", state == State::Resolved));
        }
    }

    #[test]
    fn times_are_said_in_two_units() {
        for (seconds, said) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (750, "12 min 30 s"),
            (3_600, "1 h"),
            (9_000, "2 h 30 min"),
            (86_400, "1 day"),
            (180_000, "2 days 2 h"),
        ] {
            assert_eq!(lasted(seconds), said);
        }
    }
}
