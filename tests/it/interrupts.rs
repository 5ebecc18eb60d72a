//! Ctrl+C, SIGTERM and `--timeout` end a request immediately in every phase: name lookup,
//! connection, handshake, first byte, rest of a stream, and delay before a retry.

use std::net::{TcpListener, UdpSocket};
use std::time::Duration;

use crate::harness::{CANARY, MODEL, Reply, Running, Server, Stopwatch, Test, seconds, wait_until};

/// The time within which a waiting program must end.
const END_LIMIT: Duration = Duration::from_millis(200);

/// A test whose program waits in a phase of a request, and how to detect that it has reached the
/// phase.
struct Phase {
    name: &'static str,
    test: Test,
    reached: Box<dyn Fn(&mut Running)>,
}

fn at(name: &'static str, test: Test, reached: impl Fn(&mut Running) + 'static) -> Phase {
    Phase { name, test: test.args(["-n", "-v", "-o", "jsonl", "hi"]), reached: Box::new(reached) }
}

fn to(url: &str) -> Test {
    Test::new().env("LLM_API_BASE_URL", url).env("LLM_MODEL_NAME", MODEL).env("LLM_API_KEY", CANARY)
}

/// Accepts a connection and keeps it open.
fn accept_and_keep(listener: TcpListener) -> impl Fn(&mut Running) {
    move |_| {
        let (stream, _) = listener.accept().expect("the program connects");
        std::mem::forget(stream);
        std::thread::sleep(seconds(0.05));
    }
}

fn phases() -> Vec<Phase> {
    let full = Server::with_full_backlog();
    let silent = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let deaf = silent.local_addr().expect("it is bound");
    let never = Server::start([Reply::empty().hang()]);
    let begun = Server::start([Reply::text("The beginning").hang()]);
    let busy = Server::start([Reply::error(503, "busy").header("Retry-After", "30")]);
    vec![
        at("connect", Test::new().endpoint(&full), move |_| {
            let _ = &full;
            std::thread::sleep(seconds(0.3));
        }),
        at("handshake", to(&format!("https://{deaf}/v1")), accept_and_keep(silent)),
        at("first byte", Test::new().endpoint(&never), move |_| {
            never.wait_for_requests(1);
        }),
        at("stream", Test::new().endpoint(&begun), move |running| {
            running.read_stdout_until("delta");
            let _ = &begun;
        }),
        at("retry pause", Test::new().endpoint(&busy), move |running| {
            running.read_stderr_until("try 2 of 3");
            let _ = &busy;
        }),
    ]
}

/// Sends a signal and returns how long the program took to end.
fn interrupt(phase: &Phase, signal: i32) -> Duration {
    let mut running = phase.test.spawn();
    (phase.reached)(&mut running);
    let start = Stopwatch::start();
    running.signal(signal);
    let outcome = running.wait().status(-signal);
    let elapsed = start.elapsed_for_limit(END_LIMIT);
    let records = outcome.stdout_json_lines();
    let last = records.last().expect("a result is always last");
    assert_eq!(
        (&last["type"], &last["exit_code"], &last["error"]["kind"]),
        (&"result".into(), &(128 + signal).into(), &"interrupted".into()),
        "{}",
        phase.name
    );
    assert!(phase.test.processes().is_empty(), "{}: left behind", phase.name);
    elapsed
}

/// Makes up to three attempts, since parallel tests may occupy all processors for a moment. A real
/// error fails every time.
fn assert_in_three_attempts(mut late: impl FnMut() -> Vec<String>) {
    let mut found = late();
    for _ in 0..2 {
        if found.is_empty() {
            return;
        }
        found = late();
    }
    assert!(found.is_empty(), "late: {found:?}");
}

#[test]
fn signals_end_every_phase_of_a_request() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        assert_in_three_attempts(|| {
            let took = phases().into_iter().map(|phase| (interrupt(&phase, signal), phase.name));
            took.filter(|(elapsed, _)| *elapsed >= END_LIMIT)
                .map(|(elapsed, name)| format!("{name}: {elapsed:?}"))
                .collect()
        });
    }
}

#[test]
fn timeout_ends_every_phase_of_a_request() {
    let limit = seconds(0.6);
    assert_in_three_attempts(|| {
        let took = phases().into_iter().map(|phase| (outlast(&phase, limit), phase.name));
        took.filter(|(elapsed, _)| *elapsed >= limit + END_LIMIT * 2)
            .map(|(elapsed, name)| format!("{name}: {elapsed:?}"))
            .collect()
    });
}

/// Returns how long the program runs until the timeout ends it.
fn outlast(phase: &Phase, limit: Duration) -> Duration {
    let test = phase.test.next_run();
    let test = test.args(["-n", "-v", "-o", "jsonl", "--timeout", "0.6", "hi"]);
    let start = Stopwatch::start();
    let mut running = test.spawn();
    if phase.name == "retry pause" {
        // A delay that would exceed the deadline is not started.
        running.wait().status(75).stderr_has("retry after 30 s");
        return start.elapsed_for_limit(limit);
    }
    (phase.reached)(&mut running);
    let outcome = running.wait().status(3);
    let elapsed = start.elapsed();
    outcome.stderr_has("failed to finish: the time limit of the run (--timeout) is reached");
    assert!(elapsed >= limit, "{}: {elapsed:?}", phase.name);
    start.adjusted_for_limit(elapsed, limit + END_LIMIT * 2)
}

/// The lookup needs a name server that never answers: one in a separate mount namespace.
#[test]
fn unanswered_lookup_is_ended() {
    // One name server per signal, so that late packets of the first lookup are not
    // attributed to the second.
    for (host, signal) in
        [("127.0.0.77", libc::SIGINT), ("127.0.0.78", libc::SIGTERM), ("127.0.0.79", libc::SIGKILL)]
    {
        let Ok(nameserver) = UdpSocket::bind((host, 53)) else {
            eprintln!("skipped: no name server may be played on this machine");
            return;
        };
        let options = "options timeout:30 attempts:1";
        let test = to("https://nobody.example/v1")
            .file("resolv.conf", format!("nameserver {host}\n{options}\n"))
            .file("nsswitch.conf", "hosts: dns\n");
        let view = "mount --bind resolv.conf /etc/resolv.conf && \
                    { [ ! -e /etc/nsswitch.conf ] || mount --bind nsswitch.conf /etc/nsswitch.conf; }";
        let probe = format!("unshare -m sh -c '{view}'");
        if !test.next_run().shell(&probe).run().status_is(0) {
            eprintln!("skipped: no file system view of one's own on this machine");
            return;
        }
        let line = format!("exec unshare -m sh -c '{view} && exec skills-runner -n -o jsonl hi'");
        let phase = Phase {
            name: "name resolution",
            test: test.shell(&line),
            reached: Box::new(move |_| {
                let mut packet = [0u8; 512];
                nameserver.recv_from(&mut packet).expect("a question comes");
            }),
        };
        if signal == libc::SIGKILL {
            let mut running = phase.test.spawn();
            (phase.reached)(&mut running);
            running.kill9();
            running.wait().status(-signal);
            let is_gone = || phase.test.processes().is_empty();
            assert!(wait_until(seconds(10.0), is_gone), "the lookup continues");
            continue;
        }
        let elapsed = interrupt(&phase, signal);
        assert!(elapsed < END_LIMIT, "{elapsed:?}");
    }
}
