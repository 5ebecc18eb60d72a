//! Models that are stuck: the same call with the same result again and again.

use serde_json::{Value, json};

use crate::harness::{Reply, Server, Test};

const DOCUMENT: &str = "---\nname: s\ndescription: d\n---\nRun it.\n";

fn fails(text: &str) -> Reply {
    let script = format!("import sys; print({text:?}, file=sys.stderr); sys.exit(3)");
    Reply::call("run_python_script", &json!({"skill_name": "s", "script": script}))
}

fn missing() -> Reply {
    Reply::call("get_skill", &json!({"skill_name": "no such skill"}))
}

/// Its traceback has the path of a temporary folder.
fn raises() -> Reply {
    Reply::call("run_python_script", &json!({"script": "1/0"}))
}

#[test]
fn the_third_equal_failure_ends_the_turn() {
    for reply in [|| fails("x"), missing, raises] {
        let server = Server::start([reply(), reply(), reply()]);
        let test = Test::new().skill("s", DOCUMENT).endpoint(&server);
        let run = test.next_run().args(["-o", "json", "--session", "stuck", "do it"]).run();
        let run = run.status(3).stderr_has("failed 3 times in the same way").stderr_has("hint: ");
        let result = run.stdout_json();
        assert_eq!((&result["error"]["kind"], &result["steps"]), (&json!("limit"), &json!(3)));
        server.finish();
        // The conversation is whole: it can be continued.
        let server = Server::start([Reply::text("Sorry.")]);
        let run = test.next_run().endpoint(&server).args(["--session", "stuck", "go on"]).run();
        run.success().stdout("Sorry.\n");
        let requests = server.finish();
        let roles: Vec<&Value> = requests[0].messages().iter().map(|it| &it["role"]).collect();
        assert_eq!(roles[roles.len() - 3..], ["tool", "assistant", "user"]);
    }
}

/// The calls that are left have a result that does not blame the user.
#[test]
fn calls_after_the_third_failure_are_not_run() {
    let call = ("get_skill", "{\"skill_name\": \"no such skill\"}");
    let server = Server::start([Reply::calls([call; 5])]);
    let test = Test::new().skill("s", DOCUMENT).endpoint(&server);
    test.next_run().args(["--session", "stuck", "do it"]).run().status(3);
    server.finish();
    let server = Server::start([Reply::text("Sorry.")]);
    test.next_run().endpoint(&server).args(["--session", "stuck", "go on"]).run().success();
    let requests = server.finish();
    let results = requests[0].messages().iter().filter(|it| it["role"] == "tool");
    let results: Vec<&str> = results.map(|it| it["content"].as_str().unwrap()).collect();
    assert_eq!(results.len(), 5);
    for result in &results[3..] {
        assert!(result.contains("not run") && !result.contains("user"), "{result}");
    }
}

/// Other arguments, another output, or a success in between: the model is not stuck.
#[test]
fn different_failures_do_not_end_the_turn() {
    let counting = "import os, sys\nn = len(os.listdir('/proc/self/cwd'))\nopen(f'f{n}', 'w').close()\nsys.exit(f'try {n}')";
    let counting = json!({"skill_name": "s", "script": counting});
    let counting = || Reply::call("run_python_script", &counting);
    for replies in [
        vec![fails("a"), fails("b"), fails("a"), fails("b"), fails("a")],
        vec![missing(), missing(), fails("a"), missing(), missing()],
        vec![counting(), counting(), counting(), counting()],
    ] {
        let server = Server::start(replies.into_iter().chain([Reply::text("done")]));
        let test = Test::new().skill("s", DOCUMENT).endpoint(&server);
        test.args(["do it"]).run().success().stdout("done\n");
        server.finish();
    }
}

const KNOWN: &str = "the same call gave the same result twice: use it, or answer";

/// The results of the calls, as the model got them in the next session's request.
fn results(test: &Test, replies: Vec<Reply>, status: i32) -> Vec<String> {
    let count = replies.len();
    let server = Server::start(replies);
    let run = test.next_run().endpoint(&server).args(["-o", "json", "--session", "s", "do it"]);
    let run = run.run().status(status);
    if status == 3 {
        let end = run.stdout_json();
        assert_eq!((&end["error"]["kind"], &end["steps"]), (&json!("limit"), &json!(count)));
        run.stderr_has("gave the same result").stderr_has("in a row");
    }
    server.finish();
    let server = Server::start([Reply::text("Bye.")]);
    test.next_run().endpoint(&server).args(["--session", "s", "go on"]).run().success();
    let requests = server.finish();
    let results = requests[0].messages().iter().filter(|it| it["role"] == "tool");
    results.map(|it| it["content"].as_str().unwrap().to_string()).collect()
}

fn reading(arguments: &str) -> Reply {
    Reply::calls([("read_file", arguments)])
}

/// The third equal result is replaced by a sentence, the fifth ends the turn; the order of
/// arguments, white space, and whether the call came as text make no difference.
#[test]
fn equal_results_end_the_turn() {
    let test = Test::new().skill("s", DOCUMENT).file("a.txt", "one\n");
    let forms = [r#"{"path":"a.txt","limit":3}"#, r#"{ "limit": 3, "path": "a.txt" }"#];
    let text = Reply::text(r#"{"name":"read_file","arguments":{"limit":3,"path":"a.txt"}}"#);
    let mut replies: Vec<Reply> = forms.into_iter().cycle().take(4).map(reading).collect();
    replies.insert(2, text);
    let results = results(&test, replies, 3);
    assert_eq!(results, ["one\n", "one\n", KNOWN, KNOWN, KNOWN]);
}

/// Another call, another result or another question begins the count again.
#[test]
fn other_calls_between_equal_ones_are_no_loop() {
    let test = || Test::new().skill("s", DOCUMENT).file("a.txt", "one\n").file("b.txt", "two\n");
    let a = || reading(r#"{"path":"a.txt"}"#);
    let b = || reading(r#"{"path":"b.txt"}"#);
    let replies = vec![a(), a(), b(), a(), a(), b(), a(), a(), Reply::text("done")];
    let shown = results(&test(), replies, 0);
    assert!(!shown.iter().any(|it| it == KNOWN), "{shown:?}");
    // Several equal calls in one message: the model has not seen the first result.
    let call = ("read_file", r#"{"path":"a.txt"}"#);
    let shown = results(&test(), vec![Reply::calls([call; 6]), Reply::text("done")], 0);
    assert_eq!(shown, vec!["one\n"; 6]);
    // Two turns.
    let server = Server::start([a(), a(), Reply::text("1"), a(), a(), Reply::text("2")]);
    let run = test().endpoint(&server).args(["chat"]).stdin("x\ny\n").run().success();
    run.stdout("1\n2\n");
    for request in server.finish() {
        assert!(!request.messages().iter().any(|it| it["content"] == KNOWN));
    }
}

/// A command may wait for something: its tenth equal result ends the turn.
#[test]
fn commands_may_wait_longer() {
    let poll = || Reply::call("run_command", &json!({"command": "echo busy"}));
    let test = Test::new().skill("s", DOCUMENT);
    let shown = results(&test, (0..10).map(|_| poll()).collect(), 3);
    assert_eq!(shown.len(), 10);
    assert!(shown[..2].iter().all(|it| it.contains("busy")), "{shown:?}");
    assert!(shown[2..].iter().all(|it| it == KNOWN), "{shown:?}");
    // What it waits for has come.
    let script =
        "n=$(ls | wc -l); [ $n -gt 7 ] || touch f$n; [ $n -gt 6 ] && echo ready || echo busy";
    let poll = || Reply::call("run_command", &json!({"command": script}));
    let mut replies: Vec<Reply> = (0..9).map(|_| poll()).collect();
    replies.push(Reply::text("done"));
    let shown = results(
        &Test::new()
            .skill("s", DOCUMENT)
            .cwd("work")
            .env("SKILLS_FOLDER_PATH", "../skills")
            .file("work/x", ""),
        replies,
        0,
    );
    assert!(shown.iter().any(|it| it.contains("ready")), "{shown:?}");
}
