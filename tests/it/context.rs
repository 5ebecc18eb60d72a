//! Conversations that exceed the model's context window.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::harness::{Outcome, Reply, Request, Server, Test, seconds};

/// The context window of the strict servers, in tokens.
const WINDOW: u64 = 8000;

const DOCUMENT: &str = "---\nname: words\ndescription: Counts words\n---\n";

/// Tokens counted by the server and whether it refused, per request.
type Counts = Arc<Mutex<Vec<(u64, bool)>>>;

/// A refusal of a request with this many tokens.
type Phrasing = fn(u64) -> Reply;

const PHRASINGS: [Phrasing; 4] = [
    |count| {
        let message = format!(
            "This model's maximum context length is 8000 tokens. However, your messages resulted in {count} tokens. Please reduce the length of the messages."
        );
        let error = json!({"error": {"message": message, "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}});
        Reply::status(400).body(error.to_string())
    },
    |count| {
        let message = format!(
            "This model's maximum context length is 8000 tokens. However, you requested {count} tokens ({count} in the messages, 0 in the completion). Please reduce the length of the messages or completion."
        );
        let error =
            json!({"object": "error", "message": message, "type": "BadRequestError", "code": 400});
        Reply::status(400).body(error.to_string())
    },
    |count| {
        let error = json!({"error": {"code": 400, "message": "the request exceeds the available context size, try increasing it", "type": "exceed_context_size_error", "n_prompt_tokens": count, "n_ctx": 8000}});
        Reply::status(400).body(error.to_string())
    },
    |_| {
        let error = json!({"error": {"message": "prompt is too long; it is greater than the context length", "type": "api_error"}});
        Reply::status(400).body(error.to_string())
    },
];

/// Counts tokens differently from the program.
fn count(request: &Request) -> u64 {
    let messages = request.json["messages"].to_string().len();
    let tools = request.json.get("tools").map_or(0, |tools| tools.to_string().len());
    tokens(messages + tools)
}

fn tokens(bytes: usize) -> u64 {
    (bytes as u64 * 10).div_ceil(36)
}

fn is_summary(request: &Request) -> bool {
    let content = request.last_message()["content"].as_str().unwrap_or_default();
    content.starts_with("Summarize") && request.messages().len() == 1
}

/// Answers one request: in each turn one tool call, then a text.
fn answer(request: &Request) -> (Reply, usize) {
    if is_summary(request) {
        assert!(request.json.get("tools").is_none(), "a summary needs no tools");
        let text = "The person asks numbered questions; all were answered. ".repeat(8);
        return (Reply::text(&text), text.len());
    }
    let last = request.last_message();
    let text = last["content"].as_str().unwrap_or_default();
    if last["role"] == "tool" {
        let text = format!("Here it is. {}", "A word about it, and an é. ".repeat(12));
        return (Reply::text(&text), text.len());
    }
    let number: usize =
        text.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or_default();
    let call = match number % 4 {
        1 => Reply::call("get_skill", &json!({"skill_name": "words"})),
        2 => Reply::call(
            "read_file_in_skill",
            &json!({"skill_name": "words", "file_path": "data.txt"}),
        ),
        3 => Reply::call("list_skills", &json!({})),
        _ => Reply::call(
            "run_python_script",
            &json!({"skill_name": "words", "script": "print('row; ' * 200)"}),
        ),
    };
    (call, 100)
}

/// Starts a server that refuses requests beyond the window and records the token counts.
fn strict(phrasing: Phrasing, tells_usage: bool) -> (Server, Counts) {
    let counts = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&counts);
    let server = Server::always(move |request| {
        let count = count(request);
        let refuses = count > WINDOW;
        if !is_summary(request) {
            kept.lock().unwrap().push((count, refuses));
        }
        if refuses {
            return phrasing(count);
        }
        let (reply, bytes) = answer(request);
        match tells_usage {
            true => reply.with_usage(count, tokens(bytes)),
            false => reply,
        }
    });
    (server, counts)
}

fn document() -> String {
    let rules = "- A rule: count \"words\" as a person would; see §.\n".repeat(40);
    format!("{DOCUMENT}# Words\n\n{rules}")
}

fn skills() -> Test {
    Test::new()
        .skill("words", &document())
        .skill("other", "---\nname: other\ndescription: Something else\n---\n# Other\n")
        .file("skills/words/data.txt", "12.5;33.1;\"a cell of text\";ok\n".repeat(90))
}

fn questions(count: usize) -> String {
    let question = |number| format!("Question {number} is about words, Wörter und 言葉; tell me.");
    let questions: Vec<String> = (1..=count).map(question).collect();
    questions.join("\n")
}

/// The estimates printed by `-v`, in order.
fn estimates(stderr: &str) -> Vec<u64> {
    let lines = stderr.lines().filter_map(|line| line.strip_prefix("· about "));
    lines.map(|line| line.split(' ').next().unwrap().replace(',', "").parse().unwrap()).collect()
}

fn times(request: &Request, text: &str) -> usize {
    let contents = request.messages().iter().filter_map(|m| m["content"].as_str());
    contents.map(|content| content.matches(text).count()).sum()
}

/// The error of each estimate in thousandths, in order.
fn errors(counts: &[(u64, bool)], reported: &[u64]) -> Vec<u64> {
    let pairs = counts.iter().zip(reported);
    pairs.map(|((count, _), reported)| reported.abs_diff(*count) * 1000 / count).collect()
}

fn of_type(records: &[Value], name: &str) -> Vec<Value> {
    let meant = records.iter().filter(|record| record["type"] == name);
    meant.cloned().collect()
}

/// Runs a conversation of this many turns, none of which may fail.
fn hold(test: Test, turns: usize) -> Outcome {
    let run = test
        .args(["chat", "-v", "--output", "jsonl"])
        .stdin(questions(turns))
        .timeout(seconds(120.0))
        .run()
        .success();
    let results = of_type(&run.stdout_json_lines(), "result");
    assert_eq!(results.len(), turns);
    for result in &results {
        assert_eq!(result["status"], "ok");
        // The text of a summary is not an answer.
        assert!(result["answer"].as_str().unwrap().starts_with("Here it is."));
    }
    run
}

fn last_of(server: Server) -> Request {
    let mut requests = server.finish();
    requests.retain(|request| !is_summary(request));
    requests.pop().unwrap()
}

#[test]
fn sixty_turns_with_tools_fit_8000_tokens() {
    let (server, counts) = strict(PHRASINGS[0], true);
    let test = skills().endpoint(&server).env("LLM_CONTEXT_WINDOW", "8000");
    let run = hold(test, 60);
    let contexts = of_type(&run.stdout_json_lines(), "context");
    assert!(contexts.len() >= 4, "{contexts:?}");
    let (counts, reported) = (counts.lock().unwrap().clone(), estimates(&run.stderr));
    for context in &contexts {
        assert!(context["summarized"].as_u64() > Some(2), "{context}");
        let (before, after) = (&context["before"], context["after"].as_u64().unwrap());
        assert!(before.as_u64() > Some(6400) && after < 5600, "{context}");
        // The number is the estimate of the next request, which the server counts.
        assert!(reported.contains(&after), "{context}");
    }
    assert_eq!(counts.len(), reported.len());
    assert!(counts.iter().all(|(_, refused)| !refused));
    let errors = errors(&counts, &reported);
    let largest = errors[1..].iter().max().unwrap();
    println!(
        "{} requests, {} summaries; errors in thousandths: first {}, mean {}, largest {largest}",
        counts.len(),
        contexts.len(),
        errors[0],
        errors[1..].iter().sum::<u64>() / (errors.len() as u64 - 1),
    );
    assert!(*largest < 100, "{largest}");
    let last = last_of(server);
    assert_eq!(times(&last, &document()), 1, "once, word for word");
    let summaries = times(&last, "[Summary of the conversation so far");
    assert_eq!(summaries, 1, "{last:?}");
    run.stderr_has("the conversation was summarized: ");
}

/// Without a configured window, the program learns it from the first refusal, whatever its wording.
#[test]
fn refusal_in_any_wording_leads_to_a_summary() {
    for phrasing in PHRASINGS {
        let (server, counts) = strict(phrasing, true);
        let run = hold(skills().endpoint(&server), 30);
        let counts = counts.lock().unwrap().clone();
        let refused = counts.iter().filter(|(_, refused)| *refused).count();
        assert_eq!(refused, 1, "{counts:?}");
        let contexts = of_type(&run.stdout_json_lines(), "context");
        assert!(contexts.len() >= 2, "{contexts:?}");
        assert_eq!(times(&last_of(server), &document()), 1);
    }
}

/// Endpoints that report no usage, only uncached tokens, or a running total.
#[test]
fn missing_or_wrong_usage_does_not_end_a_conversation() {
    let reports: [fn(u64) -> Option<u64>; 4] =
        [|_| None, |count| Some(count % 97), |count| Some(count % 1000), |count| Some(count * 40)];
    for (index, report) in reports.into_iter().enumerate() {
        let server = Server::always(move |request| {
            let count = count(request);
            if count > WINDOW {
                return PHRASINGS[0](count);
            }
            let (reply, bytes) = answer(request);
            match report(count) {
                Some(reported) => reply.with_usage(reported, tokens(bytes)),
                None => reply,
            }
        });
        let test = skills().endpoint(&server).env("LLM_CONTEXT_WINDOW", "8000");
        let run = hold(test, 24);
        let contexts = of_type(&run.stdout_json_lines(), "context");
        assert!((2..8).contains(&contexts.len()), "{index}: {contexts:?}");
        assert_eq!(times(&last_of(server), &document()), 1);
    }
}

/// The conversation continues if the request for a summary fails.
#[test]
fn failed_summary_keeps_the_start_of_each_message() {
    type Case = (fn() -> Reply, &'static str);
    let replies: [Case; 4] = [
        (|| Reply::text(" "), "wrote no summary"),
        (|| Reply::call("list_skills", &json!({})), "wrote no summary"),
        (|| PHRASINGS[0](9000), "wrote no summary"),
        (|| Reply::error(400, "no such thing"), "wrote no summary (failed to get an answer"),
    ];
    for (reply, warning) in replies {
        let server = Server::always(move |request| match (is_summary(request), count(request)) {
            (true, _) => reply(),
            (false, count) if count > WINDOW => PHRASINGS[0](count),
            (false, count) => answer(request).0.with_usage(count, 0),
        });
        let test = skills().endpoint(&server).env("LLM_CONTEXT_WINDOW", "8000");
        hold(test, 24).stderr_has(warning).stderr_has("wrote no summary");
        let last = last_of(server);
        assert_eq!(times(&last, &document()), 1);
        let contents = last.messages()[1]["content"].as_str().unwrap();
        assert!(contents.contains("User: Question "), "{contents}");
    }
}

#[test]
fn control_c_during_a_summary_leaves_the_conversation_unchanged() {
    let long = "Lorem ipsum dolor. ".repeat(160);
    let server = Server::start([
        Reply::text("the first answer").with_usage(2000, 5),
        Reply::text("the second answer").with_usage(4000, 5),
        Reply::empty().hang(),
        Reply::text("What was said."),
        Reply::text("the fourth answer").with_usage(3000, 5),
    ]);
    let test = Test::new().endpoint(&server).env("LLM_CONTEXT_WINDOW", "5000");
    let mut terminal = test.spawn_on_terminal();
    let prompt = "> ";
    terminal.expect(prompt).type_line(&format!("one {long}"));
    terminal.expect("the first answer").expect(prompt);
    terminal.type_line(&format!("two {long}"));
    terminal.expect("the second answer").expect(prompt);
    terminal.type_line("three");
    server.wait_for_requests(3);
    terminal.ctrl('c').expect("interrupted").expect(prompt);
    terminal.type_line("four");
    terminal.expect("was summarized").expect("the fourth answer");
    terminal.expect(prompt).ctrl('d');
    terminal.wait_exit().success();
    let requests = server.finish();
    assert!(is_summary(&requests[2]) && is_summary(&requests[3]));
    let transcript = requests[3].last_message()["content"].as_str().unwrap();
    assert!(transcript.contains("the first answer"), "{transcript}");
    assert_eq!(requests[4].last_message()["content"], "four");
}

/// One message that is too large is reported with a remedy, and not retried endlessly.
#[test]
fn question_too_large_for_the_window_is_reported() {
    let large = "A sentence of a long letter. ".repeat(2000);
    for window in [None, Some("8000")] {
        let (server, counts) = strict(PHRASINGS[0], true);
        let mut test = skills().endpoint(&server);
        if let Some(window) = window {
            test = test.env("LLM_CONTEXT_WINDOW", window);
        }
        let stdin = format!("Question 4, a small one\n{large}\nQuestion 3, small as well\n");
        let run = test.args(["chat"]).stdin(stdin).run().status(1);
        run.stderr_has("context").stderr_has("hint: the question has about 16,").stderr_has(
            "tokens, and the model's context window has about 8,000: ask in several parts",
        );
        let counts = counts.lock().unwrap();
        let refused = counts.iter().filter(|(_, refused)| *refused).count();
        assert!(refused <= 2, "{counts:?}");
        // The next question is answered.
        let last = last_of(server);
        assert_eq!(last.last_message()["role"], "tool");
        assert_eq!(times(&last, "Question 3"), 1);
        assert_eq!(times(&last, "A sentence of a long letter. A"), 0);
    }
}

/// A result that does not fit is shortened; if the window is configured, before the first request.
#[test]
fn result_too_large_for_the_window_is_shortened() {
    for (window, refusals) in [(None, 1), (Some("8000"), 0)] {
        let (server, counts) = strict(PHRASINGS[0], true);
        let large = "A line of a long file, with words.\n".repeat(1500);
        let mut test = skills().endpoint(&server).file("skills/words/data.txt", large);
        if let Some(window) = window {
            test = test.env("LLM_CONTEXT_WINDOW", window);
        }
        let stdin = "Question 4\nQuestion 2\nQuestion 3\n";
        let run = test.args(["chat"]).stdin(stdin).run().success();
        run.stderr_has("tool results were shortened (1)");
        let counts = counts.lock().unwrap();
        let refused = counts.iter().filter(|(_, refused)| *refused).count();
        assert_eq!(refused, refusals, "{counts:?}");
    }
}

/// The document of a skill that the user invoked is kept verbatim.
#[test]
fn skill_invoked_by_the_user_is_kept() {
    let (server, _) = strict(PHRASINGS[0], true);
    let questions = questions(24).replace("Question 1 ", "Question 4 ");
    let stdin = format!("/words now\n{questions}\n");
    let test = skills().endpoint(&server).env("LLM_CONTEXT_WINDOW", "8000");
    test.args(["chat"]).stdin(stdin).run().success();
    let last = last_of(server);
    let body = document().replace(DOCUMENT, "");
    let contents = last.messages().iter().filter_map(|m| m["content"].as_str());
    let invoked: Vec<&str> =
        contents.filter(|content| content.starts_with("I invoke the skill `words`")).collect();
    assert_eq!(invoked.len(), 1, "{last:?}");
    assert!(invoked[0].contains(&body) && invoked[0].contains("ARGUMENTS: now"));
    assert_eq!(times(&last, "[Summary of the conversation"), 1);
}

/// Of two versions of a document only the newest is kept.
#[test]
fn only_the_newest_version_of_a_document_is_kept() {
    let (server, _) = strict(PHRASINGS[0], true);
    let test = skills().endpoint(&server).env("LLM_CONTEXT_WINDOW", "8000");
    let path = test.path("skills/words/SKILL.md");
    let mut run = test.args(["chat"]).stdin_open().spawn();
    run.write_stdin("Question 1, the first\n");
    run.read_stdout_until("Here it is.");
    let changed = document().replace("a person", "a machine");
    std::fs::write(path, &changed).unwrap();
    run.write_stdin(questions(20) + "\n");
    run.close_stdin();
    run.wait().success();
    let last = last_of(server);
    assert_eq!((times(&last, &changed), times(&last, &document())), (1, 0));
    assert_eq!(times(&last, "[Summary of the conversation"), 1);
}

/// Documents that alone exceed the window are shortened as a last resort, which is reported.
#[test]
fn documents_that_exceed_the_window_are_shortened() {
    let rules = "- A rule that nobody needs, but it is there.\n".repeat(350);
    let mut test = Test::new();
    for name in ["a", "b", "c"] {
        let document = format!("---\nname: {name}\ndescription: d\n---\n# {name}\n{rules}");
        test = test.skill(name, &document);
    }
    let step = AtomicUsize::new(0);
    let server = Server::always(move |request| {
        let count = count(request);
        if count > WINDOW {
            return PHRASINGS[0](count);
        }
        let load = |name| Reply::call("get_skill", &json!({"skill_name": name}));
        if is_summary(request) {
            return Reply::text("Two skills were read.");
        }
        let reply = match step.fetch_add(1, Ordering::SeqCst) {
            0 => load("a"),
            1 => load("b"),
            2 => load("c"),
            _ => Reply::text("done"),
        };
        reply.with_usage(count, 20)
    });
    let test = test.endpoint(&server).env("LLM_CONTEXT_WINDOW", "8000");
    let run = test.args(["load them"]).run().success();
    run.stdout("done\n").stderr_has("skill documents were shortened (");
    assert!(server.finish().len() < 9);
}

/// `/compact` and `/tokens`.
#[test]
fn compact_command_summarizes_the_conversation() {
    let (server, _) = strict(PHRASINGS[0], true);
    let test = skills().endpoint(&server).env("LLM_CONTEXT_WINDOW", "8000");
    let stdin = "/tokens\n/compact\nQuestion 1\nQuestion 2\nQuestion 3\n/compact\n/compact\n/tokens\nQuestion 1\n";
    let run = test.args(["chat"]).stdin(stdin).run().success();
    run.stderr_has("skills-runner: there is nothing to summarize\n")
        .stderr_has("the conversation was summarized: ")
        .stderr_has(" of 8,000 (")
        .stderr_has("; so far 0 read, 0 written\n");
    let last = last_of(server);
    assert_eq!(times(&last, &document()), 1);
    let result = last.last_message()["content"].as_str().unwrap();
    assert!(result.contains("[unchanged: "), "{result}");
    assert_eq!(times(&last, "Question 3"), 1);
    assert_eq!(times(&last, "Question 2"), 0);
}

/// In a turn with many steps, all but the last steps are summarized; the question and the skill are
/// kept.
#[test]
fn long_turn_is_summarized_between_its_steps() {
    const QUESTION: &str = "Work through the whole file, please.";
    for window in [None, Some("8000")] {
        let step = AtomicUsize::new(0);
        let server = Server::always(move |request| {
            let count = count(request);
            if count > WINDOW {
                return PHRASINGS[0](count);
            }
            if is_summary(request) {
                return Reply::text("Some pages were read.").with_usage(count, 6);
            }
            assert_eq!(times(request, QUESTION), 1, "{request:?}");
            let reply = match step.fetch_add(1, Ordering::SeqCst) {
                0 => Reply::call("get_skill", &json!({"skill_name": "words"})),
                40 => Reply::text("done"),
                _ => Reply::call(
                    "read_file_in_skill",
                    &json!({"skill_name": "words", "file_path": "data.txt"}),
                ),
            };
            reply.with_usage(count, 20)
        });
        let mut test = skills().endpoint(&server).args([QUESTION]);
        if let Some(window) = window {
            test = test.env("LLM_CONTEXT_WINDOW", window);
        }
        let run = test.run().success();
        run.stdout("done\n")
            .stderr_has("the conversation was summarized: ")
            .stderr_lacks("were shortened");
        assert_eq!(times(&last_of(server), &document()), 1);
    }
}

/// Refusals for other reasons, with impossible numbers or none: the limit learned from them is
/// dropped later.
#[test]
fn whole_conversation_is_sent_after_the_server_recovers() {
    for (words, window) in [
        (
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 99999 tokens.",
            " of 8,192 (",
        ),
        ("prompt is too long", " of 100,000 ("),
    ] {
        let server = Server::always(move |request| {
            let last = request.last_message()["content"].as_str();
            if last.is_some_and(|last| last.starts_with("refused")) {
                return Reply::error(400, words);
            }
            Reply::text(&"A sentence of an answer. ".repeat(40))
        });
        let test = skills().endpoint(&server).env("LLM_CONTEXT_WINDOW", "100000");
        let stdin = "refused 1\nrefused 2\nrefused 3\n4\n5\n6\n7\n8\n/tokens\n";
        let run = test.args(["chat"]).stdin(stdin).run().status(1);
        run.stderr_lacks("was summarized").stderr_has(window);
        let last = last_of(server);
        assert_eq!(last.messages().len(), 1 + 2 * 4 + 1);
    }
}

/// Counts a request with this many tokens per image.
fn count_seen(request: &Request, picture: u64) -> u64 {
    let mut plain = request.json["messages"].clone();
    let mut pictures = 0;
    for message in plain.as_array_mut().unwrap() {
        if let Some(parts) = message["content"].as_array_mut() {
            let all = parts.len();
            parts.retain(|part| part["type"] == "text");
            pictures += (all - parts.len()) as u64;
        }
    }
    let tools = request.json["tools"].to_string().len();
    tokens(plain.to_string().len() + tools) + pictures * picture
}

#[test]
fn estimate_is_right_after_an_image_was_summarized() {
    for picture in [85, 1200] {
        let counts = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&counts);
        let server = Server::always(move |request| {
            if is_summary(request) {
                return Reply::text("A picture was shown.");
            }
            let count = count_seen(request, picture);
            kept.lock().unwrap().push((count, false));
            let text = "What can be seen, in a sentence. ".repeat(6);
            Reply::text(&text).with_usage(count, tokens(text.len()))
        });
        let run = skills()
            .file("a.png", b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x09\0\0\0\x09\x08")
            .endpoint(&server)
            .args(["chat", "-v"])
            .stdin("/attach a.png\nLook at it\nWhat is left?\nAnd right?\n/compact\nAnd now?\n")
            .run()
            .success();
        let run = run.stderr_has("was summarized");
        let counts = counts.lock().unwrap().clone();
        let errors = errors(&counts, &estimates(&run.stderr));
        assert_eq!(errors.len(), 4);
        assert!(errors[1..].iter().all(|error| *error < 100), "{errors:?}");
        assert!(counts[3].0 + picture <= counts[2].0 + 50, "{counts:?}");
        server.finish();
    }
}

/// Results of the current turn that exceed the window are shortened first, and the reported size is
/// the size sent.
#[test]
fn results_that_exceed_the_window_are_shortened_before_a_summary() {
    for (lines, summaries) in [(1, 0), (540, 1)] {
        let server = Server::always(move |request| {
            let count = count(request);
            if count > WINDOW {
                return PHRASINGS[0](count);
            }
            let text = request.last_message()["content"].to_string();
            let script = json!({"skill_name": "words", "script": "print('row; ' * 13000)"});
            let script = script.to_string();
            let reply = match text.contains("run") && !is_summary(request) {
                true => Reply::calls([("run_python_script", script.as_str()); 3]),
                false => Reply::text("It was told."),
            };
            reply.with_usage(count, 20)
        });
        let long = "A line of a letter, with words. ".repeat(lines);
        let run = skills()
            .endpoint(&server)
            .env("LLM_CONTEXT_WINDOW", "8000")
            .args(["chat", "-v", "--output", "jsonl"])
            .stdin(format!("{long}\nrun them\n"))
            .run()
            .success();
        let run = run.stderr_has("tool results were shortened (3)");
        let contexts = of_type(&run.stdout_json_lines(), "context");
        assert_eq!(contexts.len(), summaries, "{contexts:?}");
        let reported = estimates(&run.stderr);
        for context in contexts {
            let (before, after) = (&context["before"], context["after"].as_u64().unwrap());
            assert!(before.as_u64() > Some(WINDOW), "{context}");
            assert!(after < 6400 && reported.last() == Some(&after), "{context}");
        }
        let requests = server.finish();
        let sent = requests.iter().filter(|request| !is_summary(request));
        assert_eq!(sent.count(), 3);
    }
}

/// The message names the large part and the setting of the window.
#[test]
fn system_prompt_too_large_for_the_window_is_reported() {
    let server = Server::start([]);
    let test = skills().endpoint(&server).env("LLM_CONTEXT_WINDOW", "100");
    let run = test.args(["hello"]).run().status(1);
    run.stderr_has("hint: the system prompt, with the skills and the tools, has about ")
        .stderr_has("the model's context window has about 100: offer fewer skills")
        .stderr_has("or set LLM_CONTEXT_WINDOW higher if the model's context is larger");
    server.finish();
}

#[test]
fn missing_summary_is_explained() {
    let server = Server::start([Reply::text("a"), Reply::text("b"), Reply::text("c")]);
    let test = Test::new().endpoint(&server);
    let stdin = "/compact\n1\n/compact\n2\n3\n/compact\n";
    let run = test.args(["chat"]).stdin(stdin).run().success();
    let notes = run.stderr.matches("there is nothing to summarize\n");
    assert_eq!(notes.count(), 2, "{}", run.stderr);
    run.stderr_has("nothing was summarized: a summary would not be shorter\n");
    server.finish();
}

/// If a requested summary fails, the next request is the same as without it.
#[test]
fn failed_compact_command_changes_nothing() {
    let long = "A line of a long answer. ".repeat(200);
    for (summary, why) in [
        (Reply::text(" \n"), ": the answer is empty\n"),
        (Reply::call("list_skills", &json!({})), "summarized: the model wrote no summary\n"),
        (
            Reply::text("The person said that").finish_reason("length"),
            "summarized: the model wrote no summary\n",
        ),
    ] {
        let server =
            Server::start([Reply::text(&long), Reply::text("b"), summary, Reply::text("c")]);
        let test = Test::new().endpoint(&server).args(["chat"]);
        let run = test.stdin("Never say maybe.\n2\n/compact\n3\n").run();
        run.stderr_has(why).stderr_lacks("was summarized: 2");
        let requests = server.finish();
        let prompt = requests[2].last_message()["content"].as_str().unwrap();
        assert!(prompt.contains("every rule that the user has set"), "{prompt}");
        assert!(prompt.contains("User: Never say maybe.\n"), "{prompt}");
        let sent = requests[3].messages();
        assert_eq!(sent.len(), 6, "{sent:?}");
        assert_eq!(sent[2]["content"].as_str(), Some(long.as_str()));
    }
}

/// A refused image with too many bytes does not mean too many tokens.
#[test]
fn image_too_large_leads_to_no_summary() {
    for body in ["", "Request Entity Too Large", "<html><title>413</title></html>"] {
        let long = "A line of a letter. ".repeat(100);
        let server =
            Server::start([Reply::text(&long), Reply::text(&long), Reply::status(413).body(body)]);
        let run = Test::new()
            .file("a.png", b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x09\0\0\0\x09\x08")
            .endpoint(&server)
            .args(["chat"])
            .stdin("one\ntwo\n/attach a.png\nwhat is it?\n")
            .run()
            .status(1);
        run.stderr_has("status 413")
            .stderr_has("hint: the image may be too large for the endpoint: attach a smaller one");
        server.finish();
    }
}

/// A shortened document is not loaded whole again in the same turn.
#[test]
fn shortened_document_stays_shortened_within_its_turn() {
    let rules = "- A rule that nobody needs, but it is there.\n".repeat(500);
    let mut test = Test::new();
    for name in ["a", "b"] {
        let document = format!("---\nname: {name}\ndescription: d\n---\n# {name}\n{rules}");
        test = test.skill(name, &document);
    }
    let step = AtomicUsize::new(0);
    let server = Server::always(move |request| {
        let count = count(request);
        if count > WINDOW {
            return PHRASINGS[0](count);
        }
        let name = match step.fetch_add(1, Ordering::SeqCst) {
            0 | 2 | 4 => "a",
            1 | 3 => "b",
            _ => return Reply::text("done").with_usage(count, 20),
        };
        Reply::call("get_skill", &json!({"skill_name": name})).with_usage(count, 20)
    });
    let test = test.endpoint(&server).env("LLM_CONTEXT_WINDOW", "8000");
    let run = test.args(["load them"]).run().success();
    let cut = run.stderr.matches("skill documents were shortened (");
    assert_eq!(cut.count(), 1, "{}", run.stderr);
    let last = last_of(server);
    assert_eq!(times(&last, "bytes left out: the context is full]"), 5);
}
