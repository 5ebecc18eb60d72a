//! The checks of the endpoint: connection, credentials, model and context window.

use std::time::Instant;

use crate::address::Address;
use crate::cli::doctor::report::{DoctorCheck, DoctorReport};
use crate::cli::doctor::trial;
use crate::cli::model_lookup::{UnlistedModel, names};
use crate::cli::run::Run;
use crate::config::Endpoint;
use crate::error::{Error, ErrorKind, FailedPart, Result};
use crate::event::Event;
use crate::limits;
use crate::model::http::{
    ContextWindow, EndpointQuery, ListedModel, ModelListing, ServerKind, find_model,
};
use crate::settings::{self, Settings};
use crate::text::{self, group_digits};
use crate::tool::milliseconds;
use crate::world::output::Output;

/// The checks that need an endpoint, in their order.
pub(super) const CHECKS: [&str; 7] =
    ["address", "connection", "credentials", "model", "tool_call", "streaming", "context"];

/// The properties of an endpoint that are known before the trial.
struct EndpointInfo<'t> {
    endpoint: &'t Endpoint,
    listing: &'t ModelListing,
    /// The entry of the configured model.
    listed: Option<&'t ListedModel>,
    server: ServerKind,
}

/// Runs the checks of the endpoint, except its address. An error means that the run must stop.
pub(super) fn examine(
    endpoint: &Endpoint,
    run: &Run,
    report: &mut DoctorReport,
    output: &mut Output,
) -> Result<()> {
    let query = EndpointQuery::new(endpoint.clone(), run.cancellation.clone());
    let start = Instant::now();
    let listing = match query.list_models(&mut |event| show_event(&event, output)) {
        Ok(listing) => listing,
        Err(error) => {
            report.add(DoctorCheck::from_error("connection", &unless_interrupted(error)?), output);
            report.skip(&CHECKS[2..], "there is no connection", output);
            return Ok(());
        }
    };
    let took = milliseconds(start.elapsed());
    report.add(connection(endpoint, &listing, took), output);
    let models = match &listing {
        ModelListing::Models(models) => models.as_slice(),
        _ => &[],
    };
    let server = match query.server_kind(models, &mut |event| show_event(&event, output)) {
        Ok(server) => server,
        Err(error) => {
            stop_at_deadline(failed_check(error, 2)?, 2, report, output);
            return Ok(());
        }
    };
    let listed = find_model(models, &endpoint.model, server);
    if server == ServerKind::Ollama
        && listed.is_none()
        && matches!(listing, ModelListing::Models(_))
    {
        report.add(credentials(endpoint, &listing, None), output);
        report.add(model(endpoint, &listing, listed, server), output);
        report.skip(&CHECKS[4..], "not checked until the model is found", output);
        return Ok(());
    }
    let info = EndpointInfo { endpoint, listing: &listing, listed, server };
    let should_continue = run_trials(&info, run, report, output)?;
    if !should_continue {
        return Ok(());
    }
    match query.context_window(server, listed, &mut |event| show_event(&event, output)) {
        Ok(window) => report.add(context(window, server), output),
        Err(error) => stop_at_deadline(failed_check(error, 6)?, 6, report, output),
    }
    Ok(())
}

/// Tries a tool call and a stream, and adds the checks that depend on the tool call. Returns
/// false if the remaining checks were skipped.
fn run_trials(
    info: &EndpointInfo<'_>,
    run: &Run,
    report: &mut DoctorReport,
    output: &mut Output,
) -> Result<bool> {
    let (endpoint, listing) = (info.endpoint, info.listing);
    announce(endpoint, report, output);
    let trial =
        trial::tool_call(endpoint, &run.cancellation, &mut |event| show_event(&event, output));
    let error = trial.error.map(unless_interrupted).transpose()?;
    if let Some(error) = &error
        && let Some(name) = affected_check(error, listing)
    {
        report.add_failure_to(name, error, output);
        report.skip(&CHECKS[2..], &format!("not checked until the {name} works"), output);
        return Ok(false);
    }
    report.add(credentials(endpoint, listing, error.as_ref()), output);
    report.add(model(endpoint, listing, info.listed, info.server), output);
    match error.as_ref().map(Error::kind) {
        Some(ErrorKind::Auth) => {
            report.skip(&CHECKS[4..], "not checked until the credentials are accepted", output);
            return Ok(false);
        }
        Some(ErrorKind::Limit) => {
            stop_at_deadline(trial.check, 4, report, output);
            return Ok(false);
        }
        _ => {
            let fix = error.as_ref().and_then(|error| model_fix(info, error));
            let check = match fix {
                Some(fix) => trial.check.with_fix(fix),
                None => trial.check,
            };
            report.add(check, output);
        }
    }
    if error.is_some() {
        report.skip(&CHECKS[5..6], "not checked until the tool call works", output);
    } else if !run.options.stream {
        report.skip(&CHECKS[5..6], "--no-stream: streaming is off", output);
    } else {
        let trial =
            trial::streaming(endpoint, &run.cancellation, &mut |event| show_event(&event, output));
        let error = trial.error.map(unless_interrupted).transpose()?;
        if error.is_some_and(|error| error.kind() == ErrorKind::Limit) {
            stop_at_deadline(trial.check, 5, report, output);
            return Ok(false);
        }
        report.add(trial.check, output);
    }
    Ok(true)
}

const TIME_OVER: &str = "the time limit is reached";

/// Passes on an interrupt; any other error is a result of a check.
fn unless_interrupted(error: Error) -> Result<Error> {
    match error.kind() {
        ErrorKind::Interrupted(_) => Err(error),
        _ => Ok(error),
    }
}

/// The check number `index`, failed with this error.
fn failed_check(error: Error, index: usize) -> Result<DoctorCheck> {
    Ok(DoctorCheck::from_error(CHECKS[index], &unless_interrupted(error)?))
}

/// Adds check number `index`, during which the time limit was reached, and skips the rest.
fn stop_at_deadline(
    check: DoctorCheck,
    index: usize,
    report: &mut DoctorReport,
    output: &mut Output,
) {
    report.add(check, output);
    report.skip(&CHECKS[index + 1..], TIME_OVER, output);
}

/// Shows requests and retries, but not the text of the model.
fn show_event(event: &Event<'_>, output: &mut Output) {
    if !matches!(event, Event::Text(_) | Event::Reasoning(_) | Event::MessageEnd { .. }) {
        output.show(event);
    }
}

/// Announces the trial on a terminal, as it may take long.
fn announce(endpoint: &Endpoint, report: &DoctorReport, output: &mut Output) {
    if output.is_on_terminal() && !report.is_json() {
        let model = &endpoint.model;
        output.note(&format!(
            "requesting a tool call from `{model}`; loading the model may take a while"
        ));
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

/// The remedy for a refusal that an unlisted model may have caused.
fn model_fix(info: &EndpointInfo<'_>, error: &Error) -> Option<String> {
    let (ModelListing::Models(models), None) = (info.listing, info.listed) else {
        return None;
    };
    let wanted = &info.endpoint.model;
    let is_of_model = match error.kind() {
        ErrorKind::Endpoint => error.part() == Some(FailedPart::Model) || error.hint().is_none(),
        // Some gateways report an unknown model as overload.
        ErrorKind::Temporary => error.message().contains(wanted),
        _ => false,
    };
    let near = text::similar_names(wanted, names(models), 1);
    let near = near.first().filter(|_| is_of_model)?;
    Some(format!("set LLM_MODEL_NAME to `{near}`"))
}

/// The address of the endpoint, and the proxy.
pub(super) fn address(endpoint: &Endpoint, settings: &Settings) -> DoctorCheck {
    let url = endpoint.address.chat_completions_url();
    let url = url.split('?').next().unwrap_or_default();
    let proxy = endpoint.network.proxy.as_ref().map(ToString::to_string);
    let way = match &proxy {
        Some(proxy) => format!("through the proxy {proxy}"),
        None => match no_proxy_reason(&endpoint.address, settings) {
            Some(reason) => format!("direct ({reason})"),
            None => "direct".into(),
        },
    };
    let check = DoctorCheck::ok("address", format!("{url}, {way}"));
    check.with_detail("url", url).with_detail("proxy", proxy)
}

/// The reason why no proxy is used although one is set.
fn no_proxy_reason(address: &Address, settings: &Settings) -> Option<&'static str> {
    let is_set = |name| {
        let value = settings.value(name);
        value.is_some_and(|(value, _)| !value.to_string_lossy().trim().is_empty())
    };
    let [https, http, all] =
        [settings::HTTPS_PROXY, settings::HTTP_PROXY, settings::ALL_PROXY].map(is_set);
    let (own, lack) = if address.is_encrypted() {
        (https, "no proxy for https is set")
    } else {
        (http, "no proxy for http is set")
    };
    match (https || http || all, own || all) {
        (false, _) => None,
        _ if address.is_loopback() => Some("loopback"),
        (true, true) => Some(settings::NO_PROXY),
        (true, false) => Some(lack),
    }
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
    let accepted = if endpoint.key.is_some() || !endpoint.extra_headers.is_empty() {
        "accepted"
    } else {
        "none sent, none needed"
    };
    match (error, listing) {
        (Some(error), _) if error.kind() == ErrorKind::Auth => DoctorCheck::from_error(NAME, error),
        (None, _) => DoctorCheck::ok(NAME, accepted),
        (Some(_), ModelListing::Models(_)) => {
            DoctorCheck::ok(NAME, format!("{accepted} for the list of models"))
        }
        (Some(_), ModelListing::Refused(error)) => DoctorCheck::from_error(NAME, error),
        (Some(_), _) => {
            DoctorCheck::skipped(NAME, "unknown: the request failed for another reason")
        }
    }
}

fn model(
    endpoint: &Endpoint,
    listing: &ModelListing,
    listed: Option<&ListedModel>,
    server: ServerKind,
) -> DoctorCheck {
    const NAME: &str = "model";
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
        let message = format!("`{}` is listed, one of {count}", listed.name);
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
