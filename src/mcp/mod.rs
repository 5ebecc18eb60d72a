//! The Model Context Protocol on standard input and output: the same skills and
//! tools for any client that speaks it.
//!
//! One thread: a line comes, a line goes. While a script runs the server answers
//! everything else; a second script waits for the first. What a message is stands
//! in `rpc`, what each protocol version wants in `era`, what can be asked in
//! `methods`. Nothing here runs a tool or opens a file by itself.
//!
//! <https://modelcontextprotocol.io/specification/2026-07-28>, and
//! <https://modelcontextprotocol.io/specification/2025-11-25> for older clients.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use serde_json::json;

use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::skills::Catalogue;
use crate::text;
use crate::tools::ToolContext;
use crate::world::event_source::{EventSource, ScriptStream};
use crate::world::input::{LinePiece, StdinKind, StdinReader};
use crate::world::output::Output;

mod address;
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

use calls::PendingCall;
use running::RunningCall;

pub use era::{Era, RequestMeta, RpcResult};
pub use rpc::{Id, IncomingMessage, RpcError, RpcRequest, read};

/// A server: one client, on standard input and output.
pub(crate) struct McpServer<'s> {
    /// What its tools work with.
    context: ToolContext<'s>,
    /// Each skill is a tool, too.
    skills_as_tools: bool,
    input: RefCell<StdinReader>,
    /// The same, to wait for while a script runs.
    arrivals: OwnedFd,
    /// Standard input is at its end.
    has_ended: Cell<bool>,
    output: RefCell<&'s mut Output>,
    /// The client has said which of the older versions it speaks.
    is_initialized: Cell<bool>,
    /// Calls that start programs, in the order in which they came.
    waiting: RefCell<VecDeque<PendingCall>>,
    /// The one that runs.
    running: RefCell<Option<RunningCall>>,
    /// What a person has been told once.
    told: RefCell<BTreeSet<String>>,
    /// Calls of tools so far.
    called: Cell<u32>,
    /// Lines that nobody could be answered.
    unanswered: Cell<usize>,
}

/// For who starts it by hand and wonders what it waits for.
fn by_hand(server: &McpServer<'_>) -> String {
    let folders = server.context.skills.folders().iter();
    let folders = folders.flat_map(|folder| ["--skills".into(), folder.to_string_lossy()]);
    let args: Vec<Cow<'_, str>> = std::iter::once("mcp".into()).chain(folders).collect();
    let servers = json!({"skills": {"command": "skills-runner", "args": args}});
    format!(
        "this is a server for clients of the Model Context Protocol, which write a message of JSON \
         on each line; Ctrl+D ends it\nhint: most clients start it by themselves once they are told \
         {}; \"As an MCP server\" in README.md has more",
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
    let input = StdinReader::open().map_err(|error| unreadable(&error))?;
    let arrivals = input.as_fd().try_clone_to_owned();
    let server = McpServer {
        context,
        skills_as_tools,
        input: RefCell::new(input),
        arrivals: arrivals.map_err(|error| unreadable(&error))?,
        has_ended: Cell::new(false),
        output: RefCell::new(output),
        is_initialized: Cell::new(false),
        waiting: RefCell::default(),
        running: RefCell::default(),
        told: RefCell::default(),
        called: Cell::new(0),
        unanswered: Cell::new(0),
    };
    if server.input.borrow().source() == StdinKind::Terminal {
        let by_hand = by_hand(&server);
        server.output.borrow_mut().note(&by_hand);
    }
    while !server.has_ended.get() {
        server.context.cancellation.check()?;
        match server.next_waiting() {
            Some(call) => server.run(&call)?,
            None => {
                let waited = server.input.borrow().wait(server.context.cancellation);
                waited?;
                server.receive()?;
            }
        }
    }
    server.leave();
    Ok(())
}

fn unreadable(error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("failed to read standard input: {error}"))
}

impl McpServer<'_> {
    /// Reads once, and answers the lines that are whole.
    fn receive(&self) -> Result<()> {
        let mut input = self.input.borrow_mut();
        let goes_on = input.fill().map_err(|error| unreadable(&error))?;
        while let Some(piece) = input.next_piece(limits::MESSAGE_LINE_BYTES) {
            match piece {
                LinePiece::Whole(line) => self.answer(line),
                LinePiece::TooLong => {
                    let most = limits::MESSAGE_LINE_BYTES >> 20;
                    self.leave_unanswered(&format!("more than {most} MiB"));
                }
            }
        }
        self.has_ended.set(!goes_on);
        Ok(())
    }

    /// Answers a line, if it wants an answer now.
    fn answer(&self, line: &[u8]) {
        match rpc::read(line) {
            IncomingMessage::Request(request) => match methods::answer(self, &request) {
                Some((era, Ok(reply))) => self.send(&era.answer(&request.id, &reply)),
                Some((_, Err(fault))) => self.refuse(&request.id, fault),
                None => {}
            },
            IncomingMessage::Notification { method, params } => {
                if method == "notifications/cancelled" {
                    self.cancel(params);
                }
            }
            IncomingMessage::Response | IncomingMessage::Empty => {}
            IncomingMessage::Refused(Some(id), fault) => self.refuse(&id, fault),
            IncomingMessage::Refused(None, fault) => self.leave_unanswered(&fault.message),
        }
    }

    /// Tells of a line that nobody can be answered; not for ever.
    fn leave_unanswered(&self, why: &str) {
        let before = self.unanswered.get();
        self.unanswered.set(before.saturating_add(1));
        if before < limits::WARNINGS {
            self.warn(&format!("a line is left without an answer: {why}"));
        } else if before == limits::WARNINGS {
            self.warn("more lines are left without an answer; no more is told of them");
        }
    }

    /// What a skill says of itself, as one line of at most so many bytes that
    /// holds no credentials.
    fn line(&self, text: &str, most_bytes: usize) -> String {
        let line = text::one_line(text, text.len());
        // Masked first: a cut would leave a part that nobody knows.
        let line = self.context.secrets.mask_shortened(&line);
        text::cut_words(&text::printable(&line), most_bytes).into_owned()
    }

    /// The skills, as far as a client may be told of them: no credentials are in
    /// their names, and none is left in what they say of themselves.
    fn catalogue(&self) -> Catalogue {
        let mut catalogue = self.context.skills.catalogue();
        let secrets = self.context.secrets;
        let is_secret = |text: &str| secrets.is_within(text.as_bytes());
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

    /// Says why there is no result. It may quote a file, or a shortened name.
    fn refuse(&self, id: &Id, fault: RpcError) {
        let message = self.context.secrets.mask_shortened(&fault.message);
        let message = message.into_owned();
        self.send(&RpcError { message, ..fault }.answer(id));
    }

    /// Sends one message. Nothing is masked in it any more: an id, or a word of
    /// the protocol, may look like somebody's secret.
    fn send(&self, message: &str) {
        self.output.borrow_mut().send(message);
    }

    /// Something the person at the client's log should know.
    fn warn(&self, text: &str) {
        let text = text::one_line(text, limits::LINE_BYTES);
        self.output.borrow_mut().warn(&text);
    }

    /// The same, once.
    fn warn_once(&self, text: String) {
        let mut told = self.told.borrow_mut();
        if told.len() < limits::WARNINGS && !told.contains(&text) {
            self.warn(&text);
            told.insert(text);
        }
    }
}

/// What is done while a script runs.
impl EventSource for McpServer<'_> {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.arrivals.as_fd())
    }

    fn due(&self) -> Option<Instant> {
        self.running.borrow().as_ref().and_then(RunningCall::due)
    }

    fn attend(&self, is_ready: bool) -> bool {
        if is_ready && let Err(error) = self.receive() {
            self.warn(error.message());
            self.has_ended.set(true);
        }
        let running = self.running.borrow();
        if let Some(progress) =
            running.as_ref().and_then(|running| running.tell(self.context.secrets))
        {
            self.send(&progress);
        }
        !self.has_ended.get() && running.as_ref().is_none_or(RunningCall::is_wanted)
    }

    fn hear(&self, stream: ScriptStream, bytes: &[u8]) {
        if let Some(running) = &*self.running.borrow() {
            running.hear(stream, bytes);
        }
    }
}
