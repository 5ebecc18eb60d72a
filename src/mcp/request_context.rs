//! A request as those who answer it see it, and what they answer with.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::era::{Era, RequestMeta, RpcResult};
use super::rpc::{RpcError, RpcRequest};

/// A result, or why there is none.
pub(super) type HandlerResult = Result<RpcResult, RpcError>;

/// A request with what it says of itself.
pub(super) struct RequestContext<'a, 'l> {
    /// The request.
    pub request: &'a RpcRequest<'l>,
    /// Which rules it goes by.
    pub era: Era,
    /// What it says of itself.
    pub meta: RequestMeta<'l>,
}

/// What a call of a tool and the choice of a prompt say.
#[derive(Deserialize)]
pub(super) struct NamedParams<'l> {
    /// Of the tool or the prompt.
    #[serde(borrow)]
    pub name: Cow<'l, str>,
    /// Any JSON: whoever has the name judges them.
    #[serde(borrow)]
    pub arguments: Option<&'l RawValue>,
}

impl<'l> RequestContext<'_, 'l> {
    /// What is named, and with which arguments.
    pub(super) fn named(&self) -> Result<NamedParams<'l>, RpcError> {
        self.request.params()
    }
}
