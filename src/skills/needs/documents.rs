//! Needs of Markdown: the commands in its blocks of shell code.

use super::Needs;
use super::shell::ShellReader;
use base::text::{FenceLine, OpenFences, fence_language, is_shell_language};

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
                let is_shell = is_shell_language(&fence_language(info));
                shell = is_shell.then(ShellReader::default);
            }
            (FenceLine::Inside, Some(reader)) => reader.read(line, needs),
            _ => {}
        }
    }
}
