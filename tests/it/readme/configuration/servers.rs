//! Settings of MCP clients: the server that they start must have the four tools.

use serde_json::Value;

use crate::harness::{MCP_TOOLS, interpreter};
use crate::readme::promises::CLIENT;
use crate::readme::reader::Reader;

/// Prints the objects of a Python text that start a program, each as a line of JSON.
/// The text is compiled, not run: its imports are not installed.
const COMMANDS: &str = r#"
import ast, json, sys
text = sys.stdin.read()
compile(text, "block", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
for node in ast.walk(ast.parse(text)):
    if isinstance(node, ast.Dict) and any(getattr(key, "value", None) == "command" for key in node.keys):
        print(json.dumps(ast.literal_eval(node)))
"#;

pub(super) fn json(reader: &Reader, text: &str) -> Result<(), String> {
    let value = serde_json::from_str(text).map_err(|error| format!("no JSON: {error}"))?;
    serve(reader, &value)
}

/// The text compiles, and the servers that it names work.
pub(super) fn python(reader: &Reader, text: &str) -> Result<(), String> {
    let python = format!("{} -I -c \"$COMMANDS\"", interpreter().display());
    let test = reader.test.next_run().env("COMMANDS", COMMANDS).stdin(text);
    let run = test.shell(&python).run();
    if run.status != 0 {
        return Err(format!("Python does not take it: {}", run.stderr));
    }
    let servers = run.stdout_json_lines();
    servers.iter().try_for_each(|server| serve(reader, server))
}

/// Starts every server in the value.
pub(super) fn serve(reader: &Reader, value: &Value) -> Result<(), String> {
    match value {
        Value::Object(fields) => match fields.get("command").and_then(Value::as_str) {
            Some(command) => start(reader, command, &fields["args"]),
            None => fields.values().try_for_each(|value| serve(reader, value)),
        },
        Value::Array(items) => items.iter().try_for_each(|value| serve(reader, value)),
        _ => Ok(()),
    }
}

fn start(reader: &Reader, command: &str, args: &Value) -> Result<(), String> {
    let args = args.as_array().into_iter().flatten().filter_map(Value::as_str);
    let words: Vec<String> =
        std::iter::once(command).chain(args).map(|word| reader.played(word)).collect();
    let line = format!("PATH='{}'; exec \"$@\"", reader.search_path());
    let test = reader.test.next_run().args(&words).stdin(format!("{CLIENT}\n"));
    let run = test.shell(&line).run();
    match MCP_TOOLS.iter().find(|tool| !run.stdout.contains(&format!("\"{tool}\""))) {
        None => Ok(()),
        Some(tool) => Err(format!("{words:?} has no tool {tool}: {}{}", run.stdout, run.stderr)),
    }
}
