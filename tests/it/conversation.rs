//! The main workflow, end to end: the model lists skills, loads them, reads files, runs scripts.

use serde_json::json;

use crate::harness::{ProgramText, Reply, SKILL_TOOLS, Server, Test};

const SUMS: &str = "---\nname: sums\ndescription: Adds numbers.\n---\n# Sums\n\nRun `python scripts/add.py 1 2`.\n";
const WORDS: &str =
    "---\nname: words\ndescription: Counts words — genauer: Wörter.\n---\nImport `counting`.\r\n";

fn skills() -> Test {
    Test::new()
        .skill("sums", SUMS)
        .file("skills/sums/scripts/add.py", "import sys\nprint(sum(map(int, sys.argv[1:])))\n")
        .venv("sums")
        .file("skills/words/SKILL.MD", WORDS)
        .file("skills/words/counting.py", "def count(text):\n    return len(text.split())\n")
        .file("skills/words/references/notes.txt", "first\nsecond\nthird\n")
        .venv("words")
        .skill("files", "---\ndescription: Writes files.\n---\n")
        .venv("files")
}

/// Six requests; every call gets one result, in order, with the exact bytes.
#[test]
fn model_lists_loads_reads_and_runs_three_skills() {
    let write = "open('out.txt', 'w').write('written')\nprint('ok')";
    let server = Server::start([
        Reply::calls([("list_skills", "{}")]),
        Reply::calls([
            ("get_skill", r#"{"skill_name":"sums"}"#),
            ("get_skill", r#"{"skill_name":"words"}"#),
        ]),
        Reply::call(
            "read_file_in_skill",
            &json!({"skill_name": "words", "file_path": "references/notes.txt"}),
        ),
        Reply::calls([
            (
                "run_python_script",
                r#"{"skill_name":"sums","file_path":"scripts/add.py","args":["40","2"]}"#,
            ),
            (
                "run_python_script",
                r#"{"skill_name":"words","script":"import counting, sys\nprint(counting.count('a b c'))\nprint('err', file=sys.stderr)"}"#,
            ),
        ]),
        Reply::call("run_python_script", &json!({"skill_name": "files", "script": write})),
        Reply::text("42, 3, and a file."),
    ]);
    let test = skills().endpoint(&server);
    let run = test.next_run().args(["do it all"]).run();
    run.success()
        .stdout("42, 3, and a file.\n")
        .stderr_has("→ run_python_script sums: scripts/add.py 40 2")
        .stderr_has("← exit 0, 3 bytes");
    assert_eq!(test.read("out.txt"), "written");

    let requests = server.finish();
    assert_eq!(requests.len(), 6);
    assert_eq!(requests[0].tool_names(), SKILL_TOOLS);
    assert!(requests[0].system().contains("- words: Counts words — genauer: Wörter.\n"));
    for request in &requests[1..] {
        assert_eq!(
            request.system(),
            requests[0].system(),
            "the beginning of the prompt never changes"
        );
        assert_eq!(request.tools(), requests[0].tools());
    }
    let last = &requests[5];
    let results: Vec<&str> = last
        .messages()
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert_eq!(
        results[0],
        r#"{"skills":[{"name":"files"},{"name":"sums"},{"name":"words"}],"note":"your system message has the whole descriptions of all these skills"}"#
    );
    let base = |name: &str| {
        format!(
            "Base directory for this skill: {}\n\n",
            test.path(format!("skills/{name}")).display()
        )
    };
    let files = "\n\nOther files of this skill (read_file_in_skill reads them):\n";
    assert_eq!(results[1], format!("{}{SUMS}{files}- scripts/add.py\n", base("sums")));
    assert_eq!(
        results[2],
        format!("{}{WORDS}{files}- counting.py\n- references/notes.txt\n", base("words"))
    );
    assert_eq!(results[3], "first\nsecond\nthird\n");
    let run = |index: usize| ProgramText::parse(results[index]);
    assert!(
        run(4).head.starts_with("exit 0, ")
            && run(4)
                .head
                .trim_end()
                .ends_with(test.path("").to_str().unwrap().trim_end_matches('/'))
    );
    assert_eq!((run(4).stdout, run(4).stderr), ("42\n", ""));
    assert_eq!((run(5).stdout, run(5).stderr), ("3\n", "err\n"));
    assert_eq!(run(6).stdout, "ok\n");
    let connections: std::collections::BTreeSet<_> =
        requests.iter().map(|request| request.connection).collect();
    assert_eq!(connections.len(), 1, "one connection serves the whole run");
}

/// Mistakes of the model are reported to it, and the run continues.
#[test]
fn mistakes_of_the_model_are_reported_to_it() {
    let all_tools = format!("the tools are: {}", SKILL_TOOLS.join(", "));
    let table = [
        ("get_skils", "{}", "did you mean `get_skill`?"),
        ("fly", "{}", &all_tools),
        ("get_skill", "{\"skill_name\":", "the arguments of get_skill are wrong"),
        ("get_skill", "{}", "`skill_name` is missing"),
        ("get_skill", r#"{"skill_name":["sums"]}"#, "`skill_name` must be a string, not an array"),
        ("get_skill", r#"{"skill_name":"sum"}"#, "did you mean `sums`?"),
        ("get_skill", r#"{"skill_name":"../sums"}"#, "there is no skill"),
        (
            "read_file_in_skill",
            r#"{"skill_name":"sums","file_path":"../nothing/SKILL.MD"}"#,
            "there is no skill `nothing`",
        ),
        (
            "read_file_in_skill",
            r#"{"skill_name":"sums","file_path":"add.py"}"#,
            "did you mean `scripts/add.py`?",
        ),
        (
            "read_file_in_skill",
            r#"{"skill_name":"words","file_path":"refernces/"}"#,
            "did you mean `references`?",
        ),
        (
            "read_file_in_skill",
            r#"{"skill_name":"sums","file_path":"SKILL.md","offset":-1}"#,
            "`offset` must be 1 or more",
        ),
        ("run_python_script", r#"{"skill_name":"sums"}"#, "give `script`"),
        ("run_python_script", r#"{"skill_name":"sums","script":"1","file_path":"x"}"#, "not both"),
        (
            "run_python_script",
            r#"{"skill_name":"sums","file_path":"/etc/passwd"}"#,
            "cannot be run",
        ),
    ];
    let calls = table.map(|(name, arguments, _)| (name, arguments));
    let server = Server::start([Reply::calls(calls), Reply::text("I see.")]);
    let run = skills().endpoint(&server).args(["go"]).run();
    run.success().stdout("I see.\n");
    let requests = server.finish();
    let results = requests[1].messages().iter().filter(|message| message["role"] == "tool");
    for ((name, arguments, expected), result) in table.iter().zip(results) {
        let content = result["content"].as_str().unwrap();
        let error: serde_json::Value = serde_json::from_str(content).unwrap();
        let error = error["error"].as_str().unwrap();
        assert!(error.contains(expected), "{name} {arguments}: {error}");
    }
    // Invalid arguments must not make the history invalid.
    for message in requests[1].messages() {
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let arguments = call["function"]["arguments"].as_str().unwrap();
            serde_json::from_str::<serde_json::Value>(arguments).unwrap();
        }
    }
}

/// Arguments in the forms that small models produce.
#[test]
fn malformed_arguments_of_small_models_are_accepted() {
    let wrapped = serde_json::to_string(
        r#"{"skill_name":"sums","file_path":"scripts/add.py","args":"[\"1\",2]"}"#,
    )
    .unwrap();
    let server = Server::start([
        Reply::calls([("run_python_script", wrapped.as_str()), ("list_skills", "")]),
        Reply::text("ok"),
    ]);
    skills().endpoint(&server).args(["go"]).run().success();
    let requests = server.finish();
    let result = requests[1].messages().iter().find(|message| message["role"] == "tool").unwrap();
    assert!(result["content"].as_str().unwrap().contains("--- stdout (2 bytes)\n3\n"), "{result}");
}

/// With `--no-scripts` the tool is not offered, and a call of it is refused.
#[test]
fn no_scripts_option_disables_scripts() {
    let server = Server::start([
        Reply::calls([(
            "run_python_script",
            r#"{"skill_name":"sums","script":"open('ran','w')"}"#,
        )]),
        Reply::text("ok"),
    ]);
    let test = skills().endpoint(&server);
    test.next_run().args(["--no-scripts", "go"]).run().success();
    let requests = server.finish();
    assert!(!requests[0].tool_names().contains(&"run_python_script"));
    assert!(requests[1].last_message()["content"].as_str().unwrap().contains("switched off"));
    assert!(!test.exists("skills/sums/ran"));
}

/// Results are shortened once for a full context; the same request is never sent again.
#[test]
fn long_results_are_shortened_when_the_context_is_full() {
    let full = || Reply::error(400, "This model's maximum context length is 4096 tokens");
    let call = || {
        Reply::call("read_file_in_skill", &json!({"skill_name": "words", "file_path": "long.txt"}))
    };
    let test = skills().file("skills/words/long.txt", "a line of text\n".repeat(1000));
    let server = Server::start([call(), full(), Reply::text("done")]);
    let run = test.next_run().endpoint(&server).args(["read"]).run();
    run.success().stdout("done\n").stderr_has("tool results were shortened (1)");
    let requests = server.finish();
    let content = requests[2].messages()[3]["content"].as_str().unwrap();
    assert!(content.contains("bytes left out: the context is full]"));
    assert!(content.len() < 3000, "{}", content.len());

    // No second attempt if that was not enough.
    let server = Server::start([call(), full(), full()]);
    let run = test.next_run().endpoint(&server).args(["read"]).run();
    run.status(1).stderr_has("context window");
    server.finish();
    // No second request if there is nothing to shorten.
    let server = Server::start([full()]);
    let run = test.endpoint(&server).args(["read"]).run();
    run.status(1).stderr_has("context window");
    server.finish();
}
