//! The report: one line per goal, as a table for users and as JSON for programs.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::baseline::Baseline;

/// One MiB in bytes.
pub(crate) const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// The unit of a value.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Unit {
    /// Milliseconds.
    Milliseconds,
    /// Bytes, shown in units of 1024 × 1024.
    Mebibytes,
    /// Bytes.
    Bytes,
    /// A count.
    Count,
    /// 1: it works; 0: it does not.
    Works,
}

/// A measured value and its goal.
pub(crate) struct Line {
    /// The name of its group of lines; `row` in the JSON report.
    pub group: &'static str,
    /// The action and the measured property.
    pub name: &'static str,
    unit: Unit,
    ours: Option<f64>,
    /// The name and the median of another contender.
    other: Option<(&'static str, f64)>,
    /// The median over the turns of the ratio to the other contender.
    ratio: Option<f64>,
    most: Option<f64>,
    most_ratio: Option<f64>,
    /// Whether only the ratio is comparable with the baseline.
    is_only_ratio_comparable: bool,
    /// The reason why a part was not measured.
    not_measured: Option<String>,
}

/// The verdict on a goal.
#[derive(Clone, PartialEq)]
pub(crate) enum Verdict {
    /// The goal is reached.
    Reached,
    /// The goal is missed.
    Missed,
    /// There is no goal; the value is only shown.
    NoGoal,
    /// The value is unknown for this reason.
    NotMeasured(String),
}

impl Line {
    /// A value without a goal, or the reason why it was not measured.
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
            is_only_ratio_comparable: false,
            ours: ours.as_ref().ok().copied(),
            not_measured: ours.err(),
        }
    }

    /// Records the reason why there is no comparison.
    pub(crate) fn without_comparison(mut self, why: &str) -> Line {
        self.not_measured = Some(why.into());
        self
    }

    /// Marks that only the ratio is comparable with the baseline.
    pub(crate) fn with_comparable_ratio_only(mut self) -> Line {
        self.is_only_ratio_comparable = true;
        self
    }

    /// Adds the comparison with another contender.
    pub(crate) fn against(mut self, name: &'static str, value: f64, ratio: f64) -> Line {
        self.other = Some((name, value));
        self.ratio = Some(ratio);
        self
    }

    /// Sets the goal of the value.
    pub(crate) fn at_most(mut self, most: f64) -> Line {
        self.most = Some(most);
        self
    }

    /// Sets the goal of the ratio.
    pub(crate) fn at_most_ratio(mut self, most: f64) -> Line {
        self.most_ratio = Some(most);
        self
    }

    /// The key in the baseline.
    pub(crate) fn key(&self) -> String {
        format!("{}: {}", self.group, self.name)
    }

    /// The value that is comparable across machines: a ratio, a size or a count, never a time.
    pub(crate) fn comparable_value(&self) -> Option<f64> {
        match self.unit {
            _ if self.ratio.is_some() => self.ratio,
            Unit::Milliseconds | Unit::Works => None,
            _ if self.is_only_ratio_comparable => None,
            Unit::Mebibytes | Unit::Bytes | Unit::Count => self.ours,
        }
    }

    /// Whether a baseline needs this value and it was not measured. [`Unit::Works`] is not
    /// part of a baseline.
    pub(crate) fn is_missing_for_baseline(&self) -> bool {
        self.unit != Unit::Works && self.not_measured.is_some()
    }

    /// Whether there is a goal.
    pub(crate) fn has_goal(&self) -> bool {
        self.most.or(self.most_ratio).is_some() || self.unit == Unit::Works
    }

    /// The verdict on the goal.
    pub(crate) fn verdict(&self) -> Verdict {
        let misses = |value: Option<f64>, most: Option<f64>| matches!((value, most), (Some(value), Some(most)) if value > most);
        if misses(self.ours, self.most)
            || misses(self.ratio, self.most_ratio)
            || (self.unit == Unit::Works && self.ours == Some(0.0))
        {
            return Verdict::Missed;
        }
        match &self.not_measured {
            Some(why) => Verdict::NotMeasured(why.clone()),
            None if self.has_goal() => Verdict::Reached,
            None => Verdict::NoGoal,
        }
    }

    fn goal(&self) -> String {
        let most = self.most.map(|most| format!("≤ {}", self.unit.format_goal(most)));
        let ratio = self.most_ratio.map(|most| format!("≤ {most} ×"));
        let works = (self.unit == Unit::Works).then(|| "yes".to_string());
        let goals: Vec<String> = [most, ratio, works].into_iter().flatten().collect();
        goals.join(", ")
    }

    fn cells(&self, baseline: &Baseline) -> [String; 7] {
        let other = self.other.map(|(name, value)| format!("{name} {}", self.unit.format(value)));
        let verdict = match self.verdict() {
            Verdict::Reached => "reached".into(),
            Verdict::Missed => "MISSED".into(),
            Verdict::NoGoal => String::new(),
            Verdict::NotMeasured(why) => format!("not measured: {why}"),
        };
        [
            self.key(),
            self.goal(),
            self.ours.map(|ours| self.unit.format(ours)).unwrap_or_default(),
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
            Verdict::NoGoal => Value::Null,
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

    fn format(self, value: f64) -> String {
        match self {
            Unit::Milliseconds if value < 10.0 => format!("{value:.2} ms"),
            Unit::Milliseconds => format!("{value:.1} ms"),
            Unit::Mebibytes => format!("{:.2} MiB", value / MEBIBYTE),
            Unit::Bytes => format!("{} bytes", thousands(value)),
            Unit::Count => format!("{value}"),
            Unit::Works => if value > 0.0 { "yes" } else { "no" }.into(),
        }
    }

    fn format_goal(self, value: f64) -> String {
        match self {
            Unit::Milliseconds => format!("{value} ms"),
            Unit::Mebibytes => format!("{} MiB", value / MEBIBYTE),
            _ => self.format(value),
        }
    }
}

fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

const TITLES: [&str; 7] = ["what", "goal", "ours", "other", "ratio", "verdict", "since baseline"];

/// The table, readable as text and valid Markdown.
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

/// The report as JSON: exact values, times in milliseconds, sizes in bytes.
pub(crate) fn json(lines: &[Line], baseline: &Baseline, about: &Value) -> Value {
    let rows: Vec<Value> = lines.iter().map(|line| line.json(baseline)).collect();
    json!({"about": about, "baseline": baseline.about(), "rows": rows})
}
