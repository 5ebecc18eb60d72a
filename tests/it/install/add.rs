//! `skills add` from a folder: what is shown, asked, copied and written to the lock file.

use serde_json::json;

use super::{
    actions, assert_nothing_left, change, digest, document, files, lock, skills, with_source,
};
use crate::harness::Test;

/// Names, files, sizes, scripts and findings are shown before anything is changed.
#[test]
fn what_will_be_added_is_shown() {
    let test = with_source()
        .file("source/two/SKILL.md", "---\nname: other\n---\n# Two\n")
        .file("source/one/large.bin", vec![7; 3 << 20]);
    let before = files(&test.path(""));
    let run = skills(&test, &["add", "./source", "--to", "skills", "--dry-run"]).run().success();
    for text in ["one", "two", "SKILL.md", "data/table.csv", "large.bin"] {
        run.check(run.stderr.contains(text), format_args!("{text:?} is not shown"));
    }
    for (name, size) in [("table.csv", " 8 "), ("large.bin", " 3")] {
        let mut rows = run.stderr.lines();
        let is_shown = rows.any(|row| row.contains(name) && row.contains(size));
        run.check(is_shown, format_args!("the size of {name} is missing"));
    }
    let scripts: Vec<&str> = run.stderr.lines().filter(|line| line.contains("script")).collect();
    run.check(scripts.iter().any(|line| line.contains("run.py")), "the script is not marked");
    run.check(!scripts.iter().any(|line| line.contains("table.csv")), "data is marked as a script");
    // A finding of `check`: the name is not that of the folder, and there is no description.
    run.check(run.stderr.contains("description"), "the findings of the check are missing");
    run.stdout_has("would be added: ");
    assert_eq!(files(&test.path("")), before, "nothing was changed");
}

/// Control characters of names and documents do not reach the terminal.
#[test]
fn names_and_findings_are_shown_without_control_characters() {
    let test = Test::new()
        .file("source/one/SKILL.md", "---\nname: \"\u{1b}[31mx\"\ndescription: y\n---\n")
        .file("source/one/a\u{1b}[2Jb.txt", "x");
    let run = change(&test, &["add", "./source"]);
    for text in [&run.stdout, &run.stderr] {
        run.check(!text.contains('\u{1b}'), "an escape sequence is shown");
    }
}

/// `--dry-run` leaves no folder behind, not even the target.
#[test]
fn dry_runs_change_nothing() {
    let test = with_source();
    let before = files(&test.path(""));
    for to in ["skills", "new/deep/folder"] {
        for more in [&[][..], &["--yes"], &["--json"]] {
            let run = skills(&test, &["add", "./source", "--dry-run", "--to", to]).args(more).run();
            run.success();
            assert_eq!(files(&test.path("")), before, "{to} {more:?}");
        }
    }
    assert!(!test.exists("new"));
}

/// Without a terminal the status is 2, and nothing is changed.
#[test]
fn changes_are_made_only_after_consent() {
    let test = with_source();
    let before = files(&test.path(""));
    for to in ["skills", "new/deep"] {
        let run = skills(&test, &["add", "./source", "--to", to]).run().status(2);
        run.stdout_is_empty().stderr_has("--yes");
        assert_eq!(files(&test.path("")), before);
        assert!(!test.exists("new"), "{to}");
    }
    change(&test, &["add", "./source"]).success().stdout("added: skills/one\nadded: skills/two\n");
    assert_eq!(files(&test.path("skills/one")), files(&test.path("source/one")));
    assert_eq!(files(&test.path("skills/two")), files(&test.path("source/two")));
}

#[test]
fn users_are_asked_on_a_terminal() {
    for (reply, status) in [("n", 1), ("", 1), ("x", 1), ("y", 0), ("YES", 0)] {
        let test = with_source();
        let before = files(&test.path(""));
        let add = skills(&test, &["add", "./source", "--to", "skills"]);
        let mut terminal = add.spawn_on_terminal();
        terminal.expect("table.csv").expect("[y/N]");
        let mut seen = files(&test.path(""));
        let is_own =
            |path: &str| ["skills/", "home/.local/state/"].iter().any(|it| path.starts_with(it));
        seen.retain(|path, _| !is_own(path));
        assert!(seen.keys().all(|path| before.contains_key(path)), "changed before the reply");
        assert!(!test.exists("skills/one"), "changed before the reply");
        terminal.type_line(reply);
        terminal.wait_exit().status(status);
        assert_nothing_left(&test);
        assert_eq!(files(&test.path("")) == before, status != 0, "{reply:?}");
        assert_eq!(test.exists("skills/one/SKILL.md"), status == 0, "{reply:?}");
    }
}

/// `--skill` chooses; an unknown name lists those that there are.
#[test]
fn single_skills_can_be_added() {
    let test = with_source().file("source/more/three/SKILL.md", document("three"));
    let run = change(&test, &["add", "./source", "--skill", "one", "--skill", "absent"]);
    let run = run.status(1).stderr_has("absent");
    for name in ["one", "two", "three"] {
        run.check(run.stderr.contains(name), format_args!("{name} is not named"));
    }
    assert!(files(&test.path("skills")).is_empty());
    let chosen = ["add", "./source", "--skill", "two", "--skill=three"];
    change(&test, &chosen).success().stdout("added: skills/three\nadded: skills/two\n");
    assert!(!test.exists("skills/one"));
    assert_eq!(lock(&test)["skills"]["three"]["folder"], "more/three");
}

/// The name that a document gives is an alias, as everywhere.
#[test]
fn names_in_documents_are_taken_for_those_of_folders() {
    let test = with_source().file("source/folder/SKILL.md", document("alias"));
    let add = ["add", "./source", "--skill", "alias", "--skill", "one"];
    change(&test, &add).success().stdout("added: skills/folder\nadded: skills/one\n");
    change(&test, &["update", "alias"]).success().stdout("unchanged: skills/folder\n");
    // No further name: neither that of a plugin, nor one that only looks like it.
    let plugin = test.path("").canonicalize().unwrap();
    let plugin = plugin.file_name().unwrap().to_string_lossy().into_owned();
    change(&test, &["update", &format!("{plugin}:folder")]).status(1).stderr_has("failed to find");
    change(&test, &["remove", "alias"]).success().stdout("removed: skills/folder\n");
    assert!(test.exists("skills/one") && !test.exists("skills/folder"));
    // Only that skill is meant, not another one with the name of its folder.
    let test = with_source()
        .file("source/more/one/text.md", document("alias"))
        .link("source/more/one/SKILL.md", "text.md");
    change(&test, &["add", "./source", "--skill", "alias"]).success();
    assert_eq!(lock(&test)["skills"]["one"]["folder"], "more/one");
    let test = test.file("skills/deeper/two/SKILL.md", document("other"));
    change(&test, &["add", "./source", "--skill", "two"]).success();
    change(&test, &["remove", "other"]).status(1).stderr_has("failed to find `other`");
    assert!(test.exists("skills/two"));
}

/// The lock file and the JSON output have exactly this form.
#[test]
fn lock_file_and_report_have_the_documented_form() {
    let test = with_source();
    let source = test.path("source").display().to_string();
    let run = change(&test, &["add", "./source", "--json"]).success();
    let report = run.stdout_json();
    let skill = |name: &str| {
        let path = test.path("skills").join(name).display().to_string();
        json!({"name": name, "path": path, "source": source, "revision": null, "action": "added"})
    };
    assert_eq!(report["skills"], json!([skill("one"), skill("two")]));
    let expected = json!({
        "version": 1,
        "skills": {
            "one": {
                "source": source,
                "folder": "one",
                "revision": null,
                "files": {
                    "SKILL.md": digest(document("one").as_bytes()),
                    "data/table.csv": digest(b"a,b\n1,2\n"),
                    "scripts/run.py": digest(b"print(42)\n"),
                },
            },
            "two": {
                "source": source,
                "folder": "two",
                "revision": null,
                "files": {"SKILL.md": digest(document("two").as_bytes())},
            },
        },
    });
    assert_eq!(lock(&test), expected);
    let text = test.read("skills/skills-runner.lock");
    assert!(text.ends_with("}\n") && text.is_ascii(), "{text}");
}

/// A source whose root is a skill: its name is that of the folder.
#[test]
fn folder_that_is_a_skill_can_be_added() {
    let test = Test::new().file("here/my-skill/SKILL.md", document("my-skill"));
    change(&test, &["add", "./here/my-skill"]).success().stdout("added: skills/my-skill\n");
    assert_eq!(lock(&test)["skills"]["my-skill"]["folder"], "");
    // Nothing else is a skill: a document inside of one, or in a folder of a tool.
    let test = with_source()
        .file("source/one/examples/inner/SKILL.md", document("inner"))
        .file("source/node_modules/package/SKILL.md", document("package"));
    change(&test, &["add", "./source"]).success().stdout("added: skills/one\nadded: skills/two\n");
    assert!(test.exists("skills/one/examples/inner/SKILL.md"), "skills are copied whole");
}

/// `OWNER/REPO` that is a folder here, too, is ambiguous: both spellings are named.
#[test]
fn ambiguous_sources_are_refused() {
    let test = Test::new()
        .file("owner/repo/one/SKILL.md", document("one"))
        .file("plain/one/SKILL.md", document("one"));
    for source in ["owner/repo", "owner/repo/one"] {
        change(&test, &["add", source])
            .status(2)
            .stderr_has(&format!("./{source}"))
            .stderr_has(&format!("https://github.com/{source}"));
        change(&test, &["add", &format!("./{source}"), "--dry-run"]).success();
    }
    // One name alone is a path, and `~` is the home folder.
    change(&test, &["add", "plain", "--dry-run"]).success().stdout("would be added: skills/one\n");
    let test = test.file("home/mine/one/SKILL.md", document("one"));
    change(&test, &["add", "~/mine", "--dry-run"]).success();
    let absolute = test.path("plain").display().to_string();
    change(&test, &["add", &absolute, "--dry-run"]).success();
}

#[test]
fn invalid_sources_are_reported() {
    let test = with_source().folder("empty");
    let table = [
        ("./absent", 1, "absent"),
        ("./empty", 1, "SKILL.md"),
        ("", 2, "source"),
        ("http://example.test/owner/repo", 2, "http"),
        ("http://127.0.0.1/owner/repo", 2, "http"),
        ("ftp://example.test/a.zip", 2, "https"),
        ("https://user:word@example.test/owner/repo", 2, "password"),
        ("https://example.test/owner/repo@--upload-pack=x", 2, "branch"),
        ("owner/repo@", 2, "branch"),
        ("https://github.com/only", 2, "owner"),
        ("ssh://-oProxyCommand=x/repo", 2, "repository"),
        ("file://", 2, "repository"),
        ("owner/repo.tar.gz", 1, "owner/repo.tar.gz"),
        ("owner/repo.zip", 1, "owner/repo.zip"),
        ("owner", 1, "owner"),
    ];
    let before = files(&test.path(""));
    for (source, status, text) in table {
        change(&test, &["add", source]).status(status).stderr_has(text).stdout_is_empty();
        assert_eq!(files(&test.path("")), before, "{source}");
    }
    let run = change(&test, &["add", "https://user:word@example.test/owner/repo"]);
    run.stderr_lacks("word@");
}

/// A skill is never put over another one.
#[test]
fn skills_that_are_there_are_not_replaced() {
    let test = with_source();
    change(&test, &["add", "./source", "--skill", "one"]).success();
    let before = files(&test.path("skills"));
    let run = change(&test, &["add", "./source", "--skill", "one", "--json"]).success();
    assert_eq!(actions(&run), [("one".into(), "unchanged".into())]);
    // From another source.
    let test = test.file("other/one/SKILL.md", document("one"));
    let run = change(&test, &["add", "./other", "--json"]).status(1);
    assert_eq!(actions(&run), [("one".into(), "refused".into())]);
    run.stderr_has("source");
    // Another version from the same one.
    let test = test.file("source/one/SKILL.md", document("one") + "more\n");
    change(&test, &["add", "./source", "--skill", "one"]).status(1).stderr_has("update");
    assert_eq!(files(&test.path("skills")), before);
}

/// Folders made by hand, links and files stay, also in another letter case; other skills of the
/// source are added.
#[test]
fn folders_made_by_hand_are_not_replaced() {
    for there in ["one", "ONE", "One"] {
        let test = with_source().file(&format!("skills/{there}/SKILL.md"), "by hand");
        change(&test, &["add", "./source"]).status(1).stdout_has("added: skills/two\n");
        assert_eq!(test.read(&format!("skills/{there}/SKILL.md")), "by hand");
        let names = lock(&test)["skills"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(names, ["two"], "{there}");
    }
    let test = with_source().file("elsewhere/kept", "x").link("skills/one", "../elsewhere");
    change(&test, &["add", "./source"]).status(1);
    let test = test.file("skills/two.txt", "x");
    assert_eq!(files(&test.path("elsewhere")).len(), 1, "nothing was written through the link");
    assert!(test.path("skills/one").is_symlink());
    let test = with_source().link("skills/one", "nowhere").file("skills/two", "a file");
    change(&test, &["add", "./source"]).status(1).stdout_lacks("added");
    assert!(!test.exists("skills/nowhere") && test.read("skills/two") == "a file");
}

#[test]
fn two_skills_with_one_name_are_not_both_added() {
    for names in [["a/one", "b/one"], ["a/one", "b/One"]] {
        let test = Test::new();
        let test = names.iter().fold(test, |test, name| {
            let more = if name.starts_with('b') { "Another one.\n" } else { "" };
            test.file(&format!("source/{name}/SKILL.md"), document("one") + more)
        });
        let run = change(&test, &["add", "./source"]).status(1);
        run.check(run.stderr.contains("one"), "the name is not reported");
        assert!(files(&test.path("skills")).len() <= 2, "{:?}", files(&test.path("skills")).keys());
        if test.exists("skills/skills-runner.lock") {
            assert_eq!(lock(&test)["skills"].as_object().unwrap().len(), 1);
        }
    }
}

/// Words and options that do not belong together.
#[test]
fn wrong_command_lines_are_reported() {
    let test = with_source();
    let before = files(&test.path(""));
    let table: [&[&str]; 9] = [
        &["add"],
        &["add", "./source", "./source"],
        &["add", "./source", "--force"],
        &["add", "./source", "--skill", ""],
        &["update", "--skill", "one"],
        &["remove"],
        &["remove", "one", "--skill", "one"],
        &["restore", "one"],
        &["list", "--to", "skills"],
    ];
    for words in table {
        let run = skills(&test, words).args(["--yes"]).run();
        run.check(run.status != 0, format_args!("{words:?}"));
        assert_eq!(files(&test.path("")), before, "{words:?}");
    }
}
