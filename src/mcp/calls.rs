//! `tools/list` and `tools/call`: the same table of tools as everywhere, and the
//! same doors to it. A call that starts a program waits for its turn, can be
//! cancelled, and tells of its progress where that is wanted.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::McpServer;
use super::era::{Era, RpcResult};
use super::exposed_tools::{described, offered, unknown};
use super::pages::ResultPage;
use super::request_context::{HandlerResult, RequestContext};
use super::rpc::{Id, RpcError};
use super::running::RunningCall;
use super::skill_tools;
use crate::error::Result;
use crate::event::{Event, RunStats};
use crate::limits;
use crate::text;
use crate::tool::{ToolCall, ToolResult};
use crate::tools::{self, ToolContext, Tools};

/// A call that waits for its turn.
pub(super) struct PendingCall {
    id: Id,
    era: Era,
    call: ToolCall,
    /// What progress is told under, as JSON.
    progress_token: Option<String>,
}

impl PendingCall {
    /// What it keeps.
    fn bytes(&self) -> usize {
        // The id stands in the call as well.
        let token = self.progress_token.as_ref().map_or(0, String::len);
        2 * self.call.id.len() + self.call.arguments.len() + token
    }
}

/// The tools, our own first.
pub(super) fn list(server: &McpServer<'_>, asked: &RequestContext<'_, '_>) -> HandlerResult {
    let mut page = ResultPage::of(asked)?;
    for (place, tool) in offered(server).enumerate() {
        // In front of every skill's key.
        let key = format!("0 {place:02}");
        if page.is_past(&key) {
            continue;
        }
        let names = (tool.name(), tool.title());
        let effects = tool.effects(&server.context);
        let mut described = described(names, tool.description(), &tool.parameters(), effects);
        if let Some(output) = tool.output() {
            described["outputSchema"] = output;
        }
        page.pass(&key, Some(&described));
    }
    if server.skills_as_tools {
        skill_tools::list(server, &mut page);
    }
    Ok(page.reply("tools"))
}

/// Calls a tool, at once or when its turn comes.
pub(super) fn call(
    server: &McpServer<'_>,
    asked: &RequestContext<'_, '_>,
) -> Option<HandlerResult> {
    let (call, starts_programs) = match requested(server, asked) {
        Ok(requested) => requested,
        Err(fault) => return Some(Err(fault)),
    };
    if !starts_programs {
        let result = server.call(&call);
        return Some(Ok(reply(&call, &result)));
    }
    let token = asked.meta.progress_token.filter(|token| Id::of(token).is_some());
    let new = PendingCall {
        id: asked.request.id.clone(),
        era: asked.era,
        call,
        progress_token: token.map(|token| token.get().to_string()),
    };
    let mut waiting = server.waiting.borrow_mut();
    let kept: usize = waiting.iter().map(PendingCall::bytes).sum();
    let many = if waiting.len() >= limits::WAITING_CALLS {
        "many"
    } else if kept + new.bytes() > limits::WAITING_BYTES {
        "large"
    } else {
        waiting.push_back(new);
        return None;
    };
    let result = ToolResult::failure(format!(
        "too {many} calls are waiting for their turn: try again when some are done"
    ));
    Some(Ok(reply(&new.call, &result)))
}

/// The call that is asked for, and whether it starts a program.
fn requested(
    server: &McpServer<'_>,
    asked: &RequestContext<'_, '_>,
) -> std::result::Result<(ToolCall, bool), RpcError> {
    let params = asked.named()?;
    let mut call = ToolCall {
        id: asked.request.id.to_string(),
        name: params.name.into_owned(),
        arguments: params.arguments.map_or("", RawValue::get).to_string(),
        ..ToolCall::default()
    };
    if server.skills_as_tools && tools::find(&call.name).is_none() {
        call = skill_tools::meant(server, call)?;
    }
    match tools::find(&call.name) {
        Some(tool) => Ok((call, tool.effects(&server.context).starts_programs)),
        None => Err(RpcError::params(unknown(server, &call.name))),
    }
}

/// What goes back of a tool's result.
fn reply(call: &ToolCall, result: &ToolResult) -> RpcResult {
    #[derive(Serialize)]
    struct Called<'r> {
        content: Vec<Value>,
        #[serde(rename = "structuredContent", skip_serializing_if = "Option::is_none")]
        structured: Option<&'r RawValue>,
        #[serde(rename = "isError")]
        is_error: bool,
    }
    let mut content = vec![json!({"type": "text", "text": result.content})];
    if let Some((mime, data)) = result.image.as_ref().and_then(|image| image.data()) {
        content.push(json!({"type": "image", "data": data, "mimeType": mime}));
    }
    RpcResult::of(&Called {
        content,
        structured: structured(&call.name, &result.content),
        is_error: !result.ok,
    })
}

/// The result as JSON, where the tool says what that looks like: a client may
/// refuse what is not so. A bare failure is a text.
fn structured<'r>(tool: &str, content: &'r str) -> Option<&'r RawValue> {
    let schema = tools::find(tool)?.output()?;
    let members: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(content).ok()?;
    let required = schema["required"].as_array()?.iter();
    let mut required = required.filter_map(Value::as_str);
    required.all(|name| members.contains_key(name)).then_some(())?;
    serde_json::from_str(content).ok()
}

impl McpServer<'_> {
    /// Calls a tool between its records.
    fn call(&self, call: &ToolCall) -> ToolResult {
        let context = ToolContext { event_source: Some(self), ..self.context.clone() };
        let tools = Tools::by_hand(context);
        let show = &mut |event: Event<'_>| self.output.borrow_mut().show(&event);
        let result = match tools.call_told(call, show) {
            Ok(result) => result,
            Err(stop) => ToolResult::failure(stop.to_string()),
        };
        let tool_calls = self.called.get().saturating_add(1);
        self.called.set(tool_calls);
        self.output.borrow_mut().spend(RunStats { tool_calls, ..RunStats::default() });
        result
    }

    /// The call whose turn it is.
    pub(super) fn next_waiting(&self) -> Option<PendingCall> {
        self.waiting.borrow_mut().pop_front()
    }

    /// Runs a call to its end and answers it, unless nobody wants to know any more.
    pub(super) fn run(&self, waiting: &PendingCall) -> Result<()> {
        let running = RunningCall::new(waiting.id.clone(), waiting.progress_token.clone());
        self.running.replace(Some(running));
        let result = self.call(&waiting.call);
        let ran = self.running.take();
        let is_wanted = ran.is_some_and(|ran| ran.is_wanted());
        if is_wanted && !self.has_ended.get() {
            self.context.cancellation.check()?;
            self.send(&waiting.era.answer(&waiting.id, &reply(&waiting.call, &result)));
        }
        Ok(())
    }

    /// A call is not wanted any more: it gets no answer. One that nobody knows,
    /// or that is over, is left alone.
    pub(super) fn cancel(&self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        struct CancelParams<'l> {
            #[serde(borrow, rename = "requestId")]
            id: &'l RawValue,
        }
        let params = params.and_then(|params| serde_json::from_str(params.get()).ok());
        let Some(id) = params.and_then(|params: CancelParams<'_>| Id::of(params.id)) else {
            return;
        };
        if let Some(running) = &*self.running.borrow()
            && running.id == id
        {
            running.cancel();
        }
        self.waiting.borrow_mut().retain(|waiting| waiting.id != id);
    }

    /// Standard input has ended with calls that nobody waits for any more.
    pub(super) fn leave(&self) {
        let waiting = self.waiting.borrow().len();
        if waiting > 0 {
            let calls = text::counted(waiting, "call");
            self.warn(&format!("standard input has ended: {calls} did not run"));
        }
    }
}
