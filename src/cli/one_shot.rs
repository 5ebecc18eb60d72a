//! One-shot runs: one question, one answer.

use crate::cli::attach::Attachments;
use crate::cli::invocation;
use crate::cli::model_lookup::{ModelLookup, look_up_model};
use crate::cli::options::{AskOptions, CommonOptions};
use crate::cli::run::Run;
use crate::cli::session_handle::{self, SessionHandle};
use crate::cli::startup::Startup;
use crate::cli::stdin;
use crate::cli::values::usage;
use crate::ui::Output;
use crate::ui::input::{StdinKind, StdinReader};
use agent::conversation::Conversation;
use agent::tools::Tools;
use agent::turn::{self, TurnLimits, TurnOutcome};
use base::error::{Error, ErrorKind, FailedPart, Result};
use base::event::{Event, RunStats};
use base::limits;
use base::message::{InvokedSkill, UserMessage};
use chat_api::http::HttpModel;
use chat_api::{CallForms, FinishReason, Model, ModelRequest};

/// Whether to start a conversation: there is no prompt, and standard input is a terminal.
pub(super) fn is_conversation(ask: &AskOptions, options: &CommonOptions) -> bool {
    let is_terminal = || StdinReader::open().is_ok_and(|input| input.kind() == StdinKind::Terminal);
    ask.prompt.is_none() && options.stdin && is_terminal()
}

/// Sends the question and prints the answer.
pub(super) fn run(
    ask: &AskOptions,
    options: CommonOptions,
    startup: &Startup,
    output: &mut Output,
) -> Result<()> {
    let mut input = StdinReader::open().ok().filter(|_| options.stdin);
    // Report wrong usage first, then invalid settings, and only then wait for input.
    if ask.prompt.is_none() && input.is_none() {
        return Err(missing_prompt());
    }
    let mut run = Run::for_questions(ask, options, startup, false, output)?;
    let model = new_model(&run)?;
    output.set_model(model.name());
    let mut attached = Attachments::from_options(&ask.attach, &run)?;
    let given = invocation::given_skills(&ask.skills, &run, output)?;
    let typed = ask.prompt.as_deref().unwrap_or_default();
    let invoked = invocation::invoked_by_prompt(typed, &run, output)?;
    run.check_requirements()?;
    let prompt = match invoked {
        Some(skill) => read_invocation(skill, input.as_mut(), &run, output)?,
        None => read_question(typed, input.as_mut(), &run, output)?,
    };
    let mut prompt = attached.move_into(prompt);
    invocation::add_given(&given, &mut prompt.skills);
    output.record_question(&prompt.to_text());
    let handle = SessionHandle::open(&mut run, ask, &model, false, output)?;
    let question = match handle.first_question() {
        Some(first) => first,
        // What was piped in may be anything.
        None if !matches!(typed.trim(), "" | "-") => typed.into(),
        None => prompt.typed_text(),
    };
    let (system_prompt, tools) = run.prepare_model_input(&question, &model, output);
    let mut conversation = handle.into_conversation(&system_prompt);
    conversation.add_question(prompt);
    if ask.dry_run {
        print_request(&conversation, &model, &tools, output)
    } else {
        let is_long = conversation.estimate() > limits::SHORT_REQUEST_TOKENS;
        if is_long && !run.may_have_skills() {
            run.query_model(&mut run.config.endpoint()?, false, output)?;
        }
        let stats = &mut RunStats::default();
        let limits = run.turn_limits();
        run_turn(&mut conversation, &model, &tools, &limits, stats, |_, _| {}, output)
            .map_err(|error| with_listed_models(error, &run, output))?;
        run.check_answer(&conversation, &stats.actions)
    }
}

/// Adds the models that the endpoint lists to its refusal of the configured one. Only a person at
/// a terminal gets this: other runs are not delayed by a request that no answer needs.
fn with_listed_models(error: Error, run: &Run, output: &mut Output) -> Error {
    let endpoint = run.config.endpoint.as_ref();
    let Some(endpoint) = endpoint.filter(|_| error.part() == Some(FailedPart::Model)) else {
        return error;
    };
    if !output.is_on_terminal() {
        return error;
    }
    let found = look_up_model(endpoint, &run.cancellation, &mut |event| output.show(&event));
    match found {
        Ok(ModelLookup::Unlisted(model)) => {
            error.with_hint(format!("{}: {}", model.message, model.fix))
        }
        _ => error,
    }
}

/// `--dry-run`: prints the first request as JSON instead of sending it.
pub(super) fn print_request(
    conversation: &Conversation,
    model: &HttpModel,
    tools: &Tools<'_>,
    output: &mut Output,
) -> Result<()> {
    let request = ModelRequest {
        messages: conversation.messages(),
        tools: tools.definitions(),
        call_mark: conversation.call_mark(),
        forms: CallForms {
            described: &tools.call_forms(),
            allowed: &tools.allowed_forms(&conversation.skills_read(), None),
            allows_answer: true,
        },
    };
    let failure =
        |error| Error::new(ErrorKind::Io, format!("failed to write the request: {error}"));
    output.print(&model.preview(&request).map_err(failure)?);
    Ok(())
}

/// The model of the configured endpoint.
pub(super) fn new_model(run: &Run) -> Result<HttpModel> {
    let endpoint = run.config.endpoint()?;
    Ok(HttpModel::new(endpoint, run.options.stream, run.cancellation.clone()))
}

/// Runs the turn for the conversation's question and prints the answer. The caller has reported
/// the question to `output`. `observe` is called before each event is shown.
pub(super) fn run_turn(
    conversation: &mut Conversation,
    model: &dyn Model,
    tools: &Tools<'_>,
    limits: &TurnLimits,
    stats: &mut RunStats,
    observe: fn(&Event<'_>, &mut Output),
    output: &mut Output,
) -> Result<()> {
    let mut partial_answer = String::new();
    let turn = turn::run_turn(conversation, model, tools, limits, stats, &mut |event| {
        observe(&event, output);
        match event {
            Event::Text(text) => partial_answer.push_str(text),
            Event::MessageEnd { .. } => partial_answer.clear(),
            _ => {}
        }
        output.show(&event);
    });
    output.set_stats(stats);
    if let Err(error) = &turn {
        session_handle::settle_failed_turn(conversation, error, &partial_answer);
    }
    session_handle::report_save_errors(conversation, output);
    print_answer(&turn?, conversation.answer_text(), output)
}

/// Prints the answer; returns an error afterwards if it is incomplete.
pub(super) fn print_answer(answer: &TurnOutcome, text: &str, output: &mut Output) -> Result<()> {
    output.answer(text);
    if let Some(cause) = &answer.cause {
        return Err(Error::from_fault(ErrorKind::Truncated, cause.fault().clone()));
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
            "the model wrote a call of a tool into its text, and it was not run",
            "the server needs a parser for this model's calls (vLLM --enable-auto-tool-choice --tool-call-parser NAME, llama.cpp --jinja); without one, LLM_TOOLS=prompted or another model may help",
        ),
        FinishReason::UnknownNumber => (
            "no result shows a number in it, so the model may have invented it",
            "ask for the calculation, or use a larger model",
        ),
    };
    let kind = match finish {
        FinishReason::Filtered => ErrorKind::Endpoint,
        FinishReason::UnparsedCall | FinishReason::UnknownNumber => ErrorKind::Protocol,
        _ => ErrorKind::Truncated,
    };
    let what = match finish {
        FinishReason::UnknownNumber => "a certain answer",
        _ => "the whole answer",
    };
    Some(Error::new(kind, format!("failed to get {what}: {cause}")).with_hint(hint))
}

/// The prompt that invokes a skill: its document, and the text of standard input.
fn read_invocation(
    skill: InvokedSkill,
    input: Option<&mut StdinReader>,
    run: &Run,
    output: &mut Output,
) -> Result<UserMessage> {
    let text = added_stdin(input, run, output)?.unwrap_or_default();
    Ok(UserMessage { skills: vec![skill], text, ..UserMessage::default() })
}

/// The question: what was typed, and the text of standard input.
fn read_question(
    typed: &str,
    input: Option<&mut StdinReader>,
    run: &Run,
    output: &mut Output,
) -> Result<UserMessage> {
    let of = |text, typed_bytes| UserMessage { text, typed_bytes, ..UserMessage::default() };
    if typed == "-" || typed.trim().is_empty() {
        let input = input.ok_or_else(missing_prompt)?;
        let bytes = stdin::read_bytes(input, limits::STDIN_BYTES, None, &run.cancellation)?;
        let prompt = readable_text(bytes.unwrap_or_default(), output);
        return if prompt.trim().is_empty() { Err(missing_prompt()) } else { Ok(of(prompt, 0)) };
    }
    Ok(match added_stdin(input, run, output)? {
        Some(added) => of(format!("{typed}\n\n{added}"), typed.len()),
        None => typed.into(),
    })
}

/// The text of standard input that is added to a prompt, between its marks; `None`: there is no
/// text.
fn added_stdin(
    input: Option<&mut StdinReader>,
    run: &Run,
    output: &mut Output,
) -> Result<Option<String>> {
    let Some(input) = input else {
        return Ok(None);
    };
    let first_byte_timeout = match input.kind() {
        StdinKind::Terminal | StdinKind::Nothing => return Ok(None),
        StdinKind::File => None,
        StdinKind::Stream => Some(limits::STDIN_FIRST_BYTE),
    };
    let most = limits::STDIN_BYTES;
    let Some(bytes) = stdin::read_bytes(input, most, first_byte_timeout, &run.cancellation)? else {
        output.ignore_stdin();
        return Ok(None);
    };
    let text = readable_text(bytes, output);
    let newline = if text.ends_with('\n') { "" } else { "\n" };
    Ok((!text.is_empty()).then(|| format!("<stdin>\n{text}{newline}</stdin>")))
}

/// The text of standard input; invalid bytes are replaced.
fn readable_text(bytes: Vec<u8>, output: &mut Output) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        output.warn("standard input is not valid UTF-8: invalid bytes are replaced");
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    })
}

/// The error for a missing prompt. An attachment alone is not a prompt.
pub(super) fn missing_prompt() -> Error {
    usage("there is no prompt")
        .with_hint("skills-runner \"your question\", or: echo \"your question\" | skills-runner")
}
