//! What `doctor` looks at over the network: the way to the endpoint, the
//! credentials, the model.

use std::time::Instant;

use crate::address::Address;
use crate::cli::doctor::report::{DoctorCheck, DoctorReport};
use crate::cli::doctor::trial;
use crate::cli::model_lookup::{UnlistedModel, names};
use crate::cli::setup::Run;
use crate::config::Endpoint;
use crate::error::{Error, ErrorKind, Result};
use crate::event::Event;
use crate::limits;
use crate::model::http::{
    ContextWindow, EndpointQuery, ListedModel, ModelListing, ServerKind, find,
};
use crate::settings::{self, Settings};
use crate::text::{self, grouped};
use crate::tool::milliseconds;
use crate::world::output::Output;

/// The checks that need an endpoint, in their order.
pub(super) const CHECKS: [&str; 7] =
    ["address", "connection", "credentials", "model", "tool_call", "streaming", "context"];

/// What an endpoint tells of itself before it is given work.
struct EndpointInfo<'t> {
    endpoint: &'t Endpoint,
    listing: &'t ModelListing,
    /// The entry of the configured model.
    listed: Option<&'t ListedModel>,
    server: ServerKind,
}

/// Looks at the endpoint, whose address has been told. An error: the run is to stop at once.
pub(super) fn examine(
    endpoint: &Endpoint,
    run: &Run,
    report: &mut DoctorReport,
    output: &mut Output,
) -> Result<()> {
    let inquiry = EndpointQuery::new(endpoint.clone(), run.cancellation.clone());
    let start = Instant::now();
    let listing = match inquiry.models(&mut |event| tell(&event, output)) {
        Ok(listing) => listing,
        Err(error) => {
            report.add(DoctorCheck::failed("connection", &lasting(error)?), output);
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
    let server = match inquiry.server(models, &mut |event| tell(&event, output)) {
        Ok(server) => server,
        Err(error) => {
            give_up(failed(error, 2)?, 2, report, output);
            return Ok(());
        }
    };
    let listed = find(models, &endpoint.model, server);
    if server == ServerKind::Ollama
        && listed.is_none()
        && matches!(listing, ModelListing::Models(_))
    {
        report.add(credentials(endpoint, &listing, None), output);
        report.add(model(endpoint, &listing, listed, server), output);
        report.skip(&CHECKS[4..], "the model comes first", output);
        return Ok(());
    }
    let told = EndpointInfo { endpoint, listing: &listing, listed, server };
    let goes_on = try_out(&told, run, report, output)?;
    if !goes_on {
        return Ok(());
    }
    match inquiry.window(server, listed, &mut |event| tell(&event, output)) {
        Ok(window) => report.add(context(window, server), output),
        Err(error) => give_up(failed(error, 6)?, 6, report, output),
    }
    Ok(())
}

/// The tool call, what it tells of the checks before it, and the stream.
/// False: what follows has been skipped.
fn try_out(
    told: &EndpointInfo<'_>,
    run: &Run,
    report: &mut DoctorReport,
    output: &mut Output,
) -> Result<bool> {
    let (endpoint, listing) = (told.endpoint, told.listing);
    announce(endpoint, report, output);
    let trial = trial::tool_call(endpoint, &run.cancellation, &mut |event| tell(&event, output));
    let error = trial.error.map(lasting).transpose()?;
    if let Some(error) = &error
        && let Some(name) = way_fault(error, listing)
    {
        report.fail(name, error, output);
        report.skip(&CHECKS[2..], &format!("the {name} comes first"), output);
        return Ok(false);
    }
    report.add(credentials(endpoint, listing, error.as_ref()), output);
    report.add(model(endpoint, listing, told.listed, told.server), output);
    match error.as_ref().map(Error::kind) {
        Some(ErrorKind::Auth) => {
            report.skip(&CHECKS[4..], "the credentials come first", output);
            return Ok(false);
        }
        Some(ErrorKind::Limit) => {
            give_up(trial.check, 4, report, output);
            return Ok(false);
        }
        _ => {
            let fix = error.as_ref().and_then(|error| model_fix(told, error));
            let check = match fix {
                Some(fix) => trial.check.with_fix(fix),
                None => trial.check,
            };
            report.add(check, output);
        }
    }
    if error.is_some() {
        report.skip(&CHECKS[5..6], "the call of a tool comes first", output);
    } else if !run.typed.stream {
        report.skip(&CHECKS[5..6], "--no-stream: whole answers are asked for", output);
    } else {
        let trial =
            trial::streaming(endpoint, &run.cancellation, &mut |event| tell(&event, output));
        let error = trial.error.map(lasting).transpose()?;
        if error.is_some_and(|error| error.kind() == ErrorKind::Limit) {
            give_up(trial.check, 5, report, output);
            return Ok(false);
        }
        report.add(trial.check, output);
    }
    Ok(true)
}

const TIME: &str = "the time is over";

/// A signal ends everything; any other error is something that was found.
fn lasting(error: Error) -> Result<Error> {
    match error.kind() {
        ErrorKind::Interrupted(_) => Err(error),
        _ => Ok(error),
    }
}

/// What check number `index` failed with.
fn failed(error: Error, index: usize) -> Result<DoctorCheck> {
    Ok(DoctorCheck::failed(CHECKS[index], &lasting(error)?))
}

/// The time is over in the middle of check number `index`.
fn give_up(check: DoctorCheck, index: usize, report: &mut DoctorReport, output: &mut Output) {
    report.add(check, output);
    report.skip(&CHECKS[index + 1..], TIME, output);
}

/// Requests and retries are told as ever; what the model says is not the report.
fn tell(event: &Event<'_>, output: &mut Output) {
    if !matches!(event, Event::Text(_) | Event::Reasoning(_) | Event::MessageEnd { .. }) {
        output.show(event);
    }
}

/// A person at a terminal wants to know why nothing happens.
fn announce(endpoint: &Endpoint, report: &DoctorReport, output: &mut Output) {
    if output.is_on_terminal() && !report.is_json() {
        let model = &endpoint.model;
        output.note(&format!("asking `{model}` to call a tool; to load it may take a while"));
    }
}

/// The check that a failure belongs to which is that of the way to the
/// endpoint and not of the request: the trial is the first to meet it where
/// the list of models, which need not be there, is refused for the same reason.
fn way_fault(error: &Error, listing: &ModelListing) -> Option<&'static str> {
    let hint = error.hint()?;
    if hint.starts_with("the proxy ") || hint.contains("client certificate") {
        return Some("connection");
    }
    let is_lasting = !matches!(error.kind(), ErrorKind::Auth | ErrorKind::Temporary);
    let is_listed = matches!(listing, ModelListing::Models(_));
    let is_address = hint.contains(settings::LLM_API_BASE_URL);
    (is_address && is_lasting && !is_listed).then_some("address")
}

/// What to do about a refusal that may be that of a model which is not listed.
fn model_fix(told: &EndpointInfo<'_>, error: &Error) -> Option<String> {
    let (ModelListing::Models(models), None) = (told.listing, told.listed) else {
        return None;
    };
    let wanted = &told.endpoint.model;
    let is_of_model = match (error.kind(), error.hint()) {
        (ErrorKind::Endpoint, hint) => {
            hint.is_none_or(|hint| hint.contains("check LLM_MODEL_NAME"))
        }
        // Gateways that know of nobody who serves it say that they are busy.
        (ErrorKind::Temporary, hint) => {
            let is_known = hint.is_some_and(|hint| !hint.ends_with("try again later"));
            !is_known && error.message().contains(wanted)
        }
        _ => false,
    };
    let near = text::nearest(wanted, names(models), 1);
    let near = near.first().filter(|_| is_of_model)?;
    Some(format!("set LLM_MODEL_NAME to `{near}`"))
}

/// The endpoint's address, and the way there.
pub(super) fn address(endpoint: &Endpoint, settings: &Settings) -> DoctorCheck {
    let url = endpoint.address.chat_completions();
    let url = url.split('?').next().unwrap_or_default();
    let proxy = endpoint.network.proxy.as_ref().map(ToString::to_string);
    let way = match &proxy {
        Some(proxy) => format!("through the proxy {proxy}"),
        None => match without_proxy(&endpoint.address, settings) {
            Some(reason) => format!("direct ({reason})"),
            None => "direct".into(),
        },
    };
    let check = DoctorCheck::ok("address", format!("{url}, {way}"));
    check.with("url", url).with("proxy", proxy)
}

/// Why no proxy is used although one is set.
fn without_proxy(address: &Address, settings: &Settings) -> Option<&'static str> {
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
        ModelListing::Silent(reason) => DoctorCheck::warning(
            "connection",
            format!("connected{trust}, but {reason}"),
            "see whether the server is busy; a slow one needs a larger LLM_TIMEOUT_SECONDS",
        ),
        _ => DoctorCheck::ok("connection", format!("answered after {took} ms{trust}")),
    };
    check.with("duration_ms", took)
}

/// The trial decides: some endpoints list their models to anybody, others
/// refuse that list to a key that is good for everything else.
fn credentials(endpoint: &Endpoint, listing: &ModelListing, error: Option<&Error>) -> DoctorCheck {
    const NAME: &str = "credentials";
    let accepted = if endpoint.key.is_some() || !endpoint.extra_headers.is_empty() {
        "accepted"
    } else {
        "none are sent, and none are wanted"
    };
    match (error, listing) {
        (Some(error), _) if error.kind() == ErrorKind::Auth => DoctorCheck::failed(NAME, error),
        (None, _) => DoctorCheck::ok(NAME, accepted),
        (Some(_), ModelListing::Models(_)) => {
            DoctorCheck::ok(NAME, format!("{accepted}, as far as the list of models goes"))
        }
        (Some(_), ModelListing::Refused(error)) => DoctorCheck::failed(NAME, error),
        (Some(_), _) => {
            DoctorCheck::skipped(NAME, "not told: the request failed for another reason")
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
            let reason = format!("`{wanted}`; the list of models is refused to these credentials");
            return DoctorCheck::skipped(NAME, reason);
        }
        ModelListing::Untold(reason) | ModelListing::Silent(reason) => {
            return DoctorCheck::skipped(NAME, format!("`{wanted}`; {reason}"));
        }
    };
    let count = models.len();
    if let Some(listed) = listed {
        let message = format!("`{}` is listed, one of {count}", listed.name);
        return DoctorCheck::ok(NAME, message).with("listed", count);
    }
    let unlisted = UnlistedModel::new(wanted, models, server);
    let (message, fix) = (unlisted.message, unlisted.fix);
    let check = match server {
        ServerKind::Ollama => DoctorCheck::failure(NAME, ErrorKind::Endpoint, message, fix),
        _ => DoctorCheck::warning(NAME, message, fix),
    };
    check.with("listed", count).with("near", unlisted.near)
}

fn context(window: ContextWindow, server: ServerKind) -> DoctorCheck {
    const NAME: &str = "context";
    let least = limits::CONTEXT_TOKENS_LEAST;
    let fix = match server {
        ServerKind::Ollama => {
            format!("start Ollama anew: `OLLAMA_CONTEXT_LENGTH={least} ollama serve`")
        }
        ServerKind::LlamaCpp => format!("start llama.cpp's server with `-c {least}`"),
        ServerKind::Other => {
            "serve the model with a larger context (vLLM: --max-model-len), or take another".into()
        }
    };
    match (window, server) {
        (ContextWindow::Served(tokens), _) if tokens < least => {
            let message =
                format!("{} tokens: too few for skills and their results", grouped(tokens));
            DoctorCheck::warning(NAME, message, fix).with("tokens", tokens)
        }
        (ContextWindow::Served(tokens), _) => {
            DoctorCheck::ok(NAME, format!("{} tokens", grouped(tokens))).with("tokens", tokens)
        }
        (_, ServerKind::Ollama) => {
            let message = "not told; unless it is set, Ollama may serve as little as 4,096 tokens";
            DoctorCheck::warning(NAME, message, fix)
        }
        (ContextWindow::Trained(tokens), _) => {
            let message = format!("not told; the model was made for {} tokens", grouped(tokens));
            DoctorCheck::skipped(NAME, message)
        }
        (ContextWindow::Unknown, _) => DoctorCheck::skipped(NAME, "not told"),
    }
}
