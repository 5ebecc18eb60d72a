//! `demo`: the whole loop without an account.
//!
//! The model is a script and says so; the tools, the skills and what they
//! print are real. What it needs of the skills is in the binary, and lies in a
//! temporary folder meanwhile: so it works wherever the binary is. It is also the
//! shortest proof that an installation works.

use std::io;

use serde_json::{Value, json};

use crate::cli::one_shot;
use crate::cli::setup::Run;
use crate::conversation::Conversation;
use crate::error::{Error, ErrorKind, Result};
use crate::message::{AssistantMessage, Message};
use crate::model::Model as _;
use crate::model::scripted::{ScriptedModel, ScriptedStep};
use crate::skills::Skills;
use crate::tool::ToolCall;
use crate::world::output::Output;
use crate::world::scratch::Scratch;

const QUESTION: &str = "What is the exact value of (1/3 + 1/7) to the power of 5? Which region has the highest \
                        sales in the sample orders, and what goes wrong in the sample log?";

/// The example skills that the script uses.
const SKILLS: [&str; 3] = ["calculator", "data-explorer", "text-analyzer"];

/// Files of a folder beside the sources, each with its bytes.
macro_rules! embedded {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_bytes!(concat!("../../skills/", $path)))),*]
    };
}

/// What the script uses of them; a folder's first file stands before those below it.
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
    |_| calls("I look at what skills there are.", &[("list_skills", json!({}))]),
    |_| {
        let documents = SKILLS.map(|name| (GET, json!({"skill_name": name})));
        calls("Three of them fit: I read how they work.", &documents)
    },
    |_| {
        let page = json!({"skill_name": "calculator", "file_path": "references/functions.md", "limit": 12});
        calls("A look into a reference file, too.", &[("read_file_in_skill", page)])
    },
    |_| {
        let script =
            "from fractions import Fraction\nprint((Fraction(1, 3) + Fraction(1, 7)) ** 5)\n";
        calls(
            "Now the work: a script of my own, and two that the skills bring.",
            &[
                (RUN, json!({"skill_name": "calculator", "script": script})),
                (RUN, bundled("data-explorer", "scripts/explore.py", DATA)),
                (RUN, bundled("text-analyzer", "scripts/analyze.py", LOG)),
            ],
        )
    },
    summary,
];

const GET: &str = "get_skill";
const RUN: &str = "run_python_script";
const DATA: &[&str] = &[
    "group",
    "assets/orders.csv",
    "--by",
    "region",
    "--of",
    "amount",
    "--agg",
    "sum",
    "--limit",
    "1",
    "--json",
];
const LOG: &[&str] = &["log", "assets/sample.log", "--json"];

fn bundled(skill: &str, file: &str, args: &[&str]) -> Value {
    json!({"skill_name": skill, "file_path": file, "args": args})
}

/// Plays the demo, with the skills in the binary or those of a folder that was typed.
pub(super) fn run(mut run: Run, output: &mut Output) -> Result<u8> {
    let model = ScriptedModel::new("scripted", STEPS);
    output.name_model(model.name());
    // It lives until the demo is over.
    let unpacked = match run.typed.skills.as_slice() {
        [] => Some(unpack(&run)?),
        _ => None,
    };
    if let Some(folder) = &unpacked {
        run.config.skills_folders = vec![folder.path().to_path_buf()];
        run.skills = Skills::from_config(&run.config).named_by_path();
    }
    if let Some(name) = lacks(&run.skills) {
        let folders = run.skills.folders().iter().map(|folder| folder.display().to_string());
        let folders = folders.collect::<Vec<_>>().join(", ");
        let message = format!("failed to find the example skill `{name}` in {folders}");
        let hint = "leave --skills out: the skills of the demo are in the program";
        return Err(Error::new(ErrorKind::Config, message).with_hint(hint));
    }
    output.note(
        "demo: the model's replies are scripted; the skills, the tools and their results are real",
    );
    output.note(&format!("the question: {QUESTION}"));
    output.begin_question(QUESTION);
    let (instructions, tools) = run.equip(output);
    let mut conversation = Conversation::new(&instructions);
    conversation.add_question(QUESTION);
    one_shot::answer(&mut conversation, &model, &tools, &run, output)?;
    if results(conversation.messages()).any(|result| result.is_err()) {
        let error = Error::new(ErrorKind::Io, "failed to run the scripts of the demo");
        return Err(error.with_hint("`skills-runner doctor` says what is missing"));
    }
    output.note("next: set LLM_API_BASE_URL, LLM_MODEL_NAME and LLM_API_KEY, and ask a real model");
    Ok(0)
}

fn calls(content: &str, calls: &[(&str, Value)]) -> AssistantMessage {
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

/// The example skill that is not among these.
fn lacks(skills: &Skills) -> Option<&'static str> {
    let mut names = SKILLS.into_iter();
    names.find(|name| skills.find(name).is_err())
}

/// Writes the skills to a private folder, which goes when it is dropped.
fn unpack(run: &Run) -> Result<Scratch> {
    let write = || {
        let scratch = Scratch::new(&run.config.scripts.temporary_folder)?;
        for (path, bytes) in FILES {
            if let Some((folder, _)) = path.rsplit_once('/')
                && !scratch.path().join(folder).is_dir()
            {
                scratch.folder(folder)?;
            }
            scratch.write(path, bytes)?;
        }
        Ok(scratch)
    };
    write().map_err(|error: io::Error| {
        let message = format!("failed to write the skills of the demo: {error}");
        Error::new(ErrorKind::Io, message).with_hint("TMPDIR names a folder for temporary files")
    })
}

/// What the scripts printed, or how they failed.
fn results(messages: &[Message]) -> impl Iterator<Item = std::result::Result<String, &str>> {
    messages.iter().filter_map(|message| match message {
        Message::Tool { name, content, .. } if name == RUN => Some(printed(content)),
        _ => None,
    })
}

/// The answer, made from what the scripts printed.
fn summary(messages: &[Message]) -> AssistantMessage {
    let printed: std::result::Result<Vec<String>, &str> = results(messages).collect();
    let content = match printed {
        Ok(printed) => answer(&printed),
        Err(failure) => format!("(scripted reply) There is no answer: a script failed. {failure}"),
    };
    AssistantMessage { content, ..AssistantMessage::default() }
}

fn answer(printed: &[String]) -> String {
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

fn printed(content: &str) -> std::result::Result<String, &str> {
    match serde_json::from_str::<Value>(content) {
        Ok(result) if result["returncode"] == 0 => {
            let printed = result["stdout"].as_str().unwrap_or_default();
            Ok(printed.trim().to_string())
        }
        _ => Err(content),
    }
}
