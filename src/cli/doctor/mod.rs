//! `doctor`: checks everything from the settings to the skills, and says what to fix.
//!
//! Checks run in the order of their dependencies; those that depend on a failed one are skipped.
//! Requests to the endpoint are built like those of a conversation, so that the results hold for
//! conversations too.

use crate::cli::options::CommonOptions;
use crate::cli::run::Run;
use crate::cli::startup::Startup;
use crate::error::{Error, Result};
use crate::world::cancellation::StopReason;
use crate::world::output::Output;
use crate::world::signal::Signal;

mod fold;
mod local;
mod misspelled;
mod remote;
mod report;
mod sandbox;
mod skills;
mod trial;

use report::{DoctorCheck, DoctorReport};

/// Runs all checks. The status is 0, or that of the first failure. After a signal, the report
/// contains the checks that are complete.
pub(super) fn run(options: CommonOptions, startup: &Startup, output: &mut Output) -> Result<u8> {
    let mut report = DoctorReport::new(options.is_json());
    let result = examine(options, startup, &mut report, output);
    // The report must state the exit status, even if a signal arrives late.
    let result = result.and_then(|()| match startup.interrupt.pending() {
        Some(signal) if signal != Signal::PIPE => Err(Error::interrupted(signal.0)),
        _ => Ok(()),
    });
    match result {
        Ok(()) => report.finish(output),
        Err(error) => {
            let last = ["python", "sandbox", "skills"];
            let names = ["configuration"].into_iter().chain(remote::CHECKS);
            report.finish_early(names.chain(last), &error, output)?;
            Err(error)
        }
    }
}

/// Runs the checks in order. An error means that the run must stop.
fn examine(
    options: CommonOptions,
    startup: &Startup,
    report: &mut DoctorReport,
    output: &mut Output,
) -> Result<()> {
    let examined = Run::examine(options, startup, output);
    report.add(local::configuration(&examined), output);
    let run = &examined.run;
    match &run.config.endpoint {
        Some(endpoint) if examined.problems.is_empty() => {
            let address = remote::address(endpoint, &examined.run.settings);
            report.add(address, output);
            remote::examine(endpoint, run, report, output)?;
        }
        _ => {
            report.skip(&remote::CHECKS, "not checked until the configuration is valid", output);
        }
    }
    let catalogue = run.skills.catalogue();
    let python = match run.cancellation.check() {
        Ok(()) => local::python(run, &catalogue)?,
        Err(StopReason::Deadline) => DoctorCheck::skipped("python", "the time limit is reached"),
        Err(stop) => return Err(stop.into()),
    };
    report.add(python, output);
    report.add(sandbox::sandbox(&examined), output);
    report.add(skills::skills(run, &catalogue), output);
    Ok(())
}
