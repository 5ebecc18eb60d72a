//! A model that plays prepared steps, for the demo and for tests of the loop. The tools it
//! calls are the real ones.

use std::cell::Cell;

use crate::{FinishReason, Model, ModelReply, ModelRequest};
use base::error::{Error, ErrorKind, Result};
use base::event::{Event, EventSink};
use base::message::{AssistantMessage, Message};

/// One step: returns the reply to the messages so far.
pub type ScriptedStep = fn(&[Message]) -> AssistantMessage;

/// A model that plays its steps in order, one for each request.
#[derive(Debug)]
pub struct ScriptedModel {
    name: &'static str,
    steps: &'static [ScriptedStep],
    next: Cell<usize>,
    /// Number of calls so far, from which their ids are made.
    calls: Cell<usize>,
}

impl ScriptedModel {
    /// Creates a model with this name and these steps.
    pub fn new(name: &'static str, steps: &'static [ScriptedStep]) -> ScriptedModel {
        ScriptedModel { name, steps, next: Cell::new(0), calls: Cell::new(0) }
    }
}

impl Model for ScriptedModel {
    fn name(&self) -> &str {
        self.name
    }

    fn complete(&self, request: &ModelRequest<'_>, sink: &mut EventSink<'_>) -> Result<ModelReply> {
        let step = self.steps.get(self.next.replace(self.next.get() + 1)).ok_or_else(|| {
            Error::new(ErrorKind::Endpoint, "the scripted model has no step left")
        })?;
        let mut message = step(request.messages);
        for call in &mut message.calls {
            self.calls.set(self.calls.get() + 1);
            call.id = format!("call_{}", self.calls.get());
        }
        if !message.content.is_empty() {
            sink(Event::Text(&message.content));
        }
        Ok(ModelReply { message, finish: FinishReason::Complete, cause: None, usage: None })
    }
}
