//! The reader of a document: a fresh machine with the repository's skills, the
//! files that the texts mention, the program, and an endpoint that answers.
//!
//! `PATH` has the program, the stand-ins for third-party programs
//! (`stand_ins/`), and the real ones of [`PROGRAMS`]; a command that calls another
//! program fails the test. Nothing outside the folder is changed: paths of the
//! reader's machine are replaced by paths below `machine/`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::documents::root;
use crate::harness::{
    CANARY, MODEL, ProgramText, Reply, Request, Server, Test, interpreter, program,
};

/// Real programs that commands may use. A program that could reach the network or
/// anything outside the test's folder has a stand-in instead.
const PROGRAMS: [&str; 52] = [
    "awk",
    "basename",
    "bash",
    "cat",
    "chmod",
    "cmp",
    "cp",
    "cut",
    "date",
    "diff",
    "dirname",
    "echo",
    "env",
    "expr",
    "false",
    "find",
    "flock",
    "grep",
    "gzip",
    "head",
    "id",
    "install",
    "jq",
    "kill",
    "ln",
    "ls",
    "mkdir",
    "mktemp",
    "mv",
    "nproc",
    "parallel",
    "perl",
    "printf",
    "readlink",
    "realpath",
    "rm",
    "sed",
    "seq",
    "sh",
    "sha256sum",
    "sleep",
    "sort",
    "tail",
    "tar",
    "tee",
    "test",
    "timeout",
    "touch",
    "tr",
    "true",
    "wc",
    "xargs",
];

/// Folders of the reader's machine that are replaced by folders of the test.
const PLAYED: [&str; 10] = [
    "/etc/",
    "/usr/local/",
    "/usr/share/",
    "/opt/",
    "/srv/",
    "/var/",
    "/home/",
    "/root/",
    "/mnt/",
    "/tmp/",
];

/// The questions of `questions.txt`.
pub(super) const QUESTIONS: [&str; 3] =
    ["what is a llama?", "what is an alpaca?", "what's a vicuña?"];

/// A picture of one pixel.
const PNG: [u8; 67] = *b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\nIDATx\x9cc\0\x01\0\0\x05\0\x01\r\n-\xb4\0\0\0\0IEND\xaeB`\x82";

/// Runs the program with the test's endpoint. Another endpoint in a text is not
/// called: its configuration must only be complete.
const PROGRAM: &str = r#"#!/bin/sh
asks() {
    while [ "$#" != 0 ]; do
        case $1 in
        -m | -s | -a | -o | --skills | --session | --log | --env-file | --timeout | --script-timeout) shift ;;
        --) return 0 ;;
        --version | --help | --generate) return 1 ;;
        -*) ;;
        chat | demo | doctor | facts | mcp | sessions | skills | tool) return 1 ;;
        *) return 0 ;;
        esac
        shift
    done
}
if [ "${LLM_API_BASE_URL-}" != '@URL@' ] && asks "$@"; then
    '@BINARY@' -n --dry-run "$@" hi >/dev/null || exit
fi
export LLM_API_BASE_URL='@URL@' LLM_MODEL_NAME='@MODEL@' LLM_API_KEY='@KEY@'
exec '@BINARY@' "$@"
"#;

pub(super) struct Reader {
    pub test: Test,
    pub server: Server,
}

impl Reader {
    pub(super) fn new() -> Reader {
        let server = Server::of_all_requests(answer);
        let test = Test::new().endpoint(&server);
        let reader = Reader {
            test: test
                .file("app.log", "09:00 started\n09:01 failed: the disk is full\n")
                .file("question.txt", "How many llamas are there?\n")
                .file("questions.txt", QUESTIONS.map(|line| format!("{line}\n")).concat())
                .file("notes.txt", "the chart shows llamas\n")
                .file("chart.png", PNG),
            server,
        };
        let settings = format!(
            "LLM_API_BASE_URL={}\nLLM_MODEL_NAME={MODEL}\nLLM_API_KEY={CANARY}\n",
            reader.server.url()
        );
        let test = reader.test.clone().file("home/.config/skills-runner/.env", settings);
        test.mode("home/.config/skills-runner/.env", 0o600)
            .file("key", CANARY)
            .file("machine/etc/skills-runner/key", CANARY)
            .mode("machine/etc/skills-runner/key", 0o600);
        for skills in
            ["skills", "home/skills", "machine/home/me/skills", "machine/usr/local/share/skills"]
        {
            copy(&root().join("skills"), &reader.test.path(skills));
        }
        for folder in PLAYED {
            reader.test.clone().folder(&format!("machine{folder}"));
        }
        copy_file(&root().join("Makefile"), &reader.test.path("Makefile"));
        reader.program_and_stand_ins();
        reader.release();
        reader
    }

    /// `PATH` of the reader's shell.
    pub(super) fn search_path(&self) -> String {
        let place = |name: &str| self.test.path(name).display().to_string();
        format!("{}:{}", place("bin"), place("programs"))
    }

    /// The archives of a release: the program in a folder.
    fn release(&self) {
        let test = self.test.clone();
        let test = test.executable(
            "release/skills-runner-1-linux/bin/skills-runner",
            &self.filled_in(PROGRAM),
        );
        let pack = "tar -C release -czf release.tar.gz . && rm -r release";
        test.next_run().shell(pack).run().success();
        let name = format!("skills-runner-{}-x86_64-linux", env!("CARGO_PKG_VERSION"));
        let program = format!("release/{name}/bin/skills-runner");
        let test = test.executable(&program, &self.filled_in(PROGRAM));
        let pack = format!(
            "tar -C release -czf {name}.tar.gz . && rm -r release && sha256sum {name}.tar.gz >SHA256SUMS"
        );
        test.next_run().shell(&pack).run().success();
    }

    /// An optional program that the commands use and this machine lacks.
    pub(super) fn lacks(&self, commands: &str) -> Option<&'static str> {
        let is_used =
            |name: &str| commands.split(|c: char| !c.is_alphanumeric()).any(|word| word == name);
        let mut rare = ["jq", "parallel"].into_iter();
        rare.find(|name| is_used(name) && !self.test.exists(&format!("programs/{name}")))
    }

    fn program_and_stand_ins(&self) {
        let test = self.test.clone();
        let program = self.filled_in(PROGRAM);
        for place in [
            "bin/skills-runner",
            "skills-runner",
            "target/release/skills-runner",
            "machine/usr/local/bin/skills-runner",
        ] {
            test.clone().executable(place, &program);
        }
        for entry in fs::read_dir(root().join("tests/it/readme/stand_ins")).unwrap() {
            let entry = entry.unwrap();
            let text = self.filled_in(&fs::read_to_string(entry.path()).unwrap());
            // One text may stand in for several programs: `claude+codex`.
            for name in entry.file_name().to_string_lossy().split('+') {
                test.clone().executable(&format!("bin/{name}"), &text);
            }
        }
        let test = test.link("programs/python3", interpreter());
        let path = std::env::var_os("PATH").unwrap_or_default();
        for name in PROGRAMS {
            let mut places = std::env::split_paths(&path).map(|folder| folder.join(name));
            if let Some(found) = places.find(|place| place.is_file()) {
                test.clone().link(&format!("programs/{name}"), found);
            }
        }
    }

    /// Replaces the placeholders in stand-ins and program: endpoint, folders, …
    fn filled_in(&self, text: &str) -> String {
        let workspace = self.test.path("");
        let workspace = workspace.to_string_lossy();
        text.replace("@BINARY@", &program().to_string_lossy())
            .replace("@URL@", &self.server.url())
            .replace("@VERSION@", env!("CARGO_PKG_VERSION"))
            .replace("@MODEL@", MODEL)
            .replace("@KEY@", CANARY)
            .replace("@PYTHON@", &interpreter().to_string_lossy())
            .replace("@PATH@", &std::env::var("PATH").unwrap_or_default())
            .replace("@REPOSITORY@", &root().to_string_lossy())
            .replace("@WORKSPACE@", workspace.trim_end_matches('/'))
    }

    /// The text with the paths of the reader's machine moved to the test's folder.
    pub(super) fn played(&self, text: &str) -> String {
        let mut played = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('/') {
            let (before, path) = rest.split_at(at);
            played += before;
            let is_absolute = !played.ends_with(|c: char| c.is_alphanumeric() || "/.~}*:_-)".contains(c))
                // `TO` in `-v FROM:TO` is a path too; `//` after a `:` begins an address.
                || (played.ends_with(':') && !path.starts_with("//"));
            if is_absolute
                && PLAYED.iter().any(|folder| path.starts_with(folder))
                && !path.starts_with("/etc/ssl/")
            {
                played += self.test.path("machine").to_string_lossy().as_ref();
            }
            played.push('/');
            rest = &path[1..];
        }
        played + rest
    }
}

/// The endpoint: lists its models and answers questions.
pub(super) fn answer(request: &Request) -> Reply {
    match request.path.as_str() {
        "/v1/models" => Reply::models([MODEL, "qwen3"]),
        "/v1/chat/completions" => model(request).with_usage(110, 16),
        _ => Reply::status(404),
    }
}

/// A model that passes `doctor`'s tool call, computes 2 ** 64 with the calculator,
/// and repeats every other question.
fn model(request: &Request) -> Reply {
    let last = request.last_message();
    if last["role"] == "tool" {
        let id = last["tool_call_id"].as_str().unwrap_or_default();
        return match request.tool_result(id) {
            sum if sum.starts_with('{') => {
                Reply::text(&format!("The sum is {}.", request.tool_json(id)["sum"]))
            }
            text => Reply::text(ProgramText::parse(text).stdout.trim_end()),
        };
    }
    if request.tool_names() == ["add"] {
        return Reply::call("add", &json!({"a": 317, "b": 588}));
    }
    let content = &last["content"];
    let question = content.as_str().or_else(|| content[0]["text"].as_str());
    let question = question.unwrap_or_default();
    let power = json!({"skill_name": "calculator", "script": "print(2 ** 64)"});
    match question.contains("2 ** 64") {
        true => Reply::call("run_python_script", &power),
        false => Reply::text(&format!("(played) {question}")),
    }
}

/// Copies a folder without venvs and caches, as in a clone.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to: PathBuf = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true if entry.file_name() == "venv" || entry.file_name() == "__pycache__" => {}
            true => copy(&entry.path(), &to),
            false => copy_file(&entry.path(), &to),
        }
    }
}

fn copy_file(from: &Path, to: &Path) {
    fs::copy(from, to).unwrap_or_else(|error| panic!("failed to copy {}: {error}", from.display()));
}
