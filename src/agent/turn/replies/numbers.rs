//! Numbers of an answer that nothing shows: a small model calculates in its head, and is wrong.

use crate::conversation::Conversation;
use base::message::Message;

/// The first number of an answer that nothing before it shows, not even with more decimals: no
/// message of the user or the system, no result, no earlier answer. What a result only repeats from
/// an argument of a call, the model has invented. Numbers of one digit are let pass.
pub(super) fn unknown_number(answer: &str, conversation: &Conversation) -> Option<String> {
    let (mut shown, mut invented) = (Vec::new(), Vec::new());
    for message in conversation.messages() {
        let mut new = numbers_of_message(message);
        match message {
            Message::Assistant(it) if !it.calls.is_empty() => {
                invented.extend(new.extract_if(.., |number| !shown.contains(number)));
            }
            Message::Tool(_) => new.retain(|number| !invented.contains(number)),
            _ => {}
        }
        shown.extend(new);
    }
    let mut unknown = numbers(answer).filter(|number| number.len() > 1 && !shown.contains(number));
    unknown.find(|number| !shown.iter().any(|it| rounds_to(it, number)))
}

/// Whether a text is a table: its last lines have the same number of separators.
pub(in crate::turn) fn is_table(text: &str) -> bool {
    let mut columns =
        text.trim_end().lines().rev().map(|line| line.matches([',', ';', '\t']).count());
    let last = columns.next().unwrap_or_default();
    let rows = columns.take(TABLE_ROWS).take_while(|count| *count == last).count();
    last > 0 && rows == TABLE_ROWS
}

/// The rows of a table that are compared with the last one.
const TABLE_ROWS: usize = 3;

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
