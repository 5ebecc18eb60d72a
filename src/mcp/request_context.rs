//! A request as the handlers of methods get it, and their result.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::era::{Era, RequestMeta, RpcResult};
use super::rpc::{RpcError, RpcRequest};

/// Result of a handler.
pub(super) type HandlerResult = Result<RpcResult, RpcError>;

/// A request with its metadata and protocol era.
pub(super) struct RequestContext<'a, 'l> {
    /// The JSON-RPC request.
    pub raw: &'a RpcRequest<'l>,
    /// The era whose rules apply.
    pub era: Era,
    /// The `_meta` of its parameters.
    pub meta: RequestMeta<'l>,
}

/// Parameters of `tools/call` and `prompts/get`.
#[derive(Deserialize)]
pub(super) struct NamedParams<'l> {
    /// Name of the tool or the prompt.
    #[serde(borrow)]
    pub name: Cow<'l, str>,
    /// Any JSON: the tool or prompt checks it.
    #[serde(borrow)]
    pub arguments: Option<&'l RawValue>,
}

impl<'l> RequestContext<'_, 'l> {
    /// Parses the name and the arguments.
    pub(super) fn named_params(&self) -> Result<NamedParams<'l>, RpcError> {
        self.raw.parse_params()
    }
}
