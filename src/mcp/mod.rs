//! Model Context Protocol server on standard input and output: the same skills and
//! tools for any client of the protocol.
//!
//! One thread reads a line and writes a line. While a script runs, the server answers
//! all other requests; a second script is queued. `rpc` parses messages, `era` has the
//! differences between protocol versions, `methods` the table of methods. Handlers must
//! not run tools or open files except through `tools` and `skills`.
//!
//! <https://modelcontextprotocol.io/specification/2026-07-28>, and
//! <https://modelcontextprotocol.io/specification/2025-11-25> for older clients.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use serde_json::json;

use crate::ui::Output;
use crate::ui::input::{LinePiece, StdinKind, StdinReader};
use ::skills::Catalogue;
use agent::tools::ToolContext;
use base::error::{Error, ErrorKind, Result};
use base::event::RunStats;
use base::limits;
use base::text;
use host::event_source::EventSource;

mod calls;
mod era;
mod exposed_tools;
mod lifecycle;
mod methods;
mod mime_types;
mod pages;
mod prompts;
mod published_skills;
mod request_context;
mod resources;
mod rpc;
mod running;
mod skill_tools;
mod skills;
mod uri;

use calls::PendingCall;
use running::RunningCall;

pub use era::{Era, RequestMeta, RpcResult};
pub use rpc::{Id, IncomingMessage, RpcError, RpcRequest, parse_line};

/// Server for one client on standard input and output.
pub(crate) struct McpServer<'s> {
    /// Context of the tools.
    context: ToolContext<'s>,
    /// Whether each skill is also offered as a tool.
    skills_as_tools: bool,
    input: RefCell<StdinReader>,
    /// Descriptor of the same stream, for `poll` while a script runs.
    stdin_fd: OwnedFd,
    /// Whether standard input has ended.
    has_ended: Cell<bool>,
    output: RefCell<&'s mut Output>,
    /// Whether the client has sent `initialize`, as older versions require.
    is_initialized: Cell<bool>,
    /// Queued calls that start programs, the oldest first.
    waiting: RefCell<VecDeque<PendingCall>>,
    /// The running call.
    running: RefCell<Option<RunningCall>>,
    /// Warnings that were already shown.
    shown_warnings: RefCell<BTreeSet<String>>,
    /// Totals of the tool calls so far.
    stats: Cell<RunStats>,
    /// Number of invalid lines without an id to answer.
    unanswered_lines: Cell<usize>,
}

/// Explanation for the user at a terminal.
fn terminal_note(server: &McpServer<'_>) -> String {
    let folders = server.context.skills.folders().iter();
    let folders = folders.flat_map(|folder| ["--skills".into(), folder.path.to_string_lossy()]);
    let args: Vec<Cow<'_, str>> = std::iter::once("mcp".into()).chain(folders).collect();
    let servers = json!({"skills": {"command": "skills-runner", "args": args}});
    format!(
        "this is a server for Model Context Protocol clients, which send one JSON message per \
         line; Ctrl+D ends it\nhint: most clients start it themselves if their configuration \
         contains {}; see \"As an MCP server\" in README.md",
        json!({"mcpServers": servers})
    )
}

/// Serves until standard input ends.
pub(crate) fn serve(
    context: ToolContext<'_>,
    skills_as_tools: bool,
    output: &mut Output,
) -> Result<()> {
    output.serve();
    let input = StdinReader::open()?;
    let stdin_fd = input.as_fd().try_clone_to_owned().map_err(|error| {
        Error::new(ErrorKind::Io, format!("failed to read standard input: {error}"))
    })?;
    let server = McpServer {
        context,
        skills_as_tools,
        input: RefCell::new(input),
        stdin_fd,
        has_ended: Cell::new(false),
        output: RefCell::new(output),
        is_initialized: Cell::new(false),
        waiting: RefCell::default(),
        running: RefCell::default(),
        shown_warnings: RefCell::default(),
        stats: Cell::default(),
        unanswered_lines: Cell::new(0),
    };
    if server.input.borrow().kind() == StdinKind::Terminal {
        let note = terminal_note(&server);
        server.output.borrow_mut().note(&note);
    }
    while !server.has_ended.get() {
        server.context.cancellation.check()?;
        match server.next_queued_call() {
            Some(call) => server.run_queued_call(&call)?,
            None => {
                let waited = server.input.borrow().wait(server.context.cancellation);
                waited?;
                server.read_input()?;
            }
        }
    }
    server.warn_unrun_calls();
    Ok(())
}

impl McpServer<'_> {
    /// Reads once, and handles the complete lines.
    fn read_input(&self) -> Result<()> {
        let mut input = self.input.borrow_mut();
        let has_more = input.fill()?;
        while let Some(piece) = input.next_piece(limits::MESSAGE_LINE_BYTES) {
            match piece {
                LinePiece::Whole(line) => self.handle_line(line),
                LinePiece::TooLong => {
                    let most = limits::MESSAGE_LINE_BYTES >> 20;
                    self.warn_unanswered(&format!("it is longer than {most} MiB"));
                }
            }
        }
        self.has_ended.set(!has_more);
        Ok(())
    }

    /// Handles a line, and answers it unless it was queued or needs no answer.
    fn handle_line(&self, line: &[u8]) {
        match rpc::parse_line(line) {
            IncomingMessage::Request(request) => match methods::answer(self, &request) {
                Some((era, Ok(reply))) => self.send(&era.response(&request.id, reply)),
                Some((_, Err(error))) => self.send_error(&request.id, error),
                None => {}
            },
            IncomingMessage::Notification { method, params } => {
                if method == "notifications/cancelled" {
                    self.cancel(params);
                }
            }
            IncomingMessage::Response | IncomingMessage::Empty => {}
            IncomingMessage::Invalid(Some(id), error) => self.send_error(&id, error),
            IncomingMessage::Invalid(None, error) => self.warn_unanswered(&error.message),
        }
    }

    /// Warns about a line that cannot be answered, up to a number of lines.
    fn warn_unanswered(&self, reason: &str) {
        let before = self.unanswered_lines.get();
        self.unanswered_lines.set(before.saturating_add(1));
        if before < limits::WARNINGS {
            self.warn(&format!("a line was not answered: {reason}"));
        } else if before == limits::WARNINGS {
            self.warn("more lines were not answered; they are no longer reported");
        }
    }

    /// Returns a text of a skill as one line of at most `most_bytes`, without
    /// credentials.
    fn masked_line(&self, text: &str, most_bytes: usize) -> String {
        let line = text::one_line(text, text.len());
        // Masked first: a part of a secret after truncation would not be found.
        let line = self.context.secrets.mask_shortened(&line);
        text::truncate_words(&text::printable(&line), most_bytes).into_owned()
    }

    /// The catalogue for clients: without skills whose names contain credentials, and
    /// with masked descriptions.
    fn catalogue(&self) -> Catalogue {
        let mut catalogue = self.context.skills.catalogue();
        let secrets = self.context.secrets;
        let is_secret = |text: &str| secrets.occur_in(text.as_bytes());
        catalogue.skills.retain(|skill| {
            !is_secret(&skill.name) && !skill.alias.as_deref().is_some_and(is_secret)
        });
        for skill in &mut catalogue.skills {
            if let Cow::Owned(masked) = secrets.mask(&skill.description) {
                skill.description = masked;
            }
        }
        catalogue
    }

    /// Sends an error response. Its message may quote a file or a truncated name.
    fn send_error(&self, id: &Id, error: RpcError) {
        let message = self.context.secrets.mask_shortened(&error.message);
        let message = message.into_owned();
        self.send(&RpcError { message, ..error }.response(id));
    }

    /// Sends one message. It is not masked here: an id or a word of the protocol may
    /// equal a secret.
    fn send(&self, message: &str) {
        self.output.borrow_mut().send(message);
    }

    /// Shows a warning on standard error, usually the client's log.
    fn warn(&self, text: &str) {
        let text = text::one_line(text, limits::LINE_BYTES);
        self.output.borrow_mut().warn(&text);
    }

    /// Shows a warning once.
    fn warn_once(&self, text: String) {
        let mut shown = self.shown_warnings.borrow_mut();
        if shown.len() < limits::WARNINGS && !shown.contains(&text) {
            self.warn(&text);
            shown.insert(text);
        }
    }
}

/// Serves the client while a script runs.
impl EventSource for McpServer<'_> {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.stdin_fd.as_fd())
    }

    fn next_call(&self) -> Option<Instant> {
        self.running.borrow().as_ref().and_then(RunningCall::next_notification)
    }

    fn handle(&self, is_ready: bool) -> bool {
        if is_ready && let Err(error) = self.read_input() {
            self.warn(error.message());
            self.has_ended.set(true);
        }
        let running = self.running.borrow();
        if let Some(progress) = running.as_ref().and_then(RunningCall::progress_message) {
            self.send(&progress);
        }
        !self.has_ended.get() && running.as_ref().is_none_or(RunningCall::is_active)
    }
}
