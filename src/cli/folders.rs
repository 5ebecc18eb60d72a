//! Problems of the skills folders: those that commands end with, and those that they report.

use std::ffi::OsString;

use crate::cli::run::Run;
use crate::ui::Output;
use base::error::{Error, ErrorKind, Result};
use base::limits;
use base::settings;
use base::text::{self, shell_quoted};
use skills::FolderOrigin;
use skills::{Catalogue, FolderSummary, Problem, Rule, Severity, Skills};

/// The hint for a lock file that a newer version has written.
pub(super) const NEWER_LOCK_FILE_HINT: &str = "use that version of skills-runner, bring back an older lock file from version control, or name other skills folders with --skills";

impl Run {
    /// Returns an error if the skills are locked by a file that this version cannot read: a run
    /// without them would only seem to have worked.
    pub(super) fn check_lock_files(&self) -> Result<()> {
        let Some((path, cause)) = self.skills.newer_lock_file() else { return Ok(()) };
        let message =
            format!("SKILLS_LOCKED is on, and failed to read {}: {cause}", path.display());
        Err(Error::new(ErrorKind::Config, message).with_hint(NEWER_LOCK_FILE_HINT))
    }

    /// Warns about missing skills folders, or returns an error if one is required.
    pub(super) fn check_folders(&self, output: &mut Output) -> Result<()> {
        for missing in self.missing_folders()? {
            output.warn(&missing.message);
        }
        Ok(())
    }

    /// Problems for named skills folders that do not exist. An error if `--skills` named them,
    /// or if none of the folders exists.
    pub(super) fn missing_folders(&self) -> Result<Vec<Problem>> {
        if !self.has_named_folders {
            return Ok(Vec::new());
        }
        let missing = self.skills.folder_problems();
        let is_needed = !self.options.skills.is_empty();
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

    /// Reports the first problems of folders and skills. Without a usable skill it warns first
    /// that there are none, and what follows from that.
    pub(super) fn report_skills(
        &self,
        catalogue: &Catalogue,
        consequence: &str,
        output: &mut Output,
    ) {
        self.report_folders(catalogue, output);
        let is_usable = catalogue.usable().next().is_some();
        if !is_usable {
            // Shown with --quiet too: without skills the program has little use.
            let reason = self.no_skills_reason(catalogue);
            output.warn(&format!(
                "{reason}: {consequence} (--skills DIR names a folder, `skills-runner skills new NAME` creates a skill)"
            ));
        }
        // Without a usable skill, the first folder problem was the reason.
        let folders = catalogue.folder_errors.iter().skip(usize::from(!is_usable));
        let folders = folders.filter(|problem| !self.is_already_reported(problem));
        let offered = || catalogue.skills.iter().filter(|skill| skill.is_offered);
        let unusable = offered().filter_map(|skill| {
            let error = skill.error.as_ref()?;
            Some(format!("the skill `{}` cannot be used: {error}", skill.display_name()))
        });
        let faulty = offered().flat_map(|skill| {
            let problems = skill.problems.iter();
            problems.map(|problem| {
                format!("the skill `{}`: {}", skill.display_name(), problem.with_remedy())
            })
        });
        let of_folders = catalogue.problems.iter();
        let mut of_folders: Vec<&Problem> =
            of_folders.filter(|problem| problem.severity != Severity::Note).collect();
        of_folders.sort_by_key(|problem| problem.rule != Rule::SkillsBelow);
        let mut lines = folders
            .map(|problem| problem.message.clone())
            .chain(of_folders.into_iter().map(Problem::with_remedy))
            .chain(unusable)
            .chain(faulty);
        for line in lines.by_ref().take(limits::LISTED_NAMES) {
            // A path may contain a line break.
            output.note(&text::one_line(&line, limits::LINE_BYTES));
        }
        let more = lines.count();
        if more > 0 {
            output.note(&format!(
                "… and {} of skills (`{}` lists them)",
                text::counted(more, "more problem"),
                self.skills_command("check")
            ));
        }
    }

    /// Shows the skills folders with `-v`, and says which ones of the working folder are used
    /// although the user did not name them: they may have another author.
    fn report_folders(&self, catalogue: &Catalogue, output: &mut Output) {
        let mut of_working_folder = Vec::new();
        let named = self.settings.value(settings::SKILLS_FOLDER_PATH);
        let is_named_by_folder = named.is_some_and(|(_, source)| source.is_untrusted());
        for FolderSummary { folder, skills } in &catalogue.folders {
            let count = text::counted(*skills, "skill");
            output.detail(&format!("skills folder {}: {count}", folder.path.display()));
            let is_of_folder = folder.origin == FolderOrigin::WorkingFolder
                || folder.is_named() && is_named_by_folder && self.options.skills.is_empty();
            if is_of_folder && *skills > 0 {
                let path = self.short_path(&folder.path);
                of_working_folder.push(format!("{skills} in ./{}", path.display()));
            }
        }
        if !of_working_folder.is_empty() {
            let list = of_working_folder.join(", ");
            output.note(&format!("using the skills of this folder: {list}"));
        }
    }

    /// Whether a skill of this name is not used because only `./.env` sets the endpoint.
    pub(super) fn is_held_back(&self, name: &str) -> bool {
        let folders = self.config.held_back_skills.iter().map(|folder| folder.path.clone());
        Skills::new(folders).open(name).is_ok()
    }

    /// The reason why no skill is usable.
    pub(super) fn no_skills_reason(&self, catalogue: &Catalogue) -> String {
        let folders = match self.skills.folders() {
            [] if self.config.has_folder_endpoint => "this folder".into(),
            _ => shown_folders(&self.skills),
        };
        match catalogue.folder_errors.first() {
            Some(problem) => problem.message.clone(),
            None if catalogue.skills.is_empty() => format!("there are no skills in {folders}"),
            None => format!("there is no usable skill in {folders}"),
        }
    }

    /// A `skills` command with the `--skills` options of this run, for hints.
    pub(super) fn skills_command(&self, word: &str) -> String {
        skills_command(word, &self.options.skills)
    }
}

/// A `skills` command for these folders, quoted for a shell.
pub(super) fn skills_command(word: &str, folders: &[OsString]) -> String {
    let mut command = format!("skills-runner skills {word}");
    for folder in folders {
        command.push_str(" --skills ");
        command.push_str(&shell_quoted(folder.as_ref()));
    }
    command
}

/// The paths of the skills folders, in one line.
pub(super) fn shown_folders(skills: &Skills) -> String {
    if skills.folders().is_empty() {
        return "the default folders (./skills, ./.agents/skills, ~/.agents/skills, …)".into();
    }
    let folders = skills.folders().iter().map(|folder| folder.path.display().to_string());
    folders.collect::<Vec<_>>().join(", ")
}
