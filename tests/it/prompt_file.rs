//! `SYSTEM_PROMPT_PATH`: a file with the system prompt, its placeholders, and the origins that may
//! set it.

use crate::harness::{Outcome, Reply, Server, Test};

const DOCUMENT: &str = "---\ndescription: Says {{KEY_FACTS}}.\n---\nDo it.\n";
const SETTING: &str = "SYSTEM_PROMPT_PATH";

fn system(run: &Outcome) -> String {
    let request = run.stdout_json();
    let system = &request["body"]["messages"][0];
    assert_eq!(system["role"], "system");
    system["content"].as_str().unwrap().to_string()
}

/// Inserted text is not searched for placeholders, unknown placeholders stay, and parts without a
/// placeholder are appended, except the tools.
#[test]
fn placeholders_are_filled_in_once() {
    let server = Server::start([Reply::text("ok")]);
    let template =
        "\u{feff}You are Bo.\n\n{{SKILLS}}\n\n{{TOOL_DESCRIPTIONS}}\n{{X}} {{KEY_FACTS}}.\n";
    let test = Test::new()
        .skill("s", DOCUMENT)
        .file("prompts/bo.md", template)
        .endpoint(&server)
        .env(SETTING, "prompts/bo.md");
    test.next_run().args(["hi"]).run().success();
    let request = &server.finish()[0];
    let system = request.system();
    let skills = "You are Bo.\n\n- s: Says {{KEY_FACTS}}.\n\n\
                  Relative paths of the user, commands and scripts start in ";
    assert!(system.starts_with(skills), "{system}");
    assert!(system.contains("\n\n- `list_skills`: "), "{system}");
    for name in request.tool_names() {
        assert!(system.contains(&format!("\n- `{name}`: ")), "{name}: {system}");
    }
    assert!(system.contains("\n  - `arguments` (string, optional)\n  - `skill_name` (string)\n"));
    assert!(system.ends_with("\n{{X}} (none).") && !system.contains("Skills:"), "{system}");

    let plain = test.next_run().file("plain.md", "Be Jo.\n").env(SETTING, "plain.md");
    let system = self::system(&plain.args(["--dry-run", "hi"]).run().success());
    assert!(
        system.starts_with(
            "Be Jo.\n\nSkills:\n- s: Says {{KEY_FACTS}}.\n\nRelative paths of the user"
        ),
        "{system}"
    );
    assert!(system.ends_with("Relative paths in a skill start in its folder.\n"), "{system}");
    assert!(!system.contains("list_skills"), "{system}");
}

/// `-s` overrides the file and is not a template.
#[test]
fn system_prompt_option_overrides_the_file() {
    let server = Server::unsolicited(Reply::text("never"));
    let test = Test::new().skill("s", DOCUMENT).endpoint(&server).env(SETTING, "missing.md");
    let run = test.args(["-s", "Be {{SKILLS}}.", "--dry-run", "hi"]).run();
    let system = system(&run.success());
    assert!(system.starts_with("Be {{SKILLS}}.\n\nSkills:\n- s: "), "{system}");
    assert!(system.contains("\n\nRelative paths"), "{system}");
}

/// The error names the path before any request; `doctor` reports it too.
#[test]
#[ignore = "long"]
fn unusable_file_is_refused_with_its_path() {
    let server = Server::unsolicited(Reply::text("never"));
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
        let expected = format!(
            "failed to read the system prompt `{path}`: {cause}\nhint: SYSTEM_PROMPT_PATH "
        );
        let test = test.next_run().env(SETTING, name);
        // It is reported before standard input is read.
        test.next_run().stdin_open().run().status(78).stderr_has(&expected);
        for arguments in [&["hi"][..], &["chat"], &["--dry-run", "hi"]] {
            let run = test.next_run().stdin("hi\n").args(arguments).run();
            run.status(78).stderr_has(&expected).stdout_is_empty();
        }
        // Commands that need no system prompt work.
        test.next_run().args(["tool", "list_skills"]).run().success();
    }
    let doctor = test.env(SETTING, "missing").args(["doctor", "--json"]).run();
    doctor.check(doctor.status_is(78), "the exit status");
    let report = doctor.stdout_json();
    let check = &report["checks"][0];
    doctor.check(check["name"] == "configuration", "the first check");
    doctor.check(check.to_string().contains("failed to read the system prompt"), "the finding");
}

const AWAY: &str = "https://models.test/v1";
/// An `.env` file that names an endpoint on another machine.
const FOREIGN: &str = "LLM_API_BASE_URL=https://models.test/v1\nLLM_API_KEY=none\n";

/// The `.env` file of an untrusted folder cannot cause other files to be sent.
#[test]
#[ignore = "long"]
fn env_file_of_another_user_names_only_files_in_the_folder() {
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
    let ask =
        |test: &Test| test.next_run().args(["--skills", "../skills", "--dry-run", "hi"]).run();
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
        // Also at an endpoint that the user chose.
        let chosen =
            test.next_run().dotenv(&line).env("LLM_API_BASE_URL", AWAY).env("LLM_API_KEY", "none");
        ask(&chosen).status(if is_taken { 0 } else { 78 }).stdout_lacks("canary");
        let test = test.next_run().dotenv(&format!("{FOREIGN}{line}"));
        let run = ask(&test).stdout_lacks("canary").stderr_lacks("canary");
        if is_taken {
            let system = system(&run.success());
            assert!(system.starts_with("Be Jo.\n"), "{value}: {system}");
            continue;
        }
        run.status(78)
            .stderr_has("SYSTEM_PROMPT_PATH (.env line 3) must be a visible place in this folder, not ")
            .stderr_has("set it in ~/.config/skills-runner/.env; if .env is yours, run `skills-runner trust`");
        let trusted = test.next_run().args(["--env-file", ".env"]);
        trusted
            .args(["--skills", "../skills", "--dry-run", "hi"])
            .run()
            .success()
            .stdout_has("canary");
    }
    let fifo = std::process::Command::new("mkfifo").arg(test.path("work/fifo")).status();
    assert!(fifo.unwrap().success());
    let waits = test.next_run().dotenv(&format!("{SETTING}=fifo\n"));
    ask(&waits).status(78).stderr_has("must be a visible place");
    // A file outside the folder may be private to the user: it is refused, even if it does not
    // exist yet.
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
            let status = if is_taken { 0 } else { 78 };
            let run = ask(&test.next_run().dotenv(&format!("{FOREIGN}{line}"))).status(status);
            let said = format!("{name} (.env line 3) must be a visible place in this folder");
            run.check(run.stderr.contains(&said) != is_taken, format!("{line}: {said}"));
            let chosen = test
                .next_run()
                .dotenv(&line)
                .env("LLM_API_BASE_URL", AWAY)
                .env("LLM_API_KEY", "none");
            ask(&chosen).status(status);
        }
        let own = test.next_run().dotenv(FOREIGN).env(name, "../home/kept");
        ask(&own).success().stderr_lacks("must be a visible place");
    }
    // What the user sets counts, but does not go to the endpoint of the folder.
    let own = test.dotenv(FOREIGN).env(SETTING, "../outside.md");
    ask(&own).success().stdout_lacks("canary-outside").stderr_has("not used: your system prompt");
}

#[test]
fn facts_appear_at_their_placeholder_or_at_the_end() {
    let server = Server::unsolicited(Reply::text("never"));
    let facts = "---\ntype: memory\n---\n# Key Facts\n\n## Important\n- Likes {{SKILLS}} #important\n\n## Recent\n- [2026-01-02] Moved.\n";
    let test = Test::new()
        .skill("s", DOCUMENT)
        .file("facts.md", facts)
        .file("with.md", "Know:\n{{KEY_FACTS}}\nThat is all.\n")
        .file("without.md", "Be Jo.\n")
        .endpoint(&server)
        .env("MEMORY_PATH", "facts.md");
    let reported = "- Likes {{SKILLS}} #important\n- [2026-01-02] Moved.";
    let ask = |test: Test| system(&test.args(["--dry-run", "hi"]).run().success());
    let appended = format!(
        "\n\nWhat you remember of earlier conversations (important facts first, each part newest first):\n{reported}\n"
    );

    let with = ask(test.next_run().env(SETTING, "with.md"));
    let start = format!(
        "Know:\n{reported}\nThat is all.\n\nSkills:\n- s: Says {{{{KEY_FACTS}}}}.\n\nRelative paths"
    );
    assert!(with.starts_with(&start) && !with.contains("remember of"), "{with}");
    let without = ask(test.next_run().env(SETTING, "without.md"));
    assert!(without.ends_with(&appended), "{without}");
    let built_in = ask(test.next_run());
    assert!(built_in.contains(&format!("{appended}\nToday is ")), "{built_in}");
    let missing = ask(test.env("MEMORY_PATH", "none.md").env(SETTING, "with.md"));
    assert!(missing.starts_with("Know:\n(none)\nThat is all."), "{missing}");
}

/// A misspelled placeholder is reported; other text in braces is not.
#[test]
fn unknown_placeholder_is_reported() {
    for (text, reported) in [
        ("{{SKILLS}} {{OTHER}}", "the system prompt contains {{OTHER}}, which"),
        ("{{ SKILLS }}", "the system prompt contains {{ SKILLS }}, which"),
        ("{{SKILLS}} {{name}} {{}} {{ A B }} {{A", ""),
    ] {
        let server = Server::start([Reply::text("ok")]);
        let test = Test::new().file("prompt.md", text).env(SETTING, "prompt.md");
        let run = test.endpoint(&server).args(["hi"]).run().success();
        let run = run.stderr_has(reported);
        let is_silent = !run.stderr.contains("the system prompt contains");
        run.check(is_silent == reported.is_empty(), "the warning");
        server.finish();
    }
}
