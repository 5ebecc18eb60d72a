//! Skill files as resources: which are listed, which can be read, and that no other file can be.

mod addresses;

use super::Client;
use super::client::listed;
use crate::harness::Test;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use std::fs;

fn document(name: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}.\n---\n\n# {name}\n")
}

fn uris(entries: &[Value]) -> Vec<&str> {
    let uris = entries.iter().map(|entry| entry["uri"].as_str().unwrap());
    uris.collect()
}

/// Reads an address and returns its bytes.
fn content(client: &mut Client, uri: &str) -> Vec<u8> {
    let read = client.result_of("resources/read", json!({ "uri": uri }));
    let [content] = read["contents"].as_array().unwrap().as_slice() else {
        panic!("{read}");
    };
    assert_eq!(content["uri"], uri);
    match (&content["text"], &content["blob"]) {
        (Value::String(text), Value::Null) => text.clone().into_bytes(),
        (Value::Null, Value::String(blob)) => BASE64_STANDARD.decode(blob).unwrap(),
        _ => panic!("{content}"),
    }
}

/// All files are listed with one address each and returned unchanged.
#[test]
fn files_are_listed_and_read_unchanged() {
    let mark = "\u{feff}\r\nü\0 \u{1F600}\u{7f}\n";
    let test = Test::new()
        .skill("plain", &document("plain"))
        .file("skills/plain/notes/a b&c?#%.md", mark)
        .file("skills/plain/data.bin", b"\xff\0\xfe")
        .file("skills/plain/LICENSE", "Free.")
        .file("skills/plain/empty.TXT", "")
        .file("skills/plain/latin.md", b"caf\xe9")
        .file("skills/plain/.hidden", "x")
        .link("skills/plain/again.md", "notes/a b&c?#%.md")
        .file("skills/Odd Name/Skill.md", document("other-name"))
        .file("skills/no-document/a.md", "x")
        .venv("plain")
        .file("skills/plain/other-venv/pyvenv.cfg", "x")
        .file("skills/plain/other-venv/a.py", "x")
        .file("skills/plain/.git/config", "x")
        .file("skills/plain/sub/node_modules/a.js", "x");
    for mut client in [Client::legacy(&test), Client::modern(&test)] {
        let all = listed(&mut client, "resources/list", "resources", json!({}));
        assert_eq!(
            uris(&all),
            [
                "skill://other-name/SKILL.md",
                "skill://plain/.hidden",
                "skill://plain/LICENSE",
                "skill://plain/SKILL.md",
                "skill://plain/again.md",
                "skill://plain/data.bin",
                "skill://plain/empty.TXT",
                "skill://plain/latin.md",
                "skill://plain/notes/a%20b%26c%3F%23%25.md",
            ]
        );
        let document = &all[0];
        assert_eq!(document["name"], "other-name");
        assert_eq!(document["description"], "Does other-name.");
        assert_eq!(document["mimeType"], "text/markdown");
        let kinds: Vec<_> = all[1..].iter().map(|file| &file["mimeType"]).collect();
        // The content decides only when a file is read.
        let (markdown, plain, unknown) = (json!("text/markdown"), json!("text/plain"), Value::Null);
        let (unknown, markdown) = (&unknown, &markdown);
        assert_eq!(
            kinds,
            [unknown, unknown, markdown, markdown, unknown, &plain, markdown, markdown]
        );
        assert_eq!(all[8]["name"], "a b&c?#%.md");
        assert_eq!(all[8]["description"], Value::Null);
        for (entry, path) in all.iter().zip([
            "Odd Name/Skill.md",
            "plain/.hidden",
            "plain/LICENSE",
            "plain/SKILL.md",
            "plain/again.md",
            "plain/data.bin",
            "plain/empty.TXT",
            "plain/latin.md",
            "plain/notes/a b&c?#%.md",
        ]) {
            let bytes = fs::read(test.path(format!("skills/{path}"))).unwrap();
            assert_eq!(entry["size"], bytes.len(), "{entry}");
            assert_eq!(content(&mut client, entry["uri"].as_str().unwrap()), bytes);
        }
    }
    let mut modern = Client::modern(&test);
    modern.error_of("resources/read", json!({"uri": "skill://other-name/Skill.md"}));
    let read = modern.result_of("resources/read", json!({"uri": "skill://plain/LICENSE"}));
    assert_eq!((&read["ttlMs"], &read["cacheScope"]), (&json!(0), &json!("private")));
    let templates = modern.result_of("resources/templates/list", json!({}));
    assert_eq!(templates["resourceTemplates"].as_array().unwrap().len(), 1);
    assert!(templates["ttlMs"].is_u64());
    let found = modern.result_of("server/discover", json!({}));
    assert_eq!(found["capabilities"]["resources"], json!({}));
}

/// Each skill has its own address, even if their `name` fields are equal.
#[test]
fn skills_of_the_same_name_have_distinct_addresses() {
    let test = Test::new()
        .skill("a", &document("b"))
        .skill("b", &document("b"))
        .skill("c", &document("same"))
        .skill("d", &document("same"))
        .skill("e", &document("Not Valid"))
        .skill("f", "no frontmatter\n")
        .skill("G h", &document("free"));
    let mut client = Client::modern(&test);
    let all = listed(&mut client, "resources/list", "resources", json!({}));
    let expected: Vec<String> = ["a", "b", "c", "d", "e", "f", "free"]
        .iter()
        .map(|name| format!("skill://{name}/SKILL.md"))
        .collect();
    assert_eq!(uris(&all), expected);
    for (uri, folder) in expected.iter().zip(["a", "b", "c", "d", "e", "f", "G h"]) {
        let bytes = fs::read(test.path(format!("skills/{folder}/SKILL.md"))).unwrap();
        assert_eq!(content(&mut client, uri), bytes, "{uri}");
    }
    let uri = "skill://same/SKILL.md";
    client.error_of("resources/read", json!({ "uri": uri }));
}

/// The levels contain the same files, and the folders that lead to them.
#[test]
fn folders_are_listed_level_by_level() {
    let test = Test::new()
        .file("skills/top/skill.md", document("top"))
        .file("skills/top/a/b/c.md", "x")
        .file("skills/top/a/d.py", "x")
        .file("skills/top/venv/pyvenv.cfg", "x")
        .file("skills/top/a/env/pyvenv.cfg", "x")
        .folder("skills/top/empty")
        .link("skills/top/a/in.md", "b/c.md")
        .link("skills/top/a/up.md", "../a/b/c.md")
        .link("skills/top/a/folder", "b")
        .link("skills/top/a/out.md", "/etc/passwd");
    let mut client = Client::modern(&test);
    let mut children = |uri: &str| {
        let uri = json!({ "uri": uri });
        let children = listed(&mut client, "resources/directory/read", "resources", uri);
        let shown = children.iter().map(|child| {
            let kind = child["mimeType"].as_str().unwrap_or("?");
            format!("{} {kind}", child["uri"].as_str().unwrap())
        });
        shown.collect::<Vec<String>>()
    };
    assert_eq!(
        children("skill://top"),
        ["skill://top/SKILL.md text/markdown", "skill://top/a inode/directory",]
    );
    assert_eq!(
        children("skill://top/a"),
        [
            "skill://top/a/b inode/directory",
            "skill://top/a/d.py text/x-python",
            "skill://top/a/in.md text/markdown",
            "skill://top/a/up.md text/markdown",
        ]
    );
    for uri in [
        "skill://top/empty",
        "skill://top/SKILL.md",
        "skill://top/a/d.py",
        "skill://top/none",
        "skill://top/venv",
        "skill://top/a/env",
        "skill://top/a/folder",
        "skill://none",
        "skill://top/",
        "skill://",
    ] {
        let error = client.error_of("resources/directory/read", json!({ "uri": uri }));
        assert_eq!(error["code"], -32602, "{uri}: {error}");
        assert_eq!(error["data"]["uri"], uri);
    }
    let error = client.error_of("resources/read", json!({"uri": "skill://top/a"}));
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("resources/directory/read"), "{message}");
}

/// The error has the code of its era and names the requested resource.
#[test]
fn missing_resource_error_depends_on_the_era() {
    let test = Test::new().skill("a", &document("a"));
    for (mut client, code) in [(Client::legacy(&test), -32002), (Client::modern(&test), -32602)] {
        for uri in ["skill://a/none", "skill://b/SKILL.md", "file:///etc/passwd"] {
            let error = client.error_of("resources/read", json!({ "uri": uri }));
            assert_eq!(error["code"], code, "{error}");
            assert_eq!(error["data"]["uri"], uri);
        }
        for params in [json!({}), json!({"uri": 1}), json!({"uri": null})] {
            let error = client.error_of("resources/read", params);
            assert_eq!(error["code"], -32602);
        }
    }
}
