//! One question, one answer: streams, exit statuses, wrong usage.

use serde_json::json;

use crate::harness::{CANARY, Reply, Server, Test, event, last_event, seconds};

#[test]
fn stdout_has_only_the_answer() {
    let server = Server::start([Reply::text("The answer is 4.")]);
    let run = Test::new().endpoint(&server).args(["what", "is", "2 + 2?"]).run();
    run.success().stdout("The answer is 4.\n").stderr_has("the model gets no tools");
    let requests = server.finish();
    assert_eq!(requests[0].path, "/v1/chat/completions");
    assert_eq!(requests[0].last_message()["content"], "what is 2 + 2?");
    assert!(requests[0].json.get("tools").is_none(), "without skills no tool is offered");
    assert!(requests[0].requests_stream());
}

#[test]
fn no_stream_option_requests_unstreamed_answer() {
    let server = Server::start([Reply::text("four")]);
    let run = Test::new().endpoint(&server).args(["--no-stream", "2 + 2?"]).run();
    run.success().stdout("four\n");
    assert!(!server.finish()[0].requests_stream());
}

/// The key is sent in the `Authorization` header.
#[test]
fn key_is_sent_in_its_header() {
    let server = Server::start([Reply::text("ok")]);
    Test::new().endpoint(&server).args(["hi"]).run().success();
    let requests = server.finish();
    assert_eq!(requests[0].header("authorization").unwrap(), format!("Bearer {CANARY}"));
    assert_eq!(requests[0].header("content-type").unwrap(), "application/json");
}

/// A model writes text between tool calls: a terminal shows it immediately, a pipe gets only the
/// final answer.
#[test]
fn pipe_gets_the_final_answer_and_terminal_all_text() {
    let skill = "---\nname: s\ndescription: d\n---\nbody\n";
    let script =
        || [Reply::calls([("list_skills", "{}")]).with_text("Let me look."), Reply::text("Done.")];
    let server = Server::start(script());
    let run = Test::new().skill("s", skill).endpoint(&server).args(["go"]).run();
    run.success().stdout("Done.\n").stderr_has("→ list_skills").stderr_has("← 1 skill");
    server.finish();

    let server = Server::start(script());
    let mut terminal =
        Test::new().skill("s", skill).endpoint(&server).args(["go"]).spawn_on_terminal();
    terminal.expect("Let me look.\n").expect("→ list_skills").expect("Done.\n");
    terminal.wait_exit().success();
    server.finish();
}

#[test]
fn control_characters_do_not_reach_a_terminal() {
    let server = Server::start([Reply::text("a\u{1b}]0;title\u{7}b\r\nc")]);
    let mut terminal = Test::new().endpoint(&server).args(["go"]).spawn_on_terminal();
    terminal.expect("b\nc");
    assert!(!terminal.output().contains('\u{1b}'), "{:?}", terminal.output());
    terminal.wait_exit().success();
    // A pipe gets the answer unchanged.
    let server2 = Server::start([Reply::text("a\u{1b}[1mb")]);
    Test::new().endpoint(&server2).args(["go"]).run().success().stdout("a\u{1b}[1mb\n");
    server.finish();
    server2.finish();
}

#[test]
fn quiet_prints_nothing_and_verbose_prints_more() {
    let skill = "---\nname: s\ndescription: d\n---\n";
    let script = || [Reply::calls([("list_skills", "{}")]), Reply::text("Done.").with_usage(12, 3)];
    let server = Server::start(script());
    Test::new().skill("s", skill).endpoint(&server).args(["-q", "go"]).run().success().stderr("");
    server.finish();
    let server = Server::start(script());
    let run = Test::new().skill("s", skill).endpoint(&server).args(["-v", "go"]).run();
    run.success()
        .stderr_has("POST http://127.0.0.1")
        .stderr_has("12 tokens read, 3 written")
        .stderr_lacks("state: ");
    server.finish();
}

/// Reasoning is not part of the answer.
#[test]
fn reasoning_is_not_on_stdout() {
    for reply in [
        Reply::text("<think>hm, 2 and 2</think>\n\n4"),
        Reply::text("4").with_reasoning("hm, 2 and 2"),
    ] {
        let server = Server::start([reply]);
        let run = Test::new().endpoint(&server).args(["-v", "2 + 2?"]).run();
        run.success().stdout("4\n").stderr_has("hm, 2 and 2");
        server.finish();
    }
}

/// Closing the pipe is normal for a reader; a full disk is an error.
#[test]
fn closed_stdout_ends_quietly_and_full_disk_is_reported() {
    let server = Server::start([Reply::text("x".repeat(300_000).as_str())]);
    Test::new()
        .endpoint(&server)
        .args(["go"])
        .stdout_closed()
        .run()
        .status(0)
        .stderr_lacks("failed");
    server.finish();
    let server = Server::start([Reply::text("x")]);
    let run = Test::new().endpoint(&server).args(["go"]).stdout_file("/dev/full").run();
    run.status(1).stderr_has("failed to write the answer");
    server.finish();
}

#[test]
fn system_option_replaces_the_system_prompt() {
    let server = Server::start([Reply::text("ok"), Reply::text("ok")]);
    let test = Test::new()
        .file("latin.txt", "Speak Latin.\n")
        .skill("s", "---\ndescription: Sums.\n---\n");
    let test = test.endpoint(&server);
    test.next_run().endpoint(&server).args(["-s", "Be brief.", "hi"]).run().success();
    test.args(["--system", "@latin.txt", "hi"]).run().success();
    let requests = server.finish();
    assert!(requests[0].system().starts_with("Be brief."));
    assert!(requests[1].system().starts_with("Speak Latin.\n"));
    assert!(requests[1].system().contains("- s: Sums."));
}

/// Wrong usage exits with 2 and a remedy, without a request.
#[test]
fn wrong_usage_is_reported() {
    let table: [(&[&str], &str); 10] = [
        (&["--modle", "x", "hi"], "did you mean --model?"),
        (&["-Z", "hi"], "unknown option `-Z`"),
        (&["--max-steps", "none", "hi"], "whole number from 1"),
        (&["--timeout", "0", "hi"], "greater than 0"),
        (&["--model"], "missing argument"),
        (&["demo", "the", "product"], "skills-runner -- demo"),
        (&["tool"], "hint: skills-runner tool NAME [JSON|-]"),
        (&["tool", "get_skills"], "did you mean `get_skill`?"),
        (
            &["tool", "get_skill", "{"],
            "hint: skills-runner tool get_skill '{\"NAME\": \"VALUE\"}'\n",
        ),
        (&["-s", "@missing.txt", "hi"], "missing.txt"),
    ];
    for (args, expected) in table {
        let server = Server::start([]);
        let run = Test::new().endpoint(&server).args(args).run();
        run.status(2).stdout_is_empty().stderr_has("skills-runner: failed to").stderr_has(expected);
        server.finish();
    }
}

#[test]
fn no_prompt_is_wrong_usage() {
    let server = Server::start([]);
    Test::new().endpoint(&server).stdin_null().run().status(2).stderr_has("there is no prompt");
    Test::new().endpoint(&server).stdin(" \n").run().status(2).stderr_has("there is no prompt");
    Test::new()
        .endpoint(&server)
        .args(["-n"])
        .stdin("x")
        .run()
        .status(2)
        .stderr_has("there is no prompt");
    server.finish();
}

/// Help and version are printed before anything can fail.
#[test]
fn help_and_version_need_no_configuration() {
    for args in [["--help"], ["-h"]] {
        let run = Test::new().args(args).run().success().stderr("");
        for word in ["LLM_API_KEY", "--max-steps", "demo", "75 temporary"] {
            run.check(run.stdout.contains(word), format!("the help names {word}"));
        }
    }
    Test::new().dotenv("\0").args(["-V"]).run().success().stdout(concat!(
        "skills-runner ",
        env!("CARGO_PKG_VERSION"),
        "\n"
    ));
}

/// All words after `--` are the prompt.
#[test]
fn words_after_double_dash_are_the_prompt() {
    let server = Server::start([Reply::text("ok")]);
    Test::new()
        .endpoint(&server)
        .args(["-q", "--", "demo", "--help"])
        .run()
        .success()
        .stdout("ok\n");
    assert_eq!(server.finish()[0].last_message()["content"], "demo --help");
}

/// `--max-steps` and `--timeout` end a run with status 3.
#[test]
fn limits_end_a_run_with_status_3() {
    let skill = "---\nname: s\ndescription: d\n---\n";
    let server = Server::always(|_| Reply::calls([("list_skills", "{}")]));
    let run =
        Test::new().skill("s", skill).endpoint(&server).args(["--max-steps", "3", "go"]).run();
    run.status(3).stdout_is_empty().stderr_has("no answer after 3 steps").stderr_has("--max-steps");
    assert_eq!(server.finish().len(), 3);

    let server = Server::start([Reply::text("late").hang()]);
    let run = Test::new().endpoint(&server).args(["--timeout", "0.5", "go"]).run();
    run.status(3).stderr_has("--timeout").took_at_least(seconds(0.5)).took_at_most(seconds(1.5));
    server.finish();
}

/// A skill whose document has problems is used, and the problems are reported.
#[test]
fn frontmatter_problems_are_reported_with_their_line() {
    let server = Server::start([Reply::text("ok")]);
    let run = Test::new()
        .skill("plain", "Just text.\n")
        .skill("half", "---\nname: half\n---\nBody.\n")
        .folder("skills/empty")
        .endpoint(&server)
        .args(["hi"])
        .run();
    run.success()
        .stderr_has("the skill `plain`: SKILL.md line 1: no valid frontmatter")
        .stderr_has("missing field 'description'")
        .stderr_has("the skill `empty` cannot be used: it has no SKILL.md");
    let system = server.finish()[0].system().to_string();
    assert!(
        system.contains("- plain: Just text.\n") && system.contains("- half: Body.\n"),
        "{system}"
    );
}

/// A key that arrives in pieces is masked on a terminal as well.
#[test]
fn key_in_pieces_is_masked_on_a_terminal() {
    let (one, two) = CANARY.split_at(9);
    let events = [json!({"content": one}), json!({"content": two}), json!({"content": " end"})];
    let mut stream: Vec<String> = events.iter().map(event).collect();
    stream.push(last_event("stop"));
    let server = Server::start([Reply::sse(stream)]);
    let mut terminal = Test::new().endpoint(&server).args(["hi"]).spawn_on_terminal();
    terminal.expect("[secret] end");
    terminal.wait_exit().success();
    server.finish();
}

/// `--dry-run` prints the request, with fields in the order of sending and without credentials,
/// and sends nothing.
#[test]
fn dry_run_prints_the_request_and_sends_none() {
    let server = Server::start([]);
    let run = Test::new()
        .endpoint(&server)
        .env("LLM_API_KEY", CANARY)
        .env("LLM_EXTRA_BODY", r#"{"temperature": 0.5}"#)
        .env("LLM_EXTRA_HEADERS", r#"{"X-Team": "a-secret-team"}"#)
        .args(["--dry-run", "what", "is", CANARY])
        .run();
    let shown = run.success().stdout_lacks(CANARY).stdout_lacks("a-secret-team").stdout_json();
    assert_eq!(shown["headers"]["authorization"], "Bearer [secret]");
    assert_eq!(shown["headers"]["x-team"], "[secret]");
    assert_eq!(shown["body"]["temperature"], 0.5);
    assert_eq!(shown["body"]["messages"][1]["content"], "what is [secret]");
    let url = shown["url"].as_str().unwrap();
    assert!(url.ends_with("/chat/completions"), "{url}");
    server.finish();
}

/// The built-in system prompt has the date of the user's time zone; that of a user stays as it is.
#[test]
fn system_prompt_has_the_local_date() {
    // Somewhere it is always another day.
    for zone in ["Pacific/Kiritimati", "Etc/GMT+12"] {
        let server = Server::always(|_| Reply::text("ok"));
        let test = Test::new().endpoint(&server).env("TZ", zone);
        let before = local_date(zone);
        test.next_run().args(["hi"]).run().success();
        test.next_run().args(["-s", "Be brief.", "hi"]).run().success();
        let (requests, after) = (server.finish(), local_date(zone));
        let prompt = "You are a helpful assistant. Answer briefly and exactly.\n\nToday is ";
        let today = requests[0].system().strip_prefix(prompt).unwrap().to_string();
        assert!([before, after].contains(&today), "{today}");
        assert_eq!(requests[1].system(), "Be brief.");
    }
}

/// Servers keep what is equal at the start of requests: rules, tools and the list of skills come
/// before what differs from folder to folder and from day to day, and a request goes on where the
/// one before it ended.
#[test]
fn requests_begin_with_what_stays_equal() {
    let skill = "---\nname: s\ndescription: Does it.\n---\nbody\n";
    for mode in ["native", "schema"] {
        let call = r#"{"thought":"","tool":"get_skill","skill_name":"s"}"#;
        let call = match mode {
            "schema" => Reply::text(call),
            _ => Reply::call("get_skill", &json!({"skill_name": "s"})),
        };
        let replies = [call, Reply::text("Done.")];
        let server = Server::start([replies.clone(), replies].concat());
        let facts = "---\ntype: memory\n---\n# Key Facts\n\n## Recent\n- [2026-01-02] Moved.\n";
        let test = Test::new().skill("s", skill).file("facts.md", facts).endpoint(&server);
        let test = test.env("LLM_TOOLS", mode).env("SKILLS_FOLDER_PATH", "../skills");
        let test = test.env("MEMORY_PATH", "../facts.md").folder("one").folder("two");
        for folder in ["one", "two"] {
            test.next_run().cwd(folder).args(["hi"]).run().success();
        }
        let sent = server.finish();
        let [one, two] = [0, 2].map(|at| sent[at].system());
        let equal = one.bytes().zip(two.bytes()).take_while(|(one, two)| one == two).count();
        let listed = one.find("- s: Does it.\n").unwrap();
        assert!(equal > listed + "- s: Does it.\n".len(), "{mode}: {}", &one[..equal]);
        assert_eq!(sent[0].json["tools"], sent[2].json["tools"]);
        let places = ["get_skill", "- s: Does it.", "2026-01-02", "Today is "];
        let places = places.map(|text| one.find(text).unwrap());
        assert!(places.is_sorted() && one[places[3]..].lines().count() == 1, "{one}");
        for (first, second) in [(0, 1), (2, 3)] {
            let [first, second] = [first, second].map(|at: usize| sent[at].messages());
            assert_eq!(*first, second[..first.len()], "{mode}");
        }
    }
}

/// Weekday and date in a time zone, as the system prompt ends.
fn local_date(zone: &str) -> String {
    let mut date = std::process::Command::new("date");
    let shown = date.arg("+%A, %F.").env("TZ", zone).env("LC_ALL", "C").output().unwrap().stdout;
    String::from_utf8(shown).unwrap()
}

/// A single word that looks like a command costs no request, unless it comes with other input or
/// after `--`.
#[test]
fn single_words_that_look_like_commands_are_wrong_usage() {
    let server = Server::start([]);
    let test = Test::new().endpoint(&server);
    let words = [
        ("help", "hint: `skills-runner --help`; as a question: skills-runner -- help\n"),
        ("version", "`skills-runner --version`"),
        ("list", "`skills-runner skills list`"),
        ("skill", "`skills-runner skills list`"),
        ("models", "-m NAME"),
        ("config", "`skills-runner doctor`"),
        ("login", "LLM_API_KEY"),
        ("update", "the new version"),
        ("quit", "`/quit`"),
        ("exit", "`/exit`"),
    ];
    for (word, expected) in words {
        for args in [&[word][..], &["-o", "json", word], &["-n", word], &["chat", word]] {
            let run = test.next_run().args(args).run().status(2).stdout("");
            assert!(run.stderr.lines().all(|line| line.len() <= 80), "{}", run.stderr);
            run.stderr_has(&format!("there is no command `{word}`\n")).stderr_has(expected);
        }
    }
    let mut terminal = test.next_run().args(["help"]).spawn_on_terminal();
    terminal.expect("hint: `skills-runner --help`;");
    terminal.wait_exit().status(2);
    server.finish();
    let server = Server::always(|_| Reply::text("ok"));
    let test = test.next_run().endpoint(&server).file("empty", "");
    for args in [&["--", "help"][..], &["help", "me"], &["Help"], &["chat", "--", "list"]] {
        test.next_run().args(args).run().success().stdout("ok\n");
    }
    test.next_run().args(["help"]).stdin("log").run().success();
    test.next_run().args(["-n", "list"]).stdin_file(test.path("empty")).run().success();
    server.finish();
}
