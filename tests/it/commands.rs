//! `run_command`, and where scripts and commands start: what the model is told, what the result
//! of a run lists, and who can switch commands off.

use crate::harness::{ProgramText, Reply, Server, Test, interpreter, report_skipped, seconds};
use crate::mcp::Client;
use serde_json::{Value, json};

const DOCUMENT: &str = "---\nname: s\ndescription: Runs scripts.\n---\n";
/// The source of a script that prints its folder and that of the skill.
const PLACES: &str = "import os; print(os.getcwd(), os.environ.get('SKILL_DIR'))";

/// A skill with scripts, and a working folder beside the skills folder.
fn test() -> Test {
    Test::new()
        .skill("s", DOCUMENT)
        .file("skills/s/beside.py", "NAME = 'beside'\n")
        .file("skills/s/scripts/where.py", format!("import beside\n{PLACES}; print(beside.NAME)\n"))
        .executable("skills/s/scripts/where.sh", "echo \"$PWD $0 $*\"\n")
        .file("skills/s/scripts/odd.pl", "print 6 * 7, \"\\n\";")
        .file("skills/s/scripts/named", "#!/usr/bin/env no-such-interpreter\n")
        .file("work/data.txt", "from the user\n")
        .cwd("work")
        .env("SCRIPT_PYTHON", interpreter())
        .env("SKILLS_FOLDER_PATH", "../skills")
}

/// Runs one tool by hand; returns its result and whether it succeeded.
#[track_caller]
fn call(test: &Test, name: &str, arguments: &Value) -> (Value, bool) {
    let run = test.next_run().args(["tool", name, "-"]).stdin(arguments.to_string()).run();
    let ok = run.status_is(0);
    (run.stdout_json(), ok)
}

#[test]
fn commands_report_how_they_ended() {
    let test = test();
    let long = "x".repeat(200_000);
    let table = [
        ("cat data.txt; pwd >&2", 0, "from the user\n", "work\n"),
        ("exit 3", 3, "", ""),
        ("kill -TERM $$", -15, "", ""),
        ("read line; echo \"[$line]\"", 0, "[]\n", ""),
        ("cd /; echo \"$PWD\"; echo $USER_CWD | grep -c work", 0, "/\n1\n", ""),
        ("no-such-program", 127, "", "no-such-program: command not found\n"),
        ("echo 'it'\"'\"'s'; printf 'a\\tb'", 0, "it's\na\tb", ""),
        ("if", 2, "", ""),
        (long.as_str(), 0, "", ""),
    ];
    for (command, code, stdout, stderr) in table {
        let (result, ok) = call(&test, "run_command", &json!({"command": command}));
        if command == long {
            assert!(!ok && result["error"].as_str().unwrap().contains("arguments are too long"));
            continue;
        }
        let shown = format!("{command}: {result}");
        assert_eq!((&result["returncode"], ok), (&json!(code), code == 0), "{shown}");
        assert_eq!(result["skill_name"], Value::Null, "{shown}");
        assert_eq!(result["stdout"], stdout, "{shown}");
        assert!(result["stderr"].as_str().unwrap().ends_with(stderr), "{shown}");
    }
    let flood = call(&test, "run_command", &json!({"command": "yes | head -c 3000000"})).0;
    assert!(flood["truncated"] == true && flood["stdout"].as_str().unwrap().len() < 70_000);
    let hang = json!({"command": "setsid sleep 60 & sleep 60"}).to_string();
    let run = test.next_run().args(["--script-timeout", "1", "tool", "run_command", &hang]).run();
    let run = run.took_at_most(seconds(4.0)).status(1);
    run.stdout_has("stopped at the time limit of 1 s")
        .stdout_has("more time with --script-timeout");
    for (arguments, error) in [
        (json!({"command": " "}), "`command` is empty"),
        (json!({"command": "true", "timeout_seconds": 9}), "`timeout_seconds` is not an argument"),
        (json!({"command": "true", "skill_name": "t"}), "there is no skill `t`"),
    ] {
        let (result, _) = call(&test, "run_command", &arguments);
        assert!(result["error"].as_str().unwrap().contains(error), "{result}");
    }
}

#[test]
fn command_for_a_skill_has_its_variables() {
    let test = test().skill("v", DOCUMENT).venv("v");
    let command = "echo \"$SKILL_DIR $SKILL_NAME $VIRTUAL_ENV\"; pwd; command -v python";
    let (result, _) = call(&test, "run_command", &json!({"command": command, "skill_name": "v"}));
    let folder = test.path("skills/v").canonicalize().unwrap();
    let folder = folder.to_str().unwrap();
    let lines: Vec<&str> = result["stdout"].as_str().unwrap().lines().collect();
    assert!(lines[0].contains("skills/v v ") && lines[0].ends_with("skills/v/venv"), "{result}");
    assert_eq!(lines[1], test.path("work").canonicalize().unwrap().to_str().unwrap());
    assert!(lines[2].ends_with("skills/v/venv/bin/python"), "{result} {folder}");
    // A broken venv is an error, as for scripts.
    let broken = test.skill("b", DOCUMENT).folder("skills/b/venv");
    let (result, ok) = call(&broken, "run_command", &json!({"command": "true", "skill_name": "b"}));
    assert!(!ok && result["error"].as_str().unwrap().contains("is broken"), "{result}");
}

/// Everything starts in the user's folder.
#[test]
fn scripts_start_in_the_users_folder() {
    let test = test();
    let user = test.path("work").canonicalize().unwrap();
    let file = "scripts/where.py";
    for arguments in [
        json!({"skill_name": "s", "file_path": file}),
        json!({"skill_name": "s", "script": PLACES}),
        json!({"script": PLACES}),
        json!({"skill_name": "", "script": PLACES}),
    ] {
        let (result, ok) = call(&test, "run_python_script", &arguments);
        let stdout = result["stdout"].as_str().unwrap();
        let printed = std::path::Path::new(stdout.split(' ').next().unwrap());
        assert!(ok && printed.canonicalize().unwrap() == user, "{result}");
        assert_eq!(stdout.contains("None"), arguments["skill_name"] != "s", "{result}");
        assert_eq!(stdout.contains("beside"), arguments.get("file_path").is_some(), "{result}");
    }
    for (arguments, error) in [
        (
            json!({"file_path": file}),
            "`scripts/where.py` is a file of the skill s: use run_python_script {\"args\":[],\"file_path\":\"scripts/where.py\",\"skill_name\":\"s\"}",
        ),
        (json!({"file_path": "scripts/absent.py"}), "no such file or folder"),
        (json!({"script": "1", "cwd": "skill"}), "`cwd` is not an argument"),
    ] {
        let (result, ok) = call(&test, "run_python_script", &arguments);
        assert!(!ok && result["error"].as_str().unwrap().contains(error), "{result}");
    }
}

/// The language is that of the first line or the suffix; such a script finds the files beside it.
#[test]
fn scripts_in_other_languages_run() {
    let test = test();
    let run = |file: &str, args: &[&str]| {
        let arguments = json!({"skill_name": "s", "file_path": file, "args": args});
        call(&test, "run_python_script", &arguments)
    };
    let (result, ok) = run("scripts/where.sh", &[".git", "src/**/*.test.ts"]);
    let stdout = result["stdout"].as_str().unwrap();
    let printed = "/skills/s/scripts/where.sh .git src/**/*.test.ts\n";
    assert!(ok && stdout.ends_with(printed), "{result}");
    assert!(stdout.split(' ').next().unwrap().ends_with("/work"), "{result}");
    assert!(result["interpreter"].as_str().unwrap().ends_with("bash"), "{result}");
    let (result, ok) = run("scripts/odd.pl", &[]);
    assert!(ok && result["stdout"] == "42\n", "{result}");
    let (result, ok) = run("scripts/named", &[]);
    let error = result["error"].as_str().unwrap();
    assert!(!ok && error.contains("`scripts/named` needs `no-such-interpreter`"), "{result}");
    // Without Python for skills without a venv nothing of them runs.
    let off = test.clone().env("SCRIPT_PYTHON", "off");
    let arguments = json!({"skill_name": "s", "file_path": "scripts/where.sh"});
    let (result, _) = call(&off, "run_python_script", &arguments);
    assert!(result["error"].as_str().unwrap().contains("SCRIPT_PYTHON=off"), "{result}");
}

/// The first line is read as the kernel reads it: options and settings of `env` count.
#[test]
fn options_of_the_first_line_count() {
    let table = [
        ("#!/bin/sh -e\nfalse\necho reached\n", 1, ""),
        ("#!/usr/bin/env -S bash -euo pipefail\nfalse | true\necho reached\n", 1, ""),
        ("#!/usr/bin/env -S A=1 bash\necho $A\n", 0, "1\n"),
        ("#!/usr/bin/env -S -u HOME bash\necho [$HOME]\n", 0, "[]\n"),
        ("#!/nowhere/bin/bash\r\nexit 0 #", 0, ""),
    ];
    for (source, status, stdout) in table {
        let test = test().file("skills/s/run", source);
        let arguments = json!({"skill_name": "s", "file_path": "run"});
        let (result, _) = call(&test, "run_python_script", &arguments);
        assert_eq!(
            (&result["returncode"], &result["stdout"]),
            (&json!(status), &json!(stdout)),
            "{source}: {result}"
        );
    }
}

/// A script in another language needs no Python.
#[test]
fn shell_scripts_run_without_python() {
    let mut test = test().env_unset("SCRIPT_PYTHON").folder("skills/s/venv/bin");
    for program in ["bash", "cat"] {
        test = test.link(&format!("bin/{program}"), format!("/bin/{program}"));
    }
    let bin = test.path("bin");
    let test = test.env("PATH", bin);
    let arguments = json!({"skill_name": "s", "file_path": "scripts/where.sh"});
    let (result, ok) = call(&test, "run_python_script", &arguments);
    assert!(ok, "{result}");
}

/// Without a skill nothing runs and no file is touched, whatever the model calls.
#[test]
fn tools_for_programs_and_files_need_a_skill() {
    let calls = [
        ("run_command", json!({"command": "touch ran"})),
        ("write_file", json!({"path": "ran", "content": ""})),
        ("read_file", json!({"path": "."})),
        ("edit_file", json!({"path": "a", "old": "x", "new": "y"})),
        ("run_python_script", json!({"script": "open('ran', 'w')"})),
    ];
    let replies = calls.iter().map(|(name, arguments)| Reply::call(name, arguments));
    let server = Server::start(replies.chain([Reply::text("done")]));
    let test = Test::new().env("SCRIPT_PYTHON", interpreter()).endpoint(&server);
    test.next_run().args(["go"]).run().success();
    for request in &server.finish()[1..] {
        let result = request.last_message()["content"].as_str().unwrap();
        assert!(result.contains("works only where there is a skill"), "{result}");
    }
    let mut client = Client::modern_with(&test, &["--user-files"]);
    let list = client.result_of("tools/list", json!({}));
    let names: Vec<_> = list["tools"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert!(!names.iter().any(|name| *name == "run_command" || *name == "read_file"), "{names:?}");
    let ran = client.call("run_command", json!({"command": "touch ran"}));
    assert!(ran["isError"] == true, "{ran}");
    client.close().status(0);
    assert!(!test.exists("ran"));
}

/// A command that puts another folder in the place of the working folder gains nothing by it.
#[test]
fn working_folder_that_was_replaced_is_not_used() {
    let test = test().file("vault/secret.txt", "canary\n");
    let mut client = Client::modern_with(&test, &["--user-files"]);
    let swap = json!({"command": "mv ../work ../old && ln -s vault ../work"});
    assert!(client.call("run_command", swap)["isError"] == false);
    for (tool, arguments) in [
        ("read_file", json!({"path": "secret.txt"})),
        ("write_file", json!({"path": "secret.txt", "content": ""})),
        ("run_command", json!({"command": "cat secret.txt"})),
        ("run_python_script", json!({"script": "print(open('secret.txt').read())"})),
    ] {
        let ran = client.call(tool, arguments).to_string();
        assert!(ran.contains("was replaced by another one") && !ran.contains("canary"), "{ran}");
    }
    client.close().status(0);
    assert_eq!(test.read("vault/secret.txt"), "canary\n");
}

/// `./.env` may only switch commands off.
#[test]
fn commands_can_be_switched_off() {
    let test = test();
    let offered = |test: &Test, options: &[&str]| {
        let server = Server::start([Reply::text("4")]);
        test.next_run().endpoint(&server).args(options).args(["hi"]).run().success();
        server.finish()[0].tool_names().contains(&"run_command")
    };
    let error = |test: &Test, options: &[&str]| {
        let arguments = r#"{"command":"true"}"#;
        let run = test.next_run().args(options).args(["tool", "run_command", arguments]).run();
        run.stdout_json()["error"].as_str().unwrap_or_default().to_string()
    };
    assert!(offered(&test, &[]) && error(&test, &[]).is_empty());
    let off = test.clone().env("SCRIPT_SHELL", "off");
    let by_python = test.clone().env("SCRIPT_PYTHON", "off");
    let by_folder = test.clone().file("work/.env", "SCRIPT_SHELL=off\n");
    for test in [&off, &by_python, &by_folder] {
        assert!(!offered(test, &[]) && error(test, &[]).contains("switched off (SCRIPT_SHELL"));
    }
    assert!(!offered(&test, &["--no-scripts"]));
    assert!(error(&test, &["--no-scripts"]).contains("--no-scripts"));
    let foreign = test.clone().file("work/.env", "SCRIPT_SHELL=/bin/false\n");
    assert!(offered(&foreign, &[]) && error(&foreign, &[]).is_empty(), "only `off` counts");
    let told = foreign.next_run().args(["tool", "run_command", r#"{"command":"true"}"#]).run();
    told.success().stderr_has("SCRIPT_SHELL in ./.env is ignored: it may only be `off` there");
    let chosen = by_python.env("SCRIPT_SHELL", "sh");
    assert!(offered(&chosen, &[]) && error(&chosen, &[]).is_empty());
    let missing = test.env("SCRIPT_SHELL", "/no/shell");
    assert!(
        error(&missing, &[]).contains(
            "SCRIPT_SHELL names /no/shell, which is not an executable file; tell the user"
        )
    );
}

/// A model's commands are in the records, and count as scripts.
#[test]
fn result_of_a_run_lists_its_commands() {
    let test = test();
    let (good, bad) = (json!({"command": "echo 4"}), json!({"command": "exit 7"}));
    let server = Server::start([
        Reply::call("run_command", &bad),
        Reply::call("run_command", &good),
        Reply::text("four"),
    ]);
    let run = test.next_run().endpoint(&server).args(["-o", "json", "--require-script", "go"]);
    let result = run.run().success().stdout_json();
    assert_eq!(
        result["commands_run"],
        json!([{"command": "exit 7", "returncode": 7}, {"command": "echo 4", "returncode": 0}])
    );
    let requests = server.finish();
    let text = ProgramText::parse(requests[2].last_message()["content"].as_str().unwrap());
    assert!(text.head.starts_with("exit 0, ") && text.head.contains(" ms, in "), "{text:?}");
    assert_eq!((text.stdout, text.stderr), ("4\n", ""));
    let server = Server::start([Reply::call("run_command", &bad), Reply::text("four")]);
    let run = test.next_run().endpoint(&server).args(["--require-script", "go"]).run();
    run.status(5)
        .stderr_has("no script or command succeeded; the last one (`exit 7`) ended with 7");
}

/// Without `skill_name` a program belongs to the skill that was read last, and a path means the
/// user's file or else that skill's.
#[test]
fn the_skill_that_was_read_last_is_the_one_that_is_meant() {
    let test = test()
        .file("work/mine.py", "import beside, sys; print('mine', beside.NAME, sys.argv[1:])\n")
        .file("work/sub/where.py", "print('of the user')\n")
        .file("work/sub/scripts/where.py", "print('of a folder')\n")
        .file("work/own.sh", "echo own\n")
        .file("skills/s/sub/where.py", "print('of the skill')\n")
        .skill("other", "---\nname: other\ndescription: d\n---\nDo it.\n");
    let script = |arguments: Value| ("run_python_script", arguments);
    let command = |line: &str| ("run_command", json!({ "command": line }));
    let of_skill = ", with the skill read last: s\n";
    let of_path = ", with the skill read last: s; of the skill: scripts/where.py\n";
    let absolute = test.path("work/own.sh").display().to_string();
    let rows = [
        (script(json!({"file_path": "scripts/where.py"})), of_skill, "skills/s\nbeside\n"),
        (script(json!({"script": PLACES, "skill_name": ""})), of_skill, "skills/s\n"),
        (script(json!({"script": "python3 scripts/where.py a"})), of_skill, "beside\n"),
        (script(json!({"file_path": "mine.py", "args": ["a"]})), of_skill, "mine beside ['a']\n"),
        (script(json!({"file_path": "sub/where.py"})), of_skill, "of the skill\n"),
        (command("echo \"$SKILL_NAME\""), of_skill, "s\n"),
        (command("python3 scripts/where.py | tail -n 1"), of_path, "beside\n"),
        // In another folder a path may mean another file.
        (command("cd sub && python3 scripts/where.py"), of_skill, "of a folder\n"),
        (script(json!({"file_path": "own.sh"})), of_skill, "own\n"),
        (script(json!({"file_path": absolute})), of_skill, "own\n"),
        (command("python3 sub/where.py"), of_skill, "of the user\n"),
        // What is written, or is in the text of a file, stays.
        (command("echo 1 > scripts/where.py || echo kept"), of_skill, "kept\n"),
        (command("cat <<EOF\nrun scripts/where.py\nEOF"), of_skill, "run scripts/where.py\n"),
    ];
    let first = script(json!({"script": PLACES}));
    let all = [&first].into_iter().chain(rows.iter().map(|(call, ..)| call));
    let calls = all.map(|(tool, arguments)| Reply::call(tool, arguments));
    let mut replies: Vec<Reply> = calls.collect();
    replies.insert(1, Reply::call("get_skill", &json!({"skill_name": "s"})));
    let again = ["done", "again", "once more"].map(Reply::text);
    let [done, after, last] = again;
    let place = |_: usize| Reply::call("run_command", &json!({"command": "echo \"$SKILL_NAME\""}));
    replies.extend([done, place(1), after, place(2), last]);
    let server = Server::start(replies);
    let test = test.endpoint(&server);
    test.next_run().args(["--session", "one", "go"]).run().success();
    test.next_run().args(["--session", "one", "go on"]).run().success();
    // A skill that the user gives counts, too.
    test.next_run().args(["--skill", "other", "go"]).run().success();
    let requests = server.finish();
    let results: Vec<&str> = requests
        .iter()
        .filter_map(|it| it.last_message()["content"].as_str())
        .filter(|text| text.starts_with("exit "))
        .collect();
    assert!(!results[0].contains("read last") && results[0].contains(" None\n"), "{}", results[0]);
    for ((call, head, stdout), result) in rows.iter().zip(&results[1..]) {
        assert!(result.contains(head) && result.contains(stdout), "{call:?}: {result}");
    }
    let [kept, given] = results[rows.len() + 1..] else { panic!("{results:?}") };
    assert!(kept.contains("read last: s\n") && given.contains("read last: other\n"), "{given}");
}

/// Over MCP commands need `--user-files`; without it every script starts in its skill's folder.
#[test]
fn mcp_offers_commands_only_if_asked() {
    let test = test();
    let mut plain = Client::modern(&test);
    let start = |arguments: Value| json!({"name": "run_python_script", "arguments": arguments});
    let file = json!({"skill_name": "s", "file_path": "scripts/where.py"});
    let ran = plain.result_of("tools/call", start(file.clone()));
    let stdout = ran["structuredContent"]["stdout"].as_str().unwrap();
    assert!(stdout.split(' ').next().unwrap().ends_with("skills/s"), "{ran}");
    let text = ran["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("exit 0, ") && text.contains(", in the skill's folder\n"), "{text}");
    let ran = plain.result_of("tools/call", start(json!({"script": "1"})));
    assert!(ran["isError"] == true && ran.to_string().contains("--user-files"), "{ran}");
    let ran = plain.call("run_command", json!({"command": "true"}));
    assert!(ran["isError"] == true && ran.to_string().contains("--user-files"), "{ran}");
    plain.close().status(0);
    let mut open = Client::modern_with(&test, &["--user-files"]);
    let ran = open.call("run_command", json!({"command": "cat data.txt"}));
    assert_eq!(ran["structuredContent"]["stdout"], "from the user\n", "{ran}");
    let ran = open.result_of("tools/call", start(file));
    assert!(ran["structuredContent"]["stdout"].as_str().unwrap().contains("/work "), "{ran}");
    open.close().status(0);
}

/// In the sandbox a command reads the entries of the working folder, not what is private there,
/// and writes only in its temporary folder.
#[test]
fn sandboxed_commands_read_the_working_folder() {
    let test = test()
        .env("SCRIPT_SANDBOX", "on")
        .file("work/.env", "OTHER=1\n")
        .file("work/.git/config", "x")
        .file("work/sub/deep.txt", "deep\n")
        .file("work/app/.env.local", "OTHER=1\n")
        .file("work/app/lib/.git/config", "x")
        .file("work/app/lib/fine.txt", "fine\n")
        .file("home/private", "x");
    for (name, link) in [(".env", "henv"), ("app/.env.local", "sub/hlocal")] {
        let path = |name: &str| test.path(format!("work/{name}"));
        std::fs::hard_link(path(name), path(link)).unwrap();
    }
    let run = |command: &str| call(&test, "run_command", &json!({"command": command})).0;
    let first = run("cat data.txt sub/deep.txt");
    if first["error"].as_str().unwrap_or_default().contains("no sandbox is possible") {
        return report_skipped(first["error"].as_str().unwrap());
    }
    assert_eq!(first["stdout"], "from the user\ndeep\n", "{first}");
    assert_eq!(run("echo x > $TMPDIR/x && cat $TMPDIR/x")["stdout"], "x\n");
    assert_eq!(run("cat app/lib/fine.txt")["stdout"], "fine\n");
    assert_eq!(run("python3 -c 'print(6 * 7)'")["stdout"], "42\n");
    for refused in [
        "cat .env",
        "cat .git/config",
        "cat henv",
        "cat app/.env.local",
        "cat app/lib/.git/config",
        "cat sub/hlocal",
        "echo x > data.txt",
        "echo x > new.txt",
        "cat ../skills/s/SKILL.md",
        "cat ../home/private",
        "cat ../.env",
    ] {
        let result = run(refused);
        assert!(result["returncode"] != 0 && result["stdout"] == "", "{refused}: {result}");
    }
    assert_eq!(test.read("work/data.txt"), "from the user\n");
    // What finds nothing because the folder cannot be listed says so.
    let glob = json!({"script": "import glob; print(glob.glob('*'))"});
    let found = call(&test, "run_python_script", &glob).0;
    assert!(found["hint"].as_str().is_some_and(|it| it.contains("but not list it")), "{found}");
    // However much is stored, what is private here stays closed.
    let much =
        test.clone().env("SESSIONS_PATH", "../sessions").file("work/.env.local", "OTHER=1\n");
    for number in 0..20_001 {
        std::fs::create_dir_all(test.path("sessions")).unwrap();
        std::fs::write(test.path(format!("sessions/{number}")), "").unwrap();
    }
    for name in [".env.local", "app/.env.local", "henv"] {
        let command = json!({"command": format!("cat {name}")});
        let result = call(&much, "run_command", &command).0;
        assert!(result["returncode"] != 0 && result["stdout"] == "", "{name}: {result}");
    }
    // Where the working folder is the home, nothing of it is readable.
    let folder = test.path("work");
    let home = test.env("HOME", folder);
    let result = call(&home, "run_command", &json!({"command": "cat data.txt"})).0;
    assert!(result["returncode"] != 0 && result["stdout"] == "", "{result}");
}

/// The question shows the command as it runs.
#[test]
fn the_user_is_asked_about_the_command_that_runs() {
    let test = test();
    let call = json!({"skill_name": "s", "command": "python3 scripts/where.py"}).to_string();
    let mut terminal =
        test.next_run().args(["--confirm", "tool", "run_command", &call]).spawn_on_terminal();
    terminal.expect("python3 \"$SKILL_DIR\"/scripts/where.py").expect("run it?").type_line("n");
    terminal.wait_exit().status(1);
}
