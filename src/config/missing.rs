//! Missing settings: the lines that set them, ready to copy, and the error for all problems of
//! a configuration.

use std::fmt;

use crate::config::{ConfigProblem, ConfigReader};
use base::error::{Error, ErrorKind, Fault};
use base::settings::{self, EnvFile, FolderRule, TRUST_FIX};

/// A line that sets a variable in a shell or in `.env`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SettingLine {
    /// The variable.
    pub name: &'static str,
    /// The value, as a shell reads it.
    pub value: String,
    /// A comment after the value; may be empty.
    pub about: &'static str,
}

impl SettingLine {
    /// A line without a comment.
    pub(crate) fn new(name: &'static str, value: impl Into<String>) -> SettingLine {
        SettingLine { name, value: value.into(), about: "" }
    }

    fn about(self, about: &'static str) -> SettingLine {
        SettingLine { about, ..self }
    }
}

impl fmt::Display for SettingLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "export {}={}", self.name, self.value)?;
        if self.about.is_empty() { Ok(()) } else { write!(f, " # {}", self.about) }
    }
}

const OLLAMA: &str = "http://localhost:11434/v1";
const OPENAI: &str = "https://api.openai.com/v1";
const OPENAI_EXAMPLE: &str = "gpt-4.1-mini";

impl ConfigProblem {
    /// No model is set.
    pub(crate) fn missing_model() -> ConfigProblem {
        let name = settings::LLM_MODEL_NAME;
        let line = SettingLine::new(name, "NAME").about("as the endpoint lists it");
        ConfigProblem::missing(format!("{name} is not set"), vec![line])
    }

    /// The problem that these lines solve.
    pub(crate) fn missing(message: String, lines: Vec<SettingLine>) -> ConfigProblem {
        let fix: Vec<String> = lines.iter().map(ToString::to_string).collect();
        ConfigProblem { fault: Fault::new(message, fix.join("\n")), lines }
    }

    /// The problem on one line; its lines to copy are part of the error's hint.
    fn text(&self) -> String {
        if self.lines.is_empty() { self.fault.to_string() } else { self.fault.message.clone() }
    }
}

impl ConfigReader<'_> {
    pub(super) fn report_missing(&mut self, problem: ConfigProblem) {
        self.problems.push(problem);
    }

    /// Reports that there is no address, with the lines for the usual endpoints. What is set
    /// already is left out.
    pub(super) fn report_missing_endpoint(&mut self) {
        let is_skipped = |file: &EnvFile| file.skipped.contains(&settings::LLM_API_BASE_URL);
        if self.settings.files().iter().any(is_skipped) {
            let message = "LLM_API_BASE_URL is not set, as .env is not read";
            return self.report(Fault::new(message, TRUST_FIX));
        }
        let is_set = |name| self.settings.value(name).is_some();
        let is_unset = |line: &SettingLine| match line.name {
            settings::LLM_API_KEY => !is_set(line.name) && !is_set(settings::LLM_API_KEY_FILE),
            settings::LLM_MODEL_NAME if is_set(settings::OPENAI_API_KEY) => {
                !is_set(line.name) && !is_set(settings::OPENAI_MODEL)
            }
            name => !is_set(name),
        };
        let model = SettingLine::new(settings::LLM_MODEL_NAME, OPENAI_EXAMPLE);
        let name = settings::LLM_API_BASE_URL;
        let (message, mut lines) = if is_set(settings::OPENAI_API_KEY) {
            let address = SettingLine::new(settings::OPENAI_BASE_URL, OPENAI);
            ("OPENAI_API_KEY has no address".to_string(), vec![address, model])
        } else {
            let lines = vec![
                SettingLine::new(name, OLLAMA).about("Ollama, or"),
                SettingLine::new(name, OPENAI).about("OpenAI or another"),
                SettingLine::new(settings::LLM_API_KEY, "sk-..."),
                model,
            ];
            (format!("{name} is not set"), lines)
        };
        lines.retain(is_unset);
        self.report_missing(ConfigProblem::missing(message, lines));
        let foreign = [
            (settings::OPENAI_BASE_URL, name),
            (settings::OLLAMA_HOST, name),
            (settings::OPENAI_API_KEY, settings::LLM_API_KEY),
        ];
        let ignored = foreign
            .iter()
            .find_map(|(name, own)| Some((self.settings.file_values(name).pop()?.1, own)));
        if let Some((source, own)) = ignored {
            let message = format!("{source} is read from the environment only");
            self.report(Fault::new(message, format!("set {own}")));
        }
    }

    /// Reports that the key in this setting is missing.
    pub(super) fn report_missing_key(&mut self, name: &'static str) {
        let others = [settings::LLM_API_BASE_URL, settings::OPENAI_BASE_URL];
        let others = others.iter().filter_map(|place| Some((place, settings::key_setting(place)?)));
        let mut others = others.filter(|(_, key)| *key != name);
        let message = match others.find(|(_, key)| self.settings.value(key).is_some()) {
            Some((place, key)) => format!("{name} is not set; {key} is only for {place}"),
            None => format!("{name} is not set"),
        };
        let line = SettingLine::new(name, "KEY").about(match name {
            settings::LLM_API_KEY => "none: it needs no key; or LLM_API_KEY_FILE=FILE",
            _ => "none: it needs no key",
        });
        self.report_missing(ConfigProblem::missing(message, vec![line]));
    }
}

/// One error for all problems. `misspelled`: names that may be meant as settings.
pub(crate) fn configuration_error(problems: &[ConfigProblem], misspelled: &[Fault]) -> Error {
    let message = match problems {
        [one] => format!("failed to read the configuration: {}", one.text()),
        several => {
            let start = format!("failed to read the configuration: {} problems", several.len());
            let texts = several.iter().map(|problem| format!("\n  {}", problem.text()));
            texts.fold(start, |text, problem| text + &problem)
        }
    };
    let error = Error::new(ErrorKind::Config, message);
    let lines: Vec<&SettingLine> = problems.iter().flat_map(|problem| &problem.lines).collect();
    if lines.is_empty() {
        return error;
    }
    let rule = |line: &SettingLine| settings::setting(line.name).map(|row| row.folder_rule);
    let place = if lines.iter().any(|line| rule(line) == Some(FolderRule::EnvironmentOnly)) {
        "the shell"
    } else {
        "the shell or .env"
    };
    let misspelled = misspelled.iter().fold(String::new(), |text, it| text + &it.message + "\n  ");
    let hint = format!("{misspelled}run `skills-runner init`, or copy what fits into {place}:");
    let hint = lines.iter().fold(hint, |hint, line| hint + &format!("\n  {line}"));
    error.with_hint(hint + "\n(`skills-runner demo` needs none)")
}
