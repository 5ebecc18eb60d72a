//! `/SKILL` and `/skills`: invokes and lists skills in a conversation.

use crate::cli::chat::commands::{self, AS_QUESTION, line_error};
use crate::cli::chat::{Chat, LineOutcome};
use crate::error::Result;
use crate::limits;
use crate::message::{UserMessage, UserMessageKind};
use crate::skills::{Catalogue, SkillSummary};
use crate::text;
use crate::world::output::Output;

impl Chat<'_> {
    /// Handles a line that starts with `/name`: invokes the skill. An unknown single word, or a
    /// name similar to a known one, is an error; any other line is a question.
    pub(super) fn invoke_skill(
        &mut self,
        name: &str,
        line: &str,
        rest: &str,
        output: &mut Output,
    ) -> Result<LineOutcome> {
        let catalogue = self.run.skills.catalogue();
        let has_name =
            |skill: &&SkillSummary| skill.name == name || skill.alias.as_deref() == Some(name);
        let skill = catalogue.skill_named(name).or_else(|| catalogue.skills.iter().find(has_name));
        let Some(skill) = skill else {
            let advice = match suggested_line(name, rest, &catalogue) {
                Some(near) => format!("did you mean {near}?"),
                None if !rest.is_empty() => return Ok(self.add_text_question(line, output)),
                None => "/help lists the commands, /skills the skills".into(),
            };
            let name = text::one_line(name, limits::SUMMARY_CHARS);
            let message = format!("there is no command or skill /{name}; {advice}");
            let error = line_error(message);
            return Err(if rest.is_empty() { error } else { error.with_hint(AS_QUESTION) });
        };
        let invoked = match &skill.error {
            Some(error) => Err(error.clone()),
            // By the typed name: several skills may share an alias.
            None => self.tools.invoke(name, rest),
        };
        let text = invoked.map_err(|error| {
            line_error(format!("failed to invoke skill `{}`: {error}", skill.name))
        })?;
        output.note(&format!("using skill `{}`, {} bytes", skill.name, text.len()));
        let kind = UserMessageKind::Document;
        Ok(self.add_question(UserMessage { kind, ..UserMessage::from(text) }, output))
    }

    /// Prints a line per skill that the user can invoke, and the number of the others.
    pub(super) fn list_skills(&self, output: &mut Output) -> LineOutcome {
        let catalogue = self.run.skills.catalogue();
        for error in &catalogue.folder_errors {
            output.note(&error.message);
        }
        if catalogue.skills.is_empty() {
            output.note("there are no skills");
        }
        let is_command =
            |skill: &&SkillSummary| commands::command_names().any(|name| name == skill.name);
        let for_users: Vec<&SkillSummary> = catalogue.usable().filter(|s| s.is_for_users).collect();
        let (listed, not_invocable): (Vec<&SkillSummary>, Vec<&SkillSummary>) =
            for_users.iter().partition(|skill| !is_command(skill) && is_single_word(&skill.name));
        for skill in listed.iter().take(limits::CHAT_SKILLS) {
            let about = text::one_line(&skill.description, limits::CHAT_DESCRIPTION_BYTES);
            output.note(&format!("/{}: {about}", skill.name));
        }
        if let Some(left) = listed.len().checked_sub(limits::CHAT_SKILLS + 1) {
            output.note(&format!("… and {} more", left + 1));
        }
        for skill in not_invocable.iter().take(limits::LISTED_NAMES) {
            let name = skill.display_name();
            let why = if is_command(skill) {
                "that is a command"
            } else {
                "its name is not a single word"
            };
            output.note(&format!(
                "the skill `{name}` cannot be used as /{name}, because {why}: ask the model to use it"
            ));
        }
        let unusable = catalogue.skills.len() - catalogue.usable().count();
        let others = catalogue.usable().count() - for_users.len();
        for (count, what) in [
            (others, "for the model only"),
            (unusable, "unusable: `skills-runner skills list` shows why"),
        ] {
            match count {
                0 => {}
                1 => output.note(&format!("1 more skill is {what}")),
                _ => output.note(&format!("{count} more skills are {what}")),
            }
        }
        LineOutcome::Nothing
    }
}

/// Whether the name can follow a slash: it contains no white space.
fn is_single_word(name: &str) -> bool {
    !name.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// The line that the user probably meant, if a command or skill has a similar name.
fn suggested_line<'c>(name: &str, rest: &str, catalogue: &'c Catalogue) -> Option<String> {
    let skills = || catalogue.usable().filter(|skill| skill.is_for_users);
    let names = || skills().flat_map(|skill| [Some(skill.name.as_str()), skill.alias.as_deref()]);
    // `/skill pdf report.pdf`: the user may take /SKILL in the help literally.
    let (first, remainder) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let is_placeholder = ["skill", "skills"].contains(&name.to_lowercase().as_str());
    let (name, rest) = match names().flatten().find(|known| is_placeholder && *known == first) {
        Some(first) => (first, remainder.trim_start()),
        None => (name, rest),
    };
    // A line with more words is a question, unless the name is very similar.
    let is_like = |known: &&str| {
        let (typed, length) = (name.chars().count(), known.chars().count());
        let begins = known.to_lowercase().starts_with(&name.to_lowercase());
        rest.is_empty() || begins && typed > 2 || typed.abs_diff(length) <= 1 + typed / 3
    };
    let command_names = commands::command_names().map(|name| -> &'c str { name });
    let known = command_names.chain(names().flatten());
    let near = text::similar_names(name, known.filter(is_like), 1);
    let near = *near.first()?;
    let is_command = commands::command_names().any(|name| name == near);
    let takes_argument = !is_command || commands::takes_argument(near);
    let rest = if takes_argument { rest } else { "" };
    let line = format!("/{near} {rest}");
    Some(text::one_line(&line, limits::SUMMARY_CHARS))
}
