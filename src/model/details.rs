//! Signed thoughts (`reasoning_details`), which the endpoint wants to see again
//! as they are.

use serde_json::Value;

use crate::bounded;
use crate::limits;
use crate::model::unusable::Fault;
use crate::model::wire::Loose;

/// All pieces of them, within bounds.
#[derive(Debug, Default)]
pub struct Details {
    pub list: Vec<Value>,
    bytes: usize,
    values: usize,
}

impl Details {
    /// Takes the pieces that an event brought.
    pub fn take(&mut self, details: &Loose<'_>) -> Result<(), Fault> {
        if let Loose::Other(Value::Array(details)) = details {
            let size = |value: &Value| value.to_string().len();
            self.bytes += details.iter().map(size).sum::<usize>();
            self.values += details.iter().map(bounded::count).sum::<usize>();
            if self.bytes > limits::MESSAGE_BYTES {
                return Err(Fault::TooLarge("reasoning"));
            }
            if self.values > limits::JSON_VALUES {
                return Err(Fault::TooMany("values"));
            }
            self.list.extend(details.iter().cloned());
        }
        Ok(())
    }
}
