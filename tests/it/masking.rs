//! No part of a secret is shown, wherever a text is shortened and however a server or a script
//! encodes it. (The harness checks in every test that the whole key is never shown.)

use serde_json::json;

use crate::harness::{CANARY, Outcome, Reply, Server, Test, event, last_event, seconds};

const SKILL: &str = "# A skill";

/// Limit of a quoted server message, in characters.
const QUOTED: usize = 300;
/// Limit of the line of a tool call or result.
const SUMMARY: usize = 200;
/// Bytes kept of each end of a script's output stream.
const HALF: usize = 32 << 10;
/// Size limit of a page.
const PAGE: usize = 64 << 10;

/// Python code that produces the key without containing it.
fn key_in_python() -> String {
    let backwards: String = CANARY.chars().rev().collect();
    format!("k = '{backwards}'[::-1]; ")
}

/// Asserts that no start or end of the key of four or more bytes is shown.
#[track_caller]
fn shows_no_part(run: Outcome, what: &str) -> Outcome {
    for part in [&CANARY[..4], &CANARY[CANARY.len() - 4..]] {
        for stream in [&run.stdout, &run.stderr] {
            run.check(!stream.contains(part), format_args!("{part} shows: {what}"));
        }
    }
    run
}

fn question_test(server: &Server) -> Test {
    let test = Test::new().skill("s", SKILL).endpoint(server);
    test.args(["-n", "-v", "-o", "jsonl", "hi"])
}

/// The server quotes the key exactly where the error text is shortened.
#[test]
fn error_text_is_masked_before_it_is_shortened() {
    type Form = fn(&str) -> Reply;
    let forms: [(&str, Form); 6] = [
        ("an error", |text| Reply::error(400, text)),
        ("an error of a provider behind a gateway", |text| {
            let error = json!({"error": {"message": "no", "metadata": {"raw": text}}});
            Reply::status(400).body(error.to_string())
        }),
        ("bare text", |text| Reply::status(400).body(text)),
        ("a page's title", |text| Reply::status(400).body(format!("<html><title>{text}</title>"))),
        ("no reply at all", |text| Reply::status(200).body(text)),
        ("an error in a stream", |text| {
            let error = json!({"error": {"message": text}});
            Reply::sse([format!("data: {error}")])
        }),
    ];
    for (what, form) in forms {
        for before in [QUOTED - 45, QUOTED - 35, QUOTED - 25, QUOTED - 15, QUOTED - 5] {
            let text = format!("{} {CANARY} and more", "x".repeat(before - 1));
            let server = Server::always(move |_| form(&text));
            let run = shows_no_part(question_test(&server).run(), what);
            run.check(run.stderr.contains("xxx"), "the server is not quoted");
        }
    }
}

#[test]
fn redirect_target_and_request_id_are_masked() {
    let target = format!("https://h.test/{}/{CANARY}/x/y", "x".repeat(QUOTED - 35));
    let server = Server::always(move |_| {
        let reply = Reply::status(307).header("location", &target);
        reply.header("x-request-id", CANARY)
    });
    let run = shows_no_part(question_test(&server).run(), "location");
    run.stderr_has("https://h.test/xxx").stderr_has("(request [secret])");
}

/// The received part of a body decides whether it is an error; it contains only half the key.
#[test]
fn partial_body_shows_no_part_of_the_key() {
    for (body, quoted) in [("no, ", "no, "), ("<p>no, ", "no, ")] {
        for status in ["200 OK", "400 Bad Request"] {
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: 999\r\n\r\n");
            let first = format!("{head}{body}{}", &CANARY[..9]);
            let server = Server::always(move |_| {
                let rest = (seconds(0.3), CANARY[9..].to_owned());
                Reply::raw_pieces([(seconds(0.0), first.clone()), rest]).then_close()
            });
            let run = question_test(&server).run();
            run.check(!run.stderr.contains(&CANARY[..9]), "half of the key is shown");
            run.stderr_has(quoted);
        }
    }
    // The body ends there.
    let half = format!("no, {}", &CANARY[..9]);
    let server = Server::always(move |_| Reply::status(400).body(half.clone()));
    shows_no_part(question_test(&server).run(), "half a body").stderr_has("no, [secret]");
}

#[test]
#[ignore = "long"]
fn call_and_result_lines_are_shortened_after_masking() {
    let key = key_in_python();
    for before in [SUMMARY - 40, SUMMARY - 30, SUMMARY - 20, SUMMARY - 10] {
        let x = "x".repeat(before);
        let of = |script: &str| json!({"skill_name": "s", "script": script});
        let name = format!("{x}{CANARY}{x}");
        // The model writes the key into a call; since the history then contains it, the run ends
        // here. The result quotes unknown names.
        for (tool, arguments) in [
            ("run_python_script", of(&format!("#{x} {CANARY} and more"))),
            ("get_skill", json!({"skill_name": name})),
            ("no_tool", json!({"skill_name": name})),
            ("read_file_in_skill", json!({"skill_name": "s", "file_path": name})),
        ] {
            let call = Reply::call(tool, &arguments);
            let server = Server::always(move |_| call.clone());
            for format in ["text", "jsonl"] {
                let test = Test::new().skill("s", SKILL).endpoint(&server);
                let run = test.args(["--max-steps", "1", "-o", format, "hi"]).run();
                shows_no_part(run.status(3), tool).stderr_has(&format!("→ {tool} "));
            }
        }
        for end in ["print(text)", "raise SystemExit(text)"] {
            let script = format!("{key}text = '{x} ' + k + ' and more' * 20; {end}");
            let call = Reply::call("run_python_script", &of(&script));
            let server = Server::start([call, Reply::text("4")]);
            let run = question_test(&server).run().success();
            shows_no_part(run, end).stderr_has("← exit ");
            server.finish();
        }
    }
}

/// Only the start and end of a long output are kept. A key that overlaps the omitted part is masked
/// completely, for the user and the model.
#[test]
fn truncated_script_output_shows_no_part_of_a_key() {
    let key = key_in_python();
    for place in [4, CANARY.len() / 2, CANARY.len() - 4] {
        for stream in ["stdout", "stderr"] {
            let before = HALF - place;
            let behind = HALF - (CANARY.len() - place);
            let script = format!(
                "import sys\n{key}sys.{stream}.write('x' * {before} + k + 'y' * 9999 + k + 'z' * {behind})"
            );
            let call = json!({"skill_name": "s", "script": script});
            let server = Server::start([Reply::call("run_python_script", &call), Reply::text("4")]);
            let run = question_test(&server).run().success();
            let run = shows_no_part(run, stream);
            run.check(run.stdout.contains("xx[secret]\\n[… "), "wrong end of the head");
            run.check(run.stdout.contains("…]\\n[secret]zz"), "wrong start of the tail");
            let content = server.finish()[1].last_message()["content"].to_string();
            assert!(!content.contains(&CANARY[..4]), "the model got a part of the key");
        }
    }
    // Text that is not part of a key, or is too short to be one, stays.
    let script = format!("print('x' * {} + 'sk-' + 'y' * 99999)", HALF - 3);
    let call = json!({"skill_name": "s", "script": script});
    let server = Server::start([Reply::call("run_python_script", &call), Reply::text("4")]);
    question_test(&server).run().success().stdout_has("xxsk-\\n[… ");
}

/// A line longer than a page is split within the line; so is a long description.
#[test]
fn pages_and_descriptions_show_no_part_of_a_key() {
    for place in [4, CANARY.len() / 2, CANARY.len() - 4] {
        let text = format!("{}{CANARY}{}\n", "x".repeat(PAGE - place), "y".repeat(PAGE));
        // A description is shortened between words, so this one has a single word.
        let description = format!("{}{CANARY}{}", "d".repeat(4096 - place), "d".repeat(99));
        let test = Test::new()
            .env("LLM_API_KEY", CANARY)
            .skill("s", &format!("---\nname: s\ndescription: {description}\n---\n"))
            .file("skills/s/f.txt", text);
        for (tool, more, rest) in [
            ("read_file_in_skill", r#","file_path":"f.txt""#, "xx[secret]\n"),
            ("read_file_in_skill", r#","file_path":"f.txt","offset":2"#, "[secret]yy"),
            ("list_skills", "", "ddd[secret]…"),
        ] {
            let arguments = match tool {
                "list_skills" => "{}".to_owned(),
                _ => format!(r#"{{"skill_name":"s"{more}}}"#),
            };
            let run = test.next_run().args(["tool", tool, &arguments]).run().success();
            shows_no_part(run, more).stdout_has(rest);
        }
    }
    // Complete lines start and end with their own text.
    let test = Test::new()
        .env("LLM_API_KEY", CANARY)
        .skill("s", SKILL)
        .file("skills/s/f.txt", format!("1 {0}\n{1}\n3\n", &CANARY[..9], &CANARY[9..]));
    for (lines, line) in [(r#""limit":1"#, &CANARY[..9]), (r#""offset":2"#, &CANARY[9..])] {
        let arguments = format!(r#"{{"skill_name":"s","file_path":"f.txt",{lines}}}"#);
        let run = test.next_run().args(["tool", "read_file_in_skill", &arguments]).run();
        run.success().stdout_has(line);
    }
}

/// A server and a script write secrets in different spellings.
#[test]
fn secrets_are_masked_in_every_spelling() {
    let odd_key = r#"k"e\y/+%&=odd-canary"#;
    let headers = json!({
        "x-gateway": "Token canary-TOKEN-22",
        "authorization": "Bearer canary-BEARER-3",
        "x-title": "My Canaries",
    });
    let table = [
        ("LLM_API_KEY", odd_key, r#"k\"e\\y\/+%&=odd-canary"#),
        ("LLM_API_KEY", odd_key, "k%22e%5Cy%2F%2B%25%26%3Dodd-canary"),
        ("LLM_API_KEY", odd_key, "k%22e%5cy%2f%2b%25%26%3dodd-canary"),
        ("LLM_EXTRA_HEADERS", &headers.to_string(), "canary-TOKEN-22"),
        ("LLM_EXTRA_HEADERS", &headers.to_string(), "canary-BEARER-3"),
    ];
    for (name, value, written) in table {
        let text = format!("You sent <{written}>.");
        // Not JSON: the text is quoted as it is.
        let server = Server::always(move |_| Reply::status(400).body(text.clone()));
        let run = question_test(&server).env(name, value).run();
        run.stderr_has("You sent <[secret]>.").stdout_has("You sent <[secret]>.");
    }
    let server = Server::always(|_| Reply::error(400, "My Canaries"));
    let run = question_test(&server).env("LLM_EXTRA_HEADERS", headers.to_string()).run();
    run.stderr_has("My Canaries");
}

/// A script finds the key and prints it in several common encodings.
#[test]
#[ignore = "long"]
fn key_in_base64_or_with_escapes_is_masked() {
    let ways = [
        "base64.b64encode(k.encode()).decode()",
        "base64.b64encode(b'a:' + k.encode() + b'@h').decode()",
        "base64.b64encode(b'me:' + k.encode()).decode()",
        "base64.b64encode(b'user:' + k.encode() + b'!').decode().rstrip('=')",
        "base64.urlsafe_b64encode(b'\\xff\\xfe\\xff' + k.encode() + b'\\xff\\xff').decode()",
        "base64.encodebytes(b'x' * 41 + k.encode() + b'y' * 100).decode()",
        "json.dumps(base64.encodebytes(b'x' * 47 + k.encode() + b'y' * 9).decode())",
        "''.join('\\\\u%04x' % ord(c) for c in k)",
        "json.dumps(''.join('\\\\u%04X' % ord(c) for c in k))",
        "''.join('\\\\x%02x' % ord(c) for c in k)",
        "''.join('\\\\x%02X' % ord(c) if n % 2 else c for n, c in enumerate(k))",
        "''.join('\\\\u%04x' % ord(c) if n % 3 else c for n, c in enumerate(k))",
        "''.join('%%%02x' % ord(c) for c in k)",
    ];
    for way in ways {
        for padding in [0, HALF - 30] {
            let script = format!(
                "import base64, json\n{}\nprint('x' * {padding} + '<' + {way} + '>' + ' ' * 3 * {padding})",
                key_in_python()
            );
            let call = json!({"skill_name": "s", "script": script}).to_string();
            let run = Test::new()
                .skill("s", SKILL)
                .env("LLM_API_KEY", CANARY)
                .args(["tool", "run_python_script", &call])
                .run()
                .success();
            let stdout = run.stdout_json()["stdout"].as_str().unwrap().to_owned();
            run.check(padding > 0 || stdout.contains("[secret]"), way);
            let text = stdout.replace('\n', "").replace("\\n", "");
            // The middle of the key, at each offset within a group of base64.
            let middle = &CANARY[3..CANARY.len() - 3];
            for place in 0..3 {
                let written = base64(&[&b"..."[..place], middle.as_bytes()].concat());
                let sure = &written[2 + place..written.len() - 4];
                run.check(!text.contains(sure), way);
            }
            for escaped in ["\\u00", "\\x", "%6"] {
                run.check(!text.contains(escaped), way);
            }
        }
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let groups = bytes.chunks(3).map(|group| {
        let all = group.iter().fold(0, |all, byte| all << 8 | u32::from(*byte))
            << (8 * (3 - group.len()));
        let letter = |at: u32| char::from(LETTERS[(all >> (18 - 6 * at) & 63) as usize]);
        (0..4).map(letter).collect::<String>()
    });
    groups.collect()
}

/// The answer is streamed in pieces and contains the key in base64.
#[test]
fn streamed_answer_shows_no_key_in_base64() {
    let text = format!("It is <{}> or {}.", base64(format!("me:{CANARY}").as_bytes()), "so");
    let pieces = text.as_bytes().chunks(3);
    let mut events: Vec<String> =
        pieces.map(|piece| event(&json!({"content": String::from_utf8_lossy(piece)}))).collect();
    events.push(last_event("stop"));
    let server = Server::start([Reply::sse(events)]);
    let run = Test::new()
        .endpoint(&server)
        .args(["-n", "-o", "jsonl", "hi"])
        .run()
        .success()
        .stdout_has("[secret]");
    let shown: String = run
        .stdout
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter_map(|record| record["delta"].as_str().map(str::to_owned))
        .collect();
    let sure = base64(&CANARY.as_bytes()[..9]);
    let within = base64(format!("me:{}", &CANARY[..9]).as_bytes());
    assert!(!shown.contains(&sure) && !shown.contains(&within[4..12]), "{shown}");
}

/// The query of the address may contain a key, and the server quotes it in its 404.
#[test]
fn query_values_quoted_by_a_server_are_masked() {
    let server =
        Server::always(|request| Reply::error(404, &format!("nothing at {}", request.path)));
    let query = "api-version=2024-10-21&key=query%2Fcanary-1&short=abc";
    let run =
        question_test(&server).env("LLM_API_BASE_URL", format!("{}?{query}", server.url())).run();
    run.stderr_has("?api-version=2024-10-21&key=[secret]&short=abc")
        .stderr_lacks("canary-1")
        .stdout_lacks("canary-1");
}

/// A proxy quotes the login that it received, in base64. Scripts still get their proxy setting.
#[test]
fn proxy_login_is_masked_in_base64() {
    let call =
        json!({"skill_name": "s", "script": "import os; print(len(os.environ['HTTP_PROXY']))"});
    for (login, sent) in [
        ("me:horse-staple", "bWU6aG9yc2Utc3RhcGxl"),
        ("m%65:p%40w", "bWU6cEB3"),
        ("token-of-mine", "dG9rZW4tb2YtbWluZTo="),
    ] {
        let call = call.clone();
        let server = Server::always(move |request| match request.header("proxy-authorization") {
            _ if request.messages().len() < 3 => Reply::call("run_python_script", &call),
            Some(header) => Reply::error(403, &format!("<{header}>")),
            None => Reply::error(403, "no login"),
        });
        let proxy = format!("http://{login}@127.0.0.1:{}", server.port());
        let run = question_test(&server)
            .env("LLM_API_BASE_URL", "http://llm.test:8080/v1")
            .env("HTTP_PROXY", &proxy)
            .run();
        run.stderr_has("<Basic [secret]>")
            .stdout_lacks(sent)
            .stdout_has(&format!(r#""stdout":"{}\n""#, proxy.len()));
    }
}
