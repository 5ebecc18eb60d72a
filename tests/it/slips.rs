//! Slips that models make in their calls: each is taken as meant, or answered with what to do.

use serde_json::{Value, json};

use crate::harness::{Reply, Server, Test};

/// What a slip must lead to.
enum Answer {
    /// The call works, and the result contains this text.
    Taken(&'static str),
    /// The call fails, and the error names the next step with this text.
    NextStep(&'static str),
}

use Answer::{NextStep, Taken};

/// Rows: tool, arguments as the model wrote them, answer.
fn slips(skill_folder: &str) -> Vec<(&'static str, String, Answer)> {
    let of = |value: &Value| value.to_string();
    let get = |name: &str| json!({"skill_name": name}).to_string();
    let read = |path: &str| json!({"skill_name": "calculator", "file_path": path}).to_string();
    let script = |text: &str| json!({"skill_name": "calculator", "script": text}).to_string();
    let run = |args: &Value| {
        of(&json!({"skill_name": "calculator", "file_path": "scripts/calc.py", "args": args}))
    };
    let mut rows = arguments(&of, &get, &read, &run, skill_folder);
    rows.extend([
        ("get_skills", get("calculator"), NextStep("did you mean `get_skill`?")),
        ("python", script("print(1)"), NextStep("use `run_python_script`")),
        ("functions.get_skill", get("calculator"), Taken("[the tool is `get_skill`]")),
        ("get_skill", get("Calculator"), Taken("[the skill is `calculator`]")),
        ("get_skill", get("calculater"), NextStep("did you mean `calculator`?")),
        ("get_skill", get("data_explorer"), Taken("# Data explorer")),
        ("get_skill", get("Data Explorer"), Taken("skills/data-explorer\n")),
        ("calculator", "{}".into(), NextStep("read it with `get_skill`, skill_name `calculator`")),
        ("bash", of(&json!({"command": "ls"})), NextStep("use `run_command`")),
        ("Bash", of(&json!({"command": "ls"})), NextStep("use `run_command`")),
        ("Edit", "{}".into(), NextStep("use `edit_file`")),
        ("Write", "{}".into(), NextStep("use `write_file`")),
        ("WebFetch", "{}".into(), NextStep("use curl with `run_command`")),
        ("Task", "{}".into(), NextStep("do the work yourself")),
        ("run_python_script", script("```python\nprint(6*7)\n```"), Taken("42")),
        ("run_python_script", script("Here it is:\n```python\nprint(6*7)\n```"), Taken("42")),
        ("run_python_script", script("python scripts/calc.py eval 1+1"), Taken("(2 bytes)\n2\n")),
        ("run_python_script", script("scripts/calc.py eval 1+1"), Taken("(2 bytes)\n2\n")),
        ("run_python_script", script("2+2"), Taken("hint: nothing was printed: print()")),
        ("run_python_script", script(r"x = 6\nprint(x*7)"), Taken("42")),
        ("run_python_script", script("print 'hi'"), NextStep("Missing parentheses in call to")),
        ("run_python_script", script("input()"), NextStep("EOFError")),
        ("run_python_script", script("prnt(1)"), NextStep("Did you mean: 'print'")),
        ("run_python_script", script("print(open('d.csv').read())"), Taken("a\n1\n")),
        (
            "run_python_script",
            script("open('out.csv', 'w').write('1')"),
            Taken("exit 0, "),
        ),
        ("run_python_script", script("1/0"), NextStep("ZeroDivisionError")),
        (
            "run_python_script",
            script("1/0"),
            NextStep("hint: the same call failed before: change something"),
        ),
        (
            "run_python_script",
            of(&json!({"skill_name": "calculator", "file_path": "python scripts/calc.py eval 1+1"})),
            Taken("(2 bytes)\n2\n"),
        ),
        ("run_python_script", of(&json!({"script": "python -m json.tool d.csv"})), NextStep("use `run_command`")),
    ]);
    rows
}

/// Slips in the arguments.
fn arguments(
    of: &dyn Fn(&Value) -> String,
    get: &dyn Fn(&str) -> String,
    read: &dyn Fn(&str) -> String,
    run: &dyn Fn(&Value) -> String,
    skill_folder: &str,
) -> Vec<(&'static str, String, Answer)> {
    let functions = "# Functions";
    vec![
        ("get_skill", Value::String(get("calculator")).to_string(), Taken("# Calculator")),
        ("get_skill", get("calculator"), Taken("unchanged")),
        ("get_skill", get("calculator"), Taken("unchanged")),
        ("read_file_in_skill", read("./references/functions.md"), Taken(functions)),
        (
            "read_file_in_skill",
            read(&format!("{skill_folder}/references/functions.md")),
            Taken(functions),
        ),
        ("run_python_script", run(&json!(r#"["eval", "1+1"]"#)), Taken("(2 bytes)\n2\n")),
        ("run_python_script", run(&json!(["eval", 2])), Taken("(2 bytes)\n2\n")),
        ("run_python_script", run(&json!("eval '1+1'")), Taken("(2 bytes)\n2\n")),
        (
            "run_python_script",
            of(
                &json!({"skill_name": "calculator", "script": "print(6*7)", "timeout_seconds": "10"}),
            ),
            NextStep("`timeout_seconds` is not an argument"),
        ),
        (
            "get_skill",
            of(&json!({"skill_name": "calculator", "format": "md"})),
            NextStep("`format` is not an argument; the arguments are: `arguments`, `skill_name`"),
        ),
        ("get_skill", of(&json!({"name": "calculator"})), Taken("unchanged")),
        (
            "read_file_in_skill",
            of(&json!({"skill_name": "calculator", "path": "references/functions.md"})),
            Taken(functions),
        ),
        ("read_file_in_skill", read("calculator/references/functions.md"), Taken(functions)),
        ("read_file_in_skill", read("skills/calculator/references/functions.md"), Taken(functions)),
        (
            "read_file_in_skill",
            read("functions.md"),
            NextStep("did you mean `references/functions.md`?"),
        ),
        (
            "read_file_in_skill",
            read("function.md"),
            NextStep("did you mean `references/functions.md`?"),
        ),
        (
            "run_python_script",
            of(&json!({"skill_name": "calculator", "file_path": "calc.py"})),
            NextStep("did you mean `scripts/calc.py`?"),
        ),
        (
            "run_python_script",
            of(
                &json!({"skill_name": "calculator", "script": "print(1)", "file_path": "scripts/calc.py"}),
            ),
            NextStep("give either `script` or `file_path`, not both"),
        ),
        (
            "run_python_script",
            of(&json!({"skill_name": "calculator", "file_path": "Scripts/Calc", "args": ["1+1"]})),
            Taken(
                "\n[ran `scripts/calc.py`, there is no `Scripts/Calc`]\n--- stdout (2 bytes)\n2\n",
            ),
        ),
        ("run_python_script", get("calculator"), NextStep("give `script` (Python source) or")),
        ("run_python_script", "{}".into(), NextStep("give `script` (Python source) or")),
        (
            "get_skill",
            "{}".into(),
            NextStep("are wrong: `skill_name` is missing; the skills are: calculator"),
        ),
        ("write_file", "{}".into(), NextStep("`path`, `content` are missing")),
        (
            "run_python_script",
            of(
                &json!({"skill_name": "calculator", "script_path": "scripts/calc.py", "args": ["eval", "1+1"]}),
            ),
            Taken("(2 bytes)\n2\n"),
        ),
        ("run_python_script", of(&json!({"code": "print(6*7)"})), Taken("42")),
        ("run_python_script", "{\"script\": \"x = 6\nprint(x*7)\"}".into(), Taken("42")),
        (
            "get_skill",
            r#"{"skill_name": "calculator""#.into(),
            NextStep("`}` is missing at the end"),
        ),
        (
            "get_skill",
            "{'skill_name': 'calculator'}".into(),
            NextStep("the JSON has single quotes"),
        ),
        (
            "read_file_in_skill",
            read("/home/u/d.csv"),
            NextStep("with `read_file` or `run_command`"),
        ),
    ]
}

#[test]
fn slips_are_taken_as_meant_or_answered_with_the_next_step() {
    let skills = concat!(env!("CARGO_MANIFEST_DIR"), "/skills");
    let test = Test::new().file("d.csv", "a\n1\n");
    let copied = test
        .next_run()
        .shell(&format!("cp -r '{skills}/calculator' '{skills}/data-explorer' skills"));
    copied.run().success();
    let rows = slips(&test.path("skills/calculator").display().to_string());
    assert!(rows.len() >= 49, "{} slips", rows.len());
    let calls = rows.iter().map(|(tool, arguments, _)| Reply::calls([(*tool, arguments.as_str())]));
    let server = Server::start(calls.chain([Reply::text("done")]));
    let run =
        test.endpoint(&server).args(["-o", "jsonl", "--max-steps", "200", "go"]).run().success();
    server.finish();
    let results = run.stdout_json_lines().into_iter().filter(|it| it["type"] == "tool_result");
    let wrong = rows.iter().zip(results).filter_map(|((tool, arguments, answer), result)| {
        let (is_ok, text) = match answer {
            Taken(text) => (true, text),
            NextStep(text) => (false, text),
        };
        let content = result["content"].as_str().unwrap();
        let content = serde_json::from_str::<Value>(content)
            .ok()
            .and_then(|value| Some(value["error"].as_str()?.to_owned()))
            .unwrap_or(content.to_owned());
        (result["ok"] != is_ok || !content.contains(text))
            .then(|| format!("{tool} {arguments}\n  expected {text}\n  found {content}"))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{} slips:\n{}", wrong.len(), wrong.join("\n"));
}
