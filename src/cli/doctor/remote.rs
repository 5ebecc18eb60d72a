//! The checks of the endpoint: connection, credentials, model and context window.

use std::time::Instant;

use crate::cli::doctor::endpoint_checks;
use crate::cli::doctor::report::{DoctorCheck, DoctorReport};
use crate::cli::doctor::trial;
use crate::cli::installed_model::ONLY_MODEL;
use crate::cli::model_lookup::{UnlistedModel, names};
use crate::cli::run::Run;
use base::error::{Error, ErrorKind, FailedPart, Result};
use base::limits;
use base::text::{self, group_digits};
use base::tool::milliseconds;
use chat_api::Endpoint;
use chat_api::http::{
    ContextWindow, EndpointQuery, ListedModel, ModelListing, ServerKind, find_model,
};

/// Why the remaining checks of the endpoint are not made.
enum ChecksEnd {
    /// The run must stop.
    Interrupted(Error),
    /// Another check failed; the reason is reported.
    Skipped(String),
}

type CheckResult = std::result::Result<(), ChecksEnd>;

/// The properties of an endpoint that are known before the trial.
struct EndpointInfo<'t> {
    endpoint: &'t Endpoint,
    listing: &'t ModelListing,
    /// The entry of the configured model.
    listed: Option<&'t ListedModel>,
    server: ServerKind,
}

/// Runs the checks of the endpoint, except its address. An error means that the run must stop.
pub(super) fn examine(endpoint: &Endpoint, run: &Run, report: &mut DoctorReport<'_>) -> Result<()> {
    match check_all(endpoint, run, report) {
        Ok(()) => {}
        Err(ChecksEnd::Skipped(reason)) => report.skip_rest(endpoint_checks(), &reason),
        Err(ChecksEnd::Interrupted(error)) => return Err(error),
    }
    Ok(())
}

fn check_all(endpoint: &Endpoint, run: &Run, report: &mut DoctorReport<'_>) -> CheckResult {
    let query = EndpointQuery::new(endpoint.clone(), run.cancellation.clone());
    let start = Instant::now();
    let listing = match query.list_models(&mut |event| report.show_event(&event)) {
        Ok(listing) => listing,
        Err(error) => {
            add_failed("connection", &error, report)?;
            return Err(ChecksEnd::Skipped("there is no connection".into()));
        }
    };
    let took = milliseconds(start.elapsed());
    report.add(connection(endpoint, &listing, took));
    let models = match &listing {
        ModelListing::Models(models) => models.as_slice(),
        _ => &[],
    };
    let server = match query.server_kind(models, &mut |event| report.show_event(&event)) {
        Ok(server) => server,
        Err(error) => {
            add_failed("credentials", &error, report)?;
            return Err(ChecksEnd::Skipped("the kind of server is unknown".into()));
        }
    };
    let listed = find_model(models, &endpoint.model, server);
    let parameters = query.parameters(models, server, &mut |event| report.show_event(&event));
    let parameters = parameters.or_else(|error| stop_if_interrupted(&error).map(|()| None))?;
    let endpoint = &Endpoint { parameters, ..endpoint.clone() };
    let info = EndpointInfo { endpoint, listing: &listing, listed, server };
    let is_listing = matches!(listing, ModelListing::Models(_));
    if server == ServerKind::Ollama && is_listing && listed.is_none() {
        report.add(credentials(endpoint, &listing, None));
        report.add(model(&info));
        return Err(ChecksEnd::Skipped("not checked until the model is found".into()));
    }
    run_trials(&info, run, report)?;
    match query.context_window(server, listed, &mut |event| report.show_event(&event)) {
        Ok(window) => report.add(context(window, server)),
        Err(error) => add_failed("context", &error, report)?,
    }
    Ok(())
}

/// Tries a tool call and a stream, and adds the checks that depend on the tool call.
fn run_trials(info: &EndpointInfo<'_>, run: &Run, report: &mut DoctorReport<'_>) -> CheckResult {
    let EndpointInfo { endpoint, listing, .. } = *info;
    let cancellation = &run.cancellation;
    report.note_on_terminal(&format!(
        "requesting a tool call from `{}`; loading the model may take a while",
        endpoint.model
    ));
    let called = trial::tool_call(endpoint, cancellation, &mut |event| report.show_event(&event));
    let error = called.as_ref().err();
    if let Some(error) = error {
        stop_if_interrupted(error)?;
    }
    if let Some(error) = error
        && let Some(name) = affected_check(error, listing)
    {
        report.add_failure_to(name, error);
        return Err(ChecksEnd::Skipped(format!("not checked until the {name} works")));
    }
    report.add(credentials(endpoint, listing, error));
    report.add(model(info));
    match called {
        Ok(check) => report.add(check),
        Err(error) if error.kind() == ErrorKind::Auth => {
            let reason = "not checked until the credentials are accepted";
            return Err(ChecksEnd::Skipped(reason.into()));
        }
        Err(error) => {
            let error = match model_fix(info, &error) {
                Some(fix) => error.with_hint(fix),
                None => error,
            };
            add_failed("tool_call", &error, report)?;
            report.skip_rest(&["streaming"], "not checked until the tool call works");
            return Ok(());
        }
    }
    if !run.options.stream {
        report.skip_rest(&["streaming"], "--no-stream: streaming is off");
        return Ok(());
    }
    match trial::streaming(endpoint, cancellation, &mut |event| report.show_event(&event)) {
        Ok(check) => report.add(check),
        Err(error) => add_failed("streaming", &error, report)?,
    }
    Ok(())
}

/// Adds a check that failed with this error. No check is made after an interrupt or at the time
/// limit.
fn add_failed(name: &'static str, error: &Error, report: &mut DoctorReport<'_>) -> CheckResult {
    stop_if_interrupted(error)?;
    report.add(DoctorCheck::from_error(name, error));
    match error.kind() {
        ErrorKind::Limit => Err(ChecksEnd::Skipped("the time limit is reached".into())),
        _ => Ok(()),
    }
}

fn stop_if_interrupted(error: &Error) -> CheckResult {
    match error.kind() {
        ErrorKind::Interrupted(_) => Err(ChecksEnd::Interrupted(error.clone())),
        _ => Ok(()),
    }
}

/// The earlier check that a failure of the trial belongs to. The request for the list of models
/// passes even if it is refused, so the trial may be the first to detect a wrong address or proxy.
fn affected_check(error: &Error, listing: &ModelListing) -> Option<&'static str> {
    let is_lasting = !matches!(error.kind(), ErrorKind::Auth | ErrorKind::Temporary);
    let is_listed = matches!(listing, ModelListing::Models(_));
    match error.part()? {
        FailedPart::Route => Some("connection"),
        FailedPart::Address if is_lasting && !is_listed => Some("address"),
        _ => None,
    }
}

/// The remedy for a refusal that the model may have caused.
fn model_fix(info: &EndpointInfo<'_>, error: &Error) -> Option<String> {
    let wanted = &info.endpoint.model;
    let is_of_model = match error.kind() {
        ErrorKind::Endpoint => error.part() == Some(FailedPart::Model) || error.hint().is_none(),
        // Some gateways report an unknown model as overload.
        ErrorKind::Temporary => error.part().is_none(),
        _ => false,
    };
    if let (ModelListing::Models(models), None) = (info.listing, info.listed)
        && is_of_model
        && let Some(near) = text::similar_names(wanted, names(models), 1).first()
    {
        return Some(format!("set LLM_MODEL_NAME to `{near}`"));
    }
    // The check of the model lists similar names.
    (error.part() == Some(FailedPart::Model)).then(|| "correct LLM_MODEL_NAME".into())
}

/// The address of the endpoint, and the proxy.
pub(super) fn address(endpoint: &Endpoint) -> DoctorCheck {
    let url = endpoint.address.chat_completions_url();
    let url = url.split('?').next().unwrap_or_default();
    let network = &endpoint.network;
    let proxy = network.proxy.as_ref().map(ToString::to_string);
    let way = match (&proxy, network.direct_reason) {
        (Some(proxy), _) => format!("through the proxy {proxy}"),
        (None, Some(reason)) => format!("direct ({reason})"),
        (None, None) => "direct".into(),
    };
    let origin = endpoint.sources.address.to_string();
    let check = DoctorCheck::ok("address", format!("{url}, {way}, from {origin}"));
    check.with_detail("url", url).with_detail("proxy", proxy).with_detail("origin", origin)
}

fn connection(endpoint: &Endpoint, listing: &ModelListing, took: u64) -> DoctorCheck {
    let trust =
        if endpoint.address.is_encrypted() { ", encrypted, certificate trusted" } else { "" };
    let check = match listing {
        ModelListing::NoAnswer(reason) => DoctorCheck::warning(
            "connection",
            format!("connected{trust}, but {reason}"),
            "check whether the server is busy; for a slow one, raise LLM_TIMEOUT_SECONDS",
        ),
        _ => DoctorCheck::ok("connection", format!("answered after {took} ms{trust}")),
    };
    check.with_detail("duration_ms", took)
}

/// The check of the credentials. The trial decides: some endpoints list their models without a
/// key, others refuse the list to a key that is valid for everything else.
fn credentials(endpoint: &Endpoint, listing: &ModelListing, error: Option<&Error>) -> DoctorCheck {
    const NAME: &str = "credentials";
    let origin = endpoint.sources.credentials_text();
    let accepted = |part: &str| {
        let message = match &origin {
            Some(origin) => format!("accepted{part}, from {origin}"),
            None => format!("none sent, none needed{part}"),
        };
        DoctorCheck::ok(NAME, message).with_detail("origin", origin.clone())
    };
    match (error, listing) {
        (Some(error), _) if error.kind() == ErrorKind::Auth => DoctorCheck::from_error(NAME, error),
        (None, _) => accepted(""),
        (Some(_), ModelListing::Models(_)) => accepted(" for the list of models"),
        (Some(_), ModelListing::Refused(error)) => DoctorCheck::from_error(NAME, error),
        (Some(_), _) => {
            DoctorCheck::skipped(NAME, "unknown: the request failed for another reason")
        }
    }
}

fn model(info: &EndpointInfo<'_>) -> DoctorCheck {
    const NAME: &str = "model";
    let EndpointInfo { endpoint, listing, listed, server } = *info;
    let wanted = &endpoint.model;
    let models = match listing {
        ModelListing::Models(models) => models,
        ModelListing::Refused(_) => {
            let reason = format!("`{wanted}`; these credentials cannot list the models");
            return DoctorCheck::skipped(NAME, reason);
        }
        ModelListing::Unavailable(reason) | ModelListing::NoAnswer(reason) => {
            return DoctorCheck::skipped(NAME, format!("`{wanted}`; {reason}"));
        }
    };
    let count = models.len();
    if let Some(listed) = listed {
        let message = match endpoint.sources.model {
            Some(_) => format!("`{}` is listed, one of {count}", listed.name),
            None => format!("`{}`, {ONLY_MODEL}", listed.name),
        };
        return DoctorCheck::ok(NAME, message).with_detail("listed", count);
    }
    let unlisted = UnlistedModel::new(wanted, models, server);
    let (message, fix) = (unlisted.message, unlisted.fix);
    let check = match server {
        ServerKind::Ollama => DoctorCheck::failure(NAME, ErrorKind::Endpoint, message, fix),
        _ => DoctorCheck::warning(NAME, message, fix),
    };
    check.with_detail("listed", count).with_detail("near", unlisted.near)
}

fn context(window: ContextWindow, server: ServerKind) -> DoctorCheck {
    const NAME: &str = "context";
    let least = limits::CONTEXT_TOKENS_RECOMMENDED;
    let fix = match server {
        ServerKind::Ollama => {
            format!("restart Ollama: `OLLAMA_CONTEXT_LENGTH={least} ollama serve`")
        }
        ServerKind::LlamaCpp => format!("start llama.cpp's server with `-c {least}`"),
        ServerKind::Other => {
            "serve the model with a larger context (vLLM: --max-model-len), or use another model"
                .into()
        }
    };
    match (window, server) {
        (ContextWindow::Served(tokens), _) if tokens < least => {
            let message =
                format!("{} tokens: too few for skills and their results", group_digits(tokens));
            DoctorCheck::warning(NAME, message, fix).with_detail("tokens", tokens)
        }
        (ContextWindow::Served(tokens), _) => {
            DoctorCheck::ok(NAME, format!("{} tokens", group_digits(tokens)))
                .with_detail("tokens", tokens)
        }
        (_, ServerKind::Ollama) => {
            let message = "unknown; by default Ollama may use as little as 4,096 tokens";
            DoctorCheck::warning(NAME, message, fix)
        }
        (ContextWindow::Trained(tokens), _) => {
            let message =
                format!("unknown; the model was trained for {} tokens", group_digits(tokens));
            DoctorCheck::skipped(NAME, message)
        }
        (ContextWindow::Unknown, _) => DoctorCheck::skipped(NAME, "unknown"),
    }
}
