//! Values that a section hands down to the texts below it, or the configuration to all texts: Hugo's `cascade`.
//!
//! A text's own value counts most, then that of the nearest section, and that of the configuration last.

use std::cmp::Reverse;

use serde_json::Value;

use super::glob::Glob;
use crate::front_matter::Table;

/// Keys that mean something to Hugo itself, and nothing among `params`.
const OWN: [&str; 19] = [
    "_build",
    "aliases",
    "build",
    "cascade",
    "date",
    "draft",
    "expirydate",
    "headless",
    "kind",
    "lang",
    "lastmod",
    "params",
    "path",
    "publishdate",
    "published",
    "slug",
    "title",
    "unpublishdate",
    "url",
];

/// The environment for which Hugo builds unless told otherwise.
const ENVIRONMENT: &str = "production";

/// The texts to which values are handed down.
#[derive(Debug, Default)]
pub(super) struct Cascades(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    /// The folder below which the texts are; `None` is everywhere.
    folder: Option<String>,
    /// The language of the texts; `None` is any.
    language: Option<String>,
    conditions: Vec<(Subject, Vec<Glob>)>,
    values: Table,
}

/// Says what a condition is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Path,
    Kind,
    Language,
    Environment,
}

/// A text as the rules see it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Page<'a> {
    /// The path below the folder of texts, without language and extension.
    pub(super) path: &'a str,
    /// The name of the file.
    pub(super) file: &'a str,
    pub(super) language: &'a str,
}

impl Page<'_> {
    /// Returns what Hugo calls the kind.
    fn kind(&self) -> &'static str {
        match self.path.strip_suffix("_index") {
            Some("") => "home",
            Some(folder) if folder.ends_with('/') => "section",
            _ => "page",
        }
    }

    fn matches(&self, subject: Subject, glob: &Glob) -> bool {
        match subject {
            Subject::Path => {
                let path = ["_index", "index"]
                    .iter()
                    .find_map(|leaf| self.path.strip_suffix(leaf))
                    .filter(|folder| folder.is_empty() || folder.ends_with('/'));
                let path = path.unwrap_or(self.path).trim_end_matches('/').to_lowercase().replace(' ', "-");
                // Before version 0.123, the path was that of the file.
                glob.matches(&format!("/{path}")) || glob.matches(&format!("/{}", self.file.to_lowercase()))
            }
            Subject::Kind => glob.matches(self.kind()),
            Subject::Language => glob.matches(&self.language.to_lowercase()),
            Subject::Environment => glob.matches(ENVIRONMENT),
        }
    }
}

impl Cascades {
    /// Notes the value of a key `cascade`: that of the section in `folder`, or of the configuration. Returns what in it is not understood.
    pub(super) fn add(&mut self, folder: Option<&str>, language: Option<&str>, cascade: &Value) -> Vec<String> {
        let mut unknown = Vec::new();
        let tables: Vec<&Table> = match cascade {
            Value::Object(table) => vec![table],
            Value::Array(tables) => tables.iter().filter_map(Value::as_object).collect(),
            _ => Vec::new(),
        };
        if tables.is_empty() {
            unknown.push("`cascade` is not a table".to_owned());
        }
        for table in tables {
            let (mut conditions, mut values) = (Vec::new(), Table::new());
            for (key, value) in table {
                match key.to_lowercase().as_str() {
                    "_target" | "target" => conditions.extend(read_target(value, &mut unknown)),
                    "cascade" | "kind" | "lang" | "path" => unknown.push(format!("`{key}` cannot be handed down")),
                    _ => {
                        values.insert(key.clone(), value.clone());
                    }
                }
            }
            let values = with_params(values);
            self.0.push(Rule { folder: folder.map(str::to_owned), language: language.map(str::to_owned), conditions, values });
        }
        unknown
    }

    /// Adds what is handed down to a text to its front matter, whose keys are in lower case, too.
    pub(super) fn hand_down(&self, page: Page<'_>, front: &mut Table) {
        let mut rules: Vec<&Rule> = self.0.iter().filter(|rule| rule.is_for(page)).collect();
        // The longer folder of two is the nearer one: both are above the text.
        rules.sort_by_key(|rule| Reverse(rule.folder.as_ref().map_or(0, |folder| folder.len() + 1)));
        for (key, value) in rules.iter().flat_map(|rule| &rule.values) {
            let lower = key.to_lowercase();
            if !front.contains_key(&lower) {
                front.insert(lower, value.clone());
                front.insert(key.clone(), value.clone());
            }
        }
    }
}

impl Rule {
    fn is_for(&self, page: Page<'_>) -> bool {
        let is_below = self
            .folder
            .as_ref()
            .is_none_or(|folder| folder.is_empty() || page.path.strip_prefix(folder.as_str()).is_some_and(|below| below.starts_with('/')));
        is_below
            && self.language.as_ref().is_none_or(|language| language == page.language)
            && self.conditions.iter().all(|(subject, globs)| globs.iter().any(|glob| page.matches(*subject, glob)))
    }
}

/// Reads the conditions of a target. One that is not understood does not count: rather too much is hidden than too little.
fn read_target(target: &Value, unknown: &mut Vec<String>) -> Vec<(Subject, Vec<Glob>)> {
    let mut conditions = Vec::new();
    for (key, value) in target.as_object().into_iter().flatten() {
        let (subject, value) = match key.to_lowercase().as_str() {
            "path" => (Subject::Path, Some(value)),
            "kind" => (Subject::Kind, Some(value)),
            "lang" => (Subject::Language, Some(value)),
            "environment" => (Subject::Environment, Some(value)),
            "sites" => (Subject::Language, value.get("matrix").and_then(|matrix| matrix.get("languages"))),
            _ => (Subject::Path, None),
        };
        let patterns: Vec<&str> = match value {
            Some(Value::String(pattern)) => vec![pattern],
            Some(Value::Array(patterns)) => patterns.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        match patterns.iter().map(|pattern| Glob::new(pattern)).collect::<Option<Vec<_>>>().filter(|globs| !globs.is_empty()) {
            Some(globs) => conditions.push((subject, globs)),
            None => unknown.push(format!("the target's `{key}` is not understood, so its values are for all texts below")),
        }
    }
    conditions
}

/// Returns front matter with the values of its `params` beside the others: a theme's values may stand in either place.
pub(super) fn with_params(mut table: Table) -> Table {
    let params = table.iter().find(|(key, _)| key.eq_ignore_ascii_case("params")).and_then(|(_, params)| params.as_object()).cloned();
    for (key, value) in params.into_iter().flatten() {
        if !OWN.contains(&key.to_lowercase().as_str()) {
            table.entry(key).or_insert(value);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// `hugolib/cascade_test.go` and the documentation, "Front matter" and "Configure cascade".
    #[test]
    fn the_nearest_value_counts_and_the_text_s_own_one_before_all() {
        let mut cascades = Cascades::default();
        let config = json!([
            { "params": { "color": "red" }, "target": { "path": "{/articles,/articles/**}" } },
            { "params": { "color": "blue", "draft": true }, "_target": { "kind": "section", "environment": "{staging,production}" } },
            { "color": "green", "target": { "environment": "staging" } },
        ]);
        assert_eq!(cascades.add(None, None, &config), Vec::<String>::new());
        assert_eq!(cascades.add(Some("articles/2024"), Some("en"), &json!({ "Color": "grey", "draft": true })), Vec::<String>::new());
        assert_eq!(cascades.add(Some("team"), Some("en"), &json!({ "build": { "render": "never" } })), Vec::<String>::new());
        let cases = [
            ("articles/one", "en", json!({}), json!({ "color": "red" })),
            ("articles/one", "en", json!({ "color": "own" }), json!({ "color": "own" })),
            ("articles/2024/one", "en", json!({}), json!({ "color": "grey", "Color": "grey", "draft": true })),
            ("articles/2024/one", "de", json!({}), json!({ "color": "red" })),
            ("articles/2024/_index", "en", json!({ "draft": false }), json!({ "color": "grey", "Color": "grey", "draft": false })),
            ("notes/_index", "en", json!({}), json!({ "color": "blue" })),
            ("team/ann/index", "en", json!({}), json!({ "build": { "render": "never" } })),
            ("teams/one", "en", json!({}), json!({})),
            ("about", "en", json!({}), json!({})),
        ];
        for (path, language, own, expected) in cases {
            let mut front = own.as_object().cloned().expect("a table");
            cascades.hand_down(Page { path, file: &format!("{path}.md"), language }, &mut front);
            front.remove("params");
            assert_eq!(Value::Object(front), expected, "{path}");
        }
    }

    #[test]
    fn what_is_not_understood_is_told_and_hides_rather_too_much() {
        let mut cascades = Cascades::default();
        let unknown = cascades.add(
            None,
            None,
            &json!({ "draft": true, "path": "/x", "target": { "path": "/[ab]/**", "sites": { "matrix": { "roles": "x" } } } }),
        );
        assert_eq!(unknown.len(), 3, "{unknown:?}");
        let mut front = Table::new();
        cascades.hand_down(Page { path: "a/b", file: "a/b.md", language: "en" }, &mut front);
        assert_eq!(front.get("draft"), Some(&json!(true)));
        assert_eq!(cascades.add(None, None, &json!("x")), ["`cascade` is not a table"]);
    }
}
