//! The endpoint and its model: looked at before the first prompt, and changed
//! in between. Only for a person: a pipe sends no request but its own.

use crate::cli::chat::{Chat, LineOutcome};
use crate::cli::model_lookup::{ModelLookup, UnlistedModel, look, names};
use crate::config::Endpoint;
use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::model::Model as _;
use crate::model::http::{EndpointQuery, HttpModel, ModelListing, ServerKind};
use crate::text;
use crate::world::output::Output;

/// Where Ollama listens, unless it was told otherwise.
const OLLAMA_PORT: u16 = 11434; // not a bound

/// Refusals that are meant for the list alone, of keys that are good for
/// answers: OpenAI's restricted keys lack a scope, and Anthropic's list wants
/// headers of its own API.
const LIST_REFUSALS: [&str; 3] = ["scope", "x-api-key", "anthropic-version"];

impl Chat<'_> {
    /// Whether the endpoint answers, takes the credentials and has the model.
    /// What cannot work ends the conversation before it begins.
    pub(super) fn check_endpoint(&mut self, output: &mut Output) -> Result<()> {
        let Some(endpoint) = self.endpoint() else {
            return Ok(());
        };
        match self.look(&endpoint, output) {
            Ok(ModelLookup::Fine) => Ok(()),
            Ok(ModelLookup::Silent(reason)) => {
                output.warn(&format!(
                    "the endpoint does not tell its models: {reason}; it may be busy"
                ));
                Ok(())
            }
            Ok(ModelLookup::Refused(error)) if is_of_list(&error) => {
                output.note("the endpoint does not list its models to this key");
                Ok(())
            }
            Ok(ModelLookup::Refused(error)) => Err(error),
            Ok(ModelLookup::Unlisted(unlisted)) if unlisted.server == ServerKind::Ollama => {
                let message = format!("failed to find the model: {}", unlisted.message);
                Err(Error::new(ErrorKind::Endpoint, message).with_hint(unlisted.fix))
            }
            Ok(ModelLookup::Unlisted(unlisted)) => {
                warn_of(&unlisted, output);
                Ok(())
            }
            Err(error) => Err(with_remedy(error, &endpoint)),
        }
    }

    /// Tells the model's name and what others there are, or changes it for what
    /// follows.
    pub(super) fn choose_model(&mut self, name: &str, output: &mut Output) -> LineOutcome {
        let Some(endpoint) = self.endpoint() else {
            return LineOutcome::Nothing;
        };
        let told = if name.is_empty() {
            output.note(&format!("the model is {}", endpoint.model));
            self.list_models(&endpoint, output)
        } else if name.contains(char::is_whitespace) {
            let message = "the name of a model has no blanks".to_string();
            return self.refuse(message, false, output);
        } else {
            let model = text::sendable(name).into_owned();
            let endpoint = Endpoint { model, ..endpoint };
            self.change_model(&endpoint, output)
        };
        let Err(error) = told else {
            return LineOutcome::Nothing;
        };
        match error.kind() {
            // Ctrl+C: then it is not known, and the prompt is there again.
            ErrorKind::Interrupted(signal) if self.goes_on(signal) => {
                self.run.cancellation.interrupt.take();
                Output::end_prompt();
            }
            // The next wait of the conversation ends it.
            ErrorKind::Interrupted(_) => {}
            _ => output.warn(error.message()),
        }
        LineOutcome::Nothing
    }

    fn list_models(&self, endpoint: &Endpoint, output: &mut Output) -> Result<()> {
        if !self.is_terminal {
            return Ok(());
        }
        let inquiry = EndpointQuery::new(endpoint.clone(), self.run.cancellation.clone());
        if let ModelListing::Models(models) = inquiry.models(&mut |event| output.show(&event))? {
            let names: Vec<&str> = names(&models).take(limits::NAMES).collect();
            let more = match models.len() - names.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            output.note(&format!("the endpoint lists {}{more}", names.join(", ")));
        }
        Ok(())
    }

    fn change_model(&mut self, endpoint: &Endpoint, output: &mut Output) -> Result<()> {
        let run = self.run;
        // Anew: what was learned of the endpoint was learned with the other one.
        self.model = HttpModel::new(endpoint.clone(), run.typed.stream, run.cancellation.clone());
        self.conversation.change_model();
        output.name_model(&endpoint.model);
        output.note(&format!("the model is now {}", endpoint.model));
        if self.is_terminal
            && let ModelLookup::Unlisted(unlisted) = self.look(endpoint, output)?
        {
            warn_of(&unlisted, output);
        }
        Ok(())
    }

    /// The endpoint with the model that is asked now.
    fn endpoint(&self) -> Option<Endpoint> {
        let endpoint = self.run.config.endpoint.clone();
        endpoint.map(|endpoint| Endpoint { model: self.model.name().into(), ..endpoint })
    }

    fn look(&self, endpoint: &Endpoint, output: &mut Output) -> Result<ModelLookup> {
        look(endpoint, &self.run.cancellation, &mut |event| {
            output.show(&event);
        })
    }
}

fn is_of_list(error: &Error) -> bool {
    LIST_REFUSALS.iter().any(|words| error.message().contains(words))
}

/// The conversation goes on all the same, and can be given another model.
fn warn_of(unlisted: &UnlistedModel, output: &mut Output) {
    let fix = match unlisted.near.first() {
        _ if unlisted.server == ServerKind::Ollama => format!("; {}", unlisted.fix),
        Some(near) => format!(" (`/model {near}` takes that one)"),
        None => String::new(),
    };
    output.warn(&format!("{}{fix}", unlisted.message));
}

/// The failure to reach an endpoint, with what starts the one that is likely
/// meant: nobody listens there.
fn with_remedy(error: Error, endpoint: &Endpoint) -> Error {
    let address = &endpoint.address;
    let is_ollama = address.port() == OLLAMA_PORT;
    let hint = error.hint().unwrap_or_default();
    let is_meant = is_ollama || address.is_loopback();
    if error.kind() != ErrorKind::Temporary
        || !is_meant
        || !hint.starts_with("is the server running")
    {
        return error;
    }
    let hint = if is_ollama {
        "start Ollama: `ollama serve`".to_string()
    } else {
        format!("{hint} Ollama starts with `ollama serve`")
    };
    error.with_hint(hint)
}
