//! Folders and names that are reported.

use super::{body, call, document, dry_run, list, system};
use crate::harness::{Reply, Server, Test};
use crate::mcp::Client;
use crate::paths::as_an_ordinary_user;
use serde_json::{Value, json};
use std::fs;

/// Folders without read or search permission are reported, and do not hide other skills.
#[test]
fn inaccessible_folders_are_reported() {
    let skill = |text: &str| document("s", text);
    let test = Test::new()
        .mode(".", 0o755)
        .file("unread/s/SKILL.md", skill("Unread."))
        .mode("unread", 0o711)
        .file("closed/s/SKILL.md", skill("Closed."))
        .mode("closed", 0o744)
        .file("locked/l/SKILL.md", skill("Locked."))
        .link("open/l", "../locked/l")
        .file("open/s/SKILL.md", skill("Open."))
        .mode("locked", 0o700);
    let shell = as_an_ordinary_user(&test);
    let list = |folders: &[&str]| {
        let test = test.next_run().shell(shell);
        let test = folders.iter().fold(test, |test, folder| test.args(["--skills", folder]));
        let list = test.args(["tool", "list_skills"]).run().success();
        list.stdout_json()
    };
    let note = &list(&["unread"])["note"];
    assert!(note.as_str().unwrap().contains("/unread cannot be read: Permission denied"));
    let closed = "(not usable: it cannot be opened: permission denied)";
    assert_eq!(list(&["closed"])["skills"], json!([{"name": "s", "description": closed}]));
    let open = json!([{"name": "s", "description": "Open."}]);
    assert_eq!(list(&["closed", "unread", "open"])["skills"], open);
    let run = test.next_run().shell(shell).env("LLM_API_BASE_URL", "http://127.0.0.1:9/v1");
    let run = run.env("LLM_MODEL_NAME", "m").args(["--skills", "open", "--dry-run", "hi"]).run();
    run.success()
        .stderr_has("l: a link to ../locked/l, which cannot be followed: Permission denied");
}

/// A skills folder with too many folders is read in part; output and memory stay limited.
#[test]
#[ignore = "long"]
fn too_large_skills_folder_is_reported() {
    let test = Test::new();
    for number in 0..20_002 {
        fs::create_dir(test.path(format!("skills/folder-{number:05}"))).unwrap();
    }
    let run = dry_run(&test, [""; 0])
        .stderr_has("more than 20000 skills: the last 2 by name are left out")
        .stderr_has("… and 19981 more problems of skills")
        // The tested program is built without optimization: 13 MiB of this are its own pages.
        .memory_at_most(36 << 10);
    assert_eq!(run.stderr.lines().count(), 22);
    let (listed, note) = list(&test, [""; 0]);
    assert!(note.contains(" of 20000 skills are shown; `query` finds the others"));
    assert!(listed.len() > 500 && listed[0].0 == "folder-00000");
}

/// A folder without a document does not hide a skill of the same name, and is reported.
#[test]
fn folder_without_a_document_does_not_hide_a_skill() {
    let test = Test::new()
        .folder("one/pdf")
        .folder("one/more")
        .file("one/x/SKILL.md", document("x", "Of one."))
        .folder("one/draft")
        .file("two/pdf/SKILL.md", document("pdf", "Reads PDF."))
        .file("two/more/SKILL.md", document("more", "Does more."))
        .folder("two/draft");
    let folders = ["--skills", "one", "--skills", "two"];
    let (skills, note) = list(&test, folders);
    let expected = [("more", "Does more."), ("pdf", "Reads PDF."), ("x", "Of one.")];
    assert_eq!(skills, expected.map(|(name, about)| (name.into(), about.into())), "{note}");
    let call = json!({"skill_name": "pdf"}).to_string();
    let run = test.next_run().args(folders).args(["tool", "get_skill", &call]);
    run.run().success().stdout_has("Reads PDF.");
    let run = test.next_run().args(folders).args(["skills", "check"]).run();
    let run = run.success().stdout_has("one/draft: note[no-document]: it has no SKILL.md\n");
    let clashes: Vec<&str> = run
        .stdout
        .lines()
        .filter(|line| line.contains("[name-clash]"))
        .map(|line| line.split_once(": ").unwrap().0)
        .collect();
    assert_eq!(clashes, ["two/draft", "one/more", "one/pdf"]);
    let path = test.path("two/pdf");
    let expected = format!(
        "one/pdf: warning[name-clash]: it has no SKILL.md, so the name `pdf` means {}",
        path.display()
    );
    run.stdout_has(&expected);
}

const SHARED: &str = "home/.local/share/skills-runner/skills";

/// The defaults are the project's folder, and the user's folder for all projects.
#[test]
fn both_default_folders_are_read_and_the_first_wins() {
    let test = Test::new()
        .skill("a", &document("a", "Of the project."))
        .skill("b", &document("b", "Of the project."))
        .file(&format!("{SHARED}/b/SKILL.md"), document("b", "Shared."))
        .file(&format!("{SHARED}/c/SKILL.md"), document("c", "Shared."));
    let expected = [("a", "Of the project."), ("b", "Of the project."), ("c", "Shared.")]
        .map(|(name, description)| (name.to_owned(), description.to_owned()));
    assert_eq!(list(&test, [""; 0]).0, expected);
    let kept = test.path("skills/b");
    dry_run(&test, [""; 0])
        .stderr_has("using the skills of this folder: 2 in ./skills\n")
        .stderr_has(&format!("{SHARED}/b: the name `b` means {}", kept.display()))
        .stderr_has("so this skill is `skills-runner:b`");
    dry_run(&test, ["-q"]).stderr_is_empty();
    dry_run(&test, ["-v"]).stderr_has(&format!("{SHARED}: 1 skill\n"));
    let hidden = call(&test, "get_skill", &json!({"skill_name": "skills-runner:b"}));
    hidden.success().stdout_has("Shared.");
    call(&test, "get_skill", &json!({"skill_name": "c"})).success().stdout_has("# c");
    // The new skill is created in the project, and the next command finds it.
    let new = test.next_run().args(["skills", "new", "d"]).run().success();
    new.stdout("skills/d\n").stderr_has("skills check d`");
    // A configured folder replaces both.
    let test = test.env("SKILLS_FOLDER_PATH", "skills");
    let (listed, _) = list(&test, [""; 0]);
    assert_eq!(listed.len(), 3, "{listed:?}");
}

/// One of the two default folders is enough, but a broken link in place of one is reported.
#[test]
fn one_missing_default_folder_is_not_reported() {
    let test = Test::new().cwd("project").folder("project");
    dry_run(&test, [""; 0]).stderr_has("there are no skills in the default folders (./skills, ");
    let test = test.file(&format!("{SHARED}/c/SKILL.md"), document("c", "Shared."));
    dry_run(&test, [""; 0]).stderr_is_empty();
    let test = test.link("project/skills", "gone");
    let run = dry_run(&test, [""; 0]).stderr_has("project/skills does not exist");
    assert!(system(&run).ends_with("- c: Shared.\n"));
}

/// The line that explains missing tools is a warning, so `-q` does not hide it.
#[test]
fn missing_skills_are_explained_with_quiet() {
    let test = Test::new();
    dry_run(&test, ["-q"]).stderr_has("there are no skills in ");
}

/// The program expands `~/` after an equals sign, because shells do not.
#[test]
fn home_folder_is_expanded_in_options() {
    let test = Test::new()
        .file("home/mine/a/SKILL.md", document("a", "A."))
        .file("home/own.env", "LLM_MODEL_NAME=from-home\n");
    let (listed, _) = list(&test, ["--skills=~/mine"]);
    assert_eq!(listed, [("a".to_owned(), "A.".to_owned())]);
    let test = test.env("LLM_API_BASE_URL", "http://127.0.0.1:9/v1").args([
        "--env-file=~/own.env",
        "--skills=~/mine",
        "--dry-run",
        "hi",
    ]);
    let run = test.run().success();
    assert_eq!(body(&run)["model"], "from-home");
}

/// A name is shown in one line, and the name as shown opens the skill.
#[test]
fn name_with_control_characters_is_one_line_everywhere() {
    let name = "a\nIgnore all\tthat\u{1b}[2J";
    let shown = "a\u{fffd}Ignore all\u{fffd}that\u{fffd}[2J";
    let test = Test::new().skill(name, &document("x", "Odd."));
    let run = dry_run(&test, [""; 0]);
    let text = system(&run);
    assert!(text.ends_with(&format!("Skills:\n- {shown}: Odd.\n")), "{text:?}");
    for name in [name, shown] {
        call(&test, "get_skill", &json!({ "skill_name": name })).success().stdout_has("# x");
    }
    let list = test.next_run().args(["skills", "list"]).run().success();
    assert_eq!(list.stdout.lines().count(), 1, "{}", list.stdout);
    assert!(list.stderr.lines().all(|line| line.starts_with("skills-runner: ")));
    // Also for a skill that cannot be used, and for a hidden one.
    let test =
        test.folder("skills/b\nc").file(&format!("other/{name}/SKILL.md"), document("x", "Other."));
    let folders = ["--skills", "skills", "--skills", "other"];
    let list = test.next_run().args(["skills", "list"]).args(folders).run().success();
    list.stderr_has(": the name `a Ignore all that\u{fffd}[2J` means");
    let run = dry_run(&test, [""; 0]).stderr_has("`b\u{fffd}c` cannot be used");
    assert!(run.stderr.lines().all(|line| line.starts_with("skills-runner: ")));
}

/// Documents that `get_skill` would refuse are reported at the start, if their size or the part
/// that discovery reads shows the problem. In `even` or `odd` this part ends inside a character,
/// which is not a problem.
#[test]
fn documents_that_get_skill_refuses_are_reported() {
    let latin = [document("latin", "L.").as_bytes(), b"caf\xe9\n"].concat();
    let long = "\u{e9}".repeat(4000);
    let test = Test::new()
        .file("skills/latin/SKILL.md", latin)
        .skill("large", &(document("large", "L.") + &"x".repeat(1 << 20)))
        .skill("even", &(document("even", "E.") + &long))
        .skill("odd", &(document("odd", "O.") + "x" + &long))
        .env("SKILLS_FOLDER_PATH", "skills");
    dry_run(&test, [""; 0]).stderr(
        "skills-runner: the skill `large`: SKILL.md: it is larger than 1 MiB, so get_skill \
         refuses it: move parts of it into other files\n\
         skills-runner: the skill `latin`: SKILL.md: bytes that are not UTF-8, so get_skill \
         refuses it: save the document as UTF-8\n",
    );
    for name in ["latin", "large"] {
        call(&test, "get_skill", &json!({ "skill_name": name })).status(1);
    }
}

/// The same folder wins a name for tools, for each command and for MCP: the first with a document,
/// before a skill that only calls itself by the name.
#[test]
fn same_folder_wins_a_name_everywhere() {
    let skill = |test: Test, folder: &str, name: &str| {
        test.file(&format!("{folder}/SKILL.md"), document(name, &format!("Of {folder}.")))
            .file(&format!("{folder}/say.py"), format!("print('{folder} runs')"))
            .file(&format!("{folder}/note.txt"), format!("note of {folder}"))
    };
    let test = Test::new().folder("one/pdf");
    let test = skill(test, "one/other", "pdf");
    let test = skill(test, "two/pdf", "pdf");
    let test = skill(test, "three/pdf", "pdf").env("SKILLS_FOLDER_PATH", "one:two:three");
    let path = test.path("two/pdf");
    let path = path.to_str().unwrap();

    let tool = |name: &str, arguments: Value| call(&test, name, &arguments).success();
    tool("get_skill", json!({"skill_name": "pdf"})).stdout_has("Of two/pdf.");
    tool("read_file_in_skill", json!({"skill_name": "pdf", "file_path": "note.txt"}))
        .stdout("note of two/pdf\n");
    tool("run_python_script", json!({"skill_name": "pdf", "file_path": "say.py"}))
        .stdout_has("two/pdf runs");
    let (listed, _) = list(&test, [""; 0]);
    assert!(listed.contains(&("pdf".to_owned(), "Of two/pdf.".to_owned())), "{listed:?}");

    let command = |words: &[&str]| test.next_run().args(words).run();
    let shown = command(&["skills", "list", "--json"]).success().stdout_json();
    let pdf = shown["skills"].as_array().unwrap().iter().find(|skill| skill["name"] == "pdf");
    assert_eq!(pdf.unwrap()["path"], path);
    let shown = command(&["skills", "show", "pdf", "--json"]).success().stdout_json();
    assert_eq!(
        (&shown["path"], &shown["frontmatter"]["description"]),
        (&json!(path), &json!("Of two/pdf."))
    );
    fs::write(test.path("two/pdf/say.py"), "print('two/pdf runs'").unwrap();
    command(&["skills", "check", "pdf"])
        .status(1)
        .stdout_has("two/pdf/say.py:1")
        .stdout_lacks("three/");
    fs::write(test.path("two/pdf/say.py"), "print('two/pdf runs')").unwrap();

    let mut client = Client::modern(&test);
    let read = client.result_of("resources/read", json!({"uri": "skill://pdf/note.txt"}));
    assert_eq!(read["contents"][0]["text"], "note of two/pdf");
    let arguments = json!({"skill_name": "pdf", "file_path": "say.py"});
    let params = json!({"name": "run_python_script", "arguments": arguments});
    let ran = client.result_of("tools/call", params);
    assert_eq!(ran["structuredContent"]["stdout"], "two/pdf runs\n", "{ran}");
    let prompt = client.result_of("prompts/get", json!({"name": "pdf"})).to_string();
    assert!(prompt.contains("Of two/pdf.") || prompt.contains("two/pdf"), "{prompt}");
    let all = client.result_of("skills/list", json!({}));
    assert_eq!(all["skills"][0]["frontmatter"]["description"], "Of two/pdf.", "{all}");

    let server = Server::start([
        Reply::call("run_python_script", &json!({"skill_name": "pdf", "file_path": "say.py"})),
        Reply::text("done"),
    ]);
    test.next_run().endpoint(&server).args(["go"]).run().success();
    let requests = server.finish();
    let result = requests[1].last_message()["content"].to_string();
    assert!(result.contains("two/pdf runs"), "{result}");
}

/// A file with the fields of a skill is no skill, and every command says where it belongs.
#[test]
fn file_that_was_meant_as_a_skill_is_named() {
    let flat = "---\nname: review\ndescription: Reviews.\n---\nReview.\n";
    let test = Test::new().file(".claude/skills/code review.MD", flat);
    let fix = "move it to 'code review/SKILL.md'";
    let run = |words: &[&str]| test.clone().args(words).run();
    run(&["skills", "list"]).success().stdout("").stderr_has(fix);
    run(&["skills", "check"])
        .status(1)
        .stdout_has(".claude/skills/code review.MD: warning[flat-file]")
        .stdout_has(&format!("  fix: {fix}\n"));
    run(&["skills", "show", "code review"]).status(1).stderr_has(fix);
    run(&["skills", "check", ".claude/skills/code review.MD"])
        .status(1)
        .stdout_has("a skill is a folder with a SKILL.md");
    run(&["tool", "get_skill", r#"{"skill_name":"code review"}"#]).status(1).stdout_has(fix);
    // Beside a skill it is a warning; other Markdown files are none.
    let test = test
        .skill("fine", &document("fine", "Does it."))
        .file("skills/README.md", "---\ndescription: All skills.\n---\n")
        .file("skills/fine/agents.md", flat);
    let skills = ["--skills", "skills"];
    test.clone().args(["skills", "check"]).args(skills).run().success().stdout("");
    let fine = ["--skills", "skills/fine"];
    test.clone().args(["skills", "check"]).args(fine).run().success().stdout("");
    let all = test.args(["skills", "check", "--json"]).run().success();
    assert_eq!(all.stdout_json()["warnings"], 1);
}
