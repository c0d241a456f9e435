//! The dashboards for Grafana. Grafana itself is not here: the files are held to what it reads, and their expressions are given to Prometheus.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use serde_json::Value;

use crate::prometheus::monitoring;

/// An expression of a panel.
#[derive(Clone, Debug)]
pub(crate) struct Expression {
    /// The dashboard and the panel, for messages.
    pub(crate) panel: String,
    written: String,
}

impl Expression {
    /// Returns what Grafana asks Prometheus where everything is selected, and rates are of so much time.
    pub(crate) fn text(&self, interval: &str) -> String {
        let text = self.written.replace("$__rate_interval", interval).replace("$__range", interval);
        let text = text.replace("$job", "seawall").replace("$instance", ".*").replace("$site", ".*");
        assert!(!text.contains('$'), "{}: a variable that the dashboard does not have: {text}", self.panel);
        text
    }
}

fn boards() -> BTreeMap<String, Value> {
    let folder = fs::read_dir(monitoring().join("grafana/dashboards")).expect("dashboards");
    let boards = folder.map(|file| {
        let path = file.expect("a file").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let board = serde_json::from_slice(&fs::read(&path).expect("read")).unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, board)
    });
    boards.collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

/// Returns the expressions of all panels.
pub(crate) fn expressions() -> Vec<Expression> {
    let mut all = Vec::new();
    for (name, board) in boards() {
        for panel in list(&board["panels"]).iter().filter(|panel| panel["type"] != "row") {
            for target in list(&panel["targets"]) {
                let panel = format!("{name}, {}", text(&panel["title"]));
                all.push(Expression { panel, written: text(&target["expr"]).to_owned() });
            }
        }
    }
    all
}

/// <https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/>: a dashboard that Grafana loads from a file without asking
/// anything, whichever Prometheus it has.
#[test]
fn the_dashboards_are_what_grafana_loads() {
    let mut names = BTreeSet::new();
    for (file, board) in boards() {
        let uid = text(&board["uid"]);
        assert!(names.insert(uid.to_owned()) && uid.len() <= 40 && format!("{uid}.json") == file, "{file}: {uid}");
        assert!(!text(&board["title"]).is_empty() && names.insert(text(&board["title"]).to_owned()), "{file}: a title of its own");
        assert!(
            board["schemaVersion"].as_u64() >= Some(36) && board["id"].is_null(),
            "{file}: of a version that has panels like these, and without another Grafana's id"
        );
        for key in ["time", "templating", "annotations", "timezone", "refresh", "tags"] {
            assert!(!board[key].is_null(), "{file}: {key}");
        }
        let variables: BTreeMap<&str, &Value> = list(&board["templating"]["list"]).iter().map(|of| (text(&of["name"]), of)).collect();
        assert_eq!(
            (text(&variables["datasource"]["type"]), text(&variables["datasource"]["query"])),
            ("datasource", "prometheus"),
            "{file}"
        );
        for (name, variable) in variables.iter().filter(|(name, _)| **name != "datasource") {
            assert_eq!(text(&variable["datasource"]["uid"]), "${datasource}", "{file}: {name}");
            assert_eq!(text(&variable["query"]["query"]), text(&variable["definition"]), "{file}: {name}");
        }

        let mut ids = BTreeSet::new();
        let mut taken: Vec<[u64; 4]> = Vec::new();
        for panel in list(&board["panels"]) {
            let title = text(&panel["title"]);
            assert!(ids.insert(panel["id"].as_u64().expect("a number")), "{file}: {title}: an id of its own");
            let place = ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().unwrap_or_else(|| panic!("{file}: {title}: {key}")));
            let [x, y, w, h] = place;
            assert!(x + w <= 24 && w > 0 && h > 0, "{file}: {title}: within 24 columns");
            let overlaps = |[ox, oy, ow, oh]: &[u64; 4]| x < ox + ow && *ox < x + w && y < oy + oh && *oy < y + h;
            assert!(!taken.iter().any(overlaps), "{file}: {title}: no panel lies on another");
            taken.push(place);
            if panel["type"] == "row" {
                continue;
            }
            let kinds = ["timeseries", "stat", "bargauge", "table", "state-timeline"];
            assert!(kinds.contains(&text(&panel["type"])), "{file}: {title}: a panel that comes with Grafana");
            assert_eq!(text(&panel["datasource"]["uid"]), "${datasource}", "{file}: {title}");
            assert!(
                !text(&panel["fieldConfig"]["defaults"]["unit"]).is_empty() && panel["options"].is_object(),
                "{file}: {title}: a unit, and options"
            );
            let mut references = BTreeSet::new();
            for target in list(&panel["targets"]) {
                assert!(references.insert(text(&target["refId"])), "{file}: {title}: a letter of its own");
                assert_eq!(text(&target["datasource"]["uid"]), "${datasource}", "{file}: {title}");
                for variable in text(&target["expr"]).split('$').skip(1).filter(|rest| !rest.starts_with("__")) {
                    let end = variable.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(variable.len());
                    assert!(variables.contains_key(&variable[..end]), "{file}: {title}: ${variable}");
                }
            }
            assert!(!references.is_empty(), "{file}: {title}: it asks something");
        }
    }
    assert_eq!(names.len(), 6, "three dashboards");
}
