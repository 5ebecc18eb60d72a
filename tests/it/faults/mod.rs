//! Fault injection: every way in which an endpoint can fail, as bytes. Each run ends before its
//! deadline, with one clear error, the right exit status and little memory, with and without
//! streaming.
//!
//! A fault is a row of one of the tables below. `fault` runs it and makes the checks common to all.
//! If the right behaviour is a matter of choice, the row says what was chosen and why.
//!
//! `FAULT=words cargo test faults -- --ignored` runs only the rows whose names contain these
//! words.

mod bodies;
mod connections;
mod fault;
mod heads;
mod meanings;
mod regressions;
mod statuses;
mod streams;

use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use fault::{Fault, Run, Shape};

/// Many threads, since most rows only wait.
const THREADS: usize = 24;

/// No fault of an endpoint hangs the program, makes it panic, uses much memory, or counts as an
/// answer.
#[test]
#[ignore = "long"]
fn endpoint_faults_are_reported_in_time_and_memory() {
    let start = Instant::now();
    let wanted = std::env::var("FAULT").unwrap_or_default();
    let faults: Vec<Fault> = [
        connections::table(),
        heads::table(),
        statuses::table(),
        bodies::table(),
        streams::table(),
        regressions::table(),
        meanings::table(),
    ]
    .into_iter()
    .flatten()
    .collect();
    let count = faults.len();
    assert!(count >= 60, "only {count} faults are left");
    let mut names: Vec<&str> = faults.iter().map(|fault| fault.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "two faults have the same name");

    let mut jobs: Vec<(&Fault, Shape)> = faults
        .iter()
        .filter(|fault| fault.name.contains(&wanted))
        .flat_map(|fault| [(fault, Shape::Streamed), (fault, Shape::Whole)])
        .collect();
    // Taken from the end: the longest jobs start first.
    jobs.sort_by_key(|(fault, shape)| fault.expected(*shape).within);
    let (jobs, runs) = (Mutex::new(jobs), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                lower_priority();
                loop {
                    let job = jobs.lock().expect("no thread panics").pop();
                    let Some((fault, shape)) = job else { break };
                    let run = fault.run(shape);
                    runs.lock().expect("no thread panics").push(run);
                }
            });
        }
    });
    let runs = runs.into_inner().expect("no thread panics");
    report(count, &runs, start);
}

/// Lowers the priority of this thread and of the programs that it starts, since other tests run
/// at the same time and have limits of a second.
fn lower_priority() {
    const NICENESS: libc::c_int = 5;
    // SAFETY: plain numbers; 0 is the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS) };
}

fn report(count: usize, runs: &[Run], start: Instant) {
    let mut failed: Vec<&Run> = runs.iter().filter(|run| !run.complaints.is_empty()).collect();
    failed.sort_by(|a, b| a.name.cmp(&b.name));
    let largest = runs.iter().max_by_key(|run| run.peak_memory_kib);
    let slowest = runs.iter().max_by_key(|run| run.elapsed);
    let (Some(largest), Some(slowest)) = (largest, slowest) else {
        panic!("no fault has a name that contains the words in FAULT");
    };
    eprintln!(
        "{count} faults, {} runs, {} failed, {:.1} s; most memory {} KiB ({}), longest {:.1} s ({})",
        runs.len(),
        failed.len(),
        start.elapsed().as_secs_f64(),
        largest.peak_memory_kib,
        largest.name,
        slowest.elapsed.as_secs_f64(),
        slowest.name,
    );
    let complaints: Vec<String> = failed.iter().map(ToString::to_string).collect();
    assert!(failed.is_empty(), "{} runs failed:\n{}", failed.len(), complaints.join("\n"));
}
