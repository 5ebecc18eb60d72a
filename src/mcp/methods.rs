//! The table of methods, with their handlers and the protocol eras that have them.

use super::McpServer;
use super::era::{Era, RequestMeta};
use super::request_context::{HandlerResult, RequestContext};
use super::rpc::{METHOD_NOT_FOUND, RpcError, RpcRequest};
use super::{calls, lifecycle, prompts, resources, skills};
use crate::limits;
use crate::text;

/// Handler of a method.
enum Handler {
    /// Answers immediately.
    Immediate(fn(&McpServer<'_>, &RequestContext<'_, '_>) -> HandlerResult),
    /// Answers immediately, or queues the request (`None`).
    Queued(fn(&McpServer<'_>, &RequestContext<'_, '_>) -> Option<HandlerResult>),
}

/// A row of the table.
struct Method {
    name: &'static str,
    /// Eras that have this method.
    eras: &'static [Era],
    /// Whether clients may call the method before `initialize`.
    is_allowed_first: bool,
    handler: Handler,
}

const BOTH_ERAS: &[Era] = &[Era::Legacy, Era::Modern];
const MODERN_ONLY: &[Era] = &[Era::Modern];

const fn method(
    name: &'static str,
    eras: &'static [Era],
    handler: fn(&McpServer<'_>, &RequestContext<'_, '_>) -> HandlerResult,
) -> Method {
    Method { name, eras, is_allowed_first: false, handler: Handler::Immediate(handler) }
}

const fn initial_method(
    name: &'static str,
    handler: fn(&McpServer<'_>, &RequestContext<'_, '_>) -> HandlerResult,
) -> Method {
    Method { is_allowed_first: true, ..method(name, &[Era::Legacy], handler) }
}

static METHODS: &[Method] = &[
    initial_method("initialize", lifecycle::initialize),
    initial_method("ping", |_, _| Ok(lifecycle::ping())),
    method("server/discover", MODERN_ONLY, |server, _| Ok(lifecycle::discover(server))),
    method("tools/list", BOTH_ERAS, calls::list),
    Method {
        name: "tools/call",
        eras: BOTH_ERAS,
        is_allowed_first: false,
        handler: Handler::Queued(calls::call),
    },
    method("prompts/list", BOTH_ERAS, prompts::list),
    method("prompts/get", BOTH_ERAS, prompts::get),
    method("resources/list", BOTH_ERAS, resources::list),
    method("resources/templates/list", BOTH_ERAS, |_, request| resources::templates(request)),
    method("resources/read", BOTH_ERAS, resources::read),
    method("resources/directory/read", BOTH_ERAS, resources::read_directory),
    method("skills/list", BOTH_ERAS, skills::list),
    method("skills/get", BOTH_ERAS, skills::get),
];

/// Answers a request, and returns the era whose rules apply; `None` if the request was
/// queued.
pub(super) fn answer(
    server: &McpServer<'_>,
    request: &RpcRequest<'_>,
) -> Option<(Era, HandlerResult)> {
    let unknown = || {
        let method = text::one_line(&request.method, limits::SUMMARY_CHARS);
        RpcError::new(METHOD_NOT_FOUND, format!("there is no method `{method}`"))
    };
    let Some(method) = METHODS.iter().find(|method| method.name == request.method) else {
        // Another version may have the method: an unsupported version is reported first.
        let meta = RequestMeta::from_request(request).ok().filter(RequestMeta::names_version);
        let error = meta.and_then(|meta| meta.era(false).err());
        return Some((Era::Legacy, Err(error.unwrap_or_else(unknown))));
    };
    let is_initialized = method.is_allowed_first
        || server.is_initialized.get() && method.eras.contains(&Era::Legacy);
    let meta =
        RequestMeta::from_request(request).and_then(|meta| Ok((meta.era(is_initialized)?, meta)));
    let (era, meta) = match meta {
        Ok(pair) => pair,
        Err(error) => return Some((Era::Legacy, Err(error))),
    };
    if !method.eras.contains(&era) {
        return Some((era, Err(unknown())));
    }
    let request = RequestContext { raw: request, era, meta };
    let answer = match method.handler {
        Handler::Immediate(handler) => Some(handler(server, &request)),
        Handler::Queued(handler) => handler(server, &request),
    };
    answer.map(|answer| (era, answer))
}
