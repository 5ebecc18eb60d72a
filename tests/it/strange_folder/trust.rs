//! `trust`: the user accepts a folder's `.env`.

use crate::harness::{Reply, Server, Test};

fn test(server: &Server) -> Test {
    let text = format!(
        "LLM_API_BASE_URL={}\nLLM_MODEL_NAME=m\nLLM_API_KEY=sk-of-the-folder\nMEMORY_PATH=~/facts.md\n",
        server.url()
    );
    Test::new().dotenv(&text).mode(".env", 0o666)
}

/// An accepted file counts as the user's own, until one byte of it or its folder changes.
#[test]
fn an_accepted_file_is_read_until_it_changes() {
    let server = Server::start([Reply::text("1"), Reply::text("2")]);
    let test = test(&server);
    test.next_run().args(["hi"]).run().status(78).stderr_has("skills-runner trust");
    let run = test.next_run().args(["trust"]).run().success().stderr_is_empty();
    let run = run.stdout_has("  MEMORY_PATH=~/facts.md").stdout_has("LLM_API_KEY=[secret]");
    run.stdout_lacks("sk-of-the-folder").stdout_has(&server.url());
    test.next_run().args(["hi"]).run().success().stdout("1\n").stderr_lacks("trust");
    // Also if another folder or the file is named, and again.
    let other = test.next_run().folder("other").cwd("other");
    other.next_run().args(["trust", ".."]).run().success();
    other.args(["trust", "../.env"]).run().success();
    test.next_run().args(["hi"]).run().success().stdout("2\n");
    server.finish();
    let moved = test.next_run().file("copy/.env", test.read(".env")).mode("copy/.env", 0o666);
    moved.cwd("copy").args(["hi"]).run().status(78);
    let changed = test.file(".env", "LLM_API_BASE_URL=http://127.0.0.1:9/v1\n").mode(".env", 0o666);
    changed.args(["hi"]).run().status(78).stderr_has("all users may write to it");
}

#[test]
fn wrong_usage_is_reported() {
    Test::new().args(["trust"]).run().status(2).stderr_has("there is no .env in ");
    Test::new().args(["trust", "none"]).run().status(2).stderr_has("there is no .env in ");
    let test = Test::new().dotenv("A=1\n").env_unset("HOME");
    test.args(["trust"]).run().status(1).stderr_has("HOME is not set");
    Test::new().dotenv("A=\0\n").args(["trust"]).run().status(2).stderr_has("line 1");
}

/// A script or command cannot accept the file, however it starts the program.
#[test]
fn a_script_cannot_accept_the_file() {
    let document = "---\nname: s\ndescription: S.\n---\n";
    let test = Test::new().skill("s", document).dotenv("LLM_MODEL_NAME=m\n").mode(".env", 0o666);
    let program = crate::harness::program();
    let program = program.to_str().unwrap();
    let home = test.path("home");
    for line in [
        format!("{program} trust"),
        format!("setsid env -i HOME={} {program} trust", home.display()),
        format!("cp {program} other && (./other trust &) && sleep 0.3"),
    ] {
        let arguments = serde_json::json!({"command": format!("{line} 2>err; cat err >&2")});
        let run = test.next_run().args(["tool", "run_command", &arguments.to_string()]).run();
        run.stdout_has("only the user can");
        assert!(!test.exists("home/.local/state/skills-runner/trusted"), "{line}");
    }
    let python = format!("import os; os.execv('{program}', ['x', 'trust'])");
    let arguments = serde_json::json!({"skill_name": "s", "script": python}).to_string();
    let run = test.next_run().args(["tool", "run_python_script", &arguments]).run();
    run.stdout_has("only the user can");
    // Nor is a script asked on a terminal of its own.
    let terminal = format!(
        "import os, pty\npid, fd = pty.fork()\nif pid == 0: os.execv('{program}', ['x', 'skills', 'list'])\n\
         os.write(fd, b'y\\n')\ntry:\n while True: print(os.read(fd, 999))\nexcept OSError: print('end')"
    );
    let arguments = serde_json::json!({"script": terminal}).to_string();
    let run = test.next_run().args(["tool", "run_python_script", &arguments]).run();
    run.stdout_has("end").stdout_lacks("[y/N]");
    assert!(!test.exists("home/.local/state/skills-runner/trusted"));
}

/// A terminal asks once, whatever the answer.
#[test]
fn a_terminal_asks_once() {
    let server = Server::always(|_| Reply::text("ok"));
    let answered = test(&server);
    for (answer, status) in [("n", 78), ("y", 0)] {
        let test =
            answered.next_run().file(".env", answered.read(".env") + "#").mode(".env", 0o666);
        let mut terminal = test.args(["-n", "hi"]).spawn_on_terminal();
        terminal.expect("until it is changed? [y/N]").type_line(answer);
        terminal.wait_exit().status(status);
        let terminal = answered.next_run().args(["-n", "hi"]).spawn_on_terminal();
        let run = terminal.wait_exit().status(status);
        run.check(!run.terminal.contains("[y/N]"), "it asks twice");
    }
    // The command replaces the answer.
    let test = answered.next_run().file(".env", "LLM_MODEL_NAME=m\n").mode(".env", 0o666);
    let mut terminal = test.next_run().args(["skills", "list"]).spawn_on_terminal();
    terminal.expect("[y/N]").type_line("");
    terminal.wait_exit();
    test.next_run().args(["trust"]).run().success();
    test.args(["skills", "list"]).run().stderr_lacks("skipped .env");
}
