//! Skills with arguments, invoked by the model and by the user.

use serde_json::json;

use crate::harness::{Outcome, Reply, Request, Server, Test, seconds};

const FRONT: &str = "---\nname: fix\ndescription: Fixes things.\nargument-hint: '[what]'\n---\n";
const BODY: &str = "Fix $ARGUMENTS: first $0, in ${CLAUDE_SKILL_DIR}/x, not \\$0.\n";
const FILES: &str = "\n\nOther files of this skill (read_file_in_skill reads them):\n";

/// The skill `fix` with an additional file, and a plain skill.
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

/// The document of `fix` without arguments.
fn whole_document(test: &Test) -> String {
    let folder = test.path("skills/fix");
    format!("{FRONT}{BODY}").replace("${CLAUDE_SKILL_DIR}", folder.to_str().unwrap())
}

/// The body of `fix` with the arguments `a 'b c'`.
fn fixed(test: &Test) -> String {
    format!("Fix a 'b c': first a, in {}/x, not $0.\n", test.path("skills/fix").display())
}

#[track_caller]
fn get(test: &Test, arguments: &serde_json::Value) -> Outcome {
    let json = arguments.to_string();
    test.next_run().args(["tool", "get_skill", &json]).run()
}

/// The user messages of a request.
fn questions(request: &Request) -> Vec<&str> {
    let users = request.messages().iter().filter(|m| m["role"] == "user");
    users.map(|m| m["content"].as_str().unwrap()).collect()
}

/// Without arguments the document is returned whole; with arguments, even empty ones, the body with
/// its values.
#[test]
fn arguments_replace_the_placeholders_of_the_body() {
    let test = skills();
    let (base, fixed) = (base(&test, "fix"), fixed(&test));
    let whole = format!("{base}{}{FILES}- notes.md\n", whole_document(&test));
    get(&test, &json!({"skill_name": "fix"})).stdout(&whole);
    let arguments = json!({"skill_name": "fix", "arguments": null});
    get(&test, &arguments).stdout(&whole);
    let arguments = json!({"skill_name": "fix", "arguments": "a 'b c'"});
    let expected = format!("{base}{fixed}{FILES}- notes.md\n");
    get(&test, &arguments).success().stdout(&expected);
    let arguments = json!({"skill_name": "fix", "arguments": ""});
    get(&test, &arguments).stdout_has("Fix : first $0, in /");
}

#[test]
fn arguments_without_a_placeholder_are_appended() {
    let test = skills();
    let base = base(&test, "pdf");
    for (arguments, expected) in [("", ""), ("a.pdf  'b'", "\n\nARGUMENTS: a.pdf  'b'")] {
        let call = json!({"skill_name": "acrobat", "arguments": arguments});
        let expected = format!("{base}# PDF\n{expected}");
        get(&test, &call).success().stdout(&format!("{}\n", expected.trim_end_matches('\n')));
    }
}

/// A document of maximal size, with a megabyte for each placeholder, gives a clear error quickly.
#[test]
fn too_large_expansion_is_refused() {
    let test = skills().skill("many", &"$ARGUMENTS".repeat(100_000));
    let call = json!({"skill_name": "many", "arguments": "x".repeat(1 << 20)}).to_string();
    let run = test.next_run().args(["tool", "get_skill", "-"]).stdin(call);
    let run = run.run().status(1).took_at_most(seconds(10.0));
    run.stdout_has("larger than 2 MiB with these arguments");
    let call = json!({"skill_name": "many", "arguments": "xx"});
    get(&test, &call).success().stdout_has("xxxxxx");
}

/// An unchanged document is sent once; the list of files whenever it has changed.
#[test]
fn unchanged_document_is_sent_once() {
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
    let run = test.next_run().endpoint(&server).args(["go"]).run();
    run.success().stderr_has("← unchanged, already read");
    let requests = server.finish();
    let result = |number: u32| requests[4].tool_result(&format!("call_{number}"));
    let base = base(&test, "fix");
    let whole = format!("{base}{}{FILES}- notes.md\n", whole_document(&test));
    let note = format!("{base}[unchanged: the text is above in this conversation]");
    assert_eq!(result(1), whole);
    assert_eq!(result(2), note);
    assert!(result(3).contains("Fix x: first x"), "another text");
    assert_eq!(result(4), format!("{note}{FILES}- new.md\n- notes.md\n"));
    assert!(result(5).ends_with("# PDF\n"), "another skill");
}

/// A document that was changed on disk, or is no longer in the conversation, is sent whole.
#[test]
fn changed_or_dropped_document_is_sent_again() {
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
    let run = test.next_run().endpoint(&server).args(["chat"]).stdin(stdin);
    run.run().success().stdout("one\ntwo\nthree\n");
    let requests = server.finish();
    assert!(requests[1].tool_result("call_1").ends_with("# PDF\n"));
    assert!(requests[2].tool_result("call_2").ends_with("# PDF 2\n"));
    assert!(requests[4].tool_result("call_3").contains("[unchanged: "));
    assert!(requests[6].tool_result("call_4").ends_with("# PDF 2\n"));
}

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
    let run = test.next_run().endpoint(&server).args(["go"]).run();
    run.success().stderr_has("tool results were shortened (1)");
    let requests = server.finish();
    assert!(requests[2].tool_result("call_1").contains(&document));
    assert!(requests[2].tool_result("call_2").len() < 3000);
    // Nothing else is left to shorten.
    let server = Server::start([calls(), full(), full(), Reply::text("done")]);
    let run = test.next_run().endpoint(&server).args(["go"]).run();
    run.success().stderr_has("skill documents were shortened (1)");
    assert!(server.finish()[3].tool_result("call_1").len() < 3000);
}

/// For `/SKILL arguments` the model gets the skill with its values, and a note that the user
/// invoked it.
#[test]
fn user_invokes_a_skill() {
    let test = skills();
    let server = Server::start([Reply::text("one"), Reply::text("two"), Reply::text("three")]);
    let stdin = "/fix   a 'b c' \n/acrobat\n/etc/hosts is what?\n";
    let run = test.next_run().endpoint(&server).args(["chat"]).stdin(stdin);
    let run = run.run().success().stdout("one\ntwo\nthree\n");
    run.stderr_has("using skill `fix`, ");
    let requests = server.finish();
    let sent = questions(&requests[2]);
    let (base_fix, fixed) = (base(&test, "fix"), fixed(&test));
    let expected = format!(
        "I invoke the skill `fix`. Follow its instructions below; they are whole, get_skill is not needed.\n\n\
         {base_fix}{fixed}{FILES}- notes.md\n"
    );
    assert_eq!(sent[0], expected);
    assert!(sent[1].starts_with("I invoke the skill `pdf`. "), "{}", sent[1]);
    assert!(sent[1].ends_with("# PDF\n"), "no frontmatter, no arguments: {}", sent[1]);
    assert_eq!(sent[2], "/etc/hosts is what?");
}

/// The words after `chat` are its first line, also with `--dry-run`. The bytes of an arrow key
/// are not a line.
#[test]
fn first_turn_can_invoke_a_skill() {
    let test = skills();
    let server = Server::start([Reply::text("one"), Reply::text("two")]);
    let run = test.next_run().endpoint(&server);
    let run = run.args(["chat", "/fix", "a b"]).stdin("\x1b[A\n \x1b[B\nmore\n");
    run.run().success().stdout("one\ntwo\n").stderr_has("using skill `fix`, ");
    let requests = server.finish();
    assert!(questions(&requests[0])[0].starts_with("I invoke the skill `fix`."));
    assert_eq!(questions(&requests[1])[1], "more");
    let endpoint = ["--no-env-file", "-m", "x", "--dry-run"];
    let preview = |words: &[&str]| {
        let test = test.next_run().env("LLM_API_BASE_URL", "http://127.0.0.1:9/v1");
        test.args(endpoint).args(words).run()
    };
    let request = preview(&["chat", "/fix a"]).success().stdout_json();
    let sent = &request["body"]["messages"][1]["content"];
    assert!(sent.as_str().unwrap().starts_with("I invoke the skill `fix`."));
    preview(&["chat", "/fixx"]).status(1).stdout("").stderr_has("did you mean `/fix`?");
}

/// A skill invoked by the user counts as loaded.
#[test]
fn skill_invoked_by_the_user_is_not_sent_again() {
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

/// Works on a terminal as from a pipe; a failed invocation can be sent again.
#[test]
fn terminal_lists_and_invokes_skills() {
    let server = Server::start([Reply::error(400, "no"), Reply::text("Fixed.")]);
    let mut terminal = skills().endpoint(&server).spawn_on_terminal();
    terminal.expect("> ").type_line("/skills");
    terminal.expect("/fix: Fixes things.").expect("/pdf: Reads PDF.");
    terminal.expect("> ").type_line("/help").expect("/SKILL [arguments]").expect("> ");
    terminal
        .type_line("/fx it")
        .expect("did you mean `/fix it`?")
        .expect("hint: start the line with a space to send it as a question")
        .expect("> ");
    terminal.type_line(" /fx it").expect("no").expect("> ");
    terminal.type_line("/fix it").expect("using skill `fix`").expect("Fixed.");
    terminal.expect("> ").ctrl('d');
    terminal.wait_exit().success();
    let requests = server.finish();
    assert_eq!(questions(&requests[0]), ["/fx it"], "a line with a leading blank is a question");
    let sent = questions(&requests[1]);
    assert!(sent.len() == 1 && sent[0].contains("Fix it: first it"), "{sent:?}");
}

#[test]
fn list_of_skills_is_limited() {
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

/// Nothing is sent for an unknown skill, an unreadable skill, or a command.
#[test]
fn invalid_invocations_are_reported() {
    let server = Server::start([]);
    let test = skills()
        .skill("clear", "# A skill\n")
        .file("skills/latin/SKILL.md", b"caf\xe9\n")
        .folder("skills/empty")
        .skill("lore", "---\ndescription: d\nuser-invocable: false\n---\nLore.\n");
    let test = test.endpoint(&server);
    for (line, expected, status) in [
        ("/fixx", "there is no command or skill /fixx; did you mean `/fix`?", 1),
        ("/skils", "did you mean `/skills`?", 1),
        ("/weather", "or skill /weather; /help lists the commands, /skills the skills", 1),
        ("/", "there is no command or skill /;", 1),
        ("/clear", "the conversation is cleared", 0),
        ("/clear all", "/clear takes no argument", 1),
        ("/fixx  a 'b c'", "did you mean `/fix a 'b c'`?", 1),
        ("/FIX a", "did you mean `/fix a`?", 1),
        ("/Acrobt a", "did you mean `/acrobat a`?", 1),
        ("/skill fix a b", "did you mean `/fix a b`?", 1),
        ("/Skills fix", "did you mean `/fix`?", 1),
        ("/HELP me", "did you mean `/help me`?", 1),
        ("/Clear me", "did you mean `/clear`?", 1),
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
        let run = test.next_run().args(["chat"]).stdin(line).run();
        run.status(status).stderr_has(expected);
    }
    server.finish();
    // A dissimilar name, a path, and a line with a leading blank are questions.
    let lines = ["/weather in Rome", "/etc/fix it", " /fixx it", "\t/exit now"];
    for line in lines {
        let server = Server::start([Reply::text("yes")]);
        let test = test.next_run().endpoint(&server).args(["chat"]);
        test.stdin(format!("{line}\n \n")).run().success().stdout("yes\n");
        assert_eq!(questions(&server.finish()[0]), [line.trim()]);
    }
    let server = Server::start([Reply::text("yes")]);
    let run = test.next_run().endpoint(&server).args(["chat"]).stdin("/latin\ngo on\n");
    run.run().status(1).stdout("yes\n");
    assert_eq!(questions(&server.finish()[0]), ["go on"]);
}

/// Programs get a result for every failed line, sent or not.
#[test]
fn jsonl_has_a_result_for_lines_not_sent() {
    let server = Server::start([Reply::text("yes")]);
    let test = skills().folder("skills/empty").endpoint(&server);
    let test = test.args(["chat", "-o", "jsonl"]);
    let run = test.stdin("/empty\n/nope\nhello\n").run().status(1);
    let records: Vec<serde_json::Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let results: Vec<_> = records.iter().filter(|r| r["type"] == "result").collect();
    let reported: Vec<_> =
        results.iter().map(|r| (r["status"].as_str().unwrap(), r["exit_code"].as_u64())).collect();
    assert_eq!(reported, [("error", Some(1)), ("error", Some(1)), ("ok", Some(0))]);
    assert_eq!(
        results[0]["error"]["message"],
        "failed to invoke skill `empty`: it has no SKILL.md"
    );
    let message = results[1]["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("there is no command or skill /nope"));
    assert_eq!(server.finish().len(), 1);
}

/// Skills that the user cannot invoke are counted, not listed.
#[test]
fn only_invocable_skills_are_listed() {
    let server = Server::start([]);
    let test = skills()
        .folder("skills/empty")
        .skill("lore", "---\ndescription: d\nuser-invocable: false\n---\nLore.\n")
        .skill("help", "---\ndescription: Helps.\n---\nHelp.\n")
        .skill("sp ace", "---\ndescription: Blank.\n---\nBlank.\n")
        .endpoint(&server);
    let run = test.args(["chat"]).stdin("/skills\n").run().success();
    let reported: Vec<&str> = run.stderr.lines().collect();
    assert!(
        reported.ends_with(&[
            "skills-runner: /fix: Fixes things.",
            "skills-runner: /pdf: Reads PDF.",
            "skills-runner: the skill `help` cannot be used as /help, because that is a \
             command: ask the model to use it",
            "skills-runner: the skill `sp ace` cannot be used as /sp ace, because its name is \
             not a single word: ask the model to use it",
            "skills-runner: 1 more skill is for the model only",
            "skills-runner: 1 more skill is unusable: `skills-runner skills list` shows why",
        ]),
        "{reported:#?}"
    );
    server.finish();
}

/// The remedy is shown to the user, not only to the model.
#[test]
fn missing_module_is_reported_with_a_command() {
    let script = json!({"skill_name": "fix", "script": "import surely_missing"}).to_string();
    let call = ("run_python_script", script.as_str());
    let server = Server::start([Reply::calls([call]), Reply::text("no")]);
    let run = skills().endpoint(&server).args(["go"]).run().success();
    let expected = "; hint: `surely_missing` is not installed: tell the user to run: skills-runner skills setup fix PACKAGE (PACKAGE: ";
    let reported = run.stderr.lines().find(|line| line.starts_with("← exit 1, "));
    assert!(reported.is_some_and(|line| line.contains(expected)), "{}", run.stderr);
    server.finish();
}

/// A prompt of the command line invokes a skill like a line of a conversation, with standard input
/// and attachments added; a prompt on standard input does not.
#[test]
fn prompt_invokes_a_skill() {
    let test = skills().file("more.txt", "More.\n");
    let invoked = |args: &[&str], stdin: &str| {
        let server = Server::start([Reply::text("ok")]);
        let run = test.next_run().endpoint(&server).args(["-o", "json"]).args(args).stdin(stdin);
        let run = run.run().success().stderr_has("using skill `");
        let sent = server.finish()[0].last_message()["content"].as_str().unwrap().to_string();
        (sent, run.stdout_json()["skills_read"].clone())
    };
    let message = format!(
        "I invoke the skill `fix`. Follow its instructions below; they are whole, get_skill is not needed.\n\n\
         {}{}{FILES}- notes.md\n",
        base(&test, "fix"),
        fixed(&test)
    );
    let session = ["--session", "s", "--require-skill"];
    for args in
        [&["/fix", "a 'b c' "][..], &["--", "/fix   a", "'b c'"], &session, &["-c", "/fix a 'b c'"]]
    {
        let args = if args == session {
            [&session[..], &["/fix a 'b c'"]].concat()
        } else {
            args.to_vec()
        };
        let (sent, read) = invoked(&args, "");
        assert_eq!((sent, read), (message.clone(), json!(["fix"])));
    }
    let (sent, _) = invoked(&["-a", "more.txt", "/fix a 'b c'"], "log");
    let added = "<stdin>\nlog\n</stdin>\n\n<file name=\"more.txt\">\nMore.\n</file>";
    assert_eq!(sent, format!("{message}\n\nMy request:\n\n{added}"));
    let (sent, read) = invoked(&["--skill", "pdf", "--skill", "fix", "/acrobat\na"], "");
    assert!(
        sent.starts_with("I invoke the skill `fix`. ") && sent.ends_with("# PDF\n\n\nARGUMENTS: a"),
        "{sent}"
    );
    assert_eq!(read, json!(["fix", "pdf"]));
    let server = Server::start([Reply::text("ok"), Reply::text("ok")]);
    for args in [&[][..], &["-"]] {
        test.next_run().endpoint(&server).args(args).stdin("/fix it").run().success();
    }
    let requests = server.finish();
    assert!(requests.iter().all(|request| questions(request) == ["/fix it"]));
}

/// A name near that of a skill is wrong usage; any other text is a question.
#[test]
fn prompt_with_a_slash_is_reported_or_a_question() {
    let test =
        skills().folder("skills/empty").skill("lore", "---\nuser-invocable: false\n---\nLore.\n");
    let server = Server::start([]);
    let test = test.endpoint(&server);
    for (prompt, status, expected) in [
        (
            "/fixx",
            2,
            "there is no skill /fixx; did you mean `/fix`?\nhint: start the prompt with a space",
        ),
        ("/Fix a", 2, "did you mean `/fix a`?"),
        ("/skill fix a", 2, "did you mean `/fix a`?"),
        ("/empty", 78, "failed to invoke skill `empty`: it has no SKILL.md"),
        ("/lore", 78, "failed to invoke skill `lore`: it is for the model only"),
    ] {
        test.next_run().args([prompt]).run().status(status).stdout("").stderr_has(expected);
        // Wrong usage has no result.
        let run = test.next_run().args(["-o", "json", prompt]).run().status(status);
        assert_eq!(run.stdout.is_empty(), status == 2, "{prompt}");
    }
    server.finish();
    let prompts = [
        "/etc/passwd",
        "/etc/fix",
        "/weather",
        "/help",
        " /fix it",
        "\t/fixx",
        "/",
        "//fix",
        "/a:b/c d",
    ];
    for prompt in prompts {
        let server = Server::start([Reply::text("ok")]);
        test.next_run().endpoint(&server).args([prompt]).run().success();
        assert_eq!(questions(&server.finish()[0]), [prompt]);
    }
}

/// The key is masked in a document that contains it, however it is loaded.
#[test]
fn key_is_masked_in_invoked_documents() {
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
