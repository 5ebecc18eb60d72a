//! The table of options. The parser, the help, the man page and the completions read it. A new
//! option is a row here and a field in `options`.

use crate::cli::options::{
    AskOptions, ChangeAction, ChangeCommand, CheckCommand, Command, CommandLine, CommonOptions,
    EnvFiles, EvalCommand, InitCommand, McpOptions, SessionChoice, SessionsCommand, SetupCommand,
    SkillsCommand, ToolOptions,
};
use crate::cli::values::{TypedOption, usage};
use crate::ui::{FORMATS, Format, Verbosity};
use agent::session::check_name;
use base::error::Result;
use base::limits;
use base::settings;

/// A row of the table of options.
#[derive(Debug)]
pub(super) struct OptionRow {
    /// The names and the placeholder of the value, as the help shows them.
    pub usage: &'static str,
    /// A short description.
    pub about: &'static str,
    /// The commands that take it, and its effect on them.
    pub effect: Effect,
    /// The same two for other commands.
    other: Option<(&'static str, Effect)>,
}

/// Changes the options of a command.
type Setter<T> = fn(&mut T, &TypedOption) -> Result<()>;

/// The commands that take an option, and its effect.
#[derive(Clone, Copy, Debug)]
pub(super) enum Effect {
    /// For every command.
    Common(Setter<CommonOptions>),
    /// For a question and `chat`.
    Ask(Setter<AskOptions>),
    /// For commands whose tools can run scripts.
    Tools(Setter<ToolOptions>),
    /// For `mcp`.
    Mcp(Setter<McpOptions>),
    /// For `skills check`.
    Check(Setter<CheckCommand>),
    /// For `skills eval`.
    Eval(Setter<EvalCommand>),
    /// For `init`.
    Init(Setter<InitCommand>),
    /// For `skills setup`.
    Setup(Setter<SetupCommand>),
    /// For `skills add`.
    Add(Setter<ChangeCommand>),
    /// For `skills add`, `update`, `remove` and `restore`.
    Change(Setter<ChangeCommand>),
    /// For `skills update`, `remove` and `restore`.
    Force(Setter<ChangeCommand>),
    /// For `sessions show`.
    ShowSession(Setter<bool>),
    /// Prints the help instead of running a command.
    Help,
    /// Prints the version instead.
    Version,
    /// Prints a man page or a completion instead.
    Generate,
}
use Effect::{
    Add, Ask, Change, Check, Common, Eval, Force, Generate, Help, Init, Mcp, Setup, ShowSession,
    Tools, Version,
};

const fn option(usage: &'static str, about: &'static str, effect: Effect) -> OptionRow {
    OptionRow { usage, about, effect, other: None }
}

/// Every option.
pub(super) static OPTIONS: &[OptionRow] = &[
    option(
        "-m, --model NAME",
        "name of the model (LLM_MODEL_NAME)",
        Common(|options, typed| {
            typed.required("a name")?;
            add_setting(options, settings::LLM_MODEL_NAME, typed)
        }),
    ),
    option(
        "-s, --system TEXT",
        "system prompt instead of the built-in one; @FILE reads it from a file",
        Ask(|ask, typed| set(&mut ask.system, Some(typed.text()?))),
    ),
    option(
        "--skills DIR",
        "skills folder; may be repeated; if two have a skill of the same name, the first folder wins",
        Common(|options, typed| add(&mut options.skills, typed.required("a folder")?)),
    ),
    option(
        "--skill NAME",
        "send the document of this skill with the first question; may be repeated",
        Ask(|ask, typed| add_name(&mut ask.skills, typed)),
    )
    .or(
        "install only this one; may be repeated",
        Add(|change, typed| add_name(&mut change.skills, typed)),
    ),
    option(
        "--require-skill",
        "end with status 5 if the model answers without the document of a skill",
        Ask(|ask, _| set(&mut ask.requirements.skill, true)),
    ),
    option(
        "--require-script",
        "end with status 5 if no script or command ended with 0 before the answer",
        Ask(|ask, _| set(&mut ask.requirements.script, true)),
    ),
    option(
        "-a, --attach FILE",
        "add an image (also http://…, https://…) or a text file to the prompt; may be repeated",
        Ask(|ask, typed| add(&mut ask.attach, typed.value.clone())),
    ),
    option(
        "--session NAME",
        "save the conversation under this name, or continue it",
        Ask(|ask, typed| {
            let name = typed.text()?;
            check_name(&name)?;
            choose_session(ask, SessionChoice::Named(name))
        }),
    ),
    option(
        "-c, --continue",
        "continue the latest conversation of this folder",
        Ask(|ask, _| choose_session(ask, SessionChoice::Latest)),
    ),
    option(
        "-o, --output FORMAT",
        "text (default), json (one object at the end) or jsonl (one object per event)",
        Common(|options, typed| set(&mut options.format, typed.choice(&FORMATS)?)),
    ),
    option(
        "-q, --quiet",
        "no lines about tool calls on standard error",
        Common(|options, _| set(&mut options.verbosity, Verbosity::Quiet)),
    ),
    option(
        "-v, --verbose",
        "also show requests, timings, tokens, reasoning and results",
        Common(|options, _| set(&mut options.verbosity, Verbosity::Verbose)),
    ),
    option(
        "--no-stream",
        "request whole answers instead of streams",
        Common(|options, _| set(&mut options.stream, false)),
    ),
    option(
        "--plain",
        "show the answer on a terminal as it came: no colours",
        Common(|options, _| set(&mut options.plain, true)),
    ),
    option(
        "--max-steps N",
        "limit of model requests in one turn (default 50)",
        Common(|options, typed| set(&mut options.max_steps, typed.whole_number(u32::MAX)?)),
    ),
    option(
        "--timeout SECONDS",
        "time limit of the whole run, with retries and scripts (default none)",
        Common(|options, typed| set(&mut options.timeout_seconds, Some(typed.seconds()?))),
    ),
    option(
        "--script-timeout SECONDS",
        "time limit of one script or command (SCRIPT_TIMEOUT_SECONDS)",
        Common(|options, typed| {
            typed.whole_number(limits::MAX_SECONDS)?;
            add_setting(options, settings::SCRIPT_TIMEOUT_SECONDS, typed)
        }),
    ),
    option(
        "-n, --no-stdin",
        "never read standard input, like `ssh -n`",
        Common(|options, _| set(&mut options.stdin, false)),
    ),
    option(
        "--no-scripts",
        "the model reads skills and nothing else: no scripts, no commands, no files of the user",
        Common(|options, _| set(&mut options.scripts, false)),
    ),
    option(
        "--sandbox",
        "run scripts and commands in a sandbox (SCRIPT_SANDBOX=on)",
        Common(|options, typed| {
            let on = TypedOption { name: typed.name, value: "on".into() };
            add_setting(options, settings::SCRIPT_SANDBOX, &on)
        }),
    ),
    option(
        "--confirm",
        "ask on the terminal before each script, command and change of a file; without a terminal refuse",
        Tools(|tools, _| set(&mut tools.confirm, true)),
    ),
    option(
        "--log FILE",
        "append all events, with whole scripts and results, to a private file",
        Tools(|tools, typed| set(&mut tools.log, Some(typed.required("a file")?))),
    ),
    option(
        "--env-file FILE",
        "read this file instead of .env",
        Common(|options, typed| set(&mut options.env_files, EnvFiles::Only(typed.value.clone()))),
    ),
    option(
        "--no-env-file",
        "read no .env",
        Common(|options, _| set(&mut options.env_files, EnvFiles::Off)),
    ),
    option(
        "--dry-run",
        "print the request that would be sent, without credentials, and exit",
        Ask(|ask, _| set(&mut ask.dry_run, true)),
    )
    .or("only show what would change", Change(|change, _| set(&mut change.dry_run, true))),
    option(
        "--json",
        "same as -o json",
        Common(|options, _| set(&mut options.format, Format::Json)),
    ),
    option(
        "--skills-as-tools",
        "with `mcp`: also offer each skill as a tool",
        Mcp(|mcp, _| set(&mut mcp.skills_as_tools, true)),
    ),
    option(
        "--user-files",
        "with `mcp`: also offer run_command and the tools for the user's files",
        Mcp(|mcp, _| set(&mut mcp.user_files, true)),
    ),
    option(
        "--strict",
        "with `skills check`: status 1 on warnings, too",
        Check(|check, _| set(&mut check.strict, true)),
    ),
    option(
        "--here",
        "with `skills check`: what is missing on this machine is an error",
        Check(|check, _| set(&mut check.here, true)),
    ),
    option(
        "--runs N",
        "with `skills eval`: runs of each case (default 3)",
        Eval(|eval, typed| set(&mut eval.runs, typed.whole_number(limits::EVAL_RUNS)?)),
    ),
    option(
        "--triggers",
        "with `skills eval`: only whether the model uses the skill",
        Eval(|eval, _| set(&mut eval.triggers, true)),
    ),
    option(
        "--tasks",
        "with `skills eval`: only whether tasks succeed",
        Eval(|eval, _| set(&mut eval.tasks, true)),
    ),
    option(
        "--baseline",
        "with `skills eval`: the tasks also without the skill",
        Eval(|eval, _| set(&mut eval.baseline, true)),
    ),
    option(
        "--judge MODEL",
        "with `skills eval`: let this model decide assertions in prose",
        Eval(|eval, typed| {
            typed.required("a model")?;
            set(&mut eval.judge, Some(typed.text()?))
        }),
    ),
    option(
        "-j, --jobs N",
        "with `skills eval`: runs at a time (default 1)",
        Eval(|eval, typed| set(&mut eval.jobs, typed.whole_number(limits::EVAL_JOBS)? as usize)),
    ),
    option(
        "--min RATE",
        "with `skills eval`: status 1 if a rate (0 to 1) is below this one",
        Eval(|eval, typed| set(&mut eval.min_millionths, Some(typed.part()?))),
    ),
    option(
        "--junit FILE",
        "with `skills eval`: write the results for CI servers",
        Eval(|eval, typed| set(&mut eval.junit, Some(typed.required("a file")?))),
    ),
    option(
        "--out DIR",
        "with `skills eval`: keep all results there, and go on from those that are there",
        Eval(|eval, typed| set(&mut eval.out, Some(typed.required("a folder")?))),
    ),
    option(
        "--base-url URL",
        "with `init`: the address of the API",
        Init(|init, typed| set(&mut init.base_url, Some(typed.text()?))),
    ),
    option(
        "--key-file FILE",
        "with `init`: the file of the API key; `-` reads the key from standard input",
        Init(|init, typed| set(&mut init.key_file, Some(typed.value.clone()))),
    ),
    option(
        "-y, --yes",
        "with `skills setup`: install what its documents name without asking",
        Setup(|setup, _| set(&mut setup.yes, true)),
    )
    .or("change the skills without asking", Change(|change, _| set(&mut change.yes, true))),
    option(
        "--to DIR",
        "with `skills add`, `update`, `remove`, `restore`: the skills folder",
        Change(|change, typed| set(&mut change.to, Some(typed.required("a folder")?))),
    ),
    option(
        "--force",
        "with `skills update`, `remove`, `restore`: also skills that were changed by hand (added files stay, but in `remove`)",
        Force(|change, _| set(&mut change.force, true)),
    ),
    option(
        "--markdown",
        "with `sessions show`: as Markdown, to read or to share",
        ShowSession(|markdown, _| set(markdown, true)),
    ),
    option(
        "--generate KIND",
        "print the man page or a completion: man, complete-bash, complete-zsh, complete-fish",
        Generate,
    ),
    option("-h, --help", "print this help, after a command its own", Help),
    option("-V, --version", "print the version", Version),
];

#[allow(clippy::unnecessary_wraps, reason = "the form of a setter")]
fn set<T>(field: &mut T, value: T) -> Result<()> {
    *field = value;
    Ok(())
}

#[allow(clippy::unnecessary_wraps, reason = "the form of a setter")]
fn add<T>(list: &mut Vec<T>, value: T) -> Result<()> {
    list.push(value);
    Ok(())
}

fn add_name(list: &mut Vec<String>, typed: &TypedOption) -> Result<()> {
    typed.required("a name")?;
    add(list, typed.text()?)
}

fn add_setting(
    options: &mut CommonOptions,
    variable: &'static str,
    typed: &TypedOption,
) -> Result<()> {
    add(&mut options.settings, (variable, typed.value.clone(), typed.name))
}

fn choose_session(ask: &mut AskOptions, choice: SessionChoice) -> Result<()> {
    let is_latest = |choice: &SessionChoice| *choice == SessionChoice::Latest;
    if ask.session.as_ref().is_some_and(|other| is_latest(other) != is_latest(&choice)) {
        return Err(usage("--session and --continue cannot be used together")
            .with_hint("--session NAME alone continues that session"));
    }
    set(&mut ask.session, Some(choice))
}

impl OptionRow {
    /// The long name.
    pub(super) fn long(&self) -> &'static str {
        let mut names = self.usage.split(' ');
        names.find(|name| name.starts_with("--")).unwrap_or_default()
    }

    /// Describes the option for all commands that take it.
    pub(super) fn whole_about(&self) -> String {
        let other = self.other.map(|(about, effect)| format!("; {}: {about}", effect.works()));
        format!("{}{}", self.about, other.unwrap_or_default())
    }

    /// Describes the option for a command.
    pub(super) fn about_for(&self, command: &mut Command) -> &'static str {
        let other = self.other.filter(|(_, effect)| effect.is_for(command));
        other.map_or(self.about, |(about, _)| about)
    }

    /// The letter of the short form.
    pub(super) fn short(&self) -> Option<char> {
        let (name, _) = self.usage.split_once(", ")?;
        name.chars().nth(1)
    }

    /// The placeholder of the value; `None`: the option takes no value.
    pub(super) fn value(&self) -> Option<&'static str> {
        let (_, last) = self.usage.rsplit_once(' ')?;
        (!last.starts_with('-')).then_some(last)
    }

    const fn or(self, about: &'static str, effect: Effect) -> OptionRow {
        OptionRow { other: Some((about, effect)), ..self }
    }

    /// Where the option works, if the command does not take it.
    pub(super) fn works_only(&self, command: &mut Command) -> Option<String> {
        let effects = [Some(self.effect), self.other.map(|(_, effect)| effect)];
        let effects = effects.into_iter().flatten();
        if effects.clone().any(|effect| effect.is_for(command)) {
            return None;
        }
        Some(effects.map(Effect::works).collect::<Vec<_>>().join(" or "))
    }

    /// Applies the option to a command line. It is wrong usage with a command that does not take
    /// it.
    pub(super) fn apply(&self, line: &mut CommandLine, typed: &TypedOption) -> Result<()> {
        if let Some(works) = self.works_only(&mut line.command) {
            return Err(usage(format!("{} works only {works}", self.long())));
        }
        let other = self.other.map(|(_, effect)| effect);
        let other = other.filter(|effect| effect.is_for(&mut line.command));
        match (other.unwrap_or(self.effect), &mut line.command) {
            (Common(setter), _) => setter(&mut line.options, typed),
            (Ask(setter), Command::Ask(ask) | Command::Chat(ask)) => setter(ask, typed),
            (Tools(setter), command) => {
                command.tool_options().map_or(Ok(()), |tools| setter(tools, typed))
            }
            (Mcp(setter), Command::Mcp(mcp)) => setter(mcp, typed),
            (Check(setter), Command::Skills(SkillsCommand::Check(check))) => setter(check, typed),
            (Eval(setter), Command::Eval(eval)) => setter(eval, typed),
            (Init(setter), Command::Init(init)) => setter(init, typed),
            (Setup(setter), Command::Skills(SkillsCommand::Setup(setup))) => setter(setup, typed),
            (
                Add(setter) | Change(setter) | Force(setter),
                Command::Skills(SkillsCommand::Change(change)),
            ) => setter(change, typed),
            (ShowSession(setter), Command::Sessions(SessionsCommand::Show { markdown, .. })) => {
                setter(markdown, typed)
            }
            // The parser has returned the texts of help, version and generators.
            _ => Ok(()),
        }
    }
}

impl Effect {
    /// Whether a command takes an option with this effect.
    fn is_for(self, command: &mut Command) -> bool {
        let action = match command {
            Command::Skills(SkillsCommand::Change(change)) => Some(&change.action),
            _ => None,
        };
        let is_add = matches!(action, Some(ChangeAction::Add(_)));
        match self {
            Common(_) | Help | Version | Generate => true,
            Ask(_) => matches!(command, Command::Ask(_) | Command::Chat(_)),
            Tools(_) => command.tool_options().is_some(),
            Mcp(_) => matches!(command, Command::Mcp(_)),
            Check(_) => matches!(command, Command::Skills(SkillsCommand::Check(_))),
            Eval(_) => matches!(command, Command::Eval(_)),
            Init(_) => matches!(command, Command::Init(_)),
            Setup(_) => matches!(command, Command::Skills(SkillsCommand::Setup(_))),
            Add(_) => is_add,
            Change(_) => action.is_some(),
            Force(_) => action.is_some() && !is_add,
            ShowSession(_) => matches!(command, Command::Sessions(SessionsCommand::Show { .. })),
        }
    }

    /// The commands that take such an option, in words.
    fn works(self) -> &'static str {
        match self {
            Common(_) | Help | Version | Generate => "everywhere",
            Ask(_) => "with a question or chat",
            Tools(_) => "where tools can run: with a question, chat, demo, mcp or tool",
            Mcp(_) => "with `mcp`",
            Check(_) => "with `skills check`",
            Eval(_) => "with `skills eval`",
            Init(_) => "with `init`",
            Setup(_) => "with `skills setup`",
            Add(_) => "with `skills add`",
            Change(_) => "with `skills add`, `update`, `remove`, `restore`",
            Force(_) => "with `skills update`, `remove`, `restore`",
            ShowSession(_) => "with `sessions show`",
        }
    }
}
