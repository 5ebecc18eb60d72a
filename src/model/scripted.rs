//! A model that needs nobody: it plays prepared steps. The demo and tests of
//! the loop use it; the tools it calls are the real ones.

use std::cell::Cell;

use crate::error::{Error, ErrorKind, Result};
use crate::event::{Event, EventSink};
use crate::message::{AssistantMessage, Message};
use crate::model::{FinishReason, Model, ModelReply, ModelRequest};

/// One step: what to say after the messages so far.
pub type ScriptedStep = fn(&[Message]) -> AssistantMessage;

/// Plays its steps in order, one a request.
#[derive(Debug)]
pub struct ScriptedModel {
    name: &'static str,
    steps: &'static [ScriptedStep],
    next: Cell<usize>,
    /// Calls so far: each has an id of its own.
    calls: Cell<usize>,
}

impl ScriptedModel {
    /// A model of this name that will say this.
    pub fn new(name: &'static str, steps: &'static [ScriptedStep]) -> ScriptedModel {
        ScriptedModel { name, steps, next: Cell::new(0), calls: Cell::new(0) }
    }
}

impl Model for ScriptedModel {
    fn name(&self) -> &str {
        self.name
    }

    fn complete(&self, request: &ModelRequest<'_>, sink: &mut EventSink<'_>) -> Result<ModelReply> {
        let step = self
            .steps
            .get(self.next.replace(self.next.get() + 1))
            .ok_or_else(|| Error::new(ErrorKind::Endpoint, "the script of the model is over"))?;
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
