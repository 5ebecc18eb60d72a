//! The context window that Ollama or llama.cpp reports, for a conversation on a terminal without
//! `LLM_CONTEXT_WINDOW`. A server that does not answer quickly is not waited for.

use crate::agent::TurnLimits;
use crate::cli::chat::Chat;
use crate::config::Endpoint;
use crate::error::{ErrorKind, Result};
use crate::event::Event;
use crate::model::http::{
    ContextWindow, EndpointQuery, ListedModel, ServerKind, find_model, query_briefly,
};
use crate::text::group_digits;
use crate::world::output::Output;

/// What is known about the window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReportedWindow {
    tokens: Option<u64>,
    /// Whether to query it after the next answer. Ollama loads the model with the first request:
    /// before that it reports nothing, or the window of another program's request.
    is_query_due: bool,
}

impl Chat<'_> {
    /// The limits of a turn, with the window that the server reports if none is set.
    pub(super) fn turn_limits(&self) -> TurnLimits {
        let limits = self.run.turn_limits();
        TurnLimits { window: limits.window.or(self.window.tokens), ..limits }
    }

    /// Queries the window. `models` are those that the endpoint lists.
    pub(super) fn query_window(
        &mut self,
        endpoint: &Endpoint,
        models: &[ListedModel],
        output: &mut Output,
    ) -> Result<()> {
        if self.run.config.context_window.is_some() {
            return Ok(());
        }
        let mut server = ServerKind::Other;
        let tokens = self.query_briefly(endpoint, output, |query, output| {
            let sink = &mut |event: Event<'_>| output.show(&event);
            server = query.server_kind(models, sink)?;
            if server == ServerKind::Other {
                return Ok(ContextWindow::Unknown);
            }
            query.context_window(server, find_model(models, &endpoint.model, server), sink)
        })?;
        self.window = ReportedWindow { tokens, is_query_due: server == ServerKind::Ollama };
        Ok(())
    }

    /// Queries the window of the model that Ollama has loaded for the first answer.
    pub(super) fn query_loaded_window(&mut self, output: &mut Output) -> Result<()> {
        if !std::mem::take(&mut self.window.is_query_due) {
            return Ok(());
        }
        let Some(endpoint) = self.current_endpoint() else {
            return Ok(());
        };
        let tokens = self.query_briefly(&endpoint, output, |query, output| {
            query.context_window(ServerKind::Ollama, None, &mut |event| output.show(&event))
        });
        match tokens {
            Ok(tokens) => self.window.tokens = tokens.or(self.window.tokens),
            // The turn is complete: Ctrl+C has nothing else to end.
            Err(error) => match error.kind() {
                ErrorKind::Interrupted(signal) if self.survives_signal(signal) => {
                    self.run.cancellation.interrupt.take_pending();
                }
                _ => return Err(error),
            },
        }
        Ok(())
    }

    fn query_briefly(
        &self,
        endpoint: &Endpoint,
        output: &mut Output,
        send: impl FnOnce(&EndpointQuery, &mut Output) -> Result<ContextWindow>,
    ) -> Result<Option<u64>> {
        let window = query_briefly(endpoint, &self.run.cancellation, |query| send(query, output))?;
        let Some(ContextWindow::Served(tokens)) = window else {
            return Ok(None);
        };
        output.detail(&format!("the server reports a window of {} tokens", group_digits(tokens)));
        Ok(Some(tokens))
    }
}
