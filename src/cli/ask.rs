//! One question, one answer.

use crate::agent::{self, Answer};
use crate::cli::args::{Typed, usage};
use crate::cli::attach::Attachments;
use crate::cli::resume::{self, Kept};
use crate::cli::setup::{Run, Start};
use crate::config::Needs;
use crate::conversation::Conversation;
use crate::error::{Error, Kind, Result};
use crate::event::Tally;
use crate::limits;
use crate::message::User;
use crate::model::http::HttpModel;
use crate::model::{Finish, Model, Request};
use crate::tools::Tools;
use crate::world::input::{Input, ReadError, Source, Whole};
use crate::world::output::Output;
use crate::world::patience::Patience;

/// Whether nothing is asked and a person sits there: then a conversation begins.
pub fn is_conversation(typed: &Typed) -> bool {
    let is_terminal = || Input::open().is_ok_and(|input| input.source() == Source::Terminal);
    typed.words.is_empty() && typed.stdin && is_terminal()
}

/// Asks, and prints the answer.
pub fn run(typed: Typed, start: &Start, output: &mut Output) -> Result<u8> {
    let mut input = Input::open().ok();
    // Wrong usage is told before anything else, wrong settings before waiting for input.
    if typed.words.is_empty() && (!typed.stdin || input.is_none()) {
        return Err(no_prompt());
    }
    let mut run = Run::with_skills(typed, start, Needs::Endpoint, output)?;
    let model = model(&run)?;
    output.name_model(model.name());
    let mut attached = Attachments::typed(&run)?;
    let prompt = prompt(&run, input.as_mut(), output)?;
    let prompt = attached.go_with(User::from(prompt));
    output.ask(&prompt.told());
    let kept = Kept::open(&mut run, model.name(), false, output)?;
    let (instructions, tools) = run.equip(output);
    let mut conversation = kept.conversation(&instructions);
    conversation.ask(prompt);
    if run.typed.dry_run {
        preview(&conversation, &model, &tools, output)?;
    } else {
        answer(&mut conversation, &model, &tools, &run, output)?;
    }
    Ok(0)
}

/// `--dry-run`: the first request, as JSON, instead of its answer.
pub fn preview(
    conversation: &Conversation,
    model: &HttpModel,
    tools: &Tools<'_>,
    output: &mut Output,
) -> Result<()> {
    let request = Request { messages: conversation.messages(), tools: tools.definitions() };
    let failure = |error| Error::new(Kind::Io, format!("failed to write the request: {error}"));
    output.print(&model.preview(&request).map_err(failure)?);
    Ok(())
}

/// The model behind the configured endpoint.
pub fn model(run: &Run) -> Result<HttpModel> {
    let endpoint = run.config.endpoint()?;
    Ok(HttpModel::new(endpoint, run.typed.stream, run.patience.clone()))
}

/// The conversation's question, with its answer printed. That it is asked has
/// been told before the start.
pub fn answer(
    conversation: &mut Conversation,
    model: &dyn Model,
    tools: &Tools<'_>,
    run: &Run,
    output: &mut Output,
) -> Result<()> {
    let mut tally = Tally::default();
    let turn = agent::turn(conversation, model, tools, &run.bounds(), &mut tally, &mut |event| {
        output.show(&event);
    });
    output.spend(tally);
    if let Err(error) = &turn {
        resume::settle(conversation, error, "");
    }
    resume::tell_fault(conversation, output);
    finish(&turn?, conversation.answered(), output)
}

/// Prints the end of an answer; one that is not whole is an error after it.
pub fn finish(answer: &Answer, text: &str, output: &mut Output) -> Result<()> {
    output.answer(text);
    if let Some(cause) = &answer.cause {
        let message = cause.message().replacen("an answer", "the whole answer", 1);
        let error = Error::new(Kind::Truncated, message);
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
pub fn shortfall(finish: Finish) -> Option<Error> {
    let (cause, hint) = match finish {
        Finish::Complete => return None,
        Finish::Length => (
            "the model reached its limit of tokens",
            "ask for a shorter answer, or raise the server's limit",
        ),
        Finish::Cut => ("the connection ended before the reply did", "ask again"),
        Finish::Filtered => ("the endpoint's content filter stepped in", "ask in other words"),
        Finish::UnparsedCall => (
            "the model called a tool, but the server handed the call on as text",
            "the server needs a parser for this model's calls: vLLM --enable-auto-tool-choice --tool-call-parser NAME, llama.cpp --jinja",
        ),
    };
    let kind = match finish {
        Finish::Filtered => Kind::Endpoint,
        Finish::UnparsedCall => Kind::Protocol,
        _ => Kind::Truncated,
    };
    Some(Error::new(kind, format!("failed to get the whole answer: {cause}")).with_hint(hint))
}

/// The words of the command line and what stands on standard input.
fn prompt(run: &Run, input: Option<&mut Input>, output: &mut Output) -> Result<String> {
    let words = words(&run.typed.words)?;
    let input = input.filter(|_| run.typed.stdin);
    if words == "-" {
        let input = input.ok_or_else(no_prompt)?;
        return not_empty(read(input, None, &run.patience, output)?.unwrap_or_default());
    }
    if words.trim().is_empty() {
        let input = input.ok_or_else(no_prompt)?;
        return not_empty(read(input, None, &run.patience, output)?.unwrap_or_default());
    }
    let added = match input {
        Some(input) => match input.source() {
            Source::Terminal | Source::Nothing => None,
            Source::File => read(input, None, &run.patience, output)?,
            Source::Stream => read(input, Some(limits::STDIN_PATIENCE), &run.patience, output)?,
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
pub fn words(words: &[std::ffi::OsString]) -> Result<String> {
    let words: Option<Vec<&str>> = words.iter().map(|word| word.to_str()).collect();
    Ok(words.ok_or_else(|| usage("the prompt is not UTF-8 text"))?.join(" "))
}

fn read(
    input: &mut Input,
    first: Option<std::time::Duration>,
    patience: &Patience,
    output: &mut Output,
) -> Result<Option<String>> {
    match input.read_to_end(limits::STDIN_BYTES, first, patience) {
        Ok(Whole::Bytes(bytes)) => Ok(Some(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                output.warn("standard input is not UTF-8 text: what is not is replaced");
                String::from_utf8_lossy(error.as_bytes()).into_owned()
            }
        })),
        Ok(Whole::Silent) => {
            output.ignore_stdin();
            Ok(None)
        }
        Ok(Whole::TooLarge) => {
            let most = limits::STDIN_BYTES >> 20;
            Err(usage(format!("standard input is larger than {most} MiB")))
        }
        Err(ReadError::Stop(stop)) => Err(stop.into()),
        Err(ReadError::Io(error)) => {
            Err(Error::new(Kind::Io, format!("failed to read standard input: {error}")))
        }
    }
}

fn not_empty(prompt: String) -> Result<String> {
    if prompt.trim().is_empty() { Err(no_prompt()) } else { Ok(prompt) }
}

/// Wrong usage: nothing is asked. What is attached asks nothing.
pub fn no_prompt() -> Error {
    usage("there is no prompt")
        .with_hint("skills-runner \"your question\", or: echo \"your question\" | skills-runner")
}
