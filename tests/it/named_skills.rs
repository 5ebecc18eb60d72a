//! Names of skills, scripts and files in the place of others, in conversations with constrained
//! replies.

use serde_json::json;

use crate::harness::{Reply, Request, Server};
use crate::schema::{DOCUMENT, answer, ask, branches, names, object, read_skill, test};

pub(super) fn script(script: &str) -> String {
    object("run_python_script", &json!({ "script": script }))
}

pub(super) fn command(command: &str) -> String {
    object("run_command", &json!({ "command": command }))
}

pub(super) fn result(requests: &[Request], at: usize) -> &str {
    requests[at].last_message()["content"].as_str().unwrap()
}

/// The name of a skill in the place of a program or module: the next reply reads the skill. Then its
/// only script runs.
#[test]
fn names_of_skills_are_no_programs() {
    let program = "program: get_skill {\\\"skill_name\\\":\\\"alpha\\\"}";
    let module = "module: get_skill {\"skill_name\":\"alpha\"}";
    for (first, advice) in [
        (script("alpha x --y"), program),
        (script("alpha.py"), program),
        (command("alpha x > y"), program),
        (command("python3 -m alpha x"), module),
        (script("import sys\nfrom alpha import greet"), module),
    ] {
        let replies = [first, read_skill(), script("alpha 'a b'"), answer("Done.")];
        let (_, run, requests) = ask(replies.map(|it| Reply::text(&it)).to_vec());
        run.success();
        let read = format!("alpha is a skill, not a {advice}");
        assert!(result(&requests, 1).contains(&read), "{}", result(&requests, 1));
        assert!(!result(&requests, 1).contains("not installed"), "{}", result(&requests, 1));
        assert_eq!(names(&requests[1]), ["get_skill"]);
        let ran = result(&requests, 3);
        assert!(ran.contains("[alpha is a skill: its scripts/hello.py ran]\n"), "{ran}");
        assert!(ran.contains("\nhello\n"), "{ran}");
    }
}

/// Only what is surely meant is done: a line for a shell is not run as words, arguments are kept, a
/// script that went on keeps its result, and skills that are not for the model stay so.
#[test]
fn named_skills_are_used_only_where_it_is_meant() {
    let run = |replies: Vec<String>, document: &str| {
        let server = Server::start(replies.iter().map(|it| Reply::text(it)).collect::<Vec<_>>());
        let script = "import sys\nprint(sys.argv[1:], sys.stdin.read())\n";
        let test = test().file("skills/alpha/scripts/hello.py", script);
        test.skill("alpha", document).endpoint(&server).args(["greet me"]).run().success();
        server.finish()
    };
    let requests =
        run(vec![read_skill(), command("alpha x > y && alpha z"), answer("Done.")], DOCUMENT);
    assert!(result(&requests, 2).contains("not a program: run_python_script {"));
    let words = json!({"script": "alpha x", "args": ["y"], "stdin": "in"});
    let requests =
        run(vec![read_skill(), object("run_python_script", &words), answer("Done.")], DOCUMENT);
    assert!(result(&requests, 2).contains("['x', 'y'] in\n"), "{}", result(&requests, 2));
    let caught = "try:\n  import alpha\nexcept ImportError as e: print('caught', e)";
    let requests = run(vec![script(caught), answer("Done.")], DOCUMENT);
    let text = result(&requests, 1);
    assert!(text.contains("exit 0") && text.contains("caught") && !text.contains("get_skill"));
    let hidden = DOCUMENT.replace("description", "disable-model-invocation: true\ndescription");
    for first in [command("alpha x"), object("read_file", &json!({"path": "greets.txt"}))] {
        let requests = run(vec![first, answer("Done.")], &hidden);
        assert!(!result(&requests, 1).contains("get_skill"), "{}", result(&requests, 1));
    }
    // A file of the user, by its name in another letter case.
    let read = object("read_file", &json!({"path": "data.csv"}));
    let server = Server::start([read_skill(), read, answer("Done.")].map(|it| Reply::text(&it)));
    test().file("work/Data.csv", "mine\n").endpoint(&server).args(["greet me"]).run().success();
    assert!(result(&server.finish(), 2).contains("\nmine\n"));
}

/// Of several scripts of a skill that was read, the next reply chooses one.
#[test]
fn several_scripts_are_chosen_from() {
    for (again, message) in [
        (
            script("alpha 'a b'"),
            "alpha is a skill, not a program: run_python_script {\\\"args\\\":[\\\"a b\\\"],",
        ),
        (
            script("import alpha"),
            "alpha is a skill, not a module: run a script of it by `file_path`",
        ),
    ] {
        let replies = [read_skill(), again, answer("Done.")].map(|it| Reply::text(&it));
        let server = Server::start(replies);
        let test = test().file("skills/alpha/scripts/more.py", "");
        let document = DOCUMENT.replace("hello.py", "hello.py or scripts/more.py");
        test.skill("alpha", &document).endpoint(&server).args(["greet me"]).run().success();
        let requests = server.finish();
        assert!(result(&requests, 2).contains(message), "{}", result(&requests, 2));
        let [(name, form)] = &branches(&requests[2])[..] else { panic!("{:?}", requests[2]) };
        assert_eq!(name, "run_python_script");
        let files = json!(["scripts/hello.py", "scripts/more.py"]);
        assert_eq!(form["properties"]["file_path"]["enum"], files);
    }
    // A skill without any leaves the choice.
    let read = object("get_skill", &json!({"skill_name": "facts"}));
    let replies = [read, script("import facts"), answer("Done.")].map(|it| Reply::text(&it));
    let server = Server::start(replies);
    let test = test().skill("facts", "---\nname: facts\ndescription: Knows.\n---\nBlue.\n");
    test.endpoint(&server).args(["greet me"]).run().success();
    assert!(names(&server.finish()[2]).contains(&"run_command".to_string()));
}

/// Files of the user run as scripts; those of the skill read last are found by the end of their path.
#[test]
fn names_of_files_are_taken_as_meant() {
    let replies = [
        script("mine.py x"),
        read_skill(),
        script("hello.py"),
        object("read_file", &json!({"path": "data.csv"})),
        answer("Done."),
    ];
    let server = Server::start(replies.map(|it| Reply::text(&it)));
    let test = test().file("work/mine.py", "import sys\nprint('mine', sys.argv[1])");
    test.endpoint(&server).args(["greet me"]).run().success();
    let requests = server.finish();
    for (at, text) in
        [(1, "\nmine x\n"), (3, "\nhello\n"), (4, "[read `data.csv` of the skill alpha]\n1\n")]
    {
        assert!(result(&requests, at).contains(text), "{}", result(&requests, at));
    }
}

/// A missing file whose name stands in the description of one skill is what this skill knows.
#[test]
fn files_that_a_description_names_are_those_of_a_skill() {
    let first = object("read_file", &json!({"path": "greets.txt"}));
    let replies = [first, read_skill(), answer("Done.")].map(|it| Reply::text(&it));
    let (_, run, requests) = ask(replies.to_vec());
    run.success();
    let call = "alpha is a skill about greets: get_skill {";
    assert!(result(&requests, 1).contains(call), "{}", result(&requests, 1));
    assert_eq!(names(&requests[1]), ["get_skill"]);
}

/// A part of a path may be the name of a skill, too, until it was read.
#[test]
fn names_of_skills_in_paths_are_skills() {
    for path in ["alpha/logo.png", "data/alpha.csv"] {
        let first = object("read_file", &json!({ "path": path }));
        let replies = [first.clone(), read_skill(), first, answer("Done.")];
        let (_, run, requests) = ask(replies.map(|it| Reply::text(&it)).to_vec());
        run.success();
        let result = |at: usize| requests[at].last_message()["content"].as_str().unwrap();
        let words = "no such file or folder";
        let call = "; alpha is a skill: get_skill {\\\"skill_name\\\":\\\"alpha\\\"}";
        assert!(result(1).contains(words) && result(1).contains(call), "{}", result(1));
        assert!(result(3).contains(words) && !result(3).contains(call), "{}", result(3));
    }
}

/// Python with the name of a skill is run.
#[test]
fn names_of_skills_may_be_variables() {
    for python in ["alpha = 3; print(alpha)", "alpha = 1\nprint(alpha)"] {
        let (_, run, requests) = ask(vec![Reply::text(&script(python)), Reply::text(&answer("3"))]);
        run.success();
        assert!(requests[1].last_message()["content"].as_str().unwrap().contains("exit 0"));
    }
}
