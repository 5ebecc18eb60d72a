//! A request as those who answer it see it, and what they answer with.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::era::{Era, Meta, Reply};
use super::rpc::{Fault, Request};

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

/// What a call of a tool and the choice of a prompt say.
#[derive(Deserialize)]
pub struct Named<'l> {
    /// Of the tool or the prompt.
    #[serde(borrow)]
    pub name: Cow<'l, str>,
    /// Any JSON: whoever has the name judges them.
    #[serde(borrow)]
    pub arguments: Option<&'l RawValue>,
}

impl<'l> Asked<'_, 'l> {
    /// What is named, and with which arguments.
    pub fn named(&self) -> Result<Named<'l>, Fault> {
        self.request.params()
    }
}
