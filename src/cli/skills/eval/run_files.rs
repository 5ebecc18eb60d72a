//! The files of `--out` beside the results: those of agentskills.io and skill-creator, which their
//! viewers read, and the report.

use std::fs;
use std::io::Write;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::record::{EvalKind, RunRecord};
use super::score::{SkillScore, ratio, rounded};
use super::store::{create_below, file_name, run_folder};
use super::{Evaluation, Suite, html, write_error};
use base::error::Result;
use host::clock::LocalTime;

/// Writes the files of all runs, and the report.
pub(super) fn write(
    folder: &Path,
    evaluation: &Evaluation<'_>,
    scores: &[SkillScore],
) -> Result<()> {
    write_file(folder, "report.html".as_ref(), &html::page(evaluation, scores))?;
    for suite in &evaluation.suites {
        let [with, without] =
            [EvalKind::Task, EvalKind::Baseline].map(|kind| evaluation.records(suite, kind));
        for record in with.iter().chain(&without) {
            let run = run_folder(&record.key);
            write_file(folder, &run.join("grading.json"), &grading(record).to_string())?;
            write_file(folder, &run.join("timing.json"), &timing(record).to_string())?;
        }
        if !with.is_empty() {
            let file = Path::new(&file_name(&suite.label)).join("benchmark.json");
            write_file(folder, &file, &benchmark(evaluation, suite, &with, &without).to_string())?;
        }
    }
    Ok(())
}

/// Writes a file below a folder, and the folders above it, never through a link, which a test or
/// the author of a checkout may have left there.
pub(super) fn write_file(folder: &Path, below: &Path, text: &str) -> Result<()> {
    let path = folder.join(below);
    let written = create_below(folder, below.parent().unwrap_or(below)).and_then(|()| {
        let _ = fs::remove_file(&path);
        fs::File::create_new(&path)?.write_all(text.as_bytes())
    });
    written.map_err(|error| write_error(&path, &error))
}

/// `grading.json`. What was not judged has no `passed`, and is not counted. Both sources name the
/// list differently.
fn grading(record: &RunRecord) -> Value {
    json!({
        "expectations": record.expectations,
        "assertion_results": record.expectations,
        "summary": counts(record),
        "error": record.error,
    })
}

/// The part of the assertions that hold; `None`: some were not judged.
fn pass_rate(record: &RunRecord) -> Option<f64> {
    let judged = record.expectations.iter().map(|it| it.passed).collect::<Option<Vec<bool>>>()?;
    ratio(judged.iter().filter(|passed| **passed).count(), judged.len())
}

/// `passed`, `failed`, `total` and `pass_rate` of the assertions that were judged.
fn counts(record: &RunRecord) -> Value {
    let count = |passed| record.expectations.iter().filter(|it| it.passed == Some(passed)).count();
    let (passed, failed) = (count(true), count(false));
    json!({"passed": passed, "failed": failed, "total": passed + failed, "pass_rate": pass_rate(record)})
}

fn timing(record: &RunRecord) -> Value {
    json!({
        "total_tokens": record.tokens,
        "duration_ms": rounded(record.seconds * 1000.0),
        "total_duration_seconds": record.seconds,
    })
}

/// `benchmark.json` of a skill.
fn benchmark(
    evaluation: &Evaluation<'_>,
    suite: &Suite,
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
    let (one, other) = (statistics(with), statistics(without));
    let mut summary = json!({"with_skill": one});
    if !without.is_empty() {
        let delta = one.iter().map(|(key, values)| {
            let mean = |of: &Value| of["mean"].as_f64();
            let difference = mean(values).zip(mean(&other[key]));
            (key.clone(), json!(difference.map(|(with, without)| with - without)))
        });
        summary["delta"] = Value::Object(delta.collect());
        summary["without_skill"] = json!(other);
    }
    json!({
        "metadata": {
            "skill_name": suite.name,
            "skill_path": suite.path.to_string_lossy(),
            "executor_model": evaluation.model,
            "analyzer_model": evaluation.command.judge,
            "timestamp": LocalTime::now().stamp,
            "evals_run": suite.cases(EvalKind::Task).map(|case| &case.id).collect::<Vec<_>>(),
            "runs_per_configuration": evaluation.command.runs,
        },
        "runs": runs.collect::<Vec<_>>(),
        "run_summary": summary,
        "notes": [],
    })
}

#[allow(clippy::cast_precision_loss, reason = "an average for people")]
fn statistics(records: &[&RunRecord]) -> Map<String, Value> {
    let values: [(&str, Vec<f64>); 3] = [
        ("pass_rate", records.iter().filter_map(|record| pass_rate(record)).collect()),
        ("time_seconds", records.iter().map(|record| record.seconds).collect()),
        ("tokens", records.iter().map(|record| record.tokens as f64).collect()),
    ];
    values.map(|(key, values)| (key.to_string(), moments(&values))).into_iter().collect()
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
