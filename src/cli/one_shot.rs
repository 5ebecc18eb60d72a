//! One-shot runs: one question, one answer.

use crate::agent::{self, TurnOutcome};
use crate::cli::args::{CommandLine, usage};
use crate::cli::attach::Attachments;
use crate::cli::session_handle::{self, SessionHandle};
use crate::cli::setup::{Run, Startup};
use crate::config::ConfigNeeds;
use crate::conversation::Conversation;
use crate::error::{Error, ErrorKind, Result};
use crate::event::RunStats;
use crate::limits;
use crate::message::UserMessage;
use crate::model::http::HttpModel;
use crate::model::{FinishReason, Model, ModelRequest};
use crate::tools::Tools;
use crate::world::cancellation::Cancellation;
use crate::world::input::{StdinError, StdinKind, StdinReader, WholeInput};
use crate::world::output::Output;

/// Whether to start a conversation: there is no prompt, and standard input is a terminal.
pub(super) fn is_conversation(args: &CommandLine) -> bool {
    let is_terminal = || StdinReader::open().is_ok_and(|input| input.kind() == StdinKind::Terminal);
    args.words.is_empty() && args.stdin && is_terminal()
}

/// Sends the question and prints the answer.
pub(super) fn run(args: CommandLine, startup: &Startup, output: &mut Output) -> Result<u8> {
    let mut input = StdinReader::open().ok();
    // Report wrong usage first, then invalid settings, and only then wait for input.
    if args.words.is_empty() && (!args.stdin || input.is_none()) {
        return Err(missing_prompt());
    }
    let mut run = Run::with_skills(args, startup, ConfigNeeds::Endpoint, output)?;
    let model = new_model(&run)?;
    output.set_model(model.name());
    let mut attached = Attachments::from_options(&run)?;
    let prompt = read_prompt(&run, input.as_mut(), output)?;
    let prompt = attached.move_into(UserMessage::from(prompt));
    output.record_question(&prompt.to_text());
    let handle = SessionHandle::open(&mut run, model.name(), false, output)?;
    let (system_prompt, tools) = run.prepare_model_input(output);
    let mut conversation = handle.into_conversation(&system_prompt);
    conversation.add_question(prompt);
    if run.args.dry_run {
        print_request(&conversation, &model, &tools, output)?;
    } else {
        run_turn(&mut conversation, &model, &tools, &run, output)?;
    }
    Ok(0)
}

/// `--dry-run`: prints the first request as JSON instead of sending it.
pub(super) fn print_request(
    conversation: &Conversation,
    model: &HttpModel,
    tools: &Tools<'_>,
    output: &mut Output,
) -> Result<()> {
    let request = ModelRequest { messages: conversation.messages(), tools: tools.definitions() };
    let failure =
        |error| Error::new(ErrorKind::Io, format!("failed to write the request: {error}"));
    output.print(&model.preview(&request).map_err(failure)?);
    Ok(())
}

/// The model of the configured endpoint.
pub(super) fn new_model(run: &Run) -> Result<HttpModel> {
    let endpoint = run.config.endpoint()?;
    Ok(HttpModel::new(endpoint, run.args.stream, run.cancellation.clone()))
}

/// Runs the turn for the conversation's question and prints the answer. The caller has reported
/// the question to `output`.
pub(super) fn run_turn(
    conversation: &mut Conversation,
    model: &dyn Model,
    tools: &Tools<'_>,
    run: &Run,
    output: &mut Output,
) -> Result<()> {
    let mut stats = RunStats::default();
    let turn =
        agent::run_turn(conversation, model, tools, &run.turn_limits(), &mut stats, &mut |event| {
            output.show(&event);
        });
    output.set_stats(stats);
    if let Err(error) = &turn {
        session_handle::settle_failed_turn(conversation, error, "");
    }
    session_handle::report_save_errors(conversation, output);
    print_answer(&turn?, conversation.answer_text(), output)
}

/// Prints the answer; returns an error afterwards if it is incomplete.
pub(super) fn print_answer(answer: &TurnOutcome, text: &str, output: &mut Output) -> Result<()> {
    output.answer(text);
    if let Some(cause) = &answer.cause {
        let error = Error::new(ErrorKind::Truncated, cause.message());
        return Err(match cause.hint() {
            Some(hint) => error.with_hint(hint),
            None => error,
        });
    }
    match incomplete_error(answer.finish) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// The error for an answer that is incomplete because of its finish reason.
pub(super) fn incomplete_error(finish: FinishReason) -> Option<Error> {
    let (cause, hint) = match finish {
        FinishReason::Complete => return None,
        FinishReason::Length => (
            "the model reached its token limit",
            "request a shorter answer, or raise the server's limit",
        ),
        FinishReason::Cut => ("the connection closed before the end of the reply", "try again"),
        FinishReason::Filtered => {
            ("the content filter of the endpoint blocked it", "rephrase the question")
        }
        FinishReason::UnparsedCall => (
            "the model called a tool, but the server returned the call as text",
            "the server needs a parser for this model's calls: vLLM --enable-auto-tool-choice --tool-call-parser NAME, llama.cpp --jinja",
        ),
    };
    let kind = match finish {
        FinishReason::Filtered => ErrorKind::Endpoint,
        FinishReason::UnparsedCall => ErrorKind::Protocol,
        _ => ErrorKind::Truncated,
    };
    Some(Error::new(kind, format!("failed to get the whole answer: {cause}")).with_hint(hint))
}

/// The prompt: the words of the command line and the text of standard input.
fn read_prompt(run: &Run, input: Option<&mut StdinReader>, output: &mut Output) -> Result<String> {
    let words = joined_words(&run.args.words)?;
    let input = input.filter(|_| run.args.stdin);
    if words == "-" {
        let input = input.ok_or_else(missing_prompt)?;
        return require_prompt(
            read_stdin(input, None, &run.cancellation, output)?.unwrap_or_default(),
        );
    }
    if words.trim().is_empty() {
        let input = input.ok_or_else(missing_prompt)?;
        return require_prompt(
            read_stdin(input, None, &run.cancellation, output)?.unwrap_or_default(),
        );
    }
    let added = match input {
        Some(input) => match input.kind() {
            StdinKind::Terminal | StdinKind::Nothing => None,
            StdinKind::File => read_stdin(input, None, &run.cancellation, output)?,
            StdinKind::Stream => {
                read_stdin(input, Some(limits::STDIN_FIRST_BYTE), &run.cancellation, output)?
            }
        },
        None => None,
    };
    Ok(match added {
        Some(text) if !text.is_empty() => {
            let newline = if text.ends_with('\n') { "" } else { "\n" };
            format!("{words}\n\n<stdin>\n{text}{newline}</stdin>")
        }
        _ => words,
    })
}

/// The words joined into one text.
pub(super) fn joined_words(words: &[std::ffi::OsString]) -> Result<String> {
    let words: Option<Vec<&str>> = words.iter().map(|word| word.to_str()).collect();
    Ok(words.ok_or_else(|| usage("the prompt is not UTF-8 text"))?.join(" "))
}

fn read_stdin(
    input: &mut StdinReader,
    first_byte_timeout: Option<std::time::Duration>,
    cancellation: &Cancellation,
    output: &mut Output,
) -> Result<Option<String>> {
    match input.read_to_end(limits::STDIN_BYTES, first_byte_timeout, cancellation) {
        Ok(WholeInput::Bytes(bytes)) => Ok(Some(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                output.warn("standard input is not valid UTF-8: invalid bytes are replaced");
                String::from_utf8_lossy(error.as_bytes()).into_owned()
            }
        })),
        Ok(WholeInput::Silent) => {
            output.ignore_stdin();
            Ok(None)
        }
        Ok(WholeInput::TooLarge) => {
            let most = limits::STDIN_BYTES >> 20;
            Err(usage(format!("standard input is larger than {most} MiB")))
        }
        Err(StdinError::Stop(stop)) => Err(stop.into()),
        Err(StdinError::Io(error)) => {
            Err(Error::new(ErrorKind::Io, format!("failed to read standard input: {error}")))
        }
    }
}

fn require_prompt(prompt: String) -> Result<String> {
    if prompt.trim().is_empty() { Err(missing_prompt()) } else { Ok(prompt) }
}

/// The error for a missing prompt. An attachment alone is not a prompt.
pub(super) fn missing_prompt() -> Error {
    usage("there is no prompt")
        .with_hint("skills-runner \"your question\", or: echo \"your question\" | skills-runner")
}
