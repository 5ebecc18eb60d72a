//! What Markdown needs: the commands in its blocks of shell code.

use super::Needs;
use super::shell::ShellReader;
use crate::text::{FenceLine, OpenFences};

/// Languages of code that a shell runs.
const SHELLS: [&str; 8] =
    ["bash", "sh", "shell", "zsh", "console", "terminal", "shell-session", "shellscript"];

/// Adds what the body of a document needs.
pub(super) fn read(text: &str, needs: &mut Needs) {
    let mut fences = OpenFences::default();
    let mut shell = None;
    let mut is_comment = false;
    for line in text.lines() {
        needs.place.next(line);
        let fence = fences.advance(line);
        if is_comment || fence == FenceLine::Outside && line.trim_start().starts_with("<!--") {
            is_comment = !line.contains("-->");
            continue;
        }
        match (fence, &mut shell) {
            (FenceLine::Open(info), _) => {
                let language = info.split([' ', '{', ',', ':']).next().unwrap_or_default();
                let is_shell = SHELLS.contains(&language.to_lowercase().as_str());
                shell = is_shell.then(ShellReader::default);
            }
            (FenceLine::Inside, Some(reader)) => reader.read(line, needs),
            _ => {}
        }
    }
}
