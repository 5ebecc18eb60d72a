//! Rows without a model: starting, listing skills, and the size of the binary.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{Comparison, peak};
use crate::block::wall;
use crate::deadline;
use crate::replies::Reply;
use crate::report::{Line, MEBIBYTE, Unit};
use crate::world::World;

/// The start, which every call from a script includes; the goal is relative to a program that
/// does nothing.
pub(super) fn start(world: &mut World) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    let rows = [
        ("--version, wall", "--version", world.curl_version()),
        ("--help, wall", "--help", Err("it prints no such help".into())),
    ];
    for (name, option, curl) in rows {
        let ours = world.bare(&world.binary).args([option]);
        let comparison = Comparison::run(world, ours, curl, 300)?;
        let line = comparison.line_beside_no_op("start", name, wall);
        lines.push(line.at_most(1.0).at_most_ratio(1.5));
        if option == "--version" {
            lines.push(comparison.line("start", "--version beside curl, wall", wall));
        }
    }
    Ok(lines)
}

/// `tool list_skills`, with a whole start, compared with a program that only reads as much of
/// each document.
pub(super) fn list(world: &mut World) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    let rows = [
        (1_000, "list_skills of 1,000, wall", 100, 12.0),
        (10_000, "list_skills of 10,000, wall", 21, 150.0),
    ];
    for (count, name, turns, most) in rows {
        let skills = world.skills(count)?;
        let ours = world.bare(&world.binary).env("SKILLS_FOLDER_PATH", &skills);
        let ours = ours.args(["--no-env-file", "tool", "list_skills", "{}"]);
        let listed = ours.output()?;
        if !String::from_utf8_lossy(&listed).contains("skill-00007") {
            return Err("a skill is missing in the list".into());
        }
        let reader = world.reader(&skills)?;
        let comparison = Comparison::run(world, ours.clone(), Ok(reader), turns)?;
        lines.push(comparison.line("list", name, wall).at_most(most));
        if count == 10_000 {
            let name = "list_skills of 10,000, memory";
            let line = Line::new("list", name, Unit::Mebibytes, peak(&ours, world));
            lines.push(line.at_most(16.0 * MEBIBYTE));
            lines.extend(search(world, &skills)?);
        }
    }
    Ok(lines)
}

/// `list_skills` with a query, which reads all documents.
fn search(world: &mut World, skills: &Path) -> Result<Vec<Line>, String> {
    let query = r#"{"query":"convert imperial units kind 77"}"#;
    let ours = world.bare(&world.binary).env("SKILLS_FOLDER_PATH", skills);
    let ours = ours.args(["--no-env-file", "tool", "list_skills", query]);
    if !String::from_utf8_lossy(&ours.output()?).contains("skill-00077") {
        return Err("a search does not find the skill".into());
    }
    let reader = world.reader(skills)?;
    let comparison = Comparison::run(world, ours.clone(), Ok(reader), 11)?;
    let memory = Line::new("list", "query of 10,000, memory", Unit::Mebibytes, peak(&ours, world));
    Ok(vec![
        comparison.line("list", "query of 10,000, wall", wall).at_most(400.0),
        memory.at_most(64.0 * MEBIBYTE),
    ])
}

/// The binary: its size, its number of crates, and what it needs to run.
pub(super) fn binary(world: &mut World) -> Result<Vec<Line>, String> {
    let metadata = fs::metadata(&world.binary).map_err(|error| error.to_string())?;
    let size = u32::try_from(metadata.len()).map_or(f64::INFINITY, f64::from);
    // SAFETY: the call reads a number of this process and cannot fail.
    let works = match unsafe { libc::geteuid() } {
        0 => Ok(f64::from(u8::from(in_empty_chroot(world)?))),
        _ => Err("it needs root".into()),
    };
    let size = Line::new("binary", "size", Unit::Mebibytes, Ok(size));
    let crates = Line::new("binary", "crates, build scripts' included", Unit::Count, crates());
    Ok(vec![
        size.at_most(8.0 * MEBIBYTE),
        crates.at_most(60.0),
        Line::new("binary", "an answer in an empty chroot", Unit::Works, works),
    ])
}

fn crates() -> Result<f64, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let tree = Command::new(cargo)
        .args(["tree", "--prefix", "none", "--edges", "normal,build", "--format", "{p}"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .map_err(|error| format!("failed to start cargo: {error}"))?;
    if !tree.status.success() {
        return Err(format!("cargo tree failed: {}", String::from_utf8_lossy(&tree.stderr)));
    }
    let text = String::from_utf8_lossy(&tree.stdout).into_owned();
    let mut names: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    names.sort_unstable();
    names.dedup();
    u32::try_from(names.len()).map(f64::from).map_err(|error| error.to_string())
}

/// Whether the binary works in a folder with no other file, not even /etc/hosts.
fn in_empty_chroot(world: &World) -> Result<bool, String> {
    let folder = world.new_folder("chroot")?;
    let copied = fs::copy(&world.binary, folder.join("skills-runner"));
    copied.map_err(|error| error.to_string())?;
    let root = std::ffi::CString::new(folder.into_os_string().into_encoded_bytes());
    let root = root.map_err(|error| error.to_string())?;
    let run = |args: &[&str]| {
        let mut command = Command::new("/skills-runner");
        let address = format!("http://localhost:{}/short/v1", world.server.http_port);
        command.args(args).env_clear().env("LLM_API_BASE_URL", address);
        command.env("LLM_MODEL_NAME", "bench");
        let root = root.clone();
        // SAFETY: between fork and exec only two system calls are made.
        unsafe {
            command.pre_exec(move || {
                if libc::chroot(root.as_ptr()) != 0 || libc::chdir(c"/".as_ptr()) != 0 {
                    return Err(io::Error::last_os_error());
                }
                Ok(())
            });
        }
        // A binary that is not static cannot even be started there.
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(Stdio::null());
        deadline::output(&mut command).is_ok_and(|output| {
            let stdout = String::from_utf8_lossy(&output.stdout);
            output.status.success() && (args.len() == 1 || stdout.trim_end() == Reply::short().text)
        })
    };
    Ok(run(&["--version"]) && run(&["-n", "hi"]))
}
