//! Replies that are not answers, although no call came with them: calls that were written as text,
//! an empty reply, a call that was only announced.
//!
//! Calls in text are run only if nothing else can be meant: the text is nothing but calls, and each
//! has the mark of the conversation, if the model was told one; otherwise it must not be a
//! quotation. The model is asked again at most once for each kind of reply in a turn; question and
//! reply do not stay in the conversation.

use std::collections::BTreeSet;

use crate::conversation::Conversation;
use crate::tools::{Tools, runs_language};
use base::limits;
use base::message::Message;
use base::text::{FenceLine, OpenFences, fence_language};
use base::tool::{ToolCall, parse_arguments};
use chat_api::ToolCalling;
use chat_api::{
    FinishReason, ModelReply, TextCall, has_call_marker, is_code_call, marked_tags,
    read_code_calls, read_marked_calls, read_text_calls, sentence_and_calls,
};

mod held_text;
mod numbers;
mod quotations;

pub(super) use held_text::HeldText;
pub(super) use numbers::is_table;
use numbers::unknown_number;
use quotations::{are_shown, names_tool};

/// A kind of reply that is not an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NoAnswer {
    /// Calls as text.
    TextCall,
    /// Calls that cannot be read, although text is how this model calls tools.
    UnreadableCall,
    /// Nothing.
    Empty,
    /// A call that was announced, but not made.
    Announced,
    /// A call that was described, but not made.
    Described,
    /// A constrained call that was cut off at a limit.
    CutCall,
    /// A constrained answer with a number that nothing shows.
    UnknownNumber,
}

/// Kind of reply without calls.
pub(super) enum Verdict {
    /// An answer; with how it ended.
    Answer(FinishReason),
    /// An answer that shows a call.
    Quotation,
    /// These calls, after a sentence.
    Calls(String, Vec<ToolCall>),
    /// No answer: the model is asked again, with this advice.
    AskAgain(NoAnswer, String),
}

/// The state of a turn.
#[derive(Default)]
pub(super) struct Rescue {
    /// Whether numbers of answers must be shown by something: the model is a small one.
    checks_numbers: bool,
    asked: BTreeSet<NoAnswer>,
    /// The calls about which the model was asked.
    asked_about: Vec<TextCall>,
    /// How often a constrained call was cut off.
    cut_calls: usize,
    /// Whether calls as text are trusted: the model has said or made one as it was asked to.
    is_trusted: bool,
}

impl NoAnswer {
    /// The question to the model. `start` opens a call in text.
    fn question(self, start: &str) -> String {
        match self {
            NoAnswer::TextCall => "That came as text, so nothing was run. If you meant to call a tool, call it; otherwise answer the user.".into(),
            NoAnswer::UnreadableCall => format!("Nothing was run. A call must be the whole reply: open it with {start}, with the exact name of a tool and valid JSON. If you meant no call, answer the user."),
            NoAnswer::Empty => "Your reply was empty. Answer the user, or call a tool.".into(),
            // The form of the next reply is the question.
            NoAnswer::Described => String::new(),
            NoAnswer::Announced => {
                "You announced a call, but made none. Call the tool now, or answer the user.".into()
            }
            NoAnswer::CutCall => {
                "Your reply was too long and was cut off. Write a shorter one, or less at a time.".into()
            }
            NoAnswer::UnknownNumber => "No result shows the number ".into(),
        }
    }

    /// The line for the user.
    pub(super) fn line(self) -> &'static str {
        match self {
            NoAnswer::TextCall => "the call came as text: the model is asked to call the tool",
            NoAnswer::UnreadableCall => "the call could not be read: the model is asked again",
            NoAnswer::Empty => "the reply was empty: the model is asked again",
            NoAnswer::Announced => "the call was only announced: the model is asked to make it",
            NoAnswer::Described => {
                "the reply describes a call: the model is asked for it in a constrained reply"
            }
            NoAnswer::CutCall => "the call was cut off: the model is asked for a shorter one",
            NoAnswer::UnknownNumber => {
                "no result shows a number of the answer: the model is asked to calculate it"
            }
        }
    }

    /// The reply and the question, for the next request only.
    pub(super) fn reminder(self, reply: &str, mark: &str, advice: &str) -> Vec<Message> {
        if self == NoAnswer::Described {
            return Vec::new();
        }
        let reply = if reply.trim().is_empty() { "(empty)" } else { reply };
        let [start, _] = marked_tags(mark);
        vec![Message::assistant(reply), Message::user(self.question(&start) + advice)]
    }
}

/// Where in its turn a reply came.
#[derive(Clone, Copy)]
pub(super) struct ReplyPlace {
    /// It is the first one.
    pub is_first: bool,
    /// It decides whether an earlier reply is the answer.
    pub is_trial: bool,
    /// The model may be asked again.
    pub has_next_step: bool,
    /// How the model calls tools.
    pub calling: ToolCalling,
}

impl Rescue {
    pub(super) fn new(checks_numbers: bool) -> Rescue {
        Rescue { checks_numbers, ..Rescue::default() }
    }

    /// Whether the model may be asked about such a reply; it counts as asked then.
    pub(super) fn may_ask(&mut self, kind: NoAnswer) -> bool {
        self.asked.insert(kind)
    }

    /// Trusts a model that makes one of the calls about which it was asked.
    pub(super) fn trust_native(&mut self, calls: &[ToolCall], tools: &Tools<'_>) {
        let is_same = |call: &ToolCall, asked: &TextCall| {
            call.name == asked.name
                && parse_arguments(&call.arguments).is_ok_and(|it| it == asked.arguments)
        };
        let was_asked_about =
            |call: &ToolCall| self.asked_about.iter().any(|asked| is_same(call, asked));
        let mut running = calls.iter().filter(|call| !tools.is_read_only(&call.name));
        self.is_trusted |= running.any(was_asked_about);
    }

    /// Judges a reply without calls.
    pub(super) fn judge(
        &mut self,
        reply: &ModelReply,
        conversation: &Conversation,
        tools: &Tools<'_>,
        place: ReplyPlace,
    ) -> Verdict {
        let text = reply.message.content.trim();
        if place.calling == ToolCalling::Schema {
            return self.judge_constrained(reply, conversation, tools, place);
        }
        let is_whole = matches!(reply.finish, FinishReason::Complete | FinishReason::UnparsedCall);
        let offered = tools.definitions();
        if !is_whole || offered.is_empty() {
            return Verdict::Answer(reply.finish);
        }
        if place.calling == ToolCalling::Native {
            return self.judge_text(reply, conversation, tools, place);
        }
        let is_prompted = place.calling == ToolCalling::Prompted;
        let mark = conversation.call_mark();
        let marked = |tools: &[_]| read_marked_calls(text, mark, tools).filter(|_| is_prompted);
        let marked = marked(offered).or_else(|| marked(&tools.foreign_tools(text)));
        if let Some((sentence, calls)) = marked {
            return Verdict::Calls(sentence, numbered(&calls, conversation));
        }
        let (read, advice) = read_calls(text, tools);
        let code = read_code_calls(text, offered).filter(|_| read.is_none());
        let looks_like_call = read.is_some()
            || code.is_some()
            || reply.finish == FinishReason::UnparsedCall
            || is_code_call(text, offered)
            || is_prompted && has_call_marker(text);
        if !looks_like_call {
            return self.judge_text(reply, conversation, tools, place);
        }
        let is_code = code.is_some();
        let (sentence, calls) = read.unwrap_or(("", code.unwrap_or_default()));
        if is_negated(sentence) || are_shown(&calls, conversation, tools, is_prompted) {
            return Verdict::Quotation;
        }
        let reads_only = calls.iter().all(|call| tools.is_read_only(&call.name));
        let is_call = !is_prompted && advice.is_empty() && !calls.is_empty();
        let is_due = calls == self.asked_about || !is_code && (reads_only || self.is_trusted);
        let has_mark = is_prompted && !mark.is_empty() && text.contains(mark);
        let is_safe = is_call && reads_only || has_mark || !names_tool(conversation, tools);
        if is_call && is_due && is_safe {
            self.is_trusted |= !reads_only;
            return Verdict::Calls(sentence.into(), numbered(&calls, conversation));
        }
        if !is_safe && calls.is_empty() {
            return Verdict::Quotation;
        }
        let kind = if is_prompted { NoAnswer::UnreadableCall } else { NoAnswer::TextCall };
        if place.has_next_step && self.may_ask(kind) {
            self.asked_about = calls;
            return Verdict::AskAgain(kind, advice);
        }
        let is_broken = is_prompted && has_call_marker(text);
        match is_safe {
            true if is_broken => Verdict::Answer(FinishReason::UnparsedCall),
            true => Verdict::Answer(reply.finish),
            false => Verdict::Quotation,
        }
    }

    /// Judges a constrained reply: without text, a call was cut off.
    fn judge_constrained(
        &mut self,
        reply: &ModelReply,
        conversation: &Conversation,
        tools: &Tools<'_>,
        place: ReplyPlace,
    ) -> Verdict {
        let is_cut = reply.finish == FinishReason::Length && reply.message.content.is_empty();
        if is_cut && place.has_next_step && self.cut_calls < limits::CUT_CALLS {
            self.cut_calls += 1;
            return Verdict::AskAgain(NoAnswer::CutCall, String::new());
        }
        let is_judged =
            self.checks_numbers && !place.is_trial && reply.finish == FinishReason::Complete;
        let can_run = tools.definitions().iter().any(|tool| tools.starts_programs(&tool.name));
        if is_judged
            && can_run
            && let Some(number) = unknown_number(&reply.message.content, conversation)
        {
            if place.has_next_step && self.may_ask(NoAnswer::UnknownNumber) {
                let advice = format!("{number}. Calculate it: run code.");
                return Verdict::AskAgain(NoAnswer::UnknownNumber, advice);
            }
            return Verdict::Answer(FinishReason::UnknownNumber);
        }
        Verdict::Answer(reply.finish)
    }

    /// Judges a reply that has no calls, not even as text.
    fn judge_text(
        &mut self,
        reply: &ModelReply,
        conversation: &Conversation,
        tools: &Tools<'_>,
        place: ReplyPlace,
    ) -> Verdict {
        let text = reply.message.content.trim();
        let is_constrainable = place.calling == ToolCalling::Auto;
        let kind = match place.is_first && place.has_next_step {
            true if announces_call(text, tools) => NoAnswer::Announced,
            true if is_constrainable && describes_call(text, conversation, tools) => {
                NoAnswer::Described
            }
            _ => return Verdict::Answer(reply.finish),
        };
        if self.may_ask(kind) {
            Verdict::AskAgain(kind, String::new())
        } else {
            Verdict::Answer(reply.finish)
        }
    }
}

/// The calls that a text is, and advice if their tools are those of other clients.
fn read_calls<'t>(text: &'t str, tools: &Tools<'_>) -> (Option<(&'t str, Vec<TextCall>)>, String) {
    let read = read_text_calls(text, tools.definitions());
    if read.is_some() || sentence_and_calls(text).is_none() {
        return (read, String::new());
    }
    // The tool that has such a name in another client, or a skill, teaches the right one.
    let read = read_text_calls(text, &tools.foreign_tools(text));
    let first = read.as_ref().and_then(|(_, calls)| calls.first());
    let advice = first.map(|call| format!(" ({})", tools.unknown_tool(&call.name)));
    (read, advice.unwrap_or_default())
}

/// Whether the sentence before calls says that they are not to be run.
fn is_negated(sentence: &str) -> bool {
    let words = sentence.to_lowercase().replace('’', "'");
    let mut words = words.split(|c: char| !c.is_alphanumeric() && c != '\'');
    words.any(|word| word.ends_with("n't") || NEGATIONS.contains(&word))
}

/// Words of a sentence that shows a call and does not make it.
const NEGATIONS: [&str; 16] = [
    "not", "never", "cannot", "refuse", "refused", "decline", "declined", "blocked", "avoid",
    "example", "examples", "expected", "contains", "output", "nicht", "ne",
];

/// The calls with ids.
fn numbered(calls: &[TextCall], conversation: &Conversation) -> Vec<ToolCall> {
    let first = conversation.messages().len();
    calls.iter().enumerate().map(|(at, call)| call.to_call(first + at)).collect()
}

/// Whether the first reply of a turn describes a call instead of making it: it names an offered
/// tool, or has code that a tool runs. Not of a model that has made calls, nor for a question about
/// code, nor where the model may have read of the tool.
fn describes_call(text: &str, conversation: &Conversation, tools: &Tools<'_>) -> bool {
    let messages = conversation.messages();
    let has_called =
        messages.iter().any(|it| matches!(it, Message::Assistant(it) if !it.calls.is_empty()));
    let question = match messages.get(conversation.latest_turn_start()) {
        Some(Message::User(question)) => question.to_text().to_lowercase(),
        _ => return false,
    };
    // In a call it stands in quotes or before its arguments.
    let is_word = |word: &str, name: &str| word.trim_matches(['`', '*', '.', ',', ':']) == name;
    let is_named = |name: &str| text.split_whitespace().any(|word| is_word(word, name));
    let mut fences = OpenFences::default();
    let mut opens_code = |line: &str| match fences.advance(line) {
        FenceLine::Open(info) => runs_language(&fence_language(info)),
        _ => false,
    };
    let describes = tools.definitions().iter().any(|tool| is_named(&tool.name))
        || tools.definitions().iter().any(|tool| tool.name == "run_python_script")
            && text.lines().any(&mut opens_code);
    describes
        && !has_called
        && !tools.definitions().iter().any(|tool| question.contains(&tool.name))
        && !CODE_WORDS.iter().any(|word| question.contains(word))
        && !names_tool(conversation, tools)
}

/// Words of questions whose answer may be code.
const CODE_WORDS: [&str; 9] =
    ["code", "function", "command", "script", "regex", "json", "install", "tool", "program"];

/// How models announce what they will do.
const ANNOUNCEMENTS: [&str; 8] = [
    "i'll ",
    "i will ",
    "i am going to ",
    "i'm going to ",
    "i shall ",
    "let me ",
    "let's ",
    "i need to ",
];

/// Whether a short text announces that the model will use an offered tool or a skill.
fn announces_call(text: &str, tools: &Tools<'_>) -> bool {
    if text.chars().count() > limits::ANNOUNCEMENT_CHARS {
        return false;
    }
    let text = format!("{} ", text.to_lowercase().replace('’', "'").replace("let me know", ""));
    if !ANNOUNCEMENTS.iter().any(|words| text.contains(words)) {
        return false;
    }
    // Names in code are quoted.
    let prose: Vec<&str> = text.split('`').step_by(2).collect();
    let prose = prose.join(" ");
    let is_named = |name: &str| {
        let name = name.to_lowercase();
        prose.match_indices(&name).any(|(at, _)| {
            let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
            !prose[..at].ends_with(is_part) && !prose[at + name.len()..].starts_with(is_part)
        })
    };
    tools.definitions().iter().any(|tool| is_named(&tool.name))
        || tools.skills().catalogue().usable().any(|skill| is_named(&skill.name))
}
