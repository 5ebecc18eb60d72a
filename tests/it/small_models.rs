//! What only a model meets whose server says that it is small.

use std::sync::Mutex;

use serde_json::json;

use crate::harness::{Outcome, Reply, Request, Server};
use crate::named_skills::{command, result, script};
use crate::schema::{answer, branches, names, object, test};

const SMALL: &str = r#"{"data":[{"id":"test-model","meta":{"n_params":1500000000}}]}"#;

/// Asks with these replies; the number in the question prevents a plain first request.
fn ask(replies: impl Into<Vec<String>>) -> (Outcome, Vec<Request>) {
    let replies = Mutex::new(replies.into().into_iter());
    let server = Server::of_all_requests(move |request| match request.path.as_str() {
        "/v1/chat/completions" => Reply::text(&replies.lock().unwrap().next().unwrap()),
        _ => Reply::status(200).body(SMALL),
    });
    let rows = "order,amount\n1,3.5\n2,4\n3,5\n4,6\n";
    let test = test().env_unset("LLM_TOOLS").file("work/table.csv", rows).endpoint(&server);
    let run = test.args(["-o", "json", "greet me 2 times"]).run();
    let requests = server.finish().into_iter().filter(|it| it.method == "POST").collect();
    (run, requests)
}

/// A number that nothing shows must be calculated, once a turn. A result shows it, perhaps with more
/// decimals; results have no durations, which are numbers, too.
#[test]
fn numbers_that_nothing_shows_are_calculated() {
    let replies =
        [answer("It is 1,476.5."), script("print(1234.5+.0678)"), answer("It is 1,234.57.")];
    let (run, requests) = ask(&replies);
    let end = run.success().stdout_json();
    assert_eq!((&end["answer"], &end["asked_again"]), (&json!("It is 1,234.57."), &json!(1)));
    let question = "No result shows the number 1476.5. Calculate it: run code.";
    assert_eq!(result(&requests, 1), question);
    let [(name, form)] = &branches(&requests[1])[..] else { panic!("{:?}", requests[1]) };
    assert_eq!(name, "run_python_script");
    assert_eq!(form["required"], json!(["thought", "tool", "script"]));
    assert!(result(&requests, 2).starts_with("Result of run_python_script:\nexit 0, in /"));
    for known in ["Step 1: greet.", "No number.", "2 times."] {
        let (run, _) = ask(&[answer(known)]);
        assert_eq!(run.success().stdout_json()["asked_again"], 0);
    }
    // A model that nobody says is small may know it.
    let server = Server::start([Reply::text(&answer("It is 1234."))]);
    let run = test().endpoint(&server).args(["-o", "json", "greet me"]).run();
    assert_eq!(run.success().stdout_json()["asked_again"], 0);
}

/// A number that only the model itself wrote is no result, also if a program prints it.
#[test]
fn invented_numbers_are_told() {
    let write = object("write_file", &json!({"path": "x", "content": "budget 8080"}));
    for replies in [
        vec![answer("It is 99."), script("print(90+8)"), answer("It is 97.")],
        vec![script("print(97)"), answer("It is 97."), command("echo 97"), answer("It is 97.")],
        vec![write, command("cat x"), answer("It is 8080."), command("ls"), answer("It is 8080.")],
    ] {
        let (run, _) = ask(replies);
        let end = run.status(1).stderr_has("no result shows a number in it").stdout_json();
        assert_eq!(end["error"]["kind"], "protocol");
        assert!(end["answer"].as_str().unwrap().starts_with("It is "), "{end}");
    }
}

/// A table is calculated with, not looked at.
#[test]
fn tables_are_calculated_with() {
    let read = object("read_file", &json!({"path": "table.csv"}));
    let sum = script("print(sum(map(float, ['3.5', '4', '5', '6'])))");
    let (run, requests) = ask(&[read, sum, answer("18.5")]);
    run.success();
    assert_eq!(names(&requests[1]), ["run_python_script"]);
    assert!(names(&requests[2]).contains(&"answer".to_string()));
    let mail = object("read_file", &json!({"path": "mail.txt"}));
    let (run, requests) = ask(&[mail, answer("A mail.")]);
    run.success();
    assert!(names(&requests[1]).contains(&"answer".to_string()));
}

/// After two failures the model may say that it cannot; if two calls brought what equal ones had
/// brought before, it has to answer.
#[test]
fn a_model_that_is_lost_answers() {
    let replies = [command("false"), script("1/0"), answer("I cannot.")];
    let (run, requests) = ask(&replies);
    run.success();
    let advice = "If this cannot be done here, use `answer` to say so.";
    assert!(!result(&requests, 1).contains(advice) && result(&requests, 2).ends_with(advice));
    assert!(!names(&requests[1]).contains(&"answer".to_string()));
    for again in [command("false"), command("echo a")] {
        let calls = [&again, &command("true"), &again, &command("true"), &answer("It is a.")];
        let (run, requests) = ask(calls.map(String::clone));
        run.success();
        assert!(names(&requests[3]).len() > 1, "{:?}", names(&requests[3]));
        assert_eq!(names(&requests[4]), ["answer"]);
    }
}

/// A small model is asked a plain question without tools first: with them it always uses one.
#[test]
fn small_models_answer_what_everyone_knows() {
    let ask = |question: &str, first: &str, arguments: &[&str]| {
        let (question, first) = (question.to_string(), first.to_string());
        let words = [arguments, &["-o", "json", &question]].concat();
        let is_plain = |request: &Request| request.json.get("response_format").is_none();
        let server = Server::of_all_requests(move |request| match request.path.as_str() {
            "/v1/chat/completions" if is_plain(request) => Reply::text(&first),
            "/v1/chat/completions" => Reply::text(&answer("With tools.")),
            _ => Reply::status(200).body(SMALL),
        });
        let test = test().env_unset("LLM_TOOLS").endpoint(&server).args(words);
        let end = test.run().stdout_json();
        let requests = server.finish();
        let sent: Vec<&Request> = requests.iter().filter(|it| it.method == "POST").collect();
        let plain = sent.iter().filter(|request| is_plain(request)).count();
        (end["answer"].as_str().unwrap().to_string(), plain, end["steps"].clone(), sent.len())
    };
    let (text, plain, steps, sent) = ask("What is the capital of Norway?", "Oslo", &[]);
    assert_eq!((&*text, plain, sent), ("Oslo", 1, 1));
    assert_eq!(steps, 1);
    // What it does not know, or cannot: numbers are not trusted.
    for first in ["TOOLS", "Tools.", "", "It has 29 days.", "{\"a\": true}", "Folder"] {
        let (text, plain, _, sent) = ask("What is in this folder?", first, &[]);
        assert_eq!((&*text, sent - plain), ("With tools.", 1), "{first}");
    }
    assert_eq!(ask("Say good morning in Spanish.", "Buenos d\u{ed}as", &[]).0, "Buenos d\u{ed}as");
    // Numbers, files and addresses in it, instructions of the user.
    for (question, arguments) in [
        ("What is 2 times 3?", &[][..]),
        ("Is there a typo in todo.txt?", &[]),
        ("Delete notes/old.", &[]),
        ("Write to bob@example that we meet.", &[]),
        ("Who are you?", &["--system", "You are a pirate."]),
        ("Who are you?", &["--skill", "alpha"]),
        ("Who are you?", &["--require-skill"]),
    ] {
        assert_eq!(ask(question, "Oslo", arguments).1, 0, "{question}");
    }
}

/// Some servers end a reply in the middle and call it complete: what there is of a call is no answer.
#[test]
fn a_cut_off_object_is_no_answer() {
    for cut in [
        r#"{"thought":"list","tool":"run_command","command":"ls -l"#,
        r#"{"thought":"x"}"#,
        r#" { "tool" : "run_comm"#,
    ] {
        let (run, requests) = ask([cut.to_string(), answer("Hello.")]);
        assert_eq!(run.success().stdout_json()["answer"], "Hello.", "{cut}");
        assert!(result(&requests, 1).starts_with("Your reply was too long"), "{cut}");
    }
    // An answer in JSON of a server that ignores the form of replies.
    for answer in [r#"{"name": "Anna"}"#, r#"{"name": "Ann"#] {
        let (run, _) = ask([answer.to_string()]);
        assert_eq!(run.success().stdout_json()["answer"], answer);
    }
}
