//! Blocks that are files: read by a reader of their format, and used.

use serde_json::Value;

use super::documents::{Block, Faults};
use super::reader::Reader;
use crate::harness::interpreter;

/// Prints, as a line of JSON each, the objects of a Python text that start a program.
const COMMANDS: &str = r#"
import ast, json, sys
tree = compile(sys.stdin.read(), "block", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
compile(tree, "block", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
for node in ast.walk(tree):
    if isinstance(node, ast.Dict) and any(getattr(key, "value", None) == "command" for key in node.keys):
        print(json.dumps(ast.literal_eval(node)))
"#;

/// What a client of MCP says first.
const CLIENT: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
"#;

pub fn check(reader: &Reader, block: &Block, faults: &mut Faults) {
    let result = match block.language.as_str() {
        "json" => serde_json::from_str(&block.text)
            .map_err(|error| format!("no JSON: {error}"))
            .and_then(|value| serve(reader, &value)),
        "python" => python(reader, &block.text),
        "" => Err("the block has no language".into()),
        other => Err(format!("no rule for blocks of `{other}`")),
    };
    faults.extend(
        result
            .err()
            .map(|fault| format!("{}: {fault}", block.place)),
    );
}

/// The text compiles, and the servers that it starts serve.
fn python(reader: &Reader, text: &str) -> Result<(), String> {
    let python = format!("{} -I -c \"$COMMANDS\"", interpreter().display());
    let test = reader.test.again().env("COMMANDS", COMMANDS).stdin(text);
    let run = test.shell(&python).run();
    if run.status != 0 {
        return Err(format!("Python does not take it: {}", run.stderr));
    }
    run.stdout_json_lines()
        .iter()
        .try_for_each(|server| serve(reader, server))
}

/// Starts every server of an MCP client's settings.
fn serve(reader: &Reader, value: &Value) -> Result<(), String> {
    match value {
        Value::Object(fields) if fields.contains_key("command") => {
            let command = fields["command"].as_str().unwrap_or_default();
            let args = fields
                .get("args")
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            let words: Vec<String> = std::iter::once(command)
                .chain(args.filter_map(Value::as_str))
                .map(|word| reader.played(word))
                .collect();
            let test = reader.test.again().env("PATH", reader.search_path());
            let run = test.args(&words).shell("exec \"$@\"").stdin(CLIENT).run();
            let four = [
                "list_skills",
                "get_skill",
                "read_file_in_skill",
                "run_python_script",
            ];
            match four
                .iter()
                .find(|tool| !run.stdout.contains(&format!("\"{tool}\"")))
            {
                None => Ok(()),
                Some(tool) => Err(format!(
                    "{words:?} does not offer {tool}: {}{}",
                    run.stdout, run.stderr
                )),
            }
        }
        Value::Object(fields) => fields.values().try_for_each(|value| serve(reader, value)),
        Value::Array(items) => items.iter().try_for_each(|value| serve(reader, value)),
        _ => Ok(()),
    }
}
