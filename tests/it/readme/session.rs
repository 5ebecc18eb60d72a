//! A block of commands on a terminal, as the reader types them: one command
//! after the other, each with its output and its status.

use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::documents::{Block, Faults};
use super::promises::{self, Promise};
use super::reader::Reader;
use crate::harness::seconds;

/// How long a block may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Begins a line that this test writes between the commands' output.
const MARK: char = '\u{1e}';

/// Runs the block's commands: each must end with 0 and keep its promises. Matching
/// rows of [`promises::PROMISES`] are added to `met`.
pub(super) fn run(
    reader: &Reader,
    block: &Block,
    met: &mut Vec<&'static str>,
    faults: &mut Faults,
) {
    let commands = match commands(&block.text) {
        Ok(commands) => commands,
        Err(fault) => return faults.push(format!("{}: {fault}", block.place)),
    };
    let promises: Vec<Vec<&Promise>> =
        commands.iter().map(|command| promises::of(command)).collect();
    met.extend(promises.iter().flatten().map(|promise| promise.command));
    let script = script(reader, &block.place, &commands, &promises);
    let (outputs, status) = outputs(reader, &script);
    for (index, output) in outputs.iter().enumerate() {
        let place = format!("{}: `{}`", block.place, commands[index].trim_end());
        if status != 0 && index + 1 == outputs.len() {
            faults.push(format!("{place} ends with {status}:\n{output}"));
            continue;
        }
        for promise in &promises[index] {
            let not_kept = promise.broken(&reader.test, output);
            faults.extend(not_kept.map(|what| format!("{place}: {what}:\n{output}")));
        }
    }
    if outputs.len() < commands.len() && status == 0 {
        faults.push(format!("{}: a command ends the shell", block.place));
    }
}

/// Runs a command that is in no text; returns its output if it fails.
pub(super) fn ends_well(reader: &Reader, command: &str) -> Result<(), String> {
    let script = script(reader, "", &[format!("{command}\n")], &[Vec::new()]);
    match outputs(reader, &script) {
        (_, 0) => Ok(()),
        (outputs, status) => Err(format!("status {status}\n{}", outputs.concat())),
    }
}

/// The block's commands, each with its comments: a line, or as many lines as
/// bash needs to see the command's end. Comments alone are not a command.
fn commands(text: &str) -> Result<Vec<String>, String> {
    let mut commands = Vec::new();
    let mut command = String::new();
    for line in text.lines() {
        if command.is_empty() && (line.trim().is_empty() || line.trim_start().starts_with('#')) {
            continue;
        }
        command += line;
        command.push('\n');
        if !line.ends_with('\\') && is_whole(&command) {
            commands.push(std::mem::take(&mut command));
        }
    }
    match command.is_empty() {
        true => Ok(commands),
        false => Err(format!("no end of the command `{}`", command.trim_end())),
    }
}

fn is_whole(command: &str) -> bool {
    let output = Command::new("bash").args(["-n", "-c", command]).output();
    let output = output.expect("the tests need bash");
    // For a here-document without an end bash only prints a warning.
    output.status.success() && output.stderr.is_empty()
}

/// The commands with a mark before each; the place shows which block hangs.
fn script(reader: &Reader, place: &str, commands: &[String], promises: &[Vec<&Promise>]) -> String {
    let path = reader.search_path();
    let mut script = format!("export PATH='{path}'\nhash -r\necho '{place}'\n");
    script += &format!("trap 'printf \"{MARK}status %s\\n\" \"$?\"' EXIT\n");
    for (command, promises) in commands.iter().zip(promises) {
        script += &format!("printf '{MARK}command\\n'\n");
        let command = reader.played(command);
        match promises.iter().find_map(|promise| promise.stdin) {
            Some(stdin) => {
                script += &format!("{{ {command}\n}} <<'END OF INPUT'\n{stdin}\nEND OF INPUT\n");
            }
            None => script += &command,
        }
    }
    script
}

/// Runs it on a terminal; returns each command's output and the shell's status. At
/// the prompt of a conversation it asks a question and leaves.
fn outputs(reader: &Reader, script: &str) -> (Vec<String>, i32) {
    let test = reader.test.next_run().timeout(PATIENCE).file(".block.sh", script);
    let mut terminal = test.shell("exec bash -euo pipefail .block.sh").spawn_on_terminal();
    let (mut typed, mut answered) = (["hello", "/exit"].iter().cycle(), 0);
    let deadline = Instant::now() + PATIENCE;
    // The harness ends a command that waits longer, and shows its output.
    while terminal.running().is_running() && Instant::now() < deadline {
        let output = terminal.output();
        if output.len() > answered && output.ends_with("\n> ") {
            answered = output.len();
            terminal.type_line(typed.next().expect("it is a circle"));
        }
        sleep(seconds(0.005));
    }
    let run = terminal.wait_exit();
    let mut pieces: Vec<String> = run.terminal.split(MARK).map(str::to_owned).collect();
    let last = pieces.pop().unwrap_or_default();
    let status = last.strip_prefix("status ").and_then(|status| status.trim().parse().ok());
    let outputs = pieces.into_iter().skip(1);
    let outputs = outputs.map(|piece| piece.trim_start_matches("command\n").to_owned());
    (outputs.collect(), status.unwrap_or(run.status))
}
