//! `read_file`: files, folders, images and what is refused.

use std::fs;

use serde_json::json;

use super::{DOCUMENT, assert_answer, call, work};
use crate::harness::Test;

#[test]
fn files_folders_and_skills_are_read() {
    let test = work()
        .file("work/a.txt", "one\ntwo\nthree\n")
        .file("work/sub/b.bin", b"\x7fELF\0\0")
        .link("work/to-a", "a.txt")
        .file("home/.claude/skills/far/SKILL.md", "far\n")
        .file("home/.claude/skills/far/.env", "X=1\n")
        .file("home/.claude/secret", "canary\n");
    let far = |name: &str| test.path(format!("home/.claude/{name}")).display().to_string();
    let private = Err("is private (.env files, keys, sessions, memory, notes, log, .git)");
    let elsewhere = Err("is not below the working folder");
    let table = [
        (json!({"path": "a.txt"}), Ok("one\ntwo\nthree\n")),
        (json!({"path": "to-a"}), Ok("one\ntwo\nthree\n")),
        (
            json!({"path": "a.txt", "offset": 2, "limit": 1}),
            Ok("two\n[lines 2 to 2; the file is 14 bytes long. Go on with offset 3]\n"),
        ),
        (json!({"path": "sub"}), Ok("b.bin (6 bytes)\n")),
        (json!({"path": "skills/s/SKILL.md"}), Ok(DOCUMENT)),
        (json!({"path": far("skills/far/SKILL.md")}), Ok("far\n")),
        (json!({"path": "~/.claude/skills/far/SKILL.md"}), Ok("far\n")),
        (json!({"path": far("skills/far/.env")}), private),
        (json!({"path": far("skills/far/../../secret")}), Err("a path must not contain `..`")),
        (json!({"path": far("secret")}), elsewhere),
        (json!({"path": "/etc/passwd"}), Err("use run_command for it")),
        (json!({"path": "../home/notes.txt"}), Err("use run_command for it")),
        (json!({"path": "b.txt"}), Err("no such file or folder (did you mean `a.txt`?)")),
        (json!({"path": "nowhere"}), Err("no such file or folder; list the folder")),
        (json!({"path": "A.TXT"}), Ok("[read `a.txt`, there is no `A.TXT`]\none\ntwo\nthree\n")),
        (json!({"path": "sub/../a.txt"}), Err("give the path without `..`")),
        (json!({"path": "a.txt", "offset": -1}), Err("`offset` must be 1 or more")),
    ];
    for (arguments, answer) in table {
        assert_answer(&test, "read_file", arguments, answer);
    }
    let far_document = test.next_run().args(["tool", "read_file"]);
    let arguments = json!({"path": "sub/b.bin"}).to_string();
    far_document.args([arguments]).run().success().stdout_has("6 bytes: not text");
}

/// The path that `get_skill` names, and the real one, are those of the skill.
#[test]
fn skills_of_a_folder_beside_the_working_folder_are_read() {
    let test = work().file("other/far/SKILL.md", "far\n").link("linked", "other");
    let real = test.path("other").canonicalize().unwrap().join("far/SKILL.md");
    for folder in ["../other", "../linked"] {
        let test = test.clone().env("SKILLS_FOLDER_PATH", folder);
        let document = call(&test, "get_skill", json!({"skill_name": "far"})).success();
        let named =
            document.stdout.lines().find_map(|line| line.split_once("directory for this skill: "));
        let path = format!("{}/SKILL.md", named.expect("the folder is named").1);
        for path in [path.as_str(), real.to_str().unwrap()] {
            assert_answer(&test, "read_file", json!({"path": path}), Ok("far\n"));
            let arguments = json!({"skill_name": "far", "file_path": path});
            assert_answer(&test, "read_file_in_skill", arguments, Ok("far\n"));
        }
    }
    // A skill of the working folder that is a link.
    let own = test.clone().link("work/skills/far", "../../other/far");
    let named = own.path("work/skills/far/SKILL.md");
    for path in ["skills/far/SKILL.md", named.to_str().unwrap(), real.to_str().unwrap()] {
        assert_answer(&own, "read_file", json!({"path": path}), Ok("far\n"));
    }
    fs::remove_file(test.path("work/skills/far")).unwrap();
    let linked = test.path("linked").display().to_string();
    let test = test.clone().env("SKILLS_FOLDER_PATH", linked);
    assert_answer(&test, "read_file", json!({"path": real}), Ok("far\n"));
}

/// Files with settings and stored data are refused by every name that they have.
#[test]
fn private_files_are_not_read() {
    let test = work()
        .file("work/.env.local", "SECRET=canary\n")
        .file("work/sub/.git/config", "canary\n")
        .file("work/.git/config", "canary\n")
        .file("work/key", "canary\n")
        .file("work/facts.md", "- canary\n")
        .file("work/data/x.txt", "fine\n")
        .link("work/to-env", ".env.local")
        .link("work/to-git", "sub/.git")
        .env("LLM_API_KEY_FILE", "key")
        .env("MEMORY_PATH", "facts.md")
        .env("SESSIONS_PATH", "data/sessions")
        .file("work/data/sessions/a.jsonl", "canary\n");
    let hard = [
        (".env.local", "h-env"),
        ("key", "h-key"),
        ("facts.md", "h-facts"),
        (".git/config", "h-git"),
        ("data/sessions/a.jsonl", "h-session"),
        ("data/x.txt", "h-fine"),
    ];
    for (name, link) in hard {
        let path = |name: &str| test.path(format!("work/{name}"));
        fs::hard_link(path(name), path(link)).unwrap();
    }
    let listed = ".env.local to-env sub/.git to-git to-git/config sub/.GIT key facts.md data/sessions \
        data/sessions/a.jsonl h-env h-key h-facts h-git h-session .git";
    for path in listed.split_whitespace() {
        let answer = Err("is private (.env files, keys, sessions, memory, notes, log, .git)");
        assert_answer(&test, "read_file", json!({"path": path}), answer);
    }
    assert_answer(&test, "read_file", json!({"path": "h-fine"}), Ok("fine\n"));
    let log = test.next_run().args(["tool", "--log", "log", "read_file", r#"{"path":"log"}"#]);
    log.run().status(1).stdout_has("`log` is private");
}

/// With a sandbox the home is not read, except for what the user grants.
#[test]
fn the_home_and_the_sandbox_restrict_reading() {
    let home = || {
        let test = Test::new().file("home/.claude/skills/s/SKILL.md", DOCUMENT);
        test.file("home/a", "a\n").file("home/in/b", "b\n").file("home/.rc", "rc\n").cwd("home")
    };
    let sandboxed = |test: Test| test.env("SCRIPT_SANDBOX", "on");
    let granted = |test: Test| {
        let path = test.path("home/in");
        test.env("SCRIPT_SANDBOX_READ", path)
    };
    let table = [
        (home(), "a", Ok("a\n")),
        (home(), ".rc", Err("hidden files are not touched")),
        (home(), ".claude/skills/s/SKILL.md", Err("hidden files are not touched")),
        (sandboxed(home()), "a", Err("is not in a folder that the user allows")),
        (sandboxed(granted(home())), "in/b", Ok("b\n")),
        (sandboxed(work().file("work/a", "a\n")), "a", Ok("a\n")),
    ];
    for (test, path, answer) in table {
        assert_answer(&test, "read_file", json!({"path": path}), answer);
    }
    assert_answer(&home().args(["x"]), "read_file", json!({"path": "a"}), Ok("a\n"));
    let off = home().next_run().args(["tool", "--no-scripts", "read_file", r#"{"path":"a"}"#]);
    off.run().status(1).stdout_has("are turned off");
}
