//! Signed reasoning (`reasoning_details`), which the endpoint expects back unchanged.

use serde_json::Value;

use crate::bounded;
use crate::limits;
use crate::model::invalid_response::InvalidResponse;
use crate::model::wire::LooseValue;

/// All pieces received, with limits on bytes and values.
#[derive(Debug, Default)]
pub(super) struct ReasoningDetails {
    pub list: Vec<Value>,
    bytes: usize,
    values: usize,
}

impl ReasoningDetails {
    /// Adds the pieces of an event.
    pub(super) fn add(&mut self, details: &LooseValue<'_>) -> Result<(), InvalidResponse> {
        if let LooseValue::Other(Value::Array(details)) = details {
            let size = |value: &Value| value.to_string().len();
            self.bytes += details.iter().map(size).sum::<usize>();
            self.values += details.iter().map(bounded::count_values).sum::<usize>();
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
