//! What a round with a tool costs: by itself, and with a script in it.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::Contest;
use crate::block::{Block, Run, cpu, wall};
use crate::child::Contender;
use crate::replies::{ROUNDS, Reply, SKILL};
use crate::report::{Line, Unit};
use crate::world::{World, on_path};

/// What a round of a run with many costs by itself: the run's time without that of a run
/// with a single answer.
///
/// Of both is taken off all the time that the server had a request and had not yet written the
/// last byte of its reply. Waking each other up is not taken off. This can flatter: what the
/// client does on the other core while the server still writes, such as reading the first
/// events, is taken off with it, though it would have taken time with a server that takes none;
/// so the truth lies between this and the same without taking anything off. Where what is left
/// is not above zero, more was taken off than belongs to the server, and nothing is known.
fn own(runs: &[Run]) -> f64 {
    let [many, one] = [0, 1].map(|place| runs[place].cost.wall - runs[place].tally.served_ms);
    (many - one) / u32::try_from(ROUNDS).map_or(1.0, f64::from)
}

/// A time that was found by taking another off.
fn left(milliseconds: f64) -> Result<f64, String> {
    if milliseconds > 0.0 {
        return Ok(milliseconds);
    }
    let why = "what is taken off was not less than the whole";
    Err(format!("{why} ({milliseconds:.2} ms)"))
}

/// The line of such a time, beside another where it is known.
fn line_of_left(
    group: &'static str,
    name: &'static str,
    ours: f64,
    (other, value, ratio): (&'static str, f64, f64),
) -> Line {
    let ours = left(ours);
    let is_known = ours.is_ok();
    let line = Line::new(group, name, Unit::Milliseconds, ours);
    if is_known {
        return line.against(other, value, ratio);
    }
    line
}

/// Rounds with the cheapest tool.
pub(super) fn tool_loop(world: &mut World) -> Result<Vec<Line>, String> {
    let said = format!("{}\n", Reply::short().text);
    let contenders = [
        world.ours("loop", 10)?.demand(said.as_bytes())?,
        world.ours("short", 10)?.demand(said.as_bytes())?,
        world.no_op(),
    ];
    let block = Block::run(&contenders, world.turns(60), &mut world.server)?;
    let most = |of: fn(&Run) -> u64| block.most(|runs| of(&runs[0]));
    let requests = most(|run| run.tally.requests);
    if requests != ROUNDS as u64 + 1 {
        return Err(format!("a run of {ROUNDS} rounds made {requests} requests"));
    }
    let connections = u32::try_from(most(|run| run.tally.connections));
    let connections = connections.map_or(f64::INFINITY, f64::from);
    let ratio = block.median(|runs| own(runs) / runs[2].cost.wall);
    let name = "own time a round, of 20, the server's taken off";
    let no_op = ("no-op", block.typical(2, wall), ratio);
    Ok(vec![
        line_of_left("loop", name, block.median(own), no_op).at_most(0.3),
        Line::new("loop", "connections for 21 requests", Unit::Count, Ok(connections)).at_most(1.0),
    ])
}

/// Scripts, beside the interpreter with the same script, environment and folder. The goal, an
/// interpreter's start and 1.5 ms, is that of a round in a conversation; by hand a whole start
/// of ours comes on top, and is to find its place within the same 1.5 ms.
pub(super) fn python(world: &mut World) -> Result<Vec<Line>, String> {
    let rounds = "run_python_script, a round in a conversation, beyond the interpreter";
    let by_hand = "run_python_script by hand, our own start in it, beyond the interpreter";
    let Some(python) = interpreter(world) else {
        let why = "there is no python3 on PATH that makes a venv";
        let lacking =
            |name| Line::new("python", name, Unit::Milliseconds, Err(why.into())).at_most(1.5);
        return Ok(vec![lacking(rounds), lacking(by_hand)]);
    };
    let skills = world.skills(10)?;
    let call = |script: &str| {
        let json = json!({"skill_name": SKILL, "script": script});
        let ours = world.bare(&world.binary).env("SKILLS_FOLDER_PATH", &skills);
        let ours = ours.env("SCRIPT_PYTHON", &python);
        ours.args(["--no-env-file", "tool", "run_python_script", &json.to_string()])
    };
    let environment = printed(&call("import json, os; print(json.dumps(dict(os.environ)))"))?;
    let environment: Value =
        serde_json::from_str(&environment).map_err(|error| error.to_string())?;
    let script = world.new_folder("scripts")?.join("script.py");
    std::fs::write(&script, "print(7)").map_err(|error| error.to_string())?;
    let mut alone = Contender::new("python3", &python, &skills.join(SKILL)).args([script]);
    for (name, value) in environment.as_object().into_iter().flatten() {
        alone = alone.env(name, value.as_str().unwrap_or_default());
    }
    let alone = alone.demand(b"7\n")?;
    let ours = call("print(7)");
    if printed(&ours)? != "7\n" {
        return Err("the script did not print what it should".into());
    }
    let line = |name, block: &Block, place: usize, beyond: &dyn Fn(&[Run]) -> f64| {
        let ratio = block.median(|runs| beyond(runs) / runs[place].cost.wall + 1.0);
        let alone = ("python3", block.typical(place, wall), ratio);
        line_of_left("python", name, block.median(beyond), alone).at_most(1.5)
    };
    let scripts = world.ours("scripts", 10)?.env("SCRIPT_PYTHON", &python);
    let said = format!("{}\n", Reply::short().text);
    let contenders = [scripts.demand(said.as_bytes())?, world.ours("short", 10)?, alone.clone()];
    let block = Block::run(&contenders, world.turns(10), &mut world.server)?;
    let contest = Contest::run(world, ours, Ok(alone), 60)?;
    // Wall time goes through three processes and their wakings; what they work does not wait.
    let worked = contest.block.median(|runs| cpu(&runs[0]) - cpu(&runs[1]));
    let name = "run_python_script by hand, our own start in it, CPU beyond the interpreter";
    let alone = contest.block.typical(1, cpu);
    let alone = ("python3", alone, contest.block.ratio(1, cpu));
    let worked = line_of_left("python", name, worked, alone);
    Ok(vec![
        line(rounds, &block, 2, &|runs| own(runs) - runs[2].cost.wall),
        line(by_hand, &contest.block, 1, &|runs| runs[0].cost.wall - runs[1].cost.wall),
        worked,
    ])
}

/// What the script of a call printed.
fn printed(call: &Contender) -> Result<String, String> {
    let result: Value =
        serde_json::from_slice(&call.output()?).map_err(|error| error.to_string())?;
    let printed = result["stdout"].as_str();
    Ok(printed.ok_or_else(|| format!("no result of a script: {result}"))?.to_string())
}

/// A venv's, as skills have it: what others installed, and what of that is loaded at every
/// start, is not in it. Not `python3` itself, which may be a version manager's shim.
fn interpreter(world: &World) -> Option<PathBuf> {
    let python = on_path("python3")?;
    let venv = world.new_folder("venv").ok()?;
    let made = world.bare(&python).args(["-m", "venv", "--without-pip"]);
    made.args([&venv]).output().ok()?;
    Some(venv.join("bin/python3"))
}
