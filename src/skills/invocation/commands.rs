//! The commands `` !`command` `` in a document: other clients run them when they load it, and show
//! their output instead. They are only found here.

use base::text::{FenceLine, OpenFences};

/// Returns the commands of a document in their order, those in code left out.
pub fn commands_on_load(document: &str) -> Vec<&str> {
    let mut fences = OpenFences::default();
    let prose = document.lines().filter(|line| fences.advance(line) == FenceLine::Outside);
    prose.flat_map(commands_of_line).collect()
}

fn commands_of_line(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("!`").filter_map(move |(at, mark)| {
        let before = &line[..at];
        let (command, _) = line[at + mark.len()..].split_once('`')?;
        let is_command = !command.trim().is_empty() && !command.starts_with('`');
        // Double backquotes show such a command as code.
        let is_code = before.matches("``").count() % 2 == 1;
        let is_separate = before.is_empty() || before.ends_with(char::is_whitespace);
        (is_command && is_separate && !is_code).then_some(command)
    })
}
