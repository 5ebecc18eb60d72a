//! What a proxy says of itself, in the words of the house.

use std::io;

use ureq::http::StatusCode;

use crate::error::ErrorKind;
use crate::model::http::connect_error::ConnectError;
use crate::model::http::peer::Peer;

pub(super) const LOGIN_HINT: &str =
    "write user and password into the proxy's address: http://user:password@host:port";

pub(super) const CHECK_HINT: &str =
    "check user and password in the proxy's address; a character such as @ is written as %40 there";

/// The connection broke.
pub(super) fn lost(party: &Peer, error: &io::Error) -> ConnectError {
    ConnectError::passing(format!("the connection to {party} failed: {error}"))
}

/// The status in the first line of an answer.
pub(super) fn status_of(head: &str) -> Option<StatusCode> {
    let code = head.strip_prefix("HTTP/1.")?.split_whitespace().nth(1)?;
    StatusCode::from_bytes(code.as_bytes()).ok()
}

/// 407: what kind of login it wants, or that it does not take this one.
pub(super) fn wants_login(party: &Peer, head: &str, has_login: bool) -> ConnectError {
    let offers: Vec<&str> = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .filter(|(name, _)| name.eq_ignore_ascii_case("proxy-authenticate"))
        .filter_map(|(_, value)| value.split_whitespace().next())
        .collect();
    let knows_basic = offers.is_empty() || offers.iter().any(|o| o.eq_ignore_ascii_case("basic"));
    let text = "status 407 Proxy Authentication Required";
    let (cause, hint) = match (knows_basic, has_login) {
        (false, _) => (
            "wants a kind of login that this program does not have",
            "it can only do Basic; a small proxy of your own in between can do the rest",
        ),
        (true, false) => ("wants a login", LOGIN_HINT),
        (true, true) => ("refused the login", CHECK_HINT),
    };
    ConnectError::lasting(ErrorKind::Auth, format!("{party} {cause}: {text}")).with_hint(hint)
}
