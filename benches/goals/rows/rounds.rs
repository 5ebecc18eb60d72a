//! Rows about the cost of a round with a tool: alone, and with a script.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::Comparison;
use crate::block::{Block, Run, cpu, wall};
use crate::child::Contender;
use crate::replies::{ROUNDS, Reply, SKILL};
use crate::report::{Line, Unit};
use crate::world::{World, on_path};

/// The own time of a round: the time of a run with many rounds minus that of a run with one
/// answer, divided by the number of rounds.
///
/// The time in which the server had a request and had not yet written the last byte of its
/// reply is subtracted from both. Wake-up times are not subtracted. This can make the result
/// too small: work of the client during the reply, such as reading the first events, is
/// subtracted too, although it would take time with any server. So the true value is between
/// this one and the one without subtraction. A result of zero or less means that more was
/// subtracted than the server's time, and the value is unknown.
fn own_time(runs: &[Run]) -> f64 {
    let [many, one] = [0, 1].map(|place| runs[place].cost.wall - runs[place].stats.served_ms);
    (many - one) / u32::try_from(ROUNDS).map_or(1.0, f64::from)
}

/// A difference of times, which must be positive.
fn positive(milliseconds: f64) -> Result<f64, String> {
    if milliseconds > 0.0 {
        return Ok(milliseconds);
    }
    let why = "the subtracted time was not less than the whole";
    Err(format!("{why} ({milliseconds:.2} ms)"))
}

/// The line of such a time, with a comparison if the time is known.
fn difference_line(
    group: &'static str,
    name: &'static str,
    ours: f64,
    (other, value, ratio): (&'static str, f64, f64),
) -> Line {
    let ours = positive(ours);
    let is_known = ours.is_ok();
    let line = Line::new(group, name, Unit::Milliseconds, ours);
    if is_known {
        return line.against(other, value, ratio);
    }
    line
}

/// Rounds with the cheapest tool.
pub(super) fn tool_loop(world: &mut World) -> Result<Vec<Line>, String> {
    let answer = format!("{}\n", Reply::short().text);
    let contenders = [
        world.ours("loop", 10)?.expect_output(answer.as_bytes())?,
        world.ours("short", 10)?.expect_output(answer.as_bytes())?,
        world.no_op(),
    ];
    let block = Block::run(&contenders, world.turns(60), &mut world.server)?;
    let most = |of: fn(&Run) -> u64| block.most(|runs| of(&runs[0]));
    let requests = most(|run| run.stats.requests);
    // One for each round and for the answer, before them the list of models.
    if requests != ROUNDS as u64 + 2 {
        return Err(format!("a run of {ROUNDS} rounds made {requests} requests"));
    }
    let connections = u32::try_from(most(|run| run.stats.connections));
    let connections = connections.map_or(f64::INFINITY, f64::from);
    let ratio = block.median(|runs| own_time(runs) / runs[2].cost.wall);
    let name = "own time a round, of 20, the server's taken off";
    let no_op = ("no-op", block.typical(2, wall), ratio);
    Ok(vec![
        difference_line("loop", name, block.median(own_time), no_op).at_most(0.3),
        Line::new(
            "loop",
            "connections for 21 requests and the list of models",
            Unit::Count,
            Ok(connections),
        )
        .at_most(2.0),
    ])
}

/// Scripts, compared with the interpreter alone with the same script, environment and folder.
/// The goal, the interpreter's start plus 1.5 ms, is for a round in a conversation; `tool`
/// also includes a whole start of this program within the same 1.5 ms.
pub(super) fn python(world: &mut World) -> Result<Vec<Line>, String> {
    let rounds = "run_python_script, a round in a conversation, beyond the interpreter";
    let by_hand = "run_python_script by hand, our own start in it, beyond the interpreter";
    let Some(python) = interpreter(world) else {
        let why = "there is no python3 in PATH that can create a venv";
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
    let alone = alone.expect_output(b"7\n")?;
    let ours = call("print(7)");
    if printed(&ours)? != "7\n" {
        return Err("the script printed something else".into());
    }
    let line = |name, block: &Block, place: usize, beyond: &dyn Fn(&[Run]) -> f64| {
        let ratio = block.median(|runs| beyond(runs) / runs[place].cost.wall + 1.0);
        let alone = ("python3", block.typical(place, wall), ratio);
        difference_line("python", name, block.median(beyond), alone).at_most(1.5)
    };
    let scripts = world.ours("scripts", 10)?.env("SCRIPT_PYTHON", &python);
    let answer = format!("{}\n", Reply::short().text);
    let contenders =
        [scripts.expect_output(answer.as_bytes())?, world.ours("short", 10)?, alone.clone()];
    let block = Block::run(&contenders, world.turns(10), &mut world.server)?;
    let comparison = Comparison::run(world, ours, Ok(alone), 60)?;
    // Wall time includes waking up three processes; CPU time does not.
    let worked = comparison.block.median(|runs| cpu(&runs[0]) - cpu(&runs[1]));
    let name = "run_python_script by hand, our own start in it, CPU beyond the interpreter";
    let alone = comparison.block.typical(1, cpu);
    let alone = ("python3", alone, comparison.block.ratio(1, cpu));
    let worked = difference_line("python", name, worked, alone);
    Ok(vec![
        line(rounds, &block, 2, &|runs| own_time(runs) - runs[2].cost.wall),
        line(by_hand, &comparison.block, 1, &|runs| runs[0].cost.wall - runs[1].cost.wall),
        worked,
    ])
}

/// The output of the script of a call.
fn printed(call: &Contender) -> Result<String, String> {
    let result: Value =
        serde_json::from_slice(&call.output()?).map_err(|error| error.to_string())?;
    let printed = result["stdout"].as_str();
    Ok(printed.ok_or_else(|| format!("no result of a script: {result}"))?.to_string())
}

/// The interpreter of a new venv, as skills have one, without other installed packages, which
/// can slow down each start. Not `python3` itself, which may be a version manager's shim.
fn interpreter(world: &World) -> Option<PathBuf> {
    let python = on_path("python3")?;
    let venv = world.new_folder("venv").ok()?;
    let made = world.bare(&python).args(["-m", "venv", "--without-pip"]);
    made.args([&venv]).output().ok()?;
    Some(venv.join("bin/python3"))
}
