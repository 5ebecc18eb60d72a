//! `make bench`: the goals of speed, size and cost, measured.
//!
//! Whole processes are measured from outside, in turns with curl and with a program that
//! does nothing, against a fast server on loopback which is a process of its own. What counts
//! is the ratio within a turn: it holds on a slower machine, and beside other work. A goal
//! that is missed, or could not be measured, ends nothing, unless `--strict` asks for it; a run that does not do what it is
//! measured for does.
//!
//! `cargo test` does not run this, and no test measures time.

mod baseline;
mod block;
mod child;
mod deadline;
mod machine;
mod replies;
mod report;
mod rows;
mod server;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;

use baseline::Baseline;
use report::{Line, Verdict};
use rows::ROWS;
use world::{Effort, World};

const USAGE: &str = "BENCH=\"[ROW]... [--quick] [--strict] [--save] [--json FILE]\" make bench";

/// What was asked for.
struct Asked {
    binary: Option<PathBuf>,
    effort: Effort,
    is_strict: bool,
    save: bool,
    json: Option<PathBuf>,
    /// All, if none is named.
    rows: Vec<String>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["--serve"] => server::serve().map_err(|error| error.to_string()),
        ["--read", folder] => world::read_all(folder.as_ref()).map_err(|error| error.to_string()),
        // cargo says so to a benchmark that it runs as one; `cargo test --benches` does not.
        words if words.contains(&"--bench") => Asked::of(words).and_then(|asked| bench(&asked)),
        _ => {
            println!("nothing is measured here: {USAGE}");
            Ok(())
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench: {message}");
            ExitCode::FAILURE
        }
    }
}

impl Asked {
    fn of(words: &[&str]) -> Result<Asked, String> {
        let mut asked = Asked {
            binary: None,
            effort: Effort::Full,
            is_strict: false,
            save: false,
            json: None,
            rows: Vec::new(),
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut file = || words.next().map(PathBuf::from);
            match *word {
                "--bench" => {}
                "--binary" => asked.binary = file(),
                "--json" => asked.json = Some(file().ok_or("--json needs a file")?),
                "--quick" => asked.effort = Effort::Quick,
                "--strict" => asked.is_strict = true,
                "--save" => asked.save = true,
                row if ROWS.iter().any(|(name, _)| *name == row) => asked.rows.push(row.into()),
                other => {
                    let rows: Vec<&str> = ROWS.iter().map(|(name, _)| *name).collect();
                    let rows = rows.join(", ");
                    return Err(format!("no row or option `{other}`: {USAGE}; rows: {rows}"));
                }
            }
        }
        if asked.save && asked.effort == Effort::Quick {
            return Err("a quick run makes no baseline: --save needs a full one".into());
        }
        Ok(asked)
    }
}

fn bench(asked: &Asked) -> Result<(), String> {
    let binary = asked.binary.as_ref().ok_or("--binary names what is measured")?;
    let binary = std::path::absolute(binary).map_err(|error| error.to_string())?;
    if !binary.is_file() {
        return Err("the file that --binary names is not there; `make bench` builds it".into());
    }
    let about = machine::about(&binary);
    machine::tell(&about);
    let baseline = Baseline::read()?;
    let is_choice = !asked.rows.is_empty();
    if asked.save {
        baseline.may_take(is_choice, &about)?;
    }
    let mut world = World::new(&binary, asked.effort)?;
    let mut lines = Vec::new();
    for (name, row) in ROWS {
        if asked.rows.is_empty() || asked.rows.iter().any(|asked| asked == name) {
            eprint!("{name} ");
            lines.extend(row(&mut world).map_err(|error| format!("{name}: {error}"))?);
        }
    }
    eprintln!();
    print!("\n{}", report::table(&lines, &baseline));
    println!(
        "\nMedians; ratios turn by turn. A goal of 3 MB is read as 3 MiB (1024 × 1024), one of 3 KB as 3 KiB. {}",
        baseline.title()
    );
    if let Some(file) = &asked.json {
        let text = format!("{:#}\n", report::json(&lines, &baseline, &about));
        let written = std::fs::write(file, text);
        written.map_err(|error| format!("failed to write {}: {error}", file.display()))?;
    }
    if asked.save {
        baseline.save(is_choice, &lines, about)?;
    }
    if asked.is_strict {
        all_reached(&lines)?;
    }
    Ok(())
}

/// A goal that was not measured is not reached.
fn all_reached(lines: &[Line]) -> Result<(), String> {
    let (mut missed, mut not_measured) = (0, 0);
    for line in lines.iter().filter(|line| line.has_goal()) {
        match line.verdict() {
            Verdict::Missed => missed += 1,
            Verdict::NotMeasured(_) => not_measured += 1,
            Verdict::Reached | Verdict::Told => {}
        }
    }
    if missed + not_measured > 0 {
        return Err(format!("goals not reached: {missed} missed, {not_measured} not measured"));
    }
    Ok(())
}
