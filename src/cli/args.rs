//! The parser of the command line, driven by the tables of commands and options. It checks
//! single values; `setup` and the commands decide what they mean together.

use std::ffi::OsString;

use lexopt::Arg;

use crate::cli::generate::{Generator, KINDS};
use crate::cli::table::{Action, COMMANDS, Command, OPTIONS, OptionRow};
pub(crate) use crate::cli::values::usage;
use crate::cli::values::{
    check_whole_seconds, non_empty_folder, parse_choice, parse_max_steps, parse_seconds, utf8_value,
};
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
    /// Only this one.
    Only(OsString),
    /// No file.
    Off,
}

/// A parsed command line.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "independent switches of the command line")]
pub struct CommandLine {
    /// The command.
    pub command: Command,
    /// The words that are not options: the prompt, or the arguments of a command.
    pub words: Vec<OsString>,
    /// Settings given by options: variable, value, name of the option.
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
    pub continue_latest: bool,
    /// `--output`.
    pub format: Format,
    /// `--quiet`, `--verbose`.
    pub verbosity: Verbosity,
    /// False with `--no-stream`.
    pub stream: bool,
    /// `--max-steps`.
    pub max_steps: u32,
    /// `--timeout`, in seconds.
    pub timeout_seconds: Option<f64>,
    /// False with `--no-stdin`.
    pub stdin: bool,
    /// False with `--no-scripts`.
    pub scripts: bool,
    /// `--confirm`.
    pub confirm: bool,
    /// `--log`.
    pub log: Option<OsString>,
    /// Which environment files are read.
    pub env_files: EnvFiles,
    /// `--dry-run`.
    pub dry_run: bool,
    /// `--skills-as-tools`.
    pub skills_as_tools: bool,
}

/// What the program should do. All variants except `Run` print a fixed text before anything
/// else can fail.
#[derive(Debug)]
pub enum Invocation {
    /// Run a command.
    Run(Box<CommandLine>),
    /// Print the help.
    Help,
    /// Print the version.
    Version,
    /// Print the output of this generator.
    Generate(Generator),
}

/// Parses the arguments, without the name of the program.
pub fn parse(arguments: Vec<OsString>) -> Result<Invocation> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let mut args = CommandLine {
        command: Command::Question,
        words: Vec::new(),
        settings: Vec::new(),
        system: None,
        skills: Vec::new(),
        attach: Vec::new(),
        session: None,
        continue_latest: false,
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
        skills_as_tools: false,
    };
    loop {
        // After `--` everything is a word of the prompt.
        if let Some(rest) = parser.try_raw_args()
            && rest.peek().is_some_and(|next| next == "--")
        {
            args.words.extend(rest.skip(1));
            break;
        }
        let row = match parser.next().map_err(|error| usage(error.to_string()))? {
            None => break,
            Some(Arg::Value(word)) => {
                add_word(&mut args, word);
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
                return parse_choice(row.long, value, &KINDS).map(Invocation::Generate);
            }
            _ => apply_option(&mut args, row, value)?,
        }
    }
    Ok(Invocation::Run(Box::new(args)))
}

/// Adds a word; the first one may be a command.
fn add_word(args: &mut CommandLine, word: OsString) {
    let is_first = args.command == Command::Question && args.words.is_empty();
    match COMMANDS.iter().find(|row| is_first && word == row.name) {
        Some(row) => args.command = row.command,
        None => args.words.push(word),
    }
}

fn apply_option(args: &mut CommandLine, row: &OptionRow, value: OsString) -> Result<()> {
    match row.action {
        Action::Set(name) => {
            if name == settings::SCRIPT_TIMEOUT_SECONDS {
                check_whole_seconds(row.long, &value)?;
            }
            if name == settings::LLM_MODEL_NAME && value.is_empty() {
                return Err(usage("--model needs a name"));
            }
            args.settings.push((name, value, row.long));
        }
        Action::System => args.system = Some(utf8_value(row.long, value)?),
        Action::Skills => args.skills.push(non_empty_folder(row.long, value)?),
        Action::Attach => args.attach.push(value),
        Action::Session => {
            let name = utf8_value(row.long, value)?;
            check_name(&name)?;
            args.session = Some(name);
        }
        Action::Continue => args.continue_latest = true,
        Action::Output => args.format = parse_choice(row.long, value, &FORMATS)?,
        Action::Verbosity(verbosity) => args.verbosity = verbosity,
        Action::NoStream => args.stream = false,
        Action::MaxSteps => args.max_steps = parse_max_steps(row.long, value)?,
        Action::Timeout => args.timeout_seconds = Some(parse_seconds(row.long, value)?),
        Action::NoStdin => args.stdin = false,
        Action::NoScripts => args.scripts = false,
        Action::Sandbox => {
            let on = (settings::SCRIPT_SANDBOX, "on".into(), row.long);
            args.settings.push(on);
        }
        Action::Confirm => args.confirm = true,
        Action::Log => args.log = Some(value),
        Action::EnvFile => args.env_files = EnvFiles::Only(value),
        Action::NoEnvFile => args.env_files = EnvFiles::Off,
        Action::DryRun => args.dry_run = true,
        Action::SkillsAsTools => args.skills_as_tools = true,
        Action::Json => args.format = Format::Json,
        Action::Generate | Action::Help | Action::Version => {}
    }
    Ok(())
}

fn unknown_option(name: &str) -> Error {
    let near = text::similar_names(name, OPTIONS.iter().map(|row| row.long), 1);
    let error = usage(format!("unknown option `{}`", text::one_line(name, limits::SUMMARY_CHARS)));
    match near.first() {
        Some(near) if name.starts_with("--") => error.with_hint(format!("did you mean {near}?")),
        _ => error.with_hint("`skills-runner --help` lists the options; put a prompt that starts with a dash after --"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn args(arguments: &[&str]) -> CommandLine {
        match parse(arguments.iter().map(OsString::from).collect()).unwrap() {
            Invocation::Run(args) => *args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_the_first_word_before_the_dashes_may_be_a_command() {
        let table: &[(&[&str], Command, &[&str])] = &[
            (&["what", "is"], Command::Question, &["what", "is"]),
            (&["demo"], Command::Demo, &[]),
            (&["-q", "chat", "hi", "demo"], Command::Chat, &["hi", "demo"]),
            (&["the", "demo"], Command::Question, &["the", "demo"]),
            (&["--", "demo"], Command::Question, &["demo"]),
            (&["--", "-x", "--"], Command::Question, &["-x", "--"]),
            (&["tool", "list_skills", "-"], Command::Tool, &["list_skills", "-"]),
            (&["-s", "--", "x"], Command::Question, &["x"]),
            (&[], Command::Question, &[]),
        ];
        for (arguments, command, words) in table {
            let args = args(arguments);
            assert_eq!(
                (args.command, args.words.as_slice()),
                (*command, words.iter().map(OsString::from).collect::<Vec<_>>().as_slice()),
                "{arguments:?}"
            );
        }
    }

    #[test]
    fn options_are_accepted_anywhere_and_the_last_one_wins() {
        let args =
            args(&["a", "-mx", "--model=y", "--skills", "d", "b", "-nq", "--timeout", "1.5"]);
        assert_eq!(args.words, ["a", "b"]);
        assert_eq!(args.settings.last().unwrap().1, "y");
        assert_eq!(
            (args.skills, args.stdin, args.verbosity),
            (vec!["d".into()], false, Verbosity::Quiet)
        );
        assert_eq!(args.timeout_seconds, Some(1.5));
    }

    #[test]
    fn usage_errors_name_valid_values() {
        let table: &[(&[&str], &str)] = &[
            (&["--modle", "x"], "did you mean --model?"),
            (&["-x"], "--help"),
            (&["--max-steps", "0"], "whole number from 1"),
            (&["-o", "xml"], "one of text, json, jsonl, not `xml`"),
            (&["--timeout", "nan"], "greater than 0"),
            (&["--timeout", "-1"], "greater than 0"),
            (&["--model"], "missing argument"),
            (&["-m", ""], "--model needs a name"),
            (&["--skills", ""], "--skills needs a folder"),
            (&["--quiet=yes"], "unexpected argument"),
        ];
        for (arguments, expected) in table {
            let error = parse(arguments.iter().map(OsString::from).collect()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage);
            assert!(error.to_string().contains(expected), "{arguments:?}: {error}");
        }
    }

    #[test]
    fn option_names_are_unique_and_their_settings_exist() {
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
