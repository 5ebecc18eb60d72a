//! Replies that are constrained to JSON objects by their schema (`LLM_TOOLS=schema`).

use serde_json::{Value, json};

use crate::harness::{Outcome, Reply, Request, Server, Test};

pub(super) const DOCUMENT: &str =
    "---\nname: alpha\ndescription: Greets.\n---\nRun scripts/hello.py.\n";

pub(super) fn test() -> Test {
    let test = Test::new().skill("alpha", DOCUMENT).file("work/mail.txt", "a mail\n");
    let test = test.file("skills/alpha/scripts/hello.py", "print('hello')\n");
    let test = test.file("skills/alpha/evals/check.py", "").file("skills/alpha/data.csv", "1\n");
    test.cwd("work").env("SKILLS_FOLDER_PATH", "../skills").env("LLM_TOOLS", "schema")
}

/// A reply in the form of the schema.
pub(super) fn object(tool: &str, arguments: &Value) -> String {
    let fields: Vec<String> = arguments
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| format!(", \"{name}\": {value}"))
        .collect();
    format!("{{\"thought\": \"so it is\", \"tool\": \"{tool}\"{}}}", fields.concat())
}

pub(super) fn answer(text: &str) -> String {
    object("answer", &json!({ "text": text }))
}

pub(super) fn read_skill() -> String {
    object("get_skill", &json!({"skill_name": "alpha"}))
}

/// The branches that a request allows: the tool and its schema.
pub(super) fn branches(request: &Request) -> Vec<(String, Value)> {
    let format = &request.json["response_format"];
    assert_eq!(format["type"], "json_schema", "{format}");
    let branches = format["json_schema"]["schema"]["anyOf"].as_array().unwrap();
    let name = |branch: &Value| branch["properties"]["tool"]["const"].as_str().unwrap().to_string();
    branches.iter().map(|branch| (name(branch), branch.clone())).collect()
}

pub(super) fn names(request: &Request) -> Vec<String> {
    branches(request).into_iter().map(|(name, _)| name).collect()
}

pub(super) fn ask(replies: Vec<Reply>) -> (Test, Outcome, Vec<Request>) {
    let server = Server::start(replies);
    let test = test();
    let run = test.next_run().endpoint(&server).args(["-o", "json", "greet me"]).run();
    (test, run, server.finish())
}

/// A whole conversation: the grammar follows what was read, the history is as the model wrote it.
#[test]
fn replies_are_constrained_to_calls_and_answers() {
    let run = object(
        "run_python_script",
        &json!({"args": ["x"], "file_path": "scripts/hello.py", "skill_name": "alpha"}),
    );
    let write = object("write_file", &json!({"content": "", "path": "x"}));
    for streams in [true, false] {
        let replies = [read_skill(), run.clone(), write.clone(), answer("H\u{e9}llo\n\"you\".")];
        let server = Server::start(replies.each_ref().map(|text| Reply::text(text)));
        let test = test();
        let words: &[&str] = if streams { &[] } else { &["--no-stream"] };
        let end =
            test.next_run().endpoint(&server).args(words).args(["-o", "json", "greet me"]).run();
        let end = end.success().stdout_json();
        assert_eq!(end["answer"], "H\u{e9}llo\n\"you\".");
        let counted = (&end["tool_calls"], &end["calls_from_text"], &end["asked_again"]);
        assert_eq!(counted, (&json!(3), &json!(0), &json!(0)));
        assert_eq!(
            (&end["skills_read"], &end["files_written"]),
            (&json!(["alpha"]), &json!(["x"]))
        );
        let requests = server.finish();
        for request in &requests {
            assert!(request.json.get("tools").is_none() && request.json.get("stop").is_none());
            assert_eq!(request.system(), requests[0].system());
        }
        let system = requests[0].system();
        for line in [
            "- answer {text}: ",
            "\n- get_skill {skill_name}: ",
            "\n- run_command {command}: ",
            "\n- read_file {path, offset?}: ",
            "\n- run_python_script {script}: ",
            "\n- run_python_script {skill_name, file_path, args}: ",
            "\n- alpha: Greets.",
        ] {
            assert!(system.contains(line), "{line}: {system}");
        }
        let last: Vec<(&str, &str)> = requests[3].messages()[1..]
            .iter()
            .map(|it| (it["role"].as_str().unwrap(), it["content"].as_str().unwrap()))
            .collect();
        let roles: Vec<&str> = last.iter().map(|(role, _)| *role).collect();
        assert_eq!(roles, ["user", "assistant", "user", "assistant", "user", "assistant", "user"]);
        assert_eq!([last[1].1, last[3].1, last[5].1], [&*read_skill(), &*run, &*write]);
        assert!(last[2].1.starts_with("Result of get_skill:\nBase directory"), "{}", last[2].1);
        assert!(last[4].1.contains("hello\n"), "{}", last[4].1);
    }
}

/// A skill is read before its scripts run, and once; arguments that must hold something do.
#[test]
fn the_schema_follows_the_conversation() {
    let (_, run, requests) = ask(vec![Reply::text(&read_skill()), Reply::text(&answer("Hello."))]);
    run.success();
    let [first, second] = [&requests[0], &requests[1]].map(branches);
    let of = |all: &[(String, Value)], tool: &str| -> Vec<Value> {
        all.iter().filter(|(name, _)| name == tool).map(|(_, branch)| branch.clone()).collect()
    };
    let [read] = &of(&first, "get_skill")[..] else { panic!("{first:?}") };
    assert_eq!(read["properties"]["skill_name"]["enum"], json!(["alpha"]));
    assert_eq!(read["required"], json!(["thought", "tool", "skill_name"]));
    assert_eq!(read["additionalProperties"], false);
    let fields: String = read["properties"].to_string();
    assert!(fields.contains("\"maxLength\":160"), "{fields}");
    // Without a skill that was read, only source can be run, and nothing names a skill.
    let [source] = &of(&first, "run_python_script")[..] else { panic!("{first:?}") };
    assert_eq!(source["properties"]["script"], json!({"type": "string", "minLength": 1}));
    assert!(
        source["properties"].get("skill_name").is_none()
            && of(&first, "read_file_in_skill").is_empty()
    );
    assert!(of(&second, "get_skill").is_empty());
    let [source, file] = &of(&second, "run_python_script")[..] else { panic!("{second:?}") };
    assert!(source["properties"].get("skill_name").is_none());
    assert_eq!(file["properties"]["skill_name"]["enum"], json!(["alpha"]));
    assert_eq!(file["properties"]["file_path"]["enum"], json!(["scripts/hello.py"]));
    assert_eq!(file["required"], json!(["thought", "tool", "skill_name", "file_path", "args"]));
    assert_eq!(of(&second, "answer")[0]["required"], json!(["thought", "tool", "text"]));
    let [write] = &of(&second, "write_file")[..] else { panic!("{second:?}") };
    assert_eq!(write["properties"]["content"], json!({"type": "string"}));
    // Commands edit files, and `read_file` reads the skill's, too.
    assert!(of(&second, "edit_file").is_empty() && of(&second, "read_file_in_skill").is_empty());
    let test = test().env("LLM_API_BASE_URL", "http://127.0.0.1:1/v1").env("LLM_MODEL_NAME", "m");
    let run = test.args(["--no-scripts", "--dry-run", "greet me"]).run();
    run.success().stdout_has("- read_file_in_skill {");
    // Models write fields in the order of the schema.
    let text = String::from_utf8_lossy(&requests[0].body);
    assert!(
        text.contains("\"properties\":{\"thought\":{")
            && text.contains("},\"tool\":{\"const\":\"get_skill\"},\"skill_name\":{"),
        "{text}"
    );
}

/// An equal call takes its tool out of the next reply; a second time, and in the last step, only an
/// answer is allowed.
#[test]
fn repeated_calls_are_left_out_of_the_schema() {
    let list = || Reply::text(&object("read_file", &json!({"path": "mail.txt"})));
    let other = || Reply::text(&object("run_command", &json!({"command": "echo x"})));
    let (_, run, requests) =
        ask(vec![list(), list(), other(), other(), Reply::text(&answer("Done."))]);
    assert_eq!(run.success().stdout_json()["answer"], "Done.");
    let has = |at: usize, tool: &str| names(&requests[at]).iter().any(|name| name == tool);
    assert!(
        has(1, "read_file") && !has(2, "read_file") && has(2, "run_command") && has(3, "read_file")
    );
    assert_eq!(names(&requests[4]), ["answer"]);
    // Also where the calls take turns.
    let replies = [list(), other(), list(), other(), Reply::text(&answer("Done."))];
    let (_, _, requests) = ask(replies.to_vec());
    assert_eq!(names(&requests[4]), ["answer"]);
    let server = Server::start([list(), Reply::text(&answer("Done."))]);
    let run = test().endpoint(&server).args(["--max-steps", "2", "greet me"]).run();
    run.success().stdout("Done.\n");
    assert_eq!(names(&server.finish()[1]), ["answer"]);
}

/// Servers keep schemas loosely: what is meant counts. One call a reply; prose is the answer.
#[test]
fn replies_that_differ_from_the_schema_are_taken_as_meant() {
    let object = "{\"tool\": \"read_file\",\n \"path\": \"mail.txt\"}";
    for reply in [
        object.to_string(),
        format!("```json\n{object}\n```"),
        format!("  {object}\n{}", object.replace("mail", "other")),
        object.replace("mail.txt\"", "mail.txt\", \"thought\": \"x\""),
    ] {
        let (_, run, requests) = ask(vec![Reply::text(&reply), Reply::text(&answer("Done."))]);
        let end = run.success().stdout_json();
        assert_eq!((&end["answer"], &end["tool_calls"]), (&json!("Done."), &json!(1)), "{reply}");
        assert_eq!(requests[1].messages()[2]["content"], *reply);
        assert_eq!(
            requests[1].messages()[3]["content"],
            "Result of read_file:\na mail\n\nIf nothing is left to do, use `answer`."
        );
    }
    for prose in ["Just prose, with {\"tool\": \"read_file\"} in it.", "{\"a\": 1}", "{not JSON"] {
        let (_, run, _) = ask(vec![Reply::text(prose)]);
        let end = run.success().stdout_json();
        assert_eq!((&end["answer"], &end["tool_calls"]), (&json!(prose), &json!(0)));
    }
}

/// The text of an answer streams as it comes, its escapes decoded; nothing else is printed.
#[test]
fn answers_stream() {
    let text = answer("One \u{1f600} \"two\"\tthree");
    let text = text.replace('\u{1f600}', "\\ud83d\\ude00");
    let delta = |piece: &str| {
        format!("data: {}", json!({"choices": [{"index": 0, "delta": {"content": piece}}]}))
    };
    let end =
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}".to_string();
    let events = text.chars().map(|c| delta(&c.to_string())).chain([end, "data: [DONE]".into()]);
    let server = Server::start([Reply::sse(events)]);
    let run = test().endpoint(&server).args(["-v", "greet me"]).run().success();
    let run = run.stdout("One \u{1f600} \"two\"\tthree\n").stderr_has("so it is");
    run.check(!run.stderr.contains("\"tool\""), "an object is printed");
    server.finish();
}

/// A refused schema: any object, then calls in text; each is tried once.
#[test]
fn refused_schemas_have_substitutes() {
    let refusals = [
        (400, "response_format.type: json_schema is not supported"),
        (404, "No endpoints found that can handle the requested parameters."),
        (422, "Failed to parse grammar"),
        (500, "failed to initialize samplers: failed to parse grammar"),
        (501, "Invalid schema for response_format"),
    ];
    for (status, words) in refusals {
        let refusal = || Reply::error(status, words);
        let (_, run, requests) =
            ask(vec![refusal(), Reply::text(&read_skill()), Reply::text(&answer("Hello."))]);
        let end = run.success().stdout_json();
        assert_eq!((&end["answer"], &end["asked_again"]), (&json!("Hello."), &json!(0)), "{words}");
        for request in &requests[1..] {
            assert_eq!(request.json["response_format"], json!({"type": "json_object"}));
        }
        let marked = "<tool_call>\n{\"name\": \"get_skill\", \"arguments\": {\"skill_name\": \"alpha\"}}\n</tool_call>";
        let (_, run, requests) =
            ask(vec![refusal(), refusal(), Reply::marked(marked), Reply::text("Hello.")]);
        let run = run
            .success()
            .stderr_has("the endpoint constrains no replies to calls of tools: they are described");
        assert_eq!(run.stdout_json()["answer"], "Hello.");
        assert!(requests[2..].iter().all(|it| it.json.get("response_format").is_none()));
    }
    for (status, words, end) in
        [(401, "no response_format for you", 77), (404, "model `m` not found", 1)]
    {
        let (_, run, requests) = ask(vec![Reply::error(status, words)]);
        run.status(end);
        assert_eq!(requests.len(), 1);
    }
}

/// A call that was cut off never runs: a shorter one is asked for, twice at most.
#[test]
fn cut_off_calls_are_asked_for_again() {
    let cut = || {
        Reply::text(
            "{\"thought\": \"x\", \"tool\": \"write_file\", \"path\": \"x\", \"content\": \"long",
        )
        .finish_reason("length")
    };
    let (test, run, requests) = ask(vec![cut(), cut(), Reply::text(&answer("Done."))]);
    let end = run.success().stdout_json();
    assert_eq!((&end["answer"], &end["asked_again"]), (&json!("Done."), &json!(2)));
    assert!(
        requests[2].messages().last().unwrap()["content"].as_str().unwrap().contains("shorter")
    );
    assert!(!test.exists("work/x"));
    let (test, run, _) = ask(vec![cut(), cut(), cut()]);
    let end = run.status(4).stdout_json();
    assert_eq!(end["answer"], "");
    assert!(!test.exists("work/x"));
    // A whole object is a reply; of an answer there is what came.
    let whole = Reply::text(&object("write_file", &json!({"path": "x", "content": "y"})))
        .finish_reason("length");
    let (test, run, _) = ask(vec![whole, Reply::text(&answer("Done."))]);
    run.success();
    assert_eq!(test.read("work/x"), "y");
    let cut = "{\"thought\": \"x\", \"tool\": \"answer\", \"text\": \"One\\ntw";
    let server = Server::start([Reply::text(cut).finish_reason("length")]);
    test.next_run().endpoint(&server).args(["greet me"]).run().status(4).stdout("One\ntw\n");
}

/// A session keeps calls and results, so it goes on in any mode.
#[test]
fn sessions_go_on_in_any_mode() {
    let server = Server::start([Reply::text(&read_skill()), Reply::text(&answer("Hello."))]);
    let test = test();
    let run = test.next_run().endpoint(&server).args(["--session", "s", "greet me"]).run();
    run.success().stdout("Hello.\n");
    server.finish();
    let server = Server::start([Reply::text("Native.")]);
    let run = test.next_run().endpoint(&server).env("LLM_TOOLS", "native");
    run.args(["--session", "s", "again"]).run().success().stdout("Native.\n");
    let requests = server.finish();
    let call = &requests[0].messages()[2]["tool_calls"][0]["function"];
    assert_eq!(call["name"], "get_skill");
    assert_eq!(requests[0].messages()[4]["content"], "Hello.");
    let server = Server::start([Reply::text(&answer("Again."))]);
    test.next_run().endpoint(&server).args(["--session", "s", "more"]).run().success();
    let requests = server.finish();
    let texts: Vec<&str> =
        requests[0].messages().iter().map(|it| it["content"].as_str().unwrap()).collect();
    let read: Value = serde_json::from_str(texts[2]).unwrap();
    assert_eq!((&read["tool"], &read["skill_name"]), (&json!("get_skill"), &json!("alpha")));
    assert_eq!(texts[4], "{\"tool\":\"answer\",\"text\":\"Hello.\"}");
    assert!(names(&requests[0]).iter().all(|name| name != "get_skill"));
}

/// Without tools there is nothing to constrain; the user's own field yields where there are tools.
#[test]
fn without_tools_the_request_is_a_plain_one() {
    let server = Server::start([Reply::text("Hi.")]);
    let run = Test::new().endpoint(&server).env("LLM_TOOLS", "schema").args(["hi there"]).run();
    run.success().stdout("Hi.\n");
    assert!(server.finish()[0].json.get("response_format").is_none());
    let server = Server::start([Reply::text(&answer("Hi."))]);
    let own = "{\"response_format\": {\"type\": \"text\"}}";
    test().endpoint(&server).env("LLM_EXTRA_BODY", own).args(["hi there"]).run().success();
    assert!(!branches(&server.finish()[0]).is_empty());
}

/// Directly after a call that failed there is no answer, and after a document something else than
/// another one.
#[test]
fn the_schema_follows_the_last_call() {
    let missing = || Reply::text(&object("read_file", &json!({"path": "none.txt"})));
    let other = Reply::text(&object("read_file", &json!({"path": "none2.txt"})));
    let (_, run, requests) = ask(vec![missing(), other, Reply::text(&answer("None."))]);
    run.success();
    let has = |at: usize, tool: &str| names(&requests[at]).iter().any(|name| name == tool);
    assert!(has(0, "answer") && !has(1, "answer") && has(2, "answer"));
    let server = Server::start([Reply::text(&read_skill()), Reply::text(&answer("Done."))]);
    let test = test().skill("beta", DOCUMENT);
    test.next_run().endpoint(&server).args(["greet me"]).run().success();
    let requests = server.finish();
    assert!(names(&requests[0]).contains(&"get_skill".to_string()));
    assert!(!names(&requests[1]).contains(&"get_skill".to_string()));
}
