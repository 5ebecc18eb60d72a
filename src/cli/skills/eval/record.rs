//! The result of a run, as it is stored: one JSON line.

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::skills::evals::SkillEvals;
use crate::text::one_line;

/// What a run measures.
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

    /// The names of the cases of this kind.
    pub(super) fn ids(self, evals: &SkillEvals) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            EvalKind::Trigger => Box::new(evals.triggers.iter().map(|case| case.id.as_str())),
            EvalKind::Task | EvalKind::Baseline => {
                Box::new(evals.tasks.iter().map(|case| case.id.as_str()))
            }
        }
    }

    /// What the model is asked in the case with this name.
    pub(super) fn text<'e>(self, evals: &'e SkillEvals, id: &str) -> Option<&'e str> {
        match self {
            EvalKind::Trigger => {
                evals.triggers.iter().find(|case| case.id == id).map(|case| case.query.as_str())
            }
            EvalKind::Task | EvalKind::Baseline => {
                evals.tasks.iter().find(|case| case.id == id).map(|case| case.prompt.as_str())
            }
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

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RunRecord {
    #[serde(flatten)]
    pub key: RunKey,
    /// The digest of the suite.
    pub digest: String,
    /// Whether it passed; `None`: it was not judged.
    pub passed: Option<bool>,
    /// The assertions.
    pub expectations: Vec<Expectation>,
    /// The first skill that was read, in a trigger run.
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

/// An assertion, and whether it holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Expectation {
    pub text: String,
    /// `None`: it was not judged.
    pub passed: Option<bool>,
    pub evidence: String,
}

/// What a process of a run returns.
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

impl std::fmt::Display for RunKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self.kind {
            EvalKind::Trigger => "trigger",
            EvalKind::Task => "task",
            EvalKind::Baseline => "baseline",
        };
        let case = one_line(&self.case, limits::SUMMARY_CHARS);
        write!(f, "{}, {kind} {case}, run {}", self.skill, self.run)
    }
}

impl RunRecord {
    /// Why the run failed or was not judged: the first reason.
    pub(super) fn failure(&self) -> String {
        if self.passed.is_none() {
            let open = self.expectations.iter().find(|it| it.passed.is_none());
            return open.map_or("it has no assertions".into(), |it| it.evidence.clone());
        }
        let failed = self.expectations.iter().find(|it| it.passed == Some(false));
        match (&self.error, failed) {
            (Some(error), _) => error.clone(),
            (None, Some(Expectation { text, evidence, .. })) => {
                format!("not met: {text} ({evidence})")
            }
            (None, None) => match &self.first_skill {
                Some(skill) => format!("the model read `{skill}`"),
                None => "the model read no skill".into(),
            },
        }
    }
}
