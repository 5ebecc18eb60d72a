//! `report.html`: one page without scripts and without anything from elsewhere.

use std::fmt::Write as _;

use super::record::EvalKind;
use super::score::{Rate, ScoreRow, SkillScore, percent};
use super::{Evaluation, Suite};
use base::limits;
use base::text::{counted, one_line, printable};
use host::clock::LocalTime;

/// Everything before the content.
const HEAD: &str = include_str!("report_head.html");
/// The head of the table.
const COLUMNS: &str = "<table><thead><tr><th>Skill</th><th>Kind</th><th>Passed</th><th>Rate</th><th></th>\
                       <th>Tokens</th><th>Seconds</th><th></th></tr></thead><tbody>\n";

/// The page.
pub(super) fn page(evaluation: &Evaluation<'_>, scores: &[SkillScore]) -> String {
    let mut page = HEAD.to_string();
    let _ = writeln!(
        page,
        "<h1>Skills with {}</h1><p class=\"about\">{} · rates of runs with their 95 % intervals, which treat \
         the runs of a case as independent of each other</p>",
        escaped(&evaluation.model),
        escaped(&LocalTime::now().stamp)
    );
    page += COLUMNS;
    for score in scores {
        let name = escaped(&score.name);
        for ScoreRow { kind, passed, rate, tokens, seconds, note } in score.rows() {
            let value = rate.value.map_or("not judged".into(), percent);
            let bar = bar(rate);
            let _ = writeln!(
                page,
                "<tr><td>{name}</td><td>{kind}</td><td>{passed}</td><td class=\"n\">{value}</td><td>{bar}</td>\
                 <td class=\"n\">{tokens}</td><td class=\"n\">{seconds}</td><td>{note}</td></tr>"
            );
        }
    }
    page += "</tbody></table>\n";
    for suite in &evaluation.suites {
        failures(evaluation, suite, &mut page);
    }
    page + "</main></body></html>\n"
}

/// The interval of a rate, drawn.
fn bar(rate: &Rate) -> String {
    let (Some(value), Some([low, high])) = (rate.value, rate.interval) else {
        return String::new();
    };
    format!(
        "<span class=\"bar\" title=\"{} to {}\"><i style=\"left:{:.1}%;width:{:.1}%\"></i><b style=\"left:{:.1}%\"></b></span>",
        percent(low),
        percent(high),
        100.0 * low,
        100.0 * (high - low),
        100.0 * value
    )
}

/// The runs of a skill that failed or were not judged, by case.
fn failures(evaluation: &Evaluation<'_>, suite: &Suite, page: &mut String) {
    let runs = EvalKind::ALL.into_iter().flat_map(|kind| {
        let prompts = suite.cases(kind).map(|case| (case.id.as_str(), case.prompt.as_str()));
        let prompts: Vec<(&str, &str)> = prompts.collect();
        let records = evaluation.records(suite, kind).into_iter();
        records.map(move |record| {
            let prompt = prompts.iter().find(|(id, _)| *id == record.key.case);
            (record, prompt.map_or("", |(_, prompt)| prompt))
        })
    });
    let runs: Vec<_> = runs.filter(|(record, _)| record.passed != Some(true)).collect();
    if runs.is_empty() {
        return;
    }
    let count = counted(runs.len(), "run");
    let _ = writeln!(page, "<h2>{}: {count} that did not pass</h2>", escaped(&suite.label));
    for (record, prompt) in runs {
        let (class, state) = mark(record.passed);
        let _ = writeln!(
            page,
            "<details><summary><em class=\"{class}\">{state}</em> {} <q>{}</q> — {}</summary><dl><dt>Prompt</dt>\
             <dd><pre>{}</pre></dd>",
            escaped(&record.key.to_string()),
            escaped(&one_line(prompt, limits::SUMMARY_CHARS)),
            escaped(&record.reason()),
            escaped(prompt),
        );
        for it in &record.expectations {
            let (_, state) = mark(it.passed);
            let (text, evidence) = (escaped(&it.text), escaped(&it.evidence));
            let _ = writeln!(page, "<dt>{state}</dt><dd>{text}<br><small>{evidence}</small></dd>");
        }
        let answer = escaped(&record.answer);
        let _ = writeln!(page, "<dt>Answer</dt><dd><pre>{answer}</pre></dd></dl></details>");
    }
}

/// The class and the word of a verdict.
fn mark(passed: Option<bool>) -> (&'static str, &'static str) {
    match passed {
        Some(true) => ("", "passed"),
        Some(false) => ("bad", "failed"),
        None => ("open", "not judged"),
    }
}

/// A text for HTML and XML: no markup, no control characters.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            // Not characters of XML.
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
