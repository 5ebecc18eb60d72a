//! Every command in the README, CONTRIBUTING, SECURITY and `docs` is run as a
//! reader would run it.
//!
//! A block of the language `sh` is typed into a fresh machine, one command after
//! the other, and each must end with 0 (`session`); what the text promises about a
//! command beyond that is a row of `promises`. Blocks of configuration are written
//! to the file that the text names and used (`configuration`), sample outputs are
//! compared with real ones (`samples`). Links, options, commands, settings and make
//! targets that the texts name exist (`named`).
//!
//! A new command needs nothing here, unless it calls another program: that
//! needs a stand-in in `stand_ins/`, or, if it can do no harm, a row of
//! `reader::PROGRAMS`. A sample output needs a rule in `samples`.
//!
//! Not tested: that third-party programs accept our commands. The stand-ins
//! behave like the real programs as far as it concerns this one, and fail for an
//! option or a key that they do not know. Endpoints of others are not called: a
//! configuration that names one must be complete (`--dry-run`), and the test's
//! endpoint answers. `make` and `cargo install` build nothing here: a target in a
//! block must be one that `.ci/run` calls; `make demo` and `make install` are run.
//! Steps of a Dockerfile by other programs, GitHub's actions, and what only
//! restricts a service are parsed and not run. A block with `jq` or `parallel` is
//! skipped, with a message, if the machine lacks them.

mod configuration;
mod documents;
mod named;
mod promises;
mod reader;
mod samples;
mod session;

use std::thread;

use documents::{Document, Faults, documents};
use reader::Reader;

use crate::harness::report_skipped;

/// Each document is read from its start to its end, by a new reader.
#[test]
fn every_block_of_the_documents_works() {
    let documents = documents();
    let readings: Vec<(Vec<&str>, Faults)> = thread::scope(|scope| {
        let threads: Vec<_> =
            documents.iter().map(|document| scope.spawn(|| read(document))).collect();
        let ends = threads.into_iter().map(thread::ScopedJoinHandle::join);
        ends.map(|end| end.expect("a command did not end, see above")).collect()
    });
    let mut faults: Faults = readings.iter().flat_map(|(_, faults)| faults.clone()).collect();
    for promise in promises::PROMISES {
        if !readings.iter().any(|(met, _)| met.contains(&promise.command)) {
            faults.push(format!("promises.rs: no command has `{}` any more", promise.command));
        }
    }
    report(&faults);
}

fn read(document: &Document) -> (Vec<&'static str>, Faults) {
    let (mut met, mut faults) = (Vec::new(), Vec::new());
    let blocks = document.blocks();
    if blocks.is_empty() {
        return (met, faults);
    }
    let reader = Reader::new();
    configuration::put_all(&reader, &blocks);
    for block in blocks {
        if let Some(program) = reader.lacks(&block.text) {
            let place = &block.place;
            report_skipped(format_args!("{place}: there is no {program} on this machine"));
            met.extend(promises::of(&block.text).iter().map(|promise| promise.command));
            continue;
        }
        match block.language.as_str() {
            "sh" if block.text.starts_with("#!") => {
                configuration::script(&reader, &block, &mut faults);
            }
            "sh" => session::run(&reader, &block, &mut met, &mut faults),
            "text" => samples::check(&reader, &block, &mut faults),
            _ => configuration::check(&reader, &block, &mut faults),
        }
    }
    (met, faults)
}

#[test]
fn names_in_the_documents_exist() {
    let mut faults = Faults::new();
    named::check_links(&mut faults);
    named::check_words(&mut faults);
    named::check_commands_of_conversations(&mut faults);
    named::check_tables(&mut faults);
    report(&faults);
}

#[track_caller]
fn report(faults: &Faults) {
    assert!(faults.is_empty(), "the texts are wrong:\n{}", faults.join("\n\n"));
}
