//! Rates of runs that passed, with their intervals.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::Suite;
use super::record::{EvalKind, RunKey, RunRecord};
use crate::cli::options::EvalCommand;
use crate::error::Result;
use crate::skills::evals::ExpectedSkill;

/// The results of a skill.
#[derive(Debug, Serialize)]
pub(super) struct SkillScore {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub triggers: Option<TriggerScore>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TaskScore>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<TaskScore>,
    /// The rate with the skill minus that without it, of the cases that count in both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<f64>,
}

/// How many runs passed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Rate {
    /// Runs, also those that were not judged.
    pub runs: usize,
    pub passed: usize,
    /// Passed runs of the judged ones; `null`: none was judged.
    #[serde(rename = "rate")]
    pub value: Option<f64>,
    /// The 95 % interval of the rate, as if all runs were independent of each other.
    pub interval: Option<[f64; 2]>,
}

/// The results of triggers.
#[derive(Debug, Serialize)]
pub(super) struct TriggerScore {
    #[serde(flatten)]
    pub rate: Rate,
    /// Of the runs that should bring the skill into play, those that did.
    pub recall: Option<f64>,
    /// Of the runs that brought it into play, those that should.
    pub precision: Option<f64>,
}

/// The results of tasks.
#[derive(Debug, Serialize)]
pub(super) struct TaskScore {
    #[serde(flatten)]
    pub rate: Rate,
    pub not_judged: usize,
    /// Tokens of a run, on average.
    pub tokens: Option<f64>,
    /// Seconds of a run, on average.
    pub seconds: Option<f64>,
}

impl Rate {
    /// A case of which a run was not judged does not count: its failed runs alone would make the
    /// rate look worse than it is.
    fn of(records: &[&RunRecord]) -> Rate {
        let mut rate = Rate { runs: records.len(), ..Rate::default() };
        let mut judged = 0;
        for record in records.iter().filter(|record| is_judged(&record.key.case, records)) {
            judged += 1;
            rate.passed += usize::from(record.passed == Some(true));
        }
        if judged > 0 {
            rate.value = Some(fraction(rate.passed, judged));
            rate.interval = Some(wilson(rate.passed, judged));
        }
        rate
    }
}

/// Whether all runs of the case were judged.
pub(super) fn is_judged(case: &str, records: &[&RunRecord]) -> bool {
    records.iter().all(|record| record.key.case != case || record.passed.is_some())
}

#[allow(clippy::cast_precision_loss, reason = "runs are counted in thousands")]
fn fraction(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

/// The score interval of a binomial proportion for 95 % (Wilson, Journal of the American
/// Statistical Association 22, 1927), without continuity correction.
#[allow(clippy::cast_precision_loss, reason = "runs are counted in thousands")]
fn wilson(passed: usize, runs: usize) -> [f64; 2] {
    // The quantile of the normal distribution for 97.5 %.
    let z = 1.959_963_984_540_054_f64;
    let (n, p) = (runs as f64, fraction(passed, runs));
    let (center, scale) = (p + z * z / (2.0 * n), 1.0 + z * z / n);
    let half = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    [((center - half) / scale).max(0.0), ((center + half) / scale).min(1.0)]
}

fn ratio(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| fraction(part, whole))
}

impl SkillScore {
    /// The scores of the cases that the suite has now.
    pub(super) fn new(
        suite: &Suite,
        command: &EvalCommand,
        records: &BTreeMap<RunKey, RunRecord>,
    ) -> SkillScore {
        let of = |kind| records_of(suite, kind, command, records);
        let tasks = |kind| {
            let has_any = !suite.evals.tasks.is_empty();
            has_any.then(|| TaskScore::new(&of(kind)))
        };
        let difference = || {
            let (with, without) = (of(EvalKind::Task), of(EvalKind::Baseline));
            let in_both = |record: &&&RunRecord| {
                let case = &record.key.case;
                let has_case = |list: &[&RunRecord]| list.iter().any(|it| it.key.case == *case);
                has_case(&with)
                    && has_case(&without)
                    && is_judged(case, &with)
                    && is_judged(case, &without)
            };
            let rate = |list: &[&RunRecord]| {
                Rate::of(&list.iter().filter(in_both).copied().collect::<Vec<_>>()).value
            };
            Some(rate(&with)? - rate(&without)?)
        };
        let has_triggers = !suite.evals.triggers.is_empty();
        SkillScore {
            name: suite.label.clone(),
            triggers: has_triggers.then(|| TriggerScore::new(suite, &of(EvalKind::Trigger))),
            tasks: tasks(EvalKind::Task),
            baseline: tasks(EvalKind::Baseline).filter(|_| command.baseline),
            difference: difference().filter(|_| command.baseline),
        }
    }

    /// Whether of every kind at least this part of the runs passed. What was not judged has not
    /// passed.
    pub(super) fn reaches(&self, least: Option<f64>) -> bool {
        let Some(least) = least else { return true };
        let rates = self.triggers.iter().map(|score| &score.rate);
        let mut rates = rates.chain(self.tasks.iter().map(|score| &score.rate));
        rates.all(|rate| ratio(rate.passed, rate.runs).is_some_and(|part| part >= least))
    }
}

/// The results of a kind that count: those of cases that the suite has, and of as many runs as are
/// asked for.
pub(super) fn records_of<'r>(
    suite: &Suite,
    kind: EvalKind,
    command: &EvalCommand,
    records: &'r BTreeMap<RunKey, RunRecord>,
) -> Vec<&'r RunRecord> {
    let mut found = Vec::new();
    for id in kind.ids(&suite.evals) {
        for run in 1..=command.runs {
            let key = RunKey { skill: suite.label.clone(), kind, case: id.to_string(), run };
            found.extend(records.get(&key));
        }
    }
    found
}

impl TriggerScore {
    fn new(suite: &Suite, records: &[&RunRecord]) -> TriggerScore {
        let (mut wanted, mut triggered, mut both) = (0, 0, 0);
        for record in records {
            let case = suite.evals.triggers.iter().find(|case| case.id == record.key.case);
            let is_wanted = case.is_some_and(|case| case.expected == ExpectedSkill::This);
            let is_triggered = record.first_skill.as_deref() == Some(suite.name.as_str());
            wanted += usize::from(is_wanted);
            triggered += usize::from(is_triggered);
            both += usize::from(is_wanted && is_triggered);
        }
        TriggerScore {
            rate: Rate::of(records),
            recall: ratio(both, wanted),
            precision: ratio(both, triggered),
        }
    }
}

impl TaskScore {
    #[allow(clippy::cast_precision_loss, reason = "an average for people")]
    fn new(records: &[&RunRecord]) -> TaskScore {
        let average = |sum: f64| (!records.is_empty()).then(|| sum / records.len() as f64);
        TaskScore {
            rate: Rate::of(records),
            not_judged: records.iter().filter(|it| !is_judged(&it.key.case, records)).count(),
            tokens: average(records.iter().map(|record| record.tokens as f64).sum()),
            seconds: average(records.iter().map(|record| record.seconds).sum()),
        }
    }
}

/// The object of `-o json`.
pub(super) fn summary(
    model: &str,
    scores: &[SkillScore],
    finished: &Result<()>,
    status: u8,
) -> Value {
    let rates = scores.iter().flat_map(|score| {
        let triggers = score.triggers.iter().map(|score| score.rate.runs);
        let tasks = score.tasks.iter().chain(&score.baseline).map(|score| score.rate.runs);
        triggers.chain(tasks)
    });
    let mut summary = json!({
        "type": "eval",
        "status": if status == 0 { "ok" } else { "error" },
        "exit_code": status,
        "model": model,
        "runs": rates.sum::<usize>(),
        "skills": scores,
    });
    if let Err(error) = finished {
        summary["error"] = json!({"kind": error.kind().name(), "message": error.message()});
    }
    summary
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of `scipy.stats.binomtest(k, n).proportion_ci(method="wilson")`.
    #[test]
    fn intervals_are_those_of_a_statistics_package() {
        for (passed, runs, low, high) in [
            (0, 1, 0.0, 0.793_450_685_622_763),
            (1, 1, 0.206_549_314_377_237, 1.0),
            (0, 10, 0.0, 0.277_532_799_862_889),
            (5, 10, 0.236_593_090_512_564, 0.763_406_909_487_436),
            (18, 20, 0.698_966_354_771_512_8, 0.972_133_518_786_231_9),
            (57, 60, 0.862_994_835_236_514_8, 0.982_850_497_835_604_4),
        ] {
            let [found_low, found_high] = wilson(passed, runs);
            assert!((found_low - low).abs() < 1e-9, "{passed}/{runs}: {found_low}");
            assert!((found_high - high).abs() < 1e-9, "{passed}/{runs}: {found_high}");
        }
    }
}
