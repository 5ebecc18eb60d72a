//! A conversation and its one invariant: after the system message, user and
//! assistant alternate, and every call has exactly one result, in order,
//! directly after the message that made it. Endpoints refuse everything else,
//! so nothing else can be built here, whatever is interrupted when.

use crate::message::{Assistant, Message};

/// What closes a turn that ended without an answer.
const NO_ANSWER: &str = "(no answer: the turn was interrupted)";

/// Messages in their order.
#[derive(Clone, Debug)]
pub struct Conversation {
    messages: Vec<Message>,
}

impl Conversation {
    /// A conversation under these instructions; none if they are empty.
    pub fn new(instructions: &str) -> Conversation {
        let system = Message::System(instructions.to_string());
        Conversation {
            messages: if system.is_valid() {
                vec![system]
            } else {
                Vec::new()
            },
        }
    }

    /// What has been said.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Adds the person's next message. A question that got no answer is
    /// replaced by it.
    pub fn ask(&mut self, prompt: impl Into<String>) {
        match self.messages.last() {
            Some(Message::User(_)) => {
                self.messages.pop();
            }
            // No user may speak right after a tool: close the turn first.
            Some(Message::Tool { .. }) => self.close(),
            _ => {}
        }
        self.messages.push(Message::User(prompt.into()));
    }

    /// Whether a request would have something to answer: a question, or
    /// results of tools.
    pub fn awaits_answer(&self) -> bool {
        matches!(
            self.messages.last(),
            Some(Message::User(_) | Message::Tool { .. })
        )
    }

    /// Adds what the model said. Its calls wait for their results.
    pub fn answer(&mut self, said: Assistant) {
        let message = Message::Assistant(said);
        if message.is_valid() {
            self.messages.push(message);
        }
    }

    /// Adds the result of the first call that has none yet. Without such a
    /// call nothing happens.
    pub fn add_result(&mut self, content: impl Into<String>) {
        let Some((call_id, name)) = self.next_open_call() else {
            return;
        };
        self.messages.push(Message::Tool {
            call_id,
            name,
            content: content.into(),
        });
    }

    /// Answers every open call with `reason`, as an error for the model.
    pub fn abandon_calls(&mut self, reason: &str) {
        while self.next_open_call().is_some() {
            self.add_result(serde_json::json!({ "error": reason }).to_string());
        }
    }

    /// Ends a turn that will get no answer, so that the next may begin.
    pub fn close(&mut self) {
        self.abandon_calls("interrupted by the user");
        if self.awaits_answer() {
            self.messages.push(Message::assistant(NO_ANSWER));
        }
    }

    /// Forgets everything but the instructions.
    pub fn clear(&mut self) {
        self.messages
            .retain(|message| matches!(message, Message::System(_)));
    }

    /// Cuts the results of tools that are longer than `most` bytes down to their
    /// beginning and end, for an endpoint whose context is full. Returns how
    /// many there were.
    pub fn shorten_results(&mut self, most: usize) -> usize {
        let mut count = 0;
        for message in &mut self.messages {
            if let Message::Tool { content, .. } = message
                && content.len() > most
            {
                let half = most / 2;
                let head = &content[..content.floor_char_boundary(half)];
                let tail = &content[content.ceil_char_boundary(content.len() - half)..];
                let left_out = content.len() - head.len() - tail.len();
                *content =
                    format!("{head}\n[{left_out} bytes left out: the context is full]\n{tail}");
                count += 1;
            }
        }
        count
    }

    fn next_open_call(&self) -> Option<(String, String)> {
        let asked = self
            .messages
            .iter()
            .rposition(|m| !matches!(m, Message::Tool { .. }))?;
        let Message::Assistant(said) = &self.messages[asked] else {
            return None;
        };
        let answered = self.messages.len() - asked - 1;
        said.calls
            .get(answered)
            .map(|call| (call.id.clone(), call.name.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::ToolCall;

    fn calls(ids: &[&str]) -> Assistant {
        let call = |id: &&str| ToolCall {
            id: (*id).into(),
            name: "t".into(),
            ..ToolCall::default()
        };
        Assistant {
            calls: ids.iter().map(call).collect(),
            ..Assistant::default()
        }
    }

    /// One letter a message: s, u, a, c (with calls), t.
    fn shape(conversation: &Conversation) -> String {
        let letter = |message: &Message| match message {
            Message::System(_) => 's',
            Message::User(_) => 'u',
            Message::Assistant(said) if said.calls.is_empty() => 'a',
            Message::Assistant(_) => 'c',
            Message::Tool { .. } => 't',
        };
        conversation.messages().iter().map(letter).collect()
    }

    #[test]
    fn an_unanswered_question_is_replaced() {
        let mut conversation = Conversation::new("s");
        conversation.ask("one");
        conversation.ask("two");
        assert_eq!(shape(&conversation), "su");
        assert_eq!(conversation.messages()[1], Message::User("two".into()));
    }

    #[test]
    fn every_call_gets_one_result_in_order_also_after_an_interrupt() {
        let mut conversation = Conversation::new("");
        conversation.ask("q");
        conversation.answer(calls(&["a", "b", "c"]));
        conversation.add_result("ra");
        conversation.close();
        assert_eq!(shape(&conversation), "ucttta");
        let ids: Vec<&str> = conversation
            .messages()
            .iter()
            .filter_map(|m| match m {
                Message::Tool { call_id, .. } => Some(call_id.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(ids, ["a", "b", "c"]);
        conversation.add_result("too much");
        assert_eq!(shape(&conversation), "ucttta");
        conversation.ask("next");
        assert_eq!(shape(&conversation), "uctttau");
    }

    #[test]
    fn a_question_after_results_closes_the_turn_before() {
        let mut conversation = Conversation::new("s");
        conversation.ask("q");
        conversation.answer(calls(&["a"]));
        conversation.add_result("r");
        assert!(conversation.awaits_answer());
        conversation.ask("other");
        assert_eq!(shape(&conversation), "suctau");
        conversation.clear();
        assert_eq!(shape(&conversation), "s");
    }

    #[test]
    fn an_assistant_that_says_nothing_is_no_message() {
        let mut conversation = Conversation::new("");
        conversation.ask("q");
        conversation.answer(Assistant::default());
        assert_eq!(shape(&conversation), "u");
    }

    #[test]
    fn long_results_are_shortened_once() {
        let mut conversation = Conversation::new("s");
        conversation.ask("q");
        conversation.answer(calls(&["a", "b"]));
        conversation.add_result("é".repeat(600));
        conversation.add_result("short");
        assert_eq!(conversation.shorten_results(101), 1);
        let Message::Tool { content, .. } = &conversation.messages()[3] else {
            panic!("{conversation:?}")
        };
        assert!(
            content.starts_with("éé") && content.ends_with("éé"),
            "{content}"
        );
        assert!(
            content.contains("\n[1100 bytes left out: the context is full]\n"),
            "{content}"
        );
        assert_eq!(conversation.shorten_results(200), 0);
        assert_eq!(
            conversation.messages()[4],
            Message::Tool {
                call_id: "b".into(),
                name: "t".into(),
                content: "short".into(),
            }
        );
    }
}
