//! The table of methods, with their handlers and the protocol eras that have them.

use super::McpServer;
use super::era::{Era, RequestMeta};
use super::request_context::{HandlerResult, RequestContext};
use super::rpc::{METHOD_NOT_FOUND, RpcError, RpcRequest};
use super::{calls, lifecycle, prompts, resources, skills};
use base::limits;
use base::text;

/// Handler of a method.
enum Handler {
    /// Answers immediately.
    Immediate(fn(&McpServer<'_>, &RequestContext<'_, '_>) -> HandlerResult),
    /// Answers immediately, or queues the request (`None`).
    Queued(fn(&McpServer<'_>, &RequestContext<'_, '_>) -> Option<HandlerResult>),
}

/// The requests that may have a method.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Allowed {
    /// In both eras; in the older one after `initialize`.
    Always,
    /// In the older era, also before `initialize`.
    First,
    /// In the newer era.
    Modern,
}

use Allowed::{Always, First, Modern};
use Handler::{Immediate, Queued};

static METHODS: &[(&str, Allowed, Handler)] = &[
    ("initialize", First, Immediate(lifecycle::initialize)),
    ("ping", First, Immediate(|_, _| Ok(lifecycle::ping()))),
    ("server/discover", Modern, Immediate(|server, _| Ok(lifecycle::discover(server)))),
    ("tools/list", Always, Immediate(calls::list)),
    ("tools/call", Always, Queued(calls::call)),
    ("prompts/list", Always, Immediate(prompts::list)),
    ("prompts/get", Always, Immediate(prompts::get)),
    ("resources/list", Always, Immediate(resources::list)),
    ("resources/templates/list", Always, Immediate(|_, request| resources::templates(request))),
    ("resources/read", Always, Immediate(resources::read)),
    ("resources/directory/read", Always, Immediate(resources::read_directory)),
    ("skills/list", Always, Immediate(skills::list)),
    ("skills/get", Always, Immediate(skills::get)),
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
    let found = METHODS.iter().find(|(name, ..)| *name == request.method);
    let Some((_, allowed, handler)) = found else {
        // Another version may have the method: an unsupported version is reported first.
        let meta = RequestMeta::from_request(request).ok().filter(RequestMeta::names_version);
        let error = meta.and_then(|meta| meta.era(false).err());
        return Some((Era::Legacy, Err(error.unwrap_or_else(unknown))));
    };
    let is_initialized = match allowed {
        Always => server.is_initialized.get(),
        First => true,
        Modern => false,
    };
    let meta =
        RequestMeta::from_request(request).and_then(|meta| Ok((meta.era(is_initialized)?, meta)));
    let (era, meta) = match meta {
        Ok(pair) => pair,
        Err(error) => return Some((Era::Legacy, Err(error))),
    };
    if (*allowed, era) == (First, Era::Modern) {
        return Some((era, Err(unknown())));
    }
    let request = RequestContext { raw: request, era, meta };
    let answer = match handler {
        Immediate(handler) => Some(handler(server, &request)),
        Queued(handler) => handler(server, &request),
    };
    answer.map(|answer| (era, answer))
}
