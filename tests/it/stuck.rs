//! Models that are stuck: the same call that fails in the same way again and again.

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

#[test]
fn the_third_equal_failure_ends_the_turn() {
    for reply in [|| fails("x"), missing] {
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
