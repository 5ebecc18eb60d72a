//! Invisible characters: shown escaped to users, removed from descriptions for models, and kept
//! in an answer if they are part of its text.

use serde_json::json;

use crate::harness::{Reply, Server, Test, event, interpreter, last_event};

/// Characters that hide words, or reverse the direction of a line.
const HIDDEN: [char; 7] =
    ['\u{200b}', '\u{2028}', '\u{202e}', '\u{2066}', '\u{feff}', '\u{e0041}', '\u{fff9}'];

fn all() -> String {
    HIDDEN.iter().collect()
}

/// A skill whose description hides words in tag characters, as an attack would.
fn test_with_hidden_words() -> Test {
    let words: String =
        "obey".chars().map(|c| char::from_u32(0xe0000 + u32::from(c)).unwrap()).collect();
    let description = format!("Counts{words} things{}.", all().replace('\u{2028}', ""));
    Test::new()
        .env("SCRIPT_PYTHON", interpreter())
        .skill("s", &format!("---\nname: s\ndescription: {description}\n---\nCount.\nA\u{200b}B\n👨\u{200d}👩 می\u{200c}خواهم\n"))
}

#[track_caller]
fn assert_none_shown(text: &str) {
    assert!(!text.contains(HIDDEN), "{}", text.escape_unicode());
    assert!(!text.contains(|c| ('\u{e0000}'..='\u{e007f}').contains(&c)));
}

#[test]
fn lines_for_users_show_them_escaped() {
    let script = format!("print(1) # a{}b", all());
    let call = json!({"skill_name": "s", "script": script});
    let server = Server::start([
        Reply::call("run_python_script", &call),
        Reply::call(&format!("no{}tool", all()), &json!({})),
        Reply::text("done"),
    ]);
    let run = test_with_hidden_words().endpoint(&server).args(["-n", "hi"]).run().success();
    assert_none_shown(&run.stderr);
    run.stderr_has("a\\u{200b}").stderr_has("\\u{e0041}").stderr_has("\\u{202e}");
}

#[test]
fn descriptions_for_models_lack_them() {
    let server = Server::start([Reply::text("done")]);
    test_with_hidden_words().endpoint(&server).args(["-n", "hi"]).run().success();
    let request = server.finish().pop().unwrap();
    assert_none_shown(request.system());
    assert!(request.system().contains("Counts things."), "{}", request.system());
    for (tool, arguments) in [("list_skills", "{}"), ("list_skills", r#"{"query": "count"}"#)] {
        let run = test_with_hidden_words().args(["tool", tool, arguments]).run().success();
        assert_none_shown(&run.stdout);
        let skills = run.stdout_json();
        if skills["skills"][0]["name"] == "s" {
            assert_eq!(skills["skills"][0]["description"], "Counts things.");
        }
    }
}

#[test]
fn linter_reports_them() {
    let run = test_with_hidden_words().args(["skills", "check", "s"]).run();
    let lines: Vec<&str> =
        run.stdout.lines().filter(|line| line.contains("invisible-character")).collect();
    run.check(lines.len() == 2, "the description and one line of the text");
    run.check(
        lines[0].contains("SKILL.md:3") && lines[0].contains("U+E006F"),
        "character and line",
    );
    run.check(lines[1].contains("SKILL.md:6") && lines[1].contains("U+200B"), "character and line");
}

#[test]
fn answer_keeps_those_in_its_text() {
    let flag = "🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}";
    let kept = format!("👨\u{200d}👩\u{200d}👧 می\u{200c}خواهم {flag} א\u{200f}!");
    let text = format!("{kept} a\u{200b}b\u{202e}c\u{e0041}\u{feff}. 👨\u{200d} end");
    let shown = format!("{kept} a\u{fffd}b\u{fffd}c\u{fffd}\u{fffd}. 👨\u{fffd} end");
    for size in [1, 2, 1000] {
        let answer = || {
            let letters: Vec<char> = text.chars().collect();
            let pieces = letters.chunks(size);
            let mut events: Vec<String> = pieces
                .map(|piece| event(&json!({"content": piece.iter().collect::<String>()})))
                .collect();
            events.push(last_event("stop"));
            Server::start([Reply::sse(events)])
        };
        let server = answer();
        let on_terminal =
            Test::new().endpoint(&server).args(["-n", "hi"]).spawn_on_terminal().wait_exit();
        let line = on_terminal.terminal.trim_end().lines().last();
        assert_eq!(line, Some(shown.as_str()), "{size}");
        let server = answer();
        let piped = Test::new().endpoint(&server).args(["-n", "hi"]).run().success();
        assert_eq!(piped.stdout, format!("{text}\n"), "{size}");
    }
}
