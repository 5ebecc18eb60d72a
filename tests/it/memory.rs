//! Facts and daily notes: saved between conversations, in files that belong to the user.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{MODEL, Outcome, Reply, Server, Test, seconds};

/// A second secret in addition to the key; the scripted endpoint checks for it.
const SECRET: &str = "gateway-0123456789abcdef";
const HEADERS: &str = r#"{"x-gateway": "gateway-0123456789abcdef"}"#;

const FRONT: &str = "---\ntype: memory\ncreated: 2026-01-01\nmodified: 2026-01-01\n---\n";

fn memory() -> Test {
    Test::new().env("MEMORY_PATH", "kept/facts.md")
}

fn facts(test: &Test, words: &[&str]) -> Outcome {
    test.next_run().args(["facts"]).args(words).run()
}

fn listed(test: &Test) -> Vec<Value> {
    let run = facts(test, &["list", "--json"]).success();
    run.stdout_json()["facts"].as_array().unwrap().clone()
}

/// The local date according to `date`.
fn today(zone: &str) -> String {
    let mut date = std::process::Command::new("date");
    let reported = date.arg("+%F").env("TZ", zone).output().unwrap().stdout;
    String::from_utf8(reported).unwrap().trim().to_owned()
}

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
    let table: [(&str, &[u8], u32, &str); 8] = [
        ("foreign", b"# Shopping\n\n- milk\n", 0o600, "no frontmatter with `type: memory`"),
        ("read-only", FRONT.as_bytes(), 0o444, "it is not writable"),
        ("large", large.as_bytes(), 0o600, "it is larger than"),
        ("large", large.as_bytes(), 0o600, "hint: remove facts that are not needed"),
        ("picture", b"\x89PNG\r\n\x1a\n\0\0", 0o600, "hint: set MEMORY_PATH to a file of its own"),
        (
            "indented",
            b"---\ntype: memory\n---\n```\n- no fact\n",
            0o600,
            "close the block of line 4 with a line",
        ),
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
        .file("kept/facts.md", format!("{FRONT}## Recent\r\nmine\r\n"))
        .mode("kept/facts.md", 0o640)
        .file("kept/.facts.md.new", "half a fi");
    facts(&test, &["add", "a fact"]).success();
    let text = without_clocks(&test.read("kept/facts.md"));
    let date = today("");
    let changed = FRONT.replace("modified: 2026-01-01", &format!("modified: {date}"));
    assert_eq!(
        text,
        format!(
            "{changed}## Recent\r\n\n- [{date}] a fact <!-- source: command line -->\n\nmine\r\n"
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

/// Indented lines belong to the fact above them, and lines within a comment to the user.
#[test]
fn added_fact_keeps_indented_lines_and_comments() {
    let body = "\n## Recent\n\n- [2026-01-01] mine one\n- [2026-01-02] wrapped\n  around\n<!--\n## Important\n-->\n";
    let test = memory().file("kept/facts.md", format!("{FRONT}{body}"));
    facts(&test, &["add", "giraffe neck #important"]).success();
    let reported: Vec<(String, bool)> = listed(&test)
        .iter()
        .map(|fact| {
            let text = fact["content"].as_str().unwrap();
            (text.to_owned(), fact["important"] == true)
        })
        .collect();
    let fact = |text: &str, important| (text.to_owned(), important);
    assert_eq!(
        reported,
        [
            fact("giraffe neck #important", true),
            fact("mine one", false),
            fact("wrapped around", false)
        ]
    );
    assert!(test.read("kept/facts.md").contains(body));
    facts(&test, &["remove", "3"]).success();
    let left = body.replace("- [2026-01-02] wrapped\n  around\n", "");
    assert!(test.read("kept/facts.md").contains(&left));
    facts(&test, &["remove", "1"]).success();
    assert!(test.read("kept/facts.md").contains(&left));
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

fn remember(test: &Test, content: &str, replaces: &str) -> Outcome {
    let arguments = json!({"content": content, "replaces": replaces}).to_string();
    test.next_run().args(["tool", "remember_fact", &arguments]).run()
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

/// If root replaced the file, the owner would lose it.
#[test]
fn file_of_another_user_is_not_written() {
    let date = today("");
    let note = format!("notes/{date}.md");
    let text = format!("{FRONT}## Recent\n- a fact\n");
    let test = memory()
        .env("NOTES_FOLDER_PATH", "notes")
        .file("kept/facts.md", &text)
        .file(&note, "mine\n");
    for file in ["kept/facts.md", &note] {
        // Only root can change the owner of a file.
        if std::os::unix::fs::chown(test.path(file), Some(65534), None).is_err() {
            return;
        }
    }
    for words in [&["add", "one more"][..], &["remove", "1"]] {
        facts(&test, words).status(1).stderr_has(
            "it belongs to another user\nhint: run the program as its owner, or set MEMORY_PATH",
        );
    }
    remember(&test, "one more", "").status(1).stdout_has("it belongs to another user");
    let run = test.next_run().args(["tool", "write_daily_note", r#"{"activity":"x"}"#]).run();
    run.status(1).stdout_has("it belongs to another user");
    assert_eq!((test.read("kept/facts.md"), test.read(&note)), (text, "mine\n".into()));
    assert_eq!(listed(&test).len(), 1, "the file can still be read");
}

/// The user appends without a lock, as `echo >>` does, while two other processes write.
#[test]
fn concurrent_appends_without_lock_are_kept() {
    let test =
        memory().timeout(seconds(120.0)).file("kept/facts.md", format!("{FRONT}## Recent\n"));
    let adds = "for n in $(seq 60); do skills-runner facts add \"writer $w has number $n of $w-$n\" >/dev/null || exit 1; done";
    let line = format!(
        "for w in 1 2; do {{ ({adds}) || touch failed; touch done$w; }} & done; n=0; \
         until [ -e done1 ] && [ -e done2 ]; do n=$((n+1)); \
         echo \"- by hand $n of hand-$n\" >> kept/facts.md; sleep 0.01; done; echo $n"
    );
    let run = test.next_run().shell(&line).run().success();
    let count: usize = run.stdout.trim().parse().unwrap();
    assert!(!test.exists("failed"));
    let text = test.read("kept/facts.md");
    let lost: Vec<usize> =
        (1..=count).filter(|n| !text.contains(&format!("- by hand {n} of hand-{n}\n"))).collect();
    assert!(lost.is_empty(), "of {count} lines {lost:?} are lost");
    assert_eq!(listed(&test).len(), count + 120);
}

/// A file in place of the notes folder is reported at the start and does not stop the run.
#[test]
fn file_in_place_of_the_notes_folder_is_reported() {
    let server = Server::start([
        Reply::call("write_daily_note", &json!({"activity": "x"})),
        Reply::text("fine"),
    ]);
    let test = Test::new().file("kept", "a file").endpoint(&server);
    let test = test.env("NOTES_FOLDER_PATH", "kept");
    let run = test.next_run().args(["chat"]).stdin("hi\n").run().success();
    let reported = run.stdout("fine\n").stderr;
    let (_, reported) = reported.split_once("NOTES_FOLDER_PATH is `").expect(&reported);
    assert!(reported.contains("/kept` is a file\nhint: "), "{reported}");
    let result = server.finish()[1].last_message()["content"].clone();
    let result = result.as_str().unwrap();
    assert!(result.contains("/kept` is a file"), "{result}");
    // It is reported before any request.
    let run = test.next_run().args(["chat"]).stdin("").run();
    run.stderr_has("/kept` is a file");
    let test = test.env("NOTES_FOLDER_PATH", "kept/in/it");
    test.next_run()
        .args(["tool", "write_daily_note", r#"{"activity":"x"}"#])
        .run()
        .status(1)
        .stdout_has("/kept` is a file");
}

/// Blocks that an entry opens are closed at its end.
#[test]
fn note_entry_closes_open_blocks() {
    let test = Test::new().env("NOTES_FOLDER_PATH", "n");
    let table = [
        ("Ran:\n~~~~sh\nls", "\n~~~~"),
        ("<!-- half", "\n-->"),
        ("---\n```\na\n```\n<!-- b -->", ""),
        ("- item\n  ```\n  x", ""),
    ];
    let mut expected = String::new();
    for (activity, closing) in table {
        let arguments = json!({ "activity": activity }).to_string();
        let run = test.next_run().args(["tool", "write_daily_note", &arguments]);
        run.run().success();
        expected.push_str(&format!("## \n\n{activity}{closing}\n\n"));
    }
    let text = test.read(&format!("n/{}.md", today("")));
    let lines = text.lines().map(|line| match line.strip_prefix("## ") {
        Some(_) => "## ",
        None => line,
    });
    let lines: Vec<&str> = lines.collect();
    assert_eq!(lines.join("\n"), expected.trim_end());
}

/// The model replaces a fact; the source is the name of the session.
#[test]
fn model_replaces_a_fact_and_gets_the_old_one() {
    let remember = |content: &str| {
        Reply::call("remember_fact", &json!({"content": content, "important": true}))
    };
    let server = Server::start([
        remember("the user likes green tea"),
        remember("the user likes strong green tea"),
        remember(&format!("the key is {SECRET}")),
        remember(" "),
        Reply::text("done"),
    ]);
    let test = memory().endpoint(&server).env("LLM_EXTRA_HEADERS", HEADERS);
    test.next_run()
        .args(["remember"])
        .run()
        .success()
        .stdout("done\n")
        .stderr_has("the model gets no tools for skills (");
    let requests = server.finish();
    let results: Vec<Value> = requests[4]
        .messages()
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| serde_json::from_str(message["content"].as_str().unwrap()).unwrap())
        .collect();
    assert_eq!(results[0], json!({"remembered": "the user likes green tea"}));
    let replaced = json!({
        "remembered": "the user likes strong green tea",
        "replaced": "the user likes green tea #important",
    });
    assert_eq!(results[1], replaced);
    assert_eq!(results[2], json!({"remembered": "the key is [secret]"}));
    assert!(results[3]["error"].as_str().unwrap().contains("it is empty"));
    assert_eq!(requests[0].tool_names(), ["remember_fact"], "there are no skills");
    assert!(!test.read("kept/facts.md").contains(SECRET));
    let all = listed(&test);
    assert_eq!(all[0]["source"].as_str().unwrap().len(), 36, "{all:?}");

    // The next conversation has the fact in its system prompt.
    let server = Server::start([Reply::text("yes")]);
    test.next_run().endpoint(&server).args(["do you know?"]).run().success();
    let system = server.finish()[0].messages()[0]["content"].as_str().unwrap().to_owned();
    assert!(system.contains("the user likes strong green tea #important"), "{system}");
}

#[test]
fn unreadable_facts_do_not_stop_a_conversation() {
    let server = Server::start([
        Reply::call("remember_fact", &json!({"content": "x y"})),
        Reply::text("fine"),
    ]);
    let test = memory().file("kept/facts.md", "# Shopping\n").endpoint(&server);
    let run = test.next_run().args(["hi"]).run().success();
    run.stdout("fine\n").stderr_has("failed to read the facts").stderr_has("not a facts file");
    let last = server.finish()[1].last_message()["content"].clone();
    assert!(last.as_str().unwrap().contains("set MEMORY_PATH to a file of its own"), "{last}");
    assert_eq!(test.read("kept/facts.md"), "# Shopping\n");
}

#[test]
fn facts_command_of_a_conversation_edits_the_same_file() {
    let server = Server::start([]);
    let run = memory()
        .endpoint(&server)
        .args(["chat"])
        .stdin("/facts\n/facts add the sky is blue\n/facts list\n/facts remove 1\n/facts remove 7\n/facts dance\n")
        .run();
    run.status(1)
        .stderr_has("there are no facts yet")
        .stderr_has("remembered: the sky is blue")
        .stderr_has(" the sky is blue\n")
        .stderr_has("removed: the sky is blue")
        .stderr_has("there is no such number")
        .stderr_has("usage: /facts, /facts add TEXT, or /facts remove N");
    server.finish();
}

/// The writers are separate processes.
#[test]
fn sixteen_concurrent_writers_lose_no_fact() {
    let test = memory().timeout(seconds(120.0));
    let adds = "for n in $(seq 12); do skills-runner facts add \"writer $w has number $n of $w-$n\" >/dev/null || exit 1; done";
    let line = format!(
        "for w in $(seq 16); do ({adds}) & pids=\"$pids $!\"; done; for p in $pids; do wait $p || exit 1; done"
    );
    test.next_run().shell(&line).timeout(seconds(120.0)).run().success().stderr_is_empty();
    let all = listed(&test);
    assert_eq!(all.len(), 16 * 12);
    for writer in 1..=16 {
        for number in 1..=12 {
            let content = format!("writer {writer} has number {number} of {writer}-{number}");
            assert!(all.iter().any(|fact| fact["content"] == content), "{content}");
        }
    }
}

/// A killed writer leaves a complete file with all acknowledged facts.
#[test]
fn killed_writer_leaves_a_complete_file() {
    let test = memory();
    let mut acknowledged = Vec::new();
    for round in 0..30_u64 {
        let content = format!("number {round} is here");
        let running = test.next_run().args(["facts", "add", &content]).spawn();
        std::thread::sleep(Duration::from_micros(500 + 700 * round));
        running.kill9();
        if running.wait().status_is(0) {
            acknowledged.push(content);
        }
    }
    facts(&test, &["add", "the last one"]).success();
    let all = listed(&test);
    for content in acknowledged {
        assert!(all.iter().any(|fact| fact["content"] == content), "{content}");
    }
    assert_eq!(fs::read_dir(test.path("kept")).unwrap().count(), 1);
}

/// Today's note is named by the local date; text written by the user stays.
#[test]
fn daily_note_is_appended_to() {
    let test = Test::new().env("NOTES_FOLDER_PATH", "vault/daily");
    let write = |test: &Test, arguments: &Value| {
        let arguments = arguments.to_string();
        test.next_run().args(["tool", "write_daily_note", &arguments]).run()
    };
    for zone in ["UTC", "Etc/GMT-14", "Etc/GMT+12"] {
        let test = test.next_run().env("TZ", zone);
        let path = format!("vault/daily/{}.md", today(zone));
        let test = test.file(&path, "# My day\r\n\r\n- [ ] a task");
        write(&test, &json!({"activity": "Did **x**.\n\n- y", "title": "Work\n# on x"}))
            .success()
            .stdout_has(&path);
        write(&test, &json!({"activity": "Did z."})).success();
        let text = test.read(&path);
        let rest = text.strip_prefix("# My day\r\n\r\n- [ ] a task\n\n## ").expect(&text);
        let (time, rest) = rest.split_at(5);
        assert!(time.as_bytes()[2] == b':', "{text}");
        let rest = rest.strip_prefix(" Work # on x\n\nDid **x**.\n\n- y\n\n## ").expect(&text);
        assert_eq!(&rest[5..], "\n\nDid z.\n");
        fs::remove_dir_all(test.path("vault")).unwrap();
    }
    write(&test, &json!({"activity": " \n"})).status(1).stdout_has("it is empty");
    assert!(!test.exists("vault"));
    write(&test, &json!({"activity": "x"})).success();
    let path = format!("vault/daily/{}.md", today(""));
    assert_eq!(fs::metadata(test.path(&path)).unwrap().mode() & 0o777, 0o600);
    let test = test.mode(&path, 0o444);
    let old = test.read(&path);
    write(&test, &json!({"activity": "y"})).status(1).stdout_has("it is read-only");
    assert_eq!(test.read(&path), old);
    fs::remove_file(test.path(&path)).unwrap();
    let test = test.file("secret", "s").link(&path, "../../secret");
    write(&test, &json!({"activity": "y"})).status(1).stdout_has("it is a link");
    assert_eq!(test.read("secret"), "s");
    let unset = Test::new();
    write(&unset, &json!({"activity": "y"})).status(1).stdout_has("NOTES_FOLDER_PATH");
}

#[test]
fn sixteen_concurrent_writers_lose_no_note() {
    let test = Test::new().env("NOTES_FOLDER_PATH", "n");
    let add = "skills-runner tool write_daily_note \"{\\\"activity\\\":\\\"entry $w of all\\\"}\" >/dev/null";
    let line = format!("for w in $(seq 16); do {add} & done; wait");
    test.next_run().shell(&line).run().success();
    let text = test.read(&format!("n/{}.md", today("")));
    for writer in 1..=16 {
        assert!(text.contains(&format!("\n\nentry {writer} of all\n")), "{text}");
    }
    assert_eq!(text.matches("## ").count(), 16);
}

/// A conversation is logged however it ends; a single question is not.
#[test]
fn finished_conversation_is_logged_in_the_note() {
    let server = Server::start([
        Reply::call("write_daily_note", &json!({"activity": "noted"})),
        Reply::text("# One\n\nlong text"),
        Reply::error(400, "broken"),
        Reply::text("two"),
        Reply::text("alone"),
    ]);
    let test = Test::new()
        .env("NOTES_FOLDER_PATH", "n")
        .env("LLM_EXTRA_HEADERS", HEADERS)
        .endpoint(&server);
    test.next_run()
        .args(["chat"])
        .stdin(format!("first {SECRET}\nsecond\n/retry\n"))
        .run()
        .status(1);
    let path = format!("n/{}.md", today(""));
    let text = test.read(&path);
    let (_, log) = text.split_once(" conversation ").expect(&text);
    assert!(log.contains(&format!("\n\n2 turns with {MODEL}, ")), "{text}");
    assert!(log.contains("; tools: write_daily_note 1\n"), "{text}");
    assert!(
        log.contains("\n**first [secret]**\n\n> # One\n>\n> long text\n\n**second**\n\n> two\n"),
        "{text}"
    );
    test.next_run().args(["question"]).run().success();
    assert_eq!(test.read(&path), text);
    test.next_run().args(["chat"]).stdin("/help\n").run().success();
    assert_eq!(test.read(&path), text);
    server.finish();
    let server = Server::start([Reply::empty().hang()]);
    let running = test.next_run().endpoint(&server).args(["chat", "wait"]).spawn();
    server.wait_for_requests(1);
    running.signal(libc::SIGTERM);
    running.wait().status(-libc::SIGTERM);
    let text = test.read(&path);
    assert!(text.ends_with("\n**wait**\n\n> (no answer)\n"), "{text}");
}
