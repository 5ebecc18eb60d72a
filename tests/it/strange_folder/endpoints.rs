//! An endpoint that only `./.env` names: it is announced, and gets nothing of the user's.

use serde_json::json;

use crate::harness::{Reply, Request, Server, Test};

const PRIVATE: &str = "private-text-of-the-user";

/// A working folder with a skill, and a user with facts, notes, a system prompt and skills.
fn test(server: &Server) -> Test {
    let document = |says: &str| format!("---\ndescription: {says}\n---\n{says}\n");
    let own =
        "MEMORY_PATH=~/facts.md\nNOTES_FOLDER_PATH=~/notes\nSYSTEM_PROMPT_PATH=~/prompt.txt\n";
    Test::new()
        .dotenv(&format!("LLM_API_BASE_URL={}\nLLM_MODEL_NAME=m\n", server.url()))
        .file("home/.config/skills-runner/.env", own)
        .file(
            "home/facts.md",
            format!(
                "---\ntype: memory\n---\n# Key Facts\n\n## Recent\n\n- [2026-01-02] {PRIVATE}\n"
            ),
        )
        .file("home/notes/2026-01-02.md", PRIVATE)
        .file("home/prompt.txt", format!("{PRIVATE} {{{{SKILLS}}}}"))
        .file("home/.agents/skills/of-user/SKILL.md", document(PRIVATE))
        .file("elsewhere/of-elsewhere/SKILL.md", document(PRIVATE))
        .skill("of-folder", &document("Belongs to the folder."))
        .link("skills/linked", "../elsewhere/of-elsewhere")
        .link("skills/within", "../kept/within")
        .file("kept/within/SKILL.md", document("Within the folder."))
        .cwd("")
}

fn assert_nothing_private(requests: &[Request]) {
    for request in requests {
        assert!(!request.json.to_string().contains(PRIVATE), "{}", request.json);
    }
}

#[test]
fn the_users_own_data_is_held_back() {
    let calls = [
        Reply::call("read_daily_note", &json!({"date": "2026-01-02"})),
        Reply::call("get_skill", &json!({"skill_name": "of-user"})),
        Reply::call("get_skill", &json!({"skill_name": "linked"})),
        Reply::call(
            "read_file_in_skill",
            &json!({"skill_name": "of-user", "file_path": "SKILL.md"}),
        ),
        Reply::call("list_skills", &json!({})),
        Reply::call("get_skill", &json!({"skill_name": "of-folder"})),
    ];
    let server = Server::start(calls.into_iter().chain([Reply::text("ok")]));
    // Moved, so that the link leads out of the folder.
    let test = test(&server);
    std::fs::create_dir(test.path("work")).unwrap();
    for name in [".env", "skills", "kept"] {
        std::fs::rename(test.path(name), test.path("work").join(name)).unwrap();
    }
    std::fs::remove_file(test.path("work/skills/linked")).unwrap();
    let test = test.link("work/skills/linked", "../../elsewhere/of-elsewhere").cwd("work");
    let host = format!("127.0.0.1:{}", server.port());
    let run = test.next_run().args(["-q", "-o", "json", "hi"]).run().success();
    let lines = run.stderr.lines().filter(|line| line.contains(&host)).count();
    run.check(lines == 1, "one line names the host");
    let run = run.stderr_has("skills-runner trust");
    let requests = server.finish();
    assert_nothing_private(&requests);
    let system = requests[0].system();
    run.check(system.contains("- of-folder: ") && system.contains("- within: "), system);
    run.check(!requests[0].tool_names().contains(&"read_daily_note"), "notes are offered");
    let last = requests[6].last_message().to_string();
    run.check(last.contains("Belongs to the folder."), last);
}

/// A skill that is left out is no question, and the messages say why.
#[test]
fn a_skill_that_is_left_out_is_not_sent_as_a_question() {
    let server = Server::start([]);
    let test = test(&server);
    std::fs::create_dir(test.path("work")).unwrap();
    std::fs::rename(test.path(".env"), test.path("work/.env")).unwrap();
    let test = test.cwd("work");
    for arguments in [&["/of-user hi"][..], &["--skill", "of-user", "hi"]] {
        let run = test.next_run().args(arguments).run().status(78);
        run.stderr_has("`of-user`: it is not in this folder").stderr_has("skills-runner trust");
    }
    server.finish();
    let run = test.next_run().args(["--dry-run", "hi"]).run().success();
    run.stderr_has("; not used: your facts, your notes, your system prompt, the skills in ")
        .stderr_has("there are no skills in this folder");
    let run = test.next_run().args(["doctor"]).run();
    run.stdout_has("not used: your facts");
    let mut chat = test.args(["chat"]).stdin("/of-user hi\n/facts\n").run();
    chat = chat.stderr_has("it is not in this folder");
    chat.stderr_has("facts do not go to the endpoint of ./.env");
}

/// What the user types, or has accepted, is sent; an address that the user sets, too, is the user's.
#[test]
fn what_the_user_chooses_is_sent() {
    let server = Server::start((0..4).map(|_| Reply::text("ok")));
    let test = test(&server);
    let run = test.next_run().args(["--skills", "home/.agents/skills", "hi"]).run().success();
    run.stderr_has("which only .env sets");
    test.next_run().args(["trust"]).run().success();
    test.next_run().args(["hi"]).run().success().stderr_lacks("only .env sets");
    let changed = format!("{}# changed\n", test.read(".env"));
    let test = test.file(".env", changed);
    let own = test.next_run().env("LLM_API_BASE_URL", server.url());
    own.args(["hi"]).run().success().stderr_lacks("only .env sets");
    let named = test.next_run().args(["--env-file", ".env", "hi"]);
    named.run().success().stderr_lacks("only .env sets");
    let requests = server.finish();
    assert!(requests[0].system().contains("- of-user: "));
    for request in &requests[1..3] {
        assert!(request.system().contains(PRIVATE), "{}", request.system());
    }
}

/// Facts and notes in the folder belong to it.
#[test]
fn data_of_the_folder_is_sent() {
    let server = Server::start([Reply::text("ok")]);
    let text = format!(
        "LLM_API_BASE_URL={}\nLLM_MODEL_NAME=m\nMEMORY_PATH=facts.md\nNOTES_FOLDER_PATH=./notes\n",
        server.url()
    );
    let test = test(&server).dotenv(&text).file(
        "facts.md",
        "---\ntype: memory\n---\n# Key Facts\n\n## Recent\n\n- [2026-01-02] of it\n",
    );
    test.args(["hi"]).run().success();
    let requests = server.finish();
    assert!(requests[0].system().contains("of it"));
    assert!(requests[0].tool_names().contains(&"read_daily_note"));
}

/// A key of `./.env` at the user's endpoint, alone or in a header, is announced.
#[test]
fn a_key_of_the_folder_at_the_users_endpoint_is_announced() {
    let server = Server::always(|_| Reply::text("ok"));
    let header = r#"LLM_EXTRA_HEADERS={"Authorization": "Bearer theirs"}"#;
    let table = [
        ("LLM_API_KEY=theirs\n", "own-key", true),
        ("LLM_API_KEY=theirs\n", "", true),
        ("LLM_API_KEY=own-key\n", "own-key", false),
        (header, "own-key", true),
        (r#"LLM_EXTRA_HEADERS={"x-team": "a"}"#, "own-key", false),
        (r#"LLM_EXTRA_HEADERS={"X-Goog-Api-Key": "a"}"#, "own-key", true),
        (r#"LLM_EXTRA_HEADERS={"cf-access-client-secret": "a"}"#, "own-key", true),
        ("SCRIPT_TIMEOUT_SECONDS=5\n", "own-key", false),
    ];
    for (line, own, is_announced) in table {
        let home =
            format!("LLM_API_BASE_URL={}\nLLM_MODEL_NAME=m\nLLM_API_KEY={own}\n", server.url());
        let test = Test::new().file("home/.config/skills-runner/.env", home).dotenv(line);
        let run = test.next_run().args(["-q", "hi"]).run().success();
        let count = run.stderr.matches("not one of yours").count();
        run.check(count == usize::from(is_announced), format!("{line} {own}"));
        test.next_run().args(["trust"]).run().success();
        test.args(["-q", "hi"]).run().success().stderr_lacks("not one of yours");
    }
}

/// Variables of the environment stay there; those of the file and defaults are expanded.
#[test]
fn variables_of_the_environment_are_not_sent() {
    let server = Server::always(|_| Reply::text("ok"));
    let start = format!("OWN=o\nLLM_API_BASE_URL={}\nLLM_MODEL_NAME=m\n", server.url());
    let table = [
        ("LLM_MODEL_NAME=${OWN}${MY_SECRET_TEXT}${NONE:-d}\n", "LLM_MODEL_NAME (.env line 4)"),
        ("LLM_EXTRA_BODY='{\"user\": \"${MY_SECRET_TEXT}\"}'\n", ""),
        ("LLM_EXTRA_BODY={\"user\": \"${MY_SECRET_TEXT}\"}\n", "LLM_EXTRA_BODY (.env line 4)"),
        (
            "LLM_EXTRA_HEADERS={\"x-user\": \"a${MY_SECRET_TEXT}\"}\n",
            "LLM_EXTRA_HEADERS (.env line 4)",
        ),
        ("LLM_API_KEY=${MY_SECRET_TEXT}\n", "LLM_API_KEY (.env line 4)"),
        ("LLM_API_KEY=${MY_SECRET_TEXT:-theirs}\n", "LLM_API_KEY (.env line 4)"),
        ("SCRIPT_SANDBOX_WRITE=./${MY_SECRET_TEXT}\n", "SCRIPT_SANDBOX_WRITE (.env line 4)"),
        ("A=${MY_SECRET_TEXT}\nLLM_MODEL_NAME=m${A}\n", "LLM_MODEL_NAME (.env line 5)"),
    ];
    for (line, said) in table {
        let test = Test::new().env("MY_SECRET_TEXT", PRIVATE).dotenv(&format!("{start}{line}"));
        let run = test.args(["hi"]).run().success();
        run.check(run.stderr.contains(said), format!("{line}: {said}"));
    }
    // The file's own variable is longer, so that its references are cut off earlier.
    let long = format!("MY={}\nB=${{MY}}${{MY}}\n", "x".repeat(600_000));
    let text = format!(
        "{long}{start}LLM_MODEL_NAME=m${{MY_SECRET_TEXT}}\nLLM_MODEL_NAME=od${{MY_SECRET_TEXT}}\n"
    );
    let test = Test::new().env("MY_SECRET_TEXT", PRIVATE).env("MY", "short").dotenv(&text);
    test.args(["hi"]).run();
    for request in server.requests() {
        assert!(!request.json.to_string().contains(PRIVATE), "{}", request.json);
        let headers = ["authorization", "x-user"].map(|name| request.header(name));
        assert!(headers.iter().flatten().all(|value| !value.contains(PRIVATE)));
    }
    assert_eq!(server.requests()[0].json["model"], "od");
}

/// Places of the user stay private if `./.env` sets others, and notes are no hard links.
#[test]
fn places_of_the_user_stay_private() {
    let own = "MEMORY_PATH=work/vault/facts.md\nNOTES_FOLDER_PATH=work/vault/notes\n";
    let test = Test::new()
        .file("home/.config/skills-runner/.env", own.replace("work", "~/work"))
        .file("home/work/vault/facts.md", PRIVATE)
        .file("home/work/vault/notes/2026-01-02.md", PRIVATE)
        .file("home/work/.env", "MEMORY_PATH=m\nNOTES_FOLDER_PATH=n\n")
        .file("home/work/skills/s/SKILL.md", "---\nname: s\ndescription: S.\n---\n")
        .folder("home/work/n")
        .cwd("home/work");
    for path in ["vault/facts.md", "vault/notes/2026-01-02.md"] {
        let arguments = json!({"path": path}).to_string();
        test.next_run().args(["tool", "read_file", &arguments]).run().stdout_lacks(PRIVATE);
    }
    let note = test.path("home/work/vault/notes/2026-01-02.md");
    std::fs::hard_link(note, test.path("home/work/n/2026-01-02.md")).unwrap();
    let run = test.args(["tool", "read_daily_note", r#"{"date": "2026-01-02"}"#]).run();
    run.stdout_lacks(PRIVATE).stdout_has("hard link");
}

/// Skills of the folder are announced, also if its `.env` names them.
#[test]
fn skills_that_the_folder_names_are_announced() {
    let server = Server::start([Reply::text("ok")]);
    let test = Test::new().skill("s", "---\nname: s\ndescription: S.\n---\n").endpoint(&server);
    let run = test.dotenv("SKILLS_FOLDER_PATH=skills\n").args(["hi"]).run().success();
    run.stderr_has("using the skills of this folder: 1 in ./skills");
    server.finish();
}
