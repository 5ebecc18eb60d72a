//! Every way in which an endpoint can fail, as bytes: each ends by its
//! deadline, with one clear line, the right status and little memory, both
//! when a stream was asked for and when a whole answer was.
//!
//! A fault is a row of one of the tables below; `fault` says how it is run and
//! what holds for all of them. Expectations follow from the documents; where
//! these leave something open, the row says what was chosen and why.
//!
//! `FAULT=words cargo test faults -- --nocapture` runs only the rows whose
//! names contain these words.

mod bodies;
mod connections;
mod fault;
mod found;
mod heads;
mod meanings;
mod statuses;
mod streams;

use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use fault::{Fault, Run, Shape};

/// Most rows wait, for a limit or a pause; few compute.
const THREADS: usize = 24;

/// R-API-3 to R-API-6, and the figure of 60 faults: nothing that an endpoint
/// does hangs the program, makes it panic or grow, or passes for an answer.
#[test]
fn no_fault_of_an_endpoint_hangs_panics_grows_or_passes_for_an_answer() {
    let start = Instant::now();
    let wanted = std::env::var("FAULT").unwrap_or_default();
    let faults: Vec<Fault> = [
        connections::table(),
        heads::table(),
        statuses::table(),
        bodies::table(),
        streams::table(),
        found::table(),
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
    // From the end: those that may take longest begin first.
    jobs.sort_by_key(|(fault, shape)| fault.expected(*shape).within);
    let (jobs, runs) = (Mutex::new(jobs), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                give_way();
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

/// Other tests have limits of a second, and run at the same time. What a thread
/// starts, threads and programs, gives way as it does.
fn give_way() {
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
        panic!("no fault has such a name");
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
    assert!(failed.is_empty(), "{} runs went wrong:\n{}", failed.len(), complaints.join("\n"));
}
