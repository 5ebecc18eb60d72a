//! Sample outputs: the real output must have the same lines, except for measured
//! numbers.

use super::documents::{Block, Faults, root};
use super::reader::{Reader, answer};
use crate::harness::{Reply, Request, Server, Test};

/// A sample's rule: a piece of its text, and the function that gets the real output.
struct Sample {
    has: &'static str,
    real: fn(&Reader) -> String,
}

const SAMPLES: [Sample; 4] = [
    Sample { has: "<tool_call-", real: described_tools },
    Sample { has: "← exit 0", real: demo },
    Sample { has: "tool call: called", real: doctors_report },
    Sample { has: "warning[unclosed-quote]", real: linters_findings },
];

pub(super) fn check(reader: &Reader, block: &Block, faults: &mut Faults) {
    if block.text.starts_with("skills/") && block.text.contains("/\n") {
        return tree(block, faults);
    }
    let Some(sample) = SAMPLES.iter().find(|sample| block.text.contains(sample.has)) else {
        return faults.push(format!(
            "{}: no rule for this sample (tests/it/readme/samples.rs)",
            block.place
        ));
    };
    let real = (sample.real)(reader);
    let known: Vec<String> = real.lines().map(measured).collect();
    for line in block.text.lines() {
        if !known.contains(&measured(line)) {
            faults.push(format!("{}: no output has the line `{line}`:\n{real}", block.place));
        }
    }
}

/// The line with `N` for measured numbers: times, tokens, pieces of a stream.
fn measured(line: &str) -> String {
    let mut words: Vec<&str> = line.split(' ').collect();
    for index in 1..words.len() {
        let unit = words[index].trim_end_matches([',', ':']);
        if ["ms", "pieces", "tokens"].contains(&unit) && words[index] != "tokens:" {
            words[index - 1] = "N";
        }
    }
    words.join(" ")
}

/// The files of a folder tree exist, except those described as optional.
fn tree(block: &Block, faults: &mut Faults) {
    let mut lines = block.text.lines();
    let folder = lines.next().unwrap_or_default();
    for line in lines.filter(|line| !line.contains("optional")) {
        let path = line.split_whitespace().next().unwrap_or_default();
        if !root().join(folder).join(path).is_file() {
            faults.push(format!("{}: there is no {folder}{path}", block.place));
        }
    }
}

/// What `make demo` prints, with its long lines folded.
fn demo(reader: &Reader) -> String {
    let line = "skills-runner --no-env-file demo 2>&1 | fold -s -w 120 | sed 's/ $//'";
    reader.test.next_run().shell(line).run().stdout
}

/// The system message for a model without tools.
fn described_tools(reader: &Reader) -> String {
    let server = Server::start([Reply::text("4")]);
    let test = reader.test.next_run().endpoint(&server).env("LLM_TOOLS", "prompted");
    test.args(["2 + 2?"]).run().success();
    let request = &server.finish()[0];
    // The mark of the document.
    request.system().replace(request.call_mark(), "a7Kq")
}

/// The report for an Ollama with a small context.
fn doctors_report(reader: &Reader) -> String {
    let server = Server::of_all_requests(|request: &Request| {
        let body = match request.path.as_str() {
            "/v1/models" => r#"{"data":[{"id":"qwen3:latest"},{"id":"other"}]}"#,
            "/api/version" => r#"{"version":"0.11.0"}"#,
            "/api/ps" => {
                r#"{"models":[{"name":"qwen3:latest","model":"qwen3:latest","context_length":4096}]}"#
            }
            "/api/show" => {
                r#"{"parameters":"temperature 1","model_info":{"qwen3.context_length":40960}}"#
            }
            _ => return answer(request),
        };
        Reply::status(200).body(body)
    });
    let test = reader.test.next_run().endpoint(&server).env("LLM_MODEL_NAME", "qwen3:latest");
    test.args(["doctor"]).run().stdout
}

/// The findings for a skill with the problems in the sample.
fn linters_findings(_: &Reader) -> String {
    let document = "---\nname: forms\ndescription: \"Fills forms.\n---\nIt needs openpyxl.\n";
    let test = Test::new().skill("forms", document);
    let test = test.file("skills/forms/scripts/fill.py", "import sys\n\nimport docx, openpyxl\n");
    test.args(["skills", "check"]).run().stdout
}
