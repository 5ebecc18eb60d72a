//! A session's file read again. What cannot be read is named by its line and
//! left out; what is left is a conversation all the same.

use crate::conversation::repaired;
use crate::limits;
use crate::message::Message;
use crate::session::record::{MARK, SessionEntry, SessionHeader, entry};

/// What a file holds.
#[derive(Debug)]
pub struct RestoredSession {
    /// Its first line.
    pub header: SessionHeader,
    /// What the conversation was, whole.
    pub messages: Vec<Message>,
    /// The request for the last question failed.
    pub has_failed: bool,
    /// The messages are not quite those that the file tells of.
    pub is_mended: bool,
    /// What is wrong with lines, in words; of many only the first.
    pub faults: Vec<String>,
    /// How many more there are.
    pub more_faults: usize,
    /// How many bytes at the end are the beginning of a line only.
    pub torn_bytes: usize,
}

impl RestoredSession {
    /// What is wrong with its lines, in one sentence.
    pub fn told(&self, name: &str) -> Option<String> {
        if self.faults.is_empty() {
            return None;
        }
        let more = match self.more_faults {
            0 => String::new(),
            count => format!(" and {count} more"),
        };
        Some(format!(
            "the session `{name}` is damaged: {}{more}; the conversation goes on with the rest",
            self.faults.join(", ")
        ))
    }
}

/// The conversation that these bytes tell of, or why they are no session.
/// `None` for a file that was only about to become one.
pub fn restore(bytes: &[u8]) -> Result<Option<RestoredSession>, &'static str> {
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let (lines, torn) = bytes.split_at(whole);
    if lines.is_empty() {
        let (mark, start) = (MARK.as_bytes(), torn.len().min(MARK.len()));
        if torn[..start] == mark[..start] {
            return Ok(None);
        }
        return SessionHeader::of(torn).map(|_| None);
    }
    let mut lines = lines[..whole - 1].split(|byte| *byte == b'\n');
    let header = SessionHeader::of(lines.next().unwrap_or_default())?;
    // Of a line that cannot be read it is known only that it was there: most
    // lines add a message, and where it stood, none is.
    let mut said: Vec<Option<Message>> = Vec::new();
    let mut faults = LineProblems::default();
    let mut has_failed = false;
    for (line, number) in lines.zip(2..) {
        let entry = entry(line);
        has_failed = matches!(&entry, Some(SessionEntry::Cut(length)) if *length == said.len());
        match entry {
            Some(SessionEntry::Added(message)) => {
                said.push(Some(message));
            }
            Some(SessionEntry::Cut(length)) if length <= said.len() => {
                said.truncate(length);
            }
            Some(SessionEntry::Replaced(messages)) => {
                said = messages.into_iter().map(Some).collect();
            }
            Some(SessionEntry::Cut(length)) => {
                faults.tell_unread();
                faults.tell(format!(
                    "line {number} leaves {length} messages, and there are {}",
                    said.len()
                ));
            }
            None => {
                said.push(None);
                faults.leave_out(number);
            }
        }
    }
    faults.tell_unread();
    let (messages, is_mended) = repaired(said);
    Ok(Some(RestoredSession {
        header,
        messages,
        has_failed,
        is_mended,
        faults: faults.told,
        more_faults: faults.more,
        torn_bytes: torn.len(),
    }))
}

/// What is wrong with lines; neighbours that cannot be read are one fault.
#[derive(Default)]
struct LineProblems {
    told: Vec<String>,
    more: usize,
    /// The first and the last of the lines that are to be told next.
    unread: Option<(usize, usize)>,
}

impl LineProblems {
    fn leave_out(&mut self, line: usize) {
        match &mut self.unread {
            Some((_, last)) if *last + 1 == line => *last = line,
            _ => {
                self.tell_unread();
                self.unread = Some((line, line));
            }
        }
    }

    fn tell_unread(&mut self) {
        match self.unread.take() {
            Some((first, last)) if first < last => {
                self.tell(format!("lines {first}-{last} cannot be read"));
            }
            Some((line, _)) => self.tell(format!("line {line} cannot be read")),
            None => {}
        }
    }

    fn tell(&mut self, fault: String) {
        if self.told.len() < limits::NAMES {
            self.told.push(fault);
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
    use crate::session::record::line;

    fn header() -> String {
        let header = SessionHeader {
            id: "i".into(),
            folder: "/f".into(),
            model: "m".into(),
            created: SystemTime::UNIX_EPOCH,
            automatic: None,
        };
        let line = header.line(&Secrets::default());
        assert_eq!(SessionHeader::of(line.trim_end().as_bytes()), Ok(header));
        line
    }

    fn add(message: &Message) -> String {
        line(ConversationChange::Added(message), SystemTime::now(), &Secrets::default())
    }

    #[test]
    fn every_beginning_of_a_file_is_a_session() {
        let file = [
            header(),
            add(&Message::user("one")),
            add(&Message::assistant("two")),
            add(&Message::user("three")),
            line(ConversationChange::Cut(2), SystemTime::now(), &Secrets::default()),
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
                assert!(restored.faults.is_empty() && !restored.is_mended);
                let whole = file[..end].rfind('\n').unwrap() + 1;
                assert_eq!(restored.torn_bytes, end - whole);
            }
        }
    }

    #[test]
    fn damaged_lines_are_named_and_the_rest_is_a_conversation() {
        let cut = line(ConversationChange::Cut(2), SystemTime::now(), &Secrets::default());
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
        assert_eq!(restored.faults.len(), 2, "{:?}", restored.faults);
        assert!(restored.faults[0].contains("line 3 cannot be read"));
        assert!(restored.is_mended);
        let said: Vec<&Message> = restored.messages.iter().collect();
        assert_eq!(said[0], &Message::user("one"));
        assert!(matches!(said[1], Message::Assistant(_)), "{said:?}");
        // The last line may have been its answer.
        assert_eq!(said[2], &Message::user("three"));
        assert!(matches!(said[3..], [Message::Assistant(_)]), "{said:?}");
    }

    #[test]
    fn what_is_foreign_is_known() {
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
