//! The files of `--out` beside the results: those of agentskills.io and skill-creator, which their
//! viewers read, and the report.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use super::Suite;
use super::record::{EvalKind, RunKey, RunRecord};
use super::score::records_of;
use super::store::{run_folder, skill_folder};
use crate::cli::options::EvalCommand;
use crate::error::{Error, ErrorKind, Result};
use crate::world::clock::LocalTime;

/// Writes the files of all runs, and the report.
pub(super) fn write(
    folder: &Path,
    model: &str,
    suites: &[Suite],
    command: &EvalCommand,
    records: &BTreeMap<RunKey, RunRecord>,
    report: &str,
) -> Result<()> {
    let write = |path: &Path, text: String| {
        let parent = path.parent().unwrap_or(folder);
        let written = fs::create_dir_all(parent).and_then(|()| {
            // Not through a link, which a test may have left there.
            let _ = fs::remove_file(path);
            fs::File::create_new(path)?.write_all(text.as_bytes())
        });
        written.map_err(|error| {
            Error::new(ErrorKind::Io, format!("failed to write `{}`: {error}", path.display()))
        })
    };
    write(&folder.join("report.html"), report.to_string())?;
    for suite in suites.iter().filter(|suite| !suite.evals.tasks.is_empty()) {
        let of = |kind| records_of(suite, kind, command, records);
        let (with, without) = (of(EvalKind::Task), of(EvalKind::Baseline));
        for record in with.iter().chain(&without) {
            let run = folder.join(run_folder(&record.key));
            write(&run.join("grading.json"), grading(record).to_string())?;
            write(&run.join("timing.json"), timing(record).to_string())?;
        }
        let benchmark = benchmark(model, suite, command, &with, &without);
        let file = folder.join(skill_folder(&suite.label)).join("benchmark.json");
        write(&file, benchmark.to_string())?;
    }
    Ok(())
}

/// `grading.json`. What was not judged has no `passed`, and is not counted. Both sources name the
/// list differently.
fn grading(record: &RunRecord) -> Value {
    let results = json!(record.expectations);
    json!({
        "expectations": results,
        "assertion_results": results,
        "summary": counts(record),
        "error": record.error,
    })
}

/// `passed`, `failed`, `total` and `pass_rate` of the assertions that were judged.
fn counts(record: &RunRecord) -> Value {
    let count = |passed| record.expectations.iter().filter(|it| it.passed == Some(passed)).count();
    let (passed, failed) = (count(true), count(false));
    let total = passed + failed;
    #[allow(clippy::cast_precision_loss, reason = "assertions are counted in tens")]
    let pass_rate = (total > 0).then(|| passed as f64 / total as f64);
    json!({"passed": passed, "failed": failed, "total": total, "pass_rate": pass_rate})
}

fn timing(record: &RunRecord) -> Value {
    json!({
        "total_tokens": record.tokens,
        "duration_ms": super::table::rounded(record.seconds * 1000.0),
        "total_duration_seconds": record.seconds,
    })
}

/// `benchmark.json` of a skill.
fn benchmark(
    model: &str,
    suite: &Suite,
    command: &EvalCommand,
    with: &[&RunRecord],
    without: &[&RunRecord],
) -> Value {
    let runs = with.iter().chain(without).map(|record| {
        let mut result = counts(record);
        result["time_seconds"] = json!(record.seconds);
        result["tokens"] = json!(record.tokens);
        result["tool_calls"] = json!(record.tool_calls);
        result["errors"] = json!(u8::from(record.error.is_some()));
        let is_baseline = record.key.kind == EvalKind::Baseline;
        json!({
            "eval_id": record.key.case,
            "eval_name": record.key.case,
            "configuration": if is_baseline { "without_skill" } else { "with_skill" },
            "run_number": record.key.run,
            "result": result,
            "expectations": record.expectations,
        })
    });
    let mut summary = json!({"with_skill": statistics(with)});
    if !without.is_empty() {
        let (one, other) = (statistics(with), statistics(without));
        let difference = |key: &str| {
            let mean = |of: &Value| of[key]["mean"].as_f64();
            Some(mean(&one)? - mean(&other)?)
        };
        summary["delta"] = json!({
            "pass_rate": difference("pass_rate"),
            "time_seconds": difference("time_seconds"),
            "tokens": difference("tokens"),
        });
        summary["without_skill"] = other;
    }
    json!({
        "metadata": {
            "skill_name": suite.name,
            "skill_path": suite.path.to_string_lossy(),
            "executor_model": model,
            "analyzer_model": command.judge,
            "timestamp": LocalTime::now().stamp,
            "evals_run": suite.evals.tasks.iter().map(|task| &task.id).collect::<Vec<_>>(),
            "runs_per_configuration": command.runs,
        },
        "runs": runs.collect::<Vec<_>>(),
        "run_summary": summary,
        "notes": [],
    })
}

fn statistics(records: &[&RunRecord]) -> Value {
    let rates = records.iter().filter_map(|record| counts(record)["pass_rate"].as_f64());
    #[allow(clippy::cast_precision_loss, reason = "an average for people")]
    let tokens = records.iter().map(|record| record.tokens as f64);
    json!({
        "pass_rate": moments(&rates.collect::<Vec<_>>()),
        "time_seconds": moments(&records.iter().map(|it| it.seconds).collect::<Vec<_>>()),
        "tokens": moments(&tokens.collect::<Vec<_>>()),
    })
}

/// Mean, standard deviation of the sample, smallest and largest value.
#[allow(clippy::cast_precision_loss, reason = "an average for people")]
fn moments(values: &[f64]) -> Value {
    if values.is_empty() {
        return Value::Null;
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let stddev = if values.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    json!({"mean": mean, "stddev": stddev, "min": least, "max": most})
}
