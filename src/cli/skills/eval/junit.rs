//! Results as XML in the form of `JUnit`: a test case for each case, as CI servers show it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::Suite;
use super::html::escaped;
use super::record::{EvalKind, RunKey, RunRecord};
use super::score::records_of;
use crate::cli::options::EvalCommand;
use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::text::{counted, one_line};

/// Writes the file. A case fails if fewer of its runs passed than `--min` asks for, or than all.
pub(super) fn write(
    file: &Path,
    suites: &[Suite],
    command: &EvalCommand,
    records: &BTreeMap<RunKey, RunRecord>,
) -> Result<()> {
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for suite in suites {
        for kind in [EvalKind::Trigger, EvalKind::Task] {
            let ids: Vec<&str> = kind.ids(&suite.evals).collect();
            if ids.is_empty() {
                continue;
            }
            let found = records_of(suite, kind, command, records);
            let cases = ids.iter().map(|id| {
                let runs: Vec<&RunRecord> =
                    found.iter().copied().filter(|record| record.key.case == *id).collect();
                let text = kind.text(&suite.evals, id).unwrap_or_default();
                let name = one_line(&format!("{id}: {text}"), limits::SUMMARY_CHARS);
                CaseXml::new(&name, &runs, command.min().unwrap_or(1.0))
            });
            let cases: Vec<CaseXml> = cases.collect();
            let count = |state| cases.iter().filter(|case| case.state == state).count();
            let name = escaped(&format!("{} {}", suite.label, kind_name(kind)));
            let _ = writeln!(
                xml,
                "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" errors=\"{}\" time=\"{:.3}\">",
                cases.len(),
                count(CaseState::Failed),
                count(CaseState::NotJudged),
                count(CaseState::NotRun),
                0.0 + cases.iter().map(|case| case.seconds).sum::<f64>(),
            );
            for case in &cases {
                case.write(&name, &mut xml);
            }
            xml += "  </testsuite>\n";
        }
    }
    xml += "</testsuites>\n";
    fs::write(file, xml).map_err(|error| {
        Error::new(ErrorKind::Io, format!("failed to write `{}`: {error}", file.display()))
    })
}

fn kind_name(kind: EvalKind) -> &'static str {
    match kind {
        EvalKind::Trigger => "triggers",
        EvalKind::Task => "tasks",
        EvalKind::Baseline => "baseline",
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CaseState {
    Passed,
    Failed,
    NotJudged,
    /// The evaluation ended before.
    NotRun,
}

struct CaseXml {
    name: String,
    state: CaseState,
    /// How many runs passed, and the reasons of the others.
    message: String,
    seconds: f64,
}

impl CaseXml {
    fn new(name: &str, runs: &[&RunRecord], least: f64) -> CaseXml {
        let open = runs.iter().filter(|run| run.passed.is_none()).count();
        let passed = runs.iter().filter(|run| run.passed == Some(true)).count();
        #[allow(clippy::cast_precision_loss, reason = "runs are counted in thousands")]
        let can_reach = |passed: usize| passed as f64 >= least * runs.len() as f64;
        let state = match open {
            _ if runs.is_empty() => CaseState::NotRun,
            _ if !can_reach(passed + open) => CaseState::Failed,
            0 => CaseState::Passed,
            _ => CaseState::NotJudged,
        };
        let reasons = runs.iter().filter(|run| run.passed == Some(false));
        let reasons = reasons.map(|run| format!("\nrun {}: {}", run.key.run, run.failure()));
        let count = counted(runs.len(), "run");
        let message = format!("{passed} of {count} passed{}", reasons.collect::<String>());
        // The sum of nothing is -0.
        let seconds = 0.0 + runs.iter().map(|run| run.seconds).sum::<f64>();
        CaseXml { name: name.to_string(), state, message, seconds }
    }

    fn write(&self, class: &str, xml: &mut String) {
        let (name, message) = (escaped(&self.name), escaped(&self.message));
        let first = message.lines().next().unwrap_or_default();
        let _ = write!(
            xml,
            "    <testcase classname=\"{class}\" name=\"{name}\" time=\"{:.3}\">",
            self.seconds
        );
        match self.state {
            CaseState::Passed => {}
            CaseState::Failed => {
                let _ = write!(xml, "<failure message=\"{first}\">{message}</failure>");
            }
            CaseState::NotRun => *xml += "<error message=\"not run\"/>",
            CaseState::NotJudged => *xml += "<skipped message=\"not judged\"/>",
        }
        *xml += "</testcase>\n";
    }
}
