//! `skills`: lists, shows, checks, creates, sets up and installs skills.

use crate::cli::options::{CommonOptions, SkillsCommand};
use crate::cli::run::Run;
use crate::cli::skills::install::staging::Staging;
use crate::cli::startup::Startup;
use crate::cli::values::usage;
use crate::config::ConfigNeeds;
use crate::ui::Output;
use base::error::Result;
use base::settings::SCRIPT_SANDBOX;

mod check;
pub(super) mod eval;
mod install;
mod json;
mod list;
mod new;
mod selection;
mod setup;
mod show;
mod skill_json;

/// Runs the subcommand, and returns the exit status.
pub(super) fn run(
    command: SkillsCommand,
    options: CommonOptions,
    startup: &Startup,
    output: &mut Output,
) -> Result<u8> {
    let is_json = options.is_json();
    let mut typed_settings = options.settings.iter();
    if matches!(command, SkillsCommand::Setup(_))
        && typed_settings.any(|(name, ..)| *name == SCRIPT_SANDBOX)
    {
        let text = "--sandbox does not work with `skills setup`, which needs the network";
        return Err(usage(text).with_hint(
            "run the setup without a sandbox; scripts still use its packages in the sandbox",
        ));
    }
    let run = Run::new(options, startup, ConfigNeeds::Skills, output)?;
    // These create the skills folder if it is missing.
    if !matches!(command, SkillsCommand::New(_) | SkillsCommand::Change(_)) {
        run.check_folders(output)?;
    }
    for folder in run.skills.folders() {
        if let Err(error) = Staging::recover(&folder.path, run.config.storage.state.as_deref()) {
            let folder = folder.path.display();
            output.warn(&format!("failed to finish an interrupted change of {folder}: {error}"));
        }
    }
    match command {
        SkillsCommand::List { query } => {
            list::run(&run, query.as_deref(), is_json, output).map(|()| 0)
        }
        SkillsCommand::Show(name) => show::run(&run, &name, is_json, output).map(|()| 0),
        SkillsCommand::Check(check) => check::run(&run, &check, is_json, output),
        SkillsCommand::New(name) => new::run(&run, &name, is_json, output).map(|()| 0),
        SkillsCommand::Setup(command) => setup::run(&run, &command, is_json, output),
        SkillsCommand::Change(command) => install::run(&run, &command, is_json, output),
    }
}
