//! Results as XML in the form of `JUnit`: a test case for each case, as CI servers show it.

use std::fmt::Write as _;

use super::Evaluation;
use super::html::escaped;
use super::record::{EvalKind, RunRecord};
use super::score::ratio;
use base::limits;
use base::text::{counted, one_line};
use skills::evals::EvalCase;

/// The elements of test cases that have not passed, in the order of the attributes that count them.
const RESULTS: [(&str, &str); 3] =
    [("failure", "failures"), ("skipped", "skipped"), ("error", "errors")];

/// The file. A case fails if fewer of its runs passed than `--min` asks for, or than all.
pub(super) fn xml(evaluation: &Evaluation<'_>) -> String {
    let least = evaluation.command.min().unwrap_or(1.0);
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for suite in &evaluation.suites {
        for kind in [EvalKind::Trigger, EvalKind::Task] {
            let records = evaluation.records(suite, kind);
            let class = escaped(&format!("{} {}s", suite.label, kind.name()));
            let cases = suite.cases(kind).map(|case| {
                let runs = records.iter().copied().filter(|record| record.key.case == case.id);
                case_xml(case, &runs.collect::<Vec<_>>(), least, &class)
            });
            let cases: Vec<(Option<&str>, String)> = cases.collect();
            if cases.is_empty() {
                continue;
            }
            let _ = write!(xml, "  <testsuite name=\"{class}\" tests=\"{}\"", cases.len());
            for (element, attribute) in RESULTS {
                let count = cases.iter().filter(|(result, _)| *result == Some(element)).count();
                let _ = write!(xml, " {attribute}=\"{count}\"");
            }
            let _ = writeln!(xml, " time=\"{:.3}\">", seconds(&records));
            xml.extend(cases.into_iter().map(|(_, case)| case));
            xml += "  </testsuite>\n";
        }
    }
    xml + "</testsuites>\n"
}

/// A test case, and the element of its result if it has not passed.
fn case_xml(
    case: &EvalCase,
    runs: &[&RunRecord],
    least: f64,
    class: &str,
) -> (Option<&'static str>, String) {
    let count = |passed| runs.iter().filter(|run| run.passed == passed).count();
    let (passed, unknown) = (count(Some(true)), count(None));
    let [failure, skipped, error] = RESULTS.map(|(element, _)| element);
    let result = match ratio(passed + unknown, runs.len()) {
        None => Some(error),
        Some(best) if best < least => Some(failure),
        Some(_) => (unknown > 0).then_some(skipped),
    };
    let title = one_line(&format!("{}: {}", case.id, case.prompt), limits::SUMMARY_CHARS);
    let mut xml = format!(
        "    <testcase classname=\"{class}\" name=\"{}\" time=\"{:.3}\">",
        escaped(&title),
        seconds(runs)
    );
    if let Some(result) = result {
        let summary = match runs.len() {
            0 => "not run".to_string(),
            count => format!("{passed} of {} passed", counted(count, "run")),
        };
        let others = runs.iter().filter(|run| run.passed != Some(true));
        let reasons = others.map(|run| format!("\nrun {}: {}", run.key.run, run.reason()));
        let text = escaped(&format!("{summary}{}", reasons.collect::<String>()));
        let _ = write!(xml, "<{result} message=\"{}\">{text}</{result}>", escaped(&summary));
    }
    (result, xml + "</testcase>\n")
}

/// The time of all runs. The sum of nothing is -0.
fn seconds(runs: &[&RunRecord]) -> f64 {
    0.0 + runs.iter().map(|run| run.seconds).sum::<f64>()
}
