//! Long lists in pages.
//!
//! A cursor names what a page ends with, so that it stays good whatever changes
//! between two pages: nothing is skipped that was there all the time.
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

/// A page that fills up, in the order of its entries' keys.
#[derive(Debug, Default)]
pub(super) struct ResultPage {
    /// What a cursor of this list begins with before it is made opaque: keys of
    /// one list mean nothing in another.
    mark: String,
    /// As JSON, each.
    entries: Vec<String>,
    bytes: usize,
    /// Bytes of files that were read for it.
    read: u64,
    /// The last key that was passed, on this page or before.
    last: String,
    is_full: bool,
}

impl ResultPage {
    /// The page that is asked for.
    pub(super) fn of(asked: &RequestContext<'_, '_>) -> Result<ResultPage, RpcError> {
        #[derive(Deserialize)]
        struct ListParams<'l> {
            #[serde(borrow)]
            cursor: Option<&'l RawValue>,
        }
        let mark = format!("{} after ", asked.request.method);
        let last = match asked.request.params::<ListParams<'_>>()?.cursor {
            None => Some(String::new()),
            Some(cursor) => opened(cursor, &mark),
        };
        let wrong = || {
            RpcError::params("there is no such page: `cursor` must be a `nextCursor` of this list")
        };
        Ok(ResultPage { last: last.ok_or_else(wrong)?, mark, ..ResultPage::default() })
    }

    /// Whether what has this key stood on a page before.
    pub(super) fn is_past(&self, key: &str) -> bool {
        key <= self.last.as_str()
    }

    /// The same of all whose keys begin so.
    pub(super) fn is_past_all(&self, beginning: &str) -> bool {
        self.is_past(beginning) && !self.last.starts_with(beginning)
    }

    /// Whether there is room for one more, which is never split. Asked only when
    /// there is one more: a page that has no room is not the last.
    pub(super) fn has_room(&mut self) -> bool {
        self.is_full |= self.entries.len() >= limits::PAGE_ENTRIES
            || self.bytes >= limits::ENTRIES_BYTES
            || self.read >= limits::PAGE_READ_BYTES;
        !self.is_full
    }

    /// Passes by what has this key: with its entry, where it has one.
    pub(super) fn pass(&mut self, key: &str, entry: Option<&Value>) {
        self.last = key.to_string();
        if let Some(entry) = entry.map(Value::to_string) {
            self.bytes += entry.len();
            self.entries.push(entry);
        }
    }

    /// Counts what was read of files.
    pub(super) fn has_read(&mut self, bytes: u64) {
        self.read += bytes;
    }

    /// The result, with its entries under this name.
    pub(super) fn reply(self, name: &str) -> RpcResult {
        let mut body = format!(r#"{{"{name}":[{}]"#, self.entries.join(","));
        if self.is_full {
            let cursor = BASE64_URL_SAFE_NO_PAD.encode(self.mark + &self.last);
            body.push_str(&format!(r#","nextCursor":"{cursor}""#));
        }
        body.push('}');
        RpcResult { body, keep: None }.kept(limits::KEPT_MILLISECONDS)
    }
}

/// The key that a cursor hides; `None` for what is no cursor of this list.
fn opened(cursor: &RawValue, mark: &str) -> Option<String> {
    let text: String = serde_json::from_str(cursor.get()).ok()?;
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
    let key = String::from_utf8(bytes).ok()?;
    let key = key.strip_prefix(mark).filter(|key| !key.is_empty());
    key.map(str::to_string)
}
