//! Blocks that are files: put where the text says, read by a reader of their
//! format, and used by the program whose files they are.

mod servers;
mod workflow;

use serde_json::Value;
use skills_runner::skills::yaml;

use super::documents::{Block, Faults};
use super::reader::Reader;
use super::session;

pub fn check(reader: &Reader, block: &Block, faults: &mut Faults) {
    let result = match block.language.as_str() {
        "json" => servers::json(reader, &block.text),
        "python" => servers::python(reader, &block.text),
        "ini" => unit(reader, block),
        "cron" | "crontab" => used(reader, block, "crontab", "crontab"),
        "dockerfile" => used(
            reader,
            block,
            "Dockerfile",
            "docker build -t skills-runner -f",
        ),
        "yaml" => yaml(reader, block),
        "" => Err("the block has no language".into()),
        other => Err(format!(
            "no rule for blocks of `{other}` (tests/it/readme/configuration)"
        )),
    };
    faults.extend(
        result
            .err()
            .map(|fault| format!("{}: {fault}", block.place)),
    );
}

/// A script that is a file, and no commands: run as what it is for.
pub fn script(reader: &Reader, block: &Block, faults: &mut Faults) {
    let program = if block.text.contains("\n#SBATCH ") {
        "sbatch"
    } else {
        "bash"
    };
    let result = used(reader, block, "script.sh", program);
    faults.extend(
        result
            .err()
            .map(|fault| format!("{}: {fault}", block.place)),
    );
}

/// Writes the files of the block, by the names that the text gives them; the
/// names as they stand there.
fn put(reader: &Reader, block: &Block, otherwise: &str) -> Vec<String> {
    let mut files: Vec<(String, String)> = Vec::new();
    for line in block.text.lines() {
        match named_by(line) {
            Some(name) => files.push((name, format!("{line}\n"))),
            None => {
                if files.is_empty() {
                    files.push((
                        named_in(&block.lead).unwrap_or_else(|| otherwise.into()),
                        String::new(),
                    ));
                }
                let (_, text) = files.last_mut().expect("one was just pushed");
                *text += &format!("{line}\n");
            }
        }
    }
    for (name, text) in &files {
        let path = reader.played(&name.replacen('~', "home", 1));
        reader.test.clone().file(&path, reader.played(text));
    }
    files.into_iter().map(|(name, _)| name).collect()
}

/// A comment that is a file's name: `# /etc/systemd/system/report.timer`.
fn named_by(line: &str) -> Option<String> {
    let name = line.strip_prefix("# ")?.split_whitespace().next()?;
    let name = name.trim_end_matches([':', ',']);
    is_file(name).then(|| name.to_owned())
}

/// The last name of a file between backticks.
fn named_in(lead: &str) -> Option<String> {
    let spans = lead.split('`').skip(1).step_by(2);
    spans.filter(|span| is_file(span)).last().map(str::to_owned)
}

fn is_file(name: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "./~_-@".contains(c);
    let extensions = [
        ".service", ".timer", ".yaml", ".yml", ".sh", ".slurm", ".sbatch", ".json", ".env",
    ];
    name.chars().all(is_plain)
        && (["Dockerfile", "crontab"].contains(&last)
            || extensions.iter().any(|end| last.ends_with(end)))
}

/// Puts the files and runs a command on each, that must end with 0.
fn used(reader: &Reader, block: &Block, otherwise: &str, command: &str) -> Result<(), String> {
    let context = if command.starts_with("docker") {
        " ."
    } else {
        ""
    };
    for name in put(reader, block, otherwise) {
        run(reader, &format!("{command} {name}{context}"))?;
    }
    Ok(())
}

fn run(reader: &Reader, command: &str) -> Result<(), String> {
    match session::ends_well(reader, command) {
        Ok(()) => Ok(()),
        Err(output) => Err(format!("`{command}` fails:\n{output}")),
    }
}

/// Units of systemd: each service is started, a timer's too.
fn unit(reader: &Reader, block: &Block) -> Result<(), String> {
    let names = put(reader, block, "/etc/systemd/system/skills-runner.service");
    for name in &names {
        // A name alone is that of a system's unit.
        let (folder, unit) = name.rsplit_once('/').unwrap_or(("", name));
        if folder.is_empty() {
            let from = reader.test.read(name);
            let path = reader.played(&format!("/etc/systemd/system/{unit}"));
            reader.test.clone().file(&path, from);
        }
    }
    for name in &names {
        let (folder, unit) = name.rsplit_once('/').unwrap_or(("", name));
        let manager = if folder.starts_with('~') {
            "systemctl --user"
        } else {
            "systemctl"
        };
        run(
            reader,
            &format!("{manager} start {}", unit.replace("@.", "@1.")),
        )?;
    }
    Ok(())
}

/// What is for a cluster is applied, what is a workflow's runs step by step.
fn yaml(reader: &Reader, block: &Block) -> Result<(), String> {
    let text = reader.played(&block.text);
    let mut things: Vec<Value> = Vec::new();
    for document in text.split("\n---\n") {
        let reading = yaml::parse_core(document.trim_start_matches("---\n"));
        let reading = reading.map_err(|fault| format!("line {}: {}", fault.line, fault.message))?;
        things.push(reading.value);
    }
    if things.iter().all(|thing| thing["kind"].is_string()) {
        let name = put(reader, block, "job.yaml").swap_remove(0);
        let things = Value::Array(things).to_string();
        reader
            .test
            .clone()
            .file(&format!("{}.json", reader.played(&name)), things);
        return run(reader, &format!("kubectl apply -f {name}"));
    }
    things
        .iter()
        .try_for_each(|thing| workflow::run(reader, thing))
}
