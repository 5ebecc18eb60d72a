//! Forms of a hostile `./.env`: each setting with each place. Nothing runs, nothing is written
//! outside, nothing of the user's is sent. The same settings of one's own are kept.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::harness::{Reply, Server, Test};

/// Settings that name a place.
const PLACES: [&str; 8] = [
    "MEMORY_PATH",
    "NOTES_FOLDER_PATH",
    "SESSIONS_PATH",
    "HISTORY_PATH",
    "SYSTEM_PROMPT_PATH",
    "SKILLS_FOLDER_PATH",
    "SCRIPT_SANDBOX_READ",
    "SCRIPT_SANDBOX_WRITE",
];

/// Values of these settings that lead to something that is not the folder's.
const VALUES: [&str; 36] = [
    "~/.bash_aliases",
    "~/new",
    "~",
    "~/private",
    "~/private/notes.md",
    "HOME/.bash_aliases",
    "HOME/private/notes.md",
    "${HOME}/private/notes.md",
    "${HOME}/new",
    "/etc/passwd",
    "/",
    "/tmp",
    "/dev/null",
    "/dev/tty",
    "/proc/self/environ",
    "..",
    "../new",
    "../home/private/notes.md",
    "./visible/../../home/private",
    "link_to_file",
    "./link_to_file",
    "link_to_folder",
    "link_to_folder/new",
    "link_to_folder/notes.md",
    "link_to_link",
    "dangling",
    "dangling/new",
    "hard_link",
    "pipe",
    ".git/config",
    ".git/hooks/pre-commit",
    ".bashrc",
    ".hidden/new",
    "visible/.hidden/new",
    ".vscode",
    "visible/.env",
];

fn work(test: Test) -> Test {
    let test = test
        .file("home/.bash_aliases", "alias a=b\n")
        .file("home/private/notes.md", "private-text-of-the-user\n")
        .file(
            "home/private/s/SKILL.md",
            "---\nname: s\ndescription: private-text-of-the-user\n---\n",
        )
        .file("work/visible/file.md", "x\n")
        .file("work/.git/HEAD", "ref: refs/heads/main\n")
        .file("work/.git/config", "[core]\n")
        .folder("work/.vscode")
        .link("work/link_to_file", "../home/private/notes.md")
        .link("work/link_to_folder", "../home/private")
        .link("work/link_to_link", "link_to_folder")
        .link("work/dangling", "../home/new");
    fs::hard_link(test.path("home/private/notes.md"), test.path("work/hard_link")).unwrap();
    let pipe = std::ffi::CString::new(test.path("work/pipe").to_str().unwrap()).unwrap();
    // SAFETY: a valid path.
    assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
    test.cwd("work")
}

/// The files below a folder with their contents.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap().map(Result::unwrap) {
            let kind = entry.file_type().unwrap();
            let content = if kind.is_file() { fs::read(entry.path()).unwrap() } else { Vec::new() };
            found.insert(entry.path().to_str().unwrap().to_string(), content);
            if kind.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    found
}

#[test]
fn no_place_outside_the_folder_is_used() {
    let server = Server::always(|_| Reply::text("ok"));
    let test = work(Test::new());
    let before = (contents(&test.path("home")), contents(&test.path("work")));
    let home = test.path("home");
    let mut count = 0;
    for name in PLACES {
        for value in VALUES {
            let line =
                format!("{name}={}\n", value.replace("HOME/", &format!("{}/", home.display())));
            let test = test.next_run().file("work/.env", line);
            let options = ["-n", "--sandbox", "--no-scripts", "--confirm", "-o", "json", "hi"];
            let run = test.next_run().endpoint(&server).args(options).run();
            run.status(78).stderr_has(name).stderr_has("skills-runner trust");
            count += 1;
        }
    }
    assert_eq!(count, 288);
    assert!(server.requests().is_empty());
    fs::remove_file(test.path("work/.env")).unwrap();
    assert_eq!(before, (contents(&test.path("home")), contents(&test.path("work"))));
}

/// Programs of the file never run, whatever the command.
#[test]
fn no_program_of_the_folder_runs() {
    let document = "---\nname: s\ndescription: S.\n---\n";
    let mark = "#!/bin/sh\ntouch \"$(dirname \"$0\")/ran\"\n";
    let test = Test::new().skill("s", document).executable("py", mark);
    let test = test.file("skills/s/x.py", "import json\nprint(1)\n");
    let shell = r#"{"command": "true"}"#;
    let script = r#"{"script": "print(1)", "skill_name": "s"}"#;
    let commands: [&[&str]; 7] = [
        &["doctor"],
        &["skills", "list"],
        &["skills", "check"],
        &["skills", "show", "s"],
        &["tool", "run_command", shell],
        &["tool", "run_python_script", script],
        &["init", "--base-url", "http://127.0.0.1:9/v1", "-m", "m"],
    ];
    let path = test.path("py");
    let absolute = path.to_str().unwrap();
    for name in ["SCRIPT_PYTHON", "SCRIPT_SHELL"] {
        for value in ["./py", absolute, "py"] {
            for command in commands {
                let test = test.next_run().dotenv(&format!("{name}={value}\n"));
                let run = test.clone().args(command).run();
                run.check(!test.exists("ran"), format!("{name}={value} {command:?}"));
            }
        }
    }
    // The user's own setting counts.
    let own = test.next_run().file(".env", "").env("SCRIPT_SHELL", "./py");
    own.args(["tool", "run_command", shell]).run();
    assert!(test.exists("ran"));
}

/// All that one's own `.env` sets counts, with places in the folder.
#[test]
fn own_settings_are_kept() {
    let values = [
        ("LLM_API_KEY", "k"),
        ("LLM_API_BASE_URL", "http://127.0.0.1:9/v1"),
        ("LLM_MODEL_NAME", "m"),
        ("LLM_EXTRA_BODY", "{\"a\": 1}"),
        ("LLM_EXTRA_HEADERS", "{\"x-a\": \"b\"}"),
        ("LLM_TOOLS", "native"),
        ("LLM_TIMEOUT_SECONDS", "7"),
        ("LLM_CONTEXT_WINDOW", "9000"),
        ("LLM_VISION", "off"),
        ("SYSTEM_PROMPT_PATH", "visible/file.md"),
        ("MEMORY_PATH", "./facts.md"),
        ("NOTES_FOLDER_PATH", "visible/new/notes"),
        ("SESSIONS_PATH", "link_within/sessions"),
        ("HISTORY_PATH", "off"),
        ("SKILLS_FOLDER_PATH", ".agents/skills:./.claude/skills:visible"),
        ("SCRIPT_TIMEOUT_SECONDS", "9"),
        ("SCRIPT_PYTHON", "off"),
        ("SCRIPT_SHELL", "off"),
        ("SCRIPT_SANDBOX_WRITE", "visible"),
        ("SCRIPT_SANDBOX_READ", "visible/file.md"),
        ("NO_PROXY", "a.example"),
    ];
    let lines = values.iter().map(|(name, value)| format!("{name}='{value}'"));
    let text = lines.collect::<Vec<_>>().join("\n");
    let test = work(Test::new()).folder("work/.agents/skills").link("work/link_within", "visible");
    let run = test.file("work/.env", text).args(["doctor", "--json"]).run();
    let report = run.stdout_json();
    run.check(report["checks"][0]["status"] != "failure", &report["checks"][0]);
    let settings = report["checks"][0]["details"]["settings"].as_array().unwrap();
    for (name, value) in values {
        let row = settings.iter().find(|row| row["name"] == name).unwrap();
        let is_secret = row["value"] == "[secret]";
        run.check(is_secret || row["value"] == value, row);
        run.check(row["origin"].as_str().unwrap().starts_with(".env line"), row);
    }
}
