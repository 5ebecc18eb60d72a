//! What is shortened, and what cannot be.

use super::{
    PHRASINGS, WINDOW, count, document, errors, estimates, is_summary, last_of, of_type, questions,
    skills, strict, times, tokens,
};
use crate::harness::{Reply, Request, Server, Test};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

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
    let run = test.endpoint(&server).args(["load them"]).run().success();
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
                // Equal calls would end the turn.
                step => Reply::call(
                    "read_file_in_skill",
                    &json!({"skill_name": "words", "file_path": "data.txt", "limit": 1000 + step}),
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

/// A model that refuses a long request without its limit is assumed to have a small one.
#[test]
fn an_unknown_window_is_assumed_to_be_small_after_a_refusal() {
    let server = Server::always(|request| match request.body.len() {
        100_000.. => Reply::error(400, "prompt is too long"),
        _ => Reply::text("Done."),
    });
    let stdin = format!("{}\n/tokens\n", "A sentence of a long letter. ".repeat(5000));
    let run = skills().endpoint(&server).args(["chat"]).stdin(stdin).run().status(1);
    run.stderr_has(" of 8,192 (");
    server.finish();
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
            let reply = match text.contains("run them") && !is_summary(request) {
                true => Reply::calls([("run_python_script", script.as_str()); 5]),
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
        let run = run.stderr_has("tool results were shortened (5)");
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
        .stderr_has(
            "or give the server a larger context, or set LLM_CONTEXT_WINDOW higher if it has one",
        );
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
    let run = test.endpoint(&server).args(["load them"]).run().success();
    let cut = run.stderr.matches("skill documents were shortened (");
    assert_eq!(cut.count(), 1, "{}", run.stderr);
    let last = last_of(server);
    assert_eq!(times(&last, "bytes left out: the context is full]"), 5);
}
