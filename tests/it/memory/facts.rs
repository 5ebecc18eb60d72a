//! The facts file.

use super::{FRONT, facts, listed, memory, remember, today};
use crate::harness::{Server, Test};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::MetadataExt;

/// Removes the time of day from a timestamp; asserts the format.
#[track_caller]
fn without_clock(time: &str) -> &str {
    let digits = |c: char| if c.is_ascii_digit() { '0' } else { c };
    let shape: String = time.chars().map(digits).collect();
    assert!(shape.ends_with("T00:00:00+00:00") || shape.ends_with("T00:00:00-00:00"), "{time}");
    &time[..10]
}

/// Removes the times of day from a facts file.
fn without_clocks(text: &str) -> String {
    let mut rest = text.to_string();
    while let Some(at) = rest.find('T').filter(|at| rest[at + 1..].starts_with(['0', '1', '2'])) {
        rest.replace_range(at..at + 15, "");
    }
    while let Some(at) = rest.find("+00:00, source") {
        rest.replace_range(at - 8..at + 8, "");
    }
    rest
}

#[test]
fn facts_are_added_listed_and_removed() {
    let test = memory();
    facts(&test, &[]).success().stdout_is_empty().stderr_has("there are no facts in");
    assert!(!test.exists("kept"), "listing writes nothing");
    facts(&test, &["add", "likes", "green tea #drinks"])
        .success()
        .stdout("remembered: likes green tea #drinks\n");
    let run =
        test.next_run().args(["facts", "add", "-"]).stdin("no nuts\nat all #important\n").run();
    run.success().stdout("remembered: no nuts at all #important\n");
    let date = today("");
    facts(&test, &["list"]).success().stdout(&format!(
        "1\t{date}\tno nuts at all #important\n2\t{date}\tlikes green tea #drinks\n"
    ));
    let all = listed(&test);
    let created = all[1]["created"].as_str().unwrap();
    assert_eq!(without_clock(created), date);
    let expected = json!({
        "number": 2, "content": "likes green tea #drinks", "important": false, "tags": ["drinks"],
        "created": created, "source": "command line", "line": 15,
    });
    assert_eq!(all[1], expected);
    facts(&test, &["add", "likes green tea #drinks"])
        .success()
        .stdout("already known: likes green tea #drinks\n");
    facts(&test, &["add", "likes the green tea #drinks", "--json"]).success().stdout(
        "{\"known\":false,\"near\":[],\"remembered\":\"likes the green tea #drinks\",\"replaced\":\"likes green tea #drinks\"}\n",
    );
    facts(&test, &["remove", "3"])
        .status(2)
        .stderr_has("there is no such number")
        .stderr_has("(2 facts)");
    facts(&test, &["remove", "1"]).success().stdout("removed: no nuts at all #important\n");
    assert_eq!(listed(&test).len(), 1);
    let meta = fs::metadata(test.path("kept/facts.md")).unwrap();
    assert_eq!(meta.mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(test.path("kept")).unwrap().mode() & 0o777, 0o700);
    let names = fs::read_dir(test.path("kept")).unwrap().count();
    assert_eq!(names, 1, "no other file is left there");
}

#[test]
fn wrong_arguments_and_missing_setting_are_reported() {
    let table: [(&[&str], &str); 7] = [
        (&["add"], "facts add needs TEXT"),
        (&["add", " \n "], "failed to store the fact: it is empty"),
        (&["remove"], "facts remove needs N"),
        (&["remove", "0"], "takes the number of one fact, not `0`"),
        (&["remove", "1", "2"], "facts remove takes N"),
        (&["list", "all"], "facts list takes no arguments"),
        (&["forget"], "unknown command `facts forget`"),
    ];
    let test = memory();
    for (words, message) in table {
        facts(&test, words).status(2).stdout_is_empty().stderr_has(message).stderr_has("hint: ");
    }
    facts(&test, &["add", &"long ".repeat(1000)]).status(2).stderr_has("a fact at most 2048");
    assert!(!test.exists("kept/facts.md"));
    let unset = Test::new();
    facts(&unset, &["add", "x"]).status(78).stderr_has("hint: set MEMORY_PATH to a Markdown file");
    let run = facts(&unset, &["list", "--json"]).status(78);
    assert_eq!(run.stdout_json()["error"]["kind"], "config");
}

/// Files that must not be written, or have an unexpected type or content, keep their content.
#[test]
fn unsuitable_file_is_not_changed() {
    let large = format!("{FRONT}{}", "word ".repeat(1_400_000));
    let table: [(&str, &[u8], u32, &str); 7] = [
        ("foreign", b"# Shopping\n\n- milk\n", 0o600, "no frontmatter with `type: memory`"),
        ("read-only", FRONT.as_bytes(), 0o444, "it is not writable"),
        ("large", large.as_bytes(), 0o600, "it is larger than"),
        ("large", large.as_bytes(), 0o600, "hint: remove facts that are not needed"),
        ("picture", b"\x89PNG\r\n\x1a\n\0\0", 0o600, "hint: set MEMORY_PATH to a file of its own"),
        ("damaged", b"---\ntype: memory\n\xff\xfe", 0o600, "no frontmatter with"),
        ("binary", b"\0\0\0\0", 0o600, "no frontmatter with"),
    ];
    for (name, bytes, mode, message) in table {
        let test = memory().file("kept/facts.md", bytes).mode("kept/facts.md", mode);
        facts(&test, &["add", "a fact"]).status(1).stderr_has(message);
        assert!(fs::read(test.path("kept/facts.md")).unwrap() == bytes, "{name}");
        assert_eq!(fs::read_dir(test.path("kept")).unwrap().count(), 1, "{name}");
    }
    let test = memory().file("other.md", FRONT).link("kept/facts.md", "../other.md");
    for words in [&["add", "a fact"][..], &["list"]] {
        facts(&test, words).status(1).stderr_has("it is a link").stderr_has("/other.md");
    }
    assert_eq!(test.read("other.md"), FRONT);
    let test = memory().folder("kept/facts.md");
    facts(&test, &["add", "a fact"]).status(1).stderr_has("it is not a regular file");
    let test = memory().file("kept/facts.md", FRONT);
    fs::hard_link(test.path("kept/facts.md"), test.path("other")).unwrap();
    facts(&test, &["add", "a fact"]).status(1).stderr_has("a hard link");
    assert_eq!(test.read("other"), FRONT);
    let test = memory().file("kept", "a file");
    facts(&test, &["add", "a fact"]).status(1).stderr_has("failed to create the folder");
}

/// Temporary files of a killed writer are deleted; the file's mode and other lines stay.
#[test]
fn change_keeps_the_file_mode_and_removes_stale_temporary_files() {
    let test = memory()
        .file("kept/facts.md", format!("{FRONT}## Recent\r\nmine\r\n\r\n## Other\r\n"))
        .mode("kept/facts.md", 0o640)
        .file("kept/.facts.md.new", "half a fi");
    facts(&test, &["add", "a fact"]).success();
    let text = without_clocks(&test.read("kept/facts.md"));
    let date = today("");
    let changed = FRONT.replace("modified: 2026-01-01", &format!("modified: {date}"));
    assert_eq!(
        text,
        format!(
            "{changed}## Recent\r\nmine\r\n\n- [{date}] a fact <!-- source: command line -->\n\r\n## Other\r\n"
        )
    );
    assert_eq!(fs::metadata(test.path("kept/facts.md")).unwrap().mode() & 0o777, 0o640);
    assert!(!test.exists("kept/.facts.md.new"));
}

#[test]
fn full_disk_keeps_the_old_file() {
    let old = format!("{FRONT}{}", "a line of a person's\n".repeat(500));
    let test = memory().file("kept/facts.md", &old);
    let line = "ulimit -f 8; exec skills-runner facts add 'one more fact'";
    test.next_run().shell(line).run().status(1).stderr_has("failed to change the facts");
    assert_eq!(test.read("kept/facts.md"), old);
    assert!(!test.exists("kept/.facts.md.new"));
    let date = today("");
    let note = format!("notes/{date}.md");
    let test = Test::new().env("NOTES_FOLDER_PATH", "notes").file(&note, &old);
    let line = r#"ulimit -f 22; exec skills-runner tool write_daily_note "$(printf '{"activity":"%02000d"}' 7)""#;
    test.next_run().shell(line).run().status(1).stdout_has("failed to write the daily note");
    assert!(test.read(&note) == old);
    // A failed write of a new file leaves no file.
    let test = Test::new().env("NOTES_FOLDER_PATH", "my/notes");
    let line =
        r#"ulimit -f 0; exec skills-runner tool write_daily_note '{"activity":"x"}' 2>&1 | cat"#;
    test.next_run().shell(line).run().stdout_has("failed to write the daily note");
    assert!(!test.exists(&format!("my/notes/{date}.md")));
    let test = memory();
    let line = "ulimit -f 0; exec skills-runner facts add x 2>&1 | cat";
    test.next_run().shell(line).run().stdout_has("failed to change the facts");
    assert!(!test.exists("kept/facts.md"));
}

/// Each line of a list is a fact. Other lines stay where they are, whatever Markdown reads in them.
#[test]
fn facts_are_lines_of_lists() {
    let body = "\
## Recent
1. the cat
is called Tom

   and is old
- [2026-01-02] wrapped
  around
  - a part of it
```
- in a fence
```
<!--
* in a comment
-->
-no item
";
    let server = Server::start([]);
    let test = memory().file("kept/facts.md", format!("{FRONT}{body}")).endpoint(&server);
    let all = ["the cat", "wrapped", "a part of it", "in a fence", "in a comment"];
    assert_eq!(contents(&test), all);
    let system = test.next_run().args(["--dry-run", "hi"]).run().success().stdout;
    assert!(system.contains("- the cat\\n") && !system.contains("Tom"), "{system}");
    // A new one is at the end of its section.
    facts(&test, &["add", "no nuts"]).success();
    let text = without_clocks(&test.read("kept/facts.md"));
    let new = format!("\n- [{}] no nuts <!-- source: command line -->\n", today(""));
    assert!(text.ends_with(&format!("{body}{new}")), "{text}");
    for line in [
        "1. the cat\n",
        "- [2026-01-02] wrapped\n",
        "  - a part of it\n",
        "- in a fence\n",
        "* in a comment\n",
    ] {
        let before = test.read("kept/facts.md");
        let (_, before) = before.split_once("## Recent").unwrap();
        facts(&test, &["remove", "1"]).success();
        let after = before.replace(line, "");
        assert!(test.read("kept/facts.md").ends_with(&after), "{line}");
    }
    assert_eq!(contents(&test), ["no nuts"]);
}

/// A replaced fact keeps the date on which it was first saved, also from another year.
#[test]
fn replacing_a_fact_keeps_its_first_date() {
    let old = "- [2020-02-03] the user likes tea with milk <!-- source: old -->";
    let test = memory().file("kept/facts.md", format!("{FRONT}## Recent\n{old}\n"));
    facts(&test, &["add", "the user likes green tea with milk"]).success().stdout(
        "remembered: the user likes green tea with milk\nreplaced: the user likes tea with milk\n",
    );
    let all = listed(&test);
    assert_eq!(all.len(), 1);
    assert_eq!(all[0]["created"], "2020-02-03");
    assert_eq!(all[0]["source"], "command line");
    let new = "- [2020-02-03] the user likes green tea with milk <!-- source: command line -->";
    assert!(test.read("kept/facts.md").ends_with(&format!("## Recent\n{new}\n")));
}

fn contents(test: &Test) -> Vec<String> {
    let all = listed(test);
    let text = |fact: &Value| fact["content"].as_str().unwrap().to_owned();
    all.iter().map(text).collect()
}

/// A fact replaces the named one. Similar facts that stay are reported, also without `replaces`.
#[test]
fn fact_replaces_the_named_one_and_near_facts_are_reported() {
    const OLD: &str = "\
## Important
- the key is in room 4 #important <!-- 2020-01-01, source: old -->
## Recent
- [2020-02-03] User lives in Paris <!-- source: old -->
- [2020-02-03] server A is in the cellar <!-- source: old -->
- [2020-02-03] server B is in the cellar <!-- source: old -->
- [ ] water the old plants
";
    let test = memory().file("kept/facts.md", format!("{FRONT}{OLD}"));
    // Whitespace and case do not matter; the date at the start is as in the prompt.
    let run = remember(&test, "user moved to Berlin", "- [2020-02-03]  user LIVES in\nParis");
    let expected = json!({"remembered": "user moved to Berlin", "replaced": "User lives in Paris"});
    assert_eq!(run.success().stdout_json(), expected);
    let fact = &listed(&test)[1];
    assert_eq!(fact["content"], "user moved to Berlin");
    // It is a different fact and keeps its own date.
    assert_eq!(without_clock(fact["created"].as_str().unwrap()), today(""));
    // A variant of the text also names a fact, and the tag `#important` stays.
    let run = remember(&test, "the safe is open", "The key is in the room 4.");
    let run = run.success().stdout_json();
    assert_eq!(run["replaced"], "the key is in room 4 #important");
    assert_eq!(contents(&test)[0], "the safe is open #important");
    // Both stay, and the similar ones are reported.
    let run = remember(&test, "server C is in the cellar", "").success();
    let near = json!(["server B is in the cellar", "server A is in the cellar"]);
    assert_eq!(run.stdout_json()["near"], near);
    facts(&test, &["add", "server D is in the cellar"])
        .success()
        .stdout_has("\nsimilar, and kept: server C is in the cellar\n");
    // A fact that already exists can still replace another one.
    let run = remember(&test, "server D is in the cellar", "server C is in the cellar");
    assert_eq!(run.success().stdout_json()["replaced"], "server C is in the cellar");
    let left = [
        "the safe is open #important",
        "user moved to Berlin",
        "server A is in the cellar",
        "server B is in the cellar",
        "[ ] water the old plants",
        "server D is in the cellar",
    ];
    assert_eq!(contents(&test), left);

    // Nothing is written if the name matches no fact, several facts, or a line in the user's own
    // format.
    let before = test.read("kept/facts.md");
    let table = [
        ("server E is in the cellar", "there is no such fact", "`server D is in the cellar`, `"),
        ("the moon is made of cheese", "there is no such fact", "omit `replaces`"),
        ("[ ] water the old plants", "a form of their own, in line", "ask the user"),
    ];
    for (replaces, cause, hint) in table {
        let run = remember(&test, "a fact of another kind", replaces).status(1);
        let error = run.stdout_json()["error"].as_str().unwrap().to_owned();
        assert!(error.contains(cause) && error.contains(hint), "{error}");
        assert_eq!(test.read("kept/facts.md"), before, "{replaces}");
    }
    facts(&test, &["add", "the cat sleeps on the warm roof"]).success();
    let two = "- [2020-02-03] the cat sleeps on the cold roof <!-- source: old -->\n";
    let text = test.read("kept/facts.md") + two;
    let test = memory().file("kept/facts.md", text);
    let run = remember(&test, "no cat at all", "the cat sleeps on the roof").status(1);
    let error = run.stdout_json()["error"].as_str().unwrap().to_owned();
    assert!(error.contains("several facts are similar to it"), "{error}");
    assert!(error.contains("warm roof`") && error.contains("cold roof`"), "{error}");
}

/// Times are local to the user. Old files have only the date.
#[test]
fn facts_have_local_time_and_old_ones_a_date() {
    let old = "- [2020-02-03] the user likes tea with milk <!-- source: old -->\n";
    let front = FRONT.replace("modified: 2026-01-01", "modified: '2026-01-01' # mine");
    let test = memory().file("kept/facts.md", format!("{front}## Recent\n{old}"));
    for (zone, offset) in [("XXX-5:30", "+05:30"), ("YYY3", "-03:00")] {
        let run =
            test.next_run().env("TZ", zone).args(["facts", "add", &format!("a fact of {zone}")]);
        run.run().success();
        let all = listed(&test);
        let created = all.last().unwrap()["created"].as_str().unwrap();
        without_clock(&created.replace(offset, "+00:00"));
        assert!(created.starts_with(&today(zone)) && created.ends_with(offset), "{created}");
        let text = test.read("kept/facts.md");
        assert!(text.contains(&format!("\nmodified: {created} # mine\n")), "{text}");
    }
    let all = listed(&test);
    assert_eq!(all[0]["created"], "2020-02-03");
    // A date changed by the user is used, with the time of day.
    let text =
        test.read("kept/facts.md").replace(&format!("- [{}]", today("YYY3")), "- [2021-12-31]");
    let test = memory().file("kept/facts.md", text);
    let created = listed(&test).last().unwrap()["created"].clone();
    assert!(created.as_str().unwrap().starts_with("2021-12-31T"), "{created}");
    let server = Server::start([]);
    let system = test.endpoint(&server).args(["--dry-run", "hi"]).run().success().stdout;
    assert!(system.contains("newest first"), "{system}");
}

/// The tag is shown once, however it is written.
#[test]
fn important_tag_is_shown_once() {
    let table = ["no nuts #Important", "no milk #important.", "no #important eggs #important"];
    let test = memory();
    for text in table {
        let arguments = json!({"content": text, "important": true}).to_string();
        test.next_run().args(["tool", "remember_fact", &arguments]).run().success();
    }
    let run = facts(&test, &["list"]).success();
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines.len(), table.len());
    for line in lines {
        let line = line.to_lowercase();
        assert_eq!(line.matches("#important").count(), 1, "{line}");
    }
}
