//! `doctor`: what works, from the settings to the skills, and what to fix.
//!
//! One check after the other, in the order in which things depend on each
//! other; what depends on a thing that failed is skipped. It asks the real
//! endpoint in the way in which questions are asked, so that what it says
//! holds for them too.

use crate::cli::args::CommandLine;
use crate::cli::setup::{Run, Startup};
use crate::error::{Error, Result};
use crate::world::cancellation::StopReason;
use crate::world::output::{Format, Output};
use crate::world::signal::Signal;

mod fold;
mod local;
mod misspelled;
mod remedy;
mod remote;
mod report;
mod sandbox;
mod skills;
mod trial;

use report::{DoctorCheck, DoctorReport};

/// Looks at everything. The status is 0 only if the main job works, else that
/// of the first failure. A signal ends it with what has been found so far.
pub(super) fn run(typed: CommandLine, start: &Startup, output: &mut Output) -> Result<u8> {
    let mut report = DoctorReport::new(typed.format != Format::Text);
    let made = examine(typed, start, &mut report, output);
    // The status of a report must be that of the program, however late a signal came.
    let made = made.and_then(|()| match start.interrupt.pending() {
        Some(signal) if signal != Signal::PIPE => Err(Error::interrupted(signal.0)),
        _ => Ok(()),
    });
    match made {
        Ok(()) => report.finish(output),
        Err(error) => {
            let last = ["python", "sandbox", "skills"];
            let names = ["configuration"].into_iter().chain(remote::CHECKS);
            report.break_off(names.chain(last), &error, output)?;
            Err(error)
        }
    }
}

/// Every check in its order. An error: the run is to stop.
fn examine(
    typed: CommandLine,
    start: &Startup,
    report: &mut DoctorReport,
    output: &mut Output,
) -> Result<()> {
    let examined = Run::examine(typed, start, output);
    report.add(local::configuration(&examined), output);
    let run = &examined.run;
    match &run.config.endpoint {
        Some(endpoint) if examined.problems.is_empty() => {
            let address = remote::address(endpoint, &examined.settings);
            report.add(address, output);
            remote::examine(endpoint, run, report, output)?;
        }
        _ => {
            report.skip(&remote::CHECKS, "the configuration comes first", output);
        }
    }
    let catalogue = run.skills.catalogue();
    let python = match run.cancellation.check() {
        Ok(()) => local::python(run, &catalogue)?,
        Err(StopReason::Deadline) => DoctorCheck::skipped("python", "the time is over"),
        Err(stop) => return Err(stop.into()),
    };
    report.add(python, output);
    report.add(sandbox::sandbox(&examined), output);
    report.add(skills::skills(run, &catalogue), output);
    Ok(())
}
