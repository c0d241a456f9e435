//! Reads results that others may have written: what no run can find is refused before anything is computed of it.

use serde::Deserialize as _;
use serde_json::Value;

use super::Results;

/// The largest number of anything. Sums of a thousand such numbers fit into 64 bits.
const NUMBER_MAX: f64 = 9e15;

/// The longest run, in seconds: 31 days.
const SECONDS_MAX: f64 = 31.0 * 86_400.0;

/// The most rows of seconds: a day.
const ROWS_MAX: usize = 86_400;

/// The reason why a text is not read as a result.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It has another form.
    #[error(transparent)]
    Form(#[from] serde_json::Error),
    /// A number is one that no run finds.
    #[error("{0} is a number that no run finds")]
    Number(String),
    /// It has too many rows.
    #[error("it has more than {ROWS_MAX} rows of seconds")]
    Rows,
    /// It is a comparison ([`Comparison`](crate::compare::Comparison)), which holds two results.
    #[error("it is a comparison of two servers (--compare), which holds two results")]
    Comparison,
    /// It is what a search for the highest rate has written to standard output, without a rate that was held.
    #[error("it is a search for the highest rate (--find-limit) in which no rate was held, so there is no result in it")]
    NotHeld,
}

impl Results {
    /// Reads the JSON form. Of a search (`--find-limit --format json`) it reads the result of the rate that was held.
    ///
    /// # Errors
    /// When it has another form, or numbers that no run finds.
    pub fn read(text: &str) -> Result<Self, Unreadable> {
        let mut value = checked(text)?;
        let has = |name| value.get(name).is_some_and(Value::is_object);
        if has("a") && has("b") && has("ratio") {
            return Err(Unreadable::Comparison);
        }
        if has("limit")
            && let Some(held) = value.get_mut("held").map(Value::take)
        {
            if held.is_null() {
                return Err(Unreadable::NotHeld);
            }
            value = held;
        }
        Ok(Self::deserialize(value)?)
    }
}

/// Reads JSON with numbers that a run can find, and no more rows than one has.
pub(crate) fn checked(text: &str) -> Result<Value, Unreadable> {
    let value: Value = serde_json::from_str(text)?;
    look("the result", &value)?;
    Ok(value)
}

/// Looks whether all numbers are possible ones. The depth is bounded by the reader of JSON.
fn look(name: &str, value: &Value) -> Result<(), Unreadable> {
    match value {
        Value::Object(fields) => fields.iter().try_for_each(|(name, value)| look(name, value)),
        Value::Array(rows) if matches!(name, "seconds" | "rounds") && rows.len() > ROWS_MAX => Err(Unreadable::Rows),
        Value::Array(values) => values.iter().try_for_each(|value| look(name, value)),
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(f64::INFINITY);
            let (least, most) = match name {
                // Any number is a seed, and a system may allow any number of files.
                "seed" | "descriptors_max" => (0.0, f64::MAX),
                "clock_jump" => (-NUMBER_MAX, NUMBER_MAX),
                "duration" | "second" | "length" => (0.0, SECONDS_MAX),
                _ => (0.0, NUMBER_MAX),
            };
            let possible = (least..=most).contains(&number);
            if possible { Ok(()) } else { Err(Unreadable::Number(name.to_owned())) }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compare::merge,
        record::Tally,
        results::{Limit, Run, Second, Verdict},
    };

    #[test]
    fn what_a_search_wrote_holds_the_result_of_the_rate_that_was_held() {
        let verdict = Verdict { limit: Limit::Schedule, at_least: false, reason: String::new(), hint: None };
        let held = Results::new(Run::default(), std::time::Duration::from_secs(1), &Tally::new(), Vec::new(), verdict);
        let written = |held: Value| serde_json::json!({"limit": {"rate": 20.0}, "held": held}).to_string();
        assert_eq!(Results::read(&written(serde_json::to_value(&held).expect("JSON"))).expect("a result"), held);
        assert!(matches!(Results::read(&written(Value::Null)), Err(Unreadable::NotHeld)));
    }

    #[test]
    fn numbers_that_no_run_finds_are_refused_and_others_can_be_added() {
        let verdict = Verdict { limit: Limit::Server, at_least: false, reason: String::new(), hint: None };
        let rows = vec![Second { second: 0, length: 1.0, ..Second::default() }];
        let results = Results::new(Run::default(), std::time::Duration::from_secs(1), &Tally::new(), rows, verdict);
        let json = serde_json::to_value(&results).expect("JSON");
        let read = Results::read(&json.to_string()).expect("it is ours");
        let mut elsewhere = read.clone();
        elsewhere.run.seed += 1;
        merge(&[read, elsewhere]).expect("they can be added");
        let row = |name: &str, number: Value| {
            let mut json = json.clone();
            json["seconds"][0][name] = number;
            json
        };
        let field = |name: &str, number: Value| {
            let mut json = json.clone();
            json[name] = number;
            json
        };
        let rows = Value::Array(vec![json["seconds"][0].clone(); ROWS_MAX + 1]);
        for forged in [
            field("duration", 1e308.into()),
            field("duration", (-1).into()),
            field("requests", u64::MAX.into()),
            field("bytes", u64::MAX.into()),
            row("second", (1_u64 << 40).into()),
            row("length", 1e300.into()),
            row("requests", u64::MAX.into()),
            field("seconds", rows),
        ] {
            assert!(Results::read(&forged.to_string()).is_err());
        }
    }
}
