//! Tools over MCP: the list, results of calls, and requests during a running script.

use std::time::Duration;

use serde_json::{Value, json};

use super::Client;
use crate::harness::{MCP_TOOLS, Stopwatch, Test, seconds, wait_until};

fn test_with_skill() -> Test {
    let document = "---\nname: echo\ndescription: Says things again.\n---\n\n# Echo\n";
    Test::new().skill("echo", document)
}

fn script(source: &str) -> Value {
    json!({"name": "run_python_script", "arguments": {"skill_name": "echo", "script": source}})
}

#[test]
fn both_eras_list_and_call_the_same_tools() {
    let test = test_with_skill();
    let (mut legacy, mut modern) = (Client::legacy(&test), Client::modern(&test));
    let old = legacy.result_of("tools/list", json!({}));
    let new = modern.result_of("tools/list", json!({}));
    assert_eq!(old["tools"], new["tools"]);
    assert_eq!((&old["ttlMs"], &new["cacheScope"]), (&Value::Null, &json!("private")));
    let tools = new["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, MCP_TOOLS);
    for tool in tools {
        let hints = tool["annotations"].as_object().unwrap();
        for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
            assert!(hints[hint].is_boolean(), "{tool}");
        }
        assert_eq!(tool["inputSchema"]["type"], "object");
    }
    for client in [&mut legacy, &mut modern] {
        let listed = client.call("list_skills", json!({}));
        assert_eq!(listed["isError"], false);
        assert_eq!(listed["structuredContent"]["skills"][0]["name"], "echo");
        let text = listed["content"][0]["text"].as_str().unwrap();
        let text: Value = serde_json::from_str(text).unwrap();
        assert_eq!(text, listed["structuredContent"]);
        let ran = client.result_of("tools/call", script("print(6 * 7)"));
        assert_eq!(ran["structuredContent"]["stdout"], "42\n", "{ran}");
    }
    for client in [legacy, modern] {
        let outcome = client.close().status(0);
        assert!(outcome.stderr.contains("→ run_python_script echo: print(6 * 7)"));
    }
}

/// Annotations that a client may show to its user before a call.
#[test]
fn annotations_describe_the_effects_of_tools() {
    let test = test_with_skill().env("MEMORY_PATH", "facts.md").env("NOTES_FOLDER_PATH", "notes");
    let hints = |options: &[&str]| -> Vec<(String, [bool; 4])> {
        let tools = Client::modern_with(&test, options).result_of("tools/list", json!({}));
        let tools = tools["tools"].as_array().unwrap().iter();
        let of = |tool: &Value| {
            let hint = |name: &str| tool["annotations"][name].as_bool().unwrap();
            let name = tool["name"].as_str().unwrap().to_owned();
            let hints = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];
            (name, hints.map(hint))
        };
        tools.map(of).collect()
    };
    let reads = [true, false, true, false];
    let mut expected = [
        ("list_skills", reads),
        ("get_skill", reads),
        ("read_file_in_skill", reads),
        ("run_python_script", [false, true, false, true]),
        ("remember_fact", [false, true, true, false]),
        ("write_daily_note", [false, false, false, false]),
        ("read_daily_note", reads),
    ]
    .map(|(name, hints)| (name.to_owned(), hints));
    assert_eq!(hints(&[]), expected);
    // Without network access it has no open world.
    expected[3].1[3] = false;
    assert_eq!(hints(&["--sandbox"]), expected);
    // The user's files and commands only on request.
    let all = hints(&["--user-files"]);
    let others: Vec<_> =
        all.iter().filter(|tool| expected.iter().all(|other| other.0 != tool.0)).collect();
    let writes = [false, true, false, false];
    let table = [("read_file", reads), ("write_file", writes), ("edit_file", writes)];
    for (name, hints) in table {
        assert!(others.contains(&&(name.to_owned(), hints)), "{others:?}");
    }
}

/// An error quotes the request, but no secret of the user.
#[test]
fn errors_contain_no_secrets() {
    let key = "sk-canary-of-somebody";
    let test = test_with_skill().env("LLM_API_KEY", key);
    let mut client = Client::modern(&test);
    for (method, params) in [
        ("tools/call", json!({ "name": key })),
        ("prompts/get", json!({ "name": key })),
        ("resources/read", json!({"uri": format!("skill://{key}/SKILL.md")})),
        (key, json!({})),
    ] {
        let error = client.error_of(method, params);
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("[secret]") && !message.contains(key), "{message}");
    }
}

/// `isError` is the inverse of `ok`; results without this form have no structured content.
#[test]
fn failed_calls_set_is_error() {
    let mut client = Client::modern(&test_with_skill());
    let failed = client.result_of("tools/call", script("raise SystemExit(3)"));
    assert_eq!(
        (&failed["isError"], &failed["structuredContent"]["returncode"]),
        (&json!(true), &json!(3))
    );
    for arguments in [json!({}), json!({"skill_name": "ecco"}), json!({"skill_name": 5})] {
        let failed = client.call("run_python_script", arguments);
        assert_eq!(failed["isError"], true);
        assert!(failed["structuredContent"].is_null(), "{failed}");
        assert!(failed["content"][0]["text"].as_str().unwrap().starts_with("{\"error\":"));
    }
    let unknown = client.error_of("tools/call", json!({"name": "list_skill"}));
    assert_eq!(unknown["code"], -32602);
    assert!(unknown["message"].as_str().unwrap().contains("did you mean `list_skills`?"));
    client.assert_silent();
}

/// The server has one thread: other requests are answered during a script, and a second script
/// waits for the first.
#[test]
fn running_script_does_not_delay_other_answers() {
    let test = test_with_skill();
    let mut client = Client::modern(&test);
    let release =
        "import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint('first')";
    let first = client.request("tools/call", script(release));
    let second = client.request("tools/call", script("print('second')"));
    for _ in 0..3 {
        let listed = client.call("list_skills", json!({}));
        assert_eq!(listed["isError"], false);
    }
    std::fs::write(test.path("skills/echo/go"), "").unwrap();
    let answers = [client.next(), client.next()];
    assert_eq!((&answers[0]["id"], &answers[1]["id"]), (&json!(first), &json!(second)));
    assert_eq!(answers[1]["result"]["structuredContent"]["stdout"], "second\n");
}

/// A cancelled call gets no answer and its script is killed; a waiting call is never started.
#[test]
fn cancelled_call_is_killed_without_an_answer() {
    let test = test_with_skill();
    let mut client = Client::modern(&test);
    let endless = "open('started', 'w').close()\nimport time\nwhile True: time.sleep(1)";
    let running = client.request("tools/call", script(endless));
    let waiting = client.request("tools/call", script("open('ran', 'w').close()"));
    assert!(wait_until(seconds(10.0), || test.exists("skills/echo/started")));
    client.notify("notifications/cancelled", json!({"requestId": waiting, "reason": "enough"}));
    client.notify("notifications/cancelled", json!({"requestId": 99}));
    client.notify("notifications/cancelled", json!({}));
    client.notify("notifications/cancelled", json!({"requestId": running}));
    let after = client.result_of("tools/call", script("print('after')"));
    assert_eq!(after["structuredContent"]["stdout"], "after\n");
    client.assert_silent();
    assert!(!test.exists("skills/echo/ran"));
    client.close().status(0);
}

#[test]
fn end_of_input_ends_a_script_immediately() {
    let test = test_with_skill();
    let mut client = Client::modern(&test);
    let endless = "open('started', 'w').close()\nimport time\nwhile True: time.sleep(1)";
    client.request("tools/call", script(endless));
    assert!(wait_until(seconds(10.0), || test.exists("skills/echo/started")));
    let since = Stopwatch::start();
    let outcome = client.close().status(0);
    let took = since.elapsed_for_limit(Duration::from_secs(2));
    assert!(took <= Duration::from_secs(2), "{took:?}");
    assert_eq!(outcome.stdout, "");
    assert!(test.processes().is_empty());
}

/// Progress values increase.
#[test]
fn progress_is_sent_only_with_a_token() {
    let mut client = Client::modern(&test_with_skill());
    let mut params = script("import time; time.sleep(2.3)");
    params["_meta"]["progressToken"] = "t-1".into();
    let id = client.request("tools/call", params);
    let mut last = 0.0;
    loop {
        let message = client.next();
        if message["id"] == id {
            break;
        }
        assert_eq!(message["method"], "notifications/progress");
        assert_eq!(message["params"]["progressToken"], "t-1");
        let progress = message["params"]["progress"].as_f64().unwrap();
        assert!(progress > last, "{message}");
        last = progress;
        let reported = message["params"]["message"].as_str().unwrap();
        assert!(reported.starts_with("running for ") && reported.ends_with(" s"), "{reported}");
    }
    assert!(last > 0.0);
    client.result_of("tools/call", script("import time; time.sleep(1.2)"));
    client.assert_silent();
}
