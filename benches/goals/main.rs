//! `make bench`: measures the goals for speed, size and cost.
//!
//! Whole processes are measured from outside, in turns with curl and a program that does
//! nothing, against a fast server on loopback in its own process. The important value is the
//! ratio within a turn: it is the same on a slower or busy machine. A missed or unmeasured
//! goal does not end the benchmark, unless `--strict` is given; a run that does not do what
//! is measured does.
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

/// The options of the benchmark.
struct Options {
    binary: Option<PathBuf>,
    effort: Effort,
    is_strict: bool,
    save: bool,
    json: Option<PathBuf>,
    /// The chosen rows; empty: all rows.
    rows: Vec<String>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["--serve"] => server::serve().map_err(|error| error.to_string()),
        ["--read", folder] => world::read_all(folder.as_ref()).map_err(|error| error.to_string()),
        // `cargo bench` passes `--bench`; `cargo test --benches` does not.
        words if words.contains(&"--bench") => {
            Options::parse(words).and_then(|options| bench(&options))
        }
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

impl Options {
    fn parse(words: &[&str]) -> Result<Options, String> {
        let mut options = Options {
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
                "--binary" => options.binary = file(),
                "--json" => options.json = Some(file().ok_or("--json needs a file")?),
                "--quick" => options.effort = Effort::Quick,
                "--strict" => options.is_strict = true,
                "--save" => options.save = true,
                row if ROWS.iter().any(|(name, _)| *name == row) => options.rows.push(row.into()),
                other => {
                    let rows: Vec<&str> = ROWS.iter().map(|(name, _)| *name).collect();
                    let rows = rows.join(", ");
                    return Err(format!("unknown row or option `{other}`: {USAGE}; rows: {rows}"));
                }
            }
        }
        if options.save && options.effort == Effort::Quick {
            return Err("a quick run is no baseline: --save needs a full run".into());
        }
        Ok(options)
    }
}

fn bench(options: &Options) -> Result<(), String> {
    let binary = options.binary.as_ref().ok_or("--binary must name the program to measure")?;
    let binary = std::path::absolute(binary).map_err(|error| error.to_string())?;
    if !binary.is_file() {
        return Err("the file of --binary does not exist; `make bench` builds it".into());
    }
    let about = machine::about(&binary);
    machine::print(&about);
    let baseline = Baseline::read()?;
    let is_choice = !options.rows.is_empty();
    if options.save {
        baseline.check_can_save(is_choice, &about)?;
    }
    let mut world = World::new(&binary, options.effort)?;
    let mut lines = Vec::new();
    for (name, row) in ROWS {
        if options.rows.is_empty() || options.rows.iter().any(|row| row == name) {
            eprint!("{name} ");
            lines.extend(row(&mut world).map_err(|error| format!("{name}: {error}"))?);
        }
    }
    eprintln!();
    print!("\n{}", report::table(&lines, &baseline));
    println!(
        "\nMedians; ratios are computed within a turn. 1 MB is read as 1 MiB (1024 × 1024 bytes), 1 KB as 1 KiB. {}",
        baseline.title()
    );
    if let Some(file) = &options.json {
        let text = format!("{:#}\n", report::json(&lines, &baseline, &about));
        let written = std::fs::write(file, text);
        written.map_err(|error| format!("failed to write {}: {error}", file.display()))?;
    }
    if options.save {
        baseline.save(is_choice, &lines, about)?;
    }
    if options.is_strict {
        check_goals(&lines)?;
    }
    Ok(())
}

/// Fails if any goal is missed or was not measured.
fn check_goals(lines: &[Line]) -> Result<(), String> {
    let (mut missed, mut not_measured) = (0, 0);
    for line in lines.iter().filter(|line| line.has_goal()) {
        match line.verdict() {
            Verdict::Missed => missed += 1,
            Verdict::NotMeasured(_) => not_measured += 1,
            Verdict::Reached | Verdict::NoGoal => {}
        }
    }
    if missed + not_measured > 0 {
        return Err(format!("goals not reached: {missed} missed, {not_measured} not measured"));
    }
    Ok(())
}
