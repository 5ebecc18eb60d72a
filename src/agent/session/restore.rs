//! Restores a conversation from a session's file. Lines that cannot be read are reported and
//! left out; the rest is repaired to a valid conversation.

use std::fmt;
use std::time::SystemTime;

use crate::conversation::{SavedConversation, repair_messages};
use crate::session::record::{SessionEntry, SessionFileError, SessionHeader, parse_entry};
use base::message::Message;

/// A restored session.
#[derive(Debug)]
pub struct RestoredSession {
    /// The header.
    pub header: SessionHeader,
    /// The conversation.
    pub saved: SavedConversation,
    /// Whether the messages were repaired and so differ from the file.
    pub is_repaired: bool,
    /// The unreadable lines, if there are any.
    pub damage: Option<SessionDamage>,
    /// The length of an unfinished line at the end, which the file keeps when its writer is killed
    /// in the middle of a write: nothing of it had been acknowledged.
    pub unfinished_bytes: usize,
}

/// Lines that cannot be read, after the last one that replaces all messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionDamage {
    /// The number of the first unreadable line.
    pub first_line: usize,
    /// The number of unreadable lines.
    pub lines: usize,
}

impl fmt::Display for SessionDamage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {} cannot be read", self.first_line)?;
        match self.lines - 1 {
            0 => Ok(()),
            more => write!(formatter, ", and {more} more"),
        }
    }
}

impl RestoredSession {
    /// A warning about the unreadable lines, if there are any.
    pub fn damage_warning(&self, name: &str) -> Option<String> {
        let damage = self.damage?;
        Some(format!(
            "the session `{name}` is damaged: {damage}; the conversation continues with the rest"
        ))
    }
}

/// Restores a session from the bytes of its file, which was last modified at this time; the
/// error is the cause. `None`: the file is empty.
pub fn restore(
    bytes: &[u8],
    modified: SystemTime,
) -> Result<Option<RestoredSession>, SessionFileError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let is_unfinished = end > 0 && end < bytes.len() && parse_entry(&bytes[end..]).is_none();
    let unfinished_bytes = if is_unfinished { bytes.len() - end } else { 0 };
    let whole = &bytes[..bytes.len() - unfinished_bytes];
    let whole = whole.strip_suffix(b"\n").unwrap_or(whole);
    let mut lines = whole.split(|byte| *byte == b'\n');
    let header = SessionHeader::parse(lines.next().unwrap_or_default())?;
    // An unreadable line counts as a message, because most lines add one.
    let mut restored: Vec<Option<Message>> = Vec::new();
    let mut damage: Option<SessionDamage> = None;
    let mut has_failed = false;
    for (line, number) in lines.zip(2..) {
        let entry = parse_entry(line);
        has_failed = match &entry {
            Some(SessionEntry::Failed) => true,
            // The form of format 1.
            Some(SessionEntry::Cut(length)) => *length == restored.len(),
            _ => false,
        };
        match entry {
            Some(SessionEntry::Added(message)) => restored.push(Some(message)),
            Some(SessionEntry::Cut(length)) => restored.truncate(length),
            Some(SessionEntry::Replaced(messages)) => {
                restored = messages.into_iter().map(Some).collect();
                damage = None;
            }
            Some(SessionEntry::Failed) => {}
            None => {
                restored.push(None);
                damage.get_or_insert(SessionDamage { first_line: number, lines: 0 }).lines += 1;
            }
        }
    }
    let (messages, is_changed) = repair_messages(restored.into_iter().flatten().collect());
    let saved = SavedConversation {
        id: header.id.clone(),
        messages,
        has_failed,
        started: header.created,
        last_activity: modified,
    };
    Ok(Some(RestoredSession {
        header,
        saved,
        is_repaired: is_changed || damage.is_some(),
        damage,
        unfinished_bytes,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::ConversationChange;
    use crate::session::record::change_line;
    use base::secret::Secrets;

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

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

    fn change(change: ConversationChange<'_>) -> String {
        change_line(change, SystemTime::now(), &Secrets::default())
    }

    #[test]
    fn every_beginning_of_a_file_is_a_session() {
        let file = [
            header(),
            add(&Message::user("one")),
            add(&Message::assistant("two")),
            add(&Message::user("three")),
            change(ConversationChange::Truncated(2)),
            add(&Message::user("four")),
            change(ConversationChange::Failed),
        ]
        .concat();
        let first = header().len();
        for end in first..=file.len() {
            let restored = restore(&file.as_bytes()[..end], NOW).unwrap().unwrap();
            let lines = file[..end].matches('\n').count();
            let is_torn = !file[..end].ends_with('\n');
            let is_whole = !is_torn || file[end..].starts_with('\n');
            let count = [0, 0, 1, 2, 3, 2, 3, 3][lines + usize::from(is_torn && is_whole)];
            assert_eq!(restored.saved.messages.len(), count, "{end}");
            assert!(restored.damage.is_none() && !restored.is_repaired, "{end}");
            let start = file[..end].rfind('\n').unwrap() + 1;
            let unfinished = if is_whole { 0 } else { end - start };
            assert_eq!(restored.unfinished_bytes, unfinished, "{end}");
            assert_eq!(restored.saved.has_failed, end + 1 >= file.len(), "{end}");
        }
    }

    #[test]
    fn damaged_lines_are_counted_and_the_rest_is_a_conversation() {
        let mut lines = vec![
            header(),
            add(&Message::user("one")),
            "\u{0}\u{1}half\n".into(),
            add(&Message::user("two")),
            change(ConversationChange::Truncated(2)),
            "\n".into(),
            add(&Message::user("three")),
        ];
        let restored = restore(lines.concat().as_bytes(), NOW).unwrap().unwrap();
        assert_eq!(restored.damage, Some(SessionDamage { first_line: 3, lines: 2 }));
        assert_eq!(
            restored.damage_warning("s").unwrap(),
            "the session `s` is damaged: line 3 cannot be read, and 1 more; the conversation continues with the rest"
        );
        assert!(restored.is_repaired);
        let texts: Vec<_> = restored.saved.messages.iter().map(Message::text).collect();
        assert_eq!(texts, ["one", "(no answer: the turn was interrupted)", "three"]);
        // A line with all messages makes up for the damaged ones before it.
        lines.push(change(ConversationChange::Replaced(&restored.saved.messages)));
        let again = restore(lines.concat().as_bytes(), NOW).unwrap().unwrap();
        assert!(again.damage.is_none() && !again.is_repaired);
        assert_eq!(again.saved.messages, restored.saved.messages);
    }

    #[test]
    fn foreign_and_newer_files_are_refused() {
        for bytes in ["hello\n", "hello", "{}\n", "\n", "{\"format\":\"x\"}\n{}\n"] {
            assert_eq!(restore(bytes.as_bytes(), NOW).unwrap_err(), SessionFileError::Foreign);
        }
        let newer = header().replace("\"version\":3", "\"version\":4");
        let own = env!("CARGO_PKG_VERSION");
        for (program, shown) in [
            ("9.10.0", "the newer version 9.10.0 of skills-runner has written it"),
            // It started the session, which a newer one continued.
            (own, "a newer version of skills-runner has written it"),
            ("?", "a newer version of skills-runner has written it"),
        ] {
            let newer = newer.replace(own, program);
            let error = restore(newer.as_bytes(), NOW).unwrap_err();
            assert_eq!(error.to_string(), shown);
            let folder = Some("/f".to_string());
            assert_eq!(error, SessionFileError::Newer { program: Some(program.into()), folder });
        }
        let damaged = header().replace("\"id\":\"i\"", "\"id\":7");
        for bytes in [&damaged, &header()[..60]] {
            assert_eq!(restore(bytes.as_bytes(), NOW).unwrap_err(), SessionFileError::Damaged);
        }
        assert!(restore(b"", NOW).unwrap().is_none());
    }
}
