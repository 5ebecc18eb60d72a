//! The result of a run, as it is stored: one JSON line.

use std::fmt;

use serde::{Deserialize, Serialize};

use base::limits;
use base::text::one_line;
use skills::evals::{Assertion, EvalCase, Goal};

/// A run's measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum EvalKind {
    /// Whether the skill comes into play.
    Trigger,
    /// Whether a task succeeds with the skill.
    Task,
    /// The same task without the skill.
    Baseline,
}

impl EvalKind {
    pub(super) const ALL: [EvalKind; 3] = [EvalKind::Trigger, EvalKind::Task, EvalKind::Baseline];

    /// Whether a case is of this kind.
    pub(super) fn covers(self, case: &EvalCase) -> bool {
        matches!(case.goal, Goal::Trigger(_)) == (self == EvalKind::Trigger)
    }

    /// The name of a run of this kind.
    pub(super) fn name(self) -> &'static str {
        match self {
            EvalKind::Trigger => "trigger",
            EvalKind::Task => "task",
            EvalKind::Baseline => "baseline",
        }
    }
}

/// Identity of a run: a second record with the same key is not counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct RunKey {
    /// The skill that is tested.
    pub skill: String,
    pub kind: EvalKind,
    /// The name of the case.
    pub case: String,
    /// The number of the run, from 1.
    pub run: u32,
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let case = one_line(&self.case, limits::SUMMARY_CHARS);
        write!(f, "{}, {} {case}, run {}", self.skill, self.kind.name(), self.run)
    }
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RunRecord {
    #[serde(flatten)]
    pub key: RunKey,
    /// The digest of the suite.
    pub digest: String,
    /// Whether it passed; `None`: it was not judged.
    pub passed: Option<bool>,
    /// The assertions of a task.
    pub expectations: Vec<Assertion>,
    /// The first skill that came into play: its document was read, or a script of it ran.
    pub first_skill: Option<String>,
    /// The beginning of the answer.
    pub answer: String,
    /// Why the run ended without an answer, or with a part of one.
    pub error: Option<String>,
    pub steps: u32,
    pub tool_calls: u32,
    /// Tokens of all requests, without those of the judge.
    pub tokens: u64,
    pub seconds: f64,
}

impl RunRecord {
    /// Why the run failed or was not judged: the first reason.
    pub(super) fn reason(&self) -> String {
        let first = |passed| self.expectations.iter().find(|it| it.passed == passed);
        match (self.passed, &self.error, first(Some(false))) {
            (None, ..) => {
                first(None).map_or("it has no assertions".into(), |it| it.evidence.clone())
            }
            (_, Some(error), _) => error.clone(),
            (_, None, Some(failed)) => format!("not met: {} ({})", failed.text, failed.evidence),
            (_, None, None) => match &self.first_skill {
                Some(skill) => format!("the model used `{skill}`"),
                None => "the model used no skill".into(),
            },
        }
    }
}

/// Reply of the process of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum RunReply {
    /// The run has a result.
    Record(Box<RunRecord>),
    /// The run has no result, as the endpoint or this machine failed: a later try may succeed.
    Failure {
        /// The name of the error's kind.
        kind: String,
        message: String,
        hint: Option<String>,
    },
}
