//! A conversation: reads a line, runs the turn, prints the answer, repeats.
//!
//! It works on a terminal and from a pipe. A failed turn is reported and the conversation
//! continues. Ctrl+C cancels the turn or the typed line; at an empty prompt the first Ctrl+C
//! shows how to leave, the second one leaves.

use std::time::Instant;

use crate::cli::attach::Attachments;
use crate::cli::invocation;
use crate::cli::one_shot;
use crate::cli::options::{AskOptions, CommonOptions};
use crate::cli::run::Run;
use crate::cli::session_handle::SessionHandle;
use crate::cli::startup::Startup;
use crate::cli::values::usage;
use crate::ui::Output;
use crate::ui::input::StdinReader;
use agent::conversation::Conversation;
use agent::memory::notes::ConversationNote;
use agent::session::SavedAs;
use agent::tools::Tools;
use base::error::{Error, ErrorKind, Result};
use base::event::{Event, RunStats};
use base::limits;
use base::message::{InvokedSkill, Message, UserMessage};
use base::text;
use base::tool::Usage;
use chat_api::Model as _;
use chat_api::http::HttpModel;
use host::signal::Signal;

mod attach;
mod commands;
mod context;
mod endpoint;
mod facts;
mod lines;
mod sessions;
mod skills;
mod turns;

use commands::line_error;
use lines::{ChatInput, ChatMessage};

/// The next step after a typed line.
enum LineOutcome {
    Turn,
    Nothing,
    Leave,
}

/// The state that turns and commands share.
struct Chat<'c> {
    conversation: Conversation,
    /// Where the conversation was saved last.
    saved_as: Option<SavedAs>,
    model: HttpModel,
    tools: &'c Tools<'c>,
    run: &'c Run,
    /// The text for the daily note.
    daily_note: ConversationNote,
    /// The attachments of the next question.
    attached: Attachments,
    /// The skills of `--skill`, which the first question of the conversation gets.
    given: Vec<InvokedSkill>,
    /// Whether the next question gets them.
    is_given_next: bool,
    /// Whether the first question is still to come, which decides which skills the system prompt
    /// describes.
    is_question_first: bool,
    /// The last failure of a turn, for the exit status of a piped conversation.
    failure: Option<Error>,
    /// Tokens of all turns, as the endpoint reported them.
    usage: Usage,
    is_terminal: bool,
}

/// Runs a conversation until its end.
pub(super) fn run(
    mut ask: AskOptions,
    options: CommonOptions,
    startup: &Startup,
    output: &mut Output,
) -> Result<u8> {
    let mut lines = ChatInput::new(StdinReader::open()?, startup.interrupt.clone());
    let is_terminal = lines.is_terminal();
    let mut run = Run::for_questions(&ask, options, startup, is_terminal, output)?;
    let first = ask.prompt.take().unwrap_or_default();
    let model = one_shot::new_model(&run)?;
    output.set_model(model.name());
    if ask.dry_run && first.trim().is_empty() {
        return Err(usage("--dry-run needs a prompt"));
    }
    if !ask.attach.is_empty() && first.trim().is_empty() && !run.options.stdin {
        return Err(one_shot::missing_prompt());
    }
    let attached = Attachments::from_options(&ask.attach, &run)?;
    let given = invocation::given_skills(&ask.skills, &run, output)?;
    run.check_requirements()?;
    let handle = SessionHandle::open(&mut run, &ask, &model, is_terminal, output)?;
    let question = handle.first_question().unwrap_or_default();
    let is_question_first = question.is_empty();
    let (system_prompt, tools) = run.prepare_model_input(&question, &model, output);
    if is_terminal && output.can_edit() {
        let mut names: Vec<String> =
            commands::command_names().map(|name| format!("/{name}")).collect();
        names.extend(run.skills.catalogue().usable().map(|skill| format!("/{}", skill.name)));
        lines.edit(run.config.storage.history.as_deref(), names, output);
    }
    let mut chat = Chat {
        saved_as: handle.saved_as(),
        conversation: handle.into_conversation(&system_prompt),
        model,
        tools: &tools,
        run: &run,
        daily_note: ConversationNote::default(),
        attached,
        is_given_next: !given.is_empty(),
        given,
        is_question_first,
        failure: None,
        usage: Usage::default(),
        is_terminal,
    };
    if ask.dry_run {
        if matches!(chat.handle_first_prompt(&first, output), LineOutcome::Turn) {
            chat.choose_described_skills(output);
            one_shot::print_request(&chat.conversation, &chat.model, &tools, output)?;
        }
        return Ok(chat.exit_status());
    }
    report_state("initializing", output);
    chat.check_notes_folder(output);
    let ended = chat.converse(&first, &mut lines, output);
    lines.close();
    report_state("terminating", output);
    chat.write_daily_note(output);
    report_state("closed", output);
    if ended.is_ok() {
        chat.show_how_to_go_on(output);
    }
    ended.map(|()| chat.exit_status())
}

/// Shows the state of the conversation, with `-v`.
fn report_state(name: &str, output: &mut Output) {
    output.detail(&format!("state: {name}"));
}

/// Shows the state of the turn, with `-v`.
fn report_state_of_turn(event: &Event<'_>, output: &mut Output) {
    match event {
        Event::Estimate { .. } => report_state("checking context", output),
        Event::Request { .. } => report_state("processing", output),
        _ => {}
    }
}

impl Chat<'_> {
    /// Runs the conversation from the first prompt to the last line.
    fn converse(&mut self, first: &str, lines: &mut ChatInput, output: &mut Output) -> Result<()> {
        if self.is_terminal {
            if self.run.options.stdin {
                self.check_endpoint(output)?;
            }
            output.note(&format!("{}; /help lists the commands, Ctrl+D leaves", self.model.name()));
            self.show_recent_turns(output);
        }
        output.set_conversation();
        match self.handle_first_prompt(first, output) {
            LineOutcome::Leave => return Ok(()),
            LineOutcome::Nothing => {}
            LineOutcome::Turn => {
                self.run_turn(output)?;
            }
        }
        if self.run.options.stdin {
            self.read_lines(lines, output)?;
        }
        Ok(())
    }

    fn read_lines(&mut self, lines: &mut ChatInput, output: &mut Output) -> Result<()> {
        let mut is_leaving = false;
        loop {
            report_state("ready", output);
            let message = lines.next_message(&self.run.cancellation, output);
            let was_partial = match message {
                Ok(ChatMessage::Cancelled(was_partial)) => Some(was_partial),
                Err(error) => {
                    let survives = match error.kind() {
                        ErrorKind::Interrupted(signal) => self.survives_signal(signal),
                        _ => false,
                    };
                    if !survives {
                        return Err(error);
                    }
                    self.run.cancellation.interrupt.take_pending();
                    Output::end_prompt();
                    Some(lines.discard_partial())
                }
                Ok(message) => {
                    // The editor ends the line of its prompt itself.
                    if message == ChatMessage::End && self.is_terminal && !lines.is_edited() {
                        Output::end_prompt();
                    }
                    is_leaving = false;
                    match self.handle_message(message, output) {
                        LineOutcome::Leave => return Ok(()),
                        LineOutcome::Nothing => {}
                        LineOutcome::Turn => {
                            if !self.run_turn(output)? {
                                // After an interrupt, discard the lines that were typed ahead.
                                lines.discard_partial();
                            }
                        }
                    }
                    None
                }
            };
            match was_partial {
                None => continue,
                Some(true) => output.note("the incomplete message is discarded"),
                Some(false) if is_leaving => return Ok(()),
                Some(false) => output.note("press Ctrl+C again or Ctrl+D to leave"),
            }
            is_leaving = was_partial == Some(false);
        }
    }

    fn handle_message(&mut self, message: ChatMessage, output: &mut Output) -> LineOutcome {
        match message {
            ChatMessage::Line(line) => self.handle_line(&line, output),
            ChatMessage::Block(text) if text.trim().is_empty() => LineOutcome::Nothing,
            ChatMessage::Block(text) => self.add_text_question(&text, output),
            ChatMessage::TooLong => {
                let most = limits::CHAT_LINE_BYTES;
                let message = format!("the message is longer than {most} bytes: it is not sent");
                self.refuse_line(line_error(message), output)
            }
            ChatMessage::NotUtf8 => {
                let message = "the text is not UTF-8: it is not sent";
                self.refuse_line(line_error(message), output)
            }
            ChatMessage::Cut => {
                let most = text::group_digits(limits::TERMINAL_LINE_BYTES as u64);
                let message = format!(
                    "the terminal cut the line at {most} bytes, so it is not sent: use /attach FILE or a pipe"
                );
                self.refuse_line(line_error(message), output)
            }
            ChatMessage::Unfinished => {
                Output::end_prompt();
                output.note("the input ended in the middle of a message: it is not sent");
                LineOutcome::Nothing
            }
            ChatMessage::End => LineOutcome::Leave,
            ChatMessage::Cancelled(_) => LineOutcome::Nothing,
        }
    }

    /// Handles the prompt of the command line like a typed line.
    fn handle_first_prompt(&mut self, words: &str, output: &mut Output) -> LineOutcome {
        if words.starts_with('/') {
            return self.handle_line(words, output);
        }
        match words.trim() {
            "" => LineOutcome::Nothing,
            _ => self.add_text_question(words, output),
        }
    }

    fn exit_status(&self) -> u8 {
        let failure = self.failure.as_ref().filter(|_| !self.is_terminal);
        failure.map_or(0, |error| error.kind().exit_status())
    }

    /// Whether the conversation continues after the signal: only after Ctrl+C on a terminal.
    fn survives_signal(&self, signal: i32) -> bool {
        self.is_terminal && Signal(signal) == Signal::INT
    }

    pub(crate) fn add_text_question(&mut self, text: &str, output: &mut Output) -> LineOutcome {
        self.add_question(UserMessage::from(text), output)
    }

    /// Runs one turn; returns false if it was interrupted. An error ends the conversation.
    fn run_turn(&mut self, output: &mut Output) -> Result<bool> {
        output.start_turn();
        if let Some(Message::User(question)) = self.conversation.messages().last() {
            output.record_question(&question.to_text());
        }
        self.choose_described_skills(output);
        let mut stats = RunStats::default();
        let start = Instant::now();
        let limits = self.run.turn_limits();
        let turn = one_shot::run_turn(
            &mut self.conversation,
            &self.model,
            self.tools,
            &limits,
            &mut stats,
            report_state_of_turn,
            output,
        );
        let turn = turn.and_then(|()| self.run.check_answer(&self.conversation, &stats.actions));
        self.usage += stats.usage;
        self.daily_note.record_turn(self.conversation.messages());
        let is_interrupted = match turn {
            Ok(()) => {
                output.end_turn(None);
                output.show_turn_totals(&stats, start.elapsed());
                self.query_loaded_window(output)?;
                false
            }
            Err(error) => self.end_failed_turn(error, output)?,
        };
        output.take_write_error().map(|()| !is_interrupted)
    }

    /// Reports a failed turn; returns whether Ctrl+C ended it. An error ends the conversation.
    fn end_failed_turn(&mut self, error: Error, output: &mut Output) -> Result<bool> {
        match error.kind() {
            ErrorKind::Interrupted(signal) if self.survives_signal(signal) => {
                self.run.cancellation.interrupt.take_pending();
                output.end_turn(Some(&error));
                output.warn("interrupted; the conversation continues (/retry repeats the request)");
                Ok(true)
            }
            ErrorKind::Interrupted(_) => Err(error),
            ErrorKind::Limit if self.run.cancellation.check().is_err() => Err(error),
            kind => {
                output.end_turn(Some(&error));
                let is_too_large = matches!(kind, ErrorKind::Context { .. });
                let may_retry = self.conversation.state().awaits_answer() && !is_too_large;
                if may_retry && self.is_terminal {
                    output.note("/retry sends it again");
                }
                self.failure = Some(error);
                Ok(false)
            }
        }
    }
}
