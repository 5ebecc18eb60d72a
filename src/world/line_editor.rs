//! Editing of a message on a terminal by the crate `rustyline`: movement, kill and yank, history,
//! search, completion, pastes, wide characters.
//!
//! The crate waits for keys by itself and goes on after a signal. So while it reads, our handler
//! of signals, and a timer for the deadline, replace standard input by `/dev/null`: the crate sees
//! the end of the input and returns. See [`signal::end_reading`].

use std::cell::{Cell, RefCell};
use std::fs;
use std::path::{Path, PathBuf};

use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};

use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::world::cancellation::Cancellation;
use crate::world::signal;

/// What the user typed at a prompt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EditedText {
    /// The text, which may have several lines.
    Text(String),
    /// Ctrl+C; whether text was discarded.
    Cancelled(bool),
    /// Ctrl+D on an empty line.
    End,
}

/// What the editor has to know about messages.
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
    editor: Editor<EditHelper<R>, FileHistory>,
    /// Private file of typed messages.
    history: Option<PathBuf>,
}

impl<R: MessageRules> LineEditor<R> {
    /// Prepares an editor, with the history of earlier conversations if there is a file of it.
    /// `None`: the terminal cannot be used.
    pub(crate) fn new(history: Option<&Path>, rules: R) -> Option<LineEditor<R>> {
        let config = Config::builder().max_history_size(limits::HISTORY_LINES).ok()?;
        let config = config.history_ignore_dups(true).ok()?;
        let config = config.completion_type(CompletionType::List).build();
        let mut editor = Editor::with_config(config).ok()?;
        let helper = EditHelper {
            rules,
            files: FilenameCompleter::new(),
            is_empty: true.into(),
            continued: RefCell::default(),
        };
        editor.set_helper(Some(helper));
        // A file that is missing or unreadable is an empty history.
        let history = history.map(Path::to_path_buf);
        if let Some(path) = &history {
            let _ = editor.load_history(path);
        }
        Some(LineEditor { editor, history })
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
            Err(error) => {
                let text = format!("failed to read the terminal: {error}");
                Err(Error::new(ErrorKind::Io, text))
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
        if let Some(path) = self.history.as_ref().filter(|_| is_new) {
            if let Some(folder) = path.parent() {
                let _ = fs::create_dir_all(folder);
            }
            let _ = self.editor.append_history(path);
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

impl<R> Highlighter for EditHelper<R> {}

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
            return self.files.complete(line, position, context);
        }
        let words = self.rules.completions(before).into_iter();
        Ok((0, words.map(|word| Pair { display: word.clone(), replacement: word }).collect()))
    }
}
