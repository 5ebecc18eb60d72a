//! A run as records: what is told of it, and what its result adds up to.
//!
//! Every text that it gives is whole lines, each one object; nothing is
//! written here.

use std::borrow::Cow;
use std::time::Instant;

use crate::error::{Error, ErrorKind};
use crate::event::{Event, RunStats};
use crate::secret::Secrets;
use crate::tool::milliseconds;
use crate::world::output::Format;
use crate::world::output::records::{
    ErrorRecord, OutputRecord, RunEnvironment, TokenTotals, TurnSummary,
};
use crate::world::output::stream_redactor::StreamRedactor;

/// What has been told so far.
#[derive(Debug)]
pub(super) struct TextReport {
    format: Format,
    /// For a log.
    circumstances: Option<RunEnvironment>,
    model: Option<String>,
    session: Option<String>,
    turn: ResultLine,
    /// The last record is a result.
    is_over: bool,
    text: StreamRedactor,
    /// Apart from the text: a secret does not become visible because thoughts
    /// come in between.
    reasoning: StreamRedactor,
    /// For a log: what the message has said and thought so far, masked.
    unsaid: String,
    unthought: String,
}

/// What the next result will say.
#[derive(Debug)]
struct ResultLine {
    began: Instant,
    /// What was asked, masked.
    prompt: Option<String>,
    /// What the model has said since the last result of a tool, masked.
    answer: String,
    /// The answer itself, masked, once it is there: thoughts that turned out to
    /// be some only at their end were told as text, and are not in it.
    whole: Option<String>,
    stats: RunStats,
    stdin: Option<&'static str>,
}

impl TextReport {
    /// Nothing has happened.
    pub(super) fn new(format: Format) -> TextReport {
        TextReport {
            format,
            circumstances: None,
            model: None,
            session: None,
            turn: ResultLine::new(),
            is_over: false,
            text: StreamRedactor::default(),
            reasoning: StreamRedactor::default(),
            unsaid: String::new(),
            unthought: String::new(),
        }
    }

    /// The same for a log: all of it, each message as a whole, and who runs it,
    /// where and how.
    pub(super) fn for_log(circumstances: RunEnvironment) -> TextReport {
        TextReport { circumstances: Some(circumstances), ..TextReport::new(Format::Jsonl) }
    }

    /// From now on the model is known.
    pub(super) fn name_model(&mut self, name: &str) {
        self.model = Some(name.to_string());
    }

    /// From now on the conversation is saved under this name, or not at all.
    pub(super) fn name_session(&mut self, name: Option<&str>) {
        self.session = name.map(String::from);
    }

    /// Standard input stayed silent.
    pub(super) fn ignore_stdin(&mut self) {
        self.turn.stdin = Some("ignored");
    }

    /// What the turn has cost.
    pub(super) fn spend(&mut self, stats: RunStats) {
        self.turn.stats = stats;
    }

    /// The run begins, with these skills.
    pub(super) fn start(&self, skills: &[&str], secrets: &Secrets) -> String {
        self.line(&OutputRecord::Start {
            session: self.session.as_deref(),
            model: self.masked_model(secrets),
            skills: skills.iter().map(|name| secrets.mask(name)).collect(),
            circumstances: self.circumstances.as_ref(),
            prompt: self.turn.prompt.as_deref(),
        })
    }

    /// This is asked in the turn; a log says it with the turn's result, and
    /// with the start that comes next.
    pub(super) fn begin_question(&mut self, text: &str, secrets: &Secrets) {
        if self.circumstances.is_some() {
            self.turn.prompt = Some(secrets.mask(text).into_owned());
        }
    }

    /// A turn of a conversation begins.
    pub(super) fn begin_turn(&mut self) {
        self.turn = ResultLine::new();
        self.is_over = false;
    }

    /// Something happens.
    pub(super) fn event(&mut self, event: &Event<'_>, secrets: &Secrets) -> String {
        match event {
            _ if self.format == Format::Text => String::new(),
            Event::Text(piece) => {
                let ready = self.text.add(piece, secrets);
                self.say(&ready)
            }
            Event::Reasoning(piece) => {
                let ready = self.reasoning.add(piece, secrets);
                self.think(&ready)
            }
            Event::MessageEnd { .. } => self.rest(secrets),
            _ => {
                let Some(record) = OutputRecord::of(event, self.circumstances.is_some(), secrets)
                else {
                    return String::new();
                };
                let lines = self.rest(secrets) + &self.line(&record);
                if matches!(record, OutputRecord::ToolResult { .. }) {
                    self.turn.answer.clear();
                }
                lines
            }
        }
    }

    /// The answer is there, masked.
    pub(super) fn answer(&mut self, text: &str) {
        if self.format != Format::Text {
            self.turn.whole = Some(text.to_string());
        }
    }

    /// The turn is over, with this exit status. Wrong usage is no turn.
    pub(super) fn end(
        &mut self,
        error: Option<&Error>,
        exit_code: u8,
        secrets: &Secrets,
    ) -> String {
        if error.is_some_and(|error| error.kind() == ErrorKind::Usage) {
            return String::new();
        }
        let mut lines = self.rest(secrets);
        if let Some(error) = error {
            lines += &self.line(&OutputRecord::Error(ErrorRecord::of(error, secrets)));
        }
        let turn = std::mem::replace(&mut self.turn, ResultLine::new());
        self.is_over = true;
        lines
            + &self.line(&OutputRecord::Result(TurnSummary {
                status: if exit_code == 0 { "ok" } else { "error" },
                exit_code,
                prompt: turn.prompt.as_deref(),
                answer: turn.whole.as_ref().unwrap_or(&turn.answer),
                session: self.session.as_deref(),
                model: self.masked_model(secrets),
                steps: turn.stats.steps,
                tool_calls: turn.stats.tool_calls,
                usage: TokenTotals {
                    prompt_tokens: turn.stats.usage.prompt_tokens,
                    completion_tokens: turn.stats.usage.completion_tokens,
                },
                duration_ms: milliseconds(turn.began.elapsed()),
                stdin: turn.stdin,
                error: error.map(|error| ErrorRecord::of(error, secrets)),
            }))
    }

    /// The run is over: its result, unless that of its last turn says it.
    pub(super) fn complete(&mut self, exit_code: u8, secrets: &Secrets) -> String {
        if self.is_over {
            return String::new();
        }
        self.end(None, exit_code, secrets)
    }

    fn masked_model<'m>(&'m self, secrets: &Secrets) -> Option<Cow<'m, str>> {
        self.model.as_deref().map(|name| secrets.mask(name))
    }

    /// What was held back, before something else is told.
    fn rest(&mut self, secrets: &Secrets) -> String {
        let (thought, said) = (self.reasoning.end(secrets), self.text.end(secrets));
        let lines = self.think(&thought) + &self.say(&said);
        let thought = std::mem::take(&mut self.unthought);
        let said = std::mem::take(&mut self.unsaid);
        lines + &self.thought_line(&thought) + &self.said_line(&said)
    }

    fn say(&mut self, delta: &str) -> String {
        self.turn.answer.push_str(delta);
        if self.circumstances.is_some() {
            self.unsaid.push_str(delta);
            return String::new();
        }
        self.said_line(delta)
    }

    fn think(&mut self, delta: &str) -> String {
        if self.circumstances.is_some() {
            self.unthought.push_str(delta);
            return String::new();
        }
        self.thought_line(delta)
    }

    fn said_line(&self, delta: &str) -> String {
        match delta {
            "" => String::new(),
            delta => self.line(&OutputRecord::Text { delta }),
        }
    }

    fn thought_line(&self, delta: &str) -> String {
        match delta {
            "" => String::new(),
            delta => self.line(&OutputRecord::Reasoning { delta }),
        }
    }

    /// The record's line, if the format has it.
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
            began: Instant::now(),
            prompt: None,
            answer: String::new(),
            whole: None,
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
    use crate::secret::Secret;
    use crate::tool::{ToolCall, ToolResult};

    fn values(lines: &str) -> Vec<Value> {
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn key() -> Secrets {
        let mut secrets = Secrets::default();
        secrets.extend(Secret::new("sk-canary"));
        secrets
    }

    /// A key that thoughts interrupt is not shown in two halves.
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
        lines += &report.complete(0, &key());
        let records = values(&lines);
        let told: Vec<(&str, &str)> = records
            .iter()
            .filter_map(|record| Some((record["type"].as_str()?, record["delta"].as_str()?)))
            .collect();
        assert_eq!(
            told,
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
    fn the_answer_is_what_came_after_the_last_tool() {
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
        report.name_model("m");
        report.ignore_stdin();
        let line = report.complete(0, &key());
        let expected = "{\"type\":\"result\",\"status\":\"ok\",\"exit_code\":0,\"answer\":\"It is 4.\",\"session\":null,\
                        \"model\":\"m\",\"steps\":0,\"tool_calls\":0,\"usage\":{\"prompt_tokens\":0,\
                        \"completion_tokens\":0},\"duration_ms\":";
        assert!(line.starts_with(expected), "{line}");
        assert!(line.ends_with(",\"stdin\":\"ignored\"}\n"), "{line}");
        assert_eq!(report.complete(0, &key()), "", "it has been said");
    }

    #[test]
    fn every_turn_has_its_own_result_and_wrong_usage_none() {
        let mut report = TextReport::new(Format::Jsonl);
        let usage = Error::new(ErrorKind::Usage, "no");
        assert_eq!(report.end(Some(&usage), 2, &key()), "");
        report.event(&Event::Text("one"), &key());
        report.end(None, 0, &key());
        report.begin_turn();
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
        assert_eq!(report.complete(77, &key()), "");
    }

    #[test]
    fn text_has_no_records() {
        let mut report = TextReport::new(Format::Text);
        assert_eq!(report.event(&Event::Text("x"), &key()), "");
        assert_eq!(report.start(&[], &key()) + &report.complete(0, &key()), "");
    }
}
