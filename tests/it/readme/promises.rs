//! What the texts promise about their commands beyond status 0.

use super::reader::QUESTIONS;
use crate::harness::{MCP_TOOLS, Test};

/// A promise about the commands that contain `command`, or begin with it if it
/// begins with `^`.
pub(super) struct Promise {
    pub command: &'static str,
    /// Standard input of the command, if it is not the terminal.
    pub stdin: Option<&'static str>,
    /// What the terminal must show.
    pub shows: &'static [&'static str],
    /// Files that must exist in the reader's folder afterwards.
    pub leaves: &'static [&'static str],
}

/// A promise of output.
const fn shows(command: &'static str, shows: &'static [&'static str]) -> Promise {
    Promise { command, stdin: None, shows, leaves: &[] }
}

/// A promise of files.
const fn leaves(command: &'static str, leaves: &'static [&'static str]) -> Promise {
    Promise { leaves, ..shows(command, &[]) }
}

/// The first messages of an MCP client, and the tools in the answer.
pub(super) const CLIENT: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;

const POWER: &str = "18446744073709551616";

/// A row without a matching command fails the test: remove it.
pub(super) const PROMISES: &[Promise] = &[
    shows("^skills-runner   ", &["> hello", "(played) hello"]),
    shows("^skills-runner -c ", &["> hello", "(played) hello"]),
    leaves(
        "make install PREFIX=\"$HOME/.local\"",
        &["home/.local/bin/skills-runner", "home/.local/share/man/man1/skills-runner.1"],
    ),
    Promise { stdin: Some(CLIENT), ..shows("^skills-runner mcp", &MCP_TOOLS) },
    leaves("| xargs -P", &["answers/1.md", "answers/2.md", "answers/3.md"]),
    leaves("parallel -j 8", &["answers.md", "jobs.tsv"]),
    shows("docker run", &[POWER]),
    leaves("--generate man >", &["skills-runner.1"]),
    shows("make demo", &["100000/4084101"]),
    shows("\"what is 2 ** 64?\"", &[POWER]),
    shows("skills-runner \"Which region", &["(played) Which region sells best in /"]),
    shows("skills-runner \"question\"", &["(played) question"]),
    shows("tail -n 500 app.log |", &["the disk is full", "what fails here"]),
    shows("skills-runner < question.txt", &["(played) How many llamas"]),
    shows("skills-runner tool run_python_script", &[POWER]),
    shows("skills-runner -n \"$question\"", &QUESTIONS),
    shows("| jq -r .answer", &[POWER]),
    shows("| jq -rj", &[POWER]),
    shows("-a chart.png -a notes.txt", &["(played) does the chart"]),
    shows("skills-runner --session report", &["(played) and in March?"]),
    shows("skills-runner sessions list", &["report"]),
    leaves("skills-runner facts add", &["home/notes/memory.md"]),
    shows("skills-runner facts list", &["the printer is in room 4"]),
    shows("skills-runner skills list", &["calculator", "table-report"]),
    shows("skills-runner skills show calculator", &["references/functions.md", "scripts/calc.py"]),
    leaves("skills-runner skills setup table-report", &["skills/table-report/venv/bin/python"]),
    leaves("skills-runner skills new my-skill", &["skills/my-skill/SKILL.md"]),
    shows("skills-runner doctor", &["received"]),
    shows("skills-runner doctor --json", &["\"type\":\"doctor\"", "\"exit_code\":0"]),
    shows("skills-runner --dry-run", &["\"messages\""]),
    shows("skills-runner -v \"hi\"", &["POST http"]),
];

/// The promises of a command.
pub(super) fn of(command: &str) -> Vec<&'static Promise> {
    let fits = |promise: &&Promise| match promise.command.strip_prefix('^') {
        Some(beginning) => command.starts_with(beginning),
        None => command.contains(promise.command),
    };
    PROMISES.iter().filter(fits).collect()
}

impl Promise {
    /// The first promise that is not kept.
    pub(super) fn broken(&self, test: &Test, output: &str) -> Option<String> {
        let missing = self.shows.iter().find(|text| !output.contains(**text));
        let absent = self.leaves.iter().find(|path| !test.exists(path));
        let missing = missing.map(|text| format!("it does not show `{text}`"));
        missing.or(absent.map(|path| format!("it does not leave `{path}`")))
    }
}
