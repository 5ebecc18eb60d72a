//! Arbitrary bytes on standard input: each line gets its expected answer, the next request is
//! answered immediately, and memory use is limited.

use std::time::Instant;

use serde_json::{Value, json};

use super::Client;
use crate::harness::{Test, seconds};

/// The expected effect of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// A result for request 5.
    Result,
    /// An error with this code for request 5.
    Error(i64),
    /// An error with this code and the id `null`.
    Null(i64),
    /// No message, but a line on standard error.
    Unanswered,
    /// Neither a message nor a line on standard error.
    Nothing,
}

use Expected::{Error, Nothing, Null, Result, Unanswered};

const TABLE: &str = include_str!("bad_lines.txt");
const GOOD: &str = r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#;
const HEAD: &str = r#"{"jsonrpc":"2.0","id":5,"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":5,"method":"ping","params":"#;
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"list_skills",META,"arguments":"#;

/// Replaces the placeholders of a row of the table.
fn expanded(line: &str) -> Vec<u8> {
    let line = line.replace("GOOD", GOOD).replace("HEAD", HEAD);
    let line = line.replace("PING", PING).replace("META", META);
    let mut bytes = Vec::new();
    let mut rest = line.as_bytes();
    while let [first, behind @ ..] = rest {
        let digits = std::str::from_utf8(rest.get(1..3).unwrap_or_default()).unwrap_or("");
        let is_byte = *first == b'<' && rest.get(3) == Some(&b'>');
        match u8::from_str_radix(digits, 16) {
            Ok(byte) if is_byte => (bytes.push(byte), rest = &rest[4..]).1,
            _ => (bytes.push(*first), rest = behind).1,
        }
    }
    bytes
}

/// Name, bytes and expected effect of each row.
fn table() -> Vec<(&'static str, Vec<u8>, Expected)> {
    let rows = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let rows = rows.map(|row| {
        let mut parts = row.splitn(3, " |").map(|part| part.strip_prefix(' ').unwrap_or(part));
        let expected = match parts.next().unwrap().trim() {
            "result" => Result,
            "unanswered" => Unanswered,
            "nothing" => Nothing,
            code => Error(code.parse().unwrap()),
        };
        (parts.next().unwrap(), expanded(parts.next().unwrap()), expected)
    });
    rows.collect()
}

/// Sends a line and then a valid request; returns the answer to the line, if any.
#[track_caller]
fn answer_to_line(client: &mut Client, name: &str, line: &[u8]) -> Option<Value> {
    client.send(line);
    client.send(r#"{"jsonrpc":"2.0","id":"good","method":"ping"}"#);
    let first = client.next();
    if first["id"] == "good" {
        return None;
    }
    let good = client.next();
    assert_eq!(good["id"], "good", "{name}: {first} {good}");
    Some(first)
}

#[track_caller]
fn assert_expected(name: &str, expected: Expected, answer: Option<&Value>) {
    let found = answer.map(|answer| {
        let code = answer["error"]["code"].as_i64();
        assert!(code.is_some() || answer["result"].is_object(), "{name}: {answer}");
        (answer["id"].clone(), code)
    });
    let expected = match expected {
        Result => Some((json!(5), None)),
        Error(code) => Some((json!(5), Some(code))),
        Null(code) => Some((Value::Null, Some(code))),
        Unanswered | Nothing => None,
    };
    assert_eq!(found, expected, "{name}: {answer:?}");
}

/// The memory in MiB that the debug build uses by itself, in limits. Its measured use takes the place
/// of this, as it grows with the program.
const BASE_MIB: u64 = 13;
/// Memory limit in MiB for ordinary lines.
const ORDINARY_MIB: u64 = 14;

/// A memory limit in KiB, for the memory that a server uses which answers one short call.
fn limit_kib(mib: u64) -> u64 {
    let mut client = Client::bare(&Test::new());
    let call = format!("{}{{}}}}}}", CALL.replace("META", META));
    assert!(answer_to_line(&mut client, "a short call", call.as_bytes()).is_some());
    // Measures the memory, too.
    assert!(client.running().is_running());
    let base = client.close().status(0).peak_memory_kib;
    base + ((mib - BASE_MIB) << 10)
}

/// One process reads all lines in sequence.
#[test]
fn each_line_gets_its_expected_answer() {
    let table = table();
    assert!(table.len() >= 130, "{}", table.len());
    let mut client = Client::bare(&Test::new());
    for (name, line, expected) in &table {
        let answer = answer_to_line(&mut client, name, line);
        assert_expected(name, *expected, answer.as_ref());
    }
    client.running().is_running();
    let outcome = client.close().status(0).memory_at_most(limit_kib(ORDINARY_MIB));
    // Nothing else is printed, without terminal control characters, in one short line each.
    let expected = table.iter().filter(|(_, _, expected)| *expected == Unanswered);
    let complaints = outcome.stderr.lines().filter(|line| {
        let is_complaint = line.starts_with("skills-runner: a line was not answered: ");
        is_complaint && line.len() < 300 && !line.contains(|c: char| c.is_control())
    });
    assert_eq!(complaints.count(), expected.count(), "{}", outcome.stderr);
    let others = outcome.stderr.lines().filter(|line| !line.starts_with("skills-runner: "));
    let is_call = |line: &str| line.contains(" list_skills") || line.starts_with("← ");
    assert!({ others }.all(is_call), "{}", outcome.stderr);
}

/// Each line alone: the last line needs no line end.
#[test]
#[ignore = "long"]
fn last_line_needs_no_line_end() {
    for (name, line, expected) in table() {
        let outcome = Test::new().args(["mcp"]).stdin(line).run().status(0);
        let answers = outcome.stdout_json_lines();
        assert_expected(name, expected, answers.first());
        assert!(answers.len() < 2, "{name}: {answers:?}");
        let is_reported = outcome.stderr.contains("a line was not answered: ");
        assert_eq!(is_reported, expected == Unanswered, "{name}: {}", outcome.stderr);
    }
}

/// A ping of this length in bytes.
fn ping_of_length(length: usize) -> Vec<u8> {
    let frame = PING.len() + r#"{"a":""}}"#.len();
    format!(r#"{PING}{{"a":"{}"}}}}"#, "x".repeat(length - frame)).into()
}

/// A line, its expected effect, and the memory limit of the debug build in MiB.
type Large = (&'static str, Vec<u8>, Expected, u64);

/// Deeply nested lines and lines with many parts, which are not kept in parsed form.
fn nested_lines() -> Vec<Large> {
    let call = CALL.replace("META", META);
    let open = "[".repeat(100_000);
    let brackets = format!("{open}0{}", "]".repeat(100_000));
    let objects = format!("{}0{}", r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
    let many: Vec<String> = (0..1_000_000).map(|number| format!("\"m{number}\":0")).collect();
    let many = many.join(",");
    let values = format!("{}0", "{},".repeat(5 << 20));
    let rows = [
        ("brackets", open.clone(), Unanswered, 14),
        ("brackets that close", brackets.clone(), Unanswered, 14),
        ("brackets as params", format!("{PING}{brackets}}}"), Error(-32602), 14),
        ("brackets in params", format!("{PING}{{\"a\":{brackets}}}}}"), Result, 14),
        ("open brackets in params", format!("{PING}{{\"a\":{open}"), Error(-32600), 14),
        ("brackets as arguments", format!("{call}{brackets}}}}}"), Result, 14),
        ("brackets as id", format!(r#"{{"jsonrpc":"2.0","id":{brackets}}}"#), Null(-32600), 14),
        ("objects in params", format!("{PING}{objects}}}"), Result, 16),
        ("objects as arguments", format!("{call}{objects}}}}}"), Result, 16),
        ("members of a message", format!("{HEAD}{many},\"method\":\"ping\"}}"), Result, 30),
        ("members of params", format!("{PING}{{{many}}}}}"), Result, 30),
        ("members of arguments", format!("{call}{{{many}}}}}}}"), Result, 80),
        ("values in arguments", format!("{call}{{\"query\":[{values}]}}}}}}"), Result, 100),
    ];
    rows.map(|(name, line, expected, mib)| (name, line.into(), expected, mib)).into()
}

/// Long lines: they are held once as received, and once more if their content is parsed.
fn long_lines() -> Vec<Large> {
    let call = CALL.replace("META", META);
    let long = |text: &str| text.repeat((16 << 20) / text.len());
    let version = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"#;
    let rows = [
        ("letters", long("x"), Unanswered, 30),
        ("NUL", long("\0"), Unanswered, 30),
        ("brackets", long("["), Unanswered, 30),
        ("brackets in params", format!("{PING}{}", long("[")), Error(-32600), 48),
        // The parser would quote each of these bytes as six.
        ("a string", format!("\"{}\"", long("\x7f")), Unanswered, 30),
        (
            "a string as _meta",
            format!("{PING}{{\"_meta\":\"{}\"}}}}", long("\x7f")),
            Error(-32602),
            30,
        ),
        (
            "an id",
            format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#, long("x")),
            Null(-32600),
            30,
        ),
        (
            "digits as id",
            format!(r#"{{"jsonrpc":"2.0","id":{},"method":"ping"}}"#, long("1")),
            Null(-32600),
            30,
        ),
        ("digits", format!("{PING}{{\"a\":{}}}}}", long("1")), Result, 30),
        ("a method", format!("{HEAD}\"method\":\"{}\"}}", long("x")), Error(-32601), 48),
        ("a version", format!("{PING}{version}\"{}\"}}}}}}", long("x")), Error(-32022), 48),
        ("an argument", format!("{call}{{\"query\":\"{}\"}}}}}}", long("x")), Result, 110),
        (
            "an argument of escapes",
            format!("{call}{{\"query\":\"{}\"}}}}}}", long("\\n")),
            Result,
            110,
        ),
        ("33 MB", "x".repeat(33_000_000), Unanswered, 48),
    ];
    let mut rows: Vec<Large> =
        rows.map(|(name, line, expected, mib)| (name, line.into(), expected, mib)).into();
    let most = 32 << 20;
    rows.extend([
        ("no UTF-8", vec![0xff; most / 2], Unanswered, 48),
        (
            "no UTF-8 in params",
            [PING.as_bytes(), b"\"", &vec![0xff; most / 2], b"\"}"].concat(),
            Error(-32600),
            48,
        ),
        ("16 MiB", ping_of_length(most / 2), Result, 30),
        ("32 MiB", ping_of_length(most), Result, 48),
        ("a byte more", ping_of_length(most + 1), Unanswered, 48),
    ]);
    rows
}

#[test]
#[ignore = "long"]
fn large_lines_use_limited_memory() {
    for (name, line, expected, mib) in [nested_lines(), long_lines()].into_iter().flatten() {
        let mut client = Client::bare(&Test::new());
        let since = Instant::now();
        let answer = answer_to_line(&mut client, name, &line);
        let took = since.elapsed();
        assert_expected(name, expected, answer.as_ref());
        assert!(client.running().is_running());
        let outcome = client.close().status(0);
        let held = outcome.peak_memory_kib;
        println!("{name}: {held} KiB of {mib} MiB, {took:?}");
        let most = limit_kib(mib);
        assert!(held <= most, "{name}: {held} KiB, more than {most} KiB");
        assert!(took < seconds(20.0), "{name}: {took:?}");
        assert!(outcome.stderr.len() < 2000, "{name}: {}", outcome.stderr);
    }
}

/// A lone surrogate is not valid text; it is returned as it was sent.
#[test]
fn id_with_a_lone_surrogate_is_returned_unchanged() {
    let mut client = Client::bare(&Test::new());
    let ids = [r#""\ud800""#, r#""\uDFFF\"x""#, "-0", "123456789012345678901234567890"];
    for id in ids {
        client.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#));
        let line = client.running().read_stdout_until("\n");
        assert!(line.contains(&format!(r#""id":{id},"#)), "{line}");
    }
}

/// A client that sends invalid lines forever cannot fill the log.
#[test]
fn warnings_stop_after_a_thousand() {
    let lines = "[]\n".repeat(200_000) + GOOD + "\n";
    let outcome = Test::new().args(["mcp"]).stdin(lines).run().status(0);
    assert_eq!(outcome.stdout_json_lines().len(), 1);
    let reported = |line: &&str| line.contains("not answered");
    let reported = outcome.stderr.lines().filter(reported).count();
    let last = "more lines were not answered; they are no longer reported";
    // If this test reads too slowly, the server does not wait for it.
    let is_cut = outcome.stderr.contains("left out here") || !outcome.stderr.contains(last);
    assert!(reported == 1001 || reported < 1001 && is_cut, "{reported}");
}

#[test]
fn unread_stderr_does_not_block_answers() {
    let lines = "[]\n".repeat(5_000) + &expanded_text("CALL{}}}\n").repeat(500);
    let test = Test::new().file("requests", lines);
    let line = "mkfifo log && exec 3<>log && skills-runner mcp <requests 2>log | grep -c structuredContent";
    test.shell(line).run().success().stdout("500\n");
}

/// Nor does it delay each answer; a later reader is told how many lines are missing.
#[test]
fn unread_stderr_does_not_delay_answers() {
    // A wait shows as a context switch; there is no room for some 1,600 lines.
    let source = "import os, subprocess, threading\n\
                  request = open('request', 'rb').read()\n\
                  p = subprocess.Popen(['skills-runner', 'mcp'], stdin=-1, stdout=-1, stderr=-1)\n\
                  def ask(times):\n    \
                  p.stdin.write(request * times); p.stdin.flush()\n\
                  threading.Thread(target=ask, args=[3000]).start()\n\
                  for _ in range(3000): p.stdout.readline()\n\
                  status = open(f'/proc/{p.pid}/status').read().split()\n\
                  waits = int(status[status.index('voluntary_ctxt_switches:') + 1])\n\
                  assert waits < 500, waits\n\
                  os.set_blocking(p.stderr.fileno(), False)\n\
                  log = p.stderr.read()\nask(1); p.stdout.readline()\n\
                  p.stdin.close(); p.wait(); log += p.stderr.read()\n\
                  lines = log.decode().splitlines()\n\
                  # A short line may find room where a longer one found none.\n\
                  notes = [line for line in lines if 'left out' in line]\n\
                  assert all(note.endswith(' left out here') for note in notes), notes\n\
                  assert 'left out' in lines[-3], lines[-3:]\n\
                  print(sum(int(note.split()[1]) for note in notes) + len(lines) - len(notes))";
    let test = Test::new()
        .skill("echo", "---\nname: echo\ndescription: Says things again.\n---\n")
        .env("SKILLS_FOLDER_PATH", "skills")
        .file("client.py", source)
        .file("request", expanded_text("CALL{}}}\n"));
    // Two lines for each call.
    let outcome = test.shell("python3 client.py").run();
    outcome.success().stdout("6002\n");
}

/// If a client does not read its answers, the server can still be ended by a signal, and unread
/// requests stay in the pipe.
#[test]
fn unread_answers_do_not_accumulate() {
    let lines = expanded_text("CALL{}}}\n").repeat(100_000);
    let test = Test::new().file("requests", lines);
    let line = "mkfifo out && exec 3<>out && exec skills-runner mcp <requests >out";
    let mut running = test.shell(line).spawn();
    running.read_stderr_until("← ");
    std::thread::sleep(seconds(0.5));
    assert!(running.is_running());
    running.signal(libc::SIGTERM);
    let outcome = running.wait().status(-libc::SIGTERM);
    let outcome = outcome.took_at_most(seconds(10.0));
    outcome.memory_at_most(limit_kib(ORDINARY_MIB));
}

fn expanded_text(line: &str) -> String {
    String::from_utf8(expanded(&line.replace("CALL", CALL))).unwrap()
}

/// Script calls are queued, up to a limit of their number and size.
#[test]
fn queued_calls_are_limited() {
    let document = "---\nname: echo\ndescription: Says things again.\n---\n";
    let test = Test::new().skill("echo", document);
    let mut client = Client::modern(&test);
    let script = |source: &str| json!({"name": "run_python_script", "arguments": {"skill_name": "echo", "script": source}});
    let endless = client.request("tools/call", script("import time\nwhile True: time.sleep(1)"));
    let large = "#".repeat(3 << 20);
    let ids: Vec<u64> = (0..14).map(|_| client.request("tools/call", script(&large))).collect();
    // Ten of them fit into 32 MiB.
    for id in &ids[10..] {
        let refused = client.next();
        assert_eq!(refused["id"], *id);
        assert_eq!(refused["result"]["isError"], true, "{refused}");
        let text = refused["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("the queued calls are too large"), "{text}");
    }
    for id in &ids {
        client.notify("notifications/cancelled", json!({"requestId": id}));
    }
    let ids: Vec<u64> = (0..1001).map(|_| client.request("tools/call", script(""))).collect();
    let refused = client.next();
    assert_eq!(refused["id"], ids[1000]);
    let text = refused["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("too many calls are queued"), "{text}");
    client.notify("notifications/cancelled", json!({"requestId": endless}));
    client.running().is_running();
    let outcome = client.close().status(0);
    outcome.memory_at_most(64 << 10);
}

/// For any method and parameters there is one answer, which is a result or an error of the
/// protocol.
#[test]
fn every_method_answers_any_parameters() {
    let methods = [
        "initialize",
        "ping",
        "server/discover",
        "tools/list",
        "tools/call",
        "prompts/list",
        "prompts/get",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "resources/directory/read",
        "skills/list",
        "skills/get",
    ];
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let values = [
        "null",
        "true",
        "-1",
        "1e999",
        "\"\"",
        "\"x\"",
        "\"\\ud800\"",
        "\"\\u0000/../..\"",
        "[]",
        "[null]",
        "{}",
        "{\"a\":1,\"a\":2}",
        "\"skill://\"",
        "\"skill://%00/%ff\"",
        "\"bm8=\"",
        &deep,
    ];
    let members = ["name", "arguments", "uri", "cursor", "protocolVersion", "_meta", "\\u006eame"];
    let document = "---\nname: echo\ndescription: Says things again.\n---\n";
    let mut client = Client::bare(&Test::new().skill("echo", document));
    let mut sent = 0;
    for method in methods {
        for value in values {
            let mut params = vec![
                value.to_string(),
                format!("{{{META},\"name\":{value},\"uri\":{value},\"cursor\":{value}}}"),
            ];
            for member in members {
                params.push(format!("{{\"{member}\":{value}}}"));
                params.push(format!("{{\"name\":\"list_skills\",\"{member}\":{value},{META}}}"));
            }
            for params in params {
                client.send(format!(
                    r#"{{"jsonrpc":"2.0","id":{sent},"method":"{method}","params":{params}}}"#
                ));
                let answer = client.next();
                assert_eq!(answer["id"], sent, "{method} {params}: {answer}");
                let code = answer["error"]["code"].as_i64();
                let is_known = matches!(code, Some(-32601 | -32602 | -32002 | -32022));
                assert!(is_known || answer["result"].is_object(), "{method} {params}: {answer}");
                sent += 1;
            }
        }
    }
    assert!(sent > 3000, "{sent}");
    client.close().status(0).stderr_lacks("without an answer");
}

/// A deterministic pseudorandom number generator (xorshift).
fn noise() -> impl FnMut(usize) -> usize {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    move |end| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap() % end.max(1)
    }
}

/// The table's lines are cut up and recombined: every answer is a message, and the server is still
/// running afterwards.
#[test]
fn random_input_does_not_end_the_server() {
    let lines: Vec<Vec<u8>> = table().into_iter().map(|(_, line, _)| line).collect();
    let mut below = noise();
    let mut client = Client::bare(&Test::new());
    for _ in 0..200 {
        let mut bytes = Vec::new();
        for _ in 0..200 {
            let line = &lines[below(lines.len())];
            let (begin, end) = (below(line.len()), below(line.len() + 1));
            bytes.extend_from_slice(line.get(begin.min(end)..end).unwrap_or(line));
            match below(4) {
                0 => bytes.push(u8::try_from(below(256)).unwrap()),
                1 => bytes.push(b'\n'),
                _ => {}
            }
        }
        client.running().write_stdin(bytes);
        client.send("");
        client.send(r#"{"jsonrpc":"2.0","id":"good","method":"ping"}"#);
        while client.next()["id"] != "good" {}
    }
    assert!(client.running().is_running());
    client.close().status(0).memory_at_most(limit_kib(ORDINARY_MIB));
}
