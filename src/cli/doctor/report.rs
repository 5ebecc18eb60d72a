//! The report of `doctor`, as text or as one JSON object.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::cli::help::wrap;
use crate::ui::{Output, Tone};
use base::error::{Error, ErrorKind, Result};
use base::event::Event;
use base::text::{counted, printable};

/// Columns of the status mark, with the space after it.
const MARK_COLUMNS: usize = 9;

/// The status of a finding, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum CheckStatus {
    /// Not checked, or unknown.
    Skipped,
    /// No problem.
    Ok,
    /// Works, but could be better.
    Warning,
    /// Questions cannot be answered.
    Failure,
}

impl CheckStatus {
    /// The word in front of a finding, and its colour.
    fn mark(self) -> (&'static str, Tone) {
        match self {
            CheckStatus::Skipped => ("skipped", Tone::Neutral),
            CheckStatus::Ok => ("ok", Tone::Good),
            CheckStatus::Warning => ("warning", Tone::Warning),
            CheckStatus::Failure => ("failure", Tone::Bad),
        }
    }
}

/// One result of a check.
#[derive(Clone, Debug, Serialize)]
struct Finding {
    status: CheckStatus,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
    /// The kind of a failure, which decides the exit status.
    #[serde(skip)]
    kind: Option<ErrorKind>,
}

/// One check with its findings. The first finding is the headline.
#[derive(Clone, Debug)]
pub(super) struct DoctorCheck {
    name: &'static str,
    findings: Vec<Finding>,
    /// Additional lines below the headline.
    lines: Vec<String>,
    details: Map<String, Value>,
}

impl Finding {
    fn new(status: CheckStatus, message: impl Into<String>) -> Finding {
        Finding { status, message: message.into(), fix: None, kind: None }
    }

    fn warning(message: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding { fix: Some(fix.into()), ..Finding::new(CheckStatus::Warning, message) }
    }

    fn failure(kind: ErrorKind, message: impl Into<String>, fix: impl Into<String>) -> Finding {
        let fix = Some(fix.into());
        Finding { fix, kind: Some(kind), ..Finding::new(CheckStatus::Failure, message) }
    }
}

impl DoctorCheck {
    fn new(name: &'static str, finding: Finding) -> DoctorCheck {
        DoctorCheck { name, findings: vec![finding], lines: Vec::new(), details: Map::new() }
    }

    /// A check without problems.
    pub(super) fn ok(name: &'static str, message: impl Into<String>) -> DoctorCheck {
        DoctorCheck::new(name, Finding::new(CheckStatus::Ok, message))
    }

    /// A check that was not made, with the reason.
    pub(super) fn skipped(name: &'static str, reason: impl Into<String>) -> DoctorCheck {
        DoctorCheck::new(name, Finding::new(CheckStatus::Skipped, reason))
    }

    /// A check with a warning.
    pub(super) fn warning(
        name: &'static str,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> DoctorCheck {
        DoctorCheck::new(name, Finding::warning(message, fix))
    }

    /// A failed check.
    pub(super) fn failure(
        name: &'static str,
        kind: ErrorKind,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> DoctorCheck {
        DoctorCheck::new(name, Finding::failure(kind, message, fix))
    }

    /// A failed check, with message and remedy of this error.
    pub(super) fn from_error(name: &'static str, error: &Error) -> DoctorCheck {
        DoctorCheck::failure(name, error.kind(), error.message(), error_fix(error))
    }

    /// Adds a warning.
    pub(super) fn add_warning(&mut self, message: impl Into<String>, fix: impl Into<String>) {
        self.findings.push(Finding::warning(message, fix));
    }

    /// Adds a failure.
    pub(super) fn add_failure(
        &mut self,
        kind: ErrorKind,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.findings.push(Finding::failure(kind, message, fix));
    }

    /// Adds a line below the headline.
    pub(super) fn add_line(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    /// Adds a detail to the JSON output.
    #[must_use]
    pub(super) fn with_detail(mut self, name: &str, value: impl Into<Value>) -> DoctorCheck {
        self.details.insert(name.into(), value.into());
        self
    }

    fn show(&self, output: &mut Output) {
        // Keep failures together at the top; the lines follow them.
        let lines_after = match self.findings.first() {
            Some(first) if first.status == CheckStatus::Failure => self.findings.len() - 1,
            _ => 0,
        };
        for (index, finding) in self.findings.iter().enumerate() {
            let below: &[String] = if index == lines_after { &self.lines } else { &[] };
            show_finding(self.name, finding, below, output);
        }
    }

    fn to_json(&self) -> CheckJson<'_> {
        let messages = self.findings.iter().map(|finding| finding.message.as_str());
        let fixes = self.findings.iter().filter_map(|finding| finding.fix.as_deref());
        let fixes: Vec<&str> = fixes.collect();
        let mut details = self.details.clone();
        if self.findings.len() > 1 {
            details.insert("findings".into(), json!(self.findings));
        }
        let statuses = self.findings.iter().map(|finding| finding.status);
        CheckJson {
            name: self.name,
            status: statuses.max().unwrap_or(CheckStatus::Skipped),
            message: messages.collect::<Vec<_>>().join("; "),
            fix: (!fixes.is_empty()).then(|| fixes.join("; ")),
            details,
        }
    }
}

/// The remedy for an error.
fn error_fix(error: &Error) -> &str {
    error.hint().unwrap_or(match error.kind() {
        ErrorKind::Temporary => "try again later",
        ErrorKind::Limit => "allow more with --timeout",
        _ => "see the documentation of the endpoint for this error",
    })
}

/// A check in JSON output, with its fields in the documented order.
#[derive(Serialize)]
struct CheckJson<'c> {
    name: &'c str,
    status: CheckStatus,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    details: Map<String, Value>,
}

/// The report in JSON output.
#[derive(Serialize)]
struct ReportJson<'c> {
    #[serde(rename = "type")]
    kind: &'static str,
    status: &'static str,
    exit_code: u8,
    checks: Vec<CheckJson<'c>>,
}

/// Prints a finding after the name of its check, with its remedy and these lines below it.
fn show_finding(name: &str, finding: &Finding, below: &[String], output: &mut Output) {
    let mut lines = fold(&format!("{}: {}", name.replace('_', " "), finding.message), "", output);
    for (index, line) in finding.fix.iter().flat_map(|fix| fix.lines()).enumerate() {
        let start = if index == 0 { "fix: " } else { "     " };
        lines.extend(fold(&format!("{start}{line}"), "", output));
    }
    for line in below {
        lines.extend(fold(line, "  ", output));
    }
    let (mark, tone) = finding.status.mark();
    let indent = format!("\n{:MARK_COLUMNS$}", "");
    output.print_marked(&format!("{mark:MARK_COLUMNS$}"), tone, &lines.join(&indent));
}

/// The lines of a text, which may quote a server: on a terminal it is wrapped between words, but
/// not between backquotes, so that commands can be copied.
fn fold(text: &str, indent: &str, output: &Output) -> Vec<String> {
    const UNBROKEN: &str = "\u{a0}";
    let text = printable(text);
    if !output.is_on_terminal() {
        return vec![format!("{indent}{text}")];
    }
    let parts = text.split('`').enumerate().map(|(index, part)| match index % 2 {
        0 => part.to_string(),
        _ => part.replace(' ', UNBROKEN),
    });
    let text = parts.collect::<Vec<_>>().join("`");
    let room = Output::report_columns() - MARK_COLUMNS - indent.len() - 2;
    let lines = wrap(&text, room).into_iter().enumerate();
    let lines = lines.map(|(index, line)| {
        let more = if index == 0 { "" } else { "  " };
        format!("{indent}{more}{}", line.replace(UNBROKEN, " "))
    });
    lines.collect()
}

/// The report. Each check is printed when it is added, unless the report is JSON.
#[derive(Debug)]
pub(super) struct DoctorReport<'o> {
    checks: Vec<DoctorCheck>,
    is_json: bool,
    output: &'o mut Output,
}

impl<'o> DoctorReport<'o> {
    /// An empty report; as JSON it is one object, printed at the end.
    pub(super) fn new(is_json: bool, output: &'o mut Output) -> DoctorReport<'o> {
        DoctorReport { checks: Vec::new(), is_json, output }
    }

    /// Adds a check.
    pub(super) fn add(&mut self, check: DoctorCheck) {
        if !self.is_json {
            check.show(self.output);
        }
        self.checks.push(check);
    }

    /// Adds those of the checks that were not made as skipped, in one line.
    pub(super) fn skip_rest(&mut self, names: &[&'static str], reason: &str) {
        let left = self.left(names);
        self.checks.extend(left.iter().map(|name| DoctorCheck::skipped(name, reason)));
        if !self.is_json && !left.is_empty() {
            let finding = Finding::new(CheckStatus::Skipped, reason);
            show_finding(&left.join(", "), &finding, &[], self.output);
        }
    }

    /// The names of the checks that were not made.
    fn left(&self, names: &[&'static str]) -> Vec<&'static str> {
        let is_made = |name: &str| self.checks.iter().any(|check| check.name == name);
        names.iter().copied().filter(|name| !is_made(name)).collect()
    }

    /// Adds a failure, detected by a later check, to an earlier one.
    pub(super) fn add_failure_to(&mut self, name: &str, error: &Error) {
        let Some(check) = self.checks.iter_mut().find(|check| check.name == name) else {
            return;
        };
        check.add_failure(error.kind(), error.message(), error_fix(error));
        if !self.is_json
            && let Some(finding) = check.findings.last()
        {
            show_finding(check.name, finding, &[], self.output);
        }
    }

    /// Shows requests and retries, but not the text of the model.
    pub(super) fn show_event(&mut self, event: &Event<'_>) {
        if !matches!(event, Event::Text(_) | Event::Reasoning(_) | Event::MessageEnd { .. }) {
            self.output.show(event);
        }
    }

    /// Shows a note on a terminal.
    pub(super) fn note_on_terminal(&mut self, text: &str) {
        if self.output.is_on_terminal() && !self.is_json {
            self.output.note(text);
        }
    }

    /// Prints the summary and returns the exit status: that of the first failure, or 0.
    pub(super) fn finish(&mut self) -> Result<u8> {
        let status = exit_status(&self.checks);
        if self.is_json {
            self.print_json(status)?;
        } else {
            self.print_folded(&self.summary());
        }
        Ok(status)
    }

    /// Ends the report after an interrupt. `names` are all checks; those not made are skipped.
    pub(super) fn finish_early(&mut self, names: &[&'static str], error: &Error) -> Result<()> {
        if self.is_json {
            self.skip_rest(names, error.message());
            return self.print_json(error.kind().exit_status());
        }
        let (left, all) = (self.left(names).len(), names.len());
        self.print_folded(&format!("{}: {left} of {all} checks were skipped", error.message()));
        Ok(())
    }

    fn print_folded(&mut self, text: &str) {
        for line in fold(text, "", self.output) {
            self.output.print(&line);
        }
    }

    fn print_json(&mut self, status: u8) -> Result<()> {
        let report = ReportJson {
            kind: "doctor",
            status: if status == 0 { "ok" } else { "error" },
            exit_code: status,
            checks: self.checks.iter().map(DoctorCheck::to_json).collect(),
        };
        let failure =
            |error| Error::new(ErrorKind::Io, format!("failed to write the report: {error}"));
        let json = serde_json::to_string(&report).map_err(failure)?;
        self.output.print(&json);
        Ok(())
    }

    fn summary(&self) -> String {
        let count = |status| {
            let findings = self.checks.iter().flat_map(|check| &check.findings);
            findings.filter(|finding| finding.status == status).count()
        };
        let many = |count: usize, what: &str| match count {
            0 => format!("no {what}s"),
            _ => counted(count, what),
        };
        let (failures, warnings) = (count(CheckStatus::Failure), count(CheckStatus::Warning));
        let counts = format!("{}, {}", many(failures, "failure"), many(warnings, "warning"));
        let demo = if exit_status(&self.checks) == ErrorKind::Config.exit_status() {
            "; `skills-runner demo` needs no settings"
        } else {
            ""
        };
        match (failures, warnings) {
            (0, 0) => {
                "everything works; try: skills-runner \"What can you do with your skills?\"".into()
            }
            (0, _) => format!("{counts}: skills-runner works"),
            _ => format!("{counts}: fix the first failure, then run doctor again{demo}"),
        }
    }
}

/// The exit status: that of the first failure, or 0.
fn exit_status(checks: &[DoctorCheck]) -> u8 {
    let mut findings = checks.iter().flat_map(|check| &check.findings);
    match findings.find_map(|finding| finding.kind) {
        None => 0,
        // `doctor` prints no answer that could be cut off.
        Some(ErrorKind::Truncated) => ErrorKind::Endpoint.exit_status(),
        Some(kind) => kind.exit_status(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_failure_decides_the_status() {
        let warning = DoctorCheck::warning("a", "m", "f");
        let refused = DoctorCheck::failure("b", ErrorKind::Auth, "m", "f");
        let missing = DoctorCheck::failure("c", ErrorKind::Config, "m", "f");
        assert_eq!(exit_status(&[]), 0);
        assert_eq!(exit_status(std::slice::from_ref(&warning)), 0);
        assert_eq!(exit_status(&[warning, refused, missing]), 77);
    }

    #[test]
    fn check_with_several_findings_is_one_object() {
        let mut check = DoctorCheck::ok("skills", "2 skills").with_detail("count", 2);
        check.add_warning("`x` is broken", "fix it");
        let json = serde_json::to_value(check.to_json()).unwrap();
        assert_eq!(json["status"], "warning");
        assert_eq!(json["message"], "2 skills; `x` is broken");
        assert_eq!(json["fix"], "fix it");
        assert_eq!(json["details"]["count"], 2);
        assert_eq!(json["details"]["findings"][1]["fix"], "fix it");
    }
}
