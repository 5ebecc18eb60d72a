//! Skills in the skills extension of MCP: entries match the files that clients read; omitted skills
//! are reported with the reason.

use std::fs;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::Client;
use super::client::listed;
use crate::harness::Test;

fn document(name: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}.\n---\n\n# {name}\n")
}

fn entries(client: &mut Client) -> Vec<Value> {
    listed(client, "skills/list", "skills", json!({}))
}

fn get(client: &mut Client, uri: &str) -> Value {
    client.result_of("skills/get", json!({ "uri": uri }))["skill"].clone()
}

fn sha256(bytes: &[u8]) -> String {
    let digest = digest(&SHA256, bytes);
    let digits = digest.as_ref().iter().map(|byte| format!("{byte:02x}"));
    format!("sha256:{}", digits.collect::<String>())
}

/// The file at an address, as a client reads it.
fn read(client: &mut Client, uri: &str) -> Vec<u8> {
    let read = client.result_of("resources/read", json!({ "uri": uri }));
    let content = &read["contents"][0];
    match content["text"].as_str() {
        Some(text) => text.as_bytes().to_vec(),
        None => BASE64_STANDARD.decode(content["blob"].as_str().unwrap()).unwrap(),
    }
}

/// All files are listed with the digest and size of the file on the disk, which are those of the
/// content that a client reads.
#[test]
fn entries_list_all_files_with_digests() {
    let files: [(&str, &[u8]); 5] = [
        ("a b/ü.md", "ü\r\n".as_bytes()),
        ("data.bin", b"\xff\0\xfe"),
        ("empty", b""),
        ("large", &[b'x'; 200_000]),
        ("nested/SKILL.md", b"---\nname: nested\n---\n"),
    ];
    let mut test = Test::new()
        .file("skills/Folder/Skill.md", document("whole"))
        .skill("second", &document("second"))
        .venv("Folder")
        .file("skills/Folder/__pycache__/x.pyc", "x")
        .env("SKILLS_FOLDER_PATH", "skills");
    for (path, content) in files {
        test = test.file(&format!("skills/Folder/{path}"), content);
    }
    for mut client in [Client::legacy(&test), Client::modern(&test)] {
        let all = entries(&mut client);
        assert_eq!(all.len(), 2, "{all:?}");
        let whole = &all[1];
        assert_eq!(whole["uri"], "skill://whole/SKILL.md");
        let fields = json!({"name": "whole", "description": "Does whole."});
        assert_eq!(whole["frontmatter"], fields);
        let resources = whole["resources"].as_array().unwrap();
        let uris: Vec<&str> = resources.iter().map(|file| file["uri"].as_str().unwrap()).collect();
        assert_eq!(
            uris,
            [
                "skill://whole/SKILL.md",
                "skill://whole/a%20b/%C3%BC.md",
                "skill://whole/data.bin",
                "skill://whole/empty",
                "skill://whole/large",
                "skill://whole/nested/SKILL.md",
            ]
        );
        assert!(uris.is_sorted());
        let mut expected = vec![document("whole").into_bytes()];
        expected.extend(files.map(|(_, content)| content.to_vec()));
        for (file, bytes) in resources.iter().zip(expected) {
            let uri = file["uri"].as_str().unwrap();
            assert_eq!(file["digest"], sha256(&bytes), "{uri}");
            assert_eq!(file["size"], bytes.len(), "{uri}");
            assert_eq!(read(&mut client, uri), bytes, "{uri}");
        }
        assert_eq!(&get(&mut client, "skill://whole/SKILL.md"), whole);
        client.close().stderr_is_empty();
    }
    let mut modern = Client::modern(&test);
    let page = modern.result_of("skills/list", json!({}));
    assert_eq!(page["cacheScope"], "private");
    assert!(page["ttlMs"].as_u64().unwrap() > 0);
    let one = modern.result_of("skills/get", json!({"uri": "skill://second/SKILL.md"}));
    assert_eq!((&one["ttlMs"], &one["cacheScope"]), (&json!(0), &json!("private")));
    assert_eq!(one["nextCursor"], Value::Null);
    let found = modern.result_of("server/discover", json!({}));
    assert_eq!(
        found["capabilities"]["extensions"],
        json!({"io.modelcontextprotocol/skills": {"directoryRead": true}})
    );
}

/// The frontmatter is returned unchanged, including nested maps and lists.
#[test]
fn frontmatter_is_returned_as_written() {
    let test = Test::new().skill(
        "deep",
        "---\r\nname: deep\r\ndescription: |\r\n  One.\r\n  Two: 2\r\nlicense: MIT\r\n\
         metadata:\r\n  version: \"1.10\"\r\n  number: 1.5\r\n  on-time: yes\r\n  nothing: null\r\n\
         \x20 hooks:\r\n    - on: start\r\n      run: [a, b, {c: [1]}]\r\n    - x\r\n\
         notes: >-\r\n  folded\r\n  text\r\nlast: |\r\n  kept\r\n---\r\nBody\r\n",
    );
    let mut client = Client::modern(&test);
    assert_eq!(
        entries(&mut client)[0]["frontmatter"],
        json!({
            "name": "deep",
            "description": "One.\nTwo: 2\n",
            "license": "MIT",
            "metadata": {
                "version": "1.10",
                "number": 1.5,
                "on-time": "yes",
                "nothing": null,
                "hooks": [{"on": "start", "run": ["a", "b", {"c": [1]}]}, "x"],
            },
            "notes": "folded text",
            "last": "kept\n",
        })
    );
}

/// Skills without a valid entry are omitted, and the user is told the reason once.
#[test]
fn omitted_skills_are_reported_with_the_reason() {
    let text = |fields: &str| format!("---\n{fields}\n---\n# T\n");
    let mut test =
        Test::new().skill("good", &document("good")).skill("also-good", &document("renamed"));
    let table = [
        ("no-name", text("description: D"), "has no `name`; add one"),
        ("number", text("name: 3\ndescription: D"), "is not a text; put it in quotes"),
        ("good2", text("name: good\ndescription: D"), "another skill has the same name `good`"),
        ("twin-a", text("name: twin\ndescription: D"), "another skill has the same name `twin`"),
        ("twin-b", text("name: twin\ndescription: D"), "another skill has the same name `twin`"),
        ("upper", text("name: Upper\ndescription: D"), "its name `Upper` may contain only"),
        ("hyphens", text("name: a--b\ndescription: D"), "its name `a--b` may contain only"),
        ("技能", text("name: 技能\ndescription: D"), "its name `技能` may contain only"),
        ("spaced", text("name: ' spaced'\ndescription: D"), "its name ` spaced` may contain only"),
        ("mute", text("name: mute"), "no `description` text; add one"),
        ("listed", text("name: listed\ndescription: [a, b]"), "no `description` text"),
        (
            "long",
            text(&format!("name: long\ndescription: {}", "d".repeat(1025))),
            "has 1025 characters; shorten it to 1024",
        ),
        (
            "mended",
            text("name: mended\ndescription: Use when: x"),
            "is not YAML that all parsers accept: line 3",
        ),
        ("twice", text("name: twice\ndescription: a\ndescription: b"), "line 4: key `description`"),
        ("late", format!("\n{}", document("late")), "does not start with frontmatter"),
        (
            "marked",
            format!("\u{feff}{}", document("marked")),
            "starts with a byte order mark; save it without one",
        ),
        (
            "open",
            "---\nname: open\ndescription: D\n\n# T\n".into(),
            "does not end with a line `---`",
        ),
        ("bare", "# Title\n".into(), "does not start with frontmatter"),
        ("many", document("many"), "has more than 512 files; remove some"),
        ("heavy", document("heavy"), "are larger than 16 MiB together; remove some"),
        ("sum", document("sum"), "are larger than 16 MiB together; remove some"),
    ];
    for (folder, document, _) in &table {
        test = test.skill(folder, document);
    }
    for number in 0..512 {
        test = test.file(&format!("skills/many/{number}.md"), "x");
    }
    let own = document("heavy").len();
    let mut test = test.file("skills/heavy/a", vec![0; (16 << 20) - own + 1]);
    for name in ["a", "b", "c"] {
        test = test.file(&format!("skills/sum/{name}"), vec![0; 6 << 20]);
    }
    let mut client = Client::modern(&test);
    for _ in 0..2 {
        let all = entries(&mut client);
        let uris: Vec<&str> = all.iter().map(|entry| entry["uri"].as_str().unwrap()).collect();
        assert_eq!(uris, ["skill://good/SKILL.md", "skill://renamed/SKILL.md"]);
    }
    for (folder, document, reason) in &table {
        let uri = match *folder {
            "number" => "skill://3/SKILL.md".to_string(),
            "技能" => "skill://%E6%8A%80%E8%83%BD/SKILL.md".to_string(),
            folder => format!("skill://{folder}/SKILL.md"),
        };
        let error = client.error_of("skills/get", json!({ "uri": uri }));
        assert_eq!(error["code"], -32602, "{error}");
        assert_eq!(error["data"]["uri"], uri);
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(reason), "{folder}: {message}");
        // Its files can still be read.
        assert_eq!(read(&mut client, &uri), document.as_bytes(), "{folder}");
    }
    for uri in ["skill://none/SKILL.md", "skill://good", "skill://good/x", "skill://twin/SKILL.md"]
    {
        let error = client.error_of("skills/get", json!({ "uri": uri }));
        assert_eq!(error["code"], -32602, "{error}");
    }
    let outcome = client.close();
    for (folder, _, reason) in &table {
        let reported = format!("the skill `{folder}` is left out of skills/list: ");
        let lines: Vec<&str> =
            outcome.stderr.lines().filter(|line| line.contains(&reported)).collect();
        assert_eq!(lines.len(), 1, "{folder}: {}", outcome.stderr);
        assert!(lines[0].contains(reason), "{}", lines[0]);
    }
}

/// Skills exactly at the limits of the extension have an entry.
#[test]
fn skills_at_the_size_limits_have_an_entry() {
    let mut test = Test::new().skill("many", &document("many")).skill("heavy", &document("heavy"));
    for number in 0..511 {
        test = test.file(&format!("skills/many/{number}.md"), "x");
    }
    let own = document("heavy").len();
    let test = test.file("skills/heavy/a", vec![0; (16 << 20) - own]);
    let test = test.env("SKILLS_FOLDER_PATH", "skills");
    let mut client = Client::modern(&test);
    let all = entries(&mut client);
    let size = |file: &Value| file["size"].as_u64().unwrap();
    let heavy = all[0]["resources"].as_array().unwrap();
    assert_eq!(heavy.iter().map(size).sum::<u64>(), 16 << 20);
    assert_eq!(all[1]["resources"].as_array().unwrap().len(), 512);
    client.close().stderr_is_empty();
}

/// A change between list and read is detectable, and a new list corrects it.
#[test]
fn change_appears_in_the_next_answer() {
    let test = Test::new().skill("a", &document("a")).file("skills/a/x.md", "before");
    let mut client = Client::modern(&test);
    let uri = "skill://a/SKILL.md";
    let before = get(&mut client, uri);
    fs::write(test.path("skills/a/x.md"), "after!").unwrap();
    let bytes = read(&mut client, "skill://a/x.md");
    assert_eq!(bytes, b"after!");
    assert_ne!(before["resources"][1]["digest"], sha256(&bytes));
    assert_eq!(get(&mut client, uri)["resources"][1]["digest"], sha256(&bytes));
    assert_eq!(entries(&mut client)[0]["resources"][1]["digest"], sha256(&bytes));
    fs::remove_file(test.path("skills/a/x.md")).unwrap();
    assert_eq!(get(&mut client, uri)["resources"].as_array().unwrap().len(), 1);
    fs::rename(test.path("skills/a"), test.path("skills/b")).unwrap();
    client.result_of("skills/get", json!({"uri": uri}));
    fs::write(test.path("skills/b/SKILL.md"), document("b")).unwrap();
    client.error_of("skills/get", json!({"uri": uri}));
    assert_eq!(get(&mut client, "skill://b/SKILL.md")["frontmatter"]["name"], "b");
}

/// Each skill is complete on one page.
#[test]
fn many_skills_are_paginated() {
    let mut test = Test::new();
    for number in 0..30 {
        let name = format!("s{number:03}");
        test = test.skill(&name, &document(&name));
        for file in 0..30 {
            test = test.file(&format!("skills/{name}/{file}.md"), "x");
        }
    }
    let mut client = Client::modern(&test);
    let first = client.result_of("skills/list", json!({}));
    assert_eq!(first["skills"].as_array().unwrap().len(), 20);
    let all = entries(&mut client);
    let uris: Vec<&str> = all.iter().map(|entry| entry["uri"].as_str().unwrap()).collect();
    assert!(uris.len() == 30 && uris.is_sorted(), "{uris:?}");
    for entry in &all {
        assert_eq!(entry["resources"].as_array().unwrap().len(), 31);
    }
}
