//! Every command of the README and of `docs` is run, as its reader would run it.
//!
//! A block of the language `sh` is typed into a fresh machine, one command after
//! the other, and each must end with 0 (`session`); what the text promises of a
//! command beside that is a row of `promises`. Blocks of configuration are put
//! where the text says and used (`configuration`), sample outputs are compared
//! with real ones (`samples`). Links, options, commands, settings and make
//! targets that the texts name are there (`named`).
//!
//! A new command needs nothing here, unless it calls another program: that
//! needs a stand-in in `stand_ins/`, or, where it can do no harm, a row of
//! `reader::PROGRAMS`. A sample output needs a rule in `samples`.
//!
//! Not proven: that other people's programs take our commands. The stand-ins do
//! with them what the real ones do as far as it concerns this program, and fail
//! for an option or a key that they do not know. Endpoints of others are not
//! asked: a configuration that names one must be whole (`--dry-run`), and the
//! test's endpoint answers. `make` and `cargo install` build nothing here: a
//! target that a block shows must be one that `.ci/run` makes; `make demo` and
//! `make install` are run. Steps of a Dockerfile by other programs, GitHub's
//! actions and what only restricts a service are read and not played. A block
//! with `jq` or `parallel` is skipped, and told, where the machine lacks them.

mod configuration;
mod documents;
mod named;
mod promises;
mod reader;
mod samples;
mod session;

use std::thread;

use documents::{Block, Document, Faults, documents};
use reader::Reader;

use crate::harness::skipped;

/// A document is read from its beginning to its end, by a reader of its own.
/// That of operation goes on from the README, whose reader reads it, too.
#[test]
fn every_block_does_what_the_text_says() {
    let goes_on = |document: &Document| document.name == "docs/operation.md";
    let (after, mut documents): (Vec<_>, Vec<_>) = documents().into_iter().partition(goes_on);
    let readme = documents.remove(0);
    let documents: Vec<Vec<Document>> = std::iter::once([vec![readme], after].concat())
        .chain(documents.into_iter().map(|document| vec![document]))
        .collect();
    let readings: Vec<(Vec<&str>, Faults)> = thread::scope(|scope| {
        let threads: Vec<_> =
            documents.iter().map(|documents| scope.spawn(|| read(documents))).collect();
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

fn read(documents: &[Document]) -> (Vec<&'static str>, Faults) {
    let reader = Reader::new();
    let (mut met, mut faults) = (Vec::new(), Vec::new());
    let blocks: Vec<Block> = documents.iter().flat_map(Document::blocks).collect();
    configuration::put_all(&reader, &blocks);
    for block in blocks {
        if let Some(program) = reader.lacks(&block.text) {
            let place = &block.place;
            skipped(format_args!("{place}: there is no {program} on this machine"));
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
fn what_the_texts_name_is_there() {
    let mut faults = Faults::new();
    named::check_links(&mut faults);
    named::check_words(&mut faults);
    named::check_commands_of_conversations(&mut faults);
    report(&faults);
}

#[track_caller]
fn report(faults: &Faults) {
    assert!(faults.is_empty(), "the texts are wrong:\n{}", faults.join("\n\n"));
}
