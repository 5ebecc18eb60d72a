//! Checks that the scripts which documents run as commands can be executed.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::mentions::MentionKind;
use super::{Place, list_names};
use crate::{Problem, Rule};
use base::limits;
use host::confined::{self, OpenFile};

/// Mode bits of which one is required to execute a file.
const EXECUTABLE: u32 = 0o111;

/// The scripts that are run as commands and cannot be executed.
#[derive(Default)]
pub(super) struct CommandCheck {
    /// The first line that runs one that is not executable.
    first: Option<(String, usize)>,
    not_executable: Vec<String>,
    with_crlf: Vec<String>,
}

impl CommandCheck {
    /// Checks a file of the skill that a line names, if the line is a command that runs it.
    pub(super) fn add(&mut self, place: &Place, kind: MentionKind, path: &str, open: &OpenFile) {
        // Code without a language may name documents.
        let is_command = kind == MentionKind::Command && extension(path) != Some("md");
        // A shell fails at the line ends even if it is given the script.
        let is_run = is_command || extension(path) == Some("sh");
        if is_run && has_crlf(open) && !self.with_crlf.iter().any(|known| known == path) {
            self.with_crlf.push(path.to_owned());
        }
        let mode = open.file.metadata().map_or(EXECUTABLE, |data| data.permissions().mode());
        if is_command && mode & EXECUTABLE == 0 {
            self.first.get_or_insert_with(|| (place.file.to_owned(), place.line));
            self.not_executable.push(path.to_owned());
        }
    }

    /// The problems found.
    pub(super) fn problems(self) -> Vec<Problem> {
        let crlf = self.with_crlf.iter().map(|path| {
            let message = "the `#!` line ends with a carriage return, which becomes part of the \
                           interpreter's name: the script does not run";
            Problem::new(Rule::CrlfScript, path, message).at_line(1)
        });
        let mut problems: Vec<Problem> = crlf.collect();
        if let Some((file, line)) = self.first {
            let names = list_names(self.not_executable.iter().map(String::as_str));
            let what = match self.not_executable.len() {
                1 => "is run as a command, but the file is not executable",
                _ => "are run as commands, but the files are not executable",
            };
            let problem = Problem::new(Rule::NotExecutable, file, format!("{names} {what}"));
            problems.push(problem.at_line(line));
        }
        problems
    }
}

fn extension(path: &str) -> Option<&str> {
    Path::new(path).extension()?.to_str()
}

/// Whether the first line names an interpreter and ends with CRLF.
fn has_crlf(open: &OpenFile) -> bool {
    let mut head = [0; limits::SHEBANG_BYTES];
    let length = confined::read_head(&open.file, open.size, &mut head).unwrap_or(0);
    let head = head.get(..length).unwrap_or_default();
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    line.len() < length && line.starts_with(b"#!") && line.ends_with(b"\r")
}
