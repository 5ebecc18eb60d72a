//! `SYSTEM_PROMPT_PATH`: a file of instructions, its placeholders, and whom it
//! is taken from.

use crate::harness::{Outcome, Reply, Server, Test};

const DOCUMENT: &str = "---\ndescription: Says {{KEY_FACTS}}.\n---\nDo it.\n";
const SETTING: &str = "SYSTEM_PROMPT_PATH";

fn system(run: &Outcome) -> String {
    let request = run.stdout_json();
    let system = &request["body"]["messages"][0];
    assert_eq!(system["role"], "system");
    system["content"].as_str().unwrap().to_string()
}

/// What is filled in is not searched again, what is unknown stays, and what the
/// file does not mention is appended, but for the tools.
#[test]
fn its_placeholders_are_filled_in_once() {
    let server = Server::start([Reply::text("ok")]);
    let template =
        "\u{feff}You are Bo.\n\n{{SKILLS}}\n\n{{TOOL_DESCRIPTIONS}}\n{{X}} {{KEY_FACTS}}.\n";
    let test = Test::new()
        .skill("s", DOCUMENT)
        .file("prompts/bo.md", template)
        .endpoint(&server)
        .env(SETTING, "prompts/bo.md");
    test.again().args(["hi"]).run().success();
    let request = &server.finish()[0];
    let system = request.system();
    let skills = "You are Bo.\n\n- s: Says {{KEY_FACTS}}.\n\n\
                  Paths in a skill are relative to its folder, where scripts start; ";
    assert!(system.starts_with(skills), "{system}");
    assert!(system.contains("\n\n- `list_skills`: "), "{system}");
    for name in request.tool_names() {
        assert!(system.contains(&format!("\n- `{name}`: ")), "{name}: {system}");
    }
    assert!(system.contains("\n  - `arguments` (string, optional)\n  - `skill_name` (string)\n"));
    assert!(system.ends_with("\n{{X}} (none).") && !system.contains("Skills:"), "{system}");

    let plain = test.again().file("plain.md", "Be Jo.\n").env(SETTING, "plain.md");
    let system = self::system(&plain.args(["--dry-run", "hi"]).run().success());
    assert!(system.starts_with("Be Jo.\n\nPaths in a skill"), "{system}");
    assert!(system.ends_with("\n\nSkills:\n- s: Says {{KEY_FACTS}}.\n"), "{system}");
    assert!(!system.contains("list_skills"), "{system}");
}

/// `-s` wins, and is no template.
#[test]
fn instructions_of_the_command_line_win_over_it() {
    let server = Server::unasked(Reply::text("never"));
    let test = Test::new().skill("s", DOCUMENT).endpoint(&server).env(SETTING, "missing.md");
    let run = test.args(["-s", "Be {{SKILLS}}.", "--dry-run", "hi"]).run();
    let system = system(&run.success());
    assert!(system.starts_with("Be {{SKILLS}}.\n\nPaths"), "{system}");
    assert!(system.contains("\nSkills:\n- s: "), "{system}");
}

/// R-LIFE-1: told with its path, before anything is sent, and by `doctor`.
#[test]
fn a_file_that_cannot_be_used_is_refused_with_its_path() {
    let server = Server::unasked(Reply::text("never"));
    let test = Test::new()
        .skill("s", DOCUMENT)
        .folder("folder")
        .file("latin-1", b"gr\xfc\xdfe")
        .file("large", "x".repeat((1 << 20) + 1))
        .file("many", "{{SKILLS}}{{KEY_FACTS}}".repeat(51))
        .endpoint(&server);
    let table = [
        ("missing", "No such file or directory (os error 2)"),
        ("folder", "it is neither a file nor a pipe"),
        ("latin-1", "it is not UTF-8 text"),
        ("large", "it is larger than 1048576 bytes"),
        ("many", "it has more than 100 placeholders"),
    ];
    for (name, cause) in table {
        let path = test.path(name).display().to_string();
        let expected =
            format!("failed to read the instructions `{path}`: {cause}\nhint: SYSTEM_PROMPT_PATH ");
        let test = test.again().env(SETTING, name);
        // Before a question is waited for.
        test.again().stdin_open().run().status(78).stderr_has(&expected);
        for arguments in [&["hi"][..], &["chat"], &["--dry-run", "hi"]] {
            let run = test.again().stdin("hi\n").args(arguments).run();
            run.status(78).stderr_has(&expected).stdout_is_empty();
        }
        // What needs no instructions works.
        test.again().args(["tool", "list_skills"]).run().success();
    }
    let doctor = test.env(SETTING, "missing").args(["doctor", "--json"]).run();
    doctor.demand(doctor.status_is(78), "the exit status");
    let report = doctor.stdout_json();
    let check = &report["checks"][0];
    doctor.demand(check["name"] == "configuration", "the first check");
    doctor.demand(check.to_string().contains("failed to read the instructions"), "the finding");
}

const AWAY: &str = "https://models.test/v1";
/// A file of settings that names an endpoint on another machine.
const FOREIGN: &str = "LLM_API_BASE_URL=https://models.test/v1\nLLM_API_KEY=none\n";

/// A stranger's folder does not make us send what else there is.
#[test]
fn a_foreign_file_of_settings_names_only_what_lies_in_the_folder() {
    let test = Test::new()
        .skill("s", DOCUMENT)
        .file("home/.ssh/id", "canary-of-home")
        .file("work/own.md", "Be Jo.")
        .file("work/.hidden", "canary-of-work")
        .file("work/.git/config", "canary-of-git")
        .link("work/link.md", "../home/.ssh/id")
        .link("work/down", "../home/.ssh")
        .file("outside.md", "canary-outside")
        .env("LLM_MODEL_NAME", "m")
        .cwd("work");
    let ask = |test: &Test| test.again().args(["--skills", "../skills", "--dry-run", "hi"]).run();
    for (value, is_taken) in [
        ("own.md", true),
        ("./own.md", true),
        ("../work/own.md", true),
        ("../outside.md", false),
        ("~/.ssh/id", false),
        ("${HOME}/.ssh/id", false),
        ("link.md", false),
        ("down/id", false),
        (".hidden", false),
        (".git/config", false),
    ] {
        let line = format!("{SETTING}={value}\n");
        // Nothing leaves for whom the user chose, or for this machine.
        let chosen =
            test.again().dotenv(&line).env("LLM_API_BASE_URL", AWAY).env("LLM_API_KEY", "none");
        ask(&chosen).success();
        let test = test.again().dotenv(&format!("{FOREIGN}{line}"));
        let run = ask(&test).stdout_lacks("canary").stderr_lacks("canary");
        if is_taken {
            let system = system(&run.success());
            assert!(system.starts_with("Be Jo.\n"), "{value}: {system}");
            continue;
        }
        run.status(78)
            .stderr_has("SYSTEM_PROMPT_PATH (.env line 3) sends ")
            .stderr_has("to the endpoint, which is no plain file in the working folder: set SYSTEM_PROMPT_PATH in the environment or in ~/.config/skills-runner/.env, or pass the file with --env-file if you trust it");
        let trusted = test.again().args(["--env-file", ".env"]);
        trusted
            .args(["--skills", "../skills", "--dry-run", "hi"])
            .run()
            .success()
            .stdout_has("canary");
    }
    let fifo = std::process::Command::new("mkfifo").arg(test.path("work/fifo")).status();
    assert!(fifo.unwrap().success());
    let waits = test.again().dotenv(&format!("{SETTING}=fifo\n"));
    ask(&waits).status(78).stderr_has("no plain file");
    // What it keeps elsewhere may be the user's: that is told, also where it is not
    // there yet.
    let test = test.link("work/later", "../home/later");
    for name in ["MEMORY_PATH", "NOTES_FOLDER_PATH", "SESSIONS_PATH"] {
        for (value, is_taken) in [
            ("kept", true),
            ("kept/new", true),
            ("../home/kept", false),
            ("~/.ssh", false),
            ("down", false),
            ("down/new", false),
            ("later", false),
            ("later/new", false),
            (".git/new", false),
            ("new/../../home/new", false),
        ] {
            let line = format!("{name}={value}\n");
            let told = format!("{name} (.env line 3) leads to ");
            let run = ask(&test.again().dotenv(&format!("{FOREIGN}{line}"))).success();
            if is_taken {
                run.stderr_lacks("leads to");
                continue;
            }
            run.stderr_has(&told)
                .stderr_has("outside of the working folder, and the same file names the endpoint")
                .stderr_has("~/.config/skills-runner/.env");
            let chosen =
                test.again().dotenv(&line).env("LLM_API_BASE_URL", AWAY).env("LLM_API_KEY", "none");
            ask(&chosen).success().stderr_lacks("leads to");
        }
        let own = test.again().dotenv(FOREIGN).env(name, "../home/kept");
        ask(&own).success().stderr_lacks("leads to");
    }
    let own = test.dotenv(FOREIGN).env(SETTING, "../outside.md");
    ask(&own).success().stdout_has("canary-outside");
}

/// R-FACT-4: where the file says, or else at the end.
#[test]
fn facts_stand_where_the_file_says() {
    let server = Server::unasked(Reply::text("never"));
    let facts = "---\ntype: memory\n---\n# Key Facts\n\n## Important\n- Likes {{SKILLS}} #important\n\n## Recent\n- [2026-01-02] Moved.\n";
    let test = Test::new()
        .skill("s", DOCUMENT)
        .file("facts.md", facts)
        .file("with.md", "Know:\n{{KEY_FACTS}}\nThat is all.\n")
        .file("without.md", "Be Jo.\n")
        .endpoint(&server)
        .env("MEMORY_PATH", "facts.md");
    let told = "- Likes {{SKILLS}} #important\n- [2026-01-02] Moved.";
    let ask = |test: Test| system(&test.args(["--dry-run", "hi"]).run().success());
    let appended = format!(
        "\n\nWhat you remember of earlier conversations (important facts first, each part newest first):\n{told}\n"
    );

    let with = ask(test.again().env(SETTING, "with.md"));
    let start = format!("Know:\n{told}\nThat is all.\n\nPaths");
    assert!(with.starts_with(&start) && !with.contains("remember of"), "{with}");
    for test in [test.again(), test.again().env(SETTING, "without.md")] {
        let without = ask(test);
        assert!(without.ends_with(&appended), "{without}");
    }
    let missing = ask(test.env("MEMORY_PATH", "none.md").env(SETTING, "with.md"));
    assert!(missing.starts_with("Know:\n(none)\nThat is all."), "{missing}");
}

/// A slip in a placeholder is told; what is no placeholder at all is not.
#[test]
fn an_unknown_placeholder_is_told() {
    for (text, told) in [
        ("{{SKILLS}} {{OTHER}}", "the instructions hold {{OTHER}}, which"),
        ("{{ SKILLS }}", "the instructions hold {{ SKILLS }}, which"),
        ("{{SKILLS}} {{name}} {{}} {{ A B }} {{A", ""),
    ] {
        let server = Server::start([Reply::text("ok")]);
        let test = Test::new().file("prompt.md", text).env(SETTING, "prompt.md");
        let run = test.endpoint(&server).args(["hi"]).run().success();
        let run = run.stderr_has(told);
        let is_silent = !run.stderr.contains("the instructions hold");
        run.demand(is_silent == told.is_empty(), "the warning");
        server.finish();
    }
}
