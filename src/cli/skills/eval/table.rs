//! The table of results for people.

use super::score::{Rate, SkillScore, TaskScore, TriggerScore};
use crate::text::{self, group_digits};

const HEADINGS: [&str; 7] =
    ["skill", "kind", "passed", "rate", "95 % interval", "tokens", "seconds"];
const NOTE: &str = "The intervals treat the runs of a case as independent of each other, which they are not quite.";

/// The table, with a note about its intervals.
pub(super) fn lines(scores: &[SkillScore]) -> String {
    let mut rows = vec![HEADINGS.map(String::from).to_vec()];
    let mut notes = Vec::new();
    for score in scores {
        let mut name = score.name.as_str();
        if let Some(triggers) = &score.triggers {
            rows.push(rate_cells(name, "triggers", &triggers.rate, 0));
            notes.push(format!("{}: {}", score.name, recall_and_precision(triggers)));
            name = "";
        }
        let kinds = [("tasks", &score.tasks), ("baseline", &score.baseline)];
        for (kind, tasks) in kinds.into_iter().filter_map(|(kind, it)| Some((kind, it.as_ref()?))) {
            let mut row = rate_cells(name, kind, &tasks.rate, tasks.not_judged);
            row.extend(cost_cells(tasks));
            rows.push(row);
            name = "";
        }
        if let Some(difference) = score.difference {
            notes.push(format!("{}: {}", score.name, points(difference)));
        }
    }
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| text::columns(cell)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut table = String::new();
    for row in &rows {
        let cells = row.iter().enumerate().map(|(column, cell)| {
            let padding = widths[column] - text::columns(cell);
            format!("{cell}{:padding$}", "")
        });
        table += cells.collect::<Vec<_>>().join("  ").trim_end();
        table.push('\n');
    }
    notes.retain(|note| !note.ends_with(": "));
    notes.push(NOTE.into());
    table + &notes.join("\n") + "\n"
}

fn rate_cells(name: &str, kind: &str, rate: &Rate, not_judged: usize) -> Vec<String> {
    let interval = rate
        .interval
        .map(|[low, high]| format!("{}–{}", percent(low).trim_end_matches(" %"), percent(high)));
    vec![
        text::shortened(name, crate::limits::SUMMARY_CHARS).into_owned(),
        kind.to_string(),
        match not_judged {
            0 => format!("{}/{}", rate.passed, rate.runs),
            some => format!("{}/{}, {some} not judged", rate.passed, rate.runs - some),
        },
        rate.value.map(percent).unwrap_or_default(),
        interval.unwrap_or_default(),
    ]
}

fn cost_cells(tasks: &TaskScore) -> [String; 2] {
    [
        tasks.tokens.map(|it| group_digits(rounded(it))).unwrap_or_default(),
        tasks.seconds.map(|it| format!("{it:.1}")).unwrap_or_default(),
    ]
}

/// What the skill changes.
pub(super) fn points(difference: f64) -> String {
    format!(
        "{:+.0} points with the skill, in the cases judged with and without it",
        100.0 * difference
    )
}

/// How well the skill is recognized; empty if nothing is known.
pub(super) fn recall_and_precision(triggers: &TriggerScore) -> String {
    let parts = [("recall", triggers.recall), ("precision", triggers.precision)].into_iter();
    let parts = parts.filter_map(|(what, value)| Some(format!("{what} {}", percent(value?))));
    parts.collect::<Vec<_>>().join(", ")
}

/// A part of 1 in percent.
pub(super) fn percent(part: f64) -> String {
    format!("{:.0} %", 100.0 * part)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "tokens are positive")]
pub(super) fn rounded(value: f64) -> u64 {
    value.round() as u64
}
