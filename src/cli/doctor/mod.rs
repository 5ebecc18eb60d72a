//! `doctor`: checks everything from the settings to the skills, and says what to fix.
//!
//! Checks run in the order of their dependencies; those that depend on a failed one are skipped.
//! Requests to the endpoint are built like those of a conversation, so that the results hold for
//! conversations too.

use crate::cli::installed_model::{NoModel, find_installed_model};
use crate::cli::options::CommonOptions;
use crate::cli::run::{ExaminedRun, Run};
use crate::cli::startup::Startup;
use crate::config::EndpointWithoutModel;
use crate::ui::Output;
use base::error::{Error, ErrorKind, Result};
use base::event::Event;
use host::cancellation::StopReason;
use host::signal::Signal;

mod local;
mod remote;
mod report;
mod sandbox;
mod skills;
mod trial;

use report::{DoctorCheck, DoctorReport};

/// All checks, in their order.
const CHECKS: [&str; 11] = [
    "configuration",
    "address",
    "connection",
    "credentials",
    "model",
    "tool_call",
    "streaming",
    "context",
    "python",
    "sandbox",
    "skills",
];

/// The checks that need an endpoint.
fn endpoint_checks() -> &'static [&'static str] {
    &CHECKS[1..8]
}

/// Runs all checks. The status is 0, or that of the first failure. After a signal, the report
/// contains the checks that are complete.
pub(super) fn run(options: CommonOptions, startup: &Startup, output: &mut Output) -> Result<u8> {
    let is_json = options.is_json();
    let mut examined = Run::examine(options, startup, output);
    let mut report = DoctorReport::new(is_json, output);
    let result = examine(&mut examined, &mut report);
    // The report must state the exit status, even if a signal arrives late.
    let result = result.and_then(|()| match startup.interrupt.pending() {
        Some(signal) if signal != Signal::PIPE => Err(Error::interrupted(signal.0)),
        _ => Ok(()),
    });
    match result {
        Ok(()) => report.finish(),
        Err(error) => {
            report.finish_early(&CHECKS, &error)?;
            Err(error)
        }
    }
}

/// Finds the model if none is set. Returns the error of an endpoint that cannot be asked; another
/// error means that the run must stop.
fn find_model(
    examined: &mut ExaminedRun,
    report: &mut DoctorReport<'_>,
) -> Result<Option<(EndpointWithoutModel, Error)>> {
    let config = &mut examined.run.config;
    let Some(endpoint) = config.endpoint_without_model.clone() else {
        return Ok(None);
    };
    if !examined.problems.is_empty() {
        return Ok(None);
    }
    let mut sink = |event: Event<'_>| report.show_event(&event);
    match find_installed_model(endpoint.clone(), &examined.run.cancellation, &mut sink) {
        Ok(found) => config.endpoint = Some(found),
        Err(NoModel::Unset(problem)) => examined.problems.push(problem.fault),
        Err(NoModel::Failed(error)) if matches!(error.kind(), ErrorKind::Interrupted(_)) => {
            return Err(error);
        }
        Err(NoModel::Failed(error)) => return Ok(Some((endpoint, error))),
    }
    Ok(None)
}

/// Runs the checks in order. An error means that the run must stop.
fn examine(examined: &mut ExaminedRun, report: &mut DoctorReport<'_>) -> Result<()> {
    let unreachable = find_model(examined, report)?;
    report.add(local::configuration(examined));
    let run = &examined.run;
    match (&run.config.endpoint, unreachable) {
        (Some(endpoint), None) if examined.problems.is_empty() => {
            report.add(remote::address(endpoint));
            remote::examine(endpoint, run, report)?;
        }
        (_, Some((endpoint, error))) => {
            report.add(remote::address(endpoint.for_queries()));
            report.add(DoctorCheck::from_error("connection", &error));
            report.skip_rest(endpoint_checks(), "there is no connection");
        }
        _ => {
            report.skip_rest(endpoint_checks(), "not checked until the configuration is valid");
        }
    }
    let catalogue = run.skills.catalogue();
    let python = match run.cancellation.check() {
        Ok(()) => local::python(run, &catalogue)?,
        Err(StopReason::Deadline) => DoctorCheck::skipped("python", "the time limit is reached"),
        Err(stop) => return Err(stop.into()),
    };
    report.add(python);
    report.add(sandbox::sandbox(examined));
    report.add(skills::skills(run, &catalogue));
    Ok(())
}
