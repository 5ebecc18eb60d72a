//! `tools/list` and `tools/call`, for the same table of tools as in a conversation. A
//! call that starts a program is queued, can be cancelled, and reports its progress if
//! the client requests it.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::McpServer;
use super::era::{Era, RpcResult};
use super::exposed_tools::{self, offered_tools, tool_json, unknown_tool_message};
use super::pages::ResultPage;
use super::request_context::{HandlerResult, RequestContext};
use super::rpc::{Id, RpcError};
use super::running::RunningCall;
use super::skill_tools;
use agent::tools::{self, ToolContext, Tools};
use base::error::Result;
use base::event::{Actions, Event};
use base::limits;
use base::text;
use base::tool::{ToolCall, ToolResult};

/// Queued call of a tool.
pub(super) struct PendingCall {
    id: Id,
    era: Era,
    call: ToolCall,
    /// The client's progress token, as JSON.
    progress_token: Option<String>,
}

impl PendingCall {
    /// Memory that the call uses.
    fn size_bytes(&self) -> usize {
        // The call contains the id as well.
        let token = self.progress_token.as_ref().map_or(0, String::len);
        2 * self.call.id.len() + self.call.arguments.len() + token
    }
}

/// Lists the tools, the built-in ones first.
pub(super) fn list(server: &McpServer<'_>, request: &RequestContext<'_, '_>) -> HandlerResult {
    let page = ResultPage::from_request(request)?;
    let mut tools: Vec<(String, Value)> = Vec::new();
    for (index, tool) in offered_tools(server).enumerate() {
        let names = (tool.name(), tool.title());
        let effects = tool.effects(&server.context);
        let mut entry = tool_json(names, tool.description(), &tool.parameters(), effects);
        if let Some(output) = tool.output() {
            entry["outputSchema"] = output;
        }
        // Sorts before the keys of all skills.
        tools.push((format!("0 {index:02}"), entry));
    }
    if server.skills_as_tools {
        tools.extend(skill_tools::list(server));
    }
    Ok(page.reply("tools", limits::LIST_PAGE_ENTRIES, tools, |_, tool| Some(tool)))
}

/// Calls a tool, or queues the call (`None`).
pub(super) fn call(
    server: &McpServer<'_>,
    request: &RequestContext<'_, '_>,
) -> Option<HandlerResult> {
    let (call, starts_programs) = match requested_call(server, request) {
        Ok(call) => call,
        Err(error) => return Some(Err(error)),
    };
    if !starts_programs {
        let result = server.call(&call);
        return Some(Ok(reply(&call, &result)));
    }
    let token = request.meta.progress_token.filter(|token| Id::parse(token).is_some());
    let new = PendingCall {
        id: request.raw.id.clone(),
        era: request.era,
        call,
        progress_token: token.map(|token| token.get().to_string()),
    };
    let mut waiting = server.waiting.borrow_mut();
    let kept: usize = waiting.iter().map(PendingCall::size_bytes).sum();
    let reason = if waiting.len() >= limits::QUEUED_CALLS {
        "too many calls are queued"
    } else if kept + new.size_bytes() > limits::QUEUED_CALLS_BYTES {
        "the queued calls are too large"
    } else {
        waiting.push_back(new);
        return None;
    };
    let result = ToolResult::failure(format!("{reason}: try again when some are done"));
    Some(Ok(reply(&new.call, &result)))
}

/// Reads the requested call, and returns whether it starts a program.
fn requested_call(
    server: &McpServer<'_>,
    request: &RequestContext<'_, '_>,
) -> std::result::Result<(ToolCall, bool), RpcError> {
    let params = request.named_params()?;
    let mut call = ToolCall {
        id: request.raw.id.to_string(),
        name: params.name.into_owned(),
        arguments: params.arguments.map_or("", RawValue::get).to_string(),
        ..ToolCall::default()
    };
    if server.skills_as_tools && tools::find_builtin(&call.name).is_none() {
        call = skill_tools::to_get_skill(server, call)?;
    }
    match tools::find_builtin(&call.name) {
        Some(row) => Ok((call, row.tool.effects(&server.context).starts_programs)),
        None => Err(RpcError::invalid_params(unknown_tool_message(server, &call.name))),
    }
}

/// Converts a tool's result into a response.
fn reply(call: &ToolCall, result: &ToolResult) -> RpcResult {
    let mut content = vec![json!({"type": "text", "text": result.full_text()})];
    if let Some((mime, data)) = result.image.as_ref().and_then(|image| image.inline_data()) {
        content.push(json!({"type": "image", "data": data, "mimeType": mime}));
    }
    let reply = RpcResult::new("content", content).with("isError", !result.ok);
    match structured(&call.name, result) {
        Some(fields) => reply.with("structuredContent", fields),
        None => reply,
    }
}

/// Returns the result as JSON if it has the members that the tool's output schema
/// requires: a client may refuse other JSON. A failure without them is only a text.
fn structured(tool: &str, result: &ToolResult) -> Option<Map<String, Value>> {
    let schema = tools::find_builtin(tool)?.tool.output()?;
    let object = result.object.as_ref().unwrap_or(&result.content);
    let fields: Map<String, Value> = serde_json::from_str(object).ok()?;
    let mut required = schema["required"].as_array()?.iter().filter_map(Value::as_str);
    required.all(|name| fields.contains_key(name)).then_some(fields)
}

impl McpServer<'_> {
    /// Calls a tool and records the call and its result.
    fn call(&self, call: &ToolCall) -> ToolResult {
        let context = ToolContext { event_source: Some(self), ..self.context.clone() };
        let row = tools::find_builtin(&call.name);
        let needs_skill = row.is_some_and(|row| row.needs.acts_for_skills());
        let tools = Tools::for_client(context, !needs_skill || exposed_tools::has_skills(self));
        let sink = &mut |event: Event<'_>| self.output.borrow_mut().show(&event);
        let mut stats = self.stats.take();
        let result = tools.call_with_events(call, &mut stats, sink, |run| run());
        // A list of them would grow as long as the server runs.
        stats.actions = Actions::default();
        self.output.borrow_mut().set_stats(&stats);
        self.stats.set(stats);
        result.unwrap_or_else(|stop| ToolResult::failure(stop.to_string()))
    }

    /// Removes the next queued call.
    pub(super) fn next_queued_call(&self) -> Option<PendingCall> {
        self.waiting.borrow_mut().pop_front()
    }

    /// Runs a queued call to its end, and answers it unless it was cancelled.
    pub(super) fn run_queued_call(&self, waiting: &PendingCall) -> Result<()> {
        let running = RunningCall::new(waiting.id.clone(), waiting.progress_token.clone());
        self.running.replace(Some(running));
        let result = self.call(&waiting.call);
        let finished = self.running.take();
        let is_active = finished.is_some_and(|call| call.is_active());
        if is_active && !self.has_ended.get() {
            self.context.cancellation.check()?;
            let reply = reply(&waiting.call, &result);
            self.send(&waiting.era.response(&waiting.id, reply));
        }
        Ok(())
    }

    /// Cancels a running or queued call, which then gets no answer. An unknown or
    /// finished call is ignored.
    pub(super) fn cancel(&self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        struct CancelParams<'l> {
            #[serde(borrow, rename = "requestId")]
            id: &'l RawValue,
        }
        let params = params.and_then(|params| serde_json::from_str(params.get()).ok());
        let Some(id) = params.and_then(|params: CancelParams<'_>| Id::parse(params.id)) else {
            return;
        };
        if let Some(running) = &*self.running.borrow()
            && running.id == id
        {
            running.cancel();
        }
        self.waiting.borrow_mut().retain(|waiting| waiting.id != id);
    }

    /// Warns about calls that are still queued at the end of standard input.
    pub(super) fn warn_unrun_calls(&self) {
        let waiting = self.waiting.borrow().len();
        if waiting > 0 {
            let calls = text::counted(waiting, "call");
            self.warn(&format!("standard input has ended: {calls} did not run"));
        }
    }
}
