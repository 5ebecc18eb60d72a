//! The parser of the command line, driven by the tables of commands and options. First the words
//! and options are collected; then the words give the command, which takes the options.

use std::ffi::OsString;

use lexopt::Arg;

use crate::cli::commands::{COMMANDS, CommandRow, joined, meant_command, prompt_hint};
use crate::cli::generate::{Generator, KINDS};
use crate::cli::option_table::{Effect, OPTIONS, OptionRow};
use crate::cli::options::{AskOptions, Command, CommandLine, CommonOptions};
use crate::cli::values::{TypedOption, usage};
use base::error::{Error, Result};
use base::limits;
use base::text;

/// The requested action. All variants except `Run` print a fixed text before anything else can
/// fail.
#[derive(Debug)]
pub enum Invocation {
    /// Run a command.
    Run(Box<CommandLine>),
    /// Print the help, or that of the command whose words these are.
    Help(Vec<String>),
    /// Print the version.
    Version,
    /// Print the output of this generator.
    Generate(Generator),
}

/// Parses the arguments, without the name of the program.
pub fn parse(arguments: Vec<OsString>) -> Result<Invocation> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let (mut words, mut prompt_words) = (Vec::new(), Vec::new());
    let mut options = Vec::new();
    loop {
        // After `--` everything is a word of the prompt.
        if let Some(rest) = parser.try_raw_args()
            && rest.peek().is_some_and(|next| next == "--")
        {
            prompt_words = rest.skip(1).map(utf8_word).collect::<Result<_>>()?;
            break;
        }
        let row = match parser.next().map_err(|error| usage(error.to_string()))? {
            None => break,
            Some(Arg::Value(word)) => {
                words.push(utf8_word(word)?);
                continue;
            }
            Some(Arg::Short(letter)) => {
                let row = OPTIONS.iter().find(|row| row.short() == Some(letter));
                row.ok_or_else(|| unknown_option(&format!("-{letter}")))?
            }
            Some(Arg::Long(name)) => {
                let name = format!("--{name}");
                let row = OPTIONS.iter().find(|row| row.long() == name);
                row.ok_or_else(|| unknown_option(&name))?
            }
        };
        let value = match row.value() {
            Some(_) => parser.value().map_err(|error| usage(error.to_string()))?,
            None => OsString::new(),
        };
        let typed = TypedOption { name: row.long(), value };
        match row.effect {
            Effect::Help => return Ok(Invocation::Help(words)),
            Effect::Version => return Ok(Invocation::Version),
            Effect::Generate => return typed.choice(&KINDS).map(Invocation::Generate),
            _ => options.push((row, typed)),
        }
    }
    let is_marked = !prompt_words.is_empty();
    let mut command = find_command(words, prompt_words)?;
    if let Command::Ask(ask) | Command::Chat(ask) = &mut command
        && !is_marked
    {
        ask.meant = ask.prompt.as_deref().and_then(meant_command);
    }
    command_line(command, &options).map(|line| Invocation::Run(Box::new(line)))
}

fn utf8_word(word: OsString) -> Result<String> {
    word.into_string().map_err(|word| {
        let shown = text::one_line(&word.to_string_lossy(), limits::SUMMARY_CHARS);
        usage(format!("`{shown}` is not UTF-8 text"))
    })
}

/// The command that the words name; without one, the words are a question. After `--` there is no
/// name of a command.
fn find_command(mut words: Vec<String>, prompt_words: Vec<String>) -> Result<Command> {
    let first = words.first().cloned();
    words.extend(prompt_words);
    let is_named = |row: &&CommandRow| first.as_deref() == Some(row.name());
    let Some(default) = COMMANDS.iter().find(is_named) else {
        let prompt = joined(words.into_iter());
        return Ok(Command::Ask(AskOptions { prompt, ..AskOptions::default() }));
    };
    words.remove(0);
    if default.subcommand().is_none() || words.is_empty() {
        return default.command(words);
    }
    let word = words.remove(0);
    let mut rows = COMMANDS.iter().filter(is_named);
    match rows.find(|row| row.subcommand() == Some(&word)) {
        Some(row) => row.command(words),
        None => {
            // More words may be a sentence.
            let prompt = (!words.is_empty()).then(|| prompt_hint(default.name()));
            Err(unknown_subcommand(default.name(), &word, prompt))
        }
    }
}

/// The command with the options that were typed.
fn command_line(
    command: Command,
    options: &[(&'static OptionRow, TypedOption)],
) -> Result<CommandLine> {
    let mut line = CommandLine { options: CommonOptions::default(), command };
    for (row, typed) in options {
        row.apply(&mut line, typed)?;
    }
    if let Command::Ask(ask) | Command::Chat(ask) = &line.command
        && ask.requirements.script
        && !line.options.scripts
    {
        return Err(usage("--require-script and --no-scripts cannot be used together")
            .with_hint("without scripts, --require-skill can be used"));
    }
    Ok(line)
}

/// Subcommands' names in other programs, and their names here.
const OTHER_NAMES: [(&str, &str); 8] = [
    ("delete", "remove"),
    ("info", "show"),
    ("install", "add"),
    ("rm", "remove"),
    ("search", "list"),
    ("sync", "restore"),
    ("uninstall", "remove"),
    ("upgrade", "update"),
];

fn unknown_subcommand(name: &str, word: &str, prompt: Option<String>) -> Error {
    let rows = COMMANDS.iter().filter(|row| row.name() == name);
    let known: Vec<&str> = rows.filter_map(CommandRow::subcommand).collect();
    let shown = text::one_line(word, limits::SUMMARY_CHARS);
    let error = usage(format!("unknown command `{name} {shown}`"));
    let meant = OTHER_NAMES.iter().find(|(other, name)| *other == word && known.contains(name));
    let near = text::similar_names(word, known.iter().copied(), 1);
    error.with_hint(match meant.map(|(_, name)| name).or(near.first()) {
        Some(near) => match prompt {
            Some(prompt) => format!("did you mean `{name} {near}`? {prompt}"),
            None => format!("did you mean `{name} {near}`?"),
        },
        None => format!("the commands are {}; {}", known.join(", "), prompt_hint(name)),
    })
}

fn unknown_option(name: &str) -> Error {
    let near = text::similar_names(name, OPTIONS.iter().map(OptionRow::long), 1);
    let error = usage(format!("unknown option `{}`", text::one_line(name, limits::SUMMARY_CHARS)));
    match near.first() {
        Some(near) if name.starts_with("--") => error.with_hint(format!("did you mean {near}?")),
        _ => error.with_hint("`skills-runner --help` lists the options; put a prompt that starts with a dash after --"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::options::{
        FactsCommand, SetupCommand, SkillsCommand, ToolCommand, ToolOptions,
    };
    use crate::ui::Verbosity;
    use base::error::ErrorKind;
    use base::settings;

    fn line(arguments: &[&str]) -> CommandLine {
        match parse(arguments.iter().map(OsString::from).collect()).unwrap() {
            Invocation::Run(line) => *line,
            other => panic!("{other:?}"),
        }
    }

    fn ask(prompt: &str) -> AskOptions {
        AskOptions { prompt: Some(prompt.into()), ..AskOptions::default() }
    }

    #[test]
    fn only_the_first_word_before_the_dashes_may_be_a_command() {
        let tool = ToolCommand {
            name: "list_skills".into(),
            json: Some("-".into()),
            ..ToolCommand::default()
        };
        let setup = |name: &str, packages: &[&str]| {
            let packages = packages.iter().map(ToString::to_string).collect();
            let name = name.into();
            Command::Skills(SkillsCommand::Setup(SetupCommand { name, packages, yes: false }))
        };
        let table: &[(&[&str], Command)] = &[
            (&["what", "is"], Command::Ask(ask("what is"))),
            (&["-q", "chat", "hi", "demo"], Command::Chat(ask("hi demo"))),
            (&["the", "demo"], Command::Ask(ask("the demo"))),
            (&["--", "demo"], Command::Ask(ask("demo"))),
            (&["--", "-x", "--"], Command::Ask(ask("-x --"))),
            (
                &["-s", "--", "x"],
                Command::Ask(AskOptions { system: Some("--".into()), ..ask("x") }),
            ),
            (&[], Command::Ask(AskOptions::default())),
            (&["demo"], Command::Demo(ToolOptions::default())),
            (&["tool", "list_skills", "-"], Command::Tool(tool)),
            (&["skills"], Command::Skills(SkillsCommand::List { query: None })),
            (&["skills", "-q", "show", "x"], Command::Skills(SkillsCommand::Show("x".into()))),
            (&["skills", "setup", "x"], setup("x", &[])),
            (&["skills", "setup", "x", "--", "-y", "z"], setup("x", &["-y", "z"])),
            (&["facts", "add", "a", "b"], Command::Facts(FactsCommand::Add("a b".into()))),
            (&["facts", "remove", "2"], Command::Facts(FactsCommand::Remove(2))),
        ];
        for (arguments, command) in table {
            assert_eq!(line(arguments).command, *command, "{arguments:?}");
        }
    }

    #[test]
    fn options_are_accepted_anywhere_and_the_last_one_wins() {
        let typed = ["a", "-mx", "--model=y", "--skills", "d", "b", "-nq", "--timeout", "1.5"];
        let CommandLine { options, command } = line(&typed);
        assert_eq!(command, Command::Ask(ask("a b")));
        assert_eq!(options.settings.last().unwrap().1, "y");
        assert_eq!(
            (options.skills, options.stdin, options.verbosity),
            (vec!["d".into()], false, Verbosity::Quiet)
        );
        assert_eq!(options.timeout_seconds, Some(1.5));
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
            (&["skills", "lsit"], "did you mean `skills list`?"),
            (
                &["skills", "taught", "here"],
                "the commands are list, show, check, new, setup, add, update, remove, restore, eval; ",
            ),
            (&["skills", "show"], "skills show needs NAME\nhint: skills-runner skills show NAME"),
            (&["skills", "show", "a", "b"], "skills show takes NAME\nhint: "),
            (&["demo", "the"], "demo takes no arguments\nhint: skills-runner demo; for a prompt "),
            (&["tool", "a", "{}", "c"], "[JSON|-]; put the JSON into single quotes; for a prompt"),
            (&["facts", "remove"], "remove N; `skills-runner facts list` shows the numbers"),
            (&["sessions", "show"], "show NAME; `skills-runner sessions list` shows the names"),
            (&["sessions", "delete"], "delete NAME; `skills-runner sessions list` shows"),
            (&["facts", "add"], "facts add needs TEXT"),
            (&["--skills-as-tools", "hi"], "--skills-as-tools works only with `mcp`"),
            (&["doctor", "-s", "x"], "--system works only with a question or chat"),
            (&["doctor", "--log", "x"], "--log works only where tools can run"),
            (&["--session", "a", "-c", "hi"], "cannot be used together"),
            (&["--no-scripts", "--require-script", "hi"], "cannot be used together"),
            (&["--skill", "", "hi"], "--skill needs a name"),
        ];
        for (arguments, expected) in table {
            let error = parse(arguments.iter().map(OsString::from).collect()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage);
            assert!(error.to_string().contains(expected), "{arguments:?}: {error}");
        }
    }

    #[test]
    fn option_names_are_unique_and_their_settings_exist() {
        let mut names: Vec<&str> = OPTIONS.iter().map(OptionRow::long).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), OPTIONS.len());
        let typed = ["-mx", "--script-timeout=1", "--sandbox"];
        for (name, ..) in line(&typed).options.settings {
            assert!(settings::setting(name).is_some(), "{name}");
        }
    }
}
