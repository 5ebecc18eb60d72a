//! `tool NAME [JSON|-]`: runs one tool without a model.

use std::ffi::OsString;

use crate::cli::args::{CommandLine, usage};
use crate::cli::setup::{Run, Startup, record_start};
use crate::config::ConfigNeeds;
use crate::error::{Error, ErrorKind, Result};
use crate::event::{Event, RunStats};
use crate::limits;
use crate::tool::{ToolCall, ToolResult, parse_arguments};
use crate::tools::{self, BUILTIN_TOOLS, Tools};
use crate::world::cancellation::StopReason;
use crate::world::input::{StdinError, StdinReader, WholeInput};
use crate::world::output::Output;

/// Runs the tool and prints its result. The status is 0, or 1 for a failed result, which is
/// printed too.
pub(super) fn run(args: CommandLine, startup: &Startup, output: &mut Output) -> Result<u8> {
    let (name, json) = match args.words.as_slice() {
        [] => {
            let names: Vec<&str> = BUILTIN_TOOLS.iter().map(|tool| tool.name()).collect();
            return Err(usage("tool needs the name of a tool")
                .with_hint(format!("the tools are: {}", names.join(", "))));
        }
        [name] => (name, None),
        [name, json] => (name, Some(json.clone())),
        [_, _, more, ..] => {
            let more = more.to_string_lossy();
            return Err(usage(format!(
                "tool takes a name and one JSON object; unexpected argument `{more}`"
            ))
            .with_hint(
                "put the JSON into single quotes; for a prompt that starts with `tool`: skills-runner -- tool …",
            ));
        }
    };
    let name = name.to_string_lossy().into_owned();
    if tools::find_builtin(&name).is_none() {
        return Err(usage(tools::unknown_tool(&name)));
    }
    let run = Run::with_skills(args, startup, ConfigNeeds::Skills, output)?;
    let arguments = arguments(json, &run)?;
    parse_arguments(&arguments)
        .map_err(|cause| usage(format!("invalid JSON for {name}: {cause}")))?;
    let call = ToolCall { name, arguments, ..ToolCall::default() };
    let (result, stopped) = call_with_records(&call, &run, output)?;
    // After a signal the program ends without printing the result.
    stopped?;
    output.print(&result.full_text());
    Ok(u8::from(!result.ok))
}

/// Runs the call with its log records; also returns whether it was interrupted.
fn call_with_records(
    call: &ToolCall,
    run: &Run,
    output: &mut Output,
) -> Result<(ToolResult, std::result::Result<(), StopReason>)> {
    if run.args.log.is_some() {
        record_start(&run.skills.catalogue(), output);
    }
    let tools = Tools::builtin(run.tool_context());
    let mut stopped = Ok(());
    let mut stats = RunStats::default();
    let mut sink = |event: Event<'_>| match event {
        Event::Warning(_) => output.show(&event),
        _ => output.record(&event),
    };
    let result = tools.call_with_events(call, &mut stats, &mut sink, |call| {
        let result = call();
        // Checked before recording: if the log fails then, the user still gets the result.
        stopped = run.cancellation.check();
        result
    })?;
    output.set_stats(stats);
    Ok((result, stopped))
}

fn arguments(json: Option<OsString>, run: &Run) -> Result<String> {
    let Some(json) = json else {
        return Ok(String::new());
    };
    if json != "-" {
        return json.into_string().map_err(|_| usage("the JSON is not UTF-8 text"));
    }
    let io_error =
        |error| Error::new(ErrorKind::Io, format!("failed to read standard input: {error}"));
    let mut input = StdinReader::open().map_err(io_error)?;
    match input.read_to_end(limits::STDIN_BYTES, None, &run.cancellation) {
        Ok(WholeInput::Bytes(bytes)) => {
            String::from_utf8(bytes).map_err(|_| usage("the JSON is not UTF-8 text"))
        }
        Ok(WholeInput::Silent | WholeInput::TooLarge) => {
            Err(usage("the JSON on standard input is too large"))
        }
        Err(StdinError::Stop(stop)) => Err(stop.into()),
        Err(StdinError::Io(error)) => Err(io_error(error)),
    }
}
