//! Holds back the text of a reply while it may be tool calls, so that they are not shown as an
//! answer.

use base::event::{Event, EventSink};
use base::limits;
use base::tool::ToolDefinition;
use chat_api::{OPENINGS, can_become_call, ends_sentence};

/// Where the text is.
#[derive(Clone, Copy, PartialEq)]
enum HoldState {
    /// Before its first character.
    Opening,
    /// In its first sentence, which is shown.
    Sentence,
    /// Behind this sentence.
    AfterSentence,
    /// In what may be calls.
    Held,
    /// In an answer.
    Free,
}

/// The text of one reply.
pub(in crate::turn) struct HeldText<'t> {
    tools: &'t [ToolDefinition],
    state: HoldState,
    held: String,
    /// Whether everything is held back, until it is known what the reply is.
    is_silent: bool,
    last: char,
    /// Bytes of the first sentence so far.
    sentence_bytes: usize,
    /// Whether the text that is held back names a tool.
    names_tool: bool,
    /// Whether any text was passed on.
    pub has_shown: bool,
}

impl<'t> HeldText<'t> {
    pub(in crate::turn) fn new(tools: &'t [ToolDefinition], is_silent: bool) -> HeldText<'t> {
        let state = if tools.is_empty() { HoldState::Free } else { HoldState::Opening };
        HeldText {
            tools,
            state,
            held: String::new(),
            is_silent,
            last: ' ',
            sentence_bytes: 0,
            names_tool: false,
            has_shown: false,
        }
    }

    /// Passes an event on, but holds text back.
    pub(in crate::turn) fn pass(&mut self, event: Event<'_>, sink: &mut EventSink<'_>) {
        match event {
            Event::Text(text) if self.is_silent => self.held.push_str(text),
            Event::Text(text) if self.state == HoldState::Free => {
                self.has_shown = true;
                sink(Event::Text(text));
            }
            Event::Text(text) => self.add(text, sink),
            other => sink(other),
        }
    }

    /// Passes on what is held back.
    pub(in crate::turn) fn release(&mut self, sink: &mut EventSink<'_>) {
        self.state = HoldState::Free;
        if !self.held.is_empty() {
            self.has_shown = true;
            sink(Event::Text(&std::mem::take(&mut self.held)));
        }
    }

    fn add(&mut self, text: &str, sink: &mut EventSink<'_>) {
        let mut shown = String::new();
        for (at, c) in text.char_indices() {
            self.state = self.next_state(c);
            self.last = c;
            self.sentence_bytes += c.len_utf8();
            match self.state {
                HoldState::Free => {
                    shown.push_str(&std::mem::take(&mut self.held));
                    shown.push_str(&text[at..]);
                    break;
                }
                HoldState::Sentence => {
                    shown.push_str(&std::mem::take(&mut self.held));
                    shown.push(c);
                }
                HoldState::Opening | HoldState::AfterSentence | HoldState::Held => {
                    self.held.push(c);
                }
            }
        }
        if !shown.is_empty() {
            self.has_shown = true;
            sink(Event::Text(&shown));
        }
        if self.state == HoldState::Held && !self.may_be_call(text.len()) {
            self.release(sink);
        }
    }

    /// The state after this character.
    fn next_state(&self, c: char) -> HoldState {
        let is_blank = c.is_whitespace();
        match self.state {
            HoldState::Opening | HoldState::AfterSentence if is_blank => self.state,
            HoldState::Opening | HoldState::AfterSentence if OPENINGS.contains(&c) => {
                HoldState::Held
            }
            HoldState::Opening => HoldState::Sentence,
            HoldState::AfterSentence => HoldState::Free,
            HoldState::Sentence if self.sentence_bytes > limits::CALL_SENTENCE_BYTES => {
                HoldState::Free
            }
            HoldState::Sentence if ends_sentence(self.last, c) => HoldState::AfterSentence,
            state => state,
        }
    }

    /// Whether what is held, of which the last bytes are new, may still become a call.
    fn may_be_call(&mut self, new_bytes: usize) -> bool {
        let longest = self.tools.iter().map(|tool| tool.name.len()).max().unwrap_or(0);
        let start = self.held.len().saturating_sub(new_bytes + longest);
        let new = &self.held[self.held.floor_char_boundary(start)..];
        self.names_tool |= self.tools.iter().any(|tool| new.contains(&tool.name));
        let most =
            if self.names_tool { limits::UNPARSED_CALL_BYTES } else { limits::HELD_TEXT_BYTES };
        let is_decided = self.held.len() > new_bytes + limits::TAG_BYTES;
        self.held.len() <= most && (is_decided || can_become_call(&self.held, self.tools))
    }
}
