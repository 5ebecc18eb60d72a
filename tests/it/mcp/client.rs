//! An MCP client for tests. It knows the framing of the protocol (one JSON object per line) and
//! nothing about the server.

#![allow(
    dead_code,
    clippy::needless_pass_by_value,
    reason = "the words of a language: `json!` stands in the calls, and not every test uses all"
)]

use std::collections::VecDeque;

use serde_json::{Value, json};

use crate::harness::{Outcome, Running, Test};

/// The protocol version that each request of a modern client names.
pub(super) const MODERN: &str = "2026-07-28";
/// The newest version that starts with `initialize`.
pub(super) const LEGACY: &str = "2025-11-25";

/// A running server and its unread messages.
pub(crate) struct Client {
    running: Running,
    is_modern: bool,
    next_id: u64,
    /// Messages received before the awaited one.
    unread: VecDeque<Value>,
}

impl Client {
    /// A client of version 2026-07-28, which each request states.
    pub(crate) fn modern(test: &Test) -> Client {
        Client { is_modern: true, ..Client::bare(test) }
    }

    /// A client of version 2025-11-25 after `initialize`.
    #[track_caller]
    pub(crate) fn legacy(test: &Test) -> Client {
        Client::bare(test).initialized()
    }

    /// The same, with options after `mcp`.
    #[track_caller]
    pub(crate) fn legacy_with(test: &Test, options: &[&str]) -> Client {
        let client = Client { is_modern: false, ..Client::modern_with(test, options) };
        client.initialized()
    }

    #[track_caller]
    fn initialized(self) -> Client {
        let mut client = self;
        let params = json!({
            "protocolVersion": LEGACY,
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let result = client.result_of("initialize", params);
        assert_eq!(result["protocolVersion"], LEGACY, "{result}");
        client.notify("notifications/initialized", json!({}));
        client
    }

    /// A client that has not sent a message yet.
    pub(crate) fn bare(test: &Test) -> Client {
        Client {
            running: test.next_run().args(["mcp"]).stdin_open().spawn(),
            is_modern: false,
            next_id: 1,
            unread: VecDeque::new(),
        }
    }

    /// A modern client, with options after `mcp`.
    pub(crate) fn modern_with(test: &Test, options: &[&str]) -> Client {
        let test = test.next_run().args(["mcp"]).args(options).stdin_open();
        Client { running: test.spawn(), is_modern: true, next_id: 1, unread: VecDeque::new() }
    }

    /// Sends a line unchanged.
    #[track_caller]
    pub(crate) fn send(&mut self, line: impl AsRef<[u8]>) {
        self.running.write_stdin(line);
        self.running.write_stdin("\n");
    }

    /// Sends a request without waiting for the answer; returns its id.
    #[track_caller]
    pub(crate) fn request(&mut self, method: &str, params: Value) -> u64 {
        let mut params = params;
        if self.is_modern {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = MODERN.into();
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        let id = self.next_id;
        self.next_id += 1;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(request.to_string());
        id
    }

    #[track_caller]
    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// The next message of any kind.
    #[track_caller]
    pub(crate) fn next(&mut self) -> Value {
        self.unread.pop_front().unwrap_or_else(|| self.read())
    }

    #[track_caller]
    fn read(&mut self) -> Value {
        let line = self.running.read_stdout_until("\n");
        let message: Value = serde_json::from_str(&line).expect("each line is JSON");
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        message
    }

    /// The whole answer to a request, with `result` or `error`; earlier messages are kept.
    #[track_caller]
    pub(crate) fn answer_to(&mut self, id: impl Into<Value>) -> Value {
        let id = id.into();
        let is_answer = |message: &Value| message["id"] == id;
        if let Some(at) = self.unread.iter().position(is_answer) {
            return self.unread.remove(at).unwrap();
        }
        loop {
            let message = self.read();
            if is_answer(&message) {
                return message;
            }
            self.unread.push_back(message);
        }
    }

    /// Sends a request and returns its result.
    #[track_caller]
    pub(crate) fn result_of(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        let answer = self.answer_to(id);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        assert_eq!(answer["result"]["resultType"] == "complete", self.is_modern, "{answer}");
        answer["result"].clone()
    }

    /// Sends a request that must fail and returns the error.
    #[track_caller]
    pub(crate) fn error_of(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        let answer = self.answer_to(id);
        assert!(answer["result"].is_null(), "{method}: {answer}");
        answer["error"].clone()
    }

    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.result_of("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Asserts that there is no unread message: the answer to a ping comes next.
    #[track_caller]
    pub(crate) fn assert_silent(&mut self) {
        assert!(self.unread.is_empty(), "unread messages: {:?}", self.unread);
        let id = self.request("tools/list", json!({}));
        assert_eq!(self.next()["id"], id);
    }

    /// The server process.
    pub(crate) fn running(&mut self) -> &mut Running {
        &mut self.running
    }

    /// Closes standard input and waits for the server's end.
    #[track_caller]
    pub(crate) fn close(mut self) -> Outcome {
        self.running.close_stdin();
        self.running.wait()
    }
}

/// All entries of a list, from all its pages.
#[track_caller]
pub(super) fn listed(client: &mut Client, method: &str, name: &str, params: Value) -> Vec<Value> {
    let (mut params, mut all) = (params, Vec::new());
    loop {
        let page = client.result_of(method, params.clone());
        all.extend(page[name].as_array().unwrap().iter().cloned());
        match &page["nextCursor"] {
            Value::Null => return all,
            cursor => params["cursor"] = cursor.clone(),
        }
    }
}
