//! The skills folders that a user named: missing ones are an error or a warning.

use crate::cli::args::CommandLine;
use crate::cli::setup::{Run, Startup};
use crate::config::ConfigNeeds;
use crate::error::{Error, ErrorKind, Result};
use crate::skills::Problem;
use crate::world::output::Output;

impl Run {
    /// A run of a command that uses skills: folders that were named are there.
    pub(super) fn with_skills(
        typed: CommandLine,
        start: &Startup,
        needs: ConfigNeeds,
        output: &mut Output,
    ) -> Result<Run> {
        let run = Run::new(typed, start, needs, output)?;
        for missing in run.missing_folders()? {
            output.warn(&missing.message);
        }
        Ok(run)
    }

    /// What is wrong with skills folders that were named and are missing. An error
    /// where each must be there, or where nothing is left to look into.
    pub(super) fn missing_folders(&self) -> Result<Vec<Problem>> {
        if !self.names_folders {
            return Ok(Vec::new());
        }
        let missing = self.skills.missing();
        let is_needed = !self.typed.skills.is_empty();
        let is_all = missing.len() == self.skills.folders().len();
        let Some(first) = missing.first().filter(|_| is_needed || is_all) else {
            return Ok(missing);
        };
        let causes: Vec<&str> = missing.iter().map(|it| it.message.as_str()).collect();
        let message = format!("failed to read the configuration: {}", causes.join("; "));
        let fix = first.fix.clone().unwrap_or_default();
        Err(Error::new(ErrorKind::Config, message).with_hint(fix))
    }

    /// Whether a fault of a folder was reported when the run began.
    pub(super) fn has_reported(&self, fault: &Problem) -> bool {
        self.names_folders && !fault.file.is_dir()
    }
}
