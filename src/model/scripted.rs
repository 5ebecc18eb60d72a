//! A model that needs nobody: it plays prepared steps. The demo and tests of
//! the loop use it; the tools it calls are the real ones.

use std::cell::Cell;

use crate::error::{Error, Kind, Result};
use crate::event::{Event, Listener};
use crate::message::{Assistant, Message};
use crate::model::{Finish, Model, Reply, Request};

/// One step: what to say after the messages so far.
pub type Step = fn(&[Message]) -> Assistant;

/// Plays its steps in order, one a request.
#[derive(Debug)]
pub struct ScriptedModel {
    name: &'static str,
    steps: &'static [Step],
    next: Cell<usize>,
    /// Calls so far: each has an id of its own.
    calls: Cell<usize>,
}

impl ScriptedModel {
    /// A model of this name that will say this.
    pub fn new(name: &'static str, steps: &'static [Step]) -> ScriptedModel {
        ScriptedModel { name, steps, next: Cell::new(0), calls: Cell::new(0) }
    }
}

impl Model for ScriptedModel {
    fn name(&self) -> &str {
        self.name
    }

    fn complete(&self, request: &Request<'_>, listener: &mut Listener<'_>) -> Result<Reply> {
        let step = self
            .steps
            .get(self.next.replace(self.next.get() + 1))
            .ok_or_else(|| Error::new(Kind::Endpoint, "the script of the model is over"))?;
        let mut message = step(request.messages);
        for call in &mut message.calls {
            self.calls.set(self.calls.get() + 1);
            call.id = format!("call_{}", self.calls.get());
        }
        if !message.content.is_empty() {
            listener(Event::Text(&message.content));
        }
        Ok(Reply { message, finish: Finish::Complete, cause: None, usage: None })
    }
}
