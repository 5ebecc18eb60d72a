//! Many runs at once, started by the engines that people have for that: on one
//! skills folder, one facts file, one notes folder, one sessions folder, one
//! log. Nothing is lost, nothing is mixed, nothing is left.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{
    Outcome, Reply, Request, Server, Test, interpreter, seconds, wait_until, works,
};

/// How many runs.
const RUNS: usize = 200;
/// How many of them have to be under way at one moment.
const ALIVE: usize = 50;
/// Ends a test in which they never are. Nothing else depends on it.
const LIMIT: Duration = Duration::from_secs(60);
const DOCUMENT: &str = "---\nname: calc\ndescription: Calculates.\n---\nUse Python.\n";

/// Lets everybody pass once so many wait.
#[derive(Default)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: usize,
    is_open: bool,
    /// So many never came: nobody waits any more, and the test fails.
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
        assert!(is_open, "{ALIVE} runs were never under way at once");
    }
}

/// The number in `job N`, the last that the user said.
fn job(request: &Request) -> usize {
    let messages = request.messages().iter().rev();
    let mut asked = messages.filter(|message| message["role"] == "user");
    let text = asked.next().unwrap()["content"].as_str().unwrap();
    text.strip_prefix("job ").unwrap().trim().parse().unwrap()
}

/// The model: a script, a fact and a note for each job, then what the script found.
fn model(request: &Request, gate: &Gate) -> Reply {
    let number = job(request);
    let messages = request.messages().iter().rev();
    let results = messages.take_while(|message| message["role"] == "tool");
    let results: Vec<_> = results.map(|result| result["content"].as_str().unwrap()).collect();
    if let [note, fact, script] = results[..] {
        let script: Value = serde_json::from_str(script).unwrap();
        assert!(fact.contains("remembered"), "{fact}");
        assert!(!note.contains("error"), "{note}");
        let found = script["stdout"].as_str().unwrap().trim();
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

struct Bench {
    test: Test,
    gate: Arc<Gate>,
    server: Server,
}

fn bench() -> Bench {
    let gate = Arc::new(Gate::default());
    let passed = Arc::clone(&gate);
    let server = Server::always(move |request| model(request, &passed));
    let test = Test::new().skill("calc", DOCUMENT).endpoint(&server);
    let test = test.folder("tmp").env("TMPDIR", "tmp").env("SESSIONS_PATH", "sessions");
    let test = test.env("MEMORY_PATH", "facts.md").env("NOTES_FOLDER_PATH", "notes");
    let test = test.env("SCRIPT_PYTHON", interpreter()).timeout(seconds(120.0));
    Bench { test, gate, server }
}

impl Bench {
    fn run(&self, line: &str) -> Outcome {
        self.test.again().shell(line).run()
    }

    /// Each question has its own answer, and everything was kept.
    #[track_caller]
    fn nothing_is_lost(&self, run: &Outcome, runs: usize) {
        let mut answers: Vec<_> = run.stdout.lines().map(str::to_owned).collect();
        let mut expected: Vec<_> = (1..=runs).map(|n| format!("job {n}: {}", n * n)).collect();
        answers.sort();
        expected.sort();
        run.demand(answers == expected, "the answers are not those to the questions");
        self.facts_and_notes(runs);
        self.sessions(runs);
        self.log(runs);
        let left = fs::read_dir(self.test.path("tmp")).unwrap().count();
        assert_eq!(left, 0, "temporary folders");
        assert!(wait_until(seconds(5.0), || self.test.processes().is_empty()), "processes");
    }

    #[track_caller]
    fn facts_and_notes(&self, runs: usize) {
        let listed = self.test.again().args(["facts", "list", "--json"]).run().success();
        let listed = listed.stdout_json();
        let facts: Vec<_> = listed["facts"].as_array().unwrap().iter().collect();
        assert_eq!(facts.len(), runs);
        let notes: Vec<_> = fs::read_dir(self.test.path("notes")).unwrap().flatten().collect();
        // Two if a day began meanwhile.
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
        let listed = self.test.again().args(["sessions", "list", "--json"]).run().success();
        let listed = listed.stderr_is_empty().stdout_json();
        assert_eq!(listed["sessions"].as_array().unwrap().len(), runs, "{listed}");
        for number in 1..=runs {
            let text = self.test.read(&format!("sessions/job-{number}.jsonl"));
            let answer = format!("job {number}: {}", number * number);
            let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
            assert_eq!(last["add"]["text"], json!(answer), "{text}");
        }
    }

    /// Every record is a line of JSON, and every run has its own from `start` to `result`.
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
fn by_xargs() {
    let bench = bench();
    let line =
        format!("seq {RUNS} | xargs -P 64 -I N skills-runner -q --session job-N --log log 'job N'");
    let run = bench.run(&line).success().stderr_is_empty();
    bench.nothing_is_lost(&run, RUNS);
    bench.gate.was_open();
    bench.server.finish();
}

/// GNU parallel keeps the order, tells each status, and tries again what failed.
#[test]
fn by_gnu_parallel() {
    if !works("parallel --version") {
        return;
    }
    let bench = bench();
    let line = format!(
        "seq {RUNS} | parallel --will-cite -k -j 64 --joblog jobs --retries 3 skills-runner -q --session job-{{}} --log log 'job {{}}'"
    );
    let run = bench.run(&line).success();
    bench.nothing_is_lost(&run, RUNS);
    bench.gate.was_open();
    let first: Vec<_> = run.stdout.lines().take(3).collect();
    assert_eq!(first, ["job 1: 1", "job 2: 4", "job 3: 9"], "in order");
    let jobs = bench.test.read("jobs");
    let statuses = jobs.lines().skip(1).map(|line| line.split('\t').nth(6).unwrap());
    assert!(statuses.into_iter().all(|status| status == "0"), "{jobs}");
}

/// Of two runs of one session one is asked to come again later, and then goes on.
#[test]
fn one_session_is_written_by_one_run_at_a_time() {
    let bench = bench();
    let start = || {
        let args = ["-q", "--session", "job-1", "--log", "log", "job 1"];
        bench.test.again().args(args).spawn()
    };
    // The gate is shut: the first one waits for its model.
    let first = start();
    bench.server.wait_for_requests(1);
    let second = start().wait().status(75);
    second.stdout_is_empty().stderr_has("failed to open the session `job-1`: process");
    for _ in 1..ALIVE {
        let gate = Arc::clone(&bench.gate);
        std::thread::spawn(move || gate.pass(ALIVE));
    }
    first.wait().success().stdout("job 1: 1\n");
    // Who named it need not be told: cron would send a mail each time.
    let third = start().wait().success().stdout("job 1: 1\n");
    third.stderr_is_empty();
    let session = bench.test.read("sessions/job-1.jsonl");
    assert_eq!(session.matches("\"text\":\"job 1\"").count(), 2, "{session}");
}
