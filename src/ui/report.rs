//! Builds the records of a run and the totals of its result.
//!
//! Every returned text consists of complete lines, each with one object. This module
//! does not write.

use std::borrow::Cow;
use std::time::Instant;

use crate::ui::Format;
use crate::ui::records::{
    ActionRecords, CommandFailure, ErrorRecord, OutputRecord, RunEnvironment, TokenTotals,
    TurnSummary,
};
use crate::ui::stream_redactor::StreamRedactor;
use base::error::{Error, ErrorKind, Result};
use base::event::{Event, RunStats};
use base::secret::Secrets;
use base::tool::milliseconds;

/// State of the records of a run.
#[derive(Debug)]
pub(super) struct TextReport {
    format: Format,
    /// Only for a log.
    run_environment: Option<RunEnvironment>,
    model: Option<String>,
    session: Option<String>,
    turn: ResultLine,
    /// Whether the last record is a result.
    is_finished: bool,
    text: StreamRedactor,
    /// Separate from the text, so that a secret in the text stays masked if reasoning
    /// interrupts it.
    reasoning: StreamRedactor,
    /// Masked text and reasoning without a record yet; in a log, those of the current message.
    pending_text: String,
    pending_reasoning: String,
}

/// Content of the next result.
#[derive(Debug)]
struct ResultLine {
    start: Instant,
    /// The masked question.
    prompt: Option<String>,
    /// The masked text of the model since the last tool result.
    answer: String,
    /// The masked complete answer. It lacks reasoning that was recognized only at its end
    /// and so was emitted as text.
    complete_answer: Option<String>,
    stats: RunStats,
    stdin: Option<&'static str>,
}

impl TextReport {
    /// Creates a report without records.
    pub(super) fn new(format: Format) -> TextReport {
        TextReport {
            format,
            run_environment: None,
            model: None,
            session: None,
            turn: ResultLine::new(),
            is_finished: false,
            text: StreamRedactor::default(),
            reasoning: StreamRedactor::default(),
            pending_text: String::new(),
            pending_reasoning: String::new(),
        }
    }

    /// Creates a report for a log: with all records, each message as a whole, and the run
    /// environment.
    pub(super) fn for_log(run_environment: RunEnvironment) -> TextReport {
        TextReport { run_environment: Some(run_environment), ..TextReport::new(Format::Jsonl) }
    }

    /// Sets the model's name.
    pub(super) fn set_model(&mut self, name: &str) {
        self.model = Some(name.to_string());
    }

    /// Sets the session's name; `None`: the conversation is not saved.
    pub(super) fn set_session(&mut self, name: Option<&str>) {
        self.session = name.map(String::from);
    }

    /// Records that standard input was ignored.
    pub(super) fn ignore_stdin(&mut self) {
        self.turn.stdin = Some("ignored");
    }

    /// Sets the totals of the turn.
    pub(super) fn set_stats(&mut self, stats: &RunStats) {
        self.turn.stats = stats.clone();
    }

    /// Record of the start, with these skills.
    pub(super) fn start(&self, skills: &[&str], secrets: &Secrets) -> String {
        self.line(&OutputRecord::Start {
            session: self.session.as_deref(),
            model: self.masked_model(secrets),
            skills: skills.iter().map(|name| secrets.mask(name)).collect(),
            run_environment: self.run_environment.as_ref(),
            prompt: self.turn.prompt.as_deref(),
        })
    }

    /// Sets the question of the turn. A log has it in the turn's result and in the next
    /// start record.
    pub(super) fn start_question(&mut self, text: &str, secrets: &Secrets) {
        if self.run_environment.is_some() {
            self.turn.prompt = Some(secrets.mask(text).into_owned());
        }
    }

    /// Starts a turn of a conversation.
    pub(super) fn start_turn(&mut self) {
        self.turn = ResultLine::new();
        self.is_finished = false;
    }

    /// Records of an event.
    pub(super) fn event(&mut self, event: &Event<'_>, secrets: &Secrets) -> String {
        match event {
            _ if matches!(self.format, Format::Text | Format::Object) => String::new(),
            Event::Text(piece) => {
                let ready = self.text.add(piece, secrets);
                self.add_text(&ready);
                self.delta_records()
            }
            Event::Reasoning(piece) => {
                self.pending_reasoning += &self.reasoning.add(piece, secrets);
                self.delta_records()
            }
            Event::MessageEnd { .. } => self.held_records(secrets),
            Event::Rescue(_) => {
                // The reply so far is not the answer.
                let lines = self.held_records(secrets);
                self.turn.answer.clear();
                lines
            }
            _ => {
                let Some(record) =
                    OutputRecord::from_event(event, self.run_environment.is_some(), secrets)
                else {
                    return String::new();
                };
                let lines = self.held_records(secrets) + &self.line(&record);
                if matches!(record, OutputRecord::ToolResult { .. }) {
                    self.turn.answer.clear();
                }
                lines
            }
        }
    }

    /// Sets the masked complete answer.
    pub(super) fn answer(&mut self, text: &str) {
        if self.format != Format::Text {
            self.turn.complete_answer = Some(text.to_string());
        }
    }

    /// Records of the end of a turn with this exit status. Wrong usage is not a turn.
    pub(super) fn end(
        &mut self,
        error: Option<&Error>,
        exit_code: u8,
        secrets: &Secrets,
    ) -> String {
        if error.is_some_and(|error| error.kind() == ErrorKind::Usage) {
            return String::new();
        }
        if self.format == Format::Object {
            return error.map_or_else(String::new, |error| CommandFailure::line(error, secrets));
        }
        let mut lines = self.held_records(secrets);
        if let Some(error) = error {
            lines += &self.line(&OutputRecord::Error(ErrorRecord::from_error(error, secrets)));
        }
        let turn = std::mem::replace(&mut self.turn, ResultLine::new());
        self.is_finished = true;
        lines
            + &self.line(&OutputRecord::Result(TurnSummary {
                status: if exit_code == 0 { "ok" } else { "error" },
                exit_code,
                prompt: turn.prompt.as_deref(),
                answer: turn.complete_answer.as_ref().unwrap_or(&turn.answer),
                session: self.session.as_deref(),
                model: self.masked_model(secrets),
                steps: turn.stats.steps,
                tool_calls: turn.stats.tool_calls,
                usage: TokenTotals {
                    prompt_tokens: turn.stats.usage.prompt_tokens,
                    completion_tokens: turn.stats.usage.completion_tokens,
                },
                duration_ms: milliseconds(turn.start.elapsed()),
                stdin: turn.stdin,
                actions: ActionRecords::new(&turn.stats.actions, secrets),
                calls_from_text: turn.stats.calls_from_text,
                asked_again: turn.stats.asked_again,
                error: error.map(|error| ErrorRecord::from_error(error, secrets)),
            }))
    }

    /// Records of the end of the run. After the result of a turn, only a failure has records.
    pub(super) fn finish(&mut self, result: &Result<u8>, secrets: &Secrets) -> String {
        match result {
            Ok(_) if self.is_finished => String::new(),
            Ok(status) => self.end(None, *status, secrets),
            Err(error) => self.end(Some(error), error.kind().exit_status(), secrets),
        }
    }

    fn masked_model<'m>(&'m self, secrets: &Secrets) -> Option<Cow<'m, str>> {
        self.model.as_deref().map(|name| secrets.mask(name))
    }

    /// Adds masked text, which is also part of the answer.
    fn add_text(&mut self, text: &str) {
        self.turn.answer.push_str(text);
        self.pending_text.push_str(text);
    }

    /// Records of the text and reasoning so far; a log waits for the end of the message.
    fn delta_records(&mut self) -> String {
        if self.run_environment.is_some() {
            return String::new();
        }
        self.pending_records()
    }

    /// Records of all text and reasoning, including what was held back.
    fn held_records(&mut self, secrets: &Secrets) -> String {
        self.pending_reasoning += &self.reasoning.end(secrets);
        let text = self.text.end(secrets);
        self.add_text(&text);
        self.pending_records()
    }

    fn pending_records(&mut self) -> String {
        let mut lines = String::new();
        let reasoning = std::mem::take(&mut self.pending_reasoning);
        if !reasoning.is_empty() {
            lines += &self.line(&OutputRecord::Reasoning { delta: &reasoning });
        }
        let text = std::mem::take(&mut self.pending_text);
        if !text.is_empty() {
            lines += &self.line(&OutputRecord::Text { delta: &text });
        }
        lines
    }

    /// Line of a record; empty if the format does not include it.
    fn line(&self, record: &OutputRecord<'_>) -> String {
        match (self.format, record) {
            (Format::Jsonl, _) | (Format::Json, OutputRecord::Result(_)) => record.line(),
            _ => String::new(),
        }
    }
}

impl ResultLine {
    fn new() -> ResultLine {
        ResultLine {
            start: Instant::now(),
            prompt: None,
            answer: String::new(),
            complete_answer: None,
            stats: RunStats::default(),
            stdin: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::Value;

    use super::*;
    use base::secret::Secret;
    use base::tool::{ToolCall, ToolResult};

    fn values(lines: &str) -> Vec<Value> {
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn key() -> Secrets {
        let mut secrets = Secrets::default();
        secrets.extend(Secret::new("sk-canary"));
        secrets
    }

    /// A key that reasoning interrupts is masked.
    #[test]
    fn deltas_add_up_to_the_answer_without_the_key() {
        let mut report = TextReport::new(Format::Jsonl);
        let mut lines = String::new();
        let events = [
            Event::Text("is it sk-"),
            Event::Reasoning("hm, sk-can"),
            Event::Text("canary? sk-ca"),
            Event::MessageEnd { calls: 0 },
        ];
        for event in &events {
            lines += &report.event(event, &key());
        }
        lines += &report.finish(&Ok(0), &key());
        let records = values(&lines);
        let deltas: Vec<(&str, &str)> = records
            .iter()
            .filter_map(|record| Some((record["type"].as_str()?, record["delta"].as_str()?)))
            .collect();
        assert_eq!(
            deltas,
            [
                ("text", "is it "),
                ("reasoning", "hm, "),
                ("text", "[secret]? "),
                ("reasoning", "sk-can"),
                ("text", "sk-ca"),
            ]
        );
        assert_eq!(records.last().unwrap()["answer"], "is it [secret]? sk-ca");
    }

    #[test]
    fn the_answer_is_the_text_after_the_last_tool_result() {
        let mut report = TextReport::new(Format::Json);
        let (call, result) = (ToolCall::default(), ToolResult::success("", ""));
        let duration = Duration::ZERO;
        let events = [
            Event::Text("Let me look."),
            Event::MessageEnd { calls: 1 },
            Event::ToolResult { call: &call, result: &result, duration },
            Event::Text("It is "),
            Event::Text("4."),
        ];
        for event in &events {
            assert_eq!(report.event(event, &key()), "");
        }
        report.set_model("m");
        report.ignore_stdin();
        let line = report.finish(&Ok(0), &key());
        let expected = "{\"type\":\"result\",\"status\":\"ok\",\"exit_code\":0,\"answer\":\"It is 4.\",\"session\":null,\
                        \"model\":\"m\",\"steps\":0,\"tool_calls\":0,\"usage\":{\"prompt_tokens\":0,\
                        \"completion_tokens\":0},\"duration_ms\":";
        assert!(line.starts_with(expected), "{line}");
        assert!(line.ends_with(",\"stdin\":\"ignored\"}\n"), "{line}");
        assert_eq!(report.finish(&Ok(0), &key()), "", "the result was already written");
    }

    #[test]
    fn every_turn_has_its_own_result_and_wrong_usage_none() {
        let mut report = TextReport::new(Format::Jsonl);
        let usage = Error::new(ErrorKind::Usage, "no");
        assert_eq!(report.end(Some(&usage), 2, &key()), "");
        report.event(&Event::Text("one"), &key());
        report.end(None, 0, &key());
        report.start_turn();
        let auth = Error::new(ErrorKind::Auth, "no").with_hint("ask");
        let records = values(&report.end(Some(&auth), 77, &key()));
        assert_eq!(records.len(), 2);
        assert_eq!(records[0]["type"], "error");
        assert_eq!(
            (&records[1]["status"], &records[1]["answer"], &records[1]["exit_code"]),
            (&"error".into(), &"".into(), &77.into())
        );
        assert_eq!(records[1]["model"], Value::Null);
        assert_eq!(records[1]["error"]["hint"], "ask");
        assert_eq!(report.finish(&Ok(77), &key()), "");
    }

    #[test]
    fn text_has_no_records() {
        let mut report = TextReport::new(Format::Text);
        assert_eq!(report.event(&Event::Text("x"), &key()), "");
        assert_eq!(report.start(&[], &key()) + &report.finish(&Ok(0), &key()), "");
    }
}
