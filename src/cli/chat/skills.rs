//! Skills in a conversation: invoked by hand, and listed.

use crate::cli::chat::{Chat, LineOutcome, commands};
use crate::error::{Error, ErrorKind};
use crate::limits;
use crate::message::UserMessage;
use crate::skills::{Catalogue, SkillSummary};
use crate::text;
use crate::world::output::Output;

impl Chat<'_> {
    /// A line that begins with `/name`: a skill is invoked; a single word that
    /// is none is a slip, and so is a name that is almost one.
    pub(super) fn take_name(
        &mut self,
        name: &str,
        line: &str,
        rest: &str,
        output: &mut Output,
    ) -> LineOutcome {
        let catalogue = self.run.skills.catalogue();
        let is_it =
            |skill: &&SkillSummary| skill.name == name || skill.alias.as_deref() == Some(name);
        let skill = catalogue.named(name).or_else(|| catalogue.skills.iter().find(is_it));
        let Some(skill) = skill else {
            let advice = match meant(name, rest, &catalogue) {
                Some(near) => format!("did you mean {near}?"),
                None if !rest.is_empty() => return self.question(line, output),
                None => "/help lists the commands, /skills the skills".into(),
            };
            let name = text::one_line(name, limits::SUMMARY_CHARS);
            let message = format!("there is no command /{name}, and no such skill; {advice}");
            return self.refuse(message, !rest.is_empty(), output);
        };
        let invoked = match &skill.fault {
            Some(fault) => Err(fault.clone()),
            // By the name that was typed: several skills may share an alias.
            None => self.tools.invoke(name, rest).map_err(String::from),
        };
        match invoked {
            Ok(text) => {
                output.note(&format!("the skill `{}`, {} bytes", skill.name, text.len()));
                let said = UserMessage { is_document: true, ..UserMessage::from(text) };
                self.run_question(said, output)
            }
            Err(fault) => {
                let message = format!("failed to invoke skill `{}`: {fault}", skill.name);
                self.fail(Error::new(ErrorKind::Io, message), output);
                LineOutcome::Nothing
            }
        }
    }

    /// One line a skill that can be invoked by hand; how many cannot.
    pub(super) fn list_skills(&self, output: &mut Output) {
        let catalogue = self.run.skills.catalogue();
        for fault in &catalogue.faults {
            output.note(&fault.message);
        }
        if catalogue.skills.is_empty() {
            output.note("there are no skills");
        }
        let is_own = |skill: &&SkillSummary| commands::names().any(|name| name == skill.name);
        let mine: Vec<&SkillSummary> = catalogue.usable().filter(|s| s.is_for_users).collect();
        let (listed, hard): (Vec<&SkillSummary>, Vec<&SkillSummary>) =
            mine.iter().partition(|skill| !is_own(skill) && is_word(&skill.name));
        for skill in listed.iter().take(limits::CHAT_SKILLS) {
            let about = text::one_line(&skill.description, limits::CHAT_DESCRIPTION_BYTES);
            output.note(&format!("/{}: {about}", skill.name));
        }
        if let Some(left) = listed.len().checked_sub(limits::CHAT_SKILLS + 1) {
            output.note(&format!("… and {} more", left + 1));
        }
        for skill in hard.iter().take(limits::NAMES) {
            let name = skill.shown_name();
            let why = if is_own(skill) {
                format!("/{name} is a command")
            } else {
                "its name is more than one word".into()
            };
            output.note(&format!(
                "the skill `{name}` cannot be called by a slash, because {why}: ask the model to use it"
            ));
        }
        let unusable = catalogue.skills.len() - catalogue.usable().count();
        let others = catalogue.usable().count() - mine.len();
        for (count, what) in [
            (others, "for the model only"),
            (unusable, "unusable: `skills-runner skills list` tells why"),
        ] {
            match count {
                0 => {}
                1 => output.note(&format!("1 more skill is {what}")),
                _ => output.note(&format!("{count} more skills are {what}")),
            }
        }
    }
}

/// Whether a line can begin with the name: it ends at the first blank.
fn is_word(name: &str) -> bool {
    !name.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// The line that was meant by one that begins with `/name`, if a command or a
/// skill is called almost so.
fn meant<'c>(name: &str, rest: &str, catalogue: &'c Catalogue) -> Option<String> {
    let skills = || catalogue.usable().filter(|skill| skill.is_for_users);
    let names = || skills().flat_map(|skill| [Some(skill.name.as_str()), skill.alias.as_deref()]);
    // `/skill pdf report.pdf`, as the placeholder in the list of commands has it.
    let (first, behind) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let is_skill = ["skill", "skills"].contains(&name.to_lowercase().as_str());
    let (name, rest) = match names().flatten().find(|known| is_skill && *known == first) {
        Some(first) => (first, behind.trim_start()),
        None => (name, rest),
    };
    // With words behind it a line is a question, unless the name is very like.
    let is_like = |known: &&str| {
        let (typed, length) = (name.chars().count(), known.chars().count());
        let begins = known.to_lowercase().starts_with(&name.to_lowercase());
        rest.is_empty() || begins && typed > 2 || typed.abs_diff(length) <= 1 + typed / 3
    };
    let own = commands::names().map(|name| -> &'c str { name });
    let known = own.chain(names().flatten());
    let near = text::nearest(name, known.filter(is_like), 1);
    let near = *near.first()?;
    let is_own = commands::names().any(|name| name == near);
    let takes = !is_own || commands::takes_words(near);
    let rest = if takes { rest } else { "" };
    let line = format!("/{near} {rest}");
    Some(text::one_line(&line, limits::SUMMARY_CHARS))
}
