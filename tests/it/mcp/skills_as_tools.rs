//! `mcp --skills-as-tools`: each skill is a tool.

use serde_json::{Value, json};

use super::Client;
use crate::harness::{MCP_TOOLS, Test};

fn document(name: &str, more: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}.\n{more}---\n\n{body}\n")
}

fn server(test: &Test) -> Client {
    Client::modern_with(test, &["--skills-as-tools"])
}

/// The names of the tools after the program's own.
#[track_caller]
fn skills(client: &mut Client) -> Vec<String> {
    let listed = client.result_of("tools/list", json!({}));
    let tools = listed["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names[..MCP_TOOLS.len()], MCP_TOOLS);
    names[MCP_TOOLS.len()..].iter().map(ToString::to_string).collect()
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

#[test]
fn each_skill_is_a_tool_that_returns_its_document() {
    let hint = "argument-hint: \"[city] [day]\"\n";
    let test = Test::new()
        .skill("weather", &document("weather", hint, "Ask for $0 on $1."))
        .skill("hidden", &document("hidden", "disable-model-invocation: true\n", "# H"))
        .skill("inner", &document("inner", "user-invocable: false\n", "In {baseDir}."))
        .folder("skills/empty");
    let mut client = server(&test);
    assert_eq!(skills(&mut client), ["inner", "weather"]);
    let listed = client.result_of("tools/list", json!({}));
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
    let old = legacy.result_of("tools/list", json!({}));
    assert_eq!(old["tools"], listed["tools"]);
    let called = legacy.call("weather", json!({"arguments": "Oslo 'next day'"}));
    assert_eq!(called["content"], read["content"]);
    let folder = test.path("skills/weather");
    let folder = folder.display();
    let expected =
        format!("Base directory for this skill: {folder}\n\n\nAsk for Oslo on next day.\n");
    assert_eq!((text(&called), &called["isError"]), (&*expected, &json!(false)));
    // A call without arguments also invokes the skill.
    for arguments in [json!({}), json!({"arguments": null}), Value::Null] {
        let called = client.call("inner", arguments);
        let folder = test.path("skills/inner");
        assert!(text(&called).ends_with(&format!("\nIn {}.\n", folder.display())), "{called}");
    }
    let bare = client.result_of("tools/call", json!({"name": "inner"}));
    assert!(!text(&bare).contains("{baseDir}"), "{bare}");
    let outcome = client.close().status(0);
    outcome.stderr_has("→ get_skill weather: Oslo 'next day'");
}

/// Only listed tools can be called, and wrong arguments are a tool error as for every tool.
#[test]
fn unknown_tool_is_refused() {
    let test = Test::new()
        .skill("weather", &document("weather", "", "# W"))
        .skill("hidden", &document("hidden", "disable-model-invocation: true\n", "# H"));
    let mut client = server(&test);
    for (name, expected) in [
        ("wether", "did you mean the skill `weather`?"),
        ("list_skill", "did you mean `list_skills`?"),
        ("hidden", "there is no tool `hidden`"),
        ("", "there is no tool ``"),
    ] {
        let error = client.error_of("tools/call", json!({"name": name}));
        assert_eq!(error["code"], -32602, "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(expected), "{message}");
    }
    for arguments in [json!({"arguments": {"city": "Oslo"}}), json!(["Oslo"])] {
        let failed = client.call("weather", arguments);
        assert_eq!(failed["isError"], true, "{failed}");
        assert!(text(&failed).contains("error"), "{failed}");
    }
    // Extra arguments do not name another skill.
    let called = client.call("weather", json!({"skill_name": "hidden"}));
    assert!(text(&called).contains("# W"), "{called}");
    // Without the option these tools do not exist.
    let mut plain = Client::modern(&test);
    assert!(skills(&mut plain).is_empty());
    let error = plain.error_of("tools/call", json!({"name": "weather"}));
    assert_eq!(error["code"], -32602, "{error}");
}

/// Names that are not valid for tools are changed; a skill whose changed name is already used is
/// omitted and reported once.
#[test]
fn tool_names_are_valid_and_unique() {
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
    let expected = ["gr__e", &long[..64], "two_words", "v1.2"];
    assert_eq!(skills(&mut client), expected);
    assert_eq!(skills(&mut client), expected);
    for (name, expected) in [("two_words", "# Exact"), ("gr__e", "# Size"), (&long[..64], "# Long")]
    {
        let called = client.call(name, json!({}));
        assert!(text(&called).contains(expected), "{called}");
    }
    let listed = client.call("list_skills", json!({}));
    assert!(listed["structuredContent"]["skills"].is_array(), "{listed}");
    let outcome = client.close().status(0);
    let warnings: Vec<&str> =
        outcome.stderr.lines().filter(|line| line.contains("is not offered as a tool")).collect();
    assert_eq!(warnings.len(), 3, "{}", outcome.stderr);
    for (skill, name) in [("two words", "two_words"), ("list_skills", "list_skills")] {
        let warning =
            format!("`{skill}` is not offered as a tool: another tool has the name `{name}`");
        assert!(outcome.stderr.contains(&warning), "{}", outcome.stderr);
    }
}

/// Nothing is cached, and an empty list is not an error.
#[test]
fn changed_skills_change_the_tools() {
    let test = Test::new().folder("skills");
    let mut client = server(&test);
    assert!(skills(&mut client).is_empty());
    let listed = client.call("list_skills", json!({}));
    assert_eq!(listed["isError"], false);
    assert_eq!(listed["structuredContent"], json!({"skills": [], "note": "there are no skills"}));
    let test = test.skill("late", &document("late", "", "First."));
    assert_eq!(skills(&mut client), ["late"]);
    assert!(text(&client.call("late", json!({}))).ends_with("First.\n"));
    let test = test.skill("late", &document("late", "", "Second."));
    assert!(text(&client.call("late", json!({}))).ends_with("Second.\n"));
    std::fs::remove_dir_all(test.path("skills/late")).unwrap();
    let error = client.error_of("tools/call", json!({"name": "late"}));
    assert_eq!(error["code"], -32602, "{error}");
    assert!(skills(&mut client).is_empty());
}

/// The program's own tools are on the first page.
#[test]
fn many_skill_tools_are_paginated() {
    let mut test = Test::new();
    for number in 0..250 {
        let name = format!("s-{number:04}");
        test = test.skill(&name, &document(&name, "", "#"));
    }
    let mut client = server(&test);
    assert_eq!(skills(&mut client).len(), 246);
    let cursor = &client.result_of("tools/list", json!({}))["nextCursor"];
    let rest = client.result_of("tools/list", json!({"cursor": cursor}));
    let names = rest["tools"].as_array().unwrap();
    let names: Vec<&Value> = names.iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["s-0246", "s-0247", "s-0248", "s-0249"]);
    assert!(rest["nextCursor"].is_null(), "{rest}");
    assert!(text(&client.call("s-0249", json!({}))).ends_with("#\n"));
    let error = client.error_of("tools/list", json!({"cursor": "s-0249"}));
    assert_eq!(error["code"], -32602, "{error}");
}
