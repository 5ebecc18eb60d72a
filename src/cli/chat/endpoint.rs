//! Checks the endpoint and its model at the start of a conversation on a terminal, and `/model`.
//! From a pipe, nothing is checked.

use crate::cli::chat::commands::line_error;
use crate::cli::chat::{Chat, LineOutcome};
use crate::cli::model_lookup::{ModelLookup, UnlistedModel, look_up_model, names};
use crate::ui::Output;
use base::error::{Error, ErrorKind, FailedPart, Result};
use base::limits;
use base::text;
use chat_api::Endpoint;
use chat_api::Model as _;
use chat_api::http::OLLAMA_PORT;
use chat_api::http::{EndpointQuery, HttpModel, ModelListing, ReportedModel, ServerKind};

impl Chat<'_> {
    /// Checks that the endpoint answers, accepts the credentials and has the model. An error ends
    /// the conversation before it starts.
    pub(super) fn check_endpoint(&mut self, output: &mut Output) -> Result<()> {
        let Some(endpoint) = self.current_endpoint() else {
            return Ok(());
        };
        let found = self
            .look_up_model(&endpoint, output)
            .map_err(|error| with_start_hint(error, &endpoint))?;
        match found {
            ModelLookup::NoProblem => {}
            ModelLookup::Silent(reason) => {
                output.warn(&format!(
                    "the endpoint did not list its models: {reason}; it may be busy"
                ));
            }
            ModelLookup::Refused(error) if error.part() == Some(FailedPart::ModelList) => {
                output.note("the endpoint does not list its models to this key");
            }
            ModelLookup::Refused(error) => return Err(error),
            ModelLookup::Unlisted(unlisted) if unlisted.server == ServerKind::Ollama => {
                let message = format!("failed to find the model: {}", unlisted.message);
                return Err(Error::new(ErrorKind::Endpoint, message).with_hint(unlisted.fix));
            }
            ModelLookup::Unlisted(unlisted) => warn_unlisted(&unlisted, output),
        }
        Ok(())
    }

    /// Shows the current model and the others, or switches to another one.
    pub(super) fn choose_model(&mut self, name: &str, output: &mut Output) -> Result<LineOutcome> {
        let Some(endpoint) = self.current_endpoint() else {
            return Ok(LineOutcome::Nothing);
        };
        if name.is_empty() {
            output.note(&format!("the model is {}", endpoint.model));
            self.list_models(&endpoint, output)?;
        } else if name.contains(char::is_whitespace) {
            return Err(line_error("the name of a model contains no spaces"));
        } else {
            let model = text::sendable(name).into_owned();
            let mut endpoint = Endpoint { model, parameters: None, ..endpoint };
            self.run.reported.set(ReportedModel::default());
            self.run.query_model(&mut endpoint, self.is_terminal, output)?;
            self.change_model(&endpoint, output)?;
        }
        Ok(LineOutcome::Nothing)
    }

    fn list_models(&self, endpoint: &Endpoint, output: &mut Output) -> Result<()> {
        if !self.is_terminal {
            return Ok(());
        }
        let query = EndpointQuery::new(endpoint.clone(), self.run.cancellation.clone());
        if let ModelListing::Models(models) = query.list_models(&mut |event| output.show(&event))? {
            let names: Vec<&str> = names(&models).take(limits::LISTED_NAMES).collect();
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
        // A new model: what was learned about the endpoint may not hold for this one.
        self.model = HttpModel::new(endpoint.clone(), run.options.stream, run.cancellation.clone());
        self.conversation.change_model();
        self.renew_system_prompt(output);
        output.set_model(&endpoint.model);
        output.note(&format!("the model is now {}", endpoint.model));
        if !self.is_terminal {
            return Ok(());
        }
        if let ModelLookup::Unlisted(unlisted) = self.look_up_model(endpoint, output)? {
            warn_unlisted(&unlisted, output);
        }
        Ok(())
    }

    /// Queries the window of the model that Ollama has loaded for the first answer.
    pub(super) fn query_loaded_window(&mut self, output: &mut Output) -> Result<()> {
        let run = self.run;
        let is_due = run.reported.get().is_provisional;
        let Some(mut endpoint) = self.current_endpoint().filter(|_| is_due) else {
            return Ok(());
        };
        let queried = run.query_model(&mut endpoint, self.is_terminal, output);
        run.reported.set(ReportedModel { is_provisional: false, ..run.reported.get() });
        match queried {
            // The turn is complete: Ctrl+C has nothing else to end.
            Err(error) => match error.kind() {
                ErrorKind::Interrupted(signal) if self.survives_signal(signal) => {
                    run.cancellation.interrupt.take_pending();
                    Ok(())
                }
                _ => Err(error),
            },
            queried => queried,
        }
    }

    /// The endpoint with the current model.
    pub(super) fn current_endpoint(&self) -> Option<Endpoint> {
        let endpoint = self.run.config.endpoint.clone();
        endpoint.map(|endpoint| Endpoint { model: self.model.name().into(), ..endpoint })
    }

    fn look_up_model(&self, endpoint: &Endpoint, output: &mut Output) -> Result<ModelLookup> {
        look_up_model(endpoint, &self.run.cancellation, &mut |event| {
            output.show(&event);
        })
    }
}

/// Warns about an unlisted model; the conversation continues.
fn warn_unlisted(unlisted: &UnlistedModel, output: &mut Output) {
    let fix = match unlisted.near.first() {
        _ if unlisted.server == ServerKind::Ollama => format!("; {}", unlisted.fix),
        Some(near) => format!(" (`/model {near}` switches to it)"),
        None => String::new(),
    };
    output.warn(&format!("{}{fix}", unlisted.message));
}

/// Adds a hint for starting the server to a failed connection to a local endpoint.
fn with_start_hint(error: Error, endpoint: &Endpoint) -> Error {
    let address = &endpoint.address;
    let is_ollama = address.port() == OLLAMA_PORT;
    if error.part() != Some(FailedPart::Server) || !(is_ollama || address.is_loopback()) {
        return error;
    }
    let hint = match error.hint() {
        Some(hint) if !is_ollama => format!("{hint} (to start Ollama: `ollama serve`)"),
        _ => "start Ollama: `ollama serve`".to_string(),
    };
    error.with_hint(hint)
}
