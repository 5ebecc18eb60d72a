//! The figures of an earlier day, in `benches/baseline.json`: ratios and counts, which mean
//! something on another machine; no times, which do not.

use std::fs;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::report::Line;

/// What was measured before.
pub struct Baseline {
    file: Map<String, Value>,
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("benches/baseline.json")
}

impl Baseline {
    /// That of the checkout; an empty one where there is none.
    pub fn read() -> Result<Baseline, String> {
        let Ok(text) = fs::read_to_string(path()) else {
            return Ok(Baseline { file: Map::new() });
        };
        let file = serde_json::from_str(&text);
        let file =
            file.map_err(|error| format!("failed to read benches/baseline.json: {error}"))?;
        Ok(Baseline { file })
    }

    /// What and where it was.
    pub fn about(&self) -> Value {
        self.file.get("about").cloned().unwrap_or_default()
    }

    /// Of what it is, in a sentence.
    pub fn title(&self) -> String {
        let about = self.about();
        match (about["commit"].as_str(), about["machine"].as_str()) {
            (Some(commit), Some(machine)) => format!("Baseline: {commit} on {machine}."),
            _ => "There is no baseline.".into(),
        }
    }

    /// What this was.
    pub fn value(&self, line: &Line) -> Option<f64> {
        self.file.get("values")?.get(line.key())?.as_f64()
    }

    /// How this has changed.
    pub fn change(&self, line: &Line) -> Option<String> {
        let (now, before) = (line.lasting()?, self.value(line)?);
        let percent = (now / before - 1.0) * 100.0;
        if percent.abs() < 0.5 {
            return Some("same".into());
        }
        Some(format!("{percent:+.0} %"))
    }

    /// Writes the lines over what it has of them; what was not measured stays.
    pub fn save(mut self, lines: &[Line], about: Value) -> Result<(), String> {
        let mut values = match self.file.remove("values") {
            Some(Value::Object(values)) => values,
            _ => Map::new(),
        };
        for line in lines {
            if let Some(value) = line.lasting() {
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
