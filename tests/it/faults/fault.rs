//! A row of the tables: what the server does, and what is expected of the program.

use std::any::Any;
use std::fmt;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::harness::{Outcome, Reply, Request, Server, Test, seconds};

/// Memory limit of a run. A limit set in the kernel finds peaks that polling `/proc` misses.
const MEMORY_KIB: u64 = 32 << 10;

/// Added to every deadline for a busy machine. A program that hangs takes longer; other tests check
/// the limits to a tenth of a second.
const BUSY: Duration = Duration::from_secs(12);
/// The kernel counts reserved memory, and a growing text reserves twice its size.
const DATA_BYTES: u64 = 48 << 20;

/// Signs of a panic, which no line on stderr may contain.
const SIGNS_OF_A_PANIC: [&str; 5] =
    ["panicked", "backtrace", "overflowed its stack", "called `", "src/"];

/// How the answer is requested.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shape {
    Streamed,
    Whole,
}

/// One fault.
pub(super) struct Fault {
    pub name: &'static str,
    behavior: Behavior,
    args: Vec<&'static str>,
    prompt_bytes: usize,
    https: bool,
    streamed: Expected,
    whole: Expected,
}

type Answer = Arc<dyn Fn(usize, &Request) -> Reply + Send + Sync>;

enum Behavior {
    Answers(Answer),
    Unsolicited(Reply),
    Refuses,
    FullBacklog,
}

/// What is expected of one run.
#[derive(Clone)]
pub(super) struct Expected {
    /// Accepted statuses, usually one.
    statuses: Vec<i32>,
    says: Vec<String>,
    lacks: Vec<String>,
    stdout: Stdout,
    /// Number of requests, or of connections if none is read.
    tries: RangeInclusive<usize>,
    names_address: bool,
    pub within: Duration,
}

/// Expected standard output.
#[derive(Clone, Debug)]
enum Stdout {
    Exactly(String),
    /// Any number of this character, and an optional line feed.
    Only(char),
    Blank,
}

/// A fault that sends this reply to every request.
pub(super) fn answers(name: &'static str, reply: Reply) -> Fault {
    in_turn(name, move |_, _| reply.clone())
}

/// A fault that computes the reply from the request and its number, starting at 1.
pub(super) fn in_turn(
    name: &'static str,
    answer: impl Fn(usize, &Request) -> Reply + Send + Sync + 'static,
) -> Fault {
    Fault::new(name, Behavior::Answers(Arc::new(answer)))
}

/// A fault that sends this reply on every connection before a request is read.
pub(super) fn unsolicited(name: &'static str, reply: Reply) -> Fault {
    Fault::new(name, Behavior::Unsolicited(reply))
}

/// Connections are neither accepted nor refused.
pub(super) fn full_backlog(name: &'static str) -> Fault {
    Fault::new(name, Behavior::FullBacklog)
}

/// Connections are refused.
pub(super) fn refusing(name: &'static str) -> Fault {
    Fault::new(name, Behavior::Refuses)
}

impl Fault {
    fn new(name: &'static str, behavior: Behavior) -> Fault {
        let expected = Expected {
            statuses: Vec::new(),
            says: Vec::new(),
            lacks: Vec::new(),
            stdout: Stdout::Exactly(String::new()),
            tries: 1..=1,
            names_address: true,
            within: seconds(5.0),
        };
        Fault {
            name,
            behavior,
            args: Vec::new(),
            prompt_bytes: 0,
            https: false,
            streamed: expected.clone(),
            whole: expected,
        }
    }

    // Expectations. One of these comes first, and the others change it.

    /// Permanent failure at the first attempt: status 1.
    pub(super) fn fails_permanently(self) -> Fault {
        self.status(1)
    }

    /// Three attempts, then status 75.
    pub(super) fn fails_temporarily(self) -> Fault {
        self.status(75).attempts(3..=3).within(8.0)
    }

    /// One attempt, since the server may still be working: status 75.
    pub(super) fn stays_silent(self, limit: &str) -> Fault {
        self.status(75).says(&format!("no data arrived for {limit}")).within(7.5)
    }

    /// Cut off after this text, which is on stdout: status 4.
    pub(super) fn cut_off_after(self, text: &str) -> Fault {
        self.status(4).stdout(&format!("{text}\n")).each(|expected| expected.names_address = false)
    }

    /// Not a fault, or one that the program corrects: status 0.
    pub(super) fn answers_with(self, text: &str) -> Fault {
        self.status(0).stdout(&format!("{text}\n"))
    }

    /// Stopped by a limit of the run: status 3.
    pub(super) fn reaches_a_limit(self) -> Fault {
        self.status(3).within(3.5).each(|expected| expected.names_address = false)
    }

    /// Expects this exit status.
    pub(super) fn status(self, status: i32) -> Fault {
        self.each(|expected| expected.statuses = vec![status])
    }

    /// Accepts this exit status as well.
    pub(super) fn or_status(self, status: i32) -> Fault {
        self.each(|expected| expected.statuses.push(status))
    }

    /// Expects this many requests.
    pub(super) fn attempts(self, tries: RangeInclusive<usize>) -> Fault {
        self.each(|expected| expected.tries = tries.clone())
    }

    /// If the answer is empty, the model is asked once more.
    pub(super) fn asks_again(self) -> Fault {
        self.each(|expected| {
            expected.tries = *expected.tries.start()..=expected.tries.end() + 1;
        })
    }

    /// If the stream is refused, one unstreamed request may follow.
    pub(super) fn may_retry_unstreamed(self) -> Fault {
        self.when_streamed(|expected| {
            expected.tries = *expected.tries.start()..=expected.tries.end() + 1;
        })
    }

    /// Standard error contains these words.
    pub(super) fn says(self, words: &str) -> Fault {
        self.each(|expected| expected.says.push(words.to_owned()))
    }

    /// Standard error does not contain these words.
    pub(super) fn lacks(self, words: &str) -> Fault {
        self.each(|expected| expected.lacks.push(words.to_owned()))
    }

    /// Standard output is this.
    pub(super) fn stdout(self, text: &str) -> Fault {
        self.each(|expected| expected.stdout = Stdout::Exactly(text.to_owned()))
    }

    /// Standard output is the received part of a text of this character, or empty.
    pub(super) fn stdout_only(self, character: char) -> Fault {
        self.each(|expected| expected.stdout = Stdout::Only(character))
    }

    /// Standard output is blank: line feeds after an empty answer are allowed.
    pub(super) fn stdout_blank(self) -> Fault {
        self.each(|expected| expected.stdout = Stdout::Blank)
    }

    /// The message need not contain the address.
    pub(super) fn need_not_name_address(self) -> Fault {
        self.each(|expected| expected.names_address = false)
    }

    /// The deadline, in seconds.
    pub(super) fn within(self, limit: f64) -> Fault {
        self.each(|expected| expected.within = seconds(limit))
    }

    /// Changes the expectation for streamed runs.
    pub(super) fn when_streamed(mut self, change: impl FnOnce(&mut Expected)) -> Fault {
        change(&mut self.streamed);
        self
    }

    /// Another fault's expectation where a whole answer was asked for.
    pub(super) fn but_whole(mut self, other: impl FnOnce(Fault) -> Fault) -> Fault {
        self.whole = other(refusing("another")).whole;
        self
    }

    fn each(mut self, change: impl Fn(&mut Expected)) -> Fault {
        change(&mut self.streamed);
        change(&mut self.whole);
        self
    }

    pub(super) fn expected(&self, shape: Shape) -> &Expected {
        match shape {
            Shape::Streamed => &self.streamed,
            Shape::Whole => &self.whole,
        }
    }

    // How it is run.

    /// More arguments.
    pub(super) fn args(mut self, args: impl IntoIterator<Item = &'static str>) -> Fault {
        self.args.extend(args);
        self
    }

    /// A longer question.
    pub(super) fn prompt_bytes(mut self, bytes: usize) -> Fault {
        self.prompt_bytes = bytes;
        self
    }

    /// Configures the address as https.
    pub(super) fn https(mut self) -> Fault {
        self.https = true;
        self
    }

    /// Runs the program and compares. On a busy machine a limit of the run may be over
    /// before the fault was met: such a run shows nothing, and is repeated.
    pub(super) fn run(&self, shape: Shape) -> Run {
        let runs = (0..5).map(|_| self.run_once(shape));
        let mut runs = runs.skip_while(|run| run.is_too_early);
        runs.next().unwrap_or_else(|| self.run_once(shape))
    }

    fn run_once(&self, shape: Shape) -> Run {
        let mut run = Run {
            name: format!("{} ({shape:?})", self.name),
            complaints: Vec::new(),
            peak_memory_kib: 0,
            elapsed: Duration::ZERO,
            is_too_early: false,
            seen: String::new(),
        };
        // What the harness demands of every run is one more complaint.
        let caught = catch_unwind(AssertUnwindSafe(|| self.run_and_compare(shape, &mut run)));
        if let Err(panic) = caught {
            run.complaints.push(panic_text(&*panic));
        }
        run
    }

    fn run_and_compare(&self, shape: Shape, run: &mut Run) {
        let expected = self.expected(shape);
        let server = self.server();
        let mut test = Test::new()
            .skill("calculator", "---\nname: calculator\ndescription: It adds.\n---\nAdd.\n")
            .endpoint(&server)
            .env("LLM_TIMEOUT_SECONDS", "1")
            .memory_limit(DATA_BYTES)
            .timeout(expected.within + BUSY + seconds(3.0))
            .args(["--quiet"])
            .args(&self.args);
        if shape == Shape::Whole {
            test = test.args(["--no-stream"]);
        }
        // Such a server answers everything so, also what is asked before the question.
        if !matches!(self.behavior, Behavior::Answers(_)) {
            test = test.env("LLM_TOOLS", "native").env("LLM_CONTEXT_WINDOW", "2000000");
        }
        if self.https {
            test = test.env("LLM_API_BASE_URL", server.url().replace("http:", "https:"));
        }
        test = match self.prompt_bytes {
            0 => test.args(["what is 2 + 2?"]),
            bytes => test.args(["-"]).stdin("x".repeat(bytes)),
        };
        let outcome = test.run();
        run.peak_memory_kib = outcome.peak_memory_kib;
        run.elapsed = outcome.elapsed;
        let tries = match self.behavior {
            Behavior::Answers(_) => Some(server.requests().len()),
            Behavior::Unsolicited(_) => Some(server.connections()),
            Behavior::Refuses | Behavior::FullBacklog => None,
        };
        run.is_too_early = outcome.status == 3 && tries == Some(0);
        run.seen = format!(
            "status {}, {} tries, {:.2} s, {} KiB\n    stdout {}\n    stderr {}",
            outcome.status,
            tries.unwrap_or_default(),
            outcome.elapsed.as_secs_f64(),
            run.peak_memory_kib,
            short(&outcome.stdout),
            short(&outcome.stderr),
        );
        run.complaints = expected.complaints(&outcome, tries, server.port());
        server.finish();
    }

    fn server(&self) -> Server {
        match &self.behavior {
            Behavior::Answers(answer) => {
                let (answer, number) = (Arc::clone(answer), AtomicUsize::new(0));
                Server::always(move |request| {
                    answer(number.fetch_add(1, Ordering::Relaxed) + 1, request)
                })
            }
            Behavior::Unsolicited(reply) => Server::unsolicited(reply.clone()),
            Behavior::Refuses => Server::refusing_connections(),
            Behavior::FullBacklog => Server::with_full_backlog(),
        }
    }
}

impl Expected {
    fn complaints(&self, outcome: &Outcome, tries: Option<usize>, port: u16) -> Vec<String> {
        let mut complaints = Vec::new();
        let mut demand = |met: bool, otherwise: String| {
            if !met {
                complaints.push(otherwise);
            }
        };
        let (stdout, stderr) = (&outcome.stdout, &outcome.stderr);
        let statuses = &self.statuses;
        demand(statuses.contains(&outcome.status), format!("the status is not {statuses:?}"));
        demand(self.stdout.is(stdout), format!("stdout is not {}", self.stdout));
        if let Some(tries) = tries {
            demand(self.tries.contains(&tries), format!("not {:?} tries", self.tries));
        }
        demand(outcome.elapsed <= self.within + BUSY, format!("later than {:?}", self.within));
        demand(outcome.peak_memory_kib < MEMORY_KIB, format!("more memory than {MEMORY_KIB} KiB"));
        for words in &self.says {
            demand(stderr.contains(words), format!("stderr lacks {words:?}"));
        }
        for words in self.lacks.iter().map(String::as_str).chain(SIGNS_OF_A_PANIC) {
            demand(!stderr.contains(words), format!("stderr has {words:?}"));
        }
        let raw = |c: char| c.is_control() && c != '\n';
        demand(!stderr.contains(raw), "stderr has raw control characters".into());
        self.check_error_lines(outcome, port, &mut demand);
        complaints
    }

    /// Checks that stderr has one error and at most one hint, each a readable line; neither if the
    /// answer is complete.
    fn check_error_lines(
        &self,
        outcome: &Outcome,
        port: u16,
        demand: &mut dyn FnMut(bool, String),
    ) {
        let lines: Vec<&str> = outcome.stderr.lines().collect();
        let errors =
            lines.iter().filter(|line| line.starts_with("skills-runner: failed to ")).count();
        let hints = lines.iter().filter(|line| line.starts_with("hint: ")).count();
        let failed = usize::from(outcome.status != 0);
        demand(errors == failed, format!("{errors} lines with `skills-runner: failed to …`"));
        demand(hints <= failed, format!("{hints} hints"));
        demand(errors + hints == lines.len(), "stderr has other lines".into());
        let longest = lines.iter().map(|line| line.len()).max().unwrap_or_default();
        demand(longest <= 1500, format!("a line of {longest} bytes"));
        if outcome.status != 0 && self.names_address {
            let address = format!("127.0.0.1:{port}");
            demand(
                outcome.stderr.contains(&address),
                format!("stderr lacks the address {address}"),
            );
        }
    }
}

impl Expected {
    /// Expects the answer after this many attempts.
    pub(super) fn expect_answer(&mut self, text: &str, tries: usize) {
        self.statuses = vec![0];
        self.stdout = Stdout::Exactly(format!("{text}\n"));
        self.tries = tries..=tries;
    }
}

impl Stdout {
    fn is(&self, stdout: &str) -> bool {
        match self {
            Stdout::Exactly(text) => stdout == text,
            Stdout::Only(character) => {
                let stdout = stdout.strip_suffix('\n').unwrap_or(stdout);
                stdout.chars().all(|c| c == *character)
            }
            Stdout::Blank => stdout.trim().is_empty(),
        }
    }
}

impl fmt::Display for Stdout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stdout::Exactly(text) => f.write_str(&short(text)),
            Stdout::Only(character) => write!(f, "only {character:?}"),
            Stdout::Blank => f.write_str("blank"),
        }
    }
}

/// One run of a fault.
pub(super) struct Run {
    pub name: String,
    /// Deviations from the expectations; empty if none.
    pub complaints: Vec<String>,
    pub peak_memory_kib: u64,
    pub elapsed: Duration,
    is_too_early: bool,
    seen: String,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "* {}: {}", self.name, self.complaints.join("; "))?;
        writeln!(f, "    {}", self.seen)
    }
}

/// The beginning of a text, escaped.
fn short(text: &str) -> String {
    const LONGEST: usize = 500;
    let beginning: String = text.chars().take(LONGEST).collect();
    match text.len() - beginning.len() {
        0 => format!("{beginning:?}"),
        left => format!("{beginning:?} and {left} bytes more"),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or(panic.downcast_ref::<&str>().copied());
    let text = text.unwrap_or("a panic without a message");
    text.chars().take(3000).collect()
}
