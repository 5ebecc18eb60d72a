//! Signed thoughts (`reasoning_details`), which the endpoint wants to see again
//! as they are.

use serde_json::Value;

use crate::bounded;
use crate::limits;
use crate::model::invalid_response::InvalidResponse;
use crate::model::wire::LooseValue;

/// All pieces of them, within bounds.
#[derive(Debug, Default)]
pub(super) struct ReasoningDetails {
    pub list: Vec<Value>,
    bytes: usize,
    values: usize,
}

impl ReasoningDetails {
    /// Takes the pieces that an event brought.
    pub(super) fn take(&mut self, details: &LooseValue<'_>) -> Result<(), InvalidResponse> {
        if let LooseValue::Other(Value::Array(details)) = details {
            let size = |value: &Value| value.to_string().len();
            self.bytes += details.iter().map(size).sum::<usize>();
            self.values += details.iter().map(bounded::count).sum::<usize>();
            if self.bytes > limits::MESSAGE_BYTES {
                return Err(InvalidResponse::TooLarge("reasoning"));
            }
            if self.values > limits::JSON_VALUES {
                return Err(InvalidResponse::TooMany("values"));
            }
            self.list.extend(details.iter().cloned());
        }
        Ok(())
    }
}
