//! What Markdown needs: the commands and the code in it, and the tools that it names.

use std::collections::BTreeSet;

use super::code::{npm_imports, python_imports, uses_network};
use super::install::Installer;
use super::shell::{ShellReader, read_line};
use super::{LineKind, Needs};
use crate::skills::packages::package_named;
use crate::skills::programs::{is_known, product_of};
use crate::text::{FenceLine, OpenFences};

/// Languages of code that a shell runs.
const SHELLS: [&str; 8] =
    ["bash", "sh", "shell", "zsh", "console", "terminal", "shell-session", "shellscript"];
const PYTHONS: [&str; 4] = ["python", "py", "python3", "ipython"];
const SCRIPTS: [&str; 10] =
    ["js", "javascript", "ts", "typescript", "tsx", "jsx", "mjs", "vue", "node", "astro"];
/// Languages of blocks that are not the code of a file.
const NO_CODE: [&str; 8] =
    ["mermaid", "markdown", "md", "http", "graphql", "powershell", "text", "txt"];

/// Words that show that a document is about files of the user.
const FILE_WORDS: [&str; 22] = [
    "codebase",
    "component",
    "components",
    "document",
    "documents",
    "edit",
    "editing",
    "edits",
    "file",
    "files",
    "implement",
    "project",
    "refactor",
    "refactoring",
    "repo",
    "repository",
    "save",
    "saved",
    "spreadsheet",
    "spreadsheets",
    "workbook",
    "workbooks",
];

/// Tools of other clients that no word of a sentence is.
const TOOLS: [&str; 28] = [
    "AskUserQuestion",
    "BashOutput",
    "EnterPlanMode",
    "ExitPlanMode",
    "KillShell",
    "MultiEdit",
    "NotebookEdit",
    "SlashCommand",
    "TaskCreate",
    "TaskUpdate",
    "TodoRead",
    "TodoWrite",
    "WebFetch",
    "WebSearch",
    "apply_patch",
    "exec_command",
    "image_gen",
    "imagegen",
    "js_repl",
    "multi_tool_use",
    "request_user_input",
    "spawn_agent",
    "update_plan",
    "view_file",
    "view_image",
    "web_fetch",
    "web_search",
    "write_stdin",
];

/// Tools whose names are words, too: they count in code, or as "the Read tool".
const WORD_TOOLS: [&str; 11] =
    ["Bash", "Edit", "Glob", "Grep", "LS", "Read", "Skill", "Task", "Write", "bash", "run_command"];

/// Whether a sorted list has the word.
fn is_one_of(list: &[&str], word: &str) -> bool {
    list.binary_search(&word).is_ok()
}

/// Code of a document.
enum Code {
    Shell(ShellReader),
    Python,
    JavaScript,
    /// Lines with a prompt, and those that begin with a well-known program, are commands.
    Plain,
    Other,
}

/// Adds what the body of a document needs.
pub(super) fn read(text: &str, is_main: bool, own: &BTreeSet<String>, needs: &mut Needs) {
    let mut fences = OpenFences::default();
    let mut code = Code::Other;
    let mut is_comment = false;
    let (mut blocks, mut file_words) = (0, 0);
    for line in text.lines() {
        needs.place.next(line);
        let fence = fences.advance(line);
        if is_comment || fence == FenceLine::Outside && line.trim_start().starts_with("<!--") {
            is_comment = !line.contains("-->");
            continue;
        }
        match fence {
            FenceLine::Open(info) => {
                code = code_of(info);
                blocks += usize::from(!matches!(code, Code::Shell(_) | Code::Plain));
            }
            FenceLine::Outside if is_main || line.contains('`') => {
                file_words += read_prose(line, is_main, needs);
            }
            FenceLine::Outside => {}
            FenceLine::Inside => read_code(line, is_main, &mut code, own, needs),
        }
        needs.network |= line.contains("://api.") || is_main && line.contains("googleapis.com/");
    }
    // A document about files of the user names them once in a few sentences, or has code for them.
    needs.code_blocks += blocks;
    needs.files |= file_words * 650 >= text.len() && file_words > 2;
}

/// Adds what a line of code needs.
fn read_code(
    line: &str,
    is_main: bool,
    code: &mut Code,
    own: &BTreeSet<String>,
    needs: &mut Needs,
) {
    match code {
        Code::Shell(reader) => reader.read(line, needs),
        Code::Python => {
            for module in python_imports(line) {
                needs.network |= is_main && uses_network(&module);
                needs.add_module(&module, own, false);
            }
        }
        Code::JavaScript => {
            npm_imports(line).for_each(|it| needs.add_package(Installer::Npm, &it));
        }
        Code::Plain => {
            let line = line.trim();
            let prompted = line.strip_prefix("$ ");
            let first = line.split(' ').next();
            if let Some(command) = prompted {
                needs.line_kind = LineKind::Script;
                read_line(command, needs);
                needs.line_kind = LineKind::Command;
            } else if line.contains(' ') && first.is_some_and(is_known) {
                // It may be the output of a command.
                needs.line_kind = LineKind::Prose;
                read_line(line, needs);
                needs.line_kind = LineKind::Command;
            }
        }
        Code::Other => {}
    }
    needs.network |= is_main && !line.trim_start().starts_with(['#', '/']) && has_address(line);
}

/// Whether code has the address of another machine.
fn has_address(line: &str) -> bool {
    let mut hosts = line.split("://").skip(1);
    let is_other = |host: &str| {
        let no_hosts = ["localhost", "127.", "0.0.0.0", "example", "www.w3.org"];
        host.starts_with(|c: char| c.is_ascii_alphanumeric())
            && !no_hosts.iter().any(|start| host.starts_with(start))
    };
    // Addresses of formats are names.
    let is_name = line.contains("schema") || line.contains("xmlns");
    line.contains("http") && !is_name && hosts.any(is_other)
}

/// The kind of code behind a fence with this text.
fn code_of(info: &str) -> Code {
    let language = info.split([' ', '{', ',', ':']).next().unwrap_or_default().to_lowercase();
    match &*language {
        "" => Code::Plain,
        it if NO_CODE.contains(&it) => Code::Plain,
        it if SHELLS.contains(&it) => Code::Shell(ShellReader::default()),
        it if PYTHONS.contains(&it) => Code::Python,
        it if SCRIPTS.contains(&it) => Code::JavaScript,
        _ => Code::Other,
    }
}

/// Adds what a line of prose needs: commands in code, packages, and tools. Returns the number of
/// words about files, which count in the main document only.
fn read_prose(line: &str, is_main: bool, needs: &mut Needs) -> usize {
    if !line.contains('`') {
        return read_words(line, needs);
    }
    let mut file_words = 0;
    let is_about_packages = ["nstall", "equir", "epend"].iter().any(|word| line.contains(word));
    let pieces: Vec<&str> = line.split('`').collect();
    for (at, piece) in pieces.iter().enumerate() {
        if at % 2 == 1 {
            let name = piece.split(['=', '>', '<', '[', '~']).next().unwrap_or_default();
            let is_candidate = is_about_packages && !name.contains(' ') && !is_known(name);
            if let Some(package) = is_candidate.then(|| package_named(name)).flatten() {
                needs.add_package(Installer::Python, package);
                needs.infer(Installer::Python, package, None);
            }
            let behind = pieces.get(at + 1).copied().unwrap_or_default();
            if let Some((server, _)) = piece.split_once(':').filter(|_| behind.starts_with(" MCP"))
            {
                needs.named.mcp.insert(server.to_string());
            }
            read_inline_code(piece.trim(), needs);
        } else if is_main {
            file_words += read_words(piece, needs);
        }
    }
    file_words
}

fn read_inline_code(code: &str, needs: &mut Needs) {
    let name = code.split('(').next().unwrap_or_default();
    if is_one_of(&TOOLS, name) || is_one_of(&WORD_TOOLS, code) {
        needs.named.tools.insert(name.to_string());
    }
    read_mcp_name(code, needs);
    let first = code.split(' ').next().unwrap_or_default();
    if code.contains(' ') && is_known(first) {
        needs.line_kind = LineKind::Inline;
        read_line(code, needs);
        needs.line_kind = LineKind::Command;
    }
}

fn read_words(text: &str, needs: &mut Needs) -> usize {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let words: Vec<&str> = text.split(|c| !is_part(c)).filter(|word| !word.is_empty()).collect();
    for (at, word) in words.iter().enumerate() {
        let is_before_tool = words.get(at + 1).is_some_and(|next| *next == "tool");
        if is_one_of(&TOOLS, word) || is_one_of(&WORD_TOOLS, word) && is_before_tool {
            needs.named.tools.insert((*word).to_string());
        }
        read_mcp_name(word, needs);
        let is_capital = word.starts_with(|c: char| c.is_ascii_uppercase());
        let follows = |names: &[&str]| words[at + 1..].starts_with(names);
        let is_connector =
            follows(&["app", "tools"]) || follows(&["app", "from", "this", "plugin"]);
        if is_capital && is_connector && !NO_SERVERS.contains(word) {
            needs.named.mcp.insert(word.to_lowercase());
        }
    }
    words.iter().filter(|word| is_one_of(&FILE_WORDS, word)).count()
}

/// Words before "app tools" that name none.
const NO_SERVERS: [&str; 6] = ["The", "An", "A", "Your", "Any", "This"];

/// Adds the server in a name such as `mcp__github__search`.
fn read_mcp_name(word: &str, needs: &mut Needs) {
    let server = word.strip_prefix("mcp__").and_then(|rest| rest.split("__").next());
    if let Some(server) = server.filter(|server| !server.is_empty()) {
        needs.named.mcp.insert(server.to_string());
    }
}

/// Adds the tools of `allowed-tools`: `Bash(git:*), Read, mcp__x__y`.
pub(super) fn read_tool_list(text: &str, needs: &mut Needs) {
    let mut depth = 0;
    let names = text.split(|c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth == 0 && (c == ',' || c.is_whitespace() || c == '[' || c == ']')
    });
    let names: Vec<&str> = names.collect();
    for entry in names {
        let (name, inside) = entry.trim().split_once('(').unwrap_or((entry.trim(), ""));
        let name = name.trim_matches(['"', '\'', '-']);
        if name.starts_with("mcp__") {
            read_mcp_name(name, needs);
        } else if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !name.is_empty() {
            needs.named.tools.insert(name.to_string());
        }
        let program = inside.split([':', ' ', ')', '*']).next().unwrap_or_default();
        if name == "Bash" && product_of(program).is_some() {
            needs.named.programs.insert(program.to_string());
        }
    }
}
