//! The machine and the versions of a measurement, which a ratio needs to be understood.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::deadline;

/// Cores, kernel, the binary's version and the checkout's commit. No name of the machine, no path.
pub(crate) fn about(binary: &Path) -> Value {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = processors.lines().find_map(|line| line.strip_prefix("model name"));
    let processor = processor.unwrap_or_default().trim_matches([' ', '\t', ':']);
    let size = fs::metadata(binary).map_or(0, |metadata| metadata.len());
    json!({
        "machine": format!("{cores} cores, {processor}, Linux {}", kernel.trim()),
        "version": first_words(Command::new(binary).arg("--version")),
        "commit": commit(),
        "bytes": size,
        "curl": first_words(Command::new("curl").args(["-q", "--version"])),
    })
}

/// The commit of the checkout, with `-dirty` if its files differ from the commit. The
/// baseline does not count, because a run that saves a few rows changes it. Empty without a
/// repository.
fn commit() -> String {
    let commit = first_words(git().args(["rev-parse", "--short", "HEAD"]));
    let clean = git()
        .args(["diff", "--quiet", "HEAD", "--", "."])
        .arg(":(exclude)benches/baseline.json")
        .stderr(Stdio::null())
        .status();
    match clean.map(|status| status.success()) {
        Ok(false) if !commit.is_empty() => commit + "-dirty",
        _ => commit,
    }
}

/// Whether this commit is an ancestor of what is checked out.
pub(crate) fn is_ancestor(commit: &str) -> bool {
    let status =
        git().args(["merge-base", "--is-ancestor", commit, "HEAD"]).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn git() -> Command {
    let mut git = Command::new("git");
    git.current_dir(env!("CARGO_MANIFEST_DIR"));
    git
}

/// Prints the machine and the versions.
pub(crate) fn print(about: &Value) {
    let word = |name: &str| about[name].as_str().unwrap_or_default();
    println!("machine   {}", word("machine"));
    println!(
        "binary    {}, {} bytes, checkout {}",
        word("version"),
        about["bytes"],
        word("commit")
    );
    println!("against   {}", word("curl"));
    let cores = std::thread::available_parallelism()
        .map_or(1.0, |cores| u32::try_from(cores.get()).map_or(1.0, f64::from));
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().and_then(|load| load.parse::<f64>().ok());
    if let Some(load) = load.filter(|load| *load > cores / 2.0) {
        println!("busy      load {load}: only the ratios mean something, and less than usual");
    }
}

/// The first two words that a command prints.
fn first_words(command: &mut Command) -> String {
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let Ok(output) = deadline::output(command.stderr(Stdio::null())) else {
        return String::new();
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let words: Vec<&str> = text.split_whitespace().take(2).collect();
    words.join(" ")
}
