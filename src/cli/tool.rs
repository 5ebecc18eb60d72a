//! `tool NAME [JSON|-]`: runs one tool without a model.

use std::path::Path;

use serde_json::{Map, Value};

use crate::cli::model_input::record_start;
use crate::cli::options::{CommonOptions, ToolCommand};
use crate::cli::run::Run;
use crate::cli::startup::Startup;
use crate::cli::stdin;
use crate::cli::values::usage;
use crate::config::ConfigNeeds;
use crate::ui::Output;
use agent::tools::{self, Tools};
use base::error::Result;
use base::event::{Event, RunStats};
use base::limits;
use base::text::shell_quoted;
use base::tool::{ToolCall, ToolResult, parse_arguments};
use host::cancellation::StopReason;

/// Runs the tool and prints its result. The status is 0, or 1 for a failed result, which is
/// printed too.
pub(super) fn run(
    command: ToolCommand,
    options: CommonOptions,
    startup: &Startup,
    output: &mut Output,
) -> Result<u8> {
    let ToolCommand { name, json, tools } = command;
    if tools::find_builtin(&name).is_none() {
        return Err(usage(tools::unknown_tool(&name)));
    }
    let mut run = Run::new(options, startup, ConfigNeeds::Skills, output)?;
    run.apply_tool_options(&tools, output)?;
    run.check_folders(output)?;
    run.check_lock_files()?;
    let is_without = json.is_none();
    let arguments = match json {
        Some(json) if json == "-" => stdin::read_text(limits::STDIN_BYTES, &run.cancellation)?,
        json => json.unwrap_or_default(),
    };
    // A model may send nothing for no arguments; here it is an unset variable, or a lost file.
    let is_nothing = ["", "null"].contains(&arguments.trim()) && !is_without;
    let parsed =
        if is_nothing { Err("it is no object".into()) } else { parse_arguments(&arguments) };
    parsed.map_err(|cause| {
        usage(format!("invalid JSON for {name}: {cause}"))
            .with_hint(format!("skills-runner tool {name} '{{\"NAME\": \"VALUE\"}}'"))
    })?;
    if tools.log.is_some() {
        record_start(&run.skills.catalogue(), output);
    }
    let call = ToolCall { name, arguments, ..ToolCall::default() };
    let (result, stopped) = call_with_records(&call, &run, output)?;
    // After a signal the program ends without printing the result.
    stopped?;
    match &result.object {
        Some(object) => output.print(object),
        None => output.print(&result.full_text()),
    }
    if is_without
        && !result.ok
        && let Some(row) = tools::find_builtin(&call.name)
    {
        let json = shell_quoted(Path::new(&example_of(&row.tool.parameters())));
        output.note(&format!("for example: skills-runner tool {} {json}", call.name));
    }
    Ok(u8::from(!result.ok))
}

/// Arguments by a JSON Schema: those that are required, each with a first choice or `...`. Of
/// several, `run_python_script` requires one.
fn example_of(schema: &Value) -> String {
    const ONE_OF_SEVERAL: &str = "script";
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let has_it = schema["properties"][ONE_OF_SEVERAL].is_object();
    let required = required.chain(has_it.then_some(ONE_OF_SEVERAL));
    let value_of = |name: &str| {
        let property = &schema["properties"][name];
        match property["enum"].get(0) {
            Some(first) => first.clone(),
            None if property["type"] == "integer" => 1.into(),
            None => "...".into(),
        }
    };
    let example: Map<String, Value> =
        required.map(|name| (name.to_string(), value_of(name))).collect();
    Value::Object(example).to_string()
}

/// Runs the call with its log records; also returns whether it was interrupted.
fn call_with_records(
    call: &ToolCall,
    run: &Run,
    output: &mut Output,
) -> Result<(ToolResult, std::result::Result<(), StopReason>)> {
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
    output.set_stats(&stats);
    Ok((result, stopped))
}
