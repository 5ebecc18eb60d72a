//! What was typed, taken apart by the tables of commands and options. What it
//! means is decided elsewhere.

use std::ffi::OsString;

use lexopt::Arg;

use crate::cli::generate::{Generator, KINDS};
use crate::cli::table::{Action, COMMANDS, Command, OPTIONS, OptionRow};
pub(crate) use crate::cli::values::usage;
use crate::cli::values::{filled, max_steps, one_of, seconds, text_value, whole_seconds};
use crate::error::{Error, Result};
use crate::limits;
use crate::session::check_name;
use crate::settings;
use crate::text;
use crate::world::output::{FORMATS, Format, Verbosity};

/// Which environment files are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EnvFiles {
    /// `./.env`, then the one in the configuration folder.
    #[default]
    Usual,
    /// This one.
    Only(OsString),
    /// None.
    Off,
}

/// A command line, taken apart.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "independent switches, as they were typed")]
pub struct CommandLine {
    /// What is to be done.
    pub command: Command,
    /// The words that are no options: the prompt, or a command's own words.
    pub words: Vec<OsString>,
    /// Settings by option: variable, value, the option as typed.
    pub settings: Vec<(&'static str, OsString, &'static str)>,
    /// `--system`.
    pub system: Option<String>,
    /// `--skills`.
    pub skills: Vec<OsString>,
    /// `--attach`.
    pub attach: Vec<OsString>,
    /// `--session`.
    pub session: Option<String>,
    /// `--continue`.
    pub goes_on: bool,
    /// `--output`.
    pub format: Format,
    /// `--quiet`, `--verbose`.
    pub verbosity: Verbosity,
    /// Not `--no-stream`.
    pub stream: bool,
    /// `--max-steps`.
    pub max_steps: u32,
    /// `--timeout`, in seconds.
    pub timeout_seconds: Option<f64>,
    /// Not `--no-stdin`.
    pub stdin: bool,
    /// Not `--no-scripts`.
    pub scripts: bool,
    /// `--confirm`.
    pub confirm: bool,
    /// `--log`.
    pub log: Option<OsString>,
    /// Which environment files are read.
    pub env_files: EnvFiles,
    /// `--dry-run`.
    pub dry_run: bool,
    /// `--fix`.
    pub fix: bool,
    /// `--skills-as-tools`.
    pub skills_as_tools: bool,
}

/// Help, version and what is generated leave before anything else can fail.
#[derive(Debug)]
pub enum Invocation {
    /// Do it.
    Run(Box<CommandLine>),
    /// Show the help.
    Help,
    /// Show the version.
    Version,
    /// Show what this writes.
    Generate(Generator),
}

/// Takes the arguments apart; the program's name is not among them.
pub fn parse(arguments: Vec<OsString>) -> Result<Invocation> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let mut typed = CommandLine {
        command: Command::Ask,
        words: Vec::new(),
        settings: Vec::new(),
        system: None,
        skills: Vec::new(),
        attach: Vec::new(),
        session: None,
        goes_on: false,
        format: Format::Text,
        verbosity: Verbosity::Normal,
        stream: true,
        max_steps: limits::MAX_STEPS,
        timeout_seconds: None,
        stdin: true,
        scripts: true,
        confirm: false,
        log: None,
        env_files: EnvFiles::Usual,
        dry_run: false,
        fix: false,
        skills_as_tools: false,
    };
    loop {
        // After `--` everything is a word, and the first one no command.
        if let Some(rest) = parser.try_raw_args()
            && rest.peek().is_some_and(|next| next == "--")
        {
            typed.words.extend(rest.skip(1));
            break;
        }
        let row = match parser.next().map_err(|error| usage(error.to_string()))? {
            None => break,
            Some(Arg::Value(word)) => {
                take_word(&mut typed, word);
                continue;
            }
            Some(Arg::Short(letter)) => OPTIONS
                .iter()
                .find(|row| row.short == Some(letter))
                .ok_or_else(|| unknown_option(&format!("-{letter}")))?,
            Some(Arg::Long(name)) => {
                let long = format!("--{name}");
                OPTIONS.iter().find(|row| row.long == long).ok_or_else(|| unknown_option(&long))?
            }
        };
        let value = match row.value {
            Some(_) => parser.value().map_err(|error| usage(error.to_string()))?,
            None => OsString::new(),
        };
        match row.action {
            Action::Help => return Ok(Invocation::Help),
            Action::Version => return Ok(Invocation::Version),
            Action::Generate => {
                return one_of(row.long, value, &KINDS).map(Invocation::Generate);
            }
            _ => apply(&mut typed, row, value)?,
        }
    }
    Ok(Invocation::Run(Box::new(typed)))
}

/// The first word may be a command.
fn take_word(typed: &mut CommandLine, word: OsString) {
    let is_first = typed.command == Command::Ask && typed.words.is_empty();
    match COMMANDS.iter().find(|row| is_first && word == row.name) {
        Some(row) => typed.command = row.which,
        None => typed.words.push(word),
    }
}

fn apply(typed: &mut CommandLine, row: &OptionRow, value: OsString) -> Result<()> {
    match row.action {
        Action::Set(name) => {
            if name == settings::SCRIPT_TIMEOUT_SECONDS {
                whole_seconds(row.long, &value)?;
            }
            if name == settings::LLM_MODEL_NAME && value.is_empty() {
                return Err(usage("--model takes a name"));
            }
            typed.settings.push((name, value, row.long));
        }
        Action::System => typed.system = Some(text_value(row.long, value)?),
        Action::Skills => typed.skills.push(filled(row.long, value)?),
        Action::Attach => typed.attach.push(value),
        Action::Session => {
            let name = text_value(row.long, value)?;
            check_name(&name)?;
            typed.session = Some(name);
        }
        Action::Continue => typed.goes_on = true,
        Action::Output => typed.format = one_of(row.long, value, &FORMATS)?,
        Action::Verbosity(verbosity) => typed.verbosity = verbosity,
        Action::NoStream => typed.stream = false,
        Action::MaxSteps => typed.max_steps = max_steps(row.long, value)?,
        Action::Timeout => typed.timeout_seconds = Some(seconds(row.long, value)?),
        Action::NoStdin => typed.stdin = false,
        Action::NoScripts => typed.scripts = false,
        Action::Sandbox => {
            let on = (settings::SCRIPT_SANDBOX, "on".into(), row.long);
            typed.settings.push(on);
        }
        Action::Confirm => typed.confirm = true,
        Action::Log => typed.log = Some(value),
        Action::EnvFile => typed.env_files = EnvFiles::Only(value),
        Action::NoEnvFile => typed.env_files = EnvFiles::Off,
        Action::DryRun => typed.dry_run = true,
        Action::Fix => typed.fix = true,
        Action::SkillsAsTools => typed.skills_as_tools = true,
        Action::Json => typed.format = Format::Json,
        Action::Generate | Action::Help | Action::Version => {}
    }
    Ok(())
}

fn unknown_option(name: &str) -> Error {
    let near = text::nearest(name, OPTIONS.iter().map(|row| row.long), 1);
    let error =
        usage(format!("there is no option `{}`", text::one_line(name, limits::SUMMARY_CHARS)));
    match near.first() {
        Some(near) if name.starts_with("--") => error.with_hint(format!("did you mean {near}?")),
        _ => error.with_hint("`skills-runner --help` lists the options; a prompt that begins with a dash comes after --"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn typed(arguments: &[&str]) -> CommandLine {
        match parse(arguments.iter().map(OsString::from).collect()).unwrap() {
            Invocation::Run(typed) => *typed,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_first_word_may_be_a_command_and_nothing_after_the_dashes_is() {
        let table: &[(&[&str], Command, &[&str])] = &[
            (&["what", "is"], Command::Ask, &["what", "is"]),
            (&["demo"], Command::Demo, &[]),
            (&["-q", "chat", "hi", "demo"], Command::Chat, &["hi", "demo"]),
            (&["the", "demo"], Command::Ask, &["the", "demo"]),
            (&["--", "demo"], Command::Ask, &["demo"]),
            (&["--", "-x", "--"], Command::Ask, &["-x", "--"]),
            (&["tool", "list_skills", "-"], Command::Tool, &["list_skills", "-"]),
            (&["-s", "--", "x"], Command::Ask, &["x"]),
            (&[], Command::Ask, &[]),
        ];
        for (arguments, command, words) in table {
            let typed = typed(arguments);
            assert_eq!(
                (typed.command, typed.words.as_slice()),
                (*command, words.iter().map(OsString::from).collect::<Vec<_>>().as_slice()),
                "{arguments:?}"
            );
        }
    }

    #[test]
    fn options_stand_anywhere_and_the_last_one_wins() {
        let typed =
            typed(&["a", "-mx", "--model=y", "--skills", "d", "b", "-nq", "--timeout", "1.5"]);
        assert_eq!(typed.words, ["a", "b"]);
        assert_eq!(typed.settings.last().unwrap().1, "y");
        assert_eq!(
            (typed.skills, typed.stdin, typed.verbosity),
            (vec!["d".into()], false, Verbosity::Quiet)
        );
        assert_eq!(typed.timeout_seconds, Some(1.5));
    }

    #[test]
    fn wrong_usage_says_what_is_right() {
        let table: &[(&[&str], &str)] = &[
            (&["--modle", "x"], "did you mean --model?"),
            (&["-x"], "--help"),
            (&["--max-steps", "0"], "whole number from 1"),
            (&["-o", "xml"], "one of text, json, jsonl, not `xml`"),
            (&["--timeout", "nan"], "more than 0"),
            (&["--timeout", "-1"], "more than 0"),
            (&["--model"], "missing argument"),
            (&["-m", ""], "--model takes a name"),
            (&["--skills", ""], "--skills takes a folder"),
            (&["--quiet=yes"], "unexpected argument"),
        ];
        for (arguments, expected) in table {
            let error = parse(arguments.iter().map(OsString::from).collect()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage);
            assert!(error.to_string().contains(expected), "{arguments:?}: {error}");
        }
    }

    #[test]
    fn rows_of_the_tables_are_unique_and_settings_exist() {
        let mut names: Vec<&str> = OPTIONS.iter().map(|row| row.long).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), OPTIONS.len());
        for row in OPTIONS {
            if let Action::Set(name) = row.action {
                assert!(settings::setting(name).is_some(), "{name}");
            }
        }
    }
}
