//! Skills that the user invokes: `--skill NAME`, and `/NAME arguments` as the prompt or as a line
//! of a conversation.

use crate::cli::run::Run;
use crate::cli::values::usage;
use crate::ui::Output;
use agent::tools::Tools;
use base::error::{Error, ErrorKind, Result};
use base::limits;
use base::message::InvokedSkill;
use base::settings::TRUST_FIX;
use base::text;
use skills::{Catalogue, SkillSummary};

/// A command of a conversation, which has precedence over a skill of the same name.
pub(super) struct ReservedName {
    pub name: &'static str,
    pub takes_argument: bool,
}

/// The name after the slash and its arguments.
#[derive(Clone, Copy)]
pub(super) struct SlashCommand<'t> {
    /// The name: everything up to white space.
    pub name: &'t str,
    /// The arguments, without blanks around them.
    pub arguments: &'t str,
}

/// The meaning of a text that starts with a slash.
pub(super) enum SlashMeaning {
    /// A skill that the user may invoke.
    Skill(InvokedSkill),
    /// A skill that cannot be invoked, with the cause.
    Unusable(String),
    /// A name similar to a known one: what the user probably meant.
    Similar(String),
    /// No known name.
    Unknown,
}

impl<'t> SlashCommand<'t> {
    /// Parses a text; `None`: it does not start with a slash.
    pub(super) fn parse(text: &'t str) -> Option<SlashCommand<'t>> {
        let command = text.strip_prefix('/')?;
        let (name, arguments) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        Some(SlashCommand { name, arguments: arguments.trim_start() })
    }

    /// Finds the skill of this name, and reads its document.
    pub(super) fn resolve(&self, run: &Run, reserved: &[ReservedName]) -> SlashMeaning {
        let catalogue = run.skills.catalogue();
        let has_name = |skill: &&SkillSummary| {
            skill.name == self.name || skill.alias.as_deref() == Some(self.name)
        };
        let unusable = match (catalogue.find(self.name), catalogue.skills.iter().find(has_name)) {
            (Ok(_), _) => None,
            (Err(error), Some(skill)) => Some(skill.error.clone().unwrap_or(error)),
            // More than are listed.
            (Err(_), None) if run.skills.open_any(self.name).is_ok() => None,
            (Err(_), None) if run.is_held_back(self.name) => Some(HELD_BACK.into()),
            (Err(_), None) => {
                let similar = self.similar(&catalogue, reserved);
                return similar.map_or(SlashMeaning::Unknown, SlashMeaning::Similar);
            }
        };
        let invoked = match unusable {
            Some(cause) => Err(cause),
            None => Tools::builtin(run.tool_context()).invoke(self.name, self.arguments),
        };
        invoked.map_or_else(SlashMeaning::Unusable, SlashMeaning::Skill)
    }

    /// The line that the user probably meant, if a reserved name or a skill has a similar name.
    fn similar(&self, catalogue: &Catalogue, reserved: &[ReservedName]) -> Option<String> {
        let names = || invocable_names(catalogue);
        // `/skill pdf report.pdf`: the user may take /SKILL in the help literally.
        let arguments = self.arguments;
        let (first, remainder) =
            arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
        let is_placeholder = ["skill", "skills"].contains(&self.name.to_lowercase().as_str());
        let (name, rest) = match names().find(|known| is_placeholder && *known == first) {
            Some(first) => (first, remainder.trim_start()),
            None => (self.name, arguments),
        };
        // A line with more words is a question, unless the name is very similar. A path such as
        // /etc/hosts is a question, too.
        let is_like = |known: &&str| {
            let (typed, length) = (name.chars().count(), known.chars().count());
            let begins = known.to_lowercase().starts_with(&name.to_lowercase());
            let is_near =
                rest.is_empty() || begins && typed > 2 || typed.abs_diff(length) <= 1 + typed / 3;
            is_near && known.contains('/') == name.contains('/')
        };
        let known = reserved.iter().map(|row| row.name).chain(names());
        let near = text::similar_names(name, known.filter(is_like), 1);
        let near = *near.first()?;
        let row = reserved.iter().find(|row| row.name == near);
        let rest = if row.is_none_or(|row| row.takes_argument) { rest } else { "" };
        let line = format!("/{near} {rest}");
        Some(text::one_line(&line, limits::SUMMARY_CHARS))
    }
}

/// The names of the skills that the user may invoke.
fn invocable_names(catalogue: &Catalogue) -> impl Iterator<Item = &str> {
    let skills = catalogue.usable().filter(|skill| skill.is_for_users);
    skills.flat_map(|skill| [Some(skill.name.as_str()), skill.alias.as_deref()]).flatten()
}

/// Invokes the skill that a prompt of the command line names; `None`: the prompt is a question.
pub(super) fn invoked_by_prompt(
    prompt: &str,
    run: &Run,
    output: &mut Output,
) -> Result<Option<InvokedSkill>> {
    let Some(command) = SlashCommand::parse(prompt.trim_end()) else {
        return Ok(None);
    };
    match command.resolve(run, &[]) {
        SlashMeaning::Skill(skill) => {
            report_use(&skill, output);
            Ok(Some(skill))
        }
        SlashMeaning::Unknown => Ok(None),
        SlashMeaning::Similar(near) => {
            let name = text::one_line(command.name, limits::SUMMARY_CHARS);
            Err(usage(format!("there is no skill /{name}; did you mean `{near}`?"))
                .with_hint("start the prompt with a space to send it as a question"))
        }
        SlashMeaning::Unusable(cause) => {
            Err(invocation_error(ErrorKind::Config, command.name, &cause, run))
        }
    }
}

/// The documents of `--skill`, each once.
pub(super) fn given_skills(
    names: &[String],
    run: &Run,
    output: &mut Output,
) -> Result<Vec<InvokedSkill>> {
    let mut skills: Vec<InvokedSkill> = Vec::new();
    for name in names {
        let skill = Tools::builtin(run.tool_context()).give(name);
        let skill = skill.map_err(|error| unusable_skill(name, &error, run))?;
        if !skills.iter().any(|known| known.name == skill.name) {
            report_use(&skill, output);
            skills.push(skill);
        }
    }
    Ok(skills)
}

/// Puts the documents of `--skill` before those of a question, without those that it has.
pub(super) fn add_given(given: &[InvokedSkill], skills: &mut Vec<InvokedSkill>) {
    let is_missing = |skill: &&InvokedSkill| !skills.iter().any(|known| known.name == skill.name);
    let missing: Vec<InvokedSkill> = given.iter().filter(is_missing).cloned().collect();
    skills.splice(0..0, missing);
}

/// Reports that the document of a skill is sent with the question.
pub(super) fn report_use(skill: &InvokedSkill, output: &mut Output) {
    output.note(&format!("using skill `{}`, {} bytes", skill.name, skill.text.len()));
}

/// Why a skill of the user is not used.
const HELD_BACK: &str = "it is not in this folder, and only .env sets the endpoint";

/// The error for a skill that cannot be invoked.
pub(super) fn invocation_error(kind: ErrorKind, name: &str, cause: &str, run: &Run) -> Error {
    let hint = match cause {
        HELD_BACK => TRUST_FIX.into(),
        _ => format!("`{}` shows its problems", run.skills_command("check")),
    };
    failed_to_invoke(kind, name, cause).with_hint(hint)
}

fn failed_to_invoke(kind: ErrorKind, name: &str, cause: &str) -> Error {
    let name = text::one_line_name(name);
    Error::new(kind, format!("failed to invoke skill `{name}`: {cause}"))
}

/// The error for a skill of `--skill`, with similar names if it does not exist.
fn unusable_skill(name: &str, cause: &str, run: &Run) -> Error {
    let catalogue = run.skills.catalogue();
    let is_unusable = |skill: &SkillSummary| {
        skill.name == name && !skill.is_usable() || skill.alias.as_deref() == Some(name)
    };
    if catalogue.find(name).is_ok() || catalogue.skills.iter().any(is_unusable) {
        return invocation_error(ErrorKind::Config, name, cause, run);
    }
    if run.is_held_back(name) {
        return invocation_error(ErrorKind::Config, name, HELD_BACK, run);
    }
    let names = || catalogue.usable().map(|skill| skill.name.as_str());
    let near = text::similar_names(name, names(), limits::SIMILAR_NAMES);
    let command = run.skills_command("list");
    let hint = match near.as_slice() {
        [] if catalogue.usable().next().is_none() => run.no_skills_reason(&catalogue),
        [] => format!("`{command}` lists the skills"),
        near => format!("did you mean `{}`?", text::one_line_name(&near.join("` or `"))),
    };
    let name = text::one_line(name, limits::SUMMARY_CHARS);
    failed_to_invoke(ErrorKind::Config, &name, "there is no skill of this name").with_hint(hint)
}
