//! The table of results for people.

use super::score::{Rate, ScoreRow, SkillScore, percent};
use base::limits;
use base::text;

const HEADINGS: [&str; 7] =
    ["skill", "kind", "passed", "rate", "95 % interval", "tokens", "seconds"];
const NOTE: &str = "The intervals treat the runs of a case as independent of each other, which they are not quite.";

/// The table, with notes below it.
pub(super) fn lines(scores: &[SkillScore]) -> String {
    let mut rows = vec![HEADINGS.map(String::from)];
    let mut notes = Vec::new();
    for score in scores {
        let mut name = text::shortened(&score.name, limits::SUMMARY_CHARS).into_owned();
        for ScoreRow { kind, passed, rate, tokens, seconds, note } in score.rows() {
            if !note.is_empty() {
                notes.push(format!("{}, {kind}: {note}", score.name));
            }
            let value = rate.value.map(percent).unwrap_or_default();
            rows.push([name, kind.into(), passed, value, interval(rate), tokens, seconds]);
            name = String::new();
        }
    }
    notes.push(NOTE.into());
    let width = |column: usize| rows.iter().map(|row| text::columns(&row[column])).max();
    let widths: Vec<usize> = (0..HEADINGS.len()).map(|column| width(column).unwrap_or(0)).collect();
    let mut table = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| {
            let padding = width - text::columns(cell);
            format!("{cell}{:padding$}", "")
        });
        table += cells.collect::<Vec<_>>().join("  ").trim_end();
        table.push('\n');
    }
    table + &notes.join("\n")
}

fn interval(rate: &Rate) -> String {
    let [low, high] = match rate.interval {
        Some(interval) => interval.map(percent),
        None => return String::new(),
    };
    format!("{}–{high}", low.trim_end_matches(" %"))
}
