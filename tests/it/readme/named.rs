//! What the texts name outside of blocks: links, options, commands, settings,
//! make targets.

use std::path::Path;

use super::documents::{Document, Faults, documents, root};
use crate::harness::{Server, Test};

/// Options of other programs, and which programs.
const FOREIGN: [(&str, &str); 12] = [
    ("--init", "docker"),
    ("--enable-auto-tool-choice", "vLLM"),
    ("--tool-call-parser", "vLLM"),
    ("--jinja", "llama.cpp"),
    ("--mcp-servers-config", "llama.cpp"),
    ("--tools", "llama.cpp"),
    ("--api-key", "llama.cpp, mcpo"),
    ("--api-key-file", "llama.cpp"),
    ("--strict-auth", "mcpo"),
    ("--host", "mcpo, Open WebUI"),
    ("--cwd", "mcp-proxy"),
    ("-e", "mcp-proxy"),
];

/// Programs whose options are not checked.
const OTHERS: [&str; 16] = [
    "cargo",
    "claude",
    "codex",
    "curl",
    "docker",
    "env",
    "git",
    "journalctl",
    "kubectl",
    "parallel",
    "pip",
    "sbatch",
    "ssh",
    "systemctl",
    "uname",
    "xargs",
];

/// Every link into the repository leads to an existing file and heading.
pub(super) fn check_links(faults: &mut Faults) {
    let mut texts = documents();
    texts.extend(["ARCHITECTURE.md", "CHANGELOG.md"].map(|name| Document::read(Path::new(name))));
    for document in &texts {
        let folder = Path::new(&document.name).parent().unwrap_or(Path::new(""));
        for (place, target) in document.links() {
            if target.starts_with("http://") || target.starts_with("https://") {
                continue;
            }
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let path = match path {
                "" => Path::new(&document.name).to_owned(),
                path => folder.join(path),
            };
            if !root().join(&path).exists() {
                faults.push(format!("{place}: there is no file `{target}`"));
            } else if !anchor.is_empty()
                && !Document::read(&path).anchors().iter().any(|known| known == anchor)
            {
                faults.push(format!("{place}: there is no heading `{target}`"));
            }
        }
    }
}

/// Options and commands in backticks are in the help, make's targets in the
/// Makefile, settings in the table of settings.
pub(super) fn check_words(faults: &mut Faults) {
    let help = Test::new().args(["--help"]).run().success().stdout;
    let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap();
    let lines = makefile.lines().filter(|line| !line.starts_with('\t'));
    let rules = lines.filter_map(|line| line.split_once(':'));
    let targets: Vec<&str> = rules.flat_map(|(names, _)| names.split(' ')).collect();
    for document in documents() {
        for (place, span) in document.spans() {
            let words: Vec<&str> = span.split_whitespace().collect();
            for option in words.iter().filter(|word| is_option(word) && !OTHERS.contains(&words[0]))
            {
                let option = option.split('=').next().unwrap_or_default();
                let is_foreign = FOREIGN.iter().any(|(name, _)| *name == option);
                let in_help = |word: &str| word.trim_end_matches(',') == option;
                if !is_foreign && !help.split_whitespace().any(in_help) {
                    faults.push(format!("{place}: there is no option `{option}`"));
                }
            }
            match words.as_slice() {
                ["make", target, ..] if !targets.contains(target) => {
                    faults.push(format!("{place}: there is no target `make {target}`"));
                }
                ["skills-runner", command, rest @ ..] => {
                    let command = match (*command, rest) {
                        ("skills" | "facts" | "sessions", [second, ..]) => {
                            format!("  {command} {second}")
                        }
                        _ => format!("  {command}"),
                    };
                    let is_word = command.chars().all(|c| c.is_ascii_lowercase() || c == ' ');
                    if is_word && !help.lines().any(|line| begins_with(line, &command)) {
                        faults.push(format!("{place}: there is no command `{span}`"));
                    }
                }
                _ => {}
            }
        }
        check_settings(&document, faults);
    }
}

/// The commands of a conversation, in the first column of the table, are in `/help`.
pub(super) fn check_commands_of_conversations(faults: &mut Faults) {
    let server = Server::start([]);
    let test = Test::new().endpoint(&server).args(["chat"]);
    let run = test.stdin("/help\n").run().success();
    let help = run.stdout + &run.stderr;
    let mut count = 0;
    for document in documents() {
        let rows = document.text.lines().filter(|line| line.starts_with("| `/"));
        for row in rows {
            let spans = row.split(" | ").next().unwrap_or_default().split('`');
            for command in spans.skip(1).step_by(2).filter_map(|span| span.split(' ').next()) {
                count += 1;
                if !help.split_whitespace().any(|word| word.trim_end_matches([',', ':']) == command)
                {
                    faults.push(format!("{}: `/help` does not have `{command}`", document.name));
                }
            }
        }
    }
    if count == 0 {
        faults.push("no document has the table of a conversation's commands".into());
    }
}

/// The README has every tool, and the exit statuses of the help.
pub(super) fn check_tables(faults: &mut Faults) {
    let readme = Document::read(Path::new("README.md"));
    let rows: Vec<&str> = readme.text.lines().filter(|line| line.starts_with("| ")).collect();
    for tool in agent::tools::BUILTIN_TOOLS.iter().map(|row| row.tool.name()) {
        if !rows.iter().any(|row| row.contains(&format!("`{tool}`"))) {
            faults.push(format!("README.md: no table has the tool `{tool}`"));
        }
    }
    let help = Test::new().args(["--help"]).run().success().stdout;
    let (_, statuses) = help.split_once("Exit status:").unwrap_or_default();
    let statuses = statuses.split("\n\n").next().unwrap_or_default();
    let mut count = 0;
    for status in statuses.split_whitespace().filter(|word| word.parse::<u8>().is_ok()) {
        count += 1;
        if !rows.iter().any(|row| row.starts_with(&format!("| {status} | "))) {
            faults.push(format!("README.md: no table has the exit status {status}"));
        }
    }
    if count < 5 {
        faults.push("the help has no exit statuses any more".into());
    }
}

fn begins_with(line: &str, words: &str) -> bool {
    line.strip_prefix(words).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// `-q`, `--quiet`; not `-`, `--`, `-1`.
fn is_option(word: &str) -> bool {
    let name = word.trim_start_matches('-');
    (1..=2).contains(&(word.len() - name.len()))
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
}

fn check_settings(document: &Document, faults: &mut Faults) {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let names = document.text.split(|c| !is_word(c));
    for name in names.filter(|name| name.starts_with("LLM_") || name.starts_with("SCRIPT_")) {
        if !base::settings::SETTINGS.iter().any(|row| row.name == name) {
            faults.push(format!("{}: there is no setting `{name}`", document.name));
        }
    }
}
