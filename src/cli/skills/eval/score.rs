//! Rates of runs that passed, with their intervals.

use serde::Serialize;
use serde_json::{Value, json};

use super::record::{EvalKind, RunRecord};
use super::{Evaluation, Suite};
use base::error::Result;
use base::text::group_digits;
use skills::evals::{ExpectedSkill, Goal};

/// The results of a skill.
#[derive(Debug, Serialize)]
pub(super) struct SkillScore {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub triggers: Option<KindScore>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<KindScore>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<KindScore>,
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
    /// Passed runs of those that count; `null`: none counts.
    #[serde(rename = "rate")]
    pub value: Option<f64>,
    /// The 95 % interval of the rate, as if all runs were independent of each other.
    pub interval: Option<[f64; 2]>,
}

/// The results of a kind of runs. What only the other kinds have is left out.
#[derive(Debug, Default, Serialize)]
#[allow(clippy::option_option, reason = "left out, null or a number")]
pub(super) struct KindScore {
    #[serde(flatten)]
    pub rate: Rate,
    /// Of the runs that should bring the skill into play, the part that did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recall: Option<Option<f64>>,
    /// Of the runs that brought it into play, the part that should.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<Option<f64>>,
    /// Runs of cases that do not count, as one of their runs was not judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_judged: Option<usize>,
    /// Tokens of a run, on average.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<f64>,
    /// Seconds of a run, on average.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

/// A kind of runs of a skill, for people.
pub(super) struct ScoreRow<'s> {
    pub kind: &'static str,
    pub passed: String,
    pub rate: &'s Rate,
    pub tokens: String,
    pub seconds: String,
    pub note: String,
}

impl Rate {
    /// A case of which a run was not judged does not count: its failed runs alone would make the
    /// rate look worse than it is.
    fn of(records: &[&RunRecord]) -> Rate {
        let counted = records.iter().filter(|record| counts(&record.key.case, records));
        let counted: Vec<_> = counted.collect();
        let passed = counted.iter().filter(|record| record.passed == Some(true)).count();
        Rate {
            runs: records.len(),
            passed,
            value: ratio(passed, counted.len()),
            interval: (!counted.is_empty()).then(|| wilson(passed, counted.len())),
        }
    }
}

/// Whether all runs of the case were judged.
fn counts(case: &str, records: &[&RunRecord]) -> bool {
    records.iter().all(|record| record.key.case != case || record.passed.is_some())
}

/// A part; `None` of nothing.
#[allow(clippy::cast_precision_loss, reason = "runs are counted in thousands")]
pub(super) fn ratio(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The score interval of a binomial proportion for 95 % (Wilson, Journal of the American
/// Statistical Association 22, 1927), without continuity correction.
#[allow(clippy::cast_precision_loss, reason = "runs are counted in thousands")]
fn wilson(passed: usize, runs: usize) -> [f64; 2] {
    // The quantile of the normal distribution for 97.5 %.
    let z = 1.959_963_984_540_054_f64;
    let n = runs as f64;
    let p = passed as f64 / n;
    let (center, scale) = (p + z * z / (2.0 * n), 1.0 + z * z / n);
    let half = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    let low = if passed == 0 { 0.0 } else { (center - half) / scale };
    let high = if passed == runs { 1.0 } else { (center + half) / scale };
    [low, high]
}

impl SkillScore {
    /// The scores of the cases that the suite has now.
    pub(super) fn new(evaluation: &Evaluation<'_>, suite: &Suite) -> SkillScore {
        let [triggers, tasks, baseline] = EvalKind::ALL.map(|kind| evaluation.records(suite, kind));
        let has = |kind: EvalKind| suite.cases(kind).next().is_some();
        let has_baseline = has(EvalKind::Baseline) && evaluation.command.baseline;
        SkillScore {
            name: suite.label.clone(),
            triggers: has(EvalKind::Trigger).then(|| KindScore::of_triggers(suite, &triggers)),
            tasks: has(EvalKind::Task).then(|| KindScore::of_tasks(&tasks)),
            baseline: has_baseline.then(|| KindScore::of_tasks(&baseline)),
            difference: difference(&tasks, &baseline).filter(|_| has_baseline),
        }
    }

    /// Whether of every kind at least this part of the runs passed. What was not judged has not
    /// passed.
    pub(super) fn reaches(&self, least: Option<f64>) -> bool {
        let Some(least) = least else { return true };
        let mut rates = [&self.triggers, &self.tasks].into_iter().flatten().map(|it| &it.rate);
        rates.all(|rate| ratio(rate.passed, rate.runs).is_some_and(|part| part >= least))
    }

    /// The kinds for people, with what else is known.
    pub(super) fn rows(&self) -> Vec<ScoreRow<'_>> {
        let kinds =
            [("triggers", &self.triggers), ("tasks", &self.tasks), ("baseline", &self.baseline)];
        let rows = kinds.into_iter().filter_map(|(kind, score)| {
            let score = score.as_ref()?;
            let KindScore { rate, not_judged, tokens, seconds, .. } = score;
            let passed = match not_judged.unwrap_or_default() {
                0 => format!("{}/{}", rate.passed, rate.runs),
                some => format!("{}/{}, {some} not judged", rate.passed, rate.runs - some),
            };
            let difference = self.difference.filter(|_| kind == "tasks");
            let difference =
                difference.map(|it| format!("{:+.0} points with the skill", 100.0 * it));
            let parts = [("recall", score.recall), ("precision", score.precision)].into_iter();
            let parts = parts.filter_map(|(what, it)| Some(format!("{what} {}", percent(it??))));
            Some(ScoreRow {
                kind,
                passed,
                rate,
                tokens: tokens.map(|it| group_digits(rounded(it))).unwrap_or_default(),
                seconds: seconds.map(|it| format!("{it:.1}")).unwrap_or_default(),
                note: difference.into_iter().chain(parts).collect::<Vec<_>>().join(", "),
            })
        });
        rows.collect()
    }
}

/// The rate with the skill minus that without it, of the cases that count in both.
fn difference(with: &[&RunRecord], without: &[&RunRecord]) -> Option<f64> {
    let is_common = |record: &&&RunRecord| {
        [with, without].into_iter().all(|records| {
            let case = &record.key.case;
            counts(case, records) && records.iter().any(|other| other.key.case == *case)
        })
    };
    let [with, without] = [with, without].map(|records| {
        Rate::of(&records.iter().filter(is_common).copied().collect::<Vec<_>>()).value
    });
    Some(with? - without?)
}

impl KindScore {
    fn of_triggers(suite: &Suite, records: &[&RunRecord]) -> KindScore {
        let is_wanted = |record: &RunRecord| {
            let mut cases = suite.cases(EvalKind::Trigger);
            cases.any(|case| {
                case.id == record.key.case
                    && matches!(case.goal, Goal::Trigger(ExpectedSkill::This))
            })
        };
        let is_used = |record: &RunRecord| record.first_skill.as_deref() == Some(&suite.name);
        let count = |is: &dyn Fn(&RunRecord) -> bool| records.iter().filter(|it| is(it)).count();
        let both = count(&|record| is_wanted(record) && is_used(record));
        KindScore {
            rate: Rate::of(records),
            recall: Some(ratio(both, count(&is_wanted))),
            precision: Some(ratio(both, count(&is_used))),
            ..KindScore::default()
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "an average for people")]
    fn of_tasks(records: &[&RunRecord]) -> KindScore {
        let average = |sum: f64| (!records.is_empty()).then(|| sum / records.len() as f64);
        KindScore {
            rate: Rate::of(records),
            not_judged: Some(records.iter().filter(|it| !counts(&it.key.case, records)).count()),
            tokens: average(records.iter().map(|record| record.tokens as f64).sum()),
            seconds: average(records.iter().map(|record| record.seconds).sum()),
            ..KindScore::default()
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
    let kinds = scores.iter().flat_map(|score| [&score.triggers, &score.tasks, &score.baseline]);
    let mut summary = json!({
        "type": "eval",
        "status": if status == 0 { "ok" } else { "error" },
        "exit_code": status,
        "model": model,
        "runs": kinds.flatten().map(|score| score.rate.runs).sum::<usize>(),
        "skills": scores,
    });
    if let Err(error) = finished {
        summary["error"] = json!({"kind": error.kind().name(), "message": error.message()});
    }
    summary
}

/// A part of 1 in percent.
pub(super) fn percent(part: f64) -> String {
    format!("{:.0} %", 100.0 * part)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "tokens are positive")]
pub(super) fn rounded(value: f64) -> u64 {
    value.round() as u64
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
