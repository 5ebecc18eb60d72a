//! The same call that fails in the same way several times in a row: a model that is stuck.

use serde_json::Value;

use crate::error::{Error, ErrorKind};
use crate::limits;
use crate::text;
use crate::tool::{ToolCall, ToolResult};

/// The last failure of a turn, and how often it occurred in a row.
#[derive(Default)]
pub(super) struct RepeatedFailures {
    /// Name, arguments and result.
    last: Option<[String; 3]>,
    count: usize,
}

impl RepeatedFailures {
    /// Counts a call.
    ///
    /// # Errors
    ///
    /// The call failed too often in a row, always in the same way.
    pub(super) fn count(&mut self, call: &ToolCall, result: &ToolResult) -> Result<(), Error> {
        let failure =
            (!result.ok).then(|| [call.name.clone(), call.arguments.clone(), essence_of(result)]);
        self.count = match &failure {
            Some(_) if failure == self.last => self.count + 1,
            Some(_) => 1,
            None => 0,
        };
        self.last = failure;
        if self.count < limits::EQUAL_FAILURES {
            return Ok(());
        }
        let name = text::one_line(&call.name, limits::SUMMARY_CHARS);
        let message = format!(
            "failed to finish the turn: the same call of {name} failed {} times in the same way",
            limits::EQUAL_FAILURES
        );
        Err(Error::new(ErrorKind::Limit, message)
            .with_hint("the last lines about the tool show why; another model may do it"))
    }
}

/// What makes a failure another one: exit status, output and error, not the duration or a hint.
fn essence_of(result: &ToolResult) -> String {
    let json = result.object.as_ref().unwrap_or(&result.content);
    match serde_json::from_str(json) {
        Ok(Value::Object(mut fields)) => {
            fields.retain(|name, _| !matches!(&**name, "duration_ms" | "hint" | "note"));
            Value::Object(fields).to_string()
        }
        _ => result.full_text().into_owned(),
    }
}
