//! Addresses outside a skill, secrets, limits and pages.

use super::super::Client;
use super::super::client::listed;
use super::{content, document, uris};
use crate::harness::Test;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

const CANARY: &str = "canary-that-lies-outside";

/// No address leads out of a skill.
#[test]
fn addresses_outside_a_skill_are_refused() {
    let test = Test::new()
        .skill("a", &document("a"))
        .skill("b", &document("b"))
        .file("outside/secret.txt", CANARY)
        .file("skills/loose.txt", CANARY)
        .file("skills/a/sub/x.md", "x")
        .file("skills/a/.venv/pyvenv.cfg", CANARY)
        .file("skills/a/.git/config", CANARY)
        .link("skills/a/out", "../../outside/secret.txt")
        .link("skills/a/sibling", "../b/SKILL.md")
        .link("skills/a/outdir", "../../outside")
        .link("skills/a/proc", "/proc/self/environ")
        .link("skills/a/round", "round")
        .link("skills/a/git", ".git")
        .env("CANARY", CANARY);
    let absolute = test.path("outside/secret.txt");
    let test = test.link("skills/a/absolute", &absolute);
    let fifo = test.path("skills/a/fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut hostile: Vec<String> = [
        "out",
        "sibling",
        "outdir",
        "outdir/secret.txt",
        "proc",
        "round",
        "absolute",
        "fifo",
        "git/config",
        ".git/config",
        ".git",
        ".venv/pyvenv.cfg",
        ".venv",
        "..",
        "../",
        "../loose.txt",
        "../b/SKILL.md",
        "../../outside/secret.txt",
        "./SKILL.md",
        "sub/..",
        "sub/../SKILL.md",
        "sub/../../b/SKILL.md",
        "%2e%2e/loose.txt",
        "%2E%2E/b/SKILL.md",
        ".%2e/loose.txt",
        "%2e./loose.txt",
        "..%2floose.txt",
        "..%2Floose.txt",
        "%2e%2e%2floose.txt",
        "..%5cloose.txt",
        "%252e%252e/loose.txt",
        "..%252floose.txt",
        "sub%2f..%2f..%2floose.txt",
        "%00",
        "SKILL.md%00",
        "SKILL.md%00.txt",
        "SKILL.md\0",
        "sub//x.md",
        "/etc/passwd",
        "//etc/passwd",
        "%2fetc%2fpasswd",
        "%2Fproc/self/environ",
        "SKILL.md/",
        "SKILL.md/x",
        "SKILL.md?x",
        "SKILL.md#x",
        "SKILL.md%",
        "SKILL.md%2",
        "SKILL.md%zz",
        "SKILL.md%%",
        "skill.md",
        "%c0%ae%c0%ae/loose.txt",
        "\u{ff0e}\u{ff0e}/x",
        "..;/loose.txt",
        "~/x",
        "C:/x",
        "..\\loose.txt",
        "",
    ]
    .iter()
    .map(|path| format!("skill://a/{path}"))
    .collect();
    let outside = [
        "skill://../loose.txt",
        "skill://..",
        "skill://.",
        "skill:///etc/passwd",
        "skill://a/../../outside/secret.txt",
        "skill://%2e%2e/outside/secret.txt",
        "skill://a%2f..%2f..%2foutside/secret.txt",
        "skill://skills/loose.txt",
        "skill://a:1/SKILL.md",
        "skill://me@a/SKILL.md",
        "skill:a/SKILL.md",
        "skill:/a/SKILL.md",
        "file:///etc/passwd",
        "file:///proc/self/environ",
        "/etc/passwd",
        "SKILL.md",
        "",
        "http://127.0.0.1/",
        "skill://loose.txt",
        "skill://A/SKILL.md",
        "skill://a\0/SKILL.md",
    ];
    hostile.extend(outside.map(str::to_string));
    hostile.push(format!("file://{}", absolute.display()));
    hostile.push(format!("skill://a/{}", absolute.display()));
    hostile.push(format!("skill://a/{}x", "sub/".repeat(5_000)));
    hostile.push(format!("skill://a/{}", "x".repeat(300)));
    hostile.push(format!("skill://a/{}", "%41".repeat(5_000)));
    assert!(hostile.len() >= 80);
    for mut client in [Client::legacy(&test), Client::modern(&test)] {
        for uri in &hostile {
            for method in ["resources/read", "resources/directory/read", "skills/get"] {
                let id = client.request(method, json!({ "uri": uri }));
                let answer = client.answer_to(id);
                let text = answer.to_string();
                assert!(answer["error"].is_object(), "{method} {uri}: {text}");
                assert!(!text.contains(CANARY), "{method} {uri}: {text}");
                let home = test.path("");
                let text = text.replace(&serde_json::to_string(uri).unwrap(), "");
                let is_own = uri.contains(home.to_str().unwrap());
                assert!(is_own || !text.contains(home.to_str().unwrap()), "{uri}: {text}");
            }
        }
        let all = listed(&mut client, "resources/list", "resources", json!({}));
        let expected = ["skill://a/SKILL.md", "skill://a/sub/x.md", "skill://b/SKILL.md"];
        assert_eq!(uris(&all), expected);
    }
}

/// The user's key is masked in texts and in binary content.
#[test]
fn secrets_are_masked() {
    let key = "sk-canary-of-the-user";
    let test = Test::new()
        .env("LLM_API_KEY", key)
        .skill("a", &document("a"))
        .file("skills/a/text.md", format!("the key is {key}."))
        .file("skills/a/bytes.bin", [b"\xff\0", key.as_bytes()].concat());
    let mut client = Client::modern(&test);
    let text = content(&mut client, "skill://a/text.md");
    assert_eq!(text, b"the key is [secret].");
    let error = client.error_of("resources/read", json!({"uri": "skill://a/bytes.bin"}));
    assert!(error["message"].as_str().unwrap().contains("secret"), "{error}");
    // A file that cannot be returned unchanged has no entry, as its digest would reveal it.
    let error = client.error_of("skills/get", json!({"uri": "skill://a/SKILL.md"}));
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("it contains a secret of the user"), "{message}");
    assert_eq!(client.result_of("skills/list", json!({}))["skills"], json!([]));
    client.close().stderr_has("the skill `a` is left out of skills/list: its file bytes.bin");
}

/// A secret can be any text: it is masked in content and not in the protocol's own words.
#[test]
fn secrets_that_resemble_the_protocol_are_masked_only_in_content() {
    let words = json!({
        "A": "text/markdown", "B": "resources", "C": "jsonrpc", "D": "2026-07-28", "E": "private",
    });
    let test = Test::new()
        .env("LLM_API_KEY", "10000000")
        .env("LLM_EXTRA_HEADERS", words.to_string())
        .skill("a", "---\nname: a\ndescription: Says 10000000 and private.\n---\n")
        .skill("b-10000000", &document("b-10000000"))
        .file("skills/a/10000000.txt", "x");
    let mut client = Client::modern(&test);
    client.send(
        r#"{"jsonrpc":"2.0","id":10000000,"method":"resources/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    );
    let answer = client.answer_to(10_000_000);
    let result = &answer["result"];
    assert_eq!(result["cacheScope"], "private");
    let expected = json!([{
        "uri": "skill://a/SKILL.md", "name": "a", "mimeType": "text/markdown", "size": 56,
        "description": "Says [secret] and [secret].",
    }]);
    assert_eq!(result["resources"], expected);
    let prompts = client.result_of("prompts/list", json!({}));
    assert_eq!(prompts["prompts"][0]["description"], "Says [secret] and [secret].");
    assert_eq!(prompts["prompts"].as_array().unwrap().len(), 1);
    let guide = client.result_of("server/discover", json!({}));
    assert_eq!(guide["supportedVersions"], json!(["2026-07-28"]));
    let outcome = client.close().status(0);
    assert!(!outcome.stdout.replace("\"id\":10000000", "").contains("10000000"));
}

/// Binary content is a blob: as text it would be six times as large.
#[test]
fn binary_content_is_a_blob() {
    let test = Test::new()
        .skill("a", &document("a"))
        .file("skills/a/zeros", vec![0; 1 << 20])
        .file("skills/a/bells", vec![7; 1 << 20])
        .file("skills/a/colored", "\u{1b}[31mred\u{1b}[0m and a long plain line\n");
    let mut client = Client::modern(&test);
    for (name, key) in [("zeros", "blob"), ("bells", "blob"), ("colored", "text")] {
        let uri = format!("skill://a/{name}");
        let read = client.result_of("resources/read", json!({ "uri": uri }));
        assert!(read["contents"][0][key].is_string(), "{name}");
        let bytes = content(&mut client, &uri);
        assert_eq!(bytes, std::fs::read(test.path(format!("skills/a/{name}"))).unwrap());
    }
}

/// Large files are refused and never truncated.
#[test]
fn files_above_the_size_limit_are_refused() {
    let test = Test::new()
        .skill("a", &document("a"))
        .file("skills/a/just", vec![b'x'; 16 << 20])
        .file("skills/a/more", vec![b'x'; (16 << 20) + 1]);
    let mut client = Client::modern(&test);
    assert_eq!(content(&mut client, "skill://a/just").len(), 16 << 20);
    let error = client.error_of("resources/read", json!({"uri": "skill://a/more"}));
    assert!(error["message"].as_str().unwrap().contains("16 MiB"), "{error}");
    // Clients read all listed files; a folder shows all its files.
    let all = listed(&mut client, "resources/list", "resources", json!({}));
    assert_eq!(uris(&all), ["skill://a/SKILL.md", "skill://a/just"]);
    let all = client.result_of("resources/directory/read", json!({"uri": "skill://a"}));
    assert_eq!(all["resources"][2]["size"], (16 << 20) + 1);
}

/// Each entry is on one page, and a cursor stays valid whatever changes.
#[test]
fn pagination_survives_changes() {
    let mut test = Test::new();
    for number in 0..75 {
        let name = format!("s{number:03}");
        test = test.skill(&name, &document(&name));
        for file in 0..4 {
            test = test.file(&format!("skills/{name}/{file}.md"), "x");
        }
    }
    let mut client = Client::modern(&test);
    let first = client.result_of("resources/list", json!({}));
    let cursor = first["nextCursor"].clone();
    assert_eq!(first["resources"].as_array().unwrap().len(), 250);
    assert_eq!(first["resources"][249]["uri"], "skill://s049/SKILL.md");
    // The last skill of the page is deleted, and so is one of a later page.
    for gone in ["s049", "s062"] {
        fs::remove_dir_all(test.path(format!("skills/{gone}"))).unwrap();
    }
    let test = test.skill("s000-new", &document("s000-new"));
    let second = client.result_of("resources/list", json!({ "cursor": cursor }));
    let rest = second["resources"].as_array().unwrap();
    assert_eq!(rest.len(), 24 * 5);
    assert_eq!(rest[0]["uri"], "skill://s050/0.md");
    assert_eq!(second["nextCursor"], Value::Null);
    assert!(test.exists("skills/s000-new"));
    for method in ["resources/list", "skills/list", "resources/directory/read"] {
        for wrong in [json!(1), json!(""), json!("x"), json!("ew=="), json!({}), json!(false)] {
            let params = json!({"uri": "skill://s001", "cursor": wrong});
            let error = client.error_of(method, params);
            assert_eq!(error["code"], -32602, "{method} {wrong}: {error}");
        }
        let params = json!({"uri": "skill://s001", "cursor": null});
        client.result_of(method, params);
    }
}

/// A cursor is valid only for its own list.
#[test]
fn cursor_of_another_list_is_refused() {
    let mut test = Test::new();
    for number in 0..251 {
        let name = format!("s{number:03}");
        test = test.skill(&name, &document(&name));
        test = test.file(&format!("skills/s000/{number}.md"), "x");
    }
    let lists = [
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/directory/read",
        "skills/list",
    ];
    let mut client = Client::modern_with(&test, &["--skills-as-tools"]);
    let mut followed = 0;
    for method in lists {
        let mut params = json!({"uri": "skill://s000"});
        let first = client.result_of(method, params.clone());
        params["cursor"] = first["nextCursor"].clone();
        if params["cursor"].is_null() {
            continue;
        }
        for other in lists {
            if other == method {
                client.result_of(method, params.clone());
                followed += 1;
            } else {
                let error = client.error_of(other, params.clone());
                assert_eq!(error["code"], -32602, "{method} in {other}: {error}");
            }
        }
    }
    assert_eq!(followed, 5);
    let empty = BASE64_URL_SAFE_NO_PAD.encode("skills/list after ");
    let error = client.error_of("skills/list", json!({"cursor": empty}));
    assert_eq!(error["code"], -32602, "{error}");
}
