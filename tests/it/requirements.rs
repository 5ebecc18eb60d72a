//! Guarantees for scripts: `--skill`, `--require-skill`, `--require-script`, and the lists of the
//! result.

use serde_json::{Value, json};

use crate::harness::{Outcome, Reply, Request, Server, Test, interpreter};

const ADD: &str = "---\nname: add\ndescription: Adds numbers.\n---\nAdd with add.py.\n";
const READ: (&str, &str) = ("get_skill", r#"{"skill_name":"add"}"#);
const RUN: (&str, &str) =
    ("run_python_script", r#"{"skill_name":"add","file_path":"./add.py","args":["1","2"]}"#);
const FAIL: (&str, &str) = ("run_python_script", r#"{"skill_name":"add","script":"exit(3)"}"#);

/// A skill with a script, and one for users only.
fn skills() -> Test {
    Test::new()
        .skill("add", ADD)
        .file("skills/add/add.py", "import sys\nprint(sum(map(int, sys.argv[1:])))\n")
        .skill("fix", "---\nname: fix\ndescription: Fixes $ARGUMENTS.\n---\nFix $ARGUMENTS.\n")
        .env("SCRIPT_PYTHON", interpreter())
}

/// Runs the program against these replies; they must all be requested.
#[track_caller]
fn ask(
    test: &Test,
    args: &[&str],
    replies: impl IntoIterator<Item = Reply>,
) -> (Outcome, Vec<Request>) {
    let server = Server::start(replies);
    let run = test.next_run().endpoint(&server).args(args).run();
    (run, server.finish())
}

/// Runs the program without any request.
#[track_caller]
fn refuse(test: &Test, args: &[&str]) -> Outcome {
    ask(test, args, []).0
}

fn sent(request: &Request) -> &str {
    request.last_message()["content"].as_str().unwrap()
}

#[test]
fn result_lists_what_the_tools_did() {
    let test = skills();
    let unknown = ("get_skill", r#"{"skill_name":"none"}"#);
    let document = ("read_file_in_skill", r#"{"skill_name":"fix","file_path":"./SKILL.md"}"#);
    let other = ("read_file_in_skill", r#"{"skill_name":"add","file_path":"add.py"}"#);
    let replies =
        || [Reply::calls([unknown, other, READ, READ, document, RUN, FAIL]), Reply::text("3")];
    let expected = json!({
        "skills_read": ["add", "fix"],
        "scripts_run": [
            {"skill": "add", "file": "add.py", "returncode": 0},
            {"skill": "add", "file": null, "returncode": 3},
        ],
        "commands_run": [],
        "files_written": [],
    });
    let log = test.path("log");
    let (run, _) = ask(&test, &["-o", "json", "--log", log.to_str().unwrap(), "go"], replies());
    let (lines, _) = ask(&test, &["-o", "jsonl", "go"], replies());
    let logged = test.read("log");
    let logged: Value = serde_json::from_str(logged.lines().last().unwrap()).unwrap();
    for result in
        [run.success().stdout_json(), lines.success().stdout_json_lines().pop().unwrap(), logged]
    {
        assert_eq!(result["type"], "result");
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(result[name], *value, "{name}");
        }
    }
    // Also without any action, and after a failure.
    let (run, _) = ask(&test, &["-o", "json", "go"], [Reply::error(400, "no")]);
    let result = run.status(1).stdout_json();
    for name in expected.as_object().unwrap().keys() {
        assert_eq!(result[name], json!([]), "{name}");
    }
}

/// A script that does not end by itself is listed with the status of its result.
#[test]
fn stopped_script_is_listed() {
    let call = r#"{"skill_name":"add","script":"while True: pass"}"#;
    let replies = [Reply::calls([("run_python_script", call)]), Reply::text("no")];
    let (run, requests) =
        ask(&skills(), &["-o", "json", "--script-timeout", "1", "--require-script", "go"], replies);
    let head = requests[1].program_result("call_1").head;
    assert!(head.starts_with("stopped at the time limit of 1 s, "), "{head}");
    let result = run.status(5).stdout_json();
    assert_eq!(result["scripts_run"][0]["returncode"], -9);
}

/// The answer is on standard output, with status 5 and the reason.
#[test]
fn answer_without_the_required_skill_is_5() {
    let test = skills();
    let answer = || Reply::text("three");
    let (run, _) = ask(&test, &["-q", "--require-skill", "go"], [answer()]);
    run.status(5).stdout("three\n").stderr(
        "skills-runner: failed to accept the answer: no skill was read before it (--require-skill)\n\
         hint: name one in the question, or use --skill NAME; the skills are add, fix\n",
    );
    let (run, _) = ask(&test, &["-o", "json", "--require-skill", "go"], [answer()]);
    let result = run.status(5).stdout_json();
    assert_eq!(
        (&result["status"], &result["exit_code"], &result["answer"], &result["error"]["kind"]),
        (&json!("error"), &json!(5), &json!("three"), &json!("skill"))
    );
    for call in [READ, ("read_file_in_skill", r#"{"skill_name":"add","file_path":"SKILL.md"}"#)] {
        let (run, _) = ask(&test, &["--require-skill", "go"], [Reply::calls([call]), answer()]);
        run.success().stdout("three\n");
    }
    for call in [
        ("get_skill", r#"{"skill_name":"nothing"}"#),
        ("list_skills", "{}"),
        ("read_file_in_skill", r#"{"skill_name":"add","file_path":"add.py"}"#),
        RUN,
    ] {
        let (run, _) = ask(&test, &["--require-skill", "go"], [Reply::calls([call]), answer()]);
        run.status(5).stdout("three\n");
    }
}

/// A document that shows the model nothing is not read; one whose frontmatter has no clear end is
/// sent whole.
#[test]
fn document_without_text_is_not_read() {
    let fields = "---\nname: x\ndescription: d\n";
    let test = skills()
        .skill("blank", " \n\n")
        .skill("fields", &format!("{fields}---\n"))
        .skill("binary", "\0")
        .skill("open", &format!("{fields}Lost sentence.\n# Head\n"));
    for name in ["blank", "fields"] {
        for args in [["--skill", name, "go"], ["-q", "-n", &format!("/{name}")]] {
            refuse(&test, &args).status(78).stderr_has("no text after its frontmatter");
        }
    }
    for (name, tool) in
        [("blank", "get_skill"), ("blank", "read_file_in_skill"), ("binary", "read_file_in_skill")]
    {
        let arguments = match tool {
            "get_skill" => json!({"skill_name": name}),
            _ => json!({"skill_name": name, "file_path": "SKILL.md"}),
        };
        let replies = [Reply::calls([(tool, arguments.to_string().as_str())]), Reply::text("3")];
        ask(&test, &["--require-skill", "go"], replies).0.status(5).stdout("3\n");
    }
    let test = test
        .skill("dented", "---\nname: x\ndescription: |\n  d\n  ---\n  Lost sentence.\n# Head\n");
    for name in ["open", "dented"] {
        let (run, requests) = ask(&test, &["--skill", name, "go"], [Reply::text("3")]);
        run.success();
        assert!(sent(&requests[0]).contains("Lost sentence.\n# Head\n"), "{name}");
    }
}

#[test]
fn answer_without_the_required_script_is_5() {
    let test = skills();
    let script = ["--require-script", "go"];
    let answer = || Reply::text("three");
    let (run, _) = ask(&test, &script, [Reply::calls([READ]), answer()]);
    run.status(5).stderr_has(
        ": no script or command ran before it (--require-script)\nhint: ask for a script ",
    );
    let (run, _) = ask(&test, &script, [Reply::calls([FAIL]), answer()]);
    run.status(5).stdout("three\n").stderr_has(
        "no script or command succeeded; the last one (add: written by the model) ended with 3 (--require-script)\n\
         hint: -v shows the beginning of each result\n",
    );
    let (run, _) = ask(&test, &script, [Reply::calls([FAIL, RUN, FAIL]), answer()]);
    run.success().stdout("three\n");
    let both = ["--require-script", "--require-skill", "go"];
    let (run, _) = ask(&test, &both, [Reply::calls([RUN]), answer()]);
    run.status(5).stderr_has("no skill was read before it");
    let (run, _) = ask(&test, &both, [Reply::calls([READ]), answer()]);
    run.status(5).stderr_has("no script or command ran before it");
    let (run, _) = ask(&test, &both, [Reply::calls([READ, RUN]), answer()]);
    run.success();
}

/// Statuses 3, 4 and those of failed requests go before 5.
#[test]
fn other_failures_go_before_5() {
    let test = skills();
    let both = ["--require-script", "--require-skill"];
    let list = || Reply::calls([("list_skills", "{}")]);
    let (run, _) = ask(&test, &[&both[..], &["--max-steps", "1", "go"]].concat(), [list()]);
    run.status(3);
    let cut = Reply::text("thr").finish_reason("length");
    let (run, _) = ask(&test, &[&both[..], &["go"]].concat(), [cut]);
    run.status(4).stdout("thr\n");
    let (run, _) = ask(&test, &[&both[..], &["go"]].concat(), [Reply::error(401, "no")]);
    run.status(77).stdout("");
}

/// A requirement that cannot be met costs no request.
#[test]
fn impossible_requirements_are_refused() {
    let test = skills();
    refuse(&test, &["--require-script", "--no-scripts", "go"]).status(2);
    let none = Test::new().folder("empty").folder("skills/broken");
    for args in [["--require-skill", "go"], ["--require-script", "go"]] {
        refuse(&none, &args).status(78).stderr_has(&format!("failed to meet {}: ", args[0]));
    }
    refuse(&none, &["--require-skill", "--skill", "broken", "go"])
        .status(78)
        .stderr_has("skill `broken`: ");
    let off = test.env("SCRIPT_PYTHON", "off");
    refuse(&off, &["--require-script", "go"])
        .status(78)
        .stderr_has("--require-script: no skill has");
    let (run, _) = ask(
        &off,
        &["--require-skill", "--no-scripts", "go"],
        [Reply::calls([READ]), Reply::text("x")],
    );
    run.success();
}

/// A document from an earlier turn is still before the answer; a script is not.
#[test]
fn document_of_an_earlier_turn_counts() {
    let test = skills();
    let args = ["--session", "s", "--require-skill", "go"];
    let (run, _) = ask(&test, &args, [Reply::calls([READ, RUN]), Reply::text("one")]);
    run.success();
    let (run, _) =
        ask(&test, &["-o", "json", "-c", "--require-skill", "go on"], [Reply::text("two")]);
    assert_eq!(run.success().stdout_json()["skills_read"], json!([]));
    // A model that reads it again gets a note.
    let again = [Reply::calls([READ]), Reply::text("two")];
    let (run, requests) = ask(&test, &["-o", "json", "-c", "go on"], again);
    assert!(sent(&requests[1]).contains("[unchanged: "));
    assert_eq!(run.success().stdout_json()["skills_read"], json!(["add"]));
    let (run, _) = ask(&test, &["-c", "--require-script", "go on"], [Reply::text("three")]);
    run.status(5).stdout("three\n");
}

/// `chat` from a pipe checks every turn, and ends with the status of the last failed one.
#[test]
fn every_turn_of_a_piped_conversation_is_checked() {
    let replies = [Reply::text("one"), Reply::calls([RUN]), Reply::text("two")];
    let server = Server::start(replies);
    let test = skills().endpoint(&server).args(["chat", "-o", "jsonl", "--require-script"]);
    let run = test.stdin("first\nsecond\n").run().status(5);
    let results: Vec<Value> =
        run.stdout_json_lines().into_iter().filter(|line| line["type"] == "result").collect();
    let shown = |result: &Value| (result["exit_code"].clone(), result["answer"].clone());
    assert_eq!(
        results.iter().map(shown).collect::<Vec<_>>(),
        [(json!(5), json!("one")), (json!(0), json!("two")),]
    );
    server.finish();
}

/// The documents come first, each once and in order, then the question with its input.
#[test]
fn skill_option_sends_the_document_with_the_question() {
    let test = skills();
    let (run, requests) = ask(
        &test,
        &[
            "-o",
            "json",
            "--require-skill",
            "--skill",
            "fix",
            "--skill",
            "add",
            "--skill",
            "fix",
            "1 + 2?",
        ],
        [Reply::text("3")],
    );
    let run = run.success();
    assert_eq!(run.stdout_json()["skills_read"], json!(["fix", "add"]));
    let run = run.stderr_has("using skill `fix`, ").stderr_has("using skill `add`, ");
    drop(run);
    let folder = |name| test.path(format!("skills/{name}")).display().to_string();
    let start = |name| {
        format!(
            "I invoke the skill `{name}`. Follow its instructions below; they are whole, get_skill is not needed.\n\n\
             Base directory for this skill: {}\n\n",
            folder(name)
        )
    };
    let files = "\n\nOther files of this skill (read_file_in_skill reads them):\n- add.py\n";
    let documents = format!("{}Fix .\n\n\n{}Add with add.py.\n{files}", start("fix"), start("add"));
    assert_eq!(sent(&requests[0]), format!("{documents}\n\nMy request:\n\n1 + 2?"));
    // With standard input, and as the whole question.
    let server = Server::start([Reply::text("3"), Reply::text("3")]);
    for (args, expected) in [
        (&["--skill", "fix", "why?"][..], "\n\nMy request:\n\nwhy?\n\n<stdin>\nlog\n</stdin>"),
        (&["--skill", "fix"], "\n\nMy request:\n\nlog\n"),
    ] {
        test.next_run().endpoint(&server).args(args).stdin("log\n").run().success();
        let requests = server.requests();
        assert!(sent(requests.last().unwrap()).ends_with(expected));
    }
    server.finish();
}

/// Unknown and unusable skills end the run before any request.
#[test]
fn unusable_skill_option_is_78() {
    let test = skills()
        .file("skills/latin/SKILL.md", b"caf\xe9\n")
        .folder("skills/empty")
        .skill("lore", "---\ndescription: d\nuser-invocable: false\n---\nLore.\n");
    for (name, expected) in [
        (
            "ad",
            "failed to invoke skill `ad`: there is no skill of this name\nhint: did you mean `add`?\n",
        ),
        ("weather", "hint: `skills-runner skills list` lists the skills\n"),
        (
            "latin",
            "failed to invoke skill `latin`: SKILL.md of the skill `latin` is not UTF-8 text: ",
        ),
        ("empty", "failed to invoke skill `empty`: "),
        ("./skills/add", "there is no skill of this name"),
    ] {
        let args = ["-o", "json", "--skill", "add", "--skill", name, "hi"];
        let run = refuse(&test, &args).status(78).stderr_has(expected);
        assert_eq!(run.stdout_json()["error"]["kind"], "config");
        let server = Server::start([]);
        let chat = test.next_run().endpoint(&server).args(["chat", "--skill", name]);
        chat.stdin("hi\n").run().status(78);
        server.finish();
    }
    refuse(&test, &["--skill", "", "hi"]).status(2);
    refuse(&test, &["--skill", "add"]).status(2).stderr_has("there is no prompt");
    // The user decides, also about a skill that is for the model only.
    let (run, requests) = ask(&test, &["--skill", "lore", "hi"], [Reply::text("ok")]);
    run.success();
    assert!(sent(&requests[0]).contains("Lore.\n"));
}

/// In a conversation the first question gets the documents, also after it failed, was removed, or
/// all messages were.
#[test]
fn first_question_of_a_conversation_gets_the_documents() {
    let server = Server::start([
        Reply::error(400, "no"),
        Reply::text("one"),
        Reply::text("two"),
        Reply::text("three"),
        Reply::text("four"),
    ]);
    let test = skills().endpoint(&server).args(["chat", "--skill", "add"]);
    test.stdin("zero\none\n/undo\ntwo\nthree\n/clear\n/fix it\n").run().status(1);
    let requests = server.finish();
    let documents = |request: &Request| {
        let users = request.messages().iter().filter(|message| message["role"] == "user");
        let users = users.map(|message| message["content"].as_str().unwrap());
        users.map(|text| text.matches("I invoke the skill `add`").count()).collect::<Vec<_>>()
    };
    let all: Vec<_> = requests.iter().map(documents).collect();
    assert_eq!(all, [vec![1], vec![1], vec![1], vec![1, 0], vec![1]]);
    assert!(sent(&requests[4]).ends_with("Fix it.\n"));
}

#[test]
fn dry_run_shows_the_documents() {
    let test = skills().env("LLM_API_BASE_URL", "http://127.0.0.1:9/v1");
    for args in [["--skill", "fix", "it"].as_slice(), &["/fix it"], &["chat", "/fix it"]] {
        let run = test.next_run().args(["--no-env-file", "-m", "x", "--dry-run"]).args(args).run();
        let request = run.success().stdout_json();
        let sent = request["body"]["messages"][1]["content"].as_str().unwrap();
        assert!(sent.starts_with("I invoke the skill `fix`."), "{sent}");
    }
}

/// A summary replaces the question and its input; the document stays.
#[test]
fn given_document_survives_a_summary() {
    let test = skills();
    let first = ["--session", "s", "--skill", "fix", "which?"];
    let server = Server::start([Reply::text("1")]);
    let run = test.next_run().endpoint(&server).args(first);
    run.stdin("data ".repeat(2000)).run().success();
    server.finish();
    let server = Server::start([Reply::text("2"), Reply::text("sum"), Reply::text("3")]);
    let chat = test.next_run().endpoint(&server).args(["chat", "--session", "s"]);
    chat.stdin("two?\n/compact\nthree?\n").run().success();
    let requests = server.finish();
    assert!(sent(&requests[1]).contains("User: which?\n"), "{}", sent(&requests[1]));
    let last = requests[2].messages().to_vec();
    let has = |text: &str| {
        last.iter().any(|message| message["content"].as_str().is_some_and(|it| it.ends_with(text)))
    };
    assert!(has("\n\nFix .\n") && !has("</stdin>"), "{last:#?}");
}
