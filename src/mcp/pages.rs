//! Long lists in pages.
//!
//! A cursor contains the key of the last entry of a page, so it stays valid if entries
//! change between two pages: no unchanged entry is skipped.
//! <https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/pagination>

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::era::RpcResult;
use super::request_context::RequestContext;
use super::rpc::RpcError;
use base::limits;

/// The requested page of a list.
#[derive(Debug)]
pub(super) struct ResultPage {
    /// Prefix of the cursors of this list before encoding, so that a cursor of another
    /// list is refused.
    prefix: String,
    /// The last key of the page before; empty on the first page.
    last: String,
}

impl ResultPage {
    /// Reads which page is requested.
    pub(super) fn from_request(request: &RequestContext<'_, '_>) -> Result<ResultPage, RpcError> {
        #[derive(Deserialize)]
        struct ListParams<'l> {
            #[serde(borrow)]
            cursor: Option<&'l RawValue>,
        }
        let prefix = format!("{} after ", request.raw.method);
        let last = match request.raw.parse_params::<ListParams<'_>>()?.cursor {
            None => Some(String::new()),
            Some(cursor) => decode_cursor(cursor, &prefix),
        };
        let invalid = || {
            RpcError::invalid_params("no such page: `cursor` must be a `nextCursor` of this list")
        };
        Ok(ResultPage { last: last.ok_or_else(invalid)?, prefix })
    }

    /// Whether all entries whose keys start with `prefix` were on earlier pages.
    pub(super) fn is_past_all(&self, prefix: &str) -> bool {
        prefix <= self.last.as_str() && !self.last.starts_with(prefix)
    }

    /// Returns the page of at most `most` entries as the member `name` of a result. The items come
    /// in the order of their keys, and only those of the page are described; `None` leaves one out.
    pub(super) fn reply<T>(
        &self,
        name: &str,
        most: usize,
        items: impl IntoIterator<Item = (String, T)>,
        mut describe: impl FnMut(&str, T) -> Option<Value>,
    ) -> RpcResult {
        let mut items = items.into_iter().filter(|(key, _)| *key > self.last).peekable();
        let mut last = String::new();
        let mut entries = Vec::new();
        for (key, item) in items.by_ref().take(most) {
            entries.extend(describe(&key, item));
            last = key;
        }
        let mut reply = RpcResult::new(name, entries).cached_for(limits::CACHE_MILLISECONDS);
        if items.peek().is_some() {
            let cursor = BASE64_URL_SAFE_NO_PAD.encode(format!("{}{last}", self.prefix));
            reply = reply.with("nextCursor", cursor);
        }
        reply
    }
}

/// Decodes the key in a cursor; `None` if it is not a cursor of this list.
fn decode_cursor(cursor: &RawValue, prefix: &str) -> Option<String> {
    let text: String = serde_json::from_str(cursor.get()).ok()?;
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
    let key = String::from_utf8(bytes).ok()?;
    let key = key.strip_prefix(prefix).filter(|key| !key.is_empty());
    key.map(str::to_string)
}
