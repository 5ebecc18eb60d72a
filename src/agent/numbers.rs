//! Numbers of an answer that nothing shows: a small model calculates in its head, and is wrong.

use crate::conversation::Conversation;
use crate::message::Message;

/// The first number of an answer that nothing before it shows, not even with more decimals: no
/// message of the user or the system, no result, no argument of a call, no earlier answer. Numbers of
/// one digit are let pass.
pub(super) fn unknown_number(answer: &str, conversation: &Conversation) -> Option<String> {
    let shown: Vec<String> = conversation.messages().iter().flat_map(numbers_of_message).collect();
    let mut unknown = numbers(answer).filter(|number| number.len() > 1 && !shown.contains(number));
    unknown.find(|number| !shown.iter().any(|it| rounds_to(it, number)))
}

fn numbers_of_message(message: &Message) -> Vec<String> {
    match message {
        Message::Assistant(message) if message.calls.is_empty() => {
            numbers(&message.content).collect()
        }
        Message::Assistant(message) => {
            message.calls.iter().flat_map(|call| numbers(&call.arguments)).collect()
        }
        Message::System(text) => numbers(text).collect(),
        Message::User(question) => numbers(&question.full_text()).collect(),
        Message::Tool(result) => numbers(&result.full_text()).collect(),
    }
}

/// The numbers in a text, without marks between thousands and zeros at the end of decimals.
fn numbers(text: &str) -> impl Iterator<Item = String> {
    let is_part = |c: char| c.is_ascii_digit() || c == '.' || c == ',';
    text.split(move |c| !is_part(c)).filter_map(|part| {
        let number = part.trim_matches(['.', ',']).replace(',', "");
        let number = if number.contains('.') {
            number.trim_end_matches('0').trim_end_matches('.')
        } else {
            &number
        };
        number.contains(|c: char| c.is_ascii_digit()).then(|| number.to_string())
    })
}

/// Whether a number is another one, rounded to fewer decimals.
fn rounds_to(exact: &str, rounded: &str) -> bool {
    let decimals = |number: &str| number.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let difference = match (exact.parse::<f64>(), rounded.parse::<f64>()) {
        (Ok(exact), Ok(rounded)) => (exact - rounded).abs(),
        _ => return false,
    };
    let places = i32::try_from(decimals(rounded)).unwrap_or(i32::MAX);
    decimals(exact) > decimals(rounded) && difference <= 0.5 * 10_f64.powi(-places)
}
