//! Start and end of the server: options, kinds of standard input, signals, disconnected clients;
//! and standard output that contains only messages.

use std::time::Duration;

use serde_json::{Value, json};

use super::Client;
use crate::harness::{Running, Stopwatch, Test, seconds, wait_until};

const DISCOVER: &str = r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
const ENDLESS: &str = "open('started', 'w').close()\nimport time\nwhile True: time.sleep(1)";

fn test_with_skill() -> Test {
    let document = "---\nname: echo\ndescription: Says things again.\n---\n\n# Echo\n";
    Test::new().skill("echo", document)
}

fn script(source: &str) -> Value {
    json!({"name": "run_python_script", "arguments": {"skill_name": "echo", "script": source}})
}

/// A client with these options and a running endless script.
#[track_caller]
fn busy(test: &Test, options: &[&str]) -> Client {
    let mut client = Client::modern_with(test, options);
    client.request("tools/call", script(ENDLESS));
    assert!(wait_until(seconds(10.0), || test.exists("skills/echo/started")));
    client
}

/// Whatever else is printed, standard output has one message for each request.
#[test]
fn stdout_has_only_protocol_messages() {
    let options: [&[&str]; 6] =
        [&[], &["-q"], &["-v"], &["-o", "json"], &["-o", "jsonl"], &["--log", "audit.jsonl"]];
    for options in options {
        let test = test_with_skill();
        let mut client = Client::modern_with(&test, options);
        let id = client.request("tools/call", script("print('one')\nraise SystemExit(1)"));
        assert_eq!(client.answer_to(id)["result"]["isError"], true, "{options:?}");
        let id = client.request("tools/call", json!({"name": "list_skills"}));
        client.answer_to(id);
        client.send("[]");
        let outcome = client.close().status(0);
        assert_eq!(outcome.stdout_json_lines().len(), 2, "{options:?}: {}", outcome.stdout);
        let is_quiet = options == ["-q"];
        assert_eq!(outcome.stderr.contains("→ run_python_script echo"), !is_quiet);
        outcome.stderr_has("was not answered");
    }
}

/// The log has the start, each call with its result, and the end.
#[test]
fn calls_are_logged() {
    let test = test_with_skill();
    let mut client = Client::modern_with(&test, &["--log", "audit.jsonl"]);
    client.call("list_skills", json!({}));
    client.result_of("tools/call", script("print('one')"));
    client.result_of("tools/list", json!({}));
    client.close().status(0);
    let log = test.read("audit.jsonl");
    let records: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let types: Vec<&str> = records.iter().map(|record| record["type"].as_str().unwrap()).collect();
    let expected = ["start", "tool_call", "tool_result", "tool_call", "tool_result", "result"];
    assert_eq!(types, expected, "{log}");
    assert_eq!(records[3]["name"], "run_python_script");
    assert!(records[3].to_string().contains("print('one')"), "{log}");
    assert_eq!(records[5]["exit_code"], 0);
    assert_eq!(records[5]["tool_calls"], 2);
}

#[test]
fn unwritable_log_ends_the_server() {
    let test = test_with_skill().folder("audit.jsonl");
    let outcome = test.args(["mcp", "--log", "audit.jsonl"]).stdin(DISCOVER).run();
    let outcome = outcome.stdout("").stderr_has("audit.jsonl");
    assert_ne!(outcome.status, 0);
}

#[test]
fn script_options_apply() {
    let test = test_with_skill();
    let mut client = Client::modern_with(&test, &["--no-scripts"]);
    let tools = client.result_of("tools/list", json!({}));
    assert!(!tools.to_string().contains("run_python_script"), "{tools}");
    let refused = client.result_of("tools/call", script("print(1)"));
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(!refused.to_string().contains("stdout"), "{refused}");
    client.close().status(0);

    let mut client = Client::modern_with(&test, &["--script-timeout", "1"]);
    let since = Stopwatch::start();
    let ended = client.result_of("tools/call", script(ENDLESS));
    assert_eq!(ended["isError"], true, "{ended}");
    assert!(
        ended.to_string().contains("time limit") || ended.to_string().contains("timed out"),
        "{ended}"
    );
    let took = since.elapsed_for_limit(seconds(5.0));
    assert!(took <= seconds(5.0), "{took:?}");
    assert_eq!(
        client.result_of("tools/call", script("print(2)"))["structuredContent"]["stdout"],
        "2\n"
    );
    client.close().status(0);
    assert!(test.processes().is_empty());
}

#[test]
fn sandbox_applies() {
    let test = test_with_skill();
    let mut client = Client::modern_with(&test, &["--sandbox"]);
    let outside = test.path("outside");
    let write = format!("open({:?}, 'w').close()", outside.display().to_string());
    let ran = client.result_of("tools/call", script(&write));
    let is_held = ran["isError"] == true && !test.exists("outside");
    let outcome = client.close().status(0);
    // Without kernel support the missing sandbox is reported.
    assert!(is_held || outcome.stderr.contains("sandbox"), "{ran} {}", outcome.stderr);
}

/// The time limit of the run ends the server, also during a script.
#[test]
fn timeout_ends_the_server() {
    let test = test_with_skill();
    let idle = Client::modern_with(&test, &["--timeout", "1"]);
    let busy = busy(&test, &["--timeout", "2"]);
    for mut client in [idle, busy] {
        assert!(wait_until(seconds(10.0), || !client.running().is_running()));
        let outcome = client.close().status(3).stdout("");
        outcome.stderr_has("the time limit of the run (--timeout) is reached");
    }
    assert!(test.processes().is_empty());
}

#[test]
fn wrong_usage_is_reported_and_nothing_is_served() {
    let wrong: [&[&str]; 8] = [
        &["mcp", "x"],
        &["mcp", "--session", "s"],
        &["mcp", "-c"],
        &["--skills-as-tools", "hi"],
        &["doctor", "--skills-as-tools"],
        &["mcp", "--attach", "x.png"],
        &["mcp", "--dry-run"],
        &["mcp", "--no-such"],
    ];
    for args in wrong {
        let outcome = test_with_skill().args(args).stdin(DISCOVER).run();
        outcome.status(2).stdout("").stderr_has("skills-runner: ");
    }
}

/// For each signal, idle and during a script: no process is left.
#[test]
fn signal_ends_the_server_and_its_script() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let test = test_with_skill();
        let mut idle = Client::modern(&test);
        idle.result_of("server/discover", json!({}));
        let mut busy = busy(&test, &[]);
        busy.request("tools/call", script("open('ran', 'w').close()"));
        busy.call("list_skills", json!({}));
        for mut client in [idle, busy] {
            client.running().signal(signal);
            let since = Stopwatch::start();
            assert!(wait_until(seconds(10.0), || !client.running().is_running()));
            let took = since.elapsed_for_limit(Duration::from_secs(3));
            assert!(took <= Duration::from_secs(3), "{took:?}");
            client.close().status(-signal);
        }
        assert!(test.processes().is_empty(), "{signal}");
        assert!(!test.exists("skills/echo/ran"));
    }
}

/// A server that is killed with SIGKILL takes its script with it.
#[test]
fn killed_server_leaves_no_script() {
    let test = test_with_skill();
    let mut client = busy(&test, &[]);
    client.running().kill9();
    client.close().status(-libc::SIGKILL);
    assert!(wait_until(seconds(10.0), || test.processes().is_empty()));
}

/// A disconnected client is detected immediately, without a write.
#[test]
fn disconnected_client_ends_the_server() {
    let start =
        |line: &str, test: &Test| -> Running { test.next_run().shell(line).stdin_open().spawn() };
    let test = test_with_skill();
    // `head` reads one line and exits; standard input stays open.
    let line = "skills-runner mcp | { head -n 1; }; exit 0";
    let status = "{ skills-runner mcp; echo $? >status; } | head -n 1";
    for line in [line, status] {
        let mut running = start(line, &test);
        let mut call: Value = serde_json::from_str(DISCOVER).unwrap();
        call["method"] = "tools/call".into();
        call["params"]["name"] = "run_python_script".into();
        call["params"]["arguments"] = script(ENDLESS)["arguments"].clone();
        running.write_stdin(format!("{call}\n"));
        assert!(wait_until(seconds(10.0), || test.exists("skills/echo/started")));
        running.write_stdin(format!("{DISCOVER}\n"));
        let since = Stopwatch::start();
        assert!(wait_until(seconds(10.0), || !running.is_running()));
        let took = since.elapsed_for_limit(Duration::from_secs(3));
        assert!(took <= Duration::from_secs(3), "{took:?}");
        let outcome = running.wait().success();
        assert_eq!(outcome.stdout_json_lines().len(), 1);
        outcome.stderr_lacks("failed");
        assert!(test.processes().is_empty());
        std::fs::remove_file(test.path("skills/echo/started")).unwrap();
    }
    assert_eq!(test.read("status"), "0\n");
    test_with_skill().args(["mcp"]).stdin(DISCOVER).stdout_closed().run().status(0);
}

/// The client died, but another process holds its output open and does not read: the server and its
/// script still end.
#[test]
fn blocked_output_does_not_keep_the_server_alive() {
    let source = "import json, os, subprocess, sys, time\n\
                  first, then = open('call').read(), open('request').read()\n\
                  r, w = os.pipe()\n\
                  p = subprocess.Popen(['skills-runner', 'mcp', '-q'], stdin=-1, stdout=w, stderr=2)\n\
                  if first:\n    \
                  p.stdin.write(first.encode() + b'\\n'); p.stdin.flush()\n    \
                  while not os.path.exists('skills/echo/started'): time.sleep(0.02)\n\
                  p.stdin.write((then + '\\n').encode() * 300); p.stdin.flush()\n\
                  time.sleep(1)\nassert p.poll() is None\n\
                  since = time.monotonic()\np.stdin.close()\n\
                  print(p.wait(timeout=20), time.monotonic() - since < 3)";
    let mut call: Value = serde_json::from_str(DISCOVER).unwrap();
    call["method"] = "tools/call".into();
    call["params"]["name"] = "run_python_script".into();
    call["params"]["arguments"] = script(ENDLESS)["arguments"].clone();
    for first in [String::new(), call.to_string()] {
        let test = test_with_skill()
            .file("client.py", source)
            .file("call", first)
            .file("request", DISCOVER);
        let outcome = test.next_run().shell("python3 client.py").run();
        outcome.success().stdout("0 True\n").stderr("");
        assert!(test.processes().is_empty());
    }
}

/// Slow clients get all answers, also after the end of input.
#[test]
fn slow_reader_gets_every_answer() {
    let source = "import sys, time\ncount = 0\n\
                  while part := sys.stdin.buffer.read1(1 << 18):\n    \
                  count += part.count(b'\\n'); time.sleep(0.2)\nprint(count)";
    let requests = format!("{DISCOVER}\n").repeat(1_200);
    let test = test_with_skill().file("reader.py", source).file("requests", requests);
    let line = "cat requests | skills-runner mcp | python3 reader.py";
    test.shell(line).run().success().stdout("1200\n");
}

#[test]
fn full_output_is_reported() {
    let test = test_with_skill().args(["mcp"]).stdin(DISCOVER);
    let outcome = test.stdout_file("/dev/full").run();
    outcome.status(1).stderr_has("failed to write the answer: No space left");
}

#[test]
fn any_kind_of_stdin_works() {
    for test in
        [test_with_skill().args(["mcp"]).stdin_null(), test_with_skill().args(["mcp"]).stdin("")]
    {
        test.run().status(0).stdout("");
    }
    let closed = test_with_skill().shell("skills-runner mcp <&-").run();
    closed.status(0).stdout("");
    let folder = test_with_skill().shell("skills-runner mcp <skills").run();
    folder.status(1).stdout("").stderr_has("failed to read standard input: Is a directory");
    let requests = format!("{DISCOVER}\n\n{DISCOVER}\n{DISCOVER}");
    let file = test_with_skill().file("requests", requests).args(["mcp"]);
    let outcome = file.stdin_file("requests").run().status(0);
    assert_eq!(outcome.stdout_json_lines().len(), 3);
    let socket = "import socket, subprocess, sys\na, b = socket.socketpair()\n\
                  p = subprocess.Popen(['skills-runner', 'mcp'], stdin=b, stdout=b)\nb.close()\n\
                  a.sendall(sys.argv[1].encode() + b'\\n')\nprint(a.makefile().readline()[:20])\na.close()\nprint(p.wait())";
    let test = test_with_skill().file("client.py", socket).file("request", DISCOVER);
    let outcome = test.shell("python3 client.py \"$(cat request)\"").run();
    outcome.success().stdout("{\"jsonrpc\":\"2.0\",\"id\n0\n");
}

/// Another process may have made the descriptor non-blocking; that is not an error.
#[test]
fn non_blocking_stdin_is_waited_for() {
    let source = "import os, subprocess, sys, time\nr, w = os.pipe()\nos.set_blocking(r, False)\n\
                  p = subprocess.Popen(['skills-runner', 'mcp'], stdin=r, stdout=subprocess.PIPE)\n\
                  time.sleep(0.3)\nfor part in (sys.argv[1][:9], sys.argv[1][9:] + '\\n'):\n    \
                  os.write(w, part.encode()); time.sleep(0.1)\n\
                  print(p.stdout.readline()[:20].decode())\nos.close(w)\nprint(p.wait())";
    let test = test_with_skill().file("client.py", source).file("request", DISCOVER);
    let outcome = test.shell("python3 client.py \"$(cat request)\"").run();
    outcome.success().stdout("{\"jsonrpc\":\"2.0\",\"id\n0\n");
}

/// A user who starts the server on a terminal gets an explanation and can leave.
#[test]
fn terminal_shows_an_explanation() {
    let mut terminal = test_with_skill().args(["mcp"]).spawn_on_terminal();
    terminal.expect("Model Context Protocol").expect("Ctrl+D ends it");
    terminal.expect("\nhint: ");
    terminal.expect(r#"{"mcpServers":{"skills":{"args":["mcp","--skills",""#);
    terminal.expect("README");
    terminal.type_line(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    terminal.expect(r#""result":{}"#);
    terminal.ctrl('d');
    terminal.wait_exit().success();
    let mut terminal = test_with_skill().args(["mcp"]).spawn_on_terminal();
    terminal.expect("Ctrl+D ends it").ctrl('c');
    terminal.wait_exit().status(-libc::SIGINT);
    // The explanation is printed only there.
    let outcome = test_with_skill().args(["mcp"]).stdin(DISCOVER).run();
    outcome.status(0).stderr_lacks("Ctrl+D");
    let mut quiet = test_with_skill().args(["mcp", "-q"]).spawn_on_terminal();
    quiet.type_line(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    quiet.expect(r#""result":{}"#).ctrl('d');
    assert!(!quiet.output().contains("Ctrl+D ends it"));
    quiet.wait_exit().success();
}

/// A flood of requests delays neither a script's time limit nor its result.
#[test]
fn flood_of_requests_does_not_delay_a_script() {
    let test = test_with_skill();
    let mut client = Client::modern_with(&test, &["--script-timeout", "1", "-q"]);
    let since = Stopwatch::start();
    let endless = client.request("tools/call", script(ENDLESS));
    let next = client.request("tools/call", script("print('next')"));
    let mut sent = 0;
    let mut ended = Vec::new();
    while ended.len() < 2 && since.elapsed() < seconds(20.0) {
        for _ in 0..50 {
            client.request("tools/list", json!({}));
            sent += 1;
        }
        for _ in 0..50 {
            let message = client.next();
            if message["id"] == endless || message["id"] == next {
                ended.push((message["id"].clone(), since.elapsed()));
                sent += 1;
            }
            sent -= 1;
        }
    }
    let [(first, limit), (second, _)] = &ended[..] else { panic!("{ended:?}") };
    assert_eq!((first, second), (&json!(endless), &json!(next)));
    assert!(*limit < seconds(4.0), "{ended:?}");
    for _ in 0..sent {
        client.next();
    }
    client.assert_silent();
    client.close().status(0);
}
