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
use crate::limits;

/// Page of a list, filled in the order of the entries' keys.
#[derive(Debug, Default)]
pub(super) struct ResultPage {
    /// Prefix of the cursors of this list before encoding, so that a cursor of another
    /// list is refused.
    prefix: String,
    /// Each as JSON.
    entries: Vec<String>,
    bytes: usize,
    /// Bytes of files that were read for the page.
    read: u64,
    /// The last key on this page or a page before it.
    last: String,
    is_full: bool,
}

impl ResultPage {
    /// Starts the requested page.
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
        Ok(ResultPage { last: last.ok_or_else(invalid)?, prefix, ..ResultPage::default() })
    }

    /// Whether the entry with this key was on an earlier page.
    pub(super) fn is_past(&self, key: &str) -> bool {
        key <= self.last.as_str()
    }

    /// Whether all entries whose keys start with `prefix` were on earlier pages.
    pub(super) fn is_past_all(&self, prefix: &str) -> bool {
        self.is_past(prefix) && !self.last.starts_with(prefix)
    }

    /// Whether the page has room for another entry. Call it only if there is another
    /// one: a full page gets a cursor to the next page.
    pub(super) fn has_room(&mut self) -> bool {
        self.is_full |= self.entries.len() >= limits::LIST_PAGE_ENTRIES
            || self.bytes >= limits::LIST_PAGE_BYTES
            || self.read >= limits::LIST_PAGE_READ_BYTES;
        !self.is_full
    }

    /// Moves past a key, and adds its entry if it has one.
    pub(super) fn add(&mut self, key: &str, entry: Option<&Value>) {
        self.last = key.to_string();
        if let Some(entry) = entry.map(Value::to_string) {
            self.bytes += entry.len();
            self.entries.push(entry);
        }
    }

    /// Counts bytes that were read from files.
    pub(super) fn add_read_bytes(&mut self, bytes: u64) {
        self.read += bytes;
    }

    /// Returns the result with the entries in the member `name`.
    pub(super) fn reply(self, name: &str) -> RpcResult {
        let mut body = format!(r#"{{"{name}":[{}]"#, self.entries.join(","));
        if self.is_full {
            let cursor = BASE64_URL_SAFE_NO_PAD.encode(self.prefix + &self.last);
            body.push_str(&format!(r#","nextCursor":"{cursor}""#));
        }
        body.push('}');
        RpcResult { body, cache_milliseconds: None }.cached_for(limits::CACHE_MILLISECONDS)
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
