//! `--log FILE`: every action is logged before it happens, or does not happen.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::harness::{CANARY, ProgramText, Reply, Server, Test};

const RUN: &str = "run_python_script";

/// Fields of the `start` record that only a log has.
const OWN: [&str; 8] =
    ["folder", "version", "user", "pid", "sandbox", "confirm", "endpoint", "skills_folders"];

fn sums() -> Test {
    Test::new().skill("sums", "---\ndescription: Adds numbers.\n---\n").venv("sums")
}

fn records(test: &Test) -> Vec<Value> {
    let text = test.read("audit.jsonl");
    assert!(text.is_empty() || text.ends_with('\n'), "{text}");
    let records = text.lines().map(serde_json::from_str);
    records.collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// The types in order; consecutive pieces of text count as one.
fn types(records: &[Value]) -> Vec<&str> {
    let types = records.iter().map(|record| record["type"].as_str());
    let mut types: Vec<&str> = types.map(Option::unwrap).collect();
    types.dedup_by(|next, before| next == before && *next == "text");
    types
}

fn mode(test: &Test, path: &str) -> u32 {
    let meta = std::fs::metadata(test.path(path)).unwrap();
    meta.permissions().mode() & 0o777
}

fn by_hand(script: &str) -> [String; 5] {
    let call = json!({"skill_name": "sums", "script": script});
    ["--log", "audit.jsonl", "tool", RUN, &call.to_string()].map(str::to_owned)
}

/// In every output format the log has the records of `jsonl`, with time and run id, and in full.
#[test]
fn log_has_the_whole_run_in_every_output_format() {
    let script = format!(
        "# {}\nprint('x' * 30000)\nprint('{}' + '{}')\n",
        "long ".repeat(1000),
        &CANARY[..9],
        &CANARY[9..]
    );
    let formats: [&[&str]; 3] = [&["-q"], &["-q", "-o", "json"], &["-o", "jsonl"]];
    for format in formats {
        let server = Server::start([
            Reply::call(RUN, &json!({"skill_name": "sums", "script": script})),
            Reply::text("done"),
        ]);
        let test = sums().endpoint(&server);
        let run = test
            .next_run()
            .args(["--log", "audit.jsonl", "add them up"])
            .args(format)
            .run()
            .success();
        server.finish();
        let log = records(&test);
        assert_eq!(types(&log), ["start", "tool_call", "tool_result", "text", "result"]);
        let call = &log[1]["arguments"]["script"];
        assert_eq!(call.as_str(), Some(script.as_str()), "the script is logged in full");
        let result = log[2]["content"].as_str().unwrap();
        let printed = format!("{}\n[secret]\n", "x".repeat(30_000));
        assert_eq!(ProgramText::parse(result).stdout, printed);
        assert_eq!(log[2]["result"]["stdout"].as_str(), Some(printed.as_str()));
        assert_eq!(log.last().unwrap()["answer"], "done");
        assert_eq!(
            (log[0]["folder"].as_str(), log[0]["version"].as_str()),
            (test.path(".").canonicalize().unwrap().to_str(), Some(env!("CARGO_PKG_VERSION")))
        );
        for record in &log {
            assert_eq!(record["run"], log[0]["run"]);
            let time = record["time"].as_str().unwrap();
            let form: String =
                time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
            assert_eq!(form, "0000-00-00T00:00:00.000Z");
        }
        assert_eq!(mode(&test, "audit.jsonl"), 0o600);
        if format.contains(&"jsonl") {
            let mut log = log;
            let mut reported = run.stdout_json_lines();
            for record in log.iter_mut().chain(&mut reported) {
                let fields = record.as_object_mut().unwrap();
                for own in ["time", "run", "prompt"].iter().chain(&OWN) {
                    fields.remove(*own);
                }
                if fields["type"] == "result" {
                    fields.remove("duration_ms");
                }
            }
            let is_piece = |record: &&mut Value| record["type"] == "text";
            let mut pieces = reported.iter_mut().filter(is_piece);
            pieces.next().unwrap()["delta"] = "done".into();
            let mut is_first = true;
            reported.retain(|record| {
                record["type"] != "text" || std::mem::replace(&mut is_first, false)
            });
            assert_eq!(log, reported, "the same records, with each message in one piece");
        }
    }
}

#[test]
fn tool_command_is_logged() {
    let test = sums();
    test.next_run().args(by_hand("print(4)")).run().success();
    test.next_run().args(by_hand("raise SystemExit(3)")).run().status(1);
    let log = records(&test);
    let (first, second) = log.split_at(4);
    for records in [first, second] {
        assert_eq!(types(records), ["start", "tool_call", "tool_result", "result"]);
        assert_eq!(records[0]["skills"], json!(["sums"]));
        assert_eq!(records[3]["tool_calls"], 1);
    }
    assert_ne!(first[0]["run"], second[0]["run"], "two runs");
    assert_eq!(first[1]["arguments"]["script"], "print(4)");
    let ends = |records: &[Value]| (records[3]["status"].clone(), records[3]["exit_code"].clone());
    assert_eq!(ends(first), (json!("ok"), json!(0)));
    assert_eq!(ends(second), (json!("error"), json!(1)));
}

/// The `start` record has the user, the folder, the options and the prompt, even if the run is
/// killed before an answer.
#[test]
fn start_record_has_user_options_and_prompt() {
    let server = Server::start([Reply::empty().hang()]);
    let test = sums().endpoint(&server);
    let running =
        test.next_run().args(["--log", "audit.jsonl", "--confirm", "what is it?"]).spawn();
    server.wait_for_requests(1);
    let pid = running.pid();
    running.kill9();
    let log = records(&test);
    assert_eq!(types(&log), ["start"]);
    let folder = test.path(".").canonicalize().unwrap();
    // SAFETY: the call has no preconditions.
    let user = unsafe { libc::geteuid() };
    let expected = [
        json!(folder.to_str()),
        json!(env!("CARGO_PKG_VERSION")),
        json!(user),
        json!(pid),
        json!(false),
        json!(true),
        json!(server.url()),
        json!([folder.join("skills").to_str()]),
    ];
    for (field, expected) in OWN.iter().zip(expected) {
        assert_eq!(log[0][field], expected, "{field}");
    }
    assert_eq!(log[0]["prompt"], "what is it?");
    server.finish();

    let test = sums();
    let nobody = Server::refusing_connections();
    let question = format!("what is {CANARY}?");
    test.next_run()
        .endpoint(&nobody)
        .env("LLM_API_BASE_URL", format!("{}/{CANARY}?key=of", nobody.url()))
        .args(["--log", "audit.jsonl", "--timeout", "0.2", &question])
        .run();
    let log = records(&test);
    let endpoint = format!("{}/[secret]", nobody.url());
    assert_eq!(log[0]["endpoint"], endpoint);
    for record in [&log[0], log.last().unwrap()] {
        assert_eq!(record["prompt"], "what is [secret]?");
    }

    let test = sums();
    test.next_run()
        .args(["--log", "audit.jsonl", "--sandbox", "tool", "list_skills"])
        .run()
        .success();
    let start = &records(&test)[0];
    assert_eq!((&start["sandbox"], &start["confirm"]), (&json!(true), &json!(false)));
    assert!(start.get("endpoint").or(start.get("prompt")).is_none());
}

/// A call names a script by its path. The log has the text that ran, even if the file has changed
/// since. Other outputs do not have it.
#[test]
fn script_file_is_logged_as_it_ran() {
    let script =
        format!("# {CANARY} \u{e4}\nopen('skills/sums/add.py', 'w').write('')\nprint(4)\n");
    let call = json!({"skill_name": "sums", "file_path": "add.py"});
    let server = Server::start([Reply::call(RUN, &call), Reply::text("done")]);
    let test = sums().endpoint(&server).file("skills/sums/add.py", script.as_bytes());
    let mut terminal = test
        .next_run()
        .args(["--log", "audit.jsonl", "--confirm", "-o", "jsonl", "go"])
        .stderr_to_pty_only()
        .spawn_on_terminal();
    terminal.expect("run it?").type_line("y");
    let run = terminal.wait_exit().success();
    assert_eq!(test.read("skills/sums/add.py"), "", "it has changed itself");
    let log = records(&test);
    assert_eq!(log[2]["type"], "tool_result");
    let masked = script.replace(CANARY, "[secret]");
    assert_eq!(log[2]["script"].as_str(), Some(masked.as_str()));
    assert_eq!(log[2]["allowed"], "once");
    let reported = run.stdout_json_lines();
    assert_eq!(types(&reported), types(&log));
    for reported in reported {
        assert!(reported.get("script").or(reported.get("allowed")).is_none());
    }
    let sent = server.finish()[1].last_message().to_string();
    assert!(sent.contains("stdout") && !sent.contains("open("), "{sent}");

    // The text is omitted if the script did not run, or is in the call itself.
    let test = sums().file("skills/sums/add.py", "print(4)");
    for arguments in [
        json!({"skill_name": "sums", "file_path": "absent.py"}),
        json!({"skill_name": "sums", "script": "print(4)"}),
    ] {
        test.next_run().args(["--log", "audit.jsonl", "tool", RUN, &arguments.to_string()]).run();
    }
    for record in records(&test) {
        assert!(record.get("script").or(record.get("allowed")).is_none());
    }
}

/// Every turn of a conversation is logged, and a run whose stdout is closed.
#[test]
fn conversations_and_runs_with_closed_stdout_are_logged() {
    let server = Server::start([Reply::text("one"), Reply::text("two")]);
    let test = sums().endpoint(&server);
    test.next_run().args(["--log", "audit.jsonl", "chat"]).stdin("first\nsecond\n").run().success();
    server.finish();
    let log = records(&test);
    assert_eq!(types(&log), ["start", "text", "result", "text", "result"]);
    for (field, reported) in [("answer", ["one", "two"]), ("prompt", ["first", "second"])] {
        let fields: Vec<&str> = log.iter().filter_map(|r| r[field].as_str()).collect();
        assert_eq!(fields, reported);
    }

    let server = Server::start([Reply::text("one")]);
    let test = sums().endpoint(&server);
    test.next_run().args(["--log", "audit.jsonl", "first"]).stdout_closed().run().success();
    server.finish();
    assert_eq!(types(&records(&test)), ["start", "text", "result"]);
}

/// A message in many pieces is one record, also if it was interrupted. `jsonl` output has the
/// pieces.
#[test]
fn message_is_one_record() {
    let text = "a few words, and some more of them";
    let server = Server::start([
        Reply::text(text).with_reasoning("one thought, and another"),
        Reply::text("The beginning").hang(),
    ]);
    let test = Test::new().endpoint(&server);
    let run = test.next_run().args(["--log", "audit.jsonl", "-o", "jsonl", "go"]).run().success();
    let pieces = run.stdout_json_lines();
    let pieces = pieces.iter().filter(|record| record["type"] == "text");
    assert!(pieces.count() > 1, "{}", run.stdout);
    let mut running = test.next_run().args(["--log", "audit.jsonl", "-o", "jsonl", "go"]).spawn();
    running.read_stdout_until("The b");
    running.signal(libc::SIGINT);
    running.wait().status(-libc::SIGINT);
    server.finish();
    let log = records(&test);
    let deltas: Vec<&str> = log.iter().filter_map(|record| record["delta"].as_str()).collect();
    assert_eq!(deltas[..2], ["one thought, and another", text]);
    assert!(deltas.len() == 3 && deltas[2].starts_with("The b"), "{deltas:?}");
}

/// A log that is not the user's own regular file is refused before any request.
#[test]
fn invalid_log_file_is_refused_before_any_request() {
    let test = Test::new()
        .file("target.jsonl", "kept")
        .file("theirs.jsonl", "kept")
        .link("link.jsonl", "target.jsonl")
        .link("dangling.jsonl", "nowhere.jsonl")
        .folder("folder");
    let fifo = CString::new(test.path("fifo").as_os_str().as_bytes()).unwrap();
    // SAFETY: a name that outlives the call.
    assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
    std::fs::hard_link(test.path("target.jsonl"), test.path("twice.jsonl")).unwrap();
    // Only root can change the owner of a file.
    let is_given = std::os::unix::fs::chown(test.path("theirs.jsonl"), Some(65534), None).is_ok();
    let server = Server::start([]);
    let table = [
        ("link.jsonl", "it is a link"),
        ("dangling.jsonl", "it is a link"),
        ("folder", "it is not a regular file"),
        ("fifo", "it is not a regular file"),
        ("/dev/full", "it is not a regular file"),
        ("missing/audit.jsonl", "No such file or directory"),
        ("twice.jsonl", "it has more than one hard link"),
        ("theirs.jsonl", "it belongs to another user"),
    ];
    for (path, cause) in table {
        if path == "theirs.jsonl" && !is_given {
            continue;
        }
        for command in [vec!["hi"], vec!["tool", "list_skills"], vec!["demo"]] {
            test.next_run()
                .endpoint(&server)
                .args(["--log", path])
                .args(command)
                .run()
                .status(2)
                .stdout_is_empty()
                .stderr_has("failed to open the log `")
                .stderr_has(cause);
        }
    }
    server.finish();
    assert_eq!(test.read("target.jsonl"), "kept");
    assert_eq!(test.read("theirs.jsonl"), "kept");
    assert!(!test.exists("nowhere.jsonl"));
}

#[test]
fn commands_that_run_nothing_do_not_log() {
    let server = Server::start([]);
    let test = sums().endpoint(&server);
    for command in [["doctor"].as_slice(), &["skills", "list"]] {
        test.next_run()
            .args(["--log", "audit.jsonl"])
            .args(command)
            .run()
            .status(2)
            .stderr_has("--log works only where tools can run");
    }
    for command in [["hi"].as_slice(), &["chat", "hi"]] {
        test.next_run().args(["--dry-run", "--log", "audit.jsonl"]).args(command).run().success();
    }
    assert!(!test.exists("audit.jsonl"), "nothing was done");
    server.finish();
}

/// Other users lose access to an existing log, and an incomplete last line stays a separate line.
#[test]
fn existing_log_is_made_private_and_continued_on_a_new_line() {
    let torn = "{\"type\":\"start\"}\n{\"type\":\"tool_c";
    let test = sums().file("audit.jsonl", torn).mode("audit.jsonl", 0o664);
    test.next_run().args(by_hand("print(4)")).run().success().stderr_is_empty();
    assert_eq!(mode(&test, "audit.jsonl"), 0o600);
    let text = test.read("audit.jsonl");
    let rest = text.strip_prefix(&format!("{torn}\n{{\"time\":"));
    assert_eq!(rest.map(|rest| rest.lines().count()), Some(4), "{text}: no line is lost");
}

/// Many runners append to one log, and every line is complete.
#[test]
fn parallel_runs_share_a_log() {
    let test = sums();
    let script = "print('y' * 50000)";
    let mut left = 12;
    let mut running = Vec::new();
    while left > 0 || !running.is_empty() {
        while left > 0 && running.len() < 6 {
            running.push(test.next_run().args(by_hand(script)).spawn());
            left -= 1;
        }
        running.remove(0).wait().success();
    }
    let log = records(&test);
    let mut runs: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for record in &log {
        let name = record["run"].as_str().unwrap();
        let run = runs.entry(name).or_default();
        run.push(record["type"].as_str().unwrap());
    }
    assert_eq!(runs.len(), 12);
    for types in runs.values() {
        assert_eq!(types, &["start", "tool_call", "tool_result", "result"]);
    }
}

/// A script that cannot be logged does not run.
#[test]
fn full_log_ends_the_run_before_the_script() {
    let script = format!("open('ran', 'w')\n#{}", "x".repeat(3000));
    let before = "{}\n".repeat(1000);
    let arguments = json!({"skill_name": "sums", "script": script});
    let test = sums().file("audit.jsonl", &before);
    // 4096 bytes: enough for the `start` record, but not for the script.
    let limited = "ulimit -f 8; exec skills-runner --log audit.jsonl \"$@\"";

    let server = Server::start([Reply::call(RUN, &arguments)]);
    let run = test
        .next_run()
        .endpoint(&server)
        .shell(limited)
        .args(["-o", "jsonl", "go"])
        .run()
        .status(1)
        .stderr_has("skills-runner: failed to write the log `")
        .stderr_has("File too large")
        .stderr_has("hint: nothing runs that cannot be logged");
    server.finish();
    let reported = run.stdout_json_lines();
    assert_eq!(types(&reported), ["start", "tool_call", "error", "result"]);
    let result = &reported[3];
    assert_eq!((&result["error"]["kind"], &result["exit_code"]), (&json!("io"), &json!(1)));

    let arguments = arguments.to_string();
    test.next_run()
        .shell(limited)
        .args(["tool", RUN, &arguments])
        .run()
        .status(1)
        .stdout_is_empty()
        .stderr_has("failed to write the log `");

    let server =
        Server::start([Reply::call(RUN, &json!({"skill_name": "sums", "script": script}))]);
    test.next_run()
        .endpoint(&server)
        .shell(limited)
        .args(["chat"])
        .stdin("first\nsecond\n")
        .run()
        .status(1)
        .stderr_has("failed to write the log `");
    assert_eq!(server.finish().len(), 1, "the conversation has ended");
    assert!(!test.exists("skills/sums/ran"), "the script has run");
    let log = test.read("audit.jsonl");
    let rest = log.strip_prefix(before.as_str()).unwrap();
    let types: Vec<String> = rest
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].to_string())
        .collect();
    assert_eq!(types, ["\"start\"", "\"start\"", "\"start\""], "the log has no incomplete record");
}

/// If the log becomes full after a script has run, that is reported.
#[test]
fn log_full_after_a_script_is_reported() {
    let before = "{}\n".repeat(1000);
    let test = sums().file("audit.jsonl", before);
    let script = "print('z' * 5000)";
    let arguments = json!({"skill_name": "sums", "script": script}).to_string();
    test.next_run()
        .shell("ulimit -f 8; exec skills-runner --log audit.jsonl \"$@\"")
        .args(["tool", RUN, &arguments])
        .run()
        .status(1)
        .stdout_has("zzzz")
        .stderr_has("failed to write the log `");
}

#[test]
fn scripts_do_not_inherit_the_log() {
    let test = sums();
    let script = "import os\nfor n in os.listdir('/proc/self/fd'):\n    try: print(os.readlink('/proc/self/fd/' + n))\n    except OSError: pass\n";
    test.next_run().args(by_hand(script)).run().success().stdout_has("pipe:").stdout_lacks("audit");
}
