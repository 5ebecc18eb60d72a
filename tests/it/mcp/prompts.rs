//! Skills as prompts, for clients that offer them as commands.

use serde_json::{Value, json};

use super::Client;
use crate::harness::Test;

fn document(name: &str, more: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: Does   {name}.\n{more}---\n\n{body}\n")
}

fn names(listed: &Value) -> Vec<&str> {
    let prompts = listed["prompts"].as_array().unwrap();
    let names = prompts.iter().map(|prompt| prompt["name"].as_str());
    names.map(Option::unwrap).collect()
}

fn text(got: &Value) -> &str {
    assert_eq!(got["messages"].as_array().unwrap().len(), 1, "{got}");
    assert_eq!(got["messages"][0]["role"], "user");
    assert_eq!(got["messages"][0]["content"]["type"], "text");
    got["messages"][0]["content"]["text"].as_str().unwrap()
}

/// The skills that a user may invoke are prompts, in both eras.
#[test]
fn user_invocable_skills_are_prompts() {
    let test = Test::new()
        .skill("plain", &document("plain", "", "# Plain"))
        .skill("hinted", &document("other", "argument-hint: [file] [format]\n", "$0"))
        .skill("quiet", &document("quiet", "disable-model-invocation: true\n", "# Q"))
        .skill("inner", &document("inner", "user-invocable: false\n", "# I"))
        .skill("größe 日", "# Size\n\nMeasures things.\n")
        .folder("skills/empty");
    let (mut legacy, mut modern) = (Client::legacy(&test), Client::modern(&test));
    let (old, new) =
        (legacy.result_of("prompts/list", json!({})), modern.result_of("prompts/list", json!({})));
    assert_eq!(old["prompts"], new["prompts"]);
    assert_eq!((&new["cacheScope"], &old["cacheScope"]), (&json!("private"), &Value::Null));
    assert!(new["ttlMs"].is_u64());
    assert_eq!(names(&new), ["größe 日", "hinted", "plain", "quiet"]);
    let hinted = &new["prompts"][1];
    assert_eq!(
        *hinted,
        json!({
            "name": "hinted",
            "title": "other",
            "description": "Does other.",
            "arguments": [{
                "name": "arguments",
                "description": "[file] [format]",
                "required": false,
            }],
        })
    );
    let plain = &new["prompts"][2]["arguments"][0]["description"];
    assert!(plain.as_str().unwrap().contains("work on"), "{plain}");
    let discovered = modern.result_of("server/discover", json!({}));
    assert_eq!(discovered["capabilities"]["prompts"], json!({}));
}

/// The prompt has the same text as an invocation in a conversation.
#[test]
fn prompt_is_the_document_with_its_arguments() {
    let body = "Write $0 as $1 in {baseDir}.";
    let test =
        Test::new().skill("report", &document("report", "argument-hint: FILE FORMAT\n", body));
    let folder = test.path("skills/report");
    for client in [&mut Client::legacy(&test), &mut Client::modern(&test)] {
        let params = json!({"name": "report", "arguments": {"arguments": "'my file' pdf"}});
        let got = client.result_of("prompts/get", params);
        assert_eq!(got["description"], "Does report.");
        let text = text(&got);
        assert!(text.starts_with("I invoke the skill `report`."), "{text}");
        let folder = folder.display();
        assert!(text.contains(&format!("Base directory for this skill: {folder}\n")));
        assert!(text.contains(&format!("\nWrite my file as pdf in {folder}.")), "{text}");
        assert!(!text.contains("description:"), "{text}");
    }
    let mut client = Client::modern(&test);
    for arguments in [Value::Null, json!({}), json!({"arguments": ""}), json!({"arguments": null})]
    {
        let got =
            client.result_of("prompts/get", json!({"name": "report", "arguments": arguments}));
        assert!(text(&got).contains("Write $0 as $1 in /"), "{got}");
    }
    let got = client.result_of("prompts/get", json!({"name": "report"}));
    assert!(text(&got).contains("Write $0 as $1 in /"), "{got}");
}

/// The error has the code -32602 and a hint.
#[test]
fn unknown_prompt_is_refused_with_a_remedy() {
    let mut test = Test::new()
        .skill("report", &document("report", "", "# R"))
        .skill("inner", &document("inner", "user-invocable: false\n", "# I"));
    test = test.file("skills/latin/SKILL.md", b"---\nname: latin\ndescription: d\n---\n\xe4");
    let mut client = Client::modern(&test);
    let cases = [
        (json!({"name": "reprot"}), "did you mean `report`?"),
        (json!({"name": "../report"}), "there is no skill `../report`"),
        (json!({"name": "inner"}), "user-invocable: false"),
        (json!({}), "`name`"),
        (json!({"name": 5}), "params of prompts/get"),
        (json!({"name": "report", "arguments": "x"}), "wrong arguments"),
        (json!({"name": "report", "arguments": ["x"]}), "must be a JSON object"),
        (json!({"name": "report", "arguments": {"arguments": []}}), "must be a string"),
        (
            json!({"name": "report", "arguments": {"topic": "x"}}),
            "`topic` is not an argument; the arguments are: `arguments`",
        ),
        (json!({"name": "latin"}), "not UTF-8"),
    ];
    for (params, expected) in cases {
        let error = client.error_of("prompts/get", params.clone());
        assert_eq!(error["code"], -32602, "{params}: {error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(expected), "{params}: {message}");
    }
    let error = client.error_of("prompts/list", json!({"cursor": "no such page"}));
    assert_eq!(error["code"], -32602, "{error}");
}

/// Nothing is cached: the next answer reflects changes on the disk.
#[test]
fn changed_skills_change_the_list() {
    let test = Test::new();
    let mut client = Client::modern(&test);
    assert_eq!(client.result_of("prompts/list", json!({}))["prompts"], json!([]));
    let test = test.skill("late", &document("late", "", "First."));
    assert_eq!(names(&client.result_of("prompts/list", json!({}))), ["late"]);
    let got = client.result_of("prompts/get", json!({"name": "late"}));
    assert!(text(&got).ends_with("\nFirst.\n"), "{got}");
    let test = test.skill("late", &document("late", "", "Second."));
    let got = client.result_of("prompts/get", json!({"name": "late"}));
    assert!(text(&got).ends_with("\nSecond.\n"), "{got}");
    std::fs::remove_dir_all(test.path("skills/late")).unwrap();
    let error = client.error_of("prompts/get", json!({"name": "late"}));
    assert_eq!(error["code"], -32602, "{error}");
    assert_eq!(client.result_of("prompts/list", json!({}))["prompts"], json!([]));
}

/// A key in a skill's text is masked, and a long description is shortened.
#[test]
fn list_is_limited_and_masked() {
    let key = "sk-1234567890abcdef";
    let hint = format!("argument-hint: use {key}\n");
    let long = format!("---\nname: long\ndescription: {} {}\n---\n", key, "word ".repeat(800));
    let half = format!("---\nname: half\ndescription: {}{key}\n---\n", "x".repeat(1015));
    let test = Test::new()
        .skill("half", &half)
        .skill("keyed", &document("keyed", &hint, &format!("Send {key}.")))
        .skill("long", &long)
        .env("LLM_API_KEY", key)
        .env("LLM_API_BASE_URL", "http://127.0.0.1:9/v1");
    let mut client = Client::modern(&test);
    let listed = client.result_of("prompts/list", json!({}));
    assert!(!listed.to_string().contains(key), "{listed}");
    assert!(listed.to_string().contains("[secret]"), "{listed}");
    let cut = listed["prompts"][0]["description"].as_str().unwrap();
    assert!(!cut.contains("sk-"), "{cut}");
    let description = listed["prompts"][2]["description"].as_str().unwrap();
    assert!(description.len() <= 1030 && description.ends_with("word…"));
    let got = client.result_of("prompts/get", json!({"name": "keyed"}));
    assert!(!got.to_string().contains(key), "{got}");
}

/// Each prompt is on one page, even if skills change between the requests.
#[test]
fn many_prompts_are_paginated() {
    let mut test = Test::new();
    for number in 0..253 {
        let name = format!("s-{number:04}");
        test = test.skill(&name, &document(&name, "", "#"));
    }
    for client in [&mut Client::legacy(&test), &mut Client::modern(&test)] {
        let first = client.result_of("prompts/list", json!({}));
        assert_eq!(names(&first).len(), 250);
        let last = test.path("skills/s-0249");
        std::fs::rename(&last, test.path("skills/.gone")).unwrap();
        let cursor = &first["nextCursor"];
        let second = client.result_of("prompts/list", json!({"cursor": cursor}));
        assert_eq!(names(&second), ["s-0250", "s-0251", "s-0252"]);
        assert!(second["nextCursor"].is_null(), "{second}");
        std::fs::rename(test.path("skills/.gone"), last).unwrap();
    }
}
