//! What is told: one line a goal, as a table for people and as JSON for programs.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::baseline::Baseline;

/// In bytes.
pub(crate) const KIBIBYTE: f64 = 1024.0;
/// In bytes.
pub(crate) const MEBIBYTE: f64 = 1024.0 * KIBIBYTE;

/// What a figure counts.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Unit {
    /// Milliseconds.
    Milliseconds,
    /// Bytes, told in units of 1024 × 1024.
    Mebibytes,
    /// Bytes, told as they are.
    Bytes,
    /// Things.
    Count,
    /// 1: it works; 0: it does not.
    Works,
}

/// One figure, and what it is to be.
pub(crate) struct Line {
    /// The word that chooses it.
    pub group: &'static str,
    /// What was done, and what of it was measured.
    pub name: &'static str,
    unit: Unit,
    ours: Option<f64>,
    /// The median of another contender.
    other: Option<(&'static str, f64)>,
    /// The median of ours divided by the other's, turn by turn.
    ratio: Option<f64>,
    most: Option<f64>,
    most_ratio: Option<f64>,
    /// The figure without a ratio is of another kind than the baseline's.
    is_only_a_ratio: bool,
    /// Why something of it was not measured.
    lacking: Option<String>,
}

/// Whether a goal is reached.
#[derive(Clone, PartialEq)]
pub(crate) enum Verdict {
    /// All that was asked of it.
    Reached,
    /// Not all.
    Missed,
    /// No goal; told because people compare it.
    Told,
    /// Why it is not known.
    NotMeasured(String),
}

impl Line {
    /// A figure without a goal, or why it could not be taken here.
    pub(crate) fn new(
        group: &'static str,
        name: &'static str,
        unit: Unit,
        ours: Result<f64, String>,
    ) -> Line {
        Line {
            group,
            name,
            unit,
            other: None,
            ratio: None,
            most: None,
            most_ratio: None,
            is_only_a_ratio: false,
            ours: ours.as_ref().ok().copied(),
            lacking: ours.err(),
        }
    }

    /// There is nothing to compare it with, for this reason.
    pub(crate) fn alone(mut self, why: &str) -> Line {
        self.lacking = Some(why.into());
        self
    }

    /// What lasts of it is how it compares, or nothing.
    pub(crate) fn by_ratio(mut self) -> Line {
        self.is_only_a_ratio = true;
        self
    }

    /// Compares it.
    pub(crate) fn against(mut self, name: &'static str, value: f64, ratio: f64) -> Line {
        self.other = Some((name, value));
        self.ratio = Some(ratio);
        self
    }

    /// The goal of the figure itself.
    pub(crate) fn at_most(mut self, most: f64) -> Line {
        self.most = Some(most);
        self
    }

    /// The goal of the ratio.
    pub(crate) fn at_most_ratio(mut self, most: f64) -> Line {
        self.most_ratio = Some(most);
        self
    }

    /// How the baseline knows it.
    pub(crate) fn key(&self) -> String {
        format!("{}: {}", self.group, self.name)
    }

    /// What can be compared with another day and another machine: a ratio, or something
    /// counted; never a time.
    pub(crate) fn lasting(&self) -> Option<f64> {
        match self.unit {
            _ if self.ratio.is_some() => self.ratio,
            Unit::Milliseconds | Unit::Works => None,
            _ if self.is_only_a_ratio => None,
            Unit::Mebibytes | Unit::Bytes | Unit::Count => self.ours,
        }
    }

    /// Whether a baseline would lack it: whether the binary works is not in one at all.
    pub(crate) fn is_lacking(&self) -> bool {
        self.unit != Unit::Works && self.lacking.is_some()
    }

    /// Whether it is to be anything.
    pub(crate) fn has_goal(&self) -> bool {
        self.most.or(self.most_ratio).is_some() || self.unit == Unit::Works
    }

    /// Whether the goal is reached.
    pub(crate) fn verdict(&self) -> Verdict {
        let misses = |value: Option<f64>, most: Option<f64>| matches!((value, most), (Some(value), Some(most)) if value > most);
        if misses(self.ours, self.most)
            || misses(self.ratio, self.most_ratio)
            || (self.unit == Unit::Works && self.ours == Some(0.0))
        {
            return Verdict::Missed;
        }
        match &self.lacking {
            Some(why) => Verdict::NotMeasured(why.clone()),
            None if self.has_goal() => Verdict::Reached,
            None => Verdict::Told,
        }
    }

    fn goal(&self) -> String {
        let most = self.most.map(|most| format!("≤ {}", self.unit.bound(most)));
        let ratio = self.most_ratio.map(|most| format!("≤ {most} ×"));
        let works = (self.unit == Unit::Works).then(|| "yes".to_string());
        let goals: Vec<String> = [most, ratio, works].into_iter().flatten().collect();
        goals.join(", ")
    }

    fn cells(&self, baseline: &Baseline) -> [String; 7] {
        let other = self.other.map(|(name, value)| format!("{name} {}", self.unit.told(value)));
        let verdict = match self.verdict() {
            Verdict::Reached => "reached".into(),
            Verdict::Missed => "MISSED".into(),
            Verdict::Told => String::new(),
            Verdict::NotMeasured(why) => format!("not measured: {why}"),
        };
        [
            self.key(),
            self.goal(),
            self.ours.map(|ours| self.unit.told(ours)).unwrap_or_default(),
            other.unwrap_or_default(),
            self.ratio.map(|ratio| format!("{ratio:.2} ×")).unwrap_or_default(),
            verdict,
            baseline.change(self).unwrap_or_default(),
        ]
    }

    fn json(&self, baseline: &Baseline) -> Value {
        let verdict = match self.verdict() {
            Verdict::Reached => json!("reached"),
            Verdict::Missed => json!("missed"),
            Verdict::Told => Value::Null,
            Verdict::NotMeasured(why) => json!({"not_measured": why}),
        };
        json!({
            "row": self.group,
            "name": self.name,
            "unit": self.unit.word(),
            "ours": self.ours,
            "other": self.other.map(|(name, _)| name),
            "other_value": self.other.map(|(_, value)| value),
            "ratio": self.ratio,
            "goal": self.most,
            "goal_ratio": self.most_ratio,
            "verdict": verdict,
            "baseline": baseline.value(self),
        })
    }
}

impl Unit {
    fn word(self) -> &'static str {
        match self {
            Unit::Milliseconds => "ms",
            Unit::Mebibytes | Unit::Bytes => "bytes",
            Unit::Count => "count",
            Unit::Works => "works",
        }
    }

    fn told(self, value: f64) -> String {
        match self {
            Unit::Milliseconds if value < 10.0 => format!("{value:.2} ms"),
            Unit::Milliseconds => format!("{value:.1} ms"),
            Unit::Mebibytes => format!("{:.2} MiB", value / MEBIBYTE),
            Unit::Bytes => format!("{} bytes", thousands(value)),
            Unit::Count => format!("{value}"),
            Unit::Works => if value > 0.0 { "yes" } else { "no" }.into(),
        }
    }

    fn bound(self, value: f64) -> String {
        match self {
            Unit::Milliseconds => format!("{value} ms"),
            Unit::Mebibytes => format!("{} MiB", value / MEBIBYTE),
            _ => self.told(value),
        }
    }
}

fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut told = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            told.push(',');
        }
        told.push(digit);
    }
    told
}

const TITLES: [&str; 7] = ["what", "goal", "ours", "other", "ratio", "verdict", "since baseline"];

/// The table, which reads well as it is and is a table of Markdown besides.
pub(crate) fn table(lines: &[Line], baseline: &Baseline) -> String {
    let rows: Vec<[String; 7]> = lines.iter().map(|line| line.cells(baseline)).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0).max(TITLES[column].len())
    };
    let widths: Vec<usize> = (0..TITLES.len()).map(width).collect();
    let mut text = String::new();
    let mut add = |cells: &mut dyn Iterator<Item = &str>| {
        for (cell, width) in cells.zip(&widths) {
            let _ = write!(text, "| {cell:width$} ");
        }
        text += "|\n";
    };
    add(&mut TITLES.into_iter());
    let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    add(&mut rules.iter().map(String::as_str));
    for row in &rows {
        add(&mut row.iter().map(String::as_str));
    }
    text
}

/// The same for programs: whole figures, times in milliseconds, sizes in bytes.
pub(crate) fn json(lines: &[Line], baseline: &Baseline, about: &Value) -> Value {
    let rows: Vec<Value> = lines.iter().map(|line| line.json(baseline)).collect();
    json!({"about": about, "baseline": baseline.about(), "rows": rows})
}
