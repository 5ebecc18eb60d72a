//! The baseline of earlier measurements in `benches/baseline.json`. It contains ratios and
//! counts, which are comparable across machines, and no times, which are not.

use std::fs;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::machine;
use crate::report::Line;
use crate::rows::ROWS;

/// The baseline.
pub(crate) struct Baseline {
    file: Map<String, Value>,
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("benches/baseline.json")
}

impl Baseline {
    /// Reads the baseline of the checkout; empty if there is none.
    pub(crate) fn read() -> Result<Baseline, String> {
        let Ok(text) = fs::read_to_string(path()) else {
            return Ok(Baseline { file: Map::new() });
        };
        let file = serde_json::from_str(&text);
        let file =
            file.map_err(|error| format!("failed to read benches/baseline.json: {error}"))?;
        Ok(Baseline { file })
    }

    /// The machine, the versions and the commit of the baseline.
    pub(crate) fn about(&self) -> Value {
        self.file.get("about").cloned().unwrap_or_default()
    }

    /// A sentence that identifies the baseline.
    pub(crate) fn title(&self) -> String {
        let about = self.about();
        match (about["commit"].as_str(), about["machine"].as_str()) {
            (Some(commit), Some(machine)) => {
                let unknown = ", which is not in this checkout's history";
                let unknown = if machine::is_ancestor(commit) { "" } else { unknown };
                format!("Baseline: {commit} on {machine}{unknown}.")
            }
            _ => "There is no baseline.".into(),
        }
    }

    /// The baseline's value for a line.
    pub(crate) fn value(&self, line: &Line) -> Option<f64> {
        self.file.get("values")?.get(line.key())?.as_f64()
    }

    /// The change of a line since the baseline.
    pub(crate) fn change(&self, line: &Line) -> Option<String> {
        let (now, before) = (line.comparable_value()?, self.value(line)?);
        let percent = (now / before - 1.0) * 100.0;
        if percent.abs() < 0.5 {
            return Some("same".into());
        }
        Some(format!("{percent:+.0} %"))
    }

    /// Checks before the measurement that its result may be saved. A checkout with
    /// uncommitted changes cannot be identified later, and a few rows alone must not be mixed
    /// with rows of another commit or machine.
    pub(crate) fn check_can_save(&self, is_choice: bool, about: &Value) -> Result<(), String> {
        let commit = about["commit"].as_str().unwrap_or_default();
        if commit.ends_with("-dirty") || !machine::is_ancestor(commit) {
            return Err("the checkout is no commit: commit first, then --save".into());
        }
        if is_choice && !(self.is_complete() && self.about() == *about) {
            let why = "the baseline is not a whole one of this commit and machine";
            return Err(format!("{why}: --save all rows first"));
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        let values = self.file.get("values").and_then(Value::as_object);
        let has = |row: &str| {
            let start = format!("{row}: ");
            values.is_some_and(|values| values.keys().any(|key| key.starts_with(&start)))
        };
        ROWS.iter().all(|(row, _)| has(row))
    }

    /// Writes the lines. With a choice of rows the other rows of the file stay.
    pub(crate) fn save(
        mut self,
        is_choice: bool,
        lines: &[Line],
        about: Value,
    ) -> Result<(), String> {
        let not_measured = lines.iter().find(|line| line.is_missing_for_baseline());
        if let Some(line) = not_measured {
            let name = line.key();
            return Err(format!("nothing is saved, as `{name}` was not measured"));
        }
        let mut values = match self.file.remove("values") {
            Some(Value::Object(values)) if is_choice => values,
            _ => Map::new(),
        };
        for line in lines {
            if let Some(value) = line.comparable_value() {
                let rounded = (value * 1000.0).round() / 1000.0;
                values.insert(line.key(), json!(rounded));
            }
        }
        self.file.insert("about".into(), about);
        self.file.insert("values".into(), Value::Object(values));
        let text = serde_json::to_string_pretty(&self.file).map_err(|error| error.to_string())?;
        let written = fs::write(path(), text + "\n");
        written.map_err(|error| format!("failed to write benches/baseline.json: {error}"))
    }
}
