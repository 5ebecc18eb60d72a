//! `/SKILL` and `/skills`: invokes and lists skills in a conversation.

use crate::cli::chat::commands::{self, AS_QUESTION, line_error};
use crate::cli::chat::{Chat, LineOutcome};
use crate::cli::invocation::{SlashCommand, SlashMeaning, invocation_error, report_use};
use crate::ui::Output;
use base::error::{ErrorKind, Result};
use base::limits;
use base::message::UserMessage;
use base::text;
use skills::SkillSummary;

impl Chat<'_> {
    /// Handles a line that starts with `/name`: invokes the skill. An unknown single word, or a
    /// name similar to a known one, is an error; any other line is a question.
    pub(super) fn invoke_skill(
        &mut self,
        command: SlashCommand<'_>,
        line: &str,
        output: &mut Output,
    ) -> Result<LineOutcome> {
        let SlashCommand { name, arguments } = command;
        let advice = match command.resolve(self.run, &commands::reserved_names()) {
            SlashMeaning::Skill(skill) => {
                report_use(&skill, output);
                let question = UserMessage { skills: vec![skill], ..UserMessage::default() };
                return Ok(self.add_question(question, output));
            }
            SlashMeaning::Unusable(cause) => {
                return Err(invocation_error(ErrorKind::Io, name, &cause, self.run));
            }
            SlashMeaning::Similar(near) => format!("did you mean `{near}`?"),
            SlashMeaning::Unknown if !arguments.is_empty() || name.contains('/') => {
                return Ok(self.add_text_question(line, output));
            }
            SlashMeaning::Unknown => "/help lists the commands, /skills the skills".into(),
        };
        let name = text::one_line(name, limits::SUMMARY_CHARS);
        let error = line_error(format!("there is no command or skill /{name}; {advice}"));
        Err(if arguments.is_empty() { error } else { error.with_hint(AS_QUESTION) })
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
        let unusable = catalogue.skills.iter().filter(|skill| !skill.is_usable()).count();
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
