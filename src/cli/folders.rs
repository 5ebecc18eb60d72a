//! Checks that the skills folders that the user named exist.

use crate::cli::args::CommandLine;
use crate::cli::setup::{Run, Startup};
use crate::config::ConfigNeeds;
use crate::error::{Error, ErrorKind, Result};
use crate::skills::Problem;
use crate::world::output::Output;

impl Run {
    /// A run of a command that uses skills. Missing skills folders are an error or a warning.
    pub(super) fn with_skills(
        args: CommandLine,
        startup: &Startup,
        needs: ConfigNeeds,
        output: &mut Output,
    ) -> Result<Run> {
        let run = Run::new(args, startup, needs, output)?;
        for missing in run.missing_folders()? {
            output.warn(&missing.message);
        }
        Ok(run)
    }

    /// Problems for named skills folders that do not exist. An error if `--skills` named them,
    /// or if none of the folders exists.
    pub(super) fn missing_folders(&self) -> Result<Vec<Problem>> {
        if !self.has_named_folders {
            return Ok(Vec::new());
        }
        let missing = self.skills.folder_problems();
        let is_needed = !self.args.skills.is_empty();
        let is_all = missing.len() == self.skills.folders().len();
        let Some(first) = missing.first().filter(|_| is_needed || is_all) else {
            return Ok(missing);
        };
        let causes: Vec<&str> = missing.iter().map(|it| it.message.as_str()).collect();
        let message = format!("failed to read the configuration: {}", causes.join("; "));
        let fix = first.fix.clone().unwrap_or_default();
        Err(Error::new(ErrorKind::Config, message).with_hint(fix))
    }

    /// Whether `missing_folders` has reported this problem.
    pub(super) fn is_already_reported(&self, problem: &Problem) -> bool {
        self.has_named_folders && !problem.file.is_dir()
    }
}
