//! `tool NAME [JSON|-]`: one tool by hand, without a model.

use std::ffi::OsString;

use crate::cli::args::{CommandLine, usage};
use crate::cli::setup::{Run, Startup, start_log};
use crate::config::ConfigNeeds;
use crate::error::{Error, ErrorKind, Result};
use crate::event::{Event, RunStats};
use crate::limits;
use crate::tool::{ToolCall, ToolResult, parse_arguments};
use crate::tools::{self, TABLE, Tools};
use crate::world::cancellation::StopReason;
use crate::world::input::{StdinError, StdinReader, WholeInput};
use crate::world::output::Output;

/// Runs the tool and prints its result: status 0 for a result, 1 for a failed
/// one, which is printed all the same.
pub(super) fn run(typed: CommandLine, start: &Startup, output: &mut Output) -> Result<u8> {
    let (name, json) = match typed.words.as_slice() {
        [] => {
            let names: Vec<&str> = TABLE.iter().map(|tool| tool.name()).collect();
            return Err(usage("tool needs the name of a tool")
                .with_hint(format!("the tools are: {}", names.join(", "))));
        }
        [name] => (name, None),
        [name, json] => (name, Some(json.clone())),
        [_, _, more, ..] => {
            let more = more.to_string_lossy();
            return Err(usage(format!(
                "tool takes a name and one JSON object, not also `{more}`"
            ))
            .with_hint(
                "put the JSON into single quotes; a prompt that begins with `tool` comes after --",
            ));
        }
    };
    let name = name.to_string_lossy().into_owned();
    if tools::find(&name).is_none() {
        return Err(usage(tools::unknown(&name)));
    }
    let run = Run::with_skills(typed, start, ConfigNeeds::Skills, output)?;
    let arguments = arguments(json, &run)?;
    parse_arguments(&arguments)
        .map_err(|fault| usage(format!("the JSON of {name} is broken: {fault}")))?;
    let call = ToolCall { name, arguments, ..ToolCall::default() };
    let (result, stopped) = recorded(&call, &run, output)?;
    // A signal ends the program by itself; there is nobody to read the result.
    stopped?;
    output.print(&result.content);
    Ok(u8::from(!result.ok))
}

/// Runs the call between its records, and tells whether it was interrupted.
fn recorded(
    call: &ToolCall,
    run: &Run,
    output: &mut Output,
) -> Result<(ToolResult, std::result::Result<(), StopReason>)> {
    if run.typed.log.is_some() {
        start_log(&run.skills.catalogue(), output);
    }
    let tools = Tools::by_hand(run.tool_context());
    let mut stopped = Ok(());
    let result = tools.call_told(call, &mut |event| {
        if matches!(event, Event::ToolResult { .. }) {
            // A log that takes the result no more does not take it from the person.
            stopped = run.cancellation.check();
        }
        match event {
            Event::Warning(_) => output.show(&event),
            _ => output.record(&event),
        }
    })?;
    output.spend(RunStats { tool_calls: 1, ..RunStats::default() });
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
