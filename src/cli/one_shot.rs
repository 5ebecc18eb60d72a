//! One question, one answer.

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

/// Whether nothing is asked and a person sits there: then a conversation begins.
pub(super) fn is_conversation(typed: &CommandLine) -> bool {
    let is_terminal =
        || StdinReader::open().is_ok_and(|input| input.source() == StdinKind::Terminal);
    typed.words.is_empty() && typed.stdin && is_terminal()
}

/// Asks, and prints the answer.
pub(super) fn run(typed: CommandLine, start: &Startup, output: &mut Output) -> Result<u8> {
    let mut input = StdinReader::open().ok();
    // Wrong usage is told before anything else, wrong settings before waiting for input.
    if typed.words.is_empty() && (!typed.stdin || input.is_none()) {
        return Err(no_prompt());
    }
    let mut run = Run::with_skills(typed, start, ConfigNeeds::Endpoint, output)?;
    let model = model(&run)?;
    output.name_model(model.name());
    let mut attached = Attachments::typed(&run)?;
    let prompt = prompt(&run, input.as_mut(), output)?;
    let prompt = attached.go_with(UserMessage::from(prompt));
    output.begin_question(&prompt.told());
    let kept = SessionHandle::open(&mut run, model.name(), false, output)?;
    let (instructions, tools) = run.equip(output);
    let mut conversation = kept.conversation(&instructions);
    conversation.add_question(prompt);
    if run.typed.dry_run {
        preview(&conversation, &model, &tools, output)?;
    } else {
        answer(&mut conversation, &model, &tools, &run, output)?;
    }
    Ok(0)
}

/// `--dry-run`: the first request, as JSON, instead of its answer.
pub(super) fn preview(
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

/// The model behind the configured endpoint.
pub(super) fn model(run: &Run) -> Result<HttpModel> {
    let endpoint = run.config.endpoint()?;
    Ok(HttpModel::new(endpoint, run.typed.stream, run.cancellation.clone()))
}

/// The conversation's question, with its answer printed. That it is asked has
/// been told before the start.
pub(super) fn answer(
    conversation: &mut Conversation,
    model: &dyn Model,
    tools: &Tools<'_>,
    run: &Run,
    output: &mut Output,
) -> Result<()> {
    let mut stats = RunStats::default();
    let turn =
        agent::run_turn(conversation, model, tools, &run.bounds(), &mut stats, &mut |event| {
            output.show(&event);
        });
    output.spend(stats);
    if let Err(error) = &turn {
        session_handle::settle(conversation, error, "");
    }
    session_handle::tell_fault(conversation, output);
    finish(&turn?, conversation.answer_text(), output)
}

/// Prints the end of an answer; one that is not whole is an error after it.
pub(super) fn finish(answer: &TurnOutcome, text: &str, output: &mut Output) -> Result<()> {
    output.answer(text);
    if let Some(cause) = &answer.cause {
        let message = cause.message().replacen("an answer", "the whole answer", 1);
        let error = Error::new(ErrorKind::Truncated, message);
        return Err(match cause.hint() {
            Some(hint) => error.with_hint(hint),
            None => error,
        });
    }
    match shortfall(answer.finish) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// Why an answer that ended so is not whole.
pub(super) fn shortfall(finish: FinishReason) -> Option<Error> {
    let (cause, hint) = match finish {
        FinishReason::Complete => return None,
        FinishReason::Length => (
            "the model reached its limit of tokens",
            "ask for a shorter answer, or raise the server's limit",
        ),
        FinishReason::Cut => ("the connection ended before the reply did", "ask again"),
        FinishReason::Filtered => {
            ("the endpoint's content filter stepped in", "ask in other words")
        }
        FinishReason::UnparsedCall => (
            "the model called a tool, but the server handed the call on as text",
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

/// The words of the command line and what stands on standard input.
fn prompt(run: &Run, input: Option<&mut StdinReader>, output: &mut Output) -> Result<String> {
    let words = words(&run.typed.words)?;
    let input = input.filter(|_| run.typed.stdin);
    if words == "-" {
        let input = input.ok_or_else(no_prompt)?;
        return not_empty(read(input, None, &run.cancellation, output)?.unwrap_or_default());
    }
    if words.trim().is_empty() {
        let input = input.ok_or_else(no_prompt)?;
        return not_empty(read(input, None, &run.cancellation, output)?.unwrap_or_default());
    }
    let added = match input {
        Some(input) => match input.source() {
            StdinKind::Terminal | StdinKind::Nothing => None,
            StdinKind::File => read(input, None, &run.cancellation, output)?,
            StdinKind::Stream => {
                read(input, Some(limits::STDIN_PATIENCE), &run.cancellation, output)?
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

/// The words as one text.
pub(super) fn words(words: &[std::ffi::OsString]) -> Result<String> {
    let words: Option<Vec<&str>> = words.iter().map(|word| word.to_str()).collect();
    Ok(words.ok_or_else(|| usage("the prompt is not UTF-8 text"))?.join(" "))
}

fn read(
    input: &mut StdinReader,
    first: Option<std::time::Duration>,
    cancellation: &Cancellation,
    output: &mut Output,
) -> Result<Option<String>> {
    match input.read_to_end(limits::STDIN_BYTES, first, cancellation) {
        Ok(WholeInput::Bytes(bytes)) => Ok(Some(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                output.warn("standard input is not UTF-8 text: what is not is replaced");
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

fn not_empty(prompt: String) -> Result<String> {
    if prompt.trim().is_empty() { Err(no_prompt()) } else { Ok(prompt) }
}

/// Wrong usage: nothing is asked. What is attached asks nothing.
pub(super) fn no_prompt() -> Error {
    usage("there is no prompt")
        .with_hint("skills-runner \"your question\", or: echo \"your question\" | skills-runner")
}
