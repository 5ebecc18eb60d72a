//! Histories that endpoints accept.

use serde_json::{Value, json};

use super::{
    ALPHA, after_calls, calling_message, calls_of, chat, message, results_of, skills,
    stream_of_pieces, talk, talk_with,
};
use crate::harness::{ProgramText, Reply, Request, Server, seconds};

fn roles(request: &Request) -> Vec<&str> {
    let roles = request.messages().iter().map(|message| message["role"].as_str());
    roles.map(Option::unwrap_or_default).collect()
}

#[test]
fn form_of_empty_content_is_changed_once_and_remembered() {
    let refusals = [
        r#"{"error":{"message":"invalid message content type: <nil>","type":"invalid_request_error","param":null,"code":null}}"#,
        r#"{"detail":[{"loc":["body","messages",2,"content"],"msg":"Input should be a valid string","type":"string_type"}]}"#,
        r#"{"error":{"message":"'content' is a required property","param":"messages.[2].content"}}"#,
    ];
    for refusal in refusals {
        for args in [&[][..], &["--no-stream"]] {
            let calls = || Reply::call("list_skills", &json!({}));
            let refused = Reply::status(400).body(refusal);
            let talk = talk(args, [calls(), refused, calls(), Reply::text("done")]);
            talk.run.success().stdout("done\n");
            let content = |index: usize| calling_message(&talk.requests[index])["content"].clone();
            assert_eq!([content(1), content(2), content(3)], [json!(null), json!(""), json!("")]);
            let tools = |index: usize| talk.requests[index].json["tools"].clone();
            assert_eq!(tools(2), tools(0), "nothing else changes");
        }
    }
    // If both forms are refused, the error is reported without a third request.
    let refused = || Reply::error(400, "messages: text content blocks must be non-empty");
    let talk = talk(&[], [stream_of_pieces(&[ALPHA]), refused(), refused()]);
    talk.run.status(1).stdout_is_empty().stderr_has("must be non-empty");
    assert_eq!(calling_message(&talk.requests[1])["content"], Value::Null);
    assert_eq!(calling_message(&talk.requests[2])["content"], "");
}

#[test]
fn history_without_empty_content_is_not_changed() {
    let talk = talk(&[], [Reply::error(400, "invalid message content type: <nil>")]);
    talk.run.status(1).stderr_has("<nil>");
}

#[test]
fn empty_assistant_message_is_omitted() {
    for nothing in [
        r#""content":"""#,
        r#""content":null"#,
        r#""content":" \n""#,
        r#""content":"","tool_calls":[]"#,
    ] {
        // The model is asked once more.
        let empty = || message(nothing, "stop");
        let talk = chat(&["--no-stream"], "one\ntwo\n", [empty(), empty(), Reply::text("4")]);
        talk.run.status(1).stdout("4\n");
        assert_eq!(roles(&talk.requests[2]), ["system", "user"], "{nothing}");
        assert_eq!(talk.requests[2].last_message()["content"], "two");
    }
}

#[test]
fn empty_lists_of_calls_or_tools_are_not_sent() {
    // Empty lists and null count as missing, and are not sent back.
    for calls in ["[]", "null"] {
        let first = message(&format!(r#""content":"one","tool_calls":{calls}"#), "stop");
        let talk = chat(&["--no-stream"], "1\n2\n", [first, Reply::text("two")]);
        talk.run.success().stdout("one\ntwo\n");
        assert_eq!(talk.requests[1].messages()[2], json!({"role": "assistant", "content": "one"}));
    }
    // Without skills there are no tools, and `tools` is omitted.
    let server = Server::start([Reply::text("4")]);
    let run = crate::harness::Test::new().endpoint(&server).args(["hi"]).run();
    run.success();
    assert_eq!(server.finish()[0].json.get("tools"), None);
}

#[test]
fn tools_are_sent_while_the_history_has_calls() {
    // In the last allowed step and in the next turn as well.
    let calls = || Reply::call("list_skills", &json!({}));
    let talk = chat(&["--max-steps", "2"], "1\n2\n", [calls(), calls(), Reply::text("done")]);
    talk.run.status(3).stdout("done\n");
    for request in &talk.requests {
        assert_eq!(request.json["tools"], talk.requests[0].json["tools"]);
        assert!(!request.tools().is_empty());
    }
}

#[test]
fn results_are_followed_by_an_assistant_message() {
    // The turn ended at its limit, before the model had the result.
    let two = Reply::calls([("list_skills", "{}"), ("get_skill", r#"{"skill_name":"beta"}"#)]);
    let talk = chat(&["--max-steps", "1"], "1\n2\n", [two, Reply::text("done")]);
    talk.run.status(3).stdout("done\n");
    let expected = ["system", "user", "assistant", "tool", "tool", "assistant", "user"];
    assert_eq!(roles(&talk.requests[1]), expected);
    // The turn failed there.
    let calls = || Reply::call("list_skills", &json!({}));
    let failed = Reply::error(401, "no");
    let talk = chat(&[], "1\n2\n", [calls(), failed, Reply::text("done")]);
    talk.run.status(77).stdout("done\n");
    let expected = ["system", "user", "assistant", "tool", "assistant", "user"];
    assert_eq!(roles(&talk.requests[2]), expected);
    assert!(!talk.requests[2].messages()[4]["content"].as_str().unwrap().is_empty());
}

#[test]
fn every_call_has_one_result_after_an_interrupt() {
    let sleep = r#"{"skill_name":"alpha","script":"import time\ntime.sleep(60)"}"#;
    let calls = Reply::calls([
        ("list_skills", "{}"),
        ("run_python_script", sleep),
        ("get_skill", r#"{"skill_name":"beta"}"#),
    ]);
    let server = Server::start([calls, Reply::text("fine")]);
    let mut terminal = skills().endpoint(&server).spawn_on_terminal();
    terminal.expect("> ").type_line("go").expect("→ run_python_script");
    std::thread::sleep(seconds(0.4));
    terminal.ctrl('c').expect("interrupted").expect("> ").type_line("and now?");
    terminal.expect("fine").expect("> ").ctrl('d');
    terminal.wait_exit().success();
    let requests = server.finish();
    let expected = ["system", "user", "assistant", "tool", "tool", "tool", "assistant", "user"];
    assert_eq!(roles(&requests[1]), expected);
    let ids = requests[1].messages()[3..6].iter().map(|message| &message["tool_call_id"]);
    assert_eq!(ids.collect::<Vec<_>>(), ["call_1", "call_2", "call_3"]);
    assert!(requests[1].tool_result("call_1").contains("alpha"));
    for id in ["call_2", "call_3"] {
        assert!(requests[1].tool_result(id).contains("interrupted"));
    }
}

#[test]
fn run_timeout_sends_no_incomplete_history() {
    let sleep = r#"{"skill_name":"alpha","script":"import time\ntime.sleep(60)"}"#;
    let calls = Reply::calls([("run_python_script", sleep), ("list_skills", "{}")]);
    let talk = talk(&["--timeout", "1"], [calls]);
    talk.run.status(3).took_at_most(seconds(2.5));
    assert_eq!(talk.requests.len(), 1);
}

#[test]
fn only_the_first_message_is_a_system_message() {
    let calls = || Reply::call("list_skills", &json!({}));
    for args in [&[][..], &["-s", "Be brief."]] {
        let talk = chat(args, "1\n2\n", [calls(), Reply::text("a"), calls(), Reply::text("b")]);
        talk.run.success();
        for request in &talk.requests {
            let roles = roles(request);
            assert_eq!(roles[0], "system");
            assert_eq!(roles.iter().filter(|role| **role == "system").count(), 1);
            assert!(!roles.contains(&"developer"));
            assert!(
                request.system().contains("alpha"),
                "the system message contains the catalogue"
            );
        }
    }
}

#[test]
fn result_content_is_a_string() {
    let pixel: &[u8] =
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";
    let calls = Reply::calls([
        ("list_skills", "{}"),
        ("get_skill", r#"{"skill_name":"alpha"}"#),
        ("read_file_in_skill", r#"{"skill_name":"alpha","file_path":"dot.png"}"#),
        ("read_file_in_skill", r#"{"skill_name":"alpha","file_path":"."}"#),
        ("run_python_script", r#"{"skill_name":"alpha","script":"print([1])"}"#),
        ("fly", "{}"),
    ]);
    let test = skills().file("skills/alpha/dot.png", pixel);
    let talk = talk_with(test, &[], [calls, Reply::text("done")]);
    talk.run.success().stdout("done\n");
    // Each is a string (or this panics) and not empty.
    let results = results_of(&talk.requests[1]);
    assert_eq!(results.len(), 6);
    for result in results {
        assert!(!result.is_empty());
    }
}

#[test]
fn silently_truncated_prompt_is_reported() {
    let warning = "OLLAMA_CONTEXT_LENGTH";
    let prompt = "word ".repeat(20_000);
    let ask = |replies: Vec<Reply>| {
        let server = Server::start(replies);
        let run = skills().endpoint(&server).args(["-"]).stdin(prompt.clone()).run();
        server.finish();
        run.success()
    };
    let calls = || Reply::call("list_skills", &json!({})).with_usage(4096, 1);
    let run = ask(vec![calls(), calls(), Reply::text("4").with_usage(4096, 1)]);
    assert_eq!(run.stderr.matches(warning).count(), 1, "warned once: {}", run.stderr);
    assert!(run.stderr.contains("4096"));
    // A prompt read whole, usage not reported, and usage that proves nothing.
    for reply in [
        Reply::text("4").with_usage(25_000, 1),
        Reply::text("4").with_usage(0, 0),
        Reply::text("4"),
    ] {
        ask(vec![reply]).stderr_lacks(warning);
    }
    let talk = talk(&[], [Reply::text("4").with_usage(5, 1)]);
    talk.run.success().stderr_lacks(warning);
}

/// Results may contain only tab, CR and LF of the C0 characters, and no terminal escape sequences.
#[track_caller]
fn assert_clean(text: &str) {
    let is_refused = |c: char| c < ' ' && !matches!(c, '\t' | '\n' | '\r');
    assert!(text.starts_with("a\tb\r\nc"), "tab, CR and LF are kept: {text:?}");
    assert!(!text.contains(is_refused), "{text:?}");
    let has_red = text.contains("red") && !text.contains("[31m") && !text.contains("[0m");
    assert!(has_red, "{text:?}");
    assert!(text.contains('.'), "the text after them is kept: {text:?}");
}

#[test]
fn control_characters_are_removed_from_results() {
    let odd: &[u8] = b"a\tb\r\nc\x1b[31mred\x1b[0m\x01\x08\x7f.\n";
    let test = skills().file("skills/alpha/odd.txt", odd);
    let path = json!({"skill_name": "alpha", "file_path": "odd.txt"});
    let calls = Reply::call("read_file_in_skill", &path);
    let talk = talk_with(test, &[], [calls, Reply::text("done")]);
    talk.run.success();
    assert_clean(results_of(&talk.requests[1])[0]);
    // The same in the user's prompt.
    let server = Server::start([Reply::text("4")]);
    let words = "a\tb\r\nc\u{1b}[31mred\u{1b}[0m\u{0}.";
    skills().endpoint(&server).args(["-"]).stdin(words).run().success();
    assert_clean(server.finish()[0].last_message()["content"].as_str().unwrap());
}

/// Control characters in a script's output are replaced, and the model still sees what was printed.
#[test]
fn script_output_is_cleaned_before_it_is_sent() {
    let script = "import sys\nsys.stdout.buffer.write(b'a\\tb\\r\\nc\\x00\\x07\\x1b[31mred\\xff\\xed\\xa0\\x80.')";
    let calls = Reply::call("run_python_script", &json!({"skill_name": "alpha", "script": script}));
    let talk = talk(&[], [calls, Reply::text("done")]);
    talk.run.success();
    let stdout = ProgramText::parse(results_of(&talk.requests[1])[0]).stdout;
    assert_clean(stdout);
    assert!(stdout.ends_with(".\n") && stdout.contains('\u{fffd}'), "{stdout:?}");
}

/// A lone surrogate in the model's arguments must not make the history invalid.
#[test]
fn lone_surrogates_are_kept_out_of_the_history() {
    let calls = r#"[{"index":0,"id":"a","function":{"name":"list_skills","arguments":"{\"query\":\"\\ud83d\"}"}}]"#;
    let request = after_calls(&[], stream_of_pieces(&[calls]));
    assert_eq!(calls_of(&request).len(), 1);
    let calls = r#"[{"index":0,"id":"a","function":{"name":"list_skills","arguments":"{\"query\":\"\ud83d\"}"}}]"#;
    let request = after_calls(&[], stream_of_pieces(&[calls]));
    assert_eq!(calls_of(&request).len(), 1);
}
