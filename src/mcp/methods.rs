//! What can be asked: one table, which also says in which era.

use super::McpServer;
use super::era::{Era, RequestMeta};
use super::request_context::{HandlerResult, RequestContext};
use super::rpc::{METHOD_NOT_FOUND, RpcError, RpcRequest};
use super::{calls, lifecycle, prompts, resources, skills};
use crate::limits;
use crate::text;

/// What answers.
enum Handler {
    /// At once.
    Now(fn(&McpServer<'_>, &RequestContext<'_, '_>) -> HandlerResult),
    /// When its turn comes, unless it can be answered without (`None`: later).
    InTurn(fn(&McpServer<'_>, &RequestContext<'_, '_>) -> Option<HandlerResult>),
}

/// A row of the table.
struct Method {
    name: &'static str,
    /// In which eras it exists.
    eras: &'static [Era],
    /// Whether it needs no `initialize` before it.
    comes_first: bool,
    answer: Handler,
}

const BOTH: &[Era] = &[Era::Legacy, Era::Modern];
const MODERN: &[Era] = &[Era::Modern];

const fn method(
    name: &'static str,
    eras: &'static [Era],
    answer: fn(&McpServer<'_>, &RequestContext<'_, '_>) -> HandlerResult,
) -> Method {
    Method { name, eras, comes_first: false, answer: Handler::Now(answer) }
}

const fn first(
    name: &'static str,
    answer: fn(&McpServer<'_>, &RequestContext<'_, '_>) -> HandlerResult,
) -> Method {
    Method { comes_first: true, ..method(name, &[Era::Legacy], answer) }
}

static METHODS: &[Method] = &[
    first("initialize", lifecycle::initialize),
    first("ping", |_, _| Ok(lifecycle::ping())),
    method("server/discover", MODERN, |server, _| Ok(lifecycle::discover(server))),
    method("tools/list", BOTH, calls::list),
    Method {
        name: "tools/call",
        eras: BOTH,
        comes_first: false,
        answer: Handler::InTurn(calls::call),
    },
    method("prompts/list", BOTH, prompts::list),
    method("prompts/get", BOTH, prompts::get),
    method("resources/list", BOTH, resources::list),
    method("resources/templates/list", BOTH, |_, asked| resources::templates(asked)),
    method("resources/read", BOTH, resources::read),
    method("resources/directory/read", BOTH, resources::read_directory),
    method("skills/list", BOTH, skills::list),
    method("skills/get", BOTH, skills::get),
];

/// Answers a request, and tells by which rules.
pub(super) fn answer(
    server: &McpServer<'_>,
    request: &RpcRequest<'_>,
) -> Option<(Era, HandlerResult)> {
    let unknown = || {
        let method = text::one_line(&request.method, limits::SUMMARY_CHARS);
        RpcError::new(METHOD_NOT_FOUND, format!("there is no method `{method}`"))
    };
    let Some(method) = METHODS.iter().find(|method| method.name == request.method) else {
        // Another version may have it: who names one is told first which are known.
        let judged = RequestMeta::of(request).ok().filter(RequestMeta::names_version);
        let fault = judged.and_then(|meta| meta.era(false).err());
        return Some((Era::Legacy, Err(fault.unwrap_or_else(unknown))));
    };
    let is_initialized =
        method.comes_first || server.is_initialized.get() && method.eras.contains(&Era::Legacy);
    let meta = RequestMeta::of(request).and_then(|meta| Ok((meta.era(is_initialized)?, meta)));
    let (era, meta) = match meta {
        Ok(known) => known,
        Err(fault) => return Some((Era::Legacy, Err(fault))),
    };
    if !method.eras.contains(&era) {
        return Some((era, Err(unknown())));
    }
    let asked = RequestContext { request, era, meta };
    let answer = match method.answer {
        Handler::Now(answer) => Some(answer(server, &asked)),
        Handler::InTurn(answer) => answer(server, &asked),
    };
    answer.map(|answer| (era, answer))
}
