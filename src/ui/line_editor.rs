//! Editing of a message on a terminal by the crate `rustyline`: movement, kill and yank, history,
//! search, completion, pastes, wide characters.
//!
//! The crate waits for keys by itself and goes on after a signal. So while it reads, our handler
//! of signals, and a timer for the deadline, replace standard input by `/dev/null`: the crate sees
//! the end of the input and returns. See [`signal::end_reading`].

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::io::ErrorKind;

use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::{History, MemHistory};
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{ColorMode, CompletionType, Config, Context, Editor, Helper};

use crate::ui::history::HistoryFile;
use base::error::{self, Error, Result};
use base::limits;
use base::text::without_controls;
use host::cancellation::Cancellation;
use host::{signal, terminal};

/// Input of the user at a prompt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EditedText {
    /// The text, which may have several lines.
    Text(String),
    /// Ctrl+C; whether text was discarded.
    Cancelled(bool),
    /// Ctrl+D on an empty line.
    End,
    /// Bytes that are not UTF-8; they and what followed at once are discarded.
    NotUtf8,
}

/// Rules of messages, for the editor.
pub(crate) trait MessageRules {
    /// Whether a message goes on after Enter.
    fn continues(&self, text: &str) -> bool;
    /// The words that can stand at the start of this text, each as a whole.
    fn completions(&self, text: &str) -> Vec<String>;
    /// Whether the word at the end of this text is the name of a file.
    fn completes_files(&self, text: &str) -> bool;
}

/// An editor of messages on the terminal of standard input and output.
pub(crate) struct LineEditor<R: MessageRules> {
    editor: Editor<EditHelper<R>, MemHistory>,
    history: Option<HistoryFile>,
}

impl<R: MessageRules> LineEditor<R> {
    /// Prepares an editor. `None`: the terminal cannot be used.
    pub(crate) fn new(rules: R) -> Option<LineEditor<R>> {
        let config = Config::builder().max_history_size(limits::HISTORY_LINES).ok()?;
        let config = config.history_ignore_dups(true).ok()?;
        // Not for colours: so that the text passes through our `Highlighter`.
        let config = config.color_mode(ColorMode::Forced);
        let config = config.completion_type(CompletionType::List).build();
        let history = MemHistory::with_config(&config);
        let mut editor = Editor::with_history(config, history).ok()?;
        let helper = EditHelper {
            rules,
            files: FilenameCompleter::new(),
            is_empty: true.into(),
            continued: RefCell::default(),
        };
        editor.set_helper(Some(helper));
        Some(LineEditor { editor, history: None })
    }

    /// Adds the messages of a history, and saves further ones there.
    pub(crate) fn use_history(&mut self, file: HistoryFile, messages: Vec<String>) {
        for message in messages {
            let _ = self.editor.history_mut().add_owned(message);
        }
        self.history = Some(file);
    }

    /// Reads a message after a prompt. `typed`: what the user has typed already.
    pub(crate) fn read(
        &mut self,
        prompt: &str,
        typed: &str,
        cancellation: &Cancellation,
    ) -> Result<EditedText> {
        if let Some(helper) = self.editor.helper() {
            helper.is_empty.set(true);
            helper.continued.borrow_mut().clear();
        }
        let read = signal::end_reading(cancellation.deadline, || {
            self.editor.readline_with_initial(prompt, (typed, ""))
        });
        cancellation.check()?;
        let helper = self.editor.helper();
        match read {
            Ok(text) => Ok(EditedText::Text(match helper {
                Some(helper) => helper.without_continuations(text),
                None => text,
            })),
            Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => {
                let is_empty = helper.is_none_or(|helper| helper.is_empty.get());
                Ok(EditedText::Cancelled(!is_empty))
            }
            Err(ReadlineError::Eof) => Ok(EditedText::End),
            Err(ReadlineError::Io(error)) if error.kind() == ErrorKind::InvalidData => {
                terminal::discard_paste(std::io::stdin());
                Ok(EditedText::NotUtf8)
            }
            Err(error) => {
                let text = format!("failed to read the terminal: {error}");
                Err(Error::new(error::ErrorKind::Io, text))
            }
        }
    }

    /// Adds a message to the history. Credentials in it must be masked.
    pub(crate) fn remember(&mut self, text: &str) {
        if text.len() > limits::HISTORY_MESSAGE_BYTES {
            return;
        }
        // A history that cannot be written is no reason to stop a conversation.
        let is_new = self.editor.add_history_entry(text).unwrap_or(false);
        if let Some(file) = self.history.as_ref().filter(|_| is_new) {
            let _ = file.append(text);
        }
    }
}

/// Connects the crate with the rules.
struct EditHelper<R> {
    rules: R,
    files: FilenameCompleter,
    /// Whether the text was empty when it was last shown.
    is_empty: Cell<bool>,
    /// The texts, each up to a backslash, after which Enter began a new line.
    continued: RefCell<Vec<String>>,
}

impl<R> EditHelper<R> {
    /// The text without the backslashes that Enter followed. Those of a paste stay.
    fn without_continuations(&self, mut text: String) -> String {
        for start in self.continued.borrow().iter().rev() {
            if text.starts_with(start.as_str()) && text[start.len()..].starts_with('\n') {
                text.remove(start.len() - 1);
            }
        }
        text
    }
}

impl<R: MessageRules> Helper for EditHelper<R> {}

impl<R: MessageRules> Validator for EditHelper<R> {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let text = context.input();
        if !self.rules.continues(text) {
            return Ok(ValidationResult::Valid(None));
        }
        if text.ends_with('\\') {
            self.continued.borrow_mut().push(text.to_string());
        }
        Ok(ValidationResult::Incomplete)
    }
}

impl<R> Hinter for EditHelper<R> {
    type Hint = String;

    fn hint(&self, line: &str, _: usize, _: &Context<'_>) -> Option<String> {
        self.is_empty.set(line.is_empty());
        None
    }
}

/// The crate writes the text to the terminal as it is, so nothing in it may be a command of the
/// terminal.
impl<R> Highlighter for EditHelper<R> {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        without_controls(line)
    }

    fn highlight_candidate<'c>(&self, name: &'c str, _: CompletionType) -> Cow<'c, str> {
        without_controls(name)
    }

    fn highlight_char(&self, line: &str, _: usize, _: CmdKind) -> bool {
        matches!(without_controls(line), Cow::Owned(_))
    }
}

impl<R: MessageRules> Completer for EditHelper<R> {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = &line[..position];
        if self.rules.completes_files(before) {
            let (start, mut found) = self.files.complete(line, position, context)?;
            found.retain(|file| !file.replacement.contains(char::is_control));
            return Ok((start, found));
        }
        let words = self.rules.completions(before).into_iter();
        Ok((0, words.map(|word| Pair { display: word.clone(), replacement: word }).collect()))
    }
}
