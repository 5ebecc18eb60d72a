//! `report.html`: one page without scripts and without anything from elsewhere.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Suite;
use super::record::{EvalKind, RunKey, RunRecord};
use super::score::{Rate, SkillScore};
use super::table::{percent, points, recall_and_precision, rounded};
use crate::limits;
use crate::text::{counted, group_digits, one_line, printable};
use crate::world::clock::LocalTime;

/// Everything before the content.
const HEAD: &str = include_str!("report_head.html");

/// The page.
pub(super) fn page(
    model: &str,
    suites: &[Suite],
    scores: &[SkillScore],
    records: &BTreeMap<RunKey, RunRecord>,
) -> String {
    let mut page = HEAD.to_string();
    let _ = writeln!(
        page,
        "<h1>Skills with {}</h1><p class=\"about\">{} · rates of runs with their 95 % intervals, which treat \
         the runs of a case as independent of each other</p>",
        escaped(model),
        escaped(&LocalTime::now().stamp)
    );
    page += "<table><thead><tr><th>Skill</th><th>Kind</th><th>Passed</th><th>Rate</th><th></th><th>Tokens</th>\
             <th>Seconds</th><th></th></tr></thead><tbody>\n";
    for score in scores {
        rows(score, &mut page);
    }
    page += "</tbody></table>\n";
    for suite in suites {
        failures(suite, records, &mut page);
    }
    page + "</main></body></html>\n"
}

fn rows(score: &SkillScore, page: &mut String) {
    let name = escaped(&score.name);
    if let Some(triggers) = &score.triggers {
        let parts = recall_and_precision(triggers);
        row(&name, "triggers", &triggers.rate, 0, [String::new(), String::new(), parts], page);
    }
    let kinds = [("tasks", &score.tasks), ("without the skill", &score.baseline)];
    for (kind, tasks) in kinds.into_iter().filter_map(|(kind, it)| Some((kind, it.as_ref()?))) {
        let note = score.difference.filter(|_| kind == "tasks").map(points).unwrap_or_default();
        let tokens = tasks.tokens.map(|it| group_digits(rounded(it))).unwrap_or_default();
        let seconds = tasks.seconds.map(|it| format!("{it:.1}")).unwrap_or_default();
        row(&name, kind, &tasks.rate, tasks.not_judged, [tokens, seconds, note], page);
    }
}

fn row(
    name: &str,
    kind: &str,
    rate: &Rate,
    not_judged: usize,
    [tokens, seconds, note]: [String; 3],
    page: &mut String,
) {
    let passed = match not_judged {
        0 => format!("{} of {}", rate.passed, rate.runs),
        some => format!("{} of {}, {some} not judged", rate.passed, rate.runs - some),
    };
    let bar = match (rate.value, rate.interval) {
        (Some(rate), Some([low, high])) => format!(
            "<span class=\"bar\" title=\"{} to {}\"><i style=\"left:{:.1}%;width:{:.1}%\"></i><b style=\"left:{:.1}%\"></b></span>",
            percent(low),
            percent(high),
            100.0 * low,
            100.0 * (high - low),
            100.0 * rate
        ),
        _ => String::new(),
    };
    let percent = rate.value.map_or("not judged".into(), percent);
    let _ = writeln!(
        page,
        "<tr><td>{name}</td><td>{kind}</td><td>{passed}</td><td class=\"n\">{percent}</td><td>{bar}</td>\
         <td class=\"n\">{tokens}</td><td class=\"n\">{seconds}</td><td>{note}</td></tr>"
    );
}

/// The runs of a skill that failed or were not judged, by case.
fn failures(suite: &Suite, records: &BTreeMap<RunKey, RunRecord>, page: &mut String) {
    let of_suite = records.values().filter(|record| {
        let ids = || record.key.kind.ids(&suite.evals);
        record.key.skill == suite.label
            && record.key.kind != EvalKind::Baseline
            && record.passed != Some(true)
            && ids().any(|id| id == record.key.case)
    });
    let found: Vec<&RunRecord> = of_suite.collect();
    if found.is_empty() {
        return;
    }
    let runs = counted(found.len(), "run");
    let _ = writeln!(page, "<h2>{}: {runs} that did not pass</h2>", escaped(&suite.label));
    for record in found {
        let prompt = record.key.kind.text(&suite.evals, &record.key.case);
        let state = if record.passed.is_none() { "not judged" } else { "failed" };
        let _ = writeln!(
            page,
            "<details><summary><em class=\"{}\">{state}</em> {} <q>{}</q> — {}</summary><dl><dt>Prompt</dt><dd><pre>{}</pre></dd>",
            if record.passed.is_none() { "open" } else { "bad" },
            escaped(&record.key.to_string()),
            escaped(&one_line(prompt.unwrap_or_default(), limits::SUMMARY_CHARS)),
            escaped(&record.failure()),
            escaped(prompt.unwrap_or_default()),
        );
        for it in &record.expectations {
            let mark = match it.passed {
                Some(true) => "passed",
                Some(false) => "failed",
                None => "not judged",
            };
            let (text, evidence) = (escaped(&it.text), escaped(&it.evidence));
            let _ = writeln!(page, "<dt>{mark}</dt><dd>{text}<br><small>{evidence}</small></dd>");
        }
        let _ = writeln!(
            page,
            "<dt>Answer</dt><dd><pre>{}</pre></dd></dl></details>",
            escaped(&record.answer)
        );
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
