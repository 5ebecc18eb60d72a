//! When a conversation is summarized.

use super::{
    DOCUMENT, PHRASINGS, WINDOW, answer, count, document, errors, estimates, is_summary, last_of,
    of_type, questions, skills, strict, times, tokens,
};
use crate::harness::{Outcome, Reply, Server, Test, seconds};
use serde_json::json;

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
#[ignore = "long"]
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
#[ignore = "long"]
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

/// As long as a conversation fits, it is sent as it is if the request for a summary fails, and the
/// request is not repeated in the same turn.
#[test]
fn failed_summary_changes_nothing_while_the_conversation_fits() {
    type Case = (fn() -> Reply, &'static str);
    let replies: [Case; 4] = [
        (|| Reply::error(503, "busy").header("Retry-After", "0"), "failed to get an answer from "),
        (|| Reply::error(400, "no such thing"), "failed to get an answer from "),
        (|| Reply::text(" "), "failed to get an answer from "),
        (|| Reply::call("list_skills", &json!({})), "the model wrote no summary\n"),
    ];
    let long = "word ".repeat(2500);
    for (reply, cause) in replies {
        let server = Server::always(move |request| {
            if is_summary(request) {
                return reply();
            }
            let is_last_question = request.last_message()["content"] == "Question 3";
            let answer = match is_last_question {
                true => Reply::call("list_skills", &json!({})),
                false => Reply::text("An answer."),
            };
            answer.with_usage(count(request), 20)
        });
        let test = Test::new().endpoint(&server).env("LLM_CONTEXT_WINDOW", "8000");
        let stdin = format!("Question 1 {long}\nQuestion 2 {long}\nQuestion 3\n");
        let run = test.args(["chat"]).stdin(stdin).run().success();
        let run = run.stdout("An answer.\nAn answer.\nAn answer.\n");
        let warning =
            format!("failed to summarize the conversation, so it stays unchanged: {cause}");
        // One in each of the last two turns.
        assert_eq!(run.stderr.matches(&warning).count(), 2, "{}", run.stderr);
        let requests = server.finish();
        // The last turn has two steps, and only the first one requests a summary.
        let [.., summary, question, result] = requests.as_slice() else {
            panic!("{requests:?}");
        };
        assert!(is_summary(summary) && !is_summary(question));
        assert_eq!(result.last_message()["role"], "tool");
        assert_eq!((times(result, "Question 1"), times(result, "Question 2")), (1, 1));
    }
}

/// A conversation that does not fit continues if the model writes no summary.
#[test]
#[ignore = "long"]
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

/// A result that does not fit is shortened; if the window is configured, it has at most a quarter.
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
        match window {
            None => run.stderr_has("tool results were shortened (1)"),
            Some(_) => run.stderr_lacks("were shortened"),
        };
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
