//! Several writers, the model, and daily notes.

use super::{FRONT, facts, listed, memory, remember, today};
use crate::harness::{MODEL, Reply, Server, Test, seconds};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

/// A second secret in addition to the key; the scripted endpoint checks for it.
const SECRET: &str = "gateway-0123456789abcdef";
const HEADERS: &str = r#"{"x-gateway": "gateway-0123456789abcdef"}"#;

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

/// The other process has opened the file before a fact is added and writes after that.
#[test]
fn a_line_written_through_an_old_descriptor_is_kept() {
    let test = memory().file("kept/facts.md", format!("{FRONT}## Recent\n"));
    let line = "exec 9>>kept/facts.md; skills-runner facts add 'new one' 9>&- & \
                until grep -q 'new one' kept/facts.md; do :; done; \
                echo '- by hand' >&9; exec 9>&-; wait $!";
    test.next_run().shell(line).run().success();
    let text = test.read("kept/facts.md");
    assert!(text.contains("new one") && text.contains("\n- by hand\n"), "{text}");
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
