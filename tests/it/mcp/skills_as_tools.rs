//! `mcp --skills-as-tools`: each skill is a tool of its own.

use serde_json::{Value, json};

use super::Client;
use crate::harness::Test;

const OURS: [&str; 4] = ["list_skills", "get_skill", "read_file_in_skill", "run_python_script"];

fn document(name: &str, more: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}.\n{more}---\n\n{body}\n")
}

fn server(test: &Test) -> Client {
    Client::modern_with(test, &["--skills-as-tools"])
}

/// The names of the tools behind our own.
#[track_caller]
fn skills(client: &mut Client) -> Vec<String> {
    let listed = client.ask("tools/list", json!({}));
    let tools = listed["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names[..4], OURS);
    names[4..].iter().map(ToString::to_string).collect()
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

/// R-SKILL-5.
#[test]
fn each_skill_is_a_tool_that_reads_it() {
    let hint = "argument-hint: \"[city] [day]\"\n";
    let test = Test::new()
        .skill("weather", &document("weather", hint, "Ask for $0 on $1."))
        .skill("hidden", &document("hidden", "disable-model-invocation: true\n", "# H"))
        .skill("inner", &document("inner", "user-invocable: false\n", "In {baseDir}."))
        .folder("skills/empty");
    let mut client = server(&test);
    assert_eq!(skills(&mut client), ["inner", "weather"]);
    let listed = client.ask("tools/list", json!({}));
    assert_eq!(
        listed["tools"][5],
        json!({
            "name": "weather",
            "title": "weather",
            "description": "Does weather.",
            "inputSchema": {
                "type": "object",
                "properties": {"arguments": {"type": "string", "description": "[city] [day]"}},
            },
            "annotations": {
                "title": "weather",
                "readOnlyHint": true,
                "destructiveHint": false,
                "idempotentHint": true,
                "openWorldHint": false,
            },
        })
    );
    let called = client.call("weather", json!({"arguments": "Oslo 'next day'"}));
    let read =
        client.call("get_skill", json!({"skill_name": "weather", "arguments": "Oslo 'next day'"}));
    assert_eq!(called, read);
    let mut legacy = Client::legacy_with(&test, &["--skills-as-tools"]);
    let old = legacy.ask("tools/list", json!({}));
    assert_eq!(old["tools"], listed["tools"]);
    let called = legacy.call("weather", json!({"arguments": "Oslo 'next day'"}));
    assert_eq!(called["content"], read["content"]);
    let folder = test.path("skills/weather");
    let folder = folder.display();
    let due = format!("Base directory for this skill: {folder}\n\n\nAsk for Oslo on next day.\n");
    assert_eq!((text(&called), &called["isError"]), (&*due, &json!(false)));
    // Without words it is an invocation all the same.
    for arguments in [json!({}), json!({"arguments": null}), Value::Null] {
        let called = client.call("inner", arguments);
        let folder = test.path("skills/inner");
        assert!(text(&called).ends_with(&format!("\nIn {}.\n", folder.display())), "{called}");
    }
    let bare = client.ask("tools/call", json!({"name": "inner"}));
    assert!(!text(&bare).contains("{baseDir}"), "{bare}");
    let outcome = client.close().status(0);
    outcome.stderr_has("→ get_skill weather: Oslo 'next day'");
}

/// What can be called is what is listed, and wrong arguments are told by a
/// result as of every tool.
#[test]
fn what_is_no_such_tool_is_refused() {
    let test = Test::new()
        .skill("weather", &document("weather", "", "# W"))
        .skill("hidden", &document("hidden", "disable-model-invocation: true\n", "# H"));
    let mut client = server(&test);
    for (name, due) in [
        ("wether", "did you mean `weather`?"),
        ("list_skill", "did you mean `list_skills`?"),
        ("hidden", "there is no tool `hidden`"),
        ("", "there is no tool ``"),
    ] {
        let error = client.ask_in_vain("tools/call", json!({"name": name}));
        assert_eq!(error["code"], -32602, "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(due), "{message}");
    }
    for arguments in [json!({"arguments": {"city": "Oslo"}}), json!(["Oslo"])] {
        let failed = client.call("weather", arguments);
        assert_eq!(failed["isError"], true, "{failed}");
        assert!(text(&failed).contains("error"), "{failed}");
    }
    // What else is given does not name another skill.
    let called = client.call("weather", json!({"skill_name": "hidden"}));
    assert!(text(&called).contains("# W"), "{called}");
    // Without the option there are no such tools.
    let mut plain = Client::modern(&test);
    assert!(skills(&mut plain).is_empty());
    let error = plain.ask_in_vain("tools/call", json!({"name": "weather"}));
    assert_eq!(error["code"], -32602, "{error}");
}

/// Names that no tool may have are changed; what then has the name of another
/// is left out, and told once.
#[test]
fn names_are_fit_for_tools_and_never_twice() {
    let long = "l".repeat(70);
    let test = Test::new()
        .skill("two words", &document("two", "", "# Changed"))
        .skill("two_words", &document("two_words", "", "# Exact"))
        .skill("größe", &document("size", "", "# Size"))
        .skill("v1.2", &document("v1", "", "# V"))
        .skill("list_skills", &document("list_skills", "", "# Mine"))
        .skill("get skill", &document("get", "", "# Mine"))
        .skill(&long, &document("long", "", "# Long"));
    let mut client = server(&test);
    let due = ["gr__e", &long[..64], "two_words", "v1.2"];
    assert_eq!(skills(&mut client), due);
    assert_eq!(skills(&mut client), due);
    for (name, due) in [("two_words", "# Exact"), ("gr__e", "# Size"), (&long[..64], "# Long")] {
        let called = client.call(name, json!({}));
        assert!(text(&called).contains(due), "{called}");
    }
    let listed = client.call("list_skills", json!({}));
    assert!(listed["structuredContent"]["skills"].is_array(), "{listed}");
    let outcome = client.close().status(0);
    let warnings: Vec<&str> =
        outcome.stderr.lines().filter(|line| line.contains("is no tool of its own")).collect();
    assert_eq!(warnings.len(), 3, "{}", outcome.stderr);
    assert!(
        outcome
            .stderr
            .contains("`two words` is no tool of its own: `two_words` is the skill `two_words`")
    );
    assert!(
        outcome
            .stderr
            .contains("`list_skills` is no tool of its own: `list_skills` is a tool of the server")
    );
}

/// Nothing is remembered, and no skills at all are no fault.
#[test]
fn the_tools_are_those_of_the_disk() {
    let test = Test::new().folder("skills");
    let mut client = server(&test);
    assert!(skills(&mut client).is_empty());
    let listed = client.call("list_skills", json!({}));
    assert_eq!(listed["isError"], false);
    assert_eq!(
        listed["structuredContent"],
        json!({"skills": [], "note": "the skills folder is empty"})
    );
    let test = test.skill("late", &document("late", "", "First."));
    assert_eq!(skills(&mut client), ["late"]);
    assert!(text(&client.call("late", json!({}))).ends_with("First.\n"));
    let test = test.skill("late", &document("late", "", "Second."));
    assert!(text(&client.call("late", json!({}))).ends_with("Second.\n"));
    std::fs::remove_dir_all(test.path("skills/late")).unwrap();
    let error = client.ask_in_vain("tools/call", json!({"name": "late"}));
    assert_eq!(error["code"], -32602, "{error}");
    assert!(skills(&mut client).is_empty());
}

/// More than one page, our own tools on the first.
#[test]
fn many_skills_are_tools_in_pages() {
    let mut test = Test::new();
    for number in 0..250 {
        let name = format!("s-{number:04}");
        test = test.skill(&name, &document(&name, "", "#"));
    }
    let mut client = server(&test);
    assert_eq!(skills(&mut client).len(), 246);
    let cursor = &client.ask("tools/list", json!({}))["nextCursor"];
    let rest = client.ask("tools/list", json!({"cursor": cursor}));
    let names = rest["tools"].as_array().unwrap();
    let names: Vec<&Value> = names.iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["s-0246", "s-0247", "s-0248", "s-0249"]);
    assert!(rest["nextCursor"].is_null(), "{rest}");
    assert!(text(&client.call("s-0249", json!({}))).ends_with("#\n"));
    let error = client.ask_in_vain("tools/list", json!({"cursor": "s-0249"}));
    assert_eq!(error["code"], -32602, "{error}");
}
