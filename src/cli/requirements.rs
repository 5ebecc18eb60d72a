//! `--require-skill` and `--require-script`: what an answer must be based on.
//!
//! A run in which a requirement cannot be met ends before its first request.

use crate::cli::options::Requirements;
use crate::cli::run::Run;
use agent::conversation::Conversation;
use agent::tools::Tools;
use base::error::{Error, ErrorKind, Result};
use base::event::Actions;
use base::limits;
use base::message::Message;
use base::text::{self, one_line_name};
use skills::python::Interpreter;

impl Run {
    /// Returns an error if no answer can meet the requirements.
    pub(super) fn check_requirements(&self) -> Result<()> {
        let Requirements { skill, script } = self.requirements;
        if !skill && !script {
            return Ok(());
        }
        let option = if skill { SKILL } else { SCRIPT };
        let catalogue = self.skills.catalogue();
        if catalogue.usable().next().is_none() {
            let reason = self.no_skills_reason(&catalogue);
            return Err(Error::new(
                ErrorKind::Config,
                format!("failed to meet {option}: {reason}"),
            )
            .with_hint(format!("`{}` shows what is wrong", self.skills_command("check"))));
        }
        let tools = Tools::for_model(self.tool_context(), &catalogue);
        let runs_programs = tools.offers("run_python_script") || tools.offers("run_command");
        match Interpreter::without_venv(&self.config.scripts) {
            Err(error) if script && !runs_programs => {
                let message = format!("failed to meet {SCRIPT}: no skill has a venv");
                Err(Error::caused_by(ErrorKind::Config, &message, error))
            }
            _ => Ok(()),
        }
    }

    /// Returns an error if the answer of the turn does not meet the requirements.
    pub(super) fn check_answer(
        &self,
        conversation: &Conversation,
        actions: &Actions,
    ) -> Result<()> {
        let Requirements { skill, script } = self.requirements;
        let (mut causes, mut hints) = (Vec::new(), Vec::new());
        if skill && actions.skills_read.is_empty() && !has_document(conversation) {
            causes.push(format!("no skill was read before it ({SKILL})"));
            let names = self.skill_names();
            hints.push(format!("name one in the question, or use --skill NAME; {names}"));
        }
        let scripts = actions.scripts_run.iter().map(|exit| exit.returncode);
        let commands = actions.commands_run.iter().map(|exit| exit.returncode);
        if script && !scripts.chain(commands).any(|returncode| returncode == 0) {
            let (cause, hint) = match last_failure(actions) {
                None => (
                    "no script or command ran before it".to_string(),
                    "ask for a script or command in the question",
                ),
                Some((what, returncode)) => {
                    let what = one_line_name(&what);
                    let cause = format!(
                        "no script or command succeeded; the last one ({what}) ended with {returncode}"
                    );
                    (cause, "-v shows the beginning of each result")
                }
            };
            causes.push(format!("{cause} ({SCRIPT})"));
            hints.push(hint.to_string());
        }
        if causes.is_empty() {
            return Ok(());
        }
        let message = format!("failed to accept the answer: {}", causes.join("; "));
        Err(Error::new(ErrorKind::Skill, message).with_hint(hints.join("; ")))
    }

    /// The names of the first skills, for a hint.
    fn skill_names(&self) -> String {
        let catalogue = self.skills.catalogue();
        let names = || catalogue.usable().map(|skill| skill.name.as_str());
        let first: Vec<&str> = names().take(limits::SIMILAR_NAMES).collect();
        let more = if names().count() > first.len() { ", …" } else { "" };
        text::one_line_name(&format!("the skills are {}{more}", first.join(", ")))
    }
}

/// Returns the last script, or else command, and its exit status.
fn last_failure(actions: &Actions) -> Option<(String, i32)> {
    let script = actions.scripts_run.last().map(|exit| {
        let skill = exit.skill.iter().map(|skill| format!("{skill}: "));
        let file = exit.file.as_deref().unwrap_or("written by the model");
        (format!("{}{file}", skill.collect::<String>()), exit.returncode)
    });
    script.or_else(|| {
        let exit = actions.commands_run.last()?;
        Some((format!("`{}`", exit.command), exit.returncode))
    })
}

const SKILL: &str = "--require-skill";
const SCRIPT: &str = "--require-script";

/// Whether the document of a skill is in the conversation, also from an earlier turn: then the
/// model need not read it again.
fn has_document(conversation: &Conversation) -> bool {
    conversation.messages().iter().any(|message| match message {
        Message::User(user) => !user.skills.is_empty(),
        Message::Tool(result) => result.document.is_some(),
        Message::System(_) | Message::Assistant(_) => false,
    })
}
