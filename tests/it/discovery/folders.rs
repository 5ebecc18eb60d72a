//! Folders and links.

use super::{call, document, dry_run, list, system};
use crate::harness::{Test, seconds};
use serde_json::json;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

/// If several folders have a skill of the same name, the first is used and the others are reported.
#[test]
fn first_folder_wins_and_name_clashes_are_reported() {
    let test = Test::new()
        .file(".agents/skills/pdf/SKILL.md", document("pdf", "From agents."))
        .file(".claude/skills/pdf/SKILL.md", document("pdf", "From claude."))
        .file(".claude/skills/docx/SKILL.md", document("docx", "Of claude."))
        .file("home/.claude/skills/xlsx/SKILL.md", document("xlsx", "Of home."))
        .link(".claude/skills/mine", "../../.agents/skills/pdf")
        .file(".agents/skills/mine/SKILL.md", document("mine", "Agents'."));
    let expected = [
        ("docx", "Of claude."),
        ("mine", "Agents'."),
        ("pdf", "From agents."),
        ("xlsx", "Of home."),
    ]
    .map(|(name, description)| (name.to_owned(), description.to_owned()));
    // Those with another description are offered, too.
    let plugin = test.path("").file_name().unwrap().to_str().unwrap().to_owned();
    let longer = |name: &str| format!("{plugin}/.claude/skills:{name}");
    let mut expected = expected.to_vec();
    expected.push((longer("mine"), "From agents.".to_owned()));
    expected.push((longer("pdf"), "From claude.".to_owned()));
    expected.sort();
    let path = ".agents/skills:.claude/skills:~/.claude/skills:.agents/../.claude/skills";
    let by_variable = test.clone().env("SKILLS_FOLDER_PATH", path);
    let home = test.path("home/.claude/skills");
    let options = ["--skills", ".agents/skills", "--skills", ".claude/skills", "--skills"];
    let options: Vec<&OsStr> = options.iter().map(OsStr::new).chain([home.as_os_str()]).collect();
    assert_eq!(list(&by_variable, [""; 0]), (expected.clone(), String::new()));
    assert_eq!(list(&test, options.clone()), (expected.clone(), String::new()));

    dry_run(&by_variable, [""; 0]).stderr_lacks(": the name ");
    let list = by_variable.next_run().args(["skills", "list"]).run().success();
    let options = test.next_run().args(["skills", "list"]).args(options).run().success();
    for run in [list, options] {
        let clashes = run.stderr.lines().filter(|line| line.contains(": the name "));
        let reported: Vec<&str> = clashes.collect();
        assert_eq!(reported.len(), 2, "{reported:?}");
        for (name, line) in ["mine", "pdf"].into_iter().zip(reported) {
            let hidden = test.path(format!(".claude/skills/{name}"));
            let kept = test.path(format!(".agents/skills/{name}"));
            let expected =
                format!("{}: the name `{name}` means {}, ", hidden.display(), kept.display());
            assert!(line.contains(&expected) && line.contains(&longer(name)), "{line}");
        }
    }
    let run = call(&by_variable, "get_skill", &json!({"skill_name": "pdf"}));
    run.stdout_has("From agents.").stdout_lacks("From claude.");
    let run = call(&by_variable, "get_skill", &json!({"skill_name": longer("pdf")}));
    run.stdout_has("From claude.");
}

/// The same folder or skill under two names is not a clash.
#[test]
fn same_skill_twice_is_not_a_clash() {
    let test = Test::new()
        .skill("a", &document("a", "A."))
        .link("again", "skills")
        .folder("other")
        .link("other/a", "../skills/a");
    let run = dry_run(&test, ["--skills", "skills", "--skills", "again", "--skills", "other"]);
    let run = run.stderr_is_empty();
    assert!(system(&run).contains("- a: A.\n"));
}

/// Links between skills are followed, and a broken link is reported.
#[test]
fn broken_links_are_reported() {
    let test = Test::new()
        .skill("good", &document("good", "Good."))
        .link("skills/dangling", "../gone")
        .link("skills/circle", "circle")
        .link("skills/into-itself", ".")
        .file("file", "x")
        .link("skills/to-file", "../file")
        .link("skills/below-file", "../file/x");
    let run = dry_run(&test, [""; 0])
        .stderr_has("dangling: a link to ../gone, which does not exist: remove the link")
        .stderr_has("circle: a link to circle, which leads back to itself")
        .stderr_has("below-file: a link to ../file/x, which does not exist")
        .stderr_has("the skills below `into-itself` are not used: name the folder: --skills ")
        .stderr_has("`into-itself` cannot be used: it has no SKILL.md\n")
        .stderr_lacks("to-file")
        .took_at_most(seconds(5.0));
    assert_eq!(run.stderr.lines().count(), 6);
    assert!(system(&run).ends_with("Skills:\n- good: Good.\n"));
    // A broken link does not hide a skill in a later folder.
    let test = test.file("more/dangling/SKILL.md", document("dangling", "There it is."));
    let folders = ["--skills", "skills", "--skills", "more"];
    assert!(system(&dry_run(&test, folders)).contains("- dangling: There it is."));
    let get = test.args(folders).args(["tool", "get_skill", r#"{"skill_name":"dangling"}"#]);
    get.run().success().stdout_has("There it is.");
}

/// A skill whose name is not UTF-8 cannot be called. Hidden folders and those created by tools are
/// not skills.
#[test]
fn odd_folders_are_reported_or_ignored() {
    let test = Test::new()
        .skill("good", &document("good", "Good."))
        .folder("skills/node_modules/left-pad")
        .folder("skills/__pycache__")
        .folder("skills/venv/bin")
        .folder("skills/.git/SKILL.md")
        .file("skills/.hidden/SKILL.md", document("hidden", "Hidden."));
    let odd = test.path("skills").join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&odd).unwrap();
    let run = dry_run(&test, [""; 0]).stderr_has("the folder's name is not UTF-8");
    assert_eq!(run.stderr.lines().count(), 2);
    assert_eq!(list(&test, [""; 0]).0.len(), 1);
    // A folder with a document is a skill, whatever its name.
    let test = test.skill("venv", &document("venv", "Makes venvs."));
    assert_eq!(list(&test, [""; 0]).0[1].1, "Makes venvs.");
}

/// Skills that are nested too deep, and skills folders that are one level too high or too low.
#[test]
fn misplaced_folders_are_reported_with_a_remedy() {
    let test = Test::new()
        .skill("collection/a", &document("a", "A."))
        .skill("collection/b", &document("b", "B."))
        .file("skills/collection/b/scripts/x.py", "")
        .skill("deep/er/c", &document("c", "C."))
        .skill("plain", &document("plain", "Plain."))
        .file("skills/plain/scripts/x.py", "")
        .folder("skills/empty/inner");
    let option = |path: &str| format!("--skills {}", test.path(path).display());
    let run = dry_run(&test, [""; 0])
        .stderr_has("the skills below `collection`, `deep` are not used: name the folder: ")
        .stderr_has(&option("skills\n"))
        .stderr_has("`deep` cannot be used: it has no SKILL.md\n")
        .stderr_has("`empty` cannot be used: it has no SKILL.md\n");
    assert_eq!(run.stderr.lines().count(), 5);
    let (listed, _) = list(&test, [""; 0]);
    let names: Vec<&str> = listed.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["collection", "deep", "empty", "plain"]);

    let (listed, _) = list(&test, ["--skills", "skills/collection"]);
    assert_eq!(listed.len(), 2);
    // A folder that is named may be a skill itself.
    let run = dry_run(&test, ["--skills", "skills/plain"]).stderr_is_empty();
    assert!(system(&run).ends_with("Skills:\n- plain: Plain.\n"));
    let fails = |folders: &[&str]| {
        let run = test.next_run().args(["skills", "list"]).args(folders).run();
        run.status(78)
    };
    fails(&["--skills", "skills/collection:skills/deep/er"])
        .stderr_has("does not exist; to name several folders, use ")
        .stderr_has("--skills skills/deep/er");
    fails(&["--skills", "skills/plain/SKILL.md"])
        .stderr_has("it is a document; name the folder that contains its skill");
    // A missing folder is reported even if others have skills.
    fails(&["--skills", "skills/collection", "--skills", "gone"]).stderr_has("gone does not exist");
}

/// A folder with many problems does not flood the terminal.
#[test]
fn many_problems_are_summarized() {
    let mut test = Test::new();
    for number in 0..70 {
        test = test.folder(&format!("skills/folder-{number:02}"));
    }
    let run = dry_run(&test, [""; 0]).stderr_has("no usable skill in");
    assert_eq!(run.stderr.lines().count(), 22);
    run.stderr_has("… and 50 more problems of skills (`skills-runner skills check` lists them)")
        .stderr_has("`folder-19` cannot")
        .stderr_lacks("`folder-20` cannot");
    let run = dry_run(&test, ["-q"]).stderr_has("no usable skill in");
    assert_eq!(run.stderr.lines().count(), 1);
}
