//! Replies that are constrained to JSON objects: each is one call of a tool, or the answer.
//!
//! Small models describe what they would do instead of calling tools. They do act where the
//! endpoint lets them write nothing but a short thought, the name of a tool and its arguments. A
//! conversation keeps its calls and results as they are: only the messages that are sent differ.

use std::borrow::Cow;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};

use crate::{CallForms, FinishReason, ModelReply, TextCall};
use base::event::{Event, EventSink};
use base::inexact_json;
use base::limits;
use base::message::AssistantMessage;
use base::tool::CallForm;

/// The fields of every reply, and the one of an answer.
const THOUGHT: &str = "thought";
const TOOL: &str = "tool";
const TEXT: &str = "text";

/// The tool that stands for the answer.
const ANSWER: &str = "answer";

const RULES: &str = "\
You solve the user's request with tools. Reply with one JSON object: a short `thought`, then one `tool` and its arguments. You see its result, then reply again.
Never calculate or count in your head: run code. What everyone knows needs no tool. The user's files are in the current folder.

Tools, with their arguments (`?`: may be left out):
- answer {text}: Answer the user. Only when a result shows what the user wants, or no tool is needed.
";

/// Reminder after a success.
const AFTER_RESULT: &str = "\n\nIf nothing is left to do, use `answer`.";

/// Reminder after two failures in a row.
const AFTER_FAILURES: &str = "\n\nIf this cannot be done here, use `answer` to say so.";

/// The part of the system message that describes the forms of calls.
pub(super) fn description(forms: &[CallForm]) -> String {
    let mut text = RULES.to_string();
    for form in forms {
        let arguments = arguments(&form.parameters).map(|(name, _, is_required)| {
            let mark = if is_required { "" } else { "?" };
            format!("{name}{mark}")
        });
        let arguments = arguments.collect::<Vec<_>>().join(", ");
        text.push_str(&format!("- {} {{{arguments}}}: {}\n", form.tool, form.description));
    }
    text
}

/// The arguments of a form: name, schema, and whether it is required; those that are come first.
fn arguments(parameters: &Value) -> impl Iterator<Item = (&str, &Value, bool)> {
    let required = parameters["required"].as_array().into_iter().flatten();
    let required: Vec<&str> = required.filter_map(Value::as_str).collect();
    let properties = parameters["properties"].as_object();
    let optional = properties.into_iter().flatten().map(|(name, _)| name.as_str());
    let optional = optional.filter(|name| !required.contains(name)).map(|name| (name, false));
    let all: Vec<_> = required.iter().map(|name| (*name, true)).chain(optional).collect();
    all.into_iter().map(|(name, is_required)| (name, &parameters["properties"][name], is_required))
}

/// The value of `response_format`: one of these forms, or the answer.
pub(super) struct ResponseFormat<'f>(pub CallForms<'f>);

/// A map whose order counts: models write fields in the order of the schema.
struct OrderedFields<'f>(Vec<(&'f str, Value)>);

/// The schema of a reply with this form, without one of the answer.
struct ReplySchema<'f>(Option<&'f CallForm>);

impl Serialize for ResponseFormat<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        #[serde(rename_all = "camelCase")]
        struct AnyOf<'s> {
            any_of: Vec<ReplySchema<'s>>,
        }
        #[derive(serde::Serialize)]
        struct Named<'s> {
            name: &'static str,
            schema: AnyOf<'s>,
        }
        let CallForms { allowed, allows_answer, .. } = self.0;
        let answer = (allows_answer || allowed.is_empty()).then_some(None);
        let forms = allowed.iter().map(Some).chain(answer).map(ReplySchema);
        let schema = Named { name: "reply", schema: AnyOf { any_of: forms.collect() } };
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("type", "json_schema")?;
        map.serialize_entry("json_schema", &schema)?;
        map.end()
    }
}

impl Serialize for ReplySchema<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = json!({"type": "string"});
        let parameters = match self.0 {
            Some(form) => &form.parameters,
            None => &json!({"properties": {TEXT: text}, "required": [TEXT]}),
        };
        let name = self.0.map_or(ANSWER, |form| &form.tool);
        let thought = json!({"type": "string", "maxLength": limits::THOUGHT_CHARS});
        let mut fields = vec![(THOUGHT, thought), (TOOL, json!({ "const": name }))];
        let mut required = vec![THOUGHT, TOOL];
        for (name, schema, is_required) in arguments(parameters) {
            fields.push((name, schema.clone()));
            required.extend(is_required.then_some(name));
        }
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("type", "object")?;
        map.serialize_entry("properties", &OrderedFields(fields))?;
        map.serialize_entry("required", &required)?;
        map.serialize_entry("additionalProperties", &false)?;
        map.end()
    }
}

impl Serialize for OrderedFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// A message of the model, as it wrote it or would have written it.
pub(super) fn message_text(message: &AssistantMessage) -> String {
    if !message.written.is_empty() {
        return message.written.clone();
    }
    let text = message.full_text();
    if message.calls.is_empty() {
        let fields = OrderedFields(vec![(TOOL, ANSWER.into()), (TEXT, (*text).into())]);
        return serde_json::to_string(&fields).unwrap_or_default();
    }
    let objects = message.calls.iter().map(|call| {
        let arguments: Map<String, Value> =
            serde_json::from_str(&call.arguments).unwrap_or_default();
        let mut fields = vec![(THOUGHT, (*text).into()), (TOOL, (*call.name).into())];
        fields.extend(arguments.iter().map(|(name, value)| (name.as_str(), value.clone())));
        serde_json::to_string(&OrderedFields(fields)).unwrap_or_default()
    });
    objects.collect::<Vec<_>>().join("\n")
}

/// A result for the message after the call. `fails_again`: it and the one before it are failures.
pub(super) fn result_text(name: &str, result: &str, fails_again: bool) -> String {
    let result = result.trim_end_matches('\n');
    let end = match is_failure(result) {
        true if fails_again => AFTER_FAILURES,
        true => "",
        false => AFTER_RESULT,
    };
    let result = if name.starts_with("run_") { without_duration(result) } else { result.into() };
    format!("Result of {name}:\n{result}{end}")
}

/// Whether a result is that of a failed call.
pub(super) fn is_failure(result: &str) -> bool {
    result.starts_with("{\"error\"") || result.starts_with("exit ") && !result.starts_with("exit 0")
}

/// The result of a program without its duration, which small models take for what it printed.
fn without_duration(result: &str) -> Cow<'_, str> {
    let Some((status, rest)) = result.split_once(", ") else { return result.into() };
    match rest.split_once(" ms") {
        Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{status}{rest}").into()
        }
        _ => result.into(),
    }
}

/// A constrained reply.
struct ObjectReply {
    thought: String,
    /// The tool, or [`ANSWER`].
    tool: String,
    arguments: Map<String, Value>,
}

impl ObjectReply {
    /// Reads a text that begins with a reply. Servers keep schemas loosely, so the order of the
    /// fields does not count, and a fence or a second object is let pass.
    fn read(text: &str) -> Option<ObjectReply> {
        let mut arguments = inexact_json::read_first_object(text)?;
        let text_of = |value: Option<Value>| value?.as_str().map(str::to_string);
        let tool = text_of(arguments.remove(TOOL))?;
        let thought = text_of(arguments.remove(THOUGHT)).unwrap_or_default();
        Some(ObjectReply { thought, tool, arguments })
    }

    /// The text, if it is an answer.
    fn answer(&self) -> Option<&str> {
        let is_answer = self.tool == ANSWER;
        is_answer.then(|| self.arguments.get(TEXT).and_then(Value::as_str))?
    }
}

/// Where the text of a reply is.
#[derive(Clone, Copy, Default, PartialEq)]
enum AnswerPlace {
    /// Before an answer, or in a call.
    #[default]
    Held,
    /// In the text of an answer.
    Answer,
    /// Behind it.
    End,
    /// In a reply that is not an object.
    Prose,
}

/// A constrained reply while it arrives: the text of an answer is passed on, the rest is not.
#[derive(Default)]
pub(super) struct ConstrainedStream {
    written: String,
    place: AnswerPlace,
    /// Bytes that were read.
    read: usize,
    /// The text that was passed on.
    shown: String,
    has_shown_thought: bool,
}

impl ConstrainedStream {
    /// Passes an event on, of text only what belongs to an answer.
    pub(super) fn pass(&mut self, event: Event<'_>, sink: &mut EventSink<'_>) {
        let Event::Text(text) = event else {
            return sink(event);
        };
        self.written.push_str(text);
        if self.place == AnswerPlace::Held {
            self.find_answer(sink);
        }
        match self.place {
            AnswerPlace::Answer => self.pass_answer(sink),
            AnswerPlace::Prose => {
                let text = self.written[self.read..].to_string();
                self.read = self.written.len();
                self.show(&text, sink);
            }
            AnswerPlace::Held | AnswerPlace::End => {}
        }
    }

    /// Whether text was passed on.
    pub(super) fn has_shown(&self) -> bool {
        !self.shown.is_empty()
    }

    /// Replaces the text of the reply by what it says: a call, or the text of the answer.
    pub(super) fn finish(
        mut self,
        mut reply: ModelReply,
        call_number: usize,
        sink: &mut EventSink<'_>,
    ) -> ModelReply {
        let written = std::mem::take(&mut reply.message.content);
        // A server that ends a whole object at a limit has not cut it.
        let object = ObjectReply::read(&written).filter(|_| reply.finish != FinishReason::Filtered);
        let Some(object) = object else {
            // Some servers do not say that they have cut a reply off.
            let is_cut = self.place != AnswerPlace::Prose
                && is_object_start(&written)
                && (reply.finish != FinishReason::Complete || has_own_field(&written));
            if is_cut && reply.finish == FinishReason::Complete {
                reply.finish = FinishReason::Length;
            }
            reply.message.content = if is_cut { self.shown } else { written };
            return reply;
        };
        self.show_thought(&object.thought, sink);
        reply.message.written = written;
        (reply.finish, reply.cause) = (FinishReason::Complete, None);
        match object.answer() {
            Some(text) => {
                let rest = text.strip_prefix(&*self.shown).unwrap_or_default();
                self.show(rest, sink);
                reply.message.content = text.to_string();
            }
            None => {
                let call = TextCall { name: object.tool, arguments: object.arguments };
                reply.message.calls = vec![call.to_call(call_number)];
            }
        }
        reply
    }

    /// Looks for the text of an answer, which follows the thought and the name of the tool.
    fn find_answer(&mut self, sink: &mut EventSink<'_>) {
        let text = self.written.trim_start();
        if !text.is_empty() && !is_object_start(text) && !text.starts_with('`') {
            self.place = AnswerPlace::Prose;
            return;
        }
        let Some((thought, start)) = answer_start(&self.written) else { return };
        (self.place, self.read) = (AnswerPlace::Answer, start);
        self.show_thought(&thought, sink);
    }

    /// Passes on what is there of an answer, its escapes decoded.
    fn pass_answer(&mut self, sink: &mut EventSink<'_>) {
        let (length, is_whole) = string_length(&self.written[self.read..]);
        let text = decoded(&self.written[self.read..self.read + length]);
        self.read += length;
        if is_whole {
            self.place = AnswerPlace::End;
        }
        self.show(&text, sink);
    }

    fn show(&mut self, text: &str, sink: &mut EventSink<'_>) {
        if !text.is_empty() {
            self.shown.push_str(text);
            sink(Event::Text(text));
        }
    }

    fn show_thought(&mut self, thought: &str, sink: &mut EventSink<'_>) {
        if !thought.is_empty() && !std::mem::replace(&mut self.has_shown_thought, true) {
            sink(Event::Reasoning(thought));
        }
    }
}

fn is_object_start(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// Whether the first field of an object is one of a constrained reply, not of an answer in JSON.
fn has_own_field(text: &str) -> bool {
    let inner = text.trim_start().trim_start_matches('{').trim_start();
    whole_string(inner).is_some_and(|(name, _)| name == THOUGHT || name == TOOL)
}

/// The thought, and where the text of the answer begins, if the reply is one and has come so far.
fn answer_start(written: &str) -> Option<(String, usize)> {
    let mut rest = written.trim_start().strip_prefix('{')?;
    let (mut thought, mut is_answer) = (String::new(), false);
    loop {
        let (name, behind) = whole_string(rest.trim_start_matches([' ', '\t', '\r', '\n', ',']))?;
        rest = behind.trim_start().strip_prefix(':')?.trim_start();
        if name == TEXT && is_answer {
            return Some((thought, written.len() - rest.strip_prefix('"')?.len()));
        }
        let (value, behind) = whole_string(rest)?;
        match name.as_str() {
            THOUGHT => thought = value,
            TOOL => is_answer = value == ANSWER,
            _ => {}
        }
        rest = behind;
    }
}

/// The string that a text begins with, if it is whole, and what follows it.
fn whole_string(text: &str) -> Option<(String, &str)> {
    let inner = text.strip_prefix('"')?;
    let (length, is_whole) = string_length(inner);
    is_whole.then(|| (decoded(&inner[..length]), &inner[length + 1..]))
}

/// How many bytes of the inner part of a string are there without a broken escape, and whether its
/// end follows them.
fn string_length(text: &str) -> (usize, bool) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let length = match (bytes[at], bytes.get(at + 1)) {
            (b'"', _) => return (at, true),
            // The second half of a pair of surrogates may follow.
            (b'\\', Some(b'u')) if text[at..].get(2..4).is_some_and(is_high_surrogate) => 12,
            (b'\\', Some(b'u')) => 6,
            (b'\\', _) => 2,
            _ => 1,
        };
        if at + length > bytes.len() {
            break;
        }
        at += length;
    }
    (text.floor_char_boundary(at), false)
}

fn is_high_surrogate(start: &str) -> bool {
    matches!(start.to_ascii_lowercase().as_str(), "d8" | "d9" | "da" | "db")
}

/// The inner part of a JSON string, decoded.
fn decoded(inner: &str) -> String {
    match inexact_json::read(&format!("\"{inner}\"")) {
        Ok(Value::String(text)) => text,
        _ => inner.to_string(),
    }
}
