//! The same call with the same result several times in a row: a model that is stuck.

use serde_json::{Map, Value};

use base::digest::sha256;
use base::error::{Error, ErrorKind};
use base::limits;
use base::text;
use base::tool::{Action, ToolCall, ToolResult, parse_arguments};
use host::scratch::without_random_names;

/// Result in place of one that the model already has.
const KNOWN_RESULT: &str = "the same call gave the same result twice: use it, or answer";

/// The last call of a turn, and how often it occurred in a row.
#[derive(Default)]
pub(super) struct RepeatedCalls {
    last: Option<CallEssence>,
    count: usize,
    /// Whether the last call was the same as the one before it, whatever their results.
    is_equal_call: bool,
    /// How often in the turn a call brought a result that an equal call had brought before.
    times_stuck: usize,
    /// Digests of all calls with their results.
    made: Vec<String>,
    /// How many calls in a row failed.
    failures: usize,
}

/// The compared parts of a call: name, arguments, success and result.
type CallEssence = (String, Result<Map<String, Value>, String>, bool, String);

impl RepeatedCalls {
    /// Counts a call, and returns the result that the model gets. `is_first`: no other call
    /// precedes it in its message.
    ///
    /// # Errors
    ///
    /// The call was made too often in a row, always with the same result.
    pub(super) fn count(
        &mut self,
        call: &ToolCall,
        mut result: ToolResult,
        is_first: bool,
    ) -> (ToolResult, Result<(), Error>) {
        let arguments = parse_arguments(&call.arguments).map_err(|_| call.arguments.clone());
        let essence = (call.name.clone(), arguments, result.ok, essence_of(&result));
        self.is_equal_call =
            self.last.as_ref().is_some_and(|it| (&it.0, &it.1) == (&essence.0, &essence.1));
        let digest = sha256(format!("{essence:?}").as_bytes());
        self.times_stuck += usize::from(self.made.contains(&digest));
        self.made.push(digest);
        self.failures = if result.ok { 0 } else { self.failures + 1 };
        if self.last.as_ref() != Some(&essence) {
            self.count = 0;
        }
        // Before the next message the model does not know the result.
        self.count += usize::from(self.count == 0 || is_first || !result.ok);
        self.last = Some(essence);
        let most = match &result.action {
            _ if !result.ok => limits::EQUAL_FAILURES,
            // They may wait for something.
            Some(Action::RanScript(_) | Action::RanCommand(_)) => limits::EQUAL_RUNS,
            _ => limits::EQUAL_RESULTS,
        };
        let way = if result.ok {
            format!("gave the same result {most} times in a row")
        } else {
            format!("failed {most} times in the same way")
        };
        if result.ok && self.count > limits::EQUAL_RESULTS_SHOWN {
            (result.document, result.image) = (None, None);
            (result.content, result.untrusted) = (KNOWN_RESULT.into(), Some(String::new()));
        }
        if self.count < most {
            return (result, Ok(()));
        }
        let name = text::one_line(&call.name, limits::SUMMARY_CHARS);
        let message = format!("failed to finish the turn: the same call of {name} {way}");
        let error = Error::new(ErrorKind::Limit, message)
            .with_hint("the last lines about the tool show why; another model may do it");
        (result, Err(error))
    }
}

impl RepeatedCalls {
    /// The tool that the next reply should not call: that of the last call, if the call before it
    /// was the same, or if it read a skill, which is to be used now.
    pub(super) fn left_out_tool(&self) -> Option<&str> {
        let name = self.last.as_ref().map(|(name, ..)| name.as_str());
        name.filter(|name| self.is_equal_call || *name == "get_skill")
    }

    /// Whether the last call failed, and the one before it did not.
    pub(super) fn has_just_failed(&self) -> bool {
        self.failures == 1
    }

    /// How often in the turn a call brought nothing new.
    pub(super) fn times_stuck(&self) -> usize {
        self.times_stuck
    }
}

/// Returns the compared parts of a result: exit status, output and error, not duration, hint or a
/// script's temporary folder.
fn essence_of(result: &ToolResult) -> String {
    let image = result.image.as_ref().map(|image| sha256(image.url.as_bytes()));
    // Other successful results are the user's own text.
    let json = result.object.as_ref().or(Some(&result.content).filter(|_| !result.ok));
    let fields = json.and_then(|json| serde_json::from_str(json).ok());
    let text = match fields {
        Some(Value::Object(mut fields)) => {
            fields.retain(|name, _| !matches!(&**name, "duration_ms" | "hint" | "note"));
            Value::Object(fields).to_string()
        }
        _ => result.full_text().into_owned(),
    };
    without_random_names(&text) + &image.unwrap_or_default()
}
