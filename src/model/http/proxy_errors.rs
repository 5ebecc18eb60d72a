//! Errors that a proxy itself reports.

use std::io;

use ureq::http::StatusCode;

use crate::error::ErrorKind;
use crate::model::http::connect_error::ConnectError;
use crate::model::http::peer::Peer;

pub(super) const ADD_LOGIN_HINT: &str =
    "add user and password to the proxy's address: http://user:password@host:port";

pub(super) const CHECK_LOGIN_HINT: &str =
    "check user and password in the proxy's address; a character such as @ is written as %40 there";

/// Returns the error for a lost connection.
pub(super) fn connection_lost(peer: &Peer, error: &io::Error) -> ConnectError {
    ConnectError::transient(format!("the connection to {peer} failed: {error}"))
}

/// Parses the status in the first line of a response.
pub(super) fn parse_status(head: &str) -> Option<StatusCode> {
    let code = head.strip_prefix("HTTP/1.")?.split_whitespace().nth(1)?;
    StatusCode::from_bytes(code.as_bytes()).ok()
}

/// Returns the error for status 407: the proxy requires a login, requires another kind of login, or
/// refused this one.
pub(super) fn login_error(peer: &Peer, head: &str, has_login: bool) -> ConnectError {
    let offers: Vec<&str> = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .filter(|(name, _)| name.eq_ignore_ascii_case("proxy-authenticate"))
        .filter_map(|(_, value)| value.split_whitespace().next())
        .collect();
    let offers_basic = offers.is_empty() || offers.iter().any(|o| o.eq_ignore_ascii_case("basic"));
    let text = "status 407 Proxy Authentication Required";
    let (cause, hint) = match (offers_basic, has_login) {
        (false, _) => (
            "requires a kind of login that this program does not support",
            "only Basic is supported; a local proxy in between can add other kinds",
        ),
        (true, false) => ("requires a login", ADD_LOGIN_HINT),
        (true, true) => ("refused the login", CHECK_LOGIN_HINT),
    };
    ConnectError::new(ErrorKind::Auth, format!("{peer} {cause}: {text}")).with_hint(hint)
}
