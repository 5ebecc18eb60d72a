//! Constrained replies that `LLM_TOOLS=auto` chooses: for small models, and where a reply describes a
//! call.

use serde_json::json;

use crate::harness::{Outcome, Reply, Request, Server, Test};
use crate::schema::{answer, read_skill, test};

/// A server that tells the size of its model, and whether requests to it are constrained.
fn is_constrained(
    size: impl Fn(&Request) -> Option<String> + Send + Sync + 'static,
    change: impl Fn(Test) -> Test,
) -> bool {
    let server = Server::of_all_requests(move |request| match request.path.as_str() {
        "/v1/chat/completions" if request.json["tools"].is_null() => Reply::text(&answer("Done.")),
        "/v1/chat/completions" => Reply::text("Done."),
        _ => size(request).map_or(Reply::status(404), |body| Reply::status(200).body(body)),
    });
    let test = change(test().env_unset("LLM_TOOLS").endpoint(&server)).args(["hi 2"]);
    test.run().success().stdout("Done.\n");
    let requests = server.finish();
    let sent =
        requests.iter().find(|request| request.method == "POST" && request.path.contains("chat"));
    sent.unwrap().json.get("response_format").is_some()
}

/// `auto` constrains the replies of small models, where the server tells their size.
#[test]
fn replies_of_small_models_are_constrained() {
    let same = |test: Test| test;
    let listed = |name: &str, owner: &str, count: &str| {
        let body = format!(
            r#"{{"data":[{{"id":"{name}","owned_by":"{owner}","meta":{{"n_params":{count}}}}}]}}"#
        );
        move |request: &Request| (request.path == "/v1/models").then(|| body.clone())
    };
    for (name, owner, count, expected) in [
        ("test-model", "llamacpp", "1543714304", true),
        ("test-model", "other", "4000000000", true),
        ("test-model", "llamacpp", "4000000001", false),
        ("test-model", "llamacpp", "0", false),
        ("test-model", "llamacpp", "-5", false),
        // llama.cpp has one model, whatever its name is; other servers have several.
        ("models/x.gguf", "llamacpp", "1543714304", true),
        ("another", "other", "1543714304", false),
    ] {
        assert_eq!(is_constrained(listed(name, owner, count), same), expected, "{name} {count}");
    }
    let small = || listed("test-model", "llamacpp", "1543714304");
    assert!(!is_constrained(small(), |test| test.env("LLM_TOOLS", "native")));
    let ollama = |shown: &str| {
        let shown = shown.to_string();
        move |request: &Request| match request.path.as_str() {
            "/v1/models" => Some(r#"{"data":[{"id":"test-model:latest"}]}"#.to_string()),
            "/api/version" => Some(r#"{"version":"0.12.6"}"#.to_string()),
            "/api/show" => Some(shown.clone()),
            _ => None,
        }
    };
    for (shown, expected) in [
        (r#"{"model_info":{"general.parameter_count":1543714304}}"#, true),
        (r#"{"model_info":{"general.parameter_count":7615616512}}"#, false),
        (r#"{"details":{"parameter_size":"1.5B"}}"#, true),
        (r#"{"details":{"parameter_size":"494.03M"},"model_info":{}}"#, true),
        (r#"{"details":{"parameter_size":"7.6B"}}"#, false),
        (r#"{"details":{"parameter_size":"large"}}"#, false),
        ("[", false),
    ] {
        assert_eq!(is_constrained(ollama(shown), same), expected, "{shown}");
    }
}

/// A server that is asked for the size and does not answer delays a question by 300 ms.
#[test]
fn a_size_that_is_not_told_is_not_waited_for() {
    let server = Server::of_all_requests(|request| match request.path.as_str() {
        "/v1/chat/completions" => Reply::text("Done."),
        _ => Reply::empty().hang(),
    });
    let test = test().env_unset("LLM_TOOLS").endpoint(&server);
    let run = test.next_run().args(["-q", "hi"]).run().success();
    run.stdout("Done.\n").stderr("").took_at_most(crate::harness::seconds(5.0));
    // Nothing is asked where nothing is sent, or where the answer changes nothing.
    test.next_run().args(["--dry-run", "hi"]).run().success();
    let test = test.env("LLM_TOOLS", "prompted").env("LLM_CONTEXT_WINDOW", "8192");
    test.args(["hi"]).run().success();
    let paths: Vec<String> = server.finish().iter().map(|request| request.path.clone()).collect();
    let asked = "/v1/chat/completions";
    assert_eq!(paths, ["/v1/models", asked, asked]);
}

/// Another model may have another size.
#[test]
fn the_size_is_asked_for_again_after_a_change_of_the_model() {
    let server = Server::of_all_requests(|request| {
        match request.path.as_str() {
        "/v1/models" => Reply::status(200).body(
            r#"{"data":[{"id":"test-model","owned_by":"vllm","meta":{"n_params":8000000000}},{"id":"small","meta":{"n_params":500000000}}]}"#,
        ),
        _ if request.json["tools"].is_null() => Reply::text(&answer("Done.")),
        _ => Reply::text("Done."),
    }
    });
    let lines = "hi\n/model small\nhi\n/model test-model\nhi\n";
    let run =
        test().env_unset("LLM_TOOLS").endpoint(&server).args(["chat", "-v"]).stdin(lines).run();
    run.success().stderr_has("small has 500,000,000 parameters: its replies are constrained");
    let sent = server.finish();
    let sent = sent.iter().filter(|request| request.method == "POST");
    let constrained: Vec<bool> = sent.map(|it| it.json.get("response_format").is_some()).collect();
    assert_eq!(constrained, [false, true, false]);
}

/// The replies to `question` in `auto`, and how many requests were constrained.
fn ask_described(question: &str, replies: &[Reply]) -> (Outcome, Vec<bool>) {
    let server = Server::start(replies.to_vec());
    let test = test().env_unset("LLM_TOOLS").endpoint(&server);
    let run = test.args(["-o", "json", question]).run().success();
    let constrained = |request: &Request| request.json.get("response_format").is_some();
    (run, server.finish().iter().map(constrained).collect())
}

/// `auto`: a first reply that describes a call is followed by one constrained request. A call there
/// goes on so; else the first reply is the answer.
#[test]
fn described_calls_are_asked_for_in_a_constrained_reply() {
    let code = "You can run this:\n```python\nprint(2**64)\n```";
    let named = "You can use get_skill to greet.";
    for described in [code, named] {
        let replies = [described, &read_skill(), &answer("Hello.")].map(Reply::text);
        let (run, constrained) = ask_described("greet me", &replies);
        assert_eq!(constrained, [false, true, true], "{described}");
        let end = run.stdout_json();
        let counted = (&end["answer"], &end["asked_again"], &end["tool_calls"]);
        assert_eq!(counted, (&json!("Hello."), &json!(1), &json!(1)));
        let (run, constrained) =
            ask_described("greet me", &[described, &answer("No, 99.")].map(Reply::text));
        assert_eq!(
            (&run.stdout_json()["answer"], constrained),
            (&json!(described), vec![false, true])
        );
        // Also where the second request fails.
        let replies = [Reply::text(described), Reply::error(400, "no such thing")];
        assert_eq!(ask_described("greet me", &replies).0.stdout_json()["answer"], described);
        // A call that was cut off is not one.
        let cut = Reply::text("{\"thought\": \"\", \"tool\": \"get_sk").finish_reason("length");
        let replies = [Reply::text(described), cut, Reply::text(&answer("No."))];
        let (run, constrained) = ask_described("greet me", &replies);
        assert_eq!(
            (&run.stdout_json()["answer"], constrained),
            (&json!(described), vec![false, true, true])
        );
    }
    // Neither a question about code, nor other fences, nor a model that makes calls.
    let read = Reply::call("get_skill", &json!({"skill_name": "alpha"}));
    for (question, replies) in [
        ("Which code prints it?", vec![Reply::text(code)]),
        ("greet me", vec![Reply::text("So:\n```json\n{}\n```")]),
        ("greet me", vec![Reply::text("So:\n```\nhello\n```")]),
        ("greet me", vec![Reply::text("Hello, alpha.")]),
        ("greet me", vec![read, Reply::text(code)]),
        ("What does get_skill do?", vec![Reply::text(named)]),
    ] {
        let (_, constrained) = ask_described(question, &replies);
        assert!(!constrained.contains(&true), "{question}");
    }
}

/// After a call a conversation goes on with constrained replies, without one with native calls.
#[test]
fn a_conversation_stays_as_the_model_can_call() {
    let described = || Reply::text("You can use get_skill to greet.");
    let native = Reply::call("get_skill", &json!({"skill_name": "alpha"}));
    let replies = [described(), Reply::text(&answer("No.")), native, Reply::text("Hello.")];
    let server = Server::start(replies);
    let test = test().env_unset("LLM_TOOLS").endpoint(&server).args(["chat"]);
    test.next_run().args(["chat"]).stdin("greet me\nagain\n").run().success().stdout_has("Hello.");
    let constrained = |request: &Request| request.json.get("response_format").is_some();
    let all: Vec<bool> = server.finish().iter().map(constrained).collect();
    assert_eq!(all, [false, true, false, false]);
    let replies = [described(), Reply::text(&read_skill()), Reply::text(&answer("Hi."))];
    let server = Server::start(replies.into_iter().chain([Reply::text(&answer("Hello."))]));
    let test = test.next_run().endpoint(&server).args(["chat"]);
    test.stdin("greet me\nagain\n").run().success().stdout_has("Hello.");
    let all: Vec<bool> = server.finish().iter().map(constrained).collect();
    assert_eq!(all, [false, true, true, true]);
}

/// Another run that continues the session goes on so, unless the model or the way of calling tools
/// is another.
#[test]
fn a_saved_conversation_stays_constrained() {
    let described = || Reply::text("You can use get_skill to greet.");
    let answered = || Reply::text(&answer("Hello."));
    let test = test().env_unset("LLM_TOOLS");
    let constrained = |name: &str, replies: Vec<Reply>, args: &[&str], mode: &str| {
        let server = Server::start(replies);
        let args: Vec<&str> = [&["--session", name], args].concat();
        let test = test.next_run().endpoint(&server).env("LLM_TOOLS", mode).args(args);
        test.run().success();
        let constrained = |request: &Request| request.json.get("response_format").is_some();
        server.finish().iter().map(constrained).collect::<Vec<bool>>()
    };
    let called = vec![described(), Reply::text(&read_skill()), answered()];
    assert_eq!(constrained("kept", called, &["greet me"], "auto"), [false, true, true]);
    let plain = || vec![Reply::text("Hello.")];
    assert_eq!(constrained("kept", plain(), &["again"], "native"), [false]);
    assert_eq!(constrained("kept", plain(), &["-m", "another", "again"], "auto"), [false]);
    assert_eq!(constrained("kept", vec![answered()], &["again"], "auto"), [true]);
    let session = test.read("home/.local/state/skills-runner/sessions/kept.jsonl");
    assert!(session.contains("\"constrained\":true") && !session.contains("so it is"), "{session}");
    // Neither an answer after a description nor replies that were constrained from the start count.
    let tried = vec![described(), answered()];
    assert_eq!(constrained("tried", tried, &["greet me"], "auto"), [false, true]);
    assert_eq!(constrained("tried", plain(), &["again"], "auto"), [false]);
    assert_eq!(constrained("set", vec![answered()], &["greet me"], "schema"), [true]);
    assert_eq!(constrained("set", plain(), &["again"], "auto"), [false]);
}

/// An interrupt in the constrained request leaves the next turn as it was.
#[test]
fn an_interrupted_trial_changes_nothing() {
    let replies = [
        Reply::text("You can use get_skill to greet."),
        Reply::empty().hang(),
        Reply::text("Hello."),
    ];
    let server = Server::start(replies);
    let test = test().env_unset("LLM_TOOLS").endpoint(&server);
    let mut terminal = test.spawn_on_terminal();
    terminal.expect("> ").type_line("greet me");
    server.wait_for_requests(2);
    terminal.ctrl('c').expect("> ");
    terminal.type_line("again").expect("Hello.").expect("> ").type_line("/exit");
    terminal.wait_exit().success();
    let constrained = |request: &Request| request.json.get("response_format").is_some();
    let all: Vec<bool> = server.finish().iter().map(constrained).collect();
    assert_eq!(all, [false, true, false]);
}

/// `doctor` tries what a question would use.
#[test]
fn doctor_tries_a_small_model_with_constrained_replies() {
    let server = Server::of_all_requests(|request| {
        match request.path.as_str() {
        "/v1/models" => Reply::status(200).body(
            r#"{"data":[{"id":"test-model","owned_by":"llamacpp","meta":{"n_params":1543714304}}]}"#,
        ),
        "/v1/chat/completions" => Reply::text(&answer("4")),
        _ => Reply::status(404),
    }
    });
    test().env_unset("LLM_TOOLS").endpoint(&server).args(["doctor"]).run();
    let requests = server.finish();
    let first = requests.iter().find(|request| request.method == "POST").unwrap();
    assert_eq!(first.json["response_format"]["type"], "json_schema");
}
