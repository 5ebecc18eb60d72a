//! `demo`: the agent loop without an account.
//!
//! The model is scripted and says so; the tools, the skills and their results are real. The
//! skills are embedded in the binary and unpacked into a temporary folder, so the demo works
//! anywhere. It is also the shortest test of an installation.

use std::io;

use serde_json::{Value, json};

use crate::cli::one_shot;
use crate::cli::options::{CommonOptions, ToolOptions};
use crate::cli::run::Run;
use crate::cli::startup::Startup;
use crate::config::ConfigNeeds;
use crate::ui::Output;
use agent::conversation::Conversation;
use agent::tools::BASE_DIRECTORY;
use base::error::{Error, ErrorKind, Result};
use base::event::RunStats;
use base::message::{AssistantMessage, Message};
use base::tool::ToolCall;
use chat_api::Model as _;
use chat_api::scripted::{ScriptedModel, ScriptedStep};
use host::scratch::Scratch;
use skills::SkillsFolder;

const QUESTION: &str = "What is the exact value of (1/3 + 1/7) to the power of 5? Which region has the highest \
                        sales in the sample orders, and what goes wrong in the sample log?";

/// The example skills that the demo uses.
const SKILLS: [&str; 3] = ["calculator", "data-explorer", "text-analyzer"];

/// Embeds files of the repository's `skills` folder.
macro_rules! embedded {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_bytes!(concat!("../../skills/", $path)))),*]
    };
}

/// The embedded files; the first file of a folder comes before those in its subfolders.
static FILES: &[(&str, &[u8])] = embedded![
    "calculator/SKILL.md",
    "calculator/references/functions.md",
    "data-explorer/SKILL.md",
    "data-explorer/assets/orders.csv",
    "data-explorer/scripts/explore.py",
    "data-explorer/scripts/profiles.py",
    "data-explorer/scripts/tables.py",
    "text-analyzer/SKILL.md",
    "text-analyzer/assets/sample.log",
    "text-analyzer/scripts/analyze.py",
    "text-analyzer/scripts/logs.py",
];

static STEPS: &[ScriptedStep] = &[
    |_| reply_with_calls("I look at which skills there are.", &[("list_skills", json!({}))]),
    |_| {
        let documents = SKILLS.map(|name| (GET, json!({"skill_name": name})));
        reply_with_calls("Three of them fit: I read how they work.", &documents)
    },
    |_| {
        let page = json!({"skill_name": "calculator", "file_path": "references/functions.md", "limit": 12});
        reply_with_calls("A look into a reference file, too.", &[("read_file_in_skill", page)])
    },
    |messages| {
        let script =
            "from fractions import Fraction\nprint((Fraction(1, 3) + Fraction(1, 7)) ** 5)\n";
        reply_with_calls(
            "Now the work: a script of my own, and two that the skills contain.",
            &[
                (RUN, json!({"skill_name": "calculator", "script": script})),
                (RUN, script_arguments(messages, "data-explorer", "scripts/explore.py", EXPLORE)),
                (RUN, script_arguments(messages, "text-analyzer", "scripts/analyze.py", ANALYZE)),
            ],
        )
    },
    summary,
];

const GET: &str = "get_skill";
const RUN: &str = "run_python_script";
/// The arguments of the scripts; those below `assets` are files of the skill.
const EXPLORE: &str = "group assets/orders.csv --by region --of amount --agg sum --limit 1 --json";
const ANALYZE: &str = "log assets/sample.log --json";

fn script_arguments(messages: &[Message], skill: &str, file: &str, args: &str) -> Value {
    let mut folders = messages.iter().filter_map(|message| match message {
        Message::Tool(result) => {
            result.document.as_ref()?.lines().next()?.strip_prefix(BASE_DIRECTORY)
        }
        _ => None,
    });
    let folder = folders.find(|folder| folder.ends_with(skill)).unwrap_or_default();
    let absolute = |word: &str| match word.strip_prefix("assets/") {
        Some(_) => format!("{folder}/{word}"),
        None => word.to_string(),
    };
    let args: Vec<_> = args.split(' ').map(absolute).collect();
    json!({"skill_name": skill, "file_path": file, "args": args})
}

/// Runs the demo with the embedded skills.
pub(super) fn run(
    tools: &ToolOptions,
    options: CommonOptions,
    startup: &Startup,
    output: &mut Output,
) -> Result<()> {
    let mut run = Run::new(options, startup, ConfigNeeds::Skills, output)?;
    run.apply_tool_options(tools, output)?;
    // A missing folder is an error everywhere, also where none is used.
    if !run.options.skills.is_empty() {
        run.check_folders(output)?;
    }
    let model = ScriptedModel::new("scripted", STEPS);
    output.set_model(model.name());
    // Kept until the demo ends.
    let folder = unpack(&run)?;
    run.config.skills_folders = vec![SkillsFolder::named(folder.path())];
    // They are from the program itself.
    run.config.scripts.skills_locked = false;
    run.skills = run.config.skills().addressed_by_path();
    output.note(
        "demo: the model's replies are scripted; the skills, the tools and their results are real",
    );
    output.note(&format!("question: {QUESTION}"));
    output.record_question(QUESTION);
    let (system_prompt, tools) = run.prepare_model_input(QUESTION, &model, output);
    let mut conversation = Conversation::new(&system_prompt);
    conversation.add_question(QUESTION);
    let stats = &mut RunStats::default();
    one_shot::run_turn(
        &mut conversation,
        &model,
        &tools,
        &run.turn_limits(),
        stats,
        |_, _| {},
        output,
    )?;
    if script_results(conversation.messages()).any(|result| result.is_err()) {
        let error = Error::new(ErrorKind::Io, "failed to run the scripts of the demo");
        return Err(error.with_hint("`skills-runner doctor` reports what is missing"));
    }
    output.note("next: `skills-runner init` sets up a real model");
    Ok(())
}

fn reply_with_calls(content: &str, calls: &[(&str, Value)]) -> AssistantMessage {
    let call = |(name, arguments): &(&str, Value)| ToolCall {
        name: (*name).into(),
        arguments: arguments.to_string(),
        ..ToolCall::default()
    };
    AssistantMessage {
        content: content.into(),
        calls: calls.iter().map(call).collect(),
        ..AssistantMessage::default()
    }
}

/// Writes the skills to a private folder, which is deleted when the value is dropped.
fn unpack(run: &Run) -> Result<Scratch> {
    let write = || {
        let scratch = Scratch::new(&run.config.scripts.temporary_folder)?;
        for (path, bytes) in FILES {
            if let Some((folder, _)) = path.rsplit_once('/')
                && !scratch.path().join(folder).is_dir()
            {
                scratch.create_folder(folder)?;
            }
            scratch.write_file(path, bytes)?;
        }
        Ok(scratch)
    };
    write().map_err(|error: io::Error| {
        let message = format!("failed to write the skills of the demo: {error}");
        Error::new(ErrorKind::Io, message)
            .with_hint("set TMPDIR to a writable folder for temporary files")
    })
}

/// The output of each script, or its failed result.
fn script_results(messages: &[Message]) -> impl Iterator<Item = std::result::Result<String, &str>> {
    messages.iter().filter_map(|message| match message {
        Message::Tool(result) if result.name == RUN => Some(script_output(&result.content)),
        _ => None,
    })
}

/// The final reply, built from the output of the scripts.
fn summary(messages: &[Message]) -> AssistantMessage {
    let printed: std::result::Result<Vec<String>, &str> = script_results(messages).collect();
    let content = match printed {
        Ok(printed) => answer_text(&printed),
        Err(failure) => format!("(scripted reply) There is no answer: a script failed. {failure}"),
    };
    AssistantMessage { content, ..AssistantMessage::default() }
}

fn answer_text(printed: &[String]) -> String {
    let text = |index: usize| printed.get(index).map_or("", String::as_str);
    let json = |index: usize| serde_json::from_str::<Value>(text(index)).unwrap_or_default();
    let (best, log) = (&json(1)["rows"][0], json(2));
    let problem = log["messages"]
        .as_array()
        .and_then(|messages| messages.iter().find(|message| message["level"] == "ERROR"));
    format!(
        "(scripted reply) (1/3 + 1/7)^5 is exactly {}. The region with the highest sales is {} with {}. The log has {} \
         errors in {} entries, most often: {}.",
        text(0),
        best["region"].as_str().unwrap_or("unknown"),
        best["amount_sum"],
        log["levels"]["ERROR"],
        log["entries"],
        problem.and_then(|problem| problem["pattern"].as_str()).unwrap_or("none"),
    )
}

fn script_output(content: &str) -> std::result::Result<String, &str> {
    let printed = content.split_once("\n--- stdout (").and_then(|(head, rest)| {
        let (_, rest) = rest.split_once('\n')?;
        let (printed, _) = rest.rsplit_once("--- stderr (")?;
        head.starts_with("exit 0,").then(|| printed.trim().to_string())
    });
    printed.ok_or(content)
}
