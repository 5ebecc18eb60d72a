//! Private files of a skill: no door that reads for a model or client opens one, by whatever name or
//! link; everything else is read.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Outcome, Reply, Server, Test};
use crate::mcp::Client;

const CANARY: &str = "canary-zz";
const DOCUMENT: &str = "---\nname: s\ndescription: d\n---\nhi\n";

/// Names of files that are private in any folder.
const PRIVATE: [&str; 26] = [
    ".env",
    ".ENV",
    ".Env.local",
    ".env.example",
    ".envrc",
    ".env.d/x",
    ".npmrc",
    ".NPMRC",
    ".pypirc",
    ".netrc",
    "_netrc",
    ".git-credentials",
    ".pgpass",
    "keys/id_rsa",
    "keys/ID_ED25519",
    "keys/id_ecdsa_sk",
    ".git/config",
    "sub/.GIT/config",
    "server.pem",
    "tls.key",
    "deploy.txt",
    "ssh2.txt",
    "putty.ppk",
    "old.pem.bak",
    "bag.txt",
    "chain.crt",
];

/// Names of other files.
const READABLE: [&str; 8] = [
    "keys/id_rsa.pub",
    "ca.pem",
    "docs/pem.md",
    "docs/rules.md",
    ".gitignore",
    ".github/config",
    "env.md",
    "my.env",
];

fn content(name: &str) -> String {
    match name {
        "server.pem" | "chain.crt" => format!(
            "-----BEGIN CERTIFICATE-----\n{}-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n{CANARY}\n",
            "AAAAAAAAA\n".repeat(99)
        ),
        "ssh2.txt" => format!("---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n{CANARY}\n"),
        "putty.ppk" => format!("PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 1\n{CANARY}\n"),
        "old.pem.bak" => format!("# old\n-----BEGIN PRIVATE KEY-----\n{CANARY}\n"),
        "bag.txt" => {
            format!("Bag Attributes\n    localKeyID: 01\n-----BEGIN PRIVATE KEY-----\n{CANARY}\n")
        }
        "docs/rules.md" => "---- BEGIN of rules: never print a key\n".into(),
        "tls.key" => format!("# ours\n-----BEGIN EC PRIVATE KEY-----\n{CANARY}\n"),
        "deploy.txt" => format!("\n-----BEGIN OPENSSH PRIVATE KEY-----\n{CANARY}\n"),
        "ca.pem" => "-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----\n".into(),
        "docs/pem.md" => "# Keys\n\n-----BEGIN PRIVATE KEY-----\n".into(),
        name if PRIVATE.contains(&name) => format!("KEY={CANARY}\n"),
        name => format!("fine: {name}\n"),
    }
}

fn call(test: &Test, options: &[&str], tool: &str, arguments: &Value) -> Outcome {
    let test = test.next_run().args(["tool"]).args(options);
    test.args([tool, "-"]).stdin(arguments.to_string()).run()
}

/// Asserts that no door opens these paths of the skill `s`, that none names one of these files, and
/// that all doors open the others.
fn assert_doors(test: &Test, folder: &str, private: &[String], readable: &[String]) {
    let in_skill = |path: &str| json!({"skill_name": "s", "file_path": path});
    let absolute = |path: &str| test.path(format!("{folder}/{path}")).display().to_string();
    for path in private {
        for options in [&[][..], &["--no-scripts"]] {
            for asked in [path.clone(), absolute(path)] {
                let run = call(test, options, "read_file_in_skill", &in_skill(&asked)).status(1);
                run.stdout_has("private").stdout_lacks(CANARY);
            }
        }
        let run = call(
            test,
            &[],
            "read_file_in_skill",
            &json!({"skill_name": "other", "file_path": format!("../s/{path}")}),
        );
        run.status(1).stdout_lacks(CANARY);
        for asked in [format!("skills/s/{path}"), absolute(path)] {
            let run = call(test, &[], "read_file", &json!({"path": asked})).status(1);
            run.stdout_has("private").stdout_lacks(CANARY);
        }
        let run =
            call(test, &[], "edit_file", &json!({"path": absolute(path), "old": "zz", "new": ""}));
        run.status(1).stdout_lacks(CANARY);
    }
    let folder = call(test, &[], "read_file_in_skill", &in_skill(".")).success();
    let is_private =
        |line: &&str| [".env", ".git/", ".netrc"].iter().any(|it| line.starts_with(it));
    folder.check(!folder.stdout.lines().any(|line| is_private(&line)), "a private name is listed");
    let document = call(test, &[], "get_skill", &json!({"skill_name": "s"})).success();
    let document = document.stdout_lacks(CANARY);
    let listed: Vec<&str> =
        document.stdout.lines().filter_map(|it| it.strip_prefix("- ")).collect();
    for path in private {
        assert!(!listed.contains(&path.as_str()), "{path} is listed: {listed:?}");
    }
    for path in readable {
        call(test, &[], "read_file_in_skill", &in_skill(path)).success();
        call(test, &[], "read_file", &json!({"path": absolute(path)})).success();
        assert!(listed.contains(&path.as_str()), "{path} is not listed: {listed:?}");
    }
    for mut client in [Client::legacy(test), Client::modern(test)] {
        let list = client.result_of("resources/list", json!({}));
        let skills = client.request("skills/list", json!({}));
        let skills = client.answer_to(skills).to_string();
        for path in private {
            let uri = format!("skill://s/{path}");
            assert!(!list.to_string().contains(&format!("\"{uri}\"")), "{path}: {list}");
            assert!(!skills.contains(&format!("\"{uri}\"")), "{path}: {skills}");
            let error = client.error_of("resources/read", json!({"uri": uri}));
            assert!(!error.to_string().contains(CANARY), "{error}");
        }
        for path in readable {
            let uri = format!("skill://s/{path}");
            assert!(list.to_string().contains(&format!("\"{uri}\"")), "{path}: {list}");
            let read = client.result_of("resources/read", json!({"uri": uri}));
            assert!(read["contents"][0]["text"].is_string(), "{read}");
        }
        client.close();
    }
}

fn owned(paths: &[&str]) -> Vec<String> {
    paths.iter().map(ToString::to_string).collect()
}

#[test]
fn no_door_opens_a_private_file_of_a_skill() {
    let mut test = Test::new()
        .file("work/skills/s/SKILL.md", DOCUMENT)
        .file("work/skills/other/SKILL.md", "# Other\n")
        .cwd("work");
    for name in PRIVATE.iter().chain(&READABLE) {
        test = test.file(&format!("work/skills/s/{name}"), content(name));
    }
    test = test
        .link("work/skills/s/to-env", ".env")
        .link("work/skills/s/to-key", "server.pem")
        .link("work/skills/s/to-git", "sub/.GIT")
        .link("work/skills/s/env.txt", "my.env");
    for (file, link) in [
        (".env", "h-env"),
        ("server.pem", "h-pem"),
        (".git/config", "sub/h-git"),
        ("my.env", "h-fine"),
    ] {
        let path = |name: &str| test.path(format!("work/skills/s/{name}"));
        fs::hard_link(path(file), path(link)).unwrap();
    }
    let mut private = owned(&PRIVATE);
    private.extend(owned(&["to-env", "to-key", "to-git/config", "h-env", "h-pem", "sub/h-git"]));
    let mut readable = owned(&READABLE);
    readable.extend(owned(&["env.txt", "h-fine"]));
    assert_doors(&test, "work/skills/s", &private, &readable);
    // The skill's scripts read it.
    let script = json!({"skill_name": "s", "script": "import os; print(len(open(os.environ['SKILL_DIR'] + '/.env').read()))"});
    call(&test, &[], "run_python_script", &script).success().stdout_has(r#""returncode":0"#);
}

/// A skill that is the working folder: what the settings make private there stays closed, and
/// ordinary files are read.
#[test]
fn private_places_of_a_skill_that_is_the_working_folder_stay_closed() {
    let names = [
        "key",
        "facts.md",
        "sessions/a.jsonl",
        "log.jsonl",
        "config/skills-runner/token",
        "state/skills-runner/x",
    ];
    let mut test = Test::new()
        .file("work/SKILL.md", DOCUMENT)
        .file("work/.env", format!("KEY={CANARY}\n"))
        .file("work/notes.md", "fine\n")
        .file("work/docs/a.md", "fine\n")
        .file("work/skills/other/SKILL.md", "# Other\n")
        .link("work/skills/s", "..");
    for name in names {
        test = test.file(&format!("work/{name}"), format!("{CANARY}\n"));
    }
    let at = |name: &str| test.path(format!("work/{name}")).display().to_string();
    let (config, state) = (at("config"), at("state"));
    let test = test
        .cwd("work")
        .env("LLM_API_KEY_FILE", "key")
        .env("MEMORY_PATH", "facts.md")
        .env("SESSIONS_PATH", "sessions")
        .env("XDG_CONFIG_HOME", config)
        .env("XDG_STATE_HOME", state);
    let log = |path: &str| json!({"skill_name": "s", "file_path": path});
    call(&test, &["--log", "log.jsonl"], "read_file_in_skill", &log("log.jsonl"))
        .status(1)
        .stdout_has("private");
    let private: Vec<&str> =
        names.iter().copied().filter(|name| *name != "log.jsonl").chain([".env"]).collect();
    assert_doors(&test, "work", &owned(&private), &owned(&["notes.md", "docs/a.md"]));
}

/// A document that is a private file by another name is neither read nor described.
#[test]
fn a_document_that_leads_to_a_private_file_is_not_read() {
    let content = format!("---\nname: s\ndescription: {CANARY}\n---\n{CANARY}\n");
    // The private file, the skill's folder, and what the link there leads to.
    let table = [
        (".env", "skills/s", None),
        ("skills/s/.env", "skills/s", None),
        ("skills/s/.git/x.md", "skills/s", None),
        ("skills/s/.env", "skills/s", Some(".env")),
        ("skills/s/.git/x.md", "skills/s", Some(".git/x.md")),
        (".env", ".", Some(".env")),
        (".env", ".", None),
    ];
    for (private, folder, link) in table {
        let test = Test::new()
            .file(&format!("work/{private}"), &content)
            .file(&format!("work/{folder}/x"), "")
            .file("work/skills/good/SKILL.md", "# Good\n")
            .cwd("work");
        let test = if folder == "." { test.link("work/skills/s", "..") } else { test };
        let document = test.path(format!("work/{folder}/SKILL.md"));
        match link {
            Some(link) => std::os::unix::fs::symlink(link, document).unwrap(),
            None => fs::hard_link(test.path(format!("work/{private}")), document).unwrap(),
        }
        let read = call(&test, &[], "get_skill", &json!({"skill_name": "s"})).status(1);
        read.stdout_has("private").stdout_lacks(CANARY);
        let script = json!({"skill_name": "s", "script": "print(1)"});
        call(&test, &[], "run_python_script", &script).status(1).stdout_has("private");
        let list = call(&test, &[], "list_skills", &json!({})).success();
        list.stdout_has("good").stdout_lacks(CANARY);
        let check = test.next_run().args(["skills", "check", "s"]).run().status(1);
        check.stdout_has("SKILL.md cannot be read: it is private").stdout_lacks(CANARY);
        let server = Server::start([Reply::text("ok")]);
        test.next_run().endpoint(&server).args(["hi"]).run().success();
        assert!(!String::from_utf8_lossy(&server.requests()[0].body).contains(CANARY));
        let mut client = Client::legacy(&test);
        for method in ["prompts/list", "resources/list", "tools/list", "skills/list"] {
            let request = client.request(method, json!({}));
            assert!(!client.answer_to(request).to_string().contains(CANARY), "{method}");
        }
        client.close();
    }
}

/// The user's own files of these names are as private.
#[test]
fn the_users_keys_are_neither_read_nor_changed() {
    let mut test = Test::new().file("work/skills/s/SKILL.md", DOCUMENT).cwd("work");
    for name in PRIVATE.iter().chain(&READABLE) {
        test = test.file(&format!("work/{name}"), content(name));
    }
    for name in PRIVATE {
        let calls = [
            ("read_file", json!({"path": name})),
            ("edit_file", json!({"path": name, "old": "canary-z", "new": ""})),
            ("write_file", json!({"path": name, "content": "x"})),
        ];
        for (tool, arguments) in calls {
            let run = call(&test, &[], tool, &arguments).status(1);
            run.stdout_has("is private").stdout_lacks(CANARY);
        }
        assert_eq!(fs::read_to_string(test.path(format!("work/{name}"))).unwrap(), content(name));
    }
    for name in READABLE {
        call(&test, &[], "read_file", &json!({"path": name})).success();
        call(&test, &[], "write_file", &json!({"path": name, "content": "x"})).success();
    }
}
