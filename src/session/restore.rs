//! Restores a conversation from a session's file. Lines that cannot be read are reported and
//! left out; the rest is repaired to a valid conversation.

use crate::conversation::repair_messages;
use crate::limits;
use crate::message::Message;
use crate::session::record::{HEADER_START, SessionEntry, SessionHeader, parse_entry};

/// A restored session.
#[derive(Debug)]
pub struct RestoredSession {
    /// The header.
    pub header: SessionHeader,
    /// The messages of the conversation.
    pub messages: Vec<Message>,
    /// Whether the request for the last question failed.
    pub has_failed: bool,
    /// Whether the messages were repaired and so differ from the file.
    pub is_repaired: bool,
    /// Descriptions of the first unreadable lines.
    pub line_errors: Vec<String>,
    /// The number of further ones.
    pub more_line_errors: usize,
    /// The length of an incomplete last line.
    pub torn_bytes: usize,
}

impl RestoredSession {
    /// A warning about the unreadable lines, if there are any.
    pub fn damage_warning(&self, name: &str) -> Option<String> {
        if self.line_errors.is_empty() {
            return None;
        }
        let more = match self.more_line_errors {
            0 => String::new(),
            count => format!(" and {count} more"),
        };
        Some(format!(
            "the session `{name}` is damaged: {}{more}; the conversation continues with the rest",
            self.line_errors.join(", ")
        ))
    }
}

/// Restores a session from the bytes of its file; the error is the cause. `None`: the file
/// has no complete header yet.
pub fn restore(bytes: &[u8]) -> Result<Option<RestoredSession>, &'static str> {
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let (lines, torn) = bytes.split_at(whole);
    if lines.is_empty() {
        let (mark, start) = (HEADER_START.as_bytes(), torn.len().min(HEADER_START.len()));
        if torn[..start] == mark[..start] {
            return Ok(None);
        }
        return SessionHeader::parse(torn).map(|_| None);
    }
    let mut lines = lines[..whole - 1].split(|byte| *byte == b'\n');
    let header = SessionHeader::parse(lines.next().unwrap_or_default())?;
    // An unreadable line counts as a message, because most lines add one.
    let mut restored: Vec<Option<Message>> = Vec::new();
    let mut errors = LineErrors::default();
    let mut has_failed = false;
    for (line, number) in lines.zip(2..) {
        let entry = parse_entry(line);
        has_failed = matches!(&entry, Some(SessionEntry::Cut(length)) if *length == restored.len());
        match entry {
            Some(SessionEntry::Added(message)) => {
                restored.push(Some(message));
            }
            Some(SessionEntry::Cut(length)) if length <= restored.len() => {
                restored.truncate(length);
            }
            Some(SessionEntry::Replaced(messages)) => {
                restored = messages.into_iter().map(Some).collect();
            }
            Some(SessionEntry::Cut(length)) => {
                errors.flush_unreadable();
                errors.add(format!(
                    "line {number} keeps {length} messages, but there are {}",
                    restored.len()
                ));
            }
            None => {
                restored.push(None);
                errors.add_unreadable(number);
            }
        }
    }
    errors.flush_unreadable();
    let (messages, is_repaired) = repair_messages(restored);
    Ok(Some(RestoredSession {
        header,
        messages,
        has_failed,
        is_repaired,
        line_errors: errors.shown,
        more_line_errors: errors.more,
        torn_bytes: torn.len(),
    }))
}

/// Collects line errors; adjacent unreadable lines are one error.
#[derive(Default)]
struct LineErrors {
    shown: Vec<String>,
    more: usize,
    /// The first and last line of the current range of unreadable lines.
    unread: Option<(usize, usize)>,
}

impl LineErrors {
    fn add_unreadable(&mut self, line: usize) {
        match &mut self.unread {
            Some((_, last)) if *last + 1 == line => *last = line,
            _ => {
                self.flush_unreadable();
                self.unread = Some((line, line));
            }
        }
    }

    fn flush_unreadable(&mut self) {
        match self.unread.take() {
            Some((first, last)) if first < last => {
                self.add(format!("lines {first}-{last} cannot be read"));
            }
            Some((line, _)) => self.add(format!("line {line} cannot be read")),
            None => {}
        }
    }

    fn add(&mut self, description: String) {
        if self.shown.len() < limits::LISTED_NAMES {
            self.shown.push(description);
        } else {
            self.more += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::conversation::ConversationChange;
    use crate::secret::Secrets;
    use crate::session::record::change_line;

    fn header() -> String {
        let header = SessionHeader {
            id: "i".into(),
            folder: "/f".into(),
            model: "m".into(),
            created: SystemTime::UNIX_EPOCH,
            automatic: None,
        };
        let line = header.to_line(&Secrets::default());
        assert_eq!(SessionHeader::parse(line.trim_end().as_bytes()), Ok(header));
        line
    }

    fn add(message: &Message) -> String {
        change_line(ConversationChange::Added(message), SystemTime::now(), &Secrets::default())
    }

    #[test]
    fn every_beginning_of_a_file_is_a_session() {
        let file = [
            header(),
            add(&Message::user("one")),
            add(&Message::assistant("two")),
            add(&Message::user("three")),
            change_line(ConversationChange::Truncated(2), SystemTime::now(), &Secrets::default()),
            add(&Message::user("four")),
        ]
        .concat();
        for end in 0..=file.len() {
            let bytes = &file.as_bytes()[..end];
            let lines = file[..end].matches('\n').count();
            let restored = restore(bytes).unwrap();
            let count = [0, 0, 1, 2, 3, 2, 3][lines];
            assert_eq!(restored.is_some(), lines > 0, "{end}");
            if let Some(restored) = restored {
                assert_eq!(restored.messages.len(), count, "{end}");
                assert!(restored.line_errors.is_empty() && !restored.is_repaired);
                let whole = file[..end].rfind('\n').unwrap() + 1;
                assert_eq!(restored.torn_bytes, end - whole);
            }
        }
    }

    #[test]
    fn damaged_lines_are_named_and_the_rest_is_a_conversation() {
        let cut =
            change_line(ConversationChange::Truncated(2), SystemTime::now(), &Secrets::default());
        let lines = [
            header(),
            add(&Message::user("one")),
            "\u{0}\u{1}half\n".into(),
            add(&Message::user("two")),
            cut.clone(),
            add(&Message::user("three")),
            cut.replace('2', "9").replace("\"cut\":9", "\"cut\":99"),
        ];
        let restored = restore(lines.concat().as_bytes()).unwrap().unwrap();
        assert_eq!(restored.line_errors.len(), 2, "{:?}", restored.line_errors);
        assert!(restored.line_errors[0].contains("line 3 cannot be read"));
        assert!(restored.is_repaired);
        let messages: Vec<&Message> = restored.messages.iter().collect();
        assert_eq!(messages[0], &Message::user("one"));
        assert!(matches!(messages[1], Message::Assistant(_)), "{messages:?}");
        // The last line may have been its answer.
        assert_eq!(messages[2], &Message::user("three"));
        assert!(matches!(messages[3..], [Message::Assistant(_)]), "{messages:?}");
    }

    #[test]
    fn foreign_and_newer_files_are_refused() {
        for bytes in ["hello\n", "hello", "{}\n", "\n", "{\"format\":\"x\"}\n{}\n"] {
            assert!(restore(bytes.as_bytes()).is_err(), "{bytes:?}");
        }
        let newer = header().replace("\"version\":1", "\"version\":2");
        assert!(restore(newer.as_bytes()).unwrap_err().contains("version"));
        let damaged = header().replace("\"id\":\"i\"", "\"id\":7");
        assert!(restore(damaged.as_bytes()).unwrap_err().contains("damaged"));
        for bytes in ["", "{", &header()[..40]] {
            assert!(restore(bytes.as_bytes()).unwrap().is_none(), "{bytes:?}");
        }
    }
}
