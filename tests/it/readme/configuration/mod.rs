//! Blocks that are files: written where the text says, parsed in their format, and
//! used by the program that they are for.

mod servers;
mod workflow;

use serde_json::Value;
use skills::yaml;

use super::documents::{Block, Faults};
use super::reader::Reader;
use super::session;

pub(super) fn check(reader: &Reader, block: &Block, faults: &mut Faults) {
    let result = match block.language.as_str() {
        "json" => servers::json(reader, &block.text),
        "python" => servers::python(reader, &block.text),
        "ini" => unit(reader, block),
        "cron" | "crontab" => used(reader, block, "crontab", "crontab"),
        "dockerfile" => used(reader, block, "Dockerfile", "docker build -t skills-runner -f"),
        "yaml" => yaml(reader, block),
        "" => Err("the block has no language".into()),
        other => Err(format!("no rule for blocks of `{other}` (tests/it/readme/configuration)")),
    };
    faults.extend(result.err().map(|fault| format!("{}: {fault}", block.place)));
}

/// A script that is a file: run by its interpreter, or by Slurm.
pub(super) fn script(reader: &Reader, block: &Block, faults: &mut Faults) {
    let first = block.text.lines().next().unwrap_or_default();
    let program = match block.text.contains("\n#SBATCH ") {
        true => "sbatch",
        false => first.rsplit(['/', ' ']).next().unwrap_or("sh"),
    };
    let result = used(reader, block, "script.sh", program);
    faults.extend(result.err().map(|fault| format!("{}: {fault}", block.place)));
}

/// Writes all files of a document, since commands above them may need them.
pub(super) fn put_all(reader: &Reader, blocks: &[Block]) {
    for block in blocks {
        let is_file = match block.language.as_str() {
            "ini" | "cron" | "crontab" | "dockerfile" | "yaml" => true,
            "sh" => block.text.starts_with("#!"),
            _ => false,
        };
        if is_file {
            put(reader, block, "a-file");
        }
    }
}

/// Writes the files of the block under the names in the text, and returns these.
fn put(reader: &Reader, block: &Block, otherwise: &str) -> Vec<String> {
    let mut files: Vec<(String, String)> = Vec::new();
    for line in block.text.lines() {
        match named_by(line, &block.language) {
            Some(name) => files.push((name.to_owned(), format!("{line}\n"))),
            None => {
                if files.is_empty() {
                    let name = named_in(&block.lead, &block.language).unwrap_or(otherwise);
                    files.push((name.to_owned(), String::new()));
                }
                let (_, text) = files.last_mut().expect("one was just pushed");
                *text += &format!("{line}\n");
            }
        }
    }
    for (name, text) in &files {
        let path = reader.played(&name.replacen('~', "home", 1));
        let text = reader.played(text);
        // A file without a folder is needed in the working folder and at home.
        if !name.starts_with(['/', '~']) {
            reader.test.clone().file(&format!("home/{path}"), &text);
        }
        reader.test.clone().file(&path, &text);
        if let Ok(things) = things(&text) {
            reader.test.clone().file(&format!("{path}.json"), Value::Array(things).to_string());
        }
    }
    files.into_iter().map(|(name, _)| name).collect()
}

/// A comment that is a file's name: `# /etc/systemd/system/report.timer`.
fn named_by<'a>(line: &'a str, language: &str) -> Option<&'a str> {
    let name = line.strip_prefix("# ")?.trim_end();
    is_file(name, language).then_some(name)
}

/// The last name of such a file in backticks.
fn named_in<'a>(lead: &'a str, language: &str) -> Option<&'a str> {
    let spans = lead.split('`').skip(1).step_by(2);
    let words = spans.flat_map(str::split_whitespace);
    words.filter(|word| is_file(word, language)).last()
}

fn is_file(name: &str, language: &str) -> bool {
    let endings: &[&str] = match language {
        "ini" => &[".service", ".timer"],
        "yaml" => &[".yaml", ".yml"],
        "sh" => &[".sh", ".slurm", ".sbatch"],
        "dockerfile" => &["Dockerfile"],
        _ => &["crontab"],
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "./~_-@".contains(c);
    name.chars().all(is_plain) && endings.iter().any(|ending| name.ends_with(ending))
}

/// Writes the files and runs a command on each, which must end with 0.
fn used(reader: &Reader, block: &Block, otherwise: &str, command: &str) -> Result<(), String> {
    let context = if command.starts_with("docker") { " ." } else { "" };
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
        // A name without a folder is a system unit.
        let (folder, unit) = name.rsplit_once('/').unwrap_or(("", name));
        if folder.is_empty() {
            let from = reader.test.read(name);
            let path = reader.played(&format!("/etc/systemd/system/{unit}"));
            reader.test.clone().file(&path, from);
        }
    }
    for name in &names {
        let (folder, unit) = name.rsplit_once('/').unwrap_or(("", name));
        let manager = if folder.starts_with('~') { "systemctl --user" } else { "systemctl" };
        run(reader, &format!("{manager} start {}", unit.replace("@.", "@1.")))?;
    }
    Ok(())
}

/// Resources of a cluster are applied, workflows are run step by step.
fn yaml(reader: &Reader, block: &Block) -> Result<(), String> {
    if let Some(servers) = things(&block.text)?.iter().find_map(|thing| thing.get("mcpServers")) {
        return servers::serve(reader, servers);
    }
    let things = things(&reader.played(&block.text))?;
    if things.iter().all(|thing| thing["kind"].is_string()) {
        return used(reader, block, "job.yaml", "kubectl apply -f");
    }
    things.iter().try_for_each(|thing| workflow::run(reader, thing))
}

/// The documents of a YAML text.
fn things(text: &str) -> Result<Vec<Value>, String> {
    let documents = text.trim_start_matches("---\n").split("\n---\n");
    let values = documents.map(|document| match yaml::parse_core(document) {
        Ok(reading) => Ok(reading.value),
        Err(fault) => Err(format!("line {}: {}", fault.line, fault.message)),
    });
    values.collect()
}
