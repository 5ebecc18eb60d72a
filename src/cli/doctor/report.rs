//! The report of `doctor`, as text or as one JSON object.

use serde_json::{Map, Value, json};

use crate::cli::doctor::fold::{MARK_COLUMNS, fold};
use crate::error::{Error, ErrorKind, Result};
use crate::world::output::{Output, Tone};

/// The status of a finding, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    fn name(self) -> &'static str {
        match self {
            CheckStatus::Skipped => "skipped",
            CheckStatus::Ok => "ok",
            CheckStatus::Warning => "warning",
            CheckStatus::Failure => "failure",
        }
    }

    fn tone(self) -> Tone {
        match self {
            CheckStatus::Skipped => Tone::Neutral,
            CheckStatus::Ok => Tone::Good,
            CheckStatus::Warning => Tone::Warning,
            CheckStatus::Failure => Tone::Bad,
        }
    }
}

/// One result of a check.
#[derive(Clone, Debug)]
struct Finding {
    status: CheckStatus,
    message: String,
    fix: Option<String>,
    /// The kind of a failure, which decides the exit status.
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

impl DoctorCheck {
    fn new(name: &'static str, finding: Finding) -> DoctorCheck {
        DoctorCheck { name, findings: vec![finding], lines: Vec::new(), details: Map::new() }
    }

    /// A check without problems.
    pub(super) fn ok(name: &'static str, message: impl Into<String>) -> DoctorCheck {
        DoctorCheck::new(name, Finding::plain(CheckStatus::Ok, message.into()))
    }

    /// A check that was not made, with the reason.
    pub(super) fn skipped(name: &'static str, reason: impl Into<String>) -> DoctorCheck {
        DoctorCheck::new(name, Finding::plain(CheckStatus::Skipped, reason.into()))
    }

    /// A check with a warning.
    pub(super) fn warning(
        name: &'static str,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> DoctorCheck {
        DoctorCheck::new(name, Finding::warning(message.into(), fix.into()))
    }

    /// A failed check.
    pub(super) fn failure(
        name: &'static str,
        kind: ErrorKind,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> DoctorCheck {
        DoctorCheck::new(name, Finding::failure(kind, message.into(), fix.into()))
    }

    /// A failed check, with the message of this error.
    pub(super) fn from_error(name: &'static str, error: &Error) -> DoctorCheck {
        DoctorCheck::failure(name, error.kind(), error.message(), error_fix(error))
    }

    /// Adds a warning.
    pub(super) fn add_warning(&mut self, message: impl Into<String>, fix: impl Into<String>) {
        self.findings.push(Finding::warning(message.into(), fix.into()));
    }

    /// Adds a failure.
    pub(super) fn add_failure(
        &mut self,
        kind: ErrorKind,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.findings.push(Finding::failure(kind, message.into(), fix.into()));
    }

    /// Replaces the remedy of the headline.
    #[must_use]
    pub(super) fn with_fix(mut self, fix: impl Into<String>) -> DoctorCheck {
        if let Some(first) = self.findings.first_mut() {
            first.fix = Some(fix.into());
        }
        self
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

    /// The worst status of the findings.
    pub(super) fn status(&self) -> CheckStatus {
        let statuses = self.findings.iter().map(|finding| finding.status);
        statuses.max().unwrap_or(CheckStatus::Skipped)
    }

    fn show(&self, output: &mut Output) {
        // Keep failures together at the top; the lines follow them.
        let lines_after = match self.findings.first() {
            Some(first) if first.status == CheckStatus::Failure => self.findings.len() - 1,
            _ => 0,
        };
        for (index, finding) in self.findings.iter().enumerate() {
            let below: &[String] = if index == lines_after { &self.lines } else { &[] };
            self.show_finding(finding, below, output);
        }
    }

    fn show_finding(&self, finding: &Finding, below: &[String], output: &mut Output) {
        let label = self.name.replace('_', " ");
        let mut lines = fold(&format!("{label}: {}", finding.message), "", output);
        if let Some(fix) = &finding.fix {
            lines.extend(fold(&format!("fix: {fix}"), "", output));
        }
        for line in below {
            lines.extend(fold(line, "  ", output));
        }
        show_marked(finding.status, &lines, output);
    }

    fn to_json(&self) -> CheckJson {
        let joined = |texts: Vec<&str>| texts.join("; ");
        let messages = self.findings.iter().map(|finding| finding.message.as_str());
        let fixes: Vec<&str> =
            self.findings.iter().filter_map(|finding| finding.fix.as_deref()).collect();
        let mut details = self.details.clone();
        if self.findings.len() > 1 {
            let findings = self.findings.iter().map(Finding::to_json);
            details.insert("findings".into(), findings.collect());
        }
        CheckJson {
            name: self.name,
            status: self.status().name(),
            message: joined(messages.collect()),
            fix: (!fixes.is_empty()).then(|| joined(fixes)),
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
#[derive(serde::Serialize)]
struct CheckJson {
    name: &'static str,
    status: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    details: Map<String, Value>,
}

/// The report in JSON output.
#[derive(serde::Serialize)]
struct ReportJson {
    #[serde(rename = "type")]
    kind: &'static str,
    status: &'static str,
    exit_code: u8,
    checks: Vec<CheckJson>,
}

/// Prints the first line with its status mark, and the others below it.
fn show_marked(status: CheckStatus, lines: &[String], output: &mut Output) {
    let mark = format!("{:MARK_COLUMNS$}", status.name());
    let indent = format!("\n{:MARK_COLUMNS$}", "");
    output.print_marked(&mark, status.tone(), &lines.join(&indent));
}

impl Finding {
    fn plain(status: CheckStatus, message: String) -> Finding {
        Finding { status, message, fix: None, kind: None }
    }

    fn warning(message: String, fix: String) -> Finding {
        Finding { fix: Some(fix), ..Finding::plain(CheckStatus::Warning, message) }
    }

    fn failure(kind: ErrorKind, message: String, fix: String) -> Finding {
        Finding {
            fix: Some(fix),
            kind: Some(kind),
            ..Finding::plain(CheckStatus::Failure, message)
        }
    }

    fn to_json(&self) -> Value {
        let mut finding = json!({"status": self.status.name(), "message": self.message});
        if let Some(fix) = &self.fix {
            finding["fix"] = fix.as_str().into();
        }
        finding
    }
}

/// The report; each check is printed when it is added.
#[derive(Debug)]
pub(super) struct DoctorReport {
    checks: Vec<DoctorCheck>,
    is_json: bool,
}

impl DoctorReport {
    /// An empty report.
    pub(super) fn new(is_json: bool) -> DoctorReport {
        DoctorReport { checks: Vec::new(), is_json }
    }

    /// Whether the report is one JSON object, printed at the end.
    pub(super) fn is_json(&self) -> bool {
        self.is_json
    }

    /// Adds a check, and prints it unless the output is JSON.
    pub(super) fn add(&mut self, check: DoctorCheck, output: &mut Output) {
        if !self.is_json {
            check.show(output);
        }
        self.checks.push(check);
    }

    /// Adds skipped checks with a common reason, in one line.
    pub(super) fn skip(&mut self, names: &[&'static str], reason: &str, output: &mut Output) {
        let checks = names.iter().map(|name| DoctorCheck::skipped(name, reason));
        self.checks.extend(checks);
        if !self.is_json && !names.is_empty() {
            let labels = names.join(", ").replace('_', " ");
            let lines = fold(&format!("{labels}: {reason}"), "", output);
            show_marked(CheckStatus::Skipped, &lines, output);
        }
    }

    /// Adds a failure, detected by a later check, to an earlier one.
    pub(super) fn add_failure_to(&mut self, name: &str, error: &Error, output: &mut Output) {
        let Some(check) = self.checks.iter_mut().find(|check| check.name == name) else {
            return;
        };
        check.add_failure(error.kind(), error.message(), error_fix(error));
        if !self.is_json
            && let Some(finding) = check.findings.last()
        {
            check.show_finding(finding, &[], output);
        }
    }

    /// Prints the summary and returns the exit status: that of the first failure, or 0.
    pub(super) fn finish(&self, output: &mut Output) -> Result<u8> {
        let status = self.exit_status();
        if self.is_json {
            self.print_json(status, output)?;
        } else {
            for line in fold(&self.summary(), "", output) {
                output.print(&line);
            }
        }
        Ok(status)
    }

    /// Ends the report after an interrupt. `names` are all checks; those not made are skipped.
    pub(super) fn finish_early(
        &mut self,
        names: impl Iterator<Item = &'static str>,
        error: &Error,
        output: &mut Output,
    ) -> Result<()> {
        let is_made = |name: &&str| self.checks.iter().any(|check| check.name == *name);
        let left: Vec<&'static str> = names.filter(|name| !is_made(name)).collect();
        if self.is_json {
            let skipped = |name: &&'static str| DoctorCheck::skipped(name, error.message());
            self.checks.extend(left.iter().map(skipped));
            return self.print_json(error.kind().exit_status(), output);
        }
        let (left, all) = (left.len(), self.checks.len() + left.len());
        let text = format!("{}: {left} of {all} checks were skipped", error.message());
        for line in fold(&text, "", output) {
            output.print(&line);
        }
        Ok(())
    }

    fn print_json(&self, status: u8, output: &mut Output) -> Result<()> {
        let report = ReportJson {
            kind: "doctor",
            status: if status == 0 { "ok" } else { "error" },
            exit_code: status,
            checks: self.checks.iter().map(DoctorCheck::to_json).collect(),
        };
        let failure =
            |error| Error::new(ErrorKind::Io, format!("failed to write the report: {error}"));
        output.print(&serde_json::to_string(&report).map_err(failure)?);
        Ok(())
    }

    fn exit_status(&self) -> u8 {
        let findings = self.checks.iter().flat_map(|check| &check.findings);
        let kind = findings
            .filter(|finding| finding.status == CheckStatus::Failure)
            .find_map(|finding| finding.kind);
        match kind {
            None => 0,
            // `doctor` prints no answer that could be cut off.
            Some(ErrorKind::Truncated) => ErrorKind::Endpoint.exit_status(),
            Some(kind) => kind.exit_status(),
        }
    }

    fn summary(&self) -> String {
        let findings = || self.checks.iter().flat_map(|check| &check.findings);
        let count = |status| findings().filter(|finding| finding.status == status).count();
        let many = |count: usize, what: &str| match count {
            0 => format!("no {what}s"),
            1 => format!("1 {what}"),
            _ => format!("{count} {what}s"),
        };
        let (failures, warnings) = (count(CheckStatus::Failure), count(CheckStatus::Warning));
        let counts = format!("{}, {}", many(failures, "failure"), many(warnings, "warning"));
        let demo = if self.exit_status() == ErrorKind::Config.exit_status() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_failure_decides_the_status() {
        let mut report = DoctorReport::new(true);
        assert_eq!(report.exit_status(), 0);
        report.checks.push(DoctorCheck::warning("a", "m", "f"));
        assert_eq!(report.exit_status(), 0);
        report.checks.push(DoctorCheck::failure("b", ErrorKind::Auth, "m", "f"));
        report.checks.push(DoctorCheck::failure("c", ErrorKind::Config, "m", "f"));
        assert_eq!(report.exit_status(), 77);
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
