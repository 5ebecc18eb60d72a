//! Skills with arguments, invoked by the model and by hand.

use serde_json::json;

use crate::harness::{Outcome, Reply, Request, Server, Test, seconds};

const FRONT: &str = "---\nname: fix\ndescription: Fixes things.\nargument-hint: '[what]'\n---\n";
const BODY: &str = "Fix $ARGUMENTS: first $0, in ${CLAUDE_SKILL_DIR}/x, not \\$0.\n";
const FILES: &str = "\n\nOther files of this skill (read_file_in_skill reads them):\n";

/// The skill `fix`, with one more file, and a plain one.
fn skills() -> Test {
    Test::new()
        .skill("fix", &format!("{FRONT}{BODY}"))
        .file("skills/fix/notes.md", "Notes.\n")
        .skill("pdf", "---\nname: acrobat\ndescription: Reads PDF.\n---\n# PDF\n")
}

fn base(test: &Test, skill: &str) -> String {
    let folder = test.path(format!("skills/{skill}"));
    format!("Base directory for this skill: {}\n\n", folder.display())
}

/// The body of `fix` with the arguments `a 'b c'`.
fn fixed(test: &Test) -> String {
    let folder = test.path("skills/fix");
    format!("Fix a 'b c': first a, in {}/x, not $0.\n", folder.display())
}

#[track_caller]
fn get(test: &Test, arguments: &serde_json::Value) -> Outcome {
    let json = arguments.to_string();
    test.again().args(["tool", "get_skill", &json]).run()
}

/// What users said in a request.
fn questions(request: &Request) -> Vec<&str> {
    let users = request.messages().iter().filter(|m| m["role"] == "user");
    users.map(|m| m["content"].as_str().unwrap()).collect()
}

/// R-SKILL-3: without arguments as it is; with them, also without any words,
/// the body and its values.
#[test]
fn arguments_fill_the_placeholders_of_the_body() {
    let test = skills();
    let (base, fixed) = (base(&test, "fix"), fixed(&test));
    let whole = format!("{base}{FRONT}{BODY}{FILES}- notes.md\n");
    get(&test, &json!({"skill_name": "fix"})).stdout(&whole);
    let arguments = json!({"skill_name": "fix", "arguments": null});
    get(&test, &arguments).stdout(&whole);
    let arguments = json!({"skill_name": "fix", "arguments": "a 'b c'"});
    let due = format!("{base}{fixed}{FILES}- notes.md\n");
    get(&test, &arguments).success().stdout(&due);
    let arguments = json!({"skill_name": "fix", "arguments": ""});
    get(&test, &arguments).stdout_has("Fix : first $0, in /");
}

#[test]
fn arguments_that_no_placeholder_takes_are_appended() {
    let test = skills();
    let base = base(&test, "pdf");
    for (arguments, due) in [("", ""), ("a.pdf  'b'", "\n\nARGUMENTS: a.pdf  'b'")] {
        // By its alias, as well.
        let call = json!({"skill_name": "acrobat", "arguments": arguments});
        let due = format!("{base}# PDF\n{due}");
        get(&test, &call).success().stdout(&format!("{}\n", due.trim_end_matches('\n')));
    }
}

/// A document as large as may be, in which every placeholder would be filled
/// with a megabyte: a clear error, soon.
#[test]
fn what_would_grow_without_bound_is_refused() {
    let test = skills().skill("many", &"$ARGUMENTS".repeat(100_000));
    let call = json!({"skill_name": "many", "arguments": "x".repeat(1 << 20)}).to_string();
    let run = test.again().args(["tool", "get_skill", "-"]).stdin(call);
    let run = run.run().status(1).took_at_most(seconds(10.0));
    run.stdout_has("larger than 2 MiB with these arguments");
    let call = json!({"skill_name": "many", "arguments": "xx"});
    get(&test, &call).success().stdout_has("xxxxxx");
}

/// An unchanged document is told once; the list of files as often as it changes.
#[test]
fn an_unchanged_document_is_told_once() {
    let test = skills();
    let added = test.path("skills/fix/new.md");
    let fix = ("get_skill", r#"{"skill_name":"fix"}"#);
    let server = Server::start([
        Reply::calls([fix, fix]),
        Reply::calls([("get_skill", r#"{"skill_name":"fix","arguments":"x"}"#)]),
        Reply::from_fn(move |_| {
            std::fs::write(&added, "").unwrap();
            Reply::calls([fix])
        }),
        Reply::calls([("get_skill", r#"{"skill_name":"pdf"}"#)]),
        Reply::text("done"),
    ]);
    let run = test.again().endpoint(&server).args(["go"]).run();
    run.success().stderr_has("← unchanged, already read");
    let requests = server.finish();
    let result = |number: u32| requests[4].tool_result(&format!("call_{number}"));
    let base = base(&test, "fix");
    let whole = format!("{base}{FRONT}{BODY}{FILES}- notes.md\n");
    let note = format!("{base}[unchanged: the whole text is above in this conversation]");
    assert_eq!(result(1), whole);
    assert_eq!(result(2), note);
    assert!(result(3).contains("Fix x: first x"), "another text");
    assert_eq!(result(4), format!("{note}{FILES}- new.md\n- notes.md\n"));
    assert!(result(5).ends_with("# PDF\n"), "another skill");
}

/// Changed on disk, or forgotten: whole again.
#[test]
fn a_document_is_told_again_when_it_changed_or_was_forgotten() {
    let test = skills();
    let path = test.path("skills/pdf/SKILL.md");
    let pdf = || Reply::calls([("get_skill", r#"{"skill_name":"pdf"}"#)]);
    let server = Server::start([
        pdf(),
        Reply::from_fn(move |_| {
            std::fs::write(&path, "# PDF 2\n").unwrap();
            Reply::calls([("get_skill", r#"{"skill_name":"pdf"}"#)])
        }),
        Reply::text("one"),
        pdf(),
        Reply::text("two"),
        pdf(),
        Reply::text("three"),
    ]);
    let stdin = "first\nsecond\n/clear\nthird\n";
    let run = test.again().endpoint(&server).args(["chat"]).stdin(stdin);
    run.run().success().stdout("one\ntwo\nthree\n");
    let requests = server.finish();
    assert!(requests[1].tool_result("call_1").ends_with("# PDF\n"));
    assert!(requests[2].tool_result("call_2").ends_with("# PDF 2\n"));
    assert!(requests[4].tool_result("call_3").contains("[unchanged: "));
    assert!(requests[6].tool_result("call_4").ends_with("# PDF 2\n"));
}

/// R-CONV-3: a document is the last to be cut.
#[test]
fn documents_are_cut_last_when_the_context_is_full() {
    let full = || Reply::error(400, "This model's maximum context length is 4096 tokens");
    let document = format!("# Long\n{}", "a rule\n".repeat(1000));
    let test =
        skills().skill("long", &document).file("skills/long/data.txt", "some data\n".repeat(1000));
    let read = json!({"skill_name": "long", "file_path": "data.txt"}).to_string();
    let calls = || {
        let get = ("get_skill", r#"{"skill_name":"long"}"#);
        Reply::calls([get, ("read_file_in_skill", &read)])
    };
    let server = Server::start([calls(), full(), Reply::text("done")]);
    let run = test.again().endpoint(&server).args(["go"]).run();
    run.success().stderr_has("results of tools were shortened (1)");
    let requests = server.finish();
    assert!(requests[2].tool_result("call_1").contains(&document));
    assert!(requests[2].tool_result("call_2").len() < 3000);
    // Nothing else helps.
    let server = Server::start([calls(), full(), full(), Reply::text("done")]);
    let run = test.again().endpoint(&server).args(["go"]).run();
    run.success().stderr_has("documents of skills were shortened (1)");
    assert!(server.finish()[3].tool_result("call_1").len() < 3000);
}

/// `/SKILL arguments`: what the model reads is the skill with its values, and
/// that a person asked for it.
#[test]
fn a_skill_is_invoked_by_hand() {
    let test = skills();
    let server = Server::start([Reply::text("one"), Reply::text("two"), Reply::text("three")]);
    let stdin = "/fix   a 'b c' \n/acrobat\n/etc/hosts is what?\n";
    let run = test.again().endpoint(&server).args(["chat"]).stdin(stdin);
    let run = run.run().success().stdout("one\ntwo\nthree\n");
    run.stderr_has("the skill `fix`, ");
    let requests = server.finish();
    let asked = questions(&requests[2]);
    let (base_fix, fixed) = (base(&test, "fix"), fixed(&test));
    let due = format!(
        "I invoke the skill `fix`. Follow its instructions below; they are whole, get_skill is not needed.\n\n\
         {base_fix}{fixed}{FILES}- notes.md\n"
    );
    assert_eq!(asked[0], due);
    assert!(asked[1].starts_with("I invoke the skill `pdf`. "), "{}", asked[1]);
    assert!(asked[1].ends_with("# PDF\n"), "no frontmatter, no arguments: {}", asked[1]);
    assert_eq!(asked[2], "/etc/hosts is what?");
}

/// The words of `chat` are its first line, also where only the request is shown;
/// what an arrow key sends is no line.
#[test]
fn the_first_turn_invokes_as_any_other() {
    let test = skills();
    let server = Server::start([Reply::text("one"), Reply::text("two")]);
    let run = test.again().endpoint(&server);
    let run = run.args(["chat", "/fix", "a b"]).stdin("\x1b[A\n \x1b[B\nmore\n");
    run.run().success().stdout("one\ntwo\n").stderr_has("the skill `fix`, ");
    let requests = server.finish();
    assert!(questions(&requests[0])[0].starts_with("I invoke the skill `fix`."));
    assert_eq!(questions(&requests[1])[1], "more");
    let endpoint = ["--no-env-file", "-m", "x", "--dry-run"];
    let preview = |words: &[&str]| {
        let test = test.again().env("LLM_API_BASE_URL", "http://127.0.0.1:9/v1");
        test.args(endpoint).args(words).run()
    };
    let request = preview(&["chat", "/fix a"]).success().stdout_json();
    let asked = &request["body"]["messages"][1]["content"];
    assert!(asked.as_str().unwrap().starts_with("I invoke the skill `fix`."));
    preview(&["chat", "/fixx"]).status(1).stdout("").stderr_has("did you mean /fix?");
}

/// What was invoked by hand is in the conversation as well.
#[test]
fn what_was_invoked_by_hand_is_not_told_again() {
    let same = json!({"skill_name": "fix", "arguments": "a 'b c'"}).to_string();
    let server = Server::start([
        Reply::calls([
            ("get_skill", same.as_str()),
            ("get_skill", r#"{"skill_name":"fix","arguments":"a"}"#),
        ]),
        Reply::text("ok"),
    ]);
    let test = skills().endpoint(&server);
    let run = test.args(["chat"]).stdin("/fix a 'b c'\n").run();
    run.success();
    let requests = server.finish();
    assert!(requests[1].tool_result("call_1").ends_with("in this conversation]"));
    assert!(requests[1].tool_result("call_2").contains("Fix a: first a"));
}

/// On a terminal as from a pipe; after a failure it can be sent again.
#[test]
fn a_terminal_lists_skills_and_invokes_them() {
    let server = Server::start([Reply::error(400, "no"), Reply::text("Fixed.")]);
    let mut terminal = skills().endpoint(&server).terminal();
    terminal.expect("> ").type_line("/skills");
    terminal.expect("/fix: Fixes things.").expect("/pdf: Reads PDF.");
    terminal.expect("> ").type_line("/help").expect("/SKILL [arguments]").expect("> ");
    terminal
        .type_line("/fx it")
        .expect("did you mean /fix it?")
        .expect("hint: with a blank in front the line is sent as a question")
        .expect("> ");
    terminal.type_line(" /fx it").expect("no").expect("> ");
    terminal.type_line("/fix it").expect("the skill `fix`").expect("Fixed.");
    terminal.expect("> ").ctrl('d');
    terminal.wait_exit().success();
    let requests = server.finish();
    assert_eq!(questions(&requests[0]), ["/fx it"], "a blank in front: a question");
    let asked = questions(&requests[1]);
    assert!(asked.len() == 1 && asked[0].contains("Fix it: first it"), "{asked:?}");
}

#[test]
fn the_list_of_skills_is_bounded() {
    let mut test = Test::new();
    for number in 0..103 {
        test = test.skill(&format!("s{number:03}"), &"A long description. ".repeat(20));
    }
    let server = Server::start([]);
    let run = test.endpoint(&server).args(["chat"]).stdin("/skills\n").run();
    let run = run.success().stderr_has("skills-runner: … and 3 more\n");
    let lines = run.stderr.lines().filter(|line| line.starts_with("skills-runner: /s"));
    assert!(lines.clone().all(|line| line.len() < 120), "{}", run.stderr);
    assert_eq!(lines.count(), 100);
    server.finish();
}

/// Nothing is sent for what is no skill, cannot be read, or is a command.
#[test]
fn lines_that_invoke_nothing_are_told() {
    let server = Server::start([]);
    let test = skills()
        .skill("clear", "# A skill\n")
        .file("skills/latin/SKILL.md", b"caf\xe9\n")
        .folder("skills/empty")
        .skill("lore", "---\ndescription: d\nuser-invocable: false\n---\nLore.\n");
    let test = test.endpoint(&server);
    for (line, due, status) in [
        ("/fixx", "there is no command /fixx, and no such skill; did you mean /fix?", 1),
        ("/skils", "did you mean /skills?", 1),
        ("/weather", "no such skill; /help lists the commands, /skills the skills", 1),
        ("/", "there is no command /,", 1),
        ("/clear", "the conversation is forgotten", 0),
        ("/clear all", "/clear stands alone on its line", 1),
        ("/fixx  a 'b c'", "did you mean /fix a 'b c'?", 1),
        ("/FIX a", "did you mean /fix a?", 1),
        ("/Acrobt a", "did you mean /acrobat a?", 1),
        ("/skill fix a b", "did you mean /fix a b?", 1),
        ("/Skills fix", "did you mean /fix?", 1),
        ("/HELP me", "did you mean /help me?", 1),
        ("/Clear me", "did you mean /clear?", 1),
        (
            "/latin x",
            "failed to invoke skill `latin`: SKILL.md of the skill `latin` is not UTF-8 text",
            1,
        ),
        ("/empty", "failed to invoke skill `empty`: it has no SKILL.md", 1),
        (
            "/lore",
            "failed to invoke skill `lore`: it is for the model only (user-invocable: false)",
            1,
        ),
    ] {
        let run = test.again().args(["chat"]).stdin(line).run();
        run.status(status).stderr_has(due);
    }
    server.finish();
    // A name that is far, a path, and whatever begins with a blank.
    let lines = ["/weather in Rome", "/etc/fix it", " /fixx it", "\t/exit now"];
    for line in lines {
        let server = Server::start([Reply::text("yes")]);
        let test = test.again().endpoint(&server).args(["chat"]);
        test.stdin(format!("{line}\n \n")).run().success().stdout("yes\n");
        assert_eq!(questions(&server.finish()[0]), [line.trim()]);
    }
    let server = Server::start([Reply::text("yes")]);
    let run = test.again().endpoint(&server).args(["chat"]).stdin("/latin\ngo on\n");
    run.run().status(1).stdout("yes\n");
    assert_eq!(questions(&server.finish()[0]), ["go on"]);
}

/// Every line that fails is a turn to programs, sent or not.
#[test]
fn programs_get_a_result_for_what_was_not_sent() {
    let server = Server::start([Reply::text("yes")]);
    let test = skills().folder("skills/empty").endpoint(&server);
    let test = test.args(["chat", "-o", "jsonl"]);
    let run = test.stdin("/empty\n/nope\nhello\n").run().status(1);
    let records: Vec<serde_json::Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let results: Vec<_> = records.iter().filter(|r| r["type"] == "result").collect();
    let told: Vec<_> =
        results.iter().map(|r| (r["status"].as_str().unwrap(), r["exit_code"].as_u64())).collect();
    assert_eq!(told, [("error", Some(1)), ("error", Some(1)), ("ok", Some(0))]);
    assert_eq!(
        results[0]["error"]["message"],
        "failed to invoke skill `empty`: it has no SKILL.md"
    );
    let message = results[1]["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("there is no command /nope"));
    assert_eq!(server.finish().len(), 1);
}

/// What cannot be invoked by hand is counted, not listed.
#[test]
fn skills_are_listed_as_far_as_they_can_be_invoked() {
    let server = Server::start([]);
    let test = skills()
        .folder("skills/empty")
        .skill("lore", "---\ndescription: d\nuser-invocable: false\n---\nLore.\n")
        .skill("help", "---\ndescription: Helps.\n---\nHelp.\n")
        .skill("sp ace", "---\ndescription: Blank.\n---\nBlank.\n")
        .endpoint(&server);
    let run = test.args(["chat"]).stdin("/skills\n").run().success();
    let told: Vec<&str> = run.stderr.lines().collect();
    assert!(
        told.ends_with(&[
            "skills-runner: /fix: Fixes things.",
            "skills-runner: /pdf: Reads PDF.",
            "skills-runner: the skill `help` cannot be called by a slash, because /help is a \
             command: ask the model to use it",
            "skills-runner: the skill `sp ace` cannot be called by a slash, because its name is \
             more than one word: ask the model to use it",
            "skills-runner: 1 more skill is for the model only",
            "skills-runner: 1 more skill is unusable: `skills-runner skills list` tells why",
        ]),
        "{told:#?}"
    );
    server.finish();
}

/// A person reads what would help, not the model alone.
#[test]
fn a_missing_module_is_told_with_its_command() {
    let script = json!({"skill_name": "fix", "script": "import surely_missing"}).to_string();
    let call = ("run_python_script", script.as_str());
    let server = Server::start([Reply::calls([call]), Reply::text("no")]);
    let run = skills().endpoint(&server).args(["go"]).run().success();
    let due = "; hint: `surely_missing` is not installed: `skills-runner skills setup fix PACKAGE` \
               installs it";
    let told = run.stderr.lines().find(|line| line.starts_with("← exit 1, "));
    assert!(told.is_some_and(|line| line.contains(due)), "{}", run.stderr);
    server.finish();
}

/// A prompt on the command line is a prompt.
#[test]
fn a_single_question_invokes_nothing() {
    let server = Server::start([Reply::text("ok")]);
    skills().endpoint(&server).args(["/fix it"]).run().success();
    assert_eq!(questions(&server.finish()[0]), ["/fix it"]);
}

/// The key is masked in a document that holds it, however it comes.
#[test]
fn the_key_is_masked_in_what_is_invoked() {
    let key = "sk-canary-4f9a1b7c";
    let document = format!("# Key\nUse {key} for $ARGUMENTS.\n");
    let server = Server::start([
        Reply::calls([
            ("get_skill", r#"{"skill_name":"key"}"#),
            ("get_skill", r#"{"skill_name":"key"}"#),
        ]),
        Reply::text("ok"),
        Reply::text("ok"),
    ]);
    let test = Test::new().skill("key", &document).endpoint(&server).env("LLM_API_KEY", key);
    let run = test.args(["chat"]).stdin("go\n/key all\n").run();
    run.success();
    let requests = server.finish();
    assert!(requests[1].tool_result("call_2").contains("[unchanged: "));
    assert!(
        requests[2].last_message()["content"].as_str().unwrap().contains("Use [secret] for all.")
    );
}
