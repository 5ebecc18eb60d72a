//! Many concurrent runs, started by xargs and GNU parallel, that share one skills folder, facts
//! file, notes folder, sessions folder and log: no data is lost or mixed up, and nothing is left
//! behind.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{
    Outcome, ProgramText, Reply, Request, Server, Test, interpreter, seconds, shell_line_works,
    wait_until,
};

/// Number of runs.
const RUNS: usize = 200;
/// Number of runs that must be active at the same time.
const ALIVE: usize = 50;
/// Time limit for reaching that number. It only ends a test that would fail anyway.
const LIMIT: Duration = Duration::from_secs(60);
const DOCUMENT: &str = "---\nname: calc\ndescription: Calculates.\n---\nUse Python.\n";

/// Blocks its callers until the given number of them wait, then lets all pass.
#[derive(Default)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: usize,
    is_open: bool,
    /// The number was not reached in time: the callers stop waiting, and the test fails.
    is_broken: bool,
}

impl Gate {
    fn pass(&self, count: usize) {
        let mut state = self.state.lock().unwrap();
        state.waiting += 1;
        state.is_open |= state.waiting >= count;
        self.changed.notify_all();
        let is_shut = |state: &mut State| !state.is_open && !state.is_broken;
        let (mut state, _) = self.changed.wait_timeout_while(state, LIMIT, is_shut).unwrap();
        state.is_broken |= !state.is_open;
        self.changed.notify_all();
        state.waiting -= 1;
    }

    #[track_caller]
    fn was_open(&self) {
        let is_open = self.state.lock().unwrap().is_open;
        assert!(is_open, "{ALIVE} runs were never active at the same time");
    }
}

/// The number in `job N`, the last user message.
fn job(request: &Request) -> usize {
    let messages = request.messages().iter().rev();
    let mut questions = messages.filter(|message| message["role"] == "user");
    let text = questions.next().unwrap()["content"].as_str().unwrap();
    text.strip_prefix("job ").unwrap().trim().parse().unwrap()
}

/// The scripted model: for each job it calls a script and saves a fact and a note, then replies
/// with the script's result.
fn model(request: &Request, gate: &Gate) -> Reply {
    let number = job(request);
    let messages = request.messages().iter().rev();
    let results = messages.take_while(|message| message["role"] == "tool");
    let results: Vec<_> = results.map(|result| result["content"].as_str().unwrap()).collect();
    if let [note, fact, script] = results[..] {
        assert!(fact.contains("remembered"), "{fact}");
        assert!(!note.contains("error"), "{note}");
        let found = ProgramText::parse(script).stdout.trim();
        return Reply::text(&format!("job {number}: {found}"));
    }
    gate.pass(ALIVE);
    let script = format!("print({number} ** 2)");
    let script = json!({"skill_name": "calc", "script": script}).to_string();
    let fact = json!({"content": format!("job {number} is done")}).to_string();
    let note = json!({"activity": format!("did job {number}")}).to_string();
    Reply::calls([
        ("run_python_script", &*script),
        ("remember_fact", &fact),
        ("write_daily_note", &note),
    ])
}

struct SharedTest {
    test: Test,
    gate: Arc<Gate>,
    server: Server,
}

fn shared_test() -> SharedTest {
    let gate = Arc::new(Gate::default());
    let passed = Arc::clone(&gate);
    let server = Server::always(move |request| model(request, &passed));
    let test = Test::new().skill("calc", DOCUMENT).endpoint(&server);
    let test = test.folder("tmp").env("TMPDIR", "tmp").env("SESSIONS_PATH", "sessions");
    let test = test.env("MEMORY_PATH", "facts.md").env("NOTES_FOLDER_PATH", "notes");
    let test = test.env("SCRIPT_PYTHON", interpreter()).timeout(seconds(120.0));
    SharedTest { test, gate, server }
}

impl SharedTest {
    fn run(&self, line: &str) -> Outcome {
        self.test.next_run().shell(line).run()
    }

    /// Asserts that each question has its own answer and that all data was saved.
    #[track_caller]
    fn assert_nothing_is_lost(&self, run: &Outcome, runs: usize) {
        let mut answers: Vec<_> = run.stdout.lines().map(str::to_owned).collect();
        let mut expected: Vec<_> = (1..=runs).map(|n| format!("job {n}: {}", n * n)).collect();
        answers.sort();
        expected.sort();
        run.check(answers == expected, "the answers do not match the questions");
        self.facts_and_notes(runs);
        self.sessions(runs);
        self.log(runs);
        let left = fs::read_dir(self.test.path("tmp")).unwrap().count();
        assert_eq!(left, 0, "temporary folders are left");
        assert!(wait_until(seconds(5.0), || self.test.processes().is_empty()), "processes");
    }

    #[track_caller]
    fn facts_and_notes(&self, runs: usize) {
        let listed = self.test.next_run().args(["facts", "list", "--json"]).run().success();
        let listed = listed.stdout_json();
        let facts: Vec<_> = listed["facts"].as_array().unwrap().iter().collect();
        assert_eq!(facts.len(), runs);
        let notes: Vec<_> = fs::read_dir(self.test.path("notes")).unwrap().flatten().collect();
        // Two if the date changed during the test.
        assert!((1..=2).contains(&notes.len()), "{notes:?}");
        let notes: String =
            notes.iter().map(|note| fs::read_to_string(note.path()).unwrap()).collect();
        for number in 1..=runs {
            let fact = json!(format!("job {number} is done"));
            let is_kept = facts
                .iter()
                .any(|kept| kept.as_object().unwrap().values().any(|text| *text == fact));
            assert!(is_kept, "the fact of job {number} is lost: {listed}");
            let note = format!("did job {number}\n");
            assert_eq!(notes.matches(&note).count(), 1, "the note of job {number}: {notes}");
        }
    }

    #[track_caller]
    fn sessions(&self, runs: usize) {
        let listed = self.test.next_run().args(["sessions", "list", "--json"]).run().success();
        let listed = listed.stderr_is_empty().stdout_json();
        assert_eq!(listed["sessions"].as_array().unwrap().len(), runs, "{listed}");
        for number in 1..=runs {
            let text = self.test.read(&format!("sessions/job-{number}.jsonl"));
            let answer = format!("job {number}: {}", number * number);
            let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
            assert_eq!(last["add"]["text"], json!(answer), "{text}");
        }
    }

    /// Asserts that each line of the log is JSON and each run has its records from `start` to
    /// `result`.
    #[track_caller]
    fn log(&self, runs: usize) {
        let mut kinds: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in self.test.read("log").lines() {
            let record: Value =
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
            let text = |name: &str| record[name].as_str().unwrap().to_owned();
            kinds.entry(text("run")).or_default().push(text("type"));
        }
        assert_eq!(kinds.len(), runs, "runs in the log");
        for kinds in kinds.values() {
            assert_eq!(kinds.first().unwrap(), "start", "{kinds:?}");
            assert_eq!(kinds.last().unwrap(), "result", "{kinds:?}");
            let count = |kind: &str| kinds.iter().filter(|other| *other == kind).count();
            assert_eq!((count("start"), count("tool_result"), count("result")), (1, 3, 1));
        }
    }
}

#[test]
#[ignore = "long"]
fn parallel_runs_by_xargs() {
    let shared_test = shared_test();
    let line =
        format!("seq {RUNS} | xargs -P 64 -I N skills-runner -q --session job-N --log log 'job N'");
    let run = shared_test.run(&line).success().stderr_is_empty();
    shared_test.assert_nothing_is_lost(&run, RUNS);
    shared_test.gate.was_open();
    shared_test.server.finish();
}

/// GNU parallel keeps the order, records each status, and retries failed jobs.
#[test]
fn order_status_and_retries_by_gnu_parallel() {
    if !shell_line_works("parallel --version") {
        return;
    }
    let shared_test = shared_test();
    let line = format!(
        "seq {RUNS} | parallel --will-cite -k -j 64 --joblog jobs --retries 3 skills-runner -q --session job-{{}} --log log 'job {{}}'"
    );
    let run = shared_test.run(&line).success();
    shared_test.assert_nothing_is_lost(&run, RUNS);
    shared_test.gate.was_open();
    let first: Vec<_> = run.stdout.lines().take(3).collect();
    assert_eq!(first, ["job 1: 1", "job 2: 4", "job 3: 9"], "in order");
    let jobs = shared_test.test.read("jobs");
    let statuses = jobs.lines().skip(1).map(|line| line.split('\t').nth(6).unwrap());
    assert!(statuses.into_iter().all(|status| status == "0"), "{jobs}");
}

/// The second of two runs of a session exits with a temporary error and can be retried.
#[test]
fn second_run_of_a_session_exits_temporarily_then_continues() {
    let shared_test = shared_test();
    let start = || {
        let args = ["-q", "--session", "job-1", "--log", "log", "job 1"];
        shared_test.test.next_run().args(args).spawn()
    };
    // The gate is closed, so the first run waits for its model.
    let first = start();
    shared_test.server.wait_for_requests(1);
    let second = start().wait().status(75);
    second.stdout_is_empty().stderr_has("failed to open the session `job-1`: process");
    for _ in 1..ALIVE {
        let gate = Arc::clone(&shared_test.gate);
        std::thread::spawn(move || gate.pass(ALIVE));
    }
    first.wait().success().stdout("job 1: 1\n");
    // A run with a named session prints no notice of it: cron would send a mail each time.
    let third = start().wait().success().stdout("job 1: 1\n");
    third.stderr_is_empty();
    let session = shared_test.test.read("sessions/job-1.jsonl");
    assert_eq!(session.matches("\"text\":\"job 1\"").count(), 2, "{session}");
}
