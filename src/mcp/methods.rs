//! What can be asked: one table, which also says in which era.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Server;
use super::era::{Era, Meta, Reply};
use super::rpc::{Fault, METHOD_NOT_FOUND, Request};
use super::{calls, lifecycle, prompts, resources, skills};
use crate::limits;
use crate::text;

/// A result, or why there is none.
pub type Answer = Result<Reply, Fault>;

/// A request with what it says of itself.
pub struct Asked<'a, 'l> {
    /// The request.
    pub request: &'a Request<'l>,
    /// Which rules it goes by.
    pub era: Era,
    /// What it says of itself.
    pub meta: Meta<'l>,
}

impl Asked<'_, '_> {
    /// Wrong, where another page is asked for than the only one.
    pub fn only_page(&self) -> Result<(), Fault> {
        #[derive(Deserialize)]
        struct Params<'l> {
            #[serde(borrow)]
            cursor: Option<&'l RawValue>,
        }
        match self.request.params::<Params<'_>>()?.cursor {
            None => Ok(()),
            Some(_) => Err(Fault::params("there is no such page: ask without `cursor`")),
        }
    }
}

/// What answers; `None`: the answer comes later.
type Handler = fn(&Server<'_>, &Asked<'_, '_>) -> Option<Answer>;

/// A row of the table.
struct Method {
    name: &'static str,
    /// In which eras it exists.
    eras: &'static [Era],
    /// Whether it needs no `initialize` before it.
    comes_first: bool,
    answer: Handler,
}

const BOTH: &[Era] = &[Era::Legacy, Era::Modern];

const fn method(name: &'static str, eras: &'static [Era], answer: Handler) -> Method {
    Method {
        name,
        eras,
        comes_first: false,
        answer,
    }
}

const fn first(name: &'static str, answer: Handler) -> Method {
    Method {
        comes_first: true,
        ..method(name, &[Era::Legacy], answer)
    }
}

static METHODS: &[Method] = &[
    first("initialize", |server, asked| {
        Some(lifecycle::initialize(server, asked))
    }),
    first("ping", |_, _| Some(Ok(lifecycle::ping()))),
    method("server/discover", &[Era::Modern], |server, _| {
        Some(Ok(lifecycle::discover(server)))
    }),
    method("tools/list", BOTH, |server, asked| {
        Some(calls::list(server, asked))
    }),
    method("tools/call", BOTH, calls::call),
    method("prompts/list", BOTH, |server, asked| {
        Some(prompts::list(server, asked))
    }),
    method("prompts/get", BOTH, |server, asked| {
        Some(prompts::get(server, asked))
    }),
    method("resources/list", BOTH, |server, asked| {
        Some(resources::list(server, asked))
    }),
    method("resources/templates/list", BOTH, |_, asked| {
        Some(resources::templates(asked))
    }),
    method("resources/read", BOTH, |server, asked| {
        Some(resources::read(server, asked))
    }),
    method("resources/directory/read", BOTH, |server, asked| {
        Some(resources::read_directory(server, asked))
    }),
    method("skills/list", BOTH, |server, asked| {
        Some(skills::list(server, asked))
    }),
    method("skills/get", BOTH, |server, asked| {
        Some(skills::get(server, asked))
    }),
];

/// Answers a request, and tells by which rules.
pub fn answer(server: &Server<'_>, request: &Request<'_>) -> Option<(Era, Answer)> {
    let unknown = || {
        let method = text::one_line(&request.method, limits::SUMMARY_CHARS);
        Fault::new(METHOD_NOT_FOUND, format!("there is no method `{method}`"))
    };
    let Some(method) = METHODS.iter().find(|method| method.name == request.method) else {
        return Some((Era::Legacy, Err(unknown())));
    };
    let is_initialized =
        method.comes_first || server.is_initialized.get() && method.eras.contains(&Era::Legacy);
    let meta = Meta::of(request).and_then(|meta| Ok((meta.era(is_initialized)?, meta)));
    let (era, meta) = match meta {
        Ok(known) => known,
        Err(fault) => return Some((Era::Legacy, Err(fault))),
    };
    if !method.eras.contains(&era) {
        return Some((era, Err(unknown())));
    }
    let asked = Asked { request, era, meta };
    (method.answer)(server, &asked).map(|answer| (era, answer))
}
