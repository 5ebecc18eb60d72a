//! Jobs of CI systems: each of their commands is run, in order.

use serde_json::Value;

use crate::readme::reader::Reader;
use crate::readme::session;

/// GitHub's own actions that a job may use; they are not run.
const ACTIONS: [&str; 3] = ["actions/checkout@", "actions/cache@", "actions/upload-artifact@"];

/// Variables that CI systems set, before each step.
const SET: &str = "export CI=true GITHUB_BASE_REF=main GITHUB_STEP_SUMMARY=summary.md CI_MERGE_REQUEST_DIFF_BASE_SHA=1f50812\n";

/// GitHub's `jobs` with their `steps`, `GitLab`'s jobs with their `script`, or
/// steps alone.
pub(super) fn run(reader: &Reader, workflow: &Value) -> Result<(), String> {
    let jobs = workflow.get("jobs").unwrap_or(workflow).as_object();
    let mut steps = list(workflow, "steps", workflow);
    for job in jobs.into_iter().flat_map(|jobs| jobs.values()) {
        steps.extend(list(job, "steps", job));
        steps.extend(list(job, "script", job));
    }
    steps.extend(workflow.as_array().into_iter().flatten().map(|step| (workflow, step)));
    if steps.is_empty() {
        return Err("no rule for this YAML (tests/it/readme/configuration)".into());
    }
    steps.iter().try_for_each(|(job, step)| one(reader, [workflow, job, step]))
}

fn list<'a>(place: &'a Value, name: &str, job: &'a Value) -> Vec<(&'a Value, &'a Value)> {
    let steps = place.get(name).and_then(Value::as_array).into_iter().flatten();
    steps.map(|step| (job, step)).collect()
}

/// Runs one step, with the environment of the workflow, the job and the step.
fn one(reader: &Reader, levels: [&Value; 3]) -> Result<(), String> {
    let [_, _, step] = levels;
    if let Some(action) = step["uses"].as_str() {
        let is_known = ACTIONS.iter().any(|known| action.starts_with(known));
        return is_known.then_some(()).ok_or(format!("no rule for the action `{action}`"));
    }
    let command = step["run"].as_str().or(step.as_str()).ok_or("a step without `run`")?;
    let mut script = SET.to_owned();
    for (name, value) in levels.iter().filter_map(|level| level["env"].as_object()).flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        script += &format!("export {name}=\"{}\"\n", configured(&value));
    }
    script += command;
    session::ends_well(reader, &script)
        .map_err(|output| format!("the step `{command}` fails:\n{output}"))
}

/// Sample values of the repository's secrets and variables, by their names.
fn configured(value: &str) -> &str {
    match value.strip_prefix("${{").map(|name| name.contains("SHA256")) {
        Some(true) => "$(sha256sum < ~/../release.tar.gz | cut -d' ' -f1)",
        Some(false) if value.contains("URL") => "https://example.com/release.tar.gz",
        Some(false) => "a-secret-of-the-repository",
        None => value,
    }
}
