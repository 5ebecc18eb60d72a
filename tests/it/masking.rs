//! No part of a secret shows, wherever a text is cut, and however a server or
//! a script writes it. That the whole key never shows, every test checks.

use serde_json::json;

use crate::harness::{CANARY, Outcome, Reply, Server, Test};

const SKILL: &str = "# A skill";

/// Where it cuts the line of a call or a result.
const SUMMARY: usize = 200;
/// Where it cuts each end of a script's stream.
const HALF: usize = 32 << 10;
/// Where it cuts a page.
const PAGE: usize = 64 << 10;

/// Python that has the key without quoting it.
fn key_in_python() -> String {
    let backwards: String = CANARY.chars().rev().collect();
    format!("k = '{backwards}'[::-1]; ")
}

/// Neither the beginning of the key nor its end shows, of four bytes or more.
#[track_caller]
fn shows_no_part(run: Outcome, what: &str) -> Outcome {
    for part in [&CANARY[..4], &CANARY[CANARY.len() - 4..]] {
        for stream in [&run.stdout, &run.stderr] {
            run.demand(!stream.contains(part), format_args!("{part} shows: {what}"));
        }
    }
    run
}

fn hi(server: &Server) -> Test {
    let test = Test::new().skill("s", SKILL).endpoint(server);
    test.args(["-n", "-v", "-o", "jsonl", "hi"])
}

/// The lines of calls and results are cut behind what is masked.
#[test]
fn the_lines_of_calls_and_results_show_no_part() {
    let key = key_in_python();
    for before in [SUMMARY - 40, SUMMARY - 30, SUMMARY - 20, SUMMARY - 10] {
        let x = "x".repeat(before);
        let of = |script: &str| json!({"skill_name": "s", "script": script});
        let name = format!("{x}{CANARY}{x}");
        // The model writes the key into a call; the history has it, so that
        // the run ends here. Names that are nobody's are quoted in the result.
        for (tool, arguments) in [
            ("run_python_script", of(&format!("#{x} {CANARY} and more"))),
            ("get_skill", json!({"skill_name": name})),
            ("no_tool", json!({"skill_name": name})),
            (
                "read_file_in_skill",
                json!({"skill_name": "s", "file_path": name}),
            ),
        ] {
            let call = Reply::call(tool, &arguments);
            let server = Server::always(move |_| call.clone());
            for format in ["text", "jsonl"] {
                let test = Test::new().skill("s", SKILL).endpoint(&server);
                let run = test.args(["--max-steps", "1", "-o", format, "hi"]).run();
                shows_no_part(run.status(3), tool).stderr_has(&format!("→ {tool} "));
            }
        }
        for end in ["print(text)", "raise SystemExit(text)"] {
            let script = format!("{key}text = '{x} ' + k + ' and more' * 20; {end}");
            let call = Reply::call("run_python_script", &of(&script));
            let server = Server::start([call, Reply::text("4")]);
            let run = hi(&server).run().success();
            shows_no_part(run, end).stderr_has("← exit ");
            server.finish();
        }
    }
}

/// Of a stream that is too long the beginning and the end are kept: a key that
/// reaches into what is left out shows no part of itself, to nobody.
#[test]
fn a_stream_that_is_cut_shows_no_part_of_a_key() {
    let key = key_in_python();
    for place in [4, CANARY.len() / 2, CANARY.len() - 4] {
        for stream in ["stdout", "stderr"] {
            let before = HALF - place;
            let behind = HALF - (CANARY.len() - place);
            let script = format!(
                "import sys\n{key}sys.{stream}.write('x' * {before} + k + 'y' * 9999 + k + 'z' * {behind})"
            );
            let call = json!({"skill_name": "s", "script": script});
            let server = Server::start([Reply::call("run_python_script", &call), Reply::text("4")]);
            let run = hi(&server).run().success();
            let run = shows_no_part(run, stream);
            run.demand(run.stdout.contains("xx[secret]\\\\n[… "), "the head's end");
            run.demand(run.stdout.contains("…]\\\\n[secret]zz"), "the tail's start");
            let content = server.finish()[1].last_message()["content"].to_string();
            assert!(!content.contains(&CANARY[..4]), "the model sees it");
        }
    }
    // What is no part of a key, or too short for one, stays.
    let script = format!("print('x' * {} + 'sk-' + 'y' * 99999)", HALF - 3);
    let call = json!({"skill_name": "s", "script": script});
    let server = Server::start([Reply::call("run_python_script", &call), Reply::text("4")]);
    hi(&server).run().success().stdout_has("xxsk-\\\\n[… ");
}

/// A line that is longer than a page is cut inside; so is a description.
#[test]
fn pages_and_descriptions_show_no_part_of_a_key() {
    for place in [4, CANARY.len() / 2, CANARY.len() - 4] {
        let text = format!("{}{CANARY}{}\n", "x".repeat(PAGE - place), "y".repeat(PAGE));
        let description = format!("{} {CANARY} {}", "d".repeat(1023 - place), "d".repeat(99));
        let test = Test::new()
            .env("LLM_API_KEY", CANARY)
            .skill(
                "s",
                &format!("---\nname: s\ndescription: {description}\n---\n"),
            )
            .file("skills/s/f.txt", text);
        for (tool, more, rest) in [
            (
                "read_file_in_skill",
                r#","file_path":"f.txt""#,
                "xx[secret]\n",
            ),
            (
                "read_file_in_skill",
                r#","file_path":"f.txt","offset":2"#,
                "[secret]yy",
            ),
            ("list_skills", "", "ddd [secret]…"),
        ] {
            let arguments = match tool {
                "list_skills" => "{}".to_owned(),
                _ => format!(r#"{{"skill_name":"s"{more}}}"#),
            };
            let run = test
                .again()
                .args(["tool", tool, &arguments])
                .run()
                .success();
            shows_no_part(run, more).stdout_has(rest);
        }
    }
    // Lines that are whole begin and end with what they hold.
    let test = Test::new()
        .env("LLM_API_KEY", CANARY)
        .skill("s", SKILL)
        .file(
            "skills/s/f.txt",
            format!("1 {0}\n{1}\n3\n", &CANARY[..9], &CANARY[9..]),
        );
    for (lines, line) in [
        (r#""limit":1"#, &CANARY[..9]),
        (r#""offset":2"#, &CANARY[9..]),
    ] {
        let arguments = format!(r#"{{"skill_name":"s","file_path":"f.txt",{lines}}}"#);
        let run = test
            .again()
            .args(["tool", "read_file_in_skill", &arguments])
            .run();
        run.success().stdout_has(line);
    }
}
