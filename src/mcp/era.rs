//! The two eras of the protocol. Up to 2025-11-25 a client sends its version once,
//! with `initialize`; from 2026-07-28 on each request contains the version, and no
//! request depends on another. One process serves both.
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning>

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::rpc::{Id, RpcError, RpcRequest};
use base::limits;
use base::text;

/// Versions that start with `initialize`, the newest first.
pub(super) const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// Versions that each request contains.
pub(super) const MODERN: [&str; 1] = ["2026-07-28"];

const UNSUPPORTED_VERSION: i32 = -32_022; // not a limit
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Member of a result that identifies the server.
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// Name and version of the server.
pub(super) fn implementation() -> Value {
    json!({"name": "skills-runner", "version": env!("CARGO_PKG_VERSION")})
}

/// Protocol era, whose rules apply to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// Versions up to 2025-11-25.
    Legacy,
    /// Version 2026-07-28.
    Modern,
}

/// Result of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RpcResult {
    /// The members of the result.
    pub body: Map<String, Value>,
    /// Time for which a client may cache the result, if it may.
    pub cache_milliseconds: Option<u64>,
}

impl RpcResult {
    /// Creates a result with one member and without a cache time.
    pub fn new(name: &str, value: impl Into<Value>) -> RpcResult {
        RpcResult::default().with(name, value)
    }

    /// Adds a member.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> RpcResult {
        self.body.insert(name.into(), value.into());
        self
    }

    /// Sets the time for which a client may cache the result.
    #[must_use]
    pub fn cached_for(self, milliseconds: u64) -> RpcResult {
        RpcResult { cache_milliseconds: Some(milliseconds), ..self }
    }
}

/// Metadata of a request (`_meta`).
#[derive(Debug, Default, Deserialize)]
pub struct RequestMeta<'l> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<&'l RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: Option<&'l RawValue>,
    /// Token for progress notifications: a string or an integer, as JSON.
    #[serde(borrow, rename = "progressToken")]
    pub progress_token: Option<&'l RawValue>,
}

impl<'l> RequestMeta<'l> {
    /// Parses the metadata in the request's parameters.
    pub fn from_request(request: &RpcRequest<'l>) -> Result<RequestMeta<'l>, RpcError> {
        #[derive(Deserialize)]
        struct MetaParams<'l> {
            #[serde(borrow, rename = "_meta")]
            meta: Option<&'l RawValue>,
        }
        let Some(meta) = request.parse_params::<MetaParams<'l>>()?.meta else {
            return Ok(RequestMeta::default());
        };
        // serde would read a list as the fields in their order.
        if !meta.get().starts_with('{') {
            return Err(RpcError::invalid_params("`_meta` must be an object"));
        }
        serde_json::from_str(meta.get())
            .map_err(|error| RpcError::invalid_params(format!("invalid `_meta`: {error}")))
    }

    /// Whether the request contains a protocol version.
    pub fn names_version(&self) -> bool {
        self.version.is_some()
    }

    /// Returns the era of the request.
    pub fn era(&self, is_initialized: bool) -> Result<Era, RpcError> {
        let missing = |name: &str, form: &str| {
            RpcError::invalid_params(format!("`_meta` must contain `{name}`, {form}"))
        };
        if self.version.is_none() && self.capabilities.is_none() && is_initialized {
            return Ok(Era::Legacy);
        }
        let version = self.version.and_then(|json| serde_json::from_str::<String>(json.get()).ok());
        let Some(version) = version else {
            let form = "a string; clients of older versions start with initialize";
            return Err(missing(VERSION, form));
        };
        if !MODERN.contains(&version.as_str()) {
            let requested = text::truncate(&version, limits::SUMMARY_CHARS);
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
    /// Builds the response line.
    pub fn response(self, id: &Id, mut reply: RpcResult) -> String {
        if self == Era::Modern {
            reply = reply
                .with("resultType", "complete")
                .with("_meta", json!({SERVER_INFO: implementation()}));
            if let Some(milliseconds) = reply.cache_milliseconds {
                // The content and location of skills are private to this user.
                reply = reply.with("ttlMs", milliseconds).with("cacheScope", "private");
            }
        }
        let result = Value::Object(reply.body);
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
    }
}

#[cfg(test)]
mod tests {
    use super::super::rpc::{IncomingMessage, parse_line};
    use super::*;

    fn era(meta: &str, is_initialized: bool) -> Result<Era, i32> {
        let line =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{{"_meta":{meta}}}}}"#);
        let IncomingMessage::Request(request) = parse_line(line.as_bytes()) else {
            panic!("{line} is a request");
        };
        let meta = RequestMeta::from_request(&request);
        let era = meta.and_then(|meta| meta.era(is_initialized));
        era.map_err(|error| error.code)
    }

    #[test]
    fn the_version_in_a_request_determines_its_era() {
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
    fn a_response_has_the_members_of_its_era() {
        let json: Box<RawValue> = RawValue::from_string("7".into()).unwrap();
        let id = Id::parse(&json).unwrap();
        let reply = RpcResult::new("a", json!({"b": []})).cached_for(5);
        let old: Value = serde_json::from_str(&Era::Legacy.response(&id, reply.clone())).unwrap();
        let new: Value = serde_json::from_str(&Era::Modern.response(&id, reply)).unwrap();
        assert_eq!(old["result"], json!({"a": {"b": []}}));
        assert_eq!(new["result"]["a"], old["result"]["a"]);
        assert_eq!(new["result"]["ttlMs"], 5);
        assert_eq!((&new["id"], &old["id"]), (&json!(7), &json!(7)));
    }
}
