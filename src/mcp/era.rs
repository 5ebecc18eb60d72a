//! The two eras of the protocol. Up to 2025-11-25 a client says once, with
//! `initialize`, which version it speaks; from 2026-07-28 on each request says so,
//! and no request depends on another. One process serves both.
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning>

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::rpc::{Id, RpcError, RpcRequest};
use crate::limits;
use crate::text;

/// The versions that begin with `initialize`, the newest first.
pub(super) const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The versions that each request names.
pub(super) const MODERN: [&str; 1] = ["2026-07-28"];

const UNSUPPORTED_VERSION: i32 = -32_022; // not a bound
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Where a result says whose it is.
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// Name and version of the server.
pub(super) fn implementation() -> Value {
    json!({"name": "skills-runner", "version": env!("CARGO_PKG_VERSION")})
}

/// Which rules a request goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// Those of the versions up to 2025-11-25.
    Legacy,
    /// Those of 2026-07-28.
    Modern,
}

/// What was asked for, as it goes back.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcResult {
    /// A JSON object.
    pub body: String,
    /// How long a client may keep it, in milliseconds, where it may at all.
    pub keep: Option<u64>,
}

impl RpcResult {
    /// A result that is not to be kept. A value of texts and numbers always has
    /// a JSON form.
    pub fn of(body: &impl serde::Serialize) -> RpcResult {
        RpcResult { body: serde_json::to_string(body).unwrap_or_default(), keep: None }
    }

    /// One that may be kept so many milliseconds.
    #[must_use]
    pub fn kept(self, milliseconds: u64) -> RpcResult {
        RpcResult { keep: Some(milliseconds), ..self }
    }
}

/// What a request says of itself.
#[derive(Debug, Default, Deserialize)]
pub struct RequestMeta<'l> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<&'l RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: Option<&'l RawValue>,
    /// What progress is told under: a string or an integer, as JSON.
    #[serde(borrow, rename = "progressToken")]
    pub progress_token: Option<&'l RawValue>,
}

impl<'l> RequestMeta<'l> {
    /// What stands in the request's parameters.
    pub fn of(request: &RpcRequest<'l>) -> Result<RequestMeta<'l>, RpcError> {
        #[derive(Deserialize)]
        struct MetaParams<'l> {
            #[serde(borrow, rename = "_meta")]
            meta: Option<&'l RawValue>,
        }
        let Some(meta) = request.params::<MetaParams<'l>>()?.meta else {
            return Ok(RequestMeta::default());
        };
        // A list would be taken for its members in their order.
        if !meta.get().starts_with('{') {
            return Err(RpcError::params("`_meta` must be an object"));
        }
        serde_json::from_str(meta.get())
            .map_err(|error| RpcError::params(format!("`_meta` is wrong: {error}")))
    }

    /// Whether it says which version it goes by.
    pub fn names_version(&self) -> bool {
        self.version.is_some()
    }

    /// The era that the request belongs to.
    pub fn era(&self, is_initialized: bool) -> Result<Era, RpcError> {
        let missing = |name: &str, what: &str| {
            RpcError::params(format!("`_meta` must hold `{name}`, {what}"))
        };
        if self.version.is_none() && self.capabilities.is_none() && is_initialized {
            return Ok(Era::Legacy);
        }
        let version = self.version.and_then(|json| serde_json::from_str::<String>(json.get()).ok());
        let Some(version) = version else {
            let first = "a string; clients of older versions begin with initialize";
            return Err(missing(VERSION, first));
        };
        if !MODERN.contains(&version.as_str()) {
            let requested = text::cut(&version, limits::SUMMARY_CHARS);
            return Err(RpcError {
                code: UNSUPPORTED_VERSION,
                message: format!("unsupported protocol version `{requested}`"),
                data: Some(json!({"supported": MODERN, "requested": requested})),
            });
        }
        match self.capabilities {
            Some(json) if json.get().starts_with('{') => Ok(Era::Modern),
            _ => Err(missing(CAPABILITIES, "an object")),
        }
    }
}

impl Era {
    /// The answer, as a line.
    pub fn answer(self, id: &Id, reply: &RpcResult) -> String {
        let Era::Modern = self else {
            return format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, reply.body);
        };
        let mut more = json!({"resultType": "complete", "_meta": {SERVER_INFO: implementation()}});
        if let Some(milliseconds) = reply.keep {
            // What skills say, and where they lie, is this user's affair.
            more["ttlMs"] = milliseconds.into();
            more["cacheScope"] = "private".into();
        }
        joined(id, &reply.body, &more)
    }
}

/// One object of the members of two.
fn joined(id: &Id, body: &str, more: &Value) -> String {
    let more = more.to_string();
    let more = more.strip_prefix('{').unwrap_or(&more);
    let body = body.strip_suffix('}').unwrap_or(body);
    let comma = if body == "{" { "" } else { "," };
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{body}{comma}{more}}}"#)
}

#[cfg(test)]
mod tests {
    use super::super::rpc::{IncomingMessage, read};
    use super::*;

    fn era(meta: &str, is_initialized: bool) -> Result<Era, i32> {
        let line =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{{"_meta":{meta}}}}}"#);
        let IncomingMessage::Request(request) = read(line.as_bytes()) else {
            panic!("{line} is a request");
        };
        let meta = RequestMeta::of(&request);
        let era = meta.and_then(|meta| meta.era(is_initialized));
        era.map_err(|fault| fault.code)
    }

    #[test]
    fn a_request_is_of_the_era_that_it_names() {
        let both = format!(r#"{{"{VERSION}":"2026-07-28","{CAPABILITIES}":{{}}}}"#);
        for is_initialized in [false, true] {
            assert_eq!(era(&both, is_initialized), Ok(Era::Modern));
            let half = both.replace("{}", "[]");
            assert_eq!(era(&half, is_initialized), Err(-32_602));
            let unknown = both.replace("2026-07-28", "2025-11-25");
            assert_eq!(era(&unknown, is_initialized), Err(UNSUPPORTED_VERSION));
            for wrong in ["[]", "5", r#"["2026-07-28",{},1]"#] {
                assert_eq!(era(wrong, is_initialized), Err(-32_602), "{wrong}");
            }
        }
        for nothing in ["{}", "null", r#"{"progressToken":1}"#] {
            assert_eq!(era(nothing, true), Ok(Era::Legacy));
            assert_eq!(era(nothing, false), Err(-32_602));
        }
    }

    #[test]
    fn an_answer_is_one_object_whatever_the_result_holds() {
        let json: Box<RawValue> = RawValue::from_string("7".into()).unwrap();
        let id = Id::of(&json).unwrap();
        for body in ["{}", r#"{"a":{"b":[]}}"#] {
            let reply = RpcResult { body: body.into(), keep: Some(5) };
            let old: Value = serde_json::from_str(&Era::Legacy.answer(&id, &reply)).unwrap();
            let new: Value = serde_json::from_str(&Era::Modern.answer(&id, &reply)).unwrap();
            assert_eq!(old["result"].to_string(), body);
            assert_eq!(new["result"]["a"], old["result"]["a"]);
            assert_eq!(new["result"]["ttlMs"], 5);
            assert_eq!((&new["id"], &old["id"]), (&json!(7), &json!(7)));
        }
    }
}
