//! Results in a small context window: each takes at most a quarter of it, and what does not fit can
//! be read in parts.

use std::fmt::Write as _;

use serde_json::json;

use crate::harness::{Reply, Request, SKILL_TOOLS, Server, Test};

/// A quarter of 8,192 tokens of 3.5 bytes.
const QUARTER: usize = 7_168;

const HEAD: &str = "---\nname: guide\ndescription: Guides.\n---\n";

fn last_result(request: &Request) -> String {
    let message = request.last_message();
    assert_eq!(message["role"], "tool");
    message["content"].as_str().unwrap().to_string()
}

fn small() -> Test {
    Test::new().env("LLM_CONTEXT_WINDOW", "8192")
}

/// The offset with which a result says that reading goes on.
fn offset(result: &str) -> u64 {
    let (_, rest) = result.rsplit_once("offset ").unwrap();
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

/// Sections with a heading each; a heading in code is none.
fn guide(sections: usize) -> String {
    let mut text = format!("{HEAD}# Guide\n\n```sh\n# a comment\n```\n");
    for number in 1..=sections {
        let _ = writeln!(text, "\n## Section {number}\n");
        for step in 1..=12 {
            let _ = writeln!(text, "{step}. Do step {step} of section {number}, not more.");
        }
    }
    text
}

#[test]
fn a_long_document_is_read_in_parts() {
    let code = "~~~sh\n# a comment\n~~~\n\n## Section 9\n";
    let document = guide(24).replacen("## Section 9\n", code, 1);
    let step = std::sync::atomic::AtomicU64::new(0);
    let server = Server::always(move |request| {
        let last = request.last_message();
        if last["role"] != "tool" {
            return Reply::call("get_skill", &json!({"skill_name": "guide"}));
        }
        let result = last["content"].as_str().unwrap();
        let at = if result.contains("offset ") { offset(result) } else { 0 };
        step.store(at, std::sync::atomic::Ordering::Relaxed);
        if at == 0 {
            return Reply::text("done");
        }
        let arguments = json!({"skill_name": "guide", "file_path": "SKILL.md", "offset": at});
        Reply::call("read_file_in_skill", &arguments)
    });
    let test = small().skill("guide", &document).file("skills/guide/more.txt", "x");
    let run = test.endpoint(&server).args(["-v", "guide me"]).run().success();
    run.stderr_has("SKILL.md, ").stderr_has(&format!(" bytes of {}", document.len()));
    let requests = server.finish();
    let results: Vec<String> = requests[1..].iter().map(last_result).collect();
    assert!(results.len() >= 2);
    let first = &results[0];
    assert!(first.contains("[These are the first "), "{first}");
    assert!(first.contains("\nOther files of this skill") && first.contains("more.txt"));
    let next = usize::try_from(offset(first)).unwrap();
    let heading = |line: usize| document.lines().nth(line - 1).unwrap();
    let listed: Vec<&str> = first.lines().filter(|line| line.starts_with("lines ")).collect();
    assert!(listed.len() > 10, "{first}");
    for row in &listed {
        let (range, title) = row["lines ".len()..].split_once(": ").unwrap();
        let (from, to) = range.split_once('-').unwrap();
        assert_eq!(heading(from.parse().unwrap()), title.trim_end_matches(']'));
        let after: usize = to.parse::<usize>().unwrap() + 1;
        assert!(after > document.lines().count() || heading(after).starts_with("## "), "{row}");
    }
    assert!(!first.contains("a comment\nlines"), "code has no headings: {first}");
    // Together the parts are the document.
    let lines: Vec<&str> = document.lines().collect();
    let shown = lines[next - 2];
    let (before, _) = first.split_once("\n[These are").unwrap();
    assert!(before.trim_end().ends_with(shown), "{first}");
    let rest: Vec<&str> = results[1..]
        .iter()
        .flat_map(|part| part.lines().filter(|line| !line.starts_with('[')))
        .collect();
    assert_eq!(rest, &lines[next - 1..]);
    assert!(results.iter().all(|result| result.len() <= QUARTER), "{:?}", results[0].len());
}

#[test]
fn a_document_that_fits_is_whole() {
    let document = guide(13);
    for (window, is_whole) in [(None, true), (Some("32768"), true), (Some("4096"), false)] {
        for args in [&["--skill", "guide", "go"][..], &["/guide go"]] {
            let server = Server::start([Reply::text("done")]);
            let mut test = Test::new().skill("guide", &document).endpoint(&server).args(args);
            if let Some(window) = window {
                test = test.env("LLM_CONTEXT_WINDOW", window);
            }
            test.run().success();
            let requests = server.finish();
            let sent = requests[0].messages()[1].to_string();
            assert_eq!(sent.contains("they are whole, get_skill is not needed"), is_whole);
            assert_eq!(sent.contains("[These are the first "), !is_whole, "{sent}");
        }
    }
}

#[test]
fn results_take_at_most_a_quarter_of_the_window() {
    let script = "import sys; print('out; ' * 9000); print('err; ' * 9000, file=sys.stderr)";
    let calls = [
        ("read_file", json!({"path": "data.csv"})),
        ("read_file_in_skill", json!({"skill_name": "guide", "file_path": "data.txt"})),
        ("run_python_script", json!({"script": script})),
        ("list_skills", json!({})),
        ("read_file", json!({"path": "many"})),
    ];
    let mut test = small()
        .skill("guide", &guide(1))
        .file("skills/guide/data.txt", "é".repeat(20_000))
        .file("work/data.csv", "a;b;c\n".repeat(5_000))
        .cwd("work")
        .env("SKILLS_FOLDER_PATH", "../skills");
    for number in 0..200 {
        test = test.file(&format!("work/many/{}{number}", "x".repeat(120)), "");
        let name = format!("skill-{number}");
        let about = "Says what it is for in one sentence that is long enough to fill a window.";
        let document = format!("---\nname: {name}\ndescription: {about}\n---\nBody.\n");
        test = test.skill(&name, &document);
    }
    for (name, arguments) in calls {
        let server = Server::start([Reply::call(name, &arguments), Reply::text("done")]);
        test.next_run().endpoint(&server).args(["read it"]).run().success();
        let requests = server.finish();
        let result = last_result(&requests[1]);
        let least = QUARTER / 2;
        assert!(result.len() > least && result.len() < QUARTER + 100, "{name}: {}", result.len());
        assert_eq!(arguments["path"] == "many", result.contains("[entries 1 to "), "{name}");
        if name == "list_skills" {
            let listed: serde_json::Value = serde_json::from_str(&result).unwrap();
            assert!(listed["note"].as_str().unwrap().contains("`query` finds the others"));
        } else {
            assert!(result.contains("offset ") || result.contains(" bytes left out …]"), "{name}");
        }
        // Without a known window nothing is left out.
        let server = Server::start([Reply::call(name, &arguments), Reply::text("done")]);
        let run = test.next_run().endpoint(&server).env("LLM_CONTEXT_WINDOW", "");
        run.args(["read it"]).run().success();
        assert!(last_result(&server.finish()[1]).len() > QUARTER + 4_000, "{name}");
    }
}

/// What is always sent and a skill of 6 KB leave half of a window of 8,192 tokens.
#[test]
fn a_small_window_has_room_for_a_skill_and_the_work() {
    let document = guide(13);
    assert!((5_500..6_300).contains(&document.len()), "{}", document.len());
    let get = Reply::call("get_skill", &json!({"skill_name": "guide"}));
    let server = Server::start([get, Reply::text("done")]);
    let test =
        small().skill("guide", &document).file("memory.md", "").env("MEMORY_PATH", "memory.md");
    test.endpoint(&server).args(["guide me"]).run().success();
    let request = server.finish().pop().unwrap();
    assert!(!last_result(&request).contains("[These are the first "));
    let bytes =
        request.json["messages"].to_string().len() + request.json["tools"].to_string().len();
    assert!(bytes * 2 / 7 <= 8_192 / 2, "{bytes}");
}

/// In a small window fewer tools are offered; only known ones are small.
#[test]
fn a_small_window_has_fewer_tools() {
    let three = ["get_skill", "run_python_script", "run_command"];
    let five = ["get_skill", "run_python_script", "run_command", "read_file", "write_file"];
    let test = Test::new().skill("guide", &guide(40)).file("memory.md", "");
    let test = test.env("LLM_TOOLS", "native");
    for (window, expected, reader) in [
        ("4096", &three[..], "run_command"),
        ("8191", &three, "run_command"),
        ("8192", &five, "read_file"),
        ("16383", &five, "read_file"),
        ("16384", &SKILL_TOOLS, "read_file_in_skill"),
        ("", &SKILL_TOOLS, ""),
    ] {
        let read = Reply::call("get_skill", &json!({"skill_name": "guide"}));
        let server = Server::start([read, Reply::text("done")]);
        let test = test.next_run().endpoint(&server).env("LLM_CONTEXT_WINDOW", window);
        let with_memory = test.next_run().env("MEMORY_PATH", "memory.md");
        with_memory.args(["guide me"]).run().success();
        let requests = server.finish();
        let names = requests[0].tool_names();
        assert_eq!(names[..names.len() - 1], *expected, "{window}");
        assert_eq!(names.last(), Some(&"remember_fact"));
        // The document says how to go on with what is offered.
        let result = last_result(&requests[1]);
        let Some((_, way)) = result.split_once("Read on with ") else {
            assert_eq!(reader, "");
            continue;
        };
        let (way, _) = way.split_once(", before you").unwrap();
        let place = test.path("skills/guide/SKILL.md").display().to_string();
        let call = match way.split_once(", ").unwrap() {
            ("run_command", rest) => {
                let command = rest.strip_prefix("command `").unwrap().strip_suffix('`');
                json!({"command": command.unwrap()})
            }
            ("read_file", rest) => {
                assert!(rest.starts_with(&format!("path \"{place}\"")), "{rest}");
                json!({"path": place, "offset": offset(&result)})
            }
            (_, rest) => {
                assert!(rest.starts_with("file_path \"SKILL.md\""), "{rest}");
                let page = offset(&result);
                json!({"skill_name": "guide", "file_path": "SKILL.md", "offset": page})
            }
        };
        assert!(way.starts_with(&format!("{reader}, ")), "{way}");
        let server = Server::start([Reply::call(reader, &call), Reply::text("done")]);
        test.next_run().endpoint(&server).args(["go on"]).run().success();
        let rest = last_result(&server.finish()[1]);
        let (before, _) = result.split_once("\n[These are the first ").unwrap();
        let last = before.trim_end().lines().last().unwrap();
        let document = guide(40);
        let next = document.split_once(last).unwrap().1.trim_start();
        let next = next.lines().next().unwrap();
        assert!(rest.contains(next) && !rest.contains(last), "{rest}");
    }
    let server = Server::unsolicited(Reply::text("never"));
    let none = test.next_run().endpoint(&server).env("LLM_CONTEXT_WINDOW", "4096");
    let run = none.args(["--no-scripts", "--dry-run", "hi"]).run().success();
    let tools = run.stdout_json()["body"]["tools"].as_array().unwrap().len();
    assert_eq!(tools, 1);
}
