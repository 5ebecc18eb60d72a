//! The requests of a turn: what the next reply may be, and what follows a reply that is not an
//! answer.

use crate::turn::Turn;
use crate::turn::replies::{HeldText, NoAnswer, ReplyPlace, Verdict};
use base::error::{Error, FailedPart, Result};
use base::event::Event;
use base::limits;
use base::message::Message;
use base::tool::{CallForm, Usage};
use chat_api::{FinishReason, ModelReply, ModelRequest, ToolCalling};

/// The instructions of a request without tools.
const WITHOUT_TOOLS: &str = "Answer the user from general knowledge. For anything about files, \
    this computer, the user or the company, reply with the one word TOOLS.";

impl<'t> Turn<'t, '_> {
    /// Sends the next request. `None`: the reply neither is an answer nor has calls, and the model
    /// is asked again.
    pub(super) fn next_reply(&mut self, step: u32) -> Result<Option<ModelReply>> {
        let has_next_step = step < self.limits.max_steps;
        let mut held = self.prepare_request(has_next_step);
        let sink = &mut *self.sink;
        let completed = self
            .context
            .complete(self.conversation, self.stats, &mut |event| held.pass(event, sink));
        let is_reminded = !std::mem::take(&mut self.context.reminder).is_empty();
        let mut reply = match completed {
            Ok(reply) => reply,
            Err(error) => {
                if !matches!(error.part(), Some(FailedPart::Answer(_))) {
                    held.release(self.sink);
                }
                return self.after_failure(error, has_next_step);
            }
        };
        self.stats.steps += 1;
        self.stats.usage += reply.usage.unwrap_or_default();
        // It counts the reminder, too.
        reply.usage = reply.usage.filter(|_| !is_reminded);
        self.rescue.trust_native(&reply.message.calls, self.tools);
        let verdict = if reply.message.calls.is_empty() {
            let calling = self.context.model.tool_calling();
            let (is_first, is_trial) = (step == 1, self.announcement.is_some());
            let place = ReplyPlace { is_first, is_trial, has_next_step, calling };
            self.rescue.judge(&reply, self.conversation, self.tools, place)
        } else {
            Verdict::Answer(reply.finish)
        };
        match verdict {
            Verdict::AskAgain(kind, advice) => {
                if held.has_shown {
                    (self.sink)(Event::MessageEnd { calls: 0 });
                }
                self.ask_about(kind, reply, &advice);
                return Ok(None);
            }
            Verdict::Calls(sentence, calls) => {
                if self.context.model.tool_calling() != ToolCalling::Prompted {
                    (self.sink)(Event::Rescue("the call came as text, and is run"));
                }
                self.stats.calls_from_text += u32::try_from(calls.len()).unwrap_or(u32::MAX);
                reply.message.content = sentence;
                reply.message.calls = calls;
                self.announcement = None;
                return Ok(Some(reply));
            }
            Verdict::Answer(finish) => reply.finish = finish,
            Verdict::Quotation => {
                (self.sink)(Event::Rescue("the reply shows a call, which is not run"));
                reply.finish = FinishReason::Complete;
            }
        }
        self.renew_shown_mark(&reply.message.content);
        match self.announcement.take() {
            Some(first) if reply.message.calls.is_empty() => Ok(Some(self.return_to(first))),
            _ => {
                held.release(self.sink);
                Ok(Some(reply))
            }
        }
    }

    /// The answer of a small model that is asked without tools: with tools it always uses one. Only
    /// a question without digits, files and addresses is asked so. An answer with digits, or that
    /// only repeats words of the question, is not taken.
    pub(super) fn known_answer(&mut self) -> Result<Option<ModelReply>> {
        let [Message::User(question)] = self.conversation.messages_without_system() else {
            return Ok(None);
        };
        let text = question.full_text();
        let is_plain = text.len() <= limits::PLAIN_QUESTION_BYTES
            && !text.contains(char::is_numeric)
            && !names_place(&text)
            && question.images.is_empty()
            && question.skills.is_empty();
        let limits = self.limits;
        let may_ask = limits.asks_without_tools
            && limits.max_steps > 1
            && !self.tools.definitions().is_empty()
            && self.context.model.is_small();
        if !is_plain || !may_ask {
            return Ok(None);
        }
        let messages = [Message::System(WITHOUT_TOOLS.into()), Message::user(text.clone())];
        let request = ModelRequest::of_messages(&messages);
        let sink = &mut *self.sink;
        let completed = self.context.model.complete(&request, &mut |event| {
            if !matches!(event, Event::Text(_)) {
                sink(event);
            }
        });
        let mut reply = match completed {
            Err(error) if matches!(error.part(), Some(FailedPart::Answer(_))) => return Ok(None),
            completed => completed?,
        };
        self.stats.steps += 1;
        // It says nothing about the size of the conversation.
        self.stats.usage += reply.usage.take().unwrap_or_default();
        let answer = &reply.message.content;
        let words = answer.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        let is_answer = reply.finish == FinishReason::Complete
            && !answer.contains(|c: char| c.is_numeric() || c == '{')
            && !text.to_lowercase().contains(&words)
            && !words.contains("tool");
        if !is_answer {
            return Ok(None);
        }
        (self.sink)(Event::Text(answer));
        Ok(Some(reply))
    }

    /// Prepares the next request, after a reply that may become the answer.
    fn ask_about(&mut self, kind: NoAnswer, reply: ModelReply, advice: &str) {
        self.ask_again(kind, &reply.message.content, advice);
        if kind == NoAnswer::Described {
            self.context.model.constrain(true);
        }
        match kind {
            NoAnswer::Announced | NoAnswer::Described => self.announcement = Some(reply),
            // The constrained reply is still to come.
            NoAnswer::CutCall => {}
            NoAnswer::UnknownNumber => self.must_calculate = true,
            _ => self.announcement = None,
        }
    }

    /// The first reply is the answer after all.
    fn return_to(&self, first: ModelReply) -> ModelReply {
        self.context.model.constrain(false);
        first
    }

    /// Sets what the next reply may be if it is constrained: no call in the last step, or if two
    /// calls brought nothing new; no answer directly after a failure. Nothing of it is held back.
    fn prepare_request(&mut self, has_next_step: bool) -> HeldText<'t> {
        let mut tools = self.tools.definitions();
        if self.context.model.tool_calling() == ToolCalling::Schema {
            let may_call = has_next_step && self.repeated.times_stuck() <= 1;
            let left_out = self.repeated.left_out_tool();
            let allowed = || self.tools.allowed_forms(&self.conversation.skills_read(), left_out);
            self.context.allowed_forms = if may_call { allowed() } else { Vec::new() };
            self.context.allows_answer = !self.repeated.has_just_failed();
            let must_calculate = std::mem::take(&mut self.must_calculate);
            if must_calculate && self.context.allowed_forms.iter().any(runs_source) {
                self.context.allowed_forms.retain(runs_source);
                self.context.allows_answer = false;
            }
            tools = &[];
        }
        HeldText::new(tools, self.announcement.is_some())
    }

    /// Replaces the mark of calls if a text that is not run has it: it may be saved and read again.
    fn renew_shown_mark(&mut self, text: &str) {
        let mark = self.conversation.call_mark();
        if !mark.is_empty() && text.contains(mark) {
            self.conversation.renew_call_mark();
        }
    }

    /// Handles a failed request: an empty reply is asked about, and an announcement before it is
    /// the answer.
    fn after_failure(&mut self, error: Error, has_next_step: bool) -> Result<Option<ModelReply>> {
        let is_empty = match error.part() {
            Some(FailedPart::Answer(tokens)) => {
                let [prompt_tokens, completion_tokens] = tokens.map(u64::from);
                self.stats.steps += 1;
                self.stats.usage += Usage { prompt_tokens, completion_tokens };
                true
            }
            _ => false,
        };
        if is_empty && has_next_step && self.rescue.may_ask(NoAnswer::Empty) {
            self.ask_again(NoAnswer::Empty, "", "");
            return Ok(None);
        }
        let first = self.announcement.take().map(|first| self.return_to(first));
        let is_stopped = self.limits.cancellation.check().is_err();
        let Some(reply) = first.filter(|_| !is_stopped) else {
            return Err(error);
        };
        if !is_empty {
            (self.sink)(Event::Warning(&error.to_string()));
        }
        Ok(Some(reply))
    }

    /// Prepares the next request, which asks again about a reply that is not an answer.
    fn ask_again(&mut self, kind: NoAnswer, reply: &str, advice: &str) {
        self.stats.asked_again += 1;
        self.renew_shown_mark(reply);
        (self.sink)(Event::Rescue(kind.line()));
        self.context.reminder = kind.reminder(reply, self.conversation.call_mark(), advice);
    }
}

/// Whether a text has the form of a file's name, a path or an address.
fn names_place(text: &str) -> bool {
    let is_name = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).contains('.');
    text.contains(['/', '@']) || text.split_whitespace().any(is_name)
}

/// Whether the model writes the code of such a call.
fn runs_source(form: &CallForm) -> bool {
    form.parameters["properties"].get("script").is_some()
}
